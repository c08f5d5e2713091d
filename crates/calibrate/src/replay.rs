//! Replays a measurement on a simulated drive: issues the requests at the measured times, and records how long each
//! takes.

use imbrex_disk::SimDuration;
use imbrex_sim::{Arrival, Drive, Engine, Fit, IoRecord, Observer, Options};
use imbrex_trace::{Recorded, TraceError};

use crate::measured::Measured;

/// Result of simulating one measured request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Simulated {
    /// Simulated time from the entry of the request into the drive's queue to its completion.
    pub taken: SimDuration,
    /// Simulated time of the request during which the arm moved or settled; part of `taken`.
    pub seek: SimDuration,
    /// Simulated time of the request during which the head waited for the sector to rotate to it; part of `taken`.
    pub rotation: SimDuration,
    /// Distance between the positions of the head after this request and after the one that completed before it, in
    /// cylinders. For the first request, the distance from the outermost cylinder.
    pub distance: u32,
    /// Whether the request was answered without access to the medium: no seek, no rotational wait and no transfer.
    pub hit: bool,
    /// Whether the request was served. False if the drive rejected it, for example because it lies past the end of the
    /// drive; then all other fields are 0 or false.
    pub served: bool,
}

/// Records the time of each request.
struct Times {
    simulated: Vec<Simulated>,
    radial_track: u32,
}

impl Observer for Times {
    fn io(&mut self, record: &IoRecord) {
        let entry = &mut self.simulated[record.sequence as usize];
        let time = &record.time;
        *entry = Simulated {
            taken: record.end.since(record.entry),
            seek: time.seek,
            rotation: time.rotation,
            distance: record.radial_track.abs_diff(self.radial_track),
            hit: (time.seek + time.rotation + time.transfer).is_zero(),
            served: true,
        };
        self.radial_track = record.radial_track;
    }

    fn wants_ios(&self) -> bool {
        true
    }
}

/// Simulates the requests of `measured` on `drive`. If never more than one was in flight, each is issued as long after
/// the completion of the previous one as in the measurement. Otherwise each is issued at its measured time, as long as
/// fewer are in flight than the maximum of the measurement. If a request has to wait for a completion, all later ones
/// are delayed as much, so that they keep their distances in time. Returns one result for each request, in the order of
/// the requests.
///
/// # Errors
///
/// The simulation fails.
pub fn replay(measured: &Measured, drive: Drive) -> Result<Vec<Simulated>, TraceError> {
    let mut options = Options::live(&drive);
    options.fit = Fit::Reject;
    options.arrival = match measured.depth() {
        1 => Arrival::Closed(1),
        depth => Arrival::FixedQueue(u32::try_from(depth).unwrap_or(u32::MAX)),
    };
    let mut kept = Times { simulated: vec![Simulated::default(); measured.requests.len()], radial_track: 0 };
    let source = Recorded::new(measured.workload());
    Engine::new(drive, options, source, &mut kept).run()?;
    Ok(kept.simulated)
}
