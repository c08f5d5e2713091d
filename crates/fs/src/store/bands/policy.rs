//! Which band the cleaner empties. To add one: a function and a line in [`ALL`].

use super::{Band, Bands};

/// A policy.
#[derive(Clone, Copy)]
pub struct Policy {
    /// The larger, the sooner it is emptied; a band that gains nothing is never asked.
    score: fn(&Band, now: u64) -> u128,
    /// Whether files that have something in the band are moved as a whole.
    moves_files: bool,
}

/// A name, what it does, and its score.
pub type Known = (&'static str, &'static str, fn(&Band, u64) -> u128);

/// All of them.
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

/// The policy that moves files as a whole, which is for stores whose files lie in pieces.
const FILES: &str = "files";

/// Shares are counted in so many parts.
const PARTS: u128 = 1 << 40;

/// What of the band's worth is not live.
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
    /// The policy called `name`.
    pub fn named(name: &str) -> Result<Policy, String> {
        let found = ALL.iter().find(|(known, ..)| *known == name);
        let known: Vec<&str> = ALL.iter().map(|(known, ..)| *known).collect();
        found
            .map(|(known, _, score)| Policy { score: *score, moves_files: *known == FILES })
            .ok_or_else(|| format!("cleaner={name}: there are {}", known.join(", ")))
    }

    /// Whether files that have something in the band that is emptied are moved as a whole.
    pub fn moves_files(&self) -> bool {
        self.moves_files
    }

    /// The band to empty among those that `may_be`, if emptying one gains anything.
    pub fn choose(&self, bands: &Bands, may_be: impl Fn(&Band) -> bool) -> Option<u32> {
        let score = |band: &Band| (self.score)(band, bands.takes().max(band.age));
        let candidates = gaining(bands).filter(|(_, band)| may_be(band));
        // Of equals the first.
        candidates.max_by_key(|(zone, band)| (score(band), std::cmp::Reverse(*zone))).map(|(zone, _)| zone)
    }
}

/// The bands that nobody writes to and whose emptying gains something.
fn gaining(bands: &Bands) -> impl Iterator<Item = (u32, &Band)> {
    let is_idle = |band: &Band| band.is_writable && !band.is_leased && band.pins == 0 && !band.is_put_off();
    bands.all().filter(move |(_, band)| is_idle(band) && bands.gain(band) > 0)
}

/// The band whose emptying takes the least room, whatever the policy: for when there is no room for what it chose.
pub fn easiest(bands: &Bands) -> Option<u32> {
    gaining(bands).min_by_key(|(zone, band)| (band.live, *zone)).map(|(zone, _)| zone)
}
