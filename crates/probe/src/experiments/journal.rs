//! Measures the sizes of journal entries (Aghayev 2015 §4.3.1). Writes at depth are answered packet by packet, and the
//! time of a packet grows with the size of the writes in steps. A step is the quantum. The time of the shortest packet,
//! minus the quanta of its payload, is out-of-band data.

use super::experiment::{Experiment, only_for_cached};
use crate::bench::{BLOCK_BYTES, Bench, DEPTH};
use crate::statistics::{median, middle, mode};
use crate::target::{Operation, TargetError, latencies};
use crate::verdict::{Confidence, Value, Verdict};
use crate::words::{rotations, size};

/// The experiment's entry in the registry.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "journal",
    question: "in what sizes is the cache written?",
    source: "Aghayev 2015 §4.3.1",
    writes: true,
    needs: &["rotation", "type", "cleaning", "cache-size"],
    properties: &["packet_writes", "journal_quantum", "journal_payload", "journal_out_of_band"],
    about_s: 120,
    skip_reason: is_idle,
    run_after: |_| None,
    run,
};

fn is_idle(verdict: &Verdict) -> Option<&'static str> {
    let latency = verdict.number("write_latency").zip(verdict.number("rotation"));
    let is_packed = latency.is_some_and(|(latency, rotation)| latency > 1.3 * rotation);
    only_for_cached(verdict)
        .or((!is_packed).then_some("a write takes no more than a turn of the platter: nothing is written beside it"))
}

/// Largest write, KiB, and the step between sizes of writes, bytes, if sectors allow it.
const KIB_MAX: u64 = 120;
const STEP_BYTES: u64 = 2048;
/// Number of packets of each size; the first is not counted.
const PACKETS: usize = 5;

const SERIES: &str = "time of a packet by the size of its writes";

/// Returns the duration of packets of writes of `bytes` bytes, nanoseconds, and the number of writes in a packet.
fn packets(bench: &mut Bench<'_>, bytes: u64) -> Result<(u64, usize), TargetError> {
    let slots = (1 << 28) / bytes;
    let base = bench.at_share(0.3);
    let mut chosen = bench.scattered(0, slots * BLOCK_BYTES, PACKETS * DEPTH);
    chosen.iter_mut().for_each(|slot| *slot = base + *slot / BLOCK_BYTES * bytes);
    let writes: Vec<_> = chosen.iter().map(|&offset| Operation::write(offset, bytes)).collect();
    let mut timed = latencies(bench.target, DEPTH, &writes)?;
    timed.sort_by_key(|timed| timed.end_ns);
    let near = (bench.rotation_ns() / 2.0) as u64;
    let mut ends: Vec<(u64, usize)> = Vec::new();
    for timed in &timed {
        match ends.last_mut() {
            Some((end, count)) if timed.end_ns - *end < near => *count += 1,
            _ => ends.push((timed.end_ns, 1)),
        }
    }
    Ok(largest(&ends).unwrap_or((0, timed.len())))
}

/// Returns the median duration of the largest packets of which there are several, and the number of writes in them.
/// `ends` holds the time of each packet's answers and its number of writes. A drive may accept fewer writes at once
/// than the depth. If its host then takes time to submit more, the drive writes the rest as a small packet in between.
fn largest(ends: &[(u64, usize)]) -> Option<(u64, usize)> {
    let times: Vec<(u64, usize)> = ends.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1)).collect();
    let several = |writes: &usize| times.iter().filter(|(_, other)| other == writes).count() > 1;
    let writes = times.iter().map(|(_, writes)| *writes);
    let most = writes.clone().filter(several).max().or(writes.max())?;
    let of_most: Vec<u64> = times.iter().filter(|(_, writes)| *writes == most).map(|(time, _)| *time).collect();
    Some((median(&of_most), most))
}

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let step = STEP_BYTES.max(u64::from(bench.target.sector_bytes()));
    let rotation = bench.rotation_ns();
    let mut points = Vec::new();
    let mut bytes = BLOCK_BYTES;
    let mut used = 0;
    let full = bench.verdict.number("cache_writes_4k_depth_1").unwrap_or(f64::MAX) as usize;
    while bytes <= KIB_MAX << 10 {
        // The cache must not fill up.
        used += 3 * PACKETS;
        if used > full / 2 {
            bench.drain(32)?;
            used = 3 * PACKETS;
        }
        let (time, writes) = packets(bench, bytes)?;
        points.push((bytes, time, writes));
        bytes += step;
    }
    bench.drain(32)?;
    bench.keep_points(
        SERIES,
        "write_bytes",
        "packet_ms",
        points.iter().map(|p| (p.0 as f64, p.1 as f64 / 1e6)).collect(),
    );
    let at_once = points[0].2;
    let because = format!("{at_once} writes of 4 KiB are answered at one time");
    bench.verdict.conclude(
        "packet_writes",
        Value::Number(at_once as f64),
        "writes",
        Confidence::Medium,
        because,
        &[SERIES],
    );
    // The time of a packet grows with the size of its writes only among packets with equally many writes.
    let alike: Vec<_> = points.iter().filter(|point| point.2 == at_once).collect();
    let mut steps: Vec<(u64, f64)> = Vec::new();
    for pair in alike.windows(2) {
        let grown = pair[1].1 as f64 - pair[0].1 as f64;
        if grown > 0.1 * rotation {
            steps.push((pair[1].0 - step, grown));
        }
    }
    conclude(bench, at_once, points[0].1, &steps);
    Ok(())
}

/// Concludes from `steps`: the size of the writes before each step, bytes, and the growth of a packet's time there,
/// nanoseconds.
fn conclude(bench: &mut Bench<'_>, at_once: usize, first_ns: u64, steps: &[(u64, f64)]) {
    let rotation = bench.rotation_ns();
    let sizes: Vec<u64> = steps.iter().map(|(_, grown)| *grown as u64).collect();
    if sizes.len() < 2 || mode(&sizes, 0.25).share < 0.6 {
        let because = "the time of a packet does not grow in even steps".to_string();
        bench.verdict.conclude("journal_quantum", Value::CannotTell, "rotations", Confidence::Low, because, &[SERIES]);
        return;
    }
    let quantum = mode(&sizes, 0.25).center as f64 / rotation;
    let payloads: Vec<f64> = steps.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64).collect();
    let payload = middle(&payloads) * at_once as f64;
    let because = format!(
        "the time of a packet grows by {} where each write is of {} or more",
        rotations(quantum),
        size(steps[0].0 as f64)
    );
    let sure = Confidence::High;
    bench.verdict.conclude("journal_quantum", Value::Number(quantum), "rotations", sure, because, &[SERIES]);
    let because = format!("{at_once} writes reach the next step each {} that they grow", size(middle(&payloads)));
    // The first step is the most exact measure: its writes fill whole quanta.
    let quanta = ((steps[0].0 * at_once as u64) as f64 / payload).round().max(1.0);
    let exact = (steps[0].0 as f64 + STEP_BYTES as f64 / 2.0) * at_once as f64 / quanta;
    bench.verdict.conclude("journal_payload", Value::Number(exact), "B", Confidence::Medium, because, &[SERIES]);
    let beside = first_ns as f64 / rotation - quanta * quantum;
    let because = format!("the shortest packet takes {}", rotations(first_ns as f64 / rotation));
    bench.verdict.conclude("journal_out_of_band", Value::Number(beside), "rotations", sure, because, &[SERIES]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_over_between_packets_is_no_packet() {
        let alternating = [(0, 24), (15, 7), (45, 24), (60, 7), (90, 24), (105, 7), (150, 31)];
        assert_eq!(largest(&alternating), Some((30, 24)), "31 came together once, by chance");
        assert_eq!(largest(&[(0, 31), (30, 31), (60, 31), (90, 2)]), Some((30, 31)));
        assert_eq!(largest(&[(0, 31), (30, 30)]), Some((30, 30)));
        assert_eq!(largest(&[(9, 31)]), None);
    }
}
