//! The description of a workload: phases with requests, idle phases, and the rules that they must obey.
//!
//! Invariants:
//! 1. Every [`WorkloadSpec`] was checked: each phase ends, each size is a whole number of sectors, and no two words
//!    contradict each other. The generator checks only the rules that depend on the drive's size.
//! 2. Its canonical text (`Display`) reads back as an equal value.

use imbrex_units::{Operation, SimDuration};

use super::distribution::Distribution;
use super::error::WordError;
use super::quantity::{Share, Span};

/// Bytes of a sector.
pub(super) const SECTOR_BYTES: u64 = 512;

/// The checked description of a workload in fio's words: its phases, and the settings that apply to all phases.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkloadSpec {
    pub(super) phases: Vec<Phase>,
    pub(super) whole: Whole,
}

/// The settings for the whole workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Whole {
    pub seed: u64,
    pub loops: u64,
    pub iodepth: u32,
}

impl Whole {
    pub(super) const DEFAULT: Whole = Whole { seed: 1, loops: 1, iodepth: 1 };
}

/// A phase of a workload.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Phase {
    /// A pause of this length after all earlier requests have completed.
    Idle(SimDuration),
    /// A phase with requests.
    Run(Box<Job>),
}

/// The way in which the requests of a workload arrive at the drive, unless the user chooses another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// In a closed loop: a new request arrives as soon as one completes, so that a constant number is outstanding.
    Closed {
        /// Number of outstanding requests, at least 1.
        depth: u32,
    },
    /// At the times that the source gives, whether or not the drive keeps up.
    AsTimed,
    /// Like the requests of a recorded trace: at the distances in time that the source gives, but with no more
    /// outstanding requests than the drive's queue holds. If the queue is full, later requests are delayed.
    AsTraced,
}

/// The operations of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Read,
    Write,
    Trim,
    ReadWrite,
}

/// The value of `rw`, with its suffix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pattern {
    pub mode: Mode,
    pub random: bool,
    /// Number after the colon in the value of `rw`, or 0 without a colon. In a sequential pattern: the bytes skipped
    /// after each request. In a random pattern: the number of consecutive requests at each random position.
    pub suffix: u64,
}

/// One value each for reads, writes and trims.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PerOperation<T> {
    pub read: T,
    pub write: T,
    pub trim: T,
}

impl<T: Clone + PartialEq> PerOperation<T> {
    pub(super) fn all(value: T) -> PerOperation<T> {
        PerOperation { read: value.clone(), write: value.clone(), trim: value }
    }

    pub(super) fn get(&self, operation: Operation) -> &T {
        match operation {
            Operation::Read => &self.read,
            Operation::Write => &self.write,
            Operation::Trim => &self.trim,
            Operation::Flush => unreachable!("a flush has no size and no place"),
        }
    }

    /// Builds the values from a list: one value for all, two for reads and the rest, or three. Returns `None` for other
    /// lengths.
    pub(super) fn from_list(values: Vec<T>) -> Option<PerOperation<T>> {
        let mut values = values.into_iter();
        let read = values.next()?;
        let write = values.next().unwrap_or_else(|| read.clone());
        let trim = values.next().unwrap_or_else(|| write.clone());
        values.next().is_none().then_some(PerOperation { read, write, trim })
    }

    /// Returns the shortest list from which [`PerOperation::from_list`] builds these values.
    pub(super) fn to_list(&self) -> Vec<&T> {
        let mut list = vec![&self.read, &self.write, &self.trim];
        if list[2] == list[1] {
            list.pop();
            if list[1] == list[0] {
                list.pop();
            }
        }
        list
    }
}

/// A block size and its share of the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SizeShare {
    pub bytes: u64,
    pub share: Share,
}

/// A phase with requests, with the values of all words.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Job {
    pub pattern: Pattern,
    pub sizes: PerOperation<Vec<SizeShare>>,
    /// Alignment of random positions within the region, in bytes. 0 means the smallest block size of the operation.
    pub align_bytes: u64,
    pub size: Option<Span>,
    pub offset: Span,
    /// Number of bytes read, written and trimmed after which the phase ends; 0 for no such limit.
    pub io_bytes: u64,
    pub distribution: Distribution,
    pub random_map: bool,
    pub random_share: PerOperation<Share>,
    pub read_share: Share,
    /// Number of reads, writes and trims after which the phase ends; 0 for no such limit. Flushes do not count.
    pub number_ios: u64,
    /// Simulated time after which the phase ends; 0 for no such limit.
    pub runtime: SimDuration,
    pub thinktime: SimDuration,
    pub thinktime_blocks: u64,
    /// Rate of the phase's requests in thousandths of a request per second. 0 means no rate: a request arrives whenever
    /// a slot in the queue is free.
    pub rate_thousandths: u64,
    pub poisson: bool,
    /// Number of writes after which the phase makes a flush; 0 for no flushes.
    pub flush_every: u64,
    pub fua: bool,
}

impl Default for Job {
    fn default() -> Job {
        Job {
            pattern: Pattern { mode: Mode::Read, random: false, suffix: 0 },
            sizes: PerOperation::all(vec![SizeShare { bytes: 4096, share: Share::ALL }]),
            align_bytes: 0,
            size: None,
            offset: Span::Bytes(0),
            io_bytes: 0,
            distribution: Distribution::Uniform,
            random_map: false,
            random_share: PerOperation::all(Share::ALL),
            read_share: Share::from_millionths(500_000),
            number_ios: 0,
            runtime: SimDuration::ZERO,
            thinktime: SimDuration::ZERO,
            thinktime_blocks: 1,
            rate_thousandths: 0,
            poisson: false,
            flush_every: 0,
            fua: false,
        }
    }
}

impl Job {
    /// Returns the operations of the pattern.
    pub(super) fn operations(&self) -> &'static [Operation] {
        match self.pattern.mode {
            Mode::Read => &[Operation::Read],
            Mode::Write => &[Operation::Write],
            Mode::Trim => &[Operation::Trim],
            Mode::ReadWrite => &[Operation::Read, Operation::Write],
        }
    }

    /// Returns whether only the region's size ends the phase.
    pub(super) fn ends_with_region(&self) -> bool {
        self.number_ios == 0 && self.runtime.is_zero() && self.io_bytes == 0
    }

    /// Returns the block size if all operations of the phase have the same single block size.
    pub(super) fn single_size(&self) -> Option<u64> {
        let first = self.sizes.get(self.operations()[0]);
        let alike = self.operations().iter().all(|&operation| self.sizes.get(operation) == first);
        (alike && first.len() == 1).then(|| first[0].bytes)
    }

    /// Checks that the words do not contradict each other.
    pub(super) fn check(&self) -> Result<(), WordError> {
        if self.ends_with_region() && self.size.is_none() {
            return Err(WordError::new(
                "it never ends",
                "add number_ios=…, io_size=…, runtime=… or size=… (size=100% is the whole drive)",
            ));
        }
        if self.rate_thousandths > 0 && !self.thinktime.is_zero() {
            return Err(WordError::new(
                "rate_iops and thinktime both say when requests come",
                "leave out one, or set the inherited one to 0",
            ));
        }
        self.check_suffix()?;
        self.check_random_map()
    }

    fn check_suffix(&self) -> Result<(), WordError> {
        if self.pattern.random || self.pattern.suffix.is_multiple_of(SECTOR_BYTES) {
            return Ok(());
        }
        Err(WordError::new(
            format!("a stride of {} bytes is not whole sectors", self.pattern.suffix),
            "write a multiple of 512",
        ))
    }

    fn check_random_map(&self) -> Result<(), WordError> {
        if !self.random_map || !self.pattern.random {
            return Ok(());
        }
        let complain = |problem: &str, remedy: &str| {
            Err(WordError::new(format!("randommap=on writes each block once, but {problem}"), remedy))
        };
        if self.single_size().is_none() {
            return complain("block sizes differ", "give one bs for all operations, or randommap=off");
        }
        if self.align_bytes != 0 {
            return complain("blockalign moves blocks into each other", "leave it out, or randommap=off");
        }
        if self.distribution != Distribution::Uniform {
            return complain("random_distribution prefers some", "use random_distribution=random, or randommap=off");
        }
        if self.random_share != PerOperation::all(Share::ALL) || self.pattern.suffix > 1 {
            return complain(
                "some requests are sequential",
                "use percentage_random=100 without rw=…:N, or randommap=off",
            );
        }
        Ok(())
    }
}

impl WorkloadSpec {
    /// Returns the seed of the workload's random numbers; 1 unless the description sets another.
    pub fn seed(&self) -> u64 {
        self.whole.seed
    }

    /// Returns this workload with `seed` as the seed of its random numbers.
    pub fn with_seed(mut self, seed: u64) -> WorkloadSpec {
        self.whole.seed = seed;
        self
    }

    /// Returns the number of requests that the workload keeps outstanding, for all phases; at least 1. It has no effect
    /// on phases with a `rate_iops`.
    pub fn iodepth(&self) -> u32 {
        self.whole.iodepth
    }

    /// Returns the way in which the requests arrive unless the user chooses another: [`Arrival::AsTimed`] if the phases
    /// have a `rate_iops`, else [`Arrival::Closed`] with the depth [`WorkloadSpec::iodepth`].
    pub fn arrival(&self) -> Arrival {
        let timed = |phase: &Phase| matches!(phase, Phase::Run(job) if job.rate_thousandths > 0);
        if self.phases.iter().any(timed) {
            return Arrival::AsTimed;
        }
        Arrival::Closed { depth: self.whole.iodepth }
    }

    /// Returns whether the addresses depend on the size of the drive: the offset or the size of a phase's region is a
    /// percentage of the drive, or the region has no size and reaches to the end of the drive.
    pub fn needs_device_size(&self) -> bool {
        self.phases.iter().any(|phase| match phase {
            Phase::Run(job) => !matches!((job.offset, job.size), (Span::Bytes(_), Some(Span::Bytes(_)))),
            Phase::Idle(_) => false,
        })
    }

    /// Returns the smallest size of the drive, in sectors of 512 bytes, that holds all regions whose offset and size
    /// are given in bytes: the largest end of such a region. Ignores regions that depend on the size of the drive.
    /// Returns 0 if all regions do.
    pub fn reach_sectors(&self) -> u64 {
        let end = |phase: &Phase| match phase {
            Phase::Run(job) => match (job.offset, job.size) {
                (Span::Bytes(offset), Some(Span::Bytes(size))) => {
                    (offset / SECTOR_BYTES).saturating_add(size / SECTOR_BYTES)
                }
                _ => 0,
            },
            Phase::Idle(_) => 0,
        };
        self.phases.iter().map(end).max().unwrap_or(0)
    }
}
