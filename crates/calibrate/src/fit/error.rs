//! Errors of a fit.

use imbrex_disk::ProfileError;
use imbrex_sim::DriveError;
use imbrex_trace::TraceError;

/// The reason why a fit failed.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The profile is invalid.
    #[error("{0}")]
    Profile(#[from] ProfileError),
    /// The drive that the profile describes cannot be built.
    #[error("{0}")]
    Drive(#[from] DriveError),
    /// The simulation of the measured requests failed.
    #[error("{0}")]
    Trace(#[from] TraceError),
    /// The measurement has too few requests, or its requests lie past the end of the drive. The text explains this.
    #[error("{0}")]
    Measurement(String),
}
