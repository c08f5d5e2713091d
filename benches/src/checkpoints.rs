//! A source of requests that records time and memory at given counts of requests.

use imbrex_disk::SimTime;
use imbrex_trace::{Facts, Request, Source, TraceError};

use crate::machine::ProcessorTime;
use crate::memory::resident_now_bytes;

/// State of a run at a given count of requests.
pub(crate) struct Checkpoint {
    /// Number of requests read from the source before the checkpoint.
    pub requests: u64,
    /// Processor time of the thread.
    pub at: ProcessorTime,
    /// Simulated time.
    pub now: SimTime,
    /// Resident memory of the process.
    pub resident_bytes: u64,
}

/// Source of requests that records checkpoints.
pub(crate) struct CheckpointedSource {
    source: Box<dyn Source>,
    counts: Vec<u64>,
    /// Checkpoints recorded so far, in order.
    pub checkpoints: Vec<Checkpoint>,
    /// Number of requests read so far.
    pub requests: u64,
}

impl CheckpointedSource {
    /// Returns a source that reads from `source` and records a checkpoint at each of `counts`, which are in rising
    /// order.
    pub(crate) fn new(source: Box<dyn Source>, counts: &[u64]) -> CheckpointedSource {
        CheckpointedSource { source, counts: counts.to_vec(), checkpoints: Vec::new(), requests: 0 }
    }
}

impl Source for CheckpointedSource {
    fn next(&mut self, now: SimTime) -> Result<Option<Request>, TraceError> {
        while self.counts.get(self.checkpoints.len()).is_some_and(|&count| count == self.requests) {
            let resident_bytes = resident_now_bytes();
            let at = ProcessorTime::now();
            self.checkpoints.push(Checkpoint { requests: self.requests, at, now, resident_bytes });
        }
        let request = self.source.next(now)?;
        self.requests += u64::from(request.is_some());
        Ok(request)
    }

    fn upcoming(&self) -> &[Request] {
        self.source.upcoming()
    }

    fn heeds_time(&self) -> bool {
        self.source.heeds_time()
    }

    fn expected_requests(&self) -> Option<u64> {
        self.source.expected_requests()
    }

    fn facts(&self) -> Facts {
        self.source.facts()
    }
}
