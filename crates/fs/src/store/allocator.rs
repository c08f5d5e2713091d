//! Reservation and allocation of blocks, which every store has, and access to the abilities that only some stores have.

use super::{Appending, Cleaning, Describe, Places, Records, StripeGroups, Zoned};
use crate::block_run::BlockRun;
use crate::error::FsError;
use crate::executor::Local;
use crate::format::change::Extent;

/// Space that is reserved for a file while its data are in memory. The default is empty.
#[derive(Default, Debug)]
pub struct Reservation {
    /// Number of data blocks that the file may allocate.
    pub blocks: u64,
    /// Reserved blocks themselves, footers included, on a store with [`Places`]. Empty if the store reserves only a
    /// number of blocks.
    pub runs: Vec<BlockRun>,
}

/// Blocks to which the data of a file are about to be written. Each run is written in order, from its first block.
#[derive(PartialEq, Eq, Debug)]
pub struct Allocation {
    /// Blocks for the data, in the order of the data.
    pub runs: Vec<BlockRun>,
    /// Blocks that must hold no live data until the data are written: the footers on a caveat disk, which the write
    /// destroys.
    pub kept: Vec<BlockRun>,
    /// Number of blocks directly after the data for the bytes that [`Records::record_bytes`] returns. One command
    /// writes data and records.
    pub record_blocks: u64,
    /// Number of record units in this allocation, and number of blocks that only the records need: the amounts added to
    /// [`super::Usage::records`].
    pub counted: (u64, u64),
}

impl Allocation {
    /// Returns the number of blocks for data, in all runs.
    pub fn blocks(&self) -> u64 {
        self.runs.iter().map(|run| run.blocks).sum()
    }
}

/// A store: the block allocator of a data device or an array.
///
/// The methods from [`Store::places`] to [`Store::stripe_groups`] return an ability of the store, or `None` if the
/// store lacks it. The answer is the same for the lifetime of the store. A store with an ability overrides the method.
pub trait Store: Describe {
    /// Changes `reservation` to a reservation of `blocks` blocks, larger or smaller than before.
    ///
    /// # Errors
    /// [`FsError::NoSpace`]; `reservation` then stays unchanged.
    fn reserve(&self, reservation: &mut Reservation, blocks: u64) -> Result<(), FsError>;

    /// Releases all of `reservation`, which is empty afterwards.
    fn unreserve(&self, reservation: &mut Reservation);

    /// Restores a reservation from before the mount in the empty `reservation`, of as many blocks as `runs` have. A
    /// store with [`Places`] reserves the blocks `runs` themselves; it reserves nothing and returns false if one of
    /// them is not free. Other stores return true.
    fn keep(&self, reservation: &mut Reservation, runs: &[BlockRun]) -> bool;

    /// Allocates `blocks` blocks for a file out of its reservation, which it enlarges if necessary. The allocation may
    /// have only the first part of them: the caller calls again for the rest when that part is written. May wait for
    /// the cleaner. A store with [`Records`] writes no record for these blocks.
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
    /// The blocks are not in the store, are not written, or belong to another file too.
    fn claim(&self, extent: &Extent) -> Result<(), FsError>;

    /// Frees live blocks. The change that frees them must be durable: a power failure must not make them live again.
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
