//! How long is a rotation? One sector read again and again comes by once a rotation. A drive that answers from memory
//! shows no such period, and then there is none to tell.

use super::{Bench, Experiment, BLOCK_BYTES};
use crate::statistics::{median, mode};
use crate::target::{Operation, TargetError};
use crate::verdict::{Confidence, Value};

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "rotation",
    question: "how long is a rotation?",
    source: "our own",
    writes: false,
    tells: &["rotation"],
    about_s: 10,
    is_idle: |_| None,
    run,
};

/// Rotations between these rates are those of disks: 3,000 to 20,000 a minute.
const ROTATION_NS: std::ops::RangeInclusive<u64> = 3_000_000..=20_000_000;

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let mut periods = Vec::new();
    for share in [0.1, 0.37, 0.61, 0.93] {
        let offset = bench.at_share(share);
        let latencies = bench.one_by_one("re-read", &vec![Operation::read(offset, BLOCK_BYTES); 40])?;
        // The first one also seeks.
        let found = mode(&latencies[1..], 0.02);
        if found.share > 0.5 {
            periods.push(found.center);
        }
    }
    let (value, confidence, because) = match periods.len() {
        0 => (Value::CannotTell, Confidence::Low, "re-reading a block takes no fixed time".into()),
        count => {
            let period = median(&periods);
            let agree = mode(&periods, 0.02).share > 0.7;
            if agree && ROTATION_NS.contains(&period) {
                let sure = if count == 4 { Confidence::High } else { Confidence::Medium };
                (Value::Number(period as f64 / 1e6), sure, format!("re-reading takes it at {count} of 4 places"))
            } else {
                let because = "the time of re-reading is not that of a disk: a cache answers, or it is none".into();
                (Value::CannotTell, Confidence::Low, because)
            }
        }
    };
    bench.verdict.conclude("rotation", value, "ms", confidence, because, &["re-read"]);
    Ok(())
}
