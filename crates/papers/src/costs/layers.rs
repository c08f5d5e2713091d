//! The layers compared, each family on one geometry.
//!
//! The shingled geometry is that of Cassuto 2010, whose caches of 3 GB fill within a run. `media-cache` is not
//! compared, since it is made for bands of tracks; the Seagate drives use `media-cache`.

use super::super::{Experiment, Replication, Report};
use super::bench::Case;
use super::cliff::before_and_after;
use super::drives::compare;
use super::table::{COLUMNS, cells, table};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const SHINGLED: Experiment =
    Experiment { name: "costs/layers-shingled", title: "the layers for shingled disks on one geometry", run: shingled };

/// Registry entry of this experiment.
pub(super) const INTERLACED: Experiment = Experiment {
    name: "costs/layers-interlaced",
    title: "the layers for interlaced disks on one geometry",
    run: interlaced,
};

const ON_SHINGLED: [(&str, &str); 6] = [
    ("conventional", "cassuto-307g+conventional"),
    ("set-associative", "cassuto-307g+set-associative"),
    ("s-blocks", "cassuto-307g+s-blocks"),
    ("fully-associative", "cassuto-307g+fully-associative"),
    ("log-structured", "cassuto-307g+log-structured"),
    ("region-rmw", "cassuto-307g+region-rmw"),
];

const ON_INTERLACED: [(&str, &str); 9] = [
    ("conventional", "imr-1t+conventional"),
    ("imr-rmw", "imr-1t+imr-rmw"),
    ("track-flip", "imr-1t+track-flip"),
    ("track-cache", "imr-1t+track-cache"),
    ("track-map", "imr-1t+track-map"),
    ("flip-cache", "imr-1t+flip-cache"),
    ("top-buffer", "imr-1t+top-buffer"),
    ("block-swap", "imr-1t+block-swap"),
    ("write-buffer", "imr-1t+write-buffer"),
];

/// Workload of the first table, for shingled disks.
const WORDS: &str = "rw=randwrite,bs=4k,number_ios=1000000,iodepth=31";

fn shingled(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: format!(
            "The tables compare the layers on the drive `cassuto-307g`, which serves one command at a time. Disk \
             caches take a hundredth of the drive. The workload of the first table is `{WORDS}`, ended 50,000 writes \
             after the cliff."
        ),
        ..Report::default()
    };
    random_writes(&mut report, &ON_SHINGLED, Some(50_000), replication)?;
    compare(&mut report, "costs-layers-shingled", &ON_SHINGLED, replication)?;
    Ok(report)
}

fn interlaced(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: "`imr-1t`, every track full of data; the first table has the built-in `random-4k`.".into(),
        ..Report::default()
    };
    random_writes(&mut report, &ON_INTERLACED, None, replication)?;
    compare(&mut report, "costs-layers-interlaced", &ON_INTERLACED, replication)?;
    Ok(report)
}

fn random_writes(
    report: &mut Report,
    drives: &[(&str, &str)],
    past_cliff: Option<u64>,
    replication: &Replication,
) -> Result<(), Failure> {
    let mut columns = vec!["layer", "writes before", "time before", "writes/s before", "writes/s after"];
    columns.extend(COLUMNS);
    let mut rows = table("Random writes of 4 KiB, 31 at a time", &columns);
    let workload = if past_cliff.is_some() { WORDS } else { "random-4k" };
    for (layer, drive) in drives {
        let cost = Case { past_cliff, ..Case::new(drive, workload) }.make(replication)?;
        let mut row = vec![layer.to_string()];
        row.extend(before_and_after(&cost));
        row.extend(cells(&cost));
        rows.rows.push(row);
    }
    report.tables.push(rows);
    Ok(())
}
