//! The benefit of the volatile cache: synchronous writes with and without it.

use super::super::{Experiment, Replication, Report};
use super::bench::Case;
use super::table::{COLUMNS, cells, megabytes, rate, table};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "costs/volatile-cache", title: "the volatile cache on and off, one write at a time", run };

const DRIVES: [(&str, &str); 3] =
    [("cmr-5900", "cmr-5900"), ("st5000as0011", "seagate-st5000as0011"), ("st8000as0022", "seagate-st8000as0022")];

const WORKLOADS: [(&str, &str); 3] = [
    ("random 4 KiB", "rw=randwrite,bs=4k,number_ios=20000"),
    ("in order, 64 KiB", "rw=write,bs=64k,number_ios=100000"),
    ("in order, 1 MiB", "rw=write,bs=1M,number_ios=20000"),
];

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut columns = vec!["drive", "cache", "writes/s", "MB/s"];
    columns.extend(COLUMNS);
    let mut report = Report {
        method:
            "One write at a time on a drive that was never written before; the volatile cache is of 64 MiB, or off."
                .into(),
        ..Report::default()
    };
    for (what, words) in WORKLOADS {
        let mut rows = table(&format!("Writes, {what}, one at a time"), &columns);
        for (name, drive) in DRIVES {
            for (setting, has_write_cache) in [("on", true), ("off", false)] {
                let cost = Case { has_write_cache, ..Case::new(drive, words) }.make(replication)?;
                let mut row = vec![name.to_string(), setting.to_string()];
                row.extend([rate(cost.rate()), megabytes(cost.bytes_per_second())]);
                row.extend(cells(&cost));
                rows.rows.push(row);
            }
        }
        report.tables.push(rows);
    }
    Ok(report)
}
