//! The papers' tables and figures as experiments, ours beside theirs. One experiment a file, one line in [`all`].
//!
//! ```
//! let progress = imbrex::Progress::silent();
//! for experiment in imbrex_papers::choose(Some("cassuto/definition4"))? {
//!     let report = experiment.report(&progress)?;
//!     println!("{}", imbrex_papers::as_text(experiment, &report));
//! }
//! # Ok::<(), imbrex::Failure>(())
//! ```
//!
//! Every claim has a [`ClaimKind`], and kinds are never mixed up: what counts (*derived*, *predicted*, *shape*) says something of
//! the code; what was *fitted* to the paper or is so *by construction* is shown and not counted (`sources`).
//!
//! The experiments of `costs` and `validation` are no paper's: they make the tables of pages of ours ([`guide`]).

mod aghayev;
mod cassuto;
mod costs;
mod experiment;
mod guest;
mod guide;
mod hajkazemi;
mod index;
mod jin;
mod kernel_fs;
mod lab;
mod later_drives;
mod page;
mod report;
mod results;
mod served;
mod singh;
mod sources;
mod validation;

pub use experiment::Experiment;
pub use page::{as_json, as_text, kept, page, write};
pub use report::{Claim, ClaimKind, Report, Table, Verdict};
pub use results::Results;

use imbrex::Failure;

/// Every experiment.
pub fn all() -> Vec<&'static Experiment> {
    [cassuto::ALL, singh::ALL, jin::ALL, aghayev::ALL, hajkazemi::ALL, later_drives::ALL, validation::ALL, costs::ALL]
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
