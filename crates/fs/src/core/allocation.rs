//! The store as the core uses it, whether it writes records and needs cleaning or not.

use super::Core;
use crate::block_run::BlockRun;
use crate::error::FsError;
use crate::executor::Local;
use crate::format::change::Change;
use crate::store::{Allocation, RecordContext, Reservation};

impl Core {
    /// Allocates blocks for a file of `blocks` out of its reservation, or for the first part of it. If the store writes
    /// records, they describe the blocks as `context` says.
    pub(super) fn allocate<'a>(
        &'a self,
        reservation: &'a mut Reservation,
        blocks: u64,
        context: &'a RecordContext,
    ) -> Local<'a, Result<Allocation, FsError>> {
        match self.store.records() {
            Some(records) => records.allocate_with_records(reservation, blocks, context),
            None => self.store.allocate(reservation, blocks),
        }
    }

    /// Allocates blocks for copies by the cleaner, or for the first part of them. If the store writes records, they
    /// describe the blocks as `context` says. Returns `None` if there is no space for copies.
    pub(super) async fn allocate_for_cleaner(&self, blocks: u64, context: &RecordContext) -> Option<Allocation> {
        match self.store.records() {
            Some(records) => records.allocate_for_cleaner_with_records(blocks, context).await,
            None => self.store.cleaning()?.allocate_for_cleaner(blocks).await,
        }
    }

    /// Keeps the zones of these runs from being cleaned until [`Core::unpin`].
    pub(super) fn pin(&self, runs: &[BlockRun]) {
        if let Some(cleaning) = self.store.cleaning() {
            cleaning.pin(runs);
        }
    }

    /// Undoes one [`Core::pin`].
    pub(super) fn unpin(&self, runs: &[BlockRun]) {
        if let Some(cleaning) = self.store.cleaning() {
            cleaning.unpin(runs);
        }
    }

    /// Returns and removes the pending changes of the store.
    pub(super) fn changes_of_store(&self) -> Vec<Change> {
        self.store.stripe_groups().map_or_else(Vec::new, |groups| groups.drain_changes())
    }

    /// Recomputes the space of the store after a drive was added, removed or lost.
    pub(super) fn refresh_space(&self) {
        if let Some(groups) = self.store.stripe_groups() {
            groups.refresh();
        }
    }

    /// Returns whether no write to a group is in flight and all blocks written there belong to files.
    pub(super) fn is_quiet(&self, group: u32) -> bool {
        self.store.zoned().is_none_or(|zoned| zoned.is_quiet(group))
    }
}
