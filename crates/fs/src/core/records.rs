//! What records tell of files: where it comes from, the sequence that orders it, and that it is written in time (the records
//! themselves are in [`crate::format::record`], where they go in `store::log`).
//!
//! A write takes the next even number when it begins, so of two writes of a file the later has the larger one. A copy that the
//! cleaner makes holds what the file had when the copy began: it has a number before that of the write that was under
//! way then, if one was, and else a new one. So the newest record of a block tells of what the file had last.
//!
//! Invariants:
//! 1. No number is given twice, not even after a power cut: before numbers are used the log says, durably, up to which one they
//!    may be.
//! 2. No record waits longer than [`super::Bounds::commit_ns`] to be written; `sync` and unmounting leave none waiting.
//! 3. Live blocks that a power cut or a failed write left without records are moved, and so get some.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::cleaner::Pieces;
use super::{Fs, Owner, Sabotage};
use crate::array::Array;
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::format::change::{Change, Extent, Inode};
use crate::format::record::{DirectoryRecord, FileRecord, Piece, RANGES_MAX, UNIT_BYTES, Unit, bytes_of};
use crate::namespace::ROOT;
use crate::store::log::REACH;
use crate::store::{Run, Told};

/// Numbers that are taken from the log at once.
const NUMBERS: u64 = 1 << 20;
/// Directories above a file that are told of.
const DEPTH_MAX: usize = 64;
/// How many groups may fail while records are written before that is an error.
const ATTEMPTS: u32 = 16;
/// With fewer empty zones than this, records of copies keep to the room that is reckoned for them.
const AMPLE_ZONES: u64 = 3;

impl Fs {
    /// Sees to it that there are numbers to give; true if it had to wait for that.
    async fn reserve_numbers(&self) -> Result<bool, FsError> {
        let core = &self.0;
        let mut has_waited = false;
        while core.sequence.get() + 2 > core.sequence_below.get() {
            let below = core.sequence.get() + NUMBERS;
            let changes = [Some(Change::Sequence { below }), self.forget_rows()];
            let record = core.record(&changes.into_iter().flatten().collect::<Vec<Change>>());
            if core.sabotage != Some(Sabotage::RowsForgottenLate) {
                core.log.commit(record, &core.data).await?;
            }
            // Another task may have gone further meanwhile.
            core.sequence_below.set(below.max(core.sequence_below.get()));
            self.rows_are_forgotten();
            has_waited = true;
        }
        Ok(has_waited)
    }

    fn take_number(&self) -> u64 {
        let number = self.0.sequence.get();
        self.0.sequence.set(number + 2);
        number
    }

    /// The record of a file that is about to be written, and will have `ranges` of blocks and `size` bytes.
    pub(super) async fn record_of_write(
        &self,
        inode: Inode,
        (size, modified_ns): (u64, i64),
        (is_whole, ranges): (bool, Vec<(u32, u32)>),
    ) -> Result<Option<Rc<FileRecord>>, FsError> {
        if !self.0.store.keeps_records() {
            return Ok(None);
        }
        self.reserve_numbers().await?;
        let sequence = self.take_number();
        let described = self.describe_file(inode, sequence, ranges);
        Ok(described.map(|file| Rc::new(FileRecord { size, modified_ns, is_whole, ..file })))
    }

    /// A file as it is now.
    fn describe_file(&self, inode: Inode, sequence: u64, ranges: Vec<(u32, u32)>) -> Option<FileRecord> {
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

    /// The directories that files with these records are in, up to the uppermost.
    fn directories_above<'a>(&self, files: impl Iterator<Item = &'a FileRecord>) -> Vec<DirectoryRecord> {
        let namespace = self.0.namespace.borrow();
        let (mut told, mut seen) = (Vec::new(), BTreeSet::new());
        for file in files {
            let mut at = file.parent;
            for _ in 0..DEPTH_MAX {
                let Some(node) = namespace.get(at).filter(|_| seen.insert(at)) else { break };
                let (parent, name) = namespace.name_of(at).unwrap_or((0, b""));
                let (mode, uid, gid) = (node.attributes.mode, node.attributes.uid, node.attributes.gid);
                told.push(DirectoryRecord {
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
        told
    }

    /// What is told of blocks of a file that are written, pieces of it in order.
    pub(super) fn told_of_write(&self, file: Option<&Rc<FileRecord>>, pieces: &[(u32, u32)]) -> Told {
        let Some(file) = file else { return Told::default() };
        let piece = |(at, blocks): &(u32, u32)| Piece { file: file.clone(), at: *at, blocks: *blocks };
        Told {
            pieces: pieces.iter().map(piece).collect(),
            directories: self.directories_above(std::iter::once(&**file)),
        }
    }

    /// What is told of pieces of files that are copied; `None` where a file has changed since they were looked up.
    pub(super) async fn told_of_copies(&self, pieces: &Pieces) -> Result<Option<Told>, FsError> {
        let core = &self.0;
        if !core.store.keeps_records() {
            return Ok(Some(Told::default()));
        }
        if self.reserve_numbers().await? {
            let is_same = |&(inode, extent): &(Inode, Extent)| {
                core.extent_at(Owner { inode, at: extent.at }, extent.start) == Some(extent)
            };
            if !pieces.iter().all(is_same) {
                return Ok(None);
            }
        }
        let number = self.take_number();
        let mut files: BTreeMap<Inode, Rc<FileRecord>> = BTreeMap::new();
        for (inode, _) in pieces {
            if !files.contains_key(inode) {
                let writing = self.open_of(*inode).map_or(0, |open| open.writing.get());
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
        let told = Told { pieces: pieces.iter().map(piece).collect(), directories };
        Ok(Some(if core.store.usage().free_runs < AMPLE_ZONES { self.shortened(told) } else { told }))
    }

    /// Whether a file has something in the hot zone alone besides `pieces`: that has no records, and what older ones tell of those
    /// blocks is not to stand for it.
    fn leaves_some_alone(&self, inode: Inode, pieces: &Pieces) -> bool {
        let alone = self.0.pieces_alone(inode);
        alone.iter().any(|extent| !pieces.contains(&(inode, *extent)))
    }

    /// The runs of blocks that a file has stored.
    fn ranges_of(&self, inode: Inode) -> Vec<(u32, u32)> {
        let namespace = self.0.namespace.borrow();
        let extents = namespace.get(inode).map(|node| node.extents.as_slice().to_vec()).unwrap_or_default();
        extents.iter().map(|extent| (extent.at, extent.blocks)).collect()
    }

    /// The same, shortened to the room that is reckoned for records of copies: directories are left out first, then the
    /// longest names.
    fn shortened(&self, told: Told) -> Told {
        let blocks: u64 = told.pieces.iter().map(|piece| u64::from(piece.blocks)).sum();
        // Of each unit a fifth may stay empty, for an entry is not cut in two.
        let may = (blocks as usize * (UNIT_BYTES / 5 * 4) / 32).max(UNIT_BYTES);
        let directories: usize = told.directories.iter().map(DirectoryRecord::bytes).sum();
        let mut bytes = bytes_of(&told.pieces);
        if bytes + directories <= may {
            return told;
        }
        let mut named: BTreeMap<(usize, Inode), Rc<FileRecord>> = BTreeMap::new();
        for piece in &told.pieces {
            named.insert((piece.file.bytes(), piece.file.inode), piece.file.clone());
        }
        let mut short: BTreeMap<Inode, Rc<FileRecord>> = BTreeMap::new();
        while bytes > may {
            let Some(((had, inode), file)) = named.pop_last() else { break };
            let without = FileRecord { parent: 0, name: Box::default(), ranges: None, ..(*file).clone() };
            bytes -= had - without.bytes();
            short.insert(inode, Rc::new(without));
        }
        self.0.counters.borrow_mut().names_left_out += short.len() as u64;
        let piece = |piece: Piece| {
            let file = short.get(&piece.file.inode).cloned();
            Piece { file: file.unwrap_or_else(|| piece.file.clone()), ..piece }
        };
        Told { pieces: told.pieces.into_iter().map(piece).collect(), directories: Vec::new() }
    }

    /// These live runs of a group, and as many blocks behind each as may hold records of it.
    pub(super) fn with_records(&self, array: &Array, group: u32, live: &[Run]) -> Vec<Run> {
        let (start, width) = (u64::from(group) * array.shape().stride(), array.layout(group).map_or(1, |it| it.width));
        let end = start + array.rows_readable(group) * u64::from(width);
        let with =
            |run: &Run| Run { start: run.start, blocks: (run.end() + REACH).min(end).max(run.end()) - run.start };
        live.iter().map(with).collect()
    }

    /// Writes the records that wait in memory. Where a drive fails meanwhile its groups take no more: what they would have told of
    /// is moved, and told of there.
    pub(super) async fn write_records(&self) -> Result<(), FsError> {
        let core = &self.0;
        let mut failures = 0;
        while let Some(lease) = core.store.lease_for_records() {
            let bytes = core.store.records(&lease, &[]);
            match core.data.write(lease.runs[0].start, bytes).await {
                Ok(()) => core.store.settle(lease),
                Err(fault) => {
                    self.give_up(lease).await;
                    failures += 1;
                    if failures == ATTEMPTS {
                        return Err(fault.into());
                    }
                }
            }
        }
        Ok(())
    }

    /// Moves what has no records.
    pub(super) async fn move_unrecorded(&self) -> Result<(), FsError> {
        let core = &self.0;
        let unrecorded = core.store.take_unrecorded();
        let mut outcome = Ok(());
        for run in unrecorded {
            let _pass = core.cleaning.enter().await;
            let pieces = self.pieces_on(run);
            if !pieces.is_empty() {
                // What one device fails does not keep the rest from being moved.
                outcome = outcome.and(self.copy(&pieces).await.map(drop));
            }
        }
        outcome
    }

    /// After a mount: moves what lies in groups that were appended to and has no records, since the power went before they
    /// were written.
    pub(super) async fn find_unrecorded(&self) -> Result<(), FsError> {
        let Some(array) = self.0.data.array().cloned() else { return Ok(()) };
        for (group, ..) in array.groups() {
            if array.is_full(group) {
                continue;
            }
            for run in self.unrecorded_in(&array, group).await {
                let _pass = self.0.cleaning.enter().await;
                let pieces = self.pieces_on(run);
                if !pieces.is_empty() {
                    self.copy(&pieces).await?;
                }
            }
        }
        Ok(())
    }

    /// The live runs near the end of a group that no unit there tells of.
    async fn unrecorded_in(&self, array: &Array, group: u32) -> Vec<Run> {
        let stride = array.shape().stride();
        let Some(layout) = array.layout(group) else { return Vec::new() };
        let start = u64::from(group) * stride;
        let live = self.live_runs(start, stride);
        let Some(end) = live.iter().map(Run::end).max() else { return Vec::new() };
        let readable = u64::from(layout.width) * array.rows_readable(group);
        let (from, to) = (end.saturating_sub(REACH).max(start), (end + REACH).min(start + readable));
        let mut told: Vec<Run> = Vec::new();
        let mut next = from;
        while next < to {
            let count = self.0.bounds.piece_blocks.max(1).min(to - next);
            // What cannot be read is damaged.
            let Ok(bytes) = array.read(next, count).await else { break };
            for (number, block) in (next - start..).zip(bytes.chunks(BLOCK_BYTES)) {
                let file_system = array.file_system().as_u128();
                if let Some(unit) = Unit::decode(block, file_system, layout.sequence, number as u32) {
                    let run = |run: &crate::format::record::RunRecord| Run {
                        start: start + u64::from(run.place),
                        blocks: run.sums.len() as u64,
                    };
                    told.extend(unit.runs.iter().map(run));
                }
            }
            next += count;
        }
        let is_told = |block: u64| told.iter().any(|run| (run.start..run.end()).contains(&block));
        let near = live.into_iter().filter(|run| run.end() > from);
        near.filter(|run| !(run.start.max(from)..run.end()).all(is_told)).collect()
    }
}

/// Runs of neighbours as one, in order.
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
