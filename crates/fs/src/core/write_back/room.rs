//! Room for data to be written. It is reserved at the write, so that a full drive makes the write fail, and never a
//! close.
//!
//! Blocks that were deleted may not be free yet, for one of several reasons:
//! - The record that frees them waits for a commit.
//! - A read of them is in progress.
//! - They belong to a file that is being written although no process can reach it any more.
//! - Their file is still open here. The kernel reports a close when it likes, even after the write that needs the room.
//!
//! Blocks that the cleaner copies count twice until the copy is done. Before a write is refused, it waits for all of
//! this, but for closes only a limited time.
//!
//! Invariants:
//! 1. A task that waits for room holds the lock of a file, and waits for no task that may wait for that lock. So it
//!    waits neither for the lock of another file, nor for a file whose writer waits for room. So no two tasks wait for
//!    each other.
//! 2. A wait covers only deletions from before it began. So it ends, whatever other tasks begin meanwhile.

use std::ops::Range;
use std::rc::Rc;

use super::WriteBack;
use super::staged::{Open, Staged};
use crate::core::CoreParts;
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::format::change::{EXTENT_BYTES, Inode};

const BYTES: u64 = BLOCK_BYTES as u64;
/// Nanoseconds between two checks whether deleted blocks are free.
const READERS_NS: u64 = 100_000;

impl WriteBack<'_> {
    /// Reserves the room that the file needs once blocks `changed` are written and it is `size` bytes long. If there is
    /// no room to move the whole file, reserves room for its changes only, if the store can write changes by themselves.
    pub(in crate::core) async fn reserve(
        self,
        inode: Inode,
        open: &Rc<Open>,
        changed: Range<u32>,
        size: u64,
    ) -> Result<(), FsError> {
        let outcome = self.reserve_or_reclaim(inode, open, changed, size).await;
        if outcome.is_err() {
            self.forget_unchanged(inode, open);
        }
        outcome
    }

    async fn reserve_or_reclaim(
        self,
        inode: Inode,
        open: &Rc<Open>,
        changed: Range<u32>,
        size: u64,
    ) -> Result<(), FsError> {
        self.check_pieces_fit(u64::from(!self.0.store.is_contiguous()))?;
        match self.try_reserve(inode, open, changed.clone(), size) {
            Err(FsError::NoSpace) if self.reclaim(inode, open).await? => self.try_reserve(inode, open, changed, size),
            outcome => outcome,
        }
    }

    /// Discards the staged data of a file if they contain no change, so that a refused change leaves nothing to write.
    /// Otherwise a store that keeps files in one piece would move the whole file, and there is no room for that.
    fn forget_unchanged(self, inode: Inode, open: &Open) {
        let is_same = |staged: &Staged| staged.blocks.len() == 0 && staged.size == self.0.files().size_recorded(inode);
        if open.in_flight.borrow().is_none() && open.staged.borrow().as_ref().is_some_and(is_same) {
            self.forget_staged(inode, &open.staged);
        }
    }

    /// Fails if a checkpoint might have no room for the extents of all staged data once they are written, and of
    /// `more_runs` more runs. Each run is an extent, and may cut another in two.
    pub(super) fn check_pieces_fit(self, more_runs: u64) -> Result<(), FsError> {
        let core = &self.0;
        let check = |runs: u64| core.check_metadata_room((runs + more_runs) * 2 * EXTENT_BYTES);
        // In most cases there is room even if each block is a run of its own.
        if core.store.is_contiguous() || check(core.staging.bytes() / BYTES).is_ok() {
            return Ok(());
        }
        let runs_in = |open: &Open| {
            let places =
                [&open.in_flight, &open.staged].map(|place| place.borrow().as_ref().map(|it| it.blocks.runs()));
            places.into_iter().flatten().sum::<u64>()
        };
        check(core.lifetimes.with_open(|open| open.values().map(|open| runs_in(open)).sum()))
    }

    fn try_reserve(self, inode: Inode, open: &Open, changed: Range<u32>, size: u64) -> Result<(), FsError> {
        let core = &self.0;
        let mut staged = open.staged.borrow_mut();
        let staged = staged.as_mut().expect("room is reserved for staged data");
        core.files().lend(inode, staged, &changed);
        // A run that was lent as a whole is given back only after the write-back, and not in parts.
        let is_lent = |staged: &Staged, blocks: u64| staged.lent > 0 && staged.held.blocks >= blocks;
        if core.store.is_contiguous() {
            if !is_lent(staged, size.div_ceil(BYTES)) {
                core.store.reserve(&mut staged.held, size.div_ceil(BYTES))?;
            }
            if let Some(room) = staged.held.runs.first().filter(|room| room.start != staged.ahead.start) {
                staged.ahead.move_to(room.start);
            }
            return Ok(());
        }
        let already = staged.blocks.with_bytes_in(changed.clone());
        let changes = staged.blocks.with_bytes() + u64::from(changed.end - changed.start) - already;
        if core.store.places().is_some() && is_lent(staged, changes) {
            return Ok(());
        }
        let changes = changes.max(staged.lent);
        let namespace = core.namespace.borrow();
        let stored = namespace.node(inode)?.extents.blocks();
        drop(namespace);
        let whole = (stored + changes).min(size.div_ceil(BYTES));
        if !staged.goes_on
            && whole * BYTES <= core.bounds.cache_bytes
            && core.store.reserve(&mut staged.held, whole).is_ok()
        {
            return Ok(());
        }
        core.store.reserve(&mut staged.held, changes)
    }

    /// Waits until all blocks that were deleted before are free. Returns whether there were any. `own` is the caller's
    /// file, whose lock the caller holds.
    pub(in crate::core) async fn reclaim(self, own: Inode, open: &Open) -> Result<bool, FsError> {
        let _waits = open.wait_for_room();
        let mut has_gained = self.wait_for_closes(own).await;
        has_gained |= self.wait_for_forsaken(own).await?;
        let core = &self.0;
        if core.cleaner.is_busy() {
            // Blocks that are being copied count twice until the copy is done.
            drop(core.wait_unless_full(core.cleaner.enter()).await?);
            has_gained = true;
        }
        let last = core.releases.last_record();
        if let Some(last) = last {
            let owned = self.0.clone();
            core.spawn_unless_full(async move { owned.log.commit(last, &owned.data).await }).await??;
            self.0.committer().free_released();
            has_gained = true;
            // Blocks that others delete meanwhile are not waited for: that might never end.
            while core.releases.has_any_of(last) {
                core.executor.sleep(READERS_NS).await;
                self.0.committer().free_released();
            }
        }
        Ok(has_gained)
    }

    /// Waits until the files that are unreachable now are no longer being written, and removes them. Returns whether
    /// there were any. A file whose writer waits for room itself is skipped.
    ///
    /// The locks of these files are polled and never acquired. If several tasks acquired such locks to wait, each would
    /// find a lock held by the next, for ever.
    async fn wait_for_forsaken(self, own: Inode) -> Result<bool, FsError> {
        let forsaken = self.forsaken(own);
        for (inode, open) in &forsaken {
            while open.lock.is_busy() && !open.waits_for_room() && self.is_forsaken(*inode, open) {
                self.0.wait_unless_full(self.0.executor.sleep(READERS_NS)).await?;
            }
            self.0.files().drop_if_unused(*inode);
        }
        Ok(!forsaken.is_empty())
    }

    /// Waits until no file but `own` is without a name and open, or held by the kernel; [`crate::core::Bounds::closing_ns`] at
    /// most. Returns whether any such file was closed.
    async fn wait_for_closes(self, own: Inode) -> bool {
        let executor = &self.0.executor;
        let (count, until_ns) = (self.open_unnamed(own), executor.now_ns().saturating_add(self.0.bounds.closing_ns));
        while self.open_unnamed(own) > 0 && executor.now_ns() < until_ns {
            executor.sleep(READERS_NS).await;
        }
        self.open_unnamed(own) < count
    }

    /// Returns how many files but `own` have no name, and are open or held by the kernel.
    fn open_unnamed(self, own: Inode) -> usize {
        let namespace = self.0.namespace.borrow();
        let is_unnamed = |inode| namespace.get(inode).is_some_and(|node| node.attributes.links == 0);
        self.0.lifetimes.maybe_unnamed().into_iter().filter(|inode| *inode != own && is_unnamed(*inode)).count()
    }

    /// Returns the files but `own` that are being written though they are unreachable.
    fn forsaken(self, own: Inode) -> Vec<(Inode, Rc<Open>)> {
        self.0.lifetimes.with_open(|open| {
            let others = open.iter().filter(|(inode, _)| **inode != own);
            let forsaken = others.filter(|(inode, open)| open.lock.is_busy() && self.is_forsaken(**inode, open));
            forsaken.map(|(inode, open)| (*inode, open.clone())).collect()
        })
    }

    /// Returns whether a file is unreachable, so that writing it would be in vain: it has no name and no handle, and the
    /// kernel does not hold it.
    pub(in crate::core) fn is_forsaken(self, inode: Inode, open: &Open) -> bool {
        let is_unnamed = self.0.namespace.borrow().get(inode).is_none_or(|node| node.attributes.links == 0);
        is_unnamed && open.handles.get() == 0 && !self.0.lifetimes.has_lookup(inode)
    }
}
