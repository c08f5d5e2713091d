//! The loads that file systems are measured with: those of Singh 2014 §5.2 and of Jin 2014 §III, by the published
//! descriptions of the benchmarks they name. One file a benchmark, or a family of them, one line in [`ALL`].
//!
//! A benchmark is a row of *phases*; each ends when everything is durable, so that none leaves its work to the next. Its
//! figures are by kind of operation. On the core in virtual time nothing costs time but the devices: what is told is the
//! time of the disk, not of a processor.
//!
//! Invariants:
//! 1. Each phase does the same operations for the same [`Sizes`], whatever the file system.

mod compile;
mod filebench;
mod large_file;
mod measure;
mod postmark;
mod sizes;
mod small_files;
pub mod timeline;

use self::measure::Meter;
pub use self::measure::{Done, Figures, Kind, Measured, Watch};
use super::random::Choices;
use super::{Files, LoadError};

/// How large a benchmark is. What a benchmark does not know stays `None`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sizes {
    /// Files.
    pub files: Option<u64>,
    /// Bytes of each, or their mean.
    pub file_bytes: Option<u64>,
    /// What is done with them, in the benchmark's own measure: transactions, rounds, accesses, compiled sources.
    pub operations: Option<u64>,
    /// Applications that work at once.
    pub workers: Option<u64>,
}

/// A benchmark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Benchmark {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// Its own sizes; only what is set here can be chosen.
    pub defaults: Sizes,
}

/// The benchmarks: the registry.
pub const ALL: &[&Benchmark] = &[
    &large_file::LFS,
    &small_files::SMALL_FILES,
    &postmark::POSTMARK,
    &compile::COMPILE,
    &filebench::CREATE_FILES,
    &filebench::VARMAIL,
    &filebench::FILE_SERVER,
];

/// The benchmark of this name.
pub fn named(name: &str) -> Option<&'static Benchmark> {
    ALL.iter().copied().find(|benchmark| benchmark.name == name)
}

/// What is asked for.
#[derive(Clone)]
pub struct Asked {
    /// How large.
    pub sizes: Sizes,
    /// The seed of all choices.
    pub seed: u64,
    /// Told every operation that was done; says whether to go on.
    pub watch: Watch,
}

/// What one part of a benchmark came to.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Its name.
    pub name: &'static str,
    /// When it began, by the clock of the file system.
    pub began_ns: u64,
    /// How long it took, until everything was durable.
    pub elapsed_ns: u64,
    /// How many of what the benchmark counts were done: operations, transactions, rounds.
    pub done: u64,
    /// What was measured.
    pub measured: Measured,
}

impl Phase {
    /// Bytes that were read or written.
    pub fn bytes(&self) -> u64 {
        self.measured.values().map(|figures| figures.bytes).sum()
    }

    /// Operations of the file system.
    pub fn operations(&self) -> u64 {
        self.measured.values().map(|figures| figures.latency.count()).sum()
    }
}

/// Runs a benchmark in a directory of its own. `ended` is told each phase as it ends.
pub async fn run<F: Files>(
    benchmark: &Benchmark,
    files: &F,
    asked: &Asked,
    ended: impl FnMut(&Phase),
) -> Result<Vec<Phase>, LoadError> {
    let mut run = Run { files, asked, phases: Vec::new(), ended };
    match benchmark.name {
        "lfs" => large_file::run(&mut run).await?,
        "smallfiles" => small_files::run(&mut run).await?,
        "postmark" => postmark::run(&mut run).await?,
        "compile" => compile::run(&mut run).await?,
        name => filebench::run(name, &mut run).await?,
    }
    Ok(run.phases)
}

/// A benchmark that runs.
struct Run<'a, F, E> {
    files: &'a F,
    asked: &'a Asked,
    phases: Vec<Phase>,
    ended: E,
}

impl<F: Files, E: FnMut(&Phase)> Run<'_, F, E> {
    fn choices(&self) -> Choices {
        Choices::new(self.asked.seed)
    }

    fn sizes(&self) -> Sizes {
        self.asked.sizes
    }

    /// A phase of one application, which says how many of what is counted it did.
    async fn phase(
        &mut self,
        name: &'static str,
        work: impl AsyncFnOnce(&Meter<F>) -> Result<u64, LoadError>,
    ) -> Result<(), LoadError> {
        let meter = Meter::new(self.files, &self.asked.watch);
        let began_ns = self.files.now_ns();
        let done = work(&meter).await?;
        meter.sync_all().await?;
        self.end(Phase {
            name,
            began_ns,
            elapsed_ns: self.files.now_ns() - began_ns,
            done,
            measured: meter.into_measured(),
        });
        Ok(())
    }

    fn end(&mut self, phase: Phase) {
        (self.ended)(&phase);
        self.phases.push(phase);
    }
}

/// The path of file `number` where directories have `width` entries on average: the tree of filebench's file sets.
pub fn tree_path(number: u64, width: u64) -> String {
    let mut path = format!("{:08}", number);
    let mut directory = number / width;
    let mut names = Vec::new();
    while directory > 0 {
        names.push(format!("d{}", directory % width));
        directory /= width;
    }
    names.push("d".into());
    names.reverse();
    path.insert_str(0, &(names.join("/") + "/"));
    path
}

/// The directories of files 0 to `files` − 1, each after the one that it is in.
pub fn tree_directories(files: u64, width: u64) -> Vec<String> {
    let mut all = std::collections::BTreeSet::new();
    for number in (0..files).step_by(usize::try_from(width).unwrap_or(usize::MAX)) {
        let path = tree_path(number, width);
        let mut end = 0;
        while let Some(at) = path[end..].find('/') {
            all.insert(path[..end + at].to_string());
            end += at + 1;
        }
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests;
