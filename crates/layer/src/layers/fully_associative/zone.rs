//! One zone: the use of each band, the home of each logical band, and the logged sectors.
//!
//! ```text
//!            log, stream or merge takes it                    its home is known
//!   free ──────────────────────────────────► log / stream ──────────────────────► home of a logical band
//!    ▲                                            │ dead: nothing in it is live        │ merged or streamed anew
//!    └────────────────────────────────────────────┴────────────────────────────────────┘
//! ```
//!
//! Bands and logical bands are numbered within the zone; a place is band · band sectors + offset. The methods named
//! after records of the layer apply one record to the zone; `Err` is the reason why the record does not fit.
//!
//! Invariants (numbered as in the layer's header): 1 to 5.

use std::collections::VecDeque;

use crate::map::run_list::RunList;
use crate::map::short_run::{ABSENT, ShortRun};

/// Value in [`BandZone::homes`] for a logical band without a home band, which occurs only while a checkpoint is
/// replayed.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A stream of sequential host writes that rewrites a logical band from its first sector on, in a physical band of its
/// own. `filled` sectors of that band are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stream {
    pub logical: u32,
    pub band: u32,
    pub filled: u32,
}

/// The state of one zone: the home of each logical band, the logged sectors, and the use of each physical band. Bands
/// are numbered within the zone.
#[derive(Clone, Debug)]
pub(super) struct BandZone {
    pub band_sectors: u32,
    /// For each logical band of the zone, the number of its home: the physical band that holds its data, except for
    /// runs in log bands and trimmed runs. [`NOWHERE`] if it has no home, which occurs only while a checkpoint is
    /// replayed.
    pub homes: Vec<u32>,
    /// For each logical band of the zone, its runs that are trimmed or whose newest contents lie in a log band. Of its
    /// other sectors, those that an open stream has written lie in the band of the stream, and the rest in the home
    /// band.
    pub runs: Vec<RunList>,
    /// The numbers, within the zone, of its free physical bands, in the order in which they are taken: the one that was
    /// freed first is taken first.
    pub free: VecDeque<u32>,
    /// The numbers, within the zone, of its log bands, to which writes are appended; the oldest first. Only the newest
    /// is appended to.
    pub logs: VecDeque<u32>,
    /// Number of sectors from the start of the newest log band that were written; the length of a band if there is no
    /// log band.
    pub head: u32,
    /// For each physical band of the zone, the number of logged sectors whose newest contents lie in it; 0 for bands
    /// that are not log bands.
    pub live: Vec<u32>,
    /// Open streams, the oldest first. A stream is a sequence of host writes that rewrites a logical band into a free
    /// physical band.
    pub streams: Vec<Stream>,
    /// Number, within the zone, of the logical band at which the search for the next one to merge begins. No logical
    /// band before it has live sectors in the oldest log band.
    pub next_merge: u32,
}

impl BandZone {
    /// Returns a new zone of `data` logical bands and `data + free` physical bands of `band_sectors` sectors each. The
    /// home of each logical band is the physical band with an equal number; the other bands are free.
    pub(super) fn new(data: usize, free: usize, band_sectors: u32) -> BandZone {
        BandZone {
            band_sectors,
            homes: (0..data as u32).collect(),
            runs: vec![RunList::new((data + free) as u32 * band_sectors); data],
            free: (data as u32..(data + free) as u32).collect(),
            logs: VecDeque::new(),
            head: band_sectors,
            live: vec![0; data + free],
            streams: Vec::new(),
            next_merge: 0,
        }
    }

    pub(super) fn stream_of(&self, logical: u32) -> Option<&Stream> {
        self.streams.iter().find(|stream| stream.logical == logical)
    }

    /// Returns the number of unwritten sectors in the newest log band; 0 if there is no log band.
    pub(super) fn log_room(&self) -> u32 {
        self.band_sectors - self.head
    }

    /// Applies an append to the log: the sectors `offset..offset + length` of the logical band `logical` lie in `band`
    /// from its sector `at` on. `band` is the newest log band, or a free band that becomes the newest log band. Returns
    /// whether a log band became free, because its last live sector was replaced.
    ///
    /// # Errors
    ///
    /// The run does not lie at or after the head of the band, or does not fit, or the band is not free.
    pub(super) fn logged(
        &mut self,
        logical: u32,
        offset: u32,
        length: u32,
        band: u32,
        at: u32,
    ) -> Result<bool, &'static str> {
        let head = if self.logs.back() == Some(&band) { self.head } else { 0 };
        if at < head || at + length > self.band_sectors {
            return Err("the run does not lie at the head of its log band");
        }
        if self.logs.back() != Some(&band) {
            self.take(band)?;
            self.logs.push_back(band);
        }
        if self.logs.front() == Some(&band) {
            self.next_merge = self.next_merge.min(logical);
        }
        self.head = at + length;
        self.live[band as usize] += length;
        // Runs never join across the end of a band: a guard may lie between bands whose places are neighbours.
        let place = band * self.band_sectors + at;
        Ok(self.overlay(logical, ShortRun { offset, length, place }, at > 0))
    }

    /// Marks `length` sectors of a logical band as trimmed, from its sector `offset` on. Returns whether a log band
    /// became free, because its last live sector was trimmed.
    pub(super) fn trimmed(&mut self, logical: u32, offset: u32, length: u32) -> bool {
        self.overlay(logical, ShortRun { offset, length, place: ABSENT }, true)
    }

    fn overlay(&mut self, logical: u32, run: ShortRun, may_join: bool) -> bool {
        let (mut runs, mut freed) = (self.runs[logical as usize].take(), false);
        runs.overlay(run, may_join, |_, length, place| {
            freed |= place.is_some_and(|place| self.kill(place, length));
        });
        self.runs[logical as usize] = runs;
        freed
    }

    /// Removes the runs in `from..to` of a logical band. Returns whether a band became free.
    fn forget(&mut self, logical: u32, from: u32, to: u32) -> bool {
        let (mut runs, mut freed) = (self.runs[logical as usize].take(), false);
        runs.remove(from, to, |run| freed |= self.kill(run.place, run.length));
        self.runs[logical as usize] = runs;
        freed
    }

    /// Counts logged sectors as dead, and frees their log band if it has no live sector left. Returns whether the band
    /// became free.
    fn kill(&mut self, place: u32, length: u32) -> bool {
        if place == ABSENT {
            return false;
        }
        let band = place / self.band_sectors;
        self.live[band as usize] -= length;
        if self.live[band as usize] > 0 {
            return false;
        }
        let index =
            self.logs.iter().position(|&log| log == band).expect("invariant 3: only log bands have live sectors");
        if index == 0 {
            self.next_merge = 0;
        }
        if index + 1 == self.logs.len() {
            self.head = self.band_sectors;
        }
        self.logs.remove(index);
        self.free.push_back(band);
        true
    }

    /// Makes the free band `band` the home of a logical band, whose logged sectors were merged into it. The old home
    /// becomes free. Returns whether a band became free.
    ///
    /// # Errors
    ///
    /// A stream is open for the logical band, or `band` is not free.
    pub(super) fn placed(&mut self, logical: u32, band: u32) -> Result<bool, &'static str> {
        if self.stream_of(logical).is_some() {
            return Err("a stream is open there");
        }
        self.take(band)?;
        let freed = self.forget(logical, 0, self.band_sectors);
        Ok(self.settle(logical, band) | freed)
    }

    /// Applies a write of a stream: the first `filled` sectors of a logical band lie in `band`. The first write opens
    /// the stream and takes the free band; a write that fills the band makes it the home of the logical band. Returns
    /// whether a band became free.
    ///
    /// # Errors
    ///
    /// `filled` is 0, more than a band or less than before, the band is not free, or the stream writes to another band.
    pub(super) fn streamed(&mut self, logical: u32, band: u32, filled: u32) -> Result<bool, &'static str> {
        if filled == 0 || filled > self.band_sectors {
            return Err("a stream fills more than its band, or nothing");
        }
        let index = match self.streams.iter().position(|stream| stream.logical == logical) {
            Some(index) => index,
            None => {
                self.take(band)?;
                self.streams.push(Stream { logical, band, filled: 0 });
                self.streams.len() - 1
            }
        };
        let stream = self.streams[index];
        if stream.band != band || filled < stream.filled {
            return Err("the stream is elsewhere, or further on");
        }
        self.streams[index].filled = filled;
        let freed = self.forget(logical, stream.filled, filled);
        if filled < self.band_sectors {
            return Ok(freed);
        }
        self.streams.remove(index);
        Ok(self.settle(logical, band) | freed)
    }

    /// Ends the stream of a logical band and makes its band the home of the logical band: the rest of the band was
    /// copied from the old home and the log. Returns whether a band became free.
    ///
    /// # Errors
    ///
    /// No stream is open for the logical band.
    pub(super) fn completed(&mut self, logical: u32) -> Result<bool, &'static str> {
        let index =
            self.streams.iter().position(|stream| stream.logical == logical).ok_or("no stream is open there")?;
        let stream = self.streams.remove(index);
        let freed = self.forget(logical, stream.filled, self.band_sectors);
        Ok(self.settle(logical, stream.band) | freed)
    }

    /// Sets the number of written sectors of the newest log band to `head`, when a checkpoint is replayed.
    ///
    /// # Errors
    ///
    /// There is no log band, or `head` is more than a band or less than before.
    pub(super) fn filled(&mut self, head: u32) -> Result<(), &'static str> {
        if self.logs.is_empty() || head > self.band_sectors || head < self.head {
            return Err("the newest log band cannot be filled up to there");
        }
        self.head = head;
        Ok(())
    }

    /// Resets the zone: no logical band has a home, and all bands are free. The records of a checkpoint that follow
    /// describe the zone completely.
    pub(super) fn restart(&mut self) {
        let (data, bands) = (self.homes.len(), self.live.len());
        *self = BandZone { homes: vec![NOWHERE; data], ..BandZone::new(data, bands - data, self.band_sectors) };
        self.free = (0..bands as u32).collect();
    }

    fn take(&mut self, band: u32) -> Result<(), &'static str> {
        let index = self.free.iter().position(|&free| free == band).ok_or("its band is not free")?;
        self.free.remove(index);
        Ok(())
    }

    /// Makes `band` the home of a logical band and frees the old home. Returns whether there was an old home.
    fn settle(&mut self, logical: u32, band: u32) -> bool {
        let old = std::mem::replace(&mut self.homes[logical as usize], band);
        if old != NOWHERE {
            self.free.push_back(old);
        }
        old != NOWHERE
    }

    /// Returns the number of the first logical band with live sectors in the oldest log band.
    ///
    /// # Panics
    ///
    /// If there is no log band, or the oldest one has no live sectors.
    pub(super) fn find_merge(&mut self) -> u32 {
        let oldest = self.logs[0];
        let in_oldest = |run: ShortRun| !run.is_absent() && run.place / self.band_sectors == oldest;
        let candidates = &self.runs[self.next_merge as usize..];
        let found = candidates.iter().position(|list| list.runs().any(in_oldest));
        self.next_merge += found.expect("invariant 3: a log band that is not free has live sectors") as u32;
        self.next_merge
    }

    /// Splits the sectors `from..to` of a logical band into parts that lie in one piece. Calls `visit(offset, length,
    /// place)` with each part in order; `place` is `None` if the part is trimmed.
    pub(super) fn for_each_place(
        &self,
        logical: u32,
        from: u32,
        to: u32,
        mut visit: impl FnMut(u32, u32, Option<u32>),
    ) {
        let stream = self.stream_of(logical);
        let home = self.homes[logical as usize] * self.band_sectors;
        self.runs[logical as usize].cover(from, to, |offset, length, place| match (place, stream) {
            (Some(ABSENT), _) => visit(offset, length, None),
            (Some(place), _) => visit(offset, length, Some(place)),
            (None, Some(stream)) if offset < stream.filled => {
                let streamed = length.min(stream.filled - offset);
                visit(offset, streamed, Some(stream.band * self.band_sectors + offset));
                if streamed < length {
                    visit(offset + streamed, length - streamed, Some(home + offset + streamed));
                }
            }
            (None, _) => visit(offset, length, Some(home + offset)),
        });
    }

    pub(super) fn measured_bytes(&self) -> u64 {
        let lists: u64 = self.runs.iter().map(RunList::measured_bytes).sum();
        let words = self.homes.len() + self.free.capacity() + self.logs.capacity() + self.live.len();
        let headers = self.runs.len() * std::mem::size_of::<RunList>();
        let streams = self.streams.capacity() * std::mem::size_of::<Stream>();
        lists + (words * 4 + headers + streams + std::mem::size_of::<BandZone>()) as u64
    }
}
