//! Several appends of a file in flight at the same time.

use super::{Allocation, RecordContext, Records, Reservation};
use crate::executor::Local;

/// A store that accepts an append of a file while earlier appends of the file are in flight, so that the device always
/// has the next append queued. On other stores each append ends before the next one is allocated.
pub trait Appending: Records {
    /// Like [`Records::allocate_with_records`], but for a file whose allocation `previous` has been submitted to the
    /// device and is in flight, and without waiting. Allocates blocks after `previous`, or elsewhere at the end of its
    /// group. Returns `None` if no blocks are available at once or another task waits for space: the caller then waits
    /// for its writes in flight and calls [`Records::allocate_with_records`].
    fn allocate_behind<'a>(
        &'a self,
        previous: &'a Allocation,
        reservation: &'a mut Reservation,
        blocks: u64,
        context: &'a RecordContext,
    ) -> Local<'a, Option<Allocation>>;
}
