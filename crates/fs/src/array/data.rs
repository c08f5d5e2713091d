//! What the data of files lie on, as the core sees it: one device, or an array of them.

use super::{Array, ArrayCounters};
use crate::device::{Device, DeviceFault, Traffic, ZoneState};

/// One device, or an array. Cloning gives another handle of the same.
#[derive(Clone)]
pub enum Data {
    /// A device by itself, with its own blocks and zones.
    Drive(Device),
    /// An array: its stripe groups take the part that zones have on a single device.
    Array(Array),
}

impl Data {
    /// Reads `blocks` from `block` on.
    pub async fn read(&self, block: u64, blocks: u64) -> Result<Vec<u8>, DeviceFault> {
        match self {
            Data::Drive(device) => device.read(block, blocks).await,
            Data::Array(array) => array.read(block, blocks).await,
        }
    }

    /// Writes `bytes`, whole blocks, from `block` on. On an array whole rows are written, the last one filled up with
    /// zeros.
    pub async fn write(&self, block: u64, bytes: Vec<u8>) -> Result<(), DeviceFault> {
        match self {
            Data::Drive(device) => device.write(block, bytes).await,
            Data::Array(array) => array.write(block, bytes).await,
        }
    }

    /// Makes durable what was written.
    pub async fn flush(&self) -> Result<(), DeviceFault> {
        match self {
            Data::Drive(device) => device.flush().await,
            Data::Array(array) => array.flush().await,
        }
    }

    /// Empties zone `zone`; on an array that is the number of a stripe group.
    pub async fn reset(&self, zone: u32) -> Result<(), DeviceFault> {
        match self {
            Data::Drive(device) => device.reset(zone).await,
            Data::Array(array) => array.reset(zone).await,
        }
    }

    /// All zones, or stripe groups.
    pub async fn zones(&self) -> Result<Vec<ZoneState>, DeviceFault> {
        match self {
            Data::Drive(device) => device.zones().await,
            Data::Array(array) => Ok(array.zones()),
        }
    }

    /// Makes block `block` again from parity, so that it matches the checksum `sum`; `None` where that cannot be done.
    pub async fn recover(&self, block: u64, sum: u32) -> Option<Vec<u8>> {
        match self {
            Data::Drive(_) => None,
            Data::Array(array) => array.recover(block, sum).await,
        }
    }

    /// Counts of what was asked of the device, or of all drives together.
    pub fn traffic(&self) -> Traffic {
        match self {
            Data::Drive(device) => device.traffic(),
            Data::Array(array) => array.traffic(),
        }
    }

    /// The array, if it is one.
    pub fn array(&self) -> Option<&Array> {
        match self {
            Data::Drive(_) => None,
            Data::Array(array) => Some(array),
        }
    }

    /// What an array did besides what it was asked: parity, padding, repairs. Zeros for a single device.
    pub fn counters(&self) -> ArrayCounters {
        self.array().map(Array::counters).unwrap_or_default()
    }
}
