//! Replays a measurement on a simulated drive: issues the requests at the measured times, and records how long each
//! takes.

use imbrex_disk::SimDuration;
use imbrex_sim::{Arrival, Drive, Engine, Fit, IoRecord, Observer, Options};
use imbrex_trace::{Recorded, TraceError};

use crate::measured::Measured;

/// Result of a request on a simulated drive.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Simulated {
    /// Time from entry to completion.
    pub taken: SimDuration,
    /// Seek time, a part of `taken`.
    pub seek: SimDuration,
    /// Rotational wait, a part of `taken`.
    pub rotation: SimDuration,
    /// Seek distance, cylinders.
    pub distance: u32,
    /// Whether the request was answered without seek, rotational wait and transfer.
    pub hit: bool,
    /// Whether the request was served: one past the end of the drive is not.
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

/// Replays `measured` on `drive`; returns the results in the order of the requests.
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
