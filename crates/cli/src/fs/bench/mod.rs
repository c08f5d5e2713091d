//! `imbrex fs bench`: runs the loads of Singh 2014 §5.2 and Jin 2014 §III. On devices that are not mounted it runs in
//! virtual time at the speed of the drive; in a mounted directory of any file system it runs by the wall clock.
//!
//! ```text
//!   run ─► phases, rows over time ─► document (summary.json, --json) ─► page (report.html)
//!                                └─► table
//! ```
//!
//! With several seeds, `seeds` runs the load once for each seed, and adds means and intervals to the output of the
//! first run.
//!
//! Invariants:
//! 1. In virtual time two runs of one seed on equal devices give the same files, byte for byte.

mod charts;
mod document;
mod page;
mod seeds;
mod served;
mod table;

use std::path::Path;
use std::sync::Arc;

use imbrex::files::{self, Folder};
use imbrex::{Failure, Progress};
use imbrex_device::EmulatedDrive;
use imbrex_fs::device::{BLOCK_BYTES, ByCause, Geometry};
use imbrex_fs::load::bench::timeline::{Grain, Row, State, Timeline};
use imbrex_fs::load::bench::{self, BenchOptions, Benchmark, Phase, Sizes};
use imbrex_fs::load::{Files, InDirectory, LoadError, OnCore, run_now};
use imbrex_fs::{Device, Executor, Fs};
use indicatif::ProgressBar;
use serde_json::Value;

use self::seeds::OverSeeds;
use super::args::BenchArgs;
use super::devices::{self, Devices, Purpose};
use super::{Offline, status};
use crate::chart_files;
use crate::error::ExitCode;
use crate::events::EventsFile;
use crate::interrupt;
use crate::output;
use crate::{json, message};
use imbrex_units::names::suggestion;

/// Executes the benchmark, or lists all benchmarks if none is named.
pub(super) fn run(args: &BenchArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let Some(name) = &args.name else { return list(args) };
    let benchmark = bench::named(name).ok_or_else(|| {
        let known: Vec<&str> = bench::ALL.iter().map(|benchmark| benchmark.name).collect();
        Failure::usage(format!("there is no benchmark '{name}'{}", suggestion(name, known.iter().copied())))
            .or_try(known.join(", "))
    })?;
    if args.places.is_empty() {
        return Err(Failure::usage("no place to run it").or_try("the devices of a file system, or a mounted directory"));
    }
    seeds::check(args)?;
    check_place(args)?;
    check_events(args)?;
    let events = EventsFile::of(&args.events)?;
    let folder = args.out.as_deref().map(files::prepare).transpose()?;
    if let (Some(folder), Some(path)) = (&folder, &args.events.trace_events) {
        folder.refuse_as_output("--trace-events", path)?;
    }
    // Held until the files are written.
    let _reserved = folder.as_ref().map(files::Folder::reserve).transpose()?;
    let sizes = sizes(args, benchmark)?;
    let progress = Progress::on_terminal(quiet || args.json);
    folder.as_ref().and_then(files::Folder::removal).iter().for_each(|removal| {
        progress.say(removal);
        message::keep(removal.to_string());
    });
    let bar = progress.operations(benchmark.name);
    let load = Load { args, benchmark, sizes, bar: &bar };
    let ran = match &args.places[..] {
        [directory] if directory.is_dir() => in_directory(load, directory)?,
        _ if args.seeds > 1 => seeds::run(load)?,
        _ => {
            let executor = Executor::in_virtual_time();
            let record = |drive: &mut EmulatedDrive| {
                events.as_ref().map_or(Ok(()), |events| events.record(drive, args.places.len()))
            };
            let devices = Devices::open_prepared(&executor, &args.places, Purpose::Work, true, &record)?;
            check_time(&devices)?;
            let ran = on_devices(load, Offline::mount(executor.clone(), devices, Purpose::Work)?, args.seed)?;
            // Drops the drives, which ends their traces.
            executor.shut_down();
            ran
        }
    };
    bar.finish_and_clear();
    events.map_or(Ok(()), EventsFile::join)?;
    let document = document::of(args, benchmark, sizes, &ran);
    if let Some(folder) = folder {
        write_files(&folder, &document, &page::html(&document, &ran))?;
        let (shown, report) = (folder.path().display(), folder.file("report.html"));
        if !quiet {
            progress.say(&format!("results are in {shown}: open {}", report.display()));
        }
    }
    if let Some(folder) = args.charts.charts.as_deref() {
        chart_files::save_figures(folder, &charts::all(&ran), quiet)?;
    }
    if args.json {
        output::line(&json::text(&output::with_warnings(&document)?).map_err(Failure::failed)?);
    } else if let Some(form) = args.table.table {
        output::part(&table::cells(&ran).in_form(form));
    } else {
        output::line(&table::text(&ran));
    }
    Ok(ExitCode::Done)
}

fn write_files(folder: &Folder, document: &Value, page: &str) -> Result<(), Failure> {
    let text = json::text(document).map_err(Failure::failed)?;
    folder.write("summary.json", |out| writeln!(out, "{text}"))?;
    folder.write("report.html", |out| out.write_all(page.as_bytes()))?;
    Ok(())
}

/// Refuses a file of events for a run without events.
fn check_events(args: &BenchArgs) -> Result<(), Failure> {
    if args.events.trace_events.is_none() {
        return Ok(());
    }
    if args.seeds > 1 {
        return Err(Failure::usage(format!("--trace-events does not apply to --seeds {}", args.seeds))
            .or_try("one run with a --seed"));
    }
    match &args.places[..] {
        [directory] if directory.is_dir() => {
            let words = format!("--trace-events does not apply to the directory {}", directory.display());
            Err(Failure::usage(words).or_try("images of emulated drives: their time is simulated"))
        }
        _ => Ok(()),
    }
}

/// Refuses devices none of which has a simulated time: every figure of the benchmark would be about no time.
fn check_time(devices: &Devices) -> Result<(), Failure> {
    for path in &devices.paths {
        if devices::has_simulated_time(path)? {
            return Ok(());
        }
    }
    let names: Vec<_> = devices.paths.iter().map(|path| path.display().to_string()).collect();
    Err(Failure::failed(format!(
        "{}: no drive with a simulated time, so there is nothing to measure",
        names.join(", ")
    ))
    .or_try("a file system on images of `imbrex drive create`, or mount this one and name the directory"))
}

/// Refuses options of a mounted directory for devices, and the other way round.
fn check_place(args: &BenchArgs) -> Result<(), Failure> {
    match (&args.places[..], args.page_cache, &args.served) {
        ([directory], Some(_), _) if directory.is_dir() => {
            let directory = directory.display();
            let problem =
                format!("--page-cache does not apply to the directory {directory}: its cache is the kernel's own");
            Err(Failure::usage(problem).or_try("leave --page-cache out, or give the devices of the file system"))
        }
        ([directory], None, _) if directory.is_dir() => Ok(()),
        (_, _, Some(_)) => {
            Err(Failure::usage("--served is for a directory").or_try("without it: the time is the drive's own"))
        }
        (_, _, None) => Ok(()),
    }
}

/// Prints the list of benchmarks, to which no option applies.
fn list(args: &BenchArgs) -> Result<ExitCode, Failure> {
    let given = [
        ("--files", args.files.is_some()),
        ("--file-size", args.file_size.is_some()),
        ("--operations", args.operations.is_some()),
        ("--threads", args.threads.is_some()),
        ("--seeds", args.seeds > 1),
        ("--page-cache", args.page_cache.is_some()),
        ("--served", args.served.is_some()),
        ("--json", args.json),
        ("--table", args.table.table.is_some()),
        ("--out", args.out.is_some()),
        ("--trace-events", args.events.trace_events.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::usage(format!("{option} is for a benchmark, and none is named"))
            .or_try("imbrex fs bench NAME DEVICE; without a name and options, the list of benchmarks"));
    }
    let mut lines = Vec::new();
    for benchmark in bench::ALL {
        lines.push(format!("{:<12} {}", benchmark.name, benchmark.about));
        lines.push(format!("{:<12} {}; {}", "", benchmark.source, sizes_in_words(&benchmark.defaults)));
    }
    output::line(&lines.join("\n"));
    Ok(ExitCode::Done)
}

fn sizes_in_words(sizes: &Sizes) -> String {
    let mut words = Vec::new();
    words.extend(sizes.files.map(|files| format!("--files {files}")));
    words.extend(sizes.file_bytes.map(|bytes| format!("--file-size {bytes}")));
    words.extend(sizes.operations.map(|operations| format!("--operations {operations}")));
    words.extend(sizes.workers.map(|workers| format!("--threads {workers}")));
    words.join(" ")
}

/// Returns the sizes of the benchmark: the user's, or else its defaults.
fn sizes(args: &BenchArgs, benchmark: &Benchmark) -> Result<Sizes, Failure> {
    let choose = |flag: &str, chosen: Option<u64>, own: Option<u64>| match (chosen, own) {
        (Some(_), None) => Err(Failure::usage(format!("{flag}: '{}' has no such size", benchmark.name))
            .or_try(sizes_in_words(&benchmark.defaults))),
        (Some(0), _) => Err(Failure::usage(format!("{flag} must not be 0"))),
        (chosen, own) => Ok(chosen.or(own)),
    };
    let least = benchmark.file_bytes_least;
    if let Some(bytes) = args.file_size.filter(|&bytes| 0 < bytes && bytes < least) {
        let words = format!("--file-size {bytes}: '{}' writes a file in units of {least} bytes", benchmark.name);
        return Err(Failure::usage(words).or_try(format!("at least --file-size {least}")));
    }
    let own = benchmark.defaults;
    Ok(Sizes {
        files: choose("--files", args.files, own.files)?,
        file_bytes: choose("--file-size", args.file_size, own.file_bytes)?,
        operations: choose("--operations", args.operations, own.operations)?,
        workers: choose("--threads", args.threads, own.workers)?,
    })
}

/// A benchmark to run.
#[derive(Clone, Copy)]
struct Load<'a> {
    args: &'a BenchArgs,
    benchmark: &'static Benchmark,
    sizes: Sizes,
    /// Line on the terminal that shows the progress.
    bar: &'a ProgressBar,
}

/// Result of a run.
pub(super) struct BenchOutput {
    /// Phases of the run.
    phases: Vec<Timed>,
    /// Start of the run, by the clock of the file system.
    began_ns: u64,
    /// Operations over time.
    rows: Vec<Row>,
    /// Results that only a run on devices has; `None` for a run in a directory.
    on_devices: Option<OnDevices>,
    /// Means over this run and others with different seeds; `None` for one seed.
    over_seeds: Option<OverSeeds>,
}

/// Results that only a run on devices has.
struct OnDevices {
    /// State of the file system at the start of the run.
    before: State,
    /// Each device, with its time and traffic by cause.
    devices: Vec<Used>,
    /// Number of drives of the array that may be lost; `None` if the file system is no array.
    parity: Option<u8>,
    /// Status of the file system at the end.
    found: Value,
}

/// A device that the run used.
struct Used {
    name: String,
    geometry: Geometry,
    /// Whether the device holds metadata.
    has_metadata: bool,
    spent: ByCause,
}

impl BenchOutput {
    fn is_virtual(&self) -> bool {
        self.on_devices.is_some()
    }

    /// Returns the time from the start of the run to the end of the last phase.
    fn elapsed_ns(&self) -> u64 {
        self.phases.last().map_or(0, |(phase, ..)| phase.began_ns + phase.elapsed_ns - self.began_ns)
    }
}

/// Returns a function that counts an operation on the bar and in the timeline, and returns whether to continue.
fn watch(bar: &ProgressBar, timeline: &Timeline) -> bench::Watch {
    let (bar, timeline) = (bar.clone(), timeline.clone());
    Arc::new(move |done| {
        bar.inc(1);
        timeline.note(done);
        !interrupt::requested()
    })
}

/// A phase; its simulated time in nanoseconds, if that is known; and its costs, for a run on devices. In a directory
/// the simulated time is that of the served drive.
type Timed = (Phase, Option<u64>, Option<Costs>);

/// Costs and savings of a phase besides its data.
#[derive(Clone, Copy, Default, Debug)]
struct Costs {
    /// Bytes written only for records.
    record_bytes: u64,
    /// Number of pieces of files read from the hot zone, and of all pieces read; `None` without a hot zone.
    hot_reads: Option<(u64, u64)>,
}

impl Costs {
    /// Returns the costs since the file system was mounted.
    fn so_far(fs: &Fs) -> Costs {
        let status = fs.status();
        let counters = status.hot.counters;
        Costs {
            record_bytes: status.usage.records.1 * BLOCK_BYTES as u64,
            hot_reads: (status.hot.blocks > 0).then_some((counters.hits, counters.hits + counters.misses)),
        }
    }

    fn since(self, before: Costs) -> Costs {
        let reads = |(hits, all): (u64, u64)| {
            let (hits_before, all_before) = before.hot_reads.unwrap_or_default();
            (hits - hits_before, all - all_before)
        };
        Costs { record_bytes: self.record_bytes - before.record_bytes, hot_reads: self.hot_reads.map(reads) }
    }
}

fn in_directory(load: Load<'_>, directory: &Path) -> Result<BenchOutput, Failure> {
    let Load { args, benchmark, sizes, bar } = load;
    let files = InDirectory::new(directory, &args.folder).map_err(|error| failure(args, error))?;
    let began_ns = files.now_ns();
    let timeline = Timeline::new(began_ns, Grain::default());
    let asked = BenchOptions { sizes, seed: args.seed, watch: watch(bar, &timeline) };
    let simulated_ns = || args.served.as_deref().map(served::simulated_ns).transpose();
    let mut before_ns = simulated_ns()?;
    let mut disk = Vec::new();
    let ended = |phase: &Phase| {
        bar.set_message(phase.name);
        disk.push(simulated_ns().map(|now_ns| {
            let took_ns = now_ns.zip(before_ns).map(|(now_ns, before_ns)| now_ns - before_ns);
            before_ns = now_ns;
            took_ns
        }));
    };
    let phases = run_now(bench::run(benchmark, &files, &asked, ended)).map_err(|error| failure(args, error))?;
    let phases = phases.into_iter().zip(disk).map(|(phase, disk)| Ok((phase, disk?, None)));
    let phases: Vec<Timed> = phases.collect::<Result<_, Failure>>()?;
    Ok(BenchOutput { phases, began_ns, rows: timeline.rows(files.now_ns(), None), on_devices: None, over_seeds: None })
}

/// Runs the benchmark with this seed, then unmounts the file system and shuts its devices down.
fn on_devices(load: Load<'_>, offline: Offline, seed: u64) -> Result<BenchOutput, Failure> {
    let Load { args, benchmark, sizes, bar } = load;
    let Offline { executor, devices, fs, .. } = offline;
    let (own, bar, all) = (fs.clone(), bar.clone(), devices.all.clone());
    let (folder, page_cache) = (args.folder.clone(), args.page_cache_bytes());
    let work = async move {
        let files = OnCore::new(&own, &folder).await?.with_page_cache(page_cache);
        let began_ns = files.now_ns();
        let timeline = Timeline::new(began_ns, Grain::default());
        let asked = BenchOptions { sizes, seed, watch: watch(&bar, &timeline) };
        let spent_before: Vec<ByCause> = all.iter().map(Device::spent).collect();
        let (mut costs, mut before, state) = (Vec::new(), Costs::so_far(&own), State::of(&own, &all));
        let ended = |phase: &Phase| {
            bar.set_message(phase.name);
            let now = Costs::so_far(&own);
            costs.push(now.since(before));
            before = now;
        };
        let looking = timeline.look_at(own.executor(), &own, &all);
        let phases = bench::run(benchmark, &files, &asked, ended).await?;
        drop(looking);
        let timed = phases.into_iter().zip(costs).map(|(phase, costs)| {
            let elapsed_ns = phase.elapsed_ns;
            (phase, Some(elapsed_ns), Some(costs))
        });
        let (phases, rows) = (timed.collect(), timeline.rows(files.now_ns(), Some(State::of(&own, &all))));
        let devices = used(&own, &all, &spent_before);
        let parity = own.superblock().shape.map(|shape| shape.parity);
        let on_devices = Some(OnDevices { before: state, devices, parity, found: Value::Null });
        Ok::<_, LoadError>(BenchOutput { phases, began_ns, rows, on_devices, over_seeds: None })
    };
    let outcome = devices::complete(&executor, work)?;
    let ending = fs.clone();
    devices::run(&executor, async move { ending.unmount().await })?;
    devices.shut_down()?;
    let mut ran = outcome.map_err(|error| failure(args, error))?;
    if let Some(on_devices) = &mut ran.on_devices {
        on_devices.found = status::document(&fs, &devices.paths, None);
    }
    Ok(ran)
}

/// Returns the devices, with their time and traffic since the state in `before`.
fn used(fs: &Fs, devices: &[Device], before: &[ByCause]) -> Vec<Used> {
    let copies = fs.status().copies;
    let used = |(device, before): (&Device, &ByCause)| Used {
        name: device.name().to_string(),
        geometry: device.geometry(),
        has_metadata: copies.iter().any(|(_, name, _)| name == device.name()),
        spent: device.spent().since(before),
    };
    devices.iter().zip(before).map(used).collect()
}

/// Returns the failure of a load, with a remedy if its folder exists already or space ran out.
fn failure(args: &BenchArgs, error: LoadError) -> Failure {
    let failure = Failure::failed(&error);
    if error.operation == "mkdir" && error.path.ends_with(&args.folder) {
        return failure.or_try("--folder NAME with a name that is not taken");
    }
    if error.is_no_space {
        return failure.or_try("a larger drive, or fewer --files or --operations");
    }
    failure
}
