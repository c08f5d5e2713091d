//! Errors in the description of a workload: place, problem and remedy.
//!
//! Invariants:
//! 1. Every error names its place: a character of the text, a line of the file, a phase, or the workload as a whole.
//! 2. Every error has a remedy that the user can type.

use std::fmt;

/// The place of an error in the description of a workload, which is a text in fio's words or a TOML file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WordPlace {
    /// A character of a description in fio's words.
    Character {
        /// Number of the phase that holds the character, counted from 1.
        phase: usize,
        /// Position of the character in the whole text, counted from 1.
        character: usize,
    },
    /// A position in a TOML file.
    Line {
        /// Number of the line, counted from 1.
        line: usize,
        /// Number of the character in the line, counted from 1.
        column: usize,
    },
    /// A phase as a whole: its number among the phases, counted from 1.
    Phase(usize),
    /// The description of the workload as a whole.
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

/// The error for a workload whose description is wrong, or that does not fit on the drive.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {problem}; {remedy}")]
pub struct WorkloadError {
    /// Place of the error in the description.
    pub place: WordPlace,
    /// Description of the problem, for the user.
    pub problem: String,
    /// Instruction to the user that solves the problem, such as `add runtime=…`.
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
