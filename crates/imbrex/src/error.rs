//! Failures: the error, its place, and a remedy.

use std::fmt;

/// Category of a failure, from which a program chooses its exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// An operation on a file, a drive, a trace or another resource failed.
    Failed,
    /// The user's request is wrong: an unknown name, or an option or value that is invalid.
    Usage,
    /// The work was interrupted before it had kept any result.
    Interrupted,
    /// A file that the work reads was changed while the work ran.
    InputChanged,
    /// The work ran to its end and found damage.
    Damage,
}

/// An error for the user: its category, a message, and a remedy if there is one.
#[derive(Debug)]
pub struct Failure {
    /// Category of the failure.
    pub kind: FailureKind,
    /// Description of the error and its place, for the user.
    pub message: String,
    /// Action that the user can try, printed after `try:`; `None` if there is none.
    pub remedy: Option<String>,
}

impl Failure {
    /// Creates a failure of the kind [`FailureKind::Failed`], without a remedy.
    pub fn failed(message: impl fmt::Display) -> Failure {
        Failure { kind: FailureKind::Failed, message: message.to_string(), remedy: None }
    }

    /// Creates a failure of the kind [`FailureKind::Usage`], without a remedy.
    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure { kind: FailureKind::Usage, message: message.to_string(), remedy: None }
    }

    /// Creates a failure of the kind [`FailureKind::Interrupted`], with the message that nothing was written.
    pub fn interrupted() -> Failure {
        Failure { kind: FailureKind::Interrupted, ..Failure::failed("interrupted; nothing was written") }
    }

    /// Creates a failure of the kind [`FailureKind::InputChanged`] for the input file `name`. Its remedy is to repeat
    /// the command.
    pub fn changed(name: &str) -> Failure {
        let message = format!("{name} was changed while it was in use: results of both contents would be mixed");
        Failure { kind: FailureKind::InputChanged, ..Failure::failed(message) }
            .or_try("the same command again, with a copy of the file if another program writes to it")
    }

    /// Returns the failure with `remedy`, which replaces an earlier remedy.
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
