//! Finds pauses: times in which a target answers nothing, though it has nothing to do but to read. A drive pauses to
//! recalibrate, and a host or a bridge delays answers. A pause looks like the cleaning of a cache, which also delays
//! answers. So pauses are looked for among reads before the first write, when no drive cleans.
//!
//! Limits: pauses that are rarer than once in the time of these reads are not found. That time is some minutes if the
//! tests of the mechanics and the zones run, and some seconds otherwise.

use crate::statistics::quantile;

/// Quantile of the latencies that is taken for the usual one, and the number of usual latencies that are a pause.
/// The usual latency includes rotational waits. A seek over the whole drive takes a few of them.
const USUAL: f64 = 0.9;
const PAUSE_TIMES: u64 = 5;
/// Smallest number of reads that shows the usual latency.
const READS_MIN: usize = 100;

/// Pauses among reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pauses {
    /// Numbers of reads that a pause delayed, and of all reads.
    pub count: usize,
    pub reads: usize,
    /// Longest latency, nanoseconds.
    pub longest_ns: u64,
}

impl std::fmt::Display for Pauses {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Pauses { count, reads, longest_ns } = self;
        let longest_ms = *longest_ns as f64 / 1e6;
        let digits = if longest_ms < 10.0 { 3 } else { 0 };
        write!(to, "{count} of {reads} reads took up to {longest_ms:.digits$} ms before anything was written")
    }
}

/// Returns the pauses among reads with these latencies, nanoseconds; `None` if there are none.
pub(crate) fn pauses(latencies_ns: &[u64]) -> Option<Pauses> {
    if latencies_ns.len() < READS_MIN {
        return None;
    }
    let limit = PAUSE_TIMES.saturating_mul(quantile(latencies_ns, USUAL));
    let long: Vec<u64> = latencies_ns.iter().copied().filter(|&latency| latency > limit).collect();
    let longest_ns = long.iter().max().copied()?;
    Some(Pauses { count: long.len(), reads: latencies_ns.len(), longest_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_seeks_are_no_pauses() {
        let mut latencies: Vec<u64> = (0..400).map(|index| 5_000_000 + index % 10 * 500_000).collect();
        latencies.push(35_000_000);
        assert_eq!(pauses(&latencies), None);
        latencies.extend([300_000_000, 280_000_000]);
        let found = pauses(&latencies).expect("two reads took long");
        assert_eq!(found.to_string(), "2 of 403 reads took up to 300 ms before anything was written");
        let short = Pauses { count: 1, reads: 300, longest_ns: 81_000 };
        assert_eq!(short.to_string(), "1 of 300 reads took up to 0.081 ms before anything was written");
        assert_eq!(pauses(&latencies[390..]), None, "too few to know the usual time");
    }
}
