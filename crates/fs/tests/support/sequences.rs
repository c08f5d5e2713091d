//! What tests of power cuts share: settings for longer runs, and the judgement of sequences of three operations.

#![allow(clippy::unwrap_used, dead_code)] // in a test a panic is the report; not every test uses all of it

use imbrex_fs::Bounds;
use imbrex_fs::verify::cuts::judge;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Toy, scripts};

/// What `IMBREX_FS_…` says, for longer runs.
pub fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Judges some of all sequences of three operations on each of `toys`, with the usual and with the smallest bounds.
pub fn judge_sequences_of_three(toys: Vec<Toy>) {
    let every = setting("IMBREX_FS_EVERY", 397) as usize;
    for (name, usual) in toys {
        let smallest = Trial { bounds: Bounds::smallest(), ..usual.clone() };
        for (bounds, trial) in [("usual", usual), ("smallest", smallest)] {
            for number in (0..scripts::KINDS.pow(3)).step_by(every) {
                let operations = scripts::short(number);
                judge(&trial, &operations)
                    .unwrap_or_else(|why| panic!("{name}, {bounds} bounds, sequence {number}: {why}\n{operations:#?}"));
            }
        }
    }
}
