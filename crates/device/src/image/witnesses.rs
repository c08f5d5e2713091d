//! Witnesses of slots after an unclean shutdown. A slot is assigned by two writes: its directory entry and its header.
//! A kill or a power cut between them keeps one of the two. It may also keep lines in the sector table of a slot whose
//! assignment was lost.
//!
//! Only slots that the state does not count yet can be affected: older slots were durable, with both witnesses, when
//! the state was written. A missing witness of an older slot is damage, and is left for the check to report.
//!
//! Invariants:
//! 1. Afterwards every slot that was assigned since the state was written has both witnesses.
//! 2. Afterwards a slot without an owner is as it was prepared: nothing in it names a chunk.

use super::directory::Owner;
use super::layout::BLOCK_BYTES;
use super::space::Space;
use crate::error::DeviceError;
use crate::media::Media;

impl<M: Media> Space<M> {
    /// Completes the assignment of slots that was interrupted.
    pub(super) fn settle_witnesses(&mut self) -> Result<(), DeviceError> {
        if self.has_orphans {
            // An unassigned slot may be one whose owner is lost.
            return Ok(());
        }
        let counted = usize::try_from(self.state.slots_given).unwrap_or(usize::MAX);
        let uncounted: Vec<(u64, u64)> = self.directory.given_slots().skip(counted).collect();
        for (slot, chunk) in uncounted {
            let witnesses = [self.read_entry(slot)?, self.slot_header(slot)?];
            if witnesses.contains(&Owner::Nobody) && !witnesses.contains(&Owner::Spoilt) {
                self.write_owner(slot, chunk)?;
            }
        }
        for slot in 0..self.state.slot_mark {
            if self.directory.chunk(slot).is_none() {
                self.blank_table(slot)?;
            }
        }
        Ok(())
    }

    /// Resets `slot`, which has no owner, to its prepared condition, unless its header is damaged.
    fn blank_table(&mut self, slot: u64) -> Result<(), DeviceError> {
        if self.slot_header(slot)? != Owner::Nobody {
            return Ok(());
        }
        let head = self.prepared_head(slot);
        let mut found = vec![0; head.len()];
        let failed = |cause| DeviceError::medium("reading the image's slots", cause);
        self.media.read_at(self.layout.slot(slot), &mut found).map_err(failed)?;
        if found[BLOCK_BYTES..] != head[BLOCK_BYTES..] {
            let failed = |cause| DeviceError::medium("writing the image's slots", cause);
            self.media.write_at(self.layout.slot(slot), &head).map_err(failed)?;
        }
        Ok(())
    }
}
