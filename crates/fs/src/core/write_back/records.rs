//! Contents of the records that the store writes among the data: the file of a run of blocks, and the sequence number
//! that orders records. This module also ensures that records are written in time. [`crate::format::record`] has their
//! format, `store::log` their placement.
//!
//! A write takes the next even number when it begins, so of two writes of a file the later has the larger number. A copy
//! that the cleaner makes holds the file as it was when the copy began. If a write was in flight then, the copy's number
//! precedes that of the write, and else it is a new one. So the newest record of a block describes the latest contents
//! of the file.
//!
//! Invariants:
//! 1. No number is used twice, not even after a power cut: before numbers are used, the log durably records an upper
//!    bound.
//! 2. No record waits longer than [`crate::core::Bounds::commit_ns`] to be written. After `sync` or an unmount none waits.
//! 3. Live blocks that a power cut or a failed write left without records are moved, and so get records.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::WriteBack;
use crate::array::Array;
use crate::block_run::BlockRun;
use crate::core::cleaner::Pieces;
use crate::core::owners::Owner;
use crate::core::{CoreParts, Sabotage};
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::format::change::{Change, Extent, Inode};
use crate::format::record::{DirectoryRecord, FileRecord, Piece, RANGES_MAX, UNIT_BYTES, Unit, bytes_of};
use crate::namespace::ROOT;
use crate::store::RecordContext;
use crate::store::log::REACH;

/// Count of sequence numbers that the log reserves at once.
const NUMBERS: u64 = 1 << 20;
/// Upper bound of the directories above a file that are recorded.
const DEPTH_MAX: usize = 64;
/// Number of failed writes of records after which the error is returned. Each failure ends the use of a group.
const ATTEMPTS: u32 = 16;
/// Number of empty zones below which records of copies keep to the room that is estimated for them.
const AMPLE_ZONES: u64 = 3;

/// Sequence numbers of the records among the data.
pub(in crate::core) struct RecordNumbers {
    next: Cell<u64>,
    /// First number that may not be used before the log has durably raised this bound; 0 if none may be used yet.
    end: Cell<u64>,
}

impl RecordNumbers {
    /// Creates the numbers from `first` on. The log reserves none of them yet.
    pub(in crate::core) fn new(first: u64) -> RecordNumbers {
        RecordNumbers { next: Cell::new(first), end: Cell::new(0) }
    }

    fn is_used_up(&self) -> bool {
        self.next.get() + 2 > self.end.get()
    }

    /// Allows numbers up to `end`. Another task may have allowed more meanwhile.
    fn raise_end(&self, end: u64) {
        self.end.set(end.max(self.end.get()));
    }

    fn take(&self) -> u64 {
        self.next.replace(self.next.get() + 2)
    }
}

impl WriteBack<'_> {
    /// Ensures that there are sequence numbers to use. Returns whether it had to wait for the log.
    async fn reserve_numbers(self) -> Result<bool, FsError> {
        let core = &self.0;
        let mut has_waited = false;
        while core.record_numbers.is_used_up() {
            let below = core.record_numbers.next.get() + NUMBERS;
            let changes = [Some(Change::Sequence { below }), self.0.committer().forget_rows()];
            let record = core.record(&changes.into_iter().flatten().collect::<Vec<Change>>());
            if !core.faults.makes(Sabotage::RowsForgottenLate) {
                core.log.commit(record, &core.data).await?;
            }
            core.record_numbers.raise_end(below);
            self.0.committer().rows_are_forgotten();
            has_waited = true;
        }
        Ok(has_waited)
    }

    /// Returns the record of a file that is about to be written, and then has the blocks `ranges` and `size` bytes.
    /// `None` if the store keeps no records, or the file is gone.
    pub(super) async fn record_of_write(
        self,
        inode: Inode,
        (size, modified_ns): (u64, i64),
        (is_whole, ranges): (bool, Vec<(u32, u32)>),
    ) -> Result<Option<Rc<FileRecord>>, FsError> {
        if self.0.store.records().is_none() {
            return Ok(None);
        }
        self.reserve_numbers().await?;
        let sequence = self.0.record_numbers.take();
        let described = self.describe_file(inode, sequence, ranges);
        Ok(described.map(|file| Rc::new(FileRecord { size, modified_ns, is_whole, ..file })))
    }

    /// Returns the record of a file as it is now; `None` if the file is gone.
    fn describe_file(self, inode: Inode, sequence: u64, ranges: Vec<(u32, u32)>) -> Option<FileRecord> {
        let namespace = self.0.namespace.borrow();
        let attributes = namespace.get(inode)?.attributes;
        let (parent, name) = namespace.name_of(inode).unwrap_or((0, b""));
        let ranges = joined(ranges);
        Some(FileRecord {
            inode,
            generation: attributes.generation,
            sequence,
            parent,
            name: name.into(),
            mode: attributes.mode,
            uid: attributes.uid,
            gid: attributes.gid,
            size: attributes.size,
            modified_ns: attributes.modified_ns,
            is_whole: false,
            ranges: Some(ranges).filter(|ranges| ranges.len() <= RANGES_MAX),
        })
    }

    /// Returns the records of the directories above `files`, up to the root.
    fn directories_above<'f>(self, files: impl Iterator<Item = &'f FileRecord>) -> Vec<DirectoryRecord> {
        let namespace = self.0.namespace.borrow();
        let (mut above, mut seen) = (Vec::new(), BTreeSet::new());
        for file in files {
            let mut at = file.parent;
            for _ in 0..DEPTH_MAX {
                let Some(node) = namespace.get(at).filter(|_| seen.insert(at)) else { break };
                let (parent, name) = namespace.name_of(at).unwrap_or((0, b""));
                let (mode, uid, gid) = (node.attributes.mode, node.attributes.uid, node.attributes.gid);
                above.push(DirectoryRecord {
                    inode: at,
                    sequence: file.sequence,
                    parent,
                    name: name.into(),
                    mode,
                    uid,
                    gid,
                });
                if at == ROOT {
                    break;
                }
                at = parent;
            }
        }
        above
    }

    /// Returns the contents for the records of blocks that are written: the `pieces` of the file, in order, and its
    /// directories.
    pub(super) fn context_of_write(self, file: Option<&Rc<FileRecord>>, pieces: &[(u32, u32)]) -> RecordContext {
        let Some(file) = file else { return RecordContext::default() };
        let piece = |(at, blocks): &(u32, u32)| Piece { file: file.clone(), at: *at, blocks: *blocks };
        RecordContext {
            pieces: pieces.iter().map(piece).collect(),
            directories: self.directories_above(std::iter::once(&**file)),
        }
    }

    /// Returns the contents for the records of extents that are copied. `None` if a file has changed since the look-up
    /// of `pieces`.
    pub(in crate::core) async fn context_of_copies(self, pieces: &Pieces) -> Result<Option<RecordContext>, FsError> {
        let core = &self.0;
        if core.store.records().is_none() {
            return Ok(Some(RecordContext::default()));
        }
        if self.reserve_numbers().await? {
            let is_same = |&(inode, extent): &(Inode, Extent)| {
                core.files().extent_at(Owner { inode, at: extent.at }, extent.start) == Some(extent)
            };
            if !pieces.iter().all(is_same) {
                return Ok(None);
            }
        }
        let number = self.0.record_numbers.take();
        let mut files: BTreeMap<Inode, Rc<FileRecord>> = BTreeMap::new();
        for (inode, _) in pieces {
            if !files.contains_key(inode) {
                let writing = self.0.files().open_of(*inode).map_or(0, |open| open.writing.get());
                let sequence = if writing > 0 { writing - 1 } else { number };
                let file = self.describe_file(*inode, sequence, self.ranges_of(*inode)).expect("it has the pieces");
                let is_whole = self.leaves_some_alone(*inode, pieces);
                let file = FileRecord { is_whole, ..file };
                files.insert(*inode, Rc::new(file));
            }
        }
        let piece = |(inode, extent): &(Inode, Extent)| Piece {
            file: files[inode].clone(),
            at: extent.at,
            blocks: extent.blocks,
        };
        let directories = self.directories_above(files.values().map(|file| &**file));
        let context = RecordContext { pieces: pieces.iter().map(piece).collect(), directories };
        Ok(Some(if core.store.usage().free_runs < AMPLE_ZONES { self.shortened(context) } else { context }))
    }

    /// Returns whether a file has other extents than `pieces` that are stored only in the hot zone. Those have no
    /// records, so older records of their blocks must not count any more.
    fn leaves_some_alone(self, inode: Inode, pieces: &Pieces) -> bool {
        let alone = self.0.hot_tier().pieces_alone(inode);
        alone.iter().any(|extent| !pieces.contains(&(inode, *extent)))
    }

    /// Returns the runs of blocks of a file that are stored.
    fn ranges_of(self, inode: Inode) -> Vec<(u32, u32)> {
        let namespace = self.0.namespace.borrow();
        let extents = namespace.get(inode).map(|node| node.extents.as_slice().to_vec()).unwrap_or_default();
        extents.iter().map(|extent| (extent.at, extent.blocks)).collect()
    }

    /// Shortens `context` to the room that is estimated for records of copies. Leaves out directories first, then the
    /// longest names.
    fn shortened(self, context: RecordContext) -> RecordContext {
        let blocks: u64 = context.pieces.iter().map(|piece| u64::from(piece.blocks)).sum();
        // Up to a fifth of each unit may stay empty, since an entry is not cut in two.
        let may = (blocks as usize * (UNIT_BYTES / 5 * 4) / 32).max(UNIT_BYTES);
        let directories: usize = context.directories.iter().map(DirectoryRecord::bytes).sum();
        let mut bytes = bytes_of(&context.pieces);
        if bytes + directories <= may {
            return context;
        }
        let mut named: BTreeMap<(usize, Inode), Rc<FileRecord>> = BTreeMap::new();
        for piece in &context.pieces {
            named.insert((piece.file.bytes(), piece.file.inode), piece.file.clone());
        }
        let mut short: BTreeMap<Inode, Rc<FileRecord>> = BTreeMap::new();
        while bytes > may {
            let Some(((had, inode), file)) = named.pop_last() else { break };
            let without = FileRecord { parent: 0, name: Box::default(), ranges: None, ..(*file).clone() };
            bytes -= had - without.bytes();
            short.insert(inode, Rc::new(without));
        }
        self.0.counters.add(|counters| counters.names_left_out += short.len() as u64);
        let piece = |piece: Piece| {
            let file = short.get(&piece.file.inode).cloned();
            Piece { file: file.unwrap_or_else(|| piece.file.clone()), ..piece }
        };
        RecordContext { pieces: context.pieces.into_iter().map(piece).collect(), directories: Vec::new() }
    }

    /// Returns the runs `live` of a group, each with the blocks behind it that may hold records of it.
    pub(in crate::core) fn with_records(self, array: &Array, group: u32, live: &[BlockRun]) -> Vec<BlockRun> {
        let (start, width) = (u64::from(group) * array.shape().stride(), array.layout(group).map_or(1, |it| it.width));
        let end = start + array.rows_readable(group) * u64::from(width);
        let with = |run: &BlockRun| BlockRun {
            start: run.start,
            blocks: (run.end() + REACH).min(end).max(run.end()) - run.start,
        };
        live.iter().map(with).collect()
    }

    /// Writes the records that wait in memory. If a drive fails meanwhile, its groups take no more appends. Blocks of
    /// such groups that lack records are moved, and get records in their new place.
    pub(in crate::core) async fn write_records(self) -> Result<(), FsError> {
        let core = &self.0;
        let Some(records) = core.store.records() else { return Ok(()) };
        let mut failures = 0;
        while let Some(allocation) = records.allocate_for_records() {
            let bytes = records.record_bytes(&allocation, &[]);
            match core.data.write(allocation.runs[0].start, bytes).await {
                Ok(()) => core.store.commit(allocation),
                Err(fault) => {
                    self.give_up(allocation).await;
                    failures += 1;
                    if failures == ATTEMPTS {
                        return Err(fault.into());
                    }
                }
            }
        }
        Ok(())
    }

    /// Moves live blocks that lack records because a write failed.
    pub(in crate::core) async fn move_unrecorded(self) -> Result<(), FsError> {
        let core = &self.0;
        let Some(records) = core.store.records() else { return Ok(()) };
        let unrecorded = records.take_unrecorded();
        let mut outcome = Ok(());
        for run in unrecorded {
            let _pass = core.cleaner.enter().await;
            let pieces = self.0.repair().pieces_on(run);
            if !pieces.is_empty() {
                // The failure of one device must not keep the other blocks from being moved.
                outcome = outcome.and(self.0.cleaner().copy(&pieces).await.map(drop));
            }
        }
        outcome
    }

    /// Moves live blocks, after a mount, that lack records because the power was cut before they were written. Searches
    /// the groups that are not full.
    pub(in crate::core) async fn find_unrecorded(self) -> Result<(), FsError> {
        let Some(array) = self.0.data.array().cloned() else { return Ok(()) };
        for (group, ..) in array.groups() {
            if array.is_full(group) {
                continue;
            }
            for run in self.unrecorded_in(&array, group).await {
                let _pass = self.0.cleaner.enter().await;
                let pieces = self.0.repair().pieces_on(run);
                if !pieces.is_empty() {
                    self.0.cleaner().copy(&pieces).await?;
                }
            }
        }
        Ok(())
    }

    /// Returns the live runs near the end of a group that no unit of records there describes.
    async fn unrecorded_in(self, array: &Array, group: u32) -> Vec<BlockRun> {
        let stride = array.shape().stride();
        let Some(layout) = array.layout(group) else { return Vec::new() };
        let start = u64::from(group) * stride;
        let live = self.0.repair().live_runs(start, stride);
        let Some(end) = live.iter().map(BlockRun::end).max() else { return Vec::new() };
        let readable = u64::from(layout.width) * array.rows_readable(group);
        let (from, to) = (end.saturating_sub(REACH).max(start), (end + REACH).min(start + readable));
        let mut described: Vec<BlockRun> = Vec::new();
        let mut next = from;
        while next < to {
            let count = self.0.bounds.piece_blocks.max(1).min(to - next);
            // A unit that cannot be read is damaged, so the blocks that it describes lack records.
            let Ok(bytes) = array.read(next, count).await else { break };
            for (number, block) in (next - start..).zip(bytes.chunks(BLOCK_BYTES)) {
                let file_system = array.file_system().as_u128();
                if let Some(unit) = Unit::decode(block, file_system, layout.sequence, number as u32) {
                    let run = |run: &crate::format::record::RunRecord| BlockRun {
                        start: start + u64::from(run.place),
                        blocks: run.sums.len() as u64,
                    };
                    described.extend(unit.runs.iter().map(run));
                }
            }
            next += count;
        }
        let is_described = |block: u64| described.iter().any(|run| (run.start..run.end()).contains(&block));
        let near = live.into_iter().filter(|run| run.end() > from);
        near.filter(|run| !(run.start.max(from)..run.end()).all(is_described)).collect()
    }
}

/// Returns the runs in order, neighbours joined.
fn joined(mut ranges: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u32, u32)> = Vec::new();
    for (at, blocks) in ranges {
        match joined.last_mut() {
            Some((first, count)) if u64::from(*first) + u64::from(*count) == u64::from(at) => *count += blocks,
            _ => joined.push((at, blocks)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_range() {
        assert_eq!(joined(vec![(7, 2), (0, 3), (3, 1), (9, 1), (20, 5)]), [(0, 4), (7, 3), (20, 5)]);
        assert_eq!(joined(Vec::new()), []);
    }
}
