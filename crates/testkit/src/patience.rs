//! How long a test waits, and for what.

use std::time::{Duration, Instant};

/// How long anything may take before a test gives up on it: no bound on speed, only an end to hanging.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until `happened` gives something.
pub fn until<T>(what: &str, mut happened: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = happened() {
            return value;
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
