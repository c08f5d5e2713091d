//! The restore area: copies of contents that are about to overwrite durable contents in place. It is needed if the
//! host's disk may tear a sector, because the unit that the disk writes atomically is smaller than a sector.
//!
//! ```text
//!   lines, and copies of the contents ─► flush ─► contents in place ─► flush, which ends the era ─► the area is used again
//!                                          └─ cut: neither what it was nor what it is ─► restored from the copy
//! ```
//!
//! A record of the restore area is a header of 512 bytes, which names sectors, followed by the contents of these
//! sectors. The records of one era follow each other from the start of the area. The checksum in a sector's line of the
//! sector table tells whether its copy is intact.
//!
//! Invariants:
//! 1. A copy is durable before the first byte of its contents is written in place.
//! 2. A copy is not overwritten before its contents in place are durable.

use std::collections::BTreeMap;

use imbrex_disk::Extent;

use super::layout::{BLOCK_BYTES, Region};
use super::sectors::is_sum;
use super::space::Space;
use super::transfer::{Contents, Given, Write};
use crate::error::DeviceError;
use crate::media::Media;

const MAGIC: u32 = 0x5245_5354;
/// Bytes of a record's header before the numbers of the sectors.
const FIXED_BYTES: usize = 24;
/// Largest number of sectors in a record.
const SECTORS_PER_RECORD: usize = (BLOCK_BYTES - FIXED_BYTES) / 8;
/// Flag in the number of a sector that lies on the flash.
const OF_FLASH: u64 = 1 << 63;

/// Offsets in the restore area of the copies from eras that may have been interrupted, by region and sector.
pub(super) type Copies = BTreeMap<(Region, u64), u64>;

impl<M: Media> Space<M> {
    /// Returns whether the host's disk may tear a sector.
    pub(super) fn may_tear(&self) -> bool {
        self.layout.restore_bytes > 0 && self.layout.sector_bytes > self.media.tear_bytes()
    }

    /// Returns how many sectors may be written at once, so that their copies fit into the restore area.
    pub(super) fn sectors_at_once(&self) -> u64 {
        if !self.may_tear() {
            return u64::MAX;
        }
        let of_record = BLOCK_BYTES as u64 + SECTORS_PER_RECORD as u64 * self.layout.sector_bytes;
        let records = self.layout.restore_bytes / of_record;
        match records {
            0 => (self.layout.restore_bytes - BLOCK_BYTES as u64) / self.layout.sector_bytes,
            records => records * SECTORS_PER_RECORD as u64,
        }
    }

    /// Returns whether copies of `sectors` sectors fit into the rest of the restore area, or none are needed.
    pub(super) fn has_room_for_copies(&self, sectors: u64) -> bool {
        let headers = sectors.div_ceil(SECTORS_PER_RECORD as u64) * BLOCK_BYTES as u64;
        !self.may_tear() || self.restore_end + headers + sectors * self.layout.sector_bytes <= self.layout.restore_bytes
    }

    /// Writes copies of the contents of `write` to the restore area, in one call of [`Media::write_together`]. `codes`
    /// are the codes of the written sectors in the sector table.
    pub(super) fn write_copies(&mut self, write: &Write<'_>, codes: &[u32]) -> Result<(), DeviceError> {
        let Some(contents) = write.contents else { return Ok(()) };
        let sector_bytes = self.layout.sector_bytes as usize;
        let stored: Vec<usize> = (0..codes.len()).filter(|&index| is_sum(codes[index])).collect();
        let mut contents = Contents::of(contents);
        let mut headers: Vec<(u64, [u8; BLOCK_BYTES])> = Vec::new();
        let mut pieces: Vec<(u64, &[u8])> = Vec::new();
        for record in stored.chunks(SECTORS_PER_RECORD) {
            let addresses: Vec<u64> = record.iter().map(|&index| write.extent.start.0 + index as u64).collect();
            headers.push((self.layout.restored(self.restore_end), self.copies_header(write.region, &addresses)));
            self.restore_end += BLOCK_BYTES as u64;
            for &index in record {
                let range = index * sector_bytes..(index + 1) * sector_bytes;
                contents.take(range, self.layout.restored(self.restore_end), &mut pieces);
                self.restore_end += sector_bytes as u64;
            }
        }
        assert!(self.restore_end <= self.layout.restore_bytes, "copies end at {}", self.restore_end);
        pieces.extend(headers.iter().map(|(at, header)| (*at, &header[..])));
        let failed = |cause| DeviceError::medium("writing the image's restore area", cause);
        self.media.write_together(&pieces).map_err(failed)
    }

    /// Returns the header of a record that begins at the current end of the restore area.
    fn copies_header(&self, region: Region, addresses: &[u64]) -> [u8; BLOCK_BYTES] {
        let mut bytes = [0; BLOCK_BYTES];
        bytes[4..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.state.era.to_le_bytes());
        bytes[16..24].copy_from_slice(&(addresses.len() as u64).to_le_bytes());
        let of_region = if region == Region::Flash { OF_FLASH } else { 0 };
        for (index, address) in addresses.iter().enumerate() {
            bytes[FIXED_BYTES + index * 8..][..8].copy_from_slice(&(address | of_region).to_le_bytes());
        }
        let sum = self.restore.sum(self.restore_end, &bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Returns the copies from era `since` and later eras.
    pub(super) fn find_copies(&mut self, since: u64) -> Result<Copies, DeviceError> {
        let (mut copies, mut at) = (Copies::new(), 0);
        let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        while at + BLOCK_BYTES as u64 <= self.layout.restore_bytes {
            let mut bytes = [0; BLOCK_BYTES];
            let failed = |cause| DeviceError::medium("reading the image's restore area", cause);
            self.media.read_at(self.layout.restored(at), &mut bytes).map_err(failed)?;
            let is_whole =
                self.restore.sum(at, &bytes[4..]).to_le_bytes() == bytes[..4] && bytes[4..8] == MAGIC.to_le_bytes();
            let count = word(&bytes, 16);
            if !is_whole || word(&bytes, 8) < since || count > SECTORS_PER_RECORD as u64 {
                break;
            }
            at += BLOCK_BYTES as u64;
            for index in 0..count as usize {
                let address = word(&bytes, FIXED_BYTES + index * 8);
                let region = if address & OF_FLASH == 0 { Region::Disk } else { Region::Flash };
                copies.insert((region, address & !OF_FLASH), at);
                at += self.layout.sector_bytes;
            }
        }
        Ok(copies)
    }

    /// Restores a torn sector: writes the copy of sector `address` of `region` to offset `place` of the image, if the
    /// checksum of the copy is `sum`. Returns whether there was a copy with that checksum.
    pub(super) fn restore_sector(
        &mut self,
        copies: &Copies,
        (region, address): (Region, u64),
        sum: u32,
        place: u64,
    ) -> Result<bool, DeviceError> {
        let Some(&at) = copies.get(&(region, address)) else { return Ok(false) };
        let mut bytes = vec![0; self.layout.sector_bytes as usize];
        let failed = |cause| DeviceError::medium("reading the image's restore area", cause);
        self.media.read_at(self.layout.restored(at), &mut bytes).map_err(failed)?;
        let mut is_it = false;
        self.contents[region as usize].sectors(address, &bytes, bytes.len(), |_, found| is_it = found == sum);
        if is_it {
            let failed = |cause| DeviceError::medium("restoring a torn sector", cause);
            self.media.write_at(place, &bytes).map_err(failed)?;
        }
        Ok(is_it)
    }

    /// Writes `write` in parts of at most `most` sectors, each in an era of its own where necessary.
    pub(super) fn write_in_parts(&mut self, write: &Write<'_>, most: u64) -> Result<(), DeviceError> {
        let sector_bytes = self.layout.sector_bytes as usize;
        let (mut next, end) = (write.extent.start, write.extent.end());
        while next < end {
            let part = Extent::between(next, end.min(next + imbrex_disk::Sectors(most)));
            let skipped = (part.start - write.extent.start).0 as usize;
            let contents = write.contents.map(|pieces| within(pieces, skipped, part.sectors.0 as usize, sector_bytes));
            let spoilt: Vec<Extent> = write.spoilt.iter().filter_map(|extent| extent.intersection(part)).collect();
            let destroyed = if next == write.extent.start { write.destroyed } else { &[] };
            self.write(&Write { extent: part, contents: contents.as_deref(), spoilt: &spoilt, destroyed, ..*write })?;
            next = part.end();
        }
        Ok(())
    }
}

/// Returns `sectors` sectors of `pieces`, from sector `first` on.
fn within<'a>(pieces: &[Given<'a>], first: usize, sectors: usize, sector_bytes: usize) -> Vec<Given<'a>> {
    let (mut passed, mut parts) = (0, Vec::new());
    for piece in pieces {
        let count = piece.bytes.len() / sector_bytes;
        let (from, to) = (first.clamp(passed, passed + count), (first + sectors).clamp(passed, passed + count));
        if from < to {
            parts.push(piece.part(from - passed..to - passed, sector_bytes));
        }
        passed += count;
    }
    parts
}
