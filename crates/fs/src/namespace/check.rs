//! Consistency check of a namespace: invariants 1 and 2 of the folder, and the properties of each file. The check takes
//! linear time in the number of names and files, also for crafted ones.

use std::collections::BTreeSet;

use super::table::Table;
use super::{Directory, Namespace, ROOT, bytes_of, list_bytes, stretch_bytes};
use crate::format::change::Inode;
use crate::format::file_type::{FORMAT, SYMLINK};

/// Maximum number of findings that are described. Further findings are only counted.
const FINDINGS_MAX: usize = 1000;

/// Number of names of a file.
#[derive(Clone, Copy, Default)]
struct Named {
    names: u32,
    /// Number of subdirectories, if the file is a directory.
    subdirectories: u32,
}

/// Findings of the check, as messages.
#[derive(Default)]
struct Wrong {
    findings: Vec<String>,
    more: u64,
}

impl Wrong {
    fn add(&mut self, words: String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(words);
        } else {
            self.more += 1;
        }
    }

    fn into_words(mut self) -> Vec<String> {
        self.findings.extend((self.more > 0).then(|| format!("and {} more of the kind", self.more)));
        self.findings
    }
}

impl Namespace {
    /// Checks the consistency of the whole namespace: names, link counts, the tree of directories, file types and the
    /// counted size of a checkpoint. Returns a message for each fault, and an empty list if there is none. Of more than
    /// 1,000 faults, the rest are only counted, in a last message.
    pub fn self_check(&self) -> Vec<String> {
        let mut wrong = Wrong::default();
        let named = self.check_names(&mut wrong);
        let below = self.directories_below_root();
        for (inode, _) in self.nodes_from(0) {
            self.check_file(inode, named.get(inode).copied().unwrap_or_default(), &below, &mut wrong);
        }
        let copies: u64 = self.hot.values().map(|extents| list_bytes(extents)).sum();
        let preallocated: u64 = self.preallocated.values().map(stretch_bytes).sum();
        let bytes = copies + preallocated + self.nodes_from(0).map(|(_, node)| bytes_of(node)).sum::<u64>();
        if bytes != self.encoded_bytes {
            wrong.add(format!("{} bytes of a checkpoint were counted, and it has {bytes}", self.encoded_bytes));
        }
        wrong.into_words()
    }

    /// Checks that the file of every name exists and that a lookup finds the name. Returns the counts of names of each
    /// file.
    fn check_names(&self, wrong: &mut Wrong) -> Table<Named> {
        let mut all: Table<Named> = Table::default();
        let mut count = |inode: Inode, add: fn(&mut Named)| match all.get_mut(inode) {
            Some(named) => add(named),
            None => {
                let mut named = Named::default();
                add(&mut named);
                all.insert(inode, named);
            }
        };
        for (inode, node) in self.nodes_from(0) {
            let Some(directory) = node.directory() else { continue };
            for (cookie, entry) in directory.entries_from(0) {
                let name = String::from_utf8_lossy(&entry.name);
                let Some(of) = self.get(entry.inode) else {
                    wrong.add(format!(
                        "'{name}' in directory {inode} (cookie {cookie}) refers to a missing file: {}",
                        entry.inode
                    ));
                    continue;
                };
                let found = directory.lookup(self.key, &entry.name);
                if !Directory::may_have(self.key, &entry.name, cookie) || found != Some((cookie, entry.inode)) {
                    wrong.add(format!("'{name}' in directory {inode} (cookie {cookie}) is not found by its name"));
                }
                count(entry.inode, |named| named.names = named.names.saturating_add(1));
                if of.is_directory() {
                    count(inode, |named| named.subdirectories = named.subdirectories.saturating_add(1));
                    if of.attributes.parent != inode {
                        wrong.add(format!(
                            "directory {} is in directory {inode} and names another as its parent",
                            entry.inode
                        ));
                    }
                }
            }
        }
        all
    }

    /// Returns the directories that a walk from the root directory reaches.
    fn directories_below_root(&self) -> BTreeSet<Inode> {
        let (mut found, mut left) = (BTreeSet::from([ROOT]), vec![ROOT]);
        while let Some(above) = left.pop() {
            let names = self.get(above).and_then(|node| node.directory());
            for (_, entry) in names.into_iter().flat_map(|names| names.entries_from(0)) {
                if self.get(entry.inode).is_some_and(|node| node.is_directory()) && found.insert(entry.inode) {
                    left.push(entry.inode);
                }
            }
        }
        found
    }

    fn check_file(&self, inode: Inode, named: Named, below: &BTreeSet<Inode>, wrong: &mut Wrong) {
        let Some(node) = self.get(inode) else { return };
        let (links, is_directory) = (node.attributes.links, node.is_directory());
        let is_in_use = inode == ROOT || named.names > 0;
        let expected = match (is_directory, is_in_use) {
            (true, true) => named.subdirectories.saturating_add(2),
            (true, false) => 0,
            (false, _) => named.names,
        };
        if links != expected {
            wrong.add(format!("file {inode} counts {links} links, and has {expected}"));
        }
        if is_directory && named.names > u32::from(inode != ROOT) {
            wrong.add(format!("directory {inode} has {} names", named.names));
        }
        if is_directory && is_in_use && !below.contains(&inode) {
            wrong.add(format!("directory {inode} is not below the root"));
        }
        if is_directory != node.directory().is_some() {
            wrong.add(format!("file {inode} has a type that does not fit its contents"));
        }
        if is_directory && !is_in_use && node.directory().is_some_and(|names| !names.is_empty()) {
            wrong.add(format!("directory {inode} has no name, and is not empty"));
        }
        if (node.attributes.mode & FORMAT == SYMLINK) != node.target().is_some() {
            wrong.add(format!("file {inode} has a target and is no symbolic link, or is one without a target"));
        }
        let has_contents = !node.extents.as_slice().is_empty() || !self.hot_copy(inode).is_empty();
        if has_contents && !node.is_regular() {
            wrong.add(format!("file {inode} has contents, and is no regular file"));
        }
    }
}
