//! Errors in the description of a workload: place, problem and remedy.
//!
//! Invariants:
//! 1. Every error names its place: a character of the text, a line of the file, a phase, or the workload as a whole.
//! 2. Every error has a remedy that the user can type.

use std::fmt;

/// The place of an error in the description of a workload, in words or in a TOML file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WordPlace {
    /// A character of the words on the command line.
    Character {
        /// Number of the phase, counted from 1.
        phase: usize,
        /// Number of the character, counted from 1.
        character: usize,
    },
    /// A line and column of a TOML file, counted from 1.
    Line {
        /// Number of the line.
        line: usize,
        /// Number of the column.
        column: usize,
    },
    /// A whole phase, by its number, counted from 1.
    Phase(usize),
    /// The whole workload.
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

/// The error for a workload that is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {problem}; {remedy}")]
pub struct WorkloadError {
    /// Place of the error.
    pub place: WordPlace,
    /// Description of the problem.
    pub problem: String,
    /// Action that solves the problem.
    pub remedy: String,
}

/// A problem and its remedy, without a place: the error of functions that parse single values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct WordError {
    pub problem: String,
    pub remedy: String,
}

impl WordError {
    pub(super) fn new(problem: impl Into<String>, remedy: impl Into<String>) -> WordError {
        WordError { problem: problem.into(), remedy: remedy.into() }
    }

    pub(super) fn at(self, place: WordPlace) -> WorkloadError {
        WorkloadError { place, problem: self.problem, remedy: self.remedy }
    }
}
