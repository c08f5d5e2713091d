//! `imbrex validate`: a simulated drive held against what was measured of a real one.

mod input;
mod page;

pub use self::input::requests;
pub use self::page::{distributions, facts_page};

use imbrex_calibrate::distribution::{self, play, Distribution};
use imbrex_calibrate::measured::{Measured, MeasuredRequest};
use imbrex_calibrate::readers::Record;
use imbrex_calibrate::replay::{replay, Simulated};
use imbrex_calibrate::validate::{validate, Validation, SCHEMA};
use imbrex_disk::{Command, SimDuration, SimTime};
use imbrex_sim::{Arrival, Drive};
use imbrex_trace::generators::{self, Generator, WorkloadSpec};
use serde_json::json;

use crate::args::ValidateArgs;
use crate::error::{ExitCode, Failure};
use crate::output;
use crate::probe::{check_writable, write_whole};
use crate::simulate::drives;

/// Runs the command.
pub fn run(args: &ValidateArgs, quiet: bool) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.report {
        check_writable(path, "--report")?;
    }
    let (drive, _) = drives::build(&args.drive)?;
    let (measured, judged) = match input::read(&args.measured)? {
        Record::Requests(measured) if !measured.requests.is_empty() => {
            if args.workload.is_some() {
                return Err(Failure::usage("--workload: the measurement names its requests")
                    .or_try("without --workload, which is for fio's json+"));
            }
            let judged = judge(&measured, drive)?;
            (measured, judged)
        }
        Record::Requests(_) => {
            return Err(Failure::failed(format!("{}: no request in it", args.measured.measured.display())))
        }
        Record::Distribution(distribution) => by_distribution(args, &distribution, drive)?,
    };
    if !quiet {
        for note in &measured.notes {
            eprintln!("imbrex: {}: {note}", args.measured.measured.display());
        }
    }
    if args.json {
        output::line(&document(args, &measured, &judged.validation)?)?;
    } else {
        print(&judged.validation)?;
    }
    if let Some(path) = &args.report {
        write_whole(path, &page::html(args, &measured, &judged))?;
    }
    Ok(ExitCode::Done)
}

/// Holds `drive` against a distribution: the workload is given, or the record tells it.
fn by_distribution(args: &ValidateArgs, measured: &Distribution, drive: Drive) -> Result<(Measured, Judged), Failure> {
    let name = args.measured.measured.display();
    let Some(words) = args.workload.clone().or_else(|| measured.words.clone()) else {
        return Err(Failure::failed(format!(
            "{name}: does not say which requests it is of (several jobs, or no `rw`)"
        ))
        .or_try("--workload 'rw=randread,bs=4k,…', or fio with --write_lat_log=NAME --log_offset=1"));
    };
    let spec = WorkloadSpec::parse(&words)
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

/// A judgement with the times behind it.
pub struct Judged {
    /// The judgement.
    pub validation: Validation,
    /// The times of the simulated drive.
    pub simulated: Vec<Simulated>,
}

/// Plays `measured` to `drive` and judges it.
pub fn judge(measured: &Measured, drive: Drive) -> Result<Judged, Failure> {
    let simulated = replay(measured, drive)?;
    let validation = validate(measured, &simulated).ok_or_else(|| {
        Failure::failed("every request lies past the end of the drive").or_try("a drive of the measured size")
    })?;
    Ok(Judged { validation, simulated })
}

fn document(args: &ValidateArgs, measured: &Measured, validation: &Validation) -> Result<String, Failure> {
    let mut document = json!({
        "schema": SCHEMA,
        "imbrex": env!("CARGO_PKG_VERSION"),
        "measured": args.measured.measured.display().to_string(),
        "format": measured.format,
        "drive": args.drive,
    });
    let judged = serde_json::to_value(validation).map_err(Failure::failed)?;
    if let (Some(document), Some(judged)) = (document.as_object_mut(), judged.as_object()) {
        document.extend(judged.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    serde_json::to_string_pretty(&document).map_err(Failure::failed)
}

fn print(validation: &Validation) -> Result<(), Failure> {
    let whole = &validation.whole;
    output::line(&format!(
        "{} requests: RMS {} ms, {:.2} % of the mean\n",
        crate::human::count(whole.requests),
        ms(whole.rms_ns),
        whole.rms_share * 100.0
    ))?;
    output::line(&format!(
        "{:<36}{:>9}{:>13}{:>13}{:>10}{:>12}",
        "class", "requests", "measured ms", "simulated ms", "RMS ms", "difference"
    ))?;
    let all = ("all".to_string(), *whole, validation.mean_difference_ns);
    let classes =
        validation.classes.iter().map(|class| (class.class.clone(), class.comparison, class.mean_difference_ns));
    for (name, comparison, difference) in std::iter::once(all).chain(classes) {
        output::line(&format!(
            "{name:<36}{:>9}{:>13}{:>13}{:>10}{:>+12.3}",
            comparison.requests,
            ms(comparison.mean_measured_ns),
            ms(comparison.mean_simulated_ns),
            ms(comparison.rms_ns),
            difference as f64 / 1e6
        ))?;
    }
    if validation.rejected > 0 {
        output::line(&format!("\n{} requests lie past the end of the drive and are left out", validation.rejected))?;
    }
    output::line(&format!(
        "\nThe largest differences point at {}: {}.",
        validation.suspect.part, validation.suspect.because
    ))
}

/// Milliseconds with three decimals.
pub fn ms(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}
