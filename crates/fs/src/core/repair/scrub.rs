//! Scrubbing an array: every row with blocks of a file is read, in all columns, and compared with checksums and parity.
//! So damage is also found where no reader would notice it yet: in parity, and in the second copy of a mirror.
//!
//! A zone cannot be written in its midst. So a repair reconstructs a damaged row in memory, and copies the blocks of
//! files in it to another place. Blocks that neither the drives nor parity provide are taken from copies in the hot
//! zone. Blocks that no source provides stay where they are.
//!
//! Invariants:
//! 1. A scrub ends. It reads the groups that existed when it began, then once those opened meanwhile, and repairs
//!    nothing in the latter.
//! 2. A repair reserves room before it begins, like any writer, and never uses the room that is reserved for the
//!    cleaner.
//! 3. No lost block is moved: it would be as damaged elsewhere.

use std::collections::BTreeSet;

use super::Repair;
use crate::array::Array;
use crate::block_run::BlockRun;
use crate::core::cleaner::{Copied, Pieces};
use crate::core::files::data::RepairOutcome;
use crate::core::{CoreParts, Fs};
use crate::error::FsError;
use crate::executor::Cause;
use crate::format::change::{Extent, Inode};
use crate::journal::mirror::{CopyDamage, State};
use crate::store::Reservation;

/// Number of attempts to copy a piece elsewhere when devices fail.
const ATTEMPTS: u32 = 16;

/// Findings of a scrub of an array.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Scrubbed {
    /// Number of metadata blocks of 4 KiB, contents of the hot zone included, that were damaged on some copy of the
    /// metadata when the scrub read them. Repaired ones count, too.
    pub metadata_blocks: u64,
    /// Damage of each copy of the metadata, and whether the copy is lost. A block that is damaged on two copies counts
    /// for both. Parts of the hot zone on drives of the array are not among them.
    pub metadata_copies: Vec<CopyDamage>,
    /// Whether the scrub was asked to repair damage.
    pub is_repaired: bool,
    /// Number of rows of stripe groups that the scrub read: those with blocks of files. A row has one block of 4 KiB on
    /// each drive of its group.
    pub rows: u64,
    /// Number of rows, one block on each drive of a stripe group, with wrong contents: a block does not match its
    /// checksum, or a column does not match parity. Only rows with blocks of files count.
    pub wrong_rows: u64,
    /// Number of rows, one block on each drive of a stripe group, of which a block could not be read, because of a
    /// missing drive or an error. They are not among the wrong rows. Only rows with blocks of files count.
    pub incomplete_rows: u64,
    /// Number of wrong or incomplete rows from which all blocks of files were moved to another place. 0 if the scrub
    /// was not asked to repair.
    pub repaired_rows: u64,
    /// Blocks of files that neither the drives, nor parity, nor a copy in the hot zone provide: inode number, and
    /// number of the block of 4 KiB in the file, counted from 0. Each is listed once.
    pub lost: Vec<(Inode, u64)>,
    /// Blocks of files that neither the drives nor parity provide, but a copy in the hot zone does: inode number, and
    /// number of the block of 4 KiB in the file, counted from 0. Each is listed once.
    pub held_by_copies: Vec<(Inode, u64)>,
}

/// Result of checking rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Right,
    Wrong,
    Incomplete,
}

impl Scrubbed {
    /// Returns whether the scrub left no damage: no block of a file is lost, all damage that was found is repaired, and
    /// no copy of the metadata is lost.
    pub fn is_whole(&self) -> bool {
        let are_rows_whole = self.lost.is_empty() && self.wrong_rows + self.incomplete_rows == self.repaired_rows;
        let are_copies_whole =
            self.metadata_copies.iter().all(|copy| copy.state != State::Lost && copy.repaired == copy.damaged);
        are_rows_whole && are_copies_whole && (self.metadata_blocks == 0 || self.is_repaired)
    }
}

impl Fs {
    /// Reads the copies of the metadata and all rows with blocks of files, and compares them with checksums and parity.
    /// If `repairs`, repairs the metadata and moves the blocks of faulty rows to other places. Before each stripe group
    /// calls `progress` with the number of groups read so far and the number of all groups; if it returns false, the
    /// scrub ends.
    ///
    /// # Errors
    /// [`FsError::Stopped`] if `progress` returns false; repairs made so far remain. [`FsError::NotSupported`] without
    /// an array, [`FsError::ReadOnly`] with `repairs` on a read-only mount, or an error of the metadata. Damaged data
    /// are no error.
    pub async fn scrub_array(
        &self,
        repairs: bool,
        progress: impl FnMut(u64, u64) -> bool,
    ) -> Result<Scrubbed, FsError> {
        self.0.executor.for_cause(Cause::Repair, self.0.repair().scrub_groups(repairs, progress)).await
    }
}

impl Repair<'_> {
    async fn scrub_groups(
        self,
        repairs: bool,
        mut progress: impl FnMut(u64, u64) -> bool,
    ) -> Result<Scrubbed, FsError> {
        if repairs {
            self.0.begin_task().await?;
        }
        let array = self.array()?;
        let mut scrubbed = Scrubbed { is_repaired: repairs, ..Scrubbed::default() };
        scrubbed.metadata_blocks = self.scrub_metadata(repairs, &mut scrubbed.lost).await?;
        // The cleaner and the repair write to groups that are opened after the scrub began.
        let (mut seen, began_at) = (BTreeSet::new(), newest(&array));
        while let Some((next, left)) = next_group(&array, &seen, began_at) {
            self.scrub_next(&array, next, repairs, (&mut scrubbed, &mut seen, left), &mut progress).await?;
        }
        let ended_at = newest(&array);
        while let Some((next, left)) = next_group(&array, &seen, ended_at) {
            self.scrub_next(&array, next, false, (&mut scrubbed, &mut seen, left), &mut progress).await?;
        }
        if repairs {
            self.0.committer().commit_all().await?;
        }
        scrubbed.metadata_copies = self.0.metadata.damage(repairs);
        // A block that was moved and is still damaged was found again in its new place.
        for named in [&mut scrubbed.lost, &mut scrubbed.held_by_copies] {
            let mut once = BTreeSet::new();
            named.retain(|block| once.insert(*block));
        }
        Ok(scrubbed)
    }

    /// Scrubs the group `next`: its sequence number, and its group number. `left` groups remain, including this one.
    async fn scrub_next(
        self,
        array: &Array,
        next: (u64, u32),
        repairs: bool,
        (scrubbed, seen, left): (&mut Scrubbed, &mut BTreeSet<(u64, u32)>, u64),
        progress: &mut impl FnMut(u64, u64) -> bool,
    ) -> Result<(), FsError> {
        let read = seen.len() as u64;
        if !progress(read, read + left) {
            return Err(FsError::Stopped);
        }
        seen.insert(next);
        let wrong = {
            // The lock keeps the cleaner from emptying the group.
            let _pass = self.0.cleaner.enter().await;
            self.scrub_group(array, next.1, scrubbed).await?
        };
        if repairs && !wrong.is_empty() {
            scrubbed.repaired_rows += self.move_rows_away(&wrong, &scrubbed.lost).await?;
        }
        Ok(())
    }

    /// Reads the rows of a group. Returns the rows that are wrong or incomplete.
    async fn scrub_group(self, array: &Array, group: u32, scrubbed: &mut Scrubbed) -> Result<Vec<BlockRun>, FsError> {
        let Some(layout) = array.layout(group) else { return Ok(Vec::new()) };
        let (width, stride) = (u64::from(layout.width), array.shape().stride());
        let start = u64::from(group) * stride;
        let live = self.live_runs(start, stride);
        let mut wrong: Vec<BlockRun> = Vec::new();
        for run in pieces_of_rows(&live, start, width, self.0.bounds.piece_blocks.max(1)) {
            scrubbed.rows += run.blocks / width;
            if self.look_at_rows(array, run, &live, None).await? == Verdict::Right {
                continue;
            }
            // Some row of this run is faulty; checking each shows which one.
            for row in (run.start..run.end()).step_by(width as usize) {
                let row = BlockRun { start: row, blocks: width };
                let is_live = live.iter().any(|other| other.start < row.end() && row.start < other.end());
                match self.look_at_rows(array, row, &live, Some(scrubbed)).await? {
                    Verdict::Wrong if is_live => scrubbed.wrong_rows += 1,
                    Verdict::Incomplete if is_live => scrubbed.incomplete_rows += 1,
                    _ => continue,
                }
                wrong.push(row);
            }
        }
        Ok(wrong)
    }

    /// Checks rows against their checksums and parity. With `scrubbed`, `rows` is a single row, and its blocks that
    /// neither the drives nor parity provide are listed there.
    async fn look_at_rows(
        self,
        array: &Array,
        rows: BlockRun,
        live: &[BlockRun],
        scrubbed: Option<&mut Scrubbed>,
    ) -> Result<Verdict, FsError> {
        let is_live = |block: u64| live.iter().any(|run| (run.start..run.end()).contains(&block));
        let read = self.0.files().read_run_as_it_is(rows).await;
        let Ok((bytes, sums)) = read else {
            if let Some(scrubbed) = scrubbed {
                self.look_at_blocks((rows.start..rows.end()).filter(|block| is_live(*block)), scrubbed).await;
            }
            return Ok(Verdict::Incomplete);
        };
        let mut made = bytes.clone();
        let mended = self.0.files().repair(rows, &mut made, &sums, is_live, true).await;
        let is_lost = !mended.lost.is_empty();
        if let Some(scrubbed) = scrubbed {
            self.note(mended, scrubbed);
        }
        if made != bytes || is_lost {
            return Ok(Verdict::Wrong);
        }
        Ok(match array.has_right_columns(rows.start, &bytes).await {
            Ok(true) => Verdict::Right,
            Ok(false) => Verdict::Wrong,
            Err(_) => Verdict::Incomplete,
        })
    }

    /// Checks blocks of a row one by one, since the row cannot be read as a whole, and lists in `scrubbed` those that
    /// neither the drives nor parity provide.
    async fn look_at_blocks(self, blocks: impl Iterator<Item = u64>, scrubbed: &mut Scrubbed) {
        for block in blocks {
            let read = self.0.files().read_run_mended(BlockRun { start: block, blocks: 1 }, true).await;
            let lost = |_| RepairOutcome { lost: vec![block], ..RepairOutcome::default() };
            self.note(read.map_or_else(lost, |(.., mended)| mended), scrubbed);
        }
    }

    /// Adds the lost blocks, and those that only a copy in the hot zone has, to `scrubbed`.
    fn note(self, mended: RepairOutcome, scrubbed: &mut Scrubbed) {
        scrubbed.lost.extend(mended.lost.iter().filter_map(|block| self.file_with(*block)));
        scrubbed.held_by_copies.extend(mended.from_copies.iter().filter_map(|block| self.file_with(*block)));
    }

    /// Returns the file that has block `block`, and the number of the block in the file.
    pub(in crate::core) fn file_with(self, block: u64) -> Option<(Inode, u64)> {
        let owner = self.0.owners.at_or_before(block);
        let (start, owner) = owner?;
        let extent = self.0.files().extent_at(owner, start)?;
        Some((owner.inode, u64::from(extent.at) + block - start)).filter(|_| block < start + u64::from(extent.blocks))
    }

    /// Copies the blocks of files in `rows` elsewhere, but for those in `lost`. Returns how many rows are empty then.
    async fn move_rows_away(self, rows: &[BlockRun], lost: &[(Inode, u64)]) -> Result<u64, FsError> {
        let lost: BTreeSet<(Inode, u64)> = lost.iter().copied().collect();
        let mut moved = 0;
        for row in rows {
            moved += u64::from(self.move_row_away(*row, &lost).await?);
        }
        Ok(moved)
    }

    /// Moves the extents of files out of one row, and returns whether the row is empty then. Each extent is moved by
    /// itself: an unreadable one, or one without room, does not stop the others.
    async fn move_row_away(self, row: BlockRun, lost: &BTreeSet<(Inode, u64)>) -> Result<bool, FsError> {
        for (inode, extent) in self.pieces_on(row).into_iter().flat_map(|piece| self.without_lost(piece, row, lost)) {
            match self.move_piece_or_again(&vec![(inode, extent)]).await {
                Ok(()) | Err(FsError::Device(_) | FsError::NoSpace) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.pieces_on(row).is_empty())
    }

    /// Returns the parts of an extent that must be moved out of `row`: the whole extent if it has no lost blocks, else
    /// the parts in the row that are not lost. The parts become extents of their own.
    fn without_lost(self, (inode, extent): (Inode, Extent), row: BlockRun, lost: &BTreeSet<(Inode, u64)>) -> Pieces {
        let lost = lost.range((inode, u64::from(extent.at))..(inode, extent.end()));
        let lost: Vec<u32> = lost.map(|(_, block)| *block as u32).collect();
        if lost.is_empty() {
            return vec![(inode, extent)];
        }
        let skipped = row.start.saturating_sub(extent.start);
        let first = u64::from(extent.at) + skipped;
        let Some(inside) = extent.within(first, first + row.end() - row.start.max(extent.start)) else {
            return Vec::new();
        };
        let (mut parts, mut from) = (Vec::new(), u64::from(inside.at));
        for block in lost.into_iter().map(u64::from).chain([inside.end()]) {
            parts.extend(inside.within(from, block).filter(|_| block > from));
            from = from.max(block + 1);
        }
        self.cut_out(inode, extent, &parts).then_some(parts).into_iter().flatten().map(|part| (inode, part)).collect()
    }

    /// Splits an extent, so that each of `parts` is an extent of its own. Returns false if the metadata have no room for
    /// that, or the file has changed.
    fn cut_out(self, inode: Inode, extent: Extent, parts: &[Extent]) -> bool {
        let core = &self.0;
        let (mut cut, mut from) = (Vec::new(), u64::from(extent.at));
        for part in parts {
            cut.extend(extent.within(from, part.at.into()));
            cut.push(*part);
            from = part.end();
        }
        cut.extend(extent.within(from, extent.end()));
        let mut after = core.files().extents_of(inode);
        let Some(at) = after.iter().position(|piece| *piece == extent) else { return false };
        after.splice(at..=at, cut);
        if core.files().check_pieces_at_most(inode, after.len()).is_err() {
            return false;
        }
        self.0.files().record_extents(inode, None, &after);
        true
    }

    /// Copies a piece elsewhere, and tries again if a device fails.
    async fn move_piece_or_again(self, piece: &Pieces) -> Result<(), FsError> {
        let mut outcome = self.move_piece_away(piece).await;
        for _ in 1..ATTEMPTS {
            if !matches!(outcome, Err(FsError::Device(_))) {
                break;
            }
            outcome = self.move_piece_away(piece).await;
        }
        outcome
    }

    /// Copies a piece elsewhere, to room that is reserved as for any writer. Blocks that changed meanwhile are elsewhere
    /// already.
    async fn move_piece_away(self, piece: &Pieces) -> Result<(), FsError> {
        let core = &self.0;
        let (mut held, blocks) =
            (Reservation::default(), piece.iter().map(|(_, extent)| u64::from(extent.blocks)).sum());
        core.store.reserve(&mut held, blocks)?;
        let copied = self.0.cleaner().copy_to_room(piece, Some(&mut held)).await;
        core.store.unreserve(&mut held);
        if matches!(copied, Ok(Copied::All)) {
            core.counters.add(|counters| counters.blocks_cleaned += blocks);
        }
        copied.map(drop)
    }

    /// Returns the extents of files that overlap `row`.
    pub(in crate::core) fn pieces_on(self, row: BlockRun) -> Pieces {
        let core = &self.0;
        let before = row.start.checked_sub(1).and_then(|last| core.owners.at_or_before(last));
        let on = before.into_iter().chain(core.owners.beginning_in(row.start..row.end()));
        let found = on.filter_map(|(start, owner)| Some((owner.inode, core.files().extent_at(owner, start)?)));
        found.filter(|(_, extent)| extent.start + u64::from(extent.blocks) > row.start).collect()
    }
}

/// Returns the sequence number of the group that was opened last.
fn newest(array: &Array) -> u64 {
    array.groups().iter().map(|(_, layout, _)| layout.sequence).max().unwrap_or_default()
}

/// Returns a group that is not in `seen`, and was opened no later than the one with sequence number `up_to`. Also
/// returns how many of those groups are left.
fn next_group(array: &Array, seen: &BTreeSet<(u64, u32)>, up_to: u64) -> Option<((u64, u32), u64)> {
    let groups = array.groups();
    let sequences = groups.iter().map(|(group, layout, _)| (layout.sequence, *group));
    let left: Vec<(u64, u32)> = sequences.filter(|group| group.0 <= up_to && !seen.contains(group)).collect();
    left.first().map(|first| (*first, left.len() as u64))
}

/// Returns the rows with live blocks of a group that begins at block `start`, as runs of up to `rows_max` whole rows. A
/// row has `width` blocks of data.
fn pieces_of_rows(live: &[BlockRun], start: u64, width: u64, rows_max: u64) -> Vec<BlockRun> {
    let mut pieces: Vec<BlockRun> = Vec::new();
    for run in live {
        let end = (run.end() - start).div_ceil(width);
        let behind = pieces.last().map_or(0, |last| (last.end() - start) / width);
        let mut row = ((run.start - start) / width).max(behind);
        while row < end {
            let rows = (end - row).min(rows_max);
            pieces.push(BlockRun { start: start + row * width, blocks: rows * width });
            row += rows;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_something_live_are_looked_at_once() {
        let run = |start, blocks| BlockRun { start, blocks };
        let live = [run(100, 4), run(105, 2), run(120, 9)];
        let rows = pieces_of_rows(&live, 100, 3, 2);
        assert_eq!(rows, [run(100, 6), run(106, 3), run(118, 6), run(124, 6)]);
    }
}
