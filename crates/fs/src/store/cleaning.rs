//! Cleaning: a zone is emptied, so that the dead blocks in it can be written again.

use super::{Allocation, WholeFiles, Zoned};
use crate::block_run::BlockRun;
use crate::executor::Local;

/// A zone, or a stripe group, that the cleaner is about to empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Victim {
    /// Number of the zone on the drive, or of the stripe group in the array, counted from 0.
    pub zone: u32,
    /// Blocks of the zone that are written, live or dead, from its start on.
    pub run: BlockRun,
    /// Number of live blocks of 4 KiB in the zone when it was chosen: the blocks to copy.
    pub live: u64,
}

/// A store whose dead blocks must be cleaned before they can be written again.
///
/// The store chooses the zone and keeps back the space for the copies. The cleaner copies the live blocks and resets
/// the zone:
///
/// ```text
///   victim ─► allocate_for_cleaner, for each part of the live blocks ─► live_in is 0 ─► zone reset ─► emptied
///      └─ no space for the copies ─► easiest_victim            └─ device error ─► emptied (not reset), put_off
/// ```
///
/// Invariants:
/// 1. A zone that [`Cleaning::victim`] or [`Cleaning::easiest_victim`] returned takes no writes until
///    [`Cleaning::emptied`].
/// 2. No zone with a pinned run is returned.
/// 3. Emptying a zone that was returned gains space.
pub trait Cleaning: Zoned {
    /// Ends the marking of live blocks by [`super::Store::claim`] during the mount. To the cleaning policy, these
    /// blocks are older than all blocks that are written from now on.
    fn claimed(&self);

    /// Chooses a zone to be emptied by the store's cleaning policy, and takes it out of use until
    /// [`Cleaning::emptied`]. Returns `None` if no zone gains space when it is emptied.
    fn victim(&self) -> Option<Victim>;

    /// Chooses the zone with the fewest live blocks to be emptied, and takes it out of use until [`Cleaning::emptied`].
    /// Returns `None` if no zone gains space when it is emptied. For the case that the copies of the zone chosen by
    /// [`Cleaning::victim`] do not fit.
    fn easiest_victim(&self) -> Option<Victim>;

    /// Returns the store's limits on moving whole files if its cleaning policy moves whole files; `None` by default.
    fn whole_files(&self) -> Option<&dyn WholeFiles> {
        None
    }

    /// Allocates blocks of 4 KiB for copies by the cleaner, also from the space kept back for the cleaner. May wait for
    /// writes in flight that may leave space; returns `None` if there is no space. The allocation may have fewer than
    /// `blocks` blocks: the caller then calls again for the rest. A store with [`super::Records`] writes no record for
    /// these blocks.
    fn allocate_for_cleaner(&self, blocks: u64) -> Local<'_, Option<Allocation>>;

    /// Ends the emptying of zone `zone`. If `was_reset`, the zone was reset and can be written again; a stripe group of
    /// an array is dropped. If not, its blocks are unchanged.
    fn emptied(&self, zone: u32, was_reset: bool);

    /// Counts an attempt to empty zone `zone` that failed because of a device error. After four failures without a
    /// success, the zone is not chosen again before [`Cleaning::put_off_none`].
    fn put_off(&self, zone: u32);

    /// Allows one more attempt for each zone that is not chosen any more because of failures.
    fn put_off_none(&self);

    /// Keeps the zones of these runs from being emptied until [`Cleaning::unpin`]. For data that are written, and to
    /// which no file refers yet.
    fn pin(&self, runs: &[BlockRun]);

    /// Undoes one call of [`Cleaning::pin`] with the same runs.
    fn unpin(&self, runs: &[BlockRun]);

    /// Returns whether to clean now, even while writes arrive: a writer waits for space, or space is short.
    fn wants_cleaning(&self) -> bool;

    /// Returns whether to clean if no write has arrived for some time. It is true whenever [`Cleaning::wants_cleaning`]
    /// is, and on some stores also with more free space.
    fn wants_cleaning_when_idle(&self) -> bool;

    /// Returns the shortage of free space, in thousandths. At 0 writers are not slowed down; at 1000 only the space
    /// kept back for the cleaner is left, and writers must wait. Returns 0 if cleaning would gain nothing, and always
    /// on a store that does not slow writers down.
    fn shortage(&self) -> u64;

    /// Returns a future that is ready when a writer needs space that only cleaning can make.
    fn cleaning_needed(&self) -> Local<'_, ()>;

    /// Reports that the cleaner found no zone that gains space: writers that wait for it get `FsError::NoSpace` unless
    /// a write in flight may still leave space.
    fn cleaning_failed(&self);
}
