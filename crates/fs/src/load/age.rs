//! Ageing (Singh 2014 §5.3): files are created and deleted until free room is what long use leaves of it.
//!
//! The paper's tool is lost. What the paper says of it is kept: it "takes the filesystem size to fill up", creates four
//! files for each one it deletes until that is reached, then "keeps deleting and re-creating new files to maintain the
//! filled-up size"; the files it deletes are chosen at random; the heaviest weights are those of 4 and 8 KB, and files of
//! 4 MB come "a lot less frequently". 100,000 operations on 1 GB allocate 2.5 times the size that is filled.
//!
//! The weights ([`SIZES`]) are ours, chosen once by these words: 4 and 8 KB are 70 % of all files; from there each double
//! size comes about three fifths as often. That the paper's 2.5 follows fixes their mean m, in blocks of 4 KiB: filling F
//! blocks takes F / 0.6 m operations, four fifths of which create; of all N others half create. So F / 2 + N m / 2
//! blocks are allocated in N operations, and 2.5 F = 655,360 blocks in 100,000 means m = 10.49: 42 KiB.
//!
//! Invariants:
//! 1. Live files never have more blocks than are to be filled.
//! 2. Once a file did not fit, one is created whenever the next fits, and one deleted whenever it does not.

use super::random::Choices;
use super::{Files, LoadError};
use crate::device::BLOCK_BYTES;

/// Sizes in blocks of 4 KiB, and how many of 10,000 files have each. Their mean is 10.477 blocks: 41.9 KiB.
pub const SIZES: [(u64, u64); 11] = [
    (1, 3497),
    (2, 3500),
    (4, 1200),
    (8, 700),
    (16, 450),
    (32, 280),
    (64, 170),
    (128, 100),
    (256, 60),
    (512, 30),
    (1024, 13),
];

/// Files of one directory.
const FILES_A_DIRECTORY: u64 = 1000;
/// Creates for each delete until the size is reached: so many of five operations.
const CREATES_OF_FIVE: u64 = 4;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Age {
    /// Blocks of 4 KiB that live files are to have.
    pub fill_blocks: u64,
    /// Creates and deletes.
    pub operations: u64,
    /// The seed of all choices.
    pub seed: u64,
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A new file of so many blocks.
    Create {
        /// Its number: how many were created before it.
        file: u64,
        /// Its size.
        blocks: u64,
    },
    /// A file goes.
    Delete {
        /// Its number.
        file: u64,
        /// Its size.
        blocks: u64,
    },
}

/// What there is at a time: chooses the steps, one after the other.
#[derive(Clone, Debug)]
pub struct Steps {
    asked: Age,
    choices: Choices,
    /// Those of [`SIZES`] that are no larger than what is to be filled.
    sizes: Vec<(u64, u64)>,
    /// Number and blocks of every file that is live.
    live: Vec<(u64, u64)>,
    live_blocks: u64,
    created: u64,
    /// Blocks of the file that is created next.
    next_blocks: u64,
    done: u64,
    steady_after: Option<u64>,
}

impl Steps {
    /// The steps of `asked`, which fills at least a block.
    pub fn new(asked: &Age) -> Steps {
        assert!(asked.fill_blocks > 0, "ageing fills something");
        let mut choices = Choices::new(asked.seed);
        let sizes: Vec<_> = SIZES.into_iter().filter(|(blocks, _)| *blocks <= asked.fill_blocks).collect();
        let next_blocks = choices.weighted(&sizes);
        let (live, asked) = (Vec::new(), *asked);
        Steps { asked, choices, sizes, live, live_blocks: 0, created: 0, next_blocks, done: 0, steady_after: None }
    }

    /// After how many operations the size was reached.
    pub fn steady_after(&self) -> Option<u64> {
        self.steady_after
    }

    fn creates(&mut self) -> bool {
        let fits = self.live_blocks + self.next_blocks <= self.asked.fill_blocks;
        if !fits && self.steady_after.is_none() {
            self.steady_after = Some(self.done);
        }
        match self.steady_after {
            Some(_) => fits,
            None => self.live.is_empty() || self.choices.below(5) < CREATES_OF_FIVE,
        }
    }
}

impl Iterator for Steps {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if self.done == self.asked.operations {
            return None;
        }
        let step = if self.creates() {
            let (file, blocks) = (self.created, self.next_blocks);
            self.created += 1;
            self.live.push((file, blocks));
            self.live_blocks += blocks;
            self.next_blocks = self.choices.weighted(&self.sizes);
            Step::Create { file, blocks }
        } else {
            let chosen = self.choices.below(self.live.len() as u64) as usize;
            let (file, blocks) = self.live.swap_remove(chosen);
            self.live_blocks -= blocks;
            Step::Delete { file, blocks }
        };
        self.done += 1;
        Some(step)
    }
}

/// What ageing did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Aged {
    /// Creates and deletes that were done.
    pub operations: u64,
    /// Creates.
    pub creates: u64,
    /// Deletes.
    pub deletes: u64,
    /// Blocks of all files that were created.
    pub blocks_created: u64,
    /// Blocks of all files that were deleted.
    pub blocks_deleted: u64,
    /// After how many operations the size was reached.
    pub steady_after: Option<u64>,
    /// The operation for which there was no room, counted from 0; nothing was done after it.
    pub full_at: Option<u64>,
    /// Whether whoever watched ended it early.
    pub is_interrupted: bool,
    /// How long it took, by the clock of the file system.
    pub elapsed_ns: u64,
}

/// Ages a file system. `watch` is told after every operation how many are done, and says whether to go on. That there is
/// no room is no error: it is what ageing is to find out.
pub async fn age<F: Files>(files: &F, asked: &Age, mut watch: impl FnMut(u64) -> bool) -> Result<Aged, LoadError> {
    let mut aged = Aged::default();
    let mut steps = Steps::new(asked);
    let largest = SIZES.iter().map(|(blocks, _)| *blocks as usize).max().unwrap_or(0);
    let contents = Choices::new(asked.seed).bytes(largest * BLOCK_BYTES);
    let began_ns = files.now_ns();
    for step in steps.by_ref() {
        match perform(files, step, &contents).await {
            Ok(()) => aged.count(step),
            Err(error) if error.is_no_space => {
                aged.full_at = Some(aged.operations);
                break;
            }
            Err(error) => return Err(error),
        }
        if !watch(aged.operations) {
            aged.is_interrupted = true;
            break;
        }
    }
    aged.steady_after = steps.steady_after();
    aged.elapsed_ns = files.now_ns() - began_ns;
    Ok(aged)
}

impl Aged {
    fn count(&mut self, step: Step) {
        self.operations += 1;
        match step {
            Step::Create { blocks, .. } => {
                self.creates += 1;
                self.blocks_created += blocks;
            }
            Step::Delete { blocks, .. } => {
                self.deletes += 1;
                self.blocks_deleted += blocks;
            }
        }
    }
}

fn path_of(file: u64) -> String {
    format!("{:04}/{:03}", file / FILES_A_DIRECTORY, file % FILES_A_DIRECTORY)
}

async fn perform<F: Files>(files: &F, step: Step, contents: &[u8]) -> Result<(), LoadError> {
    match step {
        Step::Delete { file, .. } => files.remove(&path_of(file)).await,
        Step::Create { file, blocks } => {
            if file.is_multiple_of(FILES_A_DIRECTORY) {
                files.make_directory(&format!("{:04}", file / FILES_A_DIRECTORY)).await?;
            }
            let path = path_of(file);
            let open = files.create(&path).await?;
            let written = files.write(&open, 0, &contents[..blocks as usize * BLOCK_BYTES]).await;
            let closed = files.close(open).await;
            if written.is_err() {
                // What could not be written leaves no empty file behind.
                files.remove(&path).await?;
            }
            written.and(closed)
        }
    }
}

#[cfg(test)]
mod tests;
