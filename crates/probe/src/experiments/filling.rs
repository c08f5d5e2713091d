//! Writing until the cache is full: until writes wait for cleaning, which shows in latencies far above all before them
//! (Aghayev 2015 §4.6 looks at the rate, which a drive that frees much at once does not lose).
//!
//! Merges of the map stall a write as well, but all alike and from the first on. So the cache was full at the first stall
//! that is longer than every one before it and has more after it before long, or that is longer than any merge can be.

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
    /// The longest stalls, nanoseconds: of how many writes which waited.
    pub stalls: Vec<(u64, u64)>,
}

/// A stall: so many rotations without an answer, and so many times as long as usual.
const STALL_ROTATIONS: f64 = 14.0;
const STALL_TIMES: f64 = 3.0;
/// A stall is another kind than those before it if it is so many times as long.
const KIND: f64 = 1.5;
/// No merge of a map takes so many rotations.
const CLEANING_ROTATIONS: f64 = 400.0;
/// No stall for so much of what a cache takes, by which it is divided, ends a round of stalls.
const QUIET: u64 = 6;
/// Where a cache takes no more, what other tests left in it counts.
const SMALL_WRITES: u64 = 130_000;
/// Times between answers from which it is learned what is usual.
const GAPS: usize = 64;
/// Latencies kept.
const LATENCIES_MAX: usize = 1 << 16;
/// What a drive is given at most.
const WRITES_MAX: u64 = 50_000_000;
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
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

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

/// Watches for the stall at which the cache was full. What counts is the time from one answer to the next, whatever the
/// depth.
struct Watch {
    limit: u64,
    certain: u64,
    count: u64,
    last_end: u64,
    /// Times between answers, for what is usual.
    gaps: Vec<u64>,
    usual: u64,
    longest: u64,
    candidate: Option<(u64, u64)>,
    stalls: Vec<(u64, u64)>,
}

impl Watch {
    fn new(rotation: f64) -> Watch {
        Watch {
            limit: (STALL_ROTATIONS * rotation) as u64,
            certain: (CLEANING_ROTATIONS * rotation) as u64,
            count: 0,
            last_end: 0,
            gaps: Vec::new(),
            usual: 0,
            longest: 0,
            candidate: None,
            stalls: Vec::new(),
        }
    }

    /// Whether enough was seen after a cache was full at `at`: all of its parts, and where what it held before counts all
    /// of them a second time; or stalls without end.
    fn is_enough(&self, at: u64) -> bool {
        let last = self.stalls.last().map_or(at, |(index, _)| *index);
        let is_quiet = self.count > last + at / QUIET + 64;
        let ended = is_quiet && (at > SMALL_WRITES || last > at + at / 2);
        ended || self.count > 3 * at || (at > SMALL_WRITES && self.count > at + at / 2) || (self.is_restless(at))
    }

    /// Whether stalls go on for so long that no end is in sight.
    fn is_restless(&self, at: u64) -> bool {
        self.count > at + at / 2
            && self.stalls.windows(2).filter(|pair| pair[1].0 > at).all(|pair| pair[1].0 - pair[0].0 < at / QUIET)
    }

    /// A cache in parts is full part by part: half of them were at the middle one of the stalls, if there is an end to
    /// those; from there to the middle of the next time is what it takes, whatever it held before. Where stalls do not end,
    /// most parts are full at one time, and some that held something before it.
    fn full_in_the_middle(&self, at: u64) -> u64 {
        let stalls: Vec<u64> = self.stalls.iter().map(|(index, _)| *index).filter(|&index| index >= at).collect();
        if stalls.is_empty() || self.is_restless(at) {
            return crate::statistics::mode(&stalls, 0.02).center;
        }
        let mut rounds: Vec<Vec<u64>> = vec![vec![stalls[0]]];
        for pair in stalls.windows(2) {
            if pair[1] - pair[0] > at / QUIET {
                rounds.push(Vec::new());
            }
            rounds.last_mut().expect("it has one").push(pair[1]);
        }
        let middle = |round: &Vec<u64>| round[(round.len() - 1) / 2];
        match rounds.as_slice() {
            [first, second, ..] if at <= SMALL_WRITES => middle(second) - middle(first),
            [first, ..] => middle(first),
            [] => at,
        }
    }

    /// Takes a completed write; if the cache was full, how many writes before.
    fn see(&mut self, end: u64) -> Option<u64> {
        let before = self.count;
        self.count += 1;
        let gap = if before == 0 { 0 } else { end.saturating_sub(self.last_end) };
        self.last_end = self.last_end.max(end);
        if gap == 0 {
            return None;
        }
        if self.gaps.len() < GAPS {
            self.gaps.push(gap);
            self.usual = crate::statistics::median(&self.gaps);
        }
        if gap < self.limit.max((self.usual as f64 * STALL_TIMES) as u64) {
            return None;
        }
        self.stalls.push((before, gap));
        let follows = |at: u64| before - at <= at / 4;
        if gap >= self.certain {
            return Some(self.candidate.filter(|(at, _)| follows(*at)).map_or(before, |(at, _)| at));
        }
        let like = self.candidate.filter(|(_, like)| (gap as f64) < KIND * *like as f64);
        if let Some((at, _)) = like.filter(|(at, like)| gap as f64 > 0.4 * *like as f64 && follows(*at)) {
            return Some(at);
        }
        if like.is_none() && gap as f64 > KIND * self.longest as f64 {
            self.candidate = Some((before, gap));
        }
        self.longest = self.longest.max(gap);
        None
    }
}

/// Writes `bytes` at a time, `depth` at once, until the cache is full.
pub fn fill(bench: &mut Bench<'_>, spread: Spread, bytes: u64, depth: usize) -> Result<Filled, TargetError> {
    let mut places = Places::new(bench, spread, bytes.min(MIB));
    let mut random = bench.random.clone();
    let rotation = bench.rotation_ns();
    let mut watch = Watch::new(rotation);
    let mut filled = Filled::default();
    let (mut ends, mut last_end) = (Vec::new(), 0);
    let mut next = || Some(Operation::write(places.next(&mut random), bytes));
    let mut over = false;
    bench.target.perform(depth, &mut next, &mut |timed| {
        if over {
            return false;
        }
        let latency = timed.latency_ns();
        if filled.latencies.len() < LATENCIES_MAX {
            filled.latencies.push(latency);
            if timed.end_ns.saturating_sub(last_end) as f64 > rotation / 100.0 || ends.is_empty() {
                ends.push(0usize);
            }
            *ends.last_mut().expect("it has one") += 1;
            last_end = timed.end_ns;
        }
        let full = watch.see(timed.end_ns);
        filled.count = filled.count.or(full);
        over =
            watch.count >= WRITES_MAX || filled.count.is_some_and(|at| spread == Spread::Region || watch.is_enough(at));
        !over
    })?;
    if let (Spread::Whole, Some(at)) = (spread, filled.count) {
        filled.count = Some(watch.full_in_the_middle(at));
    }
    bench.random = random;
    let sizes: Vec<u64> = ends.iter().map(|&count| count as u64).collect();
    filled.at_once = crate::statistics::median(&sizes) as usize;
    filled.stalls = watch.stalls;
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full_at(latencies: impl Iterator<Item = u64>) -> Option<u64> {
        let mut watch = Watch::new(10.0);
        let (mut latencies, mut now) = (latencies, 0);
        latencies.find_map(|latency| {
            now += latency;
            watch.see(now)
        })
    }

    #[test]
    fn merges_of_the_map_are_not_taken_for_a_full_cache() {
        let merged = |index: u64| if index % 240 == 239 { 325 } else { 25 };
        assert_eq!(full_at((0..5000).map(merged)), None);
        // From the 3000th on every hundredth write waits for a band.
        let cleaned = |index: u64| if index >= 3000 && index.is_multiple_of(100) { 700 } else { merged(index) };
        assert_eq!(full_at((0..5000).map(cleaned)), Some(3000));
    }

    #[test]
    fn a_stall_that_no_merge_takes_needs_no_second() {
        assert_eq!(full_at((0..5000).map(|index| if index == 4000 { 90_000 } else { 10 })), Some(4000));
    }
}
