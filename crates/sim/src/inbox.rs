//! A workload that is put together while it runs: whoever steps the engine pushes requests as they come.

use std::collections::VecDeque;

use imbrex_disk::SimTime;
use imbrex_trace::{Request, Source, TraceError};

/// Requests that were pushed and that the engine has not taken yet. To the engine an empty inbox has ended; it asks again at its
/// next step.
#[derive(Clone, Debug, Default)]
pub struct Inbox(VecDeque<Request>);

impl Inbox {
    /// Brings a request.
    pub fn push(&mut self, request: Request) {
        self.0.push_back(request);
    }

    /// Requests that the engine has not asked for yet.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none of them.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Source for Inbox {
    fn next(&mut self, _now: SimTime) -> Result<Option<Request>, TraceError> {
        Ok(self.0.pop_front())
    }
}
