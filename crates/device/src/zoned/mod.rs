//! Host-managed drives in zones: what a file system for raw shingled disks writes to.
//!
//! One trait serves two readings of such a drive. Strict append (Singh 2014 §2.2.1): `mode_sense`, bands with a pointer that
//! can be asked, set and reset, `read`, `append`. And that of the drives that are sold: zones that are reported, opened,
//! closed, finished and reset, and written at their pointers. [`EmulatedZoned`] is a view of an emulated drive,
//! [`LinuxZoned`] a zoned block device of the host. A drive that serves many hosts at once, such as a block device of ours,
//! takes the same commands by [`ZoneAction`].
//!
//! Sectors are those of the drive ([`ZonedMode::sector_bytes`]). The conditions of a zone are those of [`Condition`], whose
//! diagram is in `imbrex_layer::zones`.
//!
//! Invariants, of every implementation:
//! 1. A write elsewhere than at the pointer of a zone is refused and changes nothing.
//! 2. Reads may cross zones. Past the pointer they bring zeros, as from the drives that are sold; so they do where a
//!    finished zone was not written. Only offline zones, and sectors that the medium lost, are errors.
//! 3. What a flush covered is there after a power cut, and the pointers lie after it. No pointer lies past what is durable.

mod emulated;
#[cfg(target_os = "linux")]
mod linux;
pub mod trial;
mod zones;

pub use emulated::EmulatedZoned;
pub use imbrex_layer::{Condition, Zone, ZoneError};
#[cfg(target_os = "linux")]
pub use linux::LinuxZoned;
pub use zones::{ZoneAction, ZoneCounters};

use imbrex_disk::{Lba, Sectors};
use imbrex_layer::Zones;

use crate::error::DeviceError;

/// What a zoned drive is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZonedMode {
    /// Bytes of a sector: what writes are counted in.
    pub sector_bytes: u32,
    /// Sectors of a zone.
    pub zone_sectors: Sectors,
    /// How many zones.
    pub zones: u32,
    /// How many of them, from the first, are conventional.
    pub conventional_zones: u32,
    /// The most that may be open at a time, if there is a limit.
    pub open_max: Option<u32>,
    /// The most that may be open or closed at a time, if there is a limit.
    pub active_max: Option<u32>,
}

impl ZonedMode {
    /// That of `zones` on a drive with sectors of `sector_bytes`.
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

    /// The first sector of zone `index`.
    pub fn start(&self, index: u32) -> Lba {
        Lba(u64::from(index) * self.zone_sectors.0)
    }

    /// Sectors of all zones.
    pub fn capacity(&self) -> Sectors {
        Sectors(u64::from(self.zones) * self.zone_sectors.0)
    }
}

/// A host-managed drive in zones.
pub trait ZonedDevice: Send {
    /// What it is.
    fn mode_sense(&self) -> ZonedMode;

    /// Appends the zones from number `first` on, `count` or as many as there are.
    fn report(&mut self, first: u32, count: u32, zones: &mut Vec<Zone>) -> Result<(), DeviceError>;

    /// Zone `index`: where its pointer is.
    fn zone(&mut self, index: u32) -> Result<Zone, DeviceError> {
        let mut zones = Vec::with_capacity(1);
        self.report(index, 1, &mut zones)?;
        let no_such_zone = ZoneError::NoSuchZone { zone: index, zones: self.mode_sense().zones };
        zones.first().copied().ok_or(DeviceError::Zone(no_such_zone))
    }

    /// Fills `into`, whole sectors, from `lba` on.
    fn read(&mut self, lba: Lba, into: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes `from`, whole sectors of one zone, at `lba`: the zone's pointer, or anywhere in a conventional zone.
    fn write(&mut self, lba: Lba, from: &[u8]) -> Result<(), DeviceError>;

    /// Writes `from` at the pointer of zone `index`, wherever it is; says where that was.
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

    /// Empties every zone that can be.
    fn reset_all(&mut self) -> Result<(), DeviceError>;

    /// Opens zone `index`: it stays open until it is closed, finished, full or reset.
    fn open(&mut self, index: u32) -> Result<(), DeviceError>;

    /// Closes zone `index`.
    fn close(&mut self, index: u32) -> Result<(), DeviceError>;

    /// Makes zone `index` full without writing the rest of it.
    fn finish(&mut self, index: u32) -> Result<(), DeviceError>;

    /// Sets the pointer of zone `index` to `to` sectors from its start; never ahead (Singh 2014 §2.2.1). Drives that are
    /// sold can only go back to the start.
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

    /// All that was written, and the pointers, are durable.
    fn flush(&mut self) -> Result<(), DeviceError>;
}

/// How many sectors `bytes` are, if they are whole sectors and at least one.
fn whole_sectors(bytes: usize, sector_bytes: u32) -> Result<Sectors, DeviceError> {
    let sector = sector_bytes as usize;
    let sectors = bytes / sector;
    if bytes == 0 || !bytes.is_multiple_of(sector) || sectors > u32::MAX as usize {
        let reason = format!("{bytes} bytes: expected whole sectors of {sector_bytes} bytes, at least one");
        return Err(DeviceError::Refused(reason));
    }
    Ok(Sectors(sectors as u64))
}
