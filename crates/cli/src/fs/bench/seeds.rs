//! Runs of a benchmark with several seeds: means and 95 % intervals of the figures.
//!
//! Invariants:
//! 1. Every run works on views of the devices, which keep all writes in memory. So each run starts from the state that
//!    the command found, and the devices stay unchanged, even if the command is killed.
//! 2. No process writes to the devices between the first and the last run.

use std::collections::BTreeMap;

use imbrex::Failure;
use imbrex::seeds::{Figures, in_words};
use imbrex::table::estimate;
use imbrex::table_form::Cell;
use imbrex_fs::Executor;
use imbrex_sim::Estimate;
use serde_json::{Map, Value, json};

use super::table::rate;
use super::{BenchOutput, Load, document};
use crate::fs::Offline;
use crate::fs::args::BenchArgs;
use crate::fs::devices::{self, Devices, Purpose};

/// Means and intervals over several runs.
pub(super) struct OverSeeds {
    /// Seeds of the runs, in their order.
    pub seeds: Vec<u64>,
    /// Means and intervals of the figures that all runs have, by their paths in the document of a run, such as
    /// `phases.0.elapsed_ns`; also those of rates and shares that are not in the document.
    pub figures: BTreeMap<String, Estimate>,
}

/// Checks that the benchmark can run with several seeds at its places, if it is to.
///
/// # Errors
/// The place is a directory, or a zoned block device of the kernel.
pub(super) fn check(args: &BenchArgs) -> Result<(), Failure> {
    if args.seeds == 1 {
        return Ok(());
    }
    if let Some(directory) = args.places.iter().find(|place| place.is_dir()) {
        let (seeds, directory) = (args.seeds, directory.display());
        let words = format!(
            "--seeds {seeds} does not apply to the directory {directory}: each run would change the file system for the \
             next one"
        );
        return Err(Failure::usage(words).or_try("one run with each --seed, on a new file system each time"));
    }
    imbrex::seeds::check_last(args.seed, args.seeds)?;
    devices::check_views(&args.places)
}

/// Runs the benchmark with each seed. Returns the output of the first run, with the means over all runs.
pub(super) fn run(load: Load<'_>) -> Result<BenchOutput, Failure> {
    let (mut figures, mut seeds) = (Figures::default(), Vec::new());
    let (mut first, mut locks) = (None, Vec::new());
    for step in 0..u64::from(load.args.seeds) {
        let seed = load.args.seed + step;
        load.bar.set_prefix(format!("{}, seed {seed}", load.benchmark.name));
        let executor = Executor::in_virtual_time();
        let devices = Devices::open(&executor, &load.args.places, Purpose::Trial, true)?;
        super::check_time(&devices)?;
        // Also those devices that were found beside the given ones are locked before the first run closes them.
        if step == 0 {
            locks = devices.lock_out_writers()?;
        }
        let mount = if step == 0 { Offline::mount } else { Offline::mount_silently };
        let offline = mount(executor.clone(), devices, Purpose::Trial)?;
        let ran = super::on_devices(load, offline, seed).map_err(|failure| with_seed(failure, seed))?;
        // Frees the memory of the views.
        executor.shut_down();
        figures.add(&figures_of(load, &ran));
        seeds.push(seed);
        first.get_or_insert(ran);
    }
    drop(locks);
    let first = first.expect("there is at least one seed");
    Ok(BenchOutput { over_seeds: Some(OverSeeds { seeds, figures: figures.estimates() }), ..first })
}

fn with_seed(failure: Failure, seed: u64) -> Failure {
    Failure { message: format!("with seed {seed}: {}", failure.message), ..failure }
}

/// Returns the figures of a run: the numbers of its document, with lists as objects whose members are named by the
/// index in the list; and the rates and shares of the tables.
fn figures_of(load: Load<'_>, ran: &BenchOutput) -> Map<String, Value> {
    let document = document::of(load.args, load.benchmark, load.sizes, ran);
    let mut phases = by_index(&document["phases"]);
    for ((phase, ..), figures) in ran.phases.iter().zip(phases.values_mut()) {
        figures["done_per_second"] = json!(rate(phase.done, phase.elapsed_ns));
        figures["bytes_per_second"] = json!(rate(phase.bytes(), phase.elapsed_ns));
        for (kind, measured) in &phase.measured {
            figures["kinds"][kind.name()]["per_second"] = json!(rate(measured.latency.count(), phase.elapsed_ns));
        }
    }
    let mut devices = by_index(&document["devices"]);
    for (used, figures) in ran.on_devices.iter().flat_map(|on_devices| &on_devices.devices).zip(devices.values_mut()) {
        figures["busy_share"] = json!(used.spent.all().busy_ns as f64 / ran.elapsed_ns().max(1) as f64);
    }
    let members = [
        ("elapsed_ns", document["elapsed_ns"].clone()),
        ("phases", phases.into()),
        ("devices", devices.into()),
        ("file_system", document["file_system"].clone()),
    ];
    members.map(|(name, value)| (name.to_string(), value)).into_iter().collect()
}

fn by_index(list: &Value) -> Map<String, Value> {
    list.as_array().into_iter().flatten().enumerate().map(|(index, value)| (index.to_string(), value.clone())).collect()
}

impl BenchOutput {
    /// Formats a figure: `value`, the figure of the run, for one seed; for several the mean and half of the interval.
    /// `path` is the path of the figure. Returns a dash if a run with another seed does not have the figure.
    pub(super) fn shown(&self, path: &str, value: f64, shown: impl Fn(f64) -> String) -> String {
        match &self.over_seeds {
            None => shown(value),
            Some(over) => over.figures.get(path).map_or_else(|| "–".into(), |over| estimate(over, shown)),
        }
    }

    /// Returns the cell of a figure: `value` for one seed, the mean and its interval for several. `path` is the path of the
    /// figure. The cell is empty if a run with another seed does not have the figure.
    pub(super) fn cell(&self, path: &str, value: f64, shown: impl Fn(f64) -> String) -> Cell {
        match &self.over_seeds {
            None => Cell::number(value, shown(value)),
            Some(over) => {
                let over = over.figures.get(path);
                over.map_or_else(Cell::none, |over| Cell::estimate(over, estimate(over, shown)))
            }
        }
    }

    /// Returns the seeds in words, such as `3 seeds, 1 to 3`; `None` for one seed.
    pub(super) fn seeds_in_words(&self) -> Option<String> {
        in_words(&self.over_seeds.as_ref()?.seeds)
    }
}
