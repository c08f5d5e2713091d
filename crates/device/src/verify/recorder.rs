//! A medium in memory that remembers what was done to it, in order, so that the same can be done again and cut anywhere.

use std::io;

use crate::media::Media;
use crate::media::memory::Memory;

/// Something done to a medium.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Pieces written as one act.
    Act(Vec<(u64, Vec<u8>)>),
    /// All so far became durable.
    Flush,
}

impl Event {
    /// Does it to `media`.
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

/// The medium.
#[derive(Debug)]
pub struct Recorder {
    memory: Memory,
    events: Vec<Event>,
    flush_waits: bool,
}

impl Recorder {
    /// Over what `memory` holds, nothing done yet.
    pub fn new(memory: Memory) -> Recorder {
        Recorder { memory, events: Vec::new(), flush_waits: false }
    }

    /// Returns this medium with the given answer to [`Media::flush_waits`].
    pub fn with_flush_waits(self, flush_waits: bool) -> Recorder {
        Recorder { flush_waits, ..self }
    }

    /// What is on it.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Takes what was done since it was asked last.
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
