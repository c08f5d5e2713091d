//! A measurement without single requests: only the number of requests by duration. A simulated drive is compared with
//! it by equally many requests of the same kind, generated from the description of the workload.
//!
//! Invariants:
//! 1. A distribution compared with its own times has the figure 0.
//! 2. Differences between single requests are not reported, because requests cannot be paired.

use imbrex_disk::Operation;
use imbrex_sim::{Arrival, Drive, Engine, Fit, IoRecord, Observer, Options};
use imbrex_trace::{Source, TraceError};

use crate::compare::{Comparison, compare};
use crate::validate::{Class, Suspect, Validation};

/// Most times of one side that are kept; of more, a part is kept at equal steps.
const TIMES_MAX: u64 = 1 << 22;

/// The durations of requests of a real drive, without the single requests: pairs of a duration in nanoseconds and the
/// number of requests that took so long.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Distribution {
    /// Durations of reads: pairs of a duration in nanoseconds, in ascending order, and the number of reads that took so
    /// long. Empty if no read was measured.
    pub reads: Vec<(u64, u64)>,
    /// Durations of writes: pairs of a duration in nanoseconds, in ascending order, and the number of writes that took
    /// so long. Empty if no write was measured.
    pub writes: Vec<(u64, u64)>,
    /// Description of the workload that was measured, in the syntax of the workload generator, such as
    /// `rw=randread,bs=4k`; `None` if the record does not contain it, or if several jobs were measured together.
    pub words: Option<String>,
}

impl Distribution {
    /// Returns the number of all requests, reads and writes.
    pub fn requests(&self) -> u64 {
        self.reads.iter().chain(&self.writes).map(|(_, count)| count).sum()
    }

    /// Returns the duration in nanoseconds of each request of the operation `wanted`, or of all for `None`: reads
    /// first. If the distribution has more than 4 Mi (2²²) requests, only every n-th is returned. Empty for flushes and
    /// trims.
    pub fn times_ns(&self, wanted: Option<Operation>) -> Vec<u64> {
        let of = |operation| wanted.is_none_or(|wanted| wanted == operation);
        let step = self.requests().div_ceil(TIMES_MAX).max(1);
        let mut times = Vec::new();
        for (bins, operation) in [(&self.reads, Operation::Read), (&self.writes, Operation::Write)] {
            let mut passed = 0;
            for &(ns, count) in bins.iter().filter(|_| of(operation)) {
                let (before, after) = (passed / step, (passed + count) / step);
                times.extend((before..after).map(|_| ns));
                passed += count;
            }
        }
        times
    }
}

/// Simulates the workload from `source` on `drive`, with the scheduler and caches of its profile and requests issued
/// according to `arrival`. Returns the operation of each request and the nanoseconds from its entry to its completion,
/// in the order of completion. Requests past the end of the drive are left out.
///
/// # Errors
///
/// Returns an error if the workload cannot be read.
pub fn play(source: impl Source, arrival: Arrival, drive: Drive) -> Result<Vec<(Operation, u64)>, TraceError> {
    let options = Options { fit: Fit::Reject, arrival, ..Options::live(&drive) };
    let mut kept = Times(Vec::new());
    Engine::new(drive, options, source, &mut kept).run()?;
    Ok(kept.0)
}

struct Times(Vec<(Operation, u64)>);

impl Observer for Times {
    fn io(&mut self, record: &IoRecord) {
        self.0.push((record.command.operation, record.end.since(record.entry).0));
    }

    fn wants_ios(&self) -> bool {
        true
    }
}

/// Compares the simulated durations, each with its operation and in nanoseconds, with the measured distribution: over
/// all requests, and over reads and writes where both sides have some. No part of the drive's model is suspected,
/// because that needs single requests. Returns `None` if either side is empty.
pub fn validate(measured: &Distribution, simulated: &[(Operation, u64)]) -> Option<Validation> {
    let class = |name: &str, wanted: Option<Operation>| {
        let of = |operation: Operation| wanted.is_none_or(|wanted| wanted == operation);
        let mut ours: Vec<u64> = simulated.iter().filter(|(operation, _)| of(*operation)).map(|(_, ns)| *ns).collect();
        let comparison = compare(&mut measured.times_ns(wanted), &mut ours)?;
        Some(Class { class: name.into(), comparison, mean_difference_ns: difference(&comparison) })
    };
    let whole = class("all", None)?;
    let kinds = [("read", Operation::Read), ("write", Operation::Write)];
    let classes = kinds.into_iter().filter_map(|(name, operation)| class(name, Some(operation))).collect();
    let suspect = match whole.comparison.rms_ns {
        0 => Suspect { part: "nothing".into(), because: "there is no difference".into() },
        _ => Suspect {
            part: "no one part".into(),
            because: "a distribution does not tell which requests took longer; a log of single requests does".into(),
        },
    };
    let mean_difference_ns = whole.mean_difference_ns;
    Some(Validation { whole: whole.comparison, mean_difference_ns, classes, suspect, rejected: 0 })
}

fn difference(comparison: &Comparison) -> i64 {
    comparison.mean_simulated_ns as i64 - comparison.mean_measured_ns as i64
}
