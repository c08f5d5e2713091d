//! Devices as the core sees them: blocks of 4 KiB that tasks read and write, zones that they reset. What is behind one is
//! a [`Backend`]: an emulated drive with its times ([`emulated`]), a file or an ordinary block device ([`mod@file`]), a zoned block
//! device of Linux ([`linux`]), blocks in memory with power cuts ([`model`]) or without
//! ([`memory`]). With [`background`] large operations are performed by another thread.
//!
//! Invariants:
//! 1. An operation is answered once, under the number it was given. A task that gives up waiting does not undo it.
//! 2. Operations reach the backend in the order in which they were begun as long as it takes them; those that must wait, in the
//!    order of the [`queue`].

pub mod area;
pub mod background;
pub mod emulated;
pub mod file;
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

use crate::clock::{Clock, Source};

/// Bytes of a block: what files are stored in, whatever the sectors of the device are.
pub const BLOCK_BYTES: usize = 4096;

/// What a device is, in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Blocks in all.
    pub blocks: u64,
    /// Where they may be written.
    pub kind: Kind,
}

/// Where a device may be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Anywhere: a conventional disk, flash, a file.
    Plain,
    /// At the pointers of its zones; anywhere in the first `conventional` of them.
    Zoned {
        /// Blocks of a zone.
        zone_blocks: u64,
        /// How many zones.
        zones: u32,
        /// How many of them, from the first, are conventional.
        conventional: u32,
        /// The most that may be open or partly written at a time.
        active_max: Option<u32>,
    },
    /// Anywhere, but a write of blocks i … j destroys max(i + 1 + `no_overlap`, j + 1) … j + `isolation` (Singh 2014 §3.2).
    Caveat {
        /// DID, in blocks.
        isolation: u64,
        /// DNOR, in blocks.
        no_overlap: u64,
    },
}

impl Kind {
    /// Its name, in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Plain => "conventional",
            Kind::Zoned { .. } => "zoned",
            Kind::Caveat { .. } => "caveat",
        }
    }
}

/// A zone, as a device reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneState {
    /// Blocks from its start that are written; for a conventional zone 0.
    pub written: u64,
    /// What can be done with it.
    pub condition: ZoneCondition,
}

/// What can be done with a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneCondition {
    /// It is rewritten anywhere.
    Conventional,
    /// It takes writes at its pointer.
    Writable,
    /// It is full, or was finished.
    Full,
    /// A fault left it readable only.
    ReadOnly,
    /// A fault left nothing of it.
    Offline,
}

/// What a task asks of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// So many blocks from one on.
    Read {
        /// The first.
        block: u64,
        /// How many.
        blocks: u64,
    },
    /// These bytes, whole blocks, from one on.
    Write {
        /// The first.
        block: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// What was written is to be durable.
    Flush,
    /// Empties a zone.
    Reset(u32),
    /// Makes a zone full.
    Finish(u32),
    /// Asks for all zones.
    Report,
}

/// What a device answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Done.
    Done,
    /// What was read.
    Bytes(Vec<u8>),
    /// The zones.
    Zones(Vec<ZoneState>),
}

/// Why a device did not do what it was asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct DeviceFault {
    /// In words.
    pub reason: String,
    /// Whether a live block was destroyed by a write beside it, or a write came elsewhere than at the pointer: then the
    /// file system broke the rules of its device.
    pub breaks_rules: bool,
}

impl DeviceFault {
    /// A failure of the device.
    pub fn new(reason: impl Into<String>) -> DeviceFault {
        DeviceFault { reason: reason.into(), breaks_rules: false }
    }
}

/// The outcome of an operation.
pub type Outcome = Result<Answer, DeviceFault>;

/// What is behind a device.
pub trait Backend {
    /// What it is.
    fn geometry(&self) -> Geometry;

    /// Begins operation `number`.
    fn submit(&mut self, now_ns: u64, number: u64, operation: Operation);

    /// Returns whether it takes no operation now; it takes one again by the time it has answered.
    fn is_busy(&mut self) -> bool {
        false
    }

    /// When something happens next, if anything does.
    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64>;

    /// Appends what is answered by `now_ns`.
    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>);

    /// The block behind the last one that was read or written: where the head is (Singh 2014 §4.4.4).
    fn head_position(&self) -> u64;

    /// The first block from `block` on that may hold something other than zeros, or its end: what lies between takes no
    /// time to be looked at.
    fn next_data(&mut self, block: u64) -> u64 {
        block
    }

    /// Looks for who else uses what lies behind it and for what it holds; `name` is what the user called it. Nothing is found
    /// in memory.
    fn survey(&mut self, name: &str) -> std::io::Result<Survey> {
        Ok(Survey { name: name.to_string(), ..Survey::default() })
    }

    /// The file of the host in which it lies, if it lies in one.
    fn host_file(&self) -> Option<Arc<HostFile>> {
        None
    }

    /// Ends in good order: all that was answered is on the medium. Nothing is asked of it afterwards.
    fn shut_down(&mut self) -> Result<(), DeviceFault> {
        Ok(())
    }
}

/// Time between two checks for space on the host's disk.
const SPACE_CHECK_NS: u64 = 100_000_000;

/// What was asked of a device so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Reads, and their blocks.
    pub reads: u64,
    /// Blocks that were read.
    pub blocks_read: u64,
    /// Writes.
    pub writes: u64,
    /// Blocks that were written.
    pub blocks_written: u64,
    /// Flushes.
    pub flushes: u64,
    /// Zones that were reset.
    pub resets: u64,
    /// Reads, writes, flushes and resets that the device failed to do.
    pub failures: u64,
}

impl Traffic {
    /// Both together.
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
    clock: Clock,
    name: String,
    geometry: Geometry,
    backend: RefCell<Box<dyn Backend>>,
    queue: RefCell<Queue>,
    waiting: RefCell<BTreeMap<u64, Waiter>>,
    numbers: Cell<u64>,
    traffic: Cell<Traffic>,
    ledger: RefCell<Ledger>,
    /// Whether something was written since the last flush began.
    is_dirty: Cell<bool>,
    /// Flushes under way.
    flushing: Cell<u32>,
    /// What it held before it was given to a file system.
    former_contents: RefCell<Vec<Contents>>,
    /// The file of the host in which it lies.
    host_file: Option<Arc<HostFile>>,
    /// Since when writes wait for space on the host's disk, if they do.
    blocked_since_ns: Cell<Option<u64>>,
    /// Time of the next check for that space.
    next_space_check_ns: Cell<Option<u64>>,
    /// Whether the writes have waited for one check: time enough to let a device fail that redundancy covers.
    is_blocked_for_long: Cell<bool>,
    /// Whether writes fail, in place of waiting, while that disk is full.
    fails_on_full_disk: Cell<bool>,
}

/// A device. Cloning gives another handle of the same.
#[derive(Clone)]
pub struct Device(Rc<Inner>);

impl Device {
    /// The device in front of `backend`, called `name` in messages.
    pub fn new(clock: &Clock, name: &str, backend: Box<dyn Backend>) -> Device {
        let (geometry, host_file) = (backend.geometry(), backend.host_file());
        let inner = Rc::new(Inner {
            clock: clock.clone(),
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
        clock.add_source(inner.clone());
        Device(inner)
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it is.
    pub fn geometry(&self) -> Geometry {
        self.0.geometry
    }

    /// What its queue keeps to from now on.
    pub fn set_queue_limits(&self, limits: QueueLimits) {
        self.0.queue.borrow_mut().set_limits(limits);
        self.0.begin_what_may(self.0.clock.now_ns());
    }

    /// What was asked of it so far.
    pub fn traffic(&self) -> Traffic {
        self.0.traffic.get()
    }

    /// What it spent its time on so far, by what tasks worked for.
    pub fn spent(&self) -> ByCause {
        self.0.ledger.borrow().spent()
    }

    /// The clock that its operations are tasks of.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Where its head is.
    pub fn head_position(&self) -> u64 {
        self.0.backend.borrow().head_position()
    }

    /// The first block from `block` on that may hold something other than zeros, or its end.
    pub fn next_data(&self, block: u64) -> u64 {
        self.0.backend.borrow_mut().next_data(block)
    }

    /// Looks for who else uses it and for what it holds. The signatures that are found are overwritten when the device is
    /// [erased](Device::former_contents).
    pub fn survey(&self) -> std::io::Result<Survey> {
        let survey = self.0.backend.borrow_mut().survey(self.name())?;
        self.0.former_contents.replace(survey.contents.clone());
        Ok(survey)
    }

    /// Returns what the last survey found.
    pub fn former_contents(&self) -> Vec<Contents> {
        self.0.former_contents.borrow().clone()
    }

    /// The file of the host in which it lies, if it lies in one.
    pub fn host_file(&self) -> Option<Arc<HostFile>> {
        self.0.host_file.clone()
    }

    /// Returns whether writes wait for space on the host's disk.
    pub fn is_blocked(&self) -> bool {
        self.0.blocked_since_ns.get().is_some()
    }

    /// Lets writes fail, in place of waiting, while the host's disk is full.
    pub fn fail_on_full_disk(&self) {
        if let Some(file) = &self.0.host_file {
            file.drop_reserve();
            self.0.fails_on_full_disk.set(true);
        }
    }

    /// Returns whether writes fail while the host's disk is full.
    pub fn fails_on_full_disk(&self) -> bool {
        self.0.fails_on_full_disk.get()
    }

    /// Whether both are the same device.
    pub fn is(&self, other: &Device) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Reads `blocks` from `block` on.
    pub async fn read(&self, block: u64, blocks: u64) -> Result<Vec<u8>, DeviceFault> {
        self.check(block, blocks)?;
        self.count(|traffic| (traffic.reads, traffic.blocks_read) = (traffic.reads + 1, traffic.blocks_read + blocks));
        match self.perform_counted(Operation::Read { block, blocks }).await? {
            Answer::Bytes(bytes) if bytes.len() as u64 == blocks * BLOCK_BYTES as u64 => Ok(bytes),
            other => unreachable!("{}: a read of {blocks} blocks is answered with bytes, not {other:?}", self.name()),
        }
    }

    /// Writes `bytes`, whole blocks, from `block` on.
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

    /// Makes durable what was written. It returns at once where nothing was written since the last flush and no flush
    /// is under way: one that somebody else began may be for what is meant here, so it is not enough to have seen it
    /// begin.
    pub async fn flush(&self) -> Result<(), DeviceFault> {
        if !self.0.is_dirty.replace(false) && self.0.flushing.get() == 0 {
            return Ok(());
        }
        self.count(|traffic| traffic.flushes += 1);
        // Where the task gives up waiting it stays counted, and others flush once too often.
        self.0.flushing.set(self.0.flushing.get() + 1);
        let outcome = self.perform_counted(Operation::Flush).await;
        self.0.flushing.set(self.0.flushing.get() - 1);
        if outcome.is_err() {
            self.0.is_dirty.set(true);
        }
        outcome.map(drop)
    }

    /// Empties zone `zone`; durable when it returns.
    pub async fn reset(&self, zone: u32) -> Result<(), DeviceFault> {
        self.count(|traffic| traffic.resets += 1);
        self.perform_counted(Operation::Reset(zone)).await.map(drop)
    }

    /// Makes zone `zone` full.
    pub async fn finish(&self, zone: u32) -> Result<(), DeviceFault> {
        self.perform(Operation::Finish(zone)).await.map(drop)
    }

    /// All zones.
    pub async fn zones(&self) -> Result<Vec<ZoneState>, DeviceFault> {
        match self.perform(Operation::Report).await? {
            Answer::Zones(zones) => Ok(zones),
            other => unreachable!("{}: a report is answered with zones, not {other:?}", self.name()),
        }
    }

    /// Ends it in good order, as a drive is switched off; nothing is asked of it afterwards.
    pub fn shut_down(&self) -> Result<(), DeviceFault> {
        self.0.backend.borrow_mut().shut_down()
    }

    /// Ends it in good order and lets go of it, so that others may have it once nobody has a handle of it.
    pub fn close(&self) -> Result<(), DeviceFault> {
        let outcome = self.shut_down();
        let source: Rc<dyn Source> = self.0.clone();
        self.0.clock.drop_source(&source);
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

    /// Performs an operation and counts a failure.
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
        let now_ns = self.0.clock.now_ns();
        self.0.ledger.borrow_mut().ask(number, &operation, self.0.clock.cause());
        self.0.queue.borrow_mut().push(now_ns, number, operation);
        self.0.begin_what_may(now_ns);
        Performing { device: self.0.clone(), number }
    }
}

impl Inner {
    /// Gives the backend what it takes now.
    fn begin_what_may(&self, now_ns: u64) {
        let mut has_space = None;
        while !self.backend.borrow_mut().is_busy() {
            // Any operation may fill the disk.
            let is_free = self.host_file.as_ref().is_none_or(|file| file.check_disk_space().is_ok());
            has_space = Some(is_free);
            let Some((number, operation)) = self.queue.borrow_mut().next(now_ns, is_free) else { break };
            self.ledger.borrow_mut().begin(now_ns);
            self.backend.borrow_mut().submit(now_ns, number, operation);
        }
        // What a backend is busy with says nothing of space.
        if let Some(has_space) = has_space {
            self.note_blocked(now_ns, !has_space && self.queue.borrow().has_waiting_write());
        }
    }

    /// Notes whether writes wait for space now.
    fn note_blocked(&self, now_ns: u64, is_blocked: bool) {
        self.next_space_check_ns.set(is_blocked.then(|| now_ns + SPACE_CHECK_NS));
        let since_ns = is_blocked.then(|| self.blocked_since_ns.get().unwrap_or(now_ns));
        let was_blocked = self.blocked_since_ns.replace(since_ns).is_some();
        let is_for_long = since_ns.is_some_and(|since_ns| now_ns - since_ns >= SPACE_CHECK_NS);
        self.is_blocked_for_long.set(is_for_long);
        // Told at each check: who waits looks at all sources, and another may have had space at the last one.
        if is_blocked && !was_blocked || is_for_long {
            self.clock.notify_blocked();
        }
    }

    /// Operation `number` came to this.
    fn answer(&self, number: u64, outcome: Outcome) {
        // Nobody waits for it where a task gave up.
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
        // A busy backend takes nothing, whatever space there is.
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
