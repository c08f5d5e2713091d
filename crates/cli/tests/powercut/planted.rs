//! Goal: the judge sees what it is there to see. Method: recordings of drives that are found good are falsified in one way at a time, as a
//! program with a fault would have written them, and each fault must be caught.

use imbrex_powercut::plant::Plant;
use imbrex_powercut::recorder::is_available;

use crate::carriers::Carrier;
use crate::not_yet::grade;
use crate::recorded::{Story, record};
use crate::rounds::Rounds;

const REQUESTS: usize = 60;
const SEEDS: u64 = 16;
/// Cuts of a falsified log, and how far behind the fault they reach.
const ROUNDS: u64 = 30;
const REACH: usize = 60;

/// Whether cuts of `story` behind `at` are found bad.
fn is_bad(story: &Story, at: usize) -> bool {
    let rounds = Rounds {
        test: "a_planted_fault_is_found",
        story,
        block_bytes: 512,
        count: ROUNDS,
        fault: None,
        cuts_openings: false,
        positions: at..=story.log.entries.len().min(at + REACH),
        is_after_failed_sync: false,
        grade,
    };
    rounds.run().bad > 0
}

/// How many of some logs with the fault are found bad, and how many there are.
fn caught(plant: Plant, story: &Story) -> (usize, usize) {
    let log = &story.log;
    // What happens before the first answer is the opening of a new image, which has nothing to lose.
    let (_, first) = *story.log.sends().first().expect("it answered");
    let planted = |seed| plant.plant(log, first..log.entries.len(), seed);
    let tried: Vec<bool> = (0..SEEDS).filter_map(planted).map(|(log, at)| is_bad(&story.with_log(log), at)).collect();
    (tried.iter().filter(|&&is_caught| is_caught).count(), tried.len())
}

#[test]
fn a_planted_fault_is_found() {
    if !is_available() {
        return;
    }
    for name in ["conventional", "cached", "set-associative", "zoned-cached", "track-flip"] {
        let story = record(Carrier::named(name), 6, REQUESTS);
        assert!(!is_bad(&story, 0), "{name}: good without a fault");
        for plant in Plant::ALL {
            let (caught, tried) = caught(plant, &story);
            eprintln!("{name}, {plant:?}: caught in {caught} of {tried} logs");
            assert!(tried > 0, "{name}, {plant:?}");
        }
    }
}
