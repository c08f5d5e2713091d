//! State of each band or zone of a drive, for a user interface that draws it. The states are derived from outside the
//! layer: from the places of logical runs on a new drive, their places now, the fill of the caches, and the cleaning
//! steps of plans.
//!
//! ```text
//!   a band of a drive that manages itself:  clean ⇄ dirty ── cleaning ──► clean       (rewritten in its place)
//!                                           empty ─► open ─► full ── cleaning ──► empty   (filled in order, as a log)
//!   a zone of a host-managed drive:         its condition, and how far its pointer is
//! ```
//!
//! The home of a sector is its band on a new drive. A band is dirty while some sectors of which the band is the home
//! lie elsewhere: in a cache, or in the spare of a rewrite. A log of the size of a band is also a band. A cache of any
//! other size is not a band.
//!
//! Invariants:
//! 1. Places are disjoint and ordered by PBA.
//! 2. While no run is marked for a new lookup, every state equals the state that a scan of the whole map would give.

use std::collections::BTreeMap;

use imbrex_disk::{Command, Disk, Extent, Lba, Operation, Pba, Sectors, SimDuration, SimTime};
use imbrex_layer::{Cache, Cause, Condition, Kind, Layer, Medium, Piece, Plan, StepOp, Zones};
use imbrex_sim::Drive;

use crate::activity::{Activity, BINS};

/// Logical sectors looked up at once.
const WINDOW_SECTORS: u64 = 1 << 20;
/// Most runs looked up again in one [`Bands::refresh`]; limited because the drive waits meanwhile. The next call
/// looks up the rest.
const LOOKUPS_MAX: usize = 20_000;
/// Number of runs above which neighbouring runs are joined ([`join`]).
const HOMES_MAX: usize = 400_000;
/// Simulated time for which a band counts as being cleaned after the last cleaning step.
const CLEANING_FOR: SimDuration = SimDuration(2_000_000_000);
/// Most tracks drawn of one band, evenly spread from its first to its last; the next constant limits the total of all
/// bands.
const SPOTS_MAX: u64 = 32;
const SPOTS_IN_ALL: u64 = 600_000;

/// State of a band or zone of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum BandState {
    /// The band holds no data.
    Empty,
    /// All stored sectors whose home is this band lie in the band. The home of a sector is its band on a new drive.
    Clean,
    /// Some sectors whose home is this band lie elsewhere, for example in a cache; [`Band::share`] says how many.
    Dirty,
    /// The band was rewritten or emptied by cleaning within the last two seconds of simulated time.
    Cleaning,
    /// The band or zone is written in order, and is partly filled; [`Band::share`] gives the filled fraction.
    Open,
    /// The zone is closed (ZBC): partly written, but not open. [`Band::share`] gives the filled fraction.
    Closed,
    /// The band or zone is filled to its end.
    Full,
    /// A zone without a write pointer, which can be written anywhere.
    Conventional,
    /// A zone that is read-only or offline, and so takes no writes.
    Failed,
}

impl BandState {
    /// All states, in the order of their numeric values.
    pub const ALL: [BandState; 9] = [
        BandState::Empty,
        BandState::Clean,
        BandState::Dirty,
        BandState::Cleaning,
        BandState::Open,
        BandState::Closed,
        BandState::Full,
        BandState::Conventional,
        BandState::Failed,
    ];

    /// Returns the lower-case name of the state, such as `empty`.
    pub const fn name(self) -> &'static str {
        match self {
            BandState::Empty => "empty",
            BandState::Clean => "clean",
            BandState::Dirty => "dirty",
            BandState::Cleaning => "cleaning",
            BandState::Open => "open",
            BandState::Closed => "closed",
            BandState::Full => "full",
            BandState::Conventional => "conventional",
            BandState::Failed => "failed",
        }
    }

    fn of(condition: Condition) -> BandState {
        match condition {
            Condition::Conventional => BandState::Conventional,
            Condition::Empty => BandState::Empty,
            Condition::ImplicitlyOpen | Condition::ExplicitlyOpen => BandState::Open,
            Condition::Closed => BandState::Closed,
            Condition::Full => BandState::Full,
            Condition::ReadOnly | Condition::Offline => BandState::Failed,
        }
    }
}

/// State and fill of one band or zone.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Band {
    /// State of the band or zone as of the latest [`Bands::refresh`]; empty before the first.
    pub state: BandState,
    /// Fraction of the size of the band, from 0 to 1. In a zone or a log: the filled part; 0 for a conventional or
    /// offline zone. In a dirty band: the sectors that belong to the band and lie elsewhere. A clean band has 1, an
    /// empty one 0. A band in the state `Cleaning` has the value that it would have in its other state.
    pub share: f64,
}

/// A logical run that lies in one place on a new drive.
#[derive(Clone, Copy, Debug)]
struct Home {
    lba: Lba,
    sectors: Sectors,
    /// Index of the place in which the run lies on a new drive.
    first: u32,
    /// Index of the place that holds the run now.
    holder: u32,
    /// Sectors of the run in its holder.
    held: u64,
    /// Sectors of the run outside its holder.
    away: u64,
    is_touched: bool,
}

/// Numbers of drawn parts of bands, indexed by surface, then by radial bin from 0 to 239 ([`BINS`]), from the outer
/// diameter inward, then by the numeric value of the [`BandState`].
pub type CountsBySurface = Vec<Vec<[u32; BandState::ALL.len()]>>;

/// A drawn part of a band on a surface.
#[derive(Clone, Copy, Debug)]
struct Spot {
    band: u32,
    surface: u8,
    bin: u8,
}

/// The bands or zones of a drive with their states, for display.
#[derive(Clone, Debug)]
pub struct Bands {
    places: Vec<Extent>,
    homes: Vec<Home>,
    /// Indices of the homes to be looked up again.
    touched: Vec<u32>,
    /// Time of the latest cleaning step of each recently cleaned band.
    cleaned_at: BTreeMap<u32, SimTime>,
    bands: Vec<Band>,
    spots: Vec<Spot>,
    is_zoned: bool,
    /// Whether any place was a log on the new drive. If not, no place becomes one.
    has_logs: bool,
}

impl Bands {
    /// Returns the bands or zones of `fresh`, a drive in its initial state. For a drive without zones, the result is
    /// empty if the tracks are interlaced, if writes destroy no other tracks, or if the drive is a caveat disk.
    pub fn new(fresh: &Drive) -> Bands {
        let (disk, layer) = (&fresh.disk, fresh.layer.as_ref());
        let (mut homes, mut places) = (Vec::new(), Vec::new());
        if let Some(zones) = layer.zones() {
            places = (0..zones.places().len()).map(|index| zones.places().extent(index)).collect();
        } else if !disk.geometry.is_interlaced() && !layer.is_host_managed() && !disk.recording.is_harmless() {
            for_each_home(layer, |piece, extent| homes.push((piece, extent)));
            if homes.first().is_some_and(|(_, extent)| is_in_a_log(layer, *extent)) {
                homes.clear();
            }
            join(&mut homes);
            places.extend(homes.iter().map(|(_, extent)| *extent));
            add_logs(layer, &mut places);
        }
        let has_logs = places.len() > homes.len();
        places.sort_by_key(|place| place.start);
        places.dedup();
        let mut bands = Bands {
            homes: Vec::new(),
            touched: Vec::new(),
            cleaned_at: BTreeMap::new(),
            bands: vec![Band { state: BandState::Empty, share: 0.0 }; places.len()],
            spots: spots(disk, &places),
            is_zoned: layer.zones().is_some(),
            has_logs,
            places,
        };
        bands.homes = homes.into_iter().map(|(piece, extent)| bands.home(piece, extent)).collect();
        bands
    }

    fn home(&self, piece: Piece, extent: Extent) -> Home {
        let first = self.at(extent.start).expect("it has just been put among the places");
        let (lba, sectors) = (piece.lba, piece.sectors);
        Home { lba, sectors, first, holder: first, held: sectors.0, away: 0, is_touched: false }
    }

    /// Marks the whole map for a new lookup by [`Bands::refresh`]. Needed if the drive is not in its initial state.
    pub fn touch_all(&mut self) {
        for index in 0..self.homes.len() {
            self.touch(index);
        }
    }

    /// Returns the state of each band, ordered by physical address like [`Bands::places`], as of the latest
    /// [`Bands::refresh`]. Before the first, all bands are empty.
    pub fn all(&self) -> &[Band] {
        &self.bands
    }

    /// Returns the physical extents of the bands or zones, in ascending order, one for each band.
    pub fn places(&self) -> &[Extent] {
        &self.places
    }

    /// Returns whether this describes the zones of a host-managed drive, and not the bands of a drive that manages
    /// itself.
    pub fn is_zoned(&self) -> bool {
        self.is_zoned
    }

    /// Marks the parts of the map that `plan`, which serves `commands`, may change, for a lookup by the next
    /// [`Bands::refresh`]. Also records `now` as the time of the latest cleaning of each band that the plan cleans.
    pub fn see(&mut self, commands: &[Command], plan: &Plan, now: SimTime) {
        // A trim may cause a plan that contains only a note. So the commands of the host count in addition to the
        // steps of the plan.
        for command in commands.iter().filter(|command| command.operation != Operation::Read) {
            self.for_each_home_of(command.lba, command.sectors, |bands, home| bands.touch(home));
        }
        let moves = |op| matches!(op, StepOp::Read | StepOp::Write | StepOp::Drop);
        for step in plan.steps.iter().filter(|step| step.kind == Kind::Data && moves(step.op)) {
            let is_cleaning = step.cause == Cause::Cleaning;
            if step.op == StepOp::Read && !is_cleaning {
                continue;
            }
            if is_cleaning && step.medium == Medium::Disk && step.op == StepOp::Read {
                self.at(step.pba).map(|band| self.cleaned_at.insert(band, now));
            }
            self.for_each_home_of(step.lba, step.sectors, |bands, home| {
                bands.touch(home);
                if is_cleaning {
                    bands.cleaned_at.insert(bands.homes[home].holder, now);
                }
            });
        }
    }

    fn for_each_home_of(&mut self, lba: Lba, sectors: u32, mut each: impl FnMut(&mut Bands, usize)) {
        let end = lba + Sectors(u64::from(sectors));
        let mut index = self.homes.partition_point(|home| home.lba + home.sectors <= lba);
        while index < self.homes.len() && self.homes[index].lba < end {
            each(self, index);
            index += 1;
        }
    }

    fn touch(&mut self, index: usize) {
        if !std::mem::replace(&mut self.homes[index].is_touched, true) {
            self.touched.push(index as u32);
        }
    }

    /// Updates the states to those of `layer` at simulated time `now`. For bands, looks up only the marked parts of the
    /// map, and only some of them if there are many; later calls look up the rest.
    pub fn refresh(&mut self, layer: &dyn Layer, now: SimTime) {
        if let Some(zones) = layer.zones() {
            return self.read_zones(zones);
        }
        let logs = self.logs(layer);
        self.look_up(layer, &logs);
        self.bands.fill(Band { state: BandState::Empty, share: 0.0 });
        let mut away = vec![0; self.places.len()];
        for home in self.homes.iter().filter(|home| home.held + home.away > 0) {
            away[home.holder as usize] += home.away;
            self.bands[home.holder as usize].state = BandState::Clean;
        }
        for (index, band) in self.bands.iter_mut().enumerate() {
            let sectors = self.places[index].sectors.0 as f64;
            *band = match log_at(&logs, index) {
                Some(log) => log,
                None if away[index] > 0 => Band { state: BandState::Dirty, share: away[index] as f64 / sectors },
                None => Band { share: f64::from(u8::from(band.state == BandState::Clean)), ..*band },
            };
        }
        self.cleaned_at.retain(|_, at| now.since((*at).min(now)) < CLEANING_FOR);
        for &band in self.cleaned_at.keys() {
            self.bands[band as usize].state = BandState::Cleaning;
        }
    }

    fn read_zones(&mut self, zones: &Zones) {
        for (index, band) in self.bands.iter_mut().enumerate() {
            let zone = zones.zone(index as u32).expect("a place for each zone");
            *band = Band {
                state: BandState::of(zone.condition),
                share: zone.pointer.0 as f64 / zone.sectors.0.max(1) as f64,
            };
        }
    }

    /// Returns the state and fill of each place that is a log now. Returns an empty vector if the drive has no logs.
    fn logs(&self, layer: &dyn Layer) -> Vec<Option<Band>> {
        if !self.has_logs {
            return Vec::new();
        }
        let mut logs = vec![None; self.places.len()];
        layer.caches(&mut |cache| {
            let Some(index) = self.place_of(&cache) else { return };
            let share = cache.used.0 as f64 / cache.size.0.max(1) as f64;
            let state = match cache.used.0 {
                0 => BandState::Empty,
                used if used < cache.size.0 => BandState::Open,
                _ => BandState::Full,
            };
            logs[index] = Some(Band { state, share });
        });
        logs
    }

    fn place_of(&self, cache: &Cache) -> Option<usize> {
        let place = self.places.binary_search_by_key(&cache.start, |place| place.start).ok()?;
        (cache.medium == Medium::Disk && cache.end <= self.places[place].end()).then_some(place)
    }

    /// Returns the index of the place that contains `pba`.
    fn at(&self, pba: Pba) -> Option<u32> {
        let index = self.places.partition_point(|place| place.start <= pba).checked_sub(1)?;
        self.places[index].contains(pba).then_some(index as u32)
    }

    /// Looks up marked runs, at most [`LOOKUPS_MAX`]. A run in a band that is being cleaned stays marked, because the
    /// last step of a rewrite may be only a note.
    fn look_up(&mut self, layer: &dyn Layer, logs: &[Option<Band>]) {
        let rest = self.touched.split_off(self.touched.len().min(LOOKUPS_MAX));
        let mut pieces = Vec::new();
        for index in std::mem::replace(&mut self.touched, rest) {
            let mut home = self.homes[index as usize];
            pieces.clear();
            layer.lookup(home.lba, home.sectors, &mut pieces);
            self.judge(&mut home, &pieces, logs);
            home.is_touched = self.cleaned_at.contains_key(&home.holder);
            if home.is_touched {
                self.touched.push(index);
            }
            self.homes[index as usize] = home;
        }
    }

    /// Determines the holder of `home`, whose sectors lie at `pieces`: its first place if any piece lies there,
    /// otherwise another place that is not a log. Counts the sectors inside and outside the holder.
    fn judge(&self, home: &mut Home, pieces: &[Piece], logs: &[Option<Band>]) {
        let place = |piece: &Piece| match piece.at {
            Some((Medium::Disk, pba)) => self.at(pba).filter(|&band| log_at(logs, band as usize).is_none()),
            _ => None,
        };
        let is_in_first = pieces.iter().any(|piece| place(piece) == Some(home.first));
        let other = pieces.iter().find_map(place).filter(|_| !is_in_first);
        home.holder = other.unwrap_or(home.first);
        (home.held, home.away) = (0, 0);
        for piece in pieces.iter().filter(|piece| piece.at.is_some()) {
            let is_held = place(piece) == Some(home.holder);
            *(if is_held { &mut home.held } else { &mut home.away }) += piece.sectors.0;
        }
    }

    /// Returns the numbers of drawn parts of bands in each state, for each of `surfaces` surfaces and each radial bin.
    /// Of each band, some tracks are drawn, evenly spread.
    ///
    /// # Panics
    /// If the drive has drawn tracks on more than `surfaces` surfaces.
    pub fn by_surface(&self, surfaces: u8) -> CountsBySurface {
        let mut counts = vec![vec![[0; BandState::ALL.len()]; BINS]; surfaces as usize];
        for spot in &self.spots {
            counts[spot.surface as usize][spot.bin as usize][self.bands[spot.band as usize].state as usize] += 1;
        }
        counts
    }
}

fn log_at(logs: &[Option<Band>], place: usize) -> Option<Band> {
    logs.get(place).copied().flatten()
}

/// Calls `each` with the physically contiguous runs of a new `layer`, in the order of their LBAs.
fn for_each_home(layer: &dyn Layer, mut each: impl FnMut(Piece, Extent)) {
    let (mut pieces, mut start, capacity) = (Vec::new(), 0, layer.capacity().0);
    let mut window = WINDOW_SECTORS;
    while start < capacity {
        let sectors = window.min(capacity - start);
        pieces.clear();
        layer.lookup(Lba(start), Sectors(sectors), &mut pieces);
        // The last piece may continue beyond the window. If so, the next window looks it up again from its beginning.
        let is_last = start + sectors == capacity;
        if !is_last && pieces.len() > 1 {
            pieces.pop();
        } else if !is_last {
            window *= 2;
            continue;
        }
        window = WINDOW_SECTORS;
        for piece in &pieces {
            start = (piece.lba + piece.sectors).0;
            if let Some((Medium::Disk, pba)) = piece.at {
                each(*piece, Extent::new(pba, piece.sectors));
            }
        }
    }
}

/// Returns whether `extent` lies in a log of `layer`, which is new. If the first run does, the layer stores all data
/// in logs.
fn is_in_a_log(layer: &dyn Layer, extent: Extent) -> bool {
    let mut is_in = false;
    layer.caches(&mut |cache| {
        let log = Extent::between(cache.start, cache.end);
        is_in |= cache.medium == Medium::Disk && log.contains(extent.start);
    });
    is_in
}

/// Joins neighbouring runs that are separated only by guards, so that about [`HOMES_MAX`] runs remain.
fn join(homes: &mut Vec<(Piece, Extent)>) {
    let together = homes.len().div_ceil(HOMES_MAX);
    let mut joined = 1;
    homes.dedup_by(|(piece, extent), (first, whole)| {
        let is_next = extent.start >= whole.end() && extent.start - whole.end() < extent.sectors;
        let joins = joined < together && is_next && piece.lba == first.lba + first.sectors;
        joined = if joins { joined + 1 } else { 1 };
        if joins {
            first.sectors += piece.sectors;
            *whole = Extent::between(whole.start, extent.end());
        }
        joins
    });
}

/// Adds the logs of `layer` whose size is within the range of band sizes. If `places` is empty, adds all logs.
fn add_logs(layer: &dyn Layer, places: &mut Vec<Extent>) {
    let sizes = places.iter().map(|place| place.sectors.0);
    let (smallest, largest) = (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(u64::MAX));
    layer.caches(&mut |cache| {
        let place = Extent::between(cache.start, cache.end);
        if cache.medium == Medium::Disk && (smallest..=largest).contains(&place.sectors.0) {
            places.push(place);
        }
    });
}

/// Returns the drawn parts of bands: for each band, some of its tracks, from the first to the last.
fn spots(disk: &Disk, places: &[Extent]) -> Vec<Spot> {
    let geometry = &disk.geometry;
    let per_band = (SPOTS_IN_ALL / places.len().max(1) as u64).clamp(2, SPOTS_MAX);
    let mut spots = Vec::new();
    for (band, place) in places.iter().enumerate() {
        let stride = Sectors((place.sectors.0 / per_band).max(1));
        let mut next = place.start;
        while next < place.end() {
            let at = geometry.locate(next);
            let bin = Activity::bin(geometry, at.radial_track) as u8;
            spots.push(Spot { band: band as u32, surface: at.surface, bin });
            next = at.track().end().max(next + stride);
        }
    }
    spots
}
