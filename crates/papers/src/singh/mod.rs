//! Singh 2014, "Caveat Scriptor: Write Anywhere Shingled Disks": what a write damages (§3.2), and the capacity test of §5.3,
//! on the file system of `imbrex-fs` and disks in memory.

mod paper;
mod section3;
mod tables;

use super::Experiment;

/// The experiments, in the paper's order.
pub const ALL: &[&Experiment] = &[&section3::EXPERIMENT, &tables::NEAR, &tables::FAR];
