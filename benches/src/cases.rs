//! The drives and workloads that the benchmarks of simulations name.

use std::fs::File;

use imbrex_disk::Profile;
use imbrex_sim::{Drive, DriveSpec};
use imbrex_trace::generators::{self, Generator, WorkloadSpec};
use imbrex_trace::{Input, Source, TraceOptions};

/// Environment variable that names another trace to measure, as for `imbrex simulate`.
pub(crate) const TRACE_VARIABLE: &str = "IMBREX_BENCH_TRACE";

/// Builds the drive that `text` names.
pub(crate) fn build(text: &str) -> Drive {
    let spec = DriveSpec::parse(text).expect("the cases are right");
    let profile = Profile::named(&spec.profile).expect("the cases name built-in profiles");
    Drive::build(&spec, &profile).expect("the cases are right")
}

/// Opens a generator, a stand-in for a trace, or the file of a trace.
pub(crate) fn open(words: &str, device_sectors: u64) -> Box<dyn Source> {
    if let Some(built_in) = generators::named(words) {
        return built_in.open(device_sectors, None).expect("the cases are right").source;
    }
    match WorkloadSpec::parse(words) {
        Ok(spec) => Box::new(Generator::new(spec, device_sectors).expect("the cases are right")),
        Err(_) => {
            let file = File::open(words).unwrap_or_else(|error| panic!("{TRACE_VARIABLE}={words}: {error}"));
            let opened = imbrex_trace::open(Input::file(words, file), &TraceOptions::default());
            opened.unwrap_or_else(|error| panic!("{TRACE_VARIABLE}={words}: {error}")).source
        }
    }
}
