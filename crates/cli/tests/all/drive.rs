//! Goal: `imbrex drive` creates, describes, checks and dumps images, and reports clearly why a file is no image.
//! Method: the built binary on drives that the test wrote to, and on files that it corrupts.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use imbrex_device::EmulatedDrive;
use imbrex_device::caveat::{CaveatDevice, EmulatedCaveat};
use imbrex_device::zoned::{EmulatedZoned, ZonedDevice};
use imbrex_disk::Lba;
use serde_json::Value;

fn imbrex(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).stdin(Stdio::null()).output().expect("the program starts")
}

fn text(words: &[&str]) -> String {
    let output = imbrex(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn json(words: &[&str]) -> Value {
    serde_json::from_str(&text(words)).expect("JSON")
}

/// Returns the exit code and standard error.
fn failure(words: &[&str]) -> (Option<i32>, String) {
    let output = imbrex(words);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// An image of `drive` in a folder of its own.
struct Image {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Image {
    fn new(drive: &str) -> Image {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("drive.imbrex");
        text(&["drive", "create", path.to_str().expect("a path"), "--drive", drive]);
        Image { _folder: folder, path }
    }

    fn word(&self) -> &str {
        self.path.to_str().expect("a path")
    }

    fn opened(&self) -> EmulatedDrive {
        EmulatedDrive::open_file(&self.path, false).expect("it opens")
    }
}

#[test]
fn zones_are_described_and_dumped() {
    let image = Image::new("strict-append");
    let mut device = EmulatedZoned::new(image.opened()).expect("it has zones");
    let start = device.mode_sense().start(5);
    assert_eq!(device.append(5, &[7; 3 * 4096]).expect("there is room"), start);
    device.finish(6).expect("an empty zone can be finished");
    device.flush().expect("the file takes it");
    drop(device);
    let info = json(&["drive", "info", image.word(), "--json"]);
    assert_eq!((info["zones"].as_u64(), info["zone_bytes"].as_u64()), (Some(64), Some(16 << 20)));
    assert_eq!(info["capacity_bytes"], 1u64 << 30);
    let conditions = &info["zone_conditions"];
    assert_eq!(
        [&conditions["conventional"], &conditions["closed"], &conditions["full"], &conditions["empty"]],
        [4, 1, 1, 58]
    );
    assert_eq!(info["sector_bytes"], 4096);

    let dump = json(&["drive", "dump", image.word(), "--json"]);
    assert_eq!(dump["schema"], "imbrex.drive-dump/1");
    let zone = &dump["bands"][5];
    assert_eq!((zone["condition"].as_str(), zone["pointer_sectors"].as_u64()), (Some("closed"), Some(3)));
    assert_eq!(zone["lba"], start.0);
    let mapped: u64 = dump["map"].as_array().expect("a list").iter().filter_map(|run| run["sectors"].as_u64()).sum();
    assert_eq!(mapped, 262_144);
    assert_eq!(dump["cache"].as_array().map(Vec::len), Some(0), "an identity moves nothing");
    let records: Vec<_> = dump["journal"].as_array().expect("a list").iter().map(|record| &record["zone"]).collect();
    assert!(records.iter().any(|zone| **zone == 5) && records.iter().any(|zone| **zone == 6), "{records:?}");
    // The write on the first track of its zone destroys the sectors at its angles on the next track: three, and their
    // neighbours.
    let lost: u64 = dump["damage"].as_array().expect("a list").iter().filter_map(|run| run["sectors"].as_u64()).sum();
    assert!((3..=6).contains(&lost), "{lost} sectors");
    let alone = json(&["drive", "dump", image.word(), "--json", "--damage"]);
    assert!(alone["damage"] == dump["damage"] && alone.get("map").is_none());
    let words = text(&["drive", "dump", image.word(), "--bands"]);
    assert_eq!(words.lines().count(), 65, "a head, and a line a zone");
    let check = imbrex(&["drive", "check", image.word()]);
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stdout));
}

#[test]
fn a_caveat_disk_is_whole_whatever_its_host_destroyed() {
    let image = Image::new("caveat-1g:geometry.tracks=8");
    let mut device = EmulatedCaveat::new(image.opened()).expect("it is a caveat disk");
    device.write(Lba(100), &[1; 4096]).expect("a caveat disk takes every write");
    device.write(Lba(90), &[1; 4096]).expect("a caveat disk takes every write");
    drop(device);
    let info = json(&["drive", "info", image.word(), "--json"]);
    assert_eq!((info["dnor_sectors"].as_u64(), info["did_sectors"].as_u64()), (Some(6), Some(16)));
    // All of the 2048 sectors but sector 90: its write damaged 97 … 106, sector 100 among them.
    assert_eq!(info["destroyed_sectors"], 2047);
    let damage = &json(&["drive", "dump", image.word(), "--json", "--damage"])["damage"];
    assert_eq!(*damage, serde_json::json!([{ "pba": 0, "sectors": 90 }, { "pba": 91, "sectors": 1957 }]));
    let check = json(&["drive", "check", image.word(), "--json"]);
    assert!(check["is_whole"] == true && check["schema"] == "imbrex.drive-check/1");
}

/// Returns an image of zones, with four sectors in zone 5.
fn appended() -> Image {
    let image = Image::new("strict-append");
    let mut device = EmulatedZoned::new(image.opened()).expect("it has zones");
    for number in 0..4 {
        device.append(5, &[number; 4096]).expect("there is room");
        device.flush().expect("the file takes it");
    }
    image
}

/// Corrupts the first journal record in `path` that says that zone 5 has two sectors written.
fn spoil_a_record(path: &Path) {
    let bytes = std::fs::read(path).expect("it is there");
    // The record's tag, 7 bytes that name its era, then the operands.
    let operands: Vec<u8> = [5u64, 2].iter().flat_map(|operand| operand.to_le_bytes()).collect();
    let at = bytes.windows(24).position(|window| window[0] == 1 && window[8..] == operands).expect("a record is there");
    let mut file = OpenOptions::new().write(true).open(path).expect("it is there");
    file.seek(SeekFrom::Start(at as u64)).expect("it is that long");
    file.write_all(&[0xee; 24]).expect("there is room");
}

#[test]
fn damage_is_found_and_exits_with_three() {
    let image = appended();
    spoil_a_record(&image.path);
    let output = imbrex(&["drive", "check", image.word(), "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(3), "{document}");
    assert_eq!((&document["is_whole"], &document["findings"][0]["kind"]), (&false.into(), &"journal".into()));
    let output = imbrex(&["drive", "check", image.word()]);
    assert_eq!(output.status.code(), Some(3));
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(found.contains("journal") && found.contains("--repair` makes it whole again and loses nothing"), "{found}");
    // The check says what a repair then loses.
    let repaired = json(&["drive", "check", image.word(), "--repair", "--json"]);
    assert_eq!(document["repair"]["lost"], repaired["lost"]);
    assert_eq!(document["repair"]["is_emptied"], repaired["is_emptied"]);
}

#[test]
fn a_check_says_that_a_repair_would_lose_all_and_a_snapshot_of_such_an_image_is_refused() {
    let image = appended();
    // Both copies of the record.
    spoil_a_record(&image.path);
    spoil_a_record(&image.path);
    let output = imbrex(&["drive", "check", image.word()]);
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.code() == Some(3) && found.contains("--repair` would empty it"), "{found}");
    let copy = image.path.with_file_name("copy");
    let (code, said) = failure(&["drive", "snapshot", image.word(), copy.to_str().expect("a path")]);
    assert!(code == Some(1) && said.contains("damaged") && !copy.exists(), "{code:?}: {said}");
    let repaired = json(&["drive", "check", image.word(), "--repair", "--json"]);
    assert_eq!(repaired["is_emptied"], true);
}

#[test]
fn what_is_no_image_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = |name: &str| folder.path().join(name).to_str().expect("a path").to_string();
    let foreign = place("foreign");
    std::fs::write(&foreign, [b'x'; 9000]).expect("there is room");
    let image = Image::new("caveat-1g:geometry.tracks=8");
    let short = place("short");
    std::fs::copy(&image.path, &short).expect("there is room");
    OpenOptions::new().write(true).open(&short).and_then(|file| file.set_len(1000)).expect("it can be cut");
    for command in ["info", "check", "dump"] {
        for (path, says) in [
            (place("missing"), "is not there; `imbrex drive create` makes an image"),
            (foreign.clone(), "is not an Imbrex image"),
            (short.clone(), "cut short"),
            (place("."), "is a folder, not an image"),
        ] {
            // A truncated image is damage, which the check reports.
            if command == "check" && path == short {
                let output = imbrex(&["drive", command, &path]);
                let found = String::from_utf8_lossy(&output.stdout).into_owned();
                assert!(output.status.code() == Some(3) && found.contains(says), "drive check {path}: {found}");
                continue;
            }
            let (code, said) = failure(&["drive", command, &path]);
            assert!(code == Some(1) && said.contains(says), "drive {command} {path}: {code:?}, {said}");
        }
        assert_eq!(failure(&["drive", command]).0, Some(2), "a file must be named");
        assert_eq!(failure(&["drive", command, image.word(), "--loud"]).0, Some(2), "there is no such option");
    }
    assert_eq!(std::fs::read(&foreign).expect("it is there"), [b'x'; 9000]);
    assert_eq!(File::open(&short).and_then(|file| file.metadata()).expect("it is there").len(), 1000);
}

#[test]
fn what_is_missing_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("no/drive.imbrex");
    let (code, said) = failure(&["drive", "create", path.to_str().expect("a path"), "--drive", "caveat-1g"]);
    assert!(code == Some(1) && said.contains("make the folder first"), "{code:?}, {said}");
    let (code, said) = failure(&["drive", "info", "/dev/no-such-disk"]);
    assert!(code == Some(1) && said.contains("no such device") && said.contains("lsblk"), "{code:?}, {said}");
    let (code, said) = failure(&["serve"]);
    assert!(code == Some(2), "{code:?}, {said}");
    let ways = "<--nbd <ADDRESS>|--ublk [<ID>]|--vhost-user <PATH>>";
    assert!(said.contains("<FILE|--drive <DRIVE>>") && said.contains(ways), "{said}");
}

#[test]
fn an_image_in_use_is_refused() {
    let image = Image::new("caveat-1g:geometry.tracks=8");
    let held = image.opened();
    for command in ["info", "check", "dump"] {
        let (code, said) = failure(&["drive", command, image.word()]);
        assert!(code == Some(1) && said.contains("in use by another process"), "drive {command}: {code:?}, {said}");
    }
    drop(held);
    text(&["drive", "info", image.word()]);
}

#[test]
fn wrong_words_make_no_image() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("drive.imbrex");
    let word = path.to_str().expect("a path");
    for (drive, says) in [
        ("no-such-drive", "no-such-drive"),
        ("strict-append:zone_size=2TiB", "zones fit on a disk"),
        ("strict-append:conventional_zones=5", "destroys sector"),
        ("strict-append:open_zones=5,active_zones=3", "active_zones"),
        ("caveat-1g+zoned", "does not work on caveat recording"),
        ("cmr-7200+caveat", "does not work on conventional recording"),
        ("cassuto-307g+region-rmw:safety=paper", "lose data in a power cut"),
    ] {
        let (code, said) = failure(&["drive", "create", word, "--drive", drive]);
        assert!(code.is_some_and(|code| code == 1 || code == 2) && said.contains(says), "{drive}: {code:?}, {said}");
        assert!(!path.exists(), "{drive} left a file behind");
    }
    std::fs::write(&path, b"mine").expect("there is room");
    assert!(failure(&["drive", "create", word, "--drive", "caveat-1g"]).1.contains("exists already"));
    assert_eq!(std::fs::read(&path).expect("it is there"), b"mine");
}

/// A command that is killed, at 60 moments of its work, leaves a complete image or none.
#[test]
fn a_killed_command_leaves_a_whole_image_or_none() {
    let begun = std::time::Instant::now();
    drop(Image::new("caveat-1g"));
    let whole = begun.elapsed();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("drive.imbrex");
    let word = path.to_str().expect("a path");
    for moment in 0..60 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_imbrex"))
            .args(["drive", "create", word, "--drive", "caveat-1g"])
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts");
        std::thread::sleep(whole * moment / 50);
        // The process may have ended already.
        let _ = child.kill();
        child.wait().expect("it was started here");
        if path.exists() {
            assert_eq!(text(&["drive", "check", word]).lines().count(), 1, "moment {moment}");
            std::fs::remove_file(&path).expect("it is there");
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0, "moment {moment}");
    }
}

#[test]
fn a_drive_of_20_tb_takes_little_room() {
    let image = Image::new("imr-20t");
    let metadata = std::fs::metadata(&image.path).expect("it is there");
    assert!(metadata.blocks() * 512 < 4 << 20, "{} bytes", metadata.blocks() * 512);
    assert!(json(&["drive", "info", image.word(), "--json"])["capacity_bytes"].as_u64() > Some(19_000_000_000_000));
}

#[test]
fn the_page_on_drives_names_every_option_and_field() {
    let page = include_str!("../../../../docs/drive.md");
    for command in ["dump", "check", "info"] {
        let help = text(&["drive", command, "--help"]);
        let options = help.split_whitespace().filter(|word| word.starts_with("--"));
        for option in options.map(|word| word.trim_end_matches([',', '.', ')', ';', ':', ']'])) {
            assert!(option == "--help" || page.contains(option), "docs/drive.md does not name {option}");
        }
    }
    for drive in ["strict-append", "caveat-1g", "seagate-st5000as0011"] {
        let image = Image::new(drive);
        let info = json(&["drive", "info", image.word(), "--json"]);
        for key in info.as_object().expect("an object").keys().filter(|key| *key != "schema") {
            assert!(page.contains(&format!("`{key}`")), "docs/drive.md does not name `{key}`");
        }
    }
}
