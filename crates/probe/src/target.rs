//! Targets of the probe: things that read and write blocks, each with a clock.
//!
//! Invariants:
//! 1. No more operations are in flight than the requested depth; they complete in any order.
//! 2. Times never go back.

/// Maximum length of one operation on any target, in bytes: 24 MiB, less than the 32 MiB that an NBD client may expect
/// of every server.
pub const OPERATION_BYTES_MAX: u64 = 24 << 20;

/// The direction of the transfer of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the drive to the host.
    Read,
    /// From the host to the drive.
    Write,
}

/// A read or a write of whole sectors of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Whether the operation reads or writes.
    pub direction: Direction,
    /// Offset of the first byte from the start of the target; a multiple of the sector size.
    pub offset: u64,
    /// Length in bytes: a positive multiple of the sector size, at most [`OPERATION_BYTES_MAX`].
    pub bytes: u64,
}

impl Operation {
    /// Returns a read of `bytes` bytes from byte `offset` on.
    pub const fn read(offset: u64, bytes: u64) -> Operation {
        Operation { direction: Direction::Read, offset, bytes }
    }

    /// Returns a write of `bytes` bytes from byte `offset` on. The target chooses the data.
    pub const fn write(offset: u64, bytes: u64) -> Operation {
        Operation { direction: Direction::Write, offset, bytes }
    }
}

/// A completed operation with its times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timed {
    /// The operation that completed.
    pub operation: Operation,
    /// Time at which the operation was submitted, in nanoseconds on the target's clock.
    pub begin_ns: u64,
    /// Time at which the operation completed, in nanoseconds on the target's clock.
    pub end_ns: u64,
}

impl Timed {
    /// Returns the time from submission to completion, in nanoseconds.
    pub fn latency_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

/// The reason why an operation on a target, or a whole experiment, did not complete.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TargetError {
    /// The target failed or refused the operation.
    #[error("{place}: {reason}")]
    Failed {
        /// Name of the target, as the user gave it.
        place: String,
        /// The error, and how to avoid it where that is known.
        reason: String,
    },
    /// The target must not be written, for example because it is in use.
    #[error(transparent)]
    Refused(#[from] imbrex_safety::Refusal),
    /// The user interrupted the probe: its progress function returned `false`.
    #[error("interrupted")]
    Interrupted,
    /// The time budget of the probe is used up.
    #[error("the budget was spent")]
    BudgetSpent,
}

impl TargetError {
    /// Returns [`TargetError::Failed`] for the target `place`, with `reason`.
    pub fn failed(place: impl Into<String>, reason: impl Into<String>) -> TargetError {
        TargetError::Failed { place: place.into(), reason: reason.into() }
    }
}

/// Positions of a drive's head over time, from an emulated drive. They are shown beside the measurements, and never
/// used for inference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeadPath {
    /// Number of radial track positions of the drive, from the outer to the inner diameter.
    pub tracks: u32,
    /// A sample of the positions in order of time: the time at which a transfer began, in nanoseconds on the target's
    /// clock, and the track, counted from 0 at the outer diameter.
    pub points: Vec<(u64, u32)>,
}

/// Properties of a target that do not change while it is open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// Name of the target, as the user gave it.
    pub name: String,
    /// Size of the target in bytes, a multiple of the sector size.
    pub size_bytes: u64,
    /// Sector size in bytes, the unit of access: offsets and lengths of operations must be multiples of it.
    pub sector_bytes: u32,
    /// Whether the target's clock is virtual, so that waiting costs the user no time.
    pub is_virtual: bool,
}

/// A function that returns the next operation to submit, or `None` if there are no more.
pub type Next<'a> = dyn FnMut() -> Option<Operation> + 'a;

/// A function that receives each completed operation. It returns whether further operations should be submitted.
pub type Done<'a> = dyn FnMut(&Timed) -> bool + 'a;

/// A drive, real or emulated, that can be probed: it performs reads and writes, and has a clock.
pub trait Target {
    /// Returns the properties of the target that do not change.
    fn about(&self) -> &About;

    /// Returns the name of the target, as the user gave it, such as a path.
    fn name(&self) -> &str {
        &self.about().name
    }

    /// Returns the size of the target in bytes, a multiple of the sector size.
    fn size_bytes(&self) -> u64 {
        self.about().size_bytes
    }

    /// Returns the sector size in bytes: offsets and lengths of operations must be multiples of it.
    fn sector_bytes(&self) -> u32 {
        self.about().sector_bytes
    }

    /// Returns whether the target's clock is the virtual one of an emulated drive, so that waiting takes no real time.
    fn is_virtual(&self) -> bool {
        self.about().is_virtual
    }

    /// Returns the present time on the target's clock, in nanoseconds. It never goes back.
    fn now_ns(&self) -> u64;

    /// Submits the operations that `next` returns, with at most `depth` of them in flight, and calls `done` for each
    /// one that completes, in the order of completion. Submits no more after `next` returns `None` or `done` returns
    /// `false`, and returns when all operations in flight have completed. A `depth` of 0 counts as 1.
    ///
    /// # Errors
    ///
    /// An operation or the target itself failed, or the user or the time budget ended the probe.
    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError>;

    /// Leaves the drive idle for `ns` nanoseconds of the target's clock.
    ///
    /// # Errors
    ///
    /// The target failed, or the user or the time budget ended the probe.
    fn sleep(&mut self, ns: u64) -> Result<(), TargetError>;

    /// Returns facts for people that need no measurement, such as the model, the serial number and the state of caches,
    /// as pairs of name and value. Empty by default.
    fn facts(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Returns a description of the disturbance by others, if it was so strong that no answer is certain. `None` by default.
    fn disturbance(&self) -> Option<String> {
        None
    }

    /// Returns a sample of the positions of the head since the last call of this method. Returns `None` if the target
    /// cannot report them, which is the default.
    fn head_path(&mut self) -> Option<HeadPath> {
        None
    }
}

/// Performs `operations` on `target`, with at most `depth` of them in flight (0 counts as 1). Returns all of them with
/// their times, in the order of completion. At a depth of 1, that is the order of `operations`.
///
/// # Errors
///
/// An operation or the target itself failed, or the user or the time budget ended the probe.
pub fn latencies(target: &mut dyn Target, depth: usize, operations: &[Operation]) -> Result<Vec<Timed>, TargetError> {
    let mut waiting = operations.iter().copied();
    let mut timed = Vec::with_capacity(operations.len());
    target.perform(depth, &mut || waiting.next(), &mut |done| {
        timed.push(*done);
        true
    })?;
    Ok(timed)
}
