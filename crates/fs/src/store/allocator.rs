//! Reservation and allocation of blocks, which every store has, and access to the abilities that only some stores have.

use super::{Appending, Cleaning, Describe, Places, Records, StripeGroups, Zoned};
use crate::block_run::BlockRun;
use crate::error::FsError;
use crate::executor::Local;
use crate::format::change::Extent;

/// Space that is reserved for a file: for data that are still in memory, or for preallocated blocks. The default is
/// empty.
#[derive(Default, Debug)]
pub struct Reservation {
    /// Number of data blocks of 4 KiB that the file may still allocate. Footers and records do not count.
    pub blocks: u64,
    /// Runs of blocks that are reserved on the store `caveat`, for data and footers. A footer is the blocks after data
    /// that the write of the data destroys. Empty on other stores, which reserve only a number of blocks.
    pub runs: Vec<BlockRun>,
}

/// Blocks to which the data of a file are about to be written. Each run is written in order, from its first block.
#[derive(PartialEq, Eq, Debug)]
pub struct Allocation {
    /// Runs of blocks of 4 KiB for the data, in the order of the data, without footers and records. On a store that
    /// appends to zones, each run is within one zone or stripe group. An allocation for records alone has one run of 0
    /// blocks.
    pub runs: Vec<BlockRun>,
    /// Blocks that must hold no live data until the data are written: the footers on a caveat disk, which the write
    /// destroys. Empty on other stores.
    pub kept: Vec<BlockRun>,
    /// Number of blocks of 4 KiB directly after the data for records of the data, and for zeros at the end of a stripe
    /// group. One command writes data and records. 0 on a store without records.
    pub record_blocks: u64,
    /// Number of record units (blocks of 4 KiB with records) in this allocation, and number of blocks that are written
    /// only because of records or at the end of a stripe group. Both are 0 on a store without records.
    pub counted: (u64, u64),
}

impl Allocation {
    /// Returns the number of blocks of 4 KiB for data, in all runs. Blocks for footers and records do not count.
    pub fn blocks(&self) -> u64 {
        self.runs.iter().map(|run| run.blocks).sum()
    }
}

/// A store: the block allocator of a data device or an array.
///
/// The methods from [`Store::places`] to [`Store::stripe_groups`] return an ability of the store, or `None` if the
/// store lacks it. The answer is the same for the lifetime of the store. A store with an ability overrides the method.
pub trait Store: Describe {
    /// Changes `reservation` to a reservation of `blocks` data blocks of 4 KiB, larger or smaller than before. A store
    /// with [`Places`] may reserve other blocks than before.
    ///
    /// # Errors
    /// [`FsError::NoSpace`]; `reservation` then stays unchanged.
    fn reserve(&self, reservation: &mut Reservation, blocks: u64) -> Result<(), FsError>;

    /// Releases all of `reservation`, which is empty afterwards.
    fn unreserve(&self, reservation: &mut Reservation);

    /// Restores a reservation from before the mount in the empty `reservation`, of as many blocks as `runs` have. A
    /// store with [`Places`] reserves the blocks `runs` themselves and their footers; it reserves nothing and returns
    /// false if one of these blocks is not free. Other stores always return true.
    fn keep(&self, reservation: &mut Reservation, runs: &[BlockRun]) -> bool;

    /// Allocates `blocks` blocks of 4 KiB for a file out of its reservation, which it enlarges if necessary. A store
    /// with [`Places`] uses up the whole reservation. The allocation may have only the first part of the blocks: the
    /// caller calls again for the rest when that part is written. May wait for the cleaner. A store with [`Records`]
    /// writes no record for these blocks.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if no space is left even after cleaning.
    fn allocate<'a>(&'a self, reservation: &'a mut Reservation, blocks: u64) -> Local<'a, Result<Allocation, FsError>>;

    /// Ends an allocation after its data were written: its blocks are live, and its footers are free.
    fn commit(&self, allocation: Allocation);

    /// Ends an allocation after a failed write: its blocks are not live. If the device reports the states of its zones,
    /// the caller calls [`Zoned::abort_in_zones`] instead.
    fn abort(&self, allocation: Allocation);

    /// Marks the blocks of `extent` as live during the mount.
    ///
    /// # Errors
    /// [`FsError::Format`] if the blocks are not in the store, are not written, or belong to another file too. A store
    /// that appends to zones notices the last case only if a zone gets more live than written blocks.
    fn claim(&self, extent: &Extent) -> Result<(), FsError>;

    /// Frees the live blocks of `run`. The change of the metadata that frees the blocks must be durable: a power
    /// failure must not make the blocks live again. May panic if the blocks are not live.
    fn free(&self, run: BlockRun);

    /// Returns access to the blocks of reservations; `None`, the default, if a reservation is only a number of blocks.
    fn places(&self) -> Option<&dyn Places> {
        None
    }

    /// Returns access to the zones; `None`, the default, if the store does not append to zones.
    fn zoned(&self) -> Option<&dyn Zoned> {
        None
    }

    /// Returns access to cleaning; `None`, the default, if dead blocks can be written again at once.
    fn cleaning(&self) -> Option<&dyn Cleaning> {
        None
    }

    /// Returns access to records; `None`, the default, if the store writes no records with the data.
    fn records(&self) -> Option<&dyn Records> {
        None
    }

    /// Returns access to appends that follow others in flight; `None`, the default, if a file has one append in flight
    /// at a time.
    fn appending(&self) -> Option<&dyn Appending> {
        None
    }

    /// Returns access to the stripe groups; `None`, the default, if the store is not on an array.
    fn stripe_groups(&self) -> Option<&dyn StripeGroups> {
        None
    }
}
