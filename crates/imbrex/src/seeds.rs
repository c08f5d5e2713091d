//! Figures of a workload that runs with several seeds: their means and 95 % intervals.

use std::collections::BTreeMap;

use imbrex_sim::results::Integrity;
use imbrex_sim::{DriveResult, Estimate};
use serde_json::Value;

/// Numbers of the results that depend on wall-clock time; they get no interval.
const WALL_CLOCK: [&str; 2] = ["wall_seconds", "requests_per_second"];

/// Figures of one drive, by their path in the results, and the value in each run.
#[derive(Default)]
pub(crate) struct Figures {
    runs: usize,
    values: BTreeMap<String, Vec<f64>>,
    /// The first run in which live data was lost or a rule was broken, with its seed.
    harm: Option<(u64, Integrity)>,
}

impl Figures {
    /// Adds the results of one run.
    pub(crate) fn add(&mut self, seed: u64, result: &DriveResult) {
        self.runs += 1;
        let Value::Object(members) = serde_json::to_value(result).expect("results are plain values") else {
            unreachable!("results are an object")
        };
        for (name, value) in members.iter().filter(|(name, _)| !WALL_CLOCK.contains(&name.as_str())) {
            self.collect(name, value);
        }
        let is_harmed = result.integrity.is_violated() || result.integrity.live_sectors_destroyed() > 0;
        if self.harm.is_none() && is_harmed {
            self.harm = Some((seed, result.integrity.clone()));
        }
    }

    fn collect(&mut self, path: &str, value: &Value) {
        match value {
            Value::Number(number) => {
                self.values.entry(path.into()).or_default().extend(number.as_f64());
            }
            Value::Object(members) => {
                members.iter().for_each(|(name, value)| self.collect(&format!("{path}.{name}"), value));
            }
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) => {}
        }
    }

    /// Stores the means and intervals in `result`, the results of the first run. If data was lost in another run only,
    /// stores the result of the integrity check of that run too, and returns its seed.
    pub(crate) fn finish(self, result: &mut DriveResult) -> Option<u64> {
        let runs = self.runs;
        let whole = self.values.into_iter().filter(|(_, values)| values.len() == runs);
        result.over_seeds = whole.filter_map(|(path, values)| Some((path, Estimate::of(&values)?))).collect();
        let (seed, integrity) = self.harm?;
        let is_known = result.integrity == integrity;
        result.integrity = integrity;
        (!is_known).then_some(seed)
    }
}
