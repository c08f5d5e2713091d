//! Why a fit failed.

use imbrex_disk::ProfileError;
use imbrex_sim::DriveError;
use imbrex_trace::TraceError;

/// Why a fit failed.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The profile with a value tried.
    #[error("{0}")]
    Profile(#[from] ProfileError),
    /// The drive made of it.
    #[error("{0}")]
    Drive(#[from] DriveError),
    /// The measurement played to it.
    #[error("{0}")]
    Trace(#[from] TraceError),
    /// The measurement is too short, or lies past the drive.
    #[error("{0}")]
    Measurement(String),
}
