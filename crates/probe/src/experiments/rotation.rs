//! Measures the time of a rotation: a sector that is read repeatedly passes the head once in a rotation. A drive that
//! answers from memory has no such period. A fixed delay appears between any two sectors, and is not taken for a
//! rotation. If a command takes longer than a rotation, the sector is read only every second time it passes, or less
//! often: reads after pauses of different lengths show the passes between.

use super::conditions::{clock_step_ns, has_several_actuators, turns_of};
use super::experiment::Experiment;
use crate::bench::{BLOCK_BYTES, Bench, MIB};
use crate::statistics::{coherence, median, middle, mode, quantile};
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
/// Bounds of the tolerance of measurements that vary.
const TOLERANCE: (f64, f64) = (0.05, 0.15);
/// Steps of the clock, as shares of a rotation: from the first on, single measurements vary; from the second on, they
/// show no differences as small as the tests look for; from the third on, they do not show the angle of a block.
const STEP_VARIES: f64 = 0.005;
const STEP_COARSE: f64 = 0.02;
const STEP_BLIND: f64 = 0.25;
/// Number of reads of one sector.
const READS: usize = 60;
/// Relative width of the range in which intervals count as alike.
const ALIKE: f64 = 0.12;
/// Intervals whose 10th and 90th percentiles differ by less than this share of a rotation are exact.
const EXACT: f64 = 0.001;
/// Intervals whose spread is below this share of a rotation deviate only now and then: few repeats suffice.
const QUIET: f64 = 0.04;
/// Intervals whose spread is above this share of a rotation need many repeats.
const LOUD: f64 = 0.14;

/// Largest spread of intervals, as a share of a rotation, at which they are taken for passes of one block: beyond it,
/// delays are as long as rotational waits.
const SPREAD_MAX: f64 = 0.3;
/// Spread from which single measurements vary so much that no answer has high confidence.
const SPREAD_UNSURE: f64 = 0.08;
/// Relative range around the median interval in which the period is searched, and the steps of the search.
const SEARCH: f64 = 0.15;
const SEARCH_STEPS: [f64; 2] = [5e-4, 2e-5];
/// Smallest coherence of the ends of reads at the period. Delays of 30 % of a rotation leave 0.86; without a platter,
/// the ends of 60 reads reach 0.5 once in a million times.
const COHERENT: f64 = 0.75;

/// The period at which a sector passes.
struct Period {
    ns: f64,
    /// Spread of single intervals, as a share of the period.
    spread: f64,
}

/// Returns the period at which the sector at `offset` passes.
fn period(bench: &mut Bench<'_>, offset: u64) -> Result<Option<Period>, TargetError> {
    let timed = bench.read_blocks(&[offset; READS])?;
    bench.keep("re-read", &timed);
    let intervals: Vec<u64> = timed.windows(2).map(|pair| pair[1].end_ns - pair[0].end_ns).collect();
    let intervals = &intervals[1..];
    let found = mode(intervals, ALIKE);
    let center = if found.share < 0.6 { median(intervals) } else { found.center } as f64;
    let spread = (quantile(intervals, 0.9) - quantile(intervals, 0.1)) as f64 / center;
    if spread > EXACT {
        let first_ns = timed[0].end_ns;
        let ends: Vec<f64> = timed[1..].iter().map(|timed| (timed.end_ns - first_ns) as f64).collect();
        let ns = coherent_period(&ends, center).filter(|_| found.share >= 0.6 || spread <= SPREAD_MAX);
        return Ok(ns.map(|ns| Period { ns, spread }));
    }
    // Over many passes, the variation of single ones counts little.
    let over_many = timed[1..].windows(READS / 2).map(|reads| {
        let whole = (reads[READS / 2 - 1].end_ns - reads[0].end_ns) as f64;
        whole / (whole / center).round()
    });
    let over_many = middle(&over_many.collect::<Vec<_>>());
    let is_whole = (over_many / center - 1.0).abs() < 0.02;
    Ok(Some(Period { ns: if is_whole { over_many } else { center }, spread }))
}

/// Returns the period near `about` at which the times `ends` are most coherent, if they are coherent enough. The
/// platter turns on while an answer is delayed, so that delays do not add up.
fn coherent_period(ends: &[f64], about: f64) -> Option<f64> {
    let (mut best, mut range) = (about, SEARCH);
    for step in SEARCH_STEPS {
        let count = (range / step) as i32;
        let tried = (-count..=count).map(|index| best * (1.0 + f64::from(index) * step));
        best = tried.max_by(|&one, &other| coherence(ends, one).total_cmp(&coherence(ends, other)))?;
        range = 2.0 * step;
    }
    (coherence(ends, best) >= COHERENT).then_some(best)
}

/// Returns whether sectors near `offset`, read in random order, have different latencies; and the step of the clock,
/// nanoseconds.
fn angles_differ(bench: &mut Bench<'_>, offset: u64) -> Result<(bool, u64), TargetError> {
    let blocks = bench.scattered(offset, 2 * MIB, READS);
    let timed = bench.read_blocks(&blocks)?;
    bench.keep("random reads nearby", &timed);
    let latencies: Vec<u64> = timed[1..].iter().map(|timed| timed.latency_ns()).collect();
    Ok((mode(&latencies, ALIKE).share < 0.5, clock_step_ns(&timed)))
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
        if let Some(Period { ns, spread }) = period(bench, offset)? {
            periods.push(ns);
            spreads.push(spread);
        }
    }
    let offset = bench.at_share(0.37);
    let (turns, step_ns) = angles_differ(bench, offset)?;
    let evidence = ["re-read", "random reads nearby"];
    let refuse = |bench: &mut Bench<'_>, because: &str| {
        bench.verdict.conclude("rotation", Value::CannotTell, "ms", Confidence::Low, because.into(), &evidence);
        Ok(())
    };
    if periods.len() < 2 {
        return refuse(bench, "re-reading a block takes no fixed time");
    }
    if !turns {
        return refuse(bench, "other blocks take as long as the same one again: that is a delay, not a rotation");
    }
    if unlike(&periods) > 1 {
        return refuse(bench, "the time of re-reading differs from place to place");
    }
    let period_ns = middle(&periods);
    let turns = turns_of(bench, offset + 64 * BLOCK_BYTES, period_ns)?;
    let rotation_ns = period_ns / f64::from(turns.unwrap_or(1));
    if !ROTATION_NS.contains(&rotation_ns) {
        return refuse(bench, "the time of re-reading is not that of a disk: a cache answers, or it is none");
    }
    let step = step_ns as f64 / rotation_ns;
    if step > STEP_BLIND {
        return refuse(bench, &format!("the clock advances in steps of {:.2} ms", step_ns as f64 / 1e6));
    }
    let spread = middle(&spreads);
    if spread > EXACT || step > STEP_VARIES {
        // Single measurements vary: repeat them, and raise the tolerance.
        bench.repeats = match spread.max(step) {
            spread if spread > LOUD => 15,
            spread if spread > QUIET => 7,
            _ => 3,
        };
    }
    if spread > EXACT {
        let share = if bench.repeats == 15 { 0.5 } else { 0.7 };
        bench.tolerance = (spread * share).clamp(TOLERANCE.0, TOLERANCE.1);
    }
    // A difference of two times is off by a step at most.
    bench.tolerance = bench.tolerance.max(1.5 * step).min(TOLERANCE.1);
    let sure = if periods.len() == 4 { Confidence::High } else { Confidence::Medium };
    let because = match turns {
        Some(2..) => format!("re-reading takes a multiple of it at {} of 4 places", periods.len()),
        _ => format!("re-reading takes it at {} of 4 places", periods.len()),
    };
    bench.verdict.conclude("rotation", Value::Number(rotation_ns / 1e6), "ms", sure, because, &evidence);
    if spread > SPREAD_UNSURE {
        let share = 100.0 * spread;
        bench
            .verdict
            .add_condition(format!("the time of a single read varies by {share:.0} % of a turn of the platter"));
    }
    note_conditions(bench, turns, step, step_ns)
}

/// Adds the conditions under which the times are not those of a single drive with a fine clock and a small overhead.
fn note_conditions(bench: &mut Bench<'_>, turns: Option<u32>, step: f64, step_ns: u64) -> Result<(), TargetError> {
    if step > STEP_COARSE {
        bench.verdict.add_condition(format!("the clock advances in steps of {:.2} ms", step_ns as f64 / 1e6));
    }
    match turns {
        Some(1) => {}
        Some(turns) => {
            bench.verdict.add_condition(format!("a command takes longer than {} rotations", turns - 1));
        }
        None => bench.verdict.add_condition("the times of reads after pauses do not follow the platter".into()),
    }
    if has_several_actuators(bench)? {
        let because = "two distant blocks are read at one time, as by two actuators or two drives";
        bench.verdict.add_condition(because.into());
    }
    Ok(())
}
