//! Writing a run: sectors arrive over the bus one after the other, and each is written when it passes after its
//! arrival. If the bus is slower than the medium, the drive loses a rotation and continues at the same sector.

use imbrex_disk::{Actuator, Direction, Extent, Pass, Passing, Sectors, SimDuration, SimTime};

use super::reading::Spent;

/// Arrival of the data of a write over the bus.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    /// Simulated time at which the first sector of the write begins to arrive over the bus.
    pub from: SimTime,
    /// Time that one sector takes on the bus.
    pub sector: SimDuration,
    /// Number of sectors of the write that must have arrived over the bus before any is written.
    pub start: u64,
}

impl Incoming {
    /// Returns when the first `sectors` sectors have arrived.
    pub(super) fn come(&self, sectors: u64) -> SimTime {
        self.from + SimDuration(self.sector.0 * sectors)
    }

    /// Returns when the first `sectors` sectors may be written.
    fn ready(&self, sectors: u64) -> SimTime {
        self.come(sectors.max(self.start))
    }
}

/// A run to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Put {
    /// Physical sectors to be written, one run.
    pub extent: Extent,
    /// Simulated time at which the arm begins to move for the write.
    pub from: SimTime,
    /// Minimum time of the arm's move to the first track; a shorter move takes this time.
    pub seek_min: SimDuration,
    /// Whether the sectors of a track may be written in the order in which they pass the head. Otherwise the first one
    /// comes first.
    pub on_arrival: bool,
}

/// Writes a run. Returns when its last sector is written, and the times of arm and platter until then.
pub(super) fn write(actuator: &mut Actuator, put: &Put, incoming: &Incoming) -> (SimTime, Spent) {
    let (mut now, mut done, mut spent) = (put.from, 0, Spent::default());
    let mut seek_min = put.seek_min;
    while done < put.extent.sectors.0 {
        let extent = Extent::new(put.extent.start + Sectors(done), put.extent.sectors - Sectors(done));
        let passing = Passing { direction: Direction::Write, extent, on_arrival: put.on_arrival, seek_min };
        let pass = actuator.pass(now, &passing);
        let rotation = SimDuration(actuator.disk().geometry.rotation_ns() as u64);
        let (ends, lost) = put_down(&pass, incoming, done, rotation);
        spent.seek += pass.on_track.since(now);
        spent.rotation += pass.begins.since(pass.on_track) + lost;
        spent.transfer += pass.ends.since(pass.begins);
        done += pass.piece.sectors as u64;
        now = ends;
        seek_min = SimDuration::ZERO;
    }
    (now, spent)
}

/// Returns when the sectors of `pass` are written, and the rotations lost; `before` sectors of the run precede them.
fn put_down(pass: &Pass, incoming: &Incoming, before: u64, rotation: SimDuration) -> (SimTime, SimDuration) {
    let (mut pass, mut lost, sectors) = (*pass, SimDuration::ZERO, pass.piece.sectors as u64);
    let mut next = 0;
    while let Some(late) = first_late(&pass, incoming, before, next) {
        let needed = incoming.ready(before + late + 1).since(pass.passed_at(late));
        let wait = SimDuration(needed.0.div_ceil(rotation.0.max(1)) * rotation.0);
        pass = pass.later(wait);
        lost += wait;
        next = late;
        if next + 1 >= sectors {
            break;
        }
    }
    (pass.ends, lost)
}

/// Returns the first sector from `next` on that passes before it has arrived. Both times are linear in the sector's
/// number, so a bisection finds the sector.
fn first_late(pass: &Pass, incoming: &Incoming, before: u64, next: u64) -> Option<u64> {
    let is_late = |sector: u64| incoming.ready(before + sector + 1) > pass.passed_at(sector);
    let last = pass.piece.sectors as u64 - 1;
    if is_late(next) {
        return Some(next);
    }
    if !is_late(last) {
        return None;
    }
    let (mut on_time, mut late) = (next, last);
    while late - on_time > 1 {
        let middle = on_time + (late - on_time) / 2;
        *(if is_late(middle) { &mut late } else { &mut on_time }) = middle;
    }
    Some(late)
}
