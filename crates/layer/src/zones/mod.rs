//! Zones: what a host-managed drive keeps of each, and what it allows. Pure: positions and conditions, no bytes.
//!
//! ```text
//!                write, open                   write up to the end, finish
//!    Empty ───────────────────► open ────────────────────────────────────► Full
//!      ▲ ▲                    implicitly (by a write)                       │
//!      │ │ close, nothing     explicitly (by open)                          │
//!      │ └─ written ────────────│  ▲                                        │
//!      │                  close │  │ write, open                            │
//!      │                        ▼  │                                        │
//!      │                       Closed ──────── finish ────────────────────► │
//!      └─────────── reset ─────── (from every condition above) ─────────────┘
//!
//!    any ── fault of the medium ──► ReadOnly, Offline       Conventional: has no pointer, and stays so
//! ```
//!
//! | condition | holds |
//! |---|---|
//! | Empty | the pointer is at the start; counts towards no limit |
//! | ImplicitlyOpen, ExplicitlyOpen | counts as open and as active; an implicitly open zone may be closed for another's sake |
//! | Closed | some sectors, not all, are written; counts as active |
//! | Full | the pointer is void; what was not written before a finish reads as zeros |
//! | ReadOnly | what was written can be read, and nothing else |
//! | Offline | nothing can be done |
//!
//! A switched-off drive forgets which zones were open: they are Closed, or Empty where nothing durable was written.
//!
//! A pointer that a fault moved ahead stands past what was written: the sectors it skipped read as they lie.
//!
//! Journal records: 1 {zone, sectors written, state: 0 as the pointer says, 1 finished, 2 read-only, 3 offline}.
//!
//! Invariants:
//! 1. A pointer that recovery finds never lies past what is durable: its record follows a barrier that follows the data.
//!    Only a fault that was asked for moves it further.
//! 2. It never lies before what a flush or a FUA write acknowledged: both leave records of every pointer that moved.
//! 3. A pointer that goes back is durable before anything is written below its old place.
//! 4. All zones have the same number of sectors; writing one harms no other.
//! 5. The pointer that the host is told counts writes that were accepted and are on their way; what is recorded counts only
//!    those that were carried out. In order of acceptance the second follows the first, and nothing else moves it ahead.

mod condition;
mod journal;

use std::collections::{BTreeSet, VecDeque};

use imbrex_disk::{Lba, Pba, Sectors};

pub use self::condition::{Condition, Zone, ZoneError};
pub use self::journal::{ZoneRecord, ZoneState};
use crate::map::sparse::Sparse;
use crate::plan::Plan;
use crate::region::Regions;

/// What is kept of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    condition: Condition,
    /// Sectors from its start that were written.
    written: u64,
    /// Sectors beyond those whose writes were accepted and are on their way.
    on_the_way: u32,
    /// Whether it is full because it was finished.
    is_finished: bool,
}

impl State {
    /// A zone as it was made, where the first `conventional` are conventional.
    const fn fresh(conventional: u32, index: usize) -> State {
        let condition = if index < conventional as usize { Condition::Conventional } else { Condition::Empty };
        State { condition, written: 0, on_the_way: 0, is_finished: false }
    }

    /// Sectors from its start that were written or whose writes were accepted: where the next write must go.
    const fn accepted(&self) -> u64 {
        self.written + self.on_the_way as u64
    }
}

/// The zones of a drive.
#[derive(Clone, Debug)]
pub struct Zones {
    places: Regions,
    zone_sectors: u64,
    /// How many zones, from the first, are conventional.
    conventional: u32,
    open_max: u32,
    active_max: u32,
    /// Nothing of zones that are still as they were made.
    states: Sparse<State>,
    /// Implicitly open zones, the one opened first in front.
    implicitly_open: VecDeque<u32>,
    explicitly_open: u32,
    active: u32,
    /// Zones whose records are older than their pointers.
    moved: BTreeSet<u32>,
}

impl Zones {
    /// Zones at `places`, all of the same size, the first `conventional` of them without a pointer; limits of 0 are none.
    pub fn new(places: Regions, conventional: u32, open_max: u32, active_max: u32) -> Zones {
        let zone_sectors = if places.is_empty() { 0 } else { places.sectors(0).0 };
        assert!(places.capacity().0 == zone_sectors * places.len() as u64, "zones differ in size: invariant 4");
        Zones {
            states: Sparse::new(places.len()),
            places,
            zone_sectors,
            conventional,
            open_max: if open_max == 0 { u32::MAX } else { open_max },
            active_max: if active_max == 0 { u32::MAX } else { active_max },
            implicitly_open: VecDeque::new(),
            explicitly_open: 0,
            active: 0,
            moved: BTreeSet::new(),
        }
    }

    /// How many.
    pub fn len(&self) -> u32 {
        self.places.len() as u32
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many are conventional: the first so many.
    pub fn conventional(&self) -> u32 {
        self.conventional
    }

    /// Sectors of a zone.
    pub fn zone_sectors(&self) -> Sectors {
        Sectors(self.zone_sectors)
    }

    /// Sectors of all zones.
    pub fn capacity(&self) -> Sectors {
        self.places.capacity()
    }

    /// The most zones that may be open, and the most that may be active, if there are limits.
    pub fn limits(&self) -> (Option<u32>, Option<u32>) {
        let limit = |max: u32| (max != u32::MAX).then_some(max);
        (limit(self.open_max), limit(self.active_max))
    }

    /// Where they lie.
    pub fn places(&self) -> &Regions {
        &self.places
    }

    /// The number of the zone of `lba`.
    pub fn index_of(&self, lba: Lba) -> Result<u32, ZoneError> {
        self.check_range(lba, 1)?;
        Ok((lba.0 / self.zone_sectors) as u32)
    }

    /// Zone `index`.
    pub fn zone(&self, index: u32) -> Result<Zone, ZoneError> {
        let state = self.state(index)?;
        let pointer = match state.condition {
            Condition::Conventional | Condition::Offline => 0,
            Condition::Full => self.zone_sectors,
            _ => state.accepted(),
        };
        let start = self.places.first_lba(index as usize);
        Ok(Zone { index, start, sectors: self.zone_sectors(), condition: state.condition, pointer: Sectors(pointer) })
    }

    /// Sectors of zone `index` that hold what was written, from its start: all of a conventional zone. Writes that were
    /// accepted and not yet carried out do not count.
    pub fn written(&self, index: u32) -> Result<Sectors, ZoneError> {
        let state = self.state(index)?;
        match state.condition {
            Condition::Offline => Err(self.refused(index, "read")),
            Condition::Conventional => Ok(self.zone_sectors()),
            _ => Ok(Sectors(state.written)),
        }
    }

    fn state(&self, index: u32) -> Result<State, ZoneError> {
        if index >= self.len() {
            return Err(ZoneError::NoSuchZone { zone: index, zones: self.len() });
        }
        Ok(self.known(index))
    }

    /// The state of a zone that there is.
    fn known(&self, index: u32) -> State {
        let made = || State::fresh(self.conventional, index as usize);
        self.states.get(index as usize).copied().unwrap_or_else(made)
    }

    /// The same, to be changed.
    fn changed(&mut self, index: u32) -> &mut State {
        let conventional = self.conventional;
        self.states.change(index as usize, |index| State::fresh(conventional, index))
    }

    /// Whether these sectors are there.
    pub fn check_range(&self, lba: Lba, sectors: u64) -> Result<(), ZoneError> {
        let end = self.capacity().0;
        let fits = lba.0.checked_add(sectors).is_some_and(|last| last <= end);
        fits.then_some(()).ok_or(ZoneError::PastEnd { lba, sectors, end })
    }

    fn refused(&self, zone: u32, what: &'static str) -> ZoneError {
        ZoneError::Condition { zone, condition: self.known(zone).condition, what }
    }

    /// Accepts a write of `sectors` at `lba`, which will be carried out, or says why it cannot be. For the host the pointer
    /// has moved; what is recorded moves with [`Zones::wrote`]. A write may cross zones as long as all are conventional.
    pub fn accept_write(&mut self, lba: Lba, sectors: u64) -> Result<u32, ZoneError> {
        self.check_range(lba, sectors.max(1))?;
        let index = self.index_of(lba)?;
        let state = self.state(index)?;
        let start = self.places.first_lba(index as usize);
        let room = match state.condition {
            Condition::Conventional => u64::from(self.conventional) * self.zone_sectors - lba.0,
            Condition::Full | Condition::ReadOnly | Condition::Offline => return Err(self.refused(index, "written")),
            _ => self.zone_sectors - state.accepted(),
        };
        let pointer = start + Sectors(state.accepted());
        if state.condition != Condition::Conventional && lba != pointer {
            return Err(ZoneError::NotAtPointer { zone: index, pointer, lba });
        }
        if sectors > room {
            return Err(ZoneError::NoRoom { zone: index, room, sectors });
        }
        if state.condition == Condition::Conventional {
            return Ok(index);
        }
        if !state.condition.is_open() {
            self.make_room(index)?;
            self.set(index, Condition::ImplicitlyOpen);
        }
        let more = u32::try_from(sectors).ok().and_then(|sectors| state.on_the_way.checked_add(sectors));
        let more = more.expect("what is on its way to a drive fits in memory, so it is less than 2³² sectors");
        self.changed(index).on_the_way = more;
        if sectors == room {
            self.set(index, Condition::Full);
        }
        Ok(index)
    }

    /// The zones with a pointer that lie in these sectors from their first sector to their last.
    pub fn whole_within(&self, lba: Lba, sectors: u64) -> std::ops::Range<u32> {
        let end = (lba.0.saturating_add(sectors) / self.zone_sectors).min(u64::from(self.len()));
        let first = lba.0.div_ceil(self.zone_sectors).max(u64::from(self.conventional));
        // Both are numbers of zones, which are counted in 32 bits.
        first.min(end) as u32..end as u32
    }

    /// `sectors` from `lba` on were written, in whatever order the host saw fit: each pointer lies after the farthest.
    pub fn wrote(&mut self, lba: Lba, sectors: Sectors) {
        let (mut next, end) = (lba.0, lba.0 + sectors.0);
        while next < end {
            let index = (next / self.zone_sectors) as u32;
            let first = u64::from(index) * self.zone_sectors;
            let part_end = end.min(first + self.zone_sectors);
            self.advance(index, part_end - first);
            next = part_end;
        }
    }

    fn advance(&mut self, index: u32, written: u64) {
        let state = self.known(index);
        let is_moving = !matches!(state.condition, Condition::Conventional | Condition::ReadOnly | Condition::Offline);
        if !is_moving || written <= state.written {
            return;
        }
        let on_the_way = state.accepted().saturating_sub(written) as u32;
        *self.changed(index) = State { written, on_the_way, ..state };
        self.moved.insert(index);
        if written <= state.accepted() {
            return;
        }
        // Nobody asked: a simulated host, which knows no pointers.
        if written == self.zone_sectors {
            self.set(index, Condition::Full);
        } else if state.condition == Condition::Empty {
            self.set(index, Condition::Closed);
        }
    }

    /// Opens zone `index` explicitly.
    pub fn open(&mut self, index: u32) -> Result<(), ZoneError> {
        match self.state(index)?.condition {
            Condition::ExplicitlyOpen => Ok(()),
            Condition::Empty | Condition::Closed => {
                self.make_room(index)?;
                self.set(index, Condition::ExplicitlyOpen);
                Ok(())
            }
            Condition::ImplicitlyOpen => {
                self.set(index, Condition::ExplicitlyOpen);
                Ok(())
            }
            _ => Err(self.refused(index, "opened")),
        }
    }

    /// Closes zone `index`.
    pub fn close(&mut self, index: u32) -> Result<(), ZoneError> {
        let state = self.state(index)?;
        match state.condition {
            Condition::Closed => {}
            condition if condition.is_open() => {
                self.set(index, if state.accepted() == 0 { Condition::Empty } else { Condition::Closed });
            }
            _ => return Err(self.refused(index, "closed")),
        }
        Ok(())
    }

    /// Makes zone `index` full, whatever is written; appends the record to `plan`.
    pub fn finish(&mut self, index: u32, plan: &mut Plan) -> Result<(), ZoneError> {
        match self.state(index)?.condition {
            Condition::Full => return Ok(()),
            Condition::Conventional | Condition::ReadOnly | Condition::Offline => {
                return Err(self.refused(index, "finished"));
            }
            _ => self.set(index, Condition::Full),
        }
        self.changed(index).is_finished = true;
        self.moved.insert(index);
        self.note_moved(plan);
        Ok(())
    }

    /// Empties zone `index`; appends the record to `plan`.
    pub fn reset(&mut self, index: u32, plan: &mut Plan) -> Result<(), ZoneError> {
        self.set_back(index, 0, plan)
    }

    /// Empties every zone that can be.
    pub fn reset_all(&mut self, plan: &mut Plan) {
        self.reset_those_of(self.conventional..self.len(), plan);
    }

    /// Empties those of `zones` that can be and are not as new; says how many that were.
    pub fn reset_those_of(&mut self, zones: std::ops::Range<u32>, plan: &mut Plan) -> u32 {
        let mut reset = 0;
        for index in zones.start.max(self.conventional)..zones.end {
            let state = self.known(index);
            let is_failed = matches!(state.condition, Condition::ReadOnly | Condition::Offline);
            if state != State::fresh(self.conventional, index as usize) && !is_failed {
                self.put_back(index, 0, plan);
                reset += 1;
            }
        }
        plan.barrier();
        reset
    }

    /// Sets the pointer of zone `index` back to `to` sectors from its start (Singh 2014 §2.2.1): what lies from there on
    /// is given up.
    pub fn set_back(&mut self, index: u32, to: u64, plan: &mut Plan) -> Result<(), ZoneError> {
        let state = self.state(index)?;
        if matches!(state.condition, Condition::Conventional | Condition::ReadOnly | Condition::Offline) {
            return Err(self.refused(index, if to == 0 { "reset" } else { "set back" }));
        }
        if to > state.accepted() {
            return Err(ZoneError::PointerAhead { zone: index, pointer: state.accepted(), to });
        }
        let is_settled = to == 0 || state.accepted() == state.written;
        assert!(is_settled, "zone {index} is set back to {to} while writes are on their way: {state:?}, invariant 5");
        if to < state.accepted() || state.condition == Condition::Full {
            if to > 0 && !state.condition.is_active() && self.active >= self.active_max {
                return Err(ZoneError::TooManyActive { limit: self.active_max });
            }
            self.put_back(index, to, plan);
            plan.barrier();
        } else if to == 0 {
            self.set(index, Condition::Empty);
        }
        Ok(())
    }

    fn put_back(&mut self, index: u32, to: u64, plan: &mut Plan) {
        // What stays below the pointer may have been written since the last record: it has to be durable first.
        if to > 0 {
            plan.barrier();
        }
        let state = self.changed(index);
        (state.written, state.on_the_way, state.is_finished) = (to, 0, false);
        let condition = match (to, self.known(index).condition) {
            (0, _) => Condition::Empty,
            (_, Condition::Full) if to < self.zone_sectors => Condition::Closed,
            (_, condition) => condition,
        };
        self.set(index, condition);
        self.moved.remove(&index);
        plan.note(self.note_of(index));
    }

    /// A fault of the medium makes zone `index` read-only or takes it offline; appends the record to `plan`.
    pub fn fail(&mut self, index: u32, condition: Condition, plan: &mut Plan) -> Result<(), ZoneError> {
        assert!(matches!(condition, Condition::ReadOnly | Condition::Offline), "{condition:?} is no fault");
        self.state(index)?;
        self.set(index, condition);
        self.moved.insert(index);
        self.note_moved(plan);
        Ok(())
    }

    /// A fault of the medium is gone: zone `index` is again as its pointer says; appends the record to `plan`.
    pub fn mend(&mut self, index: u32, plan: &mut Plan) -> Result<(), ZoneError> {
        let state = self.state(index)?;
        if matches!(state.condition, Condition::ReadOnly | Condition::Offline) {
            self.set(index, self.condition_at(index, state.written));
            self.moved.insert(index);
            self.note_moved(plan);
        }
        Ok(())
    }

    /// A fault of the drive moves the pointer of zone `index` to `to` sectors from its start, ahead or back; appends the
    /// record to `plan`. What it skips ahead was never written and lies below it all the same.
    pub fn move_pointer(&mut self, index: u32, to: u64, plan: &mut Plan) -> Result<(), ZoneError> {
        let state = self.state(index)?;
        if matches!(state.condition, Condition::Conventional | Condition::ReadOnly | Condition::Offline) {
            return Err(self.refused(index, "given another pointer"));
        }
        if to > self.zone_sectors {
            return Err(ZoneError::NoRoom { zone: index, room: self.zone_sectors, sectors: to });
        }
        if to <= state.written {
            return self.set_back(index, to, plan);
        }
        let becomes_active = !state.condition.is_active() && to < self.zone_sectors;
        if becomes_active && self.active >= self.active_max {
            return Err(ZoneError::TooManyActive { limit: self.active_max });
        }
        let moved = self.changed(index);
        (moved.written, moved.on_the_way, moved.is_finished) = (to, 0, false);
        if !state.condition.is_open() || to == self.zone_sectors {
            self.set(index, self.condition_at(index, to));
        }
        self.moved.insert(index);
        self.note_moved(plan);
        Ok(())
    }

    /// The condition of a zone that is not open, of which `written` sectors are written.
    fn condition_at(&self, index: u32, written: u64) -> Condition {
        match written {
            _ if index < self.conventional => Condition::Conventional,
            0 => Condition::Empty,
            _ if written < self.zone_sectors => Condition::Closed,
            _ => Condition::Full,
        }
    }

    /// Appends to `plan` the records of all pointers that moved, each after its data are durable.
    pub fn note_moved(&mut self, plan: &mut Plan) {
        plan.barrier();
        let moved = std::mem::take(&mut self.moved);
        if moved.is_empty() {
            return;
        }
        for index in moved {
            plan.note(self.note_of(index));
        }
        plan.barrier();
    }

    /// Sees to it that one more zone may be open, closing an implicitly open one if need be.
    fn make_room(&mut self, index: u32) -> Result<(), ZoneError> {
        let is_active = self.known(index).condition.is_active();
        if !is_active && self.active >= self.active_max {
            return Err(ZoneError::TooManyActive { limit: self.active_max });
        }
        if self.explicitly_open as usize + self.implicitly_open.len() < self.open_max as usize {
            return Ok(());
        }
        match self.implicitly_open.front().copied() {
            Some(first) => self.close(first),
            None => Err(ZoneError::TooManyOpen { limit: self.open_max }),
        }
    }

    /// The one place where conditions change, so that the counts keep up.
    fn set(&mut self, index: u32, condition: Condition) {
        let before = std::mem::replace(&mut self.changed(index).condition, condition);
        self.active = self.active + u32::from(condition.is_active()) - u32::from(before.is_active());
        self.explicitly_open = self.explicitly_open + u32::from(condition == Condition::ExplicitlyOpen)
            - u32::from(before == Condition::ExplicitlyOpen);
        if before == Condition::ImplicitlyOpen {
            self.implicitly_open.retain(|&open| open != index);
        }
        if condition == Condition::ImplicitlyOpen {
            self.implicitly_open.push_back(index);
        }
    }

    /// The physical place of `lba`.
    pub fn native(&self, lba: Lba) -> Pba {
        self.places.native(lba)
    }

    /// Bytes of memory that they take now.
    pub fn measured_bytes(&self) -> u64 {
        self.places.measured_bytes() + self.states.measured_bytes()
    }
}

#[cfg(test)]
mod tests;
