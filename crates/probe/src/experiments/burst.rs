//! The burst that a shingled drive takes at full speed, and its rest afterwards, within a file. Small writes at depth are
//! scattered over the file until their rate falls. Then pauses that double follow, until further writes are as quick again.
//! (Aghayev 2015 §4.6 and §4.4 find the limits of the whole drive, which a file does not reach.)

use super::experiment::{Experiment, only_for_cached};
use super::filling::GOLDEN;
use crate::bench::{BLOCK_BYTES, Bench, DEPTH};
use crate::target::{Operation, TargetError, Timed};
use crate::verdict::{Confidence, Value};
use crate::words;

/// The experiment's entry in the list of experiments for files.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "burst",
    question: "how much does it take at full speed, and how long does it rest then?",
    source: "after Aghayev 2015 tests 3 and 7, within a file",
    writes: true,
    needs: &["rotation", "type"],
    properties: &["burst_bytes", "recovery", "cleaning"],
    about_s: 300,
    skip_reason: only_for_cached,
    run_after: |_| None,
    run,
};

/// Idle time before the burst, in which the drive may clean, nanoseconds.
const REST_NS: u64 = 30_000_000_000;
/// Longest burst in time, nanoseconds, and the share of the file's blocks that it writes at most.
const BURST_NS: u64 = 120_000_000_000;
const BLOCKS_SHARE: f64 = 0.8;
/// First pause of the recovery, and longest sum of all pauses, nanoseconds.
const FIRST_PAUSE_NS: u64 = 5_000_000_000;
const PAUSES_NS: u64 = 600_000_000_000;
/// Share of the burst that the drive must take again after a pause, and the least number of writes of it.
const AGAIN: u64 = 8;
const AGAIN_MIN: u64 = 64;
/// How often writes at once and after a rest are compared.
const PAIRS: u32 = 3;
/// Time over which the rate of writes is computed, nanoseconds: merges of a map, which stall writes of a drive that is not full
/// for a second, have no effect on it.
const SPAN_NS: u64 = 5_000_000_000;
/// Share of the highest mean rate until then below which the drive no longer takes writes at full speed, and the share from which it
/// does again.
const SLOW: f64 = 1.0 / 3.0;
const QUICK: f64 = 0.5;

const BURST: &str = "a burst of scattered writes";
const AFTER: &str = "rate of writes after pauses";

/// Offsets of the writes: all blocks of the file, each once, evenly scattered at any time.
struct Places {
    blocks: u64,
    section: u64,
}

impl Places {
    fn next(&mut self) -> u64 {
        self.section = self.section.wrapping_add(GOLDEN);
        ((u128::from(self.section) * u128::from(self.blocks)) >> 64) as u64 * BLOCK_BYTES
    }
}

/// Rate of completed writes, over all and over the latest [`SPAN_NS`].
struct Rates {
    begun_ns: u64,
    /// Completion times in nanoseconds, in order.
    ends: Vec<u64>,
    /// Number of writes that completed before the latest span.
    before: usize,
    /// Highest mean rate of all writes before the latest span, per nanosecond.
    highest: f64,
}

impl Rates {
    fn new(begun_ns: u64) -> Rates {
        Rates { begun_ns, ends: Vec::new(), before: 0, highest: 0.0 }
    }

    /// Returns the mean rate of the writes with numbers below `count`, per nanosecond; 0 if there are none.
    fn mean(&self, count: usize) -> f64 {
        match count.checked_sub(1) {
            Some(last) => count as f64 / (self.ends[last] - self.begun_ns).max(1) as f64,
            None => 0.0,
        }
    }

    /// Takes a completion. Returns the number of writes that were quick, if the latest ones are not.
    fn see(&mut self, end_ns: u64) -> Option<u64> {
        self.ends.push(end_ns.max(self.ends.last().copied().unwrap_or(self.begun_ns)));
        let from_ns = end_ns.saturating_sub(SPAN_NS);
        while self.ends[self.before] < from_ns {
            self.before += 1;
            if self.before as u64 >= AGAIN_MIN {
                self.highest = self.highest.max(self.mean(self.before));
            }
        }
        let lately = (self.ends.len() - self.before) as f64 / SPAN_NS as f64;
        (lately < SLOW * self.highest).then_some(self.before as u64)
    }
}

/// Results of a burst.
struct Burst {
    timed: Vec<Timed>,
    /// Number of writes that were quick; `None` if all were.
    full_at: Option<u64>,
    /// Mean rate of the writes that were quick, per nanosecond.
    rate: f64,
}

/// Writes up to `most` blocks, for at most `limit_ns`, and ends when writes wait for cleaning.
fn burst(bench: &mut Bench<'_>, places: &mut Places, most: u64, limit_ns: u64) -> Result<Burst, TargetError> {
    let mut rates = Rates::new(bench.target.now_ns());
    let (mut timed, mut full_at) = (Vec::new(), None);
    let mut left = most;
    let mut next = || {
        left = left.checked_sub(1)?;
        Some(Operation::write(places.next(), BLOCK_BYTES))
    };
    bench.target.perform(DEPTH, &mut next, &mut |done| {
        timed.push(*done);
        full_at = full_at.or(rates.see(done.end_ns));
        full_at.is_none() && done.end_ns - rates.begun_ns < limit_ns
    })?;
    let rate = rates.mean(full_at.map_or(timed.len(), |count| count as usize));
    Ok(Burst { timed, full_at, rate })
}

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    bench.target.sleep(REST_NS)?;
    let mut places = Places { blocks: bench.target.size_bytes() / BLOCK_BYTES, section: 0 };
    let most = (places.blocks as f64 * BLOCKS_SHARE) as u64;
    let found = burst(bench, &mut places, most, BURST_NS)?;
    bench.keep(BURST, &found.timed);
    let count = found.full_at.unwrap_or(found.timed.len() as u64);
    let bytes = Value::Number((count * BLOCK_BYTES) as f64);
    let writes = words::count(count as f64);
    let a_second = words::count(found.rate * 1e9);
    let Some(full_at) = found.full_at else {
        let because = format!("{writes} scattered writes of 4 KiB, {a_second} a second, and their rate did not fall");
        bench.verdict.conclude("burst_bytes", bytes, "B", Confidence::High, because, &[BURST]);
        bench.verdict.set_bound("burst_bytes", true);
        let because = "the burst did not fill the drive's cache, so there was nothing to recover from".to_string();
        bench.verdict.conclude("recovery", Value::CannotTell, "", Confidence::Low, because, &[BURST]);
        return Ok(());
    };
    let because =
        format!("after {writes} scattered writes of 4 KiB, {a_second} a second, their rate fell to less than a third");
    bench.verdict.conclude("burst_bytes", bytes, "B", Confidence::Medium, because, &[BURST]);
    recover(bench, &mut places, full_at, found.rate)
}

/// Pauses until the drive takes a part of the burst again at half of `rate` or more.
fn recover(bench: &mut Bench<'_>, places: &mut Places, full_at: u64, rate: f64) -> Result<(), TargetError> {
    let again = (full_at / AGAIN).max(AGAIN_MIN);
    let limit_ns = (again as f64 / (QUICK * rate)) as u64;
    let (mut rested_ns, mut pause_ns) = (0, FIRST_PAUSE_NS);
    let mut points = Vec::new();
    let mut is_quick = false;
    while !is_quick && rested_ns + pause_ns <= PAUSES_NS {
        bench.target.sleep(pause_ns)?;
        rested_ns += pause_ns;
        pause_ns *= 2;
        let found = burst(bench, places, again, limit_ns)?;
        points.push((rested_ns as f64 / 1e9, found.rate * 1e9));
        is_quick = found.full_at.is_none() && found.timed.len() as u64 >= again;
    }
    bench.keep_series(AFTER, "pause_s", "writes_per_s", points);
    let (part, rested_s) = (words::count(again as f64), rested_ns / 1_000_000_000);
    let because = match is_quick {
        true => format!("after pauses of {rested_s} s in all, {part} writes were at least half as quick as the burst"),
        false => {
            format!("after pauses of {rested_s} s in all, {part} writes were less than half as quick as the burst")
        }
    };
    let seconds = Value::Number(rested_ns as f64 / 1e9);
    bench.verdict.conclude("recovery", seconds, "s", Confidence::Medium, because, &[AFTER]);
    bench.verdict.set_bound("recovery", !is_quick);
    if is_quick {
        return tell_cleaning(bench, places, full_at, rate, rested_ns);
    }
    let because = "writes waited for cleaning after the longest rest too".to_string();
    bench.verdict.conclude("cleaning", Value::CannotTell, "", Confidence::Low, because, &[AFTER]);
    Ok(())
}

/// Finds out whether the drive cleans when left alone. A drive that cleans only when it must may be quick again by chance,
/// since each piece of cleaning makes room for some writes. So the same number of writes is sent to a full drive at once and
/// after a rest, several times: the drive cleans if all of the first are slow, and all of the others quick.
fn tell_cleaning(
    bench: &mut Bench<'_>,
    places: &mut Places,
    full_at: u64,
    rate: f64,
    rest_ns: u64,
) -> Result<(), TargetError> {
    let again = (full_at / AGAIN).max(AGAIN_MIN);
    let limit_ns = (again as f64 / (QUICK * rate)) as u64;
    let (mut at_once, mut rested) = (0, 0);
    for _ in 0..PAIRS {
        burst(bench, places, full_at, BURST_NS)?;
        at_once += u32::from(burst(bench, places, again, limit_ns)?.timed.len() as u64 >= again);
        bench.target.sleep(rest_ns)?;
        rested += u32::from(burst(bench, places, again, limit_ns)?.timed.len() as u64 >= again);
    }
    let because = format!(
        "of {PAIRS} times, {} writes were quick {at_once} times at once, and {rested} times after a rest of {} s",
        words::count(again as f64),
        rest_ns / 1_000_000_000
    );
    let (kind, confidence) = match (at_once, rested) {
        (0, PAIRS) => (Value::Word("aggressive"), Confidence::Medium),
        _ => (Value::CannotTell, Confidence::Low),
    };
    bench.verdict.conclude("cleaning", kind, "", confidence, because, &[AFTER]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes `count` writes, one per `each_ns`, after a time of `ns`. Returns the time at the end, and the first answer.
    fn take(rates: &mut Rates, ns: u64, count: u64, each_ns: u64) -> (u64, Option<u64>) {
        let found = (1..=count).fold(None, |found: Option<u64>, index| found.or(rates.see(ns + index * each_ns)));
        (ns + count * each_ns, found)
    }

    #[test]
    fn a_rate_that_falls_for_seconds_ends_the_burst_and_a_stall_of_a_second_does_not() {
        let (ms, mut rates) = (1_000_000, Rates::new(0));
        let mut ns = 0;
        // A stall of a second after each 500 writes, as by merges of a map.
        for _ in 0..40 {
            let (end_ns, found) = take(&mut rates, ns + 1000 * ms, 500, ms);
            assert_eq!(found, None);
            ns = end_ns;
        }
        // Then ten writes a second: after less than five seconds, the rate is below a third of 333 a second.
        let found = take(&mut rates, ns, 60, 100 * ms).1.expect("it fell");
        assert!((17_500..=20_000).contains(&found), "{found} of 20,000 writes");
        // A single wait of ten seconds ends it as well, once the next writes are answered.
        let mut rates = Rates::new(0);
        let (ns, _) = take(&mut rates, 0, 10_000, ms);
        assert_eq!(take(&mut rates, ns + 10_000 * ms, 1, 0).1, Some(10_000));
    }
}
