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

/// Parameters of a drive with zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZonedMode {
    /// Size of a sector in bytes; the unit of all writes.
    pub sector_bytes: u32,
    /// Distance between the starts of two adjacent zones, in sectors. The last zone may be shorter.
    pub zone_sectors: Sectors,
    /// Number of zones of the drive, including the conventional ones.
    pub zones: u32,
    /// Number of conventional zones at the start of the drive. These have no write pointer.
    pub conventional_zones: u32,
    /// Largest number of zones that may be open at the same time; `None` for no limit.
    pub open_max: Option<u32>,
    /// Largest number of zones that may be open or closed (partly written) at the same time; `None` for no limit.
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

    /// Returns the LBA of the first sector of zone `index`, counted from 0. Does not check that the zone exists.
    pub fn start(&self, index: u32) -> Lba {
        Lba(u64::from(index) * self.zone_sectors.0)
    }

    /// Returns the number of zones times the zone size, in sectors. A last zone that is shorter counts in full.
    pub fn capacity(&self) -> Sectors {
        Sectors(u64::from(self.zones) * self.zone_sectors.0)
    }
}

/// Operations of a host-managed drive with zones. LBAs and lengths are in sectors of [`ZonedMode::sector_bytes`]; zones
/// are counted from 0.
pub trait ZonedDevice: Send {
    /// Returns the parameters of the drive: sector and zone sizes, number of zones, and limits.
    fn mode_sense(&self) -> ZonedMode;

    /// Appends to `zones` the states of `count` zones from index `first` on, or fewer if the drive has no more.
    ///
    /// # Errors
    /// The drive fails.
    fn report(&mut self, first: u32, count: u32, zones: &mut Vec<Zone>) -> Result<(), DeviceError>;

    /// Returns the state of zone `index`, including its write pointer.
    ///
    /// # Errors
    /// [`ZoneError::NoSuchZone`] if the drive has no such zone, or the drive fails.
    fn zone(&mut self, index: u32) -> Result<Zone, DeviceError> {
        let mut zones = Vec::with_capacity(1);
        self.report(index, 1, &mut zones)?;
        let no_such_zone = ZoneError::NoSuchZone { zone: index, zones: self.mode_sense().zones };
        zones.first().copied().ok_or(DeviceError::Zone(no_such_zone))
    }

    /// Fills `into`, one or more whole sectors, from `lba` on. The range may cross zones. Sectors at and after the
    /// write pointer of a zone read as zeros.
    ///
    /// # Errors
    /// `into` is not whole sectors, the range reaches past the end of the drive or into an offline zone, or the medium
    /// lost a sector.
    fn read(&mut self, lba: Lba, into: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes `from`, one or more whole sectors, at `lba`, and moves the write pointer. In a zone with a pointer, `lba`
    /// must be the pointer and the data must fit into the zone. The data is durable after a flush.
    ///
    /// # Errors
    /// [`DeviceError::Zone`] if the write breaks a rule of the zone; such a write changes nothing. Otherwise `from` is
    /// not whole sectors, or the drive fails.
    fn write(&mut self, lba: Lba, from: &[u8]) -> Result<(), DeviceError>;

    /// Writes `from`, one or more whole sectors, at the write pointer of zone `index`, and returns the LBA of the first
    /// sector written.
    ///
    /// # Errors
    /// The zone is conventional, does not exist, is full, read-only or offline, or has too little space left; or the
    /// drive fails.
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

    /// Empties zone `index`: its data is lost, and its write pointer returns to its start.
    ///
    /// # Errors
    /// The zone does not exist, or is conventional, read-only or offline; or the drive fails.
    fn reset(&mut self, index: u32) -> Result<(), DeviceError>;

    /// Empties every zone, except conventional, read-only and offline ones.
    ///
    /// # Errors
    /// The drive fails.
    fn reset_all(&mut self) -> Result<(), DeviceError>;

    /// Opens zone `index` explicitly: the zone stays open until it is closed, finished, full or reset.
    ///
    /// # Errors
    /// The zone is not empty, closed or open, or does not exist; too many zones are open or active; or the drive fails.
    fn open(&mut self, index: u32) -> Result<(), DeviceError>;

    /// Closes zone `index`, so that it no longer counts as open. An open zone without data becomes empty.
    ///
    /// # Errors
    /// The zone is not open or closed, or does not exist; or the drive fails.
    fn close(&mut self, index: u32) -> Result<(), DeviceError>;

    /// Makes zone `index` full without writing the rest of it, which reads as zeros.
    ///
    /// # Errors
    /// The zone does not exist, or is conventional, read-only or offline; or the drive fails.
    fn finish(&mut self, index: u32) -> Result<(), DeviceError>;

    /// Sets the write pointer of zone `index` back to `to` sectors from the start of the zone (Singh 2014 §2.2.1). The
    /// data from there on is lost. The default, for drives on the market, can only set the pointer back to the start.
    ///
    /// # Errors
    /// The position lies ahead of the pointer, or the drive cannot set the pointer to it; the zone does not exist, or
    /// is conventional, read-only or offline; or the drive fails.
    fn set_pointer(&mut self, index: u32, to: Sectors) -> Result<(), DeviceError> {
        let Zone { pointer, condition, .. } = self.zone(index)?;
        if matches!(condition, Condition::Conventional | Condition::ReadOnly | Condition::Offline) {
            // Refused, like the reset of such a zone.
            self.reset(index)
        } else if to == pointer {
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

    /// Makes all completed writes and the write pointers durable.
    ///
    /// # Errors
    /// The drive fails, or an earlier flush has failed.
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
