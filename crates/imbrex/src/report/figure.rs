//! A figure of the page: what it shows, and how its drawings stand.

use std::fmt::Write as _;

use crate::chart::{BarChart, Chart, Style, escape, swatch};

/// What a pane holds.
pub enum Drawing {
    /// Series over axes.
    Chart(Chart),
    /// Bars by cause.
    Bars(BarChart),
}

/// How the panes of a figure stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One at a time, chosen by name.
    Tabs,
    /// All, in a grid.
    Grid,
}

/// One figure: a heading, a legend, one or several drawings, a caption.
pub struct Figure {
    /// Its name in the page, which no other has.
    pub id: &'static str,
    /// The heading.
    pub title: &'static str,
    /// What stands below, as HTML.
    pub caption: String,
    /// How the panes stand.
    pub layout: Layout,
    /// Whether it takes the whole width.
    pub is_wide: bool,
    /// Name and drawing.
    pub panes: Vec<(String, Drawing)>,
}

impl Figure {
    /// Itself, if a pane has something to show.
    #[must_use]
    pub fn if_any(self) -> Option<Figure> {
        let is_any = self.panes.iter().any(|(_, drawing)| match drawing {
            Drawing::Chart(chart) => !chart.is_empty(),
            Drawing::Bars(_) => true,
        });
        is_any.then_some(self)
    }

    /// The figure as HTML.
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

    /// Panes that are chosen by radio buttons before them, which works without scripts.
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

/// The legend: buttons that hide and show a drive, dead until a script brings them to life.
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
