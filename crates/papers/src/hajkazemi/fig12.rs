//! Figs 12 and 13: the distribution of write latencies, and how far the run falls behind that on the conventional
//! drive, for w46 and w28.

use imbrex_trace::generators::Arrivals;

use super::super::{Experiment, Replication, Report};
use super::runs::{self, Curves, Runs};
use super::sentences::*;
use super::table::{Outcome, claim, write_mean_ms};
use super::under_test::{CACHE, COMPARED, CONVENTIONAL, FLIP, MAP, PROPOSED, RMW};
use super::workloads::Case;
use imbrex::chart::{Axis, Chart, Series, Shape, Unit};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "hajkazemi/fig12-13",
    title: "distribution of latencies, and issue time disparity, on w46 and w28",
    run,
};

/// Machines of the figures.
const NAMES: [&str; 2] = ["w46", "w28"];

fn run(replication: &Replication) -> Result<Report, Failure> {
    let names = runs::WITH_CURVES;
    let cases: Vec<Case> =
        Arrivals::ALL.into_iter().flat_map(|arrivals| names.map(|name| Case::of(name, arrivals))).collect();
    let runs = runs::all(&cases, &COMPARED, replication)?;
    let mut report = Report {
        method: "The experiment uses the runs of figs 8 and 9 of Hajkazemi 2019. The *share of writes slowed* is the \
                 largest difference between the distributions of write latency on a drive and on the conventional \
                 drive; at least this share of the writes takes longer. The *disparity* of a request is the time by \
                 which it enters the queue later than on the conventional drive; the claims are about the disparity \
                 of the last request. The charts are for arrivals from `cloudphysics`."
            .into(),
        ..Report::default()
    };
    for name in NAMES {
        distribution_claims(&mut report, &runs, name);
        disparity_claims(&mut report, &runs, name);
        let id = format!("hajkazemi-fig12-{name}");
        report.figure(distribution_chart(&id, &runs, name));
        let id = format!("hajkazemi-fig13-{name}");
        report.figure(disparity_chart(&id, &runs, name));
    }
    w56_claims(&mut report, &runs);
    Ok(report)
}

fn of<'a>(runs: &'a Runs, arrivals: Arrivals, name: &'static str, layer: &str) -> &'a Curves {
    let run = &runs[&(Case::of(name, arrivals), layer.to_string())];
    run.curves.as_ref().expect("the curves of these machines are kept")
}

/// Returns the cumulative distribution of a histogram: (ns, share of writes that take at most as long), rising.
fn distribution(buckets: &[(u64, u64)]) -> Vec<(u64, f64)> {
    let total = buckets.iter().map(|bucket| bucket.1).sum::<u64>() as f64;
    let mut sum = 0;
    let buckets = buckets.iter().map(|&(ns, count)| {
        sum += count;
        (ns, sum as f64 / total)
    });
    buckets.collect()
}

/// Returns the largest difference between two cumulative distributions, `fast` minus `slow`.
fn share_slowed(slow: &[(u64, u64)], fast: &[(u64, u64)]) -> f64 {
    let (slow, fast) = (distribution(slow), distribution(fast));
    let at = |steps: &[(u64, f64)], ns: u64| match steps.partition_point(|step| step.0 <= ns) {
        0 => 0.0,
        place => steps[place - 1].1,
    };
    fast.iter().map(|&(ns, share)| share - at(&slow, ns)).fold(0.0, f64::max)
}

/// Returns the share of writes that are slower on a layer than on the conventional drive.
fn slowed(runs: &Runs, arrivals: Arrivals, name: &'static str, layer: &str) -> f64 {
    let writes = |layer: &str| of(runs, arrivals, name, layer).writes.as_slice();
    share_slowed(writes(layer), writes(CONVENTIONAL))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn distribution_claims(report: &mut Report, runs: &Runs, name: &'static str) {
    claim(report, runs, &format!("{name}: share of writes that RMW slows"), "roughly 2/3 (57 to 77 %)", |view| {
        let rmw = slowed(runs, view.arrivals, name, RMW);
        (percent(rmw), Outcome::Holds(is_roughly_two_thirds(rmw)))
    });
    let shares = |arrivals| PROPOSED.map(|layer| slowed(runs, arrivals, name, layer));
    let words = format!("{name}: share of writes that track-flip, track-cache, track-map slow, beside RMW's");
    claim(report, runs, &words, "considerably fewer (half at most)", |view| {
        let (rmw, others) = (slowed(runs, view.arrivals, name, RMW), shares(view.arrivals));
        let told = format!("{}; {}", others.map(percent).join(", "), percent(rmw));
        (told, Outcome::Holds(others.iter().all(|&share| is_considerably_less(share, rmw))))
    });
    let words = format!("{name}: share of writes that they still slow");
    claim(report, runs, &words, "roughly 25 % (15 to 35)", |view| {
        let others = shares(view.arrivals);
        (others.map(percent).join(", "), Outcome::Holds(others.iter().all(|&share| is_roughly_a_quarter(share))))
    });
}

/// Adds the claims of §4 about w56, which is in neither figure.
fn w56_claims(report: &mut Report, runs: &Runs) {
    claim(report, runs, "w56: share of writes that RMW slows", "fewer, roughly 10 % (5 to 15)", |view| {
        let rmw = slowed(runs, view.arrivals, "w56", RMW);
        (percent(rmw), Outcome::Holds(is_roughly_a_tenth(rmw)))
    });
    let words = "w56: mean latency of writes with track-flip, track-cache, track-map over the conventional drive's";
    claim(report, runs, words, "comparable (within 1.25 times)", |view| {
        let ratios = PROPOSED.map(|layer| view.ratio("w56", layer, CONVENTIONAL, write_mean_ms));
        (
            ratios.map(|ratio| format!("{ratio:.2}×")).join(", "),
            Outcome::Holds(ratios.iter().all(|&ratio| is_similar(ratio))),
        )
    });
}

/// Returns (number of the request, ns by which it enters the queue later than on the conventional drive).
fn disparity(runs: &Runs, arrivals: Arrivals, name: &'static str, layer: &str) -> Vec<(f64, f64)> {
    let ours = &of(runs, arrivals, name, layer).issues;
    let base = &of(runs, arrivals, name, CONVENTIONAL).issues;
    let both = ours.iter().zip(base);
    both.map(|(&(number, ns), &(same, base_ns))| {
        assert_eq!(number, same, "the same requests are sampled on every drive");
        (number as f64, ns as f64 - base_ns as f64)
    })
    .collect()
}

fn disparity_claims(report: &mut Report, runs: &Runs, name: &'static str) {
    let last = |arrivals, layer: &str| disparity(runs, arrivals, name, layer).last().map_or(0.0, |point| point.1 / 1e9);
    let theirs = match name {
        "w46" => "significantly less than RMW's (less than half), track-map's least",
        _ => "track-map's considerably less than RMW's (half at most), the others' between",
    };
    let words = format!("{name}: issue time disparity at the end with RMW; track-flip, track-cache, track-map");
    claim(report, runs, &words, theirs, |view| {
        let [rmw, flip, cache, map] = [RMW, FLIP, CACHE, MAP].map(|layer| last(view.arrivals, layer));
        let told = format!("{rmw:.0} s; {flip:.0}, {cache:.0}, {map:.0} s");
        (told, Outcome::Holds(is_disparity_theirs(name, [rmw, flip, cache, map])))
    });
}

/// Returns whether the disparities with RMW, track-flip, track-cache and track-map have the order of fig. 13.
fn is_disparity_theirs(name: &str, [rmw, flip, cache, map]: [f64; 4]) -> bool {
    let map_is_least = map <= flip && map <= cache;
    match name {
        "w46" => map_is_least && [flip, cache, map].iter().all(|&other| is_significant(rmw / other)),
        _ => map_is_least && is_considerably_less(map, rmw) && flip < rmw && cache < rmw,
    }
}

fn distribution_chart(id: &str, runs: &Runs, name: &'static str) -> Chart {
    let title = format!("Latency of writes, {name}");
    let mut chart = Chart::new(
        id,
        title,
        Axis::log10("latency", Unit::Nanoseconds),
        // Few writes are slowed, so the nines are at equal distances.
        Axis::percentile("share of writes that took no longer", 4),
    );
    for (look, layer) in COMPARED.into_iter().enumerate() {
        let steps = distribution(&of(runs, Arrivals::default(), name, layer).writes);
        // The curve rises from 0, so that it is seen even if all writes take equally long.
        let from_zero = steps.first().map(|&(ns, _)| (ns, 0.0));
        let points = from_zero.into_iter().chain(steps).map(|(ns, share)| (ns as f64, share)).collect();
        chart = chart.with(Series::new(layer, Shape::Steps, look, points));
    }
    chart.thin(400)
}

fn disparity_chart(id: &str, runs: &Runs, name: &'static str) -> Chart {
    let mut chart = Chart::new(
        id,
        format!("Issue time disparity, {name}"),
        Axis::linear("request", Unit::Count),
        Axis::linear("later than on the conventional drive", Unit::Nanoseconds),
    );
    for (look, layer) in COMPARED.into_iter().enumerate().skip(1) {
        chart = chart.with(Series::new(layer, Shape::Line, look, disparity(runs, Arrivals::default(), name, layer)));
    }
    chart.thin(400)
}

#[cfg(test)]
mod tests {
    //! Goal: the curves are measured as described. Method: distributions and disparities written here.

    use super::*;

    #[test]
    fn the_share_slowed_is_the_largest_distance() {
        let fast = [(10, 50), (100, 50)];
        assert_eq!(share_slowed(&fast, &fast), 0.0);
        assert!((share_slowed(&[(10, 20), (100, 50), (1000, 30)], &fast) - 0.3).abs() < 1e-12);
    }

    #[test]
    fn disparities_stand_as_in_figure_13() {
        assert!(is_disparity_theirs("w46", [100.0, 40.0, 45.0, 30.0]));
        assert!(!is_disparity_theirs("w46", [100.0, 40.0, 101.0, 30.0]), "track-cache's is no better");
        assert!(!is_disparity_theirs("w46", [100.0, 20.0, 45.0, 30.0]), "track-map's is not the least");
        assert!(is_disparity_theirs("w28", [100.0, 80.0, 90.0, 40.0]));
        assert!(!is_disparity_theirs("w28", [100.0, 80.0, 90.0, 70.0]), "track-map's is no considerable improvement");
    }
}
