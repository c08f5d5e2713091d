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
mod experiment;
mod guide;
mod hajkazemi;
mod lab;
mod later_drives;
mod page;
mod report;
mod singh;
mod validation;

pub use experiment::Experiment;
pub use page::{as_json, as_text, write};
pub use report::{Claim, ClaimKind, Report, Table};

use imbrex::Failure;

/// Every experiment.
pub fn all() -> Vec<&'static Experiment> {
    [cassuto::ALL, aghayev::ALL, hajkazemi::ALL, singh::ALL, later_drives::ALL, validation::ALL, costs::ALL].concat()
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
