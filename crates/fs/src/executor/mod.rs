//! Executor of the core: one thread runs any number of tasks. Its time is either virtual or that of the wall clock.
//!
//! ```text
//!   ready ─► polled, in order ─► waits for: a timer · a device · a lock · another task
//!     ▲                                              │
//!     └──────────────── woken ◄──────────────────────┘
//! ```
//!
//! In virtual time the clock jumps to the earliest timer or device event whenever no task is ready, so a program with a
//! given seed does the same work at the same times in every run. With the wall clock the same loop waits instead. A
//! program that also waits for other events calls [`Executor::tick`] in a loop of its own.
//!
//! The executor is our own because virtual time, the order by seed and the count of polls must be part of it. Futures are
//! combined with `futures_util`, except in [`BoundedOrdered`]: `FuturesOrdered` wakes its own task again after some polls,
//! so that the order of tasks depends on the number of futures.
//!
//! Invariants:
//! 1. Ready tasks run in the order in which they became ready, or in an order chosen by a seed. Events at one time are
//!    delivered in the order in which their sources were added.
//! 2. The time never goes back.
//! 3. If no task is ready and no event can make one ready, that is a bug of the core: [`Stalled`] is returned instead
//!    of waiting forever.

mod cause;
mod mutex;
mod notify;
mod tasks;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

pub use self::cause::Cause;
pub use self::mutex::{Entering, Mutex, MutexGuard, Signal, Waiting};
pub use self::notify::Notify;
pub use self::tasks::JoinHandle;
use self::tasks::Tasks;

/// Number of nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// A boxed future that need not be `Send`: it is polled by one thread only.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Source of events in time, for example a device that answers operations.
pub trait Source {
    /// Returns the time of the source's next event, in nanoseconds since the start of the executor; `None` if the
    /// source expects none. A time of at most `now_ns` means that the event is due.
    fn next_event_ns(&self, now_ns: u64) -> Option<u64>;

    /// Delivers the events that are due at `now_ns`: wakes the tasks that wait for them. Does nothing if none is due.
    fn deliver(&self, now_ns: u64);

    /// Returns a message for the user if writes of the source wait because the host's disk is full; `None` otherwise,
    /// which is the default.
    fn blocked(&self) -> Option<String> {
        None
    }
}

/// Error of the executor: no task is ready, and neither a timer nor a source of events, such as a device, will make one
/// ready. So no task can ever continue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("every task waits for something that will never happen")]
pub struct Stalled;

struct Inner {
    tasks: Tasks,
    timers: RefCell<BTreeMap<(u64, u64), Waker>>,
    timers_made: Cell<u64>,
    now_ns: Cell<u64>,
    sources: RefCell<Vec<Rc<dyn Source>>>,
    /// Occurs when a source becomes blocked.
    blocked_signal: Signal,
    /// Time at which the executor was made, on the wall clock; none in virtual time.
    began: Option<Instant>,
    /// Notification that wakes the executor's thread from its wait on the wall clock.
    notify: Arc<Notify>,
    /// Cause of the task that is polled just now.
    cause: Cell<Cause>,
}

/// Executor of asynchronous tasks on one thread, with its clock, its tasks and its sources of events. A clone is
/// another handle of the same executor.
#[derive(Clone)]
pub struct Executor(Rc<Inner>);

impl Executor {
    /// Returns an executor in virtual time. The time starts at 0, and jumps to the next event when no task is ready.
    pub fn in_virtual_time() -> Executor {
        Executor::new(None, None)
    }

    /// Returns an executor in virtual time, which starts at 0. `seed` chooses at random which ready task runs next, so
    /// that tests cover tasks in any order. Equal seeds give equal orders.
    pub fn in_virtual_time_seeded(seed: u64) -> Executor {
        Executor::new(None, Some(seed))
    }

    /// Returns an executor on the wall clock. Its time is 0 at this call.
    pub fn on_the_wall() -> Executor {
        Executor::new(Some(Instant::now()), None)
    }

    fn new(began: Option<Instant>, seed: Option<u64>) -> Executor {
        Executor(Rc::new(Inner {
            tasks: Tasks::new(seed),
            timers: RefCell::default(),
            timers_made: Cell::new(0),
            now_ns: Cell::new(0),
            sources: RefCell::default(),
            blocked_signal: Signal::default(),
            began,
            notify: Arc::default(),
            cause: Cell::default(),
        }))
    }

    /// Returns the notification that wakes the executor's thread from its wait on the wall clock. It is for sources
    /// whose events come from another thread.
    pub fn notify(&self) -> Arc<Notify> {
        self.0.notify.clone()
    }

    /// Returns the time of the executor, in nanoseconds since its start. On the wall clock this is the time of the last
    /// reading of the clock, not of this call.
    pub fn now_ns(&self) -> u64 {
        self.0.now_ns.get()
    }

    /// Starts a task. The task is first polled when the executor runs next, and runs even if its handle is dropped. Its
    /// device time is charged to the cause (purpose) of the task that starts it.
    pub fn spawn<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> JoinHandle<T> {
        self.spawn_boxed(Box::pin(task))
    }

    /// Starts a boxed task, as [`Executor::spawn`] does. It is compiled once for a type of result, not for every task.
    fn spawn_boxed<T: 'static>(&self, task: Local<'static, T>) -> JoinHandle<T> {
        match self.cause() {
            Cause::Data => self.0.tasks.spawn(task),
            cause => {
                let executor = self.clone();
                self.0.tasks.spawn(Box::pin(async move { executor.for_cause(cause, task).await }))
            }
        }
    }

    /// Returns a future that is ready when the executor's time is `ns` nanoseconds later than [`Executor::now_ns`] at
    /// this call. On the wall clock that is the last reading of the clock, so the future may be ready earlier than `ns`
    /// after this call.
    pub fn sleep(&self, ns: u64) -> Sleep {
        self.sleep_until(self.now_ns().saturating_add(ns))
    }

    /// Returns a future that is ready when the executor's time has reached `ns`, in nanoseconds since its start; at
    /// once if that time has passed.
    pub fn sleep_until(&self, ns: u64) -> Sleep {
        Sleep { executor: self.clone(), until_ns: ns, number: None }
    }

    /// Returns a future that lets the other tasks run first: the current task is ready again at once, but queues behind
    /// all tasks that are ready now. With a seed, it may continue before some of them.
    pub fn yield_now(&self) -> impl Future<Output = ()> {
        let mut has_yielded = false;
        std::future::poll_fn(move |context| {
            if has_yielded {
                return Poll::Ready(());
            }
            has_yielded = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }

    /// Adds a source of events. It stays until [`Executor::drop_source`] or [`Executor::shut_down`].
    pub fn add_source(&self, source: Rc<dyn Source>) {
        self.0.sources.borrow_mut().push(source);
    }

    /// Removes a source of events. Does nothing if the source was not added.
    pub fn drop_source(&self, source: &Rc<dyn Source>) {
        self.0.sources.borrow_mut().retain(|other| !Rc::ptr_eq(other, source));
    }

    /// Returns the message of the first source whose writes wait because the host's disk is full; `None` if no source's
    /// do.
    pub fn blocked(&self) -> Option<String> {
        self.0.sources.borrow().iter().find_map(|source| source.blocked())
    }

    /// Returns a future that is ready when [`Executor::notify_blocked`] is called the next time after this call.
    pub fn next_blocked(&self) -> mutex::Waiting {
        self.0.blocked_signal.next()
    }

    /// Wakes the tasks that wait in [`Executor::next_blocked`]. A source calls this when its writes begin to wait for
    /// space on the host's disk, and repeatedly while they wait.
    pub fn notify_blocked(&self) {
        self.0.blocked_signal.give();
    }

    /// Spawns `task` and waits for its result, unless the writes of a source wait because the host's disk is full.
    ///
    /// # Errors
    /// The message of such a source. If the source was blocked at the call, the task is not started. If it became
    /// blocked later, the task continues in the background.
    pub async fn unless_blocked<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> Result<T, String> {
        if let Some(reason) = self.blocked() {
            return Err(reason);
        }
        self.wait_unless_blocked(self.spawn(task)).await
    }

    /// Waits for `wait`, or until the writes of a source wait because the host's disk is full. A result that is ready
    /// is returned even then.
    ///
    /// # Errors
    /// The message of such a source; `wait` is then dropped before it is done.
    pub async fn wait_unless_blocked<T>(&self, wait: impl Future<Output = T>) -> Result<T, String> {
        let mut wait = pin!(wait);
        let mut blocked = pin!(self.next_blocked());
        std::future::poll_fn(|context| {
            loop {
                if let Poll::Ready(outcome) = wait.as_mut().poll(context) {
                    return Poll::Ready(Ok(outcome));
                }
                if let Some(reason) = self.blocked() {
                    return Poll::Ready(Err(reason));
                }
                if blocked.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                blocked.set(self.next_blocked());
            }
        })
        .await
    }

    /// Drops every task, timer and source. An executor and its tasks own each other, so their memory is freed only by
    /// this call.
    pub fn shut_down(&self) {
        // Dropping a task may drop timers and make others ready, so nothing is borrowed during the drop.
        self.0.tasks.forget_all();
        drop(std::mem::take(&mut *self.0.timers.borrow_mut()));
        let sources = std::mem::take(&mut *self.0.sources.borrow_mut());
        drop(sources);
    }

    /// Runs the executor until `task` is done, and returns the result of `task`. Other ready tasks run as well, and
    /// stay if they are not done.
    ///
    /// # Errors
    /// [`Stalled`] if `task` is not done and no task can ever continue.
    pub fn run<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> Result<T, Stalled> {
        self.run_joined(&self.spawn(task))
    }

    fn run_joined<T>(&self, joined: &JoinHandle<T>) -> Result<T, Stalled> {
        loop {
            if let Some(result) = joined.take() {
                return Ok(result);
            }
            self.turn()?;
        }
    }

    /// Runs the executor until `task` is done, and returns the result of `task`. Returns `None` if `task` is not done
    /// after `polls` polls of all tasks together; the tasks that are ready then are still polled. A test finds so tasks
    /// that wake each other forever, without the passing of time.
    ///
    /// # Errors
    /// [`Stalled`] if `task` is not done and no task can ever continue.
    pub fn run_at_most<T: 'static>(
        &self,
        polls: u64,
        task: impl Future<Output = T> + 'static,
    ) -> Result<Option<T>, Stalled> {
        let joined = self.spawn(task);
        let end = self.0.tasks.polls().saturating_add(polls);
        while self.0.tasks.polls() < end {
            if let Some(result) = joined.take() {
                return Ok(Some(result));
            }
            self.turn()?;
        }
        Ok(joined.take())
    }

    /// Performs one step without waiting: polls the tasks that are ready. If there are none, reads the wall clock and
    /// delivers the timers and events that are due. Virtual time does not advance. Returns false if no task was ready
    /// and none became ready.
    pub fn tick(&self) -> bool {
        if self.0.tasks.poll_ready() {
            return true;
        }
        self.read_wall();
        self.deliver_due(self.now_ns());
        self.0.tasks.has_ready()
    }

    /// Polls the ready tasks, or lets time pass until the next event.
    fn turn(&self) -> Result<(), Stalled> {
        if self.tick() {
            return Ok(());
        }
        let (now_ns, next_ns) = (self.now_ns(), self.next_event_ns());
        match (self.0.began, next_ns) {
            (_, None) => return Err(Stalled),
            (None, Some(next_ns)) => self.0.now_ns.set(next_ns.max(now_ns)),
            (Some(_), Some(next_ns)) => self.0.notify.wait(Duration::from_nanos(next_ns.saturating_sub(now_ns))),
        }
        Ok(())
    }

    /// Returns whether a task is ready to be polled.
    pub fn has_ready(&self) -> bool {
        self.0.tasks.has_ready()
    }

    /// Updates the executor's time from the wall clock. The time never goes back. Does nothing in virtual time.
    pub fn read_wall(&self) {
        if let Some(began) = self.0.began {
            let elapsed_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.0.now_ns.set(elapsed_ns.max(self.now_ns()));
        }
    }

    fn deliver_due(&self, now_ns: u64) {
        loop {
            let mut timers = self.0.timers.borrow_mut();
            match timers.first_entry() {
                Some(first) if first.key().0 <= now_ns => {
                    let waker = first.remove();
                    drop(timers);
                    waker.wake();
                }
                _ => break,
            }
        }
        let sources = self.0.sources.borrow().clone();
        for source in sources {
            source.deliver(now_ns);
        }
    }

    /// Returns the time of the earliest timer or event of a source, in nanoseconds since the start of the executor;
    /// `None` if there is none. The time may have passed already.
    pub fn next_event_ns(&self) -> Option<u64> {
        let now_ns = self.now_ns();
        let timer = self.0.timers.borrow().first_key_value().map(|((at, _), _)| *at);
        let sources = self.0.sources.borrow();
        let events = sources.iter().filter_map(|source| source.next_event_ns(now_ns));
        events.chain(timer).min()
    }
}

/// Future of [`Executor::sleep`] and [`Executor::sleep_until`]: waits until the executor's time has reached a given
/// time.
pub struct Sleep {
    executor: Executor,
    until_ns: u64,
    number: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.executor.now_ns() >= self.until_ns {
            return Poll::Ready(());
        }
        let inner = self.executor.0.clone();
        let number = *self.number.get_or_insert_with(|| {
            inner.timers_made.set(inner.timers_made.get() + 1);
            inner.timers_made.get()
        });
        inner.timers.borrow_mut().insert((self.until_ns, number), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.executor.0.timers.borrow_mut().remove(&(self.until_ns, number));
        }
    }
}

/// Waits until one of two futures is done, and drops both. `one` is polled first.
pub async fn select(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    futures_util::future::select(pin!(one), pin!(other)).await;
}

/// Set of futures that run concurrently, at most a given number at a time. Their results are returned in the order in
/// which the futures were started. They are polled only while a caller waits in [`BoundedOrdered::begin`] or
/// [`BoundedOrdered::next`], so none of them may hold a lock or resource that another task needs.
pub struct BoundedOrdered<'a, T> {
    most: usize,
    under_way: VecDeque<(Local<'a, T>, Option<T>)>,
    begun: u64,
}

impl<'a, T> BoundedOrdered<'a, T> {
    /// Returns an empty set for at most `most` futures at a time; 0 counts as 1.
    pub fn new(most: usize) -> BoundedOrdered<'a, T> {
        BoundedOrdered { most: most.max(1), under_way: VecDeque::new(), begun: 0 }
    }

    /// Returns the number of futures that were started since the set was created.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Returns the number of futures whose results were returned since the set was created.
    pub fn returned(&self) -> u64 {
        self.begun - self.under_way.len() as u64
    }

    /// Starts `future` and polls all futures in the set. Returns the result of the oldest future if it is done, else
    /// `None`. If the set is full with `future`, waits for the oldest future, which may be `future` itself.
    pub async fn begin(&mut self, future: impl Future<Output = T> + 'a) -> Option<T> {
        self.under_way.push_back((Box::pin(future), None));
        self.begun += 1;
        let is_full = self.under_way.len() >= self.most;
        std::future::poll_fn(|context| {
            self.poll_each(context);
            let is_over = self.under_way.front().is_some_and(|(_, outcome)| outcome.is_some());
            if is_over || !is_full { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        self.take_first()
    }

    /// Waits for the oldest future that is left, and returns its result. Returns `None` if no future is left.
    pub async fn next(&mut self) -> Option<T> {
        self.under_way.front()?;
        std::future::poll_fn(|context| {
            self.poll_each(context);
            if self.under_way.front().is_some_and(|(_, outcome)| outcome.is_some()) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        self.take_first()
    }

    fn poll_each(&mut self, context: &mut Context<'_>) {
        for (future, outcome) in self.under_way.iter_mut().filter(|(_, outcome)| outcome.is_none()) {
            if let Poll::Ready(done) = future.as_mut().poll(context) {
                *outcome = Some(done);
            }
        }
    }

    fn take_first(&mut self) -> Option<T> {
        let outcome = self.under_way.front_mut().and_then(|(_, outcome)| outcome.take());
        if outcome.is_some() {
            self.under_way.pop_front();
        }
        outcome
    }
}

#[cfg(test)]
pub(crate) mod tests;
