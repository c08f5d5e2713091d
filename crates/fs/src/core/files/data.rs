//! The contents of files: reads, writes, truncation, allocation, search for data and holes.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use super::Files;
use crate::block_run::BlockRun;
use crate::core::write_back::staged::{Block, Blocks, Open, Staged};
use crate::core::{CoreParts, Fs};
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::executor::{BoundedOrdered, MutexGuard};
use crate::format::change::{Extent, Inode};
use crate::format::check_change::SIZE_MAX;
use crate::journal::checksums;
use crate::namespace::Extents;

const BYTES: u64 = BLOCK_BYTES as u64;

/// Operation of `fallocate` on a range of bytes of a regular file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocate {
    /// Reserves space for the blocks in the range that are not stored, and extends a shorter file to the end of the
    /// range (mode 0).
    Room,
    /// Reserves space for the blocks in the range that are not stored, also behind the end of the file, whose size does
    /// not change (`FALLOC_FL_KEEP_SIZE`).
    RoomKeepingSize,
    /// Makes the bytes in the range zeros. Blocks that lie wholly in it become holes, as far as the store can have
    /// holes. The size does not change (`FALLOC_FL_PUNCH_HOLE`).
    PunchHole,
    /// Makes the bytes in the range zeros with reserved space, and extends a shorter file to the end of the range
    /// (`FALLOC_FL_ZERO_RANGE`).
    Zeros,
    /// Makes the bytes in the range up to the end of the file zeros with reserved space. The size does not change
    /// (`FALLOC_FL_ZERO_RANGE` with `FALLOC_FL_KEEP_SIZE`).
    ZerosWithin,
}

/// Goal of [`Fs::seek`], like the `SEEK_DATA` and `SEEK_HOLE` of `lseek`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seek {
    /// A block with data, stored or in memory.
    Data,
    /// A hole: a block without data, also if space is preallocated for it. The end of the file counts as a hole.
    Hole,
}

/// Contents of a write, borrowed bytes or owned blocks.
#[derive(Debug)]
pub enum Contents<'a> {
    /// Bytes of any number, which are copied.
    Bytes(&'a [u8]),
    /// Whole blocks of 4 KiB, which are kept without copying.
    Blocks(Vec<Box<[u8; BLOCK_BYTES]>>),
}

/// Returns a copy of `block` on the heap. It is never built on the stack.
fn boxed(block: &[u8; BLOCK_BYTES]) -> Box<[u8; BLOCK_BYTES]> {
    block.to_vec().try_into().expect("it has the length of a block")
}

impl Contents<'_> {
    /// Copies `bytes` into blocks of 4 KiB. Returns `None` unless `offset`, where they are to be written, and their
    /// length are multiples of 4 KiB, and the length is not 0.
    pub fn blocks_of(offset: u64, bytes: &[u8]) -> Option<Contents<'static>> {
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        let are_whole = rest.is_empty() && !blocks.is_empty() && offset.is_multiple_of(BYTES);
        are_whole.then(|| Contents::Blocks(blocks.iter().map(boxed).collect()))
    }

    /// Returns the length of the contents in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Contents::Bytes(bytes) => bytes.len() as u64,
            Contents::Blocks(blocks) => blocks.len() as u64 * BYTES,
        }
    }
}

/// Result of reconstructing damaged blocks.
#[derive(Default)]
pub(in crate::core) struct RepairOutcome {
    /// Numbers of the blocks of 4 KiB of the data device that could not be reconstructed.
    pub lost: Vec<u64>,
    /// Numbers of the blocks of 4 KiB of the data device whose contents were taken from a copy in the hot zone, because
    /// neither the drives nor parity provided them.
    pub from_copies: Vec<u64>,
}

impl Fs {
    /// Reads up to `length` bytes of file `inode` from byte `offset` on, in their current state: from memory or from
    /// the devices. Returns fewer bytes if the file ends before, and none if `offset` is not before its end. Holes read
    /// as zeros. Stored data are verified by their checksums. The read counts for the heat of the file.
    ///
    /// # Errors
    /// [`FsError::Stale`] if the file does not exist, [`FsError::IsDirectory`] for a directory. [`FsError::Damaged`] if
    /// a block cannot be reconstructed, or the error of a device.
    pub async fn read(&self, inode: Inode, offset: u64, length: usize) -> Result<Vec<u8>, FsError> {
        self.0.files().read_from(inode, offset, length, true).await
    }

    /// Reads up to `length` bytes of file `inode` from byte `offset` on, without copies in the hot zone, for checks of
    /// the store. Returns fewer bytes, or none, at the end of the file. Files stored only in the hot zone are read
    /// there, and changes in memory are included. The read does not count for the heat of the file.
    ///
    /// # Errors
    /// Like [`Fs::read`]: [`FsError::Stale`] if the file does not exist, [`FsError::IsDirectory`] for a directory,
    /// [`FsError::Damaged`] if a block cannot be reconstructed without a copy, or the error of a device.
    pub async fn read_stored_only(&self, inode: Inode, offset: u64, length: usize) -> Result<Vec<u8>, FsError> {
        self.0.files().read_from(inode, offset, length, false).await
    }

    /// Writes `bytes` at byte `offset` of regular file `inode`, in memory. A later write-back stores them. The file
    /// becomes longer if the bytes end behind its end; a gap before `offset` reads as zeros. If too many changes are in
    /// memory, first waits until older ones are written back. An empty `bytes` changes nothing. An error leaves the
    /// file unchanged.
    ///
    /// # Errors
    /// [`FsError::Stale`] if the file does not exist, [`FsError::IsDirectory`] for a directory, [`FsError::Invalid`]
    /// for another file that is not regular. [`FsError::TooLarge`] if the file would exceed the largest size.
    /// [`FsError::NoSpace`] or [`FsError::NoMetadataSpace`] if no space can be reserved, [`FsError::HostFull`] while a
    /// device waits for space on the host's disk, [`FsError::ReadOnly`] on a read-only mount, or the error of a device.
    pub async fn write(&self, inode: Inode, offset: u64, bytes: &[u8]) -> Result<(), FsError> {
        self.write_contents(inode, offset, Contents::Bytes(bytes)).await
    }

    /// Writes `contents` at byte `offset` of regular file `inode`, in memory; a later write-back stores them.
    /// [`Contents::Blocks`] are kept without copying. The file becomes longer if the contents end behind its end. Empty
    /// contents change nothing.
    ///
    /// # Errors
    /// As for [`Fs::write`]: among others, [`FsError::Stale`] if the file does not exist, [`FsError::TooLarge`],
    /// [`FsError::NoSpace`], [`FsError::ReadOnly`] on a read-only mount.
    ///
    /// # Panics
    /// `contents` are blocks and `offset` is not a multiple of 4 KiB.
    pub async fn write_contents(&self, inode: Inode, offset: u64, contents: Contents<'_>) -> Result<(), FsError> {
        self.0.begin().await?;
        let length = contents.length();
        if length == 0 {
            return Ok(());
        }
        assert!(matches!(contents, Contents::Bytes(_)) || offset.is_multiple_of(BYTES), "blocks at byte {offset}");
        let end = offset.checked_add(length).filter(|end| *end <= SIZE_MAX).ok_or(FsError::TooLarge)?;
        self.0.files().check_regular(inode)?;
        if let Some(reason) = self.0.executor.blocked() {
            return Err(FsError::HostFull(reason));
        }
        // Before this write changes anything: a failed write-back of other data must not interrupt it halfway.
        self.0.write_back().evict().await?;
        let open = self.0.files().open_or_new(inode);
        let _passes = self.0.wait_unless_full(enter_to_write(&open, offset)).await?;
        self.0.files().write_staged(inode, &open, (offset, end), contents).await?;
        self.0.write_back().write_behind(inode, &open);
        Ok(())
    }

    /// Applies operation `what` of `fallocate` to the bytes from `offset` up to, and without, `offset + length` of file
    /// `inode`. If an error occurs, the size is unchanged, but some bytes of the range may be zeros already.
    ///
    /// # Errors
    /// [`FsError::Invalid`] if `length` is 0 or the file is neither regular nor a directory, [`FsError::IsDirectory`]
    /// for a directory, [`FsError::Stale`] if the file does not exist. [`FsError::TooLarge`] if the range exceeds the
    /// largest size of a file. [`FsError::NoSpace`] or [`FsError::NoMetadataSpace`] if no space can be reserved,
    /// [`FsError::HostFull`] if a device waits for space on the host's disk, [`FsError::ReadOnly`] on a read-only
    /// mount, or the error of a device.
    pub async fn allocate(&self, inode: Inode, offset: u64, length: u64, what: Allocate) -> Result<(), FsError> {
        self.0.begin().await?;
        if length == 0 {
            return Err(FsError::Invalid("no bytes"));
        }
        let end = offset.checked_add(length).filter(|end| *end <= SIZE_MAX).ok_or(FsError::TooLarge)?;
        self.0.files().check_regular(inode)?;
        let outcome = self.0.files().allocate_room(inode, (offset, end), what).await;
        self.0.files().forget_if_idle(inode);
        let before = outcome?;
        if matches!(what, Allocate::Room | Allocate::RoomKeepingSize) {
            return Ok(());
        }
        let is_longer = what == Allocate::Zeros && end > before;
        let mut next = offset;
        while next < end {
            // An error here leaves earlier pieces zeroed: the operation is not atomic.
            let evicted = self.0.write_back().evict().await;
            if evicted.is_err() && !is_longer {
                return evicted;
            }
            // The staged data may have been written back, and the entry in `Core::open` removed, since the last piece.
            let open = self.0.files().open_or_new(inode);
            let done = {
                // Only a holder of the locks can shorten the file again, so this wait must not fail for a longer file.
                let _passes = match is_longer {
                    true => open.enter().await,
                    false => self.0.wait_unless_full(open.enter()).await?,
                };
                // Blocks that are neither stored nor in memory read as zeros already.
                next = self.0.files().next_there(inode, &open, next, end);
                // One piece at a time, to bound the bytes in memory.
                let to = end.min((next / BYTES + self.0.bounds.piece_blocks) * BYTES);
                let done = match evicted {
                    Ok(()) => self.0.files().zero_piece(inode, &open, next, to, what).await,
                    Err(_) => evicted,
                };
                // A file with another size was changed by another task since.
                if done.is_err() && is_longer && self.0.files().attr(inode)?.attributes.size == end {
                    self.0.files().shorten(inode, &open, before)?;
                }
                next = to;
                done
            };
            self.0.files().forget_if_idle(inode);
            done?;
        }
        Ok(())
    }

    /// Returns the position in bytes of the first data, or of the first hole, at or behind byte `offset` of file
    /// `inode`: `offset` itself, the start of a later block of 4 KiB, or the end of the file. Data that are only in
    /// memory count as data; the end of the file counts as a hole.
    ///
    /// # Errors
    /// [`FsError::NoData`] if `offset` is not before the end of the file, or if data are sought and only a hole
    /// follows. [`FsError::Stale`] if the file does not exist.
    pub fn seek(&self, inode: Inode, offset: u64, what: Seek) -> Result<u64, FsError> {
        let size = self.0.files().attr(inode)?.attributes.size;
        if offset >= size {
            return Err(FsError::NoData);
        }
        let open = self.0.files().open_of(inode);
        let namespace = self.0.namespace.borrow();
        let node = namespace.node(inode)?;
        let end = size.div_ceil(BYTES);
        let mut at = offset / BYTES;
        while at < end {
            let look = |staged: Option<&Blocks>, end| piece_at(staged, &node.extents, at, end);
            let (is_data, until) = open.as_ref().map_or_else(|| look(None, end), |open| open.look_at(at, end, look));
            if is_data == (what == Seek::Data) {
                return Ok((at * BYTES).max(offset));
            }
            at = until;
        }
        match what {
            Seek::Hole => Ok(size),
            Seek::Data => Err(FsError::NoData),
        }
    }
}

impl Files<'_> {
    async fn read_from(self, inode: Inode, offset: u64, length: usize, takes_copies: bool) -> Result<Vec<u8>, FsError> {
        if self.0.namespace.borrow().node(inode)?.is_directory() {
            return Err(FsError::IsDirectory);
        }
        let size = self.attr(inode)?.attributes.size;
        let end = offset.saturating_add(length as u64).min(size);
        if offset >= end {
            return Ok(Vec::new());
        }
        let (first, last) = (offset / BYTES, (end - 1) / BYTES);
        if takes_copies {
            self.0.hot_tier().touch(inode, first, last + 1);
        }
        let mut bytes = self.read_blocks(inode, first, last + 1 - first, takes_copies).await?;
        bytes.truncate((end - first * BYTES) as usize);
        bytes.drain(..(offset - first * BYTES) as usize);
        Ok(bytes)
    }

    /// Reads blocks of a file in their current state: from memory or from the device, zeros in holes.
    async fn read_blocks(self, inode: Inode, first: u64, blocks: u64, takes_copies: bool) -> Result<Vec<u8>, FsError> {
        let mut bytes = vec![0; blocks as usize * BLOCK_BYTES];
        loop {
            let open = self.open_of(inode);
            let pushes = open.as_ref().map(|open| open.pushes.get());
            for (number, piece) in bytes.chunks_mut(self.0.bounds.piece_blocks as usize * BLOCK_BYTES).enumerate() {
                let at = first + number as u64 * self.0.bounds.piece_blocks;
                if !(takes_copies && self.0.hot_tier().read_copy(inode, at, piece).await) {
                    self.read_stored(inode, at, piece, takes_copies).await?;
                }
            }
            // A write-back that has ended meanwhile took blocks out of memory after their old contents were read: read
            // again.
            if open.as_ref().map(|open| open.pushes.get()) == pushes {
                if let Some(open) = open {
                    overlay(&open, first, &mut bytes);
                }
                return Ok(bytes);
            }
        }
    }

    /// Reads stored blocks of a file, checked by their checksums; zeros where nothing is stored. If `takes_copies` is
    /// set, blocks that the device does not give are read from a copy in the hot zone.
    pub(in crate::core) async fn read_stored(
        self,
        inode: Inode,
        first: u64,
        into: &mut [u8],
        takes_copies: bool,
    ) -> Result<(), FsError> {
        let end = first + (into.len() / BLOCK_BYTES) as u64;
        let extents = || -> Result<Vec<Extent>, FsError> {
            Ok(self.0.namespace.borrow().node(inode)?.extents.within(first, end).collect())
        };
        loop {
            let before = extents()?;
            let outcome = self.read_extents(&before, first, into, takes_copies).await;
            // The cleaner may have moved the blocks, or a truncation removed them: then the bytes read may be wrong.
            if extents()? == before {
                return outcome;
            }
        }
    }

    /// Reads `extents` into `into`, which begins with block `first` of the file. Several reads are in flight at a time,
    /// so a reader that continues behind these extents reaches the device after all of them.
    async fn read_extents(
        self,
        extents: &[Extent],
        first: u64,
        into: &mut [u8],
        takes_copies: bool,
    ) -> Result<(), FsError> {
        into.fill(0);
        let (mut reads, mut places) = (BoundedOrdered::new(self.0.bounds.pieces), VecDeque::new());
        let mut put = |place: Option<Range<usize>>, read: Result<Vec<u8>, FsError>| {
            read.map(|bytes| into[place.expect("each has its place")].copy_from_slice(&bytes))
        };
        let mut outcome = Ok(());
        for extent in extents {
            let from = (u64::from(extent.at) - first) as usize * BLOCK_BYTES;
            places.push_back(from..from + extent.blocks as usize * BLOCK_BYTES);
            let run = BlockRun { start: extent.start, blocks: u64::from(extent.blocks) };
            if let Some(read) = reads.begin(self.read_run(run, takes_copies)).await {
                outcome = outcome.and(put(places.pop_front(), read));
            }
        }
        // No read is left in flight: blocks become free when their readers have finished.
        while let Some(read) = reads.next().await {
            outcome = outcome.and(put(places.pop_front(), read));
        }
        outcome
    }

    /// Reads a run, and checks it by its checksums. Damaged blocks are reconstructed.
    ///
    /// # Errors
    /// [`FsError::Damaged`] with the first block that cannot be reconstructed.
    async fn read_run(self, run: BlockRun, takes_copies: bool) -> Result<Vec<u8>, FsError> {
        let read = self.0.releases.begin_read();
        let outcome = self.read_run_mended(run, takes_copies).await;
        self.0.releases.end_read(read);
        self.0.committer().free_released();
        let (bytes, _, mended) = outcome?;
        self.0.counters.add(|counters| counters.damaged_blocks += mended.lost.len() as u64);
        mended.lost.first().map_or(Ok(bytes), |block| Err(FsError::Damaged { block: *block }))
    }

    /// Like [`Files::read_run_as_it_is`], but reconstructs damaged blocks from parity or another copy of the metadata. If
    /// `takes_copies` is set, copies in the hot zone are used, too.
    pub(in crate::core) async fn read_run_mended(
        self,
        run: BlockRun,
        takes_copies: bool,
    ) -> Result<(Vec<u8>, Vec<u32>, RepairOutcome), FsError> {
        let (mut bytes, sums, read) = match self.read_run_as_it_is(run).await {
            Ok((bytes, sums)) => (bytes, sums, RepairOutcome::default()),
            Err(FsError::Device(_)) if takes_copies && self.0.hot_tier().has_hot_zone() => self.read_each(run).await?,
            Err(error) => return Err(error),
        };
        let mut mended = self.repair(run, &mut bytes, &sums, |_| true, takes_copies).await;
        mended.from_copies.extend(read.from_copies);
        Ok((bytes, sums, mended))
    }

    /// Reads a run block by block, because it cannot be read as a whole. Unreadable blocks are taken from copies in the
    /// hot zone.
    async fn read_each(self, run: BlockRun) -> Result<(Vec<u8>, Vec<u32>, RepairOutcome), FsError> {
        let sums = self.0.checksums.get(run.start, run.blocks).await?;
        let (mut bytes, mut mended) = (Vec::with_capacity(run.blocks as usize * BLOCK_BYTES), RepairOutcome::default());
        for (block, sum) in (run.start..).zip(&sums) {
            match self.0.hot_tier().read_blocks(block, 1).await {
                Ok(read) => bytes.extend(read),
                Err(error) => {
                    bytes.extend(self.0.hot_tier().block_of_copy(block, *sum).await.ok_or(error)?);
                    mended.from_copies.push(block);
                }
            }
        }
        Ok((bytes, sums, mended))
    }

    /// Reconstructs the blocks in `bytes` that do not match their checksums `sums`, if `are_meant` is true for them.
    pub(in crate::core) async fn repair(
        self,
        run: BlockRun,
        bytes: &mut [u8],
        sums: &[u32],
        are_meant: impl Fn(u64) -> bool,
        takes_copies: bool,
    ) -> RepairOutcome {
        let mut mended = RepairOutcome::default();
        for (number, (block, sum)) in (run.start..).zip(bytes.chunks_mut(BLOCK_BYTES).zip(sums)) {
            if !are_meant(number) || checksums::of_block(block) == *sum {
                continue;
            }
            let made = match self.0.hot_tier().reconstruct_block(number, *sum).await {
                None if takes_copies => {
                    let copy = self.0.hot_tier().block_of_copy(number, *sum).await;
                    mended.from_copies.extend(copy.is_some().then_some(number));
                    copy
                }
                made => made,
            };
            match made {
                Some(made) => block.copy_from_slice(&made),
                None => mended.lost.push(number),
            }
        }
        mended
    }

    /// Returns the bytes of a run as they were read, and the checksums that they should have.
    pub(in crate::core) async fn read_run_as_it_is(self, run: BlockRun) -> Result<(Vec<u8>, Vec<u32>), FsError> {
        let sums = self.0.checksums.get(run.start, run.blocks).await?;
        let mut bytes = Vec::with_capacity(run.blocks as usize * BLOCK_BYTES);
        let mut next = run.start;
        while next < run.end() {
            let count = (run.end() - next).min(self.0.bounds.piece_blocks);
            bytes.extend_from_slice(&self.0.hot_tier().read_blocks(next, count).await?);
            next += count;
        }
        Ok((bytes, sums))
    }

    fn check_regular(self, inode: Inode) -> Result<(), FsError> {
        let namespace = self.0.namespace.borrow();
        let node = namespace.node(inode)?;
        match (node.is_regular(), node.is_directory()) {
            (true, _) => Ok(()),
            (_, true) => Err(FsError::IsDirectory),
            _ => Err(FsError::Invalid("not a regular file")),
        }
    }

    /// Like [`Fs::write_contents`], for bytes `offset` to `end`; the caller holds the file's lock.
    async fn write_staged(
        self,
        inode: Inode,
        open: &Rc<Open>,
        (offset, end): (u64, u64),
        contents: Contents<'_>,
    ) -> Result<(), FsError> {
        let size = self.attr(inode)?.attributes.size;
        let (first, last) = ((offset / BYTES) as u32, ((end - 1) / BYTES) as u32);
        let mut edges = self.edges(inode, open, size, offset, end).await?;
        self.stage(inode, open);
        self.0.write_back().reserve(inode, open, first..last + 1, size.max(end)).await?;
        let mut staged = open.staged.borrow_mut();
        let staged = staged.as_mut().expect("it was staged just now");
        staged.is_appended &= offset == staged.size;
        let count_before = staged.blocks.len();
        for (at, block) in edges.drain(..) {
            staged.blocks.insert_if_none(at, Block::Bytes(block));
        }
        match contents {
            Contents::Bytes(bytes) => {
                for at in first..=last {
                    let block_start = u64::from(at) * BYTES;
                    let (from, to) = (offset.max(block_start), end.min(block_start + BYTES));
                    let piece = &bytes[(from - offset) as usize..(to - offset) as usize];
                    staged.blocks.write(at, (from - block_start) as usize, piece);
                }
            }
            Contents::Blocks(blocks) => {
                (first..).zip(blocks).for_each(|(at, block)| staged.blocks.insert(at, Block::Bytes(block)));
            }
        }
        staged.note_size(staged.size.max(end), self.0.bounds.behind_bytes);
        staged.modified_ns = self.0.time_ns();
        let added = (staged.blocks.len() - count_before) * BYTES;
        self.0.staging.add(added);
        Ok(())
    }

    /// Returns the stored blocks that a change of bytes `offset` to `end` needs in memory: blocks changed in part, and
    /// the last block of a file that becomes longer, because its bytes behind the old end must become zeros.
    async fn edges(
        self,
        inode: Inode,
        open: &Open,
        size: u64,
        offset: u64,
        end: u64,
    ) -> Result<Vec<(u32, Box<[u8; BLOCK_BYTES]>)>, FsError> {
        let mut wanted = Vec::new();
        if !offset.is_multiple_of(BYTES) && offset < size {
            wanted.push(offset / BYTES);
        }
        if !end.is_multiple_of(BYTES) && end < size {
            wanted.push(end / BYTES);
        }
        if end > size && !size.is_multiple_of(BYTES) {
            wanted.push(size / BYTES);
        }
        wanted.sort_unstable();
        wanted.dedup();
        let mut edges = Vec::new();
        for at in wanted {
            let is_staged = open.staged.borrow().as_ref().is_some_and(|staged| staged.blocks.get(at as u32).is_some());
            if is_staged {
                continue;
            }
            let mut block = Block::zeros();
            self.0.write_back().read_to_change(inode, at, &mut block[..], |_| false).await?;
            let behind = size.saturating_sub(at * BYTES).min(BYTES) as usize;
            block[behind..].fill(0);
            edges.push((at as u32, block));
        }
        Ok(edges)
    }

    /// Ensures that `open.staged` has a place for changes of the file.
    fn stage(self, inode: Inode, open: &Open) {
        let mut staged = open.staged.borrow_mut();
        if staged.is_some() {
            return;
        }
        let core = &self.0;
        let attributes = core.namespace.borrow().get(inode).map(|node| node.attributes).unwrap_or_default();
        *staged = Some(Staged {
            size: attributes.size,
            modified_ns: attributes.modified_ns,
            since: core.staging.next(),
            since_ns: core.executor.now_ns(),
            is_appended: true,
            ..Staged::default()
        });
    }

    /// Sets the length of a file to `size` bytes.
    pub(super) async fn truncate(self, inode: Inode, size: u64) -> Result<(), FsError> {
        self.check_regular(inode)?;
        if size > SIZE_MAX {
            return Err(FsError::TooLarge);
        }
        let open = self.open_or_new(inode);
        {
            let _passes = self.0.wait_unless_full(open.enter()).await?;
            let before = self.attr(inode)?.attributes.size;
            if size > before {
                self.lengthen(inode, &open, before, size).await?;
            } else {
                self.shorten(inode, &open, size)?;
            }
        }
        self.forget_if_idle(inode);
        Ok(())
    }

    pub(super) async fn lengthen(self, inode: Inode, open: &Rc<Open>, before: u64, size: u64) -> Result<(), FsError> {
        let mut edges = self.edges(inode, open, before, size, size).await?;
        self.stage(inode, open);
        let edge = (before / BYTES) as u32;
        self.0.write_back().reserve(inode, open, edge..edge + edges.len() as u32, size).await?;
        let mut staged = open.staged.borrow_mut();
        let staged = staged.as_mut().expect("it was staged just now");
        for (at, block) in edges.drain(..) {
            staged.blocks.insert(at, Block::Bytes(block));
            self.0.staging.add(BYTES);
        }
        staged.size = size;
        staged.modified_ns = self.0.time_ns();
        Ok(())
    }

    /// Shortens a file to `size` bytes. This takes no room, so it cannot fail for lack of it.
    fn shorten(self, inode: Inode, open: &Open, size: u64) -> Result<(), FsError> {
        let core = &self.0;
        let end = size.div_ceil(BYTES);
        core.written.borrow_mut().cut(inode, end.min(u64::from(u32::MAX)) as u32);
        if let Some(staged) = open.staged.borrow_mut().as_mut() {
            let cut = staged.blocks.split_off(end.min(u64::from(u32::MAX)) as u32);
            core.staging.remove(cut.len() * BYTES);
            (staged.is_appended, staged.goes_on) = (false, false);
            let last = (size / BYTES) as u32;
            if let Some(Block::Bytes(_)) = staged.blocks.get(last) {
                staged.blocks.bytes_mut(last)[(size % BYTES) as usize..].fill(0);
            }
            staged.size = size;
            staged.modified_ns = core.time_ns();
        }
        let (mut attributes, extents) = {
            let namespace = core.namespace.borrow();
            let node = namespace.node(inode)?;
            (node.attributes, node.extents.as_slice().to_vec())
        };
        attributes.size = attributes.size.min(size);
        (attributes.modified_ns, attributes.changed_ns) = (core.time_ns(), core.time_ns());
        self.drop_preallocated(inode, open, end.min(u64::from(u32::MAX)) as u32..u32::MAX);
        let kept: Vec<Extent> = extents.iter().filter_map(|extent| extent.within(0, end)).collect();
        self.record_extents(inode, Some(attributes), &kept);
        Ok(())
    }

    /// Reserves room for bytes `offset` to `end`, or releases preallocated room if the bytes become a hole. Returns the
    /// size of the file before, which [`Allocate::Room`] and [`Allocate::Zeros`] may have increased.
    async fn allocate_room(self, inode: Inode, (offset, end): (u64, u64), what: Allocate) -> Result<u64, FsError> {
        // A store that reserves certain blocks chooses them by all of the file, so the staged data are written first.
        let is_written_first = what != Allocate::PunchHole && self.0.store.places().is_some();
        if is_written_first {
            self.0.write_back().write_back_unless_full(inode).await?;
        }
        let open = self.open_or_new(inode);
        let _passes = self.0.wait_unless_full(open.enter()).await?;
        if is_written_first {
            // Writes back data that were staged since; mostly there are none.
            self.0.write_back().write_back_locked(inode, &open).await?;
        }
        let size = self.attr(inode)?.attributes.size;
        let within = (offset, end.min(size));
        match what {
            Allocate::Room | Allocate::Zeros => self.preallocate(inode, &open, (offset, end), false).await?,
            Allocate::RoomKeepingSize => self.preallocate(inode, &open, (offset, end), true).await?,
            Allocate::ZerosWithin if within.0 < within.1 => self.preallocate(inode, &open, within, true).await?,
            Allocate::ZerosWithin => {}
            Allocate::PunchHole => {
                let (first, last) = (offset.div_ceil(BYTES), end / BYTES);
                if first < last {
                    self.drop_preallocated(inode, &open, first as u32..last as u32);
                }
            }
        }
        Ok(size)
    }

    /// Returns the first byte from `from` on that is stored or in memory, or `end` if there is none before it.
    fn next_there(self, inode: Inode, open: &Open, from: u64, end: u64) -> u64 {
        let (first, last) = (from / BYTES, end.div_ceil(BYTES));
        let namespace = self.0.namespace.borrow();
        let stored = namespace.get(inode).and_then(|node| node.extents.within(first, last).next());
        let staged = open.staged.borrow();
        let staged = staged.as_ref().and_then(|staged| staged.blocks.range(first as u32..last as u32).next());
        let found = stored.map(|extent| extent.at).into_iter().chain(staged.map(|(at, _)| at)).min();
        found.map_or(end, |at| from.max(u64::from(at) * BYTES))
    }

    /// Turns bytes `offset` to `end` into zeros or holes, in blocks that are stored or in memory. Blocks that lie in
    /// the range only in part keep their other bytes.
    async fn zero_piece(
        self,
        inode: Inode,
        open: &Rc<Open>,
        offset: u64,
        end: u64,
        what: Allocate,
    ) -> Result<(), FsError> {
        let size = self.attr(inode)?.attributes.size;
        let end = end.min(size);
        if offset >= end {
            return Ok(());
        }
        let edges = self.edges(inode, open, size, offset, end).await?;
        self.stage(inode, open);
        let blocks = (offset / BYTES) as u32..end.div_ceil(BYTES) as u32;
        let takes_room = if what == Allocate::PunchHole { blocks.start..blocks.start + 2 } else { blocks.clone() };
        self.0.write_back().reserve(inode, open, takes_room, size).await?;
        let stored: Vec<Extent> = {
            let namespace = self.0.namespace.borrow();
            namespace.node(inode)?.extents.within(u64::from(blocks.start), u64::from(blocks.end)).collect()
        };
        let is_stored = |at: u32| stored.iter().any(|extent| extent.within(u64::from(at), u64::from(at) + 1).is_some());
        let mut staged = open.staged.borrow_mut();
        let staged = staged.as_mut().expect("it was staged just now");
        let count_before = staged.blocks.len();
        for (at, block) in edges {
            staged.blocks.insert_if_none(at, Block::Bytes(block));
        }
        for at in blocks {
            if staged.blocks.get(at).is_none() && !is_stored(at) {
                continue;
            }
            let start = u64::from(at) * BYTES;
            if offset <= start && end >= (start + BYTES).min(size) {
                let is_hole = what == Allocate::PunchHole;
                let zeros = if is_hole { Block::Zeros } else { Block::Bytes(Block::zeros()) };
                staged.blocks.insert(at, zeros);
            } else {
                let (from, to) = (offset.max(start) - start, end.min(start + BYTES) - start);
                staged.blocks.bytes_mut(at)[from as usize..to as usize].fill(0);
            }
        }
        staged.is_appended = false;
        staged.modified_ns = self.0.time_ns();
        let added = (staged.blocks.len() - count_before) * BYTES;
        self.0.staging.add(added);
        Ok(())
    }
}

/// Returns whether block `at` of a file of `end` blocks holds data, and the end of a range from there on in which all
/// blocks do, or none does.
fn piece_at(staged: Option<&Blocks>, extents: &Extents, at: u64, end: u64) -> (bool, u64) {
    if let Some(block) = staged.and_then(|staged| staged.get(at as u32)) {
        return (matches!(block, Block::Bytes(_)), at + 1);
    }
    let next_staged = staged.and_then(|staged| staged.range(at as u32..end as u32).next());
    let until = next_staged.map_or(end, |(next, _)| u64::from(next));
    match extents.within(at, until).next() {
        Some(extent) if u64::from(extent.at) == at => (true, extent.end()),
        Some(extent) => (false, u64::from(extent.at)),
        None => (false, until),
    }
}

/// Waits until a write at byte `offset` may change the file. A write behind data in flight does not wait for their
/// write-back.
async fn enter_to_write(open: &Open, offset: u64) -> (Option<MutexGuard>, MutexGuard) {
    if open.goes_on_at(offset) {
        let appends = open.appends.enter().await;
        // The write-back may have ended, or failed, meanwhile.
        if open.goes_on_at(offset) {
            return (None, appends);
        }
    }
    let (lock, appends) = open.enter().await;
    (Some(lock), appends)
}

/// Replaces bytes read from the device, from block `first` of the file on, by the file's blocks in memory.
fn overlay(open: &Open, first: u64, bytes: &mut [u8]) {
    for staged in [&open.in_flight, &open.staged] {
        if let Some(staged) = staged.borrow().as_ref() {
            overlay_staged(staged, first, bytes);
        }
    }
}

fn overlay_staged(staged: &Staged, first: u64, bytes: &mut [u8]) {
    let end = (first + (bytes.len() / BLOCK_BYTES) as u64).min(u64::from(u32::MAX));
    for (at, block) in staged.blocks.range(first as u32..end as u32) {
        let into = &mut bytes[(u64::from(at) - first) as usize * BLOCK_BYTES..][..BLOCK_BYTES];
        match block {
            Block::Bytes(block) => into.copy_from_slice(&block[..]),
            Block::Zeros => into.fill(0),
        }
    }
}

#[cfg(test)]
mod tests;
