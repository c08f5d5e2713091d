//! The sizes of requests: a few sizes whose percentiles and mean are those of the machine.
//!
//! The sizes are the published percentiles, one between the median and the 95th, and one above. Three vectors of shares
//! have these percentiles: one of a low mean, one that is spread out, one of a high mean. So has every mixture of two,
//! and one mixture has the mean.
//!
//! Invariants:
//! 1. The counts add up to the requests exactly.
//! 2. Sizes rise strictly, and none has a count of zero.

use super::facts::Machine;

pub(super) const SECTOR_BYTES: u64 = 512;
pub(super) const PAGE_SECTORS: u64 = 8;
pub(super) const PAGE_BYTES: u64 = PAGE_SECTORS * SECTOR_BYTES;

/// No request is larger, but where the 95th percentile is.
const LARGEST_BYTES: u64 = 1 << 20;

/// Requests of one size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SizeCount {
    pub sectors: u64,
    pub count: u64,
}

impl SizeCount {
    /// Whether it is of parts of pages: what a log writes.
    pub fn is_partial(self) -> bool {
        self.sectors < PAGE_SECTORS
    }

    /// Pages it covers where it begins on a page bound.
    pub fn pages(self) -> u64 {
        self.sectors.div_ceil(PAGE_SECTORS)
    }
}

/// Shares of five sizes.
type Shares = [f64; 5];

/// The sizes of the writes, none larger than `most_pages` but the percentiles themselves.
pub(super) fn of_writes(machine: &Machine, most_pages: u64) -> Vec<SizeCount> {
    let [lowest, median, high] = machine.write_size_bytes;
    let below_median = if lowest == median {
        0.0
    } else if lowest < PAGE_BYTES {
        // More would be further off page bounds than the machine is.
        0.06
    } else {
        0.3
    };
    mixture(lowest, median, high, below_median, most_pages, machine.writes, machine.write_bytes)
}

/// The sizes of the reads.
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

/// Whole numbers out of shares, by rounding their sums.
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
