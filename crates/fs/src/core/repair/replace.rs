//! Drives of an array that are added, or that replace others.
//!
//! The contents of the drive that leaves are reconstructed, group by group, in the order in which the groups were
//! opened. A piece of rows is reconstructed if a row in it has blocks of files or their records; other pieces become
//! zeros. A group is moved once its column on the new drive is durable, and so is the change that says so. After a power
//! cut, the replacement continues with the next group. The drive that leaves is read as long as it answers.
//!
//! Files are read and written meanwhile. The drive that leaves takes no new data once its replacement begins. A group is
//! moved when no task writes to it any more, and all blocks written there belong to their files, so that its rows are
//! known.
//!
//! ```text
//!   replace(1, new) ─► new is drive 5, in the place of 1 ─► each group of 1 ─► 1 is gone
//!                                  └── from here on, after a cut: replace(1)
//! ```

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use uuid::Uuid;

use super::Repair;
use crate::array::{Array, Moving};
use crate::block_run::BlockRun;
use crate::core::owners::Owner;
use crate::core::{CoreParts, Fs};
use crate::device::{BLOCK_BYTES, Device};
use crate::error::FsError;
use crate::executor::{Cause, JoinHandle, Mutex};
use crate::format::change::{Change, GroupLayout};
use crate::format::hot_part::HotPart;
use crate::format::shape::DRIVES_MAX;
use crate::format::superblock::{Member, Role};

/// Upper bound of the drive numbers that are used in the life of an array.
const NUMBERS_MAX: usize = 250;

/// Progress of the replacement of a drive of an array.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Replaced {
    /// Number of stripe groups done since the replacement was begun or last continued. They no longer have a zone on
    /// the old drive.
    pub groups: u64,
    /// Number of stripe groups with a zone on the old drive when the replacement began or continued. At the end, it
    /// equals `groups`: groups that the cleaner emptied meanwhile need no move.
    pub groups_in_all: u64,
    /// Number of blocks of 4 KiB written to the new drive since the replacement was begun or last continued, including
    /// one header block for each moved group.
    pub blocks: u64,
}

/// Upper bound of the pieces that are read ahead, and of the writes in flight to the new drive.
const AHEAD: usize = 4;
/// Number of attempts to get room from the cleaner when the new drive has none.
const ATTEMPTS: u32 = 16;
/// Nanoseconds between two checks whether a group still has writers.
const WRITERS_NS: u64 = 100_000;

const SUCCESSOR_MISSING: &str =
    "the drive that was put in its place is missing: give it too, or another that takes over from it";

impl Replaced {
    /// Returns the sum of both.
    const fn and(self, other: Replaced) -> Replaced {
        Replaced {
            groups: self.groups + other.groups,
            groups_in_all: self.groups_in_all + other.groups_in_all,
            blocks: self.blocks + other.blocks,
        }
    }
}

/// Result of reading rows: their bytes, or an error.
type Rows = Result<Vec<u8>, FsError>;

/// Rows of a group that are being read.
struct Reading {
    group: u32,
    layout: GroupLayout,
    start: u64,
    live: Rc<Vec<BlockRun>>,
    /// The runs of `live`, each with the blocks behind it that may hold its records.
    used: Rc<Vec<BlockRun>>,
    /// Number of rows to be read. `next` is the first row whose read has not begun.
    rows: u64,
    next: u64,
    reads: VecDeque<(u64, JoinHandle<Rows>)>,
}

/// State of replacements of drives.
#[derive(Default)]
pub(in crate::core) struct ReplacementState {
    /// Lock that allows one replacement at a time.
    lock: Mutex,
    /// Number of the drive that is being replaced, and the progress.
    progress: Cell<Option<(u8, Replaced)>>,
}

impl ReplacementState {
    /// Returns the number of the drive that is being replaced, and the progress.
    pub(in crate::core) fn progress(&self) -> Option<(u8, Replaced)> {
        self.progress.get()
    }
}

/// Read-ahead of the group that is moved next. No task writes to that group any more, so the bytes stay valid until it
/// is moved.
#[derive(Default)]
struct Ahead {
    following: Option<u32>,
    of: Option<Reading>,
}

impl Fs {
    /// Adds `device` to the array under the UUID `uuid`, so that new stripe groups use it, too. Existing data are not
    /// moved. Returns the number of the new drive, counted from 0. The previous contents of `device` are lost. A device
    /// that holds a file system of Imbrex is refused unless `overwrite`.
    ///
    /// # Errors
    /// [`FsError::NotSupported`] without an array, [`FsError::ReadOnly`] on a read-only mount, [`FsError::Format`] if
    /// the device does not suit the array or is refused, or the error of a device.
    pub async fn add_drive(&self, device: &Device, uuid: Uuid, overwrite: bool) -> Result<u8, FsError> {
        self.0.begin_task().await?;
        self.0.repair().join_drive(device, uuid, None, overwrite).await
    }

    /// Replaces drive `old` of the array, counted from 0, by the drive in `device`, which gets the UUID given there.
    /// The blocks of `old` that files use are read, or reconstructed if they are unreadable, and written to the new
    /// drive, one stripe group after the other. Files can be read and written meanwhile. If an earlier drive in place
    /// of `old` has failed, the new drive replaces both. If `device` is `None`, continues a replacement that was begun
    /// before. A new drive that holds a file system of Imbrex is refused unless `overwrite`. Calls `progress` before
    /// each group and at the end; if it returns false before a group, the replacement stops and can be continued later.
    ///
    /// # Errors
    /// [`FsError::Stopped`] if `progress` stopped the replacement. [`FsError::Invalid`] if there is no drive `old`, if
    /// there is no replacement to continue, or if its new drive is missing. [`FsError::NotSupported`] without an array,
    /// [`FsError::ReadOnly`] on a read-only mount. [`FsError::Format`] if the new drive does not suit the array or is
    /// refused, or if a replacement of `old` was begun with another drive. [`FsError::NoSpace`] if the new drive has
    /// too little space, or the error of a device.
    pub async fn replace_drive(
        &self,
        old: u8,
        device: Option<(&Device, Uuid)>,
        overwrite: bool,
        progress: impl FnMut(Replaced) -> bool,
    ) -> Result<Replaced, FsError> {
        self.0.repair().replace_drive(old, device, overwrite, progress).await
    }
}

impl Repair<'_> {
    pub(in crate::core) fn array(self) -> Result<Array, FsError> {
        let array = self.0.data.array().cloned();
        array.ok_or(FsError::NotSupported("this store has one drive; the operation is for arrays (store log)"))
    }

    async fn join_drive(
        self,
        device: &Device,
        uuid: Uuid,
        replaces: Option<u8>,
        overwrite: bool,
    ) -> Result<u8, FsError> {
        let (core, array) = (&self.0, self.array()?);
        check_fits(&array, device, replaces.is_some())?;
        if !overwrite {
            crate::core::mount::make::refuse_used(device).await?;
        }
        let taken = self.0.hot_tier().part_for(replaces, &device.geometry());
        self.prepare_drive(device, uuid, Role::Data, taken).await?;
        if let Some(old) = replaces {
            self.0.hot_tier().leave_parts(old).await?;
            // The drive that leaves must stop taking groups before the new drive takes any: no group may lie on both.
            array.start_removal(old);
        }
        let first = taken.map_or(1, |(_, part)| part.first_zone_behind(array.shape().zone_blocks));
        let number = array.add_drive(uuid, device.clone(), first).await;
        let mut changes = vec![Change::Drive { number, uuid: uuid.as_u128(), replaces }];
        if let Some(old) = replaces {
            changes.extend(self.0.hot_tier().parts_taken_over(old, number, taken.map(|(part, _)| part)));
        }
        core.record(&changes);
        core.refresh_space();
        self.0.committer().commit_all().await?;
        Ok(number)
    }

    /// Empties a new drive and writes its superblock, which is durable on return. The superblock names the part of the
    /// hot zone that the drive takes over, if there is one.
    pub(super) async fn prepare_drive(
        self,
        device: &Device,
        uuid: Uuid,
        role: Role,
        taken: Option<(u8, HotPart)>,
    ) -> Result<(), FsError> {
        device.set_queue_limits(self.0.bounds.queue);
        crate::core::mount::make::erase(device).await?;
        let mut superblock = self.0.superblock.clone();
        superblock.member = superblock.members.len() as u32;
        superblock.members.push(Member { uuid, role, geometry: device.geometry() });
        superblock.taken_part = taken.map(|(part, _)| part);
        crate::core::mount::make::write_superblock(device, &superblock).await
    }

    /// Replaces drive `old` of the array by `device`, which gets the UUID `uuid`. Without a device, continues a
    /// replacement that was begun. `progress` gets the progress before each group and at the end, and returns whether to
    /// continue.
    ///
    /// # Errors
    /// [`FsError::Stopped`] if `progress` returns false before a group.
    pub(super) async fn replace_drive(
        self,
        old: u8,
        device: Option<(&Device, Uuid)>,
        overwrite: bool,
        progress: impl FnMut(Replaced) -> bool,
    ) -> Result<Replaced, FsError> {
        self.0.begin_task().await?;
        let _pass = self.0.replacement.lock.enter().await;
        let held = self.replace_held(old, device, overwrite, progress);
        let outcome = self.0.executor.for_cause(Cause::Repair, held).await;
        self.0.replacement.progress.set(None);
        outcome
    }

    /// Like [`Fs::replace_drive`]; the caller holds the lock of replacements. If the replacement of `old` is gone itself,
    /// that drive is replaced first, and its own replacement then replaces `old`, too.
    async fn replace_held(
        self,
        old: u8,
        device: Option<(&Device, Uuid)>,
        overwrite: bool,
        mut progress: impl FnMut(Replaced) -> bool,
    ) -> Result<Replaced, FsError> {
        let array = self.array()?;
        let mut at = self.last_gone(&array, old, device.is_some());
        let (mut device, mut all) = (device, Replaced::default());
        loop {
            // No group has a column on both drives: a drive that leaves takes no group that is opened after the other
            // has joined.
            let before = self.0.namespace.borrow().groups().replaced_by(at);
            let one = self.replace_one(at, device.take(), overwrite, |one| progress(all.and(one))).await?;
            all = all.and(one);
            match before {
                Some(before) => at = before,
                None => return Ok(all),
            }
        }
    }

    /// Returns the last drive that is gone in the chain of replacements that begins with `old`; `old` if none is gone. A
    /// drive without a replacement counts only if the caller has a new device for it (`is_given`).
    fn last_gone(self, array: &Array, old: u8, is_given: bool) -> u8 {
        let namespace = self.0.namespace.borrow();
        let groups = namespace.groups();
        let mut at = old;
        while let Some(new) = groups.replacement_of(at).filter(|new| !array.is_there(*new)) {
            if !is_given && groups.replacement_of(new).is_none() {
                break;
            }
            at = new;
        }
        at
    }

    /// Replaces drive `old`, or continues its replacement.
    async fn replace_one(
        self,
        old: u8,
        device: Option<(&Device, Uuid)>,
        overwrite: bool,
        mut progress: impl FnMut(Replaced) -> bool,
    ) -> Result<Replaced, FsError> {
        let (core, array) = (&self.0, self.array()?);
        let new = self.successor(&array, old, device, overwrite).await?;
        array.start_removal(old);
        core.refresh_space();
        let mut replaced = Replaced { groups_in_all: array.groups_on(old).len() as u64, ..Replaced::default() };
        let mut ahead = Ahead::default();
        loop {
            let groups = array.groups_on(old);
            let Some(&group) = groups.first() else { break };
            core.replacement.progress.set(Some((old, replaced)));
            if !progress(replaced) {
                return Err(FsError::Stopped);
            }
            ahead.following = groups.get(1).copied();
            replaced.blocks += match self.move_group(&array, group, (old, new), &mut ahead).await {
                // Files were written to the new drive meanwhile. Cleaning makes room of their dead blocks.
                Err(FsError::NoSpace) if self.clean_for_room().await? => continue,
                outcome => outcome?,
            };
            replaced.groups += 1;
            replaced.groups_in_all = replaced.groups_in_all.max(replaced.groups);
        }
        // Groups that the cleaner emptied meanwhile need no move.
        replaced.groups_in_all = replaced.groups;
        progress(replaced);
        core.record(&self.taken_over(old, new));
        self.0.committer().commit_all().await?;
        array.forget(old);
        core.refresh_space();
        Ok(replaced)
    }

    /// Returns the changes to record once all groups of drive `old` lie on `new`. If `old` was to replace another drive,
    /// `new` now replaces that drive.
    fn taken_over(self, old: u8, new: u8) -> Vec<Change> {
        let namespace = self.0.namespace.borrow();
        let mut changes = vec![Change::Drive { number: old, uuid: 0, replaces: None }];
        if let Some(before) = namespace.groups().replaced_by(old) {
            let uuid = namespace.groups().drives()[&new].uuid;
            changes.push(Change::Drive { number: new, uuid, replaces: Some(before) });
        }
        changes
    }

    /// Returns the drive that replaces `old`. If there is none yet, adds `device` to the array for it.
    async fn successor(
        self,
        array: &Array,
        old: u8,
        device: Option<(&Device, Uuid)>,
        overwrite: bool,
    ) -> Result<u8, FsError> {
        let (is_gone, begun) = {
            let namespace = self.0.namespace.borrow();
            (namespace.groups().is_gone(old), namespace.groups().replacement_of(old))
        };
        if usize::from(old) >= array.drives() || is_gone {
            return Err(FsError::Invalid("the array has no drive of that number"));
        }
        let new = match (begun, device) {
            (Some(number), None) => number,
            (Some(number), Some(_)) => return Err(under_way(array, old, number)),
            (None, Some((device, uuid))) => self.join_drive(device, uuid, Some(old), overwrite).await?,
            (None, None) => return Err(FsError::Invalid("a drive to put in its place is needed")),
        };
        if array.is_there(new) { Ok(new) } else { Err(FsError::Invalid(SUCCESSOR_MISSING)) }
    }

    /// Empties a zone, and waits for writers as long as none can be emptied. Returns whether a zone was emptied.
    async fn clean_for_room(self) -> Result<bool, FsError> {
        for _ in 0..ATTEMPTS {
            if self.0.cleaner().clean(1).await? > 0 {
                return Ok(true);
            }
            self.0.executor.sleep(WRITERS_NS).await;
        }
        Ok(false)
    }

    /// Moves the column of `group` on drive `old` to drive `new`. Returns the number of blocks written.
    async fn move_group(
        self,
        array: &Array,
        group: u32,
        (old, new): (u8, u8),
        ahead: &mut Ahead,
    ) -> Result<u64, FsError> {
        let core = &self.0;
        // The lock keeps the cleaner from emptying the group. It is not held during the wait for writers, since writers
        // may wait for the cleaner.
        let _pass = loop {
            let pass = core.cleaner.enter().await;
            if core.is_quiet(group) {
                break pass;
            }
            drop(pass);
            core.executor.sleep(WRITERS_NS).await;
        };
        let layout = array.layout(group);
        let of_group = ahead.of.take().filter(|it| it.group == group && layout.as_ref() == Some(&it.layout));
        let Some(reading) = of_group.or_else(|| self.begin_reading(array, group)) else { return Ok(0) };
        let Some(moving) = array.begin_move(group, old, new).await? else {
            // The cleaner may have emptied the group.
            let is_there = array.layout(group).is_some_and(|layout| layout.members.iter().any(|at| at.drive == old));
            return if is_there { Err(FsError::NoSpace) } else { Ok(0) };
        };
        let moving = Rc::new(moving);
        let rows = reading.rows;
        if let Err(error) = self.move_rows(array, reading, &moving, ahead).await {
            array.abandon_move(&moving);
            return Err(error);
        }
        array.finish_move(&moving).await;
        core.record(&[Change::Group { group, layout: moving.layout.clone() }]);
        core.refresh_space();
        self.0.committer().commit_all().await?;
        Ok(rows + 1)
    }

    /// Prepares to read the rows of a group, up to the last row with live blocks or their records. `None` if the group
    /// is gone, or a task still writes to it.
    fn begin_reading(self, array: &Array, group: u32) -> Option<Reading> {
        let layout = array.layout(group).filter(|_| self.0.is_quiet(group))?;
        let (start, width) = (u64::from(group) * array.shape().stride(), u64::from(layout.width));
        let live = Rc::new(self.live_runs(start, array.shape().stride()));
        let used = Rc::new(self.0.write_back().with_records(array, group, &live));
        let rows = used.iter().map(|run| (run.end() - start).div_ceil(width)).max().unwrap_or(0);
        Some(Reading { group, layout, start, live, used, rows, next: 0, reads: VecDeque::new() })
    }

    /// Starts reads until `pieces` of them are in flight or have ended.
    fn read_on(self, reading: &mut Reading, pieces: usize) {
        let piece = self.0.bounds.piece_blocks.max(1);
        while reading.reads.len() < pieces && reading.next < reading.rows {
            let (core, live, used) = (self.0.clone(), reading.live.clone(), reading.used.clone());
            let (start, width, row) = (reading.start, u64::from(reading.layout.width), reading.next);
            let count = piece.min(reading.rows - row);
            let read = async move { core.repair().rows((&live, &used), start, width, (row, count)).await };
            reading.reads.push_back((row, self.0.executor.spawn(read)));
            reading.next += count;
        }
    }

    /// Writes the rows to the new drive as they are read. Several reads are in flight, also of the group that follows,
    /// and so are several writes. So no drive waits for another.
    async fn move_rows(
        self,
        array: &Array,
        mut reading: Reading,
        moving: &Rc<Moving>,
        ahead: &mut Ahead,
    ) -> Result<(), FsError> {
        let mut writes = VecDeque::new();
        let mut outcome = Ok(());
        while outcome.is_ok() {
            self.read_on(&mut reading, AHEAD);
            if reading.reads.len() < AHEAD {
                ahead.of = ahead.of.take().or_else(|| self.begin_reading(array, ahead.following?));
                if let Some(following) = &mut ahead.of {
                    self.read_on(following, AHEAD - reading.reads.len());
                }
            }
            let Some((row, read)) = reading.reads.pop_front() else { break };
            match read.await {
                Ok(data) => {
                    let (array, moving) = (array.clone(), moving.clone());
                    let write = async move { array.move_rows(&moving, row, &data).await };
                    writes.push_back(self.0.executor.spawn(write));
                }
                Err(error) => outcome = Err(error),
            }
            if writes.len() > AHEAD {
                let written = writes.pop_front().expect("there are some").await;
                outcome = outcome.and(written.map_err(FsError::from));
            }
        }
        // No write may be in flight to a zone that is given back.
        for write in writes {
            let written = write.await;
            outcome = outcome.and(written.map_err(FsError::from));
        }
        outcome
    }

    /// Returns the data of `count` rows from `row` on, of a group that begins at block `start`. Returns zeros if no
    /// block of these rows is used.
    async fn rows(
        self,
        (live, used): (&[BlockRun], &[BlockRun]),
        start: u64,
        width: u64,
        (row, count): (u64, u64),
    ) -> Result<Vec<u8>, FsError> {
        let run = BlockRun { start: start + row * width, blocks: count * width };
        let is_used = used.iter().any(|other| other.start < run.end() && run.start < other.end());
        if !is_used {
            return Ok(vec![0; run.blocks as usize * BLOCK_BYTES]);
        }
        let sums = self.0.checksums.get(run.start, run.blocks).await?;
        let mut bytes = self.0.data.read(run.start, run.blocks).await?;
        // Checksums of dead blocks are undefined.
        let is_meant = |block: u64| live.iter().any(|run| (run.start..run.end()).contains(&block));
        self.0.files().repair(run, &mut bytes, &sums, is_meant, true).await;
        Ok(bytes)
    }

    /// Returns the runs of live blocks that begin among `blocks` blocks from `start` on.
    pub(in crate::core) fn live_runs(self, start: u64, blocks: u64) -> Vec<BlockRun> {
        let core = &self.0;
        let run = |(start, owner): (u64, Owner)| {
            let extent = core.files().extent_at(owner, start)?;
            Some(BlockRun { start, blocks: u64::from(extent.blocks) })
        };
        core.owners.beginning_in(start..start + blocks).into_iter().filter_map(run).collect()
    }
}

/// Returns the error for a replacement of `old` that has already begun with drive `new`.
fn under_way(array: &Array, old: u8, new: u8) -> FsError {
    match array.device_name(new) {
        Some(name) => FsError::format(
            &name,
            format!("is being put in the place of drive {old} already, as drive {new}: go on with it"),
        ),
        None => FsError::Invalid(SUCCESSOR_MISSING),
    }
}

/// Fails if `device` does not suit `array`.
fn check_fits(array: &Array, device: &Device, is_replacement: bool) -> Result<(), FsError> {
    let wrong = |reason: String| Err(FsError::format(device.name(), reason));
    if array.drives_now() >= DRIVES_MAX + usize::from(is_replacement) || array.drives() >= NUMBERS_MAX {
        return wrong(format!("the array has {} drives, and had {} in all", array.drives_now(), array.drives()));
    }
    super::check_drive::check_drive(device, array.shape().zone_blocks)
}
