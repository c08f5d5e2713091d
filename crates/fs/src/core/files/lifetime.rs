//! Lifetime of a file: it exists as long as it has a name, a handle, or a lookup count in the kernel.
//!
//! The kernel counts the replies that mention a file: those to lookups, to operations that make or link the file, and
//! to readdirplus. As long as the count is not 0, the kernel may use the inode number. Examples are `fstat` of an open
//! directory that was removed, and opening a file without a name again through a descriptor of `O_PATH`. FORGET lowers
//! the count.
//!
//! Invariants:
//! 1. A file is removed, and its number is free, only when it has no name, no handle and no lookup count, and no task
//!    writes it.
//! 2. No generation is used before the log durably reserves it: so none is used again after a power cut.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::Files;
use crate::core::write_back::staged::Open;
use crate::core::{CoreParts, Fs};
use crate::error::FsError;
use crate::format::change::{Change, GENERATIONS_END, Inode};

/// Generations reserved in the log at a time. Each inode number has its own generations, so this is enough for many
/// files.
const GENERATIONS: u64 = 64;

/// Lookup counts of the kernel, by file.
#[derive(Default, Debug)]
struct Lookups {
    counts: BTreeMap<Inode, u64>,
    /// Files with a lookup count that had no name at the last check.
    unnamed: BTreeSet<Inode>,
}

impl Lookups {
    /// Returns whether the kernel has a lookup count for `inode`, which has no name. If so, adds `inode` to `unnamed`.
    fn keeps_unnamed(&mut self, inode: Inode) -> bool {
        let is_held = self.holds(inode);
        if is_held {
            self.unnamed.insert(inode);
        }
        is_held
    }

    /// Returns whether the kernel has a lookup count for `inode`.
    fn holds(&self, inode: Inode) -> bool {
        self.counts.contains_key(&inode)
    }

    fn add(&mut self, inode: Inode) {
        *self.counts.entry(inode).or_insert(0) += 1;
    }

    /// Lowers the lookup count of `inode` by `lookups`; returns whether the count has become 0.
    fn take(&mut self, inode: Inode, lookups: u64) -> bool {
        let Some(count) = self.counts.get_mut(&inode) else { return false };
        *count = count.saturating_sub(lookups);
        let is_last = *count == 0;
        if is_last {
            self.counts.remove(&inode);
            self.unnamed.remove(&inode);
        }
        is_last
    }

    /// Drops all lookup counts; returns the files that had no name.
    fn take_all(&mut self) -> BTreeSet<Inode> {
        self.counts.clear();
        std::mem::take(&mut self.unnamed)
    }
}

/// Open files, lookup counts of the kernel, and generations of inode numbers.
#[derive(Default)]
pub(in crate::core) struct LifetimesState {
    /// Files that are open, or have staged data.
    open: RefCell<BTreeMap<Inode, Rc<Open>>>,
    lookups: RefCell<Lookups>,
    /// First generation that no file may get before the log has durably raised this bound.
    generations_below: Cell<u64>,
}

impl LifetimesState {
    /// Returns the state of a file that is open, or has staged data.
    pub(in crate::core) fn open_of(&self, inode: Inode) -> Option<Rc<Open>> {
        self.open.borrow().get(&inode).cloned()
    }

    /// Calls `see` with all files that are open, or have staged data.
    pub(in crate::core) fn with_open<T>(&self, see: impl FnOnce(&BTreeMap<Inode, Rc<Open>>) -> T) -> T {
        see(&self.open.borrow())
    }

    /// Returns whether the kernel has a lookup count for `inode`.
    pub(in crate::core) fn has_lookup(&self, inode: Inode) -> bool {
        self.lookups.borrow().holds(inode)
    }

    /// Returns the files without a name that are open, or exist only for their lookup count. Some of the latter may have
    /// been linked again since.
    pub(in crate::core) fn maybe_unnamed(&self) -> BTreeSet<Inode> {
        let open = self.open.borrow();
        let has_handle = open.iter().filter(|(_, open)| open.handles.get() > 0).map(|(inode, _)| *inode);
        self.lookups.borrow().unnamed.iter().copied().chain(has_handle).collect()
    }
}

impl Fs {
    /// Adds 1 to the lookup count of file `inode`: the kernel got a reply that mentions the file. As long as the count
    /// is not 0, the file exists, even without names.
    pub fn add_lookup(&self, inode: Inode) {
        self.0.lifetimes.lookups.borrow_mut().add(inode);
    }

    /// Subtracts `lookups` from the lookup count of file `inode`, the number of replies to the kernel that mentioned
    /// the file; an excess sets the count to 0. When the count becomes 0, the file is removed if it has neither a name
    /// nor an open handle.
    pub fn forget(&self, inode: Inode, lookups: u64) {
        if self.0.lifetimes.lookups.borrow_mut().take(inode, lookups) {
            self.0.files().drop_if_unused(inode);
        }
    }

    /// Opens a handle of file `inode`. The file exists until the handle is closed, even if it loses all names.
    ///
    /// # Errors
    /// [`FsError::Stale`] if the file does not exist.
    pub fn open(&self, inode: Inode) -> Result<(), FsError> {
        self.0.namespace.borrow().node(inode)?;
        let open = self.0.files().open_or_new(inode);
        open.handles.set(open.handles.get() + 1);
        Ok(())
    }

    /// Closes one handle of file `inode`, also if an error is returned. Closing the last handle writes back the changes
    /// in memory, if the file has a name (Singh 2014 §2.2.2), and removes a file without name and lookup count. The
    /// data may not be durable before [`Fs::fsync`] or the next commit.
    ///
    /// # Errors
    /// [`FsError::Stale`] if the file is not open, or the error of the write-back.
    ///
    /// # Panics
    /// The file has no open handle but changes in memory: it is closed more often than it was opened.
    pub async fn close(&self, inode: Inode) -> Result<(), FsError> {
        let Some(open) = self.0.files().open_of(inode) else { return Err(FsError::Stale) };
        assert!(open.handles.get() > 0, "file {inode} is closed more often than it was opened");
        open.handles.set(open.handles.get() - 1);
        if open.handles.get() > 0 {
            return Ok(());
        }
        let has_name = self.0.namespace.borrow().node(inode)?.attributes.links > 0;
        let outcome = if has_name { self.0.write_back().write_back(inode).await } else { Ok(()) };
        self.0.files().drop_if_unused(inode);
        self.0.files().forget_if_idle(inode);
        outcome
    }
}

impl Files<'_> {
    /// Drops all lookup counts, for an unmount: the kernel then holds no files of the file system.
    pub(in crate::core) fn forget_everything(self) {
        let unnamed = self.0.lifetimes.lookups.borrow_mut().take_all();
        unnamed.into_iter().for_each(|inode| self.drop_if_unused(inode));
    }

    /// Ensures that the log durably reserves the generation of the next file.
    pub(super) async fn reserve_generations(self) -> Result<(), FsError> {
        let core = &self.0;
        loop {
            let generation = u64::from(core.namespace.borrow().next_number()?.1);
            if generation < core.lifetimes.generations_below.get() {
                return Ok(());
            }
            if let Some(reason) = core.executor.blocked() {
                return Err(FsError::HostFull(reason));
            }
            let below = (generation + GENERATIONS).min(GENERATIONS_END);
            let record = core.record(&[Change::Generations { below }]);
            let owned = self.0.clone();
            core.spawn_unless_full(async move { owned.log.commit(record, &owned.data).await }).await??;
            // Another task may have reserved more meanwhile.
            core.lifetimes.generations_below.set(below.max(core.lifetimes.generations_below.get()));
        }
    }

    pub(crate) fn open_of(self, inode: Inode) -> Option<Rc<Open>> {
        self.0.lifetimes.open_of(inode)
    }

    pub(crate) fn open_or_new(self, inode: Inode) -> Rc<Open> {
        self.0.lifetimes.open.borrow_mut().entry(inode).or_default().clone()
    }

    pub(crate) fn forget_if_idle(self, inode: Inode) {
        let mut open = self.0.lifetimes.open.borrow_mut();
        if open.get(&inode).is_some_and(|open| open.is_idle()) {
            open.remove(&inode);
        }
    }

    /// Removes a file that has neither name, handle nor lookup count, unless a task uses it.
    pub(crate) fn drop_if_unused(self, inode: Inode) {
        let core = &self.0;
        let is_unnamed = core.namespace.borrow().get(inode).is_some_and(|node| node.attributes.links == 0);
        let is_open = self.open_of(inode).is_some_and(|open| open.handles.get() > 0 || open.is_busy());
        if !is_unnamed || core.is_read_only || core.lifetimes.lookups.borrow_mut().keeps_unnamed(inode) || is_open {
            return;
        }
        self.0.write_back().drop_staged(inode);
        core.files().forget_preallocated(inode);
        core.lifetimes.open.borrow_mut().remove(&inode);
        let extents =
            core.namespace.borrow().get(inode).map(|node| node.extents.as_slice().to_vec()).unwrap_or_default();
        core.written.borrow_mut().cut(inode, 0);
        let copy = core.hot_tier().copy_to_drop(inode);
        self.0.hot_tier().forget_hot(inode);
        let record = core.record(&[Change::DropNode { inode }]);
        self.0.write_back().release_extents(record, &extents);
        self.0.write_back().release(record, copy.map(|(_, runs)| runs).unwrap_or_default());
    }
}
