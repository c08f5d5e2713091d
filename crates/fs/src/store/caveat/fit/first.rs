//! First fit: the run with the lowest address that is long enough.

use super::{Fit, FreeList};
use crate::block_run::BlockRun;

/// First fit.
pub(super) struct First;

impl Fit for First {
    fn choose(&mut self, free: &FreeList, need: u64, _last: u64, _head: &dyn Fn() -> u64) -> Option<BlockRun> {
        free.runs().find(|run| run.blocks >= need)
    }
}
