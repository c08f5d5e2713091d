//! Hints of users about the place of files in the hot zone ([`Hint`]): for one file, for the files of a directory, or
//! for files whose names have a certain extension. A hint also applies to files that are in the hot zone already.
//!
//! The first hint in this order counts: the file's own hint; its directory's hint for the extension of the file's name;
//! its directory's hint for all files; the root directory's hint for the extension.
//!
//! Invariants:
//! 1. A task that changes a hint does not wait for copies of files. The files concerned are judged again in the
//!    background, in batches of [`Bounds::hot_batch`](crate::core::Bounds::hot_batch). The task waits only while the queue of
//!    changed hints is full.
//! 2. No changed hint is lost.

use super::HotTier;
use crate::core::CoreParts;
use crate::executor::select;
use crate::format::change::Inode;
use crate::hot::{EVERY_FILE, EXTENSIONS_ATTRIBUTE, HINT_ATTRIBUTE, Hint};
use crate::namespace::{Namespace, ROOT};

/// Returns the hint that a file or directory has itself.
fn own_hint(namespace: &Namespace, inode: Inode) -> Hint {
    let value = namespace.get(inode).and_then(|node| node.attribute(HINT_ATTRIBUTE));
    value.map_or(Hint::None, Hint::parse)
}

/// Returns the hint that a directory has for files with the extension of `name`.
fn hint_by_extension(namespace: &Namespace, directory: Inode, name: &[u8]) -> Hint {
    let list = namespace.get(directory).and_then(|node| node.attribute(EXTENSIONS_ATTRIBUTE));
    list.map_or(Hint::None, |list| Hint::of_name(list, name))
}

impl HotTier<'_> {
    /// Returns the hint that applies to a file.
    pub(in crate::core) fn hint_of(self, inode: Inode) -> Hint {
        let namespace = self.0.namespace.borrow();
        let own = own_hint(&namespace, inode);
        let Some((above, name)) = namespace.name_of(inode).filter(|_| own == Hint::None) else { return own };
        let others = [
            hint_by_extension(&namespace, above, name),
            own_hint(&namespace, above),
            hint_by_extension(&namespace, ROOT, name),
        ];
        others.into_iter().find(|hint| *hint != Hint::None).unwrap_or_default()
    }
}

impl HotTier<'_> {
    /// Queues the files that a hint applies to, to be judged again, if extended attribute `name` of `inode` is that
    /// hint.
    pub(in crate::core) async fn attribute_changed(self, inode: Inode, name: &[u8]) {
        match name {
            EXTENSIONS_ATTRIBUTE if inode == ROOT => self.hint_changed(EVERY_FILE).await,
            HINT_ATTRIBUTE | EXTENSIONS_ATTRIBUTE => self.hint_changed(inode).await,
            _ => {}
        }
    }

    /// Queues a file, or the files of a directory, to be judged again in the background after a change of their hint.
    async fn hint_changed(self, inode: Inode) {
        let core = &self.0;
        if !core.hot_tier().has_hot_zone() {
            return;
        }
        let has_place = async {
            loop {
                let taken = core.hot.hint_taken.next();
                if core.shutdown.has_begun() || core.hot.zone.borrow_mut().rehint(inode) {
                    break;
                }
                select(taken, core.shutdown.next()).await;
            }
        };
        if core.wait_unless_full(has_place).await.is_err() {
            core.hot.zone.borrow_mut().rehint(EVERY_FILE);
        }
        core.hot.wanted.give();
    }

    /// Queues a file that got or lost a name, if another hint than `before` applies to it now: by its latest name it
    /// may be in another directory. Directories need no check, because the hints for their files do not depend on their
    /// place.
    pub(in crate::core) async fn hint_may_differ(self, inode: Inode, before: Hint) {
        let is_regular = self.0.namespace.borrow().get(inode).is_some_and(|node| node.is_regular());
        if is_regular && self.hint_of(inode) != before {
            self.hint_changed(inode).await;
        }
    }

    /// Takes a changed hint from the queue, and judges its files again. Returns false if the queue is empty.
    pub(super) async fn judge_rehinted(self) -> bool {
        let core = &self.0;
        let Some(inode) = core.hot.zone.borrow_mut().take_rehinted() else { return false };
        core.hot.hint_taken.give();
        if inode == EVERY_FILE {
            self.judge_every_file().await;
            return true;
        }
        if !core.namespace.borrow().get(inode).is_some_and(|node| node.is_directory()) {
            // If the copy could not be made, the file stays in the store.
            let _ = self.bring_in(vec![inode]).await;
            return true;
        }
        let mut from = 0;
        while let Ok(names) = self.0.files().list(inode, from, core.bounds.hot_batch.max(1)) {
            let Some(last) = names.last().filter(|_| !core.shutdown.has_begun()) else { break };
            from = last.next;
            let mut files: Vec<Inode> = names.iter().map(|name| name.inode).collect();
            files.sort_unstable();
            files.dedup();
            let _ = self.bring_in(files).await;
            core.executor.yield_now().await;
        }
        true
    }

    async fn judge_every_file(self) {
        let core = &self.0;
        let mut next = ROOT;
        while !core.shutdown.has_begun() {
            let files: Vec<Inode> = {
                let namespace = core.namespace.borrow();
                namespace.nodes_from(next).take(core.bounds.hot_batch.max(1)).map(|(inode, _)| inode).collect()
            };
            let Some(last) = files.last() else { return };
            next = last + 1;
            let _ = self.bring_in(files).await;
            core.executor.yield_now().await;
        }
    }
}
