//! Judgement of the paper's sentences on the runs of the machines on the layers: for each source of arrivals, and for
//! all sources together.
//!
//! Invariants:
//! 1. A claim holds if it holds with arrivals from every source. If it holds only with some sources, its verdict is
//!    "hangs on arrival".

use imbrex_trace::generators::Arrivals;

use super::super::report::{ClaimKind, Report, Verdict};
use super::runs::{Numbers, Runs};
use super::under_test::CONVENTIONAL;
use super::workloads::{Case, MACHINES};

/// Runs of all machines with arrivals from one source.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    /// Source of the arrival times of the requests in these runs.
    pub arrivals: Arrivals,
    runs: &'a Runs,
}

/// Function that reads one measure of a run.
pub(super) type Measure = fn(&Numbers) -> f64;

/// Returns the sectors written at the medium for each sector that the host wrote.
pub(super) fn amplification(numbers: &Numbers) -> f64 {
    numbers.amplification
}

/// Returns the operations that write at the medium, for each write of the host.
pub(super) fn operations(numbers: &Numbers) -> f64 {
    numbers.operations
}

/// Returns the mean latency of writes, in milliseconds.
pub(super) fn write_mean_ms(numbers: &Numbers) -> f64 {
    numbers.write_mean_ms
}

/// Returns the tail latency of writes, the 99.9th percentile, in milliseconds.
pub(super) fn write_tail_ms(numbers: &Numbers) -> f64 {
    numbers.write_p999_ms
}

/// Returns the mean latency, in milliseconds.
pub(super) fn mean_ms(numbers: &Numbers) -> f64 {
    numbers.mean_ms
}

/// Returns the tail latency, the 99.9th percentile, in milliseconds.
pub(super) fn tail_ms(numbers: &Numbers) -> f64 {
    numbers.p999_ms
}

/// Judgement of a claim with arrivals from one source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Whether the claim holds.
    Holds(bool),
    /// The conventional drive differs from the paper's, so the claim is not judged.
    NoBaseline,
}

/// Returns the verdict on a claim from the judgements with all sources.
pub(super) fn together(outcomes: &[Outcome]) -> Verdict {
    let all = |wanted: Outcome| outcomes.iter().all(|outcome| *outcome == wanted);
    if all(Outcome::Holds(true)) {
        Verdict::Yes
    } else if all(Outcome::NoBaseline) {
        Verdict::BaselineNotMet
    } else if outcomes.contains(&Outcome::Holds(true)) {
        Verdict::HangsOnArrival
    } else {
        Verdict::No
    }
}

impl<'a> View<'a> {
    /// Returns a view of `runs` with arrivals from `arrivals`.
    pub(super) fn new(arrivals: Arrivals, runs: &'a Runs) -> View<'a> {
        View { arrivals, runs }
    }

    /// Returns the numbers of a machine on the layer called `label`.
    pub(super) fn of(&self, name: &str, label: &str) -> &'a Numbers {
        let name = MACHINES.iter().find(|known| **known == name).expect("only machines are asked for");
        &self.runs[&(Case::of(name, self.arrivals), label.to_string())].numbers
    }

    /// Returns the measure on the layer `label` divided by that on the layer `base`.
    pub(super) fn ratio(&self, name: &str, label: &str, base: &str, measure: Measure) -> f64 {
        measure(self.of(name, label)) / measure(self.of(name, base))
    }

    /// Returns the excess of `label` over the conventional drive, as a share of the excess of `base`.
    pub(super) fn excess_left(&self, name: &str, label: &str, base: &str, measure: Measure) -> f64 {
        let excess = |label: &str| measure(self.of(name, label)) - measure(self.of(name, CONVENTIONAL));
        excess(label) / excess(base)
    }

    /// Returns the machines for which `holds` is true.
    pub(super) fn where_(&self, holds: impl Fn(&str) -> bool) -> Vec<&'static str> {
        MACHINES.into_iter().filter(|name| holds(name)).collect()
    }

    /// Returns a Markdown table of a measure: a row for each machine, a column for each layer.
    pub(super) fn markdown(&self, title: &str, labels: &[&str], measure: Measure) -> String {
        let heads = labels.join(" | ");
        let mut text = format!("{title}:\n\n| | {heads} |\n|---|{}\n", "---|".repeat(labels.len()));
        for name in MACHINES {
            let cells: Vec<_> = labels.iter().map(|label| figure(measure(self.of(name, label)))).collect();
            text += &format!("| {name} | {} |\n", cells.join(" | "));
        }
        text.trim_end().to_string()
    }

    /// Returns a measure on one layer for each machine, for a chart.
    pub(super) fn column(&self, label: &str, measure: Measure) -> Vec<f64> {
        MACHINES.iter().map(|name| measure(self.of(name, label))).collect()
    }

    /// Returns whether mean and tail latency on `label` are at most `factor` times the conventional drive's.
    pub(super) fn is_near_conventional(&self, name: &str, label: &str, factor: f64) -> bool {
        [mean_ms as Measure, tail_ms].iter().all(|measure| self.ratio(name, label, CONVENTIONAL, *measure) <= factor)
    }
}

/// Adds a claim of the paper, judged by `judge` with arrivals from each source.
pub(super) fn claim(
    report: &mut Report,
    runs: &Runs,
    claim: &str,
    theirs: &str,
    judge: impl Fn(&View) -> (String, Outcome),
) {
    let judged = Arrivals::ALL.map(|arrivals| (arrivals, judge(&View::new(arrivals, runs))));
    let outcomes = judged.each_ref().map(|(_, (_, outcome))| *outcome);
    let told = |(arrivals, (ours, outcome)): &(Arrivals, (String, Outcome))| match outcome {
        Outcome::NoBaseline => format!("{}: {ours} (baseline not met)", arrivals.name()),
        _ => format!("{}: {ours}", arrivals.name()),
    };
    let ours = if judged.iter().all(|(_, (ours, _))| *ours == judged[0].1.0) {
        judged[0].1.0.clone()
    } else {
        judged.iter().map(told).collect::<Vec<_>>().join("; ")
    };
    report.judged(ClaimKind::Shape, claim, theirs, ours, together(&outcomes));
}

/// Returns a number as text with three significant digits: 142, 1.42.
pub(super) fn figure(value: f64) -> String {
    let digits = match value.abs() {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// Returns names as text: `a, b and c`, or `none`.
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [] => "none".into(),
        [one] => (*one).to_string(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_holds_where_it_does_with_every_source() {
        let (yes, no) = (Outcome::Holds(true), Outcome::Holds(false));
        assert_eq!(together(&[yes, yes, yes, yes]), Verdict::Yes);
        assert_eq!(together(&[yes, yes, no, yes]), Verdict::HangsOnArrival);
        assert_eq!(together(&[yes, Outcome::NoBaseline]), Verdict::HangsOnArrival);
        assert_eq!(together(&[no, no]), Verdict::No);
        assert_eq!(together(&[no, Outcome::NoBaseline]), Verdict::No);
        assert_eq!(together(&[Outcome::NoBaseline, Outcome::NoBaseline]), Verdict::BaselineNotMet);
    }
}
