//! A measurement that names no requests: only how many took how long. A drive is held against it by as many requests of the
//! same kind, made from the words of the workload.
//!
//! Invariants:
//! 1. The distribution compared with its own times has the figure 0.
//! 2. No difference request by request is told: there are no pairs.

use imbrex_disk::Operation;
use imbrex_sim::{Arrival, Drive, Engine, Fit, IoRecord, Observer, Options};
use imbrex_trace::{Source, TraceError};

use crate::compare::{Comparison, compare};
use crate::validate::{Class, Suspect, Validation};

/// Times kept of a side at most; of more, as many at equal steps.
const TIMES_MAX: u64 = 1 << 22;

/// How long requests took, in nanoseconds, with how many there were of each.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Distribution {
    /// Reads.
    pub reads: Vec<(u64, u64)>,
    /// Writes.
    pub writes: Vec<(u64, u64)>,
    /// The workload in the words of a generator, where the record tells it.
    pub words: Option<String>,
}

impl Distribution {
    /// How many requests there were.
    pub fn requests(&self) -> u64 {
        self.reads.iter().chain(&self.writes).map(|(_, count)| count).sum()
    }

    /// The times one by one, those of reads or of writes or of both; of very many a part at equal steps.
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

/// What a drive made of the workload: what each request was, and how long it took.
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

/// Judges; `None` where one side is empty.
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
