//! Reservation and allocation of blocks, which every store has, and access to the abilities that only some stores have.

use super::{Appending, Cleaning, Describe, Places, Records, StripeGroups, Zoned};
use crate::block_run::BlockRun;
use crate::error::FsError;
use crate::executor::Local;
use crate::format::change::Extent;

/// The reservation of a file.
#[derive(Default, Debug)]
pub struct Reservation {
    /// Number of blocks that the file may allocate.
    pub blocks: u64,
    /// The reserved blocks themselves, footers included. Empty if the store reserves only a number of blocks.
    pub runs: Vec<BlockRun>,
}

/// An allocation: the blocks to which the data of a file are about to be written. Each run is written in order, from
/// its first block.
#[derive(PartialEq, Eq, Debug)]
pub struct Allocation {
    /// Blocks for the data.
    pub runs: Vec<BlockRun>,
    /// Blocks kept free until the data are written: the footers on a caveat disk.
    pub kept: Vec<BlockRun>,
    /// Number of blocks after the data for the bytes that [`Records::record_bytes`] returns. One command writes both.
    pub record_blocks: u64,
    /// Number of record units in this allocation, and number of blocks that only the records need. Both are counted in
    /// [`super::Usage::records`].
    pub counted: (u64, u64),
}

impl Allocation {
    /// Returns the number of blocks for data.
    pub fn blocks(&self) -> u64 {
        self.runs.iter().map(|run| run.blocks).sum()
    }
}

/// A store: the block allocator of a data device or an array.
///
/// The methods from [`Store::places`] to [`Store::stripe_groups`] return an ability of the store, or `None` if the store
/// lacks it. The answer is the same for the lifetime of the store. A store with an ability overrides the method.
pub trait Store: Describe {
    /// Reserves space for `blocks` in place of the present `reservation`.
    ///
    /// # Errors
    ///
    /// [`FsError::NoSpace`]; `reservation` then stays unchanged.
    fn reserve(&self, reservation: &mut Reservation, blocks: u64) -> Result<(), FsError>;

    /// Releases `reservation`.
    fn unreserve(&self, reservation: &mut Reservation);

    /// Restores in the empty `reservation` one from before the mount, of as many blocks as `runs` have. A store with
    /// [`Places`] restores the blocks `runs` themselves, and returns false if they are not free. Other stores return
    /// true.
    fn keep(&self, reservation: &mut Reservation, runs: &[BlockRun]) -> bool;

    /// Allocates blocks for a file of `blocks` out of its reservation, or blocks for the first part of it. The caller
    /// calls again for the rest when that part is written. May wait for the cleaner. A store with [`Records`] writes no
    /// record for these blocks.
    fn allocate<'a>(&'a self, reservation: &'a mut Reservation, blocks: u64) -> Local<'a, Result<Allocation, FsError>>;

    /// Commits an allocation after its data were written: its blocks are live, and its footers are free.
    fn commit(&self, allocation: Allocation);

    /// Aborts an allocation after a failed write. If the device reports the state of its zones, the caller calls
    /// [`Zoned::abort_in_zones`] instead.
    fn abort(&self, allocation: Allocation);

    /// Marks blocks as live during the mount.
    fn claim(&self, extent: &Extent) -> Result<(), FsError>;

    /// Frees live blocks. No later journal record can make them live again.
    fn free(&self, run: BlockRun);

    /// Returns access to the blocks of reservations, if a reservation names particular blocks.
    fn places(&self) -> Option<&dyn Places> {
        None
    }

    /// Returns access to the zones, if the store appends to zones.
    fn zoned(&self) -> Option<&dyn Zoned> {
        None
    }

    /// Returns access to cleaning, if dead blocks must be cleaned before they can be written again.
    fn cleaning(&self) -> Option<&dyn Cleaning> {
        None
    }

    /// Returns access to the records, if the store writes records with the data.
    fn records(&self) -> Option<&dyn Records> {
        None
    }

    /// Returns access to appends behind appends in flight, if a file may have several appends in flight.
    fn appending(&self) -> Option<&dyn Appending> {
        None
    }

    /// Returns access to the stripe groups, if the store is on an array.
    fn stripe_groups(&self) -> Option<&dyn StripeGroups> {
        None
    }
}
