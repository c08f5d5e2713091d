//! Goal: the counts of Aghayev 2015 table 2 and fig. 14 until cleaning starts. Method: writes to distinct places, as
//! many at a time as the host's queue holds, on plans without timing.

use imbrex_disk::Command;

use super::*;

/// Checks that a count is within two per cent of the paper's.
fn assert_near(counted: u64, paper: u64) {
    println!("{counted} writes, {paper} in the paper");
    assert!(counted.abs_diff(paper) * 50 <= paper, "{counted} writes, {paper} in the paper");
}

fn table_2(bytes: u32, depth: usize) -> u64 {
    writes_until_cleaning(&mut on(&seagate(), ""), bytes / 512, depth)
}

#[test]
fn single_writes_of_4_kib_fill_raw_space() {
    let counted = table_2(4 << 10, 1);
    // Closed form: 100 GiB in packets of two and a half tracks, of 3686 sectors each.
    assert_eq!(counted, (100 << 21) / (3686 / 2) / 5);
    assert_near(counted, 22_800);
}

#[test]
fn deep_writes_of_4_kib_fill_the_map() {
    assert_eq!(table_2(4 << 10, 31), 182_270);
}

#[test]
fn deep_writes_of_64_kib_fill_the_map() {
    assert_near(table_2(64 << 10, 31), 182_231);
}

#[test]
fn deep_writes_of_128_kib_fill_raw_space() {
    assert_near(table_2(128 << 10, 31), 137_496);
}

#[test]
fn deep_writes_of_256_kib_fill_raw_space() {
    assert_near(table_2(256 << 10, 31), 67_830);
}

/// Fig. 14: 36 blocks raw, 12 entries, out-of-band data of two blocks, payload in steps of two up to sixteen.
const FIGURE_14: &str = "cache_size=18k,map_entries=12,out_of_band=1,half_track_payload=1k,packet_writes=4,\
                         large_write=1m,map_merge_tracks=1,band_tracks=2";

#[test]
fn figure_14_is_exact() {
    for (blocks, depth, expected) in [(1, 1, 9), (1, 4, 12), (4, 4, 8)] {
        let mut layer = toy(CONVENTIONAL, FIGURE_14);
        assert_eq!(writes_until_cleaning(&mut layer, blocks, depth), expected, "{blocks} blocks, depth {depth}");
    }
}

#[test]
fn a_large_write_caps_its_packet_and_a_larger_one_is_split() {
    let mut layer = on(&seagate(), "");
    let kib = |lba, kib: u32| Command::write(lba, kib * 2);
    // Two of 64 KiB and five of 128 KiB are 768 KiB.
    let mixed: Vec<_> = (0..31).map(|n| kib(n * 1_000_000, if n < 2 { 64 } else { 128 })).collect();
    assert_eq!(batch(&layer, &mixed).len(), 7);
    let small: Vec<_> = (0..40).map(|n| kib(n * 1_000_000, 127)).collect();
    assert_eq!(batch(&layer, &small).len(), 31);
    let plan = planned(&mut layer, &[kib(0, 2000)]);
    let packets: Vec<_> = plan.notes.iter().filter(|note| note.tag == 5).map(|note| note.fields[1]).collect();
    assert_eq!(packets, [5, 5, 5], "768, 768 and 464 KiB, each in a half track");
    let cached: Vec<_> = plan.notes.iter().filter(|note| note.tag == 1).map(|note| note.fields[1] / 2).collect();
    assert_eq!(cached, [768, 768, 464]);
}

#[test]
fn the_map_takes_little_memory_on_the_largest_drive() {
    let profile = Profile::named("seagate-st8000as0011").expect("it is built in");
    let mut layer = on(&profile, "");
    writes_until_cleaning(&mut layer, 8, 31);
    let memory = layer.memory();
    println!("{memory:?}");
    // Entries of 34 bits of LBA, 28 of place and 8 of length.
    assert_eq!(memory.formula_bytes, (227_837u64 * 70).div_ceil(8));
    assert!(memory.measured_bytes < 300_000_000);
}
