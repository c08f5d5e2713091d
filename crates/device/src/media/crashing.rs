//! A medium that can be cut: it knows what is durable, and which acts came since.
//!
//! What a cut leaves: all that was flushed; of the acts since then any subset, in their order, the latest perhaps torn
//! after any of its sectors. An act that writes and destroys carries both, so what is lost of the one is lost of the
//! other; of a torn act the destruction happens whole, for the head may have got anywhere.

use std::io;

use super::memory::Memory;
use super::Media;

/// Several pieces written as one.
#[derive(Clone, Debug)]
struct Act {
    pieces: Vec<(u64, Vec<u8>)>,
}

/// Which of the acts since the last flush a cut keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Survivors {
    /// One for each act, in order.
    pub kept: Vec<bool>,
    /// How many sectors of the last piece of the last act, if that one is kept and torn.
    pub torn_sectors: Option<u64>,
}

/// The medium.
#[derive(Clone, Debug)]
pub struct Crashing {
    durable: Memory,
    view: Memory,
    since: Vec<Act>,
    sector_bytes: usize,
    /// Acts and flushes so far: a clock for whoever cuts.
    events: u64,
}

impl Crashing {
    /// Over what `durable` holds, tearing writes at `sector_bytes`.
    pub fn new(durable: Memory, sector_bytes: u32) -> Crashing {
        Crashing { view: durable.clone(), durable, since: Vec::new(), sector_bytes: sector_bytes as usize, events: 0 }
    }

    /// Acts since the last flush.
    pub fn acts(&self) -> usize {
        self.since.len()
    }

    /// Acts and flushes so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Sectors of the last piece of the last act: where it can be torn.
    pub fn last_sectors(&self) -> u64 {
        let last = self.since.last().and_then(|act| act.pieces.last());
        last.map_or(0, |(_, bytes)| bytes.len().div_ceil(self.sector_bytes) as u64)
    }

    /// What a power cut now leaves of it if `survivors` is what it spares.
    pub fn cut(&self, survivors: &Survivors) -> Memory {
        assert_eq!(survivors.kept.len(), self.since.len(), "one choice for each act since the last flush");
        let mut left = self.durable.clone();
        for (index, act) in self.since.iter().enumerate().filter(|(index, _)| survivors.kept[*index]) {
            let torn = survivors.torn_sectors.filter(|_| index + 1 == self.since.len());
            for (piece, (offset, bytes)) in act.pieces.iter().enumerate() {
                let limit = match torn {
                    Some(sectors) if piece + 1 == act.pieces.len() => sectors as usize * self.sector_bytes,
                    _ => bytes.len(),
                };
                left.write_at(*offset, &bytes[..limit.min(bytes.len())]).expect("memory takes every write");
            }
        }
        left
    }

    /// What is on it while the power is on.
    pub fn whole(&self) -> &Memory {
        &self.view
    }
}

impl Media for Crashing {
    fn len(&self) -> u64 {
        self.view.len()
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.view.read_at(offset, into)
    }

    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.write_together(&[(offset, from)])
    }

    fn write_together(&mut self, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        self.view.write_together(pieces)?;
        self.since.push(Act { pieces: pieces.iter().map(|(offset, from)| (*offset, from.to_vec())).collect() });
        self.events += 1;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        for act in self.since.drain(..) {
            for (offset, bytes) in act.pieces {
                self.durable.write_at(offset, &bytes)?;
            }
        }
        self.events += 1;
        Ok(())
    }
}
