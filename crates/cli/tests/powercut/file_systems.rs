//! Goal: what was fsynced on a mounted file system survives the host's power cut. Method: the program that serves the mount is recorded while
//! a host replaces files: it writes a new one, syncs it, renames it over the old one and syncs the folder. Replayed cuts are
//! checked, mounted and read. The judge is judged as in [`crate::planted`].

use std::fs::{self, File};
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use imbrex_powercut::plant::Plant;
use imbrex_powercut::recorder::is_available;
use imbrex_powercut::{Disk, Log, Options, Recorder, Replay, Survival};
use imbrex_testkit::Random;
use imbrex_testkit::patience::until;
use imbrex_testkit::program::text;
use rustix::mount::{UnmountFlags, unmount};

use crate::recorded::program;
use crate::rounds::{BLOCK_BYTES, long, seed};

/// Files that are replaced again and again.
const FILES: usize = 5;
const STEPS: u64 = 40;
/// Cuts of a recording, for each size of block.
const ROUNDS: u64 = 12;
/// Logs with a planted fault, and how far behind it they are cut.
const SEEDS: u64 = 8;
const REACH: usize = 12;

/// Where a file system lies.
struct Carrier {
    name: &'static str,
    /// The emulated drive; without one it is a file of 256 MiB.
    drive: Option<&'static str>,
    /// More words of `mkfs`, of which `META` is a file beside.
    words: &'static [&'static str],
}

const CARRIERS: [Carrier; 4] = [
    Carrier { name: "fs-log", drive: None, words: &["--store", "log"] },
    Carrier { name: "fs-log-meta", drive: None, words: &["--store", "log", "--meta", "META", "--meta-size", "16MiB"] },
    Carrier { name: "fs-strict-append", drive: Some("strict-append"), words: &[] },
    Carrier { name: "fs-caveat", drive: Some("caveat-1g"), words: &[] },
];

/// A version of a file.
#[derive(Clone, Debug)]
struct Version {
    contents: Vec<u8>,
    /// Position of the log before it was begun, and when it was durable.
    begun: usize,
    durable: usize,
}

/// A mount that is recorded, or one that is read.
struct Mount {
    directory: PathBuf,
}

impl Mount {
    fn directory_in(parent: &Path) -> PathBuf {
        let directory = parent.join("mounted");
        fs::create_dir_all(&directory).expect("the folder is ours");
        directory
    }

    fn is_there(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("the kernel tells of mounts");
        mounts.lines().any(|line| line.split(' ').nth(1) == self.directory.to_str())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.is_there() {
            let _ = unmount(&self.directory, UnmountFlags::DETACH);
        }
    }
}

/// A recorded file system: its log, and the versions of each file.
struct Story {
    log: Log,
    files: Vec<Vec<Version>>,
}

fn must(words: &[&str]) {
    let output = program().run(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn make(carrier: &Carrier, folder: &Path) {
    let (disk, meta) = (folder.join("disk"), folder.join("meta"));
    match carrier.drive {
        Some(drive) => {
            program().create(&disk, drive);
        }
        None => File::create(&disk).and_then(|file| file.set_len(256 << 20)).expect("there is room"),
    }
    let words = carrier.words.iter().map(|&word| if word == "META" { text(&meta) } else { word });
    must(&[&["fs", "mkfs", text(&disk)][..], &words.collect::<Vec<_>>()].concat());
}

fn name(file: usize) -> String {
    format!("file{file}")
}

/// Replaces files in a mounted directory; `position` tells how far the log is.
fn work(directory: &Path, position: impl Fn() -> usize, seed: u64) -> Vec<Vec<Version>> {
    let mut random = Random::new(seed);
    let mut files = vec![Vec::new(); FILES];
    for step in 1..=STEPS {
        let file = random.below(FILES as u64) as usize;
        let length = if random.one_in(3) { random.below(200) } else { random.below(60_000) } as usize;
        let contents: Vec<u8> = (0..length).map(|at| (at as u64 / 61 * step) as u8 | 1).collect();
        let (new, begun) = (directory.join("new"), position());
        let mut written = File::create(&new).expect("there is room");
        written.write_all(&contents).and_then(|()| written.sync_all()).expect("it is synced");
        fs::rename(&new, directory.join(name(file))).expect("it is renamed");
        File::open(directory).and_then(|folder| folder.sync_all()).expect("the folder is synced");
        files[file].push(Version { contents, begun, durable: position() });
    }
    files
}

fn record(carrier: &Carrier, seed: u64) -> Story {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let folder = parent.path().join("recorded");
    fs::create_dir(&folder).expect("a folder in it");
    make(carrier, &folder);
    let mount = Mount { directory: Mount::directory_in(parent.path()) };
    let mut command = Command::new(program().path());
    command
        .args(["fs", "mount", "--quiet", "--foreground", "-o", "time=none"])
        .arg(folder.join("disk"))
        .arg(&mount.directory);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let options = Options { answers_syncs: true, ..Options::default() };
    let recorder = Recorder::start(command, &folder, options).expect("it was recorded before");
    until("the mount", || {
        assert!(!recorder.has_ended(), "{}: it is not served", carrier.name);
        mount.is_there().then_some(())
    });
    let files = work(&mount.directory, || recorder.position(), seed);
    recorder.signal(libc::SIGKILL);
    let recording = recorder.finish().unwrap_or_else(|error| panic!("{}: {error}", carrier.name));
    Story { log: recording.log, files }
}

/// Checks, mounts and reads what a cut left.
///
/// # Errors
/// A description of the first thing that is wrong.
fn judge(disk: &Disk, story: &Story, position: usize) -> Result<(), String> {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let folder = parent.path().join("recorded");
    fs::create_dir(&folder).and_then(|()| disk.save(&folder)).expect("there is room");
    let device = folder.join("disk");
    let begins = fs::read(&device).expect("it was just written");
    if begins.starts_with(b"IMBREX") {
        // It is the disk after the cut, in another file.
        must(&["drive", "adopt", text(&device)]);
    }
    let checked = program().run(&["fs", "check", text(&device)]);
    if !checked.status.success() {
        return Err(format!("check: {}: {}", checked.status, String::from_utf8_lossy(&checked.stdout)));
    }
    let mount = Mount { directory: Mount::directory_in(parent.path()) };
    let mounted = program().run(&["fs", "mount", "-o", "time=none", text(&device), text(&mount.directory)]);
    if !mounted.status.success() {
        return Err(format!("mount: {}", String::from_utf8_lossy(&mounted.stderr)));
    }
    let found: Vec<_> = (0..FILES).map(|file| fs::read(mount.directory.join(name(file))).ok()).collect();
    must(&["fs", "umount", text(&mount.directory)]);
    for (file, (versions, found)) in story.files.iter().zip(found).enumerate() {
        let durable = versions.iter().rposition(|version| version.durable <= position);
        let begun = versions.iter().take_while(|version| version.begun <= position).count();
        let allowed = &versions[durable.unwrap_or(0)..begun];
        let is_right = match &found {
            Some(contents) => allowed.iter().any(|version| version.contents == *contents),
            None => durable.is_none(),
        };
        if !is_right {
            let held = found.map_or("not there".into(), |contents| format!("{} bytes", contents.len()));
            let lens: Vec<_> = allowed.iter().map(|version| version.contents.len()).collect();
            return Err(format!("{} is {held}; versions of {lens:?} bytes may be", name(file)));
        }
    }
    Ok(())
}

/// Cuts of a log, at blocks of one size and positions in a range: how often, and what was bad.
fn cuts(story: &Story, seed: u64, block_bytes: u64, positions: RangeInclusive<usize>) -> Vec<String> {
    let seed_of = |round: u64| seed << 32 ^ block_bytes << 20 ^ round;
    let (start, length) = (*positions.start(), (positions.end() - positions.start()) as u64 + 1);
    let position = |round| start + Random::new(seed_of(round) ^ 0x9051).below(length) as usize;
    let mut cuts: Vec<(usize, u64)> = (0..ROUNDS).map(|round| (position(round), round)).collect();
    cuts.sort_unstable();
    let (mut replay, mut bad) = (Replay::new(&story.log, block_bytes), Vec::new());
    for (position, round) in cuts {
        replay.advance(position);
        let survival = Survival::seeded(seed_of(round), replay.pending().len());
        if let Err(what) = judge(&replay.cut(survival, None).0, story, position) {
            let events = story.log.entries.len();
            bad.push(format!("blocks of {block_bytes} B, cut at {position} of {events}, {survival}: {what}"));
        }
    }
    bad
}

/// Cuts one recording at blocks of each size; the cuts that were bad.
fn cut(carrier: &Carrier, seed: u64) -> Vec<String> {
    let story = record(carrier, seed);
    BLOCK_BYTES.map(|block_bytes| cuts(&story, seed, block_bytes, 0..=story.log.entries.len())).concat()
}

/// Returns whether file systems can be mounted under the recorder, which leaves programs like fusermount3 without the
/// rights that they have by their file: so it takes root.
fn is_here() -> bool {
    let is_here =
        rustix::process::geteuid().is_root() && File::options().read(true).write(true).open("/dev/fuse").is_ok();
    if !is_here {
        eprintln!("skipped: power cuts under mounted file systems (they take root and /dev/fuse)");
    }
    is_here && is_available()
}

/// Cuts each file system, with so many seeds.
fn survive(test: &str, mut seeds: impl FnMut(&mut dyn FnMut(u64))) {
    let wanted = std::env::var("IMBREX_POWERCUT_CARRIERS").ok();
    let is_wanted =
        |carrier: &&Carrier| wanted.as_ref().is_none_or(|words| words.split(',').any(|word| word == carrier.name));
    let mut failed = Vec::new();
    for carrier in CARRIERS.iter().filter(is_wanted) {
        seeds(&mut |seed| {
            let bad = cut(carrier, seed);
            let rounds = ROUNDS * BLOCK_BYTES.len() as u64;
            eprintln!("| {} | seed {seed} | {rounds} rounds | {} bad |", carrier.name, bad.len());
            if let Some(first) = bad.first() {
                let variables = format!(
                    "IMBREX_POWERCUT_CARRIERS={} IMBREX_POWERCUT_SEED={seed} IMBREX_POWERCUT_SECONDS=0",
                    carrier.name
                );
                eprintln!(
                    "{first}\n  {variables} cargo test -p imbrex-cli --test powercut -- {test} --include-ignored --nocapture"
                );
                failed.push(carrier.name);
            }
        });
    }
    assert!(failed.is_empty(), "{failed:?}: see above");
}

#[test]
fn what_was_fsynced_survives_the_hosts_power_cut() {
    if is_here() {
        survive("file_systems::what_was_fsynced_survives_the_hosts_power_cut", |each| each(seed()));
    }
}

#[test]
#[ignore = "takes an hour a carrier"]
fn long_what_was_fsynced_survives_the_hosts_power_cut() {
    if is_here() {
        survive("file_systems::long_what_was_fsynced_survives_the_hosts_power_cut", |each| long(0, each));
    }
}

#[test]
fn a_fault_planted_under_a_file_system_is_found() {
    if !is_here() {
        return;
    }
    let story = record(&CARRIERS[0], 1);
    for plant in [Plant::MissingSync, Plant::SwappedWrites, Plant::LostWrite] {
        let planted = |seed| plant.plant(&story.log, 0..story.log.entries.len(), seed);
        let is_caught = |(log, at): &(Log, usize)| {
            let end = log.entries.len().min(at + REACH);
            let story = Story { log: log.clone(), files: story.files.clone() };
            !cuts(&story, 1, 512, *at..=end).is_empty()
        };
        let caught = (0..SEEDS).filter_map(planted).filter(is_caught).count();
        eprintln!("{}, {plant:?}: caught in {caught} of {SEEDS} logs", CARRIERS[0].name);
        assert!(caught > 0, "{plant:?} is caught in none of {SEEDS} logs");
    }
}
