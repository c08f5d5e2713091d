//! Reads measurements of real drives from files and compares simulated drives with them. The files may be compressed;
//! our own `ios.parquet` is one of the formats.

use std::io::Read;
use std::path::Path;

use imbrex_calibrate::compare::Comparison;
use imbrex_calibrate::distribution::{self, Distribution, play};
use imbrex_calibrate::fit::{Fit, fit};
use imbrex_calibrate::measured::{Measured, MeasuredRequest};
use imbrex_calibrate::readers::{self, ReadOptions, Reading};
use imbrex_calibrate::replay::{Simulated, replay};
use imbrex_calibrate::validate::{Validation, validate};
use imbrex_disk::{Command, Lba, Operation, SimDuration, SimTime};
use imbrex_sim::{Arrival, Drive};
use imbrex_trace::Input;
use imbrex_trace::generators::{self, Generator, WorkloadSpec};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Row, RowAccessor};
use serde_json::{Value, json};

use crate::error::Failure;
use crate::human;
use crate::progress::Progress;

/// Reads the measurement of a real drive from the file `path`, which may be compressed. `options` select columns, units
/// and device.
///
/// # Errors
///
/// If the file cannot be read, or its format or a record is unknown or malformed.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Reading, Failure> {
    let name = path.display().to_string();
    let file = crate::workload::open_trace(&name)?;
    let mut unpacked = Input::file(&name, file).unpack()?;
    if unpacked.head.starts_with(b"PAR1") {
        return own(path, options.device.as_deref()).map(Reading::Requests);
    }
    let mut bytes = Vec::new();
    let contents =
        std::mem::replace(&mut unpacked.contents, imbrex_trace::input::Contents::Stream(Box::new(std::io::empty())));
    contents
        .into_stream()
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
    Ok(readers::read(&name, &bytes, options)?)
}

/// Reads a measurement of single requests of a real drive from the file `path`, which may be compressed. `options`
/// select columns, units and device.
///
/// # Errors
///
/// If the file cannot be read, has no request, or holds only a distribution of latencies.
pub fn requests(path: &Path, options: &ReadOptions) -> Result<Measured, Failure> {
    match read(path, options)? {
        Reading::Requests(measured) if measured.requests.is_empty() => {
            Err(Failure::failed(format!("{}: no request in it", path.display())))
        }
        Reading::Requests(measured) => Ok(measured),
        Reading::Distribution(_) => {
            let reason =
                format!("{}: a distribution names no requests, so they cannot be issued again", path.display());
            Err(Failure::failed(reason).or_try("fio with --write_lat_log=NAME --log_offset=1"))
        }
    }
}

/// A comparison of a simulated drive with a measurement, and the simulated times that were compared.
pub struct Judged {
    /// Result of the comparison: the differences between measured and simulated times.
    pub validation: Validation,
    /// Times of the simulated requests: in the order of the measured requests if these were replayed, else in the order
    /// of the workload's completions.
    pub simulated: Vec<Simulated>,
}

/// Replays the requests of `measured` on `drive` and compares the simulated with the measured times.
///
/// # Errors
///
/// If every request lies past the end of the drive, or if the replay fails.
pub fn judge(measured: &Measured, drive: Drive) -> Result<Judged, Failure> {
    let simulated = replay(measured, drive)?;
    let validation = validate(measured, &simulated).ok_or_else(|| {
        Failure::failed("every request lies past the end of the drive").or_try("a drive of the measured size")
    })?;
    Ok(Judged { validation, simulated })
}

/// Compares `drive` with a measured distribution of latencies, by running a generator on `drive`. `words` describe the
/// generator in fio's words; `None` takes the description in the measurement. Returns the measured times as requests,
/// of which only the times are meaningful, and the comparison. `name` is the name of the measurement in error messages.
///
/// # Errors
///
/// If neither `words` nor the measurement describe the workload, if the description is wrong or does not fit on the
/// drive, or if the workload makes no request.
pub fn judge_distribution(
    name: &str,
    words: Option<&str>,
    measured: &Distribution,
    drive: Drive,
) -> Result<(Measured, Judged), Failure> {
    let Some(words) = words.or(measured.words.as_deref()) else {
        return Err(Failure::failed(format!(
            "{name}: does not say which requests it is of (several jobs, or no `rw`)"
        ))
        .or_try("--workload 'rw=randread,bs=4k,…', or fio with --write_lat_log=NAME --log_offset=1"));
    };
    let spec = WorkloadSpec::parse(words)
        .map_err(|error| Failure::failed(format!("{name}: as a workload it is '{words}': {error}")))
        .map_err(|failure| failure.or_try("--workload with words of `imbrex simulate`"))?;
    let arrival = match spec.arrival() {
        generators::Arrival::Closed { depth } => Arrival::Closed(depth),
        generators::Arrival::AsTimed | generators::Arrival::AsTraced => Arrival::Open,
    };
    let source = Generator::new(spec, drive.capacity_bytes() / 512)
        .map_err(|error| Failure::failed(format!("{name}: the workload '{words}' does not fit the drive: {error}")))?;
    let simulated = play(source, arrival, drive)?;
    let validation = distribution::validate(measured, &simulated)
        .ok_or_else(|| Failure::failed(format!("{name}: the workload '{words}' made no request")))?;
    let note = format!("a distribution names no requests: '{words}' was issued, its own random places");
    let request =
        |ns| MeasuredRequest { command: Command::read(0, 1), issued: SimTime::ZERO, taken: SimDuration(ns), hit: None };
    let requests = measured.times_ns(None).into_iter().map(request).collect();
    let shown = |(_, ns): (_, u64)| Simulated { taken: SimDuration(ns), served: true, ..Simulated::default() };
    let simulated = simulated.into_iter().map(shown).collect();
    Ok((Measured { requests, format: "fio-json+".into(), notes: vec![note] }, Judged { validation, simulated }))
}

/// Reads the requests of one drive from our own `ios.parquet`: of `drive`, or of the drive of the first row.
fn own(path: &Path, drive: Option<&str>) -> Result<Measured, Failure> {
    let failed = |error: String| Failure::failed(format!("{}: {error}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    let reader = SerializedFileReader::new(file).map_err(|error| failed(error.to_string()))?;
    let fields =
        reader.metadata().file_metadata().schema_descr().columns().iter().map(|column| column.name().to_string());
    let fields: Vec<String> = fields.collect();
    let place = |name: &str| {
        let found = fields.iter().position(|field| field == name);
        found.ok_or_else(|| failed(format!("has no column {name}: expected ios.parquet of `imbrex simulate --per-io`")))
    };
    let columns = Columns {
        drive: place("drive")?,
        issue: place("issue_ns")?,
        complete: place("complete_ns")?,
        op: place("op")?,
        lba: place("lba")?,
        sectors: place("sectors")?,
    };
    let mut measured = Measured { format: "ios.parquet".into(), ..Measured::default() };
    let mut chosen = drive.map(str::to_string);
    for row in reader.get_row_iter(None).map_err(|error| failed(error.to_string()))? {
        let row = row.map_err(|error| failed(error.to_string()))?;
        let of = row.get_string(columns.drive).map_err(|error| failed(error.to_string()))?;
        if chosen.get_or_insert_with(|| of.clone()) != of {
            continue;
        }
        measured.requests.extend(columns.request(&row).map_err(|error| failed(error.to_string()))?);
    }
    if let Some(drive) = chosen {
        measured.notes.push(format!("the requests of {drive}"));
    }
    measured.requests.sort_by_key(|request| request.issued);
    Ok(measured)
}

struct Columns {
    drive: usize,
    issue: usize,
    complete: usize,
    op: usize,
    lba: usize,
    sectors: usize,
}

impl Columns {
    fn request(&self, row: &Row) -> parquet::errors::Result<Option<MeasuredRequest>> {
        let long = |at: usize| row.get_long(at).map(|value| value as u64);
        let operation = match row.get_string(self.op)?.as_str() {
            "read" => Operation::Read,
            "write" => Operation::Write,
            "trim" => Operation::Trim,
            _ => return Ok(None),
        };
        let (issued, completed) = (long(self.issue)?, long(self.complete)?);
        let command = Command { operation, fua: false, sectors: long(self.sectors)? as u32, lba: Lba(long(self.lba)?) };
        let taken = SimDuration(completed.saturating_sub(issued));
        Ok(Some(MeasuredRequest { command, issued: SimTime(issued), taken, hit: None }))
    }
}

/// Simulates the drive that the text `drive` names, and compares it with the measurement of a real drive in the file
/// `path`. `workload` describes, in fio's words, the requests of a measurement that holds only a distribution of
/// latencies. `options` select columns, units and device of the measurement. Returns the measurement and the
/// comparison.
///
/// # Errors
///
/// If the drive text is wrong, if the file cannot be read or has no request, if `workload` is given although the
/// measurement holds requests, or if the comparison fails.
pub fn hold(
    path: &Path,
    options: &ReadOptions,
    drive: &str,
    workload: Option<&str>,
) -> Result<(Measured, Judged), Failure> {
    let (drive, _) = crate::drives::build(drive)?;
    match read(path, options)? {
        Reading::Requests(measured) if !measured.requests.is_empty() => {
            if workload.is_some() {
                return Err(Failure::usage("--workload: the measurement names its requests")
                    .or_try("without --workload, which is for fio's json+"));
            }
            let judged = judge(&measured, drive)?;
            Ok((measured, judged))
        }
        Reading::Requests(_) => Err(Failure::failed(format!("{}: no request in it", path.display()))),
        Reading::Distribution(distribution) => {
            judge_distribution(&path.display().to_string(), workload, &distribution, drive)
        }
    }
}

/// Returns the JSON document that `imbrex validate --json` prints: the names of the file and the drive, and the fields
/// of `validation`.
///
/// # Errors
///
/// If `validation` cannot be represented as JSON.
pub fn validation_document(
    path: &Path,
    drive: &str,
    measured: &Measured,
    validation: &Validation,
) -> Result<Value, Failure> {
    let mut document = json!({
        "schema": imbrex_calibrate::validate::SCHEMA,
        "imbrex": env!("CARGO_PKG_VERSION"),
        "measured": path.display().to_string(),
        "format": measured.format,
        "drive": drive,
        "warnings": warnings_of(path, measured),
    });
    let judged = serde_json::to_value(validation).map_err(Failure::failed)?;
    if let (Some(document), Some(judged)) = (document.as_object_mut(), judged.as_object()) {
        document.extend(judged.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    Ok(document)
}

/// Returns the notes of the reader of the measurement in the file `path`, each as a message for the user.
pub fn warnings_of(path: &Path, measured: &Measured) -> Vec<String> {
    measured.notes.iter().map(|note| format!("{}: {note}", path.display())).collect()
}

/// Returns the warnings about a fit of `from` to the measurement in the file `path`: those of [`warnings_of`], and one if
/// the half of the requests that was not used for fitting differs more than before the fit.
pub fn warnings_of_fit(path: &Path, from: &str, measured: &Measured, found: &Fit) -> Vec<String> {
    let mut warnings = warnings_of(path, measured);
    let (before, after) = &found.second;
    if after.rms_ns > before.rms_ns {
        warnings.push(format!(
            "on the half of the requests that was not used for fitting, the times differ more than before the fit ({} ms, \
             before {} ms, RMS): trust neither the values nor their intervals. The drive may differ from {from} in \
             properties that a fit does not change, such as its tracks; try another profile, or more requests",
            human::ms(after.rms_ns),
            human::ms(before.rms_ns)
        ));
    }
    warnings
}

/// Fits the parameters of the profile `from`, a name or a TOML file, to the measurement of a real drive in the file
/// `path`. `options` select columns, units and device of the measurement. Returns the measurement and the fit.
///
/// # Errors
///
/// If the profile does not exist, if the measurement cannot be read or has no single requests, or if no fit is
/// possible.
pub fn fit_to(path: &Path, options: &ReadOptions, from: &str, progress: &Progress) -> Result<(Measured, Fit), Failure> {
    let profile = crate::drives::find_profile(from)?;
    let measured = requests(path, options)?;
    let bar = progress.steps("fitting");
    let found = fit(&measured, &profile, &path.display().to_string(), &mut |round, of| {
        bar.set_message(format!("round {} of {of}", round + 1));
        bar.tick();
    });
    bar.finish_and_clear();
    Ok((measured, found.map_err(Failure::failed)?))
}

/// Returns the JSON document that `imbrex fit --json` prints: the fitted values, and comparisons before and after the
/// fit for both halves of the measurement.
pub fn fit_document(path: &Path, from: &str, measured: &Measured, found: &Fit) -> Value {
    let half = |(before, after): &(Comparison, Comparison)| json!({"before": before, "after": after});
    json!({
        "schema": imbrex_calibrate::fit::SCHEMA,
        "imbrex": env!("CARGO_PKG_VERSION"),
        "measured": path.display().to_string(),
        "from": from,
        "fitted_half": half(&found.first),
        "judged_half": half(&found.second),
        "values": found.fitted,
        "warnings": warnings_of_fit(path, from, measured, found),
    })
}
