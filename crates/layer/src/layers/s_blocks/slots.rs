//! The slots of an S-block buffer from the tail on, each with the S-block that was written to it. Slots of a fresh
//! drive hold S-blocks with consecutive numbers, so they are stored as a range and take no memory.

use std::collections::VecDeque;
use std::ops::Range;

use super::queue::{DEAD, grow};

/// Stored number of a dead slot.
const NO_SBLOCK: u32 = u32::MAX;

fn packed(sblock: u64) -> u32 {
    if sblock == DEAD { NO_SBLOCK } else { u32::try_from(sblock).expect("a disk has fewer S-blocks") }
}

fn unpacked(sblock: u32) -> u64 {
    if sblock == NO_SBLOCK { DEAD } else { u64::from(sblock) }
}

/// The slots in use of one S-block buffer, from the oldest to the newest: for each, the number of the S-block that was
/// written to it.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// S-blocks of the oldest slots, which are still as on a fresh drive.
    native: Range<u64>,
    /// S-blocks of the slots after `native`.
    later: VecDeque<u32>,
}

impl Slots {
    /// Returns the slots of a new buffer that holds the S-blocks `sblocks`, in that order.
    pub(super) fn native(sblocks: Range<u64>) -> Slots {
        Slots { native: sblocks, later: VecDeque::new() }
    }

    /// Returns the number of slots in use.
    pub(super) fn len(&self) -> usize {
        (self.native.end - self.native.start) as usize + self.later.len()
    }

    /// Returns whether there are no slots.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the S-block of each slot, the oldest slot first; [`DEAD`] for a slot whose S-block is not known.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.native.clone().chain(self.later.iter().copied().map(unpacked))
    }

    /// Returns the S-block of the slot `index`, counted from the oldest slot as 0, or [`DEAD`]. Returns `None` if there
    /// is no such slot.
    pub(super) fn get(&self, index: usize) -> Option<u64> {
        let native = (self.native.end - self.native.start) as usize;
        match index.checked_sub(native) {
            None => Some(self.native.start + index as u64),
            Some(index) => self.later.get(index).copied().map(unpacked),
        }
    }

    /// Returns the S-block of the oldest slot, or [`DEAD`]; `None` if there are no slots.
    pub(super) fn front(&self) -> Option<u64> {
        self.get(0)
    }

    /// Returns the S-block of the newest slot, or [`DEAD`]; `None` if there are no slots.
    pub(super) fn back(&self) -> Option<u64> {
        self.len().checked_sub(1).and_then(|last| self.get(last))
    }

    /// Adds a slot with the S-block `sblock`, or [`DEAD`], as the newest one.
    pub(super) fn push_back(&mut self, sblock: u64) {
        grow(&mut self.later, 1);
        self.later.push_back(packed(sblock));
    }

    /// Adds a slot for each of `sblocks`, the last as the newest one.
    pub(super) fn extend(&mut self, sblocks: impl Iterator<Item = u64>) {
        self.later.extend(sblocks.map(packed));
    }

    /// Removes the oldest slot and returns its S-block, or [`DEAD`]. Returns `None` if there are no slots.
    pub(super) fn pop_front(&mut self) -> Option<u64> {
        self.native.next().or_else(|| self.later.pop_front().map(unpacked))
    }

    /// Removes all slots.
    pub(super) fn clear(&mut self) {
        self.native = 0..0;
        self.later.clear();
    }

    /// Returns the bytes of heap memory that the slots take now.
    pub(super) fn measured_bytes(&self) -> u64 {
        (self.later.capacity() * size_of::<u32>()) as u64
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the slots equal a queue. Method: on both, one slot is removed and another added until no slot of the fresh
    //! drive is left.

    use super::*;

    #[test]
    fn slots_equal_a_queue() {
        let (mut slots, mut twin) = (Slots::native(7..12), (7..12).collect::<VecDeque<u64>>());
        for number in 0..9 {
            assert_eq!(slots.iter().collect::<Vec<_>>(), Vec::from(twin.clone()));
            assert_eq!((slots.len(), slots.front(), slots.back()), (5, twin.front().copied(), twin.back().copied()));
            (0..6).for_each(|index| assert_eq!(slots.get(index), twin.get(index).copied()));
            assert_eq!(slots.pop_front(), twin.pop_front());
            let sblock = if number % 4 == 3 { DEAD } else { 100 + number };
            slots.push_back(sblock);
            twin.push_back(sblock);
        }
        slots.clear();
        assert!(slots.is_empty() && slots.back().is_none());
    }
}
