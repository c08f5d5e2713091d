//! The segments of a drive's buffer: what each holds, and which is given to whom.
//!
//! Invariants:
//! 1. A segment holds one run of sectors, no longer than a segment is.
//! 2. No sector that a write changed is left in another segment.

use std::ops::Range;

use imbrex_disk::profile::Controller;

/// One segment of the buffer.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    end: u64,
    /// When it was last given out: the oldest goes first.
    used: u64,
    /// Whether a write left what it holds.
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

/// What the buffer holds of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hit {
    /// All of it, in this segment.
    Whole(usize),
    /// Its first sectors, or the first is just being read.
    Partial(usize),
    /// Nothing.
    Miss,
}

/// The buffer of a drive, in segments.
#[derive(Clone, Debug)]
pub struct Segments {
    segments: Vec<Segment>,
    size: u64,
    /// Number of the segment that writes alone have.
    for_writes: Option<usize>,
    caches: bool,
    hits_written: bool,
    clock: u64,
}

impl Segments {
    /// The empty buffer of `controller`.
    pub fn new(controller: &Controller) -> Segments {
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

    /// Sectors of a segment.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What is there of `sectors`; `being_read` is the segment into which the sector that follows on it is being read, where
    /// that counts.
    pub fn find(&self, sectors: &Range<u64>, being_read: Option<usize>) -> Hit {
        if !self.caches {
            return Hit::Miss;
        }
        let mut found = Hit::Miss;
        for (index, segment) in self.segments.iter().enumerate() {
            if self.for_writes == Some(index) || (segment.written && !self.hits_written) {
                continue;
            }
            let is_next = being_read == Some(index) && segment.end == sectors.start;
            if segment.start <= sectors.start && sectors.end <= segment.end {
                return Hit::Whole(index);
            }
            if (segment.start <= sectors.start && sectors.start < segment.end) || is_next {
                found = Hit::Partial(index);
            }
        }
        found
    }

    /// Gives out a segment for a read that found nothing: an empty one, else the one longest unused, that being read into
    /// last of all.
    pub fn take_for_read(&mut self, start: u64, being_read: Option<usize>) -> usize {
        let index = self.oldest(being_read, |_| false);
        self.reset(index, start, false)
    }

    /// Gives out a segment for a write of `sectors`, and drops what other segments hold of them.
    pub fn take_for_write(&mut self, sectors: &Range<u64>, being_read: Option<usize>) -> usize {
        let index = self.for_writes.unwrap_or_else(|| self.oldest(being_read, |segment| segment.overlaps(sectors)));
        for segment in &mut self.segments {
            if segment.overlaps(sectors) {
                segment.end = segment.start;
            }
        }
        self.reset(index, sectors.start, true)
    }

    /// The segment to give out: one that `first` prefers, an empty one, the one longest unused.
    fn oldest(&self, being_read: Option<usize>, first: impl Fn(&Segment) -> bool) -> usize {
        let rank = |index: usize| {
            let segment = &self.segments[index];
            let class = match () {
                () if being_read == Some(index) => 3,
                () if first(segment) => 0,
                () if segment.is_empty() => 1,
                () => 2,
            };
            (class, segment.used)
        };
        let usable = (0..self.segments.len()).filter(|&index| self.for_writes != Some(index));
        usable.min_by_key(|&index| rank(index)).expect("a controller has a segment for reads")
    }

    fn reset(&mut self, index: usize, start: u64, written: bool) -> usize {
        self.clock += 1;
        self.segments[index] = Segment { start, end: start, used: self.clock, written };
        index
    }

    /// A read found something in segment `index`.
    pub fn use_again(&mut self, index: usize) {
        self.clock += 1;
        self.segments[index].used = self.clock;
    }

    /// Segment `index` now reaches to `end`; what no longer fits is pushed out at its start.
    pub fn reach(&mut self, index: usize, end: u64) {
        let size = self.size;
        let segment = &mut self.segments[index];
        segment.end = segment.end.max(end);
        segment.start = segment.start.max(segment.end.saturating_sub(size));
    }

    /// The sectors in segment `index`.
    pub fn sectors(&self, index: usize) -> Range<u64> {
        self.segments[index].start..self.segments[index].end
    }

    /// Forgets what is held of `sectors`: they change on the medium past the buffer.
    pub fn forget(&mut self, sectors: &Range<u64>) {
        for segment in self.segments.iter_mut().filter(|segment| segment.overlaps(sectors)) {
            segment.end = segment.start;
        }
    }
}
