//! Goal: after a power cut at any moment, and whichever non-durable writes survive, a file system is in a documented
//! state. Method: `imbrex_fs::verify::cuts`, over sequences of three operations and long random ones, with the usual
//! and with the smallest bounds. Deliberate mistakes must be caught.

use imbrex_fs::Bounds;
use imbrex_fs::core::Sabotage;
use imbrex_fs::verify::cuts::{Tally, judge};
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Operation, scripts, toys, with_whole_files};

use crate::support::sequences::{is_long, setting, with_bounds};

/// Prefixes of the names of toys.
const STORES: [&str; 3] = ["strict-append", "caveat", "log"];

fn trials() -> Vec<(String, Trial)> {
    let mut trials = Vec::new();
    for (name, usual) in toys() {
        let smallest = Trial { bounds: Bounds::smallest(), ..usual.clone() };
        let pieces = Bounds { piece_blocks: 1, ..usual.bounds };
        trials.push((format!("{name}, a block at a time"), Trial { bounds: pieces, ..usual.clone() }));
        trials.push((name.to_string(), usual));
        trials.push((format!("{name}, smallest bounds"), smallest));
    }
    trials
}

fn sum(tallies: impl Iterator<Item = Tally>) -> Tally {
    tallies
        .fold(Tally::default(), |sum, tally| Tally { cuts: sum.cuts + tally.cuts, states: sum.states + tally.states })
}

#[test]
fn sequences_of_three_operations_are_found_as_promised() {
    let every = setting("IMBREX_FS_EVERY", if is_long() { 61 } else { 151 }) as usize;
    let all = scripts::KINDS.pow(3);
    for (name, trial) in trials() {
        let judged = (0..all).step_by(every).map(|number| {
            let operations = scripts::short(number);
            judge(&trial, &operations).unwrap_or_else(|why| panic!("{name}, sequence {number}: {why}\n{operations:#?}"))
        });
        println!("{name}: {:?}", sum(judged));
    }
}

#[test]
fn long_sequences_are_found_as_promised() {
    let (first, count) = (setting("IMBREX_FS_SEED", 1), setting("IMBREX_FS_LONG", 2));
    let wanted = std::env::var("IMBREX_FS_TRIAL").unwrap_or_default();
    for (name, trial) in trials().into_iter().filter(|(name, _)| name.contains(&wanted)) {
        let trial = Trial { random_subsets: 2, ..trial };
        let judged = (first..first + count).map(|seed| {
            let operations = scripts::long(seed, 250);
            judge(&trial, &operations).unwrap_or_else(|why| panic!("{name}, seed {seed}: {why}\n{operations:#?}"))
        });
        println!("{name}: {:?}", sum(judged));
    }
}

#[test]
fn files_that_the_cleaner_moves_as_a_whole_are_found_as_promised() {
    let (first, count) = (setting("IMBREX_FS_SEED", 1), setting("IMBREX_FS_LONG", 2));
    for (name, trial) in with_bounds(with_whole_files()) {
        let trial = Trial { random_subsets: 2, ..trial };
        let judged = (first..first + count).map(|seed| {
            // Zones are emptied repeatedly.
            let chosen = scripts::long(seed, 100);
            let operations: Vec<Operation> =
                chosen.chunks(4).flat_map(|some| [some, &[Operation::Sync, Operation::Clean]].concat()).collect();
            judge(&trial, &operations).unwrap_or_else(|why| panic!("{name}, seed {seed}: {why}\n{operations:#?}"))
        });
        println!("{name}: {:?}", sum(judged));
    }
}

#[test]
fn files_written_at_once_are_found_as_promised() {
    for (name, trial) in trials() {
        let operations = scripts::at_once();
        let tally = judge(&trial, &operations).unwrap_or_else(|why| panic!("{name}: {why}\n{operations:#?}"));
        println!("{name}: {tally:?}");
    }
}

#[test]
fn mistakes_made_on_purpose_are_caught() {
    for (store, sabotage) in STORES.into_iter().flat_map(|store| Sabotage::ALL.map(|sabotage| (store, sabotage))) {
        // Parity is for arrays, tested in `arrays`; footers are for caveat disks; copies for hot zones, tested in
        // `hot`; records of rows for unmounts, tested in `open_groups`.
        if Sabotage::OF_COPIES.contains(&sabotage) || sabotage == Sabotage::RowsForgottenLate {
            continue;
        }
        if sabotage == Sabotage::ParityLate || (sabotage == Sabotage::FooterGivenBackEarly && store != "caveat") {
            continue;
        }
        let mut of_store = trials().into_iter().filter(|(name, _)| name.starts_with(store));
        let is_caught = of_store.any(|(_, trial)| {
            let trial = Trial { sabotage: Some(sabotage), random_subsets: 4, ..trial };
            let short = (0..scripts::KINDS.pow(3)).step_by(97).map(scripts::short);
            let mut all =
                std::iter::once(scripts::at_once()).chain(short).chain((1..6).map(|seed| scripts::long(seed, 250)));
            all.any(|operations| judge(&trial, &operations).is_err())
        });
        assert!(is_caught, "{sabotage:?} goes unnoticed on {store}");
    }
}
