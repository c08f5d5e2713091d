//! The journal (`placement=journal`): a ring of half tracks, to which packets are written one after the other (Aghayev
//! 2015 §4.3.1).
//!
//! ```text
//!   packet:  out-of-band half tracks │ payload, a half track at a time: host writes, padding, gap │ next packet
//! ```
//!
//! A half track is the sectors that pass the head in half a rotation, skew included. That is a little less than half of
//! a track's sectors, so a half track begins wherever the one before it ended. Positions in the ring count half tracks
//! without wrapping; the half track at a position is the position modulo their number.
//!
//! The gap at the end of a packet is never written: it passes under the head while the next command arrives.
//!
//! Invariants:
//! 1. tail ≤ head ≤ tail + raw half tracks. The ring has additional half tracks, as many as a write can destroy ahead
//!    of the head, so that the head destroys no live data.
//! 2. Space is freed only at the tail: a packet is removed when each of its entries is dead.
//! 3. Entries are in the order of their writing; those of a packet follow each other.

use std::collections::VecDeque;

use imbrex_disk::{Lba, Pba, Sectors};

use super::record::Record;
use super::tracks::Tracks;
use crate::layer::Cache;
use crate::map::extent_map::{ExtentMap, Mapped};
use crate::plan::Medium;

/// A host write, or a part of one, that lies in a packet of the journal: its first logical sector, its first physical
/// sector and its length in sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) lba: u64,
    pub(super) pba: u64,
    pub(super) sectors: u32,
}

impl Entry {
    /// Returns the journal record which says that these sectors are cached at this place.
    pub(super) fn record(&self) -> Record {
        Record::Cached { lba: Lba(self.lba), sectors: Sectors(self.sectors as u64), pba: Pba(self.pba) }
    }

    /// Returns the first live sector of the entry: the first one that `map` still has at its place in this packet.
    /// Returns `None` if all are dead.
    pub(super) fn live(&self, map: &ExtentMap) -> Option<Lba> {
        let here = |lba: Lba| Mapped::At(Pba(self.pba + (lba.0 - self.lba)));
        let mut pieces = map.pieces(Lba(self.lba), Sectors(self.sectors as u64));
        pieces.find(|run| run.target == here(run.lba)).map(|run| run.lba)
    }
}

/// A packet of the journal: several host writes that are written together, after their out-of-band data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Packet {
    /// Number of half tracks that the packet takes.
    pub(super) half_tracks: u32,
    /// Number of entries of the packet that are kept: those not yet found to be dead.
    pub(super) entries: u32,
}

/// Limits on the contents of a packet (Aghayev 2015 §4.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PacketRules {
    /// Number of half tracks of out-of-band data at the start of each packet.
    pub(super) out_of_band: u64,
    /// Maximum number of sectors of host writes in a half track.
    pub(super) payload_sectors: u64,
    /// Maximum number of host writes in a packet.
    pub(super) writes_max: usize,
    /// Minimum number of sectors of a host write that counts as large.
    pub(super) large_sectors: u64,
    /// Maximum number of sectors of host writes in a packet that holds a large write.
    pub(super) large_payload_sectors: u64,
}

/// The journal: a ring of half tracks with packets of host writes, from the tail (oldest) to the head (newest).
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) tracks: Tracks,
    /// Number of sectors before each half track, and of the whole ring at the end.
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
    /// Returns an empty journal on `tracks`, in which packets can take `raw_half_tracks` half tracks. `offsets` holds
    /// the number of sectors before each half track of the ring, and the total at the end. The ring has additional half
    /// tracks, as many as a write can destroy ahead of the head.
    pub(super) fn new(tracks: Tracks, offsets: Vec<u64>, raw_half_tracks: u64, rules: PacketRules) -> Journal {
        let smallest = offsets.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(0);
        let payload_max = raw_half_tracks.saturating_sub(rules.out_of_band) * smallest.min(rules.payload_sectors);
        let (packets, entries) = (VecDeque::new(), VecDeque::new());
        Journal { tracks, offsets, rules, raw_half_tracks, payload_max, head: 0, tail: 0, packets, entries }
    }

    /// Returns the maximum number of half tracks that all packets together can take.
    pub(super) fn raw_half_tracks(&self) -> u64 {
        self.raw_half_tracks
    }

    /// Returns the maximum number of sectors of host writes in one packet. `large` says whether one of these writes is
    /// large, for which a lower limit may apply.
    #[inline]
    pub(super) fn payload_max(&self, large: bool) -> u64 {
        if large { self.rules.large_payload_sectors.min(self.payload_max) } else { self.payload_max }
    }

    /// Returns the index in the ring of half track `position`.
    #[inline]
    fn index(&self, position: u64) -> usize {
        (position % (self.offsets.len() as u64 - 1)) as usize
    }

    /// Returns the number of sectors from the start of the ring to the half track at `position`.
    #[inline]
    pub(super) fn offset(&self, position: u64) -> u64 {
        self.offsets[self.index(position)]
    }

    /// Returns the number of sectors of host writes that half track `position` takes.
    #[inline]
    fn payload_of(&self, position: u64) -> u64 {
        let index = self.index(position);
        (self.offsets[index + 1] - self.offsets[index]).min(self.rules.payload_sectors)
    }

    /// Returns the number of half tracks that a packet at the head with `payload` sectors of host writes takes,
    /// out-of-band data included. Also returns the number of sectors of host writes for which these half tracks have
    /// room.
    #[inline]
    pub(super) fn extent_of(&self, payload: u64) -> (u64, u64) {
        let (mut half_tracks, mut capacity) = (self.rules.out_of_band, 0);
        while capacity < payload {
            capacity += self.payload_of(self.head + half_tracks);
            half_tracks += 1;
        }
        (half_tracks, capacity)
    }

    /// Returns whether a packet of `half_tracks` fits between head and tail now.
    #[inline]
    pub(super) fn has_room(&self, half_tracks: u64) -> bool {
        self.head + half_tracks <= self.tail + self.raw_half_tracks
    }

    /// Begins a packet of `half_tracks` at the head, and moves the head behind it. Its entries follow by
    /// [`Journal::push`].
    pub(super) fn begin_packet(&mut self, half_tracks: u64) {
        self.packets.push_back(Packet { half_tracks: half_tracks as u32, entries: 0 });
        self.head += half_tracks;
    }

    /// Adds an entry to the packet that was begun last.
    ///
    /// # Panics
    ///
    /// If there is no packet.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        self.packets.back_mut().expect("a packet was begun").entries += 1;
        self.entries.push_back(entry);
    }

    /// Removes the oldest packets, as long as they have no live entries by `map`, and moves the tail behind them.
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

    /// Returns the first live sector of the oldest live entry, or `None` if no sector is live. Removes dead packets at
    /// the tail.
    pub(super) fn oldest(&mut self, map: &ExtentMap) -> Option<Lba> {
        self.retire(map);
        self.entries.front().and_then(|entry| entry.live(map))
    }

    /// Calls `each` with every track of the ring, as a cache. The sectors between tail and head are in use.
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

    /// Returns the bytes of memory that the journal takes now.
    pub(super) fn measured_bytes(&self) -> u64 {
        let entries = self.entries.capacity() * std::mem::size_of::<Entry>();
        let packets = self.packets.capacity() * std::mem::size_of::<Packet>();
        (entries + packets + self.offsets.len() * 8) as u64 + self.tracks.measured_bytes()
    }
}
