//! A workload that grows while it runs: the caller that steps the engine pushes requests as they arrive.

use std::collections::VecDeque;

use imbrex_disk::SimTime;
use imbrex_trace::{Request, Source, TraceError};

/// A workload that grows while it runs: a queue of requests that the engine has not taken yet. To the engine an empty
/// inbox is the end of the workload, but its next step reads the inbox again.
#[derive(Clone, Debug, Default)]
pub struct Inbox(VecDeque<Request>);

impl Inbox {
    /// Adds a request at the end of the inbox; the engine takes requests in the order in which they were added.
    pub fn push(&mut self, request: Request) {
        self.0.push_back(request);
    }

    /// Returns the number of requests that the engine has not taken yet.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the engine has taken every request.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Source for Inbox {
    fn next(&mut self, _now: SimTime) -> Result<Option<Request>, TraceError> {
        Ok(self.0.pop_front())
    }
}
