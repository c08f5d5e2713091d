//! How far groups are written when an array is assembled, and which of them are appended to then.
//!
//! A zone with a pointer tells it itself. Where a drive has none for its zone, the metadata may know how many rows there are
//! ([`Groups::rows`](crate::namespace::Groups::rows)): they are told when the file system is unmounted in order, and forgotten, durably,
//! before anything is appended. So what they say is never less than what was written, and no row is written twice.

use super::drives::{self, Drives};
use super::zone_header::ZoneHeader;
use super::{Array, GroupLayout, ZoneOf};
use crate::device::Device;

impl Array {
    /// The rows of each group that could be appended to and of which some drive does not tell how far it is written. Nothing more
    /// is appended to these groups: they are sealed.
    pub fn seal_untold(&self) -> Vec<(u32, u32)> {
        let rows_max = self.0.shape.rows();
        let drives = self.0.drives.borrow();
        let mut told = Vec::new();
        for (&number, group) in self.0.groups.borrow_mut().iter_mut() {
            let is_open = !group.is_sealed && (1..rows_max).contains(&group.rows);
            if is_open && has_untold(&drives, &group.layout) {
                group.is_sealed = true;
                told.extend(u32::try_from(group.rows).map(|rows| (number, rows)));
            }
        }
        told
    }

    /// The metadata tell rows of no group any more, and that is durable.
    pub fn trust_no_more(&self) {
        self.0.groups.borrow_mut().values_mut().for_each(|group| group.is_trusted = false);
    }

    /// Whether some zone of a group does not tell how far it is written.
    pub(super) fn has_untold(&self, layout: &GroupLayout) -> bool {
        has_untold(&self.0.drives.borrow(), layout)
    }

    /// How many rows a group has by all its zones, where `told` is what the metadata know of those without a pointer; nothing where
    /// they are not equally long, where a drive is not there, or where nobody knows.
    pub(super) fn rows_of(&self, layout: &GroupLayout, told: Option<u32>) -> Option<u64> {
        let told = told.map(u64::from).filter(|rows| (1..=self.0.shape.rows()).contains(rows));
        let drives = self.0.drives.borrow();
        let mut lengths = layout.members.iter().map(|&at| rows_in(&drives, at, told));
        let first = lengths.next()??;
        lengths.all(|length| length == Some(first)).then_some(first)
    }

    /// Zones without a pointer hold so many rows, and nothing behind them that is to be read.
    pub(super) fn set_untold(&self, layout: &GroupLayout, rows: u64) {
        let mut drives = self.0.drives.borrow_mut();
        for &at in &layout.members {
            if let Some(zone) = drives.zone_mut(at).filter(|zone| !zone.has_pointer) {
                zone.written = 1 + rows;
            }
        }
    }

    /// Looks at groups that could be appended to, and seals those whose zones are not what the metadata say: a drive
    /// that was away, or was put back as it had once been, has zones of another time.
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

    /// Whether the last row of a group agrees with its parity: rows are written in order, so a drive that has it has those before
    /// it. Asked only of groups with a zone that does not tell how far it is written.
    async fn ends_right(&self, layout: &GroupLayout, rows: u64) -> bool {
        let Some(last) = rows.checked_sub(1) else { return true };
        !self.has_untold(layout) || matches!(self.agrees_with_parity(layout, last).await, Ok(true))
    }

    /// Reads the header of the zone of column `column`.
    async fn header(&self, layout: &GroupLayout, column: usize) -> Option<ZoneHeader> {
        let at = layout.members[column];
        let device = self.0.drives.borrow().reader(at.drive)?;
        let block = device.read(self.start_of(at), 1).await.ok()?;
        let header = ZoneHeader::decode(&block)?;
        (header.file_system == self.0.file_system && usize::from(header.column) == column).then_some(header)
    }

    /// Closes partly written zones of no group, for they count against a drive's limit of open zones. They are reset
    /// only when they are used: if old metadata were given by mistake, what these zones hold is still wanted.
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

    /// Closes the zones of a sealed group: those that are partly written count against a drive's limit of open zones.
    pub(super) async fn finish_zones(&self, layout: &GroupLayout) {
        for &at in &layout.members {
            let is_partly = |zone: &drives::Zone| zone.has_pointer && zone.written < self.0.shape.zone_blocks;
            let device = {
                let drives = self.0.drives.borrow();
                drives.zone(at).filter(|zone| is_partly(zone) && zone.written > 0).and_then(|_| drives.device(at.drive))
            };
            if let Some(device) = device {
                // One that cannot be closed stays open: then fewer others can be, and nothing is lost.
                let _ = device.finish(at.zone).await;
            }
        }
    }
}

fn has_untold(drives: &Drives, layout: &GroupLayout) -> bool {
    !layout.members.iter().all(|at| drives.zone(*at).is_some_and(|zone| zone.has_pointer))
}

/// Rows in a zone, if it is there: by its own pointer, or as it is `told` where it keeps none.
fn rows_in(drives: &Drives, at: ZoneOf, told: Option<u64>) -> Option<u64> {
    drives.device(at.drive)?;
    let zone = drives.zone(at).filter(|zone| !zone.is_bad)?;
    if zone.has_pointer { zone.written.checked_sub(1) } else { told }
}
