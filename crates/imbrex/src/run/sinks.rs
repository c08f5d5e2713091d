//! The files of a run: each drive writes its part while it runs, and the parts are put together at the end.

use std::path::PathBuf;
use std::sync::Mutex;

use imbrex_sim::{DriveResult, DriveSeries, Summary};

use crate::error::Failure;
use crate::files::{self, Folder, IoPart, IoSpool, PlanPart, PlanSpool};
use crate::options::SimulationOptions;

/// The files of a run; none without `--out`.
pub struct Sinks {
    folder: Option<Folder>,
    per_io: bool,
    plans: bool,
    parts: Mutex<Parts>,
}

#[derive(Default)]
struct Parts {
    ios: Vec<(usize, IoPart)>,
    plans: Vec<(usize, PlanPart)>,
}

/// What one drive writes while it runs.
#[derive(Default)]
pub struct Spools {
    /// The file for the drive's rows of `ios.parquet`, if asked for.
    pub ios: Option<IoSpool>,
    /// The file for the drive's lines of `plan.jsonl`, if asked for.
    pub plans: Option<PlanSpool>,
}

impl Sinks {
    /// Finds out, before anything runs, whether the files can be written.
    pub fn prepare(options: &SimulationOptions) -> Result<Sinks, Failure> {
        let folder = match &options.out {
            Some(path) => Some(files::prepare(path)?),
            None => None,
        };
        Ok(Sinks { folder, per_io: options.per_io, plans: options.plans, parts: Mutex::default() })
    }

    /// Checks that no file that will be written is one of `inputs`.
    pub fn refuse_inputs(&self, inputs: &[PathBuf]) -> Result<(), Failure> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let outputs = files::ours::NAMES.iter().map(|name| folder.file(name));
        outputs.into_iter().try_for_each(|path| files::check_output(&path, inputs)).map_err(Failure::failed)
    }

    /// The files that the drive called `label` streams to.
    pub fn spools(&self, label: &str) -> Result<Spools, Failure> {
        let Some(folder) = &self.folder else { return Ok(Spools::default()) };
        Ok(Spools {
            ios: if self.per_io { Some(folder.io_spool(label)?) } else { None },
            plans: if self.plans { Some(folder.plan_spool(label)?) } else { None },
        })
    }

    /// Takes back what drive number `index` wrote in the run that came to `result`.
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

    /// Writes every file; the folder where they are.
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
        folder.write_summary(summary)?;
        Ok(Some(folder))
    }
}
