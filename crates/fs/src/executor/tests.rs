//! Goal: tasks run in order, virtual time jumps and never goes back, locks are fair. Method: small programs with known
//! logs.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;

type Lines = Rc<RefCell<Vec<String>>>;

fn log() -> (Lines, impl Fn(&str, &Executor) + Clone) {
    let lines = Rc::new(RefCell::new(Vec::new()));
    let copy = lines.clone();
    (lines, move |what: &str, executor: &Executor| copy.borrow_mut().push(format!("{what} {}", executor.now_ns())))
}

#[test]
fn sleepers_wake_in_order_of_time_and_no_time_passes_but_theirs() {
    let executor = Executor::in_virtual_time();
    let (lines, say) = log();
    for (name, ns) in [("late", 30), ("early", 10), ("middle", 20)] {
        let (own, say) = (executor.clone(), say.clone());
        executor.spawn(async move {
            own.sleep(ns).await;
            say(name, &own);
        });
    }
    let own = executor.clone();
    executor.run(async move { own.sleep(1_000).await }).unwrap();
    assert_eq!(*lines.borrow(), ["early 10", "middle 20", "late 30"]);
    assert_eq!(executor.now_ns(), 1_000);
}

#[test]
fn a_gate_lets_in_one_at_a_time_in_order_of_arrival_and_skips_who_left() {
    let executor = Executor::in_virtual_time();
    let (lines, say) = log();
    let lock = Mutex::default();
    let mut entered = Vec::new();
    for name in ["a", "b", "c"] {
        let (own, say, lock) = (executor.clone(), say.clone(), lock.clone());
        entered.push(executor.spawn(async move {
            let _pass = lock.enter().await;
            say(name, &own);
            own.sleep(5).await;
        }));
    }
    // A task that waits behind the others and gives up.
    let (own, leaver) = (executor.clone(), lock.clone());
    executor.spawn(async move {
        own.yield_now().await;
        let mut entering = Box::pin(leaver.enter());
        let is_waiting =
            std::future::poll_fn(|context| Poll::Ready(entering.as_mut().poll(context).is_pending())).await;
        assert!(is_waiting);
    });
    let behind = lock.clone();
    executor
        .run(async move {
            for entry in entered {
                entry.await;
            }
            let _pass = behind.enter().await;
        })
        .unwrap();
    assert_eq!(*lines.borrow(), ["a 0", "b 5", "c 10"]);
    assert!(!lock.is_busy());
}

/// A source whose blocked state is set by the test, and that makes no events.
#[derive(Default)]
pub(crate) struct Blockable(pub(crate) Cell<bool>);

impl Source for Blockable {
    fn next_event_ns(&self, _: u64) -> Option<u64> {
        None
    }

    fn deliver(&self, _: u64) {}

    fn blocked(&self) -> Option<String> {
        self.0.get().then(|| "full".into())
    }
}

/// A waiter is refused when the source becomes blocked, keeps no place in the queue of the lock, and gets a free lock
/// at once even if a source is blocked. A notification without a blocked source refuses no waiter.
#[test]
fn a_wait_ends_when_a_source_is_blocked() {
    let executor = Executor::in_virtual_time();
    let (lines, say) = log();
    let (source, lock) = (Rc::new(Blockable::default()), Mutex::default());
    executor.add_source(source.clone());
    for name in ["a", "b", "c"] {
        let (own, say, lock) = (executor.clone(), say.clone(), lock.clone());
        executor.spawn(async move {
            match own.wait_unless_blocked(lock.enter()).await {
                Ok(_pass) => {
                    say(name, &own);
                    own.sleep(10).await;
                }
                Err(reason) => say(&format!("{name}: {reason}"), &own),
            }
        });
    }
    let (own, behind, says) = (executor.clone(), lock.clone(), say.clone());
    let outcome = executor.run(async move {
        for (until_ns, is_blocked) in [(5, false), (15, true)] {
            own.sleep_until(until_ns).await;
            source.0.set(is_blocked);
            own.notify_blocked();
        }
        own.sleep_until(20).await;
        assert!(own.wait_unless_blocked(behind.enter()).await.is_ok(), "nobody is inside");
        let inner = own.clone();
        assert!(own.unless_blocked(async move { says("begun", &inner) }).await.is_err());
        own.sleep(1).await;
    });
    assert_eq!(outcome, Ok(()));
    assert_eq!(*lines.borrow(), ["a 0", "b 10", "c: full 15"]);
    assert!(!lock.is_busy());
}

#[test]
fn waiting_for_nothing_is_told() {
    let executor = Executor::in_virtual_time();
    let signal = Signal::default();
    assert_eq!(executor.run(async move { signal.next().await }), Err(Stalled));
}

#[test]
fn what_can_go_on_does_without_waiting_for_what_cannot() {
    let executor = Executor::on_the_wall();
    let (own, hour_ns) = (executor.clone(), 3_600 * SECOND_NS);
    let (later, now) = (executor.spawn(async move { own.sleep(hour_ns).await }), executor.spawn(async { 7 }));
    assert!(executor.tick());
    assert!(!executor.tick(), "nothing is left but to wait");
    assert_eq!((now.take(), later.take()), (Some(7), None));
    assert_eq!(executor.next_event_ns(), Some(hour_ns), "the clock stood at 0 when the task began to wait");
}

#[test]
fn a_clock_that_forgets_frees_what_ran_on_it() {
    let executor = Executor::in_virtual_time();
    let held = Rc::new(());
    let (own, inside) = (executor.clone(), held.clone());
    executor.spawn(async move {
        own.sleep(1_000).await;
        drop(inside);
    });
    executor.run(async {}).unwrap();
    assert_eq!(Rc::strong_count(&held), 2, "the task goes on");
    executor.shut_down();
    assert_eq!(Rc::strong_count(&held), 1);
}

#[test]
fn futures_go_on_together_and_are_told_in_the_order_in_which_they_began() {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let outcomes = executor.run(async move {
        let (mut together, mut outcomes) = (BoundedOrdered::new(2), Vec::new());
        for ns in [300, 100, 200] {
            let executor = own.clone();
            let future = async move {
                executor.sleep(ns).await;
                ns
            };
            outcomes.push((together.begin(future).await, own.now_ns()));
        }
        outcomes.push((together.next().await, own.now_ns()));
        outcomes.push((together.next().await, own.now_ns()));
        outcomes.push((together.next().await, own.now_ns()));
        outcomes
    });
    // The third future is started at once but returned only after the second; the second was done long before.
    let expected = [(None, 0), (Some(300), 300), (Some(100), 300), (Some(200), 500), (None, 500), (None, 500)];
    assert_eq!(outcomes, Ok(expected.to_vec()));
}

/// Returns the order in which five tasks run that are ready at once.
fn order(executor: &Executor) -> Vec<u32> {
    let came = Rc::new(RefCell::new(Vec::new()));
    for number in 0..5 {
        let came = came.clone();
        executor.spawn(async move { came.borrow_mut().push(number) });
    }
    let own = executor.clone();
    executor.run(async move { own.sleep(1).await }).unwrap();
    came.take()
}

#[test]
fn a_seed_chooses_the_order_of_tasks_and_every_order_is_seen() {
    assert_eq!(order(&Executor::in_virtual_time()), [0, 1, 2, 3, 4]);
    let orders: Vec<_> = (0..2_000).map(|seed| order(&Executor::in_virtual_time_seeded(seed))).collect();
    assert_eq!(order(&Executor::in_virtual_time_seeded(7)), orders[7], "the same seed gives the same order");
    let different: std::collections::BTreeSet<_> = orders.iter().collect();
    assert_eq!(different.len(), 120, "all orders of five are seen");
    for order in different {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4], "each runs once");
    }
}

#[test]
fn tasks_that_wake_each_other_for_ever_are_given_up() {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    executor.spawn(async move {
        loop {
            own.yield_now().await;
        }
    });
    let own = executor.clone();
    let never = async move { own.sleep(1).await };
    assert_eq!(executor.run_at_most(10_000, never), Ok(None));
    assert_eq!(executor.run_at_most(10_000, async { 5 }), Ok(Some(5)));
}
