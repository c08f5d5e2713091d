//! The journal (`placement=journal`): a ring of half tracks, written packet after packet (Aghayev 2015 §4.3.1).
//!
//! ```text
//!   packet:  out-of-band half tracks │ payload, a half track at a time: host writes, padding, gap │ next packet
//! ```
//!
//! A half track is what passes in half a rotation, skew included: a little less than half of a track's sectors, so
//! that it begins wherever the one before it ended. Positions in the ring are half tracks counted without end; the
//! half track itself is the count modulo their number.
//!
//! The gap at the end of a packet is never written: it passes under the head while the next command comes in.
//!
//! Invariants:
//! 1. tail ≤ head ≤ tail + raw half tracks; the ring has more by the tracks that a write reaches, so
//!    that the head destroys nothing live.
//! 2. Space returns at the tail only: a packet leaves when each of its entries is dead.
//! 3. Entries are in the order of their writing; those of a packet follow each other.

use std::collections::VecDeque;

use imbrex_disk::{Lba, Pba, Sectors};

use super::record::Record;
use super::tracks::Tracks;
use crate::layer::Cache;
use crate::map::extent_map::{ExtentMap, Mapped};
use crate::plan::Medium;

/// A host write, as it lies in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) lba: u64,
    pub(super) pba: u64,
    pub(super) sectors: u32,
}

impl Entry {
    /// The record that it was written.
    pub(super) fn record(&self) -> Record {
        Record::Cached { lba: Lba(self.lba), sectors: Sectors(self.sectors as u64), pba: Pba(self.pba) }
    }

    /// The first of its sectors that is still live: that the map still finds in this packet.
    pub(super) fn live(&self, map: &ExtentMap) -> Option<Lba> {
        let here = |lba: Lba| Mapped::At(Pba(self.pba + (lba.0 - self.lba)));
        let mut pieces = map.pieces(Lba(self.lba), Sectors(self.sectors as u64));
        pieces.find(|run| run.target == here(run.lba)).map(|run| run.lba)
    }
}

/// A packet on the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Packet {
    /// How many half tracks it takes.
    pub(super) half_tracks: u32,
    /// How many of the entries that are not known to be dead belong to it.
    pub(super) entries: u32,
}

/// How much a packet may hold (Aghayev 2015 §4.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PacketRules {
    /// Half tracks of out-of-band data.
    pub(super) out_of_band: u64,
    /// Sectors of host writes in a half track.
    pub(super) payload_sectors: u64,
    /// Host writes in a packet.
    pub(super) writes_max: usize,
    /// A write of at least so many sectors is *large* …
    pub(super) large_sectors: u64,
    /// … and a packet that holds a large write has at most so many sectors of payload.
    pub(super) large_payload_sectors: u64,
}

/// The ring of packets, and what is live in it.
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) tracks: Tracks,
    /// Sectors before each half track, and all of the ring at the end.
    offsets: Vec<u64>,
    pub(super) rules: PacketRules,
    raw_half_tracks: u64,
    payload_max: u64,
    pub(super) head: u64,
    pub(super) tail: u64,
    pub(super) packets: VecDeque<Packet>,
    pub(super) entries: VecDeque<Entry>,
}

impl Journal {
    /// An empty journal of `raw_half_tracks`; `offsets` are those of the half tracks of the ring, which has as many
    /// more as invariant 1 asks for.
    pub(super) fn new(tracks: Tracks, offsets: Vec<u64>, raw_half_tracks: u64, rules: PacketRules) -> Journal {
        let smallest = offsets.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(0);
        let payload_max = raw_half_tracks.saturating_sub(rules.out_of_band) * smallest.min(rules.payload_sectors);
        let (packets, entries) = (VecDeque::new(), VecDeque::new());
        Journal { tracks, offsets, rules, raw_half_tracks, payload_max, head: 0, tail: 0, packets, entries }
    }

    /// Half tracks that packets can take.
    pub(super) fn raw_half_tracks(&self) -> u64 {
        self.raw_half_tracks
    }

    /// The most sectors of host writes that a packet can take, `large` ones among them or not.
    #[inline]
    pub(super) fn payload_max(&self, large: bool) -> u64 {
        if large { self.rules.large_payload_sectors.min(self.payload_max) } else { self.payload_max }
    }

    /// The half track of the ring at `position`.
    #[inline]
    fn index(&self, position: u64) -> usize {
        (position % (self.offsets.len() as u64 - 1)) as usize
    }

    /// Sectors before half track `position` of the ring.
    #[inline]
    pub(super) fn offset(&self, position: u64) -> u64 {
        self.offsets[self.index(position)]
    }

    /// Sectors of host writes that half track `position` takes.
    #[inline]
    fn payload_of(&self, position: u64) -> u64 {
        let index = self.index(position);
        (self.offsets[index + 1] - self.offsets[index]).min(self.rules.payload_sectors)
    }

    /// Half tracks of a packet at the head with `payload` sectors of host writes, and how many it could take.
    #[inline]
    pub(super) fn extent_of(&self, payload: u64) -> (u64, u64) {
        let (mut half_tracks, mut capacity) = (self.rules.out_of_band, 0);
        while capacity < payload {
            capacity += self.payload_of(self.head + half_tracks);
            half_tracks += 1;
        }
        (half_tracks, capacity)
    }

    /// Whether a packet of so many half tracks fits now.
    #[inline]
    pub(super) fn has_room(&self, half_tracks: u64) -> bool {
        self.head + half_tracks <= self.tail + self.raw_half_tracks
    }

    /// A packet of `half_tracks` begins at the head; its entries follow by [`Journal::push`].
    pub(super) fn begin_packet(&mut self, half_tracks: u64) {
        self.packets.push_back(Packet { half_tracks: half_tracks as u32, entries: 0 });
        self.head += half_tracks;
    }

    /// An entry of the packet begun last.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        self.packets.back_mut().expect("a packet was begun").entries += 1;
        self.entries.push_back(entry);
    }

    /// Moves the tail past the packets in which nothing is live any more.
    pub(super) fn retire(&mut self, map: &ExtentMap) {
        while let Some(packet) = self.packets.front_mut() {
            while packet.entries > 0 {
                let entry = self.entries.front().expect("invariant 3: a packet has its entries");
                if entry.live(map).is_some() {
                    return;
                }
                packet.entries -= 1;
                self.entries.pop_front();
            }
            self.tail += packet.half_tracks as u64;
            self.packets.pop_front();
        }
    }

    /// The oldest live sector in the ring.
    pub(super) fn oldest(&mut self, map: &ExtentMap) -> Option<Lba> {
        self.retire(map);
        self.entries.front().and_then(|entry| entry.live(map))
    }

    /// Calls `each` with the tracks of the ring; what lies between tail and head is in use.
    pub(super) fn caches(&self, each: &mut dyn FnMut(Cache)) {
        let ring = self.tracks.sectors();
        let (tail, head) = (self.offset(self.tail), self.offset(self.head));
        let used = if self.head == self.tail { 0 } else { (head + ring - tail - 1) % ring + 1 };
        let mut first = 0;
        for track in self.tracks.iter() {
            let (start, size) = (track.start, track.sectors);
            let overlap = |from: u64, to: u64| to.min(first + size.0).saturating_sub(from.max(first));
            let used = Sectors(overlap(tail, tail + used) + overlap(0, (tail + used).saturating_sub(ring)));
            each(Cache { medium: Medium::Disk, start, end: track.end(), used, size });
            first += size.0;
        }
    }

    /// Bytes of memory that it takes now.
    pub(super) fn measured_bytes(&self) -> u64 {
        let entries = self.entries.capacity() * std::mem::size_of::<Entry>();
        let packets = self.packets.capacity() * std::mem::size_of::<Packet>();
        (entries + packets + self.offsets.len() * 8) as u64 + self.tracks.measured_bytes()
    }
}
