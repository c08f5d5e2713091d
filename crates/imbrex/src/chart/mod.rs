//! Charts as SVG: lines, steps, dots, marks and bars, drawn without any library.
//!
//! The libraries of charts that we know choose ticks for plain numbers and for dates. Here, a time changes its unit along an axis (µs, ms, s,
//! min), sizes have their ticks at powers of two, and percentiles at equal numbers of nines. The tests of `axis` give
//! examples. The colours are a published set, so they need no library either.
//!
//! A chart is a value: titles, two axes, series of points. It is drawn in one of two styles. *Standalone* makes a file
//! of its own: white background, title and legend inside. *Embedded* is for a page: its style sheet defines the colours
//! as `--series-0` … and `--ink` …, and its HTML contains title and legend.
//!
//! Invariants:
//! 1. Every point of a series that the axes can show is drawn. Points are left out only by [`Chart::thin`] and
//!    [`Chart::narrow`], which the caller has to request.
//! 2. Series differ by their dashes or marks, not only by their colour.
//! 3. The same chart gives the same bytes.

mod axis;
pub mod bars;
mod draw;
mod exact;
pub mod label;
pub mod palette;
mod places;
mod series;
mod svg;
mod thin;

pub use axis::Axis;
pub use bars::{BarArrangement, BarChart};
pub use draw::swatch;
pub use label::Unit;
pub use series::{Chart, Marker, Series, Shape};
pub use svg::{COLUMN_MM, Style, escape};

impl Chart {
    /// Creates a chart with the given axes, without series or description, of 720 by 420 pixels. `id` is unique in its
    /// page.
    pub fn new(id: impl Into<String>, title: impl Into<String>, x: Axis, y: Axis) -> Chart {
        let (id, title) = (id.into(), title.into());
        let (description, series, markers) = (String::new(), Vec::new(), Vec::new());
        Chart { id, title, description, x, y, series, markers, of_parts: false, size: (720.0, 420.0) }
    }

    /// Adds `series` to the chart, after those added before. It is drawn over them.
    pub fn with(mut self, series: Series) -> Chart {
        self.series.push(series);
        self
    }

    /// Adds a vertical dashed line at the value `at` of the x axis, with `label` beside it.
    pub fn mark_x(mut self, at: f64, label: impl Into<String>) -> Chart {
        self.markers.push(Marker { vertical: true, at, label: label.into() });
        self
    }

    /// Adds a horizontal dashed line at the value `at` of the y axis, with `label` beside it.
    pub fn mark_y(mut self, at: f64, label: impl Into<String>) -> Chart {
        self.markers.push(Marker { vertical: false, at, label: label.into() });
        self
    }

    /// Sets the description in words, as plain text, for readers who cannot see the chart.
    pub fn described(mut self, description: impl Into<String>) -> Chart {
        self.description = description.into();
        self
    }

    /// Says that the series are parts of one drive: the legend of a page, which hides drives, does not apply to them.
    pub fn of_parts(mut self) -> Chart {
        self.of_parts = true;
        self
    }

    /// Sets the width and height of the whole drawing in pixels.
    pub fn sized(mut self, width: f64, height: f64) -> Chart {
        self.size = (width, height);
        self
    }

    /// Returns the chart for a narrow screen: the same series with as many points as can be told apart, 360 pixels wide.
    /// Its id ends in `-narrow`.
    pub fn narrow(&self) -> Chart {
        let height = self.size.1.min(300.0);
        let narrow = Chart { id: format!("{}-narrow", self.id), ..self.clone() }.sized(360.0, height);
        let is_in_order = self.series.iter().all(|series| matches!(series.shape, Shape::Line | Shape::Steps));
        if is_in_order { narrow.thin(160) } else { narrow }
    }

    /// Reduces every series with more points than `limit`, which counts as at least 4, to at most that many. Divides
    /// the x axis into intervals of equal length and keeps the first, last, lowest and highest point of each, so that
    /// no peak is lost. Points must be in the order of x. A series with error bars keeps all points.
    pub fn thin(mut self, limit: usize) -> Chart {
        let x = self.x.fit(self.series.iter().flat_map(|series| series.points.iter().map(|point| point.0)));
        for series in self.series.iter_mut().filter(|series| series.half_widths.is_empty()) {
            thin::extremes(&mut series.points, limit, |value| x.position(value));
        }
        self
    }

    /// Appends `words` to the title if the drawing is wide enough to show both.
    pub fn with_in_title(mut self, words: &str) -> Chart {
        self.title = svg::lengthened_title(self.title, words, self.size.0);
        self
    }

    /// Returns whether the chart has no series, or none of its series has a point.
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }

    /// Returns the chart as an SVG element in the given style. Only a standalone drawing has the title and the legend.
    pub fn svg(&self, style: Style) -> String {
        draw::chart(self, style)
    }
}

#[cfg(test)]
mod tests;
