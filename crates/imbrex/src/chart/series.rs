//! Elements of a chart: series of points, marker lines, two axes.

use serde::{Deserialize, Serialize};

use super::axis::Axis;
use super::exact;

/// The way in which the points of a series are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Points joined by straight lines.
    Line,
    /// A step line: the path runs horizontally from each point to the x value of the next point, and then vertically to
    /// that point.
    Steps,
    /// One small dot per point, for many points. The points are not joined.
    Dots,
    /// One mark per point, for few points. The form of the mark depends on the look number of the series
    /// ([`Series::look`]). The points are not joined.
    Marks,
    /// A bar from the x value of each point to that of the next, as high as the y value of the first of the two. The
    /// last point only ends the bar before it.
    Bars,
}

/// A series of points of a chart, with its name and look.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Series {
    /// Name of the series in the legend.
    pub name: String,
    /// The way in which the points are drawn.
    pub shape: Shape,
    /// Points (x, y), in the units of the axes. They must be in the order of x, except for dots and marks.
    #[serde(with = "exact")]
    pub points: Vec<(f64, f64)>,
    /// Half of the length of the error bar of each point, in the unit of the y axis: the bar reaches from y − h to y +
    /// h, as far as the axis does. 0 draws no bar. Empty if the series has no error bars, else as long as `points`.
    #[serde(with = "exact")]
    pub half_widths: Vec<f64>,
    /// Number that selects colour, dashes and mark: equal numbers look the same in every chart. Colours repeat after 8
    /// numbers, dashes and marks after 10.
    pub look: usize,
    /// Whether the line has fixed dashes in place of the dashes of its look, to mark the series as a reference.
    pub dashed: bool,
    /// Whether a page shows the series only after the reader chose it in the legend. A standalone drawing shows it.
    pub is_hidden: bool,
}

impl Series {
    /// Creates a series without error bars that is not marked as a reference by fixed dashes. `name` is its name in the
    /// legend. `look` selects colour, dashes and mark; equal numbers look the same. `points` are pairs (x, y) in the
    /// units of the axes.
    pub fn new(name: impl Into<String>, shape: Shape, look: usize, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), shape, points, half_widths: Vec::new(), look, dashed: false, is_hidden: false }
    }

    /// Gives each point an error bar, of half the length in `half_widths` ([`Series::half_widths`]). If all are 0, the
    /// series has none.
    ///
    /// # Panics
    /// If `half_widths` is not as long as the list of points.
    pub fn with_error_bars(mut self, half_widths: Vec<f64>) -> Series {
        assert_eq!(half_widths.len(), self.points.len(), "one half width for each point");
        self.half_widths = if half_widths.iter().all(|half| *half == 0.0) { Vec::new() } else { half_widths };
        self
    }

    /// Returns for each error bar the two values of x between which it stands, and its lower and upper end. Steps and
    /// bars have a height from one point to the next, so their error bars stand in the middle; those of other shapes
    /// stand at the point. Error bars of length 0 are left out.
    pub(super) fn error_bars(&self) -> impl Iterator<Item = (f64, f64, f64, f64)> + '_ {
        let has_width = matches!(self.shape, Shape::Steps | Shape::Bars);
        let bars = self.points.iter().zip(&self.half_widths).enumerate().filter(|(_, (_, half))| **half > 0.0);
        bars.map(move |(index, (&(x, y), half))| {
            let next = self.points.get(index + 1).filter(|_| has_width);
            (x, next.map_or(x, |next| next.0), y - half, y + half)
        })
    }

    /// Sets whether a page shows the series only after the reader chose it in the legend.
    pub fn hidden(mut self, is_hidden: bool) -> Series {
        self.is_hidden = is_hidden;
        self
    }

    /// Gives the line fixed dashes in place of those of its look.
    pub fn dashed(mut self) -> Series {
        self.dashed = true;
        self
    }
}

/// A straight line across a chart at one value of an axis, with a label.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Marker {
    /// Whether the line is vertical and `at` a value of the x axis. Otherwise the line is horizontal, and `at` is a
    /// value of the y axis.
    pub vertical: bool,
    /// Value on the axis at which the line is drawn, in the unit of the axis.
    #[serde(with = "exact")]
    pub at: f64,
    /// Text beside the marker line; may be empty.
    pub label: String,
}

/// A chart of series of points over two axes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Chart {
    /// Short name, unique in its page. It is the id of the SVG element, and the ids inside begin with it.
    pub id: String,
    /// Title of the chart, as plain text. A standalone drawing shows it.
    pub title: String,
    /// Description in words, as plain text, for readers who cannot see the chart; may be empty.
    pub description: String,
    /// Horizontal axis; its values increase to the right.
    pub x: Axis,
    /// Vertical axis; its values increase upwards.
    pub y: Axis,
    /// Series of points; later ones are drawn over earlier ones.
    pub series: Vec<Series>,
    /// Straight lines across the chart, each at one value of the x or y axis, with a label.
    pub markers: Vec<Marker>,
    /// Whether the series are parts of one drive: the legend of a page, which hides drives, does not apply to them.
    pub of_parts: bool,
    /// Width and height of the whole drawing in pixels.
    #[serde(with = "exact")]
    pub size: (f64, f64),
}
