//! The purpose of a task's work, its cause, so that device time and traffic can be charged to it.
//!
//! ```text
//!   Data ──► Parity · Metadata · Hot · Cleaning · Repair
//! ```
//!
//! Invariants:
//! 1. The cause is [`Cause::Data`] until another one is set. The first other cause holds for all nested work: records
//!    and parity that cleaning writes are charged to cleaning.
//! 2. A cause belongs to a future, not to a stretch of time: two tasks that are polled alternately keep their own
//!    causes.

use std::future::Future;

use super::Executor;

/// Purpose of a piece of work, to which its device time and blocks are charged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Cause {
    /// Reads and writes of files, including the records that are written among their data for recovery, and the blocks
    /// of zeros that fill the last row of a stripe group. The default.
    #[default]
    Data,
    /// Writes of parity of file data.
    Parity,
    /// Reads and writes of the log, the checkpoints and the checksums.
    Metadata,
    /// Promotion of files into the hot zone: reads of their blocks, and writes of the copies.
    Hot,
    /// Cleaning of zones: copies of their live blocks, and resets.
    Cleaning,
    /// Replacement of drives, scrub, and reconstruction of damaged blocks.
    Repair,
}

impl Cause {
    /// All causes, in the order of their declaration.
    pub const ALL: [Cause; 6] =
        [Cause::Data, Cause::Parity, Cause::Metadata, Cause::Hot, Cause::Cleaning, Cause::Repair];

    /// Returns the lower-case name of the cause, such as `data`.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Data => "data",
            Cause::Parity => "parity",
            Cause::Metadata => "metadata",
            Cause::Hot => "hot",
            Cause::Cleaning => "cleaning",
            Cause::Repair => "repair",
        }
    }
}

impl Executor {
    /// Returns the cause of the task that is polled just now, the purpose to which its device time is charged;
    /// [`Cause::Data`] outside of tasks.
    pub fn cause(&self) -> Cause {
        self.0.cause.get()
    }

    /// Performs `work` with the cause `cause`, the purpose to which its device time is charged. If the calling task has
    /// a cause other than [`Cause::Data`] already, `work` keeps that one.
    pub async fn for_cause<T>(&self, cause: Cause, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|context| {
            let outer = self.0.cause.get();
            self.0.cause.set(if outer == Cause::Data { cause } else { outer });
            let polled = work.as_mut().poll(context);
            self.0.cause.set(outer);
            polled
        })
        .await
    }
}
