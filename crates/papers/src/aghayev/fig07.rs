//! Figs 6 and 7: the packets of the Seagate's journal grow in half tracks. Also the repeated reads of §4.3.1.

use imbrex_disk::{Command, SimDuration};

use super::super::{ClaimKind, Experiment, Replication, Report};
use super::observed::{Dice, Observed, Script, is_near, median, share_near};
use super::under_test::{BLOCK_SECTORS, MIB_SECTORS, SEAGATE};
use imbrex::chart::{Axis, Chart, Series, Shape, Unit};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "aghayev/fig07",
    title: "internal writes grow in half tracks with the size of host writes",
    run,
};

/// Depth of the queue (Aghayev 2015 §4.3.1).
const DEPTH: u32 = 31;
/// Write sizes of fig. 7, in KiB: first, last, step.
const SIZES_KIB: (u64, u64, usize) = (4, 96, 2);
/// Number of bursts of 31 writes for each size.
const BURSTS: u64 = 5;
/// Number of blocks that are written and then read back.
const AGAIN: usize = 200;

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: format!(
            "The Seagate drive gets {BURSTS} bursts of {DEPTH} random writes of each size from {} to {} KiB, in \
             steps of {} KiB, with {DEPTH} writes outstanding. The latency of a size is the median of its writes. \
             A new drive gets 310 random writes of 256 KiB at depth {DEPTH}. Two more new drives each get {AGAIN} \
             random writes of 4 KiB in the first GiB, one at depth 1 and one at depth {DEPTH}; the blocks are read \
             back one by one in the order of writing.",
            SIZES_KIB.0, SIZES_KIB.1, SIZES_KIB.2
        ),
        ..Report::default()
    };
    let latencies = by_size(replication)?;
    size_claims(&mut report, &latencies);
    large_claim(&mut report, replication)?;
    read_again(&mut report, 1, 5.0, replication)?;
    read_again(&mut report, DEPTH, 10.0, replication)?;
    report.figure(chart(&latencies));
    Ok(report)
}

/// Returns (size in KiB, median latency in ms) for each size.
fn by_size(replication: &Replication) -> Result<Vec<(u64, f64)>, Failure> {
    let (from, to, step) = SIZES_KIB;
    let sizes: Vec<u64> = (from..=to).step_by(step).collect();
    let mut dice = Dice(replication.seed(7));
    let mut script = Script::default();
    for &kib in &sizes {
        for index in 0..DEPTH as u64 * BURSTS {
            let command = Command::write(dice.below(1 << 20) * 256, kib as u32 * 2);
            match index {
                0 => script.after(SimDuration::ZERO, command),
                _ => script.push(command),
            }
        }
    }
    let trial = Observed::run(SEAGATE, DEPTH, script, replication)?;
    let of_size = |kib: u64| {
        let served = trial.served.iter().filter(move |served| served.io.command.sectors as u64 == kib * 2);
        median(served.map(|served| served.latency_ms()))
    };
    Ok(sizes.into_iter().map(|kib| (kib, of_size(kib))).collect())
}

fn size_claims(report: &mut Report, latencies: &[(u64, f64)]) {
    let small: Vec<f64> = latencies.iter().filter(|(kib, _)| *kib <= 26).map(|&(_, latency)| latency).collect();
    report.claim(
        ClaimKind::Predicted,
        "latency of writes of 4 to 26 KiB",
        "25 ms",
        format!("{:.1} to {:.1} ms", small[0], small[small.len() - 1]),
        Some(share_near(&small, 25.0, 0.05) == 1.0),
    );
    let steps: Vec<(u64, f64)> = latencies
        .windows(2)
        .filter(|pair| pair[1].1 - pair[0].1 > 2.5)
        .map(|pair| (pair[1].0, pair[1].1 - pair[0].1))
        .collect();
    let told: Vec<_> = steps.iter().map(|(kib, rise)| format!("{kib} KiB (+{rise:.2} ms)")).collect();
    report.claim(
        ClaimKind::Predicted,
        "sizes at which the latency jumps by half a track",
        "28, 56 and 84 KiB, 5 ms each",
        told.join(", "),
        Some(steps.iter().map(|step| step.0).eq([28, 56, 84]) && steps.iter().all(|step| (step.1 - 5.0).abs() <= 0.25)),
    );
}

/// Adds the claim for writes of 256 KiB: fewer than 31 complete together.
fn large_claim(report: &mut Report, replication: &Replication) -> Result<(), Failure> {
    let mut dice = Dice(replication.seed(71));
    let mut script = Script::default();
    (0..310).for_each(|_| script.push(Command::write(dice.below(1 << 20) * 512, 512)));
    let trial = Observed::run(SEAGATE, DEPTH, script, replication)?;
    let mut together = std::collections::BTreeMap::new();
    trial.served.iter().for_each(|served| *together.entry(served.io.end).or_insert(0u32) += 1);
    let most = together.values().copied().max().unwrap_or(0);
    report.claim(
        ClaimKind::Shape,
        "writes of 256 KiB that complete together",
        "fewer than 31: a packet is bounded",
        format!("at most {most}"),
        Some(most < DEPTH),
    );
    Ok(())
}

fn read_again(report: &mut Report, depth: u32, theirs_ms: f64, replication: &Replication) -> Result<(), Failure> {
    let mut script = Script::default();
    let lbas = Dice(replication.seed(8)).blocks(0, 1024 * MIB_SECTORS / BLOCK_SECTORS, AGAIN);
    script.write_blocks(lbas.iter().copied());
    script.read_blocks(SimDuration::ZERO, lbas);
    let trial = Observed::run(SEAGATE, depth, script, replication)?;
    let latencies: Vec<f64> = trial.reads().iter().skip(1).map(|served| served.latency_ms()).collect();
    let middle = median(latencies.clone());
    let share = share_near(&latencies, theirs_ms, 0.05);
    report.claim(
        ClaimKind::Predicted,
        &format!("reading again the blocks written at depth {depth}"),
        &format!("{theirs_ms:.0} ms"),
        format!("{middle:.2} ms; {:.0} % within 5 %", share * 100.0),
        Some(is_near(middle, theirs_ms, 0.05) && share >= 0.9),
    );
    Ok(())
}

fn chart(latencies: &[(u64, f64)]) -> Chart {
    let points = latencies.iter().map(|&(kib, latency)| (kib as f64, latency * 1e6)).collect();
    Chart::new(
        "aghayev-fig07",
        "Random writes at depth 31 on the Seagate",
        Axis::linear("write size (KiB)", Unit::Count),
        Axis::linear("latency", Unit::Nanoseconds).ranged(20e6, 45e6),
    )
    .with(Series::new("median latency", Shape::Marks, 0, points))
    .mark_x(28.0, "28 KiB")
    .mark_x(56.0, "56 KiB")
    .mark_x(84.0, "84 KiB")
}
