//! The causes of long latencies: runs a workload on drives, and states for chosen requests which requests and which work
//! of the layer they waited for.
//!
//! ```
//! use imbrex::explain::{Choice, ExplainSettings};
//! use imbrex::{Progress, Simulation, Workload};
//!
//! # fn main() -> Result<(), imbrex::Failure> {
//! let progress = Progress::silent();
//! let workload = Workload::named("rw=randwrite,bs=4k,size=1GiB,number_ios=500", &progress)?;
//! let settings = ExplainSettings { choice: Choice::Worst(3), ..ExplainSettings::default() };
//! let explained = Simulation::new().drive("imr-1t+track-map")?.explain(&workload, &settings, &progress)?;
//! let worst = &explained.document.drives[0].requests[0];
//! assert_eq!(worst.parts.iter().map(|part| part.duration_ns).sum::<u64>(), worst.latency_ns);
//! # Ok(())
//! # }
//! ```

mod cells;
pub mod document;
mod text;
mod without;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use imbrex_disk::{Sectors, SimDuration};
use imbrex_sim::explain::{Chosen, ExplainOptions, Explained, Explainer, Explanation, Of};
use imbrex_sim::results::Integrity;
use imbrex_sim::timing::PlanPart;
use imbrex_sim::{Arrival, Drive, IoRecord, Observer, Options};
use imbrex_trace::Source;

pub use self::document::ExplainDocument;
use self::document::{ExplainedDrive, ExplainedRequest, Replay};
use self::without::Without;
use crate::drives::DrivePlan;
use crate::error::{Failure, FailureKind};
use crate::human;
use crate::progress::Progress;
use crate::run::Run;
use crate::simulation::{Prepared, Room, Simulation};
use crate::table_form::Cells;
use crate::workload::Workload;

/// Choice of the requests that are explained.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Choice {
    /// This many requests with the longest latencies.
    Worst(usize),
    /// The request with this number, counted from 0 in the workload.
    Request(u64),
    /// The first request whose latency is that at this percentile, to 0.1 %.
    Percentile(f64),
}

/// The settings of an explanation beside those of the simulation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExplainSettings {
    /// The requests that are explained.
    pub choice: Choice,
    /// Whether each explained request is replayed twice: with the blamed work in no time, and without the writes
    /// from the first to the last that filled the stores.
    pub replay: bool,
}

impl Default for ExplainSettings {
    fn default() -> ExplainSettings {
        ExplainSettings { choice: Choice::Worst(10), replay: false }
    }
}

/// Explanations of a workload on drives.
pub struct Explanations {
    /// The explanations as a document for JSON.
    pub document: ExplainDocument,
    /// Whether [`Progress::should_stop`] ended a run early. The explanations then cover the requests served until the
    /// stop.
    pub is_stopped: bool,
    /// Messages for drives that did not run because they cannot be made to hold the workload. Empty if all ran.
    pub not_run: Vec<String>,
}

impl Explanations {
    /// Returns the explanations as text for a terminal: a tree for each request, and tables of all requests.
    pub fn text(&self) -> String {
        text::of(&self.document)
    }

    /// Returns the parts of the latencies as a table for other programs: one row per part.
    pub fn cells(&self) -> Cells {
        cells::of(&self.document)
    }
}

impl Simulation {
    /// Simulates `workload` on every drive, and explains the latencies of the chosen requests. Writes no result files.
    ///
    /// # Errors
    ///
    /// As [`Simulation::run`]. Also if the chosen request does not exist or was rejected, or if a workload that is read
    /// several times cannot be opened again.
    pub fn explain(
        self,
        workload: &Workload,
        settings: &ExplainSettings,
        progress: &Progress,
    ) -> Result<Explanations, Failure> {
        self.prepared()?.explain(workload, settings, progress)
    }
}

/// Keeps the latencies of some requests, and ends the workload once all have completed.
struct Latencies {
    wanted: BTreeSet<u64>,
    found: BTreeMap<u64, u64>,
}

impl Observer for Latencies {
    fn progress(&mut self, _requests: u64, _now: imbrex_disk::SimTime) -> bool {
        self.found.len() < self.wanted.len()
    }

    fn wants_ios(&self) -> bool {
        true
    }

    fn io(&mut self, record: &IoRecord) {
        if self.wanted.contains(&record.sequence) {
            self.found.insert(record.sequence, record.end.since(record.due).0);
        }
    }
}

/// Returns whether latencies begin at the arrival times of the workload.
fn counts_from_arrival(options: &Options) -> bool {
    matches!(options.arrival, Arrival::FixedQueue(_) | Arrival::Open)
}

/// The runs of one workload.
struct Runs<'a> {
    prepared: &'a Prepared,
    workload: &'a Workload,
    device_sectors: u64,
    progress: &'a Progress,
    is_stopped: bool,
}

impl Runs<'_> {
    /// Runs the workload on a drive with an explainer.
    fn explained(&mut self, plan: &DrivePlan, chosen: Chosen) -> Result<Explainer, Failure> {
        let drive = plan.build()?;
        let options = self.prepared.options().for_drive(self.workload, &drive)?;
        let explain = ExplainOptions {
            chosen,
            addressed: addressed(&drive, self.device_sectors),
            check: options.check,
            warmup_requests: options.warmup_requests,
        };
        let mut explainer = Explainer::new(drive.layer.as_ref(), explain);
        let mut source = self.workload.open(self.device_sectors)?;
        let run = Run::new(drive, options).shown(plan.label(), self.progress);
        let ran = run.on(&mut source, &mut explainer)?;
        self.is_stopped |= ran.is_stopped;
        let lost = match &ran.outcome.integrity {
            Integrity::Violation { violation, .. } => Some(violation),
            Integrity::RuleBreaks { live_sectors_destroyed: Some(1..), first, .. } => Some(first),
            Integrity::Word(_) | Integrity::RuleBreaks { .. } => None,
        };
        if let Some(lost) = lost {
            let message = format!("{}: live data was lost: {lost}", plan.label());
            return Err(Failure { kind: FailureKind::Damage, ..Failure::failed(message) });
        }
        Ok(explainer)
    }

    /// Runs a workload on a drive, and returns the latencies of the wanted requests.
    fn latencies(
        &mut self,
        plan: &DrivePlan,
        source: &mut dyn Source,
        wanted: BTreeSet<u64>,
        shortened: BTreeMap<PlanPart, SimDuration>,
        name: &str,
    ) -> Result<BTreeMap<u64, u64>, Failure> {
        let drive = plan.build()?;
        let options = Options { check: false, ..self.prepared.options().for_drive(self.workload, &drive)? };
        let mut observer = Latencies { wanted, found: BTreeMap::new() };
        let run = Run::new(drive, options).shown(name, self.progress).shortened(shortened);
        self.is_stopped |= run.on(source, &mut observer)?.is_stopped;
        Ok(observer.found)
    }

    /// Replays the workload for one request: with the blamed work in no time, and without the writes from the first to
    /// the last that filled the stores.
    fn replay(&mut self, plan: &DrivePlan, request: &Explained) -> Result<Replay, Failure> {
        let number = request.number;
        let one = || BTreeSet::from([number]);
        let mut source = self.workload.open(self.device_sectors)?;
        let name = format!("{}: replay of request {}", plan.label(), human::count(number));
        let timeless = self.latencies(plan, &mut source, one(), request.blamed.clone(), &name)?;
        let mut without = Without::new(self.workload.open(self.device_sectors)?, number, blamed_writes(request));
        let shorter = self.latencies(plan, &mut without, one(), BTreeMap::new(), &name)?;
        Ok(Replay {
            blamed_ns: request.unconventional().0,
            without_blamed_time_ns: timeless.get(&number).copied(),
            without_blamed_writes_ns: shorter.get(&number).copied(),
            writes_left_out: without.left_out(),
        })
    }
}

/// Returns the numbers of the requests that made the work necessary for which `request` waited.
fn blamed_writes(request: &Explained) -> Vec<RangeInclusive<u64>> {
    let fills = request.parts.iter().filter_map(|part| match &part.of {
        Of::OwnWork { fill: Some(fill), .. } => Some(fill.requests.clone()),
        _ => None,
    });
    let mut ranges: Vec<_> = fills.collect();
    ranges.sort_by_key(|range| (*range.start(), *range.end()));
    ranges.dedup();
    ranges
}

impl Prepared {
    /// Simulates `workload` on every drive, and explains the latencies of the chosen requests.
    ///
    /// # Errors
    ///
    /// As [`Simulation::explain`].
    pub fn explain(
        mut self,
        workload: &Workload,
        settings: &ExplainSettings,
        progress: &Progress,
    ) -> Result<Explanations, Failure> {
        let mut warnings = workload.warnings.clone();
        let Room { device_sectors, not_run, .. } = self.make_room(workload, &mut warnings, progress)?;
        let mut runs = Runs { prepared: &self, workload, device_sectors, progress, is_stopped: false };
        let mut drives = Vec::new();
        for (plan, baseline) in self.compared() {
            drives.push(explain_drive(&mut runs, plan, baseline, settings)?);
            if runs.is_stopped {
                break;
            }
        }
        let is_stopped = runs.is_stopped;
        workload.check_unchanged()?;
        let document = ExplainDocument::new(self.command_line(), workload, drives, warnings);
        Ok(Explanations { document, is_stopped, not_run })
    }
}

fn explain_drive(
    runs: &mut Runs<'_>,
    plan: &DrivePlan,
    baseline: Option<&DrivePlan>,
    settings: &ExplainSettings,
) -> Result<ExplainedDrive, Failure> {
    let chosen = match settings.choice {
        Choice::Worst(count) => Chosen::Worst(count),
        Choice::Request(number) => Chosen::Numbers(BTreeSet::from([number])),
        Choice::Percentile(percentile) => {
            let latencies = runs.explained(plan, Chosen::Worst(0))?.latencies_at(percentile / 100.0);
            Chosen::Latency(latencies, 1)
        }
    };
    let explanation = runs.explained(plan, chosen)?.finish();
    if let (Choice::Request(number), true) = (settings.choice, explanation.requests.is_empty() && !runs.is_stopped) {
        return Err(Failure::usage(format!(
            "--request {number}: {} completed no measured request of that number: it was rejected, belongs to the \
             warm-up, or the workload ends before it",
            plan.label()
        ))
        .or_try("a number from 0 on, below the number of requests that imbrex trace info shows"));
    }
    let mut others = BTreeMap::new();
    if let Some(baseline) = baseline {
        let wanted = explanation.requests.iter().map(|request| request.number).collect();
        let mut source = runs.workload.open(runs.device_sectors)?;
        others = runs.latencies(baseline, &mut source, wanted, BTreeMap::new(), baseline.label())?;
    }
    let mut requests = Vec::new();
    for request in &explanation.requests {
        let replay = if settings.replay { Some(runs.replay(plan, request)?) } else { None };
        requests.push(ExplainedRequest::new(request, others.get(&request.number).copied(), replay));
    }
    let drive = plan.build()?;
    let options = runs.prepared.options().for_drive(runs.workload, &drive)?;
    let baseline = baseline.map(|baseline| baseline.label().to_string());
    Ok(ExplainedDrive { baseline, requests, ..explained_of(plan.label(), &drive, &options, &explanation) })
}

/// Returns the explanations of emulated drives that were used by other than a workload, such as a guest. Each is the text of
/// a drive, the drive, and its explanation. `command` is the command line, and `name` names the user of the drives.
pub fn of_emulated<'a>(
    command: Vec<String>,
    name: &str,
    drives: impl IntoIterator<Item = (&'a str, &'a Drive, &'a Explanation)>,
) -> ExplainDocument {
    let of_drive = |(label, drive, explanation): (&str, &Drive, &Explanation)| {
        explained_from(label, drive, "arrival", explanation)
    };
    ExplainDocument::of(command, name, drives.into_iter().map(of_drive).collect(), Vec::new())
}

/// Returns the explanation of one run, without a baseline and replays.
fn explained_of(label: &str, drive: &Drive, options: &Options, explanation: &Explanation) -> ExplainedDrive {
    let latency_from = if counts_from_arrival(options) { "arrival" } else { "entry" };
    explained_from(label, drive, latency_from, explanation)
}

fn explained_from(label: &str, drive: &Drive, latency_from: &str, explanation: &Explanation) -> ExplainedDrive {
    ExplainedDrive {
        drive: label.to_string(),
        baseline: None,
        sector_bytes: drive.disk.sector_bytes,
        latency_from: latency_from.to_string(),
        requests: explanation.requests.iter().map(|request| ExplainedRequest::new(request, None, None)).collect(),
        summary: document::ExplainSummary::new(&explanation.summary),
    }
}

/// Returns an explainer for a run of a simulation that states the causes of its `worst` requests; `None` for 0.
pub(crate) fn explainer(drive: &Drive, options: &Options, worst: usize, device_sectors: u64) -> Option<Explainer> {
    (worst > 0).then(|| {
        let options = ExplainOptions {
            chosen: Chosen::Worst(worst),
            addressed: addressed(drive, device_sectors),
            check: options.check,
            warmup_requests: options.warmup_requests,
        };
        Explainer::new(drive.layer.as_ref(), options)
    })
}

/// Ends the explainer of a run, and returns its part of the document.
pub(crate) fn finished(label: &str, drive: &Drive, options: &Options, explainer: Explainer) -> ExplainedDrive {
    explained_of(label, drive, options, &explainer.finish())
}

/// Returns the number of sectors of `drive` that a workload of `device_sectors` sectors of 512 bytes addresses.
fn addressed(drive: &Drive, device_sectors: u64) -> Option<Sectors> {
    let sectors = device_sectors.div_ceil(u64::from(drive.disk.sector_bytes) / 512);
    (sectors > 0).then_some(Sectors(sectors))
}

/// Returns explanations as text for a terminal.
pub fn text(document: &ExplainDocument) -> String {
    text::of(document)
}

/// Returns a request with the parts of its latency as text: a tree.
pub(crate) fn request_text(drive: &ExplainedDrive, request: &ExplainedRequest) -> String {
    text::request_text(drive, request)
}

/// Returns the sums of causes of all requests of a drive as text: a table.
pub(crate) fn summary_text(drive: &ExplainedDrive) -> String {
    text::summary_text(drive)
}

#[cfg(test)]
mod tests;
