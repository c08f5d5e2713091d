//! Goal: `imbrex drive snapshot` of a served image contains every write that was acknowledged before, under concurrent
//! writes, and is intact; of an image at rest it is an equal drive. Method: clients that stamp every block and record
//! the sent and the acknowledged stamps. Each block of the copy must hold a stamp between the last one acknowledged
//! before the command and the last one sent before its end.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use imbrex_layer::registry;
use imbrex_testkit::fill::fill_with;
use imbrex_testkit::random::Random;
use serde_json::Value;

use super::common::*;

const BLOCK: usize = 4096;
const SECTOR: usize = 512;
const WRITERS: u64 = 3;

/// Runs `imbrex` in `folder`, where it finds the control sockets of servers that were started there.
pub(crate) fn imbrex_in(folder: &Path, words: &[&str]) -> Output {
    start_in(folder, words).wait_with_output().expect("it ends")
}

/// Starts `imbrex` like [`imbrex_in`], and does not wait for its end.
pub(crate) fn start_in(folder: &Path, words: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(words)
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Takes a snapshot, which must succeed, and returns its output as JSON.
pub(crate) fn snapshot(folder: &Path, words: &[&str]) -> Value {
    let output = imbrex_in(folder, &[&["drive", "snapshot"], words, &["--json"]].concat());
    assert!(output.status.success(), "{words:?}: {}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["schema"], "imbrex.drive-snapshot/1");
    document
}

/// Returns the names in a folder, except those of a server there.
pub(crate) fn files_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it can be read");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| !["socket", "log", "imbrex"].contains(&name.as_str()));
    names.sort();
    names
}

/// Writers at work on a served drive.
pub(crate) struct Load {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// By block: the last stamp that was sent, and the last that was acknowledged.
    sent: Arc<Vec<AtomicU64>>,
    acknowledged: Arc<Vec<AtomicU64>>,
}

impl Load {
    /// Starts the writers. Each has its own of the first `blocks` blocks of the drive, by turns, and writes them in
    /// random order.
    pub(crate) fn start(socket: &Path, blocks: u64) -> Load {
        let counters = || Arc::new((0..blocks).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
        let load = Load { is_over: Arc::default(), threads: Vec::new(), sent: counters(), acknowledged: counters() };
        let writer = |number: u64| {
            let (is_over, sent, acknowledged) = (load.is_over.clone(), load.sent.clone(), load.acknowledged.clone());
            let mut client = Client::connect(socket);
            std::thread::spawn(move || {
                let (mut random, mut bytes) = (Random::new(number), vec![0; BLOCK]);
                for stamp in 1.. {
                    let block = random.below(blocks / WRITERS) * WRITERS + number;
                    fill_with(&mut bytes, stamp, block);
                    sent[block as usize].store(stamp, Ordering::SeqCst);
                    // A writer ends when the server is killed.
                    let offset = block * BLOCK as u64;
                    if client.call(WRITE, 0, offset, BLOCK as u32, &bytes).map(|answer| answer.error).ok() != Some(0) {
                        return;
                    }
                    acknowledged[block as usize].store(stamp, Ordering::SeqCst);
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                }
            })
        };
        let threads = (0..WRITERS).map(writer).collect();
        Load { threads, ..load }
    }

    fn stamps(counters: &[AtomicU64]) -> Vec<u64> {
        counters.iter().map(|counter| counter.load(Ordering::SeqCst)).collect()
    }

    /// Returns the last stamps that were acknowledged.
    pub(crate) fn floor(&self) -> Vec<u64> {
        Load::stamps(&self.acknowledged)
    }

    /// Returns the last stamps that were sent.
    pub(crate) fn ceiling(&self) -> Vec<u64> {
        Load::stamps(&self.sent)
    }

    pub(crate) fn end(self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.threads.into_iter().for_each(|writer| writer.join().expect("it writes"));
    }
}

/// Serves `image` from a folder of its own and compares every block: each unit of `unit` bytes holds a stamp between
/// `floor` and `ceiling`. Returns the number of written blocks.
fn compare_by(unit: usize, image: &Path, floor: &[u64], ceiling: &[u64]) -> usize {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut server = Server::start(folder.path(), &[image.to_str().expect("a path"), "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    let mut written = 0;
    for (block, (floor, ceiling)) in (0..).zip(floor.iter().zip(ceiling)) {
        let bytes = client.read(block * BLOCK as u64, BLOCK as u32).expect("it can be read");
        for (number, unit) in bytes.chunks(unit).enumerate() {
            let stamp = u64::from_le_bytes(unit[..8].try_into().expect("eight bytes"));
            let mut expected = vec![0; unit.len()];
            if stamp > 0 {
                fill_with(&mut expected, stamp, block);
            }
            assert!(unit == expected, "block {block}, unit {number}: other bytes than stamp {stamp}");
            assert!(
                (floor..=ceiling).contains(&&stamp),
                "block {block}, unit {number}: {stamp}, not {floor} to {ceiling}"
            );
        }
        written += usize::from(bytes.iter().any(|&byte| byte != 0));
    }
    server.kill();
    written
}

/// Compares whole blocks, since no snapshot falls between the sectors of a block.
pub(crate) fn compare(image: &Path, floor: &[u64], ceiling: &[u64]) -> usize {
    compare_by(BLOCK, image, floor, ceiling)
}

pub(crate) fn check_is_whole(folder: &Path, image: &str) {
    let output = imbrex_in(folder, &["drive", "check", image]);
    assert!(output.status.success() && said(&output).contains("whole"), "{}", said(&output));
}

/// Takes five snapshots of `drive` under load and compares each.
fn has_all_that_was_acknowledged(drive: &str, pace: &str, folder: &Path) {
    let image = image(folder, drive);
    let server = Server::start(folder, &[&image, "--time", pace]);
    let load = Load::start(&server.socket, 1536);
    for round in 0..5 {
        until("some writes", || (load.floor().iter().sum::<u64>() > 60 * (round + 1)).then_some(()));
        let floor = load.floor();
        let copy = format!("copy-{round}");
        let taken = snapshot(folder, &["image", &copy]);
        let ceiling = load.ceiling();
        check_is_whole(folder, &copy);
        let written = compare(&folder.join(&copy), &floor, &ceiling);
        assert!(written > 10, "{drive}: only {written} blocks were written");
        assert_ne!(taken["snapshot_uuid"], taken["uuid"]);
        assert!(taken["pause_ns"].as_u64() > Some(0), "{taken}");
        fs::remove_file(folder.join(&copy)).expect("it is ours");
    }
    load.end();
    server.stop();
    check_is_whole(folder, "image");
}

#[test]
fn a_snapshot_under_load_has_all_that_was_acknowledged() {
    for (layer, more, pace) in [
        ("conventional", "", "none"),
        ("media-cache", ",host.write_cache_bytes=1048576", "none"),
        ("set-associative", "", "none"),
        ("track-map", ",host.write_cache_bytes=1048576", "10x"),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let drive = small_drive(folder.path(), registry::named(layer).expect("it is registered"));
        has_all_that_was_acknowledged(&format!("{drive}{more}"), pace, folder.path());
    }
}

/// A file system on a loop device, unmounted when the value is dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(make: &str, words: &[&str], place: &Path) -> Option<Mounted> {
        let disk = place.with_extension("disk");
        fs::create_dir(place).expect("the folder is ours");
        fs::File::create(&disk).and_then(|file| file.set_len(400 << 20)).expect("there is room");
        let (disk, place_word) = (disk.to_str().expect("a path"), place.to_str().expect("a path"));
        let is_made = output(make, &[words, &[disk]].concat()).status.success()
            && output("mount", &["-o", "loop", disk, place_word]).status.success();
        if !is_made {
            eprintln!("skipped: snapshots that share blocks ({make}, or mounting, does not work here)");
        }
        is_made.then(|| Mounted(place.into()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = output("umount", &[self.0.to_str().expect("a path")]);
    }
}

#[test]
fn where_files_share_blocks_a_snapshot_under_load_does_too() {
    for (make, words) in [("mkfs.xfs", vec!["-q"]), ("mkfs.btrfs", vec!["-q"])] {
        if !has(&[make], "snapshots that share blocks") {
            continue;
        }
        let outer = tempfile::tempdir().expect("a temporary folder");
        let Some(mounted) = Mounted::new(make, &words, &outer.path().join("disk")) else { return };
        let folder = mounted.0.as_path();
        let drive = small_drive(folder, registry::named("media-cache").expect("it is registered"));
        let image = image(folder, &format!("{drive},host.write_cache_bytes=1048576"));
        let server = Server::start(folder, &[&image, "--time", "none"]);
        let load = Load::start(&server.socket, 1536);
        until("some writes", || (load.floor().iter().sum::<u64>() > 2000).then_some(()));
        let floor = load.floor();
        let taken = snapshot(folder, &["image", "copy"]);
        let ceiling = load.ceiling();
        load.end();
        assert_eq!(taken["method"], "reflink", "{make}: {taken}");
        check_is_whole(folder, "copy");
        compare(&folder.join("copy"), &floor, &ceiling);
        server.stop();
        let at_rest = snapshot(folder, &["image", "at-rest"]);
        assert_eq!((&at_rest["method"], &at_rest["pause_ns"]), (&Value::from("reflink"), &Value::from(0)));
        check_is_whole(folder, "at-rest");
    }
}

#[test]
fn an_image_at_rest_is_copied_with_its_holes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let drive = small_drive(folder.path(), registry::named("track-map").expect("it is registered"));
    let image = image(folder.path(), &drive);
    let mut server = Server::start(folder.path(), &[&image, "--time", "none"]);
    let load = Load::start(&server.socket, 1536);
    until("some writes", || (load.floor().iter().sum::<u64>() > 100).then_some(()));
    // The image that a killed server leaves is copied unchanged.
    server.kill();
    let (floor, ceiling) = (load.floor(), load.ceiling());
    load.end();
    std::os::unix::fs::symlink("image", folder.path().join("link")).expect("it is made");
    fs::create_dir(folder.path().join("backup")).expect("it is made");
    let taken = snapshot(folder.path(), &["link", "backup/copy"]);
    assert_eq!(
        (&taken["pause_ns"], &taken["image"], &taken["copy"]),
        (&0.into(), &"link".into(), &"backup/copy".into())
    );
    let of = |name: &str| fs::metadata(folder.path().join(name)).expect("it is there");
    assert_eq!(of("backup/copy").len(), of("image").len());
    assert!(of("backup/copy").blocks() <= of("image").blocks() + 64, "its holes were filled");
    assert_eq!(of("backup/copy").mode(), of("image").mode());
    check_is_whole(folder.path(), "backup/copy");
    // A kill ends a write of the host between any two pages, and a block begins at any sector of a page.
    compare_by(SECTOR, &folder.path().join("backup/copy"), &floor, &ceiling);
    // The copy has the identity of the drive, and one of its own.
    let info = |name: &str| -> Value {
        let output = imbrex_in(folder.path(), &["drive", "info", name, "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)))
    };
    let (original, copy) = (info("image"), info("backup/copy"));
    assert_eq!((&copy["uuid"], &copy["snapshot_uuid"]), (&original["uuid"], &taken["snapshot_uuid"]));
    assert_eq!(original["snapshot_uuid"], Value::Null);
    let again = snapshot(folder.path(), &["backup/copy", "again"]);
    assert_ne!(again["snapshot_uuid"], taken["snapshot_uuid"], "a copy of a copy has a name of its own");
}

#[test]
fn an_image_that_is_served_read_only_is_copied() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let drive = small_drive(folder.path(), registry::named("track-map").expect("it is registered"));
    let image = image(folder.path(), &drive);
    let other = tempfile::tempdir().expect("a temporary folder");
    let one = Server::start(folder.path(), &[&image, "--read-only", "--time", "none"]);
    let two = Server::start(other.path(), &[&image, "--read-only", "--time", "none"]);
    snapshot(folder.path(), &["image", "copy"]);
    check_is_whole(folder.path(), "copy");
    two.stop();
    one.stop();
    // The snapshot can be taken by the control socket too.
    let control = folder.path().join("control");
    let server = Server::start(folder.path(), &[&image, "--read-only", "--control", control.to_str().expect("a path")]);
    snapshot(folder.path(), &["image", "second", "--control", "control"]);
    check_is_whole(folder.path(), "second");
    server.stop();
}

#[test]
fn a_copy_made_by_other_means_is_refused_until_it_is_adopted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let drive = small_drive(folder.path(), registry::named("media-cache").expect("it is registered"));
    let image = image(folder.path(), &drive);
    let mut server = Server::start(folder.path(), &[&image, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    assert_eq!(client.write(0, &[7; BLOCK]), 0);
    fs::copy(&image, folder.path().join("cp")).expect("there is room");
    server.kill();
    let refused = |words: &[&str]| {
        let output = imbrex_in(folder.path(), words);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        for part in
            ["cp was copied from an image that was not closed", "imbrex drive snapshot", "imbrex drive adopt cp"]
        {
            assert!(said.contains(part), "{words:?}: no '{part}' in {said}");
        }
    };
    let before = fs::read(folder.path().join("cp")).expect("it is there");
    refused(&["serve", "cp", "--nbd", "unix:s"]);
    refused(&["serve", "cp", "--nbd", "unix:s", "--read-only"]);
    refused(&["drive", "check", "cp"]);
    refused(&["drive", "check", "cp", "--repair"]);
    refused(&["drive", "fault", "cp", "clear"]);
    refused(&["drive", "snapshot", "cp", "of-cp"]);
    refused(&["fs", "mkfs", "cp"]);
    assert!(fs::read(folder.path().join("cp")).expect("it is there") == before, "it was changed");
    let info = imbrex_in(folder.path(), &["drive", "info", "cp", "--json"]);
    let info: Value = serde_json::from_slice(&info.stdout).expect("JSON");
    assert_eq!(info["is_copied_unclosed"], true);
    // The image itself can be opened, after a rename too.
    fs::rename(&image, folder.path().join("renamed")).expect("renamed");
    check_is_whole(folder.path(), "renamed");
    let adopted = imbrex_in(folder.path(), &["drive", "adopt", "cp"]);
    assert!(adopted.status.success() && said(&adopted).contains("is adopted"), "{}", said(&adopted));
    check_is_whole(folder.path(), "cp");
    let server = Server::start(folder.path(), &[folder.path().join("cp").to_str().expect("a path"), "--time", "none"]);
    assert_eq!(Client::connect(&server.socket).read(0, BLOCK as u32), Ok(vec![7; BLOCK]));
    server.stop();
    let again = imbrex_in(folder.path(), &["drive", "adopt", "cp"]);
    assert!(again.status.success() && said(&again).contains("needs no adoption"), "{}", said(&again));
}
