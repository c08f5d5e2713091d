//! Goal: the number of requests a second that the generators make on one core. 20 million a second keep them from
//! slowing the simulation.
//! Method: the best of five runs each; `cargo bench -p imbrex-trace --bench generators`.

use std::hint::black_box;
use std::time::Instant;

use imbrex_trace::Source;
use imbrex_trace::generators::{Generator, WorkloadSpec, named};
use imbrex_units::SimTime;

/// Sectors of a drive of 8 TB.
const DEVICE_SECTORS: u64 = 15_628_053_168;
const REQUESTS: u64 = 5_000_000;
const RUNS: usize = 5;

/// Takes all requests of `source`. Returns their number and the seconds this took.
fn drain(source: &mut dyn Source) -> (u64, f64) {
    let begin = Instant::now();
    let mut requests = 0;
    while let Some(request) = source.next(SimTime::ZERO).expect("generators do not fail") {
        black_box(request);
        requests += 1;
    }
    (requests, begin.elapsed().as_secs_f64())
}

fn report(name: &str, build: impl Fn() -> Box<dyn Source>) {
    let rate = |(requests, seconds): (u64, f64)| requests as f64 / seconds / 1e6;
    let best = (0..RUNS).map(|_| rate(drain(build().as_mut()))).fold(0.0, f64::max);
    println!("{name:60} {best:8.1} million requests/s");
}

fn main() {
    for words in [
        "rw=write,bs=64k",
        "rw=randwrite,bs=4k",
        "rw=randwrite,bs=4k,size=100%,randommap=on",
        "rw=randrw,rwmixread=70,bssplit=4k/60:64k/40,fsync=32",
        "rw=randwrite,bs=4k,random_distribution=zipf:1.1",
        "rw=randwrite,bs=4k,random_distribution=normal:10",
        "rw=randwrite,bs=4k,rate_iops=200,rate_process=poisson",
    ] {
        let text = format!("{words},number_ios={REQUESTS}");
        let spec = WorkloadSpec::parse(&text).expect("is right");
        report(words, || Box::new(Generator::new(spec.clone(), DEVICE_SECTORS).expect("fits")));
    }
    for name in ["pc-day", "cloudphysics-w106", "cloudphysics-w87"] {
        let entry = named(name).expect("is built in");
        report(entry.name, || entry.open(DEVICE_SECTORS, None).expect("fits").source);
    }
}
