//! HiSMRfs: store `log` on an array of five disks with its metadata on flash, run on the core of `imbrex-fs` in
//! virtual time.

use std::cell::RefCell;
use std::rc::Rc;

use imbrex::Failure;
use imbrex_fs::core::{Bounds, MakeOptions};
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::load::OnCore;
use imbrex_fs::load::bench::{self, BenchOptions, Phase};
use imbrex_fs::{Device, Executor, Fs, MountOptions};
use indicatif::ProgressBar;

use super::super::choices::{
    DIRTY_PERCENT, FASTER_FLASH, RAID_DISK, RAID_DISKS, RAID_PARITY, SERVER_MEMORY_BYTES, WRITTEN_PERCENT,
};
use super::super::{device, latency_ns, made, mount_new, watch};
use super::{Did, LOAD, Measured, Outcome, sizes};

const BYTES: u64 = BLOCK_BYTES as u64;
/// Number of checksums in a block of the table of checksums.
const CHECKSUMS: u64 = 1020;

/// Space on the flash that the metadata of the file system use, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::jin) struct OnFlash {
    /// Upper bound of the size of the two checkpoints together, if both were written now, in bytes.
    pub checkpoints: u64,
    /// Size of the part of the metadata log that is in use, in bytes, blocks for records that wait in memory included.
    /// A mount replays this part.
    pub log: u64,
    /// Size of the checksums of all stored data, live and dead, in bytes, rounded up to whole blocks.
    pub checksums: u64,
}

impl OnFlash {
    /// Returns the sizes of the metadata of `fs` now.
    pub(in crate::jin) fn of(fs: &Fs) -> OnFlash {
        let status = fs.status();
        let checksums = (status.usage.live + status.usage.dead).div_ceil(CHECKSUMS);
        OnFlash { checkpoints: 2 * status.checkpoint.0, log: status.log.0 * BYTES, checksums: checksums * BYTES }
    }

    pub(in crate::jin) fn all(self) -> u64 {
        self.checkpoints + self.log + self.checksums
    }
}

/// Devices of HiSMRfs, and its interval of checkpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::jin) struct Setup {
    /// Specification of each disk.
    pub disk: &'static str,
    /// Specification of the flash for the metadata.
    pub flash: &'static str,
    /// Interval of checkpoints in nanoseconds; `None` if only the fill of the log decides.
    pub checkpoint_ns: Option<u64>,
}

/// Setup with whole disks and whole flash.
pub(in crate::jin) const WHOLE: Setup = Setup { disk: RAID_DISK, flash: FASTER_FLASH, checkpoint_ns: None };

/// Measures the load on HiSMRfs and the use of its flash.
pub(in crate::jin) fn run(setup: Setup, seed: u64, bar: &ProgressBar) -> Result<(Outcome, OnFlash), Failure> {
    let executor = Executor::in_virtual_time();
    let disks = (0..RAID_DISKS).map(|_| device(&executor, setup.disk)).collect::<Result<Vec<_>, _>>()?;
    let flash = device(&executor, setup.flash)?;
    let (own, watch) = (executor.clone(), watch(bar));
    let work = async move {
        let made = MakeOptions { parity: RAID_PARITY, ..made("log") };
        let (bounds, page_cache) = memory();
        let bounds = Bounds { checkpoint_ns: setup.checkpoint_ns, ..bounds };
        let options = MountOptions { bounds: Some(bounds), ..MountOptions::default() };
        let (fs, devices) = mount_new(&own, disks, Some(flash), &made, &options).await?;
        let files = OnCore::new(&fs, "bench").await.map_err(Failure::failed)?.with_page_cache(page_cache);
        let seen = Rc::new(RefCell::new(vec![did(&devices)]));
        let ended = |_: &Phase| seen.borrow_mut().push(did(&devices));
        let asked = BenchOptions { sizes: sizes(), seed, watch };
        let benchmark = bench::named(LOAD).expect("it is a line of the registry of benchmarks");
        let phases = bench::run(benchmark, &files, &asked, ended).await.map_err(Failure::failed)?;
        let on_flash = OnFlash::of(&fs);
        Ok::<_, Failure>((outcome(&phases, &seen.borrow(), on_flash.all()), on_flash))
    };
    let outcome = executor.run(work).map_err(Failure::failed)?;
    executor.shut_down();
    outcome
}

/// Returns the shares of the memory: the bounds of the file system's own caches, and the bytes of the page cache in
/// front.
fn memory() -> (Bounds, u64) {
    let share = |percent: u64| SERVER_MEMORY_BYTES * percent / 100;
    let (dirty, written) = (share(DIRTY_PERCENT), share(WRITTEN_PERCENT));
    let bounds = Bounds { cache_bytes: dirty, written_blocks: (written / BYTES) as usize, ..Bounds::default() };
    (bounds, SERVER_MEMORY_BYTES - dirty - written)
}

/// Returns the work of each device so far.
fn did(devices: &[Device]) -> Vec<Did> {
    let of = |device: &Device| {
        let spent = device.spent().all();
        Did {
            busy_ns: spent.busy_ns,
            read_bytes: spent.blocks_read * BYTES,
            written_bytes: spent.blocks_written * BYTES,
        }
    };
    devices.iter().map(of).collect()
}

fn outcome(phases: &[Phase], seen: &[Vec<Did>], flash_bytes: u64) -> Outcome {
    let of = |number: usize| {
        let phase = &phases[number];
        let since = seen[number + 1].iter().zip(&seen[number]).map(|(after, before)| after.since(*before));
        Measured {
            operations: phase.operations(),
            bytes: phase.bytes(),
            elapsed_ns: phase.elapsed_ns,
            latency_ns: Some(latency_ns(phase)),
            drives: since.collect(),
        }
    };
    Outcome { phases: [of(0), of(1)], flash_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_memory_is_shared_out() {
        let (bounds, page_cache) = memory();
        let written = bounds.written_blocks as u64 * BYTES;
        let rest = SERVER_MEMORY_BYTES - bounds.cache_bytes - written - page_cache;
        assert!(rest < BYTES, "{rest} bytes are unassigned");
        assert!(page_cache > bounds.cache_bytes && bounds.cache_bytes > written);
    }
}
