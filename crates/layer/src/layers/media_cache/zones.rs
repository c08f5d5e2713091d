//! The cache that is overwritten in place (`placement=in-place`): cache zones on tracks that can be rewritten, where any
//! free place takes any write, and a sector stays where it is until it leaves the cache (the later drives, measured in
//! public).
//!
//! Free places are taken in the order of the medium, going round, so that writes from anywhere follow each other there
//! ([`FreeRuns`]). Whose turn it is to leave goes round by zone, and within a zone by place.
//!
//! Invariants:
//! 1. A sector of a zone is free or holds a cached one, never both.
//! 2. What is held lies in one zone, and each zone has its sum.

use imbrex_disk::{Extent, Lba, Pba, Sectors};

use super::free_runs::FreeRuns;
use crate::layer::Cache;
use crate::map::extent_map::{Mapped, MappedRun};
use crate::map::place_map::PlaceMap;
use crate::plan::Medium;

/// The zones of a cache that is overwritten in place, with what lies where in them.
#[derive(Debug)]
pub(super) struct CacheZones {
    zones: Vec<Extent>,
    /// The most sectors of an entry.
    pub(super) entry_sectors: u64,
    held: PlaceMap,
    free: FreeRuns,
    /// Sectors held by each zone: most hold nothing where the map is full before the cache is.
    used: Vec<u64>,
    /// Where eviction goes on: the zone, and in each zone the place.
    zone: usize,
    turns: Vec<u64>,
}

impl CacheZones {
    /// Empty zones at these places, ordered by PBA.
    pub(super) fn new(zones: Vec<Extent>, entry_sectors: u64) -> CacheZones {
        CacheZones {
            entry_sectors,
            held: PlaceMap::default(),
            free: FreeRuns::new(&zones),
            used: vec![0; zones.len()],
            zone: 0,
            turns: zones.iter().map(|zone| zone.start.0).collect(),
            zones,
        }
    }

    /// Calls `each` with the zones; what is not free is in use.
    pub(super) fn caches(&self, each: &mut dyn FnMut(Cache)) {
        for zone in &self.zones {
            let (start, end, size) = (zone.start, zone.end(), zone.sectors);
            each(Cache { medium: Medium::Disk, start, end, used: size - self.free.within(*zone), size });
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
    #[inline]
    pub(super) fn place(&mut self, sectors: Sectors) -> Option<Extent> {
        self.free.place(sectors)
    }

    /// Whether `place` lies in one zone.
    pub(super) fn is_in_one(&self, place: Extent) -> bool {
        place.start >= self.zones[0].start && place.end() <= self.zone_of(place.start).end()
    }

    /// The zone that `pba` lies in, or the last that begins before it.
    fn zone_of(&self, pba: Pba) -> Extent {
        self.zones[self.index_of(pba)]
    }

    /// The number of that zone.
    fn index_of(&self, pba: Pba) -> usize {
        self.zones.partition_point(|zone| zone.start <= pba) - 1
    }

    /// Whether all of `place` is free.
    pub(super) fn is_free(&self, place: Extent) -> bool {
        self.free.is_free(place)
    }

    /// The sectors from `lba` on live at `place`, which is free.
    #[inline]
    pub(super) fn add(&mut self, lba: Lba, place: Extent) {
        self.free.take(place);
        self.held.insert(place, lba);
        let zone = self.index_of(place.start);
        self.used[zone] += place.sectors.0;
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
        let place = Extent::new(pba, run.sectors);
        self.held.remove(place);
        let zone = self.index_of(pba);
        self.used[zone] -= place.sectors.0;
        self.free.give(place, self.zones[zone]);
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
            if self.used[index] == 0 {
                continue;
            }
            let (zone, turn) = (self.zones[index], self.turns[index]);
            let ahead = self.held.first_in(Extent::between(Pba(turn), zone.end()));
            let found = ahead.or_else(|| self.held.first_in(Extent::between(zone.start, Pba(turn))));
            if let Some((place, lba)) = found {
                let end = place.end();
                self.turns[index] = if end < zone.end() { end.0 } else { zone.start.0 };
                return Some(lba);
            }
        }
        None
    }

    /// The number of the first zone whose sum is not that of what it holds.
    pub(super) fn first_wrong_sum(&self) -> Option<usize> {
        let mut used = vec![0; self.zones.len()];
        self.held().for_each(|(place, _, sectors)| used[self.index_of(place)] += sectors.0);
        used.iter().zip(&self.used).position(|(counted, kept)| counted != kept)
    }

    /// Place, first sector and length of what is held.
    pub(super) fn held(&self) -> impl Iterator<Item = (Pba, Lba, Sectors)> + '_ {
        self.held.iter().map(|(place, lba)| (place.start, lba, place.sectors))
    }

    /// Sectors that are free.
    pub(super) fn free_sectors(&self) -> u64 {
        self.free.sectors()
    }

    /// Bytes it takes.
    pub(super) fn measured_bytes(&self) -> u64 {
        self.held.measured_bytes() + self.free.measured_bytes() + (self.zones.len() * 40) as u64
    }
}
