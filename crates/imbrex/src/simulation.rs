//! One workload on several drives, and the comparison of each with a conventional drive.
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
use imbrex_sim::document::AddressSpan;
use imbrex_sim::explain::Explainer;
use imbrex_sim::observer::IoRecord;
use imbrex_sim::operation::Operation;
use imbrex_sim::results::{LatencyRatio, LatencyRatios, LatencySummary};
use imbrex_sim::schedule::Schedule;
use imbrex_sim::{Arrival, Drive, DriveResult, DriveSeries, Fit, Observer, Options, Summary, WorkloadSummary};

use crate::drives::{self, DrivePlan, FitChoice, ProfileFiles};
use crate::error::Failure;
use crate::explain;
use crate::explain::document::{ExplainDocument, ExplainedDrive};
use crate::files::Folder;
use crate::human;
use crate::options::SimulationOptions;
use crate::progress::Progress;
use crate::run::sinks::{Sinks, Spools};
use crate::run::{Run, many};
use crate::seeds::{self, DriveFigures};
use crate::simulate_options::{ARRIVALS, SCHEDULES};
use crate::sweep::texts;
use crate::table;
use crate::workload::{Counted, Workload, WorkloadCounts};
use imbrex_units::names::suggestion;

/// Largest accepted end of a workload in bytes: an exbibyte, more than any drive holds.
const BYTES_MAX: u64 = 1 << 60;

/// Choice of the drive that each simulated drive is compared with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Baseline {
    /// Each drive is compared with the conventional drive of its own profile that has the same geometry, mechanics and
    /// host side. The simulation adds that drive if it is not among the given ones. A conventional drive is compared
    /// with itself.
    #[default]
    Conventional,
    /// All drives are compared with the drive of this text, which the simulation adds.
    Drive(String),
    /// No drive is added and none is compared.
    None,
}

/// A simulation that has not run yet: its drives, its baseline and its options.
#[derive(Clone, Debug, Default)]
pub struct Simulation {
    drives: Vec<DrivePlan>,
    baseline: Baseline,
    options: SimulationOptions,
    profile_files: ProfileFiles,
    command: Vec<String>,
}

/// Results of a simulation that has run.
pub struct Simulated {
    /// Results of all drives, baselines included: the contents of `summary.json`.
    pub summary: Summary,
    /// Time series and latency histograms of each drive, in the order of the drives in `summary`.
    pub series: Vec<DriveSeries>,
    /// Whether [`Progress::should_stop`] ended the run of a drive early. The results then cover the requests served
    /// until the stop.
    pub is_stopped: bool,
    /// Messages for drives, baselines included, that did not run because they cannot be made to hold the workload, one
    /// per drive. Empty if all ran.
    pub not_run: Vec<String>,
    /// Folder of the result files; `None` if [`SimulationOptions::out`] was not given.
    pub folder: Option<Folder>,
    /// Causes of the longest latencies of each drive; `None` if [`SimulationOptions::explain`] is 0.
    pub explained: Option<ExplainDocument>,
}

/// Results of one drive.
struct RanDrive {
    result: DriveResult,
    series: DriveSeries,
    /// Requests that the drive took from the workload: equal for all drives, unless a generator depends on simulated
    /// time.
    counts: WorkloadCounts,
    is_stopped: bool,
    explained: Option<ExplainedDrive>,
    /// Message that events of the drive were left out.
    left_out: Option<String>,
}

impl Simulation {
    /// Creates a simulation with default options and without drives. If no drive is added, the simulation takes one
    /// drive for each translation layer that is not host-managed (see [`drives::one_of_every_kind`]).
    pub fn new() -> Simulation {
        Simulation::default()
    }

    /// Adds the drive that `text` names: `PROFILE[+LAYER][:key=value,…]`, where PROFILE may be a TOML file. The word `all`
    /// adds one drive for each translation layer that is not host-managed. If a
    /// parameter has several values, such as `1%|2%` or the range `1%..10%/1%`, adds one drive for each combination of
    /// values.
    ///
    /// # Errors
    ///
    /// If the text or a range in it cannot be parsed, the profile does not exist, or a drive cannot be built.
    pub fn drive(mut self, text: &str) -> Result<Simulation, Failure> {
        for text in texts::expand(text)? {
            self.drives.push(DrivePlan::parse_with(&text, &self.profile_files)?);
        }
        Ok(self)
    }

    /// Adds the six drives of the demonstration if `workload` is its name and no drive was added. Otherwise changes nothing.
    ///
    /// # Errors
    ///
    /// If a drive cannot be built.
    pub fn with_default_drives(self, workload: &str) -> Result<Simulation, Failure> {
        if workload != drives::DEMO_WORKLOAD || !self.drives.is_empty() {
            return Ok(self);
        }
        drives::DEMO.iter().try_fold(self, |simulation, text| simulation.drive(text))
    }

    /// Sets the contents of TOML files of drive profiles, which are used in place of the files on disk. Affects only
    /// drives that are added afterwards, and a baseline given as [`Baseline::Drive`].
    pub fn profile_files(self, profile_files: ProfileFiles) -> Simulation {
        Simulation { profile_files, ..self }
    }

    /// Sets the choice of the drive that the others are compared with. By default, each drive is compared with the
    /// conventional drive that differs from it in recording and layer alone ([`Baseline::Conventional`]).
    pub fn baseline(self, baseline: Baseline) -> Simulation {
        Simulation { baseline, ..self }
    }

    /// Replaces all options: the way in which requests reach the drives, and the results that are kept.
    pub fn options(self, options: SimulationOptions) -> Simulation {
        Simulation { options, ..self }
    }

    /// Sets the command line, one argument per element, that the results name as the one which reproduces this
    /// simulation.
    pub fn command(self, command: Vec<String>) -> Simulation {
        Simulation { command, ..self }
    }

    /// Completes the simulation before a long trace is read. If there is no drive, adds one for each translation layer
    /// that is not host-managed. Adds the baselines, and creates and reserves the folder of the result files.
    ///
    /// # Errors
    ///
    /// If a drive or baseline cannot be built, if the folder cannot be written or is in use by another run, or if it
    /// holds a file of another program under the name of a result file.
    pub fn prepared(mut self) -> Result<Prepared, Failure> {
        if self.drives.is_empty() {
            self.drives =
                drives::one_of_every_kind().iter().map(|text| DrivePlan::parse(text)).collect::<Result<_, _>>()?;
        }
        self.add_baselines()?;
        let sinks = Sinks::prepare(&self.options)?;
        Ok(Prepared { simulation: self, sinks })
    }

    /// Simulates `workload` on every drive, and writes the result files that the options ask for.
    ///
    /// # Errors
    ///
    /// If a drive cannot be built, the workload fits on no drive or cannot be read, an option has a wrong value, or the
    /// folder or a result file cannot be written. [`Simulation::prepared`] and [`Prepared::run`] list all causes.
    pub fn run(self, workload: &Workload, progress: &Progress) -> Result<Simulated, Failure> {
        self.prepared()?.run(workload, progress)
    }

    fn add_baselines(&mut self) -> Result<(), Failure> {
        match &self.baseline {
            Baseline::None => {}
            Baseline::Drive(text) => {
                let mut baseline = DrivePlan::parse_with(text, &self.profile_files)?;
                baseline.is_baseline = true;
                self.drives.push(baseline);
            }
            Baseline::Conventional => {
                for index in 0..self.drives.len() {
                    if self.conventional_of(index).is_none() {
                        self.drives.push(self.drives[index].baseline()?);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the index of the conventional drive that drive number `index` is compared with: the drive itself, if it
    /// is conventional, or else the first one that is its baseline. Returns `None` if no drive is.
    fn conventional_of(&self, index: usize) -> Option<usize> {
        let drive = &self.drives[index];
        if drive.is_conventional() {
            return Some(index);
        }
        self.drives.iter().position(|other| other.is_baseline_of(drive))
    }

    /// Returns the index of the drive that drive number `index` is compared with: the given baseline, or else the
    /// conventional drive that differs from it in recording and layer alone. A baseline and a conventional drive are
    /// compared with themselves.
    fn baseline_of(&self, index: usize) -> Option<usize> {
        let drive = &self.drives[index];
        match &self.baseline {
            Baseline::None => None,
            _ if drive.is_baseline => Some(index),
            Baseline::Drive(_) => self.drives.iter().position(|other| other.is_baseline),
            Baseline::Conventional => self.conventional_of(index),
        }
    }

    /// Fills in the ratios of each drive to its baseline. The ratio of durations covers all requests, or, after an
    /// early stop, those that both drives completed. The ratios of latencies cover the requests that each drive
    /// completed.
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
            // There is no ratio of times if no request completed.
            let ratio = (both > 0).then(|| time_ns / baseline_ns.max(1.0));
            let latencies = latency_ratios(&ran[index].result, &ran[own].result);
            let result = &mut ran[index].result;
            (result.duration_ratio, result.slowdown) = (ratio, ratio);
            result.latency_ratio = Some(latencies);
        }
    }
}

/// Returns the latencies of `drive` divided by those of `baseline`.
fn latency_ratios(drive: &DriveResult, baseline: &DriveResult) -> LatencyRatios {
    let ratio = |(own, count): (LatencySummary, u64), (other, others): (LatencySummary, u64)| {
        let of = |own: u64, other: u64| own as f64 / other.max(1) as f64;
        (count > 0 && others > 0).then(|| LatencyRatio { mean: of(own.mean, other.mean), p99: of(own.p99, other.p99) })
    };
    let all = |drive: &DriveResult| (drive.latency_ns.all, drive.completed);
    let read = |drive: &DriveResult| (drive.latency_ns.read, drive.host.reads);
    let write = |drive: &DriveResult| (drive.latency_ns.write, drive.host.writes);
    LatencyRatios {
        all: ratio(all(drive), all(baseline)),
        read: ratio(read(drive), read(baseline)),
        write: ratio(write(drive), write(baseline)),
    }
}

/// Returns a warning if the queue was full for more than a tenth of the time, so that requests entered it later than
/// the workload says.
fn full_queue(result: &DriveResult) -> Option<String> {
    let before = result.latency_ns.before_queue;
    if before.max == 0 || result.queue_full_ns < result.duration_ns / 10 {
        return None;
    }
    let share = 100.0 * result.queue_full_ns as f64 / result.duration_ns.max(1) as f64;
    Some(format!(
        "{}: the queue of {} requests was full for {share:.0} % of the time; requests waited before it, which no latency \
         includes. With --arrival open, latencies include it",
        result.drive, result.queue_depth,
    ))
}

impl RanDrive {
    /// Returns when the first `requests` requests were completed, in nanoseconds since the beginning. Within a window
    /// the time is interpolated.
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

/// A simulation that is ready to run: its drives are complete and its result files can be written.
pub struct Prepared {
    simulation: Simulation,
    sinks: Sinks,
}

impl Prepared {
    /// Simulates `workload` on every drive, and writes the result files that the options ask for. A stop by `progress`
    /// is no error: the results are partial.
    ///
    /// # Errors
    ///
    /// If a result file would replace an input, if an option has a wrong value or does not apply, if the workload fits
    /// on no requested drive (with [`FitChoice::Error`]: not on every drive), if the workload has no request after the
    /// warm-up, if the workload cannot be read or was changed, or if a result file cannot be written.
    pub fn run(mut self, workload: &Workload, progress: &Progress) -> Result<Simulated, Failure> {
        self.sinks.refuse_inputs(workload.inputs())?;
        let mut warnings = workload.warnings.clone();
        let removal = self.sinks.removal();
        removal.iter().for_each(|removal| progress.say(removal));
        warnings.extend(removal);
        let Room { device_sectors, span, not_run } = self.make_room(workload, &mut warnings, progress)?;
        let mut ran = self.run_all(workload, device_sectors, Kept::Files, progress)?;
        workload.check_unchanged()?;
        self.simulation.compare(&mut ran);
        let seeds = self.other_seeds(workload, &mut ran, device_sectors, &mut warnings, progress)?;
        if !ran.iter().any(|ran| ran.is_stopped) {
            let served = ran.iter().map(|ran| ran.counts.requests).max().unwrap_or(0);
            self.simulation.options.check_warmup(served)?;
        }
        if ran.iter().any(|ran| ran.is_stopped) {
            warnings.push("interrupted: the results are those of the requests read until then".into());
        }
        if !ran.iter().any(|ran| ran.is_stopped || ran.result.completed > 0) {
            let warning = format!("{}: no drive completed any of its requests: all were rejected", workload.name);
            progress.say(&warning);
            warnings.push(warning);
        }
        for warning in ran.iter().filter_map(|ran| ran.left_out.clone()) {
            progress.say(&warning);
            warnings.push(warning);
        }
        for warning in ran.iter().filter_map(|ran| full_queue(&ran.result)) {
            progress.say(&warning);
            warnings.push(warning);
        }
        let explained: Vec<_> = ran.iter_mut().filter_map(|ran| ran.explained.take()).collect();
        let explained = (!explained.is_empty())
            .then(|| ExplainDocument::new(self.simulation.command.clone(), workload, explained, warnings.clone()));
        let mut summary = summary_of(self.simulation.command, workload, &ran);
        summary.warnings = warnings;
        summary.seeds = seeds;
        summary.workload.address_span = span.map(|span| AddressSpan { bytes: span.sectors * 512, set_by: span.set_by });
        let is_stopped = ran.iter().any(|ran| ran.is_stopped);
        let series: Vec<_> = ran.into_iter().map(|ran| ran.series).collect();
        let folder = self.sinks.finish(&summary, &series, explained.as_ref())?;
        Ok(Simulated { summary, series, is_stopped, not_run, folder, explained })
    }

    /// Checks the options against the workload, and makes every drive accept its addresses.
    ///
    /// # Errors
    ///
    /// As [`Prepared::run`].
    pub(crate) fn make_room(
        &mut self,
        workload: &Workload,
        warnings: &mut Vec<String>,
        progress: &Progress,
    ) -> Result<Room, Failure> {
        if let Some(requests) = workload.expected_requests() {
            self.simulation.options.check_warmup(requests)?;
        }
        self.simulation.options.check_seeds(workload)?;
        let not_run = self.fit(workload, progress, warnings)?;
        warnings.extend(not_run.iter().cloned());
        // If drives do not grow, the space that a generator's words name may exceed the drives. Addresses past their
        // end are then wrapped or scaled.
        let span = self.simulation.span_of(workload);
        let device_sectors = span.as_ref().map_or(0, |span| span.sectors).max(workload.end_sectors().unwrap_or(0));
        Ok(Room { device_sectors, span, not_run })
    }

    /// Returns each drive that is no baseline, with the drive that it is compared with, if it is another one.
    pub(crate) fn compared(&self) -> impl Iterator<Item = (&DrivePlan, Option<&DrivePlan>)> {
        let drives = &self.simulation.drives;
        let own = drives.iter().enumerate().filter(|(_, drive)| !drive.is_baseline);
        own.map(|(index, drive)| {
            let baseline = self.simulation.baseline_of(index).filter(|&baseline| baseline != index);
            (drive, baseline.map(|baseline| &drives[baseline]))
        })
    }

    /// Returns the options of the simulation.
    pub(crate) fn options(&self) -> &SimulationOptions {
        &self.simulation.options
    }

    /// Returns the command line that the results name.
    pub(crate) fn command_line(&self) -> Vec<String> {
        self.simulation.command.clone()
    }

    /// Makes every drive accept the addresses of the workload, in the way of [`SimulationOptions::fit`]. Removes drives
    /// that cannot, and returns the reasons, if another drive can.
    ///
    /// # Errors
    ///
    /// The workload reaches past [`BYTES_MAX`]; a drive does not fit with [`FitChoice::Error`]; or none of the
    /// requested drives fits.
    fn fit(
        &mut self,
        workload: &Workload,
        progress: &Progress,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<String>, Failure> {
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
                    remark.iter().for_each(|remark| progress.say(remark));
                    warnings.extend(remark);
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

    /// Runs the workload on every drive, and returns the results in the order of the drives.
    fn run_all(
        &self,
        workload: &Workload,
        device_sectors: u64,
        kept: Kept,
        progress: &Progress,
    ) -> Result<Vec<RanDrive>, Failure> {
        let (drives, jobs) = (&self.simulation.drives, self.simulation.options.jobs);
        match workload.open_for_all(device_sectors, drives.len(), many::at_once(jobs))? {
            Some(sources) => many::together(sources, |index, source| {
                self.run_one(workload, source, (index, &drives[index]), (device_sectors, kept), progress)
            }),
            None => many::of_each(drives, jobs, |index, drive| {
                self.run_one(workload, workload.open(device_sectors)?, (index, drive), (device_sectors, kept), progress)
            }),
        }
    }

    /// Runs the workload with the seeds that follow its own, and stores the means and intervals of all figures in
    /// `ran`, the results with its own seed. Returns all seeds, or none if the options ask for one. If the user stops
    /// the runs, the means are those of the runs that ended.
    fn other_seeds(
        &self,
        workload: &Workload,
        ran: &mut [RanDrive],
        device_sectors: u64,
        warnings: &mut Vec<String>,
        progress: &Progress,
    ) -> Result<Vec<u64>, Failure> {
        let count = u64::from(self.simulation.options.seeds);
        if count == 1 || ran.iter().any(|ran| ran.is_stopped) {
            return Ok(Vec::new());
        }
        let mut figures: Vec<DriveFigures> = ran.iter().map(|_| DriveFigures::default()).collect();
        let mut seeds = Vec::new();
        for step in 0..count {
            let seed = workload.seed + step;
            if step == 0 {
                figures.iter_mut().zip(&*ran).for_each(|(figures, ran)| figures.add(seed, &ran.result));
            } else {
                let with_seed = workload.with_seed(seed).expect("only a generator runs with several seeds");
                let mut others = self.run_all(&with_seed, device_sectors, Kept::Figures, progress)?;
                if others.iter().any(|ran| ran.is_stopped) {
                    ran.iter_mut().for_each(|ran| ran.is_stopped = true);
                    break;
                }
                self.simulation.compare(&mut others);
                figures.iter_mut().zip(&others).for_each(|(figures, ran)| figures.add(seed, &ran.result));
            }
            seeds.push(seed);
        }
        for (figures, ran) in figures.into_iter().zip(ran) {
            if let Some(seed) = figures.finish(&mut ran.result) {
                let warning =
                    format!("{}: data was lost with seed {seed}, not with seed {}", ran.result.drive, workload.seed);
                progress.say(&warning);
                warnings.push(warning);
            }
        }
        Ok(seeds)
    }

    fn run_one(
        &self,
        workload: &Workload,
        mut source: Counted,
        (index, plan): (usize, &DrivePlan),
        (device_sectors, kept): (u64, Kept),
        progress: &Progress,
    ) -> Result<RanDrive, Failure> {
        source.begin();
        let drive = plan.build()?;
        let options = self.simulation.options.for_drive(workload, &drive)?;
        let (mut spools, mut explainer) = (Spools::default(), None);
        if kept == Kept::Files {
            spools = self.sinks.spools(plan.label(), drive.layer.as_ref(), index, self.simulation.drives.len())?;
            explainer = explain::explainer(&drive, &options, self.simulation.options.explain, device_sectors);
        }
        let mut observer = Watch::new(spools, explainer);
        let mut ran = Run::new(drive, options).shown(plan.label(), progress).on(&mut source, &mut observer)?;
        ran.wall_seconds = (ran.wall_seconds - source.waited().as_secs_f64()).max(0.0);
        let (mut result, series) = ran.summary(plan.label());
        let left_out = if kept == Kept::Files { self.sinks.keep(index, observer.spools, &result)? } else { None };
        result.baseline = plan.is_baseline;
        let (is_stopped, counts) = (ran.is_stopped, source.counts());
        let explained = observer
            .explainer
            .map(|explainer| explain::finished(plan.label(), &ran.outcome.drive, &ran.options, explainer));
        Ok(RanDrive { result, series, counts, is_stopped, explained, left_out })
    }
}

/// The results that a run keeps: its result files, or the figures in memory only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Files,
    Figures,
}

/// The address space of a workload on all drives, and the drives that cannot hold it.
pub(crate) struct Room {
    /// Number of sectors of 512 bytes that the workload addresses.
    pub device_sectors: u64,
    span: Option<Span>,
    /// Messages for drives that were removed.
    pub not_run: Vec<String>,
}

/// The part of the drives that a generator addresses if its words do not give it in bytes.
struct Span {
    /// Number of sectors of 512 bytes, from the first on.
    sectors: u64,
    /// Text of the drive that sets the number.
    set_by: String,
}

impl Simulation {
    /// Returns the part of all drives that `workload` addresses: as much as the smallest drive offers, or as the
    /// options say. Returns `None` if the workload gives its addresses itself.
    fn span_of(&self, workload: &Workload) -> Option<Span> {
        if !workload.needs_span() {
            return None;
        }
        if let Some((sectors, set_by)) = self.options.span.clone() {
            return Some(Span { sectors, set_by });
        }
        let smallest = self.drives.iter().min_by_key(|drive| drive.capacity_bytes())?;
        Some(Span { sectors: smallest.capacity_bytes() / 512, set_by: smallest.label().to_string() })
    }
}

impl SimulationOptions {
    /// Checks that a workload of `requests` has requests behind the warm-up.
    fn check_warmup(&self, requests: u64) -> Result<(), Failure> {
        let warmup = self.warmup_requests;
        if warmup == 0 || requests > warmup {
            return Ok(());
        }
        let problem = format!("--warmup {warmup}: the workload has {requests} requests, so none is measured");
        Err(Failure::usage(problem).or_try("a smaller --warmup"))
    }

    /// Checks that a workload that is to run with several seeds has one.
    fn check_seeds(&self, workload: &Workload) -> Result<(), Failure> {
        let seeds = self.seeds;
        if seeds <= 1 {
            return Ok(());
        }
        if workload.with_seed(workload.seed).is_some() {
            return seeds::check_last(workload.seed, seeds);
        }
        let problem = format!("--seeds {seeds} does not apply: '{}' is a trace, and has no seed", workload.name);
        Err(Failure::usage(problem).or_try("leave --seeds out"))
    }

    /// Returns the engine's options for `workload` on `drive`, with the defaults of both filled in.
    pub(crate) fn for_drive(&self, workload: &Workload, drive: &Drive) -> Result<Options, Failure> {
        let depth = self.queue.unwrap_or_else(|| workload.default_depth());
        let arrival = self.arrival.as_deref().unwrap_or_else(|| workload.default_arrival());
        let schedule = self.schedule.as_deref().unwrap_or(&drive.host.schedule);
        let arrival = Arrival::named(arrival, depth).ok_or_else(|| {
            Failure::usage(format!("no arrival is called '{arrival}'{}", suggestion(arrival, ARRIVALS)))
                .or_try("fixed-queue, closed, open or flat-out")
        })?;
        if let (Some(depth), Arrival::Open | Arrival::FlatOut) = (self.queue, arrival) {
            let name = arrival.name();
            return Err(Failure::usage(format!(
                "--queue {depth} does not apply to the arrival {name}: it bounds no queue"
            ))
            .or_try("--arrival fixed-queue or --arrival closed"));
        }
        Ok(Options {
            arrival,
            schedule: Schedule::named(schedule, SimDuration(drive.host.age_limit_ns)).ok_or_else(|| {
                Failure::usage(format!("no scheduler is called '{schedule}'{}", suggestion(schedule, SCHEDULES)))
                    .or_try("fifo, elevator or sptf")
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
    // The requests of a generator that depends on simulated time differ between drives. The summary shows those of the
    // first drive.
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
        address_span: None,
        sha256: workload.sha256.clone(),
    };
    let drives: Vec<DriveResult> = ran.iter().map(|ran| ran.result.clone()).collect();
    Summary::new(env!("CARGO_PKG_VERSION"), command, workload.seed, asked, drives)
}

impl Simulated {
    /// Returns the main results as a text table, with one line per drive, and remarks below.
    pub fn table(&self) -> String {
        self.table_within(None)
    }

    /// Returns the table of [`Simulated::table`] for a terminal of `columns` columns; `None` for any width. If the
    /// longest line does not fit, the results of each drive are spread over several lines.
    pub fn table_within(&self, columns: Option<usize>) -> String {
        let mut text = table::render(&self.summary.drives, columns);
        if let Some(span) = &self.summary.workload.address_span {
            text += &format!("\n\n{}", span.sentence(&human::bytes(span.bytes)));
        }
        if let Some((words, first)) = seeds::in_words(&self.summary.seeds).zip(self.summary.seeds.first()) {
            text += &format!(
                "\n\n±: half of the 95 % interval of the mean over {words}; the lines below are of seed {first}"
            );
        }
        for remark in table::remarks(&self.summary.drives) {
            text += &format!("\n\n{remark}");
        }
        text
    }
}

/// Passes records to the result files and the explainer, and ends the run when writing a file fails.
struct Watch {
    spools: Spools,
    explainer: Option<Explainer>,
    wants_ios: bool,
    wants_operations: bool,
}

impl Watch {
    fn new(spools: Spools, explainer: Option<Explainer>) -> Watch {
        let wants_operations = explainer.is_some() || spools.events.is_some();
        Watch { wants_ios: spools.ios.is_some() || wants_operations, wants_operations, spools, explainer }
    }
}

impl Observer for Watch {
    fn progress(&mut self, _requests: u64, _now: SimTime) -> bool {
        let ios_failed = self.spools.ios.as_ref().is_some_and(|spool| spool.has_failed());
        let events_failed = self.spools.events.as_ref().is_some_and(|spool| spool.has_failed());
        !ios_failed && !events_failed && !self.spools.plans.as_ref().is_some_and(|spool| spool.has_failed())
    }

    fn wants_ios(&self) -> bool {
        self.wants_ios
    }

    fn io(&mut self, record: &IoRecord) {
        if let Some(spool) = &mut self.spools.ios {
            spool.record(record);
        }
        if let Some(events) = &mut self.spools.events {
            events.completed(record);
        }
        if let Some(explainer) = &mut self.explainer {
            explainer.io(record);
        }
    }

    fn wants_operations(&self) -> bool {
        self.wants_operations
    }

    fn entered(&mut self, sequence: u64, device: u32, command: &Command) {
        if let Some(explainer) = &mut self.explainer {
            explainer.entered(sequence, device, command);
        }
    }

    fn operation(&mut self, operation: &Operation<'_>) {
        if let Some(events) = &mut self.spools.events {
            events.operation(operation);
        }
        if let Some(explainer) = &mut self.explainer {
            explainer.operation(operation);
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
