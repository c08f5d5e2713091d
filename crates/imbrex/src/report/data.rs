//! Data of the page as JSON: the results, and the points of every series as drawn.
//!
//! Invariants:
//! 1. Wall-clock fields are left out.
//! 2. No text in the data can end the script element that contains it.

use std::fmt::Write as _;

use imbrex_sim::Summary;
use serde_json::Value;

use super::figure::{Drawing, Figure};
use crate::chart::Chart;

/// Fields of a drive's results that differ between two runs.
const WALL_CLOCK: [&str; 2] = ["wall_seconds", "requests_per_second"];

/// Returns the results without the fields of [`WALL_CLOCK`].
pub(super) fn without_wall_clock(summary: &Summary) -> Value {
    let mut value = serde_json::to_value(summary).expect("results are plain values");
    for drive in value["drives"].as_array_mut().into_iter().flatten() {
        if let Some(fields) = drive.as_object_mut() {
            WALL_CLOCK.iter().for_each(|name| {
                fields.shift_remove(*name);
            });
        }
    }
    value
}

pub(super) fn json(value: &Value, figures: &[Figure]) -> String {
    let charts: Vec<&Chart> = figures
        .iter()
        .flat_map(|figure| &figure.panes)
        .filter_map(|(_, drawing)| match drawing {
            Drawing::Chart(chart) => Some(chart),
            Drawing::Bars(_) => None,
        })
        .collect();
    without_markup(&format!("{{\"summary\":{value},\"charts\":{}}}", points_of(&charts)))
}

/// Returns the JSON data of charts, without results.
pub(super) fn charts_json(charts: &[&Chart]) -> String {
    without_markup(&format!("{{\"charts\":{}}}", points_of(charts)))
}

fn without_markup(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// Returns the series of each chart with their points, as a JSON object by chart id.
fn points_of(charts: &[&Chart]) -> String {
    let mut json = String::from("{");
    for (index, chart) in charts.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(json, "{comma}{}:[", Value::from(chart.id.as_str()));
        for (index, series) in chart.series.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let shape = format!("{:?}", series.shape).to_lowercase();
            let name = Value::from(series.name.as_str());
            let _ =
                write!(json, "{comma}{{\"name\":{name},\"shape\":\"{shape}\",\"look\":{},\"points\":[", series.look);
            points(&mut json, &series.points);
            json.push(']');
            if !series.half_widths.is_empty() {
                json += ",\"half_widths\":[";
                for (index, half) in series.half_widths.iter().enumerate() {
                    json += if index > 0 { "," } else { "" };
                    number(&mut json, *half);
                }
                json.push(']');
            }
            json.push('}');
        }
        json.push(']');
    }
    json + "}"
}

/// Appends points in the form `x,y,x,y…`, which is shorter than an array of pairs.
fn points(json: &mut String, points: &[(f64, f64)]) {
    for (index, &(x, y)) in points.iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        number(json, x);
        json.push(',');
        number(json, y);
    }
}

/// Appends a number: whole numbers exactly, others with six significant digits.
fn number(json: &mut String, value: f64) {
    if value.fract() == 0.0 && value.abs() < 9.0e15 {
        let _ = write!(json, "{}", value as i64);
        return;
    }
    let digits = (5 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.digits$}");
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    json.push_str(short);
}
