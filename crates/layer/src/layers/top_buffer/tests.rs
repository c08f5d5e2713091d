//! Goal: the planned steps are those that the documentation of `top-buffer` and `write-buffer` describes. Method:
//! golden plans on the toy of `imr-rmw`, whose groups have six bottoms (PBAs 0–59) and then six tops in serpentine
//! order (60–119). The first top of each group (60–69) is the ring of `top-buffer`: LBA 60 is at PBA 70, and the track
//! of PBA 50 lies between those of PBAs 70 and 60. The log of `write-buffer` is one ring of four tops of the middle
//! group (420–459).

use imbrex_disk::Command;

use crate::layers::interlaced::testing::{assert_plan, disk, idle_phases, layer, plan};
use crate::plan::note::Note;

const TOP: &str = "backup_regions=1,buffer_share=10%";

#[test]
fn a_bottom_write_goes_to_the_groups_ring_and_home_when_idle() {
    let mut layer = layer("top-buffer", &disk(64, 10, 1.0), TOP);
    assert_plan(
        &plan(layer.as_mut(), &[Command::write(12, 2)]),
        "group Host
           write host OutOfBand pba 60+1
           write host pba 61+2 lba 12
           barrier
           note #16 12 2 0 1
           barrier",
    );
    let phases = idle_phases(layer.as_mut());
    assert_eq!(phases.len(), 2);
    assert_plan(
        &phases[0],
        "group Migration
           read migration pba 61+2 lba 12
           read migration pba 102+2 lba 92
           read migration pba 112+2 lba 102
           write backup pba 270+2 lba 92
           write backup pba 272+2 lba 102
           barrier
           note #5 270 92 102 8589934594
           barrier",
    );
    assert_plan(
        &phases[1],
        "phase Migration
           write migration pba 12+2 lba 12
           write migration pba 112+2 lba 102
           write migration pba 102+2 lba 92
           barrier
           note #17 10 20 0 0
           barrier",
    );
    assert_plan(
        &plan(layer.as_mut(), &[Command::read(11, 3)]),
        "group Host
           read host pba 11+3 lba 11",
    );
}

/// Buffered sectors beside a bottom are backed up like any top. A newer version of them makes that backup record stale.
#[test]
fn a_write_beside_the_ring_saves_what_is_buffered_there() {
    let mut layer = layer("top-buffer", &disk(64, 10, 1.0), &format!("{TOP},full=through"));
    plan(layer.as_mut(), &[Command::write(12, 2)]);
    assert_plan(
        &plan(layer.as_mut(), &[Command::write(50, 10)]),
        "group Host
           read cleaning pba 70+10 lba 60
           read cleaning pba 61+2 lba 12
           write backup pba 270+10 lba 60
           write backup pba 280+2 lba 12
           barrier
           note #3 270 60 12 42949672962
           barrier
         phase Host
           write host pba 50+10 lba 50
           write cleaning pba 70+10 lba 60
           write cleaning pba 61+2 lba 12",
    );
    assert_plan(
        &plan(layer.as_mut(), &[Command::write(12, 1)]),
        "group Host
           barrier
           note #7 0 0 0 0
           barrier
           write host OutOfBand pba 63+1
           write host pba 64+1 lba 12
           barrier
           note #16 12 1 0 4
           barrier",
    );
}

/// A full ring is written home for a host write: all buffered runs of the oldest run's track.
#[test]
fn a_full_ring_makes_room() {
    let mut layer = layer("top-buffer", &disk(64, 10, 1.0), TOP);
    plan(layer.as_mut(), &[Command::write(12, 4)]);
    plan(layer.as_mut(), &[Command::write(22, 3)]);
    let planned = plan(layer.as_mut(), &[Command::write(33, 2)]);
    let notes: Vec<_> = planned.notes.iter().map(|note| (note.tag, note.fields[0], note.fields[1])).collect();
    assert_eq!(notes[1..], [(17, 10, 20), (16, 33, 2)], "after the record of the neighbours");
}

/// Seventeen runs of a track, with gaps: the first move writes sixteen, the oldest among them; the second writes the
/// last.
#[test]
fn a_track_of_many_runs_is_written_home_in_parts() {
    let mut layer = layer("top-buffer", &disk(64, 100, 1.0), "backup_regions=1,buffer_share=10%");
    (0..17).for_each(|run| drop(plan(layer.as_mut(), &[Command::write(100 + 2 * run, 1)])));
    let phases = idle_phases(layer.as_mut());
    let notes: Vec<_> = phases.iter().flat_map(|plan| &plan.notes).filter(|note| note.tag == 17).collect();
    let bounds: Vec<_> = notes.iter().map(|note| (note.fields[0], note.fields[1])).collect();
    assert_eq!(bounds, [(100, 132), (100, 200)]);
}

/// Sectors are read in the order of their PBAs, not of their LBAs.
#[test]
fn a_read_goes_to_the_log_once() {
    let mut layer = layer("top-buffer", &disk(64, 10, 1.0), TOP);
    plan(layer.as_mut(), &[Command::write(12, 1)]);
    plan(layer.as_mut(), &[Command::write(14, 1)]);
    assert_plan(
        &plan(layer.as_mut(), &[Command::read(11, 5)]),
        "group Host
           read host pba 11+1 lba 11
           read host pba 13+1 lba 13
           read host pba 15+1 lba 15
           read host pba 61+1 lba 12
           read host pba 63+1 lba 14",
    );
}

#[test]
fn writes_to_tops_and_bottoms_share_an_append() {
    let mut layer =
        layer("write-buffer", &disk(64, 10, 1.0), "backup_regions=1,buffer_share=10%,clean_above=0%,tops=on");
    let waiting = [Command::write(12, 2), Command::write(75, 1)];
    assert!(layer.joins(&waiting[..1], &waiting[1]) && layer.joins(&waiting[..1], &Command::write(400, 1)));
    assert!(!layer.joins(&waiting[..1], &Command::write(13, 2)), "which of two is newer must stay clear");
    assert_plan(
        &plan(layer.as_mut(), &waiting),
        "group Host
           write host OutOfBand pba 420+1
           write host pba 421+2 lba 12
           write host pba 423+1 lba 75
           barrier
           note #16 12 2 0 1
           note #16 75 1 0 3
           barrier",
    );
    let phases = idle_phases(layer.as_mut());
    assert_eq!(phases.len(), 3, "two for the bottom, one for the top");
    assert_plan(
        &phases[2],
        "group Migration
           read migration pba 423+1 lba 75
           write migration pba 75+1 lba 75
           barrier
           note #17 70 80 0 0
           barrier",
    );
}

#[test]
fn an_append_is_parted_where_its_track_ends() {
    let mut layer = layer("write-buffer", &disk(64, 10, 1.0), "backup_regions=1,buffer_share=10%");
    assert_plan(
        &plan(layer.as_mut(), &[Command::write(20, 10), Command::write(40, 2)]),
        "group Host
           write host OutOfBand pba 420+1
           write host pba 421+9 lba 20
           write host pba 430+1 lba 29
           write host pba 431+2 lba 40
           barrier
           note #16 20 9 0 1
           note #16 29 1 0 10
           note #16 40 2 0 11
           barrier",
    );
}

/// Half of the log may be used without any work in the background.
#[test]
fn what_is_buffered_stays_until_the_log_is_half_full() {
    let mut layer = layer("write-buffer", &disk(64, 10, 1.0), "backup_regions=1,buffer_share=10%");
    for _ in 0..20 {
        plan(layer.as_mut(), &[Command::write(12, 2)]);
        assert_eq!(idle_phases(layer.as_mut()), [], "rewrites die in the log");
    }
    plan(layer.as_mut(), &[Command::write(20, 10)]);
    plan(layer.as_mut(), &[Command::write(30, 10)]);
    assert_ne!(idle_phases(layer.as_mut()), []);
}

/// 16 bytes a run: 12.8 MB, below the 16 MB of a controller, at any size of the drive.
#[test]
fn the_logs_map_fits_a_controller() {
    let layer = layer("write-buffer", &disk(64, 10, 1.0), "");
    assert_eq!(layer.memory().formula_bytes, 12_800_000);
}

/// Goal: a journal that gives one place to two runs is refused. Method: the note of a buffered run is replayed. The
/// same note with another LBA is refused; one that moves the first run is accepted.
#[test]
fn a_record_that_buffers_a_run_over_another_is_refused() {
    let note = |lba: u64, position: u64| Note { tag: 16, fields: [lba, 2, 0, position] };
    let mut layer = layer("top-buffer", &disk(64, 10, 1.0), TOP);
    layer.replay(&note(12, 1)).expect("nothing is buffered yet");
    let refusal = layer.replay(&note(14, 2)).expect_err("LBA 13 lies there");
    assert!(refusal.to_string().contains("other sectors are buffered there"), "{refusal}");
    layer.replay(&note(12, 2)).expect("its own sectors lie there");
}
