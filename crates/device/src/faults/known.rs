//! The injected faults of a drive, and their journal records. Tags from 240 on belong to the store; no layer uses
//! them.
//!
//! Journal records:
//! - 240 {lba, sectors, 1 or 0}: the sectors are unreadable (1), or readable again (0) because they were written or
//!   the fault was cleared.
//! - 241 {lba, sectors, nanoseconds}: a command that touches the sectors takes this much longer; 0 clears the fault.
//!
//! A later record overlays an earlier one. A checkpoint has one record for each run.
//!
//! Invariants:
//! 1. The record that makes a sector readable again follows the bytes written to the sector. A power cut between the
//!    two leaves the sector unreadable, and never shows older bytes. A flush covers both.

use imbrex_disk::{Lba, Sectors, SimDuration};
use imbrex_layer::map::run_map::RunMap;
use imbrex_layer::{Note, ReplayError};
use imbrex_sim::Slow;

use crate::image::journal::STORE_TAGS;

/// Longest time by which an injected fault may slow a command that touches its sectors, in simulated time: one hour.
pub const SLOW_MAX: SimDuration = SimDuration::from_secs(3600);
const TAG_UNREADABLE: u8 = STORE_TAGS;
const TAG_SLOW: u8 = STORE_TAGS + 1;

/// Returns the record that makes sectors unreadable, or readable again.
pub(super) fn unreadable(lba: Lba, sectors: Sectors, is_unreadable: bool) -> Note {
    Note::new(TAG_UNREADABLE, &[lba.0, sectors.0, u64::from(is_unreadable)])
}

/// Returns the record that makes sectors slow by `by`; zero restores their normal speed.
pub(super) fn slow(lba: Lba, sectors: Sectors, by: SimDuration) -> Note {
    Note::new(TAG_SLOW, &[lba.0, sectors.0, by.0])
}

/// The injected faults of a drive that affect sectors: unreadable and slow sectors. Faults of zones are stored with the
/// zones.
#[derive(Clone, Debug, Default)]
pub struct Known {
    unreadable: RunMap<()>,
    slow: Slow,
}

impl Known {
    /// Returns whether `note` is a journal record of injected faults of sectors (unreadable or slow ones), by its tag.
    /// Faults of zones have other records.
    pub fn owns(note: &Note) -> bool {
        matches!(note.tag, TAG_UNREADABLE | TAG_SLOW)
    }

    /// Returns a description of the journal record `note` and the names of its three fields, for printing. Returns
    /// `None` if it is no record of unreadable or slow sectors.
    pub fn words(note: &Note) -> Option<(&'static str, [&'static str; 3])> {
        match note.tag {
            TAG_UNREADABLE => Some(("unreadable until it is written", ["lba", "sectors", "is_unreadable"])),
            TAG_SLOW => Some(("slow", ["lba", "sectors", "by_ns"])),
            _ => None,
        }
    }

    /// Applies the journal record `note` to this set of unreadable and slow sectors: adds a fault or clears one.
    /// `capacity` is the size of the drive.
    ///
    /// # Errors
    /// The record covers no sectors or sectors past the end of the drive, or has an unknown tag or value.
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
            _ => return refused("this version does not know the fault".into()),
        }
        Ok(())
    }

    /// Appends to `notes` one journal record for each run of unreadable sectors and each run of slow sectors. Replaying
    /// these records rebuilds the faults.
    pub fn checkpoint(&self, notes: &mut Vec<Note>) {
        notes.extend(self.unreadable().map(|(lba, sectors)| unreadable(lba, sectors, true)));
        notes.extend(self.slow.iter().map(|(lba, sectors, by)| slow(lba, sectors, by)));
    }

    /// Returns the records that clear all of these faults.
    pub(super) fn undone(&self) -> Vec<Note> {
        let readable = self.unreadable().map(|(lba, sectors)| unreadable(lba, sectors, false));
        readable.chain(self.slow.iter().map(|(lba, sectors, _)| slow(lba, sectors, SimDuration::ZERO))).collect()
    }

    /// Returns the record that makes `sectors` from `lba` on readable after a write, or `None` if none of them was
    /// unreadable.
    pub(crate) fn written(&self, lba: Lba, sectors: Sectors) -> Option<Note> {
        let is_hit = !self.unreadable.is_empty() && self.unreadable.first_overlap(lba.0, sectors.0).is_some();
        is_hit.then(|| unreadable(lba, sectors, false))
    }

    /// Returns whether an injected fault makes any of the `sectors` sectors from `lba` on unreadable.
    pub fn is_unreadable(&self, lba: Lba, sectors: Sectors) -> bool {
        self.first_unreadable(lba, sectors, |_, _| false).is_some()
    }

    /// Returns the first unreadable sector among the `sectors` sectors from `lba` on for which `is_spared(sector,
    /// sector + 1)` returns false, or `None` if there is none. `is_spared(start, end)` tells whether all sectors of the
    /// range are spared, for example because a cache holds them.
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

    /// Returns the runs of unreadable sectors in ascending order: first LBA and length.
    pub fn unreadable(&self) -> impl Iterator<Item = (Lba, Sectors)> + '_ {
        self.unreadable.iter().map(|(start, length, ())| (Lba(start), Sectors(length)))
    }

    /// Returns the slow sectors. Each run has the simulated time by which a command that touches it takes longer.
    pub fn slow(&self) -> &Slow {
        &self.slow
    }
}
