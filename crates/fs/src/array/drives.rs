//! The drives of an array and their zones: the free zones, how far each zone is written, and the missing drives.
//!
//! A drive without zones of its own is divided into zones of the array's size, which are appended to as well. Their
//! write pointers are known only in memory and are unknown after a mount.
//!
//! Invariants:
//! 1. A zone is free, taken by one group, or bad.
//! 2. [`Drives::take`] takes the zones of a group from the drives with the most free zones. As long as all open groups
//!    are as wide as possible, no other choice would leave room for more groups.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::Belongs;
use crate::device::{Device, ZoneCondition, ZoneState};
use crate::format::change::ZoneOf;

/// Failed zones up to which a drive is still written; it is lost for writing after one more.
const FAILURES_MAX: u32 = 3;

/// Zone of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Zone {
    /// Number of blocks of 4 KiB from the start of the zone on that are written or being written, header block
    /// included. Only these are read.
    pub written: u64,
    /// Whether the drive itself keeps a write pointer for the zone. If so, the zone must be reset before it is written
    /// again.
    pub has_pointer: bool,
    /// Whether the zone can no longer be written, because a write failed or the drive reports it.
    pub is_bad: bool,
    /// Whether the zone can neither be read nor written any more.
    pub is_offline: bool,
}

/// Drive of an array.
pub(super) struct Drive {
    /// UUID of the drive.
    pub uuid: Uuid,
    /// The opened device; `None` if the drive is missing.
    pub device: Option<Device>,
    /// First zone of the drive that belongs to the array.
    first: u32,
    zones: Vec<Zone>,
    /// Zones that groups name, of a missing drive, which cannot report its zones.
    named: BTreeMap<u32, Zone>,
    free: BTreeSet<u32>,
    failures: u32,
    /// Whether the drive is no longer written. It may still be read.
    is_failing: bool,
    /// Whether the drive does not answer at all.
    is_dead: bool,
    belongs: Belongs,
}

impl Drive {
    /// Returns the drive `uuid` with `zones` zones from number `first` on. `states` are all zones that the device
    /// reports; it is empty for a drive without zones. A missing drive gets its zones later, from the groups that name
    /// them.
    pub(super) fn new(
        uuid: Uuid,
        device: Option<Device>,
        zone_blocks: u64,
        first: u32,
        zones: u32,
        states: &[ZoneState],
    ) -> Drive {
        let zone = |number: u32| zone_of(states.get((first + number) as usize), zone_blocks);
        let zones = if device.is_some() { zones } else { 0 };
        let zones: Vec<Zone> = (0..zones).map(zone).collect();
        let is_free = |number: &u32| !zones[(number - first) as usize].is_bad;
        let free = (first..first + zones.len() as u32).filter(is_free).collect();
        Drive {
            uuid,
            device,
            first,
            zones,
            named: BTreeMap::new(),
            free,
            failures: 0,
            is_failing: false,
            is_dead: false,
            belongs: Belongs::Yes,
        }
    }

    /// Returns this drive with its relation to the array set to `belongs`.
    pub(super) fn that_belongs(self, belongs: Belongs) -> Drive {
        Drive { belongs, ..self }
    }

    /// Returns whether the drive can be written: it is present, has not failed, was not replaced and is not being
    /// replaced.
    pub(super) fn is_there(&self) -> bool {
        self.device.is_some() && !self.is_lost() && self.belongs == Belongs::Yes
    }

    /// Returns whether the drive is absent or has failed, although it belongs to the array or is being replaced.
    pub(super) fn is_missing(&self) -> bool {
        self.belongs != Belongs::No && (self.device.is_none() || self.is_lost())
    }

    /// Returns whether the drive belongs to the array, including a drive that is being replaced.
    pub(super) fn belongs_now(&self) -> bool {
        self.belongs != Belongs::No
    }

    /// Returns whether the drive was present at the mount and has failed since.
    pub(super) fn is_lost(&self) -> bool {
        self.is_failing || self.is_dead
    }

    /// Records that a group names a zone of this missing drive. Returns whether no other group did.
    fn name(&mut self, zone: u32) -> bool {
        let none = Zone { written: 0, has_pointer: false, is_bad: false, is_offline: false };
        zone >= self.first && self.named.insert(zone, none).is_none()
    }

    fn zone_mut(&mut self, zone: u32) -> Option<&mut Zone> {
        let at = zone.checked_sub(self.first)? as usize;
        if self.device.is_none() { self.named.get_mut(&zone) } else { self.zones.get_mut(at) }
    }

    fn zone(&self, zone: u32) -> Option<&Zone> {
        let at = zone.checked_sub(self.first)? as usize;
        if self.device.is_none() { self.named.get(&zone) } else { self.zones.get(at) }
    }
}

fn zone_of(state: Option<&ZoneState>, zone_blocks: u64) -> Zone {
    let condition = state.map_or(ZoneCondition::Conventional, |state| state.condition);
    let (has_pointer, written) = match (condition, state) {
        (ZoneCondition::Writable, Some(state)) => (true, state.written),
        (ZoneCondition::Full | ZoneCondition::ReadOnly, _) => (true, zone_blocks),
        (ZoneCondition::Offline, _) => (true, 0),
        // The write pointer is unknown: any block may hold data.
        _ => (false, zone_blocks),
    };
    let is_bad = matches!(condition, ZoneCondition::ReadOnly | ZoneCondition::Offline);
    Zone { written, has_pointer, is_bad, is_offline: condition == ZoneCondition::Offline }
}

/// All drives of an array.
pub(super) struct Drives {
    parity: usize,
    width_max: usize,
    drives: Vec<Drive>,
    losses: u64,
}

impl Drives {
    /// Returns the set of `drives`, for groups of up to `width_max` data zones and `parity` parity zones.
    pub(super) fn new(parity: usize, width_max: usize, drives: Vec<Drive>) -> Drives {
        Drives { parity, width_max, drives, losses: 0 }
    }

    /// Returns all drives in order of their numbers.
    pub(super) fn all(&self) -> &[Drive] {
        &self.drives
    }

    /// Returns drive `number`.
    pub(super) fn get(&self, number: u8) -> Option<&Drive> {
        self.drives.get(usize::from(number))
    }

    /// Adds `drive` and returns its number.
    pub(super) fn add(&mut self, drive: Drive) -> u8 {
        self.drives.push(drive);
        (self.drives.len() - 1) as u8
    }

    /// Sets the relation of drive `number` to the array.
    pub(super) fn set_belongs(&mut self, number: u8, belongs: Belongs) {
        self.drives[usize::from(number)].belongs = belongs;
    }

    /// Returns the device of drive `number`, if it can be written.
    pub(super) fn device(&self, number: u8) -> Option<Device> {
        self.get(number).filter(|drive| drive.is_there()).and_then(|drive| drive.device.clone())
    }

    /// Returns the device of drive `number`, if it can be read: also of a drive that failed only for writing.
    pub(super) fn reader(&self, number: u8) -> Option<Device> {
        self.get(number).filter(|drive| !drive.is_dead).and_then(|drive| drive.device.clone())
    }

    /// Returns a zone, if the drive has it.
    pub(super) fn zone(&self, at: ZoneOf) -> Option<&Zone> {
        self.get(at.drive)?.zone(at.zone)
    }

    /// Returns a zone for modification, if the drive has it.
    pub(super) fn zone_mut(&mut self, at: ZoneOf) -> Option<&mut Zone> {
        self.drives.get_mut(usize::from(at.drive))?.zone_mut(at.zone)
    }

    /// Returns the number of missing drives.
    pub(super) fn missing(&self) -> usize {
        self.drives.iter().filter(|drive| drive.is_missing()).count()
    }

    /// Returns the free zones that are neither empty nor full.
    pub(super) fn free_partly_written(&self, zone_blocks: u64) -> Vec<ZoneOf> {
        let mut partly = Vec::new();
        for (number, drive) in self.drives.iter().enumerate() {
            let is_partly = |zone: &Zone| zone.has_pointer && zone.written > 0 && zone.written < zone_blocks;
            let zones = drive.free.iter().filter(|zone| drive.zone(**zone).is_some_and(is_partly));
            partly.extend(zones.map(|&zone| ZoneOf { drive: number as u8, zone }));
        }
        partly
    }

    /// Takes a zone for a group. Returns whether the zone was free or bad; a zone of a missing drive must not be taken
    /// yet.
    pub(super) fn claim(&mut self, at: ZoneOf) -> bool {
        let Some(drive) = self.drives.get_mut(usize::from(at.drive)) else { return false };
        if drive.device.is_none() {
            return drive.name(at.zone);
        }
        let is_bad = drive.zone(at.zone).is_some_and(|zone| zone.is_bad);
        drive.free.remove(&at.zone) || is_bad
    }

    /// Frees a zone that belongs to no group any more. A bad zone does not become free.
    pub(super) fn give_back(&mut self, at: ZoneOf) {
        let Some(drive) = self.drives.get_mut(usize::from(at.drive)) else { return };
        if drive.device.is_none() {
            drive.named.remove(&at.zone);
        } else if drive.zone(at.zone).is_some_and(|zone| !zone.is_bad) {
            drive.free.insert(at.zone);
        }
    }

    /// Marks a zone as bad. Several failed writes to one zone count as one failure of the drive.
    pub(super) fn fail_zone(&mut self, at: ZoneOf) {
        let Some(drive) = self.drives.get_mut(usize::from(at.drive)) else { return };
        drive.free.remove(&at.zone);
        let was_bad = drive.zone_mut(at.zone).is_some_and(|zone| std::mem::replace(&mut zone.is_bad, true));
        if was_bad {
            return;
        }
        drive.failures += 1;
        drive.is_failing |= drive.failures > FAILURES_MAX;
        self.losses += 1;
    }

    /// Marks drive `number` as lost for writing, and for reading too if `is_dead`.
    pub(super) fn lose(&mut self, number: u8, is_dead: bool) {
        let drive = &mut self.drives[usize::from(number)];
        drive.is_failing = true;
        drive.is_dead |= is_dead;
        self.losses += 1;
    }

    /// Returns how often a zone or a drive was lost.
    pub(super) fn losses(&self) -> u64 {
        self.losses
    }

    /// Returns the number of data columns of the widest new group; `None` if no group can be opened.
    fn widest(&self, counts: &[u32]) -> Option<usize> {
        let with_room = counts.iter().filter(|count| **count > 0).count();
        let width = with_room.checked_sub(self.parity)?.min(self.width_max);
        (width > 0).then_some(width)
    }

    fn free_counts(&self) -> Vec<u32> {
        self.drives.iter().map(|drive| if drive.is_there() { drive.free.len() as u32 } else { 0 }).collect()
    }

    /// Returns the number of free zones on the drives that can be written.
    pub(super) fn free_zones(&self) -> u64 {
        self.free_counts().into_iter().map(u64::from).sum()
    }

    /// Returns the number of data zones of the widest group that could be opened now.
    pub(super) fn widest_now(&self) -> Option<usize> {
        self.widest(&self.free_counts())
    }

    /// Returns whether a group of `width` data zones could be opened, and after it `keep` groups of `kept_width`.
    pub(super) fn can_open(&self, width: usize, keep: u32, kept_width: usize) -> bool {
        let mut counts = self.free_counts();
        take_most_free(&mut counts, width + self.parity)
            && (0..keep).all(|_| take_most_free(&mut counts, kept_width + self.parity))
    }

    /// Returns the widths of all groups that the writable drives could hold if they were empty, each group as wide as
    /// possible.
    pub(super) fn formable(&self) -> Vec<usize> {
        let usable = |drive: &Drive| drive.zones.iter().filter(|zone| !zone.is_bad).count() as u32;
        let mut counts: Vec<u32> =
            self.drives.iter().map(|drive| if drive.is_there() { usable(drive) } else { 0 }).collect();
        let mut widths = Vec::new();
        while let Some(width) = self.widest(&counts) {
            take_most_free(&mut counts, width + self.parity);
            widths.push(width);
        }
        widths
    }

    /// Returns the widths of the groups that could be opened now one after the other, each as wide as possible.
    pub(super) fn free_groups(&self) -> Vec<usize> {
        self.free_groups_up_to(usize::MAX)
    }

    /// Like [`Drives::free_groups`], but returns at most `most` widths.
    pub(super) fn free_groups_up_to(&self, most: usize) -> Vec<usize> {
        let (mut counts, mut widths) = (self.free_counts(), Vec::new());
        while let Some(width) = self.widest(&counts).filter(|_| widths.len() < most) {
            take_most_free(&mut counts, width + self.parity);
            widths.push(width);
        }
        widths
    }

    /// Takes a free zone on each of the `columns` drives with the most free zones; `None` if too few drives have any.
    /// The order of the drives is rotated by `turn`, so that parity is spread over the drives.
    pub(super) fn take(&mut self, columns: usize, turn: u64) -> Option<Vec<ZoneOf>> {
        let mut drives = most_free(&self.free_counts(), columns)?;
        drives.sort_unstable();
        drives.rotate_left((turn % columns as u64) as usize);
        let mut taken = Vec::with_capacity(columns);
        for drive in drives {
            let zone = self.drives[drive].free.pop_first().expect("it was chosen for its free zones");
            taken.push(ZoneOf { drive: drive as u8, zone });
        }
        Some(taken)
    }

    /// Takes a free zone of drive `number`; `None` if there is none or the drive cannot be written.
    pub(super) fn take_on(&mut self, number: u8) -> Option<ZoneOf> {
        let drive = self.drives.get_mut(usize::from(number)).filter(|drive| drive.is_there())?;
        drive.free.pop_first().map(|zone| ZoneOf { drive: number, zone })
    }
}

/// Returns the `columns` drives with the most free zones, if so many have any.
fn most_free(counts: &[u32], columns: usize) -> Option<Vec<usize>> {
    let mut drives: Vec<usize> = (0..counts.len()).filter(|&drive| counts[drive] > 0).collect();
    drives.sort_by_key(|&drive| (std::cmp::Reverse(counts[drive]), drive));
    drives.truncate(columns);
    (drives.len() == columns).then_some(drives)
}

fn take_most_free(counts: &mut [u32], columns: usize) -> bool {
    let Some(drives) = most_free(counts, columns) else { return false };
    drives.into_iter().for_each(|drive| counts[drive] -= 1);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Geometry, Kind};

    fn drives(zones: &[u32], parity: usize, width: usize) -> Drives {
        let executor = crate::Executor::in_virtual_time();
        let drive = |(number, zones): (usize, &u32)| {
            let geometry = Geometry { blocks: 64, kind: Kind::Plain };
            let device = Device::new(&executor, "drive", Box::new(crate::device::memory::Memory::new(geometry)));
            Drive::new(Uuid::from_u128(number as u128), Some(device), 8, 1, *zones, &[])
        };
        Drives::new(parity, width, zones.iter().enumerate().map(drive).collect())
    }

    /// Returns the largest possible number of groups of `columns` drives: the largest count such that drives that each
    /// give at most that many zones have enough together.
    fn most_groups(zones: &[u32], columns: u32) -> u32 {
        let fits = |count: &u32| zones.iter().map(|zones| zones.min(count)).sum::<u32>() >= count * columns;
        (0..=zones.iter().sum()).rev().find(fits).unwrap_or(0)
    }

    #[test]
    fn as_many_groups_of_one_width_are_opened_as_can_be() {
        for zones in [[5, 5, 5, 5], [9, 3, 3, 3], [2, 1, 1, 0], [7, 7, 1, 1], [10, 1, 1, 1]] {
            let mut all = drives(&zones, 1, 1);
            let expected = most_groups(&zones, 2);
            assert_eq!(all.formable().len() as u32, expected, "{zones:?}");
            let mut opened = 0;
            while let Some(taken) = all.take(2, opened) {
                assert_ne!(taken[0].drive, taken[1].drive);
                opened += 1;
            }
            assert_eq!(opened as u32, expected, "{zones:?}");
        }
    }

    /// Checks that failed writes in flight to one zone do not cost the drive, but zones that fail one by one do.
    #[test]
    fn a_zone_fails_once_however_many_writes_it_takes_along() {
        let mut all = drives(&[9], 0, 1);
        for zone in 1..=FAILURES_MAX {
            (0..10).for_each(|_| all.fail_zone(ZoneOf { drive: 0, zone }));
            assert!(all.device(0).is_some() && all.losses() == u64::from(zone), "{zone} zones");
        }
        all.fail_zone(ZoneOf { drive: 0, zone: FAILURES_MAX + 1 });
        assert!(all.device(0).is_none(), "too many zones");
    }

    #[test]
    fn what_is_kept_back_stays_free() {
        let mut all = drives(&[3, 3, 3], 1, 2);
        assert!(all.can_open(2, 2, 2) && !all.can_open(2, 3, 2));
        all.take(2, 0).expect("two drives have room");
        assert!(all.can_open(2, 1, 2) && !all.can_open(2, 2, 2), "a narrow one takes of the wide ones that could be");
    }

    #[test]
    fn a_group_is_as_wide_as_drives_have_room() {
        assert_eq!(drives(&[4, 2, 1], 1, 2).formable(), [2, 1]);
        assert_eq!(drives(&[4, 2, 1], 1, 8).formable(), [2, 1]);
        assert_eq!(drives(&[4, 2, 1], 3, 1).formable(), [0; 0]);
    }
}
