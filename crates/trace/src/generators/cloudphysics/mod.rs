//! Stand-ins for fifteen machines of the CloudPhysics traces, those of Hajkazemi 2019 §3.
//!
//! The traces are not at hand; their statistics are ([`facts`]). A stand-in is made to them: numbers of reads and
//! writes, bytes, sizes, sequential requests, range, working sets, how often pages are written, how many writes are off
//! page bounds; and to what the paper tells of hot tracks. Which request comes when is ours, and so is what follows
//! from it. docs/workloads.md says what is fact and what is not.
//!
//! Invariants:
//! 1. Reads and writes made are exactly the machine's, whatever the seed.
//! 2. The same seed gives the same requests, in memory that does not grow.

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

/// The registry's entries, one a machine.
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

/// The requests of the stand-in called `name`, made with other choices than the built-in workload's; `None` where there is no
/// such stand-in.
pub fn stand_in(name: &str, choices: Choices, seed: u64) -> Option<Box<dyn Source>> {
    let machine = MACHINES.iter().find(|machine| machine.name == name)?;
    Some(Box::new(source::StandIn::new(machine, choices, seed)))
}

/// What a machine was made to, under the names of [`TraceInfo`](crate::statistics::TraceInfo).
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
