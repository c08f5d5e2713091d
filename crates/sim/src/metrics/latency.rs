//! Latency histograms like HDR histograms: three significant digits, in nanoseconds.
//!
//! ```text
//!   values   0 ─────────── 2047   2048 ───── 4095   4096 ───── 8191   …
//!   buckets  2048 of 1            1024 of 2         1024 of 4         …
//! ```
//!
//! Invariants:
//! 1. A bucket is at most a thousandth of its values wide.

/// Number of bits of a value that are kept: 2048 steps distinguish three digits.
const KEPT_BITS: u32 = 11;

/// Number of buckets of each power of two above the first 2048 values.
const BUCKETS_PER_POWER: usize = 1 << (KEPT_BITS - 1);

/// The quantiles that results state: name and share of the values (0 to 1).
pub const QUANTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999)];

/// A histogram of durations in nanoseconds. Its buckets are 1 ns or at most a thousandth of their values wide; mean,
/// minimum and maximum are exact.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    /// Counts by bucket, up to the last power of two that was needed.
    buckets: Vec<u64>,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        LatencyHistogram::new()
    }
}

impl LatencyHistogram {
    /// Creates an empty histogram.
    pub fn new() -> LatencyHistogram {
        LatencyHistogram { buckets: Vec::new(), count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Counts one duration of `ns` nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let index = bucket_of(ns);
        if index >= self.buckets.len() {
            self.grow(index);
        }
        self.buckets[index] += 1;
        self.count += 1;
        self.sum_ns += ns as u128;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        self.buckets.resize((index / BUCKETS_PER_POWER + 1) * BUCKETS_PER_POWER, 0);
    }

    /// Adds all durations that `other` has counted.
    pub fn add(&mut self, other: &LatencyHistogram) {
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (own, others) in self.buckets.iter_mut().zip(&other.buckets) {
            *own += others;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Returns the number of durations counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the exact mean, rounded to the nearest nanosecond; 0 if the histogram is empty.
    pub fn mean_ns(&self) -> u64 {
        let count = self.count() as u128;
        if count == 0 {
            return 0;
        }
        ((self.sum_ns + count / 2) / count) as u64
    }

    /// Returns the exact maximum in nanoseconds; 0 if the histogram is empty.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Returns the exact minimum in nanoseconds; 0 if the histogram is empty.
    pub fn min_ns(&self) -> u64 {
        if self.count() == 0 { 0 } else { self.min_ns }
    }

    /// Returns the smallest value, in nanoseconds, that at least the share `quantile` (0 to 1) of all durations does
    /// not exceed. It is rounded up to the end of its bucket (by at most 0.1 %), but not above the maximum. Returns 0
    /// if the histogram is empty.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let wanted = ((quantile.min(1.0) * self.count as f64).ceil() as u64).max(1);
        let mut so_far = 0;
        let bucket = self.buckets.iter().position(|&count| {
            so_far += count;
            so_far >= wanted
        });
        bucket.map_or(0, |index| upper_edge(index).min(self.max_ns))
    }

    /// Returns, for every bucket that is not empty, the greatest value that belongs to it, in nanoseconds, and its
    /// count; buckets rise in value.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let filled = self.buckets.iter().enumerate().filter(|&(_, &count)| count > 0);
        filled.map(|(index, &count)| (upper_edge(index), count))
    }
}

/// Returns the index of the bucket of a value.
#[inline]
fn bucket_of(ns: u64) -> usize {
    let dropped_bits = u64::BITS - KEPT_BITS - (ns | ((1 << KEPT_BITS) - 1)).leading_zeros();
    dropped_bits as usize * BUCKETS_PER_POWER + (ns >> dropped_bits) as usize
}

/// Returns the greatest value of a bucket.
fn upper_edge(index: usize) -> u64 {
    let dropped_bits = (index / BUCKETS_PER_POWER).saturating_sub(1);
    let kept = (index - dropped_bits * BUCKETS_PER_POWER) as u64;
    (kept << dropped_bits) + ((1 << dropped_bits) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    proptest! {
        /// Checks that quantiles and buckets equal those of an HDR histogram of three digits. Method: compare with the
        /// library's.
        #[test]
        fn equals_the_library_s(
            values in prop::collection::vec((any::<u64>(), 0u32..64), 1..60),
            more in prop::collection::vec((any::<u64>(), 0u32..64), 0..20),
            quantile in 0.001f64..=1.0,
        ) {
            let mut twin = Histogram::<u64>::new_with_max(u64::MAX / 2, 3).expect("three digits are possible");
            let mut record = |values: &[(u64, u32)]| {
                let mut ours = LatencyHistogram::new();
                for &(value, shift) in values {
                    let value = (value >> shift).min(u64::MAX / 2);
                    ours.record(value);
                    twin.record(value).expect("within the maximum");
                }
                ours
            };
            let mut ours = record(&values);
            ours.add(&record(&more));
            prop_assert_eq!(ours.count(), twin.len());
            prop_assert_eq!(ours.quantile_ns(quantile), twin.value_at_quantile(quantile).min(ours.max_ns()));
            let theirs = twin.iter_recorded().map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()));
            prop_assert_eq!(ours.buckets().collect::<Vec<_>>(), theirs.collect::<Vec<_>>());
        }
    }

    #[test]
    fn quantiles_hold_three_digits_and_mean_and_max_are_exact() {
        let mut histogram = LatencyHistogram::new();
        for i in 1..=10_000u64 {
            histogram.record(i * 1_000);
        }
        assert_eq!(histogram.mean_ns(), 5_000_500);
        assert_eq!(histogram.max_ns(), 10_000_000);
        for (quantile, exact) in [(0.5, 5_000_000.0), (0.99, 9_900_000.0), (0.9999, 9_999_000.0)] {
            let ours = histogram.quantile_ns(quantile) as f64;
            assert!((ours / exact - 1.0).abs() < 1e-3, "{quantile}: {ours} is not {exact} to three digits");
        }
    }
}
