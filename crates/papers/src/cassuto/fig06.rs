//! Figs 6–8: random 4 KiB writes on the set-associative disk cache, with large and with small regions.

use imbrex_disk::SimTime;
use imbrex_sim::IoRecord;

use super::super::lab::{Bench, Counts, mean};
use super::super::report::Table;
use super::super::{ClaimKind, Experiment, Replication, Report};
use super::under_test::SET_ASSOCIATIVE;
use imbrex::chart::{Axis, Chart, Series, Shape, Unit};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "cassuto/fig06-08",
    title: "random 4 KiB writes: high and flat, then the cliff; small regions leave no gaps",
    run,
};

/// Number of writes that fill a cache of 1 % of 6·10⁸ blocks, with eight blocks a write.
const CACHE_WRITES: f64 = 750_000.0;

/// Number of writes in a run: enough for one collection of every cache region.
const WRITES: u64 = 1_050_000;

/// Parameters for regions of 10,000 blocks. The tracks, of 3000 blocks each, have room for the guards, of 2,999
/// blocks, of 60,000 regions: 60,000 · (10,000 + 2,999) / 3000.
const SMALL_REGIONS: &str = "region_size=5120000,geometry.tracks=259980";

/// Smallest share of windows that counts as "many".
const MANY: f64 = 0.2;

/// Measurements of one run.
struct Run {
    counts: Counts,
    /// Number of the write that first found a cache region full, for each region, in rising order.
    first_collections: Vec<u64>,
    cliff: SimTime,
    end: SimTime,
}

impl Run {
    /// Returns the number of the write that first found a cache region full; that of the last write if none did.
    fn first(&self) -> u64 {
        self.first_collections.first().copied().unwrap_or(WRITES)
    }
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let large = measure(SET_ASSOCIATIVE, 50_000, replication)?;
    let small_drive = format!("{SET_ASSOCIATIVE},{SMALL_REGIONS}");
    let small = measure(&small_drive, 10_000, replication)?;
    let mut report = Report {
        method: format!(
            "The experiment makes {WRITES} random writes of 4 KiB all over the drive, one after the other. It runs \
             on `{SET_ASSOCIATIVE}`, with regions of 50,000 blocks, and on the same drive with regions of 10,000 \
             blocks (`{SMALL_REGIONS}`). Smaller regions need more guards; the added tracks hold these guards, so \
             that 6·10⁸ blocks remain for data. The *cliff* is the first collection of a cache region."
        ),
        ..Report::default()
    };
    time_claim(&mut report, &large);
    report.tables.push(collections(&[(50_000, "2 to 5 %", &large), (10_000, "7 to 11 %", &small)]));
    gap_claims(&mut report, &large, &small);
    report.figure(chart("cassuto-fig06", "10 s windows", &large, "50,000", None));
    // A drawing each, as in the paper: spikes of two curves in one drawing hide each other.
    for (id, run, blocks) in [("cassuto-fig07", &large, "50,000"), ("cassuto-fig08", &small, "10,000")] {
        let what = format!("the low end, regions of {blocks} blocks");
        report.figure(chart(id, &what, run, blocks, Some(100.0)));
    }
    Ok(report)
}

fn measure(drive: &str, region_blocks: u64, replication: &Replication) -> Result<Run, Failure> {
    let mut counts = Counts::every(10);
    let mut first_collections = std::collections::BTreeMap::new();
    let (mut cliff, mut end) = (None, SimTime::ZERO);
    // 1 % of 6·10⁸ blocks.
    let cache_regions = 6_000_000 / region_blocks;
    let mut each = |record: &IoRecord| {
        counts.see(record.end);
        end = record.end;
        if !record.time.cleaning.is_zero() {
            cliff.get_or_insert(record.start);
            let region = record.command.lba.0 / region_blocks % cache_regions;
            first_collections.entry(region).or_insert(record.sequence);
        }
    };
    Bench::flat_out(drive).run(&format!("rw=randwrite,bs=4k,number_ios={WRITES}"), replication, &mut each)?;
    let mut first_collections: Vec<_> = first_collections.into_values().collect();
    first_collections.sort_unstable();
    Ok(Run { counts, first_collections, cliff: cliff.unwrap_or(end), end })
}

/// Returns the table of the writes after which cache regions are full, beside the expectation for uniform writes. The
/// paper gives neither.
fn collections(runs: &[(u64, &str, &Run)]) -> Table {
    let columns =
        ["regions", "first collection", "before 750,000 writes", "expected", "median region full", "expected"];
    let row = |&(blocks, expected, run): &(u64, &str, &Run)| {
        let (first, median) = (run.first(), run.first_collections[run.first_collections.len() / 2]);
        let early = 1.0 - first as f64 / CACHE_WRITES;
        vec![
            format!("{blocks} blocks"),
            format!("at write {first}"),
            format!("{:.1} %", early * 100.0),
            expected.to_string(),
            format!("at write {median}"),
            "750,000 ± 1 %".into(),
        ]
    };
    Table {
        heading: "Writes after which cache regions are full, and our expectation for uniform writes".into(),
        columns: columns.map(String::from).to_vec(),
        rows: runs.iter().map(row).collect(),
    }
}

/// Adds the claim of the time of a write while the cache fills, which the paper gives for regions of 50,000 blocks.
fn time_claim(report: &mut Report, run: &Run) {
    let seconds = run.cliff.0 as f64 / 1e9;
    let per_write_ms = seconds * 1e3 / run.first() as f64;
    report.claim(
        ClaimKind::Shape,
        "regions of 50000: time of a write while the cache fills",
        "780 s for about 750,000 writes: 1.04 ms",
        format!("{per_write_ms:.3} ms; the first collection at {seconds:.0} s"),
        Some((per_write_ms / 1.04 - 1.0).abs() <= 0.03),
    );
}

fn gap_claims(report: &mut Report, large: &Run, small: &Run) {
    let after_large = large.counts.between(large.cliff, large.end);
    let after_small = small.counts.between(small.cliff, small.end);
    let (low, gaps) = (share(after_large, |count| count < 500), share(after_large, |count| count == 0));
    report.claim(
        ClaimKind::Shape,
        "regions of 50,000: windows of 10 s under 50 IOPS after the cliff, and at zero",
        "under 50 IOPS, many at zero",
        format!("{:.0} % under 50 IOPS, {:.0} % at zero", low * 100.0, gaps * 100.0),
        Some(low > 0.5 && gaps >= MANY),
    );
    let small_gaps = share(after_small, |count| count == 0);
    report.claim(
        ClaimKind::Shape,
        "regions of 10,000: windows of 10 s at zero",
        "none",
        format!("{:.1} %", small_gaps * 100.0),
        Some(small_gaps == 0.0),
    );
    let (large_mean, small_mean) = (WRITES as f64 / seconds(large.end), WRITES as f64 / seconds(small.end));
    report.claim(
        ClaimKind::Shape,
        "mean IOPS over the whole run, large and small regions",
        "the same (within 15 %)",
        format!(
            "{large_mean:.0} and {small_mean:.0} (after the cliff {:.1} and {:.1})",
            mean(after_large) / 10.0,
            mean(after_small) / 10.0
        ),
        Some((small_mean / large_mean - 1.0).abs() <= 0.15),
    );
}

fn share(windows: &[u32], is_counted: impl Fn(u32) -> bool) -> f64 {
    windows.iter().filter(|&&count| is_counted(count)).count() as f64 / windows.len().max(1) as f64
}

fn seconds(time: SimTime) -> f64 {
    time.0 as f64 / 1e9
}

fn chart(id: &str, what: &str, run: &Run, blocks: &str, top: Option<f64>) -> Chart {
    let mut iops = Axis::linear("4 KiB writes a second", Unit::Count);
    if let Some(top) = top {
        iops = iops.ranged(0.0, top);
    }
    let title = format!("Random writes on the set-associative cache, {what}");
    let name = format!("regions of {blocks} blocks");
    let chart = Chart::new(id, title, Axis::linear("simulated time (s)", Unit::Count), iops).with(Series::new(
        name,
        Shape::Steps,
        0,
        run.counts.points(),
    ));
    let cliff_seconds = run.cliff.0 as f64 / 1e9;
    chart.mark_x(cliff_seconds, "first collection").thin(1500)
}
