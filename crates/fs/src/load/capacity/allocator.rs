//! The ageing of a caveat disk with its allocation algorithm alone: no file system, no disk. It ends where the ageing
//! of the file system ends (by test), and takes a small part of the time.

use std::collections::BTreeMap;

use super::super::age::{Aged, Step, Steps};
use super::{Capacity, Trial, not_made};
use crate::block_run::BlockRun;
use crate::load::LoadError;
use crate::store::Usage;
use crate::store::caveat::FreeList;
use crate::store::caveat::fit::{self, Fit};

/// The blocks of a caveat disk: free runs, and the places of files.
struct Blocks {
    isolation: u64,
    free: FreeList,
    fit: Box<dyn Fit>,
    places: BTreeMap<u64, BlockRun>,
    /// Block after the data written last.
    last: u64,
}

impl Blocks {
    /// Allocates a file and its footer, and frees the footer again. Returns whether there was a run for them.
    fn create(&mut self, file: u64, blocks: u64) -> bool {
        let need = blocks.saturating_add(self.isolation);
        let last = self.last;
        let Some(found) = self.fit.choose(&self.free, need, last, &|| last) else { return false };
        let place = BlockRun { start: found.start, blocks };
        // The footer is free before the next operation, so it stays in the list.
        self.free.remove(place);
        self.places.insert(file, place);
        self.last = place.end();
        true
    }

    fn delete(&mut self, file: u64) {
        self.free.insert(self.places.remove(&file).expect("a live file has a place"));
    }

    fn usage(&self, blocks: u64) -> Usage {
        let runs = || self.free.runs();
        let unusable = runs().filter(|run| run.blocks < self.isolation).map(|run| run.blocks).sum();
        let live = self.places.values().map(|run| run.blocks).sum();
        Usage { blocks, live, unusable, free_runs: runs().count() as u64, ..Usage::default() }
    }
}

/// Ages a new caveat disk for contiguous files, as [`run`](super::run) describes.
pub(super) fn run(asked: &Capacity, extra: u64, watch: impl Fn(u64) -> bool) -> Result<Trial, LoadError> {
    debug_assert!(!asked.in_pieces, "files in several extents need the file system");
    let all = BlockRun { start: 0, blocks: asked.blocks_with(extra) };
    let mut free = FreeList::default();
    free.insert(all);
    let (isolation, fit) = (asked.isolation, fit::named(&asked.fit).map_err(not_made)?);
    let mut blocks = Blocks { isolation, free, fit, places: BTreeMap::new(), last: 0 };
    let mut aged = Aged::default();
    let mut steps = Steps::new(&asked.age);
    for step in steps.by_ref() {
        match step {
            Step::Create { file, blocks: of_file } => {
                if !blocks.create(file, of_file) {
                    aged.full_at = Some(aged.operations);
                    break;
                }
            }
            Step::Delete { file, .. } => blocks.delete(file),
        }
        aged.count(step);
        if !watch(aged.operations) {
            aged.is_interrupted = true;
            break;
        }
    }
    aged.steady_after = steps.steady_after();
    Ok(Trial { extra, aged, usage: blocks.usage(all.blocks) })
}
