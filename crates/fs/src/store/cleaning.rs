//! Cleaning: a zone is emptied, so that the dead blocks in it can be written again.

use super::{Allocation, WholeFiles, Zoned};
use crate::block_run::BlockRun;
use crate::executor::Local;

/// A zone that the cleaner is about to empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Victim {
    /// Number of the zone.
    pub zone: u32,
    /// Blocks of the zone.
    pub run: BlockRun,
    /// Number of live blocks in the zone.
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
    /// Ends the marking of live blocks by [`super::Store::claim`]: for the cleaning policy, these blocks are older than
    /// all blocks that are written from now on.
    fn claimed(&self);

    /// Returns a zone to be emptied, by the store's cleaning policy; `None` if emptying gains no space in any zone.
    fn victim(&self) -> Option<Victim>;

    /// Like [`Cleaning::victim`], but returns the zone with the fewest live blocks: for when the copies of the other
    /// victim do not fit.
    fn easiest_victim(&self) -> Option<Victim>;

    /// Returns access to the limits on moving whole files, if the cleaning policy moves whole files.
    fn whole_files(&self) -> Option<&dyn WholeFiles> {
        None
    }

    /// Allocates blocks for copies by the cleaner, or for the first part of them, from the space kept back for the
    /// cleaner. A store with [`super::Records`] writes no record for these blocks.
    fn allocate_for_cleaner(&self, blocks: u64) -> Local<'_, Option<Allocation>>;

    /// Ends the emptying of a zone, which was reset if `was_reset`.
    fn emptied(&self, zone: u32, was_reset: bool);

    /// Defers a zone after a device error while it was emptied. If such errors go on, other zones are chosen first.
    fn put_off(&self, zone: u32);

    /// Allows one more attempt for each deferred zone, because no other zone is left.
    fn put_off_none(&self);

    /// Keeps the zones of these runs from being emptied until [`Cleaning::unpin`]: their data are written, but no file
    /// refers to them yet.
    fn pin(&self, runs: &[BlockRun]);

    /// Undoes one [`Cleaning::pin`].
    fn unpin(&self, runs: &[BlockRun]);

    /// Returns whether to clean in the background now, although writes may arrive.
    fn wants_cleaning(&self) -> bool;

    /// Returns whether to clean in the background if no write has arrived for some time.
    fn wants_cleaning_when_idle(&self) -> bool;

    /// Returns how close the store is to having only the zones kept back, in thousandths. At 0 writers are not slowed
    /// down; at 1000 writers must wait for the cleaner. Returns 0 if cleaning would gain nothing.
    fn shortage(&self) -> u64;

    /// Waits until a writer needs space that only cleaning can make.
    fn cleaning_needed(&self) -> Local<'_, ()>;

    /// Reports that the cleaner found no zone worth emptying: waiting writers must give up.
    fn cleaning_failed(&self);
}
