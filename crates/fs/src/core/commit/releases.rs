//! Blocks that wait to be free, until the record that frees them is durable, and every read that began before that
//! record has ended (invariant 3 of the core).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};

use crate::block_run::BlockRun;

struct Release {
    record: u64,
    reads_before: u64,
    runs: Vec<BlockRun>,
}

/// Queue of blocks to be freed.
#[derive(Default)]
pub(crate) struct Releases {
    waiting: RefCell<VecDeque<Release>>,
    reads_begun: Cell<u64>,
    reading: RefCell<BTreeSet<u64>>,
}

impl Releases {
    /// Registers a read, and returns its number for [`Releases::end_read`].
    pub(crate) fn begin_read(&self) -> u64 {
        let read = self.reads_begun.get() + 1;
        self.reads_begun.set(read);
        self.reading.borrow_mut().insert(read);
        read
    }

    /// Ends the read with number `read`.
    pub(crate) fn end_read(&self, read: u64) {
        self.reading.borrow_mut().remove(&read);
    }

    /// Queues `runs`, which record `record` frees.
    pub(crate) fn add(&self, record: u64, runs: Vec<BlockRun>) {
        if !runs.is_empty() {
            self.waiting.borrow_mut().push_back(Release { record, reads_before: self.reads_begun.get(), runs });
        }
    }

    /// Returns the record for which the blocks wait that were queued last; `None` if no blocks wait.
    pub(crate) fn last_record(&self) -> Option<u64> {
        self.waiting.borrow().back().map(|release| release.record)
    }

    /// Returns whether blocks wait that records up to `record` free.
    pub(crate) fn has_any_of(&self, record: u64) -> bool {
        self.waiting.borrow().front().is_some_and(|release| release.record <= record)
    }

    /// Returns the number of waiting blocks before block `end`. The blocks behind are those of the hot zone.
    pub(crate) fn blocks_below(&self, end: u64) -> u64 {
        let waiting = self.waiting.borrow();
        let runs = waiting.iter().flat_map(|release| &release.runs);
        runs.filter(|run| run.start < end).map(|run| run.blocks).sum()
    }

    /// Removes and returns the next runs that may be freed, when records up to `durable` are durable.
    pub(crate) fn next(&self, durable: u64) -> Option<Vec<BlockRun>> {
        let oldest_read = self.reading.borrow().first().copied().unwrap_or(u64::MAX);
        let mut waiting = self.waiting.borrow_mut();
        let first = waiting.front()?;
        if first.record > durable || first.reads_before >= oldest_read {
            return None;
        }
        waiting.pop_front().map(|release| release.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_wait_for_their_record_and_for_reads_before_them() {
        let run = |start| vec![BlockRun { start, blocks: 1 }];
        let releases = Releases::default();
        let early = releases.begin_read();
        releases.add(1, run(10));
        let late = releases.begin_read();
        releases.add(3, run(20));
        assert_eq!([0, 1, 3].map(|record| releases.has_any_of(record)), [false, true, true]);
        assert_eq!(releases.next(0), None, "its record is not durable");
        assert_eq!(releases.next(1), None, "an earlier read goes on");
        releases.end_read(early);
        assert_eq!(releases.next(1), Some(run(10)), "a later read does not matter");
        assert_eq!(releases.next(3), None);
        releases.end_read(late);
        assert_eq!(releases.next(2), None);
        assert_eq!(releases.next(3), Some(run(20)));
    }
}
