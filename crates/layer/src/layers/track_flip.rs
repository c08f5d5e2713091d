//! `track-flip`: hot bottom tracks are swapped with a cold neighbouring top (Hajkazemi 2019 §2.2). Bottoms that are not
//! flipped are written as in `imr-rmw`.
//!
//! ```text
//!   state of a bottom T (3 bits)          low with T+1, where T holds more than T+1:
//!   0 unmoved                               T    [ T+1's sectors        | rest of T ]
//!   1, 2 low, high part with T−1            T+1  [ T's first N sectors ]
//!   3, 4 low, high part with T+1
//! ```
//!
//! N_b and N_t are the sectors of the bottom T and of the top. The first or the last N = min(N_b, N_t) sectors of T are
//! swapped with those of the top, depending on the half of T that is written more.
//!
//! A swap, either way, has two steps. It reads the other neighbour of T, T and the top, and backs up the first two
//! (`safety=power`: all three). Then it writes the top's contents to T and T's to the top, and rewrites the other
//! neighbour. Cost: 3 t_seek + 8 t_rot, with `power` + 9 t_rot, where t_seek is the time of a seek and t_rot that of a
//! rotation.
//!
//! After every `interval` host writes the hottest tracks whose data lie on bottoms are considered, hottest first. A
//! bottom is flipped with its colder neighbour, if that one is cold enough. If the neighbour is flipped with another
//! bottom, it is flipped back first. A top whose data were moved to a bottom is flipped back when it is the hotter
//! track of the pair.
//!
//! Invariants:
//! 1. A top is flipped with one bottom at most; a top that is set aside is never flipped.
//! 2. The swap is its own inverse: the data at place p have their home at the place that p is swapped with.

use imbrex_disk::{Lba, Pba, Sectors};

use super::interlaced::backup::BackupLog;
use super::interlaced::driver::Interlaced;
use super::interlaced::heat::{Heat, HeatLog};
use super::interlaced::home::{Home, Planner};
use super::interlaced::host::{Host, push_runs_at};
use super::interlaced::moves::{Timing, Transfer, Transfers};
use super::interlaced::options::{MoveOptions, OF_MOVES};
use super::interlaced::packed::{PackedStates, packed_bytes};
use super::interlaced::record::{self, FIRST_LAYER_TAG};
use super::interlaced::{Span, Track, TrackRun, Translation};
use crate::context::Context;
use crate::info::LayerInfo;
use crate::journal_records;
use crate::layer::Layer;
use crate::parameters::ConfigError;
use crate::plan::Plan;
use crate::plan::note::{Note, ReplayError};
use crate::violation::Violation;

journal_records! {
    /// The kinds of journal record of `track-flip`: changes of the state of a bottom track. Each record ends a
    /// background move. Bottom tracks are numbered by radius, then surface.
    pub(super) enum Record of "track-flip" {
        FIRST_LAYER_TAG => Flipped { bottom: u32, state: u32 } "a bottom's state: with which top it is flipped",
    }
}

/// Description of the layer `track-flip` for the registry: on an interlaced disk, hot bottom tracks are swapped with a
/// cold neighbouring top track.
pub const INFO: LayerInfo = LayerInfo {
    name: "track-flip",
    summary: "interlaced disk: hot bottom tracks are swapped with a cold neighbouring top",
    recordings: &["interlaced"],
    host_managed: false,
    mapping_unit: "track",
    source: "Hajkazemi 2019 §2.2",
    parameters: &OF_MOVES,
    records: &[record::Record::INFO, Record::INFO],
    toys: &[
        "interval=12,background_every=3,payback=0,hotness=reset,watch=0",
        "interval=7,background_every=1,backup_regions=1,hot_tracks=2,payback=0,hotness=reset,watch=0",
        "interval=9,hotness=decay,payback=0,watch=0",
        "interval=8,hotness=reset,payback=0,heat=writes,watch=0",
    ],
    build,
};

/// The greatest state; the states are listed in the module's header.
const STATE_MAX: u32 = 4;

/// Number of low bits of a heat key that tell the part of the track: 0 for all of a top track, 1 and 2 for the halves
/// of a bottom track. The bits above are the number of the track.
pub(super) const PART_BITS: u32 = 2;

/// Number of tracks that a flip writes: three copies, the bottom, its partner, and the other top beside the bottom.
const FLIPPED_TRACKS: u64 = 6;

/// The way in which a bottom track is swapped with a top track: with its inner or its outer neighbour, and with its
/// high or its low end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flip {
    inner: bool,
    high: bool,
}

impl Flip {
    fn of(state: u8) -> Option<Flip> {
        (1..=4).contains(&state).then_some(Flip { inner: state >= 3, high: state.is_multiple_of(2) })
    }

    fn state(self) -> u8 {
        1 + 2 * u8::from(self.inner) + u8::from(self.high)
    }

    /// Returns the top with which a bottom at `radial_track` is flipped.
    fn top(self, radial_track: u32) -> Option<u32> {
        if self.inner { radial_track.checked_add(1) } else { radial_track.checked_sub(1) }
    }

    /// Returns the number of swapped sectors, and the first of them on the bottom and on the top.
    fn sectors(self, bottom: &Track, top: &Track) -> (u32, u32, u32) {
        let swapped = bottom.sectors.min(top.sectors);
        match self.high {
            false => (swapped, 0, 0),
            true => (swapped, bottom.sectors - swapped, top.sectors - swapped),
        }
    }
}

/// Part of a track that is either swapped as a whole or not at all.
struct TrackPart {
    first: u32,
    end: u32,
    /// The track that the part is swapped with, and the first sector there.
    partner: Option<(Track, u32)>,
}

/// A background move: the bottom track with the number `bottom` is swapped with a neighbouring top track, or swapped
/// back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Move {
    pub(super) bottom: u32,
    to: Option<Flip>,
}

/// The state of every bottom track: whether it is swapped with a neighbouring top track, and how.
pub(super) struct Flips {
    states: PackedStates,
    options: MoveOptions,
}

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    let (disk, parameters) = (&context.disk, &context.parameters);
    let options = MoveOptions::new(parameters)?;
    let mut planner = Planner::new(disk)?;
    let (tracks, surfaces) = (disk.geometry.radial_tracks(), disk.geometry.surfaces());
    let log = BackupLog::set_aside(&mut planner, tracks, surfaces, parameters.count("backup_regions"))?;
    let home = planner.finish();
    let flips = Flips::new(&home, options);
    Ok(Box::new(Interlaced::new(Host::new(home, log, false), flips, options)))
}

impl Flips {
    /// Returns a map in which no bottom track is swapped.
    pub(super) fn new(home: &Home, options: MoveOptions) -> Flips {
        Flips { states: PackedStates::new(home.bottoms() as usize), options }
    }

    /// Returns whether the bottom track with the number `bottom` is swapped with a top track.
    #[inline]
    pub(super) fn is_flipped(&self, bottom: u32) -> bool {
        self.states.get(bottom as usize) != 0
    }

    /// Returns whether the data whose home is the track with the number `index` lie on a bottom track, at least in
    /// part. For a bottom track this is whether it is not swapped, for a top track whether it is.
    pub(super) fn lies_on_bottom(&self, home: &Home, index: u32) -> bool {
        let (track, surface) = home.track_at(index);
        match Home::is_top(track) {
            true => self.bottom_of(home, track, surface).is_some(),
            false => self.flip_of(home, track, surface).is_none(),
        }
    }

    #[inline]
    fn flip_of(&self, home: &Home, radial_track: u32, surface: u8) -> Option<Flip> {
        Flip::of(self.states.get(home.bottom_index(radial_track, surface) as usize))
    }

    /// Returns the bottom that a top is swapped with, and how.
    #[inline]
    fn bottom_of(&self, home: &Home, top: u32, surface: u8) -> Option<(u32, Flip)> {
        let outer = self.flip_of(home, top - 1, surface).filter(|flip| flip.inner).map(|flip| (top - 1, flip));
        outer.or_else(|| {
            let bottom = Some(top + 1).filter(|&bottom| bottom < home.disk().geometry.radial_tracks())?;
            self.flip_of(home, bottom, surface).filter(|flip| !flip.inner).map(|flip| (bottom, flip))
        })
    }

    /// Returns the part of a track that holds its sector `sector`.
    #[inline]
    fn part_of(&self, home: &Home, track: &Track, sector: u32) -> TrackPart {
        let (radial_track, surface) = (track.radial_track, track.surface);
        let is_top = Home::is_top(radial_track);
        let whole = TrackPart { first: 0, end: track.sectors, partner: None };
        let (flip, partner) = if is_top {
            let Some((bottom, flip)) = self.bottom_of(home, radial_track, surface) else { return whole };
            (flip, bottom)
        } else {
            let Some(flip) = self.flip_of(home, radial_track, surface) else { return whole };
            (flip, flip.top(radial_track).expect("invariant 1: a flip has a top"))
        };
        let partner = home.track(partner, surface).expect("invariant 1: both tracks are on the surface");
        let partner = Track::of(&partner);
        let (first, there, sectors) = if is_top {
            let (sectors, bottom_first, top_first) = flip.sectors(&partner, track);
            (top_first, bottom_first, sectors)
        } else {
            let (sectors, bottom_first, top_first) = flip.sectors(track, &partner);
            (bottom_first, top_first, sectors)
        };
        if sector < first {
            TrackPart { end: first, ..whole }
        } else if sector < first + sectors {
            TrackPart { first, end: first + sectors, partner: Some((partner, there)) }
        } else {
            TrackPart { first: first + sectors, ..whole }
        }
    }

    /// Returns the number of sectors that the host wrote to the track with the number `track` in the interval, all
    /// parts together. `heat` must be sorted.
    pub(super) fn sectors(heat: &HeatLog, track: u32) -> u32 {
        heat.sectors_in(track << PART_BITS, (track + 1) << PART_BITS)
    }

    /// Returns the number of sectors that `flips` flips at a bottom write.
    fn written(&self, home: &Home, radial_track: u32, surface: u8, flips: u64) -> u64 {
        let tracks = if self.options.power_safe { FLIPPED_TRACKS } else { FLIPPED_TRACKS - 1 };
        let bottom = home.track(radial_track, surface).expect("every bottom is on the disk");
        flips * tracks * bottom.track_sectors as u64
    }

    /// Returns how a bottom will be flipped once `moves` are made.
    fn flip_after(&self, home: &Home, moves: &[Move], radial_track: u32, surface: u8) -> Option<Flip> {
        let bottom = home.bottom_index(radial_track, surface);
        let planned = moves.iter().rev().find(|planned| planned.bottom == bottom);
        planned.map_or_else(|| self.flip_of(home, radial_track, surface), |planned| planned.to)
    }

    /// Returns the bottom that a top will be swapped with once `moves` are made.
    fn bottom_after(&self, home: &Home, moves: &[Move], top: u32, surface: u8) -> Option<u32> {
        let last = home.disk().geometry.radial_tracks() - 1;
        let beside = [(top - 1, true), (top + 1, false)].into_iter().filter(|&(bottom, _)| bottom <= last);
        let mut flipped = beside.filter(|&(bottom, inner)| {
            self.flip_after(home, moves, bottom, surface).is_some_and(|flip| flip.inner == inner)
        });
        flipped.next().map(|(bottom, _)| bottom)
    }

    /// Adds to `moves` the swaps that bring the data of the hot track `hot`, which lie on a bottom track, to a top
    /// track, if they pay. The moves that `moves` already holds are taken into account. Adds none if no swap pays.
    pub(super) fn choose(&self, home: &Home, heat: &HeatLog, hot: Heat, moves: &mut Vec<Move>) {
        let (track, surface) = home.track_at(hot.key);
        if !Home::is_top(track) {
            if self.flip_after(home, moves, track, surface).is_none() {
                self.choose_top(home, heat, hot, moves);
            }
            return;
        }
        let Some(bottom) = self.bottom_after(home, moves, track, surface) else { return };
        let displaced = Flips::sectors(heat, home.track_index(bottom, surface));
        if self.options.pays(hot.sectors, displaced, self.written(home, bottom, surface, 1)) {
            moves.push(Move { bottom: home.bottom_index(bottom, surface), to: None });
        }
    }

    /// Adds the moves that flip a hot bottom with a neighbour that is cold enough. Prefers a free neighbour to one that
    /// must be flipped back first, then the colder one.
    fn choose_top(&self, home: &Home, heat: &HeatLog, hot: Heat, moves: &mut Vec<Move>) {
        let (track, surface) = home.track_at(hot.key);
        let mut tops = Vec::with_capacity(2);
        for inner in [true, false] {
            let top = Flip { inner, high: false }.top(track).filter(|&top| holds_data(home, top, surface));
            let Some(top) = top else { continue };
            let displaced = self.bottom_after(home, moves, top, surface);
            let sectors = |track: u32| Flips::sectors(heat, home.track_index(track, surface));
            let cold = sectors(top).max(displaced.map_or(0, sectors));
            let flips = 1 + u64::from(displaced.is_some());
            if self.options.pays(hot.sectors, cold, self.written(home, track, surface, flips)) {
                tops.push((displaced.is_some(), cold, !inner, displaced));
            }
        }
        let Some((_, _, outer, displaced)) = tops.into_iter().min() else { return };
        if let Some(displaced) = displaced {
            moves.push(Move { bottom: home.bottom_index(displaced, surface), to: None });
        }
        let (low_key, high_key) = (hot.key << PART_BITS | 1, hot.key << PART_BITS | 2);
        let high = heat.sectors_in(high_key, high_key + 1) > heat.sectors_in(low_key, low_key + 1);
        moves.push(Move { bottom: home.bottom_index(track, surface), to: Some(Flip { inner: !outer, high }) });
    }

    /// Adds the transfers that swap a bottom with a top. `flip` is the new state of the bottom, or the old one for a
    /// flip back.
    fn push_swap(&self, home: &Home, bottom: &Track, top: &Track, flip: Flip, transfers: &mut Transfers) {
        let (sectors, bottom_first, top_first) = flip.sectors(bottom, top);
        let low = Span { track: *bottom, first: bottom_first, end: bottom_first + sectors };
        let high = Span { track: *top, first: top_first, end: top_first + sectors };
        let (mut faced, mut kept) = (Vec::new(), Vec::new());
        home.push_faced(&[TrackRun::on(bottom, low.first, low.end, Lba(0))], &mut faced);
        for span in &faced {
            // The swapped sectors are transferred anyway, so they are not among those to be rewritten.
            let (before, after) = match span.track == high.track {
                true => (span.end.min(high.first), span.first.max(high.end)),
                false => (span.end, span.end),
            };
            for kept_span in [Span { end: before, ..*span }, Span { first: after, ..*span }] {
                push_runs_at(self, home, &kept_span, &mut kept);
            }
        }
        transfers.push_kept(&kept);
        self.push_moved(home, &low, high.extent().start, false, true, transfers);
        self.push_moved(home, &high, low.extent().start, true, self.options.power_safe, transfers);
        transfers.lock(bottom.surface, bottom.radial_track.saturating_sub(1), bottom.radial_track + 1);
        transfers.set_radial_track(bottom.radial_track);
    }

    fn push_moved(&self, home: &Home, from: &Span, to: Pba, to_bottom: bool, saved: bool, transfers: &mut Transfers) {
        let mut runs = Vec::new();
        push_runs_at(self, home, from, &mut runs);
        for run in runs {
            let to = to + (run.pba - from.extent().start);
            transfers.push(Transfer { from: run, to, to_bottom, saved, timing: Timing::Normal });
        }
    }
}

/// Returns whether a track exists on the surface and is not set aside.
fn holds_data(home: &Home, radial_track: u32, surface: u8) -> bool {
    home.track(radial_track, surface).is_some_and(|place| home.lba(place.track_start).is_some())
}

impl Translation for Flips {
    type Move = Move;

    fn name(&self) -> &'static str {
        INFO.name
    }

    fn is_power_safe(&self) -> bool {
        self.options.power_safe
    }

    #[inline]
    fn run_of(&self, home: &Home, lba: Lba) -> TrackRun {
        let place = home.locate(home.pba(lba));
        let own = Track::of(&place);
        let part = self.part_of(home, &own, place.sector);
        let heat = home.track_index(place.radial_track, place.surface) << PART_BITS;
        let (track, first) = part.partner.unwrap_or((own, part.first));
        let lba = Lba(lba.0 - (place.sector - part.first) as u64);
        TrackRun { heat, ..TrackRun::on(&track, first, first + (part.end - part.first), lba) }
    }

    #[inline]
    fn run_at(&self, home: &Home, track: &Track, sector: u32) -> Option<TrackRun> {
        let part = self.part_of(home, track, sector);
        let (owner, first) = part.partner.unwrap_or((*track, part.first));
        let lba = home.lba(owner.start + Sectors(first as u64))?;
        Some(TrackRun::on(track, part.first, part.end, lba))
    }

    /// Returns the heat key of a run. Writes to a bottom are counted for each half of the track, which determines the
    /// end to be swapped.
    #[inline]
    fn heat(&self, run: &TrackRun) -> u32 {
        let is_bottom = !Home::is_top(run.radial_track);
        let is_high = 2 * run.sector >= run.track_sectors;
        run.heat + if is_bottom { 1 + u32::from(is_high) } else { 0 }
    }

    fn select(&mut self, home: &Home, heat: &HeatLog, moves: &mut Vec<Move>) {
        let candidates = heat.counts(PART_BITS).filter(|heat| self.lies_on_bottom(home, heat.key));
        for hot in HeatLog::hottest(candidates, self.options.hot_tracks) {
            self.choose(home, heat, hot, moves);
        }
    }

    fn prepare(&self, home: &Home, chosen: Move, transfers: &mut Transfers) -> bool {
        let (track, surface) = home.bottom_at(chosen.bottom);
        let now = self.flip_of(home, track, surface);
        let Some(flip) = chosen.to.or(now).filter(|_| chosen.to.is_some() != now.is_some()) else { return false };
        let Some(top) = flip.top(track).filter(|&top| holds_data(home, top, surface)) else { return false };
        if chosen.to.is_some() && self.bottom_of(home, top, surface).is_some() {
            return false;
        }
        let track_at = |track| Track::of(&home.track(track, surface).expect("both tracks are on the surface"));
        self.push_swap(home, &track_at(track), &track_at(top), flip, transfers);
        true
    }

    fn commit(&mut self, _home: &Home, chosen: Move, plan: &mut Plan) {
        let state = chosen.to.map_or(0, Flip::state);
        self.states.set(chosen.bottom as usize, state);
        plan.note(Record::Flipped { bottom: chosen.bottom, state: u32::from(state) }.encode());
    }

    fn replay(&mut self, home: &Home, note: &Note) -> Result<bool, ReplayError> {
        let Record::Flipped { bottom, state } = Record::decode(note)?;
        if bottom as usize >= home.bottoms() as usize || state > STATE_MAX {
            return Err(note.refuse(format!("there are {} bottom tracks, and states to {STATE_MAX}", home.bottoms())));
        }
        self.states.set(bottom as usize, state as u8);
        Ok(true)
    }

    fn checkpoint(&self, notes: &mut Vec<Note>) {
        let flipped = self.states.set_values();
        notes.extend(flipped.map(|(bottom, state)| Record::Flipped { bottom, state: u32::from(state) }.encode()));
    }

    fn self_check(&self, home: &Home) -> Result<(), Violation> {
        for (index, state) in self.states.set_values() {
            let (track, surface) = home.bottom_at(index);
            let top = Flip::of(state).and_then(|flip| flip.top(track)).filter(|&top| holds_data(home, top, surface));
            let claims = |top: u32| {
                [top - 1, top + 1].into_iter().filter(move |&bottom| self.claims(home, bottom, top, surface))
            };
            let is_alone = top.is_some_and(|top| claims(top).eq([track]));
            if !is_alone {
                let detail = format!("bottom track {track} of surface {surface} in state {state} has no top to itself");
                return Err(Violation { layer: INFO.name, invariant: 1, detail });
            }
        }
        Ok(())
    }

    fn formula_bytes(&self, tracks: u64) -> u64 {
        packed_bytes(tracks.div_ceil(2))
    }

    fn measured_bytes(&self) -> u64 {
        self.states.measured_bytes()
    }
}

impl Flips {
    /// Returns whether the state of `bottom` says that it is swapped with `top`.
    fn claims(&self, home: &Home, bottom: u32, top: u32, surface: u8) -> bool {
        bottom < home.disk().geometry.radial_tracks()
            && self.flip_of(home, bottom, surface).and_then(|flip| flip.top(bottom)) == Some(top)
    }
}

#[cfg(test)]
mod tests;
