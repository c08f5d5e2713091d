//! Goal: the steps and the costs are those of Hajkazemi 2019 §2.3. The toy is that of `imr-rmw`, with a cache of one
//! track at PBAs 0–9. The top beside the cache (110–119) has no LBAs, so LBA n of group 0 is at PBA n + 10. The track
//! of PBA 20 lies between those of PBAs 100 and 90.

use imbrex_disk::Command;

use super::*;
use crate::layers::interlaced::testing::{Clock, assert_cost, assert_plan, disk, idle_phases, layer, plan, write_each};

const TOY: &str =
    "backup_regions=1,interval=4,cache_tracks=1,cache_header=0,payback=0,hotness=reset,watch=0,cache_position=od";

#[test]
fn a_hot_bottom_is_promoted_and_then_written_in_the_cache() {
    let mut layer = layer("track-cache", &disk(64, 10, 1.0), TOY);
    assert_eq!(layer.capacity(), Sectors(640 - 70 - 20));
    write_each(layer.as_mut(), &[12, 12, 13, 350]);
    let phases = idle_phases(layer.as_mut());
    assert_eq!(phases.len(), 1);
    assert_plan(
        &phases[0],
        "group Migration
           read migration pba 20+10 lba 10
           write migration pba 0+10 lba 10
           barrier
           note #16 2 0 0 0
           barrier",
    );
    assert_plan(
        &plan(layer.as_mut(), &[Command::write(19, 2)]),
        "group Host
           write host pba 9+1 lba 19
           read cleaning pba 90+1 lba 80
           read cleaning pba 80+1 lba 70
           write backup pba 276+1 lba 80
           write backup pba 277+1 lba 70
           barrier
           note #3 276 80 70 4294967297
           barrier
         phase Host
           write host pba 30+1 lba 20
           write cleaning pba 90+1 lba 80
           write cleaning pba 80+1 lba 70",
    );
}

#[test]
fn the_coldest_makes_room_for_a_hotter_one() {
    let mut layer = layer("track-cache", &disk(64, 10, 1.0), TOY);
    write_each(layer.as_mut(), &[12, 12, 13, 350]);
    idle_phases(layer.as_mut());
    write_each(layer.as_mut(), &[12, 12, 30, 30]);
    assert_eq!(idle_phases(layer.as_mut()), [], "no hotter than what is cached");
    write_each(layer.as_mut(), &[12, 30, 30, 30]);
    let phases = idle_phases(layer.as_mut());
    assert_eq!(phases.len(), 3);
    assert_plan(
        &phases[0],
        "group Migration
           read migration pba 0+10 lba 10
           read migration pba 100+10 lba 90
           read migration pba 90+10 lba 80
           barrier
           note #7 0 0 0 0
           barrier
           write backup pba 270+10 lba 90
           write backup pba 280+10 lba 80
           barrier
           note #5 270 90 80 42949672970
           barrier",
    );
    assert_plan(
        &phases[1],
        "phase Migration
           write migration pba 20+10 lba 10
           write migration pba 90+10 lba 80
           write migration pba 100+10 lba 90
           barrier
           note #17 2 0 0 0
           barrier",
    );
    assert_plan(
        &phases[2],
        "group Migration
           read migration pba 40+10 lba 30
           write migration pba 0+10 lba 30
           barrier
           note #16 4 0 0 0
           barrier",
    );
}

#[test]
fn a_header_goes_before_the_track() {
    let mut layer = layer(
        "track-cache",
        &disk(64, 10, 1.0),
        "backup_regions=1,interval=4,cache_tracks=1,payback=0,hotness=reset,watch=0,cache_position=od",
    );
    // The slot of 11 sectors takes two bottoms; the three tops beside them have no LBAs either.
    assert_eq!(layer.capacity(), Sectors(640 - 70 - 40));
    write_each(layer.as_mut(), &[12, 12, 13, 350]);
    let phases = idle_phases(layer.as_mut());
    let golden = "group Migration
           read migration pba 30+10 lba 10
           write migration OutOfBand pba 0+1
           write migration pba 1+10 lba 10
           barrier
           note #16 3 0 0 0
           barrier";
    assert_plan(&phases[0], golden);
}

/// Hajkazemi 2019 §2.3: 2 t_seek + 2 t_rot and 4 t_seek + 8 t_rot. The sum is ours: the paper prints 7 + 8.
#[test]
fn costs_are_the_papers_and_their_sum() {
    let disk = disk(64, 4096, 1.0);
    let mut layer = layer("track-cache", &disk, TOY);
    let (first, second) = (12 * 4096, 27 * 4096);
    write_each(layer.as_mut(), &[first; 4]);
    let promotion = Clock::at(&disk, 50 * 4096).cost_of_all(&idle_phases(layer.as_mut()));
    assert_cost(promotion, 2, 2.0, 0.0);
    write_each(layer.as_mut(), &[second; 4]);
    let phases = idle_phases(layer.as_mut());
    let mut clock = Clock::at(&disk, 50 * 4096);
    assert_cost(clock.cost_of_all(&phases[..2]), 4, 8.0, 0.0);
    assert_cost(clock.cost_of_all(&phases[2..]), 2, 2.0, 0.0);
}

#[test]
fn records_come_back_as_they_were() {
    crate::plan::record::testing::assert_round_trips(Record::INFO, |note| Record::decode(note).map(Record::encode));
}

/// Goal: if no move pays, a cache with `watch` writes hardly more than read-modify-write, and a cache without it does.
/// Method: the sectors that all plans write are counted; the writes of each interval go to one track, and those of the
/// next interval to another.
#[test]
fn a_watched_cache_stops_moves_that_do_not_pay() {
    let written = |name: &str, words: &str| -> u64 {
        let mut layer = layer(name, &disk(64, 10, 1.0), words);
        let sectors = |plan: &crate::plan::Plan| -> u64 {
            let writes = plan.steps.iter().filter(|step| step.op == crate::plan::StepOp::Write);
            writes.map(|step| u64::from(step.sectors)).sum()
        };
        let mut sum = 0;
        for write in 0..4_000 {
            let lba = write / 4 * 37 % 50 * 10 + write % 4;
            sum += sectors(&plan(layer.as_mut(), &[Command::write(lba, 1)]));
            sum += idle_phases(layer.as_mut()).iter().map(sectors).sum::<u64>();
        }
        sum
    };
    let rmw = written("imr-rmw", "backup_regions=1");
    let unwatched = written("track-cache", TOY);
    let watched = written("track-cache", &TOY.replace("watch=0", "watch=16"));
    assert!(unwatched > 2 * rmw, "moves do not pay here: {unwatched} sectors, {rmw} with read-modify-write");
    assert!(watched <= rmw + rmw / 16, "{watched} sectors, {rmw} with read-modify-write");
}

/// Goal: a cache at the inner diameter changes the place of no LBA before it. Method: homes are compared with those of
/// read-modify-write.
#[test]
fn a_cache_at_the_inner_diameter_leaves_addresses_where_they_are() {
    let disk = disk(640, 10, 1.0);
    let at_home = layer("imr-rmw", &disk, "backup_regions=1");
    let places = |words: &str| -> Vec<bool> {
        let layer = layer("track-cache", &disk, words);
        let place = |layer: &dyn crate::Layer, lba: u64| {
            let mut pieces = Vec::new();
            layer.lookup(imbrex_disk::Lba(lba), Sectors(1), &mut pieces);
            pieces[0].at
        };
        (0..5000).map(|lba| place(layer.as_ref(), lba) == place(at_home.as_ref(), lba)).collect()
    };
    assert!(places("backup_regions=1,cache_tracks=2,cache_position=id").into_iter().all(|is_same| is_same));
    assert!(places("backup_regions=1,cache_tracks=2,cache_position=od").into_iter().any(|is_same| !is_same));
}
