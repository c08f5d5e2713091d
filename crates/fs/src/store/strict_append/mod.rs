//! The store `strict-append` (SMRfs, Singh 2014 §2.2.2): whole files appended to bands, at the pointers of their zones.
//!
//! A table of the bands' free capacity picks the band: the fullest that still has room for the whole file, else an empty
//! one, else several, the roomiest first. A band that is being written to belongs to one file until that is done. The
//! cleaner copies what is live out of a band and resets it; one band is kept back for it, so that it always can.
//!
//! Invariants:
//! 1. A band's blocks up to its pointer are live, dead, or being written; none beyond is.
//! 2. Live and reserved blocks are no more than the bands but one can hold. So whatever is reserved can be written once the
//!    dead are cleaned away.
//! 3. No more bands are partly written than the drive allows.

mod bands;
mod policy;

use std::cell::{Cell, RefCell};

pub use self::bands::{Band, Bands};
pub use self::policy::{Policy, ALL as POLICIES};
use super::{Held, Lease, Local, Run, Store, Usage, Victim};
use crate::clock::{first_of, Signal};
use crate::device::{Kind, ZoneState};
use crate::error::FsError;
use crate::format::change::Extent;

/// Bands kept back for the cleaner.
const SPARE_BANDS: u32 = 1;

/// The store.
pub struct StrictAppend {
    bands: RefCell<Bands>,
    policy: Policy,
    /// Cleaning in the background begins when less than this share of the blocks is neither written nor kept back.
    threshold_percent: u64,
    reserved: Cell<u64>,
    allocated: Cell<u64>,
    freed: Cell<u64>,
    /// A band was given back or emptied.
    has_room: Signal,
    needs_cleaning: Signal,
    is_asked: Cell<bool>,
    cleaning_fails: Signal,
    /// How often the cleaner found nothing to gain.
    gave_up: Cell<u64>,
    waiting: Cell<u32>,
}

impl StrictAppend {
    /// Over the zones of `kind` that lie in `data`, which report themselves as `zones`.
    pub fn new(
        kind: &Kind,
        data: Run,
        zones: &[ZoneState],
        option: impl Fn(&str) -> Option<String>,
    ) -> Result<StrictAppend, String> {
        let Kind::Zoned { zone_blocks, active_max, .. } = *kind else { unreachable!("the caller has looked") };
        let policy = policy::named(option("cleaner").as_deref().unwrap_or("greedy"))?;
        let threshold_percent = match option("clean_below") {
            None => 10,
            Some(text) => match text.trim_end_matches('%').parse() {
                Ok(percent) if percent <= 90 => percent,
                _ => return Err(format!("clean_below={text}: a percentage from 0 to 90")),
            },
        };
        let first = (data.start / zone_blocks) as u32;
        let end = (data.end() / zone_blocks) as u32;
        if zones.len() < end as usize {
            return Err(format!("it reports {} zones, and the file system was made on {end}", zones.len()));
        }
        let bands = Bands::new(zone_blocks, first, &zones[first as usize..end as usize], active_max);
        Ok(StrictAppend {
            bands: RefCell::new(bands),
            policy,
            threshold_percent,
            reserved: Cell::new(0),
            allocated: Cell::new(0),
            freed: Cell::new(0),
            has_room: Signal::default(),
            needs_cleaning: Signal::default(),
            is_asked: Cell::new(false),
            cleaning_fails: Signal::default(),
            gave_up: Cell::new(0),
            waiting: Cell::new(0),
        })
    }

    /// Blocks that live data may take (invariant 2).
    fn room(&self) -> u64 {
        let bands = self.bands.borrow();
        bands.usable().saturating_sub(u64::from(SPARE_BANDS) * bands.band_blocks())
    }

    fn try_allocate(&self, blocks: u64) -> Option<Vec<Run>> {
        self.bands.borrow_mut().take(blocks, SPARE_BANDS)
    }
}

impl Store for StrictAppend {
    fn name(&self) -> &'static str {
        "strict-append"
    }

    fn is_contiguous(&self) -> bool {
        false
    }

    fn band_blocks(&self) -> u64 {
        self.bands.borrow().band_blocks()
    }

    fn reserve(&self, held: &mut Held, blocks: u64) -> Result<(), FsError> {
        let others = self.reserved.get() - held.blocks;
        if blocks > held.blocks && self.bands.borrow().live() + others + blocks > self.room() {
            return Err(FsError::NoSpace);
        }
        self.reserved.set(others + blocks);
        held.blocks = blocks;
        Ok(())
    }

    fn unreserve(&self, held: &mut Held) {
        self.reserved.set(self.reserved.get() - held.blocks);
        held.blocks = 0;
    }

    fn allocate<'a>(&'a self, held: &'a mut Held, blocks: u64) -> Local<'a, Result<Lease, FsError>> {
        Box::pin(async move {
            self.reserve(held, blocks)?;
            let mut gave_up = self.gave_up.get();
            loop {
                let (room, failed) = (self.has_room.next(), self.cleaning_fails.next());
                if let Some(runs) = self.try_allocate(blocks) {
                    self.unreserve(held);
                    self.allocated.set(self.allocated.get() + blocks);
                    return Ok(Lease { runs, kept: Vec::new() });
                }
                let has_failed = self.gave_up.get() > gave_up;
                if has_failed && !self.bands.borrow().has_leases() {
                    return Err(FsError::NoSpace);
                }
                if has_failed {
                    // Somebody writes still: what that leaves may be worth cleaning.
                    room.await;
                    gave_up = self.gave_up.get();
                } else {
                    self.waiting.set(self.waiting.get() + 1);
                    self.is_asked.set(true);
                    self.needs_cleaning.give();
                    first_of(room, failed).await;
                    self.waiting.set(self.waiting.get() - 1);
                }
            }
        })
    }

    fn allocate_for_cleaner(&self, blocks: u64) -> Option<Lease> {
        let runs = self.bands.borrow_mut().take(blocks, 0)?;
        self.allocated.set(self.allocated.get() + blocks);
        Some(Lease { runs, kept: Vec::new() })
    }

    fn settle(&self, lease: Lease) {
        self.bands.borrow_mut().settle(&lease.runs);
        self.has_room.give();
    }

    fn abandon(&self, lease: Lease, zones: Option<&[ZoneState]>) {
        self.bands.borrow_mut().abandon(&lease.runs, zones);
        self.has_room.give();
    }

    fn claim(&self, extent: &Extent) -> Result<(), FsError> {
        let run = Run { start: extent.start, blocks: u64::from(extent.blocks) };
        self.bands.borrow_mut().claim(run).map_err(|reason| FsError::format("the data device", reason))
    }

    fn claimed(&self) {
        self.bands.borrow_mut().claimed();
    }

    fn free(&self, run: Run) {
        self.bands.borrow_mut().free(run);
        self.freed.set(self.freed.get() + run.blocks);
        // What was dead already may be worth cleaning now.
        self.has_room.give();
    }

    fn usage(&self) -> Usage {
        let bands = self.bands.borrow();
        let (live, room) = (bands.live(), self.room());
        Usage {
            blocks: room,
            live,
            free: room.saturating_sub(live + self.reserved.get()),
            dead: bands.dead(),
            unusable: 0,
            free_runs: bands.empty(),
            longest: room.saturating_sub(live + self.reserved.get()),
            allocated: self.allocated.get(),
            freed: self.freed.get(),
        }
    }

    fn victim(&self, now_ns: u64) -> Option<Victim> {
        let mut bands = self.bands.borrow_mut();
        let zone = self.policy.choose(&bands, now_ns)?;
        Some(bands.lease_victim(zone))
    }

    fn emptied(&self, zone: u32, was_reset: bool) {
        self.bands.borrow_mut().emptied(zone, was_reset);
        self.has_room.give();
    }

    fn wants_cleaning(&self) -> bool {
        let bands = self.bands.borrow();
        let unwritten = bands.unwritten().saturating_sub(u64::from(SPARE_BANDS) * bands.band_blocks());
        self.waiting.get() > 0 || (bands.dead() > 0 && unwritten * 100 < bands.usable() * self.threshold_percent)
    }

    fn cleaning_needed(&self) -> Local<'_, ()> {
        Box::pin(async move {
            loop {
                let asked = self.needs_cleaning.next();
                if self.is_asked.replace(false) {
                    return;
                }
                asked.await;
            }
        })
    }

    fn cleaning_failed(&self) {
        self.gave_up.set(self.gave_up.get() + 1);
        self.cleaning_fails.give();
    }

    fn live_in(&self, zone: u32) -> u64 {
        self.bands.borrow().live_in(zone)
    }

    fn zones(&self) -> Vec<(u64, u64)> {
        self.bands.borrow().fill()
    }
}
