//! The independent writer as the host of a zoned drive: it writes each sequential zone at its write pointer, and resets
//! whole zones by TRIM.
//!
//! Invariants:
//! 1. Each zone has at most one request in flight, so that its pointer moves as the writer expects.
//! 2. After a kill the writer does not know the pointers of the zones that it was writing. It resets these zones before
//!    it continues.

use std::ops::Range;

use crate::nbd_client::{Client, FLUSH, READ, TRIM, WRITE};
use crate::random::Random;
use crate::writer::{Ended, Writer};

/// A zone of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Sectors of the zone, as LBAs of the drive (exclusive end).
    pub sectors: Range<u64>,
    /// Whether the zone accepts writes only at its write pointer; otherwise it can be written anywhere.
    pub is_sequential: bool,
}

/// A zone that is being written.
#[derive(Clone, Debug)]
struct Open {
    /// Index of the zone.
    zone: usize,
    /// Write pointer of the zone; `None` if the zone must be reset first.
    pointer: Option<u64>,
}

/// A [`Writer`] for a zoned drive: writes each zone at its write pointer, and resets whole zones by TRIM.
pub struct ZoneWriter {
    /// The writer that sends the requests, remembers the allowed values of sectors and judges reads. Of its `work`,
    /// only `sectors`, `depth`, `flush_in`, `read_in`, `is_volatile` and `cut_destroys` are used.
    pub writer: Writer,
    zones: Vec<Zone>,
    open: Vec<Open>,
    random: Random,
}

impl ZoneWriter {
    /// Returns a writer for `zones` that writes `open` of them at a time, beginning with the first ones. A full zone,
    /// and rarely one that is not full, is replaced by a random other one. Each zone is reset before its first write,
    /// and whenever it is chosen again.
    ///
    /// # Panics
    ///
    /// Panics unless all zones are sequential and there are more than `open`.
    pub fn new(writer: Writer, zones: Vec<Zone>, open: usize) -> ZoneWriter {
        assert!(zones.len() > open && zones.iter().all(|zone| zone.is_sequential), "zones to choose from");
        let random = Random::new(writer.contents.seed ^ 0x20e5);
        let open = (0..open).map(|zone| Open { zone, pointer: None }).collect();
        ZoneWriter { writer, zones, open, random }
    }

    /// Sends requests until `work.depth` are in flight, or a zone drawn at random has a request in flight. Then
    /// receives and judges one answer.
    ///
    /// # Errors
    ///
    /// [`Ended::Gone`] if the connection is closed; [`Ended::Refused`] if the answer is an error.
    pub fn step(&mut self, client: &mut Client) -> Result<(), Ended> {
        while self.writer.in_flight() < self.writer.work.depth {
            let slot = self.random.below(self.open.len() as u64) as usize;
            if self.writer.is_busy(&self.zones[self.open[slot].zone].sectors) {
                break;
            }
            self.go_on(slot, client)?;
        }
        self.writer.take_answer(client)
    }

    /// Sends the next request for an open zone.
    fn go_on(&mut self, slot: usize, client: &mut Client) -> Result<(), Ended> {
        let zone = self.zones[self.open[slot].zone].sectors.clone();
        let Some(pointer) = self.open[slot].pointer else {
            self.open[slot].pointer = Some(zone.start);
            return self.writer.send(client, TRIM, 0, zone);
        };
        if self.random.one_in(self.writer.work.flush_in) {
            return self.writer.send(client, FLUSH, 0, 0..0);
        }
        if pointer == zone.end || self.random.one_in(500) {
            self.open[slot] = Open { zone: self.closed_zone(), pointer: None };
            return Ok(());
        }
        let (least, most) = self.writer.work.sectors;
        let sectors = least + self.random.below(most - least + 1);
        if pointer > zone.start && self.random.one_in(self.writer.work.read_in) {
            let first = zone.start + self.random.below(pointer - zone.start);
            return self.writer.send(client, READ, 0, first..pointer.min(first + sectors));
        }
        let end = zone.end.min(pointer + sectors);
        self.open[slot].pointer = Some(end);
        self.writer.send(client, WRITE, 0, pointer..end)
    }

    /// Returns the index of a random zone that is not open.
    fn closed_zone(&mut self) -> usize {
        loop {
            let zone = self.random.below(self.zones.len() as u64) as usize;
            if self.open.iter().all(|open| open.zone != zone) {
                return zone;
            }
        }
    }

    /// Receives and records the answers that a killed server had sent, drops the requests without an answer, and
    /// forgets the write pointers. Each zone is reset before its next write.
    pub fn after_kill(&mut self, client: &mut Client) {
        self.writer.after_kill(client);
        self.forget_pointers();
    }

    /// Forgets the write pointers of all open zones, because a failed write leaves them unknown. Each zone is reset
    /// before its next write.
    pub fn forget_pointers(&mut self) {
        self.open.iter_mut().for_each(|open| open.pointer = None);
    }
}
