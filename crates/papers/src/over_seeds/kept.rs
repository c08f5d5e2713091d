//! Kept reports of replications: one JSON file for each replication of an experiment, in `reproduction/seeds`.
//!
//! Invariants:
//! 1. A file under its name is complete, since it is written as a whole ([`imbrex::files::replace`]).
//! 2. A file is used only if program, experiment and number of the replication in it are those asked for.

use std::path::{Path, PathBuf};

use imbrex::Failure;
use imbrex::files::replace;
use serde::{Deserialize, Serialize};

use crate::Report;

/// A kept report with its key.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    /// Name of the experiment: `paper/figure`. First, so that the beginning of a file tells that it is ours.
    experiment: String,
    /// SHA-256, in hexadecimal, of the program that ran the experiment.
    program: String,
    /// Number of the replication, counted from 0.
    replication: u64,
    /// Whether the experiment asked for a seed.
    pub is_seeded: bool,
    /// Report of the replication.
    pub report: Report,
}

/// The file of a replication, and the key that its contents must have.
pub(super) struct Place {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of the replication, counted from 0.
    pub number: u64,
    program: String,
    experiment: String,
}

/// Result of a search for a kept report.
pub(super) enum Found {
    Usable(Box<Kept>),
    Nothing,
    OfAnotherProgram,
    /// The file cannot be read, is no kept report, or is one of another experiment or replication.
    Damaged,
}

impl Place {
    /// Returns the place of replication `number` of `experiment`, as run by `program`, below `folder`.
    pub(super) fn new(folder: &Path, experiment: &str, program: &str, number: u64) -> Place {
        let name = format!("{}-{number}.json", experiment.replace('/', "-"));
        let path = folder.join("reproduction").join("seeds").join(name);
        Place { path, number, program: program.into(), experiment: experiment.into() }
    }

    /// Returns the kept report, or the reason why there is none.
    pub(super) fn find(&self) -> Found {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Found::Nothing,
            Err(_) => return Found::Damaged,
        };
        match serde_json::from_str::<Kept>(&text) {
            Ok(kept) if (&kept.experiment, kept.replication) != (&self.experiment, self.number) => Found::Damaged,
            Ok(kept) if kept.program != self.program => Found::OfAnotherProgram,
            Ok(kept) => Found::Usable(Box::new(kept)),
            Err(_) => Found::Damaged,
        }
    }

    /// Writes a report to the file and returns it with its key. Missing folders are created.
    pub(super) fn keep(&self, report: Report, is_seeded: bool) -> Result<Kept, Failure> {
        let kept = Kept {
            program: self.program.clone(),
            experiment: self.experiment.clone(),
            replication: self.number,
            is_seeded,
            report,
        };
        let folder = self.path.parent().expect("the path has a folder");
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::failed(format!("cannot make the folder {}: {error}", folder.display())))?;
        let text = serde_json::to_string_pretty(&kept).map_err(Failure::failed)?;
        replace(&self.path, format!("{text}\n").as_bytes())?;
        Ok(kept)
    }
}
