//! The store `caveat` (Singh 2014 §4): contiguous files on a disk where a write destroys the blocks behind it.
//!
//! A file of n blocks is allocated n + DID blocks. The DID blocks behind the file, its footer, absorb the damage of the
//! writes, and are freed when the writes have succeeded. There is no cleaner: freed runs coalesce, and that is all the
//! cleaning there is (§3.4). The [`fit`] algorithm chooses the run for a file. With `extents=on` (the paper's §7) a
//! file may lie in several pieces, each with its own footer while it is written.
//!
//! Invariants:
//! 1. Free runs, live blocks, and allocated or reserved runs cover the data blocks exactly once.
//! 2. A write into an allocated run destroys blocks of that run only, its footer included.

pub mod fit;
mod free_list;

use std::cell::RefCell;

use self::fit::Fit;
pub use self::free_list::FreeList;
use super::{Allocation, Describe, Places, Reservation, Store, Usage};
use crate::block_run::BlockRun;
use crate::device::Device;
use crate::error::FsError;
use crate::executor::Local;
use crate::format::change::Extent;

struct State {
    free: FreeList,
    fit: Box<dyn Fit>,
    live: u64,
    allocated: u64,
    freed: u64,
    /// Block behind the last allocation.
    last: u64,
}

/// The store `caveat`, for a disk without zones on which a write destroys blocks after it. Files are contiguous unless
/// the option `extents=on` allows several extents.
pub struct Caveat {
    device: Device,
    data: BlockRun,
    isolation: u64,
    in_pieces: bool,
    state: RefCell<State>,
}

impl Caveat {
    /// Creates the store over the blocks `data` of `device`; all of them are free. `isolation` is the disk's drive
    /// isolation distance (DID): no write destroys a block more than so many blocks after its end. `option` returns the
    /// value of an option by its key, or `None` for the default: `fit` (`best`) or `extents` (`off`).
    ///
    /// # Errors
    /// An option has an invalid value. The error is a message for the user.
    pub fn new(
        device: Device,
        data: BlockRun,
        isolation: u64,
        option: impl Fn(&str) -> Option<String>,
    ) -> Result<Caveat, String> {
        let fit = fit::named(option("fit").as_deref().unwrap_or("best"))?;
        let in_pieces = match option("extents").as_deref() {
            None | Some("off") => false,
            Some("on") => true,
            Some(other) => return Err(format!("extents={other}: on or off")),
        };
        let mut free = FreeList::default();
        free.insert(data);
        let state = RefCell::new(State { free, fit, live: 0, allocated: 0, freed: 0, last: data.start });
        Ok(Caveat { device, data, isolation, in_pieces, state })
    }

    /// Allocates a run of `need` blocks; `None` if no free run is long enough.
    fn take(&self, need: u64) -> Option<BlockRun> {
        let mut state = self.state.borrow_mut();
        let State { free, fit, last, .. } = &mut *state;
        let found = fit.choose(free, need, *last, &|| self.device.head_position())?;
        assert!(found.blocks >= need, "{found:?} is too short for {need} blocks");
        let taken = BlockRun { start: found.start, blocks: need };
        free.remove(taken);
        state.last = taken.end() - self.isolation;
        Some(taken)
    }

    /// Allocates runs for `blocks` of data, footers included.
    fn take_all(&self, blocks: u64) -> Option<Vec<BlockRun>> {
        if let Some(run) = self.take(blocks + self.isolation) {
            return Some(vec![run]);
        }
        if !self.in_pieces {
            return None;
        }
        let (mut runs, mut left) = (Vec::new(), blocks);
        while left > 0 {
            let longest = self.state.borrow().free.longest();
            let piece = longest.saturating_sub(self.isolation).min(left);
            let run = if piece == 0 { None } else { self.take(piece + self.isolation) };
            let Some(run) = run else {
                self.give_back(&runs);
                return None;
            };
            runs.push(run);
            left -= piece;
        }
        runs.sort();
        Some(runs)
    }

    fn give_back(&self, runs: &[BlockRun]) {
        let mut state = self.state.borrow_mut();
        runs.iter().for_each(|run| state.free.insert(*run));
    }

    /// Returns the runs of free blocks, in ascending order; adjacent runs are merged. Reserved blocks are not free.
    pub fn free_runs(&self) -> Vec<BlockRun> {
        self.state.borrow().free.runs().collect()
    }
}

impl Describe for Caveat {
    fn name(&self) -> &'static str {
        "caveat"
    }

    fn is_contiguous(&self) -> bool {
        !self.in_pieces
    }

    fn band_blocks(&self) -> u64 {
        u64::MAX
    }

    fn row_blocks(&self, _block: u64) -> u64 {
        1
    }

    fn usage(&self) -> Usage {
        let state = self.state.borrow();
        let usable = |run: BlockRun| run.blocks.saturating_sub(self.isolation);
        let unusable = state.free.runs().filter(|run| run.blocks < self.isolation);
        Usage {
            blocks: self.data.blocks,
            live: state.live,
            free: state.free.runs().map(usable).sum(),
            dead: 0,
            unusable: unusable.map(|run| run.blocks).sum(),
            free_runs: state.free.runs().count() as u64,
            longest: state.free.longest().saturating_sub(self.isolation),
            allocated: state.allocated,
            records: (0, 0),
            freed: state.freed,
        }
    }
}

impl Store for Caveat {
    fn reserve(&self, reservation: &mut Reservation, blocks: u64) -> Result<(), FsError> {
        if reservation.blocks == blocks {
            return Ok(());
        }
        // The present reservation is released first: its blocks may be part of the new one.
        self.give_back(&reservation.runs);
        let taken = if blocks == 0 { Some(Vec::new()) } else { self.take_all(blocks) };
        match taken {
            Some(runs) => {
                *reservation = Reservation { blocks, runs };
                Ok(())
            }
            None => {
                let mut state = self.state.borrow_mut();
                reservation.runs.iter().for_each(|run| state.free.remove(*run));
                Err(FsError::NoSpace)
            }
        }
    }

    fn unreserve(&self, reservation: &mut Reservation) {
        self.give_back(&reservation.runs);
        *reservation = Reservation::default();
    }

    fn keep(&self, reservation: &mut Reservation, runs: &[BlockRun]) -> bool {
        let mut kept: Vec<BlockRun> = Vec::new();
        for run in runs {
            match kept.last_mut().filter(|last| last.end() == run.start) {
                Some(last) => last.blocks += run.blocks,
                None => kept.push(*run),
            }
        }
        kept.iter_mut().for_each(|run| run.blocks += self.isolation);
        let mut state = self.state.borrow_mut();
        for (number, run) in kept.iter().enumerate() {
            if run.end() > self.data.end() || !state.free.contains(*run) {
                kept[..number].iter().for_each(|taken| state.free.insert(*taken));
                return false;
            }
            state.free.remove(*run);
        }
        *reservation = Reservation { blocks: runs.iter().map(|run| run.blocks).sum(), runs: kept };
        true
    }

    fn allocate<'a>(&'a self, reservation: &'a mut Reservation, blocks: u64) -> Local<'a, Result<Allocation, FsError>> {
        Box::pin(async move {
            self.reserve(reservation, blocks)?;
            let reserved = std::mem::take(reservation);
            let split = |run: &BlockRun| BlockRun { start: run.start, blocks: run.blocks - self.isolation };
            let runs: Vec<BlockRun> = reserved.runs.iter().map(split).collect();
            let footer = |run: &BlockRun| BlockRun { start: run.end() - self.isolation, blocks: self.isolation };
            let kept = reserved.runs.iter().map(footer).filter(|footer| footer.blocks > 0).collect();
            self.state.borrow_mut().allocated += blocks;
            Ok(Allocation { runs, kept, record_blocks: 0, counted: (0, 0) })
        })
    }

    fn commit(&self, allocation: Allocation) {
        self.give_back(&allocation.kept);
        self.state.borrow_mut().live += allocation.blocks();
    }

    fn abort(&self, allocation: Allocation) {
        self.give_back(&allocation.kept);
        self.give_back(&allocation.runs);
        self.state.borrow_mut().allocated -= allocation.blocks();
    }

    fn claim(&self, extent: &Extent) -> Result<(), FsError> {
        let run = BlockRun { start: extent.start, blocks: u64::from(extent.blocks) };
        let mut state = self.state.borrow_mut();
        if run.start < self.data.start || run.end() > self.data.end() || !state.free.contains(run) {
            let name = self.device.name();
            return Err(FsError::format(name, format!("blocks {} to {} belong to two files", run.start, run.end())));
        }
        state.free.remove(run);
        state.live += run.blocks;
        Ok(())
    }

    fn free(&self, run: BlockRun) {
        let mut state = self.state.borrow_mut();
        state.free.insert(run);
        state.live -= run.blocks;
        state.freed += run.blocks;
    }

    fn places(&self) -> Option<&dyn Places> {
        Some(self)
    }
}

impl Places for Caveat {
    fn places_of(&self, reservation: &Reservation) -> Vec<BlockRun> {
        reservation.runs.iter().map(|run| BlockRun { start: run.start, blocks: run.blocks - self.isolation }).collect()
    }
}
