//! Fig. 2: the number of metadata I/Os that ext4 needs to read a file, by the number of files.
//!
//! A file is one block and is read once after the mount, so each file costs one I/O for its data. All other I/Os of
//! the device are for metadata: reads of directories and inodes, writes of access times and of the journal. The device
//! counts I/Os as blktrace does: after merging.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use imbrex::Failure;
use imbrex::chart::{Axis, Chart, Series, Shape, Unit};
use imbrex_fs::load::bench::{tree_directories, tree_path};
use imbrex_fs::load::random::Choices;
use serde::{Deserialize, Serialize};

use super::choices::{FILE_BYTES, FILES, MEMORY_BYTES, PC_DISK, READS, SEED, WARM_READS, WIDTH};
use crate::linux::{Linux, MAKE_EXT4, MOUNT_EXT4, Script};
use crate::report::Table;
use crate::{ClaimKind, Experiment, Replication, Report};

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "jin/fig02", title: "metadata I/O per file read on ext4, by the number of files", run };

/// Shell script that reads a list of files one after the other. Its first argument is the `cgroup.procs` file of the
/// group that bounds its memory.
const READER: &str = "echo $$ > \"$0\" && exec xargs -d '\\n' cat";
/// In the guest: the mount point, the device's counters, the control group of the reader.
const MOUNTED: &str = "/mnt/t";
const COUNTERS: &str = "/sys/block/vda/stat";
const GROUP: &str = "/sys/fs/cgroup/reader";
/// Memory of the guest in bytes. The reader's memory is bounded further.
const GUEST_BYTES: u64 = 4 << 30;

/// Numbers of I/Os at the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Counted {
    reads: u64,
    writes: u64,
}

/// Counts for one number of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Point {
    files: u64,
    counted: Counted,
}

impl Point {
    /// Returns the number of metadata I/Os per file read.
    fn metadata(&self) -> f64 {
        let [reads, writes] = self.parts();
        reads + writes
    }

    /// Returns the metadata I/Os per file read: reads, then writes.
    fn parts(&self) -> [f64; 2] {
        let metadata_reads = self.counted.reads.saturating_sub(READS as u64);
        [metadata_reads, self.counted.writes].map(|count| count as f64 / READS as f64)
    }
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report { method: method(), ..Report::default() };
    let mut curves: Vec<Vec<Point>> = vec![Vec::new(); MEMORY_BYTES.len()];
    for files in FILES {
        let bar = replication.progress.steps(&format!("{files} files"));
        let counted = count(files, replication, &|words| bar.set_message(words.to_string()));
        bar.finish_and_clear();
        match counted {
            Ok(counted) => {
                curves.iter_mut().zip(counted).for_each(|(curve, counted)| curve.push(Point { files, counted }));
            }
            Err(failure) => report.remarks.push(format!("{files} files were not read: {failure}.")),
        }
    }
    for (bytes, curve) in MEMORY_BYTES.iter().zip(&curves) {
        judge(&mut report, bytes >> 20, curve);
    }
    report.tables.push(table(&curves));
    report.figure(chart(&curves));
    report.remarks.push(
        "Fig. 2 of Jin 2014 is a curve without numbers; the text names one, three I/Os for metadata for each file \
         with 800,000 files. Two runs with one seed give equal counts."
            .into(),
    );
    Ok(report)
}

fn method() -> String {
    format!(
        "The experiment runs ext4 of Linux 6.12 in the lab on a drive `{PC_DISK}`. The files have {FILE_BYTES} \
         bytes, {WIDTH} in a directory, as in filebench's `fileserver.f`. After they are made, ext4 is mounted \
         again. One reader, whose memory is limited together with the memory that the kernel uses for it, reads \
         {WARM_READS} files in random order (seed {SEED}), and then {READS} others. The I/Os of the block device are \
         counted during these {READS} reads, and until the data that they left are written. No file is read twice. A \
         file is one block, so {READS} of the I/Os are data, and all others are metadata. The run with the second \
         size of memory goes on with other files. The file server of Jin 2014 also writes files; here only its reads \
         are run, which the caption of the figure counts. The values that the paper does not give were chosen before \
         the first run (commit {}).",
        super::CHOSEN
    )
}

/// Returns the device's I/Os during the counted reads, for each size of memory.
fn count(files: u64, replication: &Replication, say: &dyn Fn(&str)) -> Result<Vec<Counted>, Failure> {
    let linux = Linux::with(&[("mkfs.ext4", "e2fsprogs")])?;
    let seed = replication.seed(SEED);
    let text = format!(
        "mount -t cgroup2 none /sys/fs/cgroup && echo +memory > /sys/fs/cgroup/cgroup.subtree_control && mkdir {GROUP} && \
         {MAKE_EXT4} /dev/vda && mkdir {MOUNTED} && {MOUNT_EXT4} /dev/vda {MOUNTED} && \
         IMBREX reproduce {} --in-guest {files},{seed}",
        EXPERIMENT.name
    );
    let script = Script { memory_bytes: GUEST_BYTES, ..Script::new("files", text, seed) };
    let ran = linux.run(&script, &[PC_DISK.into()], replication, say)?;
    serde_json::from_str(&ran.output).map_err(Failure::failed)
}

/// Makes the files, reads them, and returns the counts, in the guest, on a new and mounted file system. The words are the
/// number of files and the seed.
pub(super) fn in_guest(words: &[&str]) -> Result<String, Failure> {
    let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    let Some(&[files, seed]) = numbers.as_deref() else { return Err(Failure::usage("two numbers are needed")) };
    let directory = Path::new(MOUNTED);
    make(directory, files).map_err(Failure::failed)?;
    let order = order(files, seed);
    let mut counted = Vec::new();
    for (bytes, numbers) in MEMORY_BYTES.into_iter().zip(order.chunks(WARM_READS + READS)) {
        // The kernel caches nothing of a file system that is mounted anew.
        mount_anew()?;
        std::fs::write(format!("{GROUP}/memory.max"), bytes.to_string()).map_err(Failure::failed)?;
        let (warm, measured) = numbers.split_at(WARM_READS);
        read(directory, warm)?;
        let before = device_counts()?;
        read(directory, measured)?;
        let after = device_counts()?;
        counted.push(Counted { reads: after.reads - before.reads, writes: after.writes - before.writes });
    }
    serde_json::to_string(&counted).map_err(Failure::failed)
}

fn mount_anew() -> Result<(), Failure> {
    let command = format!("umount {MOUNTED} && {MOUNT_EXT4} /dev/vda {MOUNTED}");
    let status = Command::new("sh").args(["-c", &command]).stdout(Stdio::null()).status().map_err(Failure::failed)?;
    if status.success() { Ok(()) } else { Err(Failure::failed(format!("{command}: {status}"))) }
}

fn make(directory: &Path, files: u64) -> std::io::Result<()> {
    for made in tree_directories(files, WIDTH) {
        std::fs::create_dir(directory.join(made))?;
    }
    let contents = [1; FILE_BYTES];
    (0..files).try_for_each(|number| std::fs::write(directory.join(tree_path(number, WIDTH)), contents))
}

/// Returns, in random order, the numbers of as many different files as all reads need.
fn order(files: u64, seed: u64) -> Vec<u64> {
    let mut choices = Choices::new(seed);
    let mut numbers: Vec<u64> = (0..files).collect();
    let wanted = MEMORY_BYTES.len() * (WARM_READS + READS);
    for place in 0..wanted {
        let other = place + choices.below((numbers.len() - place) as u64) as usize;
        numbers.swap(place, other);
    }
    numbers.truncate(wanted);
    numbers
}

/// Reads files, then waits until all dirty data and metadata are on the device.
fn read(directory: &Path, numbers: &[u64]) -> Result<(), Failure> {
    let mut reader = Command::new("sh")
        .args(["-c", READER])
        .arg(format!("{GROUP}/cgroup.procs"))
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| Failure::failed(format!("sh: {error}")))?;
    let mut names: String = numbers.iter().map(|number| tree_path(*number, WIDTH)).collect::<Vec<_>>().join("\n");
    names.push('\n');
    let told = reader.stdin.take().expect("it was asked for").write_all(names.as_bytes());
    let ended = reader.wait().map_err(Failure::failed)?;
    told.map_err(Failure::failed)?;
    if !ended.success() {
        return Err(Failure::failed(format!("the reader of files: {ended}")));
    }
    let opened = std::fs::File::open(directory).map_err(Failure::failed)?;
    rustix::fs::syncfs(&opened).map_err(Failure::failed)
}

fn device_counts() -> Result<Counted, Failure> {
    let text = std::fs::read_to_string(COUNTERS).map_err(Failure::failed)?;
    parse_counts(&text)
        .ok_or_else(|| Failure::failed(format!("{COUNTERS}: '{text}' has no counts of reads and writes")))
}

/// Returns the completed reads and writes: fields 1 and 5 of `/sys/block/DEVICE/stat`.
fn parse_counts(text: &str) -> Option<Counted> {
    let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    Some(Counted { reads: *fields.first()?, writes: *fields.get(4)? })
}

/// Returns whether the metadata I/O grows at every step, or `None` if a number of files was not run.
fn grows(points: &[Point]) -> Option<bool> {
    (points.len() == FILES.len()).then(|| points.windows(2).all(|pair| pair[1].metadata() > pair[0].metadata()))
}

/// Returns whether the metadata I/O with the most files is three, to the nearest whole number, or `None` if it was not
/// run.
fn is_three(points: &[Point]) -> Option<bool> {
    let most = points.iter().find(|point| Some(&point.files) == FILES.last())?;
    Some((2.5..3.5).contains(&most.metadata()))
}

fn judge(report: &mut Report, mebibytes: u64, points: &[Point]) {
    let told: Vec<_> = points.iter().map(|point| format!("{:.2}", point.metadata())).collect();
    report.claim(
        ClaimKind::Shape,
        &format!("metadata I/O per file read, {} to {} files, {mebibytes} MiB", FILES[0], FILES[FILES.len() - 1]),
        "a larger number as the number of files increases",
        told.join(", "),
        grows(points),
    );
    report.claim(
        ClaimKind::Shape,
        &format!("metadata I/O per file read with 800,000 files, {mebibytes} MiB"),
        "three (2.5 to 3.5)",
        told.get(FILES.len() - 1).cloned().unwrap_or_else(|| "not run".into()),
        is_three(points),
    );
}

fn table(curves: &[Vec<Point>]) -> Table {
    let mut columns = vec!["files".to_string()];
    for bytes in MEMORY_BYTES {
        columns.extend(["read", "written", "in all"].map(|what| format!("{what}, {} MiB", bytes >> 20)));
    }
    let row = |number: usize| {
        let mut cells = vec![curves[0][number].files.to_string()];
        for curve in curves {
            let point = &curve[number];
            let [reads, writes] = point.parts();
            cells.extend([reads, writes, point.metadata()].map(|value| format!("{value:.3}")));
        }
        cells
    };
    let rows = (0..curves[0].len()).map(row).collect();
    Table { heading: "I/Os for metadata per file read, by memory of the reader".into(), columns, rows }
}

fn chart(curves: &[Vec<Point>]) -> Chart {
    let mut chart = Chart::new(
        "jin-fig2",
        "Metadata I/O per file read on ext4",
        Axis::linear("files", Unit::Count),
        Axis::linear("I/Os for metadata per file read", Unit::Count),
    );
    for (number, (bytes, curve)) in MEMORY_BYTES.iter().zip(curves).enumerate() {
        let points = curve.iter().map(|point| (point.files as f64, point.metadata())).collect();
        chart = chart.with(Series::new(format!("{} MiB of memory", bytes >> 20), Shape::Line, number, points));
    }
    chart
}

#[cfg(test)]
mod tests {
    //! Goal: the counts are the device's I/Os beyond the data, and a claim can fail. Method: cases written here.

    use super::*;

    fn curve(metadata: [u64; 5]) -> Vec<Point> {
        let point = |(files, tenths): (u64, u64)| {
            let reads = READS as u64 + tenths * READS as u64 / 10;
            Point { files, counted: Counted { reads, writes: 0 } }
        };
        FILES.into_iter().zip(metadata).map(point).collect()
    }

    #[test]
    fn data_are_one_read_a_file() {
        let counted = Counted { reads: 3 * READS as u64, writes: READS as u64 / 2 };
        let point = Point { files: 1, counted };
        assert_eq!((point.parts(), point.metadata()), ([2.0, 0.5], 2.5));
    }

    #[test]
    fn counts_are_the_first_and_the_fifth_field() {
        let text = "  11 2 33 4 55 6 77 8 0 10 11 0 0 0 0 3 1\n";
        assert_eq!(parse_counts(text), Some(Counted { reads: 11, writes: 55 }));
        assert_eq!(parse_counts("11 2 33"), None);
    }

    #[test]
    fn growth_is_at_every_step_and_of_all() {
        assert_eq!(grows(&curve([1, 2, 3, 4, 30])), Some(true));
        assert_eq!(grows(&curve([1, 2, 2, 4, 30])), Some(false));
        assert_eq!(grows(&curve([1, 2, 3, 4, 30])[..4]), None);
    }

    #[test]
    fn three_is_three_to_the_nearest() {
        let three = |tenths| is_three(&curve([1, 1, 1, 1, tenths]));
        assert_eq!([24, 25, 34, 35].map(three), [Some(false), Some(true), Some(true), Some(false)]);
        assert_eq!(is_three(&curve([1; 5])[..4]), None);
    }

    #[test]
    fn no_file_is_read_twice() {
        let order = order(FILES[0], SEED);
        let different: std::collections::BTreeSet<_> = order.iter().collect();
        assert_eq!((order.len(), different.len()), (40_000, 40_000));
        assert!(order.iter().all(|number| *number < FILES[0]));
    }
}
