//! Reading into a segment, and on after what was asked: track by track, worked out only as far as somebody asks.
//!
//! Invariants:
//! 1. Sectors are read in order; the time of each is fixed once the pass over its track has begun.
//! 2. No pass begins before somebody asks for a time at which it has begun.

use imbrex_disk::{Actuator, Direction, Extent, Pass, Passing, Pba, Sectors, SimDuration, SimTime};

/// A run of sectors being read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The segment it goes into.
    pub segment: usize,
    /// LBA less PBA, wrapping: the run is one on the medium.
    pub offset: u64,
    /// The current track, and the LBA at which its sectors begin.
    pass: Pass,
    pass_start: u64,
    /// LBA at which the drive stops by itself.
    pub limit: u64,
    on_arrival: bool,
}

/// How arm and platter spent the time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Spent {
    /// Time for moving the arm.
    pub seek: SimDuration,
    /// Time for waiting until a sector passes.
    pub rotation: SimDuration,
    /// Time for sectors to pass.
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
    /// Begins at LBA `start` at time `now`, up to `limit`.
    pub fn begin(
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

    /// The LBA at which the current track ends.
    fn pass_end(&self) -> u64 {
        self.pass_start + self.pass.piece.sectors as u64
    }

    /// Goes on to the next track.
    fn go_on(&mut self, actuator: &mut Actuator) -> Spent {
        let (from, start) = (self.pass.ends, self.pass_end());
        self.pass = actuator.pass(from, &passing(start, self.limit, self.offset, self.on_arrival));
        self.pass_start = start;
        let mut spent = Spent::default();
        spent.add(from, &self.pass);
        spent
    }

    /// When all sectors before LBA `end` have been read; `end` is not past the limit.
    pub fn time_of(&mut self, actuator: &mut Actuator, end: u64, spent: &mut Spent) -> SimTime {
        while self.pass_end() < end {
            let more = self.go_on(actuator);
            spent.seek += more.seek;
            spent.rotation += more.rotation;
            spent.transfer += more.transfer;
        }
        self.pass.passed_at(end.saturating_sub(self.pass_start))
    }

    /// The LBA before which all has been read at `time`, as far as passes have begun.
    pub fn reached(&self, time: SimTime) -> u64 {
        self.pass_start + self.pass.passed_by(time)
    }

    /// Goes on until `time` as a drive does that nobody disturbs, and says how far it came.
    pub fn until(&mut self, actuator: &mut Actuator, time: SimTime) -> u64 {
        while self.pass_end() < self.limit && self.pass.ends < time {
            self.go_on(actuator);
        }
        self.reached(time)
    }

    /// Whether it has come to its limit.
    pub fn is_over(&self, time: SimTime) -> bool {
        self.reached(time) >= self.limit
    }

    /// Reads on to a farther limit. The current track is taken up again where it was to end before its time.
    pub fn extend(&mut self, actuator: &Actuator, limit: u64) {
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

    /// When the arm is free for something else, if it is wanted at `time`.
    pub fn stopped_at(&self, time: SimTime, within_sector: bool) -> SimTime {
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
