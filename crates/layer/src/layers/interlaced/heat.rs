//! Which tracks are hot: a log of the track numbers written in an interval, sorted and counted at its end (Hajkazemi 2019
//! §2.2). Counts start anew with each interval, so that what was hot once is forgotten; or they are halved, so that it is
//! forgotten by and by, and what is written rarely but steadily is known (ours).
//!
//! Keys are the layer's: a track number of 30 bits, and two bits for the part of the track.
//!
//! Invariants:
//! 1. At most [`KEYS_PER_WRITE`] keys a write are kept: 240 kB for an interval of 20,000 writes. What comes after is not
//!    counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Keys kept, for each write of the interval: a write that crosses into another track has two.
const KEYS_PER_WRITE: usize = 3;

/// The log of an interval.
#[derive(Clone, Debug)]
pub struct HeatLog {
    keys: Vec<u32>,
    writes: u32,
    interval: u32,
}

/// A counted key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heat {
    /// The key.
    pub key: u32,
    /// Writes to it in the interval.
    pub writes: u32,
}

impl HeatLog {
    /// A log for intervals of `interval` writes.
    pub fn new(interval: u32) -> HeatLog {
        HeatLog { keys: Vec::new(), writes: 0, interval }
    }

    /// Counts a write to `key`.
    #[inline]
    pub fn count(&mut self, key: u32) {
        if self.keys.len() == self.keys.capacity() && !self.grow() {
            return;
        }
        self.keys.push(key);
    }

    /// Makes room by one more key a write; says whether it did.
    #[cold]
    fn grow(&mut self) -> bool {
        let step = self.interval as usize;
        let may_grow = self.keys.capacity() < step * KEYS_PER_WRITE;
        if may_grow {
            self.keys.reserve_exact(step);
        }
        may_grow
    }

    /// A host write is logged: says whether the interval is over.
    #[inline]
    pub fn end_write(&mut self) -> bool {
        self.writes += 1;
        self.writes >= self.interval
    }

    /// Sorts the log, for counting.
    pub fn sort(&mut self) {
        self.keys.sort_unstable();
    }

    /// Begins the next interval with no counts, or with half of what each was. The log is sorted.
    pub fn restart(&mut self, decays: bool) {
        match decays {
            false => self.keys.clear(),
            true => self.halve(),
        }
        self.writes = 0;
    }

    /// Of each run of equal keys every second stays: half of its count, rounded down.
    fn halve(&mut self) {
        let mut run = None;
        self.keys.retain(|&key| {
            let is_second = run == Some(key);
            run = if is_second { None } else { Some(key) };
            is_second
        });
    }

    /// Writes to the keys from `first` up to `end`. The log is sorted.
    pub fn writes_in(&self, first: u32, end: u32) -> u32 {
        let before = |key: u32| self.keys.partition_point(|&logged| logged < key);
        (before(end) - before(first)) as u32
    }

    /// The keys written, with `drop_bits` cut off, and how often, in their order. The log is sorted.
    pub fn counts(&self, drop_bits: u32) -> impl Iterator<Item = Heat> + '_ {
        let same = move |a: &u32, b: &u32| a >> drop_bits == b >> drop_bits;
        self.keys.chunk_by(same).map(move |keys| Heat { key: keys[0] >> drop_bits, writes: keys.len() as u32 })
    }

    /// The keys from `first` up to `end` that were written, and how often. The log is sorted.
    pub fn counts_in(&self, first: u32, end: u32) -> impl Iterator<Item = Heat> + '_ {
        let before = |key: u32| self.keys.partition_point(|&logged| logged < key);
        let keys = &self.keys[before(first)..before(end)];
        keys.chunk_by(|a, b| a == b).map(|keys| Heat { key: keys[0], writes: keys.len() as u32 })
    }

    /// The hottest `limit` of `candidates`, hottest first, of equally hot ones those with the lower keys.
    pub fn hottest(candidates: impl Iterator<Item = Heat>, limit: usize) -> Vec<Heat> {
        let mut kept: BinaryHeap<Reverse<(u32, Reverse<u32>)>> = BinaryHeap::with_capacity(limit);
        for heat in candidates {
            let next = Reverse((heat.writes, Reverse(heat.key)));
            if kept.len() < limit {
                kept.push(next);
                continue;
            }
            // Almost all are colder than what is kept.
            match kept.peek_mut() {
                Some(mut coldest) if next < *coldest => *coldest = next,
                _ => {}
            }
        }
        let sorted = kept.into_sorted_vec();
        sorted.into_iter().map(|Reverse((writes, Reverse(key)))| Heat { key, writes }).collect()
    }

    /// Bytes it takes.
    pub fn measured_bytes(&self) -> u64 {
        (self.keys.capacity() * size_of::<u32>()) as u64
    }
}

/// Whether a track is so much hotter than another that the swap pays: `ratio` times its writes, where none count as one.
pub fn is_hotter(hot: u32, cold: u32, ratio: u32) -> bool {
    hot as u64 >= ratio as u64 * cold.max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_key_and_forgets_with_the_interval() {
        let mut heat = HeatLog::new(6);
        let ended: Vec<bool> = [9, 4, 9, 9, 5, 4]
            .map(|key| {
                heat.count(key);
                heat.end_write()
            })
            .to_vec();
        assert_eq!(ended, [false, false, false, false, false, true]);
        heat.sort();
        let heats =
            |pairs: &[(u32, u32)]| -> Vec<Heat> { pairs.iter().map(|&(key, writes)| Heat { key, writes }).collect() };
        assert_eq!(heat.counts(0).collect::<Vec<_>>(), heats(&[(4, 2), (5, 1), (9, 3)]));
        assert_eq!(heat.counts(2).collect::<Vec<_>>(), heats(&[(1, 3), (2, 3)]));
        assert_eq!(HeatLog::hottest(heat.counts(2), 1), heats(&[(1, 3)]), "of equals the lower key");
        assert_eq!(HeatLog::hottest(heat.counts(0), 2), heats(&[(9, 3), (4, 2)]));
        assert_eq!(heat.writes_in(4, 9), 3);
        heat.restart(false);
        assert_eq!(heat.counts(0).count(), 0);
    }

    /// Goal: a count is half of the last one and what came since. Method: a track written ten times in each of five
    /// intervals, one written once in each, one written in the first alone.
    #[test]
    fn counts_decay_by_halves() {
        let mut heat = HeatLog::new(20);
        let mut seen = Vec::new();
        for interval in 0..5 {
            (0..10).for_each(|_| heat.count(7));
            heat.count(3);
            (0..9).filter(|_| interval == 0).for_each(|_| heat.count(5));
            heat.sort();
            seen.push([7, 3, 5].map(|key| heat.writes_in(key, key + 1)));
            heat.restart(true);
        }
        assert_eq!(seen, [[10, 1, 9], [15, 1, 4], [17, 1, 2], [18, 1, 1], [19, 1, 0]]);
    }

    #[test]
    fn an_interval_of_20_000_writes_takes_less_than_a_quarter_megabyte() {
        for decays in [false, true] {
            let mut heat = HeatLog::new(20_000);
            for write in 0..80_000 {
                // Far more tracks a write than any host asks for, and some of them often.
                (0..50).for_each(|track| heat.count((write * 50 + track) % 100_000));
                if heat.end_write() {
                    heat.sort();
                    heat.restart(decays);
                }
            }
            assert!(heat.measured_bytes() < 250_000, "{} bytes", heat.measured_bytes());
        }
    }

    #[test]
    fn nothing_counts_as_one_write() {
        assert!(is_hotter(2, 0, 2) && is_hotter(2, 1, 2) && is_hotter(20, 10, 2));
        assert!(!is_hotter(1, 0, 2) && !is_hotter(19, 10, 2));
    }
}
