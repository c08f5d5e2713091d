//! Writers that wait for room, and the cleaner that makes it: how they tell each other.
//!
//! Invariants:
//! 1. Nobody who waits holds a lease: so whoever writes can always go on.
//! 2. Who comes while others are queued lets them try first: nobody is served again and again while others wait.
//! 3. A writer is refused only after the cleaner found nothing to gain since it began to wait, and nobody else wrote.

use std::cell::Cell;

use crate::clock::{Signal, first_of};
use crate::error::FsError;

/// Who waits for room.
#[derive(Default)]
pub struct Waiting {
    /// Room was made, or a lease is over.
    pub has_room: Signal,
    needs_cleaning: Signal,
    is_asked: Cell<bool>,
    cleaning_fails: Signal,
    /// How often the cleaner found nothing to gain.
    gave_up: Cell<u64>,
    waiting: Cell<u32>,
    /// How many are in [`Waiting::until`] and have not come to something at their first attempt.
    queued: Cell<u32>,
}

/// One of those who are queued, until dropped.
struct Queued<'a>(&'a Waiting);

impl<'a> Queued<'a> {
    fn among(waiting: &'a Waiting) -> Queued<'a> {
        waiting.queued.set(waiting.queued.get() + 1);
        Queued(waiting)
    }
}

/// Who came while this one was queued let it go first, and tries now.
impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.queued.set(self.0.queued.get() - 1);
        if self.0.queued.get() > 0 {
            self.0.has_room.give();
        }
    }
}

impl Waiting {
    /// Tries again and again until `attempt` comes to something. While it `is_busy` somebody writes, who may leave room
    /// when done, and is waited for; else the cleaner is asked.
    pub async fn until<T>(
        &self,
        mut attempt: impl AsyncFnMut() -> Option<T>,
        is_busy: impl Fn() -> bool,
        has_leases: impl Fn() -> bool,
    ) -> Result<T, FsError> {
        let mut gave_up = self.gave_up.get();
        let mut queued = None;
        if self.queued.get() > 0 {
            let room = self.has_room.next();
            queued = Some(Queued::among(self));
            room.await;
        }
        loop {
            let (room, failed) = (self.has_room.next(), self.cleaning_fails.next());
            if let Some(found) = attempt().await {
                return Ok(found);
            }
            queued.get_or_insert_with(|| Queued::among(self));
            if is_busy() {
                room.await;
                continue;
            }
            let has_failed = self.gave_up.get() > gave_up;
            if has_failed && !has_leases() {
                return Err(FsError::NoSpace);
            }
            if has_failed {
                // Somebody writes still: what that leaves may be worth cleaning.
                room.await;
                gave_up = self.gave_up.get();
            } else {
                self.waiting.set(self.waiting.get() + 1);
                self.ask();
                first_of(room, failed).await;
                self.waiting.set(self.waiting.get() - 1);
            }
        }
    }

    /// Asks the cleaner to look.
    pub fn ask(&self) {
        self.is_asked.set(true);
        self.needs_cleaning.give();
    }

    /// Whether somebody has not come to something at the first attempt, and waits or is about to try again.
    pub fn is_queued(&self) -> bool {
        self.queued.get() > 0
    }

    /// Whether somebody waits.
    pub fn is_anybody(&self) -> bool {
        self.waiting.get() > 0
    }

    /// Waits until somebody needs room that only cleaning makes.
    pub async fn cleaning_needed(&self) {
        loop {
            let asked = self.needs_cleaning.next();
            if self.is_asked.replace(false) {
                return;
            }
            asked.await;
        }
    }

    /// The cleaner found nothing: whoever waits must give up.
    pub fn cleaning_failed(&self) {
        self.gave_up.set(self.gave_up.get() + 1);
        self.cleaning_fails.give();
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::clock::Clock;

    /// Goal: ten writers that write again as soon as they have written take turns at two places, so that none waits for more
    /// than five turns. Method: places that are held for a millisecond, and free when their holder says so.
    #[test]
    fn who_has_written_does_not_go_before_those_who_wait() {
        const TURN_NS: u64 = 1_000_000;
        let clock = Clock::in_virtual_time();
        let (waiting, free, longest) = (Rc::new(Waiting::default()), Rc::new(Cell::new(2u32)), Rc::new(Cell::new(0)));
        let writer = || {
            let (clock, waiting, free, longest) = (clock.clone(), waiting.clone(), free.clone(), longest.clone());
            async move {
                for _ in 0..30 {
                    let began_ns = clock.now_ns();
                    let take = async || {
                        let left = free.get().checked_sub(1)?;
                        free.set(left);
                        Some(())
                    };
                    waiting.until(take, || true, || true).await.unwrap();
                    longest.set(longest.get().max(clock.now_ns() - began_ns));
                    clock.sleep(TURN_NS).await;
                    free.set(free.get() + 1);
                    waiting.has_room.give();
                }
            }
        };
        let writers: Vec<_> = (0..10).map(|_| clock.spawn(writer())).collect();
        clock.run(all_over(writers)).unwrap();
        assert_eq!((longest.get(), waiting.queued.get(), free.get()), (4 * TURN_NS, 0, 2));
    }

    async fn all_over(writers: Vec<crate::clock::Joined<()>>) {
        for writer in writers {
            writer.await;
        }
    }
}
