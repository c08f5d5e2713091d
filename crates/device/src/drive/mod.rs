//! An emulated drive: the simulator's engine over a store. What a request costs in time and what it does to the bytes
//! follow from one plan.
//!
//! ```text
//!   submit ─► zones' rule ─► inbox ─► Engine ── what moves ──► Bytes: requests, volatile bytes, store ─► completions
//!                                       └────── plans ───────► Watch: what is drawn
//! ```
//!
//! The caller owns the clock: requests carry the simulated time at which they arrive, and [`EmulatedDrive::advance`] goes
//! no further than it is told. The bytes move when a command's service is planned; its completion carries the time at
//! which the drive would have answered, and whoever paces waits until then. Whoever has no clock calls
//! [`EmulatedDrive::serve`]: then a request arrives when the one before was answered, and no other time passes.
//!
//! What is written to a host-managed drive stays in order of arrival, zone by zone: that is the rule its host keeps. On a
//! caveat disk all of it is one zone, and nothing is cached, since a write that waits would hide what it damages.
//!
//! Invariants:
//! 1. Every request that was submitted completes once, under one number ([`requests`]).
//! 2. A completed flush, a completed write with FUA, and on a drive without a volatile cache every completed write and
//!    TRIM, are durable by the promise of the medium's flush. So are pointers of zones, which are recorded with the write.
//! 3. What fails is answered with an error; it is never dropped. What the drive could not do by itself, such as writing
//!    back, stops it, and every later request but a read is told. So does a flush of the medium that fails (`halted`).
//! 4. What the volatile cache holds is in memory alone: [`EmulatedDrive::power_cut`] loses it.

mod carry;
mod faults;
mod halted;
mod making;
mod requests;
mod survey;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use imbrex_disk::{Command, Lba, Operation, Sectors, SimTime};
use imbrex_layer::Plan;
use imbrex_sim::queue::Ordered;
use imbrex_sim::{Drive, Engine, Inbox, Observer, Options, StepError, Stepped};
use imbrex_trace::{Request, When};

use self::carry::Bytes;
use self::halted::Halted;
pub use self::making::{Making, create_file, create_file_of, header_of};
pub use self::requests::{Completion, Io, IoKind};
use crate::activity::Activity;
use crate::bands::Bands;
use crate::error::DeviceError;
use crate::faults::check_zones;
use crate::faults::player::Player;
use crate::image::Header;
use crate::image::header::VERSION;
use crate::media::Media;
use crate::media::file::{FileMedium, Mode};
use crate::media::host_file::HostFile;
use crate::media::memory::Memory;
use crate::media::overlay::Overlay;
use crate::store::{Opened, Store};
use crate::zoned::ZoneCounters;

/// Idle time that never comes: over a hundred years.
const NEVER_NS: u64 = 1 << 62;
/// Space on the host's disk for requests that have begun when the disk becomes full: a queue of 32 MiB, and as much for the cleaning
/// that it causes.
const BEGUN_BYTES: u64 = 64 << 20;

/// The engine's observer: what is drawn of the drive, once someone wants to see it.
#[derive(Default)]
struct Watch {
    activity: Option<Activity>,
    bands: Option<Bands>,
}

impl Observer for Watch {
    fn wants_plans(&self) -> bool {
        self.activity.is_some()
    }

    fn plan(&mut self, now: SimTime, commands: &[Command], plan: &Plan) {
        if let Some(activity) = &mut self.activity {
            activity.see(plan, now);
        }
        if let Some(bands) = &mut self.bands {
            bands.see(commands, plan, now);
        }
    }
}

/// A drive with contents.
pub struct EmulatedDrive {
    engine: Engine<Inbox, Watch, Bytes>,
    last_arrival: SimTime,
    /// The time of a host without a clock: when the last request was answered, and what has passed since.
    clock: SimTime,
    pub(crate) zone_counters: ZoneCounters,
    submitted: u64,
    player: Player,
    /// What it reads from once it has stopped.
    halted: Halted,
    /// The host's file for which space is reserved.
    host_reserve: Option<Arc<HostFile>>,
}

impl EmulatedDrive {
    /// A new drive in memory.
    pub fn in_memory(header: Header) -> Result<EmulatedDrive, DeviceError> {
        let drive = header.drive()?;
        EmulatedDrive::in_memory_of(header, drive)
    }

    /// The same of `drive`, which is as new and as `header` says.
    pub fn in_memory_of(header: Header, drive: Drive) -> Result<EmulatedDrive, DeviceError> {
        let media: Box<dyn Media> = Box::new(Memory::new());
        Store::create_of(media, header, drive).map(EmulatedDrive::new)
    }

    /// The drive in the image file `path`; `syncs` says whether barriers outlive the host, or only this process.
    pub fn open_file(path: &Path, syncs: bool) -> Result<EmulatedDrive, DeviceError> {
        let media: Box<dyn Media> = Box::new(medium_to_work(path, syncs)?);
        let mut drive = EmulatedDrive::new(Store::open(media, &path.display().to_string())?);
        drive.reserve_host_space(drive.drive().host.write_cache_bytes);
        Ok(drive)
    }

    /// The drive in the image file `path`, to be read only: the file is not changed. What a killed process left half done is
    /// mended in memory; nothing is cleaned in idle time.
    pub fn open_file_to_look(path: &Path) -> Result<EmulatedDrive, DeviceError> {
        let media: Box<dyn Media> = Box::new(Overlay::new(FileMedium::open(path, Mode::Read, false)?));
        let (mut drive, store) = Store::open(media, &path.display().to_string())?;
        drive.host.idle_threshold_ns = NEVER_NS;
        Ok(EmulatedDrive::new((drive, store)))
    }

    /// An opened drive, put to work.
    pub fn new((mut drive, store): Opened<Box<dyn Media>>) -> EmulatedDrive {
        let ordered = ordered_writes(&drive);
        if drive.layer.is_host_managed() && drive.layer.zones().is_none() {
            drive.host.write_cache_bytes = 0;
        }
        let options = Options::live(&drive);
        let bytes = Bytes::new(store, drive.disk.sector_bytes, drive.host.write_cache_bytes == 0);
        let mut engine = Engine::with_carrier(drive, options, Inbox::default(), Watch::default(), bytes);
        if let Some(ordered) = ordered {
            engine.keep_order(ordered);
        }
        let mut drive = EmulatedDrive {
            engine,
            last_arrival: SimTime::ZERO,
            clock: SimTime::ZERO,
            zone_counters: ZoneCounters::default(),
            submitted: 0,
            player: Player::default(),
            halted: Halted::default(),
            host_reserve: None,
        };
        drive.take_slow_sectors();
        drive
    }

    /// Cuts the power: what is on its way, the volatile cache and all that is in memory are gone, and the medium is given
    /// back as it is. Opening it again finds what a drive would find.
    pub fn power_cut(self) -> Box<dyn Media> {
        self.engine.into_carrier().store.into_media()
    }

    /// The same for a cut in the midst of writing back: of what the volatile cache holds, the sectors that `survives` picks
    /// by their first byte have reached the medium; in zones those before the first that did not. What is on its way is
    /// completed first.
    pub fn power_cut_keeping(mut self, mut survives: impl FnMut(u64) -> bool) -> Result<Box<dyn Media>, DeviceError> {
        self.work_until(|drive| drive.outstanding() == 0);
        let (sector, in_order) = (u64::from(self.sector_bytes()), self.drive().layer.zones().is_some());
        for (offset, length) in self.dirty_ranges() {
            let mut is_lost = false;
            for lba in offset / sector..(offset + length) / sector {
                is_lost = (is_lost && in_order) || !survives(lba * sector);
                if is_lost {
                    self.discard(&(Lba(lba)..Lba(lba + 1)));
                }
            }
        }
        let all = Lba(0)..Lba(self.capacity_bytes() / sector);
        self.write_back(&all)?;
        Ok(self.power_cut())
    }

    /// The drive as the simulator has it.
    pub fn drive(&self) -> &Drive {
        self.engine.drive()
    }

    /// The engine's figures so far.
    pub fn metrics(&self) -> &imbrex_sim::metrics::run::RunMetrics {
        self.engine.metrics()
    }

    /// What the medium has done so far.
    pub fn timing(&self) -> &imbrex_sim::timing::Timing {
        self.engine.timing()
    }

    /// Gives it volatile caches of other sizes, 0 for off; nothing may be dirty. A caveat disk has no write cache.
    pub fn set_caches(&mut self, write_cache_bytes: u64, read_ahead_bytes: u64) {
        let layer = &self.engine.drive().layer;
        let is_caveat = layer.is_host_managed() && layer.zones().is_none();
        let write_cache_bytes = if is_caveat { 0 } else { write_cache_bytes };
        self.engine.set_caches(write_cache_bytes, read_ahead_bytes);
        self.engine.carrier_mut().is_written_through = write_cache_bytes == 0;
        if self.host_reserve.is_some() {
            self.reserve_host_space(write_cache_bytes);
        }
    }

    /// Reserves space on the host's disk for the requests that have begun, and the dirty sectors of the volatile cache, when the disk
    /// becomes full.
    fn reserve_host_space(&mut self, write_cache_bytes: u64) {
        self.host_reserve = self.host_file();
        if let Some(file) = &self.host_reserve {
            file.reserve_space(BEGUN_BYTES + write_cache_bytes);
        }
    }

    /// Returns an error while the host's disk is full.
    fn check_host_space(&self) -> Result<(), DeviceError> {
        let Some(file) = &self.host_reserve else { return Ok(()) };
        file.check_disk_space().map_err(|cause| DeviceError::medium("writing", cause))
    }

    /// Begins a new path of the head, of at most `samples_max` samples, which [`EmulatedDrive::timing`] then has.
    pub fn restart_head_log(&mut self, samples_max: usize) {
        self.engine.timing_mut().actuator_mut().restart_log(samples_max);
    }

    /// The store.
    pub fn store_mut(&mut self) -> &mut Store<Box<dyn Media>> {
        &mut self.engine.carrier_mut().store
    }

    /// The host's file in which its image lies, if it lies in one.
    pub fn host_file(&self) -> Option<Arc<HostFile>> {
        self.engine.carrier().store.space().media().host_file()
    }

    /// Begins to note what is done where, and in what state bands are.
    pub fn watch(&mut self) {
        let disk = self.engine.drive().disk.clone();
        let header = self.engine.carrier().store.header();
        let fresh = header.drive().expect("the header of a drive that was opened makes a drive");
        let mut bands = Bands::new(&fresh);
        bands.touch_all();
        *self.engine.observer_mut() = Watch { activity: Some(Activity::new(disk)), bands: Some(bands) };
    }

    /// In what state its bands are now, since [`EmulatedDrive::watch`].
    pub fn bands(&mut self) -> Option<&Bands> {
        let now = self.engine.now();
        let (drive, watch) = self.engine.drive_and_observer();
        let bands = watch.bands.as_mut()?;
        bands.refresh(drive.layer.as_ref(), now);
        Some(bands)
    }

    /// What was done where since [`EmulatedDrive::watch`].
    pub fn activity(&mut self) -> Option<&Activity> {
        self.engine.observer_mut().activity.as_ref()
    }

    /// Bytes it offers.
    pub fn capacity_bytes(&self) -> u64 {
        self.engine.drive().capacity_bytes()
    }

    /// Bytes of a sector.
    pub fn sector_bytes(&self) -> u32 {
        self.engine.drive().disk.sector_bytes
    }

    /// Sectors acknowledged and not yet written.
    pub fn dirty(&self) -> Sectors {
        self.engine.dirty()
    }

    /// What is acknowledged and not yet written: runs of bytes as offset and length, in order. A power cut loses these.
    pub fn dirty_ranges(&self) -> Vec<(u64, u64)> {
        let sector = u64::from(self.sector_bytes());
        let bytes = |range: &Command| (range.lba.0 * sector, u64::from(range.sectors) * sector);
        self.engine.dirty_ranges().iter().map(bytes).collect()
    }

    /// The time: of the drive at work, or of its host where that is later.
    pub fn now(&self) -> SimTime {
        self.engine.now().max(self.clock)
    }

    /// The time of a host without a clock: when its last request was answered, and what it has let pass since.
    pub fn host_time(&self) -> SimTime {
        self.clock
    }

    /// Lets time pass for a host without a clock: its next request arrives no sooner. What the drive does until then it
    /// does when it is next let work.
    pub fn pass_until(&mut self, time: SimTime) {
        self.clock = self.clock.max(time);
    }

    /// Requests submitted and not yet completed.
    pub fn outstanding(&self) -> usize {
        self.engine.carrier().requests.len()
    }

    /// Takes a request that arrives at `at`, or at the latest arrival so far if that was later. What cannot be served is
    /// refused at once, and nothing has happened: so is what breaks the rule of zones, where writes count in the order in
    /// which they are submitted. A TRIM of whole zones waits for what is on its way to them.
    pub fn submit(&mut self, at: SimTime, io: Io) -> Result<(), DeviceError> {
        if self.has_halted() && io.kind != IoKind::Read {
            return self.check_running();
        }
        self.check(&io)?;
        if matches!(io.kind, IoKind::Write { .. }) && !self.has_halted() {
            self.check_host_space()?;
        }
        self.last_arrival = self.last_arrival.max(at);
        if self.has_halted() {
            self.open_view()?;
            self.check_zones_work(&io)?;
            self.complete_halted(io);
            return Ok(());
        }
        if self.player.is_due(self.submitted, self.last_arrival) {
            self.play_due();
        }
        if self.has_halted() {
            return self.submit(at, io);
        }
        self.check_zones_work(&io)?;
        self.keep_rule_of_zones(&io)?;
        self.submitted += 1;
        let request = Request { when: When::At(self.last_arrival), device: 0, command: self.command_of(&io) };
        let number = self.engine.submit(request);
        self.engine.carrier_mut().requests.submit(number, io);
        Ok(())
    }

    /// The command of `io`. A layer records the pointer of a zone for writes with FUA and for flushes; without a volatile
    /// cache no flush need follow, so each write to a zone has FUA.
    fn command_of(&self, io: &Io) -> Command {
        let command = io.command();
        let is_forced = self.engine.carrier().is_written_through && self.drive().layer.zones().is_some();
        Command { fua: command.fua || is_forced && command.operation == Operation::Write, ..command }
    }

    /// Refuses what a zone that has failed cannot do any more.
    fn check_zones_work(&self, io: &Io) -> Result<(), DeviceError> {
        if io.kind == IoKind::Flush {
            return Ok(());
        }
        let sector = u64::from(self.sector_bytes());
        let (first, sectors) = (Lba(io.offset / sector), Sectors(io.length / sector));
        Ok(check_zones(self.drive(), first, sectors, io.kind == IoKind::Read)?)
    }

    pub(crate) fn player_mut(&mut self) -> &mut Player {
        &mut self.player
    }

    /// Requests submitted, and when the latest arrived.
    pub(crate) fn requests_and_arrival(&self) -> (u64, SimTime) {
        (self.submitted, self.last_arrival)
    }

    /// Lets the engine know which sectors are slow.
    pub(crate) fn take_slow_sectors(&mut self) {
        let slow = self.engine.carrier().store.faults().slow().clone();
        *self.engine.slow_mut() = slow;
    }

    /// Why it answers reads alone, if its medium has failed it.
    pub fn stopped(&self) -> Option<&str> {
        self.engine.carrier().store.stopped()
    }

    pub(crate) fn check_running(&self) -> Result<(), DeviceError> {
        match self.stopped() {
            Some(reason) => Err(DeviceError::Stopped(reason.into())),
            None => Ok(()),
        }
    }

    fn check(&self, io: &Io) -> Result<(), DeviceError> {
        if io.kind == IoKind::Flush {
            return Ok(());
        }
        let (capacity, sector) = (self.capacity_bytes(), self.sector_bytes() as u64);
        if io.offset.checked_add(io.length).is_none_or(|end| end > capacity) {
            return Err(DeviceError::PastEnd { offset: io.offset, length: io.length, capacity });
        }
        let refusal = if io.length == 0 {
            "a request of no bytes".to_string()
        } else if !io.offset.is_multiple_of(sector) || !io.length.is_multiple_of(sector) {
            format!("{} bytes at byte {}: not whole sectors of {sector} bytes", io.length, io.offset)
        } else if io.length / 512 > u64::from(u32::MAX) {
            format!("{} bytes are more than one command takes", io.length)
        } else if matches!(io.kind, IoKind::Write { .. }) && io.buffer.len() as u64 != io.length {
            format!("a write of {} bytes came with {}", io.length, io.buffer.len())
        } else {
            return Ok(());
        };
        Err(DeviceError::Refused(refusal))
    }

    /// Lets the drive work, beginning nothing after `until`. Says what it came to; completions wait in
    /// [`EmulatedDrive::completions`]. For a host without a clock the time until then has passed, unless it is the end of
    /// all time.
    pub fn advance(&mut self, until: SimTime) -> Stepped {
        if until != SimTime(u64::MAX) {
            self.pass_until(until);
        }
        loop {
            match self.step(until) {
                Stepped::Worked => {}
                other => return other,
            }
        }
    }

    /// Lets the drive do one thing, unless it would begin after `until`.
    pub fn step(&mut self, until: SimTime) -> Stepped {
        if self.has_halted() || self.outstanding() == 0 && self.check_host_space().is_err() {
            return Stepped::Idle;
        }
        let stepped = match self.engine.step(until) {
            Ok(stepped) => stepped,
            Err(StepError::Source(error)) => unreachable!("an inbox does not fail: {error}"),
            Err(StepError::Carrier(error)) => {
                self.engine.carrier_mut().stop(&error);
                Stepped::Worked
            }
        };
        match stepped {
            Stepped::Worked => self.checkpoint_if_due(),
            Stepped::Idle => assert_eq!(self.outstanding(), 0, "the drive rests with requests unanswered: invariant 1"),
            Stepped::NotBefore(_) => {}
        }
        if self.has_halted() { Stepped::Idle } else { stepped }
    }

    /// Lets the drive work until `is_done`, and no longer: time passes as far as that takes.
    fn work_until(&mut self, is_done: impl Fn(&EmulatedDrive) -> bool) {
        let mut until = self.last_arrival;
        while !is_done(self) {
            if let Stepped::NotBefore(time) = self.step(until) {
                until = until.max(time);
            }
        }
    }

    /// Lets everything that is on its way to `sectors` complete.
    pub(crate) fn settle(&mut self, sectors: &Range<Lba>) {
        let sector = u64::from(self.sector_bytes());
        let bytes = sectors.start.0 * sector..sectors.end.0 * sector;
        self.work_until(|drive| !drive.engine.carrier().requests.touch(&bytes));
    }

    /// Writes back what is dirty of `sectors`. If that fails the drive has stopped.
    pub(crate) fn write_back(&mut self, sectors: &Range<Lba>) -> Result<(), DeviceError> {
        if self.has_halted() {
            return self.check_running();
        }
        let at = self.clock.max(self.last_arrival);
        match self.engine.write_back(sectors, at) {
            Ok(()) => Ok(()),
            Err(StepError::Source(error)) => unreachable!("an inbox does not fail: {error}"),
            Err(StepError::Carrier(error)) => {
                self.engine.carrier_mut().stop(&error);
                Err(error)
            }
        }
    }

    /// Forgets what is dirty of `sectors`, which their host has given up.
    pub(crate) fn discard(&mut self, sectors: &Range<Lba>) {
        self.engine.discard(sectors);
    }

    /// The drive as the simulator has it, and the store, for what is done between plans.
    pub(crate) fn drive_and_store(&mut self) -> (&mut Drive, &mut Store<Box<dyn Media>>) {
        let (drive, bytes) = self.engine.drive_and_carrier();
        (drive, &mut bytes.store)
    }

    pub(crate) fn checkpoint_if_due(&mut self) {
        if self.engine.carrier().store.journal().wants_checkpoint() {
            let (drive, bytes) = self.engine.drive_and_carrier();
            if let Err(error) = bytes.store.checkpoint_if_due(drive.layer.as_ref()) {
                bytes.stop(&error);
            }
        }
    }

    /// What of these bytes is stored somewhere: runs in order, each with whether it is. The rest reads as zeros.
    pub fn allocation(&mut self, offset: u64, length: u64, runs: &mut Vec<(u64, bool)>) -> Result<(), DeviceError> {
        if self.has_halted() {
            // What is a hole the layer knows, which is ahead of the image.
            runs.push((length, true));
            return Ok(());
        }
        let sector = self.sector_bytes() as u64;
        let mut pieces = Vec::new();
        let first = Lba(offset / sector);
        let sectors = Sectors((offset + length).div_ceil(sector) - first.0);
        self.engine.drive().layer.lookup(first, sectors, &mut pieces);
        let is_dirty = !self.engine.dirty().is_zero();
        let store = &mut self.engine.carrier_mut().store;
        // What cannot be read is no hole: whoever copies the drive has to meet the error.
        let is_unreadable = store.check_readable(first, sectors, |_, _| false).is_err();
        let mut push = |bytes: u64, is_stored: bool| match runs.last_mut() {
            Some((last, same)) if *same == is_stored => *last += bytes,
            _ => runs.push((bytes, is_stored)),
        };
        for piece in pieces {
            let bytes = piece.sectors.0 * sector;
            match piece.at {
                // What the volatile cache holds may be anywhere: then nothing is called a hole.
                _ if is_dirty || is_unreadable => push(bytes, true),
                None => push(bytes, false),
                Some((medium, pba)) => store.for_each_stored(medium, pba, piece.sectors, &mut push)?,
            }
        }
        Ok(())
    }

    /// Takes the requests completed so far, in the order in which the drive finished them.
    pub fn completions(&mut self) -> std::vec::Drain<'_, Completion> {
        self.engine.carrier_mut().completions.drain(..)
    }

    /// Serves one request for a host without a clock: it arrives when the one before was answered, or when the host has let
    /// time [pass](EmulatedDrive::pass_until), and no more time passes than its answer takes.
    pub fn serve(&mut self, io: Io) -> Result<Completion, DeviceError> {
        assert_eq!(self.outstanding(), 0, "other requests are on their way");
        self.submit(self.clock, io)?;
        self.work_until(|drive| drive.outstanding() == 0);
        let completion = self.engine.carrier_mut().completions.pop().expect("it is the last to complete");
        self.pass_until(completion.end);
        Ok(completion)
    }

    /// Reads, at once.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let io = Io { tag: 0, kind: IoKind::Read, offset, length: into.len() as u64, buffer: Vec::new() };
        let completion = self.serve(io)?;
        completion.outcome?;
        into.copy_from_slice(&completion.buffer);
        Ok(())
    }

    /// Writes, at once.
    pub fn write(&mut self, offset: u64, from: &[u8], fua: bool) -> Result<(), DeviceError> {
        let kind = IoKind::Write { fua };
        let io = Io { tag: 0, kind, offset, length: from.len() as u64, buffer: from.to_vec() };
        self.serve(io)?.outcome
    }

    /// Flushes, at once.
    pub fn flush(&mut self) -> Result<(), DeviceError> {
        self.serve(Io { tag: 0, kind: IoKind::Flush, offset: 0, length: 0, buffer: Vec::new() })?.outcome
    }

    /// Trims, at once.
    pub fn trim(&mut self, offset: u64, length: u64) -> Result<(), DeviceError> {
        self.serve(Io { tag: 0, kind: IoKind::Trim, offset, length, buffer: Vec::new() })?.outcome
    }

    /// Switches the drive off in good order: what is on its way is completed, the volatile cache is written back and made
    /// durable. What it would clean in idle time stays as it is.
    pub fn shut_down(&mut self) -> Result<(), DeviceError> {
        while self.outstanding() > 0 {
            self.step(SimTime(u64::MAX));
        }
        self.completions();
        self.flush()?;
        self.store_mut().seal()
    }
}

/// Opens the image file `path` to work on it. An image of an older version is refused.
pub fn medium_to_work(path: &Path, syncs: bool) -> Result<FileMedium, DeviceError> {
    let mut medium = FileMedium::open(path, Mode::Write, syncs)?;
    let place = path.display().to_string();
    refuse_older(&Header::read(&mut medium, &place)?, &place)?;
    Ok(medium)
}

/// Refuses to work on an image of an older version: it is read as it is, or converted.
pub(crate) fn refuse_older(header: &Header, place: &str) -> Result<(), DeviceError> {
    if header.version == VERSION {
        return Ok(());
    }
    let version = header.version;
    Err(DeviceError::image(
        place,
        format!(
            "is an image of version {version}, which is only read: `imbrex drive upgrade {place}` converts it to version \
             {VERSION}, `--read-only` serves it as it is"
        ),
    ))
}

/// Where the order of writes is the host's business: in the zones of a drive that has pointers, all over a caveat disk.
fn ordered_writes(drive: &Drive) -> Option<Ordered> {
    match drive.layer.zones() {
        Some(zones) => {
            let run = zones.zone_sectors();
            Some(Ordered { from: Lba(u64::from(zones.conventional()) * run.0), run })
        }
        None if drive.layer.is_host_managed() => Some(Ordered { from: Lba(0), run: drive.layer.capacity() }),
        None => None,
    }
}
