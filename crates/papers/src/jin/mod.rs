//! Jin 2014, "HiSMRfs: a High Performance File System for Shingled Storage Array": the metadata I/Os of a file read
//! (§II.B), the parts of HiSMRfs (§II.D), HiSMRfs against SMRfs (§III.A), and HiSMRfs against ext4 with a flash cache
//! (§III.B). Runs on the file systems of `imbrex-fs` and on ext4 of a Linux kernel.

mod choices;
mod collection;
mod fig02;
mod fig06;
mod fig09;
mod flash;
mod hot_zone;
mod memory;
mod metadata;
mod rebuild;

use imbrex::Failure;
use imbrex::drives::emulated;
use imbrex_fs::device::emulated::Emulated;
use imbrex_fs::{Device, Executor};

use super::Experiment;

/// The experiments, in the paper's order.
pub(crate) const ALL: &[&Experiment] = &[
    &fig02::EXPERIMENT,
    &hot_zone::EXPERIMENT,
    &metadata::EXPERIMENT,
    &collection::EXPERIMENT,
    &rebuild::EXPERIMENT,
    &fig06::EXPERIMENT,
    &fig06::threads::EXPERIMENT,
    &fig09::EXPERIMENT,
    &flash::EXPERIMENT,
];

/// Commit that has our choices, made before the first run.
const CHOSEN: &str = "7f5c567";

/// Like [`CHOSEN`], for the number of bands and the numbers of threads of SMRfs.
const CHOSEN_SMRFS: &str = "e6565c4f";

/// Like [`CHOSEN`], for the experiments of §II.D, and for the checkpoints and the cut flash of §III.B.
const CHOSEN_SECTION2: &str = "573f8848";

/// Like [`CHOSEN`], for fig. 9.
const CHOSEN_FIG09: &str = "203d485";

/// Opens a new emulated drive in memory, described by `words`, as a device of a file system.
fn device(executor: &Executor, words: &str) -> Result<Device, Failure> {
    let backend = Emulated::new(emulated(words)?).map_err(Failure::failed)?;
    Ok(Device::new(executor, words, Box::new(backend)))
}
