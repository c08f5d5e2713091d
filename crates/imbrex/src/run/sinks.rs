//! Result files of a run. Each drive writes its part while it runs, and the parts are joined at the end.

use std::path::PathBuf;
use std::sync::Mutex;

use imbrex_sim::{DriveResult, DriveSeries, Summary};

use crate::error::Failure;
use crate::files::{self, Folder, IoPart, IoSpool, PlanPart, PlanSpool};
use crate::options::SimulationOptions;

/// The result files of a simulation, in the folder that the options name ([`SimulationOptions::out`]). Without a
/// folder, all methods do nothing.
pub struct Sinks {
    folder: Option<Folder>,
    /// Reserves the folder while the run lasts.
    _reserved: Option<std::fs::File>,
    per_io: bool,
    plans: bool,
    parts: Mutex<Parts>,
}

#[derive(Default)]
struct Parts {
    ios: Vec<(usize, IoPart)>,
    plans: Vec<(usize, PlanPart)>,
}

/// Temporary files that one drive writes while it runs; they are joined at the end.
#[derive(Default)]
pub struct Spools {
    /// Writer of the drive's rows of `ios.parquet`; `None` if the options do not ask for them.
    pub ios: Option<IoSpool>,
    /// Writer of the drive's lines of `plan.jsonl`; `None` if the options do not ask for them.
    pub plans: Option<PlanSpool>,
}

impl Sinks {
    /// Creates the folder for the result files, if the options name one, checks that files can be written there, and
    /// locks it against other runs.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written, if another run uses it, or if it holds a file of another program under the name
    /// of a result file.
    pub fn prepare(options: &SimulationOptions) -> Result<Sinks, Failure> {
        let folder = match &options.out {
            Some(path) => Some(files::prepare(path)?),
            None => None,
        };
        let _reserved = folder.as_ref().map(Folder::reserve).transpose()?.flatten();
        Ok(Sinks { folder, _reserved, per_io: options.per_io, plans: options.plans, parts: Mutex::default() })
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
        let Some(folder) = &self.folder else { return Ok(()) };
        let outputs = files::ours::NAMES.iter().map(|name| folder.file(name));
        outputs.into_iter().try_for_each(|path| files::check_output(&path, inputs)).map_err(Failure::failed)
    }

    /// Creates the temporary files that the drive called `label` writes while it runs: those that the options ask for.
    ///
    /// # Errors
    ///
    /// If a file cannot be created.
    pub fn spools(&self, label: &str) -> Result<Spools, Failure> {
        let Some(folder) = &self.folder else { return Ok(Spools::default()) };
        Ok(Spools {
            ios: if self.per_io { Some(folder.io_spool(label)?) } else { None },
            plans: if self.plans { Some(folder.plan_spool(label)?) } else { None },
        })
    }

    /// Finishes the temporary files of drive number `index` (from 0) and keeps them for [`Sinks::finish`]. `result`
    /// supplies the total service times, from which the last row of the drive in `ios.parquet` follows: the times that
    /// belong to no request.
    ///
    /// # Errors
    ///
    /// If a row or line of the files could not be written.
    pub fn keep(&self, index: usize, mut spools: Spools, result: &DriveResult) -> Result<(), Failure> {
        if let Some(ios) = &mut spools.ios {
            ios.background(&result.service_ns, result.duration_ns);
        }
        let ios = spools.ios.map(IoSpool::finish).transpose()?;
        let plans = spools.plans.map(PlanSpool::finish).transpose()?;
        let mut parts = self.parts.lock().expect("no thread panics while it holds the parts");
        parts.ios.extend(ios.map(|part| (index, part)));
        parts.plans.extend(plans.map(|part| (index, part)));
        Ok(())
    }

    /// Writes all result files and removes those of an earlier run that this run does not write. `curves` are in the
    /// order of the drives in `summary`. `summary.json` comes last, so that it marks a complete set. Returns the
    /// folder, or `None` if the options name none.
    ///
    /// # Errors
    ///
    /// If a file cannot be written or removed.
    pub fn finish(self, summary: &Summary, curves: &[DriveSeries]) -> Result<Option<Folder>, Failure> {
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
        folder.write_report(summary, curves)?;
        let mut written = vec!["summary.json", "report.html", "latency.parquet", "timeline.parquet"];
        written.extend(self.per_io.then_some("ios.parquet"));
        written.extend(self.plans.then_some("plan.jsonl"));
        folder.remove_others(&written)?;
        folder.write_summary(summary)?;
        Ok(Some(folder))
    }
}
