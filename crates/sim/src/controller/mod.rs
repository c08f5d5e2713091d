//! The controller of a drive, if its profile describes one: the time of a command by its kind and by the command before
//! it, the bus beside the medium, the segments of the buffer, reading on, and early reports of writes.
//!
//! One command is served at a time. Its further activity (reading on, or writing to the medium after an early report)
//! continues until the next command needs the arm. The terms have the meanings of the DiskSim 4.0 reference manual
//! §3.4.5. A command that moves data while the arm works for another is not modelled, except for a stream of writes and
//! for a read found whole in the buffer. Preseeking is not modelled, because it makes no difference with one command at
//! a time.
//!
//! Invariants:
//! 1. The arm serves one command after the other, so the times at which it becomes free never decrease.
//! 2. A write that is reported is in the buffer or on the medium. No conflicting command is served before the write is
//!    on the medium.
//! 3. Serving allocates nothing.

mod bus;
mod reading;
mod segments;
mod writing;

use std::ops::Range;

use imbrex_disk::profile::{Controller as Description, ImmediateReport, ReadOn};
use imbrex_disk::{Actuator, Command, Extent, Operation, Pba, Sectors, SimDuration, SimTime};

use self::bus::{Medium, Outgoing, carry};
use self::reading::{Reading, Spent, Wanted};
use self::segments::{Hit, Segments};
use self::writing::{Incoming, Put, write};

/// The times of a command that the controller has served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served {
    /// Time at which the command is reported as complete to the host.
    pub answered: SimTime,
    /// Time at which the arm has finished its work for the command: later than `answered` if a write was reported
    /// early.
    pub free: SimTime,
    /// Time in which the arm moved for the command, and for the least reading on that follows a read; 0 for a write
    /// that was reported early.
    pub seek: SimDuration,
    /// Time in which the arm waited until a sector passed, for the command and for the least reading on that follows a
    /// read; 0 for a write that was reported early.
    pub rotation: SimDuration,
    /// Time in which sectors passed under the head, for the command and for the least reading on that follows a read; 0
    /// for a write that was reported early. Time on the bus is not included.
    pub transfer: SimDuration,
}

/// A stream of writes that were reported and are on their way to the medium.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// LBA at which the stream continues.
    lba: u64,
    pba: u64,
    /// Segment that holds the sectors of the stream.
    segment: usize,
    /// Time until which the arm works for the stream.
    until: SimTime,
    /// Time at which the first write of the stream could begin to move the arm.
    started: SimTime,
}

/// A simulated drive controller, with its state: the segments of its buffer, reading on, and the stream of writes that
/// were reported early.
#[derive(Clone, Debug)]
pub struct Controller {
    is: Description,
    segments: Segments,
    reading: Option<Reading>,
    /// Time at which the last read was answered and its sectors were in the buffer. The least reading on comes after.
    read_done: SimTime,
    /// Time at which the least reading on after the last read is complete.
    least_done: SimTime,
    stream: Option<Stream>,
    last_wrote: bool,
    /// End of the last command, if it was a write.
    last_write_end: Option<u64>,
}

impl Controller {
    /// Creates the controller that a profile describes. It is idle and its buffer is empty. The first command is timed
    /// as if a read had preceded it.
    pub fn new(description: &Description) -> Controller {
        Controller {
            segments: Segments::new(description),
            is: description.clone(),
            reading: None,
            read_done: SimTime::ZERO,
            least_done: SimTime::ZERO,
            stream: None,
            last_wrote: false,
            last_write_end: None,
        }
    }

    /// Serves the read or write `command`, moves the head, and returns the times. The command entered the drive at
    /// `entry`. Its sectors lie on the platters in one run from `run` on. `free` is the time at which the arm has
    /// finished its work for earlier commands.
    pub fn serve(
        &mut self,
        actuator: &mut Actuator,
        command: &Command,
        run: Pba,
        entry: SimTime,
        free: SimTime,
    ) -> Served {
        let arrived = entry + SimDuration(self.is.command_ns);
        let served = match command.operation {
            Operation::Read => self.read(actuator, command, run, arrived, free),
            _ => self.write(actuator, command, run, arrived, free),
        };
        self.last_wrote = command.operation != Operation::Read;
        self.last_write_end = self.last_wrote.then_some(command.end().0);
        served
    }

    /// Returns the controller's times for a command whose plan is not one run of sectors, and which the caller times:
    /// the earliest time at which the arm may begin, and the time from the end of its work to the answer. Ends reading
    /// on and any stream of writes. Drops from the buffer the sectors that the command writes or trims.
    pub fn pass_by(&mut self, actuator: &mut Actuator, command: &Command, entry: SimTime) -> (SimTime, SimDuration) {
        let arrived = entry + SimDuration(self.is.command_ns);
        let begin = self.stop_reading(actuator, arrived);
        let wrote = self.last_wrote;
        self.stream = None;
        self.last_write_end = None;
        let is_read = command.operation == Operation::Read;
        self.last_wrote = !is_read;
        if is_read {
            let bus = self.is.bus_read_sector_ns * command.sectors as u64;
            return (begin.max(arrived + self.read_miss(wrote)), SimDuration(bus + self.is.read_complete_ns));
        }
        self.segments.forget(&sectors_of(command));
        let bus = self.is.bus_write_sector_ns * command.sectors as u64;
        let overhead = if wrote { self.is.write_miss_after_write_ns } else { self.is.write_miss_after_read_ns };
        (begin.max(arrived + SimDuration(overhead + bus)), SimDuration(self.is.write_complete_ns))
    }

    fn read_hit(&self) -> SimDuration {
        let ns = if self.last_wrote { self.is.read_hit_after_write_ns } else { self.is.read_hit_after_read_ns };
        SimDuration(ns)
    }

    fn read_miss(&self, after_write: bool) -> SimDuration {
        SimDuration(if after_write { self.is.read_miss_after_write_ns } else { self.is.read_miss_after_read_ns })
    }

    fn read_disconnect(&self) -> SimDuration {
        let ns = if self.last_wrote {
            self.is.read_disconnect_after_write_ns
        } else {
            self.is.read_disconnect_after_read_ns
        };
        SimDuration(ns)
    }

    /// Continues reading on until `time`, and extends the segment by the sectors read.
    fn read_on(&mut self, actuator: &mut Actuator, time: SimTime) {
        if let Some(reading) = &mut self.reading {
            let reached = reading.until(actuator, time);
            self.segments.reach(reading.segment(), reached);
        }
    }

    /// Ends reading on at `time`, or when the least reading on is complete, and returns when the arm is free.
    fn stop_reading(&mut self, actuator: &mut Actuator, time: SimTime) -> SimTime {
        let time = if self.reading.is_some() { time.max(self.least_done) } else { time };
        self.read_on(actuator, time);
        let stopped = self.reading.map_or(time, |reading| reading.stopped_at(time, self.is.stops_in_sector));
        self.reading = None;
        stopped
    }

    fn read(
        &mut self,
        actuator: &mut Actuator,
        command: &Command,
        run: Pba,
        arrived: SimTime,
        free: SimTime,
    ) -> Served {
        let asked = sectors_of(command);
        let offset = asked.start.wrapping_sub(run.0);
        self.read_on(actuator, arrived);
        let being_read = self.reading.filter(|reading| reading.offset() == offset && !reading.is_over(arrived));
        let being_read = being_read.map(|reading| reading.segment());
        let hit = self.segments.find(&asked, being_read, self.is.hits_sector_being_read);
        // The least reading on is no reason to wait for a read that it serves.
        let is_served = matches!(hit, Hit::Whole(segment) | Hit::Partial(segment) if being_read == Some(segment));
        let ready = if is_served { self.read_done.min(free) } else { free };
        let go = Go { asked, offset, arrived, free, ready };
        match hit {
            Hit::Miss => self.read_from_medium(actuator, &go),
            Hit::Whole(segment) | Hit::Partial(segment) => self.read_from_buffer(actuator, &go, segment),
        }
    }

    /// Serves a read for which the buffer has no sectors.
    fn read_from_medium(&mut self, actuator: &mut Actuator, go: &Go) -> Served {
        let overhead = self.read_miss(self.last_wrote);
        let being_read = self.reading.map(|reading| reading.segment());
        let stopped = self.stop_reading(actuator, go.arrived);
        let segment = self.segments.take_for_read(go.asked.start, being_read);
        let begin = (go.arrived + overhead).max(go.free).max(stopped);
        let limit = self.read_on_limit(actuator, go, segment);
        let wanted = self.wanted(go, segment, go.asked.start, limit);
        let (mut reading, spent) = Reading::begin(actuator, begin, &wanted);
        if self.is.keeps_sectors_before {
            let track = actuator.disk().geometry.track_of(Pba(go.asked.start.wrapping_sub(go.offset)));
            let before = go.asked.start - track.start.0.wrapping_add(go.offset);
            self.segments.start_earlier(segment, reading.passes_before(before));
        }
        let outgoing = Outgoing {
            start: go.asked.start,
            end: go.asked.end,
            held_until: go.asked.start,
            from: go.arrived
                + overhead
                + if self.is.never_disconnects { self.prepare() } else { self.read_disconnect() },
            connected: self.is.never_disconnects,
            disconnect: self.read_disconnect(),
        };
        let mut medium = Medium { actuator, reading: Some(&mut reading), spent };
        let gone = carry(&self.is, &mut medium, &outgoing, self.segments.size());
        let mut spent = medium.spent;
        let read = reading.time_of(actuator, go.asked.end, &mut spent);
        self.reading = Some(reading);
        self.answered(actuator, go, segment, gone, read, spent)
    }

    fn prepare(&self) -> SimDuration {
        SimDuration(self.is.data_prepare_ns)
    }

    /// Serves a read of which segment `segment` has all sectors or the first ones.
    fn read_from_buffer(&mut self, actuator: &mut Actuator, go: &Go, segment: usize) -> Served {
        let held = self.segments.sectors(segment);
        self.segments.use_again(segment);
        let whole = held.end >= go.asked.end;
        let miss = go.arrived + self.read_miss(self.last_wrote);
        let goes_on = self.reading.is_some_and(|reading| reading.segment() == segment && !reading.is_over(go.arrived));
        let stopped = if goes_on { go.arrived } else { self.stop_reading(actuator, go.arrived) };
        let mut spent = Spent::default();
        let begin = miss.max(go.free).max(stopped);
        let limit = self.read_on_limit(actuator, go, segment);
        if goes_on {
            let reading = self.reading.as_mut().expect("it goes on");
            reading.extend(actuator, limit.max(go.asked.end));
        } else if !whole || self.reads_on_from(actuator, go, held.end, limit) {
            let wanted = self.wanted(go, segment, held.end, limit.max(go.asked.end));
            let (reading, first) = Reading::begin(actuator, begin, &wanted);
            self.reading = Some(reading);
            spent = if whole { Spent::default() } else { first };
        }
        let at_once = whole || self.is.partial_hit_at_once || self.above_watermark(go, held.end);
        let connected = at_once && (!go.is_busy() || (whole && self.is.hits_while_busy)) || self.is.never_disconnects;
        let from = if connected {
            go.arrived + self.read_hit() + self.prepare()
        } else {
            (miss + self.read_disconnect()).max(go.ready)
        };
        let outgoing = Outgoing {
            start: go.asked.start,
            end: go.asked.end,
            held_until: held.end.min(go.asked.end),
            from,
            connected,
            disconnect: self.read_disconnect(),
        };
        let mut reading = self.reading;
        let mut medium = Medium { actuator, reading: reading.as_mut().filter(|_| !whole), spent };
        let gone = carry(&self.is, &mut medium, &outgoing, self.segments.size());
        let mut spent = medium.spent;
        let read = match &mut reading {
            Some(reading) if !whole => reading.time_of(actuator, go.asked.end, &mut spent),
            _ => go.arrived,
        };
        self.reading = reading;
        self.answered(actuator, go, segment, gone, read, spent)
    }

    /// Returns the sectors to be read for a read, from LBA `start` up to `limit`.
    fn wanted(&self, go: &Go, segment: usize, start: u64, limit: u64) -> Wanted {
        let on_arrival = self.is.reads_on_arrival;
        Wanted { segment, offset: go.offset, start, requested_end: go.asked.end, limit, on_arrival }
    }

    /// Returns whether the drive reads on from LBA `start` to `limit` after a read whose sectors were all in the
    /// buffer. With `track` or `cylinder` it does so only if the arm is there already.
    fn reads_on_from(&self, actuator: &Actuator, go: &Go, start: u64, limit: u64) -> bool {
        if !self.is.read_on_after_hit || limit <= start || go.is_busy() {
            return false;
        }
        let place = actuator.disk().geometry.locate(Pba(start.wrapping_sub(go.offset)));
        let in_cylinder = place.radial_track == actuator.radial_track();
        match self.is.read_on {
            ReadOn::Track => in_cylinder && place.surface == actuator.surface(),
            ReadOn::Cylinder => in_cylinder,
            ReadOn::None | ReadOn::Segment | ReadOn::NextTrack => true,
        }
    }

    /// Returns whether enough of a read's sectors are in the buffer to take the bus for them at once.
    fn above_watermark(&self, go: &Go, held_end: u64) -> bool {
        let sectors = go.asked.end - go.asked.start;
        held_end - go.asked.start >= bus::watermark(&self.is, sectors, self.segments.size()).min(sectors)
    }

    /// Returns the times of a read whose data were sent by `gone` and read from the medium by `read`.
    fn answered(
        &mut self,
        actuator: &mut Actuator,
        go: &Go,
        segment: usize,
        gone: SimTime,
        read: SimTime,
        mut spent: Spent,
    ) -> Served {
        let answered = gone + SimDuration(self.is.read_complete_ns);
        self.segments.reach(segment, go.asked.end);
        if self.is.drops_requested {
            self.segments.drop_before(segment, go.asked.end);
        }
        let mut free = read.max(answered);
        self.read_done = free;
        if let Some(reading) = self.reading.as_mut().filter(|_| self.is.read_on_min_sectors > 0) {
            let least = (go.asked.end + self.is.read_on_min_sectors as u64).min(reading.limit());
            self.least_done = reading.time_of(actuator, least, &mut spent);
            free = free.max(self.least_done);
        }
        self.stream = None;
        let (seek, rotation, transfer) = (spent.seek, spent.rotation, spent.transfer);
        Served { answered, free: free.max(go.free), seek, rotation, transfer }
    }

    /// Returns the LBA up to which the drive reads on after this read.
    fn read_on_limit(&self, actuator: &Actuator, go: &Go, segment: usize) -> u64 {
        let end = go.asked.end;
        let geometry = &actuator.disk().geometry;
        let pba = |lba: u64| Pba(lba.wrapping_sub(go.offset));
        let disk_end = geometry.sectors().0.wrapping_add(go.offset);
        let track_end = |lba: u64| geometry.track_of(pba(lba)).end().0.wrapping_add(go.offset);
        let most =
            if self.is.read_on_max_sectors > 0 { self.is.read_on_max_sectors as u64 } else { self.segments.size() };
        let limit = match self.is.read_on {
            ReadOn::None => end,
            ReadOn::Track => track_end(end - 1).min(end + most),
            ReadOn::Cylinder => self.cylinder_end(actuator, go, end + most),
            ReadOn::Segment if self.is.read_on_max_sectors == 0 && !self.is.read_on_over_requested => {
                go.asked.start + self.segments.size()
            }
            ReadOn::Segment => end + most,
            ReadOn::NextTrack if end >= disk_end => end,
            ReadOn::NextTrack => {
                let track = geometry.track_of(pba(end));
                let start = track.start.0.wrapping_add(go.offset);
                let (end_of_track, sectors) = (track.end().0.wrapping_add(go.offset), track.sectors.0);
                let reaches_back = self.segments.sectors(segment).start.min(go.asked.start) < start;
                let limit = if reaches_back { end_of_track + sectors } else { end_of_track };
                if self.is.read_on_max_sectors > 0 { limit.min(end + most) } else { limit }
            }
        };
        limit.max(end + self.is.read_on_min_sectors as u64).clamp(end, disk_end.max(end))
    }

    fn cylinder_end(&self, actuator: &Actuator, go: &Go, most: u64) -> u64 {
        let geometry = &actuator.disk().geometry;
        let last = Pba((go.asked.end - 1).wrapping_sub(go.offset));
        let cylinder = geometry.locate(last).radial_track;
        let mut end = geometry.track_of(last).end();
        while end.0 < geometry.sectors().0 && geometry.locate(end).radial_track == cylinder {
            end = geometry.track_of(end).end();
        }
        end.0.wrapping_add(go.offset).min(most)
    }

    fn write(
        &mut self,
        actuator: &mut Actuator,
        command: &Command,
        run: Pba,
        arrived: SimTime,
        free: SimTime,
    ) -> Served {
        let asked = sectors_of(command);
        let sectors = asked.end - asked.start;
        let being_read = self.reading.map(|reading| reading.segment());
        let stopped = self.stop_reading(actuator, arrived);
        let early = self.is.immediate_report != ImmediateReport::Never && !command.fua;
        let stream = self.stream.filter(|stream| early && stream.lba == asked.start && stream.pba == run.0);
        let stream = stream.filter(|stream| arrived < stream.until && stream.until == free);
        let way = self.way_of(&asked, arrived, free, early, stream.is_some());
        let segment = self.segments.take_for_write(&asked, being_read, stream.map(|stream| stream.segment));
        let incoming = Incoming {
            from: way.bus,
            sector: SimDuration(self.is.bus_write_sector_ns),
            start: self.start_sectors(sectors),
        };
        let seek_min = if stream.is_some() { 0 } else { self.is.write_seek_min_ns };
        let put = Put {
            extent: Extent::new(run, Sectors(sectors)),
            from: way.arm.max(stopped).max(free),
            seek_min: SimDuration(seek_min),
            on_arrival: self.is.writes_on_arrival,
        };
        let (down, spent) = write(actuator, &put, &incoming);
        let come = incoming.come(sectors);
        self.segments.reach(segment, asked.end);
        let complete = SimDuration(self.is.write_complete_ns);
        if !early {
            self.stream = None;
            let reported = if self.is.never_disconnects {
                come.max(down)
            } else {
                (come + way.disconnect).max(down) + way.reselect
            };
            let answered = reported + complete;
            let Spent { seek, rotation, transfer } = spent;
            return Served { answered, free: answered.max(free), seek, rotation, transfer };
        }
        // A write longer than a segment waits for room, which writing to the medium frees.
        let answered = if sectors > self.segments.size() { come.max(down) } else { come } + complete;
        let started = stream.map_or(put.from, |stream| stream.started);
        self.stream =
            Some(Stream { lba: asked.end, pba: run.0 + sectors, segment, until: down.max(answered), started });
        let zero = SimDuration::ZERO;
        Served { answered, free: down.max(answered), seek: zero, rotation: zero, transfer: zero }
    }

    /// Returns the number of sectors that have to arrive before a write of `sectors` begins on the medium.
    fn start_sectors(&self, sectors: u64) -> u64 {
        let start = self.is.extra_disconnect.map_or(0, |extra| {
            if sectors < extra.long_from_sectors as u64 { extra.start_sectors } else { extra.long_start_sectors }
        });
        (start as u64).min(sectors)
    }

    /// Returns when the data of a write arrive and when its arm may move, with the times of leaving and taking the bus.
    fn way_of(&self, asked: &Range<u64>, arrived: SimTime, free: SimTime, early: bool, goes_on: bool) -> Way {
        let (is, wrote) = (&self.is, self.last_wrote);
        let overhead = SimDuration(match (early, wrote) {
            (true, false) => is.write_hit_after_read_ns,
            (true, true) => is.write_hit_after_write_ns,
            (false, false) => is.write_miss_after_read_ns,
            (false, true) => is.write_miss_after_write_ns,
        });
        let (prepare, reselect) = (self.prepare(), SimDuration(is.reselect_ns));
        let disconnect = SimDuration(is.write_disconnect_ns);
        let waits = free > arrived && !goes_on && !is.never_disconnects;
        let elsewhere = self.last_write_end.is_some_and(|end| end != asked.start);
        if let Some(extra) = is.extra_disconnect.filter(|_| elsewhere && !waits && !is.never_disconnects) {
            let left = arrived + SimDuration(extra.command_ns + extra.disconnect_ns + extra.pause_ns);
            return Way {
                bus: left + reselect + prepare,
                arm: arrived + SimDuration(extra.command_ns + extra.seek_delay_ns),
                disconnect: SimDuration(extra.second_disconnect_ns),
                reselect: SimDuration(is.reselect_again_ns),
            };
        }
        let arm = arrived + overhead;
        let bus = if waits { (arm + disconnect).max(free) + reselect + prepare } else { arm + prepare };
        Way { bus, arm, disconnect, reselect }
    }
}

/// A read that is being served.
#[derive(Clone, Debug)]
struct Go {
    asked: Range<u64>,
    /// Difference of LBA and PBA, which is constant in the run.
    offset: u64,
    arrived: SimTime,
    free: SimTime,
    /// Time from which on the drive may send sectors of the read: `free`, or earlier if the drive is reading on for it.
    ready: SimTime,
}

impl Go {
    /// Returns whether the drive works for another command when the read arrives.
    fn is_busy(&self) -> bool {
        self.ready > self.arrived
    }
}

/// Times of a write on the bus.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Time at which its data begin to arrive.
    bus: SimTime,
    /// Time at which the arm may move.
    arm: SimTime,
    /// Time of leaving the bus after the data.
    disconnect: SimDuration,
    /// Time of taking the bus again for the report.
    reselect: SimDuration,
}

fn sectors_of(command: &Command) -> Range<u64> {
    command.lba.0..command.end().0
}
