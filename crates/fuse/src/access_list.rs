//! POSIX access control lists, and their agreement with the mode of a file (acl(5)).
//!
//! The kernel checks accesses by the lists. The file system must do three things: change the mode with a new list,
//! change the list with a new mode, and give a new file a list derived from the default list of its directory.

/// Extended attribute with the list that decides about access.
pub(crate) const ACCESS: &[u8] = b"system.posix_acl_access";
/// Extended attribute of a directory with the list from which new files get theirs.
pub(crate) const DEFAULT: &[u8] = b"system.posix_acl_default";

const VERSION: u32 = 2;
const USER_OBJECT: u16 = 0x01;
const GROUP_OBJECT: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    tag: u16,
    permissions: u16,
    id: u32,
}

/// An access control list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AccessList(Vec<Entry>);

impl AccessList {
    /// Decodes a list in the kernel's format; `None` if the bytes are not a list.
    pub(crate) fn decode(bytes: &[u8]) -> Option<AccessList> {
        let (version, entries) = bytes.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*version) != VERSION || !entries.len().is_multiple_of(8) {
            return None;
        }
        let entry = |bytes: &[u8]| Entry {
            tag: u16::from_le_bytes([bytes[0], bytes[1]]),
            permissions: u16::from_le_bytes([bytes[2], bytes[3]]),
            id: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        };
        Some(AccessList(entries.chunks(8).map(entry).collect()))
    }

    /// Returns the list in the kernel's format.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for entry in &self.0 {
            bytes.extend_from_slice(&entry.tag.to_le_bytes());
            bytes.extend_from_slice(&entry.permissions.to_le_bytes());
            bytes.extend_from_slice(&entry.id.to_le_bytes());
        }
        bytes
    }

    /// Returns whether the list has no more information than a mode.
    pub(crate) fn is_minimal(&self) -> bool {
        self.0.iter().all(|entry| matches!(entry.tag, USER_OBJECT | GROUP_OBJECT | OTHER))
    }

    fn find(&mut self, tag: u16) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| entry.tag == tag)
    }

    /// Returns the tag of the entry to which the group bits of a mode refer: the mask if there is one.
    fn group_tag(&self) -> u16 {
        let has_mask = self.0.iter().any(|entry| entry.tag == MASK);
        if has_mask { MASK } else { GROUP_OBJECT }
    }

    /// Returns the nine permission bits of a mode that correspond to the list.
    pub(crate) fn mode(&self) -> u32 {
        let of = |tag| self.0.iter().find(|entry| entry.tag == tag).map_or(0, |entry| u32::from(entry.permissions & 7));
        of(USER_OBJECT) << 6 | of(self.group_tag()) << 3 | of(OTHER)
    }

    /// Returns the list after chmod(2) to `mode`.
    pub(crate) fn with_mode(mut self, mode: u32) -> AccessList {
        let group = self.group_tag();
        for (tag, shift) in [(USER_OBJECT, 6), (group, 3), (OTHER, 0)] {
            if let Some(entry) = self.find(tag) {
                entry.permissions = (mode >> shift & 7) as u16;
            }
        }
        self
    }

    /// Returns the list and the mode of a file that is created with `mode` in a directory with this default list.
    pub(crate) fn for_new(self, mode: u32) -> (AccessList, u32) {
        let allowed = self.mode() & mode & 0o777;
        (self.with_mode(allowed), mode & !0o777 | allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u16, u16)]) -> AccessList {
        AccessList(entries.iter().map(|&(tag, permissions)| Entry { tag, permissions, id: u32::MAX }).collect())
    }

    const USER: u16 = 0x02;

    #[test]
    fn it_is_read_as_it_was_written_and_nonsense_is_refused() {
        let full = list(&[(USER_OBJECT, 7), (USER, 5), (GROUP_OBJECT, 4), (MASK, 6), (OTHER, 1)]);
        assert_eq!(AccessList::decode(&full.encode()), Some(full));
        for bytes in [&b""[..], b"\x02\0\0\0abc", b"\x01\0\0\0"] {
            assert_eq!(AccessList::decode(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn the_middle_bits_are_the_mask() {
        let full = list(&[(USER_OBJECT, 7), (USER, 5), (GROUP_OBJECT, 4), (MASK, 6), (OTHER, 1)]);
        assert_eq!((full.mode(), full.is_minimal()), (0o761, false));
        let changed = full.with_mode(0o640);
        assert_eq!(changed, list(&[(USER_OBJECT, 6), (USER, 5), (GROUP_OBJECT, 4), (MASK, 4), (OTHER, 0)]));
        let minimal = list(&[(USER_OBJECT, 6), (GROUP_OBJECT, 4), (OTHER, 4)]);
        assert_eq!((minimal.mode(), minimal.is_minimal()), (0o644, true));
    }

    /// Checks acl(5), *object creation and default ACLs*: a new file has the permissions that both the default list and
    /// the mode have.
    #[test]
    fn what_is_made_gets_what_both_the_list_and_the_mode_allow() {
        let default = list(&[(USER_OBJECT, 7), (USER, 7), (GROUP_OBJECT, 7), (MASK, 5), (OTHER, 0)]);
        let (given, mode) = default.for_new(0o102_664);
        assert_eq!(mode, 0o102_640);
        assert_eq!(given, list(&[(USER_OBJECT, 6), (USER, 7), (GROUP_OBJECT, 7), (MASK, 4), (OTHER, 0)]));
    }
}
