//! The drive's past as a list of spans: which operation did which kind of work from when to when. The list has a maximum
//! length, and sums of time by kind, so that any stretch of the past is summed in a few steps.
//!
//! Invariants:
//! 1. Spans are in order of time and do not overlap. Between two spans the drive was idle.
//! 2. `before[k]` has the times of all spans before span `k × BLOCK`, by kind.

use std::ops::Range;

/// Number of kinds of spans.
pub(super) const KINDS: usize = 9;

/// Largest number of spans kept. Our own value: they take about 20 megabytes.
pub(super) const SPANS_MAX: usize = 1 << 18;

/// Number of spans between two sums.
const BLOCK: usize = 8;

/// A stretch of time in which the drive did one kind of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub from: u64,
    pub until: u64,
    /// Number of the operation, counted from 0.
    pub operation: u64,
    /// Index of the phase in the operation's plan.
    pub phase: u32,
    /// Index of the kind, below [`KINDS`].
    pub kind: u8,
}

/// The last spans, with sums.
#[derive(Debug)]
pub(super) struct Spans {
    spans: Vec<Span>,
    before: Vec<[u64; KINDS]>,
    total: [u64; KINDS],
    longest: usize,
    /// End of the last span that was dropped; 0 if none was.
    dropped_until: u64,
    /// For each span, the change of the number of requests that wait during all of it, from the span before.
    waiters: Vec<i32>,
    /// For each span, the time that requests waited which did not wait during all of it.
    partly: Vec<u64>,
    /// Number of requests that waited during the last span that was dropped.
    waited_before: i64,
}

impl Spans {
    /// Creates an empty list of at most `longest` spans, a multiple of twice the block.
    pub(super) fn new(longest: usize) -> Spans {
        assert!(longest >= 2 * BLOCK && longest.is_multiple_of(2 * BLOCK), "{longest} spans are no whole blocks");
        Spans {
            spans: Vec::new(),
            before: Vec::new(),
            total: [0; KINDS],
            longest,
            dropped_until: 0,
            waiters: Vec::new(),
            partly: Vec::new(),
            waited_before: 0,
        }
    }

    /// Returns whether no further span fits.
    pub(super) fn is_full(&self) -> bool {
        self.spans.len() == self.longest
    }

    /// Appends a span, which begins at or after the end of the last one.
    pub(super) fn push(&mut self, span: Span) {
        debug_assert!(self.spans.last().is_none_or(|last| last.until <= span.from) && span.from <= span.until);
        if self.spans.len().is_multiple_of(BLOCK) {
            self.before.push(self.total);
        }
        self.total[span.kind as usize] += span.until - span.from;
        self.spans.push(span);
        self.waiters.push(0);
        self.partly.push(0);
    }

    /// Returns the time before which the past is not known.
    pub(super) fn known_from(&self) -> u64 {
        self.dropped_until
    }

    /// Returns the index of the first span that ends after `time`.
    fn first_after(&self, time: u64) -> usize {
        // Nearly always the span is one of the last.
        let mut low = self.spans.len();
        let mut step = 1;
        while low > 0 && self.spans[low - 1].until > time {
            low = low.saturating_sub(step);
            step *= 2;
        }
        let high = self.spans.len().min(low + step);
        low + self.spans[low..high].partition_point(|span| span.until <= time)
    }

    /// Returns the times of all spans before span `index`, by kind.
    fn sum_before(&self, index: usize) -> [u64; KINDS] {
        if index == self.spans.len() {
            return self.total;
        }
        let block = index / BLOCK;
        let mut sum = self.before[block];
        for span in &self.spans[block * BLOCK..index] {
            sum[span.kind as usize] += span.until - span.from;
        }
        sum
    }

    /// Returns the indices of the spans that have a part within `times`.
    fn indices(&self, times: &Range<u64>) -> Range<usize> {
        let first = self.first_after(times.start);
        let mut end = self.first_after(times.end);
        if self.spans.get(end).is_some_and(|span| span.from < times.end) {
            end += 1;
        }
        first..end.max(first)
    }

    /// Returns the time of each kind within `times`, and counts a request that waited for that long.
    pub(super) fn wait(&mut self, times: &Range<u64>) -> [u64; KINDS] {
        if times.is_empty() {
            return [0; KINDS];
        }
        let Range { start: first, end } = self.indices(times);
        if first == end {
            return [0; KINDS];
        }
        let part = |span: &Span| span.until.min(times.end) - span.from.max(times.start);
        let (head, last) = (self.spans[first], self.spans[end - 1]);
        let mut sum = [0; KINDS];
        sum[head.kind as usize] += part(&head);
        self.partly[first] += part(&head);
        if end - first > 1 {
            sum[last.kind as usize] += part(&last);
            self.partly[end - 1] += part(&last);
        }
        if end - first > 2 {
            let (whole_from, whole_to) = (self.sum_before(first + 1), self.sum_before(end - 1));
            for (sum, (from, to)) in sum.iter_mut().zip(whole_from.into_iter().zip(whole_to)) {
                *sum += to - from;
            }
            self.waiters[first + 1] += 1;
            self.waiters[end - 1] -= 1;
        }
        sum
    }

    /// Returns the time of each kind of the last operation, `operation`, within `times`. Counts a request that waited during
    /// those of its spans for which `waits` returns true for their kind, and returns that time too.
    pub(super) fn last_operation(
        &mut self,
        operation: u64,
        times: &Range<u64>,
        waits: impl Fn(usize) -> bool,
    ) -> ([u64; KINDS], u64) {
        let (mut sum, mut waited) = ([0; KINDS], 0);
        for (span, partly) in self.spans.iter().zip(&mut self.partly).rev() {
            if span.operation != operation {
                break;
            }
            let time = span.until.min(times.end).saturating_sub(span.from.max(times.start));
            sum[span.kind as usize] += time;
            if waits(span.kind as usize) {
                *partly += time;
                waited += time;
            }
        }
        (sum, waited)
    }

    /// Calls `visit` with the part of each span that lies within `times`, in order.
    pub(super) fn for_each_within(&self, times: &Range<u64>, mut visit: impl FnMut(&Span, u64)) {
        if times.is_empty() {
            return;
        }
        for span in &self.spans[self.indices(times)] {
            visit(span, span.until.min(times.end) - span.from.max(times.start));
        }
    }

    /// Drops the older half of the spans. Calls `account` with each of them, and with the time that all requests waited
    /// during it. Returns the operation of the oldest span that is left.
    pub(super) fn drop_half(&mut self, account: impl FnMut(&Span, u64)) -> u64 {
        let count = self.longest / 2;
        self.drop_first(count, account);
        self.spans.first().map_or(u64::MAX, |span| span.operation)
    }

    /// Drops all spans, as [`Spans::drop_half`].
    pub(super) fn drop_all(&mut self, account: impl FnMut(&Span, u64)) {
        self.drop_first(self.spans.len(), account);
    }

    fn drop_first(&mut self, count: usize, mut account: impl FnMut(&Span, u64)) {
        let Some(last) = count.checked_sub(1) else { return };
        for (span, (change, partly)) in self.spans.iter().zip(self.waiters.iter().zip(&self.partly)).take(count) {
            self.waited_before += i64::from(*change);
            account(span, (span.until - span.from) * self.waited_before as u64 + partly);
        }
        self.dropped_until = self.spans[last].until;
        self.spans.drain(..count);
        self.waiters.drain(..count);
        self.partly.drain(..count);
        self.before.drain(..count.div_ceil(BLOCK));
    }
}

#[cfg(test)]
mod tests {
    //! Goal: sums and waiting times are those of a walk over all spans. Method: random spans and requests, with a list so
    //! short that spans are dropped.

    use super::*;
    use proptest::prelude::*;

    fn overlap(span: &Span, times: &Range<u64>) -> u64 {
        span.until.min(times.end).saturating_sub(span.from.max(times.start))
    }

    proptest! {
        #[test]
        fn equals_a_walk(steps in prop::collection::vec((0u64..5, 0u64..30, 0u8..9, 0u64..400, 0u64..40), 1..600)) {
            let mut spans = Spans::new(2 * BLOCK);
            let (mut all, mut kept): (Vec<Span>, usize) = (Vec::new(), 0);
            let (mut now, mut waited, mut expected) = (0, vec![], vec![]);
            for (number, (gap, length, kind, back, short)) in steps.into_iter().enumerate() {
                if spans.is_full() {
                    spans.drop_half(|_, time| waited.push(time));
                    kept += BLOCK;
                }
                let span = Span { from: now + gap, until: now + gap + length, operation: number as u64, phase: 0, kind };
                spans.push(span);
                all.push(span);
                expected.push(0);
                now = span.until;
                let times = now.saturating_sub(back).max(spans.known_from())..now.saturating_sub(short);
                let (mut sum, mut walked) = ([0; KINDS], [0; KINDS]);
                for (index, span) in all.iter().enumerate().skip(kept) {
                    sum[span.kind as usize] += overlap(span, &times);
                    expected[index] += overlap(span, &times);
                }
                spans.for_each_within(&times, |span, time| walked[span.kind as usize] += time);
                prop_assert_eq!(walked, sum);
                prop_assert_eq!(spans.wait(&times), sum);
            }
            spans.drop_all(|_, time| waited.push(time));
            prop_assert_eq!(waited, expected);
        }
    }
}
