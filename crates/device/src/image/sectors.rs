//! Sector tables. For every sector of the platters and the flash, a table stores whether the sector was written,
//! destroyed or lost, and the checksum of its contents. A table lies in the slot of its chunk, in blocks that a power
//! cut leaves old or new.
//!
//! A sector's contents and its line in the table lie apart, so a power cut may keep one without the other. Therefore a
//! line has two codes: the current one (`is`), and the one when the current *era* began (`was`). Eras end at barriers.
//! The line is written before the contents. After a power cut, and only then, a sector of the interrupted era may have
//! its old contents ([`settled`]):
//!
//! ```text
//!   was            is      the contents sum to     then the sector
//!   any            sum     is                      is new
//!   sum            sum     was                     is old
//!   no sum         sum     neither                 is old: never written, zeros, or destroyed
//!   sum            sum     neither                 is damaged: `write` sees to it that no cut can leave this
//!   any            no sum                          is new: the line alone says so
//! ```
//!
//! Invariants:
//! 1. A block in memory equals the block on the medium: blocks are written as soon as they change.
//! 2. A damaged block is ignored: its sectors count as lost (`SPOILT`).
//! 3. A block that does not match its digest is older than the last write of the block, and is ignored like a damaged
//!    one.
//! 4. If the table says that a sector holds contents, only contents with that checksum are returned.

use uuid::Uuid;

use super::checksum::{FIRST_SUM, Salt, What};
use super::layout::{BLOCK_BYTES, SECTORS_PER_BLOCK};

/// Code of a sector that was never written.
pub(super) const ABSENT: u32 = 0;
/// Code of a sector that was destroyed by a write to an overlapping track.
pub(super) const DESTROYED: u32 = 1;
/// Code of a sector that was written with zeros; no contents are stored.
pub(super) const ZERO: u32 = 2;
/// Code of a sector that was lost by damage to the image.
pub(super) const SPOILT: u32 = 3;

/// Returns whether `code` is a checksum of contents.
#[inline]
pub(super) fn is_sum(code: u32) -> bool {
    code >= FIRST_SUM
}

/// Line of a sector in its sector table: two codes, each a checksum or one of the constants [`ABSENT`] to [`SPOILT`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Line {
    /// Code of the sector when the era of the block began.
    pub(super) was: u32,
    /// Current code of the sector.
    pub(super) is: u32,
}

impl Line {
    /// Returns the line of a sector whose code was `code` before the era of the block, and still is.
    #[inline]
    pub(super) fn settled(code: u32) -> Line {
        Line { was: code, is: code }
    }
}

const LINES_AT: usize = 16;
/// Bytes of the current codes of all sectors of a block.
const CODES_BYTES: usize = SECTORS_PER_BLOCK as usize * 4;

/// Digest of a block of a sector table: the witness of the block, stored in another place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Digest {
    /// Era of the block.
    pub(super) era: u64,
    /// Checksum of the codes that the block's sectors had before that era.
    pub(super) was: u32,
    /// Checksum of the current codes of the block's sectors.
    pub(super) is: u32,
}

/// Methods of a block that holds the digests of blocks of a sector table. It is sealed and cached like those blocks,
/// under numbers that follow theirs.
impl Block {
    /// Returns a block without digests.
    pub(super) fn of_digests() -> Block {
        Block { bytes: [0; BLOCK_BYTES] }
    }

    pub(super) fn digest(&self, index: u64) -> Digest {
        let at = LINES_AT + index as usize * DIGEST_BYTES;
        let (era, sums) = self.bytes[at..at + DIGEST_BYTES].split_at(8);
        let sum = |at: usize| u32::from_le_bytes(sums[at..at + 4].try_into().expect("four bytes"));
        Digest { era: u64::from_le_bytes(era.try_into().expect("eight bytes")), was: sum(0), is: sum(4) }
    }

    pub(super) fn set_digest(&mut self, index: u64, digest: Digest) {
        let at = LINES_AT + index as usize * DIGEST_BYTES;
        self.bytes[at..at + 8].copy_from_slice(&digest.era.to_le_bytes());
        self.bytes[at + 8..at + 12].copy_from_slice(&digest.was.to_le_bytes());
        self.bytes[at + 12..at + 16].copy_from_slice(&digest.is.to_le_bytes());
    }
}

/// Size of a digest in bytes.
const DIGEST_BYTES: usize = 16;

/// A block of a sector table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Block {
    bytes: [u8; BLOCK_BYTES],
}

impl Block {
    /// Returns a block in which all sectors have the code `code`.
    pub(super) fn filled(code: u32) -> Block {
        let mut block = Block { bytes: [0; BLOCK_BYTES] };
        (0..SECTORS_PER_BLOCK).for_each(|index| block.set(index, Line::settled(code)));
        block
    }

    #[inline]
    pub(super) fn line(&self, index: u64) -> Line {
        let at = LINES_AT + index as usize * 8;
        let code = |at: usize| u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"));
        Line { was: code(at), is: code(at + 4) }
    }

    #[inline]
    pub(super) fn set(&mut self, index: u64, line: Line) {
        let at = LINES_AT + index as usize * 8;
        self.bytes[at..at + 4].copy_from_slice(&line.was.to_le_bytes());
        self.bytes[at + 4..at + 8].copy_from_slice(&line.is.to_le_bytes());
    }

    /// Returns the era in which the block was last written.
    #[inline]
    pub(super) fn era(&self) -> u64 {
        u64::from_le_bytes(self.bytes[8..16].try_into().expect("eight bytes"))
    }

    /// Moves the block to `era`: the current codes become those at the start of the era. Does nothing if the block
    /// belongs to `era` already.
    pub(super) fn enter(&mut self, era: u64) {
        if self.era() == era {
            return;
        }
        self.bytes[8..16].copy_from_slice(&era.to_le_bytes());
        for index in 0..SECTORS_PER_BLOCK {
            let is = self.line(index).is;
            self.set(index, Line::settled(is));
        }
    }

    /// Returns the current codes of the block's sectors.
    fn codes(&self) -> [u8; CODES_BYTES] {
        let mut codes = [0; CODES_BYTES];
        for index in 0..SECTORS_PER_BLOCK {
            codes[index as usize * 4..][..4].copy_from_slice(&self.line(index).is.to_le_bytes());
        }
        codes
    }

    /// Returns the chunk that the block's slot holds, if the block was written after the slot was assigned.
    pub(super) fn chunk(&self) -> Option<u64> {
        u32::from_le_bytes(self.bytes[4..8].try_into().expect("four bytes")).checked_sub(1).map(u64::from)
    }
}

/// Seals blocks of one image with checksums, and verifies them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seal {
    blocks: Salt,
    digests: Salt,
}

impl Seal {
    pub(super) fn new(uuid: Uuid) -> Seal {
        Seal { blocks: Salt::new(uuid, What::SectorTable), digests: Salt::new(uuid, What::Digest) }
    }

    fn sum(self, slot: u64, block: u64, bytes: &[u8]) -> u32 {
        self.blocks.sum(slot << 24 | block, &bytes[4..])
    }

    /// Returns the digest of `block`, block `number` of the sector table of `slot`. Both checksums of the digest are
    /// those of the current codes.
    pub(super) fn digest(self, slot: u64, number: u64, block: &Block) -> Digest {
        let is = self.digests.sum(slot << 24 | number, &block.codes());
        Digest { era: block.era(), was: is, is }
    }

    /// Seals `block`, block `number` of the sector table of `slot`, which holds `chunk`. Returns its bytes on the
    /// medium.
    pub(super) fn close(self, slot: u64, number: u64, chunk: Option<u64>, block: &mut Block) -> [u8; BLOCK_BYTES] {
        block.bytes[4..8].copy_from_slice(&chunk.map_or(0, |chunk| chunk as u32 + 1).to_le_bytes());
        let sum = self.sum(slot, number, &block.bytes);
        block.bytes[..4].copy_from_slice(&sum.to_le_bytes());
        block.bytes
    }

    /// Returns the block in `bytes`, or `None` if it is damaged or belongs to another place.
    pub(super) fn open(self, slot: u64, number: u64, bytes: &[u8; BLOCK_BYTES]) -> Option<Block> {
        (self.sum(slot, number, bytes).to_le_bytes() == bytes[..4]).then_some(Block { bytes: *bytes })
    }
}

/// A block in memory with its place.
#[derive(Debug)]
struct Held {
    slot: u64,
    number: u64,
    block: Block,
}

/// Direct-mapped cache of blocks: each block has one entry, and replaces the block that is there.
#[derive(Debug)]
pub(super) struct Kept(Vec<Option<Box<Held>>>);

impl Kept {
    /// Returns an empty cache of `blocks` entries.
    pub(super) fn new(blocks: usize) -> Kept {
        let mut places = Vec::new();
        places.resize_with(blocks.max(1), || None);
        Kept(places)
    }

    fn place(&self, slot: u64, number: u64) -> usize {
        // Neighbouring blocks get neighbouring entries; the multiplier spreads slots.
        (slot.wrapping_mul(0x9e37_79b9).wrapping_add(number) % self.0.len() as u64) as usize
    }

    pub(super) fn get(&self, slot: u64, number: u64) -> Option<&Block> {
        let held = self.0[self.place(slot, number)].as_ref()?;
        (held.slot == slot && held.number == number).then_some(&held.block)
    }

    /// Caches `block` in place of the block that used its entry.
    pub(super) fn put(&mut self, slot: u64, number: u64, block: &Block) {
        let place = self.place(slot, number);
        match &mut self.0[place] {
            Some(held) => {
                (held.slot, held.number) = (slot, number);
                held.block.bytes = block.bytes;
            }
            empty => *empty = Some(Box::new(Held { slot, number, block: block.clone() })),
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.iter_mut().for_each(|place| *place = None);
    }
}

/// Returns the code of a sector after a power cut in the era of its `line`; `sum` is the checksum of the contents
/// found. Returns `None` if the contents are neither old nor new.
pub(super) fn settled(line: Line, sum: u32) -> Option<u32> {
    if !is_sum(line.is) || line.is == sum {
        Some(line.is)
    } else if !is_sum(line.was) || line.was == sum {
        Some(line.was)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_leaves_old_or_new() {
        let line = |was, is| Line { was, is };
        let (old, new, other) = (100, 200, 300);
        assert_eq!(settled(line(old, new), new), Some(new));
        assert_eq!(settled(line(old, new), old), Some(old));
        assert_eq!(settled(line(old, new), other), None);
        for was in [ABSENT, DESTROYED, ZERO, SPOILT] {
            assert_eq!(settled(line(was, new), other), Some(was));
            assert_eq!(settled(line(was, new), new), Some(new));
            assert_eq!(settled(line(old, was), old), Some(was), "the line alone says so");
        }
    }

    #[test]
    fn a_block_keeps_what_it_is_told_and_knows_its_place() {
        let seal = Seal::new(Uuid::from_u128(3));
        let mut block = Block::filled(ABSENT);
        block.enter(7);
        block.set(61, Line { was: ABSENT, is: 4711 });
        let bytes = seal.close(5, 2, Some(9), &mut block);
        let read = seal.open(5, 2, &bytes).expect("it is whole");
        assert_eq!((read.line(61), read.line(60)), (Line { was: ABSENT, is: 4711 }, Line::settled(ABSENT)));
        assert_eq!((read.chunk(), read.era()), (Some(9), 7));
        assert!(seal.open(5, 3, &bytes).is_none() && seal.open(6, 2, &bytes).is_none(), "another place");
        for at in 0..BLOCK_BYTES {
            let mut spoilt = bytes;
            spoilt[at] ^= 4;
            assert!(seal.open(5, 2, &spoilt).is_none(), "byte {at}");
        }
        let mut next = read;
        next.enter(8);
        assert_eq!(next.line(61), Line::settled(4711));
    }

    #[test]
    fn one_place_holds_the_latest_block() {
        let mut kept = Kept::new(1);
        let (first, second) = (Block::filled(ZERO), Block::filled(SPOILT));
        kept.put(1, 1, &first);
        assert_eq!(kept.get(1, 1), Some(&first));
        kept.put(2, 1, &second);
        assert_eq!((kept.get(1, 1), kept.get(2, 1)), (None, Some(&second)));
    }

    #[test]
    fn neighbours_are_kept_side_by_side() {
        let mut kept = Kept::new(4);
        let blocks = [ABSENT, DESTROYED, ZERO, SPOILT].map(Block::filled);
        (0..).zip(&blocks).for_each(|(number, block)| kept.put(9, 30 + number, block));
        (0..).zip(&blocks).for_each(|(number, block)| assert_eq!(kept.get(9, 30 + number), Some(block)));
    }
}
