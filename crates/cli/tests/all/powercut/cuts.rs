//! Goal: data acknowledged as durable survives the host's power cut, whichever of the unsynced blocks survive with it.
//! Method: recordings of each carrier under seeded work, cut at random positions and right behind answers, at blocks of
//! 512 bytes and of 4 KiB; openings of cut images are cut in turn, and so is the work that continues after one.

use imbrex_powercut::recorder::is_available;

use super::carriers::Carrier;
use super::grade::grade;
use super::recorded::{Story, record};
use super::rounds::{BLOCK_BYTES, Count, Rounds, Table, long, one_cut, seed, wanted};

/// Requests of a recording.
const REQUESTS: usize = 120;
/// Cuts of a recording, for each size of block.
const ROUNDS: u64 = 120;
/// Cuts of the recording that continues after the first.
const ROUNDS_AFTER: u64 = 40;

/// Cuts one recording at blocks of each size; then continues the work on a cut image, and cuts that recording as well.
fn cut(test: &'static str, carrier: Carrier, seed: u64) -> Vec<Count> {
    let mut story = record(carrier, seed, REQUESTS);
    let mut counts = cut_story(test, &story, ROUNDS);
    let (disk, may_hold) = one_cut(&story, BLOCK_BYTES[(seed % 2) as usize], seed);
    if let Some(next) = story.go_on(&disk, &may_hold, REQUESTS) {
        assert_eq!(next.ended, None, "{}, seed {seed}", carrier.name);
        counts.iter_mut().zip(cut_story(test, &next, ROUNDS_AFTER)).for_each(|(count, more)| count.add(more));
    }
    counts
}

fn cut_story(test: &'static str, story: &Story, rounds: u64) -> Vec<Count> {
    let rounds = |block_bytes| Rounds {
        test,
        story,
        block_bytes,
        rounds: 0..story.carrier.share(rounds),
        fault: None,
        cuts_openings: true,
        positions: story.from..=story.log.entries.len(),
        grade,
    };
    BLOCK_BYTES.map(|block_bytes| rounds(block_bytes).run()).into()
}

#[test]
fn what_was_acknowledged_survives_the_hosts_power_cut() {
    if !is_available() {
        return;
    }
    let (test, mut table) = ("cuts::what_was_acknowledged_survives_the_hosts_power_cut", Table::default());
    for carrier in wanted() {
        table.add(carrier, cut(test, carrier, seed()));
    }
    table.end(test);
}

#[test]
#[ignore = "takes twenty minutes a carrier"]
fn long_what_was_acknowledged_survives_the_hosts_power_cut() {
    if !is_available() {
        return;
    }
    let (test, mut table) = ("cuts::long_what_was_acknowledged_survives_the_hosts_power_cut", Table::default());
    for carrier in wanted() {
        long(2, |seed| table.add(carrier, cut(test, carrier, seed)));
    }
    table.end(test);
}
