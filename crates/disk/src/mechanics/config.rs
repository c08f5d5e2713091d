//! The mechanics section of a drive profile: seek model, settling, rotation model.

use serde::{Deserialize, Serialize};

use super::Rotation;

/// A measured seek: its distance and its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SeekPoint {
    /// Distance of the seek in tracks.
    pub tracks: u32,
    /// Time of the seek in nanoseconds, without settling.
    pub seek_ns: u64,
}

/// The seek model: the time of the arm as a function of the distance in tracks. In every model a distance of zero
/// takes no time.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(tag = "model", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SeekConfig {
    /// α · tracks + `min_ns`, with α such that the whole radius takes `max_ns` (Hajkazemi 2019 eq. 1).
    Linear {
        /// Constant part of every seek, in nanoseconds; at most `max_ns`.
        min_ns: u64,
        /// Time from the outermost to the innermost track, in nanoseconds.
        max_ns: u64,
    },
    /// a + b·√tracks up to and including the distance `knee_tracks`, c + d·tracks above.
    Curve {
        /// The constant a in a + b·√tracks, in nanoseconds.
        short_base_ns: u64,
        /// The factor b in a + b·√tracks, in nanoseconds.
        short_root_ns: u64,
        /// The longest distance, in tracks, for which a + b·√tracks holds.
        knee_tracks: u32,
        /// The constant c in c + d·tracks, in nanoseconds.
        long_base_ns: u64,
        /// 1000 times the factor d in c + d·tracks, in nanoseconds: the additional time of 1000 tracks.
        long_thousand_tracks_ns: u64,
    },
    /// Measured points by rising distance, linear in between. Distances below the first point take its time; beyond the
    /// last point the last slope continues.
    Table {
        /// The measured points, at least two, in order of rising distance.
        points: Vec<SeekPoint>,
    },
}

/// The mechanics of a disk, as stated in a profile.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MechanicsConfig {
    /// The seek model: the time in which the arm moves, as a function of the distance in tracks, without settling.
    pub seek: SeekConfig,
    /// Settling time in nanoseconds, added to every move of the arm or change of head before a read; 0 unless given.
    /// The rotation model `half` charges none within two tracks.
    #[serde(default)]
    pub settle_ns: u64,
    /// Settling time before a write, in nanoseconds; that before a read unless given. A negative time makes moves before
    /// writes shorter than the seeks of the model. No seek may then come below 0; a change of heads alone takes at
    /// least 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_settle_ns: Option<i64>,
    /// Time to change heads, in nanoseconds; 0 unless given. A seek runs at the same time, so only the longer of the
    /// two counts.
    #[serde(default)]
    pub head_switch_ns: u64,
    /// The rotation model: the rule by which accesses wait for the rotation of the platter; `exact` unless given.
    #[serde(default)]
    pub rotation: Rotation,
    /// Whether an access of whole tracks may start at any sector of a track, and so begins without rotational wait;
    /// `false` unless given. In the `half` rotation model it always may.
    #[serde(default)]
    pub zero_latency: bool,
    /// With the rotation model `half`: minimum number of rotations that an access to a backup region takes, if it is
    /// shorter than a track, seeks there and back included. At least 1; 2 unless given.
    #[serde(default = "backup_trip_rotations")]
    pub backup_trip_rotations: u32,
    /// With the rotation model `none`: the transfer rate in bytes per second, in place of the rate that follows from
    /// rotation and track length. An error with other rotation models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_bytes_per_second: Option<u64>,
}

/// Returns the default of `backup_trip_rotations`. Hajkazemi 2019 §2.1: "we assume the two steps will take 2 t_rot".
fn backup_trip_rotations() -> u32 {
    2
}

impl MechanicsConfig {
    /// Returns mechanics with the given seek and rotation models, in which settling and head switches take no time and
    /// no access has zero latency; for tests.
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
