//! Check of a drive that an array is made with, or that joins the array later: its zones must have the array's size.

use crate::device::{Device, Kind};
use crate::error::FsError;

/// Fails if `device` does not suit an array with zones of `zone_blocks` blocks.
pub(in crate::core) fn check_drive(device: &Device, zone_blocks: u64) -> Result<(), FsError> {
    match device.geometry().kind {
        Kind::Zoned { zone_blocks: own, .. } if own == zone_blocks => Ok(()),
        Kind::Plain if device.geometry().blocks >= 2 * zone_blocks => Ok(()),
        Kind::Zoned { zone_blocks: own, .. } => Err(FsError::format(
            device.name(),
            format!("has zones of {own} blocks, and the array of {zone_blocks}: it takes no other zoned drives"),
        )),
        kind => Err(FsError::format(
            device.name(),
            format!(
                "is a {} drive of {} blocks: the array takes drives with zones of {zone_blocks} blocks, or drives without \
                 zones that have at least twice that",
                kind.name(),
                device.geometry().blocks
            ),
        )),
    }
}
