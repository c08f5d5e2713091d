//! What is appended to a file is written while more comes, so that the device works meanwhile.
//!
//! ```text
//!   appended ─► staged ── much of it ─► leaving ─► written, recorded
//!                 ▲                        a task, which holds the file's gate
//!                 └── the next appends
//! ```
//!
//! A file that comes in this way is written in parts and is not moved as a whole, as one larger than the cache. One that must
//! lie in one piece is written [`super::ahead`].
//!
//! Invariants:
//! 1. What leaves ends at a length that the file had, in whole blocks; nothing but appends behind it comes meanwhile.
//! 2. What leaves holds its reservation, and what is staged its own.

use std::collections::VecDeque;
use std::rc::Rc;

use super::Fs;
use super::staged::{Ahead, Open, Staged};
use crate::device::BLOCK_BYTES;
use crate::format::change::Inode;
use crate::store::Held;

const BYTES: u64 = BLOCK_BYTES as u64;
/// So many times [`super::Bounds::behind_bytes`] leave at once for each drive that they are spread over, about: whoever wants to cut
/// the file waits for them, and where they end each drive turns once in vain.
const AT_ONCE: usize = 4;

impl Fs {
    /// Begins to write what was appended to a file, if that is much and nobody does.
    pub(super) fn write_behind(&self, inode: Inode, open: &Rc<Open>) {
        if open.is_behind.get() || !self.has_much_appended(open) {
            return;
        }
        open.is_behind.set(true);
        let (fs, open) = (self.clone(), open.clone());
        drop(self.0.clock.spawn(async move {
            if fs.0.store.is_contiguous() {
                fs.write_ahead(inode, &open).await;
            } else {
                fs.follow(inode, &open).await;
            }
            open.is_behind.set(false);
            fs.drop_if_unused(inode);
            fs.forget_if_idle(inode);
            // What fails is told to whoever asks next: the log remembers.
            let _ = fs.commit_if_much().await;
        }));
    }

    fn has_much_appended(&self, open: &Open) -> bool {
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

    /// Writes what was appended as long as much of it comes.
    async fn follow(&self, inode: Inode, open: &Rc<Open>) {
        while self.has_much_appended(open) {
            let _gate = open.gate.enter().await;
            {
                let _appends = open.appends.enter().await;
                if !self.let_leave(inode, open) {
                    return;
                }
            }
            // In a box, as wherever files are written.
            let outcome = Box::pin(self.push_held(inode, open)).await;
            if outcome.is_err() {
                // Whoever writes the file next tries again, and is told.
                self.take_back(open);
                return;
            }
        }
    }

    /// Moves what was appended to where it is written from, as far as the file had a length of whole blocks. Whether there
    /// is anything.
    fn let_leave(&self, inode: Inode, open: &Open) -> bool {
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
        let (rest, mut held) = (staged.blocks.split_off(end as u32), Held::default());
        if core.store.reserves_places() {
            if staged.lent > 0 || core.store.reserve(&mut held, rest.with_bytes()).is_err() {
                staged.blocks.append(rest);
                return false;
            }
            // It has what it needs already: at worst it keeps more.
            let _ = core.store.reserve(&mut staged.held, staged.blocks.with_bytes());
        } else {
            // Both parts have what they need: it was reserved for all of it.
            held.blocks = rest.with_bytes().min(staged.held.blocks);
            staged.held.blocks -= held.blocks;
        }
        let lent = core.preallocated_staged(inode, &rest).min(staged.lent);
        staged.lent -= lent;
        core.staged_since.set(core.staged_since.get() + 1);
        let next = Staged {
            blocks: rest,
            size: staged.size,
            whole_sizes: std::mem::take(&mut staged.whole_sizes),
            ahead: Ahead::default(),
            modified_ns: staged.modified_ns,
            held,
            lent,
            since: core.staged_since.get(),
            since_ns: staged.since_ns,
            is_appended: true,
            goes_on: true,
            is_begun: false,
        };
        let leaving = std::mem::replace(staged, next);
        *open.leaving.borrow_mut() = Some(Staged { size: end_bytes, goes_on: true, ..leaving });
        true
    }

    /// What could not be written waits again, with what was appended since.
    fn take_back(&self, open: &Open) {
        let Some(leaving) = open.leaving.borrow_mut().take() else { return };
        let mut place = open.staged.borrow_mut();
        let staged = place.as_mut().expect("what is appended goes on being staged");
        staged.blocks.append(leaving.blocks);
        staged.held.blocks += leaving.held.blocks;
        staged.lent += leaving.lent;
        staged.held.runs.extend(leaving.held.runs);
        (staged.since, staged.since_ns) = (leaving.since, leaving.since_ns);
        (staged.is_appended, staged.goes_on, staged.is_begun) = (false, false, leaving.is_begun);
    }
}

/// Takes the first `most` of these lengths away; the last of those.
fn first_sizes(sizes: &mut VecDeque<u64>, most: usize) -> u64 {
    let count = sizes.len().min(most);
    sizes.drain(..count).next_back().unwrap_or_default()
}
