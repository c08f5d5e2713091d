//! A figure of the page: its drawings and their layout.

use std::fmt::Write as _;

use crate::chart::{BarChart, Chart, Style, escape, swatch};

/// Contents of a pane.
pub enum Drawing {
    /// Series over two axes.
    Chart(Chart),
    /// Stacked or grouped bars.
    Bars(BarChart),
}

/// Layout of the panes of a figure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One pane at a time, selected by name.
    Tabs,
    /// All panes, in a grid.
    Grid,
}

/// One figure: a heading, a legend, one or several drawings, a caption.
pub struct Figure {
    /// Id of the figure, unique in the page.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// Caption below the drawings, as HTML.
    pub caption: String,
    /// Layout of the panes.
    pub layout: Layout,
    /// Whether the figure takes the whole width of the page.
    pub is_wide: bool,
    /// Name and drawing of each pane.
    pub panes: Vec<(String, Drawing)>,
}

impl Figure {
    /// Returns the figure, or `None` if no pane has data.
    #[must_use]
    pub fn if_any(self) -> Option<Figure> {
        let is_any = self.panes.iter().any(|(_, drawing)| match drawing {
            Drawing::Chart(chart) => !chart.is_empty(),
            Drawing::Bars(_) => true,
        });
        is_any.then_some(self)
    }

    /// Returns the figure as HTML.
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
                     <label for=\"{0}-tab-{index}\">{name}</label>",
                    self.id
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
        let mut html = String::from("<div class=\"grid\">");
        for (index, (name, drawing)) in self.panes.iter().enumerate() {
            let _ = write!(
                html,
                "<div class=\"cell\" data-drive=\"{index}\"><p class=\"name\">{}</p>{}</div>",
                escape(name),
                drawing.svg()
            );
        }
        html + "</div>"
    }
}

impl Drawing {
    fn svg(&self) -> String {
        match self {
            Drawing::Chart(chart) => chart.svg(Style::Embedded),
            Drawing::Bars(chart) => chart.svg(Style::Embedded),
        }
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
                    "<li><button type=\"button\" data-series=\"{index}\" aria-pressed=\"true\" disabled>{}{}</button></li>",
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
