//! An emulated drive: the simulator's engine with a store. One plan determines both the time that a request takes and
//! its effect on the stored bytes.
//!
//! ```text
//!   submit ─► zones' rule ─► inbox ─► Engine ── what moves ──► Bytes: requests, volatile bytes, store ─► completions
//!                                       └────── plans ───────► Watch: what is drawn
//! ```
//!
//! The caller owns the clock: requests carry their simulated time of arrival, and [`EmulatedDrive::advance`] begins
//! nothing after the time that the caller gives. The bytes move when the service of a command is planned. Its
//! completion carries the simulated time of the answer, and a caller that paces waits until then. A caller without a
//! clock uses [`EmulatedDrive::serve`]: a request arrives when the previous one was answered, and no other time
//! passes.
//!
//! Writes to a host-managed drive keep their order of arrival within each zone, as the zone rules require. Writes to a
//! caveat disk take effect in their order of arrival: the sectors that a write destroys are durably marked when the drive
//! accepts it, also if its data waits in the write cache. A power cut loses that data and keeps the marks.
//!
//! Invariants:
//! 1. Every submitted request completes once, under one number ([`requests`]).
//! 2. The following are durable, as far as the medium's flush ensures it: a completed flush, a completed write with
//!    FUA, and on a drive without a volatile cache every completed write and TRIM. This includes zone pointers, which
//!    are recorded with the write.
//! 3. Every failure is answered with an error and never dropped. If the drive's own work fails, such as write-back,
//!    the drive stops, and every later request except a read fails. A failed flush of the medium also stops the drive
//!    (`halted`).
//! 4. The contents of the volatile cache exist only in memory: [`EmulatedDrive::power_cut`] loses them.

mod carry;
mod faults;
mod halted;
mod making;
mod requests;
mod survey;

use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use imbrex_disk::{Command, Lba, Operation, Sectors, SimTime};
use imbrex_layer::{Plan, Zones};
use imbrex_sim::events::{EventOptions, EventRecorder};
use imbrex_sim::explain::{Chosen, ExplainOptions, Explainer, Explanation};
use imbrex_sim::queue::Ordered;
use imbrex_sim::{Drive, Engine, Inbox, IoRecord, Observer, Options, StepError, Stepped};
use imbrex_trace::{Request, When};

use self::carry::StoreCarrier;
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
use crate::zoned::counters::ZoneCounters;

/// An idle threshold that is never reached: more than a hundred years, in nanoseconds.
const NEVER_NS: u64 = 1 << 62;
/// Bytes reserved on the host's disk for requests that are in progress when the disk becomes full: half for a queue
/// of 32 MiB, half for the cleaning that these requests cause.
const BEGUN_BYTES: u64 = 64 << 20;

/// The engine's observer: records the activity and the band states to be drawn, events, and the causes of latencies, each
/// once the caller has asked for it.
#[derive(Default)]
struct Watch {
    activity: Option<Activity>,
    bands: Option<Bands>,
    events: Option<Events>,
    explainer: Option<Box<Explainer>>,
}

/// The trace of events of a drive.
struct Events {
    recorder: EventRecorder<Box<dyn Write + Send>>,
    /// Number of operations and requests that were left out so far, for the caller, who has no drive at the end.
    left_out: Arc<AtomicU64>,
}

impl Events {
    fn note_left_out(&self) {
        self.left_out.store(self.recorder.left_out(), Ordering::Relaxed);
    }
}

impl Observer for Watch {
    fn wants_ios(&self) -> bool {
        self.wants_operations()
    }

    fn io(&mut self, record: &IoRecord) {
        if let Some(events) = &mut self.events {
            events.recorder.completed(record);
            events.note_left_out();
        }
        if let Some(explainer) = &mut self.explainer {
            explainer.io(record);
        }
    }

    fn wants_operations(&self) -> bool {
        self.events.is_some() || self.explainer.is_some()
    }

    fn entered(&mut self, sequence: u64, device: u32, command: &Command) {
        if let Some(explainer) = &mut self.explainer {
            explainer.entered(sequence, device, command);
        }
    }

    fn operation(&mut self, operation: &imbrex_sim::operation::Operation<'_>) {
        if let Some(events) = &mut self.events {
            events.recorder.operation(operation);
            events.note_left_out();
        }
        if let Some(explainer) = &mut self.explainer {
            explainer.operation(operation);
        }
    }

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

/// An emulated drive that stores data: the simulator determines the time of each request, and a [`Store`] holds the
/// bytes.
pub struct EmulatedDrive {
    engine: Engine<Inbox, Watch, StoreCarrier>,
    last_arrival: SimTime,
    /// Time of a host without a clock: the time of the last answer, or a later time set by
    /// [`EmulatedDrive::pass_until`].
    clock: SimTime,
    pub(crate) zone_counters: ZoneCounters,
    player: Player,
    /// Source of reads once the drive has stopped.
    halted: Halted,
    /// File of the host for which space is reserved.
    host_reserve: Option<Arc<HostFile>>,
}

impl EmulatedDrive {
    /// Returns a new drive, described by `header`, whose image is in memory.
    ///
    /// # Errors
    /// The header does not describe a valid drive, or does not fit into its place in the image.
    pub fn in_memory(header: Header) -> Result<EmulatedDrive, DeviceError> {
        let drive = header.drive()?;
        EmulatedDrive::in_memory_of(header, drive)
    }

    /// Returns a new drive whose image is in memory. `drive` was built from `header` and is in its initial state, so it
    /// is not built again.
    ///
    /// # Errors
    /// The header does not fit into its place in the image.
    ///
    /// # Panics
    /// If `drive` has another number of physical sectors than `header` says.
    pub fn in_memory_of(header: Header, drive: Drive) -> Result<EmulatedDrive, DeviceError> {
        let media: Box<dyn Media> = Box::new(Memory::new());
        Store::create_of(media, header, drive).map(EmulatedDrive::new)
    }

    /// Opens the drive in the image file `path` for reading and writing. If `syncs` is true, durable data survives a
    /// crash of the host, else only the end of this process. Also reserves space on the host's disk for requests in
    /// progress when the disk becomes full.
    ///
    /// # Errors
    /// The file is missing, in use, not an image, of an older version or damaged.
    pub fn open_file(path: &Path, syncs: bool) -> Result<EmulatedDrive, DeviceError> {
        let media: Box<dyn Media> = Box::new(medium_to_work(path, syncs)?);
        let mut drive = EmulatedDrive::new(Store::open(media, &path.display().to_string())?);
        drive.reserve_host_space(drive.drive().host.write_cache_bytes);
        Ok(drive)
    }

    /// Opens the drive in the image file `path` without ever changing the file: all writes, also those of the recovery
    /// after a killed process, stay in memory. The drive does no cleaning in idle time.
    ///
    /// # Errors
    /// The file is missing, open for writing elsewhere, not an image or damaged.
    pub fn open_file_to_look(path: &Path) -> Result<EmulatedDrive, DeviceError> {
        let media: Box<dyn Media> = Box::new(Overlay::new(FileMedium::open(path, Mode::Read, false)?));
        let (mut drive, store) = Store::open(media, &path.display().to_string())?;
        drive.host.idle_threshold_ns = NEVER_NS;
        Ok(EmulatedDrive::new((drive, store)))
    }

    /// Opens a view of the drive in the image file `path`. The drive works like that of [`EmulatedDrive::open_file`],
    /// but the file is never changed: all writes stay in memory, and are lost when the drive is dropped.
    ///
    /// # Errors
    /// The file is missing, open for writing elsewhere, not an image, of an older version or damaged.
    pub fn open_file_view(path: &Path) -> Result<EmulatedDrive, DeviceError> {
        let (mut medium, place) = (FileMedium::open(path, Mode::Read, false)?, path.display().to_string());
        refuse_older(&Header::read(&mut medium, &place)?, &place)?;
        let media: Box<dyn Media> = Box::new(Overlay::new(medium));
        Store::open(media, &place).map(EmulatedDrive::new)
    }

    /// Returns the emulated drive of an opened image, with simulated time zero and without scheduled faults.
    pub fn new((drive, store): Opened<Box<dyn Media>>) -> EmulatedDrive {
        let ordered = drive.layer.zones().map(ordered_writes);
        let options = Options::live(&drive);
        let bytes = StoreCarrier::new(store, &drive);
        let mut engine = Engine::with_carrier(drive, options, Inbox::default(), Watch::default(), bytes);
        if let Some(ordered) = ordered {
            engine.keep_order(ordered);
        }
        let mut drive = EmulatedDrive {
            engine,
            last_arrival: SimTime::ZERO,
            clock: SimTime::ZERO,
            zone_counters: ZoneCounters::default(),
            player: Player::default(),
            halted: Halted::default(),
            host_reserve: None,
        };
        drive.take_slow_sectors();
        drive
    }

    /// Cuts the power, and returns the medium as it is at this moment. Requests in flight, the volatile cache and
    /// everything else in memory are lost.
    pub fn power_cut(self) -> Box<dyn Media> {
        self.engine.into_carrier().store.into_media()
    }

    /// Completes the requests in flight, writes back a part of the volatile write cache, then cuts the power and
    /// returns the medium. For each dirty sector, `survives` receives the byte offset of the sector on the drive and
    /// returns whether the sector is written back. On a drive with zones, all sectors of a dirty range after its first
    /// lost sector are lost, too.
    ///
    /// # Errors
    /// The write-back fails, or the drive has stopped.
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

    /// Returns the simulator's drive: its disk, translation layer and parameters.
    pub fn drive(&self) -> &Drive {
        self.engine.drive()
    }

    /// Returns the simulator's measurements of the requests since the drive was opened.
    pub fn metrics(&self) -> &imbrex_sim::metrics::run::RunMetrics {
        self.engine.metrics()
    }

    /// Returns the simulator's timing model, with counts and times of the operations on the platters and the flash
    /// since the drive was opened.
    pub fn timing(&self) -> &imbrex_sim::timing::Timing {
        self.engine.timing()
    }

    /// Replaces the volatile write cache and the read-ahead cache by empty caches of these sizes in bytes; 0 turns a
    /// cache off.
    ///
    /// # Panics
    /// If the write cache holds dirty sectors.
    pub fn set_caches(&mut self, write_cache_bytes: u64, read_ahead_bytes: u64) {
        self.engine.set_caches(write_cache_bytes, read_ahead_bytes);
        self.engine.carrier_mut().is_written_through = write_cache_bytes == 0;
        if self.host_reserve.is_some() {
            self.reserve_host_space(write_cache_bytes);
        }
    }

    /// Reserves space on the host's disk for the requests in progress, and for the dirty sectors of the volatile
    /// cache, in case the disk becomes full.
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

    /// Starts a new log of head positions, which [`EmulatedDrive::timing`] provides. The log holds at most
    /// `samples_max` samples (at least 2), and is thinned when it is full. From the second call on, the limit of the
    /// first call stays.
    pub fn restart_head_log(&mut self, samples_max: usize) {
        self.engine.timing_mut().actuator_mut().restart_log(samples_max);
    }

    /// Returns the store that holds the contents of the drive.
    pub fn store_mut(&mut self) -> &mut Store<Box<dyn Media>> {
        &mut self.engine.carrier_mut().store
    }

    /// Returns the file of the host that contains the image, or `None` if the image is not in a file.
    pub fn host_file(&self) -> Option<Arc<HostFile>> {
        self.engine.carrier().store.space().media().host_file()
    }

    /// Writes the drive's operations and answered requests as a trace of events to `writer` from now on. The trace ends
    /// when the drive is dropped. Returns the number of operations and requests that are left out because the trace has
    /// reached its largest size, which grows until then.
    ///
    /// # Panics
    ///
    /// If a request was submitted before.
    pub fn record_events(&mut self, options: EventOptions, writer: Box<dyn Write + Send>) -> Arc<AtomicU64> {
        assert_eq!(self.requests_and_arrival().0, 0, "events are recorded from the first request on");
        let recorder = EventRecorder::new(self.engine.drive().layer.as_ref(), options, writer);
        self.engine.timing_mut().keep_segments();
        let left_out = Arc::<AtomicU64>::default();
        self.engine.observer_mut().events = Some(Events { recorder, left_out: left_out.clone() });
        left_out
    }

    /// Finds the causes of the latencies of `worst` requests, and of all requests together, from now on.
    ///
    /// # Panics
    ///
    /// If a request was submitted before.
    pub fn explain(&mut self, worst: usize) {
        assert_eq!(self.requests_and_arrival().0, 0, "causes are found from the first request on");
        let chosen = Chosen::Worst(worst);
        let options = ExplainOptions { chosen, addressed: None, check: false, warmup_requests: 0 };
        let explainer = Explainer::new(self.engine.drive().layer.as_ref(), options);
        self.engine.timing_mut().keep_segments();
        self.engine.observer_mut().explainer = Some(Box::new(explainer));
    }

    /// Explains only requests that are submitted from now on. Without a call of [`EmulatedDrive::explain`], does nothing.
    pub fn explain_from_now(&mut self) {
        let (requests, _) = self.requests_and_arrival();
        if let Some(explainer) = &mut self.engine.observer_mut().explainer {
            explainer.count_from(requests);
        }
    }

    /// Ends the search for causes, and returns the causes found; `None` without a call of [`EmulatedDrive::explain`].
    pub fn take_explanation(&mut self) -> Option<Explanation> {
        self.engine.observer_mut().explainer.take().map(|explainer| explainer.finish())
    }

    /// Starts recording, for display, the latest activity in each part of the platters, and the states of bands. A
    /// later call starts both anew.
    pub fn watch(&mut self) {
        let disk = self.engine.drive().disk.clone();
        let header = self.engine.carrier().store.header();
        let fresh = header.drive().expect("the header of a drive that was opened makes a drive");
        let mut bands = Bands::new(&fresh);
        bands.touch_all();
        let watch = self.engine.observer_mut();
        (watch.activity, watch.bands) = (Some(Activity::new(disk)), Some(bands));
    }

    /// Updates and returns the states of the bands, or returns `None` before the first call of
    /// [`EmulatedDrive::watch`].
    pub fn bands(&mut self) -> Option<&Bands> {
        let now = self.engine.now();
        let (drive, watch) = self.engine.drive_and_observer();
        let bands = watch.bands.as_mut()?;
        bands.refresh(drive.layer.as_ref(), now);
        Some(bands)
    }

    /// Returns the activity since the latest call of [`EmulatedDrive::watch`], or `None` before the first one.
    pub fn activity(&mut self) -> Option<&Activity> {
        self.engine.observer_mut().activity.as_ref()
    }

    /// Returns the capacity of the drive, as the host sees it, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.engine.drive().capacity_bytes()
    }

    /// Returns the size of a sector of the drive in bytes.
    pub fn sector_bytes(&self) -> u32 {
        self.engine.drive().disk.sector_bytes
    }

    /// Returns the number of dirty sectors in the volatile write cache: acknowledged to the host and not yet written to
    /// the medium.
    pub fn dirty(&self) -> Sectors {
        self.engine.dirty()
    }

    /// Returns the dirty ranges of the volatile write cache in ascending order, as (offset, length) in bytes. A power
    /// cut loses these.
    pub fn dirty_ranges(&self) -> Vec<(u64, u64)> {
        let sector = u64::from(self.sector_bytes());
        let bytes = |range: &Command| (range.lba.0 * sector, u64::from(range.sectors) * sector);
        self.engine.dirty_ranges().iter().map(bytes).collect()
    }

    /// Returns the simulated time: the later of the drive's own time and [`EmulatedDrive::host_time`].
    pub fn now(&self) -> SimTime {
        self.engine.now().max(self.clock)
    }

    /// Returns the simulated time of a host without a clock of its own: the time of the answer of the latest
    /// [`EmulatedDrive::serve`], or a later time set by [`EmulatedDrive::pass_until`] or [`EmulatedDrive::advance`].
    pub fn host_time(&self) -> SimTime {
        self.clock
    }

    /// Advances [`EmulatedDrive::host_time`] to `time`, unless it is later already. The next [`EmulatedDrive::serve`]
    /// arrives no earlier. The drive does its work for the passed period only at its next step.
    pub fn pass_until(&mut self, time: SimTime) {
        self.clock = self.clock.max(time);
    }

    /// Returns the number of requests that were submitted and have no completion yet.
    pub fn outstanding(&self) -> usize {
        self.engine.carrier().requests.len()
    }

    /// Submits a request that arrives at simulated time `at`, or at the latest arrival so far if that is later. Returns
    /// the number of the request, which its [`Completion`] carries. The request is served by later calls of
    /// [`EmulatedDrive::advance`] or [`EmulatedDrive::step`]. A TRIM of whole zones waits for the requests in flight to
    /// these zones. A stopped drive answers reads at once.
    ///
    /// # Errors
    /// The request is invalid or violates the rules of a zone. A write fails also while the host's disk is full, and
    /// anything but a read fails on a stopped drive. A request with an error has no effect, no number and no
    /// completion.
    pub fn submit(&mut self, at: SimTime, io: Io) -> Result<u64, DeviceError> {
        if self.has_halted() && io.kind != IoKind::Read {
            self.check_running()?;
        }
        self.check(&io)?;
        if matches!(io.kind, IoKind::Write { .. }) && !self.has_halted() {
            self.check_host_space()?;
        }
        self.last_arrival = self.last_arrival.max(at);
        if self.has_halted() {
            self.open_view()?;
            self.check_zones_work(&io)?;
            let number = self.engine.carrier_mut().requests.take_number();
            self.complete_halted(number, io);
            return Ok(number);
        }
        let (requests, now) = self.requests_and_arrival();
        if self.player.is_due(requests, now) {
            self.play_due();
        }
        if self.has_halted() {
            return self.submit(at, io);
        }
        self.check_zones_work(&io)?;
        self.keep_rule_of_zones(&io)?;
        let request = Request { when: When::At(self.last_arrival), device: 0, command: self.command_of(&io) };
        let number = self.engine.submit(request);
        self.engine.carrier_mut().requests.submit(number, io);
        Ok(number)
    }

    /// Returns the command for `io`. A layer records the pointer of a zone with a write with FUA and with a flush.
    /// Without a volatile cache the host need not flush, so every write to a zone has FUA.
    fn command_of(&self, io: &Io) -> Command {
        let command = io.command();
        let is_forced = self.engine.carrier().is_written_through && self.drive().layer.zones().is_some();
        Command { fua: command.fua || is_forced && command.operation == Operation::Write, ..command }
    }

    /// Returns an error if a failed zone makes `io` impossible.
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

    /// Returns the number of requests submitted and the time of the latest arrival.
    pub(crate) fn requests_and_arrival(&self) -> (u64, SimTime) {
        (self.engine.carrier().requests.next_number(), self.last_arrival)
    }

    /// Passes the slow sectors to the engine.
    pub(crate) fn take_slow_sectors(&mut self) {
        let slow = self.engine.carrier().store.faults().slow().clone();
        *self.engine.slow_mut() = slow;
    }

    /// Returns the reason for which the drive has stopped, or `None` while it works. A stopped drive answers only
    /// reads.
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

    /// Lets the drive work until it has nothing to do that begins at or before simulated time `until`. Returns
    /// [`Stepped::NotBefore`] with the time of the next work, or [`Stepped::Idle`] if no work is left or the drive has
    /// stopped. [`EmulatedDrive::completions`] then returns the completed requests. Also advances
    /// [`EmulatedDrive::host_time`] to `until`, unless that is `SimTime(u64::MAX)`.
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

    /// Lets the drive do one step of work. Returns [`Stepped::Worked`] after a step, and [`Stepped::NotBefore`] with
    /// the time of the next step if that lies after simulated time `until`. Returns [`Stepped::Idle`] if there is no
    /// work, the drive has stopped, or the host's disk is full and no request is in flight.
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

    /// Lets the drive work until `is_done` returns true. Simulated time passes as needed.
    fn work_until(&mut self, is_done: impl Fn(&EmulatedDrive) -> bool) {
        let mut until = self.last_arrival;
        while !is_done(self) {
            if let Stepped::NotBefore(time) = self.step(until) {
                until = until.max(time);
            }
        }
    }

    /// Lets the drive work until no request to `sectors` is in flight.
    pub(crate) fn settle(&mut self, sectors: &Range<Lba>) {
        let sector = u64::from(self.sector_bytes());
        let bytes = sectors.start.0 * sector..sectors.end.0 * sector;
        self.work_until(|drive| !drive.engine.carrier().requests.touch(&bytes));
    }

    /// Writes back the dirty sectors among `sectors`.
    ///
    /// # Errors
    ///
    /// A failure stops the drive.
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

    /// Drops the dirty data of `sectors`, which the host no longer needs.
    pub(crate) fn discard(&mut self, sectors: &Range<Lba>) {
        self.engine.discard(sectors);
    }

    /// Returns the simulator's drive and the store, for use between plans.
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

    /// Appends to `runs` the runs of these bytes that are stored and not stored, in order, as (length in bytes, whether
    /// stored). Adjacent runs of one value are joined. Bytes that are not stored read as zeros. `offset` and the end
    /// are rounded outward to whole sectors. While the range has unreadable sectors, or the write cache is dirty or the
    /// drive has stopped, all bytes count as stored.
    ///
    /// # Errors
    /// The tables of the image cannot be read.
    pub fn allocation(&mut self, offset: u64, length: u64, runs: &mut Vec<(u64, bool)>) -> Result<(), DeviceError> {
        if self.has_halted() {
            // The layer knows the holes, but it is ahead of the image, so no hole is reported.
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
        // Unreadable sectors are not holes: a program that copies the drive must get the error.
        let is_unreadable = store.check_readable(first, sectors, |_, _| false).is_err();
        let mut push = |bytes: u64, is_stored: bool| match runs.last_mut() {
            Some((last, same)) if *same == is_stored => *last += bytes,
            _ => runs.push((bytes, is_stored)),
        };
        for piece in pieces {
            let bytes = piece.sectors.0 * sector;
            match piece.at {
                // Dirty sectors of the cache may be among these bytes, so no hole is reported while there are any.
                _ if is_dirty || is_unreadable => push(bytes, true),
                None => push(bytes, false),
                Some((medium, pba)) => store.for_each_stored(medium, pba, piece.sectors, &mut push)?,
            }
        }
        Ok(())
    }

    /// Removes and returns the completed requests, in the order in which they were completed.
    pub fn completions(&mut self) -> std::vec::Drain<'_, Completion> {
        self.engine.carrier_mut().completions.drain(..)
    }

    /// Serves one request to its end, for a host without a clock, and returns its completion. The request arrives at
    /// [`EmulatedDrive::host_time`], which then advances to the time of the answer.
    ///
    /// # Errors
    /// The request is invalid or breaks a rule of a zone; for a write, the host's disk is full; for all but reads, the
    /// drive has stopped. A request that fails later returns `Ok`, with the error in [`Completion::outcome`].
    ///
    /// # Panics
    /// If other requests are in flight.
    pub fn serve(&mut self, io: Io) -> Result<Completion, DeviceError> {
        assert_eq!(self.outstanding(), 0, "other requests are on their way");
        let number = self.submit(self.clock, io)?;
        self.work_until(|drive| drive.outstanding() == 0);
        let completion = self.engine.carrier_mut().completions.pop().expect("it is the last to complete");
        assert_eq!(completion.number, number, "another request was the last to complete: invariant 1");
        self.pass_until(completion.end);
        Ok(completion)
    }

    /// Fills `into` with the bytes from byte `offset` on, and waits for the answer.
    ///
    /// # Errors
    /// [`DeviceError::PastEnd`] if the bytes reach past the end of the drive, [`DeviceError::Refused`] if they are not
    /// one or more whole sectors, or the error of the drive.
    ///
    /// # Panics
    /// If other requests are in flight.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let io = Io { kind: IoKind::Read, offset, length: into.len() as u64, buffer: Vec::new() };
        let completion = self.serve(io)?;
        completion.outcome?;
        into.copy_from_slice(&completion.buffer);
        Ok(())
    }

    /// Writes the bytes `from` at byte `offset` and waits for the answer. With `fua` (force unit access), the data is
    /// durable on return.
    ///
    /// # Errors
    /// [`DeviceError::PastEnd`] if the bytes reach past the end of the drive; [`DeviceError::Refused`] if they are not
    /// one or more whole sectors. Otherwise the write breaks a rule of a zone, the host's disk is full, or the drive
    /// fails.
    ///
    /// # Panics
    /// If other requests are in flight.
    pub fn write(&mut self, offset: u64, from: &[u8], fua: bool) -> Result<(), DeviceError> {
        let kind = IoKind::Write { fua };
        let io = Io { kind, offset, length: from.len() as u64, buffer: from.to_vec() };
        self.serve(io)?.outcome
    }

    /// Makes all acknowledged writes durable: sends a flush to the drive and waits for the answer.
    ///
    /// # Errors
    /// The drive fails or has stopped.
    ///
    /// # Panics
    /// If other requests are in flight.
    pub fn flush(&mut self) -> Result<(), DeviceError> {
        self.serve(Io { kind: IoKind::Flush, offset: 0, length: 0, buffer: Vec::new() })?.outcome
    }

    /// Trims `length` bytes from byte `offset` on and waits for the answer. On a drive with zones, this empties the
    /// zones that the bytes cover completely, and ignores the rest, including conventional zones.
    ///
    /// # Errors
    /// [`DeviceError::PastEnd`] if the bytes reach past the end of the drive, [`DeviceError::Refused`] if they are not
    /// one or more whole sectors, [`DeviceError::Zone`] if they touch a read-only or offline zone, or the error of the
    /// drive.
    ///
    /// # Panics
    /// If other requests are in flight.
    pub fn trim(&mut self, offset: u64, length: u64) -> Result<(), DeviceError> {
        self.serve(Io { kind: IoKind::Trim, offset, length, buffer: Vec::new() })?.outcome
    }

    /// Shuts the drive down: completes the requests in flight and discards their completions, writes the volatile cache
    /// back, makes everything durable, and marks the image as closed cleanly. Cleaning in idle time that is still to do
    /// stays undone.
    ///
    /// # Errors
    /// The drive fails or has stopped.
    pub fn shut_down(&mut self) -> Result<(), DeviceError> {
        while self.outstanding() > 0 {
            self.step(SimTime(u64::MAX));
        }
        self.completions();
        self.flush()?;
        self.store_mut().seal()
    }
}

/// Opens and locks the image file `path` for reading and writing, and checks its header. If `syncs` is true, a flush
/// writes to the host's disk. Otherwise flushed data survives the end of this process, but not a crash of the host.
///
/// # Errors
/// The file cannot be opened, is in use, is not an image, or is an image of an older version.
pub fn medium_to_work(path: &Path, syncs: bool) -> Result<FileMedium, DeviceError> {
    let mut medium = FileMedium::open(path, Mode::Write, syncs)?;
    let place = path.display().to_string();
    refuse_older(&Header::read(&mut medium, &place)?, &place)?;
    Ok(medium)
}

/// Returns an error if the image is of an older version; such an image can only be read or converted.
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

/// Returns the sectors whose writes must keep their order on a zoned drive: the sequential zones.
fn ordered_writes(zones: &Zones) -> Ordered {
    let run = zones.zone_sectors();
    Ordered { from: Lba(u64::from(zones.conventional()) * run.0), run }
}
