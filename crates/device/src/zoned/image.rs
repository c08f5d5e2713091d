//! A zoned drive in an image: the `zoned` layer's plans, carried out by the store. It knows no time.
//!
//! Invariants:
//! 1. A zone's state changes only after the zone has agreed; what is refused leaves image and zones alone.
//! 2. Resets, finishes and faults are durable when they return; writes after a flush.

use imbrex_disk::{Command, Lba, Sectors};
use imbrex_layer::{GroupKind, Plan, ZoneError, Zones};
use imbrex_sim::Drive;

use super::{whole_sectors, Condition, Zone, ZonedDevice, ZonedMode};
use crate::error::DeviceError;
use crate::media::Media;
use crate::store::{Data, Opened, Store, Transfer};

/// The drive.
#[derive(Debug)]
pub struct ImageZoned<M> {
    drive: Drive,
    store: Store<M>,
    mode: ZonedMode,
    plan: Plan,
}

impl<M: Media> ImageZoned<M> {
    /// An opened drive, if it has zones.
    pub fn new((drive, store): Opened<M>) -> Result<ImageZoned<M>, DeviceError> {
        let sector_bytes = drive.disk.sector_bytes;
        let Some(zones) = drive.layer.zones() else {
            let reason = format!("layer '{}' has no zones; make the drive with hm-zoned or +zoned", drive.layer.name());
            return Err(DeviceError::Refused(reason));
        };
        let mode = ZonedMode::of(zones, sector_bytes);
        Ok(ImageZoned { drive, store, mode, plan: Plan::new() })
    }

    /// The store, for whoever cuts or inspects it.
    pub fn store(&self) -> &Store<M> {
        &self.store
    }

    /// Takes it apart.
    pub fn into_opened(self) -> Opened<M> {
        (self.drive, self.store)
    }

    /// A fault of the medium: zone `index` becomes read-only or goes offline. For tests of who lives with it.
    pub fn fail_zone(&mut self, index: u32, condition: Condition) -> Result<(), DeviceError> {
        self.change(|zones, plan| zones.fail(index, condition, plan))
    }

    fn zones(&mut self) -> &mut Zones {
        self.drive.layer.zones_mut().expect("checked when it was opened")
    }

    /// Asks the zones, and carries out what they note.
    fn change(&mut self, ask: impl FnOnce(&mut Zones, &mut Plan) -> Result<(), ZoneError>) -> Result<(), DeviceError> {
        self.check_running()?;
        self.plan.clear();
        self.plan.open(GroupKind::Host);
        let zones = self.drive.layer.zones_mut().expect("checked when it was opened");
        ask(zones, &mut self.plan)?;
        self.store.execute(&self.plan, &mut [])?;
        self.store.checkpoint_if_due(self.drive.layer.as_ref())
    }

    fn check_running(&self) -> Result<(), DeviceError> {
        match self.store.stopped() {
            Some(reason) => Err(DeviceError::Stopped(reason.into())),
            None => Ok(()),
        }
    }

    fn serve(&mut self, command: Command, data: Data<'_>) -> Result<(), DeviceError> {
        self.plan.clear();
        self.drive.layer.plan(&[command], &mut self.plan);
        self.store.execute(&self.plan, &mut [Transfer { lba: command.lba.0, data }])
    }
}

impl<M: Media> ZonedDevice for ImageZoned<M> {
    fn mode_sense(&self) -> ZonedMode {
        self.mode
    }

    fn report(&mut self, first: u32, count: u32, reported: &mut Vec<Zone>) -> Result<(), DeviceError> {
        let zones = self.zones();
        for index in first..first.saturating_add(count).min(zones.len()) {
            reported.push(zones.zone(index)?);
        }
        Ok(())
    }

    fn read(&mut self, lba: Lba, into: &mut [u8]) -> Result<(), DeviceError> {
        self.check_running()?;
        let sectors = whole_sectors(into.len(), self.mode.sector_bytes)?;
        self.zones().check_range(lba, sectors.0)?;
        self.store.check_readable(lba, sectors, |_, _| false)?;
        let (mut next, end, sector_bytes) = (lba, lba + sectors, self.mode.sector_bytes as usize);
        let mut rest = into;
        while next < end {
            let zones = self.zones();
            let index = zones.index_of(next)?;
            let written_end = self.mode.start(index) + self.zones().written(index)?;
            let zone_end = self.mode.start(index + 1).min(end);
            let (part, after) = rest.split_at_mut((zone_end - next).0 as usize * sector_bytes);
            let stored_end = written_end.clamp(next, zone_end);
            let (stored, past) = part.split_at_mut((stored_end - next).0 as usize * sector_bytes);
            past.fill(0);
            if !stored.is_empty() {
                let command = Command::read(next.0, (stored_end - next).0 as u32);
                self.serve(command, Data::Read(stored))?;
            }
            (next, rest) = (zone_end, after);
        }
        Ok(())
    }

    fn write(&mut self, lba: Lba, from: &[u8]) -> Result<(), DeviceError> {
        self.check_running()?;
        let sectors = whole_sectors(from.len(), self.mode.sector_bytes)?;
        self.zones().begin_write(lba, sectors.0)?;
        self.serve(Command::write(lba.0, sectors.0 as u32), Data::Write(from))
    }

    fn reset(&mut self, index: u32) -> Result<(), DeviceError> {
        self.change(|zones, plan| zones.reset(index, plan))
    }

    fn reset_all(&mut self) -> Result<(), DeviceError> {
        self.change(|zones, plan| zones.reset_all(plan))
    }

    fn open(&mut self, index: u32) -> Result<(), DeviceError> {
        self.change(|zones, _| zones.open(index))
    }

    fn close(&mut self, index: u32) -> Result<(), DeviceError> {
        self.change(|zones, _| zones.close(index))
    }

    fn finish(&mut self, index: u32) -> Result<(), DeviceError> {
        self.change(|zones, plan| zones.finish(index, plan))
    }

    fn set_pointer(&mut self, index: u32, to: Sectors) -> Result<(), DeviceError> {
        self.change(|zones, plan| zones.set_back(index, to.0, plan))
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.change(|zones, plan| {
            zones.note_moved(plan);
            Ok(())
        })
    }
}
