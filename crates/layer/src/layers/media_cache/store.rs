//! Where writes go first: the two placements of the cache.

use super::journal::Journal;
use super::zones::CacheZones;

/// Where writes go first.
#[derive(Debug)]
pub(super) enum Store {
    Journal(Journal),
    InPlace(CacheZones),
}
