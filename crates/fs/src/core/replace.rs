//! Drives of an array that are added, or put in the place of others.
//!
//! What the drive that leaves held is made again, group by group in the order in which they were opened, and only where a
//! file has something, or its records: other rows become zeros. A group is moved once its column is durable on the new drive and
//! the change that says so is; so after a power cut it goes on with the next group. The drive that leaves is read as long as
//! it answers.
//!
//! ```text
//!   replace(1, new) ─► new is drive 5, in the place of 1 ─► each group of 1 ─► 1 is gone
//!                                  └── from here on, after a cut: replace(1)
//! ```

use uuid::Uuid;

use super::Fs;
use crate::array::{Array, Moving, DRIVES_MAX};
use crate::clock::{all_of, Local};
use crate::device::{Device, Kind, BLOCK_BYTES};
use crate::error::FsError;
use crate::format::change::Change;
use crate::format::superblock::{Member, Role};
use crate::store::Run;

/// Numbers of drives that can be given in the life of an array.
const NUMBERS_MAX: usize = 250;

/// How far a drive is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Replaced {
    /// Groups that have been moved.
    pub groups: u64,
    /// Groups that are to be moved, those included.
    pub groups_in_all: u64,
    /// Blocks written to the new drive.
    pub blocks: u64,
}

impl Fs {
    pub(super) fn array(&self) -> Result<Array, FsError> {
        let array = self.0.data.array().cloned();
        array.ok_or(FsError::NotSupported("this store has one drive; that is for arrays (store log)"))
    }

    /// Adds `device` to the array, called `uuid`: new groups lie on it too. Its number. What it holds is lost; one that holds
    /// a file system is refused unless `overwrite`.
    pub async fn add_drive(&self, device: &Device, uuid: Uuid, overwrite: bool) -> Result<u8, FsError> {
        self.0.begin().await?;
        self.join_drive(device, uuid, None, overwrite).await
    }

    async fn join_drive(
        &self,
        device: &Device,
        uuid: Uuid,
        replaces: Option<u8>,
        overwrite: bool,
    ) -> Result<u8, FsError> {
        let (core, array) = (&self.0, self.array()?);
        check_fits(&array, device, replaces.is_some())?;
        if !overwrite {
            super::make::refuse_used(device).await?;
        }
        self.prepare_drive(device, uuid).await?;
        let number = array.add_drive(uuid, device.clone()).await;
        core.record(&[Change::Drive { number, uuid: uuid.as_u128(), replaces }]);
        core.store.refresh();
        self.commit_all().await?;
        Ok(number)
    }

    /// Empties a new drive and writes its superblock, durable when it returns.
    async fn prepare_drive(&self, device: &Device, uuid: Uuid) -> Result<(), FsError> {
        super::make::empty_zones(device).await?;
        let mut superblock = self.0.superblock.clone();
        superblock.member = superblock.members.len() as u32;
        superblock.members.push(Member { uuid, role: Role::Data, geometry: device.geometry() });
        device.write(0, superblock.encode()).await?;
        device.flush().await?;
        super::make::close_first_zone(device).await
    }

    /// Puts `device`, called `uuid`, in the place of drive `old` of the array, or goes on where that was begun: then no device
    /// is needed. `told` is called after each group.
    pub async fn replace_drive(
        &self,
        old: u8,
        device: Option<(&Device, Uuid)>,
        overwrite: bool,
        mut told: impl FnMut(Replaced),
    ) -> Result<Replaced, FsError> {
        self.0.begin().await?;
        let (core, array) = (&self.0, self.array()?);
        let new = self.successor(&array, old, device, overwrite).await?;
        array.let_leave(old);
        core.store.refresh();
        let groups = array.groups_on(old);
        let mut replaced = Replaced { groups_in_all: groups.len() as u64, ..Replaced::default() };
        for group in groups {
            replaced.blocks += self.move_group(&array, group, old, new).await?;
            replaced.groups += 1;
            told(replaced);
        }
        core.record(&[Change::Drive { number: old, uuid: 0, replaces: None }]);
        self.commit_all().await?;
        array.forget(old);
        core.store.refresh();
        Ok(replaced)
    }

    /// The drive that comes in the place of `old`.
    async fn successor(
        &self,
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
            (Some(number), _) => number,
            (None, Some((device, uuid))) => self.join_drive(device, uuid, Some(old), overwrite).await?,
            (None, None) => return Err(FsError::Invalid("a drive to put in its place is needed")),
        };
        if array.is_there(new) {
            Ok(new)
        } else {
            Err(FsError::Invalid("the drive that was put in its place is missing: give it too"))
        }
    }

    /// Moves what `group` has on drive `old` to `new`; the blocks that were written.
    async fn move_group(&self, array: &Array, group: u32, old: u8, new: u8) -> Result<u64, FsError> {
        let core = &self.0;
        // It is not emptied meanwhile.
        let _pass = core.cleaning.enter().await;
        let Some(moving) = array.begin_move(group, old, new).await? else {
            // The cleaner may have emptied it.
            let is_there = array.layout(group).is_some_and(|layout| layout.members.iter().any(|at| at.drive == old));
            return if is_there { Err(FsError::NoSpace) } else { Ok(0) };
        };
        let rows = match self.move_rows(array, group, &moving).await {
            Ok(rows) => rows,
            Err(error) => {
                array.abandon_move(&moving);
                return Err(error);
            }
        };
        array.finish_move(&moving).await;
        core.record(&[Change::Group { group, layout: moving.layout.clone() }]);
        core.store.refresh();
        self.commit_all().await?;
        Ok(rows + 1)
    }

    /// Writes the rows of a column up to the last that has something live, or records of it; the next are read while some are
    /// written.
    async fn move_rows(&self, array: &Array, group: u32, moving: &Moving) -> Result<u64, FsError> {
        let width = u64::from(moving.layout.width);
        let start = u64::from(group) * array.shape().stride();
        let live = self.live_runs(start, array.shape().stride());
        let used = self.with_records(array, group, &live);
        let both = (live.as_slice(), used.as_slice());
        let rows = used.iter().map(|run| (run.end() - start).div_ceil(width)).max().unwrap_or(0);
        let piece = self.0.bounds.piece_blocks.max(1);
        let mut row = 0;
        let mut read = self.rows(both, start, width, (0, piece.min(rows))).await?;
        while row < rows {
            let count = (read.len() / BLOCK_BYTES) as u64 / width;
            let next = (row + count, piece.min(rows - row - count));
            let mut following = Vec::new();
            let tasks = vec![
                Box::pin(async { Ok(array.move_rows(moving, row, &read).await?) }) as Local<'_, Result<(), FsError>>,
                Box::pin(async {
                    following = self.rows(both, start, width, next).await?;
                    Ok(())
                }),
            ];
            all_of(tasks).await.into_iter().collect::<Result<(), FsError>>()?;
            (row, read) = (row + count, following);
        }
        Ok(rows)
    }

    /// The data of `count` rows from `row` on of a group that begins at block `start`; zeros where nothing of them is used.
    async fn rows(
        &self,
        (live, used): (&[Run], &[Run]),
        start: u64,
        width: u64,
        (row, count): (u64, u64),
    ) -> Result<Vec<u8>, FsError> {
        let run = Run { start: start + row * width, blocks: count * width };
        let is_used = used.iter().any(|other| other.start < run.end() && run.start < other.end());
        if is_used {
            let (mut bytes, sums) = self.read_run_as_it_is(run).await?;
            // What is dead has checksums that mean nothing.
            let is_meant = |block: u64| live.iter().any(|run| (run.start..run.end()).contains(&block));
            self.mend(run, &mut bytes, &sums, is_meant).await;
            return Ok(bytes);
        }
        Ok(vec![0; run.blocks as usize * BLOCK_BYTES])
    }

    /// The runs of blocks from `start` on, `blocks` of them, that files have.
    pub(super) fn live_runs(&self, start: u64, blocks: u64) -> Vec<Run> {
        let core = &self.0;
        let owners = core.owners.borrow();
        let run = |(start, inode): (&u64, &u32)| {
            let extent = core.extent_at(*inode, *start)?;
            Some(Run { start: *start, blocks: u64::from(extent.blocks) })
        };
        owners.range(start..start + blocks).filter_map(run).collect()
    }
}

/// Fails if `device` is no drive for `array`.
fn check_fits(array: &Array, device: &Device, is_replacement: bool) -> Result<(), FsError> {
    let wrong = |reason: String| Err(FsError::format(device.name(), reason));
    if array.drives_now() >= DRIVES_MAX + usize::from(is_replacement) || array.drives() >= NUMBERS_MAX {
        return wrong(format!("the array has {} drives, and had {} in all", array.drives_now(), array.drives()));
    }
    let zone_blocks = array.shape().zone_blocks;
    match device.geometry().kind {
        Kind::Zoned { zone_blocks: own, .. } if own == zone_blocks => Ok(()),
        Kind::Plain if device.geometry().blocks >= 2 * zone_blocks => Ok(()),
        kind => wrong(format!(
            "is a {} drive of {} blocks: the array takes drives with zones of {zone_blocks} blocks, or drives without \
             zones that have at least twice that",
            kind.name(),
            device.geometry().blocks
        )),
    }
}
