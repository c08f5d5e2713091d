//! Goal: a full disk of the host costs a mounted file system nothing. Writes are refused, what was written can be read, `fs umount`
//! says what is missing, and the process that serves goes on once there is room. Method: images, and a file for metadata, on a
//! small file system in memory that fills while files are written; one test a store.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use imbrex_testkit::patience::until;
use imbrex_testkit::tmpfs::Tmpfs;

use crate::common::*;

const FILE_BYTES: usize = 3 << 20;

/// What the file of this number holds.
fn contents(number: u64) -> Vec<u8> {
    (0..FILE_BYTES as u64 / 8).flat_map(|word| (number << 32 | word).to_le_bytes()).collect()
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

/// Fills the host's disk by way of a file system on `drives` of the profile `drive`, with `meta`, and makes room again.
fn fills_and_goes_on(store: &str, drive: &str, drives: usize, with_metadata: bool) {
    let Some(host) = has_fuse().then(|| Tmpfs::mounted(96 << 10, "a full disk of the host")).flatten() else { return };
    let at = |name: &str| host.path().join(name).display().to_string();
    let (filler, directory) = (host.path().join("filler"), host.path().join("mnt"));
    std::fs::write(&filler, vec![1; 40 << 20]).expect("there is room yet");
    std::fs::create_dir(&directory).expect("a directory");
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
    let place = word(&directory);
    let mut mount = vec!["fs", "mount"];
    mount.extend(devices.iter().map(String::as_str).chain([place]));
    text(&mount);
    let status = || json(&["fs", "stat", place, "--json"]);
    let process = status()["process"].clone();

    let mut files = 0;
    let refused = loop {
        match write(&directory, files) {
            Ok(()) => files += 1,
            Err(error) => break error,
        }
        assert!(files < 40, "{store}: a disk of 96 MiB never filled");
    };
    assert_eq!(refused.raw_os_error(), Some(libc::ENOSPC), "{store}: {refused}");
    assert!(files > 2, "{store}: only {files} files were written");
    let full = status()["devices_on_full_disks"].clone();
    assert!(full.as_array().is_some_and(|devices| !devices.is_empty()), "{store}: {full}");
    let refused = write(&directory, files + 1).expect_err("it is still full");
    assert_eq!(refused.raw_os_error(), Some(libc::ENOSPC), "{store}: {refused}");
    compare(&directory, files);
    let (code, words) = failure(&["fs", "umount", place]);
    assert!(
        code == Some(1) && words.contains("is full: nothing more is written until there is room"),
        "{store}: {words}"
    );
    assert!(words.contains("free some of that disk"), "{store}: {words}");
    assert!(is_mounted(&directory));

    std::fs::remove_file(&filler).expect("it is ours");
    until("room", || imbrex(&["fs", "sync", place]).status.success().then_some(()));
    // The refused files hold a part of their contents, and are written again.
    for number in [files, files + 1] {
        until("a file", || write(&directory, number).is_ok().then_some(()));
    }
    files += 2;
    compare(&directory, files);
    assert_eq!(status()["devices_on_full_disks"], serde_json::json!([]), "{store}");
    assert_eq!(status()["process"], process, "{store}: the process that served it still does");
    until("an end", || {
        let is_done = imbrex(&["fs", "umount", place]).status.success();
        std::thread::sleep(Duration::from_millis(if is_done { 0 } else { 50 }));
        is_done.then_some(())
    });
    let mut check = vec!["fs", "check", "--json"];
    check.extend(devices.iter().map(String::as_str));
    let checked = json(&check);
    assert_eq!(checked["is_whole"], true, "{store}: {checked}");
    text(&mount);
    compare(&directory, files);
    let unmounted = Command::new(env!("CARGO_BIN_EXE_imbrex")).args(["fs", "umount", "-q", place]).status();
    assert!(unmounted.is_ok_and(|status| status.success()), "{store}: it cannot be unmounted");
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
