//! Which sectors of one S-block lie in the cache buffer, or are trimmed: a short sorted list of runs, overlaid on the
//! S-block's own copy.
//!
//! A list for each S-block, rather than one tree for the drive: a destage wants just these, and the policies want their
//! count. Most S-blocks have one run at most, which lies in the list itself; the runs of the others lie in the [`Pool`].
//! A run takes 12 bytes: of its position the low 32 bits are kept, which with the tail of the buffer say it whole.
//!
//! Invariants:
//! 1. Runs are disjoint, non-empty and ordered by offset; a later write hides what it covers.
//! 2. A cache buffer with its guard is shorter than 2³² sectors.

use super::pool::Pool;
use super::ring::Position;

/// A run of sectors of an S-block whose newest contents are not in the S-block's own copy: they are cached, or trimmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CachedRun {
    /// First sector within the S-block.
    pub offset: u32,
    /// How many sectors.
    pub sectors: u32,
    /// Where in the section's cache buffer; [`Position::NOWHERE`] if trimmed.
    pub position: Position,
}

impl CachedRun {
    /// One past its last sector within the S-block.
    pub fn end(&self) -> u32 {
        self.offset + self.sectors
    }

    /// Whether it is trimmed rather than cached.
    pub fn is_absent(&self) -> bool {
        self.position == Position::NOWHERE
    }
}

/// Set in the length of a run that is trimmed.
const TRIMMED: u32 = 1 << 31;
/// Set in the length of what stands in a list whose runs lie in the pool.
const IN_POOL: u32 = 1 << 30;
/// One more than the most sectors that a run can have.
pub(super) const RUN_SECTORS_END: u32 = IN_POOL;

/// A run as it is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PackedRun {
    /// First sector within the S-block.
    pub offset: u32,
    /// How many sectors, and [`TRIMMED`].
    length: u32,
    /// The low bits of its position, unless trimmed.
    place: u32,
}

impl PackedRun {
    /// What stands where there is no run.
    pub const NONE: PackedRun = PackedRun { offset: 0, length: 0, place: 0 };

    /// No run: what a block of the pool begins with while it is free, with a number in the place of an offset.
    pub fn link(offset: u32) -> PackedRun {
        PackedRun { offset, ..PackedRun::NONE }
    }

    fn sectors(&self) -> u32 {
        self.length & !TRIMMED
    }

    fn end(&self) -> u32 {
        self.offset + self.sectors()
    }

    /// Absent runs take no cache space.
    fn cached_sectors(&self) -> u32 {
        if self.length & TRIMMED == 0 { self.length } else { 0 }
    }

    /// The part within `from..to`, which it meets.
    fn clipped(&self, from: u32, to: u32) -> PackedRun {
        let offset = self.offset.max(from);
        let length = (self.end().min(to) - offset) | (self.length & TRIMMED);
        PackedRun { offset, length, place: self.place.wrapping_add(offset - self.offset) }
    }

    /// The run, in a buffer whose tail is at `tail`.
    fn unpacked(&self, tail: Position) -> CachedRun {
        let position = match self.length & TRIMMED {
            0 => Position(tail.0.wrapping_add(u64::from(self.place.wrapping_sub(tail.0 as u32)))),
            _ => Position::NOWHERE,
        };
        CachedRun { offset: self.offset, sectors: self.sectors(), position }
    }
}

impl From<CachedRun> for PackedRun {
    fn from(run: CachedRun) -> PackedRun {
        assert!(run.sectors > 0 && run.sectors < RUN_SECTORS_END, "a run of {} sectors", run.sectors);
        let trimmed = if run.is_absent() { TRIMMED } else { 0 };
        PackedRun { offset: run.offset, length: run.sectors | trimmed, place: run.position.0 as u32 }
    }
}

/// The runs of an S-block, as they are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cached<'a> {
    runs: &'a [PackedRun],
    tail: Position,
}

impl<'a> Cached<'a> {
    /// The runs of `list`, in a buffer whose tail is at `tail`.
    pub fn of(list: &'a CachedRuns, pool: &'a Pool, tail: Position) -> Cached<'a> {
        Cached { runs: list.runs(pool), tail }
    }

    /// No runs.
    pub const NONE: Cached<'static> = Cached { runs: &[], tail: Position(0) };

    /// Whether there is no run.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Sectors of it in the cache; absent runs take no cache space.
    pub fn sectors(&self) -> u32 {
        self.runs.iter().map(PackedRun::cached_sectors).sum()
    }

    /// All runs, in order.
    pub fn runs(self) -> impl Iterator<Item = CachedRun> + 'a {
        self.runs.iter().map(move |run| run.unpacked(self.tail))
    }

    /// The first part of a run within `from..to` that lies where it would if `from` lay at `position`: its offset and sectors.
    pub fn first_at(self, from: u32, to: u32, position: Position) -> Option<(u32, u32)> {
        let start = (position.0 as u32).wrapping_sub(from);
        let mut met = self.runs[first_reaching(self.runs, from)..].iter().take_while(|run| run.offset < to);
        let run = met.find(|run| run.length & TRIMMED == 0 && run.place.wrapping_sub(run.offset) == start)?;
        let offset = run.offset.max(from);
        Some((offset, run.end().min(to) - offset))
    }

    /// The parts of the runs within `from..to`, in order.
    pub fn within(self, from: u32, to: u32) -> impl Iterator<Item = CachedRun> + 'a {
        let reaching = &self.runs[first_reaching(self.runs, from)..];
        let met = reaching.iter().take_while(move |run| run.offset < to);
        met.map(move |run| run.clipped(from, to).unpacked(self.tail))
    }
}

fn first_reaching(runs: &[PackedRun], offset: u32) -> usize {
    runs.partition_point(|run| run.end() <= offset)
}

/// The list of one S-block: no run, one, or where in the pool they lie. For the last, the offset stands for how many there
/// are, the length for the size of their block, the place for its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedRuns(PackedRun);

impl CachedRuns {
    /// No runs.
    pub const NONE: CachedRuns = CachedRuns(PackedRun::NONE);

    /// How many runs there are; the size and the number of their block, if they lie in the pool.
    fn in_pool(&self) -> Option<(usize, u32, u32)> {
        let CachedRuns(PackedRun { offset: len, length, place: block }) = *self;
        (length & (TRIMMED | IN_POOL) == IN_POOL).then_some((len as usize, length & !IN_POOL, block))
    }

    fn runs<'a>(&'a self, pool: &'a Pool) -> &'a [PackedRun] {
        match self.in_pool() {
            Some((len, size, block)) => &pool.block(size, block)[..len],
            None if self.0.length == 0 => &[],
            None => std::slice::from_ref(&self.0),
        }
    }

    fn runs_mut<'a>(&'a mut self, pool: &'a mut Pool) -> &'a mut [PackedRun] {
        match self.in_pool() {
            Some((len, size, block)) => &mut pool.block_mut(size, block)[..len],
            None => std::slice::from_mut(&mut self.0),
        }
    }

    /// Puts `run` over what was there; returns how many cached sectors that hides.
    pub fn overlay(&mut self, run: CachedRun, pool: &mut Pool) -> u32 {
        let runs = self.runs(pool);
        let first = first_reaching(runs, run.offset);
        match runs.get(first) {
            // A copy of what was there, or the same written anew.
            Some(&same) if same.offset == run.offset && same.sectors() == run.sectors => {
                self.runs_mut(pool)[first] = run.into();
                same.cached_sectors()
            }
            Some(next) if next.offset < run.end() => self.replace(first, run.offset, run.end(), Some(run.into()), pool),
            _ => {
                self.splice(first, 0, &[run.into()], pool);
                0
            }
        }
    }

    /// Forgets what lies in `from..to`; returns how many cached sectors that were.
    pub fn remove(&mut self, from: u32, to: u32, pool: &mut Pool) -> u32 {
        let first = first_reaching(self.runs(pool), from);
        self.replace(first, from, to, None, pool)
    }

    /// Forgets all.
    pub fn clear(&mut self, pool: &mut Pool) {
        if let Some((_, size, block)) = self.in_pool() {
            pool.free(size, block);
        }
        *self = CachedRuns::NONE;
    }

    /// Replaces what lies in `from..to`, the first of it being run number `first`; returns the cached sectors hidden.
    fn replace(&mut self, first: usize, from: u32, to: u32, with: Option<PackedRun>, pool: &mut Pool) -> u32 {
        let runs = self.runs(pool);
        let met = runs[first..].iter().take_while(|run| run.offset < to).count();
        let Some(oldest) = met.checked_sub(1) else {
            debug_assert!(with.is_none(), "a run that meets none is inserted, not replaced");
            return 0;
        };
        let last = first + oldest;
        let hidden = runs[first..=last].iter().map(|run| run.clipped(from, to).cached_sectors()).sum();
        let (left, right) = (runs[first], runs[last]);
        let mut kept = [left; 3];
        let mut count = 0;
        let parts = [
            (left.offset < from).then(|| left.clipped(0, from)),
            with,
            (right.end() > to).then(|| right.clipped(to, right.end())),
        ];
        for part in parts.into_iter().flatten() {
            kept[count] = part;
            count += 1;
        }
        self.splice(first, met, &kept[..count], pool);
        hidden
    }

    /// Puts `parts` in the place of `met` runs from number `first` on.
    fn splice(&mut self, first: usize, met: usize, parts: &[PackedRun], pool: &mut Pool) {
        let room = self.in_pool();
        let len = room.map_or(usize::from(self.0.length != 0), |(len, _, _)| len);
        let new_len = len - met + parts.len();
        match room {
            _ if new_len == 0 => self.clear(pool),
            Some((_, size, block)) if new_len <= Pool::runs_of(size) => {
                let runs = pool.block_mut(size, block);
                runs.copy_within(first + met..len, first + parts.len());
                runs[first..first + parts.len()].copy_from_slice(parts);
                self.0.offset = new_len as u32;
            }
            None if new_len == 1 => self.0 = *parts.first().unwrap_or(&self.0),
            _ => self.grow(first, met, parts, new_len, pool),
        }
    }

    /// The same where the list needs a larger block, or its first.
    fn grow(&mut self, first: usize, met: usize, parts: &[PackedRun], new_len: usize, pool: &mut Pool) {
        let size = Pool::size_for(new_len);
        let block = pool.take(size);
        let only = [self.0];
        let (runs, old) = match self.in_pool() {
            Some((len, old_size, old)) => {
                let (runs, old) = pool.two_blocks(size, block, old_size, old);
                (runs, &old[..len])
            }
            None => (pool.block_mut(size, block), &only[..usize::from(self.0.length != 0)]),
        };
        let behind = first + parts.len();
        runs[..first].copy_from_slice(&old[..first]);
        runs[first..behind].copy_from_slice(parts);
        runs[behind..new_len].copy_from_slice(&old[first + met..]);
        if let Some((_, size, block)) = self.in_pool() {
            pool.free(size, block);
        }
        self.0 = PackedRun { offset: new_len as u32, length: size | IN_POOL, place: block };
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the list equals a naive one, sector by sector, wherever in the buffer its runs lie. Method: random overlays, trims and
    //! removals on both, at positions below and above 2³²; what is left is taken away at last, and the pool has it back.

    use proptest::prelude::*;

    use super::*;

    const SECTORS: usize = 48;

    proptest! {
        #[test]
        fn equals_a_naive_list(
            tail in prop::sample::select(vec![0, (1 << 32) - 1500, 7 << 32, (1 << 40) - 1]),
            steps in prop::collection::vec((0u32..46, 1u32..12, 0u8..4), 1..60),
        ) {
            let (mut list, mut pool) = (CachedRuns::NONE, Pool::default());
            let mut naive: [Option<Position>; SECTORS] = [None; SECTORS];
            for (number, (offset, length, what)) in steps.into_iter().enumerate() {
                let sectors = length.min(SECTORS as u32 - offset);
                let range = offset as usize..(offset + sectors) as usize;
                let in_cache = |slot: &&Option<Position>| slot.is_some_and(|at| at != Position::NOWHERE);
                let expected = naive[range.clone()].iter().filter(in_cache).count() as u32;
                let position = if what == 1 { Position::NOWHERE } else { Position(tail + number as u64 * 100) };
                let hidden = match what {
                    0 => list.remove(offset, offset + sectors, &mut pool),
                    _ => list.overlay(CachedRun { offset, sectors, position }, &mut pool),
                };
                prop_assert_eq!(hidden, expected);
                for (i, slot) in naive[range].iter_mut().enumerate() {
                    let place = if what == 1 { position } else { Position(position.0.wrapping_add(i as u64)) };
                    *slot = (what != 0).then_some(place);
                }
                let cached = Cached::of(&list, &pool, Position(tail));
                let mut seen = [None; SECTORS];
                let mut end = 0;
                for run in cached.runs() {
                    prop_assert!(run.offset >= end && run.sectors > 0);
                    end = run.end();
                    for i in run.offset..run.end() {
                        seen[i as usize] = cached.within(i, i + 1).next().map(|part| part.position);
                    }
                }
                prop_assert_eq!(seen, naive);
                prop_assert_eq!(cached.sectors(), naive.iter().filter(in_cache).count() as u32);
                prop_assert_eq!(cached.is_empty(), naive.iter().all(Option::is_none));
                // Where sector 9 would lie beside each that is cached.
                let held = (0..SECTORS).filter_map(|i| Some((i, naive[i].filter(|&at| at != Position::NOWHERE)?)));
                for (i, at) in held {
                    let at = Position(at.0.wrapping_add(9).wrapping_sub(i as u64));
                    let in_cache = |i: usize| naive[i].filter(|&at| at != Position::NOWHERE);
                    let ours = |i: &usize| in_cache(*i) == Some(Position(at.0.wrapping_add(*i as u64).wrapping_sub(9)));
                    let first = (9..40).find(ours);
                    let expected = first.map(|first| (first as u32, (first..40).take_while(ours).count() as u32));
                    prop_assert_eq!(cached.first_at(9, 40, at), expected);
                }
                let part: u32 = cached.within(7, 31).map(|run| run.sectors).sum();
                prop_assert_eq!(part, naive[7..31].iter().flatten().count() as u32);
            }
            list.remove(0, SECTORS as u32, &mut pool);
            prop_assert!(Cached::of(&list, &pool, Position(tail)).is_empty());
            prop_assert_eq!(pool.blocks_in_use(), 0);
        }
    }
}
