//! A probe's run: the experiments in order, each only if what is known so far makes it worthwhile. Without a budget the
//! order is that of the registry; with one, what tells most for its time goes first.
//!
//! Invariants:
//! 1. Each experiment was run, or is named among what was left out, with the reason.
//! 2. However the run ends, what is known until then is told.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use crate::advice::advise;
use crate::bench::Bench;
use crate::experiments::cleaning_kind::doubt_lazy;
use crate::experiments::{self, Experiment};
use crate::lateness::Lateness;
use crate::target::{Target, TargetError};
use crate::verdict::{Confidence, Fact, Property, Value, Verdict};
use crate::watched::{ProbeState, Watched};

/// An experiment takes so many times less than it mostly does where caches are small.
const LESS: u64 = 4;

/// By how much of a rotation measurements of the same differ, unless it is found that they do by more.
const EXACT: f64 = 0.01;

/// A machine whose pauses end later than this, one in twenty of them, is busy: a few hundredths of a rotation.
const LATE_NS: u64 = 300_000;

/// How to probe.
pub struct ProbeOptions<'a> {
    /// Whether the tests may write: they destroy what the drive holds.
    pub may_write: bool,
    /// Only these tests and those they rest on; none given, all.
    pub only: Vec<String>,
    /// Time on the target's clock, nanoseconds; a test under way when it is over ends there.
    pub budget_ns: u64,
    /// Seeds the random places.
    pub seed: u64,
    /// Told how far the probe is, at the beginning of each test and often within; `false` ends the probe.
    pub progress: &'a mut dyn FnMut(&ProbeState<'_>) -> bool,
}

/// Probes `target`.
pub fn probe(target: &mut dyn Target, options: &mut ProbeOptions<'_>) -> Verdict {
    let facts = target.facts().into_iter().map(|(name, value)| Fact { name, value }).collect();
    let mut verdict = Verdict {
        schema: "imbrex.probe/1",
        target: target.name().to_string(),
        size_bytes: target.size_bytes(),
        facts,
        is_virtual: target.is_virtual(),
        ..Verdict::default()
    };
    let mut watched = Watched::new(target, options.progress, options.budget_ns);
    let mut random = Xoshiro256StarStar::seed_from_u64(options.seed);
    let (mut repeats, mut tolerance) = (1, EXACT);
    let mut waiting = chosen(options.may_write, &options.only, &mut verdict);
    while let Some(index) = next_of(&waiting, &verdict, options.budget_ns, &watched) {
        let experiment = waiting.remove(index);
        let begun = watched.begin(experiment.name);
        let known: Vec<Property> = verdict.properties.clone();
        let lateness = Lateness::watch(verdict.is_virtual);
        let mut bench = Bench { target: &mut watched, random, verdict: &mut verdict, repeats, tolerance };
        let outcome = begun.and_then(|()| (experiment.run)(&mut bench));
        (random, repeats, tolerance) = (bench.random, bench.repeats, bench.tolerance);
        doubt(&mut verdict, &known, lateness.end());
        let Err(error) = outcome else { continue };
        verdict.left_out.push(format!("{}: not run to its end: {error}", experiment.name));
        if error != TargetError::BudgetSpent {
            verdict.ended = Some(error.to_string());
            leave_out(&waiting, "the probe ended before it", &mut verdict);
            waiting.clear();
        }
    }
    for experiment in waiting {
        let reason = (experiment.is_idle)(&verdict).map_or_else(|| over_budget(experiment, &watched), String::from);
        leave_out(&[experiment], &reason, &mut verdict);
    }
    doubt_lazy(&mut verdict);
    verdict.advice = advise(&verdict);
    verdict.target_ns = watched.spent_ns();
    verdict
}

/// Takes back what cannot be known from a machine that answers late: its own delays are spread as those of a platter are,
/// so that any drive looks conventional; other findings stand, less sure.
fn doubt(verdict: &mut Verdict, known: &[Property], late_ns: u64) {
    if late_ns <= LATE_NS {
        return;
    }
    for property in verdict.properties.iter_mut().filter(|property| !known.contains(property)) {
        property.confidence = property.confidence.min(Confidence::Medium);
        if property.value == Value::Word("conventional") {
            property.value = Value::CannotTell;
            property.confidence = Confidence::Low;
        }
        property.because += &format!("; this machine was busy, and late by {:.1} ms", late_ns as f64 / 1e6);
    }
}

/// The experiments that were asked for and are allowed.
fn chosen(may_write: bool, only: &[String], verdict: &mut Verdict) -> Vec<&'static Experiment> {
    let mut chosen = Vec::new();
    for experiment in experiments::chosen(only) {
        if experiment.writes && !may_write {
            let reason = format!("it writes, and writing was not allowed; it would tell {}", told(experiment));
            leave_out(&[experiment], &reason, verdict);
        } else {
            chosen.push(experiment);
        }
    }
    chosen
}

/// Which of `waiting` comes next: of those that would tell something now, and rest on none that still waits, the first;
/// with a budget, of those that fit into what is left of it the one that tells most for its time.
fn next_of(waiting: &[&'static Experiment], verdict: &Verdict, budget_ns: u64, watched: &Watched<'_>) -> Option<usize> {
    let left_ns = if budget_ns == u64::MAX { u64::MAX } else { watched.left_ns() };
    // One that may take less than it mostly does is tried with what is left.
    let fits = |experiment: &Experiment| about_ns(experiment) / LESS <= left_ns;
    let is_able = |experiment: &Experiment| {
        let could_run = |name: &str| {
            waiting.iter().find(|other| other.name == name && (other.is_idle)(verdict).is_none() && fits(other))
        };
        let waits =
            |name: &&str| could_run(name).is_some_and(|other| (other.yields_to)(verdict) != Some(experiment.name));
        let yields = (experiment.yields_to)(verdict).is_some_and(|name| could_run(name).is_some());
        (experiment.is_idle)(verdict).is_none() && !yields && !experiment.needs.iter().any(waits)
    };
    let mut able = waiting.iter().enumerate().filter(|(_, experiment)| is_able(experiment));
    if budget_ns == u64::MAX {
        return able.next().map(|(index, _)| index);
    }
    let fitting = able.filter(|(_, experiment)| fits(experiment));
    // The first of equals, as in the registry.
    fitting.rev().max_by(|a, b| worth(a.1).total_cmp(&worth(b.1))).map(|(index, _)| index)
}

/// Properties told in a second.
fn worth(experiment: &Experiment) -> f64 {
    experiment.tells.len() as f64 / f64::from(experiment.about_s.max(1))
}

fn about_ns(experiment: &Experiment) -> u64 {
    u64::from(experiment.about_s) * 1_000_000_000
}

fn told(experiment: &Experiment) -> String {
    experiment.tells.join(", ").replace('_', " ")
}

fn over_budget(experiment: &Experiment, watched: &Watched<'_>) -> String {
    format!(
        "it takes about {} s, and {} s of the budget were left; it would tell {}",
        experiment.about_s,
        watched.left_ns() / 1_000_000_000,
        told(experiment)
    )
}

fn leave_out(experiments: &[&'static Experiment], reason: &str, verdict: &mut Verdict) {
    for experiment in experiments {
        verdict.left_out.push(format!("{}: {reason}", experiment.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_makes_no_drive_conventional() {
        let mut verdict = Verdict::default();
        verdict.conclude("rotation", Value::Number(10.0), "ms", Confidence::High, "seen".into(), &[]);
        let known = verdict.properties.clone();
        verdict.conclude("type", Value::Word("conventional"), "", Confidence::High, "spread".into(), &[]);
        verdict.conclude("overhead", Value::Number(0.5), "ms", Confidence::High, "seen".into(), &[]);
        let sure = verdict.clone();
        doubt(&mut verdict, &known, LATE_NS);
        assert_eq!(verdict, sure, "a quiet machine takes nothing back");
        doubt(&mut verdict, &known, 2_000_000);
        assert_eq!(verdict.word("type"), None);
        assert!(verdict.property("type").is_some_and(|property| property.because.ends_with("late by 2.0 ms")));
        assert_eq!(verdict.property("overhead").map(|property| property.confidence), Some(Confidence::Medium));
        assert_eq!(verdict.properties[0], sure.properties[0], "what was known before stands");
    }
}
