//! Contents of a recovered file. The records of a file describe it at several moments. The newest moment of which every
//! block was found is recovered.

use std::collections::BTreeMap;

use super::{Found, Versions};
use crate::device::BLOCK_BYTES;
use crate::format::change::Extent;
use crate::format::record::FileRecord;

/// A file as it is recovered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Contents {
    /// Record as of which the file is recovered: the newest of which every block was found, or else the newest one.
    pub record: FileRecord,
    /// Extents of the blocks of the file that were found, in the order of the file's blocks.
    pub extents: Vec<Extent>,
    /// Number of blocks of 4 KiB of the file, as of `record`, that were not found.
    pub missing_blocks: u64,
    /// Number of blocks of 4 KiB of the file, as of its newest record, that were not found; 0 if `record` is the newest
    /// one.
    pub newer_missing_blocks: u64,
}

/// Returns the contents of a file at the newest moment of which every block was found. If there is none, the newest
/// moment is used, with missing blocks.
pub(super) fn of(versions: &Versions) -> Contents {
    let mut runs = versions.runs.clone();
    // The newest first. Any one of several copies will do.
    runs.sort_unstable_by_key(|run| (std::cmp::Reverse(run.sequence), run.at, run.start));
    let mut newest: Option<Contents> = None;
    for record in versions.records.values().rev() {
        let mut found = at(record, &runs);
        if found.missing_blocks == 0 {
            found.newer_missing_blocks = newest.map_or(0, |newest| newest.missing_blocks);
            return found;
        }
        newest.get_or_insert(found);
    }
    newest.expect("a file that was found has a record")
}

/// Returns the contents of a file as of `record`.
fn at(record: &FileRecord, runs: &[Found]) -> Contents {
    let mut wanted = Wanted::of(record);
    let is_meant =
        |run: &&Found| run.sequence == record.sequence || (run.sequence < record.sequence && !record.is_whole);
    let mut extents = Vec::new();
    for run in runs.iter().filter(is_meant) {
        wanted.take(run, &mut extents);
    }
    extents.sort_unstable_by_key(|extent: &Extent| extent.at);
    let missing_blocks = if record.ranges.is_some() { wanted.blocks() } else { 0 };
    Contents { record: record.clone(), extents, missing_blocks, newer_missing_blocks: 0 }
}

/// Blocks of a file that are still to be found: runs as a map from first block to the block behind the run.
struct Wanted(BTreeMap<u64, u64>);

impl Wanted {
    fn of(record: &FileRecord) -> Wanted {
        // If the record does not list the holes, every block up to the end of the file is accepted.
        let all = vec![(0, u32::try_from(record.size.div_ceil(BLOCK_BYTES as u64)).unwrap_or(u32::MAX))];
        let ranges = record.ranges.as_ref().unwrap_or(&all).iter();
        Wanted(
            ranges
                .filter(|(_, blocks)| *blocks > 0)
                .map(|(at, blocks)| (u64::from(*at), u64::from(*at) + u64::from(*blocks)))
                .collect(),
        )
    }

    fn blocks(&self) -> u64 {
        self.0.iter().map(|(first, end)| end - first).sum()
    }

    /// Adds extents for the blocks of `run` that are still to be found, and removes the blocks from the set.
    fn take(&mut self, run: &Found, extents: &mut Vec<Extent>) {
        let (from, to) = (u64::from(run.at), u64::from(run.at) + u64::from(run.blocks));
        let before = self.0.range(..from).next_back().map(|(first, end)| (*first, *end));
        let within = self.0.range(from..to).map(|(first, end)| (*first, *end));
        let met: Vec<(u64, u64)> = before.into_iter().chain(within).filter(|(_, end)| *end > from).collect();
        for (first, end) in met {
            self.0.remove(&first);
            let (start, stop) = (first.max(from), end.min(to));
            self.0.extend((first < start).then_some((first, start)));
            self.0.extend((stop < end).then_some((stop, end)));
            extents.push(Extent { at: start as u32, blocks: (stop - start) as u32, start: run.start + start - from });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(sequence: u64, is_whole: bool, ranges: Option<Vec<(u32, u32)>>, blocks: u64) -> FileRecord {
        FileRecord {
            inode: 5,
            generation: 0,
            sequence,
            parent: 1,
            name: Box::default(),
            mode: 0o100_644,
            uid: 0,
            gid: 0,
            size: blocks * BLOCK_BYTES as u64,
            modified_ns: 0,
            is_whole,
            ranges,
        }
    }

    fn found(records: Vec<FileRecord>, runs: &[(u64, u32, u32, u64)]) -> Contents {
        let runs = runs.iter().map(|&(sequence, at, blocks, start)| Found { sequence, at, blocks, start }).collect();
        of(&Versions { records: records.into_iter().map(|record| (record.sequence, record)).collect(), runs })
    }

    fn places(contents: &Contents) -> Vec<(u32, u32, u64)> {
        contents.extents.iter().map(|extent| (extent.at, extent.blocks, extent.start)).collect()
    }

    #[test]
    fn the_newest_block_of_each_place_is_taken_and_holes_stay_holes() {
        let newest = record(8, false, Some(vec![(0, 4), (6, 2)]), 8);
        let contents = found(
            vec![record(2, true, Some(vec![(0, 8)]), 8), newest],
            &[(2, 0, 8, 100), (8, 1, 2, 200), (8, 7, 1, 300)],
        );
        assert_eq!(places(&contents), [(0, 1, 100), (1, 2, 200), (3, 1, 103), (6, 1, 106), (7, 1, 300)]);
        assert_eq!((contents.record.sequence, contents.missing_blocks, contents.newer_missing_blocks), (8, 0, 0));
    }

    #[test]
    fn a_write_of_all_of_it_that_was_not_finished_leaves_what_was_before() {
        let records = || vec![record(2, true, Some(vec![(0, 4)]), 4), record(8, true, Some(vec![(0, 4)]), 4)];
        let contents = found(records(), &[(2, 0, 4, 100), (8, 0, 2, 200)]);
        assert_eq!((places(&contents), contents.newer_missing_blocks), (vec![(0, 4, 100)], 2));
        let contents = found(records(), &[(2, 0, 3, 100), (8, 0, 2, 200)]);
        assert_eq!((places(&contents), contents.missing_blocks), (vec![(0, 2, 200)], 2), "no two times are mixed");
    }

    #[test]
    fn copies_stand_for_what_they_are_copies_of() {
        let records = vec![record(2, true, Some(vec![(0, 4)]), 4), record(6, false, Some(vec![(0, 4)]), 4)];
        let contents = found(records, &[(2, 2, 2, 102), (6, 0, 2, 50)]);
        assert_eq!((places(&contents), contents.record.sequence), (vec![(0, 2, 50), (2, 2, 102)], 6));
    }

    #[test]
    fn where_holes_are_not_told_what_lies_there_counts_up_to_the_end() {
        let contents = found(vec![record(2, false, None, 3)], &[(2, 0, 1, 10), (1, 2, 5, 20)]);
        assert_eq!(places(&contents), [(0, 1, 10), (2, 1, 20)]);
        assert_eq!(contents.missing_blocks, 0);
    }
}
