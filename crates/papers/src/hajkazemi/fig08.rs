//! Figs 8 and 9: write amplification, mean and tail latency of all machines on all of the paper's layers.

use super::super::{ClaimKind, Experiment, Report};
use super::runs;
use super::table::{
    amplification, figure, listed, mean_ms, operations, tail_ms, write_mean_ms, write_tail_ms, Measure, Table,
};
use super::under_test::{COMPARED, CONVENTIONAL, MAP, PROPOSED, RMW};
use super::workloads::{machines, real, MACHINES, REAL};
use imbrex::chart::{Axis, BarArrangement, BarChart, Style, Unit};
use imbrex::error::Failure;
use imbrex::progress::Progress;
use imbrex_trace::generators::Arrivals;

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "hajkazemi/fig08-09",
    title: "write amplification, mean and tail latency of fifteen machines",
    run,
};

/// Said of every claim on latency.
const OURS: &str = " (hangs on our arrival times)";
/// The one real trace of the collection that is at hand.
const SAMPLE: &str = REAL[0];
/// Machines that interlacing does not slow down (§4).
const UNAFFECTED: [&str; 4] = ["w08", "w24", "w31", "w43"];
/// Machines whose mean latency with RMW is noticeably higher (§4).
const SLOWED: [&str; 7] = ["w09", "w17", "w39", "w46", "w56", "w61", "w87"];
/// What we take "not affected" and "virtually eliminated" to mean: mean and tail within half as much again.
const LIKE_CONVENTIONAL: f64 = 1.5;

fn run(progress: &Progress) -> Result<Report, Failure> {
    let runs = runs::all(&machines(Arrivals::default()), &COMPARED, progress)?;
    let table = Table { names: &MACHINES, layers: &COMPARED, runs: &runs };
    let mut report = Report {
        method: "The fifteen stand-ins, whole, on `imr-1t` with each layer and on \
                 the conventional drive of the same tracks; a queue of 64, served in order of arrival, 64 MiB of write cache. \
                 The tail is the 99.9th percentile."
            .into(),
        ..Report::default()
    };
    amplification_claims(&mut report, &table);
    mean_claims(&mut report, &table);
    tail_claims(&mut report, &table);
    unaffected_claim(&mut report, &table);
    for (title, id, measure, unit) in measures() {
        report.figures.push((format!("{id}.svg"), chart(&table, title, id, measure, unit)));
        report.remarks.push(table.markdown(title, measure));
    }
    sample(&mut report, progress)?;
    Ok(report)
}

/// What the figures show: title, file, measure, unit of the axis.
fn measures() -> [(&'static str, &'static str, Measure, Unit); 3] {
    [
        ("Write amplification", "hajkazemi-fig08", amplification, Unit::Ratio),
        ("Mean latency in ms", "hajkazemi-fig09a", mean_ms, Unit::Nanoseconds),
        ("Tail latency in ms", "hajkazemi-fig09b", tail_ms, Unit::Nanoseconds),
    ]
}

fn chart(table: &Table, title: &str, id: &str, measure: Measure, unit: Unit) -> String {
    let scale = if unit == Unit::Nanoseconds { 1e6 } else { 1.0 };
    let axis = if unit == Unit::Nanoseconds { Axis::log10("latency", unit) } else { Axis::linear("", unit) };
    let groups = table.names.iter().map(|name| name.to_string()).collect();
    let title = title.trim_end_matches(" in ms");
    let mut chart = BarChart::new(id, title, axis, groups, BarArrangement::Grouped).sized(1080.0, 420.0);
    for (look, layer) in table.layers.iter().enumerate() {
        let values = table.column(layer, measure).iter().map(|value| value * scale).collect();
        chart = chart.with(*layer, look, values);
    }
    chart.svg(Style::Standalone)
}

/// The paper does not say whether its write amplification counts sectors or operations: both are judged.
fn amplification_claims(report: &mut Report, table: &Table) {
    amplification_claims_in(report, table, "sectors", amplification);
    amplification_claims_in(report, table, "operations", operations);
    for name in ["w39", "w56", "w106"] {
        let excess = |layer: &str| amplification(table.of(name, layer)) - amplification(table.of(name, CONVENTIONAL));
        let left = PROPOSED.map(|layer| excess(layer) / excess(RMW));
        let best = left.into_iter().fold(f64::INFINITY, f64::min);
        report.claim(
            ClaimKind::Shape,
            &format!("{name}: write amplification with track-map"),
            "nearly eliminated",
            format!(
                "{:.1} % of RMW's excess over the conventional drive is left (the best of the three {:.1} %)",
                left[2] * 100.0,
                best * 100.0
            ),
            Some(left[2] <= 0.1),
        );
    }
}

fn amplification_claims_in(report: &mut Report, table: &Table, unit: &str, amplification: Measure) {
    let rmw_over = |name: &str, layer: &str| table.ratio(name, RMW, layer, amplification);
    for layer in PROPOSED {
        let halved = table.where_(|name| rmw_over(name, layer) >= 2.0);
        report.claim(
            ClaimKind::Shape,
            &format!("{layer}: write amplification half of RMW's or less, in {unit}"),
            "in over half of the workloads",
            format!("in {} of {}: {}", halved.len(), table.names.len(), listed(&halved)),
            Some(2 * halved.len() > table.names.len()),
        );
    }
    let worse: Vec<String> = PROPOSED
        .iter()
        .flat_map(|layer| table.names.iter().map(move |name| (*name, *layer)))
        .filter(|(name, layer)| rmw_over(name, layer) < 1.0)
        .map(|(name, layer)| format!("{name} with {layer} ({:.3} times)", 1.0 / rmw_over(name, layer)))
        .collect();
    report.claim(
        ClaimKind::Shape,
        &format!("no workload is worse off than with RMW, in write amplification by {unit}"),
        "in no case",
        if worse.is_empty() { "in no case".into() } else { worse.join(", ") },
        Some(worse.is_empty()),
    );
    let best = |name: &str| {
        let map = amplification(table.of(name, MAP));
        PROPOSED.iter().all(|layer| map <= amplification(table.of(name, layer)))
    };
    let best = table.where_(best);
    report.claim(
        ClaimKind::Shape,
        &format!("track-map has the least write amplification, in {unit}"),
        "in most cases",
        format!("in {} of {}: {}", best.len(), table.names.len(), listed(&best)),
        Some(2 * best.len() > table.names.len()),
    );
}

fn mean_claims(report: &mut Report, table: &Table) {
    let slower = |name: &str, layer: &str| table.ratio(name, layer, CONVENTIONAL, mean_ms);
    let slowed = SLOWED.map(|name| format!("{name} {}×", figure(slower(name, RMW))));
    report.claim(
        ClaimKind::Shape,
        &format!("RMW: mean latency of w09, w17, w39, w46, w56, w61 and w87 over the conventional drive's{OURS}"),
        "noticeably higher (1.25 times and more)",
        slowed.join(", "),
        Some(SLOWED.iter().all(|name| slower(name, RMW) >= 1.25)),
    );
    let w56 = PROPOSED.map(|layer| slower("w56", layer));
    report.claim(
        ClaimKind::Shape,
        &format!("w56: mean latency with track-flip, track-cache, track-map over the conventional drive's{OURS}"),
        "excess virtually eliminated",
        w56.map(|ratio| format!("{}×", figure(ratio))).join(", "),
        Some(w56.iter().all(|&ratio| ratio <= LIKE_CONVENTIONAL)),
    );
    for name in ["w17", "w39", "w46"] {
        let gains = PROPOSED.map(|layer| table.ratio(name, RMW, layer, mean_ms));
        report.claim(
            ClaimKind::Shape,
            &format!("{name}: mean latency with RMW over that with track-flip, track-cache, track-map{OURS}"),
            "over 2 for at least one",
            gains.map(|gain| format!("{}×", figure(gain))).join(", "),
            Some(gains.iter().any(|&gain| gain > 2.0)),
        );
    }
    for name in ["w09", "w87"] {
        let (gain, left) = (table.ratio(name, RMW, MAP, mean_ms), slower(name, MAP));
        report.claim(
            ClaimKind::Shape,
            &format!("{name}: mean latency with track-map{OURS}"),
            "modest gain, still significantly worse than conventional",
            format!("{}× better than RMW, {}× conventional", figure(gain), figure(left)),
            Some(gain >= 1.0 && left >= LIKE_CONVENTIONAL),
        );
    }
}

fn tail_claims(report: &mut Report, table: &Table) {
    let tail = |name: &str, layer: &str| table.ratio(name, layer, CONVENTIONAL, tail_ms);
    for name in ["w39", "w56"] {
        let (rmw, conventional) = (table.of(name, RMW), table.of(name, CONVENTIONAL));
        for (of, measure) in [("all requests", tail_ms as Measure), ("writes", write_tail_ms)] {
            let ratio = table.ratio(name, RMW, CONVENTIONAL, measure);
            report.claim(
                ClaimKind::Shape,
                &format!("{name}: tail latency of {of} with RMW over the conventional drive's{OURS}"),
                "tens of thousands of times; mean 2.4 s against 0.1 ms",
                format!(
                    "{} times: tail {} s against {} ms, mean of writes {} s against {} ms",
                    figure(ratio),
                    figure(measure(rmw) / 1e3),
                    figure(measure(conventional)),
                    figure(write_mean_ms(rmw) / 1e3),
                    figure(write_mean_ms(conventional))
                ),
                Some(ratio >= 10_000.0),
            );
            let limited = PROPOSED.map(|layer| table.ratio(name, layer, CONVENTIONAL, measure));
            report.claim(
                ClaimKind::Shape,
                &format!("{name}: tail latency of {of} with track-flip, track-cache, track-map over the same{OURS}"),
                "double digits",
                limited.map(|ratio| format!("{}×", figure(ratio))).join(", "),
                Some(limited.iter().all(|&ratio| ratio < 100.0)),
            );
        }
    }
    report.remarks.push(
        "The paper's tails of w39 and w56 must be those of writes: a conventional drive whose mean is 0.1 ms reads from \
         its cache, but 2.6 and 4.7 % of the requests of these machines read, most of them pages that were not written \
         before, and one in a thousand of all cannot be faster than a seek. Both are given."
            .into(),
    );
    let raised = table.where_(|name| tail(name, RMW) > 4.0);
    report.claim(
        ClaimKind::Shape,
        &format!("RMW: tail latency more than 4 times the conventional drive's{OURS}"),
        "across the majority of workloads",
        format!("in {} of {}: {}", raised.len(), table.names.len(), listed(&raised)),
        Some(2 * raised.len() > table.names.len()),
    );
    let similar = table.where_(|name| tail(name, MAP) <= LIKE_CONVENTIONAL);
    report.claim(
        ClaimKind::Shape,
        &format!("track-map: tail latency within 1.5 times the conventional drive's{OURS}"),
        "in about half the cases",
        format!("in {} of {}: {}", similar.len(), table.names.len(), listed(&similar)),
        Some((4..=11).contains(&similar.len())),
    );
}

fn unaffected_claim(report: &mut Report, table: &Table) {
    let unaffected = |name: &str| table.is_near_conventional(name, RMW, LIKE_CONVENTIONAL);
    let ratios = UNAFFECTED.map(|name| {
        let of = |measure| figure(table.ratio(name, RMW, CONVENTIONAL, measure));
        format!("{name} {}× and {}×", of(mean_ms), of(tail_ms))
    });
    report.claim(
        ClaimKind::Shape,
        &format!("w08, w24, w31 and w43: mean and tail latency with RMW over the conventional drive's{OURS}"),
        "not affected (within 1.5 times)",
        ratios.join(", "),
        Some(UNAFFECTED.iter().all(|name| unaffected(name))),
    );
}

/// The one real trace of the collection that is at hand.
fn sample(report: &mut Report, progress: &Progress) -> Result<(), Failure> {
    if real().is_empty() {
        report.remarks.push(format!("Skipped: `{SAMPLE}`, a real trace of the same collection, is not at hand."));
        return Ok(());
    }
    let names = [SAMPLE];
    let runs = runs::all(&real()[..1], &COMPARED, progress)?;
    let table = Table { names: &names, layers: &COMPARED, runs: &runs };
    for (title, _, measure, _) in measures() {
        report.remarks.push(table.markdown(&format!("{title}, the real trace `{SAMPLE}`"), measure));
    }
    let rmw = amplification(table.of(SAMPLE, RMW));
    let others = PROPOSED.map(|layer| amplification(table.of(SAMPLE, layer)));
    report.claim(
        ClaimKind::Shape,
        "the real trace: write amplification with track-flip, track-cache, track-map, RMW",
        "none for this machine; no worse than RMW",
        format!("{}; {}", others.map(figure).join(", "), figure(rmw)),
        Some(others.iter().all(|&other| other <= rmw)),
    );
    Ok(())
}
