//! What shingling costs: the same workloads on every drive and every layer, for the guide of that name.
//!
//! Nothing here is a paper's: the experiments have tables and no claims. Each renews its part of the guide, between the
//! marks that bear its name; the words around the tables are the guide's own.

mod bench;
mod cliff;
mod compared;
mod drives;
mod idle;
mod layers;
mod table;
mod volatile;

use super::Experiment;

/// The experiments, in the guide's order.
pub const ALL: &[&Experiment] = &[
    &cliff::EXPERIMENT,
    &drives::EXPERIMENT,
    &idle::EXPERIMENT,
    &volatile::EXPERIMENT,
    &layers::SHINGLED,
    &layers::INTERLACED,
];
