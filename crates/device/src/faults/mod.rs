//! Fault injection: failures of a drive, produced on request for tests.
//!
//! | fault | effect | duration |
//! |---|---|---|
//! | unreadable | a read that touches the sectors fails | each sector until it is written |
//! | slow | each command that touches the sectors takes a given time longer | until it is cleared |
//! | zone | a zone is read-only or offline | until it is cleared |
//! | pointer | the write pointer of a zone moves | until the host moves it |
//!
//! A fault is recorded in the image's journal ([`known`]), so it outlives the process. It occurs at once, or at the
//! time or request count that a [`schedule`] gives; [`crate::EmulatedDrive::play_faults`] plays a schedule. Sectors
//! are LBAs of the drive.
//!
//! Does not model: the drive's own handling of a bad sector, such as its reallocation. A layer that moves an
//! unreadable sector during cleaning moves it unchanged.
//!
//! Invariants:
//! 1. A fault that the drive cannot have is refused and changes nothing.
//! 2. A fault is durable once it has been applied.

pub mod known;
pub mod player;
pub mod schedule;

use std::fmt;

use imbrex_disk::{Lba, Sectors, SimDuration, SimTime};
use imbrex_layer::{Condition, GroupKind, Plan, ZoneError, Zones};
use imbrex_sim::Drive;

pub use self::known::Known;
use self::known::SLOW_MAX;
pub use self::schedule::{Schedule, ScheduleError};
use crate::error::DeviceError;
use crate::media::Media;
use crate::store::Store;

/// A fault of a drive, and the place where it occurs. All sectors are logical sectors of the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// Each of these logical sectors fails to read until it is written or the fault is cleared.
    Unreadable {
        /// First of the unreadable sectors.
        lba: Lba,
        /// Number of unreadable sectors.
        sectors: Sectors,
    },
    /// Commands that touch any of these sectors take longer, until the fault is cleared.
    Slow {
        /// First of the slow sectors.
        lba: Lba,
        /// Number of slow sectors.
        sectors: Sectors,
        /// Simulated time by which each command that touches any of these sectors takes longer; more than zero, at most
        /// one hour.
        by: SimDuration,
    },
    /// A zone becomes read-only or offline, until the fault is cleared.
    Zone {
        /// Index of the zone, from 0.
        zone: u32,
        /// New condition of the zone: [`Condition::ReadOnly`] or [`Condition::Offline`]; any other value is a bug of
        /// the caller.
        condition: Condition,
    },
    /// The write pointer of a zone moves, forward or backward.
    Pointer {
        /// Index of the zone, from 0. The zone must not be conventional.
        zone: u32,
        /// New position of the pointer, in sectors from the start of the zone; at most the zone size.
        to: Sectors,
    },
}

/// Moment at which a scheduled fault occurs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// At once, when the schedule is given to the drive.
    Now,
    /// Just before the first request that arrives at this simulated time or later; at once if a request has already
    /// arrived so late.
    At(SimTime),
    /// Just before the request that follows this number of requests since the drive was opened. At once if the drive
    /// has had that many, so also for 0. Refused requests do not count.
    AfterRequests(u64),
}

/// A fault to be injected, and the moment at which it occurs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Kind of the fault, and the sectors or the zone that it concerns.
    pub kind: FaultKind,
    /// Moment at which the fault occurs.
    pub due: Due,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Unreadable { lba, sectors } => {
                write!(f, "{} sectors from LBA {} are unreadable until they are written", sectors.0, lba.0)
            }
            FaultKind::Slow { lba, sectors, by } => {
                write!(f, "{} sectors from LBA {} take {by} longer", sectors.0, lba.0)
            }
            FaultKind::Zone { zone, condition } => write!(f, "zone {zone} is {}", condition.name()),
            FaultKind::Pointer { zone, to } => {
                write!(f, "the pointer of zone {zone} is {} sectors from its start", to.0)
            }
        }
    }
}

impl FaultKind {
    /// Checks that `drive` can have the fault: the sectors or the zone exist, and all values are in range.
    ///
    /// # Errors
    /// A message that gives the reason and the allowed values.
    ///
    /// # Panics
    /// If a [`FaultKind::Zone`] has another condition than read-only or offline.
    pub fn check(&self, drive: &Drive) -> Result<(), String> {
        match *self {
            FaultKind::Unreadable { lba, sectors } => check_range(drive, lba, sectors),
            FaultKind::Slow { lba, sectors, by } => {
                check_range(drive, lba, sectors)?;
                if by == SimDuration::ZERO || by > SLOW_MAX {
                    return Err(format!(
                        "{by} longer: expected a time above zero, such as 200ms, and at most {SLOW_MAX}"
                    ));
                }
                Ok(())
            }
            FaultKind::Zone { zone, condition } => {
                assert!(matches!(condition, Condition::ReadOnly | Condition::Offline), "{condition:?} is no fault");
                zones_of(drive, zone).map(drop)
            }
            FaultKind::Pointer { zone, to } => {
                let zones = zones_of(drive, zone)?;
                if zone < zones.conventional() {
                    let first = zones.conventional();
                    return Err(format!(
                        "zone {zone} is conventional and has no pointer; zones from {first} on have one"
                    ));
                }
                match zones.zone_sectors() {
                    size if to > size => Err(format!(
                        "sector {} of zone {zone}: a zone has {} sectors, so give 0 to {}",
                        to.0, size.0, size.0
                    )),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Makes the fault's change to the zones, and adds its writes to the plan. Faults of sectors change no zone.
    fn change(&self, zones: &mut Zones, plan: &mut Plan) -> Result<(), ZoneError> {
        match *self {
            FaultKind::Unreadable { .. } | FaultKind::Slow { .. } => Ok(()),
            FaultKind::Zone { zone, condition } => zones.fail(zone, condition, plan),
            FaultKind::Pointer { zone, to } => zones.move_pointer(zone, to.0, plan),
        }
    }

    /// Applies the fault to the drive and its image at once; it is durable on return. No requests may be in flight to
    /// the zone of the fault.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] if the drive cannot have the fault, [`DeviceError::Zone`] if the zone does not allow it
    /// now, or the error of the image.
    pub fn apply<M: Media>(&self, drive: &mut Drive, store: &mut Store<M>) -> Result<(), DeviceError> {
        self.check(drive).map_err(DeviceError::Refused)?;
        match *self {
            FaultKind::Unreadable { lba, sectors } => store.record(&known::unreadable(lba, sectors, true)),
            FaultKind::Slow { lba, sectors, by } => store.record(&known::slow(lba, sectors, by)),
            FaultKind::Zone { .. } | FaultKind::Pointer { .. } => {
                change_zones(drive, store, |zones, plan| self.change(zones, plan))
            }
        }
    }
}

/// Checks that `drive` can have all of `kinds`, one after the other. Changes nothing.
///
/// # Errors
/// The index of the first that it cannot have after those before it, and the reason.
///
/// # Panics
/// If a [`FaultKind::Zone`] has another condition than read-only or offline.
pub fn check_all(kinds: &[FaultKind], drive: &Drive) -> Result<(), (usize, String)> {
    // The changes are made to a copy of the zones.
    let mut zones = drive.layer.zones().cloned();
    for (index, kind) in kinds.iter().enumerate() {
        kind.check(drive).map_err(|reason| (index, reason))?;
        if let Some(zones) = &mut zones {
            let mut plan = Plan::new();
            plan.open(GroupKind::Host);
            kind.change(zones, &mut plan).map_err(|error| (index, error.to_string()))?;
        }
    }
    Ok(())
}

/// Clears all injected faults of the drive, durably. Sectors that were unreadable read as stored, and the condition of
/// each failed zone follows from its pointer. Write pointers that a fault moved stay where they are.
///
/// # Errors
/// The image fails, or its store has stopped.
pub fn clear<M: Media>(drive: &mut Drive, store: &mut Store<M>) -> Result<(), DeviceError> {
    for note in store.faults().undone() {
        store.record(&note)?;
    }
    for (zone, _) in failed_zones(drive) {
        change_zones(drive, store, |zones, plan| zones.mend(zone, plan))?;
    }
    Ok(())
}

/// Returns the zones that are read-only or offline, in ascending order, as (index, condition). Empty for a drive
/// without zones.
pub fn failed_zones(drive: &Drive) -> Vec<(u32, Condition)> {
    let Some(zones) = drive.layer.zones() else { return Vec::new() };
    let conditions = (0..zones.len()).filter_map(|zone| Some((zone, zones.zone(zone).ok()?.condition)));
    conditions.filter(|(_, condition)| matches!(condition, Condition::ReadOnly | Condition::Offline)).collect()
}

/// Checks that all zones that a request touches can serve it.
///
/// # Errors
///
/// A zone is offline, or is read-only and the request is not a read.
pub(crate) fn check_zones(drive: &Drive, lba: Lba, sectors: Sectors, is_read: bool) -> Result<(), ZoneError> {
    let Some(zones) = drive.layer.zones() else { return Ok(()) };
    let (mut next, end) = (lba, lba + sectors);
    while next < end {
        let zone = zones.zone(zones.index_of(next)?)?;
        let condition = zone.condition;
        if condition == Condition::Offline || (condition == Condition::ReadOnly && !is_read) {
            let what = if is_read { "read" } else { "written" };
            return Err(ZoneError::Condition { zone: zone.index, condition, what });
        }
        next = zone.start + zone.sectors;
    }
    Ok(())
}

fn check_range(drive: &Drive, lba: Lba, sectors: Sectors) -> Result<(), String> {
    let capacity = drive.layer.capacity().0;
    if sectors.is_zero() {
        return Err("no sectors: give at least one".into());
    }
    match lba.0.checked_add(sectors.0) {
        Some(end) if end <= capacity => Ok(()),
        _ => Err(format!(
            "{} sectors from LBA {} reach past the end of the drive, which has {capacity} sectors of {} bytes",
            sectors.0, lba.0, drive.disk.sector_bytes
        )),
    }
}

fn zones_of(drive: &Drive, zone: u32) -> Result<&Zones, String> {
    let Some(zones) = drive.layer.zones() else {
        let layer = drive.layer.name();
        return Err(format!(
            "layer '{layer}' has no zones; such a fault needs a zoned drive, such as hm-zoned or …+zoned"
        ));
    };
    match zones.len() {
        count if zone >= count => Err(format!("there is no zone {zone}: the drive has zones 0 to {}", count - 1)),
        _ => Ok(zones),
    }
}

fn change_zones<M: Media>(
    drive: &mut Drive,
    store: &mut Store<M>,
    change: impl FnOnce(&mut Zones, &mut Plan) -> Result<(), ZoneError>,
) -> Result<(), DeviceError> {
    if let Some(reason) = store.stopped() {
        return Err(DeviceError::Stopped(reason.into()));
    }
    let mut plan = Plan::new();
    plan.open(GroupKind::Host);
    let zones = drive.layer.zones_mut().expect("it has zones: that was asked before");
    change(zones, &mut plan)?;
    store.execute(&plan, &mut [])?;
    store.flush()?;
    store.checkpoint_if_due(drive.layer.as_ref())
}
