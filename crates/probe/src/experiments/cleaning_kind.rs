//! Test 3: aggressive or lazy cleaning? After a pause a drive that cleans when idle has put a fragmented run back into
//! its place (Aghayev 2015 §4.5); the shortest pause after which it has begun tells what it waits for.

use super::{fragmented_read, only_for_cached, Bench, Experiment};
use crate::statistics::mode;
use crate::target::TargetError;
use crate::verdict::{Confidence, Value};

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "cleaning",
    question: "does it clean when idle?",
    source: "Aghayev 2015 test 3",
    writes: true,
    tells: &["cleaning", "idle_before_clean_at_most"],
    about_s: 1000,
    is_idle: only_for_cached,
    run,
};

/// Pauses tried, seconds. The later ones cost a real drive's owner hours: there the budget ends the test before them.
const PAUSES_S: [u64; 4] = [5, 30, 120, 600];
/// A pause only a virtual clock is given.
const LONG_PAUSE_S: u64 = 5 * 3600;
/// Reads of a run that lies in one piece take one fixed time, a rotation for one after the other; so do more of them than
/// this. Of a fragmented run half come from elsewhere.
const WHOLE_SHARE: f64 = 0.8;

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let evidence = ["read after no pause", "read after a pause"];
    let offset = bench.at_share(0.503);
    let fragmented = mode(&fragmented_read(bench, evidence[0], offset, 0)?, 0.05);
    if fragmented.share >= WHOLE_SHARE {
        let because = "a run just written in pieces is read at a fixed time: its pieces do not show".to_string();
        bench.verdict.conclude("cleaning", Value::CannotTell, "", Confidence::Low, because, &evidence);
        return Ok(());
    }
    let pauses = PAUSES_S.into_iter().chain(bench.target.is_virtual().then_some(LONG_PAUSE_S));
    for (index, seconds) in pauses.enumerate() {
        let offset = bench.at_share(0.505 + 0.002 * index as f64);
        let read = mode(&fragmented_read(bench, evidence[1], offset, seconds * 1_000_000_000)?, 0.05);
        if read.share >= WHOLE_SHARE {
            let because = format!(
                "after a pause of {seconds} s {:.0} % of the reads take {:.2} ms; after none {:.0} % agree",
                read.share * 100.0,
                read.center as f64 / 1e6,
                fragmented.share * 100.0
            );
            let word = if seconds <= 600 { "aggressive" } else { "late" };
            bench.verdict.conclude("cleaning", Value::Word(word), "", Confidence::High, because.clone(), &evidence);
            let at_most = Value::Number(seconds as f64);
            bench.verdict.conclude("idle_before_clean_at_most", at_most, "s", Confidence::High, because, &evidence);
            return Ok(());
        }
    }
    let because = "a run written in pieces is read in pieces after every pause".to_string();
    bench.verdict.conclude("cleaning", Value::Word("lazy"), "", Confidence::High, because, &evidence);
    Ok(())
}
