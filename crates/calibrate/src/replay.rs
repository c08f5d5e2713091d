//! Playing a measurement to a simulated drive: the same requests, issued at the same times, and how long each takes there.

use imbrex_disk::SimDuration;
use imbrex_sim::{Arrival, Drive, Engine, Fit, IoRecord, Observer, Options};
use imbrex_trace::{Recorded, TraceError};

use crate::measured::Measured;

/// What a simulated drive made of a request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Simulated {
    /// From entry to completion.
    pub taken: SimDuration,
    /// Of it, the arm.
    pub seek: SimDuration,
    /// The wait for the sector.
    pub rotation: SimDuration,
    /// Cylinders the arm passed.
    pub distance: u32,
    /// Whether arm and platter had no part in the answer.
    pub hit: bool,
    /// Whether it was served: a request past the end of the drive is not.
    pub served: bool,
}

/// Keeps the time of each request.
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

/// Plays `measured` to `drive`; the times are in the order of the requests.
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
