//! Singh 2014, "Cleaning for Caveat Scriptor shingled disks": the capacity test of §5.3, on the file system of
//! `imbrex-fs` and disks in memory.

mod paper;
mod tables;

use super::Experiment;

/// The experiments, in the paper's order.
pub const ALL: &[&Experiment] = &[&tables::NEAR, &tables::FAR];
