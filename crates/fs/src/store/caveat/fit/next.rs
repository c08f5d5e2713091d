//! Next fit: the first run behind the last allocation that is long enough. A run in which the last allocation ended is
//! split there.

use super::{Fit, FreeList, behind};
use crate::block_run::BlockRun;

/// Next fit.
pub(super) struct Next;

impl Fit for Next {
    fn choose(&mut self, free: &FreeList, need: u64, last: u64, _head: &dyn Fn() -> u64) -> Option<BlockRun> {
        behind(free, need, last)
    }
}
