//! The zones of an emulated drive: the write rule, which holds for the requests of every server, and the management
//! of zones. A management command takes no simulated time except that of the requests for which it waits, because no
//! measurements of its time are published.
//!
//! ```text
//!   write ─► at the pointer, counting what is on its way? ── no ──► refused, counted; nothing happened
//!                    │ yes: the pointer moves on
//!                    ▼
//!            queue and cache, in order within its zone ─► medium; what is recorded follows
//! ```
//!
//! Invariants:
//! 1. A write that is not at the pointer of its zone, in order of submission, is refused and changes nothing.
//! 2. No request is in flight to a zone when a management command changes it. The command waits for such requests. It
//!    then writes dirty data back, or drops it if the zone is emptied.
//! 3. Resets, finishes, pointers that were set back and faults are durable when they return.
//! 4. An accepted write is carried out, or the drive stops. Opening the image again then finds the pointers at the
//!    end of the data.

use std::ops::Range;

use imbrex_disk::{Lba, Sectors};
use imbrex_layer::{GroupKind, Plan, ZoneError, Zones};

use super::counters::ZoneCounters;
use super::{Condition, Zone, ZonedMode};
use crate::drive::{EmulatedDrive, Io, IoKind};
use crate::error::DeviceError;

/// A management command to the zones of a drive. Zones are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneAction {
    /// Opens the zone of this index explicitly, until it is closed, finished, full or reset.
    Open(u32),
    /// Closes the zone of this index, so that it no longer counts as open. An open zone without data becomes empty.
    Close(u32),
    /// Makes the zone of this index full without writing the rest of it.
    Finish(u32),
    /// Empties the zone of this index.
    Reset(u32),
    /// Empties every zone, except conventional, read-only and offline ones.
    ResetAll,
    /// Sets the write pointer of the zone of this index back to this number of sectors from the start of the zone. The
    /// data from there on is lost.
    SetPointer(u32, Sectors),
    /// Makes the zone of this index read-only or offline, as after a fault of the medium; for tests of hosts that must
    /// handle this.
    Fail(u32, Condition),
}

impl EmulatedDrive {
    /// Returns the parameters of the drive's zones, or `None` if the drive has no zones.
    pub fn zoned_mode(&self) -> Option<ZonedMode> {
        self.drive().layer.zones().map(|zones| ZonedMode::of(zones, self.sector_bytes()))
    }

    /// Appends to `reported` the states of `count` zones from index `first` on, or fewer if the drive has no more. The
    /// write pointers include the writes in flight. Appends nothing for a drive without zones.
    pub fn report_zones(&self, first: u32, count: u32, reported: &mut Vec<Zone>) {
        let Some(zones) = self.drive().layer.zones() else { return };
        let range = first..first.saturating_add(count).min(zones.len());
        reported.extend(range.map(|index| zones.zone(index).expect("it is one of its zones")));
    }

    /// Returns the counts of effects of TRIMs on zones since the drive was opened.
    pub fn zone_counters(&self) -> ZoneCounters {
        self.zone_counters
    }

    /// Returns the LBA at which the next write to zone `index` must begin, after the writes in flight. For a full zone,
    /// returns its last sector; a write there is refused because the zone is full.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] if the zone is conventional or does not exist.
    pub fn zone_pointer(&self, index: u32) -> Result<Lba, DeviceError> {
        let mut zones = Vec::with_capacity(1);
        self.report_zones(index, 1, &mut zones);
        let Some(zone) = zones.first().filter(|zone| zone.condition != Condition::Conventional) else {
            return Err(DeviceError::Refused(format!("zone {index} takes no appends")));
        };
        // A full zone has no pointer. Its last sector is returned, so that the write is refused because the zone is
        // full.
        Ok(zone.start + zone.pointer.min(Sectors(zone.sectors.0 - 1)))
    }

    /// Performs a management command after waiting for the requests in flight to its zones. Dirty data of these zones
    /// in the write cache is written back first. A reset drops it instead.
    ///
    /// # Errors
    /// The drive has no zones, or has stopped; the zone does not exist; its condition, its pointer or the limits of
    /// open and active zones do not allow the command; or the drive fails.
    ///
    /// # Panics
    /// If [`ZoneAction::Fail`] has another condition than read-only or offline.
    pub fn change_zone(&mut self, action: ZoneAction) -> Result<(), DeviceError> {
        self.check_running()?;
        let Some(mode) = self.zoned_mode() else {
            return Err(DeviceError::Refused("the drive has no zones".into()));
        };
        let sectors = match action {
            ZoneAction::ResetAll => mode.start(mode.conventional_zones)..Lba(mode.capacity().0),
            ZoneAction::Open(index)
            | ZoneAction::Close(index)
            | ZoneAction::Finish(index)
            | ZoneAction::Reset(index)
            | ZoneAction::SetPointer(index, _)
            | ZoneAction::Fail(index, _) => mode.start(index)..mode.start(index.saturating_add(1)),
        };
        self.settle(&sectors);
        if !matches!(action, ZoneAction::Reset(_) | ZoneAction::ResetAll) {
            self.write_back(&sectors)?;
        }
        self.change(|zones, plan| match action {
            ZoneAction::Open(index) => zones.open(index),
            ZoneAction::Close(index) => zones.close(index),
            ZoneAction::Finish(index) => zones.finish(index, plan),
            ZoneAction::Reset(index) => zones.reset(index, plan),
            ZoneAction::ResetAll => {
                zones.reset_all(plan);
                Ok(())
            }
            ZoneAction::SetPointer(index, to) => zones.set_back(index, to.0, plan),
            ZoneAction::Fail(index, condition) => zones.fail(index, condition, plan),
        })?;
        if matches!(action, ZoneAction::Reset(_) | ZoneAction::ResetAll) {
            self.discard(&sectors);
        }
        Ok(())
    }

    /// Calls `ask` with the zones, and executes the plan of notes that it makes.
    fn change<T>(&mut self, ask: impl FnOnce(&mut Zones, &mut Plan) -> Result<T, ZoneError>) -> Result<T, DeviceError> {
        self.check_running()?;
        let (drive, store) = self.drive_and_store();
        let zones = drive.layer.zones_mut().expect("the drive is zoned");
        let mut plan = Plan::new();
        plan.open(GroupKind::Host);
        let answer = ask(zones, &mut plan)?;
        store.execute(&plan, &mut []).inspect_err(|error| store.stop(&error.to_string()))?;
        self.checkpoint_if_due();
        Ok(answer)
    }

    /// Enforces the rules of zones for a request: a write must be at the pointer, and a TRIM empties the zones that
    /// it covers whole.
    pub(crate) fn keep_rule_of_zones(&mut self, io: &Io) -> Result<(), DeviceError> {
        let sector = u64::from(self.sector_bytes());
        let (lba, sectors) = (Lba(io.offset / sector), io.length / sector);
        let (drive, _) = self.drive_and_store();
        let Some(zones) = drive.layer.zones_mut() else { return Ok(()) };
        match io.kind {
            IoKind::Write { .. } => {
                zones.accept_write(lba, sectors)?;
                Ok(())
            }
            IoKind::Trim => self.trim_zones(lba, sectors),
            IoKind::Read | IoKind::Flush => Ok(()),
        }
    }

    fn trim_zones(&mut self, lba: Lba, sectors: u64) -> Result<(), DeviceError> {
        let mode = self.zoned_mode().expect("only the zones of a drive that has some are trimmed");
        let zones = self.drive().layer.zones().expect("it has some").whole_within(lba, sectors);
        let covered = mode.start(zones.start)..mode.start(zones.end);
        if !zones.is_empty() {
            self.settle(&covered);
            let reset = self.change(|all, plan| Ok(all.reset_those_of(zones.clone(), plan)))?;
            self.discard(&covered);
            self.zone_counters.zones_reset_by_trim += u64::from(reset);
        }
        if self.ignores_some(&mode, lba..lba + Sectors(sectors), &zones) {
            self.zone_counters.trims_ignored += 1;
        }
        Ok(())
    }

    /// Returns whether a TRIM of `trimmed`, which covers the zones `whole`, leaves any part of a zone with a pointer
    /// unchanged.
    fn ignores_some(&self, mode: &ZonedMode, trimmed: Range<Lba>, whole: &Range<u32>) -> bool {
        let sequential = trimmed.start.max(mode.start(mode.conventional_zones))..trimmed.end;
        let is_partial = sequential.start < sequential.end
            && (whole.is_empty()
                || sequential.start < mode.start(whole.start)
                || mode.start(whole.end) < sequential.end);
        let zones = self.drive().layer.zones().expect("only the zones of a drive that has some are trimmed");
        let cannot_be = |index| {
            let zone = zones.zone(index).expect("it is one of its zones");
            matches!(zone.condition, Condition::ReadOnly | Condition::Offline)
        };
        is_partial || whole.clone().any(cannot_be)
    }
}
