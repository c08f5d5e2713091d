//! The superblock: the description of a file system, on the first block of each of its devices. The second block holds
//! a second superblock, except on a caveat disk without metadata, where that block is not free. Superblocks are written
//! when the file system is made. On devices with metadata they are written again by each writable mount and by
//! each checkpoint ([`LastDurable`]), and whenever a copy of the metadata is lost or returns ([`Standing`]).
//!
//! Invariants:
//! 1. The two superblocks of a device are in separate blocks of 4 KiB, and one is written only after the other is
//!    durable. So at least one of them is whole, and each shows a write that the other missed.
//! 2. The log and the checkpoints cannot show that their own last block was lost. The superblocks can
//!    ([`LastDurable`]).

use uuid::Uuid;

use super::hot_part::HotPart;
use super::shape::Shape;
use crate::device::area::Place;
use crate::device::{Geometry, Kind};

/// Version of the format that is written. Stores of formats 2 to 8 can be mounted only read-only until `imbrex fs
/// upgrade` converts them; other formats are refused. The versions from 5 on added:
///
/// - 5: changes of kind 15;
/// - 6: pieces of files in the hot zone, and changes of kind 16;
/// - 7: parts of the hot zone on drives, and changes of kind 17;
/// - 8: changes of kind 18, the numbers of rows written in stripe groups;
/// - 9: changes of kind 19, preallocated blocks, and of kind 20, the bound of all generations given so far; and
///   the detection of lost writes, by fields of superblocks and stamps of pages of checksums.
pub const FORMAT: u32 = 9;
/// Maximum number of copies of the metadata, each on a device of its own.
pub const MIRRORS_MAX: usize = 4;

/// Purpose of a device of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The device holds the only copy of the metadata, from its first block on, and data behind the metadata.
    Both,
    /// The device holds data, a superblock, and possibly a part of the hot zone, but no copy of the metadata.
    Data,
    /// The device holds a copy of all metadata. File data are on it only in the hot zone, if that is on devices with
    /// metadata.
    Metadata,
    /// Spare: holds nothing but a superblock until it replaces a failed drive of the array.
    Spare,
}

/// A device of a file system, as the superblocks list it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// UUID of the device, as its superblock states it.
    pub uuid: Uuid,
    /// Purpose of the device: data, metadata, both, or spare.
    pub role: Role,
    /// Size and kind of the device when the file system was made or, for a device that was added later, at that time.
    pub geometry: Geometry,
}

/// Places of the parts of the metadata. Each part is a pair: its first block in the metadata area, and its number of
/// blocks of 4 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Blocks of 4 KiB of the device that form the metadata area. It begins at block 0, and the two superblocks come
    /// first. On a caveat disk the area consists of islands with unused blocks between them.
    pub place: Place,
    /// Table with a checksum of each block of data and of the hot zone: its first block in the metadata area, and its
    /// number of blocks of 4 KiB.
    pub checksums: (u64, u64),
    /// Log of changes, a ring of blocks: its first block in the metadata area, and its number of blocks of 4 KiB.
    pub log: (u64, u64),
    /// Slots of the two checkpoints, of equal size: for each, its first block in the metadata area, and its number of
    /// blocks of 4 KiB.
    pub checkpoints: [(u64, u64); 2],
    /// Hot zone in the metadata area: its first block there, and its number of blocks of 4 KiB. That number is 0 if
    /// there is no hot zone, or if it is on drives of the array.
    pub hot: (u64, u64),
}

/// State of the copies of the metadata: which of them are up to date. Each writable mount, and each change of this
/// state, gives a higher generation to the copies that are up to date.
///
/// A copy that was lost, or was restored from an earlier mount, has an earlier generation than the copies written
/// without it. If two copies were each written without the other, each has a generation that the other does not know.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Standing {
    /// Generation of the copy of the metadata that contains this superblock. It grows with each writable mount, and
    /// with each change of the set of copies that are up to date.
    pub generation: u64,
    /// Earliest generation since which only superblocks were written, so that copies of this and of later generations
    /// are equally valid. It is below `generation` only while a mount begins: a power failure then leaves copies of
    /// several generations.
    pub since: u64,
    /// For each device with a copy of the metadata, in the order of the superblock's members, the last generation in
    /// which the device is known to have been up to date.
    pub known: Vec<u64>,
}

impl Standing {
    /// Returns the state of `copies` new copies of the metadata: all are up to date, in generation 1.
    pub fn of(copies: usize) -> Standing {
        Standing { generation: 1, since: 1, known: vec![1; copies] }
    }

    /// Returns whether the copy with index `slot` among the devices with metadata is up to date. An index beyond the
    /// list counts as up to date.
    pub fn is_current(&self, slot: usize) -> bool {
        self.known.get(slot).is_none_or(|known| *known >= self.since)
    }

    /// Returns whether a copy of the metadata with superblocks of `generation` holds everything that the copy with this
    /// state holds. This is so if only superblocks were written since `generation` began.
    pub fn holds_all(&self, generation: u64) -> bool {
        (self.since..=self.generation).contains(&generation)
    }

    /// Begins the next generation. In it, the devices for whose index `is_current` returns true are up to date, and no
    /// others are.
    pub fn advance(&mut self, is_current: impl Fn(usize) -> bool) {
        self.announce(is_current);
        self.since = self.generation;
    }

    /// Gives the next generation to the devices for whose index `is_current` returns true. The other devices stay up to
    /// date until something other than a superblock is written in this generation ([`Standing::begin_writing`]).
    pub fn announce(&mut self, is_current: impl Fn(usize) -> bool) {
        self.generation += 1;
        for (slot, known) in self.known.iter_mut().enumerate().filter(|(slot, _)| is_current(*slot)) {
            assert!(*known < self.generation, "device {slot} knows generation {known} before it began");
            *known = self.generation;
        }
    }

    /// Notes that more than superblocks is written in the present generation from now on. Copies with earlier
    /// generations are outdated then.
    pub fn begin_writing(&mut self) {
        self.since = self.generation;
    }

    /// Returns whether `other` has a later generation than this state knows for its device. The device that wrote
    /// `other` has index `slot` among the devices with metadata; for an index beyond the list the result is false. If
    /// this state has the highest generation of all copies, the two copies were each written without the other.
    pub fn disagrees(&self, other: &Standing, slot: usize) -> bool {
        self.known.get(slot).is_some_and(|known| other.generation > *known)
    }
}

/// Extent of the log and the checkpoints when the superblock was written. If less is found at a mount, a write was lost
/// or a block is damaged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct LastDurable {
    /// Number of the newest checkpoint that was durable when the superblock was written. Each checkpoint has a higher
    /// number than those before.
    pub checkpoint: u64,
    /// Number of the first frame of the log that need not have been durable when the superblock was written: all frames
    /// before it were. A frame is the changes that one write appended to the log.
    pub frame: u64,
    /// Whether the file system was unmounted cleanly and not mounted for writing since. If so, no write was in flight
    /// when the device was last used.
    pub is_closed: bool,
}

/// Description of a file system, stored on each of its devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// UUID of the file system.
    pub uuid: Uuid,
    /// Index in `members` of the device that holds this superblock.
    pub member: u32,
    /// Name of the store, the block allocator: `strict-append`, `caveat` or `log`.
    pub store: String,
    /// Options of the store and of the hot zone, as the user gave them to mkfs: pairs of a key and a value. Options
    /// that were not given are absent, but for `hot_files=alone`, which mkfs may choose itself.
    pub options: Vec<(String, String)>,
    /// Blocks of the data device or the array that can hold files: the first block, and the number of blocks of 4 KiB.
    pub data: (u64, u64),
    /// Places of the parts of the metadata on a device with metadata.
    pub layout: Layout,
    /// Devices of the file system, as this device knows them. A drive that joined an array later lists itself at the
    /// end.
    pub members: Vec<Member>,
    /// The way in which an array combines its drives, also for an array of one drive; `None` for stores other than
    /// `log`.
    pub shape: Option<Shape>,
    /// State of the copies of the metadata: which of them are up to date.
    pub standing: Standing,
    /// Newest checkpoint and frames of the log that were durable when the superblock was written. If a mount finds
    /// less, a write was lost or a block is damaged. All values are 0 or false in formats before 9.
    pub last_durable: LastDurable,
    /// Number of times that the superblocks were written. Each time the second block of all copies is written first,
    /// and the first block when that is durable. So two valid superblocks of a device differ by at most one. 0 in
    /// formats before 9.
    pub writes: u64,
    /// Parts of the hot zone on drives of the array, in the order in which their blocks are numbered; empty if there
    /// are none.
    pub hot_parts: Vec<HotPart>,
    /// For a drive that replaced another one: the index in `hot_parts` of the part that this drive took over, if it has
    /// space for that part. `None` for other drives.
    pub taken_part: Option<u8>,
    /// Version of the format in which the superblock was read. Superblocks are always written in [`FORMAT`].
    pub format: u32,
}

impl Superblock {
    /// Returns the number of the hot zone's first block in the numbering of the blocks with checksums: the one after
    /// all blocks of data.
    pub fn hot_base(&self) -> u64 {
        self.data.0 + self.data.1
    }

    /// Returns the number of blocks of 4 KiB of the hot zone, in the metadata area or on drives; 0 if there is none.
    pub fn hot_blocks(&self) -> u64 {
        self.layout.hot.1 + self.hot_parts.iter().map(|part| part.blocks).sum::<u64>()
    }

    /// Returns the number of the first zone of a drive that stripe groups use, for zones of `zone_blocks` blocks. The
    /// zones before it hold the superblock, the metadata or a part of the hot zone. On a zoned drive with metadata they
    /// are all its conventional zones. `number` is the number of the drive in the array, counted from 0; for an unknown
    /// number the result is 1.
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

    /// Returns the first zone that stripe groups use on the drive that holds this superblock, for zones of
    /// `zone_blocks` blocks. The zones before it hold the superblock, the metadata or a part of the hot zone, also one
    /// that was taken over from a replaced drive. The result is 1 for a device without data.
    pub fn own_first_zone(&self, zone_blocks: u64) -> u32 {
        match self.taken_part.map(|part| self.hot_parts[usize::from(part)]) {
            Some(part) => part.first_zone_behind(zone_blocks),
            None => {
                let own = self.data_members().iter().position(|&member| member == self.member as usize);
                own.map_or(1, |number| self.first_zone(number, zone_blocks))
            }
        }
    }

    /// Returns the entry in `members` of the device that holds this superblock.
    pub fn own(&self) -> Member {
        self.members[self.member as usize]
    }

    /// Returns the indices in `members` of the devices with metadata, in ascending order. Each of them has a copy of
    /// all metadata.
    pub fn metadata_members(&self) -> Vec<usize> {
        let holds = |role: Role| matches!(role, Role::Both | Role::Metadata);
        (0..self.members.len()).filter(|&member| holds(self.members[member].role)).collect()
    }

    /// Returns the index of the device that holds this superblock among the devices with metadata; `None` if it holds
    /// no metadata.
    pub fn slot(&self) -> Option<usize> {
        self.metadata_members().iter().position(|&member| member == self.member as usize)
    }

    /// Returns the indices in `members` of the devices with data, in ascending order: the order of the drives in the
    /// array.
    pub fn data_members(&self) -> Vec<usize> {
        let holds = |role: Role| matches!(role, Role::Both | Role::Data);
        (0..self.members.len()).filter(|&member| holds(self.members[member].role)).collect()
    }

    /// Returns the index in `members` of the first device with data.
    ///
    /// # Panics
    /// No device holds data. The decoder refuses such a superblock.
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
