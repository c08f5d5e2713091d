//! Goal: every sector reads as the host last wrote it. After a power cut at any step, it reads as before or after the
//! current command. Method: random commands on toy sections; every plan runs on the naive medium. At every step a fresh
//! layer replays the durable records, and every LBA is looked up in both layers.

use imbrex_disk::{Command, Lba, Operation, Sectors};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::{Direct, Policy, SBlocks, Shape};
use super::TOY;
use super::medium::{Cell, Medium};
use crate::layer::{Layer, Piece};
use crate::plan::note::Note;
use crate::plan::{Plan, Step};

/// Version of each LBA that the host wrote last: 0 if never written, `None` if trimmed.
type Naive = Vec<Option<u64>>;

/// The drive under test, and its expected contents.
struct Run {
    shape: Shape,
    policy: Policy,
    direct: Direct,
    extra: u64,
    layer: SBlocks,
    medium: Medium,
    naive: Naive,
    checkpoint: Vec<Note>,
    version: u64,
}

impl Run {
    fn new(shape: Shape, policy: Policy, direct: Direct, extra: u64) -> Run {
        let layer = super::built(shape, policy, direct, extra);
        let sectors = shape.sections * shape.physical_sectors();
        let medium = Medium::new(sectors, shape.interference_sectors);
        let naive = vec![Some(0); layer.capacity().0 as usize];
        Run { shape, policy, direct, extra, layer, medium, naive, checkpoint: Vec::new(), version: 0 }
    }

    /// Returns a fresh layer with the checkpoint and `notes` replayed.
    fn recovered(&self, notes: &[Note]) -> SBlocks {
        let mut fresh = super::built(self.shape, self.policy, self.direct, self.extra);
        for note in self.checkpoint.iter().chain(notes) {
            fresh.replay(note).expect("a durable record replays");
        }
        fresh.self_check().expect("invariants hold after replay");
        fresh
    }

    fn command(&mut self, command: Command) {
        self.version += 1;
        let mut plan = Plan::new();
        self.layer.plan(&[command], &mut plan);
        self.layer.self_check().expect("invariants hold");
        let (before, version) = (self.naive.clone(), self.version);
        let touched = command.lba.0 as usize..command.end().0 as usize;
        match command.operation {
            Operation::Write => self.naive[touched].fill(Some(version)),
            Operation::Trim => self.naive[touched].fill(None),
            Operation::Read | Operation::Flush => {}
        }
        let host: Vec<u64> = (command.lba.0..command.end().0).collect();
        let mut medium = self.medium.clone();
        medium.run(&plan, &host, version, |medium, step| self.cut_before(medium, step, &before));
        assert!(medium.pending.is_empty(), "a plan ends durable");
        self.medium = medium;
        check_contents(&self.layer, &self.medium, &[&self.naive]);
    }

    /// Checks a power cut before `step`, or in the middle of it, with the records up to the last barrier or with all
    /// records so far.
    fn cut_before(&self, medium: &Medium, step: &Step, before: &Naive) {
        let allowed = [before, &self.naive];
        let mut notes = medium.durable.clone();
        check_contents(&self.recovered(&notes), &medium.torn(step), &allowed);
        notes.extend(&medium.pending);
        check_contents(&self.recovered(&notes), medium, &allowed);
    }

    /// Restarts at rest: replaces the layer by one that a checkpoint rebuilds.
    fn restart_from_checkpoint(&mut self) {
        let recovered = self.recovered(&self.medium.durable);
        assert_eq!(places(&recovered), places(&self.layer), "invariant 7");
        let mut notes = Vec::new();
        self.layer.checkpoint(&mut notes);
        self.checkpoint = notes;
        self.medium.durable.clear();
        let fresh = self.recovered(&[]);
        assert_eq!(places(&fresh), places(&self.layer), "a checkpoint rebuilds the map");
        self.layer = fresh;
    }
}

fn places(layer: &SBlocks) -> Vec<Piece> {
    let mut pieces = Vec::new();
    layer.lookup(Lba(0), layer.capacity(), &mut pieces);
    pieces
}

/// Checks that every LBA, read from `medium` where `layer` maps it, has the contents of one of `allowed`.
fn check_contents(layer: &SBlocks, medium: &Medium, allowed: &[&Naive]) {
    let mut next = 0;
    for piece in places(layer) {
        assert_eq!(piece.lba, Lba(next), "pieces follow each other");
        for i in 0..piece.sectors.0 {
            let lba = next + i;
            let found = match piece.at.map(|(_, pba)| medium.cells[(pba.0 + i) as usize]) {
                None | Some(Cell::Zeros) => None,
                Some(Cell::Never) => Some(0),
                Some(Cell::Holds { lba: held, version }) if held == lba => Some(version),
                Some(other) => panic!("LBA {lba} at {:?} reads {other:?}", piece.at),
            };
            assert!(allowed.iter().any(|naive| naive[lba as usize] == found), "LBA {lba} reads version {found:?}");
        }
        next += piece.sectors.0;
    }
    assert_eq!(Sectors(next), layer.capacity());
}

/// Returns a random command: short writes, some at the end of the last, some of whole S-blocks, trims and reads.
fn random_command(random: &mut Xoshiro256PlusPlus, capacity: u64, last_end: u64, size: u64) -> Command {
    let mut below = |bound: u64| random.next_u64() % bound;
    let lba = match below(4) {
        0 => last_end % capacity,
        1 => below(capacity / size) * size,
        _ => below(capacity),
    };
    let longest = if below(8) == 0 { 3 * size } else { size / 2 + 1 };
    let sectors = (1 + below(longest)).min(capacity - lba) as u32;
    match below(12) {
        0 => Command::trim(lba, sectors),
        1 => Command::read(lba, sectors),
        2 => Command::flush(),
        _ => Command::write(lba, sectors),
    }
}

fn random_run(shape: Shape, policy: Policy, direct: Direct, extra: u64, seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut run = Run::new(shape, policy, direct, extra);
    let (capacity, mut last_end) = (run.layer.capacity().0, 0);
    for number in 0..300 {
        let command = random_command(&mut random, capacity, last_end, shape.sblock_sectors);
        if command.operation == Operation::Write {
            last_end = command.end().0;
        }
        run.command(command);
        if number % 37 == 36 {
            run.restart_from_checkpoint();
        }
    }
}

/// Larger S-blocks, a wider interference and a guard longer than the minimum.
const WIDE: Shape = Shape {
    sections: 2,
    sblock_sectors: 7,
    native_sblocks: 4,
    spare_sblocks: 3,
    cache_sectors: 11,
    guard_sectors: 13,
    interference_sectors: 3,
};

#[test]
fn random_runs_and_cuts_keep_every_sector() {
    for policy in Policy::NAMES.iter().map(|name| Policy::named(name)) {
        for direct in [Direct::Off, Direct::Whole, Direct::Stream] {
            for seed in 0..3 {
                random_run(TOY, policy, direct, seed % 2, seed);
                random_run(WIDE, policy, direct, seed % 3, seed + 100);
            }
        }
    }
}

#[test]
fn a_damaged_journal_is_refused_and_not_believed() {
    let mut layer = super::built(TOY, Policy::ClosestToTail, Direct::Stream, 0);
    let past_the_end = [
        Note::new(1, &[23, 2, 0, 0]),
        Note::new(1, &[0, 2, 0, 9]),
        Note::new(1, &[11, 2, 0, 0]),
        Note::new(1, &[0, 2, u64::MAX, 0]),
        Note::new(2, &[0, 0]),
        Note::new(3, &[6, 12, 0, 0]),
        Note::new(3, &[0, 13, 0, 0]),
        Note::new(4, &[0, 12, 5, 0]),
        Note::new(5, &[0]),
        Note::new(6, &[2, 0, 0]),
        Note::new(7, &[2, 0, 0]),
        Note::new(8, &[]),
    ];
    for note in past_the_end {
        assert!(layer.replay(&note).is_err(), "{note:?} was taken");
    }
}
