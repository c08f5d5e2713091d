//! Test 2: where is the cache? Of a run every other block is written, and lies in the cache; reading it makes the head go
//! there and back (Aghayev 2015 §4.4). Read in random order the waits for the platter are spread over a rotation, and the
//! shortest reads that change between cache and place tell how far the head goes; read in order, as the paper does, they
//! are rounded to whole rotations.

use super::{only_for_cached, Experiment};
use crate::bench::{Bench, BLOCK_BYTES, DEPTH};
use crate::statistics::quantile;
use crate::target::TargetError;
use crate::verdict::{Confidence, Value, Verdict};

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "cache-place",
    question: "where is the cache?",
    source: "Aghayev 2015 test 2",
    writes: true,
    needs: &["rotation", "type"],
    tells: &["cache_place"],
    about_s: 90,
    is_idle,
    run,
};

fn is_idle(verdict: &Verdict) -> Option<&'static str> {
    only_for_cached(verdict).or((verdict.word("cache_medium") == Some("flash")).then_some("the cache is flash"))
}

/// Blocks of a run, every other of which is written.
const RUN: u64 = 256;
/// How often the run is read.
const PASSES: usize = 3;
/// The share of the changes that are the shortest: those that just caught the platter.
const SHORTEST: f64 = 0.05;
/// Times that differ by less than this share of a rotation are alike.
const ALIKE: f64 = 0.035;

/// Where the runs are read, as shares of the drive, and the names of their series.
const PLACES: [(f64, &str); 7] = [
    (0.002, "fragmented read at 0 %"),
    (0.17, "fragmented read at 17 %"),
    (0.33, "fragmented read at 33 %"),
    (0.5, "fragmented read at 50 %"),
    (0.67, "fragmented read at 67 %"),
    (0.83, "fragmented read at 83 %"),
    (0.995, "fragmented read at 100 %"),
];

/// The shortest time from cache to place or back, for a run at `offset`, nanoseconds.
fn way(bench: &mut Bench<'_>, name: &'static str, offset: u64) -> Result<u64, TargetError> {
    let mut written: Vec<u64> = (0..RUN).step_by(2).map(|index| offset + index * BLOCK_BYTES).collect();
    bench.shuffle(&mut written);
    bench.write_blocks(DEPTH, &written)?;
    let mut order = Vec::new();
    for _ in 0..PASSES {
        let mut pass: Vec<u64> = (0..RUN).collect();
        bench.shuffle(&mut pass);
        order.extend(pass);
    }
    let offsets: Vec<u64> = order.iter().map(|index| offset + index * BLOCK_BYTES).collect();
    let timed = bench.read_blocks(&offsets)?;
    bench.keep(name, &timed);
    let changes = order.windows(2).zip(timed.windows(2)).filter(|(pair, _)| pair[0] % 2 != pair[1] % 2);
    let times: Vec<u64> = changes.map(|(_, timed)| timed[1].end_ns - timed[0].end_ns).collect();
    Ok(quantile(&times, SHORTEST))
}

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let mut ways = [0.0; PLACES.len()];
    for (way_ms, (share, name)) in ways.iter_mut().zip(PLACES) {
        let offset = bench.at_share(share);
        *way_ms = way(bench, name, offset)? as f64 / 1e6;
    }
    let alike = ALIKE.max(bench.tolerance / 2.0) * bench.rotation_ns() / 1e6;
    let evidence = PLACES.map(|(_, name)| name);
    let because = format!("the head takes {ways:.2?} ms to the cache and back, from low to high addresses");
    let (value, confidence) = match place_of(&ways, alike) {
        Some(place) => (Value::Word(place), Confidence::High),
        None => (Value::CannotTell, Confidence::Low),
    };
    bench.verdict.conclude("cache_place", value, "", confidence, because, &evidence);
    Ok(())
}

/// A single cache is the farther the longer the way: going from low to high addresses it falls until the cache is
/// reached, and rises from there, by more at the ends than one measurement differs from another. Ways that all are short,
/// or go up and down, are those to several caches.
fn place_of(ways: &[f64], alike: f64) -> Option<&'static str> {
    let nearest = ways.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(index, _)| index);
    let range = ways.iter().copied().fold(0.0, f64::max) - ways[nearest];
    // Horizontal zones make the way to neighbouring addresses differ by a stroke.
    let slack = alike.max(0.25 * range);
    let falls = ways[..=nearest].windows(2).all(|pair| pair[1] < pair[0] + slack);
    let rises = ways[nearest..].windows(2).all(|pair| pair[1] > pair[0] - slack);
    let last = ways.len() - 1;
    let is_far = |index: usize| ways[index] - ways[nearest] > 0.35 * range;
    if range < 3.0 * alike {
        return Some("several");
    }
    match (falls && rises, is_far(0), is_far(last), nearest) {
        (true, false, true, index) if index <= 1 => Some("od"),
        (true, true, false, index) if index + 1 >= last => Some("id"),
        (true, true, true, index) if index >= 2 && index + 2 <= last => Some("md"),
        (false, ..) => Some("several"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_place_tells_where_the_cache_is() {
        for (ways, place) in [
            ([1.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0], Some("od")),
            ([14.0, 12.0, 10.0, 8.0, 6.0, 4.0, 1.0], Some("id")),
            ([9.0, 7.0, 4.0, 1.5, 2.0, 5.0, 9.0], Some("md")),
            ([1.0, 1.1, 1.0, 1.2, 1.05, 1.0, 1.1], Some("several")),
            ([2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0], Some("several")),
        ] {
            assert_eq!(place_of(&ways, 0.3), place, "{ways:?}");
        }
    }
}
