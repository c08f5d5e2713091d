//! Stand-ins for the fifteen machines of the CloudPhysics traces in Hajkazemi 2019 §3.
//!
//! The traces are not available, but their statistics are ([`facts`]). A stand-in reproduces these statistics: numbers
//! of reads and writes, bytes, sizes, sequential requests, range, working sets, the number of writes to a page, and the
//! number of writes that are not aligned to pages. It also reproduces the paper's statements about hot tracks. The
//! order of the requests and its consequences are our own choice. docs/workloads.md separates the facts from the
//! choices.
//!
//! Invariants:
//! 1. The numbers of reads and writes are exactly the machine's, for any seed.
//! 2. Equal seeds give equal requests. Memory does not grow.

mod bursts;
mod choices;
mod facts;
mod lottery;
mod pace;
mod plan;
mod sizes;
mod source;
mod tiers;

#[cfg(test)]
mod tests;

use super::built_in::{BuiltIn, Recipe, TargetFigure};
use super::error::WorkloadError;
use super::spec::Arrival;
use crate::request::Source;
use facts::{HotTracks, MACHINES, Machine};

pub use choices::Choices;
pub use pace::Arrivals;

/// Entries of the stand-ins in the registry of workloads, one for each machine.
pub(super) const ENTRIES: [BuiltIn; MACHINES.len()] = [
    entry::<0>(),
    entry::<1>(),
    entry::<2>(),
    entry::<3>(),
    entry::<4>(),
    entry::<5>(),
    entry::<6>(),
    entry::<7>(),
    entry::<8>(),
    entry::<9>(),
    entry::<10>(),
    entry::<11>(),
    entry::<12>(),
    entry::<13>(),
    entry::<14>(),
];

const fn entry<const MACHINE: usize>() -> BuiltIn {
    BuiltIn {
        name: MACHINES[MACHINE].name,
        summary: MACHINES[MACHINE].summary,
        is_stand_in: true,
        note: Some(
            "a stand-in, made to the published statistics of this machine's trace, which is not at hand; arrival times \
             and the order of requests are made up (docs/workloads.md)",
        ),
        reach_sectors: Some(MACHINES[MACHINE].range_bytes / sizes::SECTOR_BYTES),
        targets: Some(|| targets(&MACHINES[MACHINE])),
        recipe: Recipe::Program { build: build::<MACHINE>, arrival: Arrival::AsTraced },
    }
}

fn build<const MACHINE: usize>(_device_sectors: u64, seed: u64) -> Result<Box<dyn Source>, WorkloadError> {
    Ok(Box::new(source::StandIn::new(&MACHINES[MACHINE], Choices::default(), seed)))
}

/// Returns the requests of the stand-in called `name`, such as `cloudphysics-w08`, generated with `choices` and `seed`.
/// A stand-in reproduces the published figures of a trace that is not available. Returns `None` if there is no stand-in
/// of this name.
///
/// # Panics
///
/// If the requests do not fit into `choices.days` days even without pauses between bursts, as with 0 days.
pub fn stand_in(name: &str, choices: Choices, seed: u64) -> Option<Box<dyn Source>> {
    let machine = MACHINES.iter().find(|machine| machine.name == name)?;
    Some(Box::new(source::StandIn::new(machine, choices, seed)))
}

/// Returns the figures that the stand-in of a machine reproduces, with their names in
/// [`TraceInfo`](crate::statistics::TraceInfo).
fn targets(machine: &Machine) -> Vec<TargetFigure> {
    let mut targets = vec![
        TargetFigure::new("reads", machine.reads as f64),
        TargetFigure::new("writes", machine.writes as f64),
        TargetFigure::new("read_bytes", machine.read_bytes as f64),
        TargetFigure::new("write_bytes", machine.write_bytes as f64),
        TargetFigure::new("lba_end", (machine.range_bytes / sizes::SECTOR_BYTES) as f64),
        TargetFigure::new("working_set.read_bytes", machine.read_set_bytes as f64),
        TargetFigure::new("working_set.write_bytes", machine.write_set_bytes as f64),
        TargetFigure::new("working_set.either_bytes", machine.either_set_bytes as f64),
        TargetFigure::new("sequential.reads", machine.read_sequential as f64),
        TargetFigure::new("sequential.writes", machine.write_sequential as f64),
        TargetFigure::new("read_size_bytes.p50", machine.read_size_bytes[0] as f64),
        TargetFigure::new("read_size_bytes.p95", machine.read_size_bytes[1] as f64),
        TargetFigure::new("write_size_bytes.p5", machine.write_size_bytes[0] as f64),
        TargetFigure::new("write_size_bytes.p50", machine.write_size_bytes[1] as f64),
        TargetFigure::new("write_size_bytes.p95", machine.write_size_bytes[2] as f64),
    ];
    if let Some(HotTracks { tracks, percent }) = machine.told.hot {
        let name = if tracks <= 10 { "hot_tracks.share_10" } else { "hot_tracks.share_100" };
        targets.push(TargetFigure::new(name, percent as f64 / 100.0));
    }
    targets
}
