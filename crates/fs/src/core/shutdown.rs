//! The end of a mounted file system: its background tasks end when it begins.

use std::cell::Cell;

use crate::executor::{Signal, Waiting};

/// Whether the file system has been unmounted, and the signal that says so.
#[derive(Default)]
pub(in crate::core) struct Shutdown {
    has_begun: Cell<bool>,
    begun: Signal,
}

impl Shutdown {
    /// Ends the background tasks.
    pub(in crate::core) fn begin(&self) {
        self.has_begun.set(true);
        self.begun.give();
    }

    pub(in crate::core) fn has_begun(&self) -> bool {
        self.has_begun.get()
    }

    /// Returns a future that is ready once the background tasks are to end.
    pub(in crate::core) fn next(&self) -> Waiting {
        self.begun.next()
    }
}
