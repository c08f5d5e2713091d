//! Failures: what went wrong, where, and what to do about it.

use std::fmt;

/// Whose fault a failure is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// The world did not play along: a file, a drive.
    Failed,
    /// What was asked for is not known, or makes no sense.
    Usage,
    /// The work was told to stop before anything of it was kept.
    Interrupted,
}

/// A failure, with its remedy where there is one. Its text is for people.
#[derive(Debug)]
pub struct Failure {
    /// Whose fault it is.
    pub kind: FailureKind,
    /// What went wrong, where.
    pub message: String,
    /// What to do, where there is something.
    pub remedy: Option<String>,
}

impl Failure {
    /// A failure of what was to be done, as opposed to a wrong command line.
    pub fn failed(message: impl fmt::Display) -> Failure {
        Failure { kind: FailureKind::Failed, message: message.to_string(), remedy: None }
    }

    /// What was asked for is wrong.
    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure { kind: FailureKind::Usage, message: message.to_string(), remedy: None }
    }

    /// The work was told to stop before anything of it was kept.
    pub fn interrupted() -> Failure {
        Failure { kind: FailureKind::Interrupted, ..Failure::failed("interrupted; nothing was written") }
    }

    /// The same, with what to do.
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
        Failure::failed(error)
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
