//! Test 2: where is the cache? Reading a run of which every other block lies in the cache makes the head go there and
//! back; how far, shows in the time (Aghayev 2015 §4.4).

use super::{fragmented_read, only_for_cached, Bench, Experiment};
use crate::statistics::trimmed_mean;
use crate::target::TargetError;
use crate::verdict::{Confidence, Value, Verdict};

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "cache-place",
    question: "where is the cache?",
    source: "Aghayev 2015 test 2",
    writes: true,
    is_idle,
    run,
};

fn is_idle(verdict: &Verdict) -> Option<&'static str> {
    only_for_cached(verdict).or((verdict.word("cache_medium") == Some("flash")).then_some("the cache is flash"))
}

/// Mean times that differ by less than this share of a rotation are alike.
const ALIKE: f64 = 0.1;

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let names = ["fragmented read, low", "fragmented read, middle", "fragmented read, high"];
    let mut means = [0.0; 3];
    for ((mean, name), share) in means.iter_mut().zip(names).zip([0.002, 0.5, 0.995]) {
        let offset = bench.at_share(share);
        *mean = trimmed_mean(&fragmented_read(bench, name, offset, 0)?) / 1e6;
    }
    let [low, middle, high] = means;
    let alike = ALIKE * bench.verdict.number("rotation").unwrap_or(10.0);
    let is_less = |a: f64, b: f64| b - a > alike;
    let place = if is_less(low, middle) && is_less(middle, high) {
        Some("od")
    } else if is_less(high, middle) && is_less(middle, low) {
        Some("id")
    } else if is_less(middle, low) && is_less(middle, high) {
        Some("md")
    } else if means.iter().all(|mean| (mean - middle).abs() <= alike) {
        Some("several")
    } else {
        None
    };
    let because = format!("mean read {low:.2} ms at low, {middle:.2} in the middle, {high:.2} at high addresses");
    match place {
        Some(place) => {
            bench.verdict.conclude("cache_place", Value::Word(place), "", Confidence::High, because, &names);
        }
        None => bench.verdict.conclude("cache_place", Value::CannotTell, "", Confidence::Low, because, &names),
    }
    Ok(())
}
