//! The sizes of requests: a few sizes that have the machine's percentiles and mean.
//!
//! The sizes are the published percentiles, one size between the median and the 95th percentile, and one above. Three
//! vectors of shares have these percentiles: one with a low mean, one spread out, one with a high mean. Every mixture
//! of two vectors has the percentiles too, and one mixture has the machine's mean.
//!
//! Invariants:
//! 1. The counts of the sizes add up exactly to the number of requests.
//! 2. Sizes are strictly ascending, and no count is zero.

use super::facts::Machine;

pub(super) const SECTOR_BYTES: u64 = 512;
pub(super) const PAGE_SECTORS: u64 = 8;
pub(super) const PAGE_BYTES: u64 = PAGE_SECTORS * SECTOR_BYTES;

/// Maximum size of a request, unless the 95th percentile is larger.
const LARGEST_BYTES: u64 = 1 << 20;

/// A number of requests of one size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SizeCount {
    pub sectors: u64,
    pub count: u64,
}

impl SizeCount {
    /// Returns whether the request is smaller than a page, like writes to a log.
    pub(super) fn is_partial(self) -> bool {
        self.sectors < PAGE_SECTORS
    }

    /// Returns the number of pages that a request touches if it is aligned to pages.
    pub(super) fn pages(self) -> u64 {
        self.sectors.div_ceil(PAGE_SECTORS)
    }
}

/// Shares of the requests for the five sizes.
type Shares = [f64; 5];

/// Returns the sizes of the writes. Sizes above `most_pages` pages occur only if they are published percentiles.
pub(super) fn of_writes(machine: &Machine, most_pages: u64) -> Vec<SizeCount> {
    let [lowest, median, high] = machine.write_size_bytes;
    let below_median = if lowest == median {
        0.0
    } else if lowest < PAGE_BYTES {
        // With more small writes, the excess of pages over bytes would be larger than the machine's.
        0.06
    } else {
        0.3
    };
    mixture(lowest, median, high, below_median, most_pages, machine.writes, machine.write_bytes)
}

/// Returns the sizes of the reads. Sizes above `most_pages` pages occur only if they are published percentiles.
pub(super) fn of_reads(machine: &Machine, most_pages: u64) -> Vec<SizeCount> {
    let [median, high] = machine.read_size_bytes;
    let lowest = whole_pages(median as f64 / 4.0).min(median);
    let below_median = if lowest == median { 0.0 } else { 0.3 };
    mixture(lowest, median, high, below_median, most_pages, machine.reads, machine.read_bytes)
}

fn mixture(
    lowest: u64,
    median: u64,
    high: u64,
    below_median: f64,
    most_pages: u64,
    count: u64,
    bytes: u64,
) -> Vec<SizeCount> {
    let middle = whole_pages((median as f64 * high as f64).sqrt()).clamp(median, high);
    let largest = (4 * high).min(LARGEST_BYTES.min(most_pages * PAGE_BYTES)).max(high);
    let sizes = [lowest, median, middle, high, largest];
    let below_when_high = below_median.min(0.06);
    let low = [below_median, 0.9475 - below_median, 0.0, 0.0525, 0.0];
    let spread = [below_median, 0.6 - below_median, 0.32, 0.06, 0.02];
    let top = [below_when_high, 0.51 - below_when_high, 0.0, 0.445, 0.045];
    let mean = bytes as f64 / count as f64;
    let mean_of = |shares: &Shares| shares.iter().zip(sizes).map(|(share, size)| share * size as f64).sum::<f64>();
    let (from, to) = if mean < mean_of(&spread) { (low, spread) } else { (spread, top) };
    let weight = (mean - mean_of(&from)) / (mean_of(&to) - mean_of(&from));
    assert!((0.0..=1.0).contains(&weight), "no mixture has the mean {mean}: between {from:?} and {to:?} of {sizes:?}");
    let shares = std::array::from_fn(|index| from[index] * (1.0 - weight) + to[index] * weight);
    counts(sizes, shares, count)
}

/// Converts shares to whole numbers by rounding their partial sums.
fn counts(sizes: [u64; 5], shares: Shares, count: u64) -> Vec<SizeCount> {
    let mut made: Vec<SizeCount> = Vec::with_capacity(sizes.len());
    let (mut share_before, mut count_before) = (0.0, 0);
    for (index, (size, share)) in sizes.into_iter().zip(shares).enumerate() {
        share_before += share;
        let is_last = index + 1 == sizes.len();
        let count_here = if is_last { count } else { ((share_before * count as f64).round() as u64).min(count) };
        let added = count_here - count_before;
        count_before = count_here;
        let sectors = size / SECTOR_BYTES;
        match made.last_mut() {
            Some(last) if last.sectors == sectors => last.count += added,
            _ if added == 0 => {}
            _ => made.push(SizeCount { sectors, count: added }),
        }
    }
    made
}

fn whole_pages(bytes: f64) -> u64 {
    (bytes / PAGE_BYTES as f64).round().max(1.0) as u64 * PAGE_BYTES
}
