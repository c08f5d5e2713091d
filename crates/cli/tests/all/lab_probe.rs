//! Goal: a probe by a file, on a mounted file system of an unmodified kernel, tells the type of the drive, and changes
//! nothing outside its file. Method: the lab, where the drive's times are exact; all blocks of the drive before and after are
//! compared. The places of the file are those that `filefrag` reports; `debugfs` says which other blocks are metadata.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use imbrex_device::EmulatedDrive;
use imbrex_safety::Peek;
use serde_json::Value;

use super::lab::has_kernel;

const BLOCK_BYTES: usize = 4096;
/// Makes ext4 without work that the kernel puts off.
const MAKE: &str = "mkfs.ext4 -q -F -E lazy_itable_init=1,lazy_journal_init=1 /dev/vda";
const MOUNT: &str = "mkdir -p /mnt/p; mount -t ext4 -o noinit_itable /dev/vda /mnt/p";
/// Sums of all files, their times, and the number of free blocks.
const STATE: &str =
    "(cd /mnt/p; find . -type f -exec sha256sum {} + | sort; find . -printf '%p %s %T@\\n' | sort; stat -f -c %f .)";

/// Runs a script in a guest. Returns its output.
fn guest(drive: [&OsStr; 2], out: Option<&Path>, script: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(["lab", "run"]).args(drive).arg("--quiet").stdin(Stdio::null());
    if let Some(out) = out {
        command.arg("--out").arg(out);
    }
    let output = command.args(["--", "sh", "-c", script]).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).expect("text")
}

/// Results of a probe.
struct Probed {
    output: String,
    /// Blocks of the file, first and last.
    extents: Vec<(u64, u64)>,
    /// Blocks that changed.
    changed: Vec<u64>,
    image: PathBuf,
    _folder: tempfile::TempDir,
}

/// Probes a drive by a file. `during` are commands of the shell while the probe `$pid` runs, 20 s after its start.
fn probed(drive: &str, during: &str) -> Probed {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run");
    let make = format!("{MAKE}; {MOUNT}; cp -r /etc/init.d /mnt/p/; umount /mnt/p");
    guest([OsStr::new("--drive"), OsStr::new(drive)], Some(&out), &make);
    let (image, before) = (out.join("vda.img"), folder.path().join("before.img"));
    std::fs::copy(&image, &before).expect("copied");
    let program = env!("CARGO_BIN_EXE_imbrex");
    let script = format!(
        "{MOUNT}; {STATE} > /tmp/before; \
         {program} probe --file /mnt/p --size 256MiB --budget 30m --json --quiet > /tmp/said 2> /tmp/errors & pid=$!; sleep 20; \
         for fd in /proc/$pid/fd/*; do case $(readlink $fd) in /mnt/p/*) filefrag -e -b4096 $fd; break;; esac; done; \
         {during} wait $pid; echo status $?; {STATE} | cmp - /tmp/before && echo same; umount /mnt/p; cat /tmp/said"
    );
    let output = guest([OsStr::new("--image"), image.as_os_str()], None, &script);
    let changed = changed(&before, &image);
    Probed { extents: extents(&output), output, changed, image, _folder: folder }
}

/// Returns the blocks of a file, as `filefrag -e` prints them.
fn extents(text: &str) -> Vec<(u64, u64)> {
    let physical = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        fields.first()?.trim().parse::<u32>().ok()?;
        let (first, last) = fields.get(2)?.split_once("..")?;
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    };
    text.lines().filter_map(physical).collect()
}

/// Returns the blocks that differ between the drives of two images.
fn changed(before: &Path, after: &Path) -> Vec<u64> {
    let [mut before, mut after] =
        [before, after].map(|path| EmulatedDrive::open_file_to_look(path).expect("an image of a drive"));
    let mut changed = Vec::new();
    let mut both = [vec![0; 1 << 20], vec![0; 1 << 20]];
    for offset in (0..Peek::len(&before)).step_by(1 << 20) {
        let length = (Peek::len(&before) - offset).min(1 << 20) as usize;
        before.read_at(offset, &mut both[0][..length]).expect("it reads");
        after.read_at(offset, &mut both[1][..length]).expect("it reads");
        let [before, after] = &both;
        let blocks = before[..length].chunks(BLOCK_BYTES).zip(after[..length].chunks(BLOCK_BYTES));
        let first = offset / BLOCK_BYTES as u64;
        changed.extend(blocks.zip(first..).filter(|((before, after), _)| before != after).map(|(_, block)| block));
    }
    changed
}

/// Asserts that no block changed outside the file but metadata of ext4.
fn assert_only_the_file_changed(probed: &Probed) {
    let Probed { output, extents, changed, image, .. } = probed;
    assert!(output.contains("\nsame\n"), "another file changed, or the room is not free again: {output}");
    let blocks: u64 = extents.iter().map(|(first, last)| last - first + 1).sum();
    assert_eq!(blocks * BLOCK_BYTES as u64, 256 << 20, "{output}");
    let is_inside = |block: &&u64| extents.iter().any(|(first, last)| (first..=last).contains(block));
    let inside = changed.iter().filter(is_inside).count() as u64;
    assert!(inside * 10 >= blocks * 9, "of {blocks} blocks of the file, {inside} were written");
    // Block 0 holds the superblock.
    let outside: Vec<u64> = changed.iter().filter(|block| **block > 0 && !is_inside(block)).copied().collect();
    println!("{} blocks changed outside the file", outside.len());
    let asked: String = outside.iter().map(|block| format!("testb {block}\n")).collect();
    let script = format!("printf '{}' > /tmp/asked; debugfs -f /tmp/asked /dev/vda 2>&1", asked.replace('\n', "\\n"));
    let said = guest([OsStr::new("--image"), image.as_os_str()], None, &script);
    // Blocks of other files are in use too, but these files have the same contents as before.
    assert_eq!(said.matches("marked in use").count(), outside.len(), "{said}");
}

/// Returns the value of a property, and its confidence.
fn property(output: &str, name: &str) -> (Value, String) {
    let document: Value = serde_json::from_str(&output[output.find("{\n").expect("a document")..]).expect("JSON");
    let properties = document["properties"].as_array().expect("a list");
    let found =
        properties.iter().find(|property| property["name"] == name).unwrap_or_else(|| panic!("{name}: {output}"));
    (found["value"].clone(), found["confidence"].as_str().expect("a word").to_string())
}

#[test]
fn a_probe_by_a_file_tells_the_type_and_changes_nothing_else() {
    if !has_kernel("a probe by a file in the lab") {
        return;
    }
    for (drive, recording) in [
        ("hm-zoned+conventional:geometry.tracks=75", "conventional"),
        ("hm-zoned+set-associative:geometry.tracks=85", "shingled"),
    ] {
        let probed = probed(drive, "");
        assert!(probed.output.contains("\nstatus 0\n"), "{}", probed.output);
        assert_only_the_file_changed(&probed);
        assert_eq!(property(&probed.output, "type"), (recording.into(), "high".into()));
        let (rotation, confidence) = property(&probed.output, "rotation");
        let rotation = rotation.as_f64().expect("a number");
        assert!(confidence == "high" && (rotation / (60_000.0 / 7_200.0) - 1.0).abs() < 1e-5, "{rotation} ms");
    }
}

#[test]
fn an_interrupted_probe_leaves_no_file() {
    if !has_kernel("an interrupted probe by a file in the lab") {
        return;
    }
    for signal in ["INT", "TERM", "KILL"] {
        let probed = probed("hm-zoned+conventional:geometry.tracks=75", &format!("kill -{signal} $pid;"));
        assert!(!probed.output.contains("\nstatus 0\n"), "{signal}: {}", probed.output);
        assert_only_the_file_changed(&probed);
    }
}
