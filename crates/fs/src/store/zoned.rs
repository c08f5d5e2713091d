//! Zones of a store that appends to them.

use super::Allocation;
use crate::device::ZoneState;

/// A store that appends to zones. A zone is a band of the store: a zone of the drive, or a stripe group of the array.
pub trait Zoned {
    /// Returns the numbers of written and of live blocks for each zone. On a store with [`super::StripeGroups`], lists
    /// the opened groups only.
    fn zones(&self) -> Vec<(u64, u64)>;

    /// Returns the number of live blocks in a zone.
    fn live_in(&self, zone: u32) -> u64;

    /// Returns whether no write to the zone is in flight and all blocks written there belong to files.
    fn is_quiet(&self, zone: u32) -> bool;

    /// Aborts an allocation after a failed write, like [`super::Store::abort`]. `states` are the states that the device
    /// now reports for all its zones: they say how far the zones of the allocation are written.
    fn abort_in_zones(&self, allocation: Allocation, states: &[ZoneState]);
}
