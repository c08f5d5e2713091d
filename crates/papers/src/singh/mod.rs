//! Singh 2014, "Caveat Scriptor: Write Anywhere Shingled Disks". Its measurements of file systems are not here yet.

mod section3;

use super::Experiment;

/// The experiments, in the paper's order.
pub const ALL: &[&Experiment] = &[&section3::EXPERIMENT];
