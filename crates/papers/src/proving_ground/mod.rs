//! File systems of Linux and our own on drives of one mechanics, in the lab: one load, times of the drive, a power cut.

use std::path::{Path, PathBuf};
use std::time::Duration;

use imbrex::{Failure, human};
use imbrex_device::EmulatedDrive;
use imbrex_device::drive::{Making, create_file_of, header_of};
use imbrex_lab::{Counts, Ended, Kernel, Outcome};
use serde::Deserialize;

use crate::linux::{Linux, Ran, Script};
use crate::report::Table;
use crate::{Experiment, Replication, Report};

/// Registry entries.
pub(crate) const ALL: &[&Experiment] = &[&EXPERIMENT];

const EXPERIMENT: Experiment =
    Experiment { name: "lab/file-systems", title: "file systems on shingled drives, in the lab", run };

/// The load.
const LOAD: &str = include_str!("load.py");
/// Program that makes the metadata of zonefs.
const FORMAT: &str = include_str!("format.py");
/// Seed of the load and of the guest.
const SEED: u64 = 1;
/// Virtual time from the mount to the cut of the power.
const CUT: Duration = Duration::from_millis(10_345);
/// Reason why a usual way to use a host-managed drive is missing.
const DM_ZONED: &str = "ext4 over dm-zoned is not here, since its run does not end in the lab: after 68 s the kernel computes \
                        without a wait, so that no time passes and the drive answers no request. The cleaning of dm-zoned, if it \
                        finds no zone to empty, looks again without a pause (`drivers/md/dm-zoned-reclaim.c`).";
/// The drives: one mechanics, that of the host-managed profile, on fewer tracks, so that each has about 2.3 GiB.
const CONVENTIONAL: &str = "hm-zoned+conventional:geometry.tracks=75";
const DRIVE_MANAGED: &str = "hm-zoned+set-associative:geometry.tracks=85";
const HOST_MANAGED: &str = "hm-zoned:geometry.tracks=120,geometry.stroke_tracks_od=15,geometry.stroke_tracks_id=100,\
                            geometry.horizontal.conventional_to=0.2,zone_size=16MiB,conventional_zones=16";

/// A file system on a drive.
struct System {
    name: &'static str,
    drive: &'static str,
    /// Programs that it needs, with the Debian package of each.
    needs: &'static [(&'static str, &'static str)],
    /// Shell commands that make the file system on `/dev/vda`, mount it at `/mnt/t`, and check it, mounted or not.
    /// `FORMAT` is the program of that name. A file system without a checker has an empty command.
    make: &'static str,
    mount: &'static str,
    check: &'static str,
}

const EXT4: &[(&str, &str)] = &[("mkfs.ext4", "e2fsprogs")];

const SYSTEMS: &[System] = &[
    System {
        name: "ext4, conventional drive",
        drive: CONVENTIONAL,
        needs: EXT4,
        make: "mkfs.ext4 -q -F /dev/vda",
        mount: "mount -t ext4 /dev/vda /mnt/t",
        check: "umount /mnt/t; fsck.ext4 -fn /dev/vda",
    },
    System {
        name: "ext4, drive-managed drive",
        drive: DRIVE_MANAGED,
        needs: EXT4,
        make: "mkfs.ext4 -q -F /dev/vda",
        mount: "mount -t ext4 /dev/vda /mnt/t",
        check: "umount /mnt/t; fsck.ext4 -fn /dev/vda",
    },
    System {
        name: "XFS, drive-managed drive",
        drive: DRIVE_MANAGED,
        needs: &[("mkfs.xfs", "xfsprogs")],
        make: "mkfs.xfs -q -f /dev/vda",
        mount: "mount -t xfs /dev/vda /mnt/t",
        check: "umount /mnt/t; xfs_repair -n /dev/vda",
    },
    System {
        name: "Btrfs, host-managed drive",
        drive: HOST_MANAGED,
        needs: &[("mkfs.btrfs", "btrfs-progs")],
        make: "mkfs.btrfs -q -f -O zoned -d single -m single /dev/vda",
        mount: "mount -t btrfs /dev/vda /mnt/t",
        check: "umount /mnt/t; btrfs check --readonly /dev/vda",
    },
    System {
        name: "F2FS, host-managed drive",
        drive: HOST_MANAGED,
        needs: &[("mkfs.f2fs", "f2fs-tools")],
        make: "mkfs.f2fs -q -f -m /dev/vda",
        mount: "mount -t f2fs /dev/vda /mnt/t",
        check: "umount /mnt/t; fsck.f2fs --dry-run /dev/vda",
    },
    System {
        name: "zonefs, host-managed drive",
        drive: HOST_MANAGED,
        needs: &[],
        make: "FORMAT /dev/vda",
        mount: "mount -t zonefs /dev/vda /mnt/t",
        check: "",
    },
    System {
        name: "Imbrex strict-append, host-managed drive",
        drive: HOST_MANAGED,
        needs: &[],
        make: "IMBREX fs mkfs /dev/vda --store strict-append --yes --quiet",
        mount: "IMBREX fs mount /dev/vda /mnt/t --quiet -o cache=64MiB",
        check: "IMBREX fs umount /mnt/t; IMBREX fs check /dev/vda",
    },
    System {
        name: "Imbrex log, host-managed drive",
        drive: HOST_MANAGED,
        needs: &[],
        make: "IMBREX fs mkfs /dev/vda --store log --yes --quiet",
        mount: "IMBREX fs mount /dev/vda /mnt/t --quiet -o cache=64MiB",
        check: "IMBREX fs umount /mnt/t; IMBREX fs check /dev/vda",
    },
];

/// Figures of a phase, as the load prints them.
#[derive(Clone, Debug, Deserialize)]
struct Phase {
    phase: String,
    ns: u64,
    operations: u64,
    bytes: u64,
    error: Option<String>,
    p99_ns: u64,
    longest_ns: u64,
}

/// Results of a system.
struct Row {
    phases: Vec<Phase>,
    counts: Counts,
    /// Small files whose sync had returned before the cut, and how many of them are missing or wrong after it.
    synced: u64,
    lost: u64,
    /// Whether the checker of the file system finds nothing after the cut; `None` if it has none.
    is_clean: Option<bool>,
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report { method: method(), ..Report::default() };
    if let Err(error) = Kernel::cached() {
        report.remarks.push(format!("Not run: {error}."));
        return Ok(report);
    }
    let mut rows = Vec::new();
    for system in SYSTEMS {
        let bar = replication.progress.steps(system.name);
        let row = measure(system, replication, &|text| bar.set_message(text.to_string()));
        bar.finish_and_clear();
        if replication.progress.should_stop() {
            return Err(Failure::interrupted());
        }
        match row {
            Ok(row) => rows.push((system, row)),
            Err(reason) => report.remarks.push(format!("{} was not run: {reason}.", system.name)),
        }
    }
    report.remarks.push(DM_ZONED.into());
    report.tables = vec![times(&rows), traffic(&rows), cuts(&rows)];
    Ok(report)
}

fn method() -> String {
    format!(
        "Each file system runs in the lab, in Linux 6.12, on a drive of the mechanics of `hm-zoned` with about 2.3 GiB. Processor \
         time is not modelled. The load has three phases. *fill* writes files of 1 MiB, each with a sync, until 95 % of the room \
         is used. *change* replaces 300 of these files, chosen at random. *small* writes 1,000 files of 4 KiB, each with a sync. \
         Then, on a new file system, the power is cut {} s after its mount began, while small files are synced; it is mounted \
         again and checked. The drives have no volatile cache.",
        CUT.as_secs_f64()
    )
}

/// Runs the load and the power cut on one system.
///
/// # Errors
///
/// The reason why it cannot be run.
fn measure(system: &System, replication: &Replication, say: &dyn Fn(&str)) -> Result<Row, Failure> {
    let linux = Linux::with(&[system.needs, &[("python3", "python3")]].concat())?;
    let python = |name: &str, text: &str| -> Result<String, Failure> {
        let program = linux.folder().join(name);
        std::fs::write(&program, text).map_err(Failure::failed)?;
        Ok(format!("python3 {}", program.display()))
    };
    let format = python("format.py", FORMAT)?;
    let [make, mount, check] = [system.make, system.mount, system.check].map(|text| text.replace("FORMAT", &format));
    let load = format!("{} /mnt/t {}", python("load.py", LOAD)?, replication.seed(SEED));
    let guest = |name: &str, text: String, image: &Path, cut: Option<Duration>| -> Result<(Ran, Counts), Failure> {
        // The drive holds files of the runs before, which lie in the past of this one.
        let years = if name == "verify" { 2 } else { 1 };
        let script = Script { years, cut, ..Script::new(name, text, SEED) };
        let drive = EmulatedDrive::open_file(image, false)?;
        let mut ran = linux.run_on(&script, vec![drive], replication, say)?;
        let (mut drive, counts) = ran.outcome.drives.remove(0);
        match ran.outcome.ended {
            Ended::Cut => drop(drive.power_cut()),
            _ => drive.shut_down()?,
        }
        Ok((ran, counts))
    };
    let image = |name: &str| -> Result<PathBuf, Failure> {
        let path = linux.folder().join(name);
        let (drive, spec) = imbrex::drives::build(system.drive)?;
        let header = header_of(&drive, &spec, &Making::default()).map_err(Failure::failed)?;
        drop(create_file_of(&path, header, drive)?);
        Ok(path)
    };
    let make = format!("{make} > /dev/ttyS1 2>&1 && mkdir -p /mnt/t && {mount}");
    let first = image("load.img")?;
    let (ran, counts) = guest("load", format!("{make} && {load}; umount /mnt/t"), &first, None)?;
    let phases: Vec<Phase> = ran.output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if phases.is_empty() {
        let Outcome { ended, console, .. } = ran.outcome;
        return Err(Failure::failed(format!("the load printed no figures ({ended:?}): {console}")));
    }
    // The room of the first image is needed no longer.
    std::fs::remove_file(&first).map_err(Failure::failed)?;
    let second = image("cut.img")?;
    // The cut is counted from the start of the command: the file system is made in a run of its own.
    guest("make", format!("{make} && umount /mnt/t"), &second, None)?;
    let (ran, _) = guest("cut", format!("mkdir -p /mnt/t; {mount} && {load} cut"), &second, Some(CUT))?;
    let synced = ran.output.lines().last().and_then(|line| line.parse().ok()).unwrap_or(0);
    let checked = if check.is_empty() { String::new() } else { format!(" && ({check}) > /dev/ttyS1 2>&1; echo $?") };
    let verify = format!("mkdir -p /mnt/t; {mount} && {load} verify {synced}{checked}");
    let (ran, _) = guest("verify", verify, &second, None)?;
    let mut lines = ran.output.lines();
    let Some(lost) = lines.next().and_then(|line| line.parse().ok()) else {
        let Outcome { ended, console, .. } = ran.outcome;
        return Err(Failure::failed(format!("it does not mount after the cut ({ended:?}): {console}")));
    };
    let is_clean = (!check.is_empty()).then(|| lines.next() == Some("0"));
    Ok(Row { phases, counts, synced, lost, is_clean })
}

fn times(rows: &[(&System, Row)]) -> Table {
    let columns = ["file system", "phase", "operations", "MB/s", "mean", "99 %", "longest", "ended by"];
    let phases = rows.iter().flat_map(|(system, row)| row.phases.iter().map(|phase| (system.name, phase)));
    let cells = phases.map(|(name, phase)| {
        let seconds = phase.ns as f64 / 1e9;
        vec![
            name.to_string(),
            phase.phase.clone(),
            human::count(phase.operations),
            format!("{:.1}", phase.bytes as f64 / 1e6 / seconds.max(1e-9)),
            human::duration_ns(phase.ns.checked_div(phase.operations).unwrap_or(0)),
            human::duration_ns(phase.p99_ns),
            human::duration_ns(phase.longest_ns),
            phase.error.clone().unwrap_or_default(),
        ]
    });
    Table::new("Times of the load", &columns, cells)
}

fn traffic(rows: &[(&System, Row)]) -> Table {
    let columns =
        ["file system", "written by the load", "written to the drive", "read from the drive", "longest request"];
    let cells = rows.iter().map(|(system, row)| {
        let bytes: u64 = row.phases.iter().map(|phase| phase.bytes).sum();
        let counts = &row.counts;
        let longest = human::duration_ns(counts.latency_max_ns);
        let [written, read] = [counts.written_bytes, counts.read_bytes].map(human::bytes);
        vec![system.name.to_string(), human::bytes(bytes), written, read, longest]
    });
    Table::new("Work of the drives under the load", &columns, cells)
}

fn cuts(rows: &[(&System, Row)]) -> Table {
    let columns = ["file system", "files synced before", "of them missing or wrong", "its checker finds"];
    let cells = rows.iter().map(|(system, row)| {
        let found = match row.is_clean {
            Some(true) => "nothing",
            Some(false) => "errors",
            None => "(it has none)",
        };
        vec![system.name.to_string(), human::count(row.synced), human::count(row.lost), found.to_string()]
    });
    Table::new("After a cut of the power", &columns, cells)
}
