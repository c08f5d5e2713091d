//! The volatile write cache: the writes that the drive has acknowledged but not yet written to the medium.
//!
//! Dirty sectors are kept as disjoint ranges. A write that overlaps or continues a range joins it, so that sequential
//! writes and rewrites of hot sectors reach the medium as one write. A range keeps the number of its oldest write.
//!
//! Invariants:
//! 1. Ranges are disjoint and non-empty; their sectors sum to `used`, which never exceeds the capacity.
//! 2. Every dirty sector is removed by a destage, by a newer write past the cache, or by a trim.
//! 3. Every range is once in the order of address, at its start, and once in the order of age.
//! 4. If writes stay in order ([`Ordered`]), the first dirty range of a run is destaged before the others of the run.
//! 5. On a caveat disk, a range is destaged before every dirty range that a write of it may destroy.

mod ages;
mod order;

use std::ops::Range;

use ages::{Ages, Dirty};
use imbrex_disk::recording::distances::CaveatDistances;
use imbrex_disk::{Command, Lba, Sectors, SimTime};
use order::{Cursor, Entry, Order};

use crate::queue::Ordered;

/// Maximum length of a range that a join makes, so that one destage stays short. Our own value.
const RANGE_SECTORS_MAX: u64 = 4096;

/// A volatile write cache: the sectors that the drive has acknowledged but not yet written to the medium ("dirty"), as
/// disjoint ranges. It holds no data bytes.
#[derive(Clone, Debug)]
pub struct WriteCache {
    capacity: u64,
    used: u64,
    order: Order,
    ages: Ages,
    /// Address at which the last destage ended, for destaging in order of address.
    sweep: u64,
    /// Position of `sweep` in `order`. Later inserts and removals may have moved it.
    near_sweep: Cursor,
    leaving: Leaving,
    /// Number of the oldest write in the range that was removed last.
    taken_sequence: u64,
    ordered: Option<Ordered>,
    caveat: Option<CaveatDistances>,
}

/// Sectors whose write-back is in flight: their room becomes free gradually.
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
    /// Creates an empty cache of `capacity` sectors; zero turns it off.
    pub fn new(capacity: Sectors) -> WriteCache {
        WriteCache {
            capacity: capacity.0,
            used: 0,
            order: Order::default(),
            ages: Ages::default(),
            sweep: 0,
            near_sweep: Cursor::default(),
            leaving: Leaving::default(),
            taken_sequence: 0,
            ordered: None,
            caveat: None,
        }
    }

    /// Removes the dirty ranges of one run of `ordered` in order of address from now on. A run is one of equal parts of
    /// the address space, such as a zone.
    pub fn keep_order_in(&mut self, ordered: Ordered) {
        self.ordered = Some(ordered);
    }

    /// Removes dirty ranges from now on in such an order that no write of one destroys another: a range comes after
    /// every dirty range whose write may destroy it. `caveat` gives the distances of the damage.
    pub fn spare_within(&mut self, caveat: CaveatDistances) {
        self.caveat = Some(caveat);
    }

    /// Returns whether the cache is on: whether its capacity is not zero.
    pub fn is_on(&self) -> bool {
        self.capacity > 0
    }

    /// Returns whether no sector is dirty.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Returns the number of dirty sectors: acknowledged and not yet taken out. Those whose write-back is in flight do
    /// not count.
    pub fn used(&self) -> Sectors {
        Sectors(self.used)
    }

    /// Returns whether the sectors of `command` would fit into the cache if it were empty.
    pub fn could_hold(&self, command: &Command) -> bool {
        command.sectors as u64 <= self.capacity
    }

    /// Returns whether the sectors of `command` fit into the cache at time `at`, all counted as new. Sectors whose
    /// write-back is in flight take room until they are written; the room becomes free in proportion to time.
    pub fn has_room(&self, command: &Command, at: SimTime) -> bool {
        self.used + self.leaving.at(at) + command.sectors as u64 <= self.capacity
    }

    /// Records that `sectors` sectors, which were taken out, are written back from `from` to `until`. Their room
    /// becomes free in proportion to time. An earlier record is replaced.
    pub fn leave(&mut self, sectors: Sectors, from: SimTime, until: SimTime) {
        self.leaving = Leaving { sectors: sectors.0, from, until };
    }

    /// Returns whether at least three quarters of the capacity are dirty, so that the cache should write back although
    /// requests keep coming. The last quarter takes new writes meanwhile. False if nothing is dirty.
    pub fn is_filling(&self) -> bool {
        self.used > 0 && self.used * 4 >= self.capacity * 3
    }

    /// Returns whether every sector of `command` is dirty and all lie in one range, so that a read can be served from
    /// the cache. Adjacent ranges do not count as one.
    pub fn holds(&self, command: &Command) -> bool {
        let before = self.order.before(self.order.find(command.lba.0 + 1));
        before.is_some_and(|cursor| self.range(cursor).end >= command.end().0)
    }

    /// Marks the sectors of a write as dirty. The write has the number `sequence` in the workload. It is joined with
    /// ranges that it overlaps, and with adjacent ones if the result has at most 4096 sectors; a joined range keeps the
    /// lowest number.
    ///
    /// # Panics
    ///
    /// Panics if the dirty sectors and those of the write exceed the capacity.
    pub fn insert(&mut self, command: &Command, sequence: u64) {
        let fits = self.used + command.sectors as u64 <= self.capacity;
        assert!(fits, "a write of {} sectors into a cache without room", command.sectors);
        let mut whole = Dirty { start: command.lba.0, end: command.end().0, sequence };
        let mut cursor = self.order.find(whole.start);
        let mut joined = Joined::default();
        if let Some(before) = self.order.before(cursor).filter(|&before| self.range(before).end > whole.start) {
            cursor = before;
        }
        while let Some(entry) = self.order.at(cursor).filter(|entry| entry.start < whole.end) {
            cursor = self.join(cursor, entry.slot, &mut whole, &mut joined);
        }
        if let Some(before) = self.order.before(cursor) {
            let dirty = self.range(before);
            if dirty.end == whole.start && whole.end - dirty.start <= RANGE_SECTORS_MAX {
                cursor = self.join(before, self.slot(before), &mut whole, &mut joined);
            }
        }
        if let Some(entry) = self.order.at(cursor).filter(|entry| entry.start == whole.end)
            && self.ages.get(entry.slot).end - whole.start <= RANGE_SECTORS_MAX
        {
            cursor = self.join(cursor, entry.slot, &mut whole, &mut joined);
        }
        self.used += whole.end - whole.start - joined.sectors;
        let slot = match joined.oldest {
            Some(slot) => {
                self.ages.set(slot, whole);
                slot
            }
            None => self.ages.add(whole),
        };
        self.order.insert(cursor, Entry { start: whole.start, slot });
    }

    /// Merges the range at `cursor` into `whole` and removes it. Keeps the slot of the oldest range merged so far, and
    /// frees the others. Returns the position of the next range.
    fn join(&mut self, cursor: Cursor, slot: u32, whole: &mut Dirty, joined: &mut Joined) -> Cursor {
        let dirty = self.ages.get(slot);
        joined.sectors += dirty.end - dirty.start;
        let given_up = match joined.oldest {
            None => joined.oldest.replace(slot),
            Some(oldest) if self.ages.get(oldest).sequence <= dirty.sequence => Some(slot),
            Some(_) => joined.oldest.replace(slot),
        };
        if let Some(slot) = given_up {
            self.ages.remove(slot);
        }
        whole.start = whole.start.min(dirty.start);
        whole.end = whole.end.max(dirty.end);
        whole.sequence = whole.sequence.min(dirty.sequence);
        self.order.remove(cursor)
    }

    fn slot(&self, cursor: Cursor) -> u32 {
        self.order.at(cursor).expect("a cursor at a range").slot
    }

    fn range(&self, cursor: Cursor) -> Dirty {
        self.ages.get(self.slot(cursor))
    }

    /// Returns whether a dirty range has a write with a lower number than `sequence`. Writes are numbered in the order
    /// of the workload.
    pub fn has_older_than(&self, sequence: u64) -> bool {
        self.ages.oldest().is_some_and(|oldest| oldest.sequence < sequence)
    }

    /// Removes the range with the oldest write. If writes stay in order, removes the first range of its run instead; on
    /// a caveat disk, the first of a chain of ranges, each of which may destroy the next. Returns the write that puts
    /// the range on the medium, and the gap that the range leaves. Returns `None` if the cache is empty.
    pub fn take_oldest(&mut self) -> Option<(Command, Gap)> {
        let oldest = self.ages.oldest()?;
        Some(self.take(self.led_by(self.order.find(oldest.start))))
    }

    /// Removes the next range in order of address after the range removed last, and begins again at the lowest address
    /// after the highest. If writes stay in order, removes the first range of its run instead. On a caveat disk,
    /// removes instead the first of a chain of ranges, each of which may destroy the next. Returns the write that puts
    /// the range on the medium, and the gap that it leaves, for [`WriteCache::take_after`] and
    /// [`WriteCache::take_before`]. Returns `None` if the cache is empty.
    pub fn take_next(&mut self) -> Option<(Command, Gap)> {
        let ahead = self.order.find_near(self.sweep, self.near_sweep);
        let next = if self.order.at(ahead).is_some() { ahead } else { self.order.find(0) };
        self.order.at(next)?;
        Some(self.take(self.led_by(next)))
    }

    /// Returns the range that must be destaged first, before the range at `cursor`, or `cursor` itself. If writes stay
    /// in order, that is the first range of its run, because ranges earlier in a run were written earlier. On a caveat
    /// disk, it is the first of a chain of ranges each of which may destroy the next one.
    fn led_by(&self, mut cursor: Cursor) -> Cursor {
        while let Some(before) = self.order.before(cursor) {
            let (last, next) = (Lba(self.range(before).end - 1), Lba(self.range(cursor).start));
            let is_first = match (&self.caveat, &self.ordered) {
                (Some(caveat), _) => caveat.before(next).contains(&last),
                (None, Some(ordered)) => ordered.share(last, next),
                (None, None) => false,
            };
            if !is_first {
                break;
            }
            cursor = before;
        }
        cursor
    }

    /// Returns the last range that contains some of `sectors`.
    fn last_within(&self, sectors: &Range<Lba>) -> Option<Cursor> {
        let before = self.order.before(self.order.find(sectors.end.0));
        before.filter(|&last| self.range(last).end > sectors.start.0)
    }

    /// Returns whether any of `sectors` (exclusive end) is dirty.
    pub fn holds_some_of(&self, sectors: &Range<Lba>) -> bool {
        self.last_within(sectors).is_some()
    }

    /// Removes the last range, by address, that contains any of `sectors` (exclusive end). If writes stay in order,
    /// removes the first range of its run instead; on a caveat disk, the first of a chain of ranges, each of which may
    /// destroy the next. Returns the write that puts the range on the medium, and the gap that the range leaves.
    /// Returns `None` if none of `sectors` is dirty.
    pub fn take_within(&mut self, sectors: &Range<Lba>) -> Option<(Command, Gap)> {
        let last = self.last_within(sectors)?;
        Some(self.take(self.led_by(last)))
    }

    /// Returns the dirty ranges in order of address, each as a write command for its sectors. Empty if nothing is
    /// dirty.
    pub fn ranges(&self) -> Vec<Command> {
        let mut ranges = Vec::new();
        let mut cursor = self.order.find(0);
        while let Some(entry) = self.order.at(cursor) {
            ranges.push(as_write(self.ages.get(entry.slot)));
            cursor = self.order.find(entry.start + 1);
        }
        ranges
    }

    /// Removes and returns the first dirty range after `gap` in order of address, as a write, if `joins` returns true
    /// for it; `gap`, the position of ranges removed before, then covers it too. Returns `None` and removes nothing if
    /// there is no such range or `joins` returns false.
    pub fn take_after(&mut self, gap: &mut Gap, joins: impl Fn(&Command) -> bool) -> Option<Command> {
        self.order.at(gap.0)?;
        self.take_if(gap.0, gap, joins)
    }

    /// Removes and returns the last dirty range before `gap` in order of address, as a write, if `joins` returns true
    /// for it; `gap`, the position of ranges removed before, then covers it too. Returns `None` and removes nothing if
    /// there is no such range or `joins` returns false.
    pub fn take_before(&mut self, gap: &mut Gap, joins: impl Fn(&Command) -> bool) -> Option<Command> {
        let before = self.order.before(gap.0)?;
        self.take_if(before, gap, joins)
    }

    fn take_if(&mut self, cursor: Cursor, gap: &mut Gap, joins: impl Fn(&Command) -> bool) -> Option<Command> {
        if !joins(&as_write(self.range(cursor))) {
            return None;
        }
        let (command, left) = self.take(cursor);
        *gap = left;
        Some(command)
    }

    /// Returns the number of the oldest write in the range that was removed last to be written back. 0 if it contains
    /// sectors that were put back earlier, or if no range was removed yet.
    pub fn taken_sequence(&self) -> u64 {
        self.taken_sequence
    }

    fn take(&mut self, cursor: Cursor) -> (Command, Gap) {
        let (dirty, next) = self.forget(cursor);
        (self.sweep, self.near_sweep, self.taken_sequence) = (dirty.end, next, dirty.sequence);
        (as_write(dirty), Gap(next))
    }

    /// Takes out the range at `cursor`. Returns the range and the position of the next one.
    fn forget(&mut self, cursor: Cursor) -> (Dirty, Cursor) {
        let slot = self.slot(cursor);
        let dirty = self.ages.get(slot);
        self.used -= dirty.end - dirty.start;
        self.ages.remove(slot);
        (dirty, self.order.remove(cursor))
    }

    /// Drops the dirty sectors of `command` without writing them, because they are trimmed or written past the cache.
    /// Other sectors of the same ranges stay dirty.
    pub fn discard(&mut self, command: &Command) {
        let (start, end) = (command.lba.0, command.end().0);
        loop {
            let Some(last) = self.last_within(&(command.lba..command.end())) else { return };
            let (dirty, _) = self.forget(last);
            self.keep(Dirty { end: start, ..dirty });
            self.keep(Dirty { start: end, ..dirty });
        }
    }

    /// Adds the rest of a range, unless it is empty.
    fn keep(&mut self, dirty: Dirty) {
        if dirty.start < dirty.end {
            self.used += dirty.end - dirty.start;
            let slot = self.ages.add(dirty);
            self.order.insert(self.order.find(dirty.start), Entry { start: dirty.start, slot });
        }
    }
}

/// Position in the volatile write cache at which dirty ranges were removed: between the dirty range before and the one
/// after, in order of address. Valid until the cache is changed otherwise than through this gap.
#[derive(Clone, Copy, Debug)]
pub struct Gap(Cursor);

/// Ranges that an insert has joined so far.
#[derive(Default)]
struct Joined {
    /// Slot of the oldest; the others are freed.
    oldest: Option<u32>,
    sectors: u64,
}

fn as_write(dirty: Dirty) -> Command {
    Command::write(dirty.start, (dirty.end - dirty.start) as u32)
}

#[cfg(test)]
mod twin;

#[cfg(test)]
mod tests {
    //! Goal: the cache's dirty set equals a naive set of sectors. Method: random inserts, destages and discards on
    //! both.

    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    fn oldest(cache: &mut WriteCache) -> Option<Command> {
        cache.take_oldest().map(|(command, _)| command)
    }

    fn ranges(cache: &WriteCache) -> Vec<Dirty> {
        let mut cursor = cache.order.find(0);
        let mut ranges = Vec::new();
        while let Some(entry) = cache.order.at(cursor) {
            ranges.push(cache.ages.get(entry.slot));
            assert_eq!(entry.start, cache.ages.get(entry.slot).start);
            cursor = cache.order.find(entry.start + 1);
        }
        ranges
    }

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
                    1 => if let Some((taken, mut gap)) = cache.take_oldest() {
                        let after = cache.take_after(&mut gap, |next| next.lba == taken.end());
                        let before = cache.take_before(&mut gap, |previous| previous.end() == taken.lba);
                        for command in after.iter().chain(&before) {
                            for sector in command.lba.0..command.end().0 { prop_assert!(naive.remove(&sector)); }
                        }
                        for sector in taken.lba.0..taken.end().0 { prop_assert!(naive.remove(&sector)); }
                    },
                    2 => if let Some((taken, _)) = cache.take_next() {
                        for sector in taken.lba.0..taken.end().0 { prop_assert!(naive.remove(&sector)); }
                    },
                    _ => if cache.has_room(&command, SimTime::ZERO) { cache.insert(&command, number as u64 * 100); naive.extend(range); }
                }
                prop_assert_eq!(cache.used(), Sectors(naive.len() as u64));
                let ranges = ranges(&cache);
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "{:?}", ranges);
                let oldest = ranges.iter().map(|dirty| dirty.sequence).min();
                prop_assert_eq!(cache.ages.oldest().map(|dirty| dirty.sequence), oldest);
                let probe = Command::read(lba, sectors);
                let dirty = (lba..lba + sectors as u64).all(|sector| naive.contains(&sector));
                // Adjacent ranges may stay separate, so the cache may miss a read whose sectors are all dirty.
                prop_assert!(!cache.holds(&probe) || dirty);
            }
        }
    }

    /// Checks that a write that ends where a range begins that is too long to join still joins the ranges it overlaps
    /// (invariant 1).
    #[test]
    fn a_write_before_a_long_range_joins_what_it_overlaps() {
        let mut cache = WriteCache::new(Sectors(10_000));
        cache.insert(&Command::write(100, RANGE_SECTORS_MAX as u32), 1);
        cache.insert(&Command::write(90, 8), 2);
        cache.insert(&Command::write(90, 10), 3);
        assert_eq!(cache.used(), Sectors(10 + RANGE_SECTORS_MAX));
        assert_eq!(oldest(&mut cache), Some(Command::write(100, RANGE_SECTORS_MAX as u32)));
        assert_eq!(oldest(&mut cache), Some(Command::write(90, 10)));
        assert_eq!(oldest(&mut cache), None);
    }

    /// Checks that in a run of sectors that is written in order, the oldest range is destaged first (invariant 4).
    /// Method: two ranges of a run, too long to be joined, with the sweep between them.
    #[test]
    fn a_run_is_destaged_from_its_start() {
        let long = RANGE_SECTORS_MAX as u32;
        let (first, second) = (Command::write(100, long), Command::write(100 + u64::from(long), 10));
        let between = || {
            let mut cache = WriteCache::new(Sectors(10_000));
            cache.keep_order_in(Ordered { from: Lba(0), run: Sectors(50_000) });
            cache.insert(&Command::write(140, 10), 1);
            cache.take_next();
            cache.insert(&first, 2);
            cache.insert(&second, 3);
            cache
        };
        let taken = |taken: Option<(Command, Gap)>| taken.map(|(command, _)| command);
        let mut cache = between();
        assert_eq!([taken(cache.take_next()), taken(cache.take_next())], [Some(first), Some(second)]);
        let (mut cache, end) = (between(), second.lba..second.end());
        assert_eq!([taken(cache.take_within(&end)), taken(cache.take_within(&end))], [Some(first), Some(second)]);
        assert!(!cache.holds_some_of(&(Lba(0)..Lba(50_000))) && cache.ranges().is_empty());
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
        assert_eq!(oldest(&mut cache), Some(Command::write(8, 16)));
        assert_eq!(oldest(&mut cache), Some(Command::write(50, 8)));
    }
}
