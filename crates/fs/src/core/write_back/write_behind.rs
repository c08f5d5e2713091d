//! Write-behind: appended data are written back while the program still appends, so that the device works meanwhile.
//!
//! ```text
//!   appended ─► staged ── much of it ─► leaving ─► written, recorded
//!                 ▲                        a task, which holds the file's lock
//!                 └── the next appends
//! ```
//!
//! The file is written in parts and not moved as a whole, like a file larger than the cache. Files that must lie in one
//! piece are written by [`super::early_write`]. Field `in_flight` of a file holds the data whose write-back is in
//! flight (*leaving* in the diagram), field `staged` the data that were appended later. The lock is field `lock`.
//!
//! Invariants:
//! 1. The data in flight end at a length in whole blocks that the file had. While they are in flight, the file changes
//!    only by appends behind them.
//! 2. The data in flight keep their reservation, and the staged data have their own.

use std::collections::VecDeque;
use std::rc::Rc;

use super::WriteBack;
use super::staged::{Ahead, Open, Staged};
use crate::core::CoreParts;
use crate::device::BLOCK_BYTES;
use crate::format::change::Inode;
use crate::store::Reservation;

const BYTES: u64 = BLOCK_BYTES as u64;
/// Largest write-back in flight for each drive that the data are spread over, approximately, in units of
/// [`crate::core::Bounds::behind_bytes`]. A truncation of the file waits for the write-back, which limits its size. At the
/// end of a write-back each drive loses a rotation, so smaller ones would cost more.
const AT_ONCE: usize = 4;

impl WriteBack<'_> {
    /// Starts a task that writes back appended data of a file, if there are enough of them and no such task runs.
    pub(in crate::core) fn write_behind(self, inode: Inode, open: &Rc<Open>) {
        if open.is_behind.get() || !self.has_much_appended(open) {
            return;
        }
        open.is_behind.set(true);
        let (core, open) = (self.0.clone(), open.clone());
        drop(self.0.executor.spawn(async move {
            if core.store.is_contiguous() {
                core.write_back().write_ahead(inode, &open).await;
            } else {
                core.write_back().follow(inode, &open).await;
            }
            open.is_behind.set(false);
            core.files().drop_if_unused(inode);
            core.files().forget_if_idle(inode);
            // The error is not lost: the log keeps it for the next caller.
            let _ = core.committer().commit_if_much().await;
        }));
    }

    fn has_much_appended(self, open: &Open) -> bool {
        let (core, staged) = (&self.0, open.staged.borrow());
        let is_much = |staged: &Staged| {
            if core.store.is_contiguous() {
                self.has_much_to_write_ahead(staged)
            } else {
                staged.is_appended && staged.blocks.with_bytes() * BYTES >= core.bounds.behind_bytes
            }
        };
        staged.as_ref().is_some_and(is_much)
    }

    /// Writes back appended data of a file as long as there are enough of them.
    async fn follow(self, inode: Inode, open: &Rc<Open>) {
        while self.has_much_appended(open) {
            let _lock = open.lock.enter().await;
            {
                let _appends = open.appends.enter().await;
                if !self.start_write_back(inode, open) {
                    return;
                }
            }
            // Boxed, as in `Fs::write_back`, to keep this future out of those of nearly all operations.
            let outcome = Box::pin(self.write_back_locked(inode, open)).await;
            if outcome.is_err() {
                // The next write-back of the file tries again, and its caller gets the error.
                self.take_back(open);
                return;
            }
        }
    }

    /// Moves appended data from `staged` to `in_flight`, up to a length in whole blocks that the file had. Returns
    /// whether there are data to write now.
    fn start_write_back(self, inode: Inode, open: &Open) -> bool {
        let core = &self.0;
        let Some(committed) = core.namespace.borrow().get(inode).map(|node| node.attributes.size) else { return false };
        let mut place = open.staged.borrow_mut();
        let Some(staged) = place.as_mut().filter(|staged| staged.is_appended) else { return false };
        let width = core.data.array().map_or(1, |array| usize::from(array.shape().width));
        let end_bytes = first_sizes(&mut staged.whole_sizes, AT_ONCE * width);
        let end = end_bytes / BYTES;
        if staged.blocks.range(0..end as u32).next().is_none() {
            return false;
        }
        assert!(end_bytes > committed, "{end_bytes} bytes would be shorter than {committed}");
        let (rest, mut held) = (staged.blocks.split_off(end as u32), Reservation::default());
        if core.store.places().is_some() {
            if staged.lent > 0 || core.store.reserve(&mut held, rest.with_bytes()).is_err() {
                staged.blocks.append(rest);
                return false;
            }
            // The reservation covers these blocks already. If it cannot be made smaller, it stays too large.
            let _ = core.store.reserve(&mut staged.held, staged.blocks.with_bytes());
        } else {
            // The reservation covers both parts: it was made for all of the data.
            held.blocks = rest.with_bytes().min(staged.held.blocks);
            staged.held.blocks -= held.blocks;
        }
        let lent = core.files().preallocated_staged(inode, &rest).min(staged.lent);
        staged.lent -= lent;
        let next = Staged {
            blocks: rest,
            size: staged.size,
            whole_sizes: std::mem::take(&mut staged.whole_sizes),
            ahead: Ahead::default(),
            modified_ns: staged.modified_ns,
            held,
            lent,
            since: core.staging.next(),
            since_ns: staged.since_ns,
            is_appended: true,
            goes_on: true,
            is_begun: false,
        };
        let leaving = std::mem::replace(staged, next);
        *open.in_flight.borrow_mut() = Some(Staged { size: end_bytes, goes_on: true, ..leaving });
        true
    }

    /// Merges data whose write-back failed into `staged`, which holds the data appended since.
    fn take_back(self, open: &Open) {
        let Some(leaving) = open.in_flight.borrow_mut().take() else { return };
        let mut place = open.staged.borrow_mut();
        let staged = place.as_mut().expect("appended data are staged during a write-back");
        staged.blocks.append(leaving.blocks);
        staged.held.blocks += leaving.held.blocks;
        staged.lent += leaving.lent;
        staged.held.runs.extend(leaving.held.runs);
        (staged.since, staged.since_ns) = (leaving.since, leaving.since_ns);
        (staged.is_appended, staged.goes_on, staged.is_begun) = (false, false, leaving.is_begun);
    }
}

/// Removes the first `most` of `sizes`. Returns the last of those removed, or 0 if there are none.
fn first_sizes(sizes: &mut VecDeque<u64>, most: usize) -> u64 {
    let count = sizes.len().min(most);
    sizes.drain(..count).next_back().unwrap_or_default()
}
