//! The protocol's numbers and messages, and what the drive's errors are in it.

use imbrex_device::DeviceError;

pub use imbrex_nbd::*;

/// The one place where the drive's errors become the protocol's.
pub fn errno_of(error: &DeviceError) -> u32 {
    match error {
        DeviceError::Medium { cause, .. } if cause.kind() == std::io::ErrorKind::StorageFull => errno::ENOSPC,
        DeviceError::Medium { .. }
        | DeviceError::Destroyed { .. }
        | DeviceError::Unreadable { .. }
        | DeviceError::Lost { .. }
        | DeviceError::Spoilt { .. }
        | DeviceError::Stopped(_) => errno::EIO,
        DeviceError::Image { .. }
        | DeviceError::InUse { .. }
        | DeviceError::CopiedUnclosed { .. }
        | DeviceError::Damaged { .. }
        | DeviceError::Replay(_) => errno::EIO,
        // What a drive with zones says to a write off the pointer; NBD has no number of its own for it.
        DeviceError::Zone(_) => errno::EIO,
        DeviceError::ReadOnly => errno::EPERM,
        DeviceError::PastEnd { .. } => errno::ENOSPC,
        DeviceError::Refused(_) => errno::EINVAL,
    }
}
