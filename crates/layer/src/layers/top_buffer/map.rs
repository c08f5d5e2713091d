//! Map of the buffered sectors of bottom tracks (or of all tracks): runs by LBA, and an inverse map from places to
//! LBAs.
//!
//! Invariants:
//! 1. Runs are disjoint. Each lies on one reserved track, and is at home on one track.
//! 2. The inverse map is exact: it lists each run at its position, and nothing else.
//! 3. The positions in use span at most the ring, and lie before its head.

use imbrex_disk::{Extent, Lba, Pba, Sectors};

use super::record::Record;
use super::rings::Rings;
use crate::layers::interlaced::home::Home;
use crate::layers::interlaced::host::{merge, push_runs_at};
use crate::layers::interlaced::moves::{Timing, Transfer, Transfers};
use crate::layers::interlaced::{Track, TrackRun, Translation};
use crate::map::extent_map::{ExtentMap, Mapped, MappedRun};
use crate::map::place_map::PlaceMap;
use crate::plan::Plan;
use crate::plan::note::{Note, ReplayError};

/// Bytes of a run in a controller's tables: five for its LBA, five for its place, two for its length, and four for the
/// list by place.
const FORMULA_BYTES_PER_RUN: u64 = 16;

/// Bits of a position. A place stores the ring above these bits in one number.
const POSITION_BITS: u32 = 42;
/// Limit of positions. A ring would have to take two pebibytes of writes to reach it, so a record with such a position
/// is corrupt.
const POSITION_MAX: u64 = 1 << POSITION_BITS;
/// Most rings.
const RINGS_MAX: u32 = 1 << (u64::BITS - 1 - POSITION_BITS);

/// A run of logical sectors whose newest contents lie in a ring of reserved tracks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffered {
    /// LBA of the first logical sector of the run.
    pub lba: u64,
    /// Number of logical sectors of the run, which lie one after the other on one reserved track.
    pub sectors: u32,
    /// Index of the ring (circular buffer of reserved tracks) that holds the run, counted from 0.
    pub ring: u32,
    /// Position of the first sector in its ring: the number of sectors that were written to the ring before it, headers
    /// included. It never wraps; the place in the ring is the position modulo the ring's length.
    pub position: u64,
}

impl Buffered {
    /// Returns the LBA one past the last logical sector of the run.
    pub fn end(&self) -> u64 {
        self.lba + self.sectors as u64
    }

    /// Returns the run's ring and position as an extent of the inverse map.
    fn place(&self) -> Extent {
        place(self.ring, self.position, u64::from(self.sectors))
    }
}

/// Returns `sectors` from `position` of a ring on as an extent of the inverse map.
fn place(ring: u32, position: u64, sectors: u64) -> Extent {
    Extent::new(Pba(u64::from(ring) << POSITION_BITS | position), Sectors(sectors))
}

impl From<MappedRun> for Buffered {
    fn from(run: MappedRun) -> Buffered {
        let Pba(place) = run.place().expect("a run of the buffer lies somewhere");
        let (ring, position) = ((place >> POSITION_BITS) as u32, place & (POSITION_MAX - 1));
        Buffered { lba: run.lba.0, sectors: run.sectors.0 as u32, ring, position }
    }
}

/// Most buffered runs that are written home at once. They are read one by one, in a phase that no host request can
/// interrupt.
const RUNS_AT_ONCE: usize = 16;

/// A background move that writes the buffered runs within a range of LBAs to their home places, which lie on one track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteHome {
    /// First LBA of the range in which buffered runs are written to their home places.
    pub start: u64,
    /// LBA one past the last one of the range in which buffered runs are written to their home places.
    pub end: u64,
}

/// The map of a write buffer: the runs of logical sectors that are buffered in rings of reserved tracks. All other
/// sectors lie at their home places.
#[derive(Clone, Debug)]
pub struct BufferMap {
    /// The layer's name in the registry.
    name: &'static str,
    /// The rings (circular buffers) of reserved top tracks, which hold the buffered sectors. A ring consists of one or
    /// several tracks.
    pub rings: Rings,
    runs: ExtentMap,
    /// Inverse map: the first LBA of the run at each place.
    places: PlaceMap,
    runs_max: u64,
    /// Whether writes to top tracks are buffered too, not only those to bottom tracks.
    pub holds_tops: bool,
}

impl BufferMap {
    /// Returns the map of an empty buffer in `rings`, for the layer called `name`. `holds_tops` says whether writes to
    /// top tracks are buffered too. The buffer should hold at most `runs_max` runs; [`BufferMap::runs_left`] tells the
    /// caller how many are left, and [`BufferMap::insert`] does not check the limit.
    ///
    /// # Panics
    ///
    /// If there are more than 2²¹ rings.
    pub fn new(name: &'static str, rings: Rings, runs_max: u64, holds_tops: bool) -> BufferMap {
        assert!(rings.count() <= RINGS_MAX, "{} rings", rings.count());
        let (runs, places) = (ExtentMap::new(), PlaceMap::default());
        BufferMap { name, rings, runs, places, runs_max, holds_tops }
    }

    /// Returns the buffered runs of all rings, in order of LBA.
    pub fn iter(&self) -> impl Iterator<Item = Buffered> + '_ {
        self.runs.iter().map(Buffered::from)
    }

    /// Returns the maximum number of buffered runs less their present number; 0 if there are as many or more.
    pub fn runs_left(&self) -> u64 {
        self.runs_max.saturating_sub(self.runs.len() as u64)
    }

    /// Returns whether the number of buffered runs is more than `percent` percent of the maximum.
    pub fn is_fuller_than(&self, percent: u64) -> bool {
        self.runs.len() as u64 * 100 > self.runs_max * percent
    }

    /// Returns the number of sectors of a ring from its oldest buffered run to its head, the place of the next append.
    /// Headers, and sectors that were rewritten or written home since, are counted too. Returns 0 if the ring holds no
    /// buffered run.
    pub fn used(&self, ring: u32) -> u64 {
        let oldest = self.places.first_in(place(ring, 0, POSITION_MAX));
        oldest.map_or(0, |(oldest, _)| self.rings.head(ring) - (oldest.start.0 & (POSITION_MAX - 1)))
    }

    /// Returns the buffered run at the lowest position of a ring, that is, the one written first. Returns `None` if the
    /// ring holds no buffered run.
    pub fn oldest(&self, ring: u32) -> Option<Buffered> {
        let (_, lba) = self.places.first_in(place(ring, 0, POSITION_MAX))?;
        self.runs.run_at(lba).map(Buffered::from)
    }

    /// Returns the buffered runs that overlap the LBAs from `start` up to, not including, `end`, clipped to that range,
    /// in order of LBA.
    pub fn within(&self, start: u64, end: u64) -> impl Iterator<Item = Buffered> + '_ {
        self.runs.pieces(Lba(start), Sectors(end - start)).map(Buffered::from)
    }

    /// Removes the LBAs from `start` up to, not including, `end` from the map. LBAs that are not buffered are ignored;
    /// runs that reach out of the range keep their other sectors.
    pub fn remove(&mut self, start: u64, end: u64) {
        let places = &mut self.places;
        self.runs.remove(Lba(start), Sectors(end - start), |run| places.remove(Buffered::from(run).place()));
    }

    /// Adds a run to the map, removes its LBAs from older runs, and moves the head of its ring past the run, unless the
    /// head is further already.
    ///
    /// # Panics
    ///
    /// If another run is buffered at one of the positions of `run`.
    pub fn insert(&mut self, run: Buffered) {
        let (place, places) = (run.place(), &mut self.places);
        self.runs.insert(Lba(run.lba), place.sectors, Mapped::At(place.start), |old| {
            places.remove(Buffered::from(old).place());
        });
        places.insert(place, Lba(run.lba));
        self.rings.advance(run.ring, run.position + run.sectors as u64);
    }

    /// Returns the journal record which says that `run` is buffered at its position of its ring. The map does not
    /// change.
    pub fn buffered_note(&self, run: &Buffered) -> Note {
        Record::Buffered { lba: Lba(run.lba), sectors: run.sectors, ring: run.ring, position: run.position }.encode()
    }

    /// Returns the run of logical sectors that have their homes on the track with the number `track`, then its first
    /// LBA and the LBA one past its last. Returns `None` if the track is set aside or does not exist.
    pub fn lbas_of(home: &Home, track: u32) -> Option<(TrackRun, u64, u64)> {
        let (track, surface) = home.track_at(track);
        let place = home.track(track, surface)?;
        let run = Home::track_run(&place, home.lba(place.track_start)?);
        Some((run, run.lba.0, run.end().0))
    }

    /// Returns the move that writes the buffered run `run` to its home place. The move includes the other buffered runs
    /// with homes on that track, but at most 16 runs: `run` and the next ones in order of LBA, or the last 16 of the
    /// track. Returns `None` if that track is set aside.
    pub fn write_home_with(&self, home: &Home, run: &Buffered) -> Option<WriteHome> {
        let (_, start, end) = BufferMap::lbas_of(home, BufferMap::track_of(home, Lba(run.lba)))?;
        let starts: Vec<u64> = self.within(start, end).map(|run| run.lba).collect();
        let first = starts.partition_point(|&start| start < run.lba).min(starts.len().saturating_sub(RUNS_AT_ONCE));
        let start = if first == 0 { start } else { starts[first] };
        let end = starts.get(first + RUNS_AT_ONCE).copied().unwrap_or(end);
        Some(WriteHome { start, end })
    }

    /// Returns the number of the track on which `lba` has its home: its radial position times the number of surfaces,
    /// plus its surface ([`Home::track_index`]).
    pub fn track_of(home: &Home, lba: Lba) -> u32 {
        let place = home.locate(home.pba(lba));
        home.track_index(place.radial_track, place.surface)
    }

    /// Returns the first run of unbuffered sectors at or after `start`. The run extends in both directions as far as
    /// the sectors of `around` are not buffered.
    fn unbuffered(&self, start: u64, around: &TrackRun) -> Option<TrackRun> {
        let (mut from, mut lba) = (around.lba.0, start);
        let mut next = around.end();
        if let Some(run) = self.runs.last_at_or_before(Lba(lba)) {
            from = from.max(run.end().0);
            lba = lba.max(run.end().0);
        }
        for run in self.runs.pieces(Lba(lba), Sectors(next.0.saturating_sub(lba))) {
            if run.lba.0 > lba {
                next = run.lba;
                break;
            }
            lba = run.end().0;
            from = lba;
        }
        (lba < around.end().0).then(|| around.part(Lba(from), next))
    }

    /// Returns the run of physical sectors of a reserved track at which a buffered run lies, with the run's logical
    /// sectors.
    #[inline]
    pub fn place(&self, run: &Buffered) -> TrackRun {
        self.rings.run(run.ring, run.position, run.sectors, Lba(run.lba))
    }

    /// Returns the first buffered run that overlaps the positions from `position` up to `end` of a ring.
    fn first_at(&self, ring: u32, position: u64, end: u64) -> Option<Buffered> {
        let (_, lba) = self.places.first_in(place(ring, position, end.saturating_sub(position)))?;
        self.runs.run_at(lba).map(Buffered::from)
    }

    /// Returns the first buffered run that ends after sector `sector` of a reserved track.
    fn run_on_reserved(&self, track: &Track, sector: u32) -> Option<TrackRun> {
        let (ring, position) = self.rings.position_at(track, sector)?;
        let head = self.rings.head(ring);
        let end = (position + (track.sectors - sector) as u64).min(head);
        if let Some(run) = self.first_at(ring, position, end) {
            return Some(self.place(&run));
        }
        // The sectors of the track behind the head hold the oldest positions of the ring.
        let after_head = sector + (head - position) as u32;
        (after_head < track.sectors).then(|| {
            let (ring, position) = self.rings.position_at(track, after_head)?;
            let end = position + (track.sectors - after_head) as u64;
            self.first_at(ring, position, end).map(|run| self.place(&run))
        })?
    }

    /// Checks the invariants in the header comment of this file. Returns the number of the first broken invariant and a
    /// description, or `None` if all hold.
    pub fn broken_invariant(&self, home: &Home) -> Option<(u32, String)> {
        let mut end_before = 0;
        for run in self.iter() {
            let slice = self.rings.slice(run.ring, run.position, run.sectors);
            if run.sectors == 0 || run.lba < end_before || slice.sectors != run.sectors {
                return Some((1, format!("{run:?} overlaps the run before it, or the end of its track")));
            }
            let tracks = [run.lba, run.end() - 1].map(|lba| BufferMap::track_of(home, Lba(lba)));
            if tracks[0] != tracks[1] {
                return Some((1, format!("{run:?} is not of one track: {tracks:?}")));
            }
            if self.places.first_in(run.place()) != Some((run.place(), Lba(run.lba))) {
                return Some((2, format!("{run:?} is not listed at its place")));
            }
            let end = run.position + run.sectors as u64;
            let head = self.rings.head(run.ring);
            if end > head || run.position + self.rings.sectors(run.ring) < head {
                return Some((3, format!("{run:?} lies outside of its ring, whose head is {head}")));
            }
            end_before = run.end();
        }
        let same = self.places.len() == self.runs.len();
        (!same).then(|| (2, format!("{} places for {} runs", self.places.len(), self.runs.len())))
    }
}

impl Translation for BufferMap {
    type Move = WriteHome;

    fn name(&self) -> &'static str {
        self.name
    }

    #[inline]
    fn run_of(&self, home: &Home, lba: Lba) -> TrackRun {
        let at_home = Home::track_run(&home.locate(home.pba(lba)), lba);
        if self.runs.is_empty() || (at_home.harmless && !self.holds_tops) {
            return at_home;
        }
        match self.runs.run_at(lba) {
            Some(run) => self.place(&run.into()),
            None => self.unbuffered(lba.0, &at_home).expect("this sector is not buffered"),
        }
    }

    #[inline]
    fn run_at(&self, home: &Home, track: &Track, sector: u32) -> Option<TrackRun> {
        match home.lba(track.start) {
            Some(lba) => {
                let at_home = TrackRun::on(track, 0, track.sectors, lba);
                match self.holds_tops {
                    true => self.unbuffered(lba.0 + sector as u64, &at_home),
                    false => Some(at_home),
                }
            }
            None => self.run_on_reserved(track, sector),
        }
    }

    /// Adds reads of the buffered runs in the order of their PBAs, then the runs that the write home would destroy.
    fn prepare(&self, home: &Home, chosen: WriteHome, transfers: &mut Transfers) -> bool {
        let WriteHome { start, end } = chosen;
        let Some((at_home, ..)) = BufferMap::lbas_of(home, BufferMap::track_of(home, Lba(start))) else { return false };
        let mut runs: Vec<TrackRun> = self.within(start, end).map(|run| self.place(&run)).collect();
        if runs.is_empty() {
            return false;
        }
        let (mut faced, mut kept) = (Vec::new(), Vec::new());
        for run in runs.iter().filter(|_| !at_home.harmless) {
            home.push_faced(&[at_home.part(run.lba, run.end())], &mut faced);
        }
        merge(&mut faced);
        faced.iter().for_each(|span| push_runs_at(self, home, span, &mut kept));
        runs.sort_unstable_by_key(|run| run.pba);
        for from in runs {
            let to = at_home.part(from.lba, from.end()).pba;
            // `to_bottom` is set even if the home is a top: such runs are written first and in PBA order, so that the
            // track is written in one pass.
            transfers.push(Transfer { from, to, to_bottom: true, saved: false, timing: Timing::Normal });
            transfers.lock(from.surface, from.radial_track, from.radial_track);
        }
        transfers.push_kept(&kept);
        let (track, reach) = (at_home.radial_track, u32::from(!at_home.harmless));
        transfers.lock(at_home.surface, track.saturating_sub(reach), track + reach);
        transfers.set_radial_track(track);
        true
    }

    fn commit(&mut self, _home: &Home, chosen: WriteHome, plan: &mut Plan) {
        let WriteHome { start, end } = chosen;
        self.remove(start, end);
        plan.note(Record::Home { start_lba: Lba(start), end_lba: Lba(end) }.encode());
    }

    /// Applies a record. Returns whether it ends the move: the record of a write home does. The caller checks whether
    /// the resulting map is consistent.
    fn replay(&mut self, home: &Home, note: &Note) -> Result<bool, ReplayError> {
        let capacity = home.capacity().0;
        match Record::decode(note)? {
            Record::Buffered { lba: Lba(lba), sectors, ring, position } => {
                let fits = sectors > 0
                    && u64::from(sectors) <= capacity
                    && lba <= capacity - u64::from(sectors)
                    && position < POSITION_MAX - u64::from(sectors)
                    && ring < self.rings.count()
                    && u64::from(sectors) <= self.rings.sectors(ring);
                if !fits {
                    return Err(note.refuse("no such run can be buffered"));
                }
                let run = Buffered { lba, sectors, ring, position };
                self.remove(lba, run.end());
                if self.places.first_in(run.place()).is_some() {
                    return Err(note.refuse("other sectors are buffered there"));
                }
                self.insert(run);
                Ok(false)
            }
            Record::Home { start_lba, end_lba } => {
                if start_lba >= end_lba || end_lba.0 > capacity {
                    return Err(note.refuse("the run is empty or past the capacity"));
                }
                self.remove(start_lba.0, end_lba.0);
                Ok(true)
            }
        }
    }

    /// Appends the records of all runs in the order of their places, so that heads only rise.
    fn checkpoint(&self, notes: &mut Vec<Note>) {
        let runs = self.places.iter().filter_map(|(_, lba)| self.runs.run_at(lba));
        notes.extend(runs.map(|run| self.buffered_note(&run.into())));
    }

    fn formula_bytes(&self, _tracks: u64) -> u64 {
        self.runs_max * FORMULA_BYTES_PER_RUN
    }

    fn measured_bytes(&self) -> u64 {
        self.runs.measured_bytes() + self.places.measured_bytes() + self.rings.measured_bytes()
    }
}
