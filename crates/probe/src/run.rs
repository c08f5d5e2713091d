//! A probe's run: the experiments in order, each only if what is known so far makes it worthwhile.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use crate::experiments::{self, Bench};
use crate::target::{Target, TargetError};
use crate::verdict::Verdict;

/// How to probe.
pub struct Options<'a> {
    /// Whether the tests may write: they destroy what the drive holds.
    pub may_write: bool,
    /// Only these tests; none given, all.
    pub only: Vec<String>,
    /// Time on the target's clock after which no further test begins, nanoseconds.
    pub budget_ns: u64,
    /// Seeds the random places.
    pub seed: u64,
    /// Told the name of each test as it begins; `false` ends the probe here.
    pub progress: &'a mut dyn FnMut(&str) -> bool,
}

/// Probes `target`.
pub fn probe(target: &mut dyn Target, options: &mut Options<'_>) -> Result<Verdict, TargetError> {
    let begun_ns = target.now_ns();
    let mut verdict = Verdict {
        schema: "imbrex.probe/1",
        target: target.name(),
        size_bytes: target.size_bytes(),
        ..Verdict::default()
    };
    let random = Xoshiro256StarStar::seed_from_u64(options.seed);
    let mut bench = Bench { target, random, verdict: &mut verdict };
    for experiment in experiments::all() {
        let is_chosen = options.only.is_empty() || options.only.iter().any(|name| name == experiment.name);
        if !is_chosen {
            continue;
        }
        if experiment.writes && !options.may_write {
            bench.verdict.left_out.push(format!("{}: it writes, and writing was not allowed", experiment.name));
            continue;
        }
        if bench.target.now_ns() - begun_ns > options.budget_ns {
            bench.verdict.left_out.push(format!("{}: the budget was spent", experiment.name));
            continue;
        }
        if let Some(reason) = (experiment.is_idle)(bench.verdict) {
            bench.verdict.left_out.push(format!("{}: {reason}", experiment.name));
            continue;
        }
        if !(options.progress)(experiment.name) {
            bench.verdict.left_out.push(format!("{}: interrupted", experiment.name));
            break;
        }
        (experiment.run)(&mut bench)?;
    }
    verdict.target_ns = target.now_ns() - begun_ns;
    Ok(verdict)
}
