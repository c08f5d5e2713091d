//! The stripe groups that an array's blocks lie in, how far some of them are written, drives that were put in the place of others, and
//! the parts of the hot zone on drives: altered by changes, as the names are, and part of every checkpoint.

use std::collections::BTreeMap;

use crate::format::change::{
    Change, DRIVE_BYTES, GROUP_BYTES, GROUP_ZONE_BYTES, GroupLayout, HOT_PART_BYTES, ROWS_BYTES, ROWS_GROUP_BYTES,
    SEQUENCE_BYTES,
};

/// The groups of an array, its drives as far as they are not those it was made with, and how far the sequence of records went.
#[derive(Clone, Default, Debug)]
pub struct Groups {
    groups: BTreeMap<u32, GroupLayout>,
    drives: BTreeMap<u8, DriveRecord>,
    sequence_below: u64,
    hot_parts: BTreeMap<u8, HotPartRecord>,
    rows: BTreeMap<u32, u32>,
}

/// How a part of the hot zone stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotPartRecord {
    /// The number of the drive that it is on.
    pub drive: u8,
    /// Whether that has room for it.
    pub has_room: bool,
    /// The generation that its stamp is to have, or to go on from.
    pub generation: u64,
}

/// A drive that an array was not made with, or that is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriveRecord {
    /// Its name among devices; 0 where it is gone.
    pub uuid: u128,
    /// The drive in whose place it was put, if it was.
    pub replaces: Option<u8>,
}

impl Groups {
    /// Each group by its number.
    pub fn all(&self) -> &BTreeMap<u32, GroupLayout> {
        &self.groups
    }

    /// The drives that it was not made with, and those that are gone, by number.
    pub fn drives(&self) -> &BTreeMap<u8, DriveRecord> {
        &self.drives
    }

    /// Whether drive `number` is gone.
    pub fn is_gone(&self, number: u8) -> bool {
        self.drives.get(&number).is_some_and(|record| record.uuid == 0)
    }

    /// The drive that was put in the place of `number`, which is not gone yet: not all of it lies on the new one.
    pub fn replacement_of(&self, number: u8) -> Option<u8> {
        let by = self.drives.iter().find(|(_, record)| record.replaces == Some(number) && record.uuid != 0);
        by.map(|(number, _)| *number).filter(|_| !self.is_gone(number))
    }

    /// The drive in whose place `number` was put, where not all of that lies on `number` yet.
    pub fn replaced_by(&self, number: u8) -> Option<u8> {
        self.drives.get(&number)?.replaces.filter(|old| !self.is_gone(*old))
    }

    /// The first sequence that no record in the data has.
    pub fn sequence_below(&self) -> u64 {
        self.sequence_below
    }

    /// The groups of which it is known how many rows are written, and nothing was appended since, where some drive does not tell.
    pub fn rows(&self) -> &BTreeMap<u32, u32> {
        &self.rows
    }

    pub(super) fn put_rows(&mut self, rows: &[(u32, u32)]) {
        let there = rows.iter().filter(|(group, _)| self.groups.contains_key(group));
        self.rows = there.copied().collect();
    }

    /// How part `part` of the hot zone stands, as far as anything was said of it since the file system was made.
    pub fn hot_part(&self, part: u8) -> Option<HotPartRecord> {
        self.hot_parts.get(&part).copied()
    }

    /// Which part of the hot zone lies on drive `number`, if it was put there in the place of another.
    pub fn hot_part_on(&self, number: u8) -> Option<u8> {
        let on = self.hot_parts.iter().find(|(_, record)| record.drive == number && record.has_room);
        on.map(|(part, _)| *part)
    }

    pub(super) fn put_hot_part(&mut self, part: u8, record: HotPartRecord) {
        self.hot_parts.insert(part, record);
    }

    pub(super) fn put_sequence(&mut self, below: u64) {
        self.sequence_below = below;
    }

    /// What was known of the rows of a group is not known where it lies elsewhere, or is another one.
    pub(super) fn put_group(&mut self, group: u32, layout: &GroupLayout) {
        self.rows.remove(&group);
        self.groups.insert(group, layout.clone());
    }

    pub(super) fn drop_group(&mut self, group: u32) {
        self.groups.remove(&group);
        self.rows.remove(&group);
    }

    pub(super) fn put_drive(&mut self, number: u8, record: DriveRecord) {
        self.drives.insert(number, record);
    }

    /// The changes that make all of it anew.
    pub fn describe(&self) -> Vec<Change> {
        let drives = self.drives.iter().map(|(&number, record)| Change::Drive {
            number,
            uuid: record.uuid,
            replaces: record.replaces,
        });
        let groups = self.groups.iter().map(|(&group, layout)| Change::Group { group, layout: layout.clone() });
        let sequence = Some(Change::Sequence { below: self.sequence_below }).filter(|_| self.sequence_below > 0);
        let parts = self.hot_parts.iter().map(|(&part, record)| {
            let HotPartRecord { drive, has_room, generation } = *record;
            Change::HotPart { part, drive, has_room, generation }
        });
        // Behind the groups: it is nothing without them.
        let rows = self.rows.iter().map(|(group, rows)| (*group, *rows)).collect();
        let rows = Some(Change::Rows { groups: rows }).filter(|_| !self.rows.is_empty());
        sequence.into_iter().chain(drives).chain(parts).chain(groups).chain(rows).collect()
    }

    /// Bytes of it in a checkpoint, at most: with the rows of every group, so that these have room whenever they are known.
    pub fn encoded_bytes(&self) -> u64 {
        let zones: u64 = self.groups.values().map(|layout| layout.members.len() as u64).sum();
        self.groups.len() as u64 * GROUP_BYTES
            + zones * GROUP_ZONE_BYTES
            + self.drives.len() as u64 * DRIVE_BYTES
            + self.hot_parts.len() as u64 * HOT_PART_BYTES
            + SEQUENCE_BYTES
            + ROWS_BYTES
            + self.groups.len() as u64 * ROWS_GROUP_BYTES
    }
}
