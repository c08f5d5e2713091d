//! The costs of shingling: the same workloads on every drive and every layer, for the guide `what-shingling-costs.md`.
//!
//! These experiments come from no paper: they have tables and no claims. Each replaces its own part of the guide,
//! between the marks with its name. The text around the tables belongs to the guide.

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
pub(crate) const ALL: &[&Experiment] = &[
    &cliff::EXPERIMENT,
    &drives::EXPERIMENT,
    &idle::EXPERIMENT,
    &volatile::EXPERIMENT,
    &layers::SHINGLED,
    &layers::INTERLACED,
];
