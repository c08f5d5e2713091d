//! `imbrex trace`: describes workloads and converts them.

use std::path::Path;

use imbrex_disk::{Operation, SimTime};
use imbrex_trace::{Request, Source, When};
use serde_json::{Value, json};

use crate::args::{TraceCommand, WorkloadArgs};
use crate::error::ExitCode;
use crate::{interrupt, output, trace_info};
use imbrex::Failure;
use imbrex::Progress;
use imbrex::conversion;
use imbrex::files::{check_output, is_standard_output};
use imbrex::human;
use imbrex::workload::{Counted, Workload, inputs_of};

/// Executes the command.
pub(crate) fn run(command: &TraceCommand, quiet: bool) -> Result<ExitCode, Failure> {
    let progress = Progress::on_terminal(quiet).stopping_when(interrupt::requested);
    match command {
        TraceCommand::Info { workload, json, table, plot } => {
            trace_info::run(workload, *json, table.table, plot.as_deref(), &progress)
        }
        TraceCommand::Convert { workload, output, to, json } => {
            convert(workload, output, to.as_deref(), *json, quiet, &progress)
        }
        TraceCommand::Head { workload, count, json } => head(workload, *count, *json, &progress),
    }
}

fn convert(
    args: &WorkloadArgs,
    path: &Path,
    to: Option<&str>,
    json: bool,
    quiet: bool,
    progress: &Progress,
) -> Result<ExitCode, Failure> {
    let path = if path == Path::new("-") { Path::new("/dev/stdout") } else { path };
    let is_piped = is_standard_output(path);
    if is_piped && json {
        return Err(Failure::usage("--json and the trace both go to standard output").or_try("a file for the trace"));
    }
    let writer = conversion::writer_for(path, to)?;
    // Checked before the trace is read through, which may take minutes.
    check_output(path, &inputs_of(&args.workload)).map_err(Failure::failed)?;
    let workload = Workload::find(&args.workload, &args.options()?, progress)?;
    let written = conversion::convert(&workload, path, writer, progress)?.written;
    if json {
        let document = json!({
            "schema": "imbrex.trace-convert/1", "input": workload.name, "from": workload.format,
            "output": path.display().to_string(), "to": writer.name,
            "requests": written.requests, "lost": written.lost, "warnings": workload.warnings,
        });
        output::json(&document)?;
    } else {
        let summary = format!("{} requests as {} in {}", human::count(written.requests), writer.name, path.display());
        match (is_piped, quiet) {
            (false, _) => output::line(&summary),
            // The trace itself is on standard output.
            (true, false) => message!("{summary}"),
            (true, true) => {}
        }
        for (what, count) in &written.lost {
            message!("imbrex: {} {what}: the format {} cannot store that", human::count(*count), writer.name);
        }
    }
    Ok(ExitCode::Done)
}

fn head(args: &WorkloadArgs, count: u64, json: bool, progress: &Progress) -> Result<ExitCode, Failure> {
    let limited = WorkloadArgs { limit: Some(args.limit.map_or(count, |limit| limit.min(count))), ..args.clone() };
    let workload = Workload::find(&limited.workload, &limited.options()?, progress)?;
    let mut source: Counted = conversion::open_without_drive(&workload)?;
    if !json {
        output::line("when               operation  lba           sectors");
    }
    while let Some(request) = source.next(SimTime::ZERO)? {
        output::line(&if json { as_json(&request).to_string() } else { as_text(&request) });
        output::check()?;
    }
    Ok(ExitCode::Done)
}

fn as_text(request: &Request) -> String {
    let command = &request.command;
    let fua = if command.fua { "  FUA" } else { "" };
    let when = when(&request.when);
    format!("{when:18} {:9}  {:<12}  {}{fua}", operation(command.operation), command.lba.0, command.sectors)
}

fn when(when: &When) -> String {
    match when {
        When::At(at) => format!("{:.9} s", at.0 as f64 / 1e9),
        When::Free(think) if think.is_zero() => "at once".into(),
        When::Free(think) => format!("after {think}"),
        When::Drained(pause) => format!("drained, {pause}"),
    }
}

fn as_json(request: &Request) -> Value {
    let command = &request.command;
    let (kind, ns) = match request.when {
        When::At(at) => ("time_ns", at.0),
        When::Free(think) => ("think_ns", think.0),
        When::Drained(pause) => ("pause_ns", pause.0),
    };
    json!({
        kind: ns, "op": operation(command.operation), "lba": command.lba.0, "sectors": command.sectors,
        "fua": command.fua, "device": request.device,
    })
}

fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Flush => "flush",
        Operation::Trim => "trim",
    }
}
