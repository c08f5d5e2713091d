//! The segments of a drive's buffer: the sectors in each, and the choice of a segment for a command.
//!
//! Invariants:
//! 1. A segment holds one run of sectors, not longer than the segment's size.
//! 2. No sector that a write changed is left in another segment.

use std::cmp::Reverse;
use std::ops::Range;

use imbrex_disk::profile::Controller;

/// One segment of the buffer.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    end: u64,
    /// Sequence number of the last use: the segment unused for longest is replaced first.
    used: u64,
    /// Whether a write left the sectors in the segment.
    written: bool,
}

impl Segment {
    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn overlaps(&self, sectors: &Range<u64>) -> bool {
        self.start < sectors.end && sectors.start < self.end
    }
}

/// The part of a read that the buffer holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hit {
    /// All sectors, in this segment.
    Whole(usize),
    /// The first sectors are in this segment, or the first sector is being read into it.
    Partial(usize),
    /// No sectors.
    Miss,
}

/// The buffer of a drive, in segments.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    segments: Vec<Segment>,
    size: u64,
    /// Index of the segment that is reserved for writes.
    for_writes: Option<usize>,
    caches: bool,
    hits_written: bool,
    clock: u64,
}

impl Segments {
    /// Creates the empty buffer of `controller`.
    pub(super) fn new(controller: &Controller) -> Segments {
        let empty = Segment { start: 0, end: 0, used: 0, written: false };
        Segments {
            segments: vec![empty; controller.segments as usize],
            size: controller.segment_sectors as u64,
            for_writes: controller.own_write_segment.then_some(0),
            caches: controller.caches,
            hits_written: controller.hits_written,
            clock: 0,
        }
    }

    /// Returns the number of sectors of a segment.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the part of `sectors` that the buffer holds. `being_read` is the segment that the drive reads into. With
    /// `almost`, a request that begins at the end of that segment counts as found in part. If several segments hold an
    /// equal part, the one being read into is chosen, or else the one unused for longest.
    pub(super) fn find(&self, sectors: &Range<u64>, being_read: Option<usize>, almost: bool) -> Hit {
        if !self.caches {
            return Hit::Miss;
        }
        let mut best = None;
        for (index, segment) in self.segments.iter().enumerate() {
            if self.for_writes == Some(index) || self.is_hidden(segment) {
                continue;
            }
            let is_read = being_read == Some(index);
            let is_next = almost && is_read && segment.end == sectors.start;
            let begins = segment.start <= sectors.start && sectors.start < segment.end;
            if begins || is_next {
                let is_whole = begins && sectors.end <= segment.end;
                best = best.max(Some((is_whole, is_read, Reverse(segment.used), index)));
            }
        }
        match best {
            None => Hit::Miss,
            Some((true, .., index)) => Hit::Whole(index),
            Some((false, .., index)) => Hit::Partial(index),
        }
    }

    /// Returns whether `segment` holds written data that reads may not find.
    fn is_hidden(&self, segment: &Segment) -> bool {
        segment.written && !self.hits_written
    }

    /// Assigns a segment to a read that found nothing: an empty one, or else the one unused for longest. The segment
    /// that is being read into is the last choice.
    pub(super) fn take_for_read(&mut self, start: u64, being_read: Option<usize>) -> usize {
        let index = self.oldest(being_read, |_| false);
        self.reset(index, start, false);
        index
    }

    /// Assigns a segment to a write of `sectors`, and drops these sectors from other segments. A write that continues a
    /// stream stays in the stream's segment `stream`.
    pub(super) fn take_for_write(
        &mut self,
        sectors: &Range<u64>,
        being_read: Option<usize>,
        stream: Option<usize>,
    ) -> usize {
        let index =
            stream.or(self.for_writes).unwrap_or_else(|| self.oldest(being_read, |segment| segment.overlaps(sectors)));
        self.forget(sectors);
        match stream {
            Some(_) => self.use_again(index),
            None => self.reset(index, sectors.start, true),
        }
        index
    }

    /// Returns the segment to assign: one that `first` prefers, else one that no read may find, else the one unused for
    /// longest.
    fn oldest(&self, being_read: Option<usize>, first: impl Fn(&Segment) -> bool) -> usize {
        let rank = |index: usize| {
            let segment = &self.segments[index];
            let class = match () {
                () if being_read == Some(index) => 3,
                () if first(segment) => 0,
                () if segment.is_empty() || self.is_hidden(segment) => 1,
                () => 2,
            };
            (class, segment.used)
        };
        let usable = (0..self.segments.len()).filter(|&index| self.for_writes != Some(index));
        usable.min_by_key(|&index| rank(index)).expect("a controller has a segment for reads")
    }

    fn reset(&mut self, index: usize, start: u64, written: bool) {
        self.clock += 1;
        self.segments[index] = Segment { start, end: start, used: self.clock, written };
    }

    /// Adds the `sectors` sectors before the first one of segment `index`.
    pub(super) fn start_earlier(&mut self, index: usize, sectors: u64) {
        let segment = &mut self.segments[index];
        segment.start = segment.start.saturating_sub(sectors);
    }

    /// Drops the sectors before `end` from segment `index`.
    pub(super) fn drop_before(&mut self, index: usize, end: u64) {
        let segment = &mut self.segments[index];
        segment.start = segment.start.max(end).min(segment.end);
    }

    /// Records that a command uses the sectors of segment `index`.
    pub(super) fn use_again(&mut self, index: usize) {
        self.clock += 1;
        self.segments[index].used = self.clock;
    }

    /// Extends segment `index` to `end`, and drops sectors at its start that no longer fit.
    pub(super) fn reach(&mut self, index: usize, end: u64) {
        let size = self.size;
        let segment = &mut self.segments[index];
        segment.end = segment.end.max(end);
        segment.start = segment.start.max(segment.end.saturating_sub(size));
    }

    /// Returns the sectors in segment `index`.
    pub(super) fn sectors(&self, index: usize) -> Range<u64> {
        self.segments[index].start..self.segments[index].end
    }

    /// Drops `sectors` from the buffer, because they change on the medium without the buffer.
    pub(super) fn forget(&mut self, sectors: &Range<u64>) {
        for segment in self.segments.iter_mut().filter(|segment| segment.overlaps(sectors)) {
            segment.end = segment.start;
        }
    }
}
