//! Goal: a profile emitted from a verdict describes the probed drive. Method: three workloads that no test of the probe
//! runs, on the drive and on the emitted profile. The root mean square of the horizontal distance between the two
//! distributions of latencies, as a share of the drive's mean, stays below a tenth.

use imbrex_disk::Profile;
use imbrex_probe::{Operation, Simulated, Target, emit_profile};
use imbrex_sim::{Drive, DriveSpec};

use crate::support::{Size, build, draw, probed};

/// Gap between the distributions below which the emitted drive counts as equal to the probed one.
const GAP_MAX: f64 = 0.10;

struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }
}

fn perform(target: &mut Simulated, operations: &[Operation], pause_ns: impl Fn(usize) -> u64) -> Vec<u64> {
    let mut latencies = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        target.sleep(pause_ns(index)).expect("a simulated drive does not fail");
        let mut one = Some(*operation);
        let done = &mut |timed: &imbrex_probe::Timed| {
            latencies.push(timed.latency_ns());
            true
        };
        target.perform(1, &mut || one.take(), done).expect("a simulated drive does not fail");
    }
    latencies
}

/// Returns the latencies of three workloads on new drives, within the first `bytes` bytes: a burst of random writes; 70
/// % reads and 30 % writes with pauses; a stretch written and read sequentially.
fn latencies(make: &dyn Fn() -> Drive, bytes: u64, burst_writes: usize) -> [Vec<u64>; 3] {
    let mut dice = Lcg(11);
    let mut random = |bytes_each: u64| dice.below(bytes / bytes_each) * bytes_each;
    let burst: Vec<_> = (0..burst_writes).map(|_| Operation::write(random(4096), 4096)).collect();
    let mixed: Vec<_> = (0..400)
        .map(|index| {
            let offset = random(4096);
            if index % 10 < 7 { Operation::read(offset, 4096) } else { Operation::write(offset, 4096) }
        })
        .collect();
    const PIECE: u64 = 128 << 10;
    let start = random(PIECE) / 2 / PIECE * PIECE;
    let written = (0..60).map(|index| Operation::write(start + index * PIECE, PIECE));
    let read = (0..200).map(|index| Operation::read(start + (1 << 29) + index * PIECE, PIECE));
    let stream: Vec<_> = written.chain(read).collect();
    let fresh = || Simulated::new(make());
    [
        perform(&mut fresh(), &burst, |_| 0),
        perform(&mut fresh(), &mixed, |index| (index as u64 * 7_919_113) % 90_000_000),
        perform(&mut fresh(), &stream, |_| 0),
    ]
}

/// Returns the distance between two distributions with equally many values, as a share of the first one's mean.
fn gap(one: &[u64], other: &[u64]) -> f64 {
    let sorted = |values: &[u64]| {
        let mut values: Vec<f64> = values.iter().map(|&value| value as f64).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (one, other) = (sorted(one), sorted(other));
    let squares: f64 = one.iter().zip(&other).map(|(one, other)| (one - other).powi(2)).sum();
    let mean = one.iter().sum::<f64>() / one.len() as f64;
    (squares / one.len() as f64).sqrt() / mean
}

fn check(name: &str, make: &dyn Fn() -> Drive, wrong: &mut Vec<String>) {
    let verdict = probed(&mut Simulated::new(make()));
    // The burst must end before writes wait for cleaning.
    let burst_writes =
        verdict.number("cache_writes_4k_depth_1").map_or(2500, |count| (count * 0.8).min(2500.0) as usize);
    let text = emit_profile(&verdict);
    let profile = Profile::parse("emitted.toml", &text, &[]).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
    let spec = DriveSpec::parse("emitted.toml").expect("the words are right");
    let emitted = || Drive::build(&spec, &profile).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
    let bytes = make().capacity_bytes().min(emitted().capacity_bytes());
    assert!(bytes as f64 > 0.97 * make().capacity_bytes() as f64, "{name}: the emitted drive is smaller: {bytes}");
    let (truth, found) = (latencies(make, bytes, burst_writes), latencies(&emitted, bytes, burst_writes));
    for ((truth, found), workload) in truth.iter().zip(&found).zip(["burst", "mixed", "stream"]) {
        let gap = gap(truth, found);
        println!("{name}, {workload}: {:.1} %", gap * 100.0);
        if gap >= GAP_MAX {
            wrong.push(format!("{name}, {workload}: {:.1} % of the mean\n", gap * 100.0));
        }
    }
}

#[test]
fn an_emitted_profile_answers_as_the_probed_drive() {
    let mut wrong = Vec::new();
    for name in ["cmr-7200", "cmr-5900", "seagate-st5000as0011"] {
        let make = || {
            let spec = DriveSpec::parse(name).expect("the words are right");
            Drive::build(&spec, &Profile::named(name).expect("it comes with the project")).expect("it can be built")
        };
        check(name, &make, &mut wrong);
    }
    // Some of each kind.
    for seed in [26, 34, 4, 11, 13, 6, 12, 3, 7, 27, 2, 5, 8] {
        let drawn = draw(seed, Size::Small);
        check(&format!("seed {seed}, {}", drawn.truth.kind), &|| build(&drawn.text), &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
}
