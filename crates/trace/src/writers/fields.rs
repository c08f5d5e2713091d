//! Fields of a request that several formats write, and the errors for requests that they cannot represent.

use crate::admission::SECTOR_BYTES;
use crate::request::{Request, TraceError, When};

/// Returns the time of `request` in nanoseconds.
///
/// # Errors
///
/// If the request has no time of its own, because it follows the completion of others.
pub(super) fn time_ns(request: &Request, name: &str) -> Result<u64, TraceError> {
    match request.when {
        When::At(time) => Ok(time.0),
        When::Free(_) | When::Drained(_) => Err(TraceError::new(
            name,
            "the workload has no times of its own: its requests follow the drive's answers, and a trace cannot \
                 store that",
        )),
    }
}

/// Returns the offset and the length of `request` in bytes.
///
/// # Errors
///
/// If the offset has more than 64 bits.
pub(super) fn bytes_of(request: &Request, name: &str) -> Result<(u64, u64), TraceError> {
    let offset_bytes = request.command.lba.0.checked_mul(SECTOR_BYTES).ok_or_else(|| {
        TraceError::new(name, format!("{} lies past 2^64 bytes, which the format cannot store", request.command.lba))
    })?;
    Ok((offset_bytes, u64::from(request.command.sectors) * SECTOR_BYTES))
}

pub(super) fn failed(name: &str, cause: std::io::Error) -> TraceError {
    TraceError::caused(name, "cannot be written", cause)
}
