//! Opening the space of an image: the newest state, who has which slot, and, after a power cut, which of the sectors
//! written last came through.
//!
//! Invariants:
//! 1. To read an image changes nothing on its medium; [`Space::settle`] alone writes.
//! 2. One spoilt copy of a fact is made up for by another, and leaves a notice.
//! 3. After settling no sector is between old and new.

use super::bounds::Bounds;
use super::directory::Owner;
use super::header::Header;
use super::layout::{BLOCK_BYTES, COPIES, ENTRY_BYTES, Region, SECTORS_PER_BLOCK};
use super::sectors::{Block, Line, settled};
use super::space::Space;
use super::state::{STATE_BYTES, State};
use crate::error::DeviceError;
use crate::media::Media;

impl<M: Media> Space<M> {
    /// The space of an image; `place` names it in errors.
    pub fn open(media: M, header: &Header, place: &str, bounds: Bounds) -> Result<Space<M>, DeviceError> {
        let space = Space::open_ruined(media, header, place, bounds)?;
        let (known, given) = (space.directory.given, space.state.slots_given);
        if space.has_orphans {
            return Err(DeviceError::damaged(
                place,
                format!(
                    "is damaged: of {given} slots given out the owners of {known} are known; `imbrex drive check \
                     --repair` makes it usable again and says what is lost"
                ),
            ));
        }
        Ok(space)
    }

    /// The same, for whoever repairs it: even if slots are there whose owners are lost. What lies in no slot then counts
    /// as damaged until [`Space::forget_orphans`], for it may have been in one of those.
    pub fn open_ruined(media: M, header: &Header, place: &str, bounds: Bounds) -> Result<Space<M>, DeviceError> {
        let mut space = Space::over(media, header, bounds);
        let spoilt = header.spoilt_copies(&mut space.media, place)?;
        space.notices.extend(spoilt.iter().map(|copy| format!("copy {copy} of its header is damaged")));
        space.state = space.newest_state(place)?;
        if !space.state.is_sealed {
            // A flush may have failed: then the host's cache holds what its disk does not.
            space.media.forget_cached().map_err(|cause| DeviceError::medium("forgetting what is cached", cause))?;
            let known = space.notices.len();
            space.state = space.newest_state(place)?;
            space.notices.drain(known..);
        }
        let (length, needed) = (space.media.len(), space.layout.slot(space.state.slot_mark));
        if space.state.slot_mark > 0 && length < needed {
            space.notices.push(format!("it is cut short: {length} bytes of {needed}"));
        }
        space.read_directory()?;
        space.has_orphans = space.directory.given < space.state.slots_given;
        Ok(space)
    }

    /// The whole state with the highest generation.
    fn newest_state(&mut self, place: &str) -> Result<State, DeviceError> {
        let mut newest: Option<State> = None;
        for (copy, at, state) in self.states(place)? {
            match state {
                Some(state) if newest.is_none_or(|newest| newest.generation < state.generation) => newest = Some(state),
                Some(_) => {}
                None => self.notices.push(format!("copy {copy} of state {at} is damaged")),
            }
        }
        newest.ok_or_else(|| {
            let reason = "is cut short or damaged: no copy of its state is whole; restore it from a copy";
            DeviceError::damaged(place, reason)
        })
    }

    /// Every copy of the state in both places, where it is whole.
    pub(super) fn states(&mut self, place: &str) -> Result<Vec<(u64, u64, Option<State>)>, DeviceError> {
        let mut states = Vec::new();
        for copy in 0..COPIES {
            for at in 0..2 {
                let mut bytes = [0; STATE_BYTES];
                let failed = |cause| DeviceError::medium(format!("{place}: reading the state"), cause);
                self.media.read_at(self.layout.state(copy, at), &mut bytes).map_err(failed)?;
                states.push((copy, at, State::parse(&bytes, self.state_salt, at)));
            }
        }
        Ok(states)
    }

    /// Finds out who has which slot.
    fn read_directory(&mut self) -> Result<(), DeviceError> {
        let mut first = 0;
        let mut bytes = Vec::new();
        while first < self.state.slot_mark {
            let count = self.bounds.directory_batch.max(1).min(self.state.slot_mark - first);
            bytes.resize((count * ENTRY_BYTES) as usize, 0);
            let failed = |cause| DeviceError::medium("reading the image's directory", cause);
            self.media.read_at(self.layout.entry(first), &mut bytes).map_err(failed)?;
            for (slot, entry) in (first..).zip(bytes.as_chunks().0) {
                self.read_owner(slot, entry)?;
            }
            first += count;
        }
        Ok(())
    }

    fn read_owner(&mut self, slot: u64, entry: &[u8; ENTRY_BYTES as usize]) -> Result<(), DeviceError> {
        let said = self.directory.parse_entry(slot, entry);
        let owner = match said {
            Owner::Chunk(chunk) => Some(chunk),
            Owner::Nobody | Owner::Spoilt => self.owner_in_slot(slot)?,
        };
        if said == Owner::Spoilt {
            self.notices.push(format!("the directory's entry of slot {slot} is damaged"));
        }
        if let Some(chunk) = owner
            && !self.directory.set(slot, chunk)
        {
            self.notices.push(format!("slot {slot} says that it holds chunk {chunk}, which another slot holds"));
        }
        Ok(())
    }

    /// Whose `slot` is by its header, or by the blocks of its sector table.
    fn owner_in_slot(&mut self, slot: u64) -> Result<Option<u64>, DeviceError> {
        match self.slot_header(slot)? {
            Owner::Chunk(chunk) => return Ok(Some(chunk)),
            Owner::Nobody => return Ok(None),
            Owner::Spoilt => {}
        }
        for number in 0..self.layout.table_blocks {
            if let Some(chunk) = self.block(slot, number)?.and_then(|block| block.chunk()) {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    /// What the header of `slot` says.
    pub(super) fn slot_header(&mut self, slot: u64) -> Result<Owner, DeviceError> {
        let mut bytes = [0; BLOCK_BYTES];
        let failed = |cause| DeviceError::medium("reading the image's slots", cause);
        self.media.read_at(self.layout.slot(slot), &mut bytes).map_err(failed)?;
        Ok(self.directory.parse_header(slot, &bytes))
    }

    /// After an end that was not in good order: gives slots both of their witnesses, settles of every sector of the eras that
    /// may have been cut whether it is old or new, and sees to it that later eras are told from these.
    pub fn settle(&mut self) -> Result<(), DeviceError> {
        if self.state.is_sealed {
            return Ok(());
        }
        self.settle_witnesses()?;
        let (since, mut newest) = (self.state.era, self.state.era);
        let slots: Vec<(u64, u64, Region)> = self.slots_with_tables().collect();
        let mut table = vec![0; self.layout.table_blocks as usize * BLOCK_BYTES];
        for some in slots.chunks(self.bounds.tables_ahead.max(1)) {
            let (layout, bytes) = (self.layout, table.len());
            self.media.will_read(&mut some.iter().map(|&(slot, ..)| (layout.block(slot, 0), bytes)));
            for &(slot, chunk, region) in some {
                let failed = |cause| DeviceError::medium("reading the image's sector tables", cause);
                self.media.read_at(self.layout.block(slot, 0), &mut table).map_err(failed)?;
                for (number, bytes) in (0..).zip(table.as_chunks().0) {
                    let Some(block) = self.seal.open(slot, number, bytes).filter(|block| block.era() >= since) else {
                        continue;
                    };
                    newest = newest.max(block.era());
                    self.settle_block(region, slot, chunk, number, block)?;
                }
            }
        }
        self.state.era = newest;
        self.kept.clear();
        self.flush()
    }

    /// The slots that have sectors: each with its chunk, and the region of that.
    fn slots_with_tables(&self) -> impl Iterator<Item = (u64, u64, Region)> + '_ {
        self.directory.given_slots().filter_map(|(slot, chunk)| {
            let (region, _) = self.layout.region_of(chunk).filter(|(region, _)| region.has_sectors())?;
            Some((slot, chunk, region))
        })
    }

    fn settle_block(
        &mut self,
        region: Region,
        slot: u64,
        chunk: u64,
        number: u64,
        mut block: Block,
    ) -> Result<(), DeviceError> {
        let (sector_bytes, first) = (self.layout.sector_bytes, number * SECTORS_PER_BLOCK);
        let (_, offset) = self.layout.region_of(chunk).expect("its region was just asked for");
        let end = SECTORS_PER_BLOCK.min(self.layout.chunk_sectors() - first);
        let at_once = (self.bounds.read_bytes as u64 / sector_bytes).max(1);
        let is_open = |block: &Block, index: u64| block.line(index).was != block.line(index).is;
        let (mut next, mut is_changed) = (0, false);
        while let Some(begin) = (next..end).find(|&index| is_open(&block, index)) {
            let most = end.min(begin + at_once);
            next = (begin..most).find(|&index| !is_open(&block, index)).unwrap_or(most);
            let mut contents = vec![0; ((next - begin) * sector_bytes) as usize];
            let failed = |cause| DeviceError::medium("reading what was written last", cause);
            let at = self.layout.content(slot, (first + begin) * sector_bytes);
            self.media.read_at(at, &mut contents).map_err(failed)?;
            let address = offset / sector_bytes + first + begin;
            let salt = self.contents[region as usize];
            salt.sectors(address, &contents, sector_bytes as usize, |index, sum| {
                // What is neither old nor new is damage, and is seen as such when it is read.
                let line = block.line(begin + index as u64);
                block.set(begin + index as u64, Line::settled(settled(line, sum).unwrap_or(line.is)));
            });
            is_changed = true;
        }
        if is_changed {
            let bytes = self.seal.close(slot, number, Some(chunk), &mut block);
            let failed = |cause| DeviceError::medium("writing the image's sector tables", cause);
            self.media.write_at(self.layout.block(slot, number), &bytes).map_err(failed)?;
        }
        Ok(())
    }
}
