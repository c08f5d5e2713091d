//! The cleaner (Singh 2014 §2.2.3): copies the live blocks of a zone elsewhere, and resets the zone.
//!
//! The cleaner locks no file. It copies extents, and assigns a copy to its file if the file still has that extent
//! afterwards. If the file has changed meanwhile, the copy is dead. A zone is reset once the records of all copies are
//! durable.
//!
//! If hardly any blocks are left to be written, zones are cleaned at once, otherwise only while no task writes: the
//! later a zone is cleaned, the more of its blocks are dead. Before all zones are used up, writers are slowed down to
//! the pace of the cleaner.
//!
//! With the policy `files` (Jin 2014 §II.D.2, the file-based approach) files with an extent in the zone are copied as a
//! whole, one after the other in the order of their blocks, as far as there is room. Afterwards each of them lies in
//! one piece, and its former blocks in other zones are dead.
//!
//! All extents of a zone are copied as one run, in large appends. So the last row of an array is padded only once, and
//! no writer takes the room reserved for the cleaner between two appends.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::owners::Owner;
use super::write_back::pieces::joined;
use super::{Core, CoreParts, Fs, Sabotage};
use crate::block_run::BlockRun;
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::executor::{Cause, Entering, Mutex, select};
use crate::format::change::{Extent, Inode};
use crate::format::record::Piece;
use crate::store::{Allocation, Cleaning, Reservation, Victim, WholeFiles};

/// The cleaner of zones.
#[derive(Clone, Copy)]
pub(in crate::core) struct Cleaner<'a>(&'a Rc<Core>);

impl<'a> Cleaner<'a> {
    pub(in crate::core) fn of(core: &'a Rc<Core>) -> Cleaner<'a> {
        Cleaner(core)
    }
}

/// Extents of files in the order in which they are copied, each with the inode of its file.
pub(super) type Pieces = Vec<(Inode, Extent)>;

/// Extents of one file by their first block in the file, each with the extents of its copy.
type Copies = BTreeMap<u32, (Extent, Vec<Extent>)>;

/// Number of zones that the cleaner tries before it gives up, if a device fails each time.
const ATTEMPTS: u32 = 16;
/// Time since the last write after which the store counts as idle.
const IDLE_NS: u64 = 1_000_000_000;
/// Longest delay of a write.
const DELAY_NS_MAX: u64 = 250_000_000;
/// Largest number of blocks for which a write is delayed at once, about an allocation. Later allocations of the file
/// have delays of their own.
const ALLOCATION_BLOCKS: u64 = 1024;
/// Interval at which the cleaner checks whether the readers of a zone have finished.
const READERS_NS: u64 = 100_000;

/// State of the cleaner.
#[derive(Default)]
pub(in crate::core) struct CleanerState {
    /// Lock that the cleaner holds, so that one zone is emptied at a time.
    lock: Mutex,
    /// Time of the last write to the data device, in nanoseconds of the clock.
    wrote_ns: Cell<u64>,
    /// Average time that the cleaner takes to free one block, in nanoseconds.
    gain_ns: Cell<u64>,
}

impl CleanerState {
    /// Waits for the lock with which no zone is emptied by another task.
    pub(in crate::core) fn enter(&self) -> Entering {
        self.lock.enter()
    }

    /// Returns whether a task holds the lock.
    pub(in crate::core) fn is_busy(&self) -> bool {
        self.lock.is_busy()
    }

    /// Notes a write to the data device at time `now_ns`.
    pub(in crate::core) fn note_write(&self, now_ns: u64) {
        self.wrote_ns.set(now_ns);
    }

    fn is_idle(&self, now_ns: u64) -> bool {
        now_ns >= self.wrote_ns.get().saturating_add(IDLE_NS)
    }

    /// Returns the delay of a write of `blocks` blocks at `shortage` thousandths of a shortage of room.
    fn delay_ns(&self, blocks: u64, shortage: u64) -> u64 {
        let blocks_ns = u128::from(blocks.min(ALLOCATION_BLOCKS)) * u128::from(self.gain_ns.get());
        ((blocks_ns * u128::from(shortage) / 1000) as u64).min(DELAY_NS_MAX)
    }

    /// Notes that a zone took `ns` nanoseconds for each block of room gained: a moving average, in which the latest zones
    /// count most.
    fn note_gain(&self, ns: u64) {
        let before = self.gain_ns.get();
        self.gain_ns.set(if before == 0 { ns } else { (3 * before + ns) / 4 });
    }
}

impl Fs {
    /// Empties up to `zones` zones, or stripe groups of an array: copies their live blocks elsewhere and resets them.
    /// Stops earlier if the cleaning of no zone would free space, or if there is no space for the live blocks. Returns
    /// the number of zones emptied; 0 for a store that needs no cleaning.
    ///
    /// # Errors
    /// [`FsError::ReadOnly`] on a read-only mount, or the error of a read, a write or a commit.
    pub async fn clean(&self, zones: u64) -> Result<u64, FsError> {
        self.0.cleaner().clean(zones).await
    }
}

impl Cleaner<'_> {
    /// Cleans zones whenever the store asks for it, until the file system is unmounted.
    pub(super) async fn clean_when_needed(self) {
        let core = self.0.clone();
        let Some(cleaning) = core.store.cleaning() else { return };
        // After an error the blocks without records stay where they are, and the next mount looks for them again.
        let _ = self.0.write_back().find_unrecorded().await;
        while !core.shutdown.has_begun() {
            let _ = self.0.write_back().move_unrecorded().await;
            let wants_cleaning =
                if self.is_idle() { cleaning.wants_cleaning_when_idle() } else { cleaning.wants_cleaning() };
            if wants_cleaning && self.clean_one_or_next().await.unwrap_or(false) {
                continue;
            }
            if cleaning.wants_cleaning() {
                cleaning.cleaning_failed();
            }
            let (needed, committed) = (cleaning.cleaning_needed(), core.log.committed.next());
            if cleaning.wants_cleaning_when_idle() && !self.is_idle() {
                select(select(needed, core.executor.sleep(IDLE_NS)), core.shutdown.next()).await;
            } else {
                select(select(needed, committed), core.shutdown.next()).await;
            }
        }
    }

    /// Returns whether no task has written to the store for [`IDLE_NS`].
    fn is_idle(self) -> bool {
        self.0.cleaner.is_idle(self.0.executor.now_ns())
    }

    /// Delays a write of `blocks` blocks. The less room is left, the longer the delay. So writers are down to the pace
    /// at which the cleaner makes room before all room is used up.
    pub(super) async fn slow_down(self, blocks: u64) {
        let core = &self.0;
        core.cleaner.note_write(core.executor.now_ns());
        let shortage = core.store.cleaning().map_or(0, Cleaning::shortage);
        let delay_ns = core.cleaner.delay_ns(blocks, shortage);
        if delay_ns > 0 {
            core.counters.add(|counters| counters.throttled_ns += delay_ns);
            core.executor.sleep(delay_ns).await;
        }
    }

    /// Empties up to `zones` zones, as long as that makes room. Returns the number of zones emptied.
    pub(in crate::core) async fn clean(self, zones: u64) -> Result<u64, FsError> {
        self.0.begin_task().await?;
        let all = async {
            let mut cleaned = 0;
            while cleaned < zones && self.clean_one_or_next().await? {
                cleaned += 1;
            }
            Ok(cleaned)
        };
        self.0.executor.for_cause(Cause::Cleaning, all).await
    }

    /// Empties one zone. If a device fails meanwhile, tries other zones. Returns whether a zone was emptied.
    async fn clean_one_or_next(self) -> Result<bool, FsError> {
        let mut outcome = self.clean_one().await;
        for _ in 1..ATTEMPTS {
            if !matches!(outcome, Err(FsError::Device(_))) {
                break;
            }
            outcome = self.clean_one().await;
        }
        outcome
    }

    /// Empties one zone. Returns false if no zone is worth it, or if there is no room for the live blocks.
    async fn clean_one(self) -> Result<bool, FsError> {
        let _pass = self.0.cleaner.enter().await;
        self.clean_one_held().await
    }

    /// Like [`Cleaner::clean_one`]; the caller holds the lock of the cleaner.
    pub(super) async fn clean_one_held(self) -> Result<bool, FsError> {
        let core = &self.0;
        // Blocks whose freeing records are not durable yet count as live, which would mislead the choice of the zone.
        if core.releases.last_record().is_some() {
            self.commit_before_reuse().await?;
        }
        let Some(cleaning) = core.store.cleaning() else { return Ok(false) };
        let Some(victim) = cleaning.victim() else {
            cleaning.put_off_none();
            return Ok(false);
        };
        if self.clean_zone(cleaning, victim).await? {
            return Ok(true);
        }
        // The room reserved for copies may lie on drives that have failed since, so the zone that needs the least room
        // is tried.
        let Some(victim) = cleaning.easiest_victim() else { return Ok(false) };
        self.clean_zone(cleaning, victim).await
    }

    /// Empties a zone. Returns false if there was no room for its live blocks.
    async fn clean_zone(self, cleaning: &dyn Cleaning, victim: Victim) -> Result<bool, FsError> {
        let core = &self.0;
        let began_ns = core.executor.now_ns();
        let copied = self.copy_out(cleaning, &victim).await;
        let emptied = match copied {
            Ok(true) => self.empty(cleaning, &victim).await,
            other => other,
        };
        if matches!(emptied, Ok(true)) {
            let gained = victim.run.blocks.saturating_sub(victim.live).max(1);
            core.cleaner.note_gain((core.executor.now_ns() - began_ns) / gained);
        } else {
            cleaning.emptied(victim.zone, false);
        }
        if matches!(emptied, Err(FsError::Device(_))) {
            // An unreadable zone must not keep the cleaner from emptying others.
            cleaning.put_off(victim.zone);
        }
        emptied
    }

    /// Copies the live blocks of a zone elsewhere. Returns false if there was no room for all of them.
    async fn copy_out(self, cleaning: &dyn Cleaning, victim: &Victim) -> Result<bool, FsError> {
        if let Some(whole_files) = cleaning.whole_files().filter(|it| it.budget(victim).is_some()) {
            self.copy_whole_files(whole_files, victim).await?;
        }
        let mut from = victim.run.start;
        loop {
            let pieces = self.pieces_in(from, victim.run.end());
            let Some((_, last)) = pieces.last() else { return Ok(true) };
            let behind = last.start + 1;
            match self.copy(&pieces).await? {
                Copied::Nothing => return Ok(false),
                Copied::All => from = behind,
                // The extents that the changed files still have in the zone are copied again.
                Copied::Changed(start) => from = start,
            }
        }
    }

    /// Copies files with blocks in the zone as a whole, those with the fewest blocks elsewhere first, as far as the
    /// store's budget allows. Skips files that have changed meanwhile, and stops when there is no room.
    /// [`Cleaner::copy_out`] copies the remaining extents in the zone afterwards.
    async fn copy_whole_files(self, whole_files: &dyn WholeFiles, victim: &Victim) -> Result<(), FsError> {
        let core = &self.0;
        let row_blocks = core.store.row_blocks(victim.run.start);
        let mut copied = victim.live;
        for (elsewhere, inode, extents) in self.files_in_pieces(victim) {
            let Some(budget) = whole_files.budget(victim) else { return Ok(()) };
            if extents.len() > budget.pieces || core.files().extents_of(inode) != extents {
                continue;
            }
            // The last row of the copy is padded.
            copied += elsewhere + row_blocks;
            if copied > budget.blocks {
                return Ok(());
            }
            let blocks: u64 = extents.iter().map(|extent| u64::from(extent.blocks)).sum();
            let pieces: Pieces = extents.into_iter().map(|extent| (inode, extent)).collect();
            match self.copy(&pieces).await? {
                Copied::All => self.join(inode),
                // The file has changed, so the blocks of its copy are dead already.
                Copied::Changed(_) => copied += blocks,
                Copied::Nothing => return Ok(()),
            }
        }
        Ok(())
    }

    /// Returns the files with blocks in the zone that lie in several pieces, each with its number of blocks in other
    /// zones, the fewest first. A file in one piece is not listed, because it moves as a whole anyway.
    fn files_in_pieces(self, victim: &Victim) -> Vec<(u64, Inode, Vec<Extent>)> {
        let inside = self.pieces_in(victim.run.start, victim.run.end());
        let inodes: BTreeSet<Inode> = inside.iter().map(|(inode, _)| *inode).collect();
        // The cleaner does not move blocks of the hot zone.
        let is_in_store = |extents: &[Extent]| self.0.hot_tier().blocks_alone(extents) == 0;
        let is_inside = |extent: &Extent| (victim.run.start..victim.run.end()).contains(&extent.start);
        let file = |inode: Inode| {
            let extents = self.0.files().extents_of(inode);
            let outside = extents.iter().filter(|extent| !is_inside(extent));
            (outside.map(|extent| u64::from(extent.blocks)).sum::<u64>(), inode, extents)
        };
        let mut files: Vec<_> = inodes.into_iter().map(file).collect();
        files.retain(|(.., extents)| extents.len() > 1 && is_in_store(extents));
        files.sort_unstable_by_key(|(elsewhere, inode, _)| (*elsewhere, *inode));
        files
    }

    /// Joins those extents of a file copied as a whole that follow each other on the device, and records the result.
    fn join(self, inode: Inode) {
        let core = &self.0;
        core.counters.add(|counters| counters.files_moved += 1);
        let before = core.files().extents_of(inode);
        let after = joined(before.clone(), core.store.band_blocks());
        self.0.files().record_extents(inode, None, &after);
    }

    /// Returns the extents of files that begin at block `from` of the device or behind it, and before `end`.
    fn pieces_in(self, from: u64, end: u64) -> Pieces {
        let core = &self.0;
        let piece = |(start, owner): (u64, Owner)| {
            let extent = core.files().extent_at(owner, start);
            let extent = extent.unwrap_or_else(|| panic!("block {start} is listed for {owner:?}, which lacks it"));
            (owner.inode, extent)
        };
        core.owners.beginning_in(from..end).into_iter().map(piece).collect()
    }

    /// Copies extents of files to one run, or to several if no zone has room for all, and assigns the copies to the
    /// files.
    pub(super) async fn copy(self, pieces: &Pieces) -> Result<Copied, FsError> {
        let copied = self.copy_to_room(pieces, None).await;
        if matches!(copied, Ok(Copied::All | Copied::Changed(_))) {
            let blocks = pieces.iter().map(|(_, extent)| u64::from(extent.blocks)).sum::<u64>();
            self.0.counters.add(|counters| counters.blocks_cleaned += blocks);
        }
        copied
    }

    /// Like [`Cleaner::copy`], to the room in `reserved`, or if that is `None`, to the room kept back for the cleaner. Does
    /// not count the blocks as cleaned.
    pub(super) async fn copy_to_room(
        self,
        pieces: &Pieces,
        mut reserved: Option<&mut Reservation>,
    ) -> Result<Copied, FsError> {
        let core = &self.0;
        let all: u64 = pieces.iter().map(|(_, extent)| u64::from(extent.blocks)).sum();
        let Some(mut context) = self.0.write_back().context_of_copies(pieces).await? else {
            return Ok(Copied::Changed(pieces[0].1.start));
        };
        let (mut written, mut done): (Vec<BlockRun>, u64) = (Vec::new(), 0);
        while done < all {
            let allocation = match &mut reserved {
                Some(held) => core.allocate(held, all - done, &context).await.map(Some),
                None => Ok(core.allocate_for_cleaner(all - done, &context).await),
            };
            let outcome = match allocation {
                Ok(Some(allocation)) => self.copy_to(pieces, done, allocation).await.map(Some),
                other => other.map(|_| None),
            };
            let Ok(Some(runs)) = outcome else {
                // The blocks copied so far belong to no file.
                core.unpin(&written);
                written.iter().for_each(|run| core.store.free(*run));
                return outcome.map(|_| Copied::Nothing);
            };
            let blocks = runs.iter().map(|run| run.blocks).sum::<u64>();
            (done, context.pieces) = (done + blocks, behind(&context.pieces, blocks));
            written.extend(runs);
        }
        let mut copies = Runs { runs: &written, skipped: 0 };
        let mut by_file: BTreeMap<Inode, Copies> = BTreeMap::new();
        for (inode, extent) in pieces {
            by_file.entry(*inode).or_default().insert(extent.at, (*extent, copies.next(*extent)));
        }
        let by_record = by_file.into_iter().flat_map(|(inode, copies)| {
            in_parts(copies, core.files().changes_in_record()).into_iter().map(move |copies| (inode, copies))
        });
        let mut changed = BTreeSet::new();
        let mut outcome = Ok(());
        for (inode, copies) in by_record {
            // A record may name all extents of its file: many records of that size would fill the log.
            if outcome.is_ok() {
                outcome = core.log.room().await;
            }
            let cut: usize = copies.values().map(|(_, copies)| copies.len() - 1).sum();
            outcome = outcome
                .and_then(|()| core.files().check_pieces_at_most(inode, core.files().extents_of(inode).len() + cut));
            match outcome {
                Ok(()) => self.take_copies(inode, copies, &mut changed),
                Err(_) => copies.values().for_each(|(_, copies)| self.free_copies(copies)),
            }
        }
        core.unpin(&written);
        outcome?;
        let first = pieces.iter().map(|(_, extent)| extent.start).find(|start| changed.contains(start));
        Ok(first.map_or(Copied::All, Copied::Changed))
    }

    /// Copies the blocks of `pieces` behind the first `done` blocks to allocation `allocation`. Returns the runs of the
    /// copy, which are pinned.
    async fn copy_to(self, pieces: &Pieces, done: u64, allocation: Allocation) -> Result<Vec<BlockRun>, FsError> {
        let core = &self.0;
        let mut behind = done;
        for run in &allocation.runs {
            if let Err(error) = self.copy_run(pieces, behind, *run, &allocation).await {
                self.0.write_back().give_up(allocation).await;
                return Err(error);
            }
            behind += run.blocks;
        }
        let runs = allocation.runs.clone();
        core.pin(&runs);
        core.store.commit(allocation);
        Ok(runs)
    }

    /// Copies the blocks of `pieces` behind the first `done` blocks to run `to`, with their checksums. A damaged block
    /// that cannot be reconstructed keeps its checksum, so its copy counts as damaged too.
    async fn copy_run(self, pieces: &Pieces, done: u64, to: BlockRun, allocation: &Allocation) -> Result<(), FsError> {
        let piece_blocks = self.0.piece_blocks_at(to.start);
        let (mut next, mut all_sums) = (0, Vec::new());
        while next < to.blocks {
            let count = (to.blocks - next).min(piece_blocks);
            let (mut bytes, mut sums) = (Vec::with_capacity(count as usize * BLOCK_BYTES), Vec::new());
            for run in runs_behind(pieces, done + next, count) {
                let (of_run, sums_of_run, _) = self.0.files().read_run_mended(run, true).await?;
                bytes.extend(of_run);
                sums.extend(sums_of_run);
            }
            assert_eq!(bytes.len(), count as usize * BLOCK_BYTES);
            all_sums.extend(&sums);
            if next + count == to.blocks
                && let Some(records) = self.0.store.records()
            {
                bytes.extend(records.record_bytes(allocation, &all_sums));
            }
            self.0.write_back().write_with_sums(to.start + next, bytes, sums).await?;
            next += count;
        }
        Ok(())
    }

    /// Replaces extents of a file by their copies where the file still has the extents. Otherwise frees the copy, and
    /// adds the first block of the extent on the device to `changed`.
    fn take_copies(self, inode: Inode, mut copies: Copies, changed: &mut BTreeSet<u64>) {
        let core = &self.0;
        let before =
            core.namespace.borrow().get(inode).map(|node| node.extents.as_slice().to_vec()).unwrap_or_default();
        let mut after = Vec::with_capacity(before.len());
        for old in &before {
            match copies.remove(&old.at) {
                Some((of, copies)) if of == *old => after.extend(copies),
                Some((of, copies)) => {
                    self.free_copies(&copies);
                    changed.insert(of.start);
                    after.push(*old);
                }
                None => after.push(*old),
            }
        }
        for (of, copies) in copies.values() {
            self.free_copies(copies);
            changed.insert(of.start);
        }
        self.0.files().record_extents(inode, None, &after);
    }

    fn free_copies(self, copies: &[Extent]) {
        let run = |copy: &Extent| BlockRun { start: copy.start, blocks: u64::from(copy.blocks) };
        copies.iter().for_each(|copy| self.0.store.free(run(copy)));
    }

    /// Makes the records that free blocks durable, and frees these blocks.
    async fn commit_before_reuse(self) -> Result<(), FsError> {
        let core = &self.0;
        if !core.faults.makes(Sabotage::ReuseBeforeRecord) {
            core.log.commit(core.log.made(), &core.data).await?;
        }
        self.0.committer().free_released();
        Ok(())
    }

    /// Resets a zone without live blocks, once the records that moved its blocks are durable and its readers have
    /// finished.
    async fn empty(self, cleaning: &dyn Cleaning, victim: &Victim) -> Result<bool, FsError> {
        let core = &self.0;
        self.commit_before_reuse().await?;
        while cleaning.live_in(victim.zone) > 0 {
            // Readers still use blocks that have moved.
            core.executor.sleep(READERS_NS).await;
            self.0.committer().free_released();
        }
        core.data.reset(victim.zone).await?;
        cleaning.emptied(victim.zone, true);
        core.record_store();
        core.counters.add(|counters| counters.zones_cleaned += 1);
        Ok(true)
    }
}

/// Result of copying extents of files.
pub(super) enum Copied {
    /// All copies are assigned to their files.
    All,
    /// At least one file had changed. The number is the first block, on the device, of the first extent that was not
    /// replaced.
    Changed(u64),
    /// There was no space for the copies, and every file keeps its old blocks.
    Nothing,
}

/// Runs that copies were written to, in the order of the copied extents.
struct Runs<'a> {
    runs: &'a [BlockRun],
    /// Number of blocks of the first run that are assigned to extents already.
    skipped: u64,
}

impl Runs<'_> {
    /// Returns the extents of the copy of `extent`, which is the next one in the order of copying.
    fn next(&mut self, extent: Extent) -> Vec<Extent> {
        let (mut copies, mut at, mut left) = (Vec::new(), extent.at, extent.blocks);
        while left > 0 {
            let run = self.runs.first().expect("there are as many blocks of copies as of pieces");
            let blocks = u64::from(left).min(run.blocks - self.skipped) as u32;
            copies.push(Extent { at, blocks, start: run.start + self.skipped });
            (at, left, self.skipped) = (at + blocks, left - blocks, self.skipped + u64::from(blocks));
            if self.skipped == run.blocks {
                (self.runs, self.skipped) = (&self.runs[1..], 0);
            }
        }
        copies
    }
}

/// Splits `copies` into parts of at most `pieces` extents.
fn in_parts(mut copies: Copies, pieces: usize) -> Vec<Copies> {
    let mut parts = Vec::new();
    while let Some(next) = copies.keys().nth(pieces).copied() {
        let rest = copies.split_off(&next);
        parts.push(std::mem::replace(&mut copies, rest));
    }
    parts.push(copies);
    parts
}

/// Returns the rest of `pieces` behind their first `blocks` blocks.
fn behind(pieces: &[Piece], blocks: u64) -> Vec<Piece> {
    let (mut left, mut skipped) = (Vec::new(), blocks);
    for piece in pieces {
        let own = skipped.min(u64::from(piece.blocks)) as u32;
        skipped -= u64::from(own);
        if own < piece.blocks {
            left.push(Piece { file: piece.file.clone(), at: piece.at + own, blocks: piece.blocks - own });
        }
    }
    left
}

/// Returns the runs in which `count` blocks of `pieces` lie, behind the first `done` blocks.
fn runs_behind(pieces: &Pieces, done: u64, count: u64) -> Vec<BlockRun> {
    let (mut runs, mut behind, mut left) = (Vec::new(), done, count);
    for (_, extent) in pieces {
        let blocks = u64::from(extent.blocks);
        let skipped = behind.min(blocks);
        let taken = (blocks - skipped).min(left);
        behind -= skipped;
        left -= taken;
        if taken > 0 {
            runs.push(BlockRun { start: extent.start + skipped, blocks: taken });
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_and_their_copies_are_cut_where_runs_end() {
        let extent = |at, blocks, start| Extent { at, blocks, start };
        let pieces = vec![(1, extent(0, 3, 100)), (2, extent(7, 4, 200))];
        assert_eq!(
            runs_behind(&pieces, 2, 3),
            [BlockRun { start: 102, blocks: 1 }, BlockRun { start: 200, blocks: 2 }]
        );
        assert_eq!(runs_behind(&pieces, 4, 3), [BlockRun { start: 201, blocks: 3 }]);
        let mut copies =
            Runs { runs: &[BlockRun { start: 10, blocks: 5 }, BlockRun { start: 50, blocks: 2 }], skipped: 0 };
        assert_eq!(copies.next(pieces[0].1), [extent(0, 3, 10)]);
        assert_eq!(copies.next(pieces[1].1), [extent(7, 2, 13), extent(9, 2, 50)]);
    }
}
