//! A block that is written again takes no new entry of the map, so the effective size of the cache grows with skew.

use imbrex_disk::SimTime;
use imbrex_trace::Source;

use super::super::aghayev::observed::{capacity_sectors, is_near, writes_until_cleaning};
use super::super::{ClaimKind, Experiment, Replication, Report};
use super::measured::{DRIVES, SOURCE};
use imbrex::drives::fresh;
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "later-drives/skew",
    title: "the effective size of the cache grows with skew, since blocks written again take no new entries",
    run,
};

/// Size of a write, in KiB.
const KIB: u64 = 64;
/// Exponents of Zipf's law, from the most even distribution to the most skewed.
const EXPONENTS: [&str; 3] = ["0.5", "0.8", "0.95"];

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: format!(
            "The experiment makes writes of {KIB} KiB, with addresses by Zipf's law over the drive and 31 \
             outstanding, until one of them has to wait for cleaning. The table also has the number of writes that \
             are expected by the map alone: the writes until the number of different blocks written exceeds the \
             number of entries of the map. A claim holds if the size is larger than with the exponent before, and the \
             two numbers of writes differ by at most 2 %."
        ),
        ..Report::default()
    };
    for drive in &DRIVES {
        let mut before = 0.0;
        for exponent in EXPONENTS {
            let words = format!("rw=randwrite,bs={KIB}k,random_distribution=zipf:{exponent},number_ios=3000000");
            let writes = writes_until_cleaning(drive.profile, 31, &words, replication)?.unwrap_or(u64::MAX);
            let expected = writes_until_blocks(drive.profile, &words, replication)?;
            let gib = (writes.saturating_mul(KIB)) as f64 / (1 << 20) as f64;
            report.claim(
                ClaimKind::Shape,
                &format!("{}: GiB until the cliff, exponent {exponent}", drive.profile),
                &format!("grows with skew ({SOURCE})"),
                format!("{gib:.2}; {writes} writes, {expected} until the blocks seen fill the map"),
                Some(gib > before && is_near(writes as f64, expected as f64, 0.02)),
            );
            before = gib;
        }
    }
    Ok(report)
}

/// Returns the number of writes of the workload `words` that touch no more blocks than the drive's map has entries.
fn writes_until_blocks(profile: &str, words: &str, replication: &Replication) -> Result<u64, Failure> {
    let drive = fresh(profile)?;
    let parameters = imbrex_disk::Profile::named(profile).expect("experiments name built-in profiles");
    let parameters = parameters.parameters_for("media-cache");
    let entries = parameters.iter().find(|(key, _)| key == "map_entries").and_then(|(_, value)| value.parse().ok());
    let entries: usize = entries.expect("the profiles of these drives say how many");
    let mut source = replication.generator(words, capacity_sectors(&drive));
    let (mut seen, mut writes) = (std::collections::BTreeSet::new(), 0);
    while let Some(request) = source.next(SimTime::ZERO)? {
        seen.insert(request.command.lba);
        if seen.len() > entries {
            break;
        }
        writes += 1;
    }
    Ok(writes)
}
