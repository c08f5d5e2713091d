//! Requests on their way from the kernel to the core, and who runs the core.
//!
//! Two threads may: the one that mounted, and the session's, which reads requests from the kernel. Whoever has a request
//! and finds the core free runs it there and then, so most requests are answered by the thread that read them, without
//! waking another. What is left over (timers, devices, work in the background) is the mounting thread's.
//!
//! Invariants:
//! 1. Requests become tasks in the order in which the kernel sent them.
//! 2. One thread at a time runs the core. Whoever finds it taken notifies the mounting thread, which looks again.
//! 3. The session's thread has the core only between the beginning and the end of [`Core::work`]; the thread that works
//!    there owns every other handle of it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use imbrex_fs::clock::{Clock, Joined, Notify};

/// Turns of the core that the session's thread takes for a request before it leaves the rest to the other: while it does,
/// nobody reads the next one.
const TURNS_MAX: usize = 64;

type Task = Pin<Box<dyn Future<Output = ()>>>;
type Request<C> = Box<dyn FnOnce(Rc<C>) -> Task + Send>;

/// The clock with its tasks, and what they work with.
struct Island<C> {
    clock: Clock,
    context: Rc<C>,
}

// SAFETY: an island is full of counters and cells that are not made for two threads, and other handles of them are on the
// thread that mounted, where they must stay (they are not `Send`). It is reached by another thread only through the lock of
// `Core`, and only while the mounting thread is inside `Core::work`: there it touches the island under the same lock, and
// calls nothing of its caller's but an `is_over` that is `Send`, which therefore has no handle. At the end of `work` the
// island is taken back under the lock, with a panic too. What runs on it keeps nothing that belongs to one thread, such as
// a guard of a lock.
#[allow(unsafe_code)]
unsafe impl<C> Send for Island<C> {}

/// The core, as both threads see it. Its tasks work with a `C`.
pub struct Core<C> {
    /// It is there while somebody works.
    island: Mutex<Option<Island<C>>>,
    queue: Mutex<VecDeque<Request<C>>>,
    /// Wakes the mounting thread.
    notify: Arc<Notify>,
    /// When the mounting thread wakes by itself, on the core's clock.
    wakes_ns: AtomicU64,
    has_ended: AtomicBool,
    is_closed: AtomicBool,
}

impl<C> Core<C> {
    /// A core that runs `clock`.
    pub fn new(clock: &Clock) -> Core<C> {
        Core {
            island: Mutex::new(None),
            queue: Mutex::default(),
            notify: clock.notify(),
            wakes_ns: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        }
    }
}

impl<C: 'static> Core<C> {
    /// Hands a request over: `begin` makes its task, on the thread that runs the core. It waits while nobody runs it.
    pub fn give<T: Future<Output = ()> + 'static>(&self, begin: impl FnOnce(Rc<C>) -> T + Send + 'static) {
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

    /// Nobody will work any more: what waits and what still comes is dropped, and so answered with an error.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.locked_queue().clear();
    }

    /// Says that no more requests will come.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.notify.notify();
    }

    /// Whether no more will come.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Runs the core until `is_over`, which is asked every `look` at least.
    pub fn work(&self, clock: &Clock, context: &Rc<C>, look: Duration, is_over: impl Fn() -> bool + Send) {
        *self.locked_island() = Some(Island { clock: clock.clone(), context: context.clone() });
        let taken_back = TakenBack(self);
        while !is_over() {
            let wait = self.run_all(look);
            self.notify.wait(wait);
        }
        drop(taken_back);
    }

    /// Runs what was handed over, on the session's thread.
    fn run_requests(&self, island: &Option<Island<C>>) {
        let Some(island) = island else { return };
        island.clock.read_wall();
        let Some(last) = self.begin_all(island) else { return };
        let is_left = !(0..TURNS_MAX).any(|_| last.take().is_some() || !island.clock.go_on());
        let next_ns = island.clock.next_event_ns().unwrap_or(u64::MAX);
        if is_left || island.clock.has_ready() || next_ns < self.wakes_ns.load(Ordering::Relaxed) {
            self.notify.notify();
        }
    }

    /// Runs until nothing can go on, on the thread that mounted. Returns how long it may wait then.
    fn run_all(&self, look: Duration) -> Duration {
        let island = self.locked_island();
        let island = island.as_ref().expect("it is there until the end of the work");
        loop {
            self.begin_all(island);
            if !island.clock.go_on() {
                break;
            }
        }
        let now_ns = island.clock.now_ns();
        let next_ns = island.clock.next_event_ns().unwrap_or(u64::MAX);
        let wait = look.min(Duration::from_nanos(next_ns.saturating_sub(now_ns)));
        self.wakes_ns.store(now_ns + wait.as_nanos() as u64, Ordering::Relaxed);
        wait
    }

    /// Makes tasks of what was handed over. Returns the last of them.
    fn begin_all(&self, island: &Island<C>) -> Option<Joined<()>> {
        let mut last = None;
        while let Some(begin) = self.next_request() {
            last = Some(island.clock.spawn(begin(island.context.clone())));
        }
        last
    }

    /// Takes the next request; the queue is unlocked before its task begins.
    fn next_request(&self) -> Option<Request<C>> {
        self.locked_queue().pop_front()
    }

    fn locked_queue(&self) -> MutexGuard<'_, VecDeque<Request<C>>> {
        // Nothing that holds it can panic in between.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked_island(&self) -> MutexGuard<'_, Option<Island<C>>> {
        self.island.lock().expect("no task of the core panics")
    }
}

/// Takes the island from the session's thread, however the work ends.
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

    /// Numbers in the order in which tasks wrote them down.
    type Notes = RefCell<Vec<u32>>;

    /// Runs `session` on a thread of its own beside the core; what was written down.
    fn notes_of(session: impl FnOnce(&Core<Notes>) + Send + 'static) -> Vec<u32> {
        let (clock, context) = (Clock::on_the_wall(), Rc::new(Notes::default()));
        let core = Arc::new(Core::<Notes>::new(&clock));
        let (shared, told) = (core.clone(), core.clone());
        let thread = std::thread::spawn(move || {
            session(&shared);
            shared.end();
        });
        core.work(&clock, &context, LOOK, move || told.has_ended());
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
            // It comes again and again, longer than one request may keep the session's thread.
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
        let (clock, context) = (Clock::on_the_wall(), Rc::new(Notes::default()));
        let core = Core::<Notes>::new(&clock);
        let note = |number| core.give(move |notes: Rc<Notes>| async move { notes.borrow_mut().push(number) });
        note(1);
        assert!(!clock.go_on(), "nobody works");
        let looks = AtomicU64::new(0);
        core.work(&clock, &context, Duration::ZERO, || looks.fetch_add(1, Ordering::Relaxed) > 0);
        assert_eq!(*context.borrow(), [1]);
        note(2);
        core.close();
        note(3);
        assert_eq!((core.locked_queue().len(), Rc::strong_count(&context)), (0, 1), "the core keeps nothing");
    }
}
