//! Two later drives, which overwrite their cache in place, compared with public measurements of 2026. The source is
//! not refereed, and every claim says so.
//!
//! The volatile cache and look-ahead are off, so that only the persistent cache has an effect.

mod cache_size;
mod draining;
mod measured;
mod releasing;
mod scattered_writes;
mod skew;
mod speed;

use super::Experiment;

/// The experiments.
pub(crate) const ALL: &[&Experiment] =
    &[&cache_size::EXPERIMENT, &skew::EXPERIMENT, &speed::EXPERIMENT, &releasing::EXPERIMENT, &draining::EXPERIMENT];
