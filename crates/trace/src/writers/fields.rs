//! What several formats write of a request, or why they cannot.

use crate::admission::SECTOR_BYTES;
use crate::request::{Request, TraceError, When};

/// The time of `request`, which has to have one of its own.
pub(super) fn time_ns(request: &Request, name: &str) -> Result<u64, TraceError> {
    match request.when {
        When::At(time) => Ok(time.0),
        When::Free(_) | When::Drained(_) => Err(TraceError {
            place: name.into(),
            reason:
                "the workload has no times of its own: its requests follow the drive's answers, and a trace cannot \
                     say that"
                    .into(),
            cause: None,
        }),
    }
}

/// Offset and length of `request` in bytes.
pub(super) fn bytes_of(request: &Request, name: &str) -> Result<(u64, u64), TraceError> {
    let offset_bytes = request.command.lba.0.checked_mul(SECTOR_BYTES).ok_or_else(|| TraceError {
        place: name.into(),
        reason: format!("{} lies past 2^64 bytes, which the format cannot say", request.command.lba),
        cause: None,
    })?;
    Ok((offset_bytes, u64::from(request.command.sectors) * SECTOR_BYTES))
}

pub(super) fn failed(name: &str, cause: std::io::Error) -> TraceError {
    TraceError { place: name.into(), reason: "cannot be written".into(), cause: Some(cause) }
}
