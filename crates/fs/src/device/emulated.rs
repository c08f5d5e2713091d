//! Emulated drive with simulated service times: an operation reaches the drive's queue when it is submitted, and is
//! answered when the simulated drive completes it.
//!
//! The drive may be a zoned host-managed one or a caveat disk. Any other drive is a conventional one for the file
//! system.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbrex_device::media::host_file::HostFile;
use imbrex_device::zoned::{Condition, ZoneAction};
use imbrex_device::{DeviceError, EmulatedDrive, Io, IoKind};
use imbrex_disk::SimTime;
use imbrex_disk::recording::distances::CaveatDistances;
use imbrex_sim::Stepped;

use imbrex_safety::Survey;

use super::{Answer, BLOCK_BYTES, Backend, DeviceFault, Geometry, Kind, Operation, Outcome, ZoneCondition, ZoneState};

/// Operation in flight.
struct InFlight {
    /// Number of the operation, from [`Backend::submit`].
    operation: u64,
    is_read: bool,
}

/// Backend on an emulated drive, with its operations in flight and the answers that were not delivered yet.
pub struct Emulated {
    drive: EmulatedDrive,
    geometry: Geometry,
    /// Operations in flight, by the numbers that the drive gave their requests.
    in_flight: BTreeMap<u64, InFlight>,
    /// Answers by the time at which they are due and the number of the operation.
    answers: BTreeMap<(u64, u64), Outcome>,
    next_ns: Option<u64>,
    head: u64,
    /// Whether answers are delayed until their simulated time. Otherwise an answer is delivered as soon as it is known,
    /// and the drive keeps a time of its own: for the wall clock when users need not wait as long as a disk takes.
    is_paced: bool,
}

impl Emulated {
    /// Returns the backend of `drive`, which delivers each answer at its simulated time.
    ///
    /// # Errors
    /// The zones of the drive are not a whole number of blocks of 4 KiB.
    pub fn new(drive: EmulatedDrive) -> Result<Emulated, DeviceFault> {
        let geometry = geometry_of(&drive)?;
        Ok(Emulated {
            drive,
            geometry,
            in_flight: BTreeMap::new(),
            answers: BTreeMap::new(),
            next_ns: None,
            head: 0,
            is_paced: true,
        })
    }

    /// Returns this backend with each answer delivered as soon as it is known, without waiting for its simulated time.
    pub fn unpaced(self) -> Emulated {
        Emulated { is_paced: false, ..self }
    }

    /// Returns the drive. Operations in flight and answers that were not delivered are dropped.
    pub fn into_drive(self) -> EmulatedDrive {
        self.drive
    }

    fn zones(&self) -> Vec<ZoneState> {
        let Some(mode) = self.drive.zoned_mode() else { return Vec::new() };
        let (mut zones, sectors) = (Vec::new(), BLOCK_BYTES as u64 / u64::from(mode.sector_bytes));
        self.drive.report_zones(0, mode.zones, &mut zones);
        let state = |zone: &imbrex_device::zoned::Zone| ZoneState {
            written: zone.pointer.0.div_ceil(sectors),
            condition: condition_of(zone.condition),
        };
        zones.iter().map(state).collect()
    }

    /// Lets the drive start operations up to `now_ns`, and collects its completions.
    fn work(&mut self, now_ns: u64) {
        let until = if self.is_paced { SimTime(now_ns) } else { SimTime(u64::MAX) };
        let next = loop {
            match self.drive.step(until) {
                Stepped::Worked => {}
                Stepped::Idle => break None,
                Stepped::NotBefore(time) => break Some(time.0),
            }
            if !self.is_paced && self.drive.outstanding() == 0 {
                break None;
            }
        };
        self.next_ns = next;
        for completion in self.drive.completions() {
            let operation = self.in_flight.remove(&completion.number);
            let InFlight { operation, is_read } = operation.expect("a request that completes was submitted");
            let outcome = match completion.outcome {
                Ok(()) if is_read => Ok(Answer::Bytes(completion.buffer)),
                Ok(()) => Ok(Answer::Done),
                Err(error) => Err(fault(&error)),
            };
            let at = if self.is_paced { completion.end.0 } else { now_ns };
            self.answers.insert((at, operation), outcome);
        }
    }

    fn change(&mut self, action: ZoneAction) -> Outcome {
        self.drive.change_zone(action).map(|()| Answer::Done).map_err(|error| fault(&error))
    }

    /// Submits `io` for the operation with the number `operation`.
    fn io(&mut self, now_ns: u64, operation: u64, io: Io) {
        let is_read = io.kind == IoKind::Read;
        if io.kind != IoKind::Flush {
            self.head = (io.offset + io.length) / BLOCK_BYTES as u64;
        }
        let at = if self.is_paced { SimTime(now_ns) } else { self.drive.now() };
        match self.drive.submit(at, io) {
            Ok(number) => drop(self.in_flight.insert(number, InFlight { operation, is_read })),
            Err(error) => drop(self.answers.insert((now_ns, operation), Err(fault(&error)))),
        }
    }
}

impl Backend for Emulated {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn submit(&mut self, now_ns: u64, number: u64, operation: Operation) {
        const BYTES: u64 = BLOCK_BYTES as u64;
        match operation {
            Operation::Read { block, blocks } => {
                let (offset, length) = (block * BYTES, blocks * BYTES);
                self.io(now_ns, number, Io { kind: IoKind::Read, offset, length, buffer: Vec::new() });
            }
            Operation::Write { block, bytes } => {
                let (offset, length) = (block * BYTES, bytes.len() as u64);
                let kind = IoKind::Write { fua: false };
                self.io(now_ns, number, Io { kind, offset, length, buffer: bytes });
            }
            Operation::Flush => {
                let io = Io { kind: IoKind::Flush, offset: 0, length: 0, buffer: Vec::new() };
                self.io(now_ns, number, io);
            }
            Operation::Reset(zone) => {
                let outcome = self.change(ZoneAction::Reset(zone));
                self.answers.insert((now_ns, number), outcome);
            }
            Operation::Finish(zone) => {
                let outcome = self.change(ZoneAction::Finish(zone));
                self.answers.insert((now_ns, number), outcome);
            }
            Operation::Report => drop(self.answers.insert((now_ns, number), Ok(Answer::Zones(self.zones())))),
        }
        self.work(now_ns);
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.work(now_ns);
        let answer = self.answers.first_key_value().map(|((at, _), _)| *at);
        // Work of an idle drive needs no event: no task waits for it.
        let begin = self.next_ns.filter(|_| self.drive.outstanding() > 0);
        [answer, begin].into_iter().flatten().min()
    }

    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        self.work(now_ns);
        while let Some(first) = self.answers.first_entry() {
            if first.key().0 > now_ns {
                return;
            }
            let ((_, number), outcome) = first.remove_entry();
            answers.push((number, outcome));
        }
    }

    fn head_position(&self) -> u64 {
        self.head
    }

    fn survey(&mut self, name: &str) -> std::io::Result<Survey> {
        self.drive.survey(name)
    }

    fn host_file(&self) -> Option<Arc<HostFile>> {
        self.drive.host_file()
    }

    fn shut_down(&mut self) -> Result<(), DeviceFault> {
        self.drive.shut_down().map_err(|error| fault(&error))
    }
}

pub(super) fn condition_of(condition: Condition) -> ZoneCondition {
    match condition {
        Condition::Conventional => ZoneCondition::Conventional,
        Condition::Full => ZoneCondition::Full,
        Condition::ReadOnly => ZoneCondition::ReadOnly,
        Condition::Offline => ZoneCondition::Offline,
        _ => ZoneCondition::Writable,
    }
}

fn fault(error: &DeviceError) -> DeviceFault {
    let breaks_rules = matches!(error, DeviceError::Destroyed { .. } | DeviceError::Zone(_));
    DeviceFault { reason: error.to_string(), breaks_rules }
}

fn geometry_of(drive: &EmulatedDrive) -> Result<Geometry, DeviceFault> {
    let sector_bytes = u64::from(drive.sector_bytes());
    let blocks = drive.capacity_bytes() / BLOCK_BYTES as u64;
    let per_block = BLOCK_BYTES as u64 / sector_bytes;
    let in_blocks = |sectors: u64| sectors.div_ceil(per_block);
    let simulated = drive.drive();
    let kind = if let Some(mode) = drive.zoned_mode() {
        if !mode.zone_sectors.0.is_multiple_of(per_block) {
            let sectors = mode.zone_sectors.0;
            return Err(DeviceFault::new(format!("zones of {sectors} sectors are not whole blocks of 4 KiB")));
        }
        Kind::Zoned {
            zone_blocks: mode.zone_sectors.0 / per_block,
            zones: mode.zones,
            conventional: mode.conventional_zones,
            active_max: mode.active_max.or(mode.open_max),
        }
    } else {
        match simulated.caveat_distances() {
            Some(CaveatDistances { no_overlap, isolation }) => {
                Kind::Caveat { isolation: in_blocks(isolation.0), no_overlap: no_overlap.0 / per_block }
            }
            None => Kind::Plain,
        }
    };
    Ok(Geometry { blocks, kind })
}
