//! The sentences of §III.A on its figures, and explanations of our results. The paper's shares, 20 and 30 %, are to
//! published results of SMRfs, and are not judged; the order of the systems is. We read *about the same* as
//! less than 1.25 times apart, and *significantly shorter* as at most a half, as for the claims of all papers.

use super::super::super::{ClaimKind, Report};
use super::super::shown;
use super::{
    DISKS, HISMRFS, IN_BANDS, LOADS, LOG_ON_DISK, Measured, OWN_ON_DISK, OWN_ON_FLASH, Row, SMRFS_ON_DISK,
    SMRFS_ON_FLASH,
};

/// Indices of the phases of a benchmark.
const PRE_ALLOCATE: usize = 0;
const RUN: usize = 1;

/// Returns a figure of the system `one` divided by that of `other`, or `None` if one of them was not run.
pub(super) fn over(row: &Row, phase: usize, one: usize, other: usize, value: fn(&Measured) -> f64) -> Option<f64> {
    let of = |system: usize| row[system].as_ref().map(|phases| value(&phases[phase]));
    Some(of(one)? / of(other)?)
}

fn latency_over(row: &Row, one: usize, other: usize) -> Option<f64> {
    over(row, RUN, one, other, |measured| measured.latency_ns as f64)
}

fn is_same(ratio: f64) -> bool {
    (1.0 / 1.25 < ratio) && (ratio < 1.25)
}

fn is_significantly_shorter(ratio: f64) -> bool {
    ratio <= 0.5
}

/// Returns whether `holds` is true of all ratios, or `None` if a ratio is missing.
fn all(ratios: &[Option<f64>], holds: impl Fn(f64) -> bool) -> Option<bool> {
    let known: Option<Vec<f64>> = ratios.iter().copied().collect();
    known.map(|ratios| ratios.into_iter().all(holds))
}

pub(super) fn judge(report: &mut Report, rows: &[Row]) {
    let [create, mail] = [&rows[0], &rows[1]];
    for (smrfs, place) in [(SMRFS_ON_DISK, "on the disk"), (SMRFS_ON_FLASH, "on flash")] {
        let rate = |row| over(row, RUN, HISMRFS, smrfs, Measured::rate);
        let rates = [rate(create), rate(mail)];
        for (load, percent, ratio) in [("createfiles", 20, rates[0]), ("varmail", 30, rates[1])] {
            report.claim(
                ClaimKind::NotReproducible,
                &format!("{load}: operations and bytes a second, HiSMRfs over SMRfs with ext4 {place}"),
                &format!("about {percent} % better than the published results of SMRfs"),
                shown(ratio),
                None,
            );
            report.claim(
                ClaimKind::Shape,
                &format!("{load}: HiSMRfs better than SMRfs with ext4 {place}, in operations and bytes a second"),
                "better (over 1)",
                shown(ratio),
                ratio.map(|ratio| ratio > 1.0),
            );
        }
        report.claim(
            ClaimKind::Shape,
            &format!("HiSMRfs over SMRfs with ext4 {place}: more under varmail than under createfiles"),
            "more advantages under varmail",
            format!("{} against {}", shown(rates[1]), shown(rates[0])),
            rates[1].zip(rates[0]).map(|(mail, create)| mail > create),
        );
        let times = [create, mail].map(|row| over(row, PRE_ALLOCATE, HISMRFS, smrfs, Measured::seconds));
        report.claim(
            ClaimKind::Shape,
            &format!("time of pre-allocation, createfiles and varmail: HiSMRfs over SMRfs with ext4 {place}"),
            "about the same (0.80 to 1.25)",
            times.map(shown).join(", "),
            all(&times, is_same),
        );
    }
    let systems = [
        (SMRFS_ON_DISK, "ext4 on the disk"),
        (SMRFS_ON_FLASH, "ext4 on flash"),
        (OWN_ON_DISK, "our metadata on the disk"),
        (OWN_ON_FLASH, "our metadata on flash"),
    ];
    for (smrfs, metadata) in systems {
        let latencies = [create, mail].map(|row| latency_over(row, HISMRFS, smrfs));
        report.claim(
            ClaimKind::Shape,
            &format!("mean latency, createfiles and varmail: HiSMRfs over SMRfs with {metadata}"),
            "significantly shorter (a half at most)",
            latencies.map(shown).join(", "),
            all(&latencies, is_significantly_shorter),
        );
    }
}

/// Adds remarks on the causes of the ratios, and on the effect of the disk's write cache.
pub(super) fn explain(report: &mut Report, rows_of_disks: &[Vec<Row>]) {
    let ratios = |disk: usize, one: usize, other: usize| {
        let each = rows_of_disks[disk].iter().map(|row| shown(over(row, RUN, one, other, Measured::rate)));
        each.collect::<Vec<_>>().join(", ")
    };
    report.remarks.push(format!(
        "The following ratios of operations a second show the share of each part of HiSMRfs, each under {}. Store \
         `log` to SMRfs, both with our metadata on flash: {}. Both with our metadata on the disk: {}. SMRfs with our \
         metadata to SMRfs with ext4, both on the disk: {}. HiSMRfs, with its metadata on flash, to store `log` with \
         its metadata on the disk: {}. If SMRfs writes each file to a band of its own while others are written, \
         HiSMRfs makes the following multiples of its operations, both with our metadata on flash: {}.",
        LOADS.join(", "),
        ratios(0, HISMRFS, OWN_ON_FLASH),
        ratios(0, LOG_ON_DISK, OWN_ON_DISK),
        ratios(0, OWN_ON_DISK, SMRFS_ON_DISK),
        ratios(0, HISMRFS, LOG_ON_DISK),
        ratios(0, HISMRFS, IN_BANDS),
    ));
    report.remarks.push(format!(
        "On `{}`, a disk without a write cache, HiSMRfs makes the following multiples of the operations a second of \
         SMRfs, under createfiles, varmail and fileserver. With ext4 of SMRfs on the disk: {}. With ext4 on flash: \
         {}.",
        DISKS[1],
        ratios(1, HISMRFS, SMRFS_ON_DISK),
        ratios(1, HISMRFS, SMRFS_ON_FLASH),
    ));
    report.remarks.push(
        "Two runs with one seed give equal results, to the nanosecond. Before its run, `createfiles.f` makes only \
         directories. A latency of SMRfs with ext4 is the sum of the mean latencies of its two parts."
            .into(),
    );
}

#[cfg(test)]
mod tests {
    //! Goal: each claim can hold and fail, and systems that were not run are not judged. Method: rows written here.

    use super::*;
    use crate::Verdict;

    /// Returns a row in which SMRfs takes `times_longer` times as long as HiSMRfs. HiSMRfs takes `pre_allocation`
    /// times as long as SMRfs for pre-allocation, and has `latency` times its latency.
    fn row(times_longer: f64, pre_allocation: f64, latency: f64) -> Row {
        let phase = |times: f64, latency_ns: u64| Measured {
            operations: 1000,
            bytes: 1000,
            elapsed_ns: (1e6 * times) as u64,
            latency_ns,
        };
        let hismrfs = vec![phase(1.0, 0), phase(1.0, (1000.0 * latency) as u64)];
        let smrfs = vec![phase(1.0 / pre_allocation, 0), phase(times_longer, 1000)];
        let own = vec![phase(1.0, 0), phase(1.0, 1000)];
        [hismrfs, smrfs.clone(), smrfs, own.clone(), own.clone(), own.clone(), own].into_iter().map(Some).collect()
    }

    /// Returns the verdicts of the claims that count. The shares of the paper must not be judged.
    fn verdicts(create: Row, mail: Row) -> Vec<Verdict> {
        let mut report = Report::default();
        judge(&mut report, &[create, mail]);
        let (counted, shown): (Vec<_>, Vec<_>) = report.claims.iter().partition(|claim| claim.kind.is_counted());
        assert!(shown.len() == 4 && shown.iter().all(|claim| claim.verdict == Verdict::NotJudged));
        counted.iter().map(|claim| claim.verdict).collect()
    }

    #[test]
    fn as_the_paper_has_it_all_hold() {
        assert_eq!(verdicts(row(1.2, 1.0, 0.5), row(1.3, 1.2, 0.3)), [Verdict::Yes; 12]);
    }

    #[test]
    fn each_claim_can_fail() {
        let found = verdicts(row(1.0, 1.0, 0.6), row(0.9, 0.7, 0.6));
        assert_eq!(found, [Verdict::No; 12]);
        let found = verdicts(row(0.9, 1.3, 0.4), row(1.01, 1.0, 0.51));
        let each = [Verdict::No, Verdict::Yes, Verdict::Yes, Verdict::No];
        assert_eq!(found, [&each[..], &each[..], &[Verdict::No; 4]].concat());
    }

    #[test]
    fn systems_not_run_are_not_judged() {
        let mut mail = row(1.3, 1.0, 0.3);
        mail[SMRFS_ON_DISK] = None;
        let found = verdicts(row(1.2, 1.0, 0.3), mail);
        let some = [Verdict::Yes, Verdict::NotJudged, Verdict::NotJudged, Verdict::NotJudged];
        assert_eq!(found, [&some[..], &[Verdict::Yes; 4], &[Verdict::NotJudged], &[Verdict::Yes; 3]].concat());
    }
}
