//! Digests of the blocks of sector tables. A digest is the witness of its block: if the host's disk drops a write of
//! the block, the digest shows that the block is too old. Digests lie in the slot, in another 4 KiB of the file than
//! the sector table.
//!
//! A block of a sector table is written whenever its lines change. Its digest is written at the end of the era, before
//! the flush that ends the era. So between two barriers, and after a power cut, block and digest may differ:
//!
//! ```text
//!   block's era   digest's era   what must agree            where it does      where it does not
//!   any           any            is = is                    whole
//!   settled       settled        nothing else                                  the older of the two is damaged
//!   open          settled        nothing                    digest behind
//!   settled       open, or       digest's was = block's is  digest ahead       the block is damaged
//!   open          open, later
//!   open          open, same     nothing                    digest behind
//! ```
//!
//! An era is "open" if a power cut may have interrupted it: the era of the state that was read, and later ones. Earlier
//! eras are "settled". A digest that is behind or ahead is rewritten when the image is opened. An era has ended once
//! the state says so durably; no flush is answered before. Not detected: a block and its digest that are both older.
//!
//! Invariants:
//! 1. When an era has ended, the digest of every block that was written in it is durable.
//! 2. The lines of a block whose digest is newer than the block are not used ([`Space::is_known`]).

use std::cmp::Ordering;

use super::layout::{BLOCK_BYTES, DIGESTS_PER_BLOCK};
use super::sectors::{Block, Digest};
use super::space::Space;
use crate::error::DeviceError;
use crate::media::Media;

/// Result of comparing a block with its digest, if eras from `since` on may have been interrupted by a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Agreement {
    /// The digest matches the block.
    Same,
    /// Block and digest differ as a power cut can leave them: the digest must be rewritten.
    Behind,
    /// The block is older than its digest: a write of the block was dropped.
    BlockIsOlder,
    /// The digest is older than its block: a write of the digest was dropped.
    DigestIsOlder,
}

/// Compares `block`, the digest computed from the contents of a block, with `written`, the digest stored for that
/// block.
pub(super) fn compare(block: Digest, written: Digest, since: u64) -> Agreement {
    if block.is == written.is {
        return Agreement::Same;
    }
    let (is_open, was_open) = (block.era >= since, written.era >= since);
    match block.era.cmp(&written.era) {
        Ordering::Greater | Ordering::Equal if is_open => Agreement::Behind,
        Ordering::Less if was_open && written.was == block.is => Agreement::Behind,
        Ordering::Greater => Agreement::DigestIsOlder,
        Ordering::Less | Ordering::Equal => Agreement::BlockIsOlder,
    }
}

impl<M: Media> Space<M> {
    /// Returns whether sector tables have digests.
    pub(super) fn has_digests(&self) -> bool {
        self.layout.digest_blocks > 0
    }

    /// Returns the digest stored for block `number` of the sector table of `slot`, or `None` if the block of digests is
    /// damaged.
    pub(super) fn written_digest(&mut self, slot: u64, number: u64) -> Result<Option<Digest>, DeviceError> {
        let block = self.digest_block(slot, number / DIGESTS_PER_BLOCK)?;
        Ok(block.map(|block| block.digest(number % DIGESTS_PER_BLOCK)))
    }

    /// Returns the blocks of digests in `head`, the bytes of `slot` before its sector table. A damaged block is `None`.
    pub(super) fn digests_in(&self, slot: u64, head: &[u8]) -> Vec<Option<Block>> {
        let blocks = head.as_chunks::<BLOCK_BYTES>().0.iter().skip(1);
        let numbers = self.layout.table_blocks..self.layout.table_blocks + self.layout.digest_blocks;
        numbers.zip(blocks).map(|(number, bytes)| self.seal.open(slot, number, bytes)).collect()
    }

    /// Returns block `index` of the digests of `slot`, or `None` if it is damaged.
    pub(super) fn digest_block(&mut self, slot: u64, index: u64) -> Result<Option<Block>, DeviceError> {
        let number = self.layout.table_blocks + index;
        if let Some(block) = self.kept.get(slot, number) {
            return Ok(Some(block.clone()));
        }
        let mut bytes = [0; BLOCK_BYTES];
        let failed = |cause| DeviceError::medium("reading the digests of the image's sector tables", cause);
        self.media.read_at(self.layout.digests(slot, index), &mut bytes).map_err(failed)?;
        let block = self.seal.open(slot, number, &bytes);
        block.iter().for_each(|block| self.kept.put(slot, number, block));
        Ok(block)
    }

    /// Returns whether `block`, just read from the medium, is as new as its digest. If the digest is damaged, the
    /// checksum of the block must suffice, and the result is true.
    pub(super) fn is_known(&mut self, slot: u64, number: u64, block: &Block) -> Result<bool, DeviceError> {
        if !self.has_digests() || self.undigested.contains(&(slot, number)) {
            return Ok(true);
        }
        let Some(written) = self.written_digest(slot, number)? else { return Ok(true) };
        let digest = self.seal.digest(slot, number, block);
        Ok(digest.is == written.is || digest.era > written.era)
    }

    /// Writes the digests of all blocks of sector tables that were written since the last call.
    pub(super) fn write_digests(&mut self) -> Result<(), DeviceError> {
        let undigested: Vec<(u64, u64)> = self.undigested.iter().copied().collect();
        let mut written: Vec<(u64, [u8; BLOCK_BYTES])> = Vec::new();
        let block_of = |&(slot, number): &(u64, u64)| (slot, number / DIGESTS_PER_BLOCK);
        for some in undigested.chunk_by(|one, other| block_of(one) == block_of(other)) {
            let (slot, index) = block_of(&some[0]);
            let mut digests = match self.digest_block(slot, index)? {
                Some(digests) => digests,
                None => self.digests_anew(slot, index)?,
            };
            for &(_, number) in some {
                // A damaged block keeps its old digest.
                let Some(block) = self.block(slot, number)?.cloned() else { continue };
                let before = digests.digest(number % DIGESTS_PER_BLOCK);
                let digest = self.seal.digest(slot, number, &block);
                let was = if before.era == digest.era { before.was } else { before.is };
                digests.set_digest(number % DIGESTS_PER_BLOCK, Digest { was, ..digest });
            }
            written.push((self.layout.digests(slot, index), self.close_digests(slot, index, &mut digests)));
        }
        self.put_digests(&written)?;
        self.undigested.clear();
        Ok(())
    }

    /// Seals a block of digests with its checksum, caches it, and returns its bytes.
    pub(super) fn close_digests(&mut self, slot: u64, index: u64, digests: &mut Block) -> [u8; BLOCK_BYTES] {
        let number = self.layout.table_blocks + index;
        let bytes = self.seal.close(slot, number, None, digests);
        self.kept.put(slot, number, digests);
        bytes
    }

    /// Writes blocks of digests to their places, in one call of [`Media::write_together`].
    pub(super) fn put_digests(&mut self, written: &[(u64, [u8; BLOCK_BYTES])]) -> Result<(), DeviceError> {
        if written.is_empty() {
            return Ok(());
        }
        let pieces: Vec<(u64, &[u8])> = written.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
        let failed = |cause| DeviceError::medium("writing the digests of the image's sector tables", cause);
        self.media.write_together(&pieces).map_err(failed)
    }

    /// Computes block `index` of the digests of `slot` from the sector table on the medium.
    fn digests_anew(&mut self, slot: u64, index: u64) -> Result<Block, DeviceError> {
        let mut digests = Block::of_digests();
        let first = index * DIGESTS_PER_BLOCK;
        for number in first..self.layout.table_blocks.min(first + DIGESTS_PER_BLOCK) {
            if let Some(block) = self.block(slot, number)?.cloned() {
                digests.set_digest(number - first, self.seal.digest(slot, number, &block));
            }
        }
        Ok(digests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cut_leaves_is_told_from_what_was_dropped() {
        let of = |era, was, is| Digest { era, was, is };
        let since = 7;
        let cases = [
            ((3, 2), of(3, 1, 2), Agreement::Same),
            ((3, 2), of(5, 2, 4), Agreement::BlockIsOlder),
            ((5, 4), of(3, 1, 2), Agreement::DigestIsOlder),
            ((5, 3), of(5, 2, 4), Agreement::BlockIsOlder),
            // The last era: a power cut may have kept one and not the other.
            ((7, 4), of(5, 1, 2), Agreement::Behind),
            ((5, 2), of(7, 2, 4), Agreement::Behind),
            ((7, 3), of(7, 2, 4), Agreement::Behind),
            ((8, 5), of(7, 2, 4), Agreement::Behind),
            ((7, 4), of(8, 4, 5), Agreement::Behind),
            // The last era, over a block of which an earlier write was dropped.
            ((3, 1), of(7, 2, 4), Agreement::BlockIsOlder),
            ((7, 3), of(8, 4, 5), Agreement::BlockIsOlder),
        ];
        for ((era, is), written, agreement) in cases {
            assert_eq!(compare(of(era, is, is), written, since), agreement, "{era}: {is} and {written:?}");
        }
    }

    #[test]
    fn digests_of_a_block_are_kept_side_by_side() {
        let mut block = Block::of_digests();
        for index in 0..DIGESTS_PER_BLOCK {
            block.set_digest(index, Digest { era: 1 << 40 | index, was: 7, is: index as u32 });
        }
        for index in 0..DIGESTS_PER_BLOCK {
            assert_eq!(block.digest(index), Digest { era: 1 << 40 | index, was: 7, is: index as u32 });
        }
    }
}
