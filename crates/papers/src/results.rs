//! The results of an experiment as a JSON file keeps them, and the experiment's page.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::report::{Claim, ClaimKind, Report, Table};
use super::{Experiment, guide};

/// Results of an experiment, as a JSON file in `docs/reproduction` keeps them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Results {
    /// Name of the experiment.
    pub experiment: String,
    /// Title of the experiment.
    pub title: String,
    /// How the experiment was run.
    pub method: String,
    /// The claims.
    pub claims: Vec<Claim>,
    /// Measurements.
    pub tables: Vec<Table>,
    /// File names of the figures.
    pub figures: Vec<String>,
    /// Further remarks.
    pub remarks: Vec<String>,
}

impl Results {
    /// Returns the results to keep of a report: its contents, with the names of the figures in place of their SVG.
    pub fn of(experiment: &Experiment, report: &Report) -> Results {
        Results {
            experiment: experiment.name.into(),
            title: experiment.title.into(),
            method: report.method.clone(),
            claims: report.claims.clone(),
            tables: report.tables.clone(),
            figures: report.figures.iter().map(|figure| figure.0.clone()).collect(),
            remarks: report.remarks.clone(),
        }
    }

    /// Returns the page of the experiment.
    pub fn page(&self) -> String {
        let mut text = format!("# {}: {}\n\n{}\n", self.experiment, self.title, self.method);
        if !self.claims.is_empty() {
            text.push_str("\n| claim | kind | theirs | ours | holds |\n|---|---|---|---|---|\n");
        }
        for claim in &self.claims {
            let verdict = if claim.kind.is_counted() || claim.kind == ClaimKind::NotReproducible {
                claim.verdict.name().to_string()
            } else {
                format!("({})", claim.verdict.name())
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
