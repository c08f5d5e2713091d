//! Lost logical sectors: reads of such a sector fail until it is written. The repair of a damaged image creates them.
//! Injected faults are kept separately ([`crate::faults`]), because they can be cleared.
//!
//! Lost sectors are recorded by LBA, independent of physical places. So the drive can move, merge and clean the data
//! around them.
//!
//! Invariants:
//! 1. Runs are disjoint and non-empty, and no two runs are adjacent.
//! 2. A run is in the journal before other contents can be read in its place. A run is removed only after the data
//!    written in its place is durable.

use std::collections::BTreeMap;

use imbrex_disk::{Lba, Sectors};
use imbrex_layer::{Note, ReplayError};

use crate::image::journal::STORE_TAGS;

/// Tag of the journal note that marks a run of sectors (LBA, count) as lost.
pub const NOTE_LOST: u8 = STORE_TAGS + 8;
/// Tag of the journal note that ends the loss of a run of sectors (LBA, count), because the run was written.
pub const NOTE_FOUND: u8 = STORE_TAGS + 9;

/// A set of lost logical sectors of a drive, kept as runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lost {
    /// End of each run, by its start.
    runs: BTreeMap<u64, u64>,
}

impl Lost {
    /// Returns whether no sector is lost.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the runs of lost sectors in ascending order: first LBA and length. Adjacent lost sectors are one run.
    pub fn runs(&self) -> impl Iterator<Item = (Lba, Sectors)> + '_ {
        self.runs.iter().map(|(&start, &end)| (Lba(start), Sectors(end - start)))
    }

    /// Returns the first lost sector among the `sectors` sectors from `lba` on, or `None` if none is lost or `sectors`
    /// is 0.
    pub fn first(&self, lba: Lba, sectors: Sectors) -> Option<Lba> {
        let (start, end) = (lba.0, lba.0 + sectors.0);
        let before = self.runs.range(..=start).next_back().filter(|&(_, &run_end)| run_end > start && start < end);
        match before {
            Some(_) => Some(lba),
            None => self.runs.range(start..end).next().map(|(&found, _)| Lba(found)),
        }
    }

    /// Marks the `sectors` sectors from `lba` on as lost. Some of them may be lost already; 0 sectors change nothing.
    pub fn insert(&mut self, lba: Lba, sectors: Sectors) {
        let (mut start, mut end) = (lba.0, lba.0 + sectors.0);
        while let Some((&first, &last)) = self.runs.range(..=end).next_back().filter(|&(_, &last)| last >= start) {
            self.runs.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        if start < end {
            self.runs.insert(start, end);
        }
    }

    /// Marks the `sectors` sectors from `lba` on as no longer lost. Sectors that are not lost stay as they are; 0
    /// sectors change nothing.
    pub fn remove(&mut self, lba: Lba, sectors: Sectors) {
        let (start, end) = (lba.0, lba.0 + sectors.0);
        if start == end {
            return;
        }
        while let Some((&first, &last)) = self.runs.range(..end).next_back().filter(|&(_, &last)| last > start) {
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

    /// Returns a new set of the sectors that are lost in this set and not in `others`. This set stays unchanged.
    pub fn less(&self, others: &Lost) -> Lost {
        let mut rest = self.clone();
        others.runs().for_each(|(lba, sectors)| rest.remove(lba, sectors));
        rest
    }

    /// Returns whether `note` is a journal note about lost sectors, by its tag.
    pub fn owns(note: &Note) -> bool {
        matches!(note.tag, NOTE_LOST | NOTE_FOUND)
    }

    /// Returns a description of the journal note `note` and the names of its two fields, for printing, or `None` if the
    /// note is not about lost sectors.
    pub fn words(note: &Note) -> Option<(&'static str, [&'static str; 2])> {
        match note.tag {
            NOTE_LOST => Some(("lost by damage until it is written", ["lba", "sectors"])),
            NOTE_FOUND => Some(("written, and lost no longer", ["lba", "sectors"])),
            _ => None,
        }
    }

    /// Returns the first lost sector among the `sectors` sectors from `lba` on for which `is_spared(sector, sector +
    /// 1)` returns false, or `None` if there is none. The caller spares, for example, sectors that a cache holds.
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

    /// Applies a journal note about lost sectors: adds the sectors to this set or removes them from it.
    ///
    /// # Errors
    /// The note has another tag, or the end of its sectors overflows a 64-bit LBA.
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

    /// Appends to `notes` one journal note for each run of lost sectors. Replaying these notes rebuilds this set.
    pub fn checkpoint(&self, notes: &mut Vec<Note>) {
        notes.extend(self.runs().map(|(lba, sectors)| Note::new(NOTE_LOST, &[lba.0, sectors.0])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lost(runs: &[(u64, u64)]) -> Lost {
        let mut lost = Lost::default();
        runs.iter().for_each(|&(lba, sectors)| lost.insert(Lba(lba), Sectors(sectors)));
        lost
    }

    #[test]
    fn there_are_none_until_some_are_lost() {
        assert!(Lost::default().is_empty());
        let mut some = lost(&[(5, 2)]);
        assert!(!some.is_empty());
        some.remove(Lba(5), Sectors(2));
        assert!(some.is_empty());
    }

    #[test]
    fn the_others_are_taken_away() {
        let rest = lost(&[(0, 10), (20, 5), (40, 1)]).less(&lost(&[(3, 2), (18, 4), (40, 1)]));
        assert_eq!(rest, lost(&[(0, 3), (5, 5), (22, 3)]));
    }

    #[test]
    fn what_is_spared_is_passed_over() {
        let some = lost(&[(5, 3), (20, 2)]);
        let first = |from: u64, sectors: u64, spared: std::ops::Range<u64>| {
            some.first_unspared(Lba(from), Sectors(sectors), |start, end| {
                assert_eq!(end, start + 1, "it is asked of one sector");
                spared.contains(&start)
            })
        };
        assert_eq!(first(0, 30, 0..0), Some(Lba(5)));
        assert_eq!(first(0, 30, 5..6), Some(Lba(6)));
        assert_eq!(first(0, 30, 5..8), Some(Lba(20)), "the next run");
        assert_eq!(first(0, 20, 5..8), None, "the next run begins behind the sectors asked for");
        assert_eq!(first(0, 30, 0..30), None);
        assert_eq!(first(7, 1, 0..7), Some(Lba(7)));
        assert_eq!(first(0, 7, 5..7), None, "the run continues behind the sectors asked for");
        assert_eq!(first(8, 12, 0..0), None);
    }

    /// Images on disks contain these tags, so they must never change.
    #[test]
    fn records_are_known_by_their_tags() {
        assert_eq!((NOTE_LOST, NOTE_FOUND), (248, 249));
        let taken = |tag: u8, fields: [u64; 2]| {
            let mut some = lost(&[(5, 3)]);
            some.replay(&Note::new(tag, &fields)).map(|()| some)
        };
        assert_eq!(taken(248, [8, 2]).expect("it is ours"), lost(&[(5, 5)]));
        assert_eq!(taken(249, [5, 1]).expect("it is ours"), lost(&[(6, 2)]));
        assert!(taken(250, [5, 1]).is_err(), "not ours");
        assert!(taken(248, [u64::MAX, 1]).is_err(), "past the end of all drives");
        for tag in [247, 248, 249, 250] {
            let note = Note::new(tag, &[1, 2]);
            assert_eq!(Lost::owns(&note), tag == 248 || tag == 249, "tag {tag}");
            assert_eq!(Lost::words(&note).is_some(), Lost::owns(&note), "tag {tag}");
        }
        let (what, fields) = Lost::words(&Note::new(248, &[1, 2])).expect("it is ours");
        assert!(what.contains("until it is written") && fields == ["lba", "sectors"], "{what}: {fields:?}");
        let (what, fields) = Lost::words(&Note::new(249, &[1, 2])).expect("it is ours");
        assert!(what.contains("lost no longer") && fields == ["lba", "sectors"], "{what}: {fields:?}");
    }

    proptest! {
        /// Compares with an array of one flag per sector, and checks that the notes of a checkpoint rebuild the set.
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
