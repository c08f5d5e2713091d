//! The host queue: commands that have entered and wait to be served, in order of entry.
//!
//! Invariants:
//! 1. The order is the order of entry; removal keeps it. The drive holds the oldest waiting commands, at most as many
//!    as it takes at once.
//! 2. For the commands in the drive, the queue also keeps their first sectors, and the index for a search by
//!    positioning time.
//! 3. A command is never served before an earlier one that overlaps it, unless both read (the scheduler's choice is
//!    corrected by [`Queue::hazard`]).
//! 4. A write is never served before an earlier write with which it must stay in order ([`Ordered`]).

use std::collections::VecDeque;
use std::ops::Range;

use imbrex_disk::{
    Actuator, Command, Direction, Disk, Lba, Operation, Sectors, SimDuration, SimTime, SptfIndex, TrackPiece,
};

use crate::overlap_filter::OverlapFilter;

/// A command in the queue.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The read, write, flush or trim, with its address and length in sectors of the drive.
    pub command: Command,
    /// Arrival time that the workload states for the request; `None` if the workload gives the request no time.
    pub arrival: Option<SimTime>,
    /// Simulated time from which the request waited for a place in the queue; `entry` if it waited for none, or the
    /// arrival process ignores the times of the workload.
    pub due: SimTime,
    /// Simulated time at which the command entered this queue.
    pub entry: SimTime,
    /// Number of the request in the workload, counted from 0.
    pub sequence: u64,
    /// Total simulated time that the drive had spent on cleaning when the command entered the queue. Cleaning after
    /// that stalls the command.
    pub cleaning_before: SimDuration,
    /// Place on the platters of the command's first sectors, as far as they lie on one track. `None` if the scheduler
    /// uses no places, or the sectors have no place on the platters. The place is stale if the layer has moved the
    /// sectors since, which only makes the scheduler's choice worse.
    pub target: Option<TrackPiece>,
}

/// Parts of the address space in which writes stay in order of arrival though they do not overlap: runs of equal
/// length, such as the zones of a drive with write pointers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ordered {
    /// Start of the ordered part of the drive, a multiple of `run`. Writes that begin before this sector may pass each
    /// other.
    pub from: Lba,
    /// Number of sectors of a run: a part, such as a zone, in which writes stay in order of entry. Runs begin at the
    /// multiples of this length. Must not be 0.
    pub run: Sectors,
}

impl Ordered {
    /// Returns whether both sectors lie in the same run: the address space from `from` on is divided into runs of `run`
    /// sectors. False if either sector lies before `from`.
    pub fn share(&self, one: Lba, other: Lba) -> bool {
        one >= self.from && other >= self.from && one.0 / self.run.0 == other.0 / self.run.0
    }

    /// Returns the sectors of the run that contains `lba` (exclusive end), or `None` if `lba` lies before `from`.
    pub fn run_of(&self, lba: Lba) -> Option<Range<Lba>> {
        let start = lba.0 / self.run.0 * self.run.0;
        (lba >= self.from).then(|| Lba(start)..Lba(start.saturating_add(self.run.0)))
    }
}

/// Handle of a command that the drive holds. Valid from the command's entry into the drive until the command is taken
/// out of the queue; then the handle may be used for another command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(u32);

/// The number that means no slot.
const NONE: u32 = u32::MAX;

/// Neighbours of a slot in order of entry.
#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    after: u32,
    /// Order of entry: older commands have lower numbers.
    entry_order: u64,
}

/// The queue of waiting commands, in order of entry. The oldest ones are in the drive, where the scheduler sees them;
/// those beyond the drive's depth wait at the host.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Commands in the drive, in any order; undefined in a free slot.
    slots: Vec<Waiting>,
    links: Vec<Links>,
    /// First sector of the command in each slot; `u64::MAX` in a free slot. A separate array, so that a search reads
    /// little memory.
    lbas: Vec<u64>,
    free: Vec<u32>,
    oldest: u32,
    youngest: u32,
    came: u64,
    /// Commands for which the drive has no room, oldest first.
    at_host: VecDeque<Waiting>,
    drive_depth: usize,
    ordered: Option<Ordered>,
    company: OverlapFilter,
    /// Number of flushes. A flush waits for all commands before it, and all commands after it wait for the flush.
    flushes: usize,
    targets: Option<Targets>,
}

/// Places of the commands in the drive.
#[derive(Clone, Debug)]
struct Targets {
    soonest: SptfIndex,
    /// Number of commands without a known place on the platters; each may be served at once.
    elsewhere: usize,
}

impl Targets {
    fn add(&mut self, slot: u32, waiting: &Waiting) {
        match (&waiting.target, waiting.direction()) {
            (Some(target), Some(direction)) => self.soonest.add(slot, &target.place, direction),
            _ => self.elsewhere += 1,
        }
    }

    fn remove(&mut self, slot: u32, waiting: &Waiting) {
        match (&waiting.target, waiting.direction()) {
            (Some(_), Some(_)) => self.soonest.remove(slot),
            _ => self.elsewhere -= 1,
        }
    }
}

impl Waiting {
    fn direction(&self) -> Option<Direction> {
        match self.command.operation {
            Operation::Read => Some(Direction::Read),
            Operation::Write => Some(Direction::Write),
            Operation::Flush | Operation::Trim => None,
        }
    }
}

impl Queue {
    /// Creates an empty queue for a drive that holds at most `drive_depth` commands at once; 0 counts as 1.
    pub fn new(drive_depth: usize) -> Queue {
        Queue {
            slots: Vec::new(),
            links: Vec::new(),
            lbas: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            youngest: NONE,
            came: 0,
            at_host: VecDeque::new(),
            drive_depth: drive_depth.max(1),
            ordered: None,
            company: OverlapFilter::new(),
            flushes: 0,
            targets: None,
        }
    }

    /// Keeps writes that begin in one run of `ordered` in order of entry from now on: [`Queue::hazard`] then returns
    /// the earlier write. A run is one of equal parts of the address space, such as a zone.
    pub fn keep_order_in(&mut self, ordered: Ordered) {
        self.ordered = Some(ordered);
    }

    /// Keeps an index of the places of commands on the platters from now on, for [`Queue::soonest`]. Has no effect if
    /// the rotation model of `disk` is not `exact`.
    ///
    /// # Panics
    ///
    /// Panics unless the queue is empty.
    pub fn keep_targets(&mut self, disk: &Disk) {
        assert!(self.is_empty(), "{} commands came before their targets were kept", self.len());
        self.targets = SptfIndex::new(disk).map(|soonest| Targets { soonest, elsewhere: 0 });
    }

    /// Returns the command in the drive that the head of `actuator` can begin soonest at `now`; the oldest of equal
    /// ones. Returns `None` if no index is kept, if any command in the drive has no known place on the platters, or if
    /// the queue is empty.
    #[inline]
    pub fn soonest(&self, actuator: &Actuator, now: SimTime) -> Option<Slot> {
        let targets = self.targets.as_ref().filter(|targets| targets.elsewhere == 0)?;
        targets.soonest.find(actuator, now).map(Slot)
    }

    /// Returns the division of the address space into runs, such as zones, within which writes stay in order of entry;
    /// `None` if writes may pass each other everywhere.
    pub fn ordered(&self) -> Option<Ordered> {
        self.ordered
    }

    /// Returns whether both commands are writes that begin in the same run, a part of the address space such as a zone,
    /// and so must stay in order of entry. False if the queue keeps no such order.
    pub fn keeps_order(&self, one: &Command, other: &Command) -> bool {
        let are_writes = one.operation == Operation::Write && other.operation == Operation::Write;
        are_writes && self.ordered.is_some_and(|ordered| ordered.share(one.lba, other.lba))
    }

    /// Returns the number of waiting commands, in the drive and at the host together.
    pub fn len(&self) -> usize {
        self.in_drive_len() + self.at_host.len()
    }

    /// Returns whether no command waits.
    pub fn is_empty(&self) -> bool {
        self.oldest == NONE
    }

    /// Adds a command at the end of the queue. It enters the drive if the drive holds fewer commands than its depth;
    /// otherwise it waits at the host until a command is taken out.
    pub fn push(&mut self, waiting: Waiting) {
        self.company.add(&waiting.command);
        self.flushes += usize::from(waiting.command.operation == Operation::Flush);
        if self.in_drive_len() < self.drive_depth {
            self.enter_drive(waiting);
        } else {
            self.at_host.push_back(waiting);
        }
    }

    /// Moves a command, which is younger than all in the drive, into the drive.
    #[inline]
    fn enter_drive(&mut self, waiting: Waiting) {
        let links = Links { before: self.youngest, after: NONE, entry_order: self.came };
        self.came += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = waiting;
                self.links[slot as usize] = links;
                self.lbas[slot as usize] = waiting.command.lba.0;
                slot
            }
            None => {
                self.slots.push(waiting);
                self.links.push(links);
                self.lbas.push(waiting.command.lba.0);
                (self.slots.len() - 1) as u32
            }
        };
        match self.youngest {
            NONE => self.oldest = slot,
            before => self.links[before as usize].after = slot,
        }
        self.youngest = slot;
        if let Some(targets) = &mut self.targets {
            targets.add(slot, &waiting);
        }
    }

    /// Returns the slot of the command that entered the queue first, or `None` if the queue is empty.
    pub fn oldest(&self) -> Option<Slot> {
        (self.oldest != NONE).then_some(Slot(self.oldest))
    }

    /// Returns an iterator over all commands, in the drive and at the host, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.in_drive().map(|slot| self.get(slot)).chain(&self.at_host)
    }

    /// Returns an iterator over the slots of the commands in the drive, oldest first.
    pub fn in_drive(&self) -> impl Iterator<Item = Slot> {
        self.before(Slot(NONE))
    }

    /// Returns an iterator over the slots of the commands that entered the drive before the one in `slot`, oldest
    /// first.
    pub fn before(&self, slot: Slot) -> impl Iterator<Item = Slot> {
        let some = move |other: u32| (other != slot.0).then_some(Slot(other));
        std::iter::successors(some(self.oldest), move |earlier| some(self.links[earlier.0 as usize].after))
    }

    /// Returns the number of commands that the drive holds; further commands wait at the host.
    pub fn in_drive_len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the command in `slot`. The result is undefined if the command has been taken out of the queue.
    #[inline]
    pub fn get(&self, slot: Slot) -> &Waiting {
        &self.slots[slot.0 as usize]
    }

    /// Replaces the contents of `found` by the slots of the commands in the drive whose first sector lies in `sectors`
    /// (exclusive end), oldest first. If the drive holds as many commands as it can, its youngest command is left out.
    pub fn beginning_within(&self, sectors: &Range<Lba>, found: &mut Vec<Slot>) {
        found.clear();
        if !self.company.may_begin_within(sectors) {
            return;
        }
        let (start, length) = (sectors.start.0, sectors.end.0 - sectors.start.0);
        let is_within = |lba: u64| lba.wrapping_sub(start) < length;
        // Most often no command begins there. This loop finds that out without branches.
        if !self.lbas.iter().fold(false, |any, &lba| any | is_within(lba)) {
            return;
        }
        let late = if self.in_drive_len() < self.drive_depth { NONE } else { self.youngest };
        let slots = self.lbas.iter().zip(0..).filter(|&(&lba, slot)| is_within(lba) && slot != late);
        found.extend(slots.map(|(_, slot)| Slot(slot)));
        found.sort_unstable_by_key(|slot| self.links[slot.0 as usize].entry_order);
    }

    /// Removes and returns the command in `slot`, which must not have been taken out before. The oldest command that
    /// waits at the host then enters the drive.
    pub fn take(&mut self, slot: Slot) -> Waiting {
        let (waiting, Links { before, after, .. }) = (*self.get(slot), self.links[slot.0 as usize]);
        match before {
            NONE => self.oldest = after,
            before => self.links[before as usize].after = after,
        }
        match after {
            NONE => self.youngest = before,
            after => self.links[after as usize].before = before,
        }
        self.lbas[slot.0 as usize] = u64::MAX;
        self.free.push(slot.0);
        self.company.remove(&waiting.command);
        self.flushes -= usize::from(waiting.command.operation == Operation::Flush);
        if let Some(targets) = &mut self.targets {
            targets.remove(slot.0, &waiting);
        }
        if let Some(next) = self.at_host.pop_front() {
            self.enter_drive(next);
        }
        waiting
    }

    /// Returns the oldest command in the drive that must be served before the one in `slot`, or `slot` itself if there
    /// is none. A command waits for an earlier one that overlaps it, unless both read, and for an earlier flush. A
    /// flush waits for all commands before it. A write also waits for earlier writes with which it stays in order. If
    /// the queue keeps such an order, the search is repeated for the command found.
    pub fn hazard(&self, slot: Slot) -> Slot {
        let mut first = self.conflict(slot).unwrap_or(slot);
        while self.ordered.is_some() {
            match self.conflict(first) {
                Some(earlier) => first = earlier,
                None => break,
            }
        }
        first
    }

    /// Returns the oldest command that the one in `slot` conflicts with.
    fn conflict(&self, slot: Slot) -> Option<Slot> {
        let chosen = &self.get(slot).command;
        if self.flushes == 0 && self.ordered.is_none() && self.company.is_alone(chosen) {
            return None;
        }
        let conflicts = |command: &Command| {
            command.operation == Operation::Flush
                || chosen.operation == Operation::Flush
                || ((command.operation != Operation::Read || chosen.operation != Operation::Read)
                    && command.overlaps(chosen))
        };
        let mut earlier = self.before(slot).map(|slot| (slot, &self.get(slot).command));
        let found = match self.ordered {
            None => earlier.find(|(_, command)| conflicts(command)),
            Some(_) => earlier.find(|(_, command)| conflicts(command) || self.keeps_order(command, chosen)),
        };
        found.map(|(slot, _)| slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn queue(commands: &[Command]) -> Queue {
        let mut queue = Queue::new(32);
        for (sequence, &command) in commands.iter().enumerate() {
            queue.push(waiting(command, sequence as u64));
        }
        queue
    }

    fn waiting(command: Command, sequence: u64) -> Waiting {
        let (entry, cleaning_before) = (SimTime::ZERO, SimDuration::ZERO);
        Waiting { command, arrival: None, due: entry, entry, sequence, cleaning_before, target: None }
    }

    /// Returns for each command the number of the one that has to be served before it.
    fn hazards(queue: &Queue) -> Vec<u64> {
        queue.in_drive().map(|slot| queue.get(queue.hazard(slot)).sequence).collect()
    }

    #[test]
    fn reads_pass_reads_but_not_overlapping_writes() {
        let queue = queue(&[Command::read(0, 8), Command::write(8, 8), Command::read(4, 8), Command::read(0, 4)]);
        assert_eq!(hazards(&queue), [0, 1, 1, 3], "sectors 8 to 11 are being written");
    }

    #[test]
    fn what_a_hazard_waits_for_comes_first_where_order_is_kept() {
        // The read overlaps the second write, which must not pass the first write of its run.
        let mut queue = queue(&[Command::write(10, 2), Command::write(12, 2), Command::read(12, 4)]);
        queue.keep_order_in(Ordered { from: Lba(10), run: Sectors(10) });
        assert_eq!(hazards(&queue)[2], 0);
    }

    #[test]
    fn writes_of_one_run_keep_their_order() {
        let commands = [3, 15, 25, 12, 1].map(|lba| Command::write(lba, 1));
        let mut queue = queue(&commands);
        assert_eq!(hazards(&queue), [0, 1, 2, 3, 4]);
        queue.keep_order_in(Ordered { from: Lba(10), run: Sectors(10) });
        assert_eq!(hazards(&queue), [0, 1, 2, 1, 4]);
    }

    #[test]
    fn the_drive_sees_no_more_than_its_depth() {
        let mut queue = Queue::new(2);
        for waiting in self::queue(&[Command::read(0, 1), Command::read(1, 1), Command::read(2, 1)]).iter() {
            queue.push(*waiting);
        }
        assert_eq!((queue.len(), queue.in_drive_len(), queue.in_drive().count()), (3, 2, 2));
    }

    proptest! {
        /// Checks invariant 1, and that commands that begin within sectors are found in order of entry. Method:
        /// commands are added and removed, and compared with a plain list.
        #[test]
        fn is_a_list_of_which_the_drive_sees_the_oldest(
            depth in 1usize..9,
            changes in prop::collection::vec((0u64..12, 0usize..3, 0usize..16), 1..80),
        ) {
            let (mut queue, mut list) = (Queue::new(depth), Vec::new());
            for (number, (lba, takes, which)) in changes.into_iter().enumerate() {
                let waiting = waiting(Command::read(lba, 1), number as u64);
                queue.push(waiting);
                list.push(waiting);
                if takes == 0 {
                    let index = which % list.len().min(depth);
                    let slot = queue.in_drive().nth(index).expect("the drive has so many");
                    prop_assert_eq!(queue.take(slot).sequence, list.remove(index).sequence);
                }
                let numbers = |list: &[Waiting]| list.iter().map(|waiting| waiting.sequence).collect::<Vec<_>>();
                let of = |slots: &[Slot]| slots.iter().map(|&slot| queue.get(slot).sequence).collect::<Vec<_>>();
                prop_assert_eq!(numbers(&queue.iter().copied().collect::<Vec<_>>()), numbers(&list));
                let seen = &list[..list.len().min(depth)];
                let slots: Vec<Slot> = queue.in_drive().collect();
                prop_assert_eq!((of(&slots), queue.in_drive_len()), (numbers(seen), seen.len()));
                if let Some(&last) = slots.last() {
                    prop_assert_eq!(of(&queue.before(last).collect::<Vec<_>>()), numbers(&seen[..seen.len() - 1]));
                }
                let mut found = Vec::new();
                queue.beginning_within(&(Lba(3)..Lba(8)), &mut found);
                let in_time = seen.iter().take(depth - 1).filter(|waiting| (3..8).contains(&waiting.command.lba.0));
                prop_assert_eq!(of(&found), numbers(&in_time.copied().collect::<Vec<_>>()));
            }
        }
    }

    #[test]
    fn nothing_passes_a_flush() {
        let queue = queue(&[Command::read(0, 8), Command::flush(), Command::read(100, 8)]);
        assert_eq!(hazards(&queue), [0, 0, 1]);
    }
}
