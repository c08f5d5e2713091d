//! Logical sectors that are lost: reading them is an error until they are written. Damage to the image becomes such
//! sectors when it is repaired. Faults that somebody asks for are others ([`crate::faults`]), for those can be cleared.
//!
//! They are kept by logical sector, apart from where those lie: the drive can move, merge and clean what is around them.
//!
//! Invariants:
//! 1. Runs are disjoint, non-empty, and do not touch.
//! 2. A run is in the journal before anything else may be read in its place, and leaves it only after what was written in
//!    its place is durable.

use std::collections::BTreeMap;

use imbrex_disk::{Lba, Sectors};
use imbrex_layer::{Note, ReplayError};

use crate::image::journal::STORE_TAGS;

/// These sectors are lost.
pub const NOTE_LOST: u8 = STORE_TAGS + 8;
/// These sectors were written, and are lost no longer.
pub const NOTE_FOUND: u8 = STORE_TAGS + 9;

/// The lost sectors of a drive.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lost {
    /// End by start.
    runs: BTreeMap<u64, u64>,
}

impl Lost {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The runs, in order.
    pub fn runs(&self) -> impl Iterator<Item = (Lba, Sectors)> + '_ {
        self.runs.iter().map(|(&start, &end)| (Lba(start), Sectors(end - start)))
    }

    /// The first lost one of `sectors` from `lba` on.
    pub fn first(&self, lba: Lba, sectors: Sectors) -> Option<Lba> {
        let (start, end) = (lba.0, lba.0 + sectors.0);
        let before = self.runs.range(..=start).next_back().filter(|(_, &run_end)| run_end > start);
        match before {
            Some(_) => Some(lba),
            None => self.runs.range(start..end).next().map(|(&found, _)| Lba(found)),
        }
    }

    /// These are lost.
    pub fn insert(&mut self, lba: Lba, sectors: Sectors) {
        let (mut start, mut end) = (lba.0, lba.0 + sectors.0);
        while let Some((&first, &last)) = self.runs.range(..=end).next_back().filter(|(_, &last)| last >= start) {
            self.runs.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        if start < end {
            self.runs.insert(start, end);
        }
    }

    /// These are not.
    pub fn remove(&mut self, lba: Lba, sectors: Sectors) {
        let (start, end) = (lba.0, lba.0 + sectors.0);
        if start == end {
            return;
        }
        while let Some((&first, &last)) = self.runs.range(..end).next_back().filter(|(_, &last)| last > start) {
            self.runs.remove(&first);
            if first < start {
                self.runs.insert(first, start);
            }
            if last > end {
                self.runs.insert(end, last);
            }
            if first < start {
                break;
            }
        }
    }

    /// Those of them that `others` are not.
    pub fn less(&self, others: &Lost) -> Lost {
        let mut rest = self.clone();
        others.runs().for_each(|(lba, sectors)| rest.remove(lba, sectors));
        rest
    }

    /// Whether `note` speaks of lost sectors.
    pub fn owns(note: &Note) -> bool {
        matches!(note.tag, NOTE_LOST | NOTE_FOUND)
    }

    /// What a record is, and the names of its operands, for who prints it.
    pub fn words(note: &Note) -> Option<(&'static str, [&'static str; 2])> {
        match note.tag {
            NOTE_LOST => Some(("lost by damage until it is written", ["lba", "sectors"])),
            NOTE_FOUND => Some(("written, and lost no longer", ["lba", "sectors"])),
            _ => None,
        }
    }

    /// The first lost one of `sectors` from `lba` on, but for those that `is_spared(start, end)`.
    pub fn first_unspared(&self, lba: Lba, sectors: Sectors, is_spared: impl Fn(u64, u64) -> bool) -> Option<Lba> {
        let end = lba + sectors;
        let mut next = lba;
        while let Some(found) = self.first(next, end - next) {
            if !is_spared(found.0, found.0 + 1) {
                return Some(found);
            }
            next = found + Sectors(1);
        }
        None
    }

    /// Takes a record of lost sectors.
    pub fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        let [lba, sectors, ..] = note.fields;
        if lba.checked_add(sectors).is_none() {
            return Err(ReplayError { note: *note, reason: "sectors past the end of all drives".into() });
        }
        match note.tag {
            NOTE_LOST => self.insert(Lba(lba), Sectors(sectors)),
            NOTE_FOUND => self.remove(Lba(lba), Sectors(sectors)),
            _ => return Err(ReplayError { note: *note, reason: "this program does not know such records".into() }),
        }
        Ok(())
    }

    /// Appends the records that say the same.
    pub fn checkpoint(&self, notes: &mut Vec<Note>) {
        notes.extend(self.runs().map(|(lba, sectors)| Note::new(NOTE_LOST, &[lba.0, sectors.0])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a flag a sector; what a checkpoint says is the same.
        #[test]
        fn is_as_a_flag_a_sector(acts in prop::collection::vec((0u64..60, 0u64..20, any::<bool>()), 1..40)) {
            let (mut lost, mut naive) = (Lost::default(), [false; 80]);
            for (lba, sectors, is_lost) in acts {
                let act = if is_lost { Lost::insert } else { Lost::remove };
                act(&mut lost, Lba(lba), Sectors(sectors));
                naive[lba as usize..(lba + sectors) as usize].fill(is_lost);
                for start in 0..80u64 {
                    for length in [1, 7] {
                        let expected = (start..(start + length).min(80)).find(|&lba| naive[lba as usize]);
                        prop_assert_eq!(lost.first(Lba(start), Sectors(length)), expected.map(Lba));
                    }
                }
                let mut previous_end = None;
                for (lba, sectors) in lost.runs() {
                    prop_assert!(sectors.0 > 0 && previous_end.is_none_or(|end| lba.0 > end));
                    previous_end = Some(lba.0 + sectors.0);
                }
            }
            let (mut notes, mut again) = (Vec::new(), Lost::default());
            lost.checkpoint(&mut notes);
            notes.iter().for_each(|note| again.replay(note).expect("it is ours"));
            prop_assert_eq!(lost, again);
        }
    }
}
