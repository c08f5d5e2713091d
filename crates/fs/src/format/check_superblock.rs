//! Checks that the numbers of a superblock agree with each other. Each part of the metadata is in the metadata area and
//! overlaps no other part. The data are on their device. The table of checksums reaches to the last block. The drives
//! can form the array. So the users of a decoded superblock need no such checks.
//!
//! The core checks superblocks against the devices, for instance against their sizes ([`crate::core`]).

use super::coding::Malformed;
use super::limits::{COUNT_END, LOG_BLOCKS_MIN, PAGE_SUMS};
use super::shape::{DRIVES_MAX, PARITY_MAX, Shape, zones_of};
use super::superblock::{Layout, MIRRORS_MAX, Member, Role, Superblock};
use crate::device::{Geometry, Kind};

/// Maximum number of blocks of 4 KiB of a device. Every byte of such a device has an offset below 2⁶³.
pub const DEVICE_BLOCKS_MAX: u64 = 1 << 51;
/// The two superblocks, as first block and number of blocks of the metadata area.
const LABELS: (u64, u64) = (0, 2);

/// Checks that the numbers of a superblock agree with each other. It is not compared with the devices.
///
/// # Errors
/// The first wrong value that was found. The error names it.
pub fn check(superblock: &Superblock) -> Result<(), Malformed> {
    let Superblock { layout, standing, shape, .. } = superblock;
    check_roles(superblock)?;
    check_layout(layout)?;
    let own = superblock.own();
    if matches!(own.role, Role::Both | Role::Metadata) && layout.place.end() > own.geometry.blocks {
        return Err(Malformed("the layout of its metadata, which is larger than its device"));
    }
    let last_durable = superblock.last_durable;
    if [standing.generation, last_durable.checkpoint, last_durable.frame, superblock.writes]
        .iter()
        .any(|it| *it >= COUNT_END)
    {
        return Err(Malformed("the generation of its metadata"));
    }
    let is_log = superblock.store == "log";
    match shape {
        Some(shape) if is_log => check_shape(superblock, shape)?,
        None if !is_log => check_data(superblock)?,
        _ => return Err(Malformed("a store that is not for so many drives")),
    }
    let parts: u64 = superblock.hot_parts.iter().map(|part| part.blocks).sum();
    let blocks = superblock.data.0 + superblock.data.1 + layout.hot.1 + parts;
    if layout.checksums.1.saturating_mul(PAGE_SUMS) < blocks {
        return Err(Malformed("the table of checksums, which does not reach to the last block"));
    }
    Ok(())
}

/// Checks that the size of a device, as listed in a superblock, is possible. It is not compared with the device.
///
/// # Errors
/// The device has more than [`DEVICE_BLOCKS_MAX`] blocks, or its zones or distances are impossible.
pub fn check_member(member: &Member) -> Result<(), Malformed> {
    let Geometry { blocks, kind } = member.geometry;
    let is_sound = match kind {
        Kind::Plain => true,
        Kind::Zoned { zone_blocks, zones, conventional, .. } => {
            let all = zone_blocks.checked_mul(u64::from(zones));
            zone_blocks > 0 && conventional <= zones && all.is_some_and(|all| all <= DEVICE_BLOCKS_MAX)
        }
        Kind::Caveat { isolation, no_overlap } => isolation.max(no_overlap) <= DEVICE_BLOCKS_MAX,
    };
    if is_sound && blocks <= DEVICE_BLOCKS_MAX { Ok(()) } else { Err(Malformed("the size of a device")) }
}

/// Checks that each device is listed once, and that the metadata are either on the drive with the data or on devices of
/// their own.
fn check_roles(superblock: &Superblock) -> Result<(), Malformed> {
    let members = &superblock.members;
    // A spare that replaced a drive lists itself a second time, at the end.
    let comes_later = |at: usize| at + 1 == members.len() && superblock.member as usize == at;
    let may_be_again = |at: usize, other: &Member| comes_later(at) && other.role == Role::Spare;
    let is_listed_twice = |(at, member): (usize, &Member)| {
        members[..at].iter().any(|other| other.uuid == member.uuid && !may_be_again(at, other))
    };
    let count = |role: Role| members.iter().filter(|member| member.role == role).count();
    let (both, metadata) = (count(Role::Both), count(Role::Metadata));
    let drives = superblock.data_members().len();
    // A drive that joined the array later lists itself behind the drives that the array was made with.
    let is_sound = both + metadata.min(1) == 1 && metadata <= MIRRORS_MAX && (1..=DRIVES_MAX + 1).contains(&drives);
    if !is_sound || members.iter().enumerate().any(is_listed_twice) {
        return Err(Malformed("its list of devices"));
    }
    Ok(())
}

/// Checks that the parts of the metadata are within their area and do not overlap.
fn check_layout(layout: &Layout) -> Result<(), Malformed> {
    let Layout { place, checksums, log, checkpoints, hot } = *layout;
    let wrong = Err(Malformed("the layout of its metadata"));
    // The superblocks are on the first blocks of the device, so the area begins there.
    if place.first > 0 || place.checked_end().is_none_or(|end| end > DEVICE_BLOCKS_MAX) {
        return wrong;
    }
    let mut parts = [LABELS, checksums, log, checkpoints[0], checkpoints[1], hot];
    parts.sort_unstable();
    let used = || parts.iter().filter(|(_, blocks)| *blocks > 0);
    let overlaps = used().zip(used().skip(1)).any(|(one, other)| one.0 + one.1 > other.0);
    let is_beyond = used().any(|(first, blocks)| first + blocks > place.blocks);
    let least = log.1.min(checkpoints[0].1).min(checkpoints[1].1);
    if overlaps || is_beyond || least < LOG_BLOCKS_MIN || checkpoints[0].1 != checkpoints[1].1 {
        return wrong;
    }
    Ok(())
}

/// Checks that the data of a single drive are on that drive, behind its superblock and its metadata.
fn check_data(superblock: &Superblock) -> Result<(), Malformed> {
    let ((first, blocks), place) = (superblock.data, superblock.layout.place);
    let [drive] = superblock.data_members()[..] else { return Err(Malformed("its list of devices")) };
    let Member { role, geometry, .. } = superblock.members[drive];
    let behind = if role == Role::Both { place.end() } else { 1 };
    let is_placed = match geometry.kind {
        Kind::Zoned { zone_blocks, conventional, .. } => {
            let anywhere = u64::from(conventional) * zone_blocks;
            first.is_multiple_of(zone_blocks) && (role != Role::Both || place.end() <= anywhere)
        }
        _ => true,
    };
    if blocks == 0 || first < behind || first + blocks > geometry.blocks || !is_placed {
        return Err(Malformed("the place of its data"));
    }
    Ok(())
}

/// Checks that the drives can form an array of this shape.
fn check_shape(superblock: &Superblock, shape: &Shape) -> Result<(), Malformed> {
    let drives: Vec<Member> = superblock.data_members().into_iter().map(|number| superblock.members[number]).collect();
    let columns = usize::from(shape.width) + usize::from(shape.parity);
    let are_cut = drives.iter().all(|drive| match drive.geometry.kind {
        Kind::Zoned { zone_blocks, .. } => zone_blocks == shape.zone_blocks,
        Kind::Plain => true,
        Kind::Caveat { .. } => false,
    });
    let zones: u64 = drives.iter().map(|drive| u64::from(zones_of(&drive.geometry, shape.zone_blocks, 0))).sum();
    let is_formed = shape.parity <= PARITY_MAX && columns <= drives.len() && are_cut;
    let has_room = u64::from(shape.groups) * (1 + u64::from(shape.parity)) <= zones;
    let is_on_drive = superblock.members[superblock.metadata_members()[0]].role == Role::Both;
    let is_placed = match drives[0].geometry.kind {
        Kind::Zoned { zone_blocks, conventional, .. } if is_on_drive => {
            superblock.layout.place.end() <= u64::from(conventional) * zone_blocks
        }
        _ => true,
    };
    if !is_formed || !has_room || !is_placed || superblock.data != (0, shape.blocks()) {
        return Err(Malformed("the shape of its array"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::device::area::Place;
    use crate::format::superblock::{FORMAT, LastDurable, Standing};

    fn member(uuid: u128, role: Role, kind: Kind) -> Member {
        Member { uuid: Uuid::from_u128(uuid), role, geometry: Geometry { blocks: 4000, kind } }
    }

    /// Returns the superblock of a caveat disk with metadata in islands of two blocks; the islands begin five blocks
    /// apart.
    fn single() -> Superblock {
        let kind = Kind::Caveat { isolation: 3, no_overlap: 1 };
        Superblock {
            uuid: Uuid::from_u128(1),
            member: 0,
            store: "caveat".into(),
            options: Vec::new(),
            data: (300, 3700),
            layout: Layout {
                place: Place::islands(120, 1, 3),
                checksums: (2, 4),
                log: (6, 30),
                checkpoints: [(36, 42), (78, 42)],
                hot: (0, 0),
            },
            members: vec![member(2, Role::Both, kind)],
            shape: None,
            standing: Standing::of(1),
            last_durable: LastDurable::default(),
            writes: 0,
            hot_parts: Vec::new(),
            taken_part: None,
            format: FORMAT,
        }
    }

    /// Returns the superblock of an array of three drives of 250 zones, with one parity, and metadata on another
    /// device.
    fn array() -> Superblock {
        let kind = Kind::Zoned { zone_blocks: 16, zones: 250, conventional: 0, active_max: None };
        let drives = (2..5).map(|uuid| member(uuid, Role::Data, kind));
        let members = drives.chain([member(9, Role::Metadata, Kind::Plain)]).collect();
        let shape = Shape { parity: 1, width: 2, zone_blocks: 16, groups: 373 };
        let layout = Layout {
            place: Place::run(0, 200),
            checksums: (2, 11),
            log: (13, 40),
            checkpoints: [(53, 70), (123, 70)],
            hot: (193, 7),
        };
        let data = (0, shape.blocks());
        Superblock { member: 3, store: "log".into(), members, shape: Some(shape), layout, data, ..single() }
    }

    fn shape(superblock: &mut Superblock) -> &mut Shape {
        superblock.shape.as_mut().expect("an array has one")
    }

    #[test]
    fn each_contradiction_is_noticed() {
        assert_eq!((check(&single()), check(&array())), (Ok(()), Ok(())));
        type Alter = fn(&mut Superblock);
        let of_single: [(&str, Alter); 11] = [
            ("data in the metadata", |it| it.data = (299, 3700)),
            ("data behind the end", |it| it.data.1 = 3701),
            ("no data", |it| it.data.1 = 0),
            ("a log of no blocks", |it| it.layout.log.1 = 0),
            ("a log over a checkpoint", |it| it.layout.log.1 = 31),
            ("the table of checksums over a superblock", |it| it.layout.checksums = (1, 5)),
            ("a table that is too short", |it| it.layout.checksums = (2, 3)),
            ("metadata behind the first block", |it| it.layout.place.first = 1),
            ("a hot zone over a checkpoint", |it| it.layout.hot = (119, 1)),
            ("metadata beyond the device", |it| it.members[0].geometry.blocks = 299),
            ("an array's store", |it| it.store = "log".into()),
        ];
        for (what, alter) in of_single {
            let mut altered = single();
            alter(&mut altered);
            assert!(check(&altered).is_err(), "{what}");
        }
        let of_array: [(&str, Alter); 9] = [
            ("more groups than zones", |it| shape(it).groups = 376),
            ("more columns than drives", |it| shape(it).width = 3),
            ("zones of another size", |it| shape(it).zone_blocks = 32),
            ("data of another array", |it| it.data.1 += 1),
            ("two drives of a name", |it| it.members[1].uuid = it.members[0].uuid),
            ("metadata on a drive and elsewhere", |it| it.members[0].role = Role::Both),
            ("a store of one drive", |it| it.store = "caveat".into()),
            ("a generation that has run out", |it| it.standing.generation = u64::MAX),
            ("a hot zone behind the end", |it| it.layout.hot.1 = 8),
        ];
        for (what, alter) in of_array {
            let mut altered = array();
            alter(&mut altered);
            assert!(check(&altered).is_err(), "{what}");
        }
    }

    #[test]
    fn a_spare_that_took_a_place_lists_itself_again() {
        let mut taken = array();
        let spare = Member { uuid: Uuid::from_u128(77), role: Role::Spare, ..taken.members[0] };
        taken.members.push(spare);
        assert_eq!(check(&taken), Ok(()), "an array with a spare");
        taken.members.push(Member { role: Role::Data, ..spare });
        assert!(check(&taken).is_err(), "only the device itself may be listed so");
        taken.member = taken.members.len() as u32 - 1;
        assert_eq!(check(&taken), Ok(()));
        taken.members.last_mut().expect("there are some").uuid = taken.members[0].uuid;
        assert!(check(&taken).is_err(), "one of the drives");
    }

    #[test]
    fn sizes_are_those_of_devices() {
        let sized =
            |blocks, kind| check_member(&Member { geometry: Geometry { blocks, kind }, ..member(1, Role::Data, kind) });
        let zoned =
            |zone_blocks, zones, conventional| Kind::Zoned { zone_blocks, zones, conventional, active_max: None };
        assert!(sized(1 << 51, Kind::Plain).is_ok() && sized((1 << 51) + 1, Kind::Plain).is_err());
        assert!(sized(80, zoned(8, 10, 10)).is_ok() && sized(80, zoned(8, 10, 11)).is_err());
        assert!(sized(80, zoned(0, 10, 1)).is_err() && sized(80, zoned(1 << 40, u32::MAX, 1)).is_err());
        assert!(sized(80, Kind::Caveat { isolation: u64::MAX, no_overlap: 0 }).is_err());
    }
}
