//! Table 1 and figs 5 to 7: the workloads themselves. The values of table 1 and of the figures are lost, except those
//! that the text states.

use imbrex_disk::{Operation, SimTime};
use imbrex_trace::When;
use imbrex_trace::generators::Arrivals;

use super::super::{ClaimKind, Experiment, Replication, Report};
use super::runs;
use super::table::{View, figure};
use super::under_test::{CONVENTIONAL, RMW};
use super::workloads::{Case, MACHINES, claim_kind, machines};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "hajkazemi/table1",
    title: "the workloads: their size, gaps between requests, time dilation",
    run,
};

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: "The values of table 1 and figs 5 to 7 of Hajkazemi 2019 are lost. So the experiment compares the \
                 statements of the paper's text about them with the stand-ins, which were made to published \
                 statistics of the same machines. Claims on figs 6 and 7 are judged with arrivals from each of four \
                 sources. The delay of a request is the time from its arrival until it enters the queue."
            .into(),
        ..Report::default()
    };
    sizes(&mut report, replication)?;
    gaps(&mut report, replication)?;
    dilation(&mut report, replication)?;
    Ok(report)
}

fn sizes(report: &mut Report, replication: &Replication) -> Result<(), Failure> {
    let runs = runs::all(&machines(Arrivals::default()), &[CONVENTIONAL], replication)?;
    let view = View::new(Arrivals::default(), &runs);
    let requests = MACHINES.map(|name| view.of(name, CONVENTIONAL).requests as f64 / 1e6);
    let (least, most) =
        requests.iter().fold((f64::MAX, 0f64), |(least, most), &each| (least.min(each), most.max(each)));
    report.claim(
        claim_kind(ClaimKind::Predicted, &MACHINES, replication),
        "requests of the smallest and the largest workload",
        "about 3 to 44 million",
        format!("{least:.1} to {most:.1} million"),
        Some(least.round() == 3.0 && most.round() == 44.0),
    );
    for (name, theirs) in [("w08", 9.0), ("w39", 95.0)] {
        let numbers = view.of(name, CONVENTIONAL);
        let percent = numbers.writes as f64 / numbers.requests as f64 * 100.0;
        report.claim(
            claim_kind(ClaimKind::Predicted, &[name], replication),
            &format!("{name}: share of requests that write"),
            &format!("{theirs} %"),
            format!("{percent:.1} %"),
            Some(percent.round() == theirs),
        );
    }
    report.claim(
        ClaimKind::ByConstruction,
        "tracks become hot and cold (fig. 5)",
        "hot \"for a significant period\", and others later",
        "where pages are written often, a seventh of a kind's pages is written at a time",
        None,
    );
    Ok(())
}

/// Adds the claims for the gaps between requests of the two machines that the text on fig. 6 describes, with arrivals
/// from each source.
fn gaps(report: &mut Report, replication: &Replication) -> Result<(), Failure> {
    let by_source = |name: &'static str, writes_alone: bool, told: fn(&[u64]) -> (String, bool)| {
        let mut all = (Vec::new(), true);
        for arrivals in Arrivals::ALL {
            let (ours, holds) = told(&sorted_gaps(&Case::of(name, arrivals), writes_alone, replication)?);
            all.0.push(format!("{}: {ours}", arrivals.name()));
            all.1 &= holds;
        }
        Ok::<_, Failure>((all.0.join("; "), all.1))
    };
    let (ours, holds) = by_source("w84", false, |gaps| {
        let median_us = gaps[gaps.len() / 2] as f64 / 1e3;
        (format!("{median_us:.0} µs"), is_in_the_range_of_100_us(median_us))
    })?;
    report.claim(
        claim_kind(ClaimKind::Predicted, &["w84"], replication),
        "w84: half of the gaps are shorter than",
        "in the 100 µs range",
        ours,
        Some(holds),
    );
    let (ours, holds) = by_source("w35", true, |gaps| {
        let share = gaps.partition_point(|&gap_ns| gap_ns < 500_000) as f64 / gaps.len() as f64;
        (format!("{:.0} %", share * 100.0), is_four_fifths(share))
    })?;
    report.claim(
        claim_kind(ClaimKind::Predicted, &["w35"], replication),
        "w35: writes that come within 500 µs",
        "80 %",
        ours,
        Some(holds),
    );
    Ok(())
}

/// Returns whether a time is "in the 100 µs range": 50 to 200 µs.
fn is_in_the_range_of_100_us(us: f64) -> bool {
    (50.0..=200.0).contains(&us)
}

/// Returns whether a share is "80 %", to within 0.05.
fn is_four_fifths(share: f64) -> bool {
    (share - 0.8).abs() <= 0.05
}

/// Returns the times, in ns, from the preceding request to each request, or to each write if `writes_alone`, in rising
/// order.
fn sorted_gaps(case: &Case, writes_alone: bool, replication: &Replication) -> Result<Vec<u64>, Failure> {
    let case = case.of_replication(replication);
    let mut source = case.open(replication)?;
    let bar = replication.progress.requests(&case.key(), source.expected_requests());
    let mut gaps = Vec::new();
    let mut last = None;
    while let Some(request) = source.next(SimTime::ZERO)? {
        let When::At(time) = request.when else { continue };
        let is_counted = !writes_alone || request.command.operation == Operation::Write;
        gaps.extend(last.filter(|_| is_counted).map(|last: SimTime| time.since(last).0));
        last = Some(time);
    }
    bar.finish_and_clear();
    gaps.sort_unstable();
    Ok(gaps)
}

/// Adds the claim of fig. 7, of which the text gives two values without the names of the workloads.
fn dilation(report: &mut Report, replication: &Replication) -> Result<(), Failure> {
    let cases: Vec<Case> = Arrivals::ALL.into_iter().flat_map(machines).collect();
    let runs = runs::all(&cases, &[CONVENTIONAL, RMW], replication)?;
    let told = Arrivals::ALL.map(|arrivals| {
        let view = View::new(arrivals, &runs);
        let late = |name: &str| {
            let issued = |label: &str| view.of(name, label).last_issue_seconds;
            issued(RMW) - issued(CONVENTIONAL)
        };
        let mut each: Vec<(f64, &str)> = MACHINES.iter().map(|name| (late(name), *name)).collect();
        each.sort_by(|a, b| b.0.total_cmp(&a.0));
        let each = each[..4].iter().map(|(seconds, name)| format!("{name} {} s", figure(*seconds)));
        format!("{}: {}", arrivals.name(), each.collect::<Vec<_>>().join(", "))
    });
    report.claim(
        ClaimKind::NotReproducible,
        "by how much RMW delays the last request of two workloads, not named (fig. 7)",
        "about 150 s, and over 1,440 s",
        format!("beyond the conventional drive, the largest four: {}", told.join("; ")),
        None,
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicates_are_their_sentences() {
        assert!(is_in_the_range_of_100_us(120.0) && !is_in_the_range_of_100_us(12_000.0));
        assert!(is_four_fifths(0.83) && !is_four_fifths(0.7));
    }
}
