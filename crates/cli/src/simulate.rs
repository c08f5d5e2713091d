//! `imbrex simulate`: one workload on several drives, side by side.

use imbrex::{human, Baseline, Failure, Progress, Simulated, Simulation, SimulationOptions, Workload};
use imbrex_disk::SimDuration;

use crate::args::{FitChoice, SimulateArgs};
use crate::error::ExitCode;
use crate::interrupt;
use crate::output;

/// Runs the command.
pub fn run(args: &SimulateArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let progress = Progress::on_terminal(quiet).stopping_when(interrupt::requested);
    let mut simulation = Simulation::new().baseline(baseline(args)).options(options(args)?).command(command_line());
    for text in &args.drives {
        simulation = simulation.drive(text)?;
    }
    let prepared = simulation.prepared()?;
    let workload = Workload::find(&args.workload.workload, &args.workload.options()?, &progress)?;
    let simulated = prepared.run(&workload, &progress)?;
    print(args, &simulated)?;
    Ok(verdict(&simulated, quiet))
}

fn baseline(args: &SimulateArgs) -> Baseline {
    match &args.baseline {
        Some(text) => Baseline::Drive(text.clone()),
        None if args.no_baseline => Baseline::None,
        None => Baseline::Conventional,
    }
}

fn options(args: &SimulateArgs) -> Result<SimulationOptions, Failure> {
    let window_ns = imbrex_units::quantity::duration_ns(&args.window, imbrex_units::quantity::SECOND_NS)
        .filter(|&ns| ns > 0)
        .ok_or_else(|| Failure::usage(format!("--window {}: expected a time such as 1s or 100ms", args.window)))?;
    Ok(SimulationOptions {
        fit: match args.fit {
            FitChoice::Grow => imbrex::FitChoice::Grow,
            FitChoice::Wrap => imbrex::FitChoice::Wrap,
            FitChoice::Scale => imbrex::FitChoice::Scale,
            FitChoice::Error => imbrex::FitChoice::Error,
        },
        arrival: args.arrival.clone(),
        queue: args.queue,
        schedule: args.schedule.clone(),
        write_cache_bytes: size("--write-cache", args.write_cache.as_deref())?,
        read_ahead_bytes: size("--read-ahead", args.read_ahead.as_deref())?,
        warmup_requests: args.warmup,
        window: SimDuration(window_ns),
        check: args.check,
        jobs: args.jobs,
        out: args.out.clone(),
        per_io: args.per_io,
        plans: args.plans,
    })
}

/// A size or `off`, as given for `option`.
fn size(option: &str, given: Option<&str>) -> Result<Option<u64>, Failure> {
    match given {
        None => Ok(None),
        Some("off") => Ok(Some(0)),
        Some(text) => imbrex_units::quantity::bytes(text)
            .map(Some)
            .ok_or_else(|| Failure::usage(format!("{option} {text}: expected a size such as 64MiB, or off"))),
    }
}

/// The command as typed, the program by its name alone.
fn command_line() -> Vec<String> {
    std::iter::once("imbrex".to_string()).chain(std::env::args().skip(1)).collect()
}

fn print(args: &SimulateArgs, simulated: &Simulated) -> Result<(), Failure> {
    if args.json {
        let text = serde_json::to_string_pretty(&simulated.summary).map_err(Failure::failed)?;
        return output::line(&text);
    }
    let workload = &simulated.summary.workload;
    output::line(&format!(
        "{} ({}): {} requests, {} reads, {} writes\n",
        workload.name,
        workload.format,
        human::count(workload.requests),
        human::count(workload.reads),
        human::count(workload.writes)
    ))?;
    output::line(&simulated.table_within(output::terminal_columns()))
}

fn verdict(simulated: &Simulated, quiet: bool) -> ExitCode {
    let drives = &simulated.summary.drives;
    for reason in &simulated.not_run {
        eprintln!("imbrex: not run: {reason}");
    }
    if drives.iter().any(|drive| drive.integrity.is_violated()) {
        eprintln!("imbrex: live data was lost: see the lines marked DAMAGE");
        return ExitCode::Damage;
    }
    if drives.iter().any(|drive| drive.integrity.live_sectors_destroyed() > 0) {
        eprintln!(
            "imbrex: the workload destroyed live data of its own: a host-managed drive needs a host that keeps its rules"
        );
        return ExitCode::Damage;
    }
    if simulated.is_stopped {
        if !quiet {
            eprintln!("imbrex: interrupted: the results are those of the requests read until then");
        }
        return ExitCode::Failed;
    }
    if drives.iter().all(|drive| drive.completed == 0) {
        eprintln!("imbrex: no drive completed a request: there is nothing to compare");
        return ExitCode::Failed;
    }
    if !simulated.not_run.is_empty() {
        return ExitCode::Failed;
    }
    ExitCode::Done
}
