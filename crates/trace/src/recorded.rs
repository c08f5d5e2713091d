//! A trace in memory: read once, run many times without the cost of reading.

use std::sync::Arc;

use imbrex_units::SimTime;

use crate::facts::Facts;
use crate::request::{Request, Source, TraceError};

/// Requests in memory, shared between the sources that yield them.
#[derive(Clone, Debug)]
pub struct Recorded {
    requests: Arc<[Request]>,
    facts: Facts,
    next: usize,
}

impl Recorded {
    /// A source of `requests`.
    pub fn new(requests: impl Into<Arc<[Request]>>) -> Recorded {
        Recorded { requests: requests.into(), facts: Facts::default(), next: 0 }
    }

    /// All that is left of `source`.
    pub fn read(source: &mut dyn Source) -> Result<Recorded, TraceError> {
        let mut requests = Vec::new();
        while let Some(request) = source.next(SimTime::ZERO)? {
            requests.push(request);
        }
        Ok(Recorded { requests: requests.into(), facts: source.facts(), next: 0 })
    }

    /// The same requests from the first.
    pub fn rewound(&self) -> Recorded {
        Recorded { next: 0, ..self.clone() }
    }

    /// All requests, yielded or not.
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
