//! State of an array in the namespace: its stripe groups, the numbers of rows written in some of them, its replaced
//! drives, and the parts of the hot zone on drives. Changes alter this state, and every checkpoint contains it.

use std::collections::BTreeMap;

use crate::format::change::{
    Change, DRIVE_BYTES, GROUP_BYTES, GROUP_ZONE_BYTES, GroupLayout, HOT_PART_BYTES, ROWS_BYTES, ROWS_GROUP_BYTES,
    SEQUENCE_BYTES,
};

/// State of an array in the namespace: its stripe groups, the drives that were added or removed since the array was
/// made, parts of the hot zone, and the bound of the sequence numbers of records stored with the data.
#[derive(Clone, Default, Debug)]
pub struct Groups {
    groups: BTreeMap<u32, GroupLayout>,
    drives: BTreeMap<u8, DriveRecord>,
    sequence_below: u64,
    hot_parts: BTreeMap<u8, HotPartRecord>,
    rows: BTreeMap<u32, u32>,
}

/// State of a part of the hot zone on a drive, as recorded in the metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotPartRecord {
    /// Number of the drive in the array that holds the part, counted from 0.
    pub drive: u8,
    /// Whether the drive has space for the part. If not, the part is not in use.
    pub has_room: bool,
    /// Generation of the contents of the part, a number that grows whenever the part is taken into use or given up. The
    /// contents are valid if the stamp on the drive has this generation or names it as continued; otherwise they are
    /// outdated. No stamp has generation 0.
    pub generation: u64,
}

/// Record of a drive that was added since the array was made, or that was removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriveRecord {
    /// UUID of the drive as a number; 0 if the drive was removed.
    pub uuid: u128,
    /// Number, counted from 0, of the drive that this drive replaces or has replaced; `None` if there is none, or if
    /// this drive was removed.
    pub replaces: Option<u8>,
}

impl Groups {
    /// Returns the layouts of all stripe groups, by group number.
    pub fn all(&self) -> &BTreeMap<u32, GroupLayout> {
        &self.groups
    }

    /// Returns the records of the drives that were added since the array was made or that were removed, by drive
    /// number. Other drives have no record.
    pub fn drives(&self) -> &BTreeMap<u8, DriveRecord> {
        &self.drives
    }

    /// Returns whether drive `number`, counted from 0, was removed from the array, that is, its replacement is
    /// complete. Returns false for a drive without a record.
    pub fn is_gone(&self, number: u8) -> bool {
        self.drives.get(&number).is_some_and(|record| record.uuid == 0)
    }

    /// Returns the number of the drive that is replacing drive `number`. Returns `None` if there is none, or once the
    /// replacement is complete.
    pub fn replacement_of(&self, number: u8) -> Option<u8> {
        let by = self.drives.iter().find(|(_, record)| record.replaces == Some(number) && record.uuid != 0);
        by.map(|(number, _)| *number).filter(|_| !self.is_gone(number))
    }

    /// Returns the number of the drive that drive `number` is replacing. Returns `None` if there is none, or once the
    /// replacement is complete.
    pub fn replaced_by(&self, number: u8) -> Option<u8> {
        self.drives.get(&number)?.replaces.filter(|old| !self.is_gone(*old))
    }

    /// Returns the recorded bound below which all sequence numbers of records stored with the data lie; 0 if none was
    /// recorded.
    pub fn sequence_below(&self) -> u64 {
        self.sequence_below
    }

    /// Returns the recorded numbers of written rows, by number of the stripe group. A row is one block of each zone of
    /// the group. They are recorded at an unmount, for groups of which some drive has no write pointer, and deleted
    /// before anything is appended.
    pub fn rows(&self) -> &BTreeMap<u32, u32> {
        &self.rows
    }

    pub(super) fn put_rows(&mut self, rows: &[(u32, u32)]) {
        let there = rows.iter().filter(|(group, _)| self.groups.contains_key(group));
        self.rows = there.copied().collect();
    }

    /// Returns the recorded state of part `part` of the hot zone. Returns `None` if nothing was recorded since the file
    /// system was made: the part is then where it was made.
    pub fn hot_part(&self, part: u8) -> Option<HotPartRecord> {
        self.hot_parts.get(&part).copied()
    }

    /// Returns the number of the part of the hot zone that is recorded to be on drive `number`, with space for it.
    /// Returns `None` if there is no such record, even if the drive was given a part when the file system was made.
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

    /// Adds or replaces a group. Its recorded number of rows is no longer valid.
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

    /// Returns the changes that recreate this state when they are applied in order to an empty one.
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
        // Behind the groups, since rows of unknown groups are ignored.
        let rows = self.rows.iter().map(|(group, rows)| (*group, *rows)).collect();
        let rows = Some(Change::Rows { groups: rows }).filter(|_| !self.rows.is_empty());
        sequence.into_iter().chain(drives).chain(parts).chain(groups).chain(rows).collect()
    }

    /// Returns an upper bound of the size of this state in a checkpoint, in bytes. It has room for the number of rows
    /// of every group, although few are recorded.
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
