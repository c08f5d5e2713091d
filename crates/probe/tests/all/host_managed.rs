//! Goal: a host-managed drive is not called conventional, even if the probe cannot query its kind. Method: a simulated
//! drive behind a target whose writes destroy the data in the following mebibyte, or which refuses writes; everywhere,
//! or everywhere but in its first part.

use std::collections::BTreeSet;

use imbrex_probe::{About, Direction, Done, Next, Operation, Simulated, Target, TargetError, Timed};

use crate::support::{Size, build, draw, probed};

const MIB: u64 = 1 << 20;

struct HostManaged {
    inner: Simulated,
    /// Offset from which the drive is host-managed.
    from: u64,
    refuses: bool,
    written: BTreeSet<u64>,
    destroyed: BTreeSet<u64>,
}

impl HostManaged {
    /// Records `operation` and the blocks that it destroys; returns whether it succeeds.
    fn note(&mut self, operation: &Operation) -> bool {
        let Operation { direction, offset, .. } = *operation;
        if direction == Direction::Read {
            return !self.destroyed.contains(&offset);
        }
        if offset >= self.from && self.refuses {
            return false;
        }
        self.destroyed.remove(&offset);
        if offset >= self.from {
            self.destroyed.extend(self.written.range(offset + 4096..offset + MIB));
        }
        self.written.insert(offset);
        true
    }
}

impl Target for HostManaged {
    fn about(&self) -> &About {
        self.inner.about()
    }

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        let mut all = Vec::new();
        while let Some(operation) = next() {
            if !self.note(&operation) {
                return Err(TargetError::failed("host-managed", "Input/output error"));
            }
            all.push(operation);
        }
        let mut waiting = all.into_iter();
        self.inner.perform(depth, &mut || waiting.next(), &mut |timed: &Timed| done(timed))
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        self.inner.sleep(ns)
    }
}

#[test]
fn a_host_managed_drive_is_not_called_conventional() {
    let drawn = draw(26, Size::Small);
    assert_eq!(drawn.truth.kind, "conventional", "as a host-managed drive is, by its latencies");
    for (from, refuses, word) in [
        (0, false, "are unreadable"),
        (4 << 30, false, "are unreadable"),
        (0, true, "refused"),
        (4 << 30, true, "refused"),
    ] {
        let inner = Simulated::new(build(&drawn.text));
        let (written, destroyed) = (BTreeSet::new(), BTreeSet::new());
        let verdict = probed(&mut HostManaged { inner, from, refuses, written, destroyed });
        assert_eq!((verdict.word("type"), &verdict.ended), (None, &None), "{:#?}", verdict.property("type"));
        let because = &verdict.property("type").expect("it is told").because;
        assert!(because.contains(word) && because.contains("host-managed"), "{because}");
    }
}
