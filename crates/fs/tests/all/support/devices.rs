//! Wrappers around devices, for the tests of several files.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use imbrex_fs::device::{BLOCK_BYTES, Backend, DeviceFault, Geometry, Operation, Outcome};

/// A device that counts operations.
pub(crate) struct Counting<B> {
    inner: B,
    /// Sizes of all writes, blocks.
    pub operations: Rc<RefCell<Vec<u64>>>,
    /// Number of operations in flight now, and at most.
    pub at_once: Rc<Cell<(usize, usize)>>,
}

impl<B> Counting<B> {
    /// Returns a counting device in front of `inner`.
    pub(crate) fn new(inner: B) -> Counting<B> {
        Counting { inner, operations: Rc::default(), at_once: Rc::default() }
    }
}

impl<B: Backend> Backend for Counting<B> {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn submit(&mut self, now_ns: u64, number: u64, operation: Operation) {
        if let Operation::Write { bytes, .. } = &operation {
            self.operations.borrow_mut().push((bytes.len() / BLOCK_BYTES) as u64);
        }
        let (now, most) = self.at_once.get();
        self.at_once.set((now + 1, most.max(now + 1)));
        self.inner.submit(now_ns, number, operation);
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.inner.next_event_ns(now_ns)
    }

    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        let before = answers.len();
        self.inner.answers(now_ns, answers);
        let (now, most) = self.at_once.get();
        self.at_once.set((now - (answers.len() - before), most));
    }

    fn head_position(&self) -> u64 {
        self.inner.head_position()
    }
}

/// A model device with service times. It serves one operation at a time, in order.
pub(crate) struct Late<B> {
    inner: B,
    /// Returns the service time of the next operation.
    next_ns: Box<dyn FnMut() -> u64>,
    free_at_ns: u64,
    answers: VecDeque<(u64, u64, Outcome)>,
}

impl<B> Late<B> {
    /// Wraps `inner`; each operation takes `each_ns`.
    pub(crate) fn new(inner: B, each_ns: u64) -> Late<B> {
        Late::with_times(inner, move || each_ns)
    }

    /// Wraps `inner`; `next_ns` returns the service time of each operation in turn.
    pub(crate) fn with_times(inner: B, next_ns: impl FnMut() -> u64 + 'static) -> Late<B> {
        Late { inner, next_ns: Box::new(next_ns), free_at_ns: 0, answers: VecDeque::new() }
    }
}

impl<B: Backend> Backend for Late<B> {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn submit(&mut self, now_ns: u64, number: u64, operation: Operation) {
        self.inner.submit(now_ns, number, operation);
        let mut answers = Vec::new();
        self.inner.answers(now_ns, &mut answers);
        self.free_at_ns = self.free_at_ns.max(now_ns) + (self.next_ns)();
        self.answers.extend(answers.into_iter().map(|(number, outcome)| (self.free_at_ns, number, outcome)));
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.answers.front().map(|(when, ..)| (*when).max(now_ns))
    }

    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        while self.answers.front().is_some_and(|(when, ..)| *when <= now_ns) {
            answers.extend(self.answers.pop_front().map(|(_, number, outcome)| (number, outcome)));
        }
    }

    fn head_position(&self) -> u64 {
        self.inner.head_position()
    }
}

/// A device that fails writes to a range of its blocks.
pub(crate) struct Refusing<B> {
    inner: B,
    /// Range of the blocks whose writes fail; a test can change it.
    pub refused: Rc<RefCell<std::ops::Range<u64>>>,
    answers: Vec<(u64, Outcome)>,
}

impl<B> Refusing<B> {
    /// Returns a device in front of `inner`; no write fails yet.
    pub(crate) fn new(inner: B) -> Refusing<B> {
        Refusing { inner, refused: Rc::new(RefCell::new(0..0)), answers: Vec::new() }
    }
}

impl<B: Backend> Backend for Refusing<B> {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn submit(&mut self, now_ns: u64, number: u64, operation: Operation) {
        match &operation {
            Operation::Write { block, .. } if self.refused.borrow().contains(block) => {
                self.answers.push((number, Err(DeviceFault::new(format!("block {block} cannot be written")))));
            }
            _ => self.inner.submit(now_ns, number, operation),
        }
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        if self.answers.is_empty() { self.inner.next_event_ns(now_ns) } else { Some(now_ns) }
    }

    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        answers.append(&mut self.answers);
        self.inner.answers(now_ns, answers);
    }

    fn head_position(&self) -> u64 {
        self.inner.head_position()
    }
}
