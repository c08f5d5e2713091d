//! Lists which bytes of an image are in use, and for what: for tests that damage images on purpose, and for users who
//! inspect an image with other tools.
//!
//! Invariants:
//! 1. Pieces do not overlap. Bytes outside of all pieces are ignored.

use super::journal::RECORD_BYTES;
use super::layout::{BLOCK_BYTES, COPIES, ENTRY_BYTES, Region, SECTORS_PER_BLOCK};
use super::sectors::is_sum;
use super::space::Space;
use super::state::STATE_BYTES;
use super::{Header, Journal};
use crate::error::DeviceError;
use crate::media::Media;

/// Purpose of a range of bytes in an image.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Use {
    /// A copy of the header.
    Header,
    /// A copy of the state.
    State,
    /// The directory entry of a slot, which says which chunk the slot holds.
    Directory,
    /// The header at the start of a slot, which repeats which chunk the slot holds.
    SlotHeader,
    /// A block with digests of the blocks of a sector table.
    Digests,
    /// A block of a sector table, with the checksums or codes of up to 62 sectors.
    SectorTable,
    /// Contents of sectors of the drive.
    Contents,
    /// Records of the valid journal, in one of its two copies.
    Journal,
}

impl Use {
    /// All purposes, in the order of their declaration.
    pub const ALL: [Use; 8] = [
        Use::Header,
        Use::State,
        Use::Directory,
        Use::SlotHeader,
        Use::Digests,
        Use::SectorTable,
        Use::Contents,
        Use::Journal,
    ];

    /// Returns the name of this purpose of bytes in an image, for listings, such as `slot-header`.
    pub fn name(self) -> &'static str {
        match self {
            Use::Header => "header",
            Use::State => "state",
            Use::Directory => "directory",
            Use::SlotHeader => "slot-header",
            Use::Digests => "digests",
            Use::SectorTable => "sector-table",
            Use::Contents => "contents",
            Use::Journal => "journal",
        }
    }
}

/// A range of bytes of an image that is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Used {
    /// Purpose of the bytes.
    pub what: Use,
    /// Offset of the first byte of the range from the start of the image, in bytes.
    pub offset: u64,
    /// Length of the range in bytes.
    pub bytes: u64,
}

impl<M: Media> Space<M> {
    /// Calls `each` with every range of bytes of the image that has a purpose of [`Use`], such as header, sector table
    /// or contents. Ranges do not overlap, and are not sorted. Of the journals, only the records of `journal`, the
    /// valid one, are reported. The file mark and the area of copies for torn sectors are left out.
    ///
    /// # Errors
    /// The medium fails.
    pub fn for_each_used(
        &mut self,
        header: &Header,
        journal: &Journal,
        each: &mut dyn FnMut(Used),
    ) -> Result<(), DeviceError> {
        for copy in 0..COPIES {
            each(Used { what: Use::Header, offset: self.layout.header(copy), bytes: header.length() });
            for place in 0..2 {
                each(Used { what: Use::State, offset: self.layout.state(copy, place), bytes: STATE_BYTES as u64 });
            }
        }
        let slots: Vec<(u64, u64)> = self.directory.given_slots().collect();
        for (slot, chunk) in slots {
            each(Used { what: Use::Directory, offset: self.layout.entry(slot), bytes: ENTRY_BYTES });
            each(Used { what: Use::SlotHeader, offset: self.layout.slot(slot), bytes: BLOCK_BYTES as u64 });
            if self.layout.region_of(chunk).is_some_and(|(region, _)| region.has_sectors()) {
                self.for_each_used_sector(slot, each)?;
            }
        }
        for region in journal.regions() {
            self.for_each_used_record(region, journal.records(), each);
        }
        Ok(())
    }

    fn for_each_used_sector(&mut self, slot: u64, each: &mut dyn FnMut(Used)) -> Result<(), DeviceError> {
        let sector_bytes = self.layout.sector_bytes;
        for index in 0..self.layout.digest_blocks {
            each(Used { what: Use::Digests, offset: self.layout.digests(slot, index), bytes: BLOCK_BYTES as u64 });
        }
        for number in 0..self.layout.table_blocks {
            each(Used { what: Use::SectorTable, offset: self.layout.block(slot, number), bytes: BLOCK_BYTES as u64 });
            let Some(block) = self.block(slot, number)?.cloned() else { continue };
            let begin = number * SECTORS_PER_BLOCK;
            let sectors = SECTORS_PER_BLOCK.min(self.layout.chunk_sectors() - begin);
            let mut run: Option<Used> = None;
            for index in (0..sectors).filter(|&index| is_sum(block.line(index).is)) {
                let offset = self.layout.content(slot, (begin + index) * sector_bytes);
                match &mut run {
                    Some(used) if used.offset + used.bytes == offset => used.bytes += sector_bytes,
                    _ => {
                        let next = Used { what: Use::Contents, offset, bytes: sector_bytes };
                        run.replace(next).into_iter().for_each(&mut *each);
                    }
                }
            }
            run.into_iter().for_each(&mut *each);
        }
        Ok(())
    }

    fn for_each_used_record(&self, region: Region, records: u64, each: &mut dyn FnMut(Used)) {
        let (mut offset, end) = (0, records * RECORD_BYTES as u64);
        while offset < end {
            let (chunk, within, bytes) = self.part(region, offset, end - offset);
            if let Some(slot) = self.directory.slot(chunk) {
                each(Used { what: Use::Journal, offset: self.layout.content(slot, within), bytes });
            }
            offset += bytes;
        }
    }
}
