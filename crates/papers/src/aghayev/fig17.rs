//! Fig. 17: test 10. Reads that switch between tracks of two bands distinguish static from dynamic mapping.

use imbrex_disk::{Command, SimDuration};

use super::super::{ClaimKind, Experiment, Replication, Report};
use super::observed::{Observed, Script};
use super::under_test::{BLOCK_SECTORS, EMULATED_3, MIB_SECTORS, SEAGATE};
use imbrex::chart::{Axis, Chart, Series, Shape, Unit};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "aghayev/fig17",
    title: "a band read again after cleaning tells static from dynamic mapping",
    run,
};

/// Track size that the paper assumes for this test, in MiB; then its block size, in sectors.
const TRACK_MIB: u64 = 2;
const READ_SECTORS: u64 = 32;
/// Offset of band a, in MiB: a multiple of the band size of Emulated-SMR-3, 20 MiB. On the Seagate the offset lies
/// within a band.
const OFFSET_MIB: u64 = 2_384_200;
/// Pause in which the drive can clean.
const PAUSE: SimDuration = SimDuration(20_000_000_000);

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: format!(
            "Test 10 reads blocks of 16 KiB, one of band a and one of band b in turn. The first pass reads the first \
             track of each band, the second pass the first track of a and the second track of b. The test then \
             overwrites the first two tracks of b, pauses for 20 s and repeats both passes. It assumes tracks of \
             {TRACK_MIB} MiB, as in the paper, and bands of 20 MiB on Emulated-SMR-3 and of 30 MiB on the Seagate."
        ),
        ..Report::default()
    };
    for (drive, band_mib, is_static) in [(EMULATED_3, 20, false), (SEAGATE, 30, true)] {
        let (before, after) = test_10(drive, band_mib, replication)?;
        let alike = before.iter().zip(&after).filter(|(before, after)| (*before - *after).abs() < 0.2).count();
        let share = alike as f64 / before.len() as f64;
        report.claim(
            ClaimKind::Shape,
            &format!("{drive}: reads as long after cleaning as before"),
            if is_static { "the same pattern: static mapping" } else { "another pattern: dynamic mapping" },
            format!("{:.0} % of {} within 0.2 ms", share * 100.0, before.len()),
            Some((share > 0.9) == is_static),
        );
        let name = format!("aghayev-fig17-{drive}");
        report.figure(chart(&name, drive, &before, &after));
    }
    Ok(report)
}

/// Returns the latencies of the reads before and after cleaning, in ms.
fn test_10(drive: &str, band_mib: u64, replication: &Replication) -> Result<(Vec<f64>, Vec<f64>), Failure> {
    let a = OFFSET_MIB * MIB_SECTORS;
    let b = a + band_mib * MIB_SECTORS;
    let mut script = Script::default();
    read_in_turn(&mut script, a, b, SimDuration::ZERO);
    let blocks = 2 * TRACK_MIB * MIB_SECTORS / BLOCK_SECTORS;
    script.write_blocks((0..blocks).map(|block| b + block * BLOCK_SECTORS));
    read_in_turn(&mut script, a, b, PAUSE);
    let trial = Observed::run(drive, 1, script, replication)?;
    let latencies: Vec<f64> = trial.reads().iter().map(|served| served.latency_ms()).collect();
    let half = latencies.len() / 2;
    // Before the first read of each half the head is elsewhere, so that read is left out.
    Ok((latencies[1..half].to_vec(), latencies[half + 1..].to_vec()))
}

fn read_in_turn(script: &mut Script, a: u64, b: u64, pause: SimDuration) {
    let track = TRACK_MIB * MIB_SECTORS;
    let mut pause = pause;
    for pass in 0..2 {
        for block in (0..track).step_by(READ_SECTORS as usize) {
            script.after(pause, Command::read(a + block, READ_SECTORS as u32));
            pause = SimDuration::ZERO;
            script.push(Command::read(b + pass * track + block, READ_SECTORS as u32));
        }
    }
}

fn chart(id: &str, drive: &str, before: &[f64], after: &[f64]) -> Chart {
    let points = |latencies: &[f64]| {
        latencies.iter().enumerate().map(|(index, latency)| (index as f64 + 1.0, latency * 1e6)).collect::<Vec<_>>()
    };
    Chart::new(
        id,
        format!("Reads of two bands in turn, {drive}"),
        Axis::linear("read", Unit::Count),
        Axis::linear("latency", Unit::Nanoseconds),
    )
    .with(Series::new("before", Shape::Dots, 0, points(before)))
    .with(Series::new("after b was cleaned", Shape::Dots, 1, points(after)))
}
