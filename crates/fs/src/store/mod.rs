//! Stores: allocate the blocks of a device to file data, by the write rules of that device. One folder each.
//!
//! A store allocates and keeps counts; it moves no bytes. Space for a file is *reserved* while the data are still in
//! memory, and blocks are *allocated* when the data are written. The caller then reports whether the writes succeeded.
//! Blocks are *freed* only when the journal record that frees them is durable.
//!
//! ```text
//!   reserve ─► allocate ─► (the core writes) ─► commit    the blocks are live
//!                                          └──► abort     the blocks are not live
//!   free: the blocks are not live any more
//! ```
//!
//! Every store has the trait [`Store`], with [`Describe`]. Each further trait is an ability that only some stores have;
//! a method of [`Store`] returns it. A store has no method that it cannot honour.
//!
//! Invariants:
//! 1. Blocks that [`Store::reserve`] granted can be allocated, no matter which allocations other callers make meanwhile.
//! 2. No block is allocated that is live, or that a write to a neighbouring block may destroy.
//! 3. No block is allocated again before it is freed or its allocation is aborted ([`Store::abort`]).

pub mod account;
mod allocator;
mod appending;
pub mod bands;
pub mod caveat;
mod cleaning;
mod describe;
pub mod log;
mod places;
mod records;
pub mod strict_append;
mod stripe_groups;
mod waiting;
mod whole_files;
mod zoned;

pub use self::allocator::{Allocation, Reservation, Store};
pub use self::appending::Appending;
pub use self::cleaning::{Cleaning, Victim};
pub use self::describe::{Describe, Usage};
pub use self::places::Places;
pub use self::records::{RecordContext, Records};
pub use self::stripe_groups::StripeGroups;
pub use self::whole_files::{FilesBudget, WholeFiles};
pub use self::zoned::Zoned;
use crate::array::Data;
use crate::block_run::BlockRun;
use crate::device::{Kind, ZoneState};
use crate::error::FsError;
use imbrex_units::names::suggestion;

/// Names of all stores, each with a description of the devices that it is for.
pub const NAMES: &[(&str, &str)] = &[
    ("strict-append", "zoned drives"),
    ("caveat", "caveat disks"),
    ("log", "zoned and conventional drives, one or an array of them"),
];

/// Keys of the options of stores, each with the stores that have it. `hot_files` is of the hot zone, which only store
/// `log` has.
const OPTIONS: [(&str, &[&str]); 9] = [
    ("cleaner", &["strict-append", "log"]),
    ("clean_below", &["strict-append", "log"]),
    ("open_bands", &["strict-append"]),
    ("fit", &["caveat"]),
    ("extents", &["caveat"]),
    ("open_groups", &["log"]),
    ("kept_back", &["log"]),
    ("append_blocks", &["log"]),
    ("hot_files", &["log"]),
];

/// Checks that store `store` has the option `key`. `shown` is the name of the option in the message for the user.
///
/// # Errors
/// A message for the user: no store has the option, or only others have it.
pub fn check_option(store: &str, key: &str, shown: &str) -> Result<(), String> {
    match OPTIONS.iter().find(|(known, _)| *known == key) {
        Some((_, stores)) if stores.contains(&store) => Ok(()),
        Some((_, stores)) => Err(format!("{shown} is for store {}, and this is {store}", stores.join(" and "))),
        None => Err(format!("no store has an option {shown}")),
    }
}

/// Parses the share of the space, in percent, below which cleaning in the background begins.
fn clean_below(option: Option<String>) -> Result<u64, String> {
    let Some(text) = option else { return Ok(10) };
    match text.trim_end_matches('%').parse() {
        Ok(percent) if percent <= 90 => Ok(percent),
        _ => Err(format!("clean_below={text}: a percentage from 0 to 90")),
    }
}

/// Parses the option `key` of a store: a number from 1 to `most`, or `usual` if the option is not given.
fn count(key: &str, option: Option<String>, usual: u32, most: u32) -> Result<u32, String> {
    let Some(text) = option else { return Ok(usual) };
    match text.parse() {
        Ok(count) if (1..=most).contains(&count) => Ok(count),
        _ => Err(format!("{key}={text}: a number from 1 to {most}")),
    }
}

/// Returns the name of the default store for a single device of this kind. Returns `None` for a conventional device, on
/// which only the store `log` runs.
pub fn default_for(kind: &Kind) -> Option<&'static str> {
    match kind {
        Kind::Zoned { .. } => Some("strict-append"),
        Kind::Caveat { .. } => Some("caveat"),
        Kind::Plain => None,
    }
}

/// Creates the store `name` for the blocks `data` of `on`. On an array the store is `log`, and the other arguments but
/// `option` are not used. `zones` are the reported states of all zones of a zoned drive; `None` for other drives.
/// `option` returns the value of an option of the store by its key, as mkfs recorded it; `None` for the default.
///
/// # Errors
/// [`FsError::Format`] if the store is not for this kind of device, or if an option has an invalid value.
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

/// Returns whether there is a store `name`, and it is for devices of this kind.
pub fn suits(name: &str, kind: &Kind) -> bool {
    match name {
        "strict-append" => matches!(kind, Kind::Zoned { .. }),
        "caveat" => matches!(kind, Kind::Caveat { .. }),
        _ => name == "log",
    }
}

/// Returns the message for the user that store `name` is not for a device of this kind, or that no store has this name.
pub fn unfit(name: &str, kind: &Kind) -> String {
    match NAMES.iter().find(|(store, _)| *store == name) {
        Some((_, needs)) => format!("store '{name}' is for {needs}, and this device is {}", kind.name()),
        None => unknown(name),
    }
}

/// Returns the message for the user that no store is called `name`.
pub fn unknown(name: &str) -> String {
    let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    let meant = suggestion(name, known.iter().copied());
    format!("there is no store '{name}'{meant}; there are {}", known.join(", "))
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
            let executor = Executor::in_virtual_time();
            let device = Device::new(&executor, "drive", Box::new(Model::new(Geometry { blocks: 128, kind })));
            let zones = [ZoneState { written: 0, condition: ZoneCondition::Writable }; 8];
            let data = BlockRun { start: 16, blocks: 112 };
            let store = make(name, &Data::Drive(device), data, Some(&zones), |_| None).expect("it fits the drive");
            let task = async move {
                let mut reservations = [Reservation::default(), Reservation::default()];
                let [first, second] = &mut reservations;
                store.commit(store.allocate(first, 5).await.expect("there is room"));
                let allocation = store.allocate(second, 7).await.expect("there is room");
                assert_eq!(store.usage().allocated, 12, "{name}");
                store.abort(allocation);
                let usage = store.usage();
                assert_eq!((usage.allocated, usage.freed, usage.live), (5, 0, 5), "{name}");
            };
            executor.run(task).expect("nobody waits for ever");
            executor.shut_down();
        }
    }
}
