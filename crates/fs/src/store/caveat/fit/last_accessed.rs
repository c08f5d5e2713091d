//! Last accessed position fit: the first run that is long enough behind the disk's head, whether its last access was a
//! read or a write. A run that contains the head position is split there.

use super::{Fit, FreeList, behind};
use crate::block_run::BlockRun;

/// Last accessed position fit.
pub(super) struct LastAccessed;

impl Fit for LastAccessed {
    fn choose(&mut self, free: &FreeList, need: u64, _last: u64, head: &dyn Fn() -> u64) -> Option<BlockRun> {
        behind(free, need, head())
    }
}
