//! The store `strict-append` (SMRfs, Singh 2014 §2.2.2): whole files appended to bands, at the write pointers of their zones.
//!
//! A table of the bands' free capacity selects the band: the fullest that still has space for the whole file, else an
//! empty one, else several, those with most space first. A band that is being written belongs to one file until the
//! write ends. So files that are written at the same time go to different bands, up to the option `open_bands`; with
//! `open_bands=1` all files are appended to one band, one after the other. The cleaner copies the live blocks of a band
//! to other bands and resets it. One band is kept back, so that the cleaner always has space.
//!
//! Invariants:
//! 1. The blocks of a band below its write pointer are live, dead, or being written; none is beyond it.
//! 2. Live and reserved blocks never exceed the capacity of all bands but one. So every reserved block can be written
//!    once the dead blocks are cleaned away.
//! 3. No more bands are partly written than the drive allows.
//! 4. An append of a file begins only while fewer than `open_bands` bands are being written, those of the cleaner
//!    included. The append itself may take several bands.

use std::cell::RefCell;

use super::account::Account;
use super::bands::{Bands, Policy, policy};
use super::waiting::Waiting;
use super::{Allocation, Cleaning, Describe, Reservation, Store, Usage, Victim, Zoned};
use crate::block_run::BlockRun;
use crate::device::{Kind, ZoneState};
use crate::error::FsError;
use crate::executor::Local;
use crate::format::change::Extent;

/// Number of bands kept back for the cleaner.
const SPARE_BANDS: u32 = 1;
/// Largest value of the option `open_bands`.
const OPEN_BANDS_MAX: u32 = 1000;

/// The store `strict-append`: whole files appended to the zones of one zoned drive.
pub struct StrictAppend {
    bands: RefCell<Bands>,
    policy: Policy,
    /// Share of blocks, in percent: background cleaning begins when the blocks neither written nor kept back fall below
    /// it.
    threshold_percent: u64,
    /// Number of bands being written at which a further append waits (invariant 4).
    open_max: usize,
    account: Account,
    waiting: Waiting,
}

impl StrictAppend {
    /// Creates the store over the whole zones of a drive of `kind` that are in the blocks `data`. `zones` are the
    /// states that the drive reports for all its zones. `option` returns the value of an option by its key, or `None`
    /// for the default: `cleaner` (`greedy`), `clean_below` (10 percent) or `open_bands` (no limit).
    ///
    /// # Errors
    /// An option has an invalid value, or the drive has fewer zones than `data` needs. The error is a message for the
    /// user.
    ///
    /// # Panics
    /// `kind` is not [`Kind::Zoned`].
    pub fn new(
        kind: &Kind,
        data: BlockRun,
        zones: &[ZoneState],
        option: impl Fn(&str) -> Option<String>,
    ) -> Result<StrictAppend, String> {
        let Kind::Zoned { zone_blocks, active_max, .. } = *kind else { unreachable!("the caller has looked") };
        let policy = Policy::named(option("cleaner").as_deref().unwrap_or("greedy"))?;
        if policy.moves_files() {
            return Err("cleaner=files is for store log: here a file lies in as few bands as it can already".into());
        }
        let threshold_percent = super::clean_below(option("clean_below"))?;
        let open_max = super::count("open_bands", option("open_bands"), u32::MAX, OPEN_BANDS_MAX)? as usize;
        let first = (data.start / zone_blocks) as u32;
        let end = (data.end() / zone_blocks) as u32;
        if zones.len() < end as usize {
            return Err(format!("the drive reports {} zones, and the file system was made on {end}", zones.len()));
        }
        let bands = Bands::new(zone_blocks, first, &zones[first as usize..end as usize], active_max);
        Ok(StrictAppend {
            bands: RefCell::new(bands),
            policy,
            threshold_percent,
            open_max,
            account: Account::default(),
            waiting: Waiting::default(),
        })
    }

    /// Returns the number of blocks that live data may occupy (invariant 2).
    fn room(&self) -> u64 {
        let bands = self.bands.borrow();
        bands.usable().saturating_sub(u64::from(SPARE_BANDS) * bands.band_blocks())
    }

    /// Returns whether as many bands are being written as files may use at a time (invariant 4).
    fn is_at_limit(&self) -> bool {
        self.bands.borrow().written_to() >= self.open_max
    }

    fn try_allocate(&self, blocks: u64) -> Option<Vec<BlockRun>> {
        if self.is_at_limit() {
            return None;
        }
        self.bands.borrow_mut().take(blocks, SPARE_BANDS)
    }

    /// Aborts an allocation; `states` are the states of all zones, if the drive reports them.
    fn abort_append(&self, allocation: &Allocation, states: Option<&[ZoneState]>) {
        self.bands.borrow_mut().abort(&allocation.runs, states);
        self.account.abort(allocation);
        self.waiting.has_room.give();
    }
}

impl Describe for StrictAppend {
    fn name(&self) -> &'static str {
        "strict-append"
    }

    fn is_contiguous(&self) -> bool {
        false
    }

    fn band_blocks(&self) -> u64 {
        self.bands.borrow().band_blocks()
    }

    fn row_blocks(&self, _block: u64) -> u64 {
        1
    }

    fn usage(&self) -> Usage {
        let bands = self.bands.borrow();
        let usage = self.account.usage(bands.live(), self.room());
        Usage { dead: bands.dead(), free_runs: bands.empty(), ..usage }
    }
}

impl Store for StrictAppend {
    fn reserve(&self, reservation: &mut Reservation, blocks: u64) -> Result<(), FsError> {
        self.account.reserve(reservation, blocks, self.bands.borrow().live(), self.room())
    }

    fn unreserve(&self, reservation: &mut Reservation) {
        self.account.unreserve(reservation, reservation.blocks);
    }

    fn keep(&self, reservation: &mut Reservation, runs: &[BlockRun]) -> bool {
        self.account.keep(reservation, runs.iter().map(|run| run.blocks).sum());
        true
    }

    fn allocate<'a>(&'a self, reservation: &'a mut Reservation, blocks: u64) -> Local<'a, Result<Allocation, FsError>> {
        Box::pin(async move {
            self.reserve(reservation, blocks.max(reservation.blocks))?;
            let has_allocations = || self.bands.borrow().has_allocations();
            let runs =
                self.waiting.until(async || self.try_allocate(blocks), || self.is_at_limit(), has_allocations).await?;
            self.account.unreserve(reservation, blocks);
            self.account.allocate(blocks);
            Ok(Allocation { runs, kept: Vec::new(), record_blocks: 0, counted: (0, 0) })
        })
    }

    fn commit(&self, allocation: Allocation) {
        self.bands.borrow_mut().commit(&allocation.runs);
        self.waiting.has_room.give();
    }

    fn abort(&self, allocation: Allocation) {
        self.abort_append(&allocation, None);
    }

    fn claim(&self, extent: &Extent) -> Result<(), FsError> {
        let run = BlockRun { start: extent.start, blocks: u64::from(extent.blocks) };
        self.bands.borrow_mut().claim(run).map_err(|reason| FsError::format("the data device", reason))
    }

    fn free(&self, run: BlockRun) {
        self.bands.borrow_mut().free(run);
        self.account.free(run.blocks);
        // Dead blocks that were not worth cleaning may be worth it now.
        self.waiting.has_room.give();
    }

    fn zoned(&self) -> Option<&dyn Zoned> {
        Some(self)
    }

    fn cleaning(&self) -> Option<&dyn Cleaning> {
        Some(self)
    }
}

impl Zoned for StrictAppend {
    fn zones(&self) -> Vec<(u64, u64)> {
        self.bands.borrow().fill()
    }

    fn live_in(&self, zone: u32) -> u64 {
        self.bands.borrow().live_in(zone)
    }

    fn is_quiet(&self, zone: u32) -> bool {
        self.bands.borrow().is_quiet(zone)
    }

    fn abort_in_zones(&self, allocation: Allocation, states: &[ZoneState]) {
        self.abort_append(&allocation, Some(states));
    }
}

impl Cleaning for StrictAppend {
    fn claimed(&self) {
        self.bands.borrow_mut().claimed();
    }

    fn victim(&self) -> Option<Victim> {
        let mut bands = self.bands.borrow_mut();
        let zone = self.policy.choose(&bands, |_| true)?;
        Some(bands.lease_victim(zone))
    }

    fn easiest_victim(&self) -> Option<Victim> {
        let mut bands = self.bands.borrow_mut();
        policy::easiest(&bands).map(|zone| bands.lease_victim(zone))
    }

    fn allocate_for_cleaner(&self, blocks: u64) -> Local<'_, Option<Allocation>> {
        Box::pin(async move {
            let runs = self.bands.borrow_mut().take(blocks, 0)?;
            self.account.allocate(blocks);
            Some(Allocation { runs, kept: Vec::new(), record_blocks: 0, counted: (0, 0) })
        })
    }

    fn emptied(&self, zone: u32, was_reset: bool) {
        self.bands.borrow_mut().emptied(zone, was_reset);
        self.waiting.has_room.give();
    }

    fn put_off(&self, zone: u32) {
        self.bands.borrow_mut().put_off(zone);
    }

    fn put_off_none(&self) {
        self.bands.borrow_mut().put_off_none();
    }

    fn pin(&self, runs: &[BlockRun]) {
        self.bands.borrow_mut().pin(runs);
    }

    fn unpin(&self, runs: &[BlockRun]) {
        self.bands.borrow_mut().unpin(runs);
        self.waiting.has_room.give();
    }

    fn wants_cleaning(&self) -> bool {
        let bands = self.bands.borrow();
        let unwritten = bands.unwritten().saturating_sub(u64::from(SPARE_BANDS) * bands.band_blocks());
        self.waiting.is_anybody() || (bands.dead() > 0 && unwritten * 100 < bands.usable() * self.threshold_percent)
    }

    fn wants_cleaning_when_idle(&self) -> bool {
        self.wants_cleaning()
    }

    /// Returns 0: this store does not slow writers down before they must wait.
    fn shortage(&self) -> u64 {
        0
    }

    fn cleaning_needed(&self) -> Local<'_, ()> {
        Box::pin(self.waiting.cleaning_needed())
    }

    fn cleaning_failed(&self) {
        self.waiting.cleaning_failed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::ZoneCondition;
    use crate::executor::Executor;

    fn store_of_eight_zones(options: &[(&str, &str)]) -> Result<StrictAppend, String> {
        let kind = Kind::Zoned { zone_blocks: 16, zones: 8, conventional: 0, active_max: None };
        let zones = [ZoneState { written: 0, condition: ZoneCondition::Writable }; 8];
        let option = |key: &str| options.iter().find(|(other, _)| *other == key).map(|(_, value)| value.to_string());
        StrictAppend::new(&kind, BlockRun { start: 16, blocks: 112 }, &zones, option)
    }

    /// Four files that are written at the same time for a millisecond each: with a band for each, all end together;
    /// with one open band, one after the other, each behind the one before.
    #[test]
    fn files_written_at_once_take_as_many_bands_as_are_allowed() {
        const TURN_NS: u64 = 1_000_000;
        for (options, expected_bands, expected_turns) in
            [(&[][..], 4, 1), (&[("open_bands", "2")][..], 2, 2), (&[("open_bands", "1")][..], 1, 4)]
        {
            let executor = Executor::in_virtual_time();
            let store = std::rc::Rc::new(store_of_eight_zones(options).expect("the options are valid"));
            let writer = || {
                let (executor, store) = (executor.clone(), store.clone());
                async move {
                    let allocation = store.allocate(&mut Reservation::default(), 3).await.expect("there is room");
                    executor.sleep(TURN_NS).await;
                    let start = allocation.runs[0].start;
                    store.commit(allocation);
                    start
                }
            };
            let tasks: Vec<_> = (0..4).map(|_| executor.spawn(writer())).collect();
            let all = async move {
                let mut starts = Vec::new();
                for task in tasks {
                    starts.push(task.await);
                }
                starts
            };
            let starts = executor.run(all).expect("nobody waits for ever");
            let bands: std::collections::BTreeSet<u64> = starts.iter().map(|start| start / 16).collect();
            assert_eq!((bands.len(), executor.now_ns() / TURN_NS), (expected_bands, expected_turns), "{options:?}");
            if expected_bands == 1 {
                assert_eq!(starts, [16, 19, 22, 25], "each file follows the one before");
            }
            executor.shut_down();
        }
    }

    #[test]
    fn a_number_of_open_bands_that_is_none_is_refused() {
        for value in ["0", "many", "1001"] {
            let refused = store_of_eight_zones(&[("open_bands", value)]).err();
            assert_eq!(refused.as_deref(), Some(&*format!("open_bands={value}: a number from 1 to 1000")));
        }
    }

    /// A zone with a pinned run is no victim, even if emptying it would gain space.
    #[test]
    fn a_pinned_zone_is_not_emptied() {
        let store = store_of_eight_zones(&[]).expect("it fits");
        let executor = Executor::in_virtual_time();
        let task = async move {
            let allocation = store.allocate(&mut Reservation::default(), 12).await.expect("there is room");
            let run = allocation.runs[0];
            store.pin(&[run]);
            store.commit(allocation);
            store.free(BlockRun { start: run.start, blocks: 5 });
            assert!(!store.is_quiet(1));
            assert_eq!((store.victim(), store.easiest_victim()), (None, None));
            store.unpin(&[run]);
            assert!(store.is_quiet(1));
            let expected = Victim { zone: 1, run: BlockRun { start: 16, blocks: 12 }, live: 7 };
            assert_eq!(store.victim(), Some(expected));
        };
        executor.run(task).expect("nobody waits for ever");
        executor.shut_down();
    }
}
