//! An array of 1 to 16 drives (Jin 2014 §II.D.3): zones of several drives appended to together, with parity.
//!
//! ```text
//!   stripe group 7 (3 data, 1 parity)      zone 12 of drive 2 · zone 4 of drive 3 · zone 9 of drive 0 · zone 4 of drive 1
//!                       header                    H                  H                   H                  H
//!                       row 0                  block 0            block 1             block 2            parity
//!                       row 1                  block 3            block 4             block 5            parity
//! ```
//!
//! A *stripe group* is k' zones for data and m for parity, each on a drive of its own, chosen by free zones when the group is
//! opened. The store above sees it as one zone of k' × (zone blocks − 1) blocks: appended to in whole rows, the last one filled
//! with zeros, and emptied as a whole. Block numbers are group × stride + place in the group, the stride that of the widest
//! group there can be; so a group of any width has its numbers to itself. Each zone begins with a block that says what it is
//! ([`zone_header`]), written with the first rows.
//!
//! Which zones form a group is recorded in the log of the metadata before any record that names data in it; so it is
//! durable whenever they are. Zones that are in no group may hold anything, and are reset before they are used.
//!
//! A group that is *sealed* is read, and not appended to until it has been emptied. It is sealed when a drive of it is
//! missing, when writing to it failed, when its zones are not equally long, or when nobody can know how long they are ([`fill`]).
//! So what a drive holds of a group never becomes outdated while the drive is away: it is right, or not there.
//!
//! Invariants:
//! 1. A row is written once, whole. What was flushed of it is readable while any k' of its columns are.
//! 2. A drive is lost for writing as soon as it fails to flush; nothing was acknowledged from it alone, unless m is 0.
//! 3. No zone is in two groups.
//! 4. Rows that are begun behind others, which may be under way still, reach each drive behind them. When a write of a group
//!    fails the group is sealed before anything else is begun there.

mod data;
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

use uuid::Uuid;

pub use self::data::Data;
pub use self::drives::zones_of;
use self::drives::{Drive, Drives};
pub use self::rebuild::Moving;
use self::zone_header::ZoneHeader;
use crate::clock::{Signal, Waiting, all_of};
use crate::device::{Device, DeviceFault, Geometry, Kind, Traffic, ZoneCondition, ZoneState};
use crate::error::FsError;
use crate::format::change::{GroupLayout, ZoneOf};
use crate::format::superblock::Shape;
use crate::namespace::Groups;

/// Drives of an array at most.
pub const DRIVES_MAX: usize = 16;
/// Parity at most: so many drives of an array may be lost.
pub const PARITY_MAX: u8 = 3;
/// How often a group is opened elsewhere when opening it fails.
const ATTEMPTS: u32 = 8;

/// A drive as an array is given it.
pub struct Part {
    /// Its name among devices.
    pub uuid: Uuid,
    /// The device, if it is there.
    pub device: Option<Device>,
    /// What it was when the array was made.
    pub geometry: Geometry,
    /// The first of its zones that belongs to the array.
    pub first: u32,
    /// Whether it belongs to the array, or did.
    pub belongs: Belongs,
}

/// Whether a drive belongs to an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Belongs {
    /// It does.
    Yes,
    /// It is being replaced: until all of it lies on the other drive, it is read as long as it answers.
    Leaving,
    /// It did once.
    No,
}

/// A stripe group.
#[derive(Clone, Debug)]
struct Group {
    layout: GroupLayout,
    /// Rows that are written, those being written included.
    rows: u64,
    /// Whether its zones have their headers, which are written with the first rows: so no drive turns in vain between them.
    has_headers: bool,
    is_sealed: bool,
    /// Whether its rows are known from the metadata alone, which still say so: nothing is appended before they do not.
    is_trusted: bool,
}

/// What the array did besides what it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ArrayCounters {
    /// Blocks of zeros that filled up rows.
    pub padding_blocks: u64,
    /// Blocks that were written to zones of parity, the headers with which they begin included.
    pub parity_blocks: u64,
    /// Rows of which something was read that had to be made of the other columns, because a drive did not give it.
    pub degraded_rows: u64,
    /// Blocks that did not match their checksum and were made of the rest of their row.
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
    /// Given when a drive is lost.
    is_short: Signal,
    counters: Cell<ArrayCounters>,
    /// A mistake made on purpose, for tests: parity is written only when the array is next flushed.
    late_parity: RefCell<Option<Vec<LateWrite>>>,
}

/// A write that a mistake made on purpose puts off: to a zone, from a block of the device on.
type LateWrite = (ZoneOf, u64, Vec<u8>);

/// The array. Cloning gives another handle of the same.
#[derive(Clone)]
pub struct Array(Rc<Inner>);

impl Array {
    /// The array of file system `file_system` over `parts`, in their order, with those `groups`. Nothing is written if it
    /// `is_read_only`; else what they know of rows is to be forgotten, durably, before the first append.
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
            let told = groups.rows().get(&group).copied().filter(|_| !is_read_only);
            array.claim(group, layout, told)?;
        }
        array.look_at_open_groups(is_read_only).await;
        if !is_read_only {
            array.close_free_zones().await;
        }
        Ok(array)
    }

    /// Enters a group that the metadata name, and takes its zones. `told` is how many rows the metadata say that it has.
    fn claim(&self, group: u32, layout: &GroupLayout, told: Option<u32>) -> Result<(), FsError> {
        let inner = &self.0;
        let wrong = |why: String| FsError::format("the metadata", format!("stripe group {group}: {why}"));
        let is_shaped = layout.parity() == usize::from(inner.shape.parity) && layout.width <= inner.shape.width;
        if !is_shaped || group >= inner.shape.groups {
            return Err(wrong("it is not of this array's shape".into()));
        }
        for &ZoneOf { drive, zone } in &layout.members {
            if !inner.drives.borrow_mut().claim(ZoneOf { drive, zone }) {
                return Err(wrong(format!("zone {zone} of drive {drive} is not there, or is another group's")));
            }
        }
        let rows = self.rows_of(layout, told);
        if let Some(rows) = rows {
            self.set_untold(layout, rows);
        }
        // One that nothing was written to before the power went is sealed too, and emptied some time.
        let group_now = Group {
            layout: layout.clone(),
            rows: rows.unwrap_or(0),
            has_headers: true,
            is_sealed: rows.is_none(),
            is_trusted: rows.is_some() && self.has_untold(layout),
        };
        inner.groups.borrow_mut().insert(group, group_now);
        inner.free_numbers.borrow_mut().remove(&group);
        inner.sequence.set(inner.sequence.get().max(layout.sequence));
        Ok(())
    }

    fn start_of(&self, at: ZoneOf) -> u64 {
        u64::from(at.zone) * self.0.shape.zone_blocks
    }

    /// The name of its file system.
    pub fn file_system(&self) -> Uuid {
        self.0.file_system
    }

    /// Whether `group` is written to its end, as each of its drives that is there reports itself.
    pub fn is_full(&self, group: u32) -> bool {
        let Some(layout) = self.layout(group) else { return false };
        let drives = self.0.drives.borrow();
        let there = layout.members.iter().filter(|at| drives.device(at.drive).is_some());
        there.filter_map(|at| drives.zone(*at)).all(|zone| zone.has_pointer && zone.written >= self.0.shape.zone_blocks)
    }

    /// How its drives are used together.
    pub fn shape(&self) -> Shape {
        self.0.shape
    }

    /// What it did so far.
    pub fn counters(&self) -> ArrayCounters {
        self.0.counters.get()
    }

    fn count(&self, add: impl FnOnce(&mut ArrayCounters)) {
        let mut counters = self.0.counters.get();
        add(&mut counters);
        self.0.counters.set(counters);
    }

    /// What was asked of all its drives.
    pub fn traffic(&self) -> Traffic {
        let drives = self.0.drives.borrow();
        let all = drives.all().iter().filter_map(|drive| drive.device.as_ref()).map(Device::traffic);
        all.fold(Traffic::default(), |sum, one| sum.and(&one))
    }

    /// The drives that are not there: their numbers and names.
    pub fn missing(&self) -> Vec<(u8, Uuid)> {
        let drives = self.0.drives.borrow();
        let missing = drives.all().iter().enumerate().filter(|(_, drive)| drive.is_missing());
        missing.map(|(number, drive)| (number as u8, drive.uuid)).collect()
    }

    /// The drives that went away while it was in use.
    pub fn lost(&self) -> Vec<u8> {
        let drives = self.0.drives.borrow();
        let lost = drives.all().iter().enumerate().filter(|(_, drive)| drive.is_lost());
        lost.map(|(number, _)| number as u8).collect()
    }

    /// The fewest zones that any of its drives may have open at a time, if there is a limit.
    pub fn active_max(&self) -> Option<u32> {
        let limit = |drive: &Drive| match drive.device.as_ref()?.geometry().kind {
            Kind::Zoned { active_max, .. } => active_max,
            _ => None,
        };
        self.0.drives.borrow().all().iter().filter_map(limit).min()
    }

    /// The widths of all groups that its drives could hold, whatever they hold now.
    pub fn formable(&self) -> Vec<usize> {
        self.0.drives.borrow().formable()
    }

    /// The widths of the groups that could be opened now, each as wide as may be.
    pub fn free_groups(&self) -> Vec<usize> {
        self.0.drives.borrow().free_groups()
    }

    /// The same, no more than `most` of them.
    pub fn free_groups_up_to(&self, most: usize) -> Vec<usize> {
        self.0.drives.borrow().free_groups_up_to(most)
    }

    /// Zones that no group has, on the drives that are there.
    pub fn free_zones(&self) -> u64 {
        self.0.drives.borrow().free_zones()
    }

    /// The data zones of the widest group that could be opened now.
    pub fn widest_now(&self) -> Option<usize> {
        self.0.drives.borrow().widest_now()
    }

    /// Whether a group of so many data zones could be opened now, and `keep` of `kept_width` after it.
    pub fn can_open(&self, width: usize, keep: u32, kept_width: usize) -> bool {
        !self.0.free_numbers.borrow().is_empty() && self.0.drives.borrow().can_open(width, keep, kept_width)
    }

    /// Each group: its number, where it lies, and how it would report itself if it were a zone.
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

    /// All groups as zones, by number; a number without a group is a zone that is offline.
    pub fn zones(&self) -> Vec<ZoneState> {
        let none = ZoneState { written: 0, condition: ZoneCondition::Offline };
        let mut zones = vec![none; self.0.shape.groups as usize];
        for (number, group) in self.0.groups.borrow().iter() {
            zones[*number as usize] = self.state_of(group);
        }
        zones
    }

    /// Opens a group of `width` data zones: its zones are emptied. `None` if there is no room for one; drives and zones that fail are
    /// left out.
    pub async fn open(&self, width: usize) -> Option<(u32, GroupLayout)> {
        let columns = width + usize::from(self.0.shape.parity);
        for _ in 0..ATTEMPTS {
            let number = self.0.free_numbers.borrow().first().copied()?;
            let sequence = self.0.sequence.get() + 1;
            let members = self.0.drives.borrow_mut().take(columns, sequence)?;
            self.0.sequence.set(sequence);
            self.0.free_numbers.borrow_mut().remove(&number);
            let layout = GroupLayout { sequence, width: width as u8, members };
            // A drive may have failed, or begun to leave, meanwhile.
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

    /// Whether every drive that a group lies on is there.
    fn is_complete(&self, layout: &GroupLayout) -> bool {
        let drives = self.0.drives.borrow();
        layout.members.iter().all(|at| drives.get(at.drive).is_some_and(Drive::is_there))
    }

    async fn prepare(&self, layout: &GroupLayout) -> bool {
        let columns = layout
            .members
            .iter()
            .map(|&at| Box::pin(async move { self.prepare_zone(at).await }) as crate::clock::Local<'_, bool>);
        all_of(columns.collect()).await.into_iter().all(|is_done| is_done)
    }

    /// Empties a zone; whether that went well.
    async fn prepare_zone(&self, at: ZoneOf) -> bool {
        let outcome = self.empty_zone(at).await;
        if outcome.is_err() {
            self.look_at(at).await;
        }
        outcome.is_ok()
    }

    /// Resets a zone where it must be. Returns its drive.
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

    /// Empties a zone that is to be column `column` of a group, and writes its header.
    async fn begin_zone(&self, group: u32, layout: &GroupLayout, column: usize) -> Result<(), DeviceFault> {
        let at = layout.members[column];
        let device = self.empty_zone(at).await?;
        let header = self.header_of(group, layout, column);
        self.set_written(at, 1);
        device.write(self.start_of(at), header).await
    }

    /// The block with which the zone of column `column` begins.
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

    /// Asks a drive, after a write to one of its zones failed, whether the zone is bad or the drive.
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

    /// How often a zone or a drive was lost since it was assembled. Whenever this changes, the room that there is may
    /// have changed too.
    pub fn losses(&self) -> u64 {
        self.0.drives.borrow().losses()
    }

    /// Waits until a drive is lost, or [`Array::tell_short`] is called.
    pub fn until_short(&self) -> Waiting {
        self.0.is_short.next()
    }

    /// Wakes whoever replaces lost drives: a spare has come, for example.
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

    /// Empties group `group`: it is gone, its zones are free. A zone that cannot be reset is not used any more.
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

    /// Makes durable what was written. A drive that cannot is lost; that is an error only where more are missing than there is
    /// parity for.
    pub async fn flush(&self) -> Result<(), DeviceFault> {
        self.write_late().await?;
        // A drive that leaves as well: what was written to it before counts.
        let there: Vec<(u8, Device)> = {
            let drives = self.0.drives.borrow();
            let written = drives.all().iter().enumerate().filter(|(_, drive)| drive.belongs_now() && !drive.is_lost());
            written.filter_map(|(number, drive)| Some((number as u8, drive.device.clone()?))).collect()
        };
        let flushes = there
            .iter()
            .map(|(_, device)| Box::pin(device.flush()) as crate::clock::Local<'_, Result<(), DeviceFault>>);
        let outcomes = all_of(flushes.collect()).await;
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
    // One whose zones cannot be told is not there.
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
