//! Status of a file system, for `statfs` and `imbrex fs stat`.

use std::cell::RefCell;

use super::mount::make::bytes_in_slot;
use super::{Core, CoreParts, Fs};
use super::{PartStatus, Replaced};
use crate::array::ArrayCounters;
use crate::device::Traffic;
use crate::executor::Executor;
use crate::format::change::NODE_BYTES;
use crate::hot::HotStatus;
use crate::journal::mirror::State;
use crate::store::Usage;

/// Bytes that a small file takes in a checkpoint: an inode, a directory entry and an extent.
const FILE_BYTES: u64 = NODE_BYTES + 66;

/// Counters since the mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Number of files written to the data device.
    pub files_written: u64,
    /// Number of checkpoints taken.
    pub checkpoints: u64,
    /// Number of blocks copied by the cleaner, and by repairs of a scrub.
    pub blocks_cleaned: u64,
    /// Number of files that the cleaner moved as a whole.
    pub files_moved: u64,
    /// Number of zones that the cleaner emptied.
    pub zones_cleaned: u64,
    /// Time by which writers were slowed down, in nanoseconds, all writers together.
    pub throttled_ns: u64,
    /// Time that writers waited for a place to write to, in nanoseconds, all writers together. They wait for the writes
    /// of others, or for an empty zone.
    pub waited_ns: u64,
    /// Number of blocks that readers could not get: they did not match their checksums, and no other source had them.
    pub damaged_blocks: u64,
    /// Number of files whose names were left out of the records beside copied blocks, for lack of room. A file counts
    /// again at each such copy. Salvage then finds the file's name only in another record.
    pub names_left_out: u64,
}

/// Counters of a mounted file system.
#[derive(Default)]
pub(in crate::core) struct Tally(RefCell<Counters>);

impl Tally {
    /// Adds to the counters.
    pub(in crate::core) fn add(&self, count: impl FnOnce(&mut Counters)) {
        count(&mut self.0.borrow_mut());
    }

    /// Returns the counters now.
    pub(in crate::core) fn now(&self) -> Counters {
        *self.0.borrow()
    }
}

/// Answer to `statfs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statfs {
    /// Blocks of 4 KiB in which files can lie.
    pub blocks: u64,
    /// Free blocks of 4 KiB.
    pub free: u64,
    /// Number of files that exist or can be created.
    pub files: u64,
    /// Number of files that can still be created.
    pub files_free: u64,
}

/// Status of a file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// Name of the store.
    pub store: String,
    /// Whether the file system is mounted read-only.
    pub is_read_only: bool,
    /// Usage of the store.
    pub usage: Usage,
    /// Number of files.
    pub files: u64,
    /// Blocks of the log that are in use, and all of its blocks.
    pub log: (u64, u64),
    /// Size of a checkpoint now, and its upper bound, in bytes.
    pub checkpoint: (u64, u64),
    /// Bytes of files that are not yet written.
    pub staged_bytes: u64,
    /// Reason why writes wait, or why the last attempt to write everything failed.
    pub unwritten: Option<String>,
    /// Counters since the mount.
    pub counters: Counters,
    /// Traffic of the data device, or of all drives of the array.
    pub traffic: Traffic,
    /// Other counters of the array.
    pub array: ArrayCounters,
    /// Numbers of the drives of the array that are absent or failed, counted from 0.
    pub missing: Vec<u8>,
    /// Number of the drive that is being replaced, and the progress.
    pub replacing: Option<(u8, Replaced)>,
    /// Names of the spares, which wait for a drive of the array to fail.
    pub spares: Vec<String>,
    /// Names of missing spares.
    pub spares_missing: Vec<String>,
    /// Traffic of the devices with the metadata.
    pub metadata_traffic: Traffic,
    /// Copies of the metadata: number, device and state of each.
    pub copies: Vec<(usize, String, State)>,
    /// Number of metadata blocks that were to be overwritten with a better version from another copy, since the mount.
    /// All blocks of a piece count ([`crate::journal::mirror::Mirror::mended_blocks`]).
    pub mended_blocks: u64,
    /// Written blocks and live blocks of each zone; in store `log`, of each stripe group that exists.
    pub zones: Vec<(u64, u64)>,
    /// Number of zones, or stripe groups, that can be opened and are not in `zones`.
    pub zones_unopened: u64,
    /// Status of the hot zone, and its counters since the mount.
    pub hot: HotStatus,
    /// Status of the parts of the hot zone that lie on drives.
    pub hot_parts: Vec<PartStatus>,
}

impl Core {
    fn files_free(&self) -> u64 {
        let namespace = self.namespace.borrow();
        self.committer.checkpoint_bytes_max().saturating_sub(namespace.encoded_bytes()) / FILE_BYTES
    }
}

impl Fs {
    /// Returns the answer to `statfs`.
    pub fn statfs(&self) -> Statfs {
        let usage = self.0.store.usage();
        let (files, free) = (self.0.namespace.borrow().files(), self.0.files_free());
        // Deleted blocks count as free at once: a write that needs them waits until they are.
        let freed = usage.free + self.0.releases.blocks_below(self.0.superblock.hot_base());
        let blocks = usage.blocks.saturating_sub(usage.unusable);
        // Blocks that are stored only in the hot zone are used blocks. Free room of the zone is promised to no file.
        let alone = self.0.hot.alone_blocks();
        Statfs { blocks: blocks + alone, free: freed.min(blocks), files: files + free, files_free: free }
    }

    /// Returns the status of the file system.
    pub fn status(&self) -> Status {
        let core = &self.0;
        Status {
            store: core.store.name().into(),
            is_read_only: core.is_read_only,
            usage: core.store.usage(),
            files: core.namespace.borrow().files(),
            log: core.log.fill(),
            checkpoint: (
                core.namespace.borrow().encoded_bytes(),
                bytes_in_slot(core.superblock.layout.checkpoints[0].1),
            ),
            staged_bytes: core.staging.bytes(),
            unwritten: core.executor.blocked().or_else(|| core.committer.unwritten()),
            counters: core.counters.now(),
            traffic: core.data.traffic(),
            array: core.data.counters(),
            missing: core
                .data
                .array()
                .map_or(Vec::new(), |array| array.missing().into_iter().map(|(number, _)| number).collect()),
            replacing: core.replacement.progress(),
            spares: core.spares.names(),
            spares_missing: core.spares.missing(),
            metadata_traffic: core.metadata.traffic(),
            copies: core.metadata.copies(),
            mended_blocks: core.metadata.mended_blocks(),
            zones: core.store.zoned().map_or_else(Vec::new, |zoned| zoned.zones()),
            zones_unopened: core.store.stripe_groups().map_or(0, |groups| groups.unopened()),
            hot: core.hot_tier().hot_status(),
            hot_parts: core.hot_tier().part_status(),
        }
    }

    /// Returns the executor that runs the tasks of the file system.
    pub fn executor(&self) -> &Executor {
        &self.0.executor
    }

    /// Returns the faults of the namespace in memory; none if it is consistent.
    pub fn self_check(&self) -> Vec<String> {
        self.0.namespace.borrow().self_check()
    }
}
