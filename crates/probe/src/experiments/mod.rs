//! The experiments, one file each, in the order in which they run: cheap before dear, and what the later ones rest on
//! before them.

mod cache_fill;
mod cache_place;
mod cleaning_kind;
mod drive_type;
mod rotation;

use rand_core::RngCore;
use rand_xoshiro::Xoshiro256StarStar;

use crate::target::{Operation, Target, TargetError, Timed};
use crate::verdict::{Head, Series, Verdict};

/// Bytes of a small request.
pub const BLOCK_BYTES: u64 = 4096;

/// What an experiment works with.
pub struct Bench<'a> {
    /// What is probed.
    pub target: &'a mut dyn Target,
    /// For places.
    pub random: Xoshiro256StarStar,
    /// What is known so far.
    pub verdict: &'a mut Verdict,
}

/// An experiment, as the registry lists it.
pub struct Experiment {
    /// Its name, for `--test`.
    pub name: &'static str,
    /// What it asks.
    pub question: &'static str,
    /// Number of the test in Aghayev 2015 §4, where it is one of those.
    pub source: &'static str,
    /// Whether it writes.
    pub writes: bool,
    /// The properties it may tell.
    pub tells: &'static [&'static str],
    /// How long it takes on a real drive, about: with a budget, what tells most for its time goes first.
    pub about_s: u32,
    /// Why it would tell nothing, given what is known; nothing if it would.
    pub is_idle: fn(&Verdict) -> Option<&'static str>,
    /// Runs it.
    pub run: fn(&mut Bench<'_>) -> Result<(), TargetError>,
}

/// Every experiment.
pub fn all() -> &'static [&'static Experiment] {
    &[
        &rotation::EXPERIMENT,
        &drive_type::EXPERIMENT,
        &cache_place::EXPERIMENT,
        &cleaning_kind::EXPERIMENT,
        &cache_fill::EXPERIMENT,
    ]
}

impl Bench<'_> {
    /// A uniform number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.random.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// `count` different blocks of [`BLOCK_BYTES`] in random order, among the first `bytes` from `offset`.
    pub fn scattered(&mut self, offset: u64, bytes: u64, count: usize) -> Vec<u64> {
        let blocks = bytes / BLOCK_BYTES;
        let mut chosen = std::collections::BTreeSet::new();
        let mut order = Vec::with_capacity(count);
        while order.len() < count.min(blocks as usize) {
            let block = self.below(blocks);
            if chosen.insert(block) {
                order.push(offset + block * BLOCK_BYTES);
            }
        }
        order
    }

    /// Performs `operations` one after the other, and keeps their latencies as the series `name`.
    pub fn one_by_one(&mut self, name: &'static str, operations: &[Operation]) -> Result<Vec<u64>, TargetError> {
        let timed = crate::target::latencies(self.target, 1, operations)?;
        self.keep(name, &timed);
        Ok(timed.iter().map(Timed::latency_ns).collect())
    }

    /// Keeps the latencies of `timed` as the series `name`: number of the operation, milliseconds.
    pub fn keep(&mut self, name: &'static str, timed: &[Timed]) {
        let points =
            timed.iter().enumerate().map(|(index, timed)| (index as f64, timed.latency_ns() as f64 / 1e6)).collect();
        self.verdict.series.push(Series { name, x: "operation", y: "latency_ms", points });
        self.keep_head(name, timed);
    }

    /// Keeps the head's path beside the series `name`, where the target can tell it.
    fn keep_head(&mut self, name: &'static str, timed: &[Timed]) {
        let (Some(path), Some(first)) = (self.target.head_path(), timed.first()) else { return };
        let begun_ns = first.begin_ns;
        let within = path.points.iter().filter(|(at_ns, _)| *at_ns >= begun_ns);
        let points: Vec<_> =
            within.map(|&(at_ns, track)| ((at_ns - begun_ns) as f64 / 1e9, f64::from(track))).collect();
        self.verdict.heads.retain(|head| head.series != name);
        self.verdict.heads.push(Head { series: name, tracks: path.tracks, points });
    }

    /// An offset at this share of the drive, a multiple of a mebibyte.
    pub fn at_share(&self, share: f64) -> u64 {
        (self.target.size_bytes() as f64 * share) as u64 >> 20 << 20
    }
}

/// For experiments that concern shingled drives with a cache on the platters.
fn only_for_cached(verdict: &Verdict) -> Option<&'static str> {
    match verdict.word("type") {
        Some("shingled") => None,
        Some(_) => Some("the drive is not shingled"),
        None => Some("the drive's type is not known"),
    }
}

/// Every other block of a run of 1024, written; then all 1024 read: latencies of the reads, nanoseconds. What Aghayev
/// 2015 §4.4 calls a fragmented read; `pause_ns` lies between writing and reading.
fn fragmented_read(
    bench: &mut Bench<'_>,
    name: &'static str,
    offset: u64,
    pause_ns: u64,
) -> Result<Vec<u64>, TargetError> {
    let writes: Vec<_> =
        (0..512).map(|index| Operation::write(offset + index * 2 * BLOCK_BYTES, BLOCK_BYTES)).collect();
    crate::target::latencies(bench.target, 1, &writes)?;
    if pause_ns > 0 {
        bench.target.sleep(pause_ns)?;
    }
    let reads: Vec<_> = (0..1024).map(|index| Operation::read(offset + index * BLOCK_BYTES, BLOCK_BYTES)).collect();
    bench.one_by_one(name, &reads)
}
