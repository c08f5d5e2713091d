//! The faults that a drive has, and their records in the journal. Tags from 240 on are the store's: no layer has them.
//!
//! Journal records:
//! - 240 {lba, sectors, 1 unreadable or 0 readable again}: asked for, or written since.
//! - 241 {lba, sectors, nanoseconds that a command takes longer, 0 none}.
//!
//! A later record overlays an earlier one. A checkpoint has one for each run.
//!
//! Invariants:
//! 1. The record that a sector is readable again follows the bytes that were written to it, so a cut between them leaves an
//!    error and never older bytes; a flush covers both.

use imbrex_disk::{Lba, Sectors, SimDuration};
use imbrex_layer::map::run_map::RunMap;
use imbrex_layer::{Note, ReplayError};
use imbrex_sim::Slow;

use super::SLOW_MAX;
use crate::image::journal::STORE_TAGS;

const TAG_UNREADABLE: u8 = STORE_TAGS;
const TAG_SLOW: u8 = STORE_TAGS + 1;

/// The record of sectors that become unreadable, or readable again.
pub(super) fn unreadable(lba: Lba, sectors: Sectors, is_unreadable: bool) -> Note {
    Note::new(TAG_UNREADABLE, &[lba.0, sectors.0, u64::from(is_unreadable)])
}

/// The record of sectors that become slow; as fast as they were made with no time.
pub(super) fn slow(lba: Lba, sectors: Sectors, by: SimDuration) -> Note {
    Note::new(TAG_SLOW, &[lba.0, sectors.0, by.0])
}

/// What is wrong with a drive, but for its zones, which know it themselves.
#[derive(Clone, Debug, Default)]
pub struct Known {
    unreadable: RunMap<()>,
    slow: Slow,
}

impl Known {
    /// Whether `note` speaks of faults.
    pub fn owns(note: &Note) -> bool {
        matches!(note.tag, TAG_UNREADABLE | TAG_SLOW)
    }

    /// What a record is, and the names of its operands, for who prints it.
    pub fn words(note: &Note) -> Option<(&'static str, [&'static str; 3])> {
        match note.tag {
            TAG_UNREADABLE => Some(("unreadable until it is written", ["lba", "sectors", "is_unreadable"])),
            TAG_SLOW => Some(("slow", ["lba", "sectors", "by_ns"])),
            _ => None,
        }
    }

    /// Takes one durable record of a drive of `capacity`.
    pub fn replay(&mut self, note: &Note, capacity: Sectors) -> Result<(), ReplayError> {
        let refused = |reason: String| Err(ReplayError { note: *note, reason });
        let [lba, sectors, what, _] = note.fields;
        if sectors == 0 || lba.checked_add(sectors).is_none_or(|end| end > capacity.0) {
            return refused(format!("the drive has {} sectors", capacity.0));
        }
        match (note.tag, what) {
            (TAG_UNREADABLE, 0) => self.unreadable.remove(lba, sectors),
            (TAG_UNREADABLE, 1) => self.unreadable.insert(lba, sectors, ()),
            (TAG_SLOW, by) if by <= SLOW_MAX.0 => self.slow.set(Lba(lba), Sectors(sectors), SimDuration(by)),
            _ => return refused("it is of no fault that this version knows".into()),
        }
        Ok(())
    }

    /// Appends the records of all there is.
    pub fn checkpoint(&self, notes: &mut Vec<Note>) {
        notes.extend(self.unreadable().map(|(lba, sectors)| unreadable(lba, sectors, true)));
        notes.extend(self.slow.iter().map(|(lba, sectors, by)| slow(lba, sectors, by)));
    }

    /// The records that undo all there is.
    pub(super) fn undone(&self) -> Vec<Note> {
        let readable = self.unreadable().map(|(lba, sectors)| unreadable(lba, sectors, false));
        readable.chain(self.slow.iter().map(|(lba, sectors, _)| slow(lba, sectors, SimDuration::ZERO))).collect()
    }

    /// `sectors` from `lba` on were written: the record of it, if any of them was unreadable.
    pub(crate) fn written(&self, lba: Lba, sectors: Sectors) -> Option<Note> {
        let is_hit = !self.unreadable.is_empty() && self.unreadable.first_overlap(lba.0, sectors.0).is_some();
        is_hit.then(|| unreadable(lba, sectors, false))
    }

    /// Whether any of `sectors` from `lba` on is unreadable.
    pub fn is_unreadable(&self, lba: Lba, sectors: Sectors) -> bool {
        self.first_unreadable(lba, sectors, |_, _| false).is_some()
    }

    /// The first unreadable one of `sectors` from `lba` on, but for those that `is_spared(start, end)`.
    pub fn first_unreadable(&self, lba: Lba, sectors: Sectors, is_spared: impl Fn(u64, u64) -> bool) -> Option<Lba> {
        if self.unreadable.is_empty() {
            return None;
        }
        let mut first = None;
        self.unreadable.cover(lba.0, sectors.0, |start, length, found| {
            if found.is_some() && first.is_none() && !is_spared(start, start + length) {
                first = (start..start + length).find(|&sector| !is_spared(sector, sector + 1)).map(Lba);
            }
        });
        first
    }

    /// The runs of unreadable sectors, in order.
    pub fn unreadable(&self) -> impl Iterator<Item = (Lba, Sectors)> + '_ {
        self.unreadable.iter().map(|(start, length, ())| (Lba(start), Sectors(length)))
    }

    /// The slow sectors.
    pub fn slow(&self) -> &Slow {
        &self.slow
    }
}
