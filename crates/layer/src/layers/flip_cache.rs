//! `flip-cache`: a hot bottom track is flipped with a cold neighbouring top track, as in `track-flip`. If both
//! neighbours are hot as well, the bottom track is kept in a cache, as in `track-cache`. Hajkazemi 2019 §6 asks for
//! this combination.
//!
//! ```text
//!                      a neighbour is cold enough ──► flip: costs no capacity, 1.5 bits a track
//!   hot bottom track ──┤
//!                      └ else ────────────────────► promote: a slot, in place of the coldest one cached
//! ```
//!
//! A flipped track is not cached, and a cached track is not flipped. The flip map treats a cached track as a track at
//! home. The track stays in its slot until a hotter track needs the slot.
//!
//! The journal records are those of `track-flip` and those of `track-cache`; the tags of the latter are higher by
//! eight.
//!
//! Invariants:
//! 1. Those of `track-flip` and of `track-cache`.
//! 2. No bottom track is both cached and flipped.

use imbrex_disk::Lba;

use super::interlaced::backup::BackupLog;
use super::interlaced::driver::Interlaced;
use super::interlaced::heat::{Heat, HeatLog};
use super::interlaced::home::{Home, Planner};
use super::interlaced::host::Host;
use super::interlaced::moves::Transfers;
use super::interlaced::options::MoveOptions;
use super::interlaced::record::{self, FIRST_LAYER_TAG};
use super::interlaced::{Track, TrackRun, Translation};
use super::track_cache::{self, Cache, CacheAreas, OF_CACHED_MOVES, SHIFT_AFTER_FLIPS};
use super::track_flip::{self, Flips, PART_BITS};
use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::{self, Layer};
use crate::parameters::ConfigError;
use crate::plan::Plan;
use crate::plan::note::{Note, ReplayError};
use crate::violation::Violation;

/// Description of the layer `flip-cache` for the registry: on an interlaced disk, a hot bottom track is swapped with a
/// cold neighbouring top track, or is kept in a cache if no neighbour is cold.
pub const INFO: LayerInfo = LayerInfo {
    name: "flip-cache",
    summary: "interlaced disk: hot bottom tracks are flipped with a cold top, or cached where there is none",
    recordings: &["interlaced"],
    host_managed: false,
    mapping_unit: "track",
    source: "ours, after Hajkazemi 2019 §6",
    parameters: &OF_CACHED_MOVES,
    records: &[record::Record::INFO, track_flip::Record::INFO, track_cache::RECORDS_AFTER_FLIPS],
    toys: &[
        "cache_tracks=2,cache_header=512,interval=12,background_every=3,hotness=reset,payback=0,watch=0,cache_position=od",
        "cache_tracks=3,cache_position=spread,cache_header=0,interval=7,background_every=1,backup_regions=1,hot_tracks=4,payback=0,hotness=reset,watch=0",
    ],
    build,
};

/// A move: a flip, or a promotion to or eviction from the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Move {
    Flip(track_flip::Move),
    Cache(track_cache::Move),
}

/// The map of `flip-cache`: the flipped tracks and the cached tracks.
struct FlipCache {
    flips: Flips,
    cache: Cache,
    hot_tracks: usize,
}

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    let (disk, parameters) = (&context.disk, &context.parameters);
    let options = MoveOptions::new(parameters)?;
    let mut planner = Planner::new(disk)?;
    let (tracks, surfaces) = (disk.geometry.radial_tracks(), disk.geometry.surfaces());
    let log = BackupLog::set_aside(&mut planner, tracks, surfaces, parameters.count("backup_regions"))?;
    let areas = CacheAreas::set_aside(&mut planner, context)?;
    let home = planner.finish();
    let cache = areas.cache(&home, options, SHIFT_AFTER_FLIPS);
    let map = FlipCache { flips: Flips::new(&home, options), cache, hot_tracks: options.hot_tracks };
    Ok(Box::new(Interlaced::new(Host::new(home, log, false), map, options)))
}

impl FlipCache {
    /// Returns whether track number `index` is a bottom track that is cached.
    fn is_cached(&self, home: &Home, index: u32) -> bool {
        let (track, surface) = home.track_at(index);
        !Home::is_top(track) && self.cache.slot_of(home.bottom_index(track, surface)).is_some()
    }
}

/// Returns the number of sectors written to bottom track number `bottom` in the interval.
fn sectors_of(home: &Home, heat: &HeatLog, bottom: u32) -> u32 {
    let (track, surface) = home.bottom_at(bottom);
    Flips::sectors(heat, home.track_index(track, surface))
}

impl Translation for FlipCache {
    type Move = Move;

    fn caches(&self, home: &Home, each: &mut dyn FnMut(layer::Cache)) {
        self.cache.each_slot(home, each);
    }

    fn name(&self) -> &'static str {
        INFO.name
    }

    fn is_power_safe(&self) -> bool {
        self.flips.is_power_safe()
    }

    #[inline]
    fn run_of(&self, home: &Home, lba: Lba) -> TrackRun {
        let run = self.flips.run_of(home, lba);
        if run.harmless {
            return run;
        }
        // By invariant 2, a cached bottom is not flipped, so `run` is the whole track and holds the data of this bottom.
        match self.cache.slot_of(home.bottom_index(run.radial_track, run.surface)) {
            None => run,
            Some(slot) => self.cache.cached_run(run, slot),
        }
    }

    /// Returns the run at `sector` by the flip map alone. The common code asks only about tops and about bottoms that
    /// are to be flipped or flipped back; none of these is cached.
    #[inline]
    fn run_at(&self, home: &Home, track: &Track, sector: u32) -> Option<TrackRun> {
        self.flips.run_at(home, track, sector)
    }

    #[inline]
    fn heat(&self, run: &TrackRun) -> u32 {
        self.flips.heat(run)
    }

    fn select(&mut self, home: &Home, heat: &HeatLog, moves: &mut Vec<Move>) {
        let on_bottom = |heat: &Heat| self.flips.lies_on_bottom(home, heat.key) && !self.is_cached(home, heat.key);
        let candidates = heat.counts(PART_BITS).filter(on_bottom);
        let (mut flips, mut stuck) = (Vec::new(), Vec::new());
        for hot in HeatLog::hottest(candidates, self.hot_tracks) {
            let chosen = flips.len();
            self.flips.choose(home, heat, hot, &mut flips);
            let (track, surface) = home.track_at(hot.key);
            if flips.len() == chosen && !Home::is_top(track) {
                stuck.push(Heat { key: home.bottom_index(track, surface), ..hot });
            }
        }
        moves.extend(flips.into_iter().map(Move::Flip));
        self.cache.choose(&stuck, |bottom| sectors_of(home, heat, bottom), |chosen| moves.push(Move::Cache(chosen)));
    }

    fn prepare(&self, home: &Home, chosen: Move, transfers: &mut Transfers) -> bool {
        match chosen {
            Move::Flip(flip) => {
                let is_cached = self.cache.slot_of(flip.bottom).is_some();
                !is_cached && self.flips.prepare(home, flip, transfers)
            }
            Move::Cache(track_cache::Move::Promote { bottom }) => {
                !self.flips.is_flipped(bottom) && self.cache.prepare_promotion(home, bottom, transfers)
            }
            Move::Cache(track_cache::Move::Evict { bottom }) => {
                self.cache.prepare_eviction(self, home, bottom, transfers)
            }
        }
    }

    fn commit(&mut self, home: &Home, chosen: Move, plan: &mut Plan) {
        match chosen {
            Move::Flip(flip) => self.flips.commit(home, flip, plan),
            Move::Cache(chosen) => self.cache.commit(home, chosen, plan),
        }
    }

    fn replay(&mut self, home: &Home, note: &Note) -> Result<bool, ReplayError> {
        if note.tag < FIRST_LAYER_TAG + SHIFT_AFTER_FLIPS {
            self.flips.replay(home, note)
        } else {
            self.cache.replay(home, note)
        }
    }

    fn checkpoint(&self, notes: &mut Vec<Note>) {
        self.flips.checkpoint(notes);
        self.cache.checkpoint(notes);
    }

    fn self_check(&self, home: &Home) -> Result<(), Violation> {
        let of_parts = self.flips.self_check(home).and_then(|()| self.cache.self_check(home));
        of_parts.map_err(|violation| Violation { layer: INFO.name, invariant: 1, ..violation })?;
        match self.cache.bottoms().find(|&bottom| self.flips.is_flipped(bottom)) {
            None => Ok(()),
            Some(bottom) => {
                let detail = format!("bottom {bottom} is cached and flipped");
                Err(Violation { layer: INFO.name, invariant: 2, detail })
            }
        }
    }

    fn formula_bytes(&self, tracks: u64) -> u64 {
        self.flips.formula_bytes(tracks) + self.cache.formula_bytes(tracks)
    }

    fn measured_bytes(&self) -> u64 {
        self.flips.measured_bytes() + self.cache.measured_bytes()
    }
}

#[cfg(test)]
mod tests {
    //! Goal: a hot bottom is flipped if possible, otherwise cached, never both. The toy is that of `track-cache`: LBA n
    //! of group 0 is at PBA n + 10, and the track of PBA 20 (LBA 10) lies between those of PBAs 100 (LBA 90) and 90
    //! (LBA 80).

    use imbrex_disk::Command;

    use super::*;
    use crate::layers::interlaced::testing::{assert_plan, disk, idle_phases, layer, plan, write_each};

    const TOY: &str =
        "backup_regions=1,interval=6,cache_tracks=1,cache_header=0,payback=0,hotness=reset,watch=0,cache_position=od";

    fn notes(phases: &[Plan]) -> Vec<(u8, u64, u64)> {
        let notes = phases.iter().flat_map(|plan| &plan.notes).filter(|note| note.tag >= FIRST_LAYER_TAG);
        notes.map(|note| (note.tag, note.fields[0], note.fields[1])).collect()
    }

    #[test]
    fn a_hot_bottom_with_a_cold_neighbour_is_flipped() {
        let mut layer = layer("flip-cache", &disk(64, 10, 1.0), TOY);
        write_each(layer.as_mut(), &[12, 12, 13, 12, 350, 350]);
        let phases = idle_phases(layer.as_mut());
        // State 3: the low part of bottom 2 is flipped with T+1, the top at the next radial position.
        assert_eq!(notes(&phases), [(FIRST_LAYER_TAG, 2, 3)]);
        assert_plan(
            &phases[1],
            "phase Migration
               write migration pba 20+10 lba 80
               write migration pba 90+10 lba 10
               write migration pba 100+10 lba 90
               barrier
               note #16 2 3 0 0
               barrier",
        );
    }

    #[test]
    fn a_hot_bottom_among_hot_tops_is_cached() {
        let mut layer = layer("flip-cache", &disk(64, 10, 1.0), TOY);
        write_each(layer.as_mut(), &[12, 12, 80, 80, 90, 90]);
        let phases = idle_phases(layer.as_mut());
        assert_eq!(phases.len(), 1);
        assert_plan(
            &phases[0],
            "group Migration
               read migration pba 20+10 lba 10
               write migration pba 0+10 lba 10
               barrier
               note #24 2 0 0 0
               barrier",
        );
        assert_plan(
            &plan(layer.as_mut(), &[Command::write(15, 2)]),
            "group Host
               write host pba 5+2 lba 15",
        );
    }

    /// Checks that a cached bottom stays in its slot, and nothing else of it is moved, after its tops cool down.
    #[test]
    fn a_cached_bottom_is_not_flipped() {
        let mut layer = layer("flip-cache", &disk(64, 10, 1.0), TOY);
        write_each(layer.as_mut(), &[12, 12, 80, 80, 90, 90]);
        idle_phases(layer.as_mut());
        write_each(layer.as_mut(), &[12; 6]);
        assert_eq!(idle_phases(layer.as_mut()), []);
    }

    /// Checks an eviction for a hotter track: the cold track is written home, and its tops are rewritten, one of which
    /// is flipped.
    #[test]
    fn eviction_rewrites_what_lies_on_the_tops_beside() {
        let mut layer = layer("flip-cache", &disk(64, 10, 1.0), TOY);
        write_each(layer.as_mut(), &[12, 12, 80, 80, 90, 90]);
        idle_phases(layer.as_mut());
        // Bottom 3 (LBA 20) is flipped with the top of LBA 80, because the top of LBA 70 is hot.
        write_each(layer.as_mut(), &[20, 20, 20, 20, 70, 70]);
        assert_eq!(notes(&idle_phases(layer.as_mut())), [(FIRST_LAYER_TAG, 3, 1)]);
        // Bottom 5 (LBA 40) lies between the hot tops of LBAs 60 and 50, so it is cached.
        write_each(layer.as_mut(), &[40, 40, 50, 50, 60, 60]);
        let phases = idle_phases(layer.as_mut());
        assert_eq!(
            notes(&phases),
            [(FIRST_LAYER_TAG + SHIFT_AFTER_FLIPS + 1, 2, 0), (FIRST_LAYER_TAG + SHIFT_AFTER_FLIPS, 5, 0)]
        );
        assert_plan(
            &phases[1],
            "phase Migration
               write migration pba 20+10 lba 10
               write migration pba 90+10 lba 20
               write migration pba 100+10 lba 90
               barrier
               note #25 2 0 0 0
               barrier",
        );
    }

    /// Checks 3 bits per bottom track and eight bytes per cached track (Hajkazemi 2019 §2.2 and §2.3).
    #[test]
    fn memory_is_that_of_both() {
        let layer = layer("flip-cache", &disk(64, 10, 1.0), TOY);
        assert_eq!(layer.memory().formula_bytes, 12 + 8);
    }
}
