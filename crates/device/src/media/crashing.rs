//! A medium that can be cut: it knows what is durable, and which acts came since.
//!
//! What a cut leaves: all that was flushed; of the acts since then any subset, in their order, the latest perhaps torn
//! after any of its sectors. An act that writes and destroys carries both, so what is lost of the one is lost of the
//! other. A torn act is a prefix of its pieces in their order. Where a torn write on overlapping tracks destroys the rest
//! of what it was to rewrite, that is for who knows the recording to add (`verify::power_loss`).

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
    /// How many sectors of the last act, over all its pieces, if that one is kept and torn.
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

    /// Sectors that the last act touches, over all its pieces: where it can be torn.
    pub fn last_sectors(&self) -> u64 {
        let pieces = self.last_act().unwrap_or_default();
        pieces.iter().map(|(offset, bytes)| self.sectors(*offset, bytes.len())).sum()
    }

    /// The pieces of the last act since the last flush.
    pub fn last_act(&self) -> Option<&[(u64, Vec<u8>)]> {
        self.since.last().map(|act| &act.pieces[..])
    }

    /// Sectors of the medium that `length` bytes at `offset` touch: each of them is written whole or not at all.
    fn sectors(&self, offset: u64, length: usize) -> u64 {
        let sector = self.sector_bytes as u64;
        (offset + length as u64).div_ceil(sector) - offset / sector
    }

    /// What a power cut now leaves of it if `survivors` is what it spares.
    pub fn cut(&self, survivors: &Survivors) -> Memory {
        assert_eq!(survivors.kept.len(), self.since.len(), "one choice for each act since the last flush");
        let mut left = self.durable.clone();
        for (index, act) in self.since.iter().enumerate().filter(|(index, _)| survivors.kept[*index]) {
            let torn = survivors.torn_sectors.filter(|_| index + 1 == self.since.len());
            let mut sectors_left = torn.unwrap_or(u64::MAX);
            for (offset, bytes) in &act.pieces {
                let kept_end = (*offset / self.sector_bytes as u64).saturating_add(sectors_left);
                let limit = kept_end.saturating_mul(self.sector_bytes as u64).saturating_sub(*offset);
                let kept = (bytes.len() as u64).min(limit) as usize;
                if kept > 0 {
                    left.write_at(*offset, &bytes[..kept]).expect("memory takes every write");
                }
                sectors_left = sectors_left.saturating_sub(self.sectors(*offset, bytes.len()));
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
