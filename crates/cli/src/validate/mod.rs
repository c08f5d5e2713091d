//! `imbrex validate`: a simulated drive held against what was measured of a real one.

mod page;

pub use self::page::{distributions, facts_page};

use imbrex_calibrate::measured::Measured;
use imbrex_calibrate::readers::Reading;
use imbrex_calibrate::validate::{Validation, SCHEMA};
use serde_json::json;

use crate::args::ValidateArgs;
use crate::error::ExitCode;
use crate::output;
use crate::probe::{check_writable, write_whole};
use imbrex::drives;
use imbrex::human::ms;
use imbrex::measured::{judge, judge_distribution, read};
use imbrex::Failure;

/// Runs the command.
pub fn run(args: &ValidateArgs, quiet: bool) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.report {
        check_writable(path, "--report")?;
    }
    let (drive, _) = drives::build(&args.drive)?;
    let (measured, judged) = match read(&args.measured.measured, &args.measured.options())? {
        Reading::Requests(measured) if !measured.requests.is_empty() => {
            if args.workload.is_some() {
                return Err(Failure::usage("--workload: the measurement names its requests")
                    .or_try("without --workload, which is for fio's json+"));
            }
            let judged = judge(&measured, drive)?;
            (measured, judged)
        }
        Reading::Requests(_) => {
            return Err(Failure::failed(format!("{}: no request in it", args.measured.measured.display())))
        }
        Reading::Distribution(distribution) => {
            let name = args.measured.measured.display().to_string();
            judge_distribution(&name, args.workload.as_deref(), &distribution, drive)?
        }
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
        imbrex::human::count(whole.requests),
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
