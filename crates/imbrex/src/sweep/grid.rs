//! From a specification to points: every workload on every drive with every value of every parameter and option.
//!
//! Invariants:
//! 1. A key is a hash of the drive's text, the texts of its profiles, the options, the version, the part of the drives
//!    that the workload addresses, and the workload's format, contents and seed. It depends on nothing else.
//! 2. Points are in the order of the specification, with the last name varying fastest. Combinations with the same key
//!    are one point.
//! 3. Each file of a profile is read once. A point contains all that it needs of it, so that it can run elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbrex_disk::Profile;
use imbrex_sim::DriveSpec;
use imbrex_trace::rows::Rows;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::row;
use super::spec::{Several, Spec};
use super::texts;
use crate::drives::{DrivePlan, ProfileFiles};
use crate::error::{Failure, FailureKind};
use crate::progress::Progress;
use crate::run::many;
use crate::simulate_options::{BadWord, SimulateOptions};
use crate::simulation::Baseline;
use crate::workload::{Workload, WorkloadOptions, hex};

/// Largest number of points: more than anyone would wait for.
const POINTS_MAX: usize = 1_000_000;
/// Number of hexadecimal digits of a key.
const KEY_DIGITS: usize = 32;
/// Options that affect how a workload is read, rather than how it runs.
const OF_WORKLOADS: [&str; 12] = [
    "format",
    "device",
    "columns",
    "units",
    "action",
    "read-flag",
    "time-unit",
    "decimal",
    "all",
    "skip-malformed",
    "seed",
    "limit",
];

/// A point of the sweep: one workload on one drive with one value of each parameter and option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Point {
    /// Index of the point's workload in the list of the sweep's workloads ([`Grid::found`]), counted from 0.
    pub workload: usize,
    /// Description of the simulation that the point stands for.
    pub task: Task,
}

/// The description of a point of a sweep, without the requests of its workload. A point is one simulation: one workload
/// on one drive with one value of each parameter and option. The description contains all that a simulation of the
/// point needs beside the workload, and can be sent to another process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Key of the point, 32 hexadecimal digits: a hash of the drive, its profile, the part of the drive that is
    /// addressed, the options, the version of this program, the columns of its rows, and the workload's contents and
    /// seed.
    pub key: String,
    /// Text of the drive, with the parameters of the sweep at this point.
    pub drive: String,
    /// Text of the drive as in the specification, without the parameters of the sweep. If the text in the specification
    /// lists several values of a parameter, this is the text with one of them.
    pub drive_head: String,
    /// Name and value of each option of the sweep at this point, in the order of the specification. The simulation runs
    /// with these options.
    pub options: Vec<(String, String)>,
    /// Name and value of each parameter and then each option of the sweep at this point, in the order of the
    /// specification.
    pub swept: Vec<(String, String)>,
    /// Name of the workload in the results, such as the path of a trace ([`Workload::name`]).
    pub workload: String,
    /// Name of the trace's format; `table` for requests in memory, `generator` for a generator.
    pub workload_format: String,
    /// SHA-256 in hexadecimal of the trace's bytes, of the rows in memory, or of the generator's description.
    pub workload_sha256: String,
    /// Reason why the workload is impossible with the values of this point; `None` if it is possible. An impossible
    /// point does not run, and its row has this error.
    #[serde(default)]
    pub failure: Option<String>,
    /// Contents of the TOML profile files that the point's drive and its baseline name. Empty if both have built-in
    /// profiles.
    #[serde(default)]
    pub profile_files: ProfileFiles,
    /// Part of the drive that a workload addresses if its addresses depend on the size of the drive: its length from
    /// sector 0 on, in sectors of 512 bytes, and the text of the drive that determined it, the smallest of the
    /// workload's points. It is equal for all points of the workload. `None` if the addresses do not depend on the
    /// drive, or if no drive of the workload can be built.
    #[serde(default)]
    pub span: Option<(u64, String)>,
}

/// A workload of the sweep, with the text and the options from which it was found.
pub struct Found {
    /// Text passed to [`Workload::find`], with the values of parameters in place of their names in braces; `None` for
    /// requests that the caller holds in memory.
    pub word: Option<String>,
    /// Requests that the caller holds in memory.
    rows: Option<Arc<dyn Rows>>,
    /// Names and values of the options of the sweep with which the workload was read.
    pub options: Vec<(String, String)>,
    /// The workload that was found. If a value of the sweep makes the workload impossible, this is a placeholder that
    /// does not run.
    pub workload: Workload,
    /// Reason why the workload is impossible, if it is. Its points have rows with this error.
    failure: Option<String>,
}

/// All points of a sweep, and the workloads that they run on.
pub struct Grid {
    /// Workloads of the sweep: one for each text with the values of parameters put in, and each set of options for
    /// reading.
    pub found: Vec<Found>,
    /// Points in the order of the specification: by workload, drive, parameters and options, the last of which varies
    /// fastest. Points with the same key occur once.
    pub points: Vec<Point>,
    /// Names of the parameters and then of the options of the sweep, in the order of the specification.
    pub swept: Vec<String>,
    /// Contents of all profiles in files, each read once.
    profile_files: ProfileFiles,
    /// Index in `found` of each workload that has a word, by the word and the options.
    by_word: BTreeMap<(String, Vec<(String, String)>), usize>,
}

/// Requests that the caller holds in memory, to be a workload of a sweep.
pub struct InMemory {
    /// Name of the workload.
    pub name: String,
    /// The requests, as rows of a table.
    pub rows: Arc<dyn Rows>,
}

impl Grid {
    /// Returns the points of `spec`, on its workloads and then on those in `memory`. Finds every workload, and
    /// reads each trace through. If a parameter or option of the sweep makes a workload impossible, its points have an
    /// error instead.
    ///
    /// # Errors
    ///
    /// If there is no workload, or a workload cannot be found. If a range in a drive's text is invalid, or a parameter
    /// has the name of a column of the results. If there are more than a million points, or `progress` asks to stop.
    pub fn of(spec: &Spec, memory: &[InMemory], progress: &Progress) -> Result<Grid, Failure> {
        if spec.workloads.is_empty() && memory.is_empty() {
            return Err(Failure::usage("no workloads").or_try("workloads = [\"demo\"]"));
        }
        let stands_in_one = |name: &str| spec.workloads.iter().any(|word| word.contains(&format!("{{{name}}}")));
        let mut drives = Vec::new();
        for text in &spec.drives {
            drives.extend(texts::expand(text)?);
        }
        let swept: Vec<String> = spec.parameters.iter().chain(&spec.options).map(|(name, _)| name.clone()).collect();
        check_names(&swept)?;
        let (found, points, by_word) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut grid = Grid { found, points, swept, profile_files: ProfileFiles::default(), by_word };
        let (parameters, options) = (combinations(&spec.parameters)?, combinations(&spec.options)?);
        let mut keys = BTreeSet::new();
        for source in 0..spec.workloads.len() + memory.len() {
            for drive in &drives {
                for parameters in &parameters {
                    for options in &options {
                        let of_drive: Vec<_> = parameters.iter().filter(|(name, _)| !stands_in_one(name)).collect();
                        let of_reading = |pair: &&(String, String)| OF_WORKLOADS.contains(&pair.0.as_str());
                        let reading: Vec<_> = options.iter().filter(of_reading).cloned().collect();
                        let workload = match spec.workloads.get(source) {
                            Some(word) => {
                                let found = substituted(word, parameters);
                                let is_swept = found != *word || !reading.is_empty();
                                grid.find(&found, reading, is_swept, progress)?
                            }
                            None => grid.take(&memory[source - spec.workloads.len()], reading, progress)?,
                        };
                        let task = grid.task(workload, drive, &of_drive, options, parameters)?;
                        if keys.insert(task.key.clone()) {
                            grid.points.push(Point { workload, task });
                        }
                        if grid.points.len() > POINTS_MAX {
                            return Err(Failure::usage(format!("more than {POINTS_MAX} points")).or_try("fewer values"));
                        }
                    }
                }
            }
        }
        grid.pin_spans(progress)?;
        Ok(grid)
    }

    /// Gives all points of a workload the same part of the drives to address, if the workload does not give it: as much
    /// as the smallest of the sweep's drives offers.
    fn pin_spans(&mut self, progress: &Progress) -> Result<(), Failure> {
        let needs_span = |point: &&Point| self.found[point.workload].workload.needs_span();
        let texts: BTreeSet<&str> =
            self.points.iter().filter(needs_span).flat_map(|point| point.task.drives()).collect();
        let texts: Vec<&str> = texts.into_iter().collect();
        let bar = progress.points("laying out the drives", texts.len() as u64);
        let capacities = many::of_each(&texts, None, |_, text| {
            bar.inc(1);
            // A drive that cannot be built fails when its point runs.
            Ok(DrivePlan::parse_with(text, &self.profile_files).ok().map(|plan| plan.capacity_bytes() / 512))
        })?;
        bar.finish_and_clear();
        let offered: BTreeMap<&str, u64> =
            texts.iter().zip(capacities).filter_map(|(text, capacity)| Some((*text, capacity?))).collect();
        let mut spans: BTreeMap<usize, (u64, String)> = BTreeMap::new();
        for point in self.points.iter().filter(needs_span) {
            for drive in point.task.drives() {
                let Some(&sectors) = offered.get(drive) else { continue };
                let span = (sectors, drive.to_string());
                let least = spans.entry(point.workload).or_insert_with(|| span.clone());
                *least = span.min(least.clone());
            }
        }
        for point in &mut self.points {
            if let Some(span) = spans.get(&point.workload) {
                point.task.span = Some(span.clone());
                point.task.key = key(&point.task, self.found[point.workload].workload.seed)?;
            }
        }
        Ok(())
    }

    /// Returns the index of the workload `word`, read with `options`. If `is_swept` is set, a value of the sweep stands
    /// in the word or the options, and a wrong one makes the points of the workload fail, rather than the sweep.
    fn find(
        &mut self,
        word: &str,
        options: Vec<(String, String)>,
        is_swept: bool,
        progress: &Progress,
    ) -> Result<usize, Failure> {
        let asked = (word.to_string(), options.clone());
        if let Some(&index) = self.by_word.get(&asked) {
            return Ok(index);
        }
        self.by_word.insert(asked, self.found.len());
        let found = reading(&options).and_then(|asked| Workload::find(word, &asked, progress));
        let (workload, failure) = match found {
            Ok(workload) => (workload, None),
            Err(failure) if is_swept && failure.kind == FailureKind::Usage => {
                let mut other = Workload::generator("rw=read,number_ios=1,size=1m", &WorkloadOptions::default())?;
                other.name = word.to_string();
                (other, Some(failure.to_string()))
            }
            Err(failure) => return Err(failure),
        };
        self.found.push(Found { word: Some(word.to_string()), rows: None, options, workload, failure });
        Ok(self.found.len() - 1)
    }

    fn take(&mut self, held: &InMemory, options: Vec<(String, String)>, progress: &Progress) -> Result<usize, Failure> {
        // Two workloads may have one name.
        let has_rows = |rows: &Arc<dyn Rows>| std::ptr::addr_eq(Arc::as_ptr(rows), Arc::as_ptr(&held.rows));
        let is_it = |found: &Found| {
            found.rows.as_ref().is_some_and(has_rows) && found.workload.name == held.name && found.options == options
        };
        if let Some(index) = self.found.iter().position(is_it) {
            return Ok(index);
        }
        let workload = Workload::of_rows(&held.name, held.rows.clone(), &reading(&options)?, progress)?;
        self.found.push(Found { word: None, rows: Some(held.rows.clone()), options, workload, failure: None });
        Ok(self.found.len() - 1)
    }

    fn task(
        &mut self,
        workload: usize,
        drive: &str,
        of_drive: &[&(String, String)],
        options: &[(String, String)],
        parameters: &[(String, String)],
    ) -> Result<Task, Failure> {
        let settings: Vec<String> = of_drive.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let join = match (settings.is_empty(), drive.contains(':')) {
            (true, _) => "",
            (false, true) => ",",
            (false, false) => ":",
        };
        let Found { workload: found, failure, .. } = &self.found[workload];
        // A trace has no seed and runs once.
        let mut options = options.to_vec();
        if found.portable_words().is_none() {
            options.iter_mut().filter(|(name, _)| name == "seeds").for_each(|(_, word)| *word = "1".into());
        }
        let mut task = Task {
            key: String::new(),
            drive: format!("{drive}{join}{}", settings.join(",")),
            drive_head: drive.to_string(),
            swept: parameters.iter().chain(&options).cloned().collect(),
            options,
            workload: found.name.clone(),
            workload_format: found.format.clone(),
            workload_sha256: found.sha256.clone(),
            failure: failure.clone(),
            profile_files: ProfileFiles::default(),
            span: None,
        };
        task.drives().for_each(|drive| self.profile_files.read(drive));
        task.profile_files = self.profile_files.of(task.drives());
        task.key = key(&task, found.seed)?;
        Ok(task)
    }
}

/// Checks that no parameter or option has the name of another column of the rows.
fn check_names(swept: &[String]) -> Result<(), Failure> {
    for (index, name) in swept.iter().enumerate() {
        let number = format!("{name}_number");
        let own = row::own_columns().find(|own| own == name || *own == number).map(String::from);
        let others = swept.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, other)| other);
        let other = others.into_iter().find(|other| *other == name || **other == number).cloned();
        if let Some(column) = own.or(other) {
            return Err(Failure::usage(format!("'{name}' cannot be swept: the rows have another column '{column}'"))
                .or_try("another name, if it stands in braces in a workload"));
        }
    }
    Ok(())
}

/// Replaces each `{name}` in `word` by the value of the parameter.
fn substituted(word: &str, parameters: &[(String, String)]) -> String {
    parameters.iter().fold(word.to_string(), |word, (name, value)| word.replace(&format!("{{{name}}}"), value))
}

fn reading(options: &[(String, String)]) -> Result<WorkloadOptions, Failure> {
    let mut asked = SimulateOptions::default();
    for (name, word) in options {
        asked.set(name, word).map_err(BadWord::in_assignment)?;
    }
    Ok(asked.workload)
}

/// Returns every combination of one value per name, with the last name varying fastest.
fn combinations(several: &[Several]) -> Result<Vec<Vec<(String, String)>>, Failure> {
    let mut all = vec![Vec::new()];
    for (name, values) in several {
        if all.len().saturating_mul(values.len()) > POINTS_MAX {
            return Err(Failure::usage(format!("more than {POINTS_MAX} combinations")).or_try("fewer values"));
        }
        let with = |before: &Vec<(String, String)>, value: &String| {
            let mut after = before.clone();
            after.push((name.clone(), value.clone()));
            after
        };
        all = all.iter().flat_map(|before| values.iter().map(move |value| with(before, value))).collect();
    }
    Ok(all)
}

fn key(task: &Task, seed: u64) -> Result<String, Failure> {
    key_for(task, seed, &row::own_columns().collect::<Vec<_>>())
}

/// Returns the key of the point `task` for a program whose rows have the columns `columns`. A row that lacks a column
/// has another key, so its point runs again.
fn key_for(task: &Task, seed: u64, columns: &[&str]) -> Result<String, Failure> {
    // A drive whose text is wrong fails when its point runs. Here its text is enough to make the key unique.
    let built_in = DriveSpec::parse(&task.drive).ok().and_then(|spec| Profile::named(&spec.profile));
    let built_in = built_in.map_or_else(String::new, |profile| profile.source_text().to_string());
    let asked = serde_json::json!({
        "imbrex": env!("CARGO_PKG_VERSION"), "columns": columns,
        "format": task.workload_format, "sha256": task.workload_sha256,
        "seed": seed, "drive": task.drive, "profile": built_in, "profile_files": task.profile_files,
        "options": task.options, "span": task.span,
        "impossible": task.failure.as_ref().map(|failure| (&task.workload, failure)),
    });
    let mut key = hex(&Sha256::digest(asked.to_string()));
    key.truncate(KEY_DIGITS);
    Ok(key)
}

impl Task {
    /// Returns the texts of the drives that run: the drive, and the baseline if the options name one.
    fn drives(&self) -> impl Iterator<Item = &str> {
        let baselines = self.options.iter().filter(|(name, _)| name == "baseline").map(|(_, text)| text.as_str());
        std::iter::once(self.drive.as_str()).chain(baselines)
    }

    /// Returns the options for the simulation of this point, which are those of the sweep at the point. The simulation
    /// runs on one thread, and without a baseline unless the options name one.
    ///
    /// # Errors
    ///
    /// If an option has an unknown name or a value that it does not accept.
    pub fn asked(&self) -> Result<SimulateOptions, Failure> {
        let mut asked = SimulateOptions { baseline: Baseline::None, ..SimulateOptions::default() };
        for (name, word) in &self.options {
            asked.set(name, word).map_err(BadWord::in_assignment)?;
        }
        asked.simulation.jobs = Some(1);
        asked.simulation.span = self.span.clone();
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use imbrex_trace::rows::Row;

    use super::*;

    fn several(name: &str, values: &[&str]) -> Several {
        (name.to_string(), values.iter().map(ToString::to_string).collect())
    }

    fn grid(spec: &Spec) -> Grid {
        Grid::of(spec, &[], &Progress::silent()).unwrap_or_else(|failure| panic!("{failure}"))
    }

    fn spec() -> Spec {
        Spec {
            workloads: vec!["rw=randwrite,bs={bs},size=1GiB,number_ios=10".into(), "demo".into()],
            drives: vec!["imr-1t+track-map".into(), "cmr-7200:a=1|2".into()],
            parameters: vec![several("bs", &["4k", "8k"]), several("interval", &["100", "200"])],
            options: vec![several("queue", &["1", "4"]), several("limit", &["5"])],
        }
    }

    #[test]
    fn every_combination_is_a_point_once_and_parameters_go_where_they_belong() {
        let grid = grid(&spec());
        // Three drives, two intervals, two queue depths. The first workload has two block sizes; the second contains no
        // parameter and counts once.
        assert_eq!(grid.points.len(), 3 * 2 * 2 * (2 + 1));
        assert_eq!(grid.found.len(), 3);
        let first = &grid.points[0].task;
        assert_eq!(first.drive, "imr-1t+track-map:interval=100");
        assert_eq!(first.workload, "rw=randwrite,bs=4k,size=1GiB,number_ios=10");
        let swept = ["bs", "interval", "queue", "limit"];
        assert_eq!(first.swept.iter().map(|pair| pair.0.as_str()).collect::<Vec<_>>(), swept);
        assert!(grid.points.iter().any(|point| point.task.drive == "cmr-7200:a=2,interval=200"));
        assert_eq!(first.asked().expect("they are right").simulation.queue, Some(1));
    }

    #[test]
    fn keys_differ_with_what_was_asked_and_stay_otherwise() {
        let keys = |spec: &Spec| grid(spec).points.into_iter().map(|point| point.task.key).collect::<BTreeSet<_>>();
        let before = keys(&spec());
        assert_eq!(keys(&spec()), before);
        let mut more = spec();
        more.parameters[1].1.push("300".into());
        let after = keys(&more);
        assert!(before.is_subset(&after) && after.len() == before.len() * 3 / 2);
        let mut other = spec();
        other.options[1].1[0] = "6".into();
        assert!(keys(&other).is_disjoint(&before));
        assert!(before.iter().all(|key| key.len() == KEY_DIGITS));
    }

    #[test]
    fn a_row_that_lacks_a_column_is_not_found() {
        let columns: Vec<&str> = row::own_columns().collect();
        let before: Vec<&str> = columns.iter().copied().filter(|column| !column.starts_with("integrity")).collect();
        assert_eq!(before.len() + 6, columns.len());
        let grid = grid(&spec());
        let point = &grid.points[0];
        let key = |columns: &[&str]| key_for(&point.task, grid.found[point.workload].workload.seed, columns);
        assert_eq!(key(&columns).expect("it is valid"), point.task.key);
        assert_ne!(key(&before).expect("it is valid"), point.task.key);
    }

    /// A table of one write at sector `.0`.
    struct OneWrite(u64);

    impl Rows for OneWrite {
        fn rows(&self) -> u64 {
            1
        }

        fn read(&self, _first: u64, _rows_max: usize, block: &mut Vec<Row>) -> Result<(), String> {
            block.push(Row { op: 1, lba: self.0, sectors: 8, ..Row::default() });
            Ok(())
        }
    }

    #[test]
    fn tables_of_one_name_are_workloads_of_their_own() {
        let table = |lba| InMemory { name: "table".into(), rows: Arc::new(OneWrite(lba)) };
        let spec = Spec { workloads: Vec::new(), ..spec() };
        let grid =
            Grid::of(&spec, &[table(0), table(800)], &Progress::silent()).unwrap_or_else(|failure| panic!("{failure}"));
        let hashes: BTreeSet<_> = grid.points.iter().map(|point| point.task.workload_sha256.clone()).collect();
        assert_eq!((grid.found.len(), hashes.len()), (2, 2), "each is read once, for all its points");
    }

    #[test]
    fn a_sweep_of_nothing_is_refused() {
        let failure = Grid::of(&Spec { workloads: Vec::new(), ..spec() }, &[], &Progress::silent());
        assert!(failure.err().is_some_and(|failure| failure.message.contains("no workloads")));
    }
}
