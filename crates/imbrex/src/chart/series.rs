//! Elements of a chart: series of points, marker lines, two axes.

use super::axis::Axis;

/// Drawing style of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Points joined by straight lines.
    Line,
    /// A step line: each value holds until the next point.
    Steps,
    /// A small dot per point, for many points.
    Dots,
    /// A mark per point, whose shape depends on the series, for few points.
    Marks,
    /// A bar from each point to the next. The last point only ends the bar before it.
    Bars,
}

/// A series of points with a name.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Drawing style.
    pub shape: Shape,
    /// Points (x, y), in order of x unless drawn as dots or marks.
    pub points: Vec<(f64, f64)>,
    /// Number that selects colour, dashes and mark. A number looks the same in every chart.
    pub look: usize,
    /// Whether the line is dashed even if its look has no dashes, to mark a reference.
    pub dashed: bool,
}

impl Series {
    /// Creates a series with the look number `look`.
    pub fn new(name: impl Into<String>, shape: Shape, look: usize, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), shape, points, look, dashed: false }
    }

    /// Makes the line dashed.
    pub fn dashed(mut self) -> Series {
        self.dashed = true;
        self
    }
}

/// A vertical or horizontal line with a label.
#[derive(Clone, PartialEq, Debug)]
pub struct Marker {
    /// Whether the line is vertical, at a value of the x axis, rather than horizontal, at a value of the y axis.
    pub vertical: bool,
    /// Value on the axis.
    pub at: f64,
    /// Text beside the line.
    pub label: String,
}

/// A chart of series over two axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    /// Short name, unique in its page. The ids inside the SVG begin with it.
    pub id: String,
    /// Title of the chart.
    pub title: String,
    /// Description in words, for readers who cannot see the chart.
    pub description: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Series of points.
    pub series: Vec<Series>,
    /// Marker lines.
    pub markers: Vec<Marker>,
    /// Width and height in pixels.
    pub size: (f64, f64),
}
