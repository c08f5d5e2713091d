//! Goal: on a full disk of the host a mounted file system loses nothing. Writes are refused, written data can be read,
//! `fs umount` names the cause, and the serving process continues once there is space. Method: images, and a file for
//! metadata, on a small file system in memory that fills while files are written; one test per store.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use imbrex_testkit::fill::numbered_words;
use imbrex_testkit::patience::{PATIENCE, until};
use imbrex_testkit::tmpfs::Tmpfs;

use super::common::*;

const FILE_BYTES: usize = 3 << 20;
/// Size of a file that takes space at first.
const FILLER_BYTES: u64 = 40 << 20;
const WRITERS: usize = 4;

/// Returns the contents of the file with this number.
fn contents(number: u64) -> Vec<u8> {
    numbered_words(number, FILE_BYTES)
}

/// Writes a file and makes it durable.
fn write(directory: &Path, number: u64) -> std::io::Result<()> {
    let mut file = File::create(directory.join(format!("f{number}")))?;
    file.write_all(&contents(number))?;
    file.sync_all()
}

fn compare(directory: &Path, files: u64) {
    for number in 0..files {
        let found = std::fs::read(directory.join(format!("f{number}"))).expect("it can be read");
        assert!(found == contents(number), "file {number} of {files} has other bytes");
    }
}

/// A file system whose devices lie on a small disk of the host, a part of which a filler file takes.
struct SmallHost {
    disk: Tmpfs,
    store: &'static str,
    devices: Vec<String>,
}

impl SmallHost {
    /// Makes the file system, on `drives` drives of the profile `drive`, and mounts it. Without the privileges it
    /// prints that the test is skipped.
    fn mounted(store: &'static str, drive: &str, drives: usize, with_metadata: bool) -> Option<SmallHost> {
        let disk = has_fuse().then(|| Tmpfs::mounted(96 << 10, "a full disk of the host")).flatten()?;
        let at = |name: &str| disk.path().join(name).display().to_string();
        std::fs::write(at("filler"), vec![1; FILLER_BYTES as usize]).expect("there is room yet");
        std::fs::create_dir(at("mnt")).expect("a directory");
        let mut devices: Vec<String> = (0..drives).map(|number| at(&format!("drive-{number}"))).collect();
        devices.iter().for_each(|image| drop(text(&["drive", "create", image, "--drive", drive])));
        let mut make = vec!["fs", "mkfs", "--store", store];
        make.extend(devices.iter().map(String::as_str));
        let meta = at("meta");
        if with_metadata {
            File::create(&meta).and_then(|file| file.set_len(16 << 20)).expect("it is sparse");
            make.extend(["--meta", &meta]);
        }
        text(&make);
        if with_metadata {
            devices.insert(0, meta.clone());
        }
        let host = SmallHost { disk, store, devices };
        host.mount();
        Some(host)
    }

    fn directory(&self) -> PathBuf {
        self.disk.path().join("mnt")
    }

    fn mount(&self) {
        let mut mount = vec!["fs", "mount"];
        mount.extend(self.devices.iter().map(String::as_str));
        let directory = self.directory();
        mount.push(word(&directory));
        text(&mount);
    }

    fn status(&self) -> serde_json::Value {
        json(&["fs", "stat", word(&self.directory()), "--json"])
    }

    /// Writes files with numbers from 0 on until the disk is full. Returns the number of files written.
    fn fill(&self) -> u64 {
        let (mut files, store) = (0, self.store);
        let refused = loop {
            match write(&self.directory(), files) {
                Ok(()) => files += 1,
                Err(error) => break error,
            }
            assert!(files < 40, "{store}: a disk of 96 MiB never filled");
        };
        assert_eq!(refused.raw_os_error(), Some(libc::ENOSPC), "{store}: {refused}");
        assert!(files > 2, "{store}: only {files} files were written");
        files
    }

    /// Frees space by truncating the filler file to `bytes`.
    fn shrink_filler(&self, bytes: u64) {
        let filler = File::options().write(true).open(self.disk.path().join("filler"));
        filler.and_then(|filler| filler.set_len(bytes)).expect("it is ours");
    }

    /// Unmounts and checks the file system; then reads the first `files` files.
    fn end(&self, files: u64) {
        let (directory, store) = (self.directory(), self.store);
        let place = word(&directory);
        until("an end", || {
            let is_done = imbrex(&["fs", "umount", place]).status.success();
            std::thread::sleep(Duration::from_millis(if is_done { 0 } else { 50 }));
            is_done.then_some(())
        });
        let mut check = vec!["fs", "check", "--json"];
        check.extend(self.devices.iter().map(String::as_str));
        let checked = json(&check);
        assert_eq!(checked["is_whole"], true, "{store}: {checked}");
        self.mount();
        compare(&directory, files);
        text(&["fs", "umount", "-q", place]);
    }
}

/// Fills the disk of the host, and frees space again.
fn fills_and_goes_on(store: &'static str, drive: &str, drives: usize, with_metadata: bool) {
    let Some(host) = SmallHost::mounted(store, drive, drives, with_metadata) else { return };
    let directory = host.directory();
    let place = word(&directory);
    let process = host.status()["process"].clone();
    let mut files = host.fill();
    let full = host.status()["devices_on_full_disks"].clone();
    assert!(full.as_array().is_some_and(|devices| !devices.is_empty()), "{store}: {full}");
    let refused = write(&directory, files + 1).expect_err("it is still full");
    assert_eq!(refused.raw_os_error(), Some(libc::ENOSPC), "{store}: {refused}");
    compare(&directory, files);
    let (code, words) = failure(&["fs", "umount", place]);
    assert!(
        code == Some(1) && words.contains("is full: nothing more is written until there is room"),
        "{store}: {words}"
    );
    assert!(words.contains("free space on that disk"), "{store}: {words}");
    assert!(is_mounted(&directory));

    host.shrink_filler(0);
    until("room", || imbrex(&["fs", "sync", place]).status.success().then_some(()));
    // The refused files hold a part of their contents, and are rewritten.
    for number in [files, files + 1] {
        until("a file", || write(&directory, number).is_ok().then_some(()));
    }
    files += 2;
    compare(&directory, files);
    assert_eq!(host.status()["devices_on_full_disks"], serde_json::json!([]), "{store}");
    assert_eq!(host.status()["process"], process, "{store}: the process that served it still does");
    host.end(files);
}

/// Runs `WRITERS` threads that write files again and again while the disk is full, and one that does every other
/// operation on a file; then frees space in small steps.
fn refuses_all_at_once(store: &'static str, drive: &str, drives: usize, with_metadata: bool) {
    let Some(host) = SmallHost::mounted(store, drive, drives, with_metadata) else { return };
    let directory = host.directory();
    let files = host.fill();
    let is_over = AtomicBool::new(false);
    let attempts: Vec<AtomicU64> = (0..=WRITERS).map(|_| AtomicU64::new(0)).collect();
    let written: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let total = |of: &[AtomicU64]| of.iter().map(|it| it.load(SeqCst)).collect::<Vec<u64>>();
    let shared = &directory;
    std::thread::scope(|scope| {
        for (writer, (attempts, written)) in attempts.iter().zip(&written).enumerate() {
            let number = files + writer as u64;
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(SeqCst) {
                    let is_written = write(shared, number).is_ok();
                    written.fetch_add(u64::from(is_written), SeqCst);
                    attempts.fetch_add(1, SeqCst);
                }
            });
        }
        scope.spawn(|| {
            while !is_over.load(SeqCst) {
                change_everything(shared);
                attempts[WRITERS].fetch_add(1, SeqCst);
            }
        });
        let moves_on = |what: &str, counts: &[AtomicU64], by: u64| {
            let before = total(counts);
            let begun = Instant::now();
            while !total(counts).iter().zip(&before).all(|(now, before)| *now >= before + by) {
                if begun.elapsed() > PATIENCE {
                    // Without these lines the threads would never end.
                    is_over.store(true, SeqCst);
                    host.disk.resize(2 << 20);
                    panic!("{store}, {what}: {before:?}, and 300 s later {:?}", total(counts));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        moves_on("each call returns", &attempts, 5);
        for step in 1..=10 {
            host.shrink_filler(FILLER_BYTES - step * (FILLER_BYTES / 10));
            moves_on("each call returns while there is some space", &attempts, 2);
        }
        // Blocks that moved files leave behind remain allocated in the images.
        host.disk.resize(2 << 20);
        moves_on("each file is written", &written, 1);
        is_over.store(true, SeqCst);
    });
    for number in files..files + WRITERS as u64 {
        until("a file", || write(&directory, number).is_ok().then_some(()));
    }
    host.end(files + WRITERS as u64);
}

/// Makes calls that may be refused for lack of space, but must not wait for space.
fn change_everything(directory: &Path) {
    let (one, other) = (directory.join("one"), directory.join("other"));
    let refused = |outcome: std::io::Result<()>| {
        let code = outcome.as_ref().err().and_then(std::io::Error::raw_os_error);
        assert!(matches!(code, None | Some(libc::ENOSPC | libc::ENOENT | libc::EEXIST)), "{outcome:?}");
    };
    refused(std::fs::write(&one, b"some"));
    let file = File::options().write(true).create(true).truncate(false).open(&one);
    refused(file.and_then(|file| {
        file.set_len(9 << 20)?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 1 << 20)?;
        rustix::fs::fallocate(
            &file,
            rustix::fs::FallocateFlags::KEEP_SIZE | rustix::fs::FallocateFlags::PUNCH_HOLE,
            0,
            1 << 20,
        )?;
        rustix::fs::fsetxattr(&file, "user.some", &[7; 999], rustix::fs::XattrFlags::empty())?;
        file.set_len(0)
    }));
    refused(std::fs::rename(&one, &other));
    refused(std::fs::hard_link(&other, &one));
    refused(std::fs::create_dir(directory.join("folder")));
    refused(std::fs::remove_dir(directory.join("folder")));
    refused(std::fs::remove_file(&other));
    assert!(std::fs::read_dir(directory).is_ok_and(|entries| entries.count() >= 3), "the directory can be read");
}

#[test]
fn a_caveat_store_goes_on_once_the_hosts_disk_has_room() {
    fills_and_goes_on("caveat", "caveat-1g", 1, false);
}

#[test]
fn a_store_in_zones_goes_on_once_the_hosts_disk_has_room() {
    fills_and_goes_on("strict-append", "strict-append", 1, false);
    fills_and_goes_on("strict-append", "strict-append", 1, true);
}

#[test]
fn an_array_goes_on_once_the_hosts_disk_has_room() {
    fills_and_goes_on("log", "strict-append", 3, true);
}

#[test]
fn no_call_waits_while_the_hosts_disk_is_full() {
    refuses_all_at_once("caveat", "caveat-1g", 1, false);
    refuses_all_at_once("strict-append", "strict-append", 1, true);
    refuses_all_at_once("log", "strict-append", 3, true);
}
