//! A model device that takes its time: it serves one operation at a time, in order, and each takes as long as a seed says. So
//! tasks meet in the midst of what the others do.

#![allow(dead_code)] // not every test uses all of it

use std::collections::VecDeque;

use imbrex_fs::device::model::Model;
use imbrex_fs::device::{Backend, Geometry, Operation, Outcome};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// An operation takes less than this.
const OPERATION_NS_MAX: u64 = 3_000_000;

/// See above.
pub struct Slow {
    model: Model,
    random: Xoshiro256PlusPlus,
    free_at_ns: u64,
    answers: VecDeque<(u64, u64, Outcome)>,
}

impl Slow {
    /// `model` with times by `seed`.
    pub fn new(model: Model, seed: u64) -> Slow {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Slow { model, random, free_at_ns: 0, answers: VecDeque::new() }
    }
}

impl Backend for Slow {
    fn geometry(&self) -> Geometry {
        self.model.geometry()
    }

    fn submit(&mut self, now_ns: u64, number: u64, operation: Operation) {
        self.model.submit(now_ns, number, operation);
        let mut answers = Vec::new();
        self.model.answers(now_ns, &mut answers);
        // One in four comes at once.
        let takes_ns =
            if self.random.next_u64().is_multiple_of(4) { 0 } else { self.random.next_u64() % OPERATION_NS_MAX };
        self.free_at_ns = self.free_at_ns.max(now_ns) + takes_ns;
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
        self.model.head_position()
    }
}
