//! `imbrex validate`: compares a simulated drive with measurements of a real one.

mod page;

pub(crate) use self::page::{distributions, facts_page};

use imbrex_calibrate::validate::Validation;

use crate::args::ValidateArgs;
use crate::chart_files;
use crate::error::ExitCode;
use crate::message;
use crate::output;
use crate::probe::{check_writable, write_whole};
use imbrex::Failure;
use imbrex::drives::profile_file;
use imbrex::human::ms;
use imbrex::measured::{hold, validation_document, warnings_of};
use imbrex::table_form::{Cell, Cells, Column};
use imbrex::workload::inputs_of;

/// Executes the command.
pub(crate) fn run(args: &ValidateArgs, quiet: bool) -> Result<ExitCode, Failure> {
    chart_files::check(args.charts.charts.as_deref())?;
    if let Some(path) = &args.report {
        let workload = args.workload.as_deref().map(inputs_of).unwrap_or_default();
        let profile = profile_file(&args.drive).into_iter().collect();
        let inputs = [workload, vec![args.measured.measured.clone()], profile].concat();
        check_writable(path, "--report", &inputs)?;
    }
    let (path, options) = (&args.measured.measured, args.measured.options());
    let (measured, judged) = hold(path, &options, &args.drive, args.workload.as_deref())?;
    tell(warnings_of(path, &measured), quiet);
    if args.json {
        let document = validation_document(path, &args.drive, &measured, &judged.validation)?;
        output::json(&document)?;
    } else if let Some(form) = args.table.table {
        output::part(&cells(&judged.validation).in_form(form));
    } else {
        print(&judged.validation)?;
    }
    if let Some(path) = &args.report {
        write_whole(path, &page::html(args, &measured, &judged))?;
    }
    if let Some(folder) = args.charts.charts.as_deref() {
        chart_files::save_charts(folder, page::charts(&measured, &judged), quiet)?;
    }
    Ok(ExitCode::Done)
}

/// Prints warnings, unless `quiet`. JSON documents have them as well.
pub(crate) fn tell(warnings: Vec<String>, quiet: bool) {
    warnings.into_iter().for_each(|warning| if quiet { message::keep(warning) } else { message::notice(warning) });
}

/// Returns the classes as a table for other programs, all requests first.
fn cells(validation: &Validation) -> Cells {
    let numbers = [
        ("requests", "requests"),
        ("measured_mean_ns", "measured, mean ms"),
        ("simulated_mean_ns", "simulated, mean ms"),
        ("rms_ns", "RMS ms"),
        ("mean_difference_ns", "mean difference ms"),
    ];
    let numbers = numbers.map(|(name, heading)| Column::numeric(name, heading));
    let columns = [vec![Column::text("class", "class")], numbers.to_vec()].concat();
    let all = ("all", &validation.whole, validation.mean_difference_ns);
    let classes =
        validation.classes.iter().map(|class| (class.class.as_str(), &class.comparison, class.mean_difference_ns));
    let rows = std::iter::once(all).chain(classes).map(|(name, comparison, difference_ns)| {
        let time = |ns: u64| Cell::number(ns as f64, ms(ns));
        vec![
            Cell::text(name),
            Cell::number(comparison.requests as f64, comparison.requests.to_string()),
            time(comparison.mean_measured_ns),
            time(comparison.mean_simulated_ns),
            time(comparison.rms_ns),
            Cell::number(difference_ns as f64, format!("{:+.3}", difference_ns as f64 / 1e6)),
        ]
    });
    Cells { columns, rows: rows.collect() }
}

fn print(validation: &Validation) -> Result<(), Failure> {
    let whole = &validation.whole;
    output::line(&format!(
        "{} requests: RMS {} ms, {:.2} % of the mean\n",
        imbrex::human::count(whole.requests),
        ms(whole.rms_ns),
        whole.rms_share * 100.0
    ));
    output::line(&cells(validation).within(output::terminal_columns()));
    if validation.rejected > 0 {
        output::line(&format!("\n{} requests lie past the end of the drive and are left out", validation.rejected));
    }
    output::line(&format!(
        "\nThe largest differences point at {}: {}.",
        validation.suspect.part, validation.suspect.because
    ));
    Ok(())
}
