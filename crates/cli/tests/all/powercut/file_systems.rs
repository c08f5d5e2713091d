//! Goal: fsynced data on a mounted file system survives the host's power cut, and additional corruption by a faulty
//! disk of the host is detected; if another device has the same data, nothing is lost. Method: the program that serves
//! the mount is recorded while a host replaces files: it writes a new one, syncs it, renames it over the old one and
//! syncs the folder. Replayed cuts, with a fault of one device or without that device, are checked, mounted and read;
//! so are those behind a sync that failed. The judge is tested as in [`super::planted`].

use std::fs::{self, File};
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use imbrex_powercut::plant::Plant;
use imbrex_powercut::recorder::is_available;
use imbrex_powercut::{Disk, Event, Fault, Log, Options, Recorder, Replay, Survival};
use imbrex_testkit::Random;
use imbrex_testkit::patience::until;
use imbrex_testkit::program::text;
use rustix::mount::{UnmountFlags, unmount};

use super::recorded::program;
use super::rounds::{BLOCK_BYTES, long, seed};

/// Number of files that are replaced again and again.
const FILES: usize = 5;
const STEPS: u64 = 40;
/// Cuts of a recording, for each size of block: without a fault, with a fault, and behind a sync that failed.
const ROUNDS: u64 = 12;
const SPOILT_ROUNDS: u64 = 8;
const FAILED_ROUNDS: u64 = 3;
/// Number of logs with a planted fault, and of events behind the fault at which they are cut.
const SEEDS: u64 = 8;
const REACH: usize = 12;

/// Devices of a file system.
struct Carrier {
    name: &'static str,
    /// The emulated drive; without one the file system is on `disks` files of 256 MiB.
    drive: Option<&'static str>,
    disks: usize,
    /// Number of copies of the metadata, in files of 16 MiB.
    copies: usize,
    /// Further arguments of `mkfs`.
    words: &'static [&'static str],
    /// Whether the loss of any one device loses no data.
    is_redundant: bool,
}

const DISKS: [&str; 3] = ["disk", "disk1", "disk2"];
const COPIES: [&str; 2] = ["meta", "meta1"];

const CARRIERS: [Carrier; 6] = [
    Carrier::on("fs-log", None, &["--store", "log"]),
    Carrier { copies: 1, ..Carrier::on("fs-log-meta", None, &["--store", "log"]) },
    Carrier::on("fs-strict-append", Some("strict-append"), &[]),
    Carrier::on("fs-caveat", Some("caveat-1g"), &[]),
    Carrier::on("fs-caveat-cached", Some("caveat-1g:host.write_cache_bytes=4194304"), &[]),
    Carrier {
        disks: 3,
        copies: 2,
        is_redundant: true,
        ..Carrier::on("fs-array", None, &["--store", "log", "--parity", "1"])
    },
];

impl Carrier {
    const fn on(name: &'static str, drive: Option<&'static str>, words: &'static [&'static str]) -> Carrier {
        Carrier { name, drive, disks: 1, copies: 0, words, is_redundant: false }
    }
}

/// Damage to one device after a cut.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Nothing,
    /// A sync of the device failed before the cut.
    SyncFailed,
    /// The device holds something older than the synced data.
    Spoilt(fn(u64) -> Fault),
    /// The device with this number is missing.
    Gone(usize),
}

/// A version of a file.
#[derive(Clone, Debug)]
struct Version {
    contents: Vec<u8>,
    /// Positions in the log at which the version was begun and at which it was durable.
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
    is_redundant: bool,
}

fn must(words: &[&str]) {
    let output = program().run(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn make(carrier: &Carrier, folder: &Path) {
    let disks: Vec<PathBuf> = DISKS[..carrier.disks].iter().map(|name| folder.join(name)).collect();
    match carrier.drive {
        Some(drive) => {
            program().create(&disks[0], drive);
        }
        None => disks.iter().for_each(|disk| {
            File::create(disk).and_then(|file| file.set_len(256 << 20)).expect("there is room");
        }),
    }
    let copies: Vec<PathBuf> = COPIES[..carrier.copies].iter().map(|name| folder.join(name)).collect();
    let mut of_copies: Vec<&str> = copies.iter().flat_map(|copy| ["--meta", text(copy)]).collect();
    of_copies.extend(["--meta-size", "16MiB"].iter().filter(|_| carrier.copies > 0));
    let disks: Vec<&str> = disks.iter().map(|disk| text(disk)).collect();
    must(&[&["fs", "mkfs"][..], &disks, carrier.words, &of_copies].concat());
}

fn name(file: usize) -> String {
    format!("file{file}")
}

/// Replaces files in a mounted directory until that fails; `position` returns the current length of the log. Returns
/// the versions written so far, and the error.
fn work(directory: &Path, position: impl Fn() -> usize, seed: u64) -> (Vec<Vec<Version>>, std::io::Result<()>) {
    let mut random = Random::new(seed);
    let mut files = vec![Vec::new(); FILES];
    for step in 1..=STEPS {
        let file = random.below(FILES as u64) as usize;
        let length = if random.one_in(3) { random.below(200) } else { random.below(60_000) } as usize;
        let contents: Vec<u8> = (0..length).map(|at| (at as u64 / 61 * step) as u8 | 1).collect();
        let (new, begun) = (directory.join("new"), position());
        let replaced = File::create(&new)
            .and_then(|mut written| written.write_all(&contents).and_then(|()| written.sync_all()))
            .and_then(|()| fs::rename(&new, directory.join(name(file))))
            .and_then(|()| File::open(directory)?.sync_all());
        let durable = if replaced.is_ok() { position() } else { usize::MAX };
        files[file].push(Version { contents, begun, durable });
        if replaced.is_err() {
            return (files, replaced);
        }
    }
    (files, Ok(()))
}

fn record(carrier: &Carrier, seed: u64) -> Story {
    let (story, outcome) = record_failing(carrier, seed, None).expect("it is served");
    outcome.unwrap_or_else(|error| panic!("{}: {error}", carrier.name));
    story
}

/// Records the work with a failing sync. Returns the story and the outcome of the work; `None` if the sync fails before
/// the mount.
fn record_failing(carrier: &Carrier, seed: u64, failing_sync: Option<u64>) -> Option<(Story, std::io::Result<()>)> {
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
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let options = Options { answers_syncs: true, failing_sync };
    let recorder = Recorder::start(command, &folder, options).expect("it was recorded before");
    until("the mount, or the end of a server that does without", || {
        (recorder.has_ended() || mount.is_there()).then_some(())
    });
    if recorder.has_ended() {
        return None;
    }
    let (files, outcome) = work(&mount.directory, || recorder.position(), seed);
    recorder.signal(libc::SIGKILL);
    let recording = recorder.finish().unwrap_or_else(|error| panic!("{}: {error}", carrier.name));
    Some((Story { log: recording.log, files, is_redundant: carrier.is_redundant }, outcome))
}

/// Result of reading a file.
enum Read {
    Bytes(Vec<u8>),
    /// The file does not exist.
    Missing,
    /// Reading gave an error.
    Unreadable,
}

/// Checks, mounts and reads the disk after a cut and a harm. Corrupted data may be unreadable if no other device has
/// it, and then the check must report damage. The last operation may be lost without a report, since nothing was
/// written after it.
///
/// # Errors
/// A description of the first thing that is wrong.
fn judge(disk: &Disk, story: &Story, position: usize, harm: Harm) -> Result<(), String> {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let folder = parent.path().join("recorded");
    fs::create_dir(&folder).and_then(|()| disk.save(&folder)).expect("there is room");
    let mut devices: Vec<PathBuf> = DISKS.iter().chain(&COPIES).map(|name| folder.join(name)).collect();
    devices.retain(|path| path.exists());
    if let Harm::Gone(number) = harm {
        fs::remove_file(devices.remove(number % devices.len())).expect("it is there");
    }
    let device = &devices[0];
    let may_be_lost = matches!(harm, Harm::Spoilt(_)) && !story.is_redundant;
    if fs::read(device).expect("it was just written").starts_with(b"IMBREX") {
        // The image is a copy of the recorded one in another file.
        let adopted = program().run(&["drive", "adopt", text(device)]);
        if !adopted.status.success() {
            return if may_be_lost { Ok(()) } else { Err(String::from_utf8_lossy(&adopted.stderr).into()) };
        }
    }
    let checked = program().run(&["fs", "check", text(device)]);
    let said = || format!("{}: {}", checked.status, String::from_utf8_lossy(&checked.stdout));
    let is_told = matches!(checked.status.code(), Some(1 | 3));
    // A redundant store drops the copy whose sync failed. The check reports this outdated copy, and nothing else.
    let output = String::from_utf8_lossy(&checked.stdout).into_owned();
    let is_of_the_copy = |line: &str| line.contains("holds outdated metadata");
    let only_the_copy = output.lines().rev().skip(1).all(is_of_the_copy);
    let is_expected = matches!(harm, Harm::SyncFailed) && story.is_redundant && only_the_copy;
    if is_told && matches!(harm, Harm::Nothing | Harm::SyncFailed) && !is_expected {
        return Err(format!("check: {}", said()));
    }
    let mount = Mount { directory: Mount::directory_in(parent.path()) };
    let mounted = program().run(&["fs", "mount", "-o", "time=none", text(device), text(&mount.directory)]);
    if !mounted.status.success() {
        let words = String::from_utf8_lossy(&mounted.stderr);
        return if may_be_lost && is_told { Ok(()) } else { Err(format!("mount: {words}; check: {}", said())) };
    }
    let read = |file: usize| match fs::read(mount.directory.join(name(file))) {
        Ok(bytes) => Read::Bytes(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Read::Missing,
        Err(_) => Read::Unreadable,
    };
    let found: Vec<Read> = (0..FILES).map(read).collect();
    must(&["fs", "umount", text(&mount.directory)]);
    let durable = |versions: &[Version]| versions.iter().rposition(|version| version.durable <= position);
    let last = story.files.iter().flatten().map(|version| version.durable).filter(|durable| *durable <= position).max();
    for (file, (versions, found)) in story.files.iter().zip(found).enumerate() {
        let begun = versions.iter().take_while(|version| version.begun <= position).count();
        let is_last = durable(versions).is_some_and(|at| Some(versions[at].durable) == last);
        let from = match durable(versions) {
            Some(at) if may_be_lost && is_last => at.checked_sub(1),
            from => from,
        };
        let allowed = &versions[from.unwrap_or(0)..begun];
        let is_right = match &found {
            Read::Bytes(contents) => allowed.iter().any(|version| version.contents == *contents),
            Read::Missing => from.is_none(),
            Read::Unreadable => may_be_lost && is_told,
        };
        if !is_right {
            let held = match found {
                Read::Bytes(contents) => format!("{} bytes", contents.len()),
                Read::Missing => "not there".into(),
                Read::Unreadable => "unreadable".into(),
            };
            let lens: Vec<_> = allowed.iter().map(|version| version.contents.len()).collect();
            return Err(format!("{} is {held}; versions of {lens:?} bytes may be; check: {}", name(file), said()));
        }
    }
    Ok(())
}

/// Cuts a log at blocks of one size and positions in a range, each with one of the harms in turn. Returns descriptions
/// of the bad cuts.
fn cuts(
    story: &Story,
    seed: u64,
    block_bytes: u64,
    (positions, rounds): (RangeInclusive<usize>, u64),
    harms: &[Harm],
) -> Vec<String> {
    let seed_of = |round: u64| seed << 32 ^ block_bytes << 20 ^ round;
    let (start, length) = (*positions.start(), (positions.end() - positions.start()) as u64 + 1);
    let position = |round| start + Random::new(seed_of(round) ^ 0x9051).below(length) as usize;
    let mut cuts: Vec<(usize, u64)> = (0..rounds).map(|round| (position(round), round)).collect();
    cuts.sort_unstable();
    let (mut replay, mut bad) = (Replay::new(&story.log, block_bytes), Vec::new());
    for (position, round) in cuts {
        replay.advance(position);
        let survival = Survival::seeded(seed_of(round), replay.pending().len());
        let harm = harms[round as usize % harms.len()];
        let fault = if let Harm::Spoilt(fault) = harm { Some(fault(seed_of(round))) } else { None };
        let (disk, done) = replay.cut(survival, fault);
        // The device held nothing yet that the fault could hit.
        let harm = if fault.is_some() && done.is_none() { Harm::Nothing } else { harm };
        if let Err(what) = judge(&disk, story, position, harm) {
            let events = story.log.entries.len();
            let hit = done.map_or_else(|| format!("{harm:?}"), |done| done.to_string());
            bad.push(format!("blocks of {block_bytes} B, cut at {position} of {events}, {survival}, {hit}: {what}"));
        }
    }
    bad
}

/// Cuts one recording at blocks of each size. Returns the number of cuts, and descriptions of the bad ones.
fn cut(carrier: &Carrier, seed: u64) -> (u64, Vec<String>) {
    let story = record(carrier, seed);
    let all = (0..=story.log.entries.len(), ROUNDS);
    let bad = BLOCK_BYTES.map(|block_bytes| cuts(&story, seed, block_bytes, all.clone(), &[Harm::Nothing])).concat();
    (ROUNDS * BLOCK_BYTES.len() as u64, bad)
}

/// Cuts like [`cut`], and adds a fault of one device. In a redundant store that device may be missing altogether.
/// [`super::faults`] covers faults below the image of an emulated drive.
fn spoil(carrier: &Carrier, seed: u64) -> (u64, Vec<String>) {
    let story = record(carrier, seed);
    let gone = (0..carrier.disks + carrier.copies).map(Harm::Gone).filter(|_| carrier.is_redundant);
    let spoilt = [Fault::DropWrite, Fault::DropBlock, Fault::RollBack].map(Harm::Spoilt);
    let harms: Vec<Harm> = spoilt.into_iter().chain(gone).collect();
    let all = (0..=story.log.entries.len(), SPOILT_ROUNDS);
    let bad = BLOCK_BYTES.map(|block_bytes| cuts(&story, seed, block_bytes, all.clone(), &harms)).concat();
    (SPOILT_ROUNDS * BLOCK_BYTES.len() as u64, bad)
}

/// Cuts behind a sync that failed with its pages dropped. A store of one device accepts no more writes; a redundant
/// store continues without that device.
fn fail_sync(carrier: &Carrier, seed: u64) -> (u64, Vec<String>) {
    let failing = 20 + Random::new(seed ^ 0xfa11).below(60);
    let Some((story, outcome)) = record_failing(carrier, seed, Some(failing)) else { return (0, Vec::new()) };
    let is_failed = |event: &Event| matches!(event, Event::Sync { has_failed: true, .. });
    let Some(from) = story.log.entries.iter().position(|entry| is_failed(&entry.event)) else {
        return (0, Vec::new());
    };
    if outcome.is_err() && carrier.is_redundant {
        return (1, vec![format!("sync {failing} failed on one device, and then: {outcome:?}")]);
    }
    let behind = (from..=story.log.entries.len(), FAILED_ROUNDS);
    let bad =
        BLOCK_BYTES.map(|block_bytes| cuts(&story, seed, block_bytes, behind.clone(), &[Harm::SyncFailed])).concat();
    (FAILED_ROUNDS * BLOCK_BYTES.len() as u64, bad)
}

/// Returns whether file systems can be mounted under the recorder. Traced programs like fusermount3 do not get the
/// privileges of their files, so root is needed.
fn is_here() -> bool {
    let is_here =
        rustix::process::geteuid().is_root() && File::options().read(true).write(true).open("/dev/fuse").is_ok();
    if !is_here {
        eprintln!("skipped: power cuts under mounted file systems (they take root and /dev/fuse)");
    }
    is_here && is_available()
}

/// Returns whether a file system is on plain files, not on images.
fn is_on_files(carrier: &Carrier) -> bool {
    carrier.drive.is_none()
}

/// Cuts each file system for which `is_meant` holds, by `cut`, once for each seed.
fn survive(
    test: &str,
    is_meant: fn(&Carrier) -> bool,
    cut: impl Fn(&Carrier, u64) -> (u64, Vec<String>),
    mut seeds: impl FnMut(&mut dyn FnMut(u64)),
) {
    let wanted = std::env::var("IMBREX_POWERCUT_CARRIERS").ok();
    let is_wanted =
        |carrier: &&Carrier| wanted.as_ref().is_none_or(|words| words.split(',').any(|word| word == carrier.name));
    let mut failed = Vec::new();
    for carrier in CARRIERS.iter().filter(is_wanted).filter(|carrier| is_meant(carrier)) {
        seeds(&mut |seed| {
            let (rounds, bad) = cut(carrier, seed);
            eprintln!("| {} | seed {seed} | {rounds} rounds | {} bad |", carrier.name, bad.len());
            if let Some(first) = bad.first() {
                let variables = format!(
                    "IMBREX_POWERCUT_CARRIERS={} IMBREX_POWERCUT_SEED={seed} IMBREX_POWERCUT_SECONDS=0",
                    carrier.name
                );
                eprintln!(
                    "{first}\n  {variables} cargo test -p imbrex-cli --test all -- {test} --include-ignored --nocapture"
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
        survive("file_systems::what_was_fsynced_survives_the_hosts_power_cut", |_| true, cut, |each| each(seed()));
    }
}

#[test]
#[ignore = "takes an hour a carrier"]
fn long_what_was_fsynced_survives_the_hosts_power_cut() {
    if is_here() {
        survive(
            "file_systems::long_what_was_fsynced_survives_the_hosts_power_cut",
            |_| true,
            cut,
            |each| long(0, each),
        );
    }
}

#[test]
fn a_fault_of_one_device_is_found_and_made_good_where_another_has_it() {
    if is_here() {
        survive(
            "file_systems::a_fault_of_one_device_is_found_and_made_good_where_another_has_it",
            is_on_files,
            spoil,
            |each| {
                each(seed());
            },
        );
    }
}

#[test]
#[ignore = "takes an hour a carrier"]
fn long_a_fault_of_one_device_is_found_and_made_good_where_another_has_it() {
    if is_here() {
        survive(
            "file_systems::long_a_fault_of_one_device_is_found_and_made_good_where_another_has_it",
            is_on_files,
            spoil,
            |each| {
                long(0, each);
            },
        );
    }
}

#[test]
fn what_was_fsynced_before_a_failed_sync_survives() {
    if is_here() {
        survive(
            "file_systems::what_was_fsynced_before_a_failed_sync_survives",
            |_| true,
            fail_sync,
            |each| each(seed()),
        );
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
            let story = Story { log: log.clone(), files: story.files.clone(), is_redundant: false };
            !cuts(&story, 1, 512, (*at..=end, ROUNDS), &[Harm::Nothing]).is_empty()
        };
        let caught = (0..SEEDS).find(|&seed| planted(seed).is_some_and(|log| is_caught(&log)));
        let seed = caught.unwrap_or_else(|| panic!("{plant:?} is caught in none of {SEEDS} logs"));
        eprintln!("{}, {plant:?}: caught in log {seed}", CARRIERS[0].name);
    }
}
