//! Requests a second that generators make on one core. Generators must be much faster than the drives that they feed.

use imbrex_disk::SimTime;
use imbrex_trace::Source;
use imbrex_trace::generators::{self, Generator, WorkloadSpec};

use crate::Row;
use crate::machine::ProcessorTime;

/// Cases: (name in the table, words of the generator).
const CASES: [(&str, &str); 4] = [
    ("generating uniform writes", "rw=randwrite,bs=4k,number_ios=5000000"),
    ("generating zipf writes", "rw=randwrite,bs=4k,random_distribution=zipf:1.1,number_ios=5000000"),
    ("generating the stand-in for w106", "cloudphysics-w106"),
    ("generating the stand-in for w87", "cloudphysics-w87"),
];

/// Number of sectors of a drive of 8 TB.
const DEVICE_SECTORS: u64 = 15_628_053_168;

/// Number of runs of each case. The best is kept, since noise of the machine only slows a run.
const ROUNDS: usize = 3;

/// Measures every case whose name contains `only`.
pub(crate) fn measure(only: &str, report: &mut dyn FnMut(Row)) {
    for (name, words) in CASES.iter().filter(|(name, _)| name.contains(only)) {
        let value = (0..ROUNDS).map(|_| millions_per_second(words)).fold(0.0, f64::max);
        report(Row { name: (*name).into(), value, unit: "million requests/s", target: Some(10.0) });
    }
}

fn millions_per_second(words: &str) -> f64 {
    let mut source = open(words);
    let (begun, mut requests) = (ProcessorTime::now(), 0u64);
    while let Some(request) = source.next(SimTime::ZERO).expect("generators do not fail") {
        std::hint::black_box(request);
        requests += 1;
    }
    requests as f64 / begun.elapsed_seconds() / 1e6
}

fn open(words: &str) -> Box<dyn Source> {
    if let Some(built_in) = generators::named(words) {
        return built_in.open(DEVICE_SECTORS, None).expect("the cases are right").source;
    }
    let spec = WorkloadSpec::parse(words).expect("the cases are right");
    Box::new(Generator::new(spec, DEVICE_SECTORS).expect("the cases are right"))
}
