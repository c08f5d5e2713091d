//! Measures the time of a rotation: a sector that is read repeatedly passes the head once in a rotation. A drive that
//! answers from memory has no such period. A fixed delay appears between any two sectors, and is not taken for a
//! rotation.

use super::experiment::Experiment;
use crate::bench::{BLOCK_BYTES, Bench, MIB};
use crate::statistics::{middle, mode, quantile};
use crate::target::TargetError;
use crate::verdict::{Confidence, Value};

/// The experiment's entry in the registry.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "rotation",
    question: "how long is a rotation?",
    source: "our own",
    writes: false,
    needs: &[],
    properties: &["rotation"],
    about_s: 10,
    skip_reason: |_| None,
    run_after: |_| None,
    run,
};

/// Rotation times of disks, nanoseconds: from 20,000 down to 3,000 rotations per minute.
const ROTATION_NS: std::ops::RangeInclusive<f64> = 3e6..=20e6;
/// Number of reads of one sector.
const READS: usize = 60;
/// Relative width of the range in which intervals count as alike.
const ALIKE: f64 = 0.12;
/// Intervals whose 10th and 90th percentiles differ by less than this share of a rotation are exact.
const EXACT: f64 = 0.001;
/// Intervals whose spread is below this share of a rotation deviate only now and then: few repeats suffice.
const QUIET: f64 = 0.04;

/// Returns the period at which the sector at `offset` passes, nanoseconds, and the spread of single intervals as a
/// share of it.
fn period(bench: &mut Bench<'_>, offset: u64) -> Result<Option<(f64, f64)>, TargetError> {
    let timed = bench.read_blocks(&[offset; READS])?;
    bench.keep("re-read", &timed);
    let intervals: Vec<u64> = timed.windows(2).map(|pair| pair[1].end_ns - pair[0].end_ns).collect();
    let found = mode(&intervals[1..], ALIKE);
    if found.share < 0.6 {
        return Ok(None);
    }
    let spread = (quantile(&intervals[1..], 0.9) - quantile(&intervals[1..], 0.1)) as f64 / found.center as f64;
    // Over many passes, the variation of single ones counts little. After a late answer that missed passes, the median
    // interval is used.
    let over_many = timed[1..].windows(READS / 2).map(|reads| {
        let whole = (reads[READS / 2 - 1].end_ns - reads[0].end_ns) as f64;
        whole / (whole / found.center as f64).round()
    });
    let over_many = middle(&over_many.collect::<Vec<_>>());
    let is_whole = (over_many / found.center as f64 - 1.0).abs() < 0.02;
    Ok(Some((if is_whole { over_many } else { found.center as f64 }, spread)))
}

/// Returns whether sectors near `offset`, read in random order, have different latencies.
fn angles_differ(bench: &mut Bench<'_>, offset: u64) -> Result<bool, TargetError> {
    let blocks = bench.scattered(offset, 2 * MIB, READS);
    let timed = bench.read_blocks(&blocks)?;
    bench.keep("random reads nearby", &timed);
    let latencies: Vec<u64> = timed[1..].iter().map(|timed| timed.latency_ns()).collect();
    Ok(mode(&latencies, ALIKE).share < 0.5)
}

/// Returns how many periods differ from the median: a block that crosses the end of a track may take longer.
fn unlike(periods: &[f64]) -> usize {
    periods.iter().filter(|&period| (period / middle(periods) - 1.0).abs() > 0.02).count()
}

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    if bench.target.size_bytes() < 64 * MIB {
        let because = "it is too small for the tests".into();
        bench.verdict.conclude("rotation", Value::CannotTell, "ms", Confidence::Low, because, &[]);
        return Ok(());
    }
    let (mut periods, mut spreads) = (Vec::new(), Vec::new());
    for share in [0.1, 0.37, 0.61, 0.93] {
        let offset = bench.at_share(share) + 64 * BLOCK_BYTES;
        if let Some((period, spread)) = period(bench, offset)? {
            periods.push(period);
            spreads.push(spread);
        }
    }
    let offset = bench.at_share(0.37);
    let turns = angles_differ(bench, offset)?;
    let evidence = ["re-read", "random reads nearby"];
    let refusal = if periods.len() < 2 {
        Some("re-reading a block takes no fixed time")
    } else if !turns {
        Some("other blocks take as long as the same one again: that is a delay, not a rotation")
    } else if !ROTATION_NS.contains(&middle(&periods)) {
        Some("the time of re-reading is not that of a disk: a cache answers, or it is none")
    } else if unlike(&periods) > 1 {
        Some("the time of re-reading differs from place to place")
    } else {
        None
    };
    if let Some(because) = refusal {
        bench.verdict.conclude("rotation", Value::CannotTell, "ms", Confidence::Low, because.into(), &evidence);
        return Ok(());
    }
    if middle(&spreads) > EXACT {
        // Single measurements vary: repeat them, and raise the tolerance.
        bench.repeats = if middle(&spreads) > QUIET { 7 } else { 3 };
        bench.tolerance = (middle(&spreads) * 0.7).clamp(0.05, 0.15);
    }
    let sure = if periods.len() == 4 { Confidence::High } else { Confidence::Medium };
    let because = format!("re-reading takes it at {} of 4 places", periods.len());
    bench.verdict.conclude("rotation", Value::Number(middle(&periods) / 1e6), "ms", sure, because, &evidence);
    Ok(())
}
