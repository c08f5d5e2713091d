//! Tests 6, 7 and 8: raw size of the cache, entries of its map, bytes it takes. Writes go on until their rate collapses:
//! small ones one by one fill the raw space, small ones at depth the map, large ones at depth the payload (Aghayev 2015
//! §4.6). A drive that cleans when idle is left alone between them until it has cleaned all; on one that does not, only
//! the first can be run, and it gives all three, for such a cache is mapped by blocks.

use super::{only_for_cached, Bench, Experiment, BLOCK_BYTES};
use crate::target::{Operation, TargetError};
use crate::verdict::{Confidence, Series, Value};

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "cache-size",
    question: "how much does the cache take?",
    source: "Aghayev 2015 tests 6, 7, 8",
    writes: true,
    tells: &["cache_writes_4k_depth_1", "map_entries", "cache_bytes"],
    about_s: 20000,
    is_idle: only_for_cached,
    run,
};

/// Operations of a window in which the rate is looked at.
const WINDOW: usize = 64;
/// The rate has collapsed when a window takes so many times what one took before.
const COLLAPSE: f64 = 6.0;
/// Collapsed windows in a row that count.
const WINDOWS: usize = 3;
/// What a real drive is given at most.
const OPERATIONS_MAX: u64 = 50_000_000;

/// Operations until the rate collapsed, if it did.
fn fill(bench: &mut Bench<'_>, name: &'static str, bytes: u64, depth: usize) -> Result<Option<u64>, TargetError> {
    let blocks = bench.target.size_bytes() / bytes;
    let mut random = bench.random.clone();
    let mut next = || {
        use rand_core::RngCore;
        let block = ((u128::from(random.next_u64()) * u128::from(blocks)) >> 64) as u64;
        Some(Operation::write(block * bytes, bytes))
    };
    let (mut count, mut begin_ns, mut usual_ns, mut slow) = (0u64, None, 0.0, 0);
    let mut collapsed = None;
    let mut points = Vec::new();
    bench.target.perform(depth, &mut next, &mut |timed| {
        if collapsed.is_some() {
            return false;
        }
        count += 1;
        let begin = *begin_ns.get_or_insert(timed.begin_ns);
        if count.is_multiple_of(WINDOW as u64) {
            let took = (timed.end_ns - begin) as f64;
            begin_ns = Some(timed.end_ns);
            // What is usual is learned from the first windows, and follows slowly.
            if usual_ns == 0.0 || count <= 8 * WINDOW as u64 {
                usual_ns = if usual_ns == 0.0 { took } else { usual_ns.min(took) };
            } else if took > usual_ns * COLLAPSE {
                slow += 1;
            } else {
                slow = 0;
                usual_ns += (took - usual_ns) / 64.0;
            }
            if points.len() < 4096 || slow > 0 {
                points.push((count as f64, WINDOW as f64 * 1e9 / took.max(1.0)));
            }
            if slow == WINDOWS {
                collapsed = Some(count - (WINDOWS * WINDOW) as u64);
            }
        }
        collapsed.is_none() && count < OPERATIONS_MAX
    })?;
    bench.random = random;
    bench.verdict.series.push(Series { name, x: "operation", y: "operations_per_second", points });
    Ok(collapsed)
}

/// Leaves the drive alone until it has cleaned all there is.
fn drain(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    bench.target.sleep(48 * 3_600_000_000_000)
}

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let cleans_when_idle = bench.verdict.word("cleaning") != Some("lazy");
    if cleans_when_idle {
        drain(bench)?;
    }
    let small = fill(bench, "small writes one by one", BLOCK_BYTES, 1)?;
    conclude(bench, "cache_writes_4k_depth_1", small, "writes", "small writes one by one");
    if !cleans_when_idle {
        let bytes = small.map(|count| count * BLOCK_BYTES);
        conclude(bench, "cache_bytes", bytes, "B", "small writes one by one");
        return Ok(());
    }
    drain(bench)?;
    let deep = fill(bench, "small writes at depth", BLOCK_BYTES, 31)?;
    conclude(bench, "map_entries", deep, "entries", "small writes at depth");
    drain(bench)?;
    let large = fill(bench, "large writes at depth", 64 * BLOCK_BYTES, 31)?;
    conclude(bench, "cache_bytes", large.map(|count| count * 64 * BLOCK_BYTES), "B", "large writes at depth");
    Ok(())
}

fn conclude(bench: &mut Bench<'_>, name: &'static str, found: Option<u64>, unit: &'static str, series: &'static str) {
    match found {
        Some(number) => {
            let because = "then the rate collapsed".to_string();
            bench.verdict.conclude(name, Value::Number(number as f64), unit, Confidence::High, because, &[series]);
        }
        None => {
            let because = "the rate never collapsed".to_string();
            bench.verdict.conclude(name, Value::CannotTell, unit, Confidence::Low, because, &[series]);
        }
    }
}
