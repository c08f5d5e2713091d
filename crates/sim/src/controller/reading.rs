//! Reading into a segment, and reading on after the requested sectors: track by track, computed only as far as a caller
//! needs.
//!
//! Invariants:
//! 1. Sectors are read in order; the time of each is fixed once the pass over its track has begun.
//! 2. No pass is computed before a caller asks for a time at which it has begun.

use imbrex_disk::{Actuator, Direction, Extent, Pass, Passing, Pba, Sectors, SimDuration, SimTime};

/// A run of sectors being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Index of the buffer's segment into which the sectors are read.
    pub segment: usize,
    /// LBA minus PBA, wrapping: constant, because the sectors are one run on the medium.
    pub offset: u64,
    /// Pass over the current track; `pass_start` is the LBA of its first sector.
    pass: Pass,
    pass_start: u64,
    /// LBA before which the drive stops reading by itself.
    pub limit: u64,
    on_arrival: bool,
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
    /// Begins to read at LBA `start` at time `now`, up to `limit`. Returns the reading and the times of its first
    /// track.
    pub(super) fn begin(
        actuator: &mut Actuator,
        now: SimTime,
        segment: usize,
        start: u64,
        limit: u64,
        offset: u64,
        on_arrival: bool,
    ) -> (Reading, Spent) {
        let pass = actuator.pass(now, &passing(start, limit, offset, on_arrival));
        let mut spent = Spent::default();
        spent.add(now, &pass);
        (Reading { segment, offset, pass, pass_start: start, limit, on_arrival }, spent)
    }

    /// Returns the LBA at which the current track ends.
    fn pass_end(&self) -> u64 {
        self.pass_start + self.pass.piece.sectors as u64
    }

    /// Continues on the next track, and returns the times of that track.
    fn go_on(&mut self, actuator: &mut Actuator) -> Spent {
        let (from, start) = (self.pass.ends, self.pass_end());
        self.pass = actuator.pass(from, &passing(start, self.limit, self.offset, self.on_arrival));
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
        while self.pass_end() < self.limit && self.pass.ends < time {
            self.go_on(actuator);
        }
        self.reached(time)
    }

    /// Returns whether the reading has reached its limit at `time`.
    pub(super) fn is_over(&self, time: SimTime) -> bool {
        self.reached(time) >= self.limit
    }

    /// Extends the reading to a farther limit. If the current track was to end at the old limit, its pass is extended
    /// too.
    pub(super) fn extend(&mut self, actuator: &Actuator, limit: u64) {
        if limit <= self.limit {
            return;
        }
        if self.pass_end() == self.limit {
            let start = Pba(self.pass_start.wrapping_sub(self.offset));
            let piece = actuator.disk().geometry.piece(start, Sectors(limit - self.pass_start));
            let ends = self.pass.begins + SimDuration(piece.transfer_ns as u64);
            self.pass = Pass { piece, ends, ..self.pass };
        }
        self.limit = limit;
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

fn passing(start: u64, limit: u64, offset: u64, on_arrival: bool) -> Passing {
    let extent = Extent::new(Pba(start.wrapping_sub(offset)), Sectors(limit - start));
    Passing { direction: Direction::Read, extent, on_arrival, seek_min: SimDuration::ZERO }
}
