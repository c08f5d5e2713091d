//! Several appends of a file in flight at the same time.

use super::{Allocation, RecordContext, Records, Reservation};
use crate::executor::Local;

/// A store that accepts an append of a file while earlier appends of the file are in flight, so that the device always
/// has the next append queued. On other stores each append ends before the next one is allocated.
pub trait Appending: Records {
    /// Allocates blocks for the next append of a file while its append `previous` is in flight, without waiting for it.
    /// The blocks follow those of `previous` if there is space in that stripe group. The other arguments are those of
    /// [`Records::allocate_with_records`].
    ///
    /// Returns `None` if no blocks are available at once, or if another task waits for space. The caller then waits for
    /// its writes in flight and calls [`Records::allocate_with_records`].
    fn allocate_behind<'a>(
        &'a self,
        previous: &'a Allocation,
        reservation: &'a mut Reservation,
        blocks: u64,
        context: &'a RecordContext,
    ) -> Local<'a, Option<Allocation>>;
}
