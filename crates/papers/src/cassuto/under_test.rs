//! The drives that the paper compares.

/// The set-associative drive of §IV.C: regions of 50,000 blocks, 1 % cache.
pub(super) const SET_ASSOCIATIVE: &str = "cassuto-307g+set-associative:safety=paper";

/// The conventional drive beside it.
pub(super) const CONVENTIONAL: &str = "cassuto-307g+conventional";
