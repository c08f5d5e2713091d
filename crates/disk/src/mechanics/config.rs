//! The mechanics section of a drive profile: seek model, settling, rotation model.

use serde::{Deserialize, Serialize};

use super::Rotation;

/// A measured seek: so many tracks take so long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SeekPoint {
    /// Tracks passed.
    pub tracks: u32,
    /// Time, without settling.
    pub seek_ns: u64,
}

/// How long the arm takes over a distance. No model charges anything for no distance.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(tag = "model", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SeekConfig {
    /// α · tracks + `min_ns`, with α such that the whole radius takes `max_ns` (Hajkazemi 2019 eq. 1).
    Linear {
        /// The limit for the shortest seek.
        min_ns: u64,
        /// From the outermost to the innermost track.
        max_ns: u64,
    },
    /// a + b·√tracks up to a knee, c + d·tracks above.
    Curve {
        /// a.
        short_base_ns: u64,
        /// b.
        short_root_ns: u64,
        /// The longest distance of the first form.
        knee_tracks: u32,
        /// c.
        long_base_ns: u64,
        /// 1000 · d.
        long_thousand_tracks_ns: u64,
    },
    /// Measured points by rising distance, linear in between; the first holds below it, the last slope goes on.
    Table {
        /// The points.
        points: Vec<SeekPoint>,
    },
}

/// The mechanics of a disk as a profile states them.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MechanicsConfig {
    /// The seek model.
    pub seek: SeekConfig,
    /// Added to every move of the arm or change of head that a read follows.
    #[serde(default)]
    pub settle_ns: u64,
    /// The same where a write follows; that of a read unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_settle_ns: Option<u64>,
    /// Changing heads; a seek meanwhile hides the shorter of the two.
    #[serde(default)]
    pub head_switch_ns: u64,
    /// The rotation model.
    #[serde(default)]
    pub rotation: Rotation,
    /// Whether an access of whole tracks may start at any sector. The `half` accounting always does.
    #[serde(default)]
    pub zero_latency: bool,
    /// With `half`: rotations of a trip of less than a track to a backup region and back.
    #[serde(default = "backup_trip_rotations")]
    pub backup_trip_rotations: u32,
    /// With `none`: the rate of transfers, in place of the one that rotation and track length give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_bytes_per_second: Option<u64>,
}

/// Hajkazemi 2019 §2.1: "we assume the two steps will take 2 t_rot".
fn backup_trip_rotations() -> u32 {
    2
}

impl MechanicsConfig {
    /// Mechanics with a seek model and a rotation model, all else free: what tests begin with.
    pub fn plain(seek: SeekConfig, rotation: Rotation) -> MechanicsConfig {
        MechanicsConfig {
            seek,
            settle_ns: 0,
            write_settle_ns: None,
            head_switch_ns: 0,
            rotation,
            zero_latency: false,
            backup_trip_rotations: backup_trip_rotations(),
            media_bytes_per_second: None,
        }
    }
}
