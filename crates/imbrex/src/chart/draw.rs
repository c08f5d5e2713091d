//! Drawing of a chart: frame, ticks, series, markers, legend.
//!
//! Invariants:
//! 1. No part of a series lies outside the frame.
//! 2. A step is drawn as one horizontal and one vertical line, so a path has as many pairs of lines as the series has
//!    points after the first.

use std::fmt::Write as _;

use super::axis::{Fitted, Tick};
use super::palette;
use super::series::{Chart, Series, Shape};
use super::svg::{Canvas, Font, Style, escape, pixel, text_width};

pub(super) const LABEL: Font<'static> = Font { size: 11.5, anchor: "middle", colour: "muted", is_bold: false };
const TITLE: Font<'static> = Font { size: 15.0, anchor: "start", colour: "ink", is_bold: true };
const LEGEND_ROW: f64 = 18.0;
const SWATCH: f64 = 30.0;
/// Half of the length of the cap of an error bar, in pixels.
const CAP: f64 = 3.0;

/// The inner rectangle that contains the data, in pixels.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Frame {
    pub(super) fn x(&self, place: f64) -> f64 {
        self.left + place * self.width
    }

    pub(super) fn y(&self, place: f64) -> f64 {
        self.top + (1.0 - place) * self.height
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Returns left, top, width and height, for scripts.
    pub(super) fn attribute(&self) -> String {
        format!("{} {} {} {}", pixel(self.left), pixel(self.top), pixel(self.width), pixel(self.height))
    }
}

/// A chart with the final ends and ticks of its axes.
struct Drawing<'a> {
    chart: &'a Chart,
    x: Fitted,
    y: Fitted,
    frame: Frame,
}

/// Returns `chart` as an SVG element.
pub(super) fn chart(chart: &Chart, style: Style) -> String {
    let points = || chart.series.iter().flat_map(|series| series.points.iter());
    let x = chart.x.fit(points().map(|point| point.0).chain(markers(chart, true)));
    let error_bars = chart.series.iter().flat_map(Series::error_bars).flat_map(|(_, low, high)| [low, high]);
    let y = chart.y.fit(points().map(|point| point.1).chain(error_bars).chain(markers(chart, false)));
    let names: Vec<(&str, String)> =
        chart.series.iter().map(|series| (series.name.as_str(), swatch(series, style))).collect();
    let rows = legend_rows(&names, chart.size.0);
    let frame = frame(chart, style, &y, rows.len());
    let extra = format!(
        " data-plot=\"{}\" data-x=\"{}\" data-y=\"{}\"",
        frame.attribute(),
        x.attribute(chart.x.unit),
        y.attribute(chart.y.unit)
    );
    let mut canvas = Canvas::open(style, &chart.id, chart.size, &chart.title, &chart.description, &extra);
    if style == Style::Standalone {
        canvas.text((16.0, 24.0), &chart.title, TITLE);
        legend(&mut canvas, &names, &rows, 42.0);
    }
    let drawing = Drawing { chart, x, y, frame };
    drawing.axes(&mut canvas);
    drawing.markers(&mut canvas);
    for (index, series) in chart.series.iter().enumerate() {
        drawing.series(&mut canvas, index, series);
    }
    canvas.close()
}

fn markers(chart: &Chart, vertical: bool) -> impl Iterator<Item = f64> + '_ {
    chart.markers.iter().filter(move |marker| marker.vertical == vertical).map(|marker| marker.at)
}

fn frame(chart: &Chart, style: Style, y: &Fitted, legend_rows: usize) -> Frame {
    let widest = y.ticks.iter().map(|tick| text_width(&tick.label, LABEL.size)).fold(20.0, f64::max);
    let left = widest + if chart.y.label.is_empty() { 14.0 } else { 32.0 };
    let top = match style {
        Style::Standalone => 44.0 + legend_rows as f64 * LEGEND_ROW,
        Style::Embedded => 10.0,
    };
    let bottom = if chart.x.label.is_empty() { 26.0 } else { 44.0 };
    Frame { left, top, width: chart.size.0 - left - 20.0, height: chart.size.1 - top - bottom }
}

impl Drawing<'_> {
    fn axes(&self, canvas: &mut Canvas) {
        let frame = self.frame;
        vertical_axis(canvas, frame, &self.y.ticks);
        horizontal_axis(canvas, frame, &self.x.ticks);
        axis_titles(canvas, frame, &self.chart.x.label, &self.chart.y.label, self.chart.size.1);
    }

    fn markers(&self, canvas: &mut Canvas) {
        let frame = self.frame;
        for marker in &self.chart.markers {
            let axis = if marker.vertical { &self.x } else { &self.y };
            let Some(place) = axis.position(marker.at) else { continue };
            if marker.vertical {
                let x = frame.x(place);
                canvas.line((x, frame.top), (x, frame.bottom()), "muted", 1.0, "4 3");
                let anchor = if place > 0.7 { "end" } else { "start" };
                let shift = if place > 0.7 { -4.0 } else { 4.0 };
                canvas.text((x + shift, frame.top + 12.0), &marker.label, Font { anchor, ..LABEL });
            } else {
                let y = frame.y(place);
                canvas.line((frame.left, y), (frame.right(), y), "muted", 1.0, "4 3");
                canvas.text((frame.right() - 4.0, y - 4.0), &marker.label, Font { anchor: "end", ..LABEL });
            }
        }
    }

    fn series(&self, canvas: &mut Canvas, index: usize, series: &Series) {
        let colour = canvas.style.series(series.look);
        let name = escape(&series.name);
        // A bar of value 0 has no position on a logarithmic axis, but it still ends the bar before it.
        let is_bars = series.shape == Shape::Bars;
        let placed = |&(x, y)| self.place((x, y)).or_else(|| self.x_on_base(x).filter(|_| is_bars));
        let points: Vec<(f64, f64)> = series.points.iter().filter_map(placed).collect();
        let (path, look) = match series.shape {
            Shape::Line => (joined(&points), stroke(&colour, series)),
            Shape::Steps => (stepped(&points), stroke(&colour, series)),
            Shape::Dots => (dots(&points), format!("fill:none;stroke:{colour};stroke-width:2.6;stroke-linecap:round")),
            Shape::Marks => {
                let ground = canvas.style.colour("ground");
                (marks(series.look, &points), format!("fill:{colour};stroke:{ground};stroke-width:1"))
            }
            Shape::Bars => (self.bars(&points), format!("fill:{colour};fill-opacity:.75")),
        };
        let line_join = if series.shape == Shape::Line { " stroke-linejoin=\"round\"" } else { "" };
        canvas.raw(&format!(
            "<path class=\"series\" data-series=\"{index}\" data-name=\"{name}\" style=\"{look}\"{line_join} \
             d=\"{path}\"/>"
        ));
        if !series.half_widths.is_empty() {
            let path: String = series.error_bars().filter_map(|bar| self.error_bar(bar)).collect();
            canvas.raw(&format!(
                "<path class=\"series\" data-series=\"{index}\" data-name=\"{name}\" \
                 style=\"fill:none;stroke:{colour};stroke-width:1.2\" d=\"{path}\"/>"
            ));
        }
    }

    /// Returns the path of an error bar with a cap at each end. If the lower end lies below the axis, the bar has no cap
    /// there.
    fn error_bar(&self, (x, low, high): (f64, f64, f64)) -> Option<String> {
        let (x, high) = self.place((x, high))?;
        let is_on_axis = low >= self.y.low;
        let low = self.frame.y(self.y.position(low).unwrap_or(0.0));
        let (left, right) = (pixel(x - CAP), pixel(x + CAP));
        let (x, low, high) = (pixel(x), pixel(low), pixel(high));
        let cap = if is_on_axis { format!("M{left} {low}H{right}") } else { String::new() };
        Some(format!("{cap}M{x} {low}V{high}M{left} {high}H{right}"))
    }

    fn place(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.frame.x(self.x.position(x)?), self.frame.y(self.y.position(y)?)))
    }

    fn x_on_base(&self, x: f64) -> Option<(f64, f64)> {
        Some((self.frame.x(self.x.position(x)?), self.frame.y(self.y.position(0.0).unwrap_or(0.0))))
    }

    fn bars(&self, points: &[(f64, f64)]) -> String {
        let base = self.frame.y(self.y.position(0.0).unwrap_or(0.0));
        let mut path = String::new();
        for pair in points.windows(2) {
            let ((x, y), (end, _)) = (pair[0], pair[1]);
            let gap = if end - x > 3.0 { 0.5 } else { 0.0 };
            let (left, right) = (pixel(x + gap), pixel(end - gap));
            let _ = write!(path, "M{left} {}V{}H{right}V{}Z", pixel(base), pixel(y), pixel(base));
        }
        path
    }
}

pub(super) fn vertical_axis(canvas: &mut Canvas, frame: Frame, ticks: &[Tick]) {
    for tick in ticks {
        let y = frame.y(tick.place);
        if tick.is_line {
            canvas.line((frame.left, y), (frame.right(), y), "grid", 1.0, "");
        }
        if !tick.label.is_empty() {
            canvas.text((frame.left - 8.0, y + 4.0), &tick.label, Font { anchor: "end", ..LABEL });
        }
    }
}

pub(super) fn horizontal_axis(canvas: &mut Canvas, frame: Frame, ticks: &[Tick]) {
    let stride = label_stride(frame, ticks);
    let mut named = 0usize;
    for tick in ticks {
        let x = frame.x(tick.place);
        if tick.is_line {
            canvas.line((x, frame.top), (x, frame.bottom()), "grid", 1.0, "");
        }
        let length = if tick.is_line { 5.0 } else { 3.0 };
        canvas.line((x, frame.bottom()), (x, frame.bottom() + length), "muted", 1.0, "");
        if tick.label.is_empty() {
            continue;
        }
        if named.is_multiple_of(stride) {
            canvas.text((x, frame.bottom() + 18.0), &tick.label, LABEL);
        }
        named += 1;
    }
    canvas.line((frame.left, frame.bottom()), (frame.right(), frame.bottom()), "muted", 1.0, "");
}

/// Returns n such that no labels overlap if every n-th label is drawn.
fn label_stride(frame: Frame, ticks: &[Tick]) -> usize {
    let named: Vec<&Tick> = ticks.iter().filter(|tick| !tick.label.is_empty()).collect();
    let widest = named.iter().map(|tick| text_width(&tick.label, LABEL.size)).fold(0.0, f64::max) + 10.0;
    let closest = named.windows(2).map(|pair| frame.width * (pair[1].place - pair[0].place)).fold(widest, f64::min);
    (widest / closest.max(1.0)).ceil() as usize
}

pub(super) fn axis_titles(canvas: &mut Canvas, frame: Frame, x: &str, y: &str, height: f64) {
    if !x.is_empty() {
        canvas.text((frame.left + frame.width / 2.0, height - 8.0), x, Font { colour: "ink", ..LABEL });
    }
    if !y.is_empty() {
        canvas.text_upwards((14.0, frame.top + frame.height / 2.0), y, Font { colour: "ink", ..LABEL });
    }
}

fn stroke(colour: &str, series: &Series) -> String {
    let dashes = if series.dashed { "5 4" } else { palette::dashes(series.look) };
    let dashes = if dashes.is_empty() { String::new() } else { format!(";stroke-dasharray:{dashes}") };
    format!("fill:none;stroke:{colour};stroke-width:1.8{dashes}")
}

fn joined(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let verb = if index == 0 { "M" } else { "L" };
        let _ = write!(path, "{verb}{} {}", pixel(*x), pixel(*y));
    }
    path
}

fn stepped(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let _ = match index {
            0 => write!(path, "M{} {}", pixel(*x), pixel(*y)),
            _ => write!(path, "H{}V{}", pixel(*x), pixel(*y)),
        };
    }
    path
}

fn dots(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (x, y) in points {
        let _ = write!(path, "M{} {}h0", pixel(*x), pixel(*y));
    }
    path
}

fn marks(look: usize, points: &[(f64, f64)]) -> String {
    points.iter().map(|&(x, y)| palette::mark(look, x, y, 6.0)).collect()
}

/// Returns a small sample of the look of `series`, as an SVG element for a legend. The element may be in HTML or within
/// another SVG element.
pub fn swatch(series: &Series, style: Style) -> String {
    let colour = style.series(series.look);
    let inner = match series.shape {
        Shape::Line | Shape::Steps => format!("<path d=\"M1 6H27\" style=\"{}\"/>", stroke(&colour, series)),
        Shape::Dots => format!(
            "<path d=\"M6 6h0M14 4h0M22 8h0\" style=\"stroke:{colour};stroke-width:3.5;stroke-linecap:round\"/>"
        ),
        Shape::Marks => {
            format!("<path d=\"{}\" style=\"fill:{colour}\"/>", palette::mark(series.look, 14.0, 6.0, 5.0))
        }
        Shape::Bars => format!("<rect x=\"6\" y=\"1\" width=\"16\" height=\"10\" style=\"fill:{colour}\"/>"),
    };
    wrapped_swatch(&inner)
}

pub(super) fn wrapped_swatch(inner: &str) -> String {
    format!("<svg class=\"swatch\" viewBox=\"0 0 28 12\" width=\"28\" height=\"12\" aria-hidden=\"true\">{inner}</svg>")
}

/// Distributes the legend entries over rows of `width` pixels. Returns the indexes of the entries in each row.
pub(super) fn legend_rows(names: &[(&str, String)], width: f64) -> Vec<Vec<usize>> {
    let mut rows: Vec<Vec<usize>> = Vec::new();
    let mut used = f64::INFINITY;
    for (index, (name, _)) in names.iter().enumerate() {
        let item = legend_item_width(name);
        if used + item > width - 32.0 {
            rows.push(Vec::new());
            used = 0.0;
        }
        used += item;
        rows.last_mut().expect("a row was just begun").push(index);
    }
    rows
}

fn legend_item_width(name: &str) -> f64 {
    SWATCH + 6.0 + text_width(name, 12.0) + 18.0
}

/// Draws the legend, with its first row at height `top`.
pub(super) fn legend(canvas: &mut Canvas, names: &[(&str, String)], rows: &[Vec<usize>], top: f64) {
    for (row, members) in rows.iter().enumerate() {
        let y = top + row as f64 * LEGEND_ROW;
        let mut x = 16.0;
        for &index in members {
            let (name, swatch) = &names[index];
            let at = format!("<svg x=\"{}\" y=\"{}\" ", pixel(x), pixel(y - 8.0));
            canvas.raw(&swatch.replacen("<svg ", &at, 1));
            canvas.text(
                (x + SWATCH + 4.0, y + 2.0),
                name,
                Font { size: 12.0, anchor: "start", colour: "ink", is_bold: false },
            );
            x += legend_item_width(name);
        }
    }
}
