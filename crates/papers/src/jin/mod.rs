//! Jin 2014, "HiSMRfs: a High Performance File System for Shingled Storage Array": the metadata I/Os of a file read
//! (§II.B), HiSMRfs against SMRfs (§III.A), and HiSMRfs against ext4 with a flash cache (§III.B). Runs on the file
//! systems of `imbrex-fs` and on ext4 of a Linux kernel.

mod choices;
mod fig02;
mod fig06;
mod fig09;
mod memory;

use super::Experiment;

/// The experiments, in the paper's order.
pub(crate) const ALL: &[&Experiment] = &[&fig02::EXPERIMENT, &fig06::EXPERIMENT, &fig09::EXPERIMENT];

/// Commit that has our choices, made before the first run.
const CHOSEN: &str = "7f5c567";

/// Like [`CHOSEN`], for fig. 9.
const CHOSEN_FIG09: &str = "203d485";
