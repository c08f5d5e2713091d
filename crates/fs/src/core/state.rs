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

/// Counts of events in a file system since the mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Number of times since the mount that data of a file were written back to the data device. A file counts again at
    /// each write-back, and for each part of a write-back that has a log record of its own. Writes to the hot zone do
    /// not count.
    pub files_written: u64,
    /// Number of checkpoints of the metadata completed since the mount.
    pub checkpoints: u64,
    /// Number of blocks of 4 KiB that the cleaner or a repairing scrub copied to another place since the mount.
    pub blocks_cleaned: u64,
    /// Number of files that the cleaner copied as a whole since the mount. Only the cleaning policy `files` does that.
    pub files_moved: u64,
    /// Number of zones, or stripe groups of an array, that the cleaner emptied and reset since the mount.
    pub zones_cleaned: u64,
    /// Time in nanoseconds since the mount for which writes to the data device were delayed so that the cleaner keeps
    /// pace. It is the sum over all writers.
    pub throttled_ns: u64,
    /// Time in nanoseconds since the mount for which writes to the data device waited until blocks were allocated for
    /// them: for the writes of others, or for an empty zone. It is the sum over all writers.
    pub waited_ns: u64,
    /// Number of blocks of 4 KiB that reads could not return since the mount, because they did not match their
    /// checksums and could not be reconstructed. A block counts again at each such read.
    pub damaged_blocks: u64,
    /// Number of files, since the mount, whose names were left out of the records that the cleaner writes beside copied
    /// blocks, for lack of space. A file counts again at each such copy. Salvage, the recovery of files without the
    /// metadata, then finds the name only in another record of the file.
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

/// Space and number of files of a file system, as `statfs` reports them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statfs {
    /// Number of blocks of 4 KiB in which data of files can be stored, used and free ones. Space that is kept back for
    /// the cleaner is excluded. Used blocks of files stored only in the hot zone are included.
    pub blocks: u64,
    /// Number of blocks of 4 KiB in which new data can be stored. Reserved blocks are not free. Blocks of deleted data
    /// count as free at once.
    pub free: u64,
    /// Number of files, directories included, that exist or can still be created.
    pub files: u64,
    /// Number of files that can still be created, estimated from the free space for metadata.
    pub files_free: u64,
}

/// Status of a mounted file system at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// Name of the store: `strict-append`, `caveat` or `log`.
    pub store: String,
    /// Whether the file system is mounted read-only.
    pub is_read_only: bool,
    /// Space of the store of file data, in blocks of 4 KiB: live, free and dead blocks, and blocks allocated and freed
    /// since the mount.
    pub usage: Usage,
    /// Number of files of all types, directories included.
    pub files: u64,
    /// Number of blocks of the metadata log in use, including those for records that wait in memory, and number of all
    /// blocks of the log. Blocks have 4 KiB.
    pub log: (u64, u64),
    /// Upper bounds in bytes: of the size that a checkpoint would have now, and of the size that a checkpoint can have.
    pub checkpoint: (u64, u64),
    /// Bytes of changed blocks of files in memory that are not written back yet. Early writes may have put some of them
    /// on the device already.
    pub staged_bytes: u64,
    /// Reason why writes wait for space on the host's disk, or otherwise the error of the last [`Fs::sync`]. `None` if
    /// neither applies.
    pub unwritten: Option<String>,
    /// Counts since the mount of write-backs, checkpoints, cleaning, delays of writes and damaged blocks.
    pub counters: Counters,
    /// Numbers of operations and blocks since the devices were opened: of the data device, or of all drives of the
    /// array together.
    pub traffic: Traffic,
    /// Counts of padding, parity and reconstruction of the array since the mount; all zero for a single drive.
    pub array: ArrayCounters,
    /// Numbers of the drives of the array that are absent or have failed, counted from 0.
    pub missing: Vec<u8>,
    /// Number of the drive that is being replaced now, counted from 0, and the numbers of stripe groups and blocks
    /// done. `None` if no replacement is in progress.
    pub replacing: Option<(u8, Replaced)>,
    /// Device names of the spares that are present and wait for a drive of the array to fail.
    pub spares: Vec<String>,
    /// Descriptions of the spares that were missing at the mount, with their UUIDs.
    pub spares_missing: Vec<String>,
    /// Numbers of operations and blocks since the devices were opened, of all devices with metadata together.
    pub metadata_traffic: Traffic,
    /// Copies of the metadata: number counted from 0, device name and state of each, including lost and replaced ones.
    pub copies: Vec<(usize, String, State)>,
    /// Number of metadata blocks of 4 KiB that were to be overwritten with a better version from another copy, since
    /// the mount. If one block of a frame of the log or of a chunk of a checkpoint is damaged, all blocks of the frame
    /// or chunk count ([`crate::journal::mirror::Mirror::mended_blocks`]).
    pub mended_blocks: u64,
    /// Number of written blocks of 4 KiB, and number of those that files use, of each zone of the store, in their
    /// order; in store `log`, of each stripe group that exists. Empty for a store without zones.
    pub zones: Vec<(u64, u64)>,
    /// Number of stripe groups that could be opened in the free zones of an array; they are not in `zones`. 0 for other
    /// stores.
    pub zones_unopened: u64,
    /// Numbers of blocks and files in the hot zone, and its counters since the mount. All are 0 without a hot zone.
    pub hot: HotStatus,
    /// Status of the parts of the hot zone that lie on drives of an array. Empty if the zone is not on drives.
    pub hot_parts: Vec<PartStatus>,
}

impl Core {
    fn files_free(&self) -> u64 {
        let namespace = self.namespace.borrow();
        self.committer.checkpoint_bytes_max().saturating_sub(namespace.encoded_bytes()) / FILE_BYTES
    }
}

impl Fs {
    /// Returns the space and the number of files, for `statfs`.
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

    /// Returns the present status of the file system. Nothing is read from the devices.
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

    /// Checks the consistency of the namespace in memory. Returns a message for each fault, and an empty list if there
    /// is none.
    pub fn self_check(&self) -> Vec<String> {
        self.0.namespace.borrow().self_check()
    }
}
