//! Hajkazemi et al. 2019, "Track-Based Translation Layers for Interlaced Magnetic Recording": the costs of §2, and
//! figures 2 to 13 on the paper's fifteen machines: stand-ins for their traces, or the traces that a user has
//! ([`Traces`]).
//!
//! All runs are on the profile `imr-1t`: 6000 rpm, tracks of 2 MiB, seeks of 2 to 20 ms, a queue of 64 served in order of
//! arrival, and a write cache (§3).

mod beyond;
mod causes;
mod costs;
mod fig08;
mod fig10;
mod fig12;
mod runs;
mod sentences;
mod table;
mod table1;
mod timed_layer;
mod traces;
mod under_test;
mod workloads;

use super::Experiment;
pub use traces::Traces;

/// Names of the experiments that run the workloads of the machines.
pub(crate) const WITH_MACHINES: [&str; 5] = [
    table1::EXPERIMENT.name,
    fig08::EXPERIMENT.name,
    fig10::EXPERIMENT.name,
    fig12::EXPERIMENT.name,
    beyond::EXPERIMENT.name,
];

/// The experiments, in the paper's order.
pub(crate) const ALL: &[&Experiment] = &[
    &costs::EXPERIMENT,
    &table1::EXPERIMENT,
    &fig08::EXPERIMENT,
    &fig10::EXPERIMENT,
    &fig12::EXPERIMENT,
    &beyond::EXPERIMENT,
];
