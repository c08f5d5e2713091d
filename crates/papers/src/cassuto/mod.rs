//! Cassuto et al. 2010, "Indirection Systems for Shingled-Recording Disk Drives".
//!
//! All runs use the profile `cassuto-307g`, without pauses between requests, with `safety=paper`: the paper counts
//! neither spare copies nor journal records.

mod definition4;
mod fig05;
mod fig06;
mod fig09;
mod fig12;
mod under_test;

use super::Experiment;

/// The experiments, in the paper's order.
pub(crate) const ALL: &[&Experiment] =
    &[&definition4::EXPERIMENT, &fig05::EXPERIMENT, &fig06::EXPERIMENT, &fig09::EXPERIMENT, &fig12::EXPERIMENT];
