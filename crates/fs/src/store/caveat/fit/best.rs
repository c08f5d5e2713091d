//! Best fit: the shortest run that is long enough, in the class selected by the size and the classes above.

use super::{Fit, FreeList};
use crate::block_run::BlockRun;

/// Best fit.
pub(super) struct Best;

impl Fit for Best {
    fn choose(&mut self, free: &FreeList, need: u64, _last: u64, _head: &dyn Fn() -> u64) -> Option<BlockRun> {
        free.smallest(need)
    }
}
