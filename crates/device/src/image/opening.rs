//! Opening the space of an image: reads the newest state and the owner of each slot. After a power cut, determines
//! which of the sectors written last hold old contents and which new.
//!
//! Invariants:
//! 1. Reading an image changes nothing on its medium; only [`Space::settle`] writes.
//! 2. A damaged copy of a fact is replaced by another copy, and leaves a notice.
//! 3. After [`Space::settle`], every sector that an interrupted era wrote is known to be old, new or damaged.

use super::bounds::Bounds;
use super::digests::{Agreement, compare};
use super::directory::Owner;
use super::header::Header;
use super::layout::{BLOCK_BYTES, COPIES, DIGESTS_PER_BLOCK, ENTRY_BYTES, Region, SECTORS_PER_BLOCK};
use super::restore::Copies;
use super::sectors::{Block, Digest, Line, settled};
use super::space::Space;
use super::state::{STATE_BYTES, State};
use crate::error::DeviceError;
use crate::media::Media;

impl<M: Media> Space<M> {
    /// Opens the storage of an image without writing: reads the newest state and the directory of slots. `place` names
    /// the image in errors.
    ///
    /// # Errors
    /// [`DeviceError::Damaged`] if no copy of the state is readable, or if it is unknown which chunks some slots hold;
    /// or the medium fails.
    pub fn open(media: M, header: &Header, place: &str, bounds: Bounds) -> Result<Space<M>, DeviceError> {
        let space = Space::open_ruined(media, header, place, bounds)?;
        let (known, given) = (space.directory.given, space.state.slots_given);
        if space.has_orphans {
            return Err(DeviceError::damaged(
                place,
                format!(
                    "is damaged: of {given} assigned slots, only {known} have a known owner; `imbrex drive check \
                     --repair` makes it usable again and says what is lost"
                ),
            ));
        }
        Ok(space)
    }

    /// Opens the storage of a damaged image for repair, without writing. Also opens an image in which it is unknown
    /// which chunks some slots hold. Until [`Space::forget_orphans`], sectors of chunks without a slot then count as
    /// damaged, because such a slot may hold them.
    ///
    /// # Errors
    /// [`DeviceError::Damaged`] if no copy of the state is readable; or the medium fails.
    pub fn open_ruined(media: M, header: &Header, place: &str, bounds: Bounds) -> Result<Space<M>, DeviceError> {
        let mut space = Space::over(media, header, bounds);
        let spoilt = header.spoilt_copies(&mut space.media, place)?;
        space.notices.extend(spoilt.iter().map(|copy| format!("copy {copy} of its header is damaged")));
        space.state = space.newest_state(place)?;
        if !space.state.is_sealed {
            // A flush may have failed. Then the host's cache holds data that its disk does not have.
            space.media.forget_cached().map_err(|cause| DeviceError::medium("forgetting what is cached", cause))?;
            let known = space.notices.len();
            space.state = space.newest_state(place)?;
            space.notices.drain(known..);
        }
        let (length, needed) = (space.media.len(), space.layout.slot(space.state.slot_mark));
        if space.state.slot_mark > 0 && length < needed {
            space.notices.push(format!("the file is cut short: {length} bytes of {needed}"));
        }
        space.read_directory()?;
        space.has_orphans = space.directory.given < space.state.slots_given;
        Ok(space)
    }

    /// Returns the valid state with the highest generation.
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

    /// Returns every copy of the state in both places, as (copy, place, state). The state of a damaged copy is `None`.
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

    /// Determines the owner of each slot.
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
            self.notices.push(format!("slot {slot} claims chunk {chunk}, which is in another slot already"));
        }
        Ok(())
    }

    /// Returns the chunk that `slot` holds, according to its header or the blocks of its sector table.
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

    /// Returns the owner of `slot` according to its header.
    pub(super) fn slot_header(&mut self, slot: u64) -> Result<Owner, DeviceError> {
        let mut bytes = [0; BLOCK_BYTES];
        let failed = |cause| DeviceError::medium("reading the image's slots", cause);
        self.media.read_at(self.layout.slot(slot), &mut bytes).map_err(failed)?;
        Ok(self.directory.parse_header(slot, &bytes))
    }

    /// Recovers the image after a power cut: restores missing copies of metadata, and determines for every sector of an
    /// interrupted write whether it is old or new. Restores only copies of the state if the image was closed cleanly.
    ///
    /// # Errors
    /// The medium fails.
    pub fn settle(&mut self) -> Result<(), DeviceError> {
        self.settle_states()?;
        if self.state.is_sealed {
            return Ok(());
        }
        self.settle_witnesses()?;
        let since = self.state.era.max(self.begun_era);
        let mut newest = since;
        let mut open: Vec<OpenBlock> = Vec::new();
        self.for_each_table(&mut |space, SlotHead { slot, chunk, region, bytes }| {
            let (before, table) = bytes.split_at(space.layout.table_offset());
            let digests = space.digests_in(slot, before);
            for (number, bytes) in (0..).zip(table.as_chunks().0) {
                let Some(block) = space.seal.open(slot, number, bytes) else { continue };
                newest = newest.max(block.era());
                let written = digests.get((number / DIGESTS_PER_BLOCK) as usize).and_then(Option::as_ref);
                let written = written.map(|digests| digests.digest(number % DIGESTS_PER_BLOCK));
                newest = newest.max(written.map_or(0, |written| written.era));
                // A block that was durable before the last era is compared with its digest when it is read.
                let written = written.filter(|written| block.era().max(written.era) >= since);
                let is_behind = written.is_some_and(|written| {
                    compare(space.seal.digest(slot, number, &block), written, since) == Agreement::Behind
                });
                let is_open = block.era() >= since && has_open_lines(&block);
                if is_open || is_behind {
                    open.push(OpenBlock { slot, chunk, region, number, is_open });
                }
            }
            true
        })?;
        self.settle_open(&open, since, newest + 1)?;
        self.state.era = newest + 1;
        self.kept.clear();
        self.flush()
    }

    /// Calls `each` with every slot that has a sector table, until `each` returns false.
    pub(super) fn for_each_table(
        &mut self,
        each: &mut dyn FnMut(&Space<M>, SlotHead<'_>) -> bool,
    ) -> Result<(), DeviceError> {
        let slots: Vec<(u64, u64, Region)> = self.slots_with_tables().collect();
        let mut head = vec![0; self.layout.slot_head_bytes()];
        for some in slots.chunks(self.bounds.tables_ahead.max(1)) {
            let (layout, bytes) = (self.layout, head.len());
            self.media.will_read(&mut some.iter().map(|&(slot, ..)| (layout.slot(slot), bytes)));
            for &(slot, chunk, region) in some {
                let failed = |cause| DeviceError::medium("reading the image's sector tables", cause);
                self.media.read_at(self.layout.slot(slot), &mut head).map_err(failed)?;
                if !each(self, SlotHead { slot, chunk, region, bytes: &head }) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Rewrites the older copies in the place of the newest state: a power cut may leave them. The three copies in the
    /// other place were durable before any copy in this place was written.
    fn settle_states(&mut self) -> Result<(), DeviceError> {
        let (newest, place) = (self.state, self.state.place());
        for (copy, at, state) in self.states("the image")? {
            if at == place && state.is_some_and(|state| state.generation < newest.generation) {
                let failed = |cause| DeviceError::medium("writing the image's state", cause);
                let bytes = newest.bytes(self.state_salt);
                self.media.write_at(self.layout.state(copy, at), &bytes).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Determines for the blocks `open` whether their sectors are old or new. Works in batches of at most
    /// [`Bounds::undigested_blocks`] blocks.
    fn settle_open(&mut self, open: &[OpenBlock], since: u64, era: u64) -> Result<(), DeviceError> {
        let copies = self.find_copies(since)?;
        for some in open.chunks(self.bounds.undigested_blocks.max(1)) {
            self.settle_some(some, &copies, era)?;
        }
        Ok(())
    }

    /// Determines for the blocks `open` whether their sectors are old or new, and writes their lines and digests.
    /// Digests are made durable first, with the checksums of the blocks before and after. So if a power cut interrupts
    /// the opening, the next opening can repeat the work.
    fn settle_some(&mut self, open: &[OpenBlock], copies: &Copies, era: u64) -> Result<(), DeviceError> {
        let mut settled: Vec<(&OpenBlock, Block)> = Vec::with_capacity(open.len());
        let mut digests: Vec<(u64, [u8; BLOCK_BYTES])> = Vec::new();
        for some in open.chunk_by(|one, other| one.digests_at() == other.digests_at()) {
            let (slot, index) = some[0].digests_at();
            let mut of_slot = if self.has_digests() { self.digest_block(slot, index)? } else { None };
            for one in some {
                let Some((before, block)) = self.settled_block(one, copies, era)? else { continue };
                if let Some(of_slot) = &mut of_slot {
                    let was = self.seal.digest(slot, one.number, &before).is;
                    let digest = Digest { was, ..self.seal.digest(slot, one.number, &block) };
                    of_slot.set_digest(one.number % DIGESTS_PER_BLOCK, digest);
                }
                settled.push((one, block));
            }
            if let Some(of_slot) = &mut of_slot {
                digests.push((self.layout.digests(slot, index), self.close_digests(slot, index, of_slot)));
            }
        }
        if !digests.is_empty() {
            self.put_digests(&digests)?;
            self.flush()?;
        }
        for (one, mut block) in settled.into_iter().filter(|(one, _)| one.is_open) {
            let bytes = self.seal.close(one.slot, one.number, Some(one.chunk), &mut block);
            let failed = |cause| DeviceError::medium("writing the image's sector tables", cause);
            self.media.write_at(self.layout.block(one.slot, one.number), &bytes).map_err(failed)?;
        }
        Ok(())
    }

    /// Returns a block before and after its open lines are decided. The latter belongs to `era` if there were open
    /// lines. Returns `None` if the block is damaged.
    fn settled_block(
        &mut self,
        one: &OpenBlock,
        copies: &Copies,
        era: u64,
    ) -> Result<Option<(Block, Block)>, DeviceError> {
        let mut bytes = [0; BLOCK_BYTES];
        let failed = |cause| DeviceError::medium("reading the image's sector tables", cause);
        self.media.read_at(self.layout.block(one.slot, one.number), &mut bytes).map_err(failed)?;
        let Some(before) = self.seal.open(one.slot, one.number, &bytes) else { return Ok(None) };
        let mut block = before.clone();
        if one.is_open {
            self.settle_lines(one, copies, &mut block, era)?;
        }
        Ok(Some((before, block)))
    }

    /// Returns the assigned slots that have a sector table, each with its chunk and the region of the chunk.
    fn slots_with_tables(&self) -> impl Iterator<Item = (u64, u64, Region)> + '_ {
        self.directory.given_slots().filter_map(|(slot, chunk)| {
            let (region, _) = self.layout.region_of(chunk).filter(|(region, _)| region.has_sectors())?;
            Some((slot, chunk, region))
        })
    }

    /// Decides for each open line of `block` (`was` ≠ `is`) whether the sector is old or new, and moves the block to
    /// `era`. Restores torn sectors from `copies`.
    fn settle_lines(
        &mut self,
        one: &OpenBlock,
        copies: &Copies,
        block: &mut Block,
        era: u64,
    ) -> Result<(), DeviceError> {
        let OpenBlock { slot, chunk, region, number, .. } = *one;
        let (sector_bytes, first) = (self.layout.sector_bytes, number * SECTORS_PER_BLOCK);
        let (_, offset) = self.layout.region_of(chunk).expect("its region was just asked for");
        let end = SECTORS_PER_BLOCK.min(self.layout.chunk_sectors() - first);
        let at_once = (self.bounds.read_bytes as u64 / sector_bytes).max(1);
        let open = block.clone();
        block.enter(era);
        let is_open = |index: u64| open.line(index).was != open.line(index).is;
        let mut next = 0;
        let mut torn = Vec::new();
        while let Some(begin) = (next..end).find(|&index| is_open(index)) {
            let most = end.min(begin + at_once);
            next = (begin..most).find(|&index| !is_open(index)).unwrap_or(most);
            let mut contents = vec![0; ((next - begin) * sector_bytes) as usize];
            let failed = |cause| DeviceError::medium("reading what was written last", cause);
            let at = self.layout.content(slot, (first + begin) * sector_bytes);
            self.media.read_at(at, &mut contents).map_err(failed)?;
            let address = offset / sector_bytes + first + begin;
            let salt = self.contents[region as usize];
            salt.sectors(address, &contents, sector_bytes as usize, |index, sum| {
                let (line, index) = (open.line(begin + index as u64), begin + index as u64);
                match settled(line, sum) {
                    Some(is) => block.set(index, Line { was: line.is, is }),
                    None => torn.push(index),
                }
            });
        }
        for index in torn {
            // A sector that is neither old nor new and has no copy is damaged; later reads report it.
            let (address, place) = (offset / sector_bytes + first + index, (first + index) * sector_bytes);
            let place = self.layout.content(slot, place);
            self.restore_sector(copies, (region, address), open.line(index).is, place)?;
        }
        Ok(())
    }
}

/// A slot with its bytes up to the end of its sector table.
pub(super) struct SlotHead<'a> {
    pub slot: u64,
    pub chunk: u64,
    pub region: Region,
    pub bytes: &'a [u8],
}

/// A block of a sector table that an interrupted era left with open lines (`was` ≠ `is`), or with a digest that is
/// behind.
struct OpenBlock {
    slot: u64,
    chunk: u64,
    region: Region,
    number: u64,
    /// Whether some of its sectors may be old or new. If not, only its digest is behind.
    is_open: bool,
}

impl OpenBlock {
    /// Returns the slot, and the number of the block of digests that holds the digest of this block.
    fn digests_at(&self) -> (u64, u64) {
        (self.slot, self.number / DIGESTS_PER_BLOCK)
    }
}

fn has_open_lines(block: &Block) -> bool {
    (0..SECTORS_PER_BLOCK).map(|index| block.line(index)).any(|line| line.was != line.is)
}
