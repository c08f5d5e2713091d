//! Files in the hot zone ([`crate::hot`]): reads from the zone, and promotion and eviction in the background. This
//! module handles files with a copy there; [`self::resident`] handles files that are stored nowhere else.
//!
//! A copy is written to free blocks, made durable, and then named by a record. Every change of a file drops its copy in
//! the same record. So after a power cut at any time, a file has a copy equal to its contents in the store, or no copy.
//!
//! Invariants:
//! 1. A copy that a record names was durable before, on every copy of the metadata or on its drive. It is equal to the
//!    contents of the file in the store.
//! 2. Blocks of a copy are reused only when the record that drops the copy is durable and no reader uses the blocks any
//!    more.
//! 3. A reader of a file waits for no copy to be made. If a copy is missing or damaged, the store is read.
//! 4. While a copy is made, blocks become free as usual: each read of the store is registered by itself. The parts of a
//!    copy may be of different times, so the copy is named only if its file has not changed since the copying began.
//! 5. No record of a copy is larger than [`Bounds::hot_record_bytes`](crate::core::Bounds::hot_record_bytes), nor than a
//!    frame of the log. Checksums are distributed over several records. A file with more extents than a record can hold
//!    is not promoted.

pub(in crate::core) mod hints;
pub(in crate::core) mod parts;
mod resident;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use self::parts::HotParts;
use self::resident::Looked;
use crate::block_run::BlockRun;
use crate::core::write_back::pieces::{joined, place};
use crate::core::{Core, CoreParts, Sabotage};
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::executor::{Signal, select};
use crate::format::change::{Change, EXTENT_BYTES, Extent, Inode, LIST_BYTES};
use crate::hot::{Candidate, HotStatus, HotZone, Keeping, Verdict};
use crate::journal::checksums;
use crate::namespace::Namespace;

/// Files in the hot zone.
#[derive(Clone, Copy)]
pub(in crate::core) struct HotTier<'a>(&'a Rc<Core>);

impl<'a> HotTier<'a> {
    pub(in crate::core) fn of(core: &'a Rc<Core>) -> HotTier<'a> {
        HotTier(core)
    }
}

/// Largest share of a checkpoint in use, in percent, up to which copies are made: their records must leave room for
/// files.
const CHECKPOINT_PERCENT: u64 = 75;

/// Bytes of a checksum in a record.
const SUM_BYTES: u64 = 4;

/// State of the hot zone.
pub(in crate::core) struct HotState {
    /// Whether files in the hot zone are in the store, too.
    keeping: Keeping,
    /// Contents and heat of the zone; it has no blocks if the file system has no hot zone.
    zone: RefCell<HotZone>,
    /// Parts of the zone that lie on drives.
    parts: HotParts,
    /// Signal that wakes the task of the hot zone: a file waits for promotion, or a part changed.
    wanted: Signal,
    /// Signal that a changed hint has been taken from its queue.
    hint_taken: Signal,
}

impl HotState {
    pub(in crate::core) fn new(keeping: Keeping, zone: HotZone, parts: HotParts) -> HotState {
        HotState { keeping, zone: RefCell::new(zone), parts, wanted: Signal::default(), hint_taken: Signal::default() }
    }

    /// Returns the number of blocks that files have only in the zone.
    pub(in crate::core) fn alone_blocks(&self) -> u64 {
        self.zone.borrow().alone_blocks
    }

    /// Returns the heat of the `count` hottest files at time `now_ns`.
    pub(in crate::core) fn hottest(&self, count: usize, now_ns: u64) -> Vec<(Inode, u32)> {
        self.zone.borrow().hottest(count, now_ns)
    }
}

/// A copy that is written, but not named by a record yet. The file keeps its blocks in the store, or is to give them
/// back.
struct Made {
    inode: Inode,
    runs: Vec<BlockRun>,
    copy: Vec<Extent>,
}

impl HotTier<'_> {
    pub(in crate::core) fn has_hot_zone(self) -> bool {
        self.0.superblock.hot_blocks() > 0
    }

    /// Returns free blocks to the store or to the hot zone.
    pub(in crate::core) fn free(self, run: BlockRun) {
        let base = self.0.superblock.hot_base();
        if self.has_hot_zone() && run.start >= base {
            self.0.hot.zone.borrow_mut().free(BlockRun { start: run.start - base, blocks: run.blocks });
        } else {
            self.0.store.free(run);
        }
    }

    fn copy_of(self, inode: Inode) -> Vec<Extent> {
        self.0.namespace.borrow().hot_copy(inode).to_vec()
    }

    fn has_copy(self, inode: Inode) -> bool {
        !self.0.namespace.borrow().hot_copy(inode).is_empty()
    }

    /// Returns whether the checkpoint is so full that more files in the hot zone would take room that other files need.
    fn is_checkpoint_full(self) -> bool {
        self.0.namespace.borrow().encoded_bytes() * 100 > self.0.committer.checkpoint_bytes_max() * CHECKPOINT_PERCENT
    }

    /// Returns the largest number of blocks in one write to the hot zone.
    fn blocks_to_zone(self) -> u64 {
        self.0.bounds.piece_blocks.min(self.fit_a_hot_record(SUM_BYTES) as u64)
    }

    /// Cancels a copy of the file that is being made. If the file has a copy, returns the change that drops the copy,
    /// and the blocks that the change frees.
    pub(in crate::core) fn copy_to_drop(self, inode: Inode) -> Option<(Change, Vec<BlockRun>)> {
        self.0.hot.zone.borrow_mut().give_up_copy(inode);
        let copy = self.copy_of(inode);
        if copy.is_empty() || self.0.faults.makes(Sabotage::CopyKept) {
            return None;
        }
        self.0.hot.zone.borrow_mut().counters.went_out += 1;
        let base = self.0.superblock.hot_base();
        let run = |extent: &Extent| BlockRun { start: base + extent.start, blocks: u64::from(extent.blocks) };
        Some((Change::Hot { inode, extents: Vec::new() }, copy.iter().map(run).collect()))
    }

    /// Returns the properties by which the hot zone judges a file, or `None` if it is not a regular file with stored
    /// blocks.
    fn candidate(self, inode: Inode) -> Option<Candidate> {
        let namespace = self.0.namespace.borrow();
        let node = namespace.get(inode).filter(|node| node.is_regular())?;
        let (blocks, hint) = (node.extents.blocks(), self.hint_of(inode));
        Some(Candidate { inode, blocks, hint }).filter(|candidate| candidate.blocks > 0)
    }

    /// Returns how many items of `bytes` bytes a record of a copy can hold, at least 1.
    fn fit_a_hot_record(self, bytes: u64) -> usize {
        let most = self.0.bounds.hot_record_bytes.min(self.0.log.record_bytes_max());
        (most.saturating_sub(LIST_BYTES) / bytes).max(1) as usize
    }

    /// Returns all files in the hot zone, each with the number of the part that it is in.
    fn inside(self) -> Vec<(usize, Candidate)> {
        let inside = self.files_inside().into_iter().filter_map(|inode| self.candidate(inode));
        inside.map(|candidate| (self.part_with(candidate.inode), candidate)).collect()
    }

    /// Returns the part of the hot zone that holds the copy of a file. Files stored only in the zone are in its only
    /// part.
    fn part_with(self, inode: Inode) -> usize {
        let first = self.0.namespace.borrow().hot_copy(inode).first().map_or(0, |extent| extent.start);
        self.0.hot.zone.borrow().part_of(first)
    }

    fn files_inside(self) -> BTreeSet<Inode> {
        let mut inodes = self.files_alone();
        inodes.extend(self.0.namespace.borrow().hot_copies().map(|(inode, _)| inode));
        inodes
    }

    /// Returns the state of the hot zone.
    pub(in crate::core) fn hot_status(self) -> HotStatus {
        let (hot, alone_files) = (self.0.hot.zone.borrow(), self.files_alone().len() as u64);
        let files = alone_files + self.0.namespace.borrow().hot_copies().count() as u64;
        let alone_blocks = hot.alone_blocks;
        HotStatus { blocks: hot.blocks(), used: hot.used(), files, alone_files, alone_blocks, counters: hot.counters }
    }
}

/// Marks the blocks of all copies as used in the hot zone.
///
/// # Errors
/// Copies overlap, lie outside of the zone, or have other blocks than their files.
pub(in crate::core) fn claim_copies(namespace: &Namespace, hot: &mut HotZone) -> Result<(), FsError> {
    let wrong = |reason: String| FsError::format("the hot zone", reason);
    for (inode, copy) in namespace.hot_copies() {
        copy.iter().try_for_each(|extent| hot.claim(extent)).map_err(wrong)?;
        let stored = namespace.get(inode).map_or(&[][..], |node| node.extents.as_slice());
        if ranges(copy) != ranges(stored) {
            return Err(wrong(format!("the copy of file {inode} has other blocks than the file")));
        }
    }
    Ok(())
}

/// Returns the ranges of blocks of the file that `extents` cover, each as first block and end. Adjacent ranges are
/// joined.
fn ranges(extents: &[Extent]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for extent in extents {
        match ranges.last_mut() {
            Some((_, end)) if *end == u64::from(extent.at) => *end = extent.end(),
            _ => ranges.push((u64::from(extent.at), extent.end())),
        }
    }
    ranges
}

impl HotTier<'_> {
    /// Counts a read of blocks `first` to `end` of a file for the file's heat.
    pub(in crate::core) fn touch(self, inode: Inode, first: u64, end: u64) {
        let core = &self.0;
        if core.hot_tier().has_hot_zone() {
            core.hot.zone.borrow_mut().touch(inode, (first, end), core.executor.now_ns());
        }
    }

    /// Queues a file, for the background task to decide whether the file is promoted or evicted.
    pub(in crate::core) fn enqueue_promotion(self, inode: Inode) {
        let core = &self.0;
        if core.hot_tier().has_hot_zone() && !core.is_read_only && core.hot.zone.borrow_mut().want(inode) {
            core.hot.wanted.give();
        }
    }

    /// Forgets the heat of a removed file, and removes the file from the queue.
    pub(in crate::core) fn forget_hot(self, inode: Inode) {
        if self.has_hot_zone() {
            self.0.hot.zone.borrow_mut().forget(inode);
        }
    }

    /// Reads blocks of a file from its copy in the hot zone. Returns false if there is no copy, or if the blocks are
    /// intact on no device.
    pub(in crate::core) async fn read_copy(self, inode: Inode, first: u64, into: &mut [u8]) -> bool {
        let core = &self.0;
        if !core.hot_tier().has_hot_zone() {
            return false;
        }
        loop {
            let copy = core.hot_tier().copy_of(inode);
            if copy.is_empty() || !core.hot_tier().is_believed(&copy) {
                let is_alone = self.is_alone(inode, first, (into.len() / BLOCK_BYTES) as u64);
                let mut hot = core.hot.zone.borrow_mut();
                hot.counters.hits += u64::from(is_alone);
                hot.counters.misses += u64::from(!is_alone);
                drop(hot);
                if !is_alone {
                    self.enqueue_promotion(inode);
                }
                return false;
            }
            let read = core.releases.begin_read();
            let whole = self.read_blocks_of_copy(&copy, first, into).await;
            core.releases.end_read(read);
            self.0.committer().free_released();
            // The copy may have been dropped and its blocks reused meanwhile: then the bytes read may be wrong.
            if core.hot_tier().copy_of(inode) != copy {
                continue;
            }
            let mut hot = core.hot.zone.borrow_mut();
            hot.counters.hits += u64::from(whole.is_some());
            if whole != Some(true) {
                hot.counters.damaged += 1;
                hot.suspect(inode);
                drop(hot);
                core.hot.wanted.give();
            }
            return whole.is_some();
        }
    }

    /// Returns block `block` of the store from the copy of its file in the hot zone, if there is one and it matches
    /// checksum `sum`.
    pub(in crate::core) async fn block_of_copy(self, block: u64, sum: u32) -> Option<Vec<u8>> {
        let core = &self.0;
        let (inode, at) = self.0.repair().file_with(block)?;
        let copy = core.hot_tier().copy_of(inode);
        if copy.is_empty() || !core.hot_tier().is_believed(&copy) {
            return None;
        }
        let mut bytes = vec![0; BLOCK_BYTES];
        let read = core.releases.begin_read();
        let whole = self.read_blocks_of_copy(&copy, at, &mut bytes).await;
        core.releases.end_read(read);
        self.0.committer().free_released();
        whole.filter(|_| checksums::of_block(&bytes) == sum).map(|_| bytes)
    }

    /// Returns whether all stored blocks in a range of a file lie only in the hot zone. False if no block is stored.
    fn is_alone(self, inode: Inode, first: u64, blocks: u64) -> bool {
        let namespace = self.0.namespace.borrow();
        let Some(node) = namespace.get(inode) else { return false };
        let mut pieces = node.extents.within(first, first + blocks).peekable();
        pieces.peek().is_some() && pieces.all(|extent| self.is_in_zone(extent.start))
    }

    /// Reads blocks of a copy from its drive, or from the first device of the metadata on which they are intact.
    /// Returns false if they were damaged on an earlier device, and `None` if they are intact on no device.
    async fn read_blocks_of_copy(self, copy: &[Extent], first: u64, into: &mut [u8]) -> Option<bool> {
        let core = &self.0;
        let end = first + (into.len() / BLOCK_BYTES) as u64;
        let mut is_whole = true;
        into.fill(0);
        for extent in copy.iter().filter_map(|extent| extent.within(first, end)) {
            let blocks = u64::from(extent.blocks);
            let sums = core.checksums.get(core.superblock.hot_base() + extent.start, blocks).await.ok()?;
            let is_right = |bytes: &Vec<u8>| {
                bytes.chunks(BLOCK_BYTES).zip(&sums).all(|(block, sum)| checksums::of_block(block) == *sum)
            };
            let (bytes, is_damaged) = if core.hot_tier().has_parts() {
                (core.hot_tier().read_part(extent.start, blocks).await.filter(is_right)?, false)
            } else {
                let at = core.superblock.layout.hot.0 + extent.start;
                core.metadata.find(async |area| area.read(at, blocks).await.ok().filter(is_right)).await?
            };
            is_whole &= !is_damaged;
            let from = (u64::from(extent.at) - first) as usize * BLOCK_BYTES;
            into[from..from + bytes.len()].copy_from_slice(&bytes);
        }
        Some(is_whole)
    }

    /// Promotes queued files to the hot zone, and drops damaged copies, until the file system is unmounted.
    pub(in crate::core) async fn keep_hot_files(self) {
        let core = self.0.clone();
        while !core.shutdown.has_begun() {
            let lost = core.data.array().filter(|_| core.hot_tier().has_parts()).map(|array| array.until_short());
            // The next caller that commits gets the error. A part that could not be brought into use is not read.
            let is_kept = self.keep_parts().await.is_ok();
            let suspects = core.hot.zone.borrow_mut().take_suspects();
            for inode in suspects {
                self.drop_copy(inode);
                // If blocks cannot be repaired, their next reader gets the error.
                let _ = self.look_at_alone(inode, true, &mut Looked::default()).await;
            }
            if self.review().await || self.judge_rehinted().await {
                continue;
            }
            let wanted = core.hot.zone.borrow_mut().take_wanted(core.bounds.hot_batch.max(1));
            if wanted.is_empty() && is_kept && core.hot_tier().has_parts_to_keep() {
                continue;
            }
            if wanted.is_empty() {
                let asked = select(core.hot.wanted.next(), core.shutdown.next());
                match lost {
                    Some(lost) => select(asked, lost).await,
                    None => asked.await,
                }
                continue;
            }
            // If a copy could not be made, the file stays in the store.
            let _ = self.bring_in(wanted).await;
        }
    }

    /// Judges all files in the hot zone again if a condition for all of them has changed. Returns false if none has.
    async fn review(self) -> bool {
        let core = &self.0;
        if !core.hot.zone.borrow_mut().take_review() {
            return false;
        }
        let inside: Vec<Inode> = core.hot_tier().files_inside().into_iter().collect();
        for some in inside.chunks(core.bounds.hot_batch.max(1)) {
            if core.shutdown.has_begun() {
                break;
            }
            let _ = self.bring_in(some.to_vec()).await;
            core.executor.yield_now().await;
        }
        true
    }

    /// Asks the background task to judge all files in the hot zone again if some must be moved to comply with the option
    /// [`Keeping`].
    pub(in crate::core) fn review_misplaced(self) {
        let core = &self.0;
        let has_to_settle = match core.hot.keeping {
            Keeping::Copies => core.hot.alone_blocks() > 0,
            Keeping::Alone => core.hot_tier().may_be_alone() && core.namespace.borrow().hot_copies().next().is_some(),
        };
        if has_to_settle {
            self.review_hot();
        }
    }

    /// Asks the background task to judge all files in the hot zone again.
    pub(in crate::core) fn review_hot(self) {
        let core = &self.0;
        if core.hot_tier().has_hot_zone() && !core.is_read_only {
            core.hot.zone.borrow_mut().ask_review();
            core.hot.wanted.give();
        }
    }

    /// Drops the copy of a file, if it has one.
    fn drop_copy(self, inode: Inode) {
        if let Some((change, runs)) = self.copy_to_drop(inode) {
            let record = self.0.record(&[change]);
            self.0.write_back().release(record, runs);
        }
    }

    /// Evicts a file from the hot zone. Returns the number of blocks of the zone that are free once the eviction is
    /// durable.
    async fn let_out(self, inode: Inode) -> Result<u64, FsError> {
        let blocks = self.copy_of(inode).iter().map(|extent| u64::from(extent.blocks)).sum();
        if blocks == 0 {
            return self.move_out(inode).await;
        }
        self.drop_copy(inode);
        Ok(blocks)
    }

    /// Judges files, promotes those that may be in the hot zone, and evicts those that must not be there.
    async fn bring_in(self, inodes: Vec<Inode>) -> Result<(), FsError> {
        let core = &self.0;
        core.log.room().await?;
        let chosen = self.choose(inodes).await?;
        if chosen.is_empty() {
            return Ok(());
        }
        self.copy_in(chosen).await?;
        self.0.committer().commit_if_much().await
    }

    /// Chooses the files among `inodes` that are promoted, and allocates blocks of the hot zone for each. Evicts colder
    /// files for them.
    async fn choose(self, inodes: Vec<Inode>) -> Result<Vec<(Inode, Vec<BlockRun>)>, FsError> {
        let core = &self.0;
        let (mut chosen, mut pushing) = (Vec::new(), Vec::new());
        let mut leaving = vec![0u64; core.hot.zone.borrow().parts()];
        for inode in inodes {
            let Some(candidate) = core.hot_tier().candidate(inode) else { continue };
            // After an error the file stays as it was.
            if self.settle_inside(&candidate).await.unwrap_or(true) {
                continue;
            }
            // The write-back of staged data would drop the copy at once. It queues the file again at its end.
            let is_changing = self.0.files().open_of(inode).is_some_and(|open| open.staged.borrow().is_some());
            let is_scattered =
                ranges(&core.files().extents_of(inode)).len() > core.hot_tier().fit_a_hot_record(EXTENT_BYTES);
            if is_changing || is_scattered || core.hot_tier().is_checkpoint_full() {
                continue;
            }
            let inside = || core.hot_tier().inside();
            let verdict = core.hot.zone.borrow().judge(&candidate, &leaving, inside, core.executor.now_ns());
            match verdict {
                Verdict::Stays => {}
                Verdict::Fits => {
                    let runs = core.hot.zone.borrow_mut().take(candidate.blocks);
                    chosen.extend(runs.map(|runs| (inode, runs)));
                }
                Verdict::Push { part, colder } => {
                    for inode in colder {
                        leaving[part] += self.let_out(inode).await.unwrap_or(0);
                    }
                    leaving[part] = leaving[part].saturating_sub(candidate.blocks);
                    pushing.push(candidate);
                }
            }
        }
        if !pushing.is_empty() {
            if let Err(error) = self.0.committer().commit_all().await {
                chosen
                    .iter()
                    .flat_map(|(_, runs)| runs)
                    .for_each(|run: &BlockRun| core.hot.zone.borrow_mut().free(*run));
                return Err(error);
            }
            for candidate in pushing {
                let runs = core.hot.zone.borrow_mut().take(candidate.blocks);
                chosen.extend(runs.map(|runs| (candidate.inode, runs)));
            }
        }
        Ok(chosen)
    }

    /// Copies files to the blocks allocated for each, and records the copies of files that have not changed meanwhile.
    async fn copy_in(self, chosen: Vec<(Inode, Vec<BlockRun>)>) -> Result<(), FsError> {
        let core = &self.0;
        let give_back = |inode: Inode, runs: &[BlockRun]| {
            let mut hot = core.hot.zone.borrow_mut();
            hot.give_up_copy(inode);
            runs.iter().for_each(|run| hot.free(*run));
        };
        let mut all = Vec::new();
        for (inode, runs) in chosen {
            match self.write_copy(inode, &runs).await {
                Ok(Some(copy)) => all.push(Made { inode, runs, copy }),
                Ok(None) | Err(_) => give_back(inode, &runs),
            }
        }
        if core.hot_tier().has_parts() {
            // A part whose drive cannot flush is given up, and the copies on it with the part.
            core.hot_tier().flush_parts().await;
        } else if !core.faults.makes(Sabotage::CopyBeforeDurable)
            && let Err(fault) = core.metadata.flush().await
        {
            all.iter().for_each(|made| give_back(made.inode, &made.runs));
            return Err(fault.into());
        }
        for Made { inode, runs, copy } in all {
            // The records of many copies in many extents would fill the log.
            let has_room = core.log.room().await.is_ok();
            if !has_room || !self.name_copy(inode, copy) {
                give_back(inode, &runs);
                self.enqueue_promotion(inode);
            }
        }
        Ok(())
    }

    /// Records a copy. Returns false if the file has changed meanwhile, or if the metadata have no room.
    fn name_copy(self, inode: Inode, copy: Vec<Extent>) -> bool {
        let core = &self.0;
        let is_same = core.hot.zone.borrow_mut().end_copy(inode) && !core.hot_tier().has_copy(inode);
        if is_same && core.hot_tier().may_be_alone() {
            return self.make_resident(inode, copy);
        }
        let bytes = LIST_BYTES + copy.len() as u64 * EXTENT_BYTES;
        if !is_same || core.check_metadata_room(bytes).is_err() {
            return false;
        }
        core.record(&[Change::Hot { inode, extents: copy }]);
        core.hot.zone.borrow_mut().counters.came_in += 1;
        true
    }

    /// Writes the stored contents of a file to `runs` of the hot zone. Returns the extents of the copy, or `None` if
    /// the file has another length by now or the copy would have too many extents.
    async fn write_copy(self, inode: Inode, runs: &[BlockRun]) -> Result<Option<Vec<Extent>>, FsError> {
        let core = &self.0;
        let of = core.files().extents_of(inode);
        let blocks: u64 = of.iter().map(|extent| u64::from(extent.blocks)).sum();
        if blocks != runs.iter().map(|run| run.blocks).sum::<u64>() {
            return Ok(None);
        }
        let pieces: Vec<(u32, u32)> = of.iter().map(|extent| (extent.at, extent.blocks)).collect();
        let copy = joined(place(&pieces, runs), u64::MAX);
        if copy.len() > core.hot_tier().fit_a_hot_record(EXTENT_BYTES) {
            return Ok(None);
        }
        let piece_blocks = core.hot_tier().blocks_to_zone();
        core.hot.zone.borrow_mut().begin_copy(inode);
        for extent in &copy {
            let mut next = u64::from(extent.at);
            while next < extent.end() {
                let count = (extent.end() - next).min(piece_blocks);
                let at = extent.start + next - u64::from(extent.at);
                let mut bytes = vec![0; count as usize * BLOCK_BYTES];
                self.0.write_back().read_to_change(inode, next, &mut bytes, |_| false).await?;
                self.write_to_zone(at, bytes).await?;
                next += count;
            }
        }
        Ok(Some(copy))
    }

    /// Reads every copy in the hot zone, on its drive or on every device of the metadata. Returns the number of damaged
    /// blocks. If `repairs` is set, damaged copies are dropped, and their files queued for new ones.
    pub(in crate::core) async fn scrub_hot(self, repairs: bool) -> Result<u64, FsError> {
        let core = &self.0;
        let inodes: Vec<Inode> = core.namespace.borrow().hot_copies().map(|(inode, _)| inode).collect();
        let mut damaged = 0;
        for inode in inodes {
            let read = core.releases.begin_read();
            let found = self.damaged_in_copy(inode).await;
            core.releases.end_read(read);
            self.0.committer().free_released();
            let found = found?;
            damaged += found;
            if found > 0 && repairs {
                self.drop_copy(inode);
                self.enqueue_promotion(inode);
            }
        }
        Ok(damaged)
    }

    /// Returns the number of blocks in the copy of a file that are damaged on its drive, or on some device of the
    /// metadata.
    async fn damaged_in_copy(self, inode: Inode) -> Result<u64, FsError> {
        let core = &self.0;
        let mut damaged = 0;
        for extent in core.hot_tier().copy_of(inode) {
            let mut next = 0;
            while next < u64::from(extent.blocks) {
                let count = (u64::from(extent.blocks) - next).min(core.bounds.piece_blocks);
                let at = extent.start + next;
                let sums = core.checksums.get(core.superblock.hot_base() + at, count).await?;
                let is_right = |block: u64, bytes: &[u8]| checksums::of_block(bytes) == sums[block as usize];
                damaged += if core.hot_tier().has_parts() {
                    core.hot_tier().damaged_on_drive(at, count, is_right).await
                } else {
                    let first = core.superblock.layout.hot.0 + at;
                    core.metadata.damaged_blocks(first, count, is_right).await.len() as u64
                };
                next += count;
            }
        }
        Ok(damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::change::Attributes;
    use crate::format::file_type::REGULAR;

    #[test]
    fn pieces_that_differ_only_in_where_they_are_cut_are_of_the_same_blocks() {
        let extent = |at, blocks, start| Extent { at, blocks, start };
        assert_eq!(ranges(&[extent(0, 2, 9), extent(2, 3, 50), extent(7, 1, 4)]), [(0, 5), (7, 8)]);
        assert_eq!(ranges(&[]), []);
    }

    #[test]
    fn copies_that_cannot_be_are_errors() {
        let extent = |at, blocks, start| Extent { at, blocks, start };
        let outcome = |copies: &[(Inode, Extent)]| {
            let mut namespace = Namespace::new(1);
            for (inode, copy) in copies {
                let attributes = Attributes { mode: REGULAR, ..Attributes::default() };
                namespace.apply(&Change::Node { inode: *inode, attributes });
                namespace
                    .apply(&Change::Extents { inode: *inode, extents: vec![extent(0, 2, 70 + u64::from(*inode))] });
                namespace.apply(&Change::Hot { inode: *inode, extents: vec![*copy] });
            }
            let mut hot = HotZone::new(&[4], crate::Bounds::default().hot);
            claim_copies(&namespace, &mut hot).map(|()| hot.used())
        };
        assert_eq!(outcome(&[(2, extent(0, 2, 0)), (3, extent(0, 2, 2))]).expect("they are apart"), 4);
        for (copies, word) in [
            (vec![(2, extent(0, 2, 0)), (3, extent(0, 2, 1))], "belong to two files"),
            (vec![(2, extent(0, 2, 3))], "do not exist"),
            (vec![(2, extent(1, 2, 0))], "has other blocks"),
        ] {
            let words = outcome(&copies).expect_err("it cannot be").to_string();
            assert!(words.contains(word), "{words}");
        }
    }
}
