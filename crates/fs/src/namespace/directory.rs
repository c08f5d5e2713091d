//! A directory: a map from cookies to names.

use std::collections::BTreeMap;
use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::format::change::Inode;
use crate::format::name::{COOKIES_TRIED, FIRST_COOKIE};

/// A name in a directory, with the file that it names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Name as bytes, without `/` and NUL.
    pub name: Box<[u8]>,
    /// Inode number of the file with this name.
    pub inode: Inode,
}

/// Names in a directory, without `.` and `..`, ordered by cookie. The cookie of a name, its position in listings, is a
/// keyed hash of the name. If that is in use, it is the first free one of the next numbers.
#[derive(Clone, Default, Debug)]
pub struct Directory {
    entries: BTreeMap<u64, Entry>,
}

/// Returns the cookies that `name` may have; the first is preferred.
fn cookies(key: (u64, u64), name: &[u8]) -> std::ops::Range<u64> {
    let mut hasher = SipHasher13::new_with_keys(key.0, key.1);
    hasher.write(name);
    // The kernel uses signed offsets in directories.
    let first = (hasher.finish() >> 2).max(FIRST_COOKIE);
    first..first + COOKIES_TRIED
}

impl Directory {
    /// Returns the number of names, without `.` and `..`.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the directory has no names except for `.` and `..`.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the cookie of `name`, its position in listings, and the inode number of its file. Returns `None` if the
    /// directory has no such name. `key` is the SipHash key of the file system.
    pub fn lookup(&self, key: (u64, u64), name: &[u8]) -> Option<(u64, Inode)> {
        let mut near = self.entries.range(cookies(key, name));
        near.find(|(_, entry)| &*entry.name == name).map(|(cookie, entry)| (*cookie, entry.inode))
    }

    /// Returns the first free cookie that `name` may have, or `None` if all of them are in use. The cookie, a hash of
    /// the name or a number shortly behind it, is the position in listings. `key` is the SipHash key of the file
    /// system. Nothing is inserted.
    pub fn new_cookie(&self, key: (u64, u64), name: &[u8]) -> Option<u64> {
        cookies(key, name).find(|cookie| !self.entries.contains_key(cookie))
    }

    /// Returns whether `cookie`, a position in listings, is one of those that `name` may have under the SipHash key
    /// `key`: its hash, or one of the next numbers. [`Directory::lookup`] does not find a name with another cookie.
    pub fn may_have(key: (u64, u64), name: &[u8], cookie: u64) -> bool {
        cookies(key, name).contains(&cookie)
    }

    /// Inserts a name at `cookie`, its position in the order of the directory. Returns the entry that had this cookie
    /// and was replaced, or `None`.
    pub fn insert(&mut self, cookie: u64, entry: Entry) -> Option<Entry> {
        self.entries.insert(cookie, entry)
    }

    /// Removes and returns the entry at `cookie`, a position in the order of the directory. Returns `None` if there is
    /// none.
    pub fn remove(&mut self, cookie: u64) -> Option<Entry> {
        self.entries.remove(&cookie)
    }

    /// Returns the names with cookies (positions in listings) from `cookie` on, inclusive, in ascending order of the
    /// cookies.
    pub fn entries_from(&self, cookie: u64) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries.range(cookie..).map(|(cookie, entry)| (*cookie, entry))
    }
}
