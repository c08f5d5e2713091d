//! The drives of the tests, and the sizes they are written in.

/// Set-associative, disk cache at the inner diameter.
pub(super) const EMULATED_1: &str = "emulated-smr-1";
/// Set-associative, flash cache.
pub(super) const EMULATED_2: &str = "emulated-smr-2";
/// Fully-associative, a cache in every zone.
pub(super) const EMULATED_3: &str = "emulated-smr-3";
/// The real shingled drive.
pub(super) const SEAGATE: &str = "seagate-st5000as0011";
/// The real conventional drive.
pub(super) const CONVENTIONAL: &str = "cmr-5900";

/// Sectors of a block of 4 KiB.
pub(super) const BLOCK_SECTORS: u64 = 8;
/// Sectors of a mebibyte.
pub(super) const MIB_SECTORS: u64 = 2048;
