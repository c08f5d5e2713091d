//! Goal: the checker and the power-cut tests find the faults that they are for. Method: layers whose plans are altered
//! on purpose, one fault each. Every fault must be found and named.

use imbrex_disk::{Command, Lba, Pba, Sectors, SharedDisk};
use imbrex_layer::verify::cuts::{self, PowerCutTest};
use imbrex_layer::verify::{CheckError, Checker, Fault, WriteNumber, toy};
use imbrex_layer::{
    Background, Cause, GroupKind, Layer, MapMemory, Note, Piece, Plan, ReplayError, Step, StepOp, Violation, registry,
};

/// A layer whose plans are changed step by step by `alter`.
struct Mutant {
    inner: Box<dyn Layer>,
    alter: fn(&Step, &mut Vec<Step>),
}

impl Mutant {
    fn altered(&self, plan: &mut Plan) {
        let original = plan.clone();
        plan.clear();
        plan.notes = original.notes.clone();
        for (index, phase) in original.phases.iter().enumerate() {
            let first_step = plan.steps.len() as u32;
            plan.phases.push(imbrex_layer::Phase { first_step, ..*phase });
            original.steps_of(index).iter().for_each(|step| (self.alter)(step, &mut plan.steps));
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
        self.inner.plan(commands, plan);
        self.altered(plan);
    }
    fn background(&self) -> Option<Background> {
        self.inner.background()
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

const REGIONS: (&str, &[(&str, &str)]) = ("region-rmw", &[("region_size", "16k")]);
const UNSAFE_REGIONS: (&str, &[(&str, &str)]) = ("region-rmw", &[("region_size", "16k"), ("safety", "paper")]);
const SETS: (&str, &[(&str, &str)]) = ("set-associative", &[("region_size", "8k"), ("cache_share", "10%")]);

const BUFFER: (&str, &[(&str, &str)]) = ("top-buffer", &[("buffer_share", "20%")]);
const LOG: (&str, &[(&str, &str)]) =
    ("write-buffer", &[("buffer_share", "20%"), ("clean_above", "30%"), ("tops", "on")]);
const FLIPS: (&str, &[(&str, &str)]) =
    ("flip-cache", &[("interval", "6"), ("background_every", "1"), ("payback", "0"), ("watch", "0")]);
const SWAPS: (&str, &[(&str, &str)]) = (
    "block-swap",
    &[("interval", "6"), ("background_every", "1"), ("payback", "0"), ("watch", "0"), ("block_size", "2k")],
);

fn toy_disk() -> SharedDisk {
    toy::disks("block-interference").next().expect("there is one").disk
}

fn mutant(
    disk: &SharedDisk,
    (name, given): (&str, &[(&str, &str)]),
    alter: fn(&Step, &mut Vec<Step>),
) -> Box<dyn Layer> {
    let given: Vec<_> = given.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
    Box::new(Mutant { inner: registry::build(name, disk, &given).expect("it builds"), alter })
}

/// Returns the checker's verdict on a random run.
fn checked(base: (&str, &[(&str, &str)]), alter: fn(&Step, &mut Vec<Step>)) -> Result<(), CheckError> {
    let disk = toy_disk();
    let mut layer = mutant(&disk, base, alter);
    let mut checker = Checker::new(&disk, layer.as_ref(), true);
    let mut commands = toy::Commands::new(1, layer.capacity(), 24);
    let mut plan = Plan::new();
    for _ in 0..500 {
        let given = commands.plan(layer.as_mut(), &mut plan);
        checker.check(&plan, &given, layer.as_ref())?;
    }
    Ok(())
}

/// Returns the verdict of the power-cut test on a random run.
fn cut(base: (&str, &[(&str, &str)]), alter: fn(&Step, &mut Vec<Step>)) -> Result<(), String> {
    cut_on(&toy_disk(), base, alter)
}

fn cut_on(disk: &SharedDisk, base: (&str, &[(&str, &str)]), alter: fn(&Step, &mut Vec<Step>)) -> Result<(), String> {
    let build = || mutant(disk, base, alter);
    let test = PowerCutTest { disk, build: &build, seed: 1, plans: 60, sectors_max: 24, images_per_step: 40 };
    cuts::run(&test).map(|_| ()).map_err(|error| error.what)
}

fn same(step: &Step, out: &mut Vec<Step>) {
    out.push(*step);
}

/// Writes one sector past the region in place, so that the guard is too short.
fn one_sector_too_far(step: &Step, out: &mut Vec<Step>) {
    let is_in_place = step.op == StepOp::Write && step.cause == Cause::Cleaning;
    out.push(Step { sectors: step.sectors + is_in_place as u32, ..*step });
}

fn no_barriers(step: &Step, out: &mut Vec<Step>) {
    out.extend((step.op != StepOp::Barrier).then_some(*step));
}

fn no_backup(step: &Step, out: &mut Vec<Step>) {
    out.extend((step.cause != Cause::Backup).then_some(*step));
}

/// Moves a note before the write that precedes it.
fn note_before_its_data(step: &Step, out: &mut Vec<Step>) {
    out.push(*step);
    let writes = out.iter().rposition(|step| step.op == StepOp::Write);
    if let (StepOp::Note, Some(write)) = (step.op, writes) {
        let note = out.pop().expect("it was pushed");
        out.insert(write, note);
    }
}

/// Inserts a barrier after the first sector of each write: the sectors that it destroys are not rewritten yet.
fn barrier_inside_a_rewrite(step: &Step, out: &mut Vec<Step>) {
    if step.op != StepOp::Write || step.sectors < 2 {
        return out.push(*step);
    }
    let barrier = Step { op: StepOp::Barrier, sectors: 0, ..*step };
    let (pba, lba) = (step.pba + Sectors(1), step.lba + Sectors(1));
    out.extend([Step { sectors: 1, ..*step }, barrier, Step { sectors: step.sectors - 1, pba, lba, ..*step }]);
}

/// Omits the last read of a merge: its sectors are written as zeros or with stale data.
fn no_cached_reads(step: &Step, out: &mut Vec<Step>) {
    let is_cached = step.op == StepOp::Read && step.cause == Cause::Cleaning && step.sectors < 16;
    out.extend((!is_cached).then_some(*step));
}

/// Makes host reads begin one sector later.
fn read_beside(step: &Step, out: &mut Vec<Step>) {
    let is_host_read = step.op == StepOp::Read && step.cause == Cause::Host;
    out.push(Step { pba: step.pba + Sectors(is_host_read as u64), ..*step });
}

#[test]
fn unaltered_layers_pass() {
    for base in [REGIONS, SETS] {
        checked(base, same).expect("no fault");
        cut(base, same).expect("no fault");
    }
}

#[test]
fn a_write_one_sector_too_far_is_caught() {
    for base in [REGIONS, SETS] {
        let error = checked(base, one_sector_too_far).expect_err("the guard is one sector short");
        // The newest data behind the guard are lost at once; a destroyed old copy is found when a merge reads its
        // region.
        assert!(matches!(error.fault, Fault::Lost { .. } | Fault::ReadDestroyed { .. }), "{error}");
    }
}

#[test]
fn a_merge_without_the_cached_data_is_caught() {
    let error = checked(SETS, no_cached_reads).expect_err("newest versions are lost");
    // The stale copy in the native place is found when the plan ends, or when the cached copy is overwritten before
    // that.
    assert!(matches!(error.fault, Fault::Lost { .. } | Fault::Endangered { .. }), "{error}");
}

#[test]
fn a_read_of_the_wrong_sector_is_caught() {
    let error = checked(REGIONS, read_beside).expect_err("the sector beside holds something else");
    assert!(matches!(error.fault, Fault::ReadWrong { .. } | Fault::ReadDestroyed { .. }), "{error}");
}

#[test]
fn a_barrier_inside_an_unprotected_rewrite_is_caught() {
    let error = checked(UNSAFE_REGIONS, barrier_inside_a_rewrite).expect_err("the rest is intact nowhere");
    assert!(matches!(error.fault, Fault::Endangered { .. }), "{error}");
    checked(REGIONS, barrier_inside_a_rewrite).expect("the spare protects it");
}

#[test]
fn left_out_barriers_are_caught_by_cuts() {
    for base in [REGIONS, SETS] {
        cut(base, no_barriers).expect_err("records may be durable before their data");
    }
}

#[test]
fn a_note_before_its_data_is_caught_by_cuts() {
    cut(SETS, note_before_its_data).expect_err("the record points to what is not there");
}

#[test]
fn a_left_out_backup_is_caught() {
    for base in [REGIONS, SETS] {
        cut(base, no_backup).expect_err("the spare does not hold what its record says");
    }
}

#[test]
fn faults_of_interlaced_layers_are_caught_by_cuts() {
    let disk = toy::disks("interlaced").nth(1).expect("there is one of equal tracks").disk;
    for base in [BUFFER, LOG, FLIPS, SWAPS] {
        cut_on(&disk, base, same).unwrap_or_else(|what| panic!("{}: {what}", base.0));
        for (fault, alter) in [("backup", no_backup as fn(&Step, &mut Vec<Step>)), ("barriers", no_barriers)] {
            assert!(cut_on(&disk, base, alter).is_err(), "{} without {fault} loses nothing", base.0);
        }
    }
    for base in [BUFFER, LOG] {
        cut_on(&disk, base, note_before_its_data).expect_err("the record points to what is not there");
    }
}

#[test]
fn the_papers_own_steps_do_not_survive_cuts() {
    cut(UNSAFE_REGIONS, same).expect_err("safety=paper loses the rest of a region");
}

/// Returns the identity layer on its toy, with a checker, for plans made by hand.
fn by_hand() -> (Checker, Box<dyn Layer>) {
    let disk = toy::disks("conventional").next().expect("there is one").disk;
    let layer = registry::build("conventional", &disk, &[]).expect("it builds");
    (Checker::new(&disk, layer.as_ref(), true), layer)
}

fn plan_of(write: impl FnOnce(&mut Plan)) -> Plan {
    let mut plan = Plan::new();
    plan.open(GroupKind::Host);
    write(&mut plan);
    plan
}

#[test]
fn a_host_read_that_fetches_too_little_is_stale() {
    let (mut checker, layer) = by_hand();
    let write = plan_of(|plan| plan.write(Cause::Host, Pba(10), Lba(10), Sectors(4)));
    checker.check(&write, &[Command::write(10, 4)], layer.as_ref()).expect("it is right");
    let read = plan_of(|plan| plan.read(Cause::Host, Pba(10), Lba(10), Sectors(3)));
    let error = checker.check(&read, &[Command::read(10, 4)], layer.as_ref()).expect_err("LBA 13 is left out");
    assert_eq!(error.fault, Fault::StaleRead { lba: Lba(13), expected: 1, found: 0 });
}

#[test]
fn a_write_to_the_wrong_place_is_lost() {
    let (mut checker, layer) = by_hand();
    let write = plan_of(|plan| plan.write(Cause::Host, Pba(11), Lba(10), Sectors(1)));
    let error = checker.check(&write, &[Command::write(10, 1)], layer.as_ref()).expect_err("it belongs to PBA 10");
    assert!(matches!(error.fault, Fault::Lost { lba: Lba(10), expected: 1, .. }), "{error}");
}

#[test]
fn a_step_past_the_disk_is_out_of_bounds() {
    let (mut checker, layer) = by_hand();
    let end = layer.capacity().0;
    let read = plan_of(|plan| plan.read(Cause::Host, Pba(end - 1), Lba(end - 1), Sectors(2)));
    let error = checker.check(&read, &[], layer.as_ref()).expect_err("the last sector is one further");
    assert_eq!((error.plan, error.step.map(|(number, _)| number), error.fault), (1, Some(0), Fault::OutOfBounds));
}

#[test]
fn a_destroyed_sector_names_the_write_that_destroyed_it() {
    let disk = toy_disk();
    let layer = mutant(&disk, REGIONS, same);
    let mut checker = Checker::new(&disk, layer.as_ref(), true);
    // The write of PBA 0 destroys the next five sectors; the error of reading them names that write.
    let plan = plan_of(|plan| {
        plan.write(Cause::Host, Pba(0), Lba(0), Sectors(1));
        plan.read(Cause::Host, Pba(5), Lba(5), Sectors(2));
    });
    let error = checker.check(&plan, &[Command::write(0, 1)], layer.as_ref()).expect_err("PBA 5 is destroyed");
    assert_eq!(error.fault, Fault::ReadDestroyed { pba: Pba(5), by: WriteNumber::new(1, 0) });
    assert!(error.to_string().contains("reads PBA 5, which step 0 of plan 1 destroyed"), "{error}");
}

/// Zeros that an abandoned cleaning copied of a trimmed sector add nothing to the record of the trim. So that copy may
/// be overwritten, although the layer has made another by the end of the plan. After two more copies there is no record
/// to fall back on.
#[test]
fn a_copy_of_a_trimmed_sector_that_was_given_up_may_go() {
    let disk = toy::disks("conventional").next().expect("there is one").disk;
    let given = [("placement", "in-place"), ("cache_size", "20k"), ("band_tracks", "2"), ("cache_block", "2k")]
        .map(|(key, value)| (key.to_string(), value.to_string()));
    let mut layer = registry::build("media-cache", &disk, &given).expect("it builds");
    let mut checker = Checker::new(&disk, layer.as_ref(), true);
    let mut plan = Plan::new();
    for command in [Some(Command::write(0, 4)), None, Some(Command::write(2, 2)), Some(Command::trim(0, 2))] {
        plan.clear();
        match &command {
            Some(command) => layer.plan(std::slice::from_ref(command), &mut plan),
            None => while layer.idle(&mut plan) {},
        }
        checker.check(&plan, command.as_slice(), layer.as_ref()).expect("it is right");
    }
    plan.clear();
    while layer.idle(&mut plan) {}
    let backup = plan.steps.iter().find(|step| step.cause == Cause::Backup).expect("the band goes by the spare");
    let spare = backup.pba;
    let given_up = plan_of(|plan| {
        plan.drop_sectors(Cause::Cleaning, Lba(0), Sectors(1));
        plan.write(Cause::Backup, spare, Lba(0), Sectors(1));
    });
    checker.check(&given_up, &[], layer.as_ref()).expect("it is one copy more");
    let mut pieces = Vec::new();
    layer.lookup(Lba(0), Sectors(1), &mut pieces);
    let (_, home) = pieces[0].at.expect("the layer has cleaned the band by now");
    let cleaned = plan_of(|plan| {
        plan.write(Cause::Backup, spare, Lba(9), Sectors(1));
        plan.barrier();
        plan.drop_sectors(Cause::Cleaning, Lba(0), Sectors(1));
        plan.write(Cause::Backup, spare, Lba(0), Sectors(1));
        plan.barrier();
        plan.write(Cause::Cleaning, home, Lba(0), Sectors(1));
    });
    checker.check(&cleaned, &[], layer.as_ref()).expect("LBA 0 is trimmed while its copy goes");
    let lost = plan_of(|plan| {
        plan.write(Cause::Cleaning, home, Lba(9), Sectors(1));
        plan.write(Cause::Cleaning, spare, Lba(9), Sectors(1));
        plan.barrier();
    });
    let error = checker.check(&lost, &[], layer.as_ref()).expect_err("no copy is left");
    assert!(matches!(error.fault, Fault::Endangered { lba: Lba(0), .. }), "{error}");
}
