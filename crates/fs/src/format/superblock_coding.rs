//! Encoding of superblocks in the present format, and decoding of the present and earlier formats.

use uuid::Uuid;

use super::check_superblock;
use super::coding::{Decoder, Encoder, Malformed, seal, unseal};
use super::hot_part::{HotPart, room_on};
use super::shape::Shape;
use super::superblock::{FORMAT, LastDurable, Layout, MIRRORS_MAX, Member, Role, Standing, Superblock};
use crate::device::area::Place;
use crate::device::{BLOCK_BYTES, Geometry, Kind};

const MAGIC: &[u8; 8] = b"imbrexfs";
/// Oldest format that can be read.
const VERSION: u32 = 2;
/// First format in which the superblock says which copies of the metadata are up to date, and lists mirrors and spares.
const VERSION_MIRRORED: u32 = 3;
/// First format in which the superblock has the place of the hot zone.
const VERSION_HOT: u32 = 4;
/// First format in which the superblock lists the parts of the hot zone on drives.
const VERSION_HOT_DRIVES: u32 = 7;
/// First format in which each writable mount begins a generation, superblocks record how far the log and the
/// checkpoints reach, and pages of checksums have stamps.
const VERSION_LAST_DURABLE: u32 = 9;
/// Number that stands for no part of the hot zone.
const NO_PART: u8 = u8::MAX;
/// Encoded size of a part of the hot zone, in bytes.
const HOT_PART_BYTES: usize = 9;

impl Superblock {
    /// Returns the superblock as a block of 4096 bytes with a checksum, in format [`FORMAT`].
    ///
    /// # Panics
    /// The superblock does not fit into a block, for example because its options are too long.
    pub fn encode(&self) -> Vec<u8> {
        seal(MAGIC, FORMAT, |to| self.encode_rest(to))
    }

    fn encode_rest(&self, to: &mut Encoder) {
        to.u128(self.uuid.as_u128());
        to.u32(self.member);
        to.bytes(self.store.as_bytes());
        to.u32(self.options.len() as u32);
        for (key, value) in &self.options {
            to.bytes(key.as_bytes());
            to.bytes(value.as_bytes());
        }
        put_pair(to, self.data);
        put_layout(to, &self.layout);
        to.u32(self.members.len() as u32);
        self.members.iter().for_each(|member| put_member(to, member));
        put_shape(to, self.shape);
        put_standing(to, &self.standing);
        put_pair(to, self.layout.hot);
        to.u32(self.hot_parts.len() as u32);
        for part in &self.hot_parts {
            to.u8(part.drive);
            to.u64(part.blocks);
        }
        to.u8(self.taken_part.unwrap_or(NO_PART));
        to.u64(self.standing.since);
        to.u64(self.last_durable.checkpoint);
        to.u64(self.last_durable.frame);
        to.u8(u8::from(self.last_durable.is_closed));
        to.u64(self.writes);
    }

    /// Returns whether a block begins with the magic number of a superblock. The rest of the block is not checked.
    pub fn is_named(block: &[u8]) -> bool {
        block.starts_with(MAGIC)
    }

    /// Returns the format of the intact superblock in `block` if this program does not know that format: a newer or a
    /// very old program wrote it, and it is not damaged. `None` for any other block.
    pub fn unknown_format(block: &[u8]) -> Option<u32> {
        unseal(MAGIC, block).map(|(version, _)| version).filter(|version| !(VERSION..=FORMAT).contains(version))
    }

    /// Decodes a superblock and checks that its numbers agree with each other.
    ///
    /// # Errors
    /// A message for the user: the block holds no superblock, a damaged one, one of an unknown format, or impossible
    /// values.
    pub fn decode(block: &[u8]) -> Result<Superblock, String> {
        if block.len() < BLOCK_BYTES || &block[..8] != MAGIC {
            return Err("holds no file system of Imbrex; make one with `imbrex fs mkfs`".into());
        }
        let unsealed = unseal(MAGIC, block);
        let (version, mut from) = unsealed.ok_or("its superblock is damaged: it does not match its checksum")?;
        if !(VERSION..=FORMAT).contains(&version) {
            let advice = if version > FORMAT {
                "use a newer imbrex"
            } else {
                "copy its files with the version of this program that made it, and make it anew"
            };
            let known = format!("{VERSION} to {FORMAT}");
            return Err(format!("has format {version}; this program reads formats {known}: {advice}"));
        }
        decode_rest(&mut from, version).map_err(|error| format!("its superblock makes no sense: {error}"))
    }
}

fn decode_rest(from: &mut Decoder<'_>, version: u32) -> Result<Superblock, Malformed> {
    let uuid = Uuid::from_u128(from.u128()?);
    let member = from.u32()?;
    let store = text(from)?;
    let count = from.count(8)?;
    let options = (0..count).map(|_| Ok((text(from)?, text(from)?))).collect::<Result<_, Malformed>>()?;
    let data = pair(from)?;
    let layout = layout(from)?;
    let count = from.count(16)?;
    let members = (0..count).map(|_| get_member(from)).collect::<Result<Vec<_>, Malformed>>()?;
    let has = |wanted: Role| members.iter().any(|member| member.role == wanted || member.role == Role::Both);
    if member as usize >= members.len() || !has(Role::Data) || !has(Role::Metadata) {
        return Err(Malformed("its list of devices"));
    }
    let shape = get_shape(from)?;
    let mut superblock = Superblock {
        uuid,
        member,
        store,
        options,
        data,
        layout,
        members,
        shape,
        standing: Standing::default(),
        last_durable: LastDurable::default(),
        writes: 0,
        hot_parts: Vec::new(),
        taken_part: None,
        format: version,
    };
    let copies = superblock.metadata_members().len();
    superblock.standing = if version >= VERSION_MIRRORED { get_standing(from, copies)? } else { Standing::of(copies) };
    if version >= VERSION_HOT {
        superblock.layout.hot = pair(from)?;
        let Layout { place, hot, .. } = superblock.layout;
        if hot.0.checked_add(hot.1).is_none_or(|end| end > place.blocks) {
            return Err(Malformed("the place of its hot zone"));
        }
    }
    if version >= VERSION_HOT_DRIVES {
        superblock.hot_parts = get_hot_parts(from, &superblock)?;
        superblock.taken_part = Some(from.u8()?).filter(|part| usize::from(*part) < superblock.hot_parts.len());
    }
    if version >= VERSION_LAST_DURABLE {
        superblock.standing.since = from.u64()?;
        superblock.last_durable =
            LastDurable { checkpoint: from.u64()?, frame: from.u64()?, is_closed: from.u8()? == 1 };
        superblock.writes = from.u64()?;
        if superblock.standing.since > superblock.standing.generation {
            return Err(Malformed("the generation of its metadata"));
        }
    }
    check_superblock::check(&superblock)?;
    Ok(superblock)
}

/// Decodes the parts of the hot zone. Checks that each is on a different drive with space for it, and that no other hot
/// zone exists.
fn get_hot_parts(from: &mut Decoder<'_>, superblock: &Superblock) -> Result<Vec<HotPart>, Malformed> {
    let count = from.count(HOT_PART_BYTES)?;
    let part = |_| Ok(HotPart { drive: from.u8()?, blocks: from.u64()? });
    let parts = (0..count).map(part).collect::<Result<Vec<HotPart>, Malformed>>()?;
    let drives = superblock.data_members();
    let fits = |part: &HotPart| {
        let drive = drives.get(usize::from(part.drive)).map(|&member| superblock.members[member]);
        drive.is_some_and(|drive| drive.role == Role::Data && (1..=room_on(&drive.geometry)).contains(&part.blocks))
    };
    let is_single = |part: &HotPart| parts.iter().filter(|other| other.drive == part.drive).count() == 1;
    let may_be = parts.is_empty() || (superblock.shape.is_some() && superblock.layout.hot.1 == 0);
    if !may_be || !parts.iter().all(|part| fits(part) && is_single(part)) {
        return Err(Malformed("the parts of its hot zone"));
    }
    Ok(parts)
}

fn put_standing(to: &mut Encoder, standing: &Standing) {
    to.u64(standing.generation);
    to.u32(standing.known.len() as u32);
    standing.known.iter().for_each(|known| to.u64(*known));
}

fn get_standing(from: &mut Decoder<'_>, copies: usize) -> Result<Standing, Malformed> {
    let generation = from.u64()?;
    let known = (0..from.count(8)?).map(|_| from.u64()).collect::<Result<Vec<u64>, Malformed>>()?;
    if known.len() != copies || copies > MIRRORS_MAX || known.iter().any(|known| *known > generation) {
        return Err(Malformed("which copies of its metadata are up to date"));
    }
    Ok(Standing { generation, since: generation, known })
}

/// Encodes the shape of an array. Zeros stand for no shape, so that superblocks of other stores keep their encoding.
fn put_shape(to: &mut Encoder, shape: Option<Shape>) {
    let shape = shape.unwrap_or(Shape { parity: 0, width: 0, zone_blocks: 0, groups: 0 });
    to.u8(shape.parity);
    to.u8(shape.width);
    to.u64(shape.zone_blocks);
    to.u32(shape.groups);
}

fn get_shape(from: &mut Decoder<'_>) -> Result<Option<Shape>, Malformed> {
    let shape = Shape { parity: from.u8()?, width: from.u8()?, zone_blocks: from.u64()?, groups: from.u32()? };
    if shape.width == 0 {
        return Ok(None);
    }
    let stride = shape.zone_blocks.checked_mul(u64::from(shape.width));
    if shape.zone_blocks < 2 || stride.and_then(|stride| stride.checked_mul(u64::from(shape.groups))).is_none() {
        return Err(Malformed("the shape of its array"));
    }
    Ok(Some(shape))
}

fn text(from: &mut Decoder<'_>) -> Result<String, Malformed> {
    String::from_utf8(from.bytes()?.to_vec()).map_err(|_| Malformed("a text"))
}

fn put_pair(to: &mut Encoder, (first, blocks): (u64, u64)) {
    to.u64(first);
    to.u64(blocks);
}

fn pair(from: &mut Decoder<'_>) -> Result<(u64, u64), Malformed> {
    let (first, blocks) = (from.u64()?, from.u64()?);
    first.checked_add(blocks).ok_or(Malformed("a range of blocks"))?;
    Ok((first, blocks))
}

fn put_layout(to: &mut Encoder, layout: &Layout) {
    let Place { first, blocks, island, gap } = layout.place;
    put_pair(to, (first, blocks));
    put_pair(to, (island, gap));
    for part in [layout.checksums, layout.log, layout.checkpoints[0], layout.checkpoints[1]] {
        put_pair(to, part);
    }
}

fn layout(from: &mut Decoder<'_>) -> Result<Layout, Malformed> {
    let ((first, blocks), (island, gap)) = (pair(from)?, pair(from)?);
    let parts = [pair(from)?, pair(from)?, pair(from)?, pair(from)?];
    if island == 0 || parts.iter().any(|(first, count)| first + count > blocks) {
        return Err(Malformed("the layout of its metadata"));
    }
    let place = Place { first, blocks, island, gap };
    Ok(Layout { place, checksums: parts[0], log: parts[1], checkpoints: [parts[2], parts[3]], hot: (0, 0) })
}

fn put_member(to: &mut Encoder, member: &Member) {
    to.u128(member.uuid.as_u128());
    to.u8(match member.role {
        Role::Both => 0,
        Role::Data => 1,
        Role::Metadata => 2,
        Role::Spare => 3,
    });
    to.u64(member.geometry.blocks);
    match member.geometry.kind {
        Kind::Plain => to.u8(0),
        Kind::Zoned { zone_blocks, zones, conventional, active_max } => {
            to.u8(1);
            to.u64(zone_blocks);
            to.u32(zones);
            to.u32(conventional);
            to.u32(active_max.unwrap_or(0));
        }
        Kind::Caveat { isolation, no_overlap } => {
            to.u8(2);
            put_pair(to, (isolation, no_overlap));
        }
    }
}

fn get_member(from: &mut Decoder<'_>) -> Result<Member, Malformed> {
    let uuid = Uuid::from_u128(from.u128()?);
    let role = match from.u8()? {
        0 => Role::Both,
        1 => Role::Data,
        2 => Role::Metadata,
        3 => Role::Spare,
        _ => return Err(Malformed("what a device is for")),
    };
    let blocks = from.u64()?;
    let kind = match from.u8()? {
        0 => Kind::Plain,
        1 => Kind::Zoned {
            zone_blocks: from.u64()?,
            zones: from.u32()?,
            conventional: from.u32()?,
            active_max: Some(from.u32()?).filter(|&max| max > 0),
        },
        2 => {
            let (isolation, no_overlap) = pair(from)?;
            Kind::Caveat { isolation, no_overlap }
        }
        _ => return Err(Malformed("the kind of a device")),
    };
    let member = Member { uuid, role, geometry: Geometry { blocks, kind } };
    check_superblock::check_member(&member)?;
    Ok(member)
}

#[cfg(test)]
mod tests {
    use super::super::coding::put_seal;
    use super::*;

    fn example() -> Superblock {
        let kind = Kind::Zoned { zone_blocks: 4096, zones: 64, conventional: 4, active_max: Some(7) };
        let data = Member { uuid: Uuid::from_u128(5), role: Role::Data, geometry: Geometry { blocks: 1 << 18, kind } };
        let geometry = Geometry { blocks: 5000, kind: Kind::Caveat { isolation: 16, no_overlap: 6 } };
        let metadata = Member { uuid: Uuid::from_u128(6), role: Role::Metadata, geometry };
        Superblock {
            uuid: Uuid::from_u128(99),
            member: 1,
            store: "log".into(),
            options: vec![("cleaner".into(), "greedy".into())],
            data: (0, 3 * 4095),
            layout: Layout {
                place: Place::islands(400, 6, 16),
                checksums: (2, 30),
                log: (32, 80),
                checkpoints: [(112, 138), (250, 138)],
                hot: (0, 0),
            },
            members: vec![data, metadata],
            shape: Some(Shape { parity: 0, width: 1, zone_blocks: 4096, groups: 3 }),
            standing: Standing::of(1),
            last_durable: LastDurable::default(),
            writes: 0,
            hot_parts: Vec::new(),
            taken_part: None,
            format: FORMAT,
        }
    }

    /// Returns the block with the version of an older format. The decoder ignores the bytes behind the fields of that
    /// format.
    fn in_format(block: &[u8], version: u32) -> Vec<u8> {
        let mut block = block.to_vec();
        block[8..12].copy_from_slice(&version.to_le_bytes());
        put_seal(&mut block);
        block
    }

    #[test]
    fn older_formats_are_read_and_unknown_ones_are_not() {
        let read = |superblock: &Superblock, version| Superblock::decode(&in_format(&superblock.encode(), version));
        assert_eq!(read(&example(), 2), Ok(Superblock { format: 2, ..example() }));
        assert_eq!(read(&mirrored(), 3), Ok(Superblock { format: 3, ..mirrored() }));
        assert_eq!(read(&with_hot_zone(), 4), Ok(Superblock { format: 4, ..with_hot_zone() }));
        assert_eq!(read(&with_hot_zone(), 5), Ok(Superblock { format: 5, ..with_hot_zone() }));
        assert_eq!(read(&with_hot_zone(), 6), Ok(Superblock { format: 6, ..with_hot_zone() }));
        assert_eq!(read(&on_drives(&[(0, 9)]), 6), Ok(Superblock { format: 6, ..mirrored() }), "it knows no parts");
        assert_eq!(read(&on_drives(&[(0, 9)]), 7), Ok(Superblock { format: 7, ..on_drives(&[(0, 9)]) }));
        let again = Superblock { format: 3, ..mirrored() };
        assert_eq!(Superblock::decode(&again.encode()), Ok(mirrored()), "a superblock is written in the newest format");
        assert!(read(&example(), 1).is_err_and(|why| why.contains("format 1") && why.contains("make it anew")));
        assert!(read(&example(), 10).is_err_and(|why| why.contains("format 10") && why.contains("use a newer imbrex")));
        assert_eq!(
            read(&with_last_durable(), 8),
            Ok(Superblock { format: 8, ..mirrored() }),
            "format 8 has no such fields"
        );
    }

    fn mirrored() -> Superblock {
        let mut members = example().members;
        members.push(Member { uuid: Uuid::from_u128(7), ..members[1] });
        members.push(Member { uuid: Uuid::from_u128(8), role: Role::Spare, ..members[0] });
        Superblock { members, standing: Standing { generation: 9, since: 9, known: vec![9, 4] }, ..example() }
    }

    fn with_last_durable() -> Superblock {
        let standing = Standing { since: 8, ..mirrored().standing };
        let last_durable = LastDurable { checkpoint: 77, frame: 1 << 40, is_closed: true };
        Superblock { standing, last_durable, writes: 5, ..mirrored() }
    }

    fn with_hot_zone() -> Superblock {
        let layout = Layout { hot: (390, 10), ..example().layout };
        Superblock { layout, ..mirrored() }
    }

    fn on_drives(parts: &[(u8, u64)]) -> Superblock {
        let hot_parts = parts.iter().map(|&(drive, blocks)| HotPart { drive, blocks }).collect();
        Superblock { hot_parts, ..mirrored() }
    }

    #[test]
    fn parts_of_the_hot_zone_are_on_drives_that_have_room_for_them() {
        let read = |superblock: &Superblock| Superblock::decode(&superblock.encode());
        // Four conventional zones of 4,096 blocks, minus two superblocks and a stamp.
        assert_eq!(read(&on_drives(&[(0, 16_381)])), Ok(on_drives(&[(0, 16_381)])));
        assert_eq!((on_drives(&[(0, 16_381)]).first_zone(0, 4096), mirrored().first_zone(0, 4096)), (4, 1));
        for wrong in [&[(0, 16_382)][..], &[(0, 0)], &[(1, 5)], &[(0, 5), (0, 5)]] {
            assert!(read(&on_drives(wrong)).is_err(), "{wrong:?}");
        }
        let taken = Superblock { taken_part: Some(0), ..on_drives(&[(0, 9000)]) };
        assert_eq!((read(&taken), taken.own_first_zone(4096)), (Ok(taken.clone()), 3));
        let both = Superblock { layout: with_hot_zone().layout, ..on_drives(&[(0, 5)]) };
        assert!(read(&both).is_err());
        assert!(read(&Superblock { shape: None, ..on_drives(&[(0, 5)]) }).is_err());
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        assert_eq!(Superblock::decode(&with_hot_zone().encode()), Ok(with_hot_zone()));
        let outside = Superblock { layout: Layout { hot: (391, 10), ..example().layout }, ..mirrored() };
        assert!(Superblock::decode(&outside.encode()).is_err());
        assert_eq!(Superblock::decode(&example().encode()), Ok(example()));
        let without = Superblock { store: "strict-append".into(), data: (4096, 3 * 4096), shape: None, ..example() };
        assert_eq!(Superblock::decode(&without.encode()), Ok(without));
        assert_eq!(Superblock::decode(&mirrored().encode()), Ok(mirrored()));
        assert_eq!(Superblock::decode(&with_last_durable().encode()), Ok(with_last_durable()));
        assert_eq!((mirrored().metadata_members(), mirrored().data_members()), (vec![1, 2], vec![0]));
    }

    #[test]
    fn every_altered_byte_is_noticed() {
        for block in [example(), mirrored(), with_hot_zone(), on_drives(&[(0, 9)])].map(|it| it.encode()) {
            for at in 0..BLOCK_BYTES {
                let mut altered = block.clone();
                altered[at] ^= 0x10;
                assert!(Superblock::decode(&altered).is_err(), "byte {at}");
            }
        }
    }
}
