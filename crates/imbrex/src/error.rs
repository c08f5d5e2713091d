//! Failures: the error, its place, and a remedy.

use std::fmt;

/// Category of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// An operation on a file, a drive or another resource failed.
    Failed,
    /// The request is wrong: an unknown name, or an option or value that is invalid.
    Usage,
    /// The work was interrupted before it had kept any result.
    Interrupted,
    /// A file that the work reads was changed meanwhile.
    InputChanged,
}

/// A failure, with its remedy if there is one. Its text is for people.
#[derive(Debug)]
pub struct Failure {
    /// Category of the failure.
    pub kind: FailureKind,
    /// The error and its place.
    pub message: String,
    /// Suggestion for the user, if there is one.
    pub remedy: Option<String>,
}

impl Failure {
    /// Creates a failure of an operation, as opposed to a wrong command line.
    pub fn failed(message: impl fmt::Display) -> Failure {
        Failure { kind: FailureKind::Failed, message: message.to_string(), remedy: None }
    }

    /// Creates a failure for a wrong request: an unknown name, or an option or value that is invalid.
    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure { kind: FailureKind::Usage, message: message.to_string(), remedy: None }
    }

    /// Creates the failure for work that was interrupted before it had kept any result.
    pub fn interrupted() -> Failure {
        Failure { kind: FailureKind::Interrupted, ..Failure::failed("interrupted; nothing was written") }
    }

    /// Creates the failure for work whose input `name` was changed meanwhile.
    pub fn changed(name: &str) -> Failure {
        let message = format!("{name} was changed while it was in use: results of both contents would be mixed");
        Failure { kind: FailureKind::InputChanged, ..Failure::failed(message) }
            .or_try("the same command again, with a copy of the file if another program writes to it")
    }

    /// Adds a remedy to the failure.
    pub fn or_try(mut self, remedy: impl fmt::Display) -> Failure {
        self.remedy = Some(remedy.to_string());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        match &self.remedy {
            Some(remedy) => write!(f, "\n  try: {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl From<imbrex_trace::TraceError> for Failure {
    fn from(error: imbrex_trace::TraceError) -> Failure {
        if error.is_usage { Failure::usage(error) } else { Failure::failed(error) }
    }
}

impl From<imbrex_sim::DriveError> for Failure {
    fn from(error: imbrex_sim::DriveError) -> Failure {
        Failure::usage(error)
    }
}

impl From<imbrex_device::DeviceError> for Failure {
    fn from(error: imbrex_device::DeviceError) -> Failure {
        Failure::failed(error)
    }
}

impl From<crate::files::FilesError> for Failure {
    fn from(error: crate::files::FilesError) -> Failure {
        Failure::failed(error)
    }
}
