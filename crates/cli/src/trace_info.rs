//! `imbrex trace info`: statistics of a workload, as text or JSON and as a plot.

use std::path::Path;

use imbrex_disk::Operation;
use imbrex_trace::generators::TargetFigure;
use imbrex_trace::statistics::{Distribution, TraceInfo};
use imbrex_trace::{Request, When};
use serde_json::Value;

use crate::args::WorkloadArgs;
use crate::error::ExitCode;
use crate::output;
use imbrex::Failure;
use imbrex::Progress;
use imbrex::chart::{Axis, Chart, Series, Shape, Style, Unit};
use imbrex::conversion;
use imbrex::files::check_output;
use imbrex::table_form::{Cells, TableForm};
use imbrex::workload::{Workload, inputs_of};
use imbrex::{files, human};

/// Maximum number of points in the plot: of a longer trace every n-th request is drawn.
const PLOT_POINTS: usize = 6000;

/// Executes the command.
pub(crate) fn run(
    args: &WorkloadArgs,
    json: bool,
    table: Option<TableForm>,
    plot: Option<&Path>,
    progress: &Progress,
) -> Result<ExitCode, Failure> {
    if let Some(path) = plot {
        check_output(path, &inputs_of(&args.workload)).map_err(Failure::failed)?;
    }
    let workload = Workload::find(&args.workload, &args.options()?, progress)?;
    let mut points = Points::default();
    let described = conversion::describe(&workload, progress, &mut |number, request| points.see(number, request))?;
    if let Some(path) = plot {
        write_plot(path, &workload.name, &points, described.info.span_ns > 0)?;
    }
    let targets = workload.targets();
    if json {
        output::json(&described)?;
    } else if let Some(form) = table {
        let document = serde_json::to_value(&described).map_err(Failure::failed)?;
        output::part(&Cells::of_document(&document).in_form(form));
    } else {
        output::line(&as_text(&workload, &described.info));
        if !targets.is_empty() {
            output::line(&beside_targets(&targets, &serde_json::to_value(&described.info).map_err(Failure::failed)?));
        }
    }
    Ok(ExitCode::Done)
}

/// Returns a table of the figures that the workload was designed for beside the measured ones.
fn beside_targets(targets: &[TargetFigure], figures: &Value) -> String {
    let mut lines = vec![format!("  {:26} {:>14} {:>14} {:>9}", "made to", "target", "here", "off by")];
    for target in targets {
        let figure = target.name.split('.').fold(figures, |figures, part| &figures[part]);
        // NaN makes a missing figure visible: a workload without reads has no read sizes, for example.
        let here = figure.as_f64().unwrap_or(f64::NAN);
        lines.push(format!(
            "  {:26} {:>14} {:>14} {:>+7.2} %",
            target.name,
            human_figure(target.name, target.value),
            human_figure(target.name, here),
            (here / target.value - 1.0) * 100.0
        ));
    }
    lines.join("\n")
}

fn human_figure(name: &str, value: f64) -> String {
    match name {
        "lba_end" => human::bytes(value as u64 * 512),
        _ if name.contains("share") => percent(value),
        _ if name.contains("bytes") => human::bytes(value as u64),
        _ => human::count(value as u64),
    }
}

/// Samples of the addresses of reads and writes over time.
#[derive(Default)]
struct Points {
    reads: Sample,
    writes: Sample,
}

/// Every n-th point of a stream; n doubles when there are more than [`PLOT_POINTS`].
struct Sample {
    points: imbrex_sim::metrics::series::Series<(f64, f64)>,
}

impl Default for Sample {
    fn default() -> Sample {
        Sample { points: imbrex_sim::metrics::series::Series::new(PLOT_POINTS) }
    }
}

impl Points {
    fn see(&mut self, number: u64, request: &Request) {
        let across = match request.when {
            When::At(at) => at.0 as f64 / 1e9,
            When::Free(_) | When::Drained(_) => number as f64,
        };
        let point = (across, request.command.lba.0 as f64 * 512.0);
        match request.command.operation {
            Operation::Read => self.reads.points.see(point),
            Operation::Write => self.writes.points.see(point),
            Operation::Flush | Operation::Trim => {}
        }
    }
}

fn write_plot(path: &Path, name: &str, sampled: &Points, has_times: bool) -> Result<(), Failure> {
    let points = |sample: &Sample| sample.points.iter().map(|(_, point)| point).collect::<Vec<_>>();
    let across = if has_times { "time (s)" } else { "request" };
    let chart = Chart::new(
        "trace",
        format!("Where {name} reads and writes"),
        Axis::linear(across, Unit::Count),
        Axis::linear("address", Unit::Bytes),
    )
    .with(Series::new("reads", Shape::Dots, 0, points(&sampled.reads)))
    .with(Series::new("writes", Shape::Dots, 1, points(&sampled.writes)))
    .described("Each dot is a request: across, when it was made; up, its address.");
    Ok(files::replace(path, chart.svg(Style::Standalone).as_bytes())?)
}

fn as_text(workload: &Workload, info: &TraceInfo) -> String {
    let mut lines = vec![format!("{} ({})", workload.name, workload.format)];
    let mut say = |label: &str, text: String| lines.push(format!("  {label:22} {text}"));
    say(
        "requests",
        format!(
            "{}: {} reads, {} writes, {} flushes, {} trims",
            human::count(info.requests),
            human::count(info.reads),
            human::count(info.writes),
            human::count(info.flushes),
            human::count(info.trims)
        ),
    );
    say("bytes", format!("{} read, {} written", human::bytes(info.read_bytes), human::bytes(info.write_bytes)));
    if info.span_ns > 0 {
        say("span", human::duration_ns(info.span_ns));
    }
    say("reaches to", human::bytes(info.lba_end * 512));
    let set = &info.working_set;
    say(
        "working set (4 KiB)",
        format!(
            "{} read, {} written, {} either, {} both",
            human::bytes(set.read_bytes),
            human::bytes(set.write_bytes),
            human::bytes(set.either_bytes),
            human::bytes(set.both_bytes)
        ),
    );
    say(
        "sequential",
        format!("{} of reads, {} of writes", percent(info.sequential.read_share), percent(info.sequential.write_share)),
    );
    let hot = &info.hot_tracks;
    say(
        "writes to hot tracks",
        format!(
            "{} to the hottest, {} to 10, {} to 100 of {} written ({} each)",
            percent(hot.share_1),
            percent(hot.share_10),
            percent(hot.share_100),
            human::count(hot.written),
            human::bytes(hot.track_bytes)
        ),
    );
    for (label, sizes) in [("read sizes", &info.read_size_bytes), ("write sizes", &info.write_size_bytes)] {
        if let Some(sizes) = sizes {
            say(label, distribution(sizes, human::bytes));
        }
    }
    if let Some(gaps) = &info.inter_arrival_ns {
        say("gaps between arrivals", distribution(gaps, human::duration_ns));
    }
    let reading = &info.reading;
    for (label, count) in [
        ("out of order", reading.out_of_order),
        ("not whole sectors", reading.unaligned),
        ("records left out", reading.not_requests),
        ("malformed, skipped", reading.malformed),
        ("empty requests", info.empty),
    ] {
        if count > 0 {
            say(label, human::count(count));
        }
    }
    if info.devices.len() > 1 {
        for device in &info.devices {
            say("device", format!("{}: {} requests", device.name, human::count(device.requests)));
        }
    }
    lines.join("\n")
}

fn distribution(shape: &Distribution, print: impl Fn(u64) -> String) -> String {
    format!(
        "mean {}, median {}, p95 {}, p99 {}, max {}",
        print(shape.mean.round() as u64),
        print(shape.p50),
        print(shape.p95),
        print(shape.p99),
        print(shape.max)
    )
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
