//! A zoned block device of Linux: a host-managed drive, or `null_blk` with zones.
//!
//! Zones are managed by the ioctls of `linux/blkzoned.h`. Data bypasses the page cache (`O_DIRECT`), because the
//! cache would write back in an order of its own. No safe crate provides these ioctls.
//!
//! Invariants:
//! 1. No other process writes: the device is opened exclusively, which also fails if the device is mounted.
//! 2. The zones in memory equal those of the drive after each command of this process. After a failed command they
//!    are read from the drive again.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use imbrex_disk::{Lba, Sectors};
use imbrex_safety::survey::busy;
use imbrex_safety::{Peek, Survey, contents, open_for_writing};

use super::{Condition, Zone, ZoneError, ZonedDevice, ZonedMode, whole_sectors};
use crate::error::DeviceError;

const BLKREPORTZONE: libc::c_ulong = 0xc010_1282;
const BLKRESETZONE: libc::c_ulong = 0x4010_1283;
const BLKGETZONESZ: libc::c_ulong = 0x8004_1284;
const BLKGETNRZONES: libc::c_ulong = 0x8004_1285;
const BLKOPENZONE: libc::c_ulong = 0x4010_1286;
const BLKCLOSEZONE: libc::c_ulong = 0x4010_1287;
const BLKFINISHZONE: libc::c_ulong = 0x4010_1288;
const BLKSSZGET: libc::c_ulong = 0x1268;

/// Bytes of the kernel's sectors, whatever the sector size of the drive.
const KERNEL_SECTOR: u64 = 512;
/// Zones requested in one report.
const REPORT_ZONES: usize = 256;
/// Alignment of buffers for `O_DIRECT` in bytes, sufficient for any drive.
const ALIGNMENT: usize = 4096;

/// `struct blk_zone`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct KernelZone {
    start: u64,
    len: u64,
    wp: u64,
    kind: u8,
    condition: u8,
    non_seq: u8,
    reset: u8,
    nothing: [u8; 4],
    capacity: u64,
    reserved: [u8; 24],
}

/// `struct blk_zone_report` with space for its zones.
#[repr(C)]
struct Report {
    sector: u64,
    zones: u32,
    flags: u32,
    list: [KernelZone; REPORT_ZONES],
}

/// `BLK_ZONE_REP_CAPACITY`: the kernel fills in the capacities of the zones.
const HAS_CAPACITY: u32 = 1;

/// `struct blk_zone_range`.
#[repr(C)]
struct Range {
    sector: u64,
    sectors: u64,
}

/// A zoned block device of the host, such as `/dev/sdb`, opened exclusively.
#[derive(Debug)]
pub struct LinuxZoned {
    file: File,
    place: String,
    mode: ZonedMode,
    zones: Vec<Zone>,
    /// Reason why a sync failed, if one did; afterwards nothing is written.
    failed_sync: Option<String>,
    /// Buffer for an aligned copy of the data read or written.
    bounce: Vec<u8>,
}

fn control<T>(file: &File, request: libc::c_ulong, argument: &mut T) -> io::Result<()> {
    // SAFETY: the descriptor is open. Each request is called with the struct that the kernel defines for it, of the
    // size encoded in its number. The report's list has space for as many zones as its count says.
    #[allow(unsafe_code)] // the ioctls of zones are in no safe crate
    let outcome = unsafe { libc::ioctl(file.as_raw_fd(), request as _, std::ptr::from_mut(argument)) };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Returns a limit from sysfs, or `None` if the file is missing or contains 0.
fn limit(file: &File, name: &str) -> Option<u32> {
    let device = file.metadata().ok()?.rdev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let text = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/queue/{name}")).ok()?;
    text.trim().parse().ok().filter(|&limit| limit > 0)
}

impl LinuxZoned {
    /// Opens the zoned block device `path` exclusively for reading and writing, and reads its zones.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] if the device is in use, for example mounted; [`DeviceError::Image`] if it is no zoned
    /// block device; [`DeviceError::Medium`] if it fails.
    pub fn open(path: &Path) -> Result<LinuxZoned, DeviceError> {
        let place = path.display().to_string();
        let failed = |what: &str, cause| DeviceError::medium(format!("{place}: {what}"), cause);
        let file = open_for_writing(path, libc::O_DIRECT).map_err(|cause| match cause.kind() {
            io::ErrorKind::ResourceBusy => DeviceError::Refused(busy(path).to_string()),
            _ => failed("opening it for this process alone", cause),
        })?;
        let (mut zone_sectors, mut zones, mut sector_bytes) = (0u32, 0u32, 0i32);
        let asked = control(&file, BLKGETZONESZ, &mut zone_sectors);
        if asked.is_err() || zone_sectors == 0 {
            return Err(DeviceError::image(&place, "is no zoned block device"));
        }
        control(&file, BLKGETNRZONES, &mut zones).map_err(|cause| failed("counting its zones", cause))?;
        control(&file, BLKSSZGET, &mut sector_bytes).map_err(|cause| failed("asking for its sector size", cause))?;
        let mode = ZonedMode {
            sector_bytes: sector_bytes as u32,
            zone_sectors: Sectors(u64::from(zone_sectors) * KERNEL_SECTOR / sector_bytes as u64),
            zones,
            conventional_zones: 0,
            open_max: limit(&file, "max_open_zones"),
            active_max: limit(&file, "max_active_zones"),
        };
        let mut device = LinuxZoned { file, place, mode, zones: Vec::new(), failed_sync: None, bounce: Vec::new() };
        device.zones = device.ask(0, zones)?;
        let is_conventional = |zone: &&Zone| zone.condition == Condition::Conventional;
        device.mode.conventional_zones = device.zones.iter().take_while(is_conventional).count() as u32;
        Ok(device)
    }

    /// Returns a survey of the device's users and of the file systems and other contents on it; `name` is the name of
    /// the device in the survey.
    ///
    /// # Errors
    /// The device cannot be read.
    pub fn survey(&mut self, name: &str) -> io::Result<Survey> {
        let contents = contents::found(self)?;
        Survey::with_contents(name, &self.file, contents)
    }

    fn failed(&self, what: &str, cause: io::Error) -> DeviceError {
        DeviceError::medium(format!("{}: {what}", self.place), cause)
    }

    /// Returns an error if a flush has failed, because the data that it covered may be lost.
    fn check_synced(&self) -> Result<(), DeviceError> {
        match &self.failed_sync {
            Some(reason) => {
                let reason = format!("{}: a flush failed, and nothing was written since: {reason}", self.place);
                Err(DeviceError::Stopped(reason))
            }
            None => Ok(()),
        }
    }

    /// Converts a number of kernel sectors (512 bytes) to sectors of the drive.
    fn sectors(&self, kernel: u64) -> u64 {
        kernel * KERNEL_SECTOR / u64::from(self.mode.sector_bytes)
    }

    /// Reads `count` zones from number `first` on from the drive.
    fn ask(&self, first: u32, count: u32) -> Result<Vec<Zone>, DeviceError> {
        let mut zones = Vec::with_capacity(count as usize);
        let zone_kernel = self.mode.zone_sectors.0 * u64::from(self.mode.sector_bytes) / KERNEL_SECTOR;
        while zones.len() < count as usize {
            let index = first + zones.len() as u32;
            let wanted = (count as usize - zones.len()).min(REPORT_ZONES);
            let list = [KernelZone::default(); REPORT_ZONES];
            let sector = u64::from(index) * zone_kernel;
            let mut report = Box::new(Report { sector, zones: wanted as u32, flags: 0, list });
            control(&self.file, BLKREPORTZONE, &mut *report).map_err(|cause| self.failed("reporting zones", cause))?;
            if report.zones == 0 {
                return Err(DeviceError::image(&self.place, format!("reports no zone {index}")));
            }
            for (offset, kernel) in report.list[..(report.zones as usize).min(wanted)].iter().enumerate() {
                zones.push(self.zone_of(index + offset as u32, kernel, report.flags & HAS_CAPACITY != 0));
            }
        }
        Ok(zones)
    }

    fn zone_of(&self, index: u32, kernel: &KernelZone, has_capacity: bool) -> Zone {
        let condition = match kernel.condition {
            0x0 => Condition::Conventional,
            0x1 => Condition::Empty,
            0x2 => Condition::ImplicitlyOpen,
            0x3 => Condition::ExplicitlyOpen,
            0x4 => Condition::Closed,
            0xd => Condition::ReadOnly,
            0xe => Condition::Full,
            _ => Condition::Offline,
        };
        let sectors = self.sectors(if has_capacity { kernel.capacity } else { kernel.len });
        let pointer = match condition {
            Condition::Conventional | Condition::Offline => 0,
            Condition::Full => sectors,
            _ => self.sectors(kernel.wp.saturating_sub(kernel.start)).min(sectors),
        };
        let start = Lba(self.sectors(kernel.start));
        Zone { index, start, sectors: Sectors(sectors), condition, pointer: Sectors(pointer) }
    }

    fn known(&self, index: u32) -> Result<Zone, DeviceError> {
        let no_such_zone = ZoneError::NoSuchZone { zone: index, zones: self.mode.zones };
        self.zones.get(index as usize).copied().ok_or(DeviceError::Zone(no_such_zone))
    }

    /// Reads zone `index` from the drive again.
    fn refresh(&mut self, index: u32) -> Result<(), DeviceError> {
        self.zones[index as usize] = self.ask(index, 1)?[0];
        Ok(())
    }

    /// Sends a management command to zone `index`. Refuses commands to conventional, read-only and offline zones,
    /// because the kernel silently accepts some of these commands.
    fn manage(&mut self, index: u32, request: libc::c_ulong, what: &'static str) -> Result<(), DeviceError> {
        self.check_synced()?;
        let zone = self.known(index)?;
        if matches!(zone.condition, Condition::Conventional | Condition::ReadOnly | Condition::Offline) {
            let condition = zone.condition;
            return Err(DeviceError::Zone(ZoneError::Condition { zone: index, condition, what }));
        }
        let kernel = u64::from(self.mode.sector_bytes) / KERNEL_SECTOR;
        let mut range = Range { sector: zone.start.0 * kernel, sectors: self.mode.zone_sectors.0 * kernel };
        let outcome = control(&self.file, request, &mut range);
        self.refresh(index)?;
        outcome.map_err(|cause| self.failed(&format!("zone {index} cannot be {what}"), cause))
    }

    /// Returns the zone of `lba`, or an error if `sectors` from `lba` on reach past the end of the drive.
    fn zone_at(&self, lba: Lba, sectors: Sectors) -> Result<Zone, DeviceError> {
        let end = self.mode.capacity().0;
        if lba.0.checked_add(sectors.0).is_none_or(|last| last > end) {
            return Err(DeviceError::Zone(ZoneError::PastEnd { lba, sectors: sectors.0, end }));
        }
        self.known((lba.0 / self.mode.zone_sectors.0) as u32)
    }

    fn check_write(&self, zone: &Zone, lba: Lba, sectors: Sectors) -> Result<(), ZoneError> {
        let (index, condition) = (zone.index, zone.condition);
        let pointer = zone.start + zone.pointer;
        match condition {
            Condition::Full | Condition::ReadOnly | Condition::Offline => {
                return Err(ZoneError::Condition { zone: index, condition, what: "written" });
            }
            Condition::Conventional => {}
            _ if lba != pointer => return Err(ZoneError::NotAtPointer { zone: index, pointer, lba }),
            _ => {}
        }
        let room = (zone.start + zone.sectors).0.saturating_sub(lba.0);
        if sectors.0 > room {
            return Err(ZoneError::NoRoom { zone: index, room, sectors: sectors.0 });
        }
        Ok(())
    }

    /// Returns an aligned part of the bounce buffer, of `bytes` bytes.
    fn aligned(bounce: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
        bounce.resize(bytes + ALIGNMENT, 0);
        let begin = bounce.as_ptr().align_offset(ALIGNMENT);
        &mut bounce[begin..begin + bytes]
    }
}

impl Peek for LinuxZoned {
    fn len(&self) -> u64 {
        self.mode.capacity().0 * u64::from(self.mode.sector_bytes)
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.read(Lba(offset / u64::from(self.mode.sector_bytes)), into).map_err(io::Error::other)
    }
}

impl ZonedDevice for LinuxZoned {
    fn mode_sense(&self) -> ZonedMode {
        self.mode
    }

    fn report(&mut self, first: u32, count: u32, zones: &mut Vec<Zone>) -> Result<(), DeviceError> {
        let count = count.min(self.mode.zones.saturating_sub(first));
        let reported = self.ask(first, count)?;
        self.zones[first.min(self.mode.zones) as usize..][..count as usize].copy_from_slice(&reported);
        zones.extend(reported);
        Ok(())
    }

    fn read(&mut self, lba: Lba, into: &mut [u8]) -> Result<(), DeviceError> {
        let sector_bytes = self.mode.sector_bytes as usize;
        let sectors = whole_sectors(into.len(), self.mode.sector_bytes)?;
        self.zone_at(lba, sectors)?;
        let (mut next, end, mut rest) = (lba, lba + sectors, into);
        while next < end {
            let zone = self.zone_at(next, Sectors(1))?;
            let zone_end = self.mode.start(zone.index + 1).min(end);
            let stored_end = match zone.condition {
                Condition::Conventional => zone_end,
                Condition::Offline => {
                    let (zone, condition) = (zone.index, zone.condition);
                    return Err(DeviceError::Zone(ZoneError::Condition { zone, condition, what: "read" }));
                }
                _ => (zone.start + zone.pointer).clamp(next, zone_end),
            };
            let (part, after) = rest.split_at_mut((zone_end - next).0 as usize * sector_bytes);
            let (stored, past) = part.split_at_mut((stored_end - next).0 as usize * sector_bytes);
            past.fill(0);
            if !stored.is_empty() {
                let aligned = LinuxZoned::aligned(&mut self.bounce, stored.len());
                let outcome = self.file.read_exact_at(aligned, next.0 * sector_bytes as u64);
                outcome.map_err(|cause| DeviceError::medium(format!("{}: reading at {next}", self.place), cause))?;
                stored.copy_from_slice(aligned);
            }
            (next, rest) = (zone_end, after);
        }
        Ok(())
    }

    fn write(&mut self, lba: Lba, from: &[u8]) -> Result<(), DeviceError> {
        self.check_synced()?;
        let sectors = whole_sectors(from.len(), self.mode.sector_bytes)?;
        let zone = self.zone_at(lba, sectors)?;
        self.check_write(&zone, lba, sectors)?;
        let offset = lba.0 * u64::from(self.mode.sector_bytes);
        let aligned = LinuxZoned::aligned(&mut self.bounce, from.len());
        aligned.copy_from_slice(from);
        if let Err(cause) = self.file.write_all_at(aligned, offset) {
            // The drive may have written a part of the data, so its pointer must be read again.
            self.refresh(zone.index)?;
            return Err(self.failed(&format!("writing at {lba}"), cause));
        }
        if zone.condition == Condition::Conventional {
            return Ok(());
        }
        let known = &mut self.zones[zone.index as usize];
        known.pointer += sectors;
        if known.pointer == known.sectors {
            known.condition = Condition::Full;
        } else if !known.condition.is_open() {
            known.condition = Condition::ImplicitlyOpen;
        }
        Ok(())
    }

    fn reset(&mut self, index: u32) -> Result<(), DeviceError> {
        self.manage(index, BLKRESETZONE, "reset")
    }

    fn reset_all(&mut self) -> Result<(), DeviceError> {
        for index in 0..self.mode.zones {
            let condition = self.known(index)?.condition;
            let has_pointer = !matches!(condition, Condition::Conventional | Condition::ReadOnly | Condition::Offline);
            if has_pointer && condition != Condition::Empty {
                self.reset(index)?;
            }
        }
        Ok(())
    }

    fn open(&mut self, index: u32) -> Result<(), DeviceError> {
        self.manage(index, BLKOPENZONE, "opened")
    }

    fn close(&mut self, index: u32) -> Result<(), DeviceError> {
        self.manage(index, BLKCLOSEZONE, "closed")
    }

    fn finish(&mut self, index: u32) -> Result<(), DeviceError> {
        self.manage(index, BLKFINISHZONE, "finished")
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.check_synced()?;
        self.file.sync_data().map_err(|cause| {
            self.failed_sync = Some(cause.to_string());
            self.failed("flushing", cause)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_as_the_kernel_has_them() {
        assert_eq!(std::mem::size_of::<KernelZone>(), 64);
        assert_eq!(std::mem::offset_of!(KernelZone, capacity), 32);
        assert_eq!(std::mem::offset_of!(Report, list), 16);
        // _IOC(direction, 0x12, number, size): read and write 3, write 1, read 2 (linux/ioctl.h).
        let number =
            |direction: u64, number: u64, size: usize| direction << 30 | (size as u64) << 16 | 0x12 << 8 | number;
        let range = std::mem::size_of::<Range>();
        let expected = [
            (BLKREPORTZONE, number(3, 130, std::mem::offset_of!(Report, list))),
            (BLKRESETZONE, number(1, 131, range)),
            (BLKGETZONESZ, number(2, 132, 4)),
            (BLKGETNRZONES, number(2, 133, 4)),
            (BLKOPENZONE, number(1, 134, range)),
            (BLKCLOSEZONE, number(1, 135, range)),
            (BLKFINISHZONE, number(1, 136, range)),
        ];
        for (request, expected) in expected {
            assert_eq!(request, expected);
        }
    }

    #[test]
    fn what_is_no_zoned_device_is_refused() {
        let file = tempfile::NamedTempFile::new_in(".").expect("a temporary file");
        assert!(LinuxZoned::open(file.path()).is_err());
    }
}
