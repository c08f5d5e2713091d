//! Experiments that repeat the tables and figures of the papers and set our numbers beside the paper's. Each
//! experiment has one file and one line in [`all`].
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
//! Every claim has a [`ClaimKind`]. Three kinds count, because they test the code: *derived*, *predicted* and *shape*.
//! The reports also show, without counting them, claims whose numbers were *fitted* to the paper or hold *by
//! construction* (`sources`).
//!
//! The experiments of `costs`, `validation` and `lab` come from no paper: they make the tables of three pages of the
//! documentation ([`guide`]).

mod aghayev;
mod cassuto;
mod costs;
mod experiment;
mod guide;
mod hajkazemi;
mod index;
mod jin;
mod lab;
mod later_drives;
mod linux;
mod over_seeds;
mod page;
mod proving_ground;
mod replication;
mod report;
mod results;
mod singh;
mod sources;
mod validation;

pub use experiment::Experiment;
pub use hajkazemi::Traces;
pub use page::{as_json, as_text, kept, page, refuse_foreign_results, write};
pub(crate) use replication::Replication;
pub use report::{Claim, ClaimKind, Figure, Report, Table, Verdict};
pub use results::Results;

use imbrex::Failure;
use imbrex_units::names::suggestion;

/// Returns all experiments, paper by paper, in the order in which they run.
pub fn all() -> Vec<&'static Experiment> {
    [
        cassuto::ALL,
        singh::ALL,
        jin::ALL,
        aghayev::ALL,
        hajkazemi::ALL,
        later_drives::ALL,
        validation::ALL,
        costs::ALL,
        proving_ground::ALL,
    ]
    .concat()
}

/// A part of an experiment that runs in a guest of the lab: takes words, and returns its result as JSON.
type InGuest = fn(&[&str]) -> Result<String, Failure>;

/// Runs the part of the experiment `name` that runs in a guest of the lab, and returns its result as JSON. The
/// experiment itself calls this, with words of its own, separated by commas.
///
/// # Errors
///
/// The experiment has no such part, the words are not those that it expects, or the part fails.
pub fn in_guest(name: &str, words: &str) -> Result<String, Failure> {
    let part = jin::IN_GUEST.iter().find(|(experiment, _)| *experiment == name);
    let (_, part) = part.ok_or_else(|| Failure::usage(format!("no part of {name} runs in a guest")))?;
    part(&words.split(',').collect::<Vec<_>>())
}

/// Returns the experiment called `word` (`cassuto/fig12`), or all experiments of the paper `word` (`cassuto`), in the
/// order in which they run. Returns all experiments for `None`.
///
/// # Errors
///
/// No experiment and no paper has that name.
pub fn choose(word: Option<&str>) -> Result<Vec<&'static Experiment>, Failure> {
    let Some(word) = word else { return Ok(all()) };
    let prefix = format!("{word}/");
    let chosen: Vec<_> = all()
        .into_iter()
        .filter(|experiment| experiment.name == word || experiment.name.starts_with(&prefix))
        .collect();
    if chosen.is_empty() {
        let meant = suggestion(word, all().iter().map(|experiment| experiment.name));
        return Err(
            Failure::usage(format!("no experiment is called '{word}'{meant}")).or_try("`imbrex list experiments`")
        );
    }
    Ok(chosen)
}
