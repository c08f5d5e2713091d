//! The results of an experiment as a JSON file keeps them, and the experiment's page.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::report::{Claim, ClaimKind, Figure, Report, Table};
use super::{Experiment, guide};

/// The results of an experiment in the form in which a JSON file in `docs/reproduction` keeps them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Results {
    /// Name of the experiment: `paper/figure`, such as `cassuto/fig12`.
    pub experiment: String,
    /// Title of the experiment in one line: its result or subject.
    pub title: String,
    /// Method of the experiment: the facts that a reader needs to judge the claims, in Markdown.
    pub method: String,
    /// The claims of the paper that the experiment judges, with their verdicts, in the order of the report.
    pub claims: Vec<Claim>,
    /// Tables of measurements of our run that are compared with no paper.
    pub tables: Vec<Table>,
    /// File names of the figures (SVG), which lie in the folder `figures` beside the folder of the results.
    pub figures: Vec<String>,
    /// Further remarks, one paragraph each, such as deviations from the paper and reasons for differences.
    pub remarks: Vec<String>,
    /// Number of seeds with which the experiment ran, if there are several; otherwise `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<u32>,
}

impl Results {
    /// Returns the contents of `report`, the report of `experiment`, for keeping. File names stand in place of the
    /// drawings of the figures.
    pub fn of(experiment: &Experiment, report: &Report) -> Results {
        Results {
            experiment: experiment.name.into(),
            title: experiment.title.into(),
            method: report.method.clone(),
            claims: report.claims.clone(),
            tables: report.tables.clone(),
            figures: report.figures.iter().map(Figure::file_name).collect(),
            remarks: report.remarks.clone(),
            seeds: report.seeds,
        }
    }

    /// Returns the page of the experiment in Markdown: title, method, claims, figures, tables and remarks.
    pub fn page(&self) -> String {
        let mut text = format!("# {}: {}\n\n{}\n", self.experiment, self.title, self.method);
        if !self.claims.is_empty() {
            text.push_str("\n| claim | kind | theirs | ours | holds |\n|---|---|---|---|---|\n");
        }
        for claim in &self.claims {
            let verdict = if claim.kind.is_counted() || claim.kind == ClaimKind::NotReproducible {
                claim.verdict_text()
            } else {
                format!("({})", claim.verdict_text())
            };
            let kind = match &claim.fitted_by {
                Some(by) => format!("{}: {by}", claim.kind.name()),
                None => claim.kind.name().to_string(),
            };
            let _ = writeln!(text, "| {} | {kind} | {} | {} | {verdict} |", claim.claim, claim.theirs, claim.ours);
        }
        for name in &self.figures {
            let _ = write!(text, "\n![{}](../figures/{name})\n", self.title);
        }
        for table in &self.tables {
            text.push_str(&guide::as_markdown_table(table));
        }
        for remark in &self.remarks {
            let _ = write!(text, "\n{remark}\n");
        }
        text
    }
}
