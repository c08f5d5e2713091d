//! Latency histograms: HDR, three significant digits, in nanoseconds.

use hdrhistogram::Histogram;

/// Significant digits kept.
const DIGITS: u8 = 3;

/// The quantiles that results name.
pub const QUANTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999)];

/// A histogram of durations in nanoseconds.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    histogram: Histogram<u64>,
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
    /// Empty.
    pub fn new() -> LatencyHistogram {
        let mut histogram = Histogram::new(DIGITS).expect("three digits are within what the library takes");
        histogram.auto(true);
        LatencyHistogram { histogram, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Counts one duration.
    pub fn record(&mut self, ns: u64) {
        self.histogram.record(ns).expect("an automatic histogram grows to any value");
        self.sum_ns += ns as u128;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: &LatencyHistogram) {
        self.histogram.add(&other.histogram).expect("an automatic histogram grows to any value");
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The mean, exact, rounded to a nanosecond.
    pub fn mean_ns(&self) -> u64 {
        let count = self.count() as u128;
        if count == 0 {
            return 0;
        }
        ((self.sum_ns + count / 2) / count) as u64
    }

    /// The longest, exact.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The shortest, exact; zero if there is none.
    pub fn min_ns(&self) -> u64 {
        if self.count() == 0 {
            0
        } else {
            self.min_ns
        }
    }

    /// The value that a share `quantile` of all does not exceed, to three digits, never over the longest.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        if self.count() == 0 {
            return 0;
        }
        self.histogram.value_at_quantile(quantile).min(self.max_ns)
    }

    /// (upper edge in ns, count) of every bucket that holds something, in order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.histogram.iter_recorded().map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
