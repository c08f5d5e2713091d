//! Requests on their way from the kernel to the core, and the threads that run the core.
//!
//! Two threads may run the core: the one that mounted, and the session's, which reads requests from the kernel. A
//! thread that has a request and finds the core unlocked runs the request at once. So most requests are answered by the
//! thread that read them, without waking another. The mounting thread does the rest: timers, devices, background work.
//!
//! Invariants:
//! 1. Requests become tasks in the order in which the kernel sent them.
//! 2. One thread at a time runs the core. A thread that finds the core locked notifies the mounting thread, which then
//!    looks for requests again.
//! 3. The session's thread can use the core only between the beginning and the end of [`Core::work`]. The thread that
//!    works there owns every other handle to the core's executor.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use imbrex_fs::executor::{Executor, JoinHandle, Notify};

/// Maximum number of turns of the executor that the session's thread takes for a request. Meanwhile no thread reads the
/// next request, so the mounting thread does the rest.
const TURNS_MAX: usize = 64;

type Task = Pin<Box<dyn Future<Output = ()>>>;
type Request<C> = Box<dyn FnOnce(Rc<C>) -> Task + Send>;

/// The executor with its tasks, and the data with which the tasks work.
struct CoreCell<C> {
    executor: Executor,
    context: Rc<C>,
}

// SAFETY: an `CoreCell` is full of counters and cells that are not made for two threads. Other handles to them are on
// the thread that mounted, and must stay there (they are not `Send`). Another thread reaches the `CoreCell` only
// through the lock of `Core`, and only while the mounting thread is inside `Core::work`. There the mounting thread
// touches the `CoreCell` under the same lock. The only code of its caller that it calls is `is_over`, which is `Send`
// and therefore has no handle. At the end of `work`, also by a panic, the `CoreCell` is taken back under the lock.
// Tasks on the `CoreCell` keep nothing that belongs to one thread, such as a guard of a lock.
#[allow(unsafe_code)]
unsafe impl<C> Send for CoreCell<C> {}

/// The core, as both threads see it. Its tasks work with a `C`.
pub(crate) struct Core<C> {
    /// Present only while [`Core::work`] runs.
    island: Mutex<Option<CoreCell<C>>>,
    queue: Mutex<VecDeque<Request<C>>>,
    /// Wakes the mounting thread.
    notify: Arc<Notify>,
    /// Time at which the mounting thread wakes by itself, on the core's clock.
    wakes_ns: AtomicU64,
    has_ended: AtomicBool,
    is_closed: AtomicBool,
}

impl<C> Core<C> {
    /// Creates a core that runs the executor `executor`.
    pub(crate) fn new(executor: &Executor) -> Core<C> {
        Core {
            island: Mutex::new(None),
            queue: Mutex::default(),
            notify: executor.notify(),
            wakes_ns: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        }
    }
}

impl<C: 'static> Core<C> {
    /// Queues a request, and runs it at once if no other thread runs the core. `begin` creates the request's task, on
    /// the thread that runs the core. While [`Core::work`] does not run, the request waits.
    pub(crate) fn give<T: Future<Output = ()> + 'static>(&self, begin: impl FnOnce(Rc<C>) -> T + Send + 'static) {
        let request: Request<C> = Box::new(move |context| Box::pin(begin(context)));
        self.locked_queue().push_back(request);
        match self.island.try_lock() {
            Ok(island) => self.run_requests(&island),
            Err(TryLockError::WouldBlock) => self.notify.notify(),
            // A task panicked, and the program is about to end.
            Err(TryLockError::Poisoned(_)) => self.close(),
        }
        if self.is_closed.load(Ordering::SeqCst) {
            self.locked_queue().clear();
        }
    }

    /// Drops all waiting and future requests, because no thread will run them. A dropped request is answered with an
    /// error.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.locked_queue().clear();
    }

    /// Marks that the kernel sends no more requests, and wakes the thread that runs the core.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.notify.notify();
    }

    /// Returns whether [`Core::end`] was called: the kernel sends no more requests.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Executes the core's tasks until `is_over` returns true; calls `is_over` at least once per `look`.
    pub(crate) fn work(&self, executor: &Executor, context: &Rc<C>, look: Duration, is_over: impl Fn() -> bool + Send) {
        *self.locked_island() = Some(CoreCell { executor: executor.clone(), context: context.clone() });
        let taken_back = TakenBack(self);
        while !is_over() {
            let wait = self.run_all(look);
            self.notify.wait(wait);
        }
        drop(taken_back);
    }

    /// Executes queued requests, on the session's thread.
    fn run_requests(&self, island: &Option<CoreCell<C>>) {
        let Some(island) = island else { return };
        island.executor.read_wall();
        let Some(last) = self.begin_all(island) else { return };
        let is_left = !(0..TURNS_MAX).any(|_| last.take().is_some() || !island.executor.tick());
        let next_ns = island.executor.next_event_ns().unwrap_or(u64::MAX);
        if is_left || island.executor.has_ready() || next_ns < self.wakes_ns.load(Ordering::Relaxed) {
            self.notify.notify();
        }
    }

    /// Executes tasks until none is ready, on the thread that mounted. Returns how long the thread may then wait.
    fn run_all(&self, look: Duration) -> Duration {
        let island = self.locked_island();
        let island = island.as_ref().expect("it is there until the end of the work");
        loop {
            self.begin_all(island);
            if !island.executor.tick() {
                break;
            }
        }
        let now_ns = island.executor.now_ns();
        let next_ns = island.executor.next_event_ns().unwrap_or(u64::MAX);
        let wait = look.min(Duration::from_nanos(next_ns.saturating_sub(now_ns)));
        self.wakes_ns.store(now_ns + wait.as_nanos() as u64, Ordering::Relaxed);
        wait
    }

    /// Starts a task for each queued request. Returns the handle of the last one.
    fn begin_all(&self, island: &CoreCell<C>) -> Option<JoinHandle<()>> {
        let mut last = None;
        while let Some(begin) = self.next_request() {
            last = Some(island.executor.spawn(begin(island.context.clone())));
        }
        last
    }

    /// Removes and returns the next request; the queue is unlocked before the request's task begins.
    fn next_request(&self) -> Option<Request<C>> {
        self.locked_queue().pop_front()
    }

    fn locked_queue(&self) -> MutexGuard<'_, VecDeque<Request<C>>> {
        // No code that holds this lock can panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked_island(&self) -> MutexGuard<'_, Option<CoreCell<C>>> {
        self.island.lock().expect("no task of the core panics")
    }
}

/// Takes the `CoreCell` from the session's thread when dropped, also during a panic.
struct TakenBack<'a, C>(&'a Core<C>);

impl<C> Drop for TakenBack<'_, C> {
    fn drop(&mut self) {
        drop(self.0.island.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const LOOK: Duration = Duration::from_millis(50);

    /// Numbers in the order in which tasks recorded them.
    type Notes = RefCell<Vec<u32>>;

    /// Executes `session` on its own thread beside the core. Returns the recorded numbers.
    fn notes_of(session: impl FnOnce(&Core<Notes>) + Send + 'static) -> Vec<u32> {
        let (executor, context) = (Executor::on_the_wall(), Rc::new(Notes::default()));
        let core = Arc::new(Core::<Notes>::new(&executor));
        let (shared, told) = (core.clone(), core.clone());
        let thread = std::thread::spawn(move || {
            session(&shared);
            shared.end();
        });
        core.work(&executor, &context, LOOK, move || told.has_ended());
        thread.join().expect("the session does not panic");
        context.take()
    }

    #[test]
    fn requests_begin_in_their_order_and_once_whoever_runs_them() {
        const COUNT: u32 = 20_000;
        let notes = notes_of(|core| {
            let answered = Arc::new(AtomicU64::new(0));
            for number in 0..COUNT {
                let answered = answered.clone();
                core.give(move |notes| {
                    notes.borrow_mut().push(number);
                    async move {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            while answered.load(Ordering::Relaxed) < u64::from(COUNT) {
                std::thread::yield_now();
            }
        });
        assert_eq!(notes, (0..COUNT).collect::<Vec<_>>());
    }

    #[test]
    fn what_waits_is_gone_on_with_while_no_request_comes() {
        let notes = notes_of(|core| {
            let (done, is_done) = std::sync::mpsc::channel();
            // The task is polled more often than the session's thread may run it for one request.
            core.give(move |notes| async move {
                let mut left = 10 * TURNS_MAX as u32;
                std::future::poll_fn(|context| {
                    left -= 1;
                    context.waker().wake_by_ref();
                    if left == 0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
                })
                .await;
                notes.borrow_mut().push(left);
                done.send(()).expect("the session waits");
            });
            is_done.recv().expect("the core runs");
        });
        assert_eq!(notes, [0]);
    }

    #[test]
    fn what_comes_outside_the_work_waits_until_nobody_will_work() {
        let (executor, context) = (Executor::on_the_wall(), Rc::new(Notes::default()));
        let core = Core::<Notes>::new(&executor);
        let note = |number| core.give(move |notes: Rc<Notes>| async move { notes.borrow_mut().push(number) });
        note(1);
        assert!(!executor.tick(), "nobody works");
        let looks = AtomicU64::new(0);
        core.work(&executor, &context, Duration::ZERO, || looks.fetch_add(1, Ordering::Relaxed) > 0);
        assert_eq!(*context.borrow(), [1]);
        note(2);
        core.close();
        note(3);
        assert_eq!((core.locked_queue().len(), Rc::strong_count(&context)), (0, 1), "the core keeps nothing");
    }
}
