//! Tests 6, 7 and 8: raw size of the cache, entries of its map, and bytes of data that it holds. Small writes at depth
//! 1 fill the raw space, small ones at a high depth the map, large ones at a high depth the payload (Aghayev 2015
//! §4.6). The limit that ended each test follows from all three: equal numbers of writes in two tests mean that the map
//! was full; equal numbers of packets mean that the raw space was full. A limit that ended no test is larger than the
//! value reached.
//!
//! A single cache of a drive that cleans when idle is filled from few bands, so that it is soon clean again; any other
//! from the whole drive. A cache that is never cleaned when idle can be filled only once; that gives all three values,
//! because such a cache is mapped by blocks.

use super::experiment::{Experiment, only_for_cached};
use super::filling::{Filled, Spread, fill};
use super::mechanics::track;
use crate::bench::{BLOCK_BYTES, Bench, DEPTH, MIB};
use crate::statistics::{is_near, median, mode, quantile};
use crate::target::{Operation, TargetError, latencies};
use crate::verdict::{Confidence, Value, Verdict};
use crate::words;

/// The experiment's entry in the registry.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "cache-size",
    question: "how much does the cache take?",
    source: "Aghayev 2015 tests 6, 7, 8",
    writes: true,
    needs: &["rotation", "mechanics", "type", "cache-place", "cleaning"],
    properties: &[
        "cache_writes_4k_depth_1",
        "cache_raw_bytes",
        "map_entries",
        "cache_bytes",
        "cache_parts",
        "map_merge_every",
        "map_merge_time",
    ],
    about_s: 8000,
    skip_reason: is_idle,
    run_after: yields_to,
    run,
};

fn is_idle(verdict: &Verdict) -> Option<&'static str> {
    let is_known = verdict.word("cleaning").is_some();
    only_for_cached(verdict).or((!is_known).then_some("whether it cleans when idle is not known"))
}

/// Returns the name of the test of the band size, to be run first, if the drive cleans when idle: that test needs a
/// clean cache, and a cache filled from all over the drive takes hours to clean.
fn yields_to(verdict: &Verdict) -> Option<&'static str> {
    matches!(verdict.word("cleaning"), Some("aggressive" | "late")).then_some("band-size")
}

/// Size of a large write, bytes.
const LARGE_BYTES: u64 = 64 * BLOCK_BYTES;
/// Relative difference below which two counts have the same limit.
const ALIKE: f64 = 0.04;
/// Time of a write, in rotations, above which it is a packet of its own: it holds records beside the data.
const PACKED_ROTATIONS: f64 = 1.3;
/// Numbers of writes that are answered together if they are a packet: not more than are in flight. Without packets, all
/// writes to a track may be answered one shortly after the other, or two before and after a late one.
const PACKET_WRITES: std::ops::RangeInclusive<usize> = 4..=DEPTH;
/// Most bands that must be cleaned after a region was written.
const BANDS: u64 = 400;

const SMALL: &str = "small writes one by one";
const DEEP: &str = "small writes at depth";
const LARGE: &str = "large writes at depth";

/// Returns the spread of the writes, and whether the drive can be emptied between the tests.
fn manner(bench: &Bench<'_>) -> (Spread, bool) {
    let is_single = matches!(bench.verdict.word("cache_place"), Some("od" | "md" | "id"));
    match (bench.can_wait_for_cleaning(), is_single) {
        (true, true) => (Spread::Region, true),
        (true, false) => (Spread::Whole, true),
        (false, _) => (Spread::Whole, false),
    }
}

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let (spread, empties) = manner(bench);
    bench.drain(BANDS)?;
    let small = filled(bench, SMALL, spread, BLOCK_BYTES, 1)?;
    if !empties || spread == Spread::Whole {
        return conclude_by_blocks(bench, small);
    }
    note_merges(bench, &small);
    bench.drain(BANDS)?;
    let deep = filled(bench, DEEP, spread, BLOCK_BYTES, DEPTH)?;
    bench.drain(BANDS)?;
    let large = filled(bench, LARGE, spread, LARGE_BYTES, DEPTH)?;
    bench.drain(BANDS)?;
    // If the times of cached blocks do not show the length of the cache's tracks, the tracks of the addresses nearest
    // to the cache do.
    let near = bench.verdict.number("cache_near").unwrap_or(0.0) as u64;
    let near = near.min(bench.last_offset(16 * MIB));
    let track = match cache_track(bench)? {
        Some(bytes) => Some(bytes),
        None => track(bench, near)?.map(|track| track.bytes),
    };
    conclude(bench, &small, &deep, &large, track);
    Ok(())
}

fn filled(
    bench: &mut Bench<'_>,
    name: &'static str,
    spread: Spread,
    bytes: u64,
    depth: usize,
) -> Result<Filled, TargetError> {
    let filled = fill(bench, spread, bytes, depth)?;
    let points = filled.latencies.iter().enumerate().map(|(index, &ns)| (index as f64, ns as f64 / 1e6)).collect();
    bench.keep_points(name, "operation", "latency_ms", points);
    Ok(filled)
}

/// Returns the capacity of a track of the cache, bytes: blocks that are written together lie side by side in the cache,
/// and pass the head one after the other.
fn cache_track(bench: &mut Bench<'_>) -> Result<Option<f64>, TargetError> {
    const BYTES: u64 = 6 * BLOCK_BYTES;
    let base = bench.at_share(0.4);
    let mut offsets: Vec<u64> = (0..4 * DEPTH as u64).map(|index| base + 3 * index * BYTES).collect();
    bench.shuffle(&mut offsets);
    let writes: Vec<_> = offsets.iter().map(|&offset| Operation::write(offset, BYTES)).collect();
    latencies(bench.target, DEPTH, &writes)?;
    // If single times vary, they are measured several times, and over longer distances.
    let (passes, apart) = if bench.repeats > 1 { (9, 4) } else { (1, 1) };
    let rotation = bench.rotation_ns() as u64;
    let mut phases = vec![Vec::new(); offsets.len() - apart];
    for _ in 0..passes {
        let timed = bench.read_blocks(&offsets)?;
        for (phases, ends) in phases.iter_mut().zip(timed.windows(apart + 1)) {
            phases.push((ends[apart].end_ns - ends[0].end_ns) % rotation);
        }
    }
    bench.drain(16)?;
    let phases: Vec<u64> = phases.iter().map(|phases| median(phases)).collect();
    let step = mode(&phases, 0.02 + 3.0 * bench.tolerance);
    Ok((step.share > 0.5).then(|| (BYTES * apart as u64) as f64 * rotation as f64 / step.center as f64))
}

fn count_of(
    bench: &mut Bench<'_>,
    name: &'static str,
    unit: &'static str,
    filled: &Filled,
    series: &'static str,
) -> Option<f64> {
    if filled.count.is_none() {
        let because = "no write waited for cleaning".to_string();
        bench.verdict.conclude(name, Value::CannotTell, unit, Confidence::Low, because, &[series]);
    }
    filled.count.map(|count| count as f64)
}

/// Concludes from one number of writes, which stands for all three sizes.
fn conclude_by_blocks(bench: &mut Bench<'_>, small: Filled) -> Result<(), TargetError> {
    let Some(count) = count_of(bench, "cache_bytes", "B", &small, SMALL) else { return Ok(()) };
    let because = format!(
        "then a write waited {:.1} s for cleaning",
        small.stalls.last().map_or(0.0, |stall| stall.1 as f64 / 1e9)
    );
    let sure = if small.is_spread { Confidence::Medium } else { Confidence::High };
    bench.verdict.conclude("cache_writes_4k_depth_1", Value::Number(count), "writes", sure, because.clone(), &[SMALL]);
    conclude_parts(bench, &small);
    let bytes = Value::Number(count * BLOCK_BYTES as f64);
    let rotations = bench.verdict.number("write_latency").unwrap_or(0.0) * 1e6 / bench.rotation_ns();
    if rotations > PACKED_ROTATIONS {
        // Packets of larger writes, or of several, hold more.
        bench.verdict.conclude("cache_bytes", bytes, "B", Confidence::Medium, because, &[SMALL]);
        bench.verdict.set_bound("cache_bytes", true);
    } else {
        bench.verdict.conclude("cache_bytes", bytes, "B", sure, because, &[SMALL]);
    }
    // After the test, the full cache has been cleaned and is empty, or cleans itself; a drive that cleans when idle is
    // given the time.
    bench.drain(BANDS)
}

/// Concludes the number of parts that fill up at one time: one stall for each, unless stalls continued all the time.
fn conclude_parts(bench: &mut Bench<'_>, small: &Filled) {
    let (parts, sure, told) = if small.is_spread {
        let told = "writes waited now and again all the time, not at one".to_string();
        (Value::CannotTell, Confidence::Low, told)
    } else {
        let told = format!("{} writes waited at about that time", small.parts);
        (Value::Number(small.parts.max(1) as f64), Confidence::Medium, told)
    };
    bench.verdict.conclude("cache_parts", parts, "parts", sure, told, &[SMALL]);
}

/// Looks for merges of the map: stalls of equal length, at even distances.
fn note_merges(bench: &mut Bench<'_>, small: &Filled) {
    let usual = median(&small.latencies) as f64;
    let full = small.count.unwrap_or(u64::MAX) as usize;
    let long: Vec<(usize, u64)> = (small.latencies.iter().copied().enumerate().skip(1))
        .take(full.saturating_sub(2))
        .filter(|(_, latency)| *latency as f64 > usual + 2.5 * bench.rotation_ns())
        .collect();
    let (period, cost) = match comb(&long) {
        Some(found) => found,
        None => return,
    };
    let because = format!("every {period}th write takes {:.0} ms", cost as f64 / 1e6);
    let sure = Confidence::High;
    let period = Value::Number(period as f64);
    bench.verdict.conclude("map_merge_every", period, "packets", sure, because.clone(), &[SMALL]);
    bench.verdict.conclude("map_merge_time", Value::Number(cost as f64 / 1e6), "ms", sure, because, &[SMALL]);
}

/// Returns the number of writes between stalls of one kind, and the duration of the stalls, nanoseconds.
fn comb(long: &[(usize, u64)]) -> Option<(usize, u64)> {
    let latencies: Vec<u64> = long.iter().map(|(_, latency)| *latency).collect();
    let kind = (!latencies.is_empty()).then(|| mode(&latencies, 0.2))?;
    let alike: Vec<usize> = (long.iter())
        .filter(|(_, latency)| is_near(*latency as f64, kind.center as f64, 0.15))
        .map(|(index, _)| *index)
        .collect();
    let gaps: Vec<u64> = alike.windows(2).map(|pair| (pair[1] - pair[0]) as u64).collect();
    if gaps.len() < 2 {
        return None;
    }
    let gap = mode(&gaps, 0.001);
    (gap.share > 0.6).then_some((gap.center as usize, kind.center))
}

/// Concludes lower bounds if every write is a packet of its own at any depth, because the drive receives one write at a
/// time. The largest packets, which fill the map and the payload, never occur then.
fn conclude_lower_bounds(bench: &mut Bench<'_>, singly: Option<f64>, deeply: Option<f64>, largely: Option<f64>) {
    let because = "writes at depth are served one at a time, each in a packet of its own";
    let sure = Confidence::Medium;
    if let Some(count) = singly {
        let value = Value::Number(count);
        let told = "then writes waited for cleaning".to_string();
        bench.verdict.conclude("cache_writes_4k_depth_1", value, "writes", Confidence::High, told, &[SMALL]);
        let value = Value::CannotTell;
        bench.verdict.conclude("cache_raw_bytes", value, "B", Confidence::Low, because.into(), &[SMALL, DEEP]);
    }
    if let Some(count) = deeply {
        let value = Value::Number(count);
        bench.verdict.conclude("map_entries", value, "entries", sure, because.into(), &[DEEP]);
        bench.verdict.set_bound("map_entries", true);
    }
    if let Some(count) = largely {
        let value = Value::Number(count * LARGE_BYTES as f64);
        bench.verdict.conclude("cache_bytes", value, "B", sure, because.into(), &[LARGE]);
        bench.verdict.set_bound("cache_bytes", true);
    }
}

fn conclude(bench: &mut Bench<'_>, small: &Filled, deep: &Filled, large: &Filled, track: Option<f64>) {
    let singly = count_of(bench, "cache_writes_4k_depth_1", "writes", small, SMALL);
    let deeply = count_of(bench, "map_entries", "entries", deep, DEEP);
    let largely = count_of(bench, "cache_bytes", "B", large, LARGE);
    let rotation_ms = bench.rotation_ns() / 1e6;
    let latency_ms = bench.verdict.number("write_latency").unwrap_or(rotation_ms);
    let same =
        |one: Option<f64>, other: Option<f64>| one.zip(other).is_some_and(|(one, other)| is_near(one, other, ALIKE));
    let by_bytes = |count: Option<f64>, bytes: u64| count.map(|count| count * bytes as f64);
    // A packet with one small write takes far more than the write's bytes.
    let is_by_blocks = same(by_bytes(singly, BLOCK_BYTES), by_bytes(largely, LARGE_BYTES));
    // A packet of more than a rotation holds records beside the data; a shorter one shows in writes that are answered
    // together. Writes to one track are answered together without packets, too.
    let is_packed =
        latency_ms > PACKED_ROTATIONS * rotation_ms || PACKET_WRITES.contains(&deep.at_once) && !is_by_blocks;
    if is_packed && deep.at_once <= 1 {
        conclude_lower_bounds(bench, singly, deeply, largely);
        return;
    }
    // The raw space ended the test at depth if the packets are as many as in the first test, or, for a cache mapped by
    // blocks, if the bytes are as many as with large writes.
    let deep_is_raw = if is_packed {
        same(deeply.map(|count| count / deep.at_once.max(1) as f64), singly) && deep.at_once > 1
    } else {
        same(by_bytes(deeply, BLOCK_BYTES), by_bytes(largely, LARGE_BYTES))
    };
    let map_is_known = deeply.is_some() && !deep_is_raw;
    let small_is_map = map_is_known && same(singly, deeply);
    let large_is_map = map_is_known && same(largely, deeply);
    if let Some(count) = singly {
        let because = "then writes waited for cleaning".to_string();
        let value = Value::Number(count);
        bench.verdict.conclude("cache_writes_4k_depth_1", value, "writes", Confidence::High, because, &[SMALL]);
        if let Some(track) = track.filter(|_| is_packed) {
            // In half tracks, the unit of such caches, and from the shortest writes: a late one misses its place and
            // waits for another rotation.
            let shortest_ms = quantile(&small.latencies, 0.02) as f64 / 1e6;
            let tracks = (shortest_ms / rotation_ms * 2.0).round() / 2.0;
            let because = format!("{} packets, each of {tracks} tracks of {}", words::count(count), words::size(track));
            let value = Value::Number(count * tracks * track);
            // The length of a track follows from small differences between times.
            let sure = if bench.repeats > 1 { Confidence::Medium } else { Confidence::High };
            bench.verdict.conclude("cache_raw_bytes", value, "B", sure, because, &[SMALL]);
            bench.verdict.set_bound("cache_raw_bytes", small_is_map);
        }
    }
    if let Some(count) = deeply {
        let because =
            if deep_is_raw { "then the cache was full, not its map" } else { "then writes waited for cleaning" };
        let value = Value::Number(count);
        bench.verdict.conclude_bound("map_entries", value, "entries", deep_is_raw, because.to_string(), &[DEEP]);
    }
    if let Some(count) = largely {
        let because =
            if large_is_map { "then the map was full, not the cache" } else { "then writes waited for cleaning" };
        let value = Value::Number(count * LARGE_BYTES as f64);
        bench.verdict.conclude_bound("cache_bytes", value, "B", large_is_map, because.to_string(), &[LARGE]);
    }
}
