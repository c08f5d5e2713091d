//! Test 3: aggressive or lazy cleaning? After a pause a drive that cleans when idle has put a fragmented run back into
//! its place (Aghayev 2015 §4.5); the shortest pause after which it has begun tells what it waits for.

use super::{fragmented_read, only_for_cached, Bench, Experiment};
use crate::statistics::trimmed_mean;
use crate::target::TargetError;
use crate::verdict::{Confidence, Value};

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "cleaning",
    question: "does it clean when idle?",
    source: "Aghayev 2015 test 3",
    writes: true,
    is_idle: only_for_cached,
    run,
};

/// Pauses tried, seconds. The later ones cost a real drive's owner hours: there the budget ends the test before them.
const PAUSES_S: [u64; 4] = [5, 30, 120, 600];
/// A pause only a virtual clock is given.
const LONG_PAUSE_S: u64 = 5 * 3600;

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let offset = bench.at_share(0.503);
    let fragmented = trimmed_mean(&fragmented_read(bench, "read after no pause", offset, 0)?);
    let pauses = PAUSES_S.into_iter().chain(bench.target.is_virtual().then_some(LONG_PAUSE_S));
    for (index, seconds) in pauses.enumerate() {
        let offset = bench.at_share(0.505 + 0.002 * index as f64);
        let read = trimmed_mean(&fragmented_read(bench, "read after a pause", offset, seconds * 1_000_000_000)?);
        if read < fragmented * 0.6 {
            let because = format!(
                "reads take {:.2} ms after a pause of {seconds} s, {:.2} ms after none",
                read / 1e6,
                fragmented / 1e6
            );
            let word = if seconds <= 5 { "aggressive" } else { "late" };
            let evidence = ["read after no pause", "read after a pause"];
            bench.verdict.conclude("cleaning", Value::Word(word), "", Confidence::High, because.clone(), &evidence);
            let at_most = Value::Number(seconds as f64);
            bench.verdict.conclude("idle_before_clean_at_most", at_most, "s", Confidence::High, because, &evidence);
            return Ok(());
        }
    }
    let because = format!("reads take as long after every pause as after none ({:.2} ms)", fragmented / 1e6);
    let evidence = ["read after no pause", "read after a pause"];
    bench.verdict.conclude("cleaning", Value::Word("lazy"), "", Confidence::High, because, &evidence);
    Ok(())
}
