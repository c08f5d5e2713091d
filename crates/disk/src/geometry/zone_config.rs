//! A recording zone, as listed in profiles: tracks that hold equally many sectors.

use serde::{Deserialize, Serialize};

/// A recording zone of a profile: neighbouring tracks with the same number of sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneConfig {
    /// Number of tracks of the zone on each surface.
    pub tracks: u32,
    /// Number of sectors of a track; on an interlaced disk, of a bottom track.
    pub track_sectors: u32,
}
