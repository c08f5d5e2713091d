//! A drive with delayed answers, one after the other like those of a busy host, while the platter turns on.

use imbrex_probe::{About, Done, Next, Simulated, Target, TargetError, Timed};

pub(crate) struct Lcg(pub u64);

impl Lcg {
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Distribution of the delays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    /// Largest delay of an operation, as a share of its latency.
    pub share: f64,
    /// Share of the operations with a long delay, and the longest such delay, nanoseconds.
    pub held: f64,
    pub held_ns: f64,
    /// Mean of a further delay of each operation, nanoseconds; exponentially distributed, like the long tail of a
    /// scheduler.
    pub late_ns: f64,
}

impl Noise {
    fn late_ns(&self, dice: &mut Lcg, latency_ns: u64) -> u64 {
        let held = if dice.unit() < self.held { dice.unit() * self.held_ns } else { 0.0 };
        let late = -self.late_ns * (1.0 - dice.unit()).ln();
        (latency_ns as f64 * self.share * dice.unit() + held + late) as u64
    }
}

/// A target with delayed answers.
pub(crate) struct Noisy {
    inner: Simulated,
    noise: Noise,
    dice: Lcg,
    about: About,
}

impl Noisy {
    pub(crate) fn new(inner: Simulated, noise: Noise, seed: u64) -> Noisy {
        let about = inner.about().clone();
        Noisy { inner, noise, dice: Lcg(seed), about }
    }

    /// Returns the target with a clock that claims to be the wall clock, so that the probe waits no longer than a user
    /// would.
    pub(crate) fn in_real_time(mut self) -> Noisy {
        self.about.is_virtual = false;
        self
    }
}

impl Target for Noisy {
    fn about(&self) -> &About {
        &self.about
    }

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        let Noisy { inner, noise, dice, .. } = self;
        if depth > 1 {
            return inner.perform(depth, next, &mut |timed| {
                let late = noise.late_ns(dice, timed.latency_ns());
                done(&Timed { end_ns: timed.end_ns + late, ..*timed })
            });
        }
        let mut goes_on = true;
        while goes_on {
            let Some(operation) = next() else { return Ok(()) };
            let (mut one, mut answered) = (Some(operation), None);
            inner.perform(1, &mut || one.take(), &mut |timed| {
                answered = Some(*timed);
                true
            })?;
            let timed = answered.expect("one operation has one answer");
            let late = noise.late_ns(dice, timed.latency_ns());
            inner.sleep(late)?;
            goes_on = done(&Timed { end_ns: timed.end_ns + late, ..timed });
        }
        Ok(())
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        self.inner.sleep(ns)
    }
}
