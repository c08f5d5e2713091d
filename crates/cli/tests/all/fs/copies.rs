//! Goal: a file system opens neither of two copies of one device, and reports when the file of a device has lost its
//! path. Method: snapshots in the folder of their originals; files that are removed and renamed while they are mounted.

use std::fs;
use std::path::Path;

use super::common::{Bench, failure, has_fuse, imbrex, json, text, word};

/// Asserts that the command is refused with a message that names both paths.
fn refused(words: &[&str], one: &Path, other: &Path) {
    let (code, said) = failure(words);
    assert_eq!(code, Some(1), "{words:?}: {said}");
    for part in [word(one), word(other), "one is a copy of the other", "moved to another folder"] {
        assert!(said.contains(part), "{words:?}: no '{part}' in {said}");
    }
}

#[test]
fn two_copies_of_a_drive_of_an_array_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let names = ["drive0", "drive1", "drive2"];
    for name in names {
        text(&["drive", "create", word(&at(name)), "--drive", "strict-append"]);
    }
    let meta = at("meta");
    let mut words =
        vec!["fs", "mkfs", "--store", "log", "--parity", "1", "--meta", word(&meta), "--meta-size", "64MiB"];
    let images = names.map(at);
    words.extend(images.iter().map(|image| word(image)));
    text(&words);
    text(&["fs", "check", word(&meta)]);
    let copy = at("copy");
    text(&["drive", "snapshot", word(&images[1]), word(&copy)]);
    for command in ["check", "dump", "clean"] {
        refused(&["fs", command, word(&meta)], &images[1], &copy);
    }
    refused(&["fs", "check", word(&images[1])], &images[1], &copy);
    refused(&["fs", "check", word(&copy)], &images[1], &copy);
    refused(&["fs", "check", word(&meta), word(&copy), word(&images[1])], &images[1], &copy);
    // In another folder the copy has no effect, unless it is given.
    let away = at("away");
    fs::create_dir(&away).unwrap();
    fs::rename(&copy, away.join("copy")).unwrap();
    text(&["fs", "check", word(&meta)]);
    refused(&["fs", "check", word(&meta), word(&away.join("copy"))], &images[1], &away.join("copy"));
    // Likewise for the metadata.
    fs::copy(&meta, at("meta.copy")).unwrap();
    refused(&["fs", "check", word(&meta)], &meta, &at("meta.copy"));
    refused(&["fs", "check", word(&images[0])], &meta, &at("meta.copy"));
}

#[test]
fn a_copy_beside_a_file_system_of_several_devices_is_refused_and_beside_one_of_one_is_not() {
    let bench = Bench::blank("caveat-1g");
    let (meta, copy) = (bench.folder().join("meta"), bench.folder().join("copy"));
    text(&["fs", "mkfs", word(&bench.image), "--meta", word(&meta), "--meta-size", "64MiB"]);
    text(&["drive", "snapshot", word(&bench.image), word(&copy)]);
    for given in [&bench.image, &copy, &meta] {
        refused(&["fs", "check", word(given)], &bench.image, &copy);
    }
    fs::remove_file(&copy).unwrap();
    bench.check();

    // A file system on one device does not look for others: the copy can be opened.
    let alone = Bench::new("strict-append");
    let copy = alone.folder().join("copy");
    text(&["drive", "snapshot", word(&alone.image), word(&copy)]);
    alone.check();
    text(&["fs", "check", word(&copy)]);
}

#[test]
fn a_device_that_lost_its_path_is_told() {
    if !has_fuse() {
        return;
    }
    let bench = Bench::blank("caveat-1g");
    let meta = bench.folder().join("meta");
    text(&["fs", "mkfs", word(&bench.image), "--meta", word(&meta), "--meta-size", "64MiB"]);
    let mounted = bench.mount(&[]);
    let displaced = || json(&["fs", "stat", word(mounted.directory()), "--json"])["devices_displaced"].clone();
    assert_eq!(displaced(), serde_json::json!([]));
    fs::rename(&bench.image, bench.folder().join("renamed")).unwrap();
    fs::remove_file(&meta).unwrap();
    let found = displaced();
    let expected = [(word(&bench.image), "renamed"), (word(&meta), "removed")];
    assert_eq!(found.as_array().map(Vec::len), Some(2), "{found}");
    for (device, placement) in expected {
        let entry = serde_json::json!({ "device": device, "placement": placement });
        assert!(found.as_array().unwrap().contains(&entry), "{entry} is not in {found}");
    }
    let said = text(&["fs", "stat", word(mounted.directory())]);
    assert!(said.contains("was renamed while it is in use") && said.contains("was removed while"), "{said}");
    mounted.unmount();
}

/// A server in the foreground prints the warning on standard error.
#[test]
fn a_server_in_the_foreground_says_that_a_device_lost_its_path() {
    if !has_fuse() {
        return;
    }
    let bench = Bench::new("strict-append");
    let log = bench.folder().join("log");
    let mut server = std::process::Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(["fs", "mount", "--foreground", word(&bench.image), word(&bench.directory)])
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let said = |part: &str| {
        imbrex_testkit::patience::until(part, || fs::read_to_string(&log).unwrap().contains(part).then_some(()));
    };
    said("is mounted on");
    fs::remove_file(&bench.image).unwrap();
    said("was removed while it is in use");
    said("copy its files to another file system");
    assert!(imbrex(&["fs", "umount", word(&bench.directory)]).status.success());
    server.wait().unwrap();
}
