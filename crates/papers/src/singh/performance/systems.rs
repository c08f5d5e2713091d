//! The systems that are compared, and the run of a benchmark on each.

use std::sync::Arc;

use imbrex::drives::emulated;
use imbrex::error::Failure;
use imbrex_fs::core::{MakeOptions, make};
use imbrex_fs::device::emulated::Emulated;
use imbrex_fs::load::OnCore;
use imbrex_fs::load::bench::{self, BenchOptions, Benchmark, Phase, Sizes};
use imbrex_fs::{Device, Executor, Fs, MountOptions};
use indicatif::ProgressBar;
use uuid::Uuid;

use super::Measured;
use crate::Replication;
use crate::linux::{BenchDocument, BenchPhase, Linux, MAKE_EXT4, MOUNT_EXT4, Script};

/// Seed of all random choices of a load.
const SEED: u64 = 1;
/// Size of the page cache in bytes. The paper's machines have 8 GB of memory, and no load has more data, so the page
/// cache holds all data.
const PAGE_CACHE_BYTES: u64 = 8 << 30;
/// Name of the directory in which a load works.
const FOLDER: &str = "bench";

/// Profile of the drive of the kernel's file systems: the mechanics of the Caveat disk, without overlap.
const CONVENTIONAL: &str = "caveat-2t+conventional";
const UNCACHED: &str = "host.write_cache_bytes=0";

/// A file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A file system of imbrex on a drive of this profile.
    Core(&'static str),
    /// A file system of Linux.
    Linux(Maker),
}

/// A file system of Linux: the commands that make and mount it, and the program that it needs with its Debian package.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Maker {
    make: &'static str,
    mount: &'static str,
    needs: (&'static str, &'static str),
}

const EXT4: Maker = Maker { make: MAKE_EXT4, mount: MOUNT_EXT4, needs: ("mkfs.ext4", "e2fsprogs") };
/// ext4 without a thread that newer kernels have: after the mount it reads the bitmaps of blocks ahead.
const EXT4_WITHOUT_READING_AHEAD: Maker =
    Maker { mount: "mount -t ext4 -o noinit_itable,no_prefetch_block_bitmaps", ..EXT4 };
const NILFS2: Maker =
    Maker { make: "mkfs.nilfs2 -q -f", mount: "mount -t nilfs2", needs: ("mkfs.nilfs2", "nilfs-tools") };

/// A file system on a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct System {
    pub(super) name: &'static str,
    kind: Kind,
    /// Whether the drive has the write cache of the paper's drive. A system without one shows the effect of the cache.
    has_cache: bool,
}

/// All systems: those that are compared, then the same without a write cache, then a variant of ext4.
pub(super) const ALL: [System; 9] = [
    System { name: "caveat", kind: Kind::Core("caveat-2t"), has_cache: true },
    System { name: "strict-append", kind: Kind::Core("strict-append-2t"), has_cache: true },
    System { name: "ext4", kind: Kind::Linux(EXT4), has_cache: true },
    System { name: "NILFS2", kind: Kind::Linux(NILFS2), has_cache: true },
    System { name: "caveat, no write cache", kind: Kind::Core("caveat-2t"), has_cache: false },
    System { name: "strict-append, no write cache", kind: Kind::Core("strict-append-2t"), has_cache: false },
    System { name: "ext4, no write cache", kind: Kind::Linux(EXT4), has_cache: false },
    System { name: "NILFS2, no write cache", kind: Kind::Linux(NILFS2), has_cache: false },
    System { name: "ext4, bitmaps not read ahead", kind: Kind::Linux(EXT4_WITHOUT_READING_AHEAD), has_cache: true },
];
/// Number of systems that are compared.
pub(super) const COMPARED: usize = 4;

impl System {
    /// Returns whether the system is one of Linux, which runs in the lab.
    pub(super) fn is_linux(self) -> bool {
        matches!(self.kind, Kind::Linux(_))
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
        let drive = |profile: &str| if self.has_cache { profile.into() } else { format!("{profile}:{UNCACHED}") };
        match self.kind {
            Kind::Core(profile) => on_core(&drive(profile), benchmark, asked),
            Kind::Linux(maker) => on_linux(maker, &drive(CONVENTIONAL), benchmark, &asked, replication, bar),
        }
    }
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
    let measured = |phase: &Phase| Measured {
        name: phase.name.into(),
        done: phase.done,
        bytes: phase.bytes(),
        disk_ns: phase.elapsed_ns,
    };
    Ok(phases?.iter().map(measured).collect())
}

fn on_linux(
    maker: Maker,
    drive: &str,
    benchmark: &Benchmark,
    asked: &BenchOptions,
    replication: &Replication,
    bar: &ProgressBar,
) -> Result<Vec<Measured>, Failure> {
    let linux = Linux::with(&[maker.needs])?;
    let mut options = format!("--seed {}", asked.seed);
    if let Some(bytes) = asked.sizes.file_bytes.filter(|_| asked.sizes != benchmark.defaults) {
        options += &format!(" --file-size {bytes}");
    }
    let text = format!(
        "{} /dev/vda >&2 && mkdir /mnt/t && {} /dev/vda /mnt/t >&2 && sync && \
         IMBREX fs bench {} /mnt/t --json {options}",
        maker.make, maker.mount, benchmark.name
    );
    let script = Script { memory_bytes: PAGE_CACHE_BYTES, ..Script::new(benchmark.name, text, asked.seed) };
    let say = |text: &str| bar.set_message(text.to_string());
    let ran = linux.run(&script, &[drive.into()], replication, &say)?;
    let phases = BenchDocument::parse(&ran.output)?.phases;
    let measured = |phase: BenchPhase| Measured {
        name: phase.name,
        done: phase.done,
        bytes: phase.bytes,
        disk_ns: phase.elapsed_ns,
    };
    Ok(phases.into_iter().map(measured).collect())
}
