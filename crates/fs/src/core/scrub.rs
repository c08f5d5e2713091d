//! Scrubbing an array: every row in which a file has something is read, all columns of it, and held against checksums
//! and parity. So damage is found also where no reader would notice it yet: in parity, and in the second copy of a
//! mirror.
//!
//! A zone takes no writes in its midst, so repair makes a damaged row right in memory, and copies what files have in it
//! to another place. What the drives and parity do not give is taken from copies in the hot zone. What nothing gives stays
//! where it is.
//!
//! Invariants:
//! 1. It ends: groups are read that were there when it began, and then once those that were opened meanwhile, of which nothing is
//!    repaired.
//! 2. Repair takes room as any writer does: reserved before it begins, and never what is kept back for the cleaner.
//! 3. No block that is lost is moved: it would be as damaged elsewhere.

use std::collections::BTreeSet;

use super::Fs;
use super::cleaner::{Copied, Pieces};
use super::data::Mended;
use crate::array::Array;
use crate::clock::Cause;
use crate::error::FsError;
use crate::format::change::{Extent, Inode};
use crate::store::{Held, Run};

/// How often a piece is copied elsewhere when a device fails.
const ATTEMPTS: u32 = 16;

/// What scrubbing found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Scrubbed {
    /// Blocks of the metadata that are damaged on some copy, or were before they were repaired.
    pub metadata_blocks: u64,
    /// Whether what could be was made right.
    pub is_repaired: bool,
    /// Rows that were read.
    pub rows: u64,
    /// Rows of which something was wrong that could be made right.
    pub wrong_rows: u64,
    /// Rows of which a drive did not give its part.
    pub incomplete_rows: u64,
    /// Wrong or incomplete rows whose contents lie elsewhere now, whole.
    pub repaired_rows: u64,
    /// What is lost: files, and the block of each.
    pub lost: Vec<(Inode, u64)>,
    /// What neither the drives nor parity give, and a copy in the hot zone does.
    pub held_by_copies: Vec<(Inode, u64)>,
}

/// What is wrong with some rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Right,
    Wrong,
    Incomplete,
}

impl Fs {
    /// Scrubs the array and the copies of the metadata; makes right what it can if it `repairs`. `told` is called
    /// before each stripe group with how many were read and how many there are, and says whether to go on.
    pub async fn scrub_array(&self, repairs: bool, told: impl FnMut(u64, u64) -> bool) -> Result<Scrubbed, FsError> {
        self.0.clock.for_cause(Cause::Repair, self.scrub_groups(repairs, told)).await
    }

    async fn scrub_groups(&self, repairs: bool, mut told: impl FnMut(u64, u64) -> bool) -> Result<Scrubbed, FsError> {
        if repairs {
            self.0.begin_task().await?;
        }
        let array = self.array()?;
        let mut scrubbed = Scrubbed { is_repaired: repairs, ..Scrubbed::default() };
        scrubbed.metadata_blocks = self.scrub_metadata(repairs, &mut scrubbed.lost).await?;
        // The cleaner and the repair write to groups opened after the start of the scrub.
        let (mut seen, began_at) = (BTreeSet::new(), newest(&array));
        while let Some((next, left)) = next_group(&array, &seen, began_at) {
            self.scrub_next(&array, next, repairs, (&mut scrubbed, &mut seen, left), &mut told).await?;
        }
        let ended_at = newest(&array);
        while let Some((next, left)) = next_group(&array, &seen, ended_at) {
            self.scrub_next(&array, next, false, (&mut scrubbed, &mut seen, left), &mut told).await?;
        }
        if repairs {
            self.commit_all().await?;
        }
        // What was moved and stayed damaged was found again where it lies now.
        for named in [&mut scrubbed.lost, &mut scrubbed.held_by_copies] {
            let mut once = BTreeSet::new();
            named.retain(|block| once.insert(*block));
        }
        Ok(scrubbed)
    }

    /// Scrubs one group: its sequence and number. So many are left, with it.
    async fn scrub_next(
        &self,
        array: &Array,
        next: (u64, u32),
        repairs: bool,
        (scrubbed, seen, left): (&mut Scrubbed, &mut BTreeSet<(u64, u32)>, u64),
        told: &mut impl FnMut(u64, u64) -> bool,
    ) -> Result<(), FsError> {
        let read = seen.len() as u64;
        if !told(read, read + left) {
            return Err(FsError::Stopped);
        }
        seen.insert(next);
        let wrong = {
            // It is not emptied meanwhile.
            let _pass = self.0.cleaning.enter().await;
            self.scrub_group(array, next.1, scrubbed).await?
        };
        if repairs && !wrong.is_empty() {
            scrubbed.repaired_rows += self.move_rows_away(&wrong, &scrubbed.lost).await?;
        }
        Ok(())
    }

    /// Reads the rows of a group. Returns those that are wrong or incomplete.
    async fn scrub_group(&self, array: &Array, group: u32, scrubbed: &mut Scrubbed) -> Result<Vec<Run>, FsError> {
        let Some(layout) = array.layout(group) else { return Ok(Vec::new()) };
        let (width, stride) = (u64::from(layout.width), array.shape().stride());
        let start = u64::from(group) * stride;
        let live = self.live_runs(start, stride);
        let mut wrong: Vec<Run> = Vec::new();
        for run in pieces_of_rows(&live, start, width, self.0.bounds.piece_blocks.max(1)) {
            scrubbed.rows += run.blocks / width;
            if self.look_at_rows(array, run, &live, None).await? == Verdict::Right {
                continue;
            }
            // Which of them it is.
            for row in (run.start..run.end()).step_by(width as usize) {
                let row = Run { start: row, blocks: width };
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

    /// Whether rows are what their checksums and their parity say. Blocks that the drives and parity do not give are listed
    /// in `scrubbed`, where a single row is looked at for that.
    async fn look_at_rows(
        &self,
        array: &Array,
        rows: Run,
        live: &[Run],
        scrubbed: Option<&mut Scrubbed>,
    ) -> Result<Verdict, FsError> {
        let is_live = |block: u64| live.iter().any(|run| (run.start..run.end()).contains(&block));
        let read = self.read_run_as_it_is(rows).await;
        let Ok((bytes, sums)) = read else {
            if let Some(scrubbed) = scrubbed {
                self.look_at_blocks((rows.start..rows.end()).filter(|block| is_live(*block)), scrubbed).await;
            }
            return Ok(Verdict::Incomplete);
        };
        let mut made = bytes.clone();
        let mended = self.mend(rows, &mut made, &sums, is_live, true).await;
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

    /// The same of blocks of a row that cannot be read as a whole, one by one.
    async fn look_at_blocks(&self, blocks: impl Iterator<Item = u64>, scrubbed: &mut Scrubbed) {
        for block in blocks {
            let read = self.read_run_mended(Run { start: block, blocks: 1 }, true).await;
            let lost = |_| Mended { lost: vec![block], ..Mended::default() };
            self.note(read.map_or_else(lost, |(.., mended)| mended), scrubbed);
        }
    }

    /// Names the files with blocks that neither the drives nor parity give.
    fn note(&self, mended: Mended, scrubbed: &mut Scrubbed) {
        scrubbed.lost.extend(mended.lost.iter().filter_map(|block| self.file_with(*block)));
        scrubbed.held_by_copies.extend(mended.from_copies.iter().filter_map(|block| self.file_with(*block)));
    }

    /// The file that has block `block`, and which block of it that is.
    pub(super) fn file_with(&self, block: u64) -> Option<(Inode, u64)> {
        let owner = self.0.owners.borrow().range(..=block).next_back().map(|(start, owner)| (*start, *owner));
        let (start, owner) = owner?;
        let extent = self.0.extent_at(owner, start)?;
        Some((owner.inode, u64::from(extent.at) + block - start)).filter(|_| block < start + u64::from(extent.blocks))
    }

    /// Copies what files have in these rows to another place, but for blocks that are `lost`. Returns how many rows nothing lies in any
    /// more.
    async fn move_rows_away(&self, rows: &[Run], lost: &[(Inode, u64)]) -> Result<u64, FsError> {
        let lost: BTreeSet<(Inode, u64)> = lost.iter().copied().collect();
        let mut moved = 0;
        for row in rows {
            moved += u64::from(self.move_row_away(*row, &lost).await?);
        }
        Ok(moved)
    }

    /// Moves the pieces out of one row, and returns whether the row is empty then. Each piece is moved by itself: an unreadable piece, or
    /// one without room, does not stop the others.
    async fn move_row_away(&self, row: Run, lost: &BTreeSet<(Inode, u64)>) -> Result<bool, FsError> {
        for (inode, extent) in self.pieces_on(row).into_iter().flat_map(|piece| self.without_lost(piece, row, lost)) {
            match self.move_piece_or_again(&vec![(inode, extent)]).await {
                Ok(()) | Err(FsError::Device(_) | FsError::NoSpace) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.pieces_on(row).is_empty())
    }

    /// The parts of a piece that are to be moved out of `row`: all of it, or where blocks of it are lost, what lies in the row and is not.
    /// These parts are pieces of their own from now on.
    fn without_lost(&self, (inode, extent): (Inode, Extent), row: Run, lost: &BTreeSet<(Inode, u64)>) -> Pieces {
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

    /// Makes `parts` of a piece pieces of their own; false where the metadata have no room for that.
    fn cut_out(&self, inode: Inode, extent: Extent, parts: &[Extent]) -> bool {
        let core = &self.0;
        let (mut cut, mut from) = (Vec::new(), u64::from(extent.at));
        for part in parts {
            cut.extend(extent.within(from, part.at.into()));
            cut.push(*part);
            from = part.end();
        }
        cut.extend(extent.within(from, extent.end()));
        let mut after = core.extents_of(inode);
        let Some(at) = after.iter().position(|piece| *piece == extent) else { return false };
        after.splice(at..=at, cut);
        if core.check_pieces_at_most(inode, after.len()).is_err() {
            return false;
        }
        self.record_extents(inode, None, &after);
        true
    }

    /// Copies a piece elsewhere, and tries again where a device fails meanwhile.
    async fn move_piece_or_again(&self, piece: &Pieces) -> Result<(), FsError> {
        let mut outcome = self.move_piece_away(piece).await;
        for _ in 1..ATTEMPTS {
            if !matches!(outcome, Err(FsError::Device(_))) {
                break;
            }
            outcome = self.move_piece_away(piece).await;
        }
        outcome
    }

    /// Copies a piece to room as any writer gets. What was changed meanwhile lies elsewhere already.
    async fn move_piece_away(&self, piece: &Pieces) -> Result<(), FsError> {
        let core = &self.0;
        let (mut held, blocks) = (Held::default(), piece.iter().map(|(_, extent)| u64::from(extent.blocks)).sum());
        core.store.reserve(&mut held, blocks)?;
        let copied = self.copy_to_room(piece, Some(&mut held)).await;
        core.store.unreserve(&mut held);
        if matches!(copied, Ok(Copied::All)) {
            core.counters.borrow_mut().blocks_cleaned += blocks;
        }
        copied.map(drop)
    }

    /// The pieces of files of which something lies in `row`.
    pub(super) fn pieces_on(&self, row: Run) -> Pieces {
        let core = &self.0;
        let owners = core.owners.borrow();
        let before = owners.range(..row.start).next_back();
        let on = before.into_iter().chain(owners.range(row.start..row.end()));
        let found = on.filter_map(|(start, owner)| Some((owner.inode, core.extent_at(*owner, *start)?)));
        found.filter(|(_, extent)| extent.start + u64::from(extent.blocks) > row.start).collect()
    }
}

/// The sequence of the group that was opened last.
fn newest(array: &Array) -> u64 {
    array.groups().iter().map(|(_, layout, _)| layout.sequence).max().unwrap_or_default()
}

/// A group that was not `seen`, and was opened no later than the one with sequence `up_to`; and how many of those there are.
fn next_group(array: &Array, seen: &BTreeSet<(u64, u32)>, up_to: u64) -> Option<((u64, u32), u64)> {
    let groups = array.groups();
    let sequences = groups.iter().map(|(group, layout, _)| (layout.sequence, *group));
    let left: Vec<(u64, u32)> = sequences.filter(|group| group.0 <= up_to && !seen.contains(group)).collect();
    left.first().map(|first| (*first, left.len() as u64))
}

/// Whole rows of a group that begins at `start` in which there is something live, in pieces of up to `rows_max`.
fn pieces_of_rows(live: &[Run], start: u64, width: u64, rows_max: u64) -> Vec<Run> {
    let mut pieces: Vec<Run> = Vec::new();
    for run in live {
        let end = (run.end() - start).div_ceil(width);
        let behind = pieces.last().map_or(0, |last| (last.end() - start) / width);
        let mut row = ((run.start - start) / width).max(behind);
        while row < end {
            let rows = (end - row).min(rows_max);
            pieces.push(Run { start: start + row * width, blocks: rows * width });
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
        let run = |start, blocks| Run { start, blocks };
        let live = [run(100, 4), run(105, 2), run(120, 9)];
        let rows = pieces_of_rows(&live, 100, 3, 2);
        assert_eq!(rows, [run(100, 6), run(106, 3), run(118, 6), run(124, 6)]);
    }
}
