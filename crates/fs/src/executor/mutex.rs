//! Synchronization of tasks of one thread: a lock that serves waiters in order of arrival, and a signal that wakes all
//! waiting tasks.
//!
//! The lock is our own because the order of waiters must not vary from run to run. `async_lock` lets a waiter overtake
//! the others until one has waited for half a millisecond of the wall clock, and `futures_util` promises no order.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct LockState {
    is_held: Cell<bool>,
    /// Waiting tasks in order of arrival, each with a flag that the lock was passed to it.
    waiting: RefCell<VecDeque<Rc<Turn>>>,
}

#[derive(Default)]
struct Turn {
    has_come: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// Lock for tasks of one thread. Tasks get it in order of arrival. A clone is another handle of the same lock.
#[derive(Clone, Default)]
pub struct Mutex(Rc<LockState>);

impl Mutex {
    /// Returns a future that waits for the lock and returns its guard. Its first poll takes the lock if it is free, and
    /// otherwise enters the queue of waiters.
    pub fn enter(&self) -> Entering {
        Entering { lock: self.0.clone(), turn: None }
    }

    /// Returns whether the lock is held, or was passed to a waiter that has not run yet.
    pub fn is_busy(&self) -> bool {
        self.0.is_held.get()
    }
}

/// Future of [`Mutex::enter`]: waits for the lock. Dropping it leaves the queue.
pub struct Entering {
    lock: Rc<LockState>,
    turn: Option<Rc<Turn>>,
}

impl Future for Entering {
    type Output = MutexGuard;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<MutexGuard> {
        let has_turn = self.turn.as_ref().is_some_and(|turn| turn.has_come.get());
        if has_turn || (self.turn.is_none() && !self.lock.is_held.get()) {
            self.lock.is_held.set(true);
            self.turn = None;
            return Poll::Ready(MutexGuard(self.lock.clone()));
        }
        let lock = self.lock.clone();
        let turn = self.turn.get_or_insert_with(|| {
            let turn = Rc::new(Turn::default());
            lock.waiting.borrow_mut().push_back(turn.clone());
            turn
        });
        *turn.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Entering {
    fn drop(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        if turn.has_come.get() {
            // The lock was passed to this waiter, which was dropped before it took the lock.
            pass_on(&self.lock);
        } else {
            self.lock.waiting.borrow_mut().retain(|other| !Rc::ptr_eq(other, &turn));
        }
    }
}

/// Guard of a [`Mutex`]: its owner holds the lock. Dropping the guard passes the lock to the task that has waited
/// longest.
pub struct MutexGuard(Rc<LockState>);

impl MutexGuard {
    /// Returns whether another task waits for the lock that this guard holds.
    pub fn is_wanted(&self) -> bool {
        !self.0.waiting.borrow().is_empty()
    }
}

impl Drop for MutexGuard {
    fn drop(&mut self) {
        pass_on(&self.0);
    }
}

fn pass_on(lock: &LockState) {
    let next = lock.waiting.borrow_mut().pop_front();
    match next {
        Some(turn) => {
            turn.has_come.set(true);
            if let Some(waker) = turn.waker.borrow_mut().take() {
                waker.wake();
            }
        }
        None => lock.is_held.set(false),
    }
}

#[derive(Default)]
struct SignalState {
    times: Cell<u64>,
    /// Wakers of waiting tasks by the number of the wait. A wait has one waker, however often it is polled, and none
    /// after it has ended.
    waiting: RefCell<BTreeMap<u64, Waker>>,
    waits: Cell<u64>,
}

/// Event that can occur many times. Each occurrence wakes all tasks that wait for it. A clone is another handle of the
/// same event.
#[derive(Clone, Default)]
pub struct Signal(Rc<SignalState>);

impl Signal {
    /// Signals one occurrence of the event: wakes all tasks that wait for it.
    pub fn give(&self) {
        self.0.times.set(self.0.times.get() + 1);
        // Nothing is borrowed while wakers run: a woken task may wait again.
        let waiting = std::mem::take(&mut *self.0.waiting.borrow_mut());
        waiting.into_values().for_each(Waker::wake);
    }

    /// Returns the number of times that the event has occurred since it was created.
    pub fn times(&self) -> u64 {
        self.0.times.get()
    }

    /// Returns a future that is ready once the event occurs after this call, even if the future was not polled before.
    pub fn next(&self) -> Waiting {
        Waiting { signal: self.0.clone(), seen: self.0.times.get(), number: None }
    }
}

/// Future of [`Signal::next`]: waits for the next occurrence.
pub struct Waiting {
    signal: Rc<SignalState>,
    seen: u64,
    /// Number of this wait in `SignalState::waiting`; set by the first poll that returns pending.
    number: Option<u64>,
}

impl Future for Waiting {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.signal.times.get() > self.seen {
            return Poll::Ready(());
        }
        let signal = self.signal.clone();
        let number = *self.number.get_or_insert_with(|| {
            signal.waits.set(signal.waits.get() + 1);
            signal.waits.get()
        });
        signal.waiting.borrow_mut().insert(number, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.signal.waiting.borrow_mut().remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_kept_once_and_no_longer_than_it_waits() {
        let signal = Signal::default();
        let mut context = Context::from_waker(Waker::noop());
        let mut waits = [signal.next(), signal.next()];
        for wait in &mut waits {
            assert!(Pin::new(&mut *wait).poll(&mut context).is_pending());
            assert!(Pin::new(wait).poll(&mut context).is_pending());
        }
        assert_eq!(signal.0.waiting.borrow().len(), 2, "polled twice, it waits once");
        let [one, mut other] = waits;
        drop(one);
        assert_eq!(signal.0.waiting.borrow().len(), 1, "who gave up is forgotten");
        signal.give();
        assert!(Pin::new(&mut other).poll(&mut context).is_ready());
        assert_eq!(signal.0.waiting.borrow().len(), 0);
    }
}
