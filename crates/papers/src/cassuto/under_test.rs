//! The drives that the paper compares.

/// Set-associative drive of §IV.C: regions of 50,000 blocks, a cache of 1 %.
pub(super) const SET_ASSOCIATIVE: &str = "cassuto-307g+set-associative:safety=paper";

/// Drive of §IV.C without a cache: each write reads, modifies and writes its region of 50,000 blocks.
pub(super) const REGION_RMW: &str = "cassuto-307g+region-rmw:safety=paper,rmw=whole";

/// Set-associative drive of §IV.C whose native regions take the cache region that is filled least. §IV.D proposes a
/// dynamic association, and gives no rule for it.
pub(super) const DYNAMIC: &str = "cassuto-307g+set-associative:safety=paper,association=dynamic";

/// Conventional drive of the same mechanics, for comparison.
pub(super) const CONVENTIONAL: &str = "cassuto-307g+conventional";
