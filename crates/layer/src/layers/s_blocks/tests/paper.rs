//! Goal: the sizes of Cassuto 2010 §V.D, and the costs that depend on them. Method: sections of the paper's own size;
//! costs are counted in sectors moved, because times are left to the simulator.

use imbrex_disk::Command;
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::{Direct, Policy, Shape};
use crate::layer::Layer;
use crate::plan::{Cause, Plan, StepOp};

/// Returns the shape of `sections` of the paper's 1500 sections: 196 native S-blocks of 2000 sectors, two spare ones,
/// and a cache of 500 blocks of 4 KiB.
fn paper(sections: u64) -> Shape {
    Shape {
        sections,
        sblock_sectors: 2000,
        native_sblocks: 196,
        spare_sblocks: 2,
        cache_sectors: 4000,
        guard_sectors: 2064,
        interference_sectors: 64,
    }
}

fn cleaned_sectors(plan: &Plan) -> u64 {
    let cleaning = plan.steps.iter().filter(|step| step.cause == Cause::Cleaning && step.is_access());
    cleaning.map(|step| step.sectors as u64).sum()
}

/// Returns the number of S-blocks that defrags of the S-block buffer moved: they are placed without their cached
/// sectors.
fn moved_sblocks(plan: &Plan) -> usize {
    plan.notes.iter().filter(|note| note.tag == 3 && note.fields[3] == 0).count()
}

#[test]
fn the_first_cliff_comes_when_every_cache_is_full() {
    // 750,000 writes of 4 KiB, section after section, fill 1500 caches; only the next write has to clean.
    let shape = paper(1500);
    let mut layer = super::layer(shape, Direct::Stream);
    let mut plan = Plan::new();
    for number in 0..750_000 {
        let (section, turn) = (number % 1500, number / 1500);
        plan.clear();
        layer.plan(&[Command::write(section * shape.section_sectors() + turn * 16, 8)], &mut plan);
        assert_eq!(cleaned_sectors(&plan), 0, "write {number} cleans");
    }
    plan.clear();
    layer.plan(&[Command::write(390_000, 8)], &mut plan);
    assert!(cleaned_sectors(&plan) > 0, "a full cache makes room");
    layer.self_check().expect("invariants hold");
}

/// Cost of random 4 KiB writes to one section, after the cache has filled.
struct Cost {
    cleaned_per_write: u64,
    longest_cleaned: u64,
    longest_move: usize,
}

fn cost_of(policy: Policy, writes: u64) -> Cost {
    let shape = paper(1);
    let mut layer = super::built(shape, policy, Direct::Stream, 0);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(12);
    let (mut plan, mut all, mut longest_cleaned, mut longest_move) = (Plan::new(), 0, 0, 0);
    for _ in 0..writes {
        let block = random.next_u64() % (shape.section_sectors() / 8);
        plan.clear();
        layer.plan(&[Command::write(block * 8, 8)], &mut plan);
        let cleaned = cleaned_sectors(&plan);
        all += cleaned;
        longest_cleaned = longest_cleaned.max(cleaned);
        longest_move = longest_move.max(moved_sblocks(&plan));
    }
    layer.self_check().expect("invariants hold");
    Cost { cleaned_per_write: all / writes, longest_cleaned, longest_move }
}

#[test]
fn closest_to_tail_never_moves_many_sblocks_and_most_cached_does() {
    let closest = cost_of(Policy::ClosestToTail, 20_000);
    let most = cost_of(Policy::MostCachedBlocks, 20_000);
    let tail = cost_of(Policy::CacheTail, 20_000);
    let combined = cost_of(Policy::MostCachedNearTail, 20_000);
    let all = [&closest, &most, &tail, &combined];
    for (name, cost) in Policy::NAMES.iter().zip(all) {
        println!(
            "{name}: {} sectors cleaned a write, at most {} in one; at most {} S-blocks moved in one",
            cost.cleaned_per_write, cost.longest_cleaned, cost.longest_move
        );
    }
    // Cassuto 2010 figures 13 and 14: under 50 ms against over 7 s.
    assert!(closest.longest_move <= 10, "closest-to-tail moved {} S-blocks in one write", closest.longest_move);
    assert!(most.longest_move >= 98, "most-cached-blocks moved at most {} of 196 S-blocks", most.longest_move);
    assert!(most.longest_cleaned >= 20 * closest.longest_cleaned);
    assert!(closest.longest_move < combined.longest_move && combined.longest_move < most.longest_move);
}

#[test]
fn extra_destages_shorten_the_defrags_that_follow() {
    // §V.C: destaging more than the required minimum may invalidate blocks close to the tail.
    let copied = |extra: u64| {
        let shape = paper(1);
        let mut layer = super::built(shape, Policy::CacheTail, Direct::Off, extra);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let (mut plan, mut copied) = (Plan::new(), 0);
        for _ in 0..5_000 {
            plan.clear();
            layer.plan(&[Command::write(random.next_u64() % (shape.section_sectors() / 8) * 8, 8)], &mut plan);
            let notes = plan.notes.iter().filter(|note| note.tag == 1).map(|note| note.fields[1]);
            copied += notes.sum::<u64>() - 8;
        }
        copied
    };
    assert!(copied(1) < copied(0));
}

#[test]
fn a_sequential_pass_bypasses_the_cache() {
    // The first S-block's writes begin no stream, because no write precedes them. Every later write goes directly to
    // its slot.
    let shape = paper(2);
    let mut layer = super::layer(shape, Direct::Stream);
    let (mut cached, mut written) = (0, 0);
    for lba in (0..layer.capacity().0).step_by(16) {
        let plan = super::planned_unchecked(&mut layer, Command::write(lba, 16));
        cached += plan.notes.iter().filter(|note| note.tag == 1).count() * 16;
        written +=
            plan.steps.iter().filter(|step| step.op == StepOp::Write).map(|step| step.sectors as u64).sum::<u64>();
    }
    assert_eq!(cached, 2000);
    // S-block 0 is not rewritten, so it is live at the tail. It is moved once, when its section's buffer is first full.
    assert_eq!(written, layer.capacity().0 + 2000);
    layer.self_check().expect("invariants hold");
}

#[test]
fn the_papers_drive_has_its_sizes() {
    // 1500 sections of 196 S-blocks of 2000 blocks; the tests of `fitting` compute these sizes.
    let profile = imbrex_disk::Profile::named("cassuto-307g").expect("comes with Imbrex");
    let (disk, mut given) = (profile.disk(), profile.parameters_for("s-blocks"));
    let built = crate::registry::build("s-blocks", &disk, &given).expect("fits the disk");
    assert_eq!(built.capacity().0, 588_000_000);
    given.push(("sections".into(), "1501".into()));
    let refusal = crate::registry::build("s-blocks", &disk, &given).err().expect("one spare S-block is too few");
    assert!(refusal.to_string().contains("at least two are needed"), "{refusal}");
}

#[test]
fn the_map_takes_what_the_formula_says() {
    // 294,000 S-blocks have 8 bits each, for 198 slots. 750,000 cached blocks have 16 bits for 49,000 blocks and 9 for
    // 500 places.
    let mut layer = super::layer(paper(1500), Direct::Stream);
    let fresh = layer.memory();
    assert_eq!(fresh.formula_bytes, (294_000 * 8 + 750_000 * 25) / 8);
    // Sectors that were never written take no memory: a section takes its structure, and 64 S-blocks or 64 lists a
    // pointer.
    assert!(fresh.measured_bytes < 1500 * 400 + 294_000 / 64 * 9, "{fresh:?}");
    layer.plan(&[Command::write(0, 8)], &mut Plan::default());
    // The first write makes a page of 64 lists of 24 bytes, room for four runs of 6 bytes, and a queue of 32 words. It
    // also makes a bit for each of 8192 places, for a buffer of 4000 sectors and its guard.
    let grown = layer.memory().measured_bytes - fresh.measured_bytes;
    assert_eq!(grown, 64 * 24 + 4 * 6 + 32 * 4 + 8192 / 8);
}

/// Goal: if all S-blocks of a drive are written, memory grows by the documented bytes for each run. Method: one run in
/// each S-block, then a second one.
#[test]
fn every_run_takes_a_few_bytes() {
    let mut layer = super::layer(paper(1500), Direct::Off);
    let fresh = layer.memory().measured_bytes;
    let mut write_each = |offset: u64| {
        (0..294_000).for_each(|sblock| layer.plan(&[Command::write(sblock * 2000 + offset, 8)], &mut Plan::default()));
        layer.memory().measured_bytes - fresh
    };
    // 9188 lists cover 32 S-blocks each, in whole pages. A list exceeds its runs of 6 bytes by at most an eighth and a
    // few; the queue of a section exceeds its entries of 4 bytes likewise.
    let lists = 294_000_u64.div_ceil(32);
    let table = lists.next_multiple_of(64) * 24 + 1500 * 8192 / 8;
    let runs = |count: u64| 294_000 * count * 6..lists * (32 * count + 4 * count + 8) * 6;
    let entries = |count: u64| 294_000 * count * 4..1500 * (196 * count + 25 * count + 32) * 4;
    for (count, offset) in [(1, 0), (2, 100)] {
        let (bytes, runs, entries) = (write_each(offset), runs(count), entries(count));
        let expected = table + runs.start + entries.start..table + runs.end + entries.end;
        assert!(expected.contains(&bytes), "{bytes} bytes, expected {expected:?}");
    }
}
