//! The sentence on top of the page: the latency against the baseline's, the longest stall, and its cause if it is known.
//!
//! Invariants:
//! 1. Every number of the sentence is in the results.

use imbrex_sim::{DriveResult, Summary};

use crate::chart::label;
use crate::explain::document::ExplainDocument;
use crate::report::sweep;
use crate::table;

/// A drive that is compared: its ratios of latencies to the baseline's, and the latencies in ns.
struct Compared<'a> {
    /// Name of the drive in legends.
    name: &'a str,
    drive: &'a DriveResult,
    baseline: &'a DriveResult,
    mean: f64,
    p99: f64,
}

/// Returns the sentence as plain text; `None` if no drive completed a request.
pub(super) fn sentence(summary: &Summary, explained: Option<&ExplainDocument>) -> Option<String> {
    let drives: Vec<&DriveResult> = summary.drives.iter().filter(|drive| drive.completed > 0).collect();
    drives.first()?;
    let names = sweep::short_names(summary);
    let stall_of = |index: &usize| summary.drives[*index].longest_stall_ns;
    let index = (0..summary.drives.len()).rev().max_by_key(stall_of)?;
    let stalled = &summary.drives[index];
    let mut text = latency(summary, &drives, &names);
    if stalled.longest_stall_ns > 0 {
        let of = if drives.len() > 1 { format!(" of {}", names[index]) } else { String::new() };
        text += &format!(
            " The longest stall{of} lasts {}",
            label::duration(figure(stalled, "longest_stall_ns", stalled.longest_stall_ns))
        );
        text += &cause(stalled, explained).map_or(String::new(), |cause| format!("; {cause}"));
        text.push('.');
    }
    Some(text)
}

/// Returns the mean over the seeds of a figure in ns, or its value in a run with one seed.
fn figure(drive: &DriveResult, path: &str, value: u64) -> f64 {
    drive.over_seeds.get(path).map_or(value as f64, |over| over.mean)
}

fn mean_ns(drive: &DriveResult) -> f64 {
    figure(drive, "latency_ns.all.mean", drive.latency_ns.all.mean)
}

fn p99_ns(drive: &DriveResult) -> f64 {
    figure(drive, "latency_ns.all.p99", drive.latency_ns.all.p99)
}

fn latency(summary: &Summary, drives: &[&DriveResult], names: &[String]) -> String {
    let mut compared: Vec<Compared<'_>> = Vec::new();
    for (index, drive) in summary.drives.iter().enumerate() {
        let Some(all) = drive.latency_ratio.and_then(|ratios| ratios.all) else { continue };
        let Some(baseline) = summary.baseline_of(index).filter(|baseline| *baseline != index) else { continue };
        let of_seeds = |path: &str, value: f64| drive.over_seeds.get(path).map_or(value, |over| over.mean);
        compared.push(Compared {
            name: &names[index],
            drive,
            baseline: &summary.drives[baseline],
            mean: of_seeds("latency_ratio.all.mean", all.mean),
            p99: of_seeds("latency_ratio.all.p99", all.p99),
        });
    }
    match &compared[..] {
        [] => alone(drives),
        [one] => format!(
            "On {}, a request takes {} times as long as on {} ({} instead of {} on average); of the 99th percentiles, the \
             ratio is {} ({} instead of {}).",
            one.drive.drive,
            label::three_digits(one.mean),
            one.baseline.drive,
            label::duration(mean_ns(one.drive)),
            label::duration(mean_ns(one.baseline)),
            label::three_digits(one.p99),
            label::duration(p99_ns(one.drive)),
            label::duration(p99_ns(one.baseline)),
        ),
        several => {
            let by = |of: fn(&Compared<'_>) -> f64| {
                let mut sorted: Vec<&Compared<'_>> = several.iter().collect();
                sorted.sort_by(|a, b| of(a).total_cmp(&of(b)));
                let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
                let (low, high) = (label::three_digits(of(least)), label::three_digits(of(most)));
                format!("{low} times ({}) to {high} times ({})", least.name, most.name)
            };
            let first = &several[0].baseline.drive;
            let against = match several.iter().all(|one| one.baseline.drive == *first) {
                true => first.clone(),
                false => "the drive’s own baseline".to_string(),
            };
            format!(
                "Against {against}, a request takes {} as long on average. The 99th percentile is {} as long.",
                by(|one| one.mean),
                by(|one| one.p99)
            )
        }
    }
}

/// Returns the sentence for drives that are not compared with a baseline.
fn alone(drives: &[&DriveResult]) -> String {
    let times = |drive: &DriveResult| {
        format!(
            "{} on average and {} at the 99th percentile",
            label::duration(mean_ns(drive)),
            label::duration(p99_ns(drive))
        )
    };
    if let [one] = drives {
        return format!("A request takes {}.", times(one));
    }
    let all: Vec<DriveResult> = drives.iter().map(|drive| (*drive).clone()).collect();
    let order = table::order(&all);
    let (first, last) = (&all[order[0]], &all[order[order.len() - 1]]);
    format!("A request takes {} on {}, and {} on {}.", times(first), first.drive, times(last), last.drive)
}

/// Returns the main cause of the longest request of a drive in words, if its causes are known.
fn cause(drive: &DriveResult, explained: Option<&ExplainDocument>) -> Option<String> {
    let found = explained?.drives.iter().find(|found| found.drive == drive.drive)?;
    let longest = found.summary.shares.iter().find(|shares| shares.group == "longest")?;
    let most = longest.causes.iter().max_by_key(|cause| cause.duration_ns)?;
    let share = most.duration_ns as f64 / longest.latency_ns.max(1) as f64;
    Some(format!(
        "the longest request takes {}, {} of it {}",
        label::duration(longest.from_ns as f64),
        label::share(share),
        in_words(&most.cause)
    ))
}

/// Returns a cause in words, as it completes `half of the time is …`.
fn in_words(cause: &str) -> &'static str {
    match cause {
        "own_access" => "access to its own sectors",
        "own_rewriting" => "rewriting of sectors that it destroys",
        "own_bookkeeping" => "records and map of the layer",
        "own_cache" => "service by the volatile cache",
        "requests" => "waiting for other requests",
        "rewriting" => "waiting for the rewriting of sectors that other requests destroy",
        "bookkeeping" => "waiting for records and map of the layer",
        "cleaning" => "waiting for cleaning",
        "migration" => "waiting for migration",
        "recovery" => "waiting for recovery",
        "idle" => "spent while the drive did nothing",
        "earlier" => "of unknown cause",
        _ => "waiting for the write-back of the volatile cache",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_sentence_compares_and_names_the_longest_stall() {
        let (mut summary, _) = sample::run(3);
        let text = sentence(&summary, None).expect("requests were completed");
        let ratios: Vec<f64> =
            summary.drives.iter().filter_map(|drive| drive.latency_ratio?.all).map(|all| all.mean).collect();
        let most = ratios.iter().copied().fold(0.0, f64::max);
        assert!(text.starts_with("Against conventional-4tb, a request takes "), "{text}");
        assert!(text.contains(&format!("{} times (", label::three_digits(most))), "{text}");
        // One drive beside its baseline: both latencies are named.
        let (two, _) = sample::run(2);
        let text = sentence(&two, None).expect("requests were completed");
        let mean = label::duration(two.drives[1].latency_ns.all.mean as f64);
        assert!(text.contains(&format!("{mean} instead of")), "{text}");
        // No baseline.
        summary.drives.iter_mut().for_each(|drive| (drive.latency_ratio, drive.compared_with) = (None, None));
        let text = sentence(&summary, None).expect("requests were completed");
        assert!(text.starts_with("A request takes ") && text.contains(" on average"), "{text}");
        summary.drives.iter_mut().for_each(|drive| drive.completed = 0);
        assert_eq!(sentence(&summary, None), None);
    }
}
