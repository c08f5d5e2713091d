//! A full cache lets one waiting write go on for each block it frees.

use imbrex_disk::SimDuration;

use super::super::aghayev::trial::is_near;
use super::super::{ClaimKind, Experiment, Report};
use super::trial::write_blocks;
use super::{DRIVES, SOURCE};
use crate::error::Failure;
use crate::progress::Bars;

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "later-drives/releasing",
    title: "a full cache releases one stalled write for each block it frees",
    run,
};

/// Writes beyond what the cache holds.
const STALLED: u64 = 500;

fn run(bars: &Bars) -> Result<Report, Failure> {
    let mut report = Report {
        method: format!(
            "Random writes of 1 MiB, no two to the same place, 31 outstanding: as many as fill the cache, and {STALLED} \
             more. Of those, how many bands each had to wait for. A block that lies in two bands leaves the cache in two \
             parts, so ours may differ by 10 %."
        ),
        ..Report::default()
    };
    for drive in &DRIVES {
        let blocks = drive.cache_gib << 10;
        let seen = write_blocks(drive.profile, blocks + STALLED, SimDuration::ZERO, bars)?;
        let writes = &seen.cleans[..(blocks + STALLED) as usize];
        let stalled: Vec<u32> = writes.iter().copied().skip_while(|&cleans| cleans == 0).collect();
        let per_write = stalled.iter().map(|&cleans| cleans as f64).sum::<f64>() / stalled.len().max(1) as f64;
        report.claim(
            ClaimKind::Exact,
            &format!("{}: blocks freed for each write released", drive.profile),
            &format!("1 ({SOURCE})"),
            format!("{per_write:.3}, over {} writes from the first stall on", stalled.len()),
            Some(is_near(per_write, 1.0, 0.1) && is_near(stalled.len() as f64, STALLED as f64, 0.1)),
        );
    }
    Ok(report)
}
