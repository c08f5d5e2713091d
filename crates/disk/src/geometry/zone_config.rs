//! A recording zone, as listed in profiles: tracks that hold equally many sectors.

use serde::{Deserialize, Serialize};

/// A recording zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneConfig {
    /// Tracks on each surface.
    pub tracks: u32,
    /// Sectors of a track; of a bottom track on an interlaced disk.
    pub track_sectors: u32,
}
