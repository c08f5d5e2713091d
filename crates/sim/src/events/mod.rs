//! A run as a trace of events in the format of Perfetto, for its viewer at <https://ui.perfetto.dev>.
//!
//! ```text
//!   drive NAME
//!   ├─ actuator         operations, and within them stretches of one kind of work
//!   ├─ requests         each request from its arrival to its answer; requests that overlap lie below each other
//!   ├─ volatile cache   write-backs, and the times at which the cache answers
//!   └─ cleaning         each piece of the layer's own work, from its first phase to its last
//! ```
//!
//! A flow leads from a request to the operation that serves it or writes its data back. If the request is the last write
//! that filled a store, its flow goes on to the cleaning that relieves the store. Another flow leads from a cleaning to the
//! access that waited for it.
//!
//! Invariants:
//! 1. On each track, slices are nested or apart.
//! 2. Every slice that begins ends. Events are left out whole once the trace has reached its largest size, and a last
//!    event says so.
//! 3. The memory does not grow with the length of the run.

mod proto;

use std::collections::BTreeSet;
use std::io::{self, Write};

use imbrex_disk::{Operation as HostOperation, SimTime};
use imbrex_layer::{Layer, Reason};

use self::proto::{DebugAnnotation, INSTANT, SLICE_BEGIN, SLICE_END, TracePacket, TrackDescriptor, TrackEvent};
use crate::explain::follower::{Follower, OwnPhase, Writer};
use crate::observer::IoRecord;
use crate::operation::{Operation, Purpose, Stretch, Work};
use crate::queue::Waiting;

/// Number of bytes that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 16;

/// Number of bytes that are kept free for the last events.
const RESERVED_BYTES: u64 = 1024;

/// Number of identifiers of tracks that each drive has: the fixed ones, then those of the requests.
const TRACKS_PER_DRIVE: u64 = 1 << 32;

/// The options of a trace of events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventOptions {
    /// Name of the drive, as the viewer shows it.
    pub name: String,
    /// Number of the drive among those of the trace, from 0.
    pub drive: u32,
    /// Simulated time from which on events are kept. Earlier slices that reach it are kept whole.
    pub from: SimTime,
    /// Simulated time up to which events are kept.
    pub to: SimTime,
    /// Largest size of the trace in bytes; at least a few kilobytes.
    pub bytes_max: u64,
}

/// Numbers of a trace of events.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EventCounts {
    /// Number of bytes written.
    pub bytes: u64,
    /// Number of operations and requests that were left out at the end because the trace had reached its largest size.
    pub left_out: u64,
}

/// A piece of the layer's own work that has begun.
#[derive(Clone, Copy)]
struct OpenWork {
    event: u64,
    /// End of its last phase so far.
    until: u64,
}

/// Writes the events of one run to `W`. It receives each operation and completion of the engine.
pub struct EventRecorder<W: Write> {
    /// `None` once the trace has ended.
    writer: Option<W>,
    options: EventOptions,
    follower: Follower,
    open: Option<OpenWork>,
    /// For each track of requests, the end of its last slice and its number, in order of these ends.
    lanes: BTreeSet<(u64, u64)>,
    /// Packets of the operation or request at hand, and those that are ready to be written.
    unit: Vec<u8>,
    /// Packets of the last operation. They come after those of the requests that it serves, since a viewer follows a flow
    /// from the first packet to the next where times are equal.
    held: Vec<u8>,
    ready: Vec<u8>,
    counts: EventCounts,
    is_full: bool,
    /// End of the last slice that was kept.
    last_end: u64,
    failed: Option<io::Error>,
}

/// The fixed tracks of a drive, by their numbers.
#[derive(Clone, Copy)]
enum Track {
    Drive = 1,
    Actuator,
    Cache,
    Cleaning,
    /// The first track of requests.
    Requests,
}

/// A flow: its kind, and the number of the request or of the piece of work.
#[derive(Clone, Copy)]
enum Flow {
    /// From a request to the operation that serves it or writes its data back, and on to the cleaning that its write made
    /// necessary. Of the writes that a write-back joined, the oldest has one.
    Request(u64),
    /// From a piece of the layer's own work to the access that waited for it.
    Work(u64),
}

impl<W: Write> EventRecorder<W> {
    /// Begins a trace of a run on a drive with this layer. Traces of several drives can be joined: one follows the other.
    pub fn new(layer: &dyn Layer, options: EventOptions, writer: W) -> EventRecorder<W> {
        let mut recorder = EventRecorder {
            writer: Some(writer),
            follower: Follower::new(layer, layer.capacity().0),
            open: None,
            lanes: BTreeSet::new(),
            unit: Vec::new(),
            held: Vec::new(),
            ready: Vec::new(),
            counts: EventCounts::default(),
            is_full: false,
            last_end: 0,
            failed: None,
            options,
        };
        let name = recorder.options.name.clone();
        recorder.describe(Track::Drive as u64, &name, None);
        for (track, name) in
            [(Track::Actuator, "actuator"), (Track::Cache, "volatile cache"), (Track::Cleaning, "cleaning")]
        {
            recorder.describe(track as u64, name, Some(Track::Drive as u64));
        }
        recorder.keep_unit(0);
        recorder
    }

    /// Returns the number of operations and requests that were left out so far.
    pub fn left_out(&self) -> u64 {
        self.counts.left_out
    }

    /// Returns whether writing has failed. [`EventRecorder::finish`] returns the error.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Takes an operation of the drive.
    pub fn operation(&mut self, operation: &Operation<'_>) {
        let requests: &[Waiting] = match operation.purpose {
            Purpose::Serve(batch) => batch,
            Purpose::WriteBack(..) | Purpose::Background => &[],
        };
        let written_back = if let Purpose::WriteBack(_, oldest) = operation.purpose { oldest } else { &[] };
        let writer_of = |index: usize| {
            let request =
                requests.get(index).map(|waiting| waiting.sequence).or_else(|| written_back.get(index).copied());
            request.map(|request| Writer { request, device: 0 })
        };
        let mut works: Vec<(OwnPhase, Option<u64>)> = Vec::new();
        self.follower.take(operation, writer_of, |work, fills| {
            works.push((work, work.fill.and_then(|fill| fills.get(fill)).map(|fill| *fill.requests.end())));
        });
        if operation.end <= operation.begin || !self.is_within(operation.begin, operation.end) {
            return;
        }
        let open_before = self.open;
        let served = requests.iter().map(|waiting| waiting.sequence).chain(written_back.iter().copied());
        let flows = served.map(Flow::Request).collect();
        let (name, notes) = named(operation);
        self.begin(Track::Actuator as u64, operation.begin.0, &name, flows, notes);
        let (mut from, mut seen) = (operation.begin.0, Vec::new());
        for stretch in operation.stretches {
            let work = works.iter().find(|(work, _)| work.phase == stretch.phase && stretch.work.is_own_work());
            let flows = if stretch.work == Work::Access { std::mem::take(&mut seen) } else { Vec::new() };
            let name = work.map_or(stretch.work.name().to_string(), |(work, _)| work_name(stretch.work, work.reason));
            self.begin(Track::Actuator as u64, from, &name, flows, Vec::new());
            self.end(Track::Actuator as u64, stretch.until.0);
            if let Some((work, last_writer)) = work {
                self.show_work(work, *last_writer, (from, stretch), operation);
                if !matches!(operation.purpose, Purpose::Background) {
                    seen.push(Flow::Work(work.event));
                }
            }
            from = stretch.until.0;
        }
        self.end(Track::Actuator as u64, operation.end.0);
        if let Purpose::WriteBack(due, _) = operation.purpose {
            let name = format!("write-back: {}", due.name());
            self.begin(Track::Cache as u64, operation.begin.0, &name, Vec::new(), Vec::new());
            self.end(Track::Cache as u64, operation.end.0);
        }
        self.ready.append(&mut self.held);
        if self.fits() {
            self.held.append(&mut self.unit);
            self.last_end = self.last_end.max(operation.end.0);
        } else {
            self.open = open_before;
        }
    }

    /// Shows a phase of the layer's own work, from `from` to the end of `stretch`, on the track of cleaning.
    fn show_work(
        &mut self,
        work: &OwnPhase,
        last_writer: Option<u64>,
        (from, stretch): (u64, &Stretch),
        operation: &Operation<'_>,
    ) {
        let track = Track::Cleaning as u64;
        if self.open.is_none_or(|open| open.event != work.event) {
            self.close_work();
            let mut flows: Vec<Flow> = last_writer.map(Flow::Request).into_iter().collect();
            if !matches!(operation.purpose, Purpose::Background) {
                flows.push(Flow::Work(work.event));
            }
            let mut notes = vec![DebugAnnotation::number("event", work.event)];
            if let Some(reason) = work.reason {
                notes.push(DebugAnnotation::text("due", reason.due.name()));
                notes.extend(reason.store.map(|store| DebugAnnotation::text("store", store.to_string())));
            }
            notes.extend(last_writer.map(|writer| DebugAnnotation::number("filled up to request", writer)));
            self.begin(track, from, &work_name(stretch.work, work.reason), flows, notes);
            self.open = Some(OpenWork { event: work.event, until: from });
        }
        self.begin(track, from, "phase", Vec::new(), Vec::new());
        self.end(track, stretch.until.0);
        if let Some(open) = &mut self.open {
            open.until = stretch.until.0;
        }
    }

    /// Ends the slice of the piece of work that began last.
    fn close_work(&mut self) {
        if let Some(open) = self.open.take() {
            self.end(Track::Cleaning as u64, open.until);
        }
    }

    /// Takes the completion of a request.
    pub fn completed(&mut self, record: &IoRecord) {
        if !self.is_within(record.due, record.end) {
            return;
        }
        // The track that has been free for the shortest time, or a new one.
        let free = self.lanes.range(..=(record.due.0, u64::MAX)).next_back().copied();
        let lane = free.map_or(self.lanes.len() as u64, |(_, lane)| lane);
        let track = Track::Requests as u64 + lane;
        if free.is_none() {
            self.describe(track, "requests", Some(Track::Drive as u64));
        }
        let command = &record.command;
        let name = operation_name(command.operation);
        let notes = vec![
            DebugAnnotation::number("request", record.sequence),
            DebugAnnotation::number("lba", command.lba.0),
            DebugAnnotation::number("sectors", command.sectors.into()),
            DebugAnnotation::number("latency_ns", record.end.since(record.due).0),
        ];
        let is_read_from_cache = record.from_cache && command.operation == HostOperation::Read;
        let flows = if is_read_from_cache { Vec::new() } else { vec![Flow::Request(record.sequence)] };
        self.begin(track, record.due.0, name, flows, notes);
        let start = record.start.max(record.due).min(record.end);
        for (name, from, until) in [("waiting", record.due, start), ("service", start, record.end)] {
            if until > from {
                self.begin(track, from.0, name, Vec::new(), Vec::new());
                self.end(track, until.0);
            }
        }
        self.end(track, record.end.0);
        if record.from_cache {
            let name = if is_read_from_cache { "read from the cache" } else { "write to the cache" };
            self.instant(Track::Cache as u64, record.end.0, name);
        }
        if self.keep_unit(record.end.0) {
            if let Some(free) = free {
                self.lanes.remove(&free);
            }
            self.lanes.insert((record.end.0, lane));
        }
    }

    /// Ends the trace, and returns the writer and the numbers of the trace. A recorder that is dropped ends its trace too,
    /// but ignores errors.
    ///
    /// # Errors
    ///
    /// The first error of the writer.
    pub fn finish(mut self) -> io::Result<(W, EventCounts)> {
        self.close();
        let writer = self.writer.take().expect("only this function takes it");
        self.failed.take().map_or(Ok((writer, self.counts)), Err)
    }

    fn close(&mut self) {
        self.close_work();
        if self.is_full {
            let name =
                format!("the trace has reached its largest size: {} later ones are left out", self.counts.left_out);
            self.instant(Track::Drive as u64, self.last_end, &name);
        }
        self.ready.append(&mut self.held);
        self.ready.append(&mut self.unit);
        self.write_ready();
        if let (Some(writer), None) = (&mut self.writer, &self.failed) {
            self.failed = writer.flush().err();
        }
    }

    /// Keeps the packets of the operation or request at hand, which ends at `end`, unless the trace has reached its largest
    /// size. Returns whether they were kept.
    fn keep_unit(&mut self, end: u64) -> bool {
        if !self.fits() {
            return false;
        }
        self.ready.append(&mut self.unit);
        self.last_end = self.last_end.max(end);
        if self.ready.len() >= BUFFER_BYTES {
            self.write_ready();
        }
        true
    }

    /// Returns whether the packets at hand fit into the trace. If not, drops them and counts them as left out.
    fn fits(&mut self) -> bool {
        let size = self.counts.bytes + (self.ready.len() + self.held.len() + self.unit.len()) as u64;
        self.is_full |= size + RESERVED_BYTES > self.options.bytes_max;
        if self.is_full {
            self.unit.clear();
            self.counts.left_out += 1;
        }
        !self.is_full
    }

    fn write_ready(&mut self) {
        if let (Some(writer), None) = (&mut self.writer, &self.failed) {
            self.failed = writer.write_all(&self.ready).err();
        }
        self.counts.bytes += self.ready.len() as u64;
        self.ready.clear();
    }

    fn is_within(&self, from: SimTime, until: SimTime) -> bool {
        from <= self.options.to && until >= self.options.from
    }

    fn uuid(&self, track: u64) -> u64 {
        u64::from(self.options.drive) * TRACKS_PER_DRIVE + track
    }

    fn flow_id(&self, flow: Flow) -> u64 {
        let (kind, number) = match flow {
            Flow::Request(number) => (0, number),
            Flow::Work(number) => (1, number),
        };
        (u64::from(self.options.drive) << 48) + 2 * number + kind
    }

    fn packet(&mut self, packet: TracePacket) {
        let packet = TracePacket { trusted_packet_sequence_id: Some(self.options.drive + 1), ..packet };
        proto::append(&packet, &mut self.unit);
    }

    fn describe(&mut self, track: u64, name: &str, parent: Option<u64>) {
        let (uuid, parent_uuid) = (Some(self.uuid(track)), parent.map(|parent| self.uuid(parent)));
        let descriptor = TrackDescriptor { uuid, name: Some(name.to_string()), parent_uuid };
        self.packet(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() });
    }

    fn event(&mut self, at: u64, event: TrackEvent) {
        self.packet(TracePacket { timestamp: Some(at), track_event: Some(event), ..TracePacket::default() });
    }

    fn begin(&mut self, track: u64, at: u64, name: &str, flows: Vec<Flow>, debug_annotations: Vec<DebugAnnotation>) {
        let flow_ids = flows.into_iter().map(|flow| self.flow_id(flow)).collect();
        let (kind, track_uuid) = (Some(SLICE_BEGIN), Some(self.uuid(track)));
        self.event(at, TrackEvent { debug_annotations, kind, track_uuid, name: Some(name.to_string()), flow_ids });
    }

    fn end(&mut self, track: u64, at: u64) {
        let (kind, track_uuid) = (Some(SLICE_END), Some(self.uuid(track)));
        self.event(at, TrackEvent { kind, track_uuid, ..TrackEvent::default() });
    }

    fn instant(&mut self, track: u64, at: u64, name: &str) {
        let (kind, track_uuid) = (Some(INSTANT), Some(self.uuid(track)));
        self.event(at, TrackEvent { kind, track_uuid, name: Some(name.to_string()), ..TrackEvent::default() });
    }
}

impl<W: Write> Drop for EventRecorder<W> {
    fn drop(&mut self) {
        if self.writer.is_some() {
            self.close();
        }
    }
}

/// Returns the name of an operation's slice, and its notes.
fn named(operation: &Operation<'_>) -> (String, Vec<DebugAnnotation>) {
    match (operation.purpose, operation.commands) {
        (Purpose::Background, _) => ("work in idle time".to_string(), Vec::new()),
        (Purpose::WriteBack(due, _), commands) => {
            let sectors = commands.iter().map(|command| u64::from(command.sectors)).sum();
            let notes = vec![DebugAnnotation::text("due", due.name()), DebugAnnotation::number("sectors", sectors)];
            (format!("write-back of {} ranges", commands.len()), notes)
        }
        (Purpose::Serve(batch), [command]) => {
            let mut notes = vec![
                DebugAnnotation::number("lba", command.lba.0),
                DebugAnnotation::number("sectors", command.sectors.into()),
            ];
            notes.extend(batch.first().map(|waiting| DebugAnnotation::number("request", waiting.sequence)));
            (operation_name(command.operation).to_string(), notes)
        }
        (Purpose::Serve(batch), _) => (format!("{} requests together", batch.len()), Vec::new()),
    }
}

fn operation_name(operation: HostOperation) -> &'static str {
    match operation {
        HostOperation::Read => "read",
        HostOperation::Write => "write",
        HostOperation::Flush => "flush",
        HostOperation::Trim => "trim",
    }
}

/// Returns the name of a piece of the layer's own work.
fn work_name(work: Work, reason: Option<Reason>) -> String {
    match reason {
        Some(reason) => format!("{} of {}", work.name(), reason.target),
        None => work.name().to_string(),
    }
}

#[cfg(test)]
mod tests;
