//! Inode numbers: which numbers are free, and the generation of the next file with each number.
//!
//! A file handle names a file by its inode number and generation, and programs keep handles for longer than a mount. So
//! no two files ever have equal pairs of number and generation. If a number is used again, its new file gets a later
//! generation than its last one. Of files that were removed before this mount nothing is known, except a *ceiling*
//! above all their generations. The ceiling is part of the log and of every checkpoint, and becomes durable before a
//! generation below it is given.
//!
//! Invariants:
//! 1. Every generation that was ever given is below [`Numbers::ceiling`].
//! 2. The generation of a new file is at least the ceiling found at mount ([`Numbers::begin`]). It is also later than
//!    the generations of all files with that number since the mount.
//! 3. A number that was freed since the mount is given again only after [`FREE_MIN`] other numbers were freed. So a
//!    busy number does not use up its generations: with 2³² generations each, the numbers last for 2⁴² files.
//! 4. No generation is 0, because 0 stands for any generation in the kernel.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::error::FsError;
use crate::format::change::Inode;

/// Numbers that must be free before one of them is used again.
pub(super) const FREE_MIN: usize = 1024;
/// Ceiling of a store that recorded none. Until format 8 a generation was a count of seconds since 1970 and of files,
/// which stays below this value until 2038.
const CEILING_UNRECORDED: u64 = 1 << 31;

/// A free number.
#[derive(Clone, Copy, Debug)]
struct Free {
    /// Position in the order in which numbers were freed.
    turn: u64,
    /// First generation that the next file with this number may have.
    generation: u64,
}

/// Free inode numbers, and the bounds of generations.
#[derive(Default, Debug)]
pub(super) struct Numbers {
    free: BTreeMap<Inode, Free>,
    /// Free numbers in the order in which they were freed.
    by_turn: BTreeMap<u64, Inode>,
    next_turn: u64,
    recorded: Option<u64>,
    /// Latest generation of any file seen.
    latest: u64,
    /// First generation that a new file may have.
    floor: u64,
    /// Range of numbers in which free ones are searched; the end is exclusive. The end was behind all numbers in use at
    /// mount. Numbers below the start are in use, or were freed since.
    unused: Cell<(Inode, Inode)>,
}

impl Numbers {
    /// Returns a generation above all that were ever given.
    pub(super) fn ceiling(&self) -> u64 {
        self.recorded.unwrap_or(CEILING_UNRECORDED).max(self.latest + 1)
    }

    /// Returns the recorded ceiling, if there is one.
    pub(super) fn recorded(&self) -> Option<u64> {
        self.recorded
    }

    /// Raises the recorded ceiling to `below`.
    pub(super) fn put_ceiling(&mut self, below: u64) {
        self.recorded = Some(self.recorded.unwrap_or(0).max(below));
    }

    /// Begins to give generations, above all that were given before. Numbers below `end` may be in use.
    pub(super) fn begin(&mut self, end: Inode) {
        self.floor = self.ceiling();
        self.free.clear();
        self.by_turn.clear();
        self.unused.set((1, end));
    }

    /// Returns the first number without a file since the mount for which `is_used` returns false.
    fn next_unused(&self, is_used: impl Fn(Inode) -> bool) -> Option<Inode> {
        let (first, end) = self.unused.get();
        let found = (first..end).find(|inode| !is_used(*inode) && !self.free.contains_key(inode));
        self.unused.set((found.unwrap_or(end), end));
        found
    }

    /// Returns the number and the generation of the next file. `end` is a number that no file has; numbers from `end`
    /// on are not searched.
    pub(super) fn next(&self, end: Inode, is_used: impl Fn(Inode) -> bool) -> Result<(Inode, u32), FsError> {
        let unused = self.next_unused(is_used).map(|inode| (inode, 0));
        let reused = self.by_turn.first_key_value().map(|(_, inode)| (*inode, self.free[inode].generation));
        let can_grow = end < Inode::MAX;
        let (inode, generation) = match (unused, reused) {
            (Some(unused), _) => unused,
            (None, Some(reused)) if self.free.len() > FREE_MIN || !can_grow => reused,
            // `next_unused` does not search from `end` on, so a freed number may be there.
            _ if can_grow => (end, self.free.get(&end).map_or(0, |free| free.generation)),
            _ => return Err(FsError::NoMetadataSpace),
        };
        let generation = u32::try_from(generation.max(self.floor).max(1)).map_err(|_| FsError::NoMetadataSpace)?;
        Ok((inode, generation))
    }

    /// Notes that number `inode` is in use, by a file of this generation.
    pub(super) fn take(&mut self, inode: Inode, generation: u32) {
        self.latest = self.latest.max(u64::from(generation));
        if let Some(free) = self.free.remove(&inode) {
            self.by_turn.remove(&free.turn);
        }
    }

    /// Notes that number `inode` is free. Its last file had generation `last`. A number without generations left stays
    /// unused.
    pub(super) fn release(&mut self, inode: Inode, last: u32) {
        let generation = u64::from(last) + 1;
        if generation > u64::from(u32::MAX) {
            return;
        }
        let turn = self.next_turn;
        self.next_turn += 1;
        self.free.insert(inode, Free { turn, generation });
        self.by_turn.insert(turn, inode);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::load::random::Choices;

    /// Collects all pairs that were given, and checks that none is given again.
    #[test]
    fn no_pair_is_given_twice_across_mounts() {
        let mut random = Choices::new(41);
        let (mut given, mut live) = (BTreeSet::new(), BTreeSet::new());
        let (mut ceiling, mut end): (u64, Inode) = (1, 2);
        for _mount in 0..40 {
            let mut numbers = Numbers::default();
            numbers.put_ceiling(ceiling);
            live.iter().for_each(|(inode, generation)| numbers.take(*inode, *generation));
            numbers.begin(end);
            for _step in 0..3 * FREE_MIN {
                if random.below(2) == 0 && !live.is_empty() {
                    let at = random.below(live.len() as u64) as usize;
                    let (inode, generation) = *live.iter().nth(at).expect("it is below the length");
                    live.remove(&(inode, generation));
                    numbers.release(inode, generation);
                    continue;
                }
                let used: BTreeSet<Inode> = live.iter().map(|(inode, _)| *inode).collect();
                let (inode, generation) =
                    numbers.next(end, |inode| inode < 2 || used.contains(&inode)).expect("there are numbers");
                assert!(generation > 0 && given.insert((inode, generation)), "{inode}, {generation} is given again");
                end = end.max(inode + 1);
                numbers.take(inode, generation);
                live.insert((inode, generation));
                numbers.put_ceiling(u64::from(generation) + 1);
            }
            ceiling = numbers.ceiling();
        }
        assert!(end < 10 * FREE_MIN as Inode, "numbers are used again: {end}");
    }

    #[test]
    fn a_number_without_generations_left_is_not_given() {
        let mut numbers = Numbers::default();
        numbers.put_ceiling(u64::from(u32::MAX));
        let is_used = |_| true;
        numbers.begin(1);
        assert_eq!(numbers.next(Inode::MAX - 1, is_used), Ok((Inode::MAX - 1, u32::MAX)));
        numbers.take(Inode::MAX - 1, u32::MAX);
        numbers.release(Inode::MAX - 1, u32::MAX);
        assert_eq!(numbers.next(Inode::MAX, is_used), Err(FsError::NoMetadataSpace), "no number is left");
        numbers.begin(7);
        assert_eq!(numbers.next(7, is_used), Err(FsError::NoMetadataSpace), "no generation is left");
    }

    #[test]
    fn a_freed_number_far_from_the_others_gets_a_later_generation() {
        let mut numbers = Numbers::default();
        numbers.put_ceiling(50);
        numbers.begin(7);
        numbers.take(7, 60);
        numbers.release(7, 60);
        assert_eq!(numbers.next(7, |_| true), Ok((7, 61)));
    }

    #[test]
    fn generations_of_stores_without_a_ceiling_came_from_the_clock() {
        let mut numbers = Numbers::default();
        numbers.take(5, 1_790_000_000);
        assert_eq!(numbers.ceiling(), 1 << 31);
        numbers.take(6, u32::MAX - 5);
        assert_eq!(numbers.ceiling(), u64::from(u32::MAX) - 4, "a file of a clock that went ahead");
    }
}
