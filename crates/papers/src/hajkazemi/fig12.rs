//! Figs 12 and 13: distribution of write latencies, and how far the run falls behind the conventional drive's, on w46 and w28.

use imbrex_trace::generators::Arrivals;

use super::super::{ClaimKind, Experiment, Report};
use super::runs::{self, Curves, Runs};
use super::under_test::{CACHE, COMPARED, CONVENTIONAL, FLIP, MAP, PROPOSED, RMW};
use super::workloads::Case;
use imbrex::chart::{Axis, Chart, Series, Shape, Style, Unit};
use imbrex::error::Failure;
use imbrex::progress::Progress;

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "hajkazemi/fig12-13",
    title: "distribution of latencies, and issue time disparity, on w46 and w28",
    run,
};

const NAMES: [&str; 2] = runs::WITH_CURVES;

fn run(progress: &Progress) -> Result<Report, Failure> {
    let runs = runs::all(&NAMES.map(|name| Case::of(name, Arrivals::default())), &COMPARED, progress)?;
    let mut report = Report {
        method: "The runs of figs 8 and 9. The share of writes slowed is the largest distance between the \
                 distributions of a drive and of the conventional one: at least so many writes take longer. The \
                 disparity is how much later a request enters the queue than on the conventional drive. All of it hangs \
                 on our arrival times."
            .into(),
        ..Report::default()
    };
    for name in NAMES {
        distribution_claims(&mut report, &runs, name);
        disparity_claims(&mut report, &runs, name);
        let id = format!("hajkazemi-fig12-{name}");
        report.figures.push((format!("{id}.svg"), distribution_chart(&id, &runs, name)));
        let id = format!("hajkazemi-fig13-{name}");
        report.figures.push((format!("{id}.svg"), disparity_chart(&id, &runs, name)));
    }
    Ok(report)
}

fn of<'a>(runs: &'a Runs, name: &'static str, layer: &str) -> &'a Curves {
    let run = &runs[&(Case::of(name, Arrivals::default()), layer.to_string())];
    run.curves.as_ref().expect("the curves of these machines are kept")
}

/// (ns, share of writes that take no longer), rising.
fn distribution(buckets: &[(u64, u64)]) -> Vec<(u64, f64)> {
    let total = buckets.iter().map(|bucket| bucket.1).sum::<u64>() as f64;
    let mut sum = 0;
    let buckets = buckets.iter().map(|&(ns, count)| {
        sum += count;
        (ns, sum as f64 / total)
    });
    buckets.collect()
}

/// The largest share by which `slow` lags behind `fast`.
fn share_slowed(slow: &[(u64, u64)], fast: &[(u64, u64)]) -> f64 {
    let (slow, fast) = (distribution(slow), distribution(fast));
    let at = |steps: &[(u64, f64)], ns: u64| match steps.partition_point(|step| step.0 <= ns) {
        0 => 0.0,
        place => steps[place - 1].1,
    };
    fast.iter().map(|&(ns, share)| share - at(&slow, ns)).fold(0.0, f64::max)
}

fn distribution_claims(report: &mut Report, runs: &Runs, name: &'static str) {
    let conventional = &of(runs, name, CONVENTIONAL).writes;
    let slowed = |layer: &str| share_slowed(&of(runs, name, layer).writes, conventional);
    let rmw = slowed(RMW);
    report.claim(
        ClaimKind::Shape,
        &format!("{name}: share of writes that RMW slows"),
        "roughly 2/3",
        format!("{:.0} %", rmw * 100.0),
        Some((0.5..0.85).contains(&rmw)),
    );
    let others = PROPOSED.map(slowed);
    report.claim(
        ClaimKind::Shape,
        &format!("{name}: share of writes that track-flip, track-cache, track-map slow"),
        "considerably fewer, roughly 25 %",
        others.map(|share| format!("{:.0} %", share * 100.0)).join(", "),
        Some(others.iter().all(|&share| share < rmw)),
    );
}

/// (number of the request, ns later than on the conventional drive).
fn disparity(runs: &Runs, name: &'static str, layer: &str) -> Vec<(f64, f64)> {
    let ours = &of(runs, name, layer).issues;
    let base = &of(runs, name, CONVENTIONAL).issues;
    let both = ours.iter().zip(base);
    both.map(|(&(number, ns), &(same, base_ns))| {
        assert_eq!(number, same, "the same requests are sampled on every drive");
        (number as f64, ns as f64 - base_ns as f64)
    })
    .collect()
}

fn disparity_claims(report: &mut Report, runs: &Runs, name: &'static str) {
    let last = |layer: &str| disparity(runs, name, layer).last().map_or(0.0, |point| point.1 / 1e9);
    let [rmw, flip, cache, map] = [RMW, FLIP, CACHE, MAP].map(last);
    let theirs = match name {
        "w46" => "all much less than RMW's, track-map's least",
        _ => "track-map's much less than RMW's, track-flip's and track-cache's somewhat",
    };
    report.claim(
        ClaimKind::Shape,
        &format!("{name}: issue time disparity at the end with RMW, track-flip, track-cache, track-map"),
        theirs,
        format!("{rmw:.1} s; {flip:.1}, {cache:.1}, {map:.1} s"),
        Some(flip < rmw && cache < rmw && map <= flip && map <= cache),
    );
}

fn distribution_chart(id: &str, runs: &Runs, name: &'static str) -> String {
    let title = format!("Latency of writes, {name}");
    let mut chart = Chart::new(
        id,
        title,
        Axis::log10("latency", Unit::Nanoseconds),
        Axis::linear("share of writes", Unit::Share).ranged(0.0, 1.0),
    );
    for (look, layer) in COMPARED.into_iter().enumerate() {
        let steps = distribution(&of(runs, name, layer).writes);
        let points = steps.into_iter().map(|(ns, share)| (ns as f64, share)).collect();
        chart = chart.with(Series::new(layer, Shape::Line, look, points));
    }
    chart.thin(400).svg(Style::Standalone)
}

fn disparity_chart(id: &str, runs: &Runs, name: &'static str) -> String {
    let mut chart = Chart::new(
        id,
        format!("Issue time disparity, {name}"),
        Axis::linear("request", Unit::Count),
        Axis::linear("later than on the conventional drive", Unit::Nanoseconds),
    );
    for (look, layer) in COMPARED.into_iter().enumerate().skip(1) {
        chart = chart.with(Series::new(layer, Shape::Line, look, disparity(runs, name, layer)));
    }
    chart.thin(400).svg(Style::Standalone)
}
