//! The state in memory of a file that is open, or has staged data: changes that are not yet written.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::device::BLOCK_BYTES;
use crate::executor::{Mutex, MutexGuard};
use crate::store::Reservation;

/// A block of a file in memory.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    /// Contents of the block.
    Bytes(Box<[u8; BLOCK_BYTES]>),
    /// Zeros, which need no room if the store allows holes.
    Zeros,
}

impl Block {
    /// Returns the bytes of a block of zeros that takes room.
    pub(crate) fn zeros() -> Box<[u8; BLOCK_BYTES]> {
        vec![0; BLOCK_BYTES].try_into().expect("it has the length of a block")
    }

    /// Returns the bytes of the block; `None` for [`Block::Zeros`].
    pub(crate) fn bytes(&self) -> Option<&[u8; BLOCK_BYTES]> {
        match self {
            Block::Bytes(bytes) => Some(bytes),
            Block::Zeros => None,
        }
    }

    const fn takes_room(&self) -> bool {
        matches!(self, Block::Bytes(_))
    }
}

/// Blocks of a file that are in memory, by block of the file. Counts the blocks that take room once they are written,
/// and the runs of neighbours.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    blocks: BTreeMap<u32, Block>,
    with_bytes: u64,
    runs: u64,
}

impl Blocks {
    /// Returns the number of blocks.
    pub(crate) fn len(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Returns the number of runs of neighbouring blocks.
    pub(crate) const fn runs(&self) -> u64 {
        self.runs
    }

    /// Updates the number of runs after a block was added at `at`. The block is a run of its own, extends one, or joins
    /// two.
    fn note_new(&mut self, at: u32) {
        let with_neighbours = self.blocks.range(at.saturating_sub(1)..=at.saturating_add(1)).count() as u64;
        self.runs = self.runs + 2 - with_neighbours;
    }

    /// Returns the number of blocks that take room.
    pub(crate) const fn with_bytes(&self) -> u64 {
        self.with_bytes
    }

    /// Returns the number of blocks in `range` that take room.
    pub(crate) fn with_bytes_in(&self, range: Range<u32>) -> u64 {
        self.range(range).filter(|(_, block)| block.takes_room()).count() as u64
    }

    /// Returns the blocks in `range`, in order.
    pub(crate) fn range(&self, range: Range<u32>) -> impl Iterator<Item = (u32, &Block)> {
        self.blocks.range(range).map(|(at, block)| (*at, block))
    }

    /// Returns the numbers of the blocks that take room, in order.
    pub(crate) fn taking_room(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.iter().filter(|(_, block)| block.takes_room()).map(|(at, _)| *at)
    }

    /// Returns the block at `at`.
    pub(crate) fn get(&self, at: u32) -> Option<&Block> {
        self.blocks.get(&at)
    }

    /// Puts `block` at `at`, in place of a block that is there.
    pub(crate) fn insert(&mut self, at: u32, block: Block) {
        self.with_bytes += u64::from(block.takes_room());
        match self.blocks.insert(at, block) {
            Some(before) => self.with_bytes -= u64::from(before.takes_room()),
            None => self.note_new(at),
        }
    }

    /// Puts `block` at `at`, unless a block is there.
    pub(crate) fn insert_if_none(&mut self, at: u32, block: Block) {
        if !self.blocks.contains_key(&at) {
            self.insert(at, block);
        }
    }

    /// Writes `bytes` to the block at `at`, from its byte `from` on. A block that is not in memory counts as zeros.
    pub(crate) fn write(&mut self, at: u32, from: usize, bytes: &[u8]) {
        if bytes.len() == BLOCK_BYTES && !matches!(self.get(at), Some(Block::Bytes(_))) {
            return self.insert(at, Block::Bytes(bytes.to_vec().try_into().expect("it has the length of a block")));
        }
        self.bytes_mut(at)[from..from + bytes.len()].copy_from_slice(bytes);
    }

    /// Returns the bytes of the block at `at`; adds a block of zeros if there is none. From then on the block takes
    /// room.
    pub(crate) fn bytes_mut(&mut self, at: u32) -> &mut [u8; BLOCK_BYTES] {
        self.insert_if_none(at, Block::Zeros);
        let block = self.blocks.get_mut(&at).expect("it was made to be there");
        if !block.takes_room() {
            *block = Block::Bytes(Block::zeros());
            self.with_bytes += 1;
        }
        match block {
            Block::Bytes(bytes) => bytes,
            Block::Zeros => unreachable!("it was made to be there"),
        }
    }

    /// Returns all blocks, in order.
    pub(crate) fn into_each(self) -> impl Iterator<Item = (u32, Block)> {
        self.blocks.into_iter()
    }

    /// Removes the blocks from `at` on, and returns them.
    pub(crate) fn split_off(&mut self, at: u32) -> Blocks {
        let blocks = self.blocks.split_off(&at);
        let with_bytes = blocks.values().filter(|block| block.takes_room()).count() as u64;
        self.with_bytes -= with_bytes;
        let runs = runs_of(&blocks);
        let is_cut = blocks
            .first_key_value()
            .is_some_and(|(first, _)| self.blocks.last_key_value().is_some_and(|(last, _)| last + 1 == *first));
        self.runs = self.runs + u64::from(is_cut) - runs;
        Blocks { blocks, with_bytes, runs }
    }

    /// Adds the blocks of `others`.
    ///
    /// # Panics
    /// If a block of `others` is here already.
    pub(crate) fn append(&mut self, mut others: Blocks) {
        let blocks = self.blocks.len() + others.blocks.len();
        self.blocks.append(&mut others.blocks);
        self.with_bytes += others.with_bytes;
        assert_eq!(self.blocks.len(), blocks, "blocks were there already");
        self.runs = runs_of(&self.blocks);
    }
}

/// Returns the number of runs of neighbouring blocks in `blocks`.
fn runs_of(blocks: &BTreeMap<u32, Block>) -> u64 {
    let (mut runs, mut next) = (0, None);
    for at in blocks.keys() {
        runs += u64::from(next != Some(*at));
        next = at.checked_add(1);
    }
    runs
}

/// Staged data of a file: changes in memory that are not yet written.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    /// Changed blocks of the file, of 4 KiB, that are not written back yet. Some of them may be on the device already,
    /// by early writes (`ahead`). They stay here until the file is written back.
    pub blocks: Blocks,
    /// Size of the file with the changes, in bytes.
    pub size: u64,
    /// Time of the last change of the contents, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Space reserved in the store for the changed blocks.
    pub held: Reservation,
    /// Number of blocks of the reservation that were moved to it from the preallocated space of the file.
    pub lent: u64,
    /// Position in the order in which files got staged data. The file with the smallest number is written first.
    pub since: u64,
    /// Time of the first change that is not written yet, in nanoseconds of the executor's clock.
    pub since_ns: u64,
    /// Whether all changes are appends to the end of the file.
    pub is_appended: bool,
    /// Sizes that the file had, in bytes and multiples of a block, in order and about `Bounds::behind_bytes` apart (16
    /// MiB by default); empty unless all changes are appends. Write-behind writes the file up to one of them, so the
    /// file may have that size after a power cut.
    pub whole_sizes: VecDeque<u64>,
    /// Early writes of the changed blocks to the reserved room ([`super::early_write`]).
    pub ahead: Ahead,
    /// Whether write-behind writes the file in parts ([`super::write_behind`]), and these data are one of the parts. If
    /// so, only these data are written, and the file is not moved as a whole.
    pub goes_on: bool,
    /// Whether a first portion of the changes is written, so that more of the file is stored than its recorded size
    /// covers.
    pub is_begun: bool,
}

impl Staged {
    /// Sets the size of the file. If all changes are appends, also notes a size in whole blocks: in place of the last
    /// one, if that is less than `apart` bytes larger than the one before it.
    pub(crate) fn note_size(&mut self, size: u64, apart: u64) {
        self.size = size;
        if !self.is_appended {
            return self.whole_sizes.clear();
        }
        if !size.is_multiple_of(BLOCK_BYTES as u64) {
            return;
        }
        let before = self.whole_sizes.iter().rev().nth(1).copied().unwrap_or_default();
        if self.whole_sizes.back().is_some_and(|last| last - before < apart) {
            self.whole_sizes.pop_back();
        }
        self.whole_sizes.push_back(size);
    }

    /// Returns the last size in whole blocks that was noted, in bytes; 0 if there is none.
    pub(crate) fn whole_size(&self) -> u64 {
        self.whole_sizes.back().copied().unwrap_or_default()
    }
}

/// Early writes of a file: blocks that are written to its reserved room, from the first one on, while more is appended.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Block of the data device to which the first block of the file is written.
    pub start: u64,
    /// Number of restarts of the early writes. Results of writes from before the last restart are ignored.
    pub generation: u64,
    /// Number of blocks, from the first block of the file on, whose early write was started.
    pub begun: usize,
    /// CRC-32C of each block that was written early, in the order of the file's blocks.
    pub sums: Vec<u32>,
    /// Number of blocks that the file must have before early writes start.
    pub not_before: u64,
}

impl Ahead {
    /// Restarts early writes because the file gets other room, at block `start`. They begin when the file has twice as
    /// many blocks as were begun. So at most twice as many blocks are written in vain as are written in the end.
    pub(crate) fn move_to(&mut self, start: u64) {
        let not_before = self.not_before.max(2 * self.begun as u64);
        *self = Ahead { start, generation: self.generation + 1, not_before, ..Ahead::default() };
    }

    /// Takes the early writes out and returns them. New ones begin at the first block again, in the same reservation.
    pub(crate) fn take(&mut self) -> Ahead {
        let next = Ahead { start: self.start, generation: self.generation + 1, ..Ahead::default() };
        std::mem::replace(self, next)
    }

    /// Drops the early writes after an error. No new ones begin before the file is written back.
    pub(crate) fn give_up(&mut self) {
        self.take();
        self.not_before = u64::MAX;
    }
}

/// A file that is open, or has staged data, or both.
#[derive(Default)]
pub(crate) struct Open {
    /// Number of open handles of the file.
    pub handles: Cell<u32>,
    /// Lock of the file, for one task at a time that changes the file or writes it back.
    pub lock: Mutex,
    /// Lock of tasks that change the file, acquired after `lock`. A task that appends behind data that are being
    /// written back holds only this lock.
    pub appends: Mutex,
    /// Staged data, that is, changes in memory that are not written yet; `None` if there are none.
    pub staged: RefCell<Option<Staged>>,
    /// Data whose write-back is in flight while the program still appends. The data in `staged` follow in the file.
    /// `None` if there is no such write-back.
    pub in_flight: RefCell<Option<Staged>>,
    /// Whether a write-behind task of the file runs ([`super::write_behind`]): it writes data to the device while the
    /// program still appends.
    pub is_behind: Cell<bool>,
    /// Whether the write-behind task now makes early writes ([`super::early_write`]): it writes blocks of `staged` to
    /// the space reserved for the file. Appends to the file are allowed meanwhile.
    pub is_ahead: Cell<bool>,
    /// Number of times that staged data of the file were written and recorded.
    pub pushes: Cell<u64>,
    /// Sequence number of the records of the write in flight; 0 if there is none.
    pub writing: Cell<u64>,
    /// Number of tasks that change the file and wait for room.
    waiting_for_room: Cell<u32>,
}

/// Guard of a task that waits for room, until it is dropped.
pub(crate) struct WaitsForRoom<'a>(&'a Cell<u32>);

impl Drop for WaitsForRoom<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Open {
    /// Registers that a task that changes the file waits for room, until the guard is dropped.
    pub(crate) fn wait_for_room(&self) -> WaitsForRoom<'_> {
        self.waiting_for_room.set(self.waiting_for_room.get() + 1);
        WaitsForRoom(&self.waiting_for_room)
    }

    /// Returns whether a task that changes the file waits for room. Others that wait for room must not wait for the
    /// file's lock.
    pub(crate) fn waits_for_room(&self) -> bool {
        self.waiting_for_room.get() > 0
    }

    /// Waits until no other task changes the file or writes it back, and returns the guards of both locks.
    pub(crate) async fn enter(&self) -> (MutexGuard, MutexGuard) {
        (self.lock.enter().await, self.appends.enter().await)
    }

    /// Returns whether a task changes the file or writes it back, or is about to.
    pub(crate) fn is_busy(&self) -> bool {
        self.lock.is_busy() || self.appends.is_busy()
    }

    /// Returns the data that the holder of `lock` writes back: those in `in_flight` if there are any, else those in
    /// `staged`.
    pub(crate) fn going(&self) -> &RefCell<Option<Staged>> {
        if self.in_flight.borrow().is_some() { &self.in_flight } else { &self.staged }
    }

    /// Calls `look` with the blocks in memory from `at` on, and with the block where they end, `end` at most.
    pub(crate) fn look_at<T>(&self, at: u64, end: u64, look: impl FnOnce(Option<&Blocks>, u64) -> T) -> T {
        if let Some(leaving) = self.in_flight.borrow().as_ref() {
            let leaving_end = leaving.size / BLOCK_BYTES as u64;
            if at < leaving_end {
                return look(Some(&leaving.blocks), end.min(leaving_end));
            }
        }
        look(self.staged.borrow().as_ref().map(|staged| &staged.blocks), end)
    }

    /// Returns whether a write at byte `offset` only appends behind data that are being written, in a write-back or in
    /// early writes.
    pub(crate) fn goes_on_at(&self, offset: u64) -> bool {
        let is_behind = |place: &RefCell<Option<Staged>>| place.borrow().as_ref().is_some_and(|it| offset >= it.size);
        is_behind(&self.in_flight) || (self.is_ahead.get() && is_behind(&self.staged))
    }

    /// Returns whether no task needs this state any more: the file has no handle and no staged data, and its locks are
    /// free.
    pub(crate) fn is_idle(&self) -> bool {
        self.handles.get() == 0 && self.staged.borrow().is_none() && !self.is_busy()
    }
}

/// Totals over the staged data of all files.
#[derive(Default)]
pub(in crate::core) struct StagingState {
    bytes: Cell<u64>,
    /// Number of times that data of a file became staged.
    begun: Cell<u64>,
}

impl StagingState {
    /// Returns the number of bytes of staged blocks.
    pub(in crate::core) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    pub(in crate::core) fn add(&self, bytes: u64) {
        self.bytes.set(self.bytes.get() + bytes);
    }

    pub(in crate::core) fn remove(&self, bytes: u64) {
        self.bytes.set(self.bytes.get() - bytes);
    }

    /// Returns the next value of [`Staged::since`].
    pub(in crate::core) fn next(&self) -> u64 {
        self.begun.set(self.begun.get() + 1);
        self.begun.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_room_is_counted() {
        let mut blocks = Blocks::default();
        let counted = |blocks: &Blocks| {
            assert_eq!(blocks.runs(), runs_of(&blocks.blocks), "counted as they come");
            (blocks.len(), blocks.with_bytes(), blocks.taking_room().count() as u64)
        };
        blocks.insert(3, Block::Zeros);
        blocks.write(4, 10, b"some");
        assert_eq!(counted(&blocks), (2, 1, 1));
        blocks.insert_if_none(4, Block::Zeros);
        blocks.bytes_mut(3)[0] = 1;
        assert_eq!(counted(&blocks), (2, 2, 2));
        blocks.write(9, 0, &[7; BLOCK_BYTES]);
        blocks.write(9, 0, &[8; BLOCK_BYTES]);
        assert_eq!(counted(&blocks), (3, 3, 3));
        assert_eq!(blocks.with_bytes_in(4..10), 2);
        blocks.insert(4, Block::Zeros);
        assert_eq!(counted(&blocks), (3, 2, 2));
        blocks.write(6, 0, b"x");
        blocks.write(5, 0, b"x");
        assert_eq!((blocks.runs(), counted(&blocks)), (2, (5, 4, 4)), "3 to 6, and 9");
        let mut rest = blocks.split_off(5);
        assert_eq!((rest.runs(), blocks.runs()), (2, 1), "a run was cut");
        rest = rest.split_off(9);
        blocks.append(rest);
        let mut cut = blocks.split_off(4);
        assert_eq!((counted(&cut), counted(&blocks)), ((2, 1, 1), (1, 1, 1)));
        cut.append(blocks);
        assert_eq!(counted(&cut), (3, 2, 2));
    }
}
