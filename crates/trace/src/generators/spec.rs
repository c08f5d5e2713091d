//! What a workload is: phases of requests and of idleness, and the rules they must keep.
//!
//! Invariants:
//! 1. A [`WorkloadSpec`] that exists was checked: every phase ends, every size is whole sectors, and no two words
//!    contradict each other. Only what depends on the drive's size is left to the generator.
//! 2. Its canonical text (`Display`) reads back as an equal value.

use imbrex_units::{Operation, SimDuration};

use super::distribution::Distribution;
use super::error::Complaint;
use super::quantity::{Share, Span};

/// Bytes of a sector.
pub(super) const SECTOR_BYTES: u64 = 512;

/// A workload in fio's words: phases, and what holds for all of them.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkloadSpec {
    pub(super) phases: Vec<Phase>,
    pub(super) whole: Whole,
}

/// What holds for the workload as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Whole {
    pub seed: u64,
    pub loops: u64,
    pub iodepth: u32,
}

impl Whole {
    pub const DEFAULT: Whole = Whole { seed: 1, loops: 1, iodepth: 1 };
}

/// A phase of a workload.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Phase {
    /// Nothing for this long after all before it has completed.
    Idle(SimDuration),
    /// Requests.
    Run(Box<Job>),
}

/// How requests of a workload arrive unless the user says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// So many are always outstanding.
    Closed {
        /// How many.
        depth: u32,
    },
    /// At the times the source gives them.
    AsTimed,
    /// As those of a trace: at their distances, but no more than a queue holds at once.
    AsTraced,
}

/// What a phase does, before its sizes and places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Read,
    Write,
    Trim,
    ReadWrite,
}

/// `rw`, with its suffix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pattern {
    pub mode: Mode,
    pub random: bool,
    /// After the colon: for a sequential pattern the bytes left out after each request, for a random one the requests
    /// made in sequence before the next random place. Zero where there is no colon.
    pub suffix: u64,
}

/// A value for reads, for writes and for trims.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PerOperation<T> {
    pub read: T,
    pub write: T,
    pub trim: T,
}

impl<T: Clone + PartialEq> PerOperation<T> {
    pub fn all(value: T) -> PerOperation<T> {
        PerOperation { read: value.clone(), write: value.clone(), trim: value }
    }

    pub fn get(&self, operation: Operation) -> &T {
        match operation {
            Operation::Read => &self.read,
            Operation::Write => &self.write,
            Operation::Trim => &self.trim,
            Operation::Flush => unreachable!("a flush has no size and no place"),
        }
    }

    /// From one value for all, two for reads and the rest, or three.
    pub fn from_list(values: Vec<T>) -> Option<PerOperation<T>> {
        let mut values = values.into_iter();
        let read = values.next()?;
        let write = values.next().unwrap_or_else(|| read.clone());
        let trim = values.next().unwrap_or_else(|| write.clone());
        values.next().is_none().then_some(PerOperation { read, write, trim })
    }

    /// The shortest list [`PerOperation::from_list`] reads back.
    pub fn to_list(&self) -> Vec<&T> {
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

/// A phase of requests, every word resolved.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Job {
    pub pattern: Pattern,
    pub sizes: PerOperation<Vec<SizeShare>>,
    /// Zero: the smallest block size of the operation.
    pub align_bytes: u64,
    pub size: Option<Span>,
    pub offset: Span,
    /// Zero: not given.
    pub io_bytes: u64,
    pub distribution: Distribution,
    pub random_map: bool,
    pub random_share: PerOperation<Share>,
    pub read_share: Share,
    /// Zero: not given.
    pub number_ios: u64,
    /// Zero: not given.
    pub runtime: SimDuration,
    pub thinktime: SimDuration,
    pub thinktime_blocks: u64,
    /// Requests per second in thousandths; zero: as a place in the queue is free.
    pub rate_thousandths: u64,
    pub poisson: bool,
    /// Writes between two flushes; zero: none.
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
    /// The operations the pattern makes.
    pub fn operations(&self) -> &'static [Operation] {
        match self.pattern.mode {
            Mode::Read => &[Operation::Read],
            Mode::Write => &[Operation::Write],
            Mode::Trim => &[Operation::Trim],
            Mode::ReadWrite => &[Operation::Read, Operation::Write],
        }
    }

    /// Whether only the region's size ends the phase.
    pub fn ends_with_region(&self) -> bool {
        self.number_ios == 0 && self.runtime.is_zero() && self.io_bytes == 0
    }

    /// The one block size of all its operations, if there is one.
    pub fn single_size(&self) -> Option<u64> {
        let first = self.sizes.get(self.operations()[0]);
        let alike = self.operations().iter().all(|&operation| self.sizes.get(operation) == first);
        (alike && first.len() == 1).then(|| first[0].bytes)
    }

    /// The words taken together.
    pub fn check(&self) -> Result<(), Complaint> {
        if self.ends_with_region() && self.size.is_none() {
            return Err(Complaint::new(
                "it never ends",
                "add number_ios=…, io_size=…, runtime=… or size=… (size=100% is the whole drive)",
            ));
        }
        if self.rate_thousandths > 0 && !self.thinktime.is_zero() {
            return Err(Complaint::new(
                "rate_iops and thinktime both say when requests come",
                "leave out one, or set the inherited one to 0",
            ));
        }
        self.check_suffix()?;
        self.check_random_map()
    }

    fn check_suffix(&self) -> Result<(), Complaint> {
        if self.pattern.random || self.pattern.suffix.is_multiple_of(SECTOR_BYTES) {
            return Ok(());
        }
        Err(Complaint::new(
            format!("a stride of {} bytes is not whole sectors", self.pattern.suffix),
            "write a multiple of 512",
        ))
    }

    fn check_random_map(&self) -> Result<(), Complaint> {
        if !self.random_map || !self.pattern.random {
            return Ok(());
        }
        let complain = |problem: &str, remedy: &str| {
            Err(Complaint::new(format!("randommap=on writes each block once, but {problem}"), remedy))
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
    /// The seed of its random numbers.
    pub fn seed(&self) -> u64 {
        self.whole.seed
    }

    /// The same workload with other random numbers.
    pub fn with_seed(mut self, seed: u64) -> WorkloadSpec {
        self.whole.seed = seed;
        self
    }

    /// How many requests it keeps outstanding.
    pub fn iodepth(&self) -> u32 {
        self.whole.iodepth
    }

    /// How its requests arrive unless the user says otherwise: as timed where its phases have a `rate_iops`.
    pub fn arrival(&self) -> Arrival {
        let timed = |phase: &Phase| matches!(phase, Phase::Run(job) if job.rate_thousandths > 0);
        if self.phases.iter().any(timed) {
            return Arrival::AsTimed;
        }
        Arrival::Closed { depth: self.whole.iodepth }
    }

    /// Where the regions end that are given in bytes, in sectors of 512 bytes: a drive has to have so many. Of regions that
    /// are shares of the drive, or the rest of it, none says so.
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
