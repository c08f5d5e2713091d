//! Mechanics: seek models and rotation models. See [`crate::actuator::Actuator`] for the moving part.
//!
//! Invariants:
//! 1. Mechanics are immutable; the state of a rotation model between accesses belongs to the actuator.
//! 2. A move to the track that the head is over takes no time.
//! 3. Seek and settling time together are not negative, at any distance.

mod config;
mod curve;
pub(crate) mod exact;
pub(crate) mod half;
mod linear;
pub(crate) mod none;
mod table;
#[cfg(test)]
mod tests;

pub use config::{MechanicsConfig, SeekConfig, SeekPoint};

use serde::{Deserialize, Serialize};

use crate::Direction;
use crate::geometry::{Divider, Geometry};
use crate::units::{Sectors, SimDuration};

/// The rotation model: the rule by which accesses wait for the rotation of the platter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rotation {
    /// The platter has an angle at every nanosecond, and an access waits until its first sector passes the head. With
    /// zero latency, an access of whole tracks does not wait.
    #[default]
    Exact,
    /// The platter has no angle. An access waits half a rotation, or whole rotations if it returns to an angle of the
    /// current operation. An access that continues the last one, or that covers whole tracks, does not wait (Hajkazemi
    /// 2019 §2, §3).
    Half,
    /// No access waits for rotation, as in Cassuto 2010 §III.B.
    None,
}

/// The seek models.
#[derive(Clone, Debug)]
enum Seek {
    Linear(linear::Linear),
    Curve(curve::Curve),
    Table(table::Table),
}

/// The seek and rotation models of a disk. They are immutable: the position of the head belongs to the actuator.
#[derive(Clone, Debug)]
pub struct Mechanics {
    seek: Seek,
    read_settle_ns: i64,
    /// Negative if moves before writes are shorter than the seeks of the model.
    write_settle_ns: i64,
    head_switch_ns: u64,
    rotation: Rotation,
    zero_latency: bool,
    backup_trip_rotations: u32,
    media_bytes_per_second: Option<Divider>,
}

impl Mechanics {
    /// Builds the mechanics that `config` describes, for a disk of `geometry`.
    ///
    /// # Errors
    ///
    /// Returns the reason, as text, if a value of `config` is impossible.
    pub fn new(config: &MechanicsConfig, geometry: &Geometry) -> Result<Mechanics, String> {
        if config.backup_trip_rotations == 0 {
            return Err("`backup_trip_rotations` is 0: a trip ends at a later pass of its angle".into());
        }
        check_times(config)?;
        let distance_max = geometry.radial_tracks() - 1;
        let seek = match &config.seek {
            SeekConfig::Linear { min_ns, max_ns } => Seek::Linear(linear::Linear::new(*min_ns, *max_ns, distance_max)?),
            SeekConfig::Curve { short_base_ns, short_root_ns, knee_tracks, long_base_ns, long_thousand_tracks_ns } => {
                Seek::Curve(curve::Curve::new(
                    *short_base_ns,
                    *short_root_ns,
                    *knee_tracks,
                    *long_base_ns,
                    *long_thousand_tracks_ns,
                    distance_max,
                )?)
            }
            SeekConfig::Table { points } => Seek::Table(table::Table::new(points)?),
        };
        let mechanics = Mechanics {
            seek,
            read_settle_ns: config.settle_ns as i64,
            write_settle_ns: config.write_settle_ns.unwrap_or(config.settle_ns as i64),
            head_switch_ns: config.head_switch_ns,
            rotation: config.rotation,
            zero_latency: config.zero_latency,
            backup_trip_rotations: config.backup_trip_rotations,
            media_bytes_per_second: media_rate(config)?,
        };
        mechanics.check_write_seeks(distance_max)?;
        Ok(mechanics)
    }

    /// Returns an error for the first distance up to `distance_max` tracks at which a seek before a write would take
    /// less than no time.
    fn check_write_seeks(&self, distance_max: u32) -> Result<(), String> {
        if self.write_settle_ns >= 0 {
            return Ok(());
        }
        let settle_ns = self.write_settle_ns;
        match (1..=distance_max).find(|&distance| self.seek_ns(distance) < settle_ns.unsigned_abs()) {
            None => Ok(()),
            Some(distance) => Err(format!(
                "`write_settle_ns` {settle_ns}: a seek over {distance} {} takes only {} ns; seek and settling time \
                 together may not be negative",
                if distance == 1 { "track" } else { "tracks" },
                self.seek_ns(distance)
            )),
        }
    }

    /// Returns the rotation model.
    pub fn rotation(&self) -> Rotation {
        self.rotation
    }

    /// Returns whether an access of whole tracks may start at any sector of a track, and so begins without rotational
    /// wait. Only the rotation model `exact` uses this value.
    pub fn zero_latency(&self) -> bool {
        self.zero_latency
    }

    /// Returns the minimum number of rotations that an access to a backup region takes, if it is shorter than a track:
    /// seeks there and back, wait and transfer together. Used with [`Rotation::Half`] only.
    pub fn backup_trip_rotations(&self) -> u32 {
        self.backup_trip_rotations
    }

    /// Returns the time in which the arm moves over `distance` tracks, without settling; zero for a distance of zero.
    pub fn seek(&self, distance: u32) -> SimDuration {
        SimDuration(self.seek_ns(distance))
    }

    #[inline]
    fn seek_ns(&self, distance: u32) -> u64 {
        if distance == 0 {
            return 0;
        }
        match &self.seek {
            Seek::Linear(seek) => seek.seek_ns(distance),
            Seek::Curve(seek) => seek.seek_ns(distance),
            Seek::Table(seek) => seek.seek_ns(distance),
        }
    }

    /// Returns the time to bring a head over another track, in nanoseconds: seek and head switch at the same time, then
    /// settling. The track is `distance` tracks away, and on another surface if `changes_surface`.
    #[inline]
    pub(crate) fn move_ns(&self, distance: u32, changes_surface: bool, direction: Direction) -> u64 {
        if distance == 0 && !changes_surface {
            return 0;
        }
        let switch_ns = if changes_surface { self.head_switch_ns } else { 0 };
        // Only a change of heads can be shorter than a negative settling time (invariant 3).
        self.seek_ns(distance).max(switch_ns).saturating_add_signed(self.settle_ns(direction))
    }

    /// Returns the time to change heads between neighbouring tracks, in nanoseconds, for a rotation model that charges
    /// no seek.
    #[inline]
    pub(crate) fn switch_ns(&self, changes_surface: bool) -> u64 {
        if changes_surface { self.head_switch_ns } else { 0 }
    }

    /// Returns the time to settle after a move, in nanoseconds; before a write it may be negative.
    #[inline]
    pub(crate) fn settle_ns(&self, direction: Direction) -> i64 {
        match direction {
            Direction::Read => self.read_settle_ns,
            Direction::Write => self.write_settle_ns,
        }
    }

    /// Returns the time to transfer `sectors` at the stated media rate, in nanoseconds, or `None` if no rate is stated.
    #[inline]
    pub(crate) fn transfer_at_rate(&self, sectors: Sectors, sector_bytes: u32) -> Option<u64> {
        let rate = self.media_bytes_per_second?;
        let (seconds, bytes) = rate.divide(sectors.0 * sector_bytes as u64);
        Some(seconds * NS_PER_SECOND + rate.quotient(bytes * NS_PER_SECOND))
    }
}

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Highest media rate that is supported, in bytes per second. With a higher one, the bytes of a second times 10⁹ would
/// not fit 64 bits. No disk comes near.
const MEDIA_RATE_MAX: u64 = 10_000_000_000;

/// Lowest transfer rate that is supported, in bytes per second. With a lower one, a sector would take more than half a
/// second. No medium is as slow.
pub(crate) const RATE_MIN: u64 = 1_000;

/// Longest time of a single step of a disk, in nanoseconds. Sums of a few such steps stay far below the limit of 64
/// bits.
pub(crate) const STEP_NS_MAX: u64 = 60_000_000_000;

/// Returns an error for the first time that is longer than any disk takes.
fn check_times(config: &MechanicsConfig) -> Result<(), String> {
    // A negative settling time is checked against the seeks.
    let write_settle_ns = config.write_settle_ns.map_or(0, |ns| ns.max(0).unsigned_abs());
    let mut times = vec![
        ("settle_ns", config.settle_ns),
        ("write_settle_ns", write_settle_ns),
        ("head_switch_ns", config.head_switch_ns),
    ];
    if let SeekConfig::Curve { short_base_ns, long_base_ns, .. } = &config.seek {
        times.extend([("seek.short_base_ns", *short_base_ns), ("seek.long_base_ns", *long_base_ns)]);
    }
    let beyond = times.into_iter().find(|(_, ns)| *ns > STEP_NS_MAX);
    beyond
        .map_or(Ok(()), |(key, ns)| Err(format!("`{key}` {ns}: expected at most {STEP_NS_MAX} ns, which is a minute")))
}

fn media_rate(config: &MechanicsConfig) -> Result<Option<Divider>, String> {
    match config.media_bytes_per_second {
        None => Ok(None),
        Some(rate) if config.rotation != Rotation::None => Err(format!(
            "`media_bytes_per_second` {rate} needs `rotation = \"none\"`: otherwise rotation and track length give the rate"
        )),
        Some(rate) if !(RATE_MIN..=MEDIA_RATE_MAX).contains(&rate) => {
            Err(format!("`media_bytes_per_second` {rate}: from {RATE_MIN} to {MEDIA_RATE_MAX} are supported"))
        }
        Some(rate) => Ok(Some(Divider::new(rate))),
    }
}
