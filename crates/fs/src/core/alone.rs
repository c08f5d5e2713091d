//! Files alone in the hot zone ([`crate::hot`]): where the metadata are mirrored on flash, the zone is too, and a file that belongs
//! there needs no blocks in the store. Its pieces are ordinary ones, with numbers behind those of the data, so reading, checking,
//! cutting and freeing are the same for all.
//!
//! ```text
//!   small and new ──────────────────────────► alone ──(colder than another, or not to be there)──► copied to the store, recorded
//!   in the store ──(hot: copied, durable)──►   │  └──(written anew: where the zone has room)──► alone
//!   copied ──(the other mirror is whole)──►    │  └──(written anew: where it has none)──► in the store
//! ```
//!
//! Invariants:
//! 1. A file goes alone only while two copies of the metadata are current, and what it has in the zone was written to all of them.
//!    Where one is lost afterwards, the file stays and is read from the other.
//! 2. No record names blocks of the zone before they are durable, and no blocks of the store that hold the contents of such a file
//!    are used again before the record that frees them is.
//! 3. A file is moved out only while the store has room to spare, and never takes room that is reserved: where there is none, it stays.
//! 4. A block that is damaged on one copy is written again from another while a read holds it, so that nobody else has it by then.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::cleaner::{Copied, Pieces};
use super::pieces::{joined, place};
use super::push::Work;
use super::staged::Open;
use super::{Core, Fs, Sabotage};
use crate::device::{BLOCK_BYTES, DeviceFault};
use crate::error::FsError;
use crate::format::change::{Change, Extent, Inode};
use crate::hot::{Candidate, Hint, Keeping, Verdict};
use crate::journal::checksums;
use crate::store::{Held, Run};

/// Files are moved out while so large a share of the store is free besides: a write is to have it.
const SPARE_SHARE: u64 = 32;

/// What looking at the blocks of files that are alone found.
#[derive(Default, Debug)]
pub(super) struct Looked {
    /// Blocks that are damaged on some copy, and whole on another.
    pub damaged: u64,
    /// Blocks that no copy has whole: whose, and which of the file.
    pub lost: Vec<(Inode, u64)>,
}

impl Core {
    /// Whether the hot zone lies with the metadata: on drives no file is alone.
    fn has_zone_in_metadata(&self) -> bool {
        self.superblock.layout.hot.1 > 0
    }

    /// Whether block `block` is one of a hot zone in which files may be alone.
    pub(super) fn is_in_zone(&self, block: u64) -> bool {
        self.has_zone_in_metadata() && block >= self.superblock.hot_base()
    }

    /// Whether files may go alone now.
    pub(super) fn may_be_alone(&self) -> bool {
        self.has_zone_in_metadata() && self.keeping == Keeping::Alone && self.metadata.current_copies() >= 2
    }

    /// The pieces of a file that lie in the zone alone.
    pub(super) fn pieces_alone(&self, inode: Inode) -> Vec<Extent> {
        if !self.has_zone_in_metadata() {
            return Vec::new();
        }
        let mut pieces = self.extents_of(inode);
        pieces.retain(|extent| self.is_in_zone(extent.start));
        pieces
    }

    /// Blocks of `extents` that lie in the zone.
    pub(super) fn blocks_alone(&self, extents: &[Extent]) -> u64 {
        let inside = extents.iter().filter(|extent| self.is_in_zone(extent.start));
        inside.map(|extent| u64::from(extent.blocks)).sum()
    }

    /// The files of which something lies in the zone alone.
    pub(super) fn files_alone(&self) -> BTreeSet<Inode> {
        if !self.has_zone_in_metadata() {
            return BTreeSet::new();
        }
        self.owners.borrow().range(self.superblock.hot_base()..).map(|(_, owner)| owner.inode).collect()
    }

    /// Where block `block` of the zone lies in the area of the metadata.
    fn place_in_area(&self, block: u64) -> u64 {
        self.superblock.layout.hot.0 + block - self.superblock.hot_base()
    }

    /// Reads blocks of data, or of the hot zone.
    pub(super) async fn read_blocks(&self, block: u64, blocks: u64) -> Result<Vec<u8>, DeviceFault> {
        if self.is_in_zone(block) {
            return Ok(self.metadata.read_what_can_be(self.place_in_area(block), blocks).await);
        }
        self.data.read(block, blocks).await
    }

    /// Makes block `block` again so that it matches `sum`: from parity, or from another copy of the zone. The file that has it is
    /// looked at in the background then.
    pub(super) async fn make_again(&self, block: u64, sum: u32) -> Option<Vec<u8>> {
        if !self.is_in_zone(block) {
            return self.data.recover(block, sum).await;
        }
        let owner = self.owners.borrow().range(..=block).next_back().map(|(_, owner)| owner.inode);
        if let Some(inode) = owner {
            let mut hot = self.hot.borrow_mut();
            hot.counters.damaged += 1;
            hot.suspect(inode);
            self.hot_wanted.give();
        }
        let is_right = |bytes: &Vec<u8>| checksums::of_block(bytes) == sum;
        let at = self.place_in_area(block);
        self.metadata.find(async |area| area.read(at, 1).await.ok().filter(is_right)).await.map(|(bytes, _)| bytes)
    }

    /// What lies in the zone of a file is other than before.
    pub(super) fn note_alone(&self, before: &[Extent], after: &[Extent]) {
        let (was, is) = (self.blocks_alone(before), self.blocks_alone(after));
        if was > 0 || is > 0 {
            let mut hot = self.hot.borrow_mut();
            hot.alone_blocks = hot.alone_blocks + is - was;
            hot.counters.came_in += u64::from(was == 0);
            hot.counters.went_out += u64::from(is == 0);
        }
    }
}

impl Fs {
    /// Blocks of the zone for a file that is about to be written as a whole, where it is to be there alone.
    pub(super) fn room_alone(&self, inode: Inode, work: &Work) -> Option<Vec<Run>> {
        let core = &self.0;
        if !work.is_whole || work.pieces.is_empty() || !core.may_be_alone() || core.is_checkpoint_full() {
            return None;
        }
        let candidate = Candidate { inode, blocks: work.blocks(), hint: core.hint_of(inode) };
        let mut hot = core.hot.borrow_mut();
        let fits = hot.judge(&candidate, &[0], Vec::new, core.clock.now_ns()) == Verdict::Fits;
        if fits { hot.take(candidate.blocks) } else { None }
    }

    /// Writes all of a file to `runs` of the zone, and makes the record; false where the flash does not take it: then it is for the
    /// store, and the runs are free again.
    pub(super) async fn write_alone(
        &self,
        inode: Inode,
        open: &Rc<Open>,
        work: &Work,
        runs: &[Run],
    ) -> Result<bool, FsError> {
        let core = &self.0;
        let extents = joined(self.shifted(place(&work.pieces, runs)), core.store.band_blocks());
        let fits = extents.len() <= core.pieces_in_record();
        let written =
            if fits { self.write_pieces_alone(inode, open, &extents).await.map(|()| true) } else { Ok(false) };
        let outcome = match written {
            Ok(true) if core.may_be_alone() => {
                core.log.room().await.and_then(|()| self.finish(inode, open, work, &extents)).map(|()| true)
            }
            Ok(_) | Err(FsError::Device(_)) => Ok(false),
            Err(error) => Err(error),
        };
        if !matches!(outcome, Ok(true)) {
            runs.iter().for_each(|run| core.hot.borrow_mut().free(*run));
        }
        outcome
    }

    /// Writes blocks of a file to pieces of the zone; stops when nobody can reach the file any more.
    async fn write_pieces_alone(&self, inode: Inode, open: &Rc<Open>, extents: &[Extent]) -> Result<(), FsError> {
        let base = self.0.superblock.hot_base();
        for extent in extents {
            let mut next = 0;
            while next < u64::from(extent.blocks) {
                let count = (u64::from(extent.blocks) - next).min(self.0.blocks_to_zone());
                let mut bytes = Vec::new();
                self.gather(inode, open, u64::from(extent.at) + next, count, &mut bytes).await?;
                self.write_to_zone(extent.start - base + next, bytes).await?;
                if self.is_forsaken(inode, open) {
                    return Err(FsError::Stale);
                }
                next += count;
            }
        }
        self.0.metadata.owe_flush();
        Ok(())
    }

    /// Extents in blocks of the zone, as they are numbered behind those of the data.
    fn shifted(&self, mut extents: Vec<Extent>) -> Vec<Extent> {
        extents.iter_mut().for_each(|extent| extent.start += self.0.superblock.hot_base());
        extents
    }

    /// A file whose contents lie at `copy` of the zone, durable and whole, has them there alone from now on; false if the metadata
    /// have no room for that.
    pub(super) fn go_alone(&self, inode: Inode, copy: Vec<Extent>) -> bool {
        let after = joined(self.shifted(copy), self.0.store.band_blocks());
        if self.0.check_pieces_at_most(inode, after.len()).is_err() {
            return false;
        }
        self.record_extents(inode, None, &after);
        true
    }

    /// Lets a file that is in the zone be as it is to be there: without it, with a copy, or alone. False if it is not in the zone.
    pub(super) async fn settle_inside(&self, candidate: &Candidate) -> Result<bool, FsError> {
        let (core, inode) = (&self.0, candidate.inode);
        let has_copy = core.has_copy(inode);
        let alone: u64 = core.pieces_alone(inode).iter().map(|extent| u64::from(extent.blocks)).sum();
        let is_to_be = core.keeping == Keeping::Alone && candidate.hint != Hint::Never;
        if has_copy && candidate.hint == Hint::Never {
            self.drop_copy(inode);
        } else if has_copy && core.may_be_alone() {
            self.lone_copy(inode).await?;
        } else if alone > 0 && (!is_to_be || alone < candidate.blocks) {
            self.move_out(inode).await?;
        }
        Ok(has_copy || alone > 0)
    }

    /// The copy of a file in the zone becomes all that there is of it, if it is whole on every copy of the metadata; else it is
    /// dropped, and made anew.
    async fn lone_copy(&self, inode: Inode) -> Result<(), FsError> {
        let core = &self.0;
        core.hot.borrow_mut().begin_copy(inode);
        let is_whole = self.damaged_in_copy(inode).await? == 0;
        let is_same = core.hot.borrow_mut().end_copy(inode) && core.has_copy(inode);
        if is_same && is_whole && core.may_be_alone() {
            let copy = core.copy_of(inode);
            // Its blocks are not freed, but change hands: a cut between the two records leaves a file without a copy.
            core.record(&[Change::Hot { inode, extents: Vec::new() }]);
            if self.go_alone(inode, copy.clone()) {
                // It was there already.
                core.hot.borrow_mut().counters.came_in -= 1;
            } else {
                core.record(&[Change::Hot { inode, extents: copy }]);
            }
        } else if is_same && !is_whole {
            self.drop_copy(inode);
            self.want_hot(inode);
        }
        Ok(())
    }

    /// Moves what a file has in the zone alone to the store; blocks that are free when that is durable. None are where the store has
    /// no room to spare, or the file has changed meanwhile.
    pub(super) async fn move_out(&self, inode: Inode) -> Result<u64, FsError> {
        let core = &self.0;
        let pieces: Pieces = core.pieces_alone(inode).into_iter().map(|extent| (inode, extent)).collect();
        let blocks: u64 = pieces.iter().map(|(_, extent)| u64::from(extent.blocks)).sum();
        let usage = core.store.usage();
        let mut held = Held::default();
        if blocks == 0
            || usage.free < blocks + usage.blocks / SPARE_SHARE
            || core.store.reserve(&mut held, blocks).is_err()
        {
            return Ok(0);
        }
        core.log.room().await?;
        let copied = self.copy_to_room(&pieces, Some(&mut held)).await;
        core.store.unreserve(&mut held);
        match copied {
            Ok(Copied::All) => Ok(blocks),
            Ok(_) | Err(FsError::NoSpace) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Looks at every block of files that are alone, on every copy of the metadata. If it `repairs`, what is damaged on one is
    /// written again from another.
    pub(super) async fn scrub_alone(&self, repairs: bool) -> Result<Looked, FsError> {
        let mut all = Looked::default();
        for inode in self.0.files_alone() {
            self.look_at_alone(inode, repairs, &mut all).await?;
        }
        Ok(all)
    }

    /// The same of one file.
    pub(super) async fn look_at_alone(&self, inode: Inode, repairs: bool, looked: &mut Looked) -> Result<(), FsError> {
        let core = &self.0;
        let read = core.releases.borrow_mut().begin_read();
        let mut outcome = Ok(());
        for extent in core.pieces_alone(inode) {
            outcome = outcome.and(self.look_at_piece(inode, extent, repairs, looked).await);
        }
        core.releases.borrow_mut().end_read(read);
        self.free_released();
        outcome
    }

    async fn look_at_piece(
        &self,
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
            let first = core.place_in_area(piece.start + next);
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
                    None => looked.lost.push((inode, u64::from(piece.at) + next + block)),
                }
            }
            next += count;
        }
        Ok(())
    }

    /// Writes blocks that are nobody's from block `at` of the zone on, and makes the record of their checksums.
    pub(super) async fn write_to_zone(&self, at: u64, bytes: Vec<u8>) -> Result<(), FsError> {
        let core = &self.0;
        let sums: Vec<u32> = bytes.chunks(BLOCK_BYTES).map(checksums::of_block).collect();
        let block = core.superblock.hot_base() + at;
        core.checksums.set(block, &sums).await?;
        if core.sabotage == Some(Sabotage::RecordBeforeData) {
            core.late_writes.borrow_mut().push((block, bytes));
        } else {
            core.write_zone(block, &bytes).await?;
        }
        core.log.room().await?;
        core.log.append(core.time_ns(), &[Change::Checksums { block, sums }]);
        self.commit_if_much().await
    }
}

impl Core {
    /// Writes contents of files to the zone.
    pub(super) async fn write_zone(&self, block: u64, bytes: &[u8]) -> Result<(), FsError> {
        if self.has_parts() {
            return self.write_part(block - self.superblock.hot_base(), bytes).await;
        }
        Ok(self.metadata.write(self.place_in_area(block), bytes).await?)
    }
}
