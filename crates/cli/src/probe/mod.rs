//! `imbrex probe`: finds out the internals of a drive.

mod compare;
mod file;
mod leave;
mod model;
mod page;
mod table;

use std::io::Write;
use std::path::{Path, PathBuf};

use imbrex_probe::models::stated;
use imbrex_probe::{ProbeOptions, ProbeState, Verdict, emit_profile, experiments, probe};
use imbrex_units::quantity;

use crate::args::ProbeArgs;
use crate::error::ExitCode;
use crate::{chart_files, interrupt, output};
use imbrex::Failure;
use imbrex::Progress;
use imbrex::drives::profile_file;
use imbrex::files::{WholeFile, check_output};
use imbrex::human;
use imbrex_units::names::suggestion;

/// Executes the command.
pub(crate) fn run(args: &ProbeArgs, quiet: bool) -> Result<ExitCode, Failure> {
    if !args.compare.is_empty() {
        refuse_measuring(args, "--compare")?;
        return compare::run(args, &args.compare).map(|()| ExitCode::Done);
    }
    if let (None, None, Some(model)) = (&args.target, &args.file, &args.model) {
        refuse_measuring(args, "--model without a target")?;
        return model::print(model, args.json).map(|()| ExitCode::Done);
    }
    if args.target.is_none() && args.file.is_none() {
        return Err(Failure::usage(
            "the target is missing: name sim:DRIVE, an image, nbd://… or a block device, or give one of --file FOLDER, \
             --model MODEL, --compare FILE.json…",
        )
        .or_try("`imbrex probe --file /mnt/data`, which destroys nothing"));
    }
    check_tests(args)?;
    chart_files::check(args.charts.charts.as_deref())?;
    let budget_ns = budget_ns(args)?;
    let target = args.target();
    let input = match target.strip_prefix("sim:") {
        Some(words) => profile_file(words),
        None => Some(target.into()),
    };
    let inputs: Vec<PathBuf> = input.into_iter().collect();
    let outputs = [
        ("--report", args.report.as_deref()),
        ("--share", args.share.as_deref()),
        ("--emit-profile", args.emit_profile.as_deref()),
    ];
    for (number, one) in outputs.iter().enumerate() {
        outputs[..number].iter().try_for_each(|other| check_distinct(*other, *one))?;
    }
    if let Some(path) = &args.report {
        check_writable(path, "--report", &inputs)?;
    }
    if let Some(path) = &args.share {
        check_writable(path, "--share", &inputs)?;
    }
    if let Some(path) = &args.emit_profile {
        if path.extension().is_none_or(|ending| ending != "toml") {
            let shown = path.display();
            return Err(Failure::usage(format!("--emit-profile {shown}: a profile's name ends in .toml")));
        }
        check_writable(path, "--emit-profile", &inputs)?;
    }
    interrupt::answer_with("ending the running test, putting the drive's settings back");
    let mut opened = leave::open(args, quiet)?;
    let verdict = run_tests(args, quiet, budget_ns, &mut opened);
    // Dropped before the verdict is printed, so that the drive's settings are restored and its file is closed.
    drop(opened);
    tell(args, &verdict, quiet)?;
    match &verdict.ended {
        Some(_) if interrupt::requested() => Ok(ExitCode::Failed),
        Some(reason) => Err(Failure::failed(reason)),
        None => Ok(ExitCode::Done),
    }
}

/// Returns an error if options of a measurement are given where nothing is measured.
fn refuse_measuring(args: &ProbeArgs, what: &str) -> Result<(), Failure> {
    let is_model = args.compare.is_empty();
    let given = [
        ("--test", !args.tests.is_empty()),
        ("--destroy-data", args.destroy_data),
        ("--budget", args.budget.is_some()),
        ("--seed", args.seed.is_some()),
        ("--report", args.report.is_some()),
        ("--charts", args.charts.charts.is_some()),
        ("--emit-profile", args.emit_profile.is_some()),
        ("--share", is_model && args.share.is_some()),
        ("--table", is_model && args.table.table.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::usage(format!("{option} is for a measurement: {what} measures nothing"))),
        None => Ok(()),
    }
}

/// Checks that every named test exists, and that the tests that write are permitted.
fn check_tests(args: &ProbeArgs) -> Result<(), Failure> {
    for name in &args.tests {
        let Some(experiment) = experiments::all().iter().find(|experiment| experiment.name == name) else {
            let names: Vec<_> = experiments::all().iter().map(|experiment| experiment.name).collect();
            let meant = suggestion(name, names.iter().copied());
            return Err(Failure::usage(format!(
                "no test is called '{name}'{meant}; the tests are {}",
                names.join(", ")
            )));
        };
        if experiment.writes && !leave::may_write(args) {
            return Err(Failure::usage(format!("test '{name}' writes: it destroys the data on {}", args.target()))
                .or_try("--destroy-data, if nothing on it is wanted any more"));
        }
    }
    Ok(())
}

fn budget_ns(args: &ProbeArgs) -> Result<u64, Failure> {
    let Some(text) = &args.budget else { return Ok(if args.file.is_some() { file::BUDGET_NS } else { u64::MAX }) };
    quantity::duration_ns(text, quantity::SECOND_NS)
        .filter(|&ns| ns > 0)
        .ok_or_else(|| Failure::usage(format!("--budget {text}: expected a time such as 30m or 2h, more than none")))
}

/// Returns the names of the tests to run; none for all.
fn tests(args: &ProbeArgs) -> Vec<String> {
    match args.file {
        Some(_) => experiments::OF_FILES.iter().map(|name| (*name).to_string()).collect(),
        None => args.tests.clone(),
    }
}

fn run_tests(args: &ProbeArgs, quiet: bool, budget_ns: u64, opened: &mut leave::Opened) -> Verdict {
    let progress = Progress::on_terminal(quiet).stopping_when(interrupt::requested);
    let bar = progress.steps(args.target());
    let mut options = ProbeOptions {
        may_write: leave::may_write(args),
        only: tests(args),
        budget_ns,
        seed: args.seed.unwrap_or(1),
        progress: &mut |told| {
            bar.set_message(step(told, budget_ns));
            bar.tick();
            !interrupt::requested()
        },
    };
    let verdict = probe(opened.target(), &mut options);
    bar.finish_and_clear();
    verdict
}

/// Returns the progress line of a running test.
fn step(told: &ProbeState<'_>, budget_ns: u64) -> String {
    let spent = human::duration_ns(told.spent_ns);
    let of = if budget_ns == u64::MAX { String::new() } else { format!(" of {}", human::duration_ns(budget_ns)) };
    format!("{}  {} operations, {spent}{of}", told.test, human::count(told.operations))
}

/// The line below the verdict of --file, on the questions that stay open.
const BY_A_FILE: &str = "A file does not tell where the drive's cache lies, how much it holds in all, and how large its bands are. \
    `imbrex probe /dev/sdX --destroy-data` does, and destroys everything on the drive.";

/// The conventional drive whose measurements are drawn beside those of the target.
const CONVENTIONAL: &str = "cmr-7200";

/// Probes [`CONVENTIONAL`] in simulated time, with the same tests and the same seed.
fn conventional(args: &ProbeArgs) -> Result<Verdict, Failure> {
    let mut target = leave::simulated(CONVENTIONAL)?;
    let mut options = ProbeOptions {
        may_write: true,
        only: tests(args),
        budget_ns: u64::MAX,
        seed: args.seed.unwrap_or(1),
        progress: &mut |_| true,
    };
    Ok(probe(&mut target, &mut options))
}

/// Prints the verdict, and writes the requested files.
fn tell(args: &ProbeArgs, verdict: &Verdict, quiet: bool) -> Result<(), Failure> {
    let model = args.model.as_deref();
    let mut document = serde_json::to_value(verdict).map_err(Failure::failed)?;
    document["statement"] = serde_json::json!(stated(model, verdict));
    if args.json {
        output::line(&crate::json::text(&output::with_warnings(&document)?).map_err(Failure::failed)?);
    } else if let Some(form) = args.table.table {
        output::part(&table::cells(verdict).in_form(form));
    } else {
        table::print(verdict)?;
        if let Some(line) = model::beside(model, verdict) {
            output::line(&line);
        }
        if args.file.is_some() {
            output::line(BY_A_FILE);
        }
    }
    if let Some(path) = &args.share {
        let text = crate::json::text(&compare::shared(document)).map_err(Failure::failed)?;
        write_whole(path, &format!("{text}\n"))?;
    }
    if args.report.is_some() || args.charts.charts.is_some() {
        let beside = conventional(args)?;
        if let Some(path) = &args.report {
            write_whole(
                path,
                &page::html(verdict, &beside, model::beside(model, verdict).as_deref(), &output::command_line()),
            )?;
        }
        if let Some(folder) = args.charts.charts.as_deref() {
            chart_files::save_charts(folder, page::charts(verdict, &beside), quiet)?;
        }
    }
    if let Some(path) = &args.emit_profile {
        let missing = ["rotation", "type"].into_iter().find(|name| {
            verdict.property(name).is_none_or(|property| property.value == imbrex_probe::Value::CannotTell)
        });
        if let Some(name) = missing {
            let shown = path.display();
            return Err(Failure::failed(format!(
                "{shown}: no profile is written, since the drive's {name} is not known"
            )));
        }
        if verdict.word("type") == Some("interlaced") {
            let shown = path.display();
            return Err(Failure::failed(format!(
                "{shown}: no profile is written, since the tests do not measure the tracks of an interlaced drive"
            ))
            .or_try("a profile of one's own on the base of 'imr-1t' (imbrex list profiles imr-1t)"));
        }
        write_whole(path, &emit_profile(verdict))?;
    }
    Ok(())
}

/// Writes `text` to the file `path`, which appears only when it is complete.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    let write = || -> std::io::Result<()> {
        let mut file = WholeFile::create(path)?;
        file.write_all(text.as_bytes())?;
        file.finish()
    };
    write().map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}

/// Refuses two options that name one file: the second output would replace the first.
pub(crate) fn check_distinct(one: (&str, Option<&Path>), other: (&str, Option<&Path>)) -> Result<(), Failure> {
    let (Some(first), Some(second)) = (one.1, other.1) else { return Ok(()) };
    let is_one = std::path::absolute(first).ok() == std::path::absolute(second).ok()
        || first.canonicalize().is_ok_and(|first| second.canonicalize().is_ok_and(|second| first == second));
    // Writing both to a terminal or a pipe, one after the other, loses nothing.
    if is_one && (!first.exists() || first.is_file()) {
        let path = first.display();
        return Err(Failure::usage(format!("{} and {} both name {path}", one.0, other.0)).or_try("two different files"));
    }
    Ok(())
}

/// Checks that `path` can be written and is none of `inputs`. Called before the work, which may take hours.
pub(crate) fn check_writable(path: &Path, option: &str, inputs: &[PathBuf]) -> Result<(), Failure> {
    let refused = |reason: String| Failure::failed(format!("{option} {}: {reason}", path.display()));
    if path.is_dir() {
        return Err(refused("is a folder".into()));
    }
    check_output(path, inputs).map_err(|error| Failure::failed(format!("{option}: {error}")))?;
    if path.exists() && !path.is_file() {
        // Opening and closing a pipe would end it for its reader.
        return Ok(());
    }
    WholeFile::create(path).map(drop).map_err(|error| refused(format!("cannot be written: {error}")))
}
