//! How far groups are written when an array is assembled, and which groups are appended to again.
//!
//! A zone with a write pointer reports its length itself. For a zone without one the metadata may hold the number of
//! rows ([`Groups::rows`](crate::namespace::Groups::rows)). That number is recorded at an orderly unmount, and deleted
//! durably before anything is appended. So it is never less than the rows written, and no row is written
//! twice.

use super::drives::{self, Drives};
use super::zone_header::ZoneHeader;
use super::{Array, GroupLayout, ZoneOf};
use crate::device::Device;

impl Array {
    /// Closes to appends every partly written stripe group that has a zone without a write pointer. Returns the number
    /// of each, and the number of its written rows (one block of each zone). Groups without rows, full groups and
    /// groups that are closed already are left out. The caller records the rows in the metadata, for the next mount.
    pub fn seal_unreported(&self) -> Vec<(u32, u32)> {
        let rows_max = self.0.shape.rows();
        let drives = self.0.drives.borrow();
        let mut rows = Vec::new();
        for (&number, group) in self.0.groups.borrow_mut().iter_mut() {
            let is_open = !group.is_sealed && (1..rows_max).contains(&group.rows);
            if is_open && has_unreported(&drives, &group.layout) {
                group.is_sealed = true;
                rows.extend(u32::try_from(group.rows).map(|rows| (number, rows)));
            }
        }
        rows
    }

    /// Permits appends to the stripe groups whose numbers of written rows are known only from the metadata, not from
    /// write pointers. The caller has durably deleted these numbers from the metadata before.
    pub fn trust_no_more(&self) {
        self.0.groups.borrow_mut().values_mut().for_each(|group| group.is_trusted = false);
    }

    /// Returns whether a zone of the group has no write pointer.
    pub(super) fn has_unreported(&self, layout: &GroupLayout) -> bool {
        has_unreported(&self.0.drives.borrow(), layout)
    }

    /// Returns the number of rows of a group if all its zones agree on it. `recorded` is the number in the metadata for
    /// zones without a write pointer. `None` if the zones differ in length, if a drive is missing or if a length is
    /// unknown.
    pub(super) fn rows_of(&self, layout: &GroupLayout, recorded: Option<u32>) -> Option<u64> {
        // An append that would leave a single row takes that row too, so no group is recorded with one row left.
        let recorded = recorded.map(u64::from).filter(|rows| (1..self.0.shape.rows().saturating_sub(1)).contains(rows));
        let drives = self.0.drives.borrow();
        let mut lengths = layout.members.iter().map(|&at| rows_in(&drives, at, recorded));
        let first = lengths.next()??;
        lengths.all(|length| length == Some(first)).then_some(first)
    }

    /// Sets the length of the group's zones without a write pointer to `rows` rows; blocks behind them are not read.
    pub(super) fn set_unreported(&self, layout: &GroupLayout, rows: u64) {
        let mut drives = self.0.drives.borrow_mut();
        for &at in &layout.members {
            if let Some(zone) = drives.zone_mut(at).filter(|zone| !zone.has_pointer) {
                zone.written = 1 + rows;
            }
        }
    }

    /// Checks the groups that could be appended to, and seals those whose zones differ from the metadata. A drive that
    /// was absent, or was restored from an old copy, has zones of an earlier time.
    pub(super) async fn look_at_open_groups(&self, is_read_only: bool) {
        let numbers: Vec<u32> = self.0.groups.borrow().keys().copied().collect();
        for group in numbers {
            let (layout, rows, is_sealed) = {
                let groups = self.0.groups.borrow();
                let found = &groups[&group];
                (found.layout.clone(), found.rows, found.is_sealed)
            };
            let is_open = !is_sealed && rows < self.0.shape.rows();
            let is_strange =
                is_open && !(self.has_headers(group, &layout).await && self.ends_right(&layout, rows).await);
            if is_strange {
                self.seal(group);
            }
            if (is_strange || is_sealed) && !is_read_only {
                self.finish_zones(&layout).await;
            }
        }
    }

    async fn has_headers(&self, group: u32, layout: &GroupLayout) -> bool {
        for column in 0..layout.members.len() {
            match self.header(layout, column).await {
                Some(header) if header.group == group && header.layout.sequence == layout.sequence => {}
                _ => return false,
            }
        }
        true
    }

    /// Returns whether the last row of a group agrees with its parity, or every zone has a write pointer. Rows are
    /// written in order, so a drive that has the last row has all rows before it.
    async fn ends_right(&self, layout: &GroupLayout, rows: u64) -> bool {
        let Some(last) = rows.checked_sub(1) else { return true };
        !self.has_unreported(layout) || matches!(self.agrees_with_parity(layout, last).await, Ok(true))
    }

    /// Reads the header of the zone of column `column`; `None` if it is unreadable or belongs to another place.
    async fn header(&self, layout: &GroupLayout, column: usize) -> Option<ZoneHeader> {
        let at = layout.members[column];
        let device = self.0.drives.borrow().reader(at.drive)?;
        let block = device.read(self.start_of(at), 1).await.ok()?;
        let header = ZoneHeader::decode(&block)?;
        (header.file_system == self.0.file_system && usize::from(header.column) == column).then_some(header)
    }

    /// Finishes partly written zones that belong to no group, since they count against a drive's limit of open zones.
    /// They are reset only when they are used: if old metadata were mounted by mistake, the data in these zones are
    /// still wanted.
    pub(super) async fn close_free_zones(&self) {
        let partly: Vec<(ZoneOf, Device)> = {
            let drives = self.0.drives.borrow();
            let partly = drives.free_partly_written(self.0.shape.zone_blocks);
            partly.into_iter().filter_map(|at| Some((at, drives.device(at.drive)?))).collect()
        };
        for (at, device) in partly {
            let _ = device.finish(at.zone).await;
        }
    }

    /// Finishes the partly written zones of a sealed group, since they count against a drive's limit of open zones.
    pub(super) async fn finish_zones(&self, layout: &GroupLayout) {
        for &at in &layout.members {
            let is_partly = |zone: &drives::Zone| zone.has_pointer && zone.written < self.0.shape.zone_blocks;
            let device = {
                let drives = self.0.drives.borrow();
                drives.zone(at).filter(|zone| is_partly(zone) && zone.written > 0).and_then(|_| drives.device(at.drive))
            };
            if let Some(device) = device {
                // A zone that cannot be finished stays open: then fewer others can be open, and nothing is lost.
                let _ = device.finish(at.zone).await;
            }
        }
    }
}

fn has_unreported(drives: &Drives, layout: &GroupLayout) -> bool {
    !layout.members.iter().all(|at| drives.zone(*at).is_some_and(|zone| zone.has_pointer))
}

/// Returns the number of rows in a zone by its write pointer, or `recorded` if it has none. `None` if the zone is bad or
/// its drive cannot be written.
fn rows_in(drives: &Drives, at: ZoneOf, recorded: Option<u64>) -> Option<u64> {
    drives.device(at.drive)?;
    let zone = drives.zone(at).filter(|zone| !zone.is_bad)?;
    if zone.has_pointer { zone.written.checked_sub(1) } else { recorded }
}
