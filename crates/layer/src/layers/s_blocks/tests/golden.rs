//! Goal: the algorithms of Cassuto 2010 §V, step by step. Method: plans on the toy are compared with the steps of the
//! algorithms, worked out by hand.

use imbrex_disk::Command;

use super::super::Direct;
use super::{TOY, layer, planned};

fn assert_plan(layer: &mut super::SBlocks, command: Command, golden: &str) {
    let plan = format!("{:?}", planned(layer, command));
    let wanted: Vec<_> = golden.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let got: Vec<_> = plan.lines().map(str::trim).collect();
    assert_eq!(got, wanted, "plan of {command:?}:\n{plan}");
}

#[test]
fn a_write_is_appended_and_a_read_splits() {
    let mut layer = layer(TOY, Direct::Off);
    assert_plan(
        &mut layer,
        Command::write(1, 2),
        "group Host
         write host pba 26+2 lba 1
         barrier
         note #1 1 2 0 0
         barrier",
    );
    assert_plan(
        &mut layer,
        Command::read(0, 6),
        "group Host
         read host pba 0+1 lba 0
         read host pba 26+2 lba 1
         read host pba 3+1 lba 3
         read host pba 4+2 lba 4",
    );
}

#[test]
fn a_trim_is_a_record_and_reads_as_nothing() {
    let mut layer = layer(TOY, Direct::Off);
    assert_plan(
        &mut layer,
        Command::trim(2, 4),
        "group Host
         barrier
         note #2 2 4 0 0
         barrier",
    );
    assert_plan(
        &mut layer,
        Command::read(0, 8),
        "group Host
         read host pba 0+2 lba 0
         read host pba 6+2 lba 6",
    );
}

#[test]
fn a_defrag_copies_live_sectors_until_a_dead_run_is_passed() {
    let mut layer = layer(TOY, Direct::Off);
    for command in [Command::write(1, 2), Command::write(5, 2), Command::write(5, 2)] {
        planned(&mut layer, command);
    }
    // Positions 0–1 are live, 2–3 dead, 4–5 live, so no destage is needed. The head is at 6, PBA 26 + 6.
    assert_plan(
        &mut layer,
        Command::write(9, 1),
        "group Cleaning
         read cleaning pba 26+2 lba 1
         write cleaning pba 32+2 lba 1
         barrier
         note #1 1 2 6 2
         barrier
         group Host
         write host pba 34+1 lba 9
         barrier
         note #1 9 1 8 4
         barrier",
    );
}

#[test]
fn without_a_dead_run_an_sblock_is_destaged_first() {
    let mut layer = layer(TOY, Direct::Off);
    for command in [Command::write(5, 2), Command::write(1, 2), Command::write(9, 2)] {
        planned(&mut layer, command);
    }
    // S-block 0 is closest to the tail; its sectors lie at positions 2–3, so the sectors at 0–1 must move first.
    assert_plan(
        &mut layer,
        Command::write(2, 1),
        "group Cleaning
         read cleaning pba 0+4 lba 0
         read cleaning pba 28+2 lba 1
         write cleaning pba 12+4 lba 0
         barrier
         note #3 0 12 0 1
         barrier
         group Cleaning
         read cleaning pba 26+2 lba 5
         write cleaning pba 32+2 lba 5
         barrier
         note #1 5 2 6 2
         barrier
         group Host
         write host pba 34+1 lba 2
         barrier
         note #1 2 1 8 4
         barrier",
    );
}

#[test]
fn a_destage_keeps_trimmed_sectors_trimmed() {
    let mut layer = layer(TOY, Direct::Off);
    for command in [Command::write(0, 2), Command::trim(1, 2), Command::write(4, 4)] {
        planned(&mut layer, command);
    }
    // One of the six cached sectors is dead, at position 1: the first write passes it without a destage.
    planned(&mut layer, Command::write(8, 1));
    // Now the cache holds only LBA 0 of S-block 0, moved to position 6, and no sector is dead: a destage is needed.
    assert_plan(
        &mut layer,
        Command::write(9, 1),
        "group Cleaning
         read cleaning pba 0+4 lba 0
         read cleaning pba 32+1 lba 0
         drop cleaning lba 1+2
         write cleaning pba 12+4 lba 0
         barrier
         note #3 0 12 0 1
         barrier
         group Cleaning
         read cleaning pba 28+4 lba 4
         write cleaning pba 34+3 lba 4
         write cleaning pba 26+1 lba 7
         barrier
         note #1 4 4 8 6
         barrier
         group Host
         write host pba 27+1 lba 9
         barrier
         note #1 9 1 12 7
         barrier",
    );
}

#[test]
fn a_full_sblock_buffer_is_defragmented_and_a_slot_may_straddle_its_end() {
    let mut layer = layer(TOY, Direct::Whole);
    for _ in 0..2 {
        planned(&mut layer, Command::write(4, 4));
    }
    // Slots: S-block 0, dead, S-block 2, dead, S-block 1: 20 sectors, full. S-block 0 moves, then the tail passes a
    // dead slot. The head is at 24 of 25, so the new slot takes the last sector of the ring and its first three.
    assert_plan(
        &mut layer,
        Command::write(4, 4),
        "group Cleaning
         read cleaning pba 0+4 lba 0
         write cleaning pba 20+4 lba 0
         barrier
         note #3 0 20 4 0
         barrier
         group Host
         write host pba 24+1 lba 4
         write host pba 0+3 lba 5
         barrier
         note #4 1 24 4 8
         barrier",
    );
}

#[test]
fn a_stream_is_written_straight_and_completed_when_it_breaks_off() {
    let mut layer = layer(TOY, Direct::Stream);
    planned(&mut layer, Command::write(2, 2));
    // The write begins where an earlier one ended, and at the start of an S-block.
    assert_plan(
        &mut layer,
        Command::write(4, 2),
        "group Host
         write host pba 12+2 lba 4
         barrier
         note #4 1 12 2 0
         barrier",
    );
    planned(&mut layer, Command::write(6, 1));
    assert_plan(
        &mut layer,
        Command::read(4, 4),
        "group Host
         read host pba 12+3 lba 4
         read host pba 7+1 lba 7",
    );
    // Another S-block needs the head: the part that the stream did not write is copied from the old slot.
    assert_plan(
        &mut layer,
        Command::write(8, 4),
        "group Cleaning
         read cleaning pba 7+1 lba 7
         write cleaning pba 15+1 lba 7
         barrier
         note #5 1 0 0 0
         barrier
         group Host
         write host pba 16+4 lba 8
         barrier
         note #4 2 16 4 0
         barrier",
    );
}

#[test]
fn a_lone_write_at_an_sblocks_start_is_no_stream() {
    let mut layer = layer(TOY, Direct::Stream);
    assert_plan(
        &mut layer,
        Command::write(4, 2),
        "group Host
         write host pba 26+2 lba 4
         barrier
         note #1 4 2 0 0
         barrier",
    );
}

#[test]
fn a_request_larger_than_a_cache_goes_in_parts() {
    let mut layer = layer(TOY, Direct::Off);
    // Six of the eight sectors fill the cache with parts of S-blocks 0 and 1. One destage makes four sectors dead.
    assert_plan(
        &mut layer,
        Command::write(0, 8),
        "group Host
         write host pba 26+6 lba 0
         barrier
         note #1 0 6 0 0
         barrier
         group Cleaning
         read cleaning pba 26+4 lba 0
         write cleaning pba 12+4 lba 0
         barrier
         note #3 0 12 0 1
         barrier
         group Host
         write host pba 32+2 lba 6
         barrier
         note #1 6 2 6 4
         barrier",
    );
}
