//! The protocol's numbers and messages, and the error numbers for the drive's errors.

use imbrex_device::DeviceError;

pub use imbrex_nbd::*;

/// Returns the NBD error number for an error of the drive: ENOSPC for a range past the end or a full disk of the host,
/// EPERM for a change of a read-only drive, EINVAL for a refused request, and EIO for all others.
pub fn errno_of(error: &DeviceError) -> u32 {
    match error {
        DeviceError::Medium { cause, .. } if cause.kind() == std::io::ErrorKind::StorageFull => errno::ENOSPC,
        DeviceError::Medium { .. }
        | DeviceError::Destroyed { .. }
        | DeviceError::Unreadable { .. }
        | DeviceError::Lost { .. }
        | DeviceError::Corrupt { .. }
        | DeviceError::Stopped(_) => errno::EIO,
        DeviceError::Image { .. }
        | DeviceError::InUse { .. }
        | DeviceError::CopiedUnclosed { .. }
        | DeviceError::Damaged { .. }
        | DeviceError::Replay(_) => errno::EIO,
        // The error of a zoned drive for a write off the write pointer; NBD has no separate number for it.
        DeviceError::Zone(_) => errno::EIO,
        DeviceError::ReadOnly => errno::EPERM,
        DeviceError::PastEnd { .. } => errno::ENOSPC,
        DeviceError::Refused(_) => errno::EINVAL,
    }
}
