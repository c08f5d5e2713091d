//! The source of a machine's requests: runs drawn from the plan. Each kind visits its cells in rounds.
//!
//! The slots of a kind that is visited often are divided into parts, one for each of the seven days of the traces. The
//! kind makes many passes over one part before the next part. Tracks are therefore hot "for a significant period" and
//! cold afterwards, as in Hajkazemi 2019 §2.2 (fig. 5). The order within a pass is a permutation, a new one for each
//! pass.
//!
//! Invariants:
//! 1. Equal plans and seeds give equal requests.
//! 2. Memory is limited to the plan, which has some tens of kinds.
//! 3. A kind visits each slot of a part once in every pass. A slot that begins at the end of the previous run is
//!    skipped.

use imbrex_units::{Command, Direction, SimTime};

use super::super::permutation::Permutation;
use super::super::random::{Stream, mix};
use super::choices::Choices;
use super::facts::Machine;
use super::lottery::Lottery;
use super::pace::Pace;
use super::plan::{Kind, Plan};
use super::sizes::PAGE_SECTORS;
use crate::request::{Request, Source, TraceError, When};

/// Minimum number of visits to each slot of a kind whose slots are divided into parts. `TURN_SLOTS` is its minimum
/// number of slots.
const TURN_VISITS: u64 = 16;
const TURN_SLOTS: u64 = 64;

/// Number of parts into which the slots are divided.
const PARTS: u64 = 7;

/// Offset in sectors of unaligned requests from a page boundary: that of a partition that begins at sector 63.
const OFF_SECTORS: u64 = 7;

/// 2^64 divided by the golden ratio. Its multiples modulo 2^64 are evenly spread.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The position of a kind in its cells.
#[derive(Clone, Debug)]
struct Round {
    kind: Kind,
    slots_per_cell: u64,
    slots: u64,
    part_slots: u64,
    passes: u64,
    part_first: u64,
    pass: u64,
    position: u64,
    order: Permutation,
    seed: u64,
    /// Upper bound for unaligned slots: a slot is unaligned if its multiple of [`GOLDEN`] is below.
    off_below: u64,
}

/// The position at which a run begins: the cell, and the page within the used pages of the cell.
struct Slot {
    cell: u64,
    page: u64,
    is_off: bool,
}

impl Round {
    fn new(kind: Kind, choices: Choices, seed: u64) -> Round {
        let slots_per_cell = kind.area.fill_pages.div_ceil(kind.slot_pages);
        let slots = kind.area.cells * slots_per_cell;
        let visits = kind.runs / slots;
        let turns = !choices.is_steady && visits >= TURN_VISITS && slots >= TURN_SLOTS;
        let part_slots = if turns { slots.div_ceil(PARTS) } else { slots };
        let order = Permutation::new(part_slots, seed);
        let passes = if turns { visits } else { 1 };
        let off_below = (kind.unaligned_share * u64::MAX as f64) as u64;
        let (part_first, pass, position) = (0, 0, 0);
        Round { kind, slots_per_cell, slots, part_slots, passes, part_first, pass, position, order, seed, off_below }
    }

    /// Returns the next slot of the kind.
    #[inline]
    fn next(&mut self) -> Slot {
        if self.position == self.order.count() {
            self.begin_pass();
        }
        let slot = self.part_first + self.order.apply(self.position);
        self.position += 1;
        let (cell, place) = (slot / self.slots_per_cell, slot % self.slots_per_cell);
        let is_off = (slot + 1).wrapping_mul(GOLDEN) < self.off_below;
        // The last slot of a cell is moved back to lie within the cell: it overlaps the previous slot.
        let last_page = self.kind.area.fill_pages - u64::from(is_off) - self.kind.slot_pages;
        let page = (place * self.kind.slot_pages).min(last_page);
        Slot { cell: self.kind.area.first_cell + cell, page, is_off }
    }

    fn begin_pass(&mut self) {
        self.position = 0;
        self.pass += 1;
        if self.pass == self.passes {
            self.pass = 0;
            self.part_first += self.part_slots;
            if self.part_first >= self.slots {
                self.part_first = 0;
            }
        }
        self.seed = mix(self.seed);
        self.order = Permutation::new(self.part_slots.min(self.slots - self.part_first), self.seed);
    }
}

/// A run in progress.
#[derive(Clone, Copy, Debug)]
struct Run {
    direction: Direction,
    lba: u64,
    sectors: u64,
    requests_left: u64,
}

/// The source of a machine's requests.
#[derive(Debug)]
pub(super) struct StandIn {
    stream: Stream,
    lottery: Lottery,
    rounds: Vec<Round>,
    /// Maps a cell of the plan to a cell of the disk, before `shift` is added. The last used cell maps to the last one
    /// of the disk, so that the requests reach the end of the machine's range.
    places: Permutation,
    shift: u64,
    cells: u64,
    cell_pages: u64,
    run: Run,
    pace: Pace,
    requests: u64,
}

impl StandIn {
    pub(super) fn new(machine: &Machine, choices: Choices, seed: u64) -> StandIn {
        let plan = Plan::of(machine, choices);
        let places = Permutation::new(plan.cells, mix(seed ^ GOLDEN));
        let shift = plan.cells - 1 - places.apply(plan.used_cells - 1);
        let round =
            |(index, kind): (usize, &Kind)| Round::new(*kind, choices, mix(seed.wrapping_add(mix(index as u64))));
        StandIn {
            stream: Stream::new(seed, 0),
            lottery: Lottery::new(plan.kinds.iter().map(|kind| kind.runs)),
            rounds: plan.kinds.iter().enumerate().map(round).collect(),
            places,
            shift,
            cells: plan.cells,
            cell_pages: plan.cell_pages,
            run: Run { direction: Direction::Read, lba: 0, sectors: 0, requests_left: 0 },
            pace: Pace::new(choices.arrivals, machine.requests(), choices.days),
            requests: machine.requests(),
        }
    }

    /// Draws the next run. Returns false at the end.
    #[inline]
    fn begin_run(&mut self) -> bool {
        let Some(drawn) = self.lottery.draw(&mut self.stream) else {
            return false;
        };
        let mut lba = self.next_place(drawn);
        if lba == self.run.lba {
            // A run at this position would continue the previous run and count as sequential, so the slot is skipped.
            lba = self.next_place(drawn);
        }
        let kind = &self.rounds[drawn].kind;
        self.run = Run { direction: kind.direction, lba, sectors: kind.sectors, requests_left: kind.run_requests };
        true
    }

    /// Returns the first sector of the next run of a kind.
    #[inline]
    fn next_place(&mut self, kind: usize) -> u64 {
        let round = &mut self.rounds[kind];
        let slot = round.next();
        let mut place = self.places.apply(slot.cell) + self.shift;
        if place >= self.cells {
            place -= self.cells;
        }
        let page = (place + 1) * self.cell_pages - round.kind.area.fill_pages + slot.page;
        page * PAGE_SECTORS + if slot.is_off { OFF_SECTORS } else { 0 }
    }
}

impl Source for StandIn {
    fn next(&mut self, _now: SimTime) -> Result<Option<Request>, TraceError> {
        if self.run.requests_left == 0 && !self.begin_run() {
            return Ok(None);
        }
        let run = &mut self.run;
        let command = match run.direction {
            Direction::Read => Command::read(run.lba, run.sectors as u32),
            Direction::Write => Command::write(run.lba, run.sectors as u32),
        };
        run.lba += run.sectors;
        run.requests_left -= 1;
        let time = self.pace.next(&mut self.stream);
        Ok(Some(Request { when: When::At(time), device: 0, command }))
    }

    fn expected_requests(&self) -> Option<u64> {
        Some(self.requests)
    }
}
