//! The journal: records of mapping changes, each with its number, epoch and checksum.
//!
//! There are two journals. One is valid; a checkpoint is written to the other, which then becomes the valid one. Each
//! journal is stored in two copies, in two regions. A record is valid if one of its copies is: its checksum matches,
//! its number is that of its place, and its epoch is no older than that of the record before. The journal ends before
//! its first invalid record. Every opening for writing begins a new epoch, and so does every checkpoint. So records
//! that a power cut left after a gap are never taken for records written later.
//!
//! A power cut may leave a gap: any of the records since the last flush may be lost. Damage looks alike. So each record
//! also stores how many records were durable when it was written, and the state stores how many were durable at the
//! latest barrier. A gap before that number means that both copies are damaged. Then the image is refused, because
//! opening it would lose acknowledged writes.
//!
//! A record also stores the era in which it was written. The record may survive a power cut that loses the state of
//! that era. Then the record proves that every earlier era had ended.
//!
//! Invariants:
//! 1. Records are written in order, each once.
//! 2. A checkpoint is durable before the state names its journal, and is not read before.
//! 3. No gap lies before a record that was known to be durable.
//! 4. A record holds one note. Tags from [`STORE_TAGS`] on belong to the store, the others to the layer.

use imbrex_layer::Note;

use super::checksum::Salt;
use super::layout::Region;
use super::space::Space;
use super::state::State;
use crate::error::DeviceError;
use crate::media::Media;

/// First tag of journal notes that belong to the store. Lower tags belong to the translation layer.
pub const STORE_TAGS: u8 = 240;

/// Size of a record in bytes: checksum 4, epoch 4, number 8, tag 1, era 7, four fields of 8, and the number of records
/// that were durable when the record was written, 8. Earlier versions of this program wrote 0 for the era.
pub const RECORD_BYTES: usize = 64;
/// The valid journal of an open image: an append-only log of changes to the map from logical to physical sectors and to
/// the faults of the drive.
#[derive(Debug)]
pub struct Journal {
    regions: [Region; 2],
    epoch: u32,
    /// Number of the next record.
    next: u64,
    /// Number of records that are known to be durable.
    durable: u64,
    records_max: u64,
    before_checkpoint: u64,
    /// Number of records that the latest checkpoint wrote.
    checkpoint_records: u64,
    /// Numbers of the records of which a power cut left only one copy.
    halves: Vec<u64>,
    buffer: Vec<u8>,
}

/// A record of the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Change of the map or of the faults that the record describes.
    pub note: Note,
    /// Number of the epoch in which the record was written. Each opening for writing and each checkpoint begins a new
    /// epoch.
    pub epoch: u32,
    /// Number of records of the journal that were known to be durable when this record was written; 0 in the records of
    /// a checkpoint.
    pub durable: u64,
    /// Number of the era in which the record was written. A barrier, which makes all earlier writes durable, ends an
    /// era; so all writes of earlier eras were durable then. 0 if an earlier version of this program wrote the record.
    pub era: u64,
}

/// Upper bound of the eras that fit into a record.
const ERA_END: u64 = 1 << 56;

impl Record {
    pub(crate) fn encode(&self, salt: Salt, number: u64, bytes: &mut [u8]) {
        bytes.fill(0);
        bytes[4..8].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        let era = self.era.min(ERA_END - 1);
        bytes[16..24].copy_from_slice(&(u64::from(self.note.tag) | era << 8).to_le_bytes());
        for (index, field) in self.note.fields.iter().enumerate() {
            bytes[24 + index * 8..32 + index * 8].copy_from_slice(&field.to_le_bytes());
        }
        bytes[56..64].copy_from_slice(&self.durable.to_le_bytes());
        let checksum = salt.sum(number, &bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Returns the record in `bytes`, or `None` if it is damaged or has another number.
    pub(crate) fn decode(salt: Salt, bytes: &[u8; RECORD_BYTES], number: u64) -> Option<Record> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let is_whole = word(4) != 0 && long(8) == number && word(0) == salt.sum(number, &bytes[4..]);
        is_whole.then(|| Record {
            note: Note { tag: bytes[16], fields: [long(24), long(32), long(40), long(48)] },
            epoch: word(4),
            durable: long(56),
            era: long(16) >> 8,
        })
    }
}

/// Both copies of one record.
type Copies<'a> = [&'a [u8; RECORD_BYTES]; 2];

/// Calls `each`, in order, with the number and both copies of every record for which `regions` have space on the
/// medium.
fn for_each_place<M: Media>(
    space: &mut Space<M>,
    regions: [Region; 2],
    mut each: impl FnMut(Salt, u64, Copies<'_>) -> Result<(), DeviceError>,
) -> Result<(), DeviceError> {
    let salt = space.journal;
    let end = regions.map(|region| space.allocated_end(region)).into_iter().max().unwrap_or(0);
    let batch = space.bounds().journal_batch.max(1) * RECORD_BYTES;
    let (mut offset, mut copies) = (0, [Vec::new(), Vec::new()]);
    while offset < end {
        let bytes = (end - offset).min(batch as u64) as usize / RECORD_BYTES * RECORD_BYTES;
        for (region, copy) in regions.into_iter().zip(&mut copies) {
            copy.resize(bytes, 0);
            space.read_raw(region, offset, copy)?;
        }
        let records = copies[0].as_chunks().0.iter().zip(copies[1].as_chunks().0);
        for (index, (first, second)) in records.enumerate() {
            each(salt, offset / RECORD_BYTES as u64 + index as u64, [first, second])?;
        }
        offset += bytes as u64;
    }
    Ok(())
}

/// Returns record `number` from the valid copy with the latest epoch.
fn latest(salt: Salt, number: u64, copies: Copies<'_>) -> Option<Record> {
    let whole = copies.into_iter().filter_map(|copy| Record::decode(salt, copy, number));
    whole.max_by_key(|record| record.epoch)
}

/// Returns the regions of the two copies of journal 0 or 1.
fn regions_of(journal: u32) -> [Region; 2] {
    if journal == 0 { [Region::JournalA, Region::MirrorA] } else { [Region::JournalB, Region::MirrorB] }
}

impl Journal {
    /// Reads the valid journal of `space` from its start to its last valid record, and calls `each` with the note of
    /// every record in order. Returns the journal, open for appending after [`Journal::begin_epoch`]. The journal may
    /// grow to `journal_bytes` bytes; `place` names the image in errors.
    ///
    /// # Errors
    /// [`DeviceError::Damaged`] if a record that was durable is unreadable; an error of `each` or of the medium.
    pub fn replay<M: Media>(
        space: &mut Space<M>,
        journal_bytes: u64,
        place: &str,
        mut each: impl FnMut(&Note) -> Result<(), DeviceError>,
    ) -> Result<Journal, DeviceError> {
        let state = space.state();
        let regions = regions_of(state.journal);
        let (mut next, mut epoch) = (0, state.journal_epoch);
        let mut checkpoint_records = 0;
        // Records after the end are leftovers of a power cut or of an earlier use. One that knew of more durable
        // records proves that the journal is damaged.
        let mut known = state.journal_records;
        let (mut halves, mut era) = (Vec::new(), 0);
        for_each_place(space, regions, |salt, number, copies| {
            // An invalid record, too, proves that every era before its own had ended.
            era = copies
                .iter()
                .filter_map(|copy| Record::decode(salt, copy, number))
                .map(|it| it.era)
                .fold(era, u64::max);
            let Some(record) = latest(salt, number, copies).filter(|record| record.epoch >= epoch) else {
                return Ok(());
            };
            if number == next {
                let is_whole = |copy| Record::decode(salt, copy, number) == Some(record);
                if number >= state.journal_records && !copies.into_iter().all(is_whole) {
                    halves.push(number);
                }
                each(&record.note)?;
                // The records of a checkpoint come first, in an epoch of their own, and count no durable records.
                let is_of_checkpoint = record.epoch == state.journal_epoch && record.durable == 0;
                checkpoint_records += u64::from(is_of_checkpoint && checkpoint_records == next);
                epoch = record.epoch;
                next += 1;
            } else {
                known = known.max(record.durable);
            }
            Ok(())
        })?;
        space.note_begun(era);
        if known > next {
            return Err(DeviceError::damaged(
                place,
                format!(
                    "is damaged: both copies of record {next} of its journal are spoilt, and {known} were durable; to open \
                     it would lose what was acknowledged: restore it from a copy, or see what `imbrex drive check --repair` \
                     can save"
                ),
            ));
        }
        Ok(Journal {
            regions,
            epoch: state.epoch,
            next,
            durable: 0,
            records_max: journal_bytes / RECORD_BYTES as u64,
            before_checkpoint: space.bounds().journal_before_checkpoint,
            checkpoint_records,
            halves,
            buffer: Vec::new(),
        })
    }

    /// Begins a new epoch, and marks the image as not closed. Each opening for writing and each checkpoint begins an
    /// epoch; records have its number. Records of which a power cut left only one copy get their second copy again. All
    /// of this is durable on return. To be called once after [`Journal::replay`], before the first append.
    ///
    /// # Errors
    /// The medium fails.
    pub fn begin_epoch<M: Media>(&mut self, space: &mut Space<M>) -> Result<(), DeviceError> {
        for number in std::mem::take(&mut self.halves) {
            self.rewrite(space, number)?;
        }
        let records = self.next;
        space.update(|state| {
            *state = State { epoch: state.epoch + 1, journal_records: records, is_sealed: false, ..*state };
        })?;
        self.epoch = space.state().epoch;
        self.durable = records;
        Ok(())
    }

    /// Records that all records appended so far are durable. To be called after a flush of the medium.
    pub fn flushed(&mut self) {
        self.durable = self.next;
    }

    /// Marks the image as closed cleanly, and stores the number of records; durable on return.
    ///
    /// # Errors
    /// The medium fails.
    pub fn seal<M: Media>(&mut self, space: &mut Space<M>) -> Result<(), DeviceError> {
        let records = self.next;
        space.update(|state| *state = State { journal_records: records, is_sealed: true, ..*state })
    }

    /// Calls `each` with the number of the record and the number of the copy, 0 or 1, for every damaged copy of a
    /// record. Copies that a power cut left out, and that are not rewritten yet, are not reported.
    ///
    /// # Errors
    /// The medium fails.
    pub fn for_each_spoilt<M: Media>(
        &self,
        space: &mut Space<M>,
        mut each: impl FnMut(u64, usize),
    ) -> Result<(), DeviceError> {
        let (mut expected, next) = (0, self.next);
        for_each_place(space, self.regions, |salt, number, copies| {
            if number < next {
                expected = number + 1;
                let newest = latest(salt, number, copies);
                for (copy, bytes) in copies.into_iter().enumerate() {
                    let is_spoilt = newest.is_none() || Record::decode(salt, bytes, number) != newest;
                    if is_spoilt && self.halves.binary_search(&number).is_err() {
                        each(number, copy);
                    }
                }
            }
            Ok(())
        })?;
        (expected..next).for_each(|number| [0, 1].into_iter().for_each(|copy| each(number, copy)));
        Ok(())
    }

    /// Rewrites both copies of every record that has one damaged copy, from the valid copy. Leaves records with two
    /// damaged copies as they are.
    ///
    /// # Errors
    /// The medium fails.
    pub fn heal<M: Media>(&self, space: &mut Space<M>) -> Result<(), DeviceError> {
        let mut spoilt = Vec::new();
        self.for_each_spoilt(space, |number, _| spoilt.push(number))?;
        spoilt.dedup();
        spoilt.into_iter().try_for_each(|number| self.rewrite(space, number))
    }

    /// Rewrites both copies of a record from the valid copy with the latest epoch. Does nothing if both are damaged.
    fn rewrite<M: Media>(&self, space: &mut Space<M>, number: u64) -> Result<(), DeviceError> {
        let (at, mut copies) = (number * RECORD_BYTES as u64, [[0; RECORD_BYTES]; 2]);
        for (region, copy) in self.regions.into_iter().zip(&mut copies) {
            space.read_raw(region, at, copy)?;
        }
        let Some(record) = latest(space.journal, number, [&copies[0], &copies[1]]) else { return Ok(()) };
        let mut bytes = [0; RECORD_BYTES];
        record.encode(space.journal, number, &mut bytes);
        space.write_raw(&self.regions.map(|region| (region, at, &bytes[..])))
    }

    /// Makes the other of the two journals the valid one, without any records, durably, and returns it. Only repair
    /// uses this function, if the valid journal is unreadable.
    ///
    /// # Errors
    /// The medium fails.
    pub fn begin_anew<M: Media>(space: &mut Space<M>, journal_bytes: u64) -> Result<Journal, DeviceError> {
        let other = 1 - space.state().journal;
        let epoch = space.state().epoch + 1;
        space.update(|state| {
            *state = State { journal: other, journal_epoch: epoch, epoch, journal_records: 0, ..*state };
        })?;
        Ok(Journal {
            regions: regions_of(other),
            epoch,
            next: 0,
            durable: 0,
            records_max: journal_bytes / RECORD_BYTES as u64,
            before_checkpoint: space.bounds().journal_before_checkpoint,
            checkpoint_records: 0,
            halves: Vec::new(),
            buffer: Vec::new(),
        })
    }

    /// Returns the regions that hold the two copies of the journal.
    pub(super) fn regions(&self) -> [Region; 2] {
        self.regions
    }

    /// Returns the number of records in the valid journal, durable or not.
    pub fn records(&self) -> u64 {
        self.next
    }

    /// Appends one record with `note` to both copies of the journal. The record is durable after the next barrier.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] if the journal is full, or the medium fails.
    pub fn append(&mut self, space: &mut Space<impl Media>, note: &Note) -> Result<(), DeviceError> {
        if self.next >= self.records_max {
            return Err(DeviceError::Refused("the journal is full".into()));
        }
        let mut record = [0; RECORD_BYTES];
        let (epoch, durable, era) = (self.epoch, self.durable, space.state().era);
        Record { note: *note, epoch, durable, era }.encode(space.journal, self.next, &mut record);
        space.write_raw(&self.regions.map(|region| (region, self.next * RECORD_BYTES as u64, &record[..])))?;
        self.next += 1;
        Ok(())
    }

    /// Returns whether the journal is so long that a checkpoint should replace it. The threshold is
    /// [`Bounds::journal_before_checkpoint`](super::Bounds::journal_before_checkpoint) records, or four times the size
    /// of the latest checkpoint if that is more. It is at most half of the records that fit into the journal, or the
    /// size of the latest checkpoint plus an eighth of them, if that is more.
    pub fn wants_checkpoint(&self) -> bool {
        let room = (self.records_max / 2).max(self.checkpoint_records + self.records_max / 8);
        self.next >= self.before_checkpoint.max(self.checkpoint_records * 4).min(room)
    }

    /// Writes `notes` as the records of the other journal, and makes that the valid one, in a new epoch. `notes` must
    /// describe the same map and faults as all records so far. Durable on return.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] if `notes` fill the whole journal, or the medium fails.
    pub fn checkpoint(&mut self, space: &mut Space<impl Media>, notes: &[Note]) -> Result<(), DeviceError> {
        if notes.len() as u64 >= self.records_max {
            return Err(DeviceError::Refused(format!("a checkpoint of {} records overfills the journal", notes.len())));
        }
        let other = 1 - space.state().journal;
        let (regions, epoch, salt) = (regions_of(other), self.epoch + 1, space.journal);
        let (batch_records, era) = (space.bounds().journal_batch.max(1), space.state().era);
        for (index, batch) in notes.chunks(batch_records).enumerate() {
            let first = (index * batch_records) as u64;
            self.buffer.resize(batch.len() * RECORD_BYTES, 0);
            for (offset, (note, record)) in batch.iter().zip(self.buffer.chunks_exact_mut(RECORD_BYTES)).enumerate() {
                Record { note: *note, epoch, durable: 0, era }.encode(salt, first + offset as u64, record);
            }
            space.write_raw(&regions.map(|region| (region, first * RECORD_BYTES as u64, &self.buffer[..])))?;
        }
        let journal_records = notes.len() as u64;
        space.update(|state| {
            *state = State { journal: other, journal_epoch: epoch, epoch, journal_records, ..*state };
        })?;
        self.regions = regions;
        self.epoch = epoch;
        self.next = journal_records;
        self.durable = journal_records;
        self.checkpoint_records = self.next;
        Ok(())
    }
}
