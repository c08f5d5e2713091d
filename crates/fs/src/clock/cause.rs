//! What a task works for, so that what devices do for it can be charged to that.
//!
//! ```text
//!   Data ──► Parity · Metadata · Hot · Cleaning · Repair
//! ```
//!
//! Invariants:
//! 1. Work is for files until something else is named, and what is named first holds for all that is done on the way: the
//!    records and the parity that cleaning takes are cleaning.
//! 2. A cause belongs to a piece of work, not to a stretch of time: two tasks whose turns alternate keep theirs.

use std::future::Future;

use super::Clock;

/// What something is done for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Cause {
    /// Files are read and written, with the records among their data and what fills up rows.
    #[default]
    Data,
    /// Parity of what is written of files.
    Parity,
    /// Log, checkpoints, checksums.
    Metadata,
    /// Files come into the hot zone.
    Hot,
    /// Zones are emptied.
    Cleaning,
    /// Drives are replaced, blocks are looked at and made again.
    Repair,
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 6] =
        [Cause::Data, Cause::Parity, Cause::Metadata, Cause::Hot, Cause::Cleaning, Cause::Repair];

    /// Its name.
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

impl Clock {
    /// What the task that runs just now works for.
    pub fn cause(&self) -> Cause {
        self.0.cause.get()
    }

    /// Does `work` for `cause`, unless the task already works for another than files.
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
