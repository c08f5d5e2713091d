//! The files of a log at a position, as a disk may hold them. Every block has a durable version and the versions
//! written since. A power cut may leave any of them.
//!
//! ```text
//!   durable ── written ── written ── written      a cut leaves any one of the four
//!                                    └─ synced: this one is durable, those before are older versions
//! ```
//!
//! Blocks are those of the host's disk: a write of several blocks can be torn between any two of them. Lengths and
//! names have versions as well. As in POSIX, a sync of the file makes its length durable, and a sync of the folder
//! makes a name durable.
//!
//! After a failed sync the kernel treats the pages as clean. Their contents may or may not be on the disk. No later
//! sync makes them durable until the block is written again.
//!
//! Invariants:
//! 1. With the latest version of every unit, a cut gives the files as the host saw them.
//! 2. With the durable version of every unit, a cut gives exactly the synced contents.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::fault::{Done, Fault};
use crate::log::{Disk, Event, FileId, Log};
use crate::sparse::Sparse;
use crate::survival::{Survival, Unit};
use crate::versions::{State, Version, read_block};

/// A log replayed up to a position: for every block, length and name, the durable version and the later ones.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    log: &'a Log,
    block_bytes: u64,
    position: usize,
    files: BTreeMap<FileId, State>,
    /// The files as the host sees them.
    now: Disk,
    names: BTreeMap<String, FileId>,
    /// Changes of names that are not durable, oldest first.
    changes: Vec<Vec<(String, Option<FileId>)>>,
}

impl<'a> Replay<'a> {
    /// Returns a replay at position 0, before the first event of `log`. The disk writes aligned blocks of `block_bytes`
    /// bytes atomically.
    pub fn new(log: &'a Log, block_bytes: u64) -> Replay<'a> {
        let state = |durable: &Sparse| State { durable: durable.clone(), ..State::default() };
        Replay {
            log,
            block_bytes,
            position: 0,
            files: log.first.files.iter().map(|(&file, contents)| (file, state(contents))).collect(),
            now: log.first.clone(),
            names: log.first.names.clone(),
            changes: Vec::new(),
        }
    }

    /// Returns the current position of the replay: the number of events of the log that were replayed.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Replays the log up to `position`, which counts events from the start of the log.
    ///
    /// # Panics
    /// If `position` lies before the current position or past the end of the log.
    pub fn advance(&mut self, position: usize) {
        assert!(self.position <= position && position <= self.log.entries.len(), "{} to {position}", self.position);
        let log = self.log;
        while self.position < position {
            self.event(&log.entries[self.position].event);
            self.position += 1;
        }
    }

    fn event(&mut self, event: &Event) {
        let block_bytes = self.block_bytes;
        match event {
            Event::Write { file, offset, bytes, is_durable } => {
                let range = *offset..offset + bytes.len() as u64;
                self.change(event, *file, range.clone());
                if *is_durable {
                    let state = self.state(*file);
                    state.sync(Some(range), block_bytes);
                    state.lens.pop().into_iter().for_each(|len| state.durable.set_len(len));
                    state.lens.clear();
                }
            }
            Event::Zero { file, range } => self.change(event, *file, range.clone()),
            Event::Resize { file, len } => {
                let old = self.now.files.get(file).map_or(0, Sparse::len);
                self.change(event, *file, *len..old.max(*len));
            }
            Event::Names { changes } => {
                self.now.apply(event);
                self.changes.push(changes.clone());
            }
            Event::Sync { file, range, has_failed: false } => self.state(*file).sync(range.clone(), block_bytes),
            Event::Sync { file, range, has_failed: true } => self.state(*file).fail_sync(range.clone(), block_bytes),
            Event::SyncNames { folder } => self.sync_names(folder),
            Event::SyncAll => {
                self.files.values_mut().for_each(|state| state.sync(None, block_bytes));
                self.names = self.now.names.clone();
                self.changes.clear();
            }
            Event::Sent { .. } => {}
        }
    }

    fn state(&mut self, file: FileId) -> &mut State {
        self.files.entry(file).or_default()
    }

    /// Applies an event that changes bytes of `range` and perhaps the length. Each block changed gets one more version.
    fn change(&mut self, event: &Event, file: FileId, range: Range<u64>) {
        let block_bytes = self.block_bytes;
        let blocks_of = |range: Range<u64>| range.start / block_bytes..range.end.div_ceil(block_bytes);
        let before = self.now.files.get(&file);
        let len_before = before.map_or(0, Sparse::len);
        // A hole that stays zeros has no block on the disk. A write allocates blocks even for zeros.
        let blocks: BTreeSet<u64> = match (event, before) {
            (Event::Write { .. }, _) => blocks_of(range).collect(),
            (_, Some(before)) => before.stored(range).flat_map(blocks_of).collect(),
            (_, None) => BTreeSet::new(),
        };
        self.now.apply(event);
        let (after, position) = (&self.now.files[&file], self.position);
        let state = self.files.entry(file).or_default();
        if len_before != after.len() {
            state.lens.push(after.len());
        }
        for block in blocks {
            let bytes = read_block(after, block, block_bytes);
            let pending = state.pending.entry(block).or_default();
            pending.is_clean = false;
            pending.versions.push(Version { bytes, position });
        }
    }

    fn sync_names(&mut self, folder: &str) {
        let lies_in = |name: &str| name.rsplit_once('/').map_or("", |(parent, _)| parent) == folder;
        let (settled, left) = std::mem::take(&mut self.changes)
            .into_iter()
            .partition::<Vec<_>, _>(|changes| changes.iter().all(|(name, _)| lies_in(name)));
        self.changes = left;
        for (name, file) in settled.into_iter().flatten() {
            rename(&mut self.names, &name, file);
        }
    }

    /// Returns every unit that has versions later than its durable one, and the number of these versions. The order:
    /// for each file in order of its number, its blocks in ascending order and then its length; then the changes of
    /// names, oldest first.
    pub fn pending(&self) -> Vec<(Unit, usize)> {
        let mut units = Vec::new();
        for (&file, state) in &self.files {
            units.extend(
                state.pending.iter().map(|(&block, pending)| (Unit::Block(file, block), pending.versions.len())),
            );
            if !state.lens.is_empty() {
                units.push((Unit::Len(file), state.lens.len()));
            }
        }
        units.extend((0..self.changes.len()).map(|index| (Unit::Names(index), 1)));
        units
    }

    /// Returns the files that a power cut at this position may leave. `survival` picks a version of every block, length
    /// and change of names; `fault` adds a fault of the disk. Also returns a description of the fault, or `None` if no
    /// fault was given or no place was found for it. The replay itself is unchanged.
    pub fn cut(&self, survival: Survival, fault: Option<Fault>) -> (Disk, Option<Done>) {
        let units = self.pending();
        let picked = survival.pick(&units);
        let mut disk = Disk { names: self.names.clone(), ..Disk::default() };
        for (&file, state) in &self.files {
            disk.files.insert(file, state.durable.clone());
        }
        let done = fault.and_then(|fault| fault.apply(&self.files, self.block_bytes, &mut disk));
        for (&(unit, _), &version) in units.iter().zip(&picked) {
            if version == 0 {
                continue;
            }
            match unit {
                Unit::Block(file, block) => {
                    let bytes = &self.files[&file].pending[&block].versions[version - 1].bytes;
                    disk.files.get_mut(&file).expect("all are there").write(block * self.block_bytes, bytes);
                }
                Unit::Names(index) => {
                    self.changes[index].iter().for_each(|(name, file)| rename(&mut disk.names, name, *file));
                }
                Unit::Len(_) => {}
            }
        }
        // A block past the end of its file is lost, even if it was written.
        let lens: BTreeMap<FileId, usize> = units
            .iter()
            .zip(&picked)
            .filter_map(|(&(unit, _), &version)| match unit {
                Unit::Len(file) if version > 0 => Some((file, version)),
                _ => None,
            })
            .collect();
        for (file, state) in &self.files {
            let len = lens.get(file).map_or(state.durable.len(), |&version| state.lens[version - 1]);
            disk.files.get_mut(file).expect("all are there").set_len(len);
        }
        (disk, done)
    }
}

fn rename(names: &mut BTreeMap<String, FileId>, name: &str, file: Option<FileId>) {
    match file {
        Some(file) => names.insert(name.into(), file),
        None => names.remove(name),
    };
}

#[cfg(test)]
mod tests {
    //! Goal: a cut leaves only contents that a disk may leave, and can leave each of them. Method: small logs whose
    //! outcomes are counted by hand.

    use super::*;
    use crate::log::Entry;

    const BLOCK: u64 = 512;

    fn log(events: Vec<Event>) -> Log {
        let mut first = Disk::default();
        first.rename("file", Some(0));
        first.files.get_mut(&0).unwrap().set_len(4 * BLOCK);
        Log { first, entries: events.into_iter().map(|event| Entry { call: "test", event }).collect() }
    }

    fn write(block: u64, blocks: u64, byte: u8) -> Event {
        let bytes = vec![byte; (blocks * BLOCK) as usize].into();
        Event::Write { file: 0, offset: block * BLOCK, bytes, is_durable: false }
    }

    fn sync(has_failed: bool) -> Event {
        Event::Sync { file: 0, range: None, has_failed }
    }

    /// Returns the first byte of each of the first four blocks.
    fn seen(disk: &Disk) -> Vec<u8> {
        let contents = disk.named("file").unwrap();
        (0..4).map(|block| read_block(contents, block, BLOCK)[0]).collect()
    }

    /// Returns all outcomes of random cuts at the end of `log`.
    fn outcomes(log: &Log) -> BTreeSet<Vec<u8>> {
        let mut replay = Replay::new(log, BLOCK);
        replay.advance(log.entries.len());
        (0..400).map(|seed| seen(&replay.cut(Survival::Random { seed, share: 2 }, None).0)).collect()
    }

    #[test]
    fn any_block_of_what_was_not_synced_may_be_there() {
        let log = log(vec![write(0, 2, 1), sync(false), write(1, 2, 2)]);
        let expected: BTreeSet<_> = [[1, 1, 0, 0], [1, 2, 0, 0], [1, 1, 2, 0], [1, 2, 2, 0]].map(Vec::from).into();
        assert_eq!(outcomes(&log), expected);
    }

    #[test]
    fn each_version_of_a_block_may_be_there() {
        let log = log(vec![write(0, 1, 1), write(0, 1, 2), write(0, 1, 3)]);
        assert_eq!(outcomes(&log), (0..4).map(|byte| vec![byte, 0, 0, 0]).collect());
    }

    #[test]
    fn what_a_failed_sync_covered_stays_in_doubt_until_it_is_written_again() {
        let events = vec![write(0, 2, 1), sync(true), write(1, 1, 2), sync(false)];
        assert_eq!(outcomes(&log(events)), [[0, 2, 0, 0], [1, 2, 0, 0]].map(Vec::from).into());
    }

    #[test]
    fn a_length_is_old_or_new_and_missing_data_are_zeros() {
        let log = log(vec![write(4, 1, 7)]);
        let mut replay = Replay::new(&log, BLOCK);
        replay.advance(1);
        let lens: BTreeSet<_> = (0..100)
            .map(|seed| {
                let (disk, _) = replay.cut(Survival::Random { seed, share: 2 }, None);
                let contents = disk.named("file").unwrap();
                (contents.len(), read_block(contents, 4, BLOCK)[0])
            })
            .collect();
        assert_eq!(lens, [(4 * BLOCK, 0), (5 * BLOCK, 0), (5 * BLOCK, 7)].into());
    }

    #[test]
    fn a_rename_is_there_or_not_until_its_folder_is_synced() {
        let mut events = vec![
            Event::Names { changes: vec![("new".into(), Some(1))] },
            Event::Write { file: 1, offset: 0, bytes: vec![9; 512].into(), is_durable: false },
            Event::Sync { file: 1, range: None, has_failed: false },
            Event::Names { changes: vec![("new".into(), None), ("file".into(), Some(1))] },
        ];
        assert_eq!(outcomes(&log(events.clone())), [[0, 0, 0, 0], [9, 0, 0, 0]].map(Vec::from).into());
        events.push(Event::SyncNames { folder: String::new() });
        assert_eq!(outcomes(&log(events)), [vec![9, 0, 0, 0]].into());
    }

    #[test]
    fn a_file_cut_short_has_its_bytes_or_its_new_length() {
        let log = log(vec![
            write(0, 4, 5),
            sync(false),
            Event::Resize { file: 0, len: BLOCK + 1 },
            Event::Resize { file: 0, len: 4 * BLOCK },
        ]);
        let found = outcomes(&log);
        assert!(found.contains(&vec![5, 5, 5, 5]) && found.contains(&vec![5, 5, 0, 0]), "{found:?}");
        let mut replay = Replay::new(&log, BLOCK);
        replay.advance(4);
        let (disk, _) = replay.cut(Survival::All, None);
        assert!(disk.difference(&log.last()).is_none(), "invariant 1");
    }

    #[test]
    fn one_at_a_time_is_there_alone_or_missing() {
        let log = log(vec![write(0, 3, 1)]);
        let mut replay = Replay::new(&log, BLOCK);
        replay.advance(1);
        assert_eq!(seen(&replay.cut(Survival::Alone(1), None).0), [0, 1, 0, 0]);
        assert_eq!(seen(&replay.cut(Survival::Missing(1), None).0), [1, 0, 1, 0]);
        assert_eq!(seen(&replay.cut(Survival::None, None).0), [0; 4]);
        assert_eq!(seen(&replay.cut(Survival::All, None).0), [1, 1, 1, 0]);
    }

    #[test]
    fn a_bad_disk_has_older_versions() {
        let log = log(vec![write(0, 2, 1), sync(false), write(0, 2, 2), sync(false)]);
        let mut replay = Replay::new(&log, BLOCK);
        replay.advance(4);
        let of = |fault: fn(u64) -> Fault| -> BTreeSet<Vec<u8>> {
            (0..50).map(|seed| seen(&replay.cut(Survival::All, Some(fault(seed))).0)).collect()
        };
        assert_eq!(of(Fault::DropWrite), [vec![1, 1, 0, 0]].into());
        assert_eq!(of(Fault::DropBlock), [[1, 2, 0, 0], [2, 1, 0, 0]].map(Vec::from).into());
        let ages = [[1, 2, 0, 0], [2, 1, 0, 0], [0, 2, 0, 0], [2, 0, 0, 0]].map(Vec::from).into();
        assert_eq!(of(Fault::RollBack), ages);
    }
}
