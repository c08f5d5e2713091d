//! Requests from outside the simulation: readers and writers of trace formats, workload generators, statistics.
//! Independent of disks and translation layers.

mod admission;
pub mod facts;
mod fields;
pub mod formats;
pub mod generators;
pub mod input;
mod lines;
mod members;
pub mod options;
pub mod recorded;
mod records;
pub mod request;
pub mod rows;
pub mod statistics;
pub mod survey;
mod table;
pub mod throughput;
pub mod writers;

pub use admission::sectors_of;
pub use facts::Facts;
pub use formats::{Opened, open};
pub use input::Input;
pub use options::{Decimal, Device, SkipMalformed, TimeUnit, TraceOptions};
pub use recorded::Recorded;
pub use request::{Request, Source, TraceError, When};
pub use statistics::TraceInfo;
pub use survey::{DeviceSummary, Survey, survey};
