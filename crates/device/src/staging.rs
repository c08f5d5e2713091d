//! Staging: the data read by the reads of a group, by LBA, for the writes of the group. Later data overlays earlier
//! data. One buffer, reused from group to group, holds the bytes.
//!
//! Invariants:
//! 1. Ranges are disjoint and non-empty.
//! 2. A range marked absent or spoilt reads as zeros. The overlay leaves unstaged ranges unchanged.

use std::collections::BTreeMap;

/// Location of the bytes of a staged range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Held {
    /// In the buffer, from this sector on.
    At(u64),
    /// No bytes: the range is trimmed.
    Absent,
    /// No bytes: the range could not be read.
    Spoilt,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    end: u64,
    held: Held,
}

/// The staging of one group.
#[derive(Debug)]
pub(crate) struct Staging {
    ranges: BTreeMap<u64, Range>,
    buffer: Vec<u8>,
    sector_bytes: usize,
    has_spoilt: bool,
}

impl Staging {
    pub(crate) fn new(sector_bytes: u32) -> Staging {
        Staging { ranges: BTreeMap::new(), buffer: Vec::new(), sector_bytes: sector_bytes as usize, has_spoilt: false }
    }

    /// Removes all ranges, to begin a new group.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
        self.buffer.clear();
        self.has_spoilt = false;
    }

    /// Stages `sectors` from `lba` on, and returns their bytes for the caller to fill.
    pub(crate) fn stage(&mut self, lba: u64, sectors: u64) -> &mut [u8] {
        let begin = self.buffer.len();
        self.put(lba, lba + sectors, Held::At((begin / self.sector_bytes) as u64));
        self.buffer.resize(begin + sectors as usize * self.sector_bytes, 0);
        &mut self.buffer[begin..]
    }

    /// Stages `sectors` from `lba` on as absent.
    pub(crate) fn stage_absence(&mut self, lba: u64, sectors: u64) {
        self.put(lba, lba + sectors, Held::Absent);
    }

    /// Stages `sectors` from `lba` on as unreadable. Sectors written from these are lost, unless later data overlays
    /// them.
    pub(crate) fn stage_spoilt(&mut self, lba: u64, sectors: u64) {
        self.put(lba, lba + sectors, Held::Spoilt);
        self.has_spoilt = true;
    }

    /// Returns the runs of unreadable sectors among `sectors` from `lba` on, in order: first LBA and length.
    pub(crate) fn spoilt(&self, lba: u64, sectors: u64) -> Vec<(u64, u64)> {
        if !self.has_spoilt {
            return Vec::new();
        }
        let end = lba + sectors;
        let held = self.ranges.iter().filter(|(_, range)| range.held == Held::Spoilt);
        let clipped = held.map(|(&start, range)| (start.max(lba), range.end.min(end)));
        clipped.filter(|(start, end)| start < end).map(|(start, end)| (start, end - start)).collect()
    }

    fn put(&mut self, start: u64, end: u64, held: Held) {
        self.split(start);
        self.split(end);
        while let Some((&first, _)) = self.ranges.range(start..end).next() {
            self.ranges.remove(&first);
        }
        self.ranges.insert(start, Range { end, held });
    }

    /// Splits the range that contains `at`, if there is one, so that a range starts at `at`.
    fn split(&mut self, at: u64) {
        let Some((&start, range)) = self.ranges.range_mut(..at).next_back() else { return };
        if range.end <= at {
            return;
        }
        let held = match range.held {
            Held::At(sector) => Held::At(sector + at - start),
            other => other,
        };
        let tail = Range { end: range.end, held };
        range.end = at;
        self.ranges.insert(at, tail);
    }

    /// Copies the staged data of the sectors from `lba` on into `into`. Leaves the bytes of unstaged sectors
    /// unchanged.
    pub(crate) fn overlay(&self, lba: u64, into: &mut [u8]) {
        let end = lba + (into.len() / self.sector_bytes) as u64;
        let first = match self.ranges.range(..=lba).next_back() {
            Some((&start, range)) if range.end > lba => start,
            _ => lba,
        };
        for (&start, range) in self.ranges.range(first..end) {
            let (from, to) = (start.max(lba), range.end.min(end));
            let part = &mut into[(from - lba) as usize * self.sector_bytes..(to - lba) as usize * self.sector_bytes];
            match range.held {
                Held::At(sector) => {
                    let begin = (sector + from - start) as usize * self.sector_bytes;
                    part.copy_from_slice(&self.buffer[begin..begin + part.len()]);
                }
                Held::Absent | Held::Spoilt => part.fill(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Act {
        Bytes,
        Absence,
        Spoilt,
    }

    proptest! {
        /// Compares with an array that holds the last value staged for every sector.
        #[test]
        fn later_overlays_earlier(
            acts in prop::collection::vec(
                (0u64..40, 1u64..20, prop_oneof![Just(Act::Bytes), Just(Act::Absence), Just(Act::Spoilt)]), 1..20),
            windows in prop::collection::vec((0u64..40, 1u64..24), 12),
        ) {
            let mut staging = Staging::new(2);
            let mut naive = [([0xee_u8; 2], false); 64];
            for (value, (lba, sectors, act)) in acts.into_iter().enumerate() {
                let range = lba as usize..(lba + sectors) as usize;
                match act {
                    Act::Bytes => {
                        // Every sector differs from its neighbours.
                        let given = |offset: usize| [value as u8 + 1, offset as u8];
                        let bytes: Vec<u8> = (0..sectors as usize).flat_map(given).collect();
                        staging.stage(lba, sectors).copy_from_slice(&bytes);
                        range.enumerate().for_each(|(offset, sector)| naive[sector] = (given(offset), false));
                    }
                    Act::Absence => {
                        staging.stage_absence(lba, sectors);
                        naive[range].fill(([0; 2], false));
                    }
                    Act::Spoilt => {
                        staging.stage_spoilt(lba, sectors);
                        naive[range].fill(([0; 2], true));
                    }
                }
            }
            for (lba, sectors) in windows {
                let window = &naive[lba as usize..(lba + sectors) as usize];
                let mut read = vec![0xee; sectors as usize * 2];
                staging.overlay(lba, &mut read);
                prop_assert_eq!(read, window.iter().flat_map(|(bytes, _)| *bytes).collect::<Vec<u8>>());
                let mut spoilt = vec![false; sectors as usize];
                for (start, length) in staging.spoilt(lba, sectors) {
                    prop_assert!(length > 0);
                    spoilt[(start - lba) as usize..(start - lba + length) as usize].fill(true);
                }
                prop_assert_eq!(spoilt, window.iter().map(|&(_, is_spoilt)| is_spoilt).collect::<Vec<bool>>());
            }
        }
    }

    #[test]
    fn a_new_group_has_nothing_staged() {
        let mut staging = Staging::new(2);
        staging.stage(3, 2).fill(1);
        staging.stage_spoilt(5, 1);
        staging.clear();
        let mut read = [0xee; 6];
        staging.overlay(3, &mut read);
        assert_eq!((read, staging.spoilt(0, 10)), ([0xee; 6], vec![]));
    }
}
