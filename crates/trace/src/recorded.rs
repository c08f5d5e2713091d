//! A trace in memory: it is read once, and can be run many times without the cost of reading.

use std::sync::Arc;

use imbrex_units::SimTime;

use crate::facts::Facts;
use crate::request::{Request, Source, TraceError};

/// A source that yields a list of requests in memory.
///
/// Clones share the list, not the position: a clone continues where the original stood.
#[derive(Clone, Debug)]
pub struct Recorded {
    requests: Arc<[Request]>,
    facts: Facts,
    next: usize,
}

impl Recorded {
    /// Returns a source that yields `requests` in their order. Its [`Facts`] are empty: all counts are 0.
    pub fn new(requests: impl Into<Arc<[Request]>>) -> Recorded {
        Recorded { requests: requests.into(), facts: Facts::default(), next: 0 }
    }

    /// Reads `source` to its end into memory, and returns a source of these requests with the facts of `source`.
    ///
    /// Calls [`Source::next`] with the time 0 only, so `source` must not depend on the time.
    ///
    /// # Errors
    ///
    /// The first error of `source`.
    pub fn read(source: &mut dyn Source) -> Result<Recorded, TraceError> {
        let mut requests = Vec::new();
        while let Some(request) = source.next(SimTime::ZERO)? {
            requests.push(request);
        }
        Ok(Recorded { requests: requests.into(), facts: source.facts(), next: 0 })
    }

    /// Returns the whole list of requests, including those already yielded.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }
}

impl Source for Recorded {
    fn next(&mut self, _now: SimTime) -> Result<Option<Request>, TraceError> {
        let request = self.requests.get(self.next).copied();
        self.next += usize::from(request.is_some());
        Ok(request)
    }

    fn upcoming(&self) -> &[Request] {
        &self.requests[self.next..]
    }

    fn expected_requests(&self) -> Option<u64> {
        Some(self.requests.len() as u64)
    }

    fn facts(&self) -> Facts {
        self.facts.clone()
    }
}
