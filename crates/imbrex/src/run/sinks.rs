//! Result files of a run. Each drive writes its part while it runs, and the parts are joined at the end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use imbrex_disk::{SimDuration, SimTime};
use imbrex_layer::Layer;
use imbrex_sim::events::{EventOptions, EventRecorder};
use imbrex_sim::{DriveResult, DriveSeries, Summary};

use crate::error::Failure;
use crate::explain::document::ExplainDocument;
use crate::files::{self, FilesError, Folder, IoPart, IoSpool, PlanPart, PlanSpool, WholeFile};
use crate::human;
use crate::options::{EVENTS_BYTES_MAX, SimulationOptions};

/// Bytes that each file of events contains near its beginning: the first track has the name of its drive.
const EVENTS_MARK: &[u8] = b"imbrex ";

/// The result files of a simulation, in the folder that the options name ([`SimulationOptions::out`]). Without a
/// folder, all methods do nothing.
pub struct Sinks {
    folder: Option<Folder>,
    /// Reserves the folder while the run lasts.
    _reserved: Option<std::fs::File>,
    per_io: bool,
    plans: bool,
    events: Option<EventsFile>,
    parts: Mutex<Parts>,
}

/// The file of events, and the part of the run that it covers.
struct EventsFile {
    path: PathBuf,
    from: SimTime,
    to: SimTime,
    bytes_max: u64,
}

#[derive(Default)]
struct Parts {
    ios: Vec<(usize, IoPart)>,
    plans: Vec<(usize, PlanPart)>,
    events: Vec<(usize, WholeFile)>,
}

/// Temporary files that one drive writes while it runs; they are joined at the end.
#[derive(Default)]
pub struct Spools {
    /// Writer of the drive's rows of `ios.parquet`; `None` if the options do not ask for them.
    pub ios: Option<IoSpool>,
    /// Writer of the drive's lines of `plan.jsonl`; `None` if the options do not ask for them.
    pub plans: Option<PlanSpool>,
    /// Writer of the drive's events; `None` if the options do not ask for them.
    pub events: Option<EventRecorder<WholeFile>>,
}

/// Returns a message that the file of events at `path` lacks the last `count` operations and requests of `drive`, whose
/// events would take more than `bytes`.
pub fn events_left_out(drive: &str, bytes: u64, count: u64, path: &Path) -> String {
    format!(
        "{drive}: the events take more than {}: the last {} operations and requests are left out of {} (--from and --to \
         choose a part of the time, --trace-events-size another size)",
        human::bytes(bytes),
        human::count(count),
        path.display()
    )
}

/// Checks that options of the file of events come with the file, and that they name a part of the time.
fn check_events(options: &SimulationOptions) -> Result<(), Failure> {
    let given = [
        ("--from", options.events_from != SimDuration::ZERO),
        ("--to", options.events_to.is_some()),
        ("--trace-events-size", options.events_bytes_max != EVENTS_BYTES_MAX),
    ];
    if let (None, Some((name, _))) = (&options.trace_events, given.iter().find(|(_, is_given)| *is_given)) {
        return Err(Failure::usage(format!("{name} does not apply: there is no file of events"))
            .or_try(format!("--trace-events FILE, or leave {name} out")));
    }
    match options.events_to.filter(|&to| to < options.events_from) {
        Some(to) => Err(Failure::usage(format!("--to {to} lies before --from {}", options.events_from))
            .or_try("a later --to, or an earlier --from")),
        None => Ok(()),
    }
}

impl Sinks {
    /// Creates the folder for the result files, if the options name one, checks that files can be written there, and
    /// locks it against other runs.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written, if another run uses it, or if it holds a file of another program under the name
    /// of a result file. If the file of events would have the name of a result file.
    pub fn prepare(options: &SimulationOptions) -> Result<Sinks, Failure> {
        let folder = match &options.out {
            Some(path) => Some(files::prepare(path)?),
            None => None,
        };
        let _reserved = folder.as_ref().map(Folder::reserve).transpose()?.flatten();
        check_events(options)?;
        let events = options.trace_events.as_ref().map(|path| EventsFile {
            path: path.clone(),
            from: SimTime(options.events_from.0),
            to: options.events_to.map_or(SimTime(u64::MAX), |to| SimTime(to.0)),
            bytes_max: options.events_bytes_max,
        });
        if let Some(events) = &events {
            if let Some(folder) = &folder {
                folder.refuse_as_output("--trace-events", &events.path)?;
            }
            files::ours::refuse_unmarked(&events.path, EVENTS_MARK)?;
        }
        Ok(Sinks { folder, _reserved, per_io: options.per_io, plans: options.plans, events, parts: Mutex::default() })
    }

    /// Returns a message for the user if unfinished files of an earlier run were found in the folder and removed;
    /// otherwise `None`.
    pub fn removal(&self) -> Option<String> {
        self.folder.as_ref().and_then(Folder::removal)
    }

    /// Checks that every result file may be written, and that none would replace one of the files `inputs`.
    ///
    /// # Errors
    ///
    /// If a result file is one of `inputs`, is a block device, or is in use by the system.
    pub fn refuse_inputs(&self, inputs: &[PathBuf]) -> Result<(), Failure> {
        let named = self.folder.iter().flat_map(|folder| files::ours::NAMES.iter().map(|name| folder.file(name)));
        let outputs = named.chain(self.events.iter().map(|events| events.path.clone()));
        outputs.into_iter().try_for_each(|path| files::check_output(&path, inputs)).map_err(Failure::failed)
    }

    /// Creates the temporary files that a drive writes while it runs: those that the options ask for. `index` is its number
    /// among the `drives` drives of the simulation, from 0.
    ///
    /// # Errors
    ///
    /// If a file cannot be created.
    pub fn spools(&self, label: &str, layer: &dyn Layer, index: usize, drives: usize) -> Result<Spools, Failure> {
        let mut spools = Spools::default();
        if let Some(folder) = &self.folder {
            spools.ios = if self.per_io { Some(folder.io_spool(label)?) } else { None };
            spools.plans = if self.plans { Some(folder.plan_spool(label)?) } else { None };
        }
        if let Some(events) = &self.events {
            let file = WholeFile::create(&events.path).map_err(|error| FilesError::file(&events.path, error))?;
            let (from, to, bytes_max) = (events.from, events.to, events.bytes_max / drives.max(1) as u64);
            let options = EventOptions { name: format!("imbrex {label}"), drive: index as u32, from, to, bytes_max };
            spools.events = Some(EventRecorder::new(layer, options, file));
        }
        Ok(spools)
    }

    /// Finishes the temporary files of drive number `index` (from 0) and keeps them for [`Sinks::finish`]. `result`
    /// supplies the total service times, from which the last row of the drive in `ios.parquet` follows: the times that
    /// belong to no request. Returns a message if events were left out at the end.
    ///
    /// # Errors
    ///
    /// If a row or line of the files could not be written.
    pub fn keep(&self, index: usize, mut spools: Spools, result: &DriveResult) -> Result<Option<String>, Failure> {
        if let Some(ios) = &mut spools.ios {
            ios.background(&result.service_ns, result.duration_ns);
        }
        let ios = spools.ios.map(IoSpool::finish).transpose()?;
        let plans = spools.plans.map(PlanSpool::finish).transpose()?;
        let mut message = None;
        let mut events = None;
        if let (Some(recorder), Some(file)) = (spools.events, &self.events) {
            let (part, counts) = recorder.finish().map_err(|error| FilesError::file(&file.path, error))?;
            message = (counts.left_out > 0)
                .then(|| events_left_out(&result.drive, counts.bytes, counts.left_out, &file.path));
            events = Some((index, part));
        }
        let mut parts = self.parts.lock().expect("no thread panics while it holds the parts");
        parts.ios.extend(ios.map(|part| (index, part)));
        parts.plans.extend(plans.map(|part| (index, part)));
        parts.events.extend(events);
        Ok(message)
    }

    /// Joins the events of all drives to one file.
    fn join_events(&self, mut parts: Vec<(usize, WholeFile)>) -> Result<(), FilesError> {
        let Some(events) = &self.events else { return Ok(()) };
        parts.sort_by_key(|(index, _)| *index);
        let joined = WholeFile::create(&events.path).and_then(|mut file| {
            for (_, mut part) in parts {
                io::copy(&mut part.reread()?, &mut file)?;
            }
            file.finish()
        });
        joined.map_err(|error| FilesError::file(&events.path, error))
    }

    /// Writes all result files and removes those of an earlier run that this run does not write. `curves` are in the
    /// order of the drives in `summary`, and `explained` states the causes of latencies. `summary.json` comes last, so that
    /// it marks a complete set. Returns the folder, or `None` if the options name none.
    ///
    /// # Errors
    ///
    /// If a file cannot be written or removed.
    pub fn finish(
        self,
        summary: &Summary,
        curves: &[DriveSeries],
        explained: Option<&ExplainDocument>,
    ) -> Result<Option<Folder>, Failure> {
        let events = std::mem::take(&mut self.parts.lock().expect("no thread panics while it holds the parts").events);
        self.join_events(events)?;
        let Some(folder) = self.folder else { return Ok(None) };
        let named: Vec<(&str, &DriveSeries)> =
            summary.drives.iter().map(|drive| drive.drive.as_str()).zip(curves).collect();
        folder.write_latency(&named)?;
        folder.write_timeline(&named)?;
        let mut parts = self.parts.into_inner().expect("no thread panics while it holds the parts");
        parts.ios.sort_by_key(|(index, _)| *index);
        parts.plans.sort_by_key(|(index, _)| *index);
        if self.per_io {
            folder.join_ios(parts.ios.into_iter().map(|(_, part)| part).collect())?;
        }
        if self.plans {
            folder.join_plans(parts.plans.into_iter().map(|(_, part)| part).collect())?;
        }
        folder.write_report(summary, curves, explained)?;
        if let Some(explained) = explained {
            folder
                .write("explain.json", |out| serde_json::to_writer_pretty(out, explained).map_err(io::Error::other))?;
        }
        let mut written = vec!["summary.json", "report.html", "latency.parquet", "timeline.parquet"];
        written.extend(self.per_io.then_some("ios.parquet"));
        written.extend(self.plans.then_some("plan.jsonl"));
        written.extend(explained.map(|_| "explain.json"));
        folder.remove_others(&written)?;
        folder.write_summary(summary)?;
        Ok(Some(folder))
    }
}
