//! The zones of an emulated drive at work: what a host asks of them beside its reads and writes, which go through the
//! drive's queue. Managing a zone takes no time here: what a drive needs for it, nobody has published.
//!
//! Whoever serves a host asks [`EmulatedDrive::begin_zone_write`] before each write and lets no second write, append or
//! action come to the same zone before that one is answered: only then is the pointer where the next must begin.
//!
//! Invariants:
//! 1. What is refused changes nothing.
//! 2. Resets and finishes are durable when they return.

use imbrex_disk::{Lba, Sectors};
use imbrex_layer::{GroupKind, Plan};

use super::{Condition, Zone, ZonedMode};
use crate::drive::EmulatedDrive;
use crate::error::DeviceError;

/// What can be done to zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneAction {
    /// It stays open until it is closed, finished, full or reset.
    Open(u32),
    /// It no longer counts as open.
    Close(u32),
    /// It becomes full without being written.
    Finish(u32),
    /// It becomes empty.
    Reset(u32),
    /// Every zone that can be becomes empty.
    ResetAll,
}

impl EmulatedDrive {
    /// What its zones are, if it has any.
    pub fn zoned_mode(&self) -> Option<ZonedMode> {
        self.drive().layer.zones().map(|zones| ZonedMode::of(zones, self.sector_bytes()))
    }

    /// Appends the zones from number `first` on, `count` or as many as there are.
    pub fn report_zones(&self, first: u32, count: u32, reported: &mut Vec<Zone>) {
        let Some(zones) = self.drive().layer.zones() else { return };
        let range = first..first.saturating_add(count).min(zones.len());
        reported.extend(range.map(|index| zones.zone(index).expect("it is one of its zones")));
    }

    /// Readies the zone of `lba` for a write of `sectors` there, which is to be submitted next, or says why it cannot be.
    pub fn begin_zone_write(&mut self, lba: Lba, sectors: Sectors) -> Result<(), DeviceError> {
        let (drive, _) = self.drive_and_store();
        match drive.layer.zones_mut() {
            Some(zones) => zones.begin_write(lba, sectors.0).map(drop).map_err(DeviceError::Zone),
            None => Ok(()),
        }
    }

    /// How many sectors from `lba` on hold what was written, `sectors` at most; the rest of its zone reads as zeros.
    pub fn written_from(&self, lba: Lba, sectors: Sectors) -> Result<Sectors, DeviceError> {
        let Some(zones) = self.drive().layer.zones() else { return Ok(sectors) };
        let index = zones.index_of(lba)?;
        let end = zones.zone(index)?.start + zones.written(index)?;
        Ok(if end <= lba { Sectors::ZERO } else { (end - lba).min(sectors) })
    }

    /// Does something to zones, at once.
    pub fn change_zone(&mut self, action: ZoneAction) -> Result<(), DeviceError> {
        let (drive, store) = self.drive_and_store();
        if let Some(reason) = store.stopped() {
            return Err(DeviceError::Stopped(reason.into()));
        }
        let Some(zones) = drive.layer.zones_mut() else {
            return Err(DeviceError::Refused("the drive has no zones".into()));
        };
        let mut plan = Plan::new();
        plan.open(GroupKind::Host);
        match action {
            ZoneAction::Open(index) => zones.open(index)?,
            ZoneAction::Close(index) => zones.close(index)?,
            ZoneAction::Finish(index) => zones.finish(index, &mut plan)?,
            ZoneAction::Reset(index) => zones.reset(index, &mut plan)?,
            ZoneAction::ResetAll => zones.reset_all(&mut plan)?,
        }
        store.execute(&plan, &mut [])?;
        self.checkpoint_if_due();
        Ok(())
    }

    /// Where the next write of zone `index` must begin, if it takes one.
    pub fn zone_pointer(&self, index: u32) -> Result<Lba, DeviceError> {
        let mut zones = Vec::with_capacity(1);
        self.report_zones(index, 1, &mut zones);
        let Some(zone) = zones.first().filter(|zone| zone.condition != Condition::Conventional) else {
            return Err(DeviceError::Refused(format!("zone {index} takes no appends")));
        };
        // A full zone has no pointer; its last sector makes the write be refused for the right reason.
        Ok(zone.start + zone.pointer.min(Sectors(zone.sectors.0 - 1)))
    }
}
