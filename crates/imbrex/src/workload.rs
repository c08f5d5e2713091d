//! Workloads: from a name to a source of requests, which can be opened once for each drive.
//!
//! A trace is read through once before any drive runs, for its counts, its last sector, its hash and its busiest
//! device. Standard input is copied to a temporary file for that.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use imbrex_disk::{Operation, SimTime};
use imbrex_trace::generators::{self, BuiltIn, WorkloadSpec};
use imbrex_trace::rows::{Row, Rows};
use imbrex_trace::survey::DeviceSummary;
use imbrex_trace::{Device, Facts, Input, Request, SkipMalformed, Source, TraceError, When};
use sha2::{Digest, Sha256};

use crate::error::Failure;
use crate::files::{self, Stamp};
use crate::human;
use crate::progress::Progress;
use crate::run::shared::{self, Share};
use imbrex_units::names::suggestion;

/// Options for reading a workload: a trace, or a generator.
#[derive(Clone, Debug, Default)]
pub struct WorkloadOptions {
    /// Options for reading a trace. An error if one of them is given for a generator.
    pub trace: imbrex_trace::TraceOptions,
    /// Seed of a generator's random numbers, which replaces the seed in its words. `None` keeps that seed; by default,
    /// it is 1. A seed is an error for a trace.
    pub seed: Option<u64>,
    /// Maximum number of requests, taken from the beginning of the workload; `None` for all.
    pub limit: Option<u64>,
}

/// A workload that was found and, if it is a trace, read through for its counts. It can be opened any number of times.
pub struct Workload {
    /// Name of the workload in the results: the path of the trace or TOML file, the text in fio's words, the name of a
    /// built-in workload, or `standard input`.
    pub name: String,
    /// Name of the trace's format; `table` for requests in memory, `generator` for a generator.
    pub format: String,
    /// SHA-256 in hexadecimal: of the trace file's bytes as stored, of the rows in memory, or of the generator's
    /// description including its seed.
    pub sha256: String,
    /// Seed of a generator's random numbers; 0 for a trace and for requests in memory.
    pub seed: u64,
    /// Counts of the requests that a run of the trace yields, up to the limit of requests. If the trace has several
    /// devices, only one device counts: the one that the user chose, or else the one with the most requests. `None` for
    /// a generator.
    pub counts: Option<WorkloadCounts>,
    /// Records left out and decisions made by the trace reader while the trace was read through; empty for a generator.
    pub facts: Facts,
    /// Notices for the user about the way in which the workload was read, such as a device that was chosen. They were
    /// already passed to [`Progress::say`].
    pub warnings: Vec<String>,
    limit: Option<u64>,
    /// Files that the workload is read from.
    inputs: Vec<PathBuf>,
    /// All devices of a trace with several.
    devices: Option<Vec<DeviceSummary>>,
    kind: Kind,
}

enum Kind {
    Trace { origin: Origin, name: String, options: imbrex_trace::TraceOptions },
    Words(WorkloadSpec),
    BuiltIn { entry: &'static BuiltIn, seed: Option<u64> },
}

/// Storage of a trace's requests.
enum Origin {
    /// An open file, and its stamp before it was read through.
    File(Mutex<File>, Stamp),
    Rows(Arc<dyn Rows>),
}

/// Format name of requests that the caller holds in memory.
const ROWS_FORMAT: &str = "table";

/// Returns the stamp of `file`, which is called `name`.
fn stamp_of(file: &Mutex<File>, name: &str) -> Result<Stamp, Failure> {
    let metadata = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner).metadata();
    let metadata = metadata.map_err(|error| Failure::failed(format!("cannot look at {name}: {error}")))?;
    Ok(files::stamp(&metadata))
}

impl Origin {
    /// Returns the origin of the requests in `file`, which is called `name`.
    fn file(file: File, name: &str) -> Result<Origin, Failure> {
        let file = Mutex::new(file);
        let stamp = stamp_of(&file, name)?;
        Ok(Origin::File(file, stamp))
    }

    /// Opens the requests from the first on, and returns them with the name of their format.
    fn open(
        &self,
        name: &str,
        options: &imbrex_trace::TraceOptions,
    ) -> Result<(Box<dyn Source>, &'static str), Failure> {
        match self {
            Origin::File(file, _) => {
                let opened = imbrex_trace::open(Input::file(name, reopened(file, name)?), options)?;
                Ok((opened.source, opened.format.name))
            }
            Origin::Rows(rows) => Ok((imbrex_trace::rows::open(name, rows.clone(), options), ROWS_FORMAT)),
        }
    }

    /// Starts a thread that hashes the contents.
    fn hashing(&self, name: &str) -> Result<std::thread::JoinHandle<Result<String, String>>, Failure> {
        Ok(match self {
            Origin::File(file, _) => {
                let raw = reopened(file, name)?;
                std::thread::spawn(move || hash(raw).map_err(|error| error.to_string()))
            }
            Origin::Rows(rows) => {
                let rows = rows.clone();
                std::thread::spawn(move || Ok(hash_rows(rows.as_ref())))
            }
        })
    }
}

/// Counts of the requests of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WorkloadCounts {
    /// Number of all requests counted: reads, writes, flushes and trims.
    pub requests: u64,
    /// Number of reads among the requests counted.
    pub reads: u64,
    /// Number of writes among the requests counted.
    pub writes: u64,
    /// Number of flushes among the requests counted.
    pub flushes: u64,
    /// Number of trims among the requests counted.
    pub trims: u64,
    /// Sum of the lengths of all reads counted, in bytes.
    pub read_bytes: u64,
    /// Sum of the lengths of all writes counted, in bytes.
    pub write_bytes: u64,
    /// Latest time of a request in nanoseconds, counted from time 0, at which a trace's first request is. 0 if no
    /// request has a time of its own.
    pub span_ns: u64,
    /// One past the last sector of 512 bytes that a request addresses; 0 if none addresses a sector. Requests of length
    /// 0 do not count.
    pub end_sectors: u64,
}

impl WorkloadCounts {
    fn see(&mut self, request: &Request) {
        let command = &request.command;
        let bytes = command.sectors as u64 * 512;
        self.requests += 1;
        match command.operation {
            Operation::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Operation::Write => {
                self.writes += 1;
                self.write_bytes += bytes;
            }
            Operation::Flush => self.flushes += 1,
            Operation::Trim => self.trims += 1,
        }
        if command.sectors > 0 {
            self.end_sectors = self.end_sectors.max(command.end().0);
        }
        if let When::At(at) = request.when {
            self.span_ns = self.span_ns.max(at.0);
        }
    }
}

impl Workload {
    /// Finds the workload called `word`, with default options. `word` is a trace file, `-` for standard input, a
    /// built-in workload, a generator in fio's words, or a `.toml` file with such words. An existing file precedes a
    /// built-in workload of the same name. A trace is read through at once, and `progress` displays how far. Of a trace
    /// with several devices, only the one with the most requests is taken.
    ///
    /// # Errors
    ///
    /// If no workload has this name, if it cannot be read or parsed, if a trace has no requests, or if `progress` asks
    /// to stop.
    pub fn named(word: &str, progress: &Progress) -> Result<Workload, Failure> {
        Workload::find(word, &WorkloadOptions::default(), progress)
    }

    /// Finds the workload called `word` with the options `args`. `word` is a trace file, `-` for standard input, a
    /// built-in workload, a generator in fio's words, or a `.toml` file with such words. A trace is read through at
    /// once. Of a trace with several devices, only the one with the most requests is taken, unless `args` name one.
    ///
    /// # Errors
    ///
    /// If no workload has this name, if it cannot be read or parsed, if a trace has no requests, if `progress` asks to
    /// stop, or if an option does not apply to the workload.
    pub fn find(word: &str, args: &WorkloadOptions, progress: &Progress) -> Result<Workload, Failure> {
        let mut found = Workload::find_without_inputs(word, args, progress)?;
        found.inputs = inputs_of(word);
        Ok(found)
    }

    /// Returns the paths of the files that the workload is read from, so that no output replaces them. Empty for a
    /// generator that is not in a file, for standard input and for requests in memory.
    pub fn inputs(&self) -> &[PathBuf] {
        &self.inputs
    }

    fn find_without_inputs(word: &str, args: &WorkloadOptions, progress: &Progress) -> Result<Workload, Failure> {
        if word == "-" {
            return trace(args, Origin::file(spooled()?, "standard input")?, "standard input", progress);
        }
        // The folder of `--out` may have the name of a built-in workload, so a folder does not count as a file here.
        let is_folder = Path::new(word).is_dir();
        let is_file = !is_folder && Path::new(word).exists();
        if !is_file && (word.contains('=') || word.contains(';')) {
            refuse_reading(args, word)?;
            let spec = WorkloadSpec::parse(word).map_err(Failure::usage)?;
            return Ok(from_words(args, spec, word));
        }
        if let Some(entry) = generators::named(word).filter(|_| !is_file) {
            refuse_reading(args, word)?;
            return Ok(built_in(args, entry, progress));
        }
        if is_folder {
            return Err(Failure::usage(format!("'{word}' is a folder")).or_try("a trace file inside it"));
        }
        if !is_file {
            let meant = suggestion(word, generators::built_in().iter().map(|entry| entry.name));
            return Err(Failure::usage(format!("no file and no built-in workload is called '{word}'{meant}"))
                .or_try("`imbrex list generators`, or words such as rw=randwrite,bs=4k,number_ios=10000"));
        }
        if word.ends_with(".toml") {
            refuse_reading(args, word)?;
            let text = std::fs::read_to_string(word)
                .map_err(|error| Failure::failed(format!("cannot read the workload {word}: {error}")))?;
            let spec = WorkloadSpec::parse_toml(&text).map_err(|error| Failure::usage(format!("{word}: {error}")))?;
            return Ok(from_words(args, spec, word));
        }
        trace(args, Origin::file(open_trace(word)?, word)?, word, progress)
    }

    /// Makes a workload of requests that the caller holds in memory. `name` is its name in the results. The rows are
    /// read through at once. Of several devices, only the one with the most requests is taken, unless `args` name one.
    ///
    /// # Errors
    ///
    /// If `args` have an option that does not apply to a table in memory, if a row cannot be read and the options do
    /// not say to skip it, if there are no requests, or if `progress` asks to stop.
    pub fn of_rows(
        name: &str,
        rows: Arc<dyn Rows>,
        args: &WorkloadOptions,
        progress: &Progress,
    ) -> Result<Workload, Failure> {
        let format = args.trace.format.as_ref().map(|_| "format");
        if let Some(option) = format.into_iter().chain(args.trace.given()).next() {
            return Err(Failure::usage(format!("--{option} does not apply: {name} is a table of typed columns"))
                .or_try(format!("leave --{option} out")));
        }
        trace(args, Origin::Rows(rows), name, progress)
    }

    /// Returns a source of the requests, from the first on. A generator adapts to a drive of `device_sectors` sectors
    /// of 512 bytes; a trace ignores that size.
    ///
    /// # Errors
    ///
    /// If the file was changed since it was read through or cannot be opened, or if a generator does not fit on the
    /// drive.
    pub fn open(&self, device_sectors: u64) -> Result<Counted, Failure> {
        self.check_unchanged()?;
        let source = match &self.kind {
            Kind::Trace { origin, name, options } => origin.open(name, options)?.0,
            Kind::Words(spec) => {
                Box::new(generators::Generator::new(spec.clone(), device_sectors).map_err(Failure::usage)?)
            }
            Kind::BuiltIn { entry, seed } => entry.open(device_sectors, *seed).map_err(Failure::usage)?.source,
        };
        Ok(self.counted(Requests::Own(source)))
    }

    /// Opens the requests once for `count` drives that run in parallel, and returns a source of all requests for each
    /// of them. A generator adapts to `device_sectors` sectors of 512 bytes. The sources let at most `at_once` drives
    /// run at the same time; the others wait. Returns `None` if the requests depend on simulated time, so that each
    /// drive needs [`Workload::open`].
    ///
    /// # Errors
    ///
    /// If the file was changed since it was read through or cannot be opened, or if a generator does not fit on the
    /// drive.
    ///
    /// # Panics
    ///
    /// If `count` or `at_once` is 0.
    pub fn open_for_all(
        &self,
        device_sectors: u64,
        count: usize,
        at_once: usize,
    ) -> Result<Option<Vec<Counted>>, Failure> {
        let Requests::Own(source) = self.open(device_sectors)?.source else {
            unreachable!("what is opened is not shared")
        };
        if source.heeds_time() {
            return Ok(None);
        }
        let shares = shared::shares(source, count, at_once);
        Ok(Some(shares.into_iter().map(|share| self.counted(Requests::Shared(share))).collect()))
    }

    fn counted(&self, source: Requests) -> Counted {
        Counted { source, counts: WorkloadCounts::default(), left: self.limit.unwrap_or(u64::MAX) }
    }

    /// Returns whether a maximum number of requests was given ([`WorkloadOptions::limit`]).
    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Returns the number of requests, at most the limit. A generator assumes a drive of 2^40 sectors of 512 bytes
    /// here. If its number is unknown, for example because it ends by time, returns the limit, or `None` without a
    /// limit.
    pub fn expected_requests(&self) -> Option<u64> {
        let known = match &self.counts {
            Some(counts) => Some(counts.requests),
            None => self.open(1 << 40).ok().and_then(|opened| opened.expected_requests()),
        };
        match (known, self.limit) {
            (Some(known), Some(limit)) => Some(known.min(limit)),
            (known, limit) => known.or(limit),
        }
    }

    /// Returns one past the last sector of 512 bytes that the workload addresses, whatever the drive. Of a generator in
    /// fio's words, regions that depend on the size of the drive are ignored: the result is 0 if all do. Returns `None`
    /// for a built-in workload that adapts to the drive.
    pub fn end_sectors(&self) -> Option<u64> {
        match (&self.kind, self.counts) {
            (Kind::BuiltIn { entry, .. }, _) => entry.reach_sectors,
            (Kind::Words(spec), _) => Some(spec.reach_sectors()),
            (_, counts) => counts.map(|counts| counts.end_sectors),
        }
    }

    /// Returns whether the addresses depend on the size of the drive. `false` for a trace.
    pub fn needs_span(&self) -> bool {
        match &self.kind {
            Kind::Trace { .. } => false,
            Kind::Words(spec) => spec.needs_device_size(),
            Kind::BuiltIn { entry, .. } => entry.reach_sectors.is_none(),
        }
    }

    /// Returns the text from which [`Workload::generator`] makes an equal generator in another process or on another
    /// machine, without a file. Returns `None` for a trace and for requests in memory. The text of a built-in workload
    /// does not contain its seed.
    pub fn portable_words(&self) -> Option<String> {
        match &self.kind {
            Kind::Trace { .. } => None,
            Kind::Words(spec) => Some(spec.to_string()),
            Kind::BuiltIn { entry, .. } => Some(entry.name.to_string()),
        }
    }

    /// Returns this generator with `seed` as the seed of its random numbers. Returns `None` for a trace and for requests
    /// in memory, which have no seed.
    pub fn with_seed(&self, seed: u64) -> Option<Workload> {
        let args = WorkloadOptions { seed: Some(seed), limit: self.limit, ..WorkloadOptions::default() };
        match &self.kind {
            Kind::Trace { .. } => None,
            Kind::Words(spec) => Some(from_words(&args, spec.clone(), &self.name)),
            Kind::BuiltIn { entry, .. } => Some(built_in(&args, entry, &Progress::silent())),
        }
    }

    /// Makes a generator from `words`: the name of a built-in workload, or a description in fio's words. Reads no file.
    /// Applies `seed` and `limit` of `args` and ignores the options for traces.
    ///
    /// # Errors
    ///
    /// If `words` are neither the name of a built-in workload nor a valid description.
    pub fn generator(words: &str, args: &WorkloadOptions) -> Result<Workload, Failure> {
        match generators::named(words) {
            Some(entry) => Ok(built_in(args, entry, &Progress::silent())),
            None => Ok(from_words(args, WorkloadSpec::parse(words).map_err(Failure::usage)?, words)),
        }
    }

    /// Checks that the trace file has the length and modification time that it had before it was read through. Does
    /// nothing for generators and requests in memory.
    ///
    /// # Errors
    ///
    /// If the file was changed, with the kind [`FailureKind::InputChanged`](crate::error::FailureKind::InputChanged),
    /// or if its metadata cannot be read.
    pub fn check_unchanged(&self) -> Result<(), Failure> {
        match &self.kind {
            Kind::Trace { origin: Origin::File(file, stamp), name, .. } if stamp_of(file, name)? != *stamp => {
                Err(Failure::changed(name))
            }
            _ => Ok(()),
        }
    }

    /// Returns the counts of all devices of the trace, the device with the most requests first, if the trace has
    /// several devices and the user chose none. Returns `None` otherwise.
    pub fn devices(&self) -> Option<&[DeviceSummary]> {
        self.devices.as_deref()
    }

    /// Returns the published figures that a built-in workload was made to reproduce. Empty for other workloads, and if
    /// the number of requests is limited, since the figures are of the whole workload.
    pub fn targets(&self) -> Vec<generators::TargetFigure> {
        match &self.kind {
            Kind::BuiltIn { entry, .. } if self.limit.is_none() => {
                entry.targets.map_or_else(Vec::new, |targets| targets())
            }
            Kind::BuiltIn { .. } | Kind::Trace { .. } | Kind::Words(_) => Vec::new(),
        }
    }

    /// Returns the name of the arrival process, the rule by which requests enter the queue, unless the user chooses
    /// another: `fixed-queue` for traces and stand-ins for traces, `open` for generators with times of their own, else
    /// `closed`.
    pub fn default_arrival(&self) -> &'static str {
        match self.generator_arrival() {
            None | Some(generators::Arrival::AsTraced) => "fixed-queue",
            Some(generators::Arrival::AsTimed) => "open",
            Some(generators::Arrival::Closed { .. }) => "closed",
        }
    }

    /// Returns the maximum number of outstanding requests unless the user chooses another: that of a generator with a
    /// closed loop, else 64 (Hajkazemi 2019 §3).
    pub fn default_depth(&self) -> u32 {
        match self.generator_arrival() {
            Some(generators::Arrival::Closed { depth }) => depth,
            _ => 64,
        }
    }

    fn generator_arrival(&self) -> Option<generators::Arrival> {
        match &self.kind {
            Kind::Trace { .. } => None,
            Kind::Words(spec) => Some(spec.arrival()),
            Kind::BuiltIn { entry, seed } => entry.open(1 << 40, *seed).ok().map(|opened| opened.arrival),
        }
    }
}

/// Default seed of a built-in workload.
const BUILT_IN_SEED: u64 = 1;

/// Checks that no option for reading a trace is given for the workload `word`, which is not a trace.
fn refuse_reading(args: &WorkloadOptions, word: &str) -> Result<(), Failure> {
    let options = &args.trace;
    let of_all = [
        ("format", options.format.is_some()),
        ("device", options.device.is_some()),
        ("skip-malformed", options.skip_malformed != SkipMalformed::No),
    ];
    let given =
        of_all.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).chain(options.given()).next();
    match given {
        Some("format") => {
            let format = options.format.as_deref().unwrap_or_default();
            Err(Failure::usage(format!("--format {format} does not apply: '{word}' is a generator, not a trace"))
                .or_try("leave --format out"))
        }
        Some(option) => Err(Failure::usage(format!("--{option} does not apply: '{word}' is a generator, not a trace"))
            .or_try(format!("leave --{option} out"))),
        None => Ok(()),
    }
}

fn from_words(args: &WorkloadOptions, spec: WorkloadSpec, name: &str) -> Workload {
    let spec = match args.seed {
        Some(seed) => spec.with_seed(seed),
        None => spec,
    };
    Workload {
        name: name.into(),
        format: "generator".into(),
        sha256: hex(&Sha256::digest(spec.to_string())),
        seed: spec.seed(),
        counts: None,
        facts: Facts::default(),
        warnings: Vec::new(),
        limit: args.limit,
        inputs: Vec::new(),
        devices: None,
        kind: Kind::Words(spec),
    }
}

fn built_in(args: &WorkloadOptions, entry: &'static BuiltIn, progress: &Progress) -> Workload {
    let note = entry.note.map(|note| format!("note: {note}"));
    note.iter().for_each(|note| progress.say(note));
    let seed = args.seed.unwrap_or(BUILT_IN_SEED);
    Workload {
        name: entry.name.into(),
        format: "generator".into(),
        sha256: hex(&Sha256::digest(format!("{} seed={seed} imbrex={}", entry.name, env!("CARGO_PKG_VERSION")))),
        seed,
        counts: None,
        facts: Facts::default(),
        warnings: note.into_iter().collect(),
        limit: args.limit,
        inputs: Vec::new(),
        devices: None,
        kind: Kind::BuiltIn { entry, seed: Some(seed) },
    }
}

/// Copies standard input to a temporary file without a name, and returns the file.
fn spooled() -> Result<File, Failure> {
    let failed = |error| Failure::failed(format!("cannot keep standard input in a temporary file: {error}"));
    let mut file = tempfile::tempfile().map_err(failed)?;
    std::io::copy(&mut std::io::stdin().lock(), &mut file).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    Ok(file)
}

/// Opens the trace file `path`. If `path` is one of several files that blktrace wrote, one per processor
/// (`NAME.blktrace.0`), merges all of them from its folder into a temporary file without a name. The returned file
/// stands at its beginning.
///
/// # Errors
///
/// If a file cannot be opened, if an event of blktrace is malformed, or if the temporary file cannot be written.
pub fn open_trace(path: &str) -> Result<File, Failure> {
    let open = |path: &Path| {
        File::open(path).map_err(|error| Failure::failed(format!("cannot open {}: {error}", path.display())))
    };
    let parts = processors(Path::new(path));
    if parts.len() < 2 {
        return open(Path::new(path));
    }
    let mut readers: Vec<(String, Box<dyn Read + Send>)> = Vec::new();
    for part in &parts {
        readers.push((part.display().to_string(), Box::new(open(part)?)));
    }
    let failed = |error| Failure::failed(format!("cannot keep the merged trace in a temporary file: {error}"));
    let mut merged = std::io::BufWriter::new(tempfile::tempfile().map_err(failed)?);
    imbrex_trace::formats::blktrace::merge(readers, &mut merged)?;
    let mut file = merged.into_inner().map_err(|error| failed(error.into_error()))?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    Ok(file)
}

/// Returns the paths of the files that the workload called `word` is read from: the file `word` itself, or all files of
/// blktrace that belong to it. Empty if no regular file is called `word`.
pub fn inputs_of(word: &str) -> Vec<PathBuf> {
    let path = Path::new(word);
    match processors(path) {
        parts if parts.len() > 1 => parts,
        _ if path.is_file() => vec![path.to_path_buf()],
        _ => Vec::new(),
    }
}

/// Returns the files of all processors that belong to the blktrace file `path`, `path` included: `NAME.blktrace.` and a
/// number. Returns none if `path` has no such name.
fn processors(path: &Path) -> Vec<std::path::PathBuf> {
    let numbered = |name: &str| {
        let (stem, number) = name.rsplit_once('.')?;
        let is_one =
            stem.ends_with(".blktrace") && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_one.then(|| stem.to_string())
    };
    let stem_of = |path: &Path| path.file_name().and_then(|name| name.to_str()).and_then(numbered);
    let Some(stem) = stem_of(path) else { return Vec::new() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut parts: Vec<_> = entries.filter(|entry| stem_of(entry).as_ref() == Some(&stem)).collect();
    parts.sort();
    parts
}

/// Opens the file a second time, at its beginning. A duplicated handle would share the position.
fn reopened(file: &Mutex<File>, path: &str) -> Result<File, Failure> {
    let held = file.lock().expect("no thread panics while it holds the file");
    #[cfg(target_os = "linux")]
    let path_of_handle = {
        use std::os::fd::AsRawFd;
        format!("/proc/self/fd/{}", held.as_raw_fd())
    };
    #[cfg(not(target_os = "linux"))]
    let path_of_handle = path.to_string();
    drop(held);
    File::open(path_of_handle).map_err(|error| Failure::failed(format!("cannot open {path} again: {error}")))
}

/// Returns the error for a trace without requests, with the option that may have left them all out.
fn no_requests(path: &str, options: &imbrex_trace::TraceOptions) -> Failure {
    match (options.action, &options.device) {
        (Some(action), _) => Failure::failed(format!("{path}: no requests of action {action} in this trace"))
            .or_try("--action with another letter of Q, D and C, or leave it out"),
        (None, Some(_)) => Failure::failed(format!("{path}: no requests of this device in this trace"))
            .or_try("--device with one of those that `imbrex trace info` lists"),
        (None, None) => Failure::failed(format!("{path}: no requests in this trace")),
    }
}

/// Reads a trace through once for its counts (twice if it holds several devices), and hashes it in another thread.
fn trace(args: &WorkloadOptions, origin: Origin, path: &str, progress: &Progress) -> Result<Workload, Failure> {
    if let Some(seed) = args.seed {
        return Err(Failure::usage(format!("--seed {seed} does not apply: '{path}' is a trace, and has no seed"))
            .or_try("leave --seed out"));
    }
    let mut options = args.trace.clone();
    let hashing = origin.hashing(path)?;
    let mut read = read_through(&origin, path, &options, args.limit, progress)?;
    let (mut devices, mut warnings) = (None, Vec::new());
    if options.device.is_none() && read.devices.len() > 1 {
        let all = surveyed(&read);
        let busiest = &all[0];
        warnings.push(format!(
            "{path}: {} devices; taking the busiest, {} ({} of {} requests); --device picks another",
            all.len(),
            busiest.name,
            human::count(busiest.requests),
            human::count(read.counts.requests)
        ));
        options.device = Some(Device::Number(busiest.device));
        devices = Some(all);
        read = read_through(&origin, path, &options, args.limit, progress)?;
    }
    if read.counts.requests == 0 {
        return Err(no_requests(path, &options));
    }
    // A reading that `limit` ended has not come to the reader's own check.
    let reason = read.facts.mostly_malformed().filter(|_| options.skip_malformed == SkipMalformed::Some);
    if let Some(reason) = reason {
        return Err(Failure::failed(format!("{path}: {reason}")));
    }
    warnings.extend(read.facts.notes.iter().map(|note| format!("{path}: {note}")));
    warnings.extend(read.facts.order_warning().map(|warning| format!("{path}: {warning}")));
    warnings.extend(read.facts.unaligned_warning().map(|warning| format!("{path}: {warning}")));
    warnings.extend(read.facts.malformed_warning().map(|warning| format!("{path}: {warning}")));
    warnings.iter().for_each(|warning| progress.say(warning));
    let sha256 = hashing.join().expect("hashing does not panic");
    let sha256 = sha256.map_err(|error| Failure::failed(format!("cannot read {path}: {error}")))?;
    let workload = Workload {
        name: path.into(),
        format: read.format.into(),
        sha256,
        seed: 0,
        counts: Some(read.counts),
        facts: read.facts,
        warnings,
        limit: args.limit,
        inputs: Vec::new(),
        devices,
        kind: Kind::Trace { origin, name: path.into(), options },
    };
    workload.check_unchanged()?;
    Ok(workload)
}

/// Results of reading a trace through once.
struct ReadThrough {
    counts: WorkloadCounts,
    devices: BTreeMap<u32, DeviceSummary>,
    facts: Facts,
    format: &'static str,
}

fn read_through(
    origin: &Origin,
    path: &str,
    options: &imbrex_trace::TraceOptions,
    limit: Option<u64>,
    progress: &Progress,
) -> Result<ReadThrough, Failure> {
    let (source, format) = origin.open(path, options)?;
    let bar = progress.requests("reading the trace", source.expected_requests());
    let source = Requests::Own(source);
    let mut source = Counted { source, counts: WorkloadCounts::default(), left: limit.unwrap_or(u64::MAX) };
    let mut devices = BTreeMap::new();
    while let Some(request) = source.next(SimTime::ZERO)? {
        devices.entry(request.device).or_insert_with(|| DeviceSummary::new(request.device)).count(&request);
        if source.counts.requests.is_multiple_of(65_536) {
            bar.set_position(source.counts.requests);
            if progress.should_stop() {
                return Err(Failure {
                    message: format!("interrupted while reading {path}; nothing was written"),
                    ..Failure::interrupted()
                });
            }
        }
    }
    bar.finish_and_clear();
    Ok(ReadThrough { counts: source.counts, devices, facts: source.facts(), format })
}

/// Returns every device, the busiest first, under its name if the trace has names.
fn surveyed(read: &ReadThrough) -> Vec<DeviceSummary> {
    let mut devices: Vec<_> = read.devices.values().cloned().collect();
    for device in &mut devices {
        if let Some(name) = read.facts.device_names.get(&device.device) {
            device.name = name.clone();
        }
    }
    devices.sort_by_key(|device| (std::cmp::Reverse(device.requests), device.device));
    devices
}

/// Returns the SHA-256 of the rest of `file`, in hexadecimal.
pub(crate) fn hash(mut file: File) -> std::io::Result<String> {
    let mut digest = Sha256::new();
    std::io::copy(&mut file, &mut digest)?;
    Ok(hex(&digest.finalize()))
}

/// Returns the hash of the rows, each as its numbers in little-endian order. A row that cannot be read counts as a row
/// of zeros.
fn hash_rows(rows: &dyn Rows) -> String {
    let (mut digest, mut block, mut bytes) = (Sha256::new(), Vec::new(), Vec::new());
    let mut next = 0;
    while next < rows.rows() {
        block.clear();
        if rows.read(next, 8192, &mut block).is_err() {
            block = vec![Row::default()];
        }
        next += block.len() as u64;
        bytes.clear();
        for row in &block {
            bytes.extend(row.time_ns.to_le_bytes());
            bytes.push(row.op);
            bytes.extend(row.lba.to_le_bytes());
            bytes.extend(row.sectors.to_le_bytes());
            bytes.extend(row.device.to_le_bytes());
        }
        digest.update(&bytes);
    }
    hex(&digest.finalize())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
        text
    })
}

/// A source that counts the requests it yields, and ends at the limit of its workload.
pub struct Counted {
    source: Requests,
    counts: WorkloadCounts,
    left: u64,
}

/// Source of requests.
enum Requests {
    Own(Box<dyn Source>),
    /// A source read once for several drives.
    Shared(Share),
}

impl Counted {
    /// Returns the counts of the requests yielded so far.
    pub fn counts(&self) -> WorkloadCounts {
        self.counts
    }

    /// Waits until fewer drives run than may run at the same time, and then counts as running until the source is
    /// dropped. Returns at once for a source of [`Workload::open`].
    pub fn begin(&mut self) {
        if let Requests::Shared(share) = &mut self.source {
            share.begin();
        }
    }

    /// Returns the wall-clock time that this drive has spent on reading the shared source and on waiting for the other
    /// drives. Zero for a source of [`Workload::open`].
    pub fn waited(&self) -> Duration {
        match &self.source {
            Requests::Own(_) => Duration::ZERO,
            Requests::Shared(share) => share.waited(),
        }
    }

    fn source(&self) -> &dyn Source {
        match &self.source {
            Requests::Own(source) => source.as_ref(),
            Requests::Shared(share) => share,
        }
    }
}

impl Source for Counted {
    fn next(&mut self, now: SimTime) -> Result<Option<Request>, TraceError> {
        if self.left == 0 {
            return Ok(None);
        }
        let request = match &mut self.source {
            Requests::Own(source) => source.next(now)?,
            Requests::Shared(share) => share.next(now)?,
        };
        if let Some(request) = &request {
            self.left -= 1;
            self.counts.see(request);
        }
        Ok(request)
    }

    fn heeds_time(&self) -> bool {
        self.source().heeds_time()
    }

    fn expected_requests(&self) -> Option<u64> {
        self.source().expected_requests()
    }

    fn facts(&self) -> Facts {
        self.source().facts()
    }
}
