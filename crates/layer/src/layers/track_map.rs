//! `track-map`: any permutation of pseudo-tracks within zones of 256 pseudo-tracks (Hajkazemi 2019 §2.4). After every
//! `interval` host writes the hottest pseudo-tracks on bottoms are swapped with the coldest on tops of their zone.
//! Other bottoms are written as in `imr-rmw`.
//!
//! A swap of a hot pseudo-track T on bottoms, whose neighbours are T−1 and T+1, with a cold T' on tops:
//!
//! ```text
//!   phase 1: read T−1, T, T+1 · back all three up
//!   phase 2: read T' · write T' to T's place · rewrite T−1, T+1      T is in the backup region alone: a read goes there
//!   phase 3: write T to T's new place
//! ```
//!
//! After phase 2 the data of T are only in the backup region, and reads of T go there.
//!
//! Cost: 5 t_seek + 13 t_rot, where t_seek is the time of a seek and t_rot that of a rotation. Two of the rotations are
//! four waits of half a rotation each, because pseudo-tracks do not begin where tracks do.
//!
//! Among equally cold pseudo-tracks a neighbour of T is preferred as T'. Then T' is backed up with T, and phases 2 and
//! 3 are one: 3 t_seek + 9 t_rot and the waits.
//!
//! Invariants:
//! 1. The places of a zone's pseudo-tracks are a permutation.
//! 2. At most one pseudo-track has its data only in the backup region.

use std::collections::BTreeMap;

use imbrex_disk::{Lba, Pba, Sectors};

use super::interlaced::backup::BackupLog;
use super::interlaced::driver::Interlaced;
use super::interlaced::heat::{Heat, HeatLog};
use super::interlaced::home::{Home, Planner};
use super::interlaced::host::{Host, merge, push_runs_at};
use super::interlaced::map_zones::{MapZone, MapZones, ZonePiece};
use super::interlaced::moves::{Timing, Transfer, Transfers};
use super::interlaced::options::{MoveOptions, OF_MOVES};
use super::interlaced::record::{self, FIRST_LAYER_TAG};
use super::interlaced::{Span, Track, TrackRun, Translation};
use crate::context::Context;
use crate::info::LayerInfo;
use crate::journal_records;
use crate::layer::Layer;
use crate::map::sparse::Sparse;
use crate::parameters::ConfigError;
use crate::plan::note::{Note, ReplayError};
use crate::plan::{Cause, GroupKind, Plan};
use crate::violation::Violation;

journal_records! {
    /// The kinds of journal record of `track-map`: changes of the places of pseudo-tracks. Pseudo-tracks and places are
    /// numbered within their zone; each pair has the value of the hot pseudo-track first.
    pub(super) enum Record of "track-map" {
        FIRST_LAYER_TAG => Swapped { zone: u32, hot_and_cold: (u16, u16), places: (u16, u16) }
            "two pseudo-tracks have changed places",
        FIRST_LAYER_TAG + 1 => Displaced { zone: u32, hot_and_cold: (u16, u16), places: (u16, u16), backup_pba: Pba }
            "two pseudo-tracks have changed places, and the hot one is still in the backup",
        FIRST_LAYER_TAG + 2 => Placed {} "the displaced pseudo-track is in its place",
    }
}

/// Description of the layer `track-map` for the registry: on an interlaced disk, hot pseudo-tracks on bottom tracks are
/// swapped with cold ones on top tracks of their zone of 256 pseudo-tracks.
pub const INFO: LayerInfo = LayerInfo {
    name: "track-map",
    summary: "interlaced disk: any permutation of pseudo-tracks within zones of 256",
    recordings: &["interlaced"],
    host_managed: false,
    mapping_unit: "pseudo-track",
    source: "Hajkazemi 2019 §2.4",
    parameters: &OF_MOVES,
    records: &[record::Record::INFO, Record::INFO],
    toys: &[
        "interval=12,background_every=3,payback=0,hotness=reset,watch=0",
        "interval=7,background_every=1,backup_regions=1,hot_tracks=2,payback=0,hotness=reset,watch=0",
        "interval=9,hotness=decay,payback=0,watch=0",
    ],
    build,
};

/// Number of pieces that a swap writes: three copies, both pieces, and the tops beside the hot one, of which the cold
/// one may be one.
const SWAPPED_PIECES: u64 = 6;

/// Type that stores the place of a piece. A heat key holds the number of a piece in as many bits as this type has,
/// below the number of the zone.
pub(super) trait PlaceNumber: Copy + Eq + Into<u16> + std::fmt::Debug + Send + 'static {
    /// Number of bits of the type.
    const BITS: u32;

    /// Converts the number of a place, which must fit in [`PlaceNumber::BITS`].
    fn of(place: u16) -> Self;
}

impl PlaceNumber for u8 {
    const BITS: u32 = u8::BITS;

    #[inline]
    fn of(place: u16) -> u8 {
        place as u8
    }
}

impl PlaceNumber for u16 {
    const BITS: u32 = u16::BITS;

    #[inline]
    fn of(place: u16) -> u16 {
        place
    }
}

/// A background move: two pseudo-tracks of a zone, given by their home numbers, swap their places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Move {
    zone: u32,
    hot: u16,
    cold: u16,
}

/// A pseudo-track whose data are only in the backup region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Away {
    moved: Move,
    backup: Pba,
}

/// Effect of writing a pseudo-track on bottoms on one that lies on tops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Relation {
    /// Writing the bottoms leaves the other pseudo-track intact.
    Apart,
    /// Writing the bottoms destroys all of the other pseudo-track.
    Beside,
    /// Writing the bottoms destroys a part of the other pseudo-track.
    Partly,
}

/// The map of the places of all pieces (pseudo-tracks or blocks) of the disk. Places are stored as numbers of type `N`.
pub(super) struct Map<N> {
    /// The layer's name in the registry.
    name: &'static str,
    zones: MapZones,
    /// For each zone, the place of each piece, both by home number; `None` if no piece of the zone was ever moved.
    places: Vec<Option<Sparse<N>>>,
    /// Length of the longest track in pieces, rounded up.
    pieces_of_track: u64,
    away: Option<Away>,
    options: MoveOptions,
}

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    let (disk, parameters) = (&context.disk, &context.parameters);
    let options = MoveOptions::new(parameters)?;
    let mut planner = Planner::new(disk)?;
    let (tracks, surfaces) = (disk.geometry.radial_tracks(), disk.geometry.surfaces());
    let log = BackupLog::set_aside(&mut planner, tracks, surfaces, parameters.count("backup_regions"))?;
    let home = planner.finish();
    let map = Map::<u8>::new(INFO.name, MapZones::new(&home), options);
    Ok(Box::new(Interlaced::new(Host::new(home, log, false), map, options)))
}

impl<N: PlaceNumber> Map<N> {
    /// Returns a map in which every piece is at home, for the layer called `name`. A zone must not have more pieces
    /// than `N` can number.
    pub(super) fn new(name: &'static str, zones: MapZones, options: MoveOptions) -> Map<N> {
        let places = vec![None; zones.count()];
        let pieces_of_track = zones.pieces_of_track();
        Map { name, zones, places, pieces_of_track, away: None, options }
    }

    /// Returns the table of places of a zone, or `None` if no piece of the zone was ever moved.
    #[inline]
    fn places_of(&self, zone: u32) -> Option<&Sparse<N>> {
        self.places[zone as usize].as_ref()
    }

    #[inline]
    fn place_of(&self, zone: u32, piece: u16) -> u16 {
        self.places_of(zone).and_then(|places| places.get(piece as usize)).map_or(piece, |&place| place.into())
    }

    fn set_place(&mut self, zone: u32, piece: u16, place: u16) {
        let pieces = self.zones.zone(zone).pieces;
        let places = self.places[zone as usize].get_or_insert_with(|| Sparse::new(pieces as usize));
        *places.change(piece as usize, |piece| N::of(piece as u16)) = N::of(place);
    }

    /// Returns the numbers of consecutive pieces before and after `piece` that also lie directly before and after it,
    /// at most as many as a track can hold. Returns zeros for pseudo-tracks, which are as long as tracks.
    #[inline]
    fn neighbours(&self, piece: &ZonePiece) -> (u64, u64) {
        if N::BITS == u8::BITS {
            return (0, 0);
        }
        let zone = self.zones.zone(piece.zone);
        let (at, reach) = (self.place_of(piece.zone, piece.home), self.pieces_of_track as u16);
        let room = |index: u16| if index < zone.bottoms { (0, zone.bottoms) } else { (zone.bottoms, zone.pieces) };
        let ((home_first, home_end), (first, end)) = (room(piece.home), room(at));
        let before_max = reach.min(piece.home - home_first).min(at - first);
        let after_max = reach.min(home_end - 1 - piece.home).min(end - 1 - at);
        let follows_before = |&back: &u16| self.place_of(piece.zone, piece.home - back) == at - back;
        let follows_after = |&ahead: &u16| self.place_of(piece.zone, piece.home + ahead) == at + ahead;
        let before = (1..=before_max).take_while(follows_before).count();
        let after = (1..=after_max).take_while(follows_after).count();
        let away = self.away.filter(|away| away.moved.zone == piece.zone).map(|away| away.moved.hot);
        match away {
            // A piece that is only in the backup region is not a neighbour of any piece.
            Some(away) => (
                (before as u16).min(piece.home.checked_sub(away + 1).unwrap_or(before as u16)) as u64,
                (after as u16).min(away.checked_sub(piece.home + 1).unwrap_or(after as u16)) as u64,
            ),
            None => (before as u64, after as u64),
        }
    }

    /// Returns the piece that lies at a place.
    #[inline]
    fn piece_at(&self, zone: u32, place: u16) -> u16 {
        if self.place_of(zone, place) == place {
            return place;
        }
        let wanted = N::of(place);
        // Searches page by page: the compiler turns the comparison of a page into a few vector instructions.
        let places = self.places_of(zone).expect("a piece that has moved is in a table");
        let holds = |page: &[N]| page.iter().fold(false, |found, &at| found | (at == wanted));
        let mut made = places.pages().filter_map(|(pieces, page)| Some((pieces.start, page?)));
        let (first, page) = made.find(|(_, page)| holds(page)).expect("invariant 1: every place is some piece's");
        let within = page.iter().position(|&at| at == wanted).expect("found in this page");
        (first + within) as u16
    }

    /// Returns the run on a track around its sector `track_sector`. That sector is sector `sector` of a stretch of
    /// homes, which is `sectors` long and holds the logical sectors from `lba_start` on.
    #[inline]
    fn run_on(track: &Track, track_sector: u32, sector: u64, sectors: u64, lba_start: Lba) -> TrackRun {
        let before = sector.min(track_sector as u64);
        let after = (sectors - sector).min((track.sectors - track_sector) as u64);
        let first = track_sector - before as u32;
        TrackRun::on(track, first, track_sector + after as u32, lba_start + Sectors(sector - before))
    }

    /// Returns the run on a track around its sector `track_sector`, which holds an LBA that belongs to no piece.
    #[cold]
    fn left_over(&self, home: &Home, lba: Lba, track: &Track, track_sector: u32) -> TrackRun {
        let (start, end) = self.zones.left_over(lba, home.capacity());
        Self::run_on(track, track_sector, (lba - start).0, (end - start).0, start)
    }

    /// Returns the run of a pseudo-track whose data are only in the backup region.
    #[cold]
    fn run_away(&self, home: &Home, away: &Away, piece: &ZonePiece) -> TrackRun {
        let place = home.locate(away.backup + Sectors(piece.sector as u64));
        let after = (piece.sectors - piece.sector).min(place.track_sectors - place.sector);
        let lba = self.zones.start(piece.zone, piece.home) + Sectors(piece.sector as u64);
        TrackRun { harmless: true, ..TrackRun::on(&Track::of(&place), place.sector, place.sector + after, lba) }
    }

    /// Adds all runs of a pseudo-track to `runs`.
    fn push_runs(&self, home: &Home, zone: u32, piece: u16, runs: &mut Vec<TrackRun>) {
        let mut lba = self.zones.start(zone, piece);
        let end = lba + Sectors(self.zones.zone(zone).piece_sectors as u64);
        while lba < end {
            let run = self.run_of(home, lba).part(lba, end);
            lba = run.end();
            runs.push(run);
        }
    }

    /// Returns the spans on tops that writing the runs `written` on bottoms destroys.
    fn faced_by(&self, home: &Home, written: &[TrackRun]) -> Vec<Span> {
        let mut faced = Vec::new();
        home.push_faced(written, &mut faced);
        merge(&mut faced);
        faced
    }

    fn relation(faced: &[Span], cold: &[TrackRun]) -> Relation {
        let lost = |run: &TrackRun| {
            let parts = faced.iter().filter_map(|span| span.extent().intersection(run.extent()));
            parts.map(|part| part.sectors.0).sum::<u64>()
        };
        let (lost, all) = (cold.iter().map(lost).sum::<u64>(), cold.iter().map(|run| run.sectors as u64).sum::<u64>());
        match lost {
            0 => Relation::Apart,
            lost if lost == all => Relation::Beside,
            _ => Relation::Partly,
        }
    }

    /// Calls `visit` with each pseudo-track of a zone that lies on tops, and its place.
    #[inline]
    fn for_each_on_tops(&self, zone: u32, mut visit: impl FnMut(u16, u16)) {
        let MapZone { bottoms, pieces, .. } = *self.zones.zone(zone);
        let Some(places) = self.places_of(zone) else { return (bottoms..pieces).for_each(|piece| visit(piece, piece)) };
        for (numbers, page) in places.pages() {
            let (first, end) = (numbers.start as u16, numbers.end as u16);
            match page {
                None => (first.max(bottoms)..end).for_each(|piece| visit(piece, piece)),
                Some(page) => {
                    let placed = (first..end).zip(page.iter().map(|&place| place.into()));
                    placed.filter(|&(_, place)| place >= bottoms).for_each(|(piece, place)| visit(piece, place));
                }
            }
        }
    }

    /// Returns the relation of each pseudo-track of a zone to the destroyed spans `faced`, if it lies in them at all.
    /// The other pseudo-tracks of the zone are [`Relation::Apart`].
    fn touched(&self, home: &Home, zone: u32, faced: &[Span]) -> BTreeMap<u16, Relation> {
        let mut runs = Vec::new();
        faced.iter().for_each(|span| push_runs_at(self, home, span, &mut runs));
        let mut lost: BTreeMap<u16, u32> = BTreeMap::new();
        for run in runs {
            if let Some(piece) = self.zones.piece_of(run.lba).filter(|piece| piece.zone == zone) {
                *lost.entry(piece.home).or_default() += run.sectors;
            }
        }
        let all = self.zones.zone(zone).piece_sectors;
        let relation = |lost| if lost == all { Relation::Beside } else { Relation::Partly };
        lost.into_iter().map(|(piece, lost)| (piece, relation(lost))).collect()
    }

    /// Returns the coldest pseudo-track on tops to swap with a hot one: the sectors written to it, whether it is not a
    /// neighbour of the hot one, and its number. Among equally cold ones prefers a neighbour, then the lowest place.
    fn choose_cold(&self, home: &Home, heat: &HeatLog, hot: Move, moves: &[Move]) -> Option<(u32, bool, u16)> {
        let zone = self.zones.zone(hot.zone);
        let mut sectors = vec![0u32; zone.pieces as usize];
        for counted in heat.counts_in(hot.zone << N::BITS, (hot.zone + 1) << N::BITS) {
            sectors[(counted.key & ((1 << N::BITS) - 1)) as usize] = counted.sectors;
        }
        let mut hot_runs = Vec::new();
        self.push_runs(home, hot.zone, hot.hot, &mut hot_runs);
        let touched = self.touched(home, hot.zone, &self.faced_by(home, &hot_runs));
        let mut is_barred = vec![false; zone.pieces as usize];
        moves
            .iter()
            .filter(|planned| planned.zone == hot.zone)
            .for_each(|chosen| is_barred[chosen.cold as usize] = true);
        for (&piece, _) in touched.iter().filter(|&(_, &relation)| relation == Relation::Partly) {
            is_barred[piece as usize] = true;
        }
        let mut best = None;
        self.for_each_on_tops(hot.zone, |cold, place| {
            let cold_sectors = sectors[cold as usize];
            // Nearly all pseudo-tracks are hotter than the coldest found so far, or have a higher place, and are
            // skipped here.
            if is_barred[cold as usize] || best.is_some_and(|best| best <= (cold_sectors, false, place, 0)) {
                return;
            }
            let candidate = (cold_sectors, !touched.contains_key(&cold), place, cold);
            if best.is_none_or(|best| candidate < best) {
                best = Some(candidate);
            }
        });
        best.map(|(sectors, is_apart, _, cold)| (sectors, is_apart, cold))
    }

    /// Adds transfers that copy the runs `from` to the places of the runs `to`, which have the same total length.
    fn push_moved(from: &[TrackRun], to: &[TrackRun], transfer: Transfer, transfers: &mut Transfers) {
        let (mut from, mut to) = (from.iter().copied(), to.iter().copied());
        let (mut source, mut target) = (from.next(), to.next());
        while let (Some(run), Some(place)) = (source, target) {
            let sectors = run.sectors.min(place.sectors);
            let cut =
                |run: TrackRun| (run.sectors > sectors).then(|| run.part(run.lba + Sectors(sectors as u64), run.end()));
            let first = run.part(run.lba, run.lba + Sectors(sectors as u64));
            transfers.push(Transfer { from: first, to: place.pba, ..transfer });
            source = cut(run).or_else(|| from.next());
            target = cut(place).or_else(|| to.next());
        }
    }

    fn lock(runs: &[TrackRun], reach: u32, transfers: &mut Transfers) {
        let first = runs.iter().map(|run| run.radial_track).min().expect("a pseudo-track has a run");
        let last = runs.iter().map(|run| run.radial_track).max().expect("a pseudo-track has a run");
        transfers.lock(runs[0].surface, first.saturating_sub(reach), last + reach);
    }

    /// Returns the present places of both pseudo-tracks of a move.
    fn places(&self, moved: Move) -> (u16, u16) {
        (self.place_of(moved.zone, moved.hot), self.place_of(moved.zone, moved.cold))
    }

    fn swapped(&self, moved: Move) -> Note {
        let (hot_and_cold, places) = ((moved.hot, moved.cold), self.places(moved));
        Record::Swapped { zone: moved.zone, hot_and_cold, places }.encode()
    }

    fn displaced(&self, moved: Move, backup_pba: Pba) -> Note {
        let (hot_and_cold, places) = ((moved.hot, moved.cold), self.places(moved));
        Record::Displaced { zone: moved.zone, hot_and_cold, places, backup_pba }.encode()
    }

    fn swap(&mut self, moved: Move) {
        let places = [self.place_of(moved.zone, moved.hot), self.place_of(moved.zone, moved.cold)];
        self.set_place(moved.zone, moved.hot, places[1]);
        self.set_place(moved.zone, moved.cold, places[0]);
    }
}

impl<N: PlaceNumber> Translation for Map<N> {
    type Move = Move;

    fn name(&self) -> &'static str {
        self.name
    }

    #[inline]
    fn run_of(&self, home: &Home, lba: Lba) -> TrackRun {
        let Some(piece) = self.zones.piece_of(lba) else {
            let place = home.locate(home.pba(lba));
            return self.left_over(home, lba, &Track::of(&place), place.sector);
        };
        if let Some(away) = &self.away
            && (piece.zone, piece.home) == (away.moved.zone, away.moved.hot)
        {
            return self.run_away(home, away, &piece);
        }
        let place = self.place_of(piece.zone, piece.home);
        let lba_start = Lba(lba.0 - piece.sector as u64);
        let start = if place == piece.home { lba_start } else { self.zones.start(piece.zone, place) };
        let heat = piece.zone << N::BITS | piece.home as u32;
        let place = home.locate(home.pba(start + Sectors(piece.sector as u64)));
        let (before, after) = self.neighbours(&piece);
        let lba_start = Lba(lba_start.0 - before * piece.sectors as u64);
        let sector = piece.sector as u64 + before * piece.sectors as u64;
        let sectors = (before + 1 + after) * piece.sectors as u64;
        TrackRun { heat, ..Self::run_on(&Track::of(&place), place.sector, sector, sectors, lba_start) }
    }

    #[inline]
    fn run_at(&self, home: &Home, track: &Track, sector: u32) -> Option<TrackRun> {
        let lba = Lba(home.lba(track.start)?.0 + sector as u64);
        let Some(place) = self.zones.piece_of(lba) else { return Some(self.left_over(home, lba, track, sector)) };
        let piece = self.piece_at(place.zone, place.home);
        let start = match piece == place.home {
            true => Lba(lba.0 - place.sector as u64),
            false => self.zones.start(place.zone, piece),
        };
        Some(Self::run_on(track, sector, place.sector as u64, place.sectors as u64, start))
    }

    fn select(&mut self, home: &Home, heat: &HeatLog, moves: &mut Vec<Move>) {
        let split = |key: u32| (key >> N::BITS, (key & ((1 << N::BITS) - 1)) as u16);
        let lies_on_bottom = |heat: &Heat| {
            let (zone, piece) = split(heat.key);
            let is_away = self.away.is_some_and(|away| (away.moved.zone, away.moved.hot) == (zone, piece));
            !is_away && self.place_of(zone, piece) < self.zones.zone(zone).bottoms
        };
        let candidates = heat.counts(0).filter(lies_on_bottom);
        for Heat { key, sectors } in HeatLog::hottest(candidates, self.options.hot_tracks) {
            let (zone, hot) = split(key);
            let chosen = Move { zone, hot, cold: hot };
            let Some((displaced, is_apart, cold)) = self.choose_cold(home, heat, chosen, moves) else { continue };
            let pieces = SWAPPED_PIECES + u64::from(is_apart);
            if self.options.pays(sectors, displaced, pieces * self.zones.zone(zone).piece_sectors as u64) {
                moves.push(Move { cold, ..chosen });
            }
        }
    }

    fn prepare(&self, home: &Home, chosen: Move, transfers: &mut Transfers) -> bool {
        let Move { zone, hot, cold } = chosen;
        let bottoms = self.zones.zone(zone).bottoms;
        if self.place_of(zone, hot) >= bottoms || self.place_of(zone, cold) < bottoms {
            return false;
        }
        let (mut hot_runs, mut cold_runs, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        self.push_runs(home, zone, hot, &mut hot_runs);
        self.push_runs(home, zone, cold, &mut cold_runs);
        let faced = self.faced_by(home, &hot_runs);
        let relation = Self::relation(&faced, &cold_runs);
        if relation == Relation::Partly {
            return false;
        }
        faced.iter().for_each(|span| push_runs_at(self, home, span, &mut kept));
        kept.retain(|run| !(overlaps_any(&cold_runs, run)));
        let (late_read, late_write) = match relation {
            Relation::Apart => (Timing::ReadLate, Timing::WrittenLate),
            _ => (Timing::Normal, Timing::Normal),
        };
        let beside = relation == Relation::Beside;
        let (outer, inner): (Vec<TrackRun>, Vec<TrackRun>) =
            kept.into_iter().partition(|run| run.radial_track < hot_runs[0].radial_track);
        let any = Transfer { from: hot_runs[0], to: Pba(0), to_bottom: false, saved: true, timing: Timing::Normal };
        transfers.push_kept(&outer);
        Self::push_moved(&hot_runs, &cold_runs, Transfer { timing: late_write, ..any }, transfers);
        transfers.push_kept(&inner);
        let to_bottom = Transfer { to_bottom: true, saved: beside, timing: late_read, ..any };
        Self::push_moved(&cold_runs, &hot_runs, to_bottom, transfers);
        Self::lock(&hot_runs, 1, transfers);
        Self::lock(&cold_runs, 0, transfers);
        transfers.set_radial_track(hot_runs[0].radial_track);
        true
    }

    fn displace(&mut self, _home: &Home, chosen: Move, backup: Pba, plan: &mut Plan) {
        self.swap(chosen);
        self.away = Some(Away { moved: chosen, backup });
        plan.note(self.displaced(chosen, backup));
    }

    fn commit(&mut self, _home: &Home, chosen: Move, plan: &mut Plan) {
        if self.away.take().is_some() {
            plan.note(Record::Placed {}.encode());
            return;
        }
        self.swap(chosen);
        plan.note(self.swapped(chosen));
    }

    fn replay(&mut self, home: &Home, note: &Note) -> Result<bool, ReplayError> {
        let (zone, (hot, cold), places, backup) = match Record::decode(note)? {
            Record::Placed {} => {
                self.away = None;
                return Ok(true);
            }
            Record::Swapped { zone, hot_and_cold, places } => (zone, hot_and_cold, places, None),
            Record::Displaced { zone, hot_and_cold, places, backup_pba } => {
                (zone, hot_and_cold, places, Some(backup_pba))
            }
        };
        if zone >= self.zones.count() as u32 {
            return Err(note.refuse(format!("there are {} zones", self.zones.count())));
        }
        let pieces = self.zones.zone(zone).pieces;
        if [hot, cold, places.0, places.1].iter().any(|&number| number >= pieces) {
            return Err(note.refuse(format!("zone {zone} has {pieces} pseudo-tracks and as many places")));
        }
        if backup.is_some_and(|backup| backup.0 >= home.disk().geometry.sectors().0) {
            return Err(note.refuse("its backup lies past the disk"));
        }
        let moved = Move { zone, hot, cold };
        self.set_place(zone, hot, places.0);
        self.set_place(zone, cold, places.1);
        if let Some(backup) = backup {
            self.away = Some(Away { moved, backup });
        }
        Ok(backup.is_none())
    }

    fn finish_displaced(&mut self, home: &Home, plan: &mut Plan) -> bool {
        let Some(away) = self.away else { return false };
        let Move { zone, hot, .. } = away.moved;
        let mut runs = Vec::new();
        plan.open(GroupKind::Recovery);
        self.push_runs(home, zone, hot, &mut runs);
        for run in runs.drain(..) {
            plan.read(Cause::Recovery, run.pba, run.lba, Sectors(run.sectors as u64));
        }
        self.away = None;
        self.push_runs(home, zone, hot, &mut runs);
        for run in runs {
            plan.write(Cause::Recovery, run.pba, run.lba, Sectors(run.sectors as u64));
        }
        plan.barrier();
        plan.note(Record::Placed {}.encode());
        plan.barrier();
        true
    }

    fn checkpoint(&self, notes: &mut Vec<Note>) {
        for zone in 0..self.zones.count() as u32 {
            let pieces = if self.places_of(zone).is_some() { self.zones.zone(zone).pieces } else { 0 };
            let moved = (0..pieces).filter(|&piece| self.place_of(zone, piece) != piece);
            notes.extend(moved.map(|piece| self.swapped(Move { zone, hot: piece, cold: piece })));
        }
        notes.extend(self.away.map(|away| self.displaced(away.moved, away.backup)));
    }

    fn self_check(&self, _home: &Home) -> Result<(), Violation> {
        for zone in 0..self.zones.count() as u32 {
            if self.places_of(zone).is_none() {
                continue;
            }
            let mut seen = vec![false; 1 << N::BITS];
            let mut places = (0..self.zones.zone(zone).pieces).map(|piece| self.place_of(zone, piece));
            if let Some(place) = places.find(|&place| std::mem::replace(&mut seen[place as usize], true)) {
                let detail = format!("two pieces of zone {zone} are at place {place}");
                return Err(Violation { layer: self.name, invariant: 1, detail });
            }
        }
        Ok(())
    }

    fn moves_pseudo_tracks(&self) -> bool {
        true
    }

    /// Returns the bytes of a table with one place for each piece. For pseudo-tracks a place takes 8 bits: the paper's
    /// zones hold 256 tracks. For blocks it takes the bits of `N`.
    fn formula_bytes(&self, tracks: u64) -> u64 {
        tracks * self.pieces_of_track * N::BITS as u64 / 8
    }

    fn measured_bytes(&self) -> u64 {
        let moved: u64 = self.places.iter().flatten().map(Sparse::measured_bytes).sum();
        (self.places.capacity() * size_of::<Option<Sparse<N>>>()) as u64 + moved + self.zones.measured_bytes()
    }
}

/// Returns whether `run` overlaps one of `runs`.
fn overlaps_any(runs: &[TrackRun], run: &TrackRun) -> bool {
    runs.iter().any(|cold| cold.extent().intersection(run.extent()).is_some())
}

#[cfg(test)]
mod tests;
