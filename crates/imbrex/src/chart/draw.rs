//! Drawing of a chart: frame, ticks, series, markers, legend.
//!
//! Invariants:
//! 1. No part of a series lies outside the frame.
//! 2. A step is drawn as one horizontal and one vertical line, so a path has as many pairs of lines as the series has
//!    points after the first.

use std::fmt::Write as _;

use super::axis::{Fitted, Tick};
use super::palette;
use super::places::{Place, Places};
use super::series::{Chart, Marker, Series, Shape};
use super::svg::{Canvas, Font, Style, TITLE, escape, pixel, text_width};

pub(super) const LABEL: Font<'static> = Font { size: 11.5, anchor: "middle", colour: "muted", is_bold: false };
const LEGEND_ROW: f64 = 18.0;
const SWATCH: f64 = 30.0;
/// Half of the length of the cap of an error bar, in pixels.
const CAP: f64 = 3.0;
/// Size of the names beside curves, in pixels.
const NAME_SIZE: f64 = 11.0;
/// Largest number of curves that get their names beside them.
const NAMED_MAX: usize = 8;
/// Height of a line of an axis's title, in pixels.
const TITLE_ROW: f64 = 14.0;

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
    size: (f64, f64),
    x: Fitted,
    y: Fitted,
    frame: Frame,
}

/// Returns `chart` as an SVG element.
pub(super) fn chart(chart: &Chart, style: Style) -> String {
    let points = || chart.series.iter().flat_map(|series| series.points.iter());
    let x = chart.x.fit(points().map(|point| point.0).chain(markers(chart, true)));
    // An error bar below 0 does not let the axis of values from 0 on begin below 0.
    let least = points().fold(0.0, |least: f64, point| least.min(point.1));
    let error_bars = chart.series.iter().flat_map(Series::error_bars);
    let error_bars = error_bars.flat_map(|(.., low, high)| [low.max(least), high]);
    let y = chart.y.fit(points().map(|point| point.1).chain(error_bars).chain(markers(chart, false)));
    let names: Vec<(&str, String)> =
        chart.series.iter().map(|series| (series.name.as_str(), swatch(series, style))).collect();
    let rows = legend_rows(&names, chart.size.0);
    // In a column, the legend does not take the height of the chart.
    let more = if style == Style::Column { rows.len() as f64 * LEGEND_ROW } else { 0.0 };
    let size = (chart.size.0, chart.size.1 + more);
    let frame = frame(chart, style, (&x, &y), (size, rows.len()));
    let extra = format!(
        "{} data-plot=\"{}\" data-x=\"{}\" data-y=\"{}\"",
        if chart.of_parts { " data-parts=\"\"" } else { "" },
        frame.attribute(),
        x.attribute(chart.x.unit),
        y.attribute(chart.y.unit)
    );
    let mut canvas = Canvas::open(style, &chart.id, size, &chart.title, &chart.description, &extra);
    if style == Style::Standalone {
        canvas.text((16.0, 24.0), &chart.title, TITLE);
    }
    if style.is_file() {
        legend(&mut canvas, &names, &rows, legend_top(style));
    }
    let drawing = Drawing { chart, size, x, y, frame };
    let mut places = Places::new(frame);
    drawing.axes(&mut canvas);
    let labels = drawing.markers(&mut canvas, &mut places);
    for (index, series) in chart.series.iter().enumerate() {
        drawing.series(&mut canvas, index, series);
    }
    drawing.labels(&mut canvas, &labels);
    if style == Style::Embedded {
        drawing.names(&mut canvas, places);
    }
    canvas.close()
}

fn markers(chart: &Chart, vertical: bool) -> impl Iterator<Item = f64> + '_ {
    chart.markers.iter().filter(move |marker| marker.vertical == vertical).map(|marker| marker.at)
}

fn frame(chart: &Chart, style: Style, (x, y): (&Fitted, &Fitted), (size, legend_rows): ((f64, f64), usize)) -> Frame {
    let widest = y.ticks.iter().map(|tick| text_width(&tick.label, LABEL.size)).fold(20.0, f64::max);
    let left = widest + if chart.y.label.is_empty() { 14.0 } else { 32.0 };
    let top = top(style, legend_rows);
    // The label of the last tick is centred below it.
    let last = x.ticks.last().map_or(0.0, |tick| text_width(&tick.label, LABEL.size) / 2.0 + 4.0);
    let right = last.max(20.0);
    let bottom = 26.0 + title_height(&chart.x.label, size.0);
    Frame { left, top, width: size.0 - left - right, height: size.1 - top - bottom }
}

/// Returns the height that the title of a horizontal axis takes in a drawing of this width.
pub(super) fn title_height(title: &str, width: f64) -> f64 {
    let rows = title_rows(title, width).len() as f64;
    if rows == 0.0 { 0.0 } else { 4.0 + rows * TITLE_ROW }
}

/// Breaks the title of an axis into lines that fit into `width`.
fn title_rows(title: &str, width: f64) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for word in title.split_whitespace() {
        match rows.last_mut() {
            Some(row) if text_width(&format!("{row} {word}"), LABEL.size) <= width - 16.0 => {
                *row += &format!(" {word}")
            }
            _ => rows.push(word.to_string()),
        }
    }
    rows
}

impl Drawing<'_> {
    fn axes(&self, canvas: &mut Canvas) {
        let frame = self.frame;
        vertical_axis(canvas, frame, &self.y.ticks);
        canvas.group("across");
        horizontal_axis(canvas, frame, &self.x.ticks);
        canvas.end_group();
        canvas.line((frame.left, frame.bottom()), (frame.right(), frame.bottom()), "muted", 1.0, "");
        axis_titles(canvas, frame, &self.chart.x.label, &self.chart.y.label, self.size);
    }

    /// Draws the lines of the markers. Returns the markers with the places of their labels.
    fn markers(&self, canvas: &mut Canvas, places: &mut Places) -> Vec<(&Marker, Place)> {
        let frame = self.frame;
        if self.chart.markers.is_empty() {
            return Vec::new();
        }
        canvas.group("markers");
        let placed = |marker| self.position_of(marker).map(|place| (marker, place));
        let markers: Vec<(&Marker, f64)> = self.chart.markers.iter().filter_map(placed).collect();
        for &(marker, place) in &markers {
            let (from, to) = if marker.vertical {
                ((frame.x(place), frame.top), (frame.x(place), frame.bottom()))
            } else {
                ((frame.left, frame.y(place)), (frame.right(), frame.y(place)))
            };
            canvas.line(from, to, "muted", 1.0, "4 3");
            places.avoid(vec![from, to]);
        }
        canvas.end_group();
        let mut labels = Vec::new();
        for (marker, place) in markers {
            let mut wanted: Vec<Place> = Vec::new();
            if marker.vertical {
                let x = frame.x(place);
                for row in 0..6 {
                    let y = frame.top + 12.0 + f64::from(row) * TITLE_ROW;
                    let beside = [((x + 4.0, y), "start"), ((x - 4.0, y), "end")];
                    wanted.extend(if place > 0.7 { [beside[1], beside[0]] } else { beside });
                }
            } else {
                let y = frame.y(place);
                let step = text_width(&marker.label, LABEL.size) + 12.0;
                for shift in (0..6).map(|count| f64::from(count) * step) {
                    let x = frame.right() - 4.0 - shift;
                    wanted.extend([((x, y - 4.0), "end"), ((x, y + 12.0), "end")]);
                }
            }
            let free = places.first_free(&marker.label, LABEL.size, wanted.iter().copied());
            let place = free.or_else(|| places.first_beside_labels(&marker.label, LABEL.size, &wanted));
            labels.push((marker, place.unwrap_or(wanted[0])));
        }
        labels
    }

    /// Writes the labels of the markers over the series, with a border in the colour of the ground.
    fn labels(&self, canvas: &mut Canvas, labels: &[(&Marker, Place)]) {
        if labels.is_empty() {
            return;
        }
        canvas.group("markers");
        for (marker, (at, anchor)) in labels {
            canvas.text_on_ground(*at, &marker.label, Font { anchor, ..LABEL });
        }
        canvas.end_group();
    }

    fn position_of(&self, marker: &Marker) -> Option<f64> {
        let axis = if marker.vertical { &self.x } else { &self.y };
        axis.position(marker.at)
    }

    /// Writes the names of curves beside them, where they cover nothing.
    fn names(&self, canvas: &mut Canvas, mut places: Places) {
        let is_curve =
            |series: &&Series| matches!(series.shape, Shape::Line | Shape::Steps) && !series.points.is_empty();
        let shown = || self.chart.series.iter().filter(|series| !series.is_hidden);
        if shown().filter(is_curve).count() < 2 || shown().filter(is_curve).count() > NAMED_MAX {
            return;
        }
        let curves: Vec<Vec<(f64, f64)>> = self.chart.series.iter().map(|series| self.corners(series)).collect();
        let visible = self.chart.series.iter().zip(&curves).filter(|(series, _)| !series.is_hidden);
        visible.for_each(|(_, corners)| places.avoid(corners.clone()));
        for (index, series) in self.chart.series.iter().enumerate().filter(|(_, series)| is_curve(series)) {
            if series.is_hidden {
                continue;
            }
            let wanted = beside(&curves[index]);
            let Some(((x, y), anchor)) = places.first_free(&series.name, NAME_SIZE, wanted) else { continue };
            canvas.raw(&format!(
                "<text class=\"direct\" data-series=\"{index}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\" \
                 style=\"fill:{};font-size:{NAME_SIZE}px\">{}</text>",
                pixel(x),
                pixel(y),
                canvas.style.series(series.look),
                escape(&series.name)
            ));
        }
    }

    /// Returns the corners of a curve as it is drawn.
    fn corners(&self, series: &Series) -> Vec<(f64, f64)> {
        let mut corners: Vec<(f64, f64)> = Vec::new();
        for (x, y) in series.points.iter().filter_map(|point| self.place(*point)) {
            if let (Shape::Steps, Some(&(_, before))) = (series.shape, corners.last()) {
                corners.push((x, before));
            }
            corners.push((x, y));
        }
        corners
    }

    fn series(&self, canvas: &mut Canvas, index: usize, series: &Series) {
        let colour = canvas.style.series(series.look);
        let name = escape(&series.name);
        let class = if series.is_hidden && canvas.style == Style::Embedded { "series hidden" } else { "series" };
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
            "<path class=\"{class}\" data-series=\"{index}\" data-name=\"{name}\" style=\"{look}\"{line_join} \
             d=\"{path}\"/>"
        ));
        if !series.half_widths.is_empty() {
            let path: String = series.error_bars().filter_map(|bar| self.error_bar(bar)).collect();
            // Within a bar of the same colour, half of the error bar would not be seen.
            let colour = if is_bars { canvas.style.colour("ink") } else { colour };
            let of_series = format!("class=\"{class}\" data-series=\"{index}\" data-name=\"{name}\" ");
            canvas.raw(&error_bars(&path, &colour, &of_series));
        }
    }

    /// Returns the path of an error bar. The bar stands in the middle between the two values of x.
    fn error_bar(&self, (from, to, low, high): (f64, f64, f64, f64)) -> Option<String> {
        let middle = (self.x.position(from)? + self.x.position(to)?) / 2.0;
        error_bar(&self.y, self.frame, self.frame.x(middle), (low, high))
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

/// Returns the path of an error bar at `x` pixels, from `low` to `high` of the vertical axis, with a cap at each end. If
/// the lower end lies below the axis, the bar has no cap there.
pub(super) fn error_bar(axis: &Fitted, frame: Frame, x: f64, (low, high): (f64, f64)) -> Option<String> {
    let is_on_axis = low >= axis.low;
    let (low, high) = (frame.y(axis.position(low).unwrap_or(0.0)), frame.y(axis.position(high)?));
    let (left, right) = (pixel(x - CAP), pixel(x + CAP));
    let (x, low, high) = (pixel(x), pixel(low), pixel(high));
    let cap = if is_on_axis { format!("M{left} {low}H{right}") } else { String::new() };
    Some(format!("{cap}M{x} {low}V{high}M{left} {high}H{right}"))
}

/// Returns the element that draws the path of error bars. `extra` holds further attributes.
pub(super) fn error_bars(path: &str, colour: &str, extra: &str) -> String {
    format!("<path {extra}style=\"fill:none;stroke:{colour};stroke-width:1.2\" d=\"{path}\"/>")
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
}

/// Returns n such that no labels overlap if every n-th label is drawn.
fn label_stride(frame: Frame, ticks: &[Tick]) -> usize {
    let named: Vec<&Tick> = ticks.iter().filter(|tick| !tick.label.is_empty()).collect();
    let widest = named.iter().map(|tick| text_width(&tick.label, LABEL.size)).fold(0.0, f64::max) + 10.0;
    let closest = named.windows(2).map(|pair| frame.width * (pair[1].place - pair[0].place)).fold(widest, f64::min);
    (widest / closest.max(1.0)).ceil() as usize
}

pub(super) fn axis_titles(canvas: &mut Canvas, frame: Frame, x: &str, y: &str, (width, height): (f64, f64)) {
    let rows = title_rows(x, width);
    for (index, row) in rows.iter().enumerate() {
        let y = height - 8.0 - (rows.len() - 1 - index) as f64 * TITLE_ROW;
        // A title that is wider than the frame is centred in the drawing.
        let half = text_width(row, LABEL.size) / 2.0;
        let middle = (frame.left + frame.width / 2.0).min(width - 4.0 - half).max(4.0 + half);
        canvas.text((middle, y), row, Font { colour: "ink", ..LABEL });
    }
    if !y.is_empty() {
        canvas.text_upwards((14.0, frame.top + frame.height / 2.0), y, Font { colour: "ink", ..LABEL });
    }
}

/// Returns places for the name of a curve: above and below it, from its end backwards.
fn beside(corners: &[(f64, f64)]) -> Vec<Place> {
    let (Some(first), Some(last)) = (corners.first(), corners.last()) else { return Vec::new() };
    let mut places = vec![((last.0 - 2.0, last.1 - 4.0), "end"), ((last.0 - 2.0, last.1 + 12.0), "end")];
    let steps = 24;
    for step in 1..steps {
        let x = last.0 - (last.0 - first.0) * f64::from(step) / f64::from(steps);
        let next = corners.partition_point(|corner| corner.0 <= x).clamp(1, corners.len() - 1);
        let (before, after) = (corners[next - 1], corners[next]);
        let share = if after.0 > before.0 { (x - before.0) / (after.0 - before.0) } else { 0.0 };
        let y = before.1 + share * (after.1 - before.1);
        places.extend([((x, y - 5.0), "middle"), ((x, y + 13.0), "middle")]);
        places.extend([((x + 6.0, y + 4.0), "start"), ((x - 6.0, y + 4.0), "end")]);
    }
    places
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

/// Returns the height above the frame of a chart, which has the title and the legend of `rows` lines.
pub(super) fn top(style: Style, rows: usize) -> f64 {
    match style {
        Style::Standalone | Style::Column => legend_top(style) + 2.0 + rows as f64 * LEGEND_ROW,
        Style::Embedded => 10.0,
    }
}

/// Returns the height of the first line of the legend in a file.
pub(super) fn legend_top(style: Style) -> f64 {
    if style == Style::Standalone { 42.0 } else { 14.0 }
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
