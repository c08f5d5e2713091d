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

use imbrex_device::zoned::{ZoneAction, ZonedMode};
use imbrex_device::{DeviceError, EmulatedDrive};
use imbrex_disk::Lba;

/// Size in bytes of the sectors in which requests count, whatever the sector size of the drive.
const SECTOR_BYTES: u64 = 512;

/// An operation of the block layer, as far as zones are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Write at the write pointer of a zone.
    Append,
    /// Report the states of zones.
    Report,
    /// Open a zone explicitly.
    Open,
    /// Close a zone.
    Close,
    /// Make a zone full.
    Finish,
    /// Empty a zone.
    Reset,
    /// Empty all zones.
    ResetAll,
}

/// A request to a drive with zones, in sectors of 512 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ZoneRequest {
    /// Operation.
    pub operation: Operation,
    /// First sector; for an operation on a zone, a sector of the zone.
    pub sector: u64,
    /// Number of sectors; for a report, the largest number of zones.
    pub sectors: u32,
}

/// The zones with a request at the drive, and the requests that wait for them.
#[derive(Debug)]
pub(crate) struct Zones {
    mode: ZonedMode,
    /// Zones with a request at the drive, each with the tags of the requests that wait for the zone.
    at_work: BTreeMap<u32, VecDeque<u32>>,
    /// Tags of requests that need all zones.
    waiting_for_all: VecDeque<u32>,
}

/// The next step for a request.
#[derive(Debug)]
pub(crate) enum Ruling {
    /// Send the request to the drive with this range.
    Serve {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// Report these zones.
    Report {
        /// First zone.
        first: u32,
        /// Largest number of zones.
        count: u32,
    },
    /// Answer the request at once: it is carried out.
    Done,
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
    pub(crate) fn new(mode: ZonedMode) -> Zones {
        Zones { mode, at_work: BTreeMap::new(), waiting_for_all: VecDeque::new() }
    }

    fn wanted(&self, asked: &ZoneRequest) -> Wanted {
        // A request without a place, such as a flush, has a sector number past all zones.
        let scale = u64::from(self.mode.sector_bytes) / SECTOR_BYTES;
        let zone = (asked.sector / (self.mode.zone_sectors.0 * scale)) as u32;
        match asked.operation {
            Operation::Read | Operation::Report => Wanted::Nothing,
            Operation::Write if zone < self.mode.conventional_zones => Wanted::Nothing,
            Operation::Write | Operation::Append => Wanted::Zone(zone),
            Operation::Open | Operation::Close | Operation::Finish | Operation::Reset => Wanted::Zone(zone),
            Operation::ResetAll => Wanted::All,
        }
    }

    /// Returns whether the request with `tag` may proceed. Otherwise a later call of [`Zones::leave`] returns its tag.
    pub(crate) fn enter(&mut self, tag: u32, asked: &ZoneRequest) -> bool {
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
    pub(crate) fn leave(&mut self, asked: &ZoneRequest) -> Option<u32> {
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

    /// Returns the next step for a request that has entered, after zone management is carried out.
    pub(crate) fn rule(&self, asked: &ZoneRequest, drive: &mut EmulatedDrive) -> Result<Ruling, DeviceError> {
        let sector_bytes = u64::from(self.mode.sector_bytes);
        let lba = Lba(asked.sector * SECTOR_BYTES / sector_bytes);
        let zone = (lba.0 / self.mode.zone_sectors.0) as u32;
        let length = u64::from(asked.sectors) * SECTOR_BYTES;
        let action = match asked.operation {
            Operation::Read | Operation::Write => {
                return Ok(Ruling::Serve { offset: asked.sector * SECTOR_BYTES, length });
            }
            Operation::Append => {
                return Ok(Ruling::Serve { offset: drive.zone_pointer(zone)?.0 * sector_bytes, length });
            }
            Operation::Report => return Ok(Ruling::Report { first: zone, count: asked.sectors }),
            Operation::Open => ZoneAction::Open(zone),
            Operation::Close => ZoneAction::Close(zone),
            Operation::Finish => ZoneAction::Finish(zone),
            Operation::Reset => ZoneAction::Reset(zone),
            Operation::ResetAll => ZoneAction::ResetAll,
        };
        drive.change_zone(action)?;
        Ok(Ruling::Done)
    }
}

#[cfg(test)]
mod tests {
    //! Goal: zone management by a host changes the drive's zones, one request of a zone at a time. Method:
    //! requests by hand, over a small drive in memory.

    use imbrex_device::zoned::{Condition, Zone};

    use super::*;
    use crate::verify::small_drive;

    const SECTORS: u32 = 8;

    fn asked(operation: Operation, sector: u64, sectors: u32) -> ZoneRequest {
        ZoneRequest { operation, sector, sectors }
    }

    fn bench() -> (EmulatedDrive, Zones, u64) {
        let drive = small_drive("zoned");
        let mode = drive.zoned_mode().expect("it has zones");
        assert_eq!(mode.sector_bytes, 512, "toys count as the block layer does");
        (drive, Zones::new(mode), mode.zone_sectors.0)
    }

    /// Carries out the next step of a request, as the queue does.
    fn write(zones: &Zones, drive: &mut EmulatedDrive, asked: &ZoneRequest) -> Result<u64, DeviceError> {
        match zones.rule(asked, drive)? {
            Ruling::Serve { offset, length } => {
                drive.write(offset, &vec![7; length as usize], false)?;
                Ok(offset / SECTOR_BYTES)
            }
            Ruling::Done | Ruling::Report { .. } => Ok(0),
        }
    }

    #[test]
    fn writes_come_at_the_pointer_or_not_at_all() {
        let (mut drive, zones, zone_sectors) = bench();
        let first = zone_sectors;
        assert_eq!(write(&zones, &mut drive, &asked(Operation::Write, first, SECTORS)).ok(), Some(first));
        let again = write(&zones, &mut drive, &asked(Operation::Write, first, SECTORS));
        assert!(matches!(again, Err(DeviceError::Zone(_))), "{again:?}");
        let appended = write(&zones, &mut drive, &asked(Operation::Append, first, SECTORS));
        assert_eq!(appended.ok(), Some(first + u64::from(SECTORS)));
        let mut read = vec![9; 8 * 512];
        drive.read((first + 12) * SECTOR_BYTES, &mut read).expect("it can be read");
        assert_eq!(read, [[7; 4 * 512], [0; 4 * 512]].concat(), "past the pointer are zeros");
    }

    #[test]
    fn zones_are_reported_as_they_are() {
        let (mut drive, zones, zone_sectors) = bench();
        write(&zones, &mut drive, &asked(Operation::Write, zone_sectors, SECTORS)).expect("at the pointer");
        write(&zones, &mut drive, &asked(Operation::Finish, 2 * zone_sectors, 0)).expect("an empty zone");
        write(&zones, &mut drive, &asked(Operation::Open, 3 * zone_sectors, 0)).expect("an empty zone");
        let report = |drive: &mut EmulatedDrive| {
            let ruling = zones.rule(&asked(Operation::Report, 0, 4), drive).expect("there are zones");
            assert!(matches!(ruling, Ruling::Report { first: 0, count: 4 }), "{ruling:?}");
            let mut found = Vec::new();
            drive.report_zones(0, 4, &mut found);
            found
        };
        let found = report(&mut drive);
        assert_eq!((found[1].start.0, found[1].pointer.0), (zone_sectors, u64::from(SECTORS)));
        let conditions = |found: &[Zone]| [1, 2, 3].map(|zone: usize| found[zone].condition);
        assert_eq!(conditions(&found), [Condition::ImplicitlyOpen, Condition::Full, Condition::ExplicitlyOpen]);
        write(&zones, &mut drive, &asked(Operation::ResetAll, 0, 0)).expect("all can be emptied");
        assert_eq!(conditions(&report(&mut drive)), [Condition::Empty; 3]);
    }

    #[test]
    fn one_request_of_a_zone_is_at_work_at_a_time() {
        let (_, mut zones, zone_sectors) = bench();
        let write = |zone: u64| asked(Operation::Write, zone * zone_sectors, 1);
        assert!(zones.enter(0, &write(1)) && zones.enter(1, &write(2)), "zones do not wait for each other");
        assert!(!zones.enter(2, &write(1)) && !zones.enter(3, &asked(Operation::Reset, zone_sectors, 0)));
        assert!(!zones.enter(4, &asked(Operation::ResetAll, 0, 0)), "not while a zone is at work");
        assert!(zones.enter(5, &asked(Operation::Read, zone_sectors, 1)), "reads wait for nobody");
        assert_eq!(zones.leave(&write(1)), Some(2), "in their order");
        assert_eq!(zones.leave(&write(2)), None);
        assert_eq!(zones.leave(&write(1)), Some(3));
        assert_eq!(zones.leave(&asked(Operation::Reset, zone_sectors, 0)), Some(4), "now all of them");
    }
}
