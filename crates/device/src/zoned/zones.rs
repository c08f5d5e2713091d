//! The zones of an emulated drive: the rule that every door keeps, and what a host asks of zones beside its reads and
//! writes. Managing a zone takes no time but that of what it waits for: what a drive needs for it, nobody has published.
//!
//! ```text
//!   write ─► at the pointer, counting what is on its way? ── no ──► refused, counted; nothing happened
//!                    │ yes: the pointer moves on
//!                    ▼
//!            queue and cache, in order within its zone ─► medium; what is recorded follows
//! ```
//!
//! Invariants:
//! 1. A write off the pointer of its zone, in order of submission, is refused and changes nothing.
//! 2. What is done to a zone finds nothing on its way there: it waits for that, then writes back what is dirty, or forgets
//!    it where the zone is emptied.
//! 3. Resets, finishes, pointers that were set back and faults are durable when they return.
//! 4. A write that was accepted is carried out, or the drive stops; opening the image again then finds the pointers where
//!    the data end.

use std::ops::Range;

use imbrex_disk::{Lba, Sectors};
use imbrex_layer::{GroupKind, Plan, ZoneError, Zones};

use super::{Condition, Zone, ZonedMode};
use crate::drive::{EmulatedDrive, Io, IoKind};
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
    /// Its pointer goes back to so many sectors from its start.
    SetPointer(u32, Sectors),
    /// A fault of the medium makes it read-only or takes it offline: for tests of who lives with it.
    Fail(u32, Condition),
}

/// What TRIMs did to zones. What zones refuse is told to whoever asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ZoneCounters {
    /// Zones emptied by a TRIM that covers them whole.
    pub zones_reset_by_trim: u64,
    /// TRIMs of which a part was ignored, since it covers a zone in part, or one that cannot be reset.
    pub trims_ignored: u64,
}

impl EmulatedDrive {
    /// What its zones are, if it has any.
    pub fn zoned_mode(&self) -> Option<ZonedMode> {
        self.drive().layer.zones().map(|zones| ZonedMode::of(zones, self.sector_bytes()))
    }

    /// Appends the zones from number `first` on, `count` or as many as there are. Pointers count what is on its way.
    pub fn report_zones(&self, first: u32, count: u32, reported: &mut Vec<Zone>) {
        let Some(zones) = self.drive().layer.zones() else { return };
        let range = first..first.saturating_add(count).min(zones.len());
        reported.extend(range.map(|index| zones.zone(index).expect("it is one of its zones")));
    }

    /// What TRIMs did to its zones so far.
    pub fn zone_counters(&self) -> ZoneCounters {
        self.zone_counters
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

    /// Does something to zones, at once.
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

    /// Asks the zones, and carries out what they note.
    fn change<T>(&mut self, ask: impl FnOnce(&mut Zones, &mut Plan) -> Result<T, ZoneError>) -> Result<T, DeviceError> {
        self.check_running()?;
        let (drive, store) = self.drive_and_store();
        let zones = drive.layer.zones_mut().expect("a drive that told what its zones are has zones");
        let mut plan = Plan::new();
        plan.open(GroupKind::Host);
        let answer = ask(zones, &mut plan)?;
        store.execute(&plan, &mut []).inspect_err(|error| store.stop(&error.to_string()))?;
        self.checkpoint_if_due();
        Ok(answer)
    }

    /// The rule: a write must come at the pointer; a TRIM empties the zones that it covers whole.
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

    /// Whether a TRIM of `trimmed`, which covers `whole` zones, leaves something in a zone with a pointer as it is.
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
