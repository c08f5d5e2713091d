//! Converts the facts about a machine into kinds of runs, and assigns an area of the disk to each kind.
//!
//! The disk is divided into cells. They are numbered here in a logical order, which the source scatters over the disk:
//!
//! ```text
//!  written, cold ────────────────► hot │ hot tracks │ hottest page │ read only
//!  └────────── read as well ──┘                                     └────────┘
//! ```
//!
//! Only the last pages of each cell are used; their number is the cell's *fill*. A *kind* is a number of runs with
//! equal request counts and sizes. It has its own cells, or in hot tiers it shares the tier's cells. A kind visits its
//! cells in rounds, which fixes the pages touched and the number of writes to each. Long runs and single requests form
//! separate kinds. The share of requests in long runs yields the number of sequential requests. Writes smaller than a
//! page, typical of logs, go to tiers that are hot enough for them.
//!
//! Invariants:
//! 1. The requests of all kinds add up to the machine's, for reads and for writes.
//! 2. The slots of a kind fit its cells. Of the kinds that share cells, at least one visits each slot. (A kind too
//!    small for a cell uses the cells of the previous kind.)
//! 3. No more cells are used than the disk has.

use imbrex_units::Direction;

use super::choices::Choices;
use super::facts::{HotTracks, Machine};
use super::sizes::{self, PAGE_BYTES, SizeCount};
use super::tiers::{TIERS, Tier, Tiers};

const TRACK_PAGES: u64 = 512;

/// Requests of a long run. `RUN_REQUESTS_LARGE` applies to requests of more than `LARGE_PAGES` pages.
const RUN_REQUESTS: u64 = 8;
const RUN_REQUESTS_LARGE: u64 = 4;
const LARGE_PAGES: u64 = 16;

/// A tier whose pages are written more often than this is shared by all its kinds: each covers the whole tier many
/// times.
const SHARED_WRITES: f64 = 24.0;

/// Factor between the share of a cell's pages that is used and the machine's density of used pages. `FILL_MIN` is the
/// minimum of the share.
const FILL_SLACK: f64 = 1.15;
const FILL_MIN: f64 = 0.35;

/// A range of cells in the logical order. `fill_pages` pages of each cell are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Area {
    pub first_cell: u64,
    pub cells: u64,
    pub fill_pages: u64,
}

/// Runs with equal direction, request size and number of requests.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Kind {
    pub direction: Direction,
    /// Length of each request in sectors of 512 bytes.
    pub sectors: u64,
    /// Number of consecutive requests in a run; each begins where the previous one ends.
    pub run_requests: u64,
    /// Number of runs of this kind in the whole workload. A run is `run_requests` consecutive requests.
    pub runs: u64,
    /// Length in 4 KiB pages of a slot, the space that one run occupies.
    pub slot_pages: u64,
    /// Fraction (0 to 1) of the slots, each the space of one run, in which runs do not begin at a multiple of 4 KiB.
    pub unaligned_share: f64,
    pub area: Area,
}

/// The kinds of runs that make up a machine's requests.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub kinds: Vec<Kind>,
    /// Number of cells into which the machine's address range is divided: ranges of `cell_pages` pages of 4 KiB each. A
    /// rest at the end of the range belongs to no cell. `used_cells` of the cells are accessed.
    pub cells: u64,
    pub used_cells: u64,
    pub cell_pages: u64,
}

/// Requests of one size that go to one tier or area.
#[derive(Clone, Copy, Debug)]
struct Portion {
    size: SizeCount,
    /// Mean number of pages that a request touches.
    touches_each: f64,
}

impl Portion {
    fn touches(&self) -> f64 {
        self.size.count as f64 * self.touches_each
    }

    /// Splits off `count` of the requests; the rest remain in this portion.
    fn split(&mut self, count: u64) -> Portion {
        let count = count.min(self.size.count);
        self.size.count -= count;
        Portion { size: SizeCount { count, ..self.size }, ..*self }
    }
}

/// Allocates cells in order. Pages lost or gained by rounding to whole cells are carried over to the next allocation.
struct Allocator {
    next_cell: u64,
    carry_pages: f64,
    last: Option<Area>,
}

/// The state of the planning.
struct Planner {
    allocator: Allocator,
    kinds: Vec<Kind>,
    /// Share of the requests that belong to long runs, for sizes that allow long runs.
    long_share: f64,
    /// Sequential requests that rounding to whole runs has left over.
    carry_followers: f64,
    /// Maximum number of pages in a long run.
    run_pages: u64,
    /// Share of the requests of whole pages that are not aligned to pages.
    unaligned_share: f64,
    direction: Direction,
}

/// Number of the largest usual requests by which a cell is sized. A cell is contiguous on the disk, so that long runs
/// fit.
const CELL_REQUESTS: u64 = 16;

/// Returns the number of tracks in a cell. If hot tracks have hot neighbours according to the paper, a cell has half of
/// the hot tracks. Otherwise it is the number of whole tracks in [`CELL_REQUESTS`] of the largest usual requests, at
/// least 1, rounded up to a power of two.
pub(super) fn cell_tracks(machine: &Machine) -> u64 {
    match machine.told.hot {
        Some(hot) if machine.told.has_hot_neighbours => hot.tracks / 2,
        _ => {
            let largest_bytes = machine.read_size_bytes[1].max(machine.write_size_bytes[2]);
            (CELL_REQUESTS * largest_bytes / (TRACK_PAGES * PAGE_BYTES)).max(1).next_power_of_two()
        }
    }
}

impl Plan {
    pub(super) fn of(machine: &Machine, choices: Choices) -> Plan {
        let cell_pages = cell_tracks(machine) * TRACK_PAGES;
        let cells = machine.range_bytes / PAGE_BYTES / cell_pages;
        let density = machine.either_set_bytes as f64 / machine.range_bytes as f64;
        let fill_share = if choices.is_dense { 1.0 } else { (FILL_SLACK * density).clamp(FILL_MIN, 1.0) };
        let fill_pages = (fill_share * cell_pages as f64) as u64;
        let sizes = write_portions(machine, fill_pages - 1);
        let mut planner = Planner {
            allocator: Allocator::starting_at(0),
            kinds: Vec::new(),
            long_share: 0.0,
            carry_followers: 0.0,
            run_pages: fill_pages - 1,
            unaligned_share: unaligned_share(machine.unaligned_bytes, sizes.iter().map(|portion| &portion.size)),
            direction: Direction::Write,
        };
        let general_cells = planner.plan_writes(machine, sizes, cell_pages, fill_pages);
        let overlay = Area { first_cell: 0, cells: general_cells, fill_pages };
        planner.plan_reads(machine, overlay, fill_pages);
        let used_cells = planner.allocator.next_cell;
        assert!(used_cells <= cells, "{}: {used_cells} cells of {cells}: invariant 3", machine.name);
        Plan { kinds: planner.kinds, cells, used_cells, cell_pages }
    }
}

/// Returns the sizes of the writes, with the number of pages that each touches.
fn write_portions(machine: &Machine, most_pages: u64) -> Vec<Portion> {
    let sizes = sizes::of_writes(machine, most_pages);
    let unaligned = unaligned_share(machine.unaligned_bytes, sizes.iter());
    let portion = |size: SizeCount| Portion {
        size,
        touches_each: size.pages() as f64 + if size.is_partial() { 0.0 } else { unaligned },
    };
    sizes.into_iter().map(portion).collect()
}

/// Returns the share of the requests of whole pages that must be unaligned for the pages touched to exceed the bytes by
/// `unaligned_bytes`. Requests smaller than a page always contribute to this excess.
fn unaligned_share<'a>(unaligned_bytes: u64, sizes: impl Iterator<Item = &'a SizeCount>) -> f64 {
    let (mut left, mut whole) = (unaligned_bytes, 0);
    for size in sizes {
        left = left.saturating_sub((size.pages() * PAGE_BYTES - size.sectors * sizes::SECTOR_BYTES) * size.count);
        whole += if size.is_partial() { 0 } else { size.count };
    }
    (left as f64 / (whole * PAGE_BYTES) as f64).min(1.0)
}

/// Returns the number of requests in a long run of `size` that has at most `run_pages` pages.
fn run_requests(size: &SizeCount, run_pages: u64) -> u64 {
    let wanted = if size.pages() > LARGE_PAGES { RUN_REQUESTS_LARGE } else { RUN_REQUESTS };
    wanted.min(run_pages * sizes::PAGE_SECTORS / size.sectors)
}

/// Returns the share of requests that must belong to long runs for `sequential` requests to be sequential.
fn long_share(portions: &[Portion], sequential: u64, run_pages: u64) -> f64 {
    let most: f64 = portions
        .iter()
        .map(|portion| portion.size.count as f64 * (1.0 - 1.0 / run_requests(&portion.size, run_pages) as f64))
        .sum();
    (sequential as f64 / most).min(1.0)
}

impl Planner {
    /// Assigns areas to the writes. Returns the number of cells in the general part, which reads may share.
    fn plan_writes(&mut self, machine: &Machine, mut sizes: Vec<Portion>, cell_pages: u64, fill_pages: u64) -> u64 {
        let hottest = hottest_page(&mut sizes, machine.page_writes[4]);
        self.long_share = long_share(&sizes, machine.write_sequential, self.run_pages);
        // A single page is always or never unaligned; the other requests compensate for it.
        let hottest_share = self.unaligned_share.round();
        let hottest_bytes = (hottest_share * (hottest.size.count * PAGE_BYTES) as f64) as u64;
        let unaligned_bytes = machine.unaligned_bytes.saturating_sub(hottest_bytes);
        self.unaligned_share = unaligned_share(unaligned_bytes, sizes.iter().map(|portion| &portion.size));
        let Heats { mut tiers, mut parts, hot } = Heats::of(machine, &sizes, hottest.size.count, cell_pages);
        let core = match hot {
            Place::Core { writes, cells } => Some(Core::carve(writes, cells, cell_pages, &mut tiers, &mut parts)),
            Place::Anywhere | Place::TopTiers { .. } => None,
        };
        let first_hot = if let Place::TopTiers { first, .. } = hot { first } else { TIERS };
        for (tier, portions) in parts.iter().enumerate().take(first_hot) {
            self.place_tier(portions, tiers.tiers[tier], fill_pages);
        }
        let general_cells = self.allocator.next_cell;
        self.allocator.carry_pages = 0.0;
        if let Place::TopTiers { cells, .. } = hot {
            let pages: f64 = tiers.tiers[first_hot..].iter().map(|tier| tier.pages).sum();
            let hot_fill = ((pages / cells as f64) as u64).clamp(fill_pages, cell_pages);
            (first_hot..TIERS).for_each(|tier| self.place_tier(&parts[tier], tiers.tiers[tier], hot_fill));
        }
        if let Some(core) = core {
            let area = self.allocator.take(core.cells, core.fill_pages);
            core.portions.iter().for_each(|portion| self.place(portion, area));
        }
        let area = self.allocator.take(1, hottest.size.pages() + 1);
        let unaligned_share = std::mem::replace(&mut self.unaligned_share, hottest_share);
        self.push(&hottest.size, 1, hottest.size.count, area);
        self.unaligned_share = unaligned_share;
        general_cells
    }

    /// Assigns areas to the requests of a tier.
    fn place_tier(&mut self, portions: &[Portion], tier: Tier, fill_pages: u64) {
        if tier.pages < 1.0 {
            return;
        }
        if tier.writes_each > SHARED_WRITES {
            self.allocator.carry_pages += tier.pages;
            let area = self.allocator.take_carried(fill_pages, u64::MAX);
            portions.iter().for_each(|portion| self.place(portion, area));
            return;
        }
        self.place_apart(portions, tier.pages, fill_pages);
    }

    /// Gives each kind its own part of `pages` pages, in proportion to the pages that its requests touch.
    fn place_apart(&mut self, portions: &[Portion], pages: f64, fill_pages: u64) {
        let touches: f64 = portions.iter().map(Portion::touches).sum();
        for portion in portions {
            let pages_each = pages * portion.touches_each / touches;
            let long = self.long_runs(&portion.size);
            let apart = |planner: &mut Planner, run_requests: u64, runs: u64| {
                if runs == 0 {
                    return;
                }
                planner.allocator.carry_pages += pages_each * (runs * run_requests) as f64;
                let slots_per_cell = fill_pages.div_ceil(slot_pages(&portion.size, run_requests));
                let area = planner.allocator.take_carried(fill_pages, runs / slots_per_cell);
                planner.push(&portion.size, run_requests, runs, area);
            };
            apart(self, long.0, long.1);
            apart(self, 1, portion.size.count - long.0 * long.1);
        }
    }

    /// Puts the long runs and the single requests of a portion into `area`.
    fn place(&mut self, portion: &Portion, area: Area) {
        let (run_requests, runs) = self.long_runs(&portion.size);
        self.push(&portion.size, run_requests, runs, area);
        self.push(&portion.size, 1, portion.size.count - run_requests * runs, area);
    }

    /// Returns the long runs of a size: the requests of each run, and the number of runs.
    fn long_runs(&mut self, size: &SizeCount) -> (u64, u64) {
        let run_requests = run_requests(size, self.run_pages);
        if run_requests < 2 {
            return (1, 0);
        }
        let followers = (run_requests - 1) as f64;
        self.carry_followers += size.count as f64 * self.long_share * followers / run_requests as f64;
        let runs = ((self.carry_followers / followers).round().max(0.0) as u64).min(size.count / run_requests);
        self.carry_followers -= runs as f64 * followers;
        (run_requests, runs)
    }

    fn push(&mut self, size: &SizeCount, run_requests: u64, runs: u64, area: Area) {
        if runs == 0 {
            return;
        }
        let slot_pages = slot_pages(size, run_requests);
        assert!(slot_pages < area.fill_pages, "{slot_pages} pages of {area:?}: invariant 2");
        self.kinds.push(Kind {
            direction: self.direction,
            sectors: size.sectors,
            run_requests,
            runs,
            slot_pages,
            unaligned_share: if size.is_partial() { 0.0 } else { self.unaligned_share },
            area,
        });
    }

    /// Assigns areas to the reads. Pages both read and written lie in the first written cells, the others in cells of
    /// their own.
    fn plan_reads(&mut self, machine: &Machine, written: Area, fill_pages: u64) {
        self.direction = Direction::Read;
        self.carry_followers = 0.0;
        let both_bytes = machine.read_set_bytes + machine.write_set_bytes - machine.either_set_bytes;
        let both_pages = (both_bytes / PAGE_BYTES) as f64;
        let both_pages = both_pages.min((written.cells * written.fill_pages) as f64);
        let read_pages = (machine.read_set_bytes / PAGE_BYTES) as f64;
        let own_pages = read_pages - both_pages;
        self.run_pages = fill_pages.min(written.fill_pages) - 1;
        let portion = |size: SizeCount| Portion { size, touches_each: size.pages() as f64 };
        let mut over: Vec<Portion> = sizes::of_reads(machine, self.run_pages).into_iter().map(portion).collect();
        self.long_share = long_share(&over, machine.read_sequential, self.run_pages);
        let own_share = own_pages / read_pages;
        let share = |portion: &mut Portion| portion.split((portion.size.count as f64 * own_share).round() as u64);
        let own: Vec<Portion> = over.iter_mut().map(share).collect();
        let own_first = std::mem::replace(&mut self.allocator, Allocator::starting_at(0)).next_cell;
        self.place_apart(&over, both_pages, written.fill_pages);
        assert!(self.allocator.next_cell <= own_first, "reads of written pages stay within them");
        self.allocator = Allocator::starting_at(own_first);
        self.place_apart(&own, own_pages, fill_pages);
    }
}

impl Allocator {
    fn starting_at(cell: u64) -> Allocator {
        Allocator { next_cell: cell, carry_pages: 0.0, last: None }
    }

    fn take(&mut self, cells: u64, fill_pages: u64) -> Area {
        let area = Area { first_cell: self.next_cell, cells, fill_pages };
        self.next_cell += cells;
        self.last = Some(area);
        area
    }

    /// Allocates as many whole cells as the carried pages fill, at most `most`. If that number is 0, returns the
    /// previous area if its fill is equal, and one new cell otherwise.
    fn take_carried(&mut self, fill_pages: u64, most: u64) -> Area {
        let cells = ((self.carry_pages / fill_pages as f64).round().max(0.0) as u64).min(most);
        if let Some(last) = self.last.filter(|last| cells == 0 && last.fill_pages == fill_pages) {
            return last;
        }
        let cells = cells.max(1);
        self.carry_pages -= (cells * fill_pages) as f64;
        self.take(cells, fill_pages)
    }
}

fn slot_pages(size: &SizeCount, run_requests: u64) -> u64 {
    (size.sectors * run_requests).div_ceil(sizes::PAGE_SECTORS)
}

/// Takes the writes of the hottest page out of the portion that has the most requests among the sizes of at most two
/// pages.
fn hottest_page(sizes: &mut [Portion], writes: u64) -> Portion {
    let small = sizes.iter_mut().filter(|portion| portion.size.pages() <= 2);
    let most = small.max_by_key(|portion| portion.size.count).expect("every machine writes small requests");
    most.split(writes)
}

/// Distributes the requests of each size over the tiers, in proportion to the page writes of the tiers. Requests
/// smaller than a page go only to tiers whose pages are written more often than one long run touches them. Requests of
/// whole pages fill up the other tiers.
fn parts_of_tiers(tiers: &Tiers, sizes: &[Portion]) -> [Vec<Portion>; TIERS] {
    let mut parts: [Vec<Portion>; TIERS] = Default::default();
    let mut weights = tiers.tiers.map(|tier| tier.pages * tier.writes_each);
    let all = weights;
    for portion in sizes.iter().filter(|portion| portion.size.is_partial()) {
        let needed = HOT_ENOUGH * touches_of_run(portion);
        let takes = |tier: usize| tier == TIERS - 1 || tiers.tiers[tier].writes_each > needed;
        let own: [f64; TIERS] = std::array::from_fn(|tier| if takes(tier) { all[tier] } else { 0.0 });
        let sum: f64 = own.iter().sum();
        (0..TIERS).for_each(|tier| weights[tier] = (weights[tier] - portion.touches() * own[tier] / sum).max(0.0));
        spread(portion, &own, &mut parts);
    }
    for portion in sizes.iter().filter(|portion| !portion.size.is_partial()) {
        spread(portion, &weights, &mut parts);
    }
    parts
}

/// The position of the hottest pages.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Spread as widely as other pages: the paper says nothing about hot tracks.
    Anywhere,
    /// A core: `writes` writes of the two hottest tiers go to `cells` cells.
    Core { writes: u64, cells: u64 },
    /// The tiers from `first` on occupy `cells` cells.
    TopTiers { first: usize, cells: u64 },
}

/// The tiers of a machine, the requests of each tier, and the position of the hottest tiers.
struct Heats {
    tiers: Tiers,
    parts: [Vec<Portion>; TIERS],
    hot: Place,
}

/// Number of steps in which the spread of the tiers is narrowed, in search of one that matches the paper's hot tracks.
const SPREADS: u32 = 10;

impl Heats {
    /// Returns the tiers of a machine. If the two hottest tiers take as many writes as the paper's hot tracks, the hot
    /// tracks become a core of these two tiers. If they take fewer, the hot tracks hold as many of the hottest tiers as
    /// fit. The spread is then the widest one at which these tiers take enough writes, or else the one at which they
    /// take the most.
    fn of(machine: &Machine, sizes: &[Portion], hottest_writes: u64, cell_pages: u64) -> Heats {
        let at = |spread: f64| {
            let tiers = Tiers::of(machine, spread);
            (tiers, parts_of_tiers(&tiers, sizes))
        };
        let (tiers, parts) = at(1.0);
        let Some(HotTracks { tracks, percent }) = machine.told.hot else {
            return Heats { tiers, parts, hot: Place::Anywhere };
        };
        let writes = (machine.writes * percent / 100).saturating_sub(hottest_writes);
        // The hottest page has its own cell, which counts as one of the hot tracks.
        let cells = ((tracks - 1) * TRACK_PAGES).div_ceil(cell_pages);
        if writes_from(&parts, TIERS - 2) >= writes {
            return Heats { tiers, parts, hot: Place::Core { writes, cells } };
        }
        let fitted = |tenths: u32| {
            let (tiers, parts) = at(tenths as f64 / SPREADS as f64);
            let pages_from = |first: usize| tiers.tiers[first..].iter().map(|tier| tier.pages).sum::<f64>();
            let first = (0..TIERS).find(|&first| pages_from(first) <= (cells * cell_pages) as f64).unwrap_or(TIERS - 1);
            let taken = writes_from(&parts, first);
            (taken, Heats { tiers, parts, hot: Place::TopTiers { first, cells } })
        };
        let mut best = fitted(SPREADS);
        for tenths in (0..SPREADS).rev() {
            if best.0 >= writes {
                break;
            }
            let next = fitted(tenths);
            best = if next.0 > best.0 { next } else { best };
        }
        best.1
    }
}

/// Returns the number of writes that go to the tiers from `first` on.
fn writes_from(parts: &[Vec<Portion>; TIERS], first: usize) -> u64 {
    parts[first..].iter().flatten().map(|portion| portion.size.count).sum()
}

/// Minimum ratio of the writes to a page of a tier and the touches of a page by one long run of small requests.
const HOT_ENOUGH: f64 = 1.2;

/// Returns the number of times that one long run of requests smaller than a page touches a page.
fn touches_of_run(portion: &Portion) -> f64 {
    RUN_REQUESTS as f64 * portion.touches_each / slot_pages(&portion.size, RUN_REQUESTS) as f64
}

/// Divides the requests of `portion` among the tiers by weight.
fn spread(portion: &Portion, weights: &[f64; TIERS], parts: &mut [Vec<Portion>; TIERS]) {
    let sum: f64 = weights.iter().sum();
    let mut rest = *portion;
    let mut weight_before = 0.0;
    let mut given = 0;
    for tier in 0..TIERS {
        weight_before += weights[tier];
        let end = (portion.size.count as f64 * weight_before / sum).round() as u64;
        let part = if tier == TIERS - 1 { rest } else { rest.split(end - given) };
        given = end;
        if part.size.count > 0 {
            parts[tier].push(part);
        }
    }
}

/// The hot tracks as cells of their own, for a machine whose hot tracks' share of the writes is known.
struct Core {
    portions: Vec<Portion>,
    cells: u64,
    fill_pages: u64,
}

impl Core {
    /// Takes `writes` requests, an equal share of every size, and the pages of `cells` cells out of the two hottest
    /// tiers. Takes at most half of the tiers' pages.
    fn carve(writes: u64, cells: u64, cell_pages: u64, tiers: &mut Tiers, parts: &mut [Vec<Portion>; TIERS]) -> Core {
        let (tiers, parts) = (&mut tiers.tiers[TIERS - 2..], &mut parts[TIERS - 2..]);
        let pages: f64 = tiers.iter().map(|tier| tier.pages).sum();
        let fill_pages = ((pages / 2.0 / cells as f64) as u64).min(cell_pages);
        let pages_left = 1.0 - (cells * fill_pages) as f64 / pages;
        tiers.iter_mut().for_each(|tier| tier.pages *= pages_left);
        let all: u64 = parts.iter().flatten().map(|portion| portion.size.count).sum();
        let share = (writes as f64 / all as f64).min(1.0);
        let taken = |portion: &mut Portion| portion.split((portion.size.count as f64 * share).round() as u64);
        let portions = parts.iter_mut().flatten().map(taken).filter(|portion| portion.size.count > 0).collect();
        parts.iter_mut().for_each(|portions| portions.retain(|portion| portion.size.count > 0));
        Core { portions, cells, fill_pages }
    }
}
