//! The parts of the systems: a store of `imbrex-fs` with its metadata in one of three places, or ext4 that holds only
//! metadata.
//!
//! Invariants:
//! 1. All parts of a system do the same operations of a load: as many, with as many bytes (asserted where parts are
//!    added).

use std::path::Path;
use std::sync::Arc;

use imbrex::Failure;
use imbrex_fs::core::MakeOptions;
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::{BLOCK_BYTES, Geometry, Kind as DeviceKind};
use imbrex_fs::load::bench::{self, BenchOptions, Benchmark, Phase, Sizes};
use imbrex_fs::load::{OnCore, run_now};
use imbrex_fs::{Device, Executor, MountOptions};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use super::super::choices::{FLASH, OPEN_BANDS, PAGE_CACHE_BYTES, PARTITION_BYTES, SEED};
use super::super::{device, latency_ns, made, mount_new, watch};
use super::symlinks::Symlinks;
use crate::Replication;
use crate::linux::{Linux, MAKE_EXT4, MOUNT_EXT4, Script};

/// Name of the directory in which a load works.
const FOLDER: &str = "bench";
/// Mount point in the guest.
const MOUNTED: &str = "/mnt/t";
/// Size of the device for metadata that cost no time, in bytes.
const FREE_METADATA_BYTES: u64 = 4 << 30;

/// Part of a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    LogOnFlash,
    LogOnDisk,
    /// HiSMRfs that appends all files to one band.
    LogInOneBand,
    SmrfsOnFlash,
    SmrfsOnDisk,
    /// SMRfs whose metadata cost no time.
    SmrfsAlone,
    /// SMRfs that writes each file to a band of its own while others are written.
    BandsOnFlash,
    Ext4OnDisk,
    Ext4OnFlash,
}

/// Store of file data, and how files reach it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Store {
    /// HiSMRfs: store `log`.
    Log,
    /// Like `Log`, but all files are appended to one band.
    LogInOneBand,
    /// SMRfs: store `strict-append`. A file is read to memory as a whole when it is opened (Singh 2014 §2.2.2, Jin 2014
    /// §I.C). All files are appended to one band.
    Smrfs,
    /// Like `Smrfs`, but files that are written at the same time go to different bands.
    SmrfsInBands,
}

impl Store {
    fn is_smrfs(self) -> bool {
        matches!(self, Store::Smrfs | Store::SmrfsInBands)
    }

    /// Returns the options with which a file system of this store is made.
    fn made(self) -> MakeOptions {
        let options = match self {
            Store::Smrfs => vec![("open_bands".to_string(), OPEN_BANDS.to_string())],
            Store::LogInOneBand => vec![("open_groups".to_string(), OPEN_BANDS.to_string())],
            Store::Log | Store::SmrfsInBands => Vec::new(),
        };
        MakeOptions { options, ..made(if self.is_smrfs() { "strict-append" } else { "log" }) }
    }
}

/// Place of a store's metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Metadata {
    /// The unshingled partition of the disk.
    Disk,
    Flash,
    /// A device in memory, which takes no time.
    Nowhere,
}

/// Measurements of one phase of a load on one part of a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Number of operations on the file system that the phase of the load performed, its final sync included.
    pub operations: u64,
    /// Number of bytes read and written by the load in the phase, together.
    pub bytes: u64,
    /// Duration of the phase, in nanoseconds of simulated device time.
    pub elapsed_ns: u64,
    /// Mean latency of an operation in device time, in nanoseconds, without the final sync.
    pub latency_ns: u64,
}

impl Measured {
    /// Returns the number of operations a second.
    pub(super) fn rate(&self) -> f64 {
        self.operations as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    pub(super) fn mb_per_s(&self) -> f64 {
        self.bytes as f64 * 1e3 / self.elapsed_ns.max(1) as f64
    }

    pub(super) fn seconds(&self) -> f64 {
        self.elapsed_ns as f64 / 1e9
    }

    fn of(phase: &Phase) -> Measured {
        Measured {
            operations: phase.operations(),
            bytes: phase.bytes(),
            elapsed_ns: phase.elapsed_ns,
            latency_ns: latency_ns(phase),
        }
    }
}

/// Adds the times of parts that run one after the other, and their latencies, or returns `None` if one was not run.
pub(super) fn added<'a>(parts: impl Iterator<Item = Option<&'a Vec<Measured>>>) -> Option<Vec<Measured>> {
    let all: Option<Vec<&Vec<Measured>>> = parts.collect();
    let mut all = all?.into_iter();
    let mut sum = all.next().expect("a system has a part").clone();
    for other in all {
        for (phase, other) in sum.iter_mut().zip(other) {
            let (one, two) = ((phase.operations, phase.bytes), (other.operations, other.bytes));
            assert_eq!(one, two, "operations and bytes of two parts of a system (invariant 1)");
            phase.elapsed_ns += other.elapsed_ns;
            phase.latency_ns += other.latency_ns;
        }
    }
    Some(sum)
}

impl Part {
    /// Parts of the systems of figs 6 and 7.
    pub(super) const ALL: [Part; 8] = [
        Part::LogOnFlash,
        Part::LogOnDisk,
        Part::SmrfsOnFlash,
        Part::SmrfsOnDisk,
        Part::SmrfsAlone,
        Part::BandsOnFlash,
        Part::Ext4OnDisk,
        Part::Ext4OnFlash,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Part::LogOnFlash => "log, metadata on flash",
            Part::LogOnDisk => "log, metadata on the disk",
            Part::LogInOneBand => "log in one band, metadata on flash",
            Part::SmrfsOnFlash => "SMRfs, metadata on flash",
            Part::SmrfsOnDisk => "SMRfs, metadata on the disk",
            Part::SmrfsAlone => "SMRfs alone",
            Part::BandsOnFlash => "SMRfs with a band for each file, metadata on flash",
            Part::Ext4OnDisk => "ext4 on the disk",
            Part::Ext4OnFlash => "ext4 on flash",
        }
    }

    /// Returns whether the part needs ext4, which runs in the lab.
    pub(super) fn is_linux(self) -> bool {
        matches!(self, Part::Ext4OnDisk | Part::Ext4OnFlash)
    }

    /// Measures the phases of `load` on a new file system. The load has `workers` threads, or its own number if that is
    /// `None`.
    pub(super) fn run(
        self,
        disk: &str,
        load: &str,
        workers: Option<u64>,
        replication: &Replication,
        bar: &ProgressBar,
    ) -> Result<Vec<Measured>, Failure> {
        let seed = replication.seed(SEED);
        let benchmark = bench::named(load).expect("each is a line of the registry of benchmarks");
        let sizes = Sizes { workers: workers.or(benchmark.defaults.workers), ..benchmark.defaults };
        let asked = BenchOptions { sizes, seed, watch: watch(bar) };
        match self {
            Part::LogOnFlash => on_core(Store::Log, disk, Metadata::Flash, benchmark, asked),
            Part::LogOnDisk => on_core(Store::Log, disk, Metadata::Disk, benchmark, asked),
            Part::LogInOneBand => on_core(Store::LogInOneBand, disk, Metadata::Flash, benchmark, asked),
            Part::SmrfsOnFlash => on_core(Store::Smrfs, disk, Metadata::Flash, benchmark, asked),
            Part::SmrfsOnDisk => on_core(Store::Smrfs, disk, Metadata::Disk, benchmark, asked),
            Part::SmrfsAlone => on_core(Store::Smrfs, disk, Metadata::Nowhere, benchmark, asked),
            Part::BandsOnFlash => on_core(Store::SmrfsInBands, disk, Metadata::Flash, benchmark, asked),
            Part::Ext4OnDisk => {
                on_ext4(&conventional(disk), Some(PARTITION_BYTES), benchmark, &asked, replication, bar)
            }
            Part::Ext4OnFlash => on_ext4(FLASH, None, benchmark, &asked, replication, bar),
        }
    }
}

/// Returns the disk `disk` as a conventional one, which can be written anywhere, like its unshingled partition.
fn conventional(disk: &str) -> String {
    match disk.split_once(':') {
        Some((profile, parameters)) => format!("{profile}+conventional:{parameters}"),
        None => format!("{disk}+conventional"),
    }
}

fn on_core(
    store: Store,
    disk: &str,
    metadata: Metadata,
    benchmark: &'static Benchmark,
    asked: BenchOptions,
) -> Result<Vec<Measured>, Failure> {
    let executor = Executor::in_virtual_time();
    let data = device(&executor, disk)?;
    let metadata = match metadata {
        Metadata::Disk => None,
        Metadata::Flash => Some(device(&executor, FLASH)?),
        Metadata::Nowhere => {
            let geometry = Geometry { blocks: FREE_METADATA_BYTES / BLOCK_BYTES as u64, kind: DeviceKind::Plain };
            Some(Device::new(&executor, "nowhere", Box::new(Memory::new(geometry))))
        }
    };
    let made = store.made();
    let own = executor.clone();
    let work = async move {
        let (fs, _) = mount_new(&own, vec![data], metadata, &made, &MountOptions::default()).await?;
        let files = OnCore::new(&fs, FOLDER).await.map_err(Failure::failed)?.with_page_cache(PAGE_CACHE_BYTES);
        let files = if store.is_smrfs() { files.with_staged_files() } else { files };
        bench::run(benchmark, &files, &asked, |_| {}).await.map_err(Failure::failed)
    };
    let phases = executor.run(work).map_err(Failure::failed)?;
    executor.shut_down();
    Ok(phases?.iter().map(Measured::of).collect())
}

/// Measures a load on ext4 in the lab, on the first `bytes` of the drive, or all of it.
fn on_ext4(
    drive: &str,
    bytes: Option<u64>,
    benchmark: &Benchmark,
    asked: &BenchOptions,
    replication: &Replication,
    bar: &ProgressBar,
) -> Result<Vec<Measured>, Failure> {
    let linux = Linux::with(&[("mkfs.ext4", "e2fsprogs")])?;
    let size = bytes.map(|bytes| format!("{}k", bytes >> 10)).unwrap_or_default();
    let workers = asked.sizes.workers.unwrap_or(0);
    let text = format!(
        "{MAKE_EXT4} /dev/vda {size} && mkdir {MOUNTED} && {MOUNT_EXT4} /dev/vda {MOUNTED} && \
         IMBREX reproduce {} --in-guest {},{workers},{}",
        super::EXPERIMENT.name,
        benchmark.name,
        asked.seed
    );
    let script = Script { memory_bytes: PAGE_CACHE_BYTES, ..Script::new(benchmark.name, text, asked.seed) };
    let say = |text: &str| bar.set_message(text.to_string());
    let ran = linux.run(&script, &[drive.into()], replication, &say)?;
    serde_json::from_str(&ran.output).map_err(Failure::failed)
}

/// Measures a load on symbolic links, in the guest, in a mounted file system. The words are the name of the load, its number
/// of threads (0: it has none), and the seed.
pub(in crate::jin) fn in_guest(words: &[&str]) -> Result<String, Failure> {
    let wrong = || Failure::usage("a load, a number of threads and a seed are needed");
    let &[load, workers, seed] = words else { return Err(wrong()) };
    let benchmark = bench::named(load).ok_or_else(wrong)?;
    let workers: u64 = workers.parse().map_err(|_| wrong())?;
    let sizes = Sizes { workers: Some(workers).filter(|workers| *workers > 0), ..benchmark.defaults };
    let asked = BenchOptions { sizes, seed: seed.parse().map_err(|_| wrong())?, watch: Arc::new(|_| true) };
    let files = Symlinks::new(Path::new(MOUNTED), FOLDER).map_err(Failure::failed)?;
    let phases = run_now(bench::run(benchmark, &files, &asked, |_| {})).map_err(Failure::failed)?;
    let measured: Vec<Measured> = phases.iter().map(Measured::of).collect();
    serde_json::to_string(&measured).map_err(Failure::failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(bytes: u64, elapsed_ns: u64, latency_ns: u64) -> Vec<Measured> {
        vec![Measured { operations: 10, bytes, elapsed_ns, latency_ns }]
    }

    #[test]
    fn times_of_parts_are_added_and_a_missing_part_gives_none() {
        let (data, metadata) = (phase(5, 100, 7), phase(5, 20, 2));
        assert_eq!(added([Some(&data), Some(&metadata)].into_iter()), Some(phase(5, 120, 9)));
        assert_eq!(added([Some(&data)].into_iter()), Some(data.clone()));
        assert_eq!(added([Some(&data), None].into_iter()), None);
    }

    #[test]
    #[should_panic(expected = "invariant 1")]
    fn parts_with_different_operations_are_not_added() {
        let (data, metadata) = (phase(5, 100, 0), phase(6, 20, 0));
        added([Some(&data), Some(&metadata)].into_iter());
    }

    #[test]
    fn the_conventional_disk_keeps_its_parameters() {
        assert_eq!(conventional("a"), "a+conventional");
        assert_eq!(conventional("a:host.queue=1"), "a+conventional:host.queue=1");
    }
}
