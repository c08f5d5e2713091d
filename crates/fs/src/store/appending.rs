//! Several appends of a file in flight at the same time.

use super::{Allocation, RecordContext, Records, Reservation};
use crate::executor::Local;

/// A store that accepts an append of a file while earlier appends of the file are in flight, so that the device always
/// has the next append queued. On other stores each append ends before the next one is allocated.
pub trait Appending: Records {
    /// Allocates up to `blocks` blocks of 4 KiB for the next append of a file while its append `previous` is in flight.
    /// The blocks follow those of `previous` if that stripe group has space, else they are in another group.
    /// `reservation` is enlarged if necessary. `context` has the records of all `blocks` blocks, in order.
    ///
    /// Returns `None` if no blocks are available at once, if space is short, or if another task waits for space. The
    /// caller then waits for its writes in flight and calls [`Records::allocate_with_records`].
    fn allocate_behind<'a>(
        &'a self,
        previous: &'a Allocation,
        reservation: &'a mut Reservation,
        blocks: u64,
        context: &'a RecordContext,
    ) -> Local<'a, Option<Allocation>>;
}
