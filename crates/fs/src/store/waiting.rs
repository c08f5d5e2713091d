//! The queue of writers that wait for space, and their signals to and from the cleaner, which makes space.
//!
//! Invariants:
//! 1. A waiting task holds no allocation, so tasks that write can always finish.
//! 2. Each time space becomes available, the queued writers try in order of arrival, and new arrivals queue last. No
//!    writer overtakes another that could have used the space.
//! 3. A writer is refused only after two events: the cleaner found nothing to gain since the writer began to wait for
//!    it, and no allocation of another task is in flight. Failures of the cleaner while the writer waits for other
//!    tasks do not count: those tasks may leave dead blocks.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::error::FsError;
use crate::executor::{Signal, select};

/// The queue of writers that wait for space.
#[derive(Default)]
pub(super) struct Waiting {
    /// Event that occurs when space may have become available: a zone was emptied, blocks were freed, or an allocation
    /// ended.
    pub has_room: Signal,
    needs_cleaning: Signal,
    is_asked: Cell<bool>,
    cleaning_fails: Signal,
    /// Number of times that the cleaner found nothing to gain.
    gave_up: Cell<u64>,
    waiting: Cell<u32>,
    /// Writers in [`Waiting::until`] whose first attempt failed, by order of arrival.
    queue: RefCell<BTreeMap<u64, Rc<Place>>>,
    comers: Cell<u64>,
}

/// State of a queued writer.
#[derive(Default)]
struct Place {
    /// Value of `has_room.times()` before the writer's latest attempt.
    tried: Cell<u64>,
    /// Signals that the writer before this one has tried or has left the queue.
    turn: Signal,
}

/// A writer in the queue; dropping it removes the writer.
struct Queued<'a> {
    waiting: &'a Waiting,
    number: u64,
    place: Rc<Place>,
}

impl<'a> Queued<'a> {
    /// Appends a writer to the queue, which has tried when `has_room` had been signalled `tried` times.
    fn last(waiting: &'a Waiting, tried: u64) -> Queued<'a> {
        let number = waiting.comers.get();
        waiting.comers.set(number + 1);
        let place = Rc::new(Place { tried: Cell::new(tried), turn: Signal::default() });
        waiting.queue.borrow_mut().insert(number, place.clone());
        Queued { waiting, number, place }
    }

    /// Waits until the writer before this one has tried since the latest signal of space, or has left the queue.
    async fn turn(&self) {
        loop {
            let turn = self.place.turn.next();
            let before = self.waiting.queue.borrow().range(..self.number).next_back().map(|(_, place)| place.clone());
            if before.is_none_or(|before| before.tried.get() >= self.waiting.has_room.times()) {
                return;
            }
            turn.await;
        }
    }

    /// Wakes the next writer in the queue.
    fn pass_on(&self) {
        let next = self.waiting.queue.borrow().range(self.number + 1..).next().map(|(_, place)| place.clone());
        next.inspect(|next| next.turn.give());
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.waiting.queue.borrow_mut().remove(&self.number);
        self.pass_on();
    }
}

impl Waiting {
    /// Repeats `attempt` until it returns a value. While `is_busy` returns true, waits for the other tasks that write,
    /// which may leave space; otherwise asks the cleaner. `has_allocations` returns whether any band is allocated or
    /// being emptied.
    ///
    /// # Errors
    ///
    /// [`FsError::NoSpace`] if the cleaner found nothing to gain and `has_allocations` returns false.
    pub(super) async fn until<T>(
        &self,
        mut attempt: impl AsyncFnMut() -> Option<T>,
        is_busy: impl Fn() -> bool,
        has_allocations: impl Fn() -> bool,
    ) -> Result<T, FsError> {
        let mut gave_up = self.gave_up.get();
        let mut queued = self.is_queued().then(|| Queued::last(self, 0));
        loop {
            if let Some(queued) = &queued {
                queued.turn().await;
            }
            let (room, failed) = (self.has_room.next(), self.cleaning_fails.next());
            let tried = self.has_room.times();
            if let Some(found) = attempt().await {
                return Ok(found);
            }
            let queued = queued.get_or_insert_with(|| Queued::last(self, tried));
            queued.place.tried.set(tried);
            queued.pass_on();
            if is_busy() {
                room.await;
                gave_up = self.gave_up.get();
                continue;
            }
            let has_failed = self.gave_up.get() > gave_up;
            if has_failed && !has_allocations() {
                return Err(FsError::NoSpace);
            }
            if has_failed {
                // The task that still writes may leave dead blocks that are worth cleaning.
                room.await;
                gave_up = self.gave_up.get();
            } else {
                self.waiting.set(self.waiting.get() + 1);
                self.ask();
                select(room, failed).await;
                self.waiting.set(self.waiting.get() - 1);
            }
        }
    }

    /// Asks the cleaner to look for a victim.
    pub(super) fn ask(&self) {
        self.is_asked.set(true);
        self.needs_cleaning.give();
    }

    /// Returns whether the queue has a writer, which waits or is about to try again.
    pub(super) fn is_queued(&self) -> bool {
        !self.queue.borrow().is_empty()
    }

    /// Returns whether any writer waits for the cleaner.
    pub(super) fn is_anybody(&self) -> bool {
        self.waiting.get() > 0
    }

    /// Waits until a writer asks for space that only cleaning can make.
    pub(super) async fn cleaning_needed(&self) {
        loop {
            let asked = self.needs_cleaning.next();
            if self.is_asked.replace(false) {
                return;
            }
            asked.await;
        }
    }

    /// Reports that the cleaner found nothing to gain: waiting writers must give up.
    pub(super) fn cleaning_failed(&self) {
        self.gave_up.set(self.gave_up.get() + 1);
        self.cleaning_fails.give();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;
    use crate::executor::Executor;

    const TURN_NS: u64 = 1_000_000;

    /// Returns the longest time that a writer waited for a place, in nanoseconds. Each writer holds a place for a
    /// millisecond and then writes again. The places become free at one moment, one after the other: writer `number`
    /// yields `number % places * steps` times before it frees its place.
    fn longest_wait(writers: u32, places: u32, steps: u32) -> u64 {
        let executor = Executor::in_virtual_time();
        let (waiting, free) = (Rc::new(Waiting::default()), Rc::new(Cell::new(places)));
        let longest = Rc::new(Cell::new(0));
        let writer = |number: u32| {
            let (executor, waiting, free, longest) = (executor.clone(), waiting.clone(), free.clone(), longest.clone());
            async move {
                for _ in 0..30 {
                    let began_ns = executor.now_ns();
                    let take = async || {
                        let left = free.get().checked_sub(1)?;
                        free.set(left);
                        Some(())
                    };
                    waiting.until(take, || true, || true).await.unwrap();
                    longest.set(longest.get().max(executor.now_ns() - began_ns));
                    executor.sleep(TURN_NS).await;
                    for _ in 0..number % places * steps {
                        let_others_go().await;
                    }
                    free.set(free.get() + 1);
                    waiting.has_room.give();
                }
            }
        };
        let writers: Vec<_> = (0..writers).map(|number| executor.spawn(writer(number))).collect();
        executor.run(all_over(writers)).unwrap();
        assert_eq!((waiting.is_queued(), free.get()), (false, places));
        longest.get()
    }

    /// Checks that writers take turns at the places, so that none waits for more turns than all the others fill.
    /// Method: rounds of writers that all write again at once, with places that become free at one moment, one after
    /// the other.
    #[test]
    fn who_has_written_does_not_go_before_those_who_wait() {
        for (writers, places) in [(10u32, 2), (50, 4), (7, 3), (5, 1)] {
            for steps in [0, 1, 2] {
                let turns = u64::from(writers.div_ceil(places)) - 1;
                assert_eq!(
                    longest_wait(writers, places, steps),
                    turns * TURN_NS,
                    "{writers} at {places}, {steps} steps"
                );
            }
        }
    }

    /// While a writer waits for other tasks, the cleaner finds nothing to gain. The others then leave dead blocks, so the
    /// writer must ask the cleaner again before it is refused.
    #[test]
    fn a_writer_that_waited_for_others_asks_the_cleaner_before_it_is_refused() {
        let executor = Executor::in_virtual_time();
        let (waiting, is_busy, is_free) =
            (Rc::new(Waiting::default()), Rc::new(Cell::new(true)), Rc::new(Cell::new(false)));
        let (own, busy, free) = (waiting.clone(), is_busy.clone(), is_free.clone());
        let writer =
            executor.spawn(async move { own.until(async || free.get().then_some(()), || busy.get(), || false).await });
        let own = executor.clone();
        let outcome = executor.run(async move {
            own.sleep(TURN_NS).await;
            waiting.cleaning_failed();
            is_busy.set(false);
            waiting.has_room.give();
            own.sleep(TURN_NS).await;
            assert!(waiting.is_anybody(), "the writer waits for the cleaner");
            is_free.set(true);
            waiting.has_room.give();
            writer.await
        });
        assert!(outcome.unwrap().is_ok());
    }

    async fn let_others_go() {
        let mut has_gone = false;
        std::future::poll_fn(|context| {
            if std::mem::replace(&mut has_gone, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    async fn all_over(writers: Vec<crate::executor::JoinHandle<()>>) {
        for writer in writers {
            writer.await;
        }
    }
}
