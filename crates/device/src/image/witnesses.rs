//! The witnesses of slots, after an end that was not in good order. A kill, or a power cut, between the two writes that give a
//! slot leaves one of them, and may leave lines in the sector table of a slot that was never given for sure.
//!
//! Only slots that the state does not count yet can be so: those before were durable, with both witnesses, when it was written.
//! What they lack is damage, and is left for the check to name.
//!
//! Invariants:
//! 1. Afterwards every slot that was given since the state was written has both witnesses.
//! 2. Afterwards a slot without an owner is as it was prepared: nothing in it names a chunk.

use super::directory::Owner;
use super::layout::BLOCK_BYTES;
use super::space::Space;
use crate::error::DeviceError;
use crate::media::Media;

impl<M: Media> Space<M> {
    /// Makes good what an end in the midst of giving slots left of their witnesses.
    pub(super) fn settle_witnesses(&mut self) -> Result<(), DeviceError> {
        if self.has_orphans {
            // A slot without an owner may be one whose owner is lost.
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

    /// Makes the sector table of `slot`, which has no owner, as it was prepared, unless its header is damaged.
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
