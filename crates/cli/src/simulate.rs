//! `imbrex simulate`: runs one workload on several drives and prints the results side by side.

use imbrex::{
    Failure, Progress, SimulateOptions, Simulated, Simulation, SimulationOptions, Workload, human, report, table,
};

use crate::args::SimulateArgs;
use crate::chart_files;
use crate::error::ExitCode;
use crate::interrupt;
use crate::output;

/// Executes the command.
pub(crate) fn run(args: &SimulateArgs, quiet: bool) -> Result<ExitCode, Failure> {
    chart_files::check(args.charts.charts.as_deref())?;
    args.table.refuse_explanation(args.explain.into(), args.out.as_deref())?;
    let progress = Progress::on_terminal(quiet).stopping_when(interrupt::requested);
    let asked = asked(args)?;
    let mut simulation =
        Simulation::new().baseline(asked.baseline).options(asked.simulation).command(output::command_line());
    for text in &args.drives {
        simulation = simulation.drive(text)?;
    }
    let prepared = simulation.with_default_drives(&args.workload.workload)?.prepared()?;
    let workload = Workload::find(&args.workload.workload, &asked.workload, &progress)?;
    let simulated = prepared.run(&workload, &progress)?;
    if let Some(folder) = simulated.folder.as_ref().filter(|_| !quiet) {
        let report = folder.file("report.html");
        progress.say(&format!("results are in {}: open {}", folder.path().display(), report.display()));
    }
    if let Some(folder) = args.charts.charts.as_deref() {
        let figures = report::figures(&simulated.summary, &simulated.series);
        chart_files::save_figures(folder, &figures, quiet)?;
    }
    print(args, &simulated)?;
    Ok(verdict(&simulated, quiet))
}

fn asked(args: &SimulateArgs) -> Result<SimulateOptions, Failure> {
    let simulation = SimulationOptions {
        window: args.window,
        seeds: args.seeds,
        out: args.out.clone(),
        per_io: args.per_io,
        plans: args.plans,
        explain: args.explain.into(),
        trace_events: args.events.trace_events.clone(),
        events_from: args.events.from,
        events_to: args.events.to,
        events_bytes_max: args.events.trace_events_size,
        jobs: args.jobs,
        ..args.run.options()
    };
    Ok(SimulateOptions { workload: args.workload.options()?, baseline: args.run.baseline(), simulation })
}

fn print(args: &SimulateArgs, simulated: &Simulated) -> Result<(), Failure> {
    if args.json {
        let Some(explained) = &simulated.explained else { return output::json(&simulated.summary) };
        let mut document = serde_json::to_value(&simulated.summary).map_err(Failure::failed)?;
        document["explain"] = serde_json::to_value(explained).map_err(Failure::failed)?;
        return output::json(&document);
    }
    if let Some(form) = args.table.table {
        output::part(&table::cells(&simulated.summary.drives).in_form(form));
        return Ok(());
    }
    let workload = &simulated.summary.workload;
    output::line(&format!(
        "{} ({}): {} requests, {} reads, {} writes\n",
        workload.name,
        workload.format,
        human::count(workload.requests),
        human::count(workload.reads),
        human::count(workload.writes)
    ));
    output::line(&simulated.table_within(output::terminal_columns()));
    if let Some(explained) = &simulated.explained {
        output::part(&format!("\n{}", imbrex::explain::text(explained)));
    }
    Ok(())
}

fn verdict(simulated: &Simulated, quiet: bool) -> ExitCode {
    let drives = &simulated.summary.drives;
    for reason in &simulated.not_run {
        message!("imbrex: not run: {reason}");
    }
    if drives.iter().any(|drive| drive.integrity.is_violated()) {
        message!("imbrex: live data was lost: see the lines marked DAMAGE");
        return ExitCode::Damage;
    }
    if drives.iter().any(|drive| drive.integrity.live_sectors_destroyed() > 0) {
        message!(
            "imbrex: the workload destroyed live data of its own: a host-managed drive needs a host that keeps its rules"
        );
        return ExitCode::Damage;
    }
    if simulated.is_stopped {
        if !quiet {
            message!("imbrex: interrupted: the results are those of the requests read until then");
        }
        return ExitCode::Failed;
    }
    if drives.iter().all(|drive| drive.completed == 0) {
        message!("imbrex: no drive completed a request: there is nothing to compare");
        return ExitCode::Failed;
    }
    if !simulated.not_run.is_empty() {
        return ExitCode::Failed;
    }
    ExitCode::Done
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Options of the command that are no options of the simulation: the drives, the form of the output, the charts, and
    /// those of every command.
    const OUTPUT: [&str; 7] = ["drive", "json", "table", "charts", "help", "quiet", "version"];

    #[test]
    fn the_library_knows_every_option_by_the_same_name() {
        let command = crate::args::Cli::command();
        let simulate = command.find_subcommand("simulate").expect("it is there");
        let mut ours: Vec<&str> = simulate.get_arguments().filter_map(|argument| argument.get_long()).collect();
        ours.retain(|name| !OUTPUT.contains(name));
        let mut library: Vec<&str> = SimulateOptions::names().collect();
        ours.sort_unstable();
        library.sort_unstable();
        assert_eq!(ours, library);
    }
}
