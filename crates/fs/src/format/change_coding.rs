//! Encoding of changes, and the checks of decoded ones ([`super::check_change`]).

use super::change::{Attributes, Change, EXTENT_BYTES, Extent, GROUP_ZONE_BYTES, GroupLayout, Inode, ZoneOf};
use super::check_change;
use super::coding::{Decoder, Encoder, Malformed};

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

/// Number that stands for no drive.
const NO_DRIVE: u8 = u8::MAX;

impl Change {
    /// Appends the encoding of the change to the bytes of `to`.
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
    ///
    /// # Errors
    /// The bytes end within the change, its kind is unknown, or the check found a wrong value.
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
    /// Appends the encoding of the layout to the bytes of `to`.
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
    ///
    /// # Errors
    /// The bytes end within the layout, or the check found a wrong value.
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
    use crate::format::change::{
        DRIVE_BYTES, ENTRY_BYTES, GENERATIONS_BYTES, GROUP_BYTES, HOT_PART_BYTES, LIST_BYTES, NODE_BYTES, ROWS_BYTES,
        ROWS_GROUP_BYTES, SEQUENCE_BYTES, STRETCH_BYTES,
    };

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
}
