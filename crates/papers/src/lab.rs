//! Code that several experiments share: runs of one drive under one workload, with measurements that a summary does
//! not have.

use imbrex::drives::fresh;
use imbrex::{Failure, Run};
use imbrex_disk::SimTime;
use imbrex_sim::{Arrival, Drive, DriveResult, IoRecord, Observer, Options};
use imbrex_trace::Source;

use crate::Replication;

/// Settings of a run: the drive, the warm-up, the arrivals.
pub(crate) struct Bench<'a> {
    /// Specification of the drive: `PROFILE+LAYER:key=value,…`.
    pub drive: &'a str,
    /// Number of requests served before the measurement begins.
    pub warmup_requests: u64,
    /// Arrival process of the requests, such as a closed queue of fixed depth.
    pub arrival: Arrival,
}

impl<'a> Bench<'a> {
    /// Returns a run of `drive` without pauses between requests, as Cassuto 2010 §III.B counts.
    pub(crate) fn flat_out(drive: &'a str) -> Bench<'a> {
        Bench { drive, warmup_requests: 0, arrival: Arrival::FlatOut }
    }

    /// Returns the drive, newly built.
    pub(crate) fn drive(&self) -> Result<Drive, Failure> {
        fresh(self.drive)
    }

    /// Simulates the workload `words`, with the seed of the replication, on a new drive; calls `each` for every request served.
    pub(crate) fn run(
        &self,
        words: &str,
        replication: &Replication,
        each: &mut dyn FnMut(&IoRecord),
    ) -> Result<DriveResult, Failure> {
        let drive = self.drive()?;
        let device_sectors = drive.capacity_bytes() / 512;
        let mut source = replication.generator(words, device_sectors);
        self.run_source(drive, &mut source, replication, each)
    }

    /// Simulates the requests of `source` on `drive`; calls `each` for every request served.
    pub(crate) fn run_source(
        &self,
        drive: Drive,
        source: &mut dyn Source,
        replication: &Replication,
        each: &mut dyn FnMut(&IoRecord),
    ) -> Result<DriveResult, Failure> {
        let options = Options { warmup_requests: self.warmup_requests, ..Options::bare(self.arrival) };
        let ran = Run::new(drive, options)
            .shown(self.drive, replication.progress)
            .on(source, &mut Notebook { each })?
            .whole()?;
        Ok(ran.summary(self.drive).0)
    }
}

struct Notebook<'a> {
    each: &'a mut dyn FnMut(&IoRecord),
}

impl Observer for Notebook<'_> {
    fn wants_ios(&self) -> bool {
        true
    }

    fn io(&mut self, record: &IoRecord) {
        (self.each)(record);
    }
}

/// Numbers of completions in consecutive time windows of equal width.
pub(crate) struct Counts {
    width_ns: u64,
    counts: Vec<u32>,
}

impl Counts {
    /// Returns empty counts in windows of `seconds`.
    pub(crate) fn every(seconds: u64) -> Counts {
        Counts { width_ns: seconds * 1_000_000_000, counts: Vec::new() }
    }

    /// Counts a completion at the time `at`.
    pub(crate) fn see(&mut self, at: SimTime) {
        let index = (at.0 / self.width_ns) as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
    }

    /// Returns the counts of the whole windows between `from` and `to`. The last window that has completions is left
    /// out, since the end of the run may cut it short.
    pub(crate) fn between(&self, from: SimTime, to: SimTime) -> &[u32] {
        let first = (from.0.div_ceil(self.width_ns) as usize).min(self.counts.len());
        let last = ((to.0 / self.width_ns) as usize).min(self.counts.len().saturating_sub(1));
        &self.counts[first..last.max(first)]
    }

    /// Returns (seconds, requests a second) for every window: the points of a chart.
    pub(crate) fn points(&self) -> Vec<(f64, f64)> {
        let seconds = self.width_ns as f64 / 1e9;
        let rates = self.counts.iter().enumerate();
        rates.map(|(index, &count)| (index as f64 * seconds, count as f64 / seconds)).collect()
    }
}

/// Returns the mean of `counts`, or zero if there are none.
pub(crate) fn mean(counts: &[u32]) -> f64 {
    if counts.is_empty() {
        return 0.0;
    }
    counts.iter().map(|&count| count as f64).sum::<f64>() / counts.len() as f64
}
