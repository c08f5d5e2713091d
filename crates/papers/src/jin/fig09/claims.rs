//! The sentences of §III.B on its figure, and explanations of our results. The words of the paper are read as numbers:
//! - *about* a share: within 0.05;
//! - *about 9 times*: 8 to 10;
//! - *nearly 100 %*: at least 95 %.

use super::super::super::{ClaimKind, Report};
use super::super::choices::FLASH_BYTES;
use super::super::{percent, shown};
use super::{DM_CACHE, FASTER, FLASHCACHE, HISMRFS, Outcome, Row, UNCACHED, WRITE_CACHED, WRITE_CACHED_FASTER};

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

/// Returns the mean latency of the system `one` in the run, divided by that of `other`, or `None` if one is not known.
fn latency_over(row: &Row, one: usize, other: usize) -> Option<f64> {
    let of = |system: usize| row[system].as_ref()?.phases[1].latency_ns;
    Some(of(one)? as f64 / of(other)? as f64)
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

pub(super) fn judge(report: &mut Report, row: &Row) {
    let allocation = over(row, FLASHCACHE, HISMRFS, pre_allocation);
    report.claim(
        ClaimKind::Shape,
        "time of pre-allocation: ext4 with a flash cache over HiSMRfs",
        "about 9 times (8 to 10)",
        shown(allocation),
        allocation.map(is_about_nine),
    );
    let rates = over(row, HISMRFS, FLASHCACHE, rate);
    report.claim(
        ClaimKind::Shape,
        "operations and bytes a second: HiSMRfs over ext4 with a flash cache",
        "about 11 % better (1.06 to 1.16)",
        shown(rates),
        rates.map(is_about),
    );
    let latencies = latency_over(row, DM_CACHE, HISMRFS);
    report.claim(
        ClaimKind::Shape,
        "mean latency: ext4 with a flash cache over HiSMRfs",
        "about 11 % better (1.06 to 1.16)",
        shown(latencies),
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
    let cached = row[FLASHCACHE].as_ref().map(|outcome| outcome.flash_bytes as f64);
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
    let variant = |system: usize, own: usize| {
        let figures = [
            over(row, system, own, pre_allocation),
            over(row, own, system, rate),
            over(row, system, own, elapsed),
            latency_over(row, system, own),
        ];
        figures.map(shown).join(", ")
    };
    report.remarks.push(format!(
        "The times of ext4, divided by those of HiSMRfs, are in this order: time of the disks for pre-allocation, \
         time of the disks for the run, elapsed time of the run, mean latency. With Flashcache {}; with dm-cache {}; without \
         flash {}; with dm-writecache {}. All with the faster flash: with Flashcache {}; with dm-cache {}; with \
         dm-writecache {}.",
        variant(FLASHCACHE, HISMRFS),
        variant(DM_CACHE, HISMRFS),
        variant(UNCACHED, HISMRFS),
        variant(WRITE_CACHED, HISMRFS),
        variant(FLASHCACHE + FASTER, HISMRFS + FASTER),
        variant(DM_CACHE + FASTER, HISMRFS + FASTER),
        variant(WRITE_CACHED_FASTER, HISMRFS + FASTER),
    ));
    report.remarks.push(
        "Two runs with one seed are equal to the nanosecond. Fig. 9 of Jin 2014 is a drawing without numbers, except for \
         those in the text."
            .into(),
    );
}

#[cfg(test)]
mod tests {
    //! Goal: each claim can hold and fail, and systems that were not run are not judged. Method: rows written here.

    use super::super::{Did, Measured};
    use super::*;
    use crate::Verdict;

    /// Returns the outcome of a system whose phases took these milliseconds of disk time.
    fn outcome(before_ms: u64, run_ms: u64, latency_ns: u64, flash_bytes: u64) -> Outcome {
        let phase = |ms: u64| {
            let busy = |ms: u64| Did { busy_ns: ms * 1_000_000, ..Did::default() };
            let drives = vec![busy(ms / 2), busy(ms), busy(1)];
            Measured { operations: 1000, bytes: 1000, elapsed_ns: ms * 2_000_000, latency_ns: Some(latency_ns), drives }
        };
        Outcome { phases: [phase(before_ms), phase(run_ms)], flash_bytes }
    }

    fn verdicts(own: Outcome, cached: Option<Outcome>) -> Vec<Verdict> {
        let mut report = Report::default();
        judge(&mut report, &vec![Some(own), cached.clone(), cached, None, None]);
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
    fn the_busiest_drive_is_the_time_of_the_disks() {
        assert_eq!(pre_allocation(&outcome(100, 7, 1, 0)), 0.1);
    }
}
