//! Singh 2014, "Comparing Performance of Different Cleaning Algorithms for SMR disks": the damage that a write does
//! (§3.2), and the tests of chapter 5 on the file systems of `imbrex-fs`.

mod chapter6;
mod paper;
mod performance;
mod section3;
mod tables;

use super::Experiment;

/// The experiments, in the paper's order.
pub(crate) const ALL: &[&Experiment] =
    &[&section3::EXPERIMENT, &performance::EXPERIMENT, &tables::NEAR, &tables::FAR, &chapter6::EXPERIMENT];
