//! Tasks of one thread, and the queue of the ready ones. The queue has a lock only because the type of a waker allows
//! calls from any thread.
//!
//! The next task is the one that became ready first. With a seed it is any of the ready ones, chosen by the seed, so
//! that tests see orders that devices and callers cause only rarely.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Local;

/// Task, kept until it is done.
struct Task {
    work: Local<'static, ()>,
    waker: Waker,
}

/// Queue of the numbers of ready tasks.
#[derive(Default)]
pub(crate) struct Ready(Mutex<VecDeque<usize>>);

impl Ready {
    fn locked(&self) -> std::sync::MutexGuard<'_, VecDeque<usize>> {
        // No code that holds the lock can panic in the middle of a change, so the queue is whole even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, task: usize) {
        self.locked().push_back(task);
    }
}

struct TaskWaker {
    task: usize,
    ready: Arc<Ready>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.ready.push(self.task);
    }
}

/// All tasks of an executor.
pub(super) struct Tasks {
    tasks: RefCell<Vec<Option<Task>>>,
    free: RefCell<Vec<usize>>,
    ready: Arc<Ready>,
    /// Chooses the next ready task at random; without it tasks run in the order in which they became ready.
    chooser: Option<RefCell<Xoshiro256PlusPlus>>,
    polls: Cell<u64>,
}

impl Tasks {
    /// Returns an empty set of tasks. If a seed is given, it chooses which ready task runs next.
    pub(super) fn new(seed: Option<u64>) -> Tasks {
        Tasks {
            tasks: RefCell::default(),
            free: RefCell::default(),
            ready: Arc::default(),
            chooser: seed.map(|seed| RefCell::new(Xoshiro256PlusPlus::seed_from_u64(seed))),
            polls: Cell::new(0),
        }
    }

    /// Returns how many times a task was polled so far.
    pub(super) fn polls(&self) -> u64 {
        self.polls.get()
    }

    /// Removes the next ready task from the queue and returns its number.
    fn next_ready(&self) -> Option<usize> {
        let mut ready = self.ready.locked();
        let Some(chooser) = self.chooser.as_ref().filter(|_| ready.len() > 1) else { return ready.pop_front() };
        let chosen = chooser.borrow_mut().next_u64() % ready.len() as u64;
        ready.remove(chosen as usize)
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.locked().is_empty()
    }

    pub(super) fn spawn<T: 'static>(&self, work: Local<'static, T>) -> JoinHandle<T> {
        let joined = JoinHandle { shared: Rc::new(Shared { result: RefCell::new(None), waker: RefCell::new(None) }) };
        let shared = joined.shared.clone();
        let work = Box::pin(async move {
            let result = work.await;
            *shared.result.borrow_mut() = Some(result);
            if let Some(waker) = shared.waker.borrow_mut().take() {
                waker.wake();
            }
        });
        let number = self.free.borrow_mut().pop().unwrap_or_else(|| {
            self.tasks.borrow_mut().push(None);
            self.tasks.borrow().len() - 1
        });
        let waker = Waker::from(Arc::new(TaskWaker { task: number, ready: self.ready.clone() }));
        self.tasks.borrow_mut()[number] = Some(Task { work, waker });
        self.ready.push(number);
        joined
    }

    /// Drops all tasks.
    pub(super) fn forget_all(&self) {
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        self.free.borrow_mut().clear();
        self.ready.locked().clear();
        drop(tasks);
    }

    /// Polls the tasks that are ready now. Returns whether there were any.
    pub(super) fn poll_ready(&self) -> bool {
        let count = self.ready.locked().len();
        for _ in 0..count {
            let Some(number) = self.next_ready() else { break };
            self.poll(number);
        }
        count > 0
    }

    fn poll(&self, number: usize) {
        // The queue may name a task that is done, or was woken twice.
        let Some(mut task) = self.tasks.borrow_mut()[number].take() else { return };
        let waker = task.waker.clone();
        self.polls.set(self.polls.get() + 1);
        match task.work.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(()) => self.free.borrow_mut().push(number),
            Poll::Pending => self.tasks.borrow_mut()[number] = Some(task),
        }
    }
}

struct Shared<T> {
    result: RefCell<Option<T>>,
    waker: RefCell<Option<Waker>>,
}

/// Handle of a task: a future of the task's result. Dropping the handle does not cancel the task.
pub struct JoinHandle<T> {
    shared: Rc<Shared<T>>,
}

impl<T> JoinHandle<T> {
    /// Returns the result if the task is done, and removes it from the handle. Returns `None` if the task is not done,
    /// or if the result was taken before.
    pub fn take(&self) -> Option<T> {
        self.shared.result.borrow_mut().take()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if let Some(result) = self.take() {
            return Poll::Ready(result);
        }
        *self.shared.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}
