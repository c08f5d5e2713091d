//! Room for what is to be written: reserved at the write, so that a full drive is told there and never at a close.
//!
//! What was deleted may not be free yet: its record waits for a commit, somebody reads it still, or it is being written
//! while nobody can reach it any more. Before a write is refused, all that is waited for.

use std::ops::Range;
use std::rc::Rc;

use super::staged::Open;
use super::Fs;
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::format::change::Inode;

const BYTES: u64 = BLOCK_BYTES as u64;
/// How long to wait for readers of what was deleted before looking again.
const READERS_NS: u64 = 100_000;

impl Fs {
    /// Reserves what the file will need once blocks `changed` are written and it is `size` bytes long. A file that could only
    /// move as a whole where there is room for its changes alone is content with that, if the store can.
    pub(super) async fn reserve(
        &self,
        inode: Inode,
        open: &Rc<Open>,
        changed: Range<u32>,
        size: u64,
    ) -> Result<(), FsError> {
        match self.try_reserve(inode, open, changed.clone(), size) {
            Err(FsError::NoSpace) if self.reclaim(inode).await? => self.try_reserve(inode, open, changed, size),
            outcome => outcome,
        }
    }

    fn try_reserve(&self, inode: Inode, open: &Open, changed: Range<u32>, size: u64) -> Result<(), FsError> {
        let core = &self.0;
        let mut staged = open.staged.borrow_mut();
        let staged = staged.as_mut().expect("whoever reserves has staged");
        if core.store.is_contiguous() {
            return core.store.reserve(&mut staged.held, size.div_ceil(BYTES));
        }
        let already = staged.blocks.with_bytes_in(changed.clone());
        let changes = staged.blocks.with_bytes() + u64::from(changed.end - changed.start) - already;
        let namespace = core.namespace.borrow();
        let stored = namespace.node(inode)?.extents.blocks();
        drop(namespace);
        let whole = (stored + changes).min(size.div_ceil(BYTES));
        if whole * BYTES <= core.bounds.cache_bytes && core.store.reserve(&mut staged.held, whole).is_ok() {
            return Ok(());
        }
        core.store.reserve(&mut staged.held, changes)
    }

    /// Waits until everything that was deleted is free; whether anything was on its way. File `own` is the caller's.
    async fn reclaim(&self, own: Inode) -> Result<bool, FsError> {
        let mut has_gained = false;
        while let Some((inode, open)) = self.forsaken(own) {
            drop(open.gate.enter().await);
            self.drop_if_unused(inode);
            has_gained = true;
        }
        let core = &self.0;
        if core.releases.borrow().last_record().is_some() {
            core.log.commit(core.log.made(), &core.data).await?;
            self.free_released();
            has_gained = true;
        }
        while core.releases.borrow().has_durable(core.log.durable()) {
            core.clock.sleep(READERS_NS).await;
            self.free_released();
        }
        Ok(has_gained)
    }

    /// A file but `own` that is being written though it has neither name nor handle.
    fn forsaken(&self, own: Inode) -> Option<(Inode, Rc<Open>)> {
        let open = self.0.open.borrow();
        let mut others = open.iter().filter(|(inode, _)| **inode != own);
        others
            .find(|(inode, open)| open.gate.is_busy() && self.is_forsaken(**inode, open))
            .map(|(n, o)| (*n, o.clone()))
    }

    /// Whether nobody can reach a file any more: writing it would be in vain.
    pub(super) fn is_forsaken(&self, inode: Inode, open: &Open) -> bool {
        let is_unnamed = self.0.namespace.borrow().get(inode).is_none_or(|node| node.attributes.links == 0);
        is_unnamed && open.handles.get() == 0
    }
}
