//! Heat: a log of the track numbers written in an interval, sorted and counted at the interval's end to find the hot
//! tracks (Hajkazemi 2019 §2.2). Counts either start anew with each interval, so that tracks that were hot once are
//! forgotten; or they decay by a part, so that tracks that are written rarely but steadily are known (ours).
//!
//! Heat is counted in sectors written, because the costs of a read-modify-write and of a move are in sectors, too; or in
//! writes, as in the paper, if the caller counts each write as one sector (`heat=writes`).
//!
//! Keys are chosen by the layer: for `track-flip`, a track number of 30 bits, and two bits for the part of the track.
//!
//! Invariants:
//! 1. At most [`ENTRIES_PER_WRITE`] entries of six bytes are kept per write: 240 kB for an interval of 20,000 writes.
//!    When the log is full, entries with the same key are joined once. When it is full again, further writes are not
//!    counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of entries kept for each write of the interval: a write that crosses into another track has two.
const ENTRIES_PER_WRITE: usize = 2;

/// At the end of an interval, 1/2^shift of each count is subtracted, so that a count stands for about the last 64
/// intervals.
const DECAY_SHIFT: u32 = 6;

/// Number of bits of a rank below the key.
const SECTOR_BITS: u32 = u16::BITS;

/// Number of bits in a digit of the sort by key, and number of values that a digit can have.
const DIGIT_BITS: u32 = 11;
const DIGIT_VALUES: usize = 1 << DIGIT_BITS;

/// Sectors written under a key, in six bytes to keep the log small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    key_high: u16,
    key_low: u16,
    sectors: u16,
}

impl Entry {
    #[inline]
    fn new(key: u32, sectors: u32) -> Entry {
        Entry { key_high: (key >> 16) as u16, key_low: key as u16, sectors: sectors.min(u16::MAX as u32) as u16 }
    }

    /// Returns a number that orders entries by key, then by sectors.
    #[inline]
    fn rank(self) -> u64 {
        (self.key() as u64) << SECTOR_BITS | self.sectors as u64
    }

    #[inline]
    fn of_rank(rank: u64) -> Entry {
        Entry {
            key_high: (rank >> (16 + SECTOR_BITS)) as u16,
            key_low: (rank >> SECTOR_BITS) as u16,
            sectors: rank as u16,
        }
    }

    #[inline]
    fn key(self) -> u32 {
        (self.key_high as u32) << 16 | self.key_low as u32
    }
}

/// A log of the keys (numbers of tracks or of their parts) that the host wrote in the current interval of writes, with
/// the number of sectors written to each.
#[derive(Clone, Debug)]
pub struct HeatLog {
    entries: Vec<Entry>,
    writes: u32,
    interval: u32,
    /// Whether entries with the same key have been joined in this interval: no more room can be gained.
    is_joined: bool,
}

/// A heat key, which stands for a track or a part of one, with the number of sectors that the host wrote to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heat {
    /// The heat key: the number of a track or of a part of a track, in a numbering that the layer defines.
    pub key: u32,
    /// Number of sectors that the host wrote to the key in the current interval, plus the rest of the counts of earlier
    /// intervals if counts decay. If the layer counts writes instead (`heat=writes`), each write counts as one sector.
    pub sectors: u32,
}

impl HeatLog {
    /// Returns an empty log for intervals of `interval` host writes each.
    pub fn new(interval: u32) -> HeatLog {
        HeatLog { entries: Vec::new(), writes: 0, interval, is_joined: false }
    }

    /// Counts a write of `sectors` to `key`; more than 65,535 sectors count as 65,535. The log has room for two entries
    /// for each write of an interval. If it is full, entries with equal keys are joined once; if it is full again,
    /// nothing is counted.
    #[inline]
    pub fn count(&mut self, key: u32, sectors: u32) {
        if self.entries.len() == self.entries.capacity() && !self.make_room() {
            return;
        }
        self.entries.push(Entry::new(key, sectors));
    }

    /// Makes room for more entries, by growing the log by one entry per write or by joining entries. Returns whether
    /// there is room.
    #[cold]
    fn make_room(&mut self) -> bool {
        let step = self.interval as usize;
        if self.entries.capacity() < step * ENTRIES_PER_WRITE {
            self.entries.reserve_exact(step);
        } else if !self.is_joined {
            self.is_joined = true;
            self.sort();
        }
        self.entries.len() < self.entries.capacity()
    }

    /// Counts the end of a host write command. Returns whether the interval is over: as many commands have ended since
    /// the last [`HeatLog::restart`] as an interval has, or more.
    #[inline]
    pub fn end_write(&mut self) -> bool {
        self.writes += 1;
        self.writes >= self.interval
    }

    /// Sorts the log by key, as [`HeatLog::counts`] and the other queries need it. Joins entries with equal keys as far
    /// as the sum of their sectors is at most 65,535; a key with more keeps several entries.
    pub fn sort(&mut self) {
        let mut ranks: Vec<u64> = self.entries.iter().map(|entry| entry.rank()).collect();
        sort_by_key(&mut ranks);
        self.entries.clear();
        for same in ranks.chunk_by_mut(|a, b| a >> SECTOR_BITS == b >> SECTOR_BITS) {
            same.sort_unstable();
            let mut joined = Entry::of_rank(same[0]);
            for next in same[1..].iter().map(|&rank| Entry::of_rank(rank)) {
                match joined.sectors.checked_add(next.sectors) {
                    Some(sum) => joined.sectors = sum,
                    None => self.entries.push(std::mem::replace(&mut joined, next)),
                }
            }
            self.entries.push(joined);
        }
    }

    /// Begins the next interval. If `decays` is `false`, all counts are removed. Otherwise a 64th of each count is
    /// subtracted, rounded up, and counts of 0 are removed. If the counts left take more than half of the log's room,
    /// the smallest are removed until they take less than half; counts equal to a removed one are removed too. The log
    /// must be sorted.
    pub fn restart(&mut self, decays: bool) {
        match decays {
            false => self.entries.clear(),
            true => self.decay(),
        }
        self.writes = 0;
        self.is_joined = false;
    }

    /// Subtracts a 64th of each count, rounded up. Then, if more than half of the log is full, removes the coldest
    /// entries to leave half for the next interval.
    fn decay(&mut self) {
        for entry in &mut self.entries {
            entry.sectors -= entry.sectors.div_ceil(1 << DECAY_SHIFT);
        }
        self.entries.retain(|entry| entry.sectors > 0);
        let room = self.interval as usize * ENTRIES_PER_WRITE / 2;
        if self.entries.len() > room {
            let mut sectors: Vec<u16> = self.entries.iter().map(|entry| entry.sectors).collect();
            let coldest = sectors.len() - room;
            let (_, &mut kept, _) = sectors.select_nth_unstable(coldest);
            self.entries.retain(|entry| entry.sectors > kept);
        }
    }

    fn before(&self, key: u32) -> usize {
        self.entries.partition_point(|entry| entry.key() < key)
    }

    /// Returns the total number of sectors written to the keys from `first` up to, not including, `end`. The log must
    /// be sorted.
    pub fn sectors_in(&self, first: u32, end: u32) -> u32 {
        sum(&self.entries[self.before(first)..self.before(end)])
    }

    /// Returns the written keys and the number of sectors written to each, in ascending order of the keys. Keys are
    /// shifted right by `drop_bits`; keys that are then equal are counted together. The log must be sorted.
    pub fn counts(&self, drop_bits: u32) -> impl Iterator<Item = Heat> + '_ {
        let same = move |a: &Entry, b: &Entry| a.key() >> drop_bits == b.key() >> drop_bits;
        let heat = move |entries: &[Entry]| Heat { key: entries[0].key() >> drop_bits, sectors: sum(entries) };
        self.entries.chunk_by(same).map(heat)
    }

    /// Returns the written keys from `first` up to, not including, `end`, and the number of sectors written to each, in
    /// ascending order of the keys. The log must be sorted.
    pub fn counts_in(&self, first: u32, end: u32) -> impl Iterator<Item = Heat> + '_ {
        let entries = &self.entries[self.before(first)..self.before(end)];
        let heat = |entries: &[Entry]| Heat { key: entries[0].key(), sectors: sum(entries) };
        entries.chunk_by(|a, b| a.key() == b.key()).map(heat)
    }

    /// Returns the `limit` candidates with the most sectors, in descending order of sectors. Of candidates with equally
    /// many sectors, the one with the lower key comes first. Returns all candidates if there are fewer.
    pub fn hottest(candidates: impl Iterator<Item = Heat>, limit: usize) -> Vec<Heat> {
        let mut kept: BinaryHeap<Reverse<(u32, Reverse<u32>)>> = BinaryHeap::with_capacity(limit);
        for heat in candidates {
            let next = Reverse((heat.sectors, Reverse(heat.key)));
            if kept.len() < limit {
                kept.push(next);
                continue;
            }
            // Almost all candidates are colder than those kept.
            match kept.peek_mut() {
                Some(mut coldest) if next < *coldest => *coldest = next,
                _ => {}
            }
        }
        let sorted = kept.into_sorted_vec();
        sorted.into_iter().map(|Reverse((sectors, Reverse(key)))| Heat { key, sectors }).collect()
    }

    /// Returns the bytes of memory that the log takes now.
    pub fn measured_bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<Entry>()) as u64
    }
}

/// Sorts ranks by key with a radix sort, from the lowest digit to the highest that a key has. A log has tens of
/// thousands of unordered entries, and a comparison sort would mispredict the branch for every second one.
fn sort_by_key(ranks: &mut Vec<u64>) {
    let key_max = ranks.iter().max().map_or(0, |rank| rank >> SECTOR_BITS);
    let digits = (u64::BITS - key_max.leading_zeros()).div_ceil(DIGIT_BITS);
    let mut sorted = vec![0; ranks.len()];
    for shift in (0..digits).map(|digit| SECTOR_BITS + digit * DIGIT_BITS) {
        let digit_of = |rank: u64| (rank >> shift) as usize & (DIGIT_VALUES - 1);
        // First the count of each digit, then the position of the next rank with that digit.
        let mut places = [0u32; DIGIT_VALUES];
        ranks.iter().for_each(|&rank| places[digit_of(rank)] += 1);
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        for &rank in ranks.iter() {
            let place = &mut places[digit_of(rank)];
            sorted[*place as usize] = rank;
            *place += 1;
        }
        std::mem::swap(ranks, &mut sorted);
    }
}

fn sum(entries: &[Entry]) -> u32 {
    entries.iter().map(|entry| entry.sectors as u32).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_by_key_and_forgets_with_the_interval() {
        let mut heat = HeatLog::new(6);
        let ended: Vec<bool> = [9, 4, 9, 9, 5, 4]
            .map(|key| {
                heat.count(key, 1);
                heat.end_write()
            })
            .to_vec();
        assert_eq!(ended, [false, false, false, false, false, true]);
        heat.sort();
        let heats =
            |pairs: &[(u32, u32)]| -> Vec<Heat> { pairs.iter().map(|&(key, sectors)| Heat { key, sectors }).collect() };
        assert_eq!(heat.counts(0).collect::<Vec<_>>(), heats(&[(4, 2), (5, 1), (9, 3)]));
        assert_eq!(heat.counts(2).collect::<Vec<_>>(), heats(&[(1, 3), (2, 3)]));
        assert_eq!(HeatLog::hottest(heat.counts(2), 1), heats(&[(1, 3)]), "of equals the lower key");
        assert_eq!(HeatLog::hottest(heat.counts(0), 2), heats(&[(9, 3), (4, 2)]));
        assert_eq!(heat.sectors_in(4, 9), 3);
        heat.restart(false);
        assert_eq!(heat.counts(0).count(), 0);
    }

    /// Checks that a count is the sectors written since, plus 63/64 of the last count, rounded down. Method: one track
    /// of 640 sectors per interval, one of a single sector, and one written only in the first interval.
    #[test]
    fn counts_decay_by_a_64th() {
        let mut heat = HeatLog::new(20);
        let mut seen = Vec::new();
        for interval in 0..4 {
            heat.count(7, 640);
            heat.count(3, 1);
            if interval == 0 {
                heat.count(5, 100);
            }
            heat.sort();
            seen.push([7, 3, 5].map(|key| heat.sectors_in(key, key + 1)));
            heat.restart(true);
        }
        assert_eq!(seen, [[640, 1, 100], [1270, 1, 98], [1890, 1, 96], [2500, 1, 94]]);
    }

    /// Checks that the coldest keys are removed if more remain than half of the log holds.
    #[test]
    fn the_coldest_are_forgotten_first() {
        let mut heat = HeatLog::new(4);
        (0..8).for_each(|key| heat.count(key, 100 + 10 * key));
        heat.sort();
        heat.restart(true);
        assert_eq!(heat.counts(0).map(|heat| heat.key).collect::<Vec<_>>(), [5, 6, 7]);
    }

    proptest! {
        /// Checks that the log counts as an ordered map does. Method: keys of all sizes, few and many of a kind.
        #[test]
        fn counts_as_an_ordered_map_does(
            writes in proptest::collection::vec((any::<u32>(), 1u32..40), 0..300),
            shift in 0u32..32,
        ) {
            let (mut heat, mut expected) = (HeatLog::new(1_000), BTreeMap::<u32, u32>::new());
            for (key, sectors) in writes {
                heat.count(key >> shift, sectors);
                *expected.entry(key >> shift).or_default() += sectors;
            }
            heat.sort();
            let counted: Vec<(u32, u32)> = heat.counts(0).map(|heat| (heat.key, heat.sectors)).collect();
            prop_assert_eq!(counted, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_interval_of_20_000_writes_takes_less_than_a_quarter_megabyte() {
        for decays in [false, true] {
            let mut heat = HeatLog::new(20_000);
            for write in 0..80_000 {
                // Far more tracks per write than any host asks for, and some of them often.
                (0..50).for_each(|track| heat.count((write * 50 + track) % 100_000, 8));
                if heat.end_write() {
                    heat.sort();
                    heat.restart(decays);
                }
            }
            assert!(heat.measured_bytes() < 250_000, "{} bytes", heat.measured_bytes());
        }
    }

    /// Checks that a count too large for one entry takes several. Method: four times the most that six bytes hold, in
    /// two keys.
    #[test]
    fn large_counts_take_several_entries() {
        let mut heat = HeatLog::new(8);
        (0..4).for_each(|_| heat.count(70_000, 65_535));
        heat.count(70_001, 3);
        heat.sort();
        assert_eq!(heat.counts(0).collect::<Vec<_>>()[0], Heat { key: 70_000, sectors: 4 * 65_535 });
        assert_eq!(heat.sectors_in(70_001, 70_002), 3);
    }

    /// Checks that a full log joins entries with the same key before it drops writes.
    #[test]
    fn a_full_log_joins_entries() {
        let mut heat = HeatLog::new(4);
        (0..100).for_each(|_| heat.count(5, 2));
        heat.sort();
        assert_eq!(heat.sectors_in(5, 6), 2 * 8 + 2 * 7, "eight entries become one, and seven more find room");
    }
}
