//! The map of blocks, the state of the zones, and the records that change both.
//!
//! The map is an array of chunks, one for every [`CHUNK_BLOCKS`] blocks ([`super::chunk`]), so that memory grows with
//! the data written. A block in no run lies where the factory put it: block i at place i, or nowhere on a drive that
//! was made empty. A place is the number of a physical block: zone · blocks of a zone + offset.
//!
//! Planning makes a record and applies it; recovery reads the same records back and applies them. So a replayed map
//! equals the planned one by construction.
//!
//! Invariants (numbered as in the layer's header): 1 to 3, and
//! - `freed` is set if a zone has become free since the last barrier: its old contents may still be needed.

use std::collections::VecDeque;

use imbrex_disk::{Lba, Pba, Sectors};

use super::chunk::{CHUNK_BLOCKS, Chunk};
use super::record::Record;
use super::summary::{Entry, Summary};
use crate::map::short_run::{ABSENT, ShortRun};
use crate::map::sparse::Sparse;
use crate::region::Regions;

/// Number of streams of appends, and so the maximum number of open zones.
pub(super) const STREAMS: usize = 3;

/// A stream of appended blocks. Each stream has an open zone of its own, to which its blocks are appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Stream {
    /// Host writes, except those to [`Stream::Hot`].
    Host,
    /// Host writes that replace recently written data.
    Hot,
    /// Blocks that cleaning moves.
    Cleaned,
}

/// The use of a zone of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// No block in the zone is live, and the zone may be written.
    Free,
    /// A stream appends to the zone.
    Open,
    /// Every block of the zone was written, and at least one is live.
    Closed,
}

/// The state of one zone of the log.
#[derive(Clone, Debug)]
pub(super) struct LogZone {
    pub holds: Use,
    /// Whether the zone still has its contents from a new drive that was made full: every logical block at the physical
    /// block with an equal number.
    pub factory: bool,
    /// Number of blocks of the zone that were written, counted from its start. Dead blocks are counted too.
    pub fill: u32,
    /// While a checkpoint is replayed: the number of written blocks that it gives for the zone, which becomes `fill` at
    /// its end.
    pub fill_named: u32,
    /// Number of live blocks in the zone: those that hold the newest contents of a logical block.
    pub live: u32,
    /// Value of the layer's clock, which counts blocks written by the host, when the host wrote the youngest data of
    /// the zone. Cleaning that moves data into the zone keeps the value of the data. 0 for a free zone and for the
    /// contents of a new drive.
    pub written_at: u64,
    /// The logical blocks that were appended to the zone, in order. Blocks that are dead by now may be listed.
    pub summary: Summary,
}

impl LogZone {
    pub(super) fn free() -> LogZone {
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

/// The zone that is being cleaned, and the position in its summary at which cleaning continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Victim {
    pub zone: usize,
    /// Index, counted from 0, of the entry (run of appended blocks) of the zone's summary at which cleaning continues.
    /// `entry_start` is the offset of the entry's first block in the zone, in blocks.
    pub entry: usize,
    pub entry_start: u32,
    /// Number of blocks of the entry at which cleaning continues that were already examined, from its start.
    pub skip: u32,
}

/// A run of consecutive logical blocks, and the place (number of a physical block) of the first; the others follow it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Placed {
    pub block: u32,
    pub blocks: u32,
    pub place: u32,
}

/// The map of a `log-structured` drive, and its zones. A place is the number of a physical block, counted over all
/// zones.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub regions: Regions,
    pub block_sectors: u64,
    pub zone_blocks: u32,
    /// Number of logical blocks, which is the capacity of the drive in blocks.
    pub blocks: u32,
    /// Whether the drive was made full: on the new drive, every logical block lies at the physical block with an equal
    /// number. Otherwise blocks that were never written are absent.
    pub full: bool,
    pub chunks: Sparse<Chunk>,
    /// A chunk without runs, which stands for every missing chunk.
    no_chunk: Chunk,
    pub zones: Vec<LogZone>,
    /// The numbers of the free zones, in the order in which they are taken: the one that was freed first is taken
    /// first.
    pub free: VecDeque<usize>,
    /// For each stream of appends, the number of the open zone to which its blocks are appended; `None` if it has none.
    pub open: [Option<usize>; STREAMS],
    /// The clock of the layer: the number of blocks that the host has written, plus an initial value. The initial value
    /// is the maximum age of hot data in blocks, so that the contents of a new drive do not count as hot.
    pub clock: u64,
    pub victim: Option<Victim>,
    pub freed: bool,
    /// Whether a checkpoint is being replayed. Until its end, blocks that the checkpoint does not name and that lie
    /// where the new drive had them are not counted as live.
    pub restarting: bool,
}

impl State {
    /// Returns the state of a new drive. Zones lie in `regions`; the capacity is that of `data_zones` zones. `full`
    /// says whether every block has contents from the start; `clock` is the initial value of the clock.
    pub(super) fn new(regions: Regions, block_sectors: u64, data_zones: usize, full: bool, clock: u64) -> State {
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

    /// Returns the first physical sector of the block at `place`.
    pub(super) fn pba(&self, place: u32) -> Pba {
        let start = self.regions.extent((place / self.zone_blocks) as usize).start;
        start + Sectors((place % self.zone_blocks) as u64 * self.block_sectors)
    }

    /// Returns the place at which the next block of `stream` goes, and the number of blocks left in its open zone from
    /// there on. Returns `None` if the stream has no open zone.
    pub(super) fn head(&self, stream: Stream) -> Option<(u32, u32)> {
        let zone = self.open[stream as usize]?;
        let fill = self.zones[zone].fill;
        Some((self.first_place(zone) + fill, self.zone_blocks - fill))
    }

    /// Returns the place of the first block of a zone.
    pub(super) fn first_place(&self, zone: usize) -> u32 {
        zone as u32 * self.zone_blocks
    }

    /// Splits the `blocks` logical blocks from `block` on into parts that lie in one piece. Calls `visit(block, blocks,
    /// place)` with each part in order; `place` is `None` if the part is absent. No part with a place crosses the end
    /// of a zone.
    pub(super) fn cover(&self, block: u32, blocks: u32, mut visit: impl FnMut(u32, u32, Option<u32>)) {
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

    /// Splits the `sectors` from `lba` on into parts that lie in one piece. Calls `visit(lba, sectors, pba)` with each
    /// part in order; `pba` is its first physical sector, or `None` if the part is absent.
    pub(super) fn for_each_piece(&self, lba: Lba, sectors: Sectors, mut visit: impl FnMut(Lba, Sectors, Option<Pba>)) {
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

    /// Changes the map and the zones as the journal record `record` says.
    ///
    /// # Errors
    ///
    /// The record has impossible values or cannot follow the records before it. The error is a text with the reason.
    pub(super) fn apply(&mut self, record: Record) -> Result<(), &'static str> {
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
            _ if !self.restarting => Err("the record is of a checkpoint that was not begun"),
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
            .ok_or("the run is empty or past the capacity")
    }

    fn placed(&self, block: u64, blocks: u64, place: u64) -> Result<Placed, &'static str> {
        let run = self.run(block, blocks)?;
        let places = self.zones.len() as u64 * self.zone_blocks as u64;
        let fits = place < places && place % self.zone_blocks as u64 + blocks <= self.zone_blocks as u64;
        fits.then_some(Placed { place: place as u32, ..run }).ok_or("the run does not lie in one zone")
    }

    fn written(&mut self, placed: Placed, stream: Stream) -> Result<(), &'static str> {
        let (zone, offset) = ((placed.place / self.zone_blocks) as usize, placed.place % self.zone_blocks);
        if offset != self.zones[zone].fill {
            return Err("the run does not lie at the head of its zone");
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

    /// Maps a run. Returns the latest `written_at` of the zones whose blocks the run hides.
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

    /// Returns the chunk with the number `index` for a change, and allocates memory for it if necessary.
    #[inline]
    pub(super) fn chunk_mut(&mut self, index: usize) -> &mut Chunk {
        self.chunks.change(index, |_| self.no_chunk.clone())
    }

    /// Counts the present places of `blocks` as dead, and frees closed zones left without live blocks. Returns the
    /// latest `written_at` of the zones that held the blocks.
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

    /// Calls `visit` with the live runs of `entry`, whose blocks were appended from `place` on: the blocks that the map
    /// still has at these places. There are none if the entry is a dead part.
    pub(super) fn for_each_live(&self, entry: Entry, place: u32, mut visit: impl FnMut(Placed)) {
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

    pub(super) fn measured_bytes(&self) -> u64 {
        let chunks: u64 = self.chunks.iter().map(|(_, chunk)| chunk.measured_bytes()).sum();
        let summaries: u64 = self.zones.iter().map(|zone| zone.summary.measured_bytes()).sum();
        let headers = self.zones.len() * std::mem::size_of::<LogZone>();
        let free = self.free.capacity() * std::mem::size_of::<usize>();
        self.chunks.measured_bytes() + chunks + summaries + (headers + free) as u64 + self.regions.measured_bytes()
    }
}

/// Splits the `blocks` places from `place` on at the ends of zones, which have `zone_blocks` blocks each. Calls
/// `visit(place, blocks)` with each part in order.
pub(super) fn for_each_zone(zone_blocks: u32, place: u32, blocks: u32, mut visit: impl FnMut(u32, u32)) {
    let (mut next, end) = (place, place + blocks);
    while next < end {
        let length = (end - next).min(zone_blocks - next % zone_blocks);
        visit(next, length);
        next += length;
    }
}
