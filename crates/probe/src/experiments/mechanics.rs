//! How long are tracks, how far apart do they begin, and how long does the arm take? From the phases at which blocks come
//! by: blocks a fixed distance apart come by as much later as the track is short, and a good deal later where a track ends.
//! Of a far block, read at many phases, the shortest wait is the way there.

use super::experiment::{Experiment, only_for_rotating};
use crate::bench::{BLOCK_BYTES, Bench, DEPTH, MIB};
use crate::statistics::{around, median, middle};
use crate::target::{Operation, TargetError, latencies};
use crate::verdict::{Confidence, Value};

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "mechanics",
    question: "how long are tracks, and how long does the arm take?",
    source: "our own",
    writes: false,
    needs: &["rotation"],
    tells: &[
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
    is_idle: only_for_rotating,
    yields_to: |_| None,
    run,
};

/// Blocks read for the length of a track, and how far apart.
const STEPS: u64 = 160;
const STEP_BYTES: u64 = 64 << 10;
/// Of blocks farther apart, for measurements that vary: so many steps.
const LONG_STEPS: usize = 8;
/// Phases at which a seek is tried.
const PHASES: u64 = 96;
/// Seeks tried, each so many times as far as the one before.
const FARTHER: f64 = 1.6;

/// Reads at depth.
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
            let because = "blocks a fixed distance apart come by at no fixed distance in time".to_string();
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

/// A track.
pub(super) struct Track {
    /// What it holds.
    pub(super) bytes: f64,
    /// How much later the next one begins, if that shows.
    pub(super) skew_ns: Option<f64>,
}

/// The track at `offset`.
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
    // A track holds between 64 KiB and 16 MiB.
    if step < 0.003 * rotation || step > rotation {
        return Ok(None);
    }
    let bytes = STEP_BYTES as f64 * rotation / step;
    let tolerance = (bench.tolerance * rotation).max(0.004 * rotation);
    let off: Vec<f64> = (phases.iter())
        .map(|&phase| around(phase - step as i64, rotation as i64) as f64)
        .filter(|off| *off > tolerance)
        .collect();
    // As many steps are off as tracks end among them; otherwise something else is.
    let ends = STEPS as f64 * STEP_BYTES as f64 / bytes;
    let shows = bench.repeats == 1 && (0.5..1.6).contains(&((off.len() as f64 + 0.5) / (ends + 0.5)));
    let skew_ns = shows.then(|| if off.is_empty() { 0.0 } else { off.iter().sum::<f64>() / off.len() as f64 });
    Ok(Some(Track { bytes, skew_ns }))
}

/// The phase of a step from blocks several steps apart, whose phase a vague `step` tells to the rotation.
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

/// What a track holds at `offset`, about: between the places where it was measured.
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

/// The shortest way from one place to another, nanoseconds: a block at `from` is read, then one near `to`, at phases spread
/// over a rotation. They are spread twice, from different places, because the skew where a track ends hides some.
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
    // The shortest of evenly spread waits is half a step above none; where measurements vary, one of the shortest.
    let rank = if bench.repeats > 1 { ways.len() / 16 } else { 0 };
    Ok((ways[rank] as f64 - bench.rotation_ns() * (rank as f64 + 0.5) / phases as f64).max(0.0))
}

/// How much faster scattered reads are done many at once: a drive that chooses among those that wait saves a good part of the
/// ways, and one that takes them in turn nothing.
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

/// Ways from the beginning of the drive to farther and farther places.
fn seeks(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let from = bench.at_share(0.0005);
    let track = bench.verdict.number("track_bytes_od").unwrap_or(1e6);
    let end = bench.last_offset(8 * MIB);
    // A block at the end of its track has no near ones after it.
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
