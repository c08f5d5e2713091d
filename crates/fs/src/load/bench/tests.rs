//! Goal: a benchmark does the same operations everywhere, and as many as its description says. Method: runs on the core
//! and in a directory are compared by kind of operation; counts in closed form.

#![allow(clippy::unwrap_used)] // a panic shows where a test failed

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::core::{MakeOptions, MountOptions, make};
use crate::device::memory::Memory;
use crate::device::{Device, Geometry, Kind as DeviceKind};
use crate::load::{InDirectory, OnCore, run_now};
use crate::{Executor, Fs};

/// Sizes small enough for a test.
fn small(benchmark: &Benchmark) -> Sizes {
    let own = benchmark.defaults;
    Sizes {
        files: own.files.map(|_| 230),
        file_bytes: own.file_bytes.map(|_| if own.files.is_none() { 50 * 8192 } else { 9_000 }),
        operations: own.operations.map(|_| 101),
        workers: own.workers.map(|_| 3),
    }
}

fn asked(sizes: Sizes, seed: u64) -> BenchOptions {
    BenchOptions { sizes, seed, watch: Arc::new(|_| true) }
}

fn on_core(
    benchmark: &'static Benchmark,
    asked: BenchOptions,
    page_cache: Option<u64>,
) -> Result<Vec<Phase>, LoadError> {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let work = async move {
        let geometry = Geometry { blocks: 64 << 10, kind: DeviceKind::Caveat { isolation: 4, no_overlap: 2 } };
        let data = Device::new(&own, "disk", Box::new(Memory::new(geometry)));
        let metadata = Geometry { blocks: 16 << 10, kind: DeviceKind::Plain };
        let metadata = Device::new(&own, "metadata", Box::new(Memory::new(metadata)));
        make(&data, Some(&metadata), &MakeOptions::default(), 0).await.unwrap();
        let (fs, _) = Fs::mount(&own, &[data, metadata], &MountOptions::default()).await.unwrap();
        let files = OnCore::new(&fs, "bench").await.unwrap();
        let files = match page_cache {
            Some(bytes) => files.with_page_cache(bytes),
            None => files,
        };
        let phases = run(benchmark, &files, &asked, |_| {}).await;
        assert_eq!(fs.self_check(), Vec::<String>::new());
        phases
    };
    let phases = executor.run(work).unwrap();
    executor.shut_down();
    phases
}

fn in_directory(benchmark: &'static Benchmark, asked: &BenchOptions) -> (Vec<Phase>, u64) {
    let place = tempfile::tempdir().unwrap();
    let files = InDirectory::new(place.path(), "bench").unwrap();
    let phases = run_now(run(benchmark, &files, asked, |_| {})).unwrap();
    (phases, files_in(&place.path().join("bench")))
}

fn files_in(directory: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files_in(&path) } else { 1 }).sum()
}

/// Name of a phase, its number of items done, and for each kind of operation the number of operations and bytes.
type Counts = (&'static str, u64, Vec<(Kind, u64, u64)>);

fn counts(phases: &[Phase]) -> Vec<Counts> {
    let of = |phase: &Phase| {
        let kinds = phase.measured.iter().map(|(kind, figures)| (*kind, figures.latency.count(), figures.bytes));
        (phase.name, phase.done, kinds.collect())
    };
    phases.iter().map(of).collect()
}

#[test]
fn the_same_is_done_on_the_core_and_in_a_directory() {
    for benchmark in ALL {
        let asked = asked(small(benchmark), 7);
        let on_core = on_core(benchmark, asked.clone(), None).unwrap();
        let (in_directory, _) = in_directory(benchmark, &asked);
        assert_eq!(counts(&on_core), counts(&in_directory), "{}", benchmark.name);
        assert!(on_core.iter().all(|phase| phase.operations() > 1), "{}: {on_core:?}", benchmark.name);
    }
}

#[test]
fn a_page_cache_of_any_size_changes_no_count() {
    for benchmark in [&large_file::LFS, &postmark::POSTMARK, &filebench::VARMAIL] {
        let without = on_core(benchmark, asked(small(benchmark), 3), None).unwrap();
        for bytes in [4096, 40_960, 1 << 30] {
            let with = on_core(benchmark, asked(small(benchmark), 3), Some(bytes)).unwrap();
            assert_eq!(counts(&without), counts(&with), "{}", benchmark.name);
        }
    }
}

fn of(phases: &[Phase], name: &str, kind: Kind) -> (u64, u64) {
    let phase = phases.iter().find(|phase| phase.name == name).unwrap();
    phase.measured.get(&kind).map_or((0, 0), |figures| (figures.latency.count(), figures.bytes))
}

#[test]
fn counts_are_those_of_the_descriptions() {
    let run = |benchmark| in_directory(benchmark, &asked(small(benchmark), 5));
    let (lfs, left) = run(&large_file::LFS);
    for (phase, kind) in
        [("write in order", Kind::Write), ("write at random", Kind::Write), ("read at random", Kind::Read)]
    {
        assert_eq!(of(&lfs, phase, kind), (50, 50 * 8192), "{phase}");
    }
    assert_eq!(left, 1);
    let (small_files, left) = run(&small_files::SMALL_FILES);
    assert_eq!(of(&small_files, "make", Kind::MakeDirectory).0, 110);
    assert_eq!(of(&small_files, "make", Kind::Write), (230, 230 * 9_000));
    assert_eq!(of(&small_files, "read", Kind::Read).1, 230 * 9_000);
    assert_eq!(left, 0);
    let (postmark, left) = run(&postmark::POSTMARK);
    let made = of(&postmark, "make", Kind::Create).0 + of(&postmark, "transactions", Kind::Create).0;
    let removed = of(&postmark, "transactions", Kind::Remove).0 + of(&postmark, "remove", Kind::Remove).0;
    assert_eq!((of(&postmark, "make", Kind::Create).0, made, left), (230, removed, 0));
    let (varmail, _) = run(&filebench::VARMAIL);
    assert_eq!(of(&varmail, "run", Kind::Sync).0, 2 * 101);
    assert_eq!((of(&varmail, "run", Kind::Remove).0, of(&varmail, "run", Kind::Create).0), (101, 101));
    assert_eq!(of(&varmail, "run", Kind::Open).0, 2 * 101);
    let (create_files, left) = run(&filebench::CREATE_FILES);
    assert_eq!((of(&create_files, "run", Kind::Create).0, left), (230, 230));
    let (compile, left) = run(&compile::COMPILE);
    assert_eq!(of(&compile, "compile", Kind::Stat).0, 41 * 101);
    assert_eq!(left, 230 + 101 + 1);
}

#[test]
fn what_is_read_comes_from_the_disk_until_it_is_in_the_page_cache() {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let work = async move {
        let geometry = Geometry { blocks: 4096, kind: DeviceKind::Caveat { isolation: 4, no_overlap: 2 } };
        let data = Device::new(&own, "disk", Box::new(Memory::new(geometry)));
        let metadata = Geometry { blocks: 4096, kind: DeviceKind::Plain };
        let metadata = Device::new(&own, "metadata", Box::new(Memory::new(metadata)));
        make(&data, Some(&metadata), &MakeOptions::default(), 0).await.unwrap();
        let (fs, _) = Fs::mount(&own, &[data.clone(), metadata], &MountOptions::default()).await.unwrap();
        let files = OnCore::new(&fs, "bench").await.unwrap().with_page_cache(1 << 30);
        let file = files.create("f").await.unwrap();
        files.write(&file, 0, &[1; 100 * 4096]).await.unwrap();
        files.sync(&file).await.unwrap();
        let read = || data.traffic().blocks_read;
        let before = read();
        files.read(&file, 0, 100 * 4096).await.unwrap();
        assert_eq!(read(), before, "what was written is in the cache");
        files.forget(&file).unwrap();
        files.read(&file, 50 * 4096, 4096).await.unwrap();
        assert_eq!(read(), before + 1, "reading that goes nowhere reads what it is asked for");
        files.read(&file, 51 * 4096, 4096).await.unwrap();
        assert_eq!(read(), before + 1 + 32, "reading that goes on reads 128 KiB ahead");
        files.read(&file, 52 * 4096, 31 * 4096).await.unwrap();
        assert_eq!(read(), before + 1 + 32, "which is then there");
        files.forget(&file).unwrap();
        files.close(file).await.unwrap();
        let before = read();
        let staged = files.clone().with_staged_files().open("f").await.unwrap();
        assert_eq!(read(), before + 100, "a file that is staged is read whole at once");
        files.close(staged).await.unwrap();
    };
    executor.run(work).unwrap();
    executor.shut_down();
}

#[test]
fn whoever_watches_can_end_it() {
    for benchmark in ALL {
        let left = Arc::new(AtomicU64::new(40));
        let watch: Watch = Arc::new(move |_| left.fetch_sub(1, Ordering::Relaxed) > 1);
        let asked = BenchOptions { watch, ..asked(small(benchmark), 1) };
        assert!(on_core(benchmark, asked, None).unwrap_err().is_interrupted(), "{}", benchmark.name);
    }
}

#[test]
fn directories_have_as_many_entries_as_they_are_wide() {
    for (files, width) in [(1, 20), (20, 20), (21, 20), (10_000, 20), (50_000, 100), (1000, 1_000_000)] {
        let directories = tree_directories(files, width);
        let mut entries = std::collections::BTreeMap::new();
        let all = (0..files).map(|number| tree_path(number, width)).chain(directories.iter().cloned());
        for path in all {
            let above = path.rsplit_once('/').map_or("", |(above, _)| above).to_string();
            assert!(above.is_empty() || directories.contains(&above), "{path} lies in no directory");
            *entries.entry(above).or_insert(0) += 1;
        }
        let most = entries.values().max().unwrap();
        assert!(*most <= 2 * width, "{files} files: a directory of {most} entries, and the mean is {width}");
    }
}
