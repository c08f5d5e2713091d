//! The cache that is overwritten in place (`placement=in-place`): cache zones on tracks that can be rewritten. Any free
//! place takes any write, and a sector stays in its place until it leaves the cache. (The later drives work like this,
//! as measured in public.)
//!
//! Free places are taken in the order of the medium, round robin, so that writes from anywhere follow each other there
//! ([`FreeRuns`]). Eviction goes round robin by zone, and within a zone by place.
//!
//! Invariants:
//! 1. A sector of a zone is free or holds a cached one, never both.
//! 2. Every cached run lies in one zone, and the used sectors of each zone are the sum of its runs.

use imbrex_disk::{Extent, Lba, Pba, Sectors};

use super::free_runs::FreeRuns;
use crate::layer::Cache;
use crate::map::extent_map::{Mapped, MappedRun};
use crate::map::place_map::PlaceMap;
use crate::plan::Medium;

/// The zones of a cache that is overwritten in place, and the runs cached in them.
#[derive(Debug)]
pub(super) struct CacheZones {
    zones: Vec<Extent>,
    /// Maximum number of sectors of an entry.
    pub(super) entry_sectors: u64,
    held: PlaceMap,
    free: FreeRuns,
    /// Number of cached sectors in each zone; most zones have none if the map is full before the cache is.
    used: Vec<u64>,
    /// Zone at which eviction continues, and in `turns` the place in each zone.
    zone: usize,
    turns: Vec<u64>,
}

impl CacheZones {
    /// Creates a cache of empty zones, which must be ordered by PBA.
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

    /// Calls `each` with the zones; sectors that are not free are in use.
    pub(super) fn caches(&self, each: &mut dyn FnMut(Cache)) {
        for zone in &self.zones {
            let (start, end, size) = (zone.start, zone.end(), zone.sectors);
            each(Cache { medium: Medium::Disk, start, end, used: size - self.free.within(*zone), size });
        }
    }

    /// Returns the total number of sectors in the zones.
    pub(super) fn sectors(&self) -> u64 {
        self.zones.iter().map(|zone| zone.sectors.0).sum()
    }

    /// Returns the number of cached runs.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns the place for the next write of `sectors`, or for as much of the write as one free run takes; `None` if
    /// nothing is free.
    #[inline]
    pub(super) fn place(&mut self, sectors: Sectors) -> Option<Extent> {
        self.free.place(sectors)
    }

    /// Returns whether `place` lies in one zone.
    pub(super) fn is_in_one(&self, place: Extent) -> bool {
        place.start >= self.zones[0].start && place.end() <= self.zone_of(place.start).end()
    }

    /// Returns the zone that contains `pba`, or else the last that begins before `pba`.
    fn zone_of(&self, pba: Pba) -> Extent {
        self.zones[self.index_of(pba)]
    }

    /// Returns the number of the zone that contains `pba`, or else of the last that begins before `pba`.
    fn index_of(&self, pba: Pba) -> usize {
        self.zones.partition_point(|zone| zone.start <= pba) - 1
    }

    /// Returns whether all of `place` is free.
    pub(super) fn is_free(&self, place: Extent) -> bool {
        self.free.is_free(place)
    }

    /// Caches the sectors from `lba` on at `place`, which must be free.
    #[inline]
    pub(super) fn add(&mut self, lba: Lba, place: Extent) {
        self.free.take(place);
        self.held.insert(place, lba);
        let zone = self.index_of(place.start);
        self.used[zone] += place.sectors.0;
    }

    /// Returns whether `next` is the continuation of `run` by LBA and also by place, in one zone.
    pub(super) fn leave_together(&self, run: &MappedRun, next: &MappedRun) -> bool {
        match (run.target, next.target) {
            (Mapped::At(pba), Mapped::At(place)) => {
                run.end() == next.lba && pba + run.sectors == place && place + next.sectors <= self.zone_of(pba).end()
            }
            _ => false,
        }
    }

    /// Removes `run` from the cache and frees its place.
    pub(super) fn remove(&mut self, run: MappedRun) {
        let Mapped::At(pba) = run.target else { return };
        let place = Extent::new(pba, run.sectors);
        self.held.remove(place);
        let zone = self.index_of(pba);
        self.used[zone] -= place.sectors.0;
        self.free.give(place, self.zones[zone]);
    }

    /// Removes a run from the cache and frees its place, if there is a run.
    pub(super) fn remove_some(&mut self, run: Option<MappedRun>) {
        if let Some(run) = run {
            self.remove(run);
        }
    }

    /// Returns the first sector of the run to evict next. Eviction goes round robin by zone, and within a zone by place.
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

    /// Returns the number of the first zone whose count of used sectors is not the sum of its runs.
    pub(super) fn first_wrong_sum(&self) -> Option<usize> {
        let mut used = vec![0; self.zones.len()];
        self.held().for_each(|(place, _, sectors)| used[self.index_of(place)] += sectors.0);
        used.iter().zip(&self.used).position(|(counted, kept)| counted != kept)
    }

    /// Returns the place, first sector and length of each cached run.
    pub(super) fn held(&self) -> impl Iterator<Item = (Pba, Lba, Sectors)> + '_ {
        self.held.iter().map(|(place, lba)| (place.start, lba, place.sectors))
    }

    /// Returns the number of free sectors.
    pub(super) fn free_sectors(&self) -> u64 {
        self.free.sectors()
    }

    /// Returns the bytes of memory that the cache's tables take now.
    pub(super) fn measured_bytes(&self) -> u64 {
        self.held.measured_bytes() + self.free.measured_bytes() + (self.zones.len() * 40) as u64
    }
}
