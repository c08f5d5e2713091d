//! The `linear` seek model (Hajkazemi 2019 eq. 1): t = α · tracks + min, with α such that the whole radius takes max.

use crate::geometry::Divider;

/// A seek whose time is linear in the distance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linear {
    min_ns: u64,
    range_ns: u64,
    distance_max: Divider,
}

impl Linear {
    /// Creates the model: times from `min_ns` up to `max_ns`, which a seek over `distance_max` tracks takes.
    pub(super) fn new(min_ns: u64, max_ns: u64, distance_max: u32) -> Result<Linear, String> {
        if min_ns > max_ns || max_ns > u32::MAX as u64 {
            return Err(format!("`min_ns` {min_ns} and `max_ns` {max_ns}: in order and below {}", u32::MAX));
        }
        Ok(Linear { min_ns, range_ns: max_ns - min_ns, distance_max: Divider::new(distance_max.max(1) as u64) })
    }

    /// Returns the time over `distance` tracks, which is not zero, in nanoseconds.
    #[inline]
    pub(super) fn seek_ns(&self, distance: u32) -> u64 {
        self.min_ns + self.distance_max.quotient(distance as u64 * self.range_ns)
    }
}
