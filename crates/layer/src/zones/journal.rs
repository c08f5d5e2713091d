//! The journal records of zones: written, replayed, and checked against the zones' conditions.

use imbrex_disk::Sectors;

use super::{Condition, State, Zones};
use crate::journal_records;
use crate::plan::note::{Note, ReplayError};
use crate::plan::record::Word;
use crate::violation::Violation;

journal_records! {
    /// The kinds of journal record that a drive with zones writes.
    pub enum ZoneRecord of "a drive with zones" {
        1 => Zone { zone: u32, written_sectors: Sectors, state: ZoneState } "a zone's pointer and state",
    }
}

/// The part of a zone's condition that its journal record stores beside the write pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneState {
    /// No special state: after a restart the zone is empty, closed or full as its write pointer says, or conventional.
    /// No zone is open after a restart.
    AsPointer,
    /// The host finished the zone: it is full, although its last sectors were not written.
    Finished,
    /// The zone can be read, but not written, because of a fault.
    ReadOnly,
    /// The zone can neither be read nor written, because of a fault.
    Offline,
}

impl ZoneState {
    const ALL: [ZoneState; 4] = [ZoneState::AsPointer, ZoneState::Finished, ZoneState::ReadOnly, ZoneState::Offline];

    /// Returns the state as text for dumps of the journal: `finished`, `read-only`, `offline`, or `as its pointer
    /// says`.
    pub fn words(self) -> &'static str {
        match self {
            ZoneState::AsPointer => "as its pointer says",
            ZoneState::Finished => "finished",
            ZoneState::ReadOnly => "read-only",
            ZoneState::Offline => "offline",
        }
    }
}

impl Word for ZoneState {
    fn to_word(self) -> u64 {
        self as u64
    }

    fn from_word(word: u64) -> Result<ZoneState, &'static str> {
        ZoneState::ALL.into_iter().find(|state| state.to_word() == word).ok_or("expected 0 to 3")
    }
}

impl Zones {
    pub(super) fn note_of(&self, index: u32) -> Note {
        let zone = self.known(index);
        let state = match zone.condition {
            Condition::Full if zone.is_finished && zone.written < self.zone_sectors => ZoneState::Finished,
            Condition::ReadOnly => ZoneState::ReadOnly,
            Condition::Offline => ZoneState::Offline,
            _ => ZoneState::AsPointer,
        };
        ZoneRecord::Zone { zone: index, written_sectors: Sectors(zone.written), state }.encode()
    }

    /// Appends to `notes` one record of every zone that has written sectors or is full, read-only or offline. A replay
    /// of these records rebuilds the zones. Zones that are open but not written have no record, and are empty after a
    /// replay.
    pub fn checkpoint(&self, notes: &mut Vec<Note>) {
        for index in 0..self.len() {
            let state = self.known(index);
            let is_fault = matches!(state.condition, Condition::ReadOnly | Condition::Offline | Condition::Full);
            if state.written > 0 || is_fault {
                notes.push(self.note_of(index));
            }
        }
    }

    /// Applies one journal record after a restart: sets the zone's pointer and condition.
    ///
    /// # Errors
    ///
    /// The record is none of a zone, there is no such zone, its pointer lies past the end of the zone, or it gives a
    /// pointer to a conventional zone.
    pub fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        let ZoneRecord::Zone { zone: index, written_sectors: Sectors(written), state } = ZoneRecord::decode(note)?;
        if index >= self.len() || written > self.zone_sectors {
            return Err(note.refuse(format!("the drive has {} zones of {} sectors", self.len(), self.zone_sectors)));
        }
        if index < self.conventional && (state == ZoneState::Finished || written > 0) {
            return Err(note.refuse(format!("zone {index} is conventional and has no pointer")));
        }
        let condition = match state {
            ZoneState::AsPointer => self.condition_at(index, written),
            ZoneState::Finished => Condition::Full,
            ZoneState::ReadOnly => Condition::ReadOnly,
            ZoneState::Offline => Condition::Offline,
        };
        let zone = self.changed(index);
        (zone.written, zone.on_the_way, zone.is_finished) = (written, 0, state == ZoneState::Finished);
        self.set(index, condition);
        Ok(())
    }

    /// Checks that the counts of open and active zones agree with the zones' conditions, that at most the allowed
    /// number of zones is open, and that the condition of each zone agrees with its write pointer. `layer` is the name
    /// for the error.
    ///
    /// # Errors
    ///
    /// One of these checks fails.
    pub fn self_check(&self, layer: &'static str) -> Result<(), Violation> {
        let violation = |invariant, detail| Err(Violation { layer, invariant, detail });
        let count = |is: fn(Condition) -> bool| self.states.iter().filter(|(_, state)| is(state.condition)).count();
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
        match self.states.iter().find(|(_, state)| is_wrong(state)) {
            Some((index, state)) => violation(2, format!("zone {index} is {state:?}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were() {
        crate::plan::record::testing::assert_round_trips(ZoneRecord::INFO, |note| {
            ZoneRecord::decode(note).map(ZoneRecord::encode)
        });
        // The words of every state in images.
        for (state, word) in ZoneState::ALL.into_iter().zip(0..) {
            let record = ZoneRecord::Zone { zone: 3, written_sectors: Sectors(9), state };
            assert_eq!(record.encode(), Note::new(1, &[3, 9, word]));
        }
    }
}
