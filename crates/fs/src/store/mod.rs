//! Stores: where the data of files lie on a device, by the rules of that device. One folder each.
//!
//! A store decides and keeps account; it moves no bytes. A file that is to be written *reserves* room while it is still in
//! memory, is *allocated* blocks when it is written, and the store is told when that went well or did not. Blocks are
//! *freed* only when the record that frees them is durable.
//!
//! ```text
//!   reserve ─► allocate ─► (the core writes) ─► settle    the blocks are live
//!                                          └──► abandon   they are not
//!   free: they are not live any more
//! ```
//!
//! Invariants:
//! 1. What [`Store::reserve`] granted can be allocated, whatever others do meanwhile.
//! 2. No block is allocated that is live, or that a write beside it may destroy.
//! 3. A block is allocated once until it is freed or abandoned.

pub mod account;
pub mod bands;
pub mod caveat;
pub mod log;
pub mod strict_append;
mod waiting;

use crate::array::Data;
use crate::clock::Local;
use crate::device::{Kind, ZoneState};
use crate::error::FsError;
use crate::format::change::{Change, Extent};
use crate::format::record::{DirectoryRecord, Piece};

/// A run of blocks of the data device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Run {
    /// The first.
    pub start: u64,
    /// How many.
    pub blocks: u64,
}

impl Run {
    /// The block behind it.
    pub fn end(&self) -> u64 {
        self.start + self.blocks
    }
}

/// What a file has reserved.
#[derive(Default, Debug)]
pub struct Held {
    /// Blocks that it may allocate.
    pub blocks: u64,
    /// The very blocks, footers included, where the store reserves such.
    pub runs: Vec<Run>,
}

/// Blocks that a file was given to be written: each run in order, from its first block on.
#[derive(PartialEq, Eq, Debug)]
pub struct Lease {
    /// Where the data go.
    pub runs: Vec<Run>,
    /// What is kept besides until the data are written: the footers of a caveat disk.
    pub kept: Vec<Run>,
    /// Blocks behind the run that [`Store::records`] gives the bytes of, to be written with the data.
    pub record_blocks: u64,
    /// Units of records among them, and blocks that are taken for their sake alone: as they are counted.
    pub counted: (u64, u64),
}

impl Lease {
    /// Blocks of data.
    pub fn blocks(&self) -> u64 {
        self.runs.iter().map(|run| run.blocks).sum()
    }
}

/// What records are to tell of blocks that are allocated.
#[derive(Clone, Default, Debug)]
pub struct Told {
    /// The files and which blocks of them, one behind the other.
    pub pieces: Vec<Piece>,
    /// The directories that these files are in, whichever of them may not be known yet.
    pub directories: Vec<DirectoryRecord>,
}

/// What a store has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// Blocks that files could lie in.
    pub blocks: u64,
    /// Those that hold live data.
    pub live: u64,
    /// Those that a new file could still have, what is reserved apart.
    pub free: u64,
    /// Those that hold dead data until they are cleaned.
    pub dead: u64,
    /// Free blocks in runs too short to be written (Singh 2014 §4.4.3).
    pub unusable: u64,
    /// Runs of free blocks; zones that are empty.
    pub free_runs: u64,
    /// The longest file that could be written in one piece.
    pub longest: u64,
    /// Blocks allocated since it was mounted.
    pub allocated: u64,
    /// Blocks freed since it was mounted.
    pub freed: u64,
    /// Blocks of records written since it was mounted, and blocks that were written for their sake alone: a place that would
    /// have been filled with zeros costs nothing.
    pub records: (u64, u64),
}

/// A zone that is to be emptied, and what the cleaner may write to meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Victim {
    /// Its number.
    pub zone: u32,
    /// Its blocks.
    pub run: Run,
    /// How many of them are live.
    pub live: u64,
}

/// What moving files as a whole may cost, to empty a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilesBudget {
    /// Blocks that are copied in all.
    pub blocks: u64,
    /// Pieces that a file lies in: each costs a seek, and writers may have to wait for it.
    pub pieces: usize,
}

/// A store.
pub trait Store {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Whether a file must lie in one piece, holes filled with zeros.
    fn is_contiguous(&self) -> bool;

    /// Blocks of a band: no extent goes on from one to the next. Where there are no bands, more than any device has.
    fn band_blocks(&self) -> u64 {
        u64::MAX
    }

    /// Blocks that are written together at least where block `block` lies: what is shorter is filled up.
    fn row_blocks(&self, block: u64) -> u64 {
        let _ = block;
        1
    }

    /// What of the store itself is to be recorded, before any record of what it allocated since.
    fn drain_changes(&self) -> Vec<Change> {
        Vec::new()
    }

    /// Drives came or went: what there is room for is reckoned anew.
    fn refresh(&self) {}

    /// Reserves room for `blocks` in place of what `held` has; `held` stays as it is if there is no room.
    fn reserve(&self, held: &mut Held, blocks: u64) -> Result<(), FsError>;

    /// Gives back what is reserved.
    fn unreserve(&self, held: &mut Held);

    /// Reserves for `held`, which has nothing, what was reserved before it was mounted: `blocks`, and the very `runs` where a store
    /// reserves such. False where these are not free.
    fn keep(&self, held: &mut Held, blocks: u64, runs: &[Run]) -> bool;

    /// Whether what is reserved are certain blocks. Then all of it is given to whoever writes some of them.
    fn reserves_places(&self) -> bool {
        false
    }

    /// The certain blocks that are reserved, without what is kept besides; none where a store reserves none.
    fn places(&self, held: &Held) -> Vec<Run> {
        let _ = held;
        Vec::new()
    }

    /// Whether data carry records, and so [`Store::allocate`] is to be told what they are.
    fn keeps_records(&self) -> bool {
        false
    }

    /// Blocks for a file of `blocks`, out of what is reserved for it, or for the first part of it; whoever asked asks again for
    /// the rest when that is written. It may have to wait for the cleaner. `told` is what records are to tell of them.
    fn allocate<'a>(&'a self, held: &'a mut Held, blocks: u64, told: &'a Told) -> Local<'a, Result<Lease, FsError>>;

    /// The same for a file whose `lease` is all at the device and not yet over, without waiting for anybody: blocks behind it, or
    /// elsewhere where it ends, so that the device has the next append when that one is done. Nothing where there is none at
    /// once, or somebody else waits for room: then whoever asks ends what is under way, and allocates.
    fn allocate_behind<'a>(
        &'a self,
        lease: &'a Lease,
        held: &'a mut Held,
        blocks: u64,
        told: &'a Told,
    ) -> Local<'a, Option<Lease>> {
        let _ = (lease, held, blocks, told);
        Box::pin(async { None })
    }

    /// Blocks for what the cleaner copies, or for the first part of it: from what is kept back for it.
    fn allocate_for_cleaner<'a>(&'a self, blocks: u64, told: &'a Told) -> Local<'a, Option<Lease>> {
        let _ = (blocks, told);
        Box::pin(async { None })
    }

    /// The bytes that go behind the data of `lease`, whose checksums are `sums`: records, and what fills up its zone.
    fn records(&self, lease: &Lease, sums: &[u32]) -> Vec<u8> {
        let _ = (lease, sums);
        Vec::new()
    }

    /// A lease without data, for records that wait in memory; nothing where none do.
    fn lease_for_records(&self) -> Option<Lease> {
        None
    }

    /// Runs of data that have no records, and never will where they lie: they are to be moved. Each is returned once.
    fn take_unrecorded(&self) -> Vec<Run> {
        Vec::new()
    }

    /// What lies in these runs is written, but no file has it yet: their zones are not emptied until [`Store::unpin`].
    fn pin(&self, runs: &[Run]) {
        let _ = runs;
    }

    /// Takes a [`Store::pin`] back.
    fn unpin(&self, runs: &[Run]) {
        let _ = runs;
    }

    /// The data are written: the blocks are live, whatever else was kept is free.
    fn settle(&self, lease: Lease);

    /// Writing failed. `zones` is how the device reports itself now, if it has zones.
    fn abandon(&self, lease: Lease, zones: Option<&[ZoneState]>);

    /// These blocks are live: for mounting.
    fn claim(&self, extent: &Extent) -> Result<(), FsError>;

    /// All live blocks are claimed.
    fn claimed(&self) {}

    /// These blocks are not live any more, and never will be again.
    fn free(&self, run: Run);

    /// What it has.
    fn usage(&self) -> Usage;

    /// A zone to be emptied, chosen by the store's policy; nothing if none would gain anything. It is not written until it
    /// was [`Store::emptied`].
    fn victim(&self, now_ns: u64) -> Option<Victim> {
        let _ = now_ns;
        None
    }

    /// The same, the zone that takes the least room to be emptied: for when there is no room for what lies in the other.
    fn easiest_victim(&self) -> Option<Victim> {
        None
    }

    /// What may be spent at the moment on moving files as a whole that have something in `victim`; `None` where only
    /// their pieces in it are moved.
    fn budget_for_files(&self, victim: &Victim) -> Option<FilesBudget> {
        let _ = victim;
        None
    }

    /// A device failed while the zone was emptied: where that goes on, others are chosen as long as there are any.
    fn put_off(&self, zone: u32) {
        let _ = zone;
    }

    /// There are no others: those that were put off may be chosen again.
    fn put_off_none(&self) {}

    /// The zone was reset, or could not be.
    fn emptied(&self, zone: u32, was_reset: bool) {
        let _ = (zone, was_reset);
    }

    /// Whether so much is dead that it should be cleaned in the background; `is_idle` where nobody has written for a while.
    fn wants_cleaning(&self, is_idle: bool) -> bool {
        let _ = is_idle;
        false
    }

    /// How near the store is to having no zone but those kept back, in thousandths: 0 where there is no hurry, 1000 where
    /// writers must wait for the cleaner. Where cleaning would gain nothing it is 0.
    fn shortage(&self) -> u64 {
        0
    }

    /// Waits until somebody needs room that only cleaning makes.
    fn cleaning_needed(&self) -> Local<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// The cleaner found nothing: whoever waits for room must give up.
    fn cleaning_failed(&self) {}

    /// Blocks of a zone that are live.
    fn live_in(&self, zone: u32) -> u64 {
        let _ = zone;
        0
    }

    /// Whether nobody writes to a zone, and every file has what it wrote there.
    fn is_quiet(&self, zone: u32) -> bool {
        let _ = zone;
        true
    }

    /// Each zone's blocks that are written, and that are live.
    fn zones(&self) -> Vec<(u64, u64)> {
        Vec::new()
    }

    /// Zones that could be opened and are not among [`Store::zones`], which has only those that were.
    fn zones_unopened(&self) -> u64 {
        0
    }
}

/// The stores, with the kind of device that each is for: the registry of the family.
pub const NAMES: &[(&str, &str)] = &[
    ("strict-append", "zoned drives"),
    ("caveat", "caveat disks"),
    ("log", "zoned and conventional drives, one or an array of them"),
];

/// The share of the room, in percent, below which cleaning begins in the background.
fn clean_below(option: Option<String>) -> Result<u64, String> {
    let Some(text) = option else { return Ok(10) };
    match text.trim_end_matches('%').parse() {
        Ok(percent) if percent <= 90 => Ok(percent),
        _ => Err(format!("clean_below={text}: a percentage from 0 to 90")),
    }
}

/// The store that a device of this kind gets if none is asked for.
pub fn default_for(kind: &Kind) -> Option<&'static str> {
    match kind {
        Kind::Zoned { .. } => Some("strict-append"),
        Kind::Caveat { .. } => Some("caveat"),
        Kind::Plain => None,
    }
}

/// Makes the store `name` over blocks `data` of `on`, whose zones are `zones`. `option` gives what was chosen when the file
/// system was made.
pub fn make(
    name: &str,
    on: &Data,
    data: Run,
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

/// Why store `name` is not for a device of this kind.
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
    use crate::clock::Clock;
    use crate::device::model::Model;
    use crate::device::{Device, Geometry, ZoneCondition};

    #[test]
    fn what_could_not_be_written_was_not_allocated() {
        let zoned = Kind::Zoned { zone_blocks: 16, zones: 8, conventional: 0, active_max: None };
        for (name, kind) in [("strict-append", zoned), ("caveat", Kind::Caveat { isolation: 2, no_overlap: 2 })] {
            let clock = Clock::in_virtual_time();
            let device = Device::new(&clock, "drive", Box::new(Model::new(Geometry { blocks: 128, kind })));
            let zones = [ZoneState { written: 0, condition: ZoneCondition::Writable }; 8];
            let data = Run { start: 16, blocks: 112 };
            let store = make(name, &Data::Drive(device), data, Some(&zones), |_| None).expect("it fits the drive");
            let task = async move {
                let mut held = [Held::default(), Held::default()];
                let [first, second] = &mut held;
                store.settle(store.allocate(first, 5, &Told::default()).await.expect("there is room"));
                let lease = store.allocate(second, 7, &Told::default()).await.expect("there is room");
                assert_eq!(store.usage().allocated, 12, "{name}");
                store.abandon(lease, None);
                let usage = store.usage();
                assert_eq!((usage.allocated, usage.freed, usage.live), (5, 0, 5), "{name}");
            };
            clock.run(task).expect("nobody waits for ever");
            clock.forget_all();
        }
    }
}
