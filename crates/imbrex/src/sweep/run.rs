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

/// Counts of the points of a sweep after it has run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Swept {
    /// Number of points of the sweep: one for each workload, drive, and combination of values of parameters and
    /// options. Points with the same key count once.
    pub points: u64,
    /// Number of points that did not have to run, because the dataset had their rows before the sweep began.
    pub found: u64,
    /// Number of points that ran in this sweep and whose rows were written, including those that failed.
    pub run: u64,
    /// Number of points of the sweep whose row contains an error, from this sweep or an earlier one.
    pub failed: u64,
    /// Number of points of the sweep whose row says that live data was lost, from this sweep or an earlier one. 0
    /// without the option `check`.
    pub damaged: u64,
    /// Whether the sweep was stopped before all points had run.
    pub is_stopped: bool,
}

impl Task {
    /// Simulates this point of a sweep, one drive with one set of options, on `workload`, and returns its results as a
    /// row. If the simulation fails, panics, or completes no request, the row contains the error. Returns `None` if
    /// `progress` asked to stop.
    ///
    /// # Errors
    ///
    /// Only if the file of the workload was changed since it was read through, so that no further point may run on it.
    pub fn run(&self, workload: &Workload, progress: &Progress) -> Result<Option<Row>, Failure> {
        let outcome = match catch_unwind(AssertUnwindSafe(|| self.simulate(workload, progress))) {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::failed(format!("a bug of imbrex {}: it panicked", env!("CARGO_PKG_VERSION")))),
        };
        match outcome {
            Err(failure) if failure.kind == FailureKind::InputChanged => Err(failure),
            Err(failure) if failure.kind == FailureKind::Interrupted => Ok(None),
            outcome => Ok(Some(Row::of(self, &outcome))),
        }
    }

    fn simulate(&self, workload: &Workload, progress: &Progress) -> Result<(DriveResult, Vec<String>), Failure> {
        if let Some(failure) = &self.failure {
            return Err(Failure::usage(failure));
        }
        let asked = self.asked()?;
        let simulation = Simulation::new().profile_files(self.profile_files.clone()).baseline(asked.baseline);
        let simulation = simulation.options(asked.simulation).drive(&self.drive)?;
        let simulated = simulation.run(workload, &progress.quietly())?;
        let warnings = simulated.summary.warnings.iter().filter(|warning| !workload.warnings.contains(warning));
        let mut warnings: Vec<String> = warnings.cloned().collect();
        let baselines =
            simulated.summary.drives.iter().filter(|drive| drive.baseline && drive.integrity.is_data_lost());
        warnings.extend(baselines.map(|drive| format!("live data was lost on the baseline {}", drive.drive)));
        if simulated.is_stopped {
            return Err(Failure::interrupted());
        }
        let own = simulated.summary.drives.into_iter().find(|drive| !drive.baseline);
        let result = own.ok_or_else(|| Failure::failed("the drive did not run"))?;
        if result.completed == 0 && !result.integrity.is_data_lost() {
            return Err(Failure::failed("the drive completed no request"));
        }
        Ok((result, warnings))
    }
}

impl Grid {
    /// Returns the points whose rows are missing from `dataset`; if `again` is set, also those whose row contains an
    /// error. Keeps the order of the points.
    pub fn missing<'a>(&'a self, dataset: &Dataset, again: bool) -> Vec<&'a Point> {
        self.points.iter().filter(|point| dataset.is_missing(&point.task.key, again)).collect()
    }

    /// Simulates the points whose rows are missing from `dataset`; if `again` is set, also those whose row contains an
    /// error. Runs at most `jobs` points at once (`None`: one per core), and adds each row to `dataset` as soon as its
    /// point ends. A point that fails has a row with its error and does not end the sweep. A stop by `progress` is no
    /// error.
    ///
    /// # Errors
    ///
    /// If a row cannot be written, or if the file of a workload was changed. The rows written so far are kept.
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
        // A row that cannot be written ends the sweep, since the next one could not be written either. So does a
        // changed input, since rows of both contents would be mixed.
        let is_ended = AtomicBool::new(false);
        let kept = |failure: Failure| {
            is_ended.store(true, Ordering::Relaxed);
            let kept = run.load(Ordering::Relaxed);
            let again = format!("the same sweep again, once that is mended: {kept} rows are kept");
            Failure { remedy: failure.remedy.or(Some(again)), ..failure }
        };
        many::of_each(&missing, jobs, |_, point| {
            if progress.should_stop() || is_ended.load(Ordering::Relaxed) {
                return Ok(());
            }
            let outcome = point.task.run(&self.found[point.workload].workload, progress).map_err(kept)?;
            if let Some(row) = outcome {
                dataset.add(&row).map_err(kept)?;
                run.fetch_add(1, Ordering::Relaxed);
                bar.inc(1);
            }
            Ok(())
        })?;
        bar.finish_and_clear();
        let run = run.into_inner();
        let has_failed = |point: &&Point| dataset.has_failed(&point.task.key);
        let failed = self.points.iter().filter(has_failed).count() as u64;
        let damaged = self.damaged(dataset).len() as u64;
        let (points, missing) = (self.points.len() as u64, missing.len() as u64);
        Ok(Swept { points, found: points - missing, run, failed, damaged, is_stopped: run < missing })
    }

    /// Returns the points at which live data was lost, as their rows in `dataset` say, with these rows. Keeps the order
    /// of the points.
    pub fn damaged(&self, dataset: &Dataset) -> Vec<(&Task, Row)> {
        let rows = self.points.iter().filter_map(|point| Some((&point.task, dataset.row(&point.task.key)?)));
        rows.filter(|(_, row)| row.has_lost_data()).collect()
    }

    /// Returns the rows that `dataset` has for the points of this grid, in the order of the points. Points without a
    /// row are left out.
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
    fn a_damaged_row_runs_again_whichever_byte_it_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let dataset = Dataset::in_folder(folder.path()).expect("writable");
        swept(&dataset, &["500"], false);
        let grid = grid(&["500"]);
        let row = &grid.rows(&dataset)[0];
        let path = folder.path().join("points").join(format!("{}.parquet", row.text("key").expect("its key")));
        let bytes = std::fs::read(&path).expect("there");
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(Row::parse(damaged).is_err(), "byte {at}");
        }
        let mut damaged = bytes;
        damaged[100] ^= 0x10;
        std::fs::write(&path, damaged).expect("damaged");
        assert_eq!(swept(&dataset, &["500"], false), [1, 0, 1, 0]);
    }

    #[test]
    fn one_table_has_the_rows_of_all_sweeps_and_serves_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let first = Dataset::in_folder(folder.path()).expect("writable");
        swept(&first, &["500"], false);
        first.write_table(&grid(&["500"]).rows(&first)).expect("written");
        // Another parameter gives other columns.
        let queue = ("queue".to_string(), vec!["1".to_string(), "2".to_string()]);
        let more = Spec { options: vec![queue], ..spec(&["500"]) };
        let more = Grid::of(&more, &[], &Progress::silent()).expect("it is right");
        let second = Dataset::in_folder(folder.path()).expect("writable");
        more.run(&second, false, None, &Progress::silent()).expect("it runs");
        second.write_table(&more.rows(&second)).expect("written");
        let (rows, _) = super::super::row::read(std::fs::read(second.table()).expect("there")).expect("sound");
        let queues: Vec<_> = rows.iter().map(|row| row.number("queue_number")).collect();
        assert_eq!(queues, [Some(1.0), Some(2.0), None]);
        // The table serves the rows, but not those whose files are gone.
        let third = Dataset::in_folder(folder.path()).expect("writable");
        assert_eq!(more.rows(&third), more.rows(&second));
        let key = &more.points[0].task.key;
        std::fs::remove_file(folder.path().join("points").join(format!("{key}.parquet"))).expect("there");
        assert_eq!(more.rows(&third).len(), 1);
    }

    #[test]
    fn a_row_that_cannot_be_written_ends_the_sweep() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let dataset = Dataset::in_folder(folder.path()).expect("writable");
        let many: Vec<String> = (1..60).map(|interval| interval.to_string()).collect();
        let grid = grid(&many.iter().map(String::as_str).collect::<Vec<_>>());
        // A folder stands in the way of the first row.
        let first = &grid.points[0].task.key;
        std::fs::create_dir_all(folder.path().join(format!("points/{first}.parquet/in-the-way"))).expect("made");
        let failure = grid.run(&dataset, false, Some(1), &Progress::silent()).expect_err("it cannot be written");
        assert!(failure.message.contains(first) && failure.remedy.is_some(), "{failure}");
        assert!(grid.rows(&dataset).is_empty(), "no further point ran");
    }

    #[test]
    fn a_changed_input_ends_the_sweep_with_its_name() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let trace = folder.path().join("trace");
        let lines: String = (0..200).map(|at| format!("{at}.0 0 {} 8 0\n", at * 64)).collect();
        std::fs::write(&trace, &lines).expect("written");
        let name = trace.display().to_string();
        let spec = Spec {
            workloads: vec![name.clone()],
            options: vec![("format".into(), vec!["disksim".into()])],
            ..spec(&["500"])
        };
        let grid = Grid::of(&spec, &[], &Progress::silent()).expect("it is right");
        let change = std::fs::OpenOptions::new().append(true).open(&trace);
        std::io::Write::write_all(&mut change.expect("there"), b"999.0 0 0 8 0\n").expect("appended");
        let dataset = Dataset::in_folder(&folder.path().join("out")).expect("writable");
        let failure = grid.run(&dataset, false, None, &Progress::silent()).expect_err("the trace was changed");
        assert_eq!(failure.kind, FailureKind::InputChanged);
        assert!(failure.message.starts_with(&name), "{failure}");
        assert!(grid.rows(&dataset).is_empty());
    }

    #[test]
    fn a_profile_is_read_once_and_travels_with_its_point() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let profile = folder.path().join("mine.toml");
        let write = |settle: u64| {
            let text = format!("name = \"mine\"\nbase = \"cmr-7200\"\n[mechanics]\nsettle_ns = {settle}\n");
            std::fs::write(&profile, text).expect("written");
        };
        write(1_000_000);
        let workloads = vec!["rw=randread,bs=4k,size=1GiB,number_ios=200".to_string()];
        let spec = Spec { workloads, drives: vec![profile.display().to_string()], ..Spec::default() };
        let points = |spec: &Spec| Grid::of(spec, &[], &Progress::silent()).expect("it is right");
        let (before, workload) = (points(&spec), points(&spec).found.remove(0).workload);
        let row =
            |grid: &Grid| grid.points[0].task.run(&workload, &Progress::silent()).expect("unchanged").expect("ran");
        let first = row(&before);
        assert_eq!(first.text("error"), None);
        write(9_000_000);
        assert_eq!(row(&before).number("duration_ns"), first.number("duration_ns"), "the file is not read again");
        let after = points(&spec);
        assert_ne!(after.points[0].task.key, before.points[0].task.key);
        assert!(row(&after).number("duration_ns") > first.number("duration_ns"));
        std::fs::remove_file(&profile).expect("there");
        assert_eq!(row(&before).number("duration_ns"), first.number("duration_ns"), "as on another machine");
    }

    #[test]
    fn all_points_of_a_workload_address_the_same_part_of_the_drives() {
        let workloads = vec!["rw=randwrite,bs=4k,number_ios=200".to_string()];
        let drives = |drives: &[&str]| drives.iter().map(ToString::to_string).collect::<Vec<_>>();
        let grid = |list: &[&str]| {
            let spec = Spec {
                workloads: workloads.clone(),
                drives: drives(list),
                parameters: Vec::new(),
                options: Vec::new(),
            };
            Grid::of(&spec, &[], &Progress::silent()).expect("it is right")
        };
        let (alone, beside) = (grid(&["cmr-7200"]), grid(&["cmr-7200", "caveat-1g"]));
        let span =
            |grid: &Grid, index: usize| grid.points[index].task.span.clone().expect("it follows from the drives");
        assert_eq!(span(&beside, 0), span(&beside, 1));
        assert_eq!(span(&beside, 0).1, "caveat-1g");
        assert_eq!(span(&alone, 0).1, "cmr-7200");
        assert_ne!(alone.points[0].task.key, beside.points[0].task.key, "other results have another key");
        let options = vec![("baseline".to_string(), vec!["caveat-1g".to_string()])];
        let spec =
            Spec { workloads: workloads.clone(), drives: drives(&["cmr-7200"]), options, parameters: Vec::new() };
        let against = Grid::of(&spec, &[], &Progress::silent()).expect("it is right");
        assert_eq!(span(&against, 0), span(&beside, 0), "a baseline counts");
        let named = Spec {
            workloads: vec!["rw=randwrite,bs=4k,size=1g,number_ios=9".into()],
            drives: drives(&["cmr-7200"]),
            ..Spec::default()
        };
        assert_eq!(Grid::of(&named, &[], &Progress::silent()).expect("it is right").points[0].task.span, None);
    }

    #[test]
    fn a_wrong_value_is_a_failed_row_in_whichever_word_it_stands() {
        let words = |values: &[&str]| values.iter().map(ToString::to_string).collect::<Vec<_>>();
        let spec = Spec {
            workloads: words(&["rw=randwrite,bs={bs},size=1GiB,number_ios=20"]),
            drives: words(&["imr-1t+track-map"]),
            parameters: vec![("bs".into(), words(&["4k", "4q"])), ("interval".into(), words(&["500", "never"]))],
            options: vec![("queue".into(), words(&["1", "none"])), ("seed".into(), words(&["3", "x"]))],
        };
        let grid = Grid::of(&spec, &[], &Progress::silent()).expect("the sweep is right");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let dataset = Dataset::in_folder(folder.path()).expect("writable");
        let swept = grid.run(&dataset, false, None, &Progress::silent()).expect("it runs");
        assert_eq!((swept.points, swept.failed), (16, 15));
        let wrong = |row: &Row, name: &str| ["4q", "never", "none", "x"].contains(&row.text(name).expect("swept"));
        for row in grid.rows(&dataset) {
            let is_wrong = ["bs", "interval", "queue", "seed"].iter().any(|name| wrong(&row, name));
            assert_eq!(row.text("error").is_some(), is_wrong, "{row:?}");
        }
        // A workload that is wrong without a value of the sweep is an error at once.
        let plain = Spec {
            workloads: words(&["rw=randwrite,bs=4q,number_ios=1"]),
            parameters: Vec::new(),
            options: Vec::new(),
            ..spec
        };
        assert!(Grid::of(&plain, &[], &Progress::silent()).is_err());
    }

    #[test]
    fn names_of_other_columns_cannot_be_swept() {
        for name in ["error", "key", "drive", "duration_ns", "workload"] {
            let parameters = vec![(name.to_string(), vec!["1".to_string()])];
            let failure = Grid::of(&Spec { parameters, ..spec(&[]) }, &[], &Progress::silent()).map(drop);
            assert!(failure.expect_err("refused").message.contains(&format!("'{name}' cannot be swept")));
        }
        let both = Spec { options: vec![("interval".into(), vec!["1".into()])], ..spec(&["1"]) };
        assert!(Grid::of(&both, &[], &Progress::silent()).is_err(), "one name for two things");
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
        let row = grid.points[0]
            .task
            .run(&grid.found[0].workload, &Progress::silent())
            .expect("unchanged")
            .expect("not stopped");
        let simulation = Simulation::new().baseline(crate::Baseline::None).drive("imr-1t+track-map:interval=500");
        let alone = simulation.and_then(|one| one.run(&grid.found[0].workload, &Progress::silent())).expect("it runs");
        let drive = &alone.summary.drives[0];
        assert_eq!(row.number("write_p99_ns"), Some(drive.latency_ns.write.p99 as f64));
        assert_eq!(row.number("write_amplification"), Some(drive.write_amplification));
        assert_eq!(row.number("duration_ns"), Some(drive.duration_ns as f64));
        assert_eq!(row.number("slowdown"), None);
    }
}
