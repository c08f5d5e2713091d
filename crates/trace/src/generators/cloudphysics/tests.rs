//! Goal: each stand-in reproduces its figures. Method: a pass over its requests with the statistics of `imbrex trace
//! info`, compared with the facts: for smaller copies of all machines, for two whole machines, and on request for all
//! whole machines.

use std::collections::BTreeMap;

use imbrex_units::{Operation, SimTime};

use super::choices::Choices;
use super::facts::{MACHINES, Machine, Told};
use super::plan::cell_tracks;
use super::sizes::PAGE_SECTORS;
use super::source::StandIn;
use super::targets;
use crate::request::{Request, Source, TraceError};
use crate::statistics::TraceInfo;

fn machine(name: &str) -> Machine {
    *MACHINES.iter().find(|machine| machine.name.ends_with(name)).expect("is one of the fifteen")
}

/// Returns a copy of `machine` with its size divided by `divisor`: fewer requests on fewer pages, with as many writes
/// to each page.
fn scaled(mut machine: Machine, divisor: u64) -> Machine {
    for figure in [
        &mut machine.reads,
        &mut machine.writes,
        &mut machine.read_bytes,
        &mut machine.write_bytes,
        &mut machine.read_sequential,
        &mut machine.write_sequential,
        &mut machine.range_bytes,
        &mut machine.read_set_bytes,
        &mut machine.write_set_bytes,
        &mut machine.either_set_bytes,
        &mut machine.unaligned_bytes,
        &mut machine.page_writes[4],
    ] {
        *figure /= divisor;
    }
    // With so few hot tracks, rounding would falsify their share.
    machine.told = Told { hot: None, has_hot_neighbours: false };
    machine
}

/// A source that sums up the sectors of the pages that writes touch, minus the sectors written.
struct Watched {
    source: StandIn,
    unaligned_sectors: u64,
}

impl Source for Watched {
    fn next(&mut self, now: SimTime) -> Result<Option<Request>, TraceError> {
        let request = self.source.next(now)?;
        if let Some(Request { command, .. }) = &request
            && command.operation == Operation::Write
        {
            let pages = command.end().0.div_ceil(PAGE_SECTORS) - command.lba.0 / PAGE_SECTORS;
            self.unaligned_sectors += pages * PAGE_SECTORS - u64::from(command.sectors);
        }
        Ok(request)
    }
}

/// Returns the figure called `name` from the JSON.
fn figure(info: &serde_json::Value, name: &str) -> f64 {
    let value = name.split('.').fold(info, |value, part| &value[part]);
    value.as_f64().unwrap_or_else(|| panic!("{name} is {value}"))
}

/// Returns the allowed deviation of a figure: relative to its target, and absolute.
fn tolerance(name: &str, machine: &Machine) -> (f64, f64) {
    match name.split('.').next().expect("has a first part") {
        "reads" | "writes" => (0.0, 0.0),
        // Resolution of the histogram.
        "read_size_bytes" | "write_size_bytes" => (0.001, 0.0),
        "read_bytes" | "write_bytes" => (0.001, 0.0),
        "sequential" => (0.02, 0.0),
        "working_set" => (0.02, 0.0),
        // The disk is divided into whole cells.
        "lba_end" => (0.0, (cell_tracks(machine) * 4096) as f64),
        "hot_tracks" => (0.0, 0.02),
        _ => panic!("{name} has a tolerance"),
    }
}

/// Generates the machine's requests and returns the figures that deviate more than allowed.
fn misses(machine: &Machine, seed: u64) -> Vec<String> {
    let mut watched = Watched { source: StandIn::new(machine, Choices::default(), seed), unaligned_sectors: 0 };
    let info = TraceInfo::of(&mut watched, None).expect("does not fail");
    let json = serde_json::to_value(&info).expect("is plain");
    let mut misses = Vec::new();
    let mut compare = |name: &str, value: f64, target: f64, allowed: f64| {
        if std::env::var_os("SHOW_FIGURES").is_some() {
            eprintln!("{:5} {name:26} {target:>18} {value:>18} {:+.2} %", machine.name, (value / target - 1.0) * 100.0);
        }
        if (value - target).abs() > allowed {
            misses.push(format!("{} {name}: {value}, made to {target} ± {allowed:.3}", machine.name));
        }
    };
    for target in targets(machine) {
        let (share, points) = tolerance(target.name, machine);
        compare(target.name, figure(&json, target.name), target.value, share * target.value + points);
    }
    let unaligned = machine.unaligned_bytes as f64;
    // As a share of all writes, because machines with few unaligned bytes would have large relative deviations.
    let allowed = 0.02 * unaligned + 4096.0 * 0.003 * machine.writes as f64;
    compare("unaligned", watched.unaligned_sectors as f64 * 512.0, unaligned, allowed);
    misses
}

#[test]
fn smaller_copies_of_all_machines_have_their_figures() {
    let misses: Vec<String> = MACHINES.iter().flat_map(|whole| misses(&scaled(*whole, 64), 1)).collect();
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

#[test]
fn two_whole_machines_have_their_figures_and_hot_tracks() {
    let misses: Vec<String> = ["w106", "w87"].iter().flat_map(|name| misses(&machine(name), 7)).collect();
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

#[test]
#[ignore = "335 million requests: some minutes"]
fn whole_machines_have_their_figures() {
    let misses: Vec<String> = MACHINES.iter().flat_map(|machine| misses(machine, 1)).collect();
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

fn requests(machine: &Machine, seed: u64) -> Vec<Request> {
    let mut source = StandIn::new(machine, Choices::default(), seed);
    std::iter::from_fn(|| source.next(SimTime::ZERO).expect("does not fail")).collect()
}

#[test]
fn pages_are_written_as_often_as_published() {
    let machine = machine("w106");
    let mut writes = BTreeMap::<u64, u64>::new();
    for request in requests(&machine, 3) {
        if request.command.operation == Operation::Write {
            let (first, end) = (request.command.lba.0 / PAGE_SECTORS, request.command.end().0.div_ceil(PAGE_SECTORS));
            (first..end).for_each(|page| *writes.entry(page).or_default() += 1);
        }
    }
    let mut counts: Vec<u64> = writes.into_values().collect();
    counts.sort_unstable();
    for (percentile, published) in [50, 75, 90, 95, 100].into_iter().zip(machine.page_writes) {
        let made = counts[(counts.len() * percentile / 100).min(counts.len() - 1)];
        // Pages at the boundaries of slots count twice, and so do those of a slot moved back into its cell.
        let ratio = made as f64 / published as f64;
        assert!((0.5..=2.0).contains(&ratio), "percentile {percentile}: {made} writes, published {published}");
    }
}

#[test]
fn one_seed_one_stream() {
    let machine = scaled(machine("w39"), 256);
    assert_eq!(requests(&machine, 5), requests(&machine, 5));
    assert_ne!(requests(&machine, 5), requests(&machine, 6));
}
