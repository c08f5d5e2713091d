//! A full cache releases one stalled write for each block that it frees.

use imbrex_disk::SimDuration;

use super::super::aghayev::observed::is_near;
use super::super::{ClaimKind, Experiment, Replication, Report};
use super::measured::{DRIVES, SOURCE};
use super::scattered_writes::{MIB_SECTORS, write_blocks};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "later-drives/releasing",
    title: "a full cache releases one stalled write for each block it frees",
    run,
};

/// Number of writes beyond the capacity of the cache.
const STALLED: u64 = 500;

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: format!(
            "The experiment makes random writes of 1 MiB, no two to the same place, with 31 outstanding: as many as \
             fill the cache, and {STALLED} more. From the first write that waits on, it divides the blocks that \
             cleaning frees by the number of the host's writes. The freed blocks are those that cleaning reads from \
             the cache for a waiting write, whole or the part that lies in the cleaned band. A band can have more \
             than one block, so the result may differ from the source's by 10 %."
        ),
        ..Report::default()
    };
    for drive in &DRIVES {
        let blocks = drive.cache_gib << 10;
        let seen = write_blocks(drive.profile, blocks + STALLED, SimDuration::ZERO, replication)?;
        let stalled: Vec<u64> = seen.freed_sectors.iter().copied().skip_while(|&freed| freed == 0).collect();
        let freed = stalled.iter().sum::<u64>() as f64 / MIB_SECTORS as f64;
        let per_write = freed / stalled.len().max(1) as f64;
        report.claim(
            ClaimKind::Predicted,
            &format!("{}: blocks freed for each write released", drive.profile),
            &format!("1 ({SOURCE})"),
            format!("{per_write:.3}: {freed:.1} blocks for {} writes from the first stall on", stalled.len()),
            Some(is_near(per_write, 1.0, 0.1) && is_near(stalled.len() as f64, STALLED as f64, 0.1)),
        );
    }
    Ok(report)
}
