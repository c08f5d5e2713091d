//! Fig. 9: HiSMRfs on five disks with its metadata on flash, against ext4 with a flash cache over RAID 5 of the same
//! kind of disks, under filebench's `fileserver`, in disk time.
//!
//! HiSMRfs runs on the core of `imbrex-fs` in virtual time (`core`). ext4 runs in a guest whose disks this process
//! serves (`kernel`).

mod claims;
pub(super) mod core;
mod kernel;

use imbrex::Failure;
use imbrex::chart::{Axis, BarArrangement, BarChart, Style, Unit};
use imbrex_fs::load::bench::Sizes;
use serde::{Deserialize, Serialize};

use self::kernel::Cache;
use super::choices::{
    CACHE_FLASH, DIRTY_PERCENT, FLASH_BYTES, JOURNAL_BYTES, LOAD_BYTES, PACE, PROCESSOR_PERCENT, RAID_DISK, RAID_DISKS,
    SEED, SERVER_FILES, SERVER_MEMORY_BYTES, SERVER_ROUNDS, SMALLER, WRITTEN_PERCENT,
};
use crate::guest::Did;
use crate::report::Table;
use crate::{Experiment, Replication, Report};

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "jin/fig09", title: "HiSMRfs against ext4 with a flash cache, in time of the disks", run };

/// Name of the load.
const LOAD: &str = "fileserver";

/// Measurements of a phase on one system.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Number of operations of the file system.
    operations: u64,
    /// Number of bytes that applications read and wrote.
    bytes: u64,
    /// Duration of the phase, in ns of the drives' time.
    elapsed_ns: u64,
    /// Mean latency of an operation, in ns of the drives' time, without the sync with which we end a phase.
    pub latency_ns: u64,
    /// Work of each drive; the flash is the last.
    drives: Vec<Did>,
}

impl Measured {
    /// Returns the disk time in ns: the time in which the busiest drive had requests in flight.
    fn disk_ns(&self) -> u64 {
        self.drives.iter().map(|drive| drive.busy_ns).max().unwrap_or(0)
    }

    pub(super) fn disk_seconds(&self) -> f64 {
        self.disk_ns() as f64 / 1e9
    }

    /// Returns the number of operations a second of disk time.
    pub(super) fn rate(&self) -> f64 {
        self.operations as f64 * 1e9 / self.disk_ns().max(1) as f64
    }

    fn mb_per_s(&self) -> f64 {
        self.bytes as f64 * 1e3 / self.disk_ns().max(1) as f64
    }

    fn flash(&self) -> Did {
        self.drives.last().copied().unwrap_or_default()
    }

    /// Returns the sum of a counter over all disks, without the flash.
    fn of_disks(&self, count: fn(&Did) -> u64) -> u64 {
        self.drives.iter().take(RAID_DISKS).map(count).sum()
    }
}

/// Results of a system.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// Measurements of the two phases: pre-allocation, then the run.
    pub phases: [Measured; 2],
    /// Number of bytes of flash that the system used.
    flash_bytes: u64,
    /// Load of the guest's processor, in percent, or `None` if processors take no time on this system.
    processor_percent: Option<f64>,
}

/// Names of the systems, in the order of their runs; the first two are the paper's.
const SYSTEMS: [&str; 4] = [
    "HiSMRfs",
    "ext4 with a flash cache (dm-cache)",
    "ext4 without flash",
    "ext4 with a cache of all writes (dm-writecache)",
];

/// Indices of the systems in a row.
const HISMRFS: usize = 0;
const CACHED: usize = 1;
const UNCACHED: usize = 2;
const WRITE_CACHED: usize = 3;

/// Results by system; `None` for a system that could not be run.
type Row = Vec<Option<Outcome>>;

/// Returns the sizes of the load.
fn sizes() -> Sizes {
    let own = imbrex_fs::load::bench::named(LOAD).expect("it is a line of the registry of benchmarks").defaults;
    Sizes { files: Some(SERVER_FILES), operations: Some(SERVER_ROUNDS), ..own }
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report { method: method(), ..Report::default() };
    let bar = replication.progress.steps(SYSTEMS[HISMRFS]);
    let (own, _) = core::run(core::WHOLE, replication.seed(SEED), &bar)?;
    bar.finish_and_clear();
    let mut row = vec![Some(own)];
    for (cache, name) in [Cache::Smq, Cache::None, Cache::Write].into_iter().zip(&SYSTEMS[CACHED..]) {
        let bar = replication.progress.steps(name);
        let outcome = kernel::run(cache, replication, &|words| bar.set_message(words.to_string()));
        bar.finish_and_clear();
        if replication.progress.should_stop() {
            return Err(Failure::interrupted());
        }
        row.push(match outcome {
            Ok(outcome) => Some(outcome),
            Err(failure) => {
                report.remarks.push(format!("{name} was not run: {failure}."));
                None
            }
        });
    }
    claims::judge(&mut report, &row);
    claims::explain(&mut report, &row);
    report.tables.push(figures(&row));
    report.tables.push(traffic(&row));
    report.figures.push(("jin-fig9.svg".into(), chart(&row)));
    Ok(report)
}

fn method() -> String {
    format!(
        "The experiment runs filebench's `fileserver` (`imbrex fs bench`, seed {SEED}) with {SERVER_FILES} files and \
         {SERVER_ROUNDS} rounds on {RAID_DISKS} new disks, `{RAID_DISK}`, and on flash, `{CACHE_FLASH}`. Numbers of \
         files and bytes are a {SMALLER}th of those of Jin 2014: 200,000 files, 1 GB of flash for the cache ({} KiB \
         here), 2 GB of memory ({} KiB), and the journal of 1 GiB that ext4 would make ({} MiB). So memory and flash \
         hold the same shares of the data as in the paper; the disks have their full size. HiSMRfs is store `log`, \
         as an array with one parity, its metadata on the flash, without a hot zone, in virtual time. Of its memory, \
         {DIRTY_PERCENT} % are for data that are not yet written and {WRITTEN_PERCENT} % for written data that it \
         keeps; the rest is the page cache in front of it. ext4 runs in a guest (a stock Linux in QEMU, \
         `scripts/guest`), on dm-cache (write-back, policy smq, blocks of 64 KiB) over md RAID 5 with chunks of 512 \
         KiB and a bitmap, as mdadm makes it; dm-cache's metadata of 4 MiB lie beside the cache. The disks are \
         served at {PACE} of their speed. Those timers of the guest that can be set (write-back, commits, \
         schedulers, md) are longer by the same factor; the timers of dm-cache cannot be set. The guest keeps {} KiB \
         of memory, and {} MiB for the buffers of the load; the rest is taken away before the load begins. The time \
         of the disks is the time in which the busiest drive had requests in progress; the processor takes no time. \
         Latencies are by the clock of the file system, for ext4 the guest's clock times {PACE}. They count only if \
         the guest's processor is busy for less than {PROCESSOR_PERCENT:.0} % of the time. A phase ends when all \
         data are durable. All bytes of the data are stored. Flashcache is not in today's kernels. It takes all \
         reads and writes into the cache, and dm-cache does not; so dm-writecache, which takes all writes, is run \
         too. The values that the paper does not give were chosen before the guest's first complete run (commit {}). \
         The figures of HiSMRfs with twice the rounds had been seen by then.",
        FLASH_BYTES >> 10,
        SERVER_MEMORY_BYTES >> 10,
        JOURNAL_BYTES >> 20,
        SERVER_MEMORY_BYTES >> 10,
        LOAD_BYTES >> 20,
        super::CHOSEN_FIG09,
    )
}

fn cells(outcome: &Option<Outcome>, count: usize, of: impl Fn(&Outcome) -> Vec<String>) -> Vec<String> {
    outcome.as_ref().map_or_else(|| vec!["–".to_string(); count], of)
}

fn table(heading: &str, columns: &[&str], row: &Row, of: impl Fn(&Outcome) -> Vec<String>) -> Table {
    let line = |(name, outcome): (&&str, &Option<Outcome>)| {
        [name.to_string()].into_iter().chain(cells(outcome, columns.len(), &of)).collect()
    };
    let columns = [&["system"], columns].concat();
    Table::new(heading, &columns, SYSTEMS.iter().zip(row).map(line))
}

fn figures(row: &Row) -> Table {
    let columns = [
        "pre-allocate, s of the disks",
        "the same, elapsed",
        "operations/s of the disks",
        "MB/s",
        "run, s of the disks",
        "the same, elapsed",
        "mean latency, ms",
        "flash used, MB",
        "processor busy",
    ];
    table("Times, rates, flash", &columns, row, |outcome| {
        let [before, run] = &outcome.phases;
        let seconds = |ns: u64| format!("{:.2}", ns as f64 / 1e9);
        vec![
            seconds(before.disk_ns()),
            seconds(before.elapsed_ns),
            format!("{:.0}", run.rate()),
            format!("{:.1}", run.mb_per_s()),
            seconds(run.disk_ns()),
            seconds(run.elapsed_ns),
            format!("{:.2}", run.latency_ns as f64 / 1e6),
            format!("{:.2}", outcome.flash_bytes as f64 / 1e6),
            outcome.processor_percent.map_or("none".into(), |percent| format!("{percent:.0} %")),
        ]
    })
}

fn traffic(row: &Row) -> Table {
    let columns = [
        "pre-allocate: disks read",
        "written",
        "flash busy, s",
        "flash read",
        "written",
        "run: disks read",
        "written",
        "flash busy, s",
        "flash read",
        "written",
    ];
    let heading = "Reads and writes of the drives, in MB of all of them together; the application wrote and read as \
         much in each system";
    table(heading, &columns, row, |outcome| {
        let megabytes = |bytes: u64| format!("{:.0}", bytes as f64 / 1e6);
        let phase = |phase: &Measured| {
            [
                megabytes(phase.of_disks(|did| did.read_bytes)),
                megabytes(phase.of_disks(|did| did.written_bytes)),
                format!("{:.2}", phase.flash().busy_ns as f64 / 1e9),
                megabytes(phase.flash().read_bytes),
                megabytes(phase.flash().written_bytes),
            ]
        };
        outcome.phases.iter().flat_map(phase).collect()
    })
}

/// Returns a chart of the four bars of the paper's figure, divided by those of HiSMRfs.
fn chart(row: &Row) -> String {
    let axis = Axis::linear("over HiSMRfs", Unit::Ratio);
    let groups = ["pre-allocation time", "operations/s", "MB/s", "latency"].map(String::from).to_vec();
    let title = "HiSMRfs and ext4 with a flash cache";
    let mut chart = BarChart::new("jin-fig9", title, axis, groups, BarArrangement::Grouped);
    for (number, name) in SYSTEMS.iter().enumerate() {
        let over = |value: fn(&Outcome) -> f64| claims::over(row, number, HISMRFS, value);
        let ratios = [over(claims::pre_allocation), over(claims::rate), over(claims::bytes), over(claims::latency)];
        let known: Option<Vec<f64>> = ratios.into_iter().collect();
        if let Some(values) = known {
            chart = chart.with(*name, number, values);
        }
    }
    chart.svg(Style::Standalone)
}
