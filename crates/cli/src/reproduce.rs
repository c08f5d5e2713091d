//! `imbrex reproduce`: runs the papers' experiments, prints our figures beside the papers', and writes the pages.

use std::path::Path;

use imbrex::{Failure, Progress};
use imbrex_papers::{Traces, Verdict, all, as_json, as_text, choose, refuse_foreign_results, write};

use crate::args::ReproduceArgs;
use crate::error::ExitCode;
use crate::interrupt;
use crate::output;
use imbrex::listing::Listing;

/// Returns the list of experiments.
pub(crate) fn listing() -> Listing {
    let rows = all().into_iter().map(|experiment| vec![experiment.name.to_string(), experiment.title.to_string()]);
    Listing {
        name: "experiments",
        columns: &["experiment", "what it shows"],
        rows: rows.collect(),
        details: Vec::new(),
    }
}

/// Executes the command.
pub(crate) fn run(args: &ReproduceArgs, quiet: bool) -> Result<ExitCode, Failure> {
    if let (Some(name), Some(words)) = (&args.experiment, &args.in_guest) {
        output::line(&imbrex_papers::in_guest(name, words)?);
        return Ok(ExitCode::Done);
    }
    let chosen = choose(args.experiment.as_deref())?;
    let progress = Progress::on_terminal(quiet).stopping_when(interrupt::requested);
    let folder = Path::new(&args.out);
    // Before the first run, which may take an hour.
    chosen.iter().try_for_each(|experiment| refuse_foreign_results(folder, experiment))?;
    if args.traces.is_some() && !chosen.iter().any(|experiment| experiment.takes_traces()) {
        let takers = all().into_iter().filter(|experiment| experiment.takes_traces()).map(|experiment| experiment.name);
        return Err(Failure::usage("--traces is for experiments on the machines of Hajkazemi 2019")
            .or_try(takers.collect::<Vec<_>>().join(", ")));
    }
    let traces = args.traces.as_deref().map(Traces::find).transpose()?;
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::failed(format!("cannot make the folder {}: {error}", folder.display())))?;
    if !quiet {
        progress.say(&format!("the pages and figures are written to {}", folder.display()));
    }
    let mut reports = Vec::new();
    let mut ended = Ok(());
    let count = chosen.len();
    for experiment in chosen {
        if !quiet {
            progress.say(&format!("{}: {}", experiment.name, experiment.title));
        }
        let report = experiment.report_over_seeds(args.seeds, traces.as_ref(), folder, &progress);
        // Written after each experiment, so that an interrupted run keeps the results so far.
        ended = report.and_then(|report| {
            if !args.json {
                output::line(&as_text(experiment, &report));
            }
            write(folder, experiment, &report)?;
            reports.push((experiment, report));
            Ok(())
        });
        if ended.is_err() {
            break;
        }
    }
    // The JSON of a run that ended early has the experiments that were completed.
    if args.json && (ended.is_ok() || !reports.is_empty()) {
        output::line(&as_json(&reports)?);
    }
    if interrupt::requested() && ended.is_err() {
        let (done, folder) = (reports.len(), folder.display());
        return Err(Failure::failed(format!("interrupted: {done} of {count} experiments are complete, in {folder}")));
    }
    ended?;
    let failed =
        reports.iter().flat_map(|(_, report)| &report.claims).filter(|claim| claim.verdict == Verdict::No).count();
    if failed > 0 {
        message!(
            "imbrex: {failed} claims did not come out as the papers have them: findings, with their reasons beside"
        );
    }
    Ok(ExitCode::Done)
}
