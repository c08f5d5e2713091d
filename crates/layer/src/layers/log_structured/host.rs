//! Serves the host: writes to the open zones, reads and TRIM.
//!
//! The map is in whole blocks. If a write or TRIM covers only part of a block, the rest is read and the whole block is
//! written.
//!
//! Invariants:
//! 1. Written data is durable before its record.
//! 2. The records of written data precede any cleaning.

use imbrex_disk::{Command, Lba, Sectors};

use super::LogStructured;
use super::record::Record;
use super::state::{Placed, Stream};
use crate::plan::reason::Due;
use crate::plan::{Cause, GroupKind, Plan};

impl LogStructured {
    pub(super) fn plan_write(&mut self, command: &Command, plan: &mut Plan) {
        let (start, end) = (command.lba.0, command.end().0);
        let size = self.state.block_sectors;
        let (mut next, last) = ((start / size) as u32, end.div_ceil(size) as u32);
        while next < last {
            let stream = self.stream_of(next);
            let (place, room) = self.room(stream, plan);
            let blocks = room.min(last - next);
            let (from, to) = (next as u64 * size, (next + blocks) as u64 * size);
            self.stage_rest(from, start.max(from), plan);
            self.stage_rest(end.min(to), to, plan);
            self.append(Cause::Host, Placed { block: next, blocks, place }, stream, plan);
            next += blocks;
        }
    }

    /// Returns the stream for a write of `block`: `Hot` if the write replaces data of a zone to which the host wrote
    /// recently.
    fn stream_of(&self, block: u32) -> Stream {
        if !self.hot {
            return Stream::Host;
        }
        let mut is_hot = false;
        self.state.cover(block, 1, |_, _, place| {
            let written_at = place.map(|place| self.state.zones[(place / self.state.zone_blocks) as usize].written_at);
            is_hot = written_at.is_some_and(|written_at| self.state.clock - written_at < self.hot_blocks);
        });
        if is_hot { Stream::Hot } else { Stream::Host }
    }

    /// Returns the head of a stream's open zone, as [`LogStructured::head_or_free_zone`] does, with a host group open.
    /// Cleans first until the host may write.
    fn room(&mut self, stream: Stream, plan: &mut Plan) -> (u32, u32) {
        while self.is_short(stream) {
            self.record_appends(plan);
            let cleaned = self.clean(Due::Full, plan);
            assert!(
                cleaned,
                "invariant 4: with {} zones free, some closed one has a dead block",
                self.state.free.len()
            );
        }
        if plan.phases.last().is_none_or(|phase| phase.kind != GroupKind::Host) {
            plan.open(GroupKind::Host);
        }
        self.head_or_free_zone(stream, plan)
    }

    /// Returns whether the host has to wait for cleaning. If the host and cleaning share an open zone (`streams=one`),
    /// the zone is reserved for cleaning while no zone is free; otherwise there might be no room for the rest of the
    /// victim.
    fn is_short(&self, stream: Stream) -> bool {
        let free = self.state.free.len();
        match self.state.head(stream) {
            Some(_) => stream == self.cleaned && free < super::RESERVE_FOR_CLEANING,
            None => free <= super::RESERVE_FOR_CLEANING,
        }
    }

    /// Stages the present data of the sectors from `from` to `to`.
    fn stage_rest(&self, from: u64, to: u64, plan: &mut Plan) {
        if from >= to {
            return;
        }
        self.state.for_each_piece(Lba(from), Sectors(to - from), |lba, sectors, pba| match pba {
            Some(pba) => plan.read(Cause::Host, pba, lba, sectors),
            None => plan.drop_sectors(Cause::Host, lba, sectors),
        });
    }

    /// Appends to `plan` a write of the staged blocks of `placed` at their place, which is the head of the open zone of
    /// `stream`, and updates the map. The journal record follows with [`LogStructured::record_appends`].
    pub(super) fn append(&mut self, cause: Cause, placed: Placed, stream: Stream, plan: &mut Plan) {
        let size = self.state.block_sectors;
        let (lba, sectors) = (Lba(placed.block as u64 * size), Sectors(placed.blocks as u64 * size));
        plan.write(cause, self.state.pba(placed.place), lba, sectors);
        let (block, blocks, place) = (placed.block as u64, placed.blocks as u64, placed.place as u64);
        let record = Record::Written { block, blocks, place, stream: stream as u64 };
        self.apply(record);
        self.appended.push(record.encode());
    }

    /// Appends to `plan` a barrier, which makes the appended data durable, and then the journal records of the appends.
    /// Does nothing if there are none.
    pub(super) fn record_appends(&mut self, plan: &mut Plan) {
        if self.appended.is_empty() {
            return;
        }
        plan.barrier();
        for note in self.appended.drain(..) {
            plan.note(note);
        }
    }

    pub(super) fn plan_read(&self, command: &Command, plan: &mut Plan) {
        plan.open(GroupKind::Host);
        self.stage_rest(command.lba.0, command.end().0, plan);
    }

    /// Appends to `plan` the TRIM `command`. Blocks that are trimmed whole become absent by a journal record alone; a
    /// block that is trimmed in part is written anew.
    pub(super) fn plan_trim(&mut self, command: &Command, plan: &mut Plan) {
        let (start, end) = (command.lba.0, command.end().0);
        let size = self.state.block_sectors;
        let (first, last) = (start.div_ceil(size), end / size);
        let head = (!start.is_multiple_of(size)).then_some(start / size);
        let tail = (!end.is_multiple_of(size)).then_some(end / size).filter(|&tail| head != Some(tail));
        for block in head.into_iter().chain(tail) {
            self.trim_part(block as u32, start.max(block * size), end.min((block + 1) * size), plan);
        }
        self.record_appends(plan);
        if first < last {
            if plan.phases.is_empty() {
                plan.open(GroupKind::Host);
            }
            let record = Record::Trimmed { block: first, blocks: last - first };
            self.apply(record);
            plan.note(record.encode());
        }
    }

    fn trim_part(&mut self, block: u32, from: u64, to: u64, plan: &mut Plan) {
        let mut is_absent = false;
        self.state.cover(block, 1, |_, _, place| is_absent = place.is_none());
        if is_absent {
            return;
        }
        let stream = self.stream_of(block);
        let (place, _) = self.room(stream, plan);
        let size = self.state.block_sectors;
        self.stage_rest(block as u64 * size, from, plan);
        plan.drop_sectors(Cause::Host, Lba(from), Sectors(to - from));
        self.stage_rest(to, (block as u64 + 1) * size, plan);
        self.append(Cause::Host, Placed { block, blocks: 1, place }, stream, plan);
    }
}
