//! Where everything lies in an image.
//!
//! ```text
//!  3 × heads      header (64 KiB) and two places for the state (4 KiB each), a good way apart from each other; the first
//!                 has the file mark behind them
//!  directory      16 bytes a slot: which chunk it holds
//!  restore area   contents about to be overwritten, where a sector is larger than what the host's disk writes whole
//!  slots          each: slot header (512 bytes) · digests of the sector table (512-byte blocks) · padding to 4 KiB ·
//!                 sector table (512-byte blocks of 62 sectors) · padding to 4 KiB · the chunk's contents
//! ```
//!
//! Version 2 has neither a restore area nor digests nor the first padding.
//!
//! The space of a drive is cut into chunks; a chunk gets a slot when something is first written to it. So an image is as
//! long as what was written, and a drive may be larger than the largest file of the host's file system.
//!
//! Invariants:
//! 1. Regions begin at a chunk; no chunk belongs to two.
//! 2. Contents begin at multiples of 4 KiB, as the host's page cache likes it.
//! 3. The digest of a block of a sector table lies in another 4 KiB of the file than the block.

/// What part of the drive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(usize)]
pub enum Region {
    /// Contents of the platters.
    Disk = 0,
    /// Contents of the flash.
    Flash = 1,
    /// The first journal.
    JournalA = 2,
    /// The second journal.
    JournalB = 3,
    /// The second copy of the first journal.
    MirrorA = 4,
    /// The second copy of the second journal.
    MirrorB = 5,
}

impl Region {
    /// All of them, in the order of their chunks.
    pub const ALL: [Region; REGIONS] =
        [Region::Disk, Region::Flash, Region::JournalA, Region::JournalB, Region::MirrorA, Region::MirrorB];

    /// Whether its contents are sectors, each with its line in a sector table.
    pub fn has_sectors(self) -> bool {
        matches!(self, Region::Disk | Region::Flash)
    }
}

pub(super) const REGIONS: usize = 6;
/// Bytes set aside for the header.
pub const HEADER_BYTES: u64 = 64 << 10;
/// Copies of the header, and of each state.
pub(super) const COPIES: u64 = 3;
/// Bytes of a block: what a medium writes whole or not at all.
pub(super) const BLOCK_BYTES: usize = 512;
/// Sectors that a block of a sector table covers.
pub(super) const SECTORS_PER_BLOCK: u64 = 62;
/// Digests of blocks of a sector table that lie in one block.
pub(super) const DIGESTS_PER_BLOCK: u64 = 31;
/// What the host's disk may write whole or not at all, at most: what vouches for something lies in another of these.
const HOST_BLOCK_BYTES: u64 = 4096;
/// The restore area, in chunks.
const RESTORE_CHUNKS: u64 = 4;
/// Bytes of an entry of the directory.
pub(super) const ENTRY_BYTES: u64 = 16;
/// Bytes set aside for each state.
const STATE_ROOM: u64 = 4096;
/// The smallest and the largest distance of the copies of the head.
const HEAD_DISTANCES: [u64; 2] = [128 << 10, 1 << 20];

/// What the geometry of an image follows from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Bytes of a sector.
    pub sector_bytes: u64,
    /// Bytes of a chunk's contents.
    pub chunk_bytes: u64,
    /// Sectors of the platters.
    pub disk_sectors: u64,
    /// Sectors of the flash.
    pub flash_sectors: u64,
    /// Bytes of each journal.
    pub journal_bytes: u64,
    /// The version of the format.
    pub version: u32,
}

/// The geometry of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Bytes of a chunk's contents.
    pub chunk_bytes: u64,
    /// Bytes of a sector.
    pub sector_bytes: u64,
    /// First chunk of each region, and one past the last.
    first_chunk: [u64; REGIONS + 1],
    head_distance: u64,
    directory: u64,
    /// Where the restore area begins.
    restore: u64,
    /// Bytes of the restore area; none where sectors are no larger than what any disk writes whole.
    pub(super) restore_bytes: u64,
    slots: u64,
    /// Blocks of a slot's sector table.
    pub(super) table_blocks: u64,
    /// Blocks with the digests of those; none in version 2.
    pub(super) digest_blocks: u64,
    /// Where a slot's sector table begins in it.
    table: u64,
    /// Where a slot's contents begin in it.
    contents: u64,
}

impl Layout {
    /// The layout of an image of these sizes.
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

    /// Where copy `copy` of the header lies.
    pub fn header(&self, copy: u64) -> u64 {
        copy * self.head_distance
    }

    /// Where copy `copy` of the state in place `place`, 0 or 1, lies.
    pub fn state(&self, copy: u64, place: u64) -> u64 {
        copy * self.head_distance + HEADER_BYTES + place * STATE_ROOM
    }

    /// Where the file mark lies.
    pub fn file_mark(&self) -> u64 {
        HEADER_BYTES + 2 * STATE_ROOM
    }

    /// Where the directory's entry of `slot` lies.
    pub fn entry(&self, slot: u64) -> u64 {
        self.directory + slot * ENTRY_BYTES
    }

    /// Where `slot` begins, and with it its header.
    pub fn slot(&self, slot: u64) -> u64 {
        self.slots + slot * self.slot_bytes()
    }

    /// Bytes of a slot.
    pub fn slot_bytes(&self) -> u64 {
        self.contents + self.chunk_bytes
    }

    /// Where block `block` of the sector table of `slot` lies.
    pub fn block(&self, slot: u64, block: u64) -> u64 {
        self.slot(slot) + self.table + block * BLOCK_BYTES as u64
    }

    /// Where block `block` of the digests of `slot` lies.
    pub fn digests(&self, slot: u64, block: u64) -> u64 {
        self.slot(slot) + (1 + block) * BLOCK_BYTES as u64
    }

    /// Where byte `within` of the restore area lies.
    pub(super) fn restored(&self, within: u64) -> u64 {
        self.restore + within
    }

    /// Where byte `within` of the contents of `slot` lies.
    pub fn content(&self, slot: u64, within: u64) -> u64 {
        self.slot(slot) + self.contents + within
    }

    /// The slot in whose contents byte `at` of the image lies, and where there.
    pub fn slot_at(&self, at: u64) -> Option<(u64, u64)> {
        let past = at.checked_sub(self.slots)?;
        let within = (past % self.slot_bytes()).checked_sub(self.contents)?;
        Some((past / self.slot_bytes(), within))
    }

    /// Bytes of a slot's header, digests and sector table, with the padding between them.
    pub(super) fn slot_head_bytes(&self) -> usize {
        self.table_offset() + self.table_blocks as usize * BLOCK_BYTES
    }

    /// Where a slot's sector table begins in it.
    pub(super) fn table_offset(&self) -> usize {
        self.table as usize
    }

    /// Chunks of all regions.
    pub fn chunks(&self) -> u64 {
        self.first_chunk[REGIONS]
    }

    /// Sectors of a chunk.
    pub fn chunk_sectors(&self) -> u64 {
        self.chunk_bytes / self.sector_bytes
    }

    /// The chunks of `region`.
    pub fn chunks_of(&self, region: Region) -> std::ops::Range<u64> {
        self.first_chunk[region as usize]..self.first_chunk[region as usize + 1]
    }

    /// The chunk that holds byte `offset` of `region`.
    ///
    /// # Panics
    /// Past the end of the region: a bug of whoever asks.
    pub fn chunk(&self, region: Region, offset: u64) -> u64 {
        let chunks = self.chunks_of(region);
        let chunk = chunks.start + offset / self.chunk_bytes;
        assert!(chunk < chunks.end, "byte {offset} of {region:?} lies past its end");
        chunk
    }

    /// The region of `chunk`, and its first byte there.
    pub fn region_of(&self, chunk: u64) -> Option<(Region, u64)> {
        let region = Region::ALL.into_iter().find(|&region| self.chunks_of(region).contains(&chunk))?;
        Some((region, (chunk - self.chunks_of(region).start) * self.chunk_bytes))
    }
}

fn head_distance(chunk_bytes: u64) -> u64 {
    (16 * chunk_bytes).clamp(HEAD_DISTANCES[0], HEAD_DISTANCES[1])
}

/// Where copies of a header may lie, whatever the image: for whoever has not read one yet.
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
