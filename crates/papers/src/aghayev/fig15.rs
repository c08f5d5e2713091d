//! Figs 15 and 16: test 9. The granularity of cleaning shows the size of a band.

use imbrex_disk::{Command, SimDuration};

use super::super::{ClaimKind, Experiment, Replication, Report};
use super::observed::{Dice, Observed, Script, Served, capacity_sectors, is_near, radial_tracks};
use super::under_test::{BLOCK_SECTORS, EMULATED_1, EMULATED_2, EMULATED_3, MIB_SECTORS, SEAGATE};
use imbrex::chart::{Axis, Chart, Series, Shape, Unit};
use imbrex::drives::fresh;
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "aghayev/fig15-16", title: "consecutive reads served from their band tell its size", run };

/// Offset of the test: 2.5 TB, in MiB.
const OFFSET_MIB: u64 = 2_384_200;
/// Number of blocks written, one in each MiB: enough for 100 bands of 50 MiB. Fewer are written where the cache must
/// be filled first.
const BLOCKS: u64 = 5000;
const BLOCKS_LAZY: u64 = 500;
/// Pause in which the drive can clean.
const PAUSE: SimDuration = SimDuration(5_000_000_000);

/// Case: a drive, the offset in MiB, the size of the drive's band there in the paper, in MiB.
type Case = (&'static str, u64, f64);

fn run(replication: &Replication) -> Result<Report, Failure> {
    let seagate_mib = capacity_sectors(&fresh(SEAGATE)?) / MIB_SECTORS;
    let cases: [Case; 6] = [
        (EMULATED_1, OFFSET_MIB, 40.0),
        (EMULATED_2, OFFSET_MIB, 25.0),
        (EMULATED_3, OFFSET_MIB, 20.0),
        (SEAGATE, OFFSET_MIB, 30.0),
        (SEAGATE, 0, 36.0),
        (SEAGATE, seagate_mib - BLOCKS - 1, 17.0),
    ];
    let mut report = Report {
        method: format!(
            "Test 9 of Aghayev 2015: 4 KiB are written in each MiB of a range of {BLOCKS} MiB, in random order. \
             After a pause of 5 s, in which the drive can clean, the blocks are read in the order of their \
             addresses. The size of a band is the longest run of reads that were served from places a MiB apart, \
             like their addresses. Emulated-SMR-1 and Emulated-SMR-2 clean only when a cache band is full. On these \
             drives {BLOCKS_LAZY} blocks are written over and over, each time in another order, until cache bands \
             are full; one write more makes the drive clean a band."
        ),
        ..Report::default()
    };
    for (index, case) in cases.iter().enumerate() {
        let (drive, offset_mib, theirs) = *case;
        let trial = test_9(drive, offset_mib, replication)?;
        let reads = trial.reads();
        let (from, length) = longest_run(&reads);
        let where_from =
            if drive == SEAGATE { format!(" at {:.1} TB", offset_mib as f64 * 1.048_576e-6) } else { String::new() };
        let within = reads[(from + 1).min(reads.len() - 1)..from + length].iter().map(|served| served.latency_ms());
        let (low, high) = within.fold((f64::MAX, 0.0f64), |(low, high), at| (low.min(at), high.max(at)));
        report.claim(
            ClaimKind::Predicted,
            &format!("{drive}{where_from}: size of a band"),
            &format!("{theirs:.0} MiB"),
            format!("{length} MiB; reads within it {low:.1} to {high:.1} ms"),
            Some(is_near(length as f64, theirs, 0.05)),
        );
        let name = format!("aghayev-fig15-{}-{drive}", index + 1);
        report.figure(latency_chart(&name, drive, &reads, from, length));
        if (drive, offset_mib) == (SEAGATE, OFFSET_MIB) {
            report.figure(head_chart(&trial, &reads, from, length));
        }
    }
    Ok(report)
}

fn test_9(drive: &str, offset_mib: u64, replication: &Replication) -> Result<Observed, Failure> {
    let rounds = match drive {
        // A cache band holds as many blocks as a band, 256 in each MiB. A round writes one block in each MiB, so 256
        // rounds fill the cache band.
        EMULATED_1 | EMULATED_2 => 256,
        _ => 1,
    };
    let blocks = if rounds > 1 { BLOCKS_LAZY } else { BLOCKS };
    let mut lbas: Vec<u64> = (0..blocks).map(|index| (offset_mib + index) * MIB_SECTORS).collect();
    let (mut dice, mut script) = (Dice(replication.seed(15)), Script::default());
    for _ in 0..rounds {
        dice.shuffle(&mut lbas);
        script.write_blocks(lbas.iter().copied());
    }
    if rounds > 1 {
        // Middle of the region, between two blocks that will be read.
        let lba = (offset_mib + blocks / 2) * MIB_SECTORS + MIB_SECTORS / 2;
        script.push(Command::write(lba, BLOCK_SECTORS as u32));
    }
    lbas.sort_unstable();
    script.read_blocks(PAUSE, lbas);
    let depth = if drive == SEAGATE { 31 } else { 1 };
    Observed::run(drive, depth, script, replication)
}

/// Returns the longest run of reads of which each was served 1 MiB after the one before: its first index and its
/// length.
fn longest_run(reads: &[&Served]) -> (usize, usize) {
    let place = |served: &Served| served.step.map_or(0, |step| step.pba.0);
    let (mut best, mut from) = ((0, 0), 0);
    for index in 1..=reads.len() {
        let goes_on = index < reads.len() && place(reads[index]) == place(reads[index - 1]) + MIB_SECTORS;
        if !goes_on {
            if index - from > best.1 {
                best = (from, index - from);
            }
            from = index;
        }
    }
    best
}

fn zoom(from: usize, length: usize, all: usize) -> std::ops::Range<usize> {
    from.saturating_sub(30)..(from + length + 30).min(all)
}

fn latency_chart(id: &str, drive: &str, reads: &[&Served], from: usize, length: usize) -> Chart {
    let shown = zoom(from, length, reads.len());
    let points = shown.map(|index| (index as f64, reads[index].latency_ms() * 1e6)).collect();
    Chart::new(
        id,
        format!("Reads a MiB apart around a cleaned band, {drive}"),
        Axis::linear("region offset (MiB)", Unit::Count).near(),
        Axis::linear("latency", Unit::Nanoseconds),
    )
    .with(Series::new(drive, Shape::Marks, 0, points))
    .mark_x(from as f64, "first of the band")
    .mark_x((from + length) as f64, "first after it")
}

fn head_chart(trial: &Observed, reads: &[&Served], from: usize, length: usize) -> Chart {
    let tracks = radial_tracks(SEAGATE);
    let shown = zoom(from, length, reads.len());
    let path = trial.path(reads[shown.start].io.entry, reads[shown.end - 1].io.end);
    let chart = Chart::new(
        "aghayev-fig16",
        "The Seagate's head during those reads, at 2.5 TB",
        Axis::linear("time (s)", Unit::Count),
        Axis::linear("tracks from the outer diameter", Unit::Count).ranged(0.0, tracks),
    );
    chart.with(Series::new("head", Shape::Steps, 0, path))
}
