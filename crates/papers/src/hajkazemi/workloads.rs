//! What runs: the fifteen stand-ins, and the one real trace of such a machine where its file lies beside the repository.

use std::fs::File;

use imbrex_disk::SimTime;
use imbrex_trace::{generators, Input, Request, Source, TraceError};

use imbrex::error::Failure;

/// The machines of Hajkazemi 2019 table 1, in its order.
pub const MACHINES: [&str; 15] =
    ["w08", "w09", "w17", "w24", "w28", "w31", "w35", "w39", "w43", "w46", "w56", "w61", "w84", "w87", "w106"];

/// A real trace of the same collection, of a machine that the paper does not name: 113,872 requests in two hours.
pub const SAMPLE: &str = "cloudPhysicsIO.vscsi";
const SAMPLE_FOLDER: &str = "../shared/traces";

/// Machines that run as a whole: those whose write amplification or tails the paper names, and the shortest. Of the others
/// the first requests, about as many as the shortest has.
const WHOLE: [&str; 6] = ["w39", "w56", "w61", "w84", "w87", "w106"];
const PREFIX_REQUESTS: u64 = 3_000_000;

/// Requests of `name` that are run at most.
pub fn limit(name: &str) -> u64 {
    if name == SAMPLE || WHOLE.contains(&name) {
        u64::MAX
    } else {
        PREFIX_REQUESTS
    }
}

/// How much of `name` is run, in words.
pub fn extent(name: &str) -> &'static str {
    if limit(name) == u64::MAX {
        "whole"
    } else {
        "first 3 million"
    }
}

/// Whether the real trace is there.
pub fn has_sample() -> bool {
    sample_path().exists()
}

fn sample_path() -> std::path::PathBuf {
    std::path::Path::new(SAMPLE_FOLDER).join(SAMPLE)
}

/// One past the last sector of 512 bytes that `name` touches, where it is known.
pub fn reach_sectors(name: &str) -> Option<u64> {
    generators::named(&stand_in(name)).and_then(|entry| entry.reach_sectors)
}

fn stand_in(name: &str) -> String {
    format!("cloudphysics-{name}")
}

/// The requests of `name` that are run, for a drive of `device_sectors` sectors of 512 bytes.
pub fn open(name: &str, device_sectors: u64) -> Result<Prefix, Failure> {
    Ok(Prefix { left: limit(name), ..open_whole(name, device_sectors)? })
}

/// All requests of `name`.
pub fn open_whole(name: &str, device_sectors: u64) -> Result<Prefix, Failure> {
    let source = if name == SAMPLE {
        let path = sample_path();
        let file = File::open(&path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        imbrex_trace::open(Input::file(SAMPLE, file), &imbrex_trace::TraceOptions::default())?.source
    } else {
        let entry = generators::named(&stand_in(name)).expect("every machine has a stand-in");
        entry.open(device_sectors, None).map_err(Failure::usage)?.source
    };
    Ok(Prefix { source, left: u64::MAX })
}

/// The first requests of a source.
pub struct Prefix {
    source: Box<dyn Source>,
    left: u64,
}

impl Source for Prefix {
    fn next(&mut self, now: SimTime) -> Result<Option<Request>, TraceError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.source.next(now)
    }

    fn expected_requests(&self) -> Option<u64> {
        self.source.expected_requests().map(|requests| requests.min(self.left))
    }
}
