//! Cleaning in idle time: when it begins, and how long the drive needs to drain a full cache.

use imbrex_disk::SimDuration;

use super::super::aghayev::observed::is_near;
use super::super::{ClaimKind, Experiment, Replication, Report};
use super::measured::{DRIVES, SOURCE};
use super::scattered_writes::write_blocks;
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "later-drives/draining", title: "a cache left alone for hours drains in hours", run };

/// Time in which the drive gets no requests.
const PAUSE: SimDuration = SimDuration(24 * 3600 * 1_000_000_000);

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method:
            "Writes of 1 MiB to random places, all different, fill the cache. Then the drive gets no requests. The \
                 experiment measures the time until the drive begins to clean, and the time from then until nothing is \
                 left to clean. A result may differ from the source's by 10 %."
                .into(),
        ..Report::default()
    };
    for drive in &DRIVES {
        let blocks = drive.cache_gib << 10;
        let seen = write_blocks(drive.profile, blocks, PAUSE, replication)?;
        let hours = |time: SimDuration| time.as_secs_f64() / 3600.0;
        let (begun, drained) = seen.background.map_or((f64::INFINITY, f64::INFINITY), |(first, last)| {
            (hours(first.since(seen.written)), hours(last.since(first)))
        });
        let mut claim = |what: &str, theirs: f64, ours: f64| {
            report.claim(
                ClaimKind::Predicted,
                &format!("{}: {what}", drive.profile),
                &format!("about {theirs} ({SOURCE})"),
                format!("{ours:.2}"),
                Some(is_near(ours, theirs, 0.1)),
            );
        };
        claim("hours of idle before it cleans", drive.idle_hours as f64, begun);
        claim(&format!("hours to drain {blocks} blocks"), drive.drain_hours, drained);
    }
    report.remarks.push(
        "The source gives about 5 hours for draining 28,672 blocks of 1 MiB, which fill the cache of the first drive \
         (`seagate-st8000as0022`). We take its 9 hours for the second drive (`seagate-st8000dm004`) as the time of \
         that drive's own full cache, 49,152 blocks. In the first drive's profile, the rest after each band is \
         fitted to the 5 hours, and the size of a band to the speed at which waiting writes are served \
         (docs/validation.md). This speed is not known for the second drive, so its bands of 16 tracks, without a \
         rest, are fitted to the 9 hours."
            .into(),
    );
    Ok(report)
}
