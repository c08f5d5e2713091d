//! Host-managed drives with zones, as a file system for raw shingled disks uses them.
//!
//! One trait covers two models of such a drive. The first is strict append (Singh 2014 §2.2.1): `mode_sense`, `read`,
//! `append`, and bands whose pointer can be read, set and reset. The second is that of drives on the market: zones
//! that are reported, opened, closed, finished and reset, and written at their pointers. [`EmulatedZoned`] is a view
//! of an emulated drive. [`LinuxZoned`] is a zoned block device of the host. A server that gives many hosts access to
//! one drive at once, such as Imbrex's block device, sends these commands as [`ZoneAction`]s.
//!
//! Sectors are those of the drive ([`ZonedMode::sector_bytes`]). The conditions of a zone are those of [`Condition`],
//! whose diagram is in `imbrex_layer::zones`.
//!
//! Invariants, of every implementation:
//! 1. A write elsewhere than at the pointer of a zone is refused and changes nothing.
//! 2. Reads may cross zones. Past the pointer, and in the unwritten part of a finished zone, reads return zeros, as
//!    on drives on the market. Only offline zones and sectors that the medium lost are errors.
//! 3. After a power cut, the data covered by a flush is present, and no pointer lies before its end. No pointer lies
//!    past the end of the durable data.

pub(crate) mod counters;
mod emulated;
#[cfg(target_os = "linux")]
mod linux;
pub mod trial;
mod zones;

pub use counters::ZoneCounters;
pub use emulated::EmulatedZoned;
pub use imbrex_layer::{Condition, Zone, ZoneError};
#[cfg(target_os = "linux")]
pub use linux::LinuxZoned;
pub use zones::ZoneAction;

use imbrex_disk::{Lba, Sectors};
use imbrex_layer::Zones;

use crate::error::DeviceError;

/// Parameters of a zoned drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZonedMode {
    /// Bytes per sector, the unit of writes.
    pub sector_bytes: u32,
    /// Sectors per zone.
    pub zone_sectors: Sectors,
    /// Number of zones.
    pub zones: u32,
    /// Number of conventional zones, which come first.
    pub conventional_zones: u32,
    /// Most zones that may be open at a time, if there is a limit.
    pub open_max: Option<u32>,
    /// Most zones that may be open or closed at a time, if there is a limit.
    pub active_max: Option<u32>,
}

impl ZonedMode {
    /// Returns the parameters of `zones` on a drive with sectors of `sector_bytes`.
    fn of(zones: &Zones, sector_bytes: u32) -> ZonedMode {
        let (open_max, active_max) = zones.limits();
        ZonedMode {
            sector_bytes,
            zone_sectors: zones.zone_sectors(),
            zones: zones.len(),
            conventional_zones: zones.conventional(),
            open_max,
            active_max,
        }
    }

    /// Returns the first sector of zone `index`.
    pub fn start(&self, index: u32) -> Lba {
        Lba(u64::from(index) * self.zone_sectors.0)
    }

    /// Returns the number of sectors of all zones.
    pub fn capacity(&self) -> Sectors {
        Sectors(u64::from(self.zones) * self.zone_sectors.0)
    }
}

/// Operations of a host-managed drive with zones.
pub trait ZonedDevice: Send {
    /// Returns the parameters of the drive.
    fn mode_sense(&self) -> ZonedMode;

    /// Appends the states of zones from number `first` on: `count`, or as many as there are.
    fn report(&mut self, first: u32, count: u32, zones: &mut Vec<Zone>) -> Result<(), DeviceError>;

    /// Returns the state of zone `index`, including its pointer.
    fn zone(&mut self, index: u32) -> Result<Zone, DeviceError> {
        let mut zones = Vec::with_capacity(1);
        self.report(index, 1, &mut zones)?;
        let no_such_zone = ZoneError::NoSuchZone { zone: index, zones: self.mode_sense().zones };
        zones.first().copied().ok_or(DeviceError::Zone(no_such_zone))
    }

    /// Reads whole sectors from `lba` on into `into`.
    fn read(&mut self, lba: Lba, into: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes `from`, whole sectors of one zone, at `lba`. This must be the zone's pointer, or any sector of a
    /// conventional zone.
    fn write(&mut self, lba: Lba, from: &[u8]) -> Result<(), DeviceError>;

    /// Writes `from` at the pointer of zone `index`, and returns the first LBA written.
    fn append(&mut self, index: u32, from: &[u8]) -> Result<Lba, DeviceError> {
        let zone = self.zone(index)?;
        if zone.condition == Condition::Conventional {
            let condition = zone.condition;
            return Err(DeviceError::Zone(ZoneError::Condition { zone: index, condition, what: "appended to" }));
        }
        let lba = zone.start + zone.pointer.min(Sectors(zone.sectors.0 - 1));
        self.write(lba, from)?;
        Ok(lba)
    }

    /// Empties zone `index`.
    fn reset(&mut self, index: u32) -> Result<(), DeviceError>;

    /// Empties every zone that can be emptied.
    fn reset_all(&mut self) -> Result<(), DeviceError>;

    /// Opens zone `index` explicitly: the zone stays open until it is closed, finished, full or reset.
    fn open(&mut self, index: u32) -> Result<(), DeviceError>;

    /// Closes zone `index`.
    fn close(&mut self, index: u32) -> Result<(), DeviceError>;

    /// Makes zone `index` full without writing the rest of it.
    fn finish(&mut self, index: u32) -> Result<(), DeviceError>;

    /// Sets the pointer of zone `index` back to `to` sectors from its start (Singh 2014 §2.2.1). Drives on the market
    /// can only set it back to the start.
    ///
    /// # Errors
    ///
    /// The position lies ahead of the pointer, or the drive cannot set the pointer to it.
    fn set_pointer(&mut self, index: u32, to: Sectors) -> Result<(), DeviceError> {
        let pointer = self.zone(index)?.pointer;
        if to == pointer {
            Ok(())
        } else if to == Sectors::ZERO {
            self.reset(index)
        } else if to > pointer {
            let (pointer, to) = (pointer.0, to.0);
            Err(DeviceError::Zone(ZoneError::PointerAhead { zone: index, pointer, to }))
        } else {
            Err(DeviceError::Refused("this drive sets a pointer back to the start of its zone only".into()))
        }
    }

    /// Makes all completed writes and the pointers durable.
    fn flush(&mut self) -> Result<(), DeviceError>;
}

/// Returns the number of sectors in `bytes`, or an error if these are not whole sectors or none at all.
fn whole_sectors(bytes: usize, sector_bytes: u32) -> Result<Sectors, DeviceError> {
    let sector = sector_bytes as usize;
    let sectors = bytes / sector;
    if bytes == 0 || !bytes.is_multiple_of(sector) || sectors > u32::MAX as usize {
        let reason = format!("{bytes} bytes: expected whole sectors of {sector_bytes} bytes, at least one");
        return Err(DeviceError::Refused(reason));
    }
    Ok(Sectors(sectors as u64))
}
