//! Hints: what is said of a file, of the directory that it is in, or of files with such a name ([`Hint`]). It holds for what lies in
//! the hot zone already, too.
//!
//! What a file says itself goes before what its directory says of the extension of its name, that before what its directory says of
//! all files in it, and that before what the uppermost directory says of the extension.
//!
//! Invariants:
//! 1. Whoever changes a hint waits for no file to be copied; the files that it is for are judged anew in the background, in
//!    batches of [`Bounds::hot_batch`](super::Bounds::hot_batch). He waits only while as many hints wait as may.
//! 2. A hint that changed is never passed over.

use super::{Core, Fs};
use crate::clock::first_of;
use crate::format::change::Inode;
use crate::hot::{EVERY_FILE, EXTENSIONS_ATTRIBUTE, HINT_ATTRIBUTE, Hint};
use crate::namespace::{Namespace, ROOT};

/// What is said of a file or directory itself.
fn own_hint(namespace: &Namespace, inode: Inode) -> Hint {
    let value = namespace.get(inode).and_then(|node| node.attribute(HINT_ATTRIBUTE));
    value.map_or(Hint::None, Hint::parse)
}

/// What a directory says of files of such a name.
fn hint_by_extension(namespace: &Namespace, directory: Inode, name: &[u8]) -> Hint {
    let list = namespace.get(directory).and_then(|node| node.attribute(EXTENSIONS_ATTRIBUTE));
    list.map_or(Hint::None, |list| Hint::of_name(list, name))
}

impl Core {
    /// What is said of a file.
    pub(super) fn hint_of(&self, inode: Inode) -> Hint {
        let namespace = self.namespace.borrow();
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

impl Fs {
    /// An extended attribute has changed, which may be one with a hint.
    pub(super) async fn attribute_changed(&self, inode: Inode, name: &[u8]) {
        match name {
            EXTENSIONS_ATTRIBUTE if inode == ROOT => self.hint_changed(EVERY_FILE).await,
            HINT_ATTRIBUTE | EXTENSIONS_ATTRIBUTE => self.hint_changed(inode).await,
            _ => {}
        }
    }

    /// What is said of a file, or of the files in a directory, has changed: they are judged anew, in the background.
    async fn hint_changed(&self, inode: Inode) {
        let core = &self.0;
        if !core.has_hot_zone() {
            return;
        }
        let has_place = async {
            loop {
                let taken = core.hint_taken.next();
                if core.is_over.get() || core.hot.borrow_mut().rehint(inode) {
                    break;
                }
                first_of(taken, core.over.next()).await;
            }
        };
        if core.wait_unless_full(has_place).await.is_err() {
            core.hot.borrow_mut().rehint(EVERY_FILE);
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
        if inode == EVERY_FILE {
            self.judge_every_file().await;
            return true;
        }
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

    async fn judge_every_file(&self) {
        let core = &self.0;
        let mut next = ROOT;
        while !core.is_over.get() {
            let files: Vec<Inode> = {
                let namespace = core.namespace.borrow();
                namespace.nodes_from(next).take(core.bounds.hot_batch.max(1)).map(|(inode, _)| inode).collect()
            };
            let Some(last) = files.last() else { return };
            next = last + 1;
            let _ = self.bring_in(files).await;
            core.clock.yield_now().await;
        }
    }
}
