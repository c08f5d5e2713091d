//! Figures of a workload that runs with several seeds: their means and 95 % intervals.
//!
//! [`Figures`] collects the numbers of a JSON document for each run. `DriveFigures` does so for the results of a drive,
//! and keeps the first lost data.

use std::collections::BTreeMap;

use crate::error::Failure;
use imbrex_sim::results::Integrity;
use imbrex_sim::{DriveResult, Estimate};
use serde_json::{Map, Value};

/// Numbers of the results that depend on wall-clock time; they get no interval.
const WALL_CLOCK: [&str; 2] = ["wall_seconds", "requests_per_second"];

/// Values of figures in several runs, by the path of the figure in the document of a run.
#[derive(Default)]
pub struct Figures {
    runs: usize,
    values: BTreeMap<String, Vec<f64>>,
}

impl Figures {
    /// Adds the figures of one run: the numbers of `document`, an object. The path of a figure consists of the names
    /// of the members that lead to it, joined by dots. Lists are left out.
    pub fn add(&mut self, document: &Map<String, Value>) {
        self.runs += 1;
        document.iter().for_each(|(name, value)| self.collect(name, value));
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

    /// Returns the mean and the interval of each figure that all runs have, by path. There is none if fewer than two
    /// runs were added.
    pub fn estimates(self) -> BTreeMap<String, Estimate> {
        let runs = self.runs;
        let whole = self.values.into_iter().filter(|(_, values)| values.len() == runs);
        whole.filter_map(|(path, values)| Some((path, Estimate::of(&values)?))).collect()
    }
}

/// Refuses `count` seeds from `first` on if the last of them is more than the largest seed.
///
/// # Errors
///
/// If there are not so many seeds.
pub fn check_last(first: u64, count: u32) -> Result<(), Failure> {
    match first.checked_add(u64::from(count.saturating_sub(1))) {
        Some(_) => Ok(()),
        None => Err(Failure::usage(format!("--seeds {count}: there are no seeds after {}, the largest", u64::MAX))
            .or_try("a smaller --seed")),
    }
}

/// Figures of one drive in several runs.
#[derive(Default)]
pub(crate) struct DriveFigures {
    figures: Figures,
    /// The first run in which live data was lost or a rule was broken, with its seed.
    harm: Option<(u64, Integrity)>,
}

impl DriveFigures {
    /// Adds the results of one run.
    pub(crate) fn add(&mut self, seed: u64, result: &DriveResult) {
        let Value::Object(mut members) = serde_json::to_value(result).expect("results are plain values") else {
            unreachable!("results are an object")
        };
        members.retain(|name, _| !WALL_CLOCK.contains(&name.as_str()));
        self.figures.add(&members);
        if self.harm.is_none() && result.integrity.is_data_lost() {
            self.harm = Some((seed, result.integrity.clone()));
        }
    }

    /// Stores the means and intervals in `result`, the results of the first run. If data was lost in another run only,
    /// stores the result of the integrity check of that run too, and returns its seed.
    pub(crate) fn finish(self, result: &mut DriveResult) -> Option<u64> {
        result.over_seeds = self.figures.estimates();
        let (seed, integrity) = self.harm?;
        let is_known = result.integrity == integrity;
        result.integrity = integrity;
        (!is_known).then_some(seed)
    }
}

/// Returns a list of seeds in words, such as `3 seeds, 1 to 3`; `None` for fewer than two.
pub fn in_words(seeds: &[u64]) -> Option<String> {
    match (seeds, seeds.last()) {
        ([first, _, ..], Some(last)) => Some(format!("{} seeds, {first} to {last}", seeds.len())),
        _ => None,
    }
}
