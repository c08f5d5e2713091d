//! A medium in memory that records the operations on it in order, so that a test can repeat them and cut the power
//! after any of them.

use std::io;

use crate::media::Media;
use crate::media::memory::Memory;

/// A recorded operation on a medium.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Pieces written by one call, in order: offset in bytes, and data.
    Act(Vec<(u64, Vec<u8>)>),
    /// A flush: all earlier writes became durable.
    Flush,
}

impl Event {
    /// Performs the operation on `media`.
    ///
    /// # Panics
    /// If the medium fails.
    pub fn apply(&self, media: &mut impl Media) {
        let outcome = match self {
            Event::Act(pieces) => {
                let borrowed: Vec<(u64, &[u8])> = pieces.iter().map(|(offset, bytes)| (*offset, &bytes[..])).collect();
                media.write_together(&borrowed)
            }
            Event::Flush => media.flush(),
        };
        outcome.expect("memory takes everything");
    }
}

/// A medium in memory that records every write and flush.
#[derive(Debug)]
pub struct Recorder {
    memory: Memory,
    events: Vec<Event>,
    flush_waits: bool,
}

impl Recorder {
    /// Returns a medium with the contents of `memory` and an empty record.
    pub fn new(memory: Memory) -> Recorder {
        Recorder { memory, events: Vec::new(), flush_waits: false }
    }

    /// Returns this medium, changed so that [`Media::flush_waits`] returns `flush_waits`.
    pub fn with_flush_waits(self, flush_waits: bool) -> Recorder {
        Recorder { flush_waits, ..self }
    }

    /// Returns the contents of the medium, with all writes so far.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Removes and returns the events since the previous call, in order.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

impl Media for Recorder {
    fn len(&self) -> u64 {
        self.memory.len()
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.memory.read_at(offset, into)
    }

    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.write_together(&[(offset, from)])
    }

    fn write_together(&mut self, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        self.memory.write_together(pieces)?;
        self.events.push(Event::Act(pieces.iter().map(|(offset, bytes)| (*offset, bytes.to_vec())).collect()));
        Ok(())
    }

    fn flush_waits(&self) -> bool {
        self.flush_waits
    }

    fn flush(&mut self) -> io::Result<()> {
        self.events.push(Event::Flush);
        Ok(())
    }
}
