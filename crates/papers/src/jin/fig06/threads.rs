//! Fig. 7 by the number of threads: HiSMRfs against SMRfs under filebench's `varmail`, in disk time.
//!
//! Both systems have our metadata on flash and run completely in virtual time, so the run can be repeated with other
//! seeds. Jin 2014 does not say how many threads `varmail` had, nor in how many bands SMRfs wrote at a time.

use imbrex::Failure;

use super::super::choices::{DISKS, FLASH, OPEN_BANDS, PAGE_CACHE_BYTES, SEED, THREADS};
use super::claims::shown;
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

    /// Returns the mean latency of HiSMRfs over that of SMRfs, or `None` if one was not measured.
    fn latency(&self) -> Option<f64> {
        Some(self.measured[HISMRFS].latency_ns? as f64 / self.measured[SMRFS].latency_ns? as f64)
    }
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report { method: method(), ..Report::default() };
    let mut rows = Vec::new();
    for threads in THREADS {
        let bar = replication.progress.steps(&format!("{LOAD}, {threads} threads"));
        let seed = replication.seed(SEED);
        // The systems share nothing, so they run at the same time.
        let measured: Result<Vec<Measured>, Failure> = std::thread::scope(|scope| {
            let start = |part: Part| {
                let bar = &bar;
                scope.spawn(move || Ok(part.run(DISKS[0], LOAD, Some(threads), seed, bar)?[1]))
            };
            let started = PARTS.map(start);
            started.into_iter().map(|run| run.join().expect("no run of a system panics")).collect()
        });
        bar.finish_and_clear();
        if replication.progress.should_stop() {
            return Err(Failure::interrupted());
        }
        rows.push(Row { threads, measured: measured?.try_into().expect("one for each part") });
    }
    judge(&mut report, &rows);
    report.tables.push(table(&rows));
    Ok(report)
}

fn method() -> String {
    format!(
        "The experiment runs filebench's `{LOAD}` (`imbrex fs bench`, seed {SEED}) with several numbers of threads on \
         new file systems. Jin 2014 §III.A does not give the number of threads of its run; the workload file of \
         filebench 1.4.9 has 16. The disk is `{}`, the metadata of all systems are on the flash `{FLASH}`, and the page \
         cache has {} GiB. Times are those of disk and flash. HiSMRfs is store `log`. SMRfs is store `strict-append` \
         as in [jin/fig06-07](jin-fig06-07.md): files are read whole when they are opened, and all are appended to one \
         band (`open_bands={OPEN_BANDS}`). HiSMRfs writes to up to four bands at a time, the default of store `log`; no \
         paper gives a number for it. Two variants have equal numbers of bands: HiSMRfs in one band \
         (`open_groups={OPEN_BANDS}`), and SMRfs that writes each file to a band of its own while other files are \
         written. The variant of HiSMRfs was added after the first run, to find the cause of its result. The numbers of \
         bands of SMRfs and of threads were chosen before the first run (commit {}).",
        DISKS[0],
        PAGE_CACHE_BYTES >> 30,
        super::super::CHOSEN_SMRFS,
    )
}

fn judge(report: &mut Report, rows: &[Row]) {
    let by_threads = |of: &dyn Fn(&Row) -> String| {
        rows.iter().map(|row| format!("{} with {}", of(row), row.threads)).collect::<Vec<_>>().join(", ")
    };
    report.claim(
        ClaimKind::Shape,
        "varmail: HiSMRfs better than SMRfs with each number of threads, in operations and bytes a second",
        "better (over 1)",
        by_threads(&|row| format!("{:.2}", row.over(HISMRFS, SMRFS))),
        Some(rows.iter().all(|row| row.over(HISMRFS, SMRFS) > 1.0)),
    );
    let latencies: Option<Vec<f64>> = rows.iter().map(|row| row.latency()).collect();
    report.claim(
        ClaimKind::Shape,
        "varmail: mean latency with each number of threads, HiSMRfs over SMRfs",
        "significantly shorter (a half at most)",
        by_threads(&|row| shown(row.latency())),
        latencies.map(|latencies| latencies.into_iter().all(|latency| latency <= 0.5)),
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
    ];
    let line = |row: &Row| {
        let rates = row.measured.iter().map(|measured| format!("{:.0}", measured.rate()));
        let pairs = [(HISMRFS, SMRFS), (HISMRFS_IN_ONE_BAND, SMRFS), (HISMRFS, SMRFS_IN_BANDS)];
        let ratios = pairs.map(|(one, other)| format!("{:.2}", row.over(one, other)));
        let threads = [row.threads.to_string()].into_iter();
        threads.chain(rates).chain(ratios).chain([shown(row.latency())]).collect()
    };
    Table {
        heading: format!("{LOAD} on {}", DISKS[0]),
        columns: columns.map(String::from).to_vec(),
        rows: rows.iter().map(line).collect(),
    }
}

#[cfg(test)]
mod tests {
    //! Goal: each claim can hold and fail, at one number of threads. Method: rows written here.

    use super::*;
    use crate::Verdict;

    /// Returns a row in which SMRfs takes `times_longer` times as long as HiSMRfs, at a latency of 1,000 ns. HiSMRfs
    /// has a latency of `latency_ns`.
    fn row(threads: u64, times_longer: f64, latency_ns: u64) -> Row {
        let one = |times: f64, latency_ns: u64| Measured {
            operations: 1000,
            bytes: 1000,
            elapsed_ns: (1e6 * times) as u64,
            latency_ns: Some(latency_ns),
        };
        Row { threads, measured: [one(1.0, latency_ns), one(times_longer, 1000), one(1.0, 1000), one(1.0, 1000)] }
    }

    fn verdicts(rows: &[Row]) -> Vec<Verdict> {
        let mut report = Report::default();
        judge(&mut report, rows);
        report.claims.iter().map(|claim| claim.verdict).collect()
    }

    #[test]
    fn one_number_of_threads_decides() {
        assert_eq!(verdicts(&[row(1, 1.3, 500), row(2, 1.01, 400)]), [Verdict::Yes; 2]);
        assert_eq!(verdicts(&[row(1, 1.3, 500), row(2, 1.0, 501)]), [Verdict::No; 2]);
    }
}
