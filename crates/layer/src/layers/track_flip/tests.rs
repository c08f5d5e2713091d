//! Goal: the steps and the costs are those of Hajkazemi 2019 §2.2, and hot tracks are chosen. The toy is that of
//! `imr-rmw`: the track of PBA 10 lies between those of PBAs 110 and 100, the track of PBA 20 between those of 100 and
//! 90.

use imbrex_disk::Command;

use super::*;
use crate::layers::interlaced::testing::{Clock, assert_cost, assert_plan, disk, idle_phases, layer, plan, write_each};

const TOY: &str = "backup_regions=1,interval=4,payback=0,hotness=reset,watch=0";

#[test]
fn a_hot_bottom_is_swapped_with_the_next_top() {
    let mut layer = layer("track-flip", &disk(64, 10, 1.0), TOY);
    write_each(layer.as_mut(), &[12, 12, 13, 400]);
    let phases = idle_phases(layer.as_mut());
    assert_eq!(phases.len(), 2);
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
           write migration pba 10+10 lba 100
           write migration pba 100+10 lba 10
           write migration pba 110+10 lba 110
           barrier
           note #16 1 3 0 0
           barrier",
    );
    assert_plan(
        &plan(layer.as_mut(), &[Command::write(12, 1)]),
        "group Host
           write host pba 102+1 lba 12",
    );
    assert_plan(
        &plan(layer.as_mut(), &[Command::read(99, 3)]),
        "group Host
           read host pba 99+1 lba 99
           read host pba 10+2 lba 100",
    );
}

/// With `heat=writes`, a track of many small writes is hotter than one of a long write (Hajkazemi 2019 §2.2); with
/// `heat=sectors`, the other way round.
#[test]
fn heat_is_counted_in_sectors_or_in_writes() {
    for (heat, bottom) in [("sectors", 1), ("writes", 3)] {
        let words = format!("{TOY},hot_tracks=1,heat={heat}");
        let mut layer = layer("track-flip", &disk(64, 10, 1.0), &words);
        plan(layer.as_mut(), &[Command::write(10, 9)]);
        write_each(layer.as_mut(), &[31, 32, 31]);
        assert_eq!(notes(&idle_phases(layer.as_mut())), [[bottom, 3]], "{heat}");
    }
}

#[test]
fn writes_are_paid_back_in_no_unit() {
    let disk = disk(64, 10, 1.0);
    let given = [("heat".to_string(), "writes".to_string())];
    let refusal = crate::registry::build("track-flip", &disk, &given).err().expect("payback is 1 by default");
    assert!(refusal.to_string().contains("payback=0"), "{refusal}");
}

/// Joined writes to a bottom complete the current move, which takes the track to a top. There only the written sectors
/// are written: rewriting the neighbours of a top, which are bottoms, would destroy tops.
#[test]
fn joined_writes_part_when_the_move_they_complete_takes_their_track_to_a_top() {
    let mut layer = layer("track-flip", &disk(64, 10, 1.0), TOY);
    write_each(layer.as_mut(), &[12, 12, 13, 400]);
    assert!(layer.idle(&mut Plan::new()), "the first of two phases");
    let joined = [Command::write(12, 1), Command::write(17, 1)];
    assert!(layer.joins(&joined[..1], &joined[1]));
    assert_plan(
        &plan(layer.as_mut(), &joined),
        "phase Migration
           write migration pba 10+10 lba 100
           write migration pba 100+10 lba 10
           write migration pba 110+10 lba 110
           barrier
           note #16 1 3 0 0
           barrier
         group Host
           write host pba 102+1 lba 12
           write host pba 107+1 lba 17",
    );
}

/// The hotter track of a swapped pair is on the bottom, so it is flipped back.
#[test]
fn a_hot_top_that_was_moved_down_is_flipped_back() {
    let mut layer = layer("track-flip", &disk(64, 10, 1.0), TOY);
    write_each(layer.as_mut(), &[12, 12, 12, 12]);
    idle_phases(layer.as_mut());
    write_each(layer.as_mut(), &[100, 101, 102, 12]);
    let phases = idle_phases(layer.as_mut());
    assert_plan(
        &phases[1],
        "phase Migration
           write migration pba 10+10 lba 10
           write migration pba 100+10 lba 100
           write migration pba 110+10 lba 110
           barrier
           note #16 1 0 0 0
           barrier",
    );
}

/// Both tops beside the hot bottom are flipped with other bottoms. The top whose present data are cold enough is
/// flipped back first.
#[test]
fn a_flipped_neighbour_is_flipped_back_first() {
    let mut layer =
        layer("track-flip", &disk(64, 10, 1.0), "backup_regions=1,interval=8,payback=0,hotness=reset,watch=0");
    write_each(layer.as_mut(), &[110, 110, 110, 110, 0, 0, 10, 10]);
    assert_eq!(notes(&idle_phases(layer.as_mut())), [[1, 3]], "bottom 0 has one neighbour, which is hot");
    write_each(layer.as_mut(), &[20, 20, 20, 20, 30, 400, 400, 400]);
    assert_eq!(notes(&idle_phases(layer.as_mut())), [[2, 3]], "top 100 is lent to bottom 10, 90 is free");
    write_each(layer.as_mut(), &[30, 30, 30, 30, 30, 80, 80, 80]);
    let expected = [[2, 0], [3, 1]];
    assert_eq!(notes(&idle_phases(layer.as_mut())), expected, "80 is too hot, 90 is lent to bottom 20, now cold");
}

fn notes(phases: &[Plan]) -> Vec<[u64; 2]> {
    let notes = phases.iter().flat_map(|plan| &plan.notes).filter(|note| note.tag == FIRST_LAYER_TAG);
    notes.map(|note| [note.fields[0], note.fields[1]]).collect()
}

/// Hajkazemi 2019 §2.2: 3 t_seek + 8 t_rot; a ninth rotation backs up the top too.
#[test]
fn costs_are_the_papers() {
    let disk = disk(64, 4096, 1.0);
    for (safety, rotations) in [("paper", 8.0), ("power", 9.0)] {
        let mut layer = layer("track-flip", &disk, &format!("{TOY},safety={safety}"));
        for hot in [4096, 2 * 4096 + 7] {
            // Flips the bottom next to track 0's, then flips it back; the head comes from far away each time.
            write_each(layer.as_mut(), &if hot == 4096 { [4096; 4] } else { [10 * 4096; 4] });
            let cost = Clock::at(&disk, 50 * 4096).cost_of_all(&idle_phases(layer.as_mut()));
            assert_cost(cost, 3, rotations, 0.0);
        }
    }
}

/// The end that is written more is swapped, as many of its sectors as the top holds.
#[test]
fn with_unequal_tracks_the_hot_end_is_swapped() {
    // Bottoms have 10 sectors, tops 8. Group 0 has bottoms at PBAs 0–59 and tops at 60–107; the track of PBA 10 lies
    // between those of PBAs 100 and 92.
    let disk = disk(64, 10, 0.8);
    let mut layer = layer("track-flip", &disk, TOY);
    write_each(layer.as_mut(), &[19, 19, 18, 10]);
    let phases = idle_phases(layer.as_mut());
    let golden = "phase Migration
           write migration pba 12+8 lba 92
           write migration pba 92+8 lba 12
           write migration pba 101+7 lba 101
           barrier
           note #16 1 4 0 0
           barrier";
    assert_plan(&phases[1], golden);
    assert_plan(
        &plan(layer.as_mut(), &[Command::read(8, 8)]),
        "group Host
           read host pba 8+2 lba 8
           read host pba 10+2 lba 10
           read host pba 92+4 lba 12",
    );
}

/// Hajkazemi 2019 §2.2: 3 bits a bottom track, 2.5 MB for 20 TB of tracks of 1.5 MB.
#[test]
fn memory_is_the_papers() {
    let tracks = 20_000_000_000_000 / 1_500_000;
    let flips = Flips { states: PackedStates::new(tracks as usize / 2), options: MoveOptions::NONE };
    assert_eq!(flips.formula_bytes(tracks), 2_500_001, "13,333,333 × 1.5 bits, rounded up");
    assert!((2_500_000..2_500_100).contains(&flips.measured_bytes()), "{}", flips.measured_bytes());
}

#[test]
fn records_come_back_as_they_were() {
    crate::plan::record::testing::assert_round_trips(Record::INFO, |note| Record::decode(note).map(Record::encode));
}
