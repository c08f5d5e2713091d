//! Wrappers around targets: clocks, bridges, caches and arrays between drives and their host. The drives behind a
//! wrapper are unchanged, so their truth is known.
//!
//! Invariants:
//! 1. A wrapper keeps the invariants of [`Target`]. Its behaviour follows from its parameters and the operations alone.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

use imbrex_probe::{About, Direction, Done, Next, Operation, Simulated, Target, TargetError, Timed};

/// Performs one operation on `target`, and returns it with its times.
fn perform_one(target: &mut dyn Target, operation: Operation) -> Result<Timed, TargetError> {
    let (mut one, mut answered) = (Some(operation), None);
    target.perform(1, &mut || one.take(), &mut |timed| {
        answered = Some(*timed);
        true
    })?;
    Ok(answered.expect("one operation has one answer"))
}

/// Leaves `target` idle until `at_ns`; does nothing if that has passed.
fn sleep_until(target: &mut dyn Target, at_ns: u64) -> Result<(), TargetError> {
    let left_ns = at_ns.saturating_sub(target.now_ns());
    if left_ns > 0 { target.sleep(left_ns) } else { Ok(()) }
}

/// A target whose clock advances in steps.
pub(crate) struct Coarse<T> {
    pub(crate) inner: T,
    /// Length of a step, nanoseconds.
    pub(crate) step_ns: u64,
}

impl<T: Target> Target for Coarse<T> {
    fn about(&self) -> &About {
        self.inner.about()
    }

    fn now_ns(&self) -> u64 {
        self.inner.now_ns() / self.step_ns * self.step_ns
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        let step_ns = self.step_ns;
        let seen = |ns: u64| ns / step_ns * step_ns;
        self.inner.perform(depth, next, &mut |timed| {
            done(&Timed { begin_ns: seen(timed.begin_ns), end_ns: seen(timed.end_ns), ..*timed })
        })
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        self.inner.sleep(ns)
    }
}

/// A target behind a bridge that accepts many commands and passes them to the drive one at a time, in order.
pub(crate) struct OneAtATime<T>(pub(crate) T);

impl<T: Target> Target for OneAtATime<T> {
    fn about(&self) -> &About {
        self.0.about()
    }

    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        let (mut waiting, mut goes_on) = (VecDeque::new(), true);
        loop {
            while goes_on && waiting.len() < depth.max(1) {
                match next() {
                    Some(operation) => waiting.push_back((operation, self.0.now_ns())),
                    None => goes_on = false,
                }
            }
            let Some((operation, begin_ns)) = waiting.pop_front() else { return Ok(()) };
            let timed = perform_one(&mut self.0, operation)?;
            goes_on &= done(&Timed { begin_ns, ..timed });
        }
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        self.0.sleep(ns)
    }
}

/// A drive that does nothing for `pause_ns` at even intervals, as for a recalibration. The pauses are whole rotations,
/// so that the platter seems to turn on.
pub(crate) struct Pausing<T> {
    pub(crate) inner: T,
    /// Time of work between two pauses, and length of a pause, nanoseconds.
    pub(crate) work_ns: u64,
    pub(crate) pause_ns: u64,
}

impl<T> Pausing<T> {
    /// Returns the time on the host's clock at which the drive has worked for `ns`.
    fn outer(&self, ns: u64) -> u64 {
        ns + ns / self.work_ns * self.pause_ns
    }

    /// Returns the time that the drive has worked for at `ns` on the host's clock.
    fn inner(&self, ns: u64) -> u64 {
        let period = self.work_ns + self.pause_ns;
        ns / period * self.work_ns + (ns % period).saturating_sub(self.pause_ns)
    }
}

impl<T: Target> Target for Pausing<T> {
    fn about(&self) -> &About {
        self.inner.about()
    }

    fn now_ns(&self) -> u64 {
        self.outer(self.inner.now_ns())
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        let (work_ns, pause_ns) = (self.work_ns, self.pause_ns);
        let outer = |ns: u64| ns + ns / work_ns * pause_ns;
        self.inner.perform(depth, next, &mut |timed| {
            done(&Timed { begin_ns: outer(timed.begin_ns), end_ns: outer(timed.end_ns), ..*timed })
        })
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        let until = self.inner(self.now_ns().saturating_add(ns));
        sleep_until(&mut self.inner, until)
    }
}

/// Arrangement of the addresses of an array over its two drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrangement {
    /// One drive after the other.
    Concatenated,
    /// Every drive holds everything; reads go to the drives in turn.
    Mirrored,
    /// Stripes of this many bytes lie on the drives in turn.
    Striped(u64),
}

/// Two drives behind one address space. The host submits operations in batches as large as the depth.
pub(crate) struct Array {
    drives: [Simulated; 2],
    arrangement: Arrangement,
    now_ns: u64,
    reads: u64,
    about: About,
}

impl Array {
    /// Returns an array of two drives, the second of which began to turn `late_ns` earlier.
    pub(crate) fn new(mut drives: [Simulated; 2], arrangement: Arrangement, late_ns: u64) -> Array {
        drives[1].sleep(late_ns).expect("a simulated drive does not fail");
        let one = drives[0].about().clone();
        let size_bytes = match arrangement {
            Arrangement::Mirrored => one.size_bytes,
            Arrangement::Concatenated => 2 * one.size_bytes,
            Arrangement::Striped(bytes) => 2 * (one.size_bytes / bytes * bytes),
        };
        let now_ns = drives[1].now_ns();
        Array { drives, arrangement, now_ns, reads: 0, about: About { size_bytes, ..one } }
    }

    /// Returns the operations of the drives that make up `operation`.
    fn parts(&mut self, operation: &Operation) -> Vec<(usize, Operation)> {
        let Operation { offset, bytes, direction } = *operation;
        let (unit, is_striped) = match self.arrangement {
            Arrangement::Mirrored if direction == Direction::Write => return vec![(0, *operation), (1, *operation)],
            Arrangement::Mirrored => {
                self.reads += 1;
                return vec![((self.reads % 2) as usize, *operation)];
            }
            Arrangement::Concatenated => (self.about.size_bytes / 2, false),
            Arrangement::Striped(unit) => (unit, true),
        };
        let (mut parts, mut at) = (Vec::new(), offset);
        while at < offset + bytes {
            let (index, within) = (at / unit, at % unit);
            let bytes = (unit - within).min(offset + bytes - at);
            let place = if is_striped { index / 2 * unit + within } else { within };
            parts.push(((index % 2) as usize, Operation { offset: place, bytes, direction }));
            at += bytes;
        }
        parts
    }

    /// Performs a batch of operations that are submitted now; returns them in the order of completion.
    fn perform_batch(&mut self, batch: &[Operation]) -> Result<Vec<Timed>, TargetError> {
        let begin_ns = self.now_ns;
        let mut queues: [Vec<(usize, Operation)>; 2] = Default::default();
        for (index, operation) in batch.iter().enumerate() {
            for (drive, part) in self.parts(operation) {
                queues[drive].push((index, part));
            }
        }
        let mut ends = vec![0; batch.len()];
        for (drive, queue) in self.drives.iter_mut().zip(queues) {
            sleep_until(drive, begin_ns)?;
            let mut waiting = queue.iter().map(|(_, part)| *part);
            let mut unfinished = queue.clone();
            drive.perform(batch.len(), &mut || waiting.next(), &mut |timed| {
                let found = unfinished.iter().position(|(_, part)| *part == timed.operation);
                let (index, _) = unfinished.remove(found.expect("it was submitted"));
                ends[index] = ends[index].max(timed.end_ns);
                true
            })?;
        }
        let whole = batch.iter().zip(ends);
        let mut done: Vec<Timed> = whole.map(|(&operation, end_ns)| Timed { operation, begin_ns, end_ns }).collect();
        done.sort_by_key(|timed| timed.end_ns);
        self.now_ns = done.last().map_or(begin_ns, |timed| timed.end_ns);
        Ok(done)
    }
}

impl Target for Array {
    fn about(&self) -> &About {
        &self.about
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        let mut goes_on = true;
        while goes_on {
            let batch: Vec<Operation> = std::iter::from_fn(&mut *next).take(depth.max(1)).collect();
            goes_on = batch.len() == depth.max(1);
            for timed in self.perform_batch(&batch)? {
                goes_on &= done(&timed);
            }
        }
        Ok(())
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        self.now_ns += ns;
        let now_ns = self.now_ns;
        self.drives.iter_mut().try_for_each(|drive| sleep_until(drive, now_ns))
    }
}

const PAGE_BYTES: u64 = 4096;
/// Time of an answer from memory, nanoseconds.
const MEMORY_NS: u64 = 6_000;

/// A cache in the host's memory. Writes go to memory, and to the drive when half the pages are unwritten, all of them,
/// in the order of their addresses; or when they are older than `age_ns` and the host is idle. Pages that were read or
/// written are read from memory until others take their place.
pub(crate) struct PageCache<T> {
    inner: T,
    pages_max: usize,
    age_ns: u64,
    /// Whether pages that were only read stay in memory too.
    keeps_reads: bool,
    /// Written pages in memory, with the number of their last use; the same by that number.
    clean: BTreeMap<u64, u64>,
    by_use: BTreeMap<u64, u64>,
    uses: u64,
    /// Unwritten pages, and the time of the first write among them.
    dirty: BTreeSet<u64>,
    oldest_ns: u64,
}

impl<T: Target> PageCache<T> {
    pub(crate) fn new(inner: T, bytes: u64, age_ns: u64, keeps_reads: bool) -> PageCache<T> {
        let pages_max = (bytes / PAGE_BYTES) as usize;
        PageCache {
            inner,
            pages_max,
            age_ns,
            keeps_reads,
            clean: BTreeMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
            dirty: BTreeSet::new(),
            oldest_ns: 0,
        }
    }

    fn holds(&self, page: u64) -> bool {
        self.dirty.contains(&page) || self.clean.contains_key(&page)
    }

    /// Records the use of a page that is written, and removes the page that was used longest ago if there are too many.
    fn touch(&mut self, page: u64) {
        if self.dirty.contains(&page) {
            return;
        }
        self.uses += 1;
        if let Some(before) = self.clean.insert(page, self.uses) {
            self.by_use.remove(&before);
        }
        self.by_use.insert(self.uses, page);
        if self.clean.len() + self.dirty.len() > self.pages_max {
            let (_, oldest) = self.by_use.pop_first().expect("one was inserted");
            self.clean.remove(&oldest);
        }
    }

    /// Records that a page is unwritten.
    fn soil(&mut self, page: u64) {
        if let Some(before) = self.clean.remove(&page) {
            self.by_use.remove(&before);
        }
        self.dirty.insert(page);
    }

    /// Writes all unwritten pages to the drive.
    fn flush(&mut self) -> Result<(), TargetError> {
        let dirty = std::mem::take(&mut self.dirty);
        let mut waiting = dirty.iter();
        let mut next = || waiting.next().map(|page| Operation::write(page * PAGE_BYTES, PAGE_BYTES));
        self.inner.perform(31, &mut next, &mut |_| true)?;
        dirty.into_iter().for_each(|page| self.touch(page));
        Ok(())
    }

    fn serve(&mut self, operation: Operation) -> Result<Timed, TargetError> {
        let begin_ns = self.inner.now_ns();
        let pages = operation.offset / PAGE_BYTES..(operation.offset + operation.bytes).div_ceil(PAGE_BYTES);
        match operation.direction {
            Direction::Write => {
                self.inner.sleep(MEMORY_NS)?;
                if self.dirty.is_empty() {
                    self.oldest_ns = begin_ns;
                }
                pages.for_each(|page| self.soil(page));
                if 2 * self.dirty.len() > self.pages_max {
                    self.flush()?;
                }
            }
            Direction::Read if pages.clone().all(|page| self.holds(page)) => {
                self.inner.sleep(MEMORY_NS)?;
                pages.for_each(|page| self.touch(page));
            }
            Direction::Read => {
                perform_one(&mut self.inner, operation)?;
                if self.keeps_reads {
                    pages.for_each(|page| self.touch(page));
                }
            }
        }
        Ok(Timed { operation, begin_ns, end_ns: self.inner.now_ns() })
    }
}

impl<T: Target> Target for PageCache<T> {
    fn about(&self) -> &About {
        self.inner.about()
    }

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    fn perform(&mut self, _depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        let mut goes_on = true;
        while goes_on {
            let Some(operation) = next() else { return Ok(()) };
            goes_on = done(&self.serve(operation)?);
        }
        Ok(())
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        let until = self.now_ns() + ns;
        let due = self.oldest_ns + self.age_ns;
        if !self.dirty.is_empty() && due <= until {
            sleep_until(&mut self.inner, due)?;
            self.flush()?;
        }
        sleep_until(&mut self.inner, until)
    }
}

/// A drive that others use as well: before some operations, a read or a write of another program at a random place. Half of
/// them are sequential reads after it.
pub(crate) struct Shared<T> {
    inner: T,
    /// Share of the operations that meet a request of others.
    share: f64,
    random: Xoshiro256StarStar,
}

impl<T: Target> Shared<T> {
    pub(crate) fn new(inner: T, share: f64, seed: u64) -> Shared<T> {
        Shared { inner, share, random: Xoshiro256StarStar::seed_from_u64(seed) }
    }
}

impl<T: Target> Target for Shared<T> {
    fn about(&self) -> &About {
        self.inner.about()
    }

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        let (share, random, places) = (self.share, &mut self.random, self.inner.size_bytes() / 65_536);
        let mut below = |bound: u64| ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64;
        let theirs = RefCell::new(BTreeSet::new());
        let mut own = None;
        // One more is in flight, so that an operation waits for the request before it and not for its answer.
        self.inner.perform(
            depth + 1,
            &mut || {
                if let Some(operation) = own.take() {
                    return Some(operation);
                }
                let operation = next()?;
                if (below(1_000_000) as f64) < share * 1e6 {
                    let place = below(places) * 65_536;
                    let request = match below(3) {
                        0 => Operation::write(place, 4096),
                        _ => Operation::read(place, 65_536),
                    };
                    if theirs.borrow_mut().insert((place, request.bytes)) {
                        own = Some(operation);
                        return Some(request);
                    }
                }
                Some(operation)
            },
            &mut |timed| {
                let is_theirs = theirs.borrow_mut().remove(&(timed.operation.offset, timed.operation.bytes));
                is_theirs || done(timed)
            },
        )
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        self.inner.sleep(ns)
    }

    fn disturbance(&self) -> Option<String> {
        // The counters of the kernel show a load from this share on.
        (self.share > 0.05).then(|| "others used the drive".to_string())
    }
}
