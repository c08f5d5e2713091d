//! Changes: the one way in which the namespace is altered, when an operation is done and when it is found again.
//!
//! Every change is absolute: it says what a thing is now, and not how it differs. So a checkpoint may be taken while
//! changes go on: applying to it every change since its beginning, also those it has already seen, gives the same end.
//!
//! A *record* is what one operation changes, and when: all of it or none is found after a power cut.

use super::check_change;
use super::coding::{Decoder, Encoder, Malformed};

/// An inode's number.
pub type Inode = u32;

/// One more than the largest generation of an inode.
pub const GENERATIONS_END: u64 = 1 << 32;

/// What is known of a file besides its name and contents.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Attributes {
    /// Type and permissions, as `st_mode` has them.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// How many names it has; a directory has 2 and one for each directory in it.
    pub links: u32,
    /// Tells apart files that had the same number one after the other.
    pub generation: u32,
    /// What a device node stands for.
    pub rdev: u32,
    /// The directory that a directory is in; 0 for what is none.
    pub parent: Inode,
    /// Bytes.
    pub size: u64,
    /// Last read, in nanoseconds since 1970.
    pub accessed_ns: i64,
    /// Contents last changed.
    pub modified_ns: i64,
    /// Anything last changed.
    pub changed_ns: i64,
}

/// A run of blocks of a file, and where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First block within the file.
    pub at: u32,
    /// How many.
    pub blocks: u32,
    /// First block on the data device.
    pub start: u64,
}

impl Extent {
    /// The block of the file behind it.
    pub fn end(&self) -> u64 {
        u64::from(self.at) + u64::from(self.blocks)
    }

    /// The part of it in blocks `from` to `to` of the file, if there is one.
    pub fn within(&self, from: u64, to: u64) -> Option<Extent> {
        let (first, end) = (u64::from(self.at).max(from), self.end().min(to));
        let skipped = first - u64::from(self.at).min(first);
        (first < end).then(|| Extent { at: first as u32, blocks: (end - first) as u32, start: self.start + skipped })
    }
}

/// A zone of a drive of an array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ZoneOf {
    /// The number of the drive in the array.
    pub drive: u8,
    /// The number of the zone on it.
    pub zone: u32,
}

/// The zones of a stripe group: first those that hold data, in order of the columns, then those that hold parity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupLayout {
    /// Groups are counted as they are opened; no two have the same number here.
    pub sequence: u64,
    /// How many of the zones hold data.
    pub width: u8,
    /// One zone a column, each on a drive of its own.
    pub members: Vec<ZoneOf>,
}

impl GroupLayout {
    /// How many of the zones hold parity.
    pub fn parity(&self) -> usize {
        self.members.len() - usize::from(self.width)
    }
}

/// What an operation does to one thing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A file is there, and is so.
    Node {
        /// Which.
        inode: Inode,
        /// How it is.
        attributes: Attributes,
    },
    /// A file is gone, with all that belongs to it.
    DropNode {
        /// Which.
        inode: Inode,
    },
    /// A name is there.
    Entry {
        /// In which directory.
        directory: Inode,
        /// Where in it: also what `readdir` goes on from.
        cookie: u64,
        /// Of which file.
        inode: Inode,
        /// The name.
        name: Box<[u8]>,
    },
    /// A name is gone.
    DropEntry {
        /// In which directory.
        directory: Inode,
        /// Where in it.
        cookie: u64,
    },
    /// Where the contents of a file lie, all of them.
    Extents {
        /// Which.
        inode: Inode,
        /// In order of the file.
        extents: Vec<Extent>,
    },
    /// Where blocks of a file lie; what lies behind and before them is as it was.
    Stretch {
        /// Which.
        inode: Inode,
        /// The first of the blocks.
        from: u32,
        /// The block behind them.
        to: u32,
        /// In order of the file, and within these blocks.
        extents: Vec<Extent>,
    },
    /// Where a symbolic link points.
    Target {
        /// Which.
        inode: Inode,
        /// Where to.
        target: Box<[u8]>,
    },
    /// An extended attribute is so.
    Attribute {
        /// Of which file.
        inode: Inode,
        /// Its name.
        name: Box<[u8]>,
        /// Its value.
        value: Box<[u8]>,
    },
    /// An extended attribute is gone.
    DropAttribute {
        /// Of which file.
        inode: Inode,
        /// Its name.
        name: Box<[u8]>,
    },
    /// The checksums of blocks of the data device.
    Checksums {
        /// The first block.
        block: u64,
        /// One a block.
        sums: Vec<u32>,
    },
    /// A stripe group of an array is open, and lies there.
    Group {
        /// Its number: where its blocks begin.
        group: u32,
        /// Where it lies.
        layout: GroupLayout,
    },
    /// A stripe group is gone; its zones are free.
    DropGroup {
        /// Its number.
        group: u32,
    },
    /// An array has a drive that it was not made with, or has one no more.
    Drive {
        /// Its number in the array: those it was made with come first, and none is given twice.
        number: u8,
        /// Its name among devices; 0 where the drive is gone.
        uuid: u128,
        /// The drive in whose place it was put, if it was.
        replaces: Option<u8>,
    },
    /// Where the copy of a file in the hot zone lies, all of it; no extents where it has none.
    Hot {
        /// Which.
        inode: Inode,
        /// In order of the file; `start` is a block of the hot zone.
        extents: Vec<Extent>,
    },
    /// A part of the hot zone that lies on drives is on this one.
    HotPart {
        /// Which part.
        part: u8,
        /// The number of the drive in the array.
        drive: u8,
        /// Whether the drive has room for it.
        has_room: bool,
        /// What the part's stamp says or goes on from, if it is to be believed ([`crate::format::hot_stamp`]).
        generation: u64,
    },
    /// So many rows of these stripe groups are written, where some drive does not tell; nothing is known of any other.
    Rows {
        /// Each by its number, with its rows.
        groups: Vec<(u32, u32)>,
    },
    /// Blocks of a file that are preallocated: room is kept for them, and they hold zeros until they are written. What lies behind
    /// and before these blocks is as it was.
    Preallocated {
        /// Which.
        inode: Inode,
        /// The first of the blocks.
        from: u32,
        /// The block behind them.
        to: u32,
        /// Those of them that are, in order of the file; `start` is 0 where the store keeps no certain blocks for them.
        extents: Vec<Extent>,
    },
    /// Records in the data may have sequences below this one.
    Sequence {
        /// The first that none has.
        below: u64,
    },
    /// Every generation that was ever given to a file is below this one.
    Generations {
        /// The first that was not given.
        below: u64,
    },
    /// How hot files were, for the hot zone; in checkpoints alone, as often as it takes.
    Heat {
        /// Each with its heat, in units of [`crate::hot::ACCESS_UNITS`] for a read.
        files: Vec<(Inode, u32)>,
    },
}

const NODE: u8 = 1;
const DROP_NODE: u8 = 2;
const ENTRY: u8 = 3;
const DROP_ENTRY: u8 = 4;
const EXTENTS: u8 = 5;
const TARGET: u8 = 6;
const ATTRIBUTE: u8 = 7;
const DROP_ATTRIBUTE: u8 = 8;
const CHECKSUMS: u8 = 9;
const GROUP: u8 = 10;
const DROP_GROUP: u8 = 11;
const DRIVE: u8 = 12;
const SEQUENCE: u8 = 13;
const HOT: u8 = 14;
const STRETCH: u8 = 15;
const HEAT: u8 = 16;
const HOT_PART: u8 = 17;
const ROWS: u8 = 18;
const PREALLOCATED: u8 = 19;
const GENERATIONS: u8 = 20;

/// Bytes of a file's attributes on the media, its tag and number included.
pub const NODE_BYTES: u64 = 65;
/// Bytes of a stripe group besides its zones, and of each of those.
pub const GROUP_BYTES: u64 = 18;
/// See [`GROUP_BYTES`].
pub const GROUP_ZONE_BYTES: u64 = 5;
/// Bytes of a drive of an array.
pub const DRIVE_BYTES: u64 = 19;
/// Bytes of the sequence of records.
pub const SEQUENCE_BYTES: u64 = 9;
/// Bytes of the ceiling of generations.
pub const GENERATIONS_BYTES: u64 = 9;
/// Bytes of a part of the hot zone.
pub const HOT_PART_BYTES: u64 = 12;
/// Bytes of what is known of the rows of groups, besides those of each group.
pub const ROWS_BYTES: u64 = 5;
/// See [`ROWS_BYTES`].
pub const ROWS_GROUP_BYTES: u64 = 8;
/// Stands for no drive.
const NO_DRIVE: u8 = u8::MAX;
/// Bytes of an entry besides its name.
pub const ENTRY_BYTES: u64 = 21;
/// Bytes of an extent.
pub const EXTENT_BYTES: u64 = 16;
/// Bytes of a list of extents besides them, of a target or an extended attribute besides its bytes.
pub const LIST_BYTES: u64 = 13;
/// Bytes of the heat of a file.
pub const HEAT_BYTES: u64 = 8;
/// Bytes of a stretch of a file besides its extents.
pub const STRETCH_BYTES: u64 = 17;

impl Change {
    /// Writes it.
    pub fn encode(&self, to: &mut Encoder) {
        match self {
            Change::Node { inode, attributes } => {
                to.u8(NODE);
                to.u32(*inode);
                attributes.encode(to);
            }
            Change::DropNode { inode } => {
                to.u8(DROP_NODE);
                to.u32(*inode);
            }
            Change::Entry { directory, cookie, inode, name } => {
                to.u8(ENTRY);
                to.u32(*directory);
                to.u64(*cookie);
                to.u32(*inode);
                to.bytes(name);
            }
            Change::DropEntry { directory, cookie } => {
                to.u8(DROP_ENTRY);
                to.u32(*directory);
                to.u64(*cookie);
            }
            Change::Extents { inode, extents } => put_extents(to, EXTENTS, *inode, extents),
            Change::Hot { inode, extents } => put_extents(to, HOT, *inode, extents),
            Change::Stretch { inode, from, to: end, extents } => {
                put_stretch(to, STRETCH, *inode, (*from, *end), extents)
            }
            Change::Preallocated { inode, from, to: end, extents } => {
                put_stretch(to, PREALLOCATED, *inode, (*from, *end), extents);
            }
            Change::Target { inode, target } => {
                to.u8(TARGET);
                to.u32(*inode);
                to.bytes(target);
            }
            Change::Attribute { inode, name, value } => {
                to.u8(ATTRIBUTE);
                to.u32(*inode);
                to.bytes(name);
                to.bytes(value);
            }
            Change::DropAttribute { inode, name } => {
                to.u8(DROP_ATTRIBUTE);
                to.u32(*inode);
                to.bytes(name);
            }
            Change::Checksums { block, sums } => {
                to.u8(CHECKSUMS);
                to.u64(*block);
                to.u32(sums.len() as u32);
                sums.iter().for_each(|sum| to.u32(*sum));
            }
            Change::Group { group, layout } => {
                to.u8(GROUP);
                to.u32(*group);
                layout.encode(to);
            }
            Change::DropGroup { group } => {
                to.u8(DROP_GROUP);
                to.u32(*group);
            }
            Change::Drive { number, uuid, replaces } => {
                to.u8(DRIVE);
                to.u8(*number);
                to.u128(*uuid);
                to.u8(replaces.unwrap_or(NO_DRIVE));
            }
            Change::HotPart { part, drive, has_room, generation } => {
                [HOT_PART, *part, *drive, u8::from(*has_room)].into_iter().for_each(|byte| to.u8(byte));
                to.u64(*generation);
            }
            Change::Sequence { below } => {
                to.u8(SEQUENCE);
                to.u64(*below);
            }
            Change::Generations { below } => {
                to.u8(GENERATIONS);
                to.u64(*below);
            }
            Change::Heat { files } => put_pairs(to, HEAT, files),
            Change::Rows { groups } => put_pairs(to, ROWS, groups),
        }
    }

    /// Reads one whose numbers make sense by themselves.
    pub fn decode(from: &mut Decoder<'_>) -> Result<Change, Malformed> {
        let change = Change::read(from)?;
        check_change::check(&change)?;
        Ok(change)
    }

    fn read(from: &mut Decoder<'_>) -> Result<Change, Malformed> {
        Ok(match from.u8()? {
            NODE => Change::Node { inode: from.u32()?, attributes: Attributes::decode(from)? },
            DROP_NODE => Change::DropNode { inode: from.u32()? },
            ENTRY => Change::Entry {
                directory: from.u32()?,
                cookie: from.u64()?,
                inode: from.u32()?,
                name: from.bytes()?.into(),
            },
            DROP_ENTRY => Change::DropEntry { directory: from.u32()?, cookie: from.u64()? },
            EXTENTS => Change::Extents { inode: from.u32()?, extents: get_extents(from)? },
            HOT => Change::Hot { inode: from.u32()?, extents: get_extents(from)? },
            STRETCH => {
                let (inode, extents) = (from.u32()?, get_extents(from)?);
                Change::Stretch { inode, extents, from: from.u32()?, to: from.u32()? }
            }
            PREALLOCATED => {
                let (inode, extents) = (from.u32()?, get_extents(from)?);
                Change::Preallocated { inode, extents, from: from.u32()?, to: from.u32()? }
            }
            TARGET => Change::Target { inode: from.u32()?, target: from.bytes()?.into() },
            ATTRIBUTE => {
                Change::Attribute { inode: from.u32()?, name: from.bytes()?.into(), value: from.bytes()?.into() }
            }
            DROP_ATTRIBUTE => Change::DropAttribute { inode: from.u32()?, name: from.bytes()?.into() },
            CHECKSUMS => {
                let block = from.u64()?;
                let count = from.count(4)?;
                Change::Checksums { block, sums: (0..count).map(|_| from.u32()).collect::<Result<_, _>>()? }
            }
            GROUP => Change::Group { group: from.u32()?, layout: GroupLayout::decode(from)? },
            DROP_GROUP => Change::DropGroup { group: from.u32()? },
            DRIVE => Change::Drive {
                number: from.u8()?,
                uuid: from.u128()?,
                replaces: Some(from.u8()?).filter(|number| *number != NO_DRIVE),
            },
            HOT_PART => Change::HotPart {
                part: from.u8()?,
                drive: from.u8()?,
                has_room: from.u8()? != 0,
                generation: from.u64()?,
            },
            SEQUENCE => Change::Sequence { below: from.u64()? },
            GENERATIONS => Change::Generations { below: from.u64()? },
            HEAT => Change::Heat { files: get_pairs(from)? },
            ROWS => Change::Rows { groups: get_pairs(from)? },
            _ => return Err(Malformed("there is no change of this kind")),
        })
    }
}

fn put_extents(to: &mut Encoder, tag: u8, inode: Inode, extents: &[Extent]) {
    to.u8(tag);
    to.u32(inode);
    to.u32(extents.len() as u32);
    for extent in extents {
        to.u32(extent.at);
        to.u32(extent.blocks);
        to.u64(extent.start);
    }
}

fn put_stretch(to: &mut Encoder, tag: u8, inode: Inode, (from, end): (u32, u32), extents: &[Extent]) {
    put_extents(to, tag, inode, extents);
    to.u32(from);
    to.u32(end);
}

fn get_extents(from: &mut Decoder<'_>) -> Result<Vec<Extent>, Malformed> {
    let count = from.count(EXTENT_BYTES as usize)?;
    (0..count).map(|_| Ok(Extent { at: from.u32()?, blocks: from.u32()?, start: from.u64()? })).collect()
}

fn put_pairs(to: &mut Encoder, tag: u8, pairs: &[(u32, u32)]) {
    to.u8(tag);
    to.u32(pairs.len() as u32);
    for (of, value) in pairs {
        to.u32(*of);
        to.u32(*value);
    }
}

fn get_pairs(from: &mut Decoder<'_>) -> Result<Vec<(u32, u32)>, Malformed> {
    let count = from.count(2 * size_of::<u32>())?;
    (0..count).map(|_| Ok((from.u32()?, from.u32()?))).collect()
}

impl GroupLayout {
    /// Writes it.
    pub fn encode(&self, to: &mut Encoder) {
        to.u64(self.sequence);
        to.u8(self.width);
        to.u32(self.members.len() as u32);
        for member in &self.members {
            to.u8(member.drive);
            to.u32(member.zone);
        }
    }

    /// Reads one.
    pub fn decode(from: &mut Decoder<'_>) -> Result<GroupLayout, Malformed> {
        let (sequence, width) = (from.u64()?, from.u8()?);
        let count = from.count(GROUP_ZONE_BYTES as usize)?;
        let member = |_| Ok(ZoneOf { drive: from.u8()?, zone: from.u32()? });
        let members = (0..count).map(member).collect::<Result<Vec<_>, Malformed>>()?;
        let layout = GroupLayout { sequence, width, members };
        check_change::check_group(&layout)?;
        Ok(layout)
    }
}

impl Attributes {
    fn encode(&self, to: &mut Encoder) {
        for value in [self.mode, self.uid, self.gid, self.links, self.generation, self.rdev, self.parent] {
            to.u32(value);
        }
        to.u64(self.size);
        for time in [self.accessed_ns, self.modified_ns, self.changed_ns] {
            to.u64(time as u64);
        }
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Attributes, Malformed> {
        Ok(Attributes {
            mode: from.u32()?,
            uid: from.u32()?,
            gid: from.u32()?,
            links: from.u32()?,
            generation: from.u32()?,
            rdev: from.u32()?,
            parent: from.u32()?,
            size: from.u64()?,
            accessed_ns: from.u64()? as i64,
            modified_ns: from.u64()? as i64,
            changed_ns: from.u64()? as i64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_kind() -> Vec<Change> {
        let attributes =
            Attributes { mode: 0o100644, size: 1 << 40, modified_ns: -5, links: 3, ..Attributes::default() };
        let name: Box<[u8]> = b"name".as_slice().into();
        let members = [(0, 5), (4, 1 << 20), (2, 9)].map(|(drive, zone)| ZoneOf { drive, zone });
        let extents = vec![Extent { at: 7, blocks: 3, start: 1 << 35 }, Extent { at: 90, blocks: 1, start: 4 }];
        vec![
            Change::Node { inode: 5, attributes },
            Change::DropNode { inode: 6 },
            Change::Entry { directory: 1, cookie: 1 << 61, inode: 5, name: name.clone() },
            Change::DropEntry { directory: 1, cookie: 9 },
            Change::Extents { inode: 5, extents },
            Change::Target { inode: 8, target: b"../x".as_slice().into() },
            Change::Attribute { inode: 5, name: name.clone(), value: vec![0; 300].into() },
            Change::DropAttribute { inode: 5, name },
            Change::Checksums { block: 1 << 33, sums: vec![1, 2, u32::MAX] },
            Change::Group { group: 7, layout: GroupLayout { sequence: 1 << 40, width: 2, members: members.into() } },
            Change::DropGroup { group: 8 },
            Change::Drive { number: 3, uuid: 1 << 99, replaces: Some(1) },
            Change::Sequence { below: 1 << 60 },
            Change::Hot { inode: 5, extents: vec![Extent { at: 7, blocks: 3, start: 1 << 20 }] },
            Change::Stretch { inode: 5, from: 6, to: 1 << 31, extents: vec![Extent { at: 7, blocks: 3, start: 9 }] },
            Change::Heat { files: vec![(7, 256), (8, u32::MAX)] },
            Change::HotPart { part: 2, drive: 5, has_room: true, generation: 1 << 40 },
            Change::Rows { groups: vec![(3, 1), (9, 1 << 20)] },
            Change::Preallocated {
                inode: 5,
                from: 6,
                to: 1 << 31,
                extents: vec![Extent { at: 7, blocks: 3, start: 0 }],
            },
            Change::Generations { below: 1 << 32 },
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        let mut encoder = Encoder::default();
        every_kind().iter().for_each(|change| change.encode(&mut encoder));
        let mut decoder = Decoder::new(&encoder.bytes);
        for change in every_kind() {
            assert_eq!(Change::decode(&mut decoder), Ok(change));
        }
        assert!(decoder.is_done());
    }

    #[test]
    fn what_is_cut_short_is_an_error_and_no_panic() {
        for change in every_kind() {
            let mut encoder = Encoder::default();
            change.encode(&mut encoder);
            for length in 0..encoder.bytes.len() {
                assert!(Change::decode(&mut Decoder::new(&encoder.bytes[..length])).is_err(), "{change:?} at {length}");
            }
        }
    }

    #[test]
    fn lengths_are_as_they_are_reckoned() {
        let length = |change: &Change| {
            let mut encoder = Encoder::default();
            change.encode(&mut encoder);
            encoder.bytes.len() as u64
        };
        let all = every_kind();
        assert_eq!(length(&all[0]), NODE_BYTES);
        assert_eq!(length(&all[2]), ENTRY_BYTES + 4);
        assert!(length(&all[4]) <= LIST_BYTES + 2 * EXTENT_BYTES);
        assert!(length(&all[5]) <= LIST_BYTES + 4);
        assert!(length(&all[6]) <= LIST_BYTES + 304);
        assert_eq!(length(&all[9]), GROUP_BYTES + 3 * GROUP_ZONE_BYTES);
        assert_eq!(length(&all[11]), DRIVE_BYTES);
        assert_eq!(length(&all[12]), SEQUENCE_BYTES);
        assert_eq!(length(&all[14]), STRETCH_BYTES + EXTENT_BYTES);
        assert_eq!(length(&all[16]), HOT_PART_BYTES);
        assert_eq!(length(&all[17]), ROWS_BYTES + 2 * ROWS_GROUP_BYTES);
        assert_eq!(length(&all[18]), STRETCH_BYTES + EXTENT_BYTES);
        assert_eq!(length(&all[19]), GENERATIONS_BYTES);
    }

    #[test]
    fn a_part_of_an_extent_lies_where_it_lay() {
        let extent = Extent { at: 10, blocks: 5, start: 100 };
        assert_eq!(extent.within(0, 10), None);
        assert_eq!(extent.within(12, 99), Some(Extent { at: 12, blocks: 3, start: 102 }));
        assert_eq!(extent.within(0, 11), Some(Extent { at: 10, blocks: 1, start: 100 }));
    }
}
