//! Devices as the core uses them: tasks read and write blocks of 4 KiB and reset zones. Each device has a [`Backend`]:
//! an emulated drive with simulated times ([`emulated`]), a file or an ordinary block device ([`mod@file`]), a zoned
//! block device of Linux ([`linux`]), or blocks in memory with power cuts ([`model`]) or without ([`memory`]). A
//! [`file_view`] reads a file and keeps all writes in memory. With [`background`] large operations are performed by
//! another thread.
//!
//! Invariants:
//! 1. An operation is answered once, under the number that it got when it was submitted. Dropping the future of an
//!    operation does not cancel the operation.
//! 2. Operations reach the backend in the order in which they were submitted, as long as the backend takes them.
//!    Operations that must wait are reordered by the [`queue`].

pub mod area;
pub mod background;
pub mod emulated;
pub mod file;
pub mod file_view;
#[cfg(target_os = "linux")]
pub mod linux;
pub mod memory;
pub mod model;
pub mod queue;
mod spent;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use imbrex_device::media::host_file::HostFile;

use self::queue::{Queue, QueueLimits};
use self::spent::Ledger;
pub use self::spent::{ByCause, Spent};
use imbrex_safety::{Contents, Survey};

use crate::executor::{Executor, Source};

/// Size of a block in bytes. The block is the unit of the file system, whatever the sector size of the device is.
pub const BLOCK_BYTES: usize = 4096;

/// Size of a device, and its rules for writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Number of blocks of the device, of [`BLOCK_BYTES`] each.
    pub blocks: u64,
    /// Rules for writes to the device.
    pub kind: Kind,
}

/// Kind of a device, by its rules for writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Any block can be written at any time: a conventional disk, flash or a file.
    Plain,
    /// Zoned device (ZBC/ZAC). Writes to a sequential zone must start at its write pointer. The first `conventional`
    /// zones have no write pointer: any of their blocks can be written.
    Zoned {
        /// Size of each zone, in blocks of 4 KiB.
        zone_blocks: u64,
        /// Number of zones of the device, conventional ones included.
        zones: u32,
        /// Number of conventional zones. They are the first zones of the device.
        conventional: u32,
        /// Largest number of zones that may be active (open or partly written) at a time; `None` if there is no limit.
        active_max: Option<u32>,
    },
    /// Caveat disk: a shingled disk without zones. Any block can be written, but a write of blocks i … j (both
    /// inclusive) destroys the blocks from max(i + 1 + `no_overlap`, j + 1) to j + `isolation`, both inclusive (Singh
    /// 2014 §3.2).
    Caveat {
        /// Drive isolation distance (DID), in blocks of 4 KiB.
        isolation: u64,
        /// Drive no overlap range (DNOR), in blocks of 4 KiB.
        no_overlap: u64,
    },
}

impl Kind {
    /// Returns the name of the kind in messages: `conventional`, `zoned` or `caveat`.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Plain => "conventional",
            Kind::Zoned { .. } => "zoned",
            Kind::Caveat { .. } => "caveat",
        }
    }
}

/// State of a zone, as the device reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneState {
    /// Number of blocks of 4 KiB from the start of the zone to its write pointer; 0 for a conventional zone. It has no
    /// meaning for a read-only or offline zone.
    pub written: u64,
    /// Condition of the zone, which says whether the zone can be read and written.
    pub condition: ZoneCondition,
}

/// Condition of a zone, as far as the file system distinguishes the conditions of ZBC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneCondition {
    /// The zone has no write pointer: any of its blocks can be rewritten.
    Conventional,
    /// The zone is empty, open or closed: writes are accepted at the write pointer.
    Writable,
    /// The zone was written to its end, or was finished. It accepts no writes before a reset.
    Full,
    /// A fault of the drive left the zone readable only.
    ReadOnly,
    /// A fault of the drive left the zone neither readable nor writable.
    Offline,
}

/// Operation that a task requests from a device. Blocks are 4 KiB and are counted from the start of the device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Reads consecutive blocks.
    Read {
        /// First block to read, counted from the start of the device.
        block: u64,
        /// Number of blocks to read.
        blocks: u64,
    },
    /// Writes consecutive whole blocks. The write is durable after the next [`Operation::Flush`] that is submitted
    /// after the answer of the write.
    Write {
        /// First block to write, counted from the start of the device.
        block: u64,
        /// Bytes to write; their number is a multiple of [`BLOCK_BYTES`].
        bytes: Vec<u8>,
    },
    /// Makes all writes durable that were answered before.
    Flush,
    /// Resets the zone with this number, counted from 0: its write pointer moves to its start, and its data are gone.
    Reset(u32),
    /// Moves the write pointer of the zone with this number, counted from 0, to its end: the zone is full.
    Finish(u32),
    /// Requests the states of all zones.
    Report,
}

/// Answer of a device to an operation that succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The operation has no result: answer to a write, flush, reset or finish.
    Done,
    /// Bytes that were read, as many as the read requested.
    Bytes(Vec<u8>),
    /// States of all zones, in the order of their numbers; empty for a device without zones.
    Zones(Vec<ZoneState>),
}

/// Error of an operation that a device failed or refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct DeviceFault {
    /// Error message for the user.
    pub reason: String,
    /// Whether the operation broke a rule of the device. Examples are a write that is not at the write pointer, and a
    /// read of a block that a write to an earlier block had destroyed. Such an operation is a bug of the file system,
    /// not a fault of the device.
    pub breaks_rules: bool,
}

impl DeviceFault {
    /// Returns a fault that is not a broken rule for writes, with the error message `reason`.
    pub fn new(reason: impl Into<String>) -> DeviceFault {
        DeviceFault { reason: reason.into(), breaks_rules: false }
    }
}

/// Result of an operation: the answer of the device, or its fault.
pub type Outcome = Result<Answer, DeviceFault>;

/// Implementation of a device: takes operations, and answers each of them once.
pub trait Backend {
    /// Returns the size and kind of the device.
    fn geometry(&self) -> Geometry;

    /// Starts an operation at the time `now_ns`, in nanoseconds. The caller chooses `number`, by which
    /// [`Backend::answers`] identifies the operation.
    fn submit(&mut self, now_ns: u64, number: u64, operation: Operation);

    /// Returns whether the backend takes no operation now. It takes operations again once its current operation is
    /// answered.
    fn is_busy(&mut self) -> bool {
        false
    }

    /// Returns the time in nanoseconds at which the backend next needs a call of [`Backend::answers`]; `None` if it
    /// awaits nothing. A time of at most `now_ns` means that an answer is ready.
    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64>;

    /// Appends to `answers` the number and outcome of each operation that completed by `now_ns`. Each is returned once.
    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>);

    /// Returns the number of the block after the end of the last read or write, counted from the start of the device:
    /// the position of the head (Singh 2014 §4.4.4). It is 0 before the first read or write.
    fn head_position(&self) -> u64;

    /// Returns the first block at or after `block` that may hold bytes other than zeros, or the number of blocks of the
    /// device if there is none. By default this is `block`: nothing is known. The search takes no device time.
    fn next_data(&mut self, block: u64) -> u64 {
        block
    }

    /// Looks for other users of the medium and for its existing contents, such as a partition table. `name` is the name
    /// that the user gave for the device; the survey repeats it. By default nothing is found, as in memory.
    ///
    /// # Errors
    /// The medium could not be examined.
    fn survey(&mut self, name: &str) -> std::io::Result<Survey> {
        Ok(Survey { name: name.to_string(), ..Survey::default() })
    }

    /// Overwrites with zeros the parts of the signatures of `contents` behind the last whole block of 4 KiB, which no
    /// operation reaches. By default this is refused.
    ///
    /// # Errors
    /// The device cannot be written there.
    fn wipe_rest(&mut self, contents: &[Contents]) -> std::io::Result<()> {
        let _ = contents;
        Err(std::io::Error::new(std::io::ErrorKind::Unsupported, "the device is written in whole blocks only"))
    }

    /// Returns the file of the host that stores the device; `None` if no file does, which is the default.
    fn host_file(&self) -> Option<Arc<HostFile>> {
        None
    }

    /// Shuts the device down. When this returns without an error, all answered writes are on the medium. No operation
    /// may follow. By default nothing is done.
    ///
    /// # Errors
    /// The device could not make its writes durable.
    fn shut_down(&mut self) -> Result<(), DeviceFault> {
        Ok(())
    }
}

/// Nanoseconds between two checks for space on the host's disk.
const SPACE_CHECK_NS: u64 = 100_000_000;

/// Counts of the operations that tasks requested from a device since it was opened. An operation counts when it is
/// requested, even if it fails later. Requests of blocks behind the end of the device, and finishes and reports of
/// zones, do not count.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Number of reads that tasks requested since the device was opened, failed ones included.
    pub reads: u64,
    /// Number of blocks of 4 KiB that tasks requested to read since the device was opened, failed reads included.
    /// Requests of blocks that are not on the device do not count.
    pub blocks_read: u64,
    /// Number of writes that tasks requested since the device was opened, failed ones included, before the queue merges
    /// adjacent ones.
    pub writes: u64,
    /// Number of blocks of 4 KiB that tasks requested to write since the device was opened, failed writes included.
    pub blocks_written: u64,
    /// Number of flushes since the device was opened, failed ones included. A flush with nothing to write is skipped
    /// and not counted.
    pub flushes: u64,
    /// Number of zone resets that tasks requested since the device was opened, failed ones included.
    pub resets: u64,
    /// Number of reads, writes, flushes and resets that the device failed since it was opened. Requests of blocks that
    /// are not on the device do not count.
    pub failures: u64,
}

impl Traffic {
    /// Returns the sum of both counts of operations, field by field.
    pub fn and(&self, other: &Traffic) -> Traffic {
        Traffic {
            reads: self.reads + other.reads,
            blocks_read: self.blocks_read + other.blocks_read,
            writes: self.writes + other.writes,
            blocks_written: self.blocks_written + other.blocks_written,
            flushes: self.flushes + other.flushes,
            resets: self.resets + other.resets,
            failures: self.failures + other.failures,
        }
    }
}

#[derive(Default)]
struct Waiter {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

struct Inner {
    executor: Executor,
    name: String,
    geometry: Geometry,
    backend: RefCell<Box<dyn Backend>>,
    queue: RefCell<Queue>,
    waiting: RefCell<BTreeMap<u64, Waiter>>,
    numbers: Cell<u64>,
    traffic: Cell<Traffic>,
    ledger: RefCell<Ledger>,
    /// Whether a write was submitted since the last flush started.
    is_dirty: Cell<bool>,
    /// Number of flushes in flight.
    flushing: Cell<u32>,
    /// Contents found by the last survey, from before the device belonged to a file system.
    former_contents: RefCell<Vec<Contents>>,
    /// File of the host that stores the device, if there is one.
    host_file: Option<Arc<HostFile>>,
    /// Time since which writes wait for space on the host's disk, if they do.
    blocked_since_ns: Cell<Option<u64>>,
    /// Time of the next check for space on the host's disk.
    next_space_check_ns: Cell<Option<u64>>,
    /// Whether writes have waited from one check for space to another: time enough to fail a device whose loss the
    /// redundancy covers.
    is_blocked_for_long: Cell<bool>,
    /// Whether writes fail instead of waiting while the host's disk is full.
    fails_on_full_disk: Cell<bool>,
}

/// Block device with a queue of operations, as tasks use it. A clone is another handle of the same device.
#[derive(Clone)]
pub struct Device(Rc<Inner>);

impl Device {
    /// Returns a device on `backend`, called `name` in messages, and adds it to the event sources of `executor`.
    pub fn new(executor: &Executor, name: &str, backend: Box<dyn Backend>) -> Device {
        let (geometry, host_file) = (backend.geometry(), backend.host_file());
        let inner = Rc::new(Inner {
            executor: executor.clone(),
            name: name.into(),
            geometry,
            backend: RefCell::new(backend),
            queue: RefCell::new(Queue::new(&geometry.kind)),
            waiting: RefCell::default(),
            numbers: Cell::new(0),
            traffic: Cell::default(),
            ledger: RefCell::default(),
            is_dirty: Cell::new(false),
            flushing: Cell::new(0),
            former_contents: RefCell::default(),
            host_file,
            blocked_since_ns: Cell::new(None),
            next_space_check_ns: Cell::new(None),
            is_blocked_for_long: Cell::new(false),
            fails_on_full_disk: Cell::new(false),
        });
        executor.add_source(inner.clone());
        Device(inner)
    }

    /// Returns the name of the device for messages to users.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the size and kind of the device.
    pub fn geometry(&self) -> Geometry {
        self.0.geometry
    }

    /// Sets the limits of the device's queue: number of operations at the device, deadline of writes, and size of
    /// merged writes. They also hold for operations that already wait.
    pub fn set_queue_limits(&self, limits: QueueLimits) {
        self.0.queue.borrow_mut().set_limits(limits);
        self.0.begin_what_may(self.0.executor.now_ns());
    }

    /// Returns the counts of the operations since the device was opened.
    pub fn traffic(&self) -> Traffic {
        self.0.traffic.get()
    }

    /// Returns the device time and blocks used since the device was opened, by cause of the operations.
    pub fn spent(&self) -> ByCause {
        self.0.ledger.borrow().spent()
    }

    /// Returns the executor on which the tasks of the device run.
    pub fn executor(&self) -> &Executor {
        &self.0.executor
    }

    /// Returns the number of the block after the end of the last read or write, counted from the start of the device; 0
    /// before the first read or write.
    pub fn head_position(&self) -> u64 {
        self.0.backend.borrow().head_position()
    }

    /// Returns the first block at or after `block` that may hold bytes other than zeros, or the number of blocks of the
    /// device if there is none. A device that does not know its zeros returns `block`; most do not.
    pub fn next_data(&self, block: u64) -> u64 {
        self.0.backend.borrow_mut().next_data(block)
    }

    /// Looks for other users and existing contents of the device. The contents found are kept for
    /// [`Device::former_contents`], since a later format of the device erases them.
    ///
    /// # Errors
    /// The device could not be examined.
    pub fn survey(&self) -> std::io::Result<Survey> {
        let survey = self.0.backend.borrow_mut().survey(self.name())?;
        self.0.former_contents.replace(survey.contents.clone());
        Ok(survey)
    }

    /// Overwrites with zeros the parts of the signatures of `contents` behind the last whole block of 4 KiB. They are
    /// durable after the next flush that follows a write.
    ///
    /// # Errors
    /// The device cannot be written there.
    pub fn wipe_rest(&self, contents: &[Contents]) -> std::io::Result<()> {
        self.0.backend.borrow_mut().wipe_rest(contents)
    }

    /// Returns the contents that the last [`Device::survey`] found; empty if there was no survey.
    pub fn former_contents(&self) -> Vec<Contents> {
        self.0.former_contents.borrow().clone()
    }

    /// Returns the file of the host that stores the device; `None` if no file does.
    pub fn host_file(&self) -> Option<Arc<HostFile>> {
        self.0.host_file.clone()
    }

    /// Returns whether writes wait now for free space on the host's disk. Only devices stored in a file of the host can
    /// wait so.
    pub fn is_blocked(&self) -> bool {
        self.0.blocked_since_ns.get().is_some()
    }

    /// Makes writes fail, instead of waiting, while the host's disk is full. The space reserved on that disk for this
    /// device is given up for good. Does nothing if the device is not stored in a file of the host.
    pub fn fail_on_full_disk(&self) {
        if let Some(file) = &self.0.host_file {
            file.drop_reserve();
            self.0.fails_on_full_disk.set(true);
        }
    }

    /// Returns whether [`Device::fail_on_full_disk`] was called on a device stored in a file of the host.
    pub fn fails_on_full_disk(&self) -> bool {
        self.0.fails_on_full_disk.get()
    }

    /// Returns whether both handles are of the same device, that is, one is a clone of the other. Two devices that were
    /// opened separately differ, even if the same file or drive stores both.
    pub fn is(&self, other: &Device) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Reads `blocks` blocks of 4 KiB, from block `block` of the device on, and returns their bytes.
    ///
    /// # Errors
    /// `blocks` is 0, the blocks are not all on the device, or the device failed the read.
    pub async fn read(&self, block: u64, blocks: u64) -> Result<Vec<u8>, DeviceFault> {
        self.check(block, blocks)?;
        self.count(|traffic| (traffic.reads, traffic.blocks_read) = (traffic.reads + 1, traffic.blocks_read + blocks));
        match self.perform_counted(Operation::Read { block, blocks }).await? {
            Answer::Bytes(bytes) if bytes.len() as u64 == blocks * BLOCK_BYTES as u64 => Ok(bytes),
            other => unreachable!("{}: a read of {blocks} blocks is answered with bytes, not {other:?}", self.name()),
        }
    }

    /// Writes `bytes`, a whole number of blocks of 4 KiB, from block `block` on. The bytes are durable only after a
    /// [`Device::flush`].
    ///
    /// # Errors
    /// `bytes` is empty, the blocks are not all on the device, or the device failed the write.
    ///
    /// # Panics
    /// The length of `bytes` is not a multiple of [`BLOCK_BYTES`].
    pub async fn write(&self, block: u64, bytes: Vec<u8>) -> Result<(), DeviceFault> {
        assert!(bytes.len().is_multiple_of(BLOCK_BYTES), "{} bytes are not whole blocks", bytes.len());
        let blocks = (bytes.len() / BLOCK_BYTES) as u64;
        self.check(block, blocks)?;
        self.count(|traffic| {
            (traffic.writes, traffic.blocks_written) = (traffic.writes + 1, traffic.blocks_written + blocks);
        });
        self.0.is_dirty.set(true);
        self.perform_counted(Operation::Write { block, bytes }).await.map(drop)
    }

    /// Makes all completed writes durable. Returns at once if no write was requested since the last flush started and
    /// no flush is in flight. While another task's flush is in flight, a further flush is performed: the first may
    /// cover writes of this caller, and is not complete yet.
    ///
    /// # Errors
    /// The device failed the flush. The next call then flushes again.
    pub async fn flush(&self) -> Result<(), DeviceFault> {
        if !self.0.is_dirty.replace(false) && self.0.flushing.get() == 0 {
            return Ok(());
        }
        self.count(|traffic| traffic.flushes += 1);
        // If this future is dropped, the count stays too high, and later flushes are not skipped.
        self.0.flushing.set(self.0.flushing.get() + 1);
        let outcome = self.perform_counted(Operation::Flush).await;
        self.0.flushing.set(self.0.flushing.get() - 1);
        if outcome.is_err() {
            self.0.is_dirty.set(true);
        }
        outcome.map(drop)
    }

    /// Resets zone `zone`, counted from 0: the zone is empty. The reset is durable when this returns.
    ///
    /// # Errors
    /// The device failed the reset, or has no such sequential zone.
    pub async fn reset(&self, zone: u32) -> Result<(), DeviceFault> {
        self.count(|traffic| traffic.resets += 1);
        self.perform_counted(Operation::Reset(zone)).await.map(drop)
    }

    /// Makes zone `zone`, counted from 0, full: its write pointer moves to its end.
    ///
    /// # Errors
    /// The device failed the operation, or has no such sequential zone.
    pub async fn finish(&self, zone: u32) -> Result<(), DeviceFault> {
        self.perform(Operation::Finish(zone)).await.map(drop)
    }

    /// Returns the states of all zones, in the order of their numbers; an empty list for a device without zones.
    ///
    /// # Errors
    /// The device failed the report.
    pub async fn zones(&self) -> Result<Vec<ZoneState>, DeviceFault> {
        match self.perform(Operation::Report).await? {
            Answer::Zones(zones) => Ok(zones),
            other => unreachable!("{}: a report is answered with zones, not {other:?}", self.name()),
        }
    }

    /// Shuts the device down. When this returns without an error, all answered writes are on the medium. No operation
    /// may follow.
    ///
    /// # Errors
    /// The device could not make its writes durable.
    pub fn shut_down(&self) -> Result<(), DeviceFault> {
        self.0.backend.borrow_mut().shut_down()
    }

    /// Shuts the device down and removes it from the executor. Other processes can open the medium once all handles of
    /// this device are dropped.
    ///
    /// # Errors
    /// The device could not make its writes durable. It is removed all the same.
    pub fn close(&self) -> Result<(), DeviceFault> {
        let outcome = self.shut_down();
        let source: Rc<dyn Source> = self.0.clone();
        self.0.executor.drop_source(&source);
        outcome
    }

    fn check(&self, block: u64, blocks: u64) -> Result<(), DeviceFault> {
        let end = self.0.geometry.blocks;
        if blocks == 0 || block.checked_add(blocks).is_none_or(|last| last > end) {
            let name = self.name();
            return Err(DeviceFault::new(format!("{name}: {blocks} blocks from {block} on: it has {end}")));
        }
        Ok(())
    }

    fn count(&self, add: impl FnOnce(&mut Traffic)) {
        let mut traffic = self.0.traffic.get();
        add(&mut traffic);
        self.0.traffic.set(traffic);
    }

    /// Performs an operation, and counts a failure.
    async fn perform_counted(&self, operation: Operation) -> Outcome {
        let outcome = self.perform(operation).await;
        if outcome.is_err() {
            self.count(|traffic| traffic.failures += 1);
        }
        outcome
    }

    fn perform(&self, operation: Operation) -> Performing {
        let number = self.0.numbers.get();
        self.0.numbers.set(number + 1);
        self.0.waiting.borrow_mut().insert(number, Waiter::default());
        let now_ns = self.0.executor.now_ns();
        self.0.ledger.borrow_mut().ask(number, &operation, self.0.executor.cause());
        self.0.queue.borrow_mut().push(now_ns, number, operation);
        self.0.begin_what_may(now_ns);
        Performing { device: self.0.clone(), number }
    }
}

impl Inner {
    /// Submits waiting operations to the backend, as far as the backend takes them.
    fn begin_what_may(&self, now_ns: u64) {
        let mut has_space = None;
        while !self.backend.borrow_mut().is_busy() {
            // Any operation may fill the host's disk, so space is checked before each.
            let is_free = self.host_file.as_ref().is_none_or(|file| file.check_disk_space().is_ok());
            has_space = Some(is_free);
            let Some((number, operation)) = self.queue.borrow_mut().next(now_ns, is_free) else { break };
            self.ledger.borrow_mut().begin(now_ns);
            self.backend.borrow_mut().submit(now_ns, number, operation);
        }
        // While the backend is busy, space is not checked.
        if let Some(has_space) = has_space {
            self.note_blocked(now_ns, !has_space && self.queue.borrow().has_waiting_write());
        }
    }

    /// Records whether writes wait for space now.
    fn note_blocked(&self, now_ns: u64, is_blocked: bool) {
        self.next_space_check_ns.set(is_blocked.then(|| now_ns + SPACE_CHECK_NS));
        let since_ns = is_blocked.then(|| self.blocked_since_ns.get().unwrap_or(now_ns));
        let was_blocked = self.blocked_since_ns.replace(since_ns).is_some();
        let is_for_long = since_ns.is_some_and(|since_ns| now_ns - since_ns >= SPACE_CHECK_NS);
        self.is_blocked_for_long.set(is_for_long);
        // Notified at each check: a waiting task looks at all sources, and another source may have had space at the
        // last check.
        if is_blocked && !was_blocked || is_for_long {
            self.executor.notify_blocked();
        }
    }

    /// Passes the outcome of operation `number` to the task that waits for it.
    fn answer(&self, number: u64, outcome: Outcome) {
        // The waiter is gone if its future was dropped.
        let mut waiting = self.waiting.borrow_mut();
        let Some(waiter) = waiting.get_mut(&number) else { return };
        assert!(waiter.outcome.is_none(), "operation {number} was answered twice: invariant 1");
        waiter.outcome = Some(outcome);
        let waker = waiter.waker.take();
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Source for Inner {
    fn blocked(&self) -> Option<String> {
        let file = self.host_file.as_ref().filter(|_| self.is_blocked_for_long.get())?;
        file.full_disk_warning()
    }

    fn next_event_ns(&self, now_ns: u64) -> Option<u64> {
        let mut backend = self.backend.borrow_mut();
        // A busy backend takes no operation, whatever space there is.
        let space_check_ns = self.next_space_check_ns.get().filter(|_| !backend.is_busy());
        [backend.next_event_ns(now_ns), space_check_ns].into_iter().flatten().min()
    }

    fn deliver(&self, now_ns: u64) {
        let mut answers = Vec::new();
        self.backend.borrow_mut().answers(now_ns, &mut answers);
        for (number, outcome) in answers {
            let gathered = self.queue.borrow_mut().answered(number);
            self.ledger.borrow_mut().answer(now_ns, std::iter::once(number).chain(gathered.iter().copied()));
            gathered.into_iter().for_each(|number| self.answer(number, outcome.clone()));
            self.answer(number, outcome);
        }
        self.begin_what_may(now_ns);
    }
}

struct Performing {
    device: Rc<Inner>,
    number: u64,
}

impl Future for Performing {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut waiting = self.device.waiting.borrow_mut();
        let waiter = waiting.get_mut(&self.number).expect("it is there until the task that waits is gone");
        match waiter.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                waiter.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Performing {
    fn drop(&mut self) {
        self.device.waiting.borrow_mut().remove(&self.number);
    }
}
