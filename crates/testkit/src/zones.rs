//! The independent writer as the host of a zoned drive: it writes each sequential zone at its pointer, and resets whole
//! zones by TRIM.
//!
//! Invariants:
//! 1. Of each zone at most one request is on its way, so that pointers move as it believes.
//! 2. After a kill it does not know the pointers of zones that it was writing, and resets them before it goes on.

use std::ops::Range;

use crate::nbd_client::{Client, FLUSH, READ, TRIM, WRITE};
use crate::random::Random;
use crate::writer::{Ended, Writer};

/// A zone of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Its sectors, as the host numbers them.
    pub sectors: Range<u64>,
    /// Whether it must be written at its pointer.
    pub is_sequential: bool,
}

/// A zone that is being written.
#[derive(Clone, Debug)]
struct Open {
    /// Index of the zone.
    zone: usize,
    /// Where its pointer is; nothing, when it must be reset first.
    pointer: Option<u64>,
}

/// The writer, with the zones it writes.
pub struct ZoneWriter {
    /// What remembers and judges. Of its work the lengths, the depth and the shares of flushes and reads count.
    pub writer: Writer,
    zones: Vec<Zone>,
    open: Vec<Open>,
    random: Random,
}

impl ZoneWriter {
    /// Writes `zones`, all sequential and never written, so many at a time.
    pub fn new(writer: Writer, zones: Vec<Zone>, open: usize) -> ZoneWriter {
        assert!(zones.len() > open && zones.iter().all(|zone| zone.is_sequential), "zones to choose from");
        let random = Random::new(writer.contents.seed ^ 0x20e5);
        let open = (0..open).map(|zone| Open { zone, pointer: None }).collect();
        ZoneWriter { writer, zones, open, random }
    }

    /// Sends requests until enough are on their way, and takes one answer.
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

    /// The next request of an open zone.
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

    /// A zone that is not open.
    fn closed_zone(&mut self) -> usize {
        loop {
            let zone = self.random.below(self.zones.len() as u64) as usize;
            if self.open.iter().all(|open| open.zone != zone) {
                return zone;
            }
        }
    }

    /// The server was killed: takes what it had answered, and forgets the pointers.
    pub fn after_kill(&mut self, client: &mut Client) {
        self.writer.after_kill(client);
        self.forget_pointers();
    }

    /// A write failed: where pointers are is not known any more.
    pub fn forget_pointers(&mut self) {
        self.open.iter_mut().for_each(|open| open.pointer = None);
    }
}
