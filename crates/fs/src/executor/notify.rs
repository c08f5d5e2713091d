//! A notification from one thread to another.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Notification that wakes the waiting thread of an executor. A notification without a waiting thread is remembered, so
/// none is lost between a check and a wait. Several count as one.
#[derive(Default, Debug)]
pub struct Notify(Mutex<bool>, Condvar);

impl Notify {
    /// Wakes the waiting thread. If none waits, the next wait ends at once.
    pub fn notify(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.1.notify_one();
    }

    /// Waits for a notification, but no longer than `time`. Returns at once if a notification was remembered, and
    /// forgets it.
    pub fn wait(&self, time: Duration) {
        let is_notified = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.1.wait_timeout_while(is_notified, time, |is_notified| !*is_notified);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}
