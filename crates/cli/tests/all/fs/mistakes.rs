//! Goal: the message on a mistake gives the cause, the place and a remedy. Method: every mistake a user can make, each
//! written out here.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, PermissionsExt};

use imbrex_device::EmulatedDrive;

use super::common::{Bench, failure, has_fuse, imbrex, json, nobody, text, word};

/// Asserts that the command fails with `code` and a message that contains all of `said`.
fn fails(words: &[&str], code: i32, said: &[&str]) {
    let (found, text) = failure(words);
    assert_eq!(found, Some(code), "{words:?}: {text}");
    for part in said {
        assert!(text.contains(part), "{words:?}: '{part}' is not in: {text}");
    }
}

#[test]
fn devices_that_are_none_are_refused() {
    let bench = Bench::blank("strict-append");
    let image = word(&bench.image);
    let folder = word(bench.folder());
    fails(&["fs", "mkfs", "/nowhere/at/all.img"], 1, &["/nowhere/at/all.img is not there", "imbrex drive create"]);
    fails(&["fs", "mkfs", folder], 1, &["is a directory, not a device"]);
    for command in ["check", "stat", "dump", "clean"] {
        fails(&["fs", command, image], 1, &["holds no file system of Imbrex", "imbrex fs mkfs"]);
    }
    fails(&["fs", "mkfs", image, "--store", "tape"], 2, &["there is no store 'tape'", "strict-append, caveat"]);
    fails(&["fs", "mkfs", image, "--store", "caveat"], 1, &["is for caveat disks", "zoned"]);
    fails(&["fs", "mkfs", image, "--fit", "best"], 2, &["--fit is for store caveat"]);
    fails(&["fs", "mkfs", image, "--cleaner", "lazy"], 2, &["--cleaner=lazy", "greedy, cost-benefit, oldest"]);
    let linked = bench.folder().join("linked.img");
    std::os::unix::fs::symlink(&bench.image, &linked).unwrap();
    fails(&["fs", "mkfs", image, image], 2, &["is given twice"]);
    fails(&["fs", "mkfs", image, word(&linked)], 2, &[image, "given twice"]);
    // A refusal after the image was opened leaves it closed: a copy can be read.
    fails(&["fs", "mkfs", image, "--store", "caveat", "--force"], 1, &["is for caveat disks"]);
    let copy = bench.folder().join("copy.img");
    std::fs::copy(&bench.image, &copy).unwrap();
    fails(&["fs", "check", word(&copy)], 1, &["holds no file system of Imbrex"]);
    fails(&["fs", "mkfs", image, "--uuid", "7"], 2, &["--uuid"]);
    let meta = bench.folder().join("meta");
    fails(&["fs", "mkfs", image, "--meta", word(&meta)], 1, &["is not there", "--meta-size"]);
    let conventional = bench.folder().join("conventional.img");
    text(&["drive", "create", word(&conventional), "--drive", "cmr-7200"]);
    fails(
        &["fs", "mkfs", word(&conventional)],
        1,
        &["as conventional and drive-managed drives do", "imbrex drive create"],
    );
    let plain = bench.folder().join("plain");
    std::fs::File::create(&plain).and_then(|file| file.set_len(64 << 20)).unwrap();
    text(&["fs", "mkfs", word(&plain), "--store", "log"]);
    for seeds in ["1", "2"] {
        let words = ["fs", "bench", "lfs", word(&plain), "--file-size", "1MB", "--seeds", seeds];
        fails(&words, 1, &["no drive with a simulated time", "imbrex drive create"]);
    }
    let file = bench.folder().join("file");
    std::fs::write(&file, vec![1; 1 << 20]).unwrap();
    fails(&["fs", "mkfs", word(&file)], 1, &["as conventional and drive-managed drives do"]);
    fails(&["fs", "scrub", word(bench.folder())], 1, &["no file system of Imbrex is mounted"]);
    fails(&["fs", "stat", word(&file)], 1, &["holds no file system of Imbrex"]);
    text(&["fs", "mkfs", image]);
    fails(&["fs", "mkfs", image], 1, &["holds a file system of imbrex fs", "--force"]);
    let made = json(&["fs", "mkfs", image, "--force", "--json", "--uuid", "00000000-0000-0000-0000-00000000002a"]);
    assert_eq!(made["uuid"], "00000000-0000-0000-0000-00000000002a");
}

#[test]
fn mount_points_that_do_not_serve_are_refused() {
    if !has_fuse() {
        return;
    }
    let bench = Bench::new("strict-append");
    let (image, directory) = (word(&bench.image), word(&bench.directory));
    let missing = bench.folder().join("missing");
    fails(&["fs", "mount", image, word(&missing)], 1, &["is not there", "mkdir"]);
    fails(&["fs", "mount", image, image], 1, &["is not a directory"]);
    fails(&["fs", "mount", image, word(bench.folder())], 1, &["is not empty", "nonempty"]);
    fails(&["fs", "mount", image, directory, "-o", "speed=high"], 2, &["speed=high", "no such option"]);
    fails(&["fs", "mount", image, directory, "-o", "cleaner=lazy"], 1, &["cleaner=lazy"]);
    let of_caveat = ["fit is for store caveat, and this is strict-append"];
    fails(&["fs", "mount", image, directory, "-o", "fit=worst"], 1, &of_caveat);
    fails(&["fs", "mount", image, directory, "-o", "window=nowhere"], 2, &["nowhere", "window="]);
    fails(&["fs", "umount", directory], 1, &["no file system of Imbrex is mounted on"]);
    let mounted = bench.mount(&[]);
    for command in ["check", "clean", "dump", "stat", "mkfs"] {
        fails(&["fs", command, image], 1, &["in use by another process", "imbrex fs umount"]);
    }
    let second = Bench::new("caveat-1g");
    fails(&["fs", "mount", word(&second.image), directory], 1, &["something is mounted", "imbrex fs umount"]);
    let open = std::fs::File::create(mounted.path("open")).unwrap();
    fails(&["fs", "umount", directory], 1, &["is in use"]);
    drop(open);
    mounted.unmount();
}

#[test]
fn damage_is_named_and_has_an_exit_code_of_its_own() {
    let bench = Bench::blank("caveat-1g");
    let (image, meta) = (word(&bench.image).to_string(), bench.folder().join("meta"));
    text(&["fs", "mkfs", &image, "--meta", word(&meta), "--meta-size", "64MiB"]);
    bench.check();
    let file = OpenOptions::new().write(true).open(&meta).unwrap();
    for block in 0..2 {
        file.write_all_at(&[0xff], block * 4096 + 100).unwrap();
    }
    let output = imbrex(&["fs", "check", &image, word(&meta), "--json"]);
    let words = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{words}");
    assert!(words.contains("superblock is damaged"), "{words}");
}

#[test]
fn files_with_damaged_contents_are_named() {
    if !has_fuse() {
        return;
    }
    let bench = Bench::new("caveat-1g");
    let mounted = bench.mount(&[]);
    std::fs::create_dir(mounted.path("folder")).unwrap();
    std::fs::write(mounted.path("folder/whole"), vec![1; 1 << 20]).unwrap();
    std::fs::write(mounted.path("folder/victim"), vec![2; 1 << 20]).unwrap();
    mounted.unmount();
    let dumped = json(&["fs", "dump", word(&bench.image), "--json"]);
    let files = dumped["files"].as_array().unwrap();
    let victim = files.iter().find(|file| file["path"] == "/folder/victim").expect("it is there");
    let last = victim["extents"][0]["start"].as_u64().unwrap() + victim["extents"][0]["blocks"].as_u64().unwrap() - 1;
    // The write also destroys data behind the last block of the victim, as a caveat disk does.
    let mut drive = EmulatedDrive::open_file(&bench.image, false).unwrap();
    drive.write(last * 4096, &[3; 4096], true).unwrap();
    drive.shut_down().unwrap();
    drop(drive);
    let output = imbrex(&["fs", "check", word(&bench.image), "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let checked: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = checked["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["path"] == "/folder/victim"), "{checked}");
    let mounted = bench.mount(&["-o", "ro"]);
    let error = std::fs::read(mounted.path("folder/victim")).expect_err("wrong data is never returned as good");
    assert_eq!(error.raw_os_error(), Some(5));
    let output = imbrex(&["fs", "scrub", word(mounted.directory()), "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let scrubbed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let last_block = ((1 << 20) - 4096).to_string();
    for finding in scrubbed["findings"].as_array().unwrap() {
        assert_eq!(finding["path"], "/folder/victim", "{scrubbed}");
        assert!(finding["text"].as_str().unwrap().contains(&last_block), "{scrubbed}");
    }
    assert_eq!((&scrubbed["files"], &scrubbed["is_whole"]), (&2.into(), &false.into()), "{scrubbed}");
    mounted.unmount();
}

#[test]
fn files_that_may_not_be_opened_are_counted_and_named_by_a_scrub() {
    if !has_fuse() {
        return;
    }
    let bench = Bench::new("strict-append");
    std::fs::set_permissions(bench.folder(), PermissionsExt::from_mode(0o755)).unwrap();
    let mounted = bench.mount(&["-o", "allow_other"]);
    for (name, mode) in [("open", 0o644), ("shut", 0o600), ("shut too", 0o600)] {
        std::fs::write(mounted.path(name), vec![1; 10_000]).unwrap();
        std::fs::set_permissions(mounted.path(name), PermissionsExt::from_mode(mode)).unwrap();
    }
    let directory = word(mounted.directory()).to_string();
    let scrub = |more: &[&str]| {
        let output = nobody(&[&[env!("CARGO_BIN_EXE_imbrex"), "fs", "scrub", &directory], more].concat());
        let [said, why] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert_eq!(output.status.code(), Some(1), "{said}{why}");
        assert!(why.contains("2 files and directories could not be opened") && why.contains("as root"), "{why}");
        assert!(why.contains("/mnt/shut") && why.contains("Permission denied"), "{why}");
        said
    };
    let said = scrub(&[]);
    assert!(said.contains("no damage in the files that were read; 1 files") && !said.contains("whole"), "{said}");
    let found: serde_json::Value = serde_json::from_str(&scrub(&["--json"])).unwrap();
    assert_eq!(
        (&found["is_whole"], &found["unread"], &found["files"]),
        (&false.into(), &2.into(), &1.into()),
        "{found}"
    );
    // An unreadable directory counts as one, whatever its contents.
    std::fs::create_dir(mounted.path("folder")).unwrap();
    std::fs::rename(mounted.path("shut"), mounted.path("folder/shut")).unwrap();
    std::fs::set_permissions(mounted.path("folder"), PermissionsExt::from_mode(0o700)).unwrap();
    scrub_is_of_root(&directory, 3);
    let output = nobody(&[env!("CARGO_BIN_EXE_imbrex"), "fs", "scrub", &directory]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(why.contains("2 files and directories"), "the folder and the file that is left: {why}");
    mounted.unmount();
}

/// Asserts that root can read and scrub all files.
fn scrub_is_of_root(directory: &str, files: u64) {
    let found = json(&["fs", "scrub", directory, "--json"]);
    assert_eq!((&found["is_whole"], &found["unread"], &found["files"]), (&true.into(), &0.into(), &files.into()));
}
