//! The requests that are explained in detail. Their parts are found as late as possible: most of those that are among the
//! worst at some time do not stay there.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use imbrex_disk::{SimDuration, SimTime};

use super::{Chosen, Explained, Part};
use crate::observer::IoRecord;
use crate::timing::PlanPart;

/// A request that may be explained in detail.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub record: IoRecord,
    pub device: u32,
    /// Simulated time from which the latency is counted.
    pub arrival: SimTime,
    /// Number of the operation that served the request; `None` if the volatile cache answered it.
    pub operation: Option<u64>,
    /// The parts of the latency, and the parts of plans that are to blame, once they were found.
    pub found: Option<(Vec<Part>, BTreeMap<PlanPart, SimDuration>)>,
}

/// The requests chosen so far, by rank: the last one is the first to be given up.
#[derive(Debug)]
pub(super) struct Worst {
    chosen: Chosen,
    /// By latency, the longest first, and number; or by number alone.
    candidates: BTreeMap<(Reverse<u64>, u64), Candidate>,
    /// Latency that a request must exceed to be among the worst, or equal with a lower number; 0 while there is room.
    least: u64,
}

impl Default for Worst {
    fn default() -> Worst {
        Worst::new(Chosen::Worst(0))
    }
}

impl Worst {
    pub(super) fn new(chosen: Chosen) -> Worst {
        Worst { chosen, candidates: BTreeMap::new(), least: 0 }
    }

    fn rank(&self, number: u64, latency: u64) -> (Reverse<u64>, u64) {
        match self.chosen {
            Chosen::Worst(_) => (Reverse(latency), number),
            Chosen::Numbers(_) | Chosen::Latency(..) => (Reverse(0), number),
        }
    }

    /// Returns whether a request with this latency is chosen.
    #[inline]
    pub(super) fn wants(&self, number: u64, latency: u64) -> bool {
        match &self.chosen {
            Chosen::Worst(_) if latency < self.least => false,
            Chosen::Worst(count) if self.candidates.len() < *count => true,
            Chosen::Worst(_) => {
                let last = self.candidates.last_key_value();
                last.is_some_and(|(last, _)| self.rank(number, latency) < *last)
            }
            Chosen::Numbers(numbers) => numbers.contains(&number),
            Chosen::Latency(range, count) => range.contains(&latency) && self.candidates.len() < *count,
        }
    }

    /// Adds a request, which is chosen, in place of the one with the lowest rank if there are too many.
    pub(super) fn add(&mut self, candidate: Candidate) {
        let latency = candidate.record.end.since(candidate.arrival).0;
        self.candidates.insert(self.rank(candidate.record.sequence, latency), candidate);
        if let Chosen::Worst(count) = self.chosen
            && self.candidates.len() > count
        {
            self.candidates.pop_last();
            self.least = self.candidates.last_key_value().map_or(u64::MAX, |((latency, _), _)| latency.0);
        }
    }

    /// Calls `find` with each request whose parts were not found yet.
    pub(super) fn for_each_open(&mut self, mut find: impl FnMut(&mut Candidate)) {
        self.candidates.values_mut().filter(|candidate| candidate.found.is_none()).for_each(&mut find);
    }

    /// Returns all chosen requests, in order of rank.
    pub(super) fn into_explained(self) -> Vec<Explained> {
        self.candidates.into_values().map(Candidate::into_explained).collect()
    }
}
