//! The store `log` (HiSMRfs, Jin 2014 §II.D.2): data are appended to stripe groups of an array, which may be a single drive.
//!
//! Files that are written at the same time go to different groups, up to the limit of open groups. If no group has
//! space for a whole file and no further group may be opened, the file continues in the next group. Small files go to
//! narrow groups, one data zone and its parity, if they take fewer blocks there than in a whole row of a wide group.
//! The cleaner copies them to wide groups. As far as open groups allow, copies by the cleaner and new data go to
//! different groups, because the copies live longer.
//!
//! ```text
//!   no group ─► open ─► full, or sealed ─► emptied by the cleaner ─► no group
//!                 └── each takes one writer at a time, at its pointer; that one may append on while what it appended is under way
//! ```
//!
//! Invariants:
//! 1. Live and reserved blocks never exceed a limit: the blocks of the wide groups that the present drives could hold,
//!    less the groups kept back and the cost of padding rows. So every reserved block can be written once the dead
//!    blocks are cleaned away.
//! 2. Writers leave as many groups unopened as are kept back; the cleaner may open those. A group that the cleaner has
//!    opened is reserved for the cleaner until the zone being emptied is empty.
//! 3. The change record of a newly opened group is in [`StripeGroups::drain_changes`] before any block of the group is allocated.
//! 4. A writer appends behind its own appends in flight only while no other task waits for a group.
//! 5. The number of open groups never exceeds the option `open_groups` of [`LogStore::new`] or the limit of a drive.

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
use super::{
    Allocation, Appending, Cleaning, Describe, FilesBudget, RecordContext, Records, Reservation, Store, StripeGroups,
    Usage, Victim, WholeFiles, Zoned,
};
use crate::array::Array;
use crate::block_run::BlockRun;
use crate::device::ZoneState;
use crate::error::FsError;
use crate::executor::{Local, Mutex};
use crate::format::change::{Change, Extent, GroupLayout};

/// Default number of groups kept back for the cleaner.
const KEPT_BACK: u32 = 1;
/// Default limit of blocks for one append of a file: no limit.
const APPEND_BLOCKS: u32 = u32::MAX;
/// Default limit of open groups, the cleaner's group included.
const OPEN_GROUPS: u32 = 5;

/// Number of wide groups that must still be available after a narrow group is opened, besides those kept back.
const NARROW_LEAVE: u32 = 2;

/// Writers are slowed down when less than one in `LOW_SHARE` groups can still be opened. The threshold is at least half
/// a group and at most `LOW_MAX` groups.
const LOW_SHARE: u64 = 192;
const LOW_MAX: u64 = 8;

/// Whole files are moved to empty a zone only if the zone still gains one `GAINED_SHARE`-th of its blocks. If much
/// space is free, they are also moved if they take at most one `AMPLE_SHARE`-th of the space that can be opened.
const GAINED_SHARE: u64 = 4;
const AMPLE_SHARE: u64 = 4;
/// Maximum number of pieces of a file that is moved whole while writers may soon have to wait: the seeks take half a
/// second.
const PIECES_IN_HASTE: usize = 32;

/// The task that asks for space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Who {
    File,
    Cleaner,
}

/// The next step towards space for a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Allocate blocks of this group.
    Take(u32),
    /// Open a group of this number of data zones.
    Open(usize),
    /// No space is available now.
    Nothing,
}

/// The store `log`: data appended to stripe groups of an array, which may be a single drive.
pub struct LogStore {
    array: Array,
    bands: RefCell<Bands>,
    policy: Policy,
    /// Share of blocks, in percent: background cleaning begins when the blocks neither written nor kept back fall below
    /// it.
    threshold_percent: u64,
    kept_back: u32,
    open_max: usize,
    /// Maximum number of blocks in one append of a file. By default the size of a record unit is the limit, which
    /// allows fewer blocks.
    append_blocks: u64,
    /// Number of blocks that live data may occupy (invariant 1).
    room: Cell<u64>,
    /// Threshold, in blocks: cleaning begins and writers are slowed down when fewer blocks can be written outside
    /// groups kept back.
    low: Cell<u64>,
    /// The widths of all groups that the drives could hold, widest first, without repetition. A group of another width
    /// is only for small files. Such a width appears when drives have unequal free space, and a group of that width
    /// would leave less space than `room` assumes.
    widths: RefCell<Vec<usize>>,
    account: Account,
    /// Value of [`Array::losses`] at the latest check for losses.
    losses: Cell<u64>,
    opening: Mutex,
    /// Number of zones being emptied.
    victims: Cell<u32>,
    /// Whether the cleaner waits for a writer to release a group.
    cleaner_waits: Cell<bool>,
    changes: RefCell<Vec<Change>>,
    waiting: Waiting,
    /// Pending records of the groups that are appended to.
    records: RefCell<BTreeMap<u32, GroupRecords>>,
    unrecorded: RefCell<Vec<BlockRun>>,
}

impl LogStore {
    /// Creates the store over the present stripe groups of `array`. `option` returns the value of an option by its key,
    /// or `None` for the default: `cleaner` (`cost-benefit`), `clean_below` (10 percent), `kept_back` (1),
    /// `open_groups` (5) or `append_blocks` (no limit). `open_groups` is lowered to the drives' limit of active zones.
    ///
    /// # Errors
    /// An option has an invalid value. The error is a message for the user.
    pub fn new(array: Array, option: impl Fn(&str) -> Option<String>) -> Result<LogStore, String> {
        let policy = Policy::named(option("cleaner").as_deref().unwrap_or("cost-benefit"))?;
        let threshold_percent = super::clean_below(option("clean_below"))?;
        let count = |key: &str, usual: u32, most: u32| super::count(key, option(key), usual, most);
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
            opening: Mutex::default(),
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

    /// Recomputes the number of blocks that may be live on the present drives.
    fn measure(&self) {
        let rows = self.array.shape().rows();
        let capacity = |width: &usize| {
            let (width, all) = (*width as u64, *width as u64 * rows);
            all.saturating_sub(lost_to_rows(width) + blocks_for_copies(all))
        };
        let formable = self.array.formable();
        // The widest group comes first and is one of those kept back.
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

    /// Returns the number of blocks that groups of the widest kind could hold on the zones of a group of `width` data
    /// zones. For a width in `widths`, returns the number of blocks of the group itself.
    fn worth_of(&self, width: u64) -> u64 {
        let shape = self.array.shape();
        let (widest, parity, capacity) = (self.widest() as u64, u64::from(shape.parity), width * shape.rows());
        if self.widths.borrow().contains(&(width as usize)) {
            return capacity;
        }
        ((width + parity) * shape.rows() * widest / (widest + parity)).max(capacity)
    }

    /// Returns the number of data zones of a group kept back: the largest possible width.
    fn widest(&self) -> usize {
        self.widths.borrow().first().copied().unwrap_or(1)
    }

    /// Returns whether `blocks` go to a narrow group. They must take fewer blocks there than in a row of a wide group,
    /// there must be enough space, and the cleaner must gain something by emptying a full narrow group.
    fn is_narrow(&self, blocks: u64) -> bool {
        let (width, parity) = (self.widest() as u64, u64::from(self.array.shape().parity));
        let is_cheaper = width > 1 && blocks * (1 + parity) <= blocks.div_ceil(width) * (width + parity);
        let rows = self.array.shape().rows();
        let slack = self.bands.borrow().slack(rows);
        let is_emptied = self.worth_of(1) > rows + slack;
        is_cheaper && is_emptied && self.array.can_open(1, self.kept_back + NARROW_LEAVE, width as usize)
    }

    /// Recomputes the space if the array lost a zone or drive: the failed access was not necessarily a write of this
    /// store.
    fn keep_up(&self) {
        let losses = self.array.losses();
        if self.losses.replace(losses) != losses {
            self.refresh();
        }
    }

    /// Returns the next step towards space for `blocks` on behalf of `who`.
    fn next_step(&self, who: Who, blocks: u64) -> Step {
        self.keep_up();
        let bands = self.bands.borrow();
        let open = bands.all().filter(|(_, band)| band.is_open()).count();
        let widths = self.widths.borrow();
        let widest = self.array.widest_now().filter(|width| widths.contains(width));
        let may_take_any = who == Who::Cleaner || self.victims.get() == 0;
        // Fewer than two rows of space will be padded with zeros.
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
            // Narrow groups are left out: copying from narrow to narrow would gain nothing, and never end.
            let any = free()
                .filter(|(_, band)| widths.contains(&(band.row as usize)))
                .max_by_key(|found| (found.1.row, roomiest_first(found)));
            return any.map_or(Step::Nothing, |(number, _)| Step::Take(number));
        }
        // With little space left, everything goes to wide groups.
        let is_narrow = self.is_narrow(blocks);
        // If drives are missing, no wide groups may be possible.
        let has_wide = self.array.shape().width > 1 && (is_narrow || widest != Some(1));
        let is_meant = |row: u64| (row == 1) == is_narrow || !has_wide;
        let own = || free().filter(|(_, band)| !band.is_for_cleaner);
        let meant = || own().filter(|(_, band)| is_meant(band.row));
        let fits = |band: &super::bands::Band| band.written == 0 || band.room() >= blocks + 2 * band.row;
        let snug = meant().filter(|(_, band)| fits(band)).min_by_key(|(_, band)| band.room());
        if let Some((number, _)) = snug {
            return Step::Take(number);
        }
        // Leave one open group to the cleaner if the limit of open groups allows.
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

    /// Allocates `blocks`, or the first part of them, and opens a group if necessary.
    async fn give(&self, who: Who, blocks: u64, context: &RecordContext) -> Option<Allocation> {
        loop {
            match self.next_step(who, blocks) {
                Step::Take(number) => return Some(self.take(number, who, blocks, context)),
                Step::Open(_) => {
                    // One task at a time opens a group: another may have opened one meanwhile, and no further one may
                    // be allowed.
                    let _pass = self.opening.enter().await;
                    if let Step::Open(width) = self.next_step(who, blocks) {
                        self.open(width, who).await?;
                    }
                }
                Step::Nothing => return None,
            }
        }
    }

    /// Opens a group of `width` data zones.
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

    /// Allocates up to `blocks` of group `number`, and blocks for the records behind them.
    fn take(&self, number: u32, who: Who, blocks: u64, context: &RecordContext) -> Allocation {
        let (mut bands, mut records) = (self.bands.borrow_mut(), self.records.borrow_mut());
        let (room, row) = (bands.band(number).room(), bands.band(number).row);
        let records = records.entry(number).or_default();
        let want = if who == Who::File { blocks.min(self.append_blocks) } else { blocks };
        let plan = records.plan((room, row), want, context);
        let plan = plan.unwrap_or_else(|| panic!("{room} blocks in rows of {row} are too few for an append"));
        let run = bands.take_from(number, (plan.blocks, plan.total), who == Who::Cleaner);
        let allocation = self.begin_append(run, (plan, row), context, records);
        drop(bands);
        if who == Who::File && self.shortage() > 0 {
            self.waiting.ask();
        }
        allocation
    }

    /// Like [`LogStore::take`], but for the present writer of the group, after its appends in flight; `None` if too
    /// little space is left.
    fn take_behind(&self, number: u32, blocks: u64, context: &RecordContext) -> Option<Allocation> {
        let (mut bands, mut records) = (self.bands.borrow_mut(), self.records.borrow_mut());
        let (room, row) = (bands.band(number).room_behind(), bands.band(number).row);
        let records = records.get_mut(&number).filter(|_| room >= 2 * row)?;
        let plan = records.plan((room, row), blocks.min(self.append_blocks), context)?;
        let run = bands.take_behind(number, (plan.blocks, plan.total));
        Some(self.begin_append(run, (plan, row), context, records))
    }

    /// Returns the allocation for an append to `run`, which counts as in flight from now on.
    fn begin_append(
        &self,
        run: BlockRun,
        (plan, row): (Plan, u64),
        context: &RecordContext,
        records: &mut GroupRecords,
    ) -> Allocation {
        self.account.allocate(plan.blocks);
        let counted = (plan.units(), plan.total - plan.blocks.next_multiple_of(row));
        self.account.record(counted);
        let record_blocks = plan.record_blocks;
        records.begin(plan, context);
        Allocation { runs: vec![run], kept: Vec::new(), record_blocks, counted }
    }

    /// Returns whether the writer of a group must release it: the group is the cleaner's, another task waits for a
    /// group, or writers are slowed down.
    fn is_pressed(&self, number: u32) -> bool {
        let is_for_cleaner = self.bands.borrow().band(number).is_for_cleaner;
        is_for_cleaner || self.cleaner_waits.get() || self.waiting.is_queued() || self.shortage() > 0
    }

    /// Returns the group of an allocation.
    fn group_of(&self, allocation: &Allocation) -> u32 {
        (allocation.runs[0].start / self.array.shape().stride()) as u32
    }

    /// Aborts an allocation; `states` are the states of all groups, if known.
    fn abort_append(&self, allocation: &Allocation, states: Option<&[ZoneState]>) {
        self.bands.borrow_mut().abort(&allocation.runs, states);
        self.account.abort(allocation);
        let of_group = self.records.borrow_mut().remove(&self.group_of(allocation));
        self.unrecorded.borrow_mut().extend(of_group.map(GroupRecords::give_up).unwrap_or_default());
        self.refresh();
    }
}

/// Returns the number of blocks of a group of `width` data zones that may be padding when live blocks are copied to it:
/// a row at each end, and a row after which no further append would have space.
fn lost_to_rows(width: u64) -> u64 {
    3 * width - 2
}

/// Returns the number of blocks of a group and of one of its rows.
fn size_of(array: &Array, layout: &GroupLayout) -> (u64, u64) {
    let width = u64::from(layout.width);
    (width * array.shape().rows(), width)
}

impl Describe for LogStore {
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

    fn usage(&self) -> Usage {
        self.keep_up();
        let bands = self.bands.borrow();
        let usage = self.account.usage(bands.live_in_all(), self.room.get().saturating_sub(bands.stuck()));
        Usage { dead: bands.dead(), free_runs: self.array.free_groups().len() as u64, ..usage }
    }
}

impl Store for LogStore {
    fn reserve(&self, reservation: &mut Reservation, blocks: u64) -> Result<(), FsError> {
        self.keep_up();
        let bands = self.bands.borrow();
        self.account.reserve(reservation, blocks, bands.live_in_all(), self.room.get().saturating_sub(bands.stuck()))
    }

    fn unreserve(&self, reservation: &mut Reservation) {
        self.account.unreserve(reservation, reservation.blocks);
    }

    fn keep(&self, reservation: &mut Reservation, runs: &[BlockRun]) -> bool {
        self.account.keep(reservation, runs.iter().map(|run| run.blocks).sum());
        true
    }

    fn allocate<'a>(&'a self, reservation: &'a mut Reservation, blocks: u64) -> Local<'a, Result<Allocation, FsError>> {
        Box::pin(async move { self.allocate_with_records(reservation, blocks, &RecordContext::default()).await })
    }

    fn commit(&self, allocation: Allocation) {
        self.bands.borrow_mut().commit(&allocation.runs);
        let group = self.group_of(&allocation);
        let mut records = self.records.borrow_mut();
        let is_over = records.get_mut(&group).is_some_and(|of_group| {
            of_group.commit(allocation.runs[0]);
            !of_group.is_under_way() && !of_group.is_waiting() && self.bands.borrow().band(group).room() == 0
        });
        if is_over {
            records.remove(&group);
        }
        drop(records);
        self.waiting.has_room.give();
    }

    fn abort(&self, allocation: Allocation) {
        self.abort_append(&allocation, None);
    }

    fn claim(&self, extent: &Extent) -> Result<(), FsError> {
        let run = BlockRun { start: extent.start, blocks: u64::from(extent.blocks) };
        self.bands.borrow_mut().claim(run).map_err(|reason| FsError::format("the array", reason))
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

    fn records(&self) -> Option<&dyn Records> {
        Some(self)
    }

    fn appending(&self) -> Option<&dyn Appending> {
        Some(self)
    }

    fn stripe_groups(&self) -> Option<&dyn StripeGroups> {
        Some(self)
    }
}

impl Zoned for LogStore {
    fn zones(&self) -> Vec<(u64, u64)> {
        let bands = self.bands.borrow();
        bands.all().filter(|(_, band)| band.capacity > 0).map(|(_, band)| (band.written, band.live)).collect()
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

impl Cleaning for LogStore {
    fn claimed(&self) {
        self.bands.borrow_mut().claimed();
    }

    fn victim(&self) -> Option<Victim> {
        self.keep_up();
        let mut bands = self.bands.borrow_mut();
        // A group that still takes writes has little to clean, and comes last.
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

    fn whole_files(&self) -> Option<&dyn WholeFiles> {
        if self.policy.moves_files() { Some(self) } else { None }
    }

    fn allocate_for_cleaner(&self, blocks: u64) -> Local<'_, Option<Allocation>> {
        Box::pin(async move { self.allocate_for_cleaner_with_records(blocks, &RecordContext::default()).await })
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
        self.waiting.is_anybody() || self.shortage() > 0
    }

    fn wants_cleaning_when_idle(&self) -> bool {
        if self.wants_cleaning() {
            return true;
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
        // A victim that gains nothing makes no space.
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
}

impl WholeFiles for LogStore {
    fn budget(&self, victim: &Victim) -> Option<FilesBudget> {
        if self.waiting.is_anybody() {
            return None;
        }
        // Emptying the zone must still gain space: the pieces in other zones leave dead blocks there until those are
        // emptied.
        let gaining = victim.run.blocks - victim.run.blocks / GAINED_SHARE;
        if self.shortage() > 0 {
            return Some(FilesBudget { blocks: gaining, pieces: PIECES_IN_HASTE });
        }
        let free = self.array.free_groups_up_to(usize::MAX);
        let spare: u64 = free.iter().skip(self.kept_back as usize + 1).map(|width| *width as u64).sum();
        let ample = spare * self.array.shape().rows() / AMPLE_SHARE;
        Some(FilesBudget { blocks: gaining.max(ample), pieces: usize::MAX })
    }
}

impl Records for LogStore {
    fn allocate_with_records<'a>(
        &'a self,
        reservation: &'a mut Reservation,
        blocks: u64,
        context: &'a RecordContext,
    ) -> Local<'a, Result<Allocation, FsError>> {
        Box::pin(async move {
            self.reserve(reservation, blocks.max(reservation.blocks))?;
            let has_allocations = || self.bands.borrow().has_allocations();
            let has_writers = || self.bands.borrow().has_writers();
            let give = async || self.give(Who::File, blocks, context).await;
            let allocation = self.waiting.until(give, has_writers, has_allocations).await?;
            self.account.unreserve(reservation, allocation.runs[0].blocks);
            Ok(allocation)
        })
    }

    fn allocate_for_cleaner_with_records<'a>(
        &'a self,
        blocks: u64,
        context: &'a RecordContext,
    ) -> Local<'a, Option<Allocation>> {
        Box::pin(async move {
            loop {
                let room = self.waiting.has_room.next();
                if let Some(allocation) = self.give(Who::Cleaner, blocks, context).await {
                    return Some(allocation);
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

    fn allocate_for_records(&self) -> Option<Allocation> {
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
        let allocation = Allocation { runs: vec![run], kept: Vec::new(), record_blocks: plan.record_blocks, counted };
        records.entry(number).or_default().begin(plan, &RecordContext::default());
        Some(allocation)
    }

    fn record_bytes(&self, allocation: &Allocation, sums: &[u32]) -> Vec<u8> {
        let (group, shape) = (self.group_of(allocation), self.array.shape());
        let place = allocation.runs[0].start % shape.stride();
        let Some(layout) = self.array.layout(group) else { return Vec::new() };
        let mut records = self.records.borrow_mut();
        let records = records.get_mut(&group).expect("records are planned when blocks are allocated");
        records.bytes(place, sums, (self.array.file_system().as_u128(), layout.sequence))
    }

    fn take_unrecorded(&self) -> Vec<BlockRun> {
        std::mem::take(&mut *self.unrecorded.borrow_mut())
    }
}

impl Appending for LogStore {
    fn allocate_behind<'a>(
        &'a self,
        previous: &'a Allocation,
        reservation: &'a mut Reservation,
        blocks: u64,
        context: &'a RecordContext,
    ) -> Local<'a, Option<Allocation>> {
        Box::pin(async move {
            self.reserve(reservation, blocks.max(reservation.blocks)).ok()?;
            let number = self.group_of(previous);
            if self.is_pressed(number) {
                return None;
            }
            let next = match self.take_behind(number, blocks, context) {
                Some(next) => next,
                // The group has no space left.
                None => self.give(Who::File, blocks, context).await?,
            };
            self.account.unreserve(reservation, next.runs[0].blocks);
            Some(next)
        })
    }
}

impl StripeGroups for LogStore {
    fn drain_changes(&self) -> Vec<Change> {
        std::mem::take(&mut *self.changes.borrow_mut())
    }

    fn refresh(&self) {
        let mut bands = self.bands.borrow_mut();
        // A drive that failed or is being removed makes its groups read-only.
        for (number, _, state) in self.array.groups() {
            bands.seal_if_full(number, &state);
            // A task that is writing to the group aborts its append when that write fails.
            if bands.band(number).room() == 0 && !bands.band(number).is_written_to() {
                let of_group = self.records.borrow_mut().remove(&number);
                self.unrecorded.borrow_mut().extend(of_group.map(GroupRecords::give_up).unwrap_or_default());
            }
        }
        drop(bands);
        self.measure();
        self.waiting.has_room.give();
    }

    fn unopened(&self) -> u64 {
        self.array.free_groups().len() as u64
    }
}
