//! A file that must lie in one piece is written where room is reserved for it while it still comes, so that the device works
//! meanwhile. What was written counts only when the file has come whole and still has that room: it may have outgrown it.
//!
//! Invariants:
//! 1. A piece is begun only while the room that it goes to is reserved for the file. Others to whom the room goes later
//!    write to it later, and the device keeps their order.
//! 2. What was written is as in memory: nothing but appends behind it came since.

use std::rc::Rc;

use super::Fs;
use super::staged::{Open, Staged};
use crate::clock::Together;
use crate::device::{BLOCK_BYTES, DeviceFault};
use crate::error::FsError;
use crate::format::change::{Change, Extent, Inode};
use crate::journal::checksums;
use crate::store::Run;

/// A piece that is written: whose room it goes to, its first block, its bytes.
struct Piece {
    generation: u64,
    start: u64,
    at: usize,
    bytes: Vec<u8>,
}

/// The same when it is written: its checksums.
type Done = Result<(u64, usize, Vec<u32>), DeviceFault>;

impl Fs {
    /// Whether so much of a file that must lie in one piece was appended and not written that it is worth beginning.
    pub(super) fn has_much_to_write_ahead(&self, staged: &Staged) -> bool {
        let whole = staged.whole_size() / BLOCK_BYTES as u64;
        let left = whole.saturating_sub(staged.ahead.begun as u64);
        staged.is_appended
            && whole >= staged.ahead.not_before
            && left * BLOCK_BYTES as u64 >= self.0.bounds.behind_bytes
            && left >= self.0.bounds.piece_blocks
    }

    /// Writes what was appended, a piece at a time, until there is no whole one or somebody wants to change the file.
    pub(super) async fn write_ahead(&self, inode: Inode, open: &Rc<Open>) {
        let gate = open.gate.enter().await;
        open.is_ahead.set(true);
        let mut writes = Together::new(self.0.bounds.pieces);
        while let Some(piece) = self.next_ahead(inode, open) {
            let Some(done) = writes.begin(self.write_ahead_piece(piece)).await else { continue };
            keep(open, done);
            if gate.is_wanted() || self.is_forsaken(inode, open) {
                break;
            }
        }
        while let Some(done) = writes.next().await {
            keep(open, done);
        }
        open.is_ahead.set(false);
    }

    async fn write_ahead_piece(&self, piece: Piece) -> Done {
        let sums = piece.bytes.chunks(BLOCK_BYTES).map(checksums::of_block).collect();
        self.0.data.write(piece.start, piece.bytes).await?;
        Ok((piece.generation, piece.at, sums))
    }

    /// The next piece that can be written where the file has room now.
    fn next_ahead(&self, inode: Inode, open: &Open) -> Option<Piece> {
        let is_new = self.0.namespace.borrow().get(inode).is_some_and(|node| node.extents.as_slice().is_empty());
        let mut place = open.staged.borrow_mut();
        let staged = place.as_mut().filter(|staged| is_new && staged.is_appended)?;
        let room = *staged.held.runs.first()?;
        assert_eq!(room.start, staged.ahead.start, "whoever gets other room begins anew");
        let (ahead, whole) = (&staged.ahead, staged.whole_size() / BLOCK_BYTES as u64);
        let (at, blocks) = (ahead.begun, self.0.bounds.piece_blocks as usize);
        if whole < ahead.not_before.max((at + blocks) as u64) {
            return None;
        }
        let mut bytes = Vec::with_capacity(blocks * BLOCK_BYTES);
        let range = at as u32..(at + blocks) as u32;
        staged
            .blocks
            .range(range)
            .filter_map(|(_, block)| block.bytes())
            .for_each(|block| bytes.extend_from_slice(block));
        if bytes.len() < blocks * BLOCK_BYTES {
            // There is a hole in it.
            staged.ahead.not_before = u64::MAX;
            return None;
        }
        staged.ahead.begun += blocks;
        Some(Piece { generation: staged.ahead.generation, start: room.start + at as u64, at, bytes })
    }

    /// Makes the records of what is written already of a file that is to lie at `extents`, in `room`. Returns the checksums.
    pub(super) async fn take_ahead(&self, open: &Open, extents: &[Extent], room: Run) -> Result<Vec<u32>, FsError> {
        let ahead = open.staged.borrow_mut().as_mut().map(|staged| (staged.ahead.take(), staged.is_appended));
        let (Some((ahead, true)), Some(first)) = (ahead, extents.first()) else { return Ok(Vec::new()) };
        if !self.0.store.is_contiguous() || first.at != 0 || first.start != ahead.start {
            return Ok(Vec::new());
        }
        let mut start = first.start;
        for sums in ahead.sums.chunks(self.0.bounds.piece_blocks as usize) {
            self.0.log.room().await?;
            self.0.checksums.set_within(room, start, sums).await?;
            self.0.log.append(self.0.time_ns(), &[Change::Checksums { block: start, sums: sums.to_vec() }]);
            self.commit_if_much().await?;
            start += sums.len() as u64;
        }
        Ok(ahead.sums)
    }
}

/// A piece is written, or not: then no more are.
fn keep(open: &Open, done: Done) {
    let mut place = open.staged.borrow_mut();
    let Some(staged) = place.as_mut() else { return };
    match done {
        Ok((generation, at, sums)) if generation == staged.ahead.generation && at == staged.ahead.sums.len() => {
            staged.ahead.sums.extend(sums);
        }
        Ok(_) => {}
        Err(_) => staged.ahead.give_up(),
    }
}
