//! §6: uses of the drive. Sequential writes without the volatile cache, and random writes with a deep queue.

use imbrex_disk::{Command, SimTime};

use super::super::{ClaimKind, Experiment, Replication, Report};
use super::observed::{Dice, Observed, Script, is_near};
use super::under_test::{BLOCK_SECTORS, CONVENTIONAL, SEAGATE};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "aghayev/section6",
    title: "sequential writes without the volatile cache are slow, random writes with a deep queue fast",
    run,
};

/// Number of writes in each run.
const WRITES: u64 = 1000;
/// Sizes of sequential writes, in KiB.
const SIZES_KIB: [u64; 4] = [4, 64, 512, 1024];
/// Number of blocks over which random writes are spread, on both drives.
const BLOCKS: u64 = 900_000_000;

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: format!(
            "The experiment compares the paper's shingled Seagate (`{SEAGATE}`) with a conventional drive of \
             similar mechanics (`{CONVENTIONAL}`), both with the volatile cache off. A run has {WRITES} writes: in \
             order from the start of the drive, at each size and depth of the table, and of 4 KiB at random places at \
             depth 31. Both drives serve the requests in order of arrival."
        ),
        ..Report::default()
    };
    for (depth, kib) in [1, 31].into_iter().flat_map(|depth| SIZES_KIB.map(|kib| (depth, kib))) {
        let sectors = kib * 2;
        let make = || (0..WRITES).map(move |index| Command::write(index * sectors, sectors as u32));
        let ratio = seconds(SEAGATE, depth, make(), replication)? / seconds(CONVENTIONAL, depth, make(), replication)?;
        report.claim(
            ClaimKind::Predicted,
            &format!("sequential writes of {kib} KiB at depth {depth}: times slower than the conventional drive"),
            "3 or more, depending on write size",
            format!("{ratio:.1}"),
            Some(ratio >= 3.0),
        );
    }
    let random = || {
        let mut dice = Dice(replication.seed(61));
        (0..WRITES).map(move |_| Command::write(dice.below(BLOCKS) * BLOCK_SECTORS, BLOCK_SECTORS as u32))
    };
    let shingled_s = seconds(SEAGATE, 31, random(), replication)?;
    let ratio = seconds(CONVENTIONAL, 31, random(), replication)? / shingled_s;
    let per_burst_ms = shingled_s * 1e3 * 31.0 / WRITES as f64;
    report.claim(
        ClaimKind::Predicted,
        "random writes at depth 31: time of 31",
        "25 ms (within 10 %)",
        format!("{per_burst_ms:.1} ms, merges of the map and the first seek included"),
        Some(is_near(per_burst_ms, 25.0, 0.1)),
    );
    report.claim(
        ClaimKind::Predicted,
        "random writes at depth 31: times faster than the conventional drive",
        "15 (within 10 %)",
        format!("{ratio:.1}"),
        Some(is_near(ratio, 15.0, 0.1)),
    );
    report.remarks.push(
        "Aghayev 2015 §6 does not show its measurements of sequential writes without the volatile cache, and does \
         not give their depth. It says that they equal the random writes of test 1: 25 ms each. At depth 1, a \
         conventional drive waits a rotation of 10 ms for a small write. So the ratio is 25 to 10 until a write is \
         divided into several packets, and 3 or more only then. At depth 31, the conventional drive writes without a \
         pause, so the ratio is larger."
            .into(),
    );
    Ok(report)
}

/// Returns the simulated time, in seconds, that `commands` take on a fresh `drive`.
fn seconds(
    drive: &str,
    depth: u32,
    commands: impl Iterator<Item = Command>,
    replication: &Replication,
) -> Result<f64, Failure> {
    let mut script = Script::default();
    commands.for_each(|command| script.push(command));
    let trial = Observed::run(drive, depth, script, replication)?;
    let end = trial.served.iter().map(|served| served.io.end).max().unwrap_or_default();
    Ok(end.since(SimTime::ZERO).as_secs_f64())
}
