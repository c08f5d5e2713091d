//! Two later drives, whose cache is overwritten in place, as measured in public in 2026. That source is not refereed, and
//! every claim says so.
//!
//! Volatile cache and look-ahead are off, so that the persistent cache is seen alone.

mod cache_size;
mod draining;
mod measured;
mod releasing;
mod scattered_writes;
mod skew;
mod speed;

use super::Experiment;

/// The experiments.
pub const ALL: &[&Experiment] =
    &[&cache_size::EXPERIMENT, &skew::EXPERIMENT, &speed::EXPERIMENT, &releasing::EXPERIMENT, &draining::EXPERIMENT];
