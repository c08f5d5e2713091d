//! The journal: records of mapping changes, each with its place, epoch and checksum.
//!
//! There are two. One is valid; a checkpoint is written to the other, which then becomes the valid one. A record counts
//! if its checksum is right, its number is that of its place, and its epoch is no older than the one before it: the first
//! that does not count ends the journal. Every opening for work begins a new epoch, so what a cut left behind a gap can
//! never be taken for what was written after it.
//!
//! Invariants:
//! 1. Records are written in order, each once.
//! 2. A checkpoint is durable before the state names its journal, and nothing of it is read before.

use imbrex_layer::{Layer, Note};

use crate::error::DeviceError;
use crate::image::space::{Region, Space, State};
use crate::media::Media;

/// Bytes of a record: checksum 4, epoch 4, number 8, tag 1, nothing 7, four fields of 8, nothing 8.
pub const RECORD_BYTES: usize = 64;
/// Records that are read or written at once.
const BATCH_RECORDS: usize = 16 << 10;
/// A journal is replaced by a checkpoint when it is longer than this, or than four times the last checkpoint.
const RECORDS_BEFORE_CHECKPOINT: u64 = 1 << 18;

/// The journal, open for appending.
#[derive(Debug)]
pub struct Journal {
    region: Region,
    epoch: u32,
    /// Number of the next record.
    next: u64,
    records_max: u64,
    checkpoint_records: u64,
    buffer: Vec<u8>,
}

fn encode(note: &Note, epoch: u32, number: u64, record: &mut [u8]) {
    record.fill(0);
    record[4..8].copy_from_slice(&epoch.to_le_bytes());
    record[8..16].copy_from_slice(&number.to_le_bytes());
    record[16] = note.tag;
    for (index, field) in note.fields.iter().enumerate() {
        record[24 + index * 8..32 + index * 8].copy_from_slice(&field.to_le_bytes());
    }
    let checksum = crc32c::crc32c(&record[4..]);
    record[..4].copy_from_slice(&checksum.to_le_bytes());
}

/// The note and epoch of a record, if it is whole and of this number.
pub fn decode(record: &[u8; RECORD_BYTES], number: u64) -> Option<(Note, u32)> {
    let word = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
    let is_whole = word(0) == crc32c::crc32c(&record[4..]) && long(8) == number && word(4) != 0;
    is_whole.then(|| (Note { tag: record[16], fields: [long(24), long(32), long(40), long(48)] }, word(4)))
}

fn region_of(journal: u32) -> Region {
    if journal == 0 {
        Region::JournalA
    } else {
        Region::JournalB
    }
}

impl Journal {
    /// Reads the valid journal of `space`, calling `each` with every note; then it is open at its end. It holds at most
    /// `journal_bytes`.
    pub fn replay(
        space: &mut Space<impl Media>,
        journal_bytes: u64,
        mut each: impl FnMut(&Note) -> Result<(), DeviceError>,
    ) -> Result<Journal, DeviceError> {
        let state = space.state();
        let region = region_of(state.journal);
        let records_max = journal_bytes / RECORD_BYTES as u64;
        let (mut number, mut epoch) = (0, state.journal_epoch);
        let mut batch = Vec::new();
        'reading: while number < records_max {
            let count = (BATCH_RECORDS as u64).min(records_max - number);
            batch.resize(count as usize * RECORD_BYTES, 0);
            let offset = number * RECORD_BYTES as u64;
            if !space.is_allocated(region, offset, 1)? {
                break;
            }
            space.read(region, offset, &mut batch)?;
            for record in batch.chunks_exact(RECORD_BYTES) {
                let record = record.try_into().expect("chunks are of one record");
                match decode(record, number) {
                    Some((note, its_epoch)) if its_epoch >= epoch => {
                        each(&note)?;
                        epoch = its_epoch;
                        number += 1;
                    }
                    _ => break 'reading,
                }
            }
        }
        Ok(Journal {
            region,
            epoch: state.epoch,
            next: number,
            records_max,
            checkpoint_records: number,
            buffer: Vec::new(),
        })
    }

    /// Begins a new epoch: to be called once before the first append after a replay.
    pub fn begin_epoch(&mut self, space: &mut Space<impl Media>) -> Result<(), DeviceError> {
        space.update(|state| state.epoch += 1)?;
        self.epoch = space.state().epoch;
        Ok(())
    }

    /// Records in it.
    pub fn records(&self) -> u64 {
        self.next
    }

    /// Appends one record.
    pub fn append(&mut self, space: &mut Space<impl Media>, note: &Note) -> Result<(), DeviceError> {
        if self.next >= self.records_max {
            return Err(DeviceError::Refused("the journal is full".into()));
        }
        let mut record = [0; RECORD_BYTES];
        encode(note, self.epoch, self.next, &mut record);
        space.write_together(&[(self.region, self.next * RECORD_BYTES as u64, &record)])?;
        self.next += 1;
        Ok(())
    }

    /// Whether it has grown so long that a checkpoint should replace it.
    pub fn wants_checkpoint(&self) -> bool {
        let limit = RECORDS_BEFORE_CHECKPOINT.max(self.checkpoint_records * 4).min(self.records_max / 2);
        self.next >= limit.max(self.checkpoint_records + self.records_max / 8)
    }

    /// Replaces it by a checkpoint of `layer`, all of whose plans are carried out.
    pub fn checkpoint(&mut self, space: &mut Space<impl Media>, layer: &dyn Layer) -> Result<(), DeviceError> {
        let mut notes = Vec::new();
        layer.checkpoint(&mut notes);
        if notes.len() as u64 >= self.records_max {
            return Err(DeviceError::Refused(format!("a checkpoint of {} records overfills the journal", notes.len())));
        }
        let other = 1 - space.state().journal;
        let (region, epoch) = (region_of(other), self.epoch + 1);
        for (index, batch) in notes.chunks(BATCH_RECORDS).enumerate() {
            let first = (index * BATCH_RECORDS) as u64;
            self.buffer.resize(batch.len() * RECORD_BYTES, 0);
            for (offset, (note, record)) in batch.iter().zip(self.buffer.chunks_exact_mut(RECORD_BYTES)).enumerate() {
                encode(note, epoch, first + offset as u64, record);
            }
            space.write_together(&[(region, first * RECORD_BYTES as u64, &self.buffer)])?;
        }
        space.update(|state| *state = State { journal: other, journal_epoch: epoch, epoch, ..*state })?;
        self.region = region;
        self.epoch = epoch;
        self.next = notes.len() as u64;
        self.checkpoint_records = self.next;
        Ok(())
    }
}
