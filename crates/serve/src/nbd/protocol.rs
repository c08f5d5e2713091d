//! The protocol's numbers and messages, and the error numbers for the drive's errors.

use imbrex_device::DeviceError;

pub use imbrex_nbd::*;

/// Returns the protocol's error number for an error of the drive.
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
