//! Where each part of an image lies.
//!
//! ```text
//!  3 × heads      header (64 KiB) and two places for the state (4 KiB each), a good way apart from each other; the first
//!                 has the file mark behind them
//!  directory      16 bytes a slot: which chunk it holds
//!  restore area   new contents of sectors that are about to be overwritten, where a sector is larger than what the
//!                 host's disk writes whole
//!  slots          each: slot header (512 bytes) · digests of the sector table (512-byte blocks) · padding to 4 KiB ·
//!                 sector table (512-byte blocks of 62 sectors) · padding to 4 KiB · the chunk's contents
//! ```
//!
//! Version 2 has no restore area, no digests and no padding before the sector table.
//!
//! The address space of a drive is divided into chunks. A chunk gets a slot on its first write. So the file is as long
//! as the data that was written, and a drive may be larger than the largest file of the host's file system.
//!
//! Invariants:
//! 1. Regions begin at chunk boundaries; no chunk belongs to two regions.
//! 2. Contents begin at multiples of 4 KiB, to match the pages of the host's page cache.
//! 3. The digest of a block of a sector table lies in another 4 KiB of the file than the block.

/// Region of the address space of an image: one kind of data that a drive stores, independent of its place in the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(usize)]
pub enum Region {
    /// Contents of the physical sectors of the platters.
    Disk = 0,
    /// Contents of the sectors of the flash.
    Flash = 1,
    /// First copy of journal 0.
    JournalA = 2,
    /// First copy of journal 1.
    JournalB = 3,
    /// Second copy of journal 0.
    MirrorA = 4,
    /// Second copy of journal 1.
    MirrorB = 5,
}

impl Region {
    /// All regions, in the order in which their chunks are numbered.
    pub const ALL: [Region; REGIONS] =
        [Region::Disk, Region::Flash, Region::JournalA, Region::JournalB, Region::MirrorA, Region::MirrorB];

    /// Returns whether the region holds sectors of the drive, with their checksums in sector tables: true for the
    /// platters and the flash, false for journals.
    pub fn has_sectors(self) -> bool {
        matches!(self, Region::Disk | Region::Flash)
    }
}

pub(super) const REGIONS: usize = 6;
/// Number of bytes reserved for each copy of the header.
pub const HEADER_BYTES: u64 = 64 << 10;
/// Number of copies of the header and of each state.
pub(super) const COPIES: u64 = 3;
/// Size of a block in bytes: a medium writes a block atomically.
pub(super) const BLOCK_BYTES: usize = 512;
/// Number of sectors that a block of a sector table covers.
pub(super) const SECTORS_PER_BLOCK: u64 = 62;
/// Number of digests in one block of digests.
pub(super) const DIGESTS_PER_BLOCK: u64 = 31;
/// Largest unit, in bytes, that the host's disk may write atomically. A witness lies in another unit than the data that
/// it vouches for.
const HOST_BLOCK_BYTES: u64 = 4096;
/// Size of the restore area in chunks. A chunk of fewer sectors than this counts as this many sectors.
const RESTORE_CHUNKS: u64 = 4;
/// Size of a directory entry in bytes.
pub(super) const ENTRY_BYTES: u64 = 16;
/// Bytes reserved for each state.
const STATE_ROOM: u64 = 4096;
/// Smallest and largest distance, in bytes, between the copies of the head (header and states).
const HEAD_DISTANCES: [u64; 2] = [128 << 10, 1 << 20];

/// Sizes that determine the layout of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Size of a sector of the drive in bytes.
    pub sector_bytes: u64,
    /// Size in bytes of a chunk, the unit in which space of the image is allocated.
    pub chunk_bytes: u64,
    /// Number of physical sectors of the platters.
    pub disk_sectors: u64,
    /// Number of sectors of the flash; 0 if the drive has none.
    pub flash_sectors: u64,
    /// Largest size in bytes of each of the two journals. The image stores two copies of each journal.
    pub journal_bytes: u64,
    /// Format version of the image.
    pub version: u32,
}

/// Offsets of all parts of an image. Offsets are in bytes from the start of the image, unless another start is given.
/// Slots, chunks, blocks and copies are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Size in bytes of a chunk, the unit in which space of the image is allocated.
    pub chunk_bytes: u64,
    /// Size of a sector of the drive in bytes.
    pub sector_bytes: u64,
    /// First chunk of each region, and the total number of chunks.
    first_chunk: [u64; REGIONS + 1],
    head_distance: u64,
    directory: u64,
    /// Offset of the restore area in the image.
    restore: u64,
    /// Size of the restore area in bytes; 0 if any disk writes a whole sector atomically, and in version 2.
    pub(super) restore_bytes: u64,
    slots: u64,
    /// Number of blocks in a slot's sector table.
    pub(super) table_blocks: u64,
    /// Number of blocks with the digests of a sector table; 0 in version 2.
    pub(super) digest_blocks: u64,
    /// Offset of the sector table in a slot.
    table: u64,
    /// Offset of the contents in a slot.
    contents: u64,
}

impl Layout {
    /// Returns the layout of an image with these sizes.
    pub fn new(sizes: &Sizes) -> Layout {
        let Sizes { sector_bytes, chunk_bytes, disk_sectors, flash_sectors, journal_bytes: journal, version } = *sizes;
        let sizes = [disk_sectors * sector_bytes, flash_sectors * sector_bytes, journal, journal, journal, journal];
        let mut first_chunk = [0; REGIONS + 1];
        for (index, bytes) in sizes.iter().enumerate() {
            first_chunk[index + 1] = first_chunk[index] + bytes.div_ceil(chunk_bytes);
        }
        let head_distance = head_distance(chunk_bytes);
        let directory = COPIES * head_distance;
        let restore =
            (directory + first_chunk[REGIONS] * ENTRY_BYTES).next_multiple_of(chunk_bytes.max(HOST_BLOCK_BYTES));
        let restores = version > 2 && sector_bytes > BLOCK_BYTES as u64;
        let restore_bytes = if restores { RESTORE_CHUNKS * chunk_bytes.max(RESTORE_CHUNKS * sector_bytes) } else { 0 };
        let slots = restore + restore_bytes;
        let table_blocks = (chunk_bytes / sector_bytes).div_ceil(SECTORS_PER_BLOCK);
        let digest_blocks = if version > 2 { table_blocks.div_ceil(DIGESTS_PER_BLOCK) } else { 0 };
        let header = (1 + digest_blocks) * BLOCK_BYTES as u64;
        let table = if version > 2 { header.next_multiple_of(HOST_BLOCK_BYTES) } else { header };
        let contents = (table + table_blocks * BLOCK_BYTES as u64).next_multiple_of(HOST_BLOCK_BYTES);
        Layout {
            chunk_bytes,
            sector_bytes,
            first_chunk,
            head_distance,
            directory,
            restore,
            restore_bytes,
            slots,
            table_blocks,
            digest_blocks,
            table,
            contents,
        }
    }

    /// Returns the offset in the image, in bytes, of copy `copy`, 0 to 2, of the header.
    pub fn header(&self, copy: u64) -> u64 {
        copy * self.head_distance
    }

    /// Returns the offset in the image, in bytes, of copy `copy`, 0 to 2, of the state in place `place`, 0 or 1. The
    /// state is written alternately to the two places.
    pub fn state(&self, copy: u64, place: u64) -> u64 {
        copy * self.head_distance + HEADER_BYTES + place * STATE_ROOM
    }

    /// Returns the offset in the image, in bytes, of the file mark, which identifies the host file in which the image
    /// was last opened for writing.
    pub fn file_mark(&self) -> u64 {
        HEADER_BYTES + 2 * STATE_ROOM
    }

    /// Returns the offset in the image, in bytes, of the directory entry of slot `slot`, counted from 0. The entry says
    /// which chunk the slot holds.
    pub fn entry(&self, slot: u64) -> u64 {
        self.directory + slot * ENTRY_BYTES
    }

    /// Returns the offset in the image, in bytes, of slot `slot`, counted from 0: the place of one chunk with its
    /// metadata. A slot begins with its header.
    pub fn slot(&self, slot: u64) -> u64 {
        self.slots + slot * self.slot_bytes()
    }

    /// Returns the size of a slot in bytes: its header, digests, sector table and contents.
    pub fn slot_bytes(&self) -> u64 {
        self.contents + self.chunk_bytes
    }

    /// Returns the offset in the image, in bytes, of block `block` (512 bytes, counted from 0) of the sector table of
    /// slot `slot`.
    pub fn block(&self, slot: u64, block: u64) -> u64 {
        self.slot(slot) + self.table + block * BLOCK_BYTES as u64
    }

    /// Returns the offset in the image, in bytes, of block `block` (512 bytes, counted from 0) of the digests of the
    /// sector table of slot `slot`.
    pub fn digests(&self, slot: u64, block: u64) -> u64 {
        self.slot(slot) + (1 + block) * BLOCK_BYTES as u64
    }

    /// Returns the offset in the image of byte `within` of the restore area.
    pub(super) fn restored(&self, within: u64) -> u64 {
        self.restore + within
    }

    /// Returns the offset in the image, in bytes, of byte `within` of the contents of slot `slot`.
    pub fn content(&self, slot: u64, within: u64) -> u64 {
        self.slot(slot) + self.contents + within
    }

    /// Returns the slot whose contents include byte `at` of the image, and the offset of that byte in the contents.
    /// Returns `None` if byte `at` lies before the slots or in the metadata of a slot. Does not check that the slot
    /// exists.
    pub fn slot_at(&self, at: u64) -> Option<(u64, u64)> {
        let past = at.checked_sub(self.slots)?;
        let within = (past % self.slot_bytes()).checked_sub(self.contents)?;
        Some((past / self.slot_bytes(), within))
    }

    /// Returns the size of a slot's header, digests and sector table in bytes, including padding between them.
    pub(super) fn slot_head_bytes(&self) -> usize {
        self.table_offset() + self.table_blocks as usize * BLOCK_BYTES
    }

    /// Returns the offset of the sector table in a slot.
    pub(super) fn table_offset(&self) -> usize {
        self.table as usize
    }

    /// Returns the total number of chunks of all regions (platters, flash, and the copies of both journals), whether or
    /// not space in the image is allocated for them.
    pub fn chunks(&self) -> u64 {
        self.first_chunk[REGIONS]
    }

    /// Returns the number of sectors of the drive in a chunk.
    pub fn chunk_sectors(&self) -> u64 {
        self.chunk_bytes / self.sector_bytes
    }

    /// Returns the numbers of the chunks of `region`, as a half-open range.
    pub fn chunks_of(&self, region: Region) -> std::ops::Range<u64> {
        self.first_chunk[region as usize]..self.first_chunk[region as usize + 1]
    }

    /// Returns the number of the chunk that holds byte `offset` of `region`, counted from the start of the region.
    ///
    /// # Panics
    /// If `offset` lies past the end of the last chunk of the region: a bug of the caller.
    pub fn chunk(&self, region: Region, offset: u64) -> u64 {
        let chunks = self.chunks_of(region);
        let chunk = chunks.start + offset / self.chunk_bytes;
        assert!(chunk < chunks.end, "byte {offset} of {region:?} lies past its end");
        chunk
    }

    /// Returns the region of chunk `chunk`, and the offset in bytes at which the chunk begins in that region. Returns
    /// `None` if there is no such chunk.
    pub fn region_of(&self, chunk: u64) -> Option<(Region, u64)> {
        let region = Region::ALL.into_iter().find(|&region| self.chunks_of(region).contains(&chunk))?;
        Some((region, (chunk - self.chunks_of(region).start) * self.chunk_bytes))
    }
}

fn head_distance(chunk_bytes: u64) -> u64 {
    (16 * chunk_bytes).clamp(HEAD_DISTANCES[0], HEAD_DISTANCES[1])
}

/// Returns every offset at which a copy of a header may lie in any image, for callers that have not read a header yet.
pub(super) fn header_places() -> Vec<u64> {
    let mut places = vec![0];
    let mut distance = HEAD_DISTANCES[0];
    while distance <= HEAD_DISTANCES[1] {
        places.extend((1..COPIES).map(|copy| copy * distance));
        distance *= 2;
    }
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distance_of_heads_is_among_the_places() {
        for chunk in (12..30).map(|power| 1u64 << power) {
            for copy in 0..COPIES {
                assert!(header_places().contains(&(copy * head_distance(chunk))), "chunk of {chunk}, copy {copy}");
            }
        }
    }
}
