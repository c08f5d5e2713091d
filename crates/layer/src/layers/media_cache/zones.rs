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

/// A cache whose sectors can be overwritten in place: its zones (runs of physical sectors), and the runs of logical
/// sectors that are cached in them.
#[derive(Debug)]
pub(super) struct CacheZones {
    zones: Vec<Extent>,
    /// Maximum number of sectors of one cached run (an entry of the map).
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
    /// Returns an empty cache in `zones`, which must be disjoint and ordered by PBA. A cached run has at most
    /// `entry_sectors` sectors.
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

    /// Calls `each` with every zone, as a cache. Sectors that are not free are in use.
    pub(super) fn caches(&self, each: &mut dyn FnMut(Cache)) {
        for zone in &self.zones {
            let (start, end, size) = (zone.start, zone.end(), zone.sectors);
            each(Cache { medium: Medium::Disk, start, end, used: size - self.free.within(*zone), size });
        }
    }

    /// Returns the total number of sectors of the zones, free or not.
    pub(super) fn sectors(&self) -> u64 {
        self.zones.iter().map(|zone| zone.sectors.0).sum()
    }

    /// Returns the number of cached runs.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns free physical sectors for a write of `sectors`: a run as long as the write, or a shorter one if no free
    /// run nearby is as long. Returns `None` if no sector is free. The run stays free until [`CacheZones::add`].
    #[inline]
    pub(super) fn place(&mut self, sectors: Sectors) -> Option<Extent> {
        self.free.place(sectors)
    }

    /// Returns whether all of `place` lies in one zone.
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

    /// Records that the logical sectors from `lba` on are cached at `place`, which must be free.
    #[inline]
    pub(super) fn add(&mut self, lba: Lba, place: Extent) {
        self.free.take(place);
        self.held.insert(place, lba);
        let zone = self.index_of(place.start);
        self.used[zone] += place.sectors.0;
    }

    /// Returns whether `next` continues `run` in LBA and in place, and both lie in one zone, so that they can be
    /// removed as one run. Returns `false` if one of them is trimmed.
    pub(super) fn leave_together(&self, run: &MappedRun, next: &MappedRun) -> bool {
        match (run.target, next.target) {
            (Mapped::At(pba), Mapped::At(place)) => {
                run.end() == next.lba && pba + run.sectors == place && place + next.sectors <= self.zone_of(pba).end()
            }
            _ => false,
        }
    }

    /// Removes the cached `run` and frees its place. Does nothing if the run is trimmed.
    pub(super) fn remove(&mut self, run: MappedRun) {
        let Mapped::At(pba) = run.target else { return };
        let place = Extent::new(pba, run.sectors);
        self.held.remove(place);
        let zone = self.index_of(pba);
        self.used[zone] -= place.sectors.0;
        self.free.give(place, self.zones[zone]);
    }

    /// Like [`CacheZones::remove`], but does nothing if `run` is `None`.
    pub(super) fn remove_some(&mut self, run: Option<MappedRun>) {
        if let Some(run) = run {
            self.remove(run);
        }
    }

    /// Returns the first logical sector of the cached run that is to be evicted next, or `None` if the cache is empty.
    /// The choice goes round robin by zone, and within a zone by place; each call goes on to the next zone.
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

    /// Returns the index of the first zone whose count of cached sectors differs from the sum of its runs, or `None` if
    /// all are right.
    pub(super) fn first_wrong_sum(&self) -> Option<usize> {
        let mut used = vec![0; self.zones.len()];
        self.held().for_each(|(place, _, sectors)| used[self.index_of(place)] += sectors.0);
        used.iter().zip(&self.used).position(|(counted, kept)| counted != kept)
    }

    /// Returns the first physical sector, the first logical sector and the length of each cached run, in order of PBA.
    pub(super) fn held(&self) -> impl Iterator<Item = (Pba, Lba, Sectors)> + '_ {
        self.held.iter().map(|(place, lba)| (place.start, lba, place.sectors))
    }

    /// Returns the number of free sectors in all zones.
    pub(super) fn free_sectors(&self) -> u64 {
        self.free.sectors()
    }

    /// Returns the bytes of memory that the cache's tables take now.
    pub(super) fn measured_bytes(&self) -> u64 {
        self.held.measured_bytes() + self.free.measured_bytes() + (self.zones.len() * 40) as u64
    }
}
