//! What tasks of one thread wait at: a gate that one passes at a time, and a signal that wakes all who wait.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
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
    waiting: RefCell<Vec<Waker>>,
}

/// Something that happens again and again; whoever waits is woken the next time.
#[derive(Clone, Default)]
pub struct Signal(Rc<SignalState>);

impl Signal {
    /// It happens: everybody who waits goes on.
    pub fn give(&self) {
        self.0.times.set(self.0.times.get() + 1);
        for waker in self.0.waiting.borrow_mut().drain(..) {
            waker.wake();
        }
    }

    /// Waits for the next time, counted from now.
    pub fn next(&self) -> Waiting {
        Waiting { signal: self.0.clone(), seen: self.0.times.get() }
    }
}

/// Waits for a [`Signal`].
pub struct Waiting {
    signal: Rc<SignalState>,
    seen: u64,
}

impl Future for Waiting {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.signal.times.get() > self.seen {
            return Poll::Ready(());
        }
        self.signal.waiting.borrow_mut().push(context.waker().clone());
        Poll::Pending
    }
}
