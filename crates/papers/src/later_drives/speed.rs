//! The rate at which random writes go into the cache.

use imbrex_disk::{SimDuration, SimTime};

use super::super::aghayev::observed::is_near;
use super::super::{ClaimKind, Experiment, Replication, Report};
use super::measured::{DRIVES, SOURCE};
use super::scattered_writes::write_blocks;
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "later-drives/speed",
    title: "random writes go into the cache at the rate of the medium there",
    run,
};

/// Number of blocks of 1 MiB written.
const BLOCKS: u64 = 4096;

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: format!(
            "{BLOCKS} random writes of 1 MiB, 31 outstanding, into the empty cache. Ours may differ by 10 %."
        ),
        ..Report::default()
    };
    for drive in &DRIVES {
        let seen = write_blocks(drive.profile, BLOCKS, SimDuration::ZERO, replication)?;
        let rate = (BLOCKS << 20) as f64 / 1e6 / seen.written.since(SimTime::ZERO).as_secs_f64();
        report.claim(
            ClaimKind::Predicted,
            &format!("{}: MB/s into the cache", drive.profile),
            &format!("{} ({SOURCE})", drive.megabytes_per_second),
            format!("{rate:.1}"),
            Some(is_near(rate, drive.megabytes_per_second, 0.1)),
        );
    }
    Ok(report)
}
