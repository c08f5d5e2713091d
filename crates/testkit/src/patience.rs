//! The time limit of tests, and waiting for an event.

use std::time::{Duration, Instant};

/// Maximum time that a test waits for an event or an answer: five minutes. The limit is no test of speed; it only ends
/// tests that hang.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Calls `happened` every 5 ms until it returns a value, and returns that value. `what` names the event in the panic
/// message.
///
/// # Panics
///
/// Panics if five minutes ([`PATIENCE`]) pass without a value.
pub fn until<T>(what: &str, mut happened: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = happened() {
            return value;
        }
        assert!(begun.elapsed() < PATIENCE, "timed out while waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
