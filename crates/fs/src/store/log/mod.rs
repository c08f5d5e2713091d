//! The store `log` (HiSMRfs, Jin 2014 §II.D.2): data are appended to stripe groups of an array, which may be a single drive.
//!
//! Files that are written at the same time go to different groups, as many as may be open. A file that fits nowhere whole, and
//! for which no further group may be opened, goes on in the next group. Small files go to narrow groups, one data zone and its
//! parity, where that takes fewer blocks than a whole row of a wide one; the cleaner copies them out into wide ones. What
//! the cleaner copies lies by itself, as far as open groups allow: it lives longer than what is new.
//!
//! ```text
//!   no group ─► open ─► full, or sealed ─► emptied by the cleaner ─► no group
//!                 └── each takes one writer at a time, at its pointer; that one may append on while what it appended is under way
//! ```
//!
//! Invariants:
//! 1. Live and reserved blocks are no more than wide groups could hold on the drives that are there, less those kept back and
//!    what filling up rows may cost. So whatever is reserved can be written once the dead are cleaned away.
//! 2. A writer leaves so many groups unopened as are kept back; the cleaner may open those. What it has opened is its own
//!    until the zone that it empties is empty.
//! 3. A group that is opened is in [`Store::drain_changes`] before anybody is given blocks of it.
//! 4. A writer appends on behind what it has under way only while nobody else waits for a group.
//! 5. No more groups are open than [`LogStore::new`] was told, nor than a drive allows.

mod records;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

pub use self::records::REACH;
use self::records::{GroupRecords, Plan, blocks_for_copies};
use super::account::Account;
use super::bands::{Bands, Policy, policy};
use super::waiting::Waiting;
use super::{FilesBudget, Held, Lease, Local, Run, Store, Told, Usage, Victim};
use crate::array::Array;
use crate::clock::Gate;
use crate::device::ZoneState;
use crate::error::FsError;
use crate::format::change::{Change, Extent, GroupLayout};

/// Groups kept back for the cleaner if nothing else is said.
const KEPT_BACK: u32 = 1;
/// Blocks of an append of a file if nothing else is said: no limit.
const APPEND_BLOCKS: u32 = u32::MAX;
/// Groups that are open at a time if nothing else is said, that of the cleaner included.
const OPEN_GROUPS: u32 = 5;

/// Wide groups that must still be there after a narrow one is opened, besides those kept back.
const NARROW_LEAVE: u32 = 2;

/// Writers are slowed down when less than one in `LOW_SHARE` groups can still be opened; that threshold is half a group
/// at least, and `LOW_MAX` groups at most.
const LOW_SHARE: u64 = 192;
const LOW_MAX: u64 = 8;

/// Files are moved as a whole to empty a zone only as long as a `GAINED_SHARE`-th of the zone is still gained; where
/// there is much room, as long as they take no more than an `AMPLE_SHARE`-th of what can be opened.
const GAINED_SHARE: u64 = 4;
const AMPLE_SHARE: u64 = 4;
/// While writers may soon have to wait, only files in so few pieces are moved as a whole: the seeks to them take half a second.
const PIECES_IN_HASTE: usize = 32;

/// Who asks for room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Who {
    File,
    Cleaner,
}

/// What is done to give somebody room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Blocks of this group.
    Take(u32),
    /// A group of so many data zones is opened.
    Open(usize),
    /// There is none now.
    Nothing,
}

/// The store.
pub struct LogStore {
    array: Array,
    bands: RefCell<Bands>,
    policy: Policy,
    /// Cleaning in the background begins when less than this share of the blocks is neither written nor kept back.
    threshold_percent: u64,
    kept_back: u32,
    open_max: usize,
    /// Blocks that a file appends at a time, at most: a unit of records tells of fewer than that in any case, unless it is set.
    append_blocks: u64,
    /// Blocks that live data may take (invariant 1).
    room: Cell<u64>,
    /// With fewer blocks than this to write, besides groups kept back, cleaning begins and writers are slowed down.
    low: Cell<u64>,
    /// The widths of all groups that the drives could hold, the widest first, each once. A group of another width is
    /// only for small files: it can be opened where drives just happen to have unequal room, and would leave less room
    /// than is reckoned with.
    widths: RefCell<Vec<usize>>,
    account: Account,
    /// [`Array::losses`] when that was last reckoned.
    losses: Cell<u64>,
    opening: Gate,
    /// Zones being emptied.
    victims: Cell<u32>,
    /// Whether the cleaner waits for a writer to let go of a group.
    cleaner_waits: Cell<bool>,
    changes: RefCell<Vec<Change>>,
    waiting: Waiting,
    /// Of groups that are appended to.
    records: RefCell<BTreeMap<u32, GroupRecords>>,
    unrecorded: RefCell<Vec<Run>>,
}

impl LogStore {
    /// Over the groups of `array`.
    pub fn new(array: Array, option: impl Fn(&str) -> Option<String>) -> Result<LogStore, String> {
        let policy = Policy::named(option("cleaner").as_deref().unwrap_or("cost-benefit"))?;
        let threshold_percent = super::clean_below(option("clean_below"))?;
        let count = |key: &str, usual: u32, most: u32| match option(key) {
            None => Ok(usual),
            Some(text) => match text.parse() {
                Ok(count) if (1..=most).contains(&count) => Ok(count),
                _ => Err(format!("{key}={text}: a number from 1 to {most}")),
            },
        };
        let kept_back = count("kept_back", KEPT_BACK, 1000)?;
        let open_max = count("open_groups", OPEN_GROUPS, 1000)?.min(array.active_max().unwrap_or(u32::MAX));
        let append_blocks = u64::from(count("append_blocks", APPEND_BLOCKS, APPEND_BLOCKS)?);
        let shape = array.shape();
        let slack = lost_to_rows(u64::from(shape.width));
        let mut bands = Bands::places(shape.stride(), shape.groups, slack, blocks_for_copies);
        for (number, layout, state) in array.groups() {
            let (capacity, row) = size_of(&array, &layout);
            bands.put(number, (capacity, row, capacity), &state);
        }
        let store = LogStore {
            array,
            bands: RefCell::new(bands),
            policy,
            threshold_percent,
            kept_back,
            open_max: open_max as usize,
            append_blocks,
            room: Cell::new(0),
            low: Cell::new(1),
            widths: RefCell::default(),
            account: Account::default(),
            losses: Cell::new(0),
            opening: Gate::default(),
            victims: Cell::new(0),
            cleaner_waits: Cell::new(false),
            changes: RefCell::default(),
            waiting: Waiting::default(),
            records: RefCell::default(),
            unrecorded: RefCell::default(),
        };
        store.measure();
        Ok(store)
    }

    /// Reckons how much may be live on the drives that are there.
    fn measure(&self) {
        let rows = self.array.shape().rows();
        let capacity = |width: &usize| {
            let (width, all) = (*width as u64, *width as u64 * rows);
            all.saturating_sub(lost_to_rows(width) + blocks_for_copies(all))
        };
        let formable = self.array.formable();
        // The widest come first, and it is one of those that is kept back.
        self.room.set(formable.iter().skip(self.kept_back as usize).map(capacity).sum());
        let group = formable.first().map_or(0, |width| *width as u64 * rows);
        self.low.set((formable.len() as u64 * group / LOW_SHARE).clamp(group / 2, LOW_MAX * group));
        let mut widths = formable;
        widths.dedup();
        *self.widths.borrow_mut() = widths;
        let mut bands = self.bands.borrow_mut();
        for (number, layout, _) in self.array.groups() {
            bands.set_worth(number, self.worth_of(u64::from(layout.width)));
        }
    }

    /// Blocks that groups of the widest kind could hold on the zones of one of `width`, where that is not one of the widths that
    /// are reckoned with; else what it holds.
    fn worth_of(&self, width: u64) -> u64 {
        let shape = self.array.shape();
        let (widest, parity, capacity) = (self.widest() as u64, u64::from(shape.parity), width * shape.rows());
        if self.widths.borrow().contains(&(width as usize)) {
            return capacity;
        }
        ((width + parity) * shape.rows() * widest / (widest + parity)).max(capacity)
    }

    /// The data zones of the groups that are kept back: as many as can be.
    fn widest(&self) -> usize {
        self.widths.borrow().first().copied().unwrap_or(1)
    }

    /// Whether `blocks` are for a narrow group: they take fewer there than in a row of a wide one, there is room enough, and the
    /// cleaner gains something by emptying one that is full.
    fn is_narrow(&self, blocks: u64) -> bool {
        let (width, parity) = (self.widest() as u64, u64::from(self.array.shape().parity));
        let is_cheaper = width > 1 && blocks * (1 + parity) <= blocks.div_ceil(width) * (width + parity);
        let rows = self.array.shape().rows();
        let slack = self.bands.borrow().slack(rows);
        let is_emptied = self.worth_of(1) > rows + slack;
        is_cheaper && is_emptied && self.array.can_open(1, self.kept_back + NARROW_LEAVE, width as usize)
    }

    /// Reckons anew where the array has lost something meanwhile: what failed was not always a write of ours.
    fn keep_up(&self) {
        let losses = self.array.losses();
        if self.losses.replace(losses) != losses {
            self.refresh();
        }
    }

    /// What is done next to give `who` room for `blocks`.
    fn next_step(&self, who: Who, blocks: u64) -> Step {
        self.keep_up();
        let bands = self.bands.borrow();
        let open = bands.all().filter(|(_, band)| band.is_open()).count();
        let widths = self.widths.borrow();
        let widest = self.array.widest_now().filter(|width| widths.contains(width));
        let may_take_any = who == Who::Cleaner || self.victims.get() == 0;
        // What is less than two rows is filled up with zeros some time.
        let free = || bands.all().filter(|(_, band)| band.room() >= 2 * band.row.max(1));
        let roomiest_first = |(number, band): &(u32, &super::bands::Band)| (band.room(), std::cmp::Reverse(*number));
        if who == Who::Cleaner {
            let own = free().filter(|(_, band)| band.is_for_cleaner).max_by_key(roomiest_first);
            if let Some((number, _)) = own {
                return Step::Take(number);
            }
            if let Some(width) = widest.filter(|width| open < self.open_max && self.array.can_open(*width, 0, *width)) {
                return Step::Open(width);
            }
            // Not a narrow one: copying from narrow to narrow would gain nothing, and never end.
            let any = free()
                .filter(|(_, band)| widths.contains(&(band.row as usize)))
                .max_by_key(|found| (found.1.row, roomiest_first(found)));
            return any.map_or(Step::Nothing, |(number, _)| Step::Take(number));
        }
        // Where there is little room, everything goes to wide groups.
        let is_narrow = self.is_narrow(blocks);
        // With drives missing there may be no wide ones.
        let has_wide = self.array.shape().width > 1 && (is_narrow || widest != Some(1));
        let is_meant = |row: u64| (row == 1) == is_narrow || !has_wide;
        let own = || free().filter(|(_, band)| !band.is_for_cleaner);
        let meant = || own().filter(|(_, band)| is_meant(band.row));
        let fits = |band: &super::bands::Band| band.written == 0 || band.room() >= blocks + 2 * band.row;
        let snug = meant().filter(|(_, band)| fits(band)).min_by_key(|(_, band)| band.room());
        if let Some((number, _)) = snug {
            return Step::Take(number);
        }
        // The cleaner's group needs a place too, where there are places enough.
        let for_cleaner =
            usize::from(self.open_max > 2 && !bands.all().any(|(_, band)| band.is_open() && band.is_for_cleaner));
        let width = if is_narrow { Some(1) } else { widest };
        let kept_width = self.widest();
        let may_open = |width: &usize| {
            open + for_cleaner < self.open_max && self.array.can_open(*width, self.kept_back, kept_width)
        };
        if let Some(width) = width.filter(may_open) {
            return Step::Open(width);
        }
        let fullest = |found: Option<(u32, &super::bands::Band)>| found.map(|(number, _)| Step::Take(number));
        fullest(meant().min_by_key(|(_, band)| band.room()))
            .or_else(|| fullest(own().min_by_key(|(_, band)| band.room())))
            .or_else(|| fullest(free().filter(|_| may_take_any).min_by_key(|(_, band)| band.room())))
            .unwrap_or(Step::Nothing)
    }

    /// Room for `blocks`, or for the first of them.
    async fn give(&self, who: Who, blocks: u64, told: &Told) -> Option<Lease> {
        loop {
            match self.next_step(who, blocks) {
                Step::Take(number) => return Some(self.take(number, who, blocks, told)),
                Step::Open(_) => {
                    // One at a time: another task may have opened one meanwhile, and no more may be.
                    let _pass = self.opening.enter().await;
                    if let Step::Open(width) = self.next_step(who, blocks) {
                        self.open(width, who).await?;
                    }
                }
                Step::Nothing => return None,
            }
        }
    }

    /// Opens a group.
    async fn open(&self, width: usize, who: Who) -> Option<()> {
        let (group, layout) = self.array.open(width).await?;
        let state = ZoneState { written: 0, condition: crate::device::ZoneCondition::Writable };
        let mut bands = self.bands.borrow_mut();
        let (capacity, row) = size_of(&self.array, &layout);
        bands.put(group, (capacity, row, self.worth_of(row)), &state);
        if who == Who::Cleaner {
            bands.keep_for_cleaner(group);
        }
        drop(bands);
        self.changes.borrow_mut().push(Change::Group { group, layout });
        Some(())
    }

    /// Blocks of group `number`, and of the records behind them.
    fn take(&self, number: u32, who: Who, blocks: u64, told: &Told) -> Lease {
        let (mut bands, mut records) = (self.bands.borrow_mut(), self.records.borrow_mut());
        let (room, row) = (bands.band(number).room(), bands.band(number).row);
        let records = records.entry(number).or_default();
        let want = if who == Who::File { blocks.min(self.append_blocks) } else { blocks };
        let plan = records.plan((room, row), want, told);
        let plan = plan.unwrap_or_else(|| panic!("{room} blocks in rows of {row} are too few for an append"));
        let run = bands.take_from(number, (plan.blocks, plan.total), who == Who::Cleaner);
        let lease = self.lease(run, (plan, row), told, records);
        drop(bands);
        if who == Who::File && self.shortage() > 0 {
            self.waiting.ask();
        }
        lease
    }

    /// The same for who writes to the group already, behind that; nothing where what is left is too little.
    fn take_behind(&self, number: u32, blocks: u64, told: &Told) -> Option<Lease> {
        let (mut bands, mut records) = (self.bands.borrow_mut(), self.records.borrow_mut());
        let (room, row) = (bands.band(number).room_behind(), bands.band(number).row);
        let records = records.get_mut(&number).filter(|_| room >= 2 * row)?;
        let plan = records.plan((room, row), blocks.min(self.append_blocks), told)?;
        let run = bands.take_behind(number, (plan.blocks, plan.total));
        Some(self.lease(run, (plan, row), told, records))
    }

    /// The lease of an append to `run`, which is under way from now on.
    fn lease(&self, run: Run, (plan, row): (Plan, u64), told: &Told, records: &mut GroupRecords) -> Lease {
        self.account.allocate(plan.blocks);
        let counted = (plan.units(), plan.total - plan.blocks.next_multiple_of(row));
        self.account.record(counted);
        let record_blocks = plan.record_blocks;
        records.begin(plan, told);
        Lease { runs: vec![run], kept: Vec::new(), record_blocks, counted }
    }

    /// Whether somebody else waits for a group, or writers are slowed down: then whoever writes to a group lets go of it.
    fn is_pressed(&self, number: u32) -> bool {
        let is_for_cleaner = self.bands.borrow().band(number).is_for_cleaner;
        is_for_cleaner || self.cleaner_waits.get() || self.waiting.is_queued() || self.shortage() > 0
    }

    /// The group that a lease is of.
    fn group_of(&self, lease: &Lease) -> u32 {
        (lease.runs[0].start / self.array.shape().stride()) as u32
    }
}

/// Blocks of a group of so many data zones that may be filled up with zeros where what is live is copied to it: a row at each
/// end, and one behind which no further append would have room.
fn lost_to_rows(width: u64) -> u64 {
    3 * width - 2
}

/// Blocks of a group, and of a row of it.
fn size_of(array: &Array, layout: &GroupLayout) -> (u64, u64) {
    let width = u64::from(layout.width);
    (width * array.shape().rows(), width)
}

impl Store for LogStore {
    fn name(&self) -> &'static str {
        "log"
    }

    fn is_contiguous(&self) -> bool {
        false
    }

    fn band_blocks(&self) -> u64 {
        self.array.shape().stride()
    }

    fn row_blocks(&self, block: u64) -> u64 {
        let bands = self.bands.borrow();
        bands.band((block / self.array.shape().stride()) as u32).row.max(1)
    }

    fn drain_changes(&self) -> Vec<Change> {
        std::mem::take(&mut *self.changes.borrow_mut())
    }

    fn reserve(&self, held: &mut Held, blocks: u64) -> Result<(), FsError> {
        self.keep_up();
        let bands = self.bands.borrow();
        self.account.reserve(held, blocks, bands.live_in_all(), self.room.get().saturating_sub(bands.stuck()))
    }

    fn unreserve(&self, held: &mut Held) {
        self.account.unreserve(held, held.blocks);
    }

    fn keep(&self, held: &mut Held, blocks: u64, _runs: &[Run]) -> bool {
        self.account.keep(held, blocks);
        true
    }

    fn keeps_records(&self) -> bool {
        true
    }

    fn allocate<'a>(&'a self, held: &'a mut Held, blocks: u64, told: &'a Told) -> Local<'a, Result<Lease, FsError>> {
        Box::pin(async move {
            self.reserve(held, blocks.max(held.blocks))?;
            let has_leases = || self.bands.borrow().has_leases();
            let has_writers = || self.bands.borrow().has_writers();
            let give = async || self.give(Who::File, blocks, told).await;
            let lease = self.waiting.until(give, has_writers, has_leases).await?;
            self.account.unreserve(held, lease.runs[0].blocks);
            Ok(lease)
        })
    }

    fn allocate_behind<'a>(
        &'a self,
        lease: &'a Lease,
        held: &'a mut Held,
        blocks: u64,
        told: &'a Told,
    ) -> Local<'a, Option<Lease>> {
        Box::pin(async move {
            self.reserve(held, blocks.max(held.blocks)).ok()?;
            let number = self.group_of(lease);
            if self.is_pressed(number) {
                return None;
            }
            let next = match self.take_behind(number, blocks, told) {
                Some(next) => next,
                // Its group is at its end.
                None => self.give(Who::File, blocks, told).await?,
            };
            self.account.unreserve(held, next.runs[0].blocks);
            Some(next)
        })
    }

    fn allocate_for_cleaner<'a>(&'a self, blocks: u64, told: &'a Told) -> Local<'a, Option<Lease>> {
        Box::pin(async move {
            loop {
                let room = self.waiting.has_room.next();
                if let Some(lease) = self.give(Who::Cleaner, blocks, told).await {
                    return Some(lease);
                }
                if !self.bands.borrow().has_writers() {
                    return None;
                }
                self.cleaner_waits.set(true);
                room.await;
                self.cleaner_waits.set(false);
            }
        })
    }

    fn records(&self, lease: &Lease, sums: &[u32]) -> Vec<u8> {
        let (group, shape) = (self.group_of(lease), self.array.shape());
        let place = lease.runs[0].start % shape.stride();
        let Some(layout) = self.array.layout(group) else { return Vec::new() };
        let mut records = self.records.borrow_mut();
        let records = records.get_mut(&group).expect("whoever has a lease has planned what is told");
        records.bytes(place, sums, (self.array.file_system().as_u128(), layout.sequence))
    }

    fn lease_for_records(&self) -> Option<Lease> {
        let (mut bands, mut records) = (self.bands.borrow_mut(), self.records.borrow_mut());
        let none = GroupRecords::default();
        let plan = |(number, band): (u32, &super::bands::Band)| {
            let plan = records.get(&number).unwrap_or(&none).plan_alone((band.room(), band.row));
            Some((number, plan.filter(|plan| band.room() > 0 && plan.total > 0)?))
        };
        let (number, plan) = bands.all().find_map(plan)?;
        let run = bands.take_from(number, (0, plan.total), false);
        let counted = (plan.units(), plan.total);
        self.account.record(counted);
        let lease = Lease { runs: vec![run], kept: Vec::new(), record_blocks: plan.record_blocks, counted };
        records.entry(number).or_default().begin(plan, &Told::default());
        Some(lease)
    }

    fn take_unrecorded(&self) -> Vec<Run> {
        std::mem::take(&mut *self.unrecorded.borrow_mut())
    }

    fn settle(&self, lease: Lease) {
        self.bands.borrow_mut().settle(&lease.runs);
        let group = self.group_of(&lease);
        let mut records = self.records.borrow_mut();
        let is_over = records.get_mut(&group).is_some_and(|of_group| {
            of_group.settle(lease.runs[0]);
            !of_group.is_under_way() && !of_group.is_waiting() && self.bands.borrow().band(group).room() == 0
        });
        if is_over {
            records.remove(&group);
        }
        drop(records);
        self.waiting.has_room.give();
    }

    fn pin(&self, runs: &[Run]) {
        self.bands.borrow_mut().pin(runs);
    }

    fn unpin(&self, runs: &[Run]) {
        self.bands.borrow_mut().unpin(runs);
        self.waiting.has_room.give();
    }

    fn abandon(&self, lease: Lease, zones: Option<&[ZoneState]>) {
        self.bands.borrow_mut().abandon(&lease.runs, zones);
        self.account.abandon(&lease);
        let of_group = self.records.borrow_mut().remove(&self.group_of(&lease));
        self.unrecorded.borrow_mut().extend(of_group.map(GroupRecords::give_up).unwrap_or_default());
        self.refresh();
    }

    fn refresh(&self) {
        let mut bands = self.bands.borrow_mut();
        // A drive that failed, or leaves, takes the groups that lie on it with it.
        for (number, _, state) in self.array.groups() {
            bands.seal_if_full(number, &state);
            // Whoever writes to it just now gives it up when that fails.
            if bands.band(number).room() == 0 && !bands.band(number).is_written_to() {
                let of_group = self.records.borrow_mut().remove(&number);
                self.unrecorded.borrow_mut().extend(of_group.map(GroupRecords::give_up).unwrap_or_default());
            }
        }
        drop(bands);
        self.measure();
        self.waiting.has_room.give();
    }

    fn claim(&self, extent: &Extent) -> Result<(), FsError> {
        let run = Run { start: extent.start, blocks: u64::from(extent.blocks) };
        self.bands.borrow_mut().claim(run).map_err(|reason| FsError::format("the array", reason))
    }

    fn claimed(&self) {
        self.bands.borrow_mut().claimed();
    }

    fn free(&self, run: Run) {
        self.bands.borrow_mut().free(run);
        self.account.free(run.blocks);
        // What was dead already may be worth cleaning now.
        self.waiting.has_room.give();
    }

    fn usage(&self) -> Usage {
        self.keep_up();
        let bands = self.bands.borrow();
        let usage = self.account.usage(bands.live_in_all(), self.room.get().saturating_sub(bands.stuck()));
        Usage { dead: bands.dead(), free_runs: self.array.free_groups().len() as u64, ..usage }
    }

    fn victim(&self, _now_ns: u64) -> Option<Victim> {
        self.keep_up();
        let mut bands = self.bands.borrow_mut();
        // One that still takes writes is hardly begun, and comes last.
        let zone =
            self.policy.choose(&bands, |band| !band.is_open()).or_else(|| self.policy.choose(&bands, |_| true))?;
        self.victims.set(self.victims.get() + 1);
        Some(bands.lease_victim(zone))
    }

    fn easiest_victim(&self) -> Option<Victim> {
        let mut bands = self.bands.borrow_mut();
        let zone = policy::easiest(&bands)?;
        self.victims.set(self.victims.get() + 1);
        Some(bands.lease_victim(zone))
    }

    fn budget_for_files(&self, victim: &Victim) -> Option<FilesBudget> {
        if !self.policy.moves_files() || self.waiting.is_anybody() {
            return None;
        }
        // Emptying the zone must make room still: what lies in others is dead there until they are emptied too.
        let gaining = victim.run.blocks - victim.run.blocks / GAINED_SHARE;
        if self.shortage() > 0 {
            return Some(FilesBudget { blocks: gaining, pieces: PIECES_IN_HASTE });
        }
        let free = self.array.free_groups_up_to(usize::MAX);
        let spare: u64 = free.iter().skip(self.kept_back as usize + 1).map(|width| *width as u64).sum();
        let ample = spare * self.array.shape().rows() / AMPLE_SHARE;
        Some(FilesBudget { blocks: gaining.max(ample), pieces: usize::MAX })
    }

    fn put_off(&self, zone: u32) {
        self.bands.borrow_mut().put_off(zone);
    }

    fn put_off_none(&self) {
        self.bands.borrow_mut().put_off_none();
    }

    fn emptied(&self, zone: u32, was_reset: bool) {
        let mut bands = self.bands.borrow_mut();
        bands.emptied(zone, was_reset);
        if was_reset {
            bands.remove(zone);
            self.records.borrow_mut().remove(&zone);
            self.changes.borrow_mut().push(Change::DropGroup { group: zone });
        }
        self.victims.set(self.victims.get() - 1);
        if self.open_max <= 2 {
            bands.share_with_all();
        }
        drop(bands);
        self.waiting.has_room.give();
    }

    fn wants_cleaning(&self, is_idle: bool) -> bool {
        if self.waiting.is_anybody() || self.shortage() > 0 {
            return true;
        }
        if !is_idle {
            return false;
        }
        let (shape, bands) = (self.array.shape(), self.bands.borrow());
        let columns = u64::from(shape.width) + u64::from(shape.parity);
        let free = self.array.free_zones() * shape.stride() / columns;
        let unwritten = (free + bands.unwritten()).saturating_sub(u64::from(self.kept_back) * shape.stride());
        bands.dead() > 0 && unwritten * 100 < self.room.get() * self.threshold_percent
    }

    fn shortage(&self) -> u64 {
        let bands = self.bands.borrow();
        let low = self.low.get();
        let free = self.array.free_groups_up_to(self.kept_back as usize + LOW_MAX as usize);
        let spare: u64 = free.iter().skip(self.kept_back as usize).map(|width| *width as u64).sum();
        let open = bands.all().filter(|(_, band)| band.is_writable && !band.is_for_cleaner && band.capacity > 0);
        let open: u64 = open.map(|(_, band)| band.capacity - band.written).sum();
        let rows = self.array.shape().rows();
        let left = spare * rows + open;
        // A victim that gains nothing makes no room for anybody.
        if left >= low || self.policy.choose(&bands, |_| true).is_none() {
            return 0;
        }
        (low - left) * 1000 / low
    }

    fn cleaning_needed(&self) -> Local<'_, ()> {
        Box::pin(self.waiting.cleaning_needed())
    }

    fn cleaning_failed(&self) {
        self.waiting.cleaning_failed();
    }

    fn live_in(&self, zone: u32) -> u64 {
        self.bands.borrow().live_in(zone)
    }

    fn is_quiet(&self, zone: u32) -> bool {
        let bands = self.bands.borrow();
        let band = bands.band(zone);
        !band.is_written_to() && band.pins == 0
    }

    fn zones(&self) -> Vec<(u64, u64)> {
        let bands = self.bands.borrow();
        bands.all().filter(|(_, band)| band.capacity > 0).map(|(_, band)| (band.written, band.live)).collect()
    }

    fn zones_unopened(&self) -> u64 {
        self.array.free_groups().len() as u64
    }
}
