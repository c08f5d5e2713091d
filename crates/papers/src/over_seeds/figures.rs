//! Figures of all replications of an experiment as one list.
//!
//! A chart shows the mean of each value over the seeds, and the 95 % interval of the mean as an error bar. The intervals
//! are those of the claims and tables ([`Estimate`]).
//!
//! Invariants:
//! 1. A figure that is equal in all replications does not change.
//! 2. Means are only of values that belong together: those of points with the same x value in series of the same name
//!    and look, or those of the same group and part.
//! 3. A figure without means although the replications differ is that of the first one, and a remark names it.

use imbrex::chart::bars::Part;
use imbrex::chart::{BarChart, Chart, Marker, Series, Shape};
use imbrex_sim::Estimate;

use crate::report::{Figure, Report};

/// Largest number of error bars of a series.
const ERROR_BARS_MAX: usize = 40;

/// The reason why a figure is that of the first replication.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unmerged {
    /// The figure is a bar chart in one replication, and another chart in another.
    Kind,
    /// More than the y values of a chart differs.
    Points,
    /// More than the values of a bar chart differs.
    Bars,
    /// A series consists of dots.
    Dots,
}

impl Unmerged {
    const ALL: [Unmerged; 4] = [Unmerged::Kind, Unmerged::Points, Unmerged::Bars, Unmerged::Dots];

    /// Returns the remark on the figures `names`, at least one, that are unmerged for this reason.
    fn remark(self, names: &[String]) -> String {
        let (figures, are) = if names.len() == 1 { ("figure", "is") } else { ("figures", "are") };
        let reason = match self {
            Unmerged::Kind => "the kind of chart differs with the seed",
            Unmerged::Points => "the series, x values or labels differ with the seed",
            Unmerged::Bars => "the groups, parts or labels differ with the seed",
            Unmerged::Dots => "each dot is a single observation",
        };
        format!("The {figures} {} {are} of the first seed, since {reason}.", names.join(", "))
    }
}

/// Returns the figures of all replications as one list, and remarks on the figures that are of the first one.
pub(super) fn merged(reports: &[Report]) -> (Vec<Figure>, Vec<String>) {
    let first = &reports[0].figures;
    if reports.iter().any(|report| report.figures.len() != first.len()) {
        let remark = "The number of figures differs with the seed, so all figures are of the first seed.";
        return (first.clone(), vec![remark.into()]);
    }
    let of_all = |index: usize| reports.iter().map(move |report| &report.figures[index]).collect::<Vec<_>>();
    let merged: Vec<Result<Figure, Unmerged>> = (0..first.len()).map(|index| figure(&of_all(index))).collect();
    let mut remarks = Vec::new();
    for reason in Unmerged::ALL {
        let unmerged = merged.iter().zip(first).filter(|(merged, _)| matches!(merged, Err(found) if *found == reason));
        let names: Vec<String> = unmerged.map(|(_, figure)| figure.file_name()).collect();
        if !names.is_empty() {
            remarks.push(reason.remark(&names));
        }
    }
    let figures = merged.into_iter().zip(first).map(|(merged, first)| merged.unwrap_or_else(|_| first.clone()));
    (figures.collect(), remarks)
}

/// Returns one figure for a figure of all replications.
fn figure(all: &[&Figure]) -> Result<Figure, Unmerged> {
    if all.iter().all(|figure| *figure == all[0]) {
        return Ok(all[0].clone());
    }
    let charts = all.iter().map(|figure| if let Figure::Chart(chart) = figure { Some(chart) } else { None });
    let bars = all.iter().map(|figure| if let Figure::Bars(chart) = figure { Some(chart) } else { None });
    match (charts.collect::<Option<Vec<_>>>(), bars.collect::<Option<Vec<_>>>()) {
        (Some(charts), _) => chart(&charts).map(Figure::Chart),
        (_, Some(bars)) => bar_chart(&bars).map(Figure::Bars),
        (None, None) => Err(Unmerged::Kind),
    }
}

/// Returns one chart for a chart of all replications. Dots get no means: each dot is one observation, such as the
/// latency of one request, and the mean over the seeds would hide how the observations scatter.
fn chart(all: &[&Chart]) -> Result<Chart, Unmerged> {
    let first = all[0];
    if first.series.iter().any(|series| series.shape == Shape::Dots) {
        return Err(Unmerged::Dots);
    }
    if all.iter().any(|chart| frame(chart) != frame(first)) {
        return Err(Unmerged::Points);
    }
    let series = (0..first.series.len()).map(|index| {
        let of_all: Vec<&Series> = all.iter().map(|chart| &chart.series[index]).collect();
        merged_series(&of_all, index, first.series.len())
    });
    let markers = markers(&all.iter().map(|chart| chart.markers.as_slice()).collect::<Vec<_>>());
    let merged = Chart { series: series.collect(), markers, ..first.clone() };
    let has_bars = merged.series.iter().any(|series| !series.half_widths.is_empty());
    let description = described(&first.description, all.len(), has_bars);
    let mut merged = merged.described(description).with_in_title(&format!(", {}", means_of(all.len())));
    if merged.title == first.title {
        merged.y.label = labelled(&first.y.label, all.len());
    }
    Ok(merged)
}

/// Returns one bar chart for a bar chart of all replications.
fn bar_chart(all: &[&BarChart]) -> Result<BarChart, Unmerged> {
    let first = all[0];
    if all.iter().any(|chart| frame_of_bars(chart) != frame_of_bars(first)) {
        return Err(Unmerged::Bars);
    }
    let parts = (0..first.parts.len()).map(|index| {
        let value = |group: usize| estimated(all.iter().map(|chart| chart.parts[index].values[group]));
        let (values, half_widths) = (0..first.groups.len()).map(value).unzip();
        Part { values, ..first.parts[index].clone() }.with_error_bars(half_widths)
    });
    let markers = markers(&all.iter().map(|chart| chart.markers.as_slice()).collect::<Vec<_>>());
    let merged = BarChart { parts: parts.collect(), markers, ..first.clone() };
    let has_bars = merged.parts.iter().any(|part| !part.half_widths.is_empty());
    let description = described(&first.description, all.len(), has_bars);
    let mut merged = merged.described(description).with_in_title(&format!(", {}", means_of(all.len())));
    if merged.title == first.title {
        merged.value.label = labelled(&first.value.label, all.len());
    }
    Ok(merged)
}

/// Returns the means of a series of all replications, series `index` of the `count` series of a chart.
///
/// If there are more points than [`ERROR_BARS_MAX`], a line or marks have error bars at some of them, at equal
/// distances, and each series of a chart at other points. Steps and bars have none then: an error bar would look like
/// another step.
fn merged_series(all: &[&Series], index: usize, count: usize) -> Series {
    let first = all[0];
    let stride = first.points.len().div_ceil(ERROR_BARS_MAX).max(1);
    let offset = stride * (2 * index + 1) / (2 * count);
    let has_room = stride == 1 || !matches!(first.shape, Shape::Steps | Shape::Bars);
    let (mut points, mut half_widths) = (Vec::new(), Vec::new());
    for (number, (x, _)) in first.points.iter().enumerate() {
        let (mean, half) = estimated(all.iter().map(|series| series.points[number].1));
        points.push((*x, mean));
        half_widths.push(if has_room && number % stride == offset { half } else { 0.0 });
    }
    Series { points, ..first.clone() }.with_error_bars(half_widths)
}

/// Returns the markers of all replications at the means of their values.
fn markers(all: &[&[Marker]]) -> Vec<Marker> {
    let at = |index: usize| estimated(all.iter().map(|markers| markers[index].at)).0;
    all[0].iter().enumerate().map(|(index, marker)| Marker { at: at(index), ..marker.clone() }).collect()
}

/// Returns the mean of the values of all replications, and half of its 95 % interval. A value that is equal in all of
/// them has no interval, nor has one that is not finite.
fn estimated(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    match Estimate::of(&values) {
        Some(estimate) if values.iter().all(|value| value.is_finite()) && !estimate.is_constant() => {
            (estimate.mean, estimate.half_width_95)
        }
        _ => (values[0], 0.0),
    }
}

/// Returns the chart without the values of which means are taken. Charts whose frames are equal can be merged. In place
/// of a value, the frame tells whether it is finite.
fn frame(chart: &Chart) -> Chart {
    let mut frame = chart.clone();
    frame.series.iter_mut().flat_map(|series| &mut series.points).for_each(|point| point.1 = is_finite(point.1));
    frame.markers.iter_mut().for_each(|marker| marker.at = is_finite(marker.at));
    frame
}

/// Returns the bar chart without the values of which means are taken, like [`frame`].
fn frame_of_bars(chart: &BarChart) -> BarChart {
    let mut frame = chart.clone();
    frame.parts.iter_mut().flat_map(|part| &mut part.values).for_each(|value| *value = is_finite(*value));
    frame.markers.iter_mut().for_each(|marker| marker.at = is_finite(marker.at));
    frame
}

fn is_finite(value: f64) -> f64 {
    if value.is_finite() { 1.0 } else { 0.0 }
}

fn means_of(count: usize) -> String {
    format!("mean of {count} seeds")
}

/// Returns the label of the axis of values, for a chart whose title has no room for the number of seeds.
fn labelled(label: &str, count: usize) -> String {
    if label.is_empty() { means_of(count) } else { format!("{label}, {}", means_of(count)) }
}

/// Returns the description of a chart with a sentence on its means.
fn described(description: &str, count: usize, has_bars: bool) -> String {
    let bars = if has_bars { "; error bars show the 95 % intervals" } else { "" };
    let means = format!("Means of {count} seeds{bars}.");
    if description.is_empty() { means } else { format!("{description} {means}") }
}
