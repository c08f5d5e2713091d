//! `imbrex explain`: states why requests were slow.

use imbrex::explain::{Choice, ExplainSettings};
use imbrex::{Failure, Progress, Simulation, Workload};

use crate::args::ExplainArgs;
use crate::error::ExitCode;
use crate::interrupt;
use crate::output;

/// Executes the command.
pub(crate) fn run(args: &ExplainArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let progress = Progress::on_terminal(quiet).stopping_when(interrupt::requested);
    let mut simulation =
        Simulation::new().baseline(args.run.baseline()).options(args.run.options()).command(output::command_line());
    for text in &args.drives {
        simulation = simulation.drive(text)?;
    }
    let choice = match (args.request, args.percentile) {
        (Some(number), _) => Choice::Request(number),
        (None, Some(percentile)) => Choice::Percentile(percentile),
        (None, None) => Choice::Worst(args.worst as usize),
    };
    let settings = ExplainSettings { choice, replay: args.replay };
    let workload = Workload::find(&args.workload.workload, &args.workload.options()?, &progress)?;
    let explained = simulation.explain(&workload, &settings, &progress)?;
    if args.json {
        output::json(&explained.document)?;
    } else if let Some(form) = args.table.table {
        output::part(&explained.cells().in_form(form));
    } else {
        output::part(&explained.text());
    }
    for reason in &explained.not_run {
        message!("imbrex: not run: {reason}");
    }
    if explained.is_stopped && !quiet {
        message!("imbrex: interrupted: the explanations cover the requests read until then");
    }
    let is_whole = explained.not_run.is_empty() && !explained.is_stopped;
    Ok(if is_whole { ExitCode::Done } else { ExitCode::Failed })
}
