//! What is probed: something that reads and writes blocks, and a clock.
//!
//! Invariants:
//! 1. No more operations are under way than the depth asked for; they complete in any order.
//! 2. Times never go back.

/// The most bytes of one operation, whatever the target: what an NBD server takes at least, about, and an experiment needs.
pub const OPERATION_BYTES_MAX: u64 = 24 << 20;

/// Which way the bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the drive.
    Read,
    /// To the drive.
    Write,
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Read or write.
    pub direction: Direction,
    /// First byte; a multiple of the sector size.
    pub offset: u64,
    /// Bytes; a multiple of the sector size.
    pub bytes: u64,
}

impl Operation {
    /// A read.
    pub const fn read(offset: u64, bytes: u64) -> Operation {
        Operation { direction: Direction::Read, offset, bytes }
    }

    /// A write.
    pub const fn write(offset: u64, bytes: u64) -> Operation {
        Operation { direction: Direction::Write, offset, bytes }
    }
}

/// A completed operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timed {
    /// What was asked.
    pub operation: Operation,
    /// When, nanoseconds on the target's clock.
    pub begin_ns: u64,
    /// When it was answered.
    pub end_ns: u64,
}

impl Timed {
    /// How long it took, nanoseconds.
    pub fn latency_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

/// Why an operation, or a whole test, did not come to its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TargetError {
    /// The target failed, or will not do what is asked.
    #[error("{place}: {reason}")]
    Failed {
        /// The target.
        place: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The target must not be written.
    #[error(transparent)]
    Refused(#[from] imbrex_safety::Refusal),
    /// The user wants an end.
    #[error("interrupted")]
    Interrupted,
    /// The time that the user gave is over.
    #[error("the budget was spent")]
    BudgetSpent,
}

impl TargetError {
    /// A failure of `place`.
    pub fn failed(place: impl Into<String>, reason: impl Into<String>) -> TargetError {
        TargetError::Failed { place: place.into(), reason: reason.into() }
    }
}

/// Where the head was, for a drive that can tell: never for inference, only to be shown beside what was measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeadPath {
    /// Tracks from the outer to the inner diameter.
    pub tracks: u32,
    /// When a transfer began, nanoseconds on the target's clock, and how many tracks from the outer diameter.
    pub points: Vec<(u64, u32)>,
}

/// What is known of a target from the beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// As the user named it.
    pub name: String,
    /// Bytes it offers.
    pub size_bytes: u64,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Whether its clock costs the user no time.
    pub is_virtual: bool,
}

/// Yields operations to be done.
pub type Next<'a> = dyn FnMut() -> Option<Operation> + 'a;

/// Is told of each completed operation; says whether to go on.
pub type Done<'a> = dyn FnMut(&Timed) -> bool + 'a;

/// What is probed.
pub trait Target {
    /// What is known of it from the beginning; it does not change.
    fn about(&self) -> &About;

    /// Its name, as [`About::name`].
    fn name(&self) -> &str {
        &self.about().name
    }

    /// Its size, as [`About::size_bytes`].
    fn size_bytes(&self) -> u64 {
        self.about().size_bytes
    }

    /// Its unit, as [`About::sector_bytes`].
    fn sector_bytes(&self) -> u32 {
        self.about().sector_bytes
    }

    /// Its clock's kind, as [`About::is_virtual`].
    fn is_virtual(&self) -> bool {
        self.about().is_virtual
    }

    /// The time now, nanoseconds.
    fn now_ns(&self) -> u64;

    /// Keeps `depth` of the operations that `next` yields under way until there are no more, or `done`, called for each
    /// as it completes, says `false`; what is under way then is waited for, and told to `done` as well.
    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError>;

    /// Leaves the drive alone for so long.
    fn sleep(&mut self, ns: u64) -> Result<(), TargetError>;

    /// What is known of it without measuring, to be shown: model, serial number, caches. Name and value.
    fn facts(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The head's path since this was last asked, thinned, if the target can tell.
    fn head_path(&mut self) -> Option<HeadPath> {
        None
    }
}

/// Performs `operations` and gives their latencies in that order, nanoseconds. At a depth of 1 that is the order of
/// time.
pub fn latencies(target: &mut dyn Target, depth: usize, operations: &[Operation]) -> Result<Vec<Timed>, TargetError> {
    let mut waiting = operations.iter().copied();
    let mut timed = Vec::with_capacity(operations.len());
    target.perform(depth, &mut || waiting.next(), &mut |done| {
        timed.push(*done);
        true
    })?;
    Ok(timed)
}
