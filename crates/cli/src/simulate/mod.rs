//! `imbrex simulate`: one workload on several drives, side by side.

pub mod drives;
mod run;
mod sinks;
mod table;

use imbrex_sim::{DriveResult, Summary, WorkloadSummary};

use self::drives::DrivePlan;
use self::run::Ran;
use self::sinks::Sinks;
use crate::args::SimulateArgs;
use crate::error::{ExitCode, Failure};
use crate::progress::Bars;
use crate::workload::Workload;

/// Runs the command.
pub fn run(args: &SimulateArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let bars = Bars::new(quiet);
    let mut plans = plans(args)?;
    let sinks = Sinks::prepare(args)?;
    let workload = Workload::find(&args.workload, &bars)?;
    fit(args, &workload, &mut plans, &bars)?;
    let mut ran = run::run_all(args, &workload, &plans, &sinks, &bars)?;
    compare(args, &plans, &mut ran);
    let summary = document(&workload, &ran);
    let curves: Vec<_> = ran.iter().map(|ran| ran.series.clone()).collect();
    sinks.finish(&summary, &curves)?;
    print(args, &summary)?;
    Ok(verdict(&ran, &summary, quiet))
}

fn plans(args: &SimulateArgs) -> Result<Vec<DrivePlan>, Failure> {
    let every_kind = if args.drives.is_empty() { drives::one_of_every_kind() } else { Vec::new() };
    let mut plans = Vec::new();
    for text in every_kind.iter().chain(&args.drives) {
        plans.push(DrivePlan::parse(text)?);
    }
    if let Some(text) = &args.baseline {
        let mut baseline = DrivePlan::parse(text)?;
        baseline.is_baseline = true;
        plans.push(baseline);
    } else if !args.no_baseline {
        // One for each geometry; with conventional drives alone the first of them is what the others compare with.
        for index in 0..plans.len() {
            if plans[index].is_conventional() {
                continue;
            }
            let label = plans[index].baseline_label();
            if !plans.iter().any(|plan| plan.label() == label) {
                plans.push(plans[index].baseline()?);
            }
        }
    }
    Ok(plans)
}

fn fit(args: &SimulateArgs, workload: &Workload, plans: &mut [DrivePlan], bars: &Bars) -> Result<(), Failure> {
    let Some(end) = workload.end_sectors() else { return Ok(()) };
    for plan in plans {
        if let Some(remark) = plan.fit(args.fit, end * 512)? {
            bars.say(&remark);
        }
    }
    Ok(())
}

/// Fills in the slowdown of each drive: over the baseline given, else over the conventional drive of its own geometry, a
/// conventional one over the first such, a baseline over itself.
fn compare(args: &SimulateArgs, plans: &[DrivePlan], ran: &mut [Ran]) {
    if args.no_baseline {
        return;
    }
    let first = plans.iter().position(|plan| plan.is_baseline);
    let first = first.or_else(|| plans.iter().position(DrivePlan::is_conventional));
    for index in 0..plans.len() {
        let own = if plans[index].is_baseline {
            Some(index)
        } else if args.baseline.is_some() || plans[index].is_conventional() {
            first
        } else {
            let label = plans[index].baseline_label();
            plans.iter().position(|plan| plan.label() == label)
        };
        if let Some(own) = own {
            let baseline_ns = ran[own].result.duration_ns.max(1);
            ran[index].result.slowdown = Some(ran[index].result.duration_ns as f64 / baseline_ns as f64);
        }
    }
}

fn document(workload: &Workload, ran: &[Ran]) -> Summary {
    // A generator that runs by simulated time asks each drive for what it can take: the first stands for all.
    let counts = workload.counts.unwrap_or(ran[0].counts);
    let mut rejected = std::collections::BTreeMap::new();
    if workload.facts.malformed > 0 {
        rejected.insert("malformed".to_string(), workload.facts.malformed);
    }
    let summary = WorkloadSummary {
        name: workload.name.clone(),
        format: workload.format.clone(),
        requests: counts.requests,
        reads: counts.reads,
        writes: counts.writes,
        flushes: counts.flushes,
        trims: counts.trims,
        read_bytes: counts.read_bytes,
        write_bytes: counts.write_bytes,
        rejected,
        span_ns: counts.span_ns,
        lba_end: counts.end_sectors,
        sha256: workload.sha256.clone(),
    };
    let drives: Vec<DriveResult> = ran.iter().map(|ran| ran.result.clone()).collect();
    Summary::new(env!("CARGO_PKG_VERSION"), command_line(), workload.seed, summary, drives)
}

/// The command as typed, the program by its name alone.
fn command_line() -> Vec<String> {
    std::iter::once("imbrex".to_string()).chain(std::env::args().skip(1)).collect()
}

fn print(args: &SimulateArgs, summary: &Summary) -> Result<(), Failure> {
    if args.json {
        let text = serde_json::to_string_pretty(summary).map_err(Failure::failed)?;
        crate::output::line(&text)?;
        return Ok(());
    }
    let workload = &summary.workload;
    crate::output::line(&format!(
        "{} ({}): {} requests, {} reads, {} writes\n",
        workload.name,
        workload.format,
        crate::human::count(workload.requests),
        crate::human::count(workload.reads),
        crate::human::count(workload.writes)
    ))?;
    crate::output::line(&table::render(&summary.drives))?;
    for remark in table::remarks(&summary.drives) {
        crate::output::line(&format!("\n{remark}"))?;
    }
    Ok(())
}

fn verdict(ran: &[Ran], summary: &Summary, quiet: bool) -> ExitCode {
    if summary.drives.iter().any(|drive| drive.integrity.is_violated()) {
        eprintln!("imbrex: live data was lost: see the lines marked DAMAGE");
        return ExitCode::Damage;
    }
    if summary.drives.iter().any(|drive| drive.integrity.live_sectors_destroyed() > 0) {
        eprintln!(
            "imbrex: the workload destroyed live data of its own: a host-managed drive needs a host that keeps its rules"
        );
        return ExitCode::Damage;
    }
    if ran.iter().any(|ran| ran.interrupted) {
        if !quiet {
            eprintln!("imbrex: interrupted: the results are those of the requests read until then");
        }
        return ExitCode::Failed;
    }
    ExitCode::Done
}
