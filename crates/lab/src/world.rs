//! The loop that moves time: events of the drives and of the guest, one after the other.
//!
//! ```text
//!   guest waits ─► the earliest of: an answer of a drive, the guest's own event, work of a drive ─► guest runs ─► …
//! ```
//!
//! At equal times, answers of drives come first, then the guest, then the drives' choice of their next work: a drive
//! sees all requests that the guest sends at that time. So the drive completes requests as in a simulation of the same
//! requests.
//!
//! Invariants:
//! 1. The guest runs only up to the next event of a drive.
//! 2. No decision depends on the machine's clock, except that a guest that computes too long is ended.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use imbrex_device::{Completion, EmulatedDrive, Io, IoKind};
use imbrex_disk::SimTime;
use imbrex_serve::Facts;
use imbrex_serve::vhost_user::{Backend, BlockDevice, Effect, Message, Session, Submitted, device_of, wait};
use imbrex_sim::Stepped;

use crate::Limits;
use crate::calendar::{Calendar, Heard};

/// Virtual time for which the guest runs without asking its clock, at most. So the time of a mark is known this well.
const FREE_TIME_NS: u64 = 10_000;
/// Wall-clock time within which the kernel answers an interrupt.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// Interval at which a long computation of the guest is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A drive, as the guest sees it in virtual time. The drive's own clock begins with its first request, as in a simulation of
/// its log.
pub(crate) struct VirtualDrive {
    pub(crate) drive: EmulatedDrive,
    now: SimTime,
    /// Time of the first request.
    begun: Option<SimTime>,
    /// Completed requests whose answers are not due yet, by the time of the answer and their order.
    due: BTreeMap<(SimTime, u64), Completion>,
    next_order: u64,
    /// Time of the drive's next work, if it has any.
    work_at: Option<SimTime>,
    log: Log,
}

impl Backend for VirtualDrive {
    fn with<T>(&mut self, look: impl FnOnce(&mut EmulatedDrive) -> T) -> T {
        look(&mut self.drive)
    }

    fn submit(&mut self, io: Io) -> Submitted {
        let entry = Entry { arrival: self.now, kind: io.kind, offset: io.offset, bytes: io.length, answered: None };
        let begun = *self.begun.get_or_insert(self.now);
        match self.drive.submit(since(self.now, begun), io) {
            Ok(number) => {
                self.log.submitted(number, entry);
                self.work_at = Some(self.work_at.map_or(self.now, |at| at.min(self.now)));
                Submitted::Accepted(number)
            }
            Err(error) => {
                self.log.counts.refused += 1;
                Submitted::Answered(Vec::new(), Err(error))
            }
        }
    }
}

impl VirtualDrive {
    pub(crate) fn new(drive: EmulatedDrive, log: Option<Box<dyn Write + Send>>) -> VirtualDrive {
        VirtualDrive {
            drive,
            now: SimTime::ZERO,
            begun: None,
            due: BTreeMap::new(),
            next_order: 0,
            work_at: None,
            log: Log::new(log),
        }
    }

    /// Lets the drive do all work that begins at or before `until`.
    fn work(&mut self, until: SimTime) {
        let begun = self.begun.expect("a drive works from its first request on");
        let of_guest = |time: SimTime| SimTime(time.0 + begun.0);
        self.work_at = match self.drive.advance(since(until, begun)) {
            Stepped::NotBefore(time) => Some(of_guest(time)),
            Stepped::Idle | Stepped::Worked => None,
        };
        for mut completion in self.drive.completions() {
            completion.end = of_guest(completion.end);
            self.due.insert((completion.end, self.next_order), completion);
            self.next_order += 1;
        }
    }

    fn answer_at(&self) -> Option<SimTime> {
        self.due.keys().next().map(|(time, _)| *time)
    }

    /// Removes and returns the next completed request, if its answer is due by `now`.
    fn take_answer(&mut self, now: SimTime) -> Option<Completion> {
        (self.answer_at()? <= now).then(|| self.due.pop_first())?.map(|(_, completion)| completion)
    }

    /// Writes the rest of the log.
    /// Counts, and explains, only requests from now on. The log has all.
    fn count_from_now(&mut self) {
        self.log.counts = Counts::default();
        self.drive.explain_from_now();
    }

    pub(crate) fn finish_log(&mut self) -> io::Result<Counts> {
        self.log.finish()
    }
}

/// Returns the time since `begun`.
fn since(time: SimTime, begun: SimTime) -> SimTime {
    SimTime(time.0 - begun.0)
}

/// A request in the log of a drive.
#[derive(Clone, Copy, Debug)]
struct Entry {
    arrival: SimTime,
    kind: IoKind,
    offset: u64,
    bytes: u64,
    answered: Option<(SimTime, bool)>,
}

/// Numbers of requests of a drive: those that arrived or were answered after the start of the command, or, if that never
/// started, all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Counts {
    /// Reads that were completed.
    pub reads: u64,
    /// Writes that were completed.
    pub writes: u64,
    /// Flushes that were completed.
    pub flushes: u64,
    /// Trims that were completed.
    pub trims: u64,
    /// Bytes of the completed reads.
    pub read_bytes: u64,
    /// Bytes of the completed writes.
    pub written_bytes: u64,
    /// Completed requests with an error.
    pub errors: u64,
    /// Requests that the drive refused.
    pub refused: u64,
    /// Sum of the latencies of all completed requests, from arrival to answer, in nanoseconds.
    pub latency_sum_ns: u64,
    /// Longest latency of a completed request, in nanoseconds.
    pub latency_max_ns: u64,
}

/// The log of a drive's requests, one line each in order of arrival.
struct Log {
    writer: Option<Box<dyn Write + Send>>,
    first: u64,
    waiting: VecDeque<Entry>,
    counts: Counts,
    failure: Option<io::Error>,
}

/// Header of the log: times in seconds, lengths in bytes.
const LOG_HEADER: &str = "time,op,offset,size,device,latency,outcome\n";

impl Log {
    fn new(mut writer: Option<Box<dyn Write + Send>>) -> Log {
        let failure = writer.as_mut().and_then(|writer| writer.write_all(LOG_HEADER.as_bytes()).err());
        Log { writer, first: 0, waiting: VecDeque::new(), counts: Counts::default(), failure }
    }

    fn submitted(&mut self, number: u64, entry: Entry) {
        if self.waiting.is_empty() {
            self.first = number;
        }
        assert_eq!(number, self.first + self.waiting.len() as u64, "the drive numbers requests in order");
        self.waiting.push_back(entry);
    }

    fn answered(&mut self, completion: &Completion) {
        let is_good = completion.outcome.is_ok();
        let index = (completion.number - self.first) as usize;
        let entry = &mut self.waiting[index];
        entry.answered = Some((completion.end, is_good));
        let latency = completion.end.0 - entry.arrival.0;
        let counts = &mut self.counts;
        let (count, bytes) = match entry.kind {
            IoKind::Read => (&mut counts.reads, Some(&mut counts.read_bytes)),
            IoKind::Write { .. } => (&mut counts.writes, Some(&mut counts.written_bytes)),
            IoKind::Flush => (&mut counts.flushes, None),
            IoKind::Trim => (&mut counts.trims, None),
        };
        *count += 1;
        if let Some(sum) = bytes {
            *sum += entry.bytes;
        }
        counts.errors += u64::from(!is_good);
        counts.latency_sum_ns += latency;
        counts.latency_max_ns = counts.latency_max_ns.max(latency);
        while let Some(&entry) = self.waiting.front().filter(|entry| entry.answered.is_some()) {
            self.waiting.pop_front();
            self.first += 1;
            self.write(&entry);
        }
    }

    fn write(&mut self, entry: &Entry) {
        let Some(writer) = self.writer.as_mut().filter(|_| self.failure.is_none()) else { return };
        let word = match entry.kind {
            IoKind::Read => "read",
            IoKind::Write { fua: false } => "write",
            IoKind::Write { fua: true } => "write-fua",
            IoKind::Flush => "flush",
            IoKind::Trim => "trim",
        };
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let (latency, outcome) = match entry.answered {
            Some((end, true)) => (seconds(end.0 - entry.arrival.0), "ok"),
            Some((end, false)) => (seconds(end.0 - entry.arrival.0), "error"),
            None => (String::new(), "lost"),
        };
        let (time, offset, bytes) = (seconds(entry.arrival.0), entry.offset, entry.bytes);
        let written = writeln!(writer, "{time},{word},{offset},{bytes},0,{latency},{outcome}");
        self.failure = written.err();
    }

    fn finish(&mut self) -> io::Result<Counts> {
        while let Some(entry) = self.waiting.pop_front() {
            self.write(&entry);
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if let Some(writer) = &mut self.writer {
            writer.flush()?;
        }
        Ok(self.counts)
    }
}

/// A drive, and the connection over which the guest uses it.
struct Attached {
    listener: UnixListener,
    connection: Option<(UnixStream, BlockDevice)>,
    facts: Facts,
    drive: VirtualDrive,
    /// Whether requests were returned to the running guest, which is to be told as soon as it waits.
    is_due: bool,
}

/// The reason why a run has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The command ended with this status.
    Command(u8),
    /// The preparation of the guest, such as the making of a file system, ended with this status.
    Preparation(u8),
    /// The power was cut at the time asked for.
    Cut,
    /// The limit of virtual time was reached.
    Limit,
    /// The guest waits, and nothing will ever wake it.
    Deadlock,
    /// The guest computed for this much wall-clock time without a wait.
    Busy(Duration),
    /// The kernel ended.
    Kernel,
    /// The caller asked for the end.
    Interrupted,
}

/// Numbers that the guest writes to its clock. The low eight bits are a status.
pub(crate) mod mark {
    /// The command begins.
    pub(crate) const BEGIN: u64 = 0x100;
    /// The command has ended, and the file systems are unmounted.
    pub(crate) const END: u64 = 0x200;
    /// The preparation failed.
    pub(crate) const FAILED: u64 = 0x300;
    /// The command has ended, before the file systems are unmounted.
    pub(crate) const COMMAND_END: u64 = 0x400;
}

/// Times of the guest, in virtual time since the start of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Times {
    pub(crate) begun: Option<SimTime>,
    pub(crate) command_ended: Option<SimTime>,
    pub(crate) ended: SimTime,
}

/// A kernel with its clock and its drives.
pub(crate) struct World {
    calendar: Calendar,
    drives: Vec<Attached>,
    limits: Limits,
    times: Times,
    status: u8,
}

impl World {
    /// Creates a world for the kernel that keeps its clock by `calendar`. It will connect to the listeners, one for each
    /// drive.
    pub(crate) fn new(calendar: Calendar, drives: Vec<(UnixListener, VirtualDrive)>, limits: Limits) -> World {
        let attach = |(listener, drive): (UnixListener, VirtualDrive)| {
            let facts = Facts::of(&drive.drive, false);
            Attached { listener, connection: None, facts, drive, is_due: false }
        };
        World { calendar, drives: drives.into_iter().map(attach).collect(), limits, times: Times::default(), status: 0 }
    }

    /// Moves time until the run ends. `look` is called now and then with the time, and returns whether to end.
    ///
    /// # Errors
    ///
    /// A socket fails, or the kernel breaks a protocol.
    pub(crate) fn run(&mut self, look: &mut dyn FnMut(SimTime, Option<SimTime>) -> bool) -> io::Result<Ended> {
        let mut looked = Instant::now();
        loop {
            if let Some(ended) = self.serve_guest(look)? {
                return Ok(self.end(ended));
            }
            if looked.elapsed() >= LOOK_EVERY {
                looked = Instant::now();
                if look(self.calendar.now(), self.times.begun) {
                    return Ok(self.end(Ended::Interrupted));
                }
            }
            if let Some(ended) = self.step()? {
                return Ok(self.end(ended));
            }
        }
    }

    fn end(&mut self, ended: Ended) -> Ended {
        self.times.ended = self.calendar.now();
        ended
    }

    /// Returns the times of the guest.
    pub(crate) fn times(&self) -> Times {
        self.times
    }

    /// Returns the drives.
    pub(crate) fn into_drives(self) -> Vec<VirtualDrive> {
        self.drives.into_iter().map(|attached| attached.drive).collect()
    }

    /// Returns the time of the power cut, once the command has begun.
    fn cut_at(&self) -> Option<SimTime> {
        let (cut, begun) = (self.limits.cut?, self.times.begun?);
        Some(SimTime(begun.0.saturating_add(cut.as_nanos() as u64)))
    }

    /// Returns the time up to which the guest may run: the next event, and not so far that [`Calendar::now`] is off by
    /// more than [`FREE_TIME_NS`].
    fn permitted(&self) -> SimTime {
        let now = self.calendar.now();
        let of_drives =
            self.drives.iter().flat_map(|attached| [attached.drive.answer_at(), attached.drive.work_at]).flatten();
        let due = self.drives.iter().any(|attached| attached.is_due).then_some(now);
        let latest = SimTime(now.0.saturating_add(FREE_TIME_NS));
        of_drives.chain(due).chain(self.cut_at()).min().map_or(latest, |event| event.min(latest))
    }

    /// Moves time to the next event while the guest waits, and lets the guest run if the event is its own.
    fn step(&mut self) -> io::Result<Option<Ended>> {
        for index in 0..self.drives.len() {
            if std::mem::take(&mut self.drives[index].is_due) {
                self.interrupt(index)?;
            }
        }
        let wanted = self.calendar.wanted();
        let answer = self.drives.iter().filter_map(|attached| attached.drive.answer_at()).min();
        let work = self.drives.iter().filter_map(|attached| attached.drive.work_at).min();
        let Some(next) = [answer, wanted, work].into_iter().flatten().min() else {
            return Ok(Some(if self.cut_at().is_some() { self.cut() } else { Ended::Deadlock }));
        };
        if self.cut_at().is_some_and(|cut| next >= cut) {
            return Ok(Some(self.cut()));
        }
        if next.0 > self.limits.time.as_nanos() as u64 {
            return Ok(Some(Ended::Limit));
        }
        // Work that is due may lie before the latest request of the guest.
        let now = next.max(self.calendar.now());
        if answer == Some(next) {
            self.calendar.set_now(now);
            self.answer(now)?;
        } else if wanted == Some(next) {
            self.calendar.run(now, self.permitted())?;
        } else {
            for attached in &mut self.drives {
                if attached.drive.work_at == Some(next) {
                    attached.drive.work(next);
                }
            }
        }
        Ok(None)
    }

    fn cut(&mut self) -> Ended {
        if let Some(at) = self.cut_at() {
            self.calendar.set_now(at.max(self.calendar.now()));
        }
        Ended::Cut
    }

    /// Gives the guest all answers that are due, and its interrupts.
    fn answer(&mut self, now: SimTime) -> io::Result<()> {
        for index in 0..self.drives.len() {
            let Attached { connection, drive, .. } = &mut self.drives[index];
            drive.now = now;
            let Some((_, device)) = connection else { continue };
            while let Some(completion) = drive.take_answer(now) {
                drive.log.answered(&completion);
                device.completed(completion.number, &completion.buffer, &completion.outcome, drive)?;
            }
            self.interrupt(index)?;
        }
        Ok(())
    }

    /// Tells the guest about queues of a drive whose requests were returned.
    fn interrupt(&mut self, index: usize) -> io::Result<()> {
        let Some((_, device)) = &mut self.drives[index].connection else { return Ok(()) };
        for queue in device.take_returned() {
            let Some((socket, message)) = device.session().call(queue) else { continue };
            message.send(socket)?;
            // The guest asks its clock for the time before it answers.
            loop {
                let ready = wait(&[socket.as_fd(), self.calendar.socket()], ANSWER_TIME)?;
                match ready.first() {
                    Some(0) => {
                        Message::receive(socket)?;
                        break;
                    }
                    Some(_) => {
                        if self.calendar.hear()? == Heard::Ended {
                            return Err(io::Error::other("the kernel ended while it was interrupted"));
                        }
                    }
                    None => return Err(io::Error::other("the kernel does not answer an interrupt")),
                }
            }
        }
        Ok(())
    }

    /// Serves the running guest until it waits. Returns the reason if the run ends.
    fn serve_guest(&mut self, look: &mut dyn FnMut(SimTime, Option<SimTime>) -> bool) -> io::Result<Option<Ended>> {
        // After an answer of a drive, the guest still waits.
        if !self.calendar.is_guest_running() {
            return Ok(None);
        }
        let mut quiet_since = Instant::now();
        loop {
            let sockets = self.drives.iter().map(|attached| match &attached.connection {
                Some((stream, _)) => stream.as_fd(),
                None => attached.listener.as_fd(),
            });
            let fds: Vec<_> = [self.calendar.socket()].into_iter().chain(sockets).collect();
            let ready = wait(&fds, LOOK_EVERY)?;
            if ready.is_empty() {
                if look(self.calendar.now(), self.times.begun) {
                    return Ok(Some(Ended::Interrupted));
                }
                let quiet = quiet_since.elapsed();
                if quiet >= self.limits.busy {
                    return Ok(Some(Ended::Busy(quiet)));
                }
                continue;
            }
            quiet_since = Instant::now();
            // A request comes before the clock's message: the guest sent it first.
            for &index in ready.iter().filter(|&&index| index > 0) {
                if let Some(ended) = self.serve_drive(index - 1)? {
                    return Ok(Some(ended));
                }
            }
            if ready.first() == Some(&0) {
                match self.calendar.hear()? {
                    Heard::Nothing => {}
                    Heard::Waits => return Ok(None),
                    Heard::Ended => return Ok(Some(Ended::Kernel)),
                    Heard::Mark(number) => {
                        if let Some(ended) = self.marked(number) {
                            return Ok(Some(ended));
                        }
                    }
                }
            }
        }
    }

    fn marked(&mut self, number: u64) -> Option<Ended> {
        let now = self.calendar.now();
        let status = (number & 0xff) as u8;
        match number & !0xff {
            mark::BEGIN => {
                self.times.begun = Some(now);
                self.drives.iter_mut().for_each(|attached| attached.drive.count_from_now());
                self.calendar.permit_until(self.permitted());
                None
            }
            mark::COMMAND_END => {
                self.times.command_ended = Some(now);
                self.status = status;
                None
            }
            mark::END => Some(Ended::Command(self.status)),
            mark::FAILED => Some(Ended::Preparation(status)),
            _ => None,
        }
    }

    /// Serves one message of the guest to a drive, or its connection.
    fn serve_drive(&mut self, index: usize) -> io::Result<Option<Ended>> {
        let now = self.calendar.now();
        let Attached { listener, connection, facts, drive, is_due } = &mut self.drives[index];
        let Some((stream, device)) = connection else {
            let (stream, _) = listener.accept()?;
            let (features, config) = device_of(facts, 1, facts.has_volatile_cache);
            *connection = Some((stream, BlockDevice::new(Session::new(features, config, 1, true), facts)));
            return Ok(None);
        };
        let Some(mut message) = Message::receive(stream)? else { return Ok(Some(Ended::Kernel)) };
        let (answer, effect) = device.session_mut().handle(&mut message)?;
        if let Effect::Kicked(queue) = effect {
            drive.now = now;
            device.kicked(queue, drive)?;
            // Such as a report of zones, and a request that was refused.
            *is_due |= device.has_returned();
        }
        self.calendar.permit_until(self.permitted());
        if let (Some(answer), Some((stream, _))) = (answer, &self.drives[index].connection) {
            answer.send(stream)?;
        }
        Ok(None)
    }
}
