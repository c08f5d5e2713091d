//! Fig. 9: throughput of sequential reads by fill of the cache, after random and after sequential writes.

use super::super::lab::Bench;
use super::super::{ClaimKind, Experiment, Replication, Report};
use super::under_test::{CONVENTIONAL, SET_ASSOCIATIVE};
use imbrex::chart::{Axis, Chart, Series, Shape, Unit};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "cassuto/fig09",
    title: "sequential reads suffer from cached random writes, not from sequential ones",
    run,
};

/// Number of 4 KiB writes that fill the cache up to the first collection, which comes 2–5 % before 750,000 writes
/// (fig. 6).
const FULL: u64 = 715_000;
/// Number of steps from an empty to a full cache.
const STEPS: u64 = 5;
/// Reads of 8 GiB in order, 1 MiB at a time, from the address at which sequential writes began.
const READ: &str = "rw=read,bs=1m,offset=0,number_ios=8192";

fn run(replication: &Replication) -> Result<Report, Failure> {
    let (mut random, mut sequential) = (Vec::new(), Vec::new());
    for step in 0..=STEPS {
        let writes = FULL * step / STEPS;
        let fill = step as f64 / STEPS as f64;
        random.push((fill, throughput(SET_ASSOCIATIVE, "rw=randwrite,bs=4k", writes, replication)?));
        // As many bytes in order, in writes of one block like the random writes.
        sequential.push((fill, throughput(SET_ASSOCIATIVE, "rw=write,bs=4k,offset=0", writes, replication)?));
    }
    let conventional = throughput(CONVENTIONAL, "rw=write,bs=4k", 0, replication)?;
    let mut report = Report {
        method: format!(
            "The experiment makes 0 to {FULL} writes of 4 KiB on `{SET_ASSOCIATIVE}`, at random all over the drive \
             or in order from its start. These writes fill the disk cache to different degrees. Then 8 GiB are read \
             in order from the start of the drive. Each request is issued when the one before completes; only the \
             reads are measured."
        ),
        ..Report::default()
    };
    let (empty, full) = (random[0].1, random[STEPS as usize].1);
    report.claim(
        ClaimKind::Shape,
        "sequential read throughput after random writes, cache empty to full",
        "falls, already at a low fill",
        format!("{:.0} to {:.0} MB/s ({:.0} at a fifth)", empty / 1e6, full / 1e6, random[1].1 / 1e6),
        Some(random.windows(2).all(|pair| pair[1].1 < pair[0].1)),
    );
    let lowest = sequential.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    report.claim(
        ClaimKind::Shape,
        "the same after sequential writes, beside a non-shingled drive",
        "similar, whatever the fill",
        format!("at least {:.0} MB/s, the conventional drive {:.0}", lowest / 1e6, conventional / 1e6),
        Some(lowest > 0.9 * conventional),
    );
    let reference = vec![(0.0, conventional), (1.0, conventional)];
    let chart = Chart::new(
        "cassuto-fig09",
        "Sequential reads after the cache was filled",
        Axis::linear("fill of the disk cache", Unit::Share),
        Axis::linear("read throughput", Unit::BytesPerSecond),
    )
    .with(Series::new("filled at random", Shape::Line, 0, random))
    .with(Series::new("filled in order", Shape::Line, 1, sequential))
    .with(Series::new("conventional drive", Shape::Line, 2, reference).dashed());
    report.figure(chart);
    Ok(report)
}

/// Returns the throughput, in bytes a second, of the reads after `writes` writes.
fn throughput(drive: &str, fill: &str, writes: u64, replication: &Replication) -> Result<f64, Failure> {
    let words = if writes == 0 { READ.to_string() } else { format!("{fill},number_ios={writes};{READ}") };
    let bench = Bench { warmup_requests: writes, ..Bench::flat_out(drive) };
    let result = bench.run(&words, replication, &mut |_| {})?;
    Ok(result.host.read_blocks as f64 * 512.0 / (result.duration_ns as f64 / 1e9))
}
