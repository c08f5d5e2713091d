//! Figs 8 and 9: write amplification, mean and tail latency of all machines on all of the paper's layers.

use imbrex_trace::generators::Arrivals;

use super::super::report::Table;
use super::super::{ClaimKind, Experiment, Replication, Report};
use super::beyond::smaller_machines;
use super::causes;
use super::runs::{self, Runs};
use super::sentences::*;
use super::table::{
    Measure, Outcome, View, amplification, claim, figure, listed, mean_ms, operations, tail_ms, write_mean_ms,
    write_tail_ms,
};
use super::under_test::{CACHE, COMPARED, CONVENTIONAL, FLIP, MAP, OURS, PROPOSED, RMW, SECOND_VALUES, SMALL_CACHE};
use super::workloads::{Case, MACHINES, machines, real};
use imbrex::chart::{Axis, BarArrangement, BarChart, Unit};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "hajkazemi/fig08-09",
    title: "write amplification, mean and tail latency of fifteen machines",
    run,
};

/// Commit that has our choices, made before the first run.
const CHOSEN: &str = "a946c34";
/// Machines that interlacing does not slow down (§4).
const UNAFFECTED: [&str; 4] = ["w08", "w24", "w31", "w43"];
/// Machines whose mean latency with RMW is noticeably higher (§4).
const SLOWED: [&str; 7] = ["w09", "w17", "w39", "w46", "w56", "w61", "w87"];

fn run(replication: &Replication) -> Result<Report, Failure> {
    let cases: Vec<Case> = Arrivals::ALL.into_iter().flat_map(machines).collect();
    let runs = runs::all(&cases, &COMPARED, replication)?;
    let mut report = Report { method: method(), ..Report::default() };
    amplification_claims(&mut report, &runs);
    mean_claims(&mut report, &runs);
    tail_claims(&mut report, &runs);
    unaffected_claims(&mut report, &runs);
    let view = View::new(Arrivals::default(), &runs);
    for (title, id, measure, unit) in measures() {
        if let Some(id) = id {
            report.figure(chart(&view, title, id, measure, unit));
        }
        report.remarks.push(view.markdown(title, &COMPARED, measure));
    }
    for arrivals in &Arrivals::ALL[1..] {
        let view = View::new(*arrivals, &runs);
        for (title, measure) in [("Mean latency in ms", mean_ms as Measure), ("Tail latency in ms", tail_ms)] {
            let title = format!("{title}, arrivals from {}", arrivals.name());
            report.remarks.push(view.markdown(&title, &COMPARED, measure));
        }
    }
    report.tables.push(second_values(&runs, replication)?);
    report.tables.push(causes::eliminated(replication)?);
    report.tables.push(causes::fallen_behind(replication)?);
    report.tables.push(causes::models(replication)?);
    report.tables.push(causes::alignments(replication)?);
    real_traces(&mut report, replication)?;
    Ok(report)
}

fn method() -> String {
    format!(
        "The experiment runs the fifteen stand-ins completely on `imr-1t`, with the layers and steps of Hajkazemi \
         2019 (`safety=paper`, the hottest k tracks of an interval of 20,000 writes by their number of writes \
         (`heat=writes`), counts reset after it), and on the conventional drive with equal tracks. A wait for \
         the rotation counts as half a rotation (eq. 2), and there is one backup region (§2.1). The queue has 64 places and is served in order of arrival. We \
         chose the values that the paper does not give by rule before the first run (commit {CHOSEN}; \
         [workloads](../workloads.md)): k is 100, a track is moved if it is twice as hot as the one that it \
         displaces, the write cache has 64 MiB, and the tail is the 99.9th percentile. One table also has other \
         values: 20 and 500 for k, factors of 1, 4, 8 and 16, and a cache of 8 MiB. Each claim about the stand-ins is \
         judged with arrivals from each of four sources; tables that name no source are of the first, \
         `cloudphysics`. The paper does not say whether write amplification counts sectors or operations, so both \
         are judged."
    )
}

/// Returns the measures of the figures: (title, file name, measure, unit of the axis).
fn measures() -> [(&'static str, Option<&'static str>, Measure, Unit); 4] {
    [
        ("Write amplification in sectors", Some("hajkazemi-fig08"), amplification, Unit::Ratio),
        ("Write amplification in operations", Some("hajkazemi-fig08-operations"), operations, Unit::Ratio),
        ("Mean latency in ms", Some("hajkazemi-fig09a"), mean_ms, Unit::Nanoseconds),
        ("Tail latency in ms", Some("hajkazemi-fig09b"), tail_ms, Unit::Nanoseconds),
    ]
}

fn chart(view: &View, title: &str, id: &str, measure: Measure, unit: Unit) -> BarChart {
    let scale = if unit == Unit::Nanoseconds { 1e6 } else { 1.0 };
    let axis = if unit == Unit::Nanoseconds { Axis::log10("latency", unit) } else { Axis::linear("", unit) };
    let groups = MACHINES.iter().map(|name| name.to_string()).collect();
    let title = title.trim_end_matches(" in ms");
    let mut chart = BarChart::new(id, title, axis, groups, BarArrangement::Grouped).sized(1080.0, 420.0);
    for (look, label) in COMPARED.into_iter().enumerate() {
        let values = view.column(label, measure).iter().map(|value| value * scale).collect();
        chart = chart.with(label, look, values);
    }
    chart
}

fn amplification_claims(report: &mut Report, runs: &Runs) {
    for (unit, measure) in [("sectors", amplification as Measure), ("operations", operations)] {
        for layer in PROPOSED {
            let words = format!("{layer}: write amplification half of RMW's or less, in {unit}");
            claim(report, runs, &words, "in over half of the workloads", |view| {
                let halved = halved(view, layer, measure);
                (counted(&halved), Outcome::Holds(is_over_half(halved.len())))
            });
        }
        let words = format!("track-map: write amplification half of RMW's or less, for several workloads, in {unit}");
        claim(report, runs, &words, "for several (3 and more)", |view| {
            let halved = halved(view, MAP, measure);
            (halved.len().to_string(), Outcome::Holds(is_several(halved.len())))
        });
        let words = format!("no workload is worse off than with RMW, in {unit}");
        claim(report, runs, &words, "in no case", |view| {
            let worse = worse(view, measure);
            (if worse.is_empty() { "none".into() } else { worse.join(", ") }, Outcome::Holds(worse.is_empty()))
        });
        let words = format!("track-map has the least write amplification, in {unit}");
        claim(report, runs, &words, "in most cases", |view| {
            let best = view.where_(|name| {
                let map = measure(view.of(name, MAP));
                [RMW, FLIP, CACHE].iter().all(|layer| map <= measure(view.of(name, layer)))
            });
            (counted(&best), Outcome::Holds(is_over_half(best.len())))
        });
        for name in ["w56", "w39", "w106"] {
            let words = format!("{name}: write amplification with track-map, in {unit}");
            claim(report, runs, &words, "nearly eliminated (a tenth of the excess left at most)", |view| {
                let left = view.excess_left(name, MAP, RMW, measure);
                (format!("{:.1} % of RMW's excess is left", left * 100.0), Outcome::Holds(is_eliminated(left)))
            });
        }
    }
}

/// Returns the machines on which the measure with `layer` is at most half of that with RMW.
fn halved(view: &View, layer: &str, measure: Measure) -> Vec<&'static str> {
    view.where_(|name| is_halved(view.ratio(name, RMW, layer, measure)))
}

/// Returns, as text, the layers whose measure exceeds RMW's on some machine, with the number of machines and the
/// largest ratio.
fn worse(view: &View, measure: Measure) -> Vec<String> {
    let worse_with = |layer: &&str| {
        let names = view.where_(|name| view.ratio(name, layer, RMW, measure) > 1.0);
        let most = names.iter().map(|name| view.ratio(name, layer, RMW, measure)).fold(0.0, f64::max);
        (!names.is_empty()).then(|| format!("{layer} on {} (up to {most:.2} times)", names.len()))
    };
    PROPOSED.iter().filter_map(worse_with).collect()
}

fn counted(names: &[&str]) -> String {
    format!("{} of {}: {}", names.len(), MACHINES.len(), listed(names))
}

fn mean_claims(report: &mut Report, runs: &Runs) {
    for name in SLOWED {
        claim(
            report,
            runs,
            &format!("{name}: mean latency with RMW over the conventional drive's"),
            "noticeably higher (1.25 times and more)",
            |view| {
                let ratio = view.ratio(name, RMW, CONVENTIONAL, mean_ms);
                (format!("{}×", figure(ratio)), Outcome::Holds(is_noticeable(ratio)))
            },
        );
    }
    let words = "w56: share of the excess of RMW's mean latency that remains with track-flip, track-cache, track-map";
    claim(report, runs, words, "virtually eliminated (a tenth left at most)", |view| {
        let left = PROPOSED.map(|layer| view.excess_left("w56", layer, RMW, mean_ms));
        let told = left.map(|left| format!("{:.0} %", left * 100.0)).join(", ");
        (told, Outcome::Holds(left.iter().all(|&left| is_eliminated(left))))
    });
    for name in ["w17", "w39", "w46"] {
        let words = format!("{name}: mean latency with RMW over that with track-flip, track-cache, track-map");
        claim(report, runs, &words, "more than 2 with at least one", |view| {
            let gains = PROPOSED.map(|layer| view.ratio(name, RMW, layer, mean_ms));
            (times(&gains), Outcome::Holds(gains.iter().any(|&gain| is_significant(gain))))
        });
        let words = format!("{name}: mean latency with the best of the three over the conventional drive's");
        claim(report, runs, &words, "about twice (1.5 to 2.5)", |view| {
            let left = PROPOSED.map(|layer| view.ratio(name, layer, CONVENTIONAL, mean_ms));
            let best = left.into_iter().fold(f64::INFINITY, f64::min);
            (format!("{}×", figure(best)), Outcome::Holds(is_about_twice(best)))
        });
    }
    for name in ["w09", "w87"] {
        let words = format!("{name}: mean latency with RMW over that with track-map");
        claim(report, runs, &words, "modest (over 1, 2 at most)", |view| {
            let gain = view.ratio(name, RMW, MAP, mean_ms);
            (format!("{}×", figure(gain)), Outcome::Holds(is_modest(gain)))
        });
        let words = format!("{name}: mean latency with track-map over the conventional drive's");
        claim(report, runs, &words, "significantly worse (more than 2)", |view| {
            let left = view.ratio(name, MAP, CONVENTIONAL, mean_ms);
            (format!("{}×", figure(left)), Outcome::Holds(is_significant(left)))
        });
    }
}

fn times(ratios: &[f64]) -> String {
    ratios.iter().map(|ratio| format!("{}×", figure(*ratio))).collect::<Vec<_>>().join(", ")
}

/// Returns the outcome `holds` if the conventional drive's mean is about the paper's 0.1 ms, and otherwise
/// [`Outcome::NoBaseline`].
fn on_baseline(mean_ms: f64, holds: bool) -> Outcome {
    if is_about_a_tenth_of_a_millisecond(mean_ms) { Outcome::Holds(holds) } else { Outcome::NoBaseline }
}

fn tail_claims(report: &mut Report, runs: &Runs) {
    for name in ["w39", "w56"] {
        for (of, mean, tail) in
            [("all requests", mean_ms as Measure, tail_ms as Measure), ("writes", write_mean_ms, write_tail_ms)]
        {
            worst_case_claims(report, runs, name, of, mean, tail);
        }
    }
    report.remarks.push(
        "For w39 and w56, the tails that Hajkazemi 2019 gives must be those of writes alone. The paper's \
         conventional drive has a mean of 0.1 ms there, so it would have to answer reads from its cache. But 2.6 and \
         4.7 % of the requests of these machines are reads, mostly of pages that were not written before. Such a \
         read takes a seek on any drive, so the slowest of a thousand requests cannot be faster than a seek. The \
         claims are judged for all requests, and for writes alone."
            .into(),
    );
    let tail = |view: &View, name: &str, layer: &str| view.ratio(name, layer, CONVENTIONAL, tail_ms);
    let words = "RMW: tail latency more than 4 times the conventional drive's";
    claim(report, runs, words, "across the majority of workloads", |view| {
        let raised = view.where_(|name| tail(view, name, RMW) > 4.0);
        (counted(&raised), Outcome::Holds(is_over_half(raised.len())))
    });
    let words = "track-map: tail latency similar to the conventional drive's (less than 1.25 times)";
    claim(report, runs, words, "in about half the cases (6 to 9 of 15)", |view| {
        let similar = view.where_(|name| is_similar(tail(view, name, MAP)));
        (counted(&similar), Outcome::Holds(is_about_half(similar.len())))
    });
    let words = "track-map: tail latency over the conventional drive's in the remainder";
    claim(report, runs, words, "significantly worse (more than 2)", |view| {
        let others = view.where_(|name| !is_similar(tail(view, name, MAP)));
        let least = others.iter().map(|name| tail(view, name, MAP)).fold(f64::INFINITY, f64::min);
        let told = if others.is_empty() { "no remainder".into() } else { format!("{}× at least", figure(least)) };
        (told, Outcome::Holds(!others.is_empty() && is_significant(least)))
    });
}

/// Adds the claims for a machine on which RMW cannot keep up with the requests.
fn worst_case_claims(report: &mut Report, runs: &Runs, name: &str, of: &str, mean: Measure, tail: Measure) {
    let words = format!("{name}: tail latency of {of} with RMW over the conventional drive's, whose mean is 0.1 ms");
    claim(report, runs, &words, "tens of thousands of times", |view| {
        let ratio = view.ratio(name, RMW, CONVENTIONAL, tail);
        let base_ms = mean(view.of(name, CONVENTIONAL));
        let told = format!("{}×, conventional mean {} ms", figure(ratio), figure(base_ms));
        (told, on_baseline(base_ms, is_tens_of_thousands(ratio)))
    });
    let words = format!("{name}: mean latency of {of} with RMW, where the conventional drive's is 0.1 ms");
    claim(report, runs, &words, "about 2.4 s", |view| {
        let seconds = mean(view.of(name, RMW)) / 1e3;
        let told = format!("{} s", figure(seconds));
        (told, on_baseline(mean(view.of(name, CONVENTIONAL)), is_about_2_4_seconds(seconds)))
    });
    let words =
        format!("{name}: tail latency of {of} with track-flip, track-cache, track-map over the conventional drive's");
    claim(report, runs, &words, "double digits", |view| {
        let limited = PROPOSED.map(|layer| view.ratio(name, layer, CONVENTIONAL, tail));
        let base_ms = mean(view.of(name, CONVENTIONAL));
        (times(&limited), on_baseline(base_ms, limited.iter().all(|&ratio| is_double_digits(ratio))))
    });
}

fn unaffected_claims(report: &mut Report, runs: &Runs) {
    for name in UNAFFECTED {
        let ratios = |view: &View, layer: &str, base: &str| {
            [mean_ms as Measure, tail_ms].map(|measure| view.ratio(name, layer, base, measure))
        };
        let words = format!("{name}: mean and tail latency with RMW over the conventional drive's");
        claim(report, runs, &words, "not affected (within 1.25 times)", |view| {
            let ratios = ratios(view, RMW, CONVENTIONAL);
            (times(&ratios), Outcome::Holds(ratios.iter().all(|&ratio| is_unaffected(ratio))))
        });
        let words = format!("{name}: mean and tail latency with track-flip, track-cache, track-map over RMW's");
        claim(report, runs, &words, "no improvement (within 1.25 times)", |view| {
            let ratios: Vec<f64> = PROPOSED.iter().flat_map(|layer| ratios(view, layer, RMW)).collect();
            (times(&ratios), Outcome::Holds(ratios.iter().all(|&ratio| is_unaffected(ratio))))
        });
    }
}

/// Returns a table of the main claims with other values for our choices, and with our versions of the layers.
fn second_values(runs: &Runs, replication: &Replication) -> Result<Table, Failure> {
    let arrivals = Arrivals::default();
    let cached = |label: &str| format!("{label}:{SMALL_CACHE}");
    let mut sets: Vec<(String, [String; 4])> = vec![("as above".into(), [RMW, FLIP, CACHE, MAP].map(String::from))];
    for value in SECOND_VALUES {
        sets.push((
            format!("`{value}`"),
            [RMW.into(), format!("{FLIP}:{value}"), format!("{CACHE}:{value}"), format!("{MAP}:{value}")],
        ));
    }
    sets.push(("8 MiB of write cache".into(), [RMW, FLIP, CACHE, MAP].map(cached)));
    let [flip, cache, map] = OURS.map(String::from);
    sets.push(("ours: power-safe, counts that decay, moves that pay".into(), [RMW.into(), flip, cache, map]));
    let labels: Vec<&str> = sets.iter().flat_map(|set| &set.1).map(String::as_str).collect();
    let cases = smaller_machines();
    let mut all = runs::all(&cases, &labels, replication)?;
    all.extend(runs.iter().map(|(pair, run)| (pair.clone(), run.clone())));
    let view = View::new(arrivals, &all);
    let columns = ["", "halved in sectors", "worse in sectors", "halved in operations", "worse in operations"];
    let mut table = Table {
        heading: format!(
            "Other values for what the paper does not give: of the {} machines with fewer than 12 million requests, with \
             track-flip, track-cache, track-map",
            cases.len()
        ),
        columns: columns.map(String::from).to_vec(),
        ..Table::default()
    };
    for (name, [rmw, others @ ..]) in &sets {
        let count = |measure: Measure, holds: fn(f64) -> bool| {
            let is_counted = |case: &&Case, layer: &str| holds(view.ratio(case.name, rmw, layer, measure));
            let of = |layer: &String| cases.iter().filter(|case| is_counted(case, layer)).count().to_string();
            others.iter().map(of).collect::<Vec<_>>().join(", ")
        };
        let is_worse: fn(f64) -> bool = |ratio| ratio < 1.0;
        table.rows.push(vec![
            name.clone(),
            count(amplification, is_halved),
            count(amplification, is_worse),
            count(operations, is_halved),
            count(operations, is_worse),
        ]);
    }
    Ok(table)
}

/// Adds tables for the real traces whose files exist, and the claim that the paper makes for its own traces: no layer
/// writes more than RMW.
fn real_traces(report: &mut Report, replication: &Replication) -> Result<(), Failure> {
    let cases = real();
    if cases.is_empty() {
        report.remarks.push("Skipped: real traces are not at hand.".into());
        return Ok(());
    }
    let labels: Vec<&str> = COMPARED.into_iter().chain(OURS).collect();
    let runs = runs::all(&cases, &labels, replication)?;
    let of = |case: &Case, label: &str| &runs[&(*case, label.to_string())].numbers;
    for (unit, measure) in [("sectors", amplification as Measure), ("operations", operations)] {
        let mut table = Table { heading: format!("Write amplification in {unit}, real traces"), ..Table::default() };
        table.columns = std::iter::once("").chain(labels.iter().copied()).map(String::from).collect();
        for case in &cases {
            let cells = labels.iter().map(|label| figure(measure(of(case, label))));
            table.rows.push(std::iter::once(case.name.to_string()).chain(cells).collect());
        }
        report.tables.push(table);
        for layer in PROPOSED {
            let ratios: Vec<f64> = cases.iter().map(|case| measure(of(case, layer)) / measure(of(case, RMW))).collect();
            report.claim(
                ClaimKind::Shape,
                &format!(
                    "{} real traces, none of them the paper's: writes with {layer} over those with RMW, in {unit}",
                    cases.len()
                ),
                "in no case more (said of its own)",
                times(&ratios),
                Some(ratios.iter().all(|&ratio| ratio <= 1.0)),
            );
        }
    }
    Ok(())
}
