//! The core: operations on files, and what makes them last. One file a kind of operation.
//!
//! Invariants:
//! 1. The namespace is altered by records alone, each applied at one go, with no await in between: so every operation
//!    is atomic for others, and after a power cut.
//! 2. A record that names data is made after they were written, and a commit flushes the data device first.
//! 3. Blocks are freed for the store when the record that frees them is durable and nobody reads them any more.
//! 4. Bytes in memory that are not yet written are at most [`Bounds::cache_bytes`], besides those of writes under way.
//!    Blocks that were written and are kept for later changes are at most [`Bounds::written_blocks`].

mod ahead;
mod alone;
mod appends;
mod attributes;
mod behind;
mod cleaner;
mod commit;
mod copies;
mod data;
mod extents;
mod fill;
mod hints;
mod host_disks;
mod hot;
mod inspect;
mod lifetime;
mod make;
mod make_hot;
mod members;
mod mount;
mod names;
mod parts;
mod pieces;
mod preallocated;
mod push;
mod records;
mod releases;
mod replace;
mod room;
mod scrub;
mod sound;
mod spares;
mod staged;
mod state;
mod written;

/// What salvaging shares with making and mounting.
pub(crate) mod made {
    pub(crate) use super::make::{blank, bytes_in_slot, erase, lay_out, refuse_used};
    pub(crate) use super::members::check_member;
    pub(crate) use super::members::{check_enough, drives_of, parts};
    pub(crate) use super::mount::has_checkpoint;
    pub(crate) use super::sound::check_groups;
}

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use uuid::Uuid;

pub use self::attributes::{Attr, SetAttr, SetAttribute};
pub use self::data::{Allocate, Contents, Seek};
use self::lifetime::Lookups;
pub use self::make::{MakeOptions, Parts, Plan, make, make_on, plan};
pub use self::make_hot::HotOn;
pub use self::members::look;
pub use self::mount::{MountOptions, Mounted};
pub use self::names::{Caller, Listed, Rename};
use self::parts::HotParts;
pub use self::parts::{PartStatus, Standing};
use self::releases::Releases;
pub use self::replace::Replaced;
pub use self::scrub::Scrubbed;
use self::staged::Open;
pub use self::state::{Statfs, Status};
use self::written::Written;
use crate::array::Data;
use crate::clock::{Clock, Gate, Signal};
use crate::device::Device;
use crate::device::queue::QueueLimits;
use crate::error::FsError;
use crate::format::change::{Change, Inode};
use crate::format::superblock::Superblock;
use crate::hot::{HotZone, Keeping, Limits};
use crate::journal::{Checksums, Log, Mirror};
use crate::namespace::Namespace;
use crate::store::{Held, Store};

/// The bounds of what the core keeps in memory, and its times. Tests set them to their smallest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Bytes of files that are not yet written (Singh 2014 §2.2.2: a buffer cache of 2 GB).
    pub cache_bytes: u64,
    /// When so many bytes were appended to a file they are written while more comes.
    pub behind_bytes: u64,
    /// Blocks that were written and stay in memory, for changes that build on them.
    pub written_blocks: usize,
    /// Pages of 1,020 checksums in memory.
    pub checksum_pages: usize,
    /// Blocks of data that are read or written in one command.
    pub piece_blocks: u64,
    /// How many such commands a file that is written gives the device at a time: between two the disk turns on.
    pub pieces: usize,
    /// How many appends of a file to a stripe group are under way at a time, each of so many commands.
    pub appends: usize,
    /// When so many bytes of records wait they are committed, without anybody asking.
    pub pending_bytes: usize,
    /// How often records are committed, and files written that were changed longer ago than `dirty_ns`.
    pub commit_ns: u64,
    /// How old a change may become before it is written.
    pub dirty_ns: u64,
    /// How long a write to a full drive waits for files to be closed that have no name any more.
    pub closing_ns: u64,
    /// A checkpoint is taken when so much of the log is needed, in percent.
    pub log_percent: u64,
    /// What the hot zone keeps to, besides its size.
    pub hot: Limits,
    /// What the queue of each device keeps to.
    pub queue: QueueLimits,
    /// Files that are brought into the hot zone before they are made durable there together.
    pub hot_batch: usize,
    /// Bytes of what a record tells of a copy in the hot zone, at most, but one checksum or one piece of a file always. A frame of the
    /// log bounds it too.
    pub hot_record_bytes: u64,
    /// Bytes of what a record tells of where a file lies, at most, but one piece always. A frame of the log bounds it too.
    pub extent_record_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        const SECOND_NS: u64 = 1_000_000_000;
        Bounds {
            cache_bytes: 2 << 30,
            behind_bytes: 16 << 20,
            written_blocks: 64 << 10,
            checksum_pages: 16 << 10,
            piece_blocks: 256,
            pieces: 4,
            appends: 4,
            pending_bytes: 1 << 20,
            commit_ns: 5 * SECOND_NS,
            dirty_ns: 30 * SECOND_NS,
            closing_ns: SECOND_NS / 5,
            log_percent: 40,
            hot: Limits { files: 64 << 10, half_ns: 600 * SECOND_NS, small_blocks: 8 },
            hot_batch: 16,
            hot_record_bytes: 64 << 10,
            extent_record_bytes: 64 << 10,
            queue: QueueLimits::default(),
        }
    }
}

impl Bounds {
    /// The smallest with which it works: everything is evicted, rolled over and written all the time.
    pub fn smallest() -> Bounds {
        Bounds {
            cache_bytes: 4096,
            behind_bytes: 1,
            written_blocks: 1,
            checksum_pages: 1,
            piece_blocks: 1,
            pieces: 1,
            appends: 1,
            pending_bytes: 1,
            closing_ns: 0,
            log_percent: 1,
            hot: Limits { files: 1, ..Bounds::default().hot },
            hot_batch: 1,
            hot_record_bytes: 1,
            extent_record_bytes: 1,
            queue: QueueLimits::SMALLEST,
            ..Bounds::default()
        }
    }
}

/// Of what a checkpoint may have one part in so many is kept back for pieces into which files are cut where zones end.
const KEPT_BACK: u64 = 64;

/// Whose piece it is, and with which block of the file it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    pub inode: Inode,
    pub at: u32,
}

/// What every task of a mounted file system shares.
pub(crate) struct Core {
    pub clock: Clock,
    /// Nanoseconds from 1970 to the beginning of the clock.
    pub epoch_ns: i64,
    pub superblock: Superblock,
    pub data: Data,
    pub metadata: Mirror,
    pub bounds: Bounds,
    pub is_read_only: bool,
    pub namespace: RefCell<Namespace>,
    pub store: Box<dyn Store>,
    pub log: Log,
    pub checksums: Checksums,
    /// Whose piece lies where, by the first block of it on the device: for the cleaner.
    pub owners: RefCell<BTreeMap<u64, Owner>>,
    /// One zone is emptied at a time.
    pub cleaning: Gate,
    /// One drive is replaced at a time: which, and how far.
    pub replacing: Gate,
    pub replaced: Cell<Option<(u8, Replaced)>>,
    /// Drives that wait for one of the array to fail.
    pub spares: RefCell<Vec<(Uuid, Device)>>,
    /// Spares that were not there when it was mounted.
    pub spares_missing: Vec<String>,
    pub open: RefCell<BTreeMap<Inode, Rc<Open>>>,
    /// Lookup counts of the inodes that the kernel holds.
    pub lookups: RefCell<Lookups>,
    /// The first generation that may not be given before the log says so.
    pub generations_below: Cell<u64>,
    pub staged_bytes: Cell<u64>,
    /// Why the last attempt to write everything failed, if it did.
    pub unwritten: RefCell<Option<FsError>>,
    pub staged_since: Cell<u64>,
    pub releases: RefCell<Releases>,
    /// Reserved room of each file with preallocated blocks. Room lent to staged data is not counted here.
    pub preallocated: RefCell<BTreeMap<Inode, Held>>,
    pub checkpoint: RefCell<commit::Checkpoints>,
    /// One that was being written is written, or has failed.
    pub checkpoint_over: Signal,
    pub is_over: Cell<bool>,
    pub over: Signal,
    pub counters: RefCell<state::Counters>,
    /// Bytes a checkpoint may have.
    pub checkpoint_bytes_max: u64,
    /// A step that is left out on purpose: how tests know that they would notice.
    pub sabotage: Option<Sabotage>,
    /// Blocks as they were last written.
    pub written: RefCell<Written>,
    /// When somebody wrote to the data device last.
    pub wrote_ns: Cell<u64>,
    /// How long the cleaner takes for each block of room that it makes.
    pub gain_ns: Cell<u64>,
    /// The next number that orders records in the data.
    pub sequence: Cell<u64>,
    /// The first that may not be given before the log says so; 0 where none may be yet.
    pub sequence_below: Cell<u64>,
    /// What of files in the hot zone is in the store too.
    pub keeping: Keeping,
    /// What lies in the hot zone; it has no blocks where there is none.
    pub hot: RefCell<HotZone>,
    /// The parts of it that lie on drives.
    pub parts: HotParts,
    /// A file wants to come into it.
    pub hot_wanted: Signal,
    /// A hint that changed waits no more.
    pub hint_taken: Signal,
    /// Writes that a mistake made on purpose puts off, for tests.
    pub late_writes: RefCell<Vec<(u64, Vec<u8>)>>,
}

/// A mistake made on purpose, one of those that tests of power cuts must catch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sabotage {
    /// Records are written before the data that they name.
    RecordBeforeData,
    /// A checkpoint is made valid before its chunks and the log are durable.
    CheckpointWithoutBarrier,
    /// Blocks are freed, and so used again, and zones reset, before the freeing record is durable.
    ReuseBeforeRecord,
    /// The footer of a caveat disk is given back before the data are written.
    FooterGivenBackEarly,
    /// `fsync` answers before the commit.
    AcknowledgeBeforeCommit,
    /// Parity is written after the records of the data that it belongs to.
    ParityLate,
    /// A file that changes keeps its copy in the hot zone.
    CopyKept,
    /// The record of a file in the hot zone is made before what lies there is durable.
    CopyBeforeDurable,
    /// What goes to the hot zone is written to the first copy of the metadata alone.
    OneCopyWritten,
    /// What a drive holds of the hot zone is believed whatever time it is of.
    StalePartBelieved,
    /// Stripe groups are appended to before it is durable that what was told of their rows is forgotten.
    RowsForgottenLate,
    /// A mount begins no generation of the copies of the metadata.
    GenerationNotBegun,
    /// The superblocks do not vouch for checkpoints and log.
    NoWitness,
}

impl Sabotage {
    /// Those that only a write shows that the disk lost, or a copy put back: no cut of the power alone.
    pub const OF_LOST_WRITES: [Sabotage; 2] = [Sabotage::GenerationNotBegun, Sabotage::NoWitness];

    /// Those that cuts of the power show.
    pub const ALL: [Sabotage; 11] = [
        Sabotage::RecordBeforeData,
        Sabotage::CheckpointWithoutBarrier,
        Sabotage::ReuseBeforeRecord,
        Sabotage::FooterGivenBackEarly,
        Sabotage::AcknowledgeBeforeCommit,
        Sabotage::ParityLate,
        Sabotage::CopyKept,
        Sabotage::CopyBeforeDurable,
        Sabotage::OneCopyWritten,
        Sabotage::StalePartBelieved,
        Sabotage::RowsForgottenLate,
    ];

    /// Those that only a hot zone shows.
    pub const OF_COPIES: [Sabotage; 4] =
        [Sabotage::CopyKept, Sabotage::CopyBeforeDurable, Sabotage::OneCopyWritten, Sabotage::StalePartBelieved];

    /// Those that must be caught where files lie in the hot zone alone.
    pub const OF_FILES_ALONE: [Sabotage; 4] = [
        Sabotage::RecordBeforeData,
        Sabotage::ReuseBeforeRecord,
        Sabotage::CopyBeforeDurable,
        Sabotage::OneCopyWritten,
    ];
}

/// A mounted file system. Cloning gives another handle of the same; each operation is a task, or part of one.
#[derive(Clone)]
pub struct Fs(pub(crate) Rc<Core>);

impl Core {
    /// The time of day, in nanoseconds since 1970.
    pub fn time_ns(&self) -> i64 {
        self.epoch_ns.saturating_add(i64::try_from(self.clock.now_ns()).unwrap_or(i64::MAX))
    }

    /// Applies and logs what one operation changes; the number of its record.
    pub fn record(&self, changes: &[Change]) -> u64 {
        // One record, so that a group is there before anything is said to lie in it.
        let all = [self.store.drain_changes().as_slice(), changes].concat();
        let mut namespace = self.namespace.borrow_mut();
        all.iter().for_each(|change| namespace.apply(change));
        drop(namespace);
        self.log.append(self.time_ns(), &all)
    }

    /// Applies and logs what the store itself has to record, if anything.
    pub fn record_store(&self) {
        let changes = self.store.drain_changes();
        if !changes.is_empty() {
            self.record(&changes);
        }
    }

    /// Blocks of data that are read or written in one command where block `block` lies: whole rows.
    pub fn piece_blocks_at(&self, block: u64) -> u64 {
        self.bounds.piece_blocks.next_multiple_of(self.store.row_blocks(block))
    }

    /// Waits until the log has room, for a background task or a long command: it is never refused for a full disk of the host.
    pub async fn begin_task(&self) -> Result<(), FsError> {
        if self.is_read_only { Err(FsError::ReadOnly) } else { self.log.room().await }
    }

    /// Waits until the log has room for an operation.
    ///
    /// # Errors
    /// [`FsError::ReadOnly`], or [`FsError::HostFull`] if the log has no room while the host's disk is full.
    pub async fn begin(&self) -> Result<(), FsError> {
        if self.is_read_only {
            return Err(FsError::ReadOnly);
        }
        self.wait_unless_full(self.log.room()).await?
    }

    /// The same for an operation that makes a checkpoint smaller, and so can be done where none can be taken.
    pub async fn begin_to_free(&self) -> Result<(), FsError> {
        if self.is_read_only {
            return Err(FsError::ReadOnly);
        }
        match self.wait_unless_full(self.log.room()).await.flatten() {
            Err(_) if self.log.has_room_to_free() => self.log.check(),
            outcome => outcome,
        }
    }

    /// Fails if a checkpoint would have no room for `bytes` more, and for what is kept back for pieces that zones cut.
    pub fn check_metadata_room(&self, bytes: u64) -> Result<(), FsError> {
        let kept_back = self.checkpoint_bytes_max / KEPT_BACK;
        self.fits_checkpoint(self.namespace.borrow().encoded_bytes() + bytes + kept_back)
    }

    /// Fails if a checkpoint would have no room for what there is.
    pub fn check_checkpoint_room(&self) -> Result<(), FsError> {
        self.fits_checkpoint(self.namespace.borrow().encoded_bytes())
    }

    /// Fails if a checkpoint has no room for so many bytes.
    pub fn fits_checkpoint(&self, bytes: u64) -> Result<(), FsError> {
        if bytes > self.checkpoint_bytes_max { Err(FsError::NoMetadataSpace) } else { Ok(()) }
    }
}
