//! Requests a second through arrival, queue, layer, mechanics and metrics, from a trace in memory, on one core.
//!
//! Seconds are processor time of this thread, so that other work of the machine does not count.

use imbrex_disk::{SimDuration, SimTime};
use imbrex_sim::schedule::Schedule;
use imbrex_sim::{Arrival, Engine, Fit, Options, Unobserved};
use imbrex_trace::{Recorded, Request};

use crate::Row;
use crate::cases::{build, open};
use crate::machine::ProcessorTime;

/// Row to measure.
struct Case {
    name: &'static str,
    drive: &'static str,
    workload: &'static str,
    schedule: &'static str,
    arrival: Arrival,
    /// Drive for comparison. It serves the same requests in order of arrival, and `target` is the share of its rate
    /// that `drive` should reach. With `None`, `target` is in million requests a second.
    beside: Option<&'static str>,
    target: f64,
}

impl Case {
    const fn fifo(name: &'static str, drive: &'static str, workload: &'static str, arrival: Arrival) -> Case {
        Case { name, drive, workload, schedule: "fifo", arrival, beside: None, target: 5.0 }
    }

    const fn of(self, drive: &'static str, share: f64) -> Case {
        Case { beside: Some(drive), target: share, ..self }
    }
}

const MIXED: &str = "rw=randrw,rwmixread=50,bs=4k,number_ios=5000000,seed=1";
const READS: &str = "rw=randread,bs=4k,number_ios=3000000,seed=1";
const ABSORBED: &str = "rw=randwrite,bs=4k,number_ios=700000,seed=1";
/// Workloads with as many writes as the caches of the Seagate drives take.
const ABSORBED_5000: &str = "rw=randwrite,bs=4k,number_ios=180000,seed=1";
const ABSORBED_8000: &str = "rw=randwrite,bs=4k,number_ios=190000,seed=1";
/// Stand-in of 3.3 million requests for a CloudPhysics machine. It is run with the drive's volatile cache, as by
/// `imbrex simulate`.
const W106: &str = "cloudphysics-w106";

const QUEUE: Arrival = Arrival::FixedQueue(64);
const IMR: &str = "imr-1t+conventional";
const CASSUTO: &str = "cassuto-307g+conventional";

const CASES: [Case; 18] = [
    Case::fifo("conventional, fifo", "cmr-7200", MIXED, QUEUE),
    Case {
        schedule: "sptf",
        ..Case::fifo("conventional, sptf over 64", "cmr-7200:host.queue=64", MIXED, Arrival::Closed(64))
            .of("cmr-7200:host.queue=64", 0.5)
    },
    Case::fifo("s-blocks, absorbing random writes", "cassuto-307g+s-blocks", ABSORBED, Arrival::FlatOut)
        .of(CASSUTO, 0.4),
    Case::fifo("set-associative, absorbing random writes", "cassuto-307g+set-associative", ABSORBED, Arrival::FlatOut)
        .of(CASSUTO, 0.4),
    Case::fifo("region-rmw, reads", "cassuto-307g+region-rmw", READS, Arrival::FlatOut).of(CASSUTO, 0.4),
    Case::fifo(
        "fully-associative, absorbing random writes",
        "emulated-smr-3+fully-associative",
        ABSORBED,
        Arrival::FlatOut,
    )
    .of("emulated-smr-3+conventional", 0.4),
    Case::fifo("log-structured, random writes", "cassuto-307g+log-structured", ABSORBED, Arrival::FlatOut)
        .of(CASSUTO, 0.4),
    Case::fifo(
        "media-cache, absorbing random writes",
        "seagate-st5000as0011+media-cache",
        ABSORBED_5000,
        Arrival::Closed(31),
    )
    .of("seagate-st5000as0011+conventional", 0.4),
    Case::fifo(
        "media-cache in place, absorbing random writes",
        "seagate-st8000as0022+media-cache",
        ABSORBED_8000,
        Arrival::Closed(31),
    )
    .of("seagate-st8000as0022+conventional", 0.4),
    Case::fifo("imr-rmw, half writes", "imr-1t+imr-rmw", MIXED, QUEUE).of(IMR, 0.6),
    Case::fifo("track-flip, half writes", "imr-1t+track-flip", MIXED, QUEUE).of(IMR, 0.6),
    Case::fifo("track-cache, half writes", "imr-1t+track-cache", MIXED, QUEUE).of(IMR, 0.6),
    Case::fifo("track-map, half writes", "imr-1t+track-map", MIXED, QUEUE).of(IMR, 0.6),
    Case::fifo("conventional, w106", IMR, W106, QUEUE),
    Case::fifo("imr-rmw, w106", "imr-1t+imr-rmw", W106, QUEUE).of(IMR, 0.6),
    Case::fifo("track-flip, w106", "imr-1t+track-flip", W106, QUEUE).of(IMR, 0.6),
    Case::fifo("track-cache, w106", "imr-1t+track-cache", W106, QUEUE).of(IMR, 0.6),
    Case::fifo("track-map, w106", "imr-1t+track-map", W106, QUEUE).of(IMR, 0.6),
];

/// Number of runs of a case, in turn with the drive for comparison. The best rate is kept, since noise of the machine
/// only slows a run; of the ratios, the median.
const ROUNDS: usize = 3;

/// Measures every case whose name contains `only`.
pub(crate) fn measure(only: &str, report: &mut dyn FnMut(Row)) {
    for case in CASES.iter().filter(|case| case.name.contains(only)) {
        let requests = record(case.workload, build(case.drive).capacity_bytes() / 512);
        let (mut rates, mut ratios) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let rate = millions_per_second(case, case.drive, case.schedule, &requests);
            rates.push(rate);
            ratios.extend(case.beside.map(|drive| rate / millions_per_second(case, drive, "fifo", &requests)));
        }
        let target = case.beside.is_none().then_some(case.target);
        let value = rates.into_iter().fold(0.0, f64::max);
        report(Row { name: case.name.into(), value, unit: "million requests/s", target });
        ratios.sort_by(f64::total_cmp);
        if let Some(value) = ratios.get(ROUNDS / 2) {
            let name = format!("{}, over conventional", case.name);
            report(Row { name, value: *value, unit: "times", target: Some(case.target) });
        }
    }
}

fn record(words: &str, device_sectors: u64) -> Vec<Request> {
    let mut source = open(words, device_sectors);
    let mut requests = Vec::new();
    while let Some(request) = source.next(SimTime::ZERO).expect("generators do not fail") {
        requests.push(request);
    }
    requests
}

/// Returns the rate, in million requests a second, of `drive` with the requests of a case.
fn millions_per_second(case: &Case, drive: &str, schedule: &str, requests: &[Request]) -> f64 {
    let mut source = Recorded::new(requests.to_vec());
    let drive = build(drive);
    let options = Options {
        arrival: case.arrival,
        schedule: Schedule::named(schedule, SimDuration::from_secs(1)).expect("the cases are right"),
        write_cache_bytes: if case.workload == W106 { drive.host.write_cache_bytes } else { 0 },
        read_ahead_bytes: 0,
        fit: Fit::Reject,
        warmup_requests: 0,
        window: SimDuration::from_secs(1),
        check: false,
    };
    let mut unobserved = Unobserved;
    let engine = Engine::new(drive, options, &mut source, &mut unobserved);
    let begun = ProcessorTime::now();
    let outcome = engine.run().expect("a trace in memory does not fail");
    outcome.requests as f64 / begun.elapsed_seconds() / 1e6
}
