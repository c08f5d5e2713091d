//! What tasks of one thread wait at: a gate that one passes at a time, and a signal that wakes all who wait.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct GateState {
    is_held: Cell<bool>,
    /// Who waits, in order of arrival, each with whether its turn has come.
    waiting: RefCell<VecDeque<Rc<Turn>>>,
}

#[derive(Default)]
struct Turn {
    has_come: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// One task at a time, in order of arrival.
#[derive(Clone, Default)]
pub struct Gate(Rc<GateState>);

impl Gate {
    /// Waits for its turn.
    pub fn enter(&self) -> Entering {
        Entering { gate: self.0.clone(), turn: None }
    }

    /// Whether somebody is inside or waits.
    pub fn is_busy(&self) -> bool {
        self.0.is_held.get()
    }
}

/// Waits at a [`Gate`].
pub struct Entering {
    gate: Rc<GateState>,
    turn: Option<Rc<Turn>>,
}

impl Future for Entering {
    type Output = Pass;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Pass> {
        let has_turn = self.turn.as_ref().is_some_and(|turn| turn.has_come.get());
        if has_turn || (self.turn.is_none() && !self.gate.is_held.get()) {
            self.gate.is_held.set(true);
            self.turn = None;
            return Poll::Ready(Pass(self.gate.clone()));
        }
        let gate = self.gate.clone();
        let turn = self.turn.get_or_insert_with(|| {
            let turn = Rc::new(Turn::default());
            gate.waiting.borrow_mut().push_back(turn.clone());
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
            // Its turn came and it does not want it any more: the next one's has.
            pass_on(&self.gate);
        } else {
            self.gate.waiting.borrow_mut().retain(|other| !Rc::ptr_eq(other, &turn));
        }
    }
}

/// Being inside a [`Gate`]; dropping it lets the next one in.
pub struct Pass(Rc<GateState>);

impl Pass {
    /// Whether somebody waits to be let in.
    pub fn is_wanted(&self) -> bool {
        !self.0.waiting.borrow().is_empty()
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        pass_on(&self.0);
    }
}

fn pass_on(gate: &GateState) {
    let next = gate.waiting.borrow_mut().pop_front();
    match next {
        Some(turn) => {
            turn.has_come.set(true);
            if let Some(waker) = turn.waker.borrow_mut().take() {
                waker.wake();
            }
        }
        None => gate.is_held.set(false),
    }
}

#[derive(Default)]
struct SignalState {
    times: Cell<u64>,
    /// The wakers of those who wait, by the number of each wait: one each, however often it is polled, and none once
    /// the wait is over.
    waiting: RefCell<BTreeMap<u64, Waker>>,
    waits: Cell<u64>,
}

/// Something that happens again and again; whoever waits is woken the next time.
#[derive(Clone, Default)]
pub struct Signal(Rc<SignalState>);

impl Signal {
    /// It happens: everybody who waits goes on.
    pub fn give(&self) {
        self.0.times.set(self.0.times.get() + 1);
        // Nothing is borrowed meanwhile: what is woken may wait again.
        let waiting = std::mem::take(&mut *self.0.waiting.borrow_mut());
        waiting.into_values().for_each(Waker::wake);
    }

    /// How often it has happened.
    pub fn times(&self) -> u64 {
        self.0.times.get()
    }

    /// Waits for the next time, counted from now.
    pub fn next(&self) -> Waiting {
        Waiting { signal: self.0.clone(), seen: self.0.times.get(), number: None }
    }
}

/// Waits for a [`Signal`].
pub struct Waiting {
    signal: Rc<SignalState>,
    seen: u64,
    /// Its number among those that wait, once it does.
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
