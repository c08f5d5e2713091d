//! `imbrex sweep`: runs every combination of workloads, drives and parameters, one row per point in one dataset.

use std::path::{Path, PathBuf};

use imbrex::sweep::{Dataset, Grid, Spec, page};
use imbrex::{Failure, Progress, human};
use serde_json::json;

use crate::args::SweepArgs;
use crate::error::ExitCode;
use crate::{interrupt, message, output};

/// Executes the command.
pub(crate) fn run(args: &SweepArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let place = args.spec.display().to_string();
    let text = std::fs::read_to_string(&args.spec)
        .map_err(|error| Failure::failed(format!("cannot read the sweep {place}: {error}")))?;
    let mut spec = Spec::parse(&place, &text)?;
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
    if args.json {
        let document = json!({
            "schema": "imbrex.sweep/1", "points": swept.points, "found": swept.found, "run": swept.run,
            "failed": swept.failed, "interrupted": swept.is_stopped,
            "dataset": folder.join("points"), "table": table, "page": written,
        });
        progress.drain_messages().into_iter().for_each(message::keep);
        output::json(&document)?;
    } else {
        output::line(&format!(
            "{} points: {} run, {} there already, {} failed\nall rows are in {}, charts in {}",
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
    Ok(if swept.is_stopped || swept.failed > 0 { ExitCode::Failed } else { ExitCode::Done })
}

/// Returns the default output folder: the path of the file without its ending.
fn beside(spec: &Path) -> PathBuf {
    let folder = spec.with_extension("");
    if folder == spec { spec.with_extension("sweep") } else { folder }
}
