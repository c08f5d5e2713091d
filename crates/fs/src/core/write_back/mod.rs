//! Write-back: files are written from memory to the blocks that the store allocates.
//!
//! A file moves as a whole (Singh 2014 §2.2.2: an overwritten file is moved, its old blocks are dead). If it is larger
//! than the cache, or there is only room for its changes, only the changed blocks move.

pub(in crate::core) mod appends;
mod early_write;
pub(in crate::core) mod pieces;
pub(in crate::core) mod records;
pub(in crate::core) mod room;
pub(in crate::core) mod staged;
pub(in crate::core) mod write_behind;
pub(in crate::core) mod written;

use std::cell::RefCell;
use std::rc::Rc;

use self::pieces::{in_pieces, joined, portion_end, without};
use self::staged::{Block, Blocks, Open, Staged};
use crate::block_run::BlockRun;
use crate::core::{Core, CoreParts, Sabotage};
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::executor::BoundedOrdered;
use crate::format::change::{Change, Extent, Inode};
use crate::format::record::FileRecord;
use crate::journal::checksums;
use crate::store::Allocation;

/// Write-back of files to the store, or to the hot zone.
#[derive(Clone, Copy)]
pub(in crate::core) struct WriteBack<'a>(&'a Rc<Core>);

impl<'a> WriteBack<'a> {
    pub(in crate::core) fn of(core: &'a Rc<Core>) -> WriteBack<'a> {
        WriteBack(core)
    }
}

/// Number of attempts to write a file elsewhere when writes fail. A few drives of an array may fail that often before
/// each of them counts as lost.
const ATTEMPTS: u32 = 16;
/// Number of attempts to write a file that finds no room.
const ATTEMPTS_WITHOUT_ROOM: u32 = 4;

/// Result of writing data blocks: the first block and their checksums, or an error.
type WrittenPiece = Result<(u64, Vec<u32>), FsError>;

const ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

/// Blocks of a file that are to be written, in order.
pub(in crate::core) struct Work {
    /// Runs of blocks of the file, in order: first block, counted within the file, and number of blocks.
    pub pieces: Vec<(u32, u32)>,
    /// Whether the runs replace all stored blocks of the file.
    pub is_whole: bool,
    /// Block of the file where this portion ends, if one record cannot describe all staged data. The rest is written
    /// afterwards.
    end: Option<u32>,
    /// Size in bytes that the record gives the file. Only the record of the last portion gives it the size of the staged
    /// data.
    size: u64,
}

impl Work {
    pub(in crate::core) fn blocks(&self) -> u64 {
        self.pieces.iter().map(|(_, blocks)| u64::from(*blocks)).sum()
    }
}

impl<'a> WriteBack<'a> {
    /// Writes back the staged data of a file (changes in memory that are not yet written), and makes their record.
    pub(crate) async fn write_back(self, inode: Inode) -> Result<(), FsError> {
        let Some(open) = self.0.files().open_of(inode) else { return Ok(()) };
        let outcome = {
            let _passes = open.enter().await;
            // Boxed, because write-back is part of nearly every operation, and its large future would be in each of
            // theirs.
            Box::pin(self.write_back_locked(inode, &open)).await
        };
        self.0.files().drop_if_unused(inode);
        self.0.files().forget_if_idle(inode);
        outcome?;
        self.0.committer().commit_if_much().await
    }

    /// Like [`WriteBack::write_back`], for an operation that has not changed anything yet.
    ///
    /// # Errors
    /// [`FsError::HostFull`] if a device waits for space on the host's disk. The file stays in memory, and is written
    /// once there is space.
    pub(in crate::core) async fn write_back_unless_full(self, inode: Inode) -> Result<(), FsError> {
        if self.0.files().open_of(inode).is_none() {
            return Ok(());
        }
        let core = self.0.clone();
        self.0.spawn_unless_full(async move { core.write_back().write_back(inode).await }).await?
    }

    /// Like [`WriteBack::write_back`]; the caller holds the file's lock.
    pub(in crate::core) async fn write_back_locked(self, inode: Inode, open: &Rc<Open>) -> Result<(), FsError> {
        while self.write_back_portion(inode, open).await? {
            self.0.committer().commit_if_much().await?;
            self.0.log.room().await?;
        }
        Ok(())
    }

    /// Writes as much of the file as one record can describe. Returns whether there is more.
    async fn write_back_portion(self, inode: Inode, open: &Rc<Open>) -> Result<bool, FsError> {
        if self.0.namespace.borrow().get(inode).is_none() {
            // Otherwise each search for dirty files would find this one again, for ever.
            self.forget_staged(inode, &open.in_flight);
            self.forget_staged(inode, &open.staged);
        }
        if open.going().borrow().is_none() {
            return Ok(false);
        }
        for attempt in 1.. {
            if self.is_forsaken(inode, open) {
                self.forget_staged(inode, open.going());
                return Ok(false);
            }
            let work = self.work_of(inode, open);
            let kept = self.pieces_with(inode, open, &work, &[]).len();
            self.0.files().check_pieces(inode, kept + work.pieces.len())?;
            match self.write_out(inode, open, &work).await {
                Err(FsError::Device(_)) if attempt < ATTEMPTS && open.going().borrow().is_some() => {}
                // The failed attempt had allocated blocks, and so kept zones from being cleaned. Those blocks are free
                // now.
                Err(FsError::NoSpace)
                    if attempt < ATTEMPTS_WITHOUT_ROOM && work.blocks() > 1 && open.going().borrow().is_some() => {}
                Err(FsError::Stale) if self.is_forsaken(inode, open) => {}
                outcome => return outcome.map(|()| work.end.is_some()),
            }
        }
        unreachable!("the last attempt ends the loop")
    }

    /// Returns the blocks to write: the whole file if enough room is reserved, else its changed blocks or the first
    /// portion of them.
    fn work_of(self, inode: Inode, open: &Open) -> Work {
        let core = &self.0;
        let staged = open.going().borrow();
        let staged = staged.as_ref().expect("the caller checked that data are staged");
        let end = staged.size.div_ceil(BLOCK_BYTES as u64) as u32;
        let changed: Vec<u32> = staged.blocks.taking_room().collect();
        let all_of_it = |pieces, is_whole| Work { pieces, is_whole, end: None, size: staged.size };
        if core.store.is_contiguous() {
            return all_of_it(Vec::from_iter((end > 0).then_some((0, end))), true);
        }
        let stored = core.files().extents_of(inode);
        if !changed.is_empty() && !staged.goes_on && !staged.is_begun {
            let mut all = changed.clone();
            for extent in &stored {
                all.extend((extent.at..extent.at + extent.blocks).filter(|at| staged.blocks.get(*at).is_none()));
            }
            all.sort_unstable();
            let has_room = all.len() as u64 <= staged.held.blocks.max(changed.len() as u64);
            let whole = in_pieces(&all);
            if has_room && whole.len() <= core.files().pieces_in_record() {
                return all_of_it(whole, true);
            }
        }
        let Some(end) = portion_end(&staged.blocks, core.files().changes_in_record()).filter(|_| {
            let pieces = stored.len() + 2 * staged.blocks.len() as usize;
            pieces > core.files().pieces_in_record()
        }) else {
            return all_of_it(in_pieces(&changed), false);
        };
        let portion: Vec<u32> = changed.into_iter().take_while(|at| *at < end).collect();
        Work { pieces: in_pieces(&portion), is_whole: false, end: Some(end), size: core.files().size_recorded(inode) }
    }

    /// Writes `work` to blocks of the hot zone or of the store, makes the record, and frees the blocks that were
    /// replaced.
    async fn write_out(self, inode: Inode, open: &Rc<Open>, work: &Work) -> Result<(), FsError> {
        if let Some(runs) = self.0.hot_tier().room_alone(inode, work)
            && self.0.hot_tier().write_alone(inode, open, work, &runs).await?
        {
            return self.write_late().await;
        }
        let record = if work.pieces.is_empty() { None } else { self.record_of(inode, open, work).await? };
        open.writing.set(record.as_ref().map_or(0, |record| record.sequence));
        let outcome = self.write_pieces(inode, open, work, record.as_ref()).await;
        open.writing.set(0);
        outcome?;
        self.write_late().await
    }

    /// Returns the description of the file that the records among the data get when `work` is written. `None` if there
    /// are none.
    async fn record_of(self, inode: Inode, open: &Open, work: &Work) -> Result<Option<Rc<FileRecord>>, FsError> {
        let (about, is_told_whole, ranges) = {
            let staged = open.going().borrow();
            let Some(staged) = staged.as_ref() else { return Ok(None) };
            let namespace = self.0.namespace.borrow();
            let before = namespace.get(inode).map(|node| node.extents.as_slice().to_vec()).unwrap_or_default();
            let kept = if work.is_whole { Vec::new() } else { without(&before, &staged.blocks, u32::MAX) };
            // Blocks that are stored only in the hot zone have no records among the data. The new record describes the
            // file as a whole, so that older records of those blocks do not count any more.
            let is_told_whole = work.is_whole || self.0.hot_tier().blocks_alone(&kept) > 0;
            let kept = kept.iter().map(|extent| (extent.at, extent.blocks));
            ((work.size, staged.modified_ns), is_told_whole, kept.chain(work.pieces.iter().copied()).collect())
        };
        self.record_of_write(inode, about, (is_told_whole, ranges)).await
    }

    async fn write_pieces(
        self,
        inode: Inode,
        open: &Rc<Open>,
        work: &Work,
        record: Option<&Rc<FileRecord>>,
    ) -> Result<(), FsError> {
        let core = &self.0;
        let (stored, outcome) = self.write_appends(inode, open, &work.pieces, record).await;
        if outcome.is_err() {
            // The blocks written so far belong to no file.
            core.unpin(&stored.runs);
            stored.runs.iter().for_each(|run| core.store.free(*run));
            return outcome;
        }
        // Several files may be written at a time, and their records enter the log one after the other.
        let has_room = core.log.room().await;
        core.unpin(&stored.runs);
        core.counters.add(|counters| counters.files_written += u64::from(!stored.extents.is_empty()));
        let outcome = has_room.and_then(|()| self.finish(inode, open, work, &stored.extents));
        if outcome.is_err() {
            stored.runs.iter().for_each(|run| core.store.free(*run));
        }
        outcome
    }

    /// Makes the writes that a deliberate mistake delayed.
    async fn write_late(self) -> Result<(), FsError> {
        let core = &self.0;
        let late = core.faults.take_delayed();
        if !late.is_empty() {
            core.log.commit(core.log.made(), &core.data).await?;
        }
        for (start, bytes) in late {
            if core.hot_tier().is_in_zone(start) {
                core.hot_tier().write_zone(start, &bytes).await?;
            } else {
                core.data.write(start, bytes).await?;
            }
        }
        Ok(())
    }

    /// Aborts an allocation after a failed write. The device reports how far its zones are written.
    pub(in crate::core) async fn give_up(self, allocation: Allocation) {
        let zones = self.0.data.zones().await.ok();
        match self.0.store.zoned().zip(zones) {
            Some((zoned, zones)) => zoned.abort_in_zones(allocation, &zones),
            None => self.0.store.abort(allocation),
        }
    }

    /// Starts the writes of one append: blocks of a file go to `extents`. Stops with [`FsError::Stale`] when no task or
    /// process can reach the file any more. Writes that are already in `writes` continue.
    async fn begin_extents(
        self,
        inode: Inode,
        open: &Rc<Open>,
        (extents, allocation): (&[Extent], &Allocation),
        writes: &mut BoundedOrdered<'a, WrittenPiece>,
    ) -> Result<(), FsError> {
        let core = &self.0;
        let mut buffer = Vec::new();
        let mut start = 0;
        let mut sums = self.take_ahead(open, extents, allocation.runs[0]).await?;
        let mut done = sums.len() as u64;
        for (number, extent) in extents.iter().enumerate() {
            let mut next = std::mem::take(&mut done);
            let piece_blocks = core.piece_blocks_at(extent.start);
            while next < u64::from(extent.blocks) {
                let count = (u64::from(extent.blocks) - next).min(piece_blocks - (buffer.len() / BLOCK_BYTES) as u64);
                if buffer.is_empty() {
                    start = extent.start + next;
                }
                self.gather(inode, open, u64::from(extent.at) + next, count, &mut buffer).await?;
                next += count;
                let end = extent.start + next;
                // No command crosses the end of a band.
                let may_follow = !end.is_multiple_of(core.store.band_blocks());
                let follows = may_follow && extents.get(number + 1).is_some_and(|other| other.start == end);
                let is_full = buffer.len() as u64 == piece_blocks * BLOCK_BYTES as u64;
                if is_full || (next == u64::from(extent.blocks) && !follows) {
                    let is_last = number + 1 == extents.len() && next == u64::from(extent.blocks);
                    let bytes = std::mem::take(&mut buffer);
                    self.write_buffer((start, bytes), &mut sums, (allocation, is_last), writes).await?;
                    if self.is_forsaken(inode, open) {
                        return Err(FsError::Stale);
                    }
                }
            }
        }
        if !buffer.is_empty() {
            self.write_buffer((start, buffer), &mut sums, (allocation, true), writes).await?;
        }
        Ok(())
    }

    /// Starts a write of data blocks, and appends their checksums to `sums`. The last blocks of an allocation are
    /// followed by its records.
    async fn write_buffer(
        self,
        (start, mut bytes): (u64, Vec<u8>),
        sums: &mut Vec<u32>,
        (allocation, is_last): (&Allocation, bool),
        writes: &mut BoundedOrdered<'a, WrittenPiece>,
    ) -> Result<(), FsError> {
        let own: Vec<u32> = bytes.chunks(BLOCK_BYTES).map(checksums::of_block).collect();
        sums.extend(&own);
        if let Some(records) = self.0.store.records().filter(|_| is_last) {
            bytes.extend(records.record_bytes(allocation, sums));
        }
        let run = allocation.runs.iter().find(|run| (run.start..run.end()).contains(&start));
        self.0.checksums.set_within(*run.expect("it is written to a run of the allocation"), start, &own).await?;
        match writes.begin(self.write_piece(start, bytes, own)).await {
            Some(written) => self.record_written(written).await,
            None => Ok(()),
        }
    }

    /// Writes data blocks with checksums that are known already. So a block that is damaged stays known as damaged where
    /// it is moved. Blocks behind those that have checksums are written as well.
    pub(in crate::core) async fn write_with_sums(
        self,
        start: u64,
        bytes: Vec<u8>,
        sums: Vec<u32>,
    ) -> Result<(), FsError> {
        self.0.checksums.set(start, &sums).await?;
        let written = self.write_piece(start, bytes, sums).await;
        self.record_written(written).await
    }

    async fn write_piece(self, start: u64, bytes: Vec<u8>, sums: Vec<u32>) -> WrittenPiece {
        let core = &self.0;
        if core.faults.makes(Sabotage::RecordBeforeData) {
            core.faults.delay(start, bytes);
        } else {
            core.data.write(start, bytes).await?;
        }
        Ok((start, sums))
    }

    /// Makes the record of the checksums of blocks that were written.
    async fn record_written(self, written: WrittenPiece) -> Result<(), FsError> {
        let core = &self.0;
        let (block, sums) = written?;
        // The records of a large file take more room than the log has at a time.
        core.log.room().await?;
        core.log.append(core.time_ns(), &[Change::Checksums { block, sums }]);
        self.0.committer().commit_if_much().await
    }

    /// Appends blocks of a file to `buffer`, from memory or from the device.
    pub(in crate::core) async fn gather(
        self,
        inode: Inode,
        open: &Open,
        at: u64,
        count: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<(), FsError> {
        let from = buffer.len();
        {
            let staged = open.going().borrow();
            let blocks = &staged.as_ref().expect("the lock is held").blocks;
            let in_memory = || blocks.range(at as u32..(at + count) as u32).map(|(_, block)| block);
            if in_memory().count() as u64 == count {
                buffer.reserve(count as usize * BLOCK_BYTES);
                in_memory().for_each(|block| buffer.extend_from_slice(block.bytes().unwrap_or(&ZEROS)));
                return Ok(());
            }
        }
        buffer.resize(from + count as usize * BLOCK_BYTES, 0);
        {
            let is_replaced = |at: u64| {
                let staged = open.going().borrow();
                staged.as_ref().is_some_and(|staged| staged.blocks.get(at as u32).is_some())
            };
            self.read_to_change(inode, at, &mut buffer[from..], is_replaced).await?;
        }
        let staged = open.going().borrow();
        let staged = staged.as_ref().expect("the lock is held");
        let committed_size = self.0.namespace.borrow().node(inode)?.attributes.size;
        zero_behind(committed_size, at, &mut buffer[from..]);
        for (block_at, block) in staged.blocks.range(at as u32..(at + count) as u32) {
            let into = &mut buffer[from + (u64::from(block_at) - at) as usize * BLOCK_BYTES..][..BLOCK_BYTES];
            match block {
                Block::Bytes(block) => into.copy_from_slice(&block[..]),
                Block::Zeros => into.fill(0),
            }
        }
        Ok(())
    }

    /// Makes the record of a file that was written, or of its first portion, and frees the blocks that were replaced. On
    /// an error nothing has changed.
    pub(in crate::core) fn finish(
        self,
        inode: Inode,
        open: &Open,
        work: &Work,
        written: &[Extent],
    ) -> Result<(), FsError> {
        let core = &self.0;
        let mut attributes = core.namespace.borrow().node(inode)?.attributes;
        let after = joined(self.pieces_with(inode, open, work, written), core.store.band_blocks());
        core.files().check_pieces_at_most(inode, after.len())?;
        let (blocks, modified_ns) = self.take_written(inode, open, work).ok_or(FsError::Stale)?;
        core.staging.remove(blocks.len() * BLOCK_BYTES as u64);
        open.pushes.set(open.pushes.get() + 1);
        attributes.size = work.size;
        attributes.modified_ns = modified_ns;
        attributes.changed_ns = attributes.changed_ns.max(modified_ns);
        core.written.borrow_mut().keep(inode, blocks);
        self.0.files().record_extents(inode, Some(attributes), &after);
        self.0.files().spend_preallocated(inode, open, &work.pieces);
        self.0.hot_tier().enqueue_promotion(inode);
        Ok(())
    }

    /// Returns the extents of a file after `work`: those that stay, and those that were `written`.
    fn pieces_with(self, inode: Inode, open: &Open, work: &Work, written: &[Extent]) -> Vec<Extent> {
        let going = open.going().borrow();
        let kept = going.as_ref().filter(|_| !work.is_whole);
        let end = work.end.unwrap_or(u32::MAX);
        let mut pieces = kept.map_or(Vec::new(), |it| without(&self.0.files().extents_of(inode), &it.blocks, end));
        pieces.extend_from_slice(written);
        pieces
    }

    /// Removes the blocks that were written from the staged data. Returns them, and the time of their last change.
    fn take_written(self, inode: Inode, open: &Open, work: &Work) -> Option<(Blocks, i64)> {
        let spent = self.0.files().preallocated_among(inode, &work.pieces);
        let mut place = open.going().borrow_mut();
        if let Some(end) = work.end {
            let staged = place.as_mut()?;
            let rest = staged.blocks.split_off(end);
            staged.lent = staged.lent.saturating_sub(spent);
            (staged.is_appended, staged.is_begun) = (false, true);
            return Some((std::mem::replace(&mut staged.blocks, rest), staged.modified_ns));
        }
        let mut staged = place.take()?;
        self.0.files().give_back_lent(inode, &mut staged, spent);
        self.0.store.unreserve(&mut staged.held);
        Some((staged.blocks, staged.modified_ns))
    }

    pub(in crate::core) fn release_extents(self, record: u64, extents: &[Extent]) {
        self.0.owners.remove(extents);
        self.0.hot_tier().note_alone(extents, &[]);
        let run = |extent: &Extent| BlockRun { start: extent.start, blocks: u64::from(extent.blocks) };
        self.release(record, extents.iter().map(run).collect());
    }

    /// Frees `runs`, of the data or of the hot zone, once record `record` is durable and no read of them is in progress.
    pub(in crate::core) fn release(self, record: u64, runs: Vec<BlockRun>) {
        let core = &self.0;
        let record = if core.faults.makes(Sabotage::ReuseBeforeRecord) { 0 } else { record };
        core.releases.add(record, runs);
        self.0.committer().free_released();
    }

    /// Discards the staged data of a file.
    pub(in crate::core) fn drop_staged(self, inode: Inode) {
        if let Some(open) = self.0.files().open_of(inode) {
            self.forget_staged(inode, &open.in_flight);
            self.forget_staged(inode, &open.staged);
        }
    }

    fn forget_staged(self, inode: Inode, place: &RefCell<Option<Staged>>) {
        let core = &self.0;
        if let Some(mut staged) = place.borrow_mut().take() {
            core.files().give_back_lent(inode, &mut staged, 0);
            core.store.unreserve(&mut staged.held);
            core.staging.remove(staged.blocks.len() * BLOCK_BYTES as u64);
        }
    }

    /// Writes files, the one staged longest first, until staged data are within [`crate::core::Bounds::cache_bytes`], and a
    /// checkpoint has room for their extents, however many they become.
    pub(in crate::core) async fn evict(self) -> Result<(), FsError> {
        while self.0.staging.bytes() > self.0.bounds.cache_bytes || self.check_pieces_fit(1).is_err() {
            let Some(oldest) = self.oldest_staged(u64::MAX) else { return Ok(()) };
            self.write_back_unless_full(oldest).await?;
        }
        Ok(())
    }

    /// Returns the file whose data have been staged longest, if they were first changed before `before_ns` of the clock.
    pub(in crate::core) fn oldest_staged(self, before_ns: u64) -> Option<Inode> {
        self.0.lifetimes.with_open(|open| {
            let staged = open.iter().filter_map(|(inode, open)| {
                let staged = open.going().borrow();
                staged.as_ref().filter(|staged| staged.since_ns < before_ns).map(|staged| (staged.since, *inode))
            });
            staged.min().map(|(_, inode)| inode)
        })
    }
}

/// Zeroes the bytes behind the end of the file. `bytes` begin at block `at`, and `size` is the size of the stored file.
fn zero_behind(size: u64, at: u64, bytes: &mut [u8]) {
    let behind = size.saturating_sub(at * BLOCK_BYTES as u64).min(bytes.len() as u64) as usize;
    bytes[behind..].fill(0);
}
