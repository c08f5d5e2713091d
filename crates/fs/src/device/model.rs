//! Blocks in memory with knowledge of which are durable: for tests, power cuts and fast runs without a disk. Operations
//! take no time.
//!
//! The model enforces the rules of the device that it stands for with simple code of its own. A write off a zone's
//! pointer is refused, a write on a caveat disk destroys the blocks behind it (Singh 2014 §3.2), and reading a
//! destroyed block is an error. Each of these cases is counted; a correct file system never causes one.
//!
//! A power cut leaves all flushed blocks and any subset of the blocks written since. Of a sequential zone it leaves a
//! prefix, with the write pointer behind the prefix.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::{Answer, BLOCK_BYTES, Backend, DeviceFault, Geometry, Kind, Operation, Outcome, ZoneCondition, ZoneState};

/// Content of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Content {
    Bytes(Rc<[u8]>),
    /// The block was destroyed by a write to an earlier block.
    Destroyed,
}

/// Contents of a device at one time: the bytes of its blocks, the write pointers of its zones, and its failed zones.
#[derive(Clone, Debug)]
pub struct Contents {
    geometry: Geometry,
    blocks: BTreeMap<u64, Content>,
    /// Blocks written in each sequential zone that is not empty.
    written: BTreeMap<u32, u64>,
    failed: BTreeMap<u32, ZoneCondition>,
}

/// Block that was written and is not durable yet.
#[derive(Clone, Debug)]
struct Unflushed {
    block: u64,
    bytes: Rc<[u8]>,
}

/// State of a device at one time: the durable contents, and the writes that were not durable then.
#[derive(Clone, Debug)]
pub struct Snapshot {
    durable: Contents,
    since: Vec<Unflushed>,
}

impl Contents {
    /// Returns the contents of a new device: blocks read as zeros, and zones are empty. On a caveat disk every block
    /// counts as destroyed instead (Singh 2014 §4.1).
    pub fn new(geometry: Geometry) -> Contents {
        Contents { geometry, blocks: BTreeMap::new(), written: BTreeMap::new(), failed: BTreeMap::new() }
    }

    fn read(&self, block: u64, blocks: u64) -> Outcome {
        let mut bytes = Vec::with_capacity(blocks as usize * BLOCK_BYTES);
        for at in block..block + blocks {
            match self.blocks.get(&at) {
                Some(Content::Bytes(content)) => bytes.extend_from_slice(content),
                None if !matches!(self.geometry.kind, Kind::Caveat { .. }) => {
                    bytes.resize(bytes.len() + BLOCK_BYTES, 0);
                }
                _ => return Err(broken(format!("block {at} was destroyed by a write before it"))),
            }
            if self.zone_of(at).is_some_and(|zone| self.failed.get(&zone) == Some(&ZoneCondition::Offline)) {
                return Err(DeviceFault::new(format!("block {at} lies in a zone that is offline")));
            }
        }
        Ok(Answer::Bytes(bytes))
    }

    /// Returns the sequential zone of `block`, if it is in one.
    fn zone_of(&self, block: u64) -> Option<u32> {
        let Kind::Zoned { zone_blocks, conventional, .. } = self.geometry.kind else { return None };
        let zone = (block / zone_blocks) as u32;
        (zone >= conventional).then_some(zone)
    }

    /// Checks a write of `blocks` from `block` on against the rules of the device.
    ///
    /// # Errors
    /// The write breaks a rule, or its zone has failed.
    fn check_write(&self, block: u64, blocks: u64) -> Result<(), DeviceFault> {
        let Kind::Zoned { zone_blocks, active_max, .. } = self.geometry.kind else { return Ok(()) };
        let Some(zone) = self.zone_of(block) else {
            let ends_inside = self.zone_of(block + blocks - 1).is_none();
            return if ends_inside { Ok(()) } else { Err(broken("a write leaves the conventional zones".into())) };
        };
        if let Some(condition) = self.failed.get(&zone) {
            return Err(DeviceFault::new(format!("zone {zone} is {condition:?}")));
        }
        let written = self.written.get(&zone).copied().unwrap_or(0);
        let pointer = u64::from(zone) * zone_blocks + written;
        if block != pointer || written + blocks > zone_blocks {
            return Err(broken(format!(
                "zone {zone}: a write of {blocks} blocks at {block}, its pointer at {pointer}"
            )));
        }
        let active = self.written.values().filter(|&&written| written < zone_blocks).count();
        if written == 0 && active_max.is_some_and(|max| active >= max as usize) {
            return Err(broken(format!("zone {zone}: {active} zones are partly written, and no more may be")));
        }
        Ok(())
    }

    fn put(&mut self, block: u64, bytes: Rc<[u8]>) {
        self.blocks.insert(block, Content::Bytes(bytes));
        if let (Some(zone), Kind::Zoned { zone_blocks, .. }) = (self.zone_of(block), self.geometry.kind) {
            self.written.insert(zone, block % zone_blocks + 1);
        }
    }

    /// Marks the blocks as destroyed that a write of `blocks` from `block` on destroys (§3.2).
    fn destroy_behind(&mut self, block: u64, blocks: u64) {
        let Kind::Caveat { isolation, no_overlap } = self.geometry.kind else { return };
        let end = block + blocks;
        let first = (block + 1 + no_overlap).max(end);
        let last = (end + isolation).min(self.geometry.blocks);
        for at in first..last {
            self.blocks.insert(at, Content::Destroyed);
        }
    }

    fn reset(&mut self, zone: u32) -> Outcome {
        let Kind::Zoned { zone_blocks, conventional, zones, .. } = self.geometry.kind else {
            return Err(broken("a device without zones was to reset one".into()));
        };
        if zone < conventional || zone >= zones || self.failed.contains_key(&zone) {
            return Err(DeviceFault::new(format!("zone {zone} cannot be reset")));
        }
        self.written.remove(&zone);
        let first = u64::from(zone) * zone_blocks;
        let gone: Vec<u64> = self.blocks.range(first..first + zone_blocks).map(|(at, _)| *at).collect();
        for at in gone {
            self.blocks.remove(&at);
        }
        Ok(Answer::Done)
    }

    fn finish(&mut self, zone: u32) -> Outcome {
        let Kind::Zoned { zone_blocks, conventional, zones, .. } = self.geometry.kind else {
            return Err(broken("a device without zones was to finish one".into()));
        };
        if zone < conventional || zone >= zones || self.failed.contains_key(&zone) {
            return Err(DeviceFault::new(format!("zone {zone} cannot be finished")));
        }
        self.written.insert(zone, zone_blocks);
        Ok(Answer::Done)
    }

    fn zones(&self) -> Vec<ZoneState> {
        let Kind::Zoned { zone_blocks, zones, conventional, .. } = self.geometry.kind else { return Vec::new() };
        let state = |zone: u32| {
            let written = self.written.get(&zone).copied().unwrap_or(0);
            let condition = match self.failed.get(&zone) {
                Some(&condition) => condition,
                None if zone < conventional => ZoneCondition::Conventional,
                None if written == zone_blocks => ZoneCondition::Full,
                None => ZoneCondition::Writable,
            };
            ZoneState { written, condition }
        };
        (0..zones).map(state).collect()
    }

    /// Alters the bytes of block `block`, like decay of the medium. `alter` gets the 4096 bytes of the block: zeros if
    /// the block was never written or was destroyed. The block can be read afterwards.
    pub fn corrupt(&mut self, block: u64, alter: impl FnOnce(&mut [u8])) {
        let mut bytes = match self.blocks.get(&block) {
            Some(Content::Bytes(bytes)) => bytes.to_vec(),
            _ => vec![0; BLOCK_BYTES],
        };
        alter(&mut bytes);
        self.blocks.insert(block, Content::Bytes(bytes.into()));
    }

    /// Puts sequential zone `zone`, counted from 0, into the failed condition `condition`: read-only or offline.
    /// Writes, resets and finishes of the zone fail from then on, and if it is offline, reads too.
    pub fn fail_zone(&mut self, zone: u32, condition: ZoneCondition) {
        self.failed.insert(zone, condition);
    }

    /// Returns the 4096 bytes of a block. Returns `None` if the block was not written or altered since the device was
    /// new, since the block was destroyed, or since its zone was reset.
    pub fn block(&self, block: u64) -> Option<&[u8]> {
        match self.blocks.get(&block)? {
            Content::Bytes(bytes) => Some(bytes),
            Content::Destroyed => None,
        }
    }

    /// Returns the numbers of the blocks that were written, altered or destroyed, in ascending order, without those of
    /// zones that were reset since.
    pub fn used_blocks(&self) -> Vec<u64> {
        self.blocks.keys().copied().collect()
    }
}

fn broken(reason: String) -> DeviceFault {
    DeviceFault { reason, breaks_rules: true }
}

impl Snapshot {
    /// Returns the number of block writes that were not durable at the time of the snapshot. Two writes of one block
    /// count twice.
    pub fn unflushed(&self) -> usize {
        self.since.len()
    }

    /// Returns the contents after a power cut at the time of the snapshot. `survives` is called once for each block
    /// write that was not durable, in order, with its index counted from 0, and returns whether the write survives.
    /// Other writes leave the earlier contents of the block.
    ///
    /// In a sequential zone, a write that does not survive takes all later ones of the zone with it. On a caveat disk,
    /// a write destroys the blocks after it even if it does not survive.
    pub fn cut(&self, mut survives: impl FnMut(usize) -> bool) -> Contents {
        let mut left = self.durable.clone();
        for (number, write) in self.since.iter().enumerate() {
            let survives = survives(number);
            match left.zone_of(write.block) {
                Some(_) if left.check_write(write.block, 1).is_err() => continue,
                _ if !survives => {}
                _ => left.put(write.block, write.bytes.clone()),
            }
            // Even a torn write may have destroyed the blocks behind it.
            left.destroy_behind(write.block, 1);
        }
        left
    }
}

/// Collector of snapshots of several devices, one set after each event of any of them.
#[derive(Debug)]
struct Recorder {
    devices: Vec<Model>,
    taken: RefCell<Vec<Vec<Snapshot>>>,
}

/// State shared by all handles of the model.
#[derive(Debug)]
struct State {
    view: Contents,
    durable: Contents,
    since: Vec<Unflushed>,
    /// Number of writes, flushes, resets and finishes so far.
    events: u64,
    /// Number of operations that broke the rules.
    broken: u64,
    /// Collector to which each event is reported.
    recorder: Option<Rc<Recorder>>,
    /// Number of events that still succeed before the device fails; no limit if none.
    events_left: Option<u64>,
}

/// Backend that models a device in memory, with knowledge of which writes are durable. A clone is another handle of the
/// same device, for a test.
#[derive(Clone, Debug)]
pub struct Model {
    state: Rc<RefCell<State>>,
    answers: VecDeque<(u64, Outcome)>,
    head: u64,
}

impl Model {
    /// Returns a new device of `geometry`: blocks read as zeros and zones are empty. On a caveat disk every block
    /// counts as destroyed instead.
    pub fn new(geometry: Geometry) -> Model {
        Model::with(Contents::new(geometry))
    }

    /// Returns a device that holds `contents`, all of them durable.
    pub fn with(contents: Contents) -> Model {
        let (view, durable) = (contents.clone(), contents);
        let state = State { view, durable, since: Vec::new(), events: 0, broken: 0, recorder: None, events_left: None };
        Model { state: Rc::new(RefCell::new(state)), answers: VecDeque::new(), head: 0 }
    }

    /// Starts to record snapshots. After every write, flush, reset and finish of any of `devices`, a snapshot of each
    /// of `devices` is taken, in their order. An earlier recording on these devices ends.
    pub fn keep_snapshots(devices: &[Model]) {
        let recorder = Rc::new(Recorder { devices: devices.to_vec(), taken: RefCell::default() });
        devices.iter().for_each(|device| device.state.borrow_mut().recorder = Some(recorder.clone()));
    }

    /// Stops recording snapshots on `devices`, and returns the recorded ones. Each element holds one snapshot per
    /// device, in the order given to [`Model::keep_snapshots`]. Returns an empty list if nothing was recorded.
    pub fn take_snapshots(devices: &[Model]) -> Vec<Vec<Snapshot>> {
        let recorders = devices.iter().filter_map(|device| device.state.borrow_mut().recorder.take());
        let recorder = recorders.collect::<Vec<_>>().pop();
        recorder.map(|recorder| std::mem::take(&mut *recorder.taken.borrow_mut())).unwrap_or_default()
    }

    /// Returns a snapshot of the present state: the durable contents and the writes that are not durable yet.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.state.borrow();
        Snapshot { durable: state.durable.clone(), since: state.since.clone() }
    }

    /// Returns the present contents, those writes included that are not durable yet.
    pub fn contents(&self) -> Contents {
        self.state.borrow().view.clone()
    }

    /// Changes the contents like a fault of the medium: the change is durable at once. `alter` is called twice, for the
    /// present contents and for the durable ones.
    pub fn alter(&self, alter: impl Fn(&mut Contents)) {
        let mut state = self.state.borrow_mut();
        alter(&mut state.view);
        alter(&mut state.durable);
    }

    /// Makes every operation, reads included, fail after `events` more writes, flushes, resets and finishes, as on a
    /// dead drive. With 0 the next operation fails.
    pub fn fail_after(&self, events: u64) {
        self.state.borrow_mut().events_left = Some(events);
    }

    /// Returns the number of writes, flushes, resets and finishes that the device performed so far. Those that broke a
    /// rule count too; those after the failure set by [`Model::fail_after`] do not.
    pub fn events(&self) -> u64 {
        self.state.borrow().events
    }

    /// Returns the number of operations so far that broke the rules of the device, such as writes off the write pointer
    /// or over the limit of active zones, and reads of destroyed blocks.
    pub fn broken_rules(&self) -> u64 {
        self.state.borrow().broken
    }
}

impl State {
    fn write(&mut self, block: u64, bytes: &[u8]) -> Outcome {
        let blocks = (bytes.len() / BLOCK_BYTES) as u64;
        self.view.check_write(block, blocks)?;
        for (number, piece) in bytes.chunks(BLOCK_BYTES).enumerate() {
            let (at, bytes) = (block + number as u64, Rc::<[u8]>::from(piece));
            self.view.put(at, bytes.clone());
            self.since.push(Unflushed { block: at, bytes });
        }
        self.view.destroy_behind(block, blocks);
        Ok(Answer::Done)
    }

    fn flush(&mut self) -> Outcome {
        for write in self.since.drain(..) {
            self.durable.put(write.block, write.bytes);
            self.durable.destroy_behind(write.block, 1);
        }
        Ok(Answer::Done)
    }

    fn reset(&mut self, zone: u32) -> Outcome {
        self.view.reset(zone)?;
        // A reset is durable at once, so unflushed writes to its zone are dropped.
        self.durable.reset(zone)?;
        let durable = &self.durable;
        self.since.retain(|write| durable.zone_of(write.block) != Some(zone));
        Ok(Answer::Done)
    }

    /// Finishes a zone. The finish and all writes to the zone are durable at once.
    fn finish(&mut self, zone: u32) -> Outcome {
        let durable = &self.durable;
        let (inside, others) = self.since.drain(..).partition(|write| durable.zone_of(write.block) == Some(zone));
        self.since = others;
        for write in inside {
            let write: Unflushed = write;
            self.durable.put(write.block, write.bytes);
        }
        self.view.finish(zone)?;
        self.durable.finish(zone)
    }

    fn perform(&mut self, operation: Operation) -> Outcome {
        let is_event = !matches!(operation, Operation::Read { .. } | Operation::Report);
        match &mut self.events_left {
            Some(0) => return Err(DeviceFault::new("the drive does not answer")),
            Some(left) => *left -= u64::from(is_event),
            None => {}
        }
        let outcome = match operation {
            Operation::Read { block, blocks } => self.view.read(block, blocks),
            Operation::Write { block, bytes } => self.write(block, &bytes),
            Operation::Flush => self.flush(),
            Operation::Reset(zone) => self.reset(zone),
            Operation::Finish(zone) => self.finish(zone),
            Operation::Report => Ok(Answer::Zones(self.view.zones())),
        };
        self.broken += u64::from(matches!(&outcome, Err(fault) if fault.breaks_rules));
        self.events += u64::from(is_event);
        outcome
    }
}

impl Backend for Model {
    fn geometry(&self) -> Geometry {
        self.state.borrow().view.geometry
    }

    fn submit(&mut self, _now_ns: u64, number: u64, operation: Operation) {
        if let Operation::Read { block, blocks } = operation {
            self.head = block + blocks;
        } else if let Operation::Write { block, bytes } = &operation {
            self.head = block + (bytes.len() / BLOCK_BYTES) as u64;
        }
        let events_before = self.events();
        let outcome = self.state.borrow_mut().perform(operation);
        let recorder = self.state.borrow().recorder.clone();
        if let Some(recorder) = recorder.filter(|_| self.events() > events_before) {
            let all = recorder.devices.iter().map(Model::snapshot).collect();
            recorder.taken.borrow_mut().push(all);
        }
        self.answers.push_back((number, outcome));
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        (!self.answers.is_empty()).then_some(now_ns)
    }

    fn answers(&mut self, _now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        answers.extend(self.answers.drain(..));
    }

    fn head_position(&self) -> u64 {
        self.head
    }
}
