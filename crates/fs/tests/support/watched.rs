//! A device in front of another, for tests of several files.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use imbrex_fs::device::{Backend, Geometry, Operation, Outcome};

/// Notes how many operations the drive had at most, and gives one that knows no time a time for each operation.
pub struct Watched {
    drive: Box<dyn Backend>,
    each_ns: u64,
    free_at_ns: u64,
    late: VecDeque<(u64, u64, Outcome)>,
    now: usize,
    most: Rc<Cell<usize>>,
}

impl Watched {
    /// In front of `drive`, where an operation takes `each_ns`, or what the drive says if that is 0.
    pub fn new(drive: Box<dyn Backend>, each_ns: u64, most: &Rc<Cell<usize>>) -> Watched {
        Watched { drive, each_ns, free_at_ns: 0, late: VecDeque::new(), now: 0, most: most.clone() }
    }
}

impl Backend for Watched {
    fn geometry(&self) -> Geometry {
        self.drive.geometry()
    }

    fn submit(&mut self, now_ns: u64, number: u64, operation: Operation) {
        self.now += 1;
        self.most.set(self.most.get().max(self.now));
        self.drive.submit(now_ns, number, operation);
        if self.each_ns > 0 {
            let mut answers = Vec::new();
            self.drive.answers(now_ns, &mut answers);
            self.free_at_ns = self.free_at_ns.max(now_ns) + self.each_ns;
            self.late.extend(answers.into_iter().map(|(number, outcome)| (self.free_at_ns, number, outcome)));
        }
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        let late = self.late.front().map(|(when, ..)| (*when).max(now_ns));
        late.or_else(|| self.drive.next_event_ns(now_ns))
    }

    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        let before = answers.len();
        self.drive.answers(now_ns, answers);
        while self.late.front().is_some_and(|(when, ..)| *when <= now_ns) {
            answers.extend(self.late.pop_front().map(|(_, number, outcome)| (number, outcome)));
        }
        self.now -= answers.len() - before;
    }

    fn head_position(&self) -> u64 {
        self.drive.head_position()
    }
}
