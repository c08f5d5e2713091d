//! Served drives without a pace, compared with nbdkit. Drives in memory and images without syncs are compared with its
//! memory plugin, images with syncs with its file plugin. fio's nbd engine sends requests to both servers in turn, on
//! this machine in one run; the figure is the ratio of the medians. A second row is the ratio of bytes per second of
//! the server's processor time, which is fairer on a busy machine.
//!
//! An image lies in the system's temporary folder, and so does the file of nbdkit; `TMPDIR` names another folder. With
//! syncs, both servers get a flush after every 32 writes. Both write flushed data to the host's disk before they
//! answer.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use imbrex_device::EmulatedDrive;
use imbrex_device::drive::{Making, create_file_of, header_of};
use imbrex_device::pacing::Pace;
use imbrex_disk::Profile;
use imbrex_serve::{Address, DriveServer, Server};
use imbrex_sim::{Drive, DriveSpec};

use crate::Row;

/// Target: share of nbdkit's throughput that a served drive should reach.
const TARGET: f64 = 0.8;
/// Number of runs of each server, in turn.
const ROUNDS: usize = 5;
/// Option of fio for the number of writes between two flushes, for servers that sync.
const WRITES_A_FLUSH: &str = "--fsync=32";

/// Patterns: (name, fio's pattern, size of a block, size of the region).
const PATTERNS: [(&str, &str, &str, &str); 4] = [
    ("1 MiB sequential writes", "write", "1m", "256m"),
    ("1 MiB sequential reads", "read", "1m", "256m"),
    ("4 KiB random writes", "randwrite", "4k", "64m"),
    ("4 KiB random reads", "randread", "4k", "64m"),
];
/// Numbers of requests in flight.
const DEPTHS: [&str; 3] = ["1", "4", "32"];

/// Drive of ours, and the kind of nbdkit that it is compared with.
struct Pair {
    /// Prefix of the rows' names.
    name: &'static str,
    drive: &'static str,
    place: Place,
    /// Whether only writes are measured.
    is_writes_alone: bool,
}

/// Places where both servers keep their data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Memory,
    /// Our data in an image without syncs, nbdkit's in memory.
    Image,
    /// Both in files that are synced at a flush.
    SyncedImage,
}

const PAIRS: [Pair; 3] = [
    Pair { name: "serve", drive: "cmr-7200", place: Place::Memory, is_writes_alone: false },
    Pair { name: "serve an image, --sync none,", drive: "cmr-7200", place: Place::Image, is_writes_alone: true },
    Pair {
        name: "serve an image, --sync barrier, a flush each 32,",
        // Without a volatile cache each of our writes would be durable when it is answered, and nbdkit's are not.
        drive: "cmr-7200:host.write_cache_bytes=67108864",
        place: Place::SyncedImage,
        is_writes_alone: true,
    },
];

/// Row to measure: its name, and the options of fio.
struct Case {
    name: String,
    words: Vec<String>,
}

fn cases(pair: &Pair) -> Vec<Case> {
    let patterns = PATTERNS.into_iter().filter(|pattern| !pair.is_writes_alone || pattern.1.ends_with("write"));
    let with_depths = patterns.flat_map(|pattern| DEPTHS.into_iter().map(move |depth| (pattern, depth)));
    let case = |((name, pattern, block, size), depth)| {
        let mut words = vec![
            format!("--rw={pattern}"),
            format!("--bs={block}"),
            format!("--iodepth={depth}"),
            format!("--size={size}"),
            "--runtime=1".into(),
            "--time_based".into(),
        ];
        words.extend((pair.place == Place::SyncedImage).then(|| WRITES_A_FLUSH.into()));
        Case { name: format!("{} {name}, depth {depth}", pair.name), words }
    };
    with_depths.map(case).collect()
}

/// Measures the rows whose names contain `only`.
pub(crate) fn measure(only: &str, report: &mut dyn FnMut(Row)) {
    PAIRS.iter().for_each(|pair| measure_pair(pair, only, report));
}

fn measure_pair(pair: &Pair, only: &str, report: &mut dyn FnMut(Row)) {
    let rows: Vec<Case> = cases(pair).into_iter().filter(|case| case.name.contains(only)).collect();
    if rows.is_empty() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("imbrex-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is a temporary folder");
    let (theirs, ours) = (folder.join("nbdkit"), folder.join("imbrex"));
    match start_nbdkit(&theirs, pair.place, &folder) {
        Ok(mut nbdkit) => {
            let drive = drive(pair, &folder);
            let servers = [(&theirs, nbdkit.id()), (&ours, std::process::id())];
            with_drive(drive, &ours, || measure_all(&rows, &servers, pair.place, report));
            // nbdkit may have ended by itself, which is not an error.
            let _ = nbdkit.kill();
            let _ = nbdkit.wait();
        }
        Err(error) => eprintln!("skipped: served drives (nbdkit: {error})"),
    }
    // A failure to remove the folder is harmless: only unused sockets and files are left.
    let _ = std::fs::remove_dir_all(&folder);
}

fn start_nbdkit(socket: &Path, place: Place, folder: &Path) -> std::io::Result<Child> {
    let mut command = Command::new("nbdkit");
    command.arg("-f").arg("-U").arg(socket);
    if place == Place::SyncedImage {
        let file = folder.join("theirs");
        File::create(&file)?.set_len(2 << 30)?;
        command.arg("file").arg(file);
    } else {
        command.args(["memory", "2G"]);
    }
    let child = command.spawn()?;
    while !socket.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(child)
}

fn drive(pair: &Pair, folder: &Path) -> EmulatedDrive {
    let spec = DriveSpec::parse(pair.drive).expect("the words are right");
    let profile = Profile::named(&spec.profile).expect("the profile comes with the program");
    let drive = Drive::build(&spec, &profile).expect("the drive can be built");
    let header = header_of(&drive, &spec, &Making::default()).expect("it can have an image");
    if pair.place == Place::Memory {
        return EmulatedDrive::in_memory(header).expect("memory takes it");
    }
    let image = folder.join("image");
    create_file_of(&image, header, drive).expect("there is room");
    EmulatedDrive::open_file(&image, pair.place == Place::SyncedImage).expect("it is new")
}

/// Calls `work` while the drive is served at `socket`.
fn with_drive(drive: EmulatedDrive, socket: &Path, work: impl FnOnce()) {
    let (front, pacer) = DriveServer::start(drive, Pace::None, false);
    let server = Server::bind(&Address::Unix(socket.into()), front.clone(), None, imbrex_serve::Limits::default())
        .expect("the socket is ours");
    let is_ending = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(&|| is_ending.load(Ordering::SeqCst)));
        work();
        is_ending.store(true, Ordering::SeqCst);
    });
    front.stop(pacer).expect("the host's disk does not fail");
}

/// Measures each row with both servers, each given as (socket, process ID).
fn measure_all(rows: &[Case], servers: &[(&PathBuf, u32); 2], place: Place, report: &mut dyn FnMut(Row)) {
    // Both servers first allocate the memory and blocks that the measured runs will use.
    for (socket, _) in servers {
        fio(socket, &["--rw=write", "--bs=1m", "--size=256m"]);
    }
    for Case { name, words } in rows {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (mut speeds, mut bytes, mut ticks) = ([Vec::new(), Vec::new()], [0.0; 2], [0.0; 2]);
        for _ in 0..ROUNDS {
            for (index, (socket, process)) in servers.iter().enumerate() {
                let before = processor_ticks(*process);
                let Some((speed, moved)) = fio(socket, &words) else {
                    eprintln!("skipped: {name} (fio with its nbd engine is needed)");
                    return;
                };
                speeds[index].push(speed);
                bytes[index] += moved;
                ticks[index] += (processor_ticks(*process) - before) as f64;
            }
        }
        let [theirs, ours] = speeds.map(|mut speeds| {
            speeds.sort_by(f64::total_cmp);
            speeds[ROUNDS / 2]
        });
        let unit = match place {
            Place::SyncedImage => "of nbdkit's file plugin",
            _ => "of nbdkit's memory plugin",
        };
        report(Row { name: name.clone(), value: ours / theirs, unit, target: Some(TARGET) });
        let [theirs, ours] = [0, 1].map(|index| bytes[index] / ticks[index]);
        let name = format!("{name}, by CPU time");
        report(Row { name, value: ours / theirs, unit, target: Some(TARGET) });
    }
}

/// Returns the processor time of a process so far, in the kernel's clock ticks.
fn processor_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    // The process name, in brackets, may contain spaces. User and system time are the 12th and 13th words after the
    // brackets.
    let words = stat.rsplit(')').next().expect("a part is always there").split_whitespace();
    words.skip(11).take(2).map(|word| word.parse::<u64>().expect("the kernel writes numbers")).sum()
}

/// Calls fio once and returns (bytes a second, bytes), or `None` if fio or its nbd engine is missing.
fn fio(socket: &Path, words: &[&str]) -> Option<(f64, f64)> {
    let output = Command::new("fio")
        .args(["--name=bench", "--ioengine=nbd", "--output-format=json"])
        .arg(format!("--uri=nbd+unix:///?socket={}", socket.display()))
        .args(words)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let json: serde_json::Value = serde_json::from_str(&text[text.find('{')?..]).ok()?;
    let job = &json["jobs"][0];
    let sum = |what: &str| Some(job["read"][what].as_f64()? + job["write"][what].as_f64()?);
    Some((sum("bw_bytes")?, sum("io_bytes")?))
}
