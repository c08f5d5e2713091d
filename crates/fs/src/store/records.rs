//! Records that a store writes with the data, so that files can be recovered without metadata.

use super::{Allocation, Cleaning, Reservation};
use crate::block_run::BlockRun;
use crate::error::FsError;
use crate::executor::Local;
use crate::format::record::{DirectoryRecord, Piece};

/// The context of the records for an allocation: the files and directories that they describe.
#[derive(Clone, Default, Debug)]
pub struct RecordContext {
    /// The files, each with the range of its blocks, in the order in which the blocks are written.
    pub pieces: Vec<Piece>,
    /// Directories that contain the files. A stripe group may have records of some of them already.
    pub directories: Vec<DirectoryRecord>,
}

/// A store that writes records with the data. The records of an allocation may wait in memory and be written with a
/// later allocation.
///
/// The caller writes the bytes of [`Records::record_bytes`] behind the data of each allocation, by the same command.
pub trait Records: Cleaning {
    /// Like [`super::Store::allocate`], with records of the blocks. `context` describes `blocks` blocks.
    fn allocate_with_records<'a>(
        &'a self,
        reservation: &'a mut Reservation,
        blocks: u64,
        context: &'a RecordContext,
    ) -> Local<'a, Result<Allocation, FsError>>;

    /// Like [`Cleaning::allocate_for_cleaner`], with records of the blocks. `context` describes `blocks` blocks.
    fn allocate_for_cleaner_with_records<'a>(
        &'a self,
        blocks: u64,
        context: &'a RecordContext,
    ) -> Local<'a, Option<Allocation>>;

    /// Allocates blocks for records that wait in memory, without data. Returns `None` if none wait.
    fn allocate_for_records(&self) -> Option<Allocation>;

    /// Returns the bytes to write after the data of `allocation`: records, and the zeros that fill up its zone. `sums`
    /// are the checksums of the data blocks.
    fn record_bytes(&self, allocation: &Allocation, sums: &[u32]) -> Vec<u8>;

    /// Returns runs of data that have no records and cannot get any at their place. The caller must move them. Each run
    /// is returned once.
    fn take_unrecorded(&self) -> Vec<BlockRun>;
}
