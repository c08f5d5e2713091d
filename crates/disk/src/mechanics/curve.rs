//! The `curve` seek model. Over short distances the arm only accelerates, so time grows with the square root of the
//! distance; over long distances it coasts. The root is that of an integer, so every machine computes the same
//! nanosecond.

use super::STEP_NS_MAX;

/// A seek curve: a square root up to the knee, a line above.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    short_base_ns: u64,
    short_root_squared: u64,
    knee_tracks: u32,
    long_base_ns: u64,
    long_thousand_tracks_ns: u64,
}

impl Curve {
    /// Creates the curve from the coefficients of [`super::SeekConfig::Curve`], for distances up to `distance_max`
    /// tracks. Returns the reason if a coefficient makes a seek take too long.
    pub(super) fn new(
        short_base_ns: u64,
        short_root_ns: u64,
        knee_tracks: u32,
        long_base_ns: u64,
        long_thousand_tracks_ns: u64,
        distance_max: u32,
    ) -> Result<Curve, String> {
        let short_root_squared = short_root_ns.checked_mul(short_root_ns);
        let largest_square = short_root_squared.and_then(|square| square.checked_mul(knee_tracks as u64));
        let (Some(short_root_squared), Some(_)) = (short_root_squared, largest_square) else {
            return Err(format!("`short_root_ns` {short_root_ns} at {knee_tracks} tracks is beyond any seek"));
        };
        let across_ns = long_thousand_tracks_ns.checked_mul(distance_max as u64).map(|product| product / 1000);
        if across_ns.is_none_or(|ns| ns > STEP_NS_MAX) {
            let reason = format!("over {distance_max} tracks a seek takes at most {STEP_NS_MAX} ns, which is a minute");
            return Err(format!("`long_thousand_tracks_ns` {long_thousand_tracks_ns}: {reason}"));
        }
        Ok(Curve { short_base_ns, short_root_squared, knee_tracks, long_base_ns, long_thousand_tracks_ns })
    }

    /// Returns the time over `distance` tracks, which is not zero, in nanoseconds.
    #[inline]
    pub(super) fn seek_ns(&self, distance: u32) -> u64 {
        if distance <= self.knee_tracks {
            self.short_base_ns + root(self.short_root_squared * distance as u64)
        } else {
            self.long_base_ns + distance as u64 * self.long_thousand_tracks_ns / 1000
        }
    }
}

/// Returns the whole part of the square root. Below 2⁵² the root as rounded by the floating-point unit has the same
/// whole part: the nearest root below a whole number n is 1/2n away, more than the rounding error. It takes a fraction
/// of the time of an integer root.
#[inline]
fn root(square: u64) -> u64 {
    if square < 1 << 52 { (square as f64).sqrt() as u64 } else { square.isqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_root_is_the_whole_root() {
        let near = |n: u64| [n * n - 1, n * n, n * n + 1, n * n + n];
        let small = (1..2_000).flat_map(near);
        let large = (0..2_000).flat_map(|i| near((1 << 26) - 1 - i * 31));
        for square in small.chain(large).chain([0, (1 << 52) - 1, 1 << 52, u64::MAX]) {
            assert_eq!(root(square), square.isqrt(), "of {square}");
        }
    }
}
