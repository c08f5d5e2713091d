//! A directory: names by cookie.

use std::collections::BTreeMap;
use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::format::change::Inode;

/// Cookies below this one are for `.` and `..`.
pub const FIRST_COOKIE: u64 = 16;
/// A name's cookie is its hash, or one of so many behind it.
pub const COOKIES_TRIED: u64 = 64;

/// No name has a cookie from here on: hashes have 62 bits.
pub const COOKIES_END: u64 = (1 << 62) + COOKIES_TRIED;

/// A name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The name.
    pub name: Box<[u8]>,
    /// The file that it is of.
    pub inode: Inode,
}

/// A directory.
#[derive(Clone, Default, Debug)]
pub struct Directory {
    entries: BTreeMap<u64, Entry>,
}

/// The cookies that `name` may have, the first one preferred.
fn cookies(key: (u64, u64), name: &[u8]) -> std::ops::Range<u64> {
    let mut hasher = SipHasher13::new_with_keys(key.0, key.1);
    hasher.write(name);
    // The kernel takes offsets in directories as signed numbers.
    let first = (hasher.finish() >> 2).max(FIRST_COOKIE);
    first..first + COOKIES_TRIED
}

impl Directory {
    /// How many names there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The cookie and the file of `name`.
    pub fn lookup(&self, key: (u64, u64), name: &[u8]) -> Option<(u64, Inode)> {
        let mut near = self.entries.range(cookies(key, name));
        near.find(|(_, entry)| &*entry.name == name).map(|(cookie, entry)| (*cookie, entry.inode))
    }

    /// A free cookie for `name`, if there is one.
    pub fn new_cookie(&self, key: (u64, u64), name: &[u8]) -> Option<u64> {
        cookies(key, name).find(|cookie| !self.entries.contains_key(cookie))
    }

    /// Whether `name` may have `cookie`: whoever looks for it elsewhere does not find it.
    pub fn may_have(key: (u64, u64), name: &[u8], cookie: u64) -> bool {
        cookies(key, name).contains(&cookie)
    }

    /// Puts a name there; gives back what was there.
    pub fn insert(&mut self, cookie: u64, entry: Entry) -> Option<Entry> {
        self.entries.insert(cookie, entry)
    }

    /// Removes the name there.
    pub fn remove(&mut self, cookie: u64) -> Option<Entry> {
        self.entries.remove(&cookie)
    }

    /// The names from `cookie` on, in order of their cookies.
    pub fn entries_from(&self, cookie: u64) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries.range(cookie..).map(|(cookie, entry)| (*cookie, entry))
    }
}
