//! A notification from one thread to another.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Notification that wakes the thread of an executor. One notification is remembered, so none is lost between a check
/// and a wait.
#[derive(Default, Debug)]
pub struct Notify(Mutex<bool>, Condvar);

impl Notify {
    /// Wakes the waiting thread, or ends its next wait at once.
    pub fn notify(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.1.notify_one();
    }

    /// Waits for a notification, at most for `time`.
    pub fn wait(&self, time: Duration) {
        let is_notified = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.1.wait_timeout_while(is_notified, time, |is_notified| !*is_notified);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}
