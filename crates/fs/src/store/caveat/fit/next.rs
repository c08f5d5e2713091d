//! Next fit: the first run behind the last allocation that is long enough. A run in which the last allocation ended is
//! split there.

use super::{Fit, FreeList, Run, behind};

/// Next fit.
pub(super) struct Next;

impl Fit for Next {
    fn choose(&mut self, free: &FreeList, need: u64, last: u64, _head: &dyn Fn() -> u64) -> Option<Run> {
        behind(free, need, last)
    }
}
