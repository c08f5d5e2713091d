//! Files that are stored only in the hot zone ([`crate::hot`]), without a copy in the store ("alone" in the names
//! below). If the metadata are mirrored on flash, so is the zone, and a file in it needs no blocks in the store. Its
//! extents are ordinary ones: their block numbers follow those of the data. So reads, checks, truncation and freeing
//! need no special case.
//!
//! ```text
//!   small and new ──────────────────────────► alone ──(colder than another, or not to be there)──► copied to the store, recorded
//!   in the store ──(hot: copied, durable)──►   │  └──(written anew: where the zone has room)──► alone
//!   copied ──(the other mirror is whole)──►    │  └──(written anew: where it has none)──► in the store
//! ```
//!
//! Invariants:
//! 1. A file becomes stored only in the zone while two copies of the metadata are current, and its blocks were written
//!    to all of them. If one copy is lost later, the file stays and is read from the other.
//! 2. No record names blocks of the zone before they are durable. Blocks of the store that hold the contents of a file
//!    moved to the zone are reused only after the record that frees them is durable.
//! 3. A file is moved out to the store only while the store has room to spare, and never to room reserved for other
//!    data. Without room it stays.
//! 4. A block that is damaged on one copy is rewritten from another during a registered read ([`crate::core::commit::releases`]). So
//!    the block cannot be freed and given to another file before the repair.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::HotTier;
use crate::block_run::BlockRun;
use crate::core::cleaner::{Copied, Pieces};
use crate::core::write_back::Work;
use crate::core::write_back::pieces::{joined, place};
use crate::core::write_back::staged::Open;
use crate::core::{CoreParts, Sabotage};
use crate::device::{BLOCK_BYTES, DeviceFault};
use crate::error::FsError;
use crate::format::change::{Change, Extent, Inode};
use crate::hot::{Candidate, Hint, Keeping, Verdict};
use crate::journal::checksums;
use crate::store::Reservation;

/// Divisor of the store's size: a file is moved out only if this share (1/32) of the store stays free for writes.
const SPARE_SHARE: u64 = 32;

/// Damage found by a check of the files that are stored only in the hot zone.
#[derive(Default, Debug)]
pub(in crate::core) struct Looked {
    /// Number of blocks of 4 KiB of files stored only in the hot zone that are damaged on some copy of the metadata
    /// area and intact on another.
    pub damaged: u64,
    /// Blocks of files stored only in the hot zone that are intact on no copy of the metadata area: inode number, and
    /// number of the block of 4 KiB in the file.
    pub lost: Vec<(Inode, u64)>,
}

impl HotTier<'_> {
    /// Returns whether the hot zone lies in the metadata area. In a zone on the drives of an array no file is stored
    /// without a copy.
    fn has_zone_in_metadata(self) -> bool {
        self.0.superblock.layout.hot.1 > 0
    }

    /// Returns whether block `block` belongs to a hot zone in which files may be stored without a copy in the store.
    pub(in crate::core) fn is_in_zone(self, block: u64) -> bool {
        self.has_zone_in_metadata() && block >= self.0.superblock.hot_base()
    }

    /// Returns whether files may become stored only in the hot zone now.
    pub(super) fn may_be_alone(self) -> bool {
        self.has_zone_in_metadata() && self.0.hot.keeping == Keeping::Alone && self.0.metadata.current_copies() >= 2
    }

    /// Returns the extents of a file that lie only in the hot zone.
    pub(in crate::core) fn pieces_alone(self, inode: Inode) -> Vec<Extent> {
        if !self.has_zone_in_metadata() {
            return Vec::new();
        }
        let mut pieces = self.0.files().extents_of(inode);
        pieces.retain(|extent| self.is_in_zone(extent.start));
        pieces
    }

    /// Returns the number of blocks of `extents` that lie in the hot zone.
    pub(in crate::core) fn blocks_alone(self, extents: &[Extent]) -> u64 {
        let inside = extents.iter().filter(|extent| self.is_in_zone(extent.start));
        inside.map(|extent| u64::from(extent.blocks)).sum()
    }

    /// Returns the files that have extents only in the hot zone.
    pub(super) fn files_alone(self) -> BTreeSet<Inode> {
        if !self.has_zone_in_metadata() {
            return BTreeSet::new();
        }
        let owners = self.0.owners.beginning_in(self.0.superblock.hot_base()..);
        owners.into_iter().map(|(_, owner)| owner.inode).collect()
    }

    /// Returns the position of block `block` of the hot zone in the metadata area, in blocks.
    fn place_in_area(self, block: u64) -> u64 {
        self.0.superblock.layout.hot.0 + block - self.0.superblock.hot_base()
    }

    /// Reads blocks of the data or of the hot zone. Blocks of the zone that no copy returns are zeros, which match no
    /// checksum.
    pub(in crate::core) async fn read_blocks(self, block: u64, blocks: u64) -> Result<Vec<u8>, DeviceFault> {
        if self.is_in_zone(block) {
            return Ok(self.0.metadata.read_what_can_be(self.place_in_area(block), blocks).await);
        }
        self.0.data.read(block, blocks).await
    }

    /// Reconstructs block `block` so that it matches checksum `sum`: from parity, or from another copy of the hot zone.
    /// In the second case the file of the block is queued for a check in the background.
    pub(in crate::core) async fn reconstruct_block(self, block: u64, sum: u32) -> Option<Vec<u8>> {
        if !self.is_in_zone(block) {
            return self.0.data.recover(block, sum).await;
        }
        let owner = self.0.owners.at_or_before(block).map(|(_, owner)| owner.inode);
        if let Some(inode) = owner {
            let mut hot = self.0.hot.zone.borrow_mut();
            hot.counters.damaged += 1;
            hot.suspect(inode);
            self.0.hot.wanted.give();
        }
        let is_right = |bytes: &Vec<u8>| checksums::of_block(bytes) == sum;
        let at = self.place_in_area(block);
        self.0.metadata.find(async |area| area.read(at, 1).await.ok().filter(is_right)).await.map(|(bytes, _)| bytes)
    }

    /// Updates the counters of the hot zone after the extents of a file have changed from `before` to `after`.
    pub(in crate::core) fn note_alone(self, before: &[Extent], after: &[Extent]) {
        let (was, is) = (self.blocks_alone(before), self.blocks_alone(after));
        if was > 0 || is > 0 {
            let mut hot = self.0.hot.zone.borrow_mut();
            hot.alone_blocks = hot.alone_blocks + is - was;
            hot.counters.came_in += u64::from(was == 0);
            hot.counters.went_out += u64::from(is == 0);
        }
    }
}

impl HotTier<'_> {
    /// Allocates blocks of the hot zone for a file that is about to be written as a whole, if the file is to be stored
    /// only there.
    pub(in crate::core) fn room_alone(self, inode: Inode, work: &Work) -> Option<Vec<BlockRun>> {
        let core = &self.0;
        if !work.is_whole
            || work.pieces.is_empty()
            || !core.hot_tier().may_be_alone()
            || core.hot_tier().is_checkpoint_full()
        {
            return None;
        }
        let candidate = Candidate { inode, blocks: work.blocks(), hint: core.hot_tier().hint_of(inode) };
        let mut hot = core.hot.zone.borrow_mut();
        let fits = hot.judge(&candidate, &[0], Vec::new, core.executor.now_ns()) == Verdict::Fits;
        if fits { hot.take(candidate.blocks) } else { None }
    }

    /// Writes all of a file to `runs` of the hot zone, and appends the record. Returns false if the zone cannot take
    /// the file: `runs` are free again, and the caller writes the file to the store.
    pub(in crate::core) async fn write_alone(
        self,
        inode: Inode,
        open: &Rc<Open>,
        work: &Work,
        runs: &[BlockRun],
    ) -> Result<bool, FsError> {
        let core = &self.0;
        let extents = joined(self.shifted(place(&work.pieces, runs)), core.store.band_blocks());
        let fits = extents.len() <= core.files().pieces_in_record();
        let written =
            if fits { self.write_pieces_alone(inode, open, &extents).await.map(|()| true) } else { Ok(false) };
        let outcome = match written {
            Ok(true) if core.hot_tier().may_be_alone() => core
                .log
                .room()
                .await
                .and_then(|()| self.0.write_back().finish(inode, open, work, &extents))
                .map(|()| true),
            Ok(_) | Err(FsError::Device(_)) => Ok(false),
            Err(error) => Err(error),
        };
        if !matches!(outcome, Ok(true)) {
            runs.iter().for_each(|run| core.hot.zone.borrow_mut().free(*run));
        }
        outcome
    }

    /// Writes blocks of a file to `extents` of the hot zone.
    ///
    /// # Errors
    /// [`FsError::Stale`] if the file has neither name, handle nor lookup any more.
    async fn write_pieces_alone(self, inode: Inode, open: &Rc<Open>, extents: &[Extent]) -> Result<(), FsError> {
        let base = self.0.superblock.hot_base();
        for extent in extents {
            let mut next = 0;
            while next < u64::from(extent.blocks) {
                let count = (u64::from(extent.blocks) - next).min(self.blocks_to_zone());
                let mut bytes = Vec::new();
                self.0.write_back().gather(inode, open, u64::from(extent.at) + next, count, &mut bytes).await?;
                self.write_to_zone(extent.start - base + next, bytes).await?;
                if self.0.write_back().is_forsaken(inode, open) {
                    return Err(FsError::Stale);
                }
                next += count;
            }
        }
        self.0.metadata.owe_flush();
        Ok(())
    }

    /// Converts `extents` of the hot zone to the numbering in which blocks of the zone follow those of the data.
    fn shifted(self, mut extents: Vec<Extent>) -> Vec<Extent> {
        extents.iter_mut().for_each(|extent| extent.start += self.0.superblock.hot_base());
        extents
    }

    /// Records that a file is stored only at `copy` in the hot zone, where its contents are durable and intact. Returns
    /// false if the metadata have no room for the extents.
    pub(super) fn make_resident(self, inode: Inode, copy: Vec<Extent>) -> bool {
        let after = joined(self.shifted(copy), self.0.store.band_blocks());
        if self.0.files().check_pieces_at_most(inode, after.len()).is_err() {
            return false;
        }
        self.0.files().record_extents(inode, None, &after);
        true
    }

    /// Adapts the place of a file in the hot zone to its hint and the mount's options: not in the zone, copied there,
    /// or stored only there. Returns false if the file is not in the zone.
    pub(super) async fn settle_inside(self, candidate: &Candidate) -> Result<bool, FsError> {
        let (core, inode) = (&self.0, candidate.inode);
        let has_copy = core.hot_tier().has_copy(inode);
        let alone: u64 = core.hot_tier().pieces_alone(inode).iter().map(|extent| u64::from(extent.blocks)).sum();
        let is_to_be = core.hot.keeping == Keeping::Alone && candidate.hint != Hint::Never;
        if has_copy && candidate.hint == Hint::Never {
            self.drop_copy(inode);
        } else if has_copy && core.hot_tier().may_be_alone() {
            self.promote_copy(inode).await?;
        } else if alone > 0 && (!is_to_be || alone < candidate.blocks) {
            self.move_out(inode).await?;
        }
        Ok(has_copy || alone > 0)
    }

    /// Turns the copy of a file in the hot zone into its only contents, if the copy is intact on every copy of the
    /// metadata. A damaged copy is dropped, and the file is queued for a new one.
    async fn promote_copy(self, inode: Inode) -> Result<(), FsError> {
        let core = &self.0;
        core.hot.zone.borrow_mut().begin_copy(inode);
        let is_whole = self.damaged_in_copy(inode).await? == 0;
        let is_same = core.hot.zone.borrow_mut().end_copy(inode) && core.hot_tier().has_copy(inode);
        if is_same && is_whole && core.hot_tier().may_be_alone() {
            let copy = core.hot_tier().copy_of(inode);
            // Both records leave the blocks of the copy allocated. A power cut between the records leaves a file in the
            // store without a copy.
            core.record(&[Change::Hot { inode, extents: Vec::new() }]);
            if self.make_resident(inode, copy.clone()) {
                // The file was in the zone before, so it does not count as an arrival.
                core.hot.zone.borrow_mut().counters.came_in -= 1;
            } else {
                core.record(&[Change::Hot { inode, extents: copy }]);
            }
        } else if is_same && !is_whole {
            self.drop_copy(inode);
            self.enqueue_promotion(inode);
        }
        Ok(())
    }

    /// Moves the extents that a file has only in the hot zone to the store. Returns the number of blocks of the zone
    /// that are free once the move is durable. This is 0 if the store has no room to spare, or if the file has changed
    /// meanwhile.
    pub(super) async fn move_out(self, inode: Inode) -> Result<u64, FsError> {
        let core = &self.0;
        let pieces: Pieces = core.hot_tier().pieces_alone(inode).into_iter().map(|extent| (inode, extent)).collect();
        let blocks: u64 = pieces.iter().map(|(_, extent)| u64::from(extent.blocks)).sum();
        let usage = core.store.usage();
        let mut held = Reservation::default();
        if blocks == 0
            || usage.free < blocks + usage.blocks / SPARE_SHARE
            || core.store.reserve(&mut held, blocks).is_err()
        {
            return Ok(0);
        }
        core.log.room().await?;
        let copied = self.0.cleaner().copy_to_room(&pieces, Some(&mut held)).await;
        core.store.unreserve(&mut held);
        match copied {
            Ok(Copied::All) => Ok(blocks),
            Ok(_) | Err(FsError::NoSpace) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Reads every block of the files stored only in the hot zone, on every copy of the metadata. If `repairs` is set,
    /// blocks that are damaged on one copy are rewritten from another.
    pub(in crate::core) async fn scrub_alone(self, repairs: bool) -> Result<Looked, FsError> {
        let mut all = Looked::default();
        for inode in self.files_alone() {
            self.look_at_alone(inode, repairs, &mut all).await?;
        }
        Ok(all)
    }

    /// Like [`HotTier::scrub_alone`], for one file; adds the damage to `looked`.
    pub(super) async fn look_at_alone(self, inode: Inode, repairs: bool, looked: &mut Looked) -> Result<(), FsError> {
        let core = &self.0;
        let read = core.releases.begin_read();
        let mut outcome = Ok(());
        for extent in core.hot_tier().pieces_alone(inode) {
            outcome = outcome.and(self.look_at_piece(inode, extent, repairs, looked).await);
        }
        core.releases.end_read(read);
        self.0.committer().free_released();
        outcome
    }

    async fn look_at_piece(
        self,
        inode: Inode,
        piece: Extent,
        repairs: bool,
        looked: &mut Looked,
    ) -> Result<(), FsError> {
        let core = &self.0;
        let mut next = 0;
        while next < u64::from(piece.blocks) {
            let count = (u64::from(piece.blocks) - next).min(core.bounds.piece_blocks);
            let sums = core.checksums.get(piece.start + next, count).await?;
            let is_right = |block: u64, bytes: &[u8]| checksums::of_block(bytes) == sums[block as usize];
            let first = core.hot_tier().place_in_area(piece.start + next);
            for block in core.metadata.damaged_blocks(first, count, is_right).await {
                let whole = async |area: &crate::device::area::Area| {
                    area.read(first + block, 1).await.ok().filter(|bytes| is_right(block, bytes))
                };
                let found = if repairs {
                    core.metadata.mend_each(first + block, whole).await
                } else {
                    core.metadata.find(whole).await.map(|(bytes, _)| bytes)
                };
                match found {
                    Some(_) => looked.damaged += 1,
                    None => {
                        looked.lost.push((inode, u64::from(piece.at) + next + block));
                        core.metadata.note_loss();
                    }
                }
            }
            next += count;
        }
        Ok(())
    }

    /// Writes blocks that belong to no file yet, from block `at` of the hot zone on, and appends the record of their
    /// checksums.
    pub(super) async fn write_to_zone(self, at: u64, bytes: Vec<u8>) -> Result<(), FsError> {
        let core = &self.0;
        let sums: Vec<u32> = bytes.chunks(BLOCK_BYTES).map(checksums::of_block).collect();
        let block = core.superblock.hot_base() + at;
        core.checksums.set(block, &sums).await?;
        if core.faults.makes(Sabotage::RecordBeforeData) {
            core.faults.delay(block, bytes);
        } else {
            core.hot_tier().write_zone(block, &bytes).await?;
        }
        core.log.room().await?;
        core.log.append(core.time_ns(), &[Change::Checksums { block, sums }]);
        self.0.committer().commit_if_much().await
    }
}

impl HotTier<'_> {
    /// Writes contents of files to the hot zone, from block `block` on. Block numbers of the zone follow those of the
    /// data.
    pub(in crate::core) async fn write_zone(self, block: u64, bytes: &[u8]) -> Result<(), FsError> {
        if self.has_parts() {
            return self.write_part(block - self.0.superblock.hot_base(), bytes).await;
        }
        Ok(self.0.metadata.write(self.place_in_area(block), bytes).await?)
    }
}
