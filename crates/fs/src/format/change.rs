//! Changes: the only way in which the namespace is altered, both by operations and by the replay of the log.
//!
//! Every change is absolute: it states the new value of an item, not the difference from the old value. So a checkpoint
//! may be taken while changes are made. Replay applies every change since the beginning of the checkpoint, including
//! those that the checkpoint already contains, and the result is the same.
//!
//! A *record* holds the changes of one operation, and their time. After a power cut a record is found whole or not at
//! all.

use super::check_change;
use super::coding::{Decoder, Encoder, Malformed};

/// Number of an inode.
pub type Inode = u32;

/// One more than the largest generation of an inode.
pub const GENERATIONS_END: u64 = 1 << 32;

/// Attributes of a file: everything but its names and contents.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Attributes {
    /// File type and permissions, in the encoding of `st_mode`.
    pub mode: u32,
    /// User ID of the owner.
    pub uid: u32,
    /// ID of the owning group.
    pub gid: u32,
    /// Number of links. A file has one for each name; a directory has 2, and one for each of its subdirectories.
    pub links: u32,
    /// Generation: distinguishes files that had the same inode number one after the other.
    pub generation: u32,
    /// Device number of a device node (`st_rdev`).
    pub rdev: u32,
    /// Parent of a directory; 0 for a file that is no directory.
    pub parent: Inode,
    /// Size of the file in bytes.
    pub size: u64,
    /// Time of the last read, in nanoseconds since 1970.
    pub accessed_ns: i64,
    /// Time of the last change of the contents, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Time of the last change of contents or attributes, in nanoseconds since 1970.
    pub changed_ns: i64,
}

/// Extent: consecutive blocks of a file that are stored one behind the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First block, counted within the file.
    pub at: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// First block on the data device, unless the change that holds the extent says otherwise.
    pub start: u64,
}

impl Extent {
    /// Returns the block of the file behind the extent.
    pub fn end(&self) -> u64 {
        u64::from(self.at) + u64::from(self.blocks)
    }

    /// Returns the part of the extent from block `from` up to, and without, block `to` of the file. Returns `None` if
    /// there is none.
    pub fn within(&self, from: u64, to: u64) -> Option<Extent> {
        let (first, end) = (u64::from(self.at).max(from), self.end().min(to));
        let skipped = first - u64::from(self.at).min(first);
        (first < end).then(|| Extent { at: first as u32, blocks: (end - first) as u32, start: self.start + skipped })
    }
}

/// Zone of an array: a drive, and a zone of that drive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ZoneOf {
    /// Number of the drive in the array.
    pub drive: u8,
    /// Number of the zone on the drive.
    pub zone: u32,
}

/// Zones of a stripe group: first the zones with data, in the order of their columns, then the zones with parity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupLayout {
    /// Sequence of the group: groups are counted as they are opened. No two groups have equal sequences.
    pub sequence: u64,
    /// Number of zones with data.
    pub width: u8,
    /// Zones of the columns, each on a different drive.
    pub members: Vec<ZoneOf>,
}

impl GroupLayout {
    /// Returns the number of zones with parity.
    pub fn parity(&self) -> usize {
        self.members.len() - usize::from(self.width)
    }
}

/// One change of the metadata, such as new attributes of a file or a removed name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Sets the attributes of a file. The file is created if it does not exist.
    Node {
        /// Inode of the file.
        inode: Inode,
        /// Attributes of the file.
        attributes: Attributes,
    },
    /// Removes a file with everything stored for it: attributes, extents, extended attributes, hot copy, preallocated
    /// blocks.
    DropNode {
        /// Inode of the file.
        inode: Inode,
    },
    /// Adds a name to a directory.
    Entry {
        /// Inode of the directory.
        directory: Inode,
        /// Cookie of the name: its position in the directory, from which `readdir` continues.
        cookie: u64,
        /// Inode of the file with this name.
        inode: Inode,
        /// Name to add.
        name: Box<[u8]>,
    },
    /// Removes a name from a directory.
    DropEntry {
        /// Inode of the directory.
        directory: Inode,
        /// Cookie of the name.
        cookie: u64,
    },
    /// Sets all extents of a file.
    Extents {
        /// Inode of the file.
        inode: Inode,
        /// Extents in the order of the file's blocks.
        extents: Vec<Extent>,
    },
    /// Sets the extents of a range of blocks of a file. All other blocks keep their extents.
    Stretch {
        /// Inode of the file.
        inode: Inode,
        /// First block of the range.
        from: u32,
        /// Block behind the range.
        to: u32,
        /// Extents in the order of the file's blocks, all within the range.
        extents: Vec<Extent>,
    },
    /// Sets the target of a symbolic link.
    Target {
        /// Inode of the link.
        inode: Inode,
        /// Path that the link points to.
        target: Box<[u8]>,
    },
    /// Sets an extended attribute of a file.
    Attribute {
        /// Inode of the file.
        inode: Inode,
        /// Name of the attribute.
        name: Box<[u8]>,
        /// Value of the attribute.
        value: Box<[u8]>,
    },
    /// Removes an extended attribute of a file.
    DropAttribute {
        /// Inode of the file.
        inode: Inode,
        /// Name of the attribute.
        name: Box<[u8]>,
    },
    /// Sets the checksums of consecutive blocks of the data device.
    Checksums {
        /// First block.
        block: u64,
        /// Checksums, one for each block.
        sums: Vec<u32>,
    },
    /// Opens a stripe group of an array, or gives an open group other zones.
    Group {
        /// Number of the group, from which the numbers of its blocks follow.
        group: u32,
        /// Zones of the group.
        layout: GroupLayout,
    },
    /// Removes a stripe group and frees its zones.
    DropGroup {
        /// Number of the group.
        group: u32,
    },
    /// Adds a drive that the array was not made with, or removes a drive.
    Drive {
        /// Number of the drive in the array. The drives that the array was made with have the first numbers. No number
        /// is given twice.
        number: u8,
        /// UUID of the drive; 0 if the drive is removed.
        uuid: u128,
        /// Number of the drive that this drive replaces, if there is one.
        replaces: Option<u8>,
    },
    /// Sets all extents of a file's copy in the hot zone. No extents mean that the file has no copy.
    Hot {
        /// Inode of the file.
        inode: Inode,
        /// Extents in the order of the file's blocks. Their `start` is a block of the hot zone.
        extents: Vec<Extent>,
    },
    /// Places a part of the hot zone on a drive of the array.
    HotPart {
        /// Number of the part.
        part: u8,
        /// Number of the drive in the array.
        drive: u8,
        /// Whether the drive has space for the part.
        has_room: bool,
        /// Generation that the part's stamp must have or continue for the part to be valid
        /// ([`crate::format::hot_stamp`]).
        generation: u64,
    },
    /// Sets the numbers of rows written in stripe groups of which some drive has no write pointer. The numbers of rows
    /// of groups that are not listed are unknown.
    Rows {
        /// Pairs of a group's number and its number of rows.
        groups: Vec<(u32, u32)>,
    },
    /// Sets the preallocated blocks within a range of blocks of a file. Blocks outside of the range are unchanged.
    /// Space is reserved for preallocated blocks, and they read as zeros until they are written.
    Preallocated {
        /// Inode of the file.
        inode: Inode,
        /// First block of the range.
        from: u32,
        /// Block behind the range.
        to: u32,
        /// Preallocated blocks within the range, in the order of the file. Their `start` is 0 if the store reserves no
        /// particular blocks for them.
        extents: Vec<Extent>,
    },
    /// Sets the bound below which all sequences of records with the data lie.
    Sequence {
        /// The bound: no record has this sequence or a later one.
        below: u64,
    },
    /// Sets the bound below which all generations lie that were ever given to files.
    Generations {
        /// The bound: neither this generation nor a later one was given.
        below: u64,
    },
    /// Sets the heat of files, for the hot zone. Only checkpoints contain this change, as many times as necessary.
    Heat {
        /// Pairs of an inode and its heat. One read counts [`crate::hot::ACCESS_UNITS`].
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

/// Encoded size of [`Change::Node`] in bytes, tag and inode number included.
pub const NODE_BYTES: u64 = 65;
/// Encoded size of [`Change::Group`] without its zones, in bytes.
pub const GROUP_BYTES: u64 = 18;
/// Encoded size of one zone of [`Change::Group`], in bytes.
pub const GROUP_ZONE_BYTES: u64 = 5;
/// Encoded size of [`Change::Drive`], in bytes.
pub const DRIVE_BYTES: u64 = 19;
/// Encoded size of [`Change::Sequence`], in bytes.
pub const SEQUENCE_BYTES: u64 = 9;
/// Encoded size of [`Change::Generations`], in bytes.
pub const GENERATIONS_BYTES: u64 = 9;
/// Encoded size of [`Change::HotPart`], in bytes.
pub const HOT_PART_BYTES: u64 = 12;
/// Encoded size of [`Change::Rows`] without its groups, in bytes.
pub const ROWS_BYTES: u64 = 5;
/// Encoded size of one group of [`Change::Rows`], in bytes.
pub const ROWS_GROUP_BYTES: u64 = 8;
/// Number that stands for no drive.
const NO_DRIVE: u8 = u8::MAX;
/// Encoded size of [`Change::Entry`] without its name, in bytes.
pub const ENTRY_BYTES: u64 = 21;
/// Encoded size of an extent, in bytes.
pub const EXTENT_BYTES: u64 = 16;
/// Upper bound, in bytes, of the encoded size of a list of extents without the extents. The bound also holds for the
/// target of a link and for an extended attribute, without their bytes.
pub const LIST_BYTES: u64 = 13;
/// Encoded size of the heat of one file, in bytes.
pub const HEAT_BYTES: u64 = 8;
/// Encoded size of [`Change::Stretch`] or [`Change::Preallocated`] without the extents, in bytes.
pub const STRETCH_BYTES: u64 = 17;

impl Change {
    /// Appends the encoded change to `to`.
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

    /// Decodes a change, and checks its numbers ([`check_change::check`]).
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
    /// Appends the encoded layout to `to`.
    pub fn encode(&self, to: &mut Encoder) {
        to.u64(self.sequence);
        to.u8(self.width);
        to.u32(self.members.len() as u32);
        for member in &self.members {
            to.u8(member.drive);
            to.u32(member.zone);
        }
    }

    /// Decodes a layout, and checks its numbers ([`check_change::check_group`]).
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
