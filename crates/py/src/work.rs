//! Runs long work in a thread beside the interpreter.
//!
//! ```text
//!  calling thread: shows progress, hears Ctrl-C, every tenth of a second      worker: the library's call
//!        └─ Ctrl-C ─► should stop ───────────────────────────────────────────────► ends early, keeps what was done
//! ```
//!
//! Invariants:
//! 1. The interpreter lock is held only briefly: while signals are checked and progress is displayed.
//! 2. An exception of a callback stops the work, and is raised when the work has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use imbrex::{Failure, Progress};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::border;
use crate::errors::{ImbrexError, exception};

/// Interval between two checks for signals and updates of the progress.
const TICK: Duration = Duration::from_millis(100);

/// Result of work in another thread.
pub(crate) struct Done<T> {
    /// Value that the work returned.
    pub value: T,
    /// Messages for people that the work issued, in order.
    pub notes: Vec<String>,
}

/// Does `work` in another thread and waits for it. `shown` selects the display of progress. A callable receives lists
/// of (name, position, total or None); any other true value shows bars on the terminal; a false value shows nothing.
pub(crate) fn done<T: Send>(
    py: Python<'_>,
    shown: &Bound<'_, PyAny>,
    work: impl FnOnce(&Progress) -> Result<T, Failure> + Send,
) -> PyResult<Done<T>> {
    let should_stop = Arc::new(AtomicBool::new(false));
    let stops = should_stop.clone();
    let progress =
        if shown.is_truthy()? && !shown.is_callable() { Progress::on_terminal(false) } else { Progress::silent() };
    let progress = progress.stopping_when(move || stops.load(Ordering::Relaxed));
    let callback = shown.is_callable().then(|| shown.clone().unbind());
    let (outcome, raised) = py.detach(|| {
        std::thread::scope(|scope| {
            let (ended, end) = channel();
            let progress = &progress;
            let worker = scope.spawn(move || {
                let outcome = border::caught(|| work(progress));
                // Sending fails only if the calling thread panicked.
                let _ = ended.send(());
                outcome
            });
            let raised = watch(&end, progress, callback.as_ref(), &should_stop);
            (worker.join().expect("its panics were caught"), raised)
        })
    });
    let outcome = outcome.map_err(ImbrexError::new_err)?;
    let is_interrupted = raised.as_ref().is_some_and(|error| error.is_instance_of::<PyKeyboardInterrupt>(py));
    match (outcome, raised) {
        (Err(failure), _) => Err(exception(&failure)),
        (Ok(_), Some(error)) if !is_interrupted => Err(error),
        (Ok(value), _) => Ok(Done { value, notes: progress.drain_messages() }),
    }
}

/// Displays progress and checks for signals until the work has ended. Returns the first exception that was raised.
fn watch(
    end: &std::sync::mpsc::Receiver<()>,
    progress: &Progress,
    callback: Option<&Py<PyAny>>,
    should_stop: &AtomicBool,
) -> Option<PyErr> {
    let mut raised = None;
    while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(TICK) {
        let seen = Python::attach(|py| {
            py.check_signals()?;
            if let (Some(callback), None) = (callback, &raised) {
                let told = progress.snapshot().into_iter().map(|told| (told.name, told.position, told.total));
                callback.call1(py, (told.collect::<Vec<_>>(),))?;
            }
            Ok(())
        });
        if let Err(error) = seen {
            should_stop.store(true, Ordering::Relaxed);
            raised.get_or_insert(error);
        }
    }
    raised
}
