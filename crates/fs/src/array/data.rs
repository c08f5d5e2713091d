//! Store of file data as the core uses it: one device, or an array of devices.

use super::{Array, ArrayCounters};
use crate::device::{Device, DeviceFault, Traffic, ZoneState};

/// The devices that hold file data: one device, or an array. A clone is another handle of the same devices.
#[derive(Clone)]
pub enum Data {
    /// Single device. Block and zone numbers are those of the device.
    Drive(Device),
    /// Array of devices. Each stripe group takes the place of a zone. The blocks of group i begin at i times the stride
    /// of the array, the number of data blocks of the widest possible group.
    Array(Array),
}

impl Data {
    /// Reads `blocks` blocks of 4 KiB of the device or the array, from block `block` on. An array reconstructs
    /// unreadable columns from the others. Checksums are not verified; that is left to the caller.
    ///
    /// # Errors
    /// The device cannot read the blocks, or too few drives of the array can. The blocks exceed the device or their
    /// stripe group, or `blocks` is 0 for a single device.
    pub async fn read(&self, block: u64, blocks: u64) -> Result<Vec<u8>, DeviceFault> {
        match self {
            Data::Drive(device) => device.read(block, blocks).await,
            Data::Array(array) => array.read(block, blocks).await,
        }
    }

    /// Writes `bytes` from block `block` on. Their length must be a multiple of 4 KiB. An array writes whole rows, of
    /// one block on each drive of a stripe group: it adds blocks of zeros behind `bytes` up to the end of the last row.
    /// The write is durable only after [`Data::flush`].
    ///
    /// # Errors
    /// The device or a drive of the array cannot write the blocks, or they exceed the device or their stripe group. On
    /// an array also: the stripe group does not exist or is closed to appends, or `block` is not its write pointer.
    pub async fn write(&self, block: u64, bytes: Vec<u8>) -> Result<(), DeviceFault> {
        match self {
            Data::Drive(device) => device.write(block, bytes).await,
            Data::Array(array) => array.write(block, bytes).await,
        }
    }

    /// Makes completed writes durable, on the device or on all drives of the array.
    ///
    /// # Errors
    /// The device fails to flush. On an array: a drive fails to flush, and more drives are now missing than parity
    /// covers.
    pub async fn flush(&self) -> Result<(), DeviceFault> {
        match self {
            Data::Drive(device) => device.flush().await,
            Data::Array(array) => array.flush().await,
        }
    }

    /// Resets zone `zone` of the device, so that it is empty. On an array, `zone` is the number of a stripe group: the
    /// group is removed and its zones are freed.
    ///
    /// # Errors
    /// The device has no such zone or fails to reset it, or the array has no such stripe group.
    pub async fn reset(&self, zone: u32) -> Result<(), DeviceFault> {
        match self {
            Data::Drive(device) => device.reset(zone).await,
            Data::Array(array) => array.reset(zone).await,
        }
    }

    /// Returns the states of all zones of the device in their order; none if the device has no zones. For an array it
    /// returns one state for each possible stripe group, by number ([`Array::zones`]).
    ///
    /// # Errors
    /// The device fails to report its zones. For an array there is no error.
    pub async fn zones(&self) -> Result<Vec<ZoneState>, DeviceFault> {
        match self {
            Data::Drive(device) => device.zones().await,
            Data::Array(array) => Ok(array.zones()),
        }
    }

    /// Reconstructs block `block` of an array from the other columns of its row, such that the CRC-32C of the block is
    /// `sum`. Returns `None` if no combination of columns gives this checksum, and always for a single device.
    pub async fn recover(&self, block: u64, sum: u32) -> Option<Vec<u8>> {
        match self {
            Data::Drive(_) => None,
            Data::Array(array) => array.recover(block, sum).await,
        }
    }

    /// Returns the counts of operations of the device, or their sums over all drives of the array.
    pub fn traffic(&self) -> Traffic {
        match self {
            Data::Drive(device) => device.traffic(),
            Data::Array(array) => array.traffic(),
        }
    }

    /// Returns the array, or `None` for a single device.
    pub fn array(&self) -> Option<&Array> {
        match self {
            Data::Drive(_) => None,
            Data::Array(array) => Some(array),
        }
    }

    /// Returns the counts of padding, parity and reconstruction of the array since the mount. All are zero for a single
    /// device.
    pub fn counters(&self) -> ArrayCounters {
        self.array().map(Array::counters).unwrap_or_default()
    }
}
