//! A figure of the page: its drawings and their layout.

use std::fmt::Write as _;

use crate::chart::{BarChart, Chart, Style, escape, swatch};

/// Width in pixels up to which a drawing fits on a narrow screen.
const NARROW: f64 = 360.0;

/// The contents of one pane of a figure: a chart.
pub enum Drawing {
    /// A chart of series of points over two axes.
    Chart(Chart),
    /// A bar chart, stacked or grouped.
    Bars(BarChart),
}

/// Arrangement of the panes of a figure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One pane is visible at a time; the reader selects it by name. The legend is that of the first pane.
    Tabs,
    /// All panes are visible, side by side, each below its name. There is no legend.
    Grid,
}

/// One figure of a page: a heading, one or several charts with a legend, and a caption.
pub struct Figure {
    /// HTML id of the figure, unique in the page.
    pub id: &'static str,
    /// Heading of the figure, as HTML.
    pub title: &'static str,
    /// Caption below the charts, as HTML.
    pub caption: String,
    /// Arrangement of the panes.
    pub layout: Layout,
    /// Whether the figure takes the whole width of the page rather than one column.
    pub is_wide: bool,
    /// Name and chart of each pane, in the order of display.
    pub panes: Vec<(String, Drawing)>,
}

impl Figure {
    /// Returns the figure itself, or `None` if it has no pane with data. A bar chart always counts as data.
    #[must_use]
    pub fn if_any(self) -> Option<Figure> {
        let is_any = self.panes.iter().any(|(_, drawing)| match drawing {
            Drawing::Chart(chart) => !chart.is_empty(),
            Drawing::Bars(_) => true,
        });
        is_any.then_some(self)
    }

    /// Returns the drawings that a reader sees before choosing others, each with a name for a file: the id of the figure, and
    /// with several panes the name of the pane.
    pub fn named(&self) -> Vec<(String, &Drawing)> {
        let shown = self.panes.iter().filter(|(_, drawing)| !drawing.is_hidden());
        let named = shown.map(|(name, drawing)| match self.panes.len() {
            1 => (self.id.to_string(), drawing),
            _ => (format!("{}-{}", self.id, file_name(name)), drawing),
        });
        named.collect()
    }

    /// Returns the figure as an HTML `figure` element.
    ///
    /// # Panics
    ///
    /// If the layout is [`Layout::Tabs`] and there is no pane.
    pub fn html(&self) -> String {
        let wide = if self.is_wide { " wide" } else { "" };
        let mut html = format!("<figure class=\"chart{wide}\" id=\"{}\"><h3>{}</h3>", self.id, self.title);
        match self.layout {
            Layout::Tabs => html += &self.tabs(),
            Layout::Grid => html += &self.grid(),
        }
        let _ = write!(html, "<figcaption>{}</figcaption></figure>", self.caption);
        html
    }

    /// Returns the panes with radio buttons that select one, which works without scripts.
    fn tabs(&self) -> String {
        let mut html = String::new();
        if self.panes.len() > 1 {
            for (index, (name, _)) in self.panes.iter().enumerate() {
                let checked = if index == 0 { " checked" } else { "" };
                let _ = write!(
                    html,
                    "<input type=\"radio\" class=\"tab\" name=\"{0}-tab\" id=\"{0}-tab-{index}\"{checked}>\
                     <label for=\"{0}-tab-{index}\">{1}</label>",
                    self.id,
                    escape(name)
                );
            }
        }
        html += &legend(&self.panes[0].1);
        for (_, drawing) in &self.panes {
            let _ = write!(html, "<div class=\"pane\">{}</div>", drawing.svg());
        }
        html
    }

    fn grid(&self) -> String {
        let mut html = self.legend_of_parts() + "<div class=\"grid\">";
        for (index, (name, drawing)) in self.panes.iter().enumerate() {
            let hidden = if drawing.is_hidden() { " hidden" } else { "" };
            let _ = write!(
                html,
                "<div class=\"cell{hidden}\" data-drive=\"{index}\"><p class=\"name\">{}</p>{}</div>",
                escape(name),
                drawing.svg()
            );
        }
        html + "</div>"
    }
}

impl Figure {
    /// Returns the legend of charts whose series are parts of a drive: the parts that any chart has.
    fn legend_of_parts(&self) -> String {
        let charts = || {
            self.panes.iter().filter_map(|(_, drawing)| match drawing {
                Drawing::Chart(chart) if chart.of_parts => Some(chart),
                _ => None,
            })
        };
        let Some(first) = charts().next() else { return String::new() };
        let mut html = String::from("<ul class=\"legend\">");
        for (index, series) in first.series.iter().enumerate() {
            if charts().any(|chart| chart.series.get(index).is_some_and(|series| !series.points.is_empty())) {
                let _ = write!(html, "<li>{}{}</li>", swatch(series, Style::Embedded), escape(&series.name));
            }
        }
        html + "</ul>"
    }
}

/// Returns a name with a hyphen in place of each run of characters that are neither letters, digits nor `.+=`.
pub fn file_name(name: &str) -> String {
    let kept = name.split(|c: char| !(c.is_alphanumeric() || ".+=".contains(c)));
    kept.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// Returns a chart with its legend as HTML, for a page whose figures do not share their series: a series that the reader
/// hides is hidden in this chart alone.
pub fn chart_html(chart: &Chart) -> String {
    let drawing = Drawing::Chart(chart.clone());
    let legend = if chart.series.len() > 1 { legend(&drawing) } else { String::new() };
    format!("<div data-scope=\"\">{legend}{}</div>", drawing.svg())
}

impl Drawing {
    /// Returns whether the reader has to choose the drawing before it is shown.
    fn is_hidden(&self) -> bool {
        matches!(self, Drawing::Chart(chart) if !chart.series.is_empty() && chart.series.iter().all(|one| one.is_hidden))
    }

    /// Returns the drawing as a file of SVG for a column of a paper. Series that the reader has to choose are left out.
    pub fn column(&self) -> String {
        match self {
            Drawing::Chart(chart) => {
                let mut chart = chart.clone();
                chart.series.retain(|series| !series.is_hidden);
                chart.narrow().svg(Style::Column)
            }
            Drawing::Bars(chart) => chart.narrow().svg(Style::Column),
        }
    }

    /// Returns the drawing as SVG, once for broad and once for narrow screens. The style sheet shows one of them. A
    /// drawing that is narrow anyway stands there once.
    fn svg(&self) -> String {
        let (broad, narrow) = match self {
            Drawing::Chart(chart) if chart.size.0 <= NARROW => return chart.svg(Style::Embedded),
            Drawing::Chart(chart) => (chart.svg(Style::Embedded), chart.narrow().svg(Style::Embedded)),
            Drawing::Bars(chart) => (chart.svg(Style::Embedded), chart.narrow().svg(Style::Embedded)),
        };
        format!("<div class=\"broad\">{broad}</div><div class=\"narrow\">{narrow}</div>")
    }
}

/// Returns the legend. For series it consists of buttons that hide and show a drive; a script enables them.
fn legend(drawing: &Drawing) -> String {
    let mut html = String::from("<ul class=\"legend\">");
    match drawing {
        Drawing::Chart(chart) => {
            for (index, series) in chart.series.iter().enumerate().filter(|(_, series)| !series.points.is_empty()) {
                let _ = write!(
                    html,
                    "<li><button type=\"button\" data-series=\"{index}\" aria-pressed=\"{}\" disabled>{}{}</button></li>",
                    !series.is_hidden,
                    swatch(series, Style::Embedded),
                    escape(&series.name)
                );
            }
        }
        Drawing::Bars(chart) => {
            for part in &chart.parts {
                let _ = write!(html, "<li>{}{}</li>", chart.swatch(part, Style::Embedded), escape(&part.name));
            }
        }
    }
    html + "</ul>"
}
