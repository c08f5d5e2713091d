//! Transfer of a read's data to the host: over the bus while they are read from the medium. The drive leaves the bus
//! and takes it again as its description states.

use imbrex_disk::profile::{Controller, WatermarkOf};
use imbrex_disk::{Actuator, SimDuration, SimTime};

use super::reading::{Reading, Spent};

/// Data on their way to the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    /// First LBA of the read.
    pub start: u64,
    /// One past the last LBA of the read.
    pub end: u64,
    /// One past the last LBA of the read that was in the buffer when the read arrived; the first LBA of the read if
    /// none was.
    pub held_until: u64,
    /// Time at which the drive, holding the bus, begins to send; or, if it has left the bus, the earliest time at which
    /// it may take the bus.
    pub from: SimTime,
    /// Whether the drive holds the bus at the time `from`.
    pub connected: bool,
    /// Time that the drive takes to leave the bus, each time it waits for the medium.
    pub disconnect: SimDuration,
}

/// Source of the data that are not in the buffer yet.
pub(super) struct Medium<'a> {
    /// The actuator, which moves the head to further tracks of the reading.
    pub actuator: &'a mut Actuator,
    /// The reading of sectors from the platters in progress; `None` if the buffer has all sectors of the read.
    pub reading: Option<&'a mut Reading>,
    /// Simulated time that arm and platter have taken so far for the sectors of the read.
    pub spent: Spent,
}

impl Medium<'_> {
    /// Returns when all sectors before `end` are in the buffer.
    fn time_of(&mut self, end: u64, outgoing: &Outgoing) -> SimTime {
        if end <= outgoing.held_until {
            return SimTime::ZERO;
        }
        let reading = self.reading.as_mut().expect("sectors missing from the buffer are being read");
        reading.time_of(self.actuator, end, &mut self.spent)
    }

    /// Returns the LBA before which all sectors are in the buffer at `time`.
    fn reached(&mut self, time: SimTime, outgoing: &Outgoing) -> u64 {
        let reached = self.reading.as_ref().map_or(outgoing.held_until, |reading| reading.reached(time));
        reached.max(outgoing.held_until).min(outgoing.end)
    }
}

/// Sends the data over the bus, and returns when the last sector is sent.
pub(super) fn carry(
    controller: &Controller,
    medium: &mut Medium<'_>,
    outgoing: &Outgoing,
    segment_sectors: u64,
) -> SimTime {
    let sector_ns = controller.bus_read_sector_ns;
    let watermark = watermark(controller, outgoing.end - outgoing.start, segment_sectors);
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
            // Sends sector by sector if the bus is faster than the medium; otherwise the remaining sectors are in the
            // buffer by then.
            at = at.max(medium.time_of(out + 1, outgoing));
        } else {
            at += outgoing.disconnect;
            connected = false;
        }
    }
    at
}

/// Returns whether leaving the bus and taking it again takes no time, so that the result equals that of keeping the
/// bus.
fn leaving_is_free(controller: &Controller, outgoing: &Outgoing) -> bool {
    outgoing.disconnect.is_zero()
        && controller.reselect_ns == 0
        && controller.data_prepare_ns == 0
        && controller.read_watermark == 0.0
}

/// Returns the number of sectors of a read of `asked` sectors that must be in the buffer before the drive takes the bus.
pub(super) fn watermark(controller: &Controller, asked: u64, segment_sectors: u64) -> u64 {
    let sectors = match controller.watermark_of {
        WatermarkOf::Request => (asked.min(segment_sectors) as f64 * controller.read_watermark) as u64,
        WatermarkOf::Segment => (segment_sectors as f64 * controller.read_watermark).ceil() as u64,
    };
    sectors.max(1)
}
