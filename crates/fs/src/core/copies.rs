//! Copies of the metadata that come back, or come in the place of others, and are brought up to date while the file
//! system is in use.
//!
//! A copy counts only once all of it was copied, and what was written meanwhile too. If the power is cut before, it is
//! copied anew.

use uuid::Uuid;

use super::Fs;
use crate::device::Device;
use crate::error::FsError;
use crate::format::change::{Extent, Inode};
use crate::format::superblock::{Member, Role};
use crate::store::Run;

impl Fs {
    /// Brings copies up to date that were away when the file system was last in use.
    pub(super) async fn bring_copies_up_to_date(self) {
        let core = self.0.clone();
        let goes_on = |_, _| !core.is_over.get();
        // What fails is told to whoever writes next; the copy stays what it is.
        if core.metadata.bring_up_to_date(goes_on).await.is_ok_and(|copies| copies > 0) {
            // What has a copy in the hot zone may be there alone from now on.
            self.review_hot();
        }
    }

    /// Reads on every copy those metadata that are not read otherwise: superblocks, the checksums of data, the contents
    /// of the hot zone. Returns how many of their blocks are damaged on some copy. If it `repairs`, these are written
    /// again from another copy, and two new checkpoints take the place of log and checkpoints; a page of checksums that
    /// no copy has whole is an error then.
    pub async fn scrub_copies(&self, repairs: bool) -> Result<u64, FsError> {
        self.scrub_metadata(repairs, &mut Vec::new()).await
    }

    /// The same; adds blocks of files alone in the hot zone that no copy has whole to `lost`.
    pub(super) async fn scrub_metadata(&self, repairs: bool, lost: &mut Vec<(Inode, u64)>) -> Result<u64, FsError> {
        let core = &self.0;
        if repairs {
            self.0.begin_task().await?;
        }
        let of_labels = core.metadata.mend_labels().await;
        let alone = self.scrub_alone(repairs).await?;
        lost.extend(alone.lost);
        let of_zone = self.scrub_hot(repairs).await? + self.scrub_stamps(repairs).await? + alone.damaged;
        let live = |run: Run| {
            let piece = |(_, extent): (Inode, Extent)| Run { start: extent.start, blocks: u64::from(extent.blocks) };
            self.pieces_on(run).into_iter().map(piece).collect()
        };
        let damaged = of_labels + core.checksums.scrub(repairs, live).await? + of_zone;
        if repairs {
            self.checkpoint_from_now_on().await?;
            self.checkpoint_from_now_on().await?;
        }
        Ok(damaged)
    }

    /// Puts `device`, called `uuid`, in the place of copy `slot` of the metadata: it gets all that the others have. `told` is
    /// called with the blocks that are copied and those in all, and says whether to go on.
    pub async fn replace_copy(
        &self,
        slot: usize,
        (device, uuid): (&Device, Uuid),
        overwrite: bool,
        mut told: impl FnMut(u64, u64) -> bool,
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
        super::make::check_for_metadata(device, needed)?;
        if !overwrite {
            super::make::refuse_used(device).await?;
        }
        super::make::erase(device).await?;
        // What only the copy that leaves has whole is given to the others before.
        self.scrub_alone(true).await?;
        device.set_queue_limits(self.0.bounds.queue);
        let member = Member { uuid, role: Role::Metadata, geometry: device.geometry() };
        metadata.add(slot, member, device.clone());
        let mut is_stopped = false;
        let brought = metadata.bring_up_to_date(|done, all| {
            is_stopped |= !told(done, all);
            !is_stopped
        });
        if brought.await? == 0 {
            metadata.give_up_outdated();
            return if is_stopped { Err(FsError::Stopped) } else { wrong("failed while it was written".into()) };
        }
        self.review_hot();
        Ok(needed)
    }
}
