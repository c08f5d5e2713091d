//! Preallocation, `fallocate(2)`: a record reserves room for blocks of a file that are not yet written. The time that
//! this takes does not depend on the number of blocks.
//!
//! ```text
//!   nothing stored ──allocate──► preallocated ──changed──► lent to what is staged ──written──► stored
//!                                    │  ▲                        │
//!                      cut, punched ─┘  └──── given up ──────────┘
//! ```
//!
//! A preallocated block reads as zeros. Its first write has room, however full the store is. A block that is stored is
//! written elsewhere when it changes, and that takes room like any other write. *Staged* data are changes in memory that
//! are not yet written. A preallocated block lends its room to them. A store that keeps a file in one piece, or reserves
//! particular blocks, lends all preallocated room of a file at once. Blocks that are then not written are not
//! preallocated any more.
//!
//! Invariants:
//! 1. The number of preallocated blocks of a file equals the blocks that the store reserves for it, plus those lent to
//!    staged data.
//! 2. A block is preallocated or stored. It is both at most between two records, and the second record ends the
//!    preallocation. So after a power cut in between, too much is reserved and nothing is missing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use super::Files;
use crate::block_run::BlockRun;
use crate::core::CoreParts;
use crate::core::write_back::pieces::{joined, place};
use crate::core::write_back::staged::{Blocks, Open, Staged};
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::format::change::{Change, EXTENT_BYTES, Extent, Inode, STRETCH_BYTES};
use crate::store::Reservation;

const BYTES: u64 = BLOCK_BYTES as u64;

/// Returns how many blocks of `extent` are in `range`.
fn blocks_in(extent: &Extent, range: &Range<u32>) -> u64 {
    extent.within(range.start.into(), range.end.into()).map_or(0, |part| part.blocks.into())
}

/// Reserved room of each file with preallocated blocks. Room lent to staged data is not counted here.
#[derive(Default)]
pub(in crate::core) struct PreallocatedState(RefCell<BTreeMap<Inode, Reservation>>);

impl Files<'_> {
    /// Returns the preallocated blocks of a file in `range`, as extents.
    fn preallocated_in(self, inode: Inode, range: &Range<u32>) -> Vec<Extent> {
        self.0.namespace.borrow().preallocated(inode).within(range.start.into(), range.end.into()).collect()
    }

    /// Returns the number of preallocated blocks of a file.
    fn preallocated_blocks(self, inode: Inode) -> u64 {
        self.0.namespace.borrow().preallocated(inode).blocks()
    }

    /// Returns the number of blocks that are reserved for a file's preallocation and not lent to staged data.
    pub(super) fn preallocated_unlent(self, inode: Inode) -> u64 {
        self.0.preallocated.0.borrow().get(&inode).map_or(0, |held| held.blocks)
    }

    /// Lends the preallocated room of blocks `changed` to `staged`, to which the change is not yet applied.
    pub(in crate::core) fn lend(self, inode: Inode, staged: &mut Staged, changed: &Range<u32>) {
        let mut all = self.0.preallocated.0.borrow_mut();
        let Some(kept) = all.get_mut(&inode) else { return };
        if self.0.store.places().is_some() {
            if kept.blocks > staged.held.blocks {
                std::mem::swap(kept, &mut staged.held);
                staged.lent = staged.held.blocks;
                self.0.store.unreserve(kept);
            }
            return;
        }
        let pieces = self.0.namespace.borrow();
        let pieces = pieces.preallocated(inode).within(changed.start.into(), changed.end.into());
        let new = |piece: Extent| u64::from(piece.blocks) - staged.blocks.with_bytes_in(piece.at..piece.end() as u32);
        let lent = pieces.map(new).sum::<u64>().min(kept.blocks);
        move_blocks(kept, &mut staged.held, lent);
        staged.lent += lent;
    }

    /// Returns reserved room from the staged data to the preallocation of the file, and leaves `blocks` with the staged data.
    pub(in crate::core) fn give_back_lent(self, inode: Inode, staged: &mut Staged, blocks: u64) {
        let surplus = staged.lent.saturating_sub(blocks);
        staged.lent -= surplus;
        if surplus == 0 || self.0.namespace.borrow().get(inode).is_none() {
            return;
        }
        let mut all = self.0.preallocated.0.borrow_mut();
        let kept = all.entry(inode).or_default();
        let Some(places) = self.0.store.places() else {
            let back = surplus.min(staged.held.blocks);
            move_blocks(&mut staged.held, kept, back);
            return;
        };
        let are_same = {
            let namespace = self.0.namespace.borrow();
            let recorded = namespace.preallocated(inode).as_slice().first().map(|first| first.start);
            recorded == places.places_of(&staged.held).first().map(|first| first.start)
        };
        if are_same && kept.blocks == 0 {
            std::mem::swap(kept, &mut staged.held);
        } else {
            // The reserved blocks are not the recorded ones any more, so the preallocation ends.
            self.record_preallocated(inode, 0..u32::MAX, &[]);
        }
    }

    /// Returns how many blocks of a file in `pieces` are preallocated.
    pub(in crate::core) fn preallocated_among(self, inode: Inode, pieces: &[(u32, u32)]) -> u64 {
        if self.preallocated_blocks(inode) == 0 {
            return 0;
        }
        let count = |(at, blocks): &(u32, u32)| {
            let range = *at..at + blocks;
            self.preallocated_in(inode, &range).iter().map(|piece| blocks_in(piece, &range)).sum::<u64>()
        };
        pieces.iter().map(count).sum()
    }

    /// Returns how many blocks in `blocks` take room and are preallocated.
    pub(in crate::core) fn preallocated_staged(self, inode: Inode, blocks: &Blocks) -> u64 {
        let namespace = self.0.namespace.borrow();
        let pieces = namespace.preallocated(inode).as_slice();
        pieces.iter().map(|piece| blocks.with_bytes_in(piece.at..piece.end() as u32)).sum()
    }

    /// Records that `extents` are the preallocated blocks in `range`, in as many records as it takes.
    fn record_preallocated(self, inode: Inode, range: Range<u32>, extents: &[Extent]) {
        let chunks: Vec<&[Extent]> = extents.chunks(self.pieces_in_record()).collect();
        let mut from = range.start;
        for (number, chunk) in chunks.iter().enumerate() {
            let to = chunks.get(number + 1).map_or(range.end, |next| next[0].at);
            self.0.record(&[Change::Preallocated { inode, from, to, extents: chunk.to_vec() }]);
            from = to;
        }
        if chunks.is_empty() {
            self.0.record(&[Change::Preallocated { inode, from, to: range.end, extents: Vec::new() }]);
        }
    }

    /// Reduces the reservation of a file to its preallocated blocks without the `lent` ones, and returns the rest to the
    /// store.
    fn keep_no_more(self, inode: Inode, lent: u64) {
        let wanted = self.preallocated_blocks(inode).saturating_sub(lent);
        let mut all = self.0.preallocated.0.borrow_mut();
        let Some(kept) = all.get_mut(&inode) else { return };
        if wanted == 0 {
            self.0.store.unreserve(kept);
            all.remove(&inode);
        } else if kept.blocks > wanted && self.0.store.places().is_none() {
            let fewer = self.0.store.reserve(kept, wanted);
            fewer.expect("fewer blocks can be reserved than are");
        }
    }

    /// Frees the room that is reserved for the preallocation of a file that is removed.
    pub(super) fn forget_preallocated(self, inode: Inode) {
        if let Some(mut kept) = self.0.preallocated.0.borrow_mut().remove(&inode) {
            self.0.store.unreserve(&mut kept);
        }
    }

    /// Reserves the room that was preallocated before the mount. If a file has got the blocks meanwhile, a power cut
    /// came before the record that ends the preallocation. The preallocation then ends now.
    pub(in crate::core) fn keep_all_preallocated(self) {
        let all: Vec<(Inode, Vec<Extent>)> = {
            let namespace = self.0.namespace.borrow();
            namespace.all_preallocated().map(|(inode, extents)| (inode, extents.as_slice().to_vec())).collect()
        };
        for (inode, extents) in all {
            let run = |extent: &Extent| BlockRun { start: extent.start, blocks: u64::from(extent.blocks) };
            let runs: Vec<BlockRun> = extents.iter().map(run).collect();
            let mut held = Reservation::default();
            if self.0.store.keep(&mut held, &runs) {
                self.0.preallocated.0.borrow_mut().insert(inode, held);
            } else if !self.0.is_read_only {
                self.record_preallocated(inode, 0..u32::MAX, &[]);
            }
        }
    }
}

fn move_blocks(from: &mut Reservation, to: &mut Reservation, blocks: u64) {
    from.blocks -= blocks;
    to.blocks += blocks;
}

/// Returns the parts of `range` outside of all ranges in `taken`, as extents without a place. Ranges in `taken` may overlap.
fn gaps(range: &Range<u32>, mut taken: Vec<(u32, u32)>) -> Vec<Extent> {
    taken.sort_unstable();
    let (mut gaps, mut from) = (Vec::new(), range.start);
    for (start, end) in taken.into_iter().chain([(range.end, range.end)]) {
        let start = start.min(range.end);
        if start > from {
            gaps.push(Extent { at: from, blocks: start - from, start: 0 });
        }
        from = from.max(end);
    }
    gaps
}

/// Returns the extents in order, neighbours joined, and without places on the device.
fn merged(mut pieces: Vec<Extent>) -> Vec<Extent> {
    pieces.sort_unstable_by_key(|piece| piece.at);
    let mut merged: Vec<Extent> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match merged.last_mut().filter(|last| last.end() == u64::from(piece.at)) {
            Some(last) => last.blocks += piece.blocks,
            None => merged.push(Extent { start: 0, ..piece }),
        }
    }
    merged
}

impl Files<'_> {
    /// Reserves room for those bytes from `offset` to `end` that are not stored. The file becomes `end` bytes long
    /// unless it is longer, or `keeps_size`. The caller holds the file's locks. If the store reserves particular blocks,
    /// the caller has written back the staged data of the file.
    pub(super) async fn preallocate(
        self,
        inode: Inode,
        open: &Rc<Open>,
        (offset, end): (u64, u64),
        keeps_size: bool,
    ) -> Result<(), FsError> {
        let core = &self.0;
        let size = core.files().attr(inode)?.attributes.size;
        let range = (offset / BYTES) as u32..end.div_ceil(BYTES) as u32;
        let before = core.namespace.borrow().preallocated(inode).as_slice().to_vec();
        self.add_preallocated(inode, open, &range).await?;
        if keeps_size || end <= size {
            return Ok(());
        }
        let lengthened = self.lengthen_by_record(inode, open, size, end).await;
        if lengthened.is_err() {
            core.files().record_preallocated(inode, 0..u32::MAX, &before);
            core.files().keep_no_more(inode, lent(open));
        }
        lengthened
    }

    async fn add_preallocated(self, inode: Inode, open: &Rc<Open>, range: &Range<u32>) -> Result<(), FsError> {
        let core = &self.0;
        let new = self.not_there(inode, open, range);
        if new.is_empty() {
            return Ok(());
        }
        core.check_metadata_room(STRETCH_BYTES + new.len() as u64 * EXTENT_BYTES)?;
        let added: u64 = new.iter().map(|piece| u64::from(piece.blocks)).sum();
        let is_whole = core.store.is_contiguous();
        let wanted = core.files().preallocated_unlent(inode) + added;
        let whole = u64::from(range.end).max(core.files().attr(inode)?.attributes.size.div_ceil(BYTES));
        let wanted = if is_whole { whole.max(core.files().preallocated_unlent(inode)) } else { wanted };
        match self.keep_preallocated(inode, wanted) {
            // If the request exceeds the drive, room that becomes free does not help.
            Err(FsError::NoSpace)
                if wanted <= core.store.usage().blocks && self.0.write_back().reclaim(inode, open).await? =>
            {
                self.keep_preallocated(inode, wanted)?;
            }
            outcome => outcome?,
        }
        if let Some(places) = core.store.places() {
            // The store may have reserved other blocks than before.
            let all = if is_whole {
                vec![Extent { at: 0, blocks: wanted as u32, start: 0 }]
            } else {
                merged([core.namespace.borrow().preallocated(inode).as_slice(), &new].concat())
            };
            let pieces: Vec<(u32, u32)> = all.iter().map(|piece| (piece.at, piece.blocks)).collect();
            let runs = core.preallocated.0.borrow().get(&inode).map_or(Vec::new(), |held| places.places_of(held));
            core.files().record_preallocated(inode, 0..u32::MAX, &place(&pieces, &runs));
        } else {
            let all = merged([core.files().preallocated_in(inode, range), new].concat());
            core.files().record_preallocated(inode, range.clone(), &all);
        }
        self.0.committer().commit_if_much().await
    }

    fn keep_preallocated(self, inode: Inode, blocks: u64) -> Result<(), FsError> {
        let mut all = self.0.preallocated.0.borrow_mut();
        let kept = all.entry(inode).or_default();
        let outcome = self.0.store.reserve(kept, blocks);
        if kept.blocks == 0 {
            all.remove(&inode);
        }
        outcome
    }

    /// Returns the blocks in `range` of a file that are neither stored, nor in memory, nor preallocated.
    fn not_there(self, inode: Inode, open: &Open, range: &Range<u32>) -> Vec<Extent> {
        let (from, to) = (u64::from(range.start), u64::from(range.end));
        let namespace = self.0.namespace.borrow();
        let stored: Vec<Extent> =
            namespace.get(inode).map_or(Vec::new(), |node| node.extents.within(from, to).collect());
        let preallocated = namespace.preallocated(inode).within(from, to);
        let ends = |piece: Extent| (piece.at, piece.end() as u32);
        let mut taken: Vec<(u32, u32)> = stored.into_iter().chain(preallocated).map(ends).collect();
        for staged in [&open.in_flight, &open.staged] {
            let staged = staged.borrow();
            let blocks = staged.iter().flat_map(|staged| staged.blocks.range(range.clone()));
            taken.extend(blocks.filter(|(_, block)| block.bytes().is_some()).map(|(at, _)| (at, at + 1)));
        }
        gaps(range, taken)
    }

    /// Extends a file to `end` bytes by a record. The bytes behind the old end in the last block must be zeros. If they
    /// are not, or the file has staged data, the file is extended in memory instead.
    async fn lengthen_by_record(self, inode: Inode, open: &Rc<Open>, size: u64, end: u64) -> Result<(), FsError> {
        let core = &self.0;
        let is_staged = open.staged.borrow().is_some();
        if is_staged || !self.ends_in_zeros(inode, size).await? {
            return self.lengthen(inode, open, size, end).await;
        }
        let mut attributes = core.namespace.borrow().node(inode)?.attributes;
        attributes.size = end;
        (attributes.modified_ns, attributes.changed_ns) = (core.time_ns(), core.time_ns());
        core.record(&[Change::Node { inode, attributes }]);
        Ok(())
    }

    async fn ends_in_zeros(self, inode: Inode, size: u64) -> Result<bool, FsError> {
        let inside = (size % BYTES) as usize;
        if inside == 0 {
            return Ok(true);
        }
        let mut last = vec![0; BLOCK_BYTES];
        self.read_stored(inode, size / BYTES, &mut last, true).await?;
        Ok(last[inside..].iter().all(|byte| *byte == 0))
    }

    /// Ends the preallocation of blocks `range`. The caller holds the file's locks.
    pub(super) fn drop_preallocated(self, inode: Inode, open: &Open, range: Range<u32>) {
        let core = &self.0;
        if core.files().preallocated_in(inode, &range).is_empty() {
            return;
        }
        // A store that reserves particular blocks keeps the whole run or none of it.
        let range = if core.store.places().is_some() { 0..u32::MAX } else { range };
        core.files().record_preallocated(inode, range, &[]);
        for place in [&open.in_flight, &open.staged] {
            if let Some(staged) = place.borrow_mut().as_mut() {
                // The staged data keep the room that was lent for other blocks.
                staged.lent = staged.lent.min(core.files().preallocated_staged(inode, &staged.blocks));
            }
        }
        core.files().keep_no_more(inode, lent(open));
    }

    /// Ends the preallocation of blocks `pieces`, which are stored now. If the store reserves particular blocks, all
    /// room of the file was lent, and its whole preallocation ends.
    pub(in crate::core) fn spend_preallocated(self, inode: Inode, open: &Open, pieces: &[(u32, u32)]) {
        let core = &self.0;
        let ends = pieces.first().zip(pieces.last()).map(|((from, _), (at, blocks))| *from..at + blocks);
        let Some(range) = ends.filter(|_| core.files().preallocated_among(inode, pieces) > 0) else { return };
        if core.store.places().is_some() {
            core.files().record_preallocated(inode, 0..u32::MAX, &[]);
        } else {
            let taken: Vec<(u32, u32)> = pieces.iter().map(|(at, blocks)| (*at, at + blocks)).collect();
            let left = core.files().preallocated_in(inode, &range).into_iter();
            let left = left.flat_map(|piece| gaps(&(piece.at..piece.end() as u32), taken.clone())).collect();
            core.files().record_preallocated(inode, range, &joined(left, u64::MAX));
        }
        core.files().keep_no_more(inode, lent(open));
    }
}

/// Returns the number of preallocated blocks that are lent to the staged data of a file.
fn lent(open: &Open) -> u64 {
    [&open.in_flight, &open.staged].iter().map(|place| place.borrow().as_ref().map_or(0, |staged| staged.lent)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::random::Choices;

    /// Compares with a test of each block.
    #[test]
    fn gaps_are_the_blocks_that_nothing_takes() {
        let mut random = Choices::new(5);
        for _ in 0..500 {
            let taken: Vec<(u32, u32)> = (0..random.below(6))
                .map(|_| {
                    let at = random.below(40) as u32;
                    (at, at + 1 + random.below(8) as u32)
                })
                .collect();
            let range = 5..35;
            let is_taken = |block: u32| taken.iter().any(|(from, to)| (*from..*to).contains(&block));
            let expected: Vec<u32> = range.clone().filter(|block| !is_taken(*block)).collect();
            let found = gaps(&range, taken.clone());
            let blocks: Vec<u32> = found.iter().flat_map(|gap| gap.at..gap.at + gap.blocks).collect();
            assert_eq!(blocks, expected, "{taken:?}");
            assert_eq!(merged(found.clone()), found, "neighbours are one");
        }
    }
}
