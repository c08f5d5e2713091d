//! Policies by which the cleaner chooses the band to empty. To add one: a function and a line in [`ALL`].

use super::{Band, Bands};

/// Cleaning policy: chooses the band, a zone of a drive or a stripe group of an array, that the cleaner empties next.
#[derive(Clone, Copy)]
pub struct Policy {
    /// Score of a band: the band with the highest score is emptied first. Bands whose emptying gains nothing are never
    /// scored.
    score: fn(&Band, now: u64) -> u128,
    /// Whether files with a piece in the band are moved as a whole.
    moves_files: bool,
}

/// Name of a cleaning policy, its description for users, and its score of a band. The function gets the band and the
/// serial number of the last allocation in any band, as the present time. The band with the highest score is emptied
/// first.
pub type Known = (&'static str, &'static str, fn(&Band, u64) -> u128);

/// All cleaning policies: name, description for users, and score of each.
pub const ALL: &[Known] = &[
    ("greedy", "the band with the fewest live blocks", greedy),
    (
        "cost-benefit",
        "the band with the largest (1 - u) × age / (1 + u), u the share that is live (Rosenblum 1992)",
        cost_benefit,
    ),
    ("oldest", "the band that was written longest ago", oldest),
    (
        FILES,
        "the band with the fewest live blocks; files that have something in it are moved as a whole (Jin 2014 §II.D.2)",
        greedy,
    ),
];

/// Name of the policy that moves whole files, for stores whose files lie in pieces.
const FILES: &str = "files";

/// Scale of the score of [`greedy`], which is a fraction in fixed-point arithmetic.
const PARTS: u128 = 1 << 40;

/// Returns the number of blocks of the band's worth ([`Band::worth`]) that are not live.
fn dead(band: &Band) -> u128 {
    u128::from(band.worth.saturating_sub(band.live))
}

fn greedy(band: &Band, _now: u64) -> u128 {
    dead(band) * PARTS / u128::from(band.worth.max(1))
}

fn cost_benefit(band: &Band, now: u64) -> u128 {
    let whole = u128::from(band.worth + band.live);
    dead(band) * u128::from(now - band.age + 1) * (1 << 20) / whole.max(1)
}

fn oldest(band: &Band, now: u64) -> u128 {
    u128::from(now - band.age)
}

impl Policy {
    /// Returns the cleaning policy called `name`.
    ///
    /// # Errors
    /// There is no such policy. The error is a message for the user that lists the known names.
    pub fn named(name: &str) -> Result<Policy, String> {
        let found = ALL.iter().find(|(known, ..)| *known == name);
        let known: Vec<&str> = ALL.iter().map(|(known, ..)| *known).collect();
        found
            .map(|(known, _, score)| Policy { score: *score, moves_files: *known == FILES })
            .ok_or_else(|| format!("cleaner={name}: there are {}", known.join(", ")))
    }

    /// Returns whether the cleaner moves a file as a whole if a piece of it is in the band to be emptied. Only the
    /// policy `files` does so.
    pub fn moves_files(&self) -> bool {
        self.moves_files
    }

    /// Returns the number of the band with the highest score among those for which `may_be` returns true; of equal
    /// scores, the lowest number wins. Bands that are in use, pinned, not writable, put off after failures, or without
    /// gain are left out. Returns `None` if no band is left.
    pub fn choose(&self, bands: &Bands, may_be: impl Fn(&Band) -> bool) -> Option<u32> {
        let score = |band: &Band| (self.score)(band, bands.takes().max(band.age));
        let candidates = gaining(bands).filter(|(_, band)| may_be(band));
        // Of equal scores, the band with the lowest number wins.
        candidates.max_by_key(|(zone, band)| (score(band), std::cmp::Reverse(*zone))).map(|(zone, _)| zone)
    }
}

/// Returns the bands that no task writes to and whose emptying gains space.
fn gaining(bands: &Bands) -> impl Iterator<Item = (u32, &Band)> {
    let is_idle = |band: &Band| band.is_writable && !band.is_allocated && band.pins == 0 && !band.is_put_off();
    bands.all().filter(move |(_, band)| is_idle(band) && bands.gain(band) > 0)
}

/// Returns the number of the band with the fewest live blocks, whatever the policy; of equal bands, the lowest number.
/// Bands that are in use, pinned, not writable, put off after failures, or without gain are left out. Returns `None` if
/// no band is left.
pub fn easiest(bands: &Bands) -> Option<u32> {
    gaining(bands).min_by_key(|(zone, band)| (band.live, *zone)).map(|(zone, _)| zone)
}
