//! Checkpoints: the records that describe a drive completely, and their replay.
//!
//! Only zones that are neither free nor in the state of the factory are named, with their live blocks in order of
//! place. So a checkpoint is as long as the data written.
//!
//! Invariants:
//! 1. A zone in the state of the factory holds no run of the map. Every block in no run lies in a zone in that state.
//! 2. Between the first and the last record of a checkpoint, only live blocks of named zones are counted.

use super::chunk::CHUNK_BLOCKS;
use super::record::Record;
use super::state::{LogZone, Placed, STREAMS, State, Use, for_each_zone};
use super::summary::{Entry, Summary};
use crate::map::short_run::{ABSENT, ShortRun};
use crate::map::sparse::Sparse;
use crate::plan::note::Note;

/// Value of `stream` in a record for a closed zone.
const CLOSED: u64 = STREAMS as u64;

impl State {
    /// Begins the replay of a checkpoint: resets the map and all zones, and sets the clock. The records that follow
    /// describe the drive completely.
    pub(super) fn restart(&mut self, clock: u64) {
        self.chunks = Sparse::new(self.chunks.len());
        self.zones.iter_mut().for_each(|zone| *zone = LogZone::free());
        self.free.clear();
        self.open = [None; STREAMS];
        self.victim = None;
        self.clock = clock;
        self.restarting = true;
    }

    pub(super) fn name_zone(&mut self, zone: u64, fill: u64, written_at: u64, stream: u64) -> Result<(), &'static str> {
        let index = zone as usize;
        let known = self.zones.get_mut(index).filter(|zone| zone.holds == Use::Free && fill <= self.zone_blocks as u64);
        let known = known.ok_or("there is no such zone, or it is named already")?;
        let is_closed = stream == CLOSED;
        if !is_closed && self.open.get(stream as usize) != Some(&None) {
            return Err("there is no such stream, or it has a zone");
        }
        known.holds = if is_closed { Use::Closed } else { Use::Open };
        (known.fill_named, known.written_at) = (fill as u32, written_at);
        if !is_closed {
            self.open[stream as usize] = Some(index);
        }
        Ok(())
    }

    pub(super) fn keep(&mut self, placed: Placed) -> Result<(), &'static str> {
        let (index, offset) = ((placed.place / self.zone_blocks) as usize, placed.place % self.zone_blocks);
        let zone = &mut self.zones[index];
        if zone.holds == Use::Free || offset < zone.fill || offset + placed.blocks > zone.fill_named {
            return Err("the run lies in no zone that was named, or not in order");
        }
        pad(&mut zone.summary, offset - zone.fill);
        zone.summary.push(Entry { block: placed.block, blocks: placed.blocks });
        zone.live += placed.blocks;
        zone.fill = offset + placed.blocks;
        let (first_chunk, last_chunk) =
            (placed.block / CHUNK_BLOCKS, (placed.block + placed.blocks - 1) / CHUNK_BLOCKS);
        for chunk in first_chunk..=last_chunk {
            let first = chunk * CHUNK_BLOCKS;
            let from = placed.block.max(first);
            let to = (placed.block + placed.blocks).min(first + CHUNK_BLOCKS);
            let run = ShortRun { offset: from - first, length: to - from, place: placed.place + (from - placed.block) };
            let zone_blocks = self.zone_blocks;
            self.chunk_mut(chunk as usize).overlay(zone_blocks, run, |_, _, _| {});
        }
        Ok(())
    }

    /// Ends the replay of a checkpoint. Blocks without a record lie where the new drive had them, if it was made full.
    /// Zones without a record are free if no such block lies there.
    pub(super) fn end(&mut self) {
        self.restarting = false;
        let (full, zone_blocks, blocks) = (self.full, self.zone_blocks, self.blocks);
        let zones = &mut self.zones;
        let mut keep = |first, length| {
            for_each_zone(zone_blocks, first, length, |block, length| {
                zones[(block / zone_blocks) as usize].live += length;
            });
        };
        for (numbers, chunks) in self.chunks.pages().filter(|_| full) {
            let first = numbers.start as u32 * CHUNK_BLOCKS;
            let Some(chunks) = chunks else {
                let end = (numbers.end as u64 * u64::from(CHUNK_BLOCKS)).min(u64::from(blocks)) as u32;
                keep(first, end - first);
                continue;
            };
            for (first, chunk) in (first..).step_by(CHUNK_BLOCKS as usize).zip(chunks) {
                chunk.cover(zone_blocks, 0, CHUNK_BLOCKS.min(blocks - first), |offset, length, place| {
                    if place.is_none() {
                        keep(first + offset, length);
                    }
                });
            }
        }
        for (index, zone) in self.zones.iter_mut().enumerate() {
            if zone.holds == Use::Free && zone.live > 0 {
                let mut summary = Summary::default();
                summary.push(Entry { block: index as u32 * zone_blocks, blocks: zone_blocks });
                (zone.holds, zone.factory, zone.fill, zone.summary) = (Use::Closed, true, zone_blocks, summary);
            } else {
                pad(&mut zone.summary, zone.fill_named.saturating_sub(zone.fill));
                zone.fill = zone.fill.max(zone.fill_named);
            }
        }
        self.free = (0..self.zones.len()).filter(|&zone| self.zones[zone].holds == Use::Free).collect();
    }

    /// Appends to `notes` the records of a checkpoint, from which [`State::apply`] rebuilds the map and the zones.
    pub(super) fn checkpoint(&self, notes: &mut Vec<Note>) {
        notes.push(Record::Restart { first: self.clock }.encode());
        for (index, zone) in self.zones.iter().enumerate().filter(|(_, zone)| !zone.factory && zone.holds != Use::Free)
        {
            let stream = self.open.iter().position(|&open| open == Some(index)).map_or(CLOSED, |stream| stream as u64);
            let (filled_blocks, written_at) = (zone.fill as u64, zone.written_at);
            notes.push(Record::Zone { zone: index as u64, filled_blocks, written_at, stream }.encode());
            let mut place = self.first_place(index);
            for entry in zone.summary.iter() {
                self.for_each_live(entry, place, |live| {
                    let (block, blocks, place) = (live.block as u64, live.blocks as u64, live.place as u64);
                    notes.push(Record::Kept { block, blocks, place }.encode());
                });
                place += entry.blocks;
            }
        }
        for (number, chunk) in self.chunks.iter() {
            chunk.cover(self.zone_blocks, 0, CHUNK_BLOCKS, |offset, length, place| {
                if place == Some(ABSENT) {
                    let block = number as u64 * u64::from(CHUNK_BLOCKS) + u64::from(offset);
                    notes.push(Record::Trimmed { block, blocks: u64::from(length) }.encode());
                }
            });
        }
        notes.push(Record::End {}.encode());
    }
}

/// Appends a dead part of `blocks` to a zone's summary.
fn pad(summary: &mut Summary, blocks: u32) {
    if blocks > 0 {
        summary.push(Entry { block: ABSENT, blocks });
    }
}
