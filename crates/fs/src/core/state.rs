//! How a file system is doing: what `statfs` and `imbrex fs stat` tell.

use super::make::bytes_in_slot;
use super::{Core, Fs, PartStatus, Replaced};
use crate::array::ArrayCounters;
use crate::clock::Clock;
use crate::device::Traffic;
use crate::format::change::NODE_BYTES;
use crate::hot::HotStatus;
use crate::journal::mirror::State;
use crate::store::Usage;

/// Bytes that a small file takes in a checkpoint: a node, a name, an extent.
const FILE_BYTES: u64 = NODE_BYTES + 66;

/// What was done since it was mounted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Files written to the data device.
    pub files_written: u64,
    /// Checkpoints taken.
    pub checkpoints: u64,
    /// Blocks copied by the cleaner.
    pub blocks_cleaned: u64,
    /// Files that the cleaner moved as a whole.
    pub files_moved: u64,
    /// Zones emptied by the cleaner.
    pub zones_cleaned: u64,
    /// How long writers were slowed down, all of them together.
    pub throttled_ns: u64,
    /// How long writers waited for a place to write to, all of them together: until others had written theirs, or a zone was
    /// empty.
    pub waited_ns: u64,
    /// Blocks that could not be given to a reader: they do not match their checksum, and nothing else has them.
    pub damaged_blocks: u64,
    /// Files whose names records of copies do not tell, for there was little room.
    pub names_left_out: u64,
}

/// What `statfs` tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statfs {
    /// Blocks of 4 KiB that files could lie in.
    pub blocks: u64,
    /// Those that are free.
    pub free: u64,
    /// Files that there are and could be.
    pub files: u64,
    /// Files that could still be made.
    pub files_free: u64,
}

/// How a file system is doing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// The name of its store.
    pub store: String,
    /// Whether nothing can be changed.
    pub is_read_only: bool,
    /// What its store has.
    pub usage: Usage,
    /// Files.
    pub files: u64,
    /// Blocks of the log that are needed, and all of them.
    pub log: (u64, u64),
    /// Bytes of a checkpoint now, and at most.
    pub checkpoint: (u64, u64),
    /// Bytes that are not yet written.
    pub staged_bytes: u64,
    /// Why writes wait, or why the last attempt to write everything failed.
    pub unwritten: Option<String>,
    /// What was done since it was mounted.
    pub counters: Counters,
    /// What was asked of the data device, or of all drives of the array.
    pub traffic: Traffic,
    /// What an array did besides.
    pub array: ArrayCounters,
    /// Drives of an array that are not there: their numbers.
    pub missing: Vec<u8>,
    /// The drive that is being replaced, and how far.
    pub replacing: Option<(u8, Replaced)>,
    /// Drives that wait for one of the array to fail.
    pub spares: Vec<String>,
    /// Drives that were to wait for one to fail, and are not there.
    pub spares_missing: Vec<String>,
    /// What was asked of the devices with the metadata.
    pub metadata_traffic: Traffic,
    /// The copies of the metadata: the number of each, its device, and how it stands.
    pub copies: Vec<(usize, String, State)>,
    /// Blocks of the metadata that were damaged on one copy and are made again from another.
    pub mended_blocks: u64,
    /// Each zone's written and live blocks; in store `log` each stripe group's that there is.
    pub zones: Vec<(u64, u64)>,
    /// Zones, or stripe groups, that could be opened, beside these.
    pub zones_unopened: u64,
    /// The hot zone, and what it did since it was mounted.
    pub hot: HotStatus,
    /// The parts of it that lie on drives.
    pub hot_parts: Vec<PartStatus>,
}

impl Core {
    fn files_free(&self) -> u64 {
        let namespace = self.namespace.borrow();
        self.checkpoint_bytes_max.saturating_sub(namespace.encoded_bytes()) / FILE_BYTES
    }
}

impl Fs {
    /// What `statfs` tells.
    pub fn statfs(&self) -> Statfs {
        let usage = self.0.store.usage();
        let (files, free) = (self.0.namespace.borrow().files(), self.0.files_free());
        // What was deleted counts as free at once: a write that needs it waits for it.
        let freed = usage.free + self.0.releases.borrow().blocks_below(self.0.superblock.hot_base());
        let blocks = usage.blocks.saturating_sub(usage.unusable);
        // What lies in the hot zone alone is used, and free room of the zone is promised to nobody.
        let alone = self.0.hot.borrow().alone_blocks;
        Statfs { blocks: blocks + alone, free: freed.min(blocks), files: files + free, files_free: free }
    }

    /// How it is doing.
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
            staged_bytes: core.staged_bytes.get(),
            unwritten: core.clock.blocked().or_else(|| core.unwritten.borrow().as_ref().map(ToString::to_string)),
            counters: *core.counters.borrow(),
            traffic: core.data.traffic(),
            array: core.data.counters(),
            missing: core
                .data
                .array()
                .map_or(Vec::new(), |array| array.missing().into_iter().map(|(number, _)| number).collect()),
            replacing: core.replaced.get(),
            spares: core.spares.borrow().iter().map(|(_, device)| device.name().to_string()).collect(),
            spares_missing: core.spares_missing.clone(),
            metadata_traffic: core.metadata.traffic(),
            copies: core.metadata.copies(),
            mended_blocks: core.metadata.mended_blocks(),
            zones: core.store.zones(),
            zones_unopened: core.store.zones_unopened(),
            hot: core.hot_status(),
            hot_parts: core.part_status(),
        }
    }

    /// The clock that it runs on.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// What is wrong with the namespace in memory; nothing if it is as it should be.
    pub fn self_check(&self) -> Vec<String> {
        self.0.namespace.borrow().self_check()
    }
}
