//! A medium that simulates power cuts: it records which data is durable and every write since.
//!
//! A power cut keeps all flushed data. Of the writes since the last flush it keeps any subset of their blocks (the
//! units that a medium writes atomically), whatever the operation they belong to and their age. If several operations
//! wrote one block, those that survive take effect in their order.
//!
//! On overlapping tracks a torn write may also destroy data that the operation was to write back. This medium does not
//! know the recording; `verify::power_loss` adds that damage.

use std::io;

use super::Media;
use super::memory::Memory;

/// One write operation: pieces that were written together, as (offset, bytes).
#[derive(Clone, Debug)]
struct Act {
    pieces: Vec<(u64, Vec<u8>)>,
}

/// A medium in memory that simulates power cuts: it keeps the durable contents apart from the writes since the last
/// flush.
#[derive(Clone, Debug)]
pub struct Crashing {
    durable: Memory,
    view: Memory,
    since: Vec<Act>,
    block_bytes: usize,
    /// Number of write operations and flushes so far: a clock that tests use to choose the moment of a cut.
    events: u64,
    flush_waits: bool,
}

impl Crashing {
    /// Returns a medium whose durable contents are `durable`. A power cut keeps or loses aligned blocks of
    /// `block_bytes` bytes as a whole.
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

    /// Returns this medium, changed so that [`Media::flush_waits`] returns true, as if it lay on a disk.
    pub fn with_waiting_flushes(self) -> Crashing {
        Crashing { flush_waits: true, ..self }
    }

    /// Returns the number of write operations since the last flush. One [`Media::write_together`] is one operation.
    pub fn acts(&self) -> usize {
        self.since.len()
    }

    /// Returns the number of write operations and flushes since the medium was created.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the number of blocks written since the last flush. A block counts once for every written piece that
    /// touches it.
    pub fn blocks(&self) -> u64 {
        (0..self.since.len()).map(|act| self.blocks_of(act)).sum()
    }

    /// Returns the number of blocks that one write operation since the last flush wrote; `act` counts these operations
    /// from 0. A block counts once for every piece of the operation that touches it.
    ///
    /// # Panics
    /// If there were not that many operations since the last flush.
    pub fn blocks_of(&self, act: usize) -> u64 {
        self.since[act].pieces.iter().map(|(offset, bytes)| self.touched(*offset, bytes.len())).sum()
    }

    /// Returns the pieces of the latest write operation, as (offset in bytes, data), or `None` if there was no write
    /// since the last flush.
    pub fn last_act(&self) -> Option<&[(u64, Vec<u8>)]> {
        self.since.last().map(|act| &act.pieces[..])
    }

    /// Returns how many blocks of the medium `length` bytes at `offset` touch.
    fn touched(&self, offset: u64, length: usize) -> u64 {
        let block = self.block_bytes as u64;
        (offset + length as u64).div_ceil(block) - offset / block
    }

    /// Returns the contents of the medium after a power cut at this moment; the medium itself is unchanged. For each
    /// block written since the last flush, `survives` decides whether that write of the block is kept. Its arguments
    /// are the number of the write operation since the last flush and the number of the block within the operation,
    /// both from 0.
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

    /// Returns the contents of the medium while the power is on, with all writes that are not flushed yet.
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
