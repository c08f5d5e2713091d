//! The bytes of the volatile write cache: what the drive has acknowledged and not yet written. Which ranges are dirty, and
//! when they are destaged, the simulator's cache decides; this only keeps what they hold.
//!
//! They are summed as they come: until they are written back they go out of the processor's caches, and to fetch them
//! once more for their sums alone costs more than a copy does. And what changes in memory meanwhile is noticed later.
//!
//! Invariants:
//! 1. Ranges are disjoint and non-empty; a newer write overlays an older one.
//! 2. Each sector has its part of its sum.
//! 3. Of the buffer that a write brought at least half is in use, or none: what is dirty bounds what is held.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::image::checksum;
use crate::image::transfer::Given;

/// The bytes of a run of sectors, with what each has in its sum.
#[derive(Debug)]
pub(crate) struct Dirty {
    /// What one write brought.
    block: Arc<Vec<u8>>,
    /// What is left of that.
    range: Range<usize>,
    parts: Vec<u32>,
}

impl Dirty {
    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.block[self.range.clone()]
    }

    /// They as what is to be written.
    pub(crate) fn given(&self) -> Given<'_> {
        Given { bytes: self.bytes(), parts: Some(&self.parts) }
    }

    /// What they lie in.
    pub(crate) fn block(&self) -> Arc<Vec<u8>> {
        self.block.clone()
    }

    /// The buffer that was brought, if nobody else uses it any more.
    pub(crate) fn into_buffer(self) -> Option<Vec<u8>> {
        Arc::into_inner(self.block)
    }

    /// Cuts it off after `sectors`; what follows.
    fn split_off(&mut self, sectors: usize, sector_bytes: usize) -> Dirty {
        let at = self.range.start + sectors * sector_bytes;
        let mut tail = Dirty { block: self.block(), range: at..self.range.end, parts: self.parts.split_off(sectors) };
        self.range.end = at;
        self.settle();
        tail.settle();
        tail
    }

    /// Leaves a block of which it uses less than half.
    fn settle(&mut self) {
        if 2 * self.range.len() < self.block.capacity() {
            self.block = Arc::new(self.bytes().to_vec());
            self.range = 0..self.block.len();
        }
    }
}

/// Dirty bytes by first sector.
#[derive(Debug)]
pub(crate) struct Volatile {
    ranges: BTreeMap<u64, Dirty>,
    sector_bytes: u64,
}

impl Volatile {
    pub(crate) fn new(sector_bytes: u32) -> Volatile {
        Volatile { ranges: BTreeMap::new(), sector_bytes: sector_bytes as u64 }
    }

    fn end(&self, start: u64, bytes: &[u8]) -> u64 {
        start + bytes.len() as u64 / self.sector_bytes
    }

    /// Takes a write in.
    pub(crate) fn insert(&mut self, lba: u64, bytes: Vec<u8>) {
        let end = self.end(lba, &bytes);
        self.remove(lba, end);
        let mut parts = Vec::new();
        checksum::parts(&bytes, self.sector_bytes as usize, &mut parts);
        let mut dirty = Dirty { range: 0..bytes.len(), block: Arc::new(bytes), parts };
        dirty.settle();
        self.ranges.insert(lba, dirty);
    }

    /// Forgets [start, end).
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        self.split(start);
        self.split(end);
        while let Some((&first, _)) = self.ranges.range(start..end).next() {
            self.ranges.remove(&first);
        }
    }

    /// Whether all of [start, end) is dirty.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        let before = self.ranges.range(..start).next_back();
        let mut reached = start;
        for (&first, dirty) in before.into_iter().chain(self.ranges.range(start..end)) {
            if first > reached {
                return false;
            }
            reached = reached.max(self.end(first, dirty.bytes()));
        }
        reached >= end
    }

    /// Takes [start, end) out: pieces in order.
    pub(crate) fn take(&mut self, start: u64, end: u64, pieces: &mut Vec<(u64, Dirty)>) {
        self.split(start);
        self.split(end);
        while let Some((&first, _)) = self.ranges.range(start..end).next() {
            pieces.push((first, self.ranges.remove(&first).expect("just found")));
        }
    }

    /// Makes `at` a boundary.
    fn split(&mut self, at: u64) {
        let Some((&start, dirty)) = self.ranges.range(..at).next_back() else { return };
        if self.end(start, dirty.bytes()) <= at {
            return;
        }
        let dirty = self.ranges.get_mut(&start).expect("just found");
        let tail = dirty.split_off((at - start) as usize, self.sector_bytes as usize);
        self.ranges.insert(at, tail);
    }

    /// Puts what is dirty of the sectors from `lba` on over `into`; says how many sectors that were.
    pub(crate) fn overlay(&self, lba: u64, into: &mut [u8]) -> u64 {
        if self.ranges.is_empty() {
            return 0;
        }
        let mut sectors = 0;
        let end = self.end(lba, into);
        let first = match self.ranges.range(..=lba).next_back() {
            Some((&start, dirty)) if self.end(start, dirty.bytes()) > lba => start,
            _ => lba,
        };
        for (&start, dirty) in self.ranges.range(first..end) {
            let bytes = dirty.bytes();
            let (from, to) = (start.max(lba), self.end(start, bytes).min(end));
            let range =
                |base: u64| ((from - base) * self.sector_bytes) as usize..((to - base) * self.sector_bytes) as usize;
            into[range(lba)].copy_from_slice(&bytes[range(start)]);
            sectors += to - from;
        }
        sectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECTOR_BYTES: usize = 4;

    /// Sectors from `lba` on, as the cache gives them over a buffer of `0xee`; and how many it says they are.
    fn read(volatile: &Volatile, lba: u64, sectors: usize) -> (Vec<u8>, u64) {
        let mut into = vec![0xee; sectors * SECTOR_BYTES];
        let held = volatile.overlay(lba, &mut into);
        (into, held)
    }

    proptest! {
        /// Against an array that remembers the last value given to every sector.
        #[test]
        fn holds_what_was_written_last(
            acts in prop::collection::vec((0u64..40, 1u64..20, 0u8..4), 1..30),
            windows in prop::collection::vec((0u64..40, 1usize..24), 12),
        ) {
            let mut volatile = Volatile::new(SECTOR_BYTES as u32);
            let mut naive = [None; 64];
            for (value, (lba, sectors, act)) in acts.into_iter().enumerate() {
                let range = lba as usize..(lba + sectors) as usize;
                match act {
                    0 | 1 => {
                        // Every sector of a write differs from its neighbours.
                        let given = |offset: usize| (value * 20 + offset) as u8;
                        let bytes = (0..sectors as usize).flat_map(|offset| [given(offset); SECTOR_BYTES]).collect();
                        volatile.insert(lba, bytes);
                        range.enumerate().for_each(|(offset, sector)| naive[sector] = Some(given(offset)));
                    }
                    2 => {
                        volatile.remove(lba, lba + sectors);
                        naive[range].fill(None);
                    }
                    _ => {
                        let mut pieces = Vec::new();
                        volatile.take(lba, lba + sectors, &mut pieces);
                        for (start, dirty) in pieces {
                            let mut parts = Vec::new();
                            checksum::parts(dirty.bytes(), SECTOR_BYTES, &mut parts);
                            prop_assert_eq!(&parts, &dirty.parts);
                            for (offset, sector) in dirty.bytes().chunks(SECTOR_BYTES).enumerate() {
                                let was = naive[start as usize + offset].take().map(|byte| [byte; SECTOR_BYTES]);
                                prop_assert_eq!(was.as_ref().map(|bytes| &bytes[..]), Some(sector));
                            }
                        }
                        prop_assert!(naive[range].iter().all(Option::is_none));
                    }
                }
            }
            for (lba, sectors) in windows {
                let window = &naive[lba as usize..lba as usize + sectors];
                let expected: Vec<u8> = window.iter().flat_map(|byte| [byte.unwrap_or(0xee); SECTOR_BYTES]).collect();
                let (bytes, held) = read(&volatile, lba, sectors);
                prop_assert_eq!(bytes, expected);
                prop_assert_eq!(held, window.iter().flatten().count() as u64);
                prop_assert_eq!(volatile.covers(lba, lba + sectors as u64), window.iter().all(Option::is_some));
            }
            // What is held, each buffer counted once, is at most twice what is dirty.
            let mut held = std::collections::BTreeMap::new();
            let dirty_bytes: usize = volatile.ranges.values().map(|dirty| dirty.range.len()).sum();
            for dirty in volatile.ranges.values() {
                held.insert(dirty.block.as_ptr().addr(), dirty.block.capacity());
            }
            prop_assert!(held.values().sum::<usize>() <= 2 * dirty_bytes, "{held:?} for {dirty_bytes}");
        }
    }

    #[test]
    fn what_is_empty_holds_nothing() {
        let volatile = Volatile::new(SECTOR_BYTES as u32);
        assert_eq!(read(&volatile, 3, 2), (vec![0xee; 2 * SECTOR_BYTES], 0));
        assert!(!volatile.covers(3, 4));
    }
}
