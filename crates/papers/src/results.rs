//! What an experiment came to, as it is kept, and its section of the page.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::report::{Claim, ClaimKind, Report, Table};
use super::{Experiment, guide};

/// What an experiment came to, as it is kept.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Results {
    /// Its name.
    pub experiment: String,
    /// What it shows.
    pub title: String,
    /// How it was run.
    pub method: String,
    /// The claims.
    pub claims: Vec<Claim>,
    /// Measurements.
    pub tables: Vec<Table>,
    /// Files of its figures.
    pub figures: Vec<String>,
    /// What else is to be said.
    pub remarks: Vec<String>,
}

impl Results {
    /// Of a report.
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

    /// Its section of the page.
    pub fn section(&self) -> String {
        let mut text = format!("## {}: {}\n\n{}\n", self.experiment, self.title, self.method);
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
