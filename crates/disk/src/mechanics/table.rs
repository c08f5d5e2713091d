//! The `table` seek model: measured points, linear in between. Distances below the first point take its time; beyond
//! the last point the last slope continues. Times may fall between points, as they do in places on real drives.

use super::SeekPoint;
use crate::geometry::Divider;

/// A piece of the table, between two measured points.
#[derive(Clone, Copy, Debug)]
struct Segment {
    tracks: u32,
    seek_ns: u64,
    rise_ns: u64,
    falls: bool,
    width: Divider,
}

/// The measured seeks, as linear segments.
#[derive(Clone, Debug)]
pub(super) struct Table {
    segments: Vec<Segment>,
}

impl Table {
    /// Creates the segments between `points`. Returns the reason if distances do not rise or a time is too long.
    pub(super) fn new(points: &[SeekPoint]) -> Result<Table, String> {
        if points.len() < 2 {
            return Err("`points` needs at least two measured seeks".into());
        }
        let mut segments = Vec::with_capacity(points.len() - 1);
        for pair in points.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            if from.tracks >= to.tracks || from.seek_ns.max(to.seek_ns) > u32::MAX as u64 {
                return Err(format!(
                    "`points` must rise in distance and stay below 4.3 s: {} tracks in {} ns, then {} in {} ns",
                    from.tracks, from.seek_ns, to.tracks, to.seek_ns
                ));
            }
            segments.push(Segment {
                tracks: from.tracks,
                seek_ns: from.seek_ns,
                rise_ns: to.seek_ns.abs_diff(from.seek_ns),
                falls: to.seek_ns < from.seek_ns,
                width: Divider::new((to.tracks - from.tracks) as u64),
            });
        }
        Ok(Table { segments })
    }

    /// Returns the time over `distance` tracks, which is not zero, in nanoseconds.
    #[inline]
    pub(super) fn seek_ns(&self, distance: u32) -> u64 {
        let index = self.segments.partition_point(|segment| segment.tracks <= distance).saturating_sub(1);
        let segment = &self.segments[index];
        let beyond = distance.saturating_sub(segment.tracks) as u64;
        let change_ns = segment.width.quotient(beyond * segment.rise_ns);
        if segment.falls { segment.seek_ns.saturating_sub(change_ns) } else { segment.seek_ns + change_ns }
    }
}
