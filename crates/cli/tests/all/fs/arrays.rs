//! Goal: an array is created and mounted, loses drives, gets new ones, and is checked, by the user's commands; mistakes
//! get a message with the cause and a remedy. Method: five images of drives and a file for the metadata.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use imbrex_testkit::patience::until;

use super::common::{failure, has_fuse, imbrex, json, text, word};

struct Drives {
    folder: tempfile::TempDir,
    images: Vec<PathBuf>,
    meta: PathBuf,
    directory: PathBuf,
}

impl Drives {
    /// Creates four images, and a conventional drive in the form of a plain file.
    fn new() -> Drives {
        let folder = tempfile::tempdir().unwrap();
        let images: Vec<PathBuf> = (0..5).map(|number| folder.path().join(format!("drive{number}.img"))).collect();
        for image in &images[..4] {
            text(&["drive", "create", word(image), "--drive", "strict-append"]);
        }
        std::fs::File::create(&images[4]).unwrap().set_len(1 << 30).unwrap();
        let (meta, directory) = (folder.path().join("meta"), folder.path().join("mnt"));
        std::fs::create_dir(&directory).unwrap();
        Drives { folder, images, meta, directory }
    }

    fn mkfs(&self, parity: &str) {
        let mut words = vec!["fs", "mkfs", "--store", "log", "--parity", parity, "--meta", word(&self.meta)];
        words.extend(["--meta-size", "64MiB", "--force"]);
        words.extend(self.images.iter().map(|image| word(image)));
        let said = text(&words);
        assert!(said.contains("log") && said.contains("for data"), "{said}");
    }

    /// Moves an image to another folder, where the program does not look for it, or back.
    fn set_aside(&self, number: usize, is_away: bool) {
        let away = self.folder.path().join("away");
        std::fs::create_dir_all(&away).unwrap();
        let (here, there) = (&self.images[number], away.join(self.images[number].file_name().unwrap()));
        let (from, to): (&Path, &Path) = if is_away { (here, &there) } else { (&there, here) };
        std::fs::rename(from, to).unwrap();
    }

    /// Mounts the array by its metadata alone: the drives lie in the same folder. Returns the messages.
    fn mount(&self) -> String {
        let output = imbrex(&["fs", "mount", word(&self.meta), word(&self.directory)]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    }

    fn umount(&self) {
        text(&["fs", "umount", word(&self.directory)]);
    }

    fn stat(&self) -> serde_json::Value {
        json(&["fs", "stat", word(&self.directory), "--json"])
    }

    /// Waits until `files` files have a copy in the hot zone: copies are made in the background, and an unmount does not
    /// wait for them.
    fn until_copied(&self, files: u64) {
        until("the copies", || (self.stat()["hot_zone"]["files"] == files).then_some(()));
    }

    /// Waits until all parts of the hot zone are used, and returns them: they are stamped in the background.
    fn until_parts_are_used(&self) -> Vec<serde_json::Value> {
        until("the parts", || {
            let parts = self.stat()["hot_zone"]["drives"].as_array().unwrap().clone();
            parts.iter().all(|part| part["state"] == "used").then_some(parts)
        })
    }

    fn check(&self) {
        let checked = json(&["fs", "check", word(&self.meta), "--json"]);
        assert_eq!(checked["is_whole"], true, "{checked}");
    }
}

fn contents(number: usize) -> Vec<u8> {
    (0..number * 300_000 + 10).map(|at| (at / 7 + number) as u8).collect()
}

fn write(directory: &Path, numbers: std::ops::Range<usize>) {
    for number in numbers {
        std::fs::write(directory.join(format!("f{number}")), contents(number)).unwrap();
    }
}

fn compare(directory: &Path, numbers: std::ops::Range<usize>) {
    for number in numbers {
        assert!(std::fs::read(directory.join(format!("f{number}"))).unwrap() == contents(number), "f{number}");
    }
}

#[test]
fn an_array_of_five_loses_drives_and_gets_others() {
    if !has_fuse() {
        return;
    }
    let drives = Drives::new();
    drives.mkfs("2");
    let directory = drives.directory.as_path();
    drives.mount();
    write(directory, 0..8);
    compare(directory, 0..8);
    drives.umount();
    drives.check();

    drives.set_aside(1, true);
    drives.set_aside(4, true);
    let said = drives.mount();
    assert!(said.contains("drive 1") && said.contains("drive 4") && said.contains("imbrex fs replace"), "{said}");
    compare(directory, 0..8);
    write(directory, 8..12);
    compare(directory, 0..12);
    let status = json(&["fs", "stat", word(directory), "--json"]);
    assert_eq!(status["drives_missing"], serde_json::json!([1, 4]), "{status}");
    drives.umount();

    // A drive that was absent has no later writes, and does no harm.
    drives.set_aside(4, false);
    let new = drives.folder.path().join("new.img");
    text(&["drive", "create", word(&new), "--drive", "strict-append"]);
    let replaced = json(&["fs", "replace", word(&drives.meta), "--with", word(&new), "--json"]);
    assert_eq!(replaced["drive"], 1, "{replaced}");
    assert!(replaced["bytes"].as_u64() > Some(0), "{replaced}");
    drives.set_aside(0, true);
    drives.set_aside(2, true);
    drives.mount();
    compare(directory, 0..12);
    drives.umount();
    drives.set_aside(0, false);
    drives.set_aside(2, false);
    text(&["fs", "scrub", word(&drives.meta), "--repair"]);
    drives.check();

    // The replaced drive is present again, and reported.
    drives.set_aside(1, false);
    let said = drives.mount();
    assert!(said.contains("drive1.img is no longer part of the array"), "{said}");
    compare(directory, 0..12);
    drives.umount();
    let another = drives.folder.path().join("another.img");
    text(&["drive", "create", word(&another), "--drive", "strict-append"]);
    let added = json(&["fs", "add", word(&drives.meta), "--drive", word(&another), "--json"]);
    assert!(added["bytes"].as_u64() > Some(500 << 20), "{added}");
    drives.check();
}

#[test]
fn what_is_altered_on_one_drive_is_found_and_repaired() {
    if !has_fuse() {
        return;
    }
    let drives = Drives::new();
    drives.mkfs("1");
    drives.mount();
    write(&drives.directory, 0..4);
    drives.umount();
    // The plain file is the drive whose blocks can be altered without the program's knowledge: all of it is
    // overwritten, headers included.
    let file = std::fs::OpenOptions::new().write(true).read(true).open(&drives.images[4]).unwrap();
    let length = file.metadata().unwrap().len();
    let zeros = vec![0xee; 1 << 20];
    for at in ((1 << 20)..length).step_by(1 << 20) {
        std::os::unix::fs::FileExt::write_all_at(&file, &zeros[..(length - at).min(1 << 20) as usize], at).unwrap();
    }
    drop(file);
    let output = imbrex(&["fs", "check", word(&drives.meta)]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("imbrex fs scrub --repair"), "{said}");
    drives.mount();
    compare(&drives.directory, 0..4);
    let status = json(&["fs", "stat", word(&drives.directory), "--json"]);
    assert!(status["array"]["recovered_blocks"].as_u64() > Some(0), "{status}");
    drives.umount();
    let scrubbed = json(&["fs", "scrub", word(&drives.meta), "--repair", "--json"]);
    assert!(scrubbed["repaired_rows"].as_u64() > Some(0), "{scrubbed}");
    assert_eq!(scrubbed["lost"], serde_json::json!([]), "{scrubbed}");
    drives.check();
}

#[test]
fn hot_files_on_two_mirrors_lie_there_alone_unless_copies_are_wanted() {
    let drives = Drives::new();
    let second = drives.folder.path().join("second");
    let images: Vec<&str> = drives.images[..3].iter().map(|image| word(image)).collect();
    let mkfs = |metas: &[&Path], more: &[&'static str]| {
        let metas = metas.iter().flat_map(|meta| ["--meta", word(meta)]);
        let words =
            ["fs", "mkfs", "--store", "log", "--parity", "1", "--meta-size", "64MiB", "--hot", "1MiB", "--force"];
        imbrex(
            &words
                .into_iter()
                .chain(metas)
                .chain(more.iter().copied())
                .chain(images.iter().copied())
                .collect::<Vec<_>>(),
        )
    };
    let refused = mkfs(&[&drives.meta], &["--hot-files", "alone"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("give --meta twice"), "{refused:?}");
    for (more, alone, place) in [(&[][..], 3, "hot:"), (&["--hot-files", "copies"][..], 0, "0+3@")] {
        let made = mkfs(&[&drives.meta, &second], more);
        assert!(made.status.success(), "{made:?}");
        if !has_fuse() {
            return;
        }
        drives.mount();
        std::fs::write(drives.directory.join("small"), [7; 9000]).unwrap();
        text(&["fs", "umount", word(&drives.directory)]);
        let status = json(&["fs", "stat", word(&drives.meta), "--json"]);
        assert_eq!(status["hot_zone"]["alone_blocks"], alone, "{status}");
        let said = text(&["fs", "stat", word(&drives.meta)]);
        assert_eq!(said.contains("1 file alone"), alone > 0, "{said}");
        let dumped = text(&["fs", "dump", word(&drives.meta)]);
        let line = dumped.lines().find(|line| line.contains("small")).unwrap();
        assert!(line.contains(place) && line.contains("hot:") == (alone > 0), "{line}");
        drives.check();
        // Either mirror is enough.
        std::fs::rename(&drives.meta, drives.folder.path().join("gone")).unwrap();
        let checked = json(&["fs", "check", word(&second), "--json"]);
        assert_eq!(checked["is_whole"], true, "{checked}");
        std::fs::rename(drives.folder.path().join("gone"), &drives.meta).unwrap();
    }
}

#[test]
fn a_hot_zone_is_made_and_told_of_and_files_are_read_from_it() {
    let drives = Drives::new();
    let images: Vec<&str> = drives.images[..3].iter().map(|image| word(image)).collect();
    let with = |more: &[&'static str]| {
        let words =
            ["fs", "mkfs", "--store", "log", "--parity", "1", "--meta", word(&drives.meta), "--meta-size", "64MiB"];
        [&words[..], &images, more].concat()
    };
    for (words, code, said) in
        [(["--hot", "100"], 2, "4096 bytes at least"), (["--hot", "1TiB"], 1, "ask for a smaller one")]
    {
        let (found, text) = failure(&with(&words));
        assert_eq!(found, Some(code), "{text}");
        assert!(text.contains(said), "{text}");
    }
    let made = json(&with(&["--hot", "1MiB", "--json"]));
    assert_eq!(made["hot_bytes"], 1 << 20, "{made}");
    let status = json(&["fs", "stat", word(&drives.meta), "--json"]);
    assert_eq!((&status["hot_zone"]["blocks"], &status["hot_zone"]["files"]), (&256.into(), &0.into()), "{status}");
    assert!(status["zones"].as_u64() > Some(0) && status["zones"] == status["zones_empty"], "{status}");
    if !has_fuse() {
        return;
    }
    drives.mount();
    std::fs::write(drives.directory.join("small"), [7; 9000]).unwrap();
    text(&["fs", "umount", word(&drives.directory)]);
    drives.mount();
    assert_eq!(std::fs::read(drives.directory.join("small")).unwrap(), [7; 9000]);
    let status = json(&["fs", "stat", word(&drives.directory), "--json"]);
    assert_eq!((&status["hot_zone"]["files"], &status["hot_zone"]["used_blocks"]), (&1.into(), &3.into()), "{status}");
    assert!(status["hot_zone"]["hits"].as_u64() > Some(0), "{status}");
    assert!(status["zones"].as_u64() > status["zones_empty"].as_u64(), "{status}");
    let said = text(&["fs", "stat", word(&drives.directory)]);
    assert!(said.contains("hot zone") && said.contains("copy of 1 file"), "{said}");
    drives.umount();
    drives.check();
}

/// Goal: blocks that parity cannot reconstruct and that have a copy in the hot zone are read, distinguished from lost
/// blocks, and rewritten. Method: blocks of a row are altered on two of three drives, which are plain files, at the
/// places where the contents are found.
#[test]
fn blocks_beyond_parity_come_back_from_the_hot_zone() {
    if !has_fuse() {
        return;
    }
    let drives = Drives::new();
    let images: Vec<PathBuf> = (0..3).map(|number| drives.folder.path().join(format!("plain{number}"))).collect();
    for image in &images {
        std::fs::File::create(image).unwrap().set_len(256 << 20).unwrap();
    }
    let words = ["fs", "mkfs", "--store", "log", "--parity", "1", "--meta", word(&drives.meta), "--meta-size", "64MiB"];
    let images: Vec<&str> = images.iter().map(|image| word(image)).collect();
    text(&[&words[..], &["--hot", "1MiB"], &images].concat());
    let written: Vec<u8> = (0..9000).map(|at| b"warm and kept "[at % 14] ^ (at / 4096) as u8).collect();
    drives.mount();
    std::fs::write(drives.directory.join("small"), &written).unwrap();
    drives.until_copied(1);
    drives.umount();
    for block in written.chunks(4096).take(2) {
        let altered = images.iter().filter(|image| {
            let held = std::fs::read(image).unwrap();
            let at = held.chunks(4096).position(|there| there == block);
            let file = std::fs::OpenOptions::new().write(true).open(image).unwrap();
            at.inspect(|at| file.write_all_at(&[0xee; 4096], *at as u64 * 4096).unwrap()).is_some()
        });
        assert!(altered.count() > 0, "a block lies on a drive, and on another where parity is of it alone");
    }

    let checked = imbrex(&["fs", "check", word(&drives.meta)]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    let names =
        |said: &str| said.contains("/small: bytes 0 to 8192 are damaged beyond parity, and whole in the hot zone");
    assert!(checked.status.code() == Some(3) && names(&said), "{:?}: {said}", checked.status);
    drives.mount();
    assert!(std::fs::read(drives.directory.join("small")).unwrap() == written, "it is read from the hot zone");
    drives.umount();
    let scrubbed = imbrex(&["fs", "scrub", word(&drives.meta), "--repair"]);
    let said = String::from_utf8_lossy(&scrubbed.stdout).into_owned();
    assert!(scrubbed.status.success() && names(&said), "{:?}: {said}", scrubbed.status);
    drives.check();
    let again = imbrex(&["fs", "scrub", word(&drives.meta), "--repair"]);
    let said = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(again.status.success() && !said.contains("hot zone"), "{:?}: {said}", again.status);
}

#[test]
fn a_hot_zone_on_the_drives_is_made_and_told_of_by_drive() {
    let drives = Drives::new();
    // Two drives with conventional zones, and a conventional disk.
    let images: Vec<&str> = drives.images[2..].iter().map(|image| word(image)).collect();
    let with = |more: &[&'static str]| {
        let words =
            ["fs", "mkfs", "--store", "log", "--parity", "1", "--meta", word(&drives.meta), "--meta-size", "64MiB"];
        [&words[..], &images, &["--hot-on", "drives"], more].concat()
    };
    for (words, code, said) in [
        (&["--hot", "1MiB", "--hot-files", "alone"][..], 2, "with --hot-on drives it holds copies"),
        // Two drives of four zones of 16 MiB, and half of 1 GiB, less three blocks of each: 639.965 MiB.
        (
            &["--hot", "2TiB"],
            1,
            "of 2 TiB: 639.9 MiB at most, in conventional zones and on half of each conventional disk",
        ),
        (&[], 2, "--hot <SIZE>"),
    ] {
        let (found, text) = failure(&with(words));
        assert_eq!(found, Some(code), "{text}");
        assert!(text.contains(said), "{text}");
    }
    let made = json(&with(&["--hot", "3MiB", "--json"]));
    let each = |drive: u8| serde_json::json!({ "drive": drive, "bytes": 1 << 20 });
    assert_eq!((&made["hot_bytes"], &made["hot_drives"]), (&(3 << 20).into(), &[each(0), each(1), each(2)].into()));
    let dumped = text(&["fs", "dump", word(&drives.meta)]);
    assert!(dumped.contains("hot zone    256 blocks from 3 on of drive 2"), "{dumped}");
    if !has_fuse() {
        return;
    }
    drives.mount();
    drives.until_parts_are_used();
    for name in ["one", "two", "three"] {
        std::fs::write(drives.directory.join(name), [7; 9000]).unwrap();
    }
    drives.until_copied(3);
    drives.umount();
    drives.mount();
    for name in ["one", "two", "three"] {
        assert_eq!(std::fs::read(drives.directory.join(name)).unwrap(), [7; 9000]);
    }
    // The parts are read at once, and their stamps are written in the background.
    for part in drives.until_parts_are_used() {
        assert_eq!((&part["used_blocks"], &part["hits"]), (&3.into(), &1.into()), "{part}");
    }
    let said = text(&["fs", "stat", word(&drives.directory)]);
    assert!(said.contains("drive 0: 12 KiB of 1 MiB, 1 reads; drive 1:"), "{said}");
    drives.umount();
    drives.check();
    // The drive is removed, and returns after a mount without it.
    drives.set_aside(3, true);
    drives.mount();
    drives.umount();
    drives.set_aside(3, false);
    let said = drives.mount();
    assert!(!said.contains("outdated part of the hot zone"), "its copies were dropped before: {said}");
    assert_eq!(std::fs::read(drives.directory.join("two")).unwrap(), [7; 9000]);
    drives.umount();
    drives.check();
}

#[test]
fn mistakes_with_arrays_are_answered() {
    let fails = |words: &[&str], code: i32, said: &[&str]| {
        let (found, text) = failure(words);
        assert_eq!(found, Some(code), "{words:?}: {text}");
        for part in said {
            assert!(text.contains(part), "{words:?}: '{part}' is not in: {text}");
        }
    };
    let drives = Drives::new();
    let images: Vec<&str> = drives.images.iter().map(|image| word(image)).collect();
    let with = |more: &[&'static str]| [&["fs", "mkfs"], images.as_slice(), more].concat();
    fails(&with(&[]), 1, &["--meta"]);
    fails(&with(&["--store", "strict-append"]), 1, &["takes one drive", "log"]);
    fails(&["fs", "mkfs", images[0], "--cleaner", "files"], 1, &["cleaner=files is for store log"]);
    fails(&["fs", "mkfs", images[0], "--hot", "1MiB"], 1, &["has no hot zone; store log has"]);
    std::fs::File::create(&drives.meta).unwrap().set_len(64 << 20).unwrap();
    let meta = word(&drives.meta);
    fails(
        &[&["fs", "mkfs", "--meta", meta, "--parity", "5"], images.as_slice()].concat(),
        1,
        &["up to 3 of them parity"],
    );
    fails(&["fs", "mkfs", "--meta", meta, "--parity", "1", images[0]], 1, &["at least one data"]);
    drives.mkfs("1");
    drives.set_aside(0, true);
    drives.set_aside(3, true);
    fails(&["fs", "stat", meta], 1, &["drive 0", "drive 3", "with parity 1 no more than 1 may be", "give them too"]);
    drives.set_aside(3, false);
    let other = drives.folder.path().join("other.img");
    text(&["drive", "create", word(&other), "--drive", "caveat-1g"]);
    fails(&["fs", "replace", meta, "--with", word(&other)], 1, &["is a caveat drive", "zones of"]);
    fails(&["fs", "replace", meta, "--drive", "9", "--with", word(&other)], 1, &["no drive of that number"]);
    fails(&["fs", "add", meta, "--drive", word(&other)], 1, &["is a caveat drive"]);
    drives.set_aside(0, false);
    let said = ["has 0 blocks that can be written in any order, as a caveat drive", "give flash"];
    fails(&["fs", "replace", meta, "--copy", "0", "--with", word(&other)], 1, &said);
    fails(&["fs", "replace", meta, "--with", word(&other)], 1, &["no drive of the array is missing", "--drive NUMBER"]);
    for (there, said) in
        [(images[2], "drive2.img is drive 2 of the array already"), (meta, "is copy 0 of the metadata already")]
    {
        fails(&["fs", "replace", images[0], "--drive", "1", "--with", there], 1, &[said, "another device"]);
        fails(&["fs", "add", images[0], "--drive", there], 1, &[said, "another device"]);
    }
}

#[test]
fn a_device_of_another_kind_is_no_damage_and_one_that_was_overwritten_is() {
    let (drives, others) = (Drives::new(), Drives::new());
    let strange = drives.folder.path().join("strange");
    std::fs::write(&strange, vec![7; 1 << 20]).unwrap();
    let (meta, strange) = (word(&drives.meta), word(&strange));
    let refused = |devices: &[&str], said: &[&str]| {
        let (code, text) = failure(&[&["fs", "check"], devices].concat());
        assert_eq!(code, Some(1), "{devices:?}: {text}");
        said.iter().for_each(|part| assert!(text.contains(part), "{devices:?}: '{part}' is not in: {text}"));
        assert!(!text.contains("is not used"), "{devices:?}: it is refused: {text}");
    };
    others.mkfs("0");
    for parity in ["1", "0"] {
        drives.mkfs(parity);
        for devices in [[meta, strange], [strange, meta]] {
            refused(&devices, &["strange: holds no file system of Imbrex", "try: the same command without"]);
        }
        let other = word(&others.images[2]);
        for devices in [[meta, other], [other, meta]] {
            refused(&devices, &["drive2.img", "belongs to file system", "try: the devices of one file system"]);
        }
    }
    drives.mkfs("1");
    std::fs::OpenOptions::new().write(true).open(&drives.images[4]).unwrap().write_all_at(&[0; 8192], 0).unwrap();
    let output = imbrex(&["fs", "check", meta, word(&drives.images[4])]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "drive 4 is missing, and it may be that: {said}");
    assert!(said.contains("drive4.img: holds no file system of Imbrex"), "{said}");
}

/// Goal: a notice that a person sees also stands in the JSON. Method: an array is looked at with a drive missing.
#[test]
fn notices_stand_in_the_json() {
    let drives = Drives::new();
    drives.mkfs("1");
    let whole = json(&["fs", "stat", word(&drives.meta), "--json"]);
    assert_eq!(whole["warnings"], serde_json::json!([]), "{whole}");
    drives.set_aside(1, true);
    let output = imbrex(&["fs", "stat", word(&drives.meta), "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let warnings = document["warnings"].as_array().unwrap();
    assert!(!warnings.is_empty() && said.contains("is missing"), "{said}");
    let lines: Vec<&str> = said.lines().map(|line| line.trim_start_matches("imbrex: ")).collect();
    assert_eq!(warnings.iter().map(|warning| warning.as_str().unwrap()).collect::<Vec<_>>(), lines);
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let drives = Drives::new();
    drives.mkfs("1");
    let names = || {
        let entries = std::fs::read_dir(drives.folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<std::collections::BTreeSet<_>>()
    };
    let (before, path) = (names(), |name: &str| drives.folder.path().join(name));
    let (image, new, to) = (word(&drives.images[0]), path("new"), path("out/of/it"));
    for (words, said) in [
        (vec!["fs", "salvage", image, "--meta", word(&new), "--meta-size", "64MiB"], "its metadata can be read"),
        (vec!["fs", "salvage", image, "--meta", word(&new), "--meta-size", "1MiB", "--force"], "a larger one"),
        (vec!["fs", "salvage", image, "--to", word(&to)], "its metadata can be read"),
        (
            vec!["fs", "mkfs", image, "--store", "log", "--meta", word(&new), "--meta-size", "64MiB"],
            "holds a file system",
        ),
    ] {
        let (code, text) = failure(&words);
        assert!(code == Some(1) && text.contains(said), "{words:?}: {code:?}: {text}");
        assert_eq!(names(), before, "{words:?}");
    }
}

#[test]
fn files_come_back_without_metadata_and_with_a_drive_less() {
    if !has_fuse() {
        return;
    }
    let drives = Drives::new();
    drives.mkfs("1");
    let directory = drives.directory.as_path();
    drives.mount();
    write(directory, 1..6);
    let within = directory.join("a directory/and one in it");
    std::fs::create_dir_all(&within).unwrap();
    write(&within, 6..12);
    std::fs::write(directory.join("deleted"), [7; 9000]).unwrap();
    std::fs::remove_file(directory.join("deleted")).unwrap();
    let status = json(&["fs", "stat", word(directory), "--json"]);
    drives.umount();
    assert!(status["since_mounted"]["record_blocks"].as_u64().is_some(), "{status}");

    let new = drives.folder.path().join("new.meta");
    let salvage = |more: &[&str]| {
        let words = [&["fs", "salvage", word(&drives.images[0])], more].concat();
        imbrex(&words)
    };
    let said = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let refused = salvage(&["--meta", word(&new), "--meta-size", "64MiB"]);
    assert_eq!(refused.status.code(), Some(1), "its metadata are good: {}", said(&refused));
    assert!(said(&refused).contains("can be read") && said(&refused).contains("imbrex fs mount"), "{}", said(&refused));
    assert_eq!(salvage(&[]).status.code(), Some(2), "neither --meta nor --to");
    // With --force files are copied out beside metadata that can be read.
    let forced = drives.folder.path().join("forced");
    let found = salvage(&["--to", word(&forced), "--force"]);
    assert_eq!(found.status.code(), Some(0), "{}", said(&found));
    compare(&forced, 1..6);

    // Every block of the metadata is lost, and one drive.
    std::fs::write(&drives.meta, vec![0; 64 << 20]).unwrap();
    drives.set_aside(1, true);
    let found = salvage(&["--meta", word(&new), "--meta-size", "64MiB", "--json"]);
    assert_eq!(found.status.code(), Some(0), "{}", said(&found));
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!((&found["directories"], &found["drives_missing"]), (&2.into(), &serde_json::json!([1])), "{found}");
    assert!(found["files"].as_u64() >= Some(11), "{found}");
    let output = imbrex(&["fs", "mount", word(&new), word(directory)]);
    assert!(output.status.success(), "{}", said(&output));
    compare(directory, 1..6);
    compare(&within, 6..12);
    write(directory, 12..14);
    compare(directory, 12..14);
    drives.umount();
    let checked = json(&["fs", "check", word(&new), "--json"]);
    assert_eq!(checked["is_whole"], true, "{checked}");

    // Salvage again, with files copied out; files written since the first salvage are found too.
    std::fs::remove_file(&new).unwrap();
    let to = drives.folder.path().join("out");
    let found = salvage(&["--to", word(&to)]);
    assert_eq!(found.status.code(), Some(0), "{}", said(&found));
    assert!(String::from_utf8_lossy(&found.stdout).contains("came back"), "it says what came back");
    compare(&to, 1..6);
    compare(&to.join("a directory/and one in it"), 6..12);
    compare(&to, 12..14);
    let (code, why) = failure(&["fs", "salvage", word(&drives.images[0]), "--to", word(&to)]);
    assert!(code == Some(1) && why.contains("there is something in it"), "{why}");
}

#[test]
fn of_mirrored_metadata_one_copy_is_made_anew_and_the_other_put_beside_it() {
    if !has_fuse() {
        return;
    }
    let drives = Drives::new();
    let (directory, folder) = (drives.directory.as_path(), drives.folder.path());
    let [first, second, new, another] = ["first", "second", "new", "another"].map(|name| folder.join(name));
    let images: Vec<&str> = drives.images.iter().map(|image| word(image)).collect();
    let how =
        ["--store", "log", "--parity", "1", "--meta", word(&first), "--meta", word(&second), "--meta-size", "64MiB"];
    text(&[&["fs", "mkfs"], images.as_slice(), &how].concat());
    text(&["fs", "mount", word(&first), word(directory)]);
    write(directory, 1..6);
    drives.umount();
    [&first, &second].into_iter().for_each(|copy| std::fs::write(copy, vec![0xee; 64 << 20]).unwrap());
    text(&[&["fs", "salvage"], images.as_slice(), &["--meta", word(&new), "--meta-size", "64MiB"]].concat());
    text(&["fs", "mount", word(&new), word(directory)]);
    compare(directory, 1..6);
    std::fs::File::create(&another).unwrap().set_len(64 << 20).unwrap();
    text(&["fs", "replace", word(directory), "--copy", "1", "--with", word(&another)]);
    write(directory, 6..8);
    drives.umount();
    // Either of the two is enough.
    std::fs::remove_file(&new).unwrap();
    text(&["fs", "mount", word(&another), word(directory)]);
    compare(directory, 1..8);
    drives.umount();
}
