//! A medium that can be cut: it knows what is durable, and what was written since.
//!
//! What a cut leaves: all that was flushed; of what was written since then any subset of the blocks (what a medium writes
//! whole or not at all), whichever act they belong to and however old they are. Where several acts wrote one block, those
//! that survive take effect in their order.
//!
//! Where a torn write on overlapping tracks destroys the rest of what it was to rewrite, that is for who knows the recording
//! to add (`verify::power_loss`).

use std::io;

use super::Media;
use super::memory::Memory;

/// Several pieces written as one.
#[derive(Clone, Debug)]
struct Act {
    pieces: Vec<(u64, Vec<u8>)>,
}

/// The medium.
#[derive(Clone, Debug)]
pub struct Crashing {
    durable: Memory,
    view: Memory,
    since: Vec<Act>,
    block_bytes: usize,
    /// Acts and flushes so far: a clock for whoever cuts.
    events: u64,
    flush_waits: bool,
}

impl Crashing {
    /// Over what `durable` holds, with blocks of `block_bytes`.
    pub fn new(durable: Memory, block_bytes: u32) -> Crashing {
        Crashing {
            view: durable.clone(),
            durable,
            since: Vec::new(),
            block_bytes: block_bytes as usize,
            events: 0,
            flush_waits: false,
        }
    }

    /// Returns this medium with flushes as slow as those of a disk ([`Media::flush_waits`]).
    pub fn with_waiting_flushes(self) -> Crashing {
        Crashing { flush_waits: true, ..self }
    }

    /// Acts since the last flush.
    pub fn acts(&self) -> usize {
        self.since.len()
    }

    /// Acts and flushes so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Blocks written since the last flush, counted once for every act that wrote them.
    pub fn blocks(&self) -> u64 {
        (0..self.since.len()).map(|act| self.blocks_of(act)).sum()
    }

    /// Blocks that act number `act` since the last flush writes.
    pub fn blocks_of(&self, act: usize) -> u64 {
        self.since[act].pieces.iter().map(|(offset, bytes)| self.touched(*offset, bytes.len())).sum()
    }

    /// The pieces of the last act since the last flush.
    pub fn last_act(&self) -> Option<&[(u64, Vec<u8>)]> {
        self.since.last().map(|act| &act.pieces[..])
    }

    /// Blocks of the medium that `length` bytes at `offset` touch.
    fn touched(&self, offset: u64, length: usize) -> u64 {
        let block = self.block_bytes as u64;
        (offset + length as u64).div_ceil(block) - offset / block
    }

    /// What a power cut now leaves if, of the blocks written since the last flush, those survive that `survives` says yes to:
    /// it is given the act and the number of the block in it, both from 0.
    pub fn cut(&self, mut survives: impl FnMut(usize, u64) -> bool) -> Memory {
        let block = self.block_bytes as u64;
        let mut left = self.durable.clone();
        for (number, act) in self.since.iter().enumerate() {
            let mut index = 0;
            for (offset, bytes) in &act.pieces {
                let end = offset + bytes.len() as u64;
                let mut at = *offset;
                while at < end {
                    let next = ((at / block + 1) * block).min(end);
                    if survives(number, index) {
                        let part = &bytes[(at - offset) as usize..(next - offset) as usize];
                        left.write_at(at, part).expect("memory takes every write");
                    }
                    (at, index) = (next, index + 1);
                }
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

    fn flush_waits(&self) -> bool {
        self.flush_waits
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
