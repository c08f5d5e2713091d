//! Best fit: in the class that the size selects, and those above it, the smallest run that is long enough.

use super::{Fit, FreeList, Run};

/// Best fit.
pub struct Best;

impl Fit for Best {
    fn choose(&mut self, free: &FreeList, need: u64, _last: u64, _head: &dyn Fn() -> u64) -> Option<Run> {
        free.smallest(need)
    }
}
