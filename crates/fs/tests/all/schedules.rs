//! Goal: in whatever order tasks run, each of them ends when space runs out. A writer that waits for space continues or
//! is refused, and the written data is found afterwards. Method: concurrent writers, deleters, truncaters, allocaters
//! and syncs on a store with hardly any space. A seed chooses the executor's order of tasks and the devices' times. The
//! bound on polls of tasks detects tasks that wake each other for ever; the bound on virtual time detects tasks that
//! wait for ever. Contents are compared with the data that each task wrote.
//!
//! `IMBREX_SEEDS` runs more seeds, `IMBREX_SEED` a single one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use imbrex_fs::core::{Allocate, Caller, MountOptions, SetAttr};
use imbrex_fs::device::{BLOCK_BYTES, Device};
use imbrex_fs::executor::SECOND_NS;
use imbrex_fs::format::file_type::REGULAR;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::verify::operation::pattern;
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{arrays, toys, with_files_alone, with_hot_zones};
use imbrex_fs::{Bounds, Executor, Fs, FsError};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::support::devices;

/// Most polls of tasks in a run: runs that end take less than a hundredth of them.
const POLLS_MAX: u64 = 20_000_000;
/// Longest virtual time of a run.
const TIME_NS_MAX: u64 = 2_000 * SECOND_NS;
/// Longest service time of an operation.
const OPERATION_NS_MAX: u64 = 3_000_000;
/// Rounds of each task.
const ROUNDS: u64 = 6;
const SEEDS: u64 = 12;

/// State that the tasks of a run share.
#[derive(Clone)]
struct Run {
    fs: Fs,
    executor: Executor,
    random: Rc<RefCell<Xoshiro256PlusPlus>>,
    /// Files that must exist in the end, with their contents.
    kept: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    refused: Rc<Cell<u64>>,
    served: Rc<Cell<u64>>,
}

impl Run {
    fn below(&self, end: u64) -> u64 {
        self.random.borrow_mut().next_u64() % end
    }

    /// Counts the outcome of an operation that needs space; errors other than "no space" fail the test. Returns whether
    /// the operation succeeded.
    fn outcome(&self, what: &str, outcome: Result<(), FsError>) -> bool {
        match outcome {
            Ok(()) => self.served.set(self.served.get() + 1),
            Err(FsError::NoSpace) => self.refused.set(self.refused.get() + 1),
            Err(error) => panic!("{what}: {error}"),
        }
        outcome.is_ok()
    }

    async fn create(&self, name: &str) -> u32 {
        let inode = self.fs.make_node(ROOT, name.as_bytes(), REGULAR | 0o644, 0, Caller::default()).await;
        let inode = inode.unwrap_or_else(|error| panic!("{name}: {error}")).inode;
        self.fs.open(inode).unwrap();
        inode
    }

    /// Closes a file in another task, because the kernel reports a close at any later time.
    fn release(&self, inode: u32) {
        let run = self.clone();
        let late_ns = self.below(3) * 700_000;
        drop(self.executor.spawn(async move {
            run.executor.sleep(late_ns).await;
            // Accepted data is written; a file that was removed meanwhile is stale.
            match run.fs.close(inode).await {
                Ok(()) | Err(FsError::Stale) => {}
                Err(error) => panic!("a close: {error}"),
            }
        }));
    }

    async fn check(&self, inode: u32, expected: &[u8], what: &str) {
        let read = self.fs.read(inode, 0, expected.len() + 1).await.unwrap();
        assert!(read == expected, "{what}: {} bytes, {} expected, or others", read.len(), expected.len());
    }

    /// Writes files of several blocks one after the other, and removes each, before or after it is closed.
    async fn write_and_delete(self, number: u64, blocks: u64) {
        for round in 0..ROUNDS {
            let (name, seed) = (format!("t{number}"), (number * 16 + round) as u8);
            let inode = self.create(&name).await;
            let mut bytes = Vec::new();
            for _ in 0..1 + self.below(blocks) {
                let piece = pattern(seed, bytes.len() as u64, BLOCK_BYTES + self.below(200) as usize);
                if !self.outcome(&name, self.fs.write(inode, bytes.len() as u64, &piece).await) {
                    break;
                }
                bytes.extend(piece);
            }
            self.check(inode, &bytes, &name).await;
            if self.below(2) == 0 {
                self.release(inode);
                self.executor.yield_now().await;
                self.fs.unlink(ROOT, name.as_bytes()).await.unwrap();
            } else {
                self.fs.unlink(ROOT, name.as_bytes()).await.unwrap();
                self.check(inode, &bytes, "removed and open").await;
                self.release(inode);
            }
        }
    }

    /// Rewrites, truncates, extends, allocates and punches one file repeatedly.
    async fn write_and_cut(self, number: u64, blocks: u64) {
        let name = format!("u{number}");
        let inode = self.create(&name).await;
        let mut bytes: Vec<u8> = Vec::new();
        for round in 0..ROUNDS {
            let end = (1 + self.below(blocks)) as usize * BLOCK_BYTES;
            let size = |size: usize| SetAttr { size: Some(size as u64), ..SetAttr::default() };
            match self.below(5) {
                0 => {
                    let cut = bytes.len() - self.below(1 + bytes.len() as u64) as usize;
                    self.fs.set_attr(inode, &size(cut)).await.unwrap();
                    bytes.truncate(cut);
                }
                1 if end > bytes.len() => {
                    if self.outcome(&name, self.fs.set_attr(inode, &size(end)).await.map(drop)) {
                        bytes.resize(end, 0);
                    }
                }
                2 => {
                    let allocated = self.fs.allocate(inode, 0, end as u64, Allocate::Room).await;
                    if self.outcome(&name, allocated) {
                        bytes.resize(end.max(bytes.len()), 0);
                    }
                }
                3 => {
                    let punched = self.fs.allocate(inode, 0, BLOCK_BYTES as u64, Allocate::PunchHole).await;
                    if self.outcome(&name, punched) {
                        let zeroed = BLOCK_BYTES.min(bytes.len());
                        bytes[..zeroed].fill(0);
                    }
                }
                _ => {
                    let at = self.below(1 + bytes.len() as u64) as usize;
                    let piece = pattern((number * 16 + round) as u8, at as u64, end.min(3 * BLOCK_BYTES));
                    if self.outcome(&name, self.fs.write(inode, at as u64, &piece).await) {
                        bytes.resize(bytes.len().max(at + piece.len()), 0);
                        bytes[at..at + piece.len()].copy_from_slice(&piece);
                    }
                }
            }
            self.check(inode, &bytes, &name).await;
        }
        self.release(inode);
        self.kept.borrow_mut().insert(name, bytes);
    }

    async fn sync_now_and_then(self) {
        for _ in 0..ROUNDS {
            self.executor.sleep(self.below(20_000_000)).await;
            self.outcome("sync", self.fs.sync().await);
            if self.below(3) == 0 {
                self.fs.clean(1).await.unwrap();
            }
            if self.below(3) == 0 {
                // Only an array can be scrubbed.
                let scrubbed = self.fs.scrub_array(true, |_, _| true).await;
                assert!(matches!(scrubbed, Ok(_) | Err(FsError::NotSupported(_))), "{scrubbed:?}");
            }
        }
    }

    /// Fills the store with files until at most `left` blocks are free.
    async fn fill(&self, left: u64) {
        let mut number = 0;
        while self.fs.statfs().free > left {
            let (name, bytes) = (format!("k{number}"), pattern(number as u8, 0, 2 * BLOCK_BYTES));
            let inode = self.create(&name).await;
            let written = self.fs.write(inode, 0, &bytes).await;
            let is_done = written.is_ok() && self.fs.close(inode).await.is_ok();
            self.kept.borrow_mut().insert(name, if is_done { bytes } else { Vec::new() });
            if !is_done {
                break;
            }
            number += 1;
        }
        self.fs.sync().await.unwrap();
    }
}

fn bounds(trial: &Trial) -> Bounds {
    // The bounds cause many write-backs, commits and evictions while data arrives.
    Bounds {
        cache_bytes: 48 << 10,
        behind_bytes: 8 << 10,
        piece_blocks: 2,
        closing_ns: 2_000_000,
        commit_ns: SECOND_NS / 20,
        dirty_ns: SECOND_NS / 10,
        ..trial.bounds
    }
}

/// Prints the name and seed of a run that failed.
struct Named(&'static str, u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}, seed {}", self.0, self.1);
        }
    }
}

/// Runs `seed` on `trial`. Returns the numbers of writes that had space, and that did not.
fn run(name: &'static str, trial: &Trial, seed: u64) -> (u64, u64) {
    let trial = Trial { bounds: bounds(trial), ..trial.clone() };
    let _named = Named(name, seed);
    let executor = Executor::in_virtual_time_seeded(seed);
    let own = executor.clone();
    let whole = async move {
        let rig = Rig::new(&trial);
        rig.make(&own, &trial).await.unwrap();
        let broken = rig.broken_rules();
        let devices: Vec<Device> = (0u64..)
            .zip(rig.models())
            .map(|(number, model)| {
                let mut random = Xoshiro256PlusPlus::seed_from_u64(seed * 31 + number);
                // One operation in four takes no time, so that tasks meet in the middle of the others' work.
                let next_ns = move || match random.next_u64() % 4 {
                    0 => 0,
                    _ => random.next_u64() % OPERATION_NS_MAX,
                };
                let slow = devices::Late::with_times(model.clone(), next_ns);
                Device::new(&own, &format!("slow {number}"), Box::new(slow))
            })
            .collect();
        let options =
            MountOptions { bounds: Some(trial.bounds), epoch_ns: 1_400_000_000_000_000_000, ..MountOptions::default() };
        let (fs, _) = Fs::mount(&own, &devices, &options).await.unwrap();
        let run = Run {
            fs: fs.clone(),
            executor: own.clone(),
            random: Rc::new(RefCell::new(Xoshiro256PlusPlus::seed_from_u64(seed))),
            kept: Rc::default(),
            refused: Rc::default(),
            served: Rc::default(),
        };
        run.fill(10).await;
        let mut tasks = Vec::new();
        for number in 0..3 {
            tasks.push(own.spawn(run.clone().write_and_delete(number, 9)));
        }
        for number in 0..2 {
            tasks.push(own.spawn(run.clone().write_and_cut(number, 5)));
        }
        tasks.push(own.spawn(run.clone().sync_now_and_then()));
        for task in tasks {
            task.await;
        }
        own.sleep(SECOND_NS).await;
        fs.sync().await.unwrap();
        assert_eq!(fs.self_check(), Vec::<String>::new());
        fs.unmount().await.unwrap();
        drop(fs);
        let (fs, _) = Fs::mount(&own, &devices, &options).await.unwrap();
        let kept = run.kept.borrow().clone();
        for (file, bytes) in &kept {
            let inode = fs.lookup(ROOT, file.as_bytes()).unwrap().inode;
            let read = fs.read(inode, 0, bytes.len() + 1).await.unwrap();
            assert!(read == *bytes, "{name}, seed {seed}: {file} is other after a mount");
        }
        let names = fs.list(ROOT, 2, usize::MAX).unwrap().len();
        assert_eq!(names, kept.len(), "{name}, seed {seed}: what was removed is back");
        fs.unmount().await.unwrap();
        assert_eq!(rig.broken_rules(), broken, "{name}, seed {seed}: rules of the devices were broken");
        assert!(own.now_ns() < TIME_NS_MAX, "{name}, seed {seed}: it took {} s", own.now_ns() / SECOND_NS);
        (run.served.get(), run.refused.get())
    };
    let ended = executor.run_at_most(POLLS_MAX, whole);
    let came = ended.unwrap_or_else(|stalled| panic!("{name}, seed {seed}: {stalled}"));
    let came = came
        .unwrap_or_else(|| panic!("{name}, seed {seed}: tasks wake each other for ever, at {} ns", executor.now_ns()));
    executor.shut_down();
    came
}

fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |key: &str| std::env::var(key).ok().map(|text| text.parse::<u64>().unwrap());
    match number("IMBREX_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("IMBREX_SEEDS").unwrap_or(usual),
    }
}

fn all_end(trials: Vec<(&'static str, Trial)>) {
    let (mut served, mut refused, mut count) = (0, 0, 0);
    for (name, trial) in trials {
        for seed in seeds(SEEDS) {
            let (some, none) = run(name, &trial, seed);
            (served, refused, count) = (served + some, refused + none, count + 1);
        }
    }
    println!("{count} schedules: {served} found room, {refused} were refused");
    assert!(served > count && (refused > 0 || count < SEEDS), "{served} found room, {refused} were refused");
}

#[test]
fn every_task_ends_on_a_single_drive_that_is_nearly_full() {
    all_end(toys());
}

#[test]
fn every_task_ends_on_an_array_that_is_nearly_full() {
    all_end(arrays());
}

#[test]
fn every_task_ends_where_there_is_a_hot_zone() {
    all_end(with_hot_zones().into_iter().chain(with_files_alone()).collect());
}
