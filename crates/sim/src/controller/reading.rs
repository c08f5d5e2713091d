//! Reading into a segment, and reading on after the requested sectors: track by track, computed only as far as a caller
//! needs.
//!
//! Invariants:
//! 1. Sectors are read in order; the time of each is fixed once the pass over its track has begun.
//! 2. No pass is computed before a caller asks for a time at which it has begun.
//! 3. Only requested sectors are taken on arrival. Sectors read on are taken in order, since the drive does not keep
//!    those that pass before the request is complete.

use imbrex_disk::{Actuator, Direction, Extent, Pass, Passing, Pba, Sectors, SimDuration, SimTime};

/// The sectors to be read, and the way to read them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Index of the buffer's segment into which the sectors are read.
    pub segment: usize,
    /// LBA minus PBA, wrapping: constant, because the sectors are one run on the medium.
    pub offset: u64,
    /// LBA of the first sector to be read.
    pub start: u64,
    /// One past the last LBA that was requested; the sectors from there on are read on.
    pub requested_end: u64,
    /// LBA at which the drive stops by itself.
    pub limit: u64,
    /// Whether requested sectors are taken in the order in which they pass.
    pub on_arrival: bool,
}

impl Wanted {
    /// Returns whether the sectors from LBA `start` on are taken in the order in which they pass.
    fn is_on_arrival(&self, start: u64) -> bool {
        self.on_arrival && start < self.requested_end
    }

    /// Returns the pass that begins at LBA `start`.
    fn passing(&self, start: u64) -> Passing {
        let on_arrival = self.is_on_arrival(start);
        let end = if on_arrival { self.requested_end.min(self.limit) } else { self.limit };
        let extent = Extent::new(Pba(start.wrapping_sub(self.offset)), Sectors(end - start));
        Passing { direction: Direction::Read, extent, on_arrival, seek_min: SimDuration::ZERO }
    }
}

/// A run of sectors being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    wanted: Wanted,
    /// Pass over the current track; `pass_start` is the LBA of its first sector.
    pass: Pass,
    pass_start: u64,
}

/// Time of arm and platter, by part.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Spent {
    /// Total simulated time of moving the arm, switching heads and settling.
    pub seek: SimDuration,
    /// Total simulated time of waiting, on each track, until the first sector passes the head; of a write, also that of
    /// the rotations lost because data arrive late.
    pub rotation: SimDuration,
    /// Total simulated time in which the sectors pass the head.
    pub transfer: SimDuration,
}

impl Spent {
    fn add(&mut self, from: SimTime, pass: &Pass) {
        self.seek += pass.on_track.since(from);
        self.rotation += pass.begins.since(pass.on_track);
        self.transfer += pass.ends.since(pass.begins);
    }
}

impl Reading {
    /// Begins to read the wanted sectors at time `now`. Returns the reading and the times of its first track.
    pub(super) fn begin(actuator: &mut Actuator, now: SimTime, wanted: &Wanted) -> (Reading, Spent) {
        let pass = actuator.pass(now, &wanted.passing(wanted.start));
        let mut spent = Spent::default();
        spent.add(now, &pass);
        (Reading { wanted: *wanted, pass, pass_start: wanted.start }, spent)
    }

    /// Returns the segment into which the sectors are read.
    pub(super) fn segment(&self) -> usize {
        self.wanted.segment
    }

    /// Returns LBA minus PBA of the sectors, wrapping.
    pub(super) fn offset(&self) -> u64 {
        self.wanted.offset
    }

    /// Returns the LBA at which the drive stops by itself.
    pub(super) fn limit(&self) -> u64 {
        self.wanted.limit
    }

    /// Returns the number of sectors directly before the first one, of at most `most` on its track, that pass while the
    /// head waits for the first one.
    pub(super) fn passes_before(&self, most: u64) -> u64 {
        let wait_ns = self.pass.begins.since(self.pass.on_track).0;
        let (sectors, transfer_ns) = (self.pass.piece.sectors as u64, self.pass.piece.transfer_ns as u64);
        (wait_ns * sectors / transfer_ns.max(1)).min(most)
    }

    /// Returns the LBA at which the current track ends.
    fn pass_end(&self) -> u64 {
        self.pass_start + self.pass.piece.sectors as u64
    }

    /// Continues on the next track, and returns the times of that track.
    fn go_on(&mut self, actuator: &mut Actuator) -> Spent {
        let (from, start) = (self.pass.ends, self.pass_end());
        self.pass = actuator.pass(from, &self.wanted.passing(start));
        self.pass_start = start;
        let mut spent = Spent::default();
        spent.add(from, &self.pass);
        spent
    }

    /// Returns when all sectors before LBA `end` have been read; `end` is not past the limit. Adds the times of further
    /// tracks to `spent`.
    pub(super) fn time_of(&mut self, actuator: &mut Actuator, end: u64, spent: &mut Spent) -> SimTime {
        while self.pass_end() < end {
            let more = self.go_on(actuator);
            spent.seek += more.seek;
            spent.rotation += more.rotation;
            spent.transfer += more.transfer;
        }
        self.pass.passed_at(end.saturating_sub(self.pass_start))
    }

    /// Returns the LBA before which all sectors have been read at `time`, as far as passes have begun.
    pub(super) fn reached(&self, time: SimTime) -> u64 {
        self.pass_start + self.pass.passed_by(time)
    }

    /// Continues undisturbed until `time`, and returns the LBA before which all sectors have been read.
    pub(super) fn until(&mut self, actuator: &mut Actuator, time: SimTime) -> u64 {
        while self.pass_end() < self.wanted.limit && self.pass.ends < time {
            self.go_on(actuator);
        }
        self.reached(time)
    }

    /// Returns whether the reading has reached its limit at `time`.
    pub(super) fn is_over(&self, time: SimTime) -> bool {
        self.reached(time) >= self.wanted.limit
    }

    /// Extends the reading to a farther limit. If the current track was to end at the old limit, its pass is extended
    /// too.
    pub(super) fn extend(&mut self, actuator: &Actuator, limit: u64) {
        if limit <= self.wanted.limit {
            return;
        }
        if self.pass_end() == self.wanted.limit && !self.wanted.is_on_arrival(self.pass_start) {
            let start = Pba(self.pass_start.wrapping_sub(self.wanted.offset));
            let piece = actuator.disk().geometry.piece(start, Sectors(limit - self.pass_start));
            let ends = self.pass.begins + SimDuration(piece.transfer_ns as u64);
            self.pass = Pass { piece, ends, ..self.pass };
        }
        self.wanted.limit = limit;
    }

    /// Returns when the arm is free for another command that needs it at `time`.
    pub(super) fn stopped_at(&self, time: SimTime, within_sector: bool) -> SimTime {
        if time < self.pass.on_track {
            return self.pass.on_track;
        }
        if within_sector || time <= self.pass.begins || time >= self.pass.ends {
            return time;
        }
        self.pass.passed_at(self.pass.passed_by(time) + 1).max(time)
    }
}
