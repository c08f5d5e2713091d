//! Capacity (Singh 2014 §5.3): how much larger than its contents a caveat disk must be, so that ageing never runs out
//! of space.
//!
//! Contiguous files need only the allocation algorithm (`allocator`). Files in several extents need the whole file
//! system. There, the disk and the metadata are in memory and take no time. The metadata are on a device of their own,
//! because the paper counts "only the size of the data blocks", and so that the head of the disk stays where the last
//! *file* was written. Each operation is committed before the next, so that deleted blocks are free at once, as in the
//! paper's bitmap. For contiguous files, both ways give the same results (by test).
//!
//! Nearly always a disk is large enough if a smaller one is. That is not certain, since the files of a larger disk lie
//! elsewhere. The search assumes it: the disk found is large enough, and one that is a step smaller is not.

mod allocator;

use std::rc::Rc;

use uuid::Uuid;

use super::age::{Age, Aged, DeleteOrder, age};
use super::{LoadError, OnCore};
use crate::core::{Bounds, MakeOptions, MountOptions, make};
use crate::device::memory::Memory;
use crate::device::{Device, Geometry, Kind};
use crate::error::FsError;
use crate::store::Usage;
use crate::{Executor, Fs};

/// Number of units in an over-allocation of 100 percent. The unit is a hundredth of a percent.
pub const PARTS: u64 = 10_000;
/// Minimum number of blocks for metadata.
const METADATA_BLOCKS_MIN: u64 = 2048;

/// Parameters of a search for the smallest sufficient over-allocation. Over-allocation is the space for data beyond the
/// usable capacity, as a share of the usable capacity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Drive isolation distance (DID) of the caveat disk, in blocks of 4 KiB: a write destroys no block more than so
    /// many blocks after its end.
    pub isolation: u64,
    /// Drive no overlap range (DNOR) of the caveat disk, in blocks of 4 KiB: a write never destroys the so many blocks
    /// directly after its first block.
    pub no_overlap: u64,
    /// Name of the allocation algorithm of the store, such as `best`.
    pub fit: String,
    /// Whether a file may have several extents. Otherwise every file is contiguous.
    pub in_pieces: bool,
    /// Parameters of the ageing: operations, seed, and size to be filled. That size is the usable capacity.
    pub age: Age,
    /// Resolution of the search, in hundredths of a percent of the usable capacity: only multiples of it are tried.
    pub step: u64,
    /// Largest over-allocation to try, in hundredths of a percent of the usable capacity, rounded down to a multiple of
    /// `step`.
    pub most: u64,
}

impl Capacity {
    /// Returns the paper's parameters for allocation algorithm `fit` and DID `isolation`, in blocks of 4 KiB: 1 GiB of
    /// contiguous files, 100,000 operations, seed 1, deletes with an equal chance of every file. DNOR is 6 blocks. The
    /// search has a resolution of one percent, up to an over-allocation of 200 percent.
    pub fn of_the_paper(fit: &str, isolation: u64) -> Capacity {
        Capacity {
            isolation,
            no_overlap: 6,
            fit: fit.into(),
            in_pieces: false,
            age: Age { fill_blocks: 262_144, operations: 100_000, seed: 1, deletes: DeleteOrder::Random },
            step: PARTS / 100,
            most: 2 * PARTS,
        }
    }

    /// Returns the number of blocks of 4 KiB for data: the usable capacity, plus `extra` hundredths of a percent of it
    /// (over-allocation), rounded down.
    pub fn blocks_with(&self, extra: u64) -> u64 {
        self.age.fill_blocks + self.age.fill_blocks * extra / PARTS
    }
}

/// One run of the ageing on a disk with a given over-allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trial {
    /// Over-allocation, in hundredths of a percent of the usable capacity.
    pub extra: u64,
    /// Result of the ageing: counts of its operations, and the reason of its end.
    pub aged: Aged,
    /// Space usage of the store at the end of the ageing, in blocks of 4 KiB; all 0 for [`Trial::interrupted`].
    pub usage: Usage,
}

impl Trial {
    /// Returns a trial with over-allocation `extra`, in hundredths of a percent, that was ended before its first
    /// operation. All its counts are 0.
    pub fn interrupted(extra: u64) -> Trial {
        Trial { extra, aged: Aged { is_interrupted: true, ..Aged::default() }, usage: Usage::default() }
    }

    /// Returns whether the ageing did all its operations: it neither ran out of space nor was ended by the `watch`
    /// function.
    pub fn is_complete(&self) -> bool {
        self.aged.full_at.is_none() && !self.aged.is_interrupted
    }
}

/// Result of a search for the smallest sufficient over-allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// The smallest over-allocation with which the ageing did all its operations, and its trial.
    At(Trial),
    /// The ageing ran out of space even with the largest over-allocation; the value is that trial.
    Never(Trial),
    /// The `watch` function ended the search before its result was known.
    Interrupted,
}

/// Ages a new caveat disk with over-allocation `extra`, in hundredths of a percent. After each operation `watch` gets
/// the number of operations done, and returns whether to continue. A lack of space ends the ageing and is no error. The
/// usage has only `blocks`, `live`, `unusable` and `free_runs`, except with files in several extents.
///
/// # Errors
/// There is no such allocation algorithm. With files in several extents also: the file system could not be made, or an
/// operation failed for a reason other than a lack of space.
pub fn run(asked: &Capacity, extra: u64, watch: impl Fn(u64) -> bool + 'static) -> Result<Trial, LoadError> {
    if asked.in_pieces { run_on_core(asked, extra, watch) } else { allocator::run(asked, extra, watch) }
}

/// Ages a new caveat disk like [`run`], with the whole file system.
fn run_on_core(asked: &Capacity, extra: u64, watch: impl Fn(u64) -> bool + 'static) -> Result<Trial, LoadError> {
    let executor = Executor::in_virtual_time();
    let (own, asked) = (executor.clone(), asked.clone());
    let task = async move {
        let fs = fresh(&own, &asked, extra).await.map_err(|error| not_made(error.to_string()))?;
        let files = OnCore::new(&fs, "aged").await?;
        let aged = age(&files, &asked.age, watch).await?;
        Ok(Trial { extra, aged, usage: fs.status().usage })
    };
    let trial = executor.run(task).expect("some operation of the load can always go on");
    executor.shut_down();
    trial
}

fn not_made(reason: String) -> LoadError {
    LoadError { operation: "make", path: "a file system in memory".into(), reason, is_no_space: false }
}

/// Makes and mounts a new file system on a new disk.
async fn fresh(executor: &Executor, asked: &Capacity, extra: u64) -> Result<Fs, FsError> {
    let &Capacity { isolation, no_overlap, .. } = asked;
    // The first block holds the superblock. The blocks that its write destroys are added to the size.
    let blocks = 1 + isolation.max(no_overlap) + asked.blocks_with(extra);
    let geometry = Geometry { blocks, kind: Kind::Caveat { isolation, no_overlap } };
    let data = Device::new(executor, "disk", Box::new(Memory::new(geometry)));
    let geometry = Geometry { blocks: (blocks / 4).max(METADATA_BLOCKS_MIN), kind: Kind::Plain };
    let metadata = Device::new(executor, "metadata", Box::new(Memory::new(geometry)));
    let mut options = vec![("fit".to_string(), asked.fit.clone())];
    options.extend(asked.in_pieces.then(|| ("extents".into(), "on".into())));
    let made = MakeOptions { uuid: Some(Uuid::from_u128(1)), options, ..MakeOptions::default() };
    make(&data, Some(&metadata), &made, 0).await?;
    let bounds = Bounds { pending_bytes: 1, ..Bounds::default() };
    let options = MountOptions { bounds: Some(bounds), ..MountOptions::default() };
    Ok(Fs::mount(executor, &[data, metadata], &options).await?.0)
}

/// Searches the smallest over-allocation with which the ageing does all its operations: 0 first, then by doubling, then
/// by bisection. Only multiples of `asked.step` up to `asked.most` are tried. `watch` gets the over-allocation tried,
/// in hundredths of a percent, and the number of operations done. It returns whether to continue.
///
/// # Errors
/// A file system could not be made, or an operation failed for a reason other than a lack of space.
///
/// # Panics
/// `asked.step` is 0.
pub fn search(asked: &Capacity, watch: impl Fn(u64, u64) -> bool + 'static) -> Result<Found, LoadError> {
    let watch = Rc::new(watch);
    search_by(asked.step, asked.most, |extra| {
        let watch = watch.clone();
        run(asked, extra, move |done| watch(extra, done))
    })
}

/// Searches the smallest sufficient over-allocation among the multiples of `step`, 0 included, up to `most`, in
/// hundredths of a percent. `run` runs the trial with a given over-allocation; an interrupted trial ends the search.
/// The search assumes that a larger over-allocation suffices if a smaller one does.
///
/// # Errors
/// The first error of `run`.
///
/// # Panics
/// `step` is 0.
pub fn search_by(
    step: u64,
    most: u64,
    mut run: impl FnMut(u64) -> Result<Trial, LoadError>,
) -> Result<Found, LoadError> {
    assert!(step > 0, "a search has steps");
    let last = most / step;
    // Both are in steps: everything below `low` is too small, and `high` is large enough.
    let (mut low, mut next) = (0, 0);
    let (mut high, mut found) = loop {
        let trial = run(next * step)?;
        if trial.aged.is_interrupted {
            return Ok(Found::Interrupted);
        }
        if trial.is_complete() {
            break (next, trial);
        }
        if next == last {
            return Ok(Found::Never(trial));
        }
        low = next + 1;
        next = (next * 2).max(1).min(last);
    };
    while low < high {
        let middle = low + (high - low) / 2;
        let trial = run(middle * step)?;
        if trial.aged.is_interrupted {
            return Ok(Found::Interrupted);
        }
        if trial.is_complete() {
            (high, found) = (middle, trial);
        } else {
            low = middle + 1;
        }
    }
    Ok(Found::At(found))
}

#[cfg(test)]
mod tests;
