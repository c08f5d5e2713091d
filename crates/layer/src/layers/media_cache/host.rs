//! Host commands: packets of writes in the journal, writes to places in zones, reads and trims.
//!
//! Invariants:
//! 1. The records of cached runs follow their data after a barrier, and precede any cleaning of the same plan.
//! 2. A packet lies where no data was live when the packet was begun, according to records that the barrier before the
//!    packet makes durable.

use imbrex_disk::{Command, Extent, Lba, Operation, Pba, Sectors};

use super::journal::{Entry, Journal};
use super::record::Record;
use super::state::MediaCache;
use super::store::Store;
use crate::map::extent_map::{Gap, Mapped, MappedRun};
use crate::plan::reason::AreaKind;
use crate::plan::{Cause, Kind, Medium, Plan, StepOp};

impl MediaCache {
    pub(super) fn serve(&mut self, commands: &[Command], plan: &mut Plan) {
        self.abandon();
        for command in commands {
            let sectors = Sectors(command.sectors as u64);
            if command.operation == Operation::Write {
                self.waiting.push((command.lba, sectors));
                continue;
            }
            self.write_waiting(plan);
            match command.operation {
                Operation::Read => self.read(command.lba, sectors, plan),
                Operation::Trim => self.trim(command.lba, sectors, plan),
                Operation::Flush => {
                    Self::open_host(plan);
                    plan.barrier();
                }
                Operation::Write => unreachable!("taken above"),
            }
        }
        self.write_waiting(plan);
    }

    fn read(&self, lba: Lba, sectors: Sectors, plan: &mut Plan) {
        Self::open_host(plan);
        self.for_each_piece(lba, sectors, |piece| match piece.at {
            Some((_, pba)) => plan.read(Cause::Host, pba, piece.lba, piece.sectors),
            None => plan.drop_sectors(Cause::Host, piece.lba, piece.sectors),
        });
    }

    fn trim(&mut self, lba: Lba, sectors: Sectors, plan: &mut Plan) {
        while !self.has_entries_for(lba, sectors) {
            self.clean_for_entries(plan);
        }
        Self::open_host(plan);
        plan.note(Record::Trimmed { lba, sectors }.encode());
        self.map_run(lba, sectors, Mapped::Absent);
    }

    fn write_waiting(&mut self, plan: &mut Plan) {
        if self.waiting.is_empty() {
            return;
        }
        self.take_streams(plan);
        match self.store {
            Store::Journal(_) => self.write_packets(plan),
            Store::InPlace(_) => self.write_in_place(plan),
        }
        self.waiting.clear();
    }

    /// Returns whether the map has room for a run over the given sectors. The run adds one entry, or two if it cuts a
    /// run in two, less the entries that it covers.
    fn has_entries_for(&self, lba: Lba, sectors: Sectors) -> bool {
        let (entries, limit) = (self.map.len(), self.settings.map_entries);
        if entries + 2 <= limit {
            return true;
        }
        // The range is widened by a sector on each side, to distinguish runs that extend beyond the range from those
        // that it covers.
        let (before, after) = ((lba.0 > 0) as u64, 1);
        let widened = self.map.pieces(Lba(lba.0 - before), Sectors(before + sectors.0 + after));
        let (mut covered, mut cuts) = (0, 0);
        for run in widened {
            let (reaches_before, reaches_after) = (run.lba < lba, run.end() > lba + sectors);
            let is_inside = run.lba < lba + sectors && run.end() > lba;
            cuts += (is_inside && reaches_before && reaches_after) as usize;
            covered += (is_inside && !reaches_before && !reaches_after) as usize;
        }
        entries + 1 + cuts <= limit + covered
    }

    /// Cleans a band because the map is full: the band of the oldest block, or of an absent run if most entries of the
    /// map are absent runs.
    fn clean_for_entries(&mut self, plan: &mut Plan) {
        let cached = match &self.store {
            Store::Journal(journal) => journal.entries.len(),
            Store::InPlace(zones) => zones.len(),
        };
        let absent_first = cached < self.map.len() / 2;
        let first = if absent_first { self.next_absent() } else { self.oldest() };
        let lba = first.or_else(|| if absent_first { self.oldest() } else { self.next_absent() });
        let lba = lba.expect("a full map has cached or absent runs");
        self.clean(self.shape.bands.locate(lba).region, AreaKind::Map, plan);
    }

    /// Returns the next absent run, round robin.
    fn next_absent(&mut self) -> Option<Lba> {
        let end = Lba(0) + self.shape.bands.capacity();
        let is_absent = |run: &MappedRun| run.target == Mapped::Absent;
        let ahead = self.map.pieces(self.absent_next, end - self.absent_next).find(is_absent);
        let found = ahead.or_else(|| self.map.iter().find(is_absent))?;
        self.absent_next = if found.end() < end { found.end() } else { Lba(0) };
        Some(found.lba)
    }

    fn write_packets(&mut self, plan: &mut Plan) {
        let (mut next, mut done) = (0, Sectors::ZERO);
        while next < self.waiting.len() {
            self.retire_for(next);
            let payload = self.fill_packet(&mut next, &mut done);
            if payload > 0 {
                self.emit_packet(payload, plan);
            } else {
                self.clean_for_packet(self.waiting[next].0 + done, plan);
            }
        }
    }

    /// Frees dead packets if the waiting writes from `next` on would not fit otherwise. Call only before a packet is
    /// begun: the data that the packet itself replaces must remain until the packet is durable.
    fn retire_for(&mut self, next: usize) {
        let Store::Journal(journal) = &mut self.store else { unreachable!("packets are the journal's") };
        let waiting: u64 = self.waiting[next..].iter().map(|(_, sectors)| sectors.0).sum();
        let (half_tracks, _) = journal.extent_of(waiting.min(journal.payload_max(false)));
        if !journal.has_room(half_tracks) {
            journal.retire(&self.map);
        }
    }

    /// Cleans a band to make room for the write at `lba`, for which the ring has no space or the map no entry.
    fn clean_for_packet(&mut self, lba: Lba, plan: &mut Plan) {
        if !self.has_entries_for(lba, Sectors(1)) {
            return self.clean_for_entries(plan);
        }
        match self.oldest() {
            Some(oldest) => self.clean(self.shape.bands.locate(oldest).region, AreaKind::Cache, plan),
            None => self.clean_for_entries(plan),
        }
    }

    /// Assigns places to waiting writes, first in, first out, as long as they fit into one packet. Returns the number
    /// of sectors placed. `next` is the index of the next write, and `done` the number of its sectors that have a
    /// place.
    fn fill_packet(&mut self, next: &mut usize, done: &mut Sectors) -> u64 {
        let (mut payload, mut writes, mut large) = (0, 0, false);
        self.placed.clear();
        let Store::Journal(journal) = &self.store else { unreachable!("packets are the journal's") };
        let start = journal.offset(journal.head + journal.rules.out_of_band);
        let track = journal.tracks.index_at(start);
        while let Some(&(lba, sectors)) = self.waiting.get(*next) {
            let (lba, left) = (lba + *done, sectors.0 - done.0);
            let Store::Journal(journal) = &self.store else { unreachable!("packets are the journal's") };
            large |= sectors.0 >= journal.rules.large_sectors;
            let room = journal.payload_max(large).saturating_sub(payload);
            let taken = if payload == 0 { left.min(room) } else { left };
            let fits = taken <= room
                && writes < journal.rules.writes_max
                && journal.has_room(journal.extent_of(payload + taken).0)
                && self.has_entries_for(lba, Sectors(taken));
            if !fits {
                break;
            }
            self.place(lba, taken, start + payload, track);
            payload += taken;
            writes += 1;
            *done += Sectors(taken);
            if taken < left {
                break;
            }
            *next += 1;
            *done = Sectors::ZERO;
        }
        payload
    }

    /// Maps `sectors` from `lba` on to `offset` of the ring, in the current packet, whose payload begins in `track`.
    #[inline]
    fn place(&mut self, lba: Lba, sectors: u64, offset: u64, track: usize) {
        let (map, placed) = (&mut self.map, &mut self.placed);
        let Store::Journal(journal) = &self.store else { unreachable!("packets are the journal's") };
        journal.tracks.runs_near(track, offset, sectors, |offset, extent| {
            let lba = lba + Sectors(offset);
            map.insert(lba, extent.sectors, Mapped::At(extent.start), |_| {});
            placed.push(Entry { lba: lba.0, pba: extent.start.0, sectors: extent.sectors.0 as u32 });
        });
    }

    fn emit_packet(&mut self, payload: u64, plan: &mut Plan) {
        Self::open_host(plan);
        self.packets_since_merge += 1;
        if self.packets_since_merge == self.settings.map_merge_every {
            self.packets_since_merge = 0;
            self.write_map(self.settings.map_merge_sectors, plan);
        }
        let Store::Journal(journal) = &mut self.store else { unreachable!("packets are the journal's") };
        let (head, (half_tracks, capacity)) = (journal.head, journal.extent_of(payload));
        plan.barrier();
        write_frame(journal, payload, capacity, &self.placed, plan);
        plan.barrier();
        journal.begin_packet(half_tracks);
        plan.note(Record::Packet { head_half_tracks: head, half_tracks }.encode());
        for entry in &self.placed {
            journal.push(*entry);
            plan.note(entry.record().encode());
        }
    }

    /// Returns whether the write `candidate` fits into one packet with the writes `chosen`. Always `false` if the cache
    /// is not a journal.
    pub(super) fn joins_packet(&self, chosen: &[Command], candidate: &Command) -> bool {
        let Store::Journal(journal) = &self.store else { return false };
        if chosen.len() >= journal.rules.writes_max {
            return false;
        }
        let (mut payload, mut longest) = (candidate.sectors as u64, candidate.sectors as u64);
        for command in chosen {
            payload += command.sectors as u64;
            longest = longest.max(command.sectors as u64);
        }
        payload <= journal.payload_max(longest >= journal.rules.large_sectors)
    }

    fn write_in_place(&mut self, plan: &mut Plan) {
        self.placed.clear();
        for index in 0..self.waiting.len() {
            let (mut next, sectors) = self.waiting[index];
            let end = next + sectors;
            while next < end {
                next += self.write_piece(next, end - next, plan);
            }
        }
        self.record_placed(plan);
    }

    /// Writes the first of the `sectors` from `lba` on that go to one place: their place in the cache, or a free run.
    /// Returns the number of sectors written. If there is no room, cleans one band after the other, but only until this
    /// write can continue.
    fn write_piece(&mut self, lba: Lba, sectors: Sectors, plan: &mut Plan) -> Sectors {
        loop {
            let gap = self.map.gap(lba, sectors);
            let cached = match gap {
                Some(_) => None,
                None => self.map.pieces(lba, sectors).find(|run| run.target != Mapped::Absent),
            };
            let uncached = match cached {
                Some(MappedRun { lba: at, sectors, target: Mapped::At(pba) }) if at == lba => {
                    Self::open_host(plan);
                    plan.write(Cause::Host, pba, lba, sectors);
                    return sectors;
                }
                Some(run) => run.lba - lba,
                None => sectors,
            };
            let entry = self.entry_for(lba, uncached);
            let Store::InPlace(zones) = &mut self.store else { unreachable!("zones are overwritten in place") };
            let place = zones.place(entry);
            let has_entries = self.has_entries_for(lba, place.map_or(entry, |place| place.sectors));
            if let Some(place) = place.filter(|_| has_entries) {
                self.write_new(lba, place, gap, plan);
                return place.sectors;
            }
            self.record_placed(plan);
            match self.oldest() {
                Some(oldest) if has_entries => {
                    self.clean(self.shape.bands.locate(oldest).region, AreaKind::Cache, plan)
                }
                _ => self.clean_for_entries(plan),
            }
        }
    }

    /// Returns how many of the `sectors` from `lba` on one entry of the map takes. Unless `cache_entry=block`, an entry
    /// ends at the end of a band, so that cleaning cuts no entry in two.
    fn entry_for(&self, lba: Lba, sectors: Sectors) -> Sectors {
        let Store::InPlace(zones) = &self.store else { unreachable!("zones are overwritten in place") };
        let most = sectors.min(Sectors(zones.entry_sectors));
        if !self.settings.entries_end_at_bands {
            return most;
        }
        let band_end = self.shape.bands.first_lba(self.shape.bands.locate(lba).region + 1);
        most.min(band_end - lba)
    }

    fn write_new(&mut self, lba: Lba, place: Extent, gap: Option<Gap>, plan: &mut Plan) {
        Self::open_host(plan);
        if self.placed.is_empty() {
            // The place may just have been freed: the records that freed it must be durable before the overwrite.
            plan.barrier();
        }
        plan.write(Cause::Host, place.start, lba, place.sectors);
        self.placed.push(Entry { lba: lba.0, pba: place.start.0, sectors: place.sectors.0 as u32 });
        match gap {
            Some(gap) => self.take_into_gap(gap, lba, place),
            None => self.take_in_zone(lba, place),
        }
    }

    /// Maps the logical sectors from `lba` on, none of which may be cached, to the cache sectors `place`.
    ///
    /// # Panics
    ///
    /// If one of the logical sectors is cached.
    pub(super) fn take_in_zone(&mut self, lba: Lba, place: Extent) {
        self.map.remove(lba, place.sectors, |run| assert_eq!(run.target, Mapped::Absent, "{run:?} is cached"));
        let gap = self.map.gap(lba, place.sectors).expect("nothing is mapped there any more");
        self.take_into_gap(gap, lba, place);
    }

    /// Maps the sectors from `lba` on, where the gap begins, to `place`. Joins them with the runs before and after that
    /// are contiguous in both LBAs and PBAs, as long as the result is a valid entry.
    fn take_into_gap(&mut self, gap: Gap, lba: Lba, place: Extent) {
        let (mut first, mut whole) = (lba, place);
        let (before, after) = self.map.beside(&gap, place.sectors);
        if let Some(before) = before {
            let joined = |pba: Pba| (pba + before.sectors == place.start).then(|| Extent::between(pba, place.end()));
            if let Some(joined) = before.place().and_then(joined).filter(|&joined| self.is_entry(before.lba, joined)) {
                (first, whole) = (before.lba, joined);
            }
        }
        if let Some(after) = after.filter(|run| run.target == Mapped::At(place.end())) {
            let joined = Extent::new(whole.start, whole.sectors + after.sectors);
            if self.is_entry(first, joined) {
                whole = joined;
            }
        }
        if whole == place {
            self.map.fill(gap, place.sectors, Mapped::At(place.start));
        } else {
            self.map_run(first, whole.sectors, Mapped::At(whole.start));
        }
        let Store::InPlace(zones) = &mut self.store else { unreachable!("zones are overwritten in place") };
        zones.add(first, whole);
    }

    /// Returns whether the sectors from `lba` on can be one entry at `place`: within one band (unless
    /// `cache_entry=block`) and one zone, and no longer than an entry may be.
    fn is_entry(&self, lba: Lba, place: Extent) -> bool {
        let Store::InPlace(zones) = &self.store else { unreachable!("zones are overwritten in place") };
        self.entry_for(lba, place.sectors) == place.sectors && zones.is_in_one(place)
    }

    fn record_placed(&mut self, plan: &mut Plan) {
        if self.placed.is_empty() {
            return;
        }
        plan.barrier();
        for entry in self.placed.drain(..) {
            plan.note(entry.record().encode());
        }
    }
}

/// Plans the writes of a packet: out-of-band data, host data, and padding up to the capacity of the packet's half
/// tracks. The gap is not written.
fn write_frame(journal: &Journal, payload: u64, capacity: u64, placed: &[Entry], plan: &mut Plan) {
    let start = journal.offset(journal.head);
    let payload_start = journal.offset(journal.head + journal.rules.out_of_band);
    let ring = journal.tracks.sectors();
    write_filler(journal, Kind::OutOfBand, start, (payload_start + ring - start) % ring, plan);
    for entry in placed {
        plan.write(Cause::Host, Pba(entry.pba), Lba(entry.lba), Sectors(entry.sectors as u64));
    }
    write_filler(journal, Kind::Padding, payload_start + payload, capacity - payload, plan);
}

fn write_filler(journal: &Journal, kind: Kind, offset: u64, sectors: u64, plan: &mut Plan) {
    journal.tracks.runs(offset, sectors, |_, extent| {
        plan.access(StepOp::Write, Medium::Disk, kind, Cause::Journal, extent.start, Lba(0), extent.sectors);
    });
}
