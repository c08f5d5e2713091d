//! Goal: noise does not mislead the probe. Method: a target that lengthens every operation by up to 5 %, and delays one
//! in a hundred by up to 100 ms, one after the other like a busy host, while the platter turns on. Also targets that
//! are no disks: files, page caches, fixed delays.

use imbrex_probe::{
    About, Direction, Done, Next, Operation, ProbeOptions, Simulated, Target, TargetError, Timed, probe,
};

use crate::support::noisy::{Lcg, Noise, Noisy};
use crate::support::{Size, answers, build, draw, draw_with, faults, probed};

/// Up to 5 % longer, and one in a hundred delayed by up to 100 ms.
const HARSH: Noise = Noise { share: 0.05, held: 0.01, held_ns: 1e8, late_ns: 0.0 };

#[test]
fn drives_are_read_right_through_noise() {
    let mut wrong = Vec::new();
    // Some of each kind.
    for seed in [26, 34, 4, 11, 29, 6, 12, 3, 7, 27, 5, 35] {
        let drawn = draw(seed, Size::Small);
        let mut target = Noisy::new(Simulated::new(build(&drawn.text)), HARSH, seed);
        let faults = faults(&drawn.truth, &probed(&mut target));
        if !faults.is_empty() {
            wrong.push(format!("seed {seed}, {}:\n  {}\n", drawn.truth.kind, faults.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

/// Up to 50 % longer, and one in ten delayed by up to 30 ms: the platter cannot be seen to turn.
const SEVERE: Noise = Noise { share: 0.5, held: 0.1, held_ns: 3e7, late_ns: 0.0 };

#[test]
fn severe_noise_gives_no_wrong_type_with_high_confidence() {
    let mut wrong = Vec::new();
    for layer in ["conventional", "set-associative", "media-cache", "fully-associative", "imr-rmw", "track-flip"] {
        for seed in 1..=5 {
            let drawn = draw_with(layer, seed, Size::Small);
            let mut target = Noisy::new(Simulated::new(build(&drawn.text)), SEVERE, seed);
            let only = vec!["type".to_string()];
            let mut options =
                ProbeOptions { may_write: true, only, budget_ns: u64::MAX, seed, progress: &mut |_| true };
            let verdict = probe(&mut target, &mut options);
            let answers = answers(&drawn.truth, &verdict);
            let sure_and_wrong = answers.iter().filter(|answer| answer.is_sure && !answer.is_right);
            wrong.extend(sure_and_wrong.map(|answer| format!("{layer}, seed {seed}: {}\n", answer.text)));
            let is_shingled = verdict.word("type") == Some("shingled");
            if is_shingled && drawn.truth.kind != "shingled" {
                wrong.push(format!("{layer}, seed {seed} is called shingled: {:?}\n", verdict.property("type")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

/// A target without a drive: its latencies in nanoseconds depend on direction, size and chance.
struct Answering<F: FnMut(&Operation) -> f64> {
    latency_ns: F,
    now_ns: u64,
    about: About,
}

impl<F: FnMut(&Operation) -> f64> Target for Answering<F> {
    fn about(&self) -> &About {
        &self.about
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn perform(&mut self, _depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
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

/// Function that returns the latency of an operation, nanoseconds.
type Latency = Box<dyn FnMut(&Operation) -> f64>;

#[test]
fn what_is_no_disk_is_never_called_shingled() {
    let mut dice = Lcg(5);
    let mut other = Lcg(6);
    let mut third = Lcg(7);
    // The sum of twelve uniform numbers is close to normal.
    let mut normal = move || (0..12).map(|_| dice.unit()).sum::<f64>() - 6.0;
    let transfer = |operation: &Operation| operation.bytes as f64 / 2.0;
    let targets: Vec<(&str, Latency)> = vec![
        ("constant", Box::new(move |operation| 20_000.0 + transfer(operation))),
        ("lognormal", Box::new(move |operation| (9.5 + 0.7 * normal()).exp() + transfer(operation))),
        ("a page cache that writes back", {
            Box::new(move |operation| {
                let flushes = operation.direction == Direction::Write && other.unit() < 0.002;
                if flushes { 3e7 } else { 4_000.0 + 2_000.0 * other.unit() }
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
    let about = About { name: "no disk".into(), size_bytes: 64 << 30, sector_bytes: 512, is_virtual: true };
    for (name, latency_ns) in targets {
        let verdict = probed(&mut Answering { latency_ns, now_ns: 0, about: about.clone() });
        assert!(matches!(verdict.word("type"), None | Some("conventional")), "{name}: {:#?}", verdict.property("type"));
    }
}
