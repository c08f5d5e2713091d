//! The bytes of the volatile write cache: data that the drive has acknowledged and not yet written. The simulator's
//! cache decides which ranges are dirty and when they are destaged; this module only stores their bytes.
//!
//! Checksums are computed when a write arrives. By the time of write-back the bytes have left the processor's caches,
//! and loading them again only for checksums costs more than a copy. Corruption in memory meanwhile is also detected
//! this way.
//!
//! Invariants:
//! 1. Ranges are disjoint and non-empty; a newer write overlays an older one.
//! 2. Every sector has its part of the checksum.
//! 3. At least half of each buffer that a write brought is in use, or it is released. So the memory held is bounded
//!    by the dirty data.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::image::checksum;
use crate::image::transfer::Given;
use crate::store::Held;

/// The bytes of a run of sectors, and the part of each sector in their checksum.
#[derive(Debug)]
pub(crate) struct Dirty {
    /// Buffer that one write brought.
    block: Arc<Vec<u8>>,
    /// Bytes of `block` that are still in use.
    range: Range<usize>,
    parts: Vec<u32>,
}

impl Dirty {
    /// Returns the bytes of the run.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.block[self.range.clone()]
    }

    /// Returns the bytes with their checksum parts, for writing.
    pub(crate) fn given(&self) -> Given<'_> {
        Given { bytes: self.bytes(), parts: Some(&self.parts) }
    }

    /// Returns the buffer that contains the bytes.
    pub(crate) fn block(&self) -> Arc<Vec<u8>> {
        self.block.clone()
    }

    /// Returns the buffer, if nothing else references it.
    pub(crate) fn into_buffer(self) -> Option<Vec<u8>> {
        Arc::into_inner(self.block)
    }

    /// Splits the run after `sectors`, and returns the rest.
    fn split_off(&mut self, sectors: usize, sector_bytes: usize) -> Dirty {
        let at = self.range.start + sectors * sector_bytes;
        let mut tail = Dirty { block: self.block(), range: at..self.range.end, parts: self.parts.split_off(sectors) };
        self.range.end = at;
        self.settle();
        tail.settle();
        tail
    }

    /// Copies the bytes into a buffer of their own if they use less than half of the present one.
    fn settle(&mut self) {
        if 2 * self.range.len() < self.block.capacity() {
            self.block = Arc::new(self.bytes().to_vec());
            self.range = 0..self.block.len();
        }
    }
}

impl Held for Volatile {
    fn first_missing(&self, start: u64, end: u64) -> Option<u64> {
        let before = self.ranges.range(..start).next_back();
        let mut reached = start;
        for (&first, dirty) in before.into_iter().chain(self.ranges.range(start..end)) {
            if first > reached {
                break;
            }
            reached = reached.max(self.end(first, dirty.bytes()));
        }
        (reached < end).then_some(reached)
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

    /// Stores the bytes of a write.
    pub(crate) fn insert(&mut self, lba: u64, bytes: Vec<u8>) {
        let end = self.end(lba, &bytes);
        self.remove(lba, end);
        let mut parts = Vec::new();
        checksum::parts(&bytes, self.sector_bytes as usize, &mut parts);
        let mut dirty = Dirty { range: 0..bytes.len(), block: Arc::new(bytes), parts };
        dirty.settle();
        self.ranges.insert(lba, dirty);
    }

    /// Removes the sectors `start..end`.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        self.split(start);
        self.split(end);
        while let Some((&first, _)) = self.ranges.range(start..end).next() {
            self.ranges.remove(&first);
        }
    }

    /// Returns whether all of the sectors `start..end` are dirty.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        self.first_missing(start, end).is_none()
    }

    /// Removes the dirty sectors of `start..end`, and appends them to `pieces` in order.
    pub(crate) fn take(&mut self, start: u64, end: u64, pieces: &mut Vec<(u64, Dirty)>) {
        self.split(start);
        self.split(end);
        while let Some((&first, _)) = self.ranges.range(start..end).next() {
            pieces.push((first, self.ranges.remove(&first).expect("just found")));
        }
    }

    /// Splits the range that contains `at`, if there is one, so that a range starts at `at`.
    fn split(&mut self, at: u64) {
        let Some((&start, dirty)) = self.ranges.range(..at).next_back() else { return };
        if self.end(start, dirty.bytes()) <= at {
            return;
        }
        let dirty = self.ranges.get_mut(&start).expect("just found");
        let tail = dirty.split_off((at - start) as usize, self.sector_bytes as usize);
        self.ranges.insert(at, tail);
    }

    /// Copies the dirty bytes of the sectors from `lba` on into `into`, and returns the number of sectors copied.
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

    /// Returns sectors from `lba` on, overlaid on a buffer of `0xee`, and the number of sectors that the cache
    /// reports.
    fn read(volatile: &Volatile, lba: u64, sectors: usize) -> (Vec<u8>, u64) {
        let mut into = vec![0xee; sectors * SECTOR_BYTES];
        let held = volatile.overlay(lba, &mut into);
        (into, held)
    }

    proptest! {
        /// Compares with an array that holds the last value written to every sector.
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
            // The memory held, each buffer counted once, is at most twice the dirty bytes.
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
