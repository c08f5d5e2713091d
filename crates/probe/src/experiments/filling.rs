//! Writing until the cache is full: until writes wait for cleaning, which shows in latencies far above all before them
//! (Aghayev 2015 §4.6 looks at the rate, which a drive that frees much at once does not lose).

use super::stalls::Watch;
use crate::bench::{Bench, MIB};
use crate::target::{Operation, TargetError};

/// Where the writes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// All over the drive: every cache takes its share.
    Whole,
    /// One region after another, each block once: a single cache fills, and few bands are left to be cleaned.
    Region,
}

/// What filling showed.
#[derive(Debug, Default)]
pub struct Filled {
    /// Writes before the cache was full, if it was.
    pub count: Option<u64>,
    /// Latencies of the first writes, nanoseconds, in the order of completion.
    pub latencies: Vec<u64>,
    /// Writes that were answered at one time, in the middle.
    pub at_once: usize,
    /// Stalls at the time when the cache was full: one of each of its parts.
    pub parts: usize,
    /// What was full when is a guess. Stalls went on all the time, and most of them began long after the first: logs that are
    /// cleaned a band at a time, some of which held something, or sets so unequal that the first are full again before the last.
    /// Not so where each of many sets was full once, unless they may be such logs as well.
    pub is_spread: bool,
    /// The longest stalls, nanoseconds: of how many writes which waited.
    pub stalls: Vec<(u64, u64)>,
}

/// Latencies kept.
const LATENCIES_MAX: usize = 1 << 16;
/// What a drive is given at most: a cache that takes more than this part of its drive is not looked for.
const WRITES_MAX: u64 = 50_000_000;
const PART_MAX: u64 = 12;
/// Bytes of a region.
const REGION_BYTES: u64 = 1 << 30;

/// Offsets of writes.
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
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Places {
    fn new(bench: &Bench<'_>, spread: Spread, bytes: u64) -> Places {
        let slots = bench.target.size_bytes() / bytes;
        let region_slots = (REGION_BYTES / bytes).min(slots / 2).max(1);
        // In the middle of the drive, so that the first region is never that of another test's blocks.
        let region = slots / region_slots / 3;
        Places { spread, bytes, slots, region_slots, order: Vec::new(), next: 0, region, section: 0 }
    }

    fn next(&mut self, random: &mut rand_xoshiro::Xoshiro256StarStar) -> u64 {
        use rand_core::RngCore;
        if self.spread == Spread::Whole {
            // Multiples of the golden section, modulo one: any part of the drive gets its share at any time, as it would not
            // of random places, so that caches of parts are full together.
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
pub fn fill(bench: &mut Bench<'_>, spread: Spread, bytes: u64, depth: usize) -> Result<Filled, TargetError> {
    let mut places = Places::new(bench, spread, bytes.min(MIB));
    let mut random = bench.random.clone();
    let rotation = bench.rotation_ns();
    let mut watch = Watch::new(rotation);
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

/// How many writes are answered together, in the middle: packets are more than a rotation apart.
fn at_once(ends: &mut [u64], rotation: f64) -> usize {
    ends.sort_unstable();
    let together = ends.chunk_by(|one, next| ((next - one) as f64) < rotation / 2.0);
    let sizes: Vec<u64> = together.map(|chunk| chunk.len() as u64).collect();
    crate::statistics::median(&sizes) as usize
}
