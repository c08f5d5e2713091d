//! An emulated drive: the simulator's engine over a store. What a request costs in time and what it does to the bytes
//! follow from one plan.
//!
//! ```text
//!   submit ─► inbox ─► Engine ── moved ──► Mover: volatile bytes, store
//!                        └───── io ──────► completions
//! ```
//!
//! The caller owns the clock: requests carry the simulated time at which they arrive, and [`EmulatedDrive::advance`] goes
//! no further than it is told. The bytes move when a command's service is planned; its completion carries the time at
//! which the drive would have answered, and whoever paces waits until then.
//!
//! Invariants:
//! 1. Every request that was submitted completes once.
//! 2. A completed flush, and a completed write with FUA, are durable by the promise of the medium's flush.
//! 3. What fails is answered with an error; it is never dropped.

use std::collections::BTreeMap;
use std::path::Path;

use imbrex_disk::{Command, Extent, Lba, Sectors, SimTime};
use imbrex_layer::{Medium, Plan};
use imbrex_sim::queue::Waiting;
use imbrex_sim::{Drive, DriveSpec, Engine, Inbox, IoRecord, Moved, Observer, Options, Stepped};
use imbrex_trace::{Request, When};
use uuid::Uuid;

use crate::activity::Activity;
use crate::bands::Bands;
use crate::error::DeviceError;
use crate::image::Header;
use crate::media::file::{FileMedium, Mode};
use crate::media::memory::Memory;
use crate::media::Media;
use crate::store::{Data, Opened, Store, Transfer};
use crate::volatile::Volatile;

/// Bytes of a chunk of a new image.
const CHUNK_BYTES: u64 = 1 << 20;
/// Room for each journal of a new image; it takes no space until it is written.
const JOURNAL_BYTES: u64 = 64 << 30;

/// Buffers kept to be used again: new ones cost more than what is copied into them.
const SPARE_BUFFERS_MAX: usize = 64;

/// Idle time that never comes: over a hundred years.
const NEVER_NS: u64 = 1 << 62;

/// What the host wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoKind {
    /// Bytes.
    Read,
    /// To store bytes; with `fua` they are durable when it completes.
    Write {
        /// Force unit access.
        fua: bool,
    },
    /// What was acknowledged is to be durable.
    Flush,
    /// The bytes are no longer needed.
    Trim,
}

/// A request to the drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Io {
    /// Whatever the caller knows it by.
    pub tag: u64,
    /// What is wanted.
    pub kind: IoKind,
    /// First byte; a multiple of the sector size.
    pub offset: u64,
    /// How many bytes; a multiple of the sector size.
    pub length: u64,
    /// What to write; for a read a buffer to fill, of any length, to spare an allocation.
    pub buffer: Vec<u8>,
}

/// An answered request.
#[derive(Debug)]
pub struct Completion {
    /// As submitted.
    pub tag: u64,
    /// As submitted.
    pub kind: IoKind,
    /// As submitted.
    pub length: u64,
    /// When it arrived.
    pub entry: SimTime,
    /// When the drive answers.
    pub end: SimTime,
    /// What was read; for the others the buffer they came with, or another, to be used again.
    pub buffer: Vec<u8>,
    /// Whether it went well.
    pub outcome: Result<(), DeviceError>,
}

/// A request on its way.
#[derive(Debug)]
struct Pending {
    io: Io,
    outcome: Result<(), DeviceError>,
}

/// The engine's observer: moves bytes as it is told.
struct Mover {
    store: Store<Box<dyn Media>>,
    volatile: Volatile,
    /// By the number of the request.
    pending: BTreeMap<u64, Pending>,
    completions: Vec<Completion>,
    pieces: Vec<(u64, Vec<u8>)>,
    /// Buffers that the volatile cache has given up, for whoever brought it others.
    spare: Vec<Vec<u8>>,
    sector_bytes: u64,
    activity: Option<Activity>,
    bands: Option<Bands>,
}

/// A drive with contents.
pub struct EmulatedDrive {
    engine: Engine<Inbox, Mover>,
    submitted: u64,
    last_arrival: SimTime,
}

/// How to make an image.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    /// Its name among drives; for tests a fixed one.
    pub uuid: Uuid,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Bytes set aside for each journal.
    pub journal_bytes: u64,
}

impl Default for Making {
    fn default() -> Making {
        Making { uuid: Uuid::new_v4(), chunk_bytes: CHUNK_BYTES, journal_bytes: JOURNAL_BYTES }
    }
}

/// The header of an image of `drive`, which `spec` names.
pub fn header_of(drive: &Drive, spec: &DriveSpec, making: &Making) -> Result<Header, DeviceError> {
    if drive.parameters.iter().any(|(key, value)| key == "safety" && value == "paper") {
        return Err(DeviceError::Refused(format!(
            "drive '{}': safety=paper keeps to the paper's steps, which lose data in a power cut; leave it out",
            drive.label
        )));
    }
    let disk_sectors = drive.disk.geometry.sectors().0;
    Ok(Header {
        uuid: making.uuid,
        label: drive.label.clone(),
        profile_file: drive.profile.source_file().into(),
        profile_text: drive.profile.source_text().into(),
        profile_overrides: spec.profile_overrides.clone(),
        layer: drive.layer.name().into(),
        parameters: drive.parameters.clone(),
        sector_bytes: drive.disk.sector_bytes,
        disk_sectors,
        flash_sectors: if drive.disk.flash.is_some() { disk_sectors } else { 0 },
        chunk_bytes: making.chunk_bytes,
        journal_bytes: making.journal_bytes,
    })
}

/// Makes the image file `path` of the drive that `header` says. Nothing is left behind if it fails.
pub fn create_file(path: &Path, header: Header) -> Result<Opened<FileMedium>, DeviceError> {
    let drive = header.drive()?;
    create_file_of(path, header, drive)
}

/// The same of `drive`, which is as new and as `header` says.
pub fn create_file_of(path: &Path, header: Header, drive: Drive) -> Result<Opened<FileMedium>, DeviceError> {
    let media = FileMedium::open(path, Mode::Create, true)?;
    Store::create_of(media, header, drive).inspect_err(|_| {
        // The file is ours: it was made just now. What stopped its making is the error to report.
        let _ = std::fs::remove_file(path);
    })
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
        let media: Box<dyn Media> = Box::new(FileMedium::open(path, Mode::Write, syncs)?);
        Store::open(media, &path.display().to_string()).map(EmulatedDrive::new)
    }

    /// The drive in the image file `path`, to be read only: nothing is changed, so nothing is cleaned in idle time.
    pub fn open_file_to_look(path: &Path) -> Result<EmulatedDrive, DeviceError> {
        let media: Box<dyn Media> = Box::new(FileMedium::open(path, Mode::Read, false)?);
        let (mut drive, store) = Store::open_to_look(media, &path.display().to_string())?;
        drive.host.idle_threshold_ns = NEVER_NS;
        Ok(EmulatedDrive::new((drive, store)))
    }

    /// An opened drive, put to work.
    pub fn new((drive, store): Opened<Box<dyn Media>>) -> EmulatedDrive {
        let options = Options::live(&drive);
        let sector_bytes = drive.disk.sector_bytes;
        let mover = Mover {
            store,
            volatile: Volatile::new(sector_bytes),
            pending: BTreeMap::new(),
            completions: Vec::new(),
            pieces: Vec::new(),
            spare: Vec::new(),
            sector_bytes: sector_bytes as u64,
            activity: None,
            bands: None,
        };
        let engine = Engine::new(drive, options, Inbox::default(), mover);
        EmulatedDrive { engine, submitted: 0, last_arrival: SimTime::ZERO }
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

    /// Gives it volatile caches of other sizes, 0 for off; nothing may be dirty.
    pub fn set_caches(&mut self, write_cache_bytes: u64, read_ahead_bytes: u64) {
        self.engine.set_caches(write_cache_bytes, read_ahead_bytes);
    }

    /// Begins a new path of the head, of at most `samples_max` samples, which [`EmulatedDrive::timing`] then has.
    pub fn restart_head_log(&mut self, samples_max: usize) {
        self.engine.timing_mut().actuator_mut().restart_log(samples_max);
    }

    /// The store.
    pub fn store_mut(&mut self) -> &mut Store<Box<dyn Media>> {
        &mut self.engine.observer_mut().store
    }

    /// Begins to note what is done where, and in what state bands are.
    pub fn watch(&mut self) {
        let disk = self.engine.drive().disk.clone();
        let mover = self.engine.observer_mut();
        let fresh = mover.store.header().drive().expect("the header of a drive that was opened makes a drive");
        let mut bands = Bands::new(&fresh);
        bands.touch_all();
        (mover.activity, mover.bands) = (Some(Activity::new(disk)), Some(bands));
    }

    /// In what state its bands are now, since [`EmulatedDrive::watch`].
    pub fn bands(&mut self) -> Option<&Bands> {
        let now = self.engine.now();
        let (drive, mover) = self.engine.drive_and_observer();
        let bands = mover.bands.as_mut()?;
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

    /// The clock.
    pub fn now(&self) -> SimTime {
        self.engine.now()
    }

    /// Requests submitted and not yet completed.
    pub fn outstanding(&mut self) -> usize {
        self.engine.observer_mut().pending.len()
    }

    /// Takes a request that arrives at `at`, or at the latest arrival so far if that was later. What cannot be served is
    /// refused at once, and nothing has happened.
    pub fn submit(&mut self, at: SimTime, io: Io) -> Result<(), DeviceError> {
        self.check(&io)?;
        let (lba, sectors) = (io.offset / 512, (io.length / 512) as u32);
        let command = match io.kind {
            IoKind::Read => Command::read(lba, sectors),
            IoKind::Write { fua } => Command { fua, ..Command::write(lba, sectors) },
            IoKind::Flush => Command::flush(),
            IoKind::Trim => Command::trim(lba, sectors),
        };
        self.last_arrival = self.last_arrival.max(at);
        let request = Request { when: When::At(self.last_arrival), device: 0, command };
        self.engine.source_mut().push(request);
        self.engine.observer_mut().pending.insert(self.submitted, Pending { io, outcome: Ok(()) });
        self.submitted += 1;
        Ok(())
    }

    fn check(&mut self, io: &Io) -> Result<(), DeviceError> {
        if let Some(reason) = self.engine.observer_mut().store.stopped() {
            return Err(DeviceError::Stopped(reason.into()));
        }
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
    /// [`EmulatedDrive::completions`].
    pub fn advance(&mut self, until: SimTime) -> Stepped {
        loop {
            match self.step(until) {
                Stepped::Worked => {}
                other => return other,
            }
        }
    }

    /// Lets the drive do one thing, unless it would begin after `until`.
    pub fn step(&mut self, until: SimTime) -> Stepped {
        let stepped = self.engine.step(until).expect("an inbox does not fail");
        if stepped == Stepped::Worked {
            self.checkpoint_if_due();
        }
        stepped
    }

    /// The drive as the simulator has it, and the store, for what is done between plans.
    pub(crate) fn drive_and_store(&mut self) -> (&mut Drive, &mut Store<Box<dyn Media>>) {
        let (drive, mover) = self.engine.drive_and_observer();
        (drive, &mut mover.store)
    }

    pub(crate) fn checkpoint_if_due(&mut self) {
        if self.engine.observer_mut().store.journal().wants_checkpoint() {
            let (drive, mover) = self.engine.drive_and_observer();
            // A failure has stopped the store: every later request is told.
            let _ = mover.store.checkpoint_if_due(drive.layer.as_ref());
        }
    }

    /// What of these bytes is stored somewhere: runs in order, each with whether it is. The rest reads as zeros. Damaged
    /// sectors count as stored, since they read as errors; where hosts are told of damage every sector does, for those
    /// that were never written read as errors too.
    pub fn allocation(&mut self, offset: u64, length: u64, runs: &mut Vec<(u64, bool)>) -> Result<(), DeviceError> {
        let sector = self.sector_bytes() as u64;
        let mut pieces = Vec::new();
        let first = Lba(offset / sector);
        let sectors = Sectors((offset + length).div_ceil(sector) - first.0);
        // What the volatile cache holds may be anywhere: then nothing is called a hole.
        let is_dirty = !self.engine.dirty().is_zero();
        if is_dirty || self.drive().disk.recording.leaves_damage_to_host() {
            runs.push((sectors.0 * sector, true));
            return Ok(());
        }
        self.engine.drive().layer.lookup(first, sectors, &mut pieces);
        let store = &mut self.engine.observer_mut().store;
        let mut push = |bytes: u64, is_stored: bool| match runs.last_mut() {
            Some((last, same)) if *same == is_stored => *last += bytes,
            _ => runs.push((bytes, is_stored)),
        };
        for piece in pieces {
            let Some((medium, pba)) = piece.at else {
                push(piece.sectors.0 * sector, false);
                continue;
            };
            let (mut damaged, extent) = (Vec::new(), Extent::new(pba, piece.sectors));
            if medium == Medium::Disk {
                store.for_each_damage(extent, |run| damaged.push(run))?;
            }
            let mut at = extent.start;
            for run in damaged {
                store.for_each_stored(medium, at, Sectors(run.start.0 - at.0), &mut push)?;
                push(run.sectors.0 * sector, true);
                at = run.end();
            }
            store.for_each_stored(medium, at, Sectors(extent.end().0 - at.0), &mut push)?;
        }
        Ok(())
    }

    /// Takes the requests completed so far, in the order in which the drive finished them.
    pub fn completions(&mut self) -> std::vec::Drain<'_, Completion> {
        self.engine.observer_mut().completions.drain(..)
    }

    /// Serves one request at once, as soon as the drive is free: for callers without a clock.
    pub fn serve(&mut self, io: Io) -> Result<Completion, DeviceError> {
        assert!(self.engine.observer_mut().pending.is_empty(), "other requests are on their way");
        self.submit(self.now(), io)?;
        while self.engine.observer_mut().completions.is_empty() {
            self.step(SimTime(u64::MAX));
        }
        Ok(self.engine.observer_mut().completions.pop().expect("just seen"))
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

impl Mover {
    /// Carries out the plan that serves `batch`.
    fn serve(&mut self, batch: &[Waiting], plan: &Plan) {
        let mut taken: Vec<(u64, Pending)> = batch
            .iter()
            .filter_map(|waiting| self.pending.remove(&waiting.sequence).map(|pending| (waiting.sequence, pending)))
            .collect();
        let mut transfers: Vec<Transfer<'_>> = Vec::with_capacity(taken.len());
        let mut wants_barrier = false;
        for (_, pending) in &mut taken {
            let lba = pending.io.offset / self.sector_bytes;
            let data = match pending.io.kind {
                IoKind::Read => {
                    pending.io.buffer.resize(pending.io.length as usize, 0);
                    Data::Read(&mut pending.io.buffer)
                }
                IoKind::Write { fua } => {
                    wants_barrier |= fua;
                    Data::Write(&pending.io.buffer)
                }
                IoKind::Trim => Data::Trim(pending.io.length / self.sector_bytes),
                IoKind::Flush => {
                    wants_barrier = true;
                    continue;
                }
            };
            transfers.push(Transfer { lba, data });
        }
        let mut outcome = self.store.execute(plan, &mut transfers);
        if outcome.is_ok() && wants_barrier {
            outcome = self.store.barrier().inspect_err(|error| self.store.stop(&error.to_string()));
        }
        for (sequence, mut pending) in taken {
            if pending.io.kind == IoKind::Read {
                self.volatile.overlay(pending.io.offset / self.sector_bytes, &mut pending.io.buffer);
            }
            if let Err(error) = &outcome {
                pending.outcome = Err(again(error));
            }
            self.pending.insert(sequence, pending);
        }
    }

    fn destage(&mut self, commands: &[Command], plan: &Plan) {
        self.pieces.clear();
        for command in commands {
            self.volatile.take(command.lba.0, command.end().0, &mut self.pieces);
        }
        let mut transfers: Vec<_> =
            self.pieces.iter().map(|(lba, bytes)| Transfer { lba: *lba, data: Data::Write(bytes) }).collect();
        // A failure has stopped the store; the flush that would have promised these bytes is told.
        let _ = self.store.execute(plan, &mut transfers);
        let room = SPARE_BUFFERS_MAX.saturating_sub(self.spare.len());
        self.spare.extend(self.pieces.drain(..).map(|(_, bytes)| bytes).take(room));
    }
}

/// The same error, for each of the requests that share it.
fn again(error: &DeviceError) -> DeviceError {
    match error {
        DeviceError::Destroyed { lba, pba, medium } => DeviceError::Destroyed { lba: *lba, pba: *pba, medium: *medium },
        DeviceError::Stopped(reason) => DeviceError::Stopped(reason.clone()),
        DeviceError::Medium { what, cause } => {
            let cause = match cause.raw_os_error() {
                Some(number) => std::io::Error::from_raw_os_error(number),
                None => std::io::Error::new(cause.kind(), cause.to_string()),
            };
            DeviceError::Medium { what: what.clone(), cause }
        }
        other => DeviceError::Refused(other.to_string()),
    }
}

impl Observer for Mover {
    fn wants_moves(&self) -> bool {
        true
    }

    fn wants_ios(&self) -> bool {
        true
    }

    fn moved(&mut self, moved: Moved<'_>) {
        match moved {
            Moved::Absorbed { sequence, command } => {
                if let Some(pending) = self.pending.get_mut(&sequence) {
                    let instead = self.spare.pop().unwrap_or_default();
                    self.volatile.insert(command.lba.0, std::mem::replace(&mut pending.io.buffer, instead));
                }
            }
            Moved::ReadFromCache { sequence, command } => {
                if let Some(pending) = self.pending.get_mut(&sequence) {
                    pending.io.buffer.resize(pending.io.length as usize, 0);
                    self.volatile.overlay(command.lba.0, &mut pending.io.buffer);
                }
            }
            Moved::Discarded { command } => self.volatile.remove(command.lba.0, command.end().0),
            Moved::Served { batch, plan } => self.serve(batch, plan),
            Moved::Destaged { commands, plan } => self.destage(commands, plan),
            Moved::Background { plan } => {
                // A failure has stopped the store: the next request is told.
                let _ = self.store.execute(plan, &mut []);
            }
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

    fn io(&mut self, record: &IoRecord) {
        let Some(pending) = self.pending.remove(&record.sequence) else { return };
        let mut outcome = pending.outcome;
        // A write that the volatile cache took before the store stopped is lost with it, so the host must hear.
        if let (Ok(()), Some(reason)) = (&outcome, self.store.stopped()) {
            outcome = Err(DeviceError::Stopped(reason.into()));
        }
        self.completions.push(Completion {
            tag: pending.io.tag,
            kind: pending.io.kind,
            length: pending.io.length,
            entry: record.entry,
            end: record.end,
            buffer: pending.io.buffer,
            outcome,
        });
    }
}
