//! The controller of a drive as a profile may describe it: what each kind of command costs, how data go over the bus while
//! the medium moves, and the segments of its buffer. Without this section a drive has one overhead for every command, a
//! bus that costs nothing, and the caches of `[host]`.
//!
//! The properties are those of the DiskSim 4.0 reference manual (CMU-PDL-08-101, §3.4.5), which were found to be enough to
//! tell real drives apart; where that manual's name differs, the importer knows it.
//!
//! Invariants (of a checked controller):
//! 1. There is a segment for reads, and one more where writes have their own.
//! 2. Shares lie between 0 and 1.

use serde::{Deserialize, Serialize};

/// Longest time of any one step of a controller: a second is beyond every drive.
const STEP_NS_MAX: u64 = 1_000_000_000;

/// How far a drive reads on after a read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadOn {
    /// Not at all.
    #[default]
    None,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// To the end of the track, and of the next one where the segment reaches back to the track before.
    NextTrack,
}

/// When a write is reported before it is on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImmediateReport {
    /// Never.
    #[default]
    Never,
    /// In a stream of writes of which each goes on where the last ended; any other request waits until the stream is on
    /// the medium.
    Stream,
    /// The same, and the stream may be mixed with other requests, before which it is brought to the medium.
    Mixed,
}

/// What a share of the buffer is a share of.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatermarkOf {
    /// The request.
    #[default]
    Request,
    /// The segment.
    Segment,
}

/// A drive that leaves the bus after a write command, before any data: seen on a write that follows a write elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExtraDisconnect {
    /// Processing of the command, in place of the write overheads.
    pub command_ns: u64,
    /// Leaving the bus the first time.
    pub disconnect_ns: u64,
    /// From then until the drive asks for the bus again.
    pub pause_ns: u64,
    /// Leaving the bus the second time, once the data are over.
    pub second_disconnect_ns: u64,
    /// The arm begins so much later than the command is processed.
    pub seek_delay_ns: u64,
    /// Such a drive begins any write only once this many of its sectors have come …
    pub start_sectors: u32,
    /// … or this many …
    pub long_start_sectors: u32,
    /// … where the write is at least so long.
    pub long_from_sectors: u32,
}

/// A controller.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Controller {
    /// Processing of every command, before all else.
    pub command_ns: u64,
    /// Processing of a read found in the buffer that follows a read.
    pub read_hit_after_read_ns: u64,
    /// The same after a write.
    pub read_hit_after_write_ns: u64,
    /// Processing of a read not found there that follows a read, before the arm moves.
    pub read_miss_after_read_ns: u64,
    /// The same after a write.
    pub read_miss_after_write_ns: u64,
    /// Processing of a write reported early that follows a read, before data and arm move.
    pub write_hit_after_read_ns: u64,
    /// The same after a write.
    pub write_hit_after_write_ns: u64,
    /// Processing of a write reported from the medium that follows a read.
    pub write_miss_after_read_ns: u64,
    /// The same after a write.
    pub write_miss_after_write_ns: u64,
    /// Reporting a read.
    pub read_complete_ns: u64,
    /// Reporting a write.
    pub write_complete_ns: u64,
    /// Preparing data to go over the bus, each time it is taken.
    pub data_prepare_ns: u64,
    /// Taking the bus again the first time.
    pub reselect_ns: u64,
    /// Taking it again later, with an extra disconnect.
    pub reselect_again_ns: u64,
    /// Leaving the bus in a read that follows a read.
    pub read_disconnect_after_read_ns: u64,
    /// The same after a write.
    pub read_disconnect_after_write_ns: u64,
    /// Leaving the bus in a write.
    pub write_disconnect_ns: u64,
    /// Leaving it before the data of some writes, where the drive does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_disconnect: Option<ExtraDisconnect>,
    /// The arm takes at least so long to a write that is no continuation.
    pub write_seek_min_ns: u64,
    /// Time of a sector on the bus towards the host.
    pub bus_read_sector_ns: u64,
    /// Time of a sector on the bus towards the drive.
    pub bus_write_sector_ns: u64,
    /// Whether the bus is kept from command to report.
    pub never_disconnects: bool,
    /// Whether the bus is kept while a read waits for the medium.
    pub holds_bus_reading: bool,
    /// Whether the bus is kept while a write waits for room.
    pub holds_bus_writing: bool,
    /// Share that has to be read before the bus is taken again.
    pub read_watermark: f64,
    /// Share that may still be dirty when the bus is taken again.
    pub write_watermark: f64,
    /// What the watermarks are shares of.
    pub watermark_of: WatermarkOf,
    /// Segments of the buffer.
    pub segments: u32,
    /// Sectors of a segment.
    pub segment_sectors: u32,
    /// Whether one segment serves writes alone; reads never find its data.
    pub own_write_segment: bool,
    /// Whether segments serve as a cache, and not only between medium and bus.
    pub caches: bool,
    /// How far the drive reads on.
    pub read_on: ReadOn,
    /// Sectors read on before anything else is done.
    pub read_on_min_sectors: u32,
    /// Sectors read on at most; 0 leaves it to the segment.
    pub read_on_max_sectors: u32,
    /// Whether what is read on may push out what the host has just been given.
    pub read_on_over_requested: bool,
    /// Whether a read found whole in the buffer makes the drive read on.
    pub read_on_after_hit: bool,
    /// Whether a read whose first sector is the one being read on counts as found.
    pub hits_sector_being_read: bool,
    /// Whether a read found whole is answered while the arm works for another request.
    pub hits_while_busy: bool,
    /// Whether reads find what writes left in the buffer.
    pub hits_written: bool,
    /// Whether a read found in part begins on the bus at once, or only above the watermark.
    pub partial_hit_at_once: bool,
    /// When writes are reported early.
    pub immediate_report: ImmediateReport,
    /// Whether the medium may stop reading on within a sector.
    pub stops_in_sector: bool,
    /// Whether a read may take sectors in the order in which they pass.
    pub reads_on_arrival: bool,
    /// Whether a write may put sectors down in the order in which they pass.
    pub writes_on_arrival: bool,
}

impl Controller {
    /// The first key that is wrong, and why.
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

    /// Every time of the section, by key.
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
