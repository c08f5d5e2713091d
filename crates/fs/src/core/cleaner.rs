//! The cleaner (Singh 2014 §2.2.3): copies what is live out of a zone, and resets it.
//!
//! It waits for nobody: a piece of a file is copied, and where the file still has it then, the copy takes its place; where
//! the file was changed meanwhile the copy is dead. A zone is reset once the records of all its copies are durable.

use super::{Core, Fs};
use crate::clock::first_of;
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::format::change::{Change, Extent, Inode};
use crate::store::{Run, Victim};

/// How long the cleaner waits for readers before it looks again.
const READERS_NS: u64 = 100_000;

impl Fs {
    /// Cleans whenever the store wants it, until the file system is over.
    pub(super) async fn clean_when_needed(self) {
        let core = self.0.clone();
        while !core.is_over.get() {
            if core.store.wants_cleaning() && self.clean_one().await.unwrap_or(false) {
                continue;
            }
            if core.store.wants_cleaning() {
                core.store.cleaning_failed();
            }
            let (needed, committed) = (core.store.cleaning_needed(), core.log.committed.next());
            first_of(first_of(needed, committed), core.over.next()).await;
        }
    }

    /// Empties zones until none would gain anything, or `zones` are emptied; how many were.
    pub async fn clean(&self, zones: u64) -> Result<u64, FsError> {
        self.0.begin().await?;
        let mut cleaned = 0;
        while cleaned < zones && self.clean_one().await? {
            cleaned += 1;
        }
        Ok(cleaned)
    }

    /// Empties one zone; whether there was one worth it.
    async fn clean_one(&self) -> Result<bool, FsError> {
        let core = &self.0;
        // What is freed by records that are not durable yet would be copied in vain.
        if core.releases.borrow().last_record().is_some() {
            core.log.commit(core.log.made(), &core.data).await?;
            self.free_released();
        }
        let Some(victim) = core.store.victim(core.clock.now_ns()) else { return Ok(false) };
        let copied = self.copy_out(&victim).await;
        let emptied = match copied {
            Ok(true) => self.empty(&victim).await,
            other => other,
        };
        match emptied {
            Ok(true) => Ok(true),
            other => {
                core.store.emptied(victim.zone, false);
                other
            }
        }
    }

    /// Copies what is live; whether all of it could be.
    async fn copy_out(&self, victim: &Victim) -> Result<bool, FsError> {
        let core = &self.0;
        let mut from = victim.run.start;
        loop {
            let next = core.owners.borrow().range(from..victim.run.end()).next().map(|(start, inode)| (*start, *inode));
            let Some((start, inode)) = next else { return Ok(true) };
            let extent = core.extent_at(inode, start);
            let extent =
                extent.unwrap_or_else(|| panic!("block {start} is said to be of file {inode}, which denies it"));
            if !self.copy(inode, extent).await? {
                return Ok(false);
            }
            from = start + 1;
        }
    }

    /// Copies one extent of a file, in one piece or several.
    async fn copy(&self, inode: Inode, extent: Extent) -> Result<bool, FsError> {
        let core = &self.0;
        let Some(lease) = core.store.allocate_for_cleaner(u64::from(extent.blocks)) else { return Ok(false) };
        let mut at = extent;
        let mut copies = Vec::new();
        for run in lease.runs.clone() {
            if let Err(error) = self.copy_run(at.start, run).await {
                let zones = core.data.zones().await.ok();
                core.store.abandon(lease, zones.as_deref().filter(|zones| !zones.is_empty()));
                return Err(error);
            }
            copies.push(Extent { at: at.at, blocks: run.blocks as u32, start: run.start });
            at = Extent {
                at: at.at + run.blocks as u32,
                blocks: at.blocks - run.blocks as u32,
                start: at.start + run.blocks,
            };
        }
        let runs = lease.runs.clone();
        core.store.settle(lease);
        core.counters.borrow_mut().blocks_cleaned += u64::from(extent.blocks);
        self.replace(inode, extent, &copies, &runs);
        Ok(true)
    }

    /// Copies blocks as they are, with the checksums they have: what is damaged stays known as damaged.
    async fn copy_run(&self, start: u64, to: Run) -> Result<(), FsError> {
        let mut next = 0;
        while next < to.blocks {
            let count = (to.blocks - next).min(self.0.bounds.piece_blocks);
            let (bytes, sums) = self.read_run_as_it_is(Run { start: start + next, blocks: count }).await?;
            assert_eq!(bytes.len(), count as usize * BLOCK_BYTES);
            self.write_with_sums(to.start + next, bytes, sums).await?;
            next += count;
        }
        Ok(())
    }

    /// Puts the copies in the place of `extent`, as far as the file still has it; the others are dead.
    fn replace(&self, inode: Inode, extent: Extent, copies: &[Extent], runs: &[Run]) {
        let core = &self.0;
        let before =
            core.namespace.borrow().get(inode).map(|node| node.extents.as_slice().to_vec()).unwrap_or_default();
        if !before.contains(&extent) {
            runs.iter().for_each(|run| core.store.free(*run));
            return;
        }
        let after: Vec<Extent> =
            before.iter().flat_map(|old| if *old == extent { copies.to_vec() } else { vec![*old] }).collect();
        let record = core.record(&[Change::Extents { inode, extents: after.clone() }]);
        self.replace_extents(inode, record, &before, &after);
    }

    /// Resets a zone that nothing live is in any more, once that is durable.
    async fn empty(&self, victim: &Victim) -> Result<bool, FsError> {
        let core = &self.0;
        core.log.commit(core.log.made(), &core.data).await?;
        self.free_released();
        while core.store.live_in(victim.zone) > 0 {
            // Somebody still reads what was copied.
            core.clock.sleep(READERS_NS).await;
            self.free_released();
        }
        core.data.reset(victim.zone).await?;
        core.store.emptied(victim.zone, true);
        core.counters.borrow_mut().zones_cleaned += 1;
        Ok(true)
    }
}

impl Core {
    /// The extent of a file that begins at block `start` of the device.
    fn extent_at(&self, inode: Inode, start: u64) -> Option<Extent> {
        let namespace = self.namespace.borrow();
        namespace.get(inode)?.extents.as_slice().iter().find(|extent| extent.start == start).copied()
    }
}
