//! The store: the cache that receives writes, in one of its two placements.

use super::journal::Journal;
use super::zones::CacheZones;

/// The cache that receives writes.
#[derive(Debug)]
pub(super) enum Store {
    Journal(Journal),
    InPlace(CacheZones),
}
