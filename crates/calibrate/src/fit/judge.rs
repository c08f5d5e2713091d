//! How far a profile is from a measurement, in one number that a search can make small.
//!
//! There are two such numbers. **Pairs**: the mean square of the difference request by request, where a difference of
//! more than a sixty-fourth of a rotation counts as one of that size. A request that just misses its sector comes a
//! whole rotation later, which says little about why; a few such requests more or less would outweigh all the others.
//! It pins values down to microseconds, but only where pauses were recorded so exactly that the platter of the model
//! turns in step with the real one. **Distributions**: the square of the demerit figure by classes of requests (reads
//! and writes, by how far they lie from the one before), so that an error in one class is not hidden by the opposite
//! one in another. It needs no pairs, and is blunt: of some thousand requests, chance alone makes distributions differ
//! by a tenth of a millisecond.
//!
//! Invariants:
//! 1. A profile that gives the measured times has the number 0, in both.
//! 2. What is held out has no part in what is trained on: a request counts in one of the two.

use std::collections::BTreeMap;

use imbrex_disk::{Operation, Profile};
use imbrex_sim::Drive;

use super::error::FitError;
use crate::compare::{Comparison, compare};
use crate::measured::Measured;
use crate::replay::replay;

/// One request in so many is held out.
const HELD_OUT: usize = 3;

/// The share of a rotation by which a request may differ and be in step.
const IN_STEP: u64 = 8;

/// The share of a rotation beyond which a difference counts as no larger: on a drive whose platter is in step nine requests of
/// ten lie within it, and half of the rest have missed a rotation, or caught one.
const MISSED: u64 = 64;

/// Which requests count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// Those that values are sought with.
    Training,
    /// Those that say which values to keep.
    HeldOut,
    /// Both.
    All,
}

impl Part {
    fn has(self, index: usize) -> bool {
        match self {
            Part::Training => index % HELD_OUT != HELD_OUT - 1,
            Part::HeldOut => index % HELD_OUT == HELD_OUT - 1,
            Part::All => true,
        }
    }
}

/// Which number is made small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Measure {
    /// Request by request.
    Pairs,
    /// By the distributions of classes.
    Distributions,
}

/// A request on both sides.
#[derive(Clone, Copy, Debug)]
struct Pair {
    index: usize,
    measured_ns: u64,
    simulated_ns: u64,
    /// Reads or writes, by how far they lie from the one before.
    class: (bool, u32),
    /// Whether the simulated drive answered it from its buffer.
    hit: bool,
}

/// What a profile made of a measurement.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pairs: Vec<Pair>,
    rotation_ns: u64,
}

/// Plays `measured` to the drive of `profile`.
pub(super) fn judge(profile: &Profile, measured: &Measured) -> Result<Judged, FitError> {
    let drive = Drive::assemble(&profile.name, profile.clone(), &profile.default_layer, &[])?;
    let rotation_ns = drive.disk.geometry.rotation_ns() as u64;
    let simulated = replay(measured, drive)?;
    let mut pairs = Vec::with_capacity(simulated.len());
    let mut before = 0u64;
    for (index, (request, simulated)) in measured.requests.iter().zip(&simulated).enumerate() {
        let distance = request.command.lba.0.abs_diff(before);
        before = request.command.end().0;
        if simulated.served {
            pairs.push(Pair {
                index,
                measured_ns: request.taken.0,
                simulated_ns: simulated.taken.0,
                // Eight times as far each time.
                class: (request.command.operation == Operation::Read, (64 - distance.leading_zeros()).div_ceil(3)),
                hit: simulated.hit,
            });
        }
    }
    if pairs.is_empty() {
        return Err(FitError::Measurement("every request lies past the end of the drive".into()));
    }
    Ok(Judged { pairs, rotation_ns })
}

impl Judged {
    /// The demerit figure over all requests.
    pub fn whole(&self) -> Comparison {
        distance(&self.pairs.iter().collect::<Vec<_>>()).expect("a judgement has requests")
    }

    /// The number by `measure` over `part`; infinite where `part` has no request.
    pub fn loss(&self, measure: Measure, part: Part) -> f64 {
        let chosen: Vec<&Pair> = self.pairs.iter().filter(|pair| part.has(pair.index)).collect();
        if chosen.is_empty() {
            return f64::INFINITY;
        }
        match measure {
            Measure::Pairs => self.by_pairs(&chosen),
            Measure::Distributions => by_distributions(&chosen),
        }
    }

    fn by_pairs(&self, pairs: &[&Pair]) -> f64 {
        let most = (self.rotation_ns / MISSED) as f64;
        let square = |pair: &&Pair| (pair.measured_ns.abs_diff(pair.simulated_ns) as f64).min(most).powi(2);
        pairs.iter().map(square).sum::<f64>() / pairs.len() as f64
    }

    /// Whether the platter turns in step with the real one: most requests that the medium serves end where they ended.
    /// Where it does not, a quarter of them do by chance.
    pub fn is_in_step(&self) -> bool {
        let within = self.rotation_ns / IN_STEP;
        let medium = || self.pairs.iter().filter(|pair| !pair.hit);
        let near = medium().filter(|pair| pair.measured_ns.abs_diff(pair.simulated_ns) < within).count();
        near * 2 > medium().count()
    }
}

/// The mean square over classes, and that over all.
fn by_distributions(pairs: &[&Pair]) -> f64 {
    let mut classes: BTreeMap<(bool, u32), Vec<&Pair>> = BTreeMap::new();
    for pair in pairs {
        classes.entry(pair.class).or_default().push(pair);
    }
    let square = |pairs: &[&Pair]| distance(pairs).map_or(0.0, |whole| (whole.rms_ns as f64).powi(2));
    let squares: f64 = classes.values().map(|class| class.len() as f64 * square(class)).sum();
    squares / pairs.len() as f64 + square(pairs)
}

fn distance(pairs: &[&Pair]) -> Option<Comparison> {
    let mut measured_ns: Vec<u64> = pairs.iter().map(|pair| pair.measured_ns).collect();
    let mut simulated_ns: Vec<u64> = pairs.iter().map(|pair| pair.simulated_ns).collect();
    compare(&mut measured_ns, &mut simulated_ns)
}
