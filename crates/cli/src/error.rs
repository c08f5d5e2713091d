//! How the program ends.

use imbrex::{Failure, FailureKind};

/// The exit code.
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

impl From<&Failure> for ExitCode {
    fn from(failure: &Failure) -> ExitCode {
        match failure.kind {
            FailureKind::Failed | FailureKind::Interrupted => ExitCode::Failed,
            FailureKind::Usage => ExitCode::Usage,
        }
    }
}
