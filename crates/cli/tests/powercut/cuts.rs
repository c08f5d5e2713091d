//! Goal: what was acknowledged as durable survives the host's power cut, whichever of the unsynced blocks survive with it.
//! Method: recordings of each carrier at seeded work, cut at random positions and right behind answers, at blocks of
//! 512 bytes and of 4 KiB; openings of cut images are cut in turn.

use std::time::{Duration, Instant};

use imbrex_powercut::recorder::is_available;

use crate::carriers::Carrier;
use crate::judge::Outcome;
use crate::recorded::record;
use crate::rounds::{BLOCK_BYTES, Count, HEAD, Rounds, from_environment, seed, wanted};

/// Requests of a recording.
const REQUESTS: usize = 120;
/// Cuts of a recording, for each size of block.
const ROUNDS: u64 = 150;

/// Cuts one recording.
fn cut(test: &'static str, carrier: Carrier, seed: u64, block_bytes: u64, rounds: u64) -> Count {
    let story = record(carrier, seed, REQUESTS, None);
    assert_eq!(story.ended, None, "{}", carrier.name);
    let rounds = Rounds {
        test,
        story: &story,
        block_bytes,
        count: from_environment("IMBREX_POWERCUT_ROUNDS").unwrap_or(rounds),
        fault: None,
        cuts_openings: true,
        is_good: Outcome::is_good,
    };
    rounds.run()
}

fn survey(test: &'static str, carriers: impl Iterator<Item = Carrier>, seeds: u64) {
    if !is_available() {
        return;
    }
    let mut table = vec![HEAD.to_string()];
    for carrier in carriers {
        for block_bytes in BLOCK_BYTES {
            let mut count = Count::default();
            (0..seeds).for_each(|more| count.add(cut(test, carrier, seed() + more, block_bytes, ROUNDS)));
            table.push(count.row(format!("{} at {block_bytes}", carrier.name)));
            count.told.iter().for_each(|told| eprintln!("{} {told}", carrier.name));
            eprintln!("{} {:?}", table.last().unwrap(), count.kinds);
        }
    }
    eprintln!("{}", table.join("\n"));
}

#[test]
#[ignore = "survey"]
fn survey_of_cuts() {
    let begun = Instant::now();
    survey("survey_of_cuts", wanted(), from_environment("IMBREX_POWERCUT_SEEDS").unwrap_or(2));
    eprintln!("{:?}", begun.elapsed().max(Duration::ZERO));
}
