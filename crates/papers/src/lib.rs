//! The papers' tables and figures as experiments, ours beside theirs. One experiment a file, one line in [`all`].
//!
//! ```
//! let progress = imbrex::Progress::silent();
//! for experiment in imbrex_papers::choose(Some("cassuto/definition4"))? {
//!     let report = (experiment.run)(&progress)?;
//!     println!("{}", imbrex_papers::as_text(experiment, &report));
//! }
//! # Ok::<(), imbrex::Failure>(())
//! ```
//!
//! Every claim has one of three kinds, never mixed up: *exact* (follows from the algorithm), *shape* (depends on a drive
//! or workload that the paper does not give: the ordering, the cliff, the side of a ratio must hold), *not reproducible*
//! (needs their trace or hardware: said plainly, with the closest thing run instead).
//!
//! The experiments of `costs` and `validation` are no paper's: they make the tables of pages of ours ([`guide`]).

mod aghayev;
mod cassuto;
mod costs;
mod guide;
mod hajkazemi;
mod lab;
mod later_drives;
mod page;
mod validation;

pub use page::{as_json, as_text, write};

use imbrex::{Failure, Progress};

/// An experiment of a paper.
pub struct Experiment {
    /// `paper/figure`.
    pub name: &'static str,
    /// What it shows, in one line.
    pub title: &'static str,
    /// Runs it.
    pub run: fn(&Progress) -> Result<Report, Failure>,
}

/// What sort of claim it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// Equal, or within the stated tolerance.
    Exact,
    /// The ordering, the cliff, the side of a ratio.
    Shape,
    /// Needs what the paper had and we have not.
    NotReproducible,
}

/// One claim: theirs beside ours.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Claim {
    /// What is claimed.
    pub claim: String,
    /// What sort of claim it is.
    pub kind: ClaimKind,
    /// The paper's figure.
    pub theirs: String,
    /// Ours.
    pub ours: String,
    /// Whether it holds; `None` for what cannot be judged.
    pub holds: Option<bool>,
}

/// Measurements, as text.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Table {
    /// What is measured.
    pub heading: String,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// Cells, row by row.
    pub rows: Vec<Vec<String>>,
}

/// What an experiment came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How it was run: what a reader needs to judge it.
    pub method: String,
    /// The claims.
    pub claims: Vec<Claim>,
    /// Measurements that no paper has.
    pub tables: Vec<Table>,
    /// (file name, SVG) of the figures.
    pub figures: Vec<(String, String)>,
    /// What else is to be said: deviations, reasons.
    pub remarks: Vec<String>,
}

impl Report {
    /// Adds a claim.
    pub fn claim(&mut self, kind: ClaimKind, claim: &str, theirs: &str, ours: impl Into<String>, holds: Option<bool>) {
        self.claims.push(Claim { claim: claim.into(), kind, theirs: theirs.into(), ours: ours.into(), holds });
    }
}

/// Every experiment.
pub fn all() -> Vec<&'static Experiment> {
    let papers = [cassuto::ALL.as_slice(), aghayev::ALL.as_slice(), hajkazemi::ALL.as_slice()];
    [papers.concat().as_slice(), later_drives::ALL.as_slice(), validation::ALL.as_slice(), costs::ALL.as_slice()]
        .concat()
}

/// The experiments that `word` names: one, all of a paper, or without a word all there are.
pub fn choose(word: Option<&str>) -> Result<Vec<&'static Experiment>, Failure> {
    let Some(word) = word else { return Ok(all()) };
    let prefix = format!("{word}/");
    let chosen: Vec<_> = all()
        .into_iter()
        .filter(|experiment| experiment.name == word || experiment.name.starts_with(&prefix))
        .collect();
    if chosen.is_empty() {
        return Err(Failure::usage(format!("no experiment is called '{word}'")).or_try("`imbrex list experiments`"));
    }
    Ok(chosen)
}
