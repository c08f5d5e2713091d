//! The volatile write cache: what the drive has acknowledged but not yet written.
//!
//! Dirty sectors are kept as disjoint ranges; a write that overlaps or continues a range joins it, so that sequential
//! writes and rewrites of hot sectors reach the medium as one. A range keeps the number of its oldest write.
//!
//! Invariants:
//! 1. Ranges are disjoint and non-empty; their sectors sum to `used`, which never exceeds the capacity.
//! 2. Every dirty sector leaves by destage, by a newer write past the cache, or by a trim.
//! 3. The first of the ranges by age is there; of the others some may be gone, since most are written in order of age and
//!    looking each up costs more than passing over it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use imbrex_disk::{Command, Lba, Sectors, SimTime};

/// A join never makes a range longer than this, so that one destage stays short: ours.
const RANGE_SECTORS_MAX: u64 = 4096;

/// Ranges that are gone are swept out of the list by age when they are so many times those there are, and a few more.
const GONE_SHARE: usize = 4;
const GONE_MIN: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Dirty {
    end: u64,
    sequence: u64,
}

/// The cache.
#[derive(Clone, Debug)]
pub struct WriteCache {
    capacity: u64,
    used: u64,
    ranges: BTreeMap<u64, Dirty>,
    /// (number of its oldest write, start) of every range, and of some that are gone: but for the first.
    by_age: BinaryHeap<Reverse<(u64, u64)>>,
    /// Where the last destage ended, for destaging in order of address.
    sweep: u64,
    leaving: Leaving,
}

/// Sectors that are being written back: their room comes free little by little.
#[derive(Clone, Copy, Default, Debug)]
struct Leaving {
    sectors: u64,
    from: SimTime,
    until: SimTime,
}

impl Leaving {
    fn at(&self, time: SimTime) -> u64 {
        let (all, left) = (self.until.since(self.from).0, self.until.since(time.max(self.from)).0);
        if left == 0 {
            return 0;
        }
        (self.sectors as u128 * left as u128).div_ceil(all as u128) as u64
    }
}

impl WriteCache {
    /// A cache of `capacity` sectors; zero is none.
    pub fn new(capacity: Sectors) -> WriteCache {
        WriteCache {
            capacity: capacity.0,
            used: 0,
            ranges: BTreeMap::new(),
            by_age: BinaryHeap::new(),
            sweep: 0,
            leaving: Leaving::default(),
        }
    }

    /// Whether there is one.
    pub fn is_on(&self) -> bool {
        self.capacity > 0
    }

    /// Whether nothing is dirty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Dirty sectors.
    pub fn used(&self) -> Sectors {
        Sectors(self.used)
    }

    /// Whether `command` could ever fit.
    pub fn could_hold(&self, command: &Command) -> bool {
        command.sectors as u64 <= self.capacity
    }

    /// Whether `command` fits at that time (as if it overlapped nothing).
    pub fn has_room(&self, command: &Command, at: SimTime) -> bool {
        self.used + self.leaving.at(at) + command.sectors as u64 <= self.capacity
    }

    /// `sectors` that were taken out are written back in this time.
    pub fn leave(&mut self, sectors: Sectors, from: SimTime, until: SimTime) {
        self.leaving = Leaving { sectors: sectors.0, from, until };
    }

    /// Whether it is time to write back even though requests keep coming: three quarters are dirty. What is left takes in
    /// the next writes meanwhile. Ours.
    pub fn is_filling(&self) -> bool {
        self.used > 0 && self.used * 4 >= self.capacity * 3
    }

    /// Whether every sector of `command` is dirty, so that a read is served from here.
    pub fn holds(&self, command: &Command) -> bool {
        let before = self.ranges.range(..=command.lba.0).next_back();
        before.is_some_and(|(_, dirty)| dirty.end >= command.end().0)
    }

    /// Takes a write in, as number `sequence` of the workload.
    pub fn insert(&mut self, command: &Command, sequence: u64) {
        let fits = self.used + command.sectors as u64 <= self.capacity;
        assert!(fits, "a write of {} sectors into a cache without room", command.sectors);
        let (mut start, mut end, mut oldest) = (command.lba.0, command.end().0, sequence);
        while let Some((first, dirty)) = self.overlapping(start, end) {
            self.forget(first);
            start = start.min(first);
            end = end.max(dirty.end);
            oldest = oldest.min(dirty.sequence);
        }
        let before = self.ranges.range(..start).next_back().map(|(&first, &dirty)| (first, dirty));
        if let Some((first, dirty)) =
            before.filter(|&(first, dirty)| dirty.end == start && end - first <= RANGE_SECTORS_MAX)
        {
            self.forget(first);
            start = first;
            oldest = oldest.min(dirty.sequence);
        }
        let after = self.ranges.get(&end).copied().filter(|after| after.end - start <= RANGE_SECTORS_MAX);
        if let Some(dirty) = after {
            self.forget(end);
            end = dirty.end;
            oldest = oldest.min(dirty.sequence);
        }
        self.keep(start, Dirty { end, sequence: oldest });
    }

    /// A range that overlaps [start, end).
    fn overlapping(&self, start: u64, end: u64) -> Option<(u64, Dirty)> {
        let (&first, &dirty) = self.ranges.range(..end).next_back()?;
        (dirty.end > start).then_some((first, dirty))
    }

    fn keep(&mut self, start: u64, dirty: Dirty) {
        self.used += dirty.end - start;
        self.ranges.insert(start, dirty);
        self.by_age.push(Reverse((dirty.sequence, start)));
        if self.by_age.len() > GONE_SHARE * self.ranges.len() + GONE_MIN {
            let ranges = self.ranges.iter();
            self.by_age = ranges.map(|(&start, dirty)| Reverse((dirty.sequence, start))).collect();
        }
    }

    fn forget(&mut self, start: u64) -> Dirty {
        let dirty = self.ranges.remove(&start).expect("only ranges in the map are forgotten");
        self.used -= dirty.end - start;
        // Invariant 3.
        while let Some(&Reverse((sequence, first))) = self.by_age.peek() {
            if self.ranges.get(&first).is_some_and(|dirty| dirty.sequence == sequence) {
                break;
            }
            self.by_age.pop();
        }
        dirty
    }

    /// Whether something written before number `sequence` is still dirty.
    pub fn has_older_than(&self, sequence: u64) -> bool {
        self.by_age.peek().is_some_and(|&Reverse((oldest, _))| oldest < sequence)
    }

    /// Takes out the oldest range, as the write that destages it.
    pub fn take_oldest(&mut self) -> Option<Command> {
        let &Reverse((_, start)) = self.by_age.peek()?;
        Some(self.take(start))
    }

    /// Takes out the next range in order of address, going round.
    pub fn take_next(&mut self) -> Option<Command> {
        let ahead = self.ranges.range(self.sweep..).next().or_else(|| self.ranges.iter().next());
        let start = *ahead?.0;
        Some(self.take(start))
    }

    /// The nearest dirty range that begins at or after `lba`.
    pub fn at_or_after(&self, lba: Lba) -> Option<Command> {
        self.ranges.range(lba.0..).next().map(|(&start, dirty)| as_write(start, dirty.end))
    }

    /// The nearest dirty range that begins before `lba`.
    pub fn before(&self, lba: Lba) -> Option<Command> {
        self.ranges.range(..lba.0).next_back().map(|(&start, dirty)| as_write(start, dirty.end))
    }

    /// Takes out the range that begins at `start`.
    pub fn take(&mut self, start: u64) -> Command {
        let dirty = self.forget(start);
        self.sweep = dirty.end;
        as_write(start, dirty.end)
    }

    /// Forgets what `command` covers: it is trimmed, or being written past the cache.
    pub fn discard(&mut self, command: &Command) {
        let (start, end) = (command.lba.0, command.end().0);
        while let Some((&first, &dirty)) = self.ranges.range(..end).next_back() {
            if dirty.end <= start {
                break;
            }
            self.forget(first);
            if first < start {
                self.keep(first, Dirty { end: start, sequence: dirty.sequence });
            }
            if dirty.end > end {
                self.keep(end, Dirty { end: dirty.end, sequence: dirty.sequence });
            }
            if first < start {
                break;
            }
        }
    }
}

fn as_write(start: u64, end: u64) -> Command {
    Command::write(start, (end - start) as u32)
}

#[cfg(test)]
mod tests {
    //! Goal: the cache's dirty set equals a naive set of sectors. Method: random inserts, destages and discards on both.

    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_a_naive_set(steps in prop::collection::vec((0u64..50, 1u32..9, 0u8..5), 1..60)) {
            let mut cache = WriteCache::new(Sectors(40));
            let mut naive = BTreeSet::new();
            for (number, (lba, sectors, what)) in steps.into_iter().enumerate() {
                let command = Command::write(lba, sectors);
                let range = lba..lba + sectors as u64;
                match what {
                    0 => { cache.discard(&command); naive.retain(|sector| !range.contains(sector)); }
                    1 => if let Some(taken) = cache.take_oldest() {
                        for sector in taken.lba.0..taken.end().0 { prop_assert!(naive.remove(&sector)); }
                    },
                    2 => if let Some(taken) = cache.take_next() {
                        for sector in taken.lba.0..taken.end().0 { prop_assert!(naive.remove(&sector)); }
                    },
                    _ => if cache.has_room(&command, SimTime::ZERO) { cache.insert(&command, number as u64 * 100); naive.extend(range); }
                }
                prop_assert_eq!(cache.used(), Sectors(naive.len() as u64));
                let oldest = cache.ranges.iter().map(|(&start, dirty)| (dirty.sequence, start)).min();
                prop_assert_eq!(cache.by_age.peek().map(|&Reverse(first)| first), oldest);
                let probe = Command::read(lba, sectors);
                let dirty = (lba..lba + sectors as u64).all(|sector| naive.contains(&sector));
                // Adjacent ranges may stay apart, so a hit is sure only one way round.
                prop_assert!(!cache.holds(&probe) || dirty);
            }
        }
    }

    /// Goal: a write that ends where a range too long to be joined begins still joins what it overlaps (invariant 1).
    #[test]
    fn a_write_before_a_long_range_joins_what_it_overlaps() {
        let mut cache = WriteCache::new(Sectors(10_000));
        cache.insert(&Command::write(100, RANGE_SECTORS_MAX as u32), 1);
        cache.insert(&Command::write(90, 8), 2);
        cache.insert(&Command::write(90, 10), 3);
        assert_eq!(cache.used(), Sectors(10 + RANGE_SECTORS_MAX));
        assert_eq!(cache.take_oldest(), Some(Command::write(100, RANGE_SECTORS_MAX as u32)));
        assert_eq!(cache.take_oldest(), Some(Command::write(90, 10)));
        assert_eq!(cache.take_oldest(), None);
    }

    #[test]
    fn room_comes_free_as_the_sectors_are_written_back() {
        let mut cache = WriteCache::new(Sectors(100));
        cache.insert(&Command::write(0, 100), 1);
        cache.take_oldest();
        cache.leave(Sectors(100), SimTime(1000), SimTime(2000));
        for (at, free) in [(0, 0), (1000, 0), (1500, 50), (1999, 99), (2000, 100), (9000, 100)] {
            assert!(cache.has_room(&Command::write(0, free), SimTime(at)), "{free} at {at}");
            assert!(!cache.has_room(&Command::write(0, free + 1), SimTime(at)), "{} at {at}", free + 1);
        }
    }

    #[test]
    fn sequential_writes_join_and_keep_the_oldest_number() {
        let mut cache = WriteCache::new(Sectors(100));
        cache.insert(&Command::write(8, 8), 5);
        cache.insert(&Command::write(16, 8), 6);
        cache.insert(&Command::write(50, 8), 7);
        assert!(cache.has_older_than(6) && !cache.has_older_than(5));
        assert_eq!(cache.take_oldest(), Some(Command::write(8, 16)));
        assert_eq!(cache.take_oldest(), Some(Command::write(50, 8)));
    }
}
