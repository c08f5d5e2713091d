//! Goal: appends, cleaning and TRIM step by step, the start of cleaning, and the effects of streams and policies.
//! Method: golden plans on the toy with an interference of six blocks, where 57 zones of 16 sectors lie at multiples of
//! 21 and a block is two sectors; counts compared with closed forms; and random writes on a drive of 8 TB.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use super::*;
use crate::plan::{Cause, StepOp};
use crate::registry;
use crate::verify::toy;

const TOY: &[(&str, &str)] = &[("zone_size", "8k"), ("block", "1k"), ("reserve", "10%")];

/// Four zones in reserve, the minimum for two streams.
const TIGHT: &[(&str, &str)] = &[("reserve", "0"), ("streams", "host-cleaned")];

fn built(recording: &str, given: &[&[(&str, &str)]]) -> Box<dyn Layer> {
    let disk = toy::disks(recording).next().expect("there is one").disk;
    let given: Vec<_> = given.concat().iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
    registry::build(INFO.name, &disk, &given).expect("it builds")
}

fn layer(given: &[&[(&str, &str)]]) -> Box<dyn Layer> {
    built("block-interference", &[&[TOY], given].concat())
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

/// Writes whole blocks, one command each.
fn write_blocks(layer: &mut dyn Layer, blocks: impl IntoIterator<Item = u64>) {
    for block in blocks {
        layer.plan(&[Command::write(block * 2, 2)], &mut Plan::new());
        layer.self_check().unwrap_or_else(|violation| panic!("block {block}: {violation}"));
    }
}

#[test]
fn writes_are_appended_and_what_is_rewritten_soon_is_hot() {
    let mut layer = layer(&[]);
    // Six of 57 zones are in reserve: 51 to 56.
    assert_eq!(layer.capacity(), Sectors(51 * 16));
    assert_plan(
        layer.as_mut(),
        Command::write(0, 2),
        "group Host
         write host pba 1071+2 lba 0
         barrier
         note #1 0 1 408 0",
    );
    assert_plan(
        layer.as_mut(),
        Command::write(0, 2),
        "group Host
         write host pba 1092+2 lba 0
         barrier
         note #1 0 1 416 1",
    );
    // The write leaves sector 4 of block 2 and sector 9 of block 4.
    assert_plan(
        layer.as_mut(),
        Command::write(5, 4),
        "group Host
         read host pba 4+1 lba 4
         read host pba 9+1 lba 9
         write host pba 1073+6 lba 4
         barrier
         note #1 2 3 409 0",
    );
    assert_plan(
        layer.as_mut(),
        Command::read(1, 10),
        "group Host
         read host pba 1093+1 lba 1
         read host pba 2+2 lba 2
         read host pba 1073+6 lba 4
         read host pba 10+1 lba 10",
    );
}

#[test]
fn a_trim_is_a_record_for_whole_blocks_and_a_write_for_parts() {
    let mut layer = layer(&[]);
    assert_plan(
        layer.as_mut(),
        Command::trim(3, 6),
        "group Host
         read host pba 2+1 lba 2
         drop host lba 3+1
         write host pba 1071+2 lba 2
         drop host lba 8+1
         read host pba 9+1 lba 9
         write host pba 1073+2 lba 8
         barrier
         note #1 1 1 408 0
         note #1 4 1 409 0
         note #2 2 2 0 0",
    );
    assert_plan(
        layer.as_mut(),
        Command::trim(5, 1),
        "", // Nothing is left of block 2.
    );
    assert_plan(
        layer.as_mut(),
        Command::read(2, 8),
        "group Host
         read host pba 1071+2 lba 2
         drop host lba 4+4
         read host pba 1073+2 lba 8",
    );
}

#[test]
fn with_one_zone_free_zones_are_cleaned_until_another_is() {
    let mut layer = layer(&[TIGHT]);
    // Zone 0 keeps one live block, zones 1 to 17 seven each; zones 53, 54 and 55 are full, 56 is free.
    write_blocks(layer.as_mut(), (0..7).chain((8..=136).step_by(8)));
    assert_plan(
        layer.as_mut(),
        Command::write(288, 2),
        "group Cleaning
         read cleaning pba 14+2 lba 14
         write cleaning pba 1176+2 lba 14
         barrier
         note #1 7 1 448 2
         group Cleaning
         read cleaning pba 23+14 lba 18
         write cleaning pba 1178+14 lba 18
         barrier
         note #1 9 7 449 2
         group Host
         barrier
         write host pba 0+2 lba 288
         barrier
         note #1 144 1 0 0",
    );
}

#[test]
fn idle_time_cleans_a_step_at_a_time_until_enough_is_free() {
    let mut layer = layer(&[TIGHT, &[("idle_free", "100%"), ("clean_step", "3k")]]);
    write_blocks(layer.as_mut(), [2, 0, 4]);
    let mut plan = Plan::new();
    assert!(layer.idle(&mut plan), "three zones of four are free");
    // Blocks 1, 3 and 5, which dead blocks separate; they are written one after the other.
    let golden = "group Cleaning
         read cleaning pba 2+2 lba 2
         read cleaning pba 6+2 lba 6
         read cleaning pba 10+2 lba 10
         write cleaning pba 1134+2 lba 2
         write cleaning pba 1136+2 lba 6
         write cleaning pba 1138+2 lba 10
         barrier
         note #1 1 1 432 2
         note #1 3 1 433 2
         note #1 5 1 434 2";
    assert_same(&plan, golden, "idle");
    // Blocks 6 and 7 free zone 0: three zones are free again, but no closed zone has a dead block.
    plan.clear();
    assert!(layer.idle(&mut plan));
    assert!(!layer.idle(&mut plan), "no closed zone has a dead block");
    assert_eq!(layer.self_check(), Ok(()));
}

#[test]
fn a_dead_zone_is_free_at_once() {
    let mut layer = layer(&[TIGHT]);
    // Each round overwrites one zone whole, so as many zones die as are filled, and nothing is ever cleaned.
    let mut plan = Plan::new();
    for round in 0..200 {
        layer.plan(&[Command::write(round % 53 * 16, 16)], &mut plan);
    }
    assert!(plan.steps.iter().all(|step| step.cause != Cause::Cleaning));
}

/// Returns how many of `blocks` are written before the first cleaning.
fn writes_until_cleaning(layer: &mut dyn Layer, blocks: impl Iterator<Item = u64>) -> usize {
    let mut plan = Plan::new();
    for (writes, block) in blocks.enumerate() {
        plan.clear();
        layer.plan(&[Command::write(block * 2, 2)], &mut plan);
        if plan.steps.iter().any(|step| step.cause == Cause::Cleaning) {
            return writes;
        }
    }
    panic!("nothing was cleaned");
}

#[test]
fn cleaning_starts_when_all_but_one_free_zone_is_written() {
    // 53 zones of eight blocks. 55 and the number of blocks are coprime, so no zone dies before every block is written.
    let scattered = || (0..424).map(|number| number * 55 % 424);
    assert_eq!(writes_until_cleaning(layer(&[TIGHT]).as_mut(), scattered()), 3 * 8);
    let mut empty = layer(&[TIGHT, &[("fill", "empty")]]);
    assert_eq!(writes_until_cleaning(empty.as_mut(), (0..424).chain(scattered())), 56 * 8);
}

#[test]
fn greedy_takes_the_emptiest_zone_and_cost_benefit_an_old_one() {
    let first_read = |policy| {
        let mut layer = layer(&[TIGHT, &[("cleaning", policy), ("idle_free", "100%")]]);
        // Zone 0 loses blocks 0 and 1 and is as old as the drive; zone 53 loses three of its eight blocks and is young.
        write_blocks(layer.as_mut(), [0, 1, 8, 16, 24, 32, 40, 48, 0, 1, 8, 56, 64, 72, 80, 88]);
        let mut plan = Plan::new();
        assert!(layer.idle(&mut plan));
        plan.steps.iter().find(|step| step.op == StepOp::Read).expect("cleaning reads").pba.0
    };
    assert_eq!(first_read("greedy"), 53 * 21 + 3 * 2);
    assert_eq!(first_read("cost-benefit"), 4);
}

/// Returns the sectors moved by cleaning per sector written, for 20,000 writes, nine in ten of them to a tenth of the
/// drive.
fn moved_per_written(streams: &str) -> f64 {
    let given: &[(&str, &str)] = &[("zone_size", "8k"), ("block", "512"), ("reserve", "15%"), ("streams", streams)];
    let mut layer = built("conventional", &[given]);
    let mut random = Xoshiro256StarStar::seed_from_u64(3);
    let capacity = layer.capacity().0;
    let (mut plan, mut moved) = (Plan::new(), 0);
    for _ in 0..20_000 {
        let span = if toy::below(&mut random, 10) > 0 { capacity / 10 } else { capacity };
        plan.clear();
        layer.plan(&[Command::write(toy::below(&mut random, span), 1)], &mut plan);
        let of_cleaning = plan.steps.iter().filter(|step| step.cause == Cause::Cleaning && step.op == StepOp::Write);
        moved += of_cleaning.map(|step| step.sectors as u64).sum::<u64>();
    }
    moved as f64 / 20_000.0
}

#[test]
fn streams_apart_move_less_than_one_for_all() {
    let [one, apart, hot] = ["one", "host-cleaned", "hot-cold"].map(moved_per_written);
    assert!(apart < one, "{apart} with cleaned data apart, {one} with all together");
    assert!(hot < apart, "{hot} with hot writes apart, {apart} without");
}

#[test]
fn memory_follows_what_is_written() {
    let profile = imbrex_disk::Profile::named("seagate-st8000as0011").expect("it comes with Imbrex");
    let mut layer = registry::build(INFO.name, &profile.disk(), &[]).expect("it builds");
    let fresh = layer.memory();
    assert!(fresh.measured_bytes < 4 << 20, "{} bytes for a drive as made", fresh.measured_bytes);
    // 29 to 31 bits for each of about 1.9·10⁹ blocks.
    assert!((6 << 30..8 << 30).contains(&fresh.formula_bytes));
    let mut random = Xoshiro256StarStar::seed_from_u64(9);
    let mut plan = Plan::new();
    for _ in 0..500_000 {
        plan.clear();
        let block = toy::below(&mut random, layer.capacity().0 / 8);
        layer.plan(&[Command::write(block * 8, 8)], &mut plan);
    }
    // For each block written: at most four runs of 12 bytes and two entries of 8, because capacities may exceed use.
    // Every chunk of the map has a header of 24.
    let headers = layer.capacity().0 / 8 / u64::from(super::chunk::CHUNK_BLOCKS) * 24;
    let grown = layer.memory().measured_bytes - fresh.measured_bytes;
    assert!(grown < headers + 500_000 * (4 * 12 + 2 * 8), "{grown} bytes for 500,000 blocks");
}

#[test]
fn memory_follows_the_formula() {
    // 51 zones of eight blocks, at 57 · 8 places: 9 bits each.
    assert_eq!(layer(&[]).memory().formula_bytes, 51 * 8 * 9 / 8);
}

#[test]
fn refusals_say_what_to_change() {
    let disk = toy::disks("block-interference").next().expect("there is one").disk;
    let refused = |key: &str, value: &str| {
        let given = [("zone_size", "8k"), (key, value)].map(|(key, value)| (key.to_string(), value.to_string()));
        registry::build(INFO.name, &disk, &given).map(|_| ()).expect_err("it is refused").to_string()
    };
    assert!(refused("block", "700").contains("a multiple of the sector of 512 B"));
    assert!(refused("zone_size", "1k").contains("a zone of 0 blocks"));
    assert!(refused("zone_size", "200k").contains("in reserve out of"));
}

#[test]
fn a_damaged_journal_is_refused() {
    let mut layer = layer(&[]);
    let broken = [
        Note::new(1, &[408, 1, 408, 0]),
        Note::new(1, &[0, 1, 409, 0]),
        Note::new(1, &[0, 1, 0, 0]),
        Note::new(1, &[0, 9, 408, 0]),
        Note::new(1, &[0, 1, 456, 0]),
        Note::new(1, &[0, 1, 408, 3]),
        Note::new(2, &[u64::MAX, 2]),
        Note::new(4, &[0, 8, 0, 3]),
        Note::new(4, &[51, 8, 0, 3]),
        Note::new(5, &[0, 1, 408]),
        Note::new(6, &[]),
        Note::new(7, &[]),
    ];
    for note in broken {
        assert!(layer.replay(&note).is_err(), "{note:?} was taken");
    }
    assert_eq!(layer.self_check(), Ok(()));
}
