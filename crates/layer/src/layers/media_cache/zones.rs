//! The cache that is overwritten in place (`placement=in-place`): cache zones on tracks that can be rewritten, where any
//! free place takes any write, and a sector stays where it is until it leaves the cache (the later drives, measured in
//! public).
//!
//! Free places are taken in the order of the medium, going round, so that writes from anywhere follow each other there.
//! Whose turn it is to leave goes round by zone, and within a zone by place.
//!
//! Invariants:
//! 1. A sector of a zone is free or holds a cached one, never both.
//! 2. Free runs are disjoint, lie within a zone, and those of one zone do not touch.

use std::collections::BTreeMap;

use imbrex_disk::{Extent, Lba, Pba, Sectors};

use crate::layer::Cache;
use crate::map::extent_map::{Mapped, MappedRun};
use crate::map::run_map::{Along, RunMap};
use crate::plan::Medium;

/// Free runs looked at for one that takes a write whole, before it is cut.
const SEARCHED_MAX: usize = 16;

/// The first sector of what lies at a place.
#[derive(Clone, Copy, Debug)]
struct Held(Lba);

impl Along for Held {
    fn along(self, offset: u64) -> Held {
        Held(self.0 + Sectors(offset))
    }
}

/// The zones of a cache that is overwritten in place, with what lies where in them.
#[derive(Debug)]
pub(super) struct CacheZones {
    zones: Vec<Extent>,
    /// The most sectors of an entry.
    pub(super) entry_sectors: u64,
    held: RunMap<Held>,
    /// End and first sector of free runs: a run that is used up from its beginning keeps its key.
    free: BTreeMap<u64, u64>,
    /// Where the search for a free place goes on.
    next: u64,
    /// Where eviction goes on: the zone, and in each zone the place.
    zone: usize,
    turns: Vec<u64>,
}

impl CacheZones {
    /// Empty zones at these places, ordered by PBA.
    pub(super) fn new(zones: Vec<Extent>, entry_sectors: u64) -> CacheZones {
        CacheZones {
            entry_sectors,
            held: RunMap::default(),
            free: zones.iter().map(|zone| (zone.end().0, zone.start.0)).collect(),
            next: 0,
            zone: 0,
            turns: zones.iter().map(|zone| zone.start.0).collect(),
            zones,
        }
    }

    /// Calls `each` with the zones; what is not free is in use.
    pub(super) fn caches(&self, each: &mut dyn FnMut(Cache)) {
        for zone in &self.zones {
            let ends = zone.start.0 + 1..zone.end().0 + 1;
            let free: u64 = self.free.range(ends).map(|(end, start)| end - start).sum();
            let (start, end, size) = (zone.start, zone.end(), zone.sectors);
            each(Cache { medium: Medium::Disk, start, end, used: size - Sectors(free), size });
        }
    }

    /// Sectors of all of them together.
    pub(super) fn sectors(&self) -> u64 {
        self.zones.iter().map(|zone| zone.sectors.0).sum()
    }

    /// How many runs are held.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Where the next write of `sectors` goes, or as much of it as one free run takes; nothing if all is taken.
    pub(super) fn place(&self, sectors: Sectors) -> Option<Extent> {
        let mut ahead = self.free.range(self.next + 1..).peekable();
        let straddling = ahead.next_if(|&(_, &start)| start < self.next);
        let as_place = |(&end, &start): (&u64, &u64)| Extent::between(Pba(start), Pba(end));
        if let Some(place) = ahead.peek().map(|&run| as_place(run)).filter(|place| place.sectors >= sectors) {
            return Some(Extent::new(place.start, sectors));
        }
        let going_round = ahead.chain(self.free.range(..=self.next)).chain(straddling).take(SEARCHED_MAX);
        let mut longest: Option<Extent> = None;
        for place in going_round.map(as_place) {
            if place.sectors >= sectors {
                return Some(Extent::new(place.start, sectors));
            }
            if longest.is_none_or(|longest| place.sectors > longest.sectors) {
                longest = Some(place);
            }
        }
        longest
    }

    /// Whether `place` lies in one zone.
    pub(super) fn is_in_one(&self, place: Extent) -> bool {
        place.start >= self.zones[0].start && place.end() <= self.zone_of(place.start).end()
    }

    /// The zone that `pba` lies in, or the last that begins before it.
    fn zone_of(&self, pba: Pba) -> Extent {
        self.zones[self.zones.partition_point(|zone| zone.start <= pba) - 1]
    }

    /// Whether all of `place` is free.
    pub(super) fn is_free(&self, place: Extent) -> bool {
        let run = self.free.range(place.end().0..).next();
        run.is_some_and(|(_, &start)| start <= place.start.0)
    }

    /// The sectors from `lba` on live at `place`, which is free.
    pub(super) fn add(&mut self, lba: Lba, place: Extent) {
        let (start, end) = (place.start.0, place.end().0);
        let (&last, first) = self.free.range_mut(end..).next().expect("invariant 1: the place is free");
        assert!(*first <= start, "invariant 1: {place:?} reaches out of the free run before {last}");
        let before = *first;
        if end < last {
            *first = end;
        } else {
            self.free.remove(&last);
        }
        if before < start {
            self.free.insert(start, before);
        }
        self.held.insert_new(start, end - start, Held(lba));
        self.next = end;
    }

    /// Whether `next`, which follows `run` among the sectors of a band, follows it in the same zone too.
    pub(super) fn leave_together(&self, run: &MappedRun, next: &MappedRun) -> bool {
        match (run.target, next.target) {
            (Mapped::At(pba), Mapped::At(place)) => {
                run.end() == next.lba && pba + run.sectors == place && place + next.sectors <= self.zone_of(pba).end()
            }
            _ => false,
        }
    }

    /// The sectors of `run` no longer live in the cache: their places are free.
    pub(super) fn remove(&mut self, run: MappedRun) {
        let Mapped::At(pba) = run.target else { return };
        self.held.remove(pba.0, run.sectors.0);
        let zone = self.zone_of(pba);
        let (mut start, end) = (pba.0, pba.0 + run.sectors.0);
        if start > zone.start.0 {
            start = self.free.remove(&start).unwrap_or(start);
        }
        let next = self.free.range_mut(end + 1..).next().filter(|(_, first)| **first == end && end < zone.end().0);
        match next {
            Some((_, first)) => *first = start,
            None => {
                self.free.insert(end, start);
            }
        }
    }

    /// Frees the places of a run, if there is one.
    pub(super) fn remove_some(&mut self, run: Option<MappedRun>) {
        if let Some(run) = run {
            self.remove(run);
        }
    }

    /// The run to evict next: eviction goes round zone after zone, and within a zone place after place.
    pub(super) fn next_out(&mut self) -> Option<Lba> {
        for _ in 0..self.zones.len() {
            let index = self.zone;
            self.zone = (index + 1) % self.zones.len();
            let (zone, turn) = (self.zones[index], self.turns[index]);
            let ahead = self.held.first_in(turn, zone.end().0 - turn);
            let found = ahead.or_else(|| self.held.first_in(zone.start.0, turn - zone.start.0));
            if let Some((start, length, Held(lba))) = found {
                let end = start + length;
                self.turns[index] = if end < zone.end().0 { end } else { zone.start.0 };
                return Some(lba);
            }
        }
        None
    }

    /// Place, first sector and length of what is held.
    pub(super) fn held(&self) -> impl Iterator<Item = (Pba, Lba, Sectors)> + '_ {
        self.held.iter().map(|(start, length, Held(lba))| (Pba(start), lba, Sectors(length)))
    }

    /// Sectors that are free.
    pub(super) fn free_sectors(&self) -> u64 {
        self.free.iter().map(|(end, start)| end - start).sum()
    }

    /// Bytes it takes: keys and values in nodes of eleven, two thirds full.
    pub(super) fn measured_bytes(&self) -> u64 {
        let trees = (self.held.len() * 24 + self.free.len() * 16) * 3 / 2;
        (trees + self.zones.len() * 24) as u64
    }
}
