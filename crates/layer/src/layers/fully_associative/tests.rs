//! Goal: the algorithms of Aghayev 2015 §3.1 step by step, its table 2 for Emulated-SMR-3, and look-ups compared with a
//! naive map. Method: golden plans on the toy with an interference of six blocks, and random writes on the paper's
//! drive. On the toy, bands of 16 sectors lie at multiples of 21, and a zone has 8 of them and 3 free ones.

use imbrex_disk::Pba;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use super::*;
use crate::registry;
use crate::verify::toy;

const TOY: &[(&str, &str)] = &[("band_size", "8k"), ("zone_size", "64k"), ("log_bands", "2")];

fn layer(given: &[&[(&str, &str)]]) -> Box<dyn Layer> {
    let disk = toy::disks("block-interference").next().expect("there is one").disk;
    let given: Vec<_> = given.concat().iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
    registry::build(INFO.name, &disk, &given).expect("it builds")
}

fn assert_same(plan: &Plan, golden: &str, what: &str) {
    let lines: Vec<_> = golden.lines().map(str::trim).collect();
    let text = format!("{plan:?}");
    assert_eq!(text.lines().map(str::trim).collect::<Vec<_>>(), lines, "{what}:\n{plan:?}");
}

fn assert_plan(layer: &mut dyn Layer, command: Command, golden: &str) {
    let mut plan = Plan::new();
    layer.plan(&[command], &mut plan);
    assert_same(&plan, golden, &format!("{command:?}"));
}

fn assert_idle(layer: &mut dyn Layer, golden: &str) {
    let mut plan = Plan::new();
    assert!(layer.idle(&mut plan), "there is something to clean");
    assert_same(&plan, golden, "idle");
}

fn run(layer: &mut dyn Layer, commands: &[Command]) {
    for command in commands {
        layer.plan(std::slice::from_ref(command), &mut Plan::new());
        layer.self_check().unwrap_or_else(|violation| panic!("{command:?}: {violation}"));
    }
}

#[test]
fn writes_of_any_band_are_logged_one_after_the_other() {
    let mut layer = layer(&[TOY]);
    // 57 bands make five zones of 11; the two bands left over are less than half a zone.
    assert_eq!(layer.capacity(), Sectors(5 * 8 * 16));
    assert_plan(
        layer.as_mut(),
        Command::write(34, 3),
        "group Host
         write host pba 168+3 lba 34
         barrier
         note #1 34 3 8 0",
    );
    assert_plan(
        layer.as_mut(),
        Command::write(14, 4),
        "group Host
         write host pba 171+2 lba 14
         write host pba 173+2 lba 16
         barrier
         note #1 14 2 8 3
         note #1 16 2 8 5",
    );
    // The second zone has its own log: its bands are 11 to 21, and 19 is the first free one.
    assert_plan(
        layer.as_mut(),
        Command::write(129, 1),
        "group Host
         write host pba 399+1 lba 129
         barrier
         note #1 129 1 19 0",
    );
    assert_plan(
        layer.as_mut(),
        Command::read(12, 8),
        "group Host
         read host pba 12+2 lba 12
         read host pba 171+2 lba 14
         read host pba 173+2 lba 16
         read host pba 23+2 lba 18",
    );
}

#[test]
fn a_write_that_finds_the_reserve_alone_merges_until_the_oldest_log_band_is_dead() {
    let mut layer = layer(&[TOY]);
    // Log band 8: six sectors of logical band 0, ten of logical band 2. Log band 9: two of band 0, fourteen of band 4.
    run(layer.as_mut(), &[Command::write(1, 6), Command::write(33, 10), Command::write(9, 2), Command::write(65, 14)]);
    assert_plan(
        layer.as_mut(),
        Command::write(50, 1),
        "group Cleaning
         read cleaning pba 0+16 lba 0
         read cleaning pba 168+6 lba 1
         read cleaning pba 189+2 lba 9
         write cleaning pba 210+16 lba 0
         barrier
         note #3 0 10 0 0
         group Cleaning
         barrier
         read cleaning pba 42+16 lba 32
         read cleaning pba 174+10 lba 33
         write cleaning pba 0+16 lba 32
         barrier
         note #3 2 0 0 0
         group Host
         barrier
         write host pba 168+1 lba 50
         barrier
         note #1 50 1 8 0",
    );
}

#[test]
fn idle_time_merges_one_band_a_phase_until_nothing_is_logged() {
    let mut layer = layer(&[TOY]);
    run(layer.as_mut(), &[Command::write(17, 2), Command::write(3, 1), Command::trim(18, 1)]);
    assert_idle(
        layer.as_mut(),
        "group Cleaning
         read cleaning pba 0+16 lba 0
         read cleaning pba 170+1 lba 3
         write cleaning pba 189+16 lba 0
         barrier
         note #3 0 9 0 0",
    );
    assert_idle(
        layer.as_mut(),
        "group Cleaning
         barrier
         read cleaning pba 21+16 lba 16
         read cleaning pba 168+1 lba 17
         drop cleaning lba 18+1
         write cleaning pba 210+16 lba 16
         barrier
         note #3 1 10 0 0",
    );
    assert!(!layer.idle(&mut Plan::new()), "all is merged");
}

#[test]
fn lazy_cleaning_does_nothing_in_idle_time() {
    let mut layer = layer(&[TOY, &[("cleaning", "lazy")]]);
    run(layer.as_mut(), &[Command::write(3, 1)]);
    assert!(!layer.idle(&mut Plan::new()) && layer.background().is_none());
}

#[test]
fn idle_cleaning_stops_at_its_threshold() {
    let mut layer = layer(&[TOY, &[("idle_free", "50%")]]);
    run(layer.as_mut(), &[Command::write(1, 15)]);
    // Two of three bands are free, more than half.
    assert!(!layer.idle(&mut Plan::new()));
    run(layer.as_mut(), &[Command::write(17, 5)]);
    assert!(layer.idle(&mut Plan::new()));
}

#[test]
fn a_whole_band_is_written_straight_to_its_new_home() {
    let mut layer = layer(&[TOY]);
    run(layer.as_mut(), &[Command::write(20, 1)]);
    // The logged sectors of the band are dead, and so is the log band: it is queued as free after the old home.
    assert_plan(
        layer.as_mut(),
        Command::write(16, 16),
        "group Host
         write host pba 189+16 lba 16
         barrier
         note #4 1 9 16 0",
    );
    assert_plan(
        layer.as_mut(),
        Command::write(40, 1),
        "group Host
         barrier
         write host pba 210+1 lba 40
         barrier
         note #1 40 1 10 0",
    );
    assert_plan(
        layer.as_mut(),
        Command::read(16, 16),
        "group Host
         read host pba 189+16 lba 16",
    );
}

#[test]
fn a_stream_shows_by_its_second_write_and_its_beginning_is_copied() {
    let mut layer = layer(&[TOY]);
    run(layer.as_mut(), &[Command::write(16, 4)]);
    assert_plan(
        layer.as_mut(),
        Command::write(20, 6),
        "group Migration
         read migration pba 168+4 lba 16
         write migration pba 189+4 lba 16
         barrier
         note #4 1 9 4 0
         group Host
         write host pba 193+6 lba 20
         barrier
         note #4 1 9 10 0",
    );
    // The stream continues into the next band from its first sector, so nothing is copied.
    assert_plan(
        layer.as_mut(),
        Command::write(26, 8),
        "group Host
         write host pba 199+6 lba 26
         barrier
         note #4 1 9 16 0
         barrier
         write host pba 210+2 lba 32
         barrier
         note #4 2 10 2 0",
    );
}

#[test]
fn a_stream_that_breaks_off_is_completed_by_a_merge() {
    let mut layer = layer(&[TOY]);
    run(layer.as_mut(), &[Command::write(10, 6), Command::write(16, 6), Command::write(28, 2), Command::write(17, 1)]);
    // LBAs 10 to 15, 28 and 29, and 17 are logged in that order; the stream holds 16 to 21.
    assert_plan(
        layer.as_mut(),
        Command::read(16, 16),
        "group Host
         read host pba 189+1 lba 16
         read host pba 176+1 lba 17
         read host pba 191+4 lba 18
         read host pba 27+6 lba 22
         read host pba 174+2 lba 28
         read host pba 35+2 lba 30",
    );
    run(layer.as_mut(), &[Command::write(100, 7)]);
    assert_plan(
        layer.as_mut(),
        Command::write(110, 1),
        "group Cleaning
         read cleaning pba 27+10 lba 22
         read cleaning pba 174+2 lba 28
         write cleaning pba 195+10 lba 22
         barrier
         note #5 1 0 0 0
         group Host
         barrier
         write host pba 210+1 lba 110
         barrier
         note #1 110 1 10 0",
    );
}

#[test]
fn one_write_at_a_bands_start_is_no_stream() {
    let mut layer = layer(&[TOY]);
    assert_plan(
        layer.as_mut(),
        Command::write(16, 2),
        "group Host
         write host pba 168+2 lba 16
         barrier
         note #1 16 2 8 0",
    );
}

#[test]
fn a_sequential_overwrite_of_the_drive_writes_nothing_twice() {
    let mut layer = layer(&[TOY]);
    let (mut written, mut plan) = (0, Plan::new());
    for _ in 0..3 {
        for first in (0..layer.capacity().0).step_by(16) {
            plan.clear();
            layer.plan(&[Command::write(first, 16)], &mut plan);
            let of_plan = plan.steps.iter().filter(|step| step.is_access());
            written += of_plan.map(|step| step.sectors as u64).sum::<u64>();
        }
    }
    assert_eq!(written, 3 * layer.capacity().0);
}

/// The drive of Aghayev 2015 table 1.
fn paper_drive() -> Box<dyn Layer> {
    let profile = imbrex_disk::Profile::named("emulated-smr-3").expect("it comes with Imbrex");
    registry::build(INFO.name, &profile.disk(), &profile.parameters_for(INFO.name)).expect("it builds")
}

#[test]
fn random_writes_of_35_gib_fit_before_cleaning_starts() {
    let mut layer = paper_drive();
    assert_eq!(layer.capacity(), Sectors((91 * 40) << 21));
    let mut random = Xoshiro256StarStar::seed_from_u64(5);
    let (mut plan, mut writes) = (Plan::new(), 0u64);
    loop {
        plan.clear();
        let block = toy::below(&mut random, layer.capacity().0 / 8);
        layer.plan(&[Command::write(block * 8, 8)], &mut plan);
        if plan.phases.iter().any(|phase| phase.kind != crate::plan::GroupKind::Host) {
            break;
        }
        writes += 1;
        // Upper bound: 20 log bands of 5120 blocks in each of 91 zones.
        assert!(writes <= 91 * 20 * 5120);
    }
    // Aghayev 2015 table 2: 9,175,056 operations, read off in steps of about 4 % (1 GiB of 35).
    let ratio = writes as f64 / 9_175_056.0;
    assert!((1.0..=1.04).contains(&ratio), "cleaning starts after {writes} writes, {ratio} of the paper's");
    let memory = layer.memory();
    assert!(memory.measured_bytes < 300 << 20, "{} bytes for {writes} writes", memory.measured_bytes);
    layer.self_check().unwrap_or_else(|violation| panic!("{violation}"));
}

#[test]
fn memory_follows_the_formula() {
    // A zone: eight homes among eleven bands, 4 bits each; two log bands of two blocks, each one of sixteen blocks, 4 bits.
    assert_eq!(layer(&[TOY]).memory().formula_bytes, (5u64 * (8 * 4 + 2 * 2 * 4)).div_ceil(8));
}

#[test]
fn refusals_say_what_to_change() {
    let disk = toy::disks("block-interference").next().expect("there is one").disk;
    let refused = |key: &str, value: &str| {
        let given = [("band_size", "8k"), ("zone_size", "64k"), (key, value)];
        let given = given.map(|(key, value)| (key.to_string(), value.to_string()));
        registry::build(INFO.name, &disk, &given).map(|_| ()).expect_err("it is refused").to_string()
    };
    assert!(refused("reserve_bands", "0").contains("expected 1 or more"));
    assert!(refused("band_size", "1").contains("a band of 0 sectors"));
    assert!(refused("log_bands", "60").contains("too few for a zone"));
}

#[test]
fn a_damaged_journal_is_refused() {
    let mut layer = layer(&[TOY]);
    let broken = [
        Note::new(1, &[5 * 8 * 16, 1, 8, 0]),
        Note::new(1, &[15, 2, 8, 0]),
        Note::new(1, &[0, 2, 0, 0]),
        Note::new(1, &[0, 2, 19, 0]),
        Note::new(1, &[0, 2, 8, 15]),
        Note::new(2, &[u64::MAX, 2]),
        Note::new(3, &[40, 8]),
        Note::new(3, &[0, 7]),
        Note::new(4, &[0, 8, 17]),
        Note::new(5, &[0]),
        Note::new(6, &[5]),
        Note::new(7, &[0, 3]),
        Note::new(8, &[]),
    ];
    for note in broken {
        assert!(layer.replay(&note).is_err(), "{note:?} was taken");
    }
    assert_eq!(layer.self_check(), Ok(()));
    let mut pieces = Vec::new();
    layer.lookup(Lba(0), Sectors(16), &mut pieces);
    assert_eq!(pieces, [Piece { lba: Lba(0), sectors: Sectors(16), at: Some((Medium::Disk, Pba(0))) }]);
}
