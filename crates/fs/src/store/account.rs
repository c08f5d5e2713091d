//! Counts of reserved, allocated and freed blocks of a zoned store.
//!
//! Invariants:
//! 1. The number of reserved blocks is the sum of the reservations of all files.
//! 2. Blocks allocated, less blocks freed, are the growth of live blocks and blocks being written since the mount.

use std::cell::Cell;

use super::{Allocation, Reservation, Usage};
use crate::error::FsError;

/// Counts of a store: blocks reserved at present, and blocks allocated, blocks freed and records written since the
/// mount.
#[derive(Default)]
pub struct Account {
    reserved: Cell<u64>,
    allocated: Cell<u64>,
    freed: Cell<u64>,
    records: Cell<(u64, u64)>,
}

impl Account {
    /// Changes `reservation` to `blocks` blocks. The store has space for `room` blocks, of which `live` are in use.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if the reservation grows, and the live and all reserved blocks would exceed `room`.
    /// `reservation` then stays unchanged.
    pub fn reserve(&self, reservation: &mut Reservation, blocks: u64, live: u64, room: u64) -> Result<(), FsError> {
        let others = self.reserved.get() - reservation.blocks;
        if blocks > reservation.blocks && live + others + blocks > room {
            return Err(FsError::NoSpace);
        }
        self.reserved.set(others + blocks);
        reservation.blocks = blocks;
        Ok(())
    }

    /// Adds `blocks` to the empty `reservation` without a check for space: they were reserved before the mount.
    pub fn keep(&self, reservation: &mut Reservation, blocks: u64) {
        self.reserved.set(self.reserved.get() + blocks);
        reservation.blocks += blocks;
    }

    /// Releases `blocks` of the blocks of `reservation`, which must have as many.
    pub fn unreserve(&self, reservation: &mut Reservation, blocks: u64) {
        self.reserved.set(self.reserved.get() - blocks);
        reservation.blocks -= blocks;
    }

    /// Adds `blocks` to the number of data blocks allocated since the mount. Reservations do not change.
    pub fn allocate(&self, blocks: u64) {
        self.allocated.set(self.allocated.get() + blocks);
    }

    /// Subtracts an allocation that could not be written from the counts of allocated blocks and of records. Its blocks
    /// do not count as freed.
    pub fn abort(&self, allocation: &Allocation) {
        self.allocated.set(self.allocated.get() - allocation.blocks());
        let (all_units, all_blocks) = self.records.get();
        self.records.set((all_units - allocation.counted.0, all_blocks - allocation.counted.1));
    }

    /// Adds `blocks` to the number of blocks freed since the mount.
    pub fn free(&self, blocks: u64) {
        self.freed.set(self.freed.get() + blocks);
    }

    /// Adds to the counts of [`Usage::records`]: `units` record units, and `blocks` blocks that are written only for
    /// records or at the end of a stripe group. A record unit is a block of 4 KiB with records, stored behind the data
    /// that the records describe.
    pub fn record(&self, (units, blocks): (u64, u64)) {
        let (all_units, all_blocks) = self.records.get();
        self.records.set((all_units + units, all_blocks + blocks));
    }

    /// Returns the usage of a store with space for `room` blocks, of which `live` are in use. All blocks that are
    /// neither live nor reserved count as free, and the largest file may take all of them. The numbers of dead blocks,
    /// unusable blocks and free runs are 0.
    pub fn usage(&self, live: u64, room: u64) -> Usage {
        let free = room.saturating_sub(live + self.reserved.get());
        let (allocated, freed) = (self.allocated.get(), self.freed.get());
        let records = self.records.get();
        Usage { blocks: room, live, free, longest: free, allocated, freed, records, ..Usage::default() }
    }
}
