//! Records: what they say, the checkpoint made of them, and the map built from them again.
//!
//! Invariants:
//! 1. Records replayed in order give the map that was, its packets and its places.

use imbrex_disk::{Extent, Lba, Pba, Sectors};

use super::journal::Entry;
use super::state::MediaCache;
use super::store::Store;
use crate::map::extent_map::Target;
use crate::plan::note::{Note, ReplayError};

/// lba sectors pba: cached.
pub(super) const TAG_CACHED: u8 = 1;
/// lba sectors: trimmed.
pub(super) const TAG_TRIM: u8 = 2;
/// band: the spare holds all of it.
pub(super) const TAG_BEGIN: u8 = 3;
/// band: it is in its place again.
pub(super) const TAG_END: u8 = 4;
/// head half-tracks: a packet begins.
pub(super) const TAG_PACKET: u8 = 5;
/// band: what of it is in no cache is absent.
pub(super) const TAG_BARE: u8 = 6;
/// band: written whole in its place.
pub(super) const TAG_PLACED: u8 = 7;
/// first bits bits bits: which of the 192 bands from this one on have been written.
pub(super) const TAG_WRITTEN: u8 = 8;

/// Words of 64 bands in one record.
const WRITTEN_WORDS: usize = 3;

impl MediaCache {
    pub(super) fn write_checkpoint(&self, notes: &mut Vec<Note>) {
        for (index, words) in self.written.chunks(WRITTEN_WORDS).enumerate() {
            if words.iter().any(|&word| word != 0) {
                let mut operands = vec![(index * WRITTEN_WORDS * 64) as u64];
                operands.extend(words);
                notes.push(Note::new(TAG_WRITTEN, &operands));
            }
        }
        notes.extend(self.cleaning.rewriting().map(|band| Note::new(TAG_BEGIN, &[band as u64])));
        match &self.store {
            Store::Journal(_) => self.write_packet_records(notes),
            Store::InPlace(_) => notes.extend(self.map.iter().filter_map(|run| match run.target {
                Target::At(pba) => Some(Note::new(TAG_CACHED, &[run.lba.0, run.sectors.0, pba.0])),
                Target::Absent => None,
            })),
        }
        let absent = self.map.iter().filter(|run| run.target == Target::Absent);
        notes.extend(absent.map(|run| Note::new(TAG_TRIM, &[run.lba.0, run.sectors.0])));
    }

    /// Packets with what is live of their entries.
    fn write_packet_records(&self, notes: &mut Vec<Note>) {
        let Store::Journal(journal) = &self.store else { unreachable!("packets are the journal's") };
        let (mut position, mut entries) = (journal.tail, journal.entries.iter());
        if journal.packets.is_empty() {
            notes.push(Note::new(TAG_PACKET, &[position, 0]));
        }
        for packet in &journal.packets {
            notes.push(Note::new(TAG_PACKET, &[position, packet.half_tracks as u64]));
            position += packet.half_tracks as u64;
            for entry in entries.by_ref().take(packet.entries as usize) {
                let here = |lba: Lba| Pba(entry.pba + (lba.0 - entry.lba));
                let pieces = self.map.pieces(Lba(entry.lba), Sectors(entry.sectors as u64));
                let live = pieces.filter(|run| run.target == Target::At(here(run.lba)));
                notes.extend(live.map(|run| Note::new(TAG_CACHED, &[run.lba.0, run.sectors.0, here(run.lba).0])));
            }
        }
    }

    pub(super) fn take_record(&mut self, note: &Note) -> Result<(), ReplayError> {
        let refused = |reason: &str| Err(ReplayError { note: *note, reason: reason.into() });
        let [first, second, third, _] = note.fields;
        let is_run = second > 0 && first.checked_add(second).is_some_and(|end| end <= self.shape.bands.capacity().0);
        let is_band = (first as usize) < self.shape.bands.len();
        match note.tag {
            TAG_CACHED | TAG_TRIM if !is_run || second > u32::MAX as u64 => refused("it lies past the capacity"),
            TAG_BEGIN | TAG_END | TAG_BARE | TAG_PLACED if !is_band => refused("there is no such band"),
            TAG_CACHED => self.take_cached(Lba(first), Sectors(second), Pba(third)).or_else(refused),
            TAG_PACKET => self.take_packet(first, second).or_else(refused),
            TAG_WRITTEN => self.take_written(note).or_else(refused),
            TAG_TRIM => {
                self.map_run(Lba(first), Sectors(second), Target::Absent);
                Ok(())
            }
            TAG_BEGIN | TAG_END | TAG_BARE | TAG_PLACED => {
                self.take_band(note.tag, first as usize);
                Ok(())
            }
            _ => refused("media-cache has no such record"),
        }
    }

    fn take_band(&mut self, tag: u8, band: usize) {
        match tag {
            TAG_BARE => self.map_gaps_absent(band),
            TAG_END => self.cleaning.set_rewriting(None),
            _ => {
                self.unmap_band(band);
                self.set_written(band);
                if tag == TAG_BEGIN {
                    self.cleaning.set_rewriting(Some(band));
                }
            }
        }
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
            self.map_run(lba, sectors, Target::Absent);
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
                    return Err("it does not lie in a packet");
                }
                journal.push(Entry { lba: lba.0, pba: pba.0, sectors: sectors.0 as u32 });
                self.map.insert(lba, sectors, Target::At(pba), |_| {});
            }
            Store::InPlace(zones) => {
                let place = Extent::new(pba, sectors);
                let is_cached = self.map.pieces(lba, sectors).any(|run| run.target != Target::Absent);
                let band = self.shape.bands.locate(lba).region;
                if is_cached
                    || !zones.is_free(place)
                    || !zones.is_in_one(place)
                    || (self.settings.entries_end_at_bands && self.shape.bands.first_lba(band + 1) < lba + sectors)
                {
                    return Err("it does not lie in a free place of the cache, or not in one band");
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

    fn take_written(&mut self, note: &Note) -> Result<(), &'static str> {
        let [first, words @ ..] = note.fields;
        let first = (first / 64) as usize;
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
