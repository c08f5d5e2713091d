//! Room for what is to be written: reserved at the write, so that a full drive is told there and never at a close.
//!
//! What was deleted may not be free yet: its record waits for a commit, somebody still reads it, it is being written
//! although nobody can reach it any more, or it is still open for us, since the kernel tells of a close when it likes,
//! also after the write that needs the room. And what the cleaner copies counts twice until it is done. Before a write
//! is refused all of this is waited for; closes for a limited time.
//!
//! Invariants:
//! 1. Whoever waits for room holds the gate of a file, and waits for nobody who may wait for that in turn: neither for a gate of
//!    another file, nor for a file whose writer waits for room. So no two wait for each other.
//! 2. What is waited for was there when the wait began. So a wait ends, whatever others begin meanwhile.

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use super::Fs;
use super::staged::{Open, Staged};
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::format::change::{EXTENT_BYTES, Inode};

const BYTES: u64 = BLOCK_BYTES as u64;
/// How long to wait for readers of what was deleted before looking again.
const READERS_NS: u64 = 100_000;

impl Fs {
    /// Reserves what the file will need once blocks `changed` are written and it is `size` bytes long. Where there is
    /// no room to move it as a whole, room for its changes alone will do, if the store can write these by themselves.
    pub(super) async fn reserve(
        &self,
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
        &self,
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

    /// Forgets what is staged of a file where nothing of it has changed: a change that was refused leaves nothing to be written. A
    /// store that keeps files in one piece would move all of the file for it, and there is no room for that.
    fn forget_unchanged(&self, inode: Inode, open: &Open) {
        let is_same = |staged: &Staged| staged.blocks.len() == 0 && staged.size == self.0.size_recorded(inode);
        if open.leaving.borrow().is_none() && open.staged.borrow().as_ref().is_some_and(is_same) {
            self.forget_staged(inode, &open.staged);
        }
    }

    /// Fails if a checkpoint might have no room for the pieces that files come in once they are written, and for those of so many
    /// runs more: each is a piece, and may cut another in two.
    pub(super) fn check_pieces_fit(&self, more_runs: u64) -> Result<(), FsError> {
        let core = &self.0;
        let check = |runs: u64| core.check_metadata_room((runs + more_runs) * 2 * EXTENT_BYTES);
        // In most cases there is room even if each block were a run.
        if core.store.is_contiguous() || check(core.staged_bytes.get() / BYTES).is_ok() {
            return Ok(());
        }
        let runs_in = |open: &Open| {
            let places = [&open.leaving, &open.staged].map(|place| place.borrow().as_ref().map(|it| it.blocks.runs()));
            places.into_iter().flatten().sum::<u64>()
        };
        check(core.open.borrow().values().map(|open| runs_in(open)).sum())
    }

    fn try_reserve(&self, inode: Inode, open: &Open, changed: Range<u32>, size: u64) -> Result<(), FsError> {
        let core = &self.0;
        let mut staged = open.staged.borrow_mut();
        let staged = staged.as_mut().expect("whoever reserves has staged");
        core.lend(inode, staged, &changed);
        // A run that was lent as a whole returns only after the write-out, not in parts.
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
        if core.store.reserves_places() && is_lent(staged, changes) {
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

    /// Waits until everything is free that was deleted before; whether anything was on its way. File `own` is the caller's, whose
    /// gate the caller holds.
    pub(super) async fn reclaim(&self, own: Inode, open: &Open) -> Result<bool, FsError> {
        let _waits = open.wait_for_room();
        let mut has_gained = self.wait_for_closes(own).await;
        has_gained |= self.wait_for_forsaken(own).await?;
        let core = &self.0;
        if core.cleaning.is_busy() {
            // What is being copied counts twice until it is done.
            drop(core.wait_unless_full(core.cleaning.enter()).await?);
            has_gained = true;
        }
        let last = core.releases.borrow().last_record();
        if let Some(last) = last {
            let fs = self.clone();
            self.spawn_unless_full(async move { fs.0.log.commit(last, &fs.0.data).await }).await??;
            self.free_released();
            has_gained = true;
            // Of what others delete meanwhile nothing is waited for: that may go on for ever.
            while core.releases.borrow().has_any_of(last) {
                core.clock.sleep(READERS_NS).await;
                self.free_released();
            }
        }
        Ok(has_gained)
    }

    /// Waits until the files that are forsaken now are not being written any more, and lets go of them; whether there were any. One
    /// whose writer waits for room itself is not waited for.
    ///
    /// The gates of these files are looked at and never entered: of several who enter one to wait, each would find it busy with
    /// the next, for ever.
    async fn wait_for_forsaken(&self, own: Inode) -> Result<bool, FsError> {
        let forsaken = self.forsaken(own);
        for (inode, open) in &forsaken {
            while open.gate.is_busy() && !open.waits_for_room() && self.is_forsaken(*inode, open) {
                self.0.wait_unless_full(self.0.clock.sleep(READERS_NS)).await?;
            }
            self.drop_if_unused(*inode);
        }
        Ok(!forsaken.is_empty())
    }

    /// Waits until no file but `own` is open, or held by the kernel, without a name, [`super::Bounds::closing_ns`] at most; whether
    /// one was let go.
    async fn wait_for_closes(&self, own: Inode) -> bool {
        let clock = &self.0.clock;
        let (count, until_ns) = (self.open_unnamed(own), clock.now_ns().saturating_add(self.0.bounds.closing_ns));
        while self.open_unnamed(own) > 0 && clock.now_ns() < until_ns {
            clock.sleep(READERS_NS).await;
        }
        self.open_unnamed(own) < count
    }

    /// How many files but `own` are open, or held by the kernel, and have no name.
    fn open_unnamed(&self, own: Inode) -> usize {
        let (open, namespace) = (self.0.open.borrow(), self.0.namespace.borrow());
        let is_unnamed = |inode| namespace.get(inode).is_some_and(|node| node.attributes.links == 0);
        let has_handle = open.iter().filter(|(_, open)| open.handles.get() > 0).map(|(inode, _)| *inode);
        let lookups = self.0.lookups.borrow();
        let held: BTreeSet<Inode> = lookups.unnamed().iter().copied().chain(has_handle).collect();
        held.into_iter().filter(|inode| *inode != own && is_unnamed(*inode)).count()
    }

    /// The files but `own` that are being written though they have neither name nor handle.
    fn forsaken(&self, own: Inode) -> Vec<(Inode, Rc<Open>)> {
        let open = self.0.open.borrow();
        let others = open.iter().filter(|(inode, _)| **inode != own);
        let forsaken = others.filter(|(inode, open)| open.gate.is_busy() && self.is_forsaken(**inode, open));
        forsaken.map(|(inode, open)| (*inode, open.clone())).collect()
    }

    /// Whether nobody can reach a file any more: writing it would be in vain.
    pub(super) fn is_forsaken(&self, inode: Inode, open: &Open) -> bool {
        let is_unnamed = self.0.namespace.borrow().get(inode).is_none_or(|node| node.attributes.links == 0);
        is_unnamed && open.handles.get() == 0 && !self.0.lookups.borrow().holds(inode)
    }
}
