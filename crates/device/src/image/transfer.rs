//! Reads and writes of sectors, with their lines in the sector tables.
//!
//! ```text
//!   write:  lines of what is written and of what that destroys ─► (durable, where a cut could show old data as good) ─► contents
//!   read:   contents ─► summed ─► compared with their lines
//! ```
//!
//! The lines are made durable first in two cases: if contents overwrite a sector with durable contents, and if readable
//! sectors are destroyed. A sector with durable contents is overwritten only once per era: before a second time, the
//! era ends. So after a power cut the medium holds either the new contents of a sector or those that it had when the
//! era began.
//!
//! Invariants:
//! 1. Contents are returned only if their checksum matches their line; else the sector is reported, and reads as zeros.
//! 2. A line is on the medium before its contents are written.
//! 3. Zeros are not stored: their lines say so.

use std::ops::Range;

use imbrex_disk::{Extent, Pba, Sectors};

use super::checksum::Places;
use super::layout::{BLOCK_BYTES, Region, SECTORS_PER_BLOCK};
use super::scratch::{Changed, Scratch};
use super::sectors::{ABSENT, Block, DESTROYED, Line, SPOILT, ZERO, is_sum};
use super::space::Space;
use crate::error::DeviceError;
use crate::media::Media;

/// Gaps of zeros shorter than this, in bytes, are written along with the contents around them, because two writes cost
/// more.
const GAP_BYTES: u64 = 16 << 10;

/// Reason why a sector cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// A write to an overlapping track destroyed the sector. On a caveat disk also: a write may have destroyed the
    /// sector, or the sector was never written.
    Destroyed,
    /// The image is damaged: the contents do not match their checksum, or the checksum is lost.
    Damaged,
}

/// A run of physical sectors that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The physical sectors, in the region that was read.
    pub extent: Extent,
    /// Reason why the sectors cannot be read.
    pub kind: FaultKind,
}

/// Class of a physical sector, according to the sector table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Never written. On most drives, such a sector reads as zeros.
    Absent,
    /// Written with zeros, which are not stored.
    Zero,
    /// Written with contents other than zeros, which are stored.
    Stored,
    /// Destroyed by a write to an overlapping track or, on a caveat disk, maybe destroyed.
    Destroyed,
    /// Lost by damage to the image.
    Spoilt,
}

impl Class {
    fn of(code: u32) -> Class {
        match code {
            ABSENT => Class::Absent,
            ZERO => Class::Zero,
            DESTROYED => Class::Destroyed,
            SPOILT => Class::Spoilt,
            _ => Class::Stored,
        }
    }
}

/// Bytes of whole sectors that are to be written.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Contents of one or more whole sectors.
    pub bytes: &'a [u8],
    /// For each sector of `bytes`, in order, the part of its checksum that depends only on the contents. `None` if it
    /// was not computed in advance; the write then computes it.
    pub parts: Option<&'a [u32]>,
}

impl<'a> From<&'a [u8]> for Given<'a> {
    fn from(bytes: &'a [u8]) -> Given<'a> {
        Given { bytes, parts: None }
    }
}

impl<'a> Given<'a> {
    /// Returns the sectors `range` of these bytes.
    pub(crate) fn part(self, range: Range<usize>, sector_bytes: usize) -> Given<'a> {
        let bytes = &self.bytes[range.start * sector_bytes..range.end * sector_bytes];
        Given { bytes, parts: self.parts.map(|parts| &parts[range]) }
    }
}

/// A write to physical sectors of one region, with its effect on other sectors.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Region of the sectors: platters or flash.
    pub region: Region,
    /// Physical sectors to write.
    pub extent: Extent,
    /// Contents of all sectors of `extent`, in consecutive pieces of whole sectors; `None` for zeros.
    pub contents: Option<&'a [Given<'a>]>,
    /// Sectors of `extent` with unknown contents, because their source could not be read. They are marked as lost.
    pub spoilt: &'a [Extent],
    /// Sectors of the platters that this write destroys, because their tracks overlap those of `extent`.
    pub destroyed: &'a [Extent],
}

/// A part of an extent that lies in one chunk.
#[derive(Clone, Copy, Debug)]
struct Part {
    chunk: u64,
    /// First sector, counted from the start of the chunk.
    first: u64,
    sectors: u64,
    /// First sector, counted from the start of the region.
    address: u64,
}

impl Part {
    /// Returns the blocks of the sector table that cover the part, each with the sectors of the part in it, counted
    /// from the start of the chunk.
    fn blocks(self) -> impl Iterator<Item = (u64, Range<u64>)> {
        let (first, end) = (self.first, self.first + self.sectors);
        (first / SECTORS_PER_BLOCK..end.div_ceil(SECTORS_PER_BLOCK)).map(move |number| {
            let begin = number * SECTORS_PER_BLOCK;
            (number, begin.max(first)..end.min(begin + SECTORS_PER_BLOCK))
        })
    }
}

impl<M: Media> Space<M> {
    /// Returns the parts of `extent` of `region`, one per chunk.
    fn parts(&self, region: Region, extent: Extent) -> impl Iterator<Item = Part> + use<M> {
        let (layout, mut next, end) = (self.layout, extent.start.0, extent.end().0);
        std::iter::from_fn(move || {
            if next >= end {
                return None;
            }
            let first = next % layout.chunk_sectors();
            let sectors = (layout.chunk_sectors() - first).min(end - next);
            let chunk = layout.chunk(region, next * layout.sector_bytes);
            let part = Part { chunk, first, sectors, address: next };
            next += sectors;
            Some(part)
        })
    }

    /// Returns block `number` of the sector table of `slot`, or `None` if the block is damaged or older than its
    /// digest.
    pub(super) fn block(&mut self, slot: u64, number: u64) -> Result<Option<&Block>, DeviceError> {
        if self.kept.get(slot, number).is_none() {
            let mut bytes = [0; BLOCK_BYTES];
            let failed = |cause| DeviceError::medium("reading the image's sector tables", cause);
            self.media.read_at(self.layout.block(slot, number), &mut bytes).map_err(failed)?;
            let Some(block) = self.seal.open(slot, number, &bytes) else { return Ok(None) };
            if !self.is_known(slot, number, &block)? {
                return Ok(None);
            }
            self.kept.put(slot, number, &block);
        }
        Ok(self.kept.get(slot, number))
    }

    /// Calls `each`, in ascending order, with the longest runs of sectors of `extent` in `region` that have the same
    /// class. Sectors whose block of the sector table is damaged count as lost ([`Class::Spoilt`]). The contents are
    /// not read.
    ///
    /// # Errors
    /// The medium fails.
    pub fn for_each_class(
        &mut self,
        region: Region,
        extent: Extent,
        mut each: impl FnMut(Extent, Class),
    ) -> Result<(), DeviceError> {
        let mut run: Option<(Extent, Class)> = None;
        let mut push = |address: u64, sectors: u64, class: Class| match &mut run {
            Some((extent, same)) if *same == class => extent.sectors += Sectors(sectors),
            _ => {
                let next = (Extent::new(Pba(address), Sectors(sectors)), class);
                run.replace(next).into_iter().for_each(|(extent, class)| each(extent, class));
            }
        };
        for part in self.parts(region, extent) {
            let Some(slot) = self.directory.slot(part.chunk) else {
                let class = if self.has_orphans { Class::Spoilt } else { Class::Absent };
                push(part.address, part.sectors, class);
                continue;
            };
            for (number, sectors) in part.blocks() {
                let block = self.block(slot, number)?;
                for sector in sectors {
                    let code = block.map_or(SPOILT, |block| block.line(sector % SECTORS_PER_BLOCK).is);
                    push(part.address + sector - part.first, 1, Class::of(code));
                }
            }
        }
        run.into_iter().for_each(|(extent, class)| each(extent, class));
        Ok(())
    }

    /// Fills `into`, whole sectors, with the sectors of `region` from `first` on, and compares them with their
    /// checksums. Unreadable sectors are appended to `faults`, as runs in ascending order, and read as zeros. Sectors
    /// never written also read as zeros; on the platters of a caveat disk they are unreadable.
    ///
    /// # Errors
    /// The medium fails. Unreadable sectors are not an error.
    pub fn read(
        &mut self,
        region: Region,
        first: Pba,
        into: &mut [u8],
        faults: &mut Vec<Fault>,
    ) -> Result<(), DeviceError> {
        let sector_bytes = self.layout.sector_bytes as usize;
        let extent = Extent::new(first, Sectors((into.len() / sector_bytes) as u64));
        let mut rest = into;
        for part in self.parts(region, extent) {
            let (bytes, after) = rest.split_at_mut(part.sectors as usize * sector_bytes);
            rest = after;
            match self.directory.slot(part.chunk) {
                Some(slot) => self.read_part(region, slot, part, bytes, faults)?,
                None => {
                    bytes.fill(0);
                    if self.has_orphans {
                        push_fault(faults, part.address, part.sectors, FaultKind::Damaged);
                    } else if self.blank.is_damaged && region == Region::Disk {
                        push_fault(faults, part.address, part.sectors, FaultKind::Destroyed);
                    }
                }
            }
        }
        Ok(())
    }

    fn read_part(
        &mut self,
        region: Region,
        slot: u64,
        part: Part,
        bytes: &mut [u8],
        faults: &mut Vec<Fault>,
    ) -> Result<(), DeviceError> {
        let sector_bytes = self.layout.sector_bytes as usize;
        let at_once = (self.bounds.read_bytes / sector_bytes).max(1) as u64;
        let mut sums = std::mem::take(&mut self.scratch.sums);
        let mut done = 0;
        for piece in bytes.chunks_mut(at_once as usize * sector_bytes) {
            let sectors = (piece.len() / sector_bytes) as u64;
            let (first, address) = (part.first + done, part.address + done);
            let failed = |cause| DeviceError::medium(format!("reading {region:?} at sector {address}"), cause);
            self.media.read_at(self.layout.content(slot, first * sector_bytes as u64), piece).map_err(failed)?;
            sums.clear();
            self.contents[region as usize].sectors(address, piece, sector_bytes, |_, sum| sums.push(sum));
            self.compare(region, slot, Part { first, address, sectors, ..part }, &sums, piece, faults)?;
            done += sectors;
        }
        self.scratch.sums = sums;
        Ok(())
    }

    /// Compares `sums`, the checksums of the contents in `piece`, with the lines of `part`. Sectors whose checksum does
    /// not match are zeroed, and appended to `faults` unless zeros are their contents.
    fn compare(
        &mut self,
        region: Region,
        slot: u64,
        part: Part,
        sums: &[u32],
        piece: &mut [u8],
        faults: &mut Vec<Fault>,
    ) -> Result<(), DeviceError> {
        let sector_bytes = self.layout.sector_bytes as usize;
        let absent_is_damage = self.blank.is_damaged && region == Region::Disk;
        for (number, sectors) in part.blocks() {
            let block = self.block(slot, number)?;
            for sector in sectors {
                let code = block.map_or(SPOILT, |block| block.line(sector % SECTORS_PER_BLOCK).is);
                let at = (sector - part.first) as usize;
                if code == sums[at] {
                    continue;
                }
                piece[at * sector_bytes..(at + 1) * sector_bytes].fill(0);
                let kind = match code {
                    ZERO => continue,
                    ABSENT if !absent_is_damage => continue,
                    ABSENT | DESTROYED => FaultKind::Destroyed,
                    _ => FaultKind::Damaged,
                };
                push_fault(faults, part.address + at as u64, 1, kind);
            }
        }
        Ok(())
    }

    /// Writes sectors, and marks the sectors that the write destroys; sectors never written are marked only with
    /// [`Blank::remembers_zeros`](super::space::Blank::remembers_zeros). The data is durable after the next barrier; a
    /// power cut before may leave each sector old or new.
    ///
    /// # Errors
    /// The medium fails, or the image has no more slots.
    ///
    /// # Panics
    /// If the contents are not exactly as long as the extent.
    pub fn write(&mut self, write: &Write<'_>) -> Result<(), DeviceError> {
        let most = self.sectors_at_once();
        if write.extent.sectors.0 > most {
            return self.write_in_parts(write, most);
        }
        let mut sums = std::mem::take(&mut self.scratch.sums);
        self.codes_of(write, &mut sums);
        let outcome = self.write_summed(write, &sums);
        self.scratch.sums = sums;
        outcome
    }

    /// Computes the codes of the written sectors: checksum, `ZERO` or `SPOILT`.
    fn codes_of(&mut self, write: &Write<'_>, codes: &mut Vec<u32>) {
        codes.clear();
        let Some(pieces) = write.contents else {
            codes.resize(write.extent.sectors.0 as usize, ZERO);
            return;
        };
        for piece in pieces {
            let first = write.extent.start.0 + codes.len() as u64;
            match piece.parts {
                Some(parts) => self.codes_of_parts(write.region, first, piece.bytes, parts, codes),
                None => self.codes_of_bytes(write.region, first, piece.bytes, codes),
            }
        }
        assert_eq!(codes.len() as u64, write.extent.sectors.0, "contents of {:?}", write.extent);
        for extent in write.spoilt {
            let begin = (extent.start.0 - write.extent.start.0) as usize;
            codes[begin..begin + extent.sectors.0 as usize].fill(SPOILT);
        }
    }

    /// Appends the codes of the sectors from `first` on, whose contents are `bytes`.
    fn codes_of_bytes(&self, region: Region, first: u64, bytes: &[u8], codes: &mut Vec<u32>) {
        let sector_bytes = self.layout.sector_bytes as usize;
        self.contents[region as usize].sectors(first, bytes, sector_bytes, |index, sum| {
            let is_blank = is_zero(&bytes[index * sector_bytes..(index + 1) * sector_bytes]);
            codes.push(if is_blank { ZERO } else { sum });
        });
    }

    /// Like [`Space::codes_of_bytes`], with known `parts`, the parts of the checksums that depend on the contents. The
    /// bytes are read only where a part is 0.
    fn codes_of_parts(&mut self, region: Region, first: u64, bytes: &[u8], parts: &[u32], codes: &mut Vec<u32>) {
        let (sector_bytes, salt) = (self.layout.sector_bytes as usize, self.contents[region as usize]);
        assert_eq!(parts.len() * sector_bytes, bytes.len(), "a sum for each sector");
        let places = self.places[region as usize].get_or_insert_with(|| Places::new(salt, sector_bytes));
        places.sums(first, parts, |index, sum| {
            let is_blank = parts[index] == 0 && is_zero(&bytes[index * sector_bytes..(index + 1) * sector_bytes]);
            codes.push(if is_blank { ZERO } else { sum });
        });
    }

    fn write_summed(&mut self, write: &Write<'_>, codes: &[u32]) -> Result<(), DeviceError> {
        if self.rewrites_in_one_era(write, codes)? || !self.has_room_for_copies(write.extent.sectors.0) {
            self.end_era()?;
        }
        // Assigning a slot may end an era, but the lines below must all be of one era.
        for part in self.parts(write.region, write.extent) {
            if self.blank.remembers_zeros || part_of(codes, write, part).iter().any(|&code| code != ZERO) {
                self.give(part.chunk)?;
            }
        }
        let marks_blank = self.blank.remembers_zeros;
        for extent in write.destroyed.iter().filter(|_| marks_blank) {
            for part in self.parts(Region::Disk, *extent) {
                self.give(part.chunk)?;
            }
        }
        self.scratch.changed.clear();
        let mut needs_order = false;
        for part in self.parts(write.region, write.extent) {
            let Some(slot) = self.directory.slot(part.chunk) else { continue };
            let codes = part_of(codes, write, part);
            needs_order |= self.draw_lines(slot, part, 0, |index, line| {
                let is = codes[index];
                let was = if line.is == DESTROYED { DESTROYED } else { line.was };
                Some((Line { was, is }, is_sum(was) && is_sum(is)))
            })?;
        }
        for extent in write.destroyed {
            let known = self.scratch.changed.len();
            for part in self.parts(Region::Disk, *extent) {
                let Some(slot) = self.directory.slot(part.chunk) else { continue };
                needs_order |= self.draw_lines(slot, part, known, |_, line| {
                    let can_be_read = is_sum(line.is) || line.is == ZERO;
                    let is_marked = can_be_read || marks_blank && line.is == ABSENT;
                    is_marked.then_some((Line::settled(DESTROYED), can_be_read))
                })?;
            }
        }
        self.write_lines()?;
        if needs_order && self.may_tear() {
            self.write_copies(write, codes)?;
        }
        self.write_contents(write, codes, needs_order)
    }

    /// Returns whether the write would overwrite, for the second time in this era, a sector that held durable contents
    /// when the era began.
    fn rewrites_in_one_era(&mut self, write: &Write<'_>, codes: &[u32]) -> Result<bool, DeviceError> {
        let era = self.state.era;
        for part in self.parts(write.region, write.extent) {
            let Some(slot) = self.directory.slot(part.chunk) else { continue };
            let codes = part_of(codes, write, part);
            for (number, mut sectors) in part.blocks() {
                let Some(block) = self.block(slot, number)?.filter(|block| block.era() == era) else { continue };
                let is_second = |sector: u64| {
                    let line = block.line(sector % SECTORS_PER_BLOCK);
                    is_sum(line.was) && line.was != line.is && is_sum(codes[(sector - part.first) as usize])
                };
                if sectors.any(is_second) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Sets new lines for sectors of `part`. `draw` gets the index of a sector in `part` and its line; it returns the
    /// new line, if any, and whether that must be durable before contents are written. Returns whether any line must. A
    /// block that other parts have changed already is among the first `known` of `scratch.changed`.
    fn draw_lines(
        &mut self,
        slot: u64,
        part: Part,
        known: usize,
        mut draw: impl FnMut(usize, Line) -> Option<(Line, bool)>,
    ) -> Result<bool, DeviceError> {
        let (era, mut needs_order) = (self.state.era, false);
        for (number, sectors) in part.blocks() {
            let is_same = |changed: &Changed| changed.slot == slot && changed.number == number;
            let found = self.scratch.changed[..known].iter().position(is_same);
            let index = found.unwrap_or(self.scratch.changed.len());
            if found.is_none() {
                // If a block is damaged, nothing is known of its other sectors.
                let block = self.block(slot, number)?.cloned().unwrap_or_else(|| Block::filled(SPOILT));
                self.scratch.changed.push(Changed { slot, number, chunk: part.chunk, block });
            }
            let block = &mut self.scratch.changed[index].block;
            let mut is_changed = found.is_some();
            block.enter(era);
            for sector in sectors {
                let index = sector % SECTORS_PER_BLOCK;
                if let Some((line, is_ordered)) = draw((sector - part.first) as usize, block.line(index)) {
                    needs_order |= is_ordered;
                    block.set(index, line);
                    is_changed = true;
                }
            }
            if !is_changed {
                self.scratch.changed.pop();
            }
        }
        Ok(needs_order)
    }

    /// Writes the changed blocks in one call of [`Media::write_together`], adjacent blocks as one piece.
    fn write_lines(&mut self) -> Result<(), DeviceError> {
        let Scratch { changed, blocks, order, runs, .. } = &mut self.scratch;
        if changed.is_empty() {
            return Ok(());
        }
        order.clear();
        order.extend(0..changed.len());
        order.sort_unstable_by_key(|&index| (changed[index].slot, changed[index].number));
        blocks.clear();
        runs.clear();
        for &index in order.iter() {
            let Changed { slot, number, chunk, block } = &mut changed[index];
            let at = self.layout.block(*slot, *number);
            match runs.last() {
                Some(&(start, begin)) if start + (blocks.len() - begin) as u64 == at => {}
                _ => runs.push((at, blocks.len())),
            }
            blocks.extend_from_slice(&self.seal.close(*slot, *number, Some(*chunk), block));
            self.kept.put(*slot, *number, block);
            if self.layout.digest_blocks > 0 {
                self.undigested.insert((*slot, *number));
            }
        }
        let ends = runs.iter().skip(1).map(|&(_, begin)| begin).chain([blocks.len()]);
        let pieces: Vec<(u64, &[u8])> =
            runs.iter().zip(ends).map(|(&(at, begin), end)| (at, &blocks[begin..end])).collect();
        self.is_changed = true;
        self.media
            .write_together(&pieces)
            .map_err(|cause| DeviceError::medium("writing the image's sector tables", cause))?;
        if self.undigested.len() >= self.bounds.undigested_blocks {
            self.write_digests()?;
        }
        Ok(())
    }

    /// Writes the sectors that are not zeros. With `needs_order` the lines are made durable first; later contents also
    /// follow that flush, because they may overwrite sectors that this write destroys.
    fn write_contents(&mut self, write: &Write<'_>, codes: &[u32], needs_order: bool) -> Result<(), DeviceError> {
        let contents = write.contents.unwrap_or_default();
        let sector_bytes = self.layout.sector_bytes;
        let gap_sectors = (GAP_BYTES / sector_bytes) as usize;
        let mut contents = Contents::of(contents);
        let mut pieces: Vec<(u64, &[u8])> = Vec::new();
        for part in self.parts(write.region, write.extent) {
            let Some(slot) = self.directory.slot(part.chunk) else { continue };
            let codes = part_of(codes, write, part);
            let skipped = part.address - write.extent.start.0;
            let mut next = 0;
            while let Some(begin) = (next..codes.len()).find(|&index| is_sum(codes[index])) {
                let mut end = begin + 1;
                while let Some(more) = (end..codes.len().min(end + gap_sectors)).find(|&index| is_sum(codes[index])) {
                    end = more + 1;
                }
                let range = (skipped + begin as u64) * sector_bytes..(skipped + end as u64) * sector_bytes;
                let at = self.layout.content(slot, (part.first + begin as u64) * sector_bytes);
                contents.take(range.start as usize..range.end as usize, at, &mut pieces);
                next = end;
            }
        }
        if pieces.is_empty() && !needs_order {
            return Ok(());
        }
        self.is_changed = true;
        let place = write.extent.start.0;
        let failed = |cause| DeviceError::medium(format!("writing {:?} at sector {place}", write.region), cause);
        let written = match needs_order {
            true => self.media.write_after_flush(&pieces),
            false => self.media.write_in_order(&pieces),
        };
        written.map_err(failed)
    }

    /// Makes the sectors of `extent` in `region` read as zeros, whatever they held. Sectors of chunks without a slot
    /// stay unchanged.
    ///
    /// # Errors
    /// The medium fails.
    pub fn blank(&mut self, region: Region, extent: Extent) -> Result<(), DeviceError> {
        self.redraw(region, extent, ZERO)
    }

    /// Sets the code of sectors, whatever it was. Writes lines, but no contents. Only for repair.
    pub(super) fn redraw(&mut self, region: Region, extent: Extent, code: u32) -> Result<(), DeviceError> {
        self.scratch.changed.clear();
        for part in self.parts(region, extent) {
            let Some(slot) = self.directory.slot(part.chunk) else { continue };
            self.draw_lines(slot, part, 0, |_, _| Some((Line::settled(code), false)))?;
        }
        self.write_lines()
    }
}

/// Contents of a write, read from front to back.
pub(super) struct Contents<'a> {
    /// Pieces that are not consumed yet.
    pieces: &'a [Given<'a>],
    /// Number of bytes in the consumed pieces.
    passed: usize,
}

impl<'a> Contents<'a> {
    /// Returns the contents of `pieces`, none consumed.
    pub(super) fn of(pieces: &'a [Given<'a>]) -> Contents<'a> {
        Contents { pieces, passed: 0 }
    }

    /// Appends to `placed` the bytes `range` of the contents, with their offsets from `at` on. Ranges must be taken in
    /// ascending order.
    pub(super) fn take(&mut self, range: Range<usize>, at: u64, placed: &mut Vec<(u64, &'a [u8])>) {
        let mut next = range.start;
        while next < range.end {
            let [first, rest @ ..] = self.pieces else { unreachable!("contents of a write fill its extent") };
            let first = first.bytes;
            if next >= self.passed + first.len() {
                (self.pieces, self.passed) = (rest, self.passed + first.len());
                continue;
            }
            let end = range.end.min(self.passed + first.len());
            placed.push((at + (next - range.start) as u64, &first[next - self.passed..end - self.passed]));
            next = end;
        }
    }
}

/// Returns the codes of `part` of a write.
fn part_of<'c>(codes: &'c [u32], write: &Write<'_>, part: Part) -> &'c [u32] {
    let begin = (part.address - write.extent.start.0) as usize;
    &codes[begin..begin + part.sectors as usize]
}

/// Appends a fault, or extends the last fault if the sectors follow it and have the same kind.
fn push_fault(faults: &mut Vec<Fault>, address: u64, sectors: u64, kind: FaultKind) {
    match faults.last_mut() {
        Some(last) if last.kind == kind && last.extent.end().0 == address => last.extent.sectors += Sectors(sectors),
        _ => faults.push(Fault { extent: Extent::new(Pba(address), Sectors(sectors)), kind }),
    }
}

/// Returns whether all bytes are zero. The first eight bytes are compared first, because they differ in most other
/// sectors.
fn is_zero(bytes: &[u8]) -> bool {
    bytes[..8] == [0; 8] && bytes.chunks(64).all(|part| part.iter().fold(0, |any, byte| any | byte) == 0)
}
