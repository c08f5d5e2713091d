//! Writes until the cache is full, that is, until writes wait for cleaning, with latencies far above all earlier ones.
//! (Aghayev 2015 §4.6 looks at the throughput, which does not drop on a drive that frees much space at once.)

use super::stalls::Watch;
use crate::bench::{Bench, MIB};
use crate::target::{Operation, TargetError};

/// Distribution of the writes over the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Spread {
    /// All over the drive: every cache gets its share.
    Whole,
    /// One region after another, each block once: a single cache fills up, and few bands need cleaning afterwards.
    Region,
}

/// Results of filling the cache.
#[derive(Debug, Default)]
pub(super) struct Filled {
    /// Number of writes that were answered before a write had to wait because the cache was full; `None` if the cache
    /// never was. For writes all over the drive, an estimate from all stalls, since parts of the cache are full at
    /// different times.
    pub count: Option<u64>,
    /// Latencies of the first 65,536 writes to complete, in nanoseconds, in the order of completion. Fewer if the run
    /// ended before.
    pub latencies: Vec<u64>,
    /// Median size of a packet, in writes: a packet is a run of writes whose answers follow each other by less than an
    /// eighth of a rotation. Of the first 65,536 writes only.
    pub at_once: usize,
    /// Estimated number of parts of the cache. A part is a set or a log that is cleaned by itself; a write that finds
    /// its part full stalls. So the estimate is the number of stalls near write number `count`. 0 if the cache was not
    /// full, or if the writes went to one region after another.
    pub parts: usize,
    /// Whether `count` is a guess, because stalls continued all the time, and most began long after the first. The
    /// cache then consists of logs that are cleaned a band at a time and some of which held data before; or of sets so
    /// unequal that the first are full again before the last. It is no guess if each of many sets was full once, unless
    /// they may also be such logs.
    pub is_spread: bool,
    /// The stalls, which are unusually long waits for an answer, in order of time: pairs of the number of writes before
    /// the stall and its duration in nanoseconds.
    pub stalls: Vec<(u64, u64)>,
}

/// Most latencies that are kept.
const LATENCIES_MAX: usize = 1 << 16;
/// Most writes to a drive, and the reciprocal of the largest share of the drive that is written: larger caches are not
/// searched for.
const WRITES_MAX: u64 = 50_000_000;
const PART_MAX: u64 = 12;
/// Size of a region, bytes.
const REGION_BYTES: u64 = 1 << 30;

/// Generator of the offsets of writes.
struct Places {
    spread: Spread,
    bytes: u64,
    slots: u64,
    region_slots: u64,
    order: Vec<u32>,
    next: usize,
    region: u64,
    section: u64,
}

/// The golden section of 2⁶⁴.
pub(super) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Places {
    fn new(bench: &Bench<'_>, spread: Spread, bytes: u64) -> Places {
        let slots = bench.target.size_bytes() / bytes;
        let region_slots = (REGION_BYTES / bytes).min(slots / 2).max(1);
        // The first region is at a third of the drive, where no other test has written.
        let region = slots / region_slots / 3;
        Places { spread, bytes, slots, region_slots, order: Vec::new(), next: 0, region, section: 0 }
    }

    fn next(&mut self, random: &mut rand_xoshiro::Xoshiro256StarStar) -> u64 {
        use rand_core::RngCore;
        if self.spread == Spread::Whole {
            // Multiples of the golden section, modulo one: unlike random offsets, they give any part of the drive its
            // share at any time, so that the parts of a cache are full together.
            self.section = self.section.wrapping_add(GOLDEN);
            return ((u128::from(self.section) * u128::from(self.slots)) >> 64) as u64 * self.bytes;
        }
        let mut below = |bound: u64| ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64;
        if self.next == self.order.len() {
            self.order = (0..self.region_slots as u32).collect();
            for index in (1..self.order.len()).rev() {
                self.order.swap(index, below(index as u64 + 1) as usize);
            }
            self.next = 0;
            self.region = (self.region + 1) % (self.slots / self.region_slots);
        }
        let slot = self.region * self.region_slots + u64::from(self.order[self.next]);
        self.next += 1;
        slot * self.bytes
    }
}

/// Writes `bytes` at a time, `depth` at once, until the cache is full.
pub(super) fn fill(bench: &mut Bench<'_>, spread: Spread, bytes: u64, depth: usize) -> Result<Filled, TargetError> {
    let mut places = Places::new(bench, spread, bytes.min(MIB));
    let mut random = bench.random.clone();
    let rotation = bench.rotation_ns();
    let mut watch = Watch::new(rotation, bench.stall_ns());
    let mut filled = Filled::default();
    let mut ends = Vec::new();
    let mut next = || Some(Operation::write(places.next(&mut random), bytes));
    let most = WRITES_MAX.min(bench.target.size_bytes() / PART_MAX / bytes);
    let mut over = false;
    bench.target.perform(depth, &mut next, &mut |timed| {
        if over {
            return false;
        }
        let latency = timed.latency_ns();
        if filled.latencies.len() < LATENCIES_MAX {
            filled.latencies.push(latency);
            ends.push(timed.end_ns);
        }
        let full = watch.see(timed.end_ns);
        filled.count = filled.count.or(full);
        over = (filled.count.is_none() && watch.count >= most)
            || watch.count >= WRITES_MAX
            || filled.count.is_some_and(|at| spread == Spread::Region || watch.is_enough(at));
        !over
    })?;
    if let (Spread::Whole, Some(at)) = (spread, filled.count) {
        let full = watch.full(at);
        (filled.count, filled.parts, filled.is_spread) = (Some(full.count), full.parts, full.is_spread);
    }
    bench.random = random;
    filled.at_once = at_once(&mut ends, rotation);
    filled.stalls = watch.stalls;
    Ok(filled)
}

/// Returns the median number of writes that are answered together: packets are half a rotation or more apart.
fn at_once(ends: &mut [u64], rotation: f64) -> usize {
    ends.sort_unstable();
    let together = ends.chunk_by(|one, next| ((next - one) as f64) < rotation / 8.0);
    let sizes: Vec<u64> = together.map(|chunk| chunk.len() as u64).collect();
    crate::statistics::median(&sizes) as usize
}
