//! `imbrex lab`: an unmodified Linux kernel in virtual time, on emulated drives.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use imbrex::table_form::{Cell, Cells, Column};
use imbrex::{
    Baseline, Failure, Progress, Simulation, SimulationOptions, Workload, WorkloadOptions, drives, human, report,
};
use imbrex_device::EmulatedDrive;
use imbrex_device::drive::{Making, create_file_of, header_of};
use imbrex_disk::SimDuration;
use imbrex_lab::{
    Counts, Ended, FileSystem, Kernel, LabDrive, LabError, Limits, Outcome, Source, Step, Task, drive_name,
    is_installed,
};
use imbrex_safety::contents;
use imbrex_trace::TraceOptions;
use serde_json::{Value, json};

use crate::args::{LabBuildArgs, LabCommand, LabRunArgs};
use crate::error::ExitCode;
use crate::events::EventsFile;
use crate::interrupt;
use crate::json;
use crate::message;
use crate::output;

/// Interval at which the terminal shows the progress of a run.
const SHOW_EVERY: Duration = Duration::from_millis(500);
/// Number of requests whose simulation takes some seconds.
const LONG_LOG: u64 = 1_000_000;
/// Columns of the log of a drive's requests.
const LOG_COLUMNS: &str = "time,op,offset,size,device,_,_";
/// Files of the source that a build compiles, about: Linux 6.12 with the lab's options.
const COMPILED_ABOUT: u64 = 1200;

/// Runs the command.
pub(crate) fn run(command: &LabCommand, quiet: bool) -> Result<ExitCode, Failure> {
    match command {
        LabCommand::Build(args) => build(args, quiet),
        LabCommand::Run(args) => run_task(args, quiet),
    }
}

fn failure(error: LabError) -> Failure {
    Failure::failed(error)
}

fn build(args: &LabBuildArgs, quiet: bool) -> Result<ExitCode, Failure> {
    if args.print_config {
        output::part(Kernel::configuration());
        return Ok(ExitCode::Done);
    }
    let source = args.source.clone().map_or(Source::Debian, Source::File);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(processors, |jobs| jobs as usize);
    let progress = Progress::on_terminal(quiet).stopping_when(interrupt::requested);
    let bar = progress.steps("building the kernel");
    interrupt::answer_with("ending the compilers");
    let mut report = |step: Step| {
        match step {
            Step::Fetch => progress.say("fetching linux-source-6.12 (150 MB) with apt-get"),
            Step::Unpack => progress.say("unpacking the source (1.6 GB, removed at the end)"),
            Step::Configure => progress.say("choosing the kernel's options"),
            Step::Compile(files) => {
                let (files, about) = (human::count(files), human::count(COMPILED_ABOUT));
                bar.set_message(format!("compiled {files} of about {about} files"));
                bar.tick();
            }
        }
        interrupt::requested()
    };
    let kernel = Kernel::build(&source, jobs, &mut report).map_err(failure)?;
    bar.finish();
    if !quiet {
        let folder = kernel.program().parent().unwrap_or(Path::new("")).display();
        progress.say(&format!("Linux is free software under the GNU GPL, version 2: see {folder}/COPYING"));
    }
    output::line(&kernel.program().display().to_string());
    Ok(ExitCode::Done)
}

fn run_task(args: &LabRunArgs, quiet: bool) -> Result<ExitCode, Failure> {
    refuse_twice(&args.images)?;
    args.table.refuse_explanation(args.explain, args.out.as_deref())?;
    if args.file_system.is_some() && !args.keep_fs {
        args.images.iter().try_for_each(|path| refuse_contents(path))?;
    }
    let kernel = match &args.kernel {
        Some(file) => Kernel::of_file(file),
        None => Kernel::cached(),
    };
    let kernel = kernel.map_err(failure)?;
    check_tools(args)?;
    let events = EventsFile::of(&args.events)?;
    let folder = Folder::new(args.out.as_deref())?;
    // A folder without a run would only be in the way of the next try.
    let drives = attach(args, &folder, events.as_ref()).inspect_err(|_| folder.discard())?;
    if let Some(notice) = wrong_clock(&args.command) {
        notice!("{notice}");
    }
    let labels: Vec<String> = drives.iter().map(|drive| drive.drive.drive().label.clone()).collect();
    let ns = |span: SimDuration| Duration::from_nanos(span.0);
    let task = Task {
        command: args.command.clone(),
        file_system: args.file_system,
        makes_file_systems: !args.keep_fs,
        folder: std::env::current_dir().map_err(|error| Failure::failed(format!("the current folder: {error}")))?,
        seed: args.seed,
        memory_bytes: args.memory,
        // Files of an earlier run are not from the future.
        time_of_day_ns: imbrex_lab::TIME_OF_DAY_NS + if args.images.is_empty() { 0 } else { imbrex_lab::YEAR_NS },
        disturbance: None,
    };
    let limits = Limits { cut: args.cut.map(ns), time: ns(args.limit), busy: ns(args.busy_limit) };
    interrupt::answer_with("ending the guest");
    let mut shown = Shown::new(&folder.path, args.json || args.table.table.is_some(), quiet);
    let outcome = imbrex_lab::run(&kernel, &task, drives, &limits, &folder.path, &mut |progress| {
        shown.update(progress);
        interrupt::requested()
    });
    shown.finish();
    let outcome = outcome.map_err(failure)?;
    finish(args, &folder, labels, outcome, events, quiet)
}

/// Returns an error if a program is missing with which the guest prepares its drives.
fn check_tools(args: &LabRunArgs) -> Result<(), Failure> {
    let Some(file_system) = args.file_system.filter(|_| !args.keep_fs) else { return Ok(()) };
    let program = file_system.maker()[0];
    if is_installed(program) {
        return Ok(());
    }
    let package = file_system.package();
    Err(Failure::failed(format!("{program} is not installed")).or_try(format!("`apt-get install {package}`")))
}

/// The folder of a run: that of `--out`, or a temporary one.
struct Folder {
    path: PathBuf,
    is_kept: bool,
    _temporary: Option<tempfile::TempDir>,
}

impl Folder {
    fn new(out: Option<&Path>) -> Result<Folder, Failure> {
        let Some(path) = out else {
            let temporary =
                tempfile::tempdir().map_err(|error| Failure::failed(format!("a temporary folder: {error}")))?;
            let path = temporary.path().to_path_buf();
            return Ok(Folder { path, is_kept: false, _temporary: Some(temporary) });
        };
        std::fs::create_dir(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Failure::failed(format!("{} exists already, and was not changed", path.display()))
                    .or_try("--out with a folder that does not exist")
            }
            _ => Failure::failed(format!("{}: {error}", path.display())),
        })?;
        Ok(Folder { path: path.to_path_buf(), is_kept: true, _temporary: None })
    }

    /// Removes the folder, which this run has made.
    fn discard(&self) {
        // The failure that is reported says more than one of this.
        let _ = std::fs::remove_dir_all(&self.path);
    }

    fn write(&self, name: &str, document: &Value) -> Result<(), Failure> {
        let path = self.path.join(name);
        let text = json::text(document).map_err(Failure::failed)?;
        std::fs::write(&path, text + "\n").map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
    }
}

/// Returns the causes of the longest latencies, if the user asked for them.
fn explained(
    args: &LabRunArgs,
    labels: &[String],
    drives: &mut [(EmulatedDrive, Counts)],
) -> Option<imbrex::explain::ExplainDocument> {
    let found: Vec<_> = drives.iter_mut().filter_map(|(drive, _)| drive.take_explanation()).collect();
    let name = args.command.first()?.to_string_lossy().into_owned();
    let each = labels.iter().zip(drives.iter()).zip(&found);
    let each = each.map(|((label, (drive, _)), explanation)| (label.as_str(), drive.drive(), explanation));
    (!found.is_empty()).then(|| imbrex::explain::of_emulated(output::command_line(), &name, each))
}

/// Returns the drives of the run, new ones first.
fn attach(args: &LabRunArgs, folder: &Folder, events: Option<&EventsFile>) -> Result<Vec<LabDrive>, Failure> {
    let count = args.drives.len() + args.images.len();
    const DRIVES_MAX: usize = 26;
    if count > DRIVES_MAX {
        return Err(Failure::usage(format!("{count} drives: at most {DRIVES_MAX}")));
    }
    let mut attached = Vec::with_capacity(count);
    for (index, words) in args.drives.iter().enumerate() {
        attached.push(if folder.is_kept {
            let (drive, spec) = drives::build(words)?;
            // The image, too, is equal in two runs with one seed.
            let number = (u128::from(args.seed) << 64) | index as u128;
            let making = Making {
                uuid: uuid::Builder::from_custom_bytes(number.to_le_bytes()).into_uuid(),
                ..Making::default()
            };
            let header = header_of(&drive, &spec, &making).map_err(Failure::usage)?;
            let path = folder.path.join(format!("{}.img", drive_name(index)));
            drop(create_file_of(&path, header, drive)?);
            EmulatedDrive::open_file(&path, false)?
        } else {
            drives::emulated(words)?
        });
    }
    for path in &args.images {
        attached.push(EmulatedDrive::open_file(path, false)?);
    }
    let with_log = |(index, drive): (usize, EmulatedDrive)| {
        let log: Option<Box<dyn Write + Send>> = match folder.is_kept {
            true => {
                let path = folder.path.join(format!("{}.csv", drive_name(index)));
                let file =
                    File::create(&path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
                Some(Box::new(BufWriter::new(file)))
            }
            false => None,
        };
        Ok(LabDrive { drive, log })
    };
    for drive in &mut attached {
        refuse_host_managed(args, drive)?;
        if args.explain > 0 {
            drive.explain(args.explain as usize);
        }
        events.map_or(Ok(()), |events| events.record(drive, count))?;
    }
    attached.into_iter().enumerate().map(with_log).collect()
}

/// Returns an error if an image is given twice.
fn refuse_twice(images: &[PathBuf]) -> Result<(), Failure> {
    let whole = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    for (index, path) in images.iter().enumerate() {
        if images[..index].iter().any(|other| whole(other) == whole(path)) {
            return Err(Failure::usage(format!("--image {} is given twice: a drive is one disk", path.display())));
        }
    }
    Ok(())
}

/// Returns a warning if the command is fio with its default clock, the counter of the processor. For that, no virtual time
/// passes.
fn wrong_clock(command: &[OsString]) -> Option<&'static str> {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let is_fio = |word: &str| Path::new(word).file_name().is_some_and(|name| name == "fio");
    let calls_fio = words.iter().any(|word| word.split(|c: char| c.is_whitespace() || ";&|()".contains(c)).any(is_fio));
    let is_told = words.iter().any(|word| word.contains("clocksource"));
    (calls_fio && !is_told).then_some(
        "fio measures with the processor's own counter, for which the guest takes no time: its times are wrong, and jobs \
         with --runtime may not end; give it --clocksource=clock_gettime",
    )
}

/// Returns an error if a file system is to be made on a host-managed drive that it cannot use.
fn refuse_host_managed(args: &LabRunArgs, drive: &EmulatedDrive) -> Result<(), Failure> {
    let Some(file_system) = args.file_system.filter(|name| *name != FileSystem::Btrfs && !args.keep_fs) else {
        return Ok(());
    };
    if !drive.drive().layer.is_host_managed() {
        return Ok(());
    }
    let (label, name) = (&drive.drive().label, file_system.name());
    let message =
        format!("--fs {name}: {label} is host-managed, and mkfs.{name} needs a drive that takes writes in any order");
    Err(Failure::failed(message).or_try("--fs btrfs, or a command that makes the file system with its own options"))
}

/// Returns an error if the drive of an image holds something that a new file system would replace.
fn refuse_contents(path: &Path) -> Result<(), Failure> {
    let found = contents::found(&mut EmulatedDrive::open_file_to_look(path)?);
    let found = found.map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
    let Some(first) = found.first() else { return Ok(()) };
    Err(Failure::failed(format!("--image {} holds {first}, and --fs would replace it", path.display()))
        .or_try("--keep-fs, which mounts the file systems of the drives, or an empty image"))
}

/// The output of the command, and the progress, as the user sees them during the run.
struct Shown {
    /// Files of the command's output and errors; none if only a document is printed.
    output: Option<(Tail, Tail)>,
    last: Instant,
    is_terminal: bool,
    has_line: bool,
}

/// A file that grows.
struct Tail {
    path: PathBuf,
    at: u64,
}

impl Tail {
    fn more(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.at))?;
            file.read_to_end(&mut bytes)
        });
        self.at += read.unwrap_or(0) as u64;
        bytes
    }
}

impl Shown {
    fn new(folder: &Path, prints_document: bool, quiet: bool) -> Shown {
        use std::io::IsTerminal;
        let tail = |name: &str| Tail { path: folder.join(name), at: 0 };
        Shown {
            output: (!prints_document).then(|| (tail("output.txt"), tail("errors.txt"))),
            last: Instant::now(),
            is_terminal: !quiet && std::io::stderr().is_terminal(),
            has_line: false,
        }
    }

    fn update(&mut self, progress: imbrex_lab::Progress) {
        self.print();
        if !self.is_terminal || self.last.elapsed() < SHOW_EVERY {
            return;
        }
        self.last = Instant::now();
        let time = |span: Duration| human::duration_ns(span.as_nanos() as u64);
        let text = match progress.of_command {
            Some(span) => format!("{} of the command in virtual time", time(span)),
            None => format!("{} since the start of the kernel, in virtual time", time(progress.now)),
        };
        message::part(format_args!("\r\x1b[K{text}"));
        self.has_line = true;
    }

    /// Prints the command's output since the last call.
    fn print(&mut self) {
        let Some((out, errors)) = &mut self.output else { return };
        let (out, errors) = (out.more(), errors.more());
        if (!out.is_empty() || !errors.is_empty()) && std::mem::take(&mut self.has_line) {
            message::part(format_args!("\r\x1b[K"));
        }
        output::bytes(&out);
        message::bytes(&errors);
    }

    fn finish(&mut self) {
        self.print();
        if std::mem::take(&mut self.has_line) {
            message::part(format_args!("\r\x1b[K"));
        }
    }
}

/// Ends the drives, stores and prints the results, and returns the exit code.
fn finish(
    args: &LabRunArgs,
    folder: &Folder,
    labels: Vec<String>,
    outcome: Outcome,
    events: Option<EventsFile>,
    quiet: bool,
) -> Result<ExitCode, Failure> {
    let Outcome { ended, begun, command, total, wall, drives, console, exceeded_maps } = outcome;
    let ns = |span: Option<Duration>| span.map(|span| span.as_nanos() as u64);
    let mut rows = Vec::with_capacity(drives.len());
    let mut drives = drives;
    let explained = explained(args, &labels, &mut drives);
    for (index, (mut drive, counts)) in drives.into_iter().enumerate() {
        let lost_bytes: u64 = drive.dirty_ranges().iter().map(|(_, length)| length).sum();
        let is_cut = ended == Ended::Cut;
        if is_cut {
            drop(drive.power_cut());
        } else {
            drive.shut_down()?;
        }
        rows.push(Row {
            name: drive_name(index),
            label: labels[index].clone(),
            counts,
            lost_bytes: if is_cut { lost_bytes } else { 0 },
        });
    }
    // The drives were dropped, which ends their events.
    events.map_or(Ok(()), EventsFile::join)?;
    if folder.is_kept && ended != Ended::Interrupted {
        // The first drives of a run are the new ones.
        for (row, words) in rows.iter().zip(&args.drives).filter(|(row, _)| row.moved() > 0) {
            if row.moved() > LONG_LOG && !quiet {
                message!("making {}.html from {} requests", row.name, human::count(row.moved()));
            }
            // The run is complete without its pages.
            if let Err(failure) = write_page(folder, &row.name, words, total) {
                notice!("{}.html was not written: {failure}", row.name);
            }
        }
    }
    if let (Some(cut), Ended::Command(_)) = (args.cut, &ended) {
        notice!("the command ended before the time of --cut, {}: the power was not cut", human::duration_ns(cut.0));
    }
    let status = match ended {
        Ended::Command(status) | Ended::Preparation(status) => Some(status),
        _ => None,
    };
    let mut document = json!({
        "schema": "imbrex.lab-run/1",
        "command": args.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>(),
        "seed": args.seed,
        "ended": name_of(&ended),
        "status": status,
        "boot_ns": ns(begun),
        "command_ns": ns(command),
        "total_ns": total.as_nanos() as u64,
        "wall_ms": wall.as_millis() as u64,
        "drives": rows.iter().map(Row::document).collect::<Vec<_>>(),
    });
    if folder.is_kept {
        folder.write("summary.json", &document)?;
    }
    if let Some(explained) = &explained {
        let explained = serde_json::to_value(explained).map_err(Failure::failed)?;
        if folder.is_kept {
            folder.write("explain.json", &explained)?;
        }
        document["explain"] = explained;
    }
    if args.json {
        output::json(&document)?;
    } else if let Some(form) = args.table.table {
        output::part(&cells(&rows).in_form(form));
    } else if !quiet {
        message!("{}", sentence(&ended, command, wall));
        message!("{}", cells(&rows).within(output::terminal_columns()).trim_end());
    }
    if let (Some(explained), false) = (&explained, args.json || args.table.table.is_some()) {
        output::part(&format!("\n{}", imbrex::explain::text(explained)));
    }
    if folder.is_kept && !quiet {
        message!("the files of the run are in {}", folder.path.display());
    }
    if exceeded_maps {
        notice!(
            "a process of the guest was ended: it needed more memory than this machine maps for one process, {} pages of 4 KiB; \
             `sudo sysctl vm.max_map_count=1048576` permits 4 GiB",
            std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default().trim()
        );
    }
    Ok(verdict(&ended, &console))
}

/// Writes the page with charts of a new drive: a simulation of the requests in its log, which the drive answers at the same
/// times.
fn write_page(folder: &Folder, name: &str, words: &str, total: Duration) -> Result<(), Failure> {
    // The notices of a simulation on its workload are not news to the user.
    let progress = Progress::silent().stopping_when(interrupt::requested);
    let log = folder.path.join(format!("{name}.csv"));
    let workload = WorkloadOptions {
        trace: TraceOptions { columns: Some(LOG_COLUMNS.into()), ..TraceOptions::default() },
        ..WorkloadOptions::default()
    };
    let workload = Workload::find(&log.to_string_lossy(), &workload, &progress)?;
    // Short runs, too, have curves of many points.
    let window = match total.as_secs() {
        0..10 => SimDuration::from_millis(10),
        10..100 => SimDuration::from_millis(100),
        _ => SimDuration::from_secs(1),
    };
    let simulation = SimulationOptions { arrival: Some("open".into()), window, ..SimulationOptions::default() };
    // A guest would have waited for the answers of another drive, so there is none beside this one.
    let simulation = Simulation::new().baseline(Baseline::None).options(simulation).command(output::command_line());
    let simulation = simulation.drive(words)?;
    let simulated = simulation.run(&workload, &progress)?;
    if simulated.is_stopped {
        return Err(Failure::failed("it was interrupted"));
    }
    let page = report::html(&simulated.summary, &simulated.series, None);
    let path = folder.path.join(format!("{name}.html"));
    std::fs::write(&path, page).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

/// A drive of a run in the results.
struct Row {
    name: String,
    label: String,
    counts: Counts,
    /// Bytes in the volatile cache that a cut of the power lost.
    lost_bytes: u64,
}

impl Row {
    fn document(&self) -> Value {
        let mut document = serde_json::to_value(self.counts).expect("numbers are JSON");
        document["name"] = self.name.as_str().into();
        document["drive"] = self.label.as_str().into();
        document["lost_bytes"] = self.lost_bytes.into();
        document
    }

    /// Returns the requests that move data.
    fn moved(&self) -> u64 {
        self.counts.reads + self.counts.writes
    }

    fn requests(&self) -> u64 {
        let Counts { reads, writes, flushes, trims, .. } = self.counts;
        reads + writes + flushes + trims
    }
}

fn cells(rows: &[Row]) -> Cells {
    let columns = vec![
        Column::text("name", "disk"),
        Column::text("drive", "drive"),
        Column::numeric("reads", "reads"),
        Column::numeric("writes", "writes"),
        Column::numeric("flushes", "flushes"),
        Column::numeric("trims", "trims"),
        Column::numeric("read_bytes", "read"),
        Column::numeric("written_bytes", "written"),
        Column::numeric("latency_mean_ns", "mean latency"),
        Column::numeric("latency_max_ns", "longest"),
    ];
    let count = |number: u64| Cell::number(number as f64, human::count(number));
    let bytes = |number: u64| Cell::number(number as f64, human::bytes(number));
    let time = |ns: u64| Cell::number(ns as f64, human::duration_ns(ns));
    let row = |row: &Row| {
        let counts = &row.counts;
        let mean_ns = counts.latency_sum_ns.checked_div(row.requests()).unwrap_or(0);
        vec![
            Cell::text(&row.name),
            Cell::text(&row.label),
            count(counts.reads),
            count(counts.writes),
            count(counts.flushes),
            count(counts.trims),
            bytes(counts.read_bytes),
            bytes(counts.written_bytes),
            time(mean_ns),
            time(counts.latency_max_ns),
        ]
    };
    Cells { columns, rows: rows.iter().map(row).collect() }
}

/// Returns the word for the end of a run in documents.
fn name_of(ended: &Ended) -> &'static str {
    match ended {
        Ended::Command(_) => "command",
        Ended::Preparation(_) => "preparation",
        Ended::Cut => "power-cut",
        Ended::Limit => "limit",
        Ended::Deadlock => "deadlock",
        Ended::Busy(_) => "busy",
        Ended::Kernel => "kernel",
        Ended::Interrupted => "interrupted",
    }
}

fn sentence(ended: &Ended, command: Option<Duration>, wall: Duration) -> String {
    let time = |span: Duration| human::duration_ns(span.as_nanos() as u64);
    let wall = format!("{} on the wall clock", time(wall));
    match (ended, command) {
        (Ended::Cut, _) => format!("the power was cut as asked; {wall}"),
        (_, Some(command)) => format!("the command took {} of virtual time, {wall}", time(command)),
        _ => format!("the command did not end; {wall}"),
    }
}

/// Prints why a run failed, and returns the exit code.
fn verdict(ended: &Ended, console: &str) -> ExitCode {
    let with_console = |words: &str| match console.is_empty() {
        true => message!("imbrex: {words}"),
        false => message!("imbrex: {words}; the console of the kernel ends with:\n{console}"),
    };
    match ended {
        Ended::Command(0) | Ended::Cut => return ExitCode::Done,
        Ended::Command(status) => message!("imbrex: the command ended with status {status}"),
        Ended::Preparation(status) => {
            with_console(&format!("the guest could not prepare its drives (status {status})"));
        }
        Ended::Limit => message!("imbrex: the limit of virtual time was reached (--limit)"),
        Ended::Deadlock => with_console("the guest waits for an event that never comes"),
        Ended::Busy(span) => message!(
            "imbrex: the guest computed for {} s without a wait: a program that waits busily never ends, since no time \
             passes (--busy-limit)",
            span.as_secs()
        ),
        Ended::Kernel => with_console("the kernel ended before the command did"),
        Ended::Interrupted => message!("imbrex: interrupted: the caches of the drives were written back"),
    }
    ExitCode::Failed
}
