//! Queue of a device: operations that wait until the device takes more, and the choice of the next one (Jin 2014
//! §II.D.2, request queue scheduling).
//!
//! Reads go before writes, because tasks wait for them. A write that has waited for the deadline goes before reads, in
//! turns of one write and one read. Reads keep their order of arrival, so a reader of a file gets its blocks in order.
//! Writes do too, with one exception: a write that begins where another ends is merged with that one into one
//! operation, and so goes before writes that arrived between the two. The writes of a zone still go at its write
//! pointer.
//!
//! ```text
//!   push ─► waiting ─► next: overdue write, unless one went just now │ oldest read │ oldest write, with those that follow it ─► device
//! ```
//!
//! Invariants:
//! 1. At most [`QueueLimits::depth`] operations are at the device.
//! 2. A read goes no earlier than an earlier write of any of its blocks, nor a write before such a read.
//! 3. Writes, flushes, finishes and reports keep their order, except that a write may be merged with an earlier one
//!    that it follows on the device. It then goes before writes that arrived in between, but never before one of the
//!    same blocks, nor before a flush, finish or report. Nothing overtakes a reset while the host's disk has space.
//! 4. While a read waits that may go, no two writes in a row go before it. Once the oldest write has waited for
//!    [`QueueLimits::deadline_ns`], at most one more read goes before it.
//! 5. Without space on the host's disk a read waits only for writes of its blocks and for resets of their zone.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::{BLOCK_BYTES, Kind, Operation};

/// Limits of the queue of a device: operations at the device, waiting time of writes, and size of merged writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueLimits {
    /// Largest number of operations at the device at a time; 0 counts as 1.
    pub depth: usize,
    /// Nanoseconds of waiting after which the oldest operation other than a read, usually a write, goes before reads.
    /// Between two such overdue operations, one waiting read goes.
    pub deadline_ns: u64,
    /// Largest size of a write that is merged from several, in blocks of 4 KiB; with 0 or 1 no writes are merged. A
    /// single write may be larger.
    pub gather_blocks: u64,
}

impl Default for QueueLimits {
    /// Returns 32 operations at a time, like the queue of a SATA drive, a deadline of half a second, and merged writes
    /// of up to 1 MiB.
    fn default() -> QueueLimits {
        QueueLimits { depth: 32, deadline_ns: 500_000_000, gather_blocks: 256 }
    }
}

impl QueueLimits {
    /// Limits with one operation at a time, a deadline of 0, so that each waiting write is overdue at once, and no
    /// merging.
    pub const SMALLEST: QueueLimits = QueueLimits { depth: 1, deadline_ns: 0, gather_blocks: 1 };
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    operation: Operation,
    since_ns: u64,
    /// Blocks that the operation reads, writes or resets.
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

    /// Returns whether this operation may go before `earlier`, which arrived before it.
    fn may_pass(&self, earlier: &Waiting) -> bool {
        let is_reset = |it: &Waiting| matches!(it.operation, Operation::Reset(_));
        !is_reset(self) && !is_reset(earlier) && self.is_read() != earlier.is_read() && !self.meets(earlier)
    }
}

/// Queue of the operations that were requested from a device and not answered yet.
#[derive(Debug)]
pub struct Queue {
    limits: QueueLimits,
    /// Blocks of a zone: no merged write crosses its end. `None` if writes are not merged.
    zone_blocks: Option<u64>,
    waiting: VecDeque<Waiting>,
    /// Operations at the device: by number, the numbers of the writes merged into each.
    at_device: BTreeMap<u64, Vec<u64>>,
    /// Whether the last operation was chosen because it was an overdue write.
    was_overdue: bool,
}

impl Queue {
    /// Returns an empty queue with the default limits for a device of `kind`. Only writes are ever merged, and a merged
    /// write never crosses the end of a zone. On a caveat disk nothing is merged.
    pub fn new(kind: &Kind) -> Queue {
        let zone_blocks = match *kind {
            Kind::Plain => Some(u64::MAX),
            Kind::Zoned { zone_blocks, .. } => Some(zone_blocks),
            // A write destroys blocks behind it, so writes are performed exactly as they were submitted.
            Kind::Caveat { .. } => None,
        };
        let (waiting, at_device) = (VecDeque::new(), BTreeMap::new());
        Queue { limits: QueueLimits::default(), zone_blocks, waiting, at_device, was_overdue: false }
    }

    /// Sets the limits of the queue: depth, deadline and size of merged writes. They also hold for operations that
    /// already wait.
    pub fn set_limits(&mut self, limits: QueueLimits) {
        self.limits = limits;
    }

    /// Adds an operation at the end of the queue. `number` identifies the operation and must be new; `now_ns` is the
    /// time in nanoseconds from which its deadline counts.
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

    /// Returns whether a write waits in the queue. Writes that are at the device already do not count.
    pub fn has_waiting_write(&self) -> bool {
        self.waiting.iter().any(Waiting::is_write)
    }

    /// Takes the next operation for the device from the waiting ones, and returns it with its number. The oldest read
    /// goes first, unless another operation is overdue at the time `now_ns`, or an operation before the read is a reset
    /// or touches its blocks. A write may contain later writes that continue where it ends. Returns `None` if the
    /// device has as many operations as allowed, or if no operation may go now.
    ///
    /// `has_space` says whether the host's disk has free space. Without space, writes wait, and so do the operations
    /// other than reads that arrived after them.
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

    /// Returns the position of the waiting operation that goes next.
    fn choose(&mut self, now_ns: u64, has_space: bool) -> Option<usize> {
        let read = if has_space { self.oldest(Waiting::is_read) } else { self.read_that_need_not_wait() };
        let other = self.oldest(|waiting| !waiting.is_read());
        let other = other.filter(|index| has_space || !self.waiting[*index].is_write());
        let (Some(read), Some(other)) = (read, other) else {
            // With at most one candidate there is no choice. While there is space, the oldest operation of all is
            // always a candidate.
            self.was_overdue = false;
            return read.or(other);
        };
        let waited_ns = now_ns.saturating_sub(self.waiting[other].since_ns);
        self.was_overdue = waited_ns >= self.limits.deadline_ns && !self.was_overdue;
        Some(if self.was_overdue { other } else { read })
    }

    /// Returns the position of the oldest operation that is of one kind, if it may go before all earlier operations.
    fn oldest(&self, is_meant: impl Fn(&Waiting) -> bool) -> Option<usize> {
        let index = self.waiting.iter().position(is_meant)?;
        let may_go = self.waiting.range(..index).all(|earlier| self.waiting[index].may_pass(earlier));
        may_go.then_some(index)
    }

    /// Returns the position of the oldest read whose blocks no earlier write or reset touches.
    fn read_that_need_not_wait(&self) -> Option<usize> {
        (0..self.waiting.len()).find(|index| {
            let read = &self.waiting[*index];
            read.is_read() && self.waiting.range(..*index).all(|earlier| earlier.is_read() || !read.meets(earlier))
        })
    }

    /// Returns the write of `bytes` at `block`, merged with waiting writes that continue where it ends, and the numbers
    /// of those writes. The write was taken from position `index`.
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

    /// Removes operation `number`, which the device has answered. Returns the numbers of the other writes that were
    /// merged into it: they are answered too.
    ///
    /// # Panics
    /// Operation `number` is not at the device.
    pub fn answered(&mut self, number: u64) -> Vec<u64> {
        self.at_device.remove(&number).expect("the device answers each operation once")
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

    /// Returns the order in which all operations go. Each is answered before the next goes, and takes a millisecond.
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
        // The first read waits for the write, and the reads behind it for the first; the last write waits for the read.
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
        assert_eq!(begun, [0, 1, 4], "the operations before the write, and the read of another block");
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
