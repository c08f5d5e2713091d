//! Sequential reads of 1 MiB, one at a time, on each drive as sold: a test of look-ahead. Also random reads, whose
//! mean rotational wait is half a rotation.

use imbrex::{Failure, Run};
use imbrex_disk::{Command, SimDuration};
use imbrex_sim::{Arrival, Drive, Options};
use imbrex_trace::{Recorded, Request, When};

use super::super::aghayev::observed::Dice;
use super::super::{ClaimKind, Experiment, Replication, Report, Table};
use imbrex::drives::fresh;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "validation/as-sold",
    title: "drives as they are sold: sequential reads at the rate of the medium, random reads half a rotation late",
    run,
};

/// Profiles whose caches are on.
const SOLD: [&str; 7] = [
    "cmr-7200",
    "cmr-5900",
    "exos-x18",
    "seagate-st5000as0011-as-sold",
    "seagate-st8000as0011-as-sold",
    "seagate-st8000as0022",
    "seagate-st8000dm004-as-sold",
];

const READS: u64 = 4_000;
const MIB_SECTORS: u32 = 2048;

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: format!(
            "The experiment makes {READS} reads of 1 MiB in order at the outer diameter, one at a time, and as many \
             reads of 4 KiB at random places. The rate of the medium is computed from the length of a track, the \
             time of a rotation and the skew to the next track; this computed rate is exact to a fraction of a \
             percent. The claim holds if the rate of the sequential reads is within 3 % of it."
        ),
        ..Report::default()
    };
    let mut table = Table {
        heading: "As sold".into(),
        columns: [
            "profile",
            "sequential MB/s",
            "medium MB/s",
            "mean rotational wait",
            "half a rotation",
            "4 KiB at depth 16",
        ]
        .map(String::from)
        .into(),
        rows: Vec::new(),
    };
    for name in SOLD {
        let drive = fresh(name)?;
        let medium = medium_rate(&drive);
        let half_ns = drive.disk.geometry.rotation_ns() as f64 / 2.0;
        let (sequential, _) = read(drive, 1, (0..READS).map(|index| (index * MIB_SECTORS as u64, MIB_SECTORS)))?;
        let rate = READS as f64 * MIB_SECTORS as f64 * 512.0 / sequential / 1e6;
        let (_, wait_ns) = random(name, 1, true, replication)?;
        let (time, _) = random(name, 16, false, replication)?;
        table.rows.push(vec![
            name.into(),
            format!("{rate:.1}"),
            format!("{medium:.1}"),
            format!("{:.3} ms", wait_ns / 1e6),
            format!("{:.3} ms", half_ns / 1e6),
            format!("{:.0} /s", READS as f64 / time),
        ]);
        let claim = format!("{name}: sequential reads of 1 MiB, MB/s");
        let is_at_rate = Some((rate / medium - 1.0).abs() < 0.03);
        report.claim(
            ClaimKind::Predicted,
            &claim,
            &format!("{medium:.1}, the medium's"),
            format!("{rate:.1}"),
            is_at_rate,
        );
    }
    report.tables.push(table);
    report.remarks.push(
        "None of the real drives in this table was available for a measurement. The table compares the simulated \
         drives with computed values."
            .into(),
    );
    Ok(report)
}

/// Returns the rate of the medium at the outer diameter, including skews, in MB/s.
fn medium_rate(drive: &Drive) -> f64 {
    let geometry = &drive.disk.geometry;
    let track = geometry.track_place(0, 0);
    let next = geometry.locate(track.track().end());
    let rotation = geometry.rotation_ns() as u64;
    let skew = (next.angle_ns as u64 + rotation - track.angle_ns as u64) % rotation;
    track.track_sectors as f64 * drive.disk.sector_bytes as f64 / (rotation + skew) as f64 * 1e3
}

/// Measures random reads of 4 KiB: returns their duration in seconds and their mean rotational wait in ns. `by_turns`
/// serves them in order of arrival.
fn random(name: &str, depth: u32, by_turns: bool, replication: &Replication) -> Result<(f64, f64), Failure> {
    let drive = fresh(name)?;
    let places = drive.capacity_bytes() / 4096;
    let mut dice = Dice(replication.seed(7));
    let mut drive = drive;
    if by_turns {
        drive.host.schedule = "fifo".into();
    }
    read(drive, depth, (0..READS).map(move |_| (dice.below(places) * 8, 8)))
}

fn read(drive: Drive, depth: u32, places: impl Iterator<Item = (u64, u32)>) -> Result<(f64, f64), Failure> {
    let requests: Vec<Request> = places
        .map(|(lba, sectors)| Request {
            when: When::Free(SimDuration::ZERO),
            device: 0,
            command: Command::read(lba, sectors),
        })
        .collect();
    let options = Options { arrival: Arrival::Closed(depth), ..Options::live(&drive) };
    let count = requests.len() as f64;
    let metrics = Run::new(drive, options).of(&mut Recorded::new(requests))?.outcome.metrics;
    Ok((metrics.ended.0 as f64 / 1e9, metrics.parts.rotation as f64 / count))
}

/// Tests that every profile of this page is built in.
#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_disk::Profile;

    #[test]
    fn the_profiles_are_there() {
        for name in SOLD {
            assert!(Profile::named(name).is_some(), "{name}");
        }
    }
}
