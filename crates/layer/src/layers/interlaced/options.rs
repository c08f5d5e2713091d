//! The parameters that the interlaced layers share, and their values.

use crate::parameters::{ConfigError, ParameterInfo, ParameterKind, Parameters};

/// How many backup regions there are.
pub const BACKUP_REGIONS: ParameterInfo = ParameterInfo {
    key: "backup_regions",
    kind: ParameterKind::Count,
    default: "16",
    help: "backup regions of three bottom tracks, evenly over the radius; 1 is at the middle",
};

/// Whether moves and rewrites back up all that a power cut could lose.
pub const SAFETY: ParameterInfo = ParameterInfo {
    key: "safety",
    kind: ParameterKind::Choice(&["power", "paper"]),
    default: "power",
    help: "power: back up all that a cut could lose; paper: only what Hajkazemi 2019 backs up",
};

/// How many host writes make an interval, at whose end hot tracks are chosen.
const INTERVAL: ParameterInfo = ParameterInfo {
    key: "interval",
    kind: ParameterKind::CountFrom(1),
    default: "20000",
    help: "host writes from one choice of hot tracks to the next",
};

/// What becomes of the counts. Hajkazemi 2019 §2.2 resets them; but in 20,000 writes a track that a stream has passed once looks
/// as hot as one that is rewritten for hours, and moving it costs more than it saves.
const HOTNESS: ParameterInfo = ParameterInfo {
    key: "hotness",
    kind: ParameterKind::Choice(&["reset", "decay"]),
    default: "decay",
    help: "reset: counts start anew with each interval; decay: a 64th of them is forgotten",
};

/// How many of the hottest tracks are looked at after an interval.
pub const HOT_TRACKS: ParameterInfo = ParameterInfo {
    key: "hot_tracks",
    kind: ParameterKind::CountFrom(1),
    default: "100",
    help: "hottest bottom tracks considered at the end of an interval",
};

/// How many times hotter a track must be than the one that it displaces.
const HOT_RATIO: ParameterInfo = ParameterInfo {
    key: "hot_ratio",
    kind: ParameterKind::CountFrom(1),
    default: "2",
    help: "a track is moved only if this many times as much was written to it as to the one it displaces",
};

/// When a move pays.
///
/// A sector written to a bottom costs four more writes: two copies, and two tops written anew. A move writes whole tracks,
/// five to seven of them: in sectors it pays after hundreds of small writes, in time (3 t_seek + 9 t_rot and more, against the
/// 5 t_rot of a read-modify-write) after four. Asking for the former asks for the latter. How long a track stays hot
/// nobody knows; moving it when it has cost as much as the move is never twice as dear as knowing.
const PAYBACK: ParameterInfo = ParameterInfo {
    key: "payback",
    kind: ParameterKind::Count,
    default: "1",
    help: "a move must save as many sectors as it writes if this many times what was counted is yet to be written; 0: need not",
};

/// When moves are stopped because they do not pay: see [`super::account`].
const WATCH: ParameterInfo = ParameterInfo {
    key: "watch",
    kind: ParameterKind::Count,
    default: "0",
    help: "moves stop while they have written more than they saved, but for one in so many sectors of what imr-rmw would have written; 0: never",
};

/// Sectors that a read-modify-write writes besides each of the host's.
pub const SAVED_PER_SECTOR: u64 = 4;

/// How often a phase of a move is made between requests, when the moves of an interval are still not done at the end of the next.
const BACKGROUND_EVERY: ParameterInfo = ParameterInfo {
    key: "background_every",
    kind: ParameterKind::CountFrom(1),
    default: "64",
    help: "moves pending when an interval ends run a phase every so many requests",
};

/// How long the drive must be idle before moves are made.
pub const IDLE: ParameterInfo = ParameterInfo {
    key: "idle",
    kind: ParameterKind::Duration,
    default: "0s",
    help: "time without requests before moves are made",
};

/// The parameters of layers that move tracks, as the registry lists them.
pub const OF_MOVES: [ParameterInfo; 10] = of_moves(HOT_TRACKS);

/// The same where `hottest` says how many are looked at after an interval, and of what.
pub const fn of_moves(hottest: ParameterInfo) -> [ParameterInfo; 10] {
    [INTERVAL, HOTNESS, hottest, HOT_RATIO, PAYBACK, WATCH, BACKUP_REGIONS, SAFETY, BACKGROUND_EVERY, IDLE]
}

/// The parameters of a layer: its `own`, then those that are `shared` with others.
pub const fn joined<const OWN: usize, const SHARED: usize, const ALL: usize>(
    own: [ParameterInfo; OWN],
    shared: [ParameterInfo; SHARED],
) -> [ParameterInfo; ALL] {
    assert!(OWN + SHARED == ALL);
    let mut all = [IDLE; ALL];
    let mut index = 0;
    while index < ALL {
        all[index] = if index < OWN { own[index] } else { shared[index - OWN] };
        index += 1;
    }
    all
}

/// The values of [`OF_MOVES`].
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
    /// Times what was counted is expected to come, for a move to pay; zero where that is not asked.
    pub payback: u32,
    /// The share of what read-modify-write would have written that moves may lose: one in so many; zero where nobody watches.
    pub watch: u32,
    /// Requests between two overdue phases.
    pub background_every: u32,
    /// Nanoseconds without requests before moves are made.
    pub idle_after_ns: u64,
}

impl MoveOptions {
    /// Reads them from parameters that have all of these keys.
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
            payback: parameters.count("payback").min(1 << 20) as u32,
            watch: parameters.count("watch").min(1 << 20) as u32,
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
        payback: 0,
        watch: 0,
        background_every: u32::MAX,
        idle_after_ns: 0,
    };

    /// Whether to move a track to which `hot` sectors were written, where `cold` were to what it displaces, for `written`
    /// sectors that the move writes: enough hotter, where none written count as one, and worth it.
    pub fn pays(&self, hot: u32, cold: u32, written: u64) -> bool {
        let is_hotter = hot as u64 >= self.hot_ratio as u64 * cold.max(1) as u64;
        let saved = SAVED_PER_SECTOR * hot.saturating_sub(cold) as u64 * self.payback as u64;
        is_hotter && (self.payback == 0 || saved >= written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_counts_as_one_sector() {
        let options = MoveOptions { hot_ratio: 2, ..MoveOptions::NONE };
        let pays = |hot, cold| options.pays(hot, cold, u64::MAX);
        assert!(pays(2, 0) && pays(2, 1) && pays(20, 10));
        assert!(!pays(1, 0) && !pays(19, 10));
    }

    /// Goal: the closed form. A flip writes six tracks of 4096 sectors, which is what read-modify-writes of 24,576 / 4 = 6,144
    /// sectors write besides.
    #[test]
    fn a_move_pays_when_it_saves_what_it_writes() {
        let options = MoveOptions { hot_ratio: 2, payback: 1, ..MoveOptions::NONE };
        assert!(options.pays(6144, 0, 6 * 4096) && options.pays(8144, 2000, 6 * 4096));
        assert!(!options.pays(6143, 0, 6 * 4096) && !options.pays(8143, 2000, 6 * 4096));
    }
}
