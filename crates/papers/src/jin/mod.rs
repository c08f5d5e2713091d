//! Jin 2014, "HiSMRfs: a High Performance File System for Shingled Storage Array": the metadata I/Os of a file read
//! (§II.B), the parts of HiSMRfs (§II.D), HiSMRfs against SMRfs (§III.A), and HiSMRfs against ext4 with a flash cache
//! (§III.B). Runs on the file systems of `imbrex-fs`, and in the lab on ext4.

mod choices;
mod collection;
mod fig02;
mod fig06;
mod fig09;
mod flash;
mod hot_zone;
mod metadata;
mod rebuild;

use std::sync::Arc;

use imbrex::Failure;
use imbrex::drives::emulated;
use imbrex_fs::core::{MakeOptions, Parts, make_on};
use imbrex_fs::device::emulated::Emulated;
use imbrex_fs::load::bench::{Kind, Phase, Watch};
use imbrex_fs::{Device, Executor, Fs, MountOptions};
use indicatif::ProgressBar;
use uuid::Uuid;

use super::{Experiment, InGuest, Replication};

/// The experiments, in the paper's order.
pub(crate) const ALL: &[&Experiment] = &[
    &fig02::EXPERIMENT,
    &hot_zone::EXPERIMENT,
    &metadata::EXPERIMENT,
    &collection::EXPERIMENT,
    &rebuild::EXPERIMENT,
    &fig06::EXPERIMENT,
    &fig06::threads::EXPERIMENT,
    &fig09::EXPERIMENT,
    &flash::EXPERIMENT,
];

/// Parts of experiments that run in a guest of the lab, by the name of the experiment.
pub(crate) const IN_GUEST: &[(&str, InGuest)] = &[
    (fig02::EXPERIMENT.name, fig02::in_guest),
    (fig06::EXPERIMENT.name, fig06::in_guest),
    (fig09::EXPERIMENT.name, fig09::ext4::in_guest),
];

/// Commit that has our choices, made before the first run.
const CHOSEN: &str = "7f5c567";

/// Like [`CHOSEN`], for the number of bands and the numbers of threads of SMRfs, and for the experiments of §II.D.
const CHOSEN_PARTS: &str = "e6565c4f";

/// Like [`CHOSEN`], for the checkpoints and the cut flash of §III.B.
const CHOSEN_FLASH: &str = "573f8848";

/// Like [`CHOSEN`], for fig. 9.
const CHOSEN_FIG09: &str = "203d485";

/// Like [`CHOSEN`], for the policy of Flashcache and the flash that writes slowly at random.
const CHOSEN_CACHE: &str = "4e16deda";

/// Opens a new emulated drive in memory, described by `words`, as a device of a file system.
fn device(executor: &Executor, words: &str) -> Result<Device, Failure> {
    let backend = Emulated::new(emulated(words)?).map_err(Failure::failed)?;
    Ok(Device::new(executor, words, Box::new(backend)))
}

/// Returns the options of a new file system of store `name`. All have the same UUID, so that runs are equal.
fn made(name: &str) -> MakeOptions {
    MakeOptions { uuid: Some(Uuid::from_u128(1)), store: Some(name.into()), ..MakeOptions::default() }
}

/// Makes a file system on new devices and mounts it. Its metadata are on the flash, or without one on the drives.
/// Returns it with its devices, the flash last.
async fn mount_new(
    executor: &Executor,
    drives: Vec<Device>,
    flash: Option<Device>,
    made: &MakeOptions,
    options: &MountOptions,
) -> Result<(Fs, Vec<Device>), Failure> {
    let parts = Parts { drives: &drives, metadata: flash.as_slice(), spares: &[] };
    make_on(parts, made, 0).await.map_err(Failure::failed)?;
    let devices: Vec<Device> = drives.into_iter().chain(flash).collect();
    let (fs, _) = Fs::mount(executor, &devices, options).await.map_err(Failure::failed)?;
    Ok((fs, devices))
}

/// Measures each of `cases`, one after the other, and shows the name of the case meanwhile.
fn each<C, T>(
    replication: &Replication,
    cases: impl IntoIterator<Item = C>,
    name: impl Fn(&C) -> String,
    measure: impl Fn(C, &ProgressBar) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut found = Vec::new();
    for case in cases {
        let bar = replication.progress.steps(&name(&case));
        let measured = measure(case, &bar);
        bar.finish_and_clear();
        if replication.progress.should_stop() {
            return Err(Failure::interrupted());
        }
        found.push(measured?);
    }
    Ok(found)
}

/// Returns an observer of a load that counts operations on `bar`.
fn watch(bar: &ProgressBar) -> Watch {
    let bar = bar.clone();
    Arc::new(move |_| {
        bar.inc(1);
        true
    })
}

/// Returns the mean over groups, each given as (number of values, mean).
fn mean(groups: impl Iterator<Item = (u64, u64)>) -> u64 {
    let (sum, count) = groups.fold((0u128, 0u128), |(sum, count), (of_group, mean)| {
        (sum + u128::from(mean) * u128::from(of_group), count + u128::from(of_group))
    });
    u64::try_from(sum / count.max(1)).expect("a mean is no larger than the largest value")
}

/// Returns the mean latency of the application's operations in ns, without the sync with which we end a phase.
fn latency_ns(phase: &Phase) -> u64 {
    let asked = phase.measured.iter().filter(|(kind, _)| **kind != Kind::SyncAll);
    mean(asked.map(|(_, figures)| (figures.latency.count(), figures.latency.mean_ns())))
}

fn percent(share: f64, digits: usize) -> String {
    format!("{:.digits$} %", share * 100.0)
}

fn shown(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "not measured".into(), |ratio| format!("{ratio:.2}"))
}
