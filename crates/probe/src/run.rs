//! Runs a probe: the experiments in order, each only if the properties known so far make it useful. Without a time
//! budget, the order is that of the registry. With one, the experiment with most properties per second goes first.
//!
//! Invariants:
//! 1. Each experiment either ran, or is listed in the verdict's `left_out` with the reason.
//! 2. However the run ends, the verdict contains all properties found until then.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use crate::advice::advise;
use crate::bench::Bench;
use crate::experiments::cleaning_kind::doubt_lazy;
use crate::experiments::drive_type::doubt_flash;
use crate::experiments::{self, Experiment};
use crate::lateness::Lateness;
use crate::models::stated;
use crate::target::{Target, TargetError};
use crate::verdict::{Confidence, Fact, Property, Value, Verdict};
use crate::watched::{ProbeState, Watched};

/// Factor by which an experiment can be faster than its estimate `about_s`, on drives with small caches.
const LESS: u64 = 4;

/// Initial tolerance of measurements: their variation, as a share of a rotation. The rotation experiment raises it if
/// it finds more.
const EXACT: f64 = 0.01;

/// Lateness of this machine's sleeps, at the 95th percentile, from which it counts as busy, nanoseconds: a few
/// hundredths of a rotation.
const LATE_NS: u64 = 300_000;

/// Options of a probe of a drive.
pub struct ProbeOptions<'a> {
    /// Whether experiments may write, which destroys the contents of the drive. Without it, experiments that write are
    /// left out.
    pub may_write: bool,
    /// Names of the experiments to run. The experiments whose results they need run too. Empty for all experiments.
    /// Unknown names are ignored.
    pub only: Vec<String>,
    /// Time budget for the whole probe, in nanoseconds on the target's clock; `u64::MAX` for no limit. An experiment
    /// that exceeds it is ended, and one that cannot fit into the rest is left out.
    pub budget_ns: u64,
    /// Seed of the random generator for offsets and orders. With the same seed, a simulated drive gives the same
    /// verdict.
    pub seed: u64,
    /// Receives the progress at the beginning of each experiment and often during it. The probe ends early when this
    /// function returns `false`.
    pub progress: &'a mut dyn FnMut(&ProbeState<'_>) -> bool,
}

/// Probes `target` with the experiments that `options` permit, and returns the verdict. An error does not stop this
/// function: the verdict names the experiments that did not run or did not finish, and the reason if the probe ended
/// early.
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
    verdict.statement = stated(None, &verdict);
    let mut watched = Watched::new(target, options.progress, options.budget_ns);
    let mut random = Xoshiro256StarStar::seed_from_u64(options.seed);
    let (mut repeats, mut tolerance) = (1, EXACT);
    let mut pause_ns = 0;
    let mut waiting = chosen(options.may_write, &options.only, &mut verdict);
    while let Some(index) = next_of(&waiting, &verdict, options.budget_ns, &watched) {
        let experiment = waiting.remove(index);
        let begun = watched.begin(experiment.name);
        let known: Vec<Property> = verdict.properties.clone();
        let lateness = Lateness::watch(verdict.is_virtual);
        let mut bench = Bench { target: &mut watched, random, verdict: &mut verdict, repeats, tolerance, pause_ns };
        let outcome = begun.and_then(|()| (experiment.run)(&mut bench));
        (random, repeats, tolerance) = (bench.random, bench.repeats, bench.tolerance);
        doubt(&mut verdict, &known, lateness.end());
        if let Some(pauses) = watched.pauses() {
            if pause_ns == 0 {
                verdict.add_condition(pauses.to_string());
            }
            pause_ns = pauses.longest_ns;
        }
        let Err(error) = outcome else { continue };
        verdict.left_out.push(format!("{}: not run to its end: {error}", experiment.name));
        if error != TargetError::BudgetSpent {
            verdict.ended = Some(error.to_string());
            leave_out(&waiting, "the probe ended before it", &mut verdict);
            waiting.clear();
        }
    }
    for experiment in waiting {
        let reason = (experiment.skip_reason)(&verdict).map_or_else(|| over_budget(experiment, &watched), String::from);
        leave_out(&[experiment], &reason, &mut verdict);
    }
    if let Some(disturbance) = watched.disturbance() {
        verdict.add_condition(disturbance);
        verdict.properties.iter_mut().for_each(withdraw_conventional);
    }
    doubt_lazy(&mut verdict);
    doubt_flash(&mut verdict);
    verdict.advice = advise(&verdict);
    verdict.target_ns = watched.spent_ns();
    verdict
}

/// Lowers the confidence of the new properties if this machine was busy, that is, `late_ns` is large. The machine's own
/// delays are spread like those of a platter, so that any drive looks conventional: the type "conventional" is
/// withdrawn. Other properties keep their values, with at most medium confidence.
fn doubt(verdict: &mut Verdict, known: &[Property], late_ns: u64) {
    if late_ns <= LATE_NS {
        return;
    }
    for property in verdict.properties.iter_mut().filter(|property| !known.contains(property)) {
        property.confidence = property.confidence.min(Confidence::Medium);
        withdraw_conventional(property);
        property.because += &format!("; this machine was busy, and late by {:.1} ms", late_ns as f64 / 1e6);
    }
}

/// Withdraws the type "conventional": delays by others, or by this machine, are spread like those of a platter.
fn withdraw_conventional(property: &mut Property) {
    if property.value == Value::Word("conventional") {
        property.value = Value::CannotTell;
        property.confidence = Confidence::Low;
    }
}

/// Returns the experiments that were requested and are allowed; those that would write without permission go to
/// `left_out`.
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

/// Returns the index in `waiting` of the experiment to run next. Candidates would tell something now and need no
/// experiment that still waits. Without a budget, the first candidate is next. With one, the next is the candidate that
/// fits into the rest of the budget and tells most properties per second.
fn next_of(waiting: &[&'static Experiment], verdict: &Verdict, budget_ns: u64, watched: &Watched<'_>) -> Option<usize> {
    let left_ns = if budget_ns == u64::MAX { u64::MAX } else { watched.left_ns() };
    // An experiment can be faster than its estimate by the factor `LESS`, so it is tried with a smaller rest of the
    // budget.
    let fits = |experiment: &Experiment| about_ns(experiment) / LESS <= left_ns;
    let is_able = |experiment: &Experiment| {
        let could_run = |name: &str| {
            waiting.iter().find(|other| other.name == name && (other.skip_reason)(verdict).is_none() && fits(other))
        };
        let waits =
            |name: &&str| could_run(name).is_some_and(|other| (other.run_after)(verdict) != Some(experiment.name));
        let yields = (experiment.run_after)(verdict).is_some_and(|name| could_run(name).is_some());
        (experiment.skip_reason)(verdict).is_none() && !yields && !experiment.needs.iter().any(waits)
    };
    let mut able = waiting.iter().enumerate().filter(|(_, experiment)| is_able(experiment));
    if budget_ns == u64::MAX {
        return able.next().map(|(index, _)| index);
    }
    let fitting = able.filter(|(_, experiment)| fits(experiment));
    // `max_by` returns the last of equals; reversed, that is the first one in the registry.
    fitting.rev().max_by(|a, b| worth(a.1).total_cmp(&worth(b.1))).map(|(index, _)| index)
}

/// Returns the number of properties that the experiment tells per second of its estimated time.
fn worth(experiment: &Experiment) -> f64 {
    experiment.properties.len() as f64 / f64::from(experiment.about_s.max(1))
}

fn about_ns(experiment: &Experiment) -> u64 {
    u64::from(experiment.about_s) * 1_000_000_000
}

fn told(experiment: &Experiment) -> String {
    experiment.properties.join(", ").replace('_', " ")
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
