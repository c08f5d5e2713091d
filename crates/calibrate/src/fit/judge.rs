//! Computes the distance of a profile from a measurement: one number, the loss, that a search minimizes.
//!
//! There are two losses. **Pairs** is the mean square of the differences request by request, where a difference of more
//! than a sixty-fourth of a rotation counts as one of that size. A request that just misses its sector comes a whole
//! rotation later, which says little about the cause; a few such requests more or less would outweigh all the others.
//! This loss determines values to microseconds. It works only if pauses were recorded so exactly that the model's
//! platter turns in step with the real one. **Distributions** is the square of the demerit figure by classes of
//! requests (reads and writes, by the distance from the request before), so that opposite errors in two classes do not
//! cancel out. This loss needs no pairs, and is less exact: with some thousand requests, chance alone makes
//! distributions differ by a tenth of a millisecond.
//!
//! Invariants:
//! 1. A profile that gives the measured times has the loss 0, in both measures.
//! 2. Held-out requests have no part in training: each request counts in one of the two.

use std::collections::BTreeMap;

use imbrex_disk::{Operation, Profile};
use imbrex_sim::Drive;

use super::error::FitError;
use crate::compare::{Comparison, compare};
use crate::measured::Measured;
use crate::replay::replay;

/// One request in this many is held out.
const HELD_OUT: usize = 3;

/// Reciprocal of the share of a rotation by which a request may differ to count as in step.
const IN_STEP: u64 = 8;

/// Reciprocal of the share of a rotation to which differences are limited. If the platter is in step, nine requests in
/// ten differ by less; half of the others missed a rotation, or caught one earlier.
const MISSED: u64 = 64;

/// A set of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// Requests that a search uses to find values.
    Training,
    /// Requests that decide which changes are kept.
    HeldOut,
    /// All requests.
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

/// The loss that a search minimizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Measure {
    /// Differences request by request.
    Pairs,
    /// Distributions of the classes.
    Distributions,
}

/// A request with its measured and its simulated time.
#[derive(Clone, Copy, Debug)]
struct Pair {
    index: usize,
    measured_ns: u64,
    simulated_ns: u64,
    /// Whether the request is a read, and the class of its distance from the request before.
    class: (bool, u32),
    /// Whether the simulated drive answered it from its buffer.
    hit: bool,
}

/// Result of replaying a measurement on a profile's drive.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pairs: Vec<Pair>,
    rotation_ns: u64,
}

/// Returns the drive that `profile` describes, with its default layer.
pub(super) fn profile_drive(profile: &Profile) -> Result<Drive, FitError> {
    Ok(Drive::assemble(&profile.name, profile.clone(), &profile.default_layer, &[])?)
}

/// Replays `measured` on the drive of `profile`.
pub(super) fn judge(profile: &Profile, measured: &Measured) -> Result<Judged, FitError> {
    let drive = profile_drive(profile)?;
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
                // Each class of distance reaches eight times as far as the one before.
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
    /// Returns the demerit figure over all requests.
    pub(super) fn whole(&self) -> Comparison {
        distance(&self.pairs.iter().collect::<Vec<_>>()).expect("a judgement has requests")
    }

    /// Returns the loss by `measure` over `part`; infinity if `part` has no request.
    pub(super) fn loss(&self, measure: Measure, part: Part) -> f64 {
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

    /// Returns whether the model's platter turns in step with the real one: most requests that the medium serves end
    /// close to their measured end. Out of step, a quarter of them do so by chance.
    pub(super) fn is_in_step(&self) -> bool {
        let within = self.rotation_ns / IN_STEP;
        let medium = || self.pairs.iter().filter(|pair| !pair.hit);
        let near = medium().filter(|pair| pair.measured_ns.abs_diff(pair.simulated_ns) < within).count();
        near * 2 > medium().count()
    }
}

/// Returns the mean square of the demerit figures of the classes, plus the square of the figure over all requests.
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
