//! `imbrex fit`: fits a profile to measurements of a real drive.

use std::path::PathBuf;

use imbrex_calibrate::compare::Comparison;
use imbrex_calibrate::fit::{Fit, Fitted};
use imbrex_calibrate::measured::Measured;
use imbrex_calibrate::replay::replay;
use imbrex_sim::Drive;

use crate::args::FitArgs;
use crate::chart_files;
use crate::error::ExitCode;
use crate::interrupt;
use crate::output;
use crate::probe::{check_distinct, check_writable, write_whole};
use crate::validate::{distributions, facts_page, tell};
use imbrex::Failure;
use imbrex::Progress;
use imbrex::chart::Chart;
use imbrex::human::{self, ms};
use imbrex::measured::{fit_document, fit_to, warnings_of_fit};
use imbrex::table_form::{Cell, Cells, Column};

/// Columns of the table.
const COLUMNS: [&str; 4] = ["Value", "Before", "After", "95 % interval"];

/// Executes the command.
pub(crate) fn run(args: &FitArgs, quiet: bool) -> Result<ExitCode, Failure> {
    chart_files::check(args.charts.charts.as_deref())?;
    check_distinct(("--out", args.out.as_deref()), ("--report", args.report.as_deref()))?;
    for (path, option) in [(&args.out, "--out"), (&args.report, "--report")] {
        if let Some(path) = path {
            check_writable(path, option, &[args.measured.measured.clone(), PathBuf::from(&args.from)])?;
        }
    }
    let progress = Progress::on_terminal(quiet).stopping_when(interrupt::requested);
    let (measured, found) = fit_to(&args.measured.measured, &args.measured.options(), &args.from, &progress)?;
    let path = &args.measured.measured;
    tell(warnings_of_fit(path, &args.from, &measured, &found), quiet);
    if args.json {
        let document = fit_document(path, &args.from, &measured, &found);
        output::json(&document)?;
    } else if let Some(form) = args.table.table {
        output::part(&cells(&found).in_form(form));
    } else {
        print(&found);
    }
    if let Some(out) = &args.out {
        write_whole(out, &found.toml)?;
    }
    if args.report.is_some() || args.charts.charts.is_some() {
        let chart = chart(&measured, &found)?;
        if let Some(path) = &args.report {
            write_whole(path, &page(args, &found, chart.clone()))?;
        }
        if let Some(folder) = args.charts.charts.as_deref() {
            chart_files::save_charts(folder, vec![chart], quiet)?;
        }
    }
    Ok(ExitCode::Done)
}

/// Returns the chart of the half that was not used for fitting, measured and simulated.
fn chart(measured: &Measured, found: &Fit) -> Result<Chart, Failure> {
    let (_, second) = measured.halves();
    let profile = found.profile.clone();
    let drive = Drive::assemble(&profile.name.clone(), profile.clone(), &profile.default_layer, &[])?;
    Ok(distributions(&second, &replay(&second, drive)?))
}

fn page(args: &FitArgs, found: &Fit, chart: Chart) -> String {
    let rows: Vec<Vec<String>> = judged(found).into_iter().chain(found.fitted.iter().map(row)).collect();
    let title = format!("{} fitted to {}", args.from, args.measured.measured.display());
    let (before, after) = &found.second;
    let sentence = format!(
        "On the half of the requests that was not used for fitting, service times differ by {} ms (RMS), before the fit by {} \
         ms.",
        ms(after.rms_ns),
        ms(before.rms_ns)
    );
    facts_page("imbrex fit", &title, &sentence, &COLUMNS, &rows, Some(chart))
}

/// Returns the result as a table for other programs. All numbers of a row are in the unit that its name ends in.
fn cells(found: &Fit) -> Cells {
    let columns = ["before", "after", "low", "high"].map(|name| Column::numeric(name, name));
    let number = |value: Option<f64>| value.map_or_else(Cell::none, |value| Cell::number(value, format!("{value:.0}")));
    let rms = |name: &str, (before, after): &(Comparison, Comparison)| {
        let [before, after] = [before, after].map(|comparison| number(Some(comparison.rms_ns as f64)));
        vec![Cell::text(name), before, after, Cell::none(), Cell::none()]
    };
    let fitted = |fitted: &Fitted| {
        let numbers = [Some(fitted.before), Some(fitted.after), fitted.low, fitted.high].map(number);
        [vec![Cell::text(&fitted.key)], numbers.to_vec()].concat()
    };
    let halves = [rms("first_half.rms_ns", &found.first), rms("second_half.rms_ns", &found.second)];
    Cells {
        columns: [vec![Column::text("value", "value")], columns.to_vec()].concat(),
        rows: halves.into_iter().chain(found.fitted.iter().map(fitted)).collect(),
    }
}

fn judged(found: &Fit) -> Vec<Vec<String>> {
    let row = |name: &str, (before, after): &(Comparison, Comparison)| {
        vec![name.to_string(), format!("{} ms", ms(before.rms_ns)), format!("{} ms", ms(after.rms_ns)), String::new()]
    };
    vec![row("RMS of the first half, fitted", &found.first), row("RMS of the second half, judged", &found.second)]
}

fn row(fitted: &Fitted) -> Vec<String> {
    let interval = match (fitted.low, fitted.high) {
        (Some(low), Some(high)) => format!("{} to {} ns", grouped(low), grouped(high)),
        _ => "not determined".to_string(),
    };
    let [before, after] = [fitted.before, fitted.after].map(|value| format!("{} ns", grouped(value)));
    vec![fitted.key.clone(), before, after, interval]
}

/// Returns a number without decimals, its digits in groups of three.
fn grouped(value: f64) -> String {
    let sign = if value.round() < 0.0 { "−" } else { "" };
    format!("{sign}{}", human::count(value.abs().round() as u64))
}

fn print(found: &Fit) {
    let rows = judged(found).into_iter().chain(found.fitted.iter().map(row));
    let headings = COLUMNS.map(str::to_lowercase);
    let mut cells = Cells::of_texts(&headings.each_ref().map(String::as_str), rows);
    cells.columns[1..3].iter_mut().for_each(|column| column.is_numeric = true);
    output::line(&cells.within(output::terminal_columns()));
}
