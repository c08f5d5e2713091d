//! Upgrade: copies an image of an older version, chunk by chunk, into one of this version. UUID, codes of sectors and
//! contents are kept. Sector tables are written in the new format; the two codes of each line become equal.
//!
//! Invariants:
//! 1. The old image is only read.
//! 2. Damage is preserved. A sector whose sector table is damaged is lost in the copy. Contents that do not match their
//!    checksum are copied with that checksum.

use super::layout::{BLOCK_BYTES, Region, SECTORS_PER_BLOCK};
use super::sectors::{Block, Line, SPOILT, is_sum};
use super::space::Space;
use crate::error::DeviceError;
use crate::media::Media;

impl<M: Media> Space<M> {
    /// Copies all chunks of `old`, an image of the same drive in an older format, into this new image, and takes over
    /// the state of the journal. The caller has called [`Space::settle`] on `old`. After each copied chunk, `told`
    /// receives the number of chunks copied and the total. Durable on return.
    ///
    /// # Errors
    /// One of the two media fails.
    pub fn copy_all<O: Media>(
        &mut self,
        old: &mut Space<O>,
        mut told: impl FnMut(u64, u64),
    ) -> Result<(), DeviceError> {
        let chunks: Vec<(u64, u64)> = old.directory.given_slots().collect();
        let all = chunks.len() as u64;
        for (done, &(slot, chunk)) in (1..).zip(&chunks) {
            let Some((region, _)) = old.layout.region_of(chunk) else { continue };
            let own = self.give(chunk)?;
            if region.has_sectors() {
                self.copy_sectors(old, region, (slot, own), chunk)?;
            } else {
                self.copy_run(old, (slot, own), 0..self.layout.chunk_bytes)?;
            }
            told(done, all);
        }
        let of_old = old.state;
        self.update(|state| {
            state.journal = of_old.journal;
            state.journal_epoch = of_old.journal_epoch;
            state.epoch = of_old.epoch;
            state.journal_records = of_old.journal_records;
        })?;
        self.update(|state| state.is_sealed = of_old.is_sealed)
    }

    fn copy_sectors<O: Media>(
        &mut self,
        old: &mut Space<O>,
        region: Region,
        (slot, own): (u64, u64),
        chunk: u64,
    ) -> Result<(), DeviceError> {
        debug_assert!(region.has_sectors());
        let (sector_bytes, sectors) = (self.layout.sector_bytes, self.layout.chunk_sectors());
        for number in 0..self.layout.table_blocks {
            let begin = number * SECTORS_PER_BLOCK;
            let count = SECTORS_PER_BLOCK.min(sectors - begin);
            let block = old.block(slot, number)?.cloned().unwrap_or_else(|| Block::filled(SPOILT));
            let mut copy = Block::filled(super::sectors::ABSENT);
            copy.enter(self.state.era);
            (0..count).for_each(|index| copy.set(index, Line::settled(block.line(index).is)));
            let bytes = self.seal.close(own, number, Some(chunk), &mut copy);
            debug_assert_eq!(bytes.len(), BLOCK_BYTES);
            let failed = |cause| DeviceError::medium("writing the image's sector tables", cause);
            self.media.write_at(self.layout.block(own, number), &bytes).map_err(failed)?;
            self.kept.put(own, number, &copy);
            self.undigested.insert((own, number));
            let mut next = 0;
            while let Some(first) = (next..count).find(|&index| is_sum(copy.line(index).is)) {
                next = (first..count).find(|&index| !is_sum(copy.line(index).is)).unwrap_or(count);
                self.copy_run(old, (slot, own), (begin + first) * sector_bytes..(begin + next) * sector_bytes)?;
            }
        }
        self.is_changed = true;
        self.write_digests()
    }

    /// Copies the bytes `within` of the contents of `slot` to slot `own`. Skips zeros.
    fn copy_run<O: Media>(
        &mut self,
        old: &mut Space<O>,
        (slot, own): (u64, u64),
        within: std::ops::Range<u64>,
    ) -> Result<(), DeviceError> {
        let mut bytes = vec![0; (within.end - within.start) as usize];
        let failed = |cause| DeviceError::medium("reading the older image", cause);
        old.media.read_at(old.layout.content(slot, within.start), &mut bytes).map_err(failed)?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        self.is_changed = true;
        let failed = |cause| DeviceError::medium("writing the image's contents", cause);
        self.media.write_at(self.layout.content(own, within.start), &bytes).map_err(failed)
    }
}
