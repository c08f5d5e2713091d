//! The units that all other crates use: sectors and times that cannot be mixed up ([`units`]), commands ([`command`]),
//! and sizes and durations as people write them ([`quantity`]); suggestions for misspelt names ([`names`]).

pub mod command;
pub mod names;
pub mod quantity;
pub mod units;

pub use command::{Command, Direction, Operation};
pub use units::{Extent, Lba, Pba, Sectors, SimDuration, SimTime};
