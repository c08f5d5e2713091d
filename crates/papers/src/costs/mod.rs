//! What shingling costs: the same workloads on every drive and every layer, for the guide of that name.
//!
//! Nothing here is a paper's: the experiments have tables and no claims. Each renews its part of the guide, between the
//! marks that bear its name; the words around the tables are the guide's own.

mod bench;
mod cliff;
mod drives;
mod idle;
mod layers;
mod table;
mod volatile;

use super::Experiment;

/// The experiments, in the guide's order.
pub const ALL: [&Experiment; 6] = [
    &cliff::EXPERIMENT,
    &drives::EXPERIMENT,
    &idle::EXPERIMENT,
    &volatile::EXPERIMENT,
    &layers::SHINGLED,
    &layers::INTERLACED,
];

/// Every drive of the guide: its name here, and its words.
const DRIVES: [(&str, &str); 12] = [
    ("cmr-7200", "cmr-7200"),
    ("cmr-5900", "cmr-5900"),
    ("st5000as0011", "seagate-st5000as0011"),
    ("st8000as0011", "seagate-st8000as0011"),
    ("st8000as0022", "seagate-st8000as0022"),
    ("st8000dm004", "seagate-st8000dm004"),
    ("emulated-smr-1", "emulated-smr-1"),
    ("emulated-smr-2", "emulated-smr-2"),
    ("emulated-smr-3", "emulated-smr-3"),
    ("cassuto-307g", "cassuto-307g"),
    ("imr-1t", "imr-1t"),
    ("imr-20t", "imr-20t"),
];
