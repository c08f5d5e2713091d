//! Bar charts by group: bars stacked horizontally, for parts of a whole, or upright bars side by side, for one measure
//! of several items.
//!
//! Invariants:
//! 1. Parts differ by their hatching, not only by their colour.
//! 2. Stacked parts are drawn in order and end at their sum.

use serde::{Deserialize, Serialize};

use super::axis::{Axis, Fitted};
use super::draw::{
    Frame, LABEL, axis_titles, error_bar, error_bars, horizontal_axis, legend, legend_rows, legend_top, title_height,
    top, vertical_axis, wrapped_swatch,
};
use super::exact;
use super::palette;
use super::series::Marker;
use super::svg::{Canvas, Font, Style, TITLE, escape, lengthened_title, pixel, text_width};

/// Arrangement of the bars of one group: stacked or side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BarArrangement {
    /// Horizontal bars, placed end to end, with the name of the group above them.
    Stacked,
    /// Upright bars, side by side, with the name of the group below them.
    Grouped,
}

/// A part that every group of a bar chart has, such as one cause of writes: one bar per group.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// Name of the part in the legend.
    pub name: String,
    /// Number that selects colour and hatching: equal numbers look the same in every chart. Colours repeat after 8
    /// numbers, hatchings after 7.
    pub look: usize,
    /// Values, one per group, in the unit of the value axis. NaN if the group has no value; no bar is drawn then.
    #[serde(with = "exact")]
    pub values: Vec<f64>,
    /// Half of the length of the error bar of each value, in the unit of the value axis: the bar reaches from v − h to
    /// v + h, as far as the axis does. 0 draws no bar. Empty if the part has no error bars, else as long as `values`.
    /// Stacked bars show none: the interval of a part is not that of the sum at which its bar ends.
    #[serde(with = "exact")]
    pub half_widths: Vec<f64>,
}

/// A bar chart: groups of bars, with one bar per group and part.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BarChart {
    /// Short name, unique in its page. It is the id of the SVG element, and the ids inside begin with it.
    pub id: String,
    /// Title of the chart, as plain text. A standalone drawing shows it.
    pub title: String,
    /// Description in words, as plain text, for readers who cannot see the chart; may be empty.
    pub description: String,
    /// Axis of the values: horizontal for stacked bars, vertical for grouped ones.
    pub value: Axis,
    /// Names of the groups, in the order of drawing.
    pub groups: Vec<String>,
    /// Parts of every group, in the order of drawing.
    pub parts: Vec<Part>,
    /// Arrangement of the bars of each group: stacked or side by side.
    pub arrangement: BarArrangement,
    /// Lines at single values of the value axis. They are vertical for stacked bars and horizontal for grouped ones.
    /// Labels are shown for grouped bars only.
    pub markers: Vec<Marker>,
    /// Whether grouped values are drawn as marks in place of bars: a logarithmic axis has no 0 for bars to begin at.
    pub is_marks: bool,
    /// Width and height of the whole drawing in pixels. For stacked bars, the height is ignored: it follows from the
    /// number of groups.
    #[serde(with = "exact")]
    pub size: (f64, f64),
}

impl Part {
    /// Gives each value an error bar, of half the length in `half_widths` ([`Part::half_widths`]). If all are 0, the
    /// part has none.
    ///
    /// # Panics
    ///
    /// If `half_widths` is not as long as the list of values.
    pub fn with_error_bars(mut self, half_widths: Vec<f64>) -> Part {
        assert_eq!(half_widths.len(), self.values.len(), "one half width for each value");
        self.half_widths = if half_widths.iter().all(|half| *half == 0.0) { Vec::new() } else { half_widths };
        self
    }

    /// Returns the lower and upper end of the error bar of group `group`; `None` if it has none.
    fn error_bar(&self, group: usize) -> Option<(f64, f64)> {
        let (value, half) = (self.values[group], *self.half_widths.get(group)?);
        (half > 0.0).then_some((value - half, value + half))
    }
}

const ROW_HEIGHT: f64 = 44.0;
const BAR_HEIGHT: f64 = 18.0;

impl BarChart {
    /// Creates a chart without parts, markers or description, of 720 by 420 pixels. `id` is unique in its page.
    pub fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        value: Axis,
        groups: Vec<String>,
        arrangement: BarArrangement,
    ) -> BarChart {
        let (id, title, description) = (id.into(), title.into(), String::new());
        let (parts, markers, is_marks, size) = (Vec::new(), Vec::new(), false, (720.0, 420.0));
        BarChart { id, title, description, value, groups, parts, arrangement, markers, is_marks, size }
    }

    /// Adds a part called `name` with `values`, one per group in the order of the groups. `look` selects colour and
    /// hatching.
    ///
    /// # Panics
    ///
    /// If the number of values is not the number of groups.
    pub fn with(mut self, name: impl Into<String>, look: usize, values: Vec<f64>) -> BarChart {
        assert_eq!(values.len(), self.groups.len(), "a part has one value a group");
        self.parts.push(Part { name: name.into(), look, values, half_widths: Vec::new() });
        self
    }

    /// Sets the description in words, as plain text, for readers who cannot see the chart.
    pub fn described(mut self, description: impl Into<String>) -> BarChart {
        self.description = description.into();
        self
    }

    /// Appends `words` to the title if the drawing is wide enough to show both.
    pub fn with_in_title(mut self, words: &str) -> BarChart {
        self.title = lengthened_title(self.title, words, self.size.0);
        self
    }

    /// Sets the width and height of the drawing in pixels. The height has no effect on stacked bars: it follows from
    /// the number of groups.
    pub fn sized(mut self, width: f64, height: f64) -> BarChart {
        self.size = (width, height);
        self
    }

    /// Draws grouped values as marks in place of bars. Has no effect on stacked bars.
    pub fn marks(mut self) -> BarChart {
        self.is_marks = self.arrangement == BarArrangement::Grouped;
        self
    }

    /// Returns the chart for a narrow screen, 360 pixels wide. Its id ends in `-narrow`.
    pub fn narrow(&self) -> BarChart {
        let height = self.size.1.min(300.0);
        BarChart { id: format!("{}-narrow", self.id), ..self.clone() }.sized(360.0, height)
    }

    /// Adds a marker line at the value `at` of the value axis, in its unit. The line is vertical for stacked bars and
    /// horizontal for grouped ones. `label` is shown for grouped bars only.
    pub fn mark(mut self, at: f64, label: impl Into<String>) -> BarChart {
        let vertical = self.arrangement == BarArrangement::Stacked;
        self.markers.push(Marker { vertical, at, label: label.into() });
        self
    }

    /// Returns the chart as an SVG element in the given style. Only a standalone drawing has the title and the legend.
    ///
    /// # Panics
    ///
    /// If a part has fewer values than the chart has groups.
    pub fn svg(&self, style: Style) -> String {
        let names: Vec<(&str, String)> =
            self.parts.iter().map(|part| (part.name.as_str(), self.swatch(part, style))).collect();
        let rows = legend_rows(&names, self.size.0);
        let top = top(style, rows.len());
        let size = self.full_size(top);
        let mut canvas = Canvas::open(style, &self.id, size, &self.title, &self.description, "");
        self.hatchings(&mut canvas);
        if style == Style::Standalone {
            canvas.text((16.0, 24.0), &self.title, TITLE);
        }
        if style.is_file() {
            legend(&mut canvas, &names, &rows, legend_top(style));
        }
        match self.arrangement {
            BarArrangement::Stacked => self.draw_stacked(&mut canvas, top, size),
            BarArrangement::Grouped => self.draw_grouped(&mut canvas, top, size),
        }
        canvas.close()
    }

    /// Returns a small sample of the colour and hatching of `part`, as an SVG element for a legend in HTML.
    pub fn swatch(&self, part: &Part, style: Style) -> String {
        let colour = style.series(part.look);
        if self.is_marks {
            let mark = palette::mark(part.look, 14.0, 6.0, 5.0);
            return wrapped_swatch(&format!("<path d=\"{mark}\" style=\"fill:{colour}\"/>"));
        }
        wrapped_swatch(&format!(
            "<rect x=\"4\" width=\"20\" height=\"12\" style=\"fill:{colour}\"/>\
             <svg x=\"4\" width=\"20\" height=\"12\" viewBox=\"0 0 13 8\"><path d=\"{}\" style=\"fill:none;stroke:{};\
             stroke-width:1.4;stroke-linecap:round\"/></svg>",
            palette::hatching(part.look),
            style.colour("ground")
        ))
    }

    fn full_size(&self, top: f64) -> (f64, f64) {
        match self.arrangement {
            BarArrangement::Stacked => (
                self.size.0,
                top + self.groups.len() as f64 * ROW_HEIGHT + 30.0 + title_height(&self.value.label, self.size.0),
            ),
            BarArrangement::Grouped => self.size,
        }
    }

    fn hatchings(&self, canvas: &mut Canvas) {
        let ground = canvas.style.colour("ground");
        canvas.raw("<defs>");
        for part in &self.parts {
            let strokes = palette::hatching(part.look);
            if strokes.is_empty() {
                continue;
            }
            canvas.raw(&format!(
                "<pattern id=\"{}-hatch-{}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">\
                 <path d=\"{strokes}\" style=\"fill:none;stroke:{ground};stroke-width:1.2;stroke-opacity:.75;\
                 stroke-linecap:round\"/></pattern>",
                self.id, part.look
            ));
        }
        canvas.raw("</defs>");
    }

    fn draw_stacked(&self, canvas: &mut Canvas, top: f64, size: (f64, f64)) {
        let sums = (0..self.groups.len()).map(|group| self.sum(group));
        let axis = self.value.fit(sums.chain(self.markers.iter().map(|marker| marker.at)));
        let height = self.groups.len() as f64 * ROW_HEIGHT;
        let frame = Frame { left: 16.0, top, width: size.0 - 80.0, height };
        horizontal_axis(canvas, frame, &axis.ticks);
        canvas.line((frame.left, frame.bottom()), (frame.right(), frame.bottom()), "muted", 1.0, "");
        axis_titles(canvas, frame, &self.value.label, "", size);
        for (group, name) in self.groups.iter().enumerate() {
            let y = top + group as f64 * ROW_HEIGHT + 16.0;
            let at = (frame.left + 2.0, y - 2.0);
            let font = Font { anchor: "start", colour: "ink", ..LABEL };
            canvas.text(at, &shortened(name, size.0 - 40.0), font);
            let mut sum = 0.0;
            for (index, part) in self.parts.iter().enumerate() {
                let value = part.values[group];
                let (from, to) = (x_of(&axis, frame, sum), x_of(&axis, frame, sum + finite(value)));
                sum += finite(value);
                let bar = [from, y + 4.0, to - from, BAR_HEIGHT];
                self.bar(canvas, index, name, value, bar);
            }
            let label = self.value.unit.label(sum);
            let end = (x_of(&axis, frame, sum) + 5.0, y + 17.5);
            canvas.text(end, &label, Font { anchor: "start", colour: "ink", ..LABEL });
        }
        self.lines(canvas, &axis, frame);
    }

    fn draw_grouped(&self, canvas: &mut Canvas, top: f64, size: (f64, f64)) {
        let values = self.parts.iter().flat_map(|part| part.values.iter().copied());
        let groups = 0..self.groups.len();
        let ends = self.parts.iter().flat_map(|part| groups.clone().filter_map(|group| part.error_bar(group)));
        // Bars stand on the lower end of the axis, so no error bar moves this end below 0.
        let ends = ends.flat_map(|(low, high)| [low.max(0.0), high]);
        let axis = self.value.fit(values.chain(ends).chain(self.markers.iter().map(|marker| marker.at)));
        let widest = axis.ticks.iter().map(|tick| text_width(&tick.label, LABEL.size)).fold(20.0, f64::max);
        let left = widest + 32.0;
        let frame = Frame { left, top, width: size.0 - left - 16.0, height: size.1 - top - 30.0 };
        vertical_axis(canvas, frame, &axis.ticks);
        axis_titles(canvas, frame, "", &self.value.label, size);
        let group_width = frame.width / self.groups.len().max(1) as f64;
        let bar_width = group_width * 0.82 / self.parts.len().max(1) as f64;
        for (group, name) in self.groups.iter().enumerate() {
            let begin = frame.left + group as f64 * group_width;
            for (index, part) in self.parts.iter().enumerate() {
                let value = part.values[group];
                let y = frame.y(axis.position(value).unwrap_or(0.0));
                let x = begin + group_width * 0.09 + index as f64 * bar_width;
                let middle = x + bar_width * 0.46;
                if self.is_marks {
                    self.mark_of(canvas, index, name, value, (middle, y));
                } else {
                    self.bar(canvas, index, name, value, [x, y, bar_width * 0.92, frame.bottom() - y]);
                }
                let ends = part.error_bar(group);
                if let Some(path) = ends.and_then(|ends| error_bar(&axis, frame, middle, ends)) {
                    let colour =
                        if self.is_marks { canvas.style.series(part.look) } else { canvas.style.colour("ink") };
                    canvas.raw(&error_bars(&path, &colour, ""));
                }
            }
            let middle = (begin + group_width / 2.0, frame.bottom() + 16.0);
            canvas.text(middle, &shortened(name, group_width), LABEL);
        }
        canvas.line((frame.left, frame.bottom()), (frame.right(), frame.bottom()), "muted", 1.0, "");
        self.lines(canvas, &axis, frame);
    }

    fn bar(&self, canvas: &mut Canvas, index: usize, group: &str, value: f64, [x, y, width, height]: [f64; 4]) {
        if !value.is_finite() || value == 0.0 {
            return;
        }
        let part = &self.parts[index];
        let colour = canvas.style.series(part.look);
        let words = self.words(part, group, value);
        let place = format!(
            "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            pixel(x),
            pixel(y),
            pixel(width.max(0.3)),
            pixel(height.max(0.0))
        );
        canvas.raw(&format!(
            "<g class=\"bar\" data-part=\"{index}\"><title>{words}</title><rect {place} style=\"fill:{colour}\"/>"
        ));
        if !palette::hatching(part.look).is_empty() {
            canvas.raw(&format!("<rect {place} fill=\"url(#{}-hatch-{})\"/>", self.id, part.look));
        }
        canvas.raw("</g>");
    }

    fn mark_of(&self, canvas: &mut Canvas, index: usize, group: &str, value: f64, (x, y): (f64, f64)) {
        if !value.is_finite() || value <= 0.0 {
            return;
        }
        let part = &self.parts[index];
        canvas.raw(&format!(
            "<g class=\"bar\" data-part=\"{index}\"><title>{}</title><path d=\"{}\" style=\"fill:{}\"/></g>",
            self.words(part, group, value),
            palette::mark(part.look, x, y, 6.0),
            canvas.style.series(part.look)
        ));
    }

    /// Returns group, part and value in words, escaped for SVG.
    fn words(&self, part: &Part, group: &str, value: f64) -> String {
        escape(&format!("{group}, {}: {}", part.name, self.value.unit.label(value)))
    }

    fn lines(&self, canvas: &mut Canvas, axis: &Fitted, frame: Frame) {
        for marker in &self.markers {
            let Some(place) = axis.position(marker.at) else { continue };
            if marker.vertical {
                // The line crosses the bars only, so that the names between them stay legible.
                let x = frame.x(place);
                for group in 0..self.groups.len() {
                    let y = frame.top + group as f64 * ROW_HEIGHT + 18.0;
                    canvas.line((x, y), (x, y + BAR_HEIGHT + 4.0), "ink", 1.2, "3 2");
                }
            } else {
                let y = frame.y(place);
                canvas.line((frame.left, y), (frame.right(), y), "ink", 1.0, "4 3");
                canvas.text((frame.right() - 4.0, y - 4.0), &marker.label, Font { anchor: "end", ..LABEL });
            }
        }
    }

    fn sum(&self, group: usize) -> f64 {
        self.parts.iter().map(|part| finite(part.values[group])).sum()
    }
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

fn x_of(axis: &Fitted, frame: Frame, value: f64) -> f64 {
    frame.x(axis.position(value).unwrap_or(0.0))
}

/// Shortens `text` to `width` pixels, ending in an ellipsis if something was cut off.
fn shortened(text: &str, width: f64) -> String {
    if text_width(text, LABEL.size) <= width {
        return text.to_string();
    }
    let mut short = String::new();
    for character in text.chars() {
        if text_width(&short, LABEL.size) + 10.0 > width {
            break;
        }
        short.push(character);
    }
    short + "…"
}
