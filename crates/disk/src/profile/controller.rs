//! The controller of a drive in a profile: the time of each kind of command, the transfer of data over the bus while
//! the medium moves, and the segments of the buffer. Without this section a drive has one overhead for every command, a
//! bus that takes no time, and the caches of `[host]`.
//!
//! The properties are those of the DiskSim 4.0 reference manual (CMU-PDL-08-101, §3.4.5), which suffice to distinguish
//! real drives. The importer translates the manual's names if they differ.
//!
//! Invariants (of a checked controller):
//! 1. There is a segment for reads, and one more if writes have their own.
//! 2. Shares lie between 0 and 1.

use serde::{Deserialize, Serialize};

/// Maximum time of a single step of a controller, in nanoseconds: a second is longer than any drive takes.
const STEP_NS_MAX: u64 = 1_000_000_000;

/// The point up to which the drive reads on: reads further sectors into the buffer after those of a read, without a
/// request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadOn {
    /// The drive reads no sectors behind the request, apart from the minimum `read_on_min_sectors`.
    #[default]
    None,
    /// To the end of the track of the last requested sector, but at most `read_on_max_sectors` sectors behind the
    /// request.
    Track,
    /// To the end of the cylinder of the last requested sector, but at most `read_on_max_sectors` sectors behind the
    /// request.
    Cylinder,
    /// Until the buffer segment is full; or, if `read_on_max_sectors` is not 0, that number of sectors behind the
    /// request.
    Segment,
    /// To the end of the track of the first sector after the request; one track further if the segment also holds
    /// sectors from before that track. If `read_on_max_sectors` is not 0, at most that number of sectors behind the
    /// request. If it is 0, the drive reads to the end even of a track that the segment does not hold, and the segment
    /// keeps the last sectors.
    NextTrack,
}

/// Condition under which a write is reported as complete before it is on the medium, once its data are in the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImmediateReport {
    /// No write is reported early.
    #[default]
    Never,
    /// Every write without FUA is reported early. Writes that each continue where the last one ended form a stream, and
    /// are transferred while the stream is being written. Any other request waits until the stream is on the medium.
    Stream,
    /// Accepted for profiles in the terms of DiskSim; the simulator treats it like `Stream`.
    Mixed,
}

/// The number of sectors of which `read_watermark` and `write_watermark` are shares: that of the request, or that of a
/// segment of the buffer. The read watermark is the share that must be in the buffer before the drive takes the bus to
/// send.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatermarkOf {
    /// The number of sectors of the request, at most those of a segment.
    #[default]
    Request,
    /// The number of sectors of a buffer segment.
    Segment,
}

/// Times of a drive that leaves the bus after a write command, before any data. The drive does so for a write that
/// follows another write and does not continue it, if the arm is free.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExtraDisconnect {
    /// Time to process the command in nanoseconds, in place of `write_hit_…` and `write_miss_…`.
    pub command_ns: u64,
    /// Time to leave the bus the first time, before the data, in nanoseconds.
    pub disconnect_ns: u64,
    /// Time in nanoseconds from leaving the bus until the drive asks for it again.
    pub pause_ns: u64,
    /// Time to leave the bus the second time, after the data, in nanoseconds.
    pub second_disconnect_ns: u64,
    /// Delay in nanoseconds from the end of `command_ns` until the arm may begin to move.
    pub seek_delay_ns: u64,
    /// Number of sectors of a short write that must have arrived over the bus before the drive begins to write.
    pub start_sectors: u32,
    /// Number of sectors of a long write that must have arrived over the bus before the drive begins to write.
    pub long_start_sectors: u32,
    /// Length in sectors from which on a write counts as long.
    pub long_from_sectors: u32,
}

/// The detailed controller of a drive in its profile. All times are in nanoseconds. The properties are those of the
/// DiskSim 4.0 reference manual, §3.4.5, some of them under other names.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Controller {
    /// Time in nanoseconds to process any command, before all else.
    pub command_ns: u64,
    /// Time in nanoseconds to process a read that is served from the buffer at once, if the command before was a read.
    pub read_hit_after_read_ns: u64,
    /// Time in nanoseconds to process a read that is served from the buffer at once, if the command before was no read.
    pub read_hit_after_write_ns: u64,
    /// Time in nanoseconds to process a read not found in the buffer, before the arm moves, if the command before was a
    /// read.
    pub read_miss_after_read_ns: u64,
    /// Time in nanoseconds to process a read not found in the buffer, before the arm moves, if the command before was
    /// no read.
    pub read_miss_after_write_ns: u64,
    /// Time in nanoseconds to process a write that is reported early, before data and arm move, if the command before
    /// was a read.
    pub write_hit_after_read_ns: u64,
    /// Time in nanoseconds to process a write that is reported early, before data and arm move, if the command before
    /// was no read.
    pub write_hit_after_write_ns: u64,
    /// Time in nanoseconds to process a write that is reported once it is on the medium, before data and arm move, if
    /// the command before was a read.
    pub write_miss_after_read_ns: u64,
    /// Time in nanoseconds to process a write that is reported once it is on the medium, before data and arm move, if
    /// the command before was no read.
    pub write_miss_after_write_ns: u64,
    /// Time in nanoseconds to report a read as complete, after its last sector was sent to the host.
    pub read_complete_ns: u64,
    /// Time in nanoseconds to report a write as complete, after its data have arrived over the bus (early report) or
    /// are on the medium.
    pub write_complete_ns: u64,
    /// Time in nanoseconds to prepare data for the bus, each time the drive takes the bus.
    pub data_prepare_ns: u64,
    /// Time in nanoseconds to take the bus again after the drive has left it.
    pub reselect_ns: u64,
    /// Time in nanoseconds to take the bus again for the report of a write with an extra disconnect.
    pub reselect_again_ns: u64,
    /// Time in nanoseconds to leave the bus during a read, if the command before was a read.
    pub read_disconnect_after_read_ns: u64,
    /// Time in nanoseconds to leave the bus during a read, if the command before was no read.
    pub read_disconnect_after_write_ns: u64,
    /// Time in nanoseconds to leave the bus during a write.
    pub write_disconnect_ns: u64,
    /// Times of leaving the bus before the data of some writes; `None` if the drive never does so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_disconnect: Option<ExtraDisconnect>,
    /// Minimum time in nanoseconds of the arm's move to a write, unless the write continues a stream of writes reported
    /// early.
    pub write_seek_min_ns: u64,
    /// Time in nanoseconds of one sector on the bus towards the host.
    pub bus_read_sector_ns: u64,
    /// Time in nanoseconds of one sector on the bus towards the drive.
    pub bus_write_sector_ns: u64,
    /// Whether the drive keeps the bus from the arrival of a command to the report of its completion.
    pub never_disconnects: bool,
    /// Whether the drive keeps the bus while a read waits for the medium.
    pub holds_bus_reading: bool,
    /// Whether the drive keeps the bus while a write waits for room. The simulator does not use this value.
    pub holds_bus_writing: bool,
    /// Share (0 to 1) of `watermark_of` that has to be in the buffer before the drive takes the bus to send a read's
    /// data; at least one sector.
    pub read_watermark: f64,
    /// Share (0 to 1) of `watermark_of` that may still be dirty when the drive takes the bus again. The simulator does
    /// not use this value.
    pub write_watermark: f64,
    /// The quantity of which the watermarks are shares: the request or a segment.
    pub watermark_of: WatermarkOf,
    /// Number of segments of the buffer: 1 to 4096, at least 2 with `own_write_segment`.
    pub segments: u32,
    /// Number of sectors that a segment of the buffer holds; at least 1.
    pub segment_sectors: u32,
    /// Whether one of the buffer's segments is reserved for writes; reads never find its data.
    pub own_write_segment: bool,
    /// Whether later reads may find data in the segments. If not, segments only buffer data between medium and bus.
    pub caches: bool,
    /// Point up to which the drive reads on after a read: reads further sectors into the buffer, without a request.
    /// `read_on_min_sectors` and `read_on_max_sectors` limit the number of sectors.
    pub read_on: ReadOn,
    /// Minimum number of sectors after a read that the drive reads into the buffer before it serves another command,
    /// except a read that finds sectors in the segment being read into; fewer only at the end of the disk. It wins over
    /// `read_on` and `read_on_max_sectors`.
    pub read_on_min_sectors: u32,
    /// Maximum number of sectors behind a read that the drive reads into the buffer without a request; 0 means the size
    /// of a segment, or no limit with `read_on = "next-track"`.
    pub read_on_max_sectors: u32,
    /// Whether sectors read on may replace the requested sectors in a segment that is full. Used only with
    /// `read_on = "segment"` and `read_on_max_sectors = 0`.
    pub read_on_over_requested: bool,
    /// Whether the sectors of a read leave the segment once they are sent, so that later reads find only sectors read
    /// on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drops_requested: bool,
    /// Whether a read that is not found in the buffer also keeps the sectors before its first one, if they pass on the
    /// same track while the head waits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keeps_sectors_before: bool,
    /// Whether the drive also reads on (further sectors into the buffer) after a read whose sectors were all in the
    /// buffer, if the arm is free.
    pub read_on_after_hit: bool,
    /// Whether a read counts as found in part in the buffer if its first sector is the next one that the drive reads
    /// on.
    pub hits_sector_being_read: bool,
    /// Whether a read whose sectors are all in the buffer is answered while the arm works for another request.
    pub hits_while_busy: bool,
    /// Whether reads find data that writes left in the buffer.
    pub hits_written: bool,
    /// Whether a read of which the buffer has only the first sectors starts on the bus at once, if the arm is free.
    /// Otherwise it waits until the share `read_watermark` of the request or segment is in the buffer.
    pub partial_hit_at_once: bool,
    /// Condition under which writes are reported before they are on the medium.
    pub immediate_report: ImmediateReport,
    /// Whether the drive may stop reading on within a sector when another command needs the arm. If not, it completes
    /// the sector.
    pub stops_in_sector: bool,
    /// Whether a read may transfer the requested sectors of a track in the order in which they pass the head (zero
    /// latency). Sectors read on are always transferred in order.
    pub reads_on_arrival: bool,
    /// Whether a write may transfer the sectors of a track in the order in which they pass the head (zero latency).
    pub writes_on_arrival: bool,
}

impl Controller {
    /// Returns the first key that is wrong, and the reason.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let segments_min = if self.own_write_segment { 2 } else { 1 };
        if self.segments < segments_min || self.segments > 4096 {
            return Err((
                "segments",
                format!("{} segments: give {segments_min} to 4096, reads need one", self.segments),
            ));
        }
        if self.segment_sectors == 0 {
            return Err(("segment_sectors", "a segment holds at least one sector; give 1 or more".into()));
        }
        for (key, share) in [("read_watermark", self.read_watermark), ("write_watermark", self.write_watermark)] {
            if !(0.0..=1.0).contains(&share) {
                return Err((key, format!("{share} is no share; give 0 to 1")));
            }
        }
        match self.steps().into_iter().find(|&(_, ns)| ns > STEP_NS_MAX) {
            Some((key, ns)) => {
                Err((key, format!("{ns} ns is longer than any drive takes; give at most {STEP_NS_MAX}")))
            }
            None => Ok(()),
        }
    }

    /// Returns every time of the section, by key.
    fn steps(&self) -> [(&'static str, u64); 20] {
        [
            ("command_ns", self.command_ns),
            ("read_hit_after_read_ns", self.read_hit_after_read_ns),
            ("read_hit_after_write_ns", self.read_hit_after_write_ns),
            ("read_miss_after_read_ns", self.read_miss_after_read_ns),
            ("read_miss_after_write_ns", self.read_miss_after_write_ns),
            ("write_hit_after_read_ns", self.write_hit_after_read_ns),
            ("write_hit_after_write_ns", self.write_hit_after_write_ns),
            ("write_miss_after_read_ns", self.write_miss_after_read_ns),
            ("write_miss_after_write_ns", self.write_miss_after_write_ns),
            ("read_complete_ns", self.read_complete_ns),
            ("write_complete_ns", self.write_complete_ns),
            ("data_prepare_ns", self.data_prepare_ns),
            ("reselect_ns", self.reselect_ns),
            ("reselect_again_ns", self.reselect_again_ns),
            ("read_disconnect_after_read_ns", self.read_disconnect_after_read_ns),
            ("read_disconnect_after_write_ns", self.read_disconnect_after_write_ns),
            ("write_disconnect_ns", self.write_disconnect_ns),
            ("write_seek_min_ns", self.write_seek_min_ns),
            ("bus_read_sector_ns", self.bus_read_sector_ns),
            ("bus_write_sector_ns", self.bus_write_sector_ns),
        ]
    }
}
