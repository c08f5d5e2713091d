//! The check of an image's space: verifies every copy of the metadata, every block of the sector tables and the
//! contents of every sector. Repairs damage for which another copy exists.
//!
//! Invariants:
//! 1. Memory for contents is bounded by the size of a chunk, whatever the size of the image.
//! 2. [`Space::scrub`] writes nothing.
//! 3. After [`Space::heal`], and [`Space::give_up`] of the sectors that were found damaged, a second scrub finds
//!    nothing.

use std::fmt;

use imbrex_disk::{Extent, Pba, Sectors};

use super::directory::Owner;
use super::header::Header;
use super::layout::{ENTRY_BYTES, Region, SECTORS_PER_BLOCK};
use super::sectors::{ABSENT, SPOILT, is_sum};
use super::space::Space;
use crate::error::DeviceError;
use crate::media::Media;

/// Damage to the metadata or the stored contents of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// A copy of the header differs from the valid one.
    Header {
        /// Number of the copy, 0 to 2.
        copy: u64,
    },
    /// One of the copies of the state is damaged or out of date.
    State {
        /// Number of the copy, 0 to 2.
        copy: u64,
        /// Place of the state, 0 or 1; the state is written alternately to the two places.
        place: u64,
    },
    /// The directory entry of a slot is damaged, or names another chunk than the slot holds.
    Entry {
        /// Number of the slot, from 0.
        slot: u64,
    },
    /// The header of a slot is damaged, or names another chunk than the slot holds.
    SlotHeader {
        /// Number of the slot, from 0.
        slot: u64,
    },
    /// The digests of the blocks of a slot's sector table are damaged or out of date.
    Digests {
        /// Number of the slot, from 0.
        slot: u64,
    },
    /// For some slots that hold data, it is unknown which chunk they hold.
    Orphans {
        /// Number of slots that hold data of an unknown chunk.
        slots: u64,
    },
    /// The file is shorter than the slots that its state counts.
    CutShort {
        /// Length of the image file in bytes.
        bytes: u64,
        /// Smallest length of the image file, in bytes, that holds all slots that its state counts.
        needed: u64,
    },
    /// A block of a sector table is damaged, so the checksums of its sectors are unknown.
    Table {
        /// Region of the sectors: platters or flash.
        region: Region,
        /// Physical sectors that the block covers.
        extent: Extent,
    },
    /// The checksum of stored sectors differs from the checksum in the sector table.
    Contents {
        /// Region of the sectors: platters or flash.
        region: Region,
        /// Physical sectors with wrong contents.
        extent: Extent,
    },
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sectors = |extent: &Extent| match extent.sectors.0 {
            1 => format!("physical sector {}", extent.start.0),
            count => format!("{count} sectors from physical sector {} on", extent.start.0),
        };
        match self {
            Flaw::Header { copy } => write!(f, "copy {copy} of the header is damaged; another is whole"),
            Flaw::State { copy, place } => write!(f, "copy {copy} of state {place} is damaged; another is whole"),
            Flaw::Entry { slot } => write!(f, "the directory's entry of slot {slot} is damaged"),
            Flaw::Digests { slot } => write!(f, "the digests of the sector table of slot {slot} are damaged"),
            Flaw::SlotHeader { slot } => write!(f, "the header of slot {slot} is damaged"),
            Flaw::Orphans { slots: 1 } => write!(f, "the directory has lost the owner of 1 slot"),
            Flaw::Orphans { slots } => write!(f, "the directory has lost the owners of {slots} slots"),
            Flaw::CutShort { bytes, needed } => write!(f, "the file is cut short: {bytes} bytes of {needed}"),
            Flaw::Table { region, extent } => {
                write!(f, "the sector table of {} ({region:?}) is damaged", sectors(extent))
            }
            Flaw::Contents { region, extent } => {
                write!(f, "{} ({region:?}): contents do not match the checksum", sectors(extent))
            }
        }
    }
}

impl<M: Media> Space<M> {
    /// Checks the header, the state, the directory, the slots' metadata and the contents of all stored sectors, without
    /// writing. Does not check the records of the journal. Calls `each` with every flaw, and `progress` after each slot
    /// with the bytes of slots checked so far and their total. `place` names the image in errors.
    ///
    /// # Errors
    /// The medium fails.
    pub fn scrub(
        &mut self,
        header: &Header,
        place: &str,
        each: &mut dyn FnMut(Flaw),
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), DeviceError> {
        for copy in header.spoilt_copies(&mut self.media, place)? {
            each(Flaw::Header { copy });
        }
        let states = self.states(place)?;
        let older_place = 1 - self.state.place();
        let of_older = states.iter().filter(|(_, at, _)| *at == older_place).filter_map(|(.., state)| *state);
        let generation = of_older.map(|state| state.generation).max();
        for (copy, at, state) in states {
            // All copies in the older place were durable. A write of a copy that is older than the others was dropped.
            let is_older = at == older_place && state.is_some_and(|state| Some(state.generation) != generation);
            if state.is_none() || is_older {
                each(Flaw::State { copy, place: at });
            }
        }
        let (bytes, needed) = (self.media.len(), self.layout.slot(self.state.slot_mark));
        if self.state.slot_mark > 0 && bytes < needed {
            each(Flaw::CutShort { bytes, needed });
        }
        let orphans = self.state.slots_given.saturating_sub(self.directory.given);
        if orphans > 0 {
            each(Flaw::Orphans { slots: orphans });
        }
        self.scrub_free_entries(each)?;
        let slots: Vec<(u64, u64)> = self.directory.given_slots().collect();
        let all = slots.len() as u64 * self.layout.slot_bytes();
        for (index, &(slot, chunk)) in slots.iter().enumerate() {
            self.scrub_owner(slot, chunk, each)?;
            if let Some((region, offset)) = self.layout.region_of(chunk).filter(|(region, _)| region.has_sectors()) {
                self.scrub_sectors(slot, region, offset / self.layout.sector_bytes, each)?;
            }
            progress((index as u64 + 1) * self.layout.slot_bytes(), all);
        }
        Ok(())
    }

    /// Reports directory entries of unassigned slots that are not blank.
    fn scrub_free_entries(&mut self, each: &mut dyn FnMut(Flaw)) -> Result<(), DeviceError> {
        for slot in 0..self.state.slot_mark {
            if self.directory.chunk(slot).is_none() && self.read_entry(slot)? != Owner::Nobody {
                each(Flaw::Entry { slot });
            }
        }
        Ok(())
    }

    pub(super) fn read_entry(&mut self, slot: u64) -> Result<Owner, DeviceError> {
        let mut bytes = [0; ENTRY_BYTES as usize];
        let failed = |cause| DeviceError::medium("reading the image's directory", cause);
        self.media.read_at(self.layout.entry(slot), &mut bytes).map_err(failed)?;
        Ok(self.directory.parse_entry(slot, &bytes))
    }

    fn scrub_owner(&mut self, slot: u64, chunk: u64, each: &mut dyn FnMut(Flaw)) -> Result<(), DeviceError> {
        if self.read_entry(slot)? != Owner::Chunk(chunk) {
            each(Flaw::Entry { slot });
        }
        if self.slot_header(slot)? != Owner::Chunk(chunk) {
            each(Flaw::SlotHeader { slot });
        }
        Ok(())
    }

    /// Checks the sector table, the digests and the contents of `slot`; its first sector has the address `first`.
    fn scrub_sectors(
        &mut self,
        slot: u64,
        region: Region,
        first: u64,
        each: &mut dyn FnMut(Flaw),
    ) -> Result<(), DeviceError> {
        let (sector_bytes, sectors) = (self.layout.sector_bytes, self.layout.chunk_sectors());
        let extent = |begin: u64, end: u64| Extent::between(Pba(first + begin), Pba(first + end));
        let mut contents: Vec<u8> = Vec::new();
        let mut spoilt: Vec<Extent> = Vec::new();
        if self.has_spoilt_digests(slot)? {
            each(Flaw::Digests { slot });
        }
        for number in 0..self.layout.table_blocks {
            let begin = number * SECTORS_PER_BLOCK;
            let end = sectors.min(begin + SECTORS_PER_BLOCK);
            let Some(block) = self.block(slot, number)?.cloned() else {
                each(Flaw::Table { region, extent: extent(begin, end) });
                continue;
            };
            if (begin..end).all(|sector| !is_sum(block.line(sector - begin).is)) {
                continue;
            }
            contents.resize(((end - begin) * sector_bytes) as usize, 0);
            let failed = |cause| DeviceError::medium(format!("reading {region:?} at sector {}", first + begin), cause);
            self.media.read_at(self.layout.content(slot, begin * sector_bytes), &mut contents).map_err(failed)?;
            self.contents[region as usize].sectors(first + begin, &contents, sector_bytes as usize, |index, sum| {
                let code = block.line(index as u64).is;
                if is_sum(code) && code != sum {
                    let sector = begin + index as u64;
                    match spoilt.last_mut() {
                        Some(last) if last.end().0 == first + sector => last.sectors += Sectors(1),
                        _ => spoilt.push(extent(sector, sector + 1)),
                    }
                }
            });
        }
        spoilt.into_iter().for_each(|extent| each(Flaw::Contents { region, extent }));
        Ok(())
    }

    /// Returns whether the digests of `slot` are damaged, or older than their blocks.
    fn has_spoilt_digests(&mut self, slot: u64) -> Result<bool, DeviceError> {
        for index in 0..self.layout.digest_blocks {
            if self.digest_block(slot, index)?.is_none() {
                return Ok(true);
            }
        }
        for number in 0..self.layout.table_blocks {
            let Some(block) = self.block(slot, number)?.cloned() else { continue };
            let is_written = self.has_digests() && !self.undigested.contains(&(slot, number));
            let written = if is_written { self.written_digest(slot, number)? } else { None };
            if written.is_some_and(|written| written.is != self.seal.digest(slot, number, &block).is) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Rewrites the digests of `slot`. A block that is older than its digest keeps that digest, because the block is
    /// still damaged.
    fn renew_digests(&mut self, slot: u64) -> Result<(), DeviceError> {
        for number in 0..self.layout.table_blocks {
            if self.block(slot, number)?.is_some() {
                self.undigested.insert((slot, number));
            }
        }
        self.write_digests()
    }

    /// Repairs metadata of which another copy exists. Rewrites all copies of the header and the state, and damaged
    /// directory entries, slot headers and digests. Lengthens the file if it was cut short. Damaged sector tables and
    /// contents stay as they are.
    ///
    /// # Errors
    /// The medium fails.
    pub fn heal(&mut self, header: &Header) -> Result<(), DeviceError> {
        header.write(&mut self.media)?;
        let needed = self.layout.slot(self.state.slot_mark);
        if self.state.slot_mark > 0 && self.media.len() < needed {
            let failed = |cause| DeviceError::medium("lengthening the image", cause);
            self.media.write_at(needed - 1, &[0]).map_err(failed)?;
        }
        let blank = [0; ENTRY_BYTES as usize];
        for slot in 0..self.state.slot_mark {
            match self.directory.chunk(slot) {
                Some(chunk)
                    if self.read_entry(slot)? != Owner::Chunk(chunk)
                        || self.slot_header(slot)? != Owner::Chunk(chunk) =>
                {
                    self.write_owner(slot, chunk)?;
                }
                None if self.read_entry(slot)? != Owner::Nobody => {
                    let failed = |cause| DeviceError::medium("writing the image's directory", cause);
                    self.media.write_at(self.layout.entry(slot), &blank).map_err(failed)?;
                }
                _ => {}
            }
        }
        let slots: Vec<u64> = self.directory.given_slots().map(|(slot, _)| slot).collect();
        for slot in slots {
            if self.has_spoilt_digests(slot)? {
                self.renew_digests(slot)?;
            }
        }
        self.notices.clear();
        self.update(|_| {})?;
        self.update(|_| {})
    }

    /// Marks all sectors of the platters and the flash as never written.
    ///
    /// # Errors
    /// The medium fails.
    pub fn forget_sectors(&mut self) -> Result<(), DeviceError> {
        let given: Vec<u64> = self.directory.given_slots().map(|(_, chunk)| chunk).collect();
        for chunk in given {
            if let Some((region, extent)) = self.sectors_of(chunk) {
                self.redraw(region, extent, ABSENT)?;
            }
        }
        Ok(())
    }

    /// Treats sectors of chunks without a slot as never written from now on, even if some slots hold unknown chunks.
    /// Without this call, such sectors count as damaged.
    pub fn forget_orphans(&mut self) {
        self.has_orphans = false;
    }

    /// Marks the sectors of `chunk`, which just got a slot, as lost: they may have been in a slot whose owner is lost.
    pub(super) fn give_up_chunk(&mut self, chunk: u64) -> Result<(), DeviceError> {
        match self.sectors_of(chunk) {
            Some((region, extent)) => self.redraw(region, extent, SPOILT),
            None => Ok(()),
        }
    }

    /// Returns the region and the sectors of `chunk`, or `None` if it belongs to a journal.
    fn sectors_of(&self, chunk: u64) -> Option<(Region, Extent)> {
        let (region, offset) = self.layout.region_of(chunk).filter(|(region, _)| region.has_sectors())?;
        let first = Pba(offset / self.layout.sector_bytes);
        Some((region, Extent::new(first, Sectors(self.layout.chunk_sectors()))))
    }

    /// Marks the sectors of `extent` in `region` as lost by damage, whatever they held. Sectors of chunks without a
    /// slot stay unchanged.
    ///
    /// # Errors
    /// The medium fails.
    pub fn give_up(&mut self, region: Region, extent: Extent) -> Result<(), DeviceError> {
        self.redraw(region, extent, SPOILT)
    }
}
