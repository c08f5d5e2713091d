//! What is wrong with a workload, where, and what to write instead.
//!
//! Invariants:
//! 1. Every error names its place: a character of the text, a line of the file, a phase, or the workload as a whole.
//! 2. Every error carries a remedy the user can type.

use std::fmt;

/// Where a workload is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WordPlace {
    /// A character of the words on the command line, counted from 1, and the phase it stands in, counted from 1.
    Character {
        /// The phase.
        phase: usize,
        /// The character.
        character: usize,
    },
    /// A line and column of a TOML file, counted from 1.
    Line {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// A phase as a whole, counted from 1.
    Phase(usize),
    /// The workload as a whole.
    Workload,
}

impl fmt::Display for WordPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WordPlace::Character { phase, character } => write!(f, "phase {phase}, character {character}"),
            WordPlace::Line { line, column } => write!(f, "line {line}, column {column}"),
            WordPlace::Phase(phase) => write!(f, "phase {phase}"),
            WordPlace::Workload => write!(f, "workload"),
        }
    }
}

/// A refused workload.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {problem}; {remedy}")]
pub struct WorkloadError {
    /// Where.
    pub place: WordPlace,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

/// A problem and its remedy before the place is known: what the readers of single values return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Complaint {
    pub problem: String,
    pub remedy: String,
}

impl Complaint {
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Complaint {
        Complaint { problem: problem.into(), remedy: remedy.into() }
    }

    pub fn at(self, place: WordPlace) -> WorkloadError {
        WorkloadError { place, problem: self.problem, remedy: self.remedy }
    }
}
