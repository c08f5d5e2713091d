//! Test 11: which recording zones does the drive have? Sequential reads are faster where tracks are longer (Aghayev
//! 2015 §4.9). The paper reads the whole drive; this test reads samples all over it. Seek times between neighbouring
//! places show the layout. In a horizontal layout, each zone is one wide stroke over a surface, and the head jumps back
//! at the end of every stroke.

use super::experiment::{Experiment, only_for_rotating};
use super::mechanics::way;
use crate::bench::{BLOCK_BYTES, Bench, MIB};
use crate::statistics::middle;
use crate::target::{Operation, TargetError};
use crate::verdict::{Confidence, Value};

/// The experiment's entry in the registry.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "zones",
    question: "which zones are there, how fast, and how do they lie?",
    source: "Aghayev 2015 test 11",
    writes: false,
    needs: &["rotation", "mechanics"],
    properties: &["rate_od", "rate_id", "rate_zones", "layout", "zone_bytes_od", "zone_bytes_id"],
    about_s: 400,
    skip_reason: only_for_rotating,
    run_after: |_| None,
    run,
};

/// Number of samples, and the size of a sample; each place is read once at that size and once at twice the size.
const SAMPLES: u64 = 96;
const SAMPLE_MIB: u64 = 12;
/// Relative difference of rates above which two samples belong to two zones.
const STEP: f64 = 0.012;
/// Windows in which strokes are searched, as shares of the drive; number of places in each, and of phases tried for
/// each seek.
const WINDOWS: [f64; 5] = [0.0012, 0.005, 0.02, 0.08, 0.3];
const PLACES: u64 = 36;
/// Smallest distance between two places, bytes: a stroke has thousands of tracks.
const STEP_BYTES_MIN: f64 = 32e6;
const PHASES: u64 = 56;

const RATES: &str = "rate of sequential reads";
const JUMPS: [&str; 2] = ["ways between neighbours, outer", "ways between neighbours, inner"];

/// Returns the rate of sequential reads at `offset`, bytes per second. It follows from the additional time that a read
/// of twice the size takes from the same angle.
fn rate(bench: &mut Bench<'_>, offset: u64) -> Result<f64, TargetError> {
    let first = Operation::read(offset, BLOCK_BYTES);
    let stretch = |times: u64| Operation::read(offset, times * SAMPLE_MIB * MIB);
    let mut rates = Vec::new();
    for _ in 0..bench.repeats.min(3) {
        let timed = bench.one_by_one(&[first, stretch(1), first, stretch(2)])?;
        let times = [1, 3].map(|index| timed[index].end_ns - timed[index - 1].end_ns);
        let longer = times[1].saturating_sub(times[0]).max(1);
        rates.push(SAMPLE_MIB as f64 * MIB as f64 * 1e9 / longer as f64);
    }
    Ok(middle(&rates))
}

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let mut rates = Vec::new();
    for index in 0..SAMPLES {
        let share = (index as f64 + 0.5) / SAMPLES as f64;
        let offset = bench.at_share(share).min(bench.last_offset(2 * SAMPLE_MIB * MIB));
        rates.push((offset as f64, rate(bench, offset)? / 1e6));
    }
    let (outer, inner) = (rates[0].1, rates[rates.len() - 1].1);
    for (name, rate, place) in [("rate_od", outer, "lowest"), ("rate_id", inner, "highest")] {
        let because = format!("{SAMPLE_MIB} MiB read in order at the {place} addresses");
        bench.verdict.conclude(name, Value::Number(rate), "MB/s", Confidence::High, because, &[RATES]);
    }
    let zones = count_zones(&rates.iter().map(|point| point.1).collect::<Vec<_>>());
    let because = format!("the rate changes {} times over {SAMPLES} places", zones - 1);
    let sure = if zones as u64 > SAMPLES / 6 { Confidence::Low } else { Confidence::Medium };
    bench.verdict.conclude("rate_zones", Value::Number(zones as f64), "zones", sure, because, &[RATES]);
    bench.keep_points(RATES, "offset_bytes", "MB_per_s", rates);
    layout(bench)
}

/// Returns the number of zones: one more than the number of lasting changes of `rates`.
fn count_zones(rates: &[f64]) -> usize {
    let (mut zones, mut level) = (1, rates[0]);
    for pair in rates.windows(2) {
        let differs = |rate: f64| (rate / level - 1.0).abs() > STEP;
        if differs(pair[0]) && differs(pair[1]) {
            (zones, level) = (zones + 1, (pair[0] + pair[1]) / 2.0);
        }
    }
    zones
}

/// Determines the layout of the zones, at the outer and the inner diameter.
fn layout(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let size = bench.target.size_bytes() as f64;
    let mut strokes = [None, None];
    for (side, stroke) in strokes.iter_mut().enumerate() {
        for share in WINDOWS {
            let window = size * share;
            let begin = if side == 0 { size * 0.0005 } else { size - window - 16.0 * MIB as f64 };
            *stroke = stroke_in(bench, begin, window / PLACES as f64, JUMPS[side])?;
            if stroke.is_some() {
                break;
            }
        }
    }
    // If answers vary, strokes on one side only may be chance, and so may be their absence on the other side.
    if bench.repeats > 1 && strokes.iter().flatten().count() == 1 {
        let because = "the way to the next place is that of a stroke back on one side only".to_string();
        bench.verdict.conclude("layout", Value::CannotTell, "", Confidence::Low, because, &JUMPS);
        return Ok(());
    }
    let (word, because) = if strokes.iter().any(Option::is_some) {
        ("horizontal", "the way to the next place is now and then that of a whole stroke back".to_string())
    } else {
        ("vertical", "the way to the next place is short wherever the drive was looked at".to_string())
    };
    bench.verdict.conclude("layout", Value::Word(word), "", Confidence::Medium, because, &JUMPS);
    for ((stroke, name), series) in strokes.into_iter().zip(["zone_bytes_od", "zone_bytes_id"]).zip(JUMPS) {
        if let Some(bytes) = stroke {
            let because = format!("from one jump of the head to the next {:.1} GiB pass", bytes / (1u64 << 30) as f64);
            bench.verdict.conclude(name, Value::Number(bytes), "B", Confidence::High, because, &[series]);
        }
    }
    Ok(())
}

/// Returns the distance between jumps of the head among the places from `begin` on, `step` bytes apart, if there are
/// jumps.
fn stroke_in(bench: &mut Bench<'_>, begin: f64, step: f64, series: &'static str) -> Result<Option<f64>, TargetError> {
    let at = |index: f64| ((begin + index * step) as u64) / MIB * MIB;
    if step < STEP_BYTES_MIN {
        return Ok(None);
    }
    let mut ways = Vec::new();
    for index in 0..PLACES - 1 {
        ways.push(way(bench, at(index as f64), at(index as f64 + 1.0), PHASES)? / 1e6);
    }
    let usual = middle(&ways);
    let apart = middle(&ways.iter().map(|way| (way - usual).abs()).collect::<Vec<_>>());
    let limit = usual + (bench.rotation_ns() / 1e6 * if bench.repeats > 1 { 0.09 } else { 0.055 }).max(6.0 * apart);
    let mut jumps: Vec<usize> = (0..ways.len()).filter(|&index| ways[index] > limit).collect();
    if bench.repeats > 1 {
        jumps = confirmed(bench, jumps, limit, at)?;
    }
    bench.keep_points(series, "place", "way_ms", ways.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect());
    let gaps: Vec<usize> = jumps.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let Some(&shortest) = gaps.iter().min() else { return Ok(None) };
    if gaps.len() < 2 || shortest < 3 || !are_strokes(&gaps) {
        return Ok(None);
    }
    let first = gaps.iter().position(|&gap| gap == shortest).map_or(0, |index| jumps[index]);
    let mut ends = [0.0; 2];
    for (end, index) in ends.iter_mut().zip([first, first + shortest]) {
        *end = jump_in(bench, at(index as f64), at(index as f64 + 1.0), limit)?;
    }
    Ok(Some(ends[1] - ends[0]))
}

/// Returns whether jumps with these distances, in places, are those of strokes: alike, or gradually growing or
/// shrinking as tracks do. Between two zones one jump may be missing, because the head moves on in its direction.
fn are_strokes(gaps: &[usize]) -> bool {
    let is_multiple = |long: usize, short: usize| {
        let strokes = (long as f64 / short as f64).round();
        (long as f64 / short as f64 - strokes).abs() * short as f64 <= 1.0 + 0.1 * long as f64
    };
    let shortest = gaps.iter().copied().min().unwrap_or(1);
    gaps.iter().all(|&gap| is_multiple(gap, shortest))
        || gaps.windows(2).all(|pair| is_multiple(pair[0].max(pair[1]), pair[0].min(pair[1])))
}

/// Returns the jumps that a second measurement shows again: answers that were late by chance are not late twice.
fn confirmed(
    bench: &mut Bench<'_>,
    jumps: Vec<usize>,
    limit_ms: f64,
    at: impl Fn(f64) -> u64,
) -> Result<Vec<usize>, TargetError> {
    let mut confirmed = Vec::new();
    for index in jumps {
        if way(bench, at(index as f64), at(index as f64 + 1.0), PHASES)? / 1e6 > limit_ms {
            confirmed.push(index);
        }
    }
    Ok(confirmed)
}

/// Returns the offset between `low` and `high` at which the head jumps, by bisection.
fn jump_in(bench: &mut Bench<'_>, mut low: u64, mut high: u64, limit_ms: f64) -> Result<f64, TargetError> {
    let resolution = ((high - low) / 64).max(4 * MIB);
    while high - low > resolution {
        let between = (low + high) / 2 / MIB * MIB;
        if way(bench, low, between, PHASES)? / 1e6 > limit_ms {
            high = between;
        } else {
            low = between;
        }
    }
    Ok((low + high) as f64 / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strokes_are_alike_or_change_little_by_little() {
        for strokes in [&[6, 6, 7], &[6, 12, 6], &[8, 7, 7, 6], &[6, 7, 6, 5]] as [&[usize]; 4] {
            assert!(are_strokes(strokes), "{strokes:?}");
        }
        assert!(!are_strokes(&[20, 31, 20]) && !are_strokes(&[10, 15, 6]));
    }

    #[test]
    fn zones_are_counted_by_lasting_changes() {
        assert_eq!(count_zones(&[200.0, 201.0, 190.0, 190.5, 190.0, 170.0, 170.0]), 3);
        // One late answer makes no zone.
        assert_eq!(count_zones(&[200.0, 150.0, 200.0, 200.0]), 1);
    }
}
