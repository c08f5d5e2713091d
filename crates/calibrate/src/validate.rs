//! Compares a simulated drive with a measurement of a real one: the distributions of service times by class of request,
//! and the part of the model that the largest differences point at.
//!
//! Invariants:
//! 1. Each class compares the same requests on both sides.
//! 2. A drive compared with its own times has no difference in any class.

use imbrex_disk::Operation;
use serde::Serialize;

use crate::compare::{Comparison, compare};
use crate::measured::{Measured, is_sequential};
use crate::replay::Simulated;

/// Name and version of the format of the output of `imbrex validate --json`.
pub const SCHEMA: &str = "imbrex.validate/1";

/// Upper bounds of the classes by seek distance, cylinders.
const DISTANCES: [(u32, &str); 5] = [
    (0, "no seek"),
    (10, "seek of 1 to 10 cylinders"),
    (100, "seek of 11 to 100 cylinders"),
    (1_000, "seek of 101 to 1,000 cylinders"),
    (u32::MAX, "seek of more than 1,000 cylinders"),
];

/// Standard errors by which the mean difference of a range of seek distances must deviate from that of all requests.
const SURELY: f64 = 3.0;

/// If the differences between seek distances exceed this share of the difference common to all of them, the common
/// difference is attributed to the seeks too.
const SHARE_OF_SEEKS: f64 = 0.01;

/// Comparison of the measured with the simulated times of one class of requests, such as reads. A request may be in
/// several classes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Class {
    /// Name of the class of requests, such as `read hit` or `seek of 1 to 10 cylinders`; `all` for all requests.
    pub class: String,
    /// Comparison of the distributions of the measured and simulated service times of the class.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// Mean of simulated minus measured service time over the requests of the class, in nanoseconds; negative if the
    /// simulation is faster.
    pub mean_difference_ns: i64,
}

/// The part of the model of the drive that explains most of the difference between measured and simulated times.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Suspect {
    /// Name of the part: `overheads`, `seeks`, `rotation`, `cache` or `transfers`. `rotation` if no group of requests
    /// differs clearly in the mean. `nothing` if there is no difference, and `no one part` if only distributions were
    /// compared.
    pub part: String,
    /// The reason for suspecting this part, as text for people.
    pub because: String,
}

/// The result of comparing a simulated drive with a measurement of a real one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Validation {
    /// Comparison of the distributions of the measured and simulated service times of all requests that were served.
    #[serde(flatten)]
    pub whole: Comparison,
    /// Mean of simulated minus measured service time over all requests that were served, in nanoseconds; negative if
    /// the simulation is faster.
    pub mean_difference_ns: i64,
    /// Comparisons by class of request, such as reads, hits in the cache, or a range of seek distances. A request may
    /// be in several classes. Classes without requests are left out.
    pub classes: Vec<Class>,
    /// The part of the model of the drive that explains most of the difference, with the reason.
    pub suspect: Suspect,
    /// Number of measured requests that the simulated drive rejected, because they reach past its end or have no
    /// length. The comparison leaves them out. 0 if only distributions were compared.
    pub rejected: u64,
}

/// A request with its measured and its simulated time.
#[derive(Clone, Copy, Debug)]
struct Pair {
    measured_ns: u64,
    simulated_ns: u64,
    operation: Operation,
    sectors: u32,
    sequential: bool,
    hit: bool,
    distance: u32,
    rotation_ns: u64,
}

impl Pair {
    fn difference(&self) -> f64 {
        self.simulated_ns as f64 - self.measured_ns as f64
    }
}

/// Compares the times in `simulated`, the results of simulating the requests of `measured` in the same order, with the
/// measured times: over all requests and by class. Requests that the simulated drive did not serve are left out.
/// Returns `None` if it served none.
pub fn validate(measured: &Measured, simulated: &[Simulated]) -> Option<Validation> {
    let pairs = pairs(measured, simulated);
    let whole = class("all", &pairs, |_| true)?;
    let mut classes = Vec::new();
    let mut add = |name: &str, of: &dyn Fn(&Pair) -> bool| classes.extend(class(name, &pairs, of));
    add("read", &|pair| pair.operation == Operation::Read);
    add("write", &|pair| pair.operation == Operation::Write);
    add("hit", &|pair| pair.hit);
    add("miss", &|pair| !pair.hit);
    add("read hit", &|pair| pair.hit && pair.operation == Operation::Read);
    add("read miss", &|pair| !pair.hit && pair.operation == Operation::Read);
    add("write hit", &|pair| pair.hit && pair.operation == Operation::Write);
    add("write miss", &|pair| !pair.hit && pair.operation == Operation::Write);
    add("sequential", &|pair| pair.sequential);
    add("elsewhere", &|pair| !pair.sequential);
    let mut from = 0;
    for (to, name) in DISTANCES {
        add(name, &|pair| !pair.hit && (from..=to).contains(&pair.distance));
        from = to.saturating_add(1);
    }
    let suspect = suspect(&pairs, &whole.comparison);
    let rejected = (measured.requests.len() - pairs.len()) as u64;
    let mean_difference_ns = whole.mean_difference_ns;
    Some(Validation { whole: whole.comparison, mean_difference_ns, classes, suspect, rejected })
}

fn pairs(measured: &Measured, simulated: &[Simulated]) -> Vec<Pair> {
    let mut before = None;
    let mut pairs = Vec::with_capacity(simulated.len());
    for (request, simulated) in measured.requests.iter().zip(simulated) {
        let sequential = is_sequential(before, &request.command);
        before = Some(&request.command);
        if !simulated.served {
            continue;
        }
        pairs.push(Pair {
            measured_ns: request.taken.0,
            simulated_ns: simulated.taken.0,
            operation: request.command.operation,
            sectors: request.command.sectors,
            sequential,
            hit: request.hit.unwrap_or(simulated.hit),
            distance: simulated.distance,
            rotation_ns: simulated.rotation.0,
        });
    }
    pairs
}

fn class(name: &str, pairs: &[Pair], of: impl Fn(&Pair) -> bool) -> Option<Class> {
    let chosen: Vec<&Pair> = pairs.iter().filter(|pair| of(pair)).collect();
    let mut measured: Vec<u64> = chosen.iter().map(|pair| pair.measured_ns).collect();
    let mut simulated: Vec<u64> = chosen.iter().map(|pair| pair.simulated_ns).collect();
    let difference: i128 = chosen.iter().map(|pair| pair.simulated_ns as i128 - pair.measured_ns as i128).sum();
    let comparison = compare(&mut measured, &mut simulated)?;
    let mean_difference_ns = (difference / chosen.len() as i128) as i64;
    Some(Class { class: name.into(), comparison, mean_difference_ns })
}

/// A group of requests whose mean difference exceeds chance.
struct Group {
    part: &'static str,
    words: String,
    /// Number of requests times the square of the mean difference: the group's part of the sum of squares.
    weight: f64,
}

/// Finds the group that explains most of the difference. Differences of single requests are mostly rotational chance.
/// So only means count, and only if they exceed twice their standard error.
fn suspect(pairs: &[Pair], whole: &Comparison) -> Suspect {
    let mut groups = Vec::new();
    let hits = |operation| move |pair: &&Pair| pair.hit && pair.operation == operation;
    for (operation, words) in
        [(Operation::Read, "reads found in the buffer"), (Operation::Write, "writes reported early")]
    {
        groups.extend(group("overheads", words, pairs.iter().filter(hits(operation)), 0.0));
    }
    let misses = || pairs.iter().filter(|pair| !pair.hit);
    let common = sure_mean(misses());
    if let Some((count, mean)) = common {
        let words = format!("every request that the medium serves, {} in the mean", difference_words(mean));
        groups.push(Group { part: "overheads", words, weight: count * mean * mean });
    }
    groups.extend(seeks(misses, common.map_or(0.0, |(_, mean)| mean)));
    groups.extend(transfers(misses));
    groups.extend(cache(pairs));
    let most = groups.into_iter().max_by(|a, b| a.weight.total_cmp(&b.weight));
    match most {
        _ if whole.rms_ns == 0 => Suspect { part: "nothing".into(), because: "there is no difference".into() },
        Some(group) if group.weight > 0.0 => Suspect { part: group.part.into(), because: group.words },
        _ => Suspect {
            part: "rotation".into(),
            because: "no group of requests differs in the mean: the rotational position remains".into(),
        },
    }
}

/// Returns the group of seek distances whose mean difference deviates from that of all requests that the medium serves.
/// If some distances clearly deviate, the difference common to all is attributed to the seeks too.
fn seeks<'a, I: Iterator<Item = &'a Pair>>(misses: impl Fn() -> I, common: f64) -> Option<Group> {
    let (mut from, mut weight, mut worst) = (1u32, 0.0, None::<(f64, f64, f64, u32)>);
    // Each range is twice as long as the one before, so that a short part of the curve is seen.
    while from < 1 << 30 {
        let to = from * 2;
        if let Some((count, mean, error)) = mean_of(misses().filter(|pair| (from..to).contains(&pair.distance))) {
            let apart = mean - common;
            if apart.abs() > SURELY * error {
                weight += count * apart * apart;
                // The message names the range with the largest difference of its own: a correct range deviates from the
                // others, too.
                let own = count * mean * mean;
                if worst.is_none_or(|(most, ..)| own > most) {
                    worst = Some((own, mean, count, from));
                }
            }
        }
        from = to;
    }
    let (_, mean, count, from) = worst?;
    let all = misses().count() as f64 * common * common;
    if weight > all * SHARE_OF_SEEKS {
        weight += all;
    }
    let words = format!(
        "over {from} to {} cylinders they are {} in the mean ({count:.0} requests): look at mechanics.seek and the \
         settle times",
        from * 2 - 1,
        difference_words(mean)
    );
    Some(Group { part: "seeks", words, weight })
}

/// Returns the group of long requests, if their mean difference deviates from that of short ones.
fn transfers<'a, I: Iterator<Item = &'a Pair>>(misses: impl Fn() -> I) -> Option<Group> {
    let mut sizes: Vec<u32> = misses().map(|pair| pair.sectors).collect();
    sizes.sort_unstable();
    let middle = *sizes.get(sizes.len() / 2)?;
    let (_, short) = sure_mean(misses().filter(|pair| pair.sectors <= middle))?;
    let (count, long) = sure_mean(misses().filter(|pair| pair.sectors > middle))?;
    let apart = long - short;
    let words = format!("requests of more than {middle} sectors are {}", difference_words(long));
    Some(Group { part: "transfers", words, weight: count * apart * apart })
}

/// Returns the group of requests that wait for the medium on one side only.
fn cache(pairs: &[Pair]) -> Option<Group> {
    let wrong = |pair: &&Pair| {
        let (less, more) = (pair.measured_ns.min(pair.simulated_ns), pair.measured_ns.max(pair.simulated_ns));
        pair.rotation_ns == 0 && more > 3_000_000 && less * 4 < more
    };
    let chosen: Vec<&Pair> = pairs.iter().filter(wrong).collect();
    if chosen.len() * 50 < pairs.len() {
        return None;
    }
    let weight: f64 = chosen.iter().map(|pair| pair.difference() * pair.difference()).sum::<f64>() / 4.0;
    let words = format!(
        "{} of {} requests wait for the medium on one side alone: look at segments and read-ahead",
        chosen.len(),
        pairs.len()
    );
    Some(Group { part: "cache", words, weight })
}

fn group<'a>(part: &'static str, what: &str, pairs: impl Iterator<Item = &'a Pair>, common: f64) -> Option<Group> {
    let (count, mean) = sure_mean(pairs)?;
    let apart = mean - common;
    Some(Group {
        part,
        words: format!("{what}, {} in the mean", difference_words(mean)),
        weight: count * apart * apart,
    })
}

/// Returns the number of requests and their mean difference, nanoseconds, if it exceeds twice its standard error.
fn sure_mean<'a>(pairs: impl Iterator<Item = &'a Pair>) -> Option<(f64, f64)> {
    let (count, mean, error) = mean_of(pairs)?;
    (mean.abs() > 2.0 * error && mean != 0.0).then_some((count, mean))
}

/// Returns the number of requests, their mean difference and its standard error, nanoseconds; nothing for fewer than
/// eight requests.
fn mean_of<'a>(pairs: impl Iterator<Item = &'a Pair>) -> Option<(f64, f64, f64)> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for pair in pairs {
        let difference = pair.difference();
        count += 1.0;
        sum += difference;
        squares += difference * difference;
    }
    if count < 8.0 {
        return None;
    }
    let mean = sum / count;
    Some((count, mean, ((squares / count - mean * mean).max(0.0) / count).sqrt()))
}

fn difference_words(ns: f64) -> String {
    format!("{:.3} ms {} than measured", ns.abs() / 1e6, if ns > 0.0 { "longer" } else { "shorter" })
}
