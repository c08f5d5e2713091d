//! The area of the metadata, on one device or mirrored on several: what is written is written to every copy that is up
//! to date, what is read is read from the first in which it is whole.
//!
//! ```text
//!   current ──(a write or a flush fails)──► lost          the others get a higher generation before anything more counts
//!      ▲                                                    │
//!      └──(copied whole)── outdated ◄──(mounted again)──────┘
//! ```
//!
//! Copies of one generation hold the same, but for what was on its way when the power went: log frames that one has and the
//! other has not, and the header of a checkpoint, are brought into line when the file system is mounted, before anything is
//! written. Pages of checksums that differ then are those that the log describes anew.
//!
//! Invariants:
//! 1. What [`Mirror::flush`] covered is on every copy that is current, and every copy of the highest generation is
//!    current.
//! 2. Nothing is read of a copy that is outdated or lost.
//! 3. The last copy that is current is never lost: where it fails, whoever writes is told.
//! 4. Each mount that may write begins a generation: no copy is written, but for its superblocks, before all copies that are
//!    current bear it. So a copy put back as of an earlier mount is known, whichever it is.
//! 5. No record is written before the contents of files that it names in the hot zone are durable: whoever makes it has flushed
//!    them, or [`Mirror::owe_flush`].

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::clock::{Gate, Local, Signal, all_of};
use crate::device::area::{Area, Place};
use crate::device::{BLOCK_BYTES, Device, DeviceFault, Traffic};
use crate::format::superblock::{Member, Superblock, Witness};

/// Blocks that are copied at once.
const PIECE_BLOCKS: u64 = 256;
/// Blocks of the area that bear the superblock: the *labels* of a copy.
pub const LABELS: u64 = 2;

/// How a copy stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It holds what the others hold.
    Current,
    /// It is written, and what was there before is being copied to it.
    Outdated,
    /// It failed, and is left alone.
    Lost,
    /// Another came in its place.
    Replaced,
}

impl State {
    fn is_written(self) -> bool {
        matches!(self, State::Current | State::Outdated)
    }
}

struct Copy {
    /// Which of the devices with metadata it is.
    slot: usize,
    area: Area,
    state: State,
    /// What it will be once it is current, where it comes in the place of another.
    comes_as: Option<Member>,
}

struct Inner {
    place: Place,
    copies: RefCell<Vec<Copy>>,
    /// What the labels of all copies say; they differ only in which copy each is on.
    superblock: RefCell<Superblock>,
    is_read_only: bool,
    /// Other copies are current now than the labels say.
    needs_labels: Cell<bool>,
    /// Held by whoever writes labels, or waits until they are written.
    labelling: Gate,
    /// Held while a piece is copied, and by each write as long as there is a copy to bring up to date.
    copying: Gate,
    /// Writes under way that began when no copy had to be brought up to date.
    writing: Cell<u64>,
    /// Given when there are no such writes any more.
    is_quiet: Signal,
    mended_blocks: Cell<u64>,
    /// The first block that holds contents of files: the hot zone.
    files_from: u64,
    /// Such blocks were written since all was last made durable, and nobody but the log sees to it.
    has_files_to_flush: Cell<bool>,
    /// A mistake made on purpose, for tests.
    mistake: Cell<Option<Mistake>>,
}

/// A mistake made on purpose, for tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// Records are written before the contents of files in the hot zone are durable.
    FilesNotFlushed,
    /// Contents of files are written to the first copy alone.
    OneCopyWritten,
    /// A mount begins no generation.
    GenerationNotBegun,
    /// Superblocks do not vouch for log and checkpoints.
    NoWitness,
}

/// The area of the metadata. Cloning gives another handle of the same.
#[derive(Clone)]
pub struct Mirror(Rc<Inner>);

type Outcomes = Vec<(usize, Result<(), DeviceFault>)>;

/// Where the hot zone begins in the area, if there is one.
fn files_from(superblock: &Superblock) -> u64 {
    if superblock.layout.hot.1 > 0 { superblock.layout.hot.0 } else { u64::MAX }
}

impl Mirror {
    /// The area that `superblock` describes, on `devices`: for each the number of the copy, the device, and whether it
    /// is up to date. At least one is.
    pub fn new(superblock: &Superblock, devices: Vec<(usize, Device, bool)>, is_read_only: bool) -> Mirror {
        let (place, files_from) = (superblock.layout.place, files_from(superblock));
        let copy = |(slot, device, is_current): (usize, Device, bool)| {
            let state = if is_current { State::Current } else { State::Outdated };
            Copy { slot, area: Area::new(device, place).with_files_from(files_from), state, comes_as: None }
        };
        // What is only looked at is not brought up to date.
        let used = devices.into_iter().filter(|(.., is_current)| *is_current || !is_read_only);
        let copies: Vec<Copy> = used.map(copy).collect();
        let is_there = |slot: usize| copies.iter().any(|copy| copy.slot == slot && copy.state == State::Current);
        let slots = superblock.metadata_members().len();
        let needs_labels = (0..slots).any(|slot| superblock.standing.is_current(slot) && !is_there(slot));
        assert!(copies.iter().any(|copy| copy.state == State::Current), "one copy is up to date");
        Mirror(Rc::new(Inner {
            place,
            copies: RefCell::new(copies),
            superblock: RefCell::new(superblock.clone()),
            is_read_only,
            needs_labels: Cell::new(needs_labels && !is_read_only),
            labelling: Gate::default(),
            copying: Gate::default(),
            writing: Cell::new(0),
            is_quiet: Signal::default(),
            mended_blocks: Cell::new(0),
            files_from,
            has_files_to_flush: Cell::new(false),
            mistake: Cell::new(None),
        }))
    }

    /// From now on this mistake is made.
    pub fn make_mistake(&self, mistake: Option<Mistake>) {
        self.0.mistake.set(mistake);
    }

    /// How many copies are current.
    pub fn current_copies(&self) -> usize {
        self.0.copies.borrow().iter().filter(|copy| copy.state == State::Current).count()
    }

    /// What its devices are called, those that are current.
    pub fn name(&self) -> String {
        let names: Vec<String> = self.current().iter().map(|(_, area)| area.device().name().to_string()).collect();
        names.join(" and ")
    }

    /// The device of the first copy that is current.
    pub fn device(&self) -> Device {
        self.current().first().expect("one is always current: invariant 3").1.device().clone()
    }

    /// Each copy: which of the devices with metadata it is, what it is called, and how it stands.
    pub fn copies(&self) -> Vec<(usize, String, State)> {
        let copies = self.0.copies.borrow();
        copies.iter().map(|copy| (copy.slot, copy.area.device().name().to_string(), copy.state)).collect()
    }

    /// Returns the devices of the copies that are current.
    pub fn current_devices(&self) -> Vec<Device> {
        self.current().iter().map(|(_, area)| area.device().clone()).collect()
    }

    /// Whether a copy that is written lies on `device`.
    pub fn uses(&self, device: &Device) -> bool {
        let copies = self.0.copies.borrow();
        copies.iter().any(|copy| copy.state.is_written() && copy.area.device().is(device))
    }

    /// The generation that the copies which are current bear.
    pub fn generation(&self) -> u64 {
        self.0.superblock.borrow().standing.generation
    }

    /// Blocks that were missing or damaged on a copy that is current, and were written from another.
    pub fn mended_blocks(&self) -> u64 {
        self.0.mended_blocks.get()
    }

    /// What was asked of its devices.
    pub fn traffic(&self) -> Traffic {
        let copies = self.0.copies.borrow();
        copies.iter().map(|copy| copy.area.device().traffic()).fold(Traffic::default(), |sum, one| sum.and(&one))
    }

    /// The copies that are current.
    fn current(&self) -> Vec<(usize, Area)> {
        self.in_state(|state| state == State::Current)
    }

    fn in_state(&self, is_meant: impl Fn(State) -> bool) -> Vec<(usize, Area)> {
        let copies = self.0.copies.borrow();
        let meant = copies.iter().enumerate().filter(|(_, copy)| is_meant(copy.state));
        meant.map(|(number, copy)| (number, copy.area.clone())).collect()
    }

    /// Reads `blocks` from `block` on, of the first copy that gives them.
    pub async fn read(&self, block: u64, blocks: u64) -> Result<Vec<u8>, DeviceFault> {
        let mut fault = None;
        for (_, area) in self.current() {
            match area.read(block, blocks).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => fault = Some(error),
            }
        }
        Err(fault.expect("one is always current: invariant 3"))
    }

    /// The same; where no copy gives all of them, block by block, with zeros for those that none gives: they match no checksum.
    pub async fn read_what_can_be(&self, block: u64, blocks: u64) -> Vec<u8> {
        if let Ok(bytes) = self.read(block, blocks).await {
            return bytes;
        }
        let mut bytes = Vec::with_capacity(blocks as usize * BLOCK_BYTES);
        for at in block..block + blocks {
            bytes.extend(self.read(at, 1).await.unwrap_or_else(|_| vec![0; BLOCK_BYTES]));
        }
        bytes
    }

    /// Reads `blocks` from `block` on of every copy that gives them.
    pub async fn read_each(&self, block: u64, blocks: u64) -> Vec<Vec<u8>> {
        let mut each = Vec::new();
        for (_, area) in self.current() {
            each.extend(area.read(block, blocks).await.ok());
        }
        each
    }

    /// Reads `blocks` from `block` on of every copy that is current, all at once; nothing of one that does not give all of them.
    pub async fn read_copies(&self, block: u64, blocks: u64) -> Vec<Option<Vec<u8>>> {
        let areas = self.current();
        let reads = areas.iter().map(|(_, area)| {
            Box::pin(async move { area.read(block, blocks).await.ok() }) as Local<'_, Option<Vec<u8>>>
        });
        all_of(reads.collect()).await
    }

    /// The first block from `block` on that may hold something other than zeros on some copy, or one behind their end.
    pub fn next_data(&self, block: u64) -> u64 {
        let copies = self.in_state(State::is_written);
        copies.iter().map(|(_, area)| area.next_data(block)).min().unwrap_or(block)
    }

    /// Which of `blocks` from `block` on, counted from there, are damaged on some copy that is current, as `is_right`
    /// has it.
    pub async fn damaged_blocks(&self, block: u64, blocks: u64, is_right: impl Fn(u64, &[u8]) -> bool) -> Vec<u64> {
        let mut damaged = std::collections::BTreeSet::new();
        for (_, area) in self.current() {
            match area.read(block, blocks).await {
                Ok(bytes) => {
                    let pages = (0..).zip(bytes.chunks(BLOCK_BYTES));
                    damaged.extend(pages.filter(|(at, page)| !is_right(*at, page)).map(|(at, _)| at));
                }
                Err(_) => {
                    for at in 0..blocks {
                        let is_damaged = area.read(block + at, 1).await.map_or(true, |page| !is_right(at, &page));
                        damaged.extend(is_damaged.then_some(at));
                    }
                }
            }
        }
        damaged.into_iter().collect()
    }

    /// What `look` finds in each copy that is current, one by one until `is_enough`.
    async fn look<T>(
        &self,
        look: impl AsyncFn(&Area) -> Option<T>,
        is_enough: impl Fn(&T) -> bool,
    ) -> Vec<(usize, Option<T>)> {
        let mut found = Vec::new();
        for (number, area) in self.current() {
            let one = look(&area).await;
            let ends = one.as_ref().is_some_and(&is_enough);
            found.push((number, one));
            if ends {
                break;
            }
        }
        found
    }

    /// The bytes that `look` finds, from the first copy in which they are whole; and whether a copy before that one has
    /// them damaged.
    pub async fn find(&self, look: impl AsyncFn(&Area) -> Option<Vec<u8>>) -> Option<(Vec<u8>, bool)> {
        let mut found = self.look(look, |_| true).await;
        let is_damaged = found.len() > 1;
        Some((found.pop()?.1?, is_damaged))
    }

    /// The same for whole blocks from `block` on; copies in which they are not whole get them again. Nobody else may write
    /// there meanwhile.
    pub async fn find_and_mend(&self, block: u64, look: impl AsyncFn(&Area) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        let found = self.look(look, |_| true).await;
        let (_, whole) = found.last().cloned()?;
        self.give(block, &found, whole.as_ref()?).await;
        whole
    }

    /// The same, and looks in every copy, so that none is left without them.
    pub async fn mend_each(&self, block: u64, look: impl AsyncFn(&Area) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        let found = self.look(look, |_| false).await;
        let whole = found.iter().find_map(|(_, bytes)| bytes.clone())?;
        self.give(block, &found, &whole).await;
        Some(whole)
    }

    /// The whole blocks from `block` on that `look` finds in any copy; where copies have different ones, those that
    /// come last by `order`. Copies that have others, or none, are given these.
    pub async fn agree(
        &self,
        block: u64,
        order: impl Fn(&[u8]) -> u64,
        look: impl AsyncFn(&Area) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let found = self.look(look, |_| false).await;
        let last = found.iter().filter_map(|(_, bytes)| bytes.as_ref()).max_by_key(|bytes| order(bytes)).cloned()?;
        self.give(block, &found, &last).await;
        Some(last)
    }

    /// Writes `bytes` from `block` on to the copies that were found to have something else.
    async fn give(&self, block: u64, found: &[(usize, Option<Vec<u8>>)], bytes: &[u8]) {
        if self.0.is_read_only {
            return;
        }
        for (number, _) in found.iter().filter(|(_, there)| there.as_deref() != Some(bytes)) {
            let area = self.0.copies.borrow()[*number].area.clone();
            let blocks = (bytes.len() / BLOCK_BYTES) as u64;
            self.0.mended_blocks.set(self.0.mended_blocks.get() + blocks);
            if area.write(block, bytes).await.is_err() {
                self.lose(*number);
            }
        }
    }

    /// A copy failed. Where it is the last one that is current it stays so: whoever writes is told.
    fn lose(&self, number: usize) {
        let is_other = |(other, _): &(usize, Area)| *other != number;
        let has_others = self.current().iter().any(is_other);
        let copy = &mut self.0.copies.borrow_mut()[number];
        match copy.state {
            State::Current if !has_others => {}
            State::Current => {
                copy.state = State::Lost;
                self.0.needs_labels.set(true);
            }
            State::Outdated => copy.state = State::Lost,
            State::Lost | State::Replaced => {}
        }
    }

    /// Gives up copies that failed, as long as one is left; else returns why they failed.
    fn settle(&self, outcomes: Outcomes) -> Result<(), DeviceFault> {
        let is_current = |number: usize| self.0.copies.borrow()[number].state == State::Current;
        let mut fault = None;
        let mut is_done = false;
        for (number, outcome) in &outcomes {
            is_done |= outcome.is_ok() && is_current(*number);
            fault = outcome.as_ref().err().filter(|_| is_current(*number)).cloned().or(fault);
        }
        if !is_done {
            return fault.map_or(Ok(()), Err);
        }
        outcomes.iter().filter(|(_, outcome)| outcome.is_err()).for_each(|(number, _)| self.lose(*number));
        Ok(())
    }

    /// Writes `bytes`, whole blocks, from `block` on.
    pub async fn write(&self, block: u64, bytes: &[u8]) -> Result<(), DeviceFault> {
        if self.has_outdated() {
            let _pass = self.0.copying.enter().await;
            return self.write_all(block, bytes).await;
        }
        self.0.writing.set(self.0.writing.get() + 1);
        let outcome = self.write_all(block, bytes).await;
        self.0.writing.set(self.0.writing.get() - 1);
        if self.0.writing.get() == 0 {
            self.0.is_quiet.give();
        }
        outcome
    }

    /// Contents of files were written to the hot zone that are to be durable before the next record is written.
    pub fn owe_flush(&self) {
        self.0.has_files_to_flush.set(true);
    }

    /// Makes contents of files durable for which that is owed.
    pub async fn flush_files(&self) -> Result<(), DeviceFault> {
        if self.0.has_files_to_flush.get() && self.0.mistake.get() != Some(Mistake::FilesNotFlushed) {
            return self.flush().await;
        }
        Ok(())
    }

    async fn write_all(&self, block: u64, bytes: &[u8]) -> Result<(), DeviceFault> {
        let mut areas = self.in_state(State::is_written);
        if self.0.mistake.get() == Some(Mistake::OneCopyWritten) && block >= self.0.files_from {
            areas.truncate(1);
        }
        let writes = areas.iter().map(|(number, area)| {
            Box::pin(async move { (*number, area.write(block, bytes).await) }) as Local<'_, (usize, Result<(), _>)>
        });
        self.settle(all_of(writes.collect()).await)
    }

    /// Makes durable what was written. Where a copy was lost before, the others know of it then.
    pub async fn flush(&self) -> Result<(), DeviceFault> {
        let had_files = self.0.has_files_to_flush.replace(false);
        if let Err(fault) = self.flush_all().await {
            self.0.has_files_to_flush.set(self.0.has_files_to_flush.get() || had_files);
            return Err(fault);
        }
        // Nobody is told that something is durable while others are about to say on which copies.
        let _pass = self.0.labelling.enter().await;
        while self.0.needs_labels.replace(false) {
            if let Err(fault) = self.relabel().await {
                self.0.needs_labels.set(true);
                return Err(fault);
            }
        }
        Ok(())
    }

    async fn flush_all(&self) -> Result<(), DeviceFault> {
        let areas = self.in_state(State::is_written);
        let flushes = areas.iter().map(|(number, area)| {
            Box::pin(async move { (*number, area.flush().await) }) as Local<'_, (usize, Result<(), _>)>
        });
        self.settle(all_of(flushes.collect()).await)
    }

    fn current_slots(&self) -> Vec<usize> {
        let copies = self.0.copies.borrow();
        copies.iter().filter(|copy| copy.state == State::Current).map(|copy| copy.slot).collect()
    }

    /// Begins a generation, in which the copies that are current now are.
    async fn relabel(&self) -> Result<(), DeviceFault> {
        let slots = self.current_slots();
        self.0.superblock.borrow_mut().standing.advance(|slot| slots.contains(&slot));
        self.write_labels().await
    }

    /// Writes the superblock to every copy that is current, twice; durable when it returns.
    pub async fn write_labels(&self) -> Result<(), DeviceFault> {
        self.0.superblock.borrow_mut().writes += 1;
        for block in (0..LABELS).rev() {
            let current = self.current();
            let writes = current.iter().map(|(number, area)| {
                let label = self.label(*number);
                Box::pin(async move {
                    let written = area.write(block, &label).await;
                    (*number, if written.is_ok() { area.flush().await } else { written })
                }) as Local<'_, (usize, Result<(), _>)>
            });
            let outcomes = all_of(writes.collect()).await;
            self.settle(outcomes)?;
        }
        Ok(())
    }

    fn label(&self, number: usize) -> Vec<u8> {
        let superblock = self.0.superblock.borrow();
        let member = superblock.metadata_members()[self.0.copies.borrow()[number].slot] as u32;
        Superblock { member, ..superblock.clone() }.encode()
    }

    /// Begins to write: a new generation, which all copies that are current bear when this returns (invariant 4). The power may
    /// go when some bear it and others do not yet: so they are told of it before it counts.
    pub async fn begin(&self) -> Result<(), DeviceFault> {
        if self.0.is_read_only {
            return Ok(());
        }
        self.mend_labels().await;
        if self.0.mistake.get() == Some(Mistake::GenerationNotBegun) {
            return self.flush().await;
        }
        let _pass = self.0.labelling.enter().await;
        self.0.needs_labels.set(false);
        let slots = self.current_slots();
        {
            let mut superblock = self.0.superblock.borrow_mut();
            superblock.standing.announce(|slot| slots.contains(&slot));
            superblock.witness.is_closed = false;
        }
        self.write_labels().await?;
        self.0.superblock.borrow_mut().standing.begin_writing();
        self.write_labels().await
    }

    /// Notes in all superblocks how far log and checkpoints reach; durable when it returns. What they reach must be durable.
    pub async fn witness(&self, witness: Witness) -> Result<(), DeviceFault> {
        let _pass = self.0.labelling.enter().await;
        if self.0.mistake.get() == Some(Mistake::NoWitness) {
            return Ok(());
        }
        self.0.superblock.borrow_mut().witness = witness;
        self.write_labels().await
    }

    /// How far log and checkpoints reach at least.
    pub fn witnessed(&self) -> Witness {
        self.0.superblock.borrow().witness
    }

    /// Writes superblocks again that are not as they should be on a copy that is current. Returns how many are damaged, or older than
    /// a cut of the power leaves them.
    pub async fn mend_labels(&self) -> u64 {
        let mut found = Vec::new();
        for (number, area) in self.current() {
            for block in (0..LABELS).rev() {
                let label = area.read(block, 1).await.ok().and_then(|bytes| Superblock::decode(&bytes).ok());
                found.push((number, block, label.filter(|label| label.uuid == self.0.superblock.borrow().uuid)));
            }
        }
        let newest = self.0.superblock.borrow().writes;
        // The second block is written first. When the first of some copy is of a time, the second is on all.
        let is_second_everywhere =
            found.iter().any(|(_, block, label)| *block == 0 && label.as_ref().is_some_and(|it| it.writes == newest));
        let mut damaged = 0;
        for (number, block, label) in found {
            let writes = label.as_ref().map(|label| label.writes);
            let may_be_behind = block == 0 || !is_second_everywhere;
            let is_right = writes.is_some_and(|writes| writes == newest || (may_be_behind && writes + 1 == newest));
            damaged += u64::from(!is_right);
            // One of an older format is written with the next generation.
            if writes != Some(newest) {
                self.give(block, &[(number, None)], &self.label(number)).await;
            }
        }
        damaged
    }

    /// Whether a copy is not up to date.
    pub fn has_outdated(&self) -> bool {
        self.0.copies.borrow().iter().any(|copy| copy.state == State::Outdated)
    }

    /// Whether the device that is number `slot` of those with metadata is current.
    pub fn is_current(&self, slot: usize) -> bool {
        self.0.copies.borrow().iter().any(|copy| copy.slot == slot && copy.state == State::Current)
    }

    /// Adds a copy on `device`, which comes in the place of the device that is number `slot` as `member`.
    pub fn add(&self, slot: usize, member: Member, device: Device) {
        let area = Area::new(device, self.0.place).with_files_from(files_from(&self.0.superblock.borrow()));
        self.0.copies.borrow_mut().push(Copy { slot, area, state: State::Outdated, comes_as: Some(member) });
    }

    /// Copies everything to the copies that are not up to date, which makes them current. `told` is called with the
    /// blocks copied and those in all, and says whether to go on. Returns how many copies were brought up to date.
    pub async fn bring_up_to_date(&self, mut told: impl FnMut(u64, u64) -> bool) -> Result<usize, DeviceFault> {
        while self.0.writing.get() > 0 {
            self.0.is_quiet.next().await;
        }
        let (mut block, end) = (LABELS, self.0.place.blocks);
        while block < end {
            if !self.has_outdated() || !told(block, end) {
                return Ok(0);
            }
            let count = PIECE_BLOCKS.min(end - block);
            let _pass = self.0.copying.enter().await;
            self.copy_piece(block, count).await?;
            block += count;
        }
        let _pass = self.0.copying.enter().await;
        self.flush_all().await?;
        let joined = self.join_outdated();
        if joined > 0 {
            self.0.needs_labels.set(true);
            self.flush().await?;
            told(end, end);
        }
        Ok(joined)
    }

    /// Gives up copies that are not up to date.
    pub fn give_up_outdated(&self) {
        let mut copies = self.0.copies.borrow_mut();
        copies.iter_mut().filter(|copy| copy.state == State::Outdated).for_each(|copy| copy.state = State::Lost);
    }

    async fn copy_piece(&self, block: u64, count: u64) -> Result<(), DeviceFault> {
        // What no copy gives bears no right checksum there either.
        let bytes = self.read_what_can_be(block, count).await;
        let areas = self.in_state(|state| state == State::Outdated);
        for (number, area) in areas {
            if area.write(block, &bytes).await.is_err() {
                self.lose(number);
            }
        }
        Ok(())
    }

    /// Copies that were outdated are current from now on; those that they replace are gone. Returns how many.
    fn join_outdated(&self) -> usize {
        let mut copies = self.0.copies.borrow_mut();
        let mut superblock = self.0.superblock.borrow_mut();
        let members = superblock.metadata_members();
        let mut joined = 0;
        let comes = copies.iter().filter(|copy| copy.state == State::Outdated && copy.comes_as.is_some());
        let comes: Vec<usize> = comes.map(|copy| copy.slot).collect();
        for copy in copies.iter_mut().filter(|copy| copy.state != State::Outdated && comes.contains(&copy.slot)) {
            copy.state = State::Replaced;
        }
        for copy in copies.iter_mut().filter(|copy| copy.state == State::Outdated) {
            copy.state = State::Current;
            joined += 1;
            if let Some(member) = copy.comes_as.take() {
                superblock.members[members[copy.slot]] = member;
            }
        }
        joined
    }

    /// What the labels say now.
    pub fn superblock(&self) -> Superblock {
        self.0.superblock.borrow().clone()
    }
}
