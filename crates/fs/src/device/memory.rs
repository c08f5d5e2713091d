//! Blocks in memory, without time and without power cuts, for loads whose addresses matter and whose times do not. The
//! device is a conventional or a caveat disk. [`super::model`] gives equal answers for a caveat disk and simulates
//! power cuts, but takes a hundred times as long if DID is large.
//!
//! Invariants:
//! 1. A read of a block that a write destroyed (Singh 2014 §3.2) is an error, and so is a read of a block of a caveat
//!    disk that was never written (§4.1).

use super::{Answer, BLOCK_BYTES, Backend, DeviceFault, Geometry, Kind, Operation, Outcome};

/// Conventional or caveat disk whose blocks are in memory. Operations take no time, and every write is durable at once.
pub struct Memory {
    geometry: Geometry,
    bytes: Vec<u8>,
    /// Whether each block can be read.
    is_whole: Vec<bool>,
    answers: Vec<(u64, Outcome)>,
    head: u64,
}

impl Memory {
    /// Returns a new device. The blocks of a conventional disk read as zeros. A block of a caveat disk cannot be read
    /// before it is written.
    ///
    /// # Panics
    /// The geometry has zones, or memory cannot hold as many blocks.
    pub fn new(geometry: Geometry) -> Memory {
        assert!(!matches!(geometry.kind, Kind::Zoned { .. }), "it knows no zones");
        let blocks = usize::try_from(geometry.blocks).expect("it is as large as memory at most");
        let is_plain = geometry.kind == Kind::Plain;
        // The system allocates zeroed pages when they are touched, so blocks that are never written take no memory.
        let bytes = vec![0; blocks * BLOCK_BYTES];
        Memory { geometry, bytes, is_whole: vec![is_plain; blocks], answers: Vec::new(), head: 0 }
    }

    fn perform(&mut self, operation: Operation) -> Outcome {
        match operation {
            Operation::Read { block, blocks } => self.read(block as usize, blocks as usize),
            Operation::Write { block, bytes } => {
                self.write(block as usize, &bytes);
                Ok(Answer::Done)
            }
            Operation::Flush => Ok(Answer::Done),
            Operation::Report => Ok(Answer::Zones(Vec::new())),
            Operation::Reset(_) | Operation::Finish(_) => Err(DeviceFault::new("memory has no zones")),
        }
    }

    fn read(&mut self, block: usize, blocks: usize) -> Outcome {
        let end = block + blocks;
        self.head = end as u64;
        if let Some(at) = (block..end).find(|at| !self.is_whole[*at]) {
            let reason = format!("block {at} was destroyed by a write before it");
            return Err(DeviceFault { reason, breaks_rules: true });
        }
        Ok(Answer::Bytes(self.bytes[block * BLOCK_BYTES..end * BLOCK_BYTES].to_vec()))
    }

    fn write(&mut self, block: usize, bytes: &[u8]) {
        let end = block + bytes.len() / BLOCK_BYTES;
        self.head = end as u64;
        self.bytes[block * BLOCK_BYTES..end * BLOCK_BYTES].copy_from_slice(bytes);
        self.is_whole[block..end].fill(true);
        if let Kind::Caveat { isolation, no_overlap } = self.geometry.kind {
            let all = self.is_whole.len();
            let last = (end + isolation as usize).min(all);
            let first = (block + 1 + no_overlap as usize).max(end).min(last);
            self.is_whole[first..last].fill(false);
        }
    }
}

impl Backend for Memory {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn submit(&mut self, _now_ns: u64, number: u64, operation: Operation) {
        let outcome = self.perform(operation);
        self.answers.push((number, outcome));
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        (!self.answers.is_empty()).then_some(now_ns)
    }

    fn answers(&mut self, _now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        answers.append(&mut self.answers);
    }

    fn head_position(&self) -> u64 {
        self.head
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::model::Model;
    use super::*;

    const BLOCKS: u64 = 40;

    proptest! {
        /// Compares the readable blocks and their contents with the model of a caveat disk after any writes.
        #[test]
        fn it_says_what_the_model_says(
            writes in proptest::collection::vec((0..BLOCKS, 1u64..6, any::<u8>()), 1..30),
            isolation in 1u64..8,
            no_overlap in 0u64..6,
        ) {
            let geometry = Geometry { blocks: BLOCKS, kind: Kind::Caveat { isolation, no_overlap } };
            let mut both: [Box<dyn Backend>; 2] = [Box::new(Memory::new(geometry)), Box::new(Model::new(geometry))];
            let mut answers: [Vec<(u64, Outcome)>; 2] = Default::default();
            for (device, answers) in both.iter_mut().zip(&mut answers) {
                for (block, blocks, seed) in &writes {
                    let bytes = vec![*seed; (*blocks).min(BLOCKS - block) as usize * BLOCK_BYTES];
                    device.submit(0, 0, Operation::Write { block: *block, bytes });
                }
                for block in 0..BLOCKS {
                    device.submit(0, 1, Operation::Read { block, blocks: 1 });
                }
                device.answers(0, answers);
            }
            prop_assert_eq!(&answers[0], &answers[1]);
            prop_assert_eq!(both[0].head_position(), both[1].head_position());
        }
    }
}
