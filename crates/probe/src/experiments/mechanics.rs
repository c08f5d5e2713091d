//! Measures the length of tracks, their skew, and seek times, from the phases at which blocks pass the head. Blocks at
//! a fixed distance pass later by a fixed time, which is longer on shorter tracks; where a track ends, the skew adds to
//! it. The seek time to a distant track is the shortest of many reads at different phases.

use super::experiment::{Experiment, only_for_rotating};
use crate::bench::{BLOCK_BYTES, Bench, DEPTH, MIB};
use crate::statistics::{around, median, middle};
use crate::target::{Operation, TargetError, latencies};
use crate::verdict::{Confidence, Value};

/// The experiment's entry in the registry.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "mechanics",
    question: "how long are tracks, and how long does the arm take?",
    source: "our own",
    writes: false,
    needs: &["rotation"],
    properties: &[
        "track_bytes_od",
        "track_bytes_md",
        "track_bytes_id",
        "track_skew_od",
        "track_skew_md",
        "track_skew_id",
        "overhead",
        "full_seek",
        "queue_gain",
    ],
    about_s: 40,
    skip_reason: only_for_rotating,
    run_after: |_| None,
    run,
};

/// Number of blocks read to measure a track; they are `STEP_BYTES` apart.
const STEPS: u64 = 160;
const STEP_BYTES: u64 = 64 << 10;
/// Number of steps between the blocks that are compared if measurements vary.
const LONG_STEPS: usize = 8;
/// Number of phases at which a seek is tried.
const PHASES: u64 = 96;
/// Factor from the distance of one seek to that of the next.
const FARTHER: f64 = 1.6;

/// Number of reads at depth.
const QUEUED: usize = 248;

const TRACK: &str = "phase by distance";
const SEEKS: &str = "shortest way by distance";

const TRACKS: [(f64, &str, &str); 3] = [
    (0.001, "track_bytes_od", "track_skew_od"),
    (0.5, "track_bytes_md", "track_skew_md"),
    (0.996, "track_bytes_id", "track_skew_id"),
];

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    for (share, bytes_name, skew_name) in TRACKS {
        let offset = bench.at_share(share).min(bench.last_offset((STEPS + 1) * STEP_BYTES));
        let Some(track) = track(bench, offset)? else {
            let because = "blocks a fixed distance apart do not pass the head at fixed intervals".to_string();
            bench.verdict.conclude(bytes_name, Value::CannotTell, "B", Confidence::Low, because, &[TRACK]);
            continue;
        };
        let because = format!("64 KiB pass in {:.3} ms", STEP_BYTES as f64 / track.bytes * bench.rotation_ns() / 1e6);
        bench.verdict.conclude(bytes_name, Value::Number(track.bytes), "B", Confidence::High, because, &[TRACK]);
        if let Some(skew) = track.skew_ns {
            let because = "the next track begins so much later".to_string();
            let value = Value::Number(skew / 1e6);
            bench.verdict.conclude(skew_name, value, "ms", Confidence::Medium, because, &[TRACK]);
        }
    }
    seeks(bench)?;
    queue(bench)
}

/// Measurements of a track.
pub(super) struct Track {
    /// Capacity of the track, bytes.
    pub(super) bytes: f64,
    /// Skew: how much later the next track begins, nanoseconds, if it can be seen.
    pub(super) skew_ns: Option<f64>,
}

/// Measures the track at `offset`; returns nothing if blocks pass at no fixed distance in time.
pub(super) fn track(bench: &mut Bench<'_>, offset: u64) -> Result<Option<Track>, TargetError> {
    let rotation = bench.rotation_ns();
    let offsets: Vec<u64> = (0..STEPS).map(|index| offset + index * STEP_BYTES).collect();
    let timed = bench.read_blocks(&offsets)?;
    let phases: Vec<i64> = timed.windows(2).map(|pair| (pair[1].end_ns - pair[0].end_ns) as i64).collect();
    let phases: Vec<i64> = phases.iter().map(|phase| phase.rem_euclid(rotation as i64)).collect();
    let points = phases.iter().enumerate().map(|(index, &phase)| (index as f64, phase as f64 / 1e6)).collect();
    bench.keep_points(TRACK, "step", "phase_ms", points);
    let steps: Vec<u64> = phases.iter().map(|&phase| phase as u64).collect();
    let mut step = median(&steps) as f64;
    if bench.repeats > 1 {
        step = exact_step(&timed, rotation, step);
    }
    // A track holds between 64 KiB and about 20 MiB.
    if step < 0.003 * rotation || step > rotation {
        return Ok(None);
    }
    let bytes = STEP_BYTES as f64 * rotation / step;
    let tolerance = (bench.tolerance * rotation).max(0.004 * rotation);
    let off: Vec<f64> = (phases.iter())
        .map(|&phase| around(phase - step as i64, rotation as i64) as f64)
        .filter(|off| *off > tolerance)
        .collect();
    // As many steps are late as tracks end among them; otherwise something else delays them.
    let ends = STEPS as f64 * STEP_BYTES as f64 / bytes;
    let shows = bench.repeats == 1 && (0.5..1.6).contains(&((off.len() as f64 + 0.5) / (ends + 0.5)));
    let skew_ns = shows.then(|| if off.is_empty() { 0.0 } else { off.iter().sum::<f64>() / off.len() as f64 });
    Ok(Some(Track { bytes, skew_ns }))
}

/// Returns the phase of a step, from blocks several steps apart; the inexact `step` tells the whole rotations between
/// them.
fn exact_step(timed: &[crate::Timed], rotation: f64, step: f64) -> f64 {
    let long: Vec<f64> = timed
        .windows(LONG_STEPS + 1)
        .map(|window| {
            let phase = (window[LONG_STEPS].end_ns - window[0].end_ns) as f64;
            let expected = step * LONG_STEPS as f64;
            expected + around((phase - expected) as i64, rotation as i64) as f64
        })
        .collect();
    middle(&long) / LONG_STEPS as f64
}

/// Returns the capacity of a track at `offset`, bytes: interpolated between the places where it was measured.
fn track_bytes_at(bench: &Bench<'_>, offset: u64) -> f64 {
    let known = TRACKS.map(|(share, name, _)| bench.verdict.number(name).map(|bytes| (share, bytes)));
    let known: Vec<(f64, f64)> = known.into_iter().flatten().collect();
    let share = offset as f64 / bench.target.size_bytes() as f64;
    let within = known.windows(2).find(|pair| share <= pair[1].0).or(known.windows(2).last());
    match (within, known.first()) {
        (Some(pair), _) => {
            let part = ((share - pair[0].0) / (pair[1].0 - pair[0].0)).clamp(0.0, 1.0);
            pair[0].1 + part * (pair[1].1 - pair[0].1)
        }
        (None, Some(&(_, bytes))) => bytes,
        (None, None) => 1e6,
    }
}

/// Returns the shortest time from one place to another, nanoseconds. A block at `from` is read, then one near `to`, at
/// phases spread evenly over a rotation. The phases are spread twice, from different places, because the skew at the
/// end of a track hides some.
pub(super) fn way(bench: &mut Bench<'_>, from: u64, to: u64, phases: u64) -> Result<f64, TargetError> {
    let track = track_bytes_at(bench, to);
    let half = phases / 2;
    let step = track / half as f64;
    let read = |offset| Operation::read(offset, BLOCK_BYTES);
    let place = |index: u64| {
        let part = (index % half) as f64 * step + if index < half { 0.0 } else { 1.5 * track + step / 2.0 };
        to + part as u64 / BLOCK_BYTES * BLOCK_BYTES
    };
    let reads: Vec<_> = (0..phases).flat_map(|index| [read(from), read(place(index))]).collect();
    let timed = bench.one_by_one(&reads)?;
    let mut ways: Vec<u64> = timed.chunks(2).map(|pair| pair[1].end_ns.saturating_sub(pair[0].end_ns)).collect();
    ways.sort_unstable();
    // The shortest of evenly spread waits is half a step on average. Where measurements vary, one of the shortest is
    // used.
    let rank = if bench.repeats > 1 { ways.len() / 16 } else { 0 };
    Ok((ways[rank] as f64 - bench.rotation_ns() * (rank as f64 + 0.5) / phases as f64).max(0.0))
}

/// Measures how much faster scattered reads are at depth. A drive that reorders its queue saves a good part of the
/// seeks; one that serves it in order saves nothing.
fn queue(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let mut took = [0.0; 2];
    for (took, depth) in took.iter_mut().zip([1, DEPTH]) {
        let (from, span) = (bench.at_share(0.3), bench.target.size_bytes() / 4);
        let offsets = bench.scattered(from, span, QUEUED);
        let reads: Vec<_> = offsets.iter().map(|&offset| Operation::read(offset, BLOCK_BYTES)).collect();
        let begun = bench.target.now_ns();
        latencies(bench.target, depth, &reads)?;
        *took = (bench.target.now_ns() - begun) as f64;
    }
    let gain = took[0] / took[1].max(1.0);
    let because = format!("{QUEUED} scattered reads one by one, and {DEPTH} at once");
    bench.verdict.conclude("queue_gain", Value::Number(gain), "times", Confidence::Medium, because, &[]);
    Ok(())
}

/// Measures the seek times from the beginning of the drive to ever more distant places.
fn seeks(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let from = bench.at_share(0.0005);
    let track = bench.verdict.number("track_bytes_od").unwrap_or(1e6);
    let end = bench.last_offset(8 * MIB);
    // A block at the end of a track has no near successor, so the shortest of three is used.
    let mut near = f64::MAX;
    for blocks in [0, 40, 80] {
        let place = from + blocks * BLOCK_BYTES;
        near = near.min(way(bench, place, place + BLOCK_BYTES, PHASES)?);
    }
    let (mut points, mut distance) = (vec![(0.0, near / 1e6)], 2.0 * track);
    loop {
        let is_last = from + distance as u64 >= end;
        let to = if is_last { end } else { from + distance as u64 / MIB * MIB };
        let way = way(bench, from, to, PHASES)?;
        points.push(((to - from) as f64, way / 1e6));
        if is_last {
            break;
        }
        distance *= FARTHER;
    }
    let (longest, whole) = points.last().map_or((0.0, 0.0), |point| (point.1, point.0));
    bench.keep_points(SEEKS, "distance_bytes", "way_ms", points);
    let because = "the shortest of reads of one track, at all phases".to_string();
    bench.verdict.conclude("overhead", Value::Number(near / 1e6), "ms", Confidence::Medium, because, &[SEEKS]);
    let because = format!("the shortest way over {:.0} GB", whole / 1e9);
    let value = Value::Number((longest - near / 1e6).max(0.0));
    bench.verdict.conclude("full_seek", value, "ms", Confidence::Medium, because, &[SEEKS]);
    Ok(())
}
