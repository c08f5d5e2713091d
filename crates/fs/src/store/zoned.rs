//! Zones of a store that appends to them.

use super::Allocation;
use crate::device::ZoneState;

/// A store that appends to zones. Here a zone is a zone of the drive or, on an array, a stripe group.
pub trait Zoned {
    /// Returns, for each zone of the store in order, its number of written blocks and its number of live blocks, of 4
    /// KiB each. On an array, lists only the stripe groups that exist now.
    fn zones(&self) -> Vec<(u64, u64)>;

    /// Returns the number of live blocks of 4 KiB in zone `zone`. Data blocks that are being written count as live.
    ///
    /// # Panics
    /// The store has no zone of this number.
    fn live_in(&self, zone: u32) -> u64;

    /// Returns whether no write to the zone is in flight and no run in it is pinned
    /// ([`Cleaning::pin`](super::Cleaning::pin)): written, and not yet part of a file.
    fn is_quiet(&self, zone: u32) -> bool;

    /// Ends an allocation after a failed write: its blocks are not live. `states` are the states that the device now
    /// reports for all its zones, or the array for all its stripe groups, from number 0 on. They give the write
    /// pointers after the failure.
    fn abort_in_zones(&self, allocation: Allocation, states: &[ZoneState]);
}
