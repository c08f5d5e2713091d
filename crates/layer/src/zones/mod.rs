//! Zones of a host-managed drive: the state of each, and the operations that it allows. This module knows positions and
//! conditions, but no bytes.
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
//! | condition | meaning |
//! |---|---|
//! | Empty | the pointer is at the start; counts towards no limit |
//! | ImplicitlyOpen, ExplicitlyOpen | counts as open and as active; the drive may close an implicitly open zone to open another |
//! | Closed | some sectors are written, but not all; counts as active |
//! | Full | the pointer is undefined; sectors that were not written before a finish read as zeros |
//! | ReadOnly | written sectors can be read; no other operation is possible |
//! | Offline | no operation is possible |
//!
//! After a power-off no zone is open: formerly open zones are Closed, or Empty if nothing durable was written to them.
//!
//! A pointer that a fault moved ahead lies past the written sectors: the skipped sectors read as the medium has them.
//!
//! Journal records: 1 {zone, sectors written, state: 0 follows from the pointer, 1 finished, 2 read-only, 3 offline}.
//!
//! Invariants:
//! 1. A pointer that recovery finds never lies past durable data: its record follows a barrier that follows the data.
//!    Only a fault injected on request moves it further.
//! 2. A pointer never lies before the data that a flush or a FUA write acknowledged: both write records of every
//!    pointer that moved.
//! 3. A pointer that was set back is durable before anything is written below its old position.
//! 4. All zones have the same number of sectors; writing one zone destroys no sector of another.
//! 5. The pointer that the host sees also counts accepted writes in flight; the recorded pointer counts only executed
//!    writes. Executed writes move the recorded pointer towards the host's, in order of acceptance; nothing else moves
//!    it ahead.

mod condition;
mod journal;

use std::collections::{BTreeSet, VecDeque};

use imbrex_disk::{Lba, Pba, Sectors};

pub use self::condition::{Condition, Zone, ZoneError};
pub use self::journal::{ZoneRecord, ZoneState};
use crate::map::sparse::Sparse;
use crate::plan::Plan;
use crate::region::Regions;

/// The state of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    condition: Condition,
    /// Sectors from the start of the zone that were written.
    written: u64,
    /// Sectors after `written` whose writes were accepted and are in flight.
    on_the_way: u32,
    /// Whether the zone is full because the host finished it.
    is_finished: bool,
}

impl State {
    /// Returns the initial state of zone `index`, if the first `conventional` zones are conventional.
    const fn fresh(conventional: u32, index: usize) -> State {
        let condition = if index < conventional as usize { Condition::Conventional } else { Condition::Empty };
        State { condition, written: 0, on_the_way: 0, is_finished: false }
    }

    /// Returns the sectors from the start of the zone that are written or in flight: the position of the next write.
    const fn accepted(&self) -> u64 {
        self.written + self.on_the_way as u64
    }
}

/// The zones of a host-managed drive, with their conditions and write pointers. Zones are numbered from 0, in order of
/// LBA; the conventional zones are the first ones.
#[derive(Clone, Debug)]
pub struct Zones {
    places: Regions,
    zone_sectors: u64,
    /// Number of conventional zones; they are the first ones.
    conventional: u32,
    open_max: u32,
    active_max: u32,
    /// States of the zones; a zone in its initial state takes no memory.
    states: Sparse<State>,
    /// Implicitly open zones, in the order in which they were opened.
    implicitly_open: VecDeque<u32>,
    explicitly_open: u32,
    active: u32,
    /// Zones whose pointers have moved since their last records.
    moved: BTreeSet<u32>,
}

impl Zones {
    /// Returns zones at `places`, one for each region. The first `conventional` of them are conventional (without a
    /// write pointer), the others are empty. `open_max` is the maximum number of open zones, explicitly or implicitly;
    /// `active_max` is the maximum number of open and closed ones. A limit of 0 means no limit.
    ///
    /// # Panics
    ///
    /// If the regions differ in size.
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

    /// Returns the number of zones, conventional ones included.
    pub fn len(&self) -> u32 {
        self.places.len() as u32
    }

    /// Returns whether there are no zones.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the number of conventional zones, which are the first ones.
    pub fn conventional(&self) -> u32 {
        self.conventional
    }

    /// Returns the number of sectors of each zone; all zones have an equal number.
    pub fn zone_sectors(&self) -> Sectors {
        Sectors(self.zone_sectors)
    }

    /// Returns the total number of sectors of all zones, conventional ones included.
    pub fn capacity(&self) -> Sectors {
        self.places.capacity()
    }

    /// Returns the maximum number of open zones, then the maximum number of active zones (open and closed ones). `None`
    /// means that there is no limit.
    pub fn limits(&self) -> (Option<u32>, Option<u32>) {
        let limit = |max: u32| (max != u32::MAX).then_some(max);
        (limit(self.open_max), limit(self.active_max))
    }

    /// Returns the physical sectors of the zones: region number i is the place of zone number i.
    pub fn places(&self) -> &Regions {
        &self.places
    }

    /// Returns the number of the zone that contains `lba`, counted from 0.
    ///
    /// # Errors
    ///
    /// The sector lies past the last zone.
    pub fn index_of(&self, lba: Lba) -> Result<u32, ZoneError> {
        self.check_range(lba, 1)?;
        Ok((lba.0 / self.zone_sectors) as u32)
    }

    /// Returns the report of zone `index`: its place, its condition and its write pointer. Accepted writes in flight
    /// count as written.
    ///
    /// # Errors
    ///
    /// There is no zone `index`.
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

    /// Returns the number of sectors, from the start of zone `index`, that were written. Accepted writes in flight do
    /// not count, nor do the sectors that a finish skipped. For a conventional zone returns the length of the zone.
    ///
    /// # Errors
    ///
    /// There is no zone `index`, or it is offline.
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

    /// Returns the state of a zone that exists.
    fn known(&self, index: u32) -> State {
        let made = || State::fresh(self.conventional, index as usize);
        self.states.get(index as usize).copied().unwrap_or_else(made)
    }

    /// Returns the state of a zone that exists, for a change.
    fn changed(&mut self, index: u32) -> &mut State {
        let conventional = self.conventional;
        self.states.change(index as usize, |index| State::fresh(conventional, index))
    }

    /// Checks that the `sectors` from `lba` on lie within the zones. 0 sectors are accepted up to the end of the last
    /// zone.
    ///
    /// # Errors
    ///
    /// A sector lies past the last zone.
    pub fn check_range(&self, lba: Lba, sectors: u64) -> Result<(), ZoneError> {
        let end = self.capacity().0;
        let fits = lba.0.checked_add(sectors).is_some_and(|last| last <= end);
        fits.then_some(()).ok_or(ZoneError::PastEnd { lba, sectors, end })
    }

    fn refused(&self, zone: u32, what: &'static str) -> ZoneError {
        ZoneError::Condition { zone, condition: self.known(zone).condition, what }
    }

    /// Accepts a write command of `sectors` at `lba`, and returns the number of the zone in which the write begins. The
    /// write pointer that the host sees moves behind the write; the recorded pointer moves with [`Zones::wrote`]. An
    /// empty or closed zone is opened implicitly, for which another implicitly open zone may be closed. A zone that the
    /// write fills becomes full. A write may cross zones only if all of them are conventional.
    ///
    /// # Errors
    ///
    /// A sector lies past the last zone, the zone is full, read-only or offline, the write does not begin at the write
    /// pointer, it reaches past the end of the zone, or too many zones are open or active. Nothing changes then.
    ///
    /// # Panics
    ///
    /// If the accepted writes of the zone in flight have 2³² sectors or more.
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
        let more = more.expect("data on their way to a drive fit in memory: they are less than 2³² sectors");
        self.changed(index).on_the_way = more;
        if sectors == room {
            self.set(index, Condition::Full);
        }
        Ok(index)
    }

    /// Returns the numbers of the sequential (not conventional) zones that lie completely within the `sectors` from
    /// `lba` on. The range is empty if there are none.
    pub fn whole_within(&self, lba: Lba, sectors: u64) -> std::ops::Range<u32> {
        let end = (lba.0.saturating_add(sectors) / self.zone_sectors).min(u64::from(self.len()));
        let first = lba.0.div_ceil(self.zone_sectors).max(u64::from(self.conventional));
        // Both are numbers of zones, which fit into 32 bits.
        first.min(end) as u32..end as u32
    }

    /// Records that the `sectors` from `lba` on, which must lie within the zones, were written to the medium. In each
    /// zone the recorded pointer (behind the executed writes) moves behind the last of these sectors, unless it is
    /// there or further already. Conventional, read-only and offline zones do not change. Writes that were not accepted
    /// before are recorded too, so that their zones may become closed or full.
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
        // The write was not accepted before: it is one of a simulated host, which does not follow pointers.
        if written == self.zone_sectors {
            self.set(index, Condition::Full);
        } else if state.condition == Condition::Empty {
            self.set(index, Condition::Closed);
        }
    }

    /// Opens zone `index` explicitly, as the host's OPEN ZONE command does. An implicitly open zone becomes explicitly
    /// open; an explicitly open one stays so. If an empty or closed zone is opened and the limit of open zones is
    /// reached, the zone that was opened implicitly first is closed.
    ///
    /// # Errors
    ///
    /// There is no zone `index`; it is conventional, full, read-only or offline; or too many zones are open or active.
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

    /// Closes zone `index`: an open zone becomes closed, or empty if nothing was written to it. A closed zone stays
    /// closed.
    ///
    /// # Errors
    ///
    /// There is no zone `index`, or it is neither open nor closed.
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

    /// Makes zone `index` full, however much of it is written, as the host's FINISH ZONE command does. Appends to
    /// `plan` the records of all zones whose pointers moved, with barriers. Does nothing if the zone is full already.
    ///
    /// # Errors
    ///
    /// There is no zone `index`, or it is conventional, read-only or offline.
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

    /// Resets the write pointer of zone `index` to the start of the zone, so that the zone is empty and not open. Its
    /// data are lost, accepted writes in flight included. Appends the zone's record and a barrier to `plan`; appends
    /// nothing if the pointer is at the start already and the zone is not full.
    ///
    /// # Errors
    ///
    /// There is no zone `index`, or it is conventional, read-only or offline.
    pub fn reset(&mut self, index: u32, plan: &mut Plan) -> Result<(), ZoneError> {
        self.set_back(index, 0, plan)
    }

    /// Resets every sequential zone that is neither read-only nor offline: sets its write pointer to its start, so that
    /// it is empty and its data are lost. Appends to `plan` the records of the zones that were not in their initial
    /// state, and a barrier.
    pub fn reset_all(&mut self, plan: &mut Plan) {
        self.reset_those_of(self.conventional..self.len(), plan);
    }

    /// Resets the zones whose numbers lie in `zones`, except conventional, read-only and offline ones and those in
    /// their initial state: sets their write pointers to their starts, so that they are empty and their data are lost.
    /// Appends the records of the reset zones and a barrier to `plan`. Returns the number of reset zones.
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

    /// Sets the write pointer of zone `index` back to `to` sectors from the start of the zone (Singh 2014 §2.2.1). The
    /// data from there on are lost. A full zone becomes closed, unless `to` is the length of the zone; any zone becomes
    /// empty if `to` is 0; an open zone otherwise stays open. Appends the zone's record and barriers to `plan`. If the
    /// zone is not full and its pointer is at `to` already, the pointer does not change and nothing is appended.
    ///
    /// # Errors
    ///
    /// There is no zone `index`; it is conventional, read-only or offline; `to` lies past the write pointer; or a full
    /// zone would become closed while too many zones are active.
    ///
    /// # Panics
    ///
    /// If `to` is not 0 and accepted writes to the zone are in flight.
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
        // The data below the new pointer may have been written since the last record. They have to be durable first.
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

    /// Makes zone `index` read-only or offline, as a fault of the medium would. Appends to `plan` the records of all
    /// zones whose pointers or conditions changed, with barriers.
    ///
    /// # Errors
    ///
    /// There is no zone `index`.
    ///
    /// # Panics
    ///
    /// If `condition` is neither [`Condition::ReadOnly`] nor [`Condition::Offline`].
    pub fn fail(&mut self, index: u32, condition: Condition, plan: &mut Plan) -> Result<(), ZoneError> {
        assert!(matches!(condition, Condition::ReadOnly | Condition::Offline), "{condition:?} is no fault");
        self.state(index)?;
        self.set(index, condition);
        self.moved.insert(index);
        self.note_moved(plan);
        Ok(())
    }

    /// Ends a fault of the medium: a read-only or offline zone becomes empty, closed or full as its recorded pointer
    /// says, or conventional. Appends to `plan` the records of all zones whose pointers or conditions changed, with
    /// barriers. Does nothing if zone `index` has no fault.
    ///
    /// # Errors
    ///
    /// There is no zone `index`.
    pub fn mend(&mut self, index: u32, plan: &mut Plan) -> Result<(), ZoneError> {
        let state = self.state(index)?;
        if matches!(state.condition, Condition::ReadOnly | Condition::Offline) {
            let condition = if state.is_finished { Condition::Full } else { self.condition_at(index, state.written) };
            self.set(index, condition);
            self.moved.insert(index);
            self.note_moved(plan);
        }
        Ok(())
    }

    /// Moves the write pointer of zone `index` to `to` sectors from the start of the zone, ahead or back, as a fault of
    /// the drive would. Sectors that the pointer skips count as written, although they were not. Appends the zone's
    /// record and barriers to `plan`.
    ///
    /// # Errors
    ///
    /// There is no zone `index`; it is conventional, read-only or offline; `to` lies past the end of the zone; or a
    /// zone would become closed while too many zones are active.
    ///
    /// # Panics
    ///
    /// If the pointer moves back, but not to 0, and accepted writes to the zone are in flight.
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

    /// Returns the condition of a zone that is not open and has `written` sectors written.
    fn condition_at(&self, index: u32, written: u64) -> Condition {
        match written {
            _ if index < self.conventional => Condition::Conventional,
            0 => Condition::Empty,
            _ if written < self.zone_sectors => Condition::Closed,
            _ => Condition::Full,
        }
    }

    /// Appends to `plan` a barrier, then the records of all zones whose pointers or conditions changed since their last
    /// records, then another barrier. So data are durable before the record of the pointer that lies behind them. If no
    /// zone changed, appends only the first barrier.
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

    /// Ensures that one more zone may be open; closes an implicitly open zone if necessary.
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

    /// Changes a zone's condition. All changes go through this function, so that the counts stay correct.
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

    /// Returns the physical sector of the logical sector `lba`, which must lie within the zones. Zones do not move.
    pub fn native(&self, lba: Lba) -> Pba {
        self.places.native(lba)
    }

    /// Returns the bytes of memory that the tables of the zones' places and states take now.
    pub fn measured_bytes(&self) -> u64 {
        self.places.measured_bytes() + self.states.measured_bytes()
    }
}

#[cfg(test)]
mod tests;
