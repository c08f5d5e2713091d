//! The benefit of idle time: random writes fill the cache, the drive is idle, and more writes follow.

use super::super::{Experiment, Replication, Report};
use super::bench::{Burst, Case};
use super::table::table;
use imbrex::error::Failure;
use imbrex::human;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "costs/idle", title: "writes that a pause buys a drive whose cache is full", run };

/// Drives: (name, profile, number of random writes). As many writes fill the cache and follow each pause.
const DRIVES: [(&str, &str, u64); 4] = [
    ("st5000as0011", "seagate-st5000as0011", 250_000),
    ("st8000as0011", "seagate-st8000as0011", 300_000),
    ("st8000as0022", "seagate-st8000as0022", 250_000),
    ("st8000dm004", "seagate-st8000dm004", 450_000),
];
const PAUSES: [(&str, &str); 5] = [("1 min", "1m"), ("10 min", "10m"), ("1 h", "1h"), ("8 h", "8h"), ("24 h", "24h")];
/// Regions to which the writes go: (heading, size). The second is as large as a busy directory.
const PLACES: [(&str, &str); 2] = [("the whole drive", "100%"), ("10 GiB", "10G")];

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: "Random writes of 4 KiB, with 31 outstanding, first fill the cache, and go on. Then the drive is \
                 idle for each of the times in the table in turn, and gets as many writes again after each. A cell \
                 is the number of writes that the drive takes after the idle time, until one has to wait for \
                 cleaning."
            .into(),
        ..Report::default()
    };
    for (place, size) in PLACES {
        let mut columns = vec!["drive"];
        columns.extend(PAUSES.iter().map(|(name, _)| *name));
        let mut rows = table(&format!("Writes that a pause buys, random over {place}"), &columns);
        for (name, drive, writes) in DRIVES {
            let mut row = vec![name.to_string()];
            row.extend(bought(drive, writes, size, replication)?);
            rows.rows.push(row);
        }
        report.tables.push(rows);
    }
    Ok(report)
}

/// Returns for each pause how many writes `drive` takes after it without waiting for cleaning. One run has all pauses.
fn bought(drive: &str, writes: u64, size: &str, replication: &Replication) -> Result<Vec<String>, Failure> {
    let mut words = format!("rw=randwrite,bs=4k,size={size},number_ios={writes},iodepth=31");
    for (_, pause) in PAUSES {
        words += &format!(";idle={pause};number_ios={writes}");
    }
    let cost = Case::new(drive, &words).make(replication)?;
    assert_eq!(cost.bursts.len(), 1 + PAUSES.len(), "a stall of {drive} looks like a pause");
    let of_burst = |burst: &Burst| match burst.has_waited {
        true => human::count(burst.free),
        false => format!("over {}", human::count(burst.free)),
    };
    Ok(cost.bursts[1..].iter().map(of_burst).collect())
}
