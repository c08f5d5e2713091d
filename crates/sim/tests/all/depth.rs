//! Goal: a queue served shortest time first has the throughput of theory. Method: random reads of one sector at depth
//! 1, 16 and 32. If the arm never moves, the result is compared with a closed form; if every access has an equal seek,
//! with an independent model of twenty lines.
//!
//! The closed form: on one track, shortest first serves every request when it first passes the head, on average half a
//! rotation after its arrival, however many there are. By Little's law, n outstanding requests are served at a rate of
//! 2n per rotation. First come, first served takes half a rotation for each request.

use imbrex_disk::{Command, Profile, SimDuration};
use imbrex_sim::{Arrival, Drive, Engine, Options, Unobserved};
use imbrex_trace::{Recorded, Request, When};

const ROTATION_NS: u64 = 10_000_000;
const TRACK_SECTORS: u64 = 20_000;
const SEEK_NS: u64 = 2_000_000;
const READS: usize = 20_000;

fn profile(tracks: u64, schedule: &str) -> Profile {
    let text = format!(
        r#"
name = "toy"
summary = "a drive of whole numbers"
default_layer = "conventional"
[geometry]
layout = "cylinder"
surfaces = 1
rotation_ns = {ROTATION_NS}
zones = [{{ tracks = {tracks}, track_sectors = {TRACK_SECTORS} }}]
[mechanics.seek]
model = "linear"
min_ns = {SEEK_NS}
max_ns = {SEEK_NS}
[recording]
kind = "conventional"
[host]
queue = 64
schedule = "{schedule}"
age_limit_ns = 0
overhead_ns = 0
"#
    );
    Profile::parse("toy.toml", &text, &[]).expect("is right")
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Returns the mean time between two answers, in nanoseconds.
fn interval_ns(tracks: u64, schedule: &str, depth: u32) -> f64 {
    let drive = Drive::assemble("toy", profile(tracks, schedule), "conventional", &[]).expect("can be built");
    let mut dice = Dice(3);
    let requests: Vec<Request> = (0..READS)
        .map(|_| Request {
            when: When::Free(SimDuration::ZERO),
            device: 0,
            command: Command::read(dice.below(tracks) * TRACK_SECTORS + dice.below(TRACK_SECTORS), 1),
        })
        .collect();
    let options = Options { arrival: Arrival::Closed(depth), ..Options::live(&drive) };
    let outcome = Engine::new(drive, options, Recorded::new(requests), Unobserved).run().expect("no file is read");
    outcome.metrics.ended.0 as f64 / READS as f64
}

/// Returns the mean time between two answers by the model: every access has a seek of `SEEK_NS`, and only angles count.
fn modelled_ns(depth: usize) -> f64 {
    let sector_ns = ROTATION_NS / TRACK_SECTORS;
    let mut dice = Dice(8);
    let mut angles: Vec<u64> = (0..depth).map(|_| dice.below(TRACK_SECTORS) * sector_ns).collect();
    let mut now = 0;
    for _ in 0..READS {
        let wait = |angle: u64| (angle + ROTATION_NS - (now + SEEK_NS) % ROTATION_NS) % ROTATION_NS;
        let (next, shortest) =
            angles.iter().map(|&angle| wait(angle)).enumerate().min_by_key(|&(_, wait)| wait).expect("has some");
        now += SEEK_NS + shortest + sector_ns;
        angles[next] = dice.below(TRACK_SECTORS) * sector_ns;
    }
    now as f64 / READS as f64
}

fn is_near(ours: f64, expected: f64, share: f64) -> bool {
    (ours / expected - 1.0).abs() < share
}

#[test]
fn shortest_first_without_seeks_serves_two_of_each_outstanding_request_a_rotation() {
    for depth in [1u32, 16, 32] {
        let expected = ROTATION_NS as f64 / (2.0 * depth as f64);
        let ours = interval_ns(1, "sptf", depth);
        assert!(is_near(ours, expected, 0.02), "depth {depth}: {ours} ns, expected {expected}");
    }
}

#[test]
fn first_come_first_served_gains_nothing_by_depth() {
    for depth in [1u32, 16, 32] {
        let ours = interval_ns(1, "fifo", depth);
        assert!(is_near(ours, ROTATION_NS as f64 / 2.0, 0.01), "depth {depth}: {ours} ns");
        // A seek of a fifth of a rotation to another track leaves half a rotation of waiting.
        let ours = interval_ns(50_000, "fifo", depth);
        assert!(is_near(ours, (SEEK_NS + ROTATION_NS / 2) as f64, 0.01), "depth {depth}: {ours} ns");
    }
}

#[test]
fn shortest_first_with_equal_seeks_takes_what_a_model_of_angles_takes() {
    for depth in [1u32, 16, 32] {
        let (ours, expected) = (interval_ns(50_000, "sptf", depth), modelled_ns(depth as usize));
        assert!(is_near(ours, expected, 0.02), "depth {depth}: {ours} ns, the model {expected}");
    }
}
