//! The cleaner (Singh 2014 §2.2.3): copies what is live out of a zone, and resets it.
//!
//! It holds nobody up: pieces of files are copied, and a file that still has its piece afterwards gets the copy in its
//! place; where the file was changed meanwhile the copy is dead. A zone is reset once the records of all its copies are
//! durable.
//!
//! Zones are emptied when hardly any is left to be written, and otherwise only while nobody writes: the later a zone is
//! emptied, the more of it is dead. Before there is none left at all, writers are slowed down to the pace of the
//! cleaner.
//!
//! With the policy `files` (Jin 2014 §II.D.2, the file-based approach) files that have a piece in the zone are copied as a whole, one
//! after the other in their own order, as far as there is room for that: afterwards they lie in one piece, and what they had
//! elsewhere is dead there.
//!
//! All pieces of a zone are copied as one run: written in large appends, it fills up a row of an array once, and no writer
//! takes the room that is kept back for the cleaner between two of them.

use std::collections::{BTreeMap, BTreeSet};

use super::pieces::joined;
use super::{Core, Fs, Owner, Sabotage};
use crate::clock::{Cause, first_of};
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::format::change::{Extent, Inode};
use crate::format::record::Piece;
use crate::store::{Held, Lease, Run, Victim};

/// Pieces of files, in the order in which they are copied, with whose each is.
pub(super) type Pieces = Vec<(Inode, Extent)>;

/// Pieces of a file by their place in it, each with where its copy lies.
type Copies = BTreeMap<u32, (Extent, Vec<Extent>)>;

/// How often the cleaner tries another zone when a device fails, before it gives up.
const ATTEMPTS: u32 = 16;
/// The store is idle when nobody has written to it for so long.
const IDLE_NS: u64 = 1_000_000_000;
/// A write is slowed down by no more than this.
const DELAY_NS_MAX: u64 = 250_000_000;
/// Blocks of a file that are written at once, about: the rest is slowed down when its turn comes.
const LEASE_BLOCKS: u64 = 1024;
/// How long the cleaner waits for readers before it looks again.
const READERS_NS: u64 = 100_000;

impl Fs {
    /// Cleans whenever the store wants it, until the file system is over.
    pub(super) async fn clean_when_needed(self) {
        let core = self.0.clone();
        // What could not be moved is where it was, and the next mount looks again.
        let _ = self.find_unrecorded().await;
        while !core.is_over.get() {
            let _ = self.move_unrecorded().await;
            if core.store.wants_cleaning(self.is_idle()) && self.clean_one_or_next().await.unwrap_or(false) {
                continue;
            }
            if core.store.wants_cleaning(false) {
                core.store.cleaning_failed();
            }
            let (needed, committed) = (core.store.cleaning_needed(), core.log.committed.next());
            if core.store.wants_cleaning(true) && !self.is_idle() {
                first_of(first_of(needed, core.clock.sleep(IDLE_NS)), core.over.next()).await;
            } else {
                first_of(first_of(needed, committed), core.over.next()).await;
            }
        }
    }

    /// Whether nobody has written for a while.
    fn is_idle(&self) -> bool {
        self.0.clock.now_ns() >= self.0.wrote_ns.get().saturating_add(IDLE_NS)
    }

    /// Delays a write of `blocks`. The less room is left, the longer the delay, so that writers are down to the pace at
    /// which the cleaner makes room before there is none.
    pub(super) async fn slow_down(&self, blocks: u64) {
        let core = &self.0;
        core.wrote_ns.set(core.clock.now_ns());
        let shortage = core.store.shortage();
        let delay_ns = (u128::from(blocks.min(LEASE_BLOCKS)) * u128::from(core.gain_ns.get()) * u128::from(shortage)
            / 1000) as u64;
        let delay_ns = delay_ns.min(DELAY_NS_MAX);
        if delay_ns > 0 {
            core.counters.borrow_mut().throttled_ns += delay_ns;
            core.clock.sleep(delay_ns).await;
        }
    }

    /// Empties zones until none would gain anything, or `zones` are emptied. Returns how many were.
    pub async fn clean(&self, zones: u64) -> Result<u64, FsError> {
        self.0.begin_task().await?;
        let all = async {
            let mut cleaned = 0;
            while cleaned < zones && self.clean_one_or_next().await? {
                cleaned += 1;
            }
            Ok(cleaned)
        };
        self.0.clock.for_cause(Cause::Cleaning, all).await
    }

    /// Empties one zone, or another where a device fails meanwhile; false where none was worth it.
    async fn clean_one_or_next(&self) -> Result<bool, FsError> {
        let mut outcome = self.clean_one().await;
        for _ in 1..ATTEMPTS {
            if !matches!(outcome, Err(FsError::Device(_))) {
                break;
            }
            outcome = self.clean_one().await;
        }
        outcome
    }

    /// Empties one zone; false where none was worth it.
    async fn clean_one(&self) -> Result<bool, FsError> {
        let _pass = self.0.cleaning.enter().await;
        self.clean_one_held().await
    }

    /// The same, with the gate of cleaning held.
    pub(super) async fn clean_one_held(&self) -> Result<bool, FsError> {
        let core = &self.0;
        // What is freed by records that are not durable yet would be copied in vain.
        if core.releases.borrow().last_record().is_some() {
            self.commit_before_reuse().await?;
        }
        let Some(victim) = core.store.victim(core.clock.now_ns()) else {
            core.store.put_off_none();
            return Ok(false);
        };
        if self.clean_zone(victim).await? {
            return Ok(true);
        }
        // What is kept back for copies may lie on drives that have failed since.
        let Some(victim) = core.store.easiest_victim() else { return Ok(false) };
        self.clean_zone(victim).await
    }

    /// Empties a zone; false where there was no room for what is live in it.
    async fn clean_zone(&self, victim: Victim) -> Result<bool, FsError> {
        let core = &self.0;
        let began_ns = core.clock.now_ns();
        let copied = self.copy_out(&victim).await;
        let emptied = match copied {
            Ok(true) => self.empty(&victim).await,
            other => other,
        };
        if matches!(emptied, Ok(true)) {
            // How fast it makes room, the latest zones most.
            let gained = victim.run.blocks.saturating_sub(victim.live).max(1);
            let ns = (core.clock.now_ns() - began_ns) / gained;
            let before = core.gain_ns.get();
            core.gain_ns.set(if before == 0 { ns } else { (3 * before + ns) / 4 });
        } else {
            core.store.emptied(victim.zone, false);
        }
        if matches!(emptied, Err(FsError::Device(_))) {
            // An unreadable zone must not keep the cleaner from emptying others.
            core.store.put_off(victim.zone);
        }
        emptied
    }

    /// Copies what is live; false where there was no room for all of it.
    async fn copy_out(&self, victim: &Victim) -> Result<bool, FsError> {
        if self.0.store.budget_for_files(victim).is_some() {
            self.copy_whole_files(victim).await?;
        }
        let mut from = victim.run.start;
        loop {
            let pieces = self.pieces_in(from, victim.run.end());
            let Some((_, last)) = pieces.last() else { return Ok(true) };
            let behind = last.start + 1;
            match self.copy(&pieces).await? {
                Copied::Nothing => return Ok(false),
                Copied::All => from = behind,
                // What a file has of it now is copied anew.
                Copied::Changed(start) => from = start,
            }
        }
    }

    /// Copies files as a whole that have something in the zone, those with the least elsewhere first, as far as the store allows
    /// at the time. What has changed meanwhile, or had no room, is left for its pieces to be copied.
    async fn copy_whole_files(&self, victim: &Victim) -> Result<(), FsError> {
        let core = &self.0;
        let row_blocks = core.store.row_blocks(victim.run.start);
        let mut copied = victim.live;
        for (elsewhere, inode, extents) in self.files_in_pieces(victim) {
            let Some(budget) = core.store.budget_for_files(victim) else { return Ok(()) };
            if extents.len() > budget.pieces || core.extents_of(inode) != extents {
                continue;
            }
            // Its last row is filled up.
            copied += elsewhere + row_blocks;
            if copied > budget.blocks {
                return Ok(());
            }
            let blocks: u64 = extents.iter().map(|extent| u64::from(extent.blocks)).sum();
            let pieces: Pieces = extents.into_iter().map(|extent| (inode, extent)).collect();
            match self.copy(&pieces).await? {
                Copied::All => self.join(inode),
                // What was copied of it is dead already.
                Copied::Changed(_) => copied += blocks,
                Copied::Nothing => return Ok(()),
            }
        }
        Ok(())
    }

    /// The files that have something in the zone and lie in several pieces, with their blocks in other zones, those with the
    /// fewest of these first. One that lies here alone moves as a whole with the pieces of the others.
    fn files_in_pieces(&self, victim: &Victim) -> Vec<(u64, Inode, Vec<Extent>)> {
        let inside = self.pieces_in(victim.run.start, victim.run.end());
        let inodes: BTreeSet<Inode> = inside.iter().map(|(inode, _)| *inode).collect();
        // What lies in the hot zone is none of the cleaner's business.
        let is_in_store = |extents: &[Extent]| self.0.blocks_alone(extents) == 0;
        let is_inside = |extent: &Extent| (victim.run.start..victim.run.end()).contains(&extent.start);
        let file = |inode: Inode| {
            let extents = self.0.extents_of(inode);
            let outside = extents.iter().filter(|extent| !is_inside(extent));
            (outside.map(|extent| u64::from(extent.blocks)).sum::<u64>(), inode, extents)
        };
        let mut files: Vec<_> = inodes.into_iter().map(file).collect();
        files.retain(|(.., extents)| extents.len() > 1 && is_in_store(extents));
        files.sort_unstable_by_key(|(elsewhere, inode, _)| (*elsewhere, *inode));
        files
    }

    /// Joins the pieces of a file that was copied as a whole, where they follow each other on the device.
    fn join(&self, inode: Inode) {
        let core = &self.0;
        core.counters.borrow_mut().files_moved += 1;
        let before = core.extents_of(inode);
        let after = joined(before.clone(), core.store.band_blocks());
        self.record_extents(inode, None, &after);
    }

    /// The pieces of files that begin at block `from` or behind it, and before `end`.
    fn pieces_in(&self, from: u64, end: u64) -> Pieces {
        let core = &self.0;
        let owners = core.owners.borrow();
        let piece = |(start, owner): (&u64, &Owner)| {
            let extent = core.extent_at(*owner, *start);
            let extent = extent.unwrap_or_else(|| panic!("block {start} is said to be of {owner:?}, which denies it"));
            (owner.inode, extent)
        };
        owners.range(from..end).map(piece).collect()
    }

    /// Copies pieces of files to one run, or several if no zone has room for all, and lets the files have the copies.
    pub(super) async fn copy(&self, pieces: &Pieces) -> Result<Copied, FsError> {
        let copied = self.copy_to_room(pieces, None).await;
        if matches!(copied, Ok(Copied::All | Copied::Changed(_))) {
            let blocks = pieces.iter().map(|(_, extent)| u64::from(extent.blocks)).sum::<u64>();
            self.0.counters.borrow_mut().blocks_cleaned += blocks;
        }
        copied
    }

    /// The same, to room that is reserved, or to what is kept back for the cleaner.
    pub(super) async fn copy_to_room(
        &self,
        pieces: &Pieces,
        mut reserved: Option<&mut Held>,
    ) -> Result<Copied, FsError> {
        let core = &self.0;
        let all: u64 = pieces.iter().map(|(_, extent)| u64::from(extent.blocks)).sum();
        let Some(mut told) = self.told_of_copies(pieces).await? else {
            return Ok(Copied::Changed(pieces[0].1.start));
        };
        let (mut written, mut done): (Vec<Run>, u64) = (Vec::new(), 0);
        while done < all {
            let lease = match &mut reserved {
                Some(held) => core.store.allocate(held, all - done, &told).await.map(Some),
                None => Ok(core.store.allocate_for_cleaner(all - done, &told).await),
            };
            let outcome = match lease {
                Ok(Some(lease)) => self.copy_to(pieces, done, lease).await.map(Some),
                other => other.map(|_| None),
            };
            let Ok(Some(runs)) = outcome else {
                // What was copied so far is no file's.
                core.store.unpin(&written);
                written.iter().for_each(|run| core.store.free(*run));
                return outcome.map(|_| Copied::Nothing);
            };
            let blocks = runs.iter().map(|run| run.blocks).sum::<u64>();
            (done, told.pieces) = (done + blocks, behind(&told.pieces, blocks));
            written.extend(runs);
        }
        let mut copies = Runs { runs: &written, skipped: 0 };
        let mut by_file: BTreeMap<Inode, Copies> = BTreeMap::new();
        for (inode, extent) in pieces {
            by_file.entry(*inode).or_default().insert(extent.at, (*extent, copies.next(*extent)));
        }
        let by_record = by_file.into_iter().flat_map(|(inode, copies)| {
            in_parts(copies, core.changes_in_record()).into_iter().map(move |copies| (inode, copies))
        });
        let mut changed = BTreeSet::new();
        let mut outcome = Ok(());
        for (inode, copies) in by_record {
            // A record may name all pieces of its file: many such records would fill the log.
            if outcome.is_ok() {
                outcome = core.log.room().await;
            }
            let cut: usize = copies.values().map(|(_, copies)| copies.len() - 1).sum();
            outcome = outcome.and_then(|()| core.check_pieces_at_most(inode, core.extents_of(inode).len() + cut));
            match outcome {
                Ok(()) => self.take_copies(inode, copies, &mut changed),
                Err(_) => copies.values().for_each(|(_, copies)| self.free_copies(copies)),
            }
        }
        core.store.unpin(&written);
        outcome?;
        let first = pieces.iter().map(|(_, extent)| extent.start).find(|start| changed.contains(start));
        Ok(first.map_or(Copied::All, Copied::Changed))
    }

    /// Copies to `lease` what comes behind the first `done` blocks of `pieces`. Returns the runs that it lies in now,
    /// which are pinned.
    async fn copy_to(&self, pieces: &Pieces, done: u64, lease: Lease) -> Result<Vec<Run>, FsError> {
        let core = &self.0;
        let mut behind = done;
        for run in &lease.runs {
            if let Err(error) = self.copy_run(pieces, behind, *run, &lease).await {
                let zones = core.data.zones().await.ok();
                core.store.abandon(lease, zones.as_deref().filter(|zones| !zones.is_empty()));
                return Err(error);
            }
            behind += run.blocks;
        }
        let runs = lease.runs.clone();
        core.store.pin(&runs);
        core.store.settle(lease);
        Ok(runs)
    }

    /// Copies to run `to` what comes behind the first `done` blocks of `pieces`, with the checksums it has: a block
    /// that is damaged, and cannot be made again, stays known as damaged.
    async fn copy_run(&self, pieces: &Pieces, done: u64, to: Run, lease: &Lease) -> Result<(), FsError> {
        let piece_blocks = self.0.piece_blocks_at(to.start);
        let (mut next, mut all_sums) = (0, Vec::new());
        while next < to.blocks {
            let count = (to.blocks - next).min(piece_blocks);
            let (mut bytes, mut sums) = (Vec::with_capacity(count as usize * BLOCK_BYTES), Vec::new());
            for run in runs_behind(pieces, done + next, count) {
                let (of_run, sums_of_run, _) = self.read_run_mended(run, true).await?;
                bytes.extend(of_run);
                sums.extend(sums_of_run);
            }
            assert_eq!(bytes.len(), count as usize * BLOCK_BYTES);
            all_sums.extend(&sums);
            if next + count == to.blocks {
                bytes.extend(self.0.store.records(lease, &all_sums));
            }
            self.write_with_sums(to.start + next, bytes, sums).await?;
            next += count;
        }
        Ok(())
    }

    /// Puts copies in the place of what they were made of where the file still has that; else it frees
    /// them, and adds where the piece began to `changed`.
    fn take_copies(&self, inode: Inode, mut copies: Copies, changed: &mut BTreeSet<u64>) {
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
        self.record_extents(inode, None, &after);
    }

    fn free_copies(&self, copies: &[Extent]) {
        let run = |copy: &Extent| Run { start: copy.start, blocks: u64::from(copy.blocks) };
        copies.iter().for_each(|copy| self.0.store.free(run(copy)));
    }

    /// Makes the records durable that free blocks, and frees them.
    async fn commit_before_reuse(&self) -> Result<(), FsError> {
        let core = &self.0;
        if core.sabotage != Some(Sabotage::ReuseBeforeRecord) {
            core.log.commit(core.log.made(), &core.data).await?;
        }
        self.free_released();
        Ok(())
    }

    /// Resets a zone that nothing live is in any more, once that is durable.
    async fn empty(&self, victim: &Victim) -> Result<bool, FsError> {
        let core = &self.0;
        self.commit_before_reuse().await?;
        while core.store.live_in(victim.zone) > 0 {
            // Somebody still reads what was copied.
            core.clock.sleep(READERS_NS).await;
            self.free_released();
        }
        core.data.reset(victim.zone).await?;
        core.store.emptied(victim.zone, true);
        core.record_store();
        core.counters.borrow_mut().zones_cleaned += 1;
        Ok(true)
    }
}

/// What came of copying pieces of files.
pub(super) enum Copied {
    /// Their files have the copies.
    All,
    /// One file or more had changed; the first such piece began at this block.
    Changed(u64),
    /// There was no room.
    Nothing,
}

/// Runs that copies were written to, one after the other.
struct Runs<'a> {
    runs: &'a [Run],
    /// Blocks of the first of them that were handed out already.
    skipped: u64,
}

impl Runs<'_> {
    /// Where the next piece was copied to.
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

/// The same as parts of so many pieces at most.
fn in_parts(mut copies: Copies, pieces: usize) -> Vec<Copies> {
    let mut parts = Vec::new();
    while let Some(next) = copies.keys().nth(pieces).copied() {
        let rest = copies.split_off(&next);
        parts.push(std::mem::replace(&mut copies, rest));
    }
    parts.push(copies);
    parts
}

/// What is left of `pieces` behind their first `blocks`.
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

/// Where the `count` blocks lie that come behind the first `done` of `pieces`.
fn runs_behind(pieces: &Pieces, done: u64, count: u64) -> Vec<Run> {
    let (mut runs, mut behind, mut left) = (Vec::new(), done, count);
    for (_, extent) in pieces {
        let blocks = u64::from(extent.blocks);
        let skipped = behind.min(blocks);
        let taken = (blocks - skipped).min(left);
        behind -= skipped;
        left -= taken;
        if taken > 0 {
            runs.push(Run { start: extent.start + skipped, blocks: taken });
        }
    }
    runs
}

impl Core {
    /// Where a file lies; nowhere if it is gone.
    pub(super) fn extents_of(&self, inode: Inode) -> Vec<Extent> {
        self.namespace.borrow().get(inode).map(|node| node.extents.as_slice().to_vec()).unwrap_or_default()
    }

    /// The piece of its file that is said to begin at block `start` of the device, if it does.
    pub(super) fn extent_at(&self, owner: Owner, start: u64) -> Option<Extent> {
        let namespace = self.namespace.borrow();
        let found = namespace.get(owner.inode)?.extents.beginning_at(owner.at).copied();
        found.filter(|extent| extent.start == start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_and_their_copies_are_cut_where_runs_end() {
        let extent = |at, blocks, start| Extent { at, blocks, start };
        let pieces = vec![(1, extent(0, 3, 100)), (2, extent(7, 4, 200))];
        assert_eq!(runs_behind(&pieces, 2, 3), [Run { start: 102, blocks: 1 }, Run { start: 200, blocks: 2 }]);
        assert_eq!(runs_behind(&pieces, 4, 3), [Run { start: 201, blocks: 3 }]);
        let mut copies = Runs { runs: &[Run { start: 10, blocks: 5 }, Run { start: 50, blocks: 2 }], skipped: 0 };
        assert_eq!(copies.next(pieces[0].1), [extent(0, 3, 10)]);
        assert_eq!(copies.next(pieces[1].1), [extent(7, 2, 13), extent(9, 2, 50)]);
    }
}
