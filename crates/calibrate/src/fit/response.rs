//! Computes for each measured request how its simulated time depends on the values of the profile.
//!
//! The simulated time of a request is its *base*, the time of everything but the rotational wait, plus the wait. The
//! base is linear in overheads, settle times and the coefficients of a seek curve, so one replay for each value gives
//! its slopes. Bends (a head switch hidden by a seek) are approximated at the present values.
//!
//! Invariants:
//! 1. A row has one slope for each value of the search, in the order of the values.

use super::error::FitError;
use super::judge::profile_drive;
use super::search::Search;
use super::values::Value;
use crate::measured::Measured;
use crate::replay::{Simulated, replay};

/// Distance from the end of the request before, in sectors, up to which the angle of a request is not random.
const NEAR_SECTORS: u64 = 256;

/// Share of a value's range by which it is moved to find a slope.
const MOVE: f64 = 1.0 / 1024.0;

/// How the wait of a request is distributed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// Uniform over a rotation: the request begins at a random angle.
    Uniform,
    /// Unknown, at least 0 and less than a rotation.
    Unknown,
    /// Zero: the buffer answers the request.
    Zero,
}

/// A measured request and its simulated base, in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub measured_ns: f64,
    pub base_ns: f64,
    /// Change of the base for a change of each value by 1, in the order of the values.
    pub slopes: Vec<f64>,
    pub wait: Wait,
}

/// Returns a row for each request that the simulated drive serves, at the present values of `search`. Empty if more
/// than one request was in flight: the times then contain waits in the queue.
pub(super) fn rows(search: &Search<'_>) -> Result<Vec<Row>, FitError> {
    if search.measured.depth() > 1 {
        return Ok(Vec::new());
    }
    let present = simulated(search, search.measured)?;
    let mut rows: Vec<Option<Row>> = Vec::with_capacity(present.len());
    let mut end = None;
    for (request, simulated) in search.measured.requests.iter().zip(&present) {
        let near = end.is_some_and(|end: u64| request.command.lba.0.abs_diff(end) <= NEAR_SECTORS);
        end = Some(request.command.end().0);
        let wait = match (simulated.hit, near) {
            (true, _) => Wait::Zero,
            (false, true) => Wait::Unknown,
            (false, false) => Wait::Uniform,
        };
        let agrees = simulated.served && request.hit.is_none_or(|hit| hit == simulated.hit);
        rows.push(agrees.then(|| Row {
            measured_ns: request.taken.0 as f64,
            base_ns: base_ns(simulated),
            slopes: vec![0.0; search.values.len()],
            wait,
        }));
    }
    let mut moved = search.clone();
    for index in 0..search.values.len() {
        add_slopes(&mut moved, index, &present, &mut rows)?;
    }
    Ok(rows.into_iter().flatten().collect())
}

/// Moves value `index` upwards, or downwards if the profile is invalid then, and sets its slopes in `rows`. The slopes
/// remain 0 if neither gives a valid profile.
fn add_slopes(
    moved: &mut Search<'_>,
    index: usize,
    present: &[Simulated],
    rows: &mut [Option<Row>],
) -> Result<(), FitError> {
    let value: Value = moved.values[index].clone();
    let step = ((value.high - value.low) * MOVE).max(1.0).round();
    for step in [step, -step] {
        if !(value.low..=value.high).contains(&(value.now + step)) {
            continue;
        }
        moved.values[index].now = value.now + step;
        let result = simulated(moved, moved.measured);
        moved.values[index].now = value.now;
        let result = match result {
            Err(FitError::Profile(_)) => continue,
            result => result?,
        };
        for ((row, before), after) in rows.iter_mut().zip(present).zip(&result) {
            if let Some(row) = row.as_mut().filter(|_| after.served && before.hit == after.hit) {
                row.slopes[index] = (base_ns(after) - base_ns(before)) / step;
            }
        }
        return Ok(());
    }
    Ok(())
}

fn simulated(search: &Search<'_>, measured: &Measured) -> Result<Vec<Simulated>, FitError> {
    Ok(replay(measured, profile_drive(&search.fitted()?)?)?)
}

fn base_ns(simulated: &Simulated) -> f64 {
    simulated.taken.0 as f64 - simulated.rotation.0 as f64
}

/// Returns the step of the clock that recorded the times, in nanoseconds: the largest of 1, 2 and 5 times a power of
/// ten by which 99 of 100 durations are divisible.
pub(super) fn clock_step_ns(measured: &Measured) -> u64 {
    let durations: Vec<u64> = measured.requests.iter().map(|request| request.taken.0).filter(|ns| *ns > 0).collect();
    let steps = (0..8).flat_map(|power| [1, 2, 5].map(|digit| digit * 10u64.pow(power)));
    let divides = |step: &u64| {
        let count = durations.iter().filter(|ns| **ns % step == 0).count();
        count * 100 >= durations.len() * 99
    };
    steps.filter(divides).max().unwrap_or(1)
}
