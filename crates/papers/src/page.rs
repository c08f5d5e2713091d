//! The pages of the reproduction: one page for each experiment, and an index of all.
//!
//! A run of an experiment writes its results to `docs/reproduction/PAPER-FIGURE.json` and its page to
//! `PAPER-FIGURE.md`. The index, `docs/reproduction.md`, is made from the JSON files of all experiments. So the run of
//! one experiment changes only its own page and the index.
//!
//! Invariants:
//! 1. A page depends only on the JSON results beside it (by test).

use std::fmt::Write as _;
use std::path::Path;

use super::report::Report;
use super::results::Results;
use super::{Experiment, all, guide, index};
use imbrex::error::Failure;
use imbrex::files::ours::{refuse_foreign, refuse_unless_begins, refuse_unmarked};
use imbrex::files::replace;

/// Returns the report of an experiment as text for the terminal: the claims, with the paper's and our numbers, the
/// tables and the remarks. The method and the figures are left out.
pub fn as_text(experiment: &Experiment, report: &Report) -> String {
    let mut text = format!("\n{}: {}\n", experiment.name, experiment.title);
    for claim in &report.claims {
        let _ = writeln!(text, "  [{}] {} ({})", claim.verdict_text(), claim.claim, claim.kind.name());
        let _ = writeln!(text, "      theirs: {}", claim.theirs);
        let _ = writeln!(text, "      ours:   {}", claim.ours);
        if claim.depends_on_seed() {
            let verdicts: Vec<&str> = claim.verdicts.iter().map(|verdict| verdict.name()).collect();
            let _ = writeln!(text, "      by seed: {}", verdicts.join(", "));
        }
    }
    for table in &report.tables {
        text.push_str(&guide::as_text(table));
    }
    for remark in &report.remarks {
        let _ = writeln!(text, "  {remark}");
    }
    text.trim_end().to_string()
}

/// Returns experiments with their reports as one JSON document of the format `imbrex.reproduce/2`, with the file names
/// of the figures but without their drawings.
///
/// # Errors
///
/// A report cannot be converted to JSON.
pub fn as_json(reports: &[(&Experiment, Report)]) -> Result<String, Failure> {
    let experiments: Vec<_> = reports.iter().map(|(experiment, report)| Results::of(experiment, report)).collect();
    let document = serde_json::json!({"schema": "imbrex.reproduce/2", "experiments": experiments});
    serde_json::to_string_pretty(&document).map_err(Failure::failed)
}

/// Writes the report of one experiment into `folder`: its page and results in `reproduction/`, its drawings in
/// `figures/`, and the renewed index `reproduction.md` of all kept results. For an experiment that makes tables of a
/// page of the documentation, that page is renewed instead. Missing folders are created.
///
/// # Errors
///
/// A file to be replaced was not written by Imbrex ([`refuse_foreign_results`]), or a file or folder cannot be read or
/// written. All these files are checked before the first is replaced.
pub fn write(folder: &Path, experiment: &Experiment, report: &Report) -> Result<(), Failure> {
    let sections = folder.join("reproduction");
    let figures = folder.join("figures");
    refuse_foreign_results(folder, experiment)?;
    for figure in &report.figures {
        let mark = format!("id=\"{}\"", figure.id());
        refuse_unmarked(&figures.join(figure.file_name()), mark.as_bytes())?;
    }
    for made in [&sections, &figures] {
        std::fs::create_dir_all(made)
            .map_err(|error| Failure::failed(format!("cannot make the folder {}: {error}", made.display())))?;
    }
    for figure in &report.figures {
        replace(&figures.join(figure.file_name()), figure.svg().as_bytes())?;
    }
    if guide::has(experiment) {
        guide::renew(folder, experiment, report)?;
    } else {
        let results = Results::of(experiment, report);
        let json = serde_json::to_string_pretty(&results).map_err(Failure::failed)?;
        replace(&sections.join(file(experiment, "json")), format!("{json}\n").as_bytes())?;
        replace(&sections.join(file(experiment, "md")), results.page().as_bytes())?;
    }
    Ok(replace(&folder.join("reproduction.md"), page(&kept(folder)?).as_bytes())?)
}

/// Checks that the index, the page and the results file of `experiment` in `folder` are missing, or were written by
/// Imbrex, and that the results of all other experiments can be read, since the index is made from them.
///
/// # Errors
///
/// For the first file that another program wrote, or that cannot be read; or if the page of a guide has no marks of the
/// experiment.
pub fn refuse_foreign_results(folder: &Path, experiment: &Experiment) -> Result<(), Failure> {
    refuse_foreign(folder, &["reproduction.md"])?;
    if guide::has(experiment) {
        guide::check(folder, experiment)?;
    } else {
        let place = |ending: &str| folder.join("reproduction").join(file(experiment, ending));
        refuse_unmarked(&place("json"), results_mark(experiment.name).as_bytes())?;
        refuse_unless_begins(&place("md"), format!("# {}: ", experiment.name).as_bytes())?;
    }
    kept(folder).map(drop)
}

/// Returns the text that each JSON file with results of the experiment `name` has.
pub(crate) fn results_mark(name: &str) -> String {
    format!("\"experiment\": \"{name}\"")
}

/// Returns the results that earlier runs kept in the folder `reproduction` of `folder`, in the order in which
/// experiments run. Experiments without a readable results file are left out.
///
/// # Errors
///
/// A results file is not valid.
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

/// Returns the index page of the reproduction in Markdown. The page has an explanation and a table with a row for each
/// paper and a column for each `ClaimKind`. For kinds that count, a cell has the number of claims in `results` that
/// hold, and of all; for other kinds, the number of all. Then follows a table of figures for each paper. Each figure
/// has a link to the page of its experiment, or the reason for which it has none.
pub fn page(results: &[Results]) -> String {
    let mut page = String::from(HEADER);
    page.push_str(&index::counts(results));
    page.push_str(&index::papers(results));
    page
}

const HEADER: &str = "# Reproduction\n\nThis is the index of the papers' tables and figures and our runs of them. `imbrex reproduce` writes \
it, and a page for each experiment of a paper. The kinds of claims are:\n\n\
- *derived*: the number follows from the algorithm, and the code under test computes it: equal, or within the stated tolerance;\n\
- *predicted*: the paper measured the number, and no parameter of our run was set by it or by a number that determines it;\n\
- *shape*: the paper does not give the drive or the workload; its sentence (an order, a cliff, a factor) must hold as written;\n\
- *fitted*: a parameter of our run was set by this number, or by one that determines it: shown, not counted;\n\
- *by construction*: the workload was made to give this number: shown, not counted;\n\
- *not reproducible*: the claim needs the authors' trace or hardware; our run is the closest possible.\n\n\
Imbrex has no traces of the papers: [stand-ins](workloads.md) replace them. A claim about time on a stand-in is judged with \
arrivals from each of four sources. It holds only if it holds with all four; if it holds with some of them, the verdict is *hangs on \
arrival*. The verdict *baseline not met* means that our conventional drive differs from that of the paper with all four. Text in brackets \
under *theirs* is our reading of the paper's words or plots as numbers. \
[Findings](findings.md) explains the claims that do not hold. The [ledger](reproduction/ledger.md) lists every testable sentence of the \
papers, with the claim that judges it or the reason why none does.\n\n\
File systems of Linux (ext4, NILFS2) run in [the lab](lab.md), whose kernel `imbrex lab build` builds once. Without it, the claims that need \
them are not judged.\n\n\
The runs of the stand-ins alone, the synthetic workloads in place of the papers' traces, take more than an hour on two cores. If the \
environment variable `IMBREX_KEPT_RUNS` names a folder, `imbrex reproduce` keeps the results of these runs there and does not repeat the \
runs.\n\n\
The traces of the machines of Hajkazemi 2019 are published as the set `2015_cloudphysics`, as files `w01` to `w106`. If you have files of \
this set, `imbrex reproduce hajkazemi --traces FOLDER --out RESULTS` takes them in place of the stand-ins of the same machines. The name of a \
file begins with the name of the machine and a dot, such as `w106.csv.gz`; the format must be one that \
[`imbrex simulate` reads](traces.md#formats), with the operation of each request. The tables then name the machines whose rows are of traces.\n\n\
## Several seeds\n\n\
Generated workloads and other random choices have a seed. `imbrex reproduce EXPERIMENT --seeds 5` (at most 1,000) runs an experiment with \
five seeds: each random choice has its own seed in the first run, and one more in each further run. An experiment without random choices \
runs once.\n\n\
- A number that differs between the seeds becomes its mean and, after `±`, half of the 95 % interval of the mean (Student's t \
distribution), in claims and in tables.\n\
- A figure that differs between the seeds shows means, and the 95 % intervals as error bars where there is room. If its points or groups \
differ too, or if it shows single observations as dots, it is that of the first seed, and a remark names it.\n\
- A claim that counts has the verdict *depends on the seed* if its verdicts with the seeds differ. It then does not count as one that \
holds.\n\
- The JSON file of the experiment has `seeds`, the number of seeds, and for each claim `verdicts` and `ours_by_seed`, in the order of the \
seeds.\n\
- The report of each run is kept in `reproduction/seeds` of the folder of `--out` as soon as the run ends. A later call of the same \
program finds it there and does not repeat the run.\n";

fn file(experiment: &Experiment, extension: &str) -> String {
    format!("{}.{extension}", experiment.name.replace('/', "-"))
}
