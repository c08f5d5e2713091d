//! Which band the cleaner empties. To add one: a function and a line in [`ALL`].

use super::bands::{Band, Bands};

/// A policy.
#[derive(Clone, Copy)]
pub struct Policy {
    /// The larger, the sooner it is emptied; a band that gains nothing is never asked.
    score: fn(&Band, now: u64, band_blocks: u64) -> u128,
}

/// A name, what it does, and its score.
pub type Known = (&'static str, &'static str, fn(&Band, u64, u64) -> u128);

/// All of them.
pub const ALL: &[Known] = &[
    ("greedy", "the band with the fewest live blocks", greedy),
    (
        "cost-benefit",
        "the band with the largest (1 - u) × age / (1 + u), u the share that is live (Rosenblum 1992)",
        cost_benefit,
    ),
    ("oldest", "the band that was written longest ago", oldest),
];

/// That called `name`.
pub fn named(name: &str) -> Result<Policy, String> {
    let found = ALL.iter().find(|(known, ..)| *known == name);
    let known: Vec<&str> = ALL.iter().map(|(known, ..)| *known).collect();
    found
        .map(|(.., score)| Policy { score: *score })
        .ok_or_else(|| format!("cleaner={name}: there are {}", known.join(", ")))
}

fn greedy(band: &Band, _now: u64, band_blocks: u64) -> u128 {
    u128::from(band_blocks - band.live)
}

fn cost_benefit(band: &Band, now: u64, band_blocks: u64) -> u128 {
    let (dead, whole) = (u128::from(band_blocks - band.live), u128::from(band_blocks + band.live));
    dead * u128::from(now - band.age + 1) * (1 << 20) / whole
}

fn oldest(band: &Band, now: u64, _band_blocks: u64) -> u128 {
    u128::from(now - band.age)
}

impl Policy {
    /// The band to empty, if emptying one gains anything.
    pub fn choose(&self, bands: &Bands, _now_ns: u64) -> Option<u32> {
        let gains = |(_, band): &(u32, &Band)| band.is_writable && !band.is_leased && band.live < band.written;
        let score = |band: &Band| (self.score)(band, bands.takes().max(band.age), bands.band_blocks());
        let candidates = bands.all().filter(gains);
        // Of equals the first.
        candidates.max_by_key(|(zone, band)| (score(band), std::cmp::Reverse(*zone))).map(|(zone, _)| zone)
    }
}
