//! The drives of the tests, and the units of sizes in the tests.

/// Emulated drive with a set-associative layer and a disk cache at the inner diameter.
pub(super) const EMULATED_1: &str = "emulated-smr-1";
/// Emulated drive with a set-associative layer and a flash cache.
pub(super) const EMULATED_2: &str = "emulated-smr-2";
/// Emulated drive with a fully-associative layer and a cache in every zone.
pub(super) const EMULATED_3: &str = "emulated-smr-3";
/// Real shingled drive of the paper.
pub(super) const SEAGATE: &str = "seagate-st5000as0011";
/// Real conventional drive of the paper.
pub(super) const CONVENTIONAL: &str = "cmr-5900";

/// Number of sectors in a block of 4 KiB.
pub(super) const BLOCK_SECTORS: u64 = 8;
/// Number of sectors in a mebibyte.
pub(super) const MIB_SECTORS: u64 = 2048;
