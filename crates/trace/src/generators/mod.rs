//! Synthetic workloads: described in fio's words, or built in under a name.
//!
//! ```
//! use imbrex_units::SimTime;
//! use imbrex_trace::generators::{Generator, WorkloadSpec};
//! use imbrex_trace::Source;
//!
//! let spec = WorkloadSpec::parse("rw=write,bs=64k,size=1MiB; idle=2h; rw=randread,number_ios=10,seed=7")?;
//! assert_eq!(spec.to_string(), "rw=write,bs=64k,size=1M,seed=7;idle=2h;rw=randread,number_ios=10");
//! let mut requests = Generator::new(spec, 1 << 20)?;
//! assert_eq!(requests.expected_requests(), Some(16 + 10));
//! assert!(requests.next(SimTime::ZERO)?.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Differences from fio: `size` ends a phase only if no other word does. The random map is off by default. `rate_iops`
//! is the rate of all requests together. The ranks of `zipf` and `pareto` are scattered without collisions. `normal` is
//! centred on the middle of the region.

mod applications;
mod built_in;
mod cloudphysics;
mod distribution;
mod error;
mod generator;
mod pace;
mod parse;
mod pc_day;
mod permutation;
mod quantity;
mod random;
mod registry;
mod spec;
mod walk;
mod words;

pub use built_in::{BuiltIn, Opened, Recipe, TargetFigure};
pub use cloudphysics::{Arrivals, Choices, stand_in};
pub use error::{WordPlace, WorkloadError};
pub use generator::Generator;
pub use registry::{built_in, named};
pub use spec::{Arrival, WorkloadSpec};
pub use words::{WordInfo, words};

#[cfg(test)]
mod tests;
