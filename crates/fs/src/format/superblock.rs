//! The superblock: what a file system is, on the first block of each of its devices, and on the second block too where that
//! is free: of devices that hold metadata, and of the drives of an array. It is written when the file system is made. On
//! devices that hold metadata it is written again by each writable mount, whenever a copy of the metadata is lost or comes
//! back ([`Standing`]), and by each checkpoint ([`Witness`]).
//!
//! Invariants:
//! 1. The two superblocks of a device lie in two blocks of 4 KiB, and the second is written when the first is durable: so one of
//!    them is whole, and each tells of a write that the other missed.
//! 2. Neither the log nor a checkpoint vouches for its own last block. The superblocks do ([`Witness`]).

use uuid::Uuid;

use super::check_superblock;
use super::coding::{Decoder, Encoder, Malformed, seal, unseal};
use crate::device::area::Place;
use crate::device::{BLOCK_BYTES, Geometry, Kind};
use crate::hot::{HotPart, room_on};

const MAGIC: &[u8; 8] = b"imbrexfs";
/// The oldest format that is read.
const VERSION: u32 = 2;
/// The format from which on it says which copies of the metadata are up to date: where there are several, or spares.
const VERSION_MIRRORED: u32 = 3;
/// The format from which on it says where the hot zone is.
const VERSION_HOT: u32 = 4;
/// The format from which on it says which parts of the hot zone lie on drives.
const VERSION_HOT_DRIVES: u32 = 7;
/// The format from which on each writable mount begins a generation, superblocks vouch for log and checkpoints, and pages of
/// checksums bear stamps.
const VERSION_WITNESS: u32 = 9;
/// The format that is written. Stores of older formats are only read, until `imbrex fs upgrade` converts them. Format 9 has brought
/// changes of kinds 19 and 20 too: room that is promised, and which generations were given. Format 8 had brought changes of kind
/// 18, which say how far stripe groups are written, format 7 parts of the hot zone on drives and changes of kind 17, format 6
/// pieces of files in the hot zone and changes of kind 16, format 5 changes of kind 15.
pub const FORMAT: u32 = 9;
/// Stands for no part of the hot zone.
const NO_PART: u8 = u8::MAX;
/// Bytes of a part of the hot zone.
const HOT_PART_BYTES: usize = 9;
/// Copies of the metadata at most.
pub const MIRRORS_MAX: usize = 4;

/// What a device is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Data, and the metadata in its unshingled part.
    Both,
    /// Data alone.
    Data,
    /// Metadata alone.
    Metadata,
    /// Nothing yet: it takes the place of a drive of the array that fails.
    Spare,
}

/// A device of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its name among devices.
    pub uuid: Uuid,
    /// What it is for.
    pub role: Role,
    /// What it was when the file system was made.
    pub geometry: Geometry,
}

/// Where the parts of the metadata lie, in blocks of their area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The area.
    pub place: Place,
    /// Checksums of data: the first block, and how many.
    pub checksums: (u64, u64),
    /// The log.
    pub log: (u64, u64),
    /// The two checkpoints.
    pub checkpoints: [(u64, u64); 2],
    /// The hot zone; no blocks where there is none, or it lies on drives.
    pub hot: (u64, u64),
}

/// How the drives of an array are used together; what it was made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Zones of a stripe group that hold parity: so many drives may be lost.
    pub parity: u8,
    /// Zones of a stripe group that hold data, at most.
    pub width: u8,
    /// Blocks of a zone, whether the drive has zones or is cut into such.
    pub zone_blocks: u64,
    /// How many stripe groups there can be.
    pub groups: u32,
}

impl Shape {
    /// Blocks of a zone that hold data or parity: all but the first, which says what it is.
    pub fn rows(&self) -> u64 {
        self.zone_blocks - 1
    }

    /// Blocks from the beginning of one stripe group to that of the next.
    pub fn stride(&self) -> u64 {
        u64::from(self.width) * self.rows()
    }

    /// Blocks of all stripe groups.
    pub fn blocks(&self) -> u64 {
        u64::from(self.groups) * self.stride()
    }
}

/// Which copies of the metadata are up to date. Whenever that changes, and with each writable mount, the copies that are get a
/// higher generation.
///
/// A copy that was lost, or was put back as of an earlier mount, bears an earlier generation than those that went on without
/// it. Of two copies that each went on without the other, each bears a generation of which the other knows nothing.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Standing {
    /// The generation of who wrote this.
    pub generation: u64,
    /// Since this generation nothing was written but superblocks. It is an earlier one while a mount begins: if the power goes
    /// then, copies that have not been told are as good as those that have.
    pub since: u64,
    /// For each device with metadata, in their order, the last generation in which it was up to date, as far as is known.
    pub known: Vec<u64>,
}

impl Standing {
    /// Of so many copies, all of them up to date.
    pub fn of(copies: usize) -> Standing {
        Standing { generation: 1, since: 1, known: vec![1; copies] }
    }

    /// Whether the device that is number `slot` of those with metadata is up to date.
    pub fn is_current(&self, slot: usize) -> bool {
        self.known.get(slot).is_none_or(|known| *known >= self.since)
    }

    /// Whether a copy that was found with superblocks of `generation` holds what the copy holds that wrote this.
    pub fn holds_all(&self, generation: u64) -> bool {
        (self.since..=self.generation).contains(&generation)
    }

    /// Begins a generation in which those devices are up to date for which `is_current` says so, and others are not.
    pub fn advance(&mut self, is_current: impl Fn(usize) -> bool) {
        self.announce(is_current);
        self.since = self.generation;
    }

    /// Announces a generation: devices that were up to date still are, until something is written in it
    /// ([`Standing::begin_writing`]).
    pub fn announce(&mut self, is_current: impl Fn(usize) -> bool) {
        self.generation += 1;
        for (slot, known) in self.known.iter_mut().enumerate().filter(|(slot, _)| is_current(*slot)) {
            assert!(*known < self.generation, "device {slot} knows generation {known} before it began");
            *known = self.generation;
        }
    }

    /// From now on more than superblocks is written in this generation.
    pub fn begin_writing(&mut self) {
        self.since = self.generation;
    }

    /// Whether `other`, written by the device that is number `slot`, went on without whoever wrote this, and this without it.
    pub fn disagrees(&self, other: &Standing, slot: usize) -> bool {
        self.known.get(slot).is_some_and(|known| other.generation > *known)
    }
}

/// How far log and checkpoints reached when the superblock was written. Less is found only where a write was lost, or a block
/// is damaged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Witness {
    /// The number of the newest checkpoint.
    pub checkpoint: u64,
    /// All frames of the log before this one were durable.
    pub frame: u64,
    /// Whether it was unmounted in good order, and not mounted for writing since: then nothing was on its way.
    pub is_closed: bool,
}

/// What a file system is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// Its name among file systems.
    pub uuid: Uuid,
    /// Which of `members` this device is.
    pub member: u32,
    /// The store, by its name.
    pub store: String,
    /// Options that were given when it was made: keys and values.
    pub options: Vec<(String, String)>,
    /// The blocks of the data device that files may lie in: the first, and how many.
    pub data: (u64, u64),
    /// Where the metadata lie.
    pub layout: Layout,
    /// Its devices.
    pub members: Vec<Member>,
    /// How its drives are used together, where the store is `log`.
    pub shape: Option<Shape>,
    /// Which copies of the metadata are up to date.
    pub standing: Standing,
    /// How far log and checkpoints reach at least.
    pub witness: Witness,
    /// How often superblocks were written. Each time the second block of all copies is, and when that is durable the first: so two
    /// that are both right differ by one time at most.
    pub writes: u64,
    /// The parts of the hot zone that lie on drives of the array, in the order in which their blocks are numbered.
    pub hot_parts: Vec<HotPart>,
    /// Of a drive that came in the place of another: which of the parts it has room for, and took over.
    pub taken_part: Option<u8>,
    /// The format in which it was found. It is written in the newest, [`FORMAT`].
    pub format: u32,
}

impl Superblock {
    /// Its block.
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
        to.u64(self.witness.checkpoint);
        to.u64(self.witness.frame);
        to.u8(u8::from(self.witness.is_closed));
        to.u64(self.writes);
    }

    /// Whether a block says that it is one, damaged or not.
    pub fn is_named(block: &[u8]) -> bool {
        block.starts_with(MAGIC)
    }

    /// Reads one; the error says what to tell a user.
    pub fn decode(block: &[u8]) -> Result<Superblock, String> {
        if block.len() < BLOCK_BYTES || &block[..8] != MAGIC {
            return Err("holds no file system of Imbrex; make one with `imbrex fs mkfs`".into());
        }
        let unsealed = unseal(MAGIC, block);
        let (version, mut from) = unsealed.ok_or("its superblock is damaged: it does not match its checksum")?;
        if !(VERSION..=FORMAT).contains(&version) {
            let advice = if version > FORMAT {
                "use a newer one"
            } else {
                "copy its files with the version of this program that made it, and make it anew"
            };
            let known = format!("{VERSION} to {FORMAT}");
            return Err(format!("has format {version}; this program knows formats {known}: {advice}"));
        }
        decode_rest(&mut from, version).map_err(|error| format!("its superblock makes no sense: {error}"))
    }

    /// The number that the first block of the hot zone has among blocks with checksums: behind all blocks of data.
    pub fn hot_base(&self) -> u64 {
        self.data.0 + self.data.1
    }

    /// Blocks of the hot zone, wherever they lie; 0 where there is none.
    pub fn hot_blocks(&self) -> u64 {
        self.layout.hot.1 + self.hot_parts.iter().map(|part| part.blocks).sum::<u64>()
    }

    /// The first zone that the array has of drive `number`, one of those that are listed here.
    pub fn first_zone(&self, number: usize, zone_blocks: u64) -> u32 {
        let member = self.data_members().get(number).map(|&member| self.members[member]);
        let part = self.hot_parts.iter().find(|part| usize::from(part.drive) == number);
        match (member.map(|member| (member.role, member.geometry.kind)), part) {
            (Some((Role::Both, Kind::Zoned { conventional, .. })), _) => conventional,
            (Some((Role::Both, _)), _) => self.layout.place.end().div_ceil(zone_blocks) as u32,
            (_, Some(part)) => part.first_zone_behind(zone_blocks),
            // The first zone bears the superblock.
            _ => 1,
        }
    }

    /// The same of the drive that bears it, which may have come later.
    pub fn own_first_zone(&self, zone_blocks: u64) -> u32 {
        match self.taken_part.map(|part| self.hot_parts[usize::from(part)]) {
            Some(part) => part.first_zone_behind(zone_blocks),
            None => {
                let own = self.data_members().iter().position(|&member| member == self.member as usize);
                own.map_or(1, |number| self.first_zone(number, zone_blocks))
            }
        }
    }

    /// What the device that bears it is.
    pub fn own(&self) -> Member {
        self.members[self.member as usize]
    }

    /// The devices that hold the metadata, each a copy of them.
    pub fn metadata_members(&self) -> Vec<usize> {
        let holds = |role: Role| matches!(role, Role::Both | Role::Metadata);
        (0..self.members.len()).filter(|&member| holds(self.members[member].role)).collect()
    }

    /// Which of the devices with metadata the one that bears it is, if it is one.
    pub fn slot(&self) -> Option<usize> {
        self.metadata_members().iter().position(|&member| member == self.member as usize)
    }

    /// The devices that hold data, in the order of the array.
    pub fn data_members(&self) -> Vec<usize> {
        let holds = |role: Role| matches!(role, Role::Both | Role::Data);
        (0..self.members.len()).filter(|&member| holds(self.members[member].role)).collect()
    }

    /// The device that holds the data, the first where there are several.
    pub fn data_member(&self) -> usize {
        self.data_members().first().copied().expect("a superblock that was decoded names one")
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
        witness: Witness::default(),
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
    if version >= VERSION_WITNESS {
        superblock.standing.since = from.u64()?;
        superblock.witness = Witness { checkpoint: from.u64()?, frame: from.u64()?, is_closed: from.u8()? == 1 };
        superblock.writes = from.u64()?;
        if superblock.standing.since > superblock.standing.generation {
            return Err(Malformed("the generation of its metadata"));
        }
    }
    check_superblock::check(&superblock)?;
    Ok(superblock)
}

/// Each part is on a drive of its own that has room for it, and no other hot zone is there.
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

/// Zeros stand for no shape: so a superblock of the other stores ends as it always did.
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
            witness: Witness::default(),
            writes: 0,
            hot_parts: Vec::new(),
            taken_part: None,
            format: FORMAT,
        }
    }

    /// The same block in an older format. What is behind the fields of that format nobody reads.
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
        assert_eq!(Superblock::decode(&again.encode()), Ok(mirrored()), "what is written is of the newest format");
        assert!(read(&example(), 1).is_err_and(|why| why.contains("format 1") && why.contains("make it anew")));
        assert!(read(&example(), 10).is_err_and(|why| why.contains("format 10") && why.contains("use a newer one")));
        assert_eq!(read(&witnessed(), 8), Ok(Superblock { format: 8, ..mirrored() }), "it knows no witness");
    }

    fn mirrored() -> Superblock {
        let mut members = example().members;
        members.push(Member { uuid: Uuid::from_u128(7), ..members[1] });
        members.push(Member { uuid: Uuid::from_u128(8), role: Role::Spare, ..members[0] });
        Superblock { members, standing: Standing { generation: 9, since: 9, known: vec![9, 4] }, ..example() }
    }

    fn witnessed() -> Superblock {
        let standing = Standing { since: 8, ..mirrored().standing };
        let witness = Witness { checkpoint: 77, frame: 1 << 40, is_closed: true };
        Superblock { standing, witness, writes: 5, ..mirrored() }
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
        // Four conventional zones of 4,096 blocks, less two superblocks and a stamp.
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
        assert_eq!(Superblock::decode(&witnessed().encode()), Ok(witnessed()));
        assert_eq!((mirrored().metadata_members(), mirrored().data_members()), (vec![1, 2], vec![0]));
    }

    #[test]
    fn who_went_on_without_whom_is_told_by_generations() {
        let both = Standing::of(2);
        let (mut one, mut other) = (both.clone(), both.clone());
        one.advance(|slot| slot == 0);
        assert!(one.is_current(0) && !one.is_current(1));
        assert!(!one.disagrees(&both, 1), "the other stayed as it was");
        other.advance(|slot| slot == 1);
        other.advance(|slot| slot == 1);
        assert!(one.disagrees(&other, 1) && other.disagrees(&one, 0), "each went on without the other");
        one.advance(|_| true);
        let joined = one.clone();
        one.advance(|slot| slot == 1);
        assert!(!one.disagrees(&joined, 0) && !one.disagrees(&both, 0), "an older time of both is no disagreement");
    }

    #[test]
    fn a_copy_that_was_not_told_of_a_generation_counts_until_something_is_written_in_it() {
        let mut one = Standing::of(2);
        let other = one.clone();
        one.announce(|_| true);
        assert!(one.holds_all(other.generation) && one.is_current(1) && !one.disagrees(&other, 1));
        one.begin_writing();
        assert!(!one.holds_all(other.generation) && one.holds_all(one.generation));
        // One that was not there when the generation was announced.
        let mut alone = other.clone();
        alone.announce(|slot| slot == 0);
        assert!(alone.is_current(1) && alone.holds_all(other.generation), "nothing was written without it");
        alone.begin_writing();
        assert!(!alone.is_current(1));
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
