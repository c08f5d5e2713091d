//! Requests a second through arrival, queue, layer, mechanics and metrics, from a trace in memory, on one core.
//!
//! Seconds are those in which the core worked for us, so that whatever else the machine does does not count.

use imbrex_disk::{Profile, SimDuration, SimTime};
use imbrex_sim::schedule::Schedule;
use imbrex_sim::{Arrival, Drive, DriveSpec, Engine, Fit, Options, Unobserved};
use imbrex_trace::generators::{self, Generator, WorkloadSpec};
use imbrex_trace::{Recorded, Request, Source};

use crate::machine::ProcessorTime;
use crate::Row;

/// A row to measure.
struct Case {
    name: &'static str,
    drive: &'static str,
    workload: &'static str,
    schedule: &'static str,
    arrival: Arrival,
    target_millions: f64,
}

const MIXED: &str = "rw=randrw,rwmixread=50,bs=4k,number_ios=5000000,seed=1";
const ABSORBED: &str = "rw=randwrite,bs=4k,number_ios=700000,seed=1";

/// The stand-in of 3.3 million requests for a CloudPhysics machine: run as `imbrex simulate` would, with the drive's cache.
const W106: &str = "cloudphysics-w106";

const CASES: [Case; 18] = [
    Case {
        name: "conventional, fifo",
        drive: "cmr-7200",
        workload: MIXED,
        schedule: "fifo",
        arrival: Arrival::FixedQueue(64),
        target_millions: 5.0,
    },
    Case {
        name: "conventional, sptf over 64",
        drive: "cmr-7200:host.queue=64",
        workload: MIXED,
        schedule: "sptf",
        arrival: Arrival::Closed(64),
        target_millions: 1.0,
    },
    Case {
        name: "s-blocks, absorbing random writes",
        drive: "cassuto-307g+s-blocks",
        workload: ABSORBED,
        schedule: "fifo",
        arrival: Arrival::FlatOut,
        target_millions: 1.0,
    },
    Case {
        name: "set-associative, absorbing random writes",
        drive: "cassuto-307g+set-associative",
        workload: ABSORBED,
        schedule: "fifo",
        arrival: Arrival::FlatOut,
        target_millions: 1.0,
    },
    Case {
        name: "region-rmw, reads",
        drive: "cassuto-307g+region-rmw",
        workload: "rw=randread,bs=4k,number_ios=3000000,seed=1",
        schedule: "fifo",
        arrival: Arrival::FlatOut,
        target_millions: 1.0,
    },
    Case {
        name: "fully-associative, absorbing random writes",
        drive: "emulated-smr-3+fully-associative",
        workload: ABSORBED,
        schedule: "fifo",
        arrival: Arrival::FlatOut,
        target_millions: 1.0,
    },
    Case {
        name: "log-structured, random writes",
        drive: "cassuto-307g+log-structured",
        workload: ABSORBED,
        schedule: "fifo",
        arrival: Arrival::FlatOut,
        target_millions: 1.0,
    },
    Case {
        name: "media-cache, absorbing random writes",
        drive: "seagate-st5000as0011+media-cache",
        workload: "rw=randwrite,bs=4k,number_ios=180000,seed=1",
        schedule: "fifo",
        arrival: Arrival::Closed(31),
        target_millions: 1.0,
    },
    Case {
        name: "media-cache in place, absorbing random writes",
        drive: "seagate-st8000as0022+media-cache",
        workload: "rw=randwrite,bs=4k,number_ios=190000,seed=1",
        schedule: "fifo",
        arrival: Arrival::Closed(31),
        target_millions: 1.0,
    },
    Case {
        name: "imr-rmw, half writes",
        drive: "imr-1t+imr-rmw",
        workload: MIXED,
        schedule: "fifo",
        arrival: Arrival::FixedQueue(64),
        target_millions: 5.0,
    },
    Case {
        name: "track-flip, half writes",
        drive: "imr-1t+track-flip",
        workload: MIXED,
        schedule: "fifo",
        arrival: Arrival::FixedQueue(64),
        target_millions: 5.0,
    },
    Case {
        name: "track-cache, half writes",
        drive: "imr-1t+track-cache",
        workload: MIXED,
        schedule: "fifo",
        arrival: Arrival::FixedQueue(64),
        target_millions: 5.0,
    },
    Case {
        name: "track-map, half writes",
        drive: "imr-1t+track-map",
        workload: MIXED,
        schedule: "fifo",
        arrival: Arrival::FixedQueue(64),
        target_millions: 5.0,
    },
    Case {
        name: "conventional, w106",
        drive: "imr-1t+conventional",
        workload: W106,
        schedule: "fifo",
        arrival: Arrival::FixedQueue(64),
        target_millions: 5.0,
    },
    Case {
        name: "imr-rmw, w106",
        drive: "imr-1t+imr-rmw",
        workload: W106,
        schedule: "fifo",
        arrival: Arrival::FixedQueue(64),
        target_millions: 5.0,
    },
    Case {
        name: "track-flip, w106",
        drive: "imr-1t+track-flip",
        workload: W106,
        schedule: "fifo",
        arrival: Arrival::FixedQueue(64),
        target_millions: 5.0,
    },
    Case {
        name: "track-cache, w106",
        drive: "imr-1t+track-cache",
        workload: W106,
        schedule: "fifo",
        arrival: Arrival::FixedQueue(64),
        target_millions: 5.0,
    },
    Case {
        name: "track-map, w106",
        drive: "imr-1t+track-map",
        workload: W106,
        schedule: "fifo",
        arrival: Arrival::FixedQueue(64),
        target_millions: 5.0,
    },
];

/// Runs a case this often and keeps the best: the machine's noise only ever slows.
const ROUNDS: usize = 3;

/// Measures every case whose name holds `only`.
pub fn measure(only: &str, report: &mut dyn FnMut(Row)) {
    for case in CASES.iter().filter(|case| case.name.contains(only)) {
        let drive = build(case.drive);
        let requests = record(case.workload, drive.capacity_bytes() / 512);
        let best = (0..ROUNDS).map(|_| millions_per_second(case, &requests)).fold(0.0, f64::max);
        report(Row {
            name: case.name.into(),
            value: best,
            unit: "million requests/s",
            target: Some(case.target_millions),
        });
    }
}

fn build(text: &str) -> Drive {
    let spec = DriveSpec::parse(text).expect("the cases are right");
    let profile = Profile::named(&spec.profile).expect("the cases name built-in profiles");
    Drive::build(&spec, &profile).expect("the cases are right")
}

fn record(words: &str, device_sectors: u64) -> Vec<Request> {
    let mut source: Box<dyn Source> = match generators::named(words) {
        Some(built_in) => built_in.open(device_sectors, None).expect("the cases are right").source,
        None => {
            let spec = WorkloadSpec::parse(words).expect("the cases are right");
            Box::new(Generator::new(spec, device_sectors).expect("the cases are right"))
        }
    };
    let mut requests = Vec::new();
    while let Some(request) = source.next(SimTime::ZERO).expect("generators do not fail") {
        requests.push(request);
    }
    requests
}

fn millions_per_second(case: &Case, requests: &[Request]) -> f64 {
    let mut source = Recorded::new(requests.to_vec());
    let drive = build(case.drive);
    let options = Options {
        arrival: case.arrival,
        schedule: Schedule::named(case.schedule, SimDuration::from_secs(1)).expect("the cases are right"),
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
