//! The drive of the paper, and the layers that it compares on it.

/// The drive of §3.
pub(super) const PROFILE: &str = "imr-1t";
/// The conventional drive ("CMR").
pub(super) const CONVENTIONAL: &str = "conventional";
/// Read-modify-write (§2.1).
pub(super) const RMW: &str = "imr-rmw";
/// Track flipping (§2.2).
pub(super) const FLIP: &str = "track-flip";
/// Selective track caching (§2.3).
pub(super) const CACHE: &str = "track-cache";
/// Dynamic track mapping (§2.4).
pub(super) const MAP: &str = "track-map";
/// What the paper proposes.
pub(super) const PROPOSED: [&str; 3] = [FLIP, CACHE, MAP];
/// What the paper compares.
pub(super) const COMPARED: [&str; 5] = [CONVENTIONAL, RMW, FLIP, CACHE, MAP];
