//! Requests of zoned block devices beyond plain reads and writes: reports, appends, and zone management.
//!
//! ```text
//!   request ─► enter ──┬─► rule ──┬─► to the drive ──► answer ─► leave ─► the next of the zone enters
//!                      │          └─► answered at once ─────────► leave ─►      "
//!                      └─► waits while another has its zone
//! ```
//!
//! The drive itself checks that a write begins at the write pointer, and returns zeros for reads beyond it, over every protocol.
//!
//! Invariants:
//! 1. Of the requests that write to a zone or change it, one at a time is with the drive. The others wait in order of
//!    arrival, because each must begin at the write pointer that the previous one leaves.
//! 2. RESET ALL is carried out only when no request of invariant 1 is with the drive.

use std::collections::{BTreeMap, VecDeque};

use imbrex_device::zoned::{Condition, Zone, ZoneAction, ZonedMode};
use imbrex_device::{DeviceError, EmulatedDrive};
use imbrex_disk::{Lba, Sectors};

use super::abi::{Descriptor, KERNEL_SECTOR_BYTES, KernelZone, operation, zone_condition, zone_kind};

/// Bytes of a zone in a report.
const ZONE_BYTES: usize = size_of::<KernelZone>();

/// The zones with a request at the drive, and the requests that wait for them.
#[derive(Debug)]
pub(super) struct Zones {
    mode: ZonedMode,
    /// Zones with a request at the drive, each with the tags of the requests that wait for the zone.
    at_work: BTreeMap<u32, VecDeque<u16>>,
    /// Tags of requests that need all zones.
    waiting_for_all: VecDeque<u16>,
}

/// The next step for a request.
#[derive(Debug)]
pub(super) enum Ruling {
    /// Send the request to the drive with this range.
    Serve {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// Answer the request at once, with these bytes for the host.
    Answered(Vec<u8>),
}

/// The zones that a request needs exclusively.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    Nothing,
    Zone(u32),
    All,
}

impl Zones {
    /// Creates a table in which no zone has a request.
    pub(super) fn new(mode: ZonedMode) -> Zones {
        Zones { mode, at_work: BTreeMap::new(), waiting_for_all: VecDeque::new() }
    }

    fn wanted(&self, asked: &Descriptor) -> Wanted {
        // A request without a place, such as a flush, has a sector number past all zones.
        let scale = u64::from(self.mode.sector_bytes) / KERNEL_SECTOR_BYTES;
        let zone = (asked.sector / (self.mode.zone_sectors.0 * scale)) as u32;
        match asked.operation_and_flags & 0xff {
            operation::ZONE_RESET_ALL => Wanted::All,
            operation::WRITE if zone < self.mode.conventional_zones => Wanted::Nothing,
            operation::WRITE | operation::ZONE_APPEND => Wanted::Zone(zone),
            operation::ZONE_OPEN | operation::ZONE_CLOSE => Wanted::Zone(zone),
            operation::ZONE_FINISH | operation::ZONE_RESET => Wanted::Zone(zone),
            _ => Wanted::Nothing,
        }
    }

    /// Returns whether the request with `tag` may proceed. Otherwise a later call of [`Zones::leave`] returns its tag.
    pub(super) fn enter(&mut self, tag: u16, asked: &Descriptor) -> bool {
        match self.wanted(asked) {
            Wanted::Nothing => true,
            Wanted::All if self.at_work.is_empty() => true,
            Wanted::All => {
                self.waiting_for_all.push_back(tag);
                false
            }
            Wanted::Zone(zone) => match self.at_work.get_mut(&zone) {
                Some(waiting) => {
                    waiting.push_back(tag);
                    false
                }
                None => {
                    self.at_work.insert(zone, VecDeque::new());
                    true
                }
            },
        }
    }

    /// Releases the zone of an answered request. Returns the tag of the waiting request that may now proceed, if there is one.
    pub(super) fn leave(&mut self, asked: &Descriptor) -> Option<u16> {
        if let Wanted::Zone(zone) = self.wanted(asked) {
            let waiting = self.at_work.get_mut(&zone).expect("it has entered");
            if let Some(next) = waiting.pop_front() {
                return Some(next);
            }
            self.at_work.remove(&zone);
        }
        if self.at_work.is_empty() {
            return self.waiting_for_all.pop_front();
        }
        None
    }

    /// Returns the next step for a request that has entered, after zone management is carried out. `request_bytes_max`
    /// limits the size of a report.
    pub(super) fn rule(
        &self,
        asked: &Descriptor,
        drive: &mut EmulatedDrive,
        request_bytes_max: usize,
    ) -> Result<Ruling, DeviceError> {
        let sector_bytes = u64::from(self.mode.sector_bytes);
        let lba = Lba(asked.sector * KERNEL_SECTOR_BYTES / sector_bytes);
        let sectors = Sectors(u64::from(asked.sectors) * KERNEL_SECTOR_BYTES / sector_bytes);
        let zone = (lba.0 / self.mode.zone_sectors.0) as u32;
        let serve = |lba: Lba, sectors: Sectors| Ruling::Serve {
            offset: lba.0 * sector_bytes,
            length: sectors.0 * sector_bytes,
        };
        let action = match asked.operation_and_flags & 0xff {
            operation::READ | operation::WRITE => return Ok(serve(lba, sectors)),
            operation::ZONE_APPEND => return Ok(serve(drive.zone_pointer(zone)?, sectors)),
            operation::REPORT_ZONES => {
                // In a request for a report, the number of sectors is a number of zones.
                let count = asked.sectors.min((request_bytes_max / ZONE_BYTES) as u32);
                return Ok(Ruling::Answered(self.report(drive, zone, count)));
            }
            operation::ZONE_OPEN => ZoneAction::Open(zone),
            operation::ZONE_CLOSE => ZoneAction::Close(zone),
            operation::ZONE_FINISH => ZoneAction::Finish(zone),
            operation::ZONE_RESET => ZoneAction::Reset(zone),
            operation::ZONE_RESET_ALL => ZoneAction::ResetAll,
            other => unreachable!("operation {other} does not come here"),
        };
        drive.change_zone(action)?;
        Ok(Ruling::Answered(Vec::new()))
    }

    fn report(&self, drive: &EmulatedDrive, first: u32, count: u32) -> Vec<u8> {
        let mut zones = Vec::with_capacity(count as usize);
        drive.report_zones(first, count, &mut zones);
        let scale = u64::from(self.mode.sector_bytes) / KERNEL_SECTOR_BYTES;
        let mut bytes = Vec::with_capacity(zones.len() * ZONE_BYTES);
        for zone in &zones {
            let kernel = kernel_zone(zone, scale);
            for number in [kernel.start, kernel.length, kernel.pointer] {
                bytes.extend_from_slice(&number.to_ne_bytes());
            }
            bytes.extend_from_slice(&[kernel.kind, kernel.condition, 0, 0, 0, 0, 0, 0]);
            bytes.extend_from_slice(&kernel.capacity.to_ne_bytes());
            bytes.extend_from_slice(&kernel.reserved_end);
        }
        bytes
    }
}

/// Returns whether [`Zones::rule`] handles this operation.
pub(super) fn is_known(operation_and_flags: u32) -> bool {
    use operation::*;
    matches!(
        operation_and_flags & 0xff,
        READ | WRITE | ZONE_OPEN | ZONE_CLOSE | ZONE_FINISH | ZONE_APPEND | ZONE_RESET_ALL | ZONE_RESET | REPORT_ZONES
    )
}

/// Returns a zone in the block layer's format, whose sectors are smaller than the drive's by the factor `scale`.
fn kernel_zone(zone: &Zone, scale: u64) -> KernelZone {
    let (start, length) = (zone.start.0 * scale, zone.sectors.0 * scale);
    let condition = match zone.condition {
        Condition::Conventional => zone_condition::NO_POINTER,
        Condition::Empty => zone_condition::EMPTY,
        Condition::ImplicitlyOpen => zone_condition::IMPLICITLY_OPEN,
        Condition::ExplicitlyOpen => zone_condition::EXPLICITLY_OPEN,
        Condition::Closed => zone_condition::CLOSED,
        Condition::Full => zone_condition::FULL,
        Condition::ReadOnly => zone_condition::READ_ONLY,
        Condition::Offline => zone_condition::OFFLINE,
    };
    let is_conventional = zone.condition == Condition::Conventional;
    KernelZone {
        start,
        length,
        pointer: if is_conventional { u64::MAX } else { start + zone.pointer.0 * scale },
        kind: if is_conventional { zone_kind::CONVENTIONAL } else { zone_kind::SEQUENTIAL },
        condition,
        capacity: length,
        ..KernelZone::default()
    }
}

#[cfg(test)]
mod tests {
    //! Goal: zone management by a host changes the drive's zones, one request of a zone at a time. Method: the driver's
    //! descriptors by hand, over a small drive in memory.

    use super::*;
    use crate::verify::small_drive;

    const SECTORS: u32 = 8;

    fn asked(operation: u32, sector: u64, sectors: u32) -> Descriptor {
        Descriptor { operation_and_flags: operation, sectors, sector, address: 0 }
    }

    fn bench() -> (EmulatedDrive, Zones, u64) {
        let drive = small_drive("zoned");
        let mode = drive.zoned_mode().expect("it has zones");
        assert_eq!(mode.sector_bytes, 512, "toys count as the block layer does");
        (drive, Zones::new(mode), mode.zone_sectors.0)
    }

    /// Carries out the next step of a request, as the queue does.
    fn write(zones: &Zones, drive: &mut EmulatedDrive, asked: &Descriptor) -> Result<u64, DeviceError> {
        match zones.rule(asked, drive, 1 << 20)? {
            Ruling::Serve { offset, length } => {
                drive.write(offset, &vec![7; length as usize], false)?;
                Ok(offset / KERNEL_SECTOR_BYTES)
            }
            Ruling::Answered(_) => Ok(0),
        }
    }

    #[test]
    fn writes_come_at_the_pointer_or_not_at_all() {
        let (mut drive, zones, zone_sectors) = bench();
        let first = zone_sectors;
        assert_eq!(write(&zones, &mut drive, &asked(operation::WRITE, first, SECTORS)).ok(), Some(first));
        let again = write(&zones, &mut drive, &asked(operation::WRITE, first, SECTORS));
        assert!(matches!(again, Err(DeviceError::Zone(_))), "{again:?}");
        let appended = write(&zones, &mut drive, &asked(operation::ZONE_APPEND, first, SECTORS));
        assert_eq!(appended.ok(), Some(first + u64::from(SECTORS)));
        let mut read = vec![9; 8 * 512];
        drive.read((first + 12) * KERNEL_SECTOR_BYTES, &mut read).expect("it can be read");
        assert_eq!(read, [[7; 4 * 512], [0; 4 * 512]].concat(), "past the pointer are zeros");
    }

    #[test]
    fn zones_are_reported_as_they_are() {
        let (mut drive, zones, zone_sectors) = bench();
        write(&zones, &mut drive, &asked(operation::WRITE, zone_sectors, SECTORS)).expect("at the pointer");
        write(&zones, &mut drive, &asked(operation::ZONE_FINISH, 2 * zone_sectors, 0)).expect("an empty zone");
        write(&zones, &mut drive, &asked(operation::ZONE_OPEN, 3 * zone_sectors, 0)).expect("an empty zone");
        let report = |drive: &mut EmulatedDrive| match zones
            .rule(&asked(operation::REPORT_ZONES, 0, 4), drive, 1 << 20)
            .expect("there are zones")
        {
            Ruling::Answered(bytes) => bytes,
            ruling => panic!("{ruling:?}"),
        };
        let bytes = report(&mut drive);
        assert_eq!(bytes.len(), 4 * 64);
        let condition = |bytes: &[u8], zone: usize| bytes[zone * 64 + 25];
        let pointer = u64::from_ne_bytes(bytes[64 + 16..64 + 24].try_into().expect("eight bytes"));
        assert_eq!(pointer, zone_sectors + u64::from(SECTORS));
        assert_eq!([1, 2, 3].map(|zone| condition(&bytes, zone)), [2, 14, 3], "as linux/blkzoned.h numbers them");
        write(&zones, &mut drive, &asked(operation::ZONE_RESET_ALL, 0, 0)).expect("all can be emptied");
        let bytes = report(&mut drive);
        assert_eq!([1, 2, 3].map(|zone| condition(&bytes, zone)), [1, 1, 1]);
    }

    #[test]
    fn one_request_of_a_zone_is_at_work_at_a_time() {
        let (_, mut zones, zone_sectors) = bench();
        let write = |zone: u64| asked(operation::WRITE, zone * zone_sectors, 1);
        assert!(zones.enter(0, &write(1)) && zones.enter(1, &write(2)), "zones do not wait for each other");
        assert!(!zones.enter(2, &write(1)) && !zones.enter(3, &asked(operation::ZONE_RESET, zone_sectors, 0)));
        assert!(!zones.enter(4, &asked(operation::ZONE_RESET_ALL, 0, 0)), "not while a zone is at work");
        assert!(zones.enter(5, &asked(operation::READ, zone_sectors, 1)), "reads wait for nobody");
        assert_eq!(zones.leave(&write(1)), Some(2), "in their order");
        assert_eq!(zones.leave(&write(2)), None);
        assert_eq!(zones.leave(&write(1)), Some(3));
        assert_eq!(zones.leave(&asked(operation::ZONE_RESET, zone_sectors, 0)), Some(4), "now all of them");
    }
}
