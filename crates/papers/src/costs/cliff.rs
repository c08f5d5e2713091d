//! The cliff: random 4 KiB writes without a pause, until the caches are full, and some after.

use super::super::{Experiment, Replication, Report};
use super::bench::{Case, Cost};
use super::compared::DRIVES;
use super::table::{COLUMNS, cells, rate, seconds, table};
use imbrex::chart::{Axis, Chart, Series, Shape, Unit};
use imbrex::error::Failure;
use imbrex::human;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "costs/cliff", title: "random 4 KiB writes until caches are full, and beyond", run };

/// Workload like the built-in `random-4k`, but long enough to fill the largest cache.
const WORDS: &str = "rw=randwrite,bs=4k,number_ios=10000000,iodepth=31";
/// Number of writes after the cliff at which a run ends.
const PAST_CLIFF: u64 = 100_000;
/// Workload for drives that have no persistent cache, and so no cliff or a cliff from the start.
const WITHOUT: &str = "random-4k";
/// Drives whose throughput the chart shows.
const SHOWN: [&str; 5] = ["cmr-5900", "st5000as0011", "st8000as0022", "emulated-smr-2", "imr-1t"];

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: format!(
            "The workload is `{WORDS}`; it ends {PAST_CLIFF} writes after the cliff, the first time that a write has \
             to wait until the drive has cleaned something. Drives without a cliff get the 500,000 writes of the \
             built-in workload `{WITHOUT}`."
        ),
        ..Report::default()
    };
    let mut columns = vec!["drive", "writes before", "time before", "writes/s before", "writes/s after"];
    columns.extend(COLUMNS);
    let mut rows = table("Random writes of 4 KiB, 31 at a time", &columns);
    let mut lines = Vec::new();
    for (name, drive) in DRIVES {
        let cost = measure(drive, replication)?;
        let mut row = vec![name.to_string()];
        row.extend(before_and_after(&cost));
        row.extend(cells(&cost));
        rows.rows.push(row);
        if let Some(look) = SHOWN.iter().position(|shown| *shown == name) {
            lines.push(Series::new(name, Shape::Steps, look, smoothed(&cost.points())));
        }
    }
    report.tables.push(rows);
    report.figure(chart(lines));
    Ok(report)
}

fn has_cache(drive: &str) -> bool {
    !(drive.starts_with("cmr") || drive.starts_with("imr"))
}

fn measure(drive: &str, replication: &Replication) -> Result<Cost, Failure> {
    match has_cache(drive) {
        true => Case { past_cliff: Some(PAST_CLIFF), ..Case::new(drive, WORDS) }.make(replication),
        false => Case::new(drive, WITHOUT).make(replication),
    }
}

/// Returns four cells: writes and time before the cliff, then writes a second before and after the cliff.
pub(super) fn before_and_after(cost: &Cost) -> [String; 4] {
    let none = || "–".to_string();
    match cost.cliff {
        None => [none(), none(), rate(cost.rate()), none()],
        Some(cliff) => [
            human::count(cliff.requests),
            seconds(cliff.at.0 as f64 / 1e9),
            rate(cost.rate_before()),
            cost.rate_after().map_or_else(none, rate),
        ],
    }
}

/// Returns the means of ten windows each. A mean of zero becomes 0.1, since the axis of the chart is logarithmic.
fn smoothed(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mean = |chunk: &[(f64, f64)]| chunk.iter().map(|point| point.1).sum::<f64>() / chunk.len() as f64;
    points.chunks(10).map(|chunk| (chunk[0].0.max(1.0), mean(chunk).max(0.1))).collect()
}

fn chart(lines: Vec<Series>) -> Chart {
    let mut chart = Chart::new(
        "costs-cliff",
        "Random writes of 4 KiB, 31 at a time",
        Axis::log10("simulated time (s)", Unit::Count),
        Axis::log10("writes a second, means of ten windows", Unit::Count),
    )
    .sized(860.0, 460.0);
    for line in lines {
        chart = chart.with(line);
    }
    chart.thin(600)
}
