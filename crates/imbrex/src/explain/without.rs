//! A workload without some of its writes.

use std::ops::RangeInclusive;

use imbrex_disk::{Operation, SimTime};
use imbrex_trace::{Facts, Request, Source, TraceError};

/// A source that yields a request of zero length, which drives reject, in place of each write whose number is in a range.
/// So all requests keep their numbers.
pub(super) struct Without<S> {
    source: S,
    /// The request that stays although its number is in a range.
    kept: u64,
    /// Ranges of numbers, disjoint and in order.
    ranges: Vec<RangeInclusive<u64>>,
    next: u64,
    left_out: u64,
}

impl<S: Source> Without<S> {
    /// Returns a source that leaves out the writes in `ranges`, which may overlap, but not request `kept`.
    pub(super) fn new(source: S, kept: u64, mut ranges: Vec<RangeInclusive<u64>>) -> Without<S> {
        ranges.sort_by_key(|range| *range.start());
        ranges.dedup_by(|next, before| {
            let meets = *next.start() <= before.end().saturating_add(1);
            if meets {
                *before = *before.start()..=*before.end().max(next.end());
            }
            meets
        });
        Without { source, kept, ranges, next: 0, left_out: 0 }
    }

    /// Returns the number of writes left out so far.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    fn leaves_out(&self, number: u64) -> bool {
        let after = self.ranges.partition_point(|range| *range.start() <= number);
        number != self.kept && after.checked_sub(1).is_some_and(|index| self.ranges[index].contains(&number))
    }
}

impl<S: Source> Source for Without<S> {
    fn next(&mut self, now: SimTime) -> Result<Option<Request>, TraceError> {
        let Some(mut request) = self.source.next(now)? else { return Ok(None) };
        if request.command.operation == Operation::Write && self.leaves_out(self.next) {
            request.command.sectors = 0;
            self.left_out += 1;
        }
        self.next += 1;
        Ok(Some(request))
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

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_disk::Command;
    use imbrex_trace::{Recorded, When};

    #[test]
    fn writes_in_ranges_become_empty_and_all_else_stays() {
        let when = When::At(SimTime::ZERO);
        let request = |number: u64| {
            let command = if number == 4 { Command::read(0, 8) } else { Command::write(number * 8, 8) };
            Request { when, device: 0, command }
        };
        let mut without =
            Without::new(Recorded::new((0..9).map(request).collect::<Vec<_>>()), 6, vec![5..=7, 2..=4, 4..=5]);
        let lengths: Vec<u32> = std::iter::from_fn(|| without.next(SimTime::ZERO).expect("a list cannot fail"))
            .map(|request| request.command.sectors)
            .collect();
        assert_eq!(lengths, [8, 8, 0, 0, 8, 0, 8, 0, 8]);
        assert_eq!(without.left_out(), 4);
    }
}
