//! Targets of the probe: things that read and write blocks, each with a clock.
//!
//! Invariants:
//! 1. No more operations are in flight than the requested depth; they complete in any order.
//! 2. Times never go back.

/// Largest operation for any target, bytes: about the least that every NBD server accepts, and enough for every
/// experiment.
pub const OPERATION_BYTES_MAX: u64 = 24 << 20;

/// Direction of the transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the drive.
    Read,
    /// To the drive.
    Write,
}

/// A read or a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Read or write.
    pub direction: Direction,
    /// First byte; a multiple of the sector size.
    pub offset: u64,
    /// Length in bytes; a multiple of the sector size.
    pub bytes: u64,
}

impl Operation {
    /// Returns a read.
    pub const fn read(offset: u64, bytes: u64) -> Operation {
        Operation { direction: Direction::Read, offset, bytes }
    }

    /// Returns a write.
    pub const fn write(offset: u64, bytes: u64) -> Operation {
        Operation { direction: Direction::Write, offset, bytes }
    }
}

/// A completed operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timed {
    /// The operation.
    pub operation: Operation,
    /// Time of submission, nanoseconds on the target's clock.
    pub begin_ns: u64,
    /// Time of completion, nanoseconds on the target's clock.
    pub end_ns: u64,
}

impl Timed {
    /// Returns the latency, nanoseconds.
    pub fn latency_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

/// Why an operation, or a whole test, did not complete.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TargetError {
    /// The target failed or refused the operation.
    #[error("{place}: {reason}")]
    Failed {
        /// Name of the target.
        place: String,
        /// The error, and how to avoid it.
        reason: String,
    },
    /// The target must not be written.
    #[error(transparent)]
    Refused(#[from] imbrex_safety::Refusal),
    /// The user interrupted the probe.
    #[error("interrupted")]
    Interrupted,
    /// The user's time budget is over.
    #[error("the budget was spent")]
    BudgetSpent,
}

impl TargetError {
    /// Returns a failure of `place`.
    pub fn failed(place: impl Into<String>, reason: impl Into<String>) -> TargetError {
        TargetError::Failed { place: place.into(), reason: reason.into() }
    }
}

/// Positions of the head over time, from a drive that can report them. They are shown beside the measurements, and
/// never used for inference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeadPath {
    /// Number of tracks from the outer to the inner diameter.
    pub tracks: u32,
    /// Points: when a transfer began, nanoseconds on the target's clock, and the number of tracks from the outer
    /// diameter.
    pub points: Vec<(u64, u32)>,
}

/// Fixed facts about a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// Name, as the user gave it.
    pub name: String,
    /// Size, bytes.
    pub size_bytes: u64,
    /// Sector size, bytes.
    pub sector_bytes: u32,
    /// Whether the clock is virtual: waiting costs the user no time.
    pub is_virtual: bool,
}

/// Returns the next operation, or nothing at the end.
pub type Next<'a> = dyn FnMut() -> Option<Operation> + 'a;

/// Receives each completed operation; returns whether to continue.
pub type Done<'a> = dyn FnMut(&Timed) -> bool + 'a;

/// A drive, or something like one, that can be probed.
pub trait Target {
    /// Returns the fixed facts about the target.
    fn about(&self) -> &About;

    /// Returns [`About::name`].
    fn name(&self) -> &str {
        &self.about().name
    }

    /// Returns [`About::size_bytes`].
    fn size_bytes(&self) -> u64 {
        self.about().size_bytes
    }

    /// Returns [`About::sector_bytes`].
    fn sector_bytes(&self) -> u32 {
        self.about().sector_bytes
    }

    /// Returns [`About::is_virtual`].
    fn is_virtual(&self) -> bool {
        self.about().is_virtual
    }

    /// Returns the time now, nanoseconds.
    fn now_ns(&self) -> u64;

    /// Performs the operations that `next` returns, `depth` at a time. It calls `done` for each completed operation. It
    /// ends when `next` returns nothing or `done` returns `false`; operations then in flight are awaited, and passed to
    /// `done` too.
    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError>;

    /// Leaves the drive idle for `ns` nanoseconds.
    fn sleep(&mut self, ns: u64) -> Result<(), TargetError>;

    /// Returns facts to be shown that need no measurement, such as model, serial number and caches: name and value.
    fn facts(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Returns the positions of the head since the last call, thinned out, if the target can report them.
    fn head_path(&mut self) -> Option<HeadPath> {
        None
    }
}

/// Performs `operations`, `depth` at a time, and returns them with their times, in order of completion. At a depth of
/// 1, that is the order of `operations`.
pub fn latencies(target: &mut dyn Target, depth: usize, operations: &[Operation]) -> Result<Vec<Timed>, TargetError> {
    let mut waiting = operations.iter().copied();
    let mut timed = Vec::with_capacity(operations.len());
    target.perform(depth, &mut || waiting.next(), &mut |done| {
        timed.push(*done);
        true
    })?;
    Ok(timed)
}
