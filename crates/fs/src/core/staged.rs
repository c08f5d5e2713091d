//! A file that is open, or has bytes in memory that are not yet written.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::clock::{Gate, Pass};
use crate::device::BLOCK_BYTES;
use crate::store::Held;

/// A block in memory.
#[derive(Clone, Debug)]
pub enum Block {
    /// These bytes.
    Bytes(Box<[u8; BLOCK_BYTES]>),
    /// Zeros, and no room is needed for them where the store allows holes.
    Zeros,
}

impl Block {
    /// A block of zeros that takes room.
    pub fn zeros() -> Box<[u8; BLOCK_BYTES]> {
        vec![0; BLOCK_BYTES].try_into().expect("it has the length of a block")
    }

    /// Its bytes, if it has some.
    pub fn bytes(&self) -> Option<&[u8; BLOCK_BYTES]> {
        match self {
            Block::Bytes(bytes) => Some(bytes),
            Block::Zeros => None,
        }
    }

    const fn takes_room(&self) -> bool {
        matches!(self, Block::Bytes(_))
    }
}

/// The blocks of a file that are in memory, by block of the file, how many of them take room once they are written, and in how
/// many runs of neighbours they lie.
#[derive(Debug, Default)]
pub struct Blocks {
    blocks: BTreeMap<u32, Block>,
    with_bytes: u64,
    runs: u64,
}

impl Blocks {
    /// How many there are.
    pub fn len(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// In how many runs of neighbours they lie.
    pub const fn runs(&self) -> u64 {
        self.runs
    }

    /// A block has come to `at`, where none was: it is a run of its own, or lengthens one, or joins two.
    fn note_new(&mut self, at: u32) {
        let with_neighbours = self.blocks.range(at.saturating_sub(1)..=at.saturating_add(1)).count() as u64;
        self.runs = self.runs + 2 - with_neighbours;
    }

    /// How many take room.
    pub const fn with_bytes(&self) -> u64 {
        self.with_bytes
    }

    /// How many of those in `range` take room.
    pub fn with_bytes_in(&self, range: Range<u32>) -> u64 {
        self.range(range).filter(|(_, block)| block.takes_room()).count() as u64
    }

    /// Those in `range`, in order.
    pub fn range(&self, range: Range<u32>) -> impl Iterator<Item = (u32, &Block)> {
        self.blocks.range(range).map(|(at, block)| (*at, block))
    }

    /// Those that take room, in order.
    pub fn taking_room(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.iter().filter(|(_, block)| block.takes_room()).map(|(at, _)| *at)
    }

    /// The one at `at`.
    pub fn get(&self, at: u32) -> Option<&Block> {
        self.blocks.get(&at)
    }

    /// Puts one there.
    pub fn insert(&mut self, at: u32, block: Block) {
        self.with_bytes += u64::from(block.takes_room());
        match self.blocks.insert(at, block) {
            Some(before) => self.with_bytes -= u64::from(before.takes_room()),
            None => self.note_new(at),
        }
    }

    /// Puts one there, unless one is.
    pub fn insert_if_none(&mut self, at: u32, block: Block) {
        if !self.blocks.contains_key(&at) {
            self.insert(at, block);
        }
    }

    /// Writes `bytes` from byte `from` of the block at `at` on; what is not in memory was zeros.
    pub fn write(&mut self, at: u32, from: usize, bytes: &[u8]) {
        if bytes.len() == BLOCK_BYTES && !matches!(self.get(at), Some(Block::Bytes(_))) {
            return self.insert(at, Block::Bytes(bytes.to_vec().try_into().expect("it has the length of a block")));
        }
        self.bytes_mut(at)[from..from + bytes.len()].copy_from_slice(bytes);
    }

    /// The bytes of the block at `at`, made to be there: zeros if it was not.
    pub fn bytes_mut(&mut self, at: u32) -> &mut [u8; BLOCK_BYTES] {
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

    /// All of them, in order.
    pub fn into_each(self) -> impl Iterator<Item = (u32, Block)> {
        self.blocks.into_iter()
    }

    /// Takes those from `at` on away.
    pub fn split_off(&mut self, at: u32) -> Blocks {
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

    /// Adds `others`, none of which is here.
    pub fn append(&mut self, mut others: Blocks) {
        let blocks = self.blocks.len() + others.blocks.len();
        self.blocks.append(&mut others.blocks);
        self.with_bytes += others.with_bytes;
        assert_eq!(self.blocks.len(), blocks, "blocks were there already");
        self.runs = runs_of(&self.blocks);
    }
}

/// In how many runs of neighbours `blocks` lie.
fn runs_of(blocks: &BTreeMap<u32, Block>) -> u64 {
    let (mut runs, mut next) = (0, None);
    for at in blocks.keys() {
        runs += u64::from(next != Some(*at));
        next = at.checked_add(1);
    }
    runs
}

/// What of a file is in memory and not yet written.
#[derive(Debug, Default)]
pub struct Staged {
    /// What was written.
    pub blocks: Blocks,
    /// Bytes of the file.
    pub size: u64,
    /// Contents last changed.
    pub modified_ns: i64,
    /// What is reserved for it.
    pub held: Held,
    /// Blocks of that which were kept for preallocated blocks of the file.
    pub lent: u64,
    /// Where it stands among those that are to be written: the oldest first.
    pub since: u64,
    /// When it was first changed, by the clock.
    pub since_ns: u64,
    /// Whether nothing but appends made it.
    pub is_appended: bool,
    /// Lengths in whole blocks that the file had, some way apart: as long as these it may be found after a cut.
    pub whole_sizes: VecDeque<u64>,
    /// What is written already where room is reserved for it.
    pub ahead: Ahead,
    /// Whether what it goes on from was written while it came: then it is written by itself, and the file is not moved.
    pub goes_on: bool,
    /// Whether a first part of it is written: more of the file is stored than its size tells.
    pub is_begun: bool,
}

impl Staged {
    /// The file has become so long. Lengths that lie less than `apart` behind another are forgotten for later ones.
    pub fn note_size(&mut self, size: u64, apart: u64) {
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

    /// The last length in whole blocks that the file had.
    pub fn whole_size(&self) -> u64 {
        self.whole_sizes.back().copied().unwrap_or_default()
    }
}

/// What is written of a file, from its first block on, before all of it has come.
#[derive(Debug, Default)]
pub struct Ahead {
    /// Where its first block lies.
    pub start: u64,
    /// How often it began anew: what was begun before counts for nothing.
    pub generation: u64,
    /// Blocks whose writing was begun.
    pub begun: usize,
    /// The checksums of those that are written.
    pub sums: Vec<u32>,
    /// Nothing is written before there are so many blocks.
    pub not_before: u64,
}

impl Ahead {
    /// The file gets other room: it begins anew, and when it is twice as long. So what is written in vain is at most twice
    /// what is written in the end.
    pub fn move_to(&mut self, start: u64) {
        let not_before = self.not_before.max(2 * self.begun as u64);
        *self = Ahead { start, generation: self.generation + 1, not_before, ..Ahead::default() };
    }

    /// Takes the early writes out. The next ones begin at the first block again, in the same reservation.
    pub fn take(&mut self) -> Ahead {
        let next = Ahead { start: self.start, generation: self.generation + 1, ..Ahead::default() };
        std::mem::replace(self, next)
    }

    /// Drops the early writes after an error. No others begin before the file is written back.
    pub fn give_up(&mut self) {
        self.take();
        self.not_before = u64::MAX;
    }
}

/// A file that is open, or staged, or both.
#[derive(Default)]
pub struct Open {
    /// How many handles there are.
    pub handles: Cell<u32>,
    /// Held by one at a time: somebody who changes the file, or whoever writes it to the device.
    pub gate: Gate,
    /// Held, behind the gate, by whoever changes the file; whoever appends behind what is being written holds it alone.
    pub appends: Gate,
    /// What is not yet written, if anything is.
    pub staged: RefCell<Option<Staged>>,
    /// What is being written while the file is appended to. What is staged goes on behind it.
    pub leaving: RefCell<Option<Staged>>,
    /// Whether a task writes what is appended, or is about to.
    pub is_behind: Cell<bool>,
    /// Whether it does so where room is reserved for the file, and appends may come meanwhile.
    pub is_ahead: Cell<bool>,
    /// How often what was staged has been written.
    pub pushes: Cell<u64>,
    /// The sequence number that the records of a write under way have; 0 if none is.
    pub writing: Cell<u64>,
    /// How many who change it wait for room.
    waiting_for_room: Cell<u32>,
}

/// Waiting for room, until dropped.
pub struct WaitsForRoom<'a>(&'a Cell<u32>);

impl Drop for WaitsForRoom<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Open {
    /// Somebody who changes the file waits for room, until that is dropped.
    pub fn wait_for_room(&self) -> WaitsForRoom<'_> {
        self.waiting_for_room.set(self.waiting_for_room.get() + 1);
        WaitsForRoom(&self.waiting_for_room)
    }

    /// Whether somebody who changes the file waits for room: others who do must not wait for its gate.
    pub fn waits_for_room(&self) -> bool {
        self.waiting_for_room.get() > 0
    }

    /// Waits until nobody else changes the file or writes it.
    pub async fn enter(&self) -> (Pass, Pass) {
        (self.gate.enter().await, self.appends.enter().await)
    }

    /// Whether somebody changes the file or writes it, or is about to.
    pub fn is_busy(&self) -> bool {
        self.gate.is_busy() || self.appends.is_busy()
    }

    /// What whoever holds the gate writes.
    pub fn going(&self) -> &RefCell<Option<Staged>> {
        if self.leaving.borrow().is_some() { &self.leaving } else { &self.staged }
    }

    /// Calls `look` with what is in memory of the blocks from `at` on, and with where that ends, `end` at most.
    pub fn look_at<T>(&self, at: u64, end: u64, look: impl FnOnce(Option<&Blocks>, u64) -> T) -> T {
        if let Some(leaving) = self.leaving.borrow().as_ref() {
            let leaving_end = leaving.size / BLOCK_BYTES as u64;
            if at < leaving_end {
                return look(Some(&leaving.blocks), end.min(leaving_end));
            }
        }
        look(self.staged.borrow().as_ref().map(|staged| &staged.blocks), end)
    }

    /// Whether a write at byte `offset` goes on behind what is being written, and does not touch it.
    pub fn goes_on_at(&self, offset: u64) -> bool {
        let is_behind = |place: &RefCell<Option<Staged>>| place.borrow().as_ref().is_some_and(|it| offset >= it.size);
        is_behind(&self.leaving) || (self.is_ahead.get() && is_behind(&self.staged))
    }

    /// Whether nobody needs it any more.
    pub fn is_idle(&self) -> bool {
        self.handles.get() == 0 && self.staged.borrow().is_none() && !self.is_busy()
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
