//! `imbrex sweep`: runs every combination of workloads, drives and parameters, one row per point in one dataset.

use std::path::{Path, PathBuf};

use imbrex::sweep::row::Row;
use imbrex::sweep::{Dataset, Grid, Spec, Task, page};
use imbrex::table_form::Cells;
use imbrex::{Failure, Progress, human};
use serde_json::json;

use crate::args::SweepArgs;
use crate::chart_files;
use crate::error::ExitCode;
use crate::{interrupt, json, message, output};

/// Largest number of points with lost data that messages name one by one.
const NAMED_MAX: usize = 20;

/// Largest number of points that are printed as a table, if no form is asked for.
const PRINTED_MAX: usize = 60;

/// Executes the command.
pub(crate) fn run(args: &SweepArgs, quiet: bool) -> Result<ExitCode, Failure> {
    chart_files::check(args.charts.charts.as_deref())?;
    let place = args.spec.display().to_string();
    let text = std::fs::read_to_string(&args.spec)
        .map_err(|error| Failure::failed(format!("cannot read the sweep {place}: {error}")))?;
    let mut spec = Spec::parse(&place, &text)?.in_folder(args.spec.parent().unwrap_or(Path::new("")))?;
    if let Some(seeds) = args.seeds {
        spec.options.retain(|(name, _)| name != "seeds");
        spec.options.push(("seeds".into(), vec![seeds.to_string()]));
    }
    let progress = Progress::on_terminal(quiet).stopping_when(interrupt::requested);
    interrupt::answer_with("ending the points under way; the rows of the others are kept");
    let folder = args.out.clone().unwrap_or_else(|| beside(&args.spec));
    let dataset = Dataset::in_folder(&folder)?;
    dataset.removal().iter().for_each(|removal| progress.say(removal));
    let grid = Grid::of(&spec, &[], &progress)?;
    let swept = grid.run(&dataset, args.retry_failed, args.jobs, &progress)?;
    let rows = grid.rows(&dataset);
    let table = dataset.write_table(&rows)?;
    let written = dataset.write_page(&page::html(&place, &rows, &grid.swept))?;
    if let Some(folder) = args.charts.charts.as_deref() {
        chart_files::save_charts(folder, page::charts(&rows, &grid.swept), quiet)?;
    }
    if args.json {
        let document = json!({
            "schema": "imbrex.sweep/1", "points": swept.points, "found": swept.found, "run": swept.run,
            "failed": swept.failed, "damaged": swept.damaged, "interrupted": swept.is_stopped,
            "dataset": json::path(folder.join("points")), "table": json::path(&table), "page": json::path(&written),
        });
        progress.drain_messages().into_iter().for_each(message::keep);
        output::json(&document)?;
    } else if let Some(form) = args.table.table {
        output::part(&page::cells(&rows, &grid.swept).in_form(form));
    } else {
        print(&page::cells(&rows, &grid.swept));
        let lost = match swept.damaged {
            0 => String::new(),
            damaged => format!(", {} with lost live data", human::count(damaged)),
        };
        output::line(&format!(
            "{} points: {} run, {} there already, {} failed{lost}\nall rows are in {}, charts in {}",
            human::count(swept.points),
            human::count(swept.run),
            human::count(swept.found),
            human::count(swept.failed),
            table.display(),
            written.display()
        ));
    }
    if let Some(error) = rows.iter().find_map(|row| row.text("error")).filter(|_| !quiet) {
        message!("imbrex: the first of the points that failed: {error}");
    }
    if swept.is_stopped {
        message!("imbrex: interrupted: the same command runs the remaining points");
    }
    if swept.damaged > 0 {
        name_damaged(&grid.damaged(&dataset), &table);
        return Ok(ExitCode::Damage);
    }
    Ok(if swept.is_stopped || swept.failed > 0 { ExitCode::Failed } else { ExitCode::Done })
}

/// Prints the first points as a table.
fn print(cells: &Cells) {
    let first = cells.rows.iter().take(PRINTED_MAX).cloned().collect();
    let first = Cells { columns: cells.columns.clone(), rows: first };
    output::line(&first.within(output::terminal_columns()));
    let others = cells.rows.len().saturating_sub(PRINTED_MAX);
    if others > 0 {
        output::line(&format!(" and {} more: --table csv prints all", human::count(others as u64)));
    }
    output::line("");
}

/// Prints messages that name the points `damaged`, at which live data was lost.
fn name_damaged(damaged: &[(&Task, Row)], table: &Path) {
    for (task, row) in damaged.iter().take(NAMED_MAX) {
        message!("imbrex: live data was lost at {}: {}", place_of(task), loss_of(row));
    }
    let others = damaged.len().saturating_sub(NAMED_MAX);
    if others > 0 {
        let points = if others == 1 { "point" } else { "points" };
        let (others, table) = (human::count(others as u64), table.display());
        message!("imbrex: live data was lost at {others} more {points}: see the column integrity of {table}");
    }
}

/// Returns the drive, the workload and the options of a point.
fn place_of(task: &Task) -> String {
    let options = task.options.iter().filter(|(name, _)| name != "check");
    let options: String = options.map(|(name, value)| format!(", {name}={value}")).collect();
    format!("{} with {}{options}", task.drive, task.workload)
}

/// Returns a description of the lost data in `row`.
fn loss_of(row: &Row) -> String {
    let request = human::count(row.number("integrity_request").unwrap_or(0.0) as u64);
    if let Some(violation) = row.text("integrity_violation") {
        return format!("{violation} (request {request})");
    }
    let sectors = row.number("integrity_live_sectors_destroyed").unwrap_or(0.0) as u64;
    let destroyed = match sectors {
        1 => "1 live sector".to_string(),
        _ => format!("{} live sectors", human::count(sectors)),
    };
    let first = row.text("integrity_first").unwrap_or_default();
    format!("{destroyed} destroyed by the host's own writes (first, at request {request}: {first})")
}

/// Returns the default output folder: the path of the file without its ending.
fn beside(spec: &Path) -> PathBuf {
    let folder = spec.with_extension("");
    if folder == spec { spec.with_extension("sweep") } else { folder }
}
