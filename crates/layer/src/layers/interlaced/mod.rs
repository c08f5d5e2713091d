//! Common parts of the layers of interlaced disks (Hajkazemi 2019 §2): tracks and their homes, the backup log, the
//! read-modify-write of bottom tracks, the count of hot tracks, and the phases of background moves. A layer adds the
//! placement of data and the choice of tracks to move: [`Translation`].
//!
//! ```text
//!   finder ── home ── backup ── host ──┐
//!                                      ├── driver ── imr_rmw · track_flip · track_cache · track_map
//!                     heat ─── moves ──┘
//! ```

pub mod account;
pub mod backup;
pub mod driver;
pub mod finder;
pub mod groups;
pub mod heat;
pub mod home;
pub mod host;
pub mod live;
pub mod map_zones;
pub mod moves;
pub mod options;
pub mod packed;
pub mod record;
mod run;
#[cfg(test)]
pub mod testing;
mod translation;

pub use run::{NO_HEAT, Span, Track, TrackRun};
pub use translation::Translation;
