//! Early writes: a file that must lie in one piece is written to its reserved room while the program still appends to
//! it, so that the device works meanwhile. The early writes count only if the file still has that room when it is
//! written back. A file that outgrew its room is written anew elsewhere.
//!
//! Invariants:
//! 1. An early write begins only while its target is reserved for the file. If the room goes to another file later,
//!    that file's writes come later, and the device keeps the order.
//! 2. Blocks written early are equal to the blocks in memory: the file was changed only by appends behind them.

use std::rc::Rc;

use super::WriteBack;
use super::staged::{Open, Staged};
use crate::block_run::BlockRun;
use crate::core::CoreParts;
use crate::device::{BLOCK_BYTES, DeviceFault};
use crate::error::FsError;
use crate::executor::BoundedOrdered;
use crate::format::change::{Change, Extent, Inode};
use crate::journal::checksums;

/// Blocks of an early write: generation of the early writes (see [`super::staged::Ahead`]), first block on the device,
/// first block of the file, bytes.
struct Piece {
    generation: u64,
    start: u64,
    at: usize,
    bytes: Vec<u8>,
}

/// Result of an early write: generation, first block of the file, checksums of the blocks.
type Done = Result<(u64, usize, Vec<u32>), DeviceFault>;

impl WriteBack<'_> {
    /// Returns whether enough appended data of a file that must lie in one piece are unwritten to begin early writes.
    pub(super) fn has_much_to_write_ahead(self, staged: &Staged) -> bool {
        let whole = staged.whole_size() / BLOCK_BYTES as u64;
        let left = whole.saturating_sub(staged.ahead.begun as u64);
        staged.is_appended
            && whole >= staged.ahead.not_before
            && left * BLOCK_BYTES as u64 >= self.0.bounds.behind_bytes
            && left >= self.0.bounds.piece_blocks
    }

    /// Writes appended data to the reserved room, one piece at a time, until no whole piece is left, another task wants
    /// to change the file, or the file is removed.
    pub(super) async fn write_ahead(self, inode: Inode, open: &Rc<Open>) {
        let lock = open.lock.enter().await;
        open.is_ahead.set(true);
        let mut writes = BoundedOrdered::new(self.0.bounds.pieces);
        while let Some(piece) = self.next_ahead(inode, open) {
            let Some(done) = writes.begin(self.write_ahead_piece(piece)).await else { continue };
            keep(open, done);
            if lock.is_wanted() || self.is_forsaken(inode, open) {
                break;
            }
        }
        while let Some(done) = writes.next().await {
            keep(open, done);
        }
        open.is_ahead.set(false);
    }

    async fn write_ahead_piece(self, piece: Piece) -> Done {
        let sums = piece.bytes.chunks(BLOCK_BYTES).map(checksums::of_block).collect();
        self.0.data.write(piece.start, piece.bytes).await?;
        Ok((piece.generation, piece.at, sums))
    }

    /// Returns the next piece that can be written early to the file's reserved room.
    fn next_ahead(self, inode: Inode, open: &Open) -> Option<Piece> {
        let is_new = self.0.namespace.borrow().get(inode).is_some_and(|node| node.extents.as_slice().is_empty());
        let mut place = open.staged.borrow_mut();
        let staged = place.as_mut().filter(|staged| is_new && staged.is_appended)?;
        let room = *staged.held.runs.first()?;
        assert_eq!(room.start, staged.ahead.start, "early writes go on in the run in which they began");
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
            // The piece contains a hole.
            staged.ahead.not_before = u64::MAX;
            return None;
        }
        staged.ahead.begun += blocks;
        Some(Piece { generation: staged.ahead.generation, start: room.start + at as u64, at, bytes })
    }

    /// Appends the checksum records of the blocks written early, if the file is to lie at `extents`, in `room`. Returns
    /// their checksums.
    pub(super) async fn take_ahead(self, open: &Open, extents: &[Extent], room: BlockRun) -> Result<Vec<u32>, FsError> {
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
            self.0.committer().commit_if_much().await?;
            start += sums.len() as u64;
        }
        Ok(ahead.sums)
    }
}

/// Keeps the checksums of an early write. If the write failed, discards all early writes of the file, and no more
/// begin.
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
