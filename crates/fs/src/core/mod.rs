//! The core of the file system: operations on files, and the records that make them durable. One module per kind of
//! operation.
//!
//! Invariants:
//! 1. Only records change the namespace. Each record is applied at once, with no await in between. So every operation
//!    is atomic for other tasks, and after a power cut.
//! 2. A record that names data is made after the data were written, and a commit flushes the data device first.
//! 3. Blocks return to the store when the record that frees them is durable and no read of them is in progress.
//! 4. Bytes in memory that are not yet written are at most [`Bounds::cache_bytes`], apart from writes in flight. Blocks
//!    that were written and are kept for later changes are at most [`Bounds::written_blocks`].

mod appends;
mod attributes;
mod check_drive;
mod cleaner;
mod commit;
mod copies;
mod data;
mod early_write;
mod extents;
mod fill;
mod hints;
mod host_disks;
mod hot;
mod inspect;
mod lifetime;
mod make;
mod make_hot;
mod make_options;
mod members;
mod mount;
mod names;
mod parts;
mod pieces;
mod preallocated;
mod records;
mod releases;
mod replace;
mod resident;
mod room;
mod scrub;
mod sound;
mod spares;
mod staged;
mod state;
mod write_back;
mod write_behind;
mod written;

/// Items that salvage shares with making and mounting.
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
pub use self::make::{Plan, make, make_on, plan};
pub use self::make_options::{HotOn, MakeOptions, Parts};
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
use crate::device::Device;
use crate::device::queue::QueueLimits;
use crate::error::FsError;
use crate::executor::{Executor, Mutex, Signal};
use crate::format::change::{Change, Inode};
use crate::format::superblock::Superblock;
use crate::hot::{HotZone, Keeping, Limits};
use crate::journal::{Checksums, Log, Mirror};
use crate::namespace::Namespace;
use crate::store::{Reservation, Store};

/// Limits of the core: memory, sizes of commands and records, intervals. Tests set them to their smallest values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Maximum number of bytes in memory that are not yet written to files (Singh 2014 §2.2.2: a buffer cache of 2 GB).
    pub cache_bytes: u64,
    /// Number of appended bytes of a file at which their write-back begins, while the program still appends.
    pub behind_bytes: u64,
    /// Maximum number of blocks that stay in memory after they were written, so that changes of them need no read.
    pub written_blocks: usize,
    /// Maximum number of pages of checksums in memory. A page has 1,020 checksums.
    pub checksum_pages: usize,
    /// Number of blocks of data that one command reads or writes.
    pub piece_blocks: u64,
    /// Maximum number of commands in flight on the device for a write of one file. With only one, the disk would lose a
    /// rotation between commands.
    pub pieces: usize,
    /// Maximum number of appends of one file to a stripe group in flight, each with up to `pieces` commands.
    pub appends: usize,
    /// Number of bytes of pending records at which the core commits them without a request.
    pub pending_bytes: usize,
    /// Interval in nanoseconds at which records are committed, and files written that were changed longer ago than
    /// `dirty_ns`.
    pub commit_ns: u64,
    /// Age in nanoseconds at which a change is due to be written.
    pub dirty_ns: u64,
    /// Maximum time in nanoseconds for which a write to a full drive waits until open files without a name are closed.
    pub closing_ns: u64,
    /// Percentage of the log in use at which a checkpoint is taken.
    pub log_percent: u64,
    /// Limits of the hot zone, apart from its size.
    pub hot: Limits,
    /// Limits of the queue of each device.
    pub queue: QueueLimits,
    /// Number of files that are copied to the hot zone before all of them are made durable together.
    pub hot_batch: usize,
    /// Upper bound of the bytes with which a record describes a copy in the hot zone. It always may describe one
    /// checksum or one piece of a file. A frame of the log is another bound.
    pub hot_record_bytes: u64,
    /// Upper bound of the bytes with which a record describes the extents of a file. It always may describe one extent.
    /// A frame of the log is another bound.
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
    /// Returns the smallest limits with which the core works: it evicts, writes and takes checkpoints all the time.
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

/// Divisor of a checkpoint's capacity: one part in so many is reserved for the extents into which files are cut where
/// zones end.
const KEPT_BACK: u64 = 64;

/// Owner of an extent: the file, and the first block of the extent in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    pub inode: Inode,
    pub at: u32,
}

/// State that all tasks of a mounted file system share.
pub(crate) struct Core {
    pub clock: Executor,
    /// Time at which the clock began, in nanoseconds since 1970.
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
    /// Owner of each extent, by the first block of the extent on the device; for the cleaner.
    pub owners: RefCell<BTreeMap<u64, Owner>>,
    /// Lock that the cleaner holds, so that one zone is emptied at a time.
    pub cleaning: Mutex,
    /// Lock that allows one drive replacement at a time. `replaced` has the number of the drive and the progress.
    pub replacing: Mutex,
    pub replaced: Cell<Option<(u8, Replaced)>>,
    /// Spares: drives that wait for a drive of the array to fail.
    pub spares: RefCell<Vec<(Uuid, Device)>>,
    /// Spares that were missing when the file system was mounted.
    pub spares_missing: Vec<String>,
    pub open: RefCell<BTreeMap<Inode, Rc<Open>>>,
    /// Lookup counts of the inodes that the kernel holds.
    pub lookups: RefCell<Lookups>,
    /// First generation that no file may get before the log has durably raised this bound.
    pub generations_below: Cell<u64>,
    pub staged_bytes: Cell<u64>,
    /// Error of the last attempt to write everything, if it failed.
    pub unwritten: RefCell<Option<FsError>>,
    pub staged_since: Cell<u64>,
    pub releases: RefCell<Releases>,
    /// Reserved room of each file with preallocated blocks. Room lent to staged data is not counted here.
    pub preallocated: RefCell<BTreeMap<Inode, Reservation>>,
    pub checkpoint: RefCell<commit::Checkpoints>,
    /// Signal that a checkpoint has been written, or has failed.
    pub checkpoint_over: Signal,
    pub is_over: Cell<bool>,
    pub over: Signal,
    pub counters: RefCell<state::Counters>,
    /// Upper bound of the size of a checkpoint, in bytes.
    pub checkpoint_bytes_max: u64,
    /// Deliberate mistake. Tests use it to show that they would notice.
    pub sabotage: Option<Sabotage>,
    /// Cache of the blocks that were written last.
    pub written: RefCell<Written>,
    /// Time of the last write to the data device, in nanoseconds of the clock.
    pub wrote_ns: Cell<u64>,
    /// Average time that the cleaner takes to free one block, in nanoseconds.
    pub gain_ns: Cell<u64>,
    /// Next sequence number of the records among the data.
    pub sequence: Cell<u64>,
    /// First sequence number that may not be used before the log has durably raised this bound; 0 if none may be used
    /// yet.
    pub sequence_below: Cell<u64>,
    /// Whether files in the hot zone are in the store, too.
    pub keeping: Keeping,
    /// Contents and heat of the hot zone; it has no blocks if the file system has no hot zone.
    pub hot: RefCell<HotZone>,
    /// Parts of the hot zone that lie on drives.
    pub parts: HotParts,
    /// Signal that wakes the task of the hot zone: a file waits for promotion, or a part changed.
    pub hot_wanted: Signal,
    /// Signal that a changed hint has been taken from its queue.
    pub hint_taken: Signal,
    /// Writes that a [`Sabotage`] delays, for tests: first block, and bytes.
    pub late_writes: RefCell<Vec<(u64, Vec<u8>)>>,
}

/// A deliberate mistake that tests of power cuts must catch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sabotage {
    /// Records are written before the data that they name.
    RecordBeforeData,
    /// A checkpoint is made valid before its chunks and the log are durable.
    CheckpointWithoutBarrier,
    /// Blocks are freed and reused, and zones reset, before the record that frees the blocks is durable.
    ReuseBeforeRecord,
    /// The footer of an allocation on a caveat disk is freed before the data are written.
    FooterGivenBackEarly,
    /// `fsync` returns before the commit.
    AcknowledgeBeforeCommit,
    /// Parity is written after the records of its data.
    ParityLate,
    /// A file that changes keeps its outdated copy in the hot zone.
    CopyKept,
    /// The record of a file in the hot zone is made before the contents there are durable.
    CopyBeforeDurable,
    /// Contents of the hot zone are written only to the first copy of the metadata.
    OneCopyWritten,
    /// The part of the hot zone on a drive is read even if its stamp has another generation than the log.
    StalePartBelieved,
    /// Stripe groups are appended to before the log durably discards the row counts that an unmount recorded for them.
    RowsForgottenLate,
    /// A mount begins no generation of the copies of the metadata.
    GenerationNotBegun,
    /// Superblocks do not record how far checkpoints and log reached.
    NoWitness,
}

impl Sabotage {
    /// Mistakes that only a lost write, or a device restored from an old copy, reveals. Power cuts alone do not.
    pub const OF_LOST_WRITES: [Sabotage; 2] = [Sabotage::GenerationNotBegun, Sabotage::NoWitness];

    /// Mistakes that power cuts reveal.
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

    /// Mistakes that only a hot zone reveals.
    pub const OF_COPIES: [Sabotage; 4] =
        [Sabotage::CopyKept, Sabotage::CopyBeforeDurable, Sabotage::OneCopyWritten, Sabotage::StalePartBelieved];

    /// Mistakes that must be caught if files are stored only in the hot zone.
    pub const OF_FILES_ALONE: [Sabotage; 4] = [
        Sabotage::RecordBeforeData,
        Sabotage::ReuseBeforeRecord,
        Sabotage::CopyBeforeDurable,
        Sabotage::OneCopyWritten,
    ];
}

/// A mounted file system. A clone is another handle of the same file system. Each operation is a task, or part of one.
#[derive(Clone)]
pub struct Fs(pub(crate) Rc<Core>);

impl Core {
    /// Returns the time of day, in nanoseconds since 1970.
    pub(crate) fn time_ns(&self) -> i64 {
        self.epoch_ns.saturating_add(i64::try_from(self.clock.now_ns()).unwrap_or(i64::MAX))
    }

    /// Applies the changes of one operation to the namespace, and appends their record to the log. Returns the record's
    /// number.
    pub(crate) fn record(&self, changes: &[Change]) -> u64 {
        // Changes of the store come first in the same record, so that a stripe group is known before an extent lies in
        // it.
        let all = [self.changes_of_store().as_slice(), changes].concat();
        let mut namespace = self.namespace.borrow_mut();
        all.iter().for_each(|change| namespace.apply(change));
        drop(namespace);
        self.log.append(self.time_ns(), &all)
    }

    /// Applies and logs the pending changes of the store, if there are any.
    pub(crate) fn record_store(&self) {
        let changes = self.changes_of_store();
        if !changes.is_empty() {
            self.record(&changes);
        }
    }

    /// Returns and removes the pending changes of the store.
    fn changes_of_store(&self) -> Vec<Change> {
        self.store.stripe_groups().map_or_else(Vec::new, |groups| groups.drain_changes())
    }

    /// Returns the number of blocks that one command reads or writes where block `block` lies:
    /// [`Bounds::piece_blocks`], rounded up to whole rows.
    pub(crate) fn piece_blocks_at(&self, block: u64) -> u64 {
        self.bounds.piece_blocks.next_multiple_of(self.store.row_blocks(block))
    }

    /// Waits until the log has room, for a background task or a long command. A full disk of the host never makes it
    /// fail.
    pub(crate) async fn begin_task(&self) -> Result<(), FsError> {
        if self.is_read_only { Err(FsError::ReadOnly) } else { self.log.room().await }
    }

    /// Waits until the log has room for an operation.
    ///
    /// # Errors
    /// [`FsError::ReadOnly`], or [`FsError::HostFull`] if the log has no room while the host's disk is full.
    pub(crate) async fn begin(&self) -> Result<(), FsError> {
        if self.is_read_only {
            return Err(FsError::ReadOnly);
        }
        self.wait_unless_full(self.log.room()).await?
    }

    /// Like [`Core::begin`], for an operation that makes the next checkpoint smaller, such as a deletion. If no
    /// checkpoint can be taken, the operation may use the reserved room of the log ([`Log::has_room_to_free`]).
    pub(crate) async fn begin_to_free(&self) -> Result<(), FsError> {
        if self.is_read_only {
            return Err(FsError::ReadOnly);
        }
        match self.wait_unless_full(self.log.room()).await.flatten() {
            Err(_) if self.log.has_room_to_free() => self.log.check(),
            outcome => outcome,
        }
    }

    /// Fails if a checkpoint would have no room for `bytes` more, besides the room reserved for extents that zones cut.
    pub(crate) fn check_metadata_room(&self, bytes: u64) -> Result<(), FsError> {
        let kept_back = self.checkpoint_bytes_max / KEPT_BACK;
        self.fits_checkpoint(self.namespace.borrow().encoded_bytes() + bytes + kept_back)
    }

    /// Fails if a checkpoint would have no room for the present namespace.
    pub(crate) fn check_checkpoint_room(&self) -> Result<(), FsError> {
        self.fits_checkpoint(self.namespace.borrow().encoded_bytes())
    }

    /// Fails if a checkpoint has no room for `bytes` bytes.
    pub(crate) fn fits_checkpoint(&self, bytes: u64) -> Result<(), FsError> {
        if bytes > self.checkpoint_bytes_max { Err(FsError::NoMetadataSpace) } else { Ok(()) }
    }
}
