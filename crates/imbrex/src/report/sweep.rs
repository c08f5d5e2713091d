//! Drives that differ in a parameter: short names for them, and charts of their results over the parameter.
//!
//! Invariants:
//! 1. Two drives with different texts have different short names.
//! 2. A line joins drives that differ only in the parameter of the x axis.

use std::collections::{BTreeMap, BTreeSet};

use imbrex_sim::{DriveResult, DriveSpec, Summary};

use super::figure::{Drawing, Figure, Layout};
use crate::chart::{Axis, Chart, Series, Shape, Unit};
use crate::sweep::row::number;

/// Smallest number of values for which a line is drawn.
const VALUES_MIN: usize = 3;
const SIZE: (f64, f64) = (580.0, 330.0);
/// Ratio of the largest to the smallest value above which an axis is logarithmic.
pub(crate) const LOGARITHM_FROM: f64 = 15.0;

/// A drive's text, parsed: the part before the first colon, and the settings after it.
struct Words {
    head: String,
    settings: BTreeMap<String, String>,
}

impl Words {
    fn of(text: &str) -> Words {
        let head = text.split(':').next().unwrap_or(text).to_string();
        let spec = DriveSpec::parse(text).ok();
        let settings = spec.map(|spec| spec.profile_overrides.into_iter().chain(spec.parameters).collect());
        Words { head, settings: settings.unwrap_or_default() }
    }
}

/// Returns `PROFILE+` if the texts of all drives begin with it, else an empty text.
fn common_profile(summary: &Summary) -> &str {
    let first = summary.drives.first().map_or("", |drive| drive.drive.as_str());
    let Some(plus) = first.split(':').next().and_then(|head| head.find('+')) else { return "" };
    let profile = &first[..=plus];
    if summary.drives.iter().all(|drive| drive.drive.starts_with(profile)) { profile } else { "" }
}

/// Returns a name for each drive. It contains the settings in which the drive differs from drives with the same profile
/// and layer, or the whole text if there are none. A profile common to all drives is left out.
pub(super) fn short_names(summary: &Summary) -> Vec<String> {
    let words: Vec<Words> = summary.drives.iter().map(|drive| Words::of(&drive.drive)).collect();
    let common = common_profile(summary).len();
    let heads: BTreeSet<&str> = words
        .iter()
        .zip(&summary.drives)
        .filter(|(_, drive)| !drive.baseline)
        .map(|(words, _)| words.head.as_str())
        .collect();
    let names: Vec<String> = words
        .iter()
        .zip(&summary.drives)
        .map(|(own, drive)| {
            let alike = || words.iter().filter(|other| other.head == own.head);
            let differs = |key: &&String| alike().any(|other| other.settings.get(*key) != own.settings.get(*key));
            let settings: Vec<String> =
                own.settings.keys().filter(differs).map(|key| format!("{key}={}", own.settings[key])).collect();
            match (settings.is_empty(), heads.len() == 1 && !drive.baseline) {
                (true, _) => drive.drive[common..].to_string(),
                (false, true) => settings.join(", "),
                (false, false) => format!("{}: {}", &own.head[common..], settings.join(", ")),
            }
        })
        .collect();
    let different: BTreeSet<&String> = names.iter().collect();
    if different.len() == names.len() {
        return names;
    }
    summary.drives.iter().map(|drive| drive.drive.clone()).collect()
}

/// Returns the figure of the results over the parameter with the most values. Returns `None` unless some parameter has
/// enough numeric values.
pub(super) fn figure(summary: &Summary) -> Option<Figure> {
    let words: Vec<Words> = summary.drives.iter().map(|drive| Words::of(&drive.drive)).collect();
    let (key, unit) = swept(&words)?;
    let common = common_profile(summary).len();
    // Drives of each line: those that are equal in all other settings.
    let mut lines: BTreeMap<String, Vec<(f64, usize)>> = BTreeMap::new();
    for (index, own) in words.iter().enumerate() {
        let Some((value, _)) = own.settings.get(&key).and_then(|text| number(text)) else { continue };
        let others = own.settings.iter().filter(|(other, _)| **other != key);
        let others: Vec<String> = others.map(|(key, value)| format!("{key}={value}")).collect();
        let colon = if others.is_empty() { "" } else { ": " };
        lines.entry(format!("{}{colon}{}", &own.head[common..], others.join(", "))).or_default().push((value, index));
    }
    lines.retain(|_, points| points.len() >= VALUES_MIN);
    let values: Vec<f64> = lines.values().flatten().map(|point| point.0).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let is_log = least > 0.0 && most / least > LOGARITHM_FROM;
    let panes = METRICS.iter().filter_map(|metric| {
        let x = if is_log { Axis::log10(&key, unit) } else { Axis::linear(&key, unit).ranged(least, most) };
        let chart = drawn(metric, summary, &lines, x)?;
        Some((metric.name.to_string(), Drawing::Chart(chart)))
    });
    let panes: Vec<_> = panes.collect();
    if panes.is_empty() {
        return None;
    }
    let mut caption = format!("A line goes through the drives that differ in {key} alone.");
    let has_bars = |pane: &(String, Drawing)| matches!(&pane.1, Drawing::Chart(chart) if chart.series.iter().any(|series| !series.half_widths.is_empty()));
    if panes.iter().any(has_bars) {
        caption += &format!(" Error bars are 95 % intervals of the means over {} seeds.", summary.seeds.len());
    }
    Some(Figure { id: "sweep", title: "By parameter", caption, layout: Layout::Tabs, is_wide: false, panes })
}

/// A point of a line over a parameter: the value of the parameter, the figure or its mean over the seeds, and half of
/// the 95 % interval of the mean, which is 0 for one seed.
pub(crate) type Point = (f64, f64, f64);

/// Returns the y axis for `points`, which covers only the range of their values and error bars, to make differences
/// visible. The axis is logarithmic if the range is wide; ends of error bars at 0 or below do not count for that, and lie
/// at the end of the axis. No axis reaches below 0. Returns `None` without points.
pub(crate) fn y_axis(name: &str, unit: Unit, points: &[Point]) -> Option<Axis> {
    let high = points.iter().map(|point| point.1 + point.2).max_by(f64::total_cmp)?;
    let ends = || points.iter().map(|point| point.1 - point.2);
    let low = ends().fold(f64::INFINITY, f64::min).max(0.0);
    let values = points.iter().map(|point| point.1).chain(ends().filter(|end| *end > 0.0));
    let least = values.fold(f64::INFINITY, f64::min);
    if least > 0.0 && high / least > LOGARITHM_FROM {
        return Some(Axis::log10(name, unit));
    }
    let margin = (0.08 * (high - low)).max(0.001 * high.abs());
    Some(Axis::linear(name, unit).ranged((low - margin).max(0.0), high + margin))
}

/// Returns a line through `points`, with their error bars.
pub(crate) fn with_error_bars(name: &str, look: usize, points: Vec<Point>) -> Series {
    let half_widths = points.iter().map(|point| point.2).collect();
    let points = points.into_iter().map(|(at, value, _)| (at, value)).collect();
    Series::new(name, Shape::Line, look, points).with_error_bars(half_widths)
}

/// A quantity drawn over the parameter.
struct Metric {
    name: &'static str,
    unit: Unit,
    /// Its key in [`DriveResult::over_seeds`].
    path: &'static str,
    of: fn(&DriveResult) -> Option<f64>,
}

const METRICS: [Metric; 6] = [
    Metric {
        name: "write latency, mean",
        unit: Unit::Nanoseconds,
        path: "latency_ns.write.mean",
        of: |drive| (drive.host.writes > 0).then_some(drive.latency_ns.write.mean as f64),
    },
    Metric {
        name: "write latency, 99 %",
        unit: Unit::Nanoseconds,
        path: "latency_ns.write.p99",
        of: |drive| (drive.host.writes > 0).then_some(drive.latency_ns.write.p99 as f64),
    },
    Metric {
        name: "read latency, mean",
        unit: Unit::Nanoseconds,
        path: "latency_ns.read.mean",
        of: |drive| (drive.host.reads > 0).then_some(drive.latency_ns.read.mean as f64),
    },
    Metric {
        name: "longest stall",
        unit: Unit::Nanoseconds,
        path: "longest_stall_ns",
        of: |drive| Some(drive.longest_stall_ns as f64),
    },
    Metric {
        name: "write amplification",
        unit: Unit::Ratio,
        path: "write_amplification",
        of: |drive| (drive.host.writes > 0).then_some(drive.write_amplification),
    },
    Metric {
        name: "capacity",
        unit: Unit::Bytes,
        path: "capacity_bytes",
        of: |drive| Some(drive.capacity_bytes as f64),
    },
];

fn drawn(metric: &Metric, summary: &Summary, lines: &BTreeMap<String, Vec<(f64, usize)>>, x: Axis) -> Option<Chart> {
    let points_of = |line: &Vec<(f64, usize)>| {
        let point = |&(at, index): &(f64, usize)| {
            let (drive, value) = (&summary.drives[index], (metric.of)(&summary.drives[index])?);
            let over = drive.over_seeds.get(metric.path);
            Some(over.map_or((at, value, 0.0), |over| (at, over.mean, over.half_width_95)))
        };
        let mut points: Vec<Point> = line.iter().filter_map(point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points
    };
    let all: Vec<Point> = lines.values().flat_map(points_of).collect();
    let y = y_axis(metric.name, metric.unit, &all)?;
    let label = x.label.clone();
    let id = metric.name.replace([' ', ',', '%'], "");
    let mut chart = Chart::new(format!("sweep-{id}"), format!("{} by {label}", metric.name), x, y)
        .described(format!("{} of each drive against its {label}, a line for each layer.", metric.name))
        .sized(SIZE.0, SIZE.1);
    for (look, (name, line)) in lines.iter().enumerate() {
        chart = chart.with(with_error_bars(name, look, points_of(line)));
    }
    Some(chart)
}

/// Returns the setting with the most different values among drives of the same profile and layer, and the unit of its
/// values. All values must be numbers of the same unit, and at least [`VALUES_MIN`] of them.
fn swept(words: &[Words]) -> Option<(String, Unit)> {
    let mut values: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for own in words {
        for (key, value) in &own.settings {
            values.entry((key, &own.head)).or_default().insert(value);
        }
    }
    let able = values.into_iter().filter_map(|((key, _), values)| {
        let units: Option<Vec<Unit>> = values.iter().map(|value| number(value).map(|found| found.1)).collect();
        let units = units?;
        let is_one = units.windows(2).all(|pair| pair[0] == pair[1]);
        (is_one && values.len() >= VALUES_MIN).then(|| (values.len(), key.to_string(), units[0]))
    });
    able.max_by_key(|found| found.0).map(|(_, key, unit)| (key, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(drives: &[&str]) -> Summary {
        let (mut summary, _) = crate::sample::run(2);
        let first = summary.drives[1].clone();
        summary.drives = drives.iter().map(|text| DriveResult { drive: text.to_string(), ..first.clone() }).collect();
        summary
    }

    #[test]
    fn names_say_what_differs() {
        let swept = summary(&["p+l:a=1,b=2", "p+l:a=1,b=3", "p+l:a=1,b=4"]);
        assert_eq!(short_names(&swept), ["b=2", "b=3", "b=4"]);
        let mixed = summary(&["p+l:a=1", "p+l:a=2", "q"]);
        assert_eq!(short_names(&mixed), ["p+l: a=1", "p+l: a=2", "q"]);
        let one_profile = summary(&["p+l:a=1", "p+l:a=2", "p+m:b=3", "p+conventional"]);
        assert_eq!(short_names(&one_profile), ["l: a=1", "l: a=2", "m:b=3", "conventional"]);
    }

    #[test]
    fn a_sweep_is_drawn_against_its_parameter_a_line_a_layer() {
        let swept = summary(&["p+l:k=1%", "p+l:k=2%", "p+l:k=4%", "p+m:k=1%", "p+m:k=2%", "p+m:k=4%", "q"]);
        let figure = figure(&swept).expect("it is drawn");
        let Drawing::Chart(chart) = &figure.panes[0].1 else { panic!("it is a chart") };
        let lines: Vec<_> = chart.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(lines, ["p+l", "p+m"]);
        let at: Vec<f64> = chart.series[0].points.iter().map(|point| point.0).collect();
        assert_eq!(at, [0.01, 0.02, 0.04]);
        assert!(super::figure(&summary(&["p", "q", "p+l:k=1"])).is_none());
    }

    #[test]
    fn means_over_seeds_have_error_bars() {
        let mut swept = summary(&["p+l:k=1%", "p+l:k=2%", "p+l:k=4%"]);
        swept.seeds = vec![1, 2, 3];
        for (drive, mean) in swept.drives.iter_mut().zip([10.0, 20.0, 30.0]) {
            let over = imbrex_sim::Estimate { mean, half_width_95: 4.0, min: mean - 1.0, max: mean + 1.0 };
            drive.over_seeds.insert("latency_ns.write.mean".into(), over);
        }
        let figure = figure(&swept).expect("it is drawn");
        let Drawing::Chart(chart) = &figure.panes[0].1 else { panic!("it is a chart") };
        assert_eq!(chart.series[0].points, [(0.01, 10.0), (0.02, 20.0), (0.04, 30.0)]);
        assert_eq!(chart.series[0].half_widths, [4.0; 3]);
        assert!(chart.y.range.is_some_and(|(low, high)| low < 6.0 && high > 34.0), "{:?}", chart.y);
        assert!(figure.caption.contains("over 3 seeds"), "{}", figure.caption);
    }

    #[test]
    fn the_axis_shows_the_ends_of_error_bars() {
        let range = |points: &[Point]| y_axis("y", Unit::Count, points).and_then(|axis| axis.range);
        // From 6 to 24: a margin of 8 % of 18 at either end.
        assert_eq!(range(&[(1.0, 10.0, 4.0), (2.0, 20.0, 4.0)]), Some((6.0 - 1.44, 24.0 + 1.44)));
        // One end is below 0: the axis begins at 0, and still has room for the other end, 7.
        assert_eq!(range(&[(1.0, 10.0, 14.0), (2.0, 12.0, 5.0)]), Some((0.0, 24.0 + 1.92)));
        // 1 to 100 is more than a factor of 15, whatever the end below 0.
        assert_eq!(range(&[(1.0, 1.0, 2.0), (2.0, 100.0, 0.0)]), None, "a logarithmic axis fits itself");
        assert_eq!(y_axis("y", Unit::Count, &[]), None);
    }
}
