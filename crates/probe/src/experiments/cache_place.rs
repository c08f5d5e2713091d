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
    tells: &["cache_place"],
    about_s: 180,
    is_idle,
    run,
};

fn is_idle(verdict: &Verdict) -> Option<&'static str> {
    only_for_cached(verdict).or((verdict.word("cache_medium") == Some("flash")).then_some("the cache is flash"))
}

/// Mean times that differ by less than this share of a rotation are alike.
const ALIKE: f64 = 0.1;

/// Where the runs are read, as shares of the drive, and the names of their series.
const PLACES: [(f64, &str); 5] = [
    (0.002, "fragmented read at 0 %"),
    (0.25, "fragmented read at 25 %"),
    (0.5, "fragmented read at 50 %"),
    (0.75, "fragmented read at 75 %"),
    (0.995, "fragmented read at 100 %"),
];

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let mut means = [0.0; PLACES.len()];
    for (mean, (share, name)) in means.iter_mut().zip(PLACES) {
        let offset = bench.at_share(share);
        *mean = trimmed_mean(&fragmented_read(bench, name, offset, 0)?) / 1e6;
    }
    let place = place_of(&means, ALIKE * bench.verdict.number("rotation").unwrap_or(10.0));
    let because = format!("mean reads of {means:.2?} ms from low to high addresses");
    bench.verdict.conclude(
        "cache_place",
        Value::Word(place),
        "",
        Confidence::High,
        because,
        &PLACES.map(|(_, name)| name),
    );
    Ok(())
}

/// A single cache is the farther the longer the read takes: going from low to high addresses the times fall until it is
/// reached, and rise from there. Whatever else they do, or if they do neither, there are several.
fn place_of(means: &[f64], alike: f64) -> &'static str {
    let nearest = means.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(index, _)| index);
    let falls = means[..=nearest].windows(2).all(|pair| pair[1] < pair[0] + alike);
    let rises = means[nearest..].windows(2).all(|pair| pair[1] > pair[0] - alike);
    let (first, last) = (means[0], means[means.len() - 1]);
    let above = |mean: f64| mean - means[nearest] > 2.0 * alike;
    match (falls && rises, above(first), above(last)) {
        (true, false, true) => "od",
        (true, true, false) => "id",
        (true, true, true) => "md",
        _ => "several",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_place_tells_where_the_cache_is() {
        for (means, place) in [
            ([5.0, 8.0, 12.0, 15.0, 18.0], "od"),
            ([18.0, 15.0, 12.0, 8.0, 5.0], "id"),
            ([14.0, 10.0, 6.0, 10.0, 14.0], "md"),
            ([10.0, 10.2, 9.8, 10.0, 10.1], "several"),
            ([6.5, 5.0, 7.9, 6.2, 7.0], "several"),
        ] {
            assert_eq!(place_of(&means, 1.0), place, "{means:?}");
        }
    }
}
