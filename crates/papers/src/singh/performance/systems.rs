//! The systems that are compared, and the run of a benchmark on each.

use std::sync::Arc;

use imbrex::drives::emulated;
use imbrex::error::Failure;
use imbrex_fs::core::{MakeOptions, make};
use imbrex_fs::device::emulated::Emulated;
use imbrex_fs::load::bench::{self, BenchOptions, Benchmark, Phase, Sizes};
use imbrex_fs::load::{InDirectory, OnCore, run_now};
use imbrex_fs::{Device, Executor, Fs, MountOptions};
use indicatif::ProgressBar;
use uuid::Uuid;

use super::Measured;
use crate::Replication;
use crate::kernel_fs::KernelFs;

/// Seed of all random choices of a load.
const SEED: u64 = 1;
/// Size of the page cache in bytes. The paper's machines have 8 GB of memory, and no load has more data, so the page
/// cache holds all data.
const PAGE_CACHE_BYTES: u64 = 8 << 30;
/// Name of the directory in which a load works.
const FOLDER: &str = "bench";

/// File system on a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum System {
    /// Caveat SMRfs with best fit.
    Caveat,
    /// Strict-Append SMRfs.
    StrictAppend,
    /// ext4 of the kernel.
    Ext4,
    /// Caveat SMRfs on a disk without a write cache, to show the effect of the cache.
    CaveatUncached,
    /// Strict-Append SMRfs on a drive without a write cache.
    StrictAppendUncached,
    /// ext4 on a drive without a write cache.
    Ext4Uncached,
}

/// All systems: those that are compared, then the variants.
pub(super) const ALL: [System; 6] = [
    System::Caveat,
    System::StrictAppend,
    System::Ext4,
    System::CaveatUncached,
    System::StrictAppendUncached,
    System::Ext4Uncached,
];
/// Number of systems that are compared.
pub(super) const COMPARED: usize = 3;

impl System {
    pub(super) fn name(self) -> &'static str {
        match self {
            System::Caveat => "caveat",
            System::StrictAppend => "strict-append",
            System::Ext4 => "ext4",
            System::CaveatUncached => "caveat, no write cache",
            System::StrictAppendUncached => "strict-append, no write cache",
            System::Ext4Uncached => "ext4, no write cache",
        }
    }

    /// Measures the phases of a benchmark on a new file system.
    pub(super) fn run(
        self,
        benchmark: &'static Benchmark,
        sizes: Sizes,
        bar: &ProgressBar,
        replication: &Replication,
    ) -> Result<Vec<Measured>, Failure> {
        let own = bar.clone();
        let watch: bench::Watch = Arc::new(move |_| {
            own.inc(1);
            true
        });
        let asked = BenchOptions { sizes, seed: replication.seed(SEED), watch };
        match self {
            System::Caveat => on_core("caveat-2t", benchmark, asked),
            System::StrictAppend => on_core("strict-append-2t", benchmark, asked),
            System::Ext4 => on_ext4("caveat-2t+conventional", benchmark, &asked),
            System::CaveatUncached => on_core("caveat-2t:host.write_cache_bytes=0", benchmark, asked),
            System::StrictAppendUncached => on_core("strict-append-2t:host.write_cache_bytes=0", benchmark, asked),
            System::Ext4Uncached => on_ext4("caveat-2t+conventional:host.write_cache_bytes=0", benchmark, &asked),
        }
    }
}

fn measured(phase: &Phase, disk_ns: u64) -> Measured {
    Measured { name: phase.name, done: phase.done, bytes: phase.bytes(), disk_ns }
}

fn on_core(drive: &str, benchmark: &'static Benchmark, asked: BenchOptions) -> Result<Vec<Measured>, Failure> {
    let executor = Executor::in_virtual_time();
    let backend = Emulated::new(emulated(drive)?).map_err(Failure::failed)?;
    let device = Device::new(&executor, drive, Box::new(backend));
    let own = executor.clone();
    let work = async move {
        let made = MakeOptions { uuid: Some(Uuid::from_u128(1)), ..MakeOptions::default() };
        make(&device, None, &made, 0).await.map_err(Failure::failed)?;
        let (fs, _) = Fs::mount(&own, &[device], &MountOptions::default()).await.map_err(Failure::failed)?;
        let files = OnCore::new(&fs, FOLDER).await.map_err(Failure::failed)?.with_page_cache(PAGE_CACHE_BYTES);
        bench::run(benchmark, &files, &asked, |_| {}).await.map_err(Failure::failed)
    };
    let phases = executor.run(work).map_err(Failure::failed)?;
    executor.shut_down();
    Ok(phases?.iter().map(|phase| measured(phase, phase.elapsed_ns)).collect())
}

fn on_ext4(drive: &str, benchmark: &'static Benchmark, asked: &BenchOptions) -> Result<Vec<Measured>, Failure> {
    let kernel = KernelFs::ext4(drive)?;
    let files = InDirectory::new(kernel.directory(), FOLDER).map_err(Failure::failed)?;
    let mut found = Vec::new();
    let mut before_ns = kernel.drive_ns();
    let ended = |phase: &Phase| {
        let now_ns = kernel.drive_ns();
        found.push(measured(phase, now_ns - before_ns));
        before_ns = now_ns;
    };
    run_now(bench::run(benchmark, &files, asked, ended)).map_err(Failure::failed)?;
    Ok(found)
}
