//! A file on a drive as a target: its offsets are those of the file, its operations go to the extents of the file. Serves
//! the tests of a probe by a file in virtual time.

use std::collections::{BTreeMap, VecDeque};

use crate::extents::Extents;
use crate::target::{About, Direction, Done, HeadPath, Next, Operation, Target, TargetError, Timed};

/// A file on another target.
pub struct Window<T> {
    inner: T,
    extents: Extents,
    about: About,
}

/// An operation on the file, of which some pieces are not complete.
struct Waiting {
    operation: Operation,
    pieces_left: usize,
    begin_ns: u64,
    end_ns: u64,
}

impl<T: Target> Window<T> {
    /// Returns the file with these extents on `inner`.
    ///
    /// # Panics
    ///
    /// If an extent reaches past the end of `inner`.
    pub fn new(inner: T, extents: Extents) -> Window<T> {
        assert!(extents.reaches_to() <= inner.size_bytes(), "the file lies on the drive");
        let about = About { size_bytes: extents.bytes(), ..inner.about().clone() };
        Window { inner, extents, about }
    }
}

/// The key of a piece among those in flight. Equal pieces are answered in the order of their submission.
type Key = (bool, u64, u64);

fn key(operation: &Operation) -> Key {
    (operation.direction == Direction::Write, operation.offset, operation.bytes)
}

/// Operations and pieces under way.
#[derive(Default)]
struct UnderWay {
    /// Operations by number.
    operations: BTreeMap<usize, Waiting>,
    begun: usize,
    /// Pieces that wait for their submission, with the numbers of their operations.
    pieces: VecDeque<(Operation, usize)>,
    /// Numbers of the operations of the pieces in flight.
    in_flight: BTreeMap<Key, VecDeque<usize>>,
    has_ended: bool,
}

impl UnderWay {
    /// Returns the next piece.
    fn next(&mut self, extents: &Extents, next: &mut Next<'_>) -> Option<Operation> {
        if self.pieces.is_empty() && !self.has_ended {
            match next() {
                None => self.has_ended = true,
                Some(operation) => self.cut(extents, operation),
            }
        }
        let (piece, number) = self.pieces.pop_front()?;
        self.in_flight.entry(key(&piece)).or_default().push_back(number);
        Some(piece)
    }

    fn cut(&mut self, extents: &Extents, operation: Operation) {
        let before = self.pieces.len();
        extents.pieces(operation.offset, operation.bytes, |offset, bytes| {
            self.pieces.push_back((Operation { offset, bytes, ..operation }, self.begun));
        });
        let pieces_left = self.pieces.len() - before;
        self.operations.insert(self.begun, Waiting { operation, pieces_left, begin_ns: u64::MAX, end_ns: 0 });
        self.begun += 1;
    }

    /// Takes the answer to a piece. Returns the operation with its times if the piece was its last.
    fn answer(&mut self, piece: &Timed) -> Option<Timed> {
        let numbers = self.in_flight.get_mut(&key(&piece.operation)).expect("the piece was submitted");
        let number = numbers.pop_front().expect("the piece was submitted");
        if numbers.is_empty() {
            self.in_flight.remove(&key(&piece.operation));
        }
        let waiting = self.operations.get_mut(&number).expect("its operation is under way");
        waiting.pieces_left -= 1;
        waiting.begin_ns = waiting.begin_ns.min(piece.begin_ns);
        waiting.end_ns = waiting.end_ns.max(piece.end_ns);
        if waiting.pieces_left > 0 {
            return None;
        }
        let Waiting { operation, begin_ns, end_ns, .. } = self.operations.remove(&number).expect("it was there");
        Some(Timed { operation, begin_ns, end_ns })
    }
}

impl<T: Target> Target for Window<T> {
    fn about(&self) -> &About {
        &self.about
    }

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        let under_way = std::cell::RefCell::new(UnderWay::default());
        let extents = &self.extents;
        self.inner.perform(depth, &mut || under_way.borrow_mut().next(extents, next), &mut |piece| {
            let ended = under_way.borrow_mut().answer(piece);
            let goes_on = ended.is_none_or(|timed| done(&timed));
            if !goes_on {
                under_way.borrow_mut().has_ended = true;
            }
            // Pieces of operations that were begun are performed in any case.
            goes_on || !under_way.borrow().pieces.is_empty()
        })
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        self.inner.sleep(ns)
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        self.inner.facts()
    }

    fn disturbance(&self) -> Option<String> {
        self.inner.disturbance()
    }

    fn head_path(&mut self) -> Option<HeadPath> {
        self.inner.head_path()
    }
}

#[cfg(test)]
mod tests {
    use imbrex_disk::Profile;
    use imbrex_sim::Drive;

    use super::*;
    use crate::target::latencies;
    use crate::targets::Simulated;

    #[test]
    fn each_operation_is_answered_once_and_goes_to_its_extents() {
        let profile = Profile::named("cmr-7200").expect("a built-in profile");
        let drive = Drive::assemble("cmr-7200", profile, "conventional", &[]).expect("a drive");
        let mib = 1 << 20;
        // Pieces of 64 KiB a gibibyte apart, the last ones in reverse order.
        let places = [0u64, 1, 2, 7, 6, 5, 4, 3];
        let text: String = places
            .iter()
            .enumerate()
            .map(|(index, place)| format!("{} {} 65536\n", index * 65_536, (place << 30) + mib))
            .collect();
        let mut window = Window::new(Simulated::new(drive), Extents::parse(&text).expect("a list"));
        assert_eq!(window.size_bytes(), 8 * 65_536);
        let small: Vec<_> = (0..64).map(|index| Operation::write(index * 8192, 4096)).collect();
        let whole = Operation::write(0, 8 * 65_536);
        for depth in [1, 7] {
            let timed = latencies(&mut window, depth, &[&small[..], &[whole, whole]].concat()).expect("they complete");
            assert_eq!(timed.len(), 66, "depth {depth}");
            let mut offsets: Vec<_> = timed
                .iter()
                .map(|timed| timed.operation)
                .filter(|one| one.bytes == 4096)
                .map(|one| one.offset)
                .collect();
            offsets.sort_unstable();
            assert!(offsets.iter().copied().eq((0..64).map(|index| index * 8192)), "depth {depth}");
            assert!(timed.iter().all(|timed| timed.end_ns > timed.begin_ns));
            // Eight pieces far apart take seven long seeks, more than any single write.
            let longest_small = timed.iter().filter(|timed| timed.operation.bytes == 4096).map(Timed::latency_ns).max();
            let whole_ns = timed.iter().filter(|timed| timed.operation == whole).map(Timed::latency_ns).min();
            assert!(depth > 1 || whole_ns > longest_small, "{whole_ns:?} {longest_small:?}");
        }
    }
}
