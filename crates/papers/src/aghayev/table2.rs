//! Table 2: tests 6 to 8, the number of writes until cleaning starts.

use super::super::{ClaimKind, Experiment, Replication, Report};
use super::observed::writes_until_cleaning;
use super::under_test::{EMULATED_1, EMULATED_2, EMULATED_3, SEAGATE};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "aghayev/table2",
    title: "random writes until cleaning starts tell the cache's size, its raw size and its map's",
    run,
};

/// Row: drive, size of a write in KiB, depth, the paper's count, the shares by which our count may lie below and above
/// the paper's.
type Row = (&'static str, u64, u32, u64, f64, f64);

/// Rows of the paper. For the emulated drives the authors read the start of cleaning off in steps of about 1 GiB
/// (9,175,056 writes are 35 GiB). So their counts may be too low by as much as a step.
const ROWS: [Row; 8] = [
    (SEAGATE, 4, 1, 22_800, 0.02, 0.02),
    (SEAGATE, 4, 31, 182_270, 0.02, 0.02),
    (SEAGATE, 64, 31, 182_231, 0.02, 0.02),
    (SEAGATE, 128, 31, 137_496, 0.02, 0.02),
    (SEAGATE, 256, 31, 67_830, 0.02, 0.02),
    (EMULATED_1, 4, 1, 9_175_056, 0.0, 0.04),
    (EMULATED_2, 4, 1, 2_464_153, 0.0, 0.04),
    (EMULATED_3, 4, 1, 9_175_056, 0.0, 0.04),
];

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: "The experiment makes random writes all over the drive until one of them has to wait for cleaning, \
                 and counts the writes before it. On the Seagate drive the count may differ from that of Aghayev \
                 2015 by 2 %. On the emulated drives, the paper read this number off in steps of about 1 GiB \
                 (9,175,056 writes are 35 GiB), so our count may be up to 4 % higher."
            .into(),
        ..Report::default()
    };
    for (drive, kib, depth, theirs, below, above) in ROWS {
        let most = theirs + theirs / 8;
        let words = format!("rw=randwrite,bs={kib}k,number_ios={most}");
        let ours = writes_until_cleaning(drive, depth, &words, replication)?;
        let told = ours.map_or(format!("none in {most}"), |ours| {
            let gib = (ours * kib) as f64 / (1 << 20) as f64;
            format!("{ours} ({:+.2} %), {gib:.2} GiB", (ours as f64 / theirs as f64 - 1.0) * 100.0)
        });
        let gib = (theirs * kib) as f64 / (1 << 20) as f64;
        let share = ours.map(|ours| ours as f64 / theirs as f64 - 1.0);
        report.claim(
            ClaimKind::Predicted,
            &format!("{drive}: writes of {kib} KiB at depth {depth}"),
            &format!("{theirs}, {gib:.2} GiB"),
            told,
            Some(share.is_some_and(|share| (-below..=above).contains(&share))),
        );
    }
    Ok(report)
}
