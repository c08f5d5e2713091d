//! The recorder: runs a program under ptrace and logs the program's changes to the files of a folder.
//!
//! ```text
//!   thread of the program ── stops (filter) ──► Calls::enter ── answered, or carried out ──► Calls::leave ──► Log
//! ```
//!
//! A seccomp filter stops the relevant calls and lets all others run at full speed, so statically linked programs and
//! raw system calls are recorded too. Calls that change recorded files run one at a time, in the order of their
//! arrival. The log is therefore totally ordered, and no write is logged before a sync that began earlier.
//!
//! Bytes changed through a shared mapping are compared only at a sync. Of several values between two syncs, only the
//! last is in the log. `io_uring_setup` and `io_setup` fail with `ENOSYS`, since their writes need no call that stops;
//! [`Recording::refused`] counts them.
//!
//! Invariants:
//! 1. A recording is complete, or it is an error: its log, applied to the first contents, gives the last contents byte
//!    for byte.
//! 2. The program does not outlive the recorder.

mod calls;
mod filter;
mod folder;
mod process;
mod sys;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread::JoinHandle;

use calls::{Calls, Verdict, Watched};
use folder::{Folder, unfit};
use sys::{Report, Tid};

use crate::log::Log;

/// Ways in which the recorder interferes with the recorded program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Number of the sync of files that fails with `EIO`, counted from 1 over the whole program. Syncs of folders are
    /// not counted. The failed sync makes nothing durable, and later syncs do not write its bytes again. `None`: no
    /// sync fails.
    pub failing_sync: Option<u64>,
    /// Whether syncs return success at once without being executed. This is faster, and the program sees no difference.
    pub answers_syncs: bool,
}

/// The complete recording of a program that has ended.
#[derive(Debug)]
pub struct Recording {
    /// The program's changes to the files, its syncs and its sends, in order.
    pub log: Log,
    /// Exit status of the recorded program: its exit code, or the signal that killed it.
    pub status: ExitStatus,
    /// Number of `io_uring_setup` and `io_setup` calls of the program that the recorder made fail with `ENOSYS`,
    /// because it cannot follow such I/O.
    pub refused: u64,
}

/// A program that is being recorded. Dropping the recorder kills the program.
pub struct Recorder {
    pid: Tid,
    log: Arc<Mutex<Log>>,
    thread: Option<JoinHandle<io::Result<Recording>>>,
}

impl Recorder {
    /// Starts `command` under ptrace and records its changes to the files in `folder` and its subfolders. No other
    /// process may change these files meanwhile.
    ///
    /// # Errors
    /// The folder cannot be read, the program does not start, or this system does not permit tracing.
    pub fn start(command: Command, folder: &Path, options: Options) -> io::Result<Recorder> {
        let log = Arc::new(Mutex::new(Log::default()));
        let folder = Folder::open(folder, Arc::clone(&log))?;
        let (sender, started) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let tracer = match Tracer::spawn(command, Calls::new(folder, options)) {
                Ok(tracer) => tracer,
                Err(error) => {
                    let again = io::Error::new(error.kind(), error.to_string());
                    sender.send(Err(error)).expect("the other thread waits");
                    return Err(again);
                }
            };
            sender.send(Ok(tracer.root)).expect("the other thread waits");
            tracer.run()
        });
        let pid = started.recv().expect("the thread says how it began")?;
        Ok(Recorder { pid, log, thread: Some(thread) })
    }

    /// Returns the number of events recorded so far.
    pub fn position(&self) -> usize {
        self.log.lock().expect("no thread panics while it holds the log").entries.len()
    }

    /// Sends the signal of this number to the program. Does nothing if the program has ended.
    pub fn signal(&self, signal: i32) {
        if !self.has_ended() {
            sys::kill(self.pid, signal);
        }
    }

    /// Returns whether the program has ended and its recording is complete or has failed.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the program ends by itself, and returns the recording.
    ///
    /// # Errors
    /// The recording is not complete: the program did something that the recorder cannot follow, or the files differ
    /// from the log.
    pub fn finish(mut self) -> io::Result<Recording> {
        let thread = self.thread.take().expect("it is finished once");
        thread.join().expect("the tracer reports its errors")
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        if let Some(thread) = self.thread.take() {
            // The caller does not want the recording, so its error is ignored.
            let _ = thread.join();
        }
    }
}

/// Returns whether programs can be recorded on this system, which is tried once. Prints the reason to standard error if
/// not.
pub fn is_available() -> bool {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("imbrex-recorder-{}", std::process::id()));
        let recorded = std::fs::create_dir_all(&folder)
            .and_then(|()| Recorder::start(Command::new("true"), &folder, Options::default()))
            .and_then(Recorder::finish);
        // A temporary folder that cannot be removed is no reason not to record.
        let _ = std::fs::remove_dir(&folder);
        recorded.err().map(|error| error.to_string())
    });
    if let Some(reason) = reason {
        eprintln!("skipped: power cuts of the built program (no ptrace with seccomp here: {reason})");
    }
    reason.is_none()
}

/// The state of the tracing thread.
struct Tracer {
    root: Tid,
    calls: Calls,
    /// Threads seen so far.
    known: BTreeSet<Tid>,
    /// Calls that have entered the kernel and not left it.
    watched: BTreeMap<Tid, Watched>,
    /// Thread whose call currently changes files.
    busy: Option<Tid>,
    /// Threads that wait at their calls for the busy thread.
    waiting: VecDeque<Tid>,
    status: ExitStatus,
}

impl Tracer {
    fn spawn(mut command: Command, calls: Calls) -> io::Result<Tracer> {
        sys::trace(&mut command, filter::program());
        // The tracer's `wait` reports the child's end, like that of its threads, so the `Child` is not waited for.
        let root = command.spawn()?.id() as Tid;
        Ok(Tracer {
            root,
            calls,
            known: BTreeSet::new(),
            watched: BTreeMap::new(),
            busy: None,
            waiting: VecDeque::new(),
            status: ExitStatus::default(),
        })
    }

    fn run(mut self) -> io::Result<Recording> {
        let outcome = self.trace();
        if outcome.is_err() {
            sys::kill(self.root, libc::SIGKILL);
            while let Ok(Some((tid, report))) = sys::wait() {
                if !matches!(report, Report::Ended(_)) {
                    sys::kill(tid, libc::SIGKILL);
                    let _ = sys::go_on(tid, 0, false);
                }
            }
        }
        outcome?;
        self.calls.folder.mappings_changed()?;
        if let Some(difference) = self.calls.folder.difference()? {
            return Err(io::Error::other(format!("the recording is not complete: {difference} differ")));
        }
        let log = std::mem::take(&mut *self.calls.folder.log());
        Ok(Recording { log, status: self.status, refused: self.calls.refused })
    }

    fn trace(&mut self) -> io::Result<()> {
        while let Some((tid, report)) = sys::wait()? {
            match self.report(tid, report) {
                // A thread killed while it is stopped gets one more report, of its end. If the thread lives, another
                // thread has closed its file meanwhile: the call continues unobserved.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                    let _ = sys::go_on(tid, 0, false);
                }
                outcome => outcome?,
            }
        }
        Ok(())
    }

    fn report(&mut self, tid: Tid, report: Report) -> io::Result<()> {
        let is_new = !matches!(report, Report::Ended(_)) && self.known.insert(tid);
        match report {
            Report::Enters => self.enters(tid),
            Report::Left => self.left(tid),
            Report::Paused => sys::go_on(tid, 0, false),
            Report::Signal(libc::SIGTRAP) if is_new && tid == self.root => {
                sys::set_options(tid)?;
                sys::go_on(tid, 0, false)
            }
            Report::Signal(libc::SIGSTOP) => sys::go_on(tid, 0, false),
            Report::Signal(signal) => sys::go_on(tid, signal, false),
            Report::Ended(status) => self.ended(tid, status),
        }
    }

    fn enters(&mut self, tid: Tid) -> io::Result<()> {
        if self.busy.is_some() {
            self.waiting.push_back(tid);
            return Ok(());
        }
        if sys::message(tid)? == filter::FOREIGN {
            return Err(unfit("a system call of another architecture"));
        }
        let registers = sys::registers(tid)?;
        match self.calls.enter(tid, &registers)? {
            Verdict::Pass => sys::go_on(tid, 0, false),
            Verdict::Answer(result) => {
                sys::answer(tid, registers, result)?;
                sys::go_on(tid, 0, false)
            }
            Verdict::Watch(watched) => {
                if !watched.is_free() {
                    self.busy = Some(tid);
                }
                self.watched.insert(tid, watched);
                sys::go_on(tid, 0, true)
            }
        }
    }

    fn left(&mut self, tid: Tid) -> io::Result<()> {
        if self.watched.contains_key(&tid) {
            // A thread killed at this stop keeps its entry in `watched`. The call is completed when the thread's end is
            // reported.
            let result = sys::registers(tid)?.rax as i64;
            let watched = self.watched.remove(&tid).expect("it was just found");
            match self.calls.leave(tid, watched, result) {
                // The thread was killed while its memory was read: the changes of the call are found by comparing the
                // files.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => self.calls.find_all()?,
                outcome => outcome?,
            }
        }
        sys::go_on(tid, 0, false)?;
        self.release(tid)
    }

    fn ended(&mut self, tid: Tid, status: i32) -> io::Result<()> {
        if tid == self.root {
            self.status = ExitStatus::from_raw(status);
        }
        self.known.remove(&tid);
        self.waiting.retain(|&waiting| waiting != tid);
        if let Some(watched) = self.watched.remove(&tid) {
            self.calls.abandon(watched)?;
        }
        self.release(tid)
    }

    /// Ends the exclusive turn of `tid`, if it is the busy thread, and lets the next waiting threads enter.
    fn release(&mut self, tid: Tid) -> io::Result<()> {
        if self.busy != Some(tid) {
            return Ok(());
        }
        self.busy = None;
        while self.busy.is_none()
            && let Some(next) = self.waiting.pop_front()
        {
            match self.enters(next) {
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                    let _ = sys::go_on(next, 0, false);
                    self.busy = None;
                }
                outcome => outcome?,
            }
        }
        Ok(())
    }
}
