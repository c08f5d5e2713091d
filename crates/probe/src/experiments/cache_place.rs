//! Test 2: where is the persistent cache? Every second block of a run is written, and lies in the cache; reading the
//! run makes the head go there and back (Aghayev 2015 §4.4). Copies of blocks from both ends of the drive lie side by
//! side in a single cache, and apart in several. The run is read in random order, so that the rotational waits are
//! spread evenly, and the shortest reads that change between cache and home location show the length of the seek. In
//! order, as in the paper, the times would be rounded to whole rotations.
//!
//! Invariant: a block that is read as a copy lies in the cache. A write that waits for cleaning moves the blocks
//! written before it home. Then all blocks are written again, into a part of the cache that has just been emptied. If
//! that does not help, the place has a lower confidence.

use super::experiment::{Experiment, only_for_cached};
use crate::bench::{BLOCK_BYTES, Bench, DEPTH, MIB};
use crate::statistics::{median, quantile};
use crate::target::{Operation, TargetError, latencies};
use crate::verdict::{Confidence, Value, Verdict};

/// The experiment's entry in the registry.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "cache-place",
    question: "where is the cache?",
    source: "Aghayev 2015 test 2",
    writes: true,
    needs: &["rotation", "mechanics", "type", "cleaning"],
    properties: &["cache_place", "cache_near"],
    about_s: 90,
    skip_reason: is_idle,
    run_after: yields_to,
    run,
};

fn is_idle(verdict: &Verdict) -> Option<&'static str> {
    only_for_cached(verdict)
        .or((verdict.word("cleaning").is_none()).then_some("whether it cleans when idle is not known"))
        .or((verdict.word("cache_medium") == Some("flash")).then_some("the cache is flash"))
}

/// Returns the name of the test of the cache's size, to be run first, if the drive does not clean when idle: blocks
/// that this test leaves in the cache would count there.
fn yields_to(verdict: &Verdict) -> Option<&'static str> {
    let cleans = matches!(verdict.word("cleaning"), Some("aggressive" | "late"));
    (!cleans).then_some("cache-size")
}

/// Number of blocks of a run, and their distance: over a track or two, for rotational waits of all lengths.
const RUN: u64 = 64;
const STRIDE_BYTES: u64 = 12 * BLOCK_BYTES;
/// Number of reads of the run.
const PASSES: usize = 6;
/// Quantile of the times that is taken for the shortest one: reads that just reached their pass.
const SHORTEST: f64 = 0.03;
/// Share of a rotation by which two seek times of one length may differ.
const ALIKE: f64 = 0.035;
/// Number of steps between the two neighbours of the nearest place.
const CLOSER: u64 = 10;
/// Number of places at which a run is read, spread evenly over the drive.
const PLACES: usize = 25;
/// Copies of blocks from both ends of the drive lie in one cache if the seek between them takes less than this share of
/// a seek between the ends; in several caches, if it takes more than the second share.
const ONE: f64 = 0.42;
const SEVERAL: f64 = 0.5;
/// Numbers of pieces written at either end, tried in turn. Many cover all angles; few cover half a track. Few are
/// needed if some of many always wait for cleaning: a log that frees a band at a time has room for few until it stalls
/// again.
const COPIES: [usize; 3] = [40, 20, 10];
/// Number of reads of each end in turn.
const COPIES_PASSES: usize = 120;
const COPY_BYTES: u64 = 12 * BLOCK_BYTES;

/// A write waited for cleaning if no answer came for as long as a stall, and for this many times as long as usual.
const STALL_TIMES: u64 = 3;
/// Most attempts to write all blocks without a write that waits for cleaning.
const WRITES_MAX: usize = 4;

const COPIES_READ: &str = "copies of blocks from either end";
const RUNS: [&str; 3] =
    ["fragmented read, low addresses", "fragmented read, middle", "fragmented read, high addresses"];
const WAYS: &str = "way to the cache by address";

/// Writes `bytes` bytes at each of these offsets until all lie in the cache together; returns whether they do.
fn put_into_cache(bench: &mut Bench<'_>, offsets: &[u64], bytes: u64) -> Result<bool, TargetError> {
    let writes: Vec<_> = offsets.iter().map(|&offset| Operation::write(offset, bytes)).collect();
    for _ in 0..WRITES_MAX {
        let timed = latencies(bench.target, DEPTH, &writes)?;
        let mut ends: Vec<u64> = timed.iter().map(|timed| timed.end_ns).collect();
        ends.sort_unstable();
        let gaps: Vec<u64> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let limit = (bench.stall_ns() as u64).max(STALL_TIMES * median(&gaps));
        if gaps.iter().all(|&gap| gap < limit) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the shortest seek time between the cache and a run at `offset`, milliseconds, and whether the whole run
/// stayed in the cache.
fn way(bench: &mut Bench<'_>, series: Option<&'static str>, offset: u64) -> Result<(f64, bool), TargetError> {
    let mut written: Vec<u64> = (0..RUN).step_by(2).map(|index| offset + index * STRIDE_BYTES).collect();
    bench.shuffle(&mut written);
    let is_cached = put_into_cache(bench, &written, BLOCK_BYTES)?;
    let mut order = Vec::new();
    for _ in 0..PASSES {
        let mut pass: Vec<u64> = (0..RUN).collect();
        bench.shuffle(&mut pass);
        order.extend(pass);
    }
    let offsets: Vec<u64> = order.iter().map(|index| offset + index * STRIDE_BYTES).collect();
    let timed = bench.read_blocks(&offsets)?;
    if let Some(series) = series {
        bench.keep(series, &timed);
    }
    let changes = order.windows(2).zip(timed.windows(2)).filter(|(pair, _)| pair[0] % 2 != pair[1] % 2);
    let times: Vec<u64> = changes.map(|(_, timed)| timed[1].end_ns.saturating_sub(timed[0].end_ns)).collect();
    Ok((quantile(&times, SHORTEST) as f64 / 1e6, is_cached))
}

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let (mut ways, mut points, mut are_cached) = ([0.0; PLACES], Vec::new(), true);
    for (index, way_ms) in ways.iter_mut().enumerate() {
        let share = 0.002 + 0.993 * index as f64 / (PLACES - 1) as f64;
        let series = [0, PLACES / 2, PLACES - 1].iter().position(|&place| place == index).map(|at| RUNS[at]);
        let offset = bench.at_share(share).min(bench.last_offset(RUN * STRIDE_BYTES));
        let (of_run, is_cached) = way(bench, series, offset)?;
        *way_ms = of_run;
        are_cached &= is_cached;
        points.push((offset as f64, *way_ms));
    }
    bench.keep_points(WAYS, "offset_bytes", "way_ms", points.clone());
    let ((copies, is_cached), ends) = (way_between_copies(bench)?, way_between_ends(bench)? / 1e6);
    are_cached &= is_cached;
    let alike = ALIKE.max(bench.tolerance / 2.0) * bench.rotation_ns() / 1e6;
    let because = format!(
        "copies of blocks from either end lie {copies:.2} ms apart, the ends {ends:.2}; the way to the cache is \
         {:.2} ms from low addresses, {:.2} from middle, {:.2} from high ones",
        ways[0],
        ways[PLACES / 2],
        ways[PLACES - 1]
    );
    let (value, confidence) = match place_of(&ways, copies / ends.max(alike)) {
        Some(place) if !are_cached || (place != "several" && !is_nearest_alone(&ways, alike, place)) => {
            (Value::Word(place), Confidence::Medium)
        }
        Some(place) => (Value::Word(place), Confidence::High),
        None => (Value::CannotTell, Confidence::Low),
    };
    let evidence = [WAYS, COPIES_READ, RUNS[0], RUNS[1], RUNS[2]];
    let is_single = !matches!(value, Value::CannotTell | Value::Word("several"));
    bench.verdict.conclude("cache_place", value, "", confidence, because, &evidence);
    if is_single {
        note_nearest(bench, &points)?;
    }
    Ok(())
}

/// Finds the address nearest to the cache, between the neighbours of the nearest of `points`.
fn note_nearest(bench: &mut Bench<'_>, points: &[(f64, f64)]) -> Result<(), TargetError> {
    let by_way = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
    let Some(mut nearest) = points.iter().min_by(by_way).copied() else { return Ok(()) };
    let apart = points[1].0 - points[0].0;
    let (low, high) = (nearest.0 - apart, nearest.0 + apart);
    for step in 1..CLOSER {
        let offset = (low + (high - low) * step as f64 / CLOSER as f64).max(0.0) as u64 / MIB * MIB;
        let offset = offset.min(bench.last_offset(RUN * STRIDE_BYTES));
        let (way_ms, is_cached) = way(bench, None, offset)?;
        if is_cached && way_ms < nearest.1 {
            nearest = (offset as f64, way_ms);
        }
    }
    let because = format!("the way to the cache is the shortest from there, {:.2} ms", nearest.1);
    bench.verdict.conclude("cache_near", Value::Number(nearest.0), "B", Confidence::Medium, because, &[WAYS]);
    Ok(())
}

/// Returns offsets near the low and the high end of the drive.
fn ends(bench: &Bench<'_>) -> [u64; 2] {
    [bench.at_share(0.02), bench.at_share(0.97)]
}

/// Writes blocks from both ends in turn and reads them in random order. Returns the shortest seek time from a copy of
/// one end to a copy of the other, milliseconds, and whether all stayed in the cache.
fn way_between_copies(bench: &mut Bench<'_>) -> Result<(f64, bool), TargetError> {
    let (mut written, mut is_cached) = (Vec::new(), false);
    for count in COPIES {
        let [low, high] = ends(bench).map(|end| (0..count as u64).map(move |index| end + 2 * index * COPY_BYTES));
        written = low.zip(high).flat_map(|(low, high)| [low, high]).collect();
        is_cached = put_into_cache(bench, &written, COPY_BYTES)?;
        if is_cached {
            break;
        }
    }
    let mut offsets = Vec::new();
    for _ in 0..COPIES_PASSES {
        let mut any = || bench.below(written.len() as u64 / 2) as usize;
        offsets.extend([written[2 * any()], written[2 * any() + 1]]);
    }
    let timed = bench.read_blocks(&offsets)?;
    bench.keep(COPIES_READ, &timed);
    let times: Vec<u64> = timed.windows(2).map(|pair| pair[1].end_ns.saturating_sub(pair[0].end_ns)).collect();
    Ok((quantile(&times, SHORTEST) as f64 / 1e6, is_cached))
}

/// Returns the shortest seek time from one end to the other, nanoseconds, measured with blocks that are not near those
/// of `way_between_copies`.
fn way_between_ends(bench: &mut Bench<'_>) -> Result<f64, TargetError> {
    let [low, high] = ends(bench).map(|end| end + 8 * MIB);
    let mut offsets = Vec::new();
    for _ in 0..COPIES_PASSES {
        let (from, to) = (bench.below(512) * BLOCK_BYTES, bench.below(512) * BLOCK_BYTES);
        offsets.extend([low + from, high + to]);
    }
    let timed = bench.read_blocks(&offsets)?;
    let times: Vec<u64> = timed.windows(2).map(|pair| pair[1].end_ns.saturating_sub(pair[0].end_ns)).collect();
    Ok(quantile(&times, SHORTEST) as f64)
}

/// Returns the place of the cache. A single cache has copies from both ends side by side, and lies where the seek to it
/// is shortest.
fn place_of(ways: &[f64], copies_apart: f64) -> Option<&'static str> {
    if copies_apart > SEVERAL {
        return Some("several");
    }
    let nearest = ways.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map(|(index, _)| index)?;
    (copies_apart < ONE).then_some(third(nearest, ways.len()))
}

/// Returns the part of the drive ("od", "md" or "id") in which place number `index` of `places` lies.
fn third(index: usize, places: usize) -> &'static str {
    match index as f64 / (places - 1) as f64 {
        share if share < 0.27 => "od",
        share if share > 0.69 => "id",
        _ => "md",
    }
}

/// Returns whether the seek to the cache is shortest only from `place`. If it is as short from all over the drive, as
/// with small cache regions of which few were met, the shortest one is chance.
fn is_nearest_alone(ways: &[f64], alike: f64, place: &str) -> bool {
    let least = ways.iter().copied().fold(f64::INFINITY, f64::min);
    let mut near = (0..ways.len()).filter(|&index| ways[index] <= least + alike);
    near.all(|index| third(index, ways.len()) == place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_way_tells_where_a_single_cache_is() {
        for (ways, apart, place) in [
            ([1.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0], 0.1, Some("od")),
            ([14.0, 12.0, 10.0, 8.0, 6.0, 4.0, 1.0], 0.2, Some("id")),
            ([9.0, 7.0, 6.0, 1.5, 4.0, 7.0, 9.0], 0.1, Some("md")),
            ([1.0, 1.1, 1.0, 1.2, 1.05, 1.0, 1.1], 0.9, Some("several")),
            ([1.0, 1.1, 1.0, 1.2, 1.05, 1.0, 1.1], 0.46, None),
        ] {
            assert_eq!(place_of(&ways, apart), place, "{ways:?}");
        }
    }
}
