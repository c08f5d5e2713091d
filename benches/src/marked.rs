//! A source that notes when so many requests have been asked for.

use imbrex_disk::SimTime;
use imbrex_trace::{Facts, Request, Source, TraceError};

use crate::machine::ProcessorTime;
use crate::memory::resident_now_bytes;

/// A mark that was passed.
pub struct Passed {
    /// Requests asked for before.
    pub requests: u64,
    /// When, by the processor.
    pub at: ProcessorTime,
    /// When, in simulated time.
    pub now: SimTime,
    /// Resident memory then.
    pub resident_bytes: u64,
}

/// The source.
pub struct Marked {
    source: Box<dyn Source>,
    marks: Vec<u64>,
    /// The marks passed so far, in order.
    pub passed: Vec<Passed>,
    /// Requests asked for so far.
    pub asked: u64,
}

impl Marked {
    /// One over `source`; `marks` are counts of requests in rising order.
    pub fn new(source: Box<dyn Source>, marks: &[u64]) -> Marked {
        Marked { source, marks: marks.to_vec(), passed: Vec::new(), asked: 0 }
    }
}

impl Source for Marked {
    fn next(&mut self, now: SimTime) -> Result<Option<Request>, TraceError> {
        while self.marks.get(self.passed.len()).is_some_and(|&mark| mark == self.asked) {
            let resident_bytes = resident_now_bytes();
            let passed = Passed { requests: self.asked, at: ProcessorTime::now(), now, resident_bytes };
            self.passed.push(passed);
        }
        let request = self.source.next(now)?;
        self.asked += u64::from(request.is_some());
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
