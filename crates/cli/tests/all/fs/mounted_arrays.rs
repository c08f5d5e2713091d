//! Goal: operations on a mounted array (drives replaced and added, copies of the metadata lost and replaced, damage
//! repaired, zones emptied) are done by the user's commands while programs write. A drive that fails during a write
//! causes no error in an application, and a spare replaces it without a command. Method: images and plain files as
//! drives, and a small file system for a drive that fails.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::common::{failure, has_fuse, imbrex, is_mounted, json, shell, text, word};

/// Drives, two devices for the metadata, and a directory to mount on.
struct Bench {
    folder: tempfile::TempDir,
    drives: Vec<PathBuf>,
    metas: [PathBuf; 2],
    directory: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let bench = Bench {
            drives: (0..4).map(|number| at(&format!("drive{number}"))).collect(),
            metas: [at("meta0"), at("meta1")],
            directory: at("mnt"),
            folder,
        };
        std::fs::create_dir(&bench.directory).unwrap();
        for drive in &bench.drives {
            file(drive, 256 << 20);
        }
        bench
    }

    fn mkfs(&self, more: &[&str]) {
        let [first, second] = &self.metas;
        let mut words =
            vec!["fs", "mkfs", "--store", "log", "--parity", "1", "--meta", word(first), "--meta", word(second)];
        words.extend(["--meta-size", "64MiB"]);
        words.extend(more);
        words.extend(self.drives.iter().map(|drive| word(drive)));
        text(&words);
    }

    /// Mounts the array by one of its drives alone: the others lie in the same folder. Returns the messages.
    fn mount(&self, more: &[&Path]) -> String {
        let mut words = vec!["fs", "mount", word(&self.drives[3])];
        words.extend(more.iter().map(|path| word(path)));
        words.push(word(&self.directory));
        let output = imbrex(&words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    }

    fn umount(&self) {
        text(&["fs", "umount", word(&self.directory)]);
    }

    fn stat(&self) -> Value {
        json(&["fs", "stat", word(&self.directory), "--json"])
    }

    /// Waits until `is_so` holds for the status of the file system.
    fn until(&self, what: &str, mut is_so: impl FnMut(&Value) -> bool) {
        let began = Instant::now();
        while !is_so(&self.stat()) {
            assert!(began.elapsed() < Duration::from_secs(100), "{what}: {}", self.stat());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn new_file(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        file(&path, 256 << 20);
        path
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if is_mounted(&self.directory) {
            let _ = rustix::mount::unmount(&self.directory, rustix::mount::UnmountFlags::DETACH);
        }
    }
}

fn file(path: &Path, bytes: u64) {
    std::fs::File::create_new(path).unwrap().set_len(bytes).unwrap();
}

fn contents(number: usize) -> Vec<u8> {
    (0..number % 9 * 70_000 + 10).map(|at| (at / 7 + number) as u8).collect()
}

fn write(directory: &Path, number: usize) {
    std::fs::write(directory.join(format!("f{number}")), contents(number)).unwrap();
}

fn compare(directory: &Path, numbers: std::ops::Range<usize>) {
    for number in numbers {
        assert!(std::fs::read(directory.join(format!("f{number}"))).unwrap() == contents(number), "f{number}");
    }
}

/// A thread that writes files one after the other, each made durable, until it is stopped. It returns the end of the
/// range of file numbers.
struct Writer {
    is_over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<usize>,
}

impl Writer {
    fn start(directory: &Path, first: usize) -> Writer {
        let (is_over, directory) = (Arc::new(AtomicBool::new(false)), directory.to_path_buf());
        let told = is_over.clone();
        let thread = std::thread::spawn(move || {
            let mut number = first;
            while !told.load(Ordering::Relaxed) {
                write(&directory, number);
                std::fs::File::open(directory.join(format!("f{number}"))).unwrap().sync_all().unwrap();
                number += 1;
            }
            number
        });
        Writer { is_over, thread }
    }

    fn end(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

#[test]
fn drives_and_copies_are_replaced_and_added_and_damage_is_repaired_beside_a_writer() {
    if !has_fuse() {
        return;
    }
    let bench = Bench::new();
    bench.mkfs(&[]);
    bench.mount(&[]);
    let directory = bench.directory.as_path();
    (0..40).for_each(|number| write(directory, number));
    let writer = Writer::start(directory, 40);

    let new = bench.new_file("new");
    let replaced = json(&["fs", "replace", word(directory), "--drive", "1", "--with", word(&new), "--json"]);
    assert!(replaced["drive"] == 1 && replaced["bytes"].as_u64() > Some(0), "{replaced}");
    let another = bench.new_file("another");
    let added = json(&["fs", "add", word(directory), "--drive", word(&another), "--json"]);
    assert!(added["bytes"].as_u64() > Some(100 << 20), "{added}");
    // Blocks of a drive are altered without the program's knowledge, all but its superblock.
    let drive = std::fs::OpenOptions::new().write(true).open(&bench.drives[2]).unwrap();
    for at in ((1 << 20)..(256 << 20)).step_by(40 << 10) {
        drive.write_all_at(&[0xee; 20 << 10], at).unwrap();
    }
    let scrubbed = json(&["fs", "scrub", word(directory), "--repair", "--json"]);
    assert!(scrubbed["repaired_rows"].as_u64() > Some(0), "{scrubbed}");
    assert_eq!(scrubbed["lost"], serde_json::json!([]), "{scrubbed}");
    let copy = bench.new_file("copy");
    let copied = json(&["fs", "replace", word(directory), "--copy", "0", "--with", word(&copy), "--json"]);
    assert!(copied["bytes"].as_u64() >= Some(60 << 20), "{copied}");
    (0..20).for_each(|number| std::fs::remove_file(directory.join(format!("f{number}"))).unwrap());
    json(&["fs", "clean", word(directory), "--json"]);

    let end = writer.end();
    compare(directory, 20..end);
    bench.umount();
    // The replaced drive and device are reported; without another drive and the other copy all files are readable.
    for away in [&bench.metas[1], &bench.drives[0]] {
        std::fs::rename(away, away.with_extension("away")).unwrap();
        std::fs::create_dir_all(bench.folder.path().join("far")).unwrap();
        std::fs::rename(away.with_extension("away"), bench.folder.path().join("far").join(away.file_name().unwrap()))
            .unwrap();
    }
    let said = bench.mount(&[]);
    for part in ["drive1 is no longer part", "meta0 is no longer part", "copy 1 of the metadata", "drive 0"] {
        assert!(said.contains(part), "'{part}' is not in: {said}");
    }
    compare(directory, 20..end);
    bench.umount();
    // The copy that was absent is present again, and is brought up to date.
    std::fs::rename(bench.folder.path().join("far/meta1"), &bench.metas[1]).unwrap();
    let said = bench.mount(&[]);
    assert!(said.contains("meta1 holds outdated metadata"), "{said}");
    bench.until("the copies", |status| {
        status["metadata_copies"].as_array().unwrap().iter().all(|copy| copy["state"] == "up to date")
    });
    bench.umount();
}

#[test]
fn a_drive_that_fails_in_mid_write_is_replaced_by_a_spare_and_no_application_hears_of_it() {
    let is_root = rustix::process::getuid().is_root();
    if !has_fuse() || !is_root {
        eprintln!("skipped: a drive that fails is a file on a file system of little room, which root alone can make");
        return;
    }
    let mut bench = Bench::new();
    // The drive seems to have 256 MiB, and fails all writes once it holds 12.
    let little = bench.folder.path().join("little");
    std::fs::create_dir(&little).unwrap();
    shell(&little, "mount -t tmpfs -o size=12m none .");
    bench.drives[1] = little.join("drive");
    file(&bench.drives[1], 256 << 20);
    let spare = bench.new_file("spare");
    bench.mkfs(&["--spare", word(&spare)]);
    let failing = bench.drives[1].clone();
    bench.mount(&[&failing]);
    let directory = bench.directory.as_path();
    let status = bench.stat();
    assert_eq!(status["spares"].as_array().map(Vec::len), Some(1), "{status}");
    let writer = Writer::start(directory, 0);
    bench.until("the spare takes its place", |status| {
        let is_used = status["spares"].as_array().is_some_and(Vec::is_empty);
        is_used && status["replacing"].is_null() && status["drives_missing"].as_array().is_some_and(Vec::is_empty)
    });
    let end = writer.end();
    assert!(end > 20, "the writer went on: {end}");
    compare(directory, 0..end);
    bench.umount();
    // Without the failed drive, and without one other, all files are readable.
    shell(bench.folder.path(), "umount little");
    std::fs::rename(&bench.drives[0], bench.folder.path().join("little/away")).unwrap();
    let said = bench.mount(&[]);
    assert!(said.contains("drive 0") && !said.contains("drive 1 "), "{said}");
    compare(directory, 0..end);
    bench.umount();
}

/// Goal: the outcome of a scrub reaches the command that ordered it in full, however long it is, and the status of the
/// file system stays short. Method: two of three data blocks in each row of an array are altered, so that thousands of
/// ranges of a file are lost; their list is longer than an extended attribute can be.
#[test]
fn thousands_of_lost_ranges_are_named_and_the_status_still_fits() {
    if !has_fuse() {
        return;
    }
    const MARK: &[u8] = b"a block of the file ";
    let number_of = |block: &[u8]| {
        let number = block.strip_prefix(MARK)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*number))
    };
    let bench = Bench::new();
    bench.mkfs(&[]);
    bench.mount(&[]);
    let directory = word(&bench.directory);
    let block = |number: u64| {
        let mut block = [MARK, &number.to_le_bytes()].concat();
        block.resize(4096, number as u8);
        block
    };
    std::fs::write(bench.directory.join("file"), (0..9000).flat_map(block).collect::<Vec<u8>>()).unwrap();
    text(&["fs", "sync", directory]);
    for drive in &bench.drives {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(drive).unwrap();
        let mut held = vec![0; 1 << 20];
        for at in (0..256 << 20).step_by(held.len()) {
            file.read_exact_at(&mut held, at).unwrap();
            for (place, there) in held.chunks(4096).enumerate() {
                if number_of(there).is_some_and(|number| number % 3 != 0) {
                    file.write_all_at(&[0xee; 4096], at + place as u64 * 4096).unwrap();
                }
            }
        }
    }
    for _ in 0..2 {
        let scrubbed = imbrex(&["fs", "scrub", directory, "--repair", "--json"]);
        let said = String::from_utf8_lossy(&scrubbed.stderr).into_owned();
        assert_eq!(scrubbed.status.code(), Some(3), "{said}");
        assert!(scrubbed.stdout.len() > 128 << 10, "the list is too short for this test: {}", scrubbed.stdout.len());
        let found: Value = serde_json::from_slice(&scrubbed.stdout).unwrap();
        let lost = found["lost"].as_array().unwrap();
        let bytes: u64 = lost.iter().map(|range| range["bytes"].as_u64().unwrap()).sum();
        assert!(lost.len() > 2000 && bytes > 5000 * 4096, "{} ranges of {bytes} bytes", lost.len());
        assert!(lost.iter().all(|range| range["path"] == "/file"));
        let status = bench.stat();
        assert_eq!(status["task"]["summary"]["lost"], lost.len(), "{status}");
        assert!(status.to_string().len() < 16 << 10 && status["shortened"].is_null(), "{status}");
    }
    assert!(text(&["fs", "stat", directory]).contains("last scrub"));
    bench.umount();
}

/// Goal: a scrub says that a copy of the metadata is lost, and does not call the file system whole. Method: one copy is
/// on a disk that becomes full.
#[test]
fn a_scrub_names_a_copy_of_the_metadata_that_is_lost() {
    if !has_fuse() || !rustix::process::getuid().is_root() {
        eprintln!("skipped: only root can make a file system of little room");
        return;
    }
    let mut bench = Bench::new();
    let little = bench.folder.path().join("little");
    std::fs::create_dir(&little).unwrap();
    shell(&little, "mount -t tmpfs -o size=8m none .");
    bench.metas[1] = little.join("meta1");
    bench.mkfs(&[]);
    let lost = bench.metas[1].clone();
    bench.mount(&[&lost]);
    let directory = bench.directory.as_path();
    (0..40).for_each(|number| write(directory, number));
    text(&["fs", "sync", word(directory)]);
    shell(&little, "dd if=/dev/zero of=filler bs=4k status=none || true");
    let is_lost = |status: &Value| {
        let copies = status["metadata_copies"].as_array().unwrap();
        copies.iter().any(|copy| copy["copy"] == 1 && copy["state"] == "lost")
    };
    let mut number = 40;
    bench.until("the copy is lost", |status| {
        // Until the copy counts as lost, writes may be refused because of the full disk.
        for name in number..number + 50 {
            let _ = std::fs::write(directory.join(format!("other{name}")), contents(name));
        }
        imbrex(&["fs", "sync", word(directory)]);
        number += 50;
        is_lost(status)
    });
    let scrubbed = imbrex(&["fs", "scrub", word(directory), "--repair"]);
    let said = String::from_utf8_lossy(&scrubbed.stdout).into_owned();
    assert_eq!(scrubbed.status.code(), Some(3), "{said}");
    assert!(said.contains("meta1: its copy of the metadata is lost and was not read"), "{said}");
    let copy = bench.new_file("copy");
    json(&["fs", "replace", word(directory), "--copy", "1", "--with", word(&copy), "--json"]);
    json(&["fs", "scrub", word(directory), "--repair", "--json"]);
    compare(directory, 0..40);
    bench.umount();
    shell(bench.folder.path(), "umount little");
}

#[test]
fn mistakes_with_a_mounted_array_are_answered() {
    if !has_fuse() {
        return;
    }
    let bench = Bench::new();
    bench.mkfs(&[]);
    bench.mount(&[]);
    let directory = word(&bench.directory);
    let fails = |words: &[&str], said: &[&str]| {
        let (found, text) = failure(words);
        assert_eq!(found, Some(1), "{words:?}: {text}");
        for part in said {
            assert!(text.contains(part), "{words:?}: '{part}' is not in: {text}");
        }
    };
    let small = bench.folder.path().join("small");
    file(&small, 1 << 20);
    fails(
        &["fs", "replace", directory, "--with", word(&small)],
        &["no drive of the array is missing", "--drive NUMBER"],
    );
    fails(&["fs", "replace", directory, "--drive", "1", "--with", word(&small)], &["small", "at least twice"]);
    fails(&["fs", "replace", directory, "--drive", "9", "--with", word(&small)], &["no drive of that number"]);
    fails(
        &["fs", "replace", directory, "--copy", "5", "--with", word(&small)],
        &["no copy of the metadata of that number"],
    );
    fails(
        &["fs", "replace", directory, "--copy", "0", "--with", word(&small)],
        &["has 256 blocks", "the metadata take"],
    );
    let inside = bench.directory.join("inside");
    file(&inside, 1 << 20);
    fails(&["fs", "add", directory, "--drive", word(&inside)], &["inside lies on the array itself"]);
    fails(&["fs", "replace", directory, "--copy", "0", "--with", word(&inside)], &["lies on the array itself"]);
    let beside = bench.directory.parent().expect("it lies in a folder");
    fails(
        &["fs", "replace", word(beside), "--copy", "0", "--with", word(&small)],
        &["no file system of Imbrex is mounted on", "findmnt"],
    );
    fails(&["fs", "add", directory, "--drive", "/nowhere"], &["/nowhere", "No such file"]);
    fails(&["fs", "add", directory, "--drive", word(&bench.drives[0])], &["drive0 is drive 0 of the array already"]);
    for (there, said) in
        [(&bench.drives[0], "drive0 is drive 0 of the array already"), (&bench.metas[1], "is copy 1 of the metadata")]
    {
        for place in [["--drive", "1"], ["--copy", "0"]] {
            let words = [&["fs", "replace", directory, "--with", word(there)], place.as_slice()].concat();
            fails(&words, &[said, "try: another device"]);
        }
    }
    let folder = word(bench.folder.path());
    fails(&["fs", "clean", folder], &["no file system of Imbrex is mounted on"]);
    bench.umount();
    // A drive with a damaged superblock is not used, and is named; the loss of both copies of the metadata is more than
    // the array can tolerate.
    let drive = std::fs::OpenOptions::new().write(true).open(&bench.drives[0]).unwrap();
    drive.write_all_at(&[0xee; 4096], 0).unwrap();
    let said = bench.mount(&[]);
    assert!(!said.contains("drive0"), "the second copy of its superblock is whole: {said}");
    bench.umount();
    drive.write_all_at(&[0xee; 8192], 0).unwrap();
    let said = bench.mount(&[&bench.drives[0]]);
    assert!(said.contains("drive0: holds no file system of Imbrex") && said.contains("drive 0 ("), "{said}");
    bench.umount();
    let meta = std::fs::OpenOptions::new().write(true).open(&bench.metas[0]).unwrap();
    meta.write_all_at(&[0xee; 8192], 0).unwrap();
    let said = bench.mount(&[]);
    assert!(said.contains("copy 0 of the metadata"), "{said}");
    bench.umount();
    // A file system that is not mounted gets a new copy in the same way.
    let copy = bench.new_file("copy");
    let meta = word(&bench.metas[1]);
    let copied = json(&["fs", "replace", meta, "--copy", "0", "--with", word(&copy), "--json"]);
    assert!(copied["copy"] == 0 && copied["bytes"].as_u64() >= Some(60 << 20), "{copied}");
    let said = bench.mount(&[]);
    assert!(!said.contains("of the metadata"), "{said}");
    bench.umount();
}

#[test]
fn the_kernel_reads_ahead_on_every_drive() {
    if !has_fuse() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root may set what the kernel reads ahead");
    }
    let bench = Bench::new();
    bench.mkfs(&[]);
    bench.mount(&[]);
    let number = std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(&bench.directory).unwrap());
    let place = format!("/sys/class/bdi/0:{}/read_ahead_kb", number & 0xff | number >> 12 & 0xfff00);
    let ahead = || std::fs::read_to_string(&place).unwrap().trim().parse::<u64>().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while ahead() < 4 * 2048 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(ahead(), 4 * 2048);
}

#[test]
fn a_spare_and_a_copy_that_are_not_there_are_told_with_what_to_do() {
    if !has_fuse() {
        return;
    }
    let bench = Bench::new();
    let spare = bench.new_file("spare");
    bench.mkfs(&["--spare", word(&spare)]);
    let said = bench.mount(&[]);
    assert!(!said.contains("is missing"), "{said}");
    assert_eq!(bench.stat()["spares_missing"].as_array().map(Vec::len), Some(0));
    bench.umount();
    let elsewhere = tempfile::tempdir().unwrap();
    for path in [&spare, &bench.metas[0]] {
        std::fs::rename(path, elsewhere.path().join(path.file_name().unwrap())).unwrap();
    }
    let said = bench.mount(&[]);
    assert!(said.contains("spare ") && said.contains("imbrex fs add --spare"), "{said}");
    assert!(said.contains("copy 0 of the metadata") && said.contains("imbrex fs salvage"), "{said}");
    assert_eq!(bench.stat()["spares_missing"].as_array().map(Vec::len), Some(1));
    bench.umount();
}
