//! The core of the file system: operations on files, and the records that make them durable. One folder for each part,
//! with the part's state.
//!
//! Invariants:
//! 1. Only records change the namespace. Each record is applied at once, with no await in between. So every operation
//!    is atomic for other tasks, and after a power cut.
//! 2. A record that names data is made after the data were written, and a commit flushes the data device first.
//! 3. Blocks return to the store when the record that frees them is durable and no read of them is in progress.
//! 4. Bytes in memory that are not yet written are at most [`Bounds::cache_bytes`], apart from writes in flight. Blocks
//!    that were written and are kept for later changes are at most [`Bounds::written_blocks`].

mod allocation;
mod bounds;
mod cleaner;
mod commit;
mod fault_injection;
mod files;
mod host_disks;
mod hot;
mod inspect;
mod mount;
mod owners;
mod repair;
mod shutdown;
mod state;
mod write_back;

/// Items that salvage shares with making and mounting.
pub(crate) mod made {
    pub(crate) use super::mount::has_checkpoint;
    pub(crate) use super::mount::make::{blank, bytes_in_slot, erase, lay_out, refuse_used};
    pub(crate) use super::mount::members::check_member;
    pub(crate) use super::mount::members::{check_enough, drives_of, parts};
    pub(crate) use super::mount::sound::check_groups;
}

use std::cell::RefCell;
use std::rc::Rc;

pub use self::bounds::Bounds;
use self::cleaner::{Cleaner, CleanerState};
use self::commit::releases::Releases;
use self::commit::{Committer, CommitterState};
use self::fault_injection::FaultInjection;
#[cfg_attr(not(feature = "fault-injection"), allow(unreachable_pub))]
pub use self::fault_injection::Sabotage;
use self::files::Files;
pub use self::files::attributes::{Attr, SetAttr, SetAttribute};
pub use self::files::data::{Allocate, Contents, Seek};
use self::files::lifetime::LifetimesState;
pub use self::files::names::{Caller, Listed, Rename};
use self::files::preallocated::PreallocatedState;
pub use self::hot::parts::{PartStatus, Standing};
use self::hot::{HotState, HotTier};
pub use self::mount::make::{Plan, make, make_on, plan};
pub use self::mount::make_options::{HotOn, MakeOptions, Parts};
pub use self::mount::members::{has_unknown_format, look};
pub use self::mount::{MountOptions, Mounted};
use self::owners::Owners;
use self::repair::Repair;
pub use self::repair::replace::Replaced;
use self::repair::replace::ReplacementState;
pub use self::repair::scrub::Scrubbed;
use self::repair::spares::SparesState;
use self::shutdown::Shutdown;
use self::state::Tally;
pub use self::state::{Statfs, Status};
use self::write_back::WriteBack;
use self::write_back::records::RecordNumbers;
use self::write_back::staged::StagingState;
use self::write_back::written::Written;
use crate::array::Data;
use crate::error::FsError;
use crate::executor::Executor;
use crate::format::change::Change;
use crate::format::superblock::Superblock;
use crate::journal::{Checksums, Log, Mirror};
use crate::namespace::Namespace;
use crate::store::Store;

/// Divisor of a checkpoint's capacity: one part in so many is reserved for the extents into which files are cut where
/// zones end.
const KEPT_BACK: u64 = 64;

/// A mounted file system: the devices, the namespace, and the state of each part. Only the module of a part reads and
/// changes the fields of its state.
pub(crate) struct Core {
    pub executor: Executor,
    /// Time of day at which the clock of the executor was 0, in nanoseconds since 1970.
    pub epoch_ns: i64,
    pub superblock: Superblock,
    pub bounds: Bounds,
    pub is_read_only: bool,
    pub data: Data,
    pub metadata: Mirror,
    pub store: Box<dyn Store>,
    pub log: Log,
    pub checksums: Checksums,
    pub namespace: RefCell<Namespace>,
    pub(in crate::core) owners: Owners,
    pub(in crate::core) lifetimes: LifetimesState,
    pub(in crate::core) preallocated: PreallocatedState,
    pub(in crate::core) staging: StagingState,
    pub(in crate::core) written: RefCell<Written>,
    pub(in crate::core) record_numbers: RecordNumbers,
    pub(in crate::core) committer: CommitterState,
    pub(in crate::core) releases: Releases,
    pub(in crate::core) cleaner: CleanerState,
    pub(in crate::core) hot: HotState,
    pub(in crate::core) replacement: ReplacementState,
    pub(in crate::core) spares: SparesState,
    pub(in crate::core) counters: Tally,
    pub(in crate::core) shutdown: Shutdown,
    pub(in crate::core) faults: FaultInjection,
}

/// The parts of a mounted file system, each with its operations. `docs/fs/design.md` shows their state, and which part
/// calls which.
pub(in crate::core) trait CoreParts {
    fn files(&self) -> Files<'_>;
    fn write_back(&self) -> WriteBack<'_>;
    fn committer(&self) -> Committer<'_>;
    fn cleaner(&self) -> Cleaner<'_>;
    fn hot_tier(&self) -> HotTier<'_>;
    fn repair(&self) -> Repair<'_>;
}

impl CoreParts for Rc<Core> {
    fn files(&self) -> Files<'_> {
        Files::of(self)
    }

    fn write_back(&self) -> WriteBack<'_> {
        WriteBack::of(self)
    }

    fn committer(&self) -> Committer<'_> {
        Committer::of(self)
    }

    fn cleaner(&self) -> Cleaner<'_> {
        Cleaner::of(self)
    }

    fn hot_tier(&self) -> HotTier<'_> {
        HotTier::of(self)
    }

    fn repair(&self) -> Repair<'_> {
        Repair::of(self)
    }
}

/// A mounted file system. A clone is another handle of the same file system. The operations are asynchronous: futures
/// that run on the executor of the file system.
#[derive(Clone)]
pub struct Fs(pub(crate) Rc<Core>);

impl Core {
    /// Returns the time of day, in nanoseconds since 1970.
    pub(crate) fn time_ns(&self) -> i64 {
        self.epoch_ns.saturating_add(i64::try_from(self.executor.now_ns()).unwrap_or(i64::MAX))
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
        let kept_back = self.committer.checkpoint_bytes_max() / KEPT_BACK;
        self.fits_checkpoint(self.namespace.borrow().encoded_bytes() + bytes + kept_back)
    }

    /// Fails if a checkpoint would have no room for the present namespace.
    pub(crate) fn check_checkpoint_room(&self) -> Result<(), FsError> {
        self.fits_checkpoint(self.namespace.borrow().encoded_bytes())
    }

    /// Fails if a checkpoint has no room for `bytes` bytes.
    pub(crate) fn fits_checkpoint(&self, bytes: u64) -> Result<(), FsError> {
        if bytes > self.committer.checkpoint_bytes_max() { Err(FsError::NoMetadataSpace) } else { Ok(()) }
    }
}
