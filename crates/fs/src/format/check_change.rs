//! Checks of the numbers of a change that need no other state: valid names, extents in order, no overflow.
//! `crate::core` checks the numbers against other state, such as the number of blocks of the device.

use super::change::{Attributes, Change, Extent, GENERATIONS_END, GroupLayout, Inode};
use super::coding::Malformed;
use super::file_type::is_file_type;
use super::limits::COUNT_END;
use super::name::{COOKIES_END, FIRST_COOKIE, is_name};
use super::shape::{DRIVES_MAX, PARITY_MAX};
use crate::device::BLOCK_BYTES;

/// Maximum size of a file in bytes: 2³² − 1 blocks of 4 KiB, since its blocks are counted in 32 bits.
pub const SIZE_MAX: u64 = (u32::MAX as u64) * BLOCK_BYTES as u64;

/// Checks the numbers of a change as far as no other state is needed: names, inode numbers, extents, generations. The
/// zones of a stripe group are not checked here, but by [`check_group`].
///
/// # Errors
/// The first wrong value that was found. The error names it.
pub fn check(change: &Change) -> Result<(), Malformed> {
    let wrong = |what| Err(Malformed(what));
    match change {
        Change::Node { inode, attributes } => check_file(*inode).and_then(|()| check_attributes(attributes)),
        Change::DropNode { inode } => check_file(*inode),
        Change::Entry { directory, cookie, inode, name } => {
            check_file(*directory).and_then(|()| check_file(*inode))?;
            if !is_name(name) {
                return wrong("a name that is empty, too long, '.', '..', or has '/' or NUL in it");
            }
            check_cookie(*cookie)
        }
        Change::DropEntry { directory, .. } => check_file(*directory),
        Change::Extents { inode, extents } | Change::Hot { inode, extents } => {
            check_file(*inode).and_then(|()| check_extents(extents))
        }
        Change::Stretch { inode, from, to, extents } | Change::Preallocated { inode, from, to, extents } => {
            check_file(*inode).and_then(|()| check_extents(extents))?;
            let is_within = extents.iter().all(|extent| extent.at >= *from && extent.end() <= u64::from(*to));
            if is_within && from <= to {
                Ok(())
            } else {
                wrong("pieces of a file outside of the blocks that they are of")
            }
        }
        Change::Target { inode, .. } => check_file(*inode),
        Change::Attribute { inode, name, .. } | Change::DropAttribute { inode, name } => {
            check_file(*inode)?;
            if name.is_empty() { wrong("an extended attribute without a name") } else { Ok(()) }
        }
        Change::Checksums { block, sums } => match block.checked_add(sums.len() as u64) {
            Some(_) => Ok(()),
            None => wrong("checksums of blocks beyond all devices"),
        },
        Change::Drive { number, replaces, .. } if *number == u8::MAX || *replaces == Some(*number) => {
            wrong("the number of a drive")
        }
        Change::HotPart { part, generation, .. } if usize::from(*part) > DRIVES_MAX || *generation >= COUNT_END => {
            wrong("a part of the hot zone")
        }
        Change::Generations { below } if *below > GENERATIONS_END => wrong("the generations of files"),
        Change::Sequence { below } if *below >= COUNT_END => wrong("the sequence of records"),
        _ => Ok(()),
    }
}

fn check_file(inode: Inode) -> Result<(), Malformed> {
    if inode > 0 { Ok(()) } else { Err(Malformed("a file of number 0")) }
}

fn check_cookie(cookie: u64) -> Result<(), Malformed> {
    if (FIRST_COOKIE..COOKIES_END).contains(&cookie) { Ok(()) } else { Err(Malformed("the place of a name")) }
}

fn check_attributes(attributes: &Attributes) -> Result<(), Malformed> {
    if !is_file_type(attributes.mode) {
        return Err(Malformed("the type of a file"));
    }
    if attributes.size > SIZE_MAX { Err(Malformed("the size of a file")) } else { Ok(()) }
}

/// Checks that extents are in order and not empty, and that neither the blocks of the file nor those of the device
/// overflow.
fn check_extents(extents: &[Extent]) -> Result<(), Malformed> {
    let is_sound = |extent: &Extent| {
        extent.blocks > 0
            && extent.end() <= u64::from(u32::MAX)
            && extent.start.checked_add(u64::from(extent.blocks)).is_some()
    };
    let are_in_order = extents.windows(2).all(|pair| pair[0].end() <= u64::from(pair[1].at));
    if are_in_order && extents.iter().all(is_sound) { Ok(()) } else { Err(Malformed("the pieces of a file")) }
}

/// Checks the layout of a stripe group: at least one of its zones holds data, it has at most 19 zones ([`DRIVES_MAX`] +
/// [`PARITY_MAX`]), each on a different drive, `width` is at most the number of zones, and the sequence is below 2⁶³.
///
/// # Errors
/// One of these conditions is not met.
pub fn check_group(layout: &GroupLayout) -> Result<(), Malformed> {
    let (members, width) = (&layout.members, usize::from(layout.width));
    let columns_max = DRIVES_MAX + usize::from(PARITY_MAX);
    if width == 0 || width > members.len() || members.len() > columns_max || layout.sequence >= COUNT_END {
        return Err(Malformed("the width of a stripe group"));
    }
    let is_on_one = |at: usize| members[..at].iter().any(|other| other.drive == members[at].drive);
    if (0..members.len()).any(is_on_one) { Err(Malformed("a stripe group with two zones of a drive")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::change::ZoneOf;
    use crate::format::coding::{Decoder, Encoder};
    use crate::format::file_type::REGULAR;

    /// Returns whether the encoded change is decoded without an error.
    fn is_read(change: &Change) -> bool {
        let mut encoder = Encoder::default();
        change.encode(&mut encoder);
        Change::decode(&mut Decoder::new(&encoder.bytes)).is_ok()
    }

    fn attributes(mode: u32, size: u64) -> Change {
        Change::Node { inode: 5, attributes: Attributes { mode, size, ..Attributes::default() } }
    }

    #[test]
    fn sizes_and_types_are_those_of_files() {
        // 2^32 - 1 blocks of 4 KiB.
        let most = 17_592_186_040_320;
        assert!(is_read(&attributes(REGULAR, most)) && !is_read(&attributes(REGULAR, most + 1)));
        assert!(!is_read(&attributes(REGULAR, 1 << 50)));
        // The seven types of inode(7).
        let types = (0..16).filter(|kind| is_read(&attributes(kind << 12, 0))).collect::<Vec<u32>>();
        assert_eq!(types, [0o01, 0o02, 0o04, 0o06, 0o10, 0o12, 0o14]);
        assert!(!is_read(&Change::Node {
            inode: 0,
            attributes: Attributes { mode: REGULAR, ..Attributes::default() }
        }));
    }

    #[test]
    fn a_name_is_one_that_a_path_can_have() {
        let entry = |name: &[u8]| Change::Entry { directory: 1, cookie: 99, inode: 5, name: name.into() };
        for name in [&b"a"[..], b"...", b".a", b"..a", &[b'n'; 255], b"\xFF\x01"] {
            assert!(is_read(&entry(name)), "{name:?}");
        }
        for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0", &[b'n'; 256]] {
            assert!(!is_read(&entry(name)), "{name:?}");
        }
        // Offsets of directories are signed numbers, and 0 to 15 are reserved for '.' and '..'.
        for cookie in [0, 15, 1 << 63, u64::MAX] {
            assert!(!is_read(&Change::Entry { directory: 1, cookie, inode: 5, name: b"a".as_slice().into() }));
        }
    }

    #[test]
    fn pieces_are_in_order_and_run_over_nothing() {
        let extents = |all: &[(u32, u32, u64)]| Change::Extents {
            inode: 5,
            extents: all.iter().map(|&(at, blocks, start)| Extent { at, blocks, start }).collect(),
        };
        assert!(is_read(&extents(&[(0, 3, 9), (3, 1, 5), (u32::MAX - 1, 1, u64::MAX - 1)])));
        let wrong: [&[(u32, u32, u64)]; 5] = [
            &[(0, 0, 9)],
            &[(0, 3, 9), (2, 1, 50)],
            &[(5, 1, 9), (0, 1, 8)],
            &[(u32::MAX, 1, 9)],
            &[(0, 2, u64::MAX - 1)],
        ];
        for wrong in wrong {
            assert!(!is_read(&extents(wrong)), "{wrong:?}");
        }
        let stretch =
            |from, to| Change::Stretch { inode: 5, from, to, extents: vec![Extent { at: 4, blocks: 2, start: 9 }] };
        assert!(is_read(&stretch(4, 6)) && !is_read(&stretch(5, 6)) && !is_read(&stretch(4, 5)));
    }

    #[test]
    fn a_group_has_a_drive_for_each_column() {
        let group = |width, drives: &[u8]| {
            let members = drives.iter().map(|&drive| ZoneOf { drive, zone: 4 }).collect();
            Change::Group { group: 1, layout: GroupLayout { sequence: 3, width, members } }
        };
        assert!(is_read(&group(2, &[0, 4, 2])) && is_read(&group(1, &[7])));
        assert!(!is_read(&group(0, &[0, 4, 2])) && !is_read(&group(4, &[0, 4, 2])) && !is_read(&group(2, &[0, 4, 0])));
        assert!(!is_read(&group(2, &(0..20).collect::<Vec<u8>>())));
    }

    #[test]
    fn what_is_counted_has_room_to_go_on() {
        assert!(is_read(&Change::Sequence { below: 1 << 62 }) && !is_read(&Change::Sequence { below: u64::MAX - 1 }));
        let sums = vec![1; 3];
        assert!(is_read(&Change::Checksums { block: u64::MAX - 3, sums: sums.clone() }));
        assert!(!is_read(&Change::Checksums { block: u64::MAX - 2, sums }));
        assert!(!is_read(&Change::Drive { number: 3, uuid: 1, replaces: Some(3) }));
    }
}
