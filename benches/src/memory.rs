//! Memory: growth of the process's peak from a generated workload of one million requests to one of 100 million.

use imbrex_disk::{Profile, SimDuration};
use imbrex_sim::schedule::Schedule;
use imbrex_sim::{Arrival, Drive, DriveSpec, Engine, Fit, Options, Unobserved};
use imbrex_trace::generators::{Generator, WorkloadSpec};

use crate::Row;

/// Measures the growth of peak memory between one million requests and 100 million.
pub(crate) fn measure(only: &str, report: &mut dyn FnMut(Row)) {
    const NAME: &str = "memory growth, 1 to 100 million requests";
    if !NAME.contains(only) {
        return;
    }
    run(1_000_000);
    let before = resident_bytes();
    run(100_000_000);
    let growth = resident_bytes().saturating_sub(before) as f64 / 1e6;
    report(Row { name: NAME.into(), value: growth, unit: "MB", target: Some(20.0) });
}

fn run(requests: u64) {
    let spec = DriveSpec::parse("cmr-7200").expect("it is right");
    let profile = Profile::named("cmr-7200").expect("it is built in");
    let drive = Drive::build(&spec, &profile).expect("it is right");
    let words = format!("rw=randrw,bs=4k,number_ios={requests}");
    let workload = WorkloadSpec::parse(&words).expect("it is right");
    let mut source = Generator::new(workload, drive.capacity_bytes() / 512).expect("it is right");
    let options = Options {
        arrival: Arrival::Closed(4),
        schedule: Schedule::Fifo,
        write_cache_bytes: 0,
        read_ahead_bytes: 0,
        fit: Fit::Reject,
        warmup_requests: 0,
        window: SimDuration::from_secs(1),
        check: false,
    };
    Engine::new(drive, options, &mut source, &mut Unobserved).run().expect("generators do not fail");
}

/// Returns the peak of resident memory so far, in bytes, as Linux reports it.
fn resident_bytes() -> u64 {
    told("VmHWM")
}

/// Returns the resident memory now, in bytes, without free memory that the allocator keeps.
pub(crate) fn resident_now_bytes() -> u64 {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)] // only the allocator can return its free memory to the system
    // SAFETY: `malloc_trim` takes no pointer, and may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
    told("VmRSS")
}

fn told(what: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(what)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0) * 1024
}
