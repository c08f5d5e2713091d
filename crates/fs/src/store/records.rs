//! Records that a store writes with the data, so that files can be recovered without metadata.

use super::{Allocation, Cleaning, Reservation};
use crate::block_run::BlockRun;
use crate::error::FsError;
use crate::executor::Local;
use crate::format::record::{DirectoryRecord, Piece};

/// Files and directories that the records of an allocation describe.
#[derive(Clone, Default, Debug)]
pub struct RecordContext {
    /// Runs of blocks of files to be written, each with the record of its file, in the order in which they are written.
    pub pieces: Vec<Piece>,
    /// Records of the directories above the files. A stripe group may hold some of them already.
    pub directories: Vec<DirectoryRecord>,
}

/// A store that writes records with the data. The records of an allocation may wait in memory and be written with a
/// later allocation.
///
/// The caller writes the bytes of [`Records::record_bytes`] behind the data of each allocation, by the same command.
pub trait Records: Cleaning {
    /// Allocates `blocks` blocks of 4 KiB for a file out of its reservation, which it enlarges if necessary, and space
    /// for their records. `context` describes all `blocks` blocks, in order. The allocation may have only the first
    /// part of the blocks: the caller calls again for the rest. May wait for the cleaner.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if no space is left even after cleaning.
    fn allocate_with_records<'a>(
        &'a self,
        reservation: &'a mut Reservation,
        blocks: u64,
        context: &'a RecordContext,
    ) -> Local<'a, Result<Allocation, FsError>>;

    /// Allocates blocks of 4 KiB for copies by the cleaner, and space for their records, also from the space kept back
    /// for the cleaner. `context` describes all `blocks` blocks, in order. The allocation may have only the first part
    /// of the blocks. Returns `None` if there is no space.
    fn allocate_for_cleaner_with_records<'a>(
        &'a self,
        blocks: u64,
        context: &'a RecordContext,
    ) -> Local<'a, Option<Allocation>>;

    /// Allocates blocks for records that still wait in memory, without data. Each call serves one stripe group to which
    /// no task writes. A group whose end is too short for further data is filled with zeros. Returns `None` if no such
    /// group has waiting records, or such an end.
    fn allocate_for_records(&self) -> Option<Allocation>;

    /// Returns the bytes to write after the data of `allocation`: units of records, and zeros. Their number is
    /// [`Allocation::record_blocks`] times 4096, or 0 if the stripe group does not exist any more. `sums` are the
    /// checksums of the data blocks, in order. Must be called once for each allocation, before the next allocation in
    /// the same stripe group.
    fn record_bytes(&self, allocation: &Allocation, sums: &[u32]) -> Vec<u8>;

    /// Removes and returns the runs of data that have no records and cannot get any at their place, for example after a
    /// failed write. The caller must move them.
    fn take_unrecorded(&self) -> Vec<BlockRun>;
}
