//! The parts of the hot zone on drives of an array ([`crate::hot`]): the drive of each part, whether its contents are
//! valid, and how a part returns to use after its drive was missing.
//!
//! A part has a stamp on its drive ([`crate::format::hot_stamp`]), and the log names its generation. A drive that was
//! missing, or was restored from an old copy, has a stamp of another generation. The part is then *doubted*: its copies
//! are dropped, and the part starts empty.
//!
//! ```text
//!   mounted ─► its stamp is the one that the log names ── yes ─► read ──(stamped anew)──► used
//!                             └── no, damaged ─► doubted ──(copies dropped, stamped)──────►  │
//!                             └── no drive, no room ─► given up ◄──(drive lost, a write or a flush failed)──┘
//!                                                         └──(another drive in its place)──► doubted
//! ```
//!
//! Invariants:
//! 1. Nothing is read from a part that is doubted or given up, and nothing is written to a part that is not used.
//! 2. A part is stamped only when no record names an invalid copy in it. If there were invalid copies, the stamp waits
//!    until their removal is durable.
//! 3. A part is used only when its stamp, and the record of its generation, are durable.
//! 4. A part that is given up gets a generation that no stamp has. So its contents stay invalid when its drive is given
//!    again.
//! 5. A read-only mount stamps and drops nothing, and ignores parts that are doubted.

use std::cell::Cell;

use uuid::Uuid;

use super::HotTier;
use crate::array::Data;
use crate::block_run::BlockRun;
use crate::core::{CoreParts, Sabotage};
use crate::device::area::{Area, Place};
use crate::device::{BLOCK_BYTES, Device, Geometry};
use crate::error::FsError;
use crate::format::change::{Change, Extent, Inode};
use crate::format::hot_part::{HotPart, PART_FIRST, room_on};
use crate::format::hot_stamp::{HotStamp, STAMP_BLOCK};
use crate::format::superblock::Superblock;
use crate::namespace::{Groups, HotPartRecord};

/// State of a part of the hot zone on a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// The part is in use: copies of files are read from it and written to it.
    Used,
    /// The contents of the part are valid and read. Nothing is written to it yet. A read-only mount leaves the part in
    /// this state.
    Read,
    /// The contents of the part are outdated and not read. They are dropped, and the part is then used anew.
    Doubted,
    /// The drive of the part is missing, has no space for the part, or failed. Nothing is read from the part or written
    /// to it.
    GivenUp,
}

/// Status of a part of the hot zone on a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartStatus {
    /// Number of the drive in the array, counted from 0, that holds the part or held it last.
    pub drive: u8,
    /// Device name of the drive; `None` if the drive is missing, has failed or is being replaced.
    pub name: Option<String>,
    /// Size of the part of the hot zone on the drive, in blocks of 4 KiB.
    pub blocks: u64,
    /// Number of blocks of 4 KiB of the part that are not free: they hold copies of files, are being written, or are
    /// about to be freed.
    pub used: u64,
    /// State of the part: in use, only read, outdated, or given up.
    pub standing: Standing,
    /// Number of successful reads of runs of blocks from the part since the mount.
    pub hits: u64,
}

/// A part of the hot zone.
struct Part {
    /// Blocks of the part, by their numbers in the hot zone.
    run: BlockRun,
    drive: Cell<u8>,
    standing: Cell<Standing>,
    /// Generation of the part in the log.
    recorded: Cell<u64>,
    /// Highest generation that a stamp of the part may have.
    stamped: Cell<u64>,
    /// Whether the log records that the part is given up.
    is_settled: Cell<bool>,
    hits: Cell<u64>,
}

/// The parts of the hot zone on drives; none if the zone is with the metadata, or if there is no zone.
pub(crate) struct HotParts(Vec<Part>);

/// Returns the area of a part with `blocks` blocks on `device`.
fn area_on(device: Device, blocks: u64) -> Area {
    Area::new(device, Place::run(PART_FIRST, blocks)).with_files_from(0)
}

/// Returns the record of part `number` in the log. Without a record the part lies where it was made.
fn record_of(groups: &Groups, number: usize, made: &HotPart) -> HotPartRecord {
    let as_made = HotPartRecord { drive: made.drive, has_room: true, generation: 0 };
    groups.hot_part(number as u8).unwrap_or(as_made)
}

impl HotParts {
    /// Reads the stamps of the parts that `superblock` lists, on the drives of `data`, and determines the state of each
    /// part.
    pub(crate) async fn look(
        superblock: &Superblock,
        groups: &Groups,
        data: &Data,
        sabotage: Option<Sabotage>,
    ) -> HotParts {
        let (mut parts, mut first) = (Vec::new(), 0);
        for (number, made) in superblock.hot_parts.iter().enumerate() {
            let HotPartRecord { drive, has_room, generation } = record_of(groups, number, made);
            let device = data.array().filter(|_| has_room).and_then(|array| array.device(drive));
            let device = device.filter(|(_, device)| made.blocks <= room_on(&device.geometry()));
            let found = match &device {
                Some((uuid, device)) => stamp_on(device, (superblock.uuid, *uuid), number).await,
                None => None,
            };
            let is_believed = found.is_some_and(|stamp| stamp.is_of(generation))
                || sabotage == Some(Sabotage::StalePartBelieved) && found.is_some();
            let standing = match (device.is_some(), is_believed) {
                (false, _) => Standing::GivenUp,
                (true, true) => Standing::Read,
                (true, false) => Standing::Doubted,
            };
            parts.push(Part {
                run: BlockRun { start: first, blocks: made.blocks },
                drive: Cell::new(drive),
                standing: Cell::new(standing),
                recorded: Cell::new(generation),
                stamped: Cell::new(found.map_or(0, |stamp| stamp.generation).max(generation)),
                is_settled: Cell::new(false),
                hits: Cell::new(0),
            });
            first += made.blocks;
        }
        HotParts(parts)
    }

    /// Returns the part with block `block` of the hot zone, and its number.
    fn with(&self, block: u64) -> Option<(usize, &Part)> {
        self.0.iter().enumerate().find(|(_, part)| (part.run.start..part.run.end()).contains(&block))
    }

    /// Returns the drives of doubted parts in which the metadata name copies. `is_named` returns whether they name one
    /// in a run.
    pub(crate) fn doubted(&self, is_named: impl Fn(BlockRun) -> bool) -> Vec<u8> {
        let doubted = self.0.iter().filter(|part| part.standing.get() == Standing::Doubted && is_named(part.run));
        doubted.map(|part| part.drive.get()).collect()
    }
}

/// Returns the stamp of part `number` on `device`, if it is one of this file system and drive.
async fn stamp_on(device: &Device, (file_system, drive): (Uuid, Uuid), number: usize) -> Option<HotStamp> {
    let stamp = HotStamp::decode(&device.read(STAMP_BLOCK, 1).await.ok()?)?;
    (stamp.file_system == file_system && stamp.drive == drive && usize::from(stamp.part) == number).then_some(stamp)
}

impl<'a> HotTier<'a> {
    /// Returns whether the hot zone lies on drives.
    pub(super) fn has_parts(self) -> bool {
        !self.0.hot.parts.0.is_empty()
    }

    /// Returns the UUID and the device of the drive that holds `part`, if the drive is present and can be written.
    fn drive_of(self, part: &Part) -> Option<(Uuid, Device)> {
        self.0.data.array().and_then(|array| array.device(part.drive.get()))
    }

    /// Returns the part with block `block` of the hot zone, the area on its drive, and the block's number in the area.
    /// `None` if the block may not be read.
    fn readable(self, block: u64) -> Option<(&'a Part, Area, u64)> {
        let (_, part) = self.0.hot.parts.with(block)?;
        if !matches!(part.standing.get(), Standing::Used | Standing::Read) {
            return None;
        }
        let (_, device) = self.drive_of(part)?;
        Some((part, area_on(device, part.run.blocks), block - part.run.start))
    }

    /// Returns whether `copy` may be read: none of its extents is in a part that is doubted or given up.
    pub(super) fn is_believed(self, copy: &[Extent]) -> bool {
        !self.has_parts() || copy.iter().all(|extent| self.readable(extent.start).is_some())
    }

    /// Reads blocks of the hot zone from a drive. `None` if they may not be read, or the drive fails.
    pub(super) async fn read_part(self, block: u64, blocks: u64) -> Option<Vec<u8>> {
        let (part, area, at) = self.readable(block)?;
        let bytes = area.read(at, blocks).await.ok()?;
        part.hits.set(part.hits.get() + 1);
        Some(bytes)
    }

    /// Returns how many of `blocks` blocks, from block `block` of the hot zone on, are damaged on their drive.
    /// `is_right` gets the index of a block, counted from `block`, and its bytes. A part that may not be read counts as
    /// undamaged, as no reader gets it.
    pub(super) async fn damaged_on_drive(self, block: u64, blocks: u64, is_right: impl Fn(u64, &[u8]) -> bool) -> u64 {
        let Some((_, area, at)) = self.readable(block) else { return 0 };
        if let Ok(bytes) = area.read(at, blocks).await {
            let blocks = (0..).zip(bytes.chunks(BLOCK_BYTES));
            return blocks.filter(|(number, block)| !is_right(*number, block)).count() as u64;
        }
        let mut damaged = 0;
        for number in 0..blocks {
            let is_whole = area.read(at + number, 1).await.is_ok_and(|bytes| is_right(number, &bytes));
            damaged += u64::from(!is_whole);
        }
        damaged
    }

    /// Writes blocks of files to a part. If the write fails, the part is given up.
    ///
    /// # Errors
    /// [`FsError::Stale`] if the part is not used, or the error of the drive.
    pub(super) async fn write_part(self, block: u64, bytes: &[u8]) -> Result<(), FsError> {
        let (number, part) = self.0.hot.parts.with(block).expect("it was taken of a part");
        let drive = self.drive_of(part).filter(|_| part.standing.get() == Standing::Used);
        let Some((_, device)) = drive else { return Err(FsError::Stale) };
        let outcome = area_on(device, part.run.blocks).write(block - part.run.start, bytes).await;
        if outcome.is_err() {
            self.give_up_part(number);
        }
        Ok(outcome?)
    }

    /// Flushes the drives of the parts that are used. A part whose drive fails is given up.
    pub(super) async fn flush_parts(self) {
        let Some(array) = self.0.data.array() else { return };
        for (number, part) in self.0.hot.parts.0.iter().enumerate() {
            let is_used = part.standing.get() == Standing::Used;
            if is_used && array.flush_drive(part.drive.get()).await.is_err() {
                self.give_up_part(number);
            }
        }
    }

    /// Gives up part `number`: nothing more is read from it, or written to it.
    fn give_up_part(self, number: usize) {
        let part = &self.0.hot.parts.0[number];
        part.standing.set(Standing::GivenUp);
        part.is_settled.set(false);
        self.0.hot.zone.borrow_mut().set_open(number, false);
        self.0.hot.wanted.give();
    }

    /// Returns the status of each part.
    pub(in crate::core) fn part_status(self) -> Vec<PartStatus> {
        let hot = self.0.hot.zone.borrow();
        let status = |(number, part): (usize, &Part)| PartStatus {
            drive: part.drive.get(),
            name: self.0.data.array().and_then(|array| array.device_name(part.drive.get())),
            blocks: part.run.blocks,
            used: hot.used_in(number),
            standing: part.standing.get(),
            hits: part.hits.get(),
        };
        self.0.hot.parts.0.iter().enumerate().map(status).collect()
    }

    /// Returns the files whose copies lie in `part`.
    fn copies_in(self, part: &Part) -> Vec<Inode> {
        let namespace = self.0.namespace.borrow();
        let is_in =
            |copy: &[Extent]| copy.iter().any(|extent| (part.run.start..part.run.end()).contains(&extent.start));
        namespace.hot_copies().filter(|(_, copy)| is_in(copy)).map(|(inode, _)| inode).collect()
    }

    /// Returns the change that records `generation` for part `number`.
    fn part_change(self, number: usize, generation: u64) -> Change {
        let drive = self.0.hot.parts.0[number].drive.get();
        let groups = self.0.namespace.borrow().groups().hot_part(number as u8);
        let has_room = groups.is_none_or(|record| record.has_room);
        Change::HotPart { part: number as u8, drive, has_room, generation }
    }
}

impl HotTier<'_> {
    /// Returns whether some part must be stamped, emptied or given up.
    pub(super) fn has_parts_to_keep(self) -> bool {
        self.0.hot.parts.0.iter().any(|part| match part.standing.get() {
            Standing::Used => self.drive_of(part).is_none(),
            Standing::Read | Standing::Doubted => true,
            Standing::GivenUp => !part.is_settled.get(),
        })
    }
}

impl HotTier<'_> {
    /// Brings parts into use, and drops the copies in parts that are doubted or given up.
    pub(super) async fn keep_parts(self) -> Result<(), FsError> {
        let core = &self.0;
        for (number, part) in core.hot.parts.0.iter().enumerate() {
            let is_away = core.hot_tier().drive_of(part).is_none();
            if is_away && part.standing.get() != Standing::GivenUp {
                core.hot_tier().give_up_part(number);
            }
            match part.standing.get() {
                Standing::Used => {}
                Standing::Read => self.stamp(number, part.recorded.get()).await?,
                Standing::Doubted => {
                    self.empty_part(part).await?;
                    core.log.room().await?;
                    self.0.committer().commit_all().await?;
                    self.stamp(number, 0).await?;
                }
                Standing::GivenUp if part.is_settled.get() => {}
                Standing::GivenUp => {
                    self.empty_part(part).await?;
                    self.settle_given_up(number).await?;
                }
            }
        }
        Ok(())
    }

    /// Drops the copies in a part, and queues their files for promotion.
    async fn empty_part(self, part: &Part) -> Result<(), FsError> {
        for inode in self.copies_in(part) {
            self.0.log.room().await?;
            self.drop_copy(inode);
            self.enqueue_promotion(inode);
            self.0.committer().commit_if_much().await?;
        }
        Ok(())
    }

    /// Records a generation for part `number` that no stamp has, so that its contents stay invalid when its drive is
    /// given again.
    async fn settle_given_up(self, number: usize) -> Result<(), FsError> {
        let (core, part) = (&self.0, &self.0.hot.parts.0[number]);
        core.log.room().await?;
        let generation = part.stamped.get() + 1;
        core.record(&[core.hot_tier().part_change(number, generation)]);
        part.recorded.set(generation);
        part.stamped.set(generation);
        part.is_settled.set(true);
        self.0.committer().commit_all().await
    }

    /// Begins a generation of part `number`, and brings the part into use. The contents of generation `continues` stay
    /// valid; 0 stands for an empty part.
    async fn stamp(self, number: usize, continues: u64) -> Result<(), FsError> {
        let (core, part) = (&self.0, &self.0.hot.parts.0[number]);
        let Some((uuid, device)) = core.hot_tier().drive_of(part) else { return Ok(()) };
        let (drive, standing) = (part.drive.get(), part.standing.get());
        let generation = part.stamped.get() + 1;
        part.stamped.set(generation);
        let stamp =
            HotStamp { file_system: core.superblock.uuid, drive: uuid, part: number as u8, generation, continues };
        let written = device.write(STAMP_BLOCK, stamp.encode()).await;
        let is_durable = written.is_ok() && self.0.repair().array()?.flush_drive(drive).await.is_ok();
        if part.drive.get() != drive || part.standing.get() != standing {
            return Ok(());
        }
        if !is_durable {
            core.hot_tier().give_up_part(number);
            return Ok(());
        }
        core.log.room().await?;
        if part.drive.get() != drive || part.standing.get() != standing {
            return Ok(());
        }
        core.record(&[core.hot_tier().part_change(number, generation)]);
        part.recorded.set(generation);
        self.0.committer().commit_all().await?;
        if part.drive.get() == drive && part.standing.get() == standing {
            part.standing.set(Standing::Used);
            core.hot.zone.borrow_mut().set_open(number, true);
        }
        Ok(())
    }

    /// Checks the stamps of parts that are read, and returns how many are damaged. If `repairs`, rewrites those of parts
    /// that are used.
    pub(in crate::core) async fn scrub_stamps(self, repairs: bool) -> Result<u64, FsError> {
        let core = &self.0;
        let mut damaged = 0;
        for (number, part) in core.hot.parts.0.iter().enumerate() {
            let Some((uuid, device)) = core.hot_tier().drive_of(part) else { continue };
            let is_meant = matches!(part.standing.get(), Standing::Used | Standing::Read);
            let found = stamp_on(&device, (core.superblock.uuid, uuid), number).await;
            if !is_meant || found.is_some_and(|stamp| stamp.is_of(part.recorded.get())) {
                continue;
            }
            damaged += 1;
            if repairs && part.standing.get() == Standing::Used {
                self.stamp_again(number).await?;
            }
        }
        Ok(damaged)
    }

    /// Writes a new stamp of a part that is used; its contents stay valid.
    async fn stamp_again(self, number: usize) -> Result<(), FsError> {
        let part = &self.0.hot.parts.0[number];
        self.stamp(number, part.recorded.get()).await
    }

    /// Gives up the parts of drive `old`, which is to be replaced, and drops their copies.
    pub(in crate::core) async fn leave_parts(self, old: u8) -> Result<(), FsError> {
        let core = &self.0;
        for (number, part) in core.hot.parts.0.iter().enumerate().filter(|(_, part)| part.drive.get() == old) {
            core.hot_tier().give_up_part(number);
            self.empty_part(part).await?;
        }
        Ok(())
    }

    /// Returns the part that a drive of `geometry` would take over from drive `old`: its number, and its drive and size.
    /// `None` if `old` has no part, or the new drive has no room for it.
    pub(in crate::core) fn part_for(self, old: Option<u8>, geometry: &Geometry) -> Option<(u8, HotPart)> {
        let core = &self.0;
        let mut parts = core.hot.parts.0.iter().enumerate();
        let (number, part) = parts.find(|(_, part)| Some(part.drive.get()) == old)?;
        let taken = HotPart { drive: part.drive.get(), blocks: part.run.blocks };
        (part.run.blocks <= room_on(geometry)).then_some((number as u8, taken))
    }

    /// Moves the parts of drive `old` to its replacement `new`, and returns the changes to record. `new` has room for
    /// part `taken`; other parts are given up.
    pub(in crate::core) fn parts_taken_over(self, old: u8, new: u8, taken: Option<u8>) -> Vec<Change> {
        let core = &self.0;
        let mut changes = Vec::new();
        for (number, part) in core.hot.parts.0.iter().enumerate().filter(|(_, part)| part.drive.get() == old) {
            let (generation, has_room) = (part.stamped.get() + 1, taken == Some(number as u8));
            part.drive.set(new);
            part.recorded.set(generation);
            part.stamped.set(generation);
            part.is_settled.set(true);
            part.standing.set(if has_room { Standing::Doubted } else { Standing::GivenUp });
            changes.push(Change::HotPart { part: number as u8, drive: new, has_room, generation });
        }
        core.hot.wanted.give();
        changes
    }
}
