//! What is reserved, allocated and freed on a zoned store.
//!
//! Invariants:
//! 1. What is reserved is the sum of what files hold.
//! 2. Blocks allocated, less those freed, are how many more are live or being written than when it was mounted.

use std::cell::Cell;

use super::{Held, Lease, Usage};
use crate::error::FsError;

/// The account.
#[derive(Default)]
pub struct Account {
    reserved: Cell<u64>,
    allocated: Cell<u64>,
    freed: Cell<u64>,
    records: Cell<(u64, u64)>,
}

impl Account {
    /// Reserves `blocks` in place of what `held` has, on a store that has room for `room` blocks, `live` of them taken.
    pub fn reserve(&self, held: &mut Held, blocks: u64, live: u64, room: u64) -> Result<(), FsError> {
        let others = self.reserved.get() - held.blocks;
        if blocks > held.blocks && live + others + blocks > room {
            return Err(FsError::NoSpace);
        }
        self.reserved.set(others + blocks);
        held.blocks = blocks;
        Ok(())
    }

    /// Reserves `blocks` for `held`, which has none, whether there is room or not: they were reserved before it was mounted.
    pub fn keep(&self, held: &mut Held, blocks: u64) {
        self.reserved.set(self.reserved.get() + blocks);
        held.blocks += blocks;
    }

    /// Gives back `blocks` of what `held` has.
    pub fn unreserve(&self, held: &mut Held, blocks: u64) {
        self.reserved.set(self.reserved.get() - blocks);
        held.blocks -= blocks;
    }

    /// Counts blocks that were allocated.
    pub fn allocate(&self, blocks: u64) {
        self.allocated.set(self.allocated.get() + blocks);
    }

    /// Takes back what was counted of a lease that could not be written, its records included.
    pub fn abandon(&self, lease: &Lease) {
        self.allocated.set(self.allocated.get() - lease.blocks());
        let (all_units, all_blocks) = self.records.get();
        self.records.set((all_units - lease.counted.0, all_blocks - lease.counted.1));
    }

    /// Counts blocks that were freed.
    pub fn free(&self, blocks: u64) {
        self.freed.set(self.freed.get() + blocks);
    }

    /// Counts `units` of records, for whose sake `blocks` were written that would not have been.
    pub fn record(&self, (units, blocks): (u64, u64)) {
        let (all_units, all_blocks) = self.records.get();
        self.records.set((all_units + units, all_blocks + blocks));
    }

    /// The usage of a store that has room for `room` blocks, `live` of them taken; what it says of bands is left to the
    /// caller.
    pub fn usage(&self, live: u64, room: u64) -> Usage {
        let free = room.saturating_sub(live + self.reserved.get());
        let (allocated, freed) = (self.allocated.get(), self.freed.get());
        let records = self.records.get();
        Usage { blocks: room, live, free, longest: free, allocated, freed, records, ..Usage::default() }
    }
}
