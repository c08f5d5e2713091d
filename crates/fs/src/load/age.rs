//! Ageing (Singh 2014 §5.3): files are created and deleted until the free space is as fragmented as after long use.
//!
//! The paper's tool is lost, and this module follows its description. The tool "takes the filesystem size to fill up"
//! and creates four files for each deleted one until that size is reached. Then it "keeps deleting and re-creating new
//! files to maintain the filled-up size". The sizes of 4 and 8 KB have the largest weights, and files of 4 MB come "a
//! lot less frequently". In 1 GB, 100,000 operations allocate 2.5 times the filled size. [`DeleteOrder`] says which
//! file is deleted.
//!
//! The weights ([`SIZES`]) are ours, chosen once to fit this description: 4 and 8 KB are 70 % of all files, and from
//! there each doubled size is about three fifths as frequent. The paper's factor of 2.5 fixes their mean m, in blocks
//! of 4 KiB. To fill F blocks takes F / 0.6 m operations, four fifths of which create a file. Half of all other
//! operations create one, too. So N operations allocate F / 2 + N m / 2 blocks. With 2.5 F = 655,360 blocks in 100,000
//! operations, m is 10.49 blocks, or 42 KiB.
//!
//! Invariants:
//! 1. Live files never have more blocks than the size to be filled.
//! 2. Once a file has not fitted, a file is created whenever the next one fits, and one is deleted whenever it does
//!    not.

use live::Live;
pub use order::DeleteOrder;

use super::random::Choices;
use super::{Files, LoadError};
use crate::device::BLOCK_BYTES;

mod live;
mod order;

/// Sizes of files in blocks of 4 KiB, each with its weight: the number of files of this size among 10,000. The mean is
/// 10.477 blocks, or 41.9 KiB.
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
/// Number of creates among five operations, until the size is reached.
const CREATES_OF_FIVE: u64 = 4;

/// Parameters of the ageing of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Age {
    /// Maximum of the blocks of all live files together, in blocks of 4 KiB. The ageing fills the file system until the
    /// next file does not fit into this size, and then keeps it filled. It does not come so far if `operations` is too
    /// small.
    pub fill_blocks: u64,
    /// Number of operations to do: creations and deletions of files together.
    pub operations: u64,
    /// Seed of all random choices of the ageing: sizes, operations, and files to delete. Equal seeds give equal runs.
    pub seed: u64,
    /// Order in which files are deleted.
    pub deletes: DeleteOrder,
}

/// One operation of the ageing: the creation or the deletion of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Creates a file and writes it.
    Create {
        /// Number of the file: the number of files that were created before it.
        file: u64,
        /// Size of the file in blocks of 4 KiB.
        blocks: u64,
    },
    /// Deletes a file that was created before.
    Delete {
        /// Number of the file to delete: the number of files that were created before it.
        file: u64,
        /// Size of the file in blocks of 4 KiB.
        blocks: u64,
    },
}

/// Iterator over the operations of the ageing. It keeps the list of the files that are live at the current moment.
#[derive(Clone, Debug)]
pub struct Steps {
    asked: Age,
    choices: Choices,
    /// The [`SIZES`] that are no larger than the size to be filled.
    sizes: Vec<(u64, u64)>,
    live: Live,
    created: u64,
    /// Blocks of the next file to be created.
    next_blocks: u64,
    done: u64,
    steady_after: Option<u64>,
}

impl Steps {
    /// Returns the operations of the ageing with the parameters `asked`. Sizes larger than `asked.fill_blocks` are left
    /// out.
    ///
    /// # Panics
    /// `asked.fill_blocks` is 0.
    pub fn new(asked: &Age) -> Steps {
        assert!(asked.fill_blocks > 0, "ageing fills something");
        let mut choices = Choices::new(asked.seed);
        let sizes: Vec<_> = SIZES.into_iter().filter(|(blocks, _)| *blocks <= asked.fill_blocks).collect();
        let next_blocks = choices.weighted(&sizes);
        let (live, asked) = (Live::new(asked.deletes), *asked);
        Steps { asked, choices, sizes, live, created: 0, next_blocks, done: 0, steady_after: None }
    }

    /// Returns the number of operations done when, for the first time, the next file did not fit into the size to be
    /// filled ([`Age::fill_blocks`]); `None` if that has not happened yet.
    pub fn steady_after(&self) -> Option<u64> {
        self.steady_after
    }

    fn creates(&mut self) -> bool {
        let fits = self.live.blocks() + self.next_blocks <= self.asked.fill_blocks;
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
            self.live.insert(file, blocks);
            self.next_blocks = self.choices.weighted(&self.sizes);
            Step::Create { file, blocks }
        } else {
            let (file, blocks) = self.live.remove_next(&mut self.choices);
            Step::Delete { file, blocks }
        };
        self.done += 1;
        Some(step)
    }
}

/// Result of the ageing: counts of its operations, and the reason of its end.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Aged {
    /// Number of creations and deletions of files that were done without an error.
    pub operations: u64,
    /// Number of files that were created.
    pub creates: u64,
    /// Number of files that were deleted.
    pub deletes: u64,
    /// Number of blocks of 4 KiB of all created files.
    pub blocks_created: u64,
    /// Number of blocks of 4 KiB of all deleted files.
    pub blocks_deleted: u64,
    /// Number of operations done when, for the first time, the next file did not fit into the size to be filled
    /// ([`Age::fill_blocks`]); `None` if that did not happen.
    pub steady_after: Option<u64>,
    /// Number, counted from 0, of the operation that ran out of space, and with which the ageing ended; `None` if none
    /// did.
    pub full_at: Option<u64>,
    /// Whether the `watch` function returned false after an operation, and so ended the ageing.
    pub is_interrupted: bool,
    /// Duration of the ageing by the clock of the load ([`Files::now_ns`]), in nanoseconds.
    pub elapsed_ns: u64,
}

/// Ages a file system: creates and deletes files with the parameters `asked`, and returns counts of these operations.
/// After each operation `watch` gets the number of operations done, and returns whether to continue. A lack of space
/// ends the ageing and is no error. The remaining files stay. Each directory got 1000 files, in the order of their
/// creation, some of which were deleted since.
///
/// # Errors
/// An operation failed for a reason other than a lack of space.
///
/// # Panics
/// `asked.fill_blocks` is 0.
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
    /// Counts an operation that was done without an error.
    pub(super) fn count(&mut self, step: Step) {
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
                // A file that could not be written must not stay as an empty one.
                files.remove(&path).await?;
            }
            written.and(closed)
        }
    }
}

#[cfg(test)]
mod tests;
