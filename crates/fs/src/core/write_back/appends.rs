//! A file is written in appends. Each append fills one allocation of the store. The next append is submitted
//! while earlier ones are in flight. Otherwise the disk would turn on between two appends, and without a write cache
//! the next one would wait a whole rotation.
//!
//! ```text
//!   left ─► allocated ─► at the device ─► over, in order ─► pinned, until the file has it
//!             └── behind the append before, where the store lets it; else when all before are over
//! ```
//!
//! Invariants:
//! 1. Appends of a file reach the device in the order of their blocks. An append is submitted only after all writes of
//!    the append before it.
//! 2. At most [`crate::core::Bounds::appends`] appends of a file are in flight. If that is 1, each append ends before the
//!    next one begins.
//! 3. A file with an append in flight does not wait for room that other files hold or that cleaning must make.
//! 4. If an append fails, the allocations of all appends in flight are given up, even of those that succeed. The file
//!    is written elsewhere.

use std::collections::VecDeque;
use std::rc::Rc;

use super::WriteBack;
use super::WrittenPiece;
use super::pieces::{place, take_first};
use super::staged::Open;
use crate::block_run::BlockRun;
use crate::core::{CoreParts, Sabotage};
use crate::error::FsError;
use crate::executor::BoundedOrdered;
use crate::format::change::{Extent, Inode};
use crate::format::record::FileRecord;
use crate::store::{Allocation, RecordContext, Reservation};

/// An append in flight.
struct Append {
    allocation: Allocation,
    extents: Vec<Extent>,
    /// Number of writes of the file that have returned when this append is complete.
    end: u64,
}

/// Blocks of a file that are written, but that no record assigns to the file yet. The runs are pinned: their zones are
/// not cleaned.
#[derive(Default)]
pub(super) struct Stored {
    /// Runs of blocks of the data device to which the data were written.
    pub runs: Vec<BlockRun>,
    /// Extents of the file that were written.
    pub extents: Vec<Extent>,
}

/// Progress of the appends that write a file.
struct Appends<'a> {
    /// Blocks of the file that are not allocated yet: first block and length of each run.
    left: Vec<(u32, u32)>,
    /// Appends in flight, oldest first.
    under_way: VecDeque<Append>,
    writes: BoundedOrdered<'a, WrittenPiece>,
    stored: Stored,
}

impl<'a> WriteBack<'a> {
    /// Writes `pieces` of a file (first block and length of each) in order. Returns the blocks written so far, also
    /// with an error.
    pub(super) async fn write_appends(
        self,
        inode: Inode,
        open: &Rc<Open>,
        pieces: &[(u32, u32)],
        record: Option<&Rc<FileRecord>>,
    ) -> (Stored, Result<(), FsError>) {
        // If the store has only one append of a file in flight, the commands of one append suffice.
        let at_once = if self.0.store.appending().is_some() { self.0.bounds.appends.max(1) } else { 1 };
        let mut appends = Appends {
            left: pieces.to_vec(),
            under_way: VecDeque::new(),
            writes: BoundedOrdered::new(self.0.bounds.pieces * at_once),
            stored: Stored::default(),
        };
        let mut outcome = self.begin_appends(inode, open, &mut appends, record).await;
        while !appends.under_way.is_empty() {
            outcome = self.end_first(&mut appends, outcome).await;
        }
        (appends.stored, outcome)
    }

    async fn begin_appends(
        self,
        inode: Inode,
        open: &Rc<Open>,
        appends: &mut Appends<'a>,
        record: Option<&Rc<FileRecord>>,
    ) -> Result<(), FsError> {
        while !appends.left.is_empty() {
            self.end_appends_down_to(self.0.bounds.appends.max(1) - 1, appends).await?;
            let context = self.context_of_write(record, &appends.left);
            let allocation = self.next_allocation(open, appends, &context).await?;
            let pieces = take_first(&mut appends.left, allocation.blocks());
            let extents = place(&pieces, &allocation.runs);
            appends.under_way.push_back(Append { allocation, extents, end: u64::MAX });
            let Append { allocation, extents, end } = appends.under_way.back_mut().expect("it was just begun");
            self.begin_extents(inode, open, (extents, allocation), &mut appends.writes).await?;
            *end = appends.writes.begun();
        }
        Ok(())
    }

    /// Waits for the oldest appends until at most `most` are in flight.
    async fn end_appends_down_to(self, most: usize, appends: &mut Appends<'a>) -> Result<(), FsError> {
        while appends.under_way.len() > most {
            self.end_first(appends, Ok(())).await?;
        }
        Ok(())
    }

    /// Waits for the oldest append to complete. If it fails, or `outcome` is an error of an earlier one, its allocation
    /// is given up.
    async fn end_first(self, appends: &mut Appends<'_>, mut outcome: Result<(), FsError>) -> Result<(), FsError> {
        let append = appends.under_way.pop_front().expect("an append is in flight");
        // Also after a failed write: the device has the other writes of the append already.
        while appends.writes.returned() < append.end {
            let Some(written) = appends.writes.next().await else { break };
            let recorded = self.record_written(written).await;
            outcome = outcome.and(recorded);
        }
        if outcome.is_err() {
            self.give_up(append.allocation).await;
            return outcome;
        }
        self.0.pin(&append.allocation.runs);
        appends.stored.runs.extend_from_slice(&append.allocation.runs);
        appends.stored.extents.extend(append.extents);
        self.0.store.commit(append.allocation);
        Ok(())
    }

    /// Allocates as many of the blocks in `appends.left` as the store gives at once.
    async fn next_allocation(
        self,
        open: &Rc<Open>,
        appends: &mut Appends<'a>,
        context: &RecordContext,
    ) -> Result<Allocation, FsError> {
        let blocks = appends.left.iter().map(|(_, blocks)| u64::from(*blocks)).sum();
        if let Some(last) = appends.under_way.back() {
            if let Some(allocation) = self.allocate_behind(open, &last.allocation, blocks, context).await {
                return Ok(allocation);
            }
            self.end_appends_down_to(0, appends).await?;
        }
        self.0.cleaner().slow_down(blocks).await;
        self.allocate(open, blocks, context).await
    }

    /// Allocates blocks to follow append `last`, which is in flight. Returns `None` if the allocation would have to
    /// wait for other tasks.
    async fn allocate_behind(
        self,
        open: &Open,
        last: &Allocation,
        blocks: u64,
        context: &RecordContext,
    ) -> Option<Allocation> {
        let core = &self.0;
        core.cleaner.note_write(core.executor.now_ns());
        let appending = core.store.appending()?;
        let mut held = take_held(open);
        let allocation = appending.allocate_behind(last, &mut held, blocks, context).await;
        self.give_held_back(open, held);
        allocation
    }

    async fn allocate(self, open: &Open, blocks: u64, context: &RecordContext) -> Result<Allocation, FsError> {
        let core = &self.0;
        let mut held = take_held(open);
        let began_ns = core.executor.now_ns();
        let allocated = core.allocate(&mut held, blocks, context).await;
        core.counters.add(|counters| counters.waited_ns += core.executor.now_ns() - began_ns);
        self.give_held_back(open, held);
        let mut allocation = allocated?;
        if core.faults.makes(Sabotage::FooterGivenBackEarly) {
            let kept = std::mem::take(&mut allocation.kept);
            core.store.commit(Allocation { runs: Vec::new(), kept, record_blocks: 0, counted: (0, 0) });
        }
        Ok(allocation)
    }

    fn give_held_back(self, open: &Open, mut held: Reservation) {
        match open.going().borrow_mut().as_mut() {
            Some(staged) => staged.held = held,
            None => self.0.store.unreserve(&mut held),
        }
    }
}

/// Takes the reservation of the data that are being written.
fn take_held(open: &Open) -> Reservation {
    open.going().borrow_mut().as_mut().map(|staged| std::mem::take(&mut staged.held)).unwrap_or_default()
}
