//! A zoned drive with times in closed form, for tests of several files: a seek unless an operation continues at the
//! head's place, and a time for each block. The drive serves one operation at a time, in order of arrival, and stores
//! one word for each block that repeats one word. If it rotates, an operation at the head's place that arrives when the
//! drive is idle waits for the next rotation.

use std::collections::VecDeque;

use imbrex_fs::device::{
    Answer, BLOCK_BYTES, Backend, DeviceFault, Geometry, Kind, Operation, Outcome, ZoneCondition, ZoneState,
};

/// Time of a seek with half a rotation.
pub(crate) const SEEK_NS: u64 = 12_000_000;
/// Time to transfer a block at 150 MB/s.
pub(crate) const BLOCK_NS: u64 = 27_300;
/// A second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Contents of a block.
#[derive(Clone)]
enum Block {
    /// A word that is repeated.
    Word(u64),
    /// Any other contents: records, headers.
    Bytes(Box<[u8]>),
}

/// A zoned drive that serves one operation at a time.
pub(crate) struct Timed {
    geometry: Geometry,
    zone_blocks: u64,
    blocks: Vec<Block>,
    written: Vec<u64>,
    free_at_ns: u64,
    turn_ns: Option<u64>,
    head: u64,
    answers: VecDeque<(u64, u64, Outcome)>,
}

impl Timed {
    /// Returns a drive of `zones` zones.
    pub(crate) fn new(zones: u32, zone_blocks: u64) -> Timed {
        let blocks = u64::from(zones) * zone_blocks;
        let kind = Kind::Zoned { zone_blocks, zones, conventional: 0, active_max: None };
        Timed {
            geometry: Geometry { blocks, kind },
            zone_blocks,
            blocks: vec![Block::Word(0); blocks as usize],
            written: vec![0; zones as usize],
            free_at_ns: 0,
            turn_ns: None,
            head: 0,
            answers: VecDeque::new(),
        }
    }

    /// Returns the drive with a rotation of `turn_ns`.
    pub(crate) fn turning(self, turn_ns: u64) -> Timed {
        Timed { turn_ns: Some(turn_ns), ..self }
    }

    /// Returns the time from `now_ns` until the head is again over the place where it was when the drive became idle.
    fn turn_on_ns(&self, now_ns: u64) -> u64 {
        let idle_ns = now_ns.checked_sub(self.free_at_ns);
        idle_ns.zip(self.turn_ns).map_or(0, |(idle_ns, turn_ns)| turn_ns - idle_ns % turn_ns)
    }

    fn write(&mut self, block: u64, bytes: &[u8]) -> Outcome {
        let zone = (block / self.zone_blocks) as usize;
        let count = (bytes.len() / BLOCK_BYTES) as u64;
        if block % self.zone_blocks != self.written[zone] || self.written[zone] + count > self.zone_blocks {
            return Err(DeviceFault { reason: format!("a write at {block}"), breaks_rules: true });
        }
        self.written[zone] += count;
        for (number, block_bytes) in bytes.chunks(BLOCK_BYTES).enumerate() {
            let word = u64::from_le_bytes(block_bytes[..8].try_into().unwrap());
            let is_word = block_bytes.chunks(8).all(|chunk| chunk == word.to_le_bytes());
            self.blocks[block as usize + number] =
                if is_word { Block::Word(word) } else { Block::Bytes(block_bytes.into()) };
        }
        Ok(Answer::Done)
    }

    fn read(&self, block: u64, count: u64) -> Outcome {
        let mut bytes = Vec::with_capacity(count as usize * BLOCK_BYTES);
        for block in &self.blocks[block as usize..(block + count) as usize] {
            match block {
                Block::Word(word) => (0..BLOCK_BYTES / 8).for_each(|_| bytes.extend_from_slice(&word.to_le_bytes())),
                Block::Bytes(own) => bytes.extend_from_slice(own),
            }
        }
        Ok(Answer::Bytes(bytes))
    }

    /// Performs an operation; returns its outcome and its duration.
    fn perform(&mut self, now_ns: u64, operation: Operation) -> (Outcome, u64) {
        let turn_on_ns = self.turn_on_ns(now_ns);
        let mut reach = |block: u64, blocks: u64| {
            let seek = if self.head == block { turn_on_ns } else { SEEK_NS };
            self.head = block + blocks;
            seek + blocks * BLOCK_NS
        };
        match operation {
            Operation::Read { block, blocks } => {
                let time = reach(block, blocks);
                (self.read(block, blocks), time)
            }
            Operation::Write { block, bytes } => {
                let time = reach(block, (bytes.len() / BLOCK_BYTES) as u64);
                (self.write(block, &bytes), time)
            }
            Operation::Flush => (Ok(Answer::Done), 0),
            Operation::Reset(zone) => {
                self.written[zone as usize] = 0;
                (Ok(Answer::Done), BLOCK_NS)
            }
            Operation::Finish(zone) => {
                self.written[zone as usize] = self.zone_blocks;
                (Ok(Answer::Done), BLOCK_NS)
            }
            Operation::Report => {
                let state = |written: &u64| {
                    let is_full = *written == self.zone_blocks;
                    let condition = if is_full { ZoneCondition::Full } else { ZoneCondition::Writable };
                    ZoneState { written: *written, condition }
                };
                (Ok(Answer::Zones(self.written.iter().map(state).collect())), 0)
            }
        }
    }
}

impl Backend for Timed {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn submit(&mut self, now_ns: u64, number: u64, operation: Operation) {
        let (outcome, time) = self.perform(now_ns, operation);
        self.free_at_ns = self.free_at_ns.max(now_ns) + time;
        self.answers.push_back((self.free_at_ns, number, outcome));
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.answers.front().map(|(when, ..)| (*when).max(now_ns))
    }

    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        while self.answers.front().is_some_and(|(when, ..)| *when <= now_ns) {
            answers.extend(self.answers.pop_front().map(|(_, number, outcome)| (number, outcome)));
        }
    }

    fn head_position(&self) -> u64 {
        self.head
    }
}
