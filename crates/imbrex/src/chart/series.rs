//! What a chart is made of: series of points, lines with words, two axes.

use super::axis::Axis;

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Points joined by straight lines.
    Line,
    /// Each value holds until the next point.
    Steps,
    /// A small dot a point: for many.
    Dots,
    /// A mark a point, its shape told by the series: for few.
    Marks,
    /// A bar from each point to the next; the last point only ends the bar before it.
    Bars,
}

/// A series of points with a name.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// How it is drawn.
    pub shape: Shape,
    /// (x, y), in order of x unless drawn as dots or marks.
    pub points: Vec<(f64, f64)>,
    /// Which colour, dashes and mark: the same number looks the same in every chart.
    pub look: usize,
    /// Dashed although the look has none: a reference.
    pub dashed: bool,
}

impl Series {
    /// A series that looks like number `look`.
    pub fn new(name: impl Into<String>, shape: Shape, look: usize, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), shape, points, look, dashed: false }
    }

    /// The same, dashed.
    pub fn dashed(mut self) -> Series {
        self.dashed = true;
        self
    }
}

/// A vertical or horizontal line with a word to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Marker {
    /// Whether it stands at an x (vertical) or lies at a y.
    pub vertical: bool,
    /// The value on the axis at which it stands.
    pub at: f64,
    /// The word beside it.
    pub label: String,
}

/// A chart of series over two axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    /// Short name, unique in its page: the ids inside the drawing begin with it.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// For those who cannot see it: what it would tell them.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Lines with words.
    pub markers: Vec<Marker>,
    /// Width and height in pixels.
    pub size: (f64, f64),
}
