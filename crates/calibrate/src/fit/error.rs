//! Errors of a fit.

use imbrex_disk::ProfileError;
use imbrex_sim::DriveError;
use imbrex_trace::TraceError;

/// Why a fit failed.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The profile with a tried value is invalid.
    #[error("{0}")]
    Profile(#[from] ProfileError),
    /// The drive of the profile could not be built.
    #[error("{0}")]
    Drive(#[from] DriveError),
    /// The replay of the measurement failed.
    #[error("{0}")]
    Trace(#[from] TraceError),
    /// The measurement is too short, or lies past the end of the drive.
    #[error("{0}")]
    Measurement(String),
}
