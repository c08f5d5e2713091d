//! Goal: the power cuts on bytes detect faulty layers. Method: layers whose plans are altered on purpose, with one
//! fault each. Each of them must lose data, and the same layers unaltered must not.

use imbrex_device::image::Bounds;
use imbrex_device::verify::power_loss::{Loss, Tally, Trial, run};
use imbrex_disk::{Command, Lba, Sectors, SimDuration};
use imbrex_layer::{
    Background, Cause, Layer, MapMemory, Note, Phase, Piece, Plan, ReplayError, Step, StepOp, Violation,
};
use imbrex_sim::Drive;

use crate::common;

/// Replaces the steps of a phase; may move steps to later phases of the plan.
type Alter = fn(&[Step], &Plan, &mut Vec<Step>);

/// A layer whose plans are altered by `alter`, phase by phase.
struct Mutant {
    inner: Box<dyn Layer>,
    alter: Alter,
}

impl Mutant {
    fn altered(&self, plan: &mut Plan, from_phase: usize) {
        let original = plan.clone();
        plan.phases.truncate(from_phase);
        plan.steps
            .truncate(original.phases.get(from_phase).map_or(original.steps.len(), |phase| phase.first_step as usize));
        for (index, phase) in original.phases.iter().enumerate().skip(from_phase) {
            let first_step = plan.steps.len() as u32;
            plan.phases.push(Phase { first_step, ..*phase });
            (self.alter)(original.steps_of(index), &original, &mut plan.steps);
        }
    }
}

impl Layer for Mutant {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn capacity(&self) -> Sectors {
        self.inner.capacity()
    }
    fn plan(&mut self, commands: &[Command], plan: &mut Plan) {
        let from = plan.phases.len();
        self.inner.plan(commands, plan);
        self.altered(plan, from);
    }
    fn background(&self) -> Option<Background> {
        self.inner.background().map(|_| Background { idle_after: SimDuration::from_secs(1), rest: SimDuration::ZERO })
    }
    fn idle(&mut self, plan: &mut Plan) -> bool {
        let from = plan.phases.len();
        let is_busy = self.inner.idle(plan);
        self.altered(plan, from);
        is_busy
    }
    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
        self.inner.lookup(lba, sectors, pieces);
    }
    fn keeps_trims(&self) -> bool {
        self.inner.keeps_trims()
    }
    fn self_check(&self) -> Result<(), Violation> {
        self.inner.self_check()
    }
    fn memory(&self) -> MapMemory {
        self.inner.memory()
    }
    fn checkpoint(&self, notes: &mut Vec<Note>) {
        self.inner.checkpoint(notes);
    }
    fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        self.inner.replay(note)
    }
    fn repair(&mut self, plan: &mut Plan) {
        self.inner.repair(plan);
    }
}

/// Seeds tried before a mutant counts as not detected.
const SEEDS: u64 = 12;

/// Runs cuts on the first toy of `layer` on a disk named `disk`, altered by `alter`.
fn cut(layer: &str, disk: &str, alter: Alter) -> Result<Tally, Box<Loss>> {
    let subjects = common::subjects_of(layer);
    let subject = subjects.iter().find(|subject| subject.what.contains(disk)).expect("the layer takes that disk");
    let prepare = |drive: &mut Drive| {
        let placeholder: Box<dyn Layer> = Box::new(Nothing);
        let inner = std::mem::replace(&mut drive.layer, placeholder);
        drive.layer = Box::new(Mutant { inner, alter });
    };
    let mut sum = Tally::default();
    for seed in 0..SEEDS {
        let (header, prepare, bounds) = (&subject.header, &prepare, Bounds::default());
        let trial =
            Trial { header, prepare, seed, actions: 25, sectors_max: 24, images_per_act: 3, bounds, is_checked: false };
        sum += run(&trial)?;
    }
    Ok(sum)
}

/// Placeholder while a layer is wrapped.
struct Nothing;

impl Layer for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }
    fn capacity(&self) -> Sectors {
        Sectors(0)
    }
    fn plan(&mut self, _: &[Command], _: &mut Plan) {}
    fn lookup(&self, _: Lba, _: Sectors, _: &mut Vec<Piece>) {}
    fn keeps_trims(&self) -> bool {
        false
    }
    fn self_check(&self) -> Result<(), Violation> {
        Ok(())
    }
    fn memory(&self) -> MapMemory {
        MapMemory::default()
    }
    fn checkpoint(&self, _: &mut Vec<Note>) {}
    fn replay(&mut self, _: &Note) -> Result<(), ReplayError> {
        Ok(())
    }
}

/// The layers of the mutants: a log with a cache in sets, and a rewrite in place with a spare.
const SETS: (&str, &str) = ("set-associative", "interfering blocks");
const REGIONS: (&str, &str) = ("region-rmw", "interfering blocks");
const TRACKS: (&str, &str) = ("imr-rmw", "interlaced groups");

fn same(steps: &[Step], _: &Plan, out: &mut Vec<Step>) {
    out.extend_from_slice(steps);
}

fn barrier_left_out(steps: &[Step], _: &Plan, out: &mut Vec<Step>) {
    out.extend(steps.iter().filter(|step| step.op != StepOp::Barrier));
}

/// Moves each note, made durable, before the write that precedes it.
fn note_before_its_data(steps: &[Step], _: &Plan, out: &mut Vec<Step>) {
    let begin = out.len();
    for step in steps {
        let write = out[begin..].iter().rposition(|step| step.op == StepOp::Write);
        if let (StepOp::Note, Some(write)) = (step.op, write) {
            let barrier = Step { op: StepOp::Barrier, sectors: 0, ..*step };
            out.splice(begin + write..begin + write, [*step, barrier]);
        } else {
            out.push(*step);
        }
    }
}

/// Delays the note of a backup until after the write that endangers the data.
fn write_before_the_backups_note(steps: &[Step], _: &Plan, out: &mut Vec<Step>) {
    let (mut is_backed_up, mut held) = (false, Vec::new());
    for step in steps {
        match step.op {
            StepOp::Write if step.cause == Cause::Backup => {
                is_backed_up = true;
                out.push(*step);
            }
            StepOp::Note if is_backed_up => held.push(*step),
            StepOp::Write => {
                is_backed_up = false;
                out.push(*step);
                out.append(&mut held);
            }
            _ => out.push(*step),
        }
    }
    out.append(&mut held);
}

/// Returns whether `step` is the note that ends a rewrite with a spare.
fn ends_rewrite(step: &Step, plan: &Plan) -> bool {
    step.op == StepOp::Note && plan.note_of(step).tag == 2
}

/// Notes the end of a rewrite, durably, before the rewrite.
fn backup_cleared_too_early(steps: &[Step], plan: &Plan, out: &mut Vec<Step>) {
    let begin = out.len();
    for step in steps {
        let endangering = |step: &Step| step.op == StepOp::Write && step.cause != Cause::Backup;
        let first = out[begin..].iter().rposition(|step| step.op == StepOp::Write && step.cause == Cause::Backup);
        if let (true, Some(backup)) = (ends_rewrite(step, plan), first) {
            let from = begin + backup;
            let write = out[from..].iter().position(endangering).map_or(out.len(), |write| from + write);
            let barrier = Step { op: StepOp::Barrier, sectors: 0, ..*step };
            out.splice(write..write, [*step, barrier]);
        } else {
            out.push(*step);
        }
    }
}

fn backup_never_cleared(steps: &[Step], plan: &Plan, out: &mut Vec<Step>) {
    out.extend(steps.iter().filter(|step| !ends_rewrite(step, plan)));
}

fn no_backup(steps: &[Step], _: &Plan, out: &mut Vec<Step>) {
    out.extend(steps.iter().filter(|step| step.cause != Cause::Backup));
}

fn caught((layer, disk): (&str, &str), alter: Alter, what: &str) {
    let loss = cut(layer, disk, alter).expect_err(what);
    println!("{layer}: {what}: {loss}");
    assert!(!loss.actions.is_empty() && loss.actions.len() < 25, "{loss}");
}

#[test]
fn unaltered_layers_lose_nothing() {
    for (layer, disk) in [SETS, REGIONS, TRACKS] {
        cut(layer, disk, same).unwrap_or_else(|loss| panic!("{loss}"));
    }
}

#[test]
fn a_note_durable_before_the_data_it_names_is_caught() {
    caught(SETS, note_before_its_data, "the record points to what is not there");
}

#[test]
fn a_destroying_write_before_the_backups_note_is_caught() {
    for base in [REGIONS, TRACKS] {
        caught(base, write_before_the_backups_note, "what the write destroys is recorded nowhere");
    }
}

#[test]
fn a_left_out_barrier_is_caught() {
    for base in [SETS, REGIONS, TRACKS] {
        caught(base, barrier_left_out, "records may be durable before their data");
    }
}

#[test]
fn a_backup_cleared_too_early_is_caught() {
    caught(REGIONS, backup_cleared_too_early, "the rewrite is cut, and nothing says that the spare holds it");
}

#[test]
fn a_backup_never_cleared_is_caught() {
    caught(REGIONS, backup_never_cleared, "the spare is copied over what was written since");
}

#[test]
fn a_left_out_backup_is_caught() {
    for base in [REGIONS, TRACKS] {
        caught(base, no_backup, "the spare does not hold what its record says");
    }
}
