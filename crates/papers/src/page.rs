//! The reproduction page: one section an experiment, written only for those that ran; the others keep theirs.
//!
//! `docs/reproduction.md` is put together from `docs/reproduction/PAPER-FIGURE.md`, one file an experiment, so that
//! running one figure renews its section alone.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use super::{all, guide, Claim, ClaimKind, Experiment, Report};
use imbrex::error::Failure;
use imbrex::files::replace;

/// A report as it is printed.
pub fn as_text(experiment: &Experiment, report: &Report) -> String {
    let mut text = format!("\n{}: {}\n", experiment.name, experiment.title);
    for claim in &report.claims {
        let _ = writeln!(text, "  [{}] {} ({})", verdict(claim), claim.claim, kind(claim.kind));
        let _ = writeln!(text, "      theirs: {}", claim.theirs);
        let _ = writeln!(text, "      ours:   {}", claim.ours);
    }
    for table in &report.tables {
        text.push_str(&guide::as_text(table));
    }
    for remark in &report.remarks {
        let _ = writeln!(text, "  {remark}");
    }
    text.trim_end().to_string()
}

/// Reports as JSON.
pub fn as_json(reports: &[(&Experiment, Report)]) -> Result<String, Failure> {
    let experiments: Vec<_> = reports
        .iter()
        .map(|(experiment, report)| {
            json!({
                "experiment": experiment.name,
                "title": experiment.title,
                "method": report.method,
                "claims": report.claims,
                "tables": report.tables,
                "remarks": report.remarks,
            })
        })
        .collect();
    serde_json::to_string_pretty(&json!({"schema": "imbrex.reproduce/1", "experiments": experiments}))
        .map_err(Failure::failed)
}

/// Writes the section of `report`, its figures, and the page made of all sections there are, into `folder`.
pub fn write(folder: &Path, experiment: &Experiment, report: &Report) -> Result<(), Failure> {
    let sections = folder.join("reproduction");
    let figures = folder.join("figures");
    for made in [&sections, &figures] {
        std::fs::create_dir_all(made)
            .map_err(|error| Failure::failed(format!("cannot make the folder {}: {error}", made.display())))?;
    }
    for (name, svg) in &report.figures {
        replace(&figures.join(name), svg.as_bytes())?;
    }
    if guide::has(experiment) {
        guide::renew(folder, experiment, report)?;
    } else {
        replace(&sections.join(section_file(experiment)), section(experiment, report).as_bytes())?;
    }
    let mut page = String::from(HEADER);
    for experiment in all() {
        let file = sections.join(section_file(experiment));
        if let Ok(text) = std::fs::read_to_string(&file) {
            page.push('\n');
            page.push_str(&text.replace("](../figures/", "](figures/"));
        }
    }
    Ok(replace(&folder.join("reproduction.md"), page.as_bytes())?)
}

const HEADER: &str = "# Reproduction\n\nThe papers' tables and figures, ours beside theirs, written by `imbrex reproduce`. \
*Exact* claims follow from the algorithm and must be equal or within the stated tolerance. *Shape* claims depend on a drive or \
workload that the paper does not give: the ordering, the cliff, the side of a ratio must hold. What is *not reproducible* needs \
their trace or hardware; the closest thing is run instead.\n";

fn section_file(experiment: &Experiment) -> String {
    format!("{}.md", experiment.name.replace('/', "-"))
}

fn section(experiment: &Experiment, report: &Report) -> String {
    let mut text = format!("## {}: {}\n\n{}\n\n", experiment.name, experiment.title, report.method);
    text.push_str("| claim | kind | theirs | ours | holds |\n|---|---|---|---|---|\n");
    for claim in &report.claims {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            claim.claim,
            kind(claim.kind),
            claim.theirs,
            claim.ours,
            verdict(claim)
        );
    }
    for (name, _) in &report.figures {
        let _ = write!(text, "\n![{}](../figures/{name})\n", experiment.title);
    }
    for remark in &report.remarks {
        let _ = write!(text, "\n{remark}\n");
    }
    text
}

fn kind(kind: ClaimKind) -> &'static str {
    match kind {
        ClaimKind::Exact => "exact",
        ClaimKind::Shape => "shape",
        ClaimKind::NotReproducible => "not reproducible",
    }
}

fn verdict(claim: &Claim) -> &'static str {
    match claim.holds {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not judged",
    }
}
