//! The parameters that the interlaced layers share, and their values.

use crate::parameters::{ConfigError, ParameterInfo, ParameterKind, Parameters};

/// The parameter `backup_regions`: the wanted number of backup regions, each as large as three of the longest tracks;
/// by default 16, at most 1,024. 0 counts as 1. Small disks get fewer: at most one for every 32 radial tracks.
pub const BACKUP_REGIONS: ParameterInfo = ParameterInfo {
    key: "backup_regions",
    kind: ParameterKind::Count,
    default: "16",
    help: "backup regions of three bottom tracks, evenly over the radius; 1 is at the middle",
};

/// The parameter `safety`: whether background moves back up all sectors that a power cut could lose (`power`, the
/// default), or only those that Hajkazemi 2019 backs up (`paper`).
pub const SAFETY: ParameterInfo = ParameterInfo {
    key: "safety",
    kind: ParameterKind::Choice(&["power", "paper"]),
    default: "power",
    help: "power: back up all sectors that a power cut could lose; paper: back up only those of Hajkazemi 2019",
};

/// Number of host writes in an interval, at whose end hot tracks are chosen. Hajkazemi 2019 §2.2 names 20,000 as an
/// example. The default, like that of [`WATCH`], was chosen by the rule in `docs/findings.md`.
const INTERVAL: ParameterInfo = ParameterInfo {
    key: "interval",
    kind: ParameterKind::CountFrom(1),
    default: "5000",
    help: "host writes from one choice of hot tracks to the next",
};

/// Treatment of the counts at the end of an interval. Hajkazemi 2019 §2.2 resets them. But within 20,000 writes, a
/// track that a stream has passed once looks as hot as one that is rewritten for hours, and moving it costs more than
/// it saves.
const HOTNESS: ParameterInfo = ParameterInfo {
    key: "hotness",
    kind: ParameterKind::Choice(&["reset", "decay"]),
    default: "decay",
    help: "reset: counts are zero at the start of each interval; decay: they shrink by a 64th",
};

/// Unit in which the heat of a track is counted. Hajkazemi 2019 §2.2 counts writes. The costs of a read-modify-write and
/// of a move are in sectors.
const HEAT: ParameterInfo = ParameterInfo {
    key: "heat",
    kind: ParameterKind::Choice(&["sectors", "writes"]),
    default: "sectors",
    help: "sectors: a track is as hot as sectors were written to it; writes: as writes touched it, for payback=0",
};

/// The parameter `hot_tracks`: the maximum number of tracks that are considered for a move at the end of an interval of
/// host writes; by default 100, at least 1. They are the bottom tracks to which the host wrote the most.
pub const HOT_TRACKS: ParameterInfo = ParameterInfo {
    key: "hot_tracks",
    kind: ParameterKind::CountFrom(1),
    default: "100",
    help: "hottest bottom tracks considered at the end of an interval",
};

/// Ratio by which a track must be hotter than the one that it displaces.
const HOT_RATIO: ParameterInfo = ParameterInfo {
    key: "hot_ratio",
    kind: ParameterKind::CountFrom(1),
    default: "2",
    help: "a track is moved only if this many times as much was written to it as to the one it displaces",
};

/// Condition under which a move pays.
///
/// A sector written to a bottom costs four more writes: two copies, and two rewritten top sectors. A move writes one
/// to seven whole tracks. In sectors, it pays after hundreds of small writes. In time, it pays after four: a
/// move takes 3 t_seek + 9 t_rot and more, a read-modify-write 5 t_rot. So a move that pays in sectors also pays in
/// time. How long a track stays hot is not known. A move made once the track's writes have cost as much as the move
/// costs never twice as much as one made with that knowledge.
const PAYBACK: ParameterInfo = ParameterInfo {
    key: "payback",
    kind: ParameterKind::Count,
    default: "1",
    help: "a move must save the sectors it writes, if future writes are this many times the counted ones; 0: no such \
           condition",
};

/// Limit on moves that do not pay, beyond which moves stop: see [`super::account`].
const WATCH: ParameterInfo = ParameterInfo {
    key: "watch",
    kind: ParameterKind::Count,
    default: "64",
    help: "moves stop once they cost more sectors than they saved plus 1/watch of those imr-rmw would have written; 0: \
           never",
};

/// Number of sectors that a read-modify-write writes in addition to each sector of the host: two backup copies, and two
/// rewritten sectors of the top tracks. A move that avoids a read-modify-write saves them.
pub const SAVED_PER_SECTOR: u64 = 4;

/// Number of requests per phase of a move, when moves of an interval are still pending at the end of the next.
const BACKGROUND_EVERY: ParameterInfo = ParameterInfo {
    key: "background_every",
    kind: ParameterKind::CountFrom(1),
    default: "64",
    help: "requests per phase of a move that is still pending at the end of an interval",
};

/// The parameter `idle`: the time without requests after which background moves are made. By default 0: as soon as
/// there is no request. If the profile of the drive sets a longer idle threshold, that one applies.
pub const IDLE: ParameterInfo = ParameterInfo {
    key: "idle",
    kind: ParameterKind::Duration,
    default: "0s",
    help: "time without requests before moves are made",
};

/// The 11 parameters of layers that move data in the background, in the order in which the registry lists them.
pub const OF_MOVES: [ParameterInfo; 11] = of_moves(HOT_TRACKS);

/// Returns [`OF_MOVES`] with the parameter `hottest` in place of [`HOT_TRACKS`]. `hottest` must have the key
/// `hot_tracks`, but its default or its help may differ, for a layer that moves blocks instead of tracks.
pub const fn of_moves(hottest: ParameterInfo) -> [ParameterInfo; 11] {
    [INTERVAL, HEAT, HOTNESS, hottest, HOT_RATIO, PAYBACK, WATCH, BACKUP_REGIONS, SAFETY, BACKGROUND_EVERY, IDLE]
}

/// Returns the parameters of a layer: first its `own`, then those that it shares with other layers.
///
/// # Panics
///
/// If `ALL` is not the sum of `OWN` and `SHARED`; in a constant this is an error of the compiler.
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

/// The values of the parameters [`OF_MOVES`], without `backup_regions`: they control the background moves of a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MoveOptions {
    /// Whether background moves back up all sectors that a power cut could lose (`safety=power`). If `false`, they back
    /// up only the sectors that Hajkazemi 2019 backs up (`safety=paper`).
    pub power_safe: bool,
    /// Number of host write commands in an interval. Host writes are counted as heat during an interval, and background
    /// moves are chosen at its end.
    pub interval: u32,
    /// Whether the heat of a track is the number of host writes that touched it (`heat=writes`). Otherwise it is the
    /// number of sectors that the host wrote to it (`heat=sectors`).
    pub counts_writes: bool,
    /// Whether the counts of heat (sectors that the host wrote, or its writes, by track) shrink by a 64th, rounded up,
    /// at the end of an interval. Otherwise they are set to zero.
    pub decays: bool,
    /// Maximum number of tracks (or blocks, if the layer moves blocks) considered for a background move at the end of
    /// an interval of host writes: those on bottom tracks to which the host wrote the most.
    pub hot_tracks: usize,
    /// Minimum ratio of the heat of a track (sectors that the host wrote to it, or its writes) to the heat of the track
    /// that it displaces, for a background move. A heat of 0 of the displaced track counts as 1.
    pub hot_ratio: u32,
    /// Assumed ratio of future writes to the counted writes of the host. A background move is made only if by this
    /// assumption it saves at least as many sectors as it writes; 0 turns this condition off.
    pub payback: u32,
    /// Limit on background moves that do not pay. A move begins only if the layer would then not have written more
    /// sectors than read-modify-write with nothing moved would have, plus 1/`watch` of those. The host's own sectors
    /// count on neither side. 0 means that moves are not limited.
    pub watch: u32,
    /// Number of host commands from one phase of a background move to the next, if moves were still pending at the end
    /// of an interval of host writes. These phases are made although the drive is not idle.
    pub background_every: u32,
    /// Time without host requests before background moves are made, in nanoseconds. 0 means as soon as there is no
    /// request. If the profile of the drive sets a longer idle threshold, that one applies.
    pub idle_after_ns: u64,
}

impl MoveOptions {
    /// Reads the options from `parameters`. `payback` and `watch` may be 0, and are lowered to 2²⁰ if they are above.
    ///
    /// # Errors
    ///
    /// Heat is counted in writes and `payback` is not 0. Or `interval`, `hot_tracks`, `hot_ratio` or `background_every`
    /// is 0 or above its maximum; the message gives the maximum.
    ///
    /// # Panics
    ///
    /// If `parameters` lacks a key of [`OF_MOVES`] other than `backup_regions`.
    pub fn new(parameters: &Parameters) -> Result<MoveOptions, ConfigError> {
        let count = |key: &str, max: u64| {
            let value = parameters.count(key);
            match value {
                value if (1..=max).contains(&value) => Ok(value as u32),
                _ => Err(ConfigError(format!("{key}={value}: expected a count from 1 to {max}"))),
            }
        };
        let (counts_writes, payback) = (parameters.choice("heat") == "writes", parameters.count("payback"));
        if counts_writes && payback > 0 {
            let reason =
                format!("heat=writes,payback={payback}: moves are paid back in sectors; give payback=0 as well");
            return Err(ConfigError(reason));
        }
        Ok(MoveOptions {
            counts_writes,
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

    /// The options of a layer that moves no data in the background. Their values have no effect in such a layer.
    pub const NONE: MoveOptions = MoveOptions {
        power_safe: true,
        interval: u32::MAX,
        counts_writes: false,
        decays: false,
        hot_tracks: 0,
        hot_ratio: 1,
        payback: 0,
        watch: 0,
        background_every: u32::MAX,
        idle_after_ns: 0,
    };

    /// Returns whether a move that writes `written` sectors should be made. It exchanges a track to which `hot` sectors
    /// were written in the interval with a track to which `cold` sectors were written. `hot` must be at least
    /// `hot_ratio` times `cold`, where a `cold` of 0 counts as 1. Unless `payback` is 0, the move must also be expected
    /// to save as many sectors as it writes: 4 × (`hot` − `cold`) × `payback` of them.
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

    /// Checks the closed form. A flip writes six tracks of 4096 sectors: as many as read-modify-writes of 24,576 / 4 =
    /// 6,144 sectors write besides.
    #[test]
    fn a_move_pays_when_it_saves_what_it_writes() {
        let options = MoveOptions { hot_ratio: 2, payback: 1, ..MoveOptions::NONE };
        assert!(options.pays(6144, 0, 6 * 4096) && options.pays(8144, 2000, 6 * 4096));
        assert!(!options.pays(6143, 0, 6 * 4096) && !options.pays(8143, 2000, 6 * 4096));
    }
}
