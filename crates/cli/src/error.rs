//! Failures of the program, and the exit code of each.

use std::fmt;

/// How the program ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ExitCode {
    /// Done.
    Done = 0,
    /// Failed: the world did not play along, or the work was interrupted.
    Failed = 1,
    /// The words on the command line are wrong.
    Usage = 2,
    /// Done, and damage was found.
    Damage = 3,
}

/// A failure: what, where, and what to do about it.
#[derive(Debug)]
pub struct Failure {
    /// How the program ends.
    pub code: ExitCode,
    /// What went wrong, where.
    pub message: String,
    /// What to do, where there is something.
    pub remedy: Option<String>,
}

impl Failure {
    /// Something failed.
    pub fn failed(message: impl fmt::Display) -> Failure {
        Failure { code: ExitCode::Failed, message: message.to_string(), remedy: None }
    }

    /// The words are wrong.
    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure { code: ExitCode::Usage, message: message.to_string(), remedy: None }
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
