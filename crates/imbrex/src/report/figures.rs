//! Charts of the page, from the results and curves of the drives.
//!
//! Invariants:
//! 1. Series number i is drive number i in every chart, even if that drive has no points. A drive has the same look
//!    everywhere.
//! 2. A chart without data is left out.

use super::figure::{Drawing, Figure, Layout};
use super::intervals::{self, Pane};
use super::sweep;
use imbrex_layer::GroupKind;
use imbrex_sim::metrics::latency::LatencyHistogram;
use imbrex_sim::metrics::windows::Window;
use imbrex_sim::results::ServiceTime;
use imbrex_sim::{DriveResult, DriveSeries, Summary};

use crate::chart::{Axis, BarArrangement, BarChart, Chart, Series, Shape, Unit, label};

/// Largest number of points of a curve: more than its pixels can show.
const CURVE_POINTS: usize = 400;
/// Largest number of points of a distribution, like [`CURVE_POINTS`] for curves. Thinning keeps at most two points in
/// each interval of its axis.
const STEP_POINTS: usize = 500;
/// Number of steps of a rate over time. More would look like noise at this width.
const RATE_STEPS: usize = 200;
/// Largest number of dots of the head's path.
const HEAD_DOTS: usize = 400;
/// Largest number of drives whose curves a page shows before the reader chooses others.
const CURVES_SHOWN: usize = 8;
const SIZE: (f64, f64) = (580.0, 330.0);
const WIDE: (f64, f64) = (1180.0, 420.0);
const SMALL: (f64, f64) = (300.0, 170.0);
/// Number of nines up to which latency distributions are shown: 99.99 %.
const NINES: u8 = 4;

/// Returns all figures that have data.
pub(super) fn all(summary: &Summary, series: &[DriveSeries]) -> Vec<Figure> {
    let figures = [
        over_seeds(summary),
        sweep::figure(summary),
        latency(summary, series),
        rate(summary, series),
        amplification(summary),
        service(summary),
        trade(summary),
        disparity(summary, series),
        own_work(summary, series),
        head(summary, series),
    ];
    figures.into_iter().flatten().collect()
}

/// Returns the number and the legend name of each drive. The names contain only the differences between the drives.
fn names(summary: &Summary) -> impl Iterator<Item = (usize, String)> {
    sweep::short_names(summary).into_iter().enumerate()
}

/// Returns whether the curves of each drive are shown before the reader chooses others: at most [`CURVES_SHOWN`]. A
/// baseline of all drives is shown; then the drives that were asked for, if there are too many at equal distances from the
/// fastest to the slowest; then further baselines.
fn shown(summary: &Summary) -> Vec<bool> {
    let count = summary.drives.len();
    let baselines: Vec<usize> = (0..count).filter(|index| summary.is_baseline(*index)).collect();
    let mut shown: Vec<bool> = (0..count).map(|index| baselines == [index]).collect();
    let mut asked: Vec<usize> = (0..count).filter(|index| !shown[*index] && !summary.drives[*index].baseline).collect();
    asked.sort_by_key(|index| (summary.drives[*index].latency_ns.all.mean, *index));
    let mut room = CURVES_SHOWN - shown.iter().filter(|is_shown| **is_shown).count();
    let chosen = room.min(asked.len());
    for number in 0..chosen {
        shown[asked[number * (asked.len() - 1) / (chosen - 1).max(1)]] = true;
    }
    room -= chosen;
    for index in baselines {
        if room > 0 && !shown[index] {
            shown[index] = true;
            room -= 1;
        }
    }
    shown
}

/// Returns the means and 95 % intervals over the seeds, one pane for each figure; `None` for a run with one seed.
fn over_seeds(summary: &Summary) -> Option<Figure> {
    if summary.seeds.len() < 2 {
        return None;
    }
    let shown = [
        ("latency", "mean latency", "latency_ns.all.mean", Unit::Nanoseconds),
        ("reads", "mean latency of reads", "latency_ns.read.mean", Unit::Nanoseconds),
        ("writes", "mean latency of writes", "latency_ns.write.mean", Unit::Nanoseconds),
        ("ratio", "mean latency over the baseline’s", "latency_ratio.all.mean", Unit::Ratio),
        ("amplification", "write amplification", "write_amplification", Unit::Ratio),
        ("time", "simulated time", "duration_ns", Unit::Nanoseconds),
    ];
    let pane = |(id, name, path, unit): (&'static str, &'static str, &str, Unit)| {
        let of_drive = |(index, drive): (usize, String)| (drive, summary.drives[index].over_seeds.get(path).copied());
        Pane { id, name, unit, items: names(summary).map(of_drive).collect() }
    };
    intervals::figure("drive", summary.seeds.len(), shown.map(pane).into())
}

fn latency(summary: &Summary, series: &[DriveSeries]) -> Option<Figure> {
    let shown = shown(summary);
    let pane = |id: &str, name: &str, of: fn(&DriveSeries) -> &LatencyHistogram| {
        let mut chart = Chart::new(
            format!("latency-{id}"),
            format!("Latency of {name}: share of requests that took no longer"),
            Axis::log10(format!("latency of {name}"), Unit::Nanoseconds),
            Axis::percentile("share that took no longer", NINES),
        )
        .described(format!("Cumulative distribution of the latency of {name}, one curve a drive, up to 99.99 %."))
        .sized(WIDE.0, WIDE.1);
        for (index, drive) in names(summary) {
            let curve = Series::new(drive, Shape::Steps, index, cumulative(of(&series[index])));
            chart = chart.with(curve.hidden(!shown[index]));
        }
        (name.to_string(), Drawing::Chart(chart.thin(STEP_POINTS)))
    };
    let panes = vec![
        pane("all", "all requests", |drive| &drive.all),
        pane("reads", "reads", |drive| &drive.reads),
        pane("writes", "writes", |drive| &drive.writes),
    ];
    let caption = "Further left is faster; each line up is ten times fewer requests that took longer.".to_string();
    Figure { id: "latency", title: "Latency", caption, layout: Layout::Tabs, is_wide: true, panes }.if_any()
}

/// Returns the cumulative distribution as points (latency in ns, share of requests that took no longer), up to the
/// first share of [`NINES`] nines. A logarithmic axis cannot show requests of latency 0, such as flushes of an empty
/// cache, so the curve begins at their share.
fn cumulative(histogram: &LatencyHistogram) -> Vec<(f64, f64)> {
    let total = histogram.count() as f64;
    let top = 1.0 - 10f64.powi(-(NINES as i32));
    let mut points = Vec::new();
    let mut sum = 0u64;
    for (edge_ns, count) in histogram.buckets() {
        if edge_ns == 0 {
            sum += count;
            continue;
        }
        let edge_ns = edge_ns as f64;
        if points.is_empty() {
            points.push((edge_ns, sum as f64 / total));
        }
        sum += count;
        let share = sum as f64 / total;
        points.push((edge_ns, share));
        if share >= top {
            break;
        }
    }
    points
}

fn rate(summary: &Summary, series: &[DriveSeries]) -> Option<Figure> {
    let shown = shown(summary);
    let pane = |id: &str, name: &str, unit: Unit, of: fn(&Window) -> u64| {
        let of_drive = |index: usize| rates(&series[index], summary.drives[index].duration_ns, of);
        let curves: Vec<_> = names(summary).map(|(index, drive)| (index, drive, of_drive(index))).collect();
        let axis = rate_axis(name, unit, &curves);
        let mut chart = Chart::new(
            format!("rate-{id}"),
            format!("{name} over simulated time"),
            Axis::linear("simulated time", Unit::Nanoseconds),
            axis,
        )
        .described(format!("{name} completed over simulated time, one curve a drive."))
        .sized(SIZE.0, SIZE.1);
        for (index, drive, points) in curves {
            chart = chart.with(Series::new(drive, Shape::Steps, index, points).hidden(!shown[index]));
        }
        (name.to_string(), Drawing::Chart(chart))
    };
    let panes = vec![
        pane("requests", "requests/s", Unit::Count, |window| window.reads + window.writes),
        pane("bytes", "bytes/s", Unit::BytesPerSecond, |window| window.read_bytes + window.write_bytes),
    ];
    let steps: Vec<u64> = series.iter().map(|drive| drive.window_ns * merged(drive.windows.len()) as u64).collect();
    let (least, most) = (steps.iter().min().copied()?, steps.iter().max().copied()?);
    let width = if least == most {
        label::duration(least as f64)
    } else {
        format!("{} to {}", label::duration(least as f64), label::duration(most as f64))
    };
    let caption = format!(
        "Each step is the mean of {width}. The table counts the windows in which requests waited and none completed."
    );
    Figure { id: "rate", title: "Throughput", caption, layout: Layout::Tabs, is_wide: false, panes }.if_any()
}

/// A curve: the number and the name of its drive, and its points.
type Curve = (usize, String, Vec<(f64, f64)>);

/// Returns the axis of the rates in `curves`.
fn rate_axis(name: &str, unit: Unit, curves: &[Curve]) -> Axis {
    let mean = |points: &[(f64, f64)]| points.iter().map(|point| point.1).sum::<f64>() / points.len().max(1) as f64;
    let rates = curves.iter().flat_map(|(.., points)| points).map(|point| point.1);
    Axis::of_rates(name, unit, curves.iter().map(|(.., points)| mean(points)), rates.fold(0.0, f64::max))
}

/// Returns the number of windows merged into one step.
fn merged(windows: usize) -> usize {
    windows.div_ceil(RATE_STEPS).max(1)
}

/// Returns the points (begin in ns, rate per second) of the steps, and a last point at the end of the last step.
fn rates(series: &DriveSeries, duration_ns: u64, of: fn(&Window) -> u64) -> Vec<(f64, f64)> {
    let together = merged(series.windows.len());
    let mut points = Vec::new();
    for (index, windows) in series.windows.chunks(together).enumerate() {
        let begin_ns = index as u64 * together as u64 * series.window_ns;
        let whole_end_ns = begin_ns + windows.len() as u64 * series.window_ns;
        // The run may end within the last window.
        let end_ns = if duration_ns > begin_ns { whole_end_ns.min(duration_ns) } else { whole_end_ns };
        let sum: u64 = windows.iter().map(of).sum();
        let rate = sum as f64 * 1e9 / (end_ns - begin_ns) as f64;
        points.push((begin_ns as f64, rate));
        if whole_end_ns >= series.windows.len() as u64 * series.window_ns {
            points.push((end_ns as f64, rate));
        }
    }
    points
}

/// Causes of writes: their names in the results and in the legend, in the order of their bars. The index is the look.
const CAUSES: [(&str, &str); 9] = [
    ("host", "host"),
    ("cleaning", "cleaning"),
    ("backup", "backup"),
    ("migration", "migration"),
    ("packet_padding", "packet padding"),
    ("recovery", "recovery"),
    ("packet_records", "packet records"),
    ("map_records", "map records"),
    ("checkpoints", "checkpoints"),
];

fn amplification(summary: &Summary) -> Option<Figure> {
    if summary.drives.iter().all(|drive| drive.host.write_blocks == 0) {
        return None;
    }
    let groups: Vec<String> = names(summary).map(|(_, name)| name.to_string()).collect();
    let mut chart = BarChart::new(
        "amplification-bars",
        "Write amplification by cause",
        Axis::linear("sectors written on the medium for each the host wrote", Unit::Ratio),
        groups,
        BarArrangement::Stacked,
    )
    .described("Sectors written on the medium for each sector the host wrote, split by cause, one bar a drive.")
    .sized(SIZE.0, SIZE.1)
    .mark(1.0, "");
    for (look, (cause, words)) in CAUSES.into_iter().enumerate() {
        let blocks = |index: usize| summary.drives[index].medium_write_blocks.get(cause).copied().unwrap_or(0);
        if (0..summary.drives.len()).all(|index| blocks(index) == 0) {
            continue;
        }
        let share = |index: usize| blocks(index) as f64 / summary.drives[index].host.write_blocks.max(1) as f64;
        chart = chart.with(words, look, (0..summary.drives.len()).map(share).collect());
    }
    let caption = "The dashed line is what the host wrote. Host: its own data; backup: made safe before a rewrite \
                   endangers it; cleaning and migration: moved by the layer; packets: what a cache that is a journal writes \
                   beside the data, records and padding up to whole half tracks; map: the table of what lies where."
        .to_string();
    let panes = vec![("by cause".to_string(), Drawing::Bars(chart))];
    let (id, title) = ("amplification", "Write amplification by cause");
    Some(Figure { id, title, caption, layout: Layout::Tabs, is_wide: false, panes })
}

/// A part of the service time: its name, its look, and the function that reads it.
type ServicePart = (&'static str, usize, fn(&ServiceTime) -> u64);

/// Draws the mean service time per request, by part. Looks differ from those of the causes of writes, except that
/// cleaning has the same look in both charts.
fn service(summary: &Summary) -> Option<Figure> {
    let groups: Vec<String> = names(summary).map(|(_, name)| name.to_string()).collect();
    let mut chart = BarChart::new(
        "service-bars",
        "Service time by part",
        Axis::linear("mean time of a request", Unit::Nanoseconds),
        groups,
        BarArrangement::Stacked,
    )
    .described("Mean service time of a request, split into seek, rotation, transfer, overhead and cleaning, by drive.")
    .sized(SIZE.0, SIZE.1);
    let parts: [ServicePart; 5] = [
        ("seek", 5, |time| time.seek),
        ("rotation", 4, |time| time.rotation),
        ("transfer", 0, |time| time.transfer),
        ("overhead", 6, |time| time.overhead),
        ("cleaning", 1, |time| time.cleaning),
    ];
    for (name, look, of) in parts {
        let mean = |drive: &DriveResult| of(&drive.service_ns) as f64 / drive.completed.max(1) as f64;
        let values: Vec<f64> = summary.drives.iter().map(mean).collect();
        if values.iter().any(|value| *value > 0.0) {
            chart = chart.with(name, look, values);
        }
    }
    if chart.parts.is_empty() {
        return None;
    }
    let caption =
        "Sums over the run, divided by the requests completed; cleaning counts in the background, too.".to_string();
    let panes = vec![("by part".to_string(), Drawing::Bars(chart))];
    let (id, title) = ("service", "Service time by part");
    Some(Figure { id, title, caption, layout: Layout::Tabs, is_wide: false, panes })
}

fn trade(summary: &Summary) -> Option<Figure> {
    let points: Vec<(f64, Option<f64>)> = summary
        .drives
        .iter()
        .map(|drive| (drive.capacity_gain, drive.latency_ratio.and_then(|ratios| ratios.all).map(|all| all.mean)))
        .collect();
    let shown = || points.iter().filter_map(|&(gain, ratio)| ratio.map(|ratio| (gain, ratio)));
    let low = shown().map(|point| point.0).fold(1.0, f64::min);
    let high = shown().map(|point| point.0).fold(1.0, f64::max);
    let (low, high) = ((low * 10.0 - 0.5).floor() / 10.0, (high * 10.0 + 0.5).ceil() / 10.0);
    let slowest = shown().map(|point| point.1).fold(1.0, f64::max);
    let fastest = shown().map(|point| point.1).fold(1.0, f64::min);
    let margin = (0.12 * (slowest - fastest)).max(0.05);
    let y = if slowest > 20.0 {
        Axis::log10("mean latency over the baseline’s", Unit::Ratio)
    } else {
        Axis::linear("mean latency over the baseline’s", Unit::Ratio)
            .ranged((fastest - margin).max(0.0), slowest + margin)
    };
    let mut chart = Chart::new(
        "trade-scatter",
        "Capacity gained against latency",
        Axis::linear("capacity gain", Unit::Ratio).ranged(low, high),
        y,
    )
    .described("One mark a drive: capacity over the conventional drive across, mean latency over the baseline’s up.")
    .sized(SIZE.0, SIZE.1);
    for (index, drive) in names(summary) {
        let (gain, ratio) = points[index];
        let points = ratio.map(|ratio| (gain, ratio)).into_iter().collect();
        chart = chart.with(Series::new(drive, Shape::Marks, index, points));
    }
    let caption = "Lower right is better: more capacity, shorter waits.".to_string();
    let panes = vec![("drives".to_string(), Drawing::Chart(chart))];
    let (id, title) = ("trade", "Capacity gained against latency");
    Figure { id, title, caption, layout: Layout::Tabs, is_wide: false, panes }.if_any()
}

fn disparity(summary: &Summary, series: &[DriveSeries]) -> Option<Figure> {
    let mut chart = Chart::new(
        "disparity-lines",
        "Issue-time disparity against the baseline",
        Axis::linear("request number", Unit::Count),
        Axis::linear("issued later by", Unit::Nanoseconds),
    )
    .described("How much later than on the baseline each request entered the drive, by request number.")
    .sized(SIZE.0, SIZE.1);
    let shown = shown(summary);
    for (index, drive) in names(summary) {
        let baseline = summary.baseline_of(index).filter(|baseline| *baseline != index);
        let points = baseline.map(|baseline| gaps(&series[index].issues, &series[baseline].issues)).unwrap_or_default();
        chart = chart.with(Series::new(drive, Shape::Line, index, points).hidden(!shown[index]));
    }
    let caption = "A rising line is a drive falling behind its baseline, which the table names; a level one keeps up \
                   (Hajkazemi 2019, figure 13)."
        .to_string();
    let panes = vec![("disparity".to_string(), Drawing::Chart(chart.thin(CURVE_POINTS)))];
    let (id, title) = ("disparity", "Issue-time disparity");
    Figure { id, title, caption, layout: Layout::Tabs, is_wide: false, panes }.if_any()
}

/// Returns the points (request number, delay in ns) of the requests in both lists: by how much each request entered
/// later than in `baseline`.
fn gaps(ours: &[(u64, u64)], baseline: &[(u64, u64)]) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut theirs = baseline.iter().peekable();
    for &(number, at_ns) in ours {
        while theirs.next_if(|&&(other, _)| other < number).is_some() {}
        if let Some(&(_, baseline_ns)) = theirs.next_if(|&&(other, _)| other == number) {
            points.push((number as f64, at_ns as f64 - baseline_ns as f64));
        }
    }
    points
}

/// Kinds of work on the map of a drive, with their names and looks. Cleaning looks as in the other charts.
const WORK: [(GroupKind, &str, usize); 4] = [
    (GroupKind::Host, "requests of the host", 0),
    (GroupKind::Cleaning, "cleaning", 1),
    (GroupKind::Migration, "migration", 3),
    (GroupKind::Recovery, "recovery", 2),
];

/// Draws the map of each drive: the track under the head over time, by the work that was done there.
fn head(summary: &Summary, series: &[DriveSeries]) -> Option<Figure> {
    let shown = shown(summary);
    let mut panes = Vec::new();
    for (index, drive) in names(summary) {
        let path = &series[index].head;
        let every = path.len().div_ceil(HEAD_DOTS).max(1);
        let mut chart = Chart::new(
            format!("head-{index}"),
            format!("Map of {drive} over time"),
            Axis::linear("", Unit::Nanoseconds),
            Axis::linear("track", Unit::Count),
        )
        .described(
            "Track under the head over simulated time, from the outermost, one dot a sample, by the work done there.",
        )
        .of_parts()
        .sized(SMALL.0, SMALL.1);
        for (kind, name, look) in WORK {
            let samples = path.iter().step_by(every).filter(|sample| sample.kind == kind);
            let dots = samples.map(|sample| (sample.at_ns as f64, sample.radial_track as f64)).collect();
            chart = chart.with(Series::new(name, Shape::Dots, look, dots).hidden(!shown[index]));
        }
        panes.push((drive.to_string(), Drawing::Chart(chart)));
    }
    let caption =
        "Track under the head, from the outermost, over simulated time; one dot a sample. The colour is the work \
                   that the drive did there. Each drive has an axis of its own."
            .to_string();
    let title = "Map of the drive over time";
    Figure { id: "head", title, caption, layout: Layout::Grid, is_wide: true, panes }.if_any()
}

/// Draws the share of time that each drive spent on the layer's own work, over simulated time.
fn own_work(summary: &Summary, series: &[DriveSeries]) -> Option<Figure> {
    let shown = shown(summary);
    let mut chart = Chart::new(
        "own-work-steps",
        "Share of time spent cleaning",
        Axis::linear("simulated time", Unit::Nanoseconds),
        Axis::linear("share of time", Unit::Share).ranged(0.0, 1.0),
    )
    .described("Share of each stretch of simulated time that the layer's own work took, one curve a drive.")
    .sized(SIZE.0, SIZE.1);
    for (index, drive) in names(summary) {
        let points = busy_shares(&series[index]);
        chart = chart.with(Series::new(drive, Shape::Steps, index, points).hidden(!shown[index]));
    }
    let caption =
        "Cleaning, migration and recovery by the layer, before, between and after requests. At 100 % the drive does \
                   nothing else."
            .to_string();
    let panes = vec![("share".to_string(), Drawing::Chart(chart))];
    let (id, title) = ("own-work", "Cleaning over time");
    Figure { id, title, caption, layout: Layout::Tabs, is_wide: false, panes }.if_any()
}

/// Returns the points (begin in ns, share of the layer's own work) of at most [`RATE_STEPS`] steps, and a last point at the
/// end of the last step; none for a drive without such work.
fn busy_shares(series: &DriveSeries) -> Vec<(f64, f64)> {
    let together = merged(series.own_work.len());
    let width_ns = series.own_work_window_ns as f64 * together as f64;
    let sums = series.own_work.chunks(together).map(|windows| windows.iter().sum::<u64>() as f64);
    let mut points: Vec<_> =
        sums.enumerate().map(|(index, sum)| (index as f64 * width_ns, (sum / width_ns).min(1.0))).collect();
    if !points.is_empty() {
        points.push((points.len() as f64 * width_ns, 0.0));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that requests of latency 0 do not stretch the axis down to a nanosecond.
    #[test]
    fn a_distribution_begins_with_what_took_time() {
        let mut histogram = LatencyHistogram::new();
        for ns in [0, 0, 100_000, 100_000, 100_000, 2_000_000, 2_000_000, 2_000_000] {
            histogram.record(ns);
        }
        let points = cumulative(&histogram);
        let about = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 0.002;
        assert!(about(points[0].0, 100_000.0) && points[0].1 == 0.25, "{points:?}");
        assert!(about(points[2].0, 2_000_000.0) && points[2].1 == 1.0, "{points:?}");
        let mut nothing = LatencyHistogram::new();
        nothing.record(0);
        assert!(cumulative(&nothing).is_empty());
    }
}
