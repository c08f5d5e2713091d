//! Hints that change: what is said of a file, or of the directory that it is in ([`Hint`]), holds for what lies in the hot zone
//! already, too.
//!
//! Invariants:
//! 1. Whoever changes a hint waits for no file to be copied; the files that it is for are judged anew in the background, in
//!    batches of [`Bounds::hot_batch`](super::Bounds::hot_batch). He waits only while as many hints wait as may.
//! 2. A hint that changed is never passed over.

use super::{Core, Fs};
use crate::clock::first_of;
use crate::format::change::Inode;
use crate::hot::{HINT_ATTRIBUTE, Hint};
use crate::namespace::Namespace;

/// What is said of a file or directory itself.
fn own_hint(namespace: &Namespace, inode: Inode) -> Hint {
    let value = namespace.get(inode).and_then(|node| node.attribute(HINT_ATTRIBUTE));
    value.map_or(Hint::None, Hint::parse)
}

impl Core {
    /// What is said of a file, or else of the directory that it is in.
    pub(super) fn hint_of(&self, inode: Inode) -> Hint {
        let namespace = self.namespace.borrow();
        match own_hint(&namespace, inode) {
            Hint::None => namespace.name_of(inode).map_or(Hint::None, |(above, _)| own_hint(&namespace, above)),
            own => own,
        }
    }
}

impl Fs {
    /// What is said of a file, or of the files in a directory, has changed: they are judged anew, in the background.
    pub(super) async fn hint_changed(&self, inode: Inode) {
        let core = &self.0;
        if !core.has_hot_zone() {
            return;
        }
        loop {
            let taken = core.hint_taken.next();
            if core.is_over.get() || core.hot.borrow_mut().rehint(inode) {
                break;
            }
            first_of(taken, core.over.next()).await;
        }
        core.hot_wanted.give();
    }

    /// A file has got a name or lost one, and `before` was said of it: by its name given last it may be in another directory. A
    /// directory says itself what holds for its files, wherever it is.
    pub(super) async fn hint_may_differ(&self, inode: Inode, before: Hint) {
        let is_regular = self.0.namespace.borrow().get(inode).is_some_and(|node| node.is_regular());
        if is_regular && self.0.hint_of(inode) != before {
            self.hint_changed(inode).await;
        }
    }

    /// Judges anew the files that one of the changed hints is for; false if none has changed.
    pub(super) async fn judge_rehinted(&self) -> bool {
        let core = &self.0;
        let Some(inode) = core.hot.borrow_mut().take_rehinted() else { return false };
        core.hint_taken.give();
        if !core.namespace.borrow().get(inode).is_some_and(|node| node.is_directory()) {
            // A copy that could not be made is none: the file is where the store has it.
            let _ = self.bring_in(vec![inode]).await;
            return true;
        }
        let mut from = 0;
        while let Ok(names) = self.list(inode, from, core.bounds.hot_batch.max(1)) {
            let Some(last) = names.last().filter(|_| !core.is_over.get()) else { break };
            from = last.next;
            let mut files: Vec<Inode> = names.iter().map(|name| name.inode).collect();
            files.sort_unstable();
            files.dedup();
            let _ = self.bring_in(files).await;
            core.clock.yield_now().await;
        }
        true
    }
}
