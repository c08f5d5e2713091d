//! Goal: the steps of each operation, and the fate of a cleaning that host commands interrupt. Method: a toy whose
//! plans were computed by hand. Its bands have two tracks of four sectors. The spare is at PBA 0, a journal of eight
//! half tracks at PBA 8, LBA 0 at PBA 24, and the map at PBA 160.

use imbrex_disk::{Command, Lba, Pba, Sectors};

use super::*;
use crate::plan::Medium;

const JOURNAL: &str = "cache_size=8k,map_entries=12,out_of_band=1,half_track_payload=1k,packet_writes=4,large_write=1m,\
                       map_merge_every=3,map_merge_tracks=1,band_tracks=2,collect_per_block=1k";

fn golden(layer: &mut MediaCache, commands: &[Command]) -> String {
    format!("{:?}", planned(layer, commands))
}

/// Returns the next phases of background work.
fn idle(layer: &mut MediaCache, phases: usize) -> String {
    let mut plan = Plan::new();
    for _ in 0..phases {
        assert!(layer.idle(&mut plan), "there is work left");
    }
    layer.self_check().expect("invariants hold");
    format!("{plan:?}")
}

fn place(layer: &MediaCache, lba: u64) -> u64 {
    let mut pieces = Vec::new();
    layer.lookup(Lba(lba), Sectors(1), &mut pieces);
    let (medium, Pba(pba)) = pieces[0].at.expect("it is not absent");
    assert_eq!(medium, Medium::Disk);
    pba
}

#[test]
fn a_packet_is_out_of_band_data_writes_and_padding() {
    let mut layer = toy(CONVENTIONAL, JOURNAL);
    let expected = "\
group Host
  barrier
  write journal OutOfBand pba 8+2
  write host pba 10+1 lba 100
  write journal Padding pba 11+1
  barrier
  note #5 0 2 0 0
  note #1 100 1 10 0
";
    assert_eq!(golden(&mut layer, &[Command::write(100, 1)]), expected);
    // Two writes fill a half track and half of the next.
    let expected = "\
group Host
  barrier
  write journal OutOfBand pba 12+2
  write host pba 14+2 lba 7
  write host pba 16+1 lba 50
  write journal Padding pba 17+1
  barrier
  note #5 2 3 0 0
  note #1 7 2 14 0
  note #1 50 1 16 0
";
    assert_eq!(golden(&mut layer, &[Command::write(7, 2), Command::write(50, 1)]), expected);
    // The third packet merges the map, and continues at the beginning of the ring after the first packet is dead.
    let plan = golden(&mut layer, &[Command::write(100, 1)]);
    assert!(
        plan.starts_with("group Host\n  write journal Map pba 160+4\n  barrier\n  write journal OutOfBand pba 18+2")
    );
    let plan = golden(&mut layer, &[Command::write(100, 1)]);
    assert!(plan.contains("OutOfBand pba 22+2\n  write host pba 8+1 lba 100\n"), "{plan}");
}

const CLEANING: [&str; 4] = [
    "group Cleaning
  read cleaning pba 120+4 lba 96
phase Cleaning
  read cleaning pba 124+4 lba 100
phase Cleaning
  read cleaning OutOfBand pba 8+2
phase Cleaning
  read cleaning pba 10+1 lba 100
",
    "phase Cleaning
  barrier
  write backup pba 0+4 lba 96
phase Cleaning
  write backup pba 4+4 lba 100
  barrier
  note #3 12 0 0 0
  barrier
",
    "phase Cleaning
  write cleaning pba 120+4 lba 96
",
    "phase Cleaning
  write cleaning pba 124+4 lba 100
  barrier
  note #4 12 0 0 0
phase Cleaning
  write journal Map pba 160+4
",
];

#[test]
fn idle_time_cleans_the_band_of_the_oldest_block_track_by_track() {
    let mut layer = toy(CONVENTIONAL, JOURNAL);
    planned(&mut layer, &[Command::write(100, 1)]);
    assert_eq!(place(&layer, 100), 10);
    assert_eq!(idle(&mut layer, 9), CLEANING.concat());
    assert_eq!(place(&layer, 100), 124);
    assert!(!layer.idle(&mut Plan::new()), "nothing is left");
}

#[test]
fn the_first_cleaning_after_a_command_begins_with_the_seeks_to_the_inner_diameter() {
    let mut layer = toy(CONVENTIONAL, &format!("{JOURNAL},idle_visits=2"));
    let geometry = &layer.disk.geometry;
    let inner = geometry.track(geometry.radial_tracks() - 1, 0).start.0;
    let idle_after = |layer: &MediaCache| layer.background().expect("it cleans").idle_after.0;
    planned(&mut layer, &[Command::write(100, 1), Command::write(7, 1)]);
    for group in ["group", "phase"] {
        assert_eq!(idle_after(&layer), 50_000_000);
        let reads = format!("  read cleaning OutOfBand pba {inner}+1\n  read cleaning OutOfBand pba 0+1\n");
        assert_eq!(idle(&mut layer, 1), format!("{group} Cleaning\n{reads}"));
    }
    assert_eq!(idle_after(&layer), 1_200_000_000);
    // The first band, as without the seeks, but in the group that they opened; then the other band.
    assert_eq!(idle(&mut layer, 9), CLEANING.concat().replacen("group", "phase", 1));
    assert_eq!(idle_after(&layer), 1_200_000_000);
    assert!(!idle(&mut layer, 9).contains(&format!("pba {inner}+1")));
    assert!(!layer.idle(&mut Plan::new()), "nothing is left, so the heads stay");
    planned(&mut layer, &[Command::write(100, 1)]);
    assert_eq!(idle_after(&layer), 50_000_000, "another idle time");
}

#[test]
fn what_is_not_persisted_is_abandoned_and_what_is_resumes() {
    let mut layer = toy(CONVENTIONAL, JOURNAL);
    planned(&mut layer, &[Command::write(100, 1)]);
    assert_eq!(
        idle(&mut layer, 5),
        CLEANING[0].to_string() + "phase Cleaning\n  barrier\n  write backup pba 0+4 lba 96\n"
    );
    planned(&mut layer, &[Command::read(0, 1)]);
    assert_eq!(idle(&mut layer, 7), CLEANING[..3].concat(), "from its beginning");
    // The spare holds all of the band now; data that hosts write meanwhile is newer.
    assert_eq!([place(&layer, 96), place(&layer, 100)], [0, 4]);
    let plan = golden(&mut layer, &[Command::write(97, 1)]);
    assert!(plan.contains("write host pba 14+1 lba 97"), "{plan}");
    assert_eq!([place(&layer, 96), place(&layer, 97)], [0, 14]);
    assert_eq!(idle(&mut layer, 2), CLEANING[3]);
    assert_eq!([place(&layer, 96), place(&layer, 97)], [120, 14]);
}

#[test]
fn a_partial_read_modify_write_leaves_the_tracks_before_the_first_cached_sector() {
    let mut layer = toy(CONVENTIONAL, &format!("{JOURNAL},rmw=partial"));
    planned(&mut layer, &[Command::write(101, 1)]);
    let until_persisted = "\
group Cleaning
  read cleaning pba 124+4 lba 100
phase Cleaning
  read cleaning OutOfBand pba 8+2
phase Cleaning
  read cleaning pba 10+1 lba 101
phase Cleaning
  barrier
  write backup pba 0+4 lba 100
  barrier
  note #9 12 4 0 0
  barrier
";
    assert_eq!(idle(&mut layer, 4), until_persisted);
    let mut pieces = Vec::new();
    layer.lookup(Lba(98), Sectors(4), &mut pieces);
    let pieces: Vec<_> = pieces.iter().map(|piece| (piece.lba.0, piece.sectors.0, piece.at)).collect();
    let disk = |pba| Some((Medium::Disk, Pba(pba)));
    assert_eq!(pieces, [(98, 2, disk(122)), (100, 2, disk(0))], "the first track stays in its place");
    let mut notes = Vec::new();
    layer.checkpoint(&mut notes);
    let mut after_a_cut = toy(CONVENTIONAL, &format!("{JOURNAL},rmw=partial"));
    notes.iter().for_each(|note| after_a_cut.replay(note).expect("it is its own"));
    let mut plan = Plan::new();
    after_a_cut.repair(&mut plan);
    let repair = "\
group Recovery
  read recovery pba 0+4 lba 100
  write recovery pba 124+4 lba 100
  barrier
  note #4 12 0 0 0
";
    assert_eq!(format!("{plan:?}"), repair);
    assert_eq!(place(&after_a_cut, 101), 125);
    let rewriting = "\
phase Cleaning
  write cleaning pba 124+4 lba 100
  barrier
  note #4 12 0 0 0
";
    assert_eq!(idle(&mut layer, 1), rewriting);
    assert_eq!(place(&layer, 101), 125);
}

#[test]
fn a_partial_read_modify_write_does_not_read_what_is_cached_whole() {
    let mut layer = toy(CONVENTIONAL, &format!("{JOURNAL},rmw=partial"));
    planned(&mut layer, &[Command::write(100, 4)]);
    let plan = idle(&mut layer, 4);
    assert!(!plan.contains("read cleaning pba 124"), "{plan}");
    let refused = layer.replay(&crate::plan::note::Note::new(9, &[12, 8]));
    assert!(refused.is_err(), "a band of eight sectors has no part from the ninth on");
}

/// Eight sectors from PBA 8 on, in two cache zones; LBA 0 at PBA 16.
const IN_PLACE: &str =
    "placement=in-place,cache_size=4k,cache_block=1k,cache_zone=2k,map_entries=12,band_tracks=2,map_merge_tracks=1";

#[test]
fn writes_go_to_free_places_one_after_the_other_and_stay_there() {
    let mut layer = toy(CONVENTIONAL, IN_PLACE);
    let expected = "\
group Host
  barrier
  write host pba 8+1 lba 101
  barrier
  note #1 101 1 8 0
";
    assert_eq!(golden(&mut layer, &[Command::write(101, 1)]), expected);
    assert_eq!(golden(&mut layer, &[Command::write(101, 1)]), "group Host\n  write host pba 8+1 lba 101\n");
    // The first sector is cached, the second is not.
    let expected = "\
group Host
  write host pba 8+1 lba 101
  barrier
  write host pba 9+1 lba 102
  barrier
  note #1 102 1 9 0
";
    assert_eq!(golden(&mut layer, &[Command::write(101, 2)]), expected);
    assert_eq!(layer.map.len(), 1, "what continues in both spaces is one entry");
    // An entry takes at most two sectors, all in one band; a free run that is too short is skipped.
    planned(&mut layer, &[Command::write(103, 1)]);
    planned(&mut layer, &[Command::write(23, 2)]);
    planned(&mut layer, &[Command::write(40, 2)]);
    assert_eq!([103, 23, 24, 40].map(|lba| place(&layer, lba)), [10, 11, 12, 13]);
    assert_eq!(layer.map.len(), 5);
}

#[test]
fn a_full_cache_gives_up_runs_zone_by_zone_and_lets_one_write_go_on_for_each() {
    let mut layer = toy(CONVENTIONAL, IN_PLACE);
    for (lba, sectors) in [(101, 1), (20, 2), (40, 2), (60, 2), (80, 1)] {
        planned(&mut layer, &[Command::write(lba, sectors)]);
    }
    // The free sector at 11 was too short for LBA 40, and took LBA 80.
    assert_eq!([101, 20, 40, 60, 80].map(|lba| place(&layer, lba)), [8, 9, 12, 14, 11]);
    // Now each zone in turn evicts a run: the run's band is cleaned, and the write takes the run's place.
    let mut cleans = 0;
    for (lba, left, home, at) in [(0, 101, 117, 8), (120, 40, 56, 12), (2, 20, 36, 9)] {
        let plan = planned(&mut layer, &[Command::write(lba, 1)]);
        cleans += plan.notes.iter().filter(|note| note.tag == 3).count();
        assert_eq!([place(&layer, left), place(&layer, lba)], [home, at], "{lba}");
        if lba == 120 {
            planned(&mut layer, &[Command::write(121, 1)]);
            assert_eq!(place(&layer, 121), 13, "the rest of the run that was given up");
        }
    }
    assert_eq!(cleans, 3, "one band for each write");
}
