//! Finds the period of rotation, and the skews, from the angles at which requests end.
//!
//! The simulated drive ends a request when the platter has turned by a known angle, so the phase θ of the end (a share
//! of a rotation) follows from the profile's geometry, whatever its period. On the real drive, the ends have the same
//! phases if its sectors lie at the same angles: the time of end i is c + T · (nᵢ + θᵢ) + skews, with the period T, a
//! whole number nᵢ and a constant c. Skews are times in a profile, so their shares of θ depend on T and are kept apart.
//!
//! 1. Each period of the range is tried with the differences between consecutive requests: a periodogram. The best
//!    period must stand out from chance, and from every other period, or nothing is said.
//! 2. Differences over 4, 16, … requests narrow the period further, as long as the phases remain in step.
//! 3. A regression over all requests gives T and the skews with their errors.
//!
//! Invariants:
//! 1. No period is stated if another one explains the phases nearly as well.

use super::error::FitError;
use super::interval::Interval;
use super::judge::profile_drive;
use super::linear::inverse;
use super::search::Search;
use crate::replay::replay;

/// Keys of the skews.
const SKEWS: [&str; 2] = ["geometry.track_skew_ns", "geometry.head_skew_ns"];

/// Steps by which a skew is moved to find how often it delays a request, ns.
const SKEW_STEPS_NS: [f64; 2] = [1.0, 100.0];

/// Longest time between two ends of which the difference is used in the first step, ns.
const GAP_NS_MAX: f64 = 1e9;

/// Most differences that are used in the first step.
const PAIRS_MAX: usize = 400;

/// Most periods that are tried in the first step.
const TRIED_MAX: f64 = 4e5;

/// Number of periods tried in the width of a peak.
const FINENESS: f64 = 6.0;

/// Width, in standard errors, in which the next step looks for the frequency.
const SEARCHED: f64 = 5.0;

/// Most angles that one step computes.
const COST_MAX: f64 = 3e7;

/// By how much the logarithm of the likelihood must exceed that of chance, and of any other period.
const CLEAR: f64 = 10.0;

/// Half width of an interval in standard errors. More than normal errors need, since stray requests are left out.
const ERRORS: f64 = 2.4;

/// Parts of a record of which the periods are compared.
const PARTS: usize = 4;

/// Mean square of the differences between parts, in standard errors, above which the period wanders.
const WANDERS: f64 = 4.0;

/// Multiples of the median absolute residual beyond which a request has no part in the regression.
const STRAY: f64 = 6.0;

/// The end of a request.
#[derive(Clone, Copy, Debug)]
struct End {
    measured_ns: f64,
    /// Phase without the skews, of a rotation.
    phase: f64,
    /// Number of times that each skew delays the end.
    skews: [f64; 2],
    is_read: bool,
}

/// A value known from phases: its index in the search, and its estimate with an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phased {
    pub index: usize,
    pub estimate: f64,
    pub interval: Interval,
}

/// Returns the values that phases determine, the rotation first; empty if the phases are out of step.
/// `range_ns` are the periods to try.
pub(super) fn phased(search: &Search<'_>, range_ns: Interval) -> Result<Vec<Phased>, FitError> {
    if search.measured.depth() > 1 {
        return Ok(Vec::new());
    }
    let ends = ends(search)?;
    if ends.len() < 12 {
        return Ok(Vec::new());
    }
    let profile: [f64; 2] = SKEWS.map(|key| skew(search, key).map_or(0.0, |index| search.values[index].now));
    let Some((frequency, width)) = peak(&ends, profile, range_ns) else { return Ok(Vec::new()) };
    let (frequency, error) = narrowed(&ends, profile, frequency, width);
    let whole = since_first(&ends, profile);
    let Some(best) = highest(&whole, frequency, SEARCHED * error) else { return Ok(Vec::new()) };
    if likelihood(best.length, whole.len()) > likelihood(best.second, whole.len()) + CLEAR {
        return Ok(regression(search, &ends, profile, best.frequency));
    }
    // Several frequencies suit the record as a whole: the differences alone tell the period.
    let Some(index) = search.values.iter().position(|value| value.is_rotation()) else { return Ok(Vec::new()) };
    let estimate = 1.0 / frequency;
    Ok(vec![Phased { index, estimate, interval: around(estimate, 1.5 * error / frequency.powi(2)) }])
}

fn skew(search: &Search<'_>, key: &str) -> Option<usize> {
    search.values.iter().position(|value| value.key == key)
}

/// Returns the ends of the requests that the medium serves.
fn ends(search: &Search<'_>) -> Result<Vec<End>, FitError> {
    let (rotation_ns, phases) = phases(search)?;
    let mut skews = vec![[0.0; 2]; phases.len()];
    for (at, key) in SKEWS.iter().enumerate() {
        let Some(index) = skew(search, key) else { continue };
        // The simulated times are whole nanoseconds. A small step finds the nearly right number, a large one the rest.
        for step in SKEW_STEPS_NS {
            let mut moved = search.clone();
            moved.values[index].now += step;
            let later = match self::phases(&moved) {
                Err(FitError::Profile(_)) => break,
                later => later?.1,
            };
            for (skews, (before, after)) in skews.iter_mut().zip(phases.iter().zip(&later)) {
                let expected = skews[at] * step / rotation_ns;
                skews[at] += (centred(after.1 - before.1 - expected) * rotation_ns / step).round();
            }
        }
    }
    let profile: [f64; 2] = SKEWS.map(|key| skew(search, key).map_or(0.0, |index| search.values[index].now));
    let requests = search.measured.requests.iter().zip(phases).zip(skews);
    let end = |((request, (hit, phase)), skews): ((&crate::measured::MeasuredRequest, (bool, f64)), [f64; 2])| {
        (!hit).then(|| End {
            measured_ns: request.completed().0 as f64,
            phase: (phase - (skews[0] * profile[0] + skews[1] * profile[1]) / rotation_ns).rem_euclid(1.0),
            skews,
            is_read: request.command.operation == imbrex_disk::Operation::Read,
        })
    };
    Ok(requests.filter_map(end).collect())
}

/// Returns the simulated period, and for each request whether the medium did not serve it and the phase of its end.
fn phases(search: &Search<'_>) -> Result<(f64, Vec<(bool, f64)>), FitError> {
    let drive = profile_drive(&search.fitted()?)?;
    let rotation_ns = drive.disk.geometry.rotation_ns() as u64;
    let simulated = replay(search.measured, drive)?;
    let (mut now, mut completed) = (0u64, None);
    let mut phases = Vec::with_capacity(simulated.len());
    for (request, simulated) in search.measured.requests.iter().zip(&simulated) {
        now += completed.map_or(0, |completed| request.issued.since(completed).0) + simulated.taken.0;
        completed = Some(request.completed());
        let phase = (now % rotation_ns) as f64 / rotation_ns as f64;
        phases.push((simulated.hit || !simulated.served, phase));
    }
    Ok((rotation_ns as f64, phases))
}

/// Returns `turns` less the nearest whole number.
fn centred(turns: f64) -> f64 {
    turns - turns.round()
}

/// Returns the differences of time (ns) and phase between each request and the one `lag` before it.
fn differences(ends: &[End], profile: [f64; 2], lag: usize) -> Vec<(f64, f64)> {
    let time = |end: &End| end.measured_ns - end.skews[0] * profile[0] - end.skews[1] * profile[1];
    let pairs = ends.iter().zip(ends.iter().skip(lag));
    pairs.map(|(first, second)| (time(second) - time(first), second.phase - first.phase)).collect()
}

/// Returns the differences of time (ns) and phase between each request and the first.
fn since_first(ends: &[End], profile: [f64; 2]) -> Vec<(f64, f64)> {
    let time = |end: &End| end.measured_ns - end.skews[0] * profile[0] - end.skews[1] * profile[1];
    ends.iter().map(|end| (time(end) - time(&ends[0]), end.phase)).collect()
}

/// Returns the length of the mean of the vectors with the angles that `frequency` (1/ns) leaves.
fn coherence(differences: &[(f64, f64)], frequency: f64) -> f64 {
    let (mut cosines, mut sines) = (0.0, 0.0);
    for (time, phase) in differences {
        let (sine, cosine) = (std::f64::consts::TAU * centred(time * frequency - phase)).sin_cos();
        cosines += cosine;
        sines += sine;
    }
    f64::hypot(cosines, sines) / differences.len() as f64
}

fn deviation(differences: &[(f64, f64)]) -> f64 {
    let mean = differences.iter().map(|(time, _)| time).sum::<f64>() / differences.len() as f64;
    (differences.iter().map(|(time, _)| (time - mean).powi(2)).sum::<f64>() / differences.len() as f64).sqrt()
}

/// Returns the frequency (1/ns) in which the phases of consecutive requests are in step, and the half width of its
/// peak. Returns `None` if no frequency stands out.
fn peak(ends: &[End], profile: [f64; 2], range_ns: Interval) -> Option<(f64, f64)> {
    let gaps = ends.iter().zip(&ends[1..]).map(|(first, second)| second.measured_ns - first.measured_ns);
    let all = differences(ends, profile, 1);
    let mut used: Vec<(f64, f64)> =
        all.into_iter().zip(gaps).filter(|(_, gap)| *gap < GAP_NS_MAX).map(|(d, _)| d).collect();
    used.truncate(PAIRS_MAX);
    if used.len() < 12 {
        return None;
    }
    let width = resolution(&used);
    let (low, high) = (1.0 / range_ns.high, 1.0 / range_ns.low);
    let count = ((high - low) / width * FINENESS).ceil();
    if count > TRIED_MAX {
        return None;
    }
    let at = |index: usize| low + (high - low) * index as f64 / count;
    let lengths: Vec<f64> = (0..=count as usize).map(|index| coherence(&used, at(index))).collect();
    let best = (0..lengths.len()).max_by(|a, b| lengths[*a].total_cmp(&lengths[*b]))?;
    let apart = (6.0 * FINENESS) as usize;
    let others = (0..lengths.len()).filter(|index| index.abs_diff(best) > apart).map(|index| lengths[index]);
    let second = others.fold(0.0, f64::max);
    let clear = lengths[best].powi(2) * used.len() as f64 > count.max(1.0).ln() + CLEAR
        && likelihood(lengths[best], used.len()) > likelihood(second, used.len()) + CLEAR;
    clear.then(|| (at(best), width))
}

/// Returns the frequency after differences over more and more requests have narrowed it, and its standard error.
fn narrowed(ends: &[End], profile: [f64; 2], mut frequency: f64, mut width: f64) -> (f64, f64) {
    let mut lag = 1;
    let mut standard_error = width;
    while lag < ends.len() / 2 {
        let used = differences(ends, profile, lag);
        let Some(best) = highest(&used, frequency, width) else { break };
        if best.length.powi(2) * (used.len() as f64) < CLEAR {
            break;
        }
        standard_error = resolution(&used) * error(best.length) / (used.len() as f64).sqrt();
        (frequency, width) = (best.frequency, width.min(SEARCHED * standard_error));
        lag *= 4;
    }
    (frequency, standard_error)
}

/// The highest peak of a periodogram.
struct Peak {
    frequency: f64,
    length: f64,
    /// Coherence at the highest other peak.
    second: f64,
}

/// Returns the highest peak within `width` of `frequency`; `None` if too many frequencies would have to be tried.
fn highest(differences: &[(f64, f64)], frequency: f64, width: f64) -> Option<Peak> {
    let count = (width / resolution(differences) * FINENESS).ceil().max(1.0);
    if count * differences.len() as f64 > COST_MAX {
        return None;
    }
    let count = count as i64;
    let at = |index: i64| frequency + width * index as f64 / count as f64;
    let lengths: Vec<f64> = (-count..=count).map(|index| coherence(differences, at(index))).collect();
    let best = (0..lengths.len()).max_by(|a, b| lengths[*a].total_cmp(&lengths[*b]))?;
    let apart = (3.0 * FINENESS) as usize;
    let others = (0..lengths.len()).filter(|index| index.abs_diff(best) > apart).map(|index| lengths[index]);
    let second = others.fold(0.0, f64::max);
    let finer = refined(differences, at(best as i64 - count), width / count as f64);
    Some(Peak { frequency: finer, length: coherence(differences, finer), second })
}

/// Returns the change of frequency that turns the differences apart by about a radian, 1/ns.
fn resolution(differences: &[(f64, f64)]) -> f64 {
    1.0 / (std::f64::consts::TAU * deviation(differences).max(1.0))
}

/// Returns the logarithm of the likelihood of a coherence of `count` phases, but for a constant.
fn likelihood(length: f64, count: usize) -> f64 {
    -(count as f64) * (1.0 - length.powi(2)).max(1e-9).ln()
}

/// Returns the standard deviation of a phase, in radians, of vectors with a mean of the length `length`, at least 0.05.
fn error(length: f64) -> f64 {
    (-2.0 * length.clamp(1e-3, 1.0).ln()).sqrt().max(0.05)
}

/// Returns the frequency within `width` of `at` with the greatest coherence, by repeated thirds.
fn refined(differences: &[(f64, f64)], at: f64, width: f64) -> f64 {
    let (mut low, mut high) = (at - width, at + width);
    for _ in 0..40 {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if coherence(differences, left) < coherence(differences, right) {
            low = left;
        } else {
            high = right;
        }
    }
    (low + high) / 2.0
}

/// Returns the period and the skews with their intervals, by a regression over all requests. Empty if most requests are
/// out of step.
fn regression(search: &Search<'_>, ends: &[End], profile: [f64; 2], frequency: f64) -> Vec<Phased> {
    let Some(rotation) = search.values.iter().position(|value| value.is_rotation()) else { return Vec::new() };
    let mut period_ns = 1.0 / frequency;
    let (mut at, origin) = (profile, ends[0].measured_ns);
    let mut result = Vec::new();
    for _ in 0..4 {
        let time = |end: &End| end.measured_ns - origin - end.skews[0] * at[0] - end.skews[1] * at[1];
        let turns: Vec<f64> = ends.iter().map(|end| time(end) / period_ns - end.phase).collect();
        let (sines, cosines) = turns.iter().fold((0.0, 0.0), |(sines, cosines), turn| {
            let (sine, cosine) = (std::f64::consts::TAU * centred(*turn)).sin_cos();
            (sines + sine, cosines + cosine)
        });
        if f64::hypot(sines, cosines).powi(2) < CLEAR * turns.len() as f64 {
            return Vec::new();
        }
        let offset = f64::atan2(sines, cosines) / std::f64::consts::TAU;
        let left: Vec<f64> = turns.iter().map(|turn| centred(turn - offset) * period_ns).collect();
        let mut sizes: Vec<f64> = left.iter().map(|late| late.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let limit = STRAY * sizes[sizes.len() / 2].max(1.0);
        let kept: Vec<usize> = (0..ends.len()).filter(|&index| left[index].abs() <= limit).collect();
        let columns = columns(ends, &turns, &kept);
        let (moves, errors) = least_squares(&columns, &kept.iter().map(|&index| left[index]).collect::<Vec<f64>>());
        let wander_ns = wander(&columns[0], &kept.iter().map(|&index| left[index]).collect::<Vec<f64>>(), moves[0]);
        period_ns += moves[0];
        let (mut changes, mut index) = ([0.0; 2], 1);
        let error = errors[0].max(wander_ns / ERRORS);
        result = vec![Phased { index: rotation, estimate: period_ns, interval: around(period_ns, error) }];
        for which in 0..2 {
            let Some(position) = skew(search, SKEWS[which]).filter(|_| varies(ends, &kept, which)) else { continue };
            changes[which] = moves[index];
            let estimate = at[which] + moves[index];
            result.push(Phased { index: position, estimate, interval: around(estimate, errors[index]) });
            index += 1;
        }
        at = [at[0] + changes[0], at[1] + changes[1]];
    }
    result
}

/// Returns by how much the period of a part of the record differs at most from that of the whole, ns: a spindle does not
/// turn equally fast for hours. Returns 0 if chance explains the differences. `whole` is the slope over all requests.
fn wander(turns: &[f64], left: &[f64], whole: f64) -> f64 {
    let size = turns.len() / PARTS;
    if size < 16 {
        return 0.0;
    }
    let parts = turns.chunks_exact(size).zip(left.chunks_exact(size)).map(|(turns, left)| {
        let (slopes, errors) = least_squares(&[turns.to_vec(), vec![1.0; size]], left);
        (slopes[0] - whole, errors[0])
    });
    let parts: Vec<(f64, f64)> = parts.collect();
    let squares: f64 = parts.iter().map(|(away, error)| (away / error.max(1e-9)).powi(2)).sum();
    let most = parts.iter().map(|(away, _)| away.abs()).fold(0.0, f64::max);
    if squares > WANDERS * parts.len() as f64 { most } else { 0.0 }
}

fn around(estimate: f64, error: f64) -> Interval {
    let half = (ERRORS * error).max(0.5);
    Interval { low: estimate - half, high: estimate + half }
}

/// Returns whether the number of skews differs between requests.
fn varies(ends: &[End], kept: &[usize], which: usize) -> bool {
    kept.iter().any(|&index| ends[index].skews[which] != ends[kept[0]].skews[which])
}

/// Returns the columns of the regression: turns, the skews that vary, whether a request is a read, and 1.
fn columns(ends: &[End], turns: &[f64], kept: &[usize]) -> Vec<Vec<f64>> {
    let mut columns = vec![kept.iter().map(|&index| turns[index].round() + ends[index].phase).collect::<Vec<f64>>()];
    for which in 0..2 {
        if varies(ends, kept, which) {
            columns.push(kept.iter().map(|&index| ends[index].skews[which]).collect());
        }
    }
    let reads: Vec<f64> = kept.iter().map(|&index| f64::from(u8::from(ends[index].is_read))).collect();
    if reads.iter().any(|read| *read != reads[0]) {
        columns.push(reads);
    }
    columns.push(vec![1.0; kept.len()]);
    columns
}

/// Returns the coefficients of a least squares fit and their standard errors.
fn least_squares(columns: &[Vec<f64>], left: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let size = columns.len();
    // Columns of very different sizes are brought to length 1, and all but the last to mean 0.
    let means: Vec<f64> = columns.iter().map(|column| column.iter().sum::<f64>() / column.len() as f64).collect();
    let centre = |at: usize, value: f64| if at + 1 == size { value } else { value - means[at] };
    let lengths: Vec<f64> = (0..size)
        .map(|at| columns[at].iter().map(|value| centre(at, *value).powi(2)).sum::<f64>().sqrt().max(1e-9))
        .collect();
    let entry = |at: usize, row: usize| centre(at, columns[at][row]) / lengths[at];
    let mut gram = vec![vec![0.0; size]; size];
    let mut products = vec![0.0; size];
    for (row, late) in left.iter().enumerate() {
        for i in 0..size {
            products[i] += entry(i, row) * late;
            (0..size).for_each(|j| gram[i][j] += entry(i, row) * entry(j, row));
        }
    }
    let inverse = inverse(&gram);
    let scaled: Vec<f64> = inverse.iter().map(|row| row.iter().zip(&products).map(|(a, b)| a * b).sum()).collect();
    let remainder =
        |(row, late): (usize, &f64)| (late - (0..size).map(|at| entry(at, row) * scaled[at]).sum::<f64>()).powi(2);
    let freedom = left.len().saturating_sub(size).max(1) as f64;
    let variance = left.iter().enumerate().map(remainder).sum::<f64>() / freedom;
    let errors = (0..size).map(|at| (variance * inverse[at][at]).sqrt() / lengths[at]).collect();
    (scaled.iter().zip(&lengths).map(|(value, length)| value / length).collect(), errors)
}
