//! Jin 2014, "HiSMRfs: a High Performance File System for Shingled Storage Array": how much metadata a file read costs (§II.B),
//! HiSMRfs against SMRfs (§III.A), and against ext4 with a flash cache (§III.B), on the file systems of `imbrex-fs` and ext4 of a kernel.

mod choices;
mod fig02;
mod fig06;
mod fig09;
mod memory;

use super::Experiment;

/// The experiments, in the paper's order.
pub const ALL: &[&Experiment] = &[&fig02::EXPERIMENT, &fig06::EXPERIMENT, &fig09::EXPERIMENT];

/// The commit that has what was chosen, before anything was run.
const CHOSEN: &str = "7f5c567";

/// The same for fig. 9.
const CHOSEN_FIG09: &str = "203d485";
