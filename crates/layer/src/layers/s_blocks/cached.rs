//! Which sectors of one S-block lie in the cache buffer, or are trimmed: a short sorted list of runs, overlaid on the
//! S-block's own copy.
//!
//! A list for each S-block, rather than one tree for the drive: a destage wants just these, and the policies want their
//! count. Most S-blocks have a few runs at most, which lie in the list itself: a write then finds all that it asks of
//! an S-block in one line of memory.
//!
//! Invariants:
//! 1. Runs are disjoint, non-empty and ordered by offset; a later write hides what it covers.

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

    /// The part within `from..to`, which it meets.
    pub fn clipped(&self, from: u32, to: u32) -> CachedRun {
        let offset = self.offset.max(from);
        let position = if self.is_absent() { self.position } else { self.position.plus((offset - self.offset) as u64) };
        CachedRun { offset, sectors: self.end().min(to) - offset, position }
    }

    fn cached_sectors(&self) -> u32 {
        if self.is_absent() { 0 } else { self.sectors }
    }
}

/// Runs that lie in the list itself.
const FEW: usize = 3;

/// What stands in places of the list that hold no run.
const NO_RUN: CachedRun = CachedRun { offset: 0, sectors: 0, position: Position::NOWHERE };

/// The runs of one S-block.
#[derive(Clone, Debug)]
pub(super) enum CachedRuns {
    /// In the list itself: the first `len` of these.
    Few { len: u8, runs: [CachedRun; FEW] },
    /// In memory of their own, until none is left.
    Many(Vec<CachedRun>),
}

impl Default for CachedRuns {
    fn default() -> CachedRuns {
        CachedRuns::NONE
    }
}

impl CachedRuns {
    /// No runs.
    pub const NONE: CachedRuns = CachedRuns::Few { len: 0, runs: [NO_RUN; FEW] };

    /// Sectors of it in the cache; absent runs take no cache space.
    pub fn sectors(&self) -> u32 {
        self.runs().iter().map(CachedRun::cached_sectors).sum()
    }

    /// All runs, in order.
    pub fn runs(&self) -> &[CachedRun] {
        match self {
            CachedRuns::Few { len, runs } => &runs[..*len as usize],
            CachedRuns::Many(runs) => runs,
        }
    }

    /// Bytes that it takes beside itself.
    pub fn measured_bytes(&self) -> usize {
        match self {
            CachedRuns::Few { .. } => 0,
            CachedRuns::Many(runs) => runs.capacity() * size_of::<CachedRun>(),
        }
    }

    /// The parts of the runs within `from..to`, in order.
    pub fn within(&self, from: u32, to: u32) -> impl Iterator<Item = CachedRun> + '_ {
        let reaching = &self.runs()[self.first_reaching(from)..];
        reaching.iter().take_while(move |run| run.offset < to).map(move |run| run.clipped(from, to))
    }

    /// Puts `run` over what was there; returns how many cached sectors that hides.
    pub fn overlay(&mut self, run: CachedRun) -> u32 {
        let first = self.first_reaching(run.offset);
        match self.runs().get(first) {
            Some(next) if next.offset < run.end() => self.replace(first, run.offset, run.end(), Some(run)),
            _ => {
                self.splice(first, 0, &[run]);
                0
            }
        }
    }

    /// Forgets what lies in `from..to`; returns how many cached sectors that were.
    pub fn remove(&mut self, from: u32, to: u32) -> u32 {
        let first = self.first_reaching(from);
        let removed = self.replace(first, from, to, None);
        if self.runs().is_empty() {
            *self = CachedRuns::default();
        }
        removed
    }

    fn first_reaching(&self, offset: u32) -> usize {
        self.runs().partition_point(|run| run.end() <= offset)
    }

    /// Replaces what lies in `from..to`, the first of it being run number `first`; returns the cached sectors hidden.
    fn replace(&mut self, first: usize, from: u32, to: u32, with: Option<CachedRun>) -> u32 {
        let runs = self.runs();
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
        self.splice(first, met, &kept[..count]);
        hidden
    }

    /// Puts `parts` in the place of `met` runs from number `first` on.
    fn splice(&mut self, first: usize, met: usize, parts: &[CachedRun]) {
        match self {
            CachedRuns::Few { len, runs } if *len as usize - met + parts.len() <= FEW => {
                runs.copy_within(first + met..*len as usize, first + parts.len());
                runs[first..first + parts.len()].copy_from_slice(parts);
                *len = (*len as usize - met + parts.len()) as u8;
            }
            CachedRuns::Few { .. } => {
                let runs = self.runs();
                let mut many = Vec::with_capacity(2 * FEW);
                many.extend_from_slice(&runs[..first]);
                many.extend_from_slice(parts);
                many.extend_from_slice(&runs[first + met..]);
                *self = CachedRuns::Many(many);
            }
            CachedRuns::Many(runs) => {
                runs.splice(first..first + met, parts.iter().copied());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the list equals a naive one, sector by sector. Method: random overlays, trims and removals on both.

    use proptest::prelude::*;

    use super::*;

    const SECTORS: usize = 48;

    proptest! {
        #[test]
        fn equals_a_naive_list(steps in prop::collection::vec((0u32..46, 1u32..12, 0u8..4), 1..60)) {
            let mut cached = CachedRuns::default();
            let mut naive: [Option<Position>; SECTORS] = [None; SECTORS];
            for (number, (offset, length, what)) in steps.into_iter().enumerate() {
                let sectors = length.min(SECTORS as u32 - offset);
                let range = offset as usize..(offset + sectors) as usize;
                let in_cache = |slot: &&Option<Position>| slot.is_some_and(|at| at != Position::NOWHERE);
                let expected = naive[range.clone()].iter().filter(in_cache).count() as u32;
                let position = if what == 1 { Position::NOWHERE } else { Position(number as u64 * 100) };
                let hidden = match what {
                    0 => cached.remove(offset, offset + sectors),
                    _ => cached.overlay(CachedRun { offset, sectors, position }),
                };
                prop_assert_eq!(hidden, expected);
                for (i, slot) in naive[range].iter_mut().enumerate() {
                    let place = if what == 1 { position } else { Position(position.0.wrapping_add(i as u64)) };
                    *slot = (what != 0).then_some(place);
                }
                let mut seen = [None; SECTORS];
                let mut end = 0;
                for run in cached.runs() {
                    prop_assert!(run.offset >= end && run.sectors > 0);
                    end = run.end();
                    for i in 0..run.sectors {
                        let sector = run.clipped(run.offset + i, run.offset + i + 1);
                        seen[sector.offset as usize] = Some(sector.position);
                    }
                }
                prop_assert_eq!(seen, naive);
                prop_assert_eq!(cached.sectors(), naive.iter().filter(in_cache).count() as u32);
                let part: u32 = cached.within(7, 31).map(|run| run.sectors).sum();
                prop_assert_eq!(part, naive[7..31].iter().flatten().count() as u32);
            }
        }
    }
}
