//! Where every block lies, what every zone holds, and the records by which that changes.
//!
//! The map is an array of parts, one for every [`CHUNK_BLOCKS`] blocks ([`super::chunk`]), so that memory follows what was
//! written. A block in no run lies where the factory put it: block i at place i, or nowhere on a drive made empty. A
//! place is a physical block: zone · blocks of a zone + offset.
//!
//! Planning makes a record and applies it; recovery applies the same records read back. So a replayed map equals the
//! planned one by construction.
//!
//! Invariants (numbered as in the layer's header): 1 to 3, and
//! - `freed` is set when a zone has become free since the last barrier: its old contents may still be wanted.

use std::collections::VecDeque;

use imbrex_disk::{Lba, Pba, Sectors};

use super::chunk::{CHUNK_BLOCKS, Chunk};
use super::record::Record;
use super::summary::{Entry, Summary};
use crate::map::run_list::{ABSENT, ShortRun};
use crate::map::sparse::Sparse;
use crate::region::Regions;

/// Open zones at most.
pub(super) const STREAMS: usize = 3;

/// What is written together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Stream {
    /// Host writes, or those of them not known to be hot.
    Host,
    /// Host writes that hide what was written lately.
    Hot,
    /// What cleaning moves.
    Cleaned,
}

/// What a zone is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// Nothing in it is wanted.
    Free,
    /// A stream appends to it.
    Open,
    /// It is full.
    Closed,
}

/// A zone of the log.
#[derive(Clone, Debug)]
pub(super) struct LogZone {
    pub holds: Use,
    /// Whether its contents are still those that the factory put there.
    pub factory: bool,
    /// Blocks written.
    pub fill: u32,
    /// Blocks that will have been written when the records of a checkpoint end.
    pub fill_named: u32,
    /// Blocks of it that the map points to.
    pub live: u32,
    /// The clock when the youngest of its contents was written by the host.
    pub written_at: u64,
    /// What was appended, in order.
    pub summary: Summary,
}

impl LogZone {
    pub fn free() -> LogZone {
        LogZone {
            holds: Use::Free,
            factory: false,
            fill: 0,
            fill_named: 0,
            live: 0,
            written_at: 0,
            summary: Summary::default(),
        }
    }

    fn append(&mut self, block: u32, blocks: u32) {
        self.fill += blocks;
        self.summary.append(block, blocks);
    }
}

/// A cleaning under way: its zone, and where to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Victim {
    pub zone: usize,
    /// The entry of its summary, and where that begins.
    pub entry: usize,
    pub entry_start: u32,
    /// Blocks of that entry already looked at.
    pub skip: u32,
}

/// A run of blocks at a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Placed {
    pub block: u32,
    pub blocks: u32,
    pub place: u32,
}

/// The map.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub regions: Regions,
    pub block_sectors: u64,
    pub zone_blocks: u32,
    /// Logical blocks.
    pub blocks: u32,
    /// Whether the drive was made full: every block has contents from the factory on.
    pub full: bool,
    pub chunks: Sparse<Chunk>,
    /// One in which nothing is mapped.
    no_chunk: Chunk,
    pub zones: Vec<LogZone>,
    /// Free zones, in the order in which they are taken.
    pub free: VecDeque<usize>,
    /// The open zone of each stream.
    pub open: [Option<usize>; STREAMS],
    /// Blocks that the host has written.
    pub clock: u64,
    pub victim: Option<Victim>,
    pub freed: bool,
    /// Between the first and the last record of a checkpoint: the factory's blocks are not counted yet.
    pub restarting: bool,
}

impl State {
    /// A drive as made; `clock` is where its clock begins.
    pub fn new(regions: Regions, block_sectors: u64, data_zones: usize, full: bool, clock: u64) -> State {
        let zone_blocks = (regions.sectors(0).0 / block_sectors) as u32;
        let blocks = data_zones as u32 * zone_blocks;
        let mut state = State {
            chunks: Sparse::new(blocks.div_ceil(CHUNK_BLOCKS) as usize),
            no_chunk: Chunk::new(regions.len() as u32 * zone_blocks),
            zones: vec![LogZone::free(); regions.len()],
            free: VecDeque::new(),
            open: [None; STREAMS],
            victim: None,
            freed: false,
            restarting: false,
            regions,
            block_sectors,
            zone_blocks,
            blocks,
            full,
            clock,
        };
        state.end();
        state
    }

    /// The physical sector of a place.
    pub fn pba(&self, place: u32) -> Pba {
        let start = self.regions.extent((place / self.zone_blocks) as usize).start;
        start + Sectors((place % self.zone_blocks) as u64 * self.block_sectors)
    }

    /// The place of the head of a stream's open zone, and the blocks that fit there.
    pub fn head(&self, stream: Stream) -> Option<(u32, u32)> {
        let zone = self.open[stream as usize]?;
        let fill = self.zones[zone].fill;
        Some((self.first_place(zone) + fill, self.zone_blocks - fill))
    }

    /// The first place of a zone.
    pub fn first_place(&self, zone: usize) -> u32 {
        zone as u32 * self.zone_blocks
    }

    /// Calls `visit(block, blocks, place)` with where each part of a run of blocks lies, in order, `None` if nowhere;
    /// no part crosses the end of a zone.
    pub fn cover(&self, block: u32, blocks: u32, mut visit: impl FnMut(u32, u32, Option<u32>)) {
        let (mut next, end) = (block, block + blocks);
        while next < end {
            let (chunk, offset) = (next / CHUNK_BLOCKS, next % CHUNK_BLOCKS);
            let length = (end - next).min(CHUNK_BLOCKS - offset);
            let first = next - offset;
            let chunk = self.chunks.get(chunk as usize).unwrap_or(&self.no_chunk);
            chunk.cover(self.zone_blocks, offset, offset + length, |offset, length, place| match place {
                Some(ABSENT) => visit(first + offset, length, None),
                Some(place) => visit(first + offset, length, Some(place)),
                None if !self.full => visit(first + offset, length, None),
                None => for_each_zone(self.zone_blocks, first + offset, length, |block, length| {
                    visit(block, length, Some(block));
                }),
            });
            next += length;
        }
    }

    /// Calls `visit` with where each part of a run of sectors lies, in order.
    pub fn for_each_piece(&self, lba: Lba, sectors: Sectors, mut visit: impl FnMut(Lba, Sectors, Option<Pba>)) {
        let (start, end) = (lba.0, lba.0 + sectors.0);
        let first = (start / self.block_sectors) as u32;
        let last = end.div_ceil(self.block_sectors) as u32;
        self.cover(first, last - first, |block, blocks, place| {
            let run_start = block as u64 * self.block_sectors;
            let from = run_start.max(start);
            let to = (run_start + blocks as u64 * self.block_sectors).min(end);
            visit(Lba(from), Sectors(to - from), place.map(|place| self.pba(place) + Sectors(from - run_start)));
        });
    }

    /// Changes the map as a record says; an error says why the record cannot follow those before it.
    pub fn apply(&mut self, record: Record) -> Result<(), &'static str> {
        match record {
            Record::Written { block, blocks, place, stream } => {
                let placed = self.placed(block, blocks, place)?;
                let streams = [Stream::Host, Stream::Hot, Stream::Cleaned];
                let stream =
                    streams.into_iter().find(|&known| known as u64 == stream).ok_or("there is no such stream")?;
                self.written(placed, stream)
            }
            Record::Trimmed { block, blocks } => {
                let run = self.run(block, blocks)?;
                self.overlay(Placed { place: ABSENT, ..run });
                Ok(())
            }
            Record::Restart { first } => {
                self.restart(first);
                Ok(())
            }
            _ if !self.restarting => Err("it is of a checkpoint that was not begun"),
            Record::Zone { zone, filled_blocks, written_at, stream } => {
                self.name_zone(zone, filled_blocks, written_at, stream)
            }
            Record::Kept { block, blocks, place } => {
                let placed = self.placed(block, blocks, place)?;
                self.keep(placed)
            }
            Record::End {} => {
                self.end();
                Ok(())
            }
        }
    }

    fn run(&self, block: u64, blocks: u64) -> Result<Placed, &'static str> {
        let end = block.checked_add(blocks).filter(|&end| end <= self.blocks as u64 && blocks > 0);
        end.map(|_| Placed { block: block as u32, blocks: blocks as u32, place: ABSENT })
            .ok_or("it lies past the capacity")
    }

    fn placed(&self, block: u64, blocks: u64, place: u64) -> Result<Placed, &'static str> {
        let run = self.run(block, blocks)?;
        let places = self.zones.len() as u64 * self.zone_blocks as u64;
        let fits = place < places && place % self.zone_blocks as u64 + blocks <= self.zone_blocks as u64;
        fits.then_some(Placed { place: place as u32, ..run }).ok_or("it does not lie in one zone")
    }

    fn written(&mut self, placed: Placed, stream: Stream) -> Result<(), &'static str> {
        let (zone, offset) = ((placed.place / self.zone_blocks) as usize, placed.place % self.zone_blocks);
        if offset != self.zones[zone].fill {
            return Err("it does not lie at the head of its zone");
        }
        match (self.zones[zone].holds, self.open[stream as usize]) {
            (Use::Open, Some(open)) if open == zone => {}
            (Use::Free, None) => {
                let index = self.free.iter().position(|&free| free == zone).ok_or("its zone is not free")?;
                self.free.remove(index);
                self.zones[zone].holds = Use::Open;
                self.open[stream as usize] = Some(zone);
            }
            _ => return Err("its zone is not that of its stream"),
        }
        self.zones[zone].append(placed.block, placed.blocks);
        self.zones[zone].live += placed.blocks;
        let hidden_at = self.overlay(placed);
        if stream == Stream::Cleaned {
            self.zones[zone].written_at = self.zones[zone].written_at.max(hidden_at);
        } else {
            self.clock += placed.blocks as u64;
            self.zones[zone].written_at = self.clock;
        }
        if self.zones[zone].fill == self.zone_blocks {
            self.zones[zone].holds = Use::Closed;
            self.zones[zone].summary.close();
            self.open[stream as usize] = None;
            self.free_if_dead(zone);
        }
        Ok(())
    }

    /// Maps a run; says when the youngest zone of what it hides was written.
    fn overlay(&mut self, placed: Placed) -> u64 {
        let mut hidden_at = 0;
        let mut done = 0;
        while done < placed.blocks {
            let block = placed.block + done;
            let (chunk, offset) = ((block / CHUNK_BLOCKS) as usize, block % CHUNK_BLOCKS);
            let length = (placed.blocks - done).min(CHUNK_BLOCKS - offset);
            let place = if placed.place == ABSENT { ABSENT } else { placed.place + done };
            let mut taken = self.chunk_mut(chunk).take();
            taken.overlay(self.zone_blocks, ShortRun { offset, length, place }, |offset, length, hidden| {
                hidden_at = hidden_at.max(self.kill(block - block % CHUNK_BLOCKS + offset, length, hidden));
            });
            *self.chunk_mut(chunk) = taken;
            done += length;
        }
        hidden_at
    }

    /// Part number `index` of the map, to be changed.
    #[inline]
    pub fn chunk_mut(&mut self, index: usize) -> &mut Chunk {
        self.chunks.change(index, |_| self.no_chunk.clone())
    }

    /// The present places of these blocks become dead; returns when the youngest zone that held them was written.
    fn kill(&mut self, block: u32, blocks: u32, place: Option<u32>) -> u64 {
        let place = match place {
            Some(ABSENT) => return 0,
            Some(place) => place,
            None if self.full && !self.restarting => block,
            None => return 0,
        };
        let mut killed_at = 0;
        for_each_zone(self.zone_blocks, place, blocks, |place, blocks| {
            let zone = (place / self.zone_blocks) as usize;
            killed_at = killed_at.max(self.zones[zone].written_at);
            self.zones[zone].live -= blocks;
            self.free_if_dead(zone);
        });
        killed_at
    }

    fn free_if_dead(&mut self, zone: usize) {
        if self.zones[zone].holds != Use::Closed || self.zones[zone].live > 0 {
            return;
        }
        self.zones[zone] = LogZone::free();
        self.free.push_back(zone);
        self.freed = true;
        if self.victim.is_some_and(|victim| victim.zone == zone) {
            self.victim = None;
        }
    }

    /// Calls `visit` with the blocks of an entry that begins at `place` which the map still has there.
    pub fn for_each_live(&self, entry: Entry, place: u32, mut visit: impl FnMut(Placed)) {
        if entry.block == ABSENT {
            return;
        }
        self.cover(entry.block, entry.blocks, |block, blocks, at| {
            let expected = place + (block - entry.block);
            if at == Some(expected) {
                visit(Placed { block, blocks, place: expected });
            }
        });
    }

    pub fn measured_bytes(&self) -> u64 {
        let chunks: u64 = self.chunks.iter().map(|(_, chunk)| chunk.measured_bytes()).sum();
        let summaries: u64 = self.zones.iter().map(|zone| zone.summary.measured_bytes()).sum();
        let headers = self.zones.len() * std::mem::size_of::<LogZone>();
        let free = self.free.capacity() * std::mem::size_of::<usize>();
        self.chunks.measured_bytes() + chunks + summaries + (headers + free) as u64 + self.regions.measured_bytes()
    }
}

/// Cuts a run of places where zones end.
pub(super) fn for_each_zone(zone_blocks: u32, place: u32, blocks: u32, mut visit: impl FnMut(u32, u32)) {
    let (mut next, end) = (place, place + blocks);
    while next < end {
        let length = (end - next).min(zone_blocks - next % zone_blocks);
        visit(next, length);
        next += length;
    }
}
