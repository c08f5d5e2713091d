//! `track-cache`: the hottest bottom tracks live in a cache of bottom tracks without tops (Hajkazemi 2019 §2.3), where
//! they are overwritten in place. Other bottoms are written as in `imr-rmw`.
//!
//! The cache is divided into logical tracks called *slots*, each long enough for the longest track and a header. After
//! every `interval` host writes the hottest bottoms are promoted. If the cache is full, each promoted bottom replaces
//! the coldest cached one, provided that it is hot enough.
//!
//! In the diagram T is the promoted or evicted bottom, and T−1 and T+1 are the tops beside it. A seek takes t_seek, a
//! rotation t_rot.
//!
//! ```text
//!   promote, one phase:  read T · write header and T to a slot                                          2 t_seek + 2 t_rot
//!   evict, phase 1:      read the slot · read T−1, T+1 · back both up
//!          phase 2:      write the slot's contents to T · rewrite T−1, T+1                              4 t_seek + 8 t_rot
//! ```
//!
//! A track promoted in steady state takes the sum of both, 6 t_seek + 10 t_rot. The paper prints 7 t_seek + 8 t_rot,
//! which its steps do not give.
//!
//! Invariants:
//! 1. A slot holds one bottom at most, a bottom is in one slot at most, and the list of cached bottoms is sorted.

use imbrex_disk::{Extent, Lba, Pba, Sectors};

use super::interlaced::backup::BackupLog;
use super::interlaced::driver::Interlaced;
use super::interlaced::heat::{Heat, HeatLog};
use super::interlaced::home::{Area, Home, Planner};
use super::interlaced::host::{Host, push_runs_at};
use super::interlaced::moves::{Timing, Transfer, Transfers};
use super::interlaced::options::{MoveOptions, OF_MOVES, joined};
use super::interlaced::record::{self, FIRST_LAYER_TAG};
use super::interlaced::{Track, TrackRun, Translation};
use crate::context::Context;
use crate::info::{LayerInfo, RecordInfo};
use crate::journal_records;
use crate::layer::{self, Layer};
use crate::parameters::{ConfigError, ParameterInfo, ParameterKind};
use crate::plan::note::{Note, ReplayError};
use crate::plan::{Medium, Plan};
use crate::violation::Violation;

/// Parameters of the cache: its size, its place, and the header of each slot.
const OF_CACHE: [ParameterInfo; 3] = [
    ParameterInfo {
        key: "cache_tracks",
        kind: ParameterKind::Count,
        default: "100",
        help: "tracks that the cache holds; at most one for eight bottom tracks",
    },
    ParameterInfo {
        key: "cache_position",
        kind: ParameterKind::Choice(&["od", "id", "spread"]),
        default: "spread",
        help: "od: in one piece at the outer diameter; id: near the inner one, so that no other address moves; spread: in sixteen pieces",
    },
    ParameterInfo {
        key: "cache_header",
        kind: ParameterKind::Bytes,
        default: "4k",
        help: "header of each cached track; 0 leaves it out, so that cached tracks are whole tracks",
    },
];

/// The parameters of layers that move tracks and keep some of them in a cache of bottom tracks.
pub(super) const OF_CACHED_MOVES: [ParameterInfo; 14] = joined(OF_CACHE, OF_MOVES);

journal_records! {
    /// The kinds of journal record of a cache of tracks: changes of the set of cached bottom tracks. Each record ends a
    /// background move. Bottom tracks are numbered by radius, then surface.
    pub(super) enum Record of "the cache of tracks" {
        FIRST_LAYER_TAG => Cached { bottom: u32, slot: u32 } "a bottom's data is in a slot",
        FIRST_LAYER_TAG + 1 => AtHome { bottom: u32 } "a bottom's data is at home",
    }
}

/// Number by which the tags of the cache's records are increased in a layer that also has the records of
/// [`super::track_flip`].
pub(super) const SHIFT_AFTER_FLIPS: u8 = 8;

/// The descriptions of the cache's records, with tags increased by [`SHIFT_AFTER_FLIPS`].
pub(super) const RECORDS_AFTER_FLIPS: &[RecordInfo] =
    &[Record::INFO[0].shifted(SHIFT_AFTER_FLIPS), Record::INFO[1].shifted(SHIFT_AFTER_FLIPS)];

/// Description of the layer `track-cache` for the registry: on an interlaced disk, the hottest bottom tracks are kept
/// in a cache of bottom tracks without top tracks.
pub const INFO: LayerInfo = LayerInfo {
    name: "track-cache",
    summary: "interlaced disk: the hottest bottom tracks live in a cache of bottom tracks without tops",
    recordings: &["interlaced"],
    host_managed: false,
    mapping_unit: "track",
    source: "Hajkazemi 2019 §2.3",
    parameters: &OF_CACHED_MOVES,
    records: &[record::Record::INFO, Record::INFO],
    toys: &[
        "cache_tracks=2,cache_header=512,interval=12,background_every=3,payback=0,hotness=reset,watch=0,cache_position=od",
        "cache_tracks=3,cache_position=spread,cache_header=0,interval=7,background_every=1,backup_regions=1,payback=0,hotness=reset,watch=0",
        "cache_tracks=2,interval=9,background_every=2,hotness=decay,payback=0,watch=0,cache_position=od",
        "cache_tracks=2,cache_position=id,interval=9,background_every=2,payback=0,watch=2",
    ],
    build,
};

/// Number of tracks that a promotion writes.
const PROMOTED_TRACKS: u64 = 1;
/// Number of tracks that an eviction writes: two backup copies, the track, and the two tops beside it.
const EVICTED_TRACKS: u64 = 5;

/// Most pieces of a cache with `cache_position=spread`.
const SPREAD_AREAS: u32 = 16;

/// Least number of bottom tracks for each cached one, so that small disks keep most of their bottoms.
const BOTTOMS_PER_SLOT: u32 = 8;

/// Tracks at the inner diameter for each slot of a cache with `cache_position=id`. They are several times the tracks
/// that a slot takes, because pieces of the cache end with track groups, and backup regions lie between the pieces.
const ROOM_TRACKS_PER_SLOT: u32 = 8;

/// A place for one cached track.
#[derive(Clone, Copy, Debug)]
struct Slot {
    header: Extent,
    data: Pba,
    surface: u8,
    radial_start: u32,
    radial_last: u32,
    /// The bottom whose data the slot holds.
    holds: Option<u32>,
}

/// A bottom whose data are in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cached {
    bottom: u32,
    slot: u32,
}

/// A background move of the data of one bottom, into the cache or back home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Move {
    Promote { bottom: u32 },
    Evict { bottom: u32 },
}

/// A cache of tracks: slots on bottom tracks without top tracks, and the bottom tracks whose data they hold.
pub(super) struct Cache {
    slots: Vec<Slot>,
    /// Cached bottoms, sorted by number.
    cached: Vec<Cached>,
    options: MoveOptions,
    /// Sectors of the longest track of the disk.
    track_sectors: u64,
    /// Offset added to the tags of the cache's records.
    tag_shift: u8,
    /// Sectors of a slot: its header, and room for the longest bottom.
    slot_sectors: u64,
}

/// The bottom tracks that are set aside for a cache of tracks.
pub(super) struct CacheAreas {
    areas: Vec<Area>,
    header: u64,
    slots: u32,
}

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    let (disk, parameters) = (&context.disk, &context.parameters);
    let options = MoveOptions::new(parameters)?;
    let mut planner = Planner::new(disk)?;
    let (tracks, surfaces) = (disk.geometry.radial_tracks(), disk.geometry.surfaces());
    let log = BackupLog::set_aside(&mut planner, tracks, surfaces, parameters.count("backup_regions"))?;
    let areas = CacheAreas::set_aside(&mut planner, context)?;
    let home = planner.finish();
    let cache = areas.cache(&home, options, 0);
    Ok(Box::new(Interlaced::new(Host::new(home, log, false), cache, options)))
}

impl CacheAreas {
    /// Sets aside the bottom tracks for the cache that the parameters `cache_tracks`, `cache_position` and
    /// `cache_header` describe. The number of slots is at least 1, and at most an eighth of the bottom tracks.
    ///
    /// # Errors
    ///
    /// The disk has no room for them.
    pub(super) fn set_aside(planner: &mut Planner<'_>, context: &Context) -> Result<CacheAreas, ConfigError> {
        let (disk, parameters) = (&context.disk, &context.parameters);
        let (tracks, surfaces) = (disk.geometry.radial_tracks(), disk.geometry.surfaces());
        let header = parameters.bytes("cache_header").div_ceil(disk.sector_bytes as u64);
        let bottoms = tracks / 2 * surfaces as u32;
        let slots = parameters.count("cache_tracks").clamp(1, (bottoms / BOTTOMS_PER_SLOT).max(1) as u64) as u32;
        let places = match parameters.choice("cache_position") {
            "spread" => SPREAD_AREAS.min(slots),
            _ => 1,
        };
        let first = match parameters.choice("cache_position") {
            "id" => tracks.saturating_sub(ROOM_TRACKS_PER_SLOT * slots),
            _ => 0,
        };
        let mut areas = Vec::new();
        for place in 0..places {
            let from = first + (place as u64 * tracks as u64 / places as u64) as u32;
            let share = slots / places + u32::from(place < slots % places);
            set_aside(planner, from, share, header, &mut areas)?;
        }
        Ok(CacheAreas { areas, header, slots })
    }

    /// Returns an empty cache in the bottom tracks that were set aside. `tag_shift` is added to the tags of its journal
    /// records.
    pub(super) fn cache(&self, home: &Home, options: MoveOptions, tag_shift: u8) -> Cache {
        let track_sectors = longest_track(home);
        let slot_sectors = self.header + track_sectors;
        let slots = self.areas.iter().flat_map(|area| slots_of(home, area, self.header, slot_sectors));
        let slots = slots.take(self.slots as usize).collect();
        Cache { slots, cached: Vec::new(), options, track_sectors, tag_shift, slot_sectors }
    }
}

fn longest_track(home: &Home) -> u64 {
    home.disk().geometry.zones().iter().map(|zone| zone.track_sectors as u64).max().expect("a disk has a zone")
}

/// Sets aside areas for `slots` slots, from `radial_track` on. Each area is as long as the bottoms of a track group
/// allow.
fn set_aside(
    planner: &mut Planner<'_>,
    radial_track: u32,
    mut slots: u32,
    header: u64,
    areas: &mut Vec<Area>,
) -> Result<(), ConfigError> {
    let slot_sectors = header + planner.track_sectors_max();
    let mut at_once = slots;
    while slots > 0 {
        at_once = at_once.min(slots).min(planner.slots_in_a_row(radial_track, slot_sectors).max(1));
        match planner.set_aside(radial_track, 0, at_once as u64 * slot_sectors) {
            Some(area) => {
                slots = slots.saturating_sub((area.extent.sectors.0 / slot_sectors) as u32);
                areas.push(area);
            }
            None if at_once > 1 => at_once /= 2,
            None => return Err(ConfigError(format!("the disk has no room for {slots} more cached tracks in a row"))),
        }
    }
    Ok(())
}

fn slots_of<'a>(home: &'a Home, area: &Area, header: u64, slot_sectors: u64) -> impl Iterator<Item = Slot> + use<'a> {
    let extent = area.extent;
    (0..extent.sectors.0 / slot_sectors).map(move |index| {
        let start = extent.start + Sectors(index * slot_sectors);
        let (first, last) = (home.locate(start), home.locate(start + Sectors(slot_sectors - 1)));
        Slot {
            header: Extent::new(start, Sectors(header)),
            data: start + Sectors(header),
            surface: first.surface,
            radial_start: first.radial_track,
            radial_last: last.radial_track,
            holds: None,
        }
    })
}

impl Cache {
    /// Encodes a record, with the tag that this cache's layer gives it.
    fn note(&self, record: Record) -> Note {
        record.encode().shifted(self.tag_shift)
    }

    /// Calls `each` with every slot, as a cache. A slot in use holds its header and one track.
    pub(super) fn each_slot(&self, home: &Home, each: &mut dyn FnMut(layer::Cache)) {
        let sectors_of = |bottom| {
            let (radial_track, surface) = home.bottom_at(bottom);
            home.track(radial_track, surface).map_or(0, |place| Track::of(&place).sectors)
        };
        for slot in &self.slots {
            let (medium, start, size) = (Medium::Disk, slot.header.start, Sectors(self.slot_sectors));
            let held = slot.holds.map(|bottom| slot.header.sectors + Sectors(u64::from(sectors_of(bottom))));
            let used = held.unwrap_or(Sectors::ZERO);
            each(layer::Cache { medium, start, end: start + size, used, size });
        }
    }

    /// Returns the index of the slot that holds the data of the bottom track with the number `bottom`; `None` if it is
    /// not cached.
    #[inline]
    pub(super) fn slot_of(&self, bottom: u32) -> Option<usize> {
        let found = self.cached.binary_search_by_key(&bottom, |cached| cached.bottom);
        found.ok().map(|index| self.cached[index].slot as usize)
    }

    /// Returns the numbers of the cached bottom tracks, in ascending order.
    pub(super) fn bottoms(&self) -> impl Iterator<Item = u32> + '_ {
        self.cached.iter().map(|cached| cached.bottom)
    }

    /// Returns the free slot nearest to a track.
    fn free_slot(&self, radial_track: u32) -> Option<usize> {
        let free = self.slots.iter().enumerate().filter(|(_, slot)| slot.holds.is_none());
        free.min_by_key(|(_, slot)| slot.radial_start.abs_diff(radial_track)).map(|(index, _)| index)
    }

    /// Returns the run of a whole bottom track at its home.
    fn home_run(&self, home: &Home, bottom: u32) -> Option<TrackRun> {
        let (track, surface) = home.bottom_at(bottom);
        let place = home.track(track, surface)?;
        home.lba(place.track_start).map(|lba| TrackRun { heat: bottom, ..Home::track_run(&place, lba) })
    }

    /// Returns the run of the logical sectors of `run` in a slot. `run` is the whole run of a bottom track at home.
    #[inline]
    pub(super) fn cached_run(&self, run: TrackRun, slot: usize) -> TrackRun {
        let slot = &self.slots[slot];
        TrackRun { pba: slot.data, radial_track: slot.radial_start, surface: slot.surface, harmless: true, ..run }
    }

    fn insert(&mut self, bottom: u32, slot: usize) {
        let index = self.cached.partition_point(|cached| cached.bottom < bottom);
        self.cached.insert(index, Cached { bottom, slot: slot as u32 });
        self.slots[slot].holds = Some(bottom);
    }

    fn remove(&mut self, bottom: u32) {
        let index =
            self.cached.binary_search_by_key(&bottom, |cached| cached.bottom).expect("only cached tracks leave");
        let slot = self.cached.remove(index).slot;
        self.slots[slot as usize].holds = None;
    }

    pub(super) fn prepare_promotion(&self, home: &Home, bottom: u32, transfers: &mut Transfers) -> bool {
        let Some(run) = self.home_run(home, bottom).filter(|_| self.slot_of(bottom).is_none()) else { return false };
        let Some(slot) = self.free_slot(run.radial_track) else { return false };
        let slot = &self.slots[slot];
        if !slot.header.is_empty() {
            transfers.set_header(slot.header);
        }
        let timing = Timing::Normal;
        transfers.push(Transfer { from: run, to: slot.data, to_bottom: false, saved: false, timing });
        transfers.set_radial_track(run.radial_track);
        true
    }

    /// Adds to `transfers` the runs to copy for the eviction of the bottom track with the number `bottom` from the
    /// cache. `map` finds the data on the top tracks beside it. Returns `false` if the track is not cached.
    pub(super) fn prepare_eviction<M: Translation>(
        &self,
        map: &M,
        home: &Home,
        bottom: u32,
        transfers: &mut Transfers,
    ) -> bool {
        let (Some(index), Some(at_home)) = (self.slot_of(bottom), self.home_run(home, bottom)) else { return false };
        let (from, to) = (self.cached_run(at_home, index), at_home.pba);
        transfers.push(Transfer { from, to, to_bottom: true, saved: false, timing: Timing::Normal });
        let (mut faced, mut kept) = (Vec::new(), Vec::new());
        home.push_faced(&[at_home], &mut faced);
        faced.iter().for_each(|span| push_runs_at(map, home, span, &mut kept));
        transfers.push_kept(&kept);
        let (track, slot) = (at_home.radial_track, &self.slots[index]);
        transfers.lock(at_home.surface, track.saturating_sub(1), track + 1);
        transfers.lock(slot.surface, slot.radial_start, slot.radial_last);
        transfers.set_radial_track(track);
        true
    }
}

impl Cache {
    /// Calls `choose` with the moves that promote the bottom tracks in `hottest`, which are not cached, in order. Each
    /// takes a free slot, or the slot of the coldest cached track, which is evicted first. Stops if there is no slot to
    /// take, or if a move would not pay.
    pub(super) fn choose(&self, hottest: &[Heat], sectors_of: impl Fn(u32) -> u32, mut choose: impl FnMut(Move)) {
        let mut cold: Vec<_> = self.cached.iter().map(|cached| (sectors_of(cached.bottom), cached.bottom)).collect();
        cold.sort_unstable();
        let mut cold = cold.into_iter();
        let mut free = self.slots.len() - self.cached.len();
        for &Heat { key: bottom, sectors } in hottest {
            let victim = if free > 0 { None } else { cold.next() };
            let displaced = victim.map_or(0, |(sectors, _)| sectors);
            let has_room = free > 0 || victim.is_some();
            let tracks = if victim.is_some() { PROMOTED_TRACKS + EVICTED_TRACKS } else { PROMOTED_TRACKS };
            if !has_room || !self.options.pays(sectors, displaced, tracks * self.track_sectors) {
                return;
            }
            free = free.saturating_sub(1);
            victim.into_iter().for_each(|(_, bottom)| choose(Move::Evict { bottom }));
            choose(Move::Promote { bottom });
        }
    }
}

impl Translation for Cache {
    type Move = Move;

    fn caches(&self, home: &Home, each: &mut dyn FnMut(layer::Cache)) {
        self.each_slot(home, each);
    }

    fn name(&self) -> &'static str {
        INFO.name
    }

    #[inline]
    fn run_of(&self, home: &Home, lba: Lba) -> TrackRun {
        let place = home.locate(home.pba(lba));
        let run = Home::track_run(&place, lba);
        if Home::is_top(place.radial_track) {
            return run;
        }
        let heat = home.bottom_index(place.radial_track, place.surface);
        let run = TrackRun { heat, ..run };
        match self.slot_of(heat) {
            None => run,
            Some(slot) => self.cached_run(run, slot),
        }
    }

    /// Returns the run that has its home on a track. Only tops are looked up here, and tops are never cached.
    #[inline]
    fn run_at(&self, home: &Home, track: &Track, _sector: u32) -> Option<TrackRun> {
        home.lba(track.start).map(|lba| TrackRun::on(track, 0, track.sectors, lba))
    }

    fn select(&mut self, _home: &Home, heat: &HeatLog, moves: &mut Vec<Move>) {
        let candidates = heat.counts(0).filter(|heat| self.slot_of(heat.key).is_none());
        let hottest = HeatLog::hottest(candidates, self.options.hot_tracks);
        self.choose(&hottest, |bottom| heat.sectors_in(bottom, bottom + 1), |chosen| moves.push(chosen));
    }

    fn prepare(&self, home: &Home, chosen: Move, transfers: &mut Transfers) -> bool {
        match chosen {
            Move::Promote { bottom } => self.prepare_promotion(home, bottom, transfers),
            Move::Evict { bottom } => self.prepare_eviction(self, home, bottom, transfers),
        }
    }

    fn commit(&mut self, home: &Home, chosen: Move, plan: &mut Plan) {
        match chosen {
            Move::Promote { bottom } => {
                // A promotion is one phase, so the free slot is still the one for which it was prepared.
                let slot = self.free_slot(home.bottom_at(bottom).0).expect("it was there a moment ago");
                self.insert(bottom, slot);
                plan.note(self.note(Record::Cached { bottom, slot: slot as u32 }));
            }
            Move::Evict { bottom } => {
                self.remove(bottom);
                plan.note(self.note(Record::AtHome { bottom }));
            }
        }
    }

    fn replay(&mut self, home: &Home, note: &Note) -> Result<bool, ReplayError> {
        let record = Record::decode(&note.unshifted(self.tag_shift)?)?;
        let (Record::Cached { bottom, .. } | Record::AtHome { bottom }) = record;
        let cached = (bottom < home.bottoms()).then(|| self.slot_of(bottom));
        match (record, cached) {
            (_, None) => return Err(note.refuse(format!("there are {} bottom tracks", home.bottoms()))),
            (Record::Cached { slot, .. }, Some(None)) => {
                if self.slots.get(slot as usize).is_none_or(|slot| slot.holds.is_some()) {
                    return Err(note.refuse("there is no such slot, or it holds another track"));
                }
                self.insert(bottom, slot as usize);
            }
            (Record::Cached { .. }, Some(Some(_))) => return Err(note.refuse("that track is in another slot")),
            (Record::AtHome { .. }, Some(Some(_))) => self.remove(bottom),
            (Record::AtHome { .. }, Some(None)) => return Err(note.refuse("that track is in no slot")),
        }
        Ok(true)
    }

    fn checkpoint(&self, notes: &mut Vec<Note>) {
        let record = |cached: &Cached| self.note(Record::Cached { bottom: cached.bottom, slot: cached.slot });
        notes.extend(self.cached.iter().map(record));
    }

    fn self_check(&self, _home: &Home) -> Result<(), Violation> {
        let is_sorted = self.cached.is_sorted_by(|a, b| a.bottom < b.bottom);
        let agrees = |cached: &Cached| self.slots[cached.slot as usize].holds == Some(cached.bottom);
        let held = self.slots.iter().filter(|slot| slot.holds.is_some()).count();
        if is_sorted && held == self.cached.len() && self.cached.iter().all(agrees) {
            return Ok(());
        }
        let detail = format!("{held} slots hold tracks, listed are {:?}", self.cached);
        Err(Violation { layer: INFO.name, invariant: 1, detail })
    }

    /// Returns the bytes of a look-aside list: for each cached track its number and its slot, four bytes each.
    fn formula_bytes(&self, _tracks: u64) -> u64 {
        (self.slots.len() * size_of::<Cached>()) as u64
    }

    fn measured_bytes(&self) -> u64 {
        (self.slots.capacity() * size_of::<Slot>() + self.cached.capacity() * size_of::<Cached>()) as u64
    }
}

#[cfg(test)]
mod tests;
