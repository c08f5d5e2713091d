//! The journal records of zones, and whether what is kept of them agrees.

use super::{Condition, State, Zones, NOTE_ZONE};
use crate::plan::note::{Note, ReplayError};
use crate::violation::Violation;

impl Zones {
    pub(super) fn note_of(&self, index: u32) -> Note {
        let state = self.states[index as usize];
        let code = match state.condition {
            Condition::Full if state.is_finished && state.written < self.zone_sectors => 1,
            Condition::ReadOnly => 2,
            Condition::Offline => 3,
            _ => 0,
        };
        Note::new(NOTE_ZONE, &[u64::from(index), state.written, code])
    }

    /// Appends the records of every zone that is not as new.
    pub fn checkpoint(&self, notes: &mut Vec<Note>) {
        for index in 0..self.len() {
            let state = self.states[index as usize];
            let is_fault = matches!(state.condition, Condition::ReadOnly | Condition::Offline | Condition::Full);
            if state.written > 0 || is_fault {
                notes.push(self.note_of(index));
            }
        }
    }

    /// Takes one durable record.
    pub fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        let refused = |reason: String| ReplayError { note: *note, reason };
        let [zone, written, code, _] = note.fields;
        if note.tag != NOTE_ZONE || zone >= u64::from(self.len()) || written > self.zone_sectors || code > 3 {
            return Err(refused(format!("the drive has {} zones of {} sectors", self.len(), self.zone_sectors)));
        }
        let index = zone as u32;
        if index < self.conventional && (code == 1 || written > 0) {
            return Err(refused(format!("zone {index} is conventional and has no pointer")));
        }
        let condition = match code {
            0 => self.condition_at(index, written),
            1 => Condition::Full,
            2 => Condition::ReadOnly,
            _ => Condition::Offline,
        };
        let state = &mut self.states[index as usize];
        (state.written, state.on_the_way, state.is_finished) = (written, 0, code == 1);
        self.set(index, condition);
        Ok(())
    }

    /// Checks that counts and conditions agree.
    pub fn self_check(&self, layer: &'static str) -> Result<(), Violation> {
        let violation = |invariant, detail| Err(Violation { layer, invariant, detail });
        let count = |is: fn(Condition) -> bool| self.states.iter().filter(|state| is(state.condition)).count();
        let (open, active) = (count(Condition::is_open), count(Condition::is_active));
        let counted = self.explicitly_open as usize + self.implicitly_open.len();
        if open != counted || active != self.active as usize || open > self.open_max as usize {
            return violation(2, format!("{open} zones are open, {active} active; counted {counted}, {}", self.active));
        }
        let is_wrong = |state: &State| match state.condition {
            Condition::Empty | Condition::Conventional => state.accepted() != 0,
            Condition::Closed => state.accepted() == 0 || state.accepted() == self.zone_sectors,
            condition => condition.is_open() && state.accepted() == self.zone_sectors,
        };
        match self.states.iter().position(is_wrong) {
            Some(index) => violation(2, format!("zone {index} is {:?}", self.states[index])),
            None => Ok(()),
        }
    }
}
