//! `createfiles`, `varmail` and `fileserver`: the personalities of filebench 1.4.9 that Jin 2014 §III runs, after their
//! workload files (`createfiles.f`, `varmail.f`, `fileserver.f`).
//!
//! For `varmail` and `fileserver`, four fifths of a set of files are created in a first phase. Then several threads
//! repeat the steps of their personality, in rounds. File sizes are gamma distributed; sizes of appends are uniform
//! below their bound.
//!
//! Here each thread has its own share of the files, while filebench's threads draw from one set. So the operations of a
//! thread do not depend on other threads, and a seed gives the same operations on every file system.

use super::super::random::Choices;
use super::super::{Files, LoadError, Worker};
use super::measure::{Measured, Watch, add};
use super::sizes::gamma;
use super::{Benchmark, Meter, Phase, Run, Sizes, tree_directories, tree_path};

/// `createfiles.f`: 16 threads create files.
pub(super) const CREATE_FILES: Benchmark = Benchmark {
    name: "createfiles",
    about: "16 threads make files of 16 KiB on average, 100 in a directory",
    source: "filebench 1.4.9, createfiles.f; Jin 2014 fig. 6",
    defaults: Sizes { files: Some(50_000), file_bytes: Some(16 << 10), operations: None, workers: Some(16) },
    file_bytes_least: 1,
};

/// `varmail.f`: a mail server in one directory.
pub(super) const VARMAIL: Benchmark = Benchmark {
    name: "varmail",
    about: "16 threads of a mail server: remove; make, append, fsync; read, append, fsync; read",
    source: "filebench 1.4.9, varmail.f; Jin 2014 fig. 7",
    defaults: Sizes { files: Some(1_000), file_bytes: Some(16 << 10), operations: Some(10_000), workers: Some(16) },
    file_bytes_least: 1,
};

/// `fileserver.f`: a server of home directories.
pub(super) const FILE_SERVER: Benchmark = Benchmark {
    name: "fileserver",
    about: "50 threads of a file server: make; append; read; remove; stat",
    source: "filebench 1.4.9, fileserver.f; Jin 2014 fig. 9 (200,000 files)",
    defaults: Sizes { files: Some(10_000), file_bytes: Some(128 << 10), operations: Some(10_000), workers: Some(50) },
    file_bytes_least: 1,
};

/// One step of a thread in a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Removes an existing file.
    Remove,
    /// Creates a missing file and writes it whole.
    Make,
    /// Creates a missing file, appends to it and makes it durable.
    MakeDurable,
    /// Appends to an existing file, without making it durable.
    Append,
    /// Reads an existing file, appends to it and makes it durable.
    ReadAndAppend,
    /// Reads an existing file.
    Read,
    /// Reads the attributes of an existing file.
    Stat,
}

const CREATE_FILES_STEPS: &[Step] = &[Step::Make];
const VARMAIL_STEPS: &[Step] = &[Step::Remove, Step::MakeDurable, Step::ReadAndAppend, Step::Read];
const FILE_SERVER_STEPS: &[Step] = &[Step::Make, Step::Append, Step::Read, Step::Remove, Step::Stat];

/// Maximum bytes of a read or a write: `iosize` of all three personalities.
const PIECE: usize = 1 << 20;
/// Exclusive upper bound of the bytes of an append, from `meanappendsize` of the two personalities that append.
const APPEND_BYTES: u64 = 16 << 10;

/// Parameters of a personality.
struct Personality {
    steps: &'static [Step],
    /// Mean number of entries of a directory: `meandirwidth`.
    width: u64,
    /// Number of files, out of ten, that exist from the beginning: `prealloc=80`.
    made_of_ten: u64,
}

fn personality(name: &str) -> Personality {
    match name {
        "createfiles" => Personality { steps: CREATE_FILES_STEPS, width: 100, made_of_ten: 0 },
        "varmail" => Personality { steps: VARMAIL_STEPS, width: 1_000_000, made_of_ten: 8 },
        "fileserver" => Personality { steps: FILE_SERVER_STEPS, width: 20, made_of_ten: 8 },
        other => unreachable!("'{other}' is no line of the registry"),
    }
}

/// A thread, with its share of the files.
struct Thread {
    steps: &'static [Step],
    rounds: u64,
    width: u64,
    mean: u64,
    there: Vec<u64>,
    missing: Vec<u64>,
    choices: Choices,
    watch: Watch,
}

impl Thread {
    /// Returns a random existing file, if there is one.
    fn any(&mut self) -> Option<u64> {
        let count = self.there.len() as u64;
        (count > 0).then(|| self.there[self.choices.below(count) as usize])
    }

    fn take(choices: &mut Choices, from: &mut Vec<u64>) -> Option<u64> {
        let count = from.len() as u64;
        (count > 0).then(|| from.swap_remove(choices.below(count) as usize))
    }

    fn path(&self, number: u64) -> String {
        tree_path(number, self.width)
    }

    async fn step<F: Files>(&mut self, step: Step, meter: &Meter<F>, contents: &[u8]) -> Result<(), LoadError> {
        match step {
            Step::Remove => {
                let Some(number) = Self::take(&mut self.choices, &mut self.there) else { return Ok(()) };
                meter.remove(&self.path(number)).await?;
                self.missing.push(number);
            }
            Step::Make | Step::MakeDurable => {
                let Some(number) = Self::take(&mut self.choices, &mut self.missing) else { return Ok(()) };
                let file = meter.create(&self.path(number)).await?;
                let is_durable = step == Step::MakeDurable;
                let bytes =
                    if is_durable { self.choices.below(APPEND_BYTES) } else { gamma(&mut self.choices, self.mean) };
                meter.write_pieces(&file, 0, bytes, PIECE, contents).await?;
                if is_durable {
                    meter.sync(&file).await?;
                }
                meter.close(file).await?;
                self.there.push(number);
            }
            Step::Append | Step::ReadAndAppend => {
                let Some(number) = self.any() else { return Ok(()) };
                let path = self.path(number);
                let file = meter.open(&path).await?;
                let end = match step {
                    Step::ReadAndAppend => meter.read_whole(&file, PIECE).await?,
                    _ => meter.size(&path).await?,
                };
                let bytes = self.choices.below(APPEND_BYTES);
                meter.write_pieces(&file, end, bytes, PIECE, contents).await?;
                if step == Step::ReadAndAppend {
                    meter.sync(&file).await?;
                }
                meter.close(file).await?;
            }
            Step::Read => {
                let Some(number) = self.any() else { return Ok(()) };
                let file = meter.open(&self.path(number)).await?;
                meter.read_whole(&file, PIECE).await?;
                meter.close(file).await?;
            }
            Step::Stat => {
                let Some(number) = self.any() else { return Ok(()) };
                meter.size(&self.path(number)).await?;
            }
        }
        Ok(())
    }
}

impl Worker for Thread {
    type Outcome = Measured;

    async fn run<F: Files>(mut self, files: F) -> Result<Measured, LoadError> {
        let meter = Meter::new(&files, &self.watch);
        let contents = Choices::new(1).bytes(PIECE);
        for _ in 0..self.rounds {
            for step in self.steps {
                self.step(*step, &meter, &contents).await?;
            }
        }
        Ok(meter.into_measured())
    }
}

pub(super) async fn run<F: Files, E: FnMut(&Phase)>(name: &str, run: &mut Run<'_, F, E>) -> Result<(), LoadError> {
    let personality = personality(name);
    let sizes = run.sizes();
    let (files, mean) = (sizes.files.unwrap_or(0), sizes.file_bytes.unwrap_or(0));
    let workers = sizes.workers.unwrap_or(1).max(1);
    let is_made = |number: u64| number / workers % 10 < personality.made_of_ten;
    let mut choices = run.choices();
    run.phase("pre-allocate", async |meter| {
        for directory in tree_directories(files, personality.width) {
            meter.make_directory(&directory).await?;
        }
        let contents = Choices::new(1).bytes(PIECE);
        let made: Vec<u64> = (0..files).filter(|number| is_made(*number)).collect();
        for number in &made {
            let file = meter.create(&tree_path(*number, personality.width)).await?;
            meter.write_pieces(&file, 0, gamma(&mut choices, mean), PIECE, &contents).await?;
            meter.close(file).await?;
        }
        Ok(made.len() as u64)
    })
    .await?;
    let share = |worker: u64, wanted: bool| {
        (worker..files).step_by(workers as usize).filter(|number| is_made(*number) == wanted).collect::<Vec<u64>>()
    };
    let threads: Vec<Thread> = (0..workers)
        .map(|worker| {
            let missing = share(worker, false);
            let rounds =
                sizes.operations.map_or(missing.len() as u64, |all| all / workers + u64::from(worker < all % workers));
            Thread {
                steps: personality.steps,
                rounds,
                width: personality.width,
                mean,
                there: share(worker, true),
                missing,
                choices: Choices::new(run.asked.seed + 1 + worker),
                watch: run.asked.watch.clone(),
            }
        })
        .collect();
    let rounds = threads.iter().map(|thread| thread.rounds).sum();
    let began_ns = run.files.now_ns();
    let outcomes = run.files.together(threads).await?;
    let meter = Meter::new(run.files, &run.asked.watch);
    meter.sync_all().await?;
    let mut measured = meter.into_measured();
    outcomes.iter().for_each(|outcome| add(&mut measured, outcome));
    let elapsed_ns = run.files.now_ns() - began_ns;
    run.end(Phase { name: "run", began_ns, elapsed_ns, done: rounds, measured });
    Ok(())
}
