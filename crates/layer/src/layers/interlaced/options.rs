//! The parameters that the interlaced layers share, and their values.

use crate::parameters::{ConfigError, ParameterInfo, ParameterKind, Parameters};

/// Backup regions.
pub const BACKUP_REGIONS: ParameterInfo = ParameterInfo {
    key: "backup_regions",
    kind: ParameterKind::Count,
    default: "16",
    help: "backup regions of three bottom tracks, evenly over the radius; 1 is at the middle",
};

/// Safety of moves.
pub const SAFETY: ParameterInfo = ParameterInfo {
    key: "safety",
    kind: ParameterKind::Choice(&["power", "paper"]),
    default: "power",
    help: "power: back up all that a cut could lose; paper: only what Hajkazemi 2019 backs up",
};

/// Interval of counting.
pub const INTERVAL: ParameterInfo = ParameterInfo {
    key: "interval",
    kind: ParameterKind::Count,
    default: "20000",
    help: "host writes from one choice of hot tracks to the next",
};

/// What becomes of the counts.
pub const HOTNESS: ParameterInfo = ParameterInfo {
    key: "hotness",
    kind: ParameterKind::Choice(&["reset", "decay"]),
    default: "reset",
    help: "reset: counts start anew with each interval; decay: they are halved",
};

/// Moves of an interval.
pub const HOT_TRACKS: ParameterInfo = ParameterInfo {
    key: "hot_tracks",
    kind: ParameterKind::Count,
    default: "100",
    help: "hottest bottom tracks considered at the end of an interval",
};

/// How much hotter.
pub const HOT_RATIO: ParameterInfo = ParameterInfo {
    key: "hot_ratio",
    kind: ParameterKind::Count,
    default: "2",
    help: "a track is moved only if it was written this many times as often as the one it displaces",
};

/// Overdue moves.
pub const BACKGROUND_EVERY: ParameterInfo = ParameterInfo {
    key: "background_every",
    kind: ParameterKind::Count,
    default: "64",
    help: "moves pending when an interval ends run a phase every so many requests",
};

/// Idle threshold.
pub const IDLE: ParameterInfo = ParameterInfo {
    key: "idle",
    kind: ParameterKind::Duration,
    default: "0s",
    help: "time without requests before moves are made",
};

/// What the layers that move tracks are told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MoveOptions {
    /// Whether all that a cut could lose is backed up.
    pub power_safe: bool,
    /// Host writes in an interval.
    pub interval: u32,
    /// Whether counts are halved at its end, and not forgotten.
    pub decays: bool,
    /// Hottest tracks considered.
    pub hot_tracks: usize,
    /// Times as hot as what is displaced.
    pub hot_ratio: u32,
    /// Requests between two overdue phases.
    pub background_every: u32,
    /// Nanoseconds without requests before moves are made.
    pub idle_after_ns: u64,
}

impl MoveOptions {
    /// From parameters that hold all of them.
    pub fn new(parameters: &Parameters) -> Result<MoveOptions, ConfigError> {
        let count = |key: &str, max: u64| {
            let value = parameters.count(key);
            match value {
                value if (1..=max).contains(&value) => Ok(value as u32),
                _ => Err(ConfigError(format!("{key}={value}: expected a count from 1 to {max}"))),
            }
        };
        Ok(MoveOptions {
            power_safe: parameters.choice("safety") == "power",
            interval: count("interval", 1 << 28)?,
            decays: parameters.choice("hotness") == "decay",
            hot_tracks: count("hot_tracks", 1 << 20)? as usize,
            hot_ratio: count("hot_ratio", 1 << 20)?,
            background_every: count("background_every", 1 << 30)?,
            idle_after_ns: parameters.duration_ns("idle"),
        })
    }

    /// For a layer that moves nothing.
    pub const NONE: MoveOptions = MoveOptions {
        power_safe: true,
        interval: u32::MAX,
        decays: false,
        hot_tracks: 0,
        hot_ratio: 1,
        background_every: u32::MAX,
        idle_after_ns: 0,
    };
}
