//! Figs 18 and 19: test 11. Sequential reads show the Seagate's zones and the path of the head through the zones. A
//! plateau is a stretch of equal throughput in fig. 18: the part of a zone that lies on one surface.

use imbrex_disk::{Command, Lba, Sectors, SimDuration};
use imbrex_sim::Drive;

use super::super::{ClaimKind, Experiment, Replication, Report, Table};
use super::observed::{Dice, Observed, Script, capacity_sectors, is_near, mean, radial_tracks};
use super::under_test::{BLOCK_SECTORS, CONVENTIONAL, EMULATED_3, MIB_SECTORS, SEAGATE};
use imbrex::chart::{Axis, Chart, Series, Shape, Unit};
use imbrex::drives::fresh;
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "aghayev/fig18-19",
    title: "sequential reads show horizontal zones, and the head going to and fro with them",
    run,
};

/// Number of samples over the drive; then the distance in MiB between samples of the parts shown in detail.
const SAMPLES: u64 = 2000;
const DETAIL_STEP_MIB: u64 = 512;
/// Size in MiB of the outer part shown in detail: two passes over the eight surfaces.
const DETAIL_MIB: u64 = 16 * 20 * 1024;
/// Size of a sampled read, in MiB: look-ahead turns sequential reads of 1 MiB into reads of this size.
const READ_MIB: u64 = 16;

/// Number and size of the adjacent bands of Emulated-SMR-3 that are overwritten, and number of blocks overwritten.
const BANDS: u64 = 100;
const BAND_MIB: u64 = 20;
const OVERWRITES: usize = 1000;
/// Number of rounds, with a pause after each, over which the overwrites are spread.
const ROUNDS: usize = 40;
/// Pause in which all of these bands are cleaned.
const CLEANING_PAUSE: SimDuration = SimDuration(600_000_000_000);

/// Throughput and position of the head at one address.
#[derive(Clone, Copy)]
struct Sample {
    mib: u64,
    bytes_per_second: f64,
    track: u32,
    surface: u8,
    /// Outermost track of the zone.
    zone: u32,
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let drive = fresh(SEAGATE)?;
    let end_mib = capacity_sectors(&drive) / MIB_SECTORS - READ_MIB;
    let mut report = Report {
        method: format!(
            "Test 11 of Aghayev 2015 reads the whole drive in order; this experiment reads samples. {READ_MIB} MiB \
             are read in one go, as look-ahead reads a stream of 1 MiB reads: at some {SAMPLES} places over the \
             whole drive, and at most {DETAIL_STEP_MIB} MiB apart in three parts of it (outer diameter, middle, \
             inner diameter). The time in the charts is the time that reading everything at the sampled rates takes."
        ),
        ..Report::default()
    };
    let part = |from_mib: u64, to_mib: u64, step_mib: u64| {
        let places: Vec<u64> = (from_mib..to_mib).step_by(step_mib as usize).collect();
        sample(SEAGATE, Script::default(), SimDuration::ZERO, &places, replication)
    };
    let whole = part(0, end_mib, end_mib / SAMPLES)?;
    let outer = part(0, DETAIL_MIB, DETAIL_STEP_MIB)?;
    let inner = part(end_mib - DETAIL_MIB / 4, end_mib, DETAIL_STEP_MIB / 4)?;
    let middle_mib = middle(&drive, end_mib);
    let middle = part(middle_mib - DETAIL_MIB / 4, middle_mib + DETAIL_MIB / 4, DETAIL_STEP_MIB / 2)?;
    throughput_claims(&mut report, &whole, &outer);
    zone_claims(&mut report, &drive, end_mib);
    head_claims(&mut report, &outer, &inner);
    middle_claim(&mut report, &middle);
    conventional_claim(&mut report, replication)?;
    report.tables.push(order_table(replication)?);
    report.figure(throughput_chart("aghayev-fig18", "the whole drive", &whole));
    report.figure(throughput_chart("aghayev-fig18-detail", "the first zones", &outer));
    let paths = [("a", "outer diameter", &outer), ("b", "inner diameter", &inner), ("c", "middle", &middle)];
    for (part, name, samples) in paths {
        let id = format!("aghayev-fig19{part}");
        report.figure(head_chart(&id, name, samples));
    }
    report.remarks.push(format!(
        "Aghayev 2015 §4.9 says that on drives with dynamic mapping a secure erase may be necessary for test 11. The table \
         shows the order of the bands of {EMULATED_3}. Cleaning merges bands in the order of their addresses, each into \
         the free band that follows, so overwriting {OVERWRITES} blocks at once keeps the order. With pauses between \
         rounds of overwrites, the order within the zone is lost. We added these rounds after the first result, so the \
         sentence is not judged. Bands stay in their zone of 40 GiB. Test 11 itself was not run on the used drive."
    ));
    report.remarks.push(
        "In Aghayev 2015 the conventional region at the middle diameter of the Seagate drive has a layout of its own \
         (fig. 19c), of which the paper gives no numbers. Our drive has strokes there, as wide as those of the \
         neighbouring zones; but they run inwards and outwards in turn, while those of the neighbouring zones all run in \
         one direction. A stroke is a range of tracks that the arm passes in one direction."
            .into(),
    );
    Ok(report)
}

/// Runs `script` on a new drive, pauses, and then reads a sample at each of `places`, in MiB.
fn sample(
    drive: &str,
    mut script: Script,
    pause: SimDuration,
    places: &[u64],
    replication: &Replication,
) -> Result<Vec<Sample>, Failure> {
    script.pause(pause);
    for mib in places {
        // The read before moves the head to the place, so that the measured time is that of the sequential transfer.
        script.push(Command::read(mib * MIB_SECTORS, 8));
        script.push(Command::read(mib * MIB_SECTORS + 8, (READ_MIB * MIB_SECTORS) as u32));
    }
    let trial = Observed::run(drive, 1, script, replication)?;
    let geometry = &fresh(drive)?.disk.geometry;
    let mut samples = Vec::with_capacity(places.len());
    for (&mib, pair) in places.iter().zip(trial.reads().chunks(2)) {
        let stream = &pair[1].io;
        let moving = stream.time.whole - stream.time.rotation.min(SimDuration(10_000_000));
        let step = pair[1].step.expect("a read touches the medium");
        let place = geometry.locate(step.pba);
        let bytes_per_second = (READ_MIB << 20) as f64 / moving.as_secs_f64();
        let zone = geometry.zone_of(place.radial_track).radial_start;
        samples.push(Sample { mib, bytes_per_second, track: place.radial_track, surface: place.surface, zone });
    }
    Ok(samples)
}

/// Returns the address, in MiB, at which the middle diameter begins, where the drive has a conventional part. The
/// result is exact to 1 GiB.
fn middle(drive: &Drive, end_mib: u64) -> u64 {
    let half = drive.disk.geometry.radial_tracks() / 2;
    let is_inside = |mib: u64| track_at(drive, mib).0 >= half;
    let (mut low, mut high) = (0, end_mib);
    while high - low > 1024 {
        let at = (low + high) / 2;
        if is_inside(at) {
            high = at;
        } else {
            low = at;
        }
    }
    low
}

/// Returns the track of an address and the plateau of the address: the zone's outermost track and the surface.
fn track_at(drive: &Drive, mib: u64) -> (u32, (u32, u8)) {
    let mut pieces = Vec::new();
    drive.layer.lookup(Lba(mib * MIB_SECTORS), Sectors(1), &mut pieces);
    let (_, pba) = pieces.first().and_then(|piece| piece.at).expect("nothing was trimmed");
    let place = drive.disk.geometry.locate(pba);
    let zone = drive.disk.geometry.zone_of(place.radial_track).radial_start;
    (place.radial_track, (zone, place.surface))
}

fn throughput_claims(report: &mut Report, whole: &[Sample], outer: &[Sample]) {
    let tenth = whole.len() / 10;
    let first = mean(whole[..tenth].iter().map(|sample| sample.bytes_per_second));
    let last = mean(whole[whole.len() - tenth..].iter().map(|sample| sample.bytes_per_second));
    report.claim(
        ClaimKind::Shape,
        "throughput at the lowest and the highest addresses",
        "falls towards higher addresses",
        format!("{:.0} and {:.0} MB/s (mean of a tenth each)", first / 1e6, last / 1e6),
        Some(last < 0.7 * first),
    );
    let strokes = strokes(outer);
    let surfaces: Vec<u8> = strokes.iter().map(|stroke| stroke[0].surface).collect();
    // The head passes the surfaces downwards and then upwards. The plateaus at a turn lie on the same surface, so
    // neighbours in this list are at most one surface apart.
    let mirrored = surfaces.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) > 1).count() == 0;
    report.claim(
        ClaimKind::Shape,
        "plateaus of the first zones",
        "mirrored about an axis: the head goes down through the surfaces and up again",
        format!("surfaces {surfaces:?}"),
        Some(mirrored && surfaces.contains(&0) && surfaces.contains(&7)),
    );
    let axis = strokes.windows(2).position(|pair| pair[0][0].surface == pair[1][0].surface);
    let pairs = mirror_images(&strokes, axis.map_or(0, |axis| axis + 1));
    let slower = pairs.iter().filter(|(left, right)| right < left).count();
    let fall = mean(pairs.iter().map(|(left, right)| 100.0 * (left - right) / left));
    report.claim(
        ClaimKind::Shape,
        "plateaus right of the first axis of symmetry, beside their mirror images on the left",
        "a slight decrease in throughput, due to smaller radii",
        format!("{slower} of {} slower, by {fall:.1} % on average", pairs.len()),
        Some(!pairs.is_empty() && slower == pairs.len()),
    );
    let whole_strokes: Vec<_> = strokes.iter().skip(1).take(6).collect();
    let seconds = mean(whole_strokes.iter().map(|stroke| {
        let each = stroke.iter().map(|sample| (DETAIL_STEP_MIB << 20) as f64 / sample.bytes_per_second);
        each.sum::<f64>()
    }));
    report.claim(
        ClaimKind::Predicted,
        "time of a plateau among the first zones",
        "115 s (seven from 1,457 to 2,264 s)",
        format!("{seconds:.0} s"),
        Some(is_near(seconds, (2264.0 - 1457.0) / 7.0, 0.05)),
    );
}

/// Returns the mean rates of each plateau left of the axis and of its mirror image on the right. `axis` is the index of
/// the first plateau right of the axis.
fn mirror_images(strokes: &[&[Sample]], axis: usize) -> Vec<(f64, f64)> {
    let rate = |stroke: &&[Sample]| mean(stroke.iter().map(|sample| sample.bytes_per_second));
    let (left, right) = strokes.split_at(axis);
    left.iter().rev().zip(right).map(|(left, right)| (rate(left), rate(right))).collect()
}

/// Returns the samples grouped by plateau: consecutive samples on one surface of one zone.
fn strokes(samples: &[Sample]) -> Vec<&[Sample]> {
    samples.chunk_by(|a, b| (a.surface, a.zone) == (b.surface, b.zone)).collect()
}

/// Adds the claim for the sizes of plateaus at the two ends of the drive.
fn zone_claims(report: &mut Report, drive: &Drive, end_mib: u64) {
    let outer = zone_sizes(drive, 0, 400 * 1024);
    let inner = zone_sizes(drive, end_mib - 100 * 1024, end_mib);
    let told = |sizes: &[f64]| {
        let low = sizes.iter().copied().fold(f64::MAX, f64::min);
        let high = sizes.iter().copied().fold(0.0, f64::max);
        (low, high)
    };
    let (outer, inner) = (told(&outer), told(&inner));
    report.claim(
        ClaimKind::Predicted,
        "size of a plateau's zone: lowest and highest addresses",
        "18 to 20 GiB, falling to 4 GiB",
        format!("{:.1} to {:.1} GiB; {:.1} to {:.1} GiB", outer.0, outer.1, inner.0, inner.1),
        Some(outer.0 >= 18.0 * 0.95 && outer.1 <= 20.0 * 1.05 && is_near(inner.0, 4.0, 0.05)),
    );
}

/// Returns the sizes, in GiB, of the whole plateaus between two addresses.
fn zone_sizes(drive: &Drive, from_mib: u64, to_mib: u64) -> Vec<f64> {
    let mut edges = Vec::new();
    let (_, mut last) = track_at(drive, from_mib);
    for mib in (from_mib..to_mib).step_by(32).skip(1) {
        let (_, now) = track_at(drive, mib);
        if now != last {
            edges.push(mib);
        }
        last = now;
    }
    edges.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1024.0).collect()
}

/// Returns the share of the steps from sample to sample on one surface in which the head moves inwards.
fn share_inwards(samples: &[Sample]) -> f64 {
    let steps: Vec<_> = samples.windows(2).filter(|pair| pair[0].surface == pair[1].surface).collect();
    let inwards = steps.iter().filter(|pair| pair[1].track > pair[0].track).count();
    inwards as f64 / steps.len().max(1) as f64
}

/// Adds the claim for the strokes in the middle of the drive.
fn middle_claim(report: &mut Report, middle: &[Sample]) {
    let strokes = strokes(middle);
    // The strokes at the ends are cut by the range of the samples.
    let whole = &strokes[1..strokes.len() - 1];
    let shares: Vec<f64> = whole.iter().map(|stroke| share_inwards(stroke)).collect();
    let is_one_way = shares.iter().all(|share| !(0.1..=0.9).contains(share));
    let turns = shares.windows(2).filter(|pair| (pair[0] > 0.5) != (pair[1] > 0.5)).count();
    report.claim(
        ClaimKind::Shape,
        "strokes at the middle diameter",
        "serpentine: inwards and outwards in turn",
        format!("{turns} turns between {} strokes", whole.len()),
        Some(is_one_way && whole.len() > 2 && turns == whole.len() - 1),
    );
}

/// Adds the claim for a conventional drive, whose head does not jump back from zone to zone.
fn conventional_claim(report: &mut Report, replication: &Replication) -> Result<(), Failure> {
    let end_mib = capacity_sectors(&fresh(CONVENTIONAL)?) / MIB_SECTORS - READ_MIB;
    let places: Vec<u64> = (0..end_mib).step_by((end_mib / SAMPLES) as usize).collect();
    let samples = sample(CONVENTIONAL, Script::default(), SimDuration::ZERO, &places, replication)?;
    let back = samples.windows(2).filter(|pair| pair[1].track < pair[0].track).count();
    report.claim(
        ClaimKind::Shape,
        &format!("{CONVENTIONAL}: the head during sequential reads"),
        "vertical zones: it moves one way, without jumps back",
        format!("{back} steps outwards of {}", samples.len() - 1),
        Some(back == 0),
    );
    Ok(())
}

/// Returns the order of the bands of a drive with dynamic mapping after random overwrites. A secure erase restores the
/// mapping of a new drive.
fn order_table(replication: &Replication) -> Result<Table, Failure> {
    let capacity = capacity_sectors(&fresh(EMULATED_3)?);
    let last_mib = capacity / MIB_SECTORS - READ_MIB;
    let band = |number: u64| last_mib / 2 / BAND_MIB * BAND_MIB + number * BAND_MIB;
    let places: Vec<u64> = (0..BANDS).map(band).collect();
    let mut rows = Vec::new();
    for rounds in [0, 1, ROUNDS] {
        let mut overwrites = Script::default();
        let mut dice = Dice(replication.seed(11));
        for _ in 0..rounds {
            let blocks = BANDS * BAND_MIB * MIB_SECTORS / BLOCK_SECTORS;
            let lbas = dice.blocks(places[0] * MIB_SECTORS, blocks, OVERWRITES / rounds);
            overwrites.pause(CLEANING_PAUSE);
            overwrites.write_blocks(lbas);
        }
        let samples = sample(EMULATED_3, overwrites, CLEANING_PAUSE, &places, replication)?;
        let outwards = samples.windows(2).filter(|pair| pair[1].track < pair[0].track).count();
        let drive = match rounds {
            0 => "new, or erased".to_string(),
            1 => format!("{OVERWRITES} blocks overwritten at once"),
            _ => format!("{rounds} rounds of {} blocks, with pauses", OVERWRITES / rounds),
        };
        rows.push(vec![drive, format!("{outwards} of {}", BANDS - 1)]);
    }
    let heading = format!("{EMULATED_3}: order of {BANDS} adjacent bands on the medium");
    Ok(Table::new(heading, &["drive", "steps outwards, from band to band"], rows.into_iter()))
}

fn head_claims(report: &mut Report, outer: &[Sample], inner: &[Sample]) {
    let (at_outer, at_inner) = (share_inwards(outer), share_inwards(inner));
    report.claim(
        ClaimKind::Shape,
        "direction of the head within a zone: outer and inner diameter",
        "inwards and outwards: shingled towards the middle from both sides",
        format!("inwards in {:.0} % and {:.0} % of the steps", at_outer * 100.0, at_inner * 100.0),
        Some(at_outer > 0.9 && at_inner < 0.1),
    );
}

/// Returns each sample with the time, in seconds, at which a sequential read at the sampled rates reaches the sample.
fn timed(samples: &[Sample]) -> Vec<(f64, Sample)> {
    let mut seconds = 0.0;
    let mut last: Option<Sample> = None;
    let at = |sample: &Sample| {
        if let Some(last) = last {
            seconds += ((sample.mib - last.mib) << 20) as f64 / last.bytes_per_second;
        }
        last = Some(*sample);
        (seconds, *sample)
    };
    samples.iter().map(at).collect()
}

fn throughput_chart(id: &str, what: &str, samples: &[Sample]) -> Chart {
    let points = timed(samples).into_iter().map(|(seconds, sample)| (seconds, sample.bytes_per_second)).collect();
    Chart::new(
        id,
        format!("Sequential read throughput of the Seagate, {what}"),
        Axis::linear("time (s)", Unit::Count),
        Axis::linear("throughput", Unit::BytesPerSecond),
    )
    .with(Series::new("read", Shape::Line, 0, points))
}

fn head_chart(id: &str, what: &str, samples: &[Sample]) -> Chart {
    let tracks = radial_tracks(SEAGATE);
    let points = timed(samples).into_iter().map(|(seconds, sample)| (seconds, sample.track as f64)).collect();
    let chart = Chart::new(
        id,
        format!("The Seagate's head during sequential reads, {what}"),
        Axis::linear("time (s)", Unit::Count),
        Axis::linear("tracks from the outer diameter", Unit::Count).ranged(0.0, tracks),
    );
    chart.with(Series::new("head", Shape::Dots, 0, points))
}
