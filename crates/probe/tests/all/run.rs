//! Goal: the invariants of a probe's run. Method: a simulated drive behind a target that counts operations, fails at a
//! given one, and shows writes that were not allowed.

use imbrex_probe::experiments;
use imbrex_probe::{About, Direction, Done, Next, ProbeOptions, Simulated, Target, TargetError, Verdict, probe};
use imbrex_sim::{Drive, DriveSpec};

/// A target that counts operations and can fail.
struct Noted {
    inner: Simulated,
    writes: u64,
    operations: u64,
    /// Number of the operation from which on the target fails.
    fails_at: u64,
    /// Facts about the target; the size may be smaller than that of the drive.
    about: About,
}

impl Noted {
    fn new(drive: &str) -> Noted {
        let spec = DriveSpec::parse(drive).expect("the words are right");
        let profile = imbrex_disk::Profile::named(&spec.profile).expect("it comes with the project");
        let inner = Simulated::new(Drive::build(&spec, &profile).expect("it can be built"));
        let about = About { name: "noted".into(), ..inner.about().clone() };
        Noted { inner, writes: 0, operations: 0, fails_at: u64::MAX, about }
    }
}

impl Target for Noted {
    fn about(&self) -> &About {
        &self.about
    }

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        let Noted { inner, writes, operations, fails_at, about } = self;
        let mut fails = false;
        inner.perform(
            depth,
            &mut || {
                let operation = next()?;
                assert!(operation.offset + operation.bytes <= about.size_bytes, "{operation:?} reaches past the end");
                *writes += u64::from(operation.direction == Direction::Write);
                *operations += 1;
                fails |= *operations >= *fails_at;
                (!fails).then_some(operation)
            },
            done,
        )?;
        if fails {
            return Err(TargetError::failed("noted", "it was told to fail"));
        }
        Ok(())
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        self.inner.sleep(ns)
    }
}

/// Probes `target` until `goes_on` returns false; returns the verdict, and the names of the tests that began.
fn run(
    target: &mut Noted,
    may_write: bool,
    budget_s: u64,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> (Verdict, Vec<String>) {
    let mut begun: Vec<String> = Vec::new();
    let mut options = ProbeOptions {
        may_write,
        only: Vec::new(),
        budget_ns: budget_s.saturating_mul(1_000_000_000),
        seed: 7,
        progress: &mut |told| {
            if begun.last().is_none_or(|last| last != told.test) {
                begun.push(told.test.to_string());
            }
            goes_on(told.operations)
        },
    };
    let verdict = probe(target, &mut options);
    (verdict, begun)
}

/// Checks invariant 1: each experiment began, or is listed in `left_out`.
fn assert_all_accounted(verdict: &Verdict, begun: &[String]) {
    for experiment in experiments::all() {
        let has_begun = begun.iter().any(|name| name == experiment.name);
        let is_named = verdict.left_out.iter().any(|line| line.starts_with(&format!("{}: ", experiment.name)));
        assert!(has_begun || is_named, "{}: {:#?}", experiment.name, verdict.left_out);
    }
}

const DRIVE: &str = "emulated-smr-1:geometry.surfaces=1";

#[test]
fn without_leave_nothing_is_written() {
    let mut target = Noted::new(DRIVE);
    let (verdict, begun) = run(&mut target, false, u64::MAX, &mut |_| true);
    assert_eq!(target.writes, 0);
    assert!(target.operations > 0 && verdict.ended.is_none());
    assert_all_accounted(&verdict, &begun);
}

#[test]
fn an_interrupted_run_tells_what_is_known() {
    for after in [0, 1, 300, 1000] {
        let mut target = Noted::new(DRIVE);
        let (verdict, begun) = run(&mut target, true, u64::MAX, &mut |operations| operations < after);
        assert_eq!(verdict.ended.as_deref(), Some("interrupted"));
        // In virtual time, progress is reported every 256 operations.
        assert!(target.operations <= after + 300, "{} operations after {after}", target.operations);
        assert_all_accounted(&verdict, &begun);
    }
}

#[test]
fn a_target_that_fails_ends_the_run_and_not_what_is_known() {
    let mut target = Noted::new(DRIVE);
    target.fails_at = 1000;
    let (verdict, begun) = run(&mut target, true, u64::MAX, &mut |_| true);
    assert_eq!(verdict.ended.as_deref(), Some("noted: it was told to fail"));
    assert!(verdict.number("rotation").is_some(), "{:#?}", verdict.properties);
    assert_all_accounted(&verdict, &begun);
}

#[test]
fn a_budget_is_kept() {
    for budget_s in [0, 5, 60, 400] {
        let mut target = Noted::new(DRIVE);
        let (verdict, begun) = run(&mut target, true, budget_s, &mut |_| true);
        // Operations in flight at the end of the budget are awaited.
        assert!(verdict.target_ns < (budget_s + 5) * 1_000_000_000, "{budget_s}: {}", verdict.target_ns);
        assert!(verdict.ended.is_none());
        assert_all_accounted(&verdict, &begun);
    }
}

#[test]
fn a_drive_that_is_too_small_is_no_panic() {
    for size_bytes in [64 << 20, 200 << 20, 1 << 30] {
        let mut target = Noted::new(DRIVE);
        target.about.size_bytes = size_bytes;
        let (verdict, begun) = run(&mut target, true, 3600, &mut |_| true);
        assert_all_accounted(&verdict, &begun);
    }
}
