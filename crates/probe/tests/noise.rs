//! Goal: noise does not mislead the probe. Method: a target that lets every operation take up to 5 % longer and holds one in
//! a hundred up for up to 100 ms, one after the other as a busy host would: the platter turns on meanwhile. And targets
//! that are no disk at all: files, page caches, fixed delays.

mod support;

use imbrex_probe::{Direction, Operation, Simulated, Target, TargetError, Timed};
use support::{build, draw, faults, probed, Size};

struct Lcg(u64);

impl Lcg {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A target whose answers come late.
struct Noisy {
    inner: Simulated,
    dice: Lcg,
}

impl Noisy {
    fn late_ns(&mut self, latency_ns: u64) -> u64 {
        let held = if self.dice.unit() < 0.01 { self.dice.unit() * 1e8 } else { 0.0 };
        (latency_ns as f64 * 0.05 * self.dice.unit() + held) as u64
    }
}

impl Target for Noisy {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn sector_bytes(&self) -> u32 {
        self.inner.sector_bytes()
    }

    fn is_virtual(&self) -> bool {
        true
    }

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    fn perform(
        &mut self,
        depth: usize,
        next: &mut dyn FnMut() -> Option<Operation>,
        done: &mut dyn FnMut(&Timed) -> bool,
    ) -> Result<(), TargetError> {
        if depth > 1 {
            let Noisy { inner, dice } = self;
            return inner.perform(depth, next, &mut |timed| {
                let held = if dice.unit() < 0.01 { dice.unit() * 1e8 } else { 0.0 };
                let late = (timed.latency_ns() as f64 * 0.05 * dice.unit() + held) as u64;
                done(&Timed { end_ns: timed.end_ns + late, ..*timed })
            });
        }
        let mut goes_on = true;
        while goes_on {
            let Some(operation) = next() else { return Ok(()) };
            let (mut one, mut answered) = (Some(operation), None);
            self.inner.perform(1, &mut || one.take(), &mut |timed| {
                answered = Some(*timed);
                true
            })?;
            let timed = answered.expect("one operation has one answer");
            let late = self.late_ns(timed.latency_ns());
            self.inner.sleep(late)?;
            goes_on = done(&Timed { end_ns: timed.end_ns + late, ..timed });
        }
        Ok(())
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        self.inner.sleep(ns)
    }
}

#[test]
fn drives_are_read_right_through_noise() {
    let mut wrong = Vec::new();
    // Of each kind some.
    for seed in [26, 34, 4, 11, 29, 6, 12, 3, 7, 27, 5, 35] {
        let drawn = draw(seed, Size::Small);
        let mut target = Noisy { inner: Simulated::new(build(&drawn.text)), dice: Lcg(seed) };
        let faults = faults(&drawn.truth, &probed(&mut target));
        if !faults.is_empty() {
            wrong.push(format!("seed {seed}, {}:\n  {}\n", drawn.truth.kind, faults.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

/// Something that answers by itself: latencies in nanoseconds by direction, size and chance.
struct Answering<F: FnMut(&Operation) -> f64> {
    latency_ns: F,
    now_ns: u64,
}

impl<F: FnMut(&Operation) -> f64> Target for Answering<F> {
    fn name(&self) -> String {
        "no disk".into()
    }

    fn size_bytes(&self) -> u64 {
        64 << 30
    }

    fn sector_bytes(&self) -> u32 {
        512
    }

    fn is_virtual(&self) -> bool {
        true
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn perform(
        &mut self,
        _depth: usize,
        next: &mut dyn FnMut() -> Option<Operation>,
        done: &mut dyn FnMut(&Timed) -> bool,
    ) -> Result<(), TargetError> {
        while let Some(operation) = next() {
            let begin_ns = self.now_ns;
            self.now_ns += (self.latency_ns)(&operation).max(1.0) as u64;
            if !done(&Timed { operation, begin_ns, end_ns: self.now_ns }) {
                break;
            }
        }
        Ok(())
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        self.now_ns += ns;
        Ok(())
    }
}

/// How long an operation takes, nanoseconds.
type Latency = Box<dyn FnMut(&Operation) -> f64>;

#[test]
fn what_is_no_disk_is_never_called_shingled() {
    let mut dice = Lcg(5);
    let mut other = Lcg(6);
    let mut third = Lcg(7);
    // A sum of twelve uniform numbers is as good as normal.
    let mut normal = move || (0..12).map(|_| dice.unit()).sum::<f64>() - 6.0;
    let transfer = |operation: &Operation| operation.bytes as f64 / 2.0;
    let targets: Vec<(&str, Latency)> = vec![
        ("constant", Box::new(move |operation| 20_000.0 + transfer(operation))),
        ("lognormal", Box::new(move |operation| (9.5 + 0.7 * normal()).exp() + transfer(operation))),
        ("a page cache that writes back", {
            Box::new(move |operation| {
                let flushes = operation.direction == Direction::Write && other.unit() < 0.002;
                if flushes {
                    3e7
                } else {
                    4_000.0 + 2_000.0 * other.unit()
                }
            })
        }),
        ("a fixed delay", Box::new(move |operation| 10_000_000.0 + transfer(operation))),
        ("reads of a disk, writes to memory", {
            Box::new(move |operation| match operation.direction {
                Direction::Read => 1e7 * third.unit() + 1e5,
                Direction::Write => 50_000.0,
            })
        }),
    ];
    for (name, latency_ns) in targets {
        let verdict = probed(&mut Answering { latency_ns, now_ns: 0 });
        assert!(matches!(verdict.word("type"), None | Some("conventional")), "{name}: {:#?}", verdict.property("type"));
    }
}
