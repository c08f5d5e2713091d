//! Goal: the steps and the costs are those of Hajkazemi 2019 §2.4. The toy is that of `imr-rmw`: zone 0 has six bottoms
//! at PBAs 0–59 and six tops at 60–119. The track of PBA 10 lies between those of PBAs 110 and 100.

use imbrex_disk::{Command, Profile};

use super::*;
use crate::layers::interlaced::testing::{Clock, assert_cost, assert_plan, disk, idle_phases, layer, plan, write_each};

const TOY: &str = "backup_regions=1,interval=8,payback=0,hotness=reset,watch=0";
/// Writes by which the bottom at PBA 10 is hot, its neighbours are warm, and the other tops of the zone are cold.
const HOT: [u64; 8] = [12, 12, 12, 12, 12, 100, 110, 400];

#[test]
fn a_hot_bottom_is_swapped_with_the_coldest_top_of_its_zone() {
    let mut layer = layer("track-map", &disk(64, 10, 1.0), TOY);
    write_each(layer.as_mut(), &HOT);
    let phases = idle_phases(layer.as_mut());
    assert_eq!(phases.len(), 3);
    assert_plan(
        &phases[0],
        "group Migration
           barrier
           note #7 0 0 0 0
           barrier
           read migration pba 110+10 lba 110
           read migration pba 10+10 lba 10
           read migration pba 100+10 lba 100
           write backup pba 270+10 lba 110
           write backup pba 280+10 lba 10
           write backup pba 290+10 lba 100
           barrier
           note #1 270 110 10 42949672970
           note #6 290 100 0 42949672960
           barrier",
    );
    assert_plan(
        &phases[1],
        "phase Migration
           read migration pba 60+10 lba 60
           write migration pba 10+10 lba 60
           write migration pba 100+10 lba 100
           write migration pba 110+10 lba 110
           barrier
           note #17 0 65542 393217 280
           barrier",
    );
    assert_plan(
        &phases[2],
        "phase Migration
           write migration pba 60+10 lba 10
           barrier
           note #18 0 0 0 0
           barrier",
    );
    assert_plan(
        &plan(layer.as_mut(), &[Command::write(12, 1)]),
        "group Host
           write host pba 62+1 lba 12",
    );
}

/// Between the last two phases the data of the hot track are only in the backup region.
#[test]
fn a_displaced_track_is_read_from_the_backup_region_and_placed_before_it_is_written() {
    let mut layer = layer("track-map", &disk(64, 10, 1.0), TOY);
    write_each(layer.as_mut(), &HOT);
    let mut phase = Plan::new();
    assert!(layer.idle(&mut phase) && layer.idle(&mut phase));
    assert_plan(
        &plan(layer.as_mut(), &[Command::read(9, 2)]),
        "group Host
           read host pba 9+1 lba 9
           read host pba 280+1 lba 10",
    );
    assert_plan(
        &plan(layer.as_mut(), &[Command::write(12, 1)]),
        "phase Migration
           write migration pba 60+10 lba 10
           barrier
           note #18 0 0 0 0
           barrier
         group Host
           write host pba 62+1 lba 12",
    );
    assert!(!layer.idle(&mut phase), "the move is done");
}

#[test]
fn a_neighbour_as_cold_as_any_is_preferred_and_takes_two_phases() {
    let disk = disk(64, 4096, 1.0);
    let mut layer = layer("track-map", &disk, "backup_regions=1,interval=4,payback=0,hotness=reset,watch=0");
    write_each(layer.as_mut(), &[4096; 4]);
    let phases = idle_phases(layer.as_mut());
    assert_eq!(phases.len(), 2);
    assert_cost(Clock::at(&disk, 50 * 4096).of_pseudo_tracks().cost_of_all(&phases), 3, 10.0, 0.0);
}

/// Hajkazemi 2019 §2.4: 5 t_seek + 13 t_rot.
#[test]
fn costs_are_the_papers() {
    let disk = disk(64, 4096, 1.0);
    let mut layer = layer("track-map", &disk, TOY);
    write_each(layer.as_mut(), &HOT.map(|lba| lba / 10 * 4096));
    let phases = idle_phases(layer.as_mut());
    assert_cost(Clock::at(&disk, 50 * 4096).of_pseudo_tracks().cost_of_all(&phases), 5, 13.0, 0.0);
}

/// Hajkazemi 2019 §2.4: 8 bits an entry. The paper's 12.5 MB for 20 TB are 13.3 MB with the tracks of 1.5 MB of its
/// §2.2.
#[test]
fn memory_is_the_formulas() {
    let tracks = 20_000_000_000_000 / 1_500_000;
    let disk = disk(64, 10, 1.0);
    let home = Planner::new(&disk).expect("it is interlaced").finish();
    let mut map = Map::<u8>::new(INFO.name, MapZones::new(&home), MoveOptions::NONE);
    assert_eq!(map.formula_bytes(tracks), 13_333_333);
    let bytes = |map: &Map<u8>| map.places.iter().flatten().map(Sparse::measured_bytes).sum::<u64>();
    assert_eq!(bytes(&map), 0, "nothing has moved");
    map.swap(Move { zone: 2, hot: 0, cold: 7 });
    assert_eq!(bytes(&map), 8 + 64, "a page of 64 entries and where it lies");
    (0..6).for_each(|zone| map.swap(Move { zone, hot: 0, cold: 1 }));
    assert_eq!(bytes(&map), 6 * (8 + 64), "a page in each of six groups");
}

/// The map of a whole drive of 20 TB fits in far less than 200 MB with any layer, because maps take memory only for
/// moved data.
#[test]
fn twenty_terabytes_fit_into_memory() {
    let disk = Profile::named("imr-20t").expect("it is built in").disk();
    let tracks = disk.geometry.radial_tracks() as u64 * disk.geometry.surfaces() as u64;
    let states = tracks * 3 / 16;
    let all = ["imr-rmw", "track-cache", "track-map", "block-swap", "top-buffer", "write-buffer"].map(|name| (name, 0));
    for (name, map) in all.into_iter().chain([("track-flip", states), ("flip-cache", states)]) {
        let memory = layer(name, &disk, "").memory();
        assert!((map..map + 12_000_000).contains(&memory.measured_bytes), "{name}: {memory:?} of {tracks} tracks");
    }
}

#[test]
fn records_come_back_as_they_were() {
    crate::plan::record::testing::assert_round_trips(Record::INFO, |note| Record::decode(note).map(Record::encode));
}
