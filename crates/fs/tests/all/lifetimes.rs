//! Goal: a file exists exactly as long as it has a name, a handle, or a lookup that was not forgotten, and holds the
//! data written to it. No pair of inode number and generation is ever given to two files, also not across unmounts and
//! power cuts. Method: random operations beside a naive model that counts names, handles and lookups of each pair, with
//! cuts that leave any subset of the blocks that were not durable. A toy that is full, or has no zone left to write
//! after a cut, may refuse writes: this test is not about space.

use std::collections::{BTreeMap, BTreeSet};

use imbrex_fs::core::{Caller, MountOptions, Rename};
use imbrex_fs::format::change::Inode;
use imbrex_fs::format::file_type::REGULAR;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::verify::cuts::fresh;
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::toys;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::{Executor, Fs, FsError};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// An inode number and a generation.
type Pair = (Inode, u32);

const NAMES: u64 = 6;

/// The model's view of a file.
#[derive(Clone, Default, Debug)]
struct File {
    is_directory: bool,
    names: u64,
    handles: u64,
    lookups: u64,
    /// Byte that the file is filled with, if it was written.
    byte: Option<u8>,
}

impl File {
    fn is_there(&self) -> bool {
        self.names + self.handles + self.lookups > 0
    }
}

/// Names in the root directory, and every file that was ever made.
#[derive(Default)]
struct Model {
    names: BTreeMap<String, Pair>,
    files: BTreeMap<Pair, File>,
    given: BTreeSet<Pair>,
}

impl Model {
    fn made(&mut self, name: &str, pair: Pair, is_directory: bool) {
        assert!(self.given.insert(pair), "{pair:?} was given before");
        self.files.insert(pair, File { is_directory, names: 1, lookups: 1, ..File::default() });
        self.names.insert(name.into(), pair);
    }

    fn file(&mut self, pair: Pair) -> &mut File {
        self.files.get_mut(&pair).unwrap()
    }

    fn take_name(&mut self, name: &str) {
        if let Some(pair) = self.names.remove(name) {
            self.file(pair).names -= 1;
        }
    }

    fn forget_the_gone(&mut self) {
        self.files.retain(|_, file| file.is_there());
    }

    /// Applies an unmount: only names keep files.
    fn unmounted(&mut self) {
        self.files.values_mut().for_each(|file| (file.handles, file.lookups) = (0, 0));
        self.forget_the_gone();
    }
}

struct Run {
    fs: Fs,
    rig: Rig,
    executor: Executor,
    trial: Trial,
    model: Model,
    random: Xoshiro256PlusPlus,
}

fn pair_of(fs: &Fs, inode: Inode) -> Result<Pair, FsError> {
    fs.attr(inode).map(|attr| (inode, attr.attributes.generation))
}

impl Run {
    fn below(&mut self, end: u64) -> u64 {
        self.random.next_u64() % end
    }

    fn name(&mut self) -> String {
        format!("n{}", self.below(NAMES))
    }

    /// Returns an existing file, chosen at random.
    fn any(&mut self) -> Option<Pair> {
        let count = self.model.files.len() as u64;
        let at = if count > 0 { self.below(count) } else { 0 };
        self.model.files.keys().nth(at as usize).copied()
    }

    async fn mount(&mut self) {
        let options = MountOptions { bounds: Some(self.trial.bounds), ..MountOptions::default() };
        self.fs = Fs::mount(&self.executor, &self.rig.devices(&self.executor, &[]), &options).await.unwrap().0;
    }

    async fn make(&mut self, is_directory: bool) {
        let name = self.name();
        let made = if is_directory {
            self.fs.make_directory(ROOT, name.as_bytes(), 0o755, Caller::default()).await
        } else {
            self.fs.make_node(ROOT, name.as_bytes(), REGULAR | 0o644, 0, Caller::default()).await
        };
        match made {
            Ok(attr) => {
                self.fs.add_lookup(attr.inode);
                self.model.made(&name, (attr.inode, attr.attributes.generation), is_directory);
            }
            Err(FsError::Exists) => assert!(self.model.names.contains_key(&name), "{name}"),
            Err(error) => panic!("{name}: {error}"),
        }
    }

    async fn remove(&mut self) {
        let name = self.name();
        let Some(pair) = self.model.names.get(&name).copied() else { return };
        if self.model.file(pair).is_directory {
            self.fs.remove_directory(ROOT, name.as_bytes()).await.unwrap();
        } else {
            self.fs.unlink(ROOT, name.as_bytes()).await.unwrap();
        }
        self.model.take_name(&name);
    }

    async fn rename(&mut self) {
        let (from, to) = (self.name(), self.name());
        let Some(pair) = self.model.names.get(&from).copied() else { return };
        let other = self.model.names.get(&to).copied();
        let is_directory = self.model.file(pair).is_directory;
        let fits = other.is_none_or(|other| self.model.file(other).is_directory == is_directory);
        let renamed = self.fs.rename(ROOT, from.as_bytes(), ROOT, to.as_bytes(), Rename::Replace).await;
        if renamed == Err(FsError::NoSpace) {
            return;
        }
        assert_eq!(renamed.is_ok(), fits, "{from} to {to}: {renamed:?}");
        if fits && other != Some(pair) {
            self.model.take_name(&to);
            self.model.names.remove(&from);
            self.model.names.insert(to, pair);
        }
    }

    /// Links a file that has a name: the kernel never links one without.
    async fn link(&mut self) {
        let (from, to) = (self.name(), self.name());
        let Some(pair) = self.model.names.get(&from).copied() else { return };
        if self.model.file(pair).is_directory || self.model.names.contains_key(&to) {
            return;
        }
        match self.fs.link(pair.0, ROOT, to.as_bytes()).await {
            Err(FsError::NoSpace) => return,
            linked => drop(linked.unwrap()),
        }
        self.fs.add_lookup(pair.0);
        self.model.names.insert(to, pair);
        let file = self.model.file(pair);
        (file.names, file.lookups) = (file.names + 1, file.lookups + 1);
    }

    async fn open_or_close(&mut self) {
        let Some(pair) = self.any() else { return };
        if self.model.file(pair).handles > 0 {
            let closed = self.fs.close(pair.0).await;
            assert!(matches!(closed, Ok(()) | Err(FsError::NoSpace)), "{closed:?}");
            self.model.file(pair).handles -= 1;
        } else {
            self.fs.open(pair.0).unwrap();
            self.model.file(pair).handles += 1;
        }
    }

    fn look_up(&mut self) {
        let name = self.name();
        let found = self.fs.lookup(ROOT, name.as_bytes()).ok().map(|attr| (attr.inode, attr.attributes.generation));
        assert_eq!(found, self.model.names.get(&name).copied(), "{name}");
        if let Some(pair) = found {
            self.fs.add_lookup(pair.0);
            self.model.file(pair).lookups += 1;
        }
    }

    fn forget(&mut self) {
        let Some(pair) = self.any() else { return };
        let held = self.model.file(pair).lookups;
        if held > 0 {
            let lookups = 1 + self.below(held);
            self.fs.forget(pair.0, lookups);
            self.model.file(pair).lookups -= lookups;
        }
    }

    async fn write(&mut self) {
        let Some(pair) = self.any() else { return };
        if self.model.file(pair).is_directory {
            return;
        }
        let byte = self.below(255) as u8 + 1;
        match self.fs.write(pair.0, 0, &[byte; 5000]).await {
            Ok(()) => self.model.file(pair).byte = Some(byte),
            Err(error) => assert_eq!(error, FsError::NoSpace, "{pair:?}"),
        }
    }

    /// Cuts the power: any subset of the data that was not durable survives. The model continues with the files that
    /// are found.
    async fn cut(&mut self) {
        let mut random = self.random.clone();
        self.random.next_u64();
        let snapshots: Vec<_> = self.rig.models().iter().map(|model| model.snapshot()).collect();
        let left = snapshots.iter().map(|snapshot| snapshot.cut(|_| random.next_u64() & 1 == 0)).collect();
        self.rig = Rig::with(left);
        self.mount().await;
        self.model.names.clear();
        self.model.files.clear();
        for entry in self.fs.list(ROOT, 2, usize::MAX).unwrap() {
            let pair = pair_of(&self.fs, entry.inode).unwrap();
            assert!(self.model.given.contains(&pair), "{pair:?} was never given");
            let size = self.fs.attr(entry.inode).unwrap().attributes.size;
            let is_directory = entry.mode & 0o170_000 == 0o040_000;
            let byte = match is_directory || size == 0 {
                true => None,
                false => self.fs.read(entry.inode, 0, 1).await.unwrap().first().copied(),
            };
            let file = self.model.files.entry(pair).or_default();
            *file = File { is_directory, names: file.names + 1, byte, ..File::default() };
            self.model.names.insert(String::from_utf8(entry.name).unwrap(), pair);
        }
    }

    /// Unmounts and mounts again; if the unmount has no space, cuts the power instead.
    async fn remount(&mut self) {
        if self.fs.unmount().await.is_err() {
            return self.cut().await;
        }
        self.model.unmounted();
        self.mount().await;
    }

    async fn step(&mut self) {
        match self.below(100) {
            0..20 => self.make(false).await,
            20..30 => self.make(true).await,
            30..45 => self.remove().await,
            45..55 => self.rename().await,
            55..60 => self.link().await,
            60..70 => self.open_or_close().await,
            70..75 => self.look_up(),
            75..92 => self.forget(),
            92..98 => self.write().await,
            98 => self.remount().await,
            _ => self.cut().await,
        }
    }

    /// Compares every file that existed before the step with the model.
    async fn compare(&mut self) {
        for (&pair, file) in &self.model.files {
            let found = pair_of(&self.fs, pair.0).ok();
            if !file.is_there() {
                assert_ne!(found, Some(pair), "{pair:?} should be gone");
                continue;
            }
            assert_eq!(found, Some(pair), "{file:?} should be there");
            if let Some(byte) = file.byte {
                let read = self.fs.read(pair.0, 0, 1).await.unwrap();
                assert_eq!(read, [byte], "{pair:?}: {file:?}");
            }
        }
        self.model.forget_the_gone();
    }
}

#[test]
fn files_are_there_as_long_as_somebody_holds_them_and_no_pair_returns() {
    for (name, trial) in toys() {
        let mut given = 0;
        for seed in 1..40 {
            let executor = Executor::in_virtual_time();
            let (own, trial) = (executor.clone(), trial.clone());
            let run = async move {
                let (fs, rig) = fresh(&own, &trial).await.unwrap();
                let random = Xoshiro256PlusPlus::seed_from_u64(seed);
                let mut run = Run { fs, rig, executor: own, trial, model: Model::default(), random };
                for _ in 0..600 {
                    run.step().await;
                    run.compare().await;
                }
                assert_eq!(run.fs.self_check(), Vec::<String>::new(), "{name}");
                run.model.given.len()
            };
            given += executor.run(run).unwrap();
            executor.shut_down();
        }
        assert!(given > 1000, "{name}: {given} files were made");
    }
}

/// Makes so many files, one after the other, that every free number is used repeatedly.
#[test]
fn a_number_that_is_used_again_has_another_generation() {
    let (_, trial) = toys().into_iter().next().unwrap();
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let run = async move {
        let (mut fs, rig) = fresh(&own, &trial).await.unwrap();
        let (mut given, mut numbers) = (BTreeSet::new(), BTreeSet::new());
        for turn in 0..5000 {
            let attr = fs.make_node(ROOT, b"f", REGULAR | 0o644, 0, Caller::default()).await.unwrap();
            let pair = (attr.inode, attr.attributes.generation);
            assert!(given.insert(pair), "{pair:?} was given before, at turn {turn}");
            numbers.insert(attr.inode);
            fs.unlink(ROOT, b"f").await.unwrap();
            if turn % 2500 == 2499 {
                fs.unmount().await.unwrap();
                let options = MountOptions { bounds: Some(trial.bounds), ..MountOptions::default() };
                fs = Fs::mount(&own, &rig.devices(&own, &[]), &options).await.unwrap().0;
            }
        }
        assert!(numbers.len() < 2000, "{} numbers are used for files one after the other", numbers.len());
    };
    executor.run(run).unwrap();
    executor.shut_down();
}
