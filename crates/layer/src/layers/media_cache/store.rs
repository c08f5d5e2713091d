//! The store: the cache that receives writes, in one of its two placements.

use super::journal::Journal;
use super::zones::CacheZones;

/// The cache that receives host writes, in one of two placements: a journal of packets, or zones that are overwritten
/// in place.
#[derive(Debug)]
pub(super) enum Store {
    Journal(Journal),
    InPlace(CacheZones),
}
