//! The committer: durability of changes, by commits and checkpoints, and the tasks that start them.

pub(in crate::core) mod fill;
pub(in crate::core) mod releases;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::core::{Core, CoreParts, Fs, Sabotage};
use crate::error::FsError;
use crate::executor::{Signal, select};
use crate::format::change::{Change, HEAT_BYTES, Inode};
use crate::format::superblock::LastDurable;
use crate::journal::checkpoint::Writer;

/// Commits and checkpoints.
#[derive(Clone, Copy)]
pub(in crate::core) struct Committer<'a>(&'a Rc<Core>);

impl<'a> Committer<'a> {
    pub(in crate::core) fn of(core: &'a Rc<Core>) -> Committer<'a> {
        Committer(core)
    }
}

/// Names of a directory that are added to a checkpoint at a time.
const NAMES_AT_ONCE: usize = 1024;
/// Files that are added to a checkpoint at a time.
const FILES_AT_ONCE: usize = 256;
/// Divisor of the size of a checkpoint: the heat of files takes at most this share (1/16), and at most half of the free
/// bytes.
const HEAT_SHARE: u64 = 16;
/// Largest number of files in a [`Change::Heat`] of a checkpoint.
const HEAT_AT_ONCE: usize = 1024;
/// Number of attempts to write a checkpoint that has no room because of changes made meanwhile.
const CHECKPOINT_ATTEMPTS: u32 = 8;

/// State of the committer.
pub(in crate::core) struct CommitterState {
    /// Number and slot (0 or 1) of the newest valid checkpoint.
    newest: Cell<(u64, usize)>,
    /// Whether a checkpoint is being written.
    is_running: Cell<bool>,
    /// Signal that a checkpoint has been written, or has failed.
    ended: Signal,
    checkpoint_bytes_max: u64,
    /// Error of the last attempt to write everything, if it failed.
    unwritten: RefCell<Option<FsError>>,
}

impl CommitterState {
    /// Creates the state after a mount that read checkpoint `number` from slot `slot`. A slot has room for
    /// `checkpoint_bytes_max` bytes.
    pub(in crate::core) fn new((number, slot): (u64, usize), checkpoint_bytes_max: u64) -> CommitterState {
        CommitterState {
            newest: Cell::new((number, slot)),
            is_running: Cell::new(false),
            ended: Signal::default(),
            checkpoint_bytes_max,
            unwritten: RefCell::default(),
        }
    }

    /// Returns the upper bound of the size of a checkpoint, in bytes.
    pub(in crate::core) fn checkpoint_bytes_max(&self) -> u64 {
        self.checkpoint_bytes_max
    }

    /// Returns why the last attempt to write everything failed, if it did.
    pub(in crate::core) fn unwritten(&self) -> Option<String> {
        self.unwritten.borrow().as_ref().map(ToString::to_string)
    }
}

impl Committer<'_> {
    async fn commit_record(self, record: u64) -> Result<(), FsError> {
        self.0.log.commit(record, &self.0.data).await
    }
}

impl Fs {
    /// Makes file `inode` durable: its contents, its length, and all changes of names and attributes, of any file, that
    /// were made before the call. Does nothing if the file system is mounted read-only.
    ///
    /// # Errors
    /// The error of the write-back or of the commit. With [`FsError::HostFull`], a device waits for space; the
    /// write-back and the commit continue in the background.
    pub async fn fsync(&self, inode: Inode) -> Result<(), FsError> {
        if self.0.is_read_only {
            return Ok(());
        }
        let core = self.0.clone();
        let written = async move {
            core.write_back().write_back(inode).await?;
            core.committer().commit_all().await
        };
        self.0.spawn_unless_full(written).await?
    }

    /// Makes all changes of all files durable that were made before the call. Does nothing if the file system is
    /// mounted read-only.
    ///
    /// # Errors
    /// The error of the write-back or of the commit. With [`FsError::HostFull`], a device waits for space; the
    /// write-back and the commit continue in the background.
    pub async fn sync(&self) -> Result<(), FsError> {
        if self.0.is_read_only {
            return Ok(());
        }
        let core = self.0.clone();
        let outcome =
            self.0.spawn_unless_full(async move { core.committer().write_everything().await }).await.flatten();
        let failed = outcome.as_ref().err().filter(|error| !matches!(error, FsError::HostFull(_)));
        *self.0.committer.unwritten.borrow_mut() = failed.cloned();
        outcome
    }

    /// Takes a checkpoint: writes the whole namespace to the metadata area, so that the log before it is not needed any
    /// more. Other tasks may make changes meanwhile. Does nothing if a checkpoint is being taken already, or if the
    /// file system is mounted read-only.
    ///
    /// # Errors
    /// [`FsError::NoMetadataSpace`] if a checkpoint has no room for the namespace, or the error of a device. Operations
    /// that wait for room in the log get the same error.
    pub async fn checkpoint(&self) -> Result<(), FsError> {
        self.0.committer().checkpoint().await
    }

    /// Writes all changes, takes a checkpoint, and ends the background tasks of the file system. All handles of open
    /// files are invalid afterwards. A read-only mount writes nothing.
    ///
    /// # Errors
    /// The error of a write or of the checkpoint. The background tasks end all the same.
    pub async fn unmount(&self) -> Result<(), FsError> {
        let outcome = self.0.committer().unmount_in_order().await;
        self.0.shutdown.begin();
        outcome
    }
}

impl Committer<'_> {
    async fn write_everything(self) -> Result<(), FsError> {
        let before_ns = self.0.executor.now_ns() + 1;
        while let Some(inode) = self.0.write_back().oldest_staged(before_ns) {
            self.0.write_back().write_back(inode).await?;
        }
        self.0.write_back().write_records().await?;
        self.commit_all().await
    }

    pub(in crate::core) async fn commit_all(self) -> Result<(), FsError> {
        let core = &self.0;
        if core.faults.makes(Sabotage::AcknowledgeBeforeCommit) {
            return Ok(());
        }
        let outcome = core.committer().commit_record(core.log.made()).await;
        self.free_released();
        outcome
    }

    /// Commits if many bytes of records wait. If the log has no room now, or the host's disk is full, the records wait
    /// longer, because no caller asked for the commit.
    pub(in crate::core) async fn commit_if_much(self) -> Result<(), FsError> {
        let log = &self.0.log;
        if log.pending_bytes() < self.0.bounds.pending_bytes {
            return Ok(());
        }
        let core = self.0.clone();
        let outcome =
            self.0.spawn_unless_full(async move { core.committer().commit_record(core.log.made()).await }).await;
        self.free_released();
        outcome.flatten().or_else(|_| log.check())
    }

    /// Returns blocks to the store and the hot zone whose freeing records are durable and whose readers have finished.
    pub(in crate::core) fn free_released(self) {
        let core = &self.0;
        let durable = core.log.durable();
        loop {
            let next = core.releases.next(durable);
            let Some(runs) = next else { return };
            runs.iter().for_each(|run| core.hot_tier().free(*run));
        }
    }

    /// Takes a checkpoint of all of the namespace, while changes go on. Does nothing if a checkpoint is being taken
    /// already. If the checkpoint fails, operations that wait for room in the log get the error.
    async fn checkpoint(self) -> Result<(), FsError> {
        let core = &self.0;
        if core.committer.is_running.get() || core.is_read_only {
            return Ok(());
        }
        core.committer.is_running.set(true);
        let outcome = self.write_checkpoint_that_fits().await;
        core.committer.is_running.set(false);
        core.committer.ended.give();
        if let Err(error) = &outcome {
            core.log.refuse(error.clone());
        }
        outcome
    }

    /// Writes a checkpoint, and repeats that if it has no room although the namespace would fit: an object that changes
    /// meanwhile may be in the checkpoint twice, in its old and its new state. The fuller the log, the fewer changes
    /// are made meanwhile.
    async fn write_checkpoint_that_fits(self) -> Result<(), FsError> {
        for attempt in 1..CHECKPOINT_ATTEMPTS {
            self.0.check_checkpoint_room()?;
            match self.write_checkpoint(attempt == 1).await {
                Err(FsError::NoMetadataSpace) => {}
                outcome => return outcome,
            }
        }
        self.write_checkpoint(false).await
    }

    /// Like [`Fs::checkpoint`], of all changes made before the call: a checkpoint that is being written already may
    /// lack some of them.
    pub(in crate::core) async fn checkpoint_from_now_on(self) -> Result<(), FsError> {
        let core = &self.0;
        while core.committer.is_running.get() {
            core.committer.ended.next().await;
        }
        self.checkpoint().await
    }

    /// Writes a checkpoint; the heat of files is a part of it if `with_heat` is set.
    async fn write_checkpoint(self, with_heat: bool) -> Result<(), FsError> {
        let core = &self.0;
        core.record_store();
        let (number, slot) = core.committer.newest.get();
        let place = core.log.head();
        let (next, area) = (1 - slot, core.metadata.clone());
        let uuid = core.superblock.uuid.as_u128();
        let mut writer = Writer::new(area.clone(), uuid, core.superblock.layout.checkpoints[next], number + 1, place);
        let validates_early = core.faults.makes(Sabotage::CheckpointWithoutBarrier);
        self.describe_all(&mut writer).await?;
        if with_heat {
            self.describe_heat(&mut writer).await?;
        }
        let files = core.namespace.borrow().files();
        writer.finish(files).await?;
        core.checksums.write_back().await?;
        if !validates_early {
            // Every change that the checkpoint may contain is durable before the checkpoint is valid (invariant 3 of
            // the journal).
            core.log.commit_for_checkpoint(core.log.made(), &core.data).await?;
            area.flush().await?;
        }
        let header = writer.validate().await?;
        core.committer.newest.set((header.number, next));
        // The log keeps frames that this checkpoint replaces until the superblocks name the checkpoint.
        area.record_last_durable(LastDurable {
            checkpoint: header.number,
            frame: core.log.durable_frame(),
            is_closed: false,
        })
        .await?;
        core.counters.add(|counters| counters.checkpoints += 1);
        core.log.release(place);
        self.free_released();
        Ok(())
    }

    async fn describe_all(self, writer: &mut Writer) -> Result<(), FsError> {
        let core = &self.0;
        // Stripe groups come first, because the extents of files lie in them.
        let rest = core.namespace.borrow().describe_rest();
        writer.add(&rest).await?;
        let mut next: Inode = 0;
        loop {
            let (mut changes, mut directories) = (Vec::new(), Vec::new());
            {
                let namespace = core.namespace.borrow();
                let inodes: Vec<Inode> =
                    namespace.nodes_from(next).take(FILES_AT_ONCE).map(|(inode, _)| inode).collect();
                let Some(last) = inodes.last() else { return Ok(()) };
                next = last + 1;
                for inode in inodes {
                    namespace.describe(inode, &mut changes);
                    if namespace.directory(inode).is_ok_and(|directory| !directory.is_empty()) {
                        directories.push(inode);
                    }
                }
            }
            writer.add(&changes).await?;
            for directory in directories {
                self.describe_names(directory, writer).await?;
            }
        }
    }

    /// Adds the heat of files to a checkpoint, the hottest first, as far as there is room.
    async fn describe_heat(self, writer: &mut Writer) -> Result<(), FsError> {
        let core = &self.0;
        if !core.hot_tier().has_hot_zone() {
            return Ok(());
        }
        let free = core.committer.checkpoint_bytes_max().saturating_sub(core.namespace.borrow().encoded_bytes());
        let count = (free / 2).min(core.committer.checkpoint_bytes_max() / HEAT_SHARE) / HEAT_BYTES;
        let hottest = core.hot.hottest(count as usize, core.executor.now_ns());
        for files in hottest.chunks(HEAT_AT_ONCE) {
            writer.add(&[Change::Heat { files: files.to_vec() }]).await?;
        }
        Ok(())
    }

    async fn describe_names(self, directory: Inode, writer: &mut Writer) -> Result<(), FsError> {
        let mut from = Some(0);
        while let Some(cookie) = from {
            let mut changes = Vec::new();
            from = self.0.namespace.borrow().describe_names(directory, cookie, NAMES_AT_ONCE, &mut changes);
            writer.add(&changes).await?;
        }
        Ok(())
    }

    /// Takes checkpoints when the log fills, and at intervals of [`crate::core::Bounds::checkpoint_ns`], until the file
    /// system is unmounted. After a failure, the next request for room or the next commit starts another attempt.
    pub(in crate::core) async fn take_checkpoints(self) {
        let core = self.0.clone();
        let interval_from =
            |now_ns: u64| core.bounds.checkpoint_ns.map(|interval_ns| now_ns.saturating_add(interval_ns));
        let mut next_ns = interval_from(core.executor.now_ns());
        while !core.shutdown.has_begun() {
            let (short, room) = (core.log.is_short.next(), core.log.has_room.next());
            let (committed, over) = (core.log.committed.next(), core.shutdown.next());
            let (used, blocks) = core.log.fill();
            let now_ns = core.executor.now_ns();
            let is_time = used > 0 && next_ns.is_some_and(|next_ns| next_ns <= now_ns);
            let is_full = used * 100 >= blocks * core.bounds.log_percent && used > 1 || !core.log.has_room_now();
            let is_running = core.committer.is_running.get();
            if is_time && !is_running {
                next_ns = interval_from(now_ns);
            }
            if !(is_full || is_time) || is_running {
                let woken = select(select(short, room), select(committed, over));
                match next_ns.filter(|next_ns| *next_ns > now_ns) {
                    Some(next_ns) => select(woken, core.executor.sleep_until(next_ns)).await,
                    None => woken.await,
                }
            } else if self.checkpoint().await.is_err() {
                // The failure has given `has_room` to wake the operations that wait. That signal must not start another
                // attempt.
                select(core.log.is_short.next(), select(core.log.committed.next(), core.shutdown.next())).await;
            }
        }
    }

    /// Commits records, and writes back files changed long ago, at regular intervals until unmounted: the kernel does
    /// not report `sync(2)` to a file system in user space.
    pub(in crate::core) async fn commit_on_time(self) {
        let core = self.0.clone();
        while !core.shutdown.has_begun() {
            select(core.executor.sleep(core.bounds.commit_ns), core.shutdown.next()).await;
            let before_ns = core.executor.now_ns().saturating_sub(core.bounds.dirty_ns);
            while let Some(inode) = self.0.write_back().oldest_staged(before_ns) {
                if self.0.write_back().write_back(inode).await.is_err() {
                    break;
                }
            }
            // A failed write gives up its zone. If the next attempt fails too, its caller gets the error.
            let _ = self.0.write_back().write_records().await;
            // The log keeps a permanent error for the next caller. If it only has no room now, it may have some later.
            if self.commit_all().await.is_err() && core.log.check().is_err() {
                return;
            }
        }
    }

    async fn unmount_in_order(self) -> Result<(), FsError> {
        if self.0.is_read_only {
            return Ok(());
        }
        self.0.files().forget_everything();
        // Staged data would be lost if an unmount were refused on a full disk of the host, so it waits.
        self.write_everything().await?;
        // Cleaning in progress leaves records, too. With the lock held, no new cleaning begins.
        let _pass = self.0.cleaner.enter().await;
        self.0.write_back().write_records().await?;
        self.record_rows();
        self.checkpoint_from_now_on().await?;
        let (metadata, frame) = (&self.0.metadata, self.0.log.durable_frame());
        Ok(metadata.record_last_durable(LastDurable { frame, is_closed: true, ..metadata.last_durable() }).await?)
    }
}
