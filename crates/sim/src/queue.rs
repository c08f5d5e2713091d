//! The host queue: commands that have entered and wait to be served, in order of entry.
//!
//! Invariants:
//! 1. Order is order of entry; removal keeps it. Of those that wait the drive has the oldest, as many as it takes at once.
//! 2. Where commands begin is kept beside those that the drive has, and so is what a search by positioning time needs of them.
//! 3. A command is never served before an earlier one that overlaps it, unless both read (the scheduler's choice is
//!    corrected by [`Queue::hazard`]).
//! 4. Nor is a write served before an earlier one that it has to be kept in order with ([`Ordered`]).

use std::collections::VecDeque;
use std::ops::Range;

use imbrex_disk::{
    Actuator, Command, Direction, Disk, Lba, Operation, Sectors, SimDuration, SimTime, Soonest, TrackPiece,
};

use crate::company::Company;

/// A command in the queue.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The command.
    pub command: Command,
    /// The time that the workload gave it; none where the workload has no times of its own.
    pub arrival: Option<SimTime>,
    /// When it entered.
    pub entry: SimTime,
    /// Its number in the workload.
    pub sequence: u64,
    /// Simulated cleaning time that had passed when it entered: what passes from here on stalls it.
    pub cleaning_before: SimDuration,
    /// Where its first sectors lie, as far as they lie on one track, for schedulers that ask; stale if the layer moves them
    /// meanwhile, which costs only a worse choice.
    pub target: Option<TrackPiece>,
}

/// Where writes keep their order of arrival though they do not overlap: runs of equal length, such as the zones of a drive
/// with write pointers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ordered {
    /// The first sector of the first run; writes before it may pass each other.
    pub from: Lba,
    /// Sectors of a run, a multiple of which lie before `from`.
    pub run: Sectors,
}

impl Ordered {
    /// Whether both sectors lie in the same run.
    pub fn share(&self, one: Lba, other: Lba) -> bool {
        one >= self.from && other >= self.from && one.0 / self.run.0 == other.0 / self.run.0
    }

    /// The run of `lba`, if it lies in one.
    pub fn run_of(&self, lba: Lba) -> Option<Range<Lba>> {
        let start = lba.0 / self.run.0 * self.run.0;
        (lba >= self.from).then(|| Lba(start)..Lba(start.saturating_add(self.run.0)))
    }
}

/// Where a command that the drive has is kept, from its entry into the drive until it is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(u32);

/// No slot.
const NONE: u32 = u32::MAX;

/// The neighbours of a slot in order of entry.
#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    after: u32,
    /// Those that entered before have a lower number.
    came: u64,
}

/// The queue: the oldest of it lie in the drive, where its scheduler sees them; the rest wait at the host.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Those that the drive has, in any order; what stands in a free slot means nothing.
    slots: Vec<Waiting>,
    links: Vec<Links>,
    /// Where the command of each slot begins, in an array of its own: a search reads little memory. Nowhere, of a free slot.
    lbas: Vec<u64>,
    free: Vec<u32>,
    oldest: u32,
    youngest: u32,
    came: u64,
    /// Those that the drive has no room for, oldest first.
    at_host: VecDeque<Waiting>,
    drive_depth: usize,
    ordered: Option<Ordered>,
    company: Company,
    /// Commands that wait for all before them, and are waited for.
    flushes: usize,
    targets: Option<Targets>,
}

/// Where the commands that the drive has lie.
#[derive(Clone, Debug)]
struct Targets {
    soonest: Soonest,
    /// Those that the head need not move for, as far as is known: each may be served at once.
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
    /// An empty queue of a drive that takes `drive_depth` commands at once.
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
            company: Company::new(),
            flushes: 0,
            targets: None,
        }
    }

    /// Keeps writes in order there from now on.
    pub fn keep_order_in(&mut self, ordered: Ordered) {
        self.ordered = Some(ordered);
    }

    /// From now on knows which command the head can begin soonest ([`Queue::soonest`]); the queue is empty.
    pub fn keep_targets(&mut self, disk: &Disk) {
        assert!(self.is_empty(), "{} commands came before their targets were kept", self.len());
        self.targets = Soonest::new(disk).map(|soonest| Targets { soonest, elsewhere: 0 });
    }

    /// The command that the head of `actuator` can begin soonest at `now`, where that is kept and every command of the drive's
    /// has a place on its platters.
    #[inline]
    pub fn soonest(&self, actuator: &Actuator, now: SimTime) -> Option<Slot> {
        let targets = self.targets.as_ref().filter(|targets| targets.elsewhere == 0)?;
        targets.soonest.find(actuator, now).map(Slot)
    }

    /// Where writes are kept in order, if anywhere.
    pub fn ordered(&self) -> Option<Ordered> {
        self.ordered
    }

    /// Whether both are writes that have to stay in the order in which they came.
    pub fn keeps_order(&self, one: &Command, other: &Command) -> bool {
        let are_writes = one.operation == Operation::Write && other.operation == Operation::Write;
        are_writes && self.ordered.is_some_and(|ordered| ordered.share(one.lba, other.lba))
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.in_drive_len() + self.at_host.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.oldest == NONE
    }

    /// Adds one at the end.
    pub fn push(&mut self, waiting: Waiting) {
        self.company.add(&waiting.command);
        self.flushes += usize::from(waiting.command.operation == Operation::Flush);
        if self.in_drive_len() < self.drive_depth {
            self.enter_drive(waiting);
        } else {
            self.at_host.push_back(waiting);
        }
    }

    /// The drive takes a command that is younger than all it has.
    #[inline]
    fn enter_drive(&mut self, waiting: Waiting) {
        let links = Links { before: self.youngest, after: NONE, came: self.came };
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

    /// The one that has waited longest.
    pub fn oldest(&self) -> Option<Slot> {
        (self.oldest != NONE).then_some(Slot(self.oldest))
    }

    /// All, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.in_drive().map(|slot| self.get(slot)).chain(&self.at_host)
    }

    /// Those that the drive has, oldest first.
    pub fn in_drive(&self) -> impl Iterator<Item = Slot> {
        self.before(Slot(NONE))
    }

    /// Those that entered the drive before the one in `slot`, oldest first.
    pub fn before(&self, slot: Slot) -> impl Iterator<Item = Slot> {
        let some = move |other: u32| (other != slot.0).then_some(Slot(other));
        std::iter::successors(some(self.oldest), move |earlier| some(self.links[earlier.0 as usize].after))
    }

    /// How many the drive has.
    pub fn in_drive_len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The one in `slot`.
    #[inline]
    pub fn get(&self, slot: Slot) -> &Waiting {
        &self.slots[slot.0 as usize]
    }

    /// Puts into `found` those of the drive's that begin within `sectors`, oldest first; the youngest only if the drive has
    /// room left.
    pub fn beginning_within(&self, sectors: &Range<Lba>, found: &mut Vec<Slot>) {
        found.clear();
        if !self.company.may_begin_within(sectors) {
            return;
        }
        let (start, length) = (sectors.start.0, sectors.end.0 - sectors.start.0);
        let is_within = |lba: u64| lba.wrapping_sub(start) < length;
        // Most often none is, which takes no branches to find out.
        if !self.lbas.iter().fold(false, |any, &lba| any | is_within(lba)) {
            return;
        }
        let late = if self.in_drive_len() < self.drive_depth { NONE } else { self.youngest };
        let slots = self.lbas.iter().zip(0..).filter(|&(&lba, slot)| is_within(lba) && slot != late);
        found.extend(slots.map(|(_, slot)| Slot(slot)));
        found.sort_unstable_by_key(|slot| self.links[slot.0 as usize].came);
    }

    /// Takes out the one in `slot`.
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

    /// The oldest command that must be served before the one in `slot`: an overlapping one where either is not a read, or
    /// a flush; that one itself if there is none. A flush waits for everything before it. Where writes are kept in order, what
    /// that command waits for in turn.
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

    /// The oldest command that the one in `slot` conflicts with.
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
        Waiting { command, arrival: None, entry, sequence, cleaning_before, target: None }
    }

    /// For each command the number of the one that has to be served before it.
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
        // The read overlaps the second write, which must not pass the first of its run.
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
        /// Goal: invariant 1, and what begins within sectors is found in order of entry. Method: commands come and go, against
        /// a plain list.
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
