//! One reading of a workload shared by several drives: each batch of requests goes to all of them.
//!
//! ```text
//!                      ┌─► Share ─► engine of drive 0
//!   Source ─► batches ─┼─► Share ─► engine of drive 1     whoever needs a batch that is not there reads it
//!                      └─► Share ─► engine of drive 2
//! ```
//!
//! The number of drives that run at the same time can be limited. Drives then take turns: a drive that waits for a
//! batch lets another run.
//!
//! Invariants:
//! 1. Every share returns every request in the order of the source, and the source's error if it fails.
//! 2. At most [`BATCHES`] batches are kept, so a fast drive waits for the slowest. A share that was dropped delays no
//!    other share.
//! 3. The number of running shares never exceeds the limit. A share runs between [`Share::begin`] and its drop, except
//!    while it waits in [`Share::next`].

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use imbrex_disk::SimTime;
use imbrex_trace::{Facts, Request, Source, TraceError};

/// Number of requests of a batch.
const REQUESTS: usize = 4096;
/// Largest number of batches kept: ten megabytes of requests.
const BATCHES: usize = 64;

/// State common to all shares.
struct Reading {
    state: Mutex<State>,
    changed: Condvar,
    expected: Option<u64>,
}

struct State {
    /// The source; `None` while a share reads from it.
    source: Option<Box<dyn Source>>,
    /// Batches that some share has yet to take. The first one has the number `first`.
    batches: VecDeque<Arc<[Request]>>,
    first: u64,
    /// Number of the batch that each share takes next; `None` for a share that was dropped.
    next: Vec<Option<u64>>,
    /// Result at the end of the source, once it has ended.
    ended: Option<Result<(), TraceError>>,
    facts: Facts,
    /// Number of further shares that may run now.
    free: usize,
}

/// The source of requests for one of several drives that share one source.
pub struct Share {
    reading: Arc<Reading>,
    number: usize,
    batch: Arc<[Request]>,
    at: usize,
    runs: bool,
    waited: Duration,
}

/// Returns `count` sources that each yield all requests of `source`, in its order. At most `at_once` of the drives that
/// use them run at the same time. `source` is read only once, in batches, with the time 0 in every call; a fast drive
/// waits for the slowest.
///
/// # Panics
///
/// If `count` or `at_once` is 0.
pub fn shares(source: Box<dyn Source>, count: usize, at_once: usize) -> Vec<Share> {
    assert!(count > 0 && at_once > 0, "{count} shares, {at_once} of them at once: both numbers must be above zero");
    let expected = source.expected_requests();
    let state = State {
        source: Some(source),
        batches: VecDeque::new(),
        first: 0,
        next: vec![Some(0); count],
        ended: None,
        facts: Facts::default(),
        free: at_once,
    };
    let reading = Arc::new(Reading { state: Mutex::new(state), changed: Condvar::new(), expected });
    let share = |number| Share {
        reading: reading.clone(),
        number,
        batch: Arc::from([]),
        at: 0,
        runs: false,
        waited: Duration::ZERO,
    };
    (0..count).map(share).collect()
}

/// Next action of a share that needs a batch.
enum Turn {
    Take(Arc<[Request]>),
    Read(Box<dyn Source>),
    Wait,
    End(Result<(), TraceError>),
}

impl State {
    fn turn(&mut self, number: usize) -> Turn {
        let wanted = self.next[number].expect("a share that asks is not gone");
        if let Some(batch) = self.batches.get((wanted - self.first) as usize).cloned() {
            self.next[number] = Some(wanted + 1);
            self.forget();
            return Turn::Take(batch);
        }
        if let Some(ended) = &self.ended {
            return Turn::End(ended.as_ref().copied().map_err(again));
        }
        if self.batches.len() >= BATCHES {
            return Turn::Wait;
        }
        self.source.take().map_or(Turn::Wait, Turn::Read)
    }

    /// Drops the batches that all shares have taken.
    fn forget(&mut self) {
        let slowest = self.next.iter().flatten().copied().min().unwrap_or(u64::MAX);
        while self.first < slowest && self.batches.pop_front().is_some() {
            self.first += 1;
        }
    }
}

/// Copies an error for another drive. The operating system's error is kept as its kind and text.
fn again(error: &TraceError) -> TraceError {
    let cause = error.cause.as_ref().map(|cause| std::io::Error::new(cause.kind(), cause.to_string()));
    TraceError { place: error.place.clone(), reason: error.reason.clone(), cause, is_usage: error.is_usage }
}

/// Reads the next batch of `source`, which may be shorter than [`REQUESTS`]. Also returns the result at the end of the
/// source, if it ended.
fn read(source: &mut dyn Source) -> (Vec<Request>, Option<Result<(), TraceError>>) {
    let mut batch = Vec::with_capacity(REQUESTS);
    while batch.len() < REQUESTS {
        match source.next(SimTime::ZERO) {
            Ok(Some(request)) => batch.push(request),
            Ok(None) => return (batch, Some(Ok(()))),
            Err(error) => return (batch, Some(Err(error))),
        }
    }
    (batch, None)
}

impl Reading {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the state")
    }
}

impl Share {
    /// Waits until fewer than the allowed number of shares run, and then counts this share as running. It runs until it
    /// is dropped, except while it waits for a batch. Returns at once if this share runs already.
    pub fn begin(&mut self) {
        if !self.runs {
            let mut state = self.reading.lock();
            while state.free == 0 {
                state = self.reading.changed.wait(state).expect("no thread panics while it holds the state");
            }
            state.free -= 1;
            self.runs = true;
        }
    }

    /// Returns the wall-clock time that this share has spent in fetching batches: waiting for other shares, and reading
    /// from the source for all of them.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Gets the next batch. Returns false at the end of the source.
    #[cold]
    fn fetch(&mut self) -> Result<bool, TraceError> {
        self.begin();
        let begun = Instant::now();
        let fetched = self.fetched();
        self.waited += begun.elapsed();
        let batch = fetched?;
        self.at = 0;
        self.batch = batch.unwrap_or_else(|| Arc::from([]));
        Ok(!self.batch.is_empty())
    }

    fn fetched(&self) -> Result<Option<Arc<[Request]>>, TraceError> {
        let mut state = self.reading.lock();
        loop {
            match state.turn(self.number) {
                Turn::Take(batch) => {
                    // Taking a batch may have made room for another: wake the shares that wait for that.
                    self.reading.changed.notify_all();
                    return Ok(Some(batch));
                }
                Turn::End(ended) => return ended.map(|()| None),
                Turn::Read(mut source) => {
                    drop(state);
                    let (batch, ended) = read(source.as_mut());
                    state = self.reading.lock();
                    if !batch.is_empty() {
                        state.batches.push_back(batch.into());
                    }
                    state.facts = source.facts();
                    state.ended = ended;
                    state.source = Some(source);
                    self.reading.changed.notify_all();
                }
                Turn::Wait => state = self.wait(state),
            }
        }
    }

    /// Lets another share run until the state changes, then waits until this share may run again.
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.free += 1;
        self.reading.changed.notify_all();
        state = self.reading.changed.wait(state).expect("no thread panics while it holds the state");
        while state.free == 0 {
            state = self.reading.changed.wait(state).expect("no thread panics while it holds the state");
        }
        state.free -= 1;
        state
    }
}

impl Source for Share {
    #[inline]
    fn next(&mut self, _now: SimTime) -> Result<Option<Request>, TraceError> {
        if self.at == self.batch.len() && !self.fetch()? {
            return Ok(None);
        }
        let request = self.batch[self.at];
        self.at += 1;
        Ok(Some(request))
    }

    fn upcoming(&self) -> &[Request] {
        &self.batch[self.at..]
    }

    fn expected_requests(&self) -> Option<u64> {
        self.reading.expected
    }

    fn facts(&self) -> Facts {
        self.reading.lock().facts.clone()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // A poisoned lock means that another thread panicked. A second panic in a drop would abort the process.
        let Ok(mut state) = self.reading.state.lock() else { return };
        state.next[self.number] = None;
        state.forget();
        state.free += usize::from(self.runs);
        self.reading.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    //! Goal: invariants 1 to 3. Method: a source that counts its calls, read by threads of different speed, some of
    //! which stop early.

    use super::*;
    use imbrex_disk::Command;
    use imbrex_trace::When;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    /// Requests numbered from 1, and an error or the end after the last.
    struct Numbered {
        next: u64,
        last: u64,
        fails: bool,
        asked: Arc<AtomicU64>,
    }

    impl Source for Numbered {
        fn next(&mut self, _now: SimTime) -> Result<Option<Request>, TraceError> {
            if self.next == self.last {
                let broken = || TraceError::new("line 7", "broken");
                return if self.fails { Err(broken()) } else { Ok(None) };
            }
            self.next += 1;
            self.asked.store(self.next, Ordering::Relaxed);
            Ok(Some(Request { when: When::At(SimTime(self.next)), device: 0, command: Command::read(self.next, 8) }))
        }
    }

    fn numbered(last: u64, fails: bool) -> (Box<dyn Source>, Arc<AtomicU64>) {
        let asked = Arc::new(AtomicU64::new(0));
        (Box::new(Numbered { next: 0, last, fails, asked: asked.clone() }), asked)
    }

    /// Takes up to `most` requests and checks that they are numbered from 1. Returns how many came, and whether an
    /// error ended them.
    fn take(share: &mut Share, most: u64) -> (u64, bool) {
        for number in 1..=most {
            match share.next(SimTime::ZERO) {
                Ok(Some(request)) => assert_eq!(request.command.lba.0, number),
                Ok(None) => return (number - 1, false),
                Err(error) => {
                    assert_eq!(error.to_string(), "line 7: broken");
                    return (number - 1, true);
                }
            }
        }
        (most, false)
    }

    #[test]
    fn all_get_all_whatever_their_number_and_however_many_run() {
        for (count, at_once, last) in [(1, 1, 10), (3, 1, 900_000), (5, 2, 600_001), (4, 8, REQUESTS as u64)] {
            let (source, asked) = numbered(last, false);
            std::thread::scope(|scope| {
                for mut share in shares(source, count, at_once) {
                    scope.spawn(move || {
                        share.begin();
                        assert_eq!(take(&mut share, u64::MAX), (last, false));
                    });
                }
            });
            assert_eq!(asked.load(Ordering::Relaxed), last);
        }
    }

    #[test]
    fn an_error_reaches_all_after_what_came_before_it() {
        let (source, _) = numbered(5_000, true);
        std::thread::scope(|scope| {
            for mut share in shares(source, 3, 2) {
                scope.spawn(move || assert_eq!(take(&mut share, u64::MAX), (5_000, true)));
            }
        });
    }

    #[test]
    fn the_fastest_is_held_up_by_the_slowest_until_that_has_gone() {
        let (source, asked) = numbered(2_000_000, false);
        let mut shares = shares(source, 2, 2);
        let (slow, mut fast) = (shares.remove(0), shares.remove(0));
        let held = (REQUESTS * BATCHES) as u64;
        std::thread::scope(|scope| {
            let ahead = scope.spawn(move || take(&mut fast, u64::MAX));
            while asked.load(Ordering::Relaxed) < held {
                std::thread::yield_now();
            }
            // No more is read, however long the fast share waits.
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(asked.load(Ordering::Relaxed), held);
            drop(slow);
            assert_eq!(ahead.join().expect("it does not panic"), (2_000_000, false));
        });
    }

    #[test]
    fn no_more_run_than_may() {
        let (source, _) = numbered(1_500_000, false);
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for mut share in shares(source, 6, 2) {
                let (running, most) = (&running, &most);
                scope.spawn(move || {
                    share.begin();
                    // The share runs between two calls. It yields at intervals so that other shares get a turn.
                    while let Some(request) = share.next(SimTime::ZERO).expect("it does not fail") {
                        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        if request.command.lba.0.is_multiple_of(64) {
                            std::thread::yield_now();
                        }
                        running.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 2);
    }
}
