//! The superblock: what a file system is, on the first block of each of its devices; on the device that holds the
//! metadata on the second block too. It is written once, when the file system is made.

use uuid::Uuid;

use super::coding::{checksum, Decoder, Encoder, Malformed};
use crate::device::area::Place;
use crate::device::{Geometry, Kind, BLOCK_BYTES};

const MAGIC: &[u8; 8] = b"imbrexfs";
const VERSION: u32 = 2;

/// What a device is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Data, and the metadata in its unshingled part.
    Both,
    /// Data alone.
    Data,
    /// Metadata alone.
    Metadata,
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
}

impl Superblock {
    /// Its block.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Encoder::default();
        to.bytes.extend_from_slice(MAGIC);
        to.u32(VERSION);
        to.u32(0); // the checksum
        to.u128(self.uuid.as_u128());
        to.u32(self.member);
        to.bytes(self.store.as_bytes());
        to.u32(self.options.len() as u32);
        for (key, value) in &self.options {
            to.bytes(key.as_bytes());
            to.bytes(value.as_bytes());
        }
        put_pair(&mut to, self.data);
        put_layout(&mut to, &self.layout);
        to.u32(self.members.len() as u32);
        self.members.iter().for_each(|member| put_member(&mut to, member));
        put_shape(&mut to, self.shape);
        assert!(to.bytes.len() <= BLOCK_BYTES, "a superblock of {} bytes", to.bytes.len());
        to.bytes.resize(BLOCK_BYTES, 0);
        let sum = checksum(&[&to.bytes]);
        to.bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        to.bytes
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
        let mut bytes = block[..BLOCK_BYTES].to_vec();
        let sum = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
        bytes[12..16].fill(0);
        if checksum(&[&bytes]) != sum {
            return Err("its superblock is damaged: it does not match its checksum".into());
        }
        let mut from = Decoder::new(&bytes[8..]);
        let version = from.u32().map_err(|error| error.to_string())?;
        if version != VERSION {
            let advice = if version > VERSION {
                "use a newer one"
            } else {
                "copy its files with the version of this program that made it, and make it anew"
            };
            return Err(format!("has format {version}; this program knows format {VERSION}: {advice}"));
        }
        decode_rest(&mut from).map_err(|error| format!("its superblock makes no sense: {error}"))
    }

    /// The device that holds the metadata.
    pub fn metadata_member(&self) -> usize {
        let holds = |member: &Member| member.role != Role::Data;
        self.members.iter().position(holds).expect("a superblock that was decoded names one")
    }

    /// The devices that hold data, in the order of the array.
    pub fn data_members(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|&member| self.members[member].role != Role::Metadata).collect()
    }

    /// The device that holds the data, the first where there are several.
    pub fn data_member(&self) -> usize {
        let holds = |member: &Member| member.role != Role::Metadata;
        self.members.iter().position(holds).expect("a superblock that was decoded names one")
    }
}

fn decode_rest(from: &mut Decoder<'_>) -> Result<Superblock, Malformed> {
    from.u32()?;
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
    Ok(Superblock { uuid, member, store, options, data, layout, members, shape })
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
    Ok(Layout { place, checksums: parts[0], log: parts[1], checkpoints: [parts[2], parts[3]] })
}

fn put_member(to: &mut Encoder, member: &Member) {
    to.u128(member.uuid.as_u128());
    to.u8(match member.role {
        Role::Both => 0,
        Role::Data => 1,
        Role::Metadata => 2,
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
    Ok(Member { uuid, role, geometry: Geometry { blocks, kind } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Superblock {
        let kind = Kind::Zoned { zone_blocks: 4096, zones: 64, conventional: 4, active_max: Some(7) };
        let data = Member { uuid: Uuid::from_u128(5), role: Role::Data, geometry: Geometry { blocks: 1 << 18, kind } };
        let geometry = Geometry { blocks: 5000, kind: Kind::Caveat { isolation: 16, no_overlap: 6 } };
        let metadata = Member { uuid: Uuid::from_u128(6), role: Role::Metadata, geometry };
        Superblock {
            uuid: Uuid::from_u128(99),
            member: 1,
            store: "strict-append".into(),
            options: vec![("cleaner".into(), "greedy".into())],
            data: (1, 2),
            layout: Layout {
                place: Place::islands(400, 6, 16),
                checksums: (2, 10),
                log: (12, 100),
                checkpoints: [(112, 140), (252, 148)],
            },
            members: vec![data, metadata],
            shape: Some(Shape { parity: 1, width: 4, zone_blocks: 4096, groups: 77 }),
        }
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        assert_eq!(Superblock::decode(&example().encode()), Ok(example()));
        let without = Superblock { shape: None, ..example() };
        assert_eq!(Superblock::decode(&without.encode()), Ok(without));
    }

    #[test]
    fn every_altered_byte_is_noticed() {
        let block = example().encode();
        for at in 0..BLOCK_BYTES {
            let mut altered = block.clone();
            altered[at] ^= 0x10;
            assert!(Superblock::decode(&altered).is_err(), "byte {at}");
        }
    }
}
