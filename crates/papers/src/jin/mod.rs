//! Jin 2014, "HiSMRfs: a High Performance File System for Shingled Storage Array": how much metadata a file read costs (§II.B),
//! and HiSMRfs against SMRfs (§III.A), on the file systems of `imbrex-fs` and ext4 of the kernel.

mod choices;
mod fig02;
mod fig06;
mod memory;

use super::Experiment;

/// The experiments, in the paper's order.
pub const ALL: &[&Experiment] = &[&fig02::EXPERIMENT, &fig06::EXPERIMENT];

/// The commit that has what was chosen, before anything was run.
const CHOSEN: &str = "7f5c567";
