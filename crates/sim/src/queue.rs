//! The host queue: commands that have entered and wait to be served, in order of entry.
//!
//! Invariants:
//! 1. Order is order of entry; removal keeps it.
//! 2. The list of where commands begin is kept with them, and so is what a search by positioning time needs of those that the
//!    drive has.
//! 3. A command is never served before an earlier one that overlaps it, unless both read (the scheduler's choice is
//!    corrected by [`Queue::hazard`]).
//! 4. Nor is a write served before an earlier one that it has to be kept in order with ([`Ordered`]).

use std::collections::VecDeque;
use std::ops::Range;

use imbrex_disk::{Actuator, Command, Direction, Disk, Lba, Operation, Place, Sectors, SimDuration, SimTime, Soonest};

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
    /// Where its first sector lies, for schedulers that ask; stale if the layer moves it meanwhile, which costs only
    /// a worse choice.
    pub target: Option<Place>,
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

/// The queue: the oldest of it lie in the drive, where its scheduler sees them; the rest wait at the host.
#[derive(Clone, Debug)]
pub struct Queue {
    /// In any order: a command stays in its slot until it is taken.
    slots: Vec<Waiting>,
    free: Vec<u32>,
    /// The slots of those that wait, oldest first.
    order: VecDeque<u32>,
    /// Where each command begins, in an array of its own: a search reads little memory.
    lbas: VecDeque<u64>,
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
            (Some(place), Some(direction)) => self.soonest.add(slot, place, direction),
            _ => self.elsewhere += 1,
        }
    }

    fn remove(&mut self, slot: u32, waiting: &Waiting) {
        match (&waiting.target, waiting.direction()) {
            (Some(place), Some(_)) => self.soonest.remove(slot, place),
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
            free: Vec::new(),
            order: VecDeque::new(),
            lbas: VecDeque::new(),
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

    /// The number of the command that the head of `actuator` can begin soonest at `now`, where that is kept and every command
    /// of the drive's has a place on its platters.
    #[inline]
    pub fn soonest(&self, actuator: &Actuator, now: SimTime) -> Option<usize> {
        let targets = self.targets.as_ref().filter(|targets| targets.elsewhere == 0)?;
        let slot = targets.soonest.find(actuator, now)?;
        self.order.iter().position(|&other| other == slot)
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
        self.order.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Adds one at the end.
    pub fn push(&mut self, waiting: Waiting) {
        self.lbas.push_back(waiting.command.lba.0);
        self.company.add(&waiting.command);
        self.flushes += usize::from(waiting.command.operation == Operation::Flush);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = waiting;
                slot
            }
            None => {
                self.slots.push(waiting);
                (self.slots.len() - 1) as u32
            }
        };
        self.order.push_back(slot);
        if self.order.len() <= self.drive_depth {
            self.enter_drive(self.order.len() - 1);
        }
    }

    /// Number `index` is one of those that the drive has.
    fn enter_drive(&mut self, index: usize) {
        if let Some(targets) = &mut self.targets {
            let slot = self.order[index];
            targets.add(slot, &self.slots[slot as usize]);
        }
    }

    /// The one that has waited longest.
    pub fn oldest(&self) -> Option<&Waiting> {
        self.order.front().map(|&slot| &self.slots[slot as usize])
    }

    /// All, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.order.iter().map(|&slot| &self.slots[slot as usize])
    }

    /// Those that the drive has, oldest first.
    pub fn in_drive(&self) -> impl Iterator<Item = &Waiting> {
        self.iter().take(self.drive_depth)
    }

    /// How many the drive has.
    pub fn in_drive_len(&self) -> usize {
        self.order.len().min(self.drive_depth)
    }

    /// Number `index` from the oldest.
    pub fn get(&self, index: usize) -> &Waiting {
        &self.slots[self.order[index] as usize]
    }

    /// The first of numbers `range` that begins within `sectors`.
    pub fn first_within(&self, range: Range<usize>, sectors: &Range<Lba>) -> Option<usize> {
        let (start, length) = (sectors.start.0, sectors.end.0 - sectors.start.0);
        let is_within = |lba: u64| lba.wrapping_sub(start) < length;
        // Most often none is, which takes no branches to find out.
        let (front, back) = self.lbas.as_slices();
        let split = range.end.min(front.len());
        let parts =
            [&front[range.start.min(split)..split], &back[range.start.saturating_sub(front.len())..range.end - split]];
        if !parts.iter().any(|part| part.iter().fold(false, |any, &lba| any | is_within(lba))) {
            return None;
        }
        let found = self.lbas.range(range.clone()).position(|&lba| is_within(lba));
        found.map(|offset| range.start + offset)
    }

    /// Takes number `index` out.
    pub fn take(&mut self, index: usize) -> Waiting {
        self.lbas.remove(index);
        let slot = self.order.remove(index).expect("an index comes from this queue");
        let waiting = self.slots[slot as usize];
        self.free.push(slot);
        self.company.remove(&waiting.command);
        self.flushes -= usize::from(waiting.command.operation == Operation::Flush);
        if index < self.drive_depth {
            if let Some(targets) = &mut self.targets {
                targets.remove(slot, &waiting);
            }
            if self.order.len() >= self.drive_depth {
                self.enter_drive(self.drive_depth - 1);
            }
        }
        waiting
    }

    /// The oldest command that must be served before number `index`: an overlapping one where either is not a read, or
    /// a flush; `index` itself if there is none. A flush waits for everything before it. Where writes are kept in order, what
    /// that command waits for in turn.
    pub fn hazard(&self, index: usize) -> usize {
        let mut first = self.conflict(index).unwrap_or(index);
        while self.ordered.is_some() {
            match self.conflict(first) {
                Some(earlier) => first = earlier,
                None => break,
            }
        }
        first
    }

    /// The oldest command that number `index` conflicts with.
    fn conflict(&self, index: usize) -> Option<usize> {
        let chosen = &self.get(index).command;
        if self.flushes == 0 && self.ordered.is_none() && self.company.is_alone(chosen) {
            return None;
        }
        let conflicts = |earlier: &Waiting| {
            let command = &earlier.command;
            command.operation == Operation::Flush
                || chosen.operation == Operation::Flush
                || ((command.operation != Operation::Read || chosen.operation != Operation::Read)
                    && command.overlaps(chosen))
        };
        let mut earlier = self.iter().take(index);
        match self.ordered {
            None => earlier.position(conflicts),
            Some(_) => earlier.position(|earlier| conflicts(earlier) || self.keeps_order(&earlier.command, chosen)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(commands: &[Command]) -> Queue {
        let mut queue = Queue::new(32);
        for (sequence, &command) in commands.iter().enumerate() {
            queue.push(Waiting {
                command,
                arrival: None,
                entry: SimTime::ZERO,
                sequence: sequence as u64,
                cleaning_before: SimDuration::ZERO,
                target: None,
            });
        }
        queue
    }

    #[test]
    fn reads_pass_reads_but_not_overlapping_writes() {
        let queue = queue(&[Command::read(0, 8), Command::write(8, 8), Command::read(4, 8), Command::read(0, 4)]);
        assert_eq!(queue.hazard(3), 3);
        assert_eq!(queue.hazard(2), 1, "sectors 8 to 11 are being written");
        assert_eq!(queue.hazard(1), 1);
    }

    #[test]
    fn what_a_hazard_waits_for_comes_first_where_order_is_kept() {
        // The read overlaps the second write, which must not pass the first of its run.
        let mut queue = queue(&[Command::write(10, 2), Command::write(12, 2), Command::read(12, 4)]);
        queue.keep_order_in(Ordered { from: Lba(10), run: Sectors(10) });
        assert_eq!(queue.hazard(2), 0);
    }

    #[test]
    fn writes_of_one_run_keep_their_order() {
        let commands = [3, 15, 25, 12, 1].map(|lba| Command::write(lba, 1));
        let mut queue = queue(&commands);
        assert_eq!((0..5).map(|index| queue.hazard(index)).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        queue.keep_order_in(Ordered { from: Lba(10), run: Sectors(10) });
        assert_eq!((0..5).map(|index| queue.hazard(index)).collect::<Vec<_>>(), [0, 1, 2, 1, 4]);
    }

    #[test]
    fn the_drive_sees_no_more_than_its_depth() {
        let mut queue = Queue::new(2);
        for waiting in self::queue(&[Command::read(0, 1), Command::read(1, 1), Command::read(2, 1)]).iter() {
            queue.push(*waiting);
        }
        assert_eq!((queue.len(), queue.in_drive_len(), queue.in_drive().count()), (3, 2, 2));
    }

    /// Goal: the search finds what a walk finds. Method: every part of a queue, whose buffer wraps, and every range.
    #[test]
    fn what_lies_within_is_found_in_order() {
        let commands: Vec<Command> = [9, 7, 5, 3, 8, 1, 7].map(|lba| Command::read(lba, 1)).to_vec();
        let mut queue = queue(&commands);
        for _ in 0..20 {
            let waiting = queue.take(0);
            queue.push(waiting);
            let lbas: Vec<u64> = queue.iter().map(|waiting| waiting.command.lba.0).collect();
            for (first, last) in (0..=7).flat_map(|first| (first..=7).map(move |last| (first, last))) {
                for (start, end) in (0..10).flat_map(|start| (start..11).map(move |end| (start, end))) {
                    let walked = (first..last).find(|&index| (start..end).contains(&lbas[index]));
                    assert_eq!(queue.first_within(first..last, &(Lba(start)..Lba(end))), walked);
                }
            }
        }
        queue.take(3);
        assert_eq!(queue.lbas.len(), queue.len());
    }

    #[test]
    fn nothing_passes_a_flush() {
        let queue = queue(&[Command::read(0, 8), Command::flush(), Command::read(100, 8)]);
        assert_eq!(queue.hazard(2), 1);
        assert_eq!(queue.hazard(1), 0);
    }
}
