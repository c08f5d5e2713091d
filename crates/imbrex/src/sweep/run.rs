//! Runs points on the available cores, one point per core. Each row is written as soon as its point ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use imbrex_sim::DriveResult;

use super::dataset::Dataset;
use super::grid::{Grid, Point, Task};
use super::row::Row;
use crate::error::{Failure, FailureKind};
use crate::progress::Progress;
use crate::run::many;
use crate::simulation::Simulation;
use crate::workload::Workload;

/// Summary of a sweep.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Swept {
    /// Number of points of the grid: one for each workload, drive, and combination of values of parameters and options.
    /// Equal points count once.
    pub points: u64,
    /// Number of points that had a row before the sweep began.
    pub found: u64,
    /// Number of points that ran in this sweep, including those that failed.
    pub run: u64,
    /// Number of points of the grid whose row contains an error, from this sweep or an earlier one.
    pub failed: u64,
    /// Whether the sweep was stopped early.
    pub is_stopped: bool,
}

impl Task {
    /// Simulates the point on `workload` and returns its row, which contains the error if the point failed. Returns
    /// `None` if it was stopped. A panic counts as a failure.
    pub fn run(&self, workload: &Workload, progress: &Progress) -> Option<Row> {
        let outcome = match catch_unwind(AssertUnwindSafe(|| self.simulate(workload, progress))) {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::failed(format!("a bug of imbrex {}: it panicked", env!("CARGO_PKG_VERSION")))),
        };
        match outcome {
            Err(failure) if failure.kind == FailureKind::Interrupted => None,
            outcome => Some(Row::of(self, &outcome)),
        }
    }

    fn simulate(&self, workload: &Workload, progress: &Progress) -> Result<DriveResult, Failure> {
        let asked = self.asked()?;
        let simulation = Simulation::new().baseline(asked.baseline).options(asked.simulation).drive(&self.drive)?;
        let simulated = simulation.run(workload, &progress.quietly())?;
        if simulated.is_stopped {
            return Err(Failure::interrupted());
        }
        let own = simulated.summary.drives.into_iter().find(|drive| !drive.baseline);
        let result = own.ok_or_else(|| Failure::failed("the drive did not run"))?;
        if result.completed == 0 {
            return Err(Failure::failed("the drive completed no request"));
        }
        Ok(result)
    }
}

impl Grid {
    /// Returns the points without a row in `dataset`; if `again` is set, also those whose row contains an error.
    pub fn missing<'a>(&'a self, dataset: &Dataset, again: bool) -> Vec<&'a Point> {
        self.points.iter().filter(|point| dataset.is_missing(&point.task.key, again)).collect()
    }

    /// Simulates all missing points, `jobs` at once (`None`: one per core), and adds their rows to `dataset`. If
    /// `again` is set, repeats the points whose row contains an error.
    pub fn run(
        &self,
        dataset: &Dataset,
        again: bool,
        jobs: Option<u32>,
        progress: &Progress,
    ) -> Result<Swept, Failure> {
        let missing = self.missing(dataset, again);
        let bar = progress.points("sweep", missing.len() as u64);
        let run = AtomicU64::new(0);
        // A row that cannot be written ends the sweep: the next one could not be written either.
        let is_ended = AtomicBool::new(false);
        let kept = |failure: Failure| {
            is_ended.store(true, Ordering::Relaxed);
            let kept = run.load(Ordering::Relaxed);
            failure.or_try(format!("the same sweep again, once that is mended: it goes on behind the {kept} rows kept"))
        };
        many::of_each(&missing, jobs, |_, point| {
            if progress.should_stop() || is_ended.load(Ordering::Relaxed) {
                return Ok(());
            }
            if let Some(row) = point.task.run(&self.found[point.workload].workload, progress) {
                dataset.add(&row).map_err(kept)?;
                run.fetch_add(1, Ordering::Relaxed);
                bar.inc(1);
            }
            Ok(())
        })?;
        bar.finish_and_clear();
        let run = run.into_inner();
        let failed = self.rows(dataset).iter().filter(|row| row.text("error").is_some()).count() as u64;
        let (points, missing) = (self.points.len() as u64, missing.len() as u64);
        Ok(Swept { points, found: points - missing, run, failed, is_stopped: run < missing })
    }

    /// Returns the rows of `dataset` for the points of this grid, in the order of the points. Points without a row are
    /// left out.
    pub fn rows(&self, dataset: &Dataset) -> Vec<Row> {
        self.points.iter().filter_map(|point| dataset.row(&point.task.key)).collect()
    }
}

#[cfg(test)]
mod tests {
    //! Goal: a second call finds, adds and repeats the right points. Method: a small sweep with an invalid point.

    use super::super::row::Cell;
    use super::super::spec::Spec;
    use super::*;

    fn spec(intervals: &[&str]) -> Spec {
        let values = |values: &[&str]| values.iter().map(ToString::to_string).collect::<Vec<_>>();
        Spec {
            workloads: values(&["rw=randwrite,bs=4k,size=1GiB,number_ios=200"]),
            drives: values(&["imr-1t+track-map"]),
            parameters: vec![("interval".into(), values(intervals))],
            options: Vec::new(),
        }
    }

    fn grid(intervals: &[&str]) -> Grid {
        Grid::of(&spec(intervals), &[], &Progress::silent()).expect("it is right")
    }

    fn swept(dataset: &Dataset, intervals: &[&str], again: bool) -> [u64; 4] {
        let swept = grid(intervals).run(dataset, again, Some(2), &Progress::silent()).expect("it runs");
        assert!(!swept.is_stopped);
        [swept.points, swept.found, swept.run, swept.failed]
    }

    #[test]
    fn a_second_call_resumes_and_adds_and_failures_keep_their_errors() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let dataset = Dataset::in_folder(folder.path()).expect("writable");
        assert_eq!(swept(&dataset, &["500", "none"], false), [2, 0, 2, 1]);
        assert_eq!(swept(&dataset, &["500", "none", "1000"], false), [3, 2, 1, 1]);
        assert_eq!(swept(&dataset, &["500", "none", "1000"], true), [3, 2, 1, 1]);
        let rows = grid(&["500", "none", "1000"]).rows(&dataset);
        let error = rows[1].text("error").expect("no such interval");
        assert!(error.contains("interval") && rows[1].number("completed").is_none(), "{error}");
        assert_eq!(rows[2].number("interval_number"), Some(1000.0));
        for row in [&rows[0], &rows[2]] {
            assert_eq!((row.get("error"), row.number("completed")), (Some(&Cell::Nothing), Some(200.0)));
        }
        // A truncated row is computed again.
        let key = rows[0].text("key").expect("its key");
        let path = folder.path().join("points").join(format!("{key}.parquet"));
        std::fs::write(&path, b"PAR1").expect("spoilt");
        assert_eq!(swept(&dataset, &["500", "1000"], false), [2, 1, 1, 0]);
    }

    #[test]
    fn what_is_stopped_has_no_row() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let dataset = Dataset::in_folder(folder.path()).expect("writable");
        let stopped = Progress::silent().stopping_when(|| true);
        let swept = grid(&["500"]).run(&dataset, false, None, &stopped).expect("it runs");
        assert_eq!((swept.run, swept.is_stopped), (0, true));
        assert!(grid(&["500"]).rows(&dataset).is_empty());
    }

    #[test]
    fn a_point_is_what_the_simulation_alone_says() {
        let grid = grid(&["500"]);
        let row = grid.points[0].task.run(&grid.found[0].workload, &Progress::silent()).expect("not stopped");
        let simulation = Simulation::new().baseline(crate::Baseline::None).drive("imr-1t+track-map:interval=500");
        let alone = simulation.and_then(|one| one.run(&grid.found[0].workload, &Progress::silent())).expect("it runs");
        let drive = &alone.summary.drives[0];
        assert_eq!(row.number("write_p99_ns"), Some(drive.latency_ns.write.p99 as f64));
        assert_eq!(row.number("write_amplification"), Some(drive.write_amplification));
        assert_eq!(row.number("duration_ns"), Some(drive.duration_ns as f64));
        assert_eq!(row.number("slowdown"), None);
    }
}
