//! Copies of the metadata that were absent for some time, or that replace others, and are brought up to date while the
//! file system is in use.
//!
//! A copy is current only once all metadata were copied to it, including those written meanwhile. After a power cut
//! before that, copying starts anew.

use uuid::Uuid;

use super::Repair;
use crate::block_run::BlockRun;
use crate::core::{CoreParts, Fs};
use crate::device::Device;
use crate::error::FsError;
use crate::format::change::{Extent, Inode};
use crate::format::superblock::{Member, Role};

impl Fs {
    /// Reads, on every current copy, the metadata that normal operation does not read: superblocks, checksums of data,
    /// contents of the hot zone. Returns the number of blocks of 4 KiB that are damaged on some copy. If `repairs`,
    /// damaged blocks are rewritten from another copy, and two new checkpoints replace the log and the old checkpoints.
    ///
    /// # Errors
    /// With `repairs`: [`FsError::ReadOnly`] on a read-only mount, a page of checksums that is intact on no copy, or
    /// the error of a checkpoint.
    pub async fn scrub_copies(&self, repairs: bool) -> Result<u64, FsError> {
        self.0.repair().scrub_metadata(repairs, &mut Vec::new()).await
    }

    /// Replaces copy `slot` of the metadata, counted from 0, by a copy on `device`, which gets the UUID `uuid`. The
    /// previous contents of `device` are lost; if it holds a file system of Imbrex, it is refused unless `overwrite`.
    /// Calls `progress` before each step, and when the copy is complete, with the number of blocks of 4 KiB copied and
    /// the number of all blocks. If `progress` returns false before a step, the new copy is given up and the old one
    /// stays in use. Returns the number of blocks of 4 KiB that a copy occupies on a device.
    ///
    /// # Errors
    /// [`FsError::Invalid`] if copy `slot` does not exist or has no device of its own, [`FsError::Busy`] if a copy is
    /// outdated, [`FsError::Stopped`] if `progress` ended the copying. [`FsError::Format`] if the device is refused,
    /// unsuitable or failed, [`FsError::ReadOnly`] on a read-only mount, or the error of a device.
    pub async fn replace_copy(
        &self,
        slot: usize,
        (device, uuid): (&Device, Uuid),
        overwrite: bool,
        mut progress: impl FnMut(u64, u64) -> bool,
    ) -> Result<u64, FsError> {
        self.0.begin_task().await?;
        let metadata = &self.0.metadata;
        let superblock = metadata.superblock();
        let wrong = |reason: String| Err(FsError::format(device.name(), reason));
        let members = superblock.metadata_members();
        if superblock.members.get(*members.get(slot).unwrap_or(&usize::MAX)).is_none_or(|it| it.role != Role::Metadata)
        {
            return Err(FsError::Invalid("there is no copy of the metadata of that number on a device of its own"));
        }
        if metadata.has_outdated() {
            return Err(FsError::Busy);
        }
        let needed = superblock.layout.place.end();
        crate::core::mount::make::check_for_metadata(device, needed)?;
        if !overwrite {
            crate::core::mount::make::refuse_used(device).await?;
        }
        crate::core::mount::make::erase(device).await?;
        // Blocks that are intact only on the copy to be replaced are first written to the others.
        self.0.hot_tier().scrub_alone(true).await?;
        device.set_queue_limits(self.0.bounds.queue);
        let member = Member { uuid, role: Role::Metadata, geometry: device.geometry() };
        metadata.add(slot, member, device.clone());
        let mut is_stopped = false;
        let brought = metadata.bring_up_to_date(|done, all| {
            is_stopped |= !progress(done, all);
            !is_stopped
        });
        if brought.await? == 0 {
            metadata.give_up_outdated();
            return if is_stopped { Err(FsError::Stopped) } else { wrong("failed while it was written".into()) };
        }
        self.0.hot_tier().review_hot();
        Ok(needed)
    }
}

impl Repair<'_> {
    /// Brings the copies of the metadata up to date that were absent when the file system was last in use.
    pub(in crate::core) async fn bring_copies_up_to_date(self) {
        let core = self.0.clone();
        let goes_on = |_, _| !core.shutdown.has_begun();
        // After an error the copy stays outdated, and the next task that writes gets the error.
        if core.metadata.bring_up_to_date(goes_on).await.is_ok_and(|copies| copies > 0) {
            // Files with a copy in the hot zone may be stored only there from now on.
            self.0.hot_tier().review_hot();
        }
    }

    /// Like [`Fs::scrub_copies`]. Adds blocks of files stored only in the hot zone that are intact on no copy to
    /// `lost`. [`Mirror::damage`](crate::journal::mirror::Mirror::damage) returns the damage of each copy afterwards.
    pub(super) async fn scrub_metadata(self, repairs: bool, lost: &mut Vec<(Inode, u64)>) -> Result<u64, FsError> {
        let core = &self.0;
        if repairs {
            self.0.begin_task().await?;
        }
        core.metadata.count_damage_anew();
        let of_labels = core.metadata.mend_labels().await;
        let alone = self.0.hot_tier().scrub_alone(repairs).await?;
        lost.extend(alone.lost);
        let of_zone = self.0.hot_tier().scrub_hot(repairs).await?
            + self.0.hot_tier().scrub_stamps(repairs).await?
            + alone.damaged;
        let live = |run: BlockRun| {
            let piece =
                |(_, extent): (Inode, Extent)| BlockRun { start: extent.start, blocks: u64::from(extent.blocks) };
            self.pieces_on(run).into_iter().map(piece).collect()
        };
        let damaged = of_labels + core.checksums.scrub(repairs, live).await? + of_zone;
        if repairs {
            self.0.committer().checkpoint_from_now_on().await?;
            self.0.committer().checkpoint_from_now_on().await?;
        }
        Ok(damaged)
    }
}
