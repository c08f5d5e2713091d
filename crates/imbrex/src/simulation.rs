//! One workload on several drives, side by side, and beside each what a conventional drive would do.
//!
//! ```
//! use imbrex::{Progress, Simulation, Workload};
//!
//! # fn main() -> Result<(), imbrex::Failure> {
//! let progress = Progress::silent();
//! let workload = Workload::named("rw=randwrite,bs=4k,size=1GiB,number_ios=500", &progress)?;
//! let simulation = Simulation::new().drive("imr-1t+track-map")?;
//! let simulated = simulation.run(&workload, &progress)?;
//! assert_eq!(simulated.summary.drives[0].completed, 500);
//! println!("{}", simulated.table());
//! # Ok(())
//! # }
//! ```

use imbrex_disk::{Command, SimDuration, SimTime};
use imbrex_layer::Plan;
use imbrex_sim::observer::IoRecord;
use imbrex_sim::schedule::Schedule;
use imbrex_sim::{Arrival, Drive, DriveResult, DriveSeries, Fit, Observer, Options, Summary, WorkloadSummary};

use crate::drives::{self, DrivePlan, FitChoice};
use crate::error::Failure;
use crate::files::Folder;
use crate::options::SimulationOptions;
use crate::progress::Progress;
use crate::run::sinks::{Sinks, Spools};
use crate::run::{Run, many};
use crate::sweep;
use crate::table;
use crate::workload::{Counted, Workload, WorkloadCounts};

/// More than any drive holds: an exbibyte.
const BYTES_MAX: u64 = 1 << 60;

/// What the drives are compared with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Baseline {
    /// Each with the conventional drive of its own geometry.
    #[default]
    Conventional,
    /// All with this drive.
    Drive(String),
    /// With nothing.
    None,
}

/// A simulation to be made.
#[derive(Clone, Debug, Default)]
pub struct Simulation {
    drives: Vec<DrivePlan>,
    baseline: Baseline,
    options: SimulationOptions,
    command: Vec<String>,
}

/// What a simulation came to.
pub struct Simulated {
    /// The results, as `summary.json` has them.
    pub summary: Summary,
    /// The curves, in the order of the drives.
    pub series: Vec<DriveSeries>,
    /// Whether it was stopped: then the results are those of the requests read until then.
    pub is_stopped: bool,
    /// Why drives that were asked for did not run, a line each.
    pub not_run: Vec<String>,
    /// Where its files are, if they were asked for.
    pub folder: Option<Folder>,
}

/// What came of one drive.
struct RanDrive {
    result: DriveResult,
    series: DriveSeries,
    /// What it was asked: the same for all, unless a generator runs by simulated time.
    counts: WorkloadCounts,
    is_stopped: bool,
}

impl Simulation {
    /// Without drives yet: run so, it takes one of every kind.
    pub fn new() -> Simulation {
        Simulation::default()
    }

    /// Adds the drive that `text` names, `PROFILE[+LAYER][:key=value,…]` or a TOML file, or the several that it names where a
    /// parameter takes several values ([`crate::sweep`]).
    pub fn drive(mut self, text: &str) -> Result<Simulation, Failure> {
        for text in sweep::expand(text)? {
            self.drives.push(DrivePlan::parse(&text)?);
        }
        Ok(self)
    }

    /// What the drives are compared with.
    pub fn baseline(self, baseline: Baseline) -> Simulation {
        Simulation { baseline, ..self }
    }

    /// How requests reach the drives, and what is kept.
    pub fn options(self, options: SimulationOptions) -> Simulation {
        Simulation { options, ..self }
    }

    /// The words that ask for it, for who wants to make it again: they stand in the results.
    pub fn command(self, command: Vec<String>) -> Simulation {
        Simulation { command, ..self }
    }

    /// Adds what is missing, one drive of every kind and the baselines, and finds out whether results can be written:
    /// before a long trace is read.
    pub fn prepared(mut self) -> Result<Prepared, Failure> {
        if self.drives.is_empty() {
            self.drives =
                drives::one_of_every_kind().iter().map(|text| DrivePlan::parse(text)).collect::<Result<_, _>>()?;
        }
        self.add_baselines()?;
        let sinks = Sinks::prepare(&self.options)?;
        Ok(Prepared { simulation: self, sinks })
    }

    /// Runs `workload` on every drive, and writes the files that the options ask for.
    pub fn run(self, workload: &Workload, progress: &Progress) -> Result<Simulated, Failure> {
        self.prepared()?.run(workload, progress)
    }

    fn add_baselines(&mut self) -> Result<(), Failure> {
        match &self.baseline {
            Baseline::None => {}
            Baseline::Drive(text) => {
                let mut baseline = DrivePlan::parse(text)?;
                baseline.is_baseline = true;
                self.drives.push(baseline);
            }
            // One for each geometry; with conventional drives alone the first of them is what the others compare with.
            Baseline::Conventional => {
                for index in 0..self.drives.len() {
                    let label = self.drives[index].baseline_label();
                    let is_there = self.drives.iter().any(|drive| drive.label() == label);
                    if !self.drives[index].is_conventional() && !is_there {
                        self.drives.push(self.drives[index].baseline()?);
                    }
                }
            }
        }
        Ok(())
    }

    /// Which drive each is compared with: the baseline given, else the conventional drive of its own geometry; a conventional
    /// one stands for itself.
    fn baseline_of(&self, index: usize) -> Option<usize> {
        let drive = &self.drives[index];
        match &self.baseline {
            Baseline::None => None,
            _ if drive.is_baseline => Some(index),
            Baseline::Drive(_) => self.drives.iter().position(|other| other.is_baseline),
            Baseline::Conventional if drive.is_conventional() => Some(index),
            Baseline::Conventional => {
                let label = drive.baseline_label();
                self.drives.iter().position(|other| other.label() == label)
            }
        }
    }

    /// Fills in the slowdown of each drive over its baseline: of all requests, or of those that both completed before they
    /// were stopped.
    fn compare(&self, ran: &mut [RanDrive]) {
        let is_stopped = ran.iter().any(|ran| ran.is_stopped);
        for index in 0..self.drives.len() {
            let Some(own) = self.baseline_of(index) else { continue };
            ran[index].result.compared_with = Some(self.drives[own].label().to_string());
            let both = ran[index].result.completed.min(ran[own].result.completed);
            let [time_ns, baseline_ns] = if is_stopped {
                ran[index].result.compared_requests = Some(both);
                [&ran[index], &ran[own]].map(|ran| ran.time_of(both))
            } else {
                [ran[index].result.duration_ns as f64, ran[own].result.duration_ns as f64]
            };
            // Of nothing there is no ratio.
            ran[index].result.slowdown = (both > 0).then(|| time_ns / baseline_ns.max(1.0));
        }
    }
}

impl RanDrive {
    /// When the first `requests` were completed, nanoseconds since the beginning: as exactly as the windows tell.
    fn time_of(&self, requests: u64) -> f64 {
        let (mut before, width) = (0, self.series.window_ns as f64);
        for (index, window) in self.series.windows.iter().enumerate() {
            let within = window.reads + window.writes;
            if before + within >= requests && within > 0 {
                let share = requests.saturating_sub(before) as f64 / within as f64;
                return ((index as f64 + share) * width).min(self.result.duration_ns as f64);
            }
            before += within;
        }
        self.result.duration_ns as f64
    }
}

/// A simulation whose drives are known, and whose files can be written.
pub struct Prepared {
    simulation: Simulation,
    sinks: Sinks,
}

impl Prepared {
    /// Runs `workload` on every drive, and writes the files that the options ask for.
    pub fn run(mut self, workload: &Workload, progress: &Progress) -> Result<Simulated, Failure> {
        self.sinks.refuse_inputs(workload.inputs())?;
        let not_run = self.fit(workload, progress)?;
        let drives = &self.simulation.drives;
        // Where drives do not grow, a generator makes its requests for what its words name: they are wrapped or scaled.
        let device_sectors = smallest(drives).max(workload.end_sectors().unwrap_or(0));
        let jobs = self.simulation.options.jobs;
        let mut ran = match workload.open_for_all(device_sectors, drives.len(), many::at_once(jobs))? {
            Some(sources) => many::together(sources, |index, source| {
                self.run_one(workload, source, (index, &drives[index]), progress)
            })?,
            None => many::of_each(drives, jobs, |index, drive| {
                self.run_one(workload, workload.open(device_sectors)?, (index, drive), progress)
            })?,
        };
        self.simulation.compare(&mut ran);
        let summary = summary_of(self.simulation.command, workload, &ran);
        let is_stopped = ran.iter().any(|ran| ran.is_stopped);
        let series: Vec<_> = ran.into_iter().map(|ran| ran.series).collect();
        let folder = self.sinks.finish(&summary, &series)?;
        Ok(Simulated { summary, series, is_stopped, not_run, folder })
    }

    /// Makes every drive hold the workload. Drives that cannot are left out, and why is returned, as long as others can.
    fn fit(&mut self, workload: &Workload, progress: &Progress) -> Result<Vec<String>, Failure> {
        let Some(end) = workload.end_sectors() else { return Ok(Vec::new()) };
        let bytes = end.checked_mul(512).filter(|&bytes| bytes <= BYTES_MAX).ok_or_else(|| {
            Failure::failed(format!("the workload reaches to sector {end}, which is past the end of any drive"))
                .or_try("a look at that record: an address that large is mostly damage, or another format")
        })?;
        let choice = self.simulation.options.fit;
        let (mut fitted, mut failures) = (Vec::new(), Vec::new());
        for mut drive in std::mem::take(&mut self.simulation.drives) {
            match drive.fit(choice, bytes) {
                Ok(remark) => {
                    remark.into_iter().for_each(|remark| progress.say(&remark));
                    fitted.push(drive);
                }
                Err(failure) if choice == FitChoice::Error => return Err(failure),
                Err(failure) => failures.push(failure),
            }
        }
        self.simulation.drives = fitted;
        if self.simulation.drives.iter().all(|drive| drive.is_baseline) {
            if let Some(failure) = failures.into_iter().next() {
                return Err(failure);
            }
            return Ok(Vec::new());
        }
        Ok(failures.into_iter().map(|failure| failure.message).collect())
    }

    fn run_one(
        &self,
        workload: &Workload,
        mut source: Counted,
        (index, plan): (usize, &DrivePlan),
        progress: &Progress,
    ) -> Result<RanDrive, Failure> {
        source.begin();
        let drive = plan.build()?;
        let options = self.simulation.options.for_drive(workload, &drive)?;
        let mut observer = Watch { spools: self.sinks.spools(plan.label())? };
        let mut ran = Run::new(drive, options).shown(plan.label(), progress).on(&mut source, &mut observer)?;
        ran.wall_seconds = (ran.wall_seconds - source.waited().as_secs_f64()).max(0.0);
        let (mut result, series) = ran.summary(plan.label());
        self.sinks.keep(index, observer.spools, &result)?;
        result.baseline = plan.is_baseline;
        Ok(RanDrive { result, series, counts: source.counts(), is_stopped: ran.is_stopped })
    }
}

/// Sectors (of 512 bytes) that every drive has: the space of a generator that names none.
fn smallest(drives: &[DrivePlan]) -> u64 {
    drives.iter().map(|drive| drive.capacity_bytes() / 512).min().unwrap_or(0)
}

impl SimulationOptions {
    /// What they come to for `workload` on `drive`.
    fn for_drive(&self, workload: &Workload, drive: &Drive) -> Result<Options, Failure> {
        let depth = self.queue.unwrap_or_else(|| workload.default_depth());
        let arrival = self.arrival.as_deref().unwrap_or_else(|| workload.default_arrival());
        let schedule = self.schedule.as_deref().unwrap_or(&drive.host.schedule);
        let arrival = Arrival::named(arrival, depth).ok_or_else(|| {
            Failure::usage(format!("no arrival is called '{arrival}'")).or_try("fixed-queue, closed, open or flat-out")
        })?;
        Ok(Options {
            arrival,
            schedule: Schedule::named(schedule, SimDuration(drive.host.age_limit_ns)).ok_or_else(|| {
                Failure::usage(format!("no scheduler is called '{schedule}'")).or_try("fifo, elevator or sptf")
            })?,
            write_cache_bytes: self.write_cache_bytes.unwrap_or(drive.host.write_cache_bytes),
            read_ahead_bytes: self.read_ahead_bytes.unwrap_or(drive.host.read_ahead_bytes),
            fit: match self.fit {
                FitChoice::Wrap => Fit::Wrap,
                FitChoice::Scale => Fit::Scale(workload.end_sectors().unwrap_or(0)),
                FitChoice::Grow | FitChoice::Error => Fit::Reject,
            },
            warmup_requests: self.warmup_requests,
            window: self.window,
            check: self.check,
        })
    }
}

fn summary_of(command: Vec<String>, workload: &Workload, ran: &[RanDrive]) -> Summary {
    // A generator that runs by simulated time asks each drive for what it can take: the first stands for all.
    let counts = workload.counts.unwrap_or(ran[0].counts);
    let mut rejected = std::collections::BTreeMap::new();
    if workload.facts.malformed > 0 {
        rejected.insert("malformed".to_string(), workload.facts.malformed);
    }
    let asked = WorkloadSummary {
        name: workload.name.clone(),
        format: workload.format.clone(),
        requests: counts.requests,
        reads: counts.reads,
        writes: counts.writes,
        flushes: counts.flushes,
        trims: counts.trims,
        read_bytes: counts.read_bytes,
        write_bytes: counts.write_bytes,
        rejected,
        span_ns: counts.span_ns,
        lba_end: counts.end_sectors,
        sha256: workload.sha256.clone(),
    };
    let drives: Vec<DriveResult> = ran.iter().map(|ran| ran.result.clone()).collect();
    Summary::new(env!("CARGO_PKG_VERSION"), command, workload.seed, asked, drives)
}

impl Simulated {
    /// The results to look at first, as a table for people: a drive a line, and remarks below.
    pub fn table(&self) -> String {
        self.table_within(None)
    }

    /// The same, in so many columns of a terminal: where a line for each drive does not fit, a block for each.
    pub fn table_within(&self, columns: Option<usize>) -> String {
        let mut text = table::render(&self.summary.drives, columns);
        for remark in table::remarks(&self.summary.drives) {
            text += &format!("\n\n{remark}");
        }
        text
    }
}

/// Passes records on to the files, and ends the run when one of them fails.
struct Watch {
    spools: Spools,
}

impl Observer for Watch {
    fn progress(&mut self, _requests: u64, _now: SimTime) -> bool {
        let ios_failed = self.spools.ios.as_ref().is_some_and(|spool| spool.has_failed());
        !ios_failed && !self.spools.plans.as_ref().is_some_and(|spool| spool.has_failed())
    }

    fn wants_ios(&self) -> bool {
        self.spools.ios.is_some()
    }

    fn io(&mut self, record: &IoRecord) {
        if let Some(spool) = &mut self.spools.ios {
            spool.record(record);
        }
    }

    fn wants_plans(&self) -> bool {
        self.spools.plans.is_some()
    }

    fn plan(&mut self, now: SimTime, commands: &[Command], plan: &Plan) {
        if let Some(spool) = &mut self.spools.plans {
            spool.record(now, commands, plan);
        }
    }
}
