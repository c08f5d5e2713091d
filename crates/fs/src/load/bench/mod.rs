//! Benchmarks of file systems: those of Singh 2014 §5.2 and of Jin 2014 §III, after the published descriptions of the
//! benchmarks that these papers name. Each benchmark, or family of benchmarks, has its own file and a line in [`ALL`].
//!
//! A benchmark is a sequence of *phases*. Each phase ends when everything is durable, so that no phase leaves work to
//! the next. The figures are by kind of operation. On the core in virtual time only the devices take time, so the
//! figures are disk times without processor time.
//!
//! Invariants:
//! 1. Each phase does the same operations for equal [`Sizes`], whatever the file system.

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

/// Sizes of a benchmark. A size that the benchmark does not have is `None`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sizes {
    /// Number of files that the benchmark works on; `None` if a user cannot choose it.
    pub files: Option<u64>,
    /// Size of each file in bytes, or the mean size if the sizes of the files are random; `None` if a user cannot
    /// choose it.
    pub file_bytes: Option<u64>,
    /// Number of operations, in the unit of the benchmark: transactions, rounds, or compiled source files. `None` if a
    /// user cannot choose it.
    pub operations: Option<u64>,
    /// Number of applications (threads or tasks) that work concurrently; `None` if a user cannot choose it.
    pub workers: Option<u64>,
}

/// Description of a benchmark of file systems.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Benchmark {
    /// Name by which users choose the benchmark.
    pub name: &'static str,
    /// Summary of the benchmark's operations, in one line.
    pub about: &'static str,
    /// Publication that describes the benchmark, and its parameters there.
    pub source: &'static str,
    /// Default numbers of files, bytes, operations and workers. A user can change only those that are not `None` here.
    pub defaults: Sizes,
    /// Smallest size of a file in bytes: that of the unit in which the benchmark writes a file.
    pub file_bytes_least: u64,
}

/// All benchmarks, in the order in which they are listed to users.
pub const ALL: &[&Benchmark] = &[
    &large_file::LFS,
    &small_files::SMALL_FILES,
    &postmark::POSTMARK,
    &compile::COMPILE,
    &filebench::CREATE_FILES,
    &filebench::VARMAIL,
    &filebench::FILE_SERVER,
];

/// Returns the benchmark of this name; `None` if there is none.
pub fn named(name: &str) -> Option<&'static Benchmark> {
    ALL.iter().copied().find(|benchmark| benchmark.name == name)
}

/// Parameters of a run of a benchmark.
#[derive(Clone)]
pub struct BenchOptions {
    /// Sizes of the benchmark: a value for each size that its [`Benchmark::defaults`] have.
    pub sizes: Sizes,
    /// Seed of all random choices of the benchmark. Equal seeds give equal operations.
    pub seed: u64,
    /// Callback after every operation that succeeded. It returns whether to continue; false ends the run with an error.
    pub watch: Watch,
}

/// Result of one phase of a benchmark. A benchmark is a sequence of phases, such as the creation and the reading of
/// files.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Name of the phase, such as `make` or `read`.
    pub name: &'static str,
    /// Time when the phase began, in nanoseconds of the clock of the load, which has an arbitrary beginning.
    pub began_ns: u64,
    /// Duration of the phase in nanoseconds, with the final `syncfs` that makes everything durable.
    pub elapsed_ns: u64,
    /// Number of items done in the phase, in the unit of the phase, for example files, transactions, or rounds of all
    /// workers.
    pub done: u64,
    /// Bytes and durations of the operations of the phase, by kind of operation. A kind without any operation is
    /// absent.
    pub measured: Measured,
}

impl Phase {
    /// Returns the number of bytes that the operations of the phase read or wrote.
    pub fn bytes(&self) -> u64 {
        self.measured.values().map(|figures| figures.bytes).sum()
    }

    /// Returns the number of operations of all kinds on the file system in the phase, the final `syncfs` included.
    pub fn operations(&self) -> u64 {
        self.measured.values().map(|figures| figures.latency.count()).sum()
    }
}

/// Runs a benchmark in the directory of `files`, and returns its phases in order. `ended` is called with each phase
/// when the phase ends.
///
/// # Errors
/// The first operation that failed. If the `watch` function ended the run, [`LoadError::is_interrupted`] returns true
/// for the error.
pub async fn run<F: Files>(
    benchmark: &Benchmark,
    files: &F,
    asked: &BenchOptions,
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

/// A benchmark in progress.
struct Run<'a, F, E> {
    files: &'a F,
    asked: &'a BenchOptions,
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

    /// Executes a phase of one application, and adds it to the results. `work` returns the number of items done.
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

/// Returns the path of file `number` in a tree whose directories have `width` entries on average, like the file sets of
/// filebench. For example, file 12 at width 10 is `d/d1/00000012`. `width` must be at least 2.
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

/// Returns the paths of all directories above the files with numbers 0 to `files` − 1 in the tree of [`tree_path`],
/// such as `d` and `d/d1`. Each follows after its parent. `width` must be at least 2.
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
