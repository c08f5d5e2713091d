//! Drives as sold, with their scheduler and volatile cache, in steady state with 16 requests outstanding. Each drive
//! has four rows:
//! - its physical accesses a second, as a share of those of the plainest row;
//! - its physical accesses a second;
//! - its requests a second;
//! - the bytes of its map.
//!
//! The plainest row is a conventional drive without a cache that serves requests in order of arrival. It is measured
//! on the same core in the same run.
//!
//! A drive is *steady* after so many writes that its persistent cache has been filled twice. A drive without a
//! persistent cache gets a hundred thousand requests or more first. The two halves of the measured requests must then
//! take equal simulated times, within a tenth. The benchmark names the drives whose halves differ by more.

use imbrex_disk::SimDuration;
use imbrex_sim::schedule::Schedule;
use imbrex_sim::{Arrival, Drive, Engine, Fit, Options, Unobserved};

use crate::Row;
use crate::cases::{TRACE_VARIABLE, build, open};
use crate::checkpoints::CheckpointedSource;

/// A drive, the random writes until it is steady, and the requests measured after them, both in millions.
struct Case {
    drive: &'static str,
    before: f64,
    measured: f64,
}

const fn case(drive: &'static str, before: f64, measured: f64) -> Case {
    Case { drive, before, measured }
}

const CASES: [Case; 21] = [
    case("cmr-7200", 0.2, 2.0),
    case("cmr-5900", 0.2, 2.0),
    case("exos-x18", 0.2, 2.0),
    case("seagate-st5000as0011-as-sold", 1.0, 1.0),
    case("seagate-st8000as0011-as-sold", 1.0, 1.0),
    case("seagate-st8000as0022", 0.5, 0.5),
    case("seagate-st8000dm004", 1.0, 0.5),
    case("emulated-smr-1", 20.0, 1.0),
    case("emulated-smr-2", 6.0, 1.0),
    case("emulated-smr-3", 20.0, 1.0),
    case("cassuto-307g+set-associative", 6.0, 12.0),
    case("cassuto-307g+s-blocks", 1.5, 0.5),
    case("cassuto-307g+log-structured", 60.0, 2.0),
    case("cassuto-307g+region-rmw", 0.1, 1.0),
    case("imr-1t+imr-rmw", 0.2, 2.0),
    case("imr-1t+track-flip", 1.0, 1.0),
    case("imr-1t+track-cache", 1.0, 1.0),
    case("imr-1t+track-map", 1.0, 1.0),
    case("imr-1t+top-buffer", 8.0, 1.0),
    case("imr-1t+write-buffer", 3.0, 1.0),
    case("flash-2010", 0.2, 2.0),
];

/// The plainest row: the cost of a simulated access without cache, scheduler or cleaning.
const PLAINEST: Case = case("cmr-7200", 0.2, 2.0);

/// Stand-in of 3.3 million requests for a CloudPhysics machine, and the drives on which it is run.
const W106: &str = "cloudphysics-w106";
const W106_DRIVES: [&str; 4] = ["cmr-7200", "seagate-st8000as0022", "cassuto-307g+s-blocks", "imr-1t+track-map"];

/// Target: physical accesses a second, as a share of the plainest row's.
const SHARE: f64 = 0.5;

/// Share by which the simulated times of the two halves of the measured requests may differ.
const STEADY_WITHIN: f64 = 0.1;

/// Measures every drive whose name contains `only`.
pub(crate) fn measure(only: &str, report: &mut dyn FnMut(Row)) {
    let mut plainest = None;
    let mut measure = |name: String, drive: &str, workload: Workload, report: &mut dyn FnMut(Row)| {
        if !name.contains(only) {
            return;
        }
        let plainest = *plainest.get_or_insert_with(|| {
            let workload = Workload::random(&PLAINEST, 0);
            (0..3).map(|_| simulate(PLAINEST.drive, &workload, false).accesses_per_second()).fold(0.0, f64::max)
        });
        let measurement = simulate(drive, &workload, true);
        let row = |what: &str, value, unit, target| Row { name: format!("{name}, {what}"), value, unit, target };
        let accesses = measurement.accesses_per_second();
        let share = workload.has_steady_state().then_some(SHARE);
        report(row("accesses", accesses / plainest, "of the plainest row", share));
        report(row("accesses", accesses / 1e6, "million a second", None));
        report(row("requests", measurement.requests as f64 / measurement.seconds / 1e6, "million a second", None));
        report(row("map", measurement.map_bytes as f64 / 1e6, "MB", None));
        if workload.has_steady_state() && !measurement.is_steady() {
            let [one, other] = measurement.halves.map(|half| half.0 as f64 / 1e9);
            println!("{name}: not steady: its halves took {one:.0} and {other:.0} simulated seconds");
        }
    };
    for (words, reads) in [("random writes", 0), ("half reads", 50)] {
        for case in &CASES {
            measure(format!("{}, {words}", case.drive), case.drive, Workload::random(case, reads), report);
        }
    }
    for drive in W106_DRIVES {
        measure(format!("{drive}, w106"), drive, Workload::whole(W106), report);
    }
    match std::env::var(TRACE_VARIABLE) {
        Ok(path) => W106_DRIVES.iter().for_each(|drive| {
            measure(format!("{drive}, trace"), drive, Workload::whole(&path), report);
        }),
        Err(_) if only.is_empty() => println!("no real trace: {TRACE_VARIABLE} names none"),
        Err(_) => {}
    }
}

/// Workload: words of a generator, or the path of a trace.
struct Workload {
    words: String,
    /// Number of requests before the measured ones.
    before: u64,
}

impl Workload {
    /// Returns a workload of random requests, of which `reads` percent are reads.
    fn random(case: &Case, reads: u32) -> Workload {
        // `before` counts writes. With reads among them, the drive needs more requests for as many writes.
        let writes = f64::from(100 - reads) / 100.0;
        let (before, measured) = ((case.before / writes * 1e6) as u64, (case.measured * 1e6) as u64);
        let count = before + measured;
        Workload { words: format!("rw=randrw,rwmixread={reads},bs=4k,number_ios={count},seed=1"), before }
    }

    /// Returns a workload of a whole trace, without requests before the measured ones.
    fn whole(words: &str) -> Workload {
        Workload { words: words.into(), before: 0 }
    }

    fn has_steady_state(&self) -> bool {
        self.before > 0
    }
}

/// Measurements of one run.
struct Measurement {
    accesses: u64,
    requests: u64,
    seconds: f64,
    map_bytes: u64,
    /// Simulated time of each half of the measured requests.
    halves: [SimDuration; 2],
}

impl Measurement {
    fn accesses_per_second(&self) -> f64 {
        self.accesses as f64 / self.seconds
    }

    fn is_steady(&self) -> bool {
        let [one, other] = self.halves.map(|half| half.0 as f64);
        one.max(other) <= one.min(other) * (1.0 + STEADY_WITHIN)
    }
}

/// Simulates a drive, as sold or with the options of the plainest row.
fn simulate(drive: &str, workload: &Workload, as_sold: bool) -> Measurement {
    let (drive, options) = set_up(drive, as_sold, workload.before);
    let source = open(&workload.words, drive.capacity_bytes() / 512);
    let middle = source.expected_requests().map_or(workload.before, |all| all.midpoint(workload.before));
    let mut source = CheckpointedSource::new(source, &[workload.before, middle]);
    let outcome = Engine::new(drive, options, &mut source, &mut Unobserved).run().expect("the cases are right");
    let [begun, .., middle] = &source.checkpoints[..] else { panic!("the measured requests were asked for") };
    let counters = &outcome.timing.counters.total;
    Measurement {
        accesses: counters.reads.commands + counters.writes.commands,
        requests: source.requests - workload.before,
        seconds: begun.at.elapsed_seconds(),
        map_bytes: outcome.drive.layer.memory().measured_bytes,
        halves: [middle.now.since(begun.now), outcome.metrics.ended.since(middle.now)],
    }
}

/// Returns a drive and the options of its simulation, as sold or as in the plainest row, with 16 requests outstanding.
pub(crate) fn set_up(drive: &str, as_sold: bool, warmup_requests: u64) -> (Drive, Options) {
    let drive = build(drive);
    let host = &drive.host;
    let schedule = if as_sold { &host.schedule } else { "fifo" };
    let options = Options {
        arrival: Arrival::Closed(16),
        schedule: Schedule::named(schedule, SimDuration(host.age_limit_ns)).expect("profiles are right"),
        write_cache_bytes: if as_sold { host.write_cache_bytes } else { 0 },
        read_ahead_bytes: if as_sold { host.read_ahead_bytes } else { 0 },
        fit: Fit::Wrap,
        warmup_requests,
        window: SimDuration::from_secs(1),
        check: false,
    };
    (drive, options)
}
