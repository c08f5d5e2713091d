//! A file that is open, or has bytes in memory that are not yet written.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

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

    /// Its bytes, made to be there.
    pub fn bytes_mut(&mut self) -> &mut [u8; BLOCK_BYTES] {
        if let Block::Zeros = self {
            *self = Block::Bytes(Block::zeros());
        }
        match self {
            Block::Bytes(bytes) => bytes,
            Block::Zeros => unreachable!("it was made to be there"),
        }
    }
}

/// What of a file is in memory and not yet written.
#[derive(Debug, Default)]
pub struct Staged {
    /// By block of the file.
    pub blocks: BTreeMap<u32, Block>,
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
    /// One writer at a time, or whoever writes it to the device.
    pub gate: Gate,
    /// What is not yet written, if anything is.
    pub staged: RefCell<Option<Staged>>,
    /// How often what was staged has been written.
    pub pushes: Cell<u64>,
}

impl Open {
    /// Whether nobody needs it any more.
    pub fn is_idle(&self) -> bool {
        self.handles.get() == 0 && self.staged.borrow().is_none() && !self.gate.is_busy()
    }
}
