//! The sentences of §III.B on its figure, and explanations of our results. The words of the paper are read as numbers:
//! - *about* a share: within 0.05;
//! - *about 9 times*: 8 to 10;
//! - *nearly 100 %*: at least 95 %.

use super::super::super::{ClaimKind, Report};
use super::super::choices::{FLASH_BYTES, PROCESSOR_PERCENT};
use super::super::{percent, shown};
use super::{CACHED, HISMRFS, Outcome, Row, UNCACHED, WRITE_CACHED};

/// Ratio by which HiSMRfs is better (§III.B: "about 11% better").
const BETTER: f64 = 1.11;

/// Returns the disk time of pre-allocation, in seconds.
pub(super) fn pre_allocation(outcome: &Outcome) -> f64 {
    outcome.phases[0].disk_seconds()
}

/// Returns the number of operations a second of disk time in the run.
pub(super) fn rate(outcome: &Outcome) -> f64 {
    outcome.phases[1].rate()
}

/// Returns the throughput of the run, in MB a second of disk time.
pub(super) fn bytes(outcome: &Outcome) -> f64 {
    outcome.phases[1].mb_per_s()
}

/// Returns the mean latency of the run, in ns.
pub(super) fn latency(outcome: &Outcome) -> f64 {
    outcome.phases[1].latency_ns as f64
}

/// Returns the duration of the run by the clock of the file system, in ns.
fn elapsed(outcome: &Outcome) -> f64 {
    outcome.phases[1].elapsed_ns as f64
}

/// Returns a figure of the system `one` divided by that of `other`, or `None` if one of them was not run.
pub(super) fn over(row: &Row, one: usize, other: usize, value: fn(&Outcome) -> f64) -> Option<f64> {
    Some(value(row[one].as_ref()?) / value(row[other].as_ref()?))
}

fn is_about_nine(ratio: f64) -> bool {
    (8.0..=10.0).contains(&ratio)
}

fn is_about(ratio: f64) -> bool {
    (ratio - BETTER).abs() <= 0.05
}

/// Returns whether the guest's processor was idle enough for times by the guest's clock to count.
fn is_idle_enough(outcome: &Outcome) -> bool {
    outcome.processor_percent.is_none_or(|percent| percent < PROCESSOR_PERCENT)
}

pub(super) fn judge(report: &mut Report, row: &Row) {
    let allocation = over(row, CACHED, HISMRFS, pre_allocation);
    report.claim(
        ClaimKind::Shape,
        "time of pre-allocation: ext4 with a flash cache over HiSMRfs",
        "about 9 times (8 to 10)",
        shown(allocation),
        allocation.map(is_about_nine),
    );
    let rates = over(row, HISMRFS, CACHED, rate);
    report.claim(
        ClaimKind::Shape,
        "operations and bytes a second: HiSMRfs over ext4 with a flash cache",
        "about 11 % better (1.06 to 1.16)",
        shown(rates),
        rates.map(is_about),
    );
    let counts = row[CACHED].as_ref().is_some_and(is_idle_enough);
    let latencies = over(row, CACHED, HISMRFS, latency).filter(|_| counts);
    report.claim(
        ClaimKind::Shape,
        "mean latency: ext4 with a flash cache over HiSMRfs",
        "about 11 % better (1.06 to 1.16)",
        if counts { shown(latencies) } else { "the guest's processor was too busy, or it was not run".into() },
        latencies.map(is_about),
    );
    let all: Option<Vec<f64>> = [allocation, rates, latencies].into_iter().collect();
    report.claim(
        ClaimKind::Shape,
        "HiSMRfs better on pre-allocation, operations, throughput and latency",
        "better than the flash cache on all",
        [allocation, rates, latencies].map(shown).join(", "),
        all.map(|ratios| ratios.into_iter().all(|ratio| ratio > 1.0)),
    );
    judge_flash(report, row);
}

fn judge_flash(report: &mut Report, row: &Row) {
    let cached = row[CACHED].as_ref().map(|outcome| outcome.flash_bytes as f64);
    let share = cached.map(|used| used / FLASH_BYTES as f64);
    report.claim(
        ClaimKind::Shape,
        "flash that the cache used, of what it may",
        "nearly 100 % (95 at least)",
        share.map_or("not run".into(), |share| percent(share, 1)),
        share.map(|share| share >= 0.95),
    );
}

/// Adds remarks on the causes of the ratios.
pub(super) fn explain(report: &mut Report, row: &Row) {
    let variant = |system: usize| {
        let figures = [
            over(row, system, HISMRFS, pre_allocation),
            over(row, HISMRFS, system, rate),
            over(row, system, HISMRFS, elapsed),
            over(row, system, HISMRFS, latency),
        ];
        figures.map(shown).join(", ")
    };
    report.remarks.push(format!(
        "The times of ext4, divided by those of HiSMRfs, are in this order: time of the disks for pre-allocation, \
         time of the disks for the run, elapsed time of the run, mean latency. With dm-cache {}; without flash {}; \
         with dm-writecache {}.",
        variant(CACHED),
        variant(UNCACHED),
        variant(WRITE_CACHED),
    ));
    report.remarks.push(
        "The order in which the guest's threads, write-back and cache run depends on the wall clock, so the figures of \
         the guest differ from run to run. Those of HiSMRfs are equal to the nanosecond in each run of one version of \
         Imbrex. Fig. 9 of Jin 2014 is a drawing without numbers, except for those in the text."
            .into(),
    );
}

#[cfg(test)]
mod tests {
    //! Goal: each claim can hold and fail. Systems that were not run, or ran on a busy processor, are not judged.
    //! Method: rows written here.

    use super::super::Measured;
    use super::*;
    use crate::Verdict;
    use crate::guest::Did;

    /// Returns the outcome of a system whose phases took these milliseconds of disk time.
    fn outcome(before_ms: u64, run_ms: u64, latency_ns: u64, flash_bytes: u64) -> Outcome {
        let phase = |ms: u64| {
            let busy = |ms: u64| Did { busy_ns: ms * 1_000_000, ..Did::default() };
            let drives = vec![busy(ms / 2), busy(ms), busy(1)];
            Measured { operations: 1000, bytes: 1000, elapsed_ns: ms * 2_000_000, latency_ns, drives }
        };
        Outcome { phases: [phase(before_ms), phase(run_ms)], flash_bytes, processor_percent: Some(10.0) }
    }

    fn verdicts(own: Outcome, cached: Option<Outcome>) -> Vec<Verdict> {
        let mut report = Report::default();
        judge(&mut report, &vec![Some(own), cached, None, None]);
        report.claims.iter().map(|claim| claim.verdict).collect()
    }

    const FULL: u64 = FLASH_BYTES;

    #[test]
    fn as_the_paper_has_it_all_hold() {
        let found = verdicts(outcome(100, 100, 100, 0), Some(outcome(900, 111, 111, FULL)));
        assert_eq!(found, [Verdict::Yes; 5]);
    }

    #[test]
    fn each_claim_can_fail() {
        let found = verdicts(outcome(100, 100, 100, 0), Some(outcome(1050, 117, 99, FULL / 10 * 9)));
        assert_eq!(found, [Verdict::No; 5]);
        let found = verdicts(outcome(100, 100, 100, 0), Some(outcome(790, 105, 105, FULL)));
        assert_eq!(found[..4], [Verdict::No, Verdict::No, Verdict::No, Verdict::Yes]);
    }

    #[test]
    fn systems_not_run_are_not_judged() {
        let found = verdicts(outcome(100, 100, 100, 0), None);
        assert_eq!(found, [Verdict::NotJudged; 5]);
    }

    #[test]
    fn latencies_on_a_busy_processor_do_not_count() {
        let busy = Outcome { processor_percent: Some(30.0), ..outcome(900, 111, 111, FULL) };
        let found = verdicts(outcome(100, 100, 100, 0), Some(busy));
        assert_eq!(found[..4], [Verdict::Yes, Verdict::Yes, Verdict::NotJudged, Verdict::NotJudged]);
    }

    #[test]
    fn the_busiest_drive_is_the_time_of_the_disks() {
        assert_eq!(pre_allocation(&outcome(100, 7, 1, 0)), 0.1);
    }
}
