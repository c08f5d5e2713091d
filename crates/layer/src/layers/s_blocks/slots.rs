//! What the slots of an S-block buffer were written for, from the tail on. Those that the factory wrote are known by their numbers, which
//! follow each other, and take no memory.

use std::collections::VecDeque;
use std::ops::Range;

use super::entries::grow;
use super::state::DEAD;

/// A dead slot, as it is kept.
const NO_SBLOCK: u32 = u32::MAX;

fn packed(sblock: u64) -> u32 {
    if sblock == DEAD { NO_SBLOCK } else { u32::try_from(sblock).expect("a disk has fewer S-blocks") }
}

fn unpacked(sblock: u32) -> u64 {
    if sblock == NO_SBLOCK { DEAD } else { u64::from(sblock) }
}

/// The slots.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// The oldest ones: S-blocks as they were at first.
    native: Range<u64>,
    /// Those after them.
    later: VecDeque<u32>,
}

impl Slots {
    /// The slots of a fresh buffer.
    pub fn native(sblocks: Range<u64>) -> Slots {
        Slots { native: sblocks, later: VecDeque::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        (self.native.end - self.native.start) as usize + self.later.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.native.clone().chain(self.later.iter().copied().map(unpacked))
    }

    /// Slot `index`, counted from the oldest.
    pub fn get(&self, index: usize) -> Option<u64> {
        let native = (self.native.end - self.native.start) as usize;
        match index.checked_sub(native) {
            None => Some(self.native.start + index as u64),
            Some(index) => self.later.get(index).copied().map(unpacked),
        }
    }

    /// The oldest.
    pub fn front(&self) -> Option<u64> {
        self.get(0)
    }

    /// The newest.
    pub fn back(&self) -> Option<u64> {
        self.len().checked_sub(1).and_then(|last| self.get(last))
    }

    /// Adds one behind all others.
    pub fn push_back(&mut self, sblock: u64) {
        grow(&mut self.later, 1);
        self.later.push_back(packed(sblock));
    }

    /// Adds several likewise.
    pub fn extend(&mut self, sblocks: impl Iterator<Item = u64>) {
        self.later.extend(sblocks.map(packed));
    }

    /// Takes the oldest away.
    pub fn pop_front(&mut self) -> Option<u64> {
        self.native.next().or_else(|| self.later.pop_front().map(unpacked))
    }

    /// Takes all away.
    pub fn clear(&mut self) {
        self.native = 0..0;
        self.later.clear();
    }

    /// Bytes that they take beside themselves.
    pub fn measured_bytes(&self) -> u64 {
        (self.later.capacity() * size_of::<u32>()) as u64
    }
}

#[cfg(test)]
mod tests {
    //! Goal: slots equal a queue. Method: one is taken and another added until the factory's are gone, on both.

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
