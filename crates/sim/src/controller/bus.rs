//! A read's data on their way to the host: over the bus as they come off the medium, leaving the bus and taking it again as
//! the drive does.

use imbrex_disk::profile::{Controller, WatermarkOf};
use imbrex_disk::{Actuator, SimDuration, SimTime};

use super::reading::{Reading, Spent};

/// Data on their way to the host.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// The first LBA asked for.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// One past the last LBA that was in the buffer already when the read came.
    pub held_until: u64,
    /// When the drive has the bus and begins; or, where it has left it, the earliest time at which it may take it again.
    pub from: SimTime,
    /// Whether the drive holds the bus now.
    pub connected: bool,
    /// Leaving the bus.
    pub disconnect: SimDuration,
}

/// Where data come from besides the buffer.
pub struct Medium<'a> {
    /// The actuator.
    pub actuator: &'a mut Actuator,
    /// What is being read, where anything is missing.
    pub reading: Option<&'a mut Reading>,
    /// The time that arm and platter spent on it.
    pub spent: Spent,
}

impl Medium<'_> {
    /// When all before `end` is in the buffer.
    fn time_of(&mut self, end: u64, outgoing: &Outgoing) -> SimTime {
        if end <= outgoing.held_until {
            return SimTime::ZERO;
        }
        let reading = self.reading.as_mut().expect("what the buffer lacks is being read");
        reading.time_of(self.actuator, end, &mut self.spent)
    }

    /// The LBA before which all is in the buffer at `time`.
    fn reached(&mut self, time: SimTime, outgoing: &Outgoing) -> u64 {
        let reached = self.reading.as_ref().map_or(outgoing.held_until, |reading| reading.reached(time));
        reached.max(outgoing.held_until).min(outgoing.end)
    }
}

/// Carries the data; says when the last has gone.
pub fn carry(controller: &Controller, medium: &mut Medium<'_>, outgoing: &Outgoing, segment_sectors: u64) -> SimTime {
    let sector_ns = controller.bus_read_sector_ns;
    let watermark = watermark(controller, outgoing, segment_sectors);
    let take_ns = controller.reselect_ns + controller.data_prepare_ns;
    let (mut at, mut out, mut connected) = (outgoing.from, outgoing.start, outgoing.connected);
    while out < outgoing.end {
        if !connected {
            let enough = (out + watermark).min(outgoing.end);
            at = at.max(medium.time_of(enough, outgoing)) + SimDuration(take_ns);
            connected = true;
        }
        let reached = medium.reached(at, outgoing);
        if reached > out {
            at += SimDuration(sector_ns * (reached - out));
            out = reached;
        } else if controller.holds_bus_reading || controller.never_disconnects || leaving_is_free(controller, outgoing)
        {
            // Sector by sector where the bus is the faster; else the rest has come by the time it is asked for.
            at = at.max(medium.time_of(out + 1, outgoing));
        } else {
            at += outgoing.disconnect;
            connected = false;
        }
    }
    at
}

/// Whether leaving the bus and taking it again costs nothing, so that it need not be told apart from keeping it.
fn leaving_is_free(controller: &Controller, outgoing: &Outgoing) -> bool {
    outgoing.disconnect.is_zero()
        && controller.reselect_ns == 0
        && controller.data_prepare_ns == 0
        && controller.read_watermark == 0.0
}

/// Sectors that have to be there before the bus is taken.
fn watermark(controller: &Controller, outgoing: &Outgoing, segment_sectors: u64) -> u64 {
    let asked = (outgoing.end - outgoing.start).min(segment_sectors) as f64;
    let sectors = match controller.watermark_of {
        WatermarkOf::Request => (asked * controller.read_watermark) as u64,
        WatermarkOf::Segment => (segment_sectors as f64 * controller.read_watermark).ceil() as u64,
    };
    sectors.max(1)
}
