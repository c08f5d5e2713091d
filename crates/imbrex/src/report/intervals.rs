//! Means over seeds with their 95 % intervals: in cells of tables, and as a chart.

use imbrex_sim::Estimate;

use super::figure::{Drawing, Figure, Layout};
use crate::chart::{Axis, Chart, Series, Shape, Unit};

const SIZE: (f64, f64) = (580.0, 330.0);

/// Returns ± and half of the interval as text, with a space before them; nothing if the figure does not depend on the
/// seed.
pub fn half(unit: Unit, over: &Estimate) -> String {
    if over.is_constant() {
        return String::new();
    }
    format!(" ± {}", unit.label(over.half_width_95).trim_start_matches('×'))
}

/// A chart of one figure of several items, such as drives or phases: means and intervals over the seeds.
pub struct Pane<'a> {
    /// Part of the HTML id of the chart, unique in the page; also the name of the pane.
    pub id: &'a str,
    /// Name of the figure.
    pub name: &'a str,
    /// Unit of the figure.
    pub unit: Unit,
    /// Name of each item in the legend, and its figure. An item without a figure keeps its place.
    pub items: Vec<(String, Option<Estimate>)>,
}

impl Pane<'_> {
    /// Returns the name and the chart of the pane. `item` is the word for an item, `seeds` the number of seeds.
    fn drawing(self, item: &str, seeds: usize) -> (String, Drawing) {
        let Pane { id, name, unit, items } = self;
        let mut chart = Chart::new(
            format!("seeds-{id}"),
            format!("{name}: mean and 95 % interval over the seeds"),
            Axis::linear(format!("{item}, in the order of the legend"), Unit::Count)
                .ranged(0.5, items.len() as f64 + 0.5),
            Axis::linear(name, unit),
        )
        .described(format!("The {name} of each {item}: mean and 95 % interval over {seeds} seeds."))
        .sized(SIZE.0, SIZE.1);
        for (index, (item, over)) in items.into_iter().enumerate() {
            let x = index as f64 + 1.0;
            // The ends of the interval and the mean are short horizontal lines on a vertical one.
            let points = over.map_or_else(Vec::new, |over| {
                let at = |y: f64, half: f64| [(x, y), (x - half, y), (x + half, y), (x, y)];
                let (low, high) = (over.mean - over.half_width_95, over.mean + over.half_width_95);
                [at(low, 0.08), at(over.mean, 0.2), at(high, 0.08)].concat()
            });
            chart = chart.with(Series::new(item, Shape::Line, index, points));
        }
        (id.to_string(), Drawing::Chart(chart))
    }
}

/// Returns the figure `Over the seeds` with a chart for each pane; `None` without any data. `item` is the word for an
/// item of a chart, such as `drive`, and `seeds` is the number of seeds.
pub fn figure(item: &str, seeds: usize, panes: Vec<Pane<'_>>) -> Option<Figure> {
    let caption = format!(
        "The longest line of each {item} is its mean over {seeds} seeds, the short ones are the ends of the 95 % interval."
    );
    let panes = panes.into_iter().map(|pane| pane.drawing(item, seeds)).collect();
    Figure { id: "seeds", title: "Over the seeds", caption, layout: Layout::Tabs, is_wide: false, panes }.if_any()
}
