//! A file that is open, or has bytes in memory that are not yet written.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;

use crate::clock::Gate;
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

    const fn takes_room(&self) -> bool {
        matches!(self, Block::Bytes(_))
    }
}

/// The blocks of a file that are in memory, by block of the file, and how many of them take room once they are written.
#[derive(Debug, Default)]
pub struct Blocks {
    blocks: BTreeMap<u32, Block>,
    with_bytes: u64,
}

impl Blocks {
    /// How many there are.
    pub fn len(&self) -> u64 {
        self.blocks.len() as u64
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
        let before = self.blocks.insert(at, block);
        self.with_bytes -= u64::from(before.is_some_and(|block| block.takes_room()));
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
        let block = self.blocks.entry(at).or_insert(Block::Zeros);
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

    /// Forgets those from `at` on; how many there were.
    pub fn cut(&mut self, at: u32) -> u64 {
        let cut = self.blocks.split_off(&at);
        self.with_bytes -= cut.values().filter(|block| block.takes_room()).count() as u64;
        cut.len() as u64
    }
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
    /// Where it stands among those that are to be written: the oldest first.
    pub since: u64,
    /// When it was first changed, by the clock.
    pub since_ns: u64,
}

/// A file that is open, or staged, or both.
#[derive(Default)]
pub struct Open {
    /// How many handles there are.
    pub handles: Cell<u32>,
    /// Held by one at a time: somebody who changes the file, or whoever writes it to the device.
    pub gate: Gate,
    /// What is not yet written, if anything is.
    pub staged: RefCell<Option<Staged>>,
    /// How often what was staged has been written.
    pub pushes: Cell<u64>,
    /// The sequence number that the records of a write under way have; 0 if none is.
    pub writing: Cell<u64>,
}

impl Open {
    /// Whether nobody needs it any more.
    pub fn is_idle(&self) -> bool {
        self.handles.get() == 0 && self.staged.borrow().is_none() && !self.gate.is_busy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_room_is_counted() {
        let mut blocks = Blocks::default();
        let counted = |blocks: &Blocks| (blocks.len(), blocks.with_bytes(), blocks.taking_room().count() as u64);
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
        assert_eq!(blocks.cut(4), 2);
        assert_eq!(counted(&blocks), (1, 1, 1));
    }
}
