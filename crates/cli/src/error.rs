//! Exit codes of the program.

use imbrex::{Failure, FailureKind};

/// Exit code of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum ExitCode {
    /// The command succeeded.
    Done = 0,
    /// The command failed for a reason outside the command line, such as an I/O error, or was interrupted.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The command ran to its end and found damage.
    Damage = 3,
    /// The command succeeded, but its text is incomplete: the reader of standard output has left, or its disk is full.
    Output = 4,
}

impl From<&Failure> for ExitCode {
    fn from(failure: &Failure) -> ExitCode {
        match failure.kind {
            FailureKind::Failed | FailureKind::Interrupted | FailureKind::InputChanged => ExitCode::Failed,
            FailureKind::Usage => ExitCode::Usage,
            FailureKind::Damage => ExitCode::Damage,
        }
    }
}
