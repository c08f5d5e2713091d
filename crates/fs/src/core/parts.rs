//! The parts of the hot zone on drives of an array ([`crate::hot`]): which drive each is on, whether what lies there is to be believed,
//! and how a part that was away comes into use again.
//!
//! A part has a stamp on its drive ([`crate::format::hot_stamp`]), and the log names its generation. A drive that was away, or was put
//! back as it once was, has another one: it is *doubted*, its copies are dropped, and it begins anew.
//!
//! ```text
//!   mounted ─► its stamp is the one that the log names ── yes ─► read ──(stamped anew)──► used
//!                             └── no, damaged ─► doubted ──(copies dropped, stamped)──────►  │
//!                             └── no drive, no room ─► given up ◄──(drive lost, a write or a flush failed)──┘
//!                                                         └──(another drive in its place)──► doubted
//! ```
//!
//! Invariants:
//! 1. Nothing is read of a part that is doubted or given up, and nothing is written to one that is not used.
//! 2. A part is stamped only when no record names a copy in it that is not to be believed; where there were such, when that is durable.
//! 3. A part is used only when its stamp, and the record of its generation, are durable.
//! 4. A part that is given up gets a generation that no stamp has: so nothing of it is believed when its drive comes back.
//! 5. Where nothing may be changed, nothing is stamped or dropped; what is doubted is passed over.

use std::cell::Cell;

use uuid::Uuid;

use super::{Core, Fs, Sabotage};
use crate::array::Data;
use crate::device::area::{Area, Place};
use crate::device::{BLOCK_BYTES, Device, Geometry};
use crate::error::FsError;
use crate::format::change::{Change, Extent, Inode};
use crate::format::hot_stamp::{HotStamp, STAMP_BLOCK};
use crate::format::superblock::Superblock;
use crate::hot::{HotPart, PART_FIRST, room_on};
use crate::namespace::{Groups, HotPartRecord};
use crate::store::Run;

/// How a part stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It is read, and files come in.
    Used,
    /// It is read.
    Read,
    /// What lies there is of another time: it is dropped, and the part begins anew.
    Doubted,
    /// Its drive is not there, has no room for it, or failed.
    GivenUp,
}

/// How a part is doing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartStatus {
    /// The number of the drive that it is on, or was.
    pub drive: u8,
    /// What the drive is called, if it is there.
    pub name: Option<String>,
    /// Blocks of the part.
    pub blocks: u64,
    /// Those that files lie in.
    pub used: u64,
    /// How it stands.
    pub standing: Standing,
    /// Pieces of files that were read from it since it was mounted.
    pub hits: u64,
}

/// A part.
struct Part {
    /// Its first block in the zone, and how many it has.
    run: Run,
    drive: Cell<u8>,
    standing: Cell<Standing>,
    /// What the log says.
    recorded: Cell<u64>,
    /// The highest generation that a stamp may have.
    stamped: Cell<u64>,
    /// Whether the log knows that it is given up.
    is_settled: Cell<bool>,
    hits: Cell<u64>,
}

/// The parts on drives; none where the zone is with the metadata, or there is none.
pub(crate) struct HotParts(Vec<Part>);

/// The area of `part` on a device.
fn area_on(device: Device, blocks: u64) -> Area {
    Area::new(device, Place::run(PART_FIRST, blocks)).with_files_from(0)
}

/// What the log says of part `number`; until it says something it lies where it was made.
fn record_of(groups: &Groups, number: usize, made: &HotPart) -> HotPartRecord {
    let as_made = HotPartRecord { drive: made.drive, has_room: true, generation: 0 };
    groups.hot_part(number as u8).unwrap_or(as_made)
}

impl HotParts {
    /// Looks at the parts that `superblock` tells of on the drives of `data`.
    pub async fn look(superblock: &Superblock, groups: &Groups, data: &Data, sabotage: Option<Sabotage>) -> HotParts {
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
                run: Run { start: first, blocks: made.blocks },
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

    /// The part that has block `block` of the zone.
    fn with(&self, block: u64) -> Option<(usize, &Part)> {
        self.0.iter().enumerate().find(|(_, part)| (part.run.start..part.run.end()).contains(&block))
    }

    /// The drives with parts that hold something of another time, with files in it as the log has it.
    pub fn doubted(&self, is_named: impl Fn(Run) -> bool) -> Vec<u8> {
        let doubted = self.0.iter().filter(|part| part.standing.get() == Standing::Doubted && is_named(part.run));
        doubted.map(|part| part.drive.get()).collect()
    }
}

/// The stamp of part `number` on `device`, if it is one of this file system and drive.
async fn stamp_on(device: &Device, (file_system, drive): (Uuid, Uuid), number: usize) -> Option<HotStamp> {
    let stamp = HotStamp::decode(&device.read(STAMP_BLOCK, 1).await.ok()?)?;
    (stamp.file_system == file_system && stamp.drive == drive && usize::from(stamp.part) == number).then_some(stamp)
}

impl Core {
    /// Whether the hot zone lies on drives.
    pub(super) fn has_parts(&self) -> bool {
        !self.parts.0.is_empty()
    }

    /// The drive that part `part` is on, if it is there and has room for it.
    fn drive_of(&self, part: &Part) -> Option<(Uuid, Device)> {
        self.data.array().and_then(|array| array.device(part.drive.get()))
    }

    /// Where a block of the zone lies on a drive, if it may be read: the area, and which block of it.
    fn readable(&self, block: u64) -> Option<(&Part, Area, u64)> {
        let (_, part) = self.parts.with(block)?;
        if !matches!(part.standing.get(), Standing::Used | Standing::Read) {
            return None;
        }
        let (_, device) = self.drive_of(part)?;
        Some((part, area_on(device, part.run.blocks), block - part.run.start))
    }

    /// Whether what lies at `copy` may be read: a copy on a drive that is doubted is none.
    pub(super) fn is_believed(&self, copy: &[Extent]) -> bool {
        !self.has_parts() || copy.iter().all(|extent| self.readable(extent.start).is_some())
    }

    /// Reads blocks of a part.
    pub(super) async fn read_part(&self, block: u64, blocks: u64) -> Option<Vec<u8>> {
        let (part, area, at) = self.readable(block)?;
        let bytes = area.read(at, blocks).await.ok()?;
        part.hits.set(part.hits.get() + 1);
        Some(bytes)
    }

    /// Which of `blocks` from block `block` of the zone on, counted from there, are damaged on their drive. Of a part that is not read
    /// none are: nobody is given what lies there.
    pub(super) async fn damaged_on_drive(&self, block: u64, blocks: u64, is_right: impl Fn(u64, &[u8]) -> bool) -> u64 {
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

    /// Writes blocks of files to a part. Where that fails, the part is given up.
    pub(super) async fn write_part(&self, block: u64, bytes: &[u8]) -> Result<(), FsError> {
        let (number, part) = self.parts.with(block).expect("it was taken of a part");
        let drive = self.drive_of(part).filter(|_| part.standing.get() == Standing::Used);
        let Some((_, device)) = drive else { return Err(FsError::Stale) };
        let outcome = area_on(device, part.run.blocks).write(block - part.run.start, bytes).await;
        if outcome.is_err() {
            self.give_up_part(number);
        }
        Ok(outcome?)
    }

    /// Makes durable what was written to parts. Those whose drive cannot are given up.
    pub(super) async fn flush_parts(&self) {
        let Some(array) = self.data.array() else { return };
        for (number, part) in self.parts.0.iter().enumerate() {
            let is_used = part.standing.get() == Standing::Used;
            if is_used && array.flush_drive(part.drive.get()).await.is_err() {
                self.give_up_part(number);
            }
        }
    }

    /// Nothing more is read of part `number`, nor written there.
    fn give_up_part(&self, number: usize) {
        let part = &self.parts.0[number];
        part.standing.set(Standing::GivenUp);
        part.is_settled.set(false);
        self.hot.borrow_mut().set_open(number, false);
        self.hot_wanted.give();
    }

    /// How each part is doing.
    pub(super) fn part_status(&self) -> Vec<PartStatus> {
        let hot = self.hot.borrow();
        let status = |(number, part): (usize, &Part)| PartStatus {
            drive: part.drive.get(),
            name: self.data.array().and_then(|array| array.device_name(part.drive.get())),
            blocks: part.run.blocks,
            used: hot.used_in(number),
            standing: part.standing.get(),
            hits: part.hits.get(),
        };
        self.parts.0.iter().enumerate().map(status).collect()
    }

    /// The files whose copies lie in part `part`.
    fn copies_in(&self, part: &Part) -> Vec<Inode> {
        let namespace = self.namespace.borrow();
        let is_in =
            |copy: &[Extent]| copy.iter().any(|extent| (part.run.start..part.run.end()).contains(&extent.start));
        namespace.hot_copies().filter(|(_, copy)| is_in(copy)).map(|(inode, _)| inode).collect()
    }

    /// How part `number` stands from now on in the log.
    fn part_change(&self, number: usize, generation: u64) -> Change {
        let drive = self.parts.0[number].drive.get();
        let groups = self.namespace.borrow().groups().hot_part(number as u8);
        let has_room = groups.is_none_or(|record| record.has_room);
        Change::HotPart { part: number as u8, drive, has_room, generation }
    }
}

impl Core {
    /// Whether some part is to be stamped, emptied or given up.
    pub(super) fn has_parts_to_keep(&self) -> bool {
        self.parts.0.iter().any(|part| match part.standing.get() {
            Standing::Used => self.drive_of(part).is_none(),
            Standing::Read | Standing::Doubted => true,
            Standing::GivenUp => !part.is_settled.get(),
        })
    }
}

impl Fs {
    /// Brings parts into use, and drops what lies in those that are not to be believed.
    pub(super) async fn keep_parts(&self) -> Result<(), FsError> {
        let core = &self.0;
        for (number, part) in core.parts.0.iter().enumerate() {
            let is_away = core.drive_of(part).is_none();
            if is_away && part.standing.get() != Standing::GivenUp {
                core.give_up_part(number);
            }
            match part.standing.get() {
                Standing::Used => {}
                Standing::Read => self.stamp(number, part.recorded.get()).await?,
                Standing::Doubted => {
                    self.empty_part(part).await?;
                    core.log.room().await?;
                    self.commit_all().await?;
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

    /// Drops the copies in a part.
    async fn empty_part(&self, part: &Part) -> Result<(), FsError> {
        for inode in self.0.copies_in(part) {
            self.0.log.room().await?;
            self.drop_copy(inode);
            self.want_hot(inode);
            self.commit_if_much().await?;
        }
        Ok(())
    }

    /// The log says that what lies in part `number` is not to be believed when its drive comes back.
    async fn settle_given_up(&self, number: usize) -> Result<(), FsError> {
        let (core, part) = (&self.0, &self.0.parts.0[number]);
        core.log.room().await?;
        let generation = part.stamped.get() + 1;
        core.record(&[core.part_change(number, generation)]);
        part.recorded.set(generation);
        part.stamped.set(generation);
        part.is_settled.set(true);
        self.commit_all().await
    }

    /// Begins a generation of part `number`, which goes on with what was there in `continues`, or with nothing.
    async fn stamp(&self, number: usize, continues: u64) -> Result<(), FsError> {
        let (core, part) = (&self.0, &self.0.parts.0[number]);
        let Some((uuid, device)) = core.drive_of(part) else { return Ok(()) };
        let (drive, standing) = (part.drive.get(), part.standing.get());
        let generation = part.stamped.get() + 1;
        part.stamped.set(generation);
        let stamp =
            HotStamp { file_system: core.superblock.uuid, drive: uuid, part: number as u8, generation, continues };
        let written = device.write(STAMP_BLOCK, stamp.encode()).await;
        let is_durable = written.is_ok() && self.array()?.flush_drive(drive).await.is_ok();
        if part.drive.get() != drive || part.standing.get() != standing {
            return Ok(());
        }
        if !is_durable {
            core.give_up_part(number);
            return Ok(());
        }
        core.log.room().await?;
        if part.drive.get() != drive || part.standing.get() != standing {
            return Ok(());
        }
        core.record(&[core.part_change(number, generation)]);
        part.recorded.set(generation);
        self.commit_all().await?;
        if part.drive.get() == drive && part.standing.get() == standing {
            part.standing.set(Standing::Used);
            core.hot.borrow_mut().set_open(number, true);
        }
        Ok(())
    }

    /// Looks at the stamps of parts that are used. Returns how many are damaged; if it `repairs`, they are written again.
    pub(super) async fn scrub_stamps(&self, repairs: bool) -> Result<u64, FsError> {
        let core = &self.0;
        let mut damaged = 0;
        for (number, part) in core.parts.0.iter().enumerate() {
            let Some((uuid, device)) = core.drive_of(part) else { continue };
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

    /// Writes the stamp of a part that is used once more.
    async fn stamp_again(&self, number: usize) -> Result<(), FsError> {
        let part = &self.0.parts.0[number];
        self.stamp(number, part.recorded.get()).await
    }

    /// Drive `old` is to leave: its parts are given up, and their copies dropped.
    pub(super) async fn leave_parts(&self, old: u8) -> Result<(), FsError> {
        let core = &self.0;
        for (number, part) in core.parts.0.iter().enumerate().filter(|(_, part)| part.drive.get() == old) {
            core.give_up_part(number);
            self.empty_part(part).await?;
        }
        Ok(())
    }

    /// The part that a drive of `geometry` would take over from drive `old`: its number, and where it is; none where `old` has none, or
    /// the new drive no room for it.
    pub(super) fn part_for(&self, old: Option<u8>, geometry: &Geometry) -> Option<(u8, HotPart)> {
        let core = &self.0;
        let mut parts = core.parts.0.iter().enumerate();
        let (number, part) = parts.find(|(_, part)| Some(part.drive.get()) == old)?;
        let taken = HotPart { drive: part.drive.get(), blocks: part.run.blocks };
        (part.run.blocks <= room_on(geometry)).then_some((number as u8, taken))
    }

    /// What changes for the parts of drive `old` when `new` comes in its place; `taken` is the one for which that has room.
    pub(super) fn parts_taken_over(&self, old: u8, new: u8, taken: Option<u8>) -> Vec<Change> {
        let core = &self.0;
        let mut changes = Vec::new();
        for (number, part) in core.parts.0.iter().enumerate().filter(|(_, part)| part.drive.get() == old) {
            let (generation, has_room) = (part.stamped.get() + 1, taken == Some(number as u8));
            part.drive.set(new);
            part.recorded.set(generation);
            part.stamped.set(generation);
            part.is_settled.set(true);
            part.standing.set(if has_room { Standing::Doubted } else { Standing::GivenUp });
            changes.push(Change::HotPart { part: number as u8, drive: new, has_room, generation });
        }
        core.hot_wanted.give();
        changes
    }
}
