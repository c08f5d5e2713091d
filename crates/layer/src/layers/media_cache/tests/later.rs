//! Goal: the amount that the two later drives take before they clean, and that each later write waits for one band.
//! Method: writes to distinct places on plans without timing. The sizes were measured in public in 2026 and are not
//! refereed.

use imbrex_disk::Command;

use super::*;

/// Returns the GiB written before cleaning, in writes of `kib` KiB.
fn effective_gib(profile: &str, kib: u32) -> f64 {
    let profile = Profile::named(profile).expect("it is built in");
    let writes = writes_until_cleaning(&mut on(&profile, ""), kib * 2, 31);
    (writes * kib as u64) as f64 / (1 << 20) as f64
}

fn assert_within_2_percent(what: &str, gib: f64, measured: f64) {
    println!("{what}: {gib:.2} GiB, {measured} measured");
    assert!((gib / measured - 1.0).abs() <= 0.02, "{what}: {gib:.2} GiB, {measured} measured");
}

#[test]
fn the_first_drive_is_held_by_its_map_and_from_256_kib_by_its_space() {
    for (kib, measured) in [(4, 0.73), (32, 5.83), (64, 11.7), (128, 23.3), (256, 28.0), (1024, 28.0)] {
        assert_within_2_percent(&format!("{kib} KiB"), effective_gib("seagate-st8000as0022", kib), measured);
    }
}

#[test]
fn the_second_drive_is_held_by_its_map_and_from_256_kib_by_its_space() {
    for (kib, measured) in [(4, 1.41), (32, 11.3), (64, 22.5), (128, 45.0), (256, 48.0)] {
        assert_within_2_percent(&format!("{kib} KiB"), effective_gib("seagate-st8000dm004", kib), measured);
    }
}

#[test]
fn blocks_written_again_take_no_entry() {
    let profile = Profile::named("seagate-st8000as0022").expect("it is built in");
    let mut layer = on(&profile, "map_entries=100");
    let mut plan = Plan::new();
    for round in 0..10 {
        for block in 0..100 {
            plan.clear();
            layer.plan(&[Command::write(block * 1_000_000, 8)], &mut plan);
            assert!(plan.phases.iter().all(|phase| phase.kind == GroupKind::Host), "round {round}");
        }
    }
    plan.clear();
    layer.plan(&[Command::write(999, 8)], &mut plan);
    assert!(plan.phases.iter().any(|phase| phase.kind == GroupKind::Cleaning), "the 101st block takes one");
}
