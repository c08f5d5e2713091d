//! Goal: the judge detects the faults that it must detect. Method: recordings of drives that are found good are
//! falsified in one way at a time, as a program with a fault would have written them, and each kind of fault must be
//! detected.

use std::ops::RangeInclusive;

use imbrex_powercut::plant::Plant;
use imbrex_powercut::recorder::is_available;

use super::carriers::Carrier;
use super::grade::grade;
use super::recorded::{Story, record};
use super::rounds::Rounds;

const REQUESTS: usize = 60;
const SEEDS: u64 = 8;
/// Cuts of a falsified log, cuts made at once until one is bad, and number of events behind the fault at which they are
/// made.
const ROUNDS: u64 = 64;
const AT_ONCE: usize = 16;
const REACH: usize = 10;

/// Returns whether one of the cuts of `story` at `positions` is bad.
fn is_bad(story: &Story, positions: RangeInclusive<usize>) -> bool {
    let rounds = |rounds| Rounds {
        test: "planted::a_planted_fault_is_found",
        story,
        block_bytes: 512,
        rounds,
        fault: None,
        cuts_openings: false,
        positions: positions.clone(),
        grade,
    };
    (0..ROUNDS).step_by(AT_ONCE).any(|first| rounds(first..first + AT_ONCE as u64).run().bad > 0)
}

/// Returns how many logs with the fault are found bad, and how many were tried.
fn caught(plant: Plant, story: &Story) -> (usize, usize) {
    let log = &story.log;
    // The events before the first answer are the opening of a new image, which has nothing to lose.
    let (_, first) = *story.log.sends().first().expect("it answered");
    let planted = |seed| plant.plant(log, first..log.entries.len(), seed);
    let tried: Vec<bool> = (0..SEEDS)
        .filter_map(planted)
        .map(|(log, at)| {
            let end = log.entries.len().min(at + REACH);
            is_bad(&story.with_log(log), at..=end)
        })
        .collect();
    (tried.iter().filter(|&&is_caught| is_caught).count(), tried.len())
}

#[test]
fn a_planted_fault_is_found() {
    if !is_available() {
        return;
    }
    let mut sums = [0; Plant::ALL.len()];
    for name in ["conventional", "cached", "set-associative", "zoned-cached"] {
        let story = record(Carrier::named(name), 6, REQUESTS);
        assert!(!is_bad(&story, 0..=story.log.entries.len()), "{name}: good without a fault");
        for (plant, sum) in Plant::ALL.into_iter().zip(&mut sums) {
            let (caught, tried) = caught(plant, &story);
            eprintln!("{name}, {plant:?}: caught in {caught} of {tried} logs");
            assert!(caught > 0, "{name}: {plant:?} is caught in none of {tried} logs");
            *sum += caught;
        }
    }
    // Most writes are copies of the state, whose predecessor is as good, and most barriers are closely followed by
    // another.
    assert!(sums.iter().all(|&sum| sum >= 10), "{:?} are caught {sums:?} times of 32", Plant::ALL);
}
