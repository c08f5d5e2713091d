//! Scrubbing an array: every row in which a file has something is read, all columns of it, and held against checksums
//! and parity. So damage is found also where no reader would notice it yet: in parity, and in the second copy of a
//! mirror.
//!
//! A zone takes no writes in its midst, so repair makes a damaged row right in memory, and copies what files have in it
//! to another place. What the drives and parity do not give is taken from copies in the hot zone.

use std::collections::BTreeSet;

use super::Fs;
use super::cleaner::{Copied, Pieces};
use super::data::Mended;
use crate::array::Array;
use crate::clock::Cause;
use crate::error::FsError;
use crate::format::change::Inode;
use crate::store::Run;

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
            self.0.begin().await?;
        }
        let array = self.array()?;
        let mut scrubbed = Scrubbed { is_repaired: repairs, ..Scrubbed::default() };
        scrubbed.metadata_blocks = self.scrub_metadata(repairs, &mut scrubbed.lost).await?;
        let mut seen = BTreeSet::new();
        loop {
            // The cleaner would move it meanwhile. What it moved before lies in a group that was opened since.
            let _pass = self.0.cleaning.enter().await;
            let groups = array.groups();
            let left = || groups.iter().map(|(group, layout, _)| (layout.sequence, *group));
            let Some(next) = left().find(|group| !seen.contains(group)) else { break };
            let read = seen.len() as u64;
            let to_read = left().filter(|group| !seen.contains(group)).count() as u64;
            if !told(read, read + to_read) {
                return Err(FsError::Stopped);
            }
            seen.insert(next);
            self.scrub_group(&array, next.1, repairs, &mut scrubbed).await?;
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

    async fn scrub_group(
        &self,
        array: &Array,
        group: u32,
        repairs: bool,
        scrubbed: &mut Scrubbed,
    ) -> Result<(), FsError> {
        let Some(layout) = array.layout(group) else { return Ok(()) };
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
        if repairs && !wrong.is_empty() {
            scrubbed.repaired_rows += self.move_rows_away(&wrong).await?;
        }
        Ok(())
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

    /// Copies what files have in these rows to another place. Returns for how many rows there was room.
    async fn move_rows_away(&self, rows: &[Run]) -> Result<u64, FsError> {
        let mut moved = 0;
        for row in rows {
            moved += u64::from(self.move_row_away(*row).await?);
        }
        Ok(moved)
    }

    /// The same for one row. Where something in it cannot be read the other pieces are moved by themselves.
    async fn move_row_away(&self, row: Run) -> Result<bool, FsError> {
        let moved = self.move_pieces_away(row).await;
        if !matches!(moved, Err(FsError::Device(_))) {
            return moved;
        }
        let mut are_all_moved = true;
        for (_, piece) in self.pieces_on(row) {
            let moved = self.move_pieces_away(Run { start: piece.start, blocks: 1 }).await;
            are_all_moved &= match moved {
                Err(FsError::Device(_)) => false,
                moved => moved?,
            };
        }
        Ok(are_all_moved)
    }

    /// Copies all pieces of which something lies in `run`; whether there was room. Zones are emptied as long as there is none; that may
    /// move them too.
    async fn move_pieces_away(&self, run: Run) -> Result<bool, FsError> {
        loop {
            let pieces = self.pieces_on(run);
            if pieces.is_empty() {
                return Ok(true);
            }
            match self.copy(&pieces).await? {
                Copied::All => return Ok(true),
                // A file was changed meanwhile: what it has there still is copied.
                Copied::Changed(_) => {}
                Copied::Nothing if self.clean_one_held().await? => {}
                Copied::Nothing => return Ok(false),
            }
        }
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
