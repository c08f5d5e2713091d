//! Goal: the algorithms of Cassuto 2010 §IV.B step by step, and the figures of §IV.C that need no clock. Method: golden
//! plans on the toy with an interference of six blocks, and random writes on the paper's drive. The toy has 57 regions
//! of 16 sectors at multiples of 21: the spare at 651, three cache regions at 1134, 1155 and 1176, and 53 native ones.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use super::*;
use crate::registry;
use crate::verify::toy;

const TOY: &[(&str, &str)] = &[("region_size", "8k"), ("cache_share", "5%")];

fn layer(given: &[&[(&str, &str)]]) -> Box<dyn Layer> {
    let disk = toy::disks("block-interference").next().expect("there is one").disk;
    let given: Vec<_> = given.concat().iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
    registry::build(INFO.name, &disk, &given).expect("it builds")
}

fn assert_plan(layer: &mut dyn Layer, command: Command, golden: &str) {
    let mut plan = Plan::new();
    layer.plan(&[command], &mut plan);
    let lines: Vec<_> = golden.lines().map(str::trim).collect();
    let text = format!("{plan:?}");
    assert_eq!(text.lines().map(str::trim).collect::<Vec<_>>(), lines, "{command:?}:\n{plan:?}");
}

#[test]
fn a_full_cache_region_is_merged_before_the_write_goes_on() {
    let mut layer = layer(&[TOY]);
    assert_eq!(layer.capacity(), Sectors(53 * 16));
    assert_plan(
        layer.as_mut(),
        Command::write(0, 10),
        "group Host
         write host pba 1134+10 lba 0
         barrier
         note #1 0 10 1134 0",
    );
    assert_plan(
        layer.as_mut(),
        Command::write(4, 8),
        "group Host
         write host pba 1144+6 lba 4
         barrier
         note #1 4 6 1144 0
         group Cleaning
         read cleaning pba 0+16 lba 0
         read cleaning pba 1134+4 lba 0
         read cleaning pba 1144+6 lba 4
         barrier
         write backup pba 651+16 lba 0
         barrier
         note #3 0 16 0 0
         barrier
         write cleaning pba 0+16 lba 0
         barrier
         note #4 0 0 0 0
         note #5 0 0 0 0
         barrier
         group Host
         write host pba 1134+2 lba 10
         barrier
         note #1 10 2 1134 0",
    );
}

/// The head reads the cache region once from its start to its end.
#[test]
fn a_merge_reads_cached_runs_in_the_order_of_their_pbas() {
    let mut layer = layer(&[TOY, &[("safety", "paper")]]);
    for command in [Command::write(12, 4), Command::write(6, 4), Command::write(0, 4), Command::write(8, 4)] {
        layer.plan(&[command], &mut Plan::new());
    }
    assert_plan(
        layer.as_mut(),
        Command::write(2, 1),
        "group Cleaning
         read cleaning pba 0+16 lba 0
         read cleaning pba 1134+4 lba 12
         read cleaning pba 1138+2 lba 6
         read cleaning pba 1142+4 lba 0
         read cleaning pba 1146+4 lba 8
         write cleaning pba 0+16 lba 0
         barrier
         note #4 0 0 0 0
         note #5 0 0 0 0
         barrier
         group Host
         write host pba 1134+1 lba 2
         barrier
         note #1 2 1 1134 0",
    );
}

#[test]
fn native_regions_take_turns_over_the_cache_regions() {
    let mut layer = layer(&[TOY, &[("safety", "paper")]]);
    // Without a spare there are 54 native regions of 16 sectors each: LBAs 14–17 lie in regions 0 and 1, LBA 48 in
    // region 3.
    assert_plan(
        layer.as_mut(),
        Command::write(14, 4),
        "group Host
         write host pba 1134+2 lba 14
         write host pba 1155+2 lba 16
         barrier
         note #1 14 2 1134 0
         note #1 16 2 1155 0",
    );
    assert_plan(
        layer.as_mut(),
        Command::write(48, 1),
        "group Host
         write host pba 1136+1 lba 48
         barrier
         note #1 48 1 1136 0",
    );
    assert_plan(
        layer.as_mut(),
        Command::read(12, 8),
        "group Host
         read host pba 12+2 lba 12
         read host pba 1134+2 lba 14
         read host pba 1155+2 lba 16
         read host pba 23+2 lba 18",
    );
}

/// Native regions 0, 3 and 6 use one cache region by their numbers. With dynamic association each takes the cache
/// region that is filled least, and gives it back when it is merged.
#[test]
fn with_dynamic_association_a_native_region_takes_the_emptiest_cache_region() {
    let mut layer = layer(&[TOY, &[("safety", "paper"), ("association", "dynamic")]]);
    let place = |layer: &mut dyn Layer, lba: u64, sectors: u32| {
        let mut plan = Plan::new();
        layer.plan(&[Command::write(lba, sectors)], &mut plan);
        let merges = plan.phases.iter().filter(|phase| phase.kind == GroupKind::Cleaning).count();
        let own = plan.steps.iter().rfind(|step| step.op == StepOp::Write && step.cause == Cause::Host);
        (own.expect("the host's write").pba.0, merges)
    };
    let layer = layer.as_mut();
    assert_eq!(place(layer, 0, 10), (1134, 0), "region 0: the first of three empty ones");
    assert_eq!(place(layer, 48, 4), (1155, 0), "region 3: the second");
    assert_eq!(place(layer, 96, 6), (1176, 0), "region 6: the third");
    assert_eq!(place(layer, 144, 2), (1159, 0), "region 9: the second has 4 sectors, the least");
    assert_eq!(place(layer, 12, 4), (1144, 0), "region 0 keeps the first");
    // The second cache region has 10 sectors left. Regions 3 and 9 are merged: two groups, and the emptied region's.
    assert_eq!(place(layer, 50, 11), (1155, 2), "the last sector of region 3's write finds it emptied");
    assert_eq!(place(layer, 144, 2), (1156, 0), "region 9 uses none since, and this one has a single sector");
    layer.self_check().expect("invariants hold");
    // A checkpoint restores which cache region each uses.
    let mut notes = Vec::new();
    layer.checkpoint(&mut notes);
    let mut fresh = self::layer(&[TOY, &[("safety", "paper"), ("association", "dynamic")]]);
    notes.iter().for_each(|note| fresh.replay(note).expect("it is taken"));
    assert_eq!(place(fresh.as_mut(), 0, 1), place(layer, 0, 1));
    assert_eq!(place(fresh.as_mut(), 192, 1), place(layer, 192, 1));
    // Region 0 uses the first cache region: a record that puts it into the third is refused.
    let elsewhere = Record::Appended { lba: Lba(0), sectors: Sectors(1), pba: Pba(1176 + 15) }.encode();
    let refused = fresh.replay(&elsewhere).expect_err("it uses another cache region").to_string();
    assert!(refused.contains("uses another cache region"), "{refused}");
}

#[test]
fn a_trim_stays_absent_through_a_merge() {
    let mut layer = layer(&[TOY, &[("safety", "paper"), ("rmw", "tail")]]);
    assert_plan(
        layer.as_mut(),
        Command::trim(6, 2),
        "group Host
         note #2 6 2 0 0",
    );
    layer.plan(&[Command::write(8, 8)], &mut Plan::new());
    layer.plan(&[Command::write(8, 8)], &mut Plan::new());
    assert_plan(
        layer.as_mut(),
        Command::write(3, 1),
        "group Cleaning
         drop cleaning lba 6+2
         read cleaning pba 1142+8 lba 8
         write cleaning pba 6+10 lba 6
         barrier
         note #4 0 0 0 0
         note #5 0 0 0 0
         barrier
         group Host
         write host pba 1134+1 lba 3
         barrier
         note #1 3 1 1134 0",
    );
}

#[test]
fn a_cache_on_flash_leaves_all_regions_of_the_disk_native() {
    let mut layer = layer(&[TOY, &[("cache_medium", "flash")]]);
    assert_eq!(layer.capacity(), Sectors(56 * 16));
    assert_plan(
        layer.as_mut(),
        Command::write(0, 2),
        "group Host
         write host flash pba 0+2 lba 0
         barrier
         note #1 0 2 0 0",
    );
}

#[test]
fn memory_follows_the_formula() {
    // 3 cache regions of 16 sectors; 53 native regions in 3 sets are 18 to a set: 5 bits, and 4 bits of offset.
    assert_eq!(layer(&[TOY]).memory().formula_bytes, 3 * 16 * 9 / 8);
}

/// Writes 4 KiB at uniformly random places on the drive of Cassuto 2010 §IV.C, until every cache region was collected
/// once. Returns the numbers of writes before the first collection of each region, sorted.
fn first_collections(region_blocks: u64) -> Vec<u64> {
    let profile = imbrex_disk::Profile::named("cassuto-307g").expect("it comes with Imbrex");
    let size = (region_blocks * 512).to_string();
    let given = [("region_size", size.as_str()), ("cache_share", "1%"), ("safety", "paper")];
    let given = given.map(|(key, value)| (key.to_string(), value.to_string()));
    let disk = match region_blocks {
        50_000 => profile,
        // Smaller regions have more guards, which lie outside the 6·10⁸ blocks.
        _ => profile.grown(Sectors(600_000_000 / region_blocks * (region_blocks + 2999))),
    }
    .disk();
    let mut layer = registry::build(INFO.name, &disk, &given).expect("it builds");
    let caches = (6_000_000 / region_blocks) as usize;
    let mut random = Xoshiro256StarStar::seed_from_u64(7);
    let (mut plan, mut firsts) = (Plan::new(), vec![0; caches]);
    let (mut missing, mut writes) = (caches, 0);
    while missing > 0 {
        let block = toy::below(&mut random, layer.capacity().0 / 8);
        plan.clear();
        layer.plan(&[Command::write(block * 8, 8)], &mut plan);
        writes += 1;
        for note in plan.notes.iter().filter(|note| matches!(Record::decode(note), Ok(Record::Filled { .. }))) {
            let first = &mut firsts[note.fields[0] as usize];
            missing -= (*first == 0) as usize;
            *first = if *first == 0 { writes } else { *first };
        }
    }
    firsts.sort_unstable();
    firsts
}

#[test]
fn random_writes_fill_the_median_cache_region_at_750_000() {
    let firsts = first_collections(50_000);
    let median = firsts[firsts.len() / 2] as f64;
    assert!((median / 750_000.0 - 1.0).abs() < 0.01, "the median cache region is full after {median} writes");
    let early = 1.0 - firsts[0] as f64 / 750_000.0;
    assert!((0.02..0.05).contains(&early), "the first collection comes {early} before 750,000 writes");
}

#[test]
fn smaller_regions_are_collected_earlier() {
    let firsts = first_collections(10_000);
    let early = 1.0 - firsts[0] as f64 / 750_000.0;
    assert!((0.07..0.11).contains(&early), "the first collection comes {early} before 750,000 writes");
}

#[test]
fn records_come_back_as_they_were() {
    crate::plan::record::testing::assert_round_trips(Record::INFO, |note| Record::decode(note).map(Record::encode));
}
