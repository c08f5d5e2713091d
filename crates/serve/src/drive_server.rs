//! The server of an emulated drive: takes requests from any number of protocol threads, and answers each at the time at
//! which the drive would.
//!
//! Without a pace a request is served in the caller's thread, under the lock, and is answered at once. For the drive
//! the request arrives when the previous one was answered. Simulated time stands still until [`IDLE_GRACE`] without
//! requests, and then advances with the wall clock. So the volatile cache is written back when the drive would have
//! done so, and until then its contents are lost if the process dies.
//!
//! With a pace, requests arrive at the simulated time of the wall clock. The pacer thread advances the drive up to the
//! present, and passes each completion to its caller when the completion is due. Idle time passes for the drive, too,
//! so it cleans.
//!
//! Invariants:
//! 1. Every request is answered once: by the error of its submission, or under its number. The caller has the number
//!    before the answer.
//! 2. No answer is given before its time; how much later it is given is counted.
//! 3. The drive begins no work before its time: at no pace does it write back or clean early.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use imbrex_device::media::host_file::HostFile;
use imbrex_device::pacing::{Pace, PacedClock};
use imbrex_device::zoned::ZonedMode;
use imbrex_device::{Completion, DeviceError, EmulatedDrive, Io, IoKind};
use imbrex_disk::SimTime;
use imbrex_sim::Stepped;

use crate::statistics::Statistics;

/// Interval at which an unpaced drive checks whether it has become idle.
const IDLE_TICK: Duration = Duration::from_millis(50);
/// Time without requests after which further time counts as idle, for an unpaced drive.
const IDLE_GRACE: Duration = Duration::from_millis(100);

/// Maximum by which a late answer backdates the next request: about a rotation. Of a longer delay the client may be the
/// cause.
const LATENESS_FORGIVEN_MAX: Duration = Duration::from_millis(10);

/// The answer of a served drive to one request.
#[derive(Debug)]
pub struct Answer {
    /// The bytes read, if the request is a successful read. Otherwise a buffer for reuse, with unspecified contents,
    /// which may be empty.
    pub buffer: Vec<u8>,
    /// `Ok` if the drive carried out the request, otherwise the reason why not.
    pub outcome: Result<(), DeviceError>,
    /// Wall-clock time at which the answer was due: the end of the request at the drive's pace. Without a pace, or if
    /// the drive refused the request, the time at which the answer was made.
    pub due: Instant,
}

impl Answer {
    /// Returns the answer to a request that the drive refused, due now. `buffer` is for reuse.
    pub(crate) fn refused(buffer: Vec<u8>, error: DeviceError) -> Answer {
        Answer { buffer, outcome: Err(error), due: Instant::now() }
    }
}

/// Returns `seen`, the time at which a request arrived, less `late`, the lateness of the answer before it. At most
/// 10 ms are taken off. A client that waits for an answer before its next request sends that request later by `late`.
pub fn backdate(seen: Instant, late: Duration) -> Instant {
    seen.checked_sub(late.min(LATENESS_FORGIVEN_MAX)).unwrap_or(seen)
}

/// Returns the simulated time of an unpaced drive, `quiet` after its last request was answered at simulated time `time`.
fn time_after(time: SimTime, quiet: Duration) -> SimTime {
    SimTime(time.0.saturating_add(quiet.saturating_sub(IDLE_GRACE).as_nanos() as u64))
}

/// Receiver of the answers of a paced drive. Called in the pacer's thread, so an implementation must not block.
pub trait Target: Send + Sync {
    /// Receives the answer to the request with `number`, the number that [`DriveServer::submit`] passed to its
    /// `accepted`. Called once for each accepted request.
    fn answer(&self, number: u64, answer: Answer);
}

/// A request for whose answer a thread waits.
#[derive(Default)]
struct Waited {
    answer: Mutex<Option<Answer>>,
    arrived: Condvar,
}

impl Target for Waited {
    fn answer(&self, _number: u64, answer: Answer) {
        *self.answer.lock().expect("no thread panics while it holds the answer") = Some(answer);
        self.arrived.notify_one();
    }
}

/// A request whose completion is known but not due yet.
struct Due {
    at: Instant,
    order: u64,
    completion: Completion,
    target: Arc<dyn Target>,
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// The drive and its requests in flight.
struct Inner {
    drive: EmulatedDrive,
    /// Receivers of the answers to the requests in flight, by the drive's numbers of the requests.
    callers: BTreeMap<u64, Arc<dyn Target>>,
    statistics: Statistics,
    /// Without a pace: the time of the latest answer, on the wall clock and in the host's simulated time.
    quiet_since: (Instant, SimTime),
}

/// A served drive: an emulated drive behind a lock, with a thread that advances it in time. Any number of threads may
/// send it requests.
pub struct DriveServer {
    inner: Mutex<Inner>,
    wake: Condvar,
    clock: PacedClock,
    stopping: AtomicBool,
    facts: Facts,
    host_file: Option<Arc<HostFile>>,
}

/// Properties of a served drive that do not change, and that protocols report to their clients.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Specification of the drive, as the user wrote it: `PROFILE[+LAYER][:key=value,…]`.
    pub label: String,
    /// Capacity that clients see, in bytes.
    pub capacity_bytes: u64,
    /// Size of a sector in bytes. Offsets and lengths of requests must be multiples of it.
    pub sector_bytes: u32,
    /// Whether the drive is served read-only: writes and trims are refused.
    pub read_only: bool,
    /// Whether trimmed sectors read as zeros until they are written again.
    pub trims_to_zeros: bool,
    /// Whether the drive has a volatile write cache, whose contents are lost without a flush when the power fails.
    pub has_volatile_cache: bool,
    /// Sizes and limits of the drive's zones; `None` for a drive that is not zoned.
    pub zones: Option<ZonedMode>,
    /// Whether the drive permits writes that destroy data in other sectors, and leaves it to the host to avoid or
    /// expect this (a caveat disk).
    pub leaves_damage_to_host: bool,
}

impl Facts {
    /// Returns the properties of `drive`, which is served read-only or not.
    pub fn of(drive: &EmulatedDrive, read_only: bool) -> Facts {
        Facts {
            label: drive.drive().label.clone(),
            capacity_bytes: drive.capacity_bytes(),
            sector_bytes: drive.sector_bytes(),
            read_only,
            trims_to_zeros: drive.drive().layer.keeps_trims(),
            has_volatile_cache: drive.drive().host.write_cache_bytes > 0,
            zones: drive.zoned_mode(),
            leaves_damage_to_host: drive.drive().disk.recording.leaves_damage_to_host(),
        }
    }
}

impl DriveServer {
    /// Starts to serve `drive`, and starts a thread that advances the drive in time. `pace` is the ratio of simulated
    /// to real time, or none: then requests are answered at once. Returns the server and that thread, which ends during
    /// [`DriveServer::stop`]. With `read_only`, writes and trims are refused.
    ///
    /// # Panics
    ///
    /// If the thread cannot be started.
    pub fn start(drive: EmulatedDrive, pace: Pace, read_only: bool) -> (Arc<DriveServer>, JoinHandle<()>) {
        let facts = Facts::of(&drive, read_only);
        let host_file = drive.host_file();
        let inner = Inner {
            drive,
            callers: BTreeMap::new(),
            statistics: Statistics::new(),
            quiet_since: (Instant::now(), SimTime::ZERO),
        };
        let front = Arc::new(DriveServer {
            inner: Mutex::new(inner),
            wake: Condvar::new(),
            clock: PacedClock::start(pace),
            stopping: AtomicBool::new(false),
            facts,
            host_file,
        });
        let worker = front.clone();
        let thread = std::thread::Builder::new()
            .name("pacer".into())
            .spawn(move || match pace {
                Pace::Times(_) => worker.pace(),
                Pace::None => worker.watch_for_idleness(),
            })
            .expect("a thread can be started");
        (front, thread)
    }

    /// Returns the properties of the drive that do not change, such as its capacity.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns the file on the host that stores the drive's image; `None` for a drive in memory.
    pub fn host_file(&self) -> Option<&Arc<HostFile>> {
        self.host_file.as_ref()
    }

    /// Returns whether the drive has no pace: [`DriveServer::serve`] answers each request at once, in the caller's
    /// thread.
    pub fn is_unpaced(&self) -> bool {
        self.clock.pace() == Pace::None
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A thread that panicked has left the drive in an unknown state: better to end than to go on.
        self.inner.lock().expect("no thread panics while it holds the drive")
    }

    /// Calls `look` with the drive and its statistics, and returns the result of `look`. The lock of the drive is held
    /// meanwhile, so requests wait, and `look` must not call the server.
    pub fn with<T>(&self, look: impl FnOnce(&mut EmulatedDrive, &mut Statistics) -> T) -> T {
        let mut inner = self.lock();
        let inner = &mut *inner;
        look(&mut inner.drive, &mut inner.statistics)
    }

    /// Returns the reason why the drive has stopped, such as a failure of its medium; `None` while it works. A stopped
    /// drive answers only reads.
    pub fn trouble(&self) -> Option<String> {
        self.lock().drive.stopped().map(str::to_string)
    }

    /// Returns the current simulated time: that of the wall clock at the drive's pace, or, without a pace, the time
    /// that the drive has reached.
    pub fn now(&self) -> SimTime {
        match self.clock.pace() {
            Pace::Times(_) => self.clock.at(Instant::now()),
            Pace::None => self.lock().drive.now(),
        }
    }

    /// Serves a request of a drive without a pace in this thread, and returns its answer. Before that, the drive
    /// advances through the idle time since the previous answer, of which the first 100 ms do not count. A refused
    /// request has an error as the outcome of its answer.
    ///
    /// # Panics
    ///
    /// If the drive has a pace.
    pub fn serve(&self, io: Io) -> Answer {
        assert!(self.is_unpaced(), "a paced drive answers by itself");
        let kind = io.kind;
        if let Some(refusal) = self.refusal(&io) {
            self.lock().statistics.refused(kind, &refusal);
            return Answer::refused(io.buffer, refusal);
        }
        let mut inner = self.lock();
        let (since, time) = inner.quiet_since;
        inner.drive.pass_until(time_after(time, since.elapsed()));
        let served = inner.drive.serve(io);
        let due = Instant::now();
        inner.quiet_since = (due, inner.drive.host_time());
        match served {
            Ok(completion) => {
                inner.statistics.came(completion.entry);
                inner.statistics.completed(&completion);
                Answer { buffer: completion.buffer, outcome: completion.outcome, due }
            }
            Err(error) => {
                inner.statistics.refused(kind, &error);
                Answer { buffer: Vec::new(), outcome: Err(error), due }
            }
        }
    }

    /// Submits a request to a paced drive, as having arrived at wall-clock time `arrived`. `accepted` receives the
    /// number of the request before this function returns. Later the pacer's thread passes the answer, under this
    /// number, to `target`.
    ///
    /// `accepted` is called under the lock of the drive, so it must not call the server. For a drive without a pace, no
    /// answer would come: use [`DriveServer::serve`].
    ///
    /// # Errors
    ///
    /// The drive refused the request, or is served read-only and the request is a write or a trim. Then `accepted` is
    /// not called, and no answer follows.
    pub fn submit(
        &self,
        io: Io,
        arrived: Instant,
        target: &Arc<dyn Target>,
        accepted: impl FnOnce(u64),
    ) -> Result<(), DeviceError> {
        let kind = io.kind;
        if let Some(refusal) = self.refusal(&io) {
            self.lock().statistics.refused(kind, &refusal);
            return Err(refusal);
        }
        let at = self.clock.at(arrived);
        let mut inner = self.lock();
        let number = inner.drive.submit(at, io).inspect_err(|error| inner.statistics.refused(kind, error))?;
        inner.statistics.came(at);
        inner.callers.insert(number, target.clone());
        accepted(number);
        drop(inner);
        self.wake.notify_one();
        Ok(())
    }

    /// Serves a request, and returns its answer: at once without a pace, and with a pace when it is due. A refused
    /// request has an error as the outcome of its answer. Must not be called after [`DriveServer::stop`] began: no
    /// answer might come.
    pub fn ask(&self, io: Io) -> Answer {
        if self.is_unpaced() {
            return self.serve(io);
        }
        let waited = Arc::new(Waited::default());
        let target: Arc<dyn Target> = waited.clone();
        // The target receives one answer, so it needs no number.
        if let Err(error) = self.submit(io, Instant::now(), &target, |_| {}) {
            return Answer::refused(Vec::new(), error);
        }
        let mut answer = waited.answer.lock().expect("no thread panics while it holds the answer");
        loop {
            if let Some(answer) = answer.take() {
                return answer;
            }
            answer = waited.arrived.wait(answer).expect("no thread panics while it holds the answer");
        }
    }

    fn refusal(&self, io: &Io) -> Option<DeviceError> {
        let changes = matches!(io.kind, IoKind::Write { .. } | IoKind::Trim);
        (changes && self.facts.read_only).then_some(DeviceError::ReadOnly)
    }

    /// Acts as the pacer: advances the drive to the present, and passes on answers when they are due.
    fn pace(&self) {
        let mut due: BinaryHeap<Reverse<Due>> = BinaryHeap::new();
        let mut order = 0;
        let mut inner = self.lock();
        loop {
            let stepped = inner.drive.advance(self.clock.at(Instant::now()));
            let Inner { drive, callers, statistics, .. } = &mut *inner;
            for completion in drive.completions() {
                statistics.completed(&completion);
                let Some(target) = callers.remove(&completion.number) else { continue };
                let at = self.clock.wall(completion.end).unwrap_or_else(Instant::now);
                due.push(Reverse(Due { at, order, completion, target }));
                order += 1;
            }
            let now = Instant::now();
            let mut ready = Vec::new();
            while due.peek().is_some_and(|Reverse(next)| next.at <= now) {
                let Some(Reverse(next)) = due.pop() else { break };
                inner.statistics.answered_late_by(now - next.at);
                ready.push(next);
            }
            if !ready.is_empty() {
                drop(inner);
                for Due { at, completion, target, .. } in ready {
                    let Completion { number, buffer, outcome, .. } = completion;
                    target.answer(number, Answer { buffer, outcome, due: at });
                }
                inner = self.lock();
                continue;
            }
            if self.stopping.load(Ordering::SeqCst) && due.is_empty() && inner.callers.is_empty() {
                return;
            }
            let work = match stepped {
                Stepped::NotBefore(time) => self.clock.wall(time),
                Stepped::Idle | Stepped::Worked => None,
            };
            let answer = due.peek().map(|Reverse(next)| next.at);
            let until = work.into_iter().chain(answer).min();
            let wait = until.map_or(Duration::from_secs(1), |until| until.saturating_duration_since(now));
            // Woken or timed out: the next round finds out.
            inner = self.wake.wait_timeout(inner, wait).expect("no thread panics while it holds the drive").0;
        }
    }

    /// Advances an unpaced drive through its idle time.
    fn watch_for_idleness(&self) {
        let mut inner = self.lock();
        while !self.stopping.load(Ordering::SeqCst) {
            let (since, clock) = inner.quiet_since;
            let quiet = since.elapsed();
            if quiet >= IDLE_GRACE {
                let until = time_after(clock, quiet);
                // One step at a time, so that an arriving request waits for one step at most.
                while inner.drive.step(until) == Stepped::Worked && inner.quiet_since.0 == since {
                    drop(inner);
                    std::thread::yield_now();
                    inner = self.lock();
                }
            }
            inner = self.wake.wait_timeout(inner, IDLE_TICK).expect("no thread panics while it holds the drive").0;
        }
    }

    /// Tells the pacer to end after it has answered all requests in flight. No further requests may be submitted.
    pub(crate) fn begin_stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        // A pacer that has just checked the flag holds the lock until it waits, so the wake-up below reaches it.
        drop(self.lock());
        self.wake.notify_all();
    }

    /// Ends the service: waits until all requests in flight are answered, and then shuts the drive down, which writes
    /// back its volatile cache. `pacer` is the thread that [`DriveServer::start`] returned. No further requests may be
    /// submitted. A read-only drive is not shut down.
    ///
    /// # Errors
    ///
    /// The drive cannot be shut down, for example because it had stopped.
    ///
    /// # Panics
    ///
    /// If the thread panicked.
    pub fn stop(&self, pacer: JoinHandle<()>) -> Result<(), DeviceError> {
        self.begin_stop();
        pacer.join().expect("the pacer does not panic");
        if self.facts.read_only {
            return Ok(());
        }
        self.lock().drive.shut_down()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;
    use crate::verify::small_drive;

    /// A caller that keeps the numbers of its requests in flight.
    struct Caller {
        in_flight: Mutex<BTreeSet<u64>>,
        /// Receives for each answer whether its request was in flight and succeeded.
        answers: Mutex<Sender<bool>>,
    }

    impl Caller {
        fn new() -> (Arc<Caller>, Receiver<bool>) {
            let (sender, receiver) = channel();
            (Arc::new(Caller { in_flight: Mutex::default(), answers: Mutex::new(sender) }), receiver)
        }
    }

    impl Target for Caller {
        fn answer(&self, number: u64, answer: Answer) {
            let was_in_flight = self.in_flight.lock().expect("no thread panics").remove(&number);
            let answers = self.answers.lock().expect("no thread panics");
            answers.send(was_in_flight && answer.outcome.is_ok()).expect("the test waits for all answers");
        }
    }

    /// Goal: a caller has the number of a request before the answer. Method: many reads of a fast drive, then reads of
    /// a stopped drive, which completes them at submission, with refused requests among them.
    #[test]
    fn a_caller_has_the_number_before_the_answer() {
        let (front, pacer) = DriveServer::start(small_drive("conventional"), Pace::Times(1e6), false);
        let (caller, answers) = Caller::new();
        let target: Arc<dyn Target> = caller.clone();
        let submit = |kind: IoKind, length: u64| {
            let io = Io { kind, offset: 0, length, buffer: vec![0; length as usize] };
            let accepted = |number| assert!(caller.in_flight.lock().expect("no thread panics").insert(number));
            front.submit(io, Instant::now(), &target, accepted)
        };
        let sector = u64::from(front.facts().sector_bytes);
        for is_stopped in [false, true] {
            if is_stopped {
                front.with(|drive, _| drive.store_mut().stop("planned"));
            }
            for _ in 0..1000 {
                submit(IoKind::Read, sector).expect("a stopped drive reads, too");
                assert!(submit(IoKind::Read, 1).is_err(), "a part of a sector");
                assert_eq!(submit(IoKind::Write { fua: false }, sector).is_err(), is_stopped);
            }
            let count = if is_stopped { 1000 } else { 2000 };
            for answered in 0..count {
                let is_right = answers.recv_timeout(Duration::from_secs(60)).expect("every request is answered");
                assert!(is_right, "answer {answered}, stopped: {is_stopped}");
            }
            assert!(caller.in_flight.lock().expect("no thread panics").is_empty());
        }
        assert!(answers.try_recv().is_err(), "a request was answered twice");
        assert!(front.stop(pacer).is_err(), "the drive has stopped");
    }

    #[test]
    fn without_a_pace_no_time_passes_but_in_quiet() {
        let ms = Duration::from_millis;
        for (quiet, passed) in [(0, 0), (99, 0), (100, 0), (101, 1), (5100, 5000)] {
            assert_eq!(time_after(SimTime(7), ms(quiet)), SimTime(7 + passed * 1_000_000), "{quiet} ms");
        }
    }

    #[test]
    fn a_late_answer_is_made_good_up_to_a_turn() {
        let seen = Instant::now() + Duration::from_secs(1);
        let ms = Duration::from_millis;
        assert_eq!(backdate(seen, Duration::ZERO), seen);
        assert_eq!(backdate(seen, ms(3)), seen - ms(3));
        assert_eq!(backdate(seen, ms(500)), seen - ms(10), "a client that reads its answers late gains nothing");
    }
}
