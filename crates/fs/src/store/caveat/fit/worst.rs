//! Worst fit: the longest run of the class selected by the size. If that run is too short, the longest run of the next
//! class whose longest run is long enough.

use super::super::free_list::class_of;
use super::{Fit, FreeList};
use crate::block_run::BlockRun;

/// Worst fit.
pub(super) struct Worst;

impl Fit for Worst {
    fn choose(&mut self, free: &FreeList, need: u64, _last: u64, _head: &dyn Fn() -> u64) -> Option<BlockRun> {
        let last = class_of(free.longest());
        let mut classes = (class_of(need)..=last).filter_map(|class| free.last_of_class(class));
        classes.find(|run| run.blocks >= need)
    }
}
