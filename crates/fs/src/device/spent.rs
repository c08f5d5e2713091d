//! Device time and blocks used so far, by cause.
//!
//! A device is busy from the moment it is given an operation until it has answered all its operations. The time from
//! one answer to the next, or from the start of a busy period to its first answer, is charged to the operation answered
//! then. A disk serves one operation at a time, so this is the time that the operation took. The time of a merged write
//! is divided among the causes of its parts by their blocks. The time of a flush is divided by the blocks written since
//! the flush before: a drive with a volatile cache answers writes at once, and performs them during the flush.
//!
//! Invariants:
//! 1. The times of all causes sum to the time in which the device was busy.
//! 2. Work of a drive after its last answer is not charged to any cause: no task waits for it.

use std::collections::BTreeMap;

use super::{BLOCK_BYTES, Operation};
use crate::executor::Cause;

const CAUSES: usize = Cause::ALL.len();

/// Device time used, and blocks requested to read and write, for one cause of operations or for all causes together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Spent {
    /// Time in nanoseconds for which the device was busy with operations of the cause. Each moment counts for one
    /// operation only, the one that is answered next. A merged write, and a flush, are divided among the causes.
    pub busy_ns: u64,
    /// Number of blocks of 4 KiB that tasks requested to read for the cause, failed reads included.
    pub blocks_read: u64,
    /// Number of blocks of 4 KiB that tasks requested to write for the cause, failed writes included.
    pub blocks_written: u64,
}

impl Spent {
    fn and(self, other: Spent) -> Spent {
        Spent {
            busy_ns: self.busy_ns + other.busy_ns,
            blocks_read: self.blocks_read + other.blocks_read,
            blocks_written: self.blocks_written + other.blocks_written,
        }
    }

    fn since(self, before: Spent) -> Spent {
        Spent {
            busy_ns: self.busy_ns - before.busy_ns,
            blocks_read: self.blocks_read - before.blocks_read,
            blocks_written: self.blocks_written - before.blocks_written,
        }
    }
}

/// Device time used, and blocks requested to read and write, for each [`Cause`] of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ByCause([Spent; CAUSES]);

impl ByCause {
    /// Returns the device time and blocks used for `cause`.
    pub fn of(&self, cause: Cause) -> Spent {
        self.0[cause as usize]
    }

    /// Returns the device time and blocks used for all causes together.
    pub fn all(&self) -> Spent {
        self.0.iter().fold(Spent::default(), |sum, one| sum.and(*one))
    }

    /// Returns the sum of both device times and numbers of blocks, cause by cause.
    pub fn and(&self, other: &ByCause) -> ByCause {
        ByCause(std::array::from_fn(|cause| self.0[cause].and(other.0[cause])))
    }

    /// Returns the device time and blocks used since the earlier state `before` of the same device: the difference,
    /// cause by cause.
    pub fn since(&self, before: &ByCause) -> ByCause {
        ByCause(std::array::from_fn(|cause| self.0[cause].since(before.0[cause])))
    }
}

/// Shares in the time of an operation, by cause.
type Shares = [u64; CAUSES];

/// Account of a device's time and blocks.
#[derive(Default, Debug)]
pub(super) struct Ledger {
    spent: ByCause,
    /// Shares in the time of each operation that was submitted and not answered, by number.
    asked: BTreeMap<u64, Shares>,
    /// Blocks written since the last flush was submitted, by cause.
    unflushed: Shares,
    /// Number of operations at the device.
    under_way: usize,
    /// Time up to which the device's time is charged; unused while no operation is at the device.
    charged_ns: u64,
}

impl Ledger {
    /// Returns the use so far.
    pub(super) fn spent(&self) -> ByCause {
        self.spent
    }

    /// Records that operation `number` was submitted for `cause`.
    pub(super) fn ask(&mut self, number: u64, operation: &Operation, cause: Cause) {
        let mut shares = Shares::default();
        shares[cause as usize] = 1;
        match operation {
            Operation::Read { blocks, .. } => {
                shares[cause as usize] = *blocks;
                self.spent.0[cause as usize].blocks_read += blocks;
            }
            Operation::Write { bytes, .. } => {
                let blocks = (bytes.len() / BLOCK_BYTES) as u64;
                shares[cause as usize] = blocks;
                self.spent.0[cause as usize].blocks_written += blocks;
                self.unflushed[cause as usize] += blocks;
            }
            Operation::Flush => {
                let written = std::mem::take(&mut self.unflushed);
                if written.iter().any(|blocks| *blocks > 0) {
                    shares = written;
                }
            }
            Operation::Reset(_) | Operation::Finish(_) | Operation::Report => {}
        }
        self.asked.insert(number, shares);
    }

    /// Records that the device is given an operation.
    pub(super) fn begin(&mut self, now_ns: u64) {
        if self.under_way == 0 {
            self.charged_ns = now_ns;
        }
        self.under_way += 1;
    }

    /// Charges the time of an answered operation. `numbers` are that operation and the writes merged into it.
    pub(super) fn answer(&mut self, now_ns: u64, numbers: impl Iterator<Item = u64>) {
        assert!(self.under_way > 0, "the device answered an operation while none was in flight");
        self.under_way -= 1;
        let mut shares = Shares::default();
        for number in numbers {
            let own = self.asked.remove(&number).expect("an answered operation was in flight");
            shares.iter_mut().zip(own).for_each(|(sum, one)| *sum += one);
        }
        let time_ns = now_ns - self.charged_ns;
        self.charged_ns = now_ns;
        let (all, mut before, mut charged_ns) = (u128::from(shares.iter().sum::<u64>()), 0, 0);
        for (spent, share) in self.spent.0.iter_mut().zip(shares) {
            before += u128::from(share);
            // The time is cut at cumulative shares, so that rounding loses no nanosecond.
            let end_ns = (u128::from(time_ns) * before / all) as u64;
            spent.busy_ns += end_ns - charged_ns;
            charged_ns = end_ns;
        }
        debug_assert_eq!(charged_ns, time_ns, "invariant 1");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(blocks: usize) -> Operation {
        Operation::Write { block: 0, bytes: vec![0; blocks * BLOCK_BYTES] }
    }

    fn busy(ledger: &Ledger) -> [u64; CAUSES] {
        Cause::ALL.map(|cause| ledger.spent().of(cause).busy_ns)
    }

    #[test]
    fn time_is_charged_to_what_is_answered_and_none_while_nothing_is_under_way() {
        let mut ledger = Ledger::default();
        ledger.ask(0, &write(2), Cause::Data);
        ledger.begin(100);
        ledger.ask(1, &Operation::Read { block: 9, blocks: 4 }, Cause::Cleaning);
        ledger.begin(130);
        ledger.answer(150, [0].into_iter());
        ledger.answer(190, [1].into_iter());
        ledger.ask(2, &write(1), Cause::Metadata);
        ledger.begin(1000);
        ledger.answer(1007, [2].into_iter());
        assert_eq!(busy(&ledger), [50, 0, 7, 0, 40, 0]);
        let cleaning = Spent { busy_ns: 40, blocks_read: 4, blocks_written: 0 };
        assert_eq!(ledger.spent().of(Cause::Cleaning), cleaning);
        assert_eq!(ledger.spent().all(), Spent { busy_ns: 97, blocks_read: 4, blocks_written: 3 });
    }

    #[test]
    fn writes_that_went_as_one_share_its_time_by_blocks_to_the_last_nanosecond() {
        let mut ledger = Ledger::default();
        for (number, blocks, cause) in [(0, 3, Cause::Data), (1, 1, Cause::Parity), (2, 3, Cause::Cleaning)] {
            ledger.ask(number, &write(blocks), cause);
        }
        ledger.begin(0);
        ledger.answer(100, [0, 1, 2].into_iter());
        assert_eq!(busy(&ledger), [42, 15, 0, 0, 43, 0]);
    }

    #[test]
    fn a_flush_is_for_what_was_written_since_the_one_before() {
        let mut ledger = Ledger::default();
        ledger.ask(0, &write(1), Cause::Metadata);
        ledger.ask(1, &write(3), Cause::Cleaning);
        ledger.ask(2, &Operation::Flush, Cause::Data);
        ledger.ask(3, &Operation::Flush, Cause::Repair);
        (0..4).for_each(|_| ledger.begin(0));
        ledger.answer(0, [0].into_iter());
        ledger.answer(0, [1].into_iter());
        ledger.answer(80, [2].into_iter());
        ledger.answer(85, [3].into_iter());
        assert_eq!(busy(&ledger), [0, 0, 20, 0, 60, 5], "nothing was written between the two flushes");
    }
}
