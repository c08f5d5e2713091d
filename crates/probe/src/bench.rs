//! The context of an experiment: the target, the properties known so far, and methods to measure.
//!
//! Invariants:
//! 1. A series and a path of the head each keep at most [`POINTS_MAX`] points: the lowest and the highest of each of
//!    many equal stretches.

use rand_core::RngCore;
use rand_xoshiro::Xoshiro256StarStar;

use crate::target::{Operation, Target, TargetError, Timed, latencies};
use crate::verdict::{Head, Series, Verdict};

/// Size of a small request, bytes.
pub(crate) const BLOCK_BYTES: u64 = 4096;
/// Bytes of a mebibyte.
pub(crate) const MIB: u64 = 1 << 20;
/// Largest number of points of a series.
pub(crate) const POINTS_MAX: usize = 1024;
/// Queue depth of the tests: the most that the host's driver allows (Aghayev 2015 §4.3.1).
pub(crate) const DEPTH: usize = 31;

/// The context in which an experiment of the probe runs: the target, the properties known so far, and methods to
/// measure.
pub struct Bench<'a> {
    /// The target that is probed.
    pub target: &'a mut dyn Target,
    /// Random generator for the offsets and orders of operations, seeded by the user.
    pub random: Xoshiro256StarStar,
    /// The verdict so far: properties and series that this and earlier experiments found. The experiment adds its own.
    pub verdict: &'a mut Verdict,
    /// Number of times that each single measurement is repeated, of which the median counts. 1 as long as the target's
    /// times are exact; the experiment `rotation` sets 3 or 7 if they vary.
    pub repeats: usize,
    /// Largest difference between two measurements of one quantity that counts as chance, as a fraction of a rotation.
    pub tolerance: f64,
    /// Longest time that a read took before anything was written, nanoseconds, if that was a pause; otherwise 0. A
    /// write that waits about as long need not wait for cleaning.
    pub pause_ns: u64,
}

/// A write waits for cleaning if it takes this many rotations, as long as reading and writing a few tracks, and longer
/// than a pause by this factor.
const STALL_ROTATIONS: f64 = 14.0;
const STALL_PAUSES: f64 = 1.5;

impl Bench<'_> {
    /// Returns a uniform random number from 0 to `bound` - 1; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.random.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Puts `items` into a uniformly random order, in place.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for index in (1..items.len()).rev() {
            let other = self.below(index as u64 + 1) as usize;
            items.swap(index, other);
        }
    }

    /// Returns the byte offsets of `count` different blocks of 4 KiB in random order, within the `bytes` bytes from
    /// `offset` on. Each is `offset` plus a multiple of 4 KiB. Returns all whole blocks of this range if it has fewer
    /// than `count`.
    pub fn scattered(&mut self, offset: u64, bytes: u64, count: usize) -> Vec<u64> {
        let blocks = bytes / BLOCK_BYTES;
        let mut chosen = std::collections::BTreeSet::new();
        let mut order = Vec::with_capacity(count);
        while order.len() < count.min(blocks as usize) {
            let block = self.below(blocks);
            if chosen.insert(block) {
                order.push(offset + block * BLOCK_BYTES);
            }
        }
        order
    }

    /// Performs `operations` one after the other, each after the answer to the previous one, and returns them with
    /// their times, in order.
    ///
    /// # Errors
    ///
    /// The target fails, or the user or the time budget ends the probe.
    pub fn one_by_one(&mut self, operations: &[Operation]) -> Result<Vec<Timed>, TargetError> {
        latencies(self.target, 1, operations)
    }

    /// Writes one block of 4 KiB at each of these byte offsets, with at most `depth` writes in flight (0 counts as 1).
    /// Returns the writes with their times, in the order of completion.
    ///
    /// # Errors
    ///
    /// The target fails, or the user or the time budget ends the probe.
    pub fn write_blocks(&mut self, depth: usize, offsets: &[u64]) -> Result<Vec<Timed>, TargetError> {
        let writes: Vec<_> = offsets.iter().map(|&offset| Operation::write(offset, BLOCK_BYTES)).collect();
        latencies(self.target, depth, &writes)
    }

    /// Reads one block of 4 KiB at each of these byte offsets, one after the other. Returns the reads with their times,
    /// in order.
    ///
    /// # Errors
    ///
    /// The target fails, or the user or the time budget ends the probe.
    pub fn read_blocks(&mut self, offsets: &[u64]) -> Result<Vec<Timed>, TargetError> {
        let reads: Vec<_> = offsets.iter().map(|&offset| Operation::read(offset, BLOCK_BYTES)).collect();
        latencies(self.target, 1, &reads)
    }

    /// Returns the duration of a rotation of the platter in nanoseconds, as measured; 10 ms if it is unknown, as a
    /// scale for times.
    pub fn rotation_ns(&self) -> f64 {
        self.verdict.number("rotation").map_or(1e7, |rotation_ms| rotation_ms * 1e6)
    }

    /// Returns the time in nanoseconds from which a write counts as waiting for cleaning.
    pub fn stall_ns(&self) -> f64 {
        (STALL_ROTATIONS * self.rotation_ns()).max(STALL_PAUSES * self.pause_ns as f64)
    }

    /// Returns the idle time in nanoseconds after which the drive begins to clean; 0 if unknown. A margin of 1 % for
    /// the error of the measurement is added, which in virtual time is at most 1.5 rotations.
    pub fn trigger_ns(&self) -> f64 {
        let exact = if self.target.is_virtual() { 1.5 * self.rotation_ns() } else { f64::MAX };
        self.verdict.number("idle_trigger").map_or(0.0, |seconds| seconds * 1e9 + exact.min(seconds * 1e7))
    }

    /// Returns whether an experiment found that the drive cleans its cache when it is idle. Returns false if this is
    /// not known.
    pub fn cleans_when_idle(&self) -> bool {
        matches!(self.verdict.word("cleaning"), Some("aggressive" | "late"))
    }

    /// Returns whether the drive is known to clean when idle, after an idle time that an experiment can wait for many
    /// times: any in virtual time, and less than ten minutes in real time.
    pub fn can_wait_for_cleaning(&self) -> bool {
        self.cleans_when_idle() && (self.target.is_virtual() || self.trigger_ns() < 6e11)
    }

    /// Stores the latencies of `timed` in the verdict as the series `name`: the number of each operation, from 0, and
    /// its latency in milliseconds. Replaces an earlier series of that name. More than 1024 points are thinned to
    /// fewer: the lowest and the highest of each stretch. Also stores the head's path meanwhile, if the target reports
    /// one.
    pub fn keep(&mut self, name: &'static str, timed: &[Timed]) {
        let points = timed.iter().enumerate().map(|(index, timed)| (index as f64, timed.latency_ns() as f64 / 1e6));
        self.keep_series(name, "operation", "latency_ms", points.collect());
        self.keep_head(name, timed.first().map(|first| first.begin_ns));
    }

    /// Stores `points` in the verdict as the series `name`, with `x` and `y` as the meanings of their two numbers.
    /// Replaces an earlier series of that name. More than 1024 points are thinned to fewer: the lowest and the highest
    /// of each stretch. Also stores the head's path since the last series, if the target reports one.
    pub fn keep_points(&mut self, name: &'static str, x: &'static str, y: &'static str, points: Vec<(f64, f64)>) {
        self.keep_series(name, x, y, points);
        self.keep_head(name, None);
    }

    pub(crate) fn keep_series(
        &mut self,
        name: &'static str,
        x: &'static str,
        y: &'static str,
        points: Vec<(f64, f64)>,
    ) {
        let series = Series { name, x, y, points: thinned(points) };
        self.verdict.series.retain(|series| series.name != name);
        self.verdict.series.push(series);
    }

    /// Stores the head's path beside the series `name`, if the target can report it. The path begins at `from_ns`, or
    /// after the long idle time that a test gives the drive before it measures.
    fn keep_head(&mut self, name: &'static str, from_ns: Option<u64>) {
        let Some(path) = self.target.head_path() else { return };
        let Some(begun_ns) = from_ns.or(after_rest(&path.points)) else { return };
        let within = path.points.iter().filter(|(at_ns, _)| *at_ns >= begun_ns);
        let points: Vec<_> =
            within.map(|&(at_ns, track)| (((at_ns - begun_ns) / 1000) as f64 / 1e6, f64::from(track))).collect();
        self.verdict.heads.retain(|head| head.series != name);
        if !points.is_empty() {
            self.verdict.heads.push(Head { series: name, tracks: path.tracks, points: thinned(points) });
        }
    }

    /// Returns the byte offset at `share` (0 to 1) of the drive's size, rounded down to a multiple of a mebibyte.
    pub fn at_share(&self, share: f64) -> u64 {
        (self.target.size_bytes() as f64 * share) as u64 / MIB * MIB
    }

    /// Returns the last byte offset that is a multiple of a mebibyte and has at least `bytes` bytes from there to the
    /// end of the drive; 0 if the drive is smaller than `bytes`.
    pub fn last_offset(&self, bytes: u64) -> u64 {
        self.target.size_bytes().saturating_sub(bytes) / MIB * MIB
    }
}

/// Returns the time of a path's first point after all idle times that take more than a third of the path.
fn after_rest(points: &[(u64, u32)]) -> Option<u64> {
    let mut points = points;
    loop {
        let whole_ns = points.last()?.0 - points.first()?.0;
        let rest = points.windows(2).enumerate().max_by_key(|(_, pair)| pair[1].0 - pair[0].0);
        match rest {
            Some((index, pair)) if pair[1].0 - pair[0].0 > whole_ns / 3 && points.len() > 2 => {
                points = &points[index + 1..];
            }
            _ => return Some(points[0].0),
        }
    }
}

/// Reduces points to at most [`POINTS_MAX`]: the lowest and the highest of each stretch, in their order. Outliers
/// remain, and a line through the points covers the line through all of them.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= POINTS_MAX {
        return points;
    }
    let stretch = points.len().div_ceil(POINTS_MAX / 2);
    let extremes = |points: &[(f64, f64)]| {
        let by_value = |a: &usize, b: &usize| points[*a].1.total_cmp(&points[*b].1);
        let ends = [(0..points.len()).min_by(by_value), (0..points.len()).max_by(by_value)];
        let mut ends: Vec<usize> = ends.into_iter().flatten().collect();
        ends.sort_unstable();
        ends.dedup();
        ends.into_iter().map(|index| points[index]).collect::<Vec<_>>()
    };
    points.chunks(stretch).flat_map(extremes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_rests_are_left_out_of_a_path() {
        let at = |times: &[u64]| after_rest(&times.iter().map(|&time| (time, 7)).collect::<Vec<_>>());
        assert_eq!(at(&[]), None);
        assert_eq!(at(&[5, 6, 7, 8, 9]), Some(5));
        assert_eq!(at(&[0, 1, 2, 1000, 1001, 1002, 1003]), Some(1000));
        assert_eq!(at(&[0, 1, 1000, 1001, 2000, 2001, 2002, 2003]), Some(2000));
    }

    #[test]
    fn what_stands_out_stays() {
        let value = |index| match index {
            5_003 => 325.0,
            7_001 => 0.5,
            _ => 25.0,
        };
        let kept = thinned((0..10_000).map(|index| (f64::from(index), value(index))).collect());
        assert!(kept.len() <= POINTS_MAX && kept.is_sorted_by(|one, next| one.0 < next.0));
        assert_eq!(kept.iter().filter(|point| point.1 != 25.0).collect::<Vec<_>>(), [&(5003.0, 325.0), &(7001.0, 0.5)]);
    }
}
