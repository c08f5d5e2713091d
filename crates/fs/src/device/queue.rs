//! The queue of a device: what waits until the device takes more, and who goes next (Jin 2014 §II.D.2, request queue scheduling).
//!
//! Reads go before writes, for somebody waits for them; a write that has waited for the deadline goes before reads, one
//! for each read. Reads among themselves keep the order in which they came, so a reader of a file gets its blocks in
//! order. Writes do too, with one exception: a write that begins where another ends goes with that one, as one
//! operation, and so before writes that came between the two. The writes of a zone still go at its pointer.
//!
//! ```text
//!   push ─► waiting ─► next: overdue write, unless one went just now │ oldest read │ oldest write, with those that follow it ─► device
//! ```
//!
//! Invariants:
//! 1. No more operations are at the device than [`QueueLimits::depth`].
//! 2. A read goes no earlier than a write of the same blocks that came before it, nor a write before such a read.
//! 3. Writes, flushes, finishes and reports keep their order among themselves, but that a write may go together with an
//!    earlier one that it follows on the device, and so before writes that came in between: never before one of the
//!    same blocks, nor before a flush, finish or report. A reset is passed by nothing, as long as the host's disk has space.
//! 4. While a read waits that may go, no two writes in a row go before it. The write that came first goes, once it has waited
//!    for [`QueueLimits::deadline_ns`], after one read at most.
//! 5. Without space on the host's disk a read waits for nothing but writes of its blocks and resets of their zone.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::{BLOCK_BYTES, Kind, Operation};

/// What a queue keeps to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueLimits {
    /// Operations that the device has at a time, at most; at least one.
    pub depth: usize,
    /// A write that has waited for so long goes before reads.
    pub deadline_ns: u64,
    /// Blocks of writes that go as one, at most.
    pub gather_blocks: u64,
}

impl Default for QueueLimits {
    /// As many as a SATA drive takes; half a second, less than anybody waits for a file in vain; a mebibyte.
    fn default() -> QueueLimits {
        QueueLimits { depth: 32, deadline_ns: 500_000_000, gather_blocks: 256 }
    }
}

impl QueueLimits {
    /// One at a time, each write overdue at once, none gathered.
    pub const SMALLEST: QueueLimits = QueueLimits { depth: 1, deadline_ns: 0, gather_blocks: 1 };
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    operation: Operation,
    since_ns: u64,
    /// Blocks that it reads, writes or resets.
    blocks: Range<u64>,
}

impl Waiting {
    fn is_read(&self) -> bool {
        matches!(self.operation, Operation::Read { .. })
    }

    fn is_write(&self) -> bool {
        matches!(self.operation, Operation::Write { .. })
    }

    fn meets(&self, other: &Waiting) -> bool {
        self.blocks.start < other.blocks.end && other.blocks.start < self.blocks.end
    }

    /// Whether it may go before `earlier`, which came before it.
    fn may_pass(&self, earlier: &Waiting) -> bool {
        let is_reset = |it: &Waiting| matches!(it.operation, Operation::Reset(_));
        !is_reset(self) && !is_reset(earlier) && self.is_read() != earlier.is_read() && !self.meets(earlier)
    }
}

/// The queue.
#[derive(Debug)]
pub struct Queue {
    limits: QueueLimits,
    /// Blocks of a zone, whose end no gathered write crosses; `None` where writes are not gathered.
    zone_blocks: Option<u64>,
    waiting: VecDeque<Waiting>,
    /// What the device has: by the number that it was given, the numbers of those that were gathered with it.
    at_device: BTreeMap<u64, Vec<u64>>,
    /// Whether an overdue write went last.
    was_overdue: bool,
}

impl Queue {
    /// The queue of a device of `kind`.
    pub fn new(kind: &Kind) -> Queue {
        let zone_blocks = match *kind {
            Kind::Plain => Some(u64::MAX),
            Kind::Zoned { zone_blocks, .. } => Some(zone_blocks),
            // A write destroys what lies behind it: what was asked for is done as it was asked for.
            Kind::Caveat { .. } => None,
        };
        let (waiting, at_device) = (VecDeque::new(), BTreeMap::new());
        Queue { limits: QueueLimits::default(), zone_blocks, waiting, at_device, was_overdue: false }
    }

    /// From now on it keeps to these.
    pub fn set_limits(&mut self, limits: QueueLimits) {
        self.limits = limits;
    }

    /// An operation comes.
    pub fn push(&mut self, now_ns: u64, number: u64, operation: Operation) {
        let blocks = self.blocks_of(&operation);
        self.waiting.push_back(Waiting { number, operation, since_ns: now_ns, blocks });
    }

    /// Returns the blocks that an operation reads, writes or resets.
    fn blocks_of(&self, operation: &Operation) -> Range<u64> {
        match *operation {
            Operation::Read { block, blocks } => block..block + blocks,
            Operation::Write { block, ref bytes } => block..block + (bytes.len() / BLOCK_BYTES) as u64,
            Operation::Reset(zone) => {
                let zone_blocks = self.zone_blocks.unwrap_or_default();
                let start = u64::from(zone).saturating_mul(zone_blocks);
                start..start.saturating_add(zone_blocks)
            }
            _ => 0..0,
        }
    }

    /// Returns whether a write waits.
    pub fn has_waiting_write(&self) -> bool {
        self.waiting.iter().any(Waiting::is_write)
    }

    /// Takes the next operation for the device, with its number. Without space on the host's disk writes wait, and so do the
    /// operations that keep their order among writes.
    pub fn next(&mut self, now_ns: u64, has_space: bool) -> Option<(u64, Operation)> {
        if self.at_device.len() >= self.limits.depth.max(1) {
            return None;
        }
        let index = self.choose(now_ns, has_space)?;
        let first = self.waiting.remove(index).expect("it was found there");
        let number = first.number;
        let (operation, gathered) = match first.operation {
            Operation::Write { block, bytes } => self.gather(index, block, bytes),
            other => (other, Vec::new()),
        };
        self.at_device.insert(number, gathered);
        Some((number, operation))
    }

    /// Which of those that wait goes next.
    fn choose(&mut self, now_ns: u64, has_space: bool) -> Option<usize> {
        let read = if has_space { self.oldest(Waiting::is_read) } else { self.read_that_need_not_wait() };
        let other = self.oldest(|waiting| !waiting.is_read());
        let other = other.filter(|index| has_space || !self.waiting[*index].is_write());
        let (Some(read), Some(other)) = (read, other) else {
            // What came first of all may always go.
            self.was_overdue = false;
            return read.or(other);
        };
        let waited_ns = now_ns.saturating_sub(self.waiting[other].since_ns);
        self.was_overdue = waited_ns >= self.limits.deadline_ns && !self.was_overdue;
        Some(if self.was_overdue { other } else { read })
    }

    /// The oldest of one kind, if it may go before all that came before it.
    fn oldest(&self, is_meant: impl Fn(&Waiting) -> bool) -> Option<usize> {
        let index = self.waiting.iter().position(is_meant)?;
        let may_go = self.waiting.range(..index).all(|earlier| self.waiting[index].may_pass(earlier));
        may_go.then_some(index)
    }

    /// The oldest read that no earlier write or reset concerns.
    fn read_that_need_not_wait(&self) -> Option<usize> {
        (0..self.waiting.len()).find(|index| {
            let read = &self.waiting[*index];
            read.is_read() && self.waiting.range(..*index).all(|earlier| earlier.is_read() || !read.meets(earlier))
        })
    }

    /// The write of `bytes` at `block`, which stood at `index`, together with waiting writes that go on where it ends;
    /// and their numbers.
    fn gather(&mut self, index: usize, block: u64, mut bytes: Vec<u8>) -> (Operation, Vec<u64>) {
        let mut gathered = Vec::new();
        let Some(zone_blocks) = self.zone_blocks else { return (Operation::Write { block, bytes }, gathered) };
        let mut at = index;
        while let Some(next) = self.waiting.get(at) {
            let end = block + (bytes.len() / BLOCK_BYTES) as u64;
            match &next.operation {
                Operation::Write { block: follows, bytes: more } if *follows == end => {
                    let blocks = end - block + (more.len() / BLOCK_BYTES) as u64;
                    let leaves_zone = block / zone_blocks != (block + blocks - 1) / zone_blocks;
                    let may_go = self.waiting.range(..at).all(|earlier| !next.meets(earlier));
                    if blocks > self.limits.gather_blocks || leaves_zone || !may_go {
                        break;
                    }
                    let next = self.waiting.remove(at).expect("it was found there");
                    let Operation::Write { bytes: more, .. } = next.operation else { unreachable!("it is a write") };
                    bytes.extend(more);
                    gathered.push(next.number);
                }
                Operation::Read { .. } | Operation::Write { .. } => at += 1,
                _ => break,
            }
        }
        (Operation::Write { block, bytes }, gathered)
    }

    /// The device has answered what it was given under `number`. Returns the other operations that this answers: writes
    /// that were gathered with it.
    pub fn answered(&mut self, number: u64) -> Vec<u64> {
        self.at_device.remove(&number).expect("the device answers once what it was given")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(block: u64, blocks: u64) -> Operation {
        Operation::Read { block, blocks }
    }

    fn write(block: u64, blocks: usize) -> Operation {
        Operation::Write { block, bytes: vec![block as u8; blocks * BLOCK_BYTES] }
    }

    fn queue(kind: &Kind, limits: QueueLimits, operations: Vec<Operation>) -> Queue {
        let mut queue = Queue::new(kind);
        queue.set_limits(limits);
        (0..).zip(operations).for_each(|(number, operation)| queue.push(0, number, operation));
        queue
    }

    /// The order in which all goes, each answered before the next, a millisecond each.
    fn order(mut queue: Queue) -> Vec<Vec<u64>> {
        let mut order = Vec::new();
        for now_ms in 0.. {
            let Some((number, _)) = queue.next(now_ms * 1_000_000, true) else { break };
            let gathered = queue.answered(number);
            order.push([vec![number], gathered].concat());
        }
        assert!(queue.waiting.is_empty(), "{queue:?}");
        order
    }

    const PATIENT: QueueLimits = QueueLimits { depth: 1, deadline_ns: u64::MAX, gather_blocks: 1 };

    #[test]
    fn reads_go_first_and_each_kind_in_order() {
        let operations = vec![write(0, 1), read(50, 1), write(9, 1), read(40, 1), read(60, 1)];
        assert_eq!(order(queue(&Kind::Plain, PATIENT, operations)), [[1], [3], [4], [0], [2]]);
    }

    #[test]
    fn overdue_writes_take_turns_with_reads() {
        let limits = QueueLimits { deadline_ns: 2_000_000, ..PATIENT };
        let operations = vec![write(0, 1), write(9, 1), read(1, 1), read(2, 1), read(3, 1), read(4, 1), read(5, 1)];
        assert_eq!(order(queue(&Kind::Plain, limits, operations)), [[2], [3], [0], [4], [1], [5], [6]]);
    }

    #[test]
    fn what_meets_keeps_its_order() {
        let operations = vec![write(10, 4), read(13, 1), read(20, 1), write(20, 1), read(30, 1)];
        // The first read must wait for the write, and those behind it for the first; the last write for the read.
        assert_eq!(order(queue(&Kind::Plain, PATIENT, operations)), [[0], [1], [2], [4], [3]]);
        let overdue = QueueLimits { deadline_ns: 0, ..PATIENT };
        assert_eq!(order(queue(&Kind::Plain, overdue, vec![read(20, 2), write(21, 1)])), [[0], [1]]);
    }

    #[test]
    fn a_flush_waits_for_writes_before_it_and_nothing_passes_a_reset() {
        let operations = vec![write(0, 1), Operation::Flush, write(1, 1), read(9, 1), Operation::Reset(3), read(8, 1)];
        let gathering = QueueLimits { gather_blocks: 9, ..PATIENT };
        assert_eq!(order(queue(&Kind::Plain, gathering, operations)), [[3], [0], [1], [2], [4], [5]]);
    }

    #[test]
    fn writes_that_follow_each_other_go_as_one() {
        let limits = QueueLimits { gather_blocks: 5, ..PATIENT };
        let operations = || vec![write(4, 2), write(90, 1), write(6, 2), write(8, 1), write(9, 1)];
        let mut gathering = queue(&Kind::Plain, limits, operations());
        let Some((0, Operation::Write { block: 4, bytes })) = gathering.next(0, true) else { panic!("{gathering:?}") };
        let blocks: Vec<u8> = bytes.chunks(BLOCK_BYTES).map(|block| block[0]).collect();
        assert_eq!(blocks, [4, 4, 6, 6, 8]);
        assert_eq!(gathering.answered(0), [2, 3]);
        let zoned = Kind::Zoned { zone_blocks: 8, zones: 20, conventional: 0, active_max: None };
        assert_eq!(order(queue(&zoned, limits, operations())), [vec![0, 2], vec![1], vec![3, 4]]);
        let caveat = Kind::Caveat { isolation: 4, no_overlap: 1 };
        assert_eq!(order(queue(&caveat, limits, operations())), [[0], [1], [2], [3], [4]]);
    }

    #[test]
    fn no_more_is_at_the_device_than_may() {
        let mut two =
            queue(&Kind::Plain, QueueLimits { depth: 2, ..PATIENT }, vec![read(0, 1), read(5, 1), read(9, 1)]);
        assert!(two.next(0, true).is_some() && two.next(0, true).is_some() && two.next(0, true).is_none());
        two.answered(0);
        assert!(two.next(0, true).is_some());
        let mut one = queue(&Kind::Plain, QueueLimits { depth: 0, ..PATIENT }, vec![read(0, 1)]);
        assert!(one.next(0, true).is_some(), "one at least");
    }

    #[test]
    fn without_space_writes_wait_and_reads_of_other_blocks_do_not() {
        let mut queue = Queue::new(&Kind::Plain);
        for (number, operation) in [read(0, 1), Operation::Flush, write(8, 1), read(8, 1), read(4, 1), Operation::Flush]
            .into_iter()
            .enumerate()
        {
            queue.push(0, number as u64, operation);
        }
        let next = |queue: &mut Queue, has_space| queue.next(0, has_space).map(|(number, _)| number);
        let mut begun: Vec<u64> = std::iter::from_fn(|| next(&mut queue, false)).collect();
        begun.sort_unstable();
        assert_eq!(begun, [0, 1, 4], "what came before the write, and the read of another block");
        assert!(queue.has_waiting_write());
        let rest: Vec<u64> = std::iter::from_fn(|| next(&mut queue, true)).collect();
        assert_eq!(rest, [2, 3, 5]);
        assert!(!queue.has_waiting_write());
        queue.push(0, 9, write(8, 1));
        queue.push(0, 10, read(4, 1));
        assert_eq!((next(&mut queue, false), next(&mut queue, false)), (Some(10), None));
    }

    #[test]
    fn without_space_a_reset_behind_a_write_holds_up_reads_of_its_zone_alone() {
        let mut queue = Queue::new(&Kind::Zoned { zone_blocks: 8, zones: 20, conventional: 0, active_max: None });
        let operations = [write(3, 1), Operation::Reset(2), read(15, 2), read(23, 1), read(24, 1), read(15, 1)];
        (0..).zip(operations).for_each(|(number, operation)| queue.push(0, number, operation));
        let begun: Vec<u64> = std::iter::from_fn(|| queue.next(0, false).map(|(number, _)| number)).collect();
        assert_eq!(begun, [4, 5]);
        let rest: Vec<u64> = std::iter::from_fn(|| queue.next(0, true).map(|(number, _)| number)).collect();
        assert_eq!(rest, [0, 1, 2, 3]);
    }
}
