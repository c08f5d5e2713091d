//! Goal: on arrays, all acknowledged data is found after a power cut at any moment. It is also found if as many drives
//! are lost as parity covers, if a drive is an old copy of itself, or if a block is altered: no wrong data, no loss,
//! nothing unnoticed. Method: `imbrex_fs::verify::cuts`, where each state gets the next harm of the array's list, also
//! with short appends of which several are in flight. Deliberate mistakes must be caught.

use imbrex_fs::core::Sabotage;
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::verify::cuts::judge;
use imbrex_fs::verify::trial::{Harm, Trial};
use imbrex_fs::verify::{Operation, Toy, arrays, in_short_appends, scripts};

use crate::support::sequences::{half, judge_sequences_of_three, setting};

/// Returns arrays with the longest appends, and with short ones.
fn all() -> Vec<Toy> {
    [arrays(), in_short_appends()].concat()
}

#[test]
fn sequences_of_three_operations_are_found_as_promised() {
    judge_sequences_of_three(half(all(), 1));
}

#[test]
fn long_sequences_are_found_as_promised() {
    let (first, count) = (setting("IMBREX_FS_SEED", 1), setting("IMBREX_FS_LONG", 1));
    for (name, trial) in all() {
        let trial = Trial { random_subsets: 2, ..trial };
        for seed in first..first + count {
            let operations = scripts::long(seed, 150);
            let tally =
                judge(&trial, &operations).unwrap_or_else(|why| panic!("{name}, seed {seed}: {why}\n{operations:#?}"));
            println!("{name}: {tally:?}");
        }
    }
}

#[test]
fn files_written_at_once_are_found_as_promised() {
    for (name, trial) in half(all(), 0) {
        let operations = scripts::at_once();
        judge(&trial, &operations).unwrap_or_else(|why| panic!("{name}: {why}\n{operations:#?}"));
    }
}

#[test]
fn mistakes_made_on_purpose_are_caught() {
    // Footers are for caveat disks; copies for hot zones, tested in `hot`; records of rows for unmounts, tested in
    // `open_groups`.
    let is_meant = |it: &Sabotage| {
        let elsewhere = [Sabotage::FooterGivenBackEarly, Sabotage::RowsForgottenLate];
        !elsewhere.contains(it) && !Sabotage::OF_COPIES.contains(it)
    };
    for sabotage in Sabotage::ALL.into_iter().filter(is_meant) {
        let is_caught = arrays().into_iter().any(|(_, trial)| {
            let trial = Trial { sabotage: Some(sabotage), random_subsets: 4, ..trial };
            let short = (0..scripts::KINDS.pow(3)).step_by(297).map(scripts::short);
            let mut all =
                std::iter::once(scripts::at_once()).chain(short).chain((1..6).map(|seed| scripts::long(seed, 250)));
            all.any(|operations| judge(&trial, &operations).is_err())
        });
        assert!(is_caught, "{sabotage:?} goes unnoticed");
    }
}

/// Checks files of several appends, where each drive dies after various numbers of its writes, also amid appends in
/// flight.
#[test]
fn a_drive_that_dies_while_several_appends_are_under_way_costs_nothing_acknowledged() {
    let write = |path: &str, blocks: usize, seed| Operation::WriteOut(path.into(), 0, blocks * BLOCK_BYTES, seed);
    let mut operations: Vec<Operation> = ["a", "b"].map(|path| Operation::Create(path.into())).into();
    for (round, (a, b)) in [(14, 4), (3, 17)].into_iter().enumerate() {
        operations.extend([write("a", a, round as u8), Operation::Fsync("a".into()), write("b", b, 9)]);
        operations.push(Operation::Sync);
    }
    // The remaining drives must be enough to open another group: a mirror of two is read-only without one of them.
    let goes_on = |trial: &Trial| trial.parity > 0 && trial.drives > usize::from(trial.parity) + 1;
    for (name, trial) in in_short_appends().into_iter().filter(|(_, trial)| goes_on(trial)) {
        let moments = |drive: usize| (3 + drive as u64..40).step_by(8).map(move |events| (drive, events));
        for (drive, events) in (0..trial.drives).flat_map(moments) {
            let harms = vec![Harm::None, Harm::Lost(vec![drive])];
            let trial = Trial { dies: Some((drive, events)), harms, random_subsets: 2, ..trial.clone() };
            judge(&trial, &operations)
                .unwrap_or_else(|why| panic!("{name}, drive {drive} dies after {events} events: {why}"));
        }
    }
}
