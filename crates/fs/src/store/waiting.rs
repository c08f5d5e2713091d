//! Writers that wait for room, and the cleaner that makes it: how they tell each other.
//!
//! Invariants:
//! 1. Nobody who waits holds a lease: so whoever writes can always go on.
//! 2. A writer is refused only after the cleaner found nothing to gain since it began to wait, and nobody else wrote.

use std::cell::Cell;

use crate::clock::{Signal, first_of};
use crate::error::FsError;

/// Who waits for room.
#[derive(Default)]
pub struct Waiting {
    /// Room was made, or a lease is over.
    pub has_room: Signal,
    needs_cleaning: Signal,
    is_asked: Cell<bool>,
    cleaning_fails: Signal,
    /// How often the cleaner found nothing to gain.
    gave_up: Cell<u64>,
    waiting: Cell<u32>,
}

impl Waiting {
    /// Tries again and again until `attempt` comes to something. While it `is_busy` somebody writes, who may leave room
    /// when done, and is waited for; else the cleaner is asked.
    pub async fn until<T>(
        &self,
        mut attempt: impl AsyncFnMut() -> Option<T>,
        is_busy: impl Fn() -> bool,
        has_leases: impl Fn() -> bool,
    ) -> Result<T, FsError> {
        let mut gave_up = self.gave_up.get();
        loop {
            let (room, failed) = (self.has_room.next(), self.cleaning_fails.next());
            if let Some(found) = attempt().await {
                return Ok(found);
            }
            if is_busy() {
                room.await;
                continue;
            }
            let has_failed = self.gave_up.get() > gave_up;
            if has_failed && !has_leases() {
                return Err(FsError::NoSpace);
            }
            if has_failed {
                // Somebody writes still: what that leaves may be worth cleaning.
                room.await;
                gave_up = self.gave_up.get();
            } else {
                self.waiting.set(self.waiting.get() + 1);
                self.ask();
                first_of(room, failed).await;
                self.waiting.set(self.waiting.get() - 1);
            }
        }
    }

    /// Asks the cleaner to look.
    pub fn ask(&self) {
        self.is_asked.set(true);
        self.needs_cleaning.give();
    }

    /// Whether somebody waits.
    pub fn is_anybody(&self) -> bool {
        self.waiting.get() > 0
    }

    /// Waits until somebody needs room that only cleaning makes.
    pub async fn cleaning_needed(&self) {
        loop {
            let asked = self.needs_cleaning.next();
            if self.is_asked.replace(false) {
                return;
            }
            asked.await;
        }
    }

    /// The cleaner found nothing: whoever waits must give up.
    pub fn cleaning_failed(&self) {
        self.gave_up.set(self.gave_up.get() + 1);
        self.cleaning_fails.give();
    }
}
