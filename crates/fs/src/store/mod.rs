//! Stores: allocate the blocks of a device to file data, by the write rules of that device. One folder each.
//!
//! A store allocates and keeps counts; it moves no bytes. Space for a file is *reserved* while the data are still in
//! memory, and blocks are *allocated* when the data are written. The caller then reports whether the writes succeeded.
//! Blocks are *freed* only when the journal record that frees them is durable.
//!
//! ```text
//!   reserve ─► allocate ─► (the core writes) ─► settle    the blocks are live
//!                                          └──► abandon   they are not
//!   free: they are not live any more
//! ```
//!
//! Invariants:
//! 1. Blocks that [`Store::reserve`] granted can be allocated, no matter which allocations other callers make meanwhile.
//! 2. No block is allocated that is live, or that a write to a neighbouring block may destroy.
//! 3. No block is allocated again before it is freed or its allocation is aborted ([`Store::abort`]).

pub mod account;
pub mod bands;
pub mod caveat;
pub mod log;
pub mod strict_append;
mod waiting;

use crate::array::Data;
use crate::block_run::BlockRun;
use crate::device::{Kind, ZoneState};
use crate::error::FsError;
use crate::executor::Local;
use crate::format::change::{Change, Extent};
use crate::format::record::{DirectoryRecord, Piece};

/// The reservation of a file.
#[derive(Default, Debug)]
pub struct Reservation {
    /// Number of blocks that the file may allocate.
    pub blocks: u64,
    /// The reserved blocks themselves, footers included. Empty if the store reserves only a number of blocks.
    pub runs: Vec<BlockRun>,
}

/// An allocation: the blocks to which the data of a file are about to be written. Each run is written in order, from
/// its first block.
#[derive(PartialEq, Eq, Debug)]
pub struct Allocation {
    /// Blocks for the data.
    pub runs: Vec<BlockRun>,
    /// Blocks kept free until the data are written: the footers on a caveat disk.
    pub kept: Vec<BlockRun>,
    /// Number of blocks after the data for the bytes that [`Store::records`] returns. One command writes both.
    pub record_blocks: u64,
    /// Number of record units in this allocation, and number of blocks that only the records need. Both are counted in
    /// [`Usage::records`].
    pub counted: (u64, u64),
}

impl Allocation {
    /// Returns the number of blocks for data.
    pub fn blocks(&self) -> u64 {
        self.runs.iter().map(|run| run.blocks).sum()
    }
}

/// The context of the records for an allocation: the files and directories that they describe.
#[derive(Clone, Default, Debug)]
pub struct RecordContext {
    /// The files, each with the range of its blocks, in the order in which the blocks are written.
    pub pieces: Vec<Piece>,
    /// Directories that contain the files. A stripe group may have records of some of them already.
    pub directories: Vec<DirectoryRecord>,
}

/// Space usage of a store, in blocks unless stated otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// Blocks that file data could occupy.
    pub blocks: u64,
    /// Blocks that hold live data.
    pub live: u64,
    /// Blocks that a new file could still allocate; reserved blocks are not among them.
    pub free: u64,
    /// Blocks that hold dead data until they are cleaned.
    pub dead: u64,
    /// Free blocks in runs too short to be written (Singh 2014 §4.4.3).
    pub unusable: u64,
    /// Number of runs of free blocks, or of empty zones.
    pub free_runs: u64,
    /// Length of the longest file that could be written in one piece.
    pub longest: u64,
    /// Blocks allocated since the mount.
    pub allocated: u64,
    /// Blocks freed since the mount.
    pub freed: u64,
    /// Record units written since the mount, and blocks written only for records. A record in a block that would
    /// otherwise be filled with zeros adds no such block.
    pub records: (u64, u64),
}

/// A zone that the cleaner is about to empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Victim {
    /// Number of the zone.
    pub zone: u32,
    /// Blocks of the zone.
    pub run: BlockRun,
    /// Number of live blocks in the zone.
    pub live: u64,
}

/// Limits on moving whole files in order to empty a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilesBudget {
    /// Number of blocks that may be copied in total.
    pub blocks: u64,
    /// Number of pieces of a file: each piece costs a seek, and writers may have to wait for the seeks.
    pub pieces: usize,
}

/// A store: the block allocator of a data device or an array.
pub trait Store {
    /// Returns the name of the store.
    fn name(&self) -> &'static str;

    /// Returns whether a file must lie in one piece, with holes filled with zeros.
    fn is_contiguous(&self) -> bool;

    /// Returns the number of blocks of a band: no extent crosses the boundary of a band. Without bands, larger than any device.
    fn band_blocks(&self) -> u64 {
        u64::MAX
    }

    /// Returns the smallest number of blocks that are written together at `block`. A shorter write is padded.
    fn row_blocks(&self, block: u64) -> u64 {
        let _ = block;
        1
    }

    /// Returns and removes the pending changes of the store itself. They must be journaled before any record of a later
    /// allocation.
    fn drain_changes(&self) -> Vec<Change> {
        Vec::new()
    }

    /// Recomputes the available space after a drive was added, removed or lost.
    fn refresh(&self) {}

    /// Reserves space for `blocks` in place of the present reservation `held`; without enough space `held` stays unchanged.
    fn reserve(&self, held: &mut Reservation, blocks: u64) -> Result<(), FsError>;

    /// Releases the reservation `held`.
    fn unreserve(&self, held: &mut Reservation);

    /// Restores in the empty `held` a reservation from before the mount: `blocks`, and the blocks `runs` if the store
    /// reserves particular blocks. Returns false if `runs` are not free.
    fn keep(&self, held: &mut Reservation, blocks: u64, runs: &[BlockRun]) -> bool;

    /// Returns whether a reservation names particular blocks. Then one allocation takes the whole reservation.
    fn reserves_places(&self) -> bool {
        false
    }

    /// Returns the particular blocks of a reservation without their footers. Empty if the store reserves only numbers of blocks.
    fn places(&self, held: &Reservation) -> Vec<BlockRun> {
        let _ = held;
        Vec::new()
    }

    /// Returns whether records are written with the data. [`Store::allocate`] then needs the context of the records in `told`.
    fn keeps_records(&self) -> bool {
        false
    }

    /// Allocates blocks for a file of `blocks` out of its reservation, or blocks for the first part of it. The caller
    /// calls again for the rest when that part is written. May wait for the cleaner. `told` is the context of the
    /// records for the blocks.
    fn allocate<'a>(
        &'a self,
        held: &'a mut Reservation,
        blocks: u64,
        told: &'a RecordContext,
    ) -> Local<'a, Result<Allocation, FsError>>;

    /// Like [`Store::allocate`], but for a file whose allocation `lease` has been submitted to the device and is in
    /// flight, and without waiting. Allocates blocks after `lease`, or elsewhere at the end of its group, so that the
    /// device always has the next append queued. Returns `None` if no blocks are available at once or another task
    /// waits for space: the caller then waits for its writes in flight and calls [`Store::allocate`].
    fn allocate_behind<'a>(
        &'a self,
        lease: &'a Allocation,
        held: &'a mut Reservation,
        blocks: u64,
        told: &'a RecordContext,
    ) -> Local<'a, Option<Allocation>> {
        let _ = (lease, held, blocks, told);
        Box::pin(async { None })
    }

    /// Allocates blocks for copies by the cleaner, or for the first part of them, from the space kept back for the cleaner.
    fn allocate_for_cleaner<'a>(&'a self, blocks: u64, told: &'a RecordContext) -> Local<'a, Option<Allocation>> {
        let _ = (blocks, told);
        Box::pin(async { None })
    }

    /// Returns the bytes to write after the data of `lease`: records, and the zeros that fill up its zone. `sums` are
    /// the checksums of the data blocks.
    fn records(&self, lease: &Allocation, sums: &[u32]) -> Vec<u8> {
        let _ = (lease, sums);
        Vec::new()
    }

    /// Allocates blocks for records that wait in memory, without data. Returns `None` if none wait.
    fn lease_for_records(&self) -> Option<Allocation> {
        None
    }

    /// Returns runs of data that have no records and cannot get any at their place. The caller must move them. Each run
    /// is returned once.
    fn take_unrecorded(&self) -> Vec<BlockRun> {
        Vec::new()
    }

    /// Keeps the zones of these runs from being emptied until [`Store::unpin`]: their data are written, but no file
    /// refers to them yet.
    fn pin(&self, runs: &[BlockRun]) {
        let _ = runs;
    }

    /// Undoes one [`Store::pin`].
    fn unpin(&self, runs: &[BlockRun]) {
        let _ = runs;
    }

    /// Commits an allocation after its data were written: its blocks are live, and its footers are free.
    fn commit(&self, lease: Allocation);

    /// Aborts an allocation after a failed write. `zones` is the state of the zones that the device now reports, if it
    /// has zones.
    fn abort(&self, lease: Allocation, zones: Option<&[ZoneState]>);

    /// Marks blocks as live during the mount.
    fn claim(&self, extent: &Extent) -> Result<(), FsError>;

    /// Ends the marking of live blocks by [`Store::claim`].
    fn claimed(&self) {}

    /// Frees live blocks. No later journal record can make them live again.
    fn free(&self, run: BlockRun);

    /// Returns the space usage.
    fn usage(&self) -> Usage;

    /// Returns a zone to be emptied, by the store's cleaning policy; `None` if emptying gains no space in any zone. The
    /// zone takes no writes until [`Store::emptied`].
    fn victim(&self, now_ns: u64) -> Option<Victim> {
        let _ = now_ns;
        None
    }

    /// Like [`Store::victim`], but returns the zone with the fewest live blocks: for when the copies of the other
    /// victim do not fit.
    fn easiest_victim(&self) -> Option<Victim> {
        None
    }

    /// Returns the limits on moving whole files that have pieces in `victim`. `None` means that only their pieces in
    /// `victim` are moved.
    fn budget_for_files(&self, victim: &Victim) -> Option<FilesBudget> {
        let _ = victim;
        None
    }

    /// Defers a zone after a device error while it was emptied. If such errors go on, other zones are chosen first.
    fn put_off(&self, zone: u32) {
        let _ = zone;
    }

    /// Allows one more attempt for each deferred zone, because no other zone is left.
    fn put_off_none(&self) {}

    /// Ends the emptying of a zone, which was reset if `was_reset`.
    fn emptied(&self, zone: u32, was_reset: bool) {
        let _ = (zone, was_reset);
    }

    /// Returns whether there is enough dead data to clean in the background. `is_idle` says that no write has arrived
    /// for some time.
    fn wants_cleaning(&self, is_idle: bool) -> bool {
        let _ = is_idle;
        false
    }

    /// Returns how close the store is to having only the zones kept back, in thousandths. At 0 there is no shortage; at
    /// 1000 writers must wait for the cleaner. Returns 0 if cleaning would gain nothing.
    fn shortage(&self) -> u64 {
        0
    }

    /// Waits until a writer needs space that only cleaning can make.
    fn cleaning_needed(&self) -> Local<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// Reports that the cleaner found no zone worth emptying: waiting writers must give up.
    fn cleaning_failed(&self) {}

    /// Returns the number of live blocks in a zone.
    fn live_in(&self, zone: u32) -> u64 {
        let _ = zone;
        0
    }

    /// Returns whether no write to the zone is in flight and all blocks written there belong to files.
    fn is_quiet(&self, zone: u32) -> bool {
        let _ = zone;
        true
    }

    /// Returns the numbers of written and of live blocks for each zone.
    fn zones(&self) -> Vec<(u64, u64)> {
        Vec::new()
    }

    /// Returns the number of zones that could be opened and are missing from [`Store::zones`], which lists opened zones only.
    fn zones_unopened(&self) -> u64 {
        0
    }
}

/// The stores, each with its kinds of devices: the registry of this family.
pub const NAMES: &[(&str, &str)] = &[
    ("strict-append", "zoned drives"),
    ("caveat", "caveat disks"),
    ("log", "zoned and conventional drives, one or an array of them"),
];

/// Parses the share of the space, in percent, below which cleaning in the background begins.
fn clean_below(option: Option<String>) -> Result<u64, String> {
    let Some(text) = option else { return Ok(10) };
    match text.trim_end_matches('%').parse() {
        Ok(percent) if percent <= 90 => Ok(percent),
        _ => Err(format!("clean_below={text}: a percentage from 0 to 90")),
    }
}

/// Returns the default store for a device of this kind.
pub fn default_for(kind: &Kind) -> Option<&'static str> {
    match kind {
        Kind::Zoned { .. } => Some("strict-append"),
        Kind::Caveat { .. } => Some("caveat"),
        Kind::Plain => None,
    }
}

/// Creates the store `name` for blocks `data` of `on`, whose zones are `zones`. `option` returns the options chosen by mkfs.
pub fn make(
    name: &str,
    on: &Data,
    data: BlockRun,
    zones: Option<&[ZoneState]>,
    option: impl Fn(&str) -> Option<String>,
) -> Result<Box<dyn Store>, FsError> {
    let device = match on {
        Data::Array(array) => {
            let made = log::LogStore::new(array.clone(), option);
            return made.map(|store| Box::new(store) as _).map_err(|reason| FsError::format("the array", reason));
        }
        Data::Drive(device) => device,
    };
    let kind = device.geometry().kind;
    let wrong = |reason: String| FsError::format(device.name(), reason);
    match (name, kind, zones) {
        ("strict-append", Kind::Zoned { .. }, Some(zones)) => {
            strict_append::StrictAppend::new(&kind, data, zones, option)
                .map(|store| Box::new(store) as _)
                .map_err(wrong)
        }
        ("caveat", Kind::Caveat { isolation, .. }, _) => caveat::Caveat::new(device.clone(), data, isolation, option)
            .map(|store| Box::new(store) as _)
            .map_err(wrong),
        _ => Err(wrong(unfit(name, &kind))),
    }
}

/// Returns the message that says why store `name` is not for a device of this kind.
pub fn unfit(name: &str, kind: &Kind) -> String {
    match NAMES.iter().find(|(store, _)| *store == name) {
        Some((_, needs)) => format!("store '{name}' is for {needs}, and this device is {}", kind.name()),
        None => {
            let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            format!("there is no store '{name}'; there are {}", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::model::Model;
    use crate::device::{Device, Geometry, ZoneCondition};
    use crate::executor::Executor;

    #[test]
    fn what_could_not_be_written_was_not_allocated() {
        let zoned = Kind::Zoned { zone_blocks: 16, zones: 8, conventional: 0, active_max: None };
        for (name, kind) in [("strict-append", zoned), ("caveat", Kind::Caveat { isolation: 2, no_overlap: 2 })] {
            let clock = Executor::in_virtual_time();
            let device = Device::new(&clock, "drive", Box::new(Model::new(Geometry { blocks: 128, kind })));
            let zones = [ZoneState { written: 0, condition: ZoneCondition::Writable }; 8];
            let data = BlockRun { start: 16, blocks: 112 };
            let store = make(name, &Data::Drive(device), data, Some(&zones), |_| None).expect("it fits the drive");
            let task = async move {
                let mut held = [Reservation::default(), Reservation::default()];
                let [first, second] = &mut held;
                store.commit(store.allocate(first, 5, &RecordContext::default()).await.expect("there is room"));
                let lease = store.allocate(second, 7, &RecordContext::default()).await.expect("there is room");
                assert_eq!(store.usage().allocated, 12, "{name}");
                store.abort(lease, None);
                let usage = store.usage();
                assert_eq!((usage.allocated, usage.freed, usage.live), (5, 0, 5), "{name}");
            };
            clock.run(task).expect("nobody waits for ever");
            clock.shut_down();
        }
    }
}
