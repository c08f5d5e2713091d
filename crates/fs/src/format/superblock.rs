//! The superblock: the description of a file system, on the first block of each of its devices. The second block holds
//! a second superblock where that block is free: on devices with metadata, and on drives of an array. Superblocks are
//! written when the file system is made. On devices with metadata they are written again by each writable mount and by
//! each checkpoint ([`Witness`]), and whenever a copy of the metadata is lost or returns ([`Standing`]).
//!
//! Invariants:
//! 1. The two superblocks of a device are in separate blocks of 4 KiB, and one is written only after the other is
//!    durable. So at least one of them is whole, and each shows a write that the other missed.
//! 2. The log and the checkpoints cannot show that their own last block was lost. The superblocks can ([`Witness`]).

use uuid::Uuid;

use super::hot_part::HotPart;
use super::shape::Shape;
use crate::device::area::Place;
use crate::device::{Geometry, Kind};

/// Format that is written. Stores of older formats are read-only until `imbrex fs upgrade` converts them. The formats
/// added:
///
/// - 5: changes of kind 15;
/// - 6: pieces of files in the hot zone, and changes of kind 16;
/// - 7: parts of the hot zone on drives, and changes of kind 17;
/// - 8: changes of kind 18, the numbers of rows written in stripe groups;
/// - 9: changes of kind 19, preallocated blocks, and of kind 20, the bound of all generations given so far.
pub const FORMAT: u32 = 9;
/// Maximum number of copies of the metadata.
pub const MIRRORS_MAX: usize = 4;

/// Purpose of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Data, and the metadata in the unshingled part of the drive.
    Both,
    /// Data only.
    Data,
    /// Metadata only.
    Metadata,
    /// Spare: holds nothing until it replaces a failed drive of the array.
    Spare,
}

/// A device of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// UUID of the device.
    pub uuid: Uuid,
    /// Purpose of the device.
    pub role: Role,
    /// Size and kind of the device when the file system was made.
    pub geometry: Geometry,
}

/// Places of the parts of the metadata, in blocks of the metadata area. Each part is its first block and its number of
/// blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Metadata area on the device.
    pub place: Place,
    /// Table of checksums of the data.
    pub checksums: (u64, u64),
    /// Ring of blocks of the log.
    pub log: (u64, u64),
    /// Slots of the two checkpoints.
    pub checkpoints: [(u64, u64); 2],
    /// Hot zone; no blocks if there is none, or if it is on drives.
    pub hot: (u64, u64),
}

/// State of the copies of the metadata: which of them are up to date. Each writable mount, and each change of this
/// state, gives a higher generation to the copies that are up to date.
///
/// A copy that was lost, or was restored from an earlier mount, has an earlier generation than the copies written
/// without it. If two copies were each written without the other, each has a generation that the other does not know.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Standing {
    /// Generation of the copy that wrote this superblock.
    pub generation: u64,
    /// Earliest generation since which only superblocks were written, so that copies of this and of later generations
    /// are equally valid. It is below `generation` only while a mount begins: a power failure then leaves copies of
    /// several generations.
    pub since: u64,
    /// For each device with metadata, in their order, the last generation in which the device is known to have been up
    /// to date.
    pub known: Vec<u64>,
}

impl Standing {
    /// Returns the state of `copies` new copies, all of them up to date.
    pub fn of(copies: usize) -> Standing {
        Standing { generation: 1, since: 1, known: vec![1; copies] }
    }

    /// Returns whether a device is up to date. `slot` is its index among the devices with metadata.
    pub fn is_current(&self, slot: usize) -> bool {
        self.known.get(slot).is_none_or(|known| *known >= self.since)
    }

    /// Returns whether a copy of the metadata with superblocks of `generation` holds everything that the copy with this
    /// state holds. This is so if only superblocks were written since `generation` began.
    pub fn holds_all(&self, generation: u64) -> bool {
        (self.since..=self.generation).contains(&generation)
    }

    /// Begins a generation. In it the devices for which `is_current` returns true are up to date, and no others are.
    pub fn advance(&mut self, is_current: impl Fn(usize) -> bool) {
        self.announce(is_current);
        self.since = self.generation;
    }

    /// Announces a generation. Devices that were up to date stay so until something is written in the new generation
    /// ([`Standing::begin_writing`]).
    pub fn announce(&mut self, is_current: impl Fn(usize) -> bool) {
        self.generation += 1;
        for (slot, known) in self.known.iter_mut().enumerate().filter(|(slot, _)| is_current(*slot)) {
            assert!(*known < self.generation, "device {slot} knows generation {known} before it began");
            *known = self.generation;
        }
    }

    /// Notes that not only superblocks are written in this generation from now on. Copies with earlier generations are
    /// outdated then.
    pub fn begin_writing(&mut self) {
        self.since = self.generation;
    }

    /// Returns whether `other` has a generation that this state does not know. The device that wrote `other` has index
    /// `slot` among the devices with metadata. If this state has the highest generation of all copies, the two copies
    /// were each written without the other.
    pub fn disagrees(&self, other: &Standing, slot: usize) -> bool {
        self.known.get(slot).is_some_and(|known| other.generation > *known)
    }
}

/// How far the log and the checkpoints reached when the superblock was written. If less is found, a write was lost or a
/// block is damaged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Witness {
    /// Number of the newest checkpoint.
    pub checkpoint: u64,
    /// First frame of the log that need not be durable: all frames before it were.
    pub frame: u64,
    /// Whether the file system was unmounted cleanly and not mounted for writing since. If so, no write was in flight.
    pub is_closed: bool,
}

/// Description of a file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// UUID of the file system.
    pub uuid: Uuid,
    /// Index of this device in `members`.
    pub member: u32,
    /// Name of the store.
    pub store: String,
    /// Options that the file system was made with, as keys and values.
    pub options: Vec<(String, String)>,
    /// Blocks of the data device that can hold files: the first block and the number of blocks.
    pub data: (u64, u64),
    /// Places of the parts of the metadata.
    pub layout: Layout,
    /// Devices of the file system.
    pub members: Vec<Member>,
    /// How the drives are combined; `None` for stores other than `log`.
    pub shape: Option<Shape>,
    /// Which copies of the metadata are up to date.
    pub standing: Standing,
    /// How far the log and the checkpoints reach at least.
    pub witness: Witness,
    /// Number of times that superblocks were written. Each time the second block of all copies is written first, and
    /// the first block when that is durable. So two valid superblocks differ by at most one.
    pub writes: u64,
    /// Parts of the hot zone on drives of the array, in the order in which their blocks are numbered.
    pub hot_parts: Vec<HotPart>,
    /// For a drive that replaced another one: the part of the hot zone that it has space for and took over.
    pub taken_part: Option<u8>,
    /// Format in which the superblock was read. Superblocks are always written in [`FORMAT`].
    pub format: u32,
}

impl Superblock {
    /// Returns the number of the hot zone's first block among the blocks with checksums: the one behind all blocks of
    /// data.
    pub fn hot_base(&self) -> u64 {
        self.data.0 + self.data.1
    }

    /// Returns the number of blocks of the hot zone, in the metadata area or on drives; 0 if there is none.
    pub fn hot_blocks(&self) -> u64 {
        self.layout.hot.1 + self.hot_parts.iter().map(|part| part.blocks).sum::<u64>()
    }

    /// Returns the first zone of drive `number` that stripe groups use. The zones before it hold the superblock, the
    /// metadata or a part of the hot zone. `number` is an index in [`Superblock::data_members`], and a zone has
    /// `zone_blocks` blocks.
    pub fn first_zone(&self, number: usize, zone_blocks: u64) -> u32 {
        let member = self.data_members().get(number).map(|&member| self.members[member]);
        let part = self.hot_parts.iter().find(|part| usize::from(part.drive) == number);
        match (member.map(|member| (member.role, member.geometry.kind)), part) {
            (Some((Role::Both, Kind::Zoned { conventional, .. })), _) => conventional,
            (Some((Role::Both, _)), _) => self.layout.place.end().div_ceil(zone_blocks) as u32,
            (_, Some(part)) => part.first_zone_behind(zone_blocks),
            // The first zone holds the superblock.
            _ => 1,
        }
    }

    /// Like [`Superblock::first_zone`], for the drive that holds this superblock, which may have joined the array
    /// later.
    pub fn own_first_zone(&self, zone_blocks: u64) -> u32 {
        match self.taken_part.map(|part| self.hot_parts[usize::from(part)]) {
            Some(part) => part.first_zone_behind(zone_blocks),
            None => {
                let own = self.data_members().iter().position(|&member| member == self.member as usize);
                own.map_or(1, |number| self.first_zone(number, zone_blocks))
            }
        }
    }

    /// Returns the entry of the device that holds this superblock.
    pub fn own(&self) -> Member {
        self.members[self.member as usize]
    }

    /// Returns the indices in `members` of the devices with metadata. Each device has a copy of all metadata.
    pub fn metadata_members(&self) -> Vec<usize> {
        let holds = |role: Role| matches!(role, Role::Both | Role::Metadata);
        (0..self.members.len()).filter(|&member| holds(self.members[member].role)).collect()
    }

    /// Returns the index of this device among the devices with metadata; `None` if it holds no metadata.
    pub fn slot(&self) -> Option<usize> {
        self.metadata_members().iter().position(|&member| member == self.member as usize)
    }

    /// Returns the indices in `members` of the devices with data, in the order of the array.
    pub fn data_members(&self) -> Vec<usize> {
        let holds = |role: Role| matches!(role, Role::Both | Role::Data);
        (0..self.members.len()).filter(|&member| holds(self.members[member].role)).collect()
    }

    /// Returns the index in `members` of the device with data, the first if there are several.
    pub fn data_member(&self) -> usize {
        self.data_members().first().copied().expect("a superblock that was decoded names one")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // A device that was missing when the generation was announced.
        let mut alone = other.clone();
        alone.announce(|slot| slot == 0);
        assert!(alone.is_current(1) && alone.holds_all(other.generation), "nothing was written without it");
        alone.begin_writing();
        assert!(!alone.is_current(1));
    }
}
