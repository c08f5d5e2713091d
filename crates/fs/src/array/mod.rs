//! Array of 1 to 16 drives (Jin 2014 §II.D.3): zones of several drives that are appended to together, with parity.
//!
//! ```text
//!   stripe group 7 (3 data, 1 parity)      zone 12 of drive 2 · zone 4 of drive 3 · zone 9 of drive 0 · zone 4 of drive 1
//!                       header                    H                  H                   H                  H
//!                       row 0                  block 0            block 1             block 2            parity
//!                       row 1                  block 3            block 4             block 5            parity
//! ```
//!
//! A *stripe group* is k' data zones and m parity zones, each on a drive of its own. The drives are chosen by their
//! free zones when the group is opened. The store above uses the group as one zone of k' × (zone blocks − 1) blocks. It
//! is appended to in whole rows, the last one filled with zeros, and emptied as a whole. A block number is group ×
//! stride + position in the group. The stride is that of the widest possible group, so groups of any width have
//! disjoint block numbers. Each zone begins with a header block that describes it ([`zone_header`]), written with the
//! first rows.
//!
//! The zones of a group are recorded in the metadata log before any record that names data in the group, so the former
//! is durable whenever the latter is. Zones that are in no group may hold anything, and are reset before they are used.
//!
//! A *sealed* group is read, and not appended to until it has been emptied. A group is sealed if one of its drives is
//! missing, a write to it failed, its zones differ in length, or their lengths are unknown ([`fill`]). So the columns
//! of a group on an absent drive never become outdated: they are right, or missing.
//!
//! Invariants:
//! 1. A row is written once, whole. A flushed row is readable while any k' of its columns are.
//! 2. A drive is lost for writing as soon as it fails to flush. No acknowledged data were on that drive only, unless m
//!    is 0.
//! 3. No zone is in two groups.
//! 4. Rows may be submitted while earlier rows are in flight, and reach each drive after the earlier ones. When a write
//!    of a group fails, the group is sealed before another write to the group is submitted.

mod data;
mod decoder;
mod drives;
mod fill;
pub mod parity;
mod rebuild;
mod rows;
#[cfg(test)]
mod tests;
pub mod zone_header;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use futures_util::future::join_all;
use uuid::Uuid;

pub use self::data::Data;
use self::drives::{Drive, Drives};
pub use self::rebuild::Moving;
use self::zone_header::ZoneHeader;
use crate::device::{Device, DeviceFault, Geometry, Kind, Traffic, ZoneCondition, ZoneState};
use crate::error::FsError;
use crate::executor::{Signal, Waiting};
use crate::format::change::{GroupLayout, ZoneOf};
use crate::format::shape::{Shape, zones_of};
use crate::namespace::Groups;

/// How often opening a group is tried, each time on other zones.
const ATTEMPTS: u32 = 8;

/// Drive as given to [`Array::assemble`], present or missing.
pub struct Part {
    /// UUID of the drive.
    pub uuid: Uuid,
    /// The opened device; `None` if the drive is missing.
    pub device: Option<Device>,
    /// Geometry of the drive when the array was made. The geometry of a present device takes precedence.
    pub geometry: Geometry,
    /// Number of the first zone of the drive that holds stripe groups. Lower zones are never used for them.
    pub first: u32,
    /// Whether the drive belongs to the array, is being replaced, or was replaced.
    pub belongs: Belongs,
}

/// Whether a drive belongs to an array, is being replaced, or was replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Belongs {
    /// The drive belongs to the array: it is read and written.
    Yes,
    /// The drive is being replaced: nothing is written to it any more. It is read as long as it answers, until all its
    /// data are on the other drive.
    Leaving,
    /// The drive was replaced and no longer belongs to the array. Its number is not given to another drive.
    No,
}

/// Stripe group: its zones, and how far they are written.
#[derive(Clone, Debug)]
struct Group {
    layout: GroupLayout,
    /// Number of rows that are written or being written.
    rows: u64,
    /// Whether the zones have their headers. They are written together with the first rows, which saves a rotation
    /// between the two.
    has_headers: bool,
    is_sealed: bool,
    /// Whether the number of rows is known only from the metadata. Nothing is appended until that number is durably
    /// deleted there.
    is_trusted: bool,
}

/// Counts of the array's additional work since the array was assembled, that is, since the mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ArrayCounters {
    /// Number of blocks of zeros, of 4 KiB, that were appended behind data since the mount, because an array writes
    /// only whole rows of a stripe group.
    pub padding_blocks: u64,
    /// Number of blocks of 4 KiB that appends wrote to parity zones since the mount, including the header blocks of
    /// these zones. Columns that were written again for a replaced drive are not counted.
    pub parity_blocks: u64,
    /// Number of rows, since the mount, in reads for which a requested column was unreadable, so that blocks had to be
    /// reconstructed from the other columns. All rows of such a read count, and a row counts again at each read.
    pub degraded_rows: u64,
    /// Number of blocks of 4 KiB, since the mount, that did not match their checksum and were reconstructed from the
    /// other columns of their row.
    pub recovered_blocks: u64,
}

struct Inner {
    file_system: Uuid,
    shape: Shape,
    drives: RefCell<Drives>,
    groups: RefCell<BTreeMap<u32, Group>>,
    /// Numbers that no group has.
    free_numbers: RefCell<BTreeSet<u32>>,
    sequence: Cell<u64>,
    /// Occurs when a drive is lost.
    is_short: Signal,
    counters: Cell<ArrayCounters>,
    /// Parity writes held back until the next flush, if tests inject that fault.
    late_parity: RefCell<Option<Vec<LateWrite>>>,
}

/// Write that an injected fault holds back: zone, first block of the device, bytes.
type LateWrite = (ZoneOf, u64, Vec<u8>);

/// Array of 1 to 16 drives that stores data in stripe groups, with parity. A clone is another handle of the same array.
#[derive(Clone)]
pub struct Array(Rc<Inner>);

impl Array {
    /// Assembles the array of file system `file_system` from `parts`, in the order of the drives' numbers, with the
    /// stripe groups `groups` of the metadata. Nothing is written if `is_read_only`. Otherwise partly written zones are
    /// finished if they are in no group, or in a group that is closed to appends. The caller must durably delete the
    /// numbers of rows that `groups` records, and then call [`Array::trust_no_more`], before the first append.
    ///
    /// # Errors
    /// A group in `groups` has another parity than `shape`, is wider than `shape` allows or has too high a number. Or
    /// it names a zone that its drive does not have, or that another group names. Missing drives are no error: their
    /// groups are closed to appends.
    pub async fn assemble(
        file_system: Uuid,
        shape: Shape,
        parts: Vec<Part>,
        groups: &Groups,
        is_read_only: bool,
    ) -> Result<Array, FsError> {
        let mut drives = Vec::with_capacity(parts.len());
        for part in parts {
            drives.push(drive_of(part, shape.zone_blocks).await);
        }
        let drives = Drives::new(usize::from(shape.parity), usize::from(shape.width), drives);
        let array = Array(Rc::new(Inner {
            file_system,
            shape,
            drives: RefCell::new(drives),
            groups: RefCell::default(),
            free_numbers: RefCell::new((0..shape.groups).collect()),
            sequence: Cell::new(0),
            is_short: Signal::default(),
            counters: Cell::default(),
            late_parity: RefCell::default(),
        }));
        for (&group, layout) in groups.all() {
            let recorded = groups.rows().get(&group).copied().filter(|_| !is_read_only);
            array.claim(group, layout, recorded)?;
        }
        array.look_at_open_groups(is_read_only).await;
        if !is_read_only {
            array.close_free_zones().await;
        }
        Ok(array)
    }

    /// Enters a group that the metadata name, and takes its zones. `recorded` is the number of rows recorded in the
    /// metadata.
    fn claim(&self, group: u32, layout: &GroupLayout, recorded: Option<u32>) -> Result<(), FsError> {
        let inner = &self.0;
        let wrong = |why: String| FsError::format("the metadata", format!("stripe group {group}: {why}"));
        let is_shaped = layout.parity() == usize::from(inner.shape.parity) && layout.width <= inner.shape.width;
        if !is_shaped || group >= inner.shape.groups {
            return Err(wrong("its shape is not that of this array".into()));
        }
        for &ZoneOf { drive, zone } in &layout.members {
            if !inner.drives.borrow_mut().claim(ZoneOf { drive, zone }) {
                return Err(wrong(format!("zone {zone} of drive {drive} is not there, or is another group's")));
            }
        }
        let rows = self.rows_of(layout, recorded);
        if let Some(rows) = rows {
            self.set_unreported(layout, rows);
        }
        // A group that was empty at a power cut is sealed too; cleaning empties it later.
        let group_now = Group {
            layout: layout.clone(),
            rows: rows.unwrap_or(0),
            has_headers: true,
            is_sealed: rows.is_none(),
            is_trusted: rows.is_some() && self.has_unreported(layout),
        };
        inner.groups.borrow_mut().insert(group, group_now);
        inner.free_numbers.borrow_mut().remove(&group);
        inner.sequence.set(inner.sequence.get().max(layout.sequence));
        Ok(())
    }

    fn start_of(&self, at: ZoneOf) -> u64 {
        u64::from(at.zone) * self.0.shape.zone_blocks
    }

    /// Returns the UUID of the file system whose data are on the array.
    pub fn file_system(&self) -> Uuid {
        self.0.file_system
    }

    /// Returns whether the zones of `group` are written to their ends, as the write pointers of the drives report it.
    /// Zones on missing or failed drives are ignored. Returns `false` if the group does not exist, or if one of the
    /// zones has no write pointer.
    pub fn is_full(&self, group: u32) -> bool {
        let Some(layout) = self.layout(group) else { return false };
        let drives = self.0.drives.borrow();
        let there = layout.members.iter().filter(|at| drives.device(at.drive).is_some());
        there.filter_map(|at| drives.zone(*at)).all(|zone| zone.has_pointer && zone.written >= self.0.shape.zone_blocks)
    }

    /// Returns the shape of the array: number of parity columns, largest number of data columns, blocks of a zone, and
    /// largest number of stripe groups.
    pub fn shape(&self) -> Shape {
        self.0.shape
    }

    /// Returns the counts of padding, parity and reconstruction since the array was assembled.
    pub fn counters(&self) -> ArrayCounters {
        self.0.counters.get()
    }

    fn count(&self, add: impl FnOnce(&mut ArrayCounters)) {
        let mut counters = self.0.counters.get();
        add(&mut counters);
        self.0.counters.set(counters);
    }

    /// Returns the sums of the operations of all opened drives. Drives that failed or were replaced are included.
    pub fn traffic(&self) -> Traffic {
        let drives = self.0.drives.borrow();
        let all = drives.all().iter().filter_map(|drive| drive.device.as_ref()).map(Device::traffic);
        all.fold(Traffic::default(), |sum, one| sum.and(&one))
    }

    /// Returns number and UUID of each missing drive: one that is absent or has failed, and was not replaced. They are
    /// in the order of their numbers, counted from 0.
    pub fn missing(&self) -> Vec<(u8, Uuid)> {
        let drives = self.0.drives.borrow();
        let missing = drives.all().iter().enumerate().filter(|(_, drive)| drive.is_missing());
        missing.map(|(number, drive)| (number as u8, drive.uuid)).collect()
    }

    /// Returns the numbers of the drives that were present when the array was assembled and have failed since. This
    /// includes drives that can still be read but are no longer written. Numbers count from 0.
    pub fn lost(&self) -> Vec<u8> {
        let drives = self.0.drives.borrow();
        let lost = drives.all().iter().enumerate().filter(|(_, drive)| drive.is_lost());
        lost.map(|(number, _)| number as u8).collect()
    }

    /// Returns the smallest limit of open zones among the opened drives, failed and replaced ones included. Returns
    /// `None` if none of these drives has a limit.
    pub fn active_max(&self) -> Option<u32> {
        let limit = |drive: &Drive| match drive.device.as_ref()?.geometry().kind {
            Kind::Zoned { active_max, .. } => active_max,
            _ => None,
        };
        self.0.drives.borrow().all().iter().filter_map(limit).min()
    }

    /// Returns the widths of the stripe groups that the writable drives could hold if all their zones were free. There
    /// is one entry for each group: its number of data zones. Each group is as wide as possible; bad zones are left
    /// out.
    pub fn formable(&self) -> Vec<usize> {
        self.0.drives.borrow().formable()
    }

    /// Returns the widths of the stripe groups that could be opened in the free zones, one after the other. There is
    /// one entry for each group: its number of data zones. Each group is as wide as possible.
    pub fn free_groups(&self) -> Vec<usize> {
        self.0.drives.borrow().free_groups()
    }

    /// Returns the widths of the first stripe groups, at most `most`, that could be opened in the free zones, one after
    /// the other. A width is the number of data zones of a group. Each group is as wide as possible.
    pub fn free_groups_up_to(&self, most: usize) -> Vec<usize> {
        self.0.drives.borrow().free_groups_up_to(most)
    }

    /// Returns the number of zones that are neither in a stripe group nor bad. It is the sum over all drives that can
    /// be written.
    pub fn free_zones(&self) -> u64 {
        self.0.drives.borrow().free_zones()
    }

    /// Returns the number of data zones of the widest group that could be opened in the free zones, or `None` if no
    /// group can be opened.
    pub fn widest_now(&self) -> Option<usize> {
        self.0.drives.borrow().widest_now()
    }

    /// Returns whether a group of `width` data zones could be opened now, and after it another `keep` groups of
    /// `kept_width` data zones each. A free group number is required only for the first one.
    pub fn can_open(&self, width: usize, keep: u32, kept_width: usize) -> bool {
        !self.0.free_numbers.borrow().is_empty() && self.0.drives.borrow().can_open(width, keep, kept_width)
    }

    /// Returns number, layout and state of each stripe group, by number. The state counts only data blocks: `written`
    /// is the number of rows times the number of data zones. A group that is closed to appends counts as full.
    pub fn groups(&self) -> Vec<(u32, GroupLayout, ZoneState)> {
        let groups = self.0.groups.borrow();
        groups.iter().map(|(number, group)| (*number, group.layout.clone(), self.state_of(group))).collect()
    }

    fn state_of(&self, group: &Group) -> ZoneState {
        let (width, rows) = (u64::from(group.layout.width), self.0.shape.rows());
        let is_full = group.is_sealed || group.rows >= rows;
        let (written, condition) =
            if is_full { (width * rows, ZoneCondition::Full) } else { (width * group.rows, ZoneCondition::Writable) };
        ZoneState { written, condition }
    }

    /// Returns the states of all stripe groups as if they were zones of one device: entry i is group i, and there are
    /// as many entries as the array can have groups. An unused number has the state of an offline zone. `written`
    /// counts the data blocks of a group; a group that is closed to appends counts as full.
    pub fn zones(&self) -> Vec<ZoneState> {
        let none = ZoneState { written: 0, condition: ZoneCondition::Offline };
        let mut zones = vec![none; self.0.shape.groups as usize];
        for (number, group) in self.0.groups.borrow().iter() {
            zones[*number as usize] = self.state_of(group);
        }
        zones
    }

    /// Opens a stripe group of `width` data zones and returns its number and layout. Takes the lowest unused number and
    /// free zones of the drives with the most free zones, and resets zones that are not empty. The caller must record
    /// the group in the metadata. If a drive or a zone fails, the attempt is repeated on other zones. Returns `None` if
    /// too few drives have free zones, no number is free, or eight attempts fail.
    pub async fn open(&self, width: usize) -> Option<(u32, GroupLayout)> {
        let columns = width + usize::from(self.0.shape.parity);
        for _ in 0..ATTEMPTS {
            let number = self.0.free_numbers.borrow().first().copied()?;
            let sequence = self.0.sequence.get() + 1;
            let members = self.0.drives.borrow_mut().take(columns, sequence)?;
            self.0.sequence.set(sequence);
            self.0.free_numbers.borrow_mut().remove(&number);
            let layout = GroupLayout { sequence, width: width as u8, members };
            // A drive may have failed, or a replacement of it may have begun, during the preparation.
            if self.prepare(&layout).await && self.is_complete(&layout) {
                let group =
                    Group { layout: layout.clone(), rows: 0, has_headers: false, is_sealed: false, is_trusted: false };
                self.0.groups.borrow_mut().insert(number, group);
                return Some((number, layout));
            }
            self.0.free_numbers.borrow_mut().insert(number);
            let mut drives = self.0.drives.borrow_mut();
            layout.members.iter().for_each(|&at| drives.give_back(at));
        }
        None
    }

    /// Returns whether every drive of a group can be written.
    fn is_complete(&self, layout: &GroupLayout) -> bool {
        let drives = self.0.drives.borrow();
        layout.members.iter().all(|at| drives.get(at.drive).is_some_and(Drive::is_there))
    }

    async fn prepare(&self, layout: &GroupLayout) -> bool {
        let columns = layout
            .members
            .iter()
            .map(|&at| Box::pin(async move { self.prepare_zone(at).await }) as crate::executor::Local<'_, bool>);
        join_all(columns).await.into_iter().all(|is_done| is_done)
    }

    /// Empties a zone, and returns whether that succeeded.
    async fn prepare_zone(&self, at: ZoneOf) -> bool {
        let outcome = self.empty_zone(at).await;
        if outcome.is_err() {
            self.look_at(at).await;
        }
        outcome.is_ok()
    }

    /// Resets a zone if needed. Returns its drive.
    async fn empty_zone(&self, at: ZoneOf) -> Result<Device, DeviceFault> {
        let device = self.0.drives.borrow().device(at.drive);
        let device = device.ok_or_else(|| DeviceFault::new(format!("drive {} is not there", at.drive)))?;
        let zone = *self.0.drives.borrow().zone(at).expect("it was taken");
        if zone.has_pointer && zone.written > 0 {
            device.reset(at.zone).await?;
        }
        self.set_written(at, 0);
        Ok(device)
    }

    /// Empties a zone that becomes column `column` of a group, and writes its header.
    async fn begin_zone(&self, group: u32, layout: &GroupLayout, column: usize) -> Result<(), DeviceFault> {
        let at = layout.members[column];
        let device = self.empty_zone(at).await?;
        let header = self.header_of(group, layout, column);
        self.set_written(at, 1);
        device.write(self.start_of(at), header).await
    }

    /// Returns the header block of the zone of column `column`.
    fn header_of(&self, group: u32, layout: &GroupLayout, column: usize) -> Vec<u8> {
        let names = self.0.drives.borrow();
        let drives =
            layout.members.iter().map(|at| names.get(at.drive).map_or(Uuid::nil(), |drive| drive.uuid)).collect();
        let gone = names.all().iter().enumerate().filter(|(_, drive)| !drive.belongs_now());
        let gone = gone.map(|(number, _)| number as u8).collect();
        let file_system = self.0.file_system;
        ZoneHeader { file_system, group, column: column as u8, layout: layout.clone(), drives, gone }.encode()
    }

    fn set_written(&self, at: ZoneOf, written: u64) {
        if let Some(zone) = self.0.drives.borrow_mut().zone_mut(at) {
            zone.written = written;
        }
    }

    /// Finds out, after a write to a zone failed, whether the zone or the whole drive has failed, and marks it.
    async fn look_at(&self, at: ZoneOf) {
        let Some(device) = self.0.drives.borrow().device(at.drive) else { return };
        match device.zones().await {
            Ok(zones) => {
                let mut drives = self.0.drives.borrow_mut();
                drives.fail_zone(at);
                if let (Some(zone), Some(state)) = (drives.zone_mut(at), zones.get(at.zone as usize)) {
                    zone.is_offline = state.condition == ZoneCondition::Offline;
                    if state.condition == ZoneCondition::Writable {
                        zone.written = state.written;
                    }
                }
            }
            Err(_) => self.0.drives.borrow_mut().lose(at.drive, true),
        }
        self.seal_incomplete();
        if !self.lost().is_empty() {
            self.0.is_short.give();
        }
    }

    /// Returns the number of failures of zones and drives since the array was assembled. Whenever the number changes,
    /// the free space may have changed too.
    pub fn losses(&self) -> u64 {
        self.0.drives.borrow().losses()
    }

    /// Returns a future that completes when a drive fails, or when [`Array::tell_short`] is called, after this call.
    pub fn until_short(&self) -> Waiting {
        self.0.is_short.next()
    }

    /// Completes all futures that [`Array::until_short`] returned before, for example because a spare was added.
    pub fn tell_short(&self) {
        self.0.is_short.give();
    }

    /// Seals every group of which a drive is missing.
    fn seal_incomplete(&self) {
        let drives = self.0.drives.borrow();
        let is_there = |at: &ZoneOf| drives.get(at.drive).is_some_and(Drive::is_there);
        for group in self.0.groups.borrow_mut().values_mut() {
            group.is_sealed |= !group.layout.members.iter().all(is_there);
        }
    }

    /// Removes stripe group `group` from the array, resets its zones and frees them. Zones on missing or failed drives,
    /// bad zones and zones without a write pointer are not reset. A zone that cannot be reset is marked as bad and not
    /// used again; this is no error.
    ///
    /// # Errors
    /// There is no group `group`.
    pub async fn reset(&self, group: u32) -> Result<(), DeviceFault> {
        let layout = {
            let groups = self.0.groups.borrow();
            let found = groups.get(&group).ok_or_else(|| DeviceFault::new(format!("there is no group {group}")))?;
            found.layout.clone()
        };
        for &at in &layout.members {
            let device = self.0.drives.borrow().device(at.drive);
            let has_pointer = self.0.drives.borrow().zone(at).is_some_and(|zone| zone.has_pointer && !zone.is_bad);
            let Some(device) = device.filter(|_| has_pointer) else { continue };
            match device.reset(at.zone).await {
                Ok(()) => self.set_written(at, 0),
                Err(_) => self.look_at(at).await,
            }
        }
        let mut drives = self.0.drives.borrow_mut();
        layout.members.iter().for_each(|&at| drives.give_back(at));
        self.0.groups.borrow_mut().remove(&group);
        self.0.free_numbers.borrow_mut().insert(group);
        Ok(())
    }

    /// Makes the completed writes on all present drives durable, including a drive that is being replaced. A drive that
    /// fails to flush is no longer written, and its groups are closed to appends.
    ///
    /// # Errors
    /// A drive fails to flush, and more drives are now missing than there are parity columns.
    pub async fn flush(&self) -> Result<(), DeviceFault> {
        self.write_late().await?;
        // A drive that is being replaced is flushed, too: it may hold earlier writes.
        let there: Vec<(u8, Device)> = {
            let drives = self.0.drives.borrow();
            let written = drives.all().iter().enumerate().filter(|(_, drive)| drive.belongs_now() && !drive.is_lost());
            written.filter_map(|(number, drive)| Some((number as u8, drive.device.clone()?))).collect()
        };
        let flushes = there
            .iter()
            .map(|(_, device)| Box::pin(device.flush()) as crate::executor::Local<'_, Result<(), DeviceFault>>);
        let outcomes = join_all(flushes).await;
        let mut failed = Ok(());
        for ((number, _), outcome) in there.iter().zip(outcomes) {
            if let Err(fault) = outcome {
                self.0.drives.borrow_mut().lose(*number, false);
                self.0.is_short.give();
                failed = Err(fault);
            }
        }
        self.seal_incomplete();
        if self.0.drives.borrow().missing() <= usize::from(self.0.shape.parity) {
            return Ok(());
        }
        failed
    }
}

async fn drive_of(part: Part, zone_blocks: u64) -> Drive {
    // A drive that cannot report its zones counts as missing.
    let (device, states) = match part.device {
        Some(device) => match device.zones().await {
            Ok(states) => (Some(device), states),
            Err(_) => (None, Vec::new()),
        },
        None => (None, Vec::new()),
    };
    let geometry = device.as_ref().map_or(part.geometry, Device::geometry);
    let zones = zones_of(&geometry, zone_blocks, part.first);
    let drive = Drive::new(part.uuid, device, zone_blocks, part.first, zones, &states);
    drive.that_belongs(part.belongs)
}
