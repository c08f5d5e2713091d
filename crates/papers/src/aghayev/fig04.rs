//! Figs 4 and 5: test 1. Latencies of random writes in a small region distinguish shingled from conventional drives;
//! fig. 5 shows the Seagate's head meanwhile. Also the first write of §4.3 and the bursts of §4.3.1.

use imbrex_disk::{Command, SimDuration, SimTime};

use super::super::{ClaimKind, Experiment, Replication, Report};
use super::observed::{Dice, Observed, Script, capacity_sectors, is_near, median, radial_tracks, share_near};
use super::under_test::{BLOCK_SECTORS, CONVENTIONAL, EMULATED_1, EMULATED_2, EMULATED_3, MIB_SECTORS, SEAGATE};
use imbrex::chart::{Axis, Chart, Series, Shape, Unit};
use imbrex::drives::fresh;
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "aghayev/fig04-05",
    title: "the latency of random writes in a small region tells the type of a drive",
    run,
};

/// Number of writes on each drive: enough to pass the second merge of the map.
const WRITES: usize = 500;
/// Region of test 1, in MiB; then a region, in MiB, that maps to one cache band of Emulated-SMR-1.
const REGION_MIB: u64 = 1024;
const ONE_BAND_MIB: u64 = 8;
/// Number of writes in a burst (Aghayev 2015 §4.3.1). The number is inferred from the burst's time, 216 ms. Of these,
/// 16 ms are a seek from the inner diameter, where the head was parked (§4.3); the rest are eight packets of 25 ms. At
/// depth 31 a packet takes 31 writes.
const BURST: usize = 248;

fn run(replication: &Replication) -> Result<Report, Failure> {
    let drives = [
        (EMULATED_1, ONE_BAND_MIB),
        (EMULATED_2, REGION_MIB),
        (EMULATED_3, REGION_MIB),
        (SEAGATE, REGION_MIB),
        (CONVENTIONAL, REGION_MIB),
    ];
    let mut report = Report {
        method: format!(
            "Test 1 of Aghayev 2015: {WRITES} writes of 4 KiB, one after the other, to different blocks in random \
             order. The blocks lie in the first GiB of the drive; on Emulated-SMR-1 they lie in the first \
             {ONE_BAND_MIB} MiB. This drive assigns a band to a cache band by the band's number modulo the number of \
             cache bands, so a GiB would use 26 cache bands. The fixed latency of 10 ms in the paper needs a single \
             cache band."
        ),
        ..Report::default()
    };
    let mut latencies = Vec::new();
    for (drive, mib) in drives {
        let trial = test_1(drive, mib, replication)?;
        if drive == SEAGATE {
            report.figure(head_chart(&trial));
            centre_claim(&mut report, &trial);
        }
        let name = format!("aghayev-fig04-{drive}");
        report.figure(latency_chart(&name, drive, &trial));
        latencies.push(trial.served.iter().map(|served| served.latency_ms()).collect::<Vec<_>>());
    }
    emulated_claims(&mut report, &latencies);
    seagate_claims(&mut report, &latencies[3]);
    report.remarks.push(conventional(&latencies[4]));
    first_write(&mut report, replication)?;
    bursts(&mut report, replication)?;
    Ok(report)
}

fn test_1(drive: &str, mib: u64, replication: &Replication) -> Result<Observed, Failure> {
    let mut script = Script::default();
    script.write_blocks(Dice(replication.seed(4)).blocks(0, mib * MIB_SECTORS / BLOCK_SECTORS, WRITES));
    Observed::run(drive, 1, script, replication)
}

fn emulated_claims(report: &mut Report, latencies: &[Vec<f64>]) {
    for (index, name) in [(0, "Emulated-SMR-1"), (2, "Emulated-SMR-3")] {
        let share = share_near(&latencies[index], 10.0, 0.05);
        report.claim(
            ClaimKind::Predicted,
            &format!("{name}: latency of a write"),
            "10 ms: each misses its rotation",
            format!("{:.2} ms; {:.1} % within 5 % of 10 ms", median(latencies[index].clone()), share * 100.0),
            Some(share >= 0.98),
        );
    }
    let longest = latencies[1].iter().copied().fold(0.0, f64::max);
    report.claim(
        ClaimKind::Predicted,
        "Emulated-SMR-2: latency of a write",
        "under a millisecond: flash",
        format!("at most {longest:.2} ms"),
        Some(longest < 1.0),
    );
}

fn seagate_claims(report: &mut Report, latencies: &[f64]) {
    let share = share_near(latencies, 25.0, 0.05);
    report.claim(
        ClaimKind::Predicted,
        "Seagate: latency of a write",
        "25 ms",
        format!("{:.2} ms; {:.1} % within 5 % of 25 ms", median(latencies.to_vec()), share * 100.0),
        Some(share >= 0.98),
    );
    let slow: Vec<_> = latencies.iter().enumerate().filter(|&(_, &latency)| latency > 100.0).collect();
    let merge = slow.first().map_or(0.0, |&(_, &latency)| latency);
    let places: Vec<_> = slow.iter().map(|(index, _)| (index + 1).to_string()).collect();
    report.claim(
        ClaimKind::Predicted,
        "Seagate: the merge of the map",
        "325 ms, at the 240th write",
        format!("{merge:.0} ms, at write {}", places.join(" and ")),
        Some(is_near(merge, 325.0, 0.05) && places.first().is_some_and(|place| place == "240")),
    );
}

/// Returns the remark on the conventional drive: latencies that vary, which no run could refute.
fn conventional(latencies: &[f64]) -> String {
    let (low, high) = latencies.iter().fold((f64::MAX, 0.0f64), |(low, high), &at| (low.min(at), high.max(at)));
    format!(
        "On the conventional drive, the latency of a write varies with seek and rotation: {low:.1} to {high:.1} ms."
    )
}

/// Adds the claim of how long the head stays away from the cache at the first merge of the map.
fn centre_claim(report: &mut Report, trial: &Observed) {
    let middle = trial.head.iter().map(|sample| sample.radial_track).max().unwrap_or(0) / 2;
    let away: Vec<_> = trial.head.iter().skip_while(|sample| sample.radial_track < middle).collect();
    let back = away.iter().find(|sample| sample.radial_track < middle);
    let stay_ms = match (away.first(), back) {
        (Some(first), Some(back)) => back.time.since(first.time).as_millis_f64(),
        _ => 0.0,
    };
    report.claim(
        ClaimKind::Predicted,
        "Seagate: the head stays at the centre for the merge",
        "285 ms",
        format!("{stay_ms:.0} ms, from the first transfer there to the next at the cache"),
        Some(is_near(stay_ms, 285.0, 0.05)),
    );
}

/// Adds the claim for a write with the head at the inner diameter. A read there before every write stands in for
/// parking.
fn first_write(report: &mut Report, replication: &Replication) -> Result<(), Failure> {
    let end = capacity_sectors(&fresh(SEAGATE)?);
    let mut dice = Dice(replication.seed(43));
    let mut script = Script::default();
    for lba in dice.blocks(0, REGION_MIB * MIB_SECTORS / BLOCK_SECTORS, 100) {
        let read = end - (1 + dice.below(1000)) * BLOCK_SECTORS;
        script.push(Command::read(read, BLOCK_SECTORS as u32));
        script.push(Command::write(lba, BLOCK_SECTORS as u32));
    }
    let trial = Observed::run(SEAGATE, 1, script, replication)?;
    let writes = trial.served.iter().skip(1).step_by(2).map(|served| served.latency_ms());
    let (low, high) = writes.fold((f64::MAX, 0.0f64), |(low, high), at| (low.min(at), high.max(at)));
    report.claim(
        ClaimKind::Predicted,
        "Seagate: a write with the head parked at the inner diameter",
        "41 to 52 ms",
        format!("{low:.1} to {high:.1} ms"),
        Some(is_near(low, 41.0, 0.1) && is_near(high, 52.0, 0.1)),
    );
    report.remarks.push(
        "The simulated Seagate drive does not park its head. Instead, a read at the inner diameter takes the head \
         there before each of 100 writes. Such a write takes a seek of 16 ms, up to a rotation (10 ms) until the \
         place of the next packet passes the head, and 25 ms of writing. These parts explain the paper's 41 to 52 \
         ms."
        .into(),
    );
    Ok(())
}

fn bursts(report: &mut Report, replication: &Replication) -> Result<(), Failure> {
    let end = capacity_sectors(&fresh(SEAGATE)?);
    for (depth, theirs_ms) in [(1, 6539.0), (31, 216.0)] {
        let mut script = Script::default();
        script.push(Command::read(end - BLOCK_SECTORS, BLOCK_SECTORS as u32));
        let blocks = Dice(replication.seed(6)).blocks(0, REGION_MIB * MIB_SECTORS / BLOCK_SECTORS, BURST);
        script.after(SimDuration::ZERO, Command::write(blocks[0], BLOCK_SECTORS as u32));
        script.write_blocks(blocks[1..].iter().copied());
        let trial = Observed::run(SEAGATE, depth, script, replication)?;
        let begun = trial.served[0].io.end;
        let total_ms = trial.served.iter().map(|served| served.io.end).max().unwrap_or_default();
        let total_ms = total_ms.since(begun).as_millis_f64();
        report.claim(
            ClaimKind::Predicted,
            &format!("Seagate: {BURST} writes at depth {depth}, the head at the inner diameter before"),
            &format!("{theirs_ms:.0} ms"),
            format!("{total_ms:.0} ms"),
            Some(is_near(total_ms, theirs_ms, 0.05)),
        );
    }
    report.remarks.push(
        "Aghayev 2015 gives the times of a burst of writes on the Seagate drive, 6,539 ms at depth 1 and 216 ms at \
         depth 31. We infer the number of writes, 248, from the second time: 216 ms are a seek of 16 ms from the \
         place where the head is parked and eight packets of 25 ms, and at depth 31 a packet takes 31 writes. At \
         depth 1, the 248 writes take 16 + 248 · 25 + 300 = 6,516 ms, where 300 ms are a merge of the drive's map. \
         Up to a rotation of waiting for the first write is added."
            .into(),
    );
    Ok(())
}

fn latency_chart(id: &str, drive: &str, trial: &Observed) -> Chart {
    let points = trial.served.iter().enumerate();
    let points = points.map(|(index, served)| (index as f64, served.latency_ms() * 1e6)).collect();
    Chart::new(
        id,
        format!("Random writes in a small region, {drive}"),
        Axis::linear("write", Unit::Count),
        Axis::linear("latency", Unit::Nanoseconds),
    )
    .with(Series::new(drive, Shape::Dots, 0, points))
}

fn head_chart(trial: &Observed) -> Chart {
    let tracks = radial_tracks(SEAGATE);
    let end = SimTime::ZERO + SimDuration::from_secs(8);
    let chart = Chart::new(
        "aghayev-fig05",
        "The Seagate's head during random writes",
        Axis::linear("time (s)", Unit::Count),
        Axis::linear("tracks from the outer diameter", Unit::Count).ranged(0.0, tracks),
    );
    let path = Series::new("head", Shape::Steps, 0, trial.path(SimTime::ZERO, end));
    chart.with(path).thin(1500)
}
