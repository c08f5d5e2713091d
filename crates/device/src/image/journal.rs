//! The journal: records of mapping changes, each with its place, epoch and checksum.
//!
//! There are two. One is valid; a checkpoint is written to the other, which then becomes the valid one. A record counts
//! if its checksum is right, its number is that of its place, and its epoch is no older than the one before it: the first
//! that does not count ends the journal. Every opening for work begins a new epoch, so what a cut left behind a gap can
//! never be taken for what was written after it.
//!
//! A power cut may leave a gap: of the records since the last flush any may be lost. Damage looks alike, so each record
//! also says how many were durable when it was written, and the state how many were at the latest opening, checkpoint or
//! shutdown. A gap before that number is damage: the image is refused, for to go on would drop what was acknowledged.
//! Only the records since the last barrier that another record follows have no such witness.
//!
//! Invariants:
//! 1. Records are written in order, each once.
//! 2. A checkpoint is durable before the state names its journal, and nothing of it is read before.
//! 3. No gap lies before a record that was known to be durable.

use imbrex_layer::{Layer, Note};

use crate::error::DeviceError;
use crate::faults::Known;
use crate::image::space::{Region, Space, State};
use crate::media::Media;

/// Bytes of a record: checksum 4, epoch 4, number 8, tag 1, nothing 7, four fields of 8, how many records
/// were durable when this one was written 8.
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
    /// How many are known to be durable.
    durable: u64,
    records_max: u64,
    checkpoint_records: u64,
    buffer: Vec<u8>,
}

/// A record as it is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// The mapping change.
    pub note: Note,
    /// The opening in which it was written.
    pub epoch: u32,
    /// How many records were durable then.
    pub durable: u64,
}

impl Record {
    pub(crate) fn encode(&self, number: u64, bytes: &mut [u8]) {
        bytes.fill(0);
        bytes[4..8].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        bytes[16] = self.note.tag;
        for (index, field) in self.note.fields.iter().enumerate() {
            bytes[24 + index * 8..32 + index * 8].copy_from_slice(&field.to_le_bytes());
        }
        bytes[56..64].copy_from_slice(&self.durable.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    }

    /// The record in `bytes`, if it is whole and of this number.
    pub(crate) fn decode(bytes: &[u8; RECORD_BYTES], number: u64) -> Option<Record> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let is_whole = word(4) != 0 && long(8) == number && word(0) == crc32c::crc32c(&bytes[4..]);
        is_whole.then(|| Record {
            note: Note { tag: bytes[16], fields: [long(24), long(32), long(40), long(48)] },
            epoch: word(4),
            durable: long(56),
        })
    }
}

/// Calls `each` with number and bytes of every record for which `region` has room on the medium, in order.
fn for_each_place<M: Media>(
    space: &mut Space<M>,
    region: Region,
    journal_bytes: u64,
    mut each: impl FnMut(u64, &[u8; RECORD_BYTES]) -> Result<(), DeviceError>,
) -> Result<(), DeviceError> {
    let mut runs = Vec::new();
    space.runs(region, 0, journal_bytes / RECORD_BYTES as u64 * RECORD_BYTES as u64, false, &mut runs)?;
    let (mut offset, mut batch) = (0, Vec::new());
    for run in runs {
        let end = offset + run.bytes;
        while run.at.is_some() && offset < end {
            batch.resize(((end - offset) as usize).min(BATCH_RECORDS * RECORD_BYTES), 0);
            space.read(region, offset, &mut batch)?;
            for (index, record) in batch.chunks_exact(RECORD_BYTES).enumerate() {
                let record = record.try_into().expect("chunks are of one record");
                each(offset / RECORD_BYTES as u64 + index as u64, record)?;
            }
            offset += batch.len() as u64;
        }
        offset = end;
    }
    Ok(())
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
    /// `journal_bytes`; `place` names the image in errors.
    pub fn replay<M: Media>(
        space: &mut Space<M>,
        journal_bytes: u64,
        place: &str,
        mut each: impl FnMut(&Note) -> Result<(), DeviceError>,
    ) -> Result<Journal, DeviceError> {
        let state = space.state();
        let region = region_of(state.journal);
        let (mut next, mut epoch) = (0, state.journal_epoch);
        // Behind the end stands what a cut or an earlier use left; one that knew of more is the witness of damage.
        let mut known = state.journal_records;
        for_each_place(space, region, journal_bytes, |number, bytes| {
            let Some(record) = Record::decode(bytes, number).filter(|record| record.epoch >= epoch) else {
                return Ok(());
            };
            if number == next {
                each(&record.note)?;
                epoch = record.epoch;
                next += 1;
            } else {
                known = known.max(record.durable);
            }
            Ok(())
        })?;
        if known > next {
            return Err(DeviceError::damaged(
                place,
                format!(
                    "is damaged: record {next} of its journal is spoilt, and {known} were durable; to open it would lose \
                     what was acknowledged: restore it from a copy"
                ),
            ));
        }
        Ok(Journal {
            region,
            epoch: state.epoch,
            next,
            durable: 0,
            records_max: journal_bytes / RECORD_BYTES as u64,
            checkpoint_records: next,
            buffer: Vec::new(),
        })
    }

    /// Begins a new epoch: to be called once before the first append after a replay.
    pub fn begin_epoch<M: Media>(&mut self, space: &mut Space<M>) -> Result<(), DeviceError> {
        let records = self.next;
        space.update(|state| *state = State { epoch: state.epoch + 1, journal_records: records, ..*state })?;
        self.epoch = space.state().epoch;
        self.durable = records;
        Ok(())
    }

    /// All records so far are durable: the medium was flushed.
    pub fn flushed(&mut self) {
        self.durable = self.next;
    }

    /// Puts into the state how many records there are, so that the loss of any of them will show.
    pub fn seal<M: Media>(&mut self, space: &mut Space<M>) -> Result<(), DeviceError> {
        let records = self.next;
        space.update(|state| state.journal_records = records)
    }

    /// The numbers of records that cannot be read back as they were written.
    pub fn spoilt<M: Media>(&self, space: &mut Space<M>) -> Result<Vec<u64>, DeviceError> {
        let (mut expected, mut spoilt) = (0, Vec::new());
        for_each_place(space, self.region, self.records_max * RECORD_BYTES as u64, |number, bytes| {
            if number < self.next {
                spoilt.extend(expected..number);
                expected = number + 1;
                spoilt.extend(Record::decode(bytes, number).is_none().then_some(number));
            }
            Ok(())
        })?;
        spoilt.extend(expected..self.next);
        Ok(spoilt)
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
        Record { note: *note, epoch: self.epoch, durable: self.durable }.encode(self.next, &mut record);
        space.write_together(&[(self.region, self.next * RECORD_BYTES as u64, &record)])?;
        self.next += 1;
        Ok(())
    }

    /// Whether it has grown so long that a checkpoint should replace it.
    pub fn wants_checkpoint(&self) -> bool {
        let limit = RECORDS_BEFORE_CHECKPOINT.max(self.checkpoint_records * 4).min(self.records_max / 2);
        self.next >= limit.max(self.checkpoint_records + self.records_max / 8)
    }

    /// Replaces it by a checkpoint of `layer`, all of whose plans are carried out, and of the drive's `faults`.
    pub fn checkpoint(
        &mut self,
        space: &mut Space<impl Media>,
        layer: &dyn Layer,
        faults: &Known,
    ) -> Result<(), DeviceError> {
        let mut notes = Vec::new();
        layer.checkpoint(&mut notes);
        faults.checkpoint(&mut notes);
        if notes.len() as u64 >= self.records_max {
            return Err(DeviceError::Refused(format!("a checkpoint of {} records overfills the journal", notes.len())));
        }
        let other = 1 - space.state().journal;
        let (region, epoch) = (region_of(other), self.epoch + 1);
        for (index, batch) in notes.chunks(BATCH_RECORDS).enumerate() {
            let first = (index * BATCH_RECORDS) as u64;
            self.buffer.resize(batch.len() * RECORD_BYTES, 0);
            for (offset, (note, record)) in batch.iter().zip(self.buffer.chunks_exact_mut(RECORD_BYTES)).enumerate() {
                Record { note: *note, epoch, durable: 0 }.encode(first + offset as u64, record);
            }
            space.write_together(&[(region, first * RECORD_BYTES as u64, &self.buffer)])?;
        }
        let journal_records = notes.len() as u64;
        space.update(|state| {
            *state = State { journal: other, journal_epoch: epoch, epoch, journal_records, ..*state };
        })?;
        self.region = region;
        self.epoch = epoch;
        self.next = journal_records;
        self.durable = journal_records;
        self.checkpoint_records = self.next;
        Ok(())
    }
}
