//! Metadata area on one device, or mirrored on several. A write goes to every copy that is up to date; a read returns
//! the first copy in which the data are intact.
//!
//! ```text
//!   current ──(a write or a flush fails)──► lost          the others get a higher generation before anything more counts
//!      ▲                                                    │
//!      └──(copied whole)── outdated ◄──(mounted again)──────┘
//! ```
//!
//! Copies of one generation are equal, except for writes in flight at a power cut. Log frames that only one copy has,
//! and the header of a checkpoint, are copied to the others when the file system is mounted, before anything is
//! written. Pages of checksums that differ then are those whose checksums the log contains, too.
//!
//! Invariants:
//! 1. Writes covered by [`Mirror::flush`] are on every current copy, and every copy of the highest generation is
//!    current.
//! 2. No outdated or lost copy is read.
//! 3. The last current copy is never marked as lost: if it fails, the writer gets the error.
//! 4. Each mount that may write starts a generation. No copy is written, except for its superblocks, before all current
//!    copies have this generation. So a copy restored from an earlier mount is recognized, whichever copy it is.
//! 5. A record is written only when the contents that it names in the hot zone are durable. The task that makes the
//!    record has flushed them, or has called [`Mirror::owe_flush`].

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use futures_util::future::join_all;

use crate::device::area::{Area, Place};
use crate::device::{BLOCK_BYTES, Device, DeviceFault, Traffic};
use crate::executor::{Local, Mutex, Signal};
use crate::format::superblock::{LastDurable, Member, Superblock};

/// Blocks that are copied at once.
const PIECE_BLOCKS: u64 = 256;
/// Number of blocks of 4 KiB at the start of each copy of the area that hold its superblock. Each of these blocks, the
/// *labels*, holds the whole superblock.
pub const LABELS: u64 = 2;

/// State of one copy of the metadata area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The copy is up to date: it is read and written, and equal to the other current copies.
    Current,
    /// The copy lacks earlier writes, which are being copied to it. It gets all new writes, and is not read.
    Outdated,
    /// A write or a flush of the copy failed. It is neither read nor written until the next mount.
    Lost,
    /// A copy on another device has replaced this one. It is neither read nor written.
    Replaced,
}

impl State {
    fn is_written(self) -> bool {
        matches!(self, State::Current | State::Outdated)
    }
}

struct Copy {
    /// Number of the copy's device among the devices with metadata.
    slot: usize,
    area: Area,
    state: State,
    /// Entry of the device in the superblock once the copy is current, if the copy replaces another.
    comes_as: Option<Member>,
}

struct Inner {
    place: Place,
    copies: RefCell<Vec<Copy>>,
    /// Superblock in the labels of all copies; the copies differ only in their own member number.
    superblock: RefCell<Superblock>,
    is_read_only: bool,
    /// Whether the labels name other copies as current than there are now.
    needs_labels: Cell<bool>,
    /// Lock of the task that writes labels, or waits until they are written.
    labelling: Mutex,
    /// Lock held while a piece is copied, and by each write while there is an outdated copy.
    copying: Mutex,
    /// Number of writes in flight that began when no copy was outdated.
    writing: Cell<u64>,
    /// Occurs when `writing` becomes 0.
    is_quiet: Signal,
    mended_blocks: Cell<u64>,
    /// Damage found since the last [`Mirror::count_damage_anew`], by number of the copy.
    damage: RefCell<BTreeMap<usize, Counted>>,
    /// First block of the hot zone, which holds contents of files.
    files_from: u64,
    /// Whether contents of files were written since the last flush, and the log must flush them before its next frame.
    has_files_to_flush: Cell<bool>,
    /// Fault that tests inject, if any.
    mistake: Cell<Option<Mistake>>,
}

/// Counts of damaged blocks of one copy.
#[derive(Clone, Copy, Default)]
struct Counted {
    damaged: u64,
    /// Number of damaged blocks whose repair failed.
    unrepaired: u64,
}

/// Damage of one copy of the metadata that a scrub found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyDamage {
    /// Slot of the copy: the index of its device, from 0, among the devices with metadata.
    pub slot: usize,
    /// Name of the device with the copy.
    pub device: String,
    /// State of the copy after the scrub. A scrub reads only current copies.
    pub state: State,
    /// Number of blocks of 4 KiB that were damaged on this copy.
    pub damaged: u64,
    /// Number of damaged blocks that were rewritten from another copy, or whose contents the copy needs no more. 0 if
    /// the scrub was not asked to repair, or if the copy was lost meanwhile.
    pub repaired: u64,
}

/// Fault of the mirror that tests of power cuts and lost writes inject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// Records of the log are written before the contents of files in the hot zone are durable.
    FilesNotFlushed,
    /// Contents of files in the hot zone are written only to the first copy.
    OneCopyWritten,
    /// A mount writes without starting a generation of the copies: a number by which a later mount recognises outdated
    /// copies.
    GenerationNotBegun,
    /// Superblocks do not record how far the log and the checkpoints reach.
    LastDurableNotRecorded,
}

/// Metadata area, mirrored on one or several devices. A clone is another handle of the same area. Its blocks of 4 KiB
/// are numbered from 0 on, equally on every device.
#[derive(Clone)]
pub struct Mirror(Rc<Inner>);

type Outcomes = Vec<(usize, Result<(), DeviceFault>)>;

/// Returns the first block of the hot zone in the area, or [`u64::MAX`] if there is none.
fn files_from(superblock: &Superblock) -> u64 {
    if superblock.layout.hot.1 > 0 { superblock.layout.hot.0 } else { u64::MAX }
}

impl Mirror {
    /// Returns the area that `superblock` describes. `devices` are its copies: for each the slot, the device, and
    /// whether the copy is up to date. The slot is the index of the device, from 0, among the devices with metadata. If
    /// `is_read_only`, copies that are not up to date are left out, and nothing is repaired. Nothing is read or
    /// written.
    ///
    /// # Panics
    /// No copy is up to date, or the area exceeds a device.
    pub fn new(superblock: &Superblock, devices: Vec<(usize, Device, bool)>, is_read_only: bool) -> Mirror {
        let (place, files_from) = (superblock.layout.place, files_from(superblock));
        let copy = |(slot, device, is_current): (usize, Device, bool)| {
            let state = if is_current { State::Current } else { State::Outdated };
            Copy { slot, area: Area::new(device, place).with_files_from(files_from), state, comes_as: None }
        };
        // A read-only mount does not update outdated copies.
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
            labelling: Mutex::default(),
            copying: Mutex::default(),
            writing: Cell::new(0),
            is_quiet: Signal::default(),
            mended_blocks: Cell::new(0),
            damage: RefCell::default(),
            files_from,
            has_files_to_flush: Cell::new(false),
            mistake: Cell::new(None),
        }))
    }

    /// Sets the fault that tests inject; `None` injects none.
    pub fn make_mistake(&self, mistake: Option<Mistake>) {
        self.0.mistake.set(mistake);
    }

    /// Returns the number of copies that are up to date.
    pub fn current_copies(&self) -> usize {
        self.0.copies.borrow().iter().filter(|copy| copy.state == State::Current).count()
    }

    /// Returns the names of the devices with current copies, joined by " and ", for messages.
    pub fn name(&self) -> String {
        let names: Vec<String> = self.current().iter().map(|(_, area)| area.device().name().to_string()).collect();
        names.join(" and ")
    }

    /// Returns the device of the current copy that comes first in the list given to [`Mirror::new`].
    pub fn device(&self) -> Device {
        self.current().first().expect("one copy is always current: invariant 3").1.device().clone()
    }

    /// Returns slot, device name and state of each copy, including lost and replaced ones. The slot is the index of the
    /// device, from 0, among the devices with metadata.
    pub fn copies(&self) -> Vec<(usize, String, State)> {
        let copies = self.0.copies.borrow();
        copies.iter().map(|copy| (copy.slot, copy.area.device().name().to_string(), copy.state)).collect()
    }

    /// Returns the devices of the copies that are up to date.
    pub fn current_devices(&self) -> Vec<Device> {
        self.current().iter().map(|(_, area)| area.device().clone()).collect()
    }

    /// Returns whether `device` has a copy that is written: one that is current or outdated.
    pub fn uses(&self, device: &Device) -> bool {
        let copies = self.0.copies.borrow();
        copies.iter().any(|copy| copy.state.is_written() && copy.area.device().is(device))
    }

    /// Returns the generation of the copies that are up to date: a number that grows at each mount for writing, and
    /// whenever the set of these copies changes. A mount recognises outdated copies by it.
    pub fn generation(&self) -> u64 {
        self.0.superblock.borrow().standing.generation
    }

    /// Returns how many blocks of 4 KiB of current copies were to be overwritten with a better version from another
    /// copy, since the mount. If one block of a piece, such as a frame of the log or a chunk of a checkpoint, is
    /// missing, damaged or older on a copy, all blocks of the piece count. Blocks count even if the write fails.
    pub fn mended_blocks(&self) -> u64 {
        self.0.mended_blocks.get()
    }

    /// Sets the counts of damaged blocks of all copies to 0. A scrub counts with [`Mirror::damaged_blocks`],
    /// [`Mirror::mend_labels`] and [`Mirror::note_damage`], and reads the counts from [`Mirror::damage`].
    pub fn count_damage_anew(&self) {
        self.0.damage.borrow_mut().clear();
    }

    /// Counts one damaged block of copy `number`: the index of the copy in the list given to [`Mirror::new`], as
    /// [`Mirror::read_copies`] returns it.
    pub fn note_damage(&self, number: usize) {
        self.0.damage.borrow_mut().entry(number).or_default().damaged += 1;
    }

    /// Counts one block that is damaged on all current copies, so none of them can be repaired.
    pub fn note_loss(&self) {
        let mut damage = self.0.damage.borrow_mut();
        self.current().iter().for_each(|(number, _)| damage.entry(*number).or_default().unrepaired += 1);
    }

    /// Returns the damage of each copy, replaced ones left out, that was counted since [`Mirror::count_damage_anew`].
    /// With `repairs`, the damaged blocks of copies that are current now count as repaired, unless their repair failed.
    pub fn damage(&self, repairs: bool) -> Vec<CopyDamage> {
        let (damage, copies) = (self.0.damage.borrow(), self.0.copies.borrow());
        let one = |(number, copy): (usize, &Copy)| {
            let Counted { damaged, unrepaired } = damage.get(&number).copied().unwrap_or_default();
            let is_kept = repairs && copy.state == State::Current;
            let repaired = if is_kept { damaged.saturating_sub(unrepaired) } else { 0 };
            let device = copy.area.device().name().to_string();
            CopyDamage { slot: copy.slot, device, state: copy.state, damaged, repaired }
        };
        copies.iter().enumerate().filter(|(_, copy)| copy.state != State::Replaced).map(one).collect()
    }

    /// Returns the sums of the operations of the devices of all copies, lost and replaced ones included. Operations on
    /// other parts of these devices count, too.
    pub fn traffic(&self) -> Traffic {
        let copies = self.0.copies.borrow();
        copies.iter().map(|copy| copy.area.device().traffic()).fold(Traffic::default(), |sum, one| sum.and(&one))
    }

    /// Returns the current copies, each with its index.
    fn current(&self) -> Vec<(usize, Area)> {
        self.in_state(|state| state == State::Current)
    }

    fn in_state(&self, is_meant: impl Fn(State) -> bool) -> Vec<(usize, Area)> {
        let copies = self.0.copies.borrow();
        let meant = copies.iter().enumerate().filter(|(_, copy)| is_meant(copy.state));
        meant.map(|(number, copy)| (number, copy.area.clone())).collect()
    }

    /// Reads `blocks` blocks of 4 KiB, from block `block` on, from the first current copy that can read all of them.
    /// Contents are not checked.
    ///
    /// # Errors
    /// No current copy can read all of the blocks.
    pub async fn read(&self, block: u64, blocks: u64) -> Result<Vec<u8>, DeviceFault> {
        let mut fault = None;
        for (_, area) in self.current() {
            match area.read(block, blocks).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => fault = Some(error),
            }
        }
        Err(fault.expect("one copy is always current: invariant 3"))
    }

    /// Reads `blocks` blocks of 4 KiB, from block `block` on. If no current copy can read all of them, each block is
    /// read from the first copy that can read it. A block that no copy can read becomes zeros, which match no checksum.
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

    /// Reads `blocks` blocks of 4 KiB, from block `block` on, from every current copy, one after the other. Returns the
    /// bytes of each copy that can read all of the blocks; other copies are left out.
    pub async fn read_each(&self, block: u64, blocks: u64) -> Vec<Vec<u8>> {
        let mut each = Vec::new();
        for (_, area) in self.current() {
            each.extend(area.read(block, blocks).await.ok());
        }
        each
    }

    /// Reads `blocks` blocks of 4 KiB, from block `block` on, from all current copies at once. Returns one entry for
    /// each copy, `None` for a copy that cannot read all of the blocks.
    pub async fn read_copies(&self, block: u64, blocks: u64) -> Vec<Option<Vec<u8>>> {
        self.read_numbered_copies(block, blocks).await.into_iter().map(|(_, bytes)| bytes).collect()
    }

    /// Like [`Mirror::read_copies`]. Returns the number of each copy, too, for [`Mirror::note_damage`].
    pub async fn read_numbered_copies(&self, block: u64, blocks: u64) -> Vec<(usize, Option<Vec<u8>>)> {
        let areas = self.current();
        let reads = areas.iter().map(|(number, area)| {
            Box::pin(async move { (*number, area.read(block, blocks).await.ok()) }) as Local<'_, (usize, Option<_>)>
        });
        join_all(reads).await
    }

    /// Returns the first block, of 4 KiB, from `block` on that may hold something other than zeros on a current or
    /// outdated copy. If there is none, the result is at or behind the end of the area.
    pub fn next_data(&self, block: u64) -> u64 {
        let copies = self.in_state(State::is_written);
        copies.iter().map(|(_, area)| area.next_data(block)).min().unwrap_or(block)
    }

    /// Returns which of the `blocks` blocks from `block` on are damaged on at least one current copy: they are
    /// unreadable, or `is_right` returns false for their contents. The returned numbers, and those passed to
    /// `is_right`, count from 0 at `block`. The result is in ascending order without repetition. Counts the damage of
    /// each copy ([`Mirror::damage`]).
    pub async fn damaged_blocks(&self, block: u64, blocks: u64, is_right: impl Fn(u64, &[u8]) -> bool) -> Vec<u64> {
        let mut damaged = std::collections::BTreeSet::new();
        for (number, area) in self.current() {
            let mut found = Vec::new();
            match area.read(block, blocks).await {
                Ok(bytes) => {
                    let pages = (0..).zip(bytes.chunks(BLOCK_BYTES));
                    found.extend(pages.filter(|(at, page)| !is_right(*at, page)).map(|(at, _)| at));
                }
                Err(_) => {
                    for at in 0..blocks {
                        let is_damaged = area.read(block + at, 1).await.map_or(true, |page| !is_right(at, &page));
                        found.extend(is_damaged.then_some(at));
                    }
                }
            }
            found.iter().for_each(|_| self.note_damage(number));
            damaged.extend(found);
        }
        damaged.into_iter().collect()
    }

    /// Calls `look` for each current copy until a result satisfies `is_enough`, and returns the results.
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

    /// Calls `look` for each current copy in turn until it returns bytes, that is, finds them intact. Returns these
    /// bytes, and whether an earlier copy did not have them intact. Returns `None` if no copy has them. Nothing is
    /// repaired.
    pub async fn find(&self, look: impl AsyncFn(&Area) -> Option<Vec<u8>>) -> Option<(Vec<u8>, bool)> {
        let mut found = self.look(look, |_| true).await;
        let is_damaged = found.len() > 1;
        Some((found.pop()?.1?, is_damaged))
    }

    /// Calls `look` for each current copy in turn until it returns bytes: whole blocks from block `block` on, found
    /// intact. Returns these bytes, or `None` if no copy has them. Writes them to the earlier copies that did not have
    /// them, unless the area is read-only. A copy on which this write fails is marked as lost. No other task may write
    /// these blocks meanwhile.
    pub async fn find_and_mend(&self, block: u64, look: impl AsyncFn(&Area) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        let found = self.look(look, |_| true).await;
        let (_, whole) = found.last().cloned()?;
        self.give(block, &found, whole.as_ref()?).await;
        whole
    }

    /// Calls `look` for all current copies; it returns whole blocks from block `block` on if they are intact there.
    /// Returns the bytes of the first intact copy, or `None` if no copy has them. Copies for which `look` returns
    /// `None` or other bytes are overwritten with the returned ones, unless the area is read-only. A copy on which this
    /// write fails is marked as lost.
    pub async fn mend_each(&self, block: u64, look: impl AsyncFn(&Area) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        let found = self.look(look, |_| false).await;
        let whole = found.iter().find_map(|(_, bytes)| bytes.clone())?;
        self.give(block, &found, &whole).await;
        Some(whole)
    }

    /// Calls `look` for all current copies; it returns whole blocks from block `block` on if they are intact there.
    /// Returns the blocks for which `order` returns the largest number, or `None` if no copy has any. If several copies
    /// have the largest number, returns the blocks of the last of them. Copies with other blocks, or none, are
    /// overwritten with the returned ones, unless the area is read-only. A copy on which this write fails is marked as
    /// lost, unless it is the last current one.
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

    /// Writes `bytes` from `block` on to the copies in which other bytes were found.
    async fn give(&self, block: u64, found: &[(usize, Option<Vec<u8>>)], bytes: &[u8]) {
        if self.0.is_read_only {
            return;
        }
        for (number, _) in found.iter().filter(|(_, there)| there.as_deref() != Some(bytes)) {
            let area = self.0.copies.borrow()[*number].area.clone();
            let blocks = (bytes.len() / BLOCK_BYTES) as u64;
            self.0.mended_blocks.set(self.0.mended_blocks.get() + blocks);
            if area.write(block, bytes).await.is_err() {
                self.0.damage.borrow_mut().entry(*number).or_default().unrepaired += blocks;
                self.lose(*number);
            }
        }
    }

    /// Marks a copy as lost after a failure. The last current copy stays current: its writer gets the error.
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

    /// Marks copies as lost whose operations failed, as long as one current copy succeeded; otherwise returns the
    /// fault.
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

    /// Writes `bytes`, whole blocks of 4 KiB, from block `block` on to all current and outdated copies. A copy that
    /// fails is marked as lost if at least one current copy succeeds. The write is durable only after
    /// [`Mirror::flush`].
    ///
    /// # Errors
    /// The write fails on every current copy.
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

    /// Records in memory that contents of files were written to the hot zone. [`Mirror::flush_files`], which the log
    /// calls before it writes each group of records, then flushes the area.
    pub fn owe_flush(&self) {
        self.0.has_files_to_flush.set(true);
    }

    /// Flushes all copies of the area if contents of files were written to the hot zone since the last flush
    /// ([`Mirror::owe_flush`]); otherwise does nothing.
    ///
    /// # Errors
    /// Every current copy fails to flush, or the superblocks cannot be written.
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
        self.settle(join_all(writes).await)
    }

    /// Makes completed writes durable on all current and outdated copies. A copy that fails is marked as lost if at
    /// least one current copy succeeds. If a current copy was lost, now or in a write before, the superblocks of the
    /// remaining current copies durably record that before this returns.
    ///
    /// # Errors
    /// Every current copy fails to flush, or the superblocks cannot be written.
    pub async fn flush(&self) -> Result<(), DeviceFault> {
        let had_files = self.0.has_files_to_flush.replace(false);
        if let Err(fault) = self.flush_all().await {
            self.0.has_files_to_flush.set(self.0.has_files_to_flush.get() || had_files);
            return Err(fault);
        }
        // No flush may succeed while another task is about to record which copies are current.
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
        self.settle(join_all(flushes).await)
    }

    fn current_slots(&self) -> Vec<usize> {
        let copies = self.0.copies.borrow();
        copies.iter().filter(|copy| copy.state == State::Current).map(|copy| copy.slot).collect()
    }

    /// Starts a generation with the copies that are current now.
    async fn relabel(&self) -> Result<(), DeviceFault> {
        let slots = self.current_slots();
        self.0.superblock.borrow_mut().standing.advance(|slot| slots.contains(&slot));
        self.write_labels().await
    }

    /// Writes the superblock to both labels, blocks 1 and 0, of every current copy: block 1 of all copies first. It is
    /// durable when this returns. A copy that fails is marked as lost if at least one current copy succeeds.
    ///
    /// # Errors
    /// Every current copy fails.
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
            let outcomes = join_all(writes).await;
            self.settle(outcomes)?;
        }
        Ok(())
    }

    fn label(&self, number: usize) -> Vec<u8> {
        let superblock = self.0.superblock.borrow();
        let member = superblock.metadata_members()[self.0.copies.borrow()[number].slot] as u32;
        Superblock { member, ..superblock.clone() }.encode()
    }

    /// Repairs the superblocks, and starts the generation of this mount, a number by which a later mount recognises
    /// outdated copies. All current copies have the number durably when this returns (invariant 4). The superblocks
    /// first announce the generation, because a power cut may come when only some copies have it. Does nothing if the
    /// area is read-only.
    ///
    /// # Errors
    /// The superblocks can be written to no current copy.
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
            superblock.last_durable.is_closed = false;
        }
        self.write_labels().await?;
        self.0.superblock.borrow_mut().standing.begin_writing();
        self.write_labels().await
    }

    /// Records `last_durable`, how far the log and the checkpoints reach, in the superblocks of all current copies. It
    /// is durable when this returns. All checkpoints and all parts of the log that `last_durable` covers must be
    /// durable before.
    ///
    /// # Errors
    /// The superblocks can be written to no current copy.
    pub async fn record_last_durable(&self, last_durable: LastDurable) -> Result<(), DeviceFault> {
        let _pass = self.0.labelling.enter().await;
        if self.0.mistake.get() == Some(Mistake::LastDurableNotRecorded) {
            return Ok(());
        }
        self.0.superblock.borrow_mut().last_durable = last_durable;
        self.write_labels().await
    }

    /// Returns how far the log and the checkpoints reach according to the superblock that was written last, or is being
    /// written. The log and the checkpoints may reach further.
    pub fn last_durable(&self) -> LastDurable {
        self.0.superblock.borrow().last_durable
    }

    /// Rewrites those labels (blocks with the superblock) of current copies that do not hold the newest superblock,
    /// unless the area is read-only. Returns how many labels are unreadable, damaged, or older than a power cut
    /// explains. A copy has two labels, which count separately. Counts the damage of each copy ([`Mirror::damage`]).
    pub async fn mend_labels(&self) -> u64 {
        let mut found = Vec::new();
        for (number, area) in self.current() {
            for block in (0..LABELS).rev() {
                let label = area.read(block, 1).await.ok().and_then(|bytes| Superblock::decode(&bytes).ok());
                found.push((number, block, label.filter(|label| label.uuid == self.0.superblock.borrow().uuid)));
            }
        }
        let newest = self.0.superblock.borrow().writes;
        // Block 1 of all copies is written before block 0 of any. If block 0 of some copy is the newest, block 1 of
        // every copy must be.
        let is_second_everywhere =
            found.iter().any(|(_, block, label)| *block == 0 && label.as_ref().is_some_and(|it| it.writes == newest));
        let mut damaged = 0;
        for (number, block, label) in found {
            let writes = label.as_ref().map(|label| label.writes);
            let may_be_behind = block == 0 || !is_second_everywhere;
            let is_right = writes.is_some_and(|writes| writes == newest || (may_be_behind && writes + 1 == newest));
            if !is_right {
                damaged += 1;
                self.note_damage(number);
            }
            // A superblock of an older format is rewritten with the next generation.
            if writes != Some(newest) {
                self.give(block, &[(number, None)], &self.label(number)).await;
            }
        }
        damaged
    }

    /// Returns whether some copy is outdated: it lacks earlier writes, gets all new ones, and is not read.
    pub fn has_outdated(&self) -> bool {
        self.0.copies.borrow().iter().any(|copy| copy.state == State::Outdated)
    }

    /// Returns whether slot `slot` has a copy that is up to date. The slot is the index of its device, from 0, among
    /// the devices with metadata.
    pub fn is_current(&self, slot: usize) -> bool {
        self.0.copies.borrow().iter().any(|copy| copy.slot == slot && copy.state == State::Current)
    }

    /// Adds an outdated copy on `device`, which is to replace the copy in slot `slot`, counted from 0. From now on the
    /// new copy gets all writes, but is not read. Once it is complete ([`Mirror::bring_up_to_date`]), `member` takes
    /// the place of the old device in the superblock.
    pub fn add(&self, slot: usize, member: Member, device: Device) {
        let area = Area::new(device, self.0.place).with_files_from(files_from(&self.0.superblock.borrow()));
        self.0.copies.borrow_mut().push(Copy { slot, area, state: State::Outdated, comes_as: Some(member) });
    }

    /// Copies all blocks of the area to the outdated copies, except for the two blocks with the superblock. These are
    /// then current, durably, and the copies that they replace are not used any more. Calls `progress` before each
    /// step, and at the end, with the number of blocks copied and the number of all blocks; if it returns false before
    /// a step, the copying ends. Returns the number of copies that became current: 0 if `progress` ended it, or if no
    /// outdated copy exists or is left after failures. Blocks that are unreadable on all current copies become zeros.
    ///
    /// # Errors
    /// A flush fails on every current copy.
    pub async fn bring_up_to_date(&self, mut progress: impl FnMut(u64, u64) -> bool) -> Result<usize, DeviceFault> {
        while self.0.writing.get() > 0 {
            self.0.is_quiet.next().await;
        }
        let (mut block, end) = (LABELS, self.0.place.blocks);
        while block < end {
            if !self.has_outdated() || !progress(block, end) {
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
            progress(end, end);
        }
        Ok(joined)
    }

    /// Marks all outdated copies as lost: they get no more writes.
    pub fn give_up_outdated(&self) {
        let mut copies = self.0.copies.borrow_mut();
        copies.iter_mut().filter(|copy| copy.state == State::Outdated).for_each(|copy| copy.state = State::Lost);
    }

    async fn copy_piece(&self, block: u64, count: u64) -> Result<(), DeviceFault> {
        // A block that is unreadable on all copies becomes zeros, which match no checksum there either.
        let bytes = self.read_what_can_be(block, count).await;
        let areas = self.in_state(|state| state == State::Outdated);
        for (number, area) in areas {
            if area.write(block, &bytes).await.is_err() {
                self.lose(number);
            }
        }
        Ok(())
    }

    /// Makes outdated copies current, and marks those that they replace. Returns how many became current.
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

    /// Returns the superblock as the first blocks of the copies hold it, or will hold it after the next flush. Its
    /// member number is not that of any particular copy.
    pub fn superblock(&self) -> Superblock {
        self.0.superblock.borrow().clone()
    }
}
