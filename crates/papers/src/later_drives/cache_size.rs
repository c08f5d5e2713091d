//! The amount of data written until the first write stalls, by size of write. Entries of the map limit small writes,
//! space limits large ones.

use super::super::aghayev::observed::{is_near, writes_until_cleaning};
use super::super::{ClaimKind, Experiment, Replication, Report};
use super::measured::{DRIVES, SOURCE};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "later-drives/cache-size",
    title: "the effective size of the cache is set by its map for small writes, by its space for large ones",
    run,
};

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: "The experiment makes random writes all over the drive, with 31 outstanding, until one of them has to \
             wait for cleaning. The amount of data written before that write is the *effective size* of the cache. \
             The result may differ from the source's by 2 %."
            .into(),
        ..Report::default()
    };
    for drive in &DRIVES {
        for &(kib, theirs) in drive.effective_gib {
            let most = (60 << 20) / kib;
            let words = format!("rw=randwrite,bs={kib}k,number_ios={}", most.min(400_000));
            let writes = writes_until_cleaning(drive.profile, 31, &words, replication)?;
            let gib = writes.map(|writes| (writes * kib) as f64 / (1 << 20) as f64);
            report.claim(
                ClaimKind::Predicted,
                &format!("{}: GiB until the cliff, writes of {kib} KiB", drive.profile),
                &format!("{theirs} ({SOURCE})"),
                gib.map_or("no cliff".into(), |gib| format!("{gib:.2}")),
                Some(gib.is_some_and(|gib| is_near(gib, theirs, 0.02))),
            );
        }
    }
    Ok(report)
}
