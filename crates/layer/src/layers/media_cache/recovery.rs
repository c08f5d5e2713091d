//! Recovery: a checkpoint made from the map, and the map rebuilt from records ([`super::record`]).
//!
//! Invariants:
//! 1. Records replayed in order yield the map, packets and places that planning had.

use imbrex_disk::{Extent, Lba, Pba, Sectors};

use super::journal::Entry;
use super::record::Record;
use super::state::MediaCache;
use super::store::Store;
use crate::map::extent_map::Mapped;
use crate::plan::note::{Note, ReplayError};

/// Number of 64-bit words, a bit per band, in one `Written` record.
const WRITTEN_WORDS: usize = 3;

/// Returns the record that the spare holds `band` from its sector `from` on.
pub(super) fn begin_record(band: usize, from: u64) -> Record {
    match from {
        0 => Record::Begin { band: band as u64 },
        _ => Record::BeginPart { band: band as u64, from },
    }
}

impl MediaCache {
    pub(super) fn write_checkpoint(&self, notes: &mut Vec<Note>) {
        for (index, words) in self.written.chunks(WRITTEN_WORDS).enumerate() {
            if words.iter().any(|&word| word != 0) {
                let first_band = (index * WRITTEN_WORDS * 64) as u64;
                let [bits_0, bits_64, bits_128] = [0, 1, 2].map(|word| words.get(word).copied().unwrap_or(0));
                notes.push(Record::Written { first_band, bits_0, bits_64, bits_128 }.encode());
            }
        }
        notes.extend(self.cleaning.rewriting().map(|band| begin_record(band, self.cleaning.from).encode()));
        match &self.store {
            Store::Journal(_) => self.write_packet_records(notes),
            Store::InPlace(_) => notes.extend(self.map.iter().filter_map(|run| match run.target {
                Mapped::At(pba) => Some(Record::Cached { lba: run.lba, sectors: run.sectors, pba }.encode()),
                Mapped::Absent => None,
            })),
        }
        let absent = self.map.iter().filter(|run| run.target == Mapped::Absent);
        notes.extend(absent.map(|run| Record::Trimmed { lba: run.lba, sectors: run.sectors }.encode()));
    }

    /// Appends the records of the packets, each with the live parts of its entries.
    fn write_packet_records(&self, notes: &mut Vec<Note>) {
        let Store::Journal(journal) = &self.store else { unreachable!("packets are the journal's") };
        let (mut position, mut entries) = (journal.tail, journal.entries.iter());
        if journal.packets.is_empty() {
            notes.push(Record::Packet { head_half_tracks: position, half_tracks: 0 }.encode());
        }
        for packet in &journal.packets {
            let half_tracks = packet.half_tracks as u64;
            notes.push(Record::Packet { head_half_tracks: position, half_tracks }.encode());
            position += half_tracks;
            for entry in entries.by_ref().take(packet.entries as usize) {
                let here = |lba: Lba| Pba(entry.pba + (lba.0 - entry.lba));
                let pieces = self.map.pieces(Lba(entry.lba), Sectors(entry.sectors as u64));
                let live = pieces.filter(|run| run.target == Mapped::At(here(run.lba)));
                notes.extend(
                    live.map(|run| Record::Cached { lba: run.lba, sectors: run.sectors, pba: here(run.lba) }.encode()),
                );
            }
        }
    }

    pub(super) fn take_record(&mut self, note: &Note) -> Result<(), ReplayError> {
        self.take(Record::decode(note)?).map_err(|reason| note.refuse(reason))
    }

    fn take(&mut self, record: Record) -> Result<(), &'static str> {
        match record {
            Record::Cached { lba, sectors, pba } => {
                self.check_run(lba, sectors)?;
                self.take_cached(lba, sectors, pba)?;
            }
            Record::Trimmed { lba, sectors } => {
                self.check_run(lba, sectors)?;
                self.map_run(lba, sectors, Mapped::Absent);
            }
            Record::Packet { head_half_tracks, half_tracks } => self.take_packet(head_half_tracks, half_tracks)?,
            Record::Written { first_band, bits_0, bits_64, bits_128 } => {
                self.take_written(first_band, [bits_0, bits_64, bits_128])?;
            }
            Record::Begin { band } => {
                let band = self.take_placed(band)?;
                self.cleaning.set_rewriting(band, 0);
            }
            Record::BeginPart { band, from } => {
                if from == 0 || from >= self.shape.bands.sectors(self.band_of(band)?).0 {
                    return Err("the band has no such part");
                }
                let band = self.take_placed(band)?;
                self.cleaning.set_rewriting(band, from);
            }
            Record::End { band } => {
                self.band_of(band)?;
                self.cleaning.now = None;
            }
            Record::Bare { band } => {
                let band = self.band_of(band)?;
                self.map_gaps_absent(band);
            }
            Record::Placed { band } => {
                self.take_placed(band)?;
            }
        }
        Ok(())
    }

    fn check_run(&self, lba: Lba, sectors: Sectors) -> Result<(), &'static str> {
        let end = lba.0.checked_add(sectors.0).filter(|&end| end <= self.shape.bands.capacity().0);
        if sectors.is_zero() || sectors.0 > u32::MAX as u64 || end.is_none() {
            return Err("the run is empty, too long, or past the capacity");
        }
        Ok(())
    }

    fn band_of(&self, number: u64) -> Result<usize, &'static str> {
        let is_band = number < self.shape.bands.len() as u64;
        is_band.then_some(number as usize).ok_or("there is no such band")
    }

    /// Marks a band as written: each of its sectors lies in its own place, or in the spare that replaces it.
    fn take_placed(&mut self, number: u64) -> Result<usize, &'static str> {
        let band = self.band_of(number)?;
        self.unmap_band(band);
        self.set_written(band);
        Ok(band)
    }

    fn map_gaps_absent(&mut self, band: usize) {
        let (first, sectors) = self.shape.band(band);
        let mut gaps = Vec::new();
        self.map.cover(first, sectors, |lba, sectors, target| {
            if target.is_none() {
                gaps.push((lba, sectors));
            }
        });
        for (lba, sectors) in gaps {
            self.map_run(lba, sectors, Mapped::Absent);
        }
    }

    fn take_cached(&mut self, lba: Lba, sectors: Sectors, pba: Pba) -> Result<(), &'static str> {
        match &mut self.store {
            Store::Journal(journal) => {
                let is_whole = journal.tracks.offset_of(pba).is_some_and(|offset| {
                    offset + sectors.0 <= journal.tracks.sectors()
                        && journal.tracks.run(offset, sectors.0).sectors == sectors
                });
                if !is_whole || journal.packets.is_empty() {
                    return Err("the run does not lie in a packet");
                }
                journal.push(Entry { lba: lba.0, pba: pba.0, sectors: sectors.0 as u32 });
                self.map.insert(lba, sectors, Mapped::At(pba), |_| {});
            }
            Store::InPlace(zones) => {
                let place = Extent::new(pba, sectors);
                let is_cached = self.map.pieces(lba, sectors).any(|run| run.target != Mapped::Absent);
                let band = self.shape.bands.locate(lba).region;
                if is_cached
                    || !zones.is_free(place)
                    || !zones.is_in_one(place)
                    || (self.settings.entries_end_at_bands && self.shape.bands.first_lba(band + 1) < lba + sectors)
                {
                    return Err("the run does not lie in a free place of the cache, or not in one band");
                }
                self.take_in_zone(lba, place);
            }
        }
        Ok(())
    }

    fn take_packet(&mut self, head: u64, half_tracks: u64) -> Result<(), &'static str> {
        let Store::Journal(journal) = &mut self.store else { return Err("this cache has no packets") };
        journal.retire(&self.map);
        if journal.packets.is_empty() {
            (journal.head, journal.tail) = (head, head);
        }
        if journal.head != head || half_tracks > journal.raw_half_tracks() || !journal.has_room(half_tracks) {
            return Err("the journal has no room for the packet there");
        }
        journal.begin_packet(half_tracks);
        Ok(())
    }

    fn take_written(&mut self, first_band: u64, words: [u64; WRITTEN_WORDS]) -> Result<(), &'static str> {
        let first = (first_band / 64) as usize;
        for (index, word) in words.into_iter().enumerate() {
            match self.written.get_mut(first + index) {
                Some(bits) => *bits |= word,
                None if word == 0 => {}
                None => return Err("there are not so many bands"),
            }
        }
        Ok(())
    }
}
