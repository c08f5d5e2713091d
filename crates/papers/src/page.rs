//! The reproduction page: one section an experiment, written only for those that ran; the others keep theirs.
//!
//! `docs/reproduction.md` is put together from `docs/reproduction/PAPER-FIGURE.json`, what each experiment came to, so that
//! running one figure renews its section alone. The sections stand by themselves beside, as `PAPER-FIGURE.md`.
//!
//! Invariants:
//! 1. A section is a function of its results: page and results never differ (by test).

use std::fmt::Write as _;
use std::path::Path;

use super::report::Report;
use super::results::Results;
use super::{Experiment, all, guide, index};
use imbrex::error::Failure;
use imbrex::files::ours::refuse_foreign;
use imbrex::files::replace;

/// A report as it is printed.
pub fn as_text(experiment: &Experiment, report: &Report) -> String {
    let mut text = format!("\n{}: {}\n", experiment.name, experiment.title);
    for claim in &report.claims {
        let _ = writeln!(text, "  [{}] {} ({})", claim.verdict.name(), claim.claim, claim.kind.name());
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
    let experiments: Vec<_> = reports.iter().map(|(experiment, report)| Results::of(experiment, report)).collect();
    let document = serde_json::json!({"schema": "imbrex.reproduce/2", "experiments": experiments});
    serde_json::to_string_pretty(&document).map_err(Failure::failed)
}

/// Writes the section of `report`, its figures, and the page made of all sections there are, into `folder`.
pub fn write(folder: &Path, experiment: &Experiment, report: &Report) -> Result<(), Failure> {
    let sections = folder.join("reproduction");
    let figures = folder.join("figures");
    refuse_foreign(folder, &["reproduction.md"])?;
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
        let results = Results::of(experiment, report);
        let json = serde_json::to_string_pretty(&results).map_err(Failure::failed)?;
        replace(&sections.join(file(experiment, "json")), format!("{json}\n").as_bytes())?;
        replace(&sections.join(file(experiment, "md")), results.section().as_bytes())?;
    }
    Ok(replace(&folder.join("reproduction.md"), page(&kept(folder)?).as_bytes())?)
}

/// The results that lie in `folder`, in the order of the experiments.
pub fn kept(folder: &Path) -> Result<Vec<Results>, Failure> {
    let mut kept = Vec::new();
    for experiment in all() {
        let path = folder.join("reproduction").join(file(experiment, "json"));
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        kept.push(
            serde_json::from_str(&text).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?,
        );
    }
    Ok(kept)
}

/// The page made of `results`.
pub fn page(results: &[Results]) -> String {
    let mut page = String::from(HEADER);
    page.push_str(&index::counts(results));
    page.push_str(&index::papers(results));
    for results in results {
        page.push('\n');
        page.push_str(&results.section().replace("](../figures/", "](figures/"));
    }
    page
}

const HEADER: &str = "# Reproduction\n\nThe papers' tables and figures, ours beside theirs, written by `imbrex reproduce`. \
What a claim is:\n\n\
- *derived*: it follows from the algorithm and the code under test computes it: equal, or within the stated tolerance;\n\
- *predicted*: the paper measured it, and nothing that feeds our run was set by it or by a number that determines it;\n\
- *shape*: drive or workload are not given, and the sentence of the paper (ordering, cliff, side of a ratio, factor) must \
hold as it is written;\n\
- *fitted*: a parameter of the run was set by this number, or by one that determines it: shown, not counted;\n\
- *by construction*: the workload was made to it: shown, not counted;\n\
- *not reproducible*: it needs their trace or hardware; the closest thing is run instead.\n\n\
A claim about time on a stand-in holds only where it holds with arrivals from each of four sources \
([workloads](workloads.md)); else it *hangs on arrival*. Where the conventional drive that the paper compares with is not \
what the paper's was, the row says *baseline not met*. What stands in brackets under *theirs* is how we read the paper's words, or its plots, in numbers. Claims that do not hold are \
explained in [findings](findings.md). \
Results stand beside as `reproduction/PAPER-FIGURE.json`. The stand-ins alone take more than an hour of two cores; where \
`IMBREX_KEPT_RUNS` names a folder, what a run of theirs came to is kept there and not run again.\n";

fn file(experiment: &Experiment, extension: &str) -> String {
    format!("{}.{extension}", experiment.name.replace('/', "-"))
}
