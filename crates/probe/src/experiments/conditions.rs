//! Checks whether the times of a target are those of a single drive with a fine clock: the step of the clock, the
//! rotation modulo its multiples, and the number of actuators. Only reads; the test `rotation` runs these checks.
//!
//! Limits: the checks read some tens of blocks. Pauses are found by [`crate::pauses`], from all reads before the first
//! write.

use crate::bench::{BLOCK_BYTES, Bench};
use crate::statistics::quantile;
use crate::target::{Operation, TargetError, Timed, latencies};

/// Differences between times that are smaller, nanoseconds, may be due to rounding.
const ROUNDING_NS: u64 = 1_000;

/// Returns an upper bound for the step of the clock, nanoseconds: the smallest difference between two latencies that
/// differ. It is close to the step if the latencies are many and spread.
pub(super) fn clock_step_ns(timed: &[Timed]) -> u64 {
    let mut latencies: Vec<u64> = timed.iter().map(Timed::latency_ns).collect();
    latencies.sort_unstable();
    let apart = latencies.windows(2).map(|pair| pair[1] - pair[0]);
    apart.filter(|&apart| apart > ROUNDING_NS).min().unwrap_or(u64::MAX)
}

/// Number of pauses between two reads of one block, spread evenly over the time of a read.
const PHASES: u64 = 24;
/// Most rotations that a read is tried for.
const TURNS_MAX: u32 = 5;
/// Smallest mean cosine of the phases of the intervals, if they are multiples of a rotation. Delays of up to 20 % of a
/// rotation leave 0.87; if every second one is half a rotation off, 0 is left.
const MULTIPLES: f64 = 0.6;

/// Returns the number of rotations in `period_ns`, the time after which a block that is read again and again is read
/// once more; nothing if no number explains the times. A read that follows a pause ends a whole number of rotations
/// after the read before. If the pauses are of all lengths, any multiple of the rotation occurs.
pub(super) fn turns_of(bench: &mut Bench<'_>, offset: u64, period_ns: f64) -> Result<Option<u32>, TargetError> {
    let (mut intervals, mut points) = (Vec::new(), Vec::new());
    let mut before = bench.read_blocks(&[offset; 2])?[1];
    for phase in 0..PHASES {
        let pause_ns = period_ns * (phase as f64 + 0.5) / PHASES as f64;
        bench.target.sleep(pause_ns as u64)?;
        let after = bench.read_blocks(&[offset])?[0];
        let interval = (after.end_ns - before.end_ns) as f64;
        points.push((pause_ns / 1e6, interval / 1e6));
        intervals.push(interval / period_ns);
        before = after;
    }
    bench.keep_points("re-read after pauses", "pause_ms", "interval_ms", points);
    Ok(turns(&intervals))
}

/// Returns the smallest number of rotations that explains `intervals`, which are in periods of that many rotations.
fn turns(intervals: &[f64]) -> Option<u32> {
    (1..=TURNS_MAX).find(|&turns| {
        let cosines = intervals.iter().map(|interval| (interval * f64::from(turns) * std::f64::consts::TAU).cos());
        cosines.sum::<f64>() >= MULTIPLES * intervals.len() as f64
    })
}

/// Number of pairs of blocks that are read to count the actuators.
const PAIRS: u64 = 48;
/// Share of the pairs whose reads must end too close together for a single actuator.
const TOGETHER: f64 = 0.08;

/// Returns whether the blocks of distant pairs are read at one time. A single actuator reads the second block at least
/// a seek after the first.
pub(super) fn has_several_actuators(bench: &mut Bench<'_>) -> Result<bool, TargetError> {
    let size = bench.target.size_bytes();
    // Multiples of the golden section spread the pairs over the drive, and over the angles.
    let part = |index: u64| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as f64 / (1u64 << 32) as f64;
    let at = |share: f64| Operation::read((share * size as f64) as u64 / BLOCK_BYTES * BLOCK_BYTES, BLOCK_BYTES);
    let pairs: Vec<[Operation; 2]> =
        (1..=PAIRS).map(|index| [at(0.45 * part(index)), at(0.54 + 0.45 * part(3 * index + 1))]).collect();
    let mut apart = [Vec::new(), Vec::new()];
    for (depth, apart) in apart.iter_mut().enumerate() {
        for pair in &pairs {
            let timed = latencies(bench.target, depth + 1, pair)?;
            apart.push(timed[1].end_ns.abs_diff(timed[0].end_ns));
        }
    }
    let least = quantile(&apart[0], 0.05);
    let together = apart[1].iter().filter(|&&apart| 2 * apart < least).count();
    Ok(together as f64 > TOGETHER * PAIRS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_of_several_rotations_shows_fractions_of_its_time() {
        assert_eq!(turns(&[1.0, 1.0, 2.0, 2.0, 1.01, 2.0]), Some(1));
        assert_eq!(turns(&[1.0, 1.5, 2.0, 1.5, 1.01, 2.0]), Some(2));
        assert_eq!(turns(&[1.0, 1.334, 1.667, 1.667, 2.0, 1.333]), Some(3));
        assert_eq!(turns(&[1.1, 1.27, 1.62, 1.43, 1.9, 1.71, 1.12, 1.88]), None);
    }

    #[test]
    fn the_step_of_a_clock_shows_in_spread_latencies() {
        let timed = |end_ns| Timed { operation: Operation::read(0, 4096), begin_ns: 0, end_ns };
        let ends = [3_906_250, 7_812_500, 976_563, 976_562, 4_882_813];
        assert_eq!(clock_step_ns(&ends.map(timed)), 976_563);
        assert_eq!(clock_step_ns(&[timed(5), timed(5)]), u64::MAX);
    }
}
