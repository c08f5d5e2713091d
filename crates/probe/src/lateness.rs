//! Measures how busy this machine is while a test runs in real time. A thread only sleeps, and records by how much each
//! sleep is longer than requested. A machine that delays this thread also delays the answers of the drive.
//!
//! Invariants:
//! 1. The thread ends when its owner is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(2);
/// The share of the sleeps whose overshoot is at most the reported one.
const SHARE: f64 = 0.95;

/// A thread that measures how late sleeps end.
pub(crate) struct Lateness {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<u64>>>,
}

impl Lateness {
    /// Starts the thread; in virtual time it ends at once and measures nothing.
    pub(crate) fn watch(is_virtual: bool) -> Lateness {
        let ends = Arc::new(AtomicBool::new(is_virtual));
        let told = ends.clone();
        // If the thread cannot be started, the lateness counts as 0, and no result is doubted.
        let thread = std::thread::Builder::new().name("lateness".into()).spawn(move || pause_until(&told)).ok();
        Lateness { ends, thread }
    }

    /// Stops the thread and returns the lateness of its sleeps: the 95th percentile, nanoseconds.
    pub(crate) fn end(mut self) -> u64 {
        let mut late_ns = self.join();
        late_ns.sort_unstable();
        late_ns.get((late_ns.len() as f64 * SHARE) as usize).copied().unwrap_or(0)
    }

    fn join(&mut self) -> Vec<u64> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().map(|thread| thread.join().expect("pausing does not panic")).unwrap_or_default()
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.join();
    }
}

fn pause_until(ends: &AtomicBool) -> Vec<u64> {
    let mut late_ns = Vec::new();
    while !ends.load(Ordering::Relaxed) {
        let begun = Instant::now();
        std::thread::sleep(PAUSE);
        late_ns.push(begun.elapsed().saturating_sub(PAUSE).as_nanos() as u64);
    }
    late_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_is_never_late_and_a_thread_ends() {
        assert_eq!(Lateness::watch(true).end(), 0);
        let lateness = Lateness::watch(false);
        std::thread::sleep(Duration::from_millis(30));
        let began = Instant::now();
        assert!(lateness.end() < 60_000_000_000 && began.elapsed() < Duration::from_secs(60));
    }
}
