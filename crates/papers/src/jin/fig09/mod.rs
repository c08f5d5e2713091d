//! Fig. 9: HiSMRfs on five disks with its metadata on flash, against ext4 with a flash cache over RAID 5 of the same
//! kind of disks, under filebench's `fileserver`, in disk time.
//!
//! HiSMRfs runs on the core of `imbrex-fs` in virtual time (`core`). ext4 runs in the lab (`ext4`).

mod claims;
pub(super) mod core;
pub(super) mod ext4;
mod flashcache;

use imbrex::Failure;
use imbrex::chart::{Axis, BarArrangement, BarChart, Unit};
use imbrex_fs::load::bench::Sizes;

use self::core::{Setup, WHOLE};
use self::ext4::Cache;
use self::flashcache::Replayed;
use super::choices::{
    CACHE_FLASH, DIRTY_PERCENT, FASTER_FLASH, FLASH_BYTES, JOURNAL_BYTES, LOAD_BYTES, RAID_DISK, RAID_DISKS, SEED,
    SERVER_FILES, SERVER_MEMORY_BYTES, SERVER_ROUNDS, SMALLER, WRITTEN_PERCENT,
};
use crate::report::Table;
use crate::{Experiment, Replication, Report};

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "jin/fig09", title: "HiSMRfs against ext4 with a flash cache, in time of the disks", run };

/// Name of the load.
const LOAD: &str = "fileserver";

/// Amount of work that a drive did in an interval.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Did {
    /// Time during which the drive had requests in flight, in nanoseconds.
    busy_ns: u64,
    /// Number of bytes that the host read from the drive.
    read_bytes: u64,
    /// Number of bytes that the host wrote to the drive.
    written_bytes: u64,
}

impl Did {
    /// Returns the work done since the counters were at `before`.
    fn since(self, before: Did) -> Did {
        Did {
            busy_ns: self.busy_ns - before.busy_ns,
            read_bytes: self.read_bytes - before.read_bytes,
            written_bytes: self.written_bytes - before.written_bytes,
        }
    }
}

/// Measurements of a phase on one system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Measured {
    /// Number of operations of the file system.
    operations: u64,
    /// Number of bytes that applications read and wrote.
    bytes: u64,
    /// Duration of the phase, in ns of the drives' time.
    elapsed_ns: u64,
    /// Mean latency of an operation, in ns of the drives' time, without the sync with which we end a phase; `None` if it is
    /// not known.
    pub latency_ns: Option<u64>,
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Outcome {
    /// Measurements of the two phases: pre-allocation, then the run.
    pub phases: [Measured; 2],
    /// Number of bytes of flash that the system used.
    flash_bytes: u64,
}

/// Kind of a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Hismrfs,
    /// ext4 with a cache that Linux has.
    Ext4(Cache),
    /// Requests of ext4, replayed with the policy of Flashcache.
    Flashcache,
}

/// System that is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct System {
    name: &'static str,
    kind: Kind,
    /// Specification of the flash.
    flash: &'static str,
}

/// The systems: the paper's two, then variants.
const SYSTEMS: [System; 9] = [
    System { name: "HiSMRfs", kind: Kind::Hismrfs, flash: CACHE_FLASH },
    System { name: "ext4 with Flashcache (its policy, replayed)", kind: Kind::Flashcache, flash: CACHE_FLASH },
    System { name: "ext4 with dm-cache", kind: Kind::Ext4(Cache::Smq), flash: CACHE_FLASH },
    System { name: "ext4 without flash", kind: Kind::Ext4(Cache::None), flash: CACHE_FLASH },
    System { name: "ext4 with dm-writecache", kind: Kind::Ext4(Cache::Write), flash: CACHE_FLASH },
    System { name: "HiSMRfs, faster flash", kind: Kind::Hismrfs, flash: FASTER_FLASH },
    System { name: "ext4 with Flashcache, faster flash", kind: Kind::Flashcache, flash: FASTER_FLASH },
    System { name: "ext4 with dm-cache, faster flash", kind: Kind::Ext4(Cache::Smq), flash: FASTER_FLASH },
    System { name: "ext4 with dm-writecache, faster flash", kind: Kind::Ext4(Cache::Write), flash: FASTER_FLASH },
];

/// Indices of the systems in a row.
const HISMRFS: usize = 0;
const FLASHCACHE: usize = 1;
const DM_CACHE: usize = 2;
const UNCACHED: usize = 3;
const WRITE_CACHED: usize = 4;
/// Distance of a system to the same with the faster flash, for those before [`UNCACHED`].
const FASTER: usize = 5;
const WRITE_CACHED_FASTER: usize = 8;

/// Results by system; `None` for a system that could not be run.
type Row = Vec<Option<Outcome>>;

/// Returns the sizes of the load.
fn sizes() -> Sizes {
    let own = imbrex_fs::load::bench::named(LOAD).expect("it is a line of the registry of benchmarks").defaults;
    Sizes { files: Some(SERVER_FILES), operations: Some(SERVER_ROUNDS), ..own }
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report { method: method(), ..Report::default() };
    let mut row = Vec::new();
    let mut replayed = Vec::new();
    for System { name, kind, flash } in SYSTEMS {
        let bar = replication.progress.steps(name);
        let say = |words: &str| bar.set_message(words.to_string());
        let outcome = match kind {
            Kind::Hismrfs => {
                let (outcome, _) = core::run(Setup { flash, ..WHOLE }, replication.seed(SEED), &bar)?;
                Ok(outcome)
            }
            Kind::Ext4(cache) => ext4::run(cache, flash, replication, &say),
            Kind::Flashcache => ext4::run_flashcache(flash, replication, &say).map(|(outcome, found)| {
                replayed.push((name, found));
                outcome
            }),
        };
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
    report.tables.push(hits(&replayed));
    report.figure(chart(&row));
    Ok(report)
}

fn method() -> String {
    format!(
        "The experiment runs filebench's `fileserver` (`imbrex fs bench`, seed {SEED}) with {SERVER_FILES} files and \
         {SERVER_ROUNDS} rounds on {RAID_DISKS} new disks, `{RAID_DISK}`, and on flash, `{CACHE_FLASH}`. This flash writes slowly at random, as drives of \
         the paper's time did; a variant has `{FASTER_FLASH}`. Numbers of \
         files and bytes are a {SMALLER}th of those of Jin 2014: 200,000 files, 1 GB of flash for the cache ({} KiB \
         here), 2 GB of memory ({} KiB), and the journal of 1 GiB that ext4 would make ({} MiB). So memory and flash \
         hold the same shares of the data as in the paper; the disks have their full size. HiSMRfs is store `log`, \
         as an array with one parity, its metadata on the flash, without a hot zone, in virtual time. Of its memory, \
         {DIRTY_PERCENT} % are for data that are not yet written and {WRITTEN_PERCENT} % for written data that it \
         keeps; the rest is the page cache in front of it. ext4 runs in the lab (Linux 6.12), on dm-cache (write-back, \
         policy smq, blocks of 64 KiB) over md RAID 5 with chunks of 512 KiB and a bitmap, as mdadm makes it; \
         dm-cache's metadata of 4 MiB lie beside the cache. The guest keeps {} KiB of memory, and {} MiB for the \
         buffers of the load and the kernel; the rest is taken away before the load begins. The time of the disks is the time in \
         which the busiest drive had requests in progress; the processor takes no time. A phase ends when all \
         data are durable. All bytes of the data are stored. Flashcache is not in today's kernels. So its policy was \
         written anew from its documentation: write-back, blocks of 4 KiB, sets of 512 blocks, all reads and writes into \
         the cache, metadata written when a block becomes dirty or clean, cleaning above 20 % of dirty blocks. It \
         replays the requests that ext4 made on one disk as large as the array, with 50 in progress, on the flash and on \
         md RAID 5, in the lab. A replay has no latencies of files, so the claim about latency is judged with dm-cache. \
         dm-writecache, which takes all writes, is run too. The values that the paper does not give were chosen before the first complete run, in a guest of another kind (commit {}); the \
         figures of HiSMRfs with twice the rounds had been seen by then. Flashcache's policy, and the flash that writes \
         slowly at random, were chosen before their first run (commit {}), when the results of the other systems with the \
         faster flash were known.",
        FLASH_BYTES >> 10,
        SERVER_MEMORY_BYTES >> 10,
        JOURNAL_BYTES >> 20,
        SERVER_MEMORY_BYTES >> 10,
        LOAD_BYTES >> 20,
        super::CHOSEN_FIG09,
        super::CHOSEN_CACHE,
    )
}

fn cells(outcome: &Option<Outcome>, count: usize, of: impl Fn(&Outcome) -> Vec<String>) -> Vec<String> {
    outcome.as_ref().map_or_else(|| vec!["–".to_string(); count], of)
}

fn table(heading: &str, columns: &[&str], row: &Row, of: impl Fn(&Outcome) -> Vec<String>) -> Table {
    let line = |(system, outcome): (&System, &Option<Outcome>)| {
        [system.name.to_string()].into_iter().chain(cells(outcome, columns.len(), &of)).collect()
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
            run.latency_ns.map_or("–".into(), |ns| format!("{:.2}", ns as f64 / 1e6)),
            format!("{:.2}", outcome.flash_bytes as f64 / 1e6),
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

/// Returns a table of the cache of Flashcache.
fn hits(replayed: &[(&str, Replayed)]) -> Table {
    let columns = ["system", "blocks read", "of them found", "blocks written", "of them to the cache"];
    let line = |(name, found): &(&str, Replayed)| {
        let counts = [found.read, found.found, found.written, found.cached];
        [name.to_string()].into_iter().chain(counts.map(|count| count.to_string())).collect()
    };
    Table::new("Blocks of 4 KiB in the replay, pre-allocation included", &columns, replayed.iter().map(line))
}

/// Returns a chart of the bars of the paper's figure without those of latency, divided by those of HiSMRfs.
fn chart(row: &Row) -> BarChart {
    let axis = Axis::linear("over HiSMRfs", Unit::Ratio);
    let groups = ["pre-allocation time", "operations/s", "MB/s"].map(String::from).to_vec();
    let title = "HiSMRfs and ext4 with a flash cache";
    let mut chart = BarChart::new("jin-fig9", title, axis, groups, BarArrangement::Grouped);
    for (number, system) in SYSTEMS.iter().enumerate().take(FASTER) {
        let over = |value: fn(&Outcome) -> f64| claims::over(row, number, HISMRFS, value);
        let ratios = [over(claims::pre_allocation), over(claims::rate), over(claims::bytes)];
        let known: Option<Vec<f64>> = ratios.into_iter().collect();
        if let Some(values) = known {
            chart = chart.with(system.name, number, values);
        }
    }
    chart
}
