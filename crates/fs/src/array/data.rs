//! Store of file data as the core uses it: one device, or an array of devices.

use super::{Array, ArrayCounters};
use crate::device::{Device, DeviceFault, Traffic, ZoneState};

/// One device, or an array. A clone is another handle of the same one.
#[derive(Clone)]
pub enum Data {
    /// Single device with its own blocks and zones.
    Drive(Device),
    /// Array of devices: its stripe groups stand for the zones of a single device.
    Array(Array),
}

impl Data {
    /// Reads `blocks` blocks of 4 KiB of the device or the array, from block `block` on. An array reconstructs
    /// unreadable columns from the others. The caller verifies the checksums.
    ///
    /// # Errors
    /// The device cannot read the blocks, too few drives of the array can, or the blocks leave their stripe group.
    pub async fn read(&self, block: u64, blocks: u64) -> Result<Vec<u8>, DeviceFault> {
        match self {
            Data::Drive(device) => device.read(block, blocks).await,
            Data::Array(array) => array.read(block, blocks).await,
        }
    }

    /// Writes `bytes`, whole blocks, from block `block` on. An array writes whole rows and fills the last one with
    /// zeros.
    ///
    /// # Errors
    /// The device or a drive of the array cannot write the blocks, or `block` is not the write pointer of an open
    /// stripe group of the array.
    pub async fn write(&self, block: u64, bytes: Vec<u8>) -> Result<(), DeviceFault> {
        match self {
            Data::Drive(device) => device.write(block, bytes).await,
            Data::Array(array) => array.write(block, bytes).await,
        }
    }

    /// Makes completed writes durable.
    pub async fn flush(&self) -> Result<(), DeviceFault> {
        match self {
            Data::Drive(device) => device.flush().await,
            Data::Array(array) => array.flush().await,
        }
    }

    /// Empties zone `zone`; on an array this is the number of a stripe group.
    pub async fn reset(&self, zone: u32) -> Result<(), DeviceFault> {
        match self {
            Data::Drive(device) => device.reset(zone).await,
            Data::Array(array) => array.reset(zone).await,
        }
    }

    /// Returns the states of all zones, or of all stripe groups.
    pub async fn zones(&self) -> Result<Vec<ZoneState>, DeviceFault> {
        match self {
            Data::Drive(device) => device.zones().await,
            Data::Array(array) => Ok(array.zones()),
        }
    }

    /// Reconstructs block `block` from parity, so that it matches the checksum `sum`; `None` if that is impossible.
    pub async fn recover(&self, block: u64, sum: u32) -> Option<Vec<u8>> {
        match self {
            Data::Drive(_) => None,
            Data::Array(array) => array.recover(block, sum).await,
        }
    }

    /// Returns the counts of operations of the device, or of all drives together.
    pub fn traffic(&self) -> Traffic {
        match self {
            Data::Drive(device) => device.traffic(),
            Data::Array(array) => array.traffic(),
        }
    }

    /// Returns the array, if there is one.
    pub fn array(&self) -> Option<&Array> {
        match self {
            Data::Drive(_) => None,
            Data::Array(array) => Some(array),
        }
    }

    /// Returns the counts of the array's additional work: parity, padding, repairs. All counts are zero for a single
    /// device.
    pub fn counters(&self) -> ArrayCounters {
        self.array().map(Array::counters).unwrap_or_default()
    }
}
