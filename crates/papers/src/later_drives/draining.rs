//! Cleaning in idle time: when it begins, and how long the drive needs to drain a full cache.

use imbrex_disk::SimDuration;

use super::super::aghayev::observed::is_near;
use super::super::{ClaimKind, Experiment, Report};
use super::measured::{DRIVES, SOURCE};
use super::scattered_writes::write_blocks;
use imbrex::error::Failure;
use imbrex::progress::Progress;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "later-drives/draining", title: "a cache left alone for hours drains in hours", run };

/// Time in which the drive gets no requests.
const PAUSE: SimDuration = SimDuration(24 * 3600 * 1_000_000_000);

fn run(progress: &Progress) -> Result<Report, Failure> {
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
        let seen = write_blocks(drive.profile, blocks, PAUSE, progress)?;
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
        "The source tells of 28,672 blocks of 1 MiB, which fill the first drive's cache; the second's 9 hours are taken for \
         its own full cache of 49,152. Of the first drive the rest after each band is fitted to the 5 hours, what is merged at \
         once to the speed at which stalled writes are let go (docs/validation.md); of the second, of which that speed is not \
         known, a band of 16 tracks without a rest is fitted to the 9."
            .into(),
    );
    Ok(report)
}
