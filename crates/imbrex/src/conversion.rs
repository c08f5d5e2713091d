//! Statistics of a workload, and its conversion to other formats.

use std::collections::BTreeMap;
use std::path::Path;

use imbrex_disk::SimTime;
use imbrex_trace::statistics::TraceInfo;
use imbrex_trace::writers::{self, WriterInfo, Written};
use imbrex_trace::{Request, Source, TraceError};
use serde::Serialize;

use crate::error::{Failure, FailureKind};
use crate::files::{Draft, check_output};
use crate::progress::Progress;
use crate::workload::{Counted, Workload};
use imbrex_units::names::suggestion;

/// Size of the drive that a generator assumes when it runs without a drive: 1 TB (10^12 bytes), in sectors of 512
/// bytes.
pub const GENERATOR_SECTORS: u64 = 1_000_000_000_000 / 512;

/// Number of requests between two updates of the progress bar.
const STEP: u64 = 65_536;

/// Result of a conversion of a workload to a trace file.
pub struct Converted {
    /// Description of the format in which the file was written.
    pub writer: &'static WriterInfo,
    /// Number of requests written, and counts of the requests and details that the format cannot represent.
    pub written: Written,
}

/// Writes the requests of `workload` into the file `path`, in the format of `writer`. The file appears under its name
/// only when it is complete and its contents are durable; a pipe is written directly. A generator assumes a drive of
/// 1 TB.
///
/// # Errors
///
/// If `path` is an input of the workload or may not be written, if the requests depend on simulated time and their
/// number is not limited, if a request cannot be read or written, or if `progress` asks to stop. A previous file at
/// `path` is then unchanged.
pub fn convert(
    workload: &Workload,
    path: &Path,
    writer: &'static WriterInfo,
    progress: &Progress,
) -> Result<Converted, Failure> {
    check_output(path, workload.inputs()).map_err(Failure::failed)?;
    let mut source = open_without_drive(workload)?;
    let draft = Draft::create(path)?;
    let bar = progress.requests(writer.name, workload.expected_requests());
    let mut written = (writer.open)(Box::new(draft.writer()?), &path.display().to_string())?;
    while let Some(request) = source.next(SimTime::ZERO)? {
        written.write(&request)?;
        if source.counts().requests.is_multiple_of(STEP) {
            bar.set_position(source.counts().requests);
            if progress.should_stop() {
                return Err(interrupted(format!("interrupted; {} was not written", path.display())));
            }
        }
    }
    let written = written.finish()?;
    draft.keep()?;
    bar.finish_and_clear();
    Ok(Converted { writer, written })
}

/// Returns a source of the requests of `workload` that is read without a drive. A generator assumes a drive of 1 TB
/// ([`GENERATOR_SECTORS`]).
///
/// # Errors
///
/// If the requests depend on simulated time, which only a drive supplies, and their number is not limited; or if the
/// workload cannot be opened.
pub fn open_without_drive(workload: &Workload) -> Result<Counted, Failure> {
    let source = workload.open(GENERATOR_SECTORS)?;
    if source.heeds_time() && !workload.is_limited() {
        let name = &workload.name;
        return Err(Failure::usage(format!("the requests of '{name}' end after a time that only a drive can tell"))
            .or_try("--limit REQUESTS, or number_ios=… or rate_iops=… among its words"));
    }
    Ok(source)
}

fn interrupted(message: String) -> Failure {
    Failure { kind: FailureKind::Interrupted, message, remedy: None }
}

/// Returns the writer of the format called `to`. If `to` is `None`, returns the writer whose usual file extension is
/// that of `path`.
///
/// # Errors
///
/// If no format that can be written has this name or extension.
pub fn writer_for(path: &Path, to: Option<&str>) -> Result<&'static WriterInfo, Failure> {
    let names = || writers::all().iter().map(|writer| writer.name).collect::<Vec<_>>().join(", ");
    if let Some(name) = to {
        return writers::by_name(name).ok_or_else(|| {
            let meant = suggestion(name, writers::all().iter().map(|writer| writer.name));
            Failure::usage(format!("no format '{name}' can be written{meant}"))
                .or_try(format!("--to with one of {}", names()))
        });
    }
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    let fitting = writers::all().iter().copied().find(|writer| writer.extension == ending);
    fitting.ok_or_else(|| {
        Failure::usage(format!("'{}' does not say which format to write", path.display()))
            .or_try(format!("--to with one of {}", names()))
    })
}

/// Statistics of a workload, as `imbrex trace info` prints them.
#[derive(Serialize)]
pub struct Described {
    /// Statistics of all requests of the workload, such as their numbers, sizes and working set.
    #[serde(flatten)]
    pub info: TraceInfo,
    /// Published figures that a built-in workload was made to reproduce, by their path in `info`; empty for other
    /// workloads.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<&'static str, f64>,
    /// Notices for the user about the way in which the workload was read, such as a device that was chosen.
    pub warnings: Vec<String>,
}

/// Reads all requests of `workload` once, up to its limit, and returns their statistics. Calls `see` with each of these
/// requests and its number, counted from 1. A generator assumes a drive of 1 TB. If the trace has several devices, only
/// the requests of one are read: of the device that the user chose, or else of the one with the most requests. In the
/// second case, `devices` lists all.
///
/// # Errors
///
/// If the requests depend on simulated time and their number is not limited, if the workload cannot be read, or if
/// `progress` asks to stop.
pub fn describe(
    workload: &Workload,
    progress: &Progress,
    see: &mut (dyn FnMut(u64, &Request) + Send),
) -> Result<Described, Failure> {
    let bar = progress.requests("counting", workload.expected_requests());
    let source = open_without_drive(workload)?;
    let mut watched = Watched { source, bar: &bar, progress, see };
    let mut info = TraceInfo::of(&mut watched, None)?;
    bar.finish_and_clear();
    if progress.should_stop() {
        return Err(interrupted("interrupted before the end of the workload".into()));
    }
    if let Some(devices) = workload.devices() {
        info.devices = devices.to_vec();
    }
    let targets = workload.targets().iter().map(|target| (target.name, target.value)).collect();
    Ok(Described { info, targets, warnings: workload.warnings.clone() })
}

/// A source that forwards requests, updates the progress bar, and ends early when `progress` asks to stop.
struct Watched<'a> {
    source: Counted,
    bar: &'a indicatif::ProgressBar,
    progress: &'a Progress,
    see: &'a mut (dyn FnMut(u64, &Request) + Send),
}

impl Source for Watched<'_> {
    fn next(&mut self, now: SimTime) -> Result<Option<Request>, TraceError> {
        let request = self.source.next(now)?;
        let number = self.source.counts().requests;
        if number.is_multiple_of(STEP) {
            self.bar.set_position(number);
            if self.progress.should_stop() {
                return Ok(None);
            }
        }
        if let Some(request) = &request {
            (self.see)(number, request);
        }
        Ok(request)
    }

    fn facts(&self) -> imbrex_trace::Facts {
        self.source.facts()
    }
}
