//! Heat of files: how many seeks their reads cost a disk recently, with decay.
//!
//! A read counts unless it continues where the read before it ended, because sequential reads cost a disk only one
//! seek. Heat halves at the end of each half-life and not gradually, so that integers suffice.
//!
//! Invariants:
//! 1. The heat of at most `files_max` files is kept. When one more file is added, the colder half is dropped.

use std::collections::BTreeMap;

use crate::format::change::Inode;

/// Heat that one counted read adds to a file, 2²⁰, before it decays with time.
pub const ACCESS: u64 = 1 << 20;
/// Heat that one counted read adds to a file, 256, in the coarser units that a checkpoint stores.
pub const ACCESS_UNITS: u32 = 256;
const UNIT: u64 = ACCESS / ACCESS_UNITS as u64;

#[derive(Clone, Copy)]
struct Warmth {
    heat: u64,
    /// Number of half-lives since time 0 at which `heat` was computed.
    at: u64,
    /// Block behind the last one that was read.
    next: u64,
}

/// Table of the heat of files: counts of their reads that cost a disk a seek, halved with each half-life.
pub struct Heat {
    files_max: usize,
    half_ns: u64,
    files: BTreeMap<Inode, Warmth>,
}

impl Heat {
    /// Returns an empty table for at most `files_max` files, whose heat halves every `half_ns` nanoseconds. For both, 0
    /// counts as 1.
    pub fn new(files_max: usize, half_ns: u64) -> Heat {
        Heat { files_max: files_max.max(1), half_ns: half_ns.max(1), files: BTreeMap::new() }
    }

    fn decayed(warmth: &Warmth, now: u64) -> u64 {
        let halvings = now.saturating_sub(warmth.at).min(63);
        warmth.heat >> halvings
    }

    /// Returns the heat of a file at time `now_ns`: [`ACCESS`] for each counted read, halved for each half-life that
    /// has ended since; 0 for an unknown file. Half-lives begin at multiples of their length, counted from time 0.
    pub fn of(&self, inode: Inode, now_ns: u64) -> u64 {
        self.files.get(&inode).map_or(0, |warmth| Heat::decayed(warmth, now_ns / self.half_ns))
    }

    /// Counts a read of the blocks `first` up to, and without, `end` of a file at time `now_ns`. The read adds
    /// [`ACCESS`], unless it begins where the last read of the file ended and not with block 0. If the table exceeds
    /// its maximum, the colder half of the files is removed.
    pub fn touch(&mut self, inode: Inode, (first, end): (u64, u64), now_ns: u64) {
        let now = now_ns / self.half_ns;
        let before = self.files.get(&inode);
        let goes_on = before.is_some_and(|warmth| warmth.next == first && first > 0);
        let heat = before.map_or(0, |warmth| Heat::decayed(warmth, now)) + if goes_on { 0 } else { ACCESS };
        self.files.insert(inode, Warmth { heat, at: now, next: end });
        if self.files.len() > self.files_max {
            self.forget_the_colder(now);
        }
    }

    /// Returns up to `count` of the hottest files at time `now_ns` with their heat, the hottest first, and equal ones
    /// by inode number. A counted read adds 256 units ([`ACCESS_UNITS`]), which decay with time. Files whose heat is
    /// less than one unit are left out.
    pub fn hottest(&self, count: usize, now_ns: u64) -> Vec<(Inode, u32)> {
        let now = now_ns / self.half_ns;
        let units = |warmth: &Warmth| u32::try_from(Heat::decayed(warmth, now) / UNIT).unwrap_or(u32::MAX);
        let mut files: Vec<(Inode, u32)> = self.files.iter().map(|(inode, warmth)| (*inode, units(warmth))).collect();
        files.retain(|(_, heat)| *heat > 0);
        files.sort_unstable_by_key(|(inode, heat)| (std::cmp::Reverse(*heat), *inode));
        files.truncate(count);
        files
    }

    /// Sets the heat of a file at time `now_ns` to `units`, a value of [`Heat::hottest`] that a checkpoint stored: 256
    /// for each counted read. Does nothing if the table is full.
    pub fn warm(&mut self, inode: Inode, units: u32, now_ns: u64) {
        if self.files.len() < self.files_max {
            let (heat, at) = (u64::from(units) * UNIT, now_ns / self.half_ns);
            self.files.insert(inode, Warmth { heat, at, next: 0 });
        }
    }

    /// Removes a file from the table.
    pub fn forget(&mut self, inode: Inode) {
        self.files.remove(&inode);
    }

    fn forget_the_colder(&mut self, now: u64) {
        let mut by_heat: Vec<(u64, Inode)> =
            self.files.iter().map(|(inode, warmth)| (Heat::decayed(warmth, now), *inode)).collect();
        by_heat.sort_unstable();
        let kept = self.files_max.div_ceil(2);
        for (_, inode) in &by_heat[..by_heat.len() - kept] {
            self.files.remove(inode);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_halves_and_reads_in_order_count_once() {
        let mut heat = Heat::new(9, 100);
        heat.touch(1, (0, 8), 0);
        heat.touch(1, (8, 16), 10);
        heat.touch(1, (16, 24), 20);
        assert_eq!(heat.of(1, 99), ACCESS, "one read in order, in three pieces");
        heat.touch(1, (3, 4), 99);
        assert_eq!((heat.of(1, 99), heat.of(1, 100), heat.of(1, 399)), (2 * ACCESS, ACCESS, ACCESS / 4));
        assert_eq!((heat.of(1, 100 * 90), heat.of(2, 0)), (0, 0));
        heat.touch(2, (0, 1), 0);
        heat.touch(2, (0, 1), 0);
        assert_eq!(heat.of(2, 0), 2 * ACCESS, "the beginning of a file is a seek each time");
    }

    #[test]
    fn what_is_kept_is_as_hot_afterwards() {
        let mut heat = Heat::new(9, 100);
        for inode in 1..=4 {
            (0..inode).for_each(|_| heat.touch(inode, (0, 1), 0));
        }
        let kept = heat.hottest(3, 100);
        assert_eq!(kept, [(4, 2 * ACCESS_UNITS), (3, 3 * ACCESS_UNITS / 2), (2, ACCESS_UNITS)], "it has halved");
        assert_eq!(heat.hottest(9, 100 * 70), [], "what is cold is not kept");
        let mut again = Heat::new(2, 100);
        kept.iter().for_each(|(inode, units)| again.warm(*inode, *units, 700));
        assert_eq!([4, 3, 2].map(|inode| again.of(inode, 700)), [2 * ACCESS, 3 * ACCESS / 2, 0], "two may be known");
    }

    #[test]
    fn the_colder_half_is_forgotten() {
        let mut heat = Heat::new(4, 100);
        for inode in 1..=4 {
            (0..inode).for_each(|_| heat.touch(inode, (0, 1), 0));
        }
        heat.touch(5, (0, 1), 0);
        let known: Vec<Inode> = (1..=5).filter(|inode| heat.of(*inode, 0) > 0).collect();
        assert_eq!(known, [3, 4]);
        let mut least = Heat::new(0, 0);
        least.touch(1, (0, 1), 0);
        least.touch(2, (0, 1), 0);
        assert_eq!(least.files.len(), 1);
    }
}
