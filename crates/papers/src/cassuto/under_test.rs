//! The drives that the paper compares.

/// Set-associative drive of §IV.C: regions of 50,000 blocks, a cache of 1 %.
pub(super) const SET_ASSOCIATIVE: &str = "cassuto-307g+set-associative:safety=paper";

/// Conventional drive of the same mechanics, for comparison.
pub(super) const CONVENTIONAL: &str = "cassuto-307g+conventional";
